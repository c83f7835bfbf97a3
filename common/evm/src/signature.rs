//! ECDSA over secp256k1: recovers the signer of a digest, and signs with our own keys.

use std::fmt;
use std::sync::{Arc, OnceLock};

use k256::NonZeroScalar;
use k256::ecdsa::{RecoveryId, Signature, SigningKey, VerifyingKey};

use super::{Address, Word, keccak256};

/// Why a signature is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureError {
    /// Not 65 bytes (r, s, v).
    Length,
    /// v is not 0, 1, 27 or 28.
    V,
    /// s is in the upper half of the curve order: the mirrored form of another signature.
    HighS,
    /// r or s is zero or not below the curve order, or no key can be recovered.
    Invalid,
}

/// A well-formed recoverable signature with a low s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoverableSignature {
    signature: Signature,
    recovery_id: RecoveryId,
}

impl RecoverableSignature {
    /// Reads 65 bytes: r, s, and v (0, 1, 27 or 28). The compact 64-byte form is refused: about half of all signatures
    /// would pass as compact when their last byte is cut off.
    pub fn parse(bytes: &[u8]) -> Result<RecoverableSignature, SignatureError> {
        let bytes: &[u8; 65] = bytes.try_into().map_err(|_| SignatureError::Length)?;
        let y_is_odd = match bytes[64] {
            0 | 27 => false,
            1 | 28 => true,
            _ => return Err(SignatureError::V),
        };
        let r_s = &bytes[..64];
        let signature = Signature::from_slice(r_s).map_err(|_| SignatureError::Invalid)?;
        if signature.normalize_s() != signature {
            return Err(SignatureError::HighS);
        }
        Ok(RecoverableSignature { signature, recovery_id: RecoveryId::new(y_is_odd, false) })
    }

    /// The address whose key signed `digest`.
    pub fn recover(&self, digest: &Word) -> Result<Address, SignatureError> {
        VerifyingKey::recover_from_prehash(digest, &self.signature, self.recovery_id)
            .map(|key| address_of(&key))
            .map_err(|_| SignatureError::Invalid)
    }

    pub fn r(&self) -> Word {
        self.signature.r().to_bytes().into()
    }

    pub fn s(&self) -> Word {
        self.signature.s().to_bytes().into()
    }

    /// 0 or 1.
    pub fn y_parity(&self) -> u8 {
        u8::from(self.recovery_id.is_y_odd())
    }

    /// r, s and v (27 or 28), as token contracts expect it.
    pub fn to_bytes(&self) -> [u8; 65] {
        let mut bytes = [0; 65];
        bytes[..32].copy_from_slice(&self.r());
        bytes[32..64].copy_from_slice(&self.s());
        bytes[64] = 27 + self.y_parity();
        bytes
    }
}

fn address_of(key: &VerifyingKey) -> Address {
    let point = key.to_sec1_point(false);
    let hash = keccak256(&point.as_bytes()[1..]);
    let mut bytes = [0; 20];
    bytes.copy_from_slice(&hash[12..]);
    Address::from_bytes(bytes)
}

/// One of our private keys (relayer, treasury), or a test payer's. Never printed.
#[derive(Clone)]
pub struct PrivateKey {
    secret: NonZeroScalar,
    /// Created at the first use: computing the public key would be the most expensive part of a function's start.
    key: Arc<OnceLock<(SigningKey, Address)>>,
}

impl PrivateKey {
    /// From 32 bytes; `None` if they are zero or not below the curve order.
    pub fn from_bytes(bytes: &Word) -> Option<PrivateKey> {
        let secret = NonZeroScalar::try_from(bytes.as_slice()).ok()?;
        Some(PrivateKey { secret, key: Arc::default() })
    }

    fn key(&self) -> &(SigningKey, Address) {
        self.key.get_or_init(|| {
            let key = SigningKey::from(self.secret);
            let address = address_of(key.verifying_key());
            (key, address)
        })
    }

    /// From 64 hex digits, with or without `0x`.
    pub fn parse(text: &str) -> Option<PrivateKey> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        PrivateKey::from_bytes(&const_hex::decode_to_array(digits).ok()?)
    }

    pub fn address(&self) -> Address {
        self.key().1
    }

    pub fn sign(&self, digest: &Word) -> RecoverableSignature {
        let (signature, recovery_id) = self.key().0.sign_prehash_recoverable(digest);
        RecoverableSignature { signature, recovery_id }
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(of {})", self.address())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> PrivateKey {
        PrivateKey::parse("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80").unwrap()
    }

    #[test]
    fn the_signer_is_recovered_from_every_accepted_form() {
        let key = key();
        assert_eq!(key.address().to_string(), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
        let digest = keccak256(b"a digest");
        let bytes = key.sign(&digest).to_bytes();
        let mut zero_based = bytes;
        zero_based[64] -= 27;
        for form in [&bytes[..], &zero_based[..]] {
            assert_eq!(RecoverableSignature::parse(form).unwrap().recover(&digest), Ok(key.address()));
        }
    }

    #[test]
    fn mirrored_truncated_and_empty_signatures_are_refused() {
        let bytes = key().sign(&keccak256(b"a digest")).to_bytes();
        assert_eq!(RecoverableSignature::parse(&bytes[..64]), Err(SignatureError::Length));
        assert_eq!(RecoverableSignature::parse(&[]), Err(SignatureError::Length));
        assert_eq!(RecoverableSignature::parse(&[0; 65]), Err(SignatureError::Invalid));
        let mut other_v = bytes;
        other_v[64] = 2;
        assert_eq!(RecoverableSignature::parse(&other_v), Err(SignatureError::V));

        // n - s with v flipped: the mirrored signature.
        let order =
            const_hex::decode_to_array::<_, 32>("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141")
                .unwrap();
        let mut mirrored = bytes;
        let mut borrow = 0i16;
        for index in (0..32).rev() {
            let difference = i16::from(order[index]) - i16::from(bytes[32 + index]) - borrow;
            borrow = i16::from(difference < 0);
            mirrored[32 + index] = (difference.rem_euclid(256)) as u8;
        }
        mirrored[64] = if bytes[64] == 27 { 28 } else { 27 };
        assert_eq!(RecoverableSignature::parse(&mirrored), Err(SignatureError::HighS));
    }

    #[test]
    fn a_private_key_is_never_printed() {
        assert!(!format!("{:?}", key()).contains("ac0974"));
    }
}
