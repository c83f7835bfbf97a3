//! Pages of messages and of conversations. What one request reads is bounded, whatever it asks for.

use base::clock::Timestamp;
use platform::http::ApiError;
use platform::store::db::Query;
use platform::store::{Db, Key, due};
use uuid::Uuid;

use super::conversation::Conversation;
use super::message::{Message, messages};

/// Most conversations of an account that are listed.
const MOST_CONVERSATIONS: usize = 1_000;
/// Most messages that one page looks at.
const MOST_LOOKED_AT: usize = 1_000;
/// Messages that one request to the database reads.
const PAGE: usize = 200;

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

    #[test]
    fn cursors_have_one_form() {
        assert!(is_row(&due::row(Timestamp::from_secs(1), Uuid::from_u128(5))));
        for other in ["", "1#2", "000000000000001#", "00000000000000x#00000000-0000-0000-0000-000000000005"] {
            assert!(!is_row(other), "{other}");
        }
    }
}
