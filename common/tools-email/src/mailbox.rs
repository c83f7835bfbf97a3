//! Stored mails of an agent, inbound and sent, kept 30 days.
//!
//! Two kinds of items in the agent's partition, `IN#<id>` and `OUT#<id>`. Ids begin with the time (UUID version 7), so a
//! partition is sorted by time. The text and the attachments of an inbound mail are blobs, written before the item: a mail
//! that is listed is complete. DynamoDB deletes expired items some time after they expire, so a reader compares:
//! [`Inbound::is_expired`], [`Sent::is_expired`], and for the inbox a `since` that is not older than [`KEPT`].

use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use base::ids::{AgentId, RequestId, uuid_of};
use messages::ids;
use platform::store::db::Query;
use platform::store::{Blobs, Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::address::Address;
use crate::compose::Attached;

/// How long mails are kept.
pub const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long an agent's correspondents are remembered after its last mail to them.
const WROTE: Duration = Duration::from_secs(180 * 24 * 3600);
/// Most mails of one page of the inbox.
pub const MAX_PAGE: usize = 200;
/// Most recipients, references and attachments named in an item.
const MAX_TO: usize = 10;
const MAX_REFERENCES: usize = 20;
const MAX_ATTACHMENTS: usize = 25;
/// Longest texts of an item, in characters: a sender must not fill it.
const MAX_SUBJECT: usize = 1000;
const MAX_NAME: usize = 255;
const MAX_MESSAGE_ID: usize = 500;

/// An inbound mail: `AGENT#<agent>` / `IN#<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbound {
    pub id: Uuid,
    pub agent: AgentId,
    /// The agent's address that it came to (envelope).
    pub to: Address,
    /// The sender according to the header; empty for a bounce without one.
    pub from: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_name: Option<String>,
    /// The agent of this deployment that sent it; not for a mail from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_agent: Option<AgentId>,
    /// Where the sender wants answers to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Address>,
    pub subject: String,
    /// Without `<>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Message ids of the thread, oldest first, at most 20.
    #[serde(default)]
    pub references: Vec<String>,
    pub thread_id: Uuid,
    /// The agent's own mail that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_reply_to_sent: Option<Uuid>,
    pub received_at: Timestamp,
    /// Of the raw mail, in bytes.
    pub size: u32,
    /// Its body is not the whole text; the whole mail is the blob [`raw_key`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
    #[serde(default)]
    pub verdicts: Verdicts,
    #[serde(default)]
    pub attachments: Vec<StoredAttachment>,
    /// Unix seconds after which it is no longer shown and may be deleted.
    pub expires: i64,
}

/// Results of the receiver's checks: `pass`, `fail`, `none`, …; `None` if there was no check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdicts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spf: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dkim: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dmarc: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spam: Option<String>,
}

/// An attachment; its content is the blob [`attachment_key`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAttachment {
    pub filename: String,
    pub content_type: String,
    /// bytes
    pub size: u32,
}

/// The text of an inbound mail: the blob `mail/<id>/body.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    pub text: String,
    /// Sanitised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
}

/// A mail that the agent sent: `AGENT#<agent>` / `OUT#<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    pub id: Uuid,
    pub agent: AgentId,
    pub request_id: RequestId,
    pub from: Address,
    /// The first ten recipients.
    pub to: Vec<Address>,
    /// All recipients.
    pub recipients: u32,
    pub subject: String,
    /// Message ids of the thread that it answers, oldest first, at most 20.
    #[serde(default)]
    pub references: Vec<String>,
    pub thread_id: Uuid,
    pub sent_at: Timestamp,
    /// Unix seconds after which it may be deleted.
    pub expires: i64,
}

impl Inbound {
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires <= now.secs()
    }

    /// The mail with lists and texts cut, so that its item stays small.
    fn bounded(&self) -> Inbound {
        let mut mail = self.clone();
        mail.from = clipped(&mail.from, MAX_NAME);
        mail.from_name = mail.from_name.map(|name| clipped(&name, MAX_NAME));
        mail.subject = clipped(&mail.subject, MAX_SUBJECT);
        // A cut message id would be another id.
        mail.message_id = mail.message_id.filter(|id| id.len() <= MAX_MESSAGE_ID);
        mail.references = bounded_references(mail.references);
        mail.attachments.truncate(MAX_ATTACHMENTS);
        for attachment in &mut mail.attachments {
            attachment.filename = clipped(&attachment.filename, MAX_NAME);
            attachment.content_type = clipped(&attachment.content_type, MAX_NAME);
        }
        mail
    }
}

impl Sent {
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires <= now.secs()
    }
}

fn clipped(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// The thread's first message and the latest ones.
fn bounded_references(mut references: Vec<String>) -> Vec<String> {
    references.retain(|id| !id.is_empty() && id.len() <= MAX_MESSAGE_ID);
    if references.len() > MAX_REFERENCES {
        references.drain(1..=references.len() - MAX_REFERENCES);
    }
    references
}

/// UUID version 7 of a time and of what identifies the mail, so that a repeated write writes the same item. Of an inbound
/// mail the parts must include the agent: blobs are found by the mail's id alone.
pub fn mail_id(at: Timestamp, parts: &[&[u8]]) -> Uuid {
    let mut all = vec![b"mail".as_slice()];
    all.extend_from_slice(parts);
    ids::message_uuid(at, &all)
}

/// The id of a thread: derived from its first mail's message id, so that every mail of the thread gives the same.
pub fn thread_of(agent: AgentId, root_message_id: &str) -> Uuid {
    uuid_of(&[b"mail thread", agent.bytes(), root_message_id.as_bytes()])
}

fn partition(agent: AgentId) -> String {
    format!("AGENT#{agent}")
}

fn inbound_key(agent: AgentId, id: Uuid) -> Key {
    Key::new(partition(agent), format!("IN#{id}"))
}

fn sent_key(agent: AgentId, id: Uuid) -> Key {
    Key::new(partition(agent), format!("OUT#{id}"))
}

pub fn body_key(id: Uuid) -> String {
    format!("mail/{id}/body.json")
}

/// The blob of an inbound mail's attachment; `index` is its place in [`Inbound::attachments`].
pub fn attachment_key(id: Uuid, index: usize) -> String {
    format!("mail/{id}/{index}")
}

/// The blob of a whole inbound mail, as it arrived. Only there for those whose body was cut ([`Inbound::is_cut`]).
pub fn raw_key(id: Uuid) -> String {
    format!("mail/{id}/mail.eml")
}

/// Stores an inbound mail: the blobs first, then the item. `raw` is the whole mail. False if it is stored already; a repeat
/// writes the same blobs, so look with [`inbound`] first.
pub async fn put_inbound(
    db: &Db,
    blobs: &dyn Blobs,
    mail: &Inbound,
    body: &Body,
    attachments: Vec<Attached>,
    raw: &[u8],
) -> Result<bool, StoreError> {
    let text = serde_json::to_vec(body).map_err(StoreError::new)?;
    blobs.put(&body_key(mail.id), "application/json", text).await?;
    if mail.is_cut {
        blobs.put(&raw_key(mail.id), "application/octet-stream", raw.to_vec()).await?;
    }
    for (index, attachment) in attachments.into_iter().take(MAX_ATTACHMENTS).enumerate() {
        // Not the sender's content type: a blob must not be shown as a page.
        blobs.put(&attachment_key(mail.id, index), "application/octet-stream", attachment.content).await?;
    }
    let key = inbound_key(mail.agent, mail.id);
    db.write_if(Write::put(&db.tables.messages, key, &mail.bounded())?.only_if_new()).await
}

/// Stores a sent mail, once.
pub async fn put_sent(db: &Db, sent: &Sent) -> Result<(), StoreError> {
    let mut sent = sent.clone();
    sent.to.truncate(MAX_TO);
    sent.subject = clipped(&sent.subject, MAX_SUBJECT);
    sent.references = bounded_references(sent.references);
    let write = Write::put(&db.tables.messages, sent_key(sent.agent, sent.id), &sent)?.only_if_new();
    db.write_if(write).await?;
    Ok(())
}

fn written_to_key(agent: AgentId, to: &Address) -> Key {
    let digest = digest::sha256_parts(&[to.folded().as_bytes()]);
    Key::new(partition(agent), format!("WROTE#{}", const_hex::encode(digest)))
}

/// The agent writes to this address. Before the mail is handed over, because an answer may come at once.
pub async fn note_written_to(db: &Db, agent: AgentId, to: &Address, now: Timestamp) -> Result<(), StoreError> {
    let expires = json!({"expires": now.plus(WROTE).secs()});
    db.write(Write::put(&db.tables.messages, written_to_key(agent, to), &expires)?).await?;
    Ok(())
}

/// Whether the agent has written to this address.
pub async fn has_written_to(db: &Db, agent: AgentId, to: &Address) -> Result<bool, StoreError> {
    Ok(db.get::<Value>(&db.tables.messages, written_to_key(agent, to)).await?.is_some())
}

/// An inbound mail of this agent. Check [`Inbound::is_expired`].
pub async fn inbound(db: &Db, agent: AgentId, id: Uuid) -> Result<Option<Inbound>, StoreError> {
    db.get_latest(&db.tables.messages, inbound_key(agent, id)).await
}

/// A mail that this agent sent. Check [`Sent::is_expired`].
pub async fn sent(db: &Db, agent: AgentId, id: Uuid) -> Result<Option<Sent>, StoreError> {
    db.get_latest(&db.tables.messages, sent_key(agent, id)).await
}

/// The text of an inbound mail. The caller has read its item, so the mail is the agent's.
pub async fn body(blobs: &dyn Blobs, id: Uuid) -> Result<Option<Body>, StoreError> {
    let Some(bytes) = blobs.get(&body_key(id)).await? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(StoreError::new)
}

/// The content of an inbound mail's attachment.
pub async fn attachment(blobs: &dyn Blobs, id: Uuid, index: usize) -> Result<Option<Vec<u8>>, StoreError> {
    blobs.get(&attachment_key(id, index)).await
}

/// Inbound mails, newest first: at most `limit` (1 to 200), received at `since` or later, older than the mail `before` (the
/// last one of the page before, which need not exist). True if there are more. Without `since`, expired mails that are
/// not deleted yet are among them.
pub async fn inbox(
    db: &Db,
    agent: AgentId,
    since: Option<Timestamp>,
    before: Option<Uuid>,
    limit: usize,
) -> Result<(Vec<Inbound>, bool), StoreError> {
    let limit = limit.clamp(1, MAX_PAGE);
    let Some((from, to)) = ids::page("IN#", since, before) else { return Ok((Vec::new(), false)) };
    let query = Query::between(&db.tables.messages, &partition(agent), &from, &to, limit + 1)?;
    let mut mails: Vec<Inbound> = db.query(query.newest_first().latest()).await?;
    let more = mails.len() > limit;
    mails.truncate(limit);
    Ok((mails, more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_threads_keep_their_first_and_latest_messages() {
        let ids = |count: usize| -> Vec<String> { (0..count).map(|index| format!("{index}@a.example")).collect() };
        for (count, kept) in [(0, 0), (1, 1), (20, 20), (21, 20), (300, 20)] {
            let references = bounded_references(ids(count));
            assert_eq!(references.len(), kept, "{count}");
            assert_eq!(references.first(), ids(count).first());
            assert_eq!(references.last(), ids(count).last());
        }
        assert_eq!(bounded_references(vec!["x".repeat(MAX_MESSAGE_ID + 1), String::new()]), Vec::<String>::new());
    }
}
