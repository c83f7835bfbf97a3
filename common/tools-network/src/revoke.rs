//! How an account is given up: its grant ends at once, actions that are not sent fail, and the provider's account is deleted.

use std::time::Duration;

use platform::http::log;
use platform::store::{Queue, StoreError, jobs};
use tools::Toolbox;

use crate::account::{self, Account};
use crate::action::{self, State};
use crate::providers;

/// An account that its provider did not delete is tried again after this time.
const AGAIN: Duration = Duration::from_secs(3600);

/// What giving an account up came to.
#[derive(Clone, Debug)]
pub struct Revoked {
    pub account: Account,
    /// Actions that will not be sent.
    pub cancelled: usize,
    /// Whether the provider has deleted the account.
    pub is_deleted: bool,
}

/// Gives an account up. Again is once: it then tries what did not work before. `None`: there is none.
pub async fn revoke(toolbox: &Toolbox, queue: &dyn Queue, account: &Account) -> Result<Option<Revoked>, StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let mut latest = Some(account.clone());
    // Others may change it meanwhile, but not for ever.
    for _ in 0..10 {
        let Some(account) = &latest else { return Ok(None) };
        let Some(next) = account.revoked(now) else { break };
        account.save(db, &next).await?;
        latest = account::load(db, account.agent, account.id).await?;
    }
    let Some(account) = latest.filter(|account| !account.is_open()) else {
        return Err(StoreError::new("an account changes faster than it can be revoked"));
    };
    // Their jobs see that the grant is gone, and fail by themselves.
    let open = action::open(db, account.id, now).await?;
    let queued: Vec<_> = open.iter().filter(|action| action.state == State::Queued).collect();
    for action in &queued {
        jobs::wake(db, queue, action.request).await;
    }
    let is_deleted = forget(toolbox, &account).await?;
    let cancelled = queued.len();
    Ok(Some(Revoked { account, cancelled, is_deleted }))
}

/// Deletes an account at its provider that was given up here, unless that was done before. What does not work now is tried again by
/// the hourly look at idle accounts.
pub(crate) async fn forget(toolbox: &Toolbox, account: &Account) -> Result<bool, StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    // One that was connected anew is another account here, with the same one at the provider.
    let latest = account::of_upstream(db, &account.provider, &account.upstream).await?;
    let is_anew = latest.is_some_and(|latest| latest.id != account.id && latest.is_open());
    if account.forgotten || is_anew {
        return Ok(true);
    }
    let provider = providers::of(toolbox).filter(|provider| provider.name() == account.provider);
    let is_deleted = match provider {
        Some(provider) => provider.forget(&account.upstream).await.unwrap_or_else(|error| {
            log::failure("a revoked account stays at the network's provider", &error.detail());
            false
        }),
        None => false,
    };
    if is_deleted {
        // If another process changed the account meanwhile, it is deleted again, which does no harm.
        account.save(db, &Account { forgotten: true, ..account.clone() }).await?;
    } else {
        db.write(account::idle_row(db, account.place(), now.plus(AGAIN))?).await?;
    }
    Ok(is_deleted)
}
