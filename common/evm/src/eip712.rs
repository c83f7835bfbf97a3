//! Typed-data hashing (EIP-712): the digests wallets sign for payments and for agent proofs.

use super::{Address, Word, keccak256};

/// The digest that is signed: `keccak256("\x19\x01" ‖ domain separator ‖ struct hash)`.
pub fn digest(domain_separator: &Word, struct_hash: &Word) -> Word {
    let mut bytes = [0; 66];
    bytes[0] = 0x19;
    bytes[1] = 0x01;
    bytes[2..34].copy_from_slice(domain_separator);
    bytes[34..].copy_from_slice(struct_hash);
    keccak256(&bytes)
}

/// The hash of a struct: its type hash followed by its encoded members.
pub fn hash_struct<const N: usize>(members: [Word; N]) -> Word {
    keccak256(members.as_flattened())
}

/// Domain of a token contract: name, version, chain id and verifying contract.
pub fn token_domain(name: &str, version: &str, chain_id: u64, contract: Address) -> Word {
    hash_struct([
        keccak256(b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
        keccak256(name.as_bytes()),
        keccak256(version.as_bytes()),
        super::word_from_u64(chain_id),
        contract.word(),
    ])
}

/// Domain with a name and a version only, as the agent proof uses it.
pub fn named_domain(name: &str, version: &str) -> Word {
    hash_struct([
        keccak256(b"EIP712Domain(string name,string version)"),
        keccak256(name.as_bytes()),
        keccak256(version.as_bytes()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex0x;

    #[test]
    fn the_domain_of_usdc_on_base_mainnet() {
        // DOMAIN_SEPARATOR() of the deployed contract.
        let contract = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913".parse().unwrap();
        assert_eq!(
            hex0x(&token_domain("USD Coin", "2", 8453, contract)),
            "0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f"
        );
    }
}
