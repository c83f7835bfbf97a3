//! A conversation of an account: what is stored of it, and what the provider says about it.

use base::clock::Timestamp;
use base::ids::uuid_of;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::KEPT;
use super::message::Message;
use crate::providers::{Attendee, Chat, Heard};
use crate::{pages, syncing};

/// The time of a conversation that others keep changing is left to them after so many tries.
const TRIES: usize = 4;

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
    pub(super) unread: u32,
    #[serde(default)]
    pub(super) archived: bool,
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
    /// With the last of its messages.
    #[serde(default)]
    expires: i64,
}

pub fn conversation_id(account: Uuid, chat: &str) -> Uuid {
    uuid_of(&[b"network conversation", account.as_bytes(), chat.as_bytes()])
}

pub(super) fn conversation_key(account: Uuid, id: Uuid) -> Key {
    Key::new(format!("NETCONV#{account}"), id.to_string())
}

/// The list of an account's conversations, by their latest messages.
pub(super) fn list_of(account: Uuid) -> String {
    format!("NETCONVAT#{account}")
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
            expires: now.plus(KEPT).secs(),
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

/// The message's conversation, and whether it had to be made.
pub(super) async fn found_or_made(
    db: &Db,
    account: Uuid,
    heard: &Heard,
    now: Timestamp,
) -> Result<(Conversation, bool), StoreError> {
    let id = conversation_id(account, &heard.chat);
    if let Some(known) = conversation(db, account, id).await? {
        return Ok((known, false));
    }
    let new = Conversation::new(account, &heard.chat, heard.at, now);
    let writes = [
        Write::put(&db.tables.messages, conversation_key(account, id), &new)?.only_if_new(),
        syncing::count(db, account, "conversation_count")?,
        pages::put(db, &list_of(account), new.last_message_at, id, None)?,
    ];
    match db.transact(&writes).await {
        Ok(()) => Ok((new, true)),
        // Another process was faster.
        Err(WriteError::Refused(_)) => Ok((conversation(db, account, id).await?.unwrap_or(new), false)),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Notes the time of a conversation's latest message, by which conversations are listed. An older message changes nothing.
pub(super) async fn touch(
    db: &Db,
    account: Uuid,
    known: Conversation,
    message: &Message,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (id, at, list) = (known.id, message.sent_at, list_of(account));
    let mut latest = Some(known);
    for _ in 0..TRIES {
        let Some(before) = latest.filter(|known| known.last_message_at < at) else { return Ok(()) };
        let was = before.last_message_at;
        let note = Write::update(
            &db.tables.messages,
            conversation_key(account, id),
            "SET #last_message_at = :at, #updated = :now",
        )
        .only_if("#last_message_at = :was")
        .bind("at", at)?
        .bind("was", was)?
        .bind("now", now)?;
        let mut writes = vec![note];
        // Times before 1970 have one row.
        if pages::row(was, id) != pages::row(at, id) {
            writes.push(pages::delete(db, &list, was, id));
            writes.push(pages::put(db, &list, at, id, None)?);
        }
        match db.apply(writes).await {
            Ok(()) => return Ok(()),
            Err(WriteError::Refused(_)) => latest = conversation(db, account, id).await?,
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    // The message is stored. The conversation's next one brings it forward.
    Ok(())
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
    let put = put.only_if("#updated = :before AND #last_message_at = :at");
    db.write_if(put.bind("before", before.updated)?.bind("at", before.last_message_at)?).await.map(drop)
}
