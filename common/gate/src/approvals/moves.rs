//! The transitions of an approval: decided, cancelled, used up. Each is one conditional write, so it happens once.

use base::clock::Timestamp;
use ledger::signing::ReceiptSigner;
use platform::store::db::parse;
use platform::store::{Db, StoreError, Write, WriteError};

use super::approval::{Approval, Source, Status};
use super::decision::{Decision, DecisionReceipt};
use super::store::{self, approval_key, pending_entry, pending_key};

/// How many times a decision is tried if the owner changes the policy meanwhile.
const ATTEMPTS: usize = 8;

/// The result of a transition: done now, or the state that made it impossible.
pub enum Moved {
    Now(Box<Approval>),
    Before(Box<Approval>),
}

/// Whether the approver is still to decide. A question of a policy ends when the policy names somebody else, or is deleted.
pub async fn is_asked(db: &Db, approval: &Approval, now: Timestamp) -> Result<bool, StoreError> {
    Ok(!depends_on_policy(approval, now) || store::asking(db, approval).await?.is_some())
}

fn depends_on_policy(approval: &Approval, now: Timestamp) -> bool {
    approval.source == Source::Policy && approval.status_at(now) == Status::Pending
}

/// Decides once. A second decision gets the first one back. `None` if the approver is no longer asked.
pub async fn decide(
    db: &Db,
    approval: &Approval,
    decision: Decision,
    note: Option<&str>,
    now: Timestamp,
    signer: &ReceiptSigner,
) -> Result<Option<Moved>, StoreError> {
    let mut decided = approval.clone();
    decided.status = match decision {
        Decision::Approved => Status::Approved,
        Decision::Denied => Status::Denied,
    };
    decided.use_by = approval.use_by_if_approved(now).filter(|_| decision == Decision::Approved);
    decided.decided_at = Some(now);
    decided.decision_note = note.map(str::to_owned);
    decided.decision_receipt = Some(DecisionReceipt::sign(approval, decision, note, now, signer));
    let mut expression = "SET #status = :status, #decided_at = :now, #decision_receipt = :receipt".to_owned();
    if decided.use_by.is_some() {
        expression.push_str(", #use_by = :use_by");
    }
    if note.is_some() {
        expression.push_str(", #decision_note = :note");
    }
    let key = approval_key(approval.agent_id, &approval.approval_id);
    let mut write = Write::update(&db.tables.agents, key, &expression)
        .only_if("#status = :pending AND #expires_at > :now")
        .bind("status", decided.status)?
        .bind("receipt", &decided.decision_receipt)?;
    if let Some(use_by) = decided.use_by {
        write = write.bind("use_by", use_by)?;
    }
    if let Some(note) = note {
        write = write.bind("note", note)?;
    }
    for _ in 0..ATTEMPTS {
        let unchanged = match depends_on_policy(approval, now) {
            true => match store::asking(db, approval).await? {
                Some(policy) => Some(store::unchanged(db, approval.agent_id, &policy)?),
                None => return Ok(None),
            },
            false => None,
        };
        if let Some(moved) = move_on(db, write.clone(), unchanged, decided.clone(), now).await? {
            return Ok(Some(moved));
        }
    }
    Err(StoreError::new("the policy changes faster than a decision can be made"))
}

/// Cancels a pending approval.
pub async fn cancel(db: &Db, approval: &Approval, now: Timestamp) -> Result<Moved, StoreError> {
    let cancelled = Approval { status: Status::Cancelled, ..approval.clone() };
    let key = approval_key(approval.agent_id, &approval.approval_id);
    let write = Write::update(&db.tables.agents, key, "SET #status = :status")
        .only_if("#status = :pending AND #expires_at > :now")
        .bind("status", cancelled.status)?;
    let moved = move_on(db, write, None, cancelled, now).await?;
    moved.ok_or_else(|| StoreError::new("an approval was not cancelled, without a cause"))
}

/// Stores the next state of a pending approval and frees its place in the pending set. `None` if only the condition
/// `unchanged` was in the way.
async fn move_on(
    db: &Db,
    write: Write,
    unchanged: Option<Write>,
    moved: Approval,
    now: Timestamp,
) -> Result<Option<Moved>, StoreError> {
    let write = write.bind("pending", Status::Pending)?.bind("now", now)?;
    let place = Write::update(&db.tables.agents, pending_key(moved.agent_id), "DELETE #open :entry")
        .bind("entry", pending_entry(&moved))?;
    let mut writes = vec![write, place];
    writes.extend(unchanged);
    match db.transact(&writes).await {
        Ok(()) => Ok(Some(Moved::Now(Box::new(moved)))),
        Err(refused @ WriteError::Refused(_)) => {
            let Some(refused) = refused.refused(0) else { return Ok(None) };
            let old = refused.old.clone().ok_or_else(|| StoreError::new("an approval vanished"))?;
            let before: Approval = parse(old)?;
            Ok(Some(Moved::Before(Box::new(Approval { whole: moved.whole, ..before }))))
        }
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// The write that uses an approval up. It belongs in the transaction of the call that it releases. Its condition fails if
/// the approval was used, has expired or was never given.
pub fn consume(db: &Db, approval: &Approval, now: Timestamp) -> Result<Write, StoreError> {
    let key = approval_key(approval.agent_id, &approval.approval_id);
    Write::update(&db.tables.agents, key, "SET #status = :consumed, #consumed_at = :now")
        .only_if("#status = :approved AND #use_by > :now")
        .bind("consumed", Status::Consumed)?
        .bind("approved", Status::Approved)?
        .bind("now", now)
}
