//! The message a payer signs: an EIP-3009 `TransferWithAuthorization`.

use serde::{Deserialize, Serialize};

use super::signature::RecoverableSignature;
use super::{Address, Word, compact, eip712, keccak256, word_to_u64};

/// The signed message and its signature. The signature covers payer, payee, amount and time window, but not what is bought;
/// the claim binds it to one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authorization {
    #[serde(with = "compact::address")]
    pub from: Address,
    #[serde(with = "compact::address")]
    pub to: Address,
    #[serde(with = "compact::word")]
    pub value: Word,
    #[serde(with = "compact::word")]
    pub valid_after: Word,
    #[serde(with = "compact::word")]
    pub valid_before: Word,
    #[serde(with = "compact::word")]
    pub nonce: Word,
    /// The 65 bytes of a key's signature, or any bytes that a contract wallet accepts.
    #[serde(with = "serde_bytes")]
    pub signature: Vec<u8>,
}

impl Authorization {
    /// The amount in the token's atomic unit; `None` if it does not fit in 64 bits (more than anybody owns).
    pub fn amount(&self) -> Option<u64> {
        word_to_u64(&self.value)
    }

    /// Unix seconds from which the token accepts it. Values above 64 bits mean never.
    pub fn valid_after_secs(&self) -> u64 {
        word_to_u64(&self.valid_after).unwrap_or(u64::MAX)
    }

    /// Unix seconds from which the token refuses it. Values above 64 bits mean never.
    pub fn valid_before_secs(&self) -> u64 {
        word_to_u64(&self.valid_before).unwrap_or(u64::MAX)
    }

    /// The digest that was signed, for a token with this EIP-712 domain hash.
    pub fn digest(&self, domain: &Word) -> Word {
        let message = eip712::hash_struct([
            type_hash(),
            self.from.word(),
            self.to.word(),
            self.value,
            self.valid_after,
            self.valid_before,
            self.nonce,
        ]);
        eip712::digest(domain, &message)
    }

    /// Whether the payer's key made the signature. A contract wallet has no key: for it the contract must be asked
    /// (EIP-1271).
    pub fn signed_by_key(&self, domain: &Word) -> bool {
        RecoverableSignature::parse(&self.signature).and_then(|signature| signature.recover(&self.digest(domain)))
            == Ok(self.from)
    }

    /// Whether this stands for a payment of zero: no signature and an all-zero nonce; or zero signed, as x402 clients do that
    /// know no other way to take an offer of zero.
    pub fn is_zero_cost(&self) -> bool {
        (self.signature.is_empty() && self.nonce == [0; 32]) || self.value == [0; 32]
    }
}

fn type_hash() -> Word {
    keccak256(b"TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex0x;

    #[test]
    fn the_type_hash_of_eip_3009() {
        assert_eq!(hex0x(&type_hash()), "0x7c7c6cdb67a18743f49ec6fa9b35f50d52ed05cbed4cc592e13b44501c1a2267");
    }
}
