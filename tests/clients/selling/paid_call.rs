//! What docs/SELLING.md shows for Rust. A test compares the two.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// `keys` is what `https://tools.example.com/.well-known/jwks.json` answers. Read it again if a token's key is not in it.
pub fn paid_call(keys: &JwkSet, token: &str, method: &str, url: &str, body: &[u8]) -> Option<Value> {
    let key = keys.find(&decode_header(token).ok()?.kid?)?;
    let rules = Validation::new(Algorithm::EdDSA);
    let claims = decode::<Value>(token, &DecodingKey::from_jwk(key).ok()?, &rules).ok()?.claims;
    let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(body));
    (claims["htm"] == method && claims["htu"] == url && claims["body_sha256"] == digest).then_some(claims)
}
