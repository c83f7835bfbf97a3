//! SHA-256, HMAC and randomness, over `ring`, and the canonical form of a JSON value.

use std::fmt::Write;

use ring::rand::SecureRandom;
use serde_json::Value;

/// SHA-256 over the parts, each prefixed with its length, so that different lists of parts have different digests.
pub fn sha256_parts(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    to_array(context.finish().as_ref())
}

/// Plain SHA-256.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    to_array(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref())
}

/// HMAC-SHA256.
pub fn hmac(key: &ring::hmac::Key, message: &[u8]) -> [u8; 32] {
    to_array(ring::hmac::sign(key, message).as_ref())
}

/// `N` random bytes from the operating system.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    #[cfg(feature = "seeded-random")]
    if seeded::fill(&mut bytes) {
        return bytes;
    }
    // The system's generator fails only before it is seeded, long before a Lambda function runs. Without randomness it is
    // safer to stop.
    ring::rand::SystemRandom::new().fill(&mut bytes).expect("the operating system has no randomness");
    bytes
}

/// Deterministic randomness for simulations. Not compiled into deployed functions.
#[cfg(feature = "seeded-random")]
pub mod seeded {
    use std::cell::Cell;

    thread_local! {
        static SEED: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// From now on, random bytes of this thread are derived from the seed; `None` makes them random again.
    pub fn seed(seed: Option<u64>) {
        SEED.set(seed);
    }

    pub(super) fn fill(bytes: &mut [u8]) -> bool {
        let Some(seed) = SEED.get() else { return false };
        SEED.set(Some(seed.wrapping_add(1)));
        let mut block = super::sha256(&seed.to_be_bytes());
        for part in bytes.chunks_mut(block.len()) {
            part.copy_from_slice(&block[..part.len()]);
            block = super::sha256(&block);
        }
        true
    }
}

fn to_array(digest: &[u8]) -> [u8; 32] {
    let mut array = [0; 32];
    array.copy_from_slice(digest);
    array
}

/// JSON without spaces, object members sorted by name: equal values give equal text.
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            text.push('{');
            for (index, name) in names.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_scalar(&Value::String(name.clone()), text);
                text.push(':');
                write_canonical(&members[name], text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        scalar => write_scalar(scalar, text),
    }
}

fn write_scalar(value: &Value, text: &mut String) {
    // Writing into a String cannot fail.
    let _ = write!(text, "{value}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn different_parts_have_different_digests() {
        assert_ne!(sha256_parts(&[b"ab", b"c"]), sha256_parts(&[b"a", b"bc"]));
    }

    #[test]
    fn canonical_json_sorts_at_every_depth() {
        let value = json!({"b": [ {"y": 1, "x": "ü\n"} ], "a": null});
        assert_eq!(canonical_json(&value), r#"{"a":null,"b":[{"x":"ü\n","y":1}]}"#);
    }
}
