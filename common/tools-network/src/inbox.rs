//! Conversations and messages of an account, as far as they were read here: by syncs, by the provider's posts, by sending. They come
//! twice and in any order: a message is one row whatever it was heard by, and what was said last about it stands.
//!
//! | item (table messages) | key |
//! |---|---|
//! | a conversation | `NETCONV#<account>` / `<conversation>` |
//! | a message | `NETMSG#<account>` / `<time>#<message>` |
//! | where a message is | `NETMSGID#<message>` / `AT` |
//!
//! Messages are kept for 30 days after they were last heard of. A sync brings older ones back.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::uuid_of;
use platform::http::ApiError;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, WriteError, due};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::providers::{Attachment, Attendee, Chat, Heard};
use crate::syncing;

pub const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Most conversations of an account that are listed.
const MOST_CONVERSATIONS: usize = 1_000;
/// Most messages that one page looks at.
const MOST_LOOKED_AT: usize = 1_000;
/// Messages that one request to the database reads.
const PAGE: usize = 200;
/// A message that others keep changing is given up after so many tries; a sync brings it.
const TRIES: usize = 4;

/// By what a message was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    Sync,
    Webhook,
    Send,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    pub id: Uuid,
    pub provider_chat_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default)]
    attendees: Vec<Attendee>,
    #[serde(default)]
    unread: u32,
    #[serde(default)]
    archived: bool,
    #[serde(default)]
    pub read_only: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    muted_until: Option<String>,
    pub last_message_at: Timestamp,
    #[serde(default)]
    pub attendees_synced: bool,
    /// When the provider was last asked about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    described: Option<Timestamp>,
    updated: Timestamp,
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
    sent_at: Timestamp,
    #[serde(default)]
    seen: bool,
    #[serde(default)]
    edited: bool,
    #[serde(default)]
    deleted: bool,
    #[serde(default)]
    attachments: Vec<Attachment>,
    source: By,
    ingested: Timestamp,
    updated: Timestamp,
    /// Counts the writes.
    revision: u32,
    expires: i64,
}

/// What hearing of a message changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub inserted: bool,
    pub updated: bool,
    pub new_conversation: bool,
}

#[derive(Serialize, Deserialize)]
struct At {
    row: String,
    expires: i64,
}

pub fn conversation_id(account: Uuid, chat: &str) -> Uuid {
    uuid_of(&[b"network conversation", account.as_bytes(), chat.as_bytes()])
}

pub fn message_id(account: Uuid, message: &str) -> Uuid {
    uuid_of(&[b"network message", account.as_bytes(), message.as_bytes()])
}

fn conversation_key(account: Uuid, id: Uuid) -> Key {
    Key::new(format!("NETCONV#{account}"), id.to_string())
}

fn messages(account: Uuid) -> String {
    format!("NETMSG#{account}")
}

fn at_key(id: Uuid) -> Key {
    Key::new(format!("NETMSGID#{id}"), "AT")
}

impl Message {
    fn new(account: Uuid, heard: &Heard, by: By, now: Timestamp) -> Message {
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
    fn again(&self, heard: &Heard, now: Timestamp) -> Option<Message> {
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

impl Conversation {
    fn new(account: Uuid, chat: &str, at: Timestamp, now: Timestamp) -> Conversation {
        Conversation {
            id: conversation_id(account, chat),
            provider_chat_id: chat.to_owned(),
            name: None,
            subject: None,
            kind: None,
            attendees: Vec::new(),
            unread: 0,
            archived: false,
            read_only: false,
            muted_until: None,
            last_message_at: at,
            attendees_synced: false,
            described: None,
            updated: now,
        }
    }

    /// Whether its state at the provider is not known, or not since this time.
    pub fn is_stale(&self, since: Timestamp) -> bool {
        self.described.is_none_or(|at| at < since)
    }

    pub fn view(&self) -> Value {
        json!({
            "id": self.id,
            "provider_chat_id": self.provider_chat_id,
            "name": self.name,
            "subject": self.subject,
            "type": self.kind,
            "attendees": self.attendees,
            "unread_count": self.unread,
            "archived": self.archived,
            "read_only": u8::from(self.read_only),
            "muted_until": self.muted_until,
            "last_message_at": self.last_message_at.to_string(),
            "attendees_synced": self.attendees_synced,
            "updated_at": self.updated.to_string(),
        })
    }
}

pub async fn conversation(db: &Db, account: Uuid, id: Uuid) -> Result<Option<Conversation>, StoreError> {
    db.get_latest(&db.tables.messages, conversation_key(account, id)).await
}

/// Takes a message.
pub async fn take(db: &Db, account: Uuid, heard: &Heard, by: By, now: Timestamp) -> Result<Taken, StoreError> {
    let new_conversation = has_conversation(db, account, heard, now).await?;
    let fresh = Message::new(account, heard, by, now);
    for _ in 0..TRIES {
        let at: Option<At> = db.get_latest(&db.tables.messages, at_key(fresh.id)).await?;
        let known: Option<Message> = match &at {
            Some(at) => db.get_latest(&db.tables.messages, Key::new(messages(account), at.row.clone())).await?,
            None => None,
        };
        let writes = match (&at, &known) {
            (Some(at), Some(known)) => {
                let Some(next) = known.again(heard, now) else {
                    return Ok(Taken { new_conversation, ..Taken::default() });
                };
                let key = Key::new(messages(account), at.row.clone());
                vec![
                    Write::put(&db.tables.messages, key, &next)?
                        .only_if("#revision = :before")
                        .bind("before", known.revision)?,
                ]
            }
            _ => insert(db, account, &fresh, at.is_some(), by)?,
        };
        match db.apply(writes).await {
            Ok(()) => {
                touch(db, account, &fresh, now).await?;
                return Ok(Taken { inserted: known.is_none(), updated: known.is_some(), new_conversation });
            }
            // Another process was faster: see what it has taken.
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Err(StoreError::new("a message changes faster than it can be taken"))
}

/// The writes that store a message for the first time. `is_known`: it was here before, and its row has expired.
fn insert(db: &Db, account: Uuid, message: &Message, is_known: bool, by: By) -> Result<Vec<Write>, StoreError> {
    let table = &db.tables.messages;
    let at = At { row: due::row(message.sent_at, message.id), expires: message.expires };
    let put = Write::put(table, at_key(message.id), &at)?;
    let unread = by == By::Webhook && !message.outbound && !message.seen;
    let count = Write::update(
        table,
        conversation_key(account, message.conversation),
        "SET #updated = :now ADD #unread :unread",
    );
    Ok(vec![
        if is_known { put } else { put.only_if_new() },
        Write::put(table, Key::new(messages(account), at.row.clone()), message)?,
        count.bind("now", message.updated)?.bind("unread", u8::from(unread))?,
        syncing::count(db, account, "message_count")?,
    ])
}

/// The conversation's time of its last message.
async fn touch(db: &Db, account: Uuid, message: &Message, now: Timestamp) -> Result<(), StoreError> {
    let key = conversation_key(account, message.conversation);
    let write = Write::update(&db.tables.messages, key, "SET #last_message_at = :at, #updated = :now")
        .only_if("#last_message_at < :at")
        .bind("at", message.sent_at)?
        .bind("now", now)?;
    db.write_if(write).await.map(drop)
}

/// Whether the message's conversation had to be made.
async fn has_conversation(db: &Db, account: Uuid, heard: &Heard, now: Timestamp) -> Result<bool, StoreError> {
    let id = conversation_id(account, &heard.chat);
    if conversation(db, account, id).await?.is_some() {
        return Ok(false);
    }
    let conversation = Conversation::new(account, &heard.chat, heard.at, now);
    let writes = [
        Write::put(&db.tables.messages, conversation_key(account, id), &conversation)?.only_if_new(),
        syncing::count(db, account, "conversation_count")?,
    ];
    match db.transact(&writes).await {
        Ok(()) => Ok(true),
        Err(WriteError::Refused(_)) => Ok(false),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// What the provider says about a chat.
pub async fn describe(db: &Db, account: Uuid, id: Uuid, chat: &Chat, now: Timestamp) -> Result<(), StoreError> {
    let Some(before) = conversation(db, account, id).await? else { return Ok(()) };
    let next = Conversation {
        name: chat.name.clone(),
        subject: chat.subject.clone(),
        kind: chat.kind.clone(),
        attendees: chat.attendees.clone(),
        unread: chat.unread,
        archived: chat.is_archived,
        read_only: chat.is_read_only,
        muted_until: chat.muted_until.clone(),
        attendees_synced: true,
        described: Some(now),
        updated: now,
        ..before.clone()
    };
    let put = Write::put(&db.tables.messages, conversation_key(account, id), &next)?;
    // A message that came meanwhile counts more.
    db.write_if(put.only_if("#updated = :before").bind("before", before.updated)?).await.map(drop)
}

/// Marks a message as seen or deleted, if it is here.
pub async fn known(db: &Db, account: Uuid, id: Uuid) -> Result<Option<Message>, StoreError> {
    let at: Option<At> = db.get_latest(&db.tables.messages, at_key(id)).await?;
    match at {
        Some(at) => db.get_latest(&db.tables.messages, Key::new(messages(account), at.row)).await,
        None => Ok(None),
    }
}

/// What of the messages is asked for.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub conversation: Option<Uuid>,
    pub since: Option<Timestamp>,
    pub changed_since: Option<Timestamp>,
    pub outbound: Option<bool>,
    pub with_deleted: bool,
}

impl Filter {
    fn takes(&self, message: &Message) -> bool {
        self.conversation.is_none_or(|id| id == message.conversation)
            && self.since.is_none_or(|since| message.sent_at >= since)
            && self.changed_since.is_none_or(|since| message.updated >= since)
            && self.outbound.is_none_or(|outbound| outbound == message.outbound)
            && (self.with_deleted || !message.deleted)
    }
}

/// A page of messages, the newest first, and the cursor of the next one. A page may have fewer than `limit` although there are more:
/// one page looks at a bounded number of messages.
///
/// # Errors
/// 400 `invalid_cursor`
pub async fn list(
    db: &Db,
    account: Uuid,
    filter: &Filter,
    cursor: Option<&str>,
    limit: usize,
    now: Timestamp,
) -> Result<(Vec<Message>, Option<String>), ApiError> {
    let pk = messages(account);
    let mut after = match cursor {
        Some(cursor) if is_row(cursor) => Some(cursor.to_owned()),
        Some(_) => return Err(ApiError::InvalidCursor),
        None => None,
    };
    let (mut kept, mut looked_at) = (Vec::new(), 0);
    while looked_at < MOST_LOOKED_AT {
        let query = Query::new(&db.tables.messages, "#pk = :pk", PAGE).bind("pk", &pk)?.newest_first().latest();
        let start = after.clone().map(|row| Key::new(pk.clone(), row));
        let found: Vec<Message> = db.query(query.after(start)).await?;
        looked_at += found.len();
        let is_last = found.len() < PAGE;
        for message in found {
            if filter.since.is_some_and(|since| message.sent_at < since) {
                return Ok((kept, None));
            }
            if kept.len() == limit {
                return Ok((kept, after));
            }
            after = Some(due::row(message.sent_at, message.id));
            // It counts as gone. The database deletes it later.
            if message.expires > now.secs() && filter.takes(&message) {
                kept.push(message);
            }
        }
        if is_last {
            return Ok((kept, None));
        }
    }
    Ok((kept, after))
}

/// Whether a text has the form of a message's row: 15 digits and an id.
fn is_row(text: &str) -> bool {
    text.split_once('#').is_some_and(|(time, id)| {
        time.len() == 15 && time.bytes().all(|byte| byte.is_ascii_digit()) && Uuid::try_parse(id).is_ok()
    })
}

/// What of the conversations is asked for.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    pub since: Option<Timestamp>,
    pub unread: Option<bool>,
    pub archived: Option<bool>,
}

/// A page of conversations, the one with the newest message first, and the cursor of the next one.
///
/// # Errors
/// 400 `invalid_cursor`
pub async fn conversations(
    db: &Db,
    account: Uuid,
    choice: &Choice,
    cursor: Option<&str>,
    limit: usize,
) -> Result<(Vec<Conversation>, Option<String>), ApiError> {
    let after = match cursor {
        Some(cursor) if is_row(cursor) => Some(cursor),
        Some(_) => return Err(ApiError::InvalidCursor),
        None => None,
    };
    let query = Query::new(&db.tables.messages, "#pk = :pk", MOST_CONVERSATIONS);
    let query = query.bind("pk", format!("NETCONV#{account}"))?;
    let mut all: Vec<Conversation> = db.query(query.latest()).await?;
    all.retain(|one| {
        choice.since.is_none_or(|since| one.last_message_at >= since)
            && choice.unread.is_none_or(|unread| unread == (one.unread > 0))
            && choice.archived.is_none_or(|archived| archived == one.archived)
    });
    let row = |one: &Conversation| due::row(one.last_message_at, one.id);
    all.sort_by_cached_key(|one| std::cmp::Reverse(row(one)));
    all.retain(|one| after.is_none_or(|after| row(one).as_str() < after));
    let more = all.len() > limit;
    all.truncate(limit);
    let next = all.last().filter(|_| more).map(row);
    Ok((all, next))
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

    #[test]
    fn cursors_have_one_form() {
        assert!(is_row(&due::row(Timestamp::from_secs(1), Uuid::from_u128(5))));
        for other in ["", "1#2", "000000000000001#", "00000000000000x#00000000-0000-0000-0000-000000000005"] {
            assert!(!is_row(other), "{other}");
        }
    }
}
