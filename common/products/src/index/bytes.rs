//! The layout of an index.

pub(super) const MAGIC: &[u8; 4] = b"PRD1";
/// Bytes of the magic word and of the numbers behind it.
pub(super) const HEAD_BYTES: usize = 4 + 6 * 4;
pub(super) const PRODUCT_BYTES: usize = 4 + 2 + 2 + 8 + 8;
pub(super) const ID_BYTES: usize = 8 + 4;
/// A price is kept in this part of the currency's unit.
pub(super) const PRICE_DECIMALS: u32 = 4;
/// In place of a price that is not known.
pub(super) const NO_PRICE: i64 = -1;

/// A hash that never changes (FNV-1a): it is stored.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// A currency's code in 15 bits; 0 for anything else.
pub(super) fn currency_number(code: &str) -> u16 {
    let is_code = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase());
    if is_code { code.bytes().fold(0, |number, byte| number * 27 + u16::from(byte - b'A') + 1) } else { 0 }
}

pub(super) fn push_varint(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

pub(super) fn varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u32;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}
