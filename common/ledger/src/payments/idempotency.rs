//! The caller's own names for its calls: `Idempotency-Key`, and the `payment-identifier` of an x402 payment.
//!
//! A name belongs to one purchase of one agent at one tool. It is written in the transaction that makes the job, so
//! that of any number of calls under one name one buys; all others are led to its answer. A name whose purchase came to
//! nothing (its payment was refused) is free again.

use base::clock::Timestamp;
use base::digest;
use base::ids::{AgentId, RequestId};
use evm::Word;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

/// A name is remembered for longer than any job can be read, so that a call that is sent again late is told that its result is
/// no longer kept, and does not buy anew.
const KEEP_SECS: i64 = 60 * 24 * 3600;

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    pub request_id: RequestId,
    /// What was bought: SHA-256 of tool and canonical body.
    #[serde(with = "serde_bytes")]
    pub purchase: Word,
    /// Unix seconds after which the row may go.
    pub expires: i64,
}

/// A name, in its scope.
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

/// What the name stands for, if it was used.
pub async fn load(db: &Db, name: IdempotencyKey<'_>) -> Result<Option<KeyRecord>, StoreError> {
    db.get_latest(&db.tables.ledger, name.key()).await
}

/// The write that takes a name. Refused if it is taken; `dead` is a purchase under it that came to nothing.
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
