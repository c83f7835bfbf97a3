//! Debts: credits that are taken back after they were given, perhaps after they were spent.
//!
//! Taking back never fails and reads nothing: the amount is put down as owed. While anything is owed, no credits are spent
//! or held (a condition of those writes, see [`Change::write`](super::account::Change::write)), and what there is, or comes
//! in later, goes to the debt first ([`collect`]). So a balance is never negative, however much was spent in between, and
//! giving back is adding credits, whatever is owed.

use base::clock::Timestamp;
use base::digest;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use platform::store::{Db, StoreError, Write, WriteError};

use super::account::{self, Account, Change, minus, plus};
use super::credit::{self, EntryKind};
use super::hold;

/// How often an account is tried that others change meanwhile.
const TRIES: u32 = 10;

/// The writes that take an amount back, for this cause, once.
pub fn owe(
    db: &Db,
    agent: AgentId,
    kind: EntryKind,
    amount: Usdc,
    cause: &str,
    request_id: Option<RequestId>,
    at: Timestamp,
) -> Result<[Write; 2], StoreError> {
    credit::change(db, agent, kind, Change { debt: plus(amount)?, ..Change::default() }, cause, request_id, at)
}

/// Pays what an agent owes with the credits it has, those that open quotes hold included. Hands back the account as it is
/// then.
pub async fn collect(db: &Db, agent: AgentId, mut account: Account, now: Timestamp) -> Result<Account, StoreError> {
    for _ in 0..TRIES {
        if account.debt > account.credits && account.reserved > Usdc::ZERO {
            hold::release(db, agent, true, now).await?;
            account = account::load(db, agent).await?;
        }
        let paid = account.debt.min(account.credits);
        if paid == Usdc::ZERO {
            return Ok(account);
        }
        let change = Change { credits: minus(paid)?, debt: minus(paid)?, ..Change::default() };
        let cause = format!("debt_{}", const_hex::encode(digest::random::<12>()));
        let writes = credit::change(db, agent, EntryKind::DebtPaid, change, &cause, None, now)?;
        match db.transact(&writes).await {
            Ok(()) => {
                let left = |amount: Usdc| amount.checked_sub(paid).unwrap_or_default();
                return Ok(Account { credits: left(account.credits), debt: left(account.debt), ..account });
            }
            // Somebody else collected, or spent, meanwhile.
            Err(WriteError::Refused(_)) => account = account::load(db, agent).await?,
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Ok(account)
}
