//! Verifies webhook signatures in Stripe's format: `Stripe-Signature: t=…,v1=…`, HMAC-SHA256 over `t.body`. Other vendors
//! use it too.

use base::clock::Timestamp;
use ring::hmac;

/// Maximum age of a signature, and how far the sender's clock may be ahead of ours, in seconds.
const TOLERANCE_SECS: i64 = 300;

/// Whether the body was signed with this key, within the last few minutes.
pub fn is_signed(key: &hmac::Key, header: &str, body: &[u8], now: Timestamp) -> bool {
    let part = |name: &'static str| header.split(',').filter_map(move |part| part.trim().strip_prefix(name));
    let Some(time) = part("t=").next() else { return false };
    let Ok(at) = time.parse::<i64>() else { return false };
    if now.secs().abs_diff(at) > TOLERANCE_SECS.unsigned_abs() {
        return false;
    }
    let message = [time.as_bytes(), b".", body].concat();
    // `verify` compares in constant time. While a secret is being rotated, there are several signatures.
    part("v1=").any(|signature| const_hex::decode(signature).is_ok_and(|tag| hmac::verify(key, &message, &tag).is_ok()))
}
