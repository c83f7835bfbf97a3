//! The compiled contracts of `contracts/`, and calls to them.
//!
//! Supports only the ABI types that these contracts need: words, byte strings, lists of byte strings. Functions are named
//! by signature; the selectors come from the compiler's output, so no hash function is needed here.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

/// Behaves like USDC; see `contracts/TestDollar.sol`.
pub static TEST_DOLLAR: LazyLock<Artifact> =
    LazyLock::new(|| Artifact::parse(include_str!("../contracts/artifacts/TestDollar.json")));
/// An EIP-1271 wallet with switchable behaviour. Its constructor takes the owner.
pub static TEST_WALLET: LazyLock<Artifact> =
    LazyLock::new(|| Artifact::parse(include_str!("../contracts/artifacts/TestWallet.json")));
/// Several reads in one call; client libraries expect it at [`crate::node::MULTICALL_ADDRESS`].
pub static MULTICALL: LazyLock<Artifact> =
    LazyLock::new(|| Artifact::parse(include_str!("../contracts/artifacts/Multicall.json")));
/// Several calls in one transaction.
pub static BATCHER: LazyLock<Artifact> =
    LazyLock::new(|| Artifact::parse(include_str!("../contracts/artifacts/Batcher.json")));

#[derive(Debug, Deserialize)]
pub struct Artifact {
    pub contract: String,
    selectors: BTreeMap<String, String>,
    /// Creation code of the contract; constructor arguments are appended.
    pub creation: String,
    /// Runtime code, to be set at an address directly.
    pub runtime: String,
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub enum Arg {
    Word([u8; 32]),
    Bytes(Vec<u8>),
    List(Vec<Vec<u8>>),
}

impl Artifact {
    fn parse(json: &str) -> Self {
        serde_json::from_str(json).expect("artifacts are written by contracts/build.mjs")
    }

    /// The call data, in hexadecimal, of a function named by its signature, such as `transfer(address,uint256)`.
    ///
    /// # Panics
    /// If the contract has no such function.
    pub fn call(&self, signature: &str, args: &[Arg]) -> String {
        let selector =
            self.selectors.get(signature).unwrap_or_else(|| panic!("{} has no function {signature}", self.contract));
        format!("0x{selector}{}", hex(&encode(args)))
    }

    /// The data of the transaction that deploys the contract.
    pub fn deployment(&self, args: &[Arg]) -> String {
        format!("{}{}", self.creation, hex(&encode(args)))
    }
}

impl Arg {
    pub fn uint(value: u128) -> Self {
        let mut word = [0; 32];
        word[16..].copy_from_slice(&value.to_be_bytes());
        Self::Word(word)
    }

    /// # Panics
    /// If the text is not `0x` and forty hexadecimal digits.
    pub fn address(text: &str) -> Self {
        let bytes = text.strip_prefix("0x").and_then(unhex).filter(|bytes| bytes.len() == 20);
        let mut word = [0; 32];
        word[12..].copy_from_slice(&bytes.unwrap_or_else(|| panic!("{text} is not an address")));
        Self::Word(word)
    }
}

/// Words stay in place. Byte strings and lists go to the tail, and the head holds their offset.
fn encode(args: &[Arg]) -> Vec<u8> {
    let mut head = Vec::new();
    let mut tail = Vec::new();
    for arg in args {
        let dynamic = match arg {
            Arg::Word(word) => {
                head.extend(word);
                continue;
            }
            Arg::Bytes(bytes) => encode_bytes(bytes),
            Arg::List(items) => {
                let items: Vec<Arg> = items.iter().cloned().map(Arg::Bytes).collect();
                [&length_word(items.len())[..], &encode(&items)].concat()
            }
        };
        head.extend(length_word(args.len() * 32 + tail.len()));
        tail.extend(dynamic);
    }
    [head, tail].concat()
}

fn encode_bytes(bytes: &[u8]) -> Vec<u8> {
    let mut encoded = [&length_word(bytes.len())[..], bytes].concat();
    encoded.resize(encoded.len().next_multiple_of(32), 0);
    encoded
}

fn length_word(length: usize) -> [u8; 32] {
    let mut word = [0; 32];
    word[24..].copy_from_slice(&(length as u64).to_be_bytes());
    word
}

/// Lower-case digits without a prefix.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads digits of either case, without a prefix. Called with the whole state of a chain, millions of digits.
pub fn unhex(digits: &str) -> Option<Vec<u8>> {
    let nibble = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    };
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    for pair in digits.chunks_exact(2) {
        bytes.push((nibble(pair[0])? << 4) | nibble(pair[1])?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_in_the_head_and_bytes_go_to_the_tail() {
        let encoded = hex(&encode(&[Arg::uint(7), Arg::Bytes(vec![0xab; 33]), Arg::uint(9)]));
        let words: Vec<&str> = (0..encoded.len() / 64).map(|i| &encoded[i * 64..][..64]).collect();
        let number = |n: u32| format!("{n:064x}");
        assert_eq!(words[..4], [number(7), number(96), number(9), number(33)].each_ref().map(String::as_str));
        assert_eq!(words[4], "ab".repeat(32));
        assert_eq!(words[5], format!("{:0<64}", "ab"));
        assert_eq!(words.len(), 6);
    }

    #[test]
    fn a_list_holds_offsets_from_its_own_start() {
        let encoded = encode(&[Arg::List(vec![vec![1], vec![2]])]);
        let word = |i: usize| encoded[i * 32 + 31];
        // the list's offset, its length, two offsets counted from the end of the length, then both items
        assert_eq!([word(0), word(1), word(2), word(3)], [32, 2, 64, 128]);
        assert_eq!([word(4), encoded[5 * 32], word(6), encoded[7 * 32]], [1, 1, 1, 2]);
    }

    #[test]
    fn hexadecimal_round_trip() {
        assert_eq!(unhex(&hex(&[0, 1, 0xfe])), Some(vec![0, 1, 0xfe]));
        assert_eq!(unhex("ABab"), Some(vec![0xab, 0xab]));
        assert_eq!((unhex("a"), unhex("zz"), unhex("é")), (None, None, None));
    }
}
