//! Compact serde forms of words and addresses, for items that are written often: `#[serde(with = "compact::word")]`.

/// A word without its leading zeros.
pub mod word {
    use serde::de::Error;
    use serde::{Deserializer, Serializer};

    use crate::Word;

    pub fn serialize<S: Serializer>(word: &Word, serializer: S) -> Result<S::Ok, S::Error> {
        let zeros = word.iter().take(31).take_while(|byte| **byte == 0).count();
        serializer.serialize_bytes(&word[zeros..])
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        let bytes: Vec<u8> = serde_bytes::deserialize(deserializer)?;
        let mut word: Word = [0; 32];
        let begin = word.len().checked_sub(bytes.len()).ok_or_else(|| D::Error::custom("more than 32 bytes"))?;
        word[begin..].copy_from_slice(&bytes);
        Ok(word)
    }
}

/// An address as its 20 bytes.
pub mod address {
    use serde::de::Error;
    use serde::{Deserializer, Serializer};

    use crate::Address;

    pub fn serialize<S: Serializer>(address: &Address, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(address.bytes())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
        let bytes: Vec<u8> = serde_bytes::deserialize(deserializer)?;
        let bytes: [u8; 20] = bytes.try_into().map_err(|_| D::Error::custom("not 20 bytes"))?;
        Ok(Address::from_bytes(bytes))
    }
}
