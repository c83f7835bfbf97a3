//! What agents are told about their mail: a notification, and an event for their webhook endpoints.
//!
//! The event is only written to the outbox. The functions that get here have no access to the queue of deliveries, so the
//! scheduler's sweep sends it, within a minute.

use base::clock::Timestamp;
use base::ids::AgentId;
use base::untrusted_text;
use ledger::notifications::{self, Notification, NotificationKind};
use ledger::webhooks::{Event, EventKind, outbox};
use platform::store::{Db, StoreError, Write};
use serde_json::json;

use crate::mailbox::Inbound;
use crate::recipient::Recipient;
use crate::standing::Rates;

/// Longest subject and sender of a notification, in characters.
const MAX_SHOWN: usize = 200;

/// A mail is in the mailbox. Call it again if the process may have died: ids follow from the mail, so each endpoint gets one
/// event, and the agent one notification.
pub(crate) async fn tell_received(db: &Db, mail: &Inbound, now: Timestamp) -> Result<(), StoreError> {
    let cause = mail.id.to_string();
    // Without the sender and the subject: whoever runs the endpoint reads this.
    let data = json!({
        "email_id": mail.id,
        "thread_id": mail.thread_id,
        "to": mail.to.as_str(),
        "email_url": format!("/v1/tools/inbox/{}", mail.id),
    });
    let event = Event::new(mail.agent, EventKind::EmailReceived, &cause, mail.received_at, data);
    tell(db, received(mail), &event, &cause, now).await
}

/// A mail that a provider had accepted bounced for good. Call it after the write that changed the recipient's state, and only
/// if that write happened. It says nothing that the other side wrote.
pub(crate) async fn tell_bounced(db: &Db, row: &Recipient, now: Timestamp) -> Result<(), StoreError> {
    let cause = format!("{}#{}", row.request_id, row.index);
    let data = json!({
        "request_id": row.request_id,
        "to": row.to.as_str(),
        "from_domain": row.sender,
        "status_url": format!("/v1/requests/{}", row.request_id),
    });
    let event = Event::new(row.agent, EventKind::EmailBounced, &cause, now, data);
    tell(db, bounced(row), &event, &cause, now).await
}

/// Mails are refused today, because the mailbox takes no more of their senders. Once a day: strangers can cause it.
pub(crate) async fn tell_refused(db: &Db, agent: AgentId, now: Timestamp) -> Result<(), StoreError> {
    let today = Timestamp::from_secs(now.secs() - now.secs().rem_euclid(24 * 3600));
    let note = notifications::raise_for(db, agent, refused(), "mailbox", today, now)?;
    db.write(note).await?;
    Ok(())
}

async fn tell(db: &Db, note: Notification, event: &Event, cause: &str, now: Timestamp) -> Result<(), StoreError> {
    outbox::put(db, event, now).await?.keep(db).await?;
    let note = notifications::raise_for(db, event.agent, note, cause, event.happened, now)?;
    db.write(note).await?;
    Ok(())
}

fn refused() -> Notification {
    Notification {
        kind: NotificationKind::EmailRefused,
        title: "Mail to you is refused today".to_owned(),
        body: Some(format!(
            "A mailbox takes {} mails a UTC day, strangers get {} of them, and each domain and source a part. Senders that you \
             have written to still reach you, unless they sent {} today.",
            crate::room::MAX_A_DAY,
            crate::room::MAX_WITH_STRANGERS,
            crate::room::MAX_OF_KNOWN,
        )),
        payload: None,
    }
}

/// The address of the sender and the subject, both cut and cleaned. They are untrusted.
fn received(mail: &Inbound) -> Notification {
    let from = line(&mail.from);
    Notification {
        kind: NotificationKind::EmailReceived,
        title: if from.is_empty() { "Mail received".to_owned() } else { format!("Mail from {from}") },
        body: Some(line(&mail.subject)).filter(|subject| !subject.is_empty()),
        payload: Some(json!({"email_id": mail.id, "thread_id": mail.thread_id, "to": mail.to.as_str()})),
    }
}

fn bounced(row: &Recipient) -> Notification {
    Notification {
        kind: NotificationKind::EmailBounced,
        title: format!("Mail to {} bounced", row.to.as_str()),
        body: Some(format!("The address gets no more mail. See /v1/requests/{}.", row.request_id)),
        payload: Some(json!({"request_id": row.request_id, "to": row.to.as_str(), "from_domain": row.sender})),
    }
}

/// The write that tells an agent that its mail is stopped.
pub(crate) fn stopped(
    db: &Db,
    agent: AgentId,
    rates: &Rates,
    next_step: &str,
    now: Timestamp,
) -> Result<Write, StoreError> {
    let note = Notification {
        kind: NotificationKind::EmailStopped,
        title: "Your mail to addresses outside is stopped".to_owned(),
        body: Some(format!("In one week, {}. To go on, {next_step}.", rates.told())),
        payload: Some(json!({"domains_url": "/v1/tools/email/domains"})),
    };
    notifications::raise_for(db, agent, note, "stopped", now, now)
}

fn line(text: &str) -> String {
    let text = untrusted_text::visible(text).replace(['\n', '\t'], " ");
    text.trim().chars().take(MAX_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_shows_one_cleaned_line() {
        assert_eq!(line(" a\u{202e}b\r\nc\u{200b} "), "ab c");
        assert_eq!(line(&"x".repeat(500)).len(), MAX_SHOWN);
    }
}
