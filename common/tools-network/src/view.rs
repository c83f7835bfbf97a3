//! Answers that several routes give.

use base::clock::Timestamp;
use platform::store::{Db, StoreError};
use serde_json::Value;

use crate::account::Account;
use crate::{limits, syncing};

/// An account as its owner sees it.
pub async fn account(db: &Db, account: &Account, now: Timestamp) -> Result<Value, StoreError> {
    let coverage = syncing::coverage(db, account.id).await?;
    Ok(account.view(&coverage.brief(), &limits::view(db, account, now).await?))
}
