//! Secrets that sign webhooks to sellers. They are derived from the deployment's own secret and not stored. A new URL
//! gets a new secret, because the URL's number is part of the derivation.
//!
//! These webhooks do not go through [`ledger::webhooks`], because they promise something else. They remind the worker
//! of a waiting job, at growing intervals, even after a successful delivery, and stop when the job is claimed. The
//! job's own due time and state control them. An outbox would go on sending after the state has changed.

use base::clock::Timestamp;
use base::digest::{self, sha256_parts};
use base::encoding::{base64_any, base64_standard};
use ledger::webhooks::secret::standard;
use ring::hmac;

/// The key from which secrets are derived. `quotes` is [`gate::secrets::ServiceKeys::quotes`], which every function
/// that sells or works has.
pub fn key(quotes: &hmac::Key) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &digest::hmac(quotes, b"webhooks"))
}

/// The secret of a service's webhook in the form of Standard Webhooks: `whsec_` and base64 of 32 bytes. `number` is the
/// number of the service's webhook URL (`Terms::webhook_number`).
pub fn secret(key: &hmac::Key, soul: &str, service: &str, number: u32) -> String {
    let named = sha256_parts(&[soul.as_bytes(), service.as_bytes(), &number.to_be_bytes()]);
    format!("whsec_{}", base64_standard(&digest::hmac(key, &named)))
}

/// The headers of a signed delivery (Standard Webhooks). `id` names the job, so that a repeat is recognised.
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
