//! The names of requests about sessions: as everywhere ([`gate::idempotency`]), but each belongs to a platform and a path. What
//! is done twice by a crash is done once all the same, because a session's id follows from its name and a session is taken
//! by one payment only.

use base::digest::sha256_parts;
use gate::idempotency::Taken;
use platform::store::Key;
use uuid::Uuid;

/// SHA-256 of platform, path and name, in hex: what a request is remembered by.
pub fn digest(platform: Uuid, path: &str, name: &str) -> String {
    const_hex::encode(sha256_parts(&[platform.as_bytes(), path.as_bytes(), name.as_bytes()]))
}

/// Where its answer is kept.
pub fn key(digest: &str) -> Key {
    Key::new(format!("CHECKOUTNAME#{digest}"), "ANSWER")
}

/// The id of what is made under it.
pub fn id(digest: &str, taken: &Taken) -> Uuid {
    base::ids::uuid_of(&[b"checkout", digest.as_bytes(), &taken.first.millis().to_be_bytes()])
}
