//! ABI encoding of contract calls, and event topics.

use super::{Word, keccak256, word_from_u64};

/// An argument of a contract call.
pub enum Argument<'a> {
    Word(Word),
    /// `bytes`: an offset in the head, length and padded content in the tail.
    Bytes(&'a [u8]),
}

/// Call data: the selector of `signature` (such as `balanceOf(address)`) and the encoded arguments.
pub fn call(signature: &str, arguments: &[Argument<'_>]) -> Vec<u8> {
    let mut data = keccak256(signature.as_bytes())[..4].to_vec();
    let mut tail = Vec::new();
    for argument in arguments {
        match argument {
            Argument::Word(word) => data.extend_from_slice(word),
            Argument::Bytes(bytes) => {
                let offset = arguments.len() * 32 + tail.len();
                data.extend_from_slice(&word_from_u64(offset as u64));
                tail.extend_from_slice(&word_from_u64(bytes.len() as u64));
                tail.extend_from_slice(bytes);
                tail.resize(tail.len().next_multiple_of(32), 0);
            }
        }
    }
    data.extend_from_slice(&tail);
    data
}

/// Topic 0 of an event.
pub fn event(signature: &str) -> Word {
    keccak256(signature.as_bytes())
}

/// The nth 32-byte word of a result or of a log's data.
pub fn word_at(data: &[u8], index: usize) -> Option<Word> {
    data.get(index * 32..(index + 1) * 32)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex0x;

    #[test]
    fn selectors_and_dynamic_arguments() {
        assert_eq!(hex0x(&call("balanceOf(address)", &[Argument::Word([0; 32])])[..4]), "0x70a08231");
        assert_eq!(hex0x(&call("isValidSignature(bytes32,bytes)", &[])), "0x1626ba7e");

        let data = call("isValidSignature(bytes32,bytes)", &[Argument::Word([7; 32]), Argument::Bytes(&[1; 65])]);
        assert_eq!(data.len(), 4 + 32 + 32 + 32 + 96);
        assert_eq!(word_at(&data[4..], 0), Some([7; 32]));
        assert_eq!(word_at(&data[4..], 1), Some(word_from_u64(64)));
        assert_eq!(word_at(&data[4..], 2), Some(word_from_u64(65)));
        assert_eq!(word_at(&data[4..], 6), None);
    }
}
