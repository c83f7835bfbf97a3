//! What a provider posts: that an account changed, that something happened to a message. Posts come twice, late and in any order. They
//! are only as good as their secret, and what they say is untrusted text.

use base::clock::Timestamp;
use base::input::{Field, Kind};
use platform::http::log;
use platform::store::{Queue, StoreError, jobs};
use serde_json::{Map, Value};
use tools::Toolbox;

use crate::account::{self, Account, Allowed, Status, WORDS, Word};
use crate::action::{self, State};
use crate::inbox::{self, By};
use crate::providers::{Heard, unipile};
use crate::{invitations, notices, syncing};

const ID: Kind = Kind::Text { min: 1, max: 512, format: None };

/// The members that an account's post has to have.
pub static ACCOUNT_STATUS: &[Field] = &[
    Field::required("account_id", ID, "The provider's id of the account"),
    Field::required("message", Kind::Choice(WORDS), "What happened"),
    Field::optional("account_type", Kind::Text { min: 0, max: 64, format: None }, "The network"),
];

pub const EVENTS: &[&str] = &[
    "message_received",
    "message_edited",
    "message_deleted",
    "message_read",
    "message_reaction",
    "message_delivered",
    "received",
    "edited",
    "deleted",
    "read",
    "reaction",
    "delivered",
];

/// The members that a message's post has to have. It has more, of any form.
pub static MESSAGING: &[Field] = &[
    Field::required("account_id", ID, "The provider's id of the account"),
    Field::required("event", Kind::Choice(EVENTS), "What happened"),
    Field::required("chat_id", ID, "The provider's id of the chat"),
    Field::required("message_id", ID, "The provider's id of the message"),
];

/// The members that a relation's post has to have.
pub static RELATION: &[Field] = &[
    Field::required("account_id", ID, "The provider's id of the account"),
    Field::required("event", Kind::Choice(&["new_relation"]), "What happened"),
    Field::required("user_provider_id", ID, "The provider's id of the member"),
];

/// Applies an account's post. One of an account that is not known here changes nothing.
pub async fn account_status(toolbox: &Toolbox, provider: &str, body: &Map<String, Value>) -> Result<(), StoreError> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    let Ok(word) = serde_json::from_value::<Word>(Value::String(text("message").to_owned())) else { return Ok(()) };
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    // Others may change it meanwhile, but not for ever: the provider posts again, or the next call finds out.
    for _ in 0..5 {
        let Some(account) = account::of_upstream(db, provider, text("account_id")).await? else { return Ok(()) };
        let Some(next) = account.told(word, now) else { return Ok(()) };
        if account.save(db, &next).await? {
            if let Some(note) = notices::of(db, &next, now)? {
                db.write(note).await?;
            }
            return Ok(());
        }
    }
    Err(StoreError::new("an account changes faster than its state can be noted"))
}

/// Applies a message's post: stores what it says, and wakes actions whose fate is unknown.
pub async fn messaging(
    toolbox: &Toolbox,
    queue: &dyn Queue,
    provider: &str,
    body: &Map<String, Value>,
) -> Result<(), StoreError> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let Some(account) = account::of_upstream(db, provider, text("account_id")).await?.filter(may_hear) else {
        return Ok(());
    };
    let event = text("event").trim_start_matches("message_");
    let Some(heard) = heard(event, body, now) else { return Ok(()) };
    match event {
        // That a message is deleted may be heard before the message.
        "received" | "edited" | "deleted" => drop(inbox::take(db, account.id, &heard, By::Webhook, now).await?),
        // Other events change a message that is here, and nothing else.
        _ if inbox::known(db, account.id, inbox::message_id(account.id, &heard.id)).await?.is_none() => {}
        _ => drop(inbox::take(db, account.id, &heard, By::Webhook, now).await?),
    }
    syncing::heard(db, account.id, now).await?;
    if heard.is_own && event == "received" {
        wake(toolbox, queue, &account, now).await?;
    }
    Ok(())
}

/// Applies a relation's post: a member is a connection of an account now. Whether that is because of an invitation, and when it was,
/// the post does not say.
pub async fn relation(
    toolbox: &Toolbox,
    queue: &dyn Queue,
    provider: &str,
    body: &Map<String, Value>,
) -> Result<(), StoreError> {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let found = account::of_upstream(db, provider, text("account_id")).await?;
    let Some(account) = found.filter(|account| account.status != Status::Revoked) else { return Ok(()) };
    let names = ["user_provider_id", "user_public_identifier"].map(text);
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    invitations::connected(db, account.id, &names, now).await?;
    wake(toolbox, queue, &account, now).await
}

/// Whether messages of the account may be read here.
fn may_hear(account: &Account) -> bool {
    account.status != Status::Revoked && account.grant.has(Allowed::Read)
}

/// Actions whose fate is unknown look again.
async fn wake(toolbox: &Toolbox, queue: &dyn Queue, account: &Account, now: Timestamp) -> Result<(), StoreError> {
    for action in action::open(&toolbox.db, account.id, now).await? {
        if matches!(action.state, State::Sending | State::Ambiguous) {
            jobs::wake(&toolbox.db, queue, action.request).await;
        }
    }
    Ok(())
}

/// A message as a post tells it; `None`: the event changes no message.
fn heard(event: &str, body: &Map<String, Value>, now: Timestamp) -> Option<Heard> {
    if matches!(event, "reaction" | "delivered") {
        return None;
    }
    let member = |name: &str| body.get(name).unwrap_or(&Value::Null);
    let sender = &member("sender");
    let own = &member("account_info")["user_id"];
    let sender_id = unipile::read::id(&sender["attendee_provider_id"]);
    let is_own = unipile::read::flag(member("is_sender")) || (own.is_string() && own.as_str() == sender_id.as_deref());
    Some(Heard {
        id: unipile::read::id(member("message_id"))?,
        chat: unipile::read::id(member("chat_id"))?,
        is_own,
        sender_id,
        sender_name: unipile::read::line(&sender["attendee_name"]),
        text: unipile::read::text(member("message")),
        at: unipile::time(member("timestamp")).unwrap_or(now),
        is_seen: event == "read",
        is_edited: event == "edited",
        is_deleted: event == "deleted",
        attachments: unipile::read::attachments(member("attachments")),
    })
}

/// A message of the local network has arrived at a member.
pub async fn deliver(toolbox: &Toolbox, provider: &str, member: &str, heard: &Heard) -> Result<(), StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let Some(account) = account::of_member(db, provider, member).await?.filter(may_hear) else { return Ok(()) };
    inbox::take(db, account.id, heard, By::Webhook, now).await?;
    if let Err(error) = syncing::heard(db, account.id, now).await {
        log::failure("the time of a message could not be noted", &error);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(event: &str, more: Value) -> Option<Heard> {
        let mut body = json!({"account_id": "a", "chat_id": "c", "message_id": "m", "message": "Hello"});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        heard(event, body.as_object().unwrap(), Timestamp::from_secs(9))
    }

    #[test]
    fn posts_are_read_as_they_are_meant() {
        let sender = json!({"attendee_provider_id": "me", "attendee_name": "Ann"});
        let received = of("received", json!({"sender": sender, "account_info": {"user_id": "me"}})).unwrap();
        assert!(received.is_own && !received.is_edited && received.at == Timestamp::from_secs(9));
        let other = of("received", json!({"sender": sender, "account_info": {"user_id": "you"}})).unwrap();
        assert_eq!((other.is_own, other.sender_name.as_deref()), (false, Some("Ann")));
        assert!(of("edited", json!({})).unwrap().is_edited && of("deleted", json!({})).unwrap().is_deleted);
        assert!(of("reaction", json!({})).is_none() && of("delivered", json!({})).is_none());
        // Neither has an id: two unknown members are not the same.
        assert!(!of("received", json!({})).unwrap().is_own);
        assert!(of("received", json!({"chat_id": "x".repeat(1_000)})).is_none());
        for word in EVENTS {
            assert!(EVENTS.contains(&format!("message_{}", word.trim_start_matches("message_")).as_str()), "{word}");
        }
    }
}
