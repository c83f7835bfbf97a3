//! Pages of messages and of conversations. What one request reads is bounded, whatever it asks for.

use base::clock::Timestamp;
use platform::http::ApiError;
use platform::store::db::Query;
use platform::store::{Db, Key};
use uuid::Uuid;

use super::conversation::{Conversation, conversation_key, list_of};
use super::message::{Message, messages};
use crate::pages::{self, Asked, Look};

/// Most messages that one page looks at. Each may have many thousand characters.
const MOST_LOOKED_AT: usize = 200;
/// Messages that one request to the database reads.
const PAGE: usize = 100;

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

    /// Whether it takes most messages.
    fn is_plain(&self) -> bool {
        self.conversation.is_none() && self.changed_since.is_none() && self.outbound.is_none()
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
    let mut after = pages::begins(cursor)?;
    // One more says whether there are more.
    let mut at_once = if filter.is_plain() { limit + 1 } else { PAGE };
    let (mut kept, mut looked_at) = (Vec::new(), 0);
    while looked_at < MOST_LOOKED_AT {
        let query = Query::new(&db.tables.messages, "#pk = :pk", at_once).bind("pk", &pk)?.newest_first().latest();
        let start = after.clone().map(|row| Key::new(pk.clone(), row));
        let found: Vec<Message> = db.query(query.after(start)).await?;
        looked_at += found.len();
        let is_last = found.len() < at_once;
        for message in found {
            if filter.since.is_some_and(|since| message.sent_at < since) {
                return Ok((kept, None));
            }
            if kept.len() == limit {
                return Ok((kept, after));
            }
            after = Some(pages::row(message.sent_at, message.id));
            // It counts as gone. The database deletes it later.
            if message.expires > now.secs() && filter.takes(&message) {
                kept.push(message);
            }
        }
        if is_last {
            return Ok((kept, None));
        }
        at_once = PAGE;
    }
    Ok((kept, after))
}

/// What of the conversations is asked for.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    pub since: Option<Timestamp>,
    pub unread: Option<bool>,
    pub archived: Option<bool>,
}

impl Choice {
    fn look(&self, one: &Conversation) -> Look {
        let is_taken = self.unread.is_none_or(|unread| unread == (one.unread > 0))
            && self.archived.is_none_or(|archived| archived == one.archived);
        match self.since {
            Some(since) if one.last_message_at < since => Look::End,
            _ if is_taken => Look::Take,
            _ => Look::Pass,
        }
    }
}

/// A page of conversations, the one with the newest message first, and the cursor of the next one. It may have fewer than `limit`
/// although there are more.
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
    let is_plain = choice.unread.is_none() && choice.archived.is_none();
    let asked = Asked { partition: &list_of(account), cursor, limit, is_plain };
    let key = |id| conversation_key(account, id);
    pages::page(db, &asked, key, |one: &Conversation| one.last_message_at, |one: &Conversation| choice.look(one)).await
}
