//! Idempotency keys of session requests. They work as everywhere ([`gate::idempotency`]), but each belongs to a
//! platform and a path. A retry after a crash is safe: the session's id is derived from the key, and only one payment
//! can take a session.

use base::digest::sha256_parts;
use gate::idempotency::Taken;
use platform::store::Key;
use uuid::Uuid;

/// SHA-256 of platform, path and idempotency key, in hex.
pub fn digest(platform: Uuid, path: &str, name: &str) -> String {
    const_hex::encode(sha256_parts(&[platform.as_bytes(), path.as_bytes(), name.as_bytes()]))
}

/// The row that holds the answer.
pub fn key(digest: &str) -> Key {
    Key::new(format!("CHECKOUTNAME#{digest}"), "ANSWER")
}

/// The id of the session created under this idempotency key.
pub fn id(digest: &str, taken: &Taken) -> Uuid {
    base::ids::uuid_of(&[b"checkout", digest.as_bytes(), &taken.first.millis().to_be_bytes()])
}
