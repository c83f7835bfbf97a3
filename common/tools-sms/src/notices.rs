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
use crate::phone::Phone;

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

/// The provider no longer has an agent's number. Told once: the mark on the number is written first, and if the process dies
/// in between, only the list of numbers says so.
pub(crate) async fn tell_lost(db: &Db, phone: &Phone, now: Timestamp) -> Result<(), StoreError> {
    let body = "The provider no longer has it: it gets no texts and takes no calls. Your next text or bought call is from another \
                number, free of charge.";
    let note = Notification {
        kind: NotificationKind::PhoneExpiring,
        title: format!("You lost the number {}", phone.number.as_str()),
        body: Some(body.to_owned()),
        payload: Some(json!({"phone_number": phone.number, "status": "lost"})),
    };
    db.write(notifications::raise(db, phone.agent, note, &phone.id.to_string(), now)?).await?;
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
