//! Secrets that webhooks to sellers are signed with: derived from the service's own secret and kept nowhere, so that no
//! table holds one. A new address gets a new secret, because the number of the change goes into it.
//!
//! These go out by themselves and not through [`ledger::webhooks`], because they promise something else: they remind of a job
//! that waits, ever more rarely, also after an answer of success, and stop when the job is claimed. The job's own due
//! time says when, and its state whether; an outbox beside it would go on posting what is no longer so.

use base::clock::Timestamp;
use base::digest::{self, sha256_parts};
use base::encoding::{base64_any, base64_standard};
use ledger::webhooks::secret::standard;
use ring::hmac;

/// The key that secrets are derived from; `quotes` is [`gate::secrets::ServiceKeys::quotes`], which every function that
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
    let signature = standard(&key, id, now.secs(), body);
    [
        ("content-type", "application/json".to_owned()),
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", at),
        ("webhook-signature", signature),
    ]
}
