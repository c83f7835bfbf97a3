//! EIP-1559 (type 2) transactions, signed with our own keys.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteArray;

use super::{Address, Word, hex0x, keccak256, signature::PrivateKey};

/// A contract call from one of our accounts. Fees are in wei.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub chain_id: u64,
    pub nonce: u64,
    pub max_priority_fee_per_gas: u128,
    pub max_fee_per_gas: u128,
    pub gas_limit: u64,
    pub to: Address,
    pub data: Vec<u8>,
}

/// A transaction ready to broadcast. Its hash is known before it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTransaction {
    pub raw: Vec<u8>,
    pub hash: Word,
}

/// Hashes of the earlier transactions with the same account nonce, oldest first. Either one of them or the latest gets
/// mined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Replaced(Vec<ByteArray<32>>);

impl Replaced {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn push(&mut self, hash: Word) {
        self.0.push(hash.into());
    }

    /// The latest hash and all earlier ones, newest first.
    pub fn with(&self, latest: &Word) -> Vec<String> {
        std::iter::once(hex0x(latest)).chain(self.0.iter().rev().map(|hash| hex0x(&hash[..]))).collect()
    }
}

impl Transaction {
    pub fn sign(&self, key: &PrivateKey) -> SignedTransaction {
        let unsigned = self.encode(None);
        let signature = key.sign(&keccak256(&unsigned));
        let raw = self.encode(Some((signature.y_parity(), signature.r(), signature.s())));
        SignedTransaction { hash: keccak256(&raw), raw }
    }

    fn encode(&self, signature: Option<(u8, Word, Word)>) -> Vec<u8> {
        let mut items = Vec::new();
        rlp_number(u128::from(self.chain_id), &mut items);
        rlp_number(u128::from(self.nonce), &mut items);
        rlp_number(self.max_priority_fee_per_gas, &mut items);
        rlp_number(self.max_fee_per_gas, &mut items);
        rlp_number(u128::from(self.gas_limit), &mut items);
        rlp_bytes(self.to.bytes(), &mut items);
        rlp_number(0, &mut items); // value
        rlp_bytes(&self.data, &mut items);
        rlp_header(0xc0, 0, &mut items); // access list
        if let Some((y_parity, r, s)) = signature {
            rlp_number(u128::from(y_parity), &mut items);
            rlp_bytes(without_leading_zeros(&r), &mut items);
            rlp_bytes(without_leading_zeros(&s), &mut items);
        }
        let mut encoded = vec![0x02];
        rlp_header(0xc0, items.len(), &mut encoded);
        encoded.extend_from_slice(&items);
        encoded
    }
}

fn rlp_number(number: u128, out: &mut Vec<u8>) {
    rlp_bytes(without_leading_zeros(&number.to_be_bytes()), out);
}

fn rlp_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    if let [byte @ 0..=0x7f] = bytes {
        out.push(*byte);
    } else {
        rlp_header(0x80, bytes.len(), out);
        out.extend_from_slice(bytes);
    }
}

/// The header of a string (`base` 0x80) or a list (0xc0) of `length` bytes.
fn rlp_header(base: u8, length: usize, out: &mut Vec<u8>) {
    if length < 56 {
        out.push(base + length as u8);
    } else {
        let length = (length as u64).to_be_bytes();
        let length = without_leading_zeros(&length);
        out.push(base + 55 + length.len() as u8);
        out.extend_from_slice(length);
    }
}

fn without_leading_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rlp_of_the_edge_lengths() {
        let encode = |bytes: &[u8]| {
            let mut out = Vec::new();
            rlp_bytes(bytes, &mut out);
            out
        };
        assert_eq!(encode(&[]), [0x80]);
        assert_eq!(encode(&[0x7f]), [0x7f]);
        assert_eq!(encode(&[0x80]), [0x81, 0x80]);
        assert_eq!(encode(&[1; 55])[0], 0x80 + 55);
        assert_eq!(encode(&[1; 56])[..2], [0xb8, 56]);
        assert_eq!(encode(&[1; 300])[..3], [0xb9, 0x01, 0x2c]);
    }

    #[test]
    fn the_hash_is_the_hash_of_the_raw_bytes() {
        let key = PrivateKey::parse("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80").unwrap();
        let transaction = Transaction {
            chain_id: 84532,
            nonce: 0,
            max_priority_fee_per_gas: 1,
            max_fee_per_gas: 2_000_000_000,
            gas_limit: 120_000,
            to: Address::from_bytes([0x11; 20]),
            data: vec![0xe3, 0xee, 0x16, 0x0e],
        };
        let signed = transaction.sign(&key);
        assert_eq!(signed.hash, keccak256(&signed.raw));
        assert!(hex0x(&signed.raw).starts_with("0x02f8"));
        assert_eq!(signed, transaction.sign(&key), "signing is deterministic");
    }
}
