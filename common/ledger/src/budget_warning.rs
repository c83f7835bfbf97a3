//! Tells an owner, once a day, that spending has come to the alert level of its budget: a notification and a webhook event.
//! Whoever counts a charge calls [`raise`] afterwards. After an error, the next charge tries again.

use base::clock::Timestamp;
use base::ids::AgentId;
use base::money::Usdc;
use platform::http::log;
use platform::store::{Db, StoreError, WriteError};
use serde_json::json;

use super::account::Account;
use super::budget::Budget;
use super::day;
use super::notifications::{self, Notification, NotificationKind};
use super::webhooks::{Event, EventKind, outbox};

/// Warns if the spending of this day has reached the alert level. `account`: with the budget that the charge was judged by.
pub async fn raise(db: &Db, agent: AgentId, name: &str, account: &Account, now: Timestamp) {
    let Some(budget) = &account.budget else { return };
    let Some(level) = budget.alert_level() else { return };
    if let Err(error) = warn_above(db, agent, name, budget, level, now).await {
        log::failure("a budget warning could not be written", &error);
    }
}

async fn warn_above(
    db: &Db,
    agent: AgentId,
    name: &str,
    budget: &Budget,
    level: Usdc,
    now: Timestamp,
) -> Result<(), StoreError> {
    let day = day::load(db, agent, name).await?;
    if day.warned || day.committed < level {
        return Ok(());
    }
    let daily = budget.daily.unwrap_or_default();
    let mut about = json!({
        "spent_today_usdc": day.committed.to_string(),
        "daily_usdc": daily.to_string(),
        "alert_email": budget.alert_email,
        "resets_at": day::resets_at(now).to_string(),
    });
    let note = Notification {
        kind: NotificationKind::BudgetWarning,
        title: format!("{} of {daily} USDC are spent today", day.committed),
        body: Some("Spending has come to the alert level of your budget.".to_owned()),
        payload: Some(about.clone()),
    };
    // The mail address is private: it is not sent to webhooks.
    about.as_object_mut().map(|about| about.remove("alert_email"));
    about["reason"] = json!("alert_level");
    let cause = format!("budget_warning#{name}");
    let event = Event::new(agent, EventKind::BudgetWarning, &cause, now, about);
    // Written to the outbox once a day and delivered by the sweeper, so no call waits for a queue.
    let outgoing = outbox::put(db, &event, now).await?;
    let mut writes = vec![day::warn(db, agent, name)?, notifications::raise(db, agent, note, &cause, now)?];
    writes.extend(outgoing.writes());
    match db.transact(&writes).await {
        Ok(()) | Err(WriteError::Refused(_)) => Ok(()),
        Err(WriteError::Failed(error)) => Err(error),
    }
}
