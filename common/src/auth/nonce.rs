//! A proof's nonce is used once: the first to write it down wins, in whichever process.

use serde::{Deserialize, Serialize};

use super::proof::{FRESH_SECS, SKEW_SECS};
use super::{Proof, ProofError};
use crate::digest;
use crate::evm::hex0x;
use crate::store::{Db, Key, StoreError, Write, WriteError};

#[derive(Serialize, Deserialize)]
struct UsedNonce {
    /// Who wrote it: tells our own write, retried after a lost answer, from another's.
    by: String,
    /// Unix seconds. After this the proof is refused for its age, so the row may go.
    expires: i64,
}

/// Burns the nonce, or says that it was burnt before.
pub async fn burn(db: &Db, proof: &Proof) -> Result<Result<(), ProofError>, StoreError> {
    let key = Key::new(format!("NONCE#{}#{}", proof.agent.lower(), hex0x(&proof.nonce)), "NONCE");
    let by = hex0x(&digest::random::<8>());
    let used = UsedNonce { by: by.clone(), expires: proof.issued_at.secs() + FRESH_SECS + SKEW_SECS };
    match db.write(Write::put(&db.tables.agents, key, &used)?.only_if_new()).await {
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
