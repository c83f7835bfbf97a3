//! Makes a proof single-use: the first request to store its nonce wins, in any process. One exception: a paid call may send
//! the same proof twice, with the request that asks for the price and with the one that pays, because standard payment
//! clients repeat their headers.

use base::digest;
use evm::hex0x;
use serde::{Deserialize, Serialize};

use super::proof::{FRESH_SECS, SKEW_SECS};
use super::{Proof, ProofError};
use crate::store::{Db, Key, StoreError, Write, WriteError};

#[derive(Serialize, Deserialize)]
struct UsedNonce {
    /// Random id of the writer: recognises our own write when it is retried after a lost response.
    by: String,
    /// SHA-256, in hex, of the call whose price was requested with this proof. Only that call may be paid with the same
    /// proof.
    asked: Option<String>,
    /// Unix seconds. The row may be deleted then, because the proof itself has expired.
    expires: i64,
}

/// The use of a proof. The bytes are the SHA-256 of the call.
#[derive(Clone, Copy, Debug)]
pub enum Use {
    Once,
    /// To get the price of a call.
    Ask([u8; 32]),
    /// To pay for a call.
    Pay([u8; 32]),
}

/// Marks the nonce as used; `AlreadyUsed` if it was used before.
pub async fn burn(db: &Db, proof: &Proof, used_for: Use) -> Result<Result<(), ProofError>, StoreError> {
    let key = Key::new(format!("NONCE#{}#{}", proof.agent.lower(), hex0x(&proof.nonce)), "NONCE");
    let by = hex0x(&digest::random::<8>());
    let asked = match used_for {
        Use::Ask(call) => Some(hex0x(&call)),
        Use::Once | Use::Pay(_) => None,
    };
    let used = UsedNonce { by: by.clone(), asked, expires: proof.issued_at.secs() + FRESH_SECS + SKEW_SECS };
    let write = Write::put(&db.tables.agents, key, &used)?;
    let write = match used_for {
        Use::Once | Use::Ask(_) => write.only_if_new(),
        Use::Pay(call) => write.only_if("attribute_not_exists(#pk) OR #asked = :call").bind("call", hex0x(&call))?,
    };
    match db.write(write).await {
        Ok(_) => Ok(Ok(())),
        Err(WriteError::Refused(actions)) => {
            let old = actions.into_iter().flatten().next().and_then(|refused| refused.old);
            let ours =
                old.is_some_and(|item| crate::store::db::parse::<UsedNonce>(item).is_ok_and(|used| used.by == by));
            Ok(if ours { Ok(()) } else { Err(ProofError::AlreadyUsed) })
        }
        Err(WriteError::Failed(error)) => Err(error),
    }
}
