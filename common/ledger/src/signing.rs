//! Ed25519 signatures over receipts, and the public keys that check them.

use std::fmt;
use std::sync::Arc;

use base::digest;
use base::encoding::base64_url;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Signs receipts.
#[derive(Clone)]
pub struct ReceiptSigner {
    key: Arc<Ed25519KeyPair>,
    key_id: String,
}

/// A public key for checking receipts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicKey {
    pub key_id: String,
    /// base64url of the 32 bytes.
    pub x: String,
}

impl ReceiptSigner {
    pub fn from_seed(seed: &[u8; 32]) -> Result<ReceiptSigner, &'static str> {
        let key = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| "not an Ed25519 seed")?;
        let key_id = const_hex::encode(&digest::sha256(key.public_key().as_ref())[..8]);
        Ok(ReceiptSigner { key: Arc::new(key), key_id })
    }

    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// base64url of the signature.
    pub fn sign(&self, bytes: &[u8]) -> String {
        base64_url(self.key.sign(bytes).as_ref())
    }

    pub fn public(&self) -> PublicKey {
        PublicKey { key_id: self.key_id.clone(), x: base64_url(self.key.public_key().as_ref()) }
    }
}

impl fmt::Debug for ReceiptSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceiptSigner(key {})", self.key_id)
    }
}

impl PublicKey {
    /// The key as a member of a JWK set (RFC 8037).
    pub fn jwk(&self) -> Value {
        json!({"kty": "OKP", "crv": "Ed25519", "x": self.x, "kid": self.key_id, "alg": "EdDSA", "use": "sig"})
    }
}

const KEYS_PARTITION: &str = "KEYS#receipts";

/// Publishes a signer's public key. Functions that serve keys have no access to secrets.
pub async fn publish(db: &Db, key: &PublicKey) -> Result<(), StoreError> {
    let at = Key::new(KEYS_PARTITION, key.key_id.clone());
    if db.get::<PublicKey>(&db.tables.ledger, at.clone()).await?.as_ref() == Some(key) {
        return Ok(());
    }
    db.write(Write::put(&db.tables.ledger, at, key)?).await?;
    Ok(())
}

/// Every key that a receipt may be signed with.
pub async fn published(db: &Db) -> Result<Vec<PublicKey>, StoreError> {
    db.query(Query::new(&db.tables.ledger, "#pk = :pk", 100).bind("pk", KEYS_PARTITION)?).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ED25519, UnparsedPublicKey};

    #[test]
    fn signatures_check_with_the_published_key() {
        let signer = ReceiptSigner::from_seed(&[3; 32]).unwrap();
        let signature = base::encoding::base64_any(&signer.sign(b"a receipt")).unwrap();
        let key = base::encoding::base64_any(&signer.public().x).unwrap();
        let key = UnparsedPublicKey::new(&ED25519, key);
        assert!(key.verify(b"a receipt", &signature).is_ok());
        assert!(key.verify(b"another", &signature).is_err());
    }
}
