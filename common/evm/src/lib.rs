//! The parts of Ethereum this service needs: addresses, words, typed-data hashes, signatures, transactions.
//!
//! Pure functions: no HTTP, no storage, no prices. Start with [`address`] and [`signature`].

pub mod abi;
pub mod address;
pub mod authorization;
pub mod compact;
pub mod eip712;
pub mod signature;
pub mod transaction;

pub use address::Address;

use sha3::{Digest, Keccak256};

/// A 256-bit word as 32 big-endian bytes.
pub type Word = [u8; 32];

pub fn keccak256(bytes: &[u8]) -> Word {
    Keccak256::digest(bytes).into()
}

/// `0x` and lower-case hex.
pub fn hex0x(bytes: &[u8]) -> String {
    const_hex::encode_prefixed(bytes)
}

/// Reads `0x…` hex of any even length; `None` otherwise.
pub fn parse_hex0x(text: &str) -> Option<Vec<u8>> {
    const_hex::decode(text.strip_prefix("0x")?).ok()
}

/// Reads `0x` and exactly 64 hex digits.
pub fn parse_word(text: &str) -> Option<Word> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 64)?;
    const_hex::decode_to_array(digits).ok()
}

/// A 64-bit number as a word.
pub fn word_from_u64(number: u64) -> Word {
    let mut word = [0; 32];
    word[24..].copy_from_slice(&number.to_be_bytes());
    word
}

/// A word as a 64-bit number, if it fits.
pub fn word_to_u64(word: &Word) -> Option<u64> {
    word[..24].iter().all(|byte| *byte == 0).then(|| {
        let mut low = [0; 8];
        low.copy_from_slice(&word[24..]);
        u64::from_be_bytes(low)
    })
}

/// Reads an unsigned decimal number below 2²⁵⁶. Digits only: no sign and no spaces.
pub fn parse_decimal_word(text: &str) -> Option<Word> {
    if text.is_empty() || text.len() > 78 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut word = [0u8; 32];
    for digit in text.bytes() {
        let mut carry = u16::from(digit - b'0');
        for byte in word.iter_mut().rev() {
            let product = u16::from(*byte) * 10 + carry;
            *byte = (product & 0xff) as u8;
            carry = product >> 8;
        }
        if carry != 0 {
            return None;
        }
    }
    Some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_words_end_at_two_to_the_256() {
        let max = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        assert_eq!(parse_decimal_word(max), Some([0xff; 32]));
        let over = "115792089237316195423570985008687907853269984665640564039457584007913129639936";
        assert_eq!(parse_decimal_word(over), None);
        assert_eq!(parse_decimal_word("2000"), Some(word_from_u64(2000)));
        for text in ["", "-1", "+1", "1.0", " 1", "0x1", "1e3", "١"] {
            assert_eq!(parse_decimal_word(text), None, "{text}");
        }
    }

    #[test]
    fn words_are_exactly_32_bytes_of_hex() {
        assert!(parse_word(&format!("0x{}", "ab".repeat(32))).is_some());
        assert!(parse_word(&format!("0x{}", "ab".repeat(31))).is_none());
        assert!(parse_word(&"ab".repeat(33)).is_none());
        assert_eq!(word_to_u64(&word_from_u64(u64::MAX)), Some(u64::MAX));
        assert_eq!(word_to_u64(&[1; 32]), None);
    }
}
