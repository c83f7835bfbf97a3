//! What agents are told about their texts: a notification, and an event for their webhook endpoints.
//!
//! The event is only written to the outbox. The functions that get here have no access to the queue of deliveries, so the
//! scheduler's sweep sends it, within a minute.

use base::clock::Timestamp;
use base::untrusted_text;
use ledger::notifications::{self, Notification, NotificationKind};
use ledger::webhooks::{Event, EventKind, outbox};
use platform::store::{Db, StoreError};
use serde_json::json;

use crate::inbox::Text;

/// Most characters of a text in its notification.
const MAX_SHOWN: usize = 200;

/// A text is in the inbox. Call it again if the process may have died: ids follow from the text, so each endpoint gets one
/// event, and the agent one notification.
pub(crate) async fn tell_received(db: &Db, text: &Text, now: Timestamp) -> Result<(), StoreError> {
    let cause = text.id.to_string();
    // Without the sender and the text: whoever runs the endpoint reads this.
    let data = json!({
        "message_id": text.id,
        "thread_id": text.thread_id,
        "to": text.to,
        "message_url": format!("/v1/tools/sms/inbox/{}", text.id),
    });
    let event = Event::new(text.agent, EventKind::SmsReceived, &cause, text.received_at, data);
    outbox::put(db, &event, now).await?.keep(db).await?;
    let note = notifications::raise_for(db, text.agent, received(text), &cause, text.received_at, now)?;
    db.write(note).await?;
    Ok(())
}

/// The sender and the beginning of the text, cleaned. They are untrusted.
fn received(text: &Text) -> Notification {
    let body = untrusted_text::visible(&text.body).replace(['\n', '\t'], " ");
    let body: String = body.trim().chars().take(MAX_SHOWN).collect();
    Notification {
        kind: NotificationKind::SmsReceived,
        title: if text.from.is_empty() { "Text received".to_owned() } else { format!("Text from {}", text.from) },
        body: Some(body).filter(|body| !body.is_empty()),
        payload: Some(json!({"message_id": text.id, "thread_id": text.thread_id, "to": text.to})),
    }
}
