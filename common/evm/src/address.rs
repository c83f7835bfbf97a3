//! Wallet and contract addresses. Read in any case, printed with the EIP-55 checksum.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Word, keccak256};

/// A 20-byte address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address([u8; 20]);

/// The text is not `0x` and 40 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnAddress;

impl Address {
    pub const ZERO: Address = Address([0; 20]);

    pub const fn from_bytes(bytes: [u8; 20]) -> Address {
        Address(bytes)
    }

    pub const fn bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// The address as an ABI word, with twelve leading zero bytes.
    pub fn word(&self) -> Word {
        let mut word = [0; 32];
        word[12..].copy_from_slice(&self.0);
        word
    }

    pub fn from_word(word: &Word) -> Option<Address> {
        if word[..12].iter().any(|byte| *byte != 0) {
            return None;
        }
        let mut bytes = [0; 20];
        bytes.copy_from_slice(&word[12..]);
        Some(Address(bytes))
    }

    /// Whether a text of this address has a wrong EIP-55 checksum. Only mixed case holds one.
    pub fn is_mistyped(&self, text: &str) -> bool {
        let digits = text.get(2..).unwrap_or_default();
        let is_mixed = digits.bytes().any(|byte| byte.is_ascii_lowercase())
            && digits.bytes().any(|byte| byte.is_ascii_uppercase());
        is_mixed && self.to_string().get(2..) != Some(digits)
    }

    /// `0x` and lower-case hex, as used in database keys.
    pub fn lower(&self) -> String {
        super::hex0x(&self.0)
    }
}

/// With the EIP-55 checksum: a common client library throws if it is wrong.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0u8; 40];
        // 20 bytes always fill 40 digits.
        let _ = const_hex::encode_to_slice(self.0, &mut digits);
        let hash = keccak256(&digits);
        for (index, digit) in digits.iter_mut().enumerate() {
            let nibble = (hash[index / 2] >> if index % 2 == 0 { 4 } else { 0 }) & 0x0f;
            if nibble >= 8 {
                digit.make_ascii_uppercase();
            }
        }
        f.write_str("0x")?;
        f.write_str(str::from_utf8(&digits).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Accepts any case: clients send lower case, checksummed and sometimes upper case.
impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Address, NotAnAddress> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).ok_or(NotAnAddress)?;
        if digits.len() != 40 {
            return Err(NotAnAddress);
        }
        const_hex::decode_to_array(digits).map(Address).map_err(|_| NotAnAddress)
    }
}

impl fmt::Display for NotAnAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be 0x and 40 hex digits")
    }
}

impl std::error::Error for NotAnAddress {}

/// Stored in lower case, so that equal addresses are equal strings.
impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.lower())
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_eip_55() {
        for text in [
            "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
            "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
            "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
        ] {
            let address: Address = text.to_lowercase().parse().unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(Address::from_word(&address.word()), Some(address));
        }
    }

    #[test]
    fn only_mixed_case_can_be_mistyped() {
        let right = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
        let address: Address = right.parse().unwrap();
        let upper = format!("0x{}", right[2..].to_uppercase());
        for text in [right, address.lower().as_str(), upper.as_str()] {
            assert!(!address.is_mistyped(text), "{text}");
        }
        assert!(address.is_mistyped(&right.replace("5aA", "5Aa")));
        // Another digit is another address, whose letters are then of another case.
        let typo = right.replace("BeAed", "BeAee");
        assert!(typo.parse::<Address>().unwrap().is_mistyped(&typo));
    }

    #[test]
    fn refuses_what_is_not_an_address() {
        for text in [
            "",
            "0x",
            "0x1234",
            "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
            "0xzzAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        ] {
            assert_eq!(text.parse::<Address>(), Err(NotAnAddress), "{text}");
        }
    }
}
