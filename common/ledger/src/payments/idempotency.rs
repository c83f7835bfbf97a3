//! Idempotency keys: the `Idempotency-Key` header, and the `payment-identifier` of an x402 payment.
//!
//! A key belongs to one purchase of one agent at one tool. It is written in the transaction that creates the job, so only
//! one of many concurrent calls with one key buys, and the others get its answer. If the purchase fails (its payment
//! is refused), the key is free again.

use base::clock::Timestamp;
use base::digest;
use base::ids::{AgentId, RequestId};
use evm::Word;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

/// A key is kept longer than any job's result. A very late retry is told that the result is gone; it does not buy again.
const KEEP_SECS: i64 = 60 * 24 * 3600;

/// The purchase that a key was used for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    pub request_id: RequestId,
    /// The purchase: SHA-256 of tool and canonical body.
    #[serde(with = "serde_bytes")]
    pub purchase: Word,
    /// Unix seconds after which the row may be deleted.
    pub expires: i64,
}

/// A key with its scope.
#[derive(Clone, Copy, Debug)]
pub struct IdempotencyKey<'a> {
    pub agent: AgentId,
    pub tool: &'a str,
    pub name: &'a str,
}

impl IdempotencyKey<'_> {
    fn key(self) -> Key {
        let name = const_hex::encode(digest::sha256_parts(&[self.tool.as_bytes(), self.name.as_bytes()]));
        Key::new(format!("AGENT#{}", self.agent), format!("IDEMPOTENCY#{name}"))
    }
}

/// The record of a key, if it was used.
pub async fn load(db: &Db, name: IdempotencyKey<'_>) -> Result<Option<KeyRecord>, StoreError> {
    db.get_latest(&db.tables.ledger, name.key()).await
}

/// The write that takes a key. Refused if it is taken, except by the failed purchase `dead`.
pub fn take(
    db: &Db,
    name: IdempotencyKey<'_>,
    request_id: RequestId,
    purchase: Word,
    dead: Option<RequestId>,
    now: Timestamp,
) -> Result<Write, StoreError> {
    let named = KeyRecord { request_id, purchase, expires: now.secs() + KEEP_SECS };
    let write = Write::put(&db.tables.ledger, name.key(), &named)?;
    match dead {
        None => Ok(write.only_if_new()),
        Some(dead) => write.only_if("attribute_not_exists(#pk) OR #request_id = :dead").bind("dead", dead),
    }
}
