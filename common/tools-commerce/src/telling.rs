//! What an agent is told of its orders: a notification, and an event for its webhooks.

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use ledger::notifications::{self, Notification, NotificationKind};
use ledger::webhooks::{Event, EventKind, outbox};
use platform::store::{Db, StoreError, Write};
use serde_json::{Value, json};

/// A move of an order.
pub struct Moved<'a> {
    pub request: RequestId,
    pub agent: AgentId,
    pub title: &'a str,
    pub status: &'a str,
    /// What came back, in USDC.
    pub returned: Option<&'a str>,
    /// As it is shown with the purchase.
    pub tracking: Value,
    /// The order's revision after the move: it is told once.
    pub revision: u32,
}

/// The writes that tell the agent.
///
/// # Errors
/// If the database fails.
pub async fn told(db: &Db, moved: Moved<'_>, now: Timestamp) -> Result<Vec<Write>, StoreError> {
    let cause = format!("{}#{}", moved.request, moved.revision);
    let about = json!({
        "request_id": moved.request,
        "order_tracking": moved.tracking,
        "request_url": format!("/v1/requests/{}", moved.request),
    });
    let note = Notification {
        kind: NotificationKind::OrderUpdated,
        title: format!("{}: {}", moved.title.chars().take(80).collect::<String>(), moved.status),
        body: moved.returned.map(|amount| format!("{amount} USDC came back as credits.")),
        payload: Some(about.clone()),
    };
    let note = notifications::raise_for(db, moved.agent, note, &cause, now, now)?;
    let event = Event::new(moved.agent, EventKind::OrderUpdated, &cause, now, about);
    Ok(outbox::put(db, &event, now).await?.writes().chain([note]).collect())
}
