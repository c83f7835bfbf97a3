//! A message of an account: what is stored of it, and how what is heard of it later changes that.

use base::clock::Timestamp;
use base::ids::uuid_of;
use platform::store::{Db, Key, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::KEPT;
use super::conversation::conversation_id;
use crate::providers::{Attachment, Heard};

/// By what a message was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    Sync,
    Webhook,
    Send,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub id: Uuid,
    pub conversation: Uuid,
    pub provider_message_id: String,
    pub outbound: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sender_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sender_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    pub(super) sent_at: Timestamp,
    #[serde(default)]
    pub(super) seen: bool,
    #[serde(default)]
    edited: bool,
    #[serde(default)]
    pub(super) deleted: bool,
    #[serde(default)]
    attachments: Vec<Attachment>,
    source: By,
    ingested: Timestamp,
    pub(super) updated: Timestamp,
    /// Counts the writes.
    pub(super) revision: u32,
    pub(super) expires: i64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct At {
    pub(super) row: String,
    pub(super) expires: i64,
}

pub fn message_id(account: Uuid, message: &str) -> Uuid {
    uuid_of(&[b"network message", account.as_bytes(), message.as_bytes()])
}

pub(super) fn messages(account: Uuid) -> String {
    format!("NETMSG#{account}")
}

pub(super) fn at_key(id: Uuid) -> Key {
    Key::new(format!("NETMSGID#{id}"), "AT")
}

impl Message {
    pub(super) fn new(account: Uuid, heard: &Heard, by: By, now: Timestamp) -> Message {
        Message {
            id: message_id(account, &heard.id),
            conversation: conversation_id(account, &heard.chat),
            provider_message_id: heard.id.clone(),
            outbound: heard.is_own,
            sender_id: heard.sender_id.clone(),
            sender_name: heard.sender_name.clone(),
            text: heard.text.clone().filter(|_| !heard.is_deleted),
            sent_at: heard.at,
            seen: heard.is_seen,
            edited: heard.is_edited,
            deleted: heard.is_deleted,
            attachments: if heard.is_deleted { Vec::new() } else { heard.attachments.clone() },
            source: by,
            ingested: now,
            updated: now,
            revision: 0,
            expires: now.plus(KEPT).secs(),
        }
    }

    /// The message after it was heard of again; `None`: nothing new. What is deleted stays deleted, what is seen stays seen, and
    /// the text of an edit is not replaced by the one from before it.
    pub(super) fn again(&self, heard: &Heard, now: Timestamp) -> Option<Message> {
        let deleted = self.deleted || heard.is_deleted;
        let is_newer = heard.is_edited || !self.edited;
        let text = if is_newer { heard.text.clone().or_else(|| self.text.clone()) } else { self.text.clone() };
        let next = Message {
            text: text.filter(|_| !deleted),
            attachments: match deleted {
                true => Vec::new(),
                false if heard.attachments.is_empty() => self.attachments.clone(),
                false => heard.attachments.clone(),
            },
            sender_id: self.sender_id.clone().or_else(|| heard.sender_id.clone()),
            sender_name: self.sender_name.clone().or_else(|| heard.sender_name.clone()),
            seen: self.seen || heard.is_seen,
            edited: self.edited || heard.is_edited,
            deleted,
            ..self.clone()
        };
        if next == *self {
            return None;
        }
        Some(Message { updated: now, revision: self.revision + 1, expires: now.plus(KEPT).secs(), ..next })
    }

    pub fn view(&self) -> Value {
        json!({
            "id": self.id,
            "conversation_id": self.conversation,
            "provider_message_id": self.provider_message_id,
            "direction": if self.outbound { "outbound" } else { "inbound" },
            "sender_provider_id": self.sender_id,
            "sender_name": self.sender_name,
            "text": self.text,
            "sent_at": self.sent_at.to_string(),
            "seen": self.seen,
            "edited": self.edited,
            "deleted": self.deleted,
            "attachments": self.attachments,
            "source": self.source,
            "ingested_at": self.ingested.to_string(),
            "updated_at": self.updated.to_string(),
        })
    }
}

/// A message, if it is here.
pub async fn known(db: &Db, account: Uuid, id: Uuid) -> Result<Option<Message>, StoreError> {
    let at: Option<At> = db.get_latest(&db.tables.messages, at_key(id)).await?;
    match at {
        Some(at) => db.get_latest(&db.tables.messages, Key::new(messages(account), at.row)).await,
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(text: &str) -> Heard {
        Heard { id: "m".to_owned(), chat: "c".to_owned(), text: Some(text.to_owned()), ..Heard::default() }
    }

    #[test]
    fn what_was_said_last_stands_in_any_order() {
        let account = Uuid::from_u128(1);
        let received = heard("first");
        let edited = Heard { is_edited: true, ..heard("second") };
        let seen = Heard { is_seen: true, text: None, ..heard("") };
        let deleted = Heard { is_deleted: true, ..heard("first") };
        let orders = [
            [&received, &edited, &seen, &deleted],
            [&deleted, &seen, &edited, &received],
            [&edited, &deleted, &received, &seen],
        ];
        for (last, text, is_deleted) in [(4, None, true), (3, Some("second"), false)] {
            for order in orders {
                let order: Vec<&&Heard> = order.iter().filter(|one| last == 4 || !one.is_deleted).collect();
                let mut message = Message::new(account, order[0], By::Sync, Timestamp::default());
                for next in order.iter().skip(1).chain(&order) {
                    message = message.again(next, Timestamp::from_secs(5)).unwrap_or(message);
                }
                let is = (message.text.as_deref(), message.deleted, message.edited, message.seen);
                assert_eq!(is, (text, is_deleted, true, true), "{order:?}");
            }
        }
    }
}
