//! Stored texts of an agent, inbound and sent, kept 30 days.
//!
//! An inbound text is two items in the agent's partition: `SMS#<id>`, and `SMSFROM#<hash of the sender>#<id>` for lists of one
//! sender. Both are written in one transaction. A sent text is one item, `SMSOUT#<id>`, for all of its recipients, and
//! `PAIR#<hash of both numbers>` names the last text to each of them. Ids begin with the time (UUID version 7), so each kind
//! is sorted by time. DynamoDB deletes expired items some time after they expire, so a reader compares
//! ([`Text::is_expired`]).

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256_parts;
use base::ids::{AgentId, RequestId, uuid_of};
use base::untrusted_text::visible;
use futures_util::{StreamExt, TryStreamExt, stream};
use messages::ids;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::number::Number;

/// How long texts are kept.
pub const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Most texts of one page of the inbox.
pub const MAX_PAGE: usize = 200;
/// Most characters of an inbound text; the rest is cut off. No text of a phone is as long.
pub const MAX_BODY: usize = 1600;
/// Most characters of a sender.
pub const MAX_SENDER: usize = 32;
/// Digits of a number with its country code. Fewer are a short code.
const NUMBER_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;
/// Rows that are written at the same time.
const AT_ONCE: usize = 8;

/// An inbound text: `AGENT#<agent>` / `SMS#<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    pub id: Uuid,
    pub agent: AgentId,
    /// A number in E.164 form, or a short code or a name as the provider says ([`sender`]).
    pub from: String,
    /// The agent's number that it came to.
    pub to: Number,
    /// Without control and invisible characters, except line feeds, tabs and joiners.
    pub body: String,
    pub received_at: Timestamp,
    /// Pictures and other files that came with it. They are not fetched.
    pub num_media: u32,
    /// Of all texts between these two numbers.
    pub thread_id: Uuid,
    /// The agent's last text to the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related_outbound_id: Option<Uuid>,
    /// The call that sent that text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related_request_id: Option<RequestId>,
    /// The service's own answer to a STOP, START or HELP of this agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub automatic: bool,
    /// `stop`, `start` or `help`, if that is what the text says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// Unix seconds after which it is no longer shown and may be deleted.
    pub expires: i64,
}

/// A text that the agent sent: `AGENT#<agent>` / `SMSOUT#<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    pub id: Uuid,
    pub agent: AgentId,
    pub request_id: RequestId,
    pub from: Number,
    pub to: Vec<Number>,
    pub body: String,
    pub segments: u32,
    pub sent_at: Timestamp,
    /// Unix seconds after which it may be deleted.
    pub expires: i64,
}

/// The last text from one number to another: `AGENT#<agent>` / `PAIR#<hash of both>`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pair {
    last_out: Uuid,
    expires: i64,
}

impl Text {
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires <= now.secs()
    }
}

/// 16 hexadecimal digits of a hash, for keys.
pub(crate) fn short_hash(parts: &[&[u8]]) -> String {
    const_hex::encode(&sha256_parts(parts)[..8])
}

/// A sender as it is stored and looked for: a number in E.164 form (its `+` may be missing, or have become a space), or else
/// the text, cleaned and cut.
pub fn sender(text: &str) -> String {
    let text = visible(text).replace(['\n', '\t'], " ");
    let text = text.trim();
    let digits = text.strip_prefix('+').unwrap_or(text);
    if NUMBER_DIGITS.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("+{digits}");
    }
    text.chars().take(MAX_SENDER).collect::<String>().trim_end().to_owned()
}

/// The thread of the texts between an agent's number and another one.
pub fn thread_of(agent: AgentId, own: &Number, other: &str) -> Uuid {
    uuid_of(&[b"sms thread", agent.bytes(), own.as_str().as_bytes(), other.as_bytes()])
}

fn partition(agent: AgentId) -> String {
    format!("AGENT#{agent}")
}

fn text_key(agent: AgentId, id: Uuid) -> Key {
    Key::new(partition(agent), format!("SMS#{id}"))
}

/// What the keys of a sender's texts begin with.
fn of_sender(from: &str) -> String {
    format!("SMSFROM#{}#", short_hash(&[from.as_bytes()]))
}

fn sent_key(agent: AgentId, id: Uuid) -> Key {
    Key::new(partition(agent), format!("SMSOUT#{id}"))
}

fn pair_key(agent: AgentId, own: &Number, other: &str) -> Key {
    Key::new(partition(agent), format!("PAIR#{}", short_hash(&[own.as_str().as_bytes(), other.as_bytes()])))
}

/// Stores an inbound text, once. False if it is stored already.
pub async fn put_text(db: &Db, text: &Text) -> Result<bool, StoreError> {
    let table = &db.tables.messages;
    let listed = Key::new(partition(text.agent), format!("{}{}", of_sender(&text.from), text.id));
    let writes = [
        Write::put(table, text_key(text.agent, text.id), text)?.only_if_new(),
        Write::put(table, listed, text)?.only_if_new(),
    ];
    match db.transact(&writes).await {
        Ok(()) => Ok(true),
        Err(WriteError::Refused(_)) => Ok(false),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Stores a sent text, once.
pub async fn put_sent(db: &Db, sent: &Sent) -> Result<(), StoreError> {
    let write = Write::put(&db.tables.messages, sent_key(sent.agent, sent.id), sent)?.only_if_new();
    db.write_if(write).await?;
    Ok(())
}

/// A text that this agent sent.
pub async fn sent(db: &Db, agent: AgentId, id: Uuid) -> Result<Option<Sent>, StoreError> {
    db.get_latest(&db.tables.messages, sent_key(agent, id)).await
}

/// Names `sent` as the last text from `own` to each of `others`, unless a later one is named. Repeating it is harmless. An
/// answer names it from then on, so call it before the text is handed over.
pub async fn put_pairs(
    db: &Db,
    agent: AgentId,
    own: &Number,
    others: &[Number],
    sent: Uuid,
    now: Timestamp,
) -> Result<(), StoreError> {
    let pair = Pair { last_out: sent, expires: now.plus(KEPT).secs() };
    let writes: Vec<Write> = others
        .iter()
        .map(|other| {
            Write::put(&db.tables.messages, pair_key(agent, own, other.as_str()), &pair)?
                // Ids sort by time.
                .only_if("attribute_not_exists(#pk) OR #last_out < :sent")
                .bind("sent", sent)
        })
        .collect::<Result<_, _>>()?;
    let writes: Vec<_> = writes.into_iter().map(|write| db.write_if(write)).collect();
    stream::iter(writes).buffer_unordered(AT_ONCE).try_for_each(|_| async { Ok(()) }).await
}

/// The agent's last text from `own` to the other number ([`Sent::id`]), if it is not older than [`KEPT`].
pub async fn last_out(
    db: &Db,
    agent: AgentId,
    own: &Number,
    other: &str,
    now: Timestamp,
) -> Result<Option<Uuid>, StoreError> {
    let pair: Option<Pair> = db.get_latest(&db.tables.messages, pair_key(agent, own, other)).await?;
    Ok(pair.filter(|pair| now.secs() < pair.expires).map(|pair| pair.last_out))
}

/// An inbound text of this agent. Check [`Text::is_expired`].
pub async fn text(db: &Db, agent: AgentId, id: Uuid) -> Result<Option<Text>, StoreError> {
    db.get_latest(&db.tables.messages, text_key(agent, id)).await
}

/// Inbound texts, newest first: at most `limit` (1 to 200), of one sender if `from` is given (as [`sender`] writes it),
/// received at `since` or later, older than the text `before` (the last one of the page before, which need not exist). True
/// if there are more. Expired texts that are not deleted yet are among them.
pub async fn inbox(
    db: &Db,
    agent: AgentId,
    from: Option<&str>,
    since: Option<Timestamp>,
    before: Option<Uuid>,
    limit: usize,
) -> Result<(Vec<Text>, bool), StoreError> {
    let limit = limit.clamp(1, MAX_PAGE);
    let prefix = from.map_or_else(|| "SMS#".to_owned(), of_sender);
    let Some((first, last)) = ids::page(&prefix, since, before) else { return Ok((Vec::new(), false)) };
    let query = Query::between(&db.tables.messages, &partition(agent), &first, &last, limit + 1)?;
    let mut texts: Vec<Text> = db.query(query.newest_first().latest()).await?;
    let more = texts.len() > limit;
    texts.truncate(limit);
    Ok((texts, more))
}

/// A text as its agent sees it.
pub fn view(text: &Text) -> Value {
    let at = text.received_at.to_string();
    let mut view = json!({
        "id": text.id,
        "from": text.from,
        "to": text.to,
        "body": text.body,
        "received_at": at,
        "created_at": at,
        "num_media": text.num_media,
        // The provider's URLs need the operator's key.
        "media_urls": [],
        "thread_id": text.thread_id,
    });
    for (name, value) in [
        ("related_outbound_id", text.related_outbound_id.map(|id| json!(id))),
        ("related_request_id", text.related_request_id.map(|id| json!(id))),
        ("automatic", text.automatic.then_some(json!(true))),
        ("keyword", text.keyword.as_ref().map(|keyword| json!(keyword))),
    ] {
        if let Some(value) = value {
            view[name] = value;
        }
    }
    view
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_has_one_spelling() {
        for (text, expected) in [
            ("+14155550123", "+14155550123"),
            ("14155550123", "+14155550123"),
            // The plus sign of a query that was not escaped.
            (" 14155550123", "+14155550123"),
            ("24273", "24273"),
            ("+24273", "+24273"),
            (" My\u{202e} Bank\r\n", "My Bank"),
            ("+1 415 555 0123", "+1 415 555 0123"),
            ("1234567890123456", "1234567890123456"),
            ("", ""),
        ] {
            assert_eq!(sender(text), expected, "{text:?}");
            assert_eq!(sender(&sender(text)), sender(text), "{text:?}");
        }
        assert_eq!(sender(&"ä".repeat(100)), "ä".repeat(MAX_SENDER));
    }
}
