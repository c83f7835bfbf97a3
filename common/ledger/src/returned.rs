//! Money that comes back after a call has ended: a shop cancels an order days later. It becomes credits of the agent.
//!
//! A return is one transaction: the receipt's next revision keeps less, the account gets an entry that exists once for its cause, the
//! counters of the day and of the token count less, and so does the job's row, if it is still there. The revision's condition keeps two
//! returns at once from giving back more than is kept.

use base::clock::Timestamp;
use base::ids::{AgentId, ReceiptId, RequestId};
use base::money::Usdc;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::charge::{Charge, Purchase};
use super::credit::{self, EntryKind};
use super::freeze::SERVICE_PAYEE;
use super::receipt;
use super::signing::ReceiptSigner;

/// What a return has to know of a call of one of our own tools: a part of its job's row, which is kept longer by who may need it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paid {
    pub receipt_id: ReceiptId,
    pub agent: AgentId,
    pub tool: String,
    pub charge: Charge,
}

/// Reads what a return has to know from the row of a job; `None` if it is gone.
///
/// # Errors
/// If the database fails.
pub async fn paid(db: &Db, request: RequestId) -> Result<Option<Paid>, StoreError> {
    db.get_latest(&db.tables.jobs, Key::of_job(request)).await
}

/// The writes that give back `amount` micro-USDC of a completed call, at most what is kept of it; `None` if nothing is kept any more.
/// `cause` names the return, so that it happens once. Refused if the receipt was changed meanwhile, or the return was made before.
///
/// # Errors
/// If the database fails. A call that a goal has paid has no return: its money is the goal's.
pub async fn give_back(
    db: &Db,
    signer: &ReceiptSigner,
    (request, paid): (RequestId, &Paid),
    amount: Usdc,
    cause: &str,
    now: Timestamp,
) -> Result<Option<(Usdc, Vec<Write>)>, StoreError> {
    if paid.charge.purse.is_some() {
        return Err(StoreError::new("a goal's call has no return"));
    }
    let receipt = receipt::load(db, paid.agent, &paid.receipt_id).await?;
    let mut receipt = receipt.ok_or_else(|| StoreError::new("the receipt of a return is gone"))?;
    let kept = receipt.kept.unwrap_or(receipt.amount);
    let amount = amount.min(kept);
    let left = kept.checked_sub(amount).unwrap_or_default();
    if amount.is_zero() || !receipt.is_terminal() {
        return Ok(None);
    }
    // The part that a card bought comes back first, as when a call ends.
    let ended_with = receipt.amount.checked_sub(kept).unwrap_or_default();
    let card = paid.charge.card.checked_sub(ended_with).unwrap_or_default().min(amount);
    receipt.revision += 1;
    receipt.kept = Some(left);
    receipt.seal(signer);
    let named = format!("{}~{cause}", paid.receipt_id);
    let change = credit::add_marked(amount, card)?;
    let mut writes = vec![receipt::revise(db, &receipt)?];
    writes.extend(credit::change(db, paid.agent, EntryKind::Refund, change, &named, Some(request), now)?);
    let of = Purchase {
        agent: paid.agent,
        tool: &paid.tool,
        payee: SERVICE_PAYEE,
        request_id: request,
        receipt_id: &paid.receipt_id,
    };
    writes.extend(paid.charge.give_back(db, of, amount)?);
    if self::paid(db, request).await?.is_some_and(|row| row.receipt_id == paid.receipt_id) {
        let back = receipt.amount.checked_sub(left).unwrap_or_default();
        let set = "SET #charged = :left, #kept = :left, #credited = :back, #updated = :now";
        let job = Write::update(&db.tables.jobs, Key::of_job(request), set)
            .only_if("#receipt_id = :receipt AND attribute_not_exists(#open)");
        writes.push(job.bind("left", left)?.bind("back", back)?.bind("now", now)?.bind("receipt", &paid.receipt_id)?);
    }
    Ok(Some((amount, writes)))
}
