//! Makes a proof single-use: the first request to store its nonce wins, in any process. One exception: a paid call may send
//! the same proof with the request that asks for the price and with the one that pays, because standard payment clients
//! repeat their headers. The one that pays may be sent again with the same payment: its answer may have been lost.

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
    /// SHA-256 of the paying request that it came with, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paid: Option<String>,
    /// Unix seconds. The row may be deleted then, because the proof itself has expired.
    expires: i64,
}

/// The use of a proof. `call` is the SHA-256 of the call.
#[derive(Clone, Copy, Debug)]
pub enum Use {
    Once,
    /// To get the price of a call.
    Ask {
        call: [u8; 32],
    },
    /// To pay for a call. `request` is the SHA-256 of the call together with what pays it.
    Pay {
        call: [u8; 32],
        request: [u8; 32],
    },
}

/// Marks the nonce as used; `AlreadyUsed` if it was used before.
pub async fn burn(db: &Db, proof: &Proof, used_for: Use) -> Result<Result<(), ProofError>, StoreError> {
    let key = Key::new(format!("NONCE#{}#{}", proof.agent.lower(), hex0x(&proof.nonce)), "NONCE");
    let by = hex0x(&digest::random::<8>());
    let (asked, paid) = match used_for {
        Use::Once => (None, None),
        Use::Ask { call } => (Some(hex0x(&call)), None),
        Use::Pay { request, .. } => (None, Some(hex0x(&request))),
    };
    let expires = proof.issued_at.secs() + FRESH_SECS + SKEW_SECS;
    let used = UsedNonce { by: by.clone(), asked, paid: paid.clone(), expires };
    let write = Write::put(&db.tables.agents, key, &used)?;
    let write = match used_for {
        Use::Once | Use::Ask { .. } => write.only_if_new(),
        Use::Pay { call, .. } => {
            write.only_if("attribute_not_exists(#pk) OR #asked = :call").bind("call", hex0x(&call))?
        }
    };
    match db.write(write).await {
        Ok(_) => Ok(Ok(())),
        Err(WriteError::Refused(actions)) => {
            let old = actions.into_iter().flatten().next().and_then(|refused| refused.old);
            let old = old.and_then(|item| crate::store::db::parse::<UsedNonce>(item).ok());
            let is_same = old.is_some_and(|used| used.by == by || paid.is_some() && used.paid == paid);
            Ok(if is_same { Ok(()) } else { Err(ProofError::AlreadyUsed) })
        }
        Err(WriteError::Failed(error)) => Err(error),
    }
}
