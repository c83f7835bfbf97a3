//! A proof's nonce is used once: the first to write it down wins, in whichever process. Only the two requests of one paid call,
//! the one that asks the price and the one that pays it, may come with the same proof (contract §1.6): stock payment clients
//! send the same headers with both.

use base::digest;
use evm::hex0x;
use serde::{Deserialize, Serialize};

use super::proof::{FRESH_SECS, SKEW_SECS};
use super::{Proof, ProofError};
use crate::store::{Db, Key, StoreError, Write, WriteError};

#[derive(Serialize, Deserialize)]
struct UsedNonce {
    /// Who wrote it: tells our own write, retried after a lost answer, from another's.
    by: String,
    /// SHA-256 of the call whose price was asked, in hex: it may be paid with the same proof.
    asked: Option<String>,
    /// Unix seconds. After this the proof is refused for its age, so the row may go.
    expires: i64,
}

/// What a proof is used for.
#[derive(Clone, Copy, Debug)]
pub enum Use {
    Once,
    /// Asks what a call costs; SHA-256 of the call.
    Ask([u8; 32]),
    /// Pays such a call.
    Pay([u8; 32]),
}

/// Burns the nonce, or says that it was burnt before.
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
