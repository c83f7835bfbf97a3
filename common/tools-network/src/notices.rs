//! What an owner is told about an account.

use base::clock::Timestamp;
use ledger::notifications::{self, Notification, NotificationKind};
use platform::store::{Db, StoreError, Write};
use serde_json::json;

use crate::account::{Account, Status, Word};

/// Notes that the network has logged an account out, and tells its owner.
pub async fn logged_out(db: &Db, account: &Account, now: Timestamp) -> Result<(), StoreError> {
    let Some(next) = account.told(Word::Credentials, now) else { return Ok(()) };
    if account.save(db, &next).await?
        && let Some(note) = of(db, &next, now)?
    {
        db.write(note).await?;
    }
    Ok(())
}

/// The write that tells an owner that an account has to be connected again, or is gone. `None`: it works.
pub fn of(db: &Db, account: &Account, now: Timestamp) -> Result<Option<Write>, StoreError> {
    let (title, body) = match account.status {
        Status::Connected => return Ok(None),
        Status::ReconnectRequired | Status::Error => (
            "A network account has to be connected again",
            "POST /v1/tools/linkedin/accounts/{id}/reconnect gives a login link.",
        ),
        Status::Revoked => ("A network account was given up", "Nobody had used it for 30 days."),
        Status::DeletedUpstream => ("A network account is gone", "POST /v1/tools/linkedin/connect connects a new one."),
    };
    let note = Notification {
        kind: NotificationKind::LinkedinReconnectRequired,
        title: title.to_owned(),
        body: Some(body.to_owned()),
        payload: Some(json!({"account_id": account.id, "status": account.status})),
    };
    let cause = format!("{}:{}", account.id, account.revision);
    notifications::raise(db, account.agent, note, &cause, now).map(Some)
}
