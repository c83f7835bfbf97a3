//! Debts: credits that are taken back after they were granted, perhaps after they were spent.
//!
//! Taking back never fails and reads nothing: the amount is added to the debt. While there is debt, no credits can be
//! spent or held (a condition in [`Change::write`](super::account::Change::write)), and present and future credits pay
//! the debt first ([`collect`]). So a balance is never negative. Giving back adds credits, whatever the debt is.

use base::clock::Timestamp;
use base::digest;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use platform::store::{Db, StoreError, Write, WriteError};

use super::account::{self, Account, Change, minus, plus};
use super::credit::{self, EntryKind};
use super::hold;

/// Attempts when others change the account at the same time.
const TRIES: u32 = 10;

/// The writes that add an amount to the debt, once per cause.
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

/// Pays the debt with the agent's credits, including those held by open quotes. Returns the account afterwards.
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
        let card = account.card.min(paid);
        let change = Change { credits: minus(paid)?, card: minus(card)?, debt: minus(paid)?, ..Change::default() };
        let cause = format!("debt_{}", const_hex::encode(digest::random::<12>()));
        let writes = credit::change(db, agent, EntryKind::DebtPaid, change, &cause, None, now)?;
        match db.transact(&writes).await {
            Ok(()) => {
                let left = |amount: Usdc| amount.checked_sub(paid).unwrap_or_default();
                let card = account.card.checked_sub(card).unwrap_or_default();
                return Ok(Account { credits: left(account.credits), card, debt: left(account.debt), ..account });
            }
            // Somebody else collected or spent meanwhile.
            Err(WriteError::Refused(_)) => account = account::load(db, agent).await?,
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Ok(account)
}
