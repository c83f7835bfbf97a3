//! Signs EIP-3009 authorizations independently of the contract under test.

use devchain::{
    Account, DevChain,
    contracts::{Arg, TEST_DOLLAR, hex, unhex},
};
use k256::ecdsa::{RecoveryId, Signature, SigningKey, signature::hazmat::PrehashSigner};
use sha3::{Digest, Keccak256};

pub const SPLIT_TRANSFER: &str =
    "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)";
pub const BYTES_TRANSFER: &str = "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)";
pub const SPLIT_RECEIVE: &str =
    "receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)";
pub const BYTES_RECEIVE: &str = "receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)";
pub const SPLIT_CANCEL: &str = "cancelAuthorization(address,bytes32,uint8,bytes32,bytes32)";
pub const BYTES_CANCEL: &str = "cancelAuthorization(address,bytes32,bytes)";

const TRANSFER_TYPE: &str = "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)";
const RECEIVE_TYPE: &str = "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)";

#[derive(Clone, Debug)]
pub struct Authorization {
    pub from: String,
    pub to: String,
    pub value: u128,
    pub valid_after: u128,
    pub valid_before: u128,
    pub nonce: [u8; 32],
}

impl Authorization {
    pub fn new(from: &str, to: &str, value: u128, nonce: u8) -> Self {
        let (from, to) = (from.to_owned(), to.to_owned());
        Self { from, to, value, valid_after: 0, valid_before: u64::MAX.into(), nonce: [nonce; 32] }
    }

    /// The digest that a transfer's signature covers.
    pub fn digest(&self, chain: &DevChain) -> [u8; 32] {
        typed_data(chain, &self.message(TRANSFER_TYPE))
    }

    pub fn receive_digest(&self, chain: &DevChain) -> [u8; 32] {
        typed_data(chain, &self.message(RECEIVE_TYPE))
    }

    pub fn cancel_digest(&self, chain: &DevChain) -> [u8; 32] {
        let kind = keccak(b"CancelAuthorization(address authorizer,bytes32 nonce)");
        typed_data(chain, &keccak(&[kind, word(&Arg::address(&self.from)), self.nonce].concat()))
    }

    fn message(&self, kind: &str) -> [u8; 32] {
        keccak(&[&keccak(kind.as_bytes())[..], &self.args().iter().map(word).collect::<Vec<_>>().concat()].concat())
    }

    fn args(&self) -> Vec<Arg> {
        vec![
            Arg::address(&self.from),
            Arg::address(&self.to),
            Arg::uint(self.value),
            Arg::uint(self.valid_after),
            Arg::uint(self.valid_before),
            Arg::Word(self.nonce),
        ]
    }

    /// The call of one of the `...(…, bytes signature)` functions.
    pub fn bytes_call(&self, function: &str, signature: &[u8]) -> String {
        TEST_DOLLAR.call(function, &[self.args(), vec![Arg::Bytes(signature.to_vec())]].concat())
    }

    /// The call of one of the `...(…, v, r, s)` functions.
    pub fn split_call(&self, function: &str, signature: &[u8; 65]) -> String {
        TEST_DOLLAR.call(function, &[self.args(), split(signature)].concat())
    }
}

pub fn split(signature: &[u8; 65]) -> Vec<Arg> {
    let part = |from: usize| Arg::Word(signature[from..from + 32].try_into().unwrap());
    vec![Arg::uint(signature[64].into()), part(0), part(32)]
}

/// r, s, v, with v 27 or 28 and s in the lower half.
pub fn sign(key: &Account, digest: &[u8; 32]) -> [u8; 65] {
    let key = SigningKey::from_slice(&unhex(&key.private_key[2..]).unwrap()).unwrap();
    let (signature, recovery): (Signature, RecoveryId) = key.sign_prehash(digest).unwrap();
    let mut bytes = [0; 65];
    bytes[..64].copy_from_slice(&signature.to_bytes());
    bytes[64] = 27 + recovery.to_byte();
    bytes
}

/// The other signature of the same key over the same digest: it recovers to the same address.
pub fn mirror(signature: &[u8; 65]) -> [u8; 65] {
    let parsed = Signature::from_slice(&signature[..64]).unwrap();
    let (r, s) = parsed.split_scalars();
    let mirrored = Signature::from_scalars(r, -s).unwrap();
    let mut bytes = [0; 65];
    bytes[..64].copy_from_slice(&mirrored.to_bytes());
    bytes[64] = if signature[64] == 27 { 28 } else { 27 };
    bytes
}

pub fn domain_separator(chain: &DevChain) -> [u8; 32] {
    keccak(
        &[
            keccak(b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
            keccak(b"USDC"),
            keccak(b"2"),
            word(&Arg::uint(chain.chain_id().into())),
            word(&Arg::address(chain.token())),
        ]
        .concat(),
    )
}

pub fn keccak(bytes: &[u8]) -> [u8; 32] {
    Keccak256::digest(bytes).into()
}

/// A topic or data field as the node prints it.
pub fn topic(arg: &Arg) -> String {
    format!("0x{}", hex(&word(arg)))
}

pub fn event(signature: &str) -> String {
    format!("0x{}", hex(&keccak(signature.as_bytes())))
}

fn typed_data(chain: &DevChain, message: &[u8; 32]) -> [u8; 32] {
    keccak(&[&[0x19, 0x01], &domain_separator(chain)[..], &message[..]].concat())
}

fn word(arg: &Arg) -> [u8; 32] {
    match arg {
        Arg::Word(word) => *word,
        other => panic!("{other:?} is not one word"),
    }
}
