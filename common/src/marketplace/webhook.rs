//! Secrets that webhooks to sellers are signed with: derived from the service's own secret and kept nowhere, so that no
//! table holds one. A new address gets a new secret, because the number of the change goes into it.

use ring::hmac;

use crate::clock::Timestamp;
use crate::digest::{self, sha256_parts};
use crate::encoding::{base64_any, base64_standard};

/// The key that secrets are derived from; `quotes` is [`crate::secrets::ServiceKeys::quotes`], which every function that
/// sells or works has.
pub fn key(quotes: &hmac::Key) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &digest::hmac(quotes, b"webhooks"))
}

/// The secret of a service's webhook, in the form of Standard Webhooks: `whsec_` and base64 of 32 bytes. `number` counts
/// the addresses the service had (`Terms::webhook_number`).
pub fn secret(key: &hmac::Key, soul: &str, service: &str, number: u32) -> String {
    let named = sha256_parts(&[soul.as_bytes(), service.as_bytes(), &number.to_be_bytes()]);
    format!("whsec_{}", base64_standard(&digest::hmac(key, &named)))
}

/// The headers of a signed delivery (Standard Webhooks): `id` names what it is about, so that a repeat is known as one.
pub fn signed(secret: &str, id: &str, body: &str, now: Timestamp) -> [(&'static str, String); 4] {
    let key = secret.strip_prefix("whsec_").and_then(base64_any).unwrap_or_default();
    let at = now.secs().to_string();
    let mac = digest::hmac(&hmac::Key::new(hmac::HMAC_SHA256, &key), format!("{id}.{at}.{body}").as_bytes());
    [
        ("content-type", "application/json".to_owned()),
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", at),
        ("webhook-signature", format!("v1,{}", base64_standard(&mac))),
    ]
}
