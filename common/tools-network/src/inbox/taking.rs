//! Takes in what is heard of a message, by whatever it is heard.

use base::clock::Timestamp;
use platform::store::{Db, Key, StoreError, Write, WriteError, due};
use uuid::Uuid;

use super::conversation::{conversation_key, found_or_made, touch};
use super::message::{At, By, Message, at_key, messages};
use crate::providers::Heard;
use crate::syncing;

/// A message that others keep changing is given up after so many tries; a sync brings it.
const TRIES: usize = 4;

/// What hearing of a message changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub inserted: bool,
    pub updated: bool,
    pub new_conversation: bool,
}

/// Takes a message.
pub async fn take(db: &Db, account: Uuid, heard: &Heard, by: By, now: Timestamp) -> Result<Taken, StoreError> {
    let (conversation, new_conversation) = found_or_made(db, account, heard, now).await?;
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
                let (table, key) = (&db.tables.messages, Key::new(messages(account), at.row.clone()));
                let put = Write::put(table, key, &next)?.only_if("#revision = :before");
                // The pointer to it and its conversation must not expire before it does.
                let at = At { row: at.row.clone(), expires: next.expires };
                let conversation = conversation_key(account, next.conversation);
                let kept =
                    Write::update(table, conversation, "SET #expires = :expires").bind("expires", next.expires)?;
                vec![put.bind("before", known.revision)?, Write::put(table, at_key(next.id), &at)?, kept]
            }
            _ => insert(db, account, &fresh, at.is_some(), by)?,
        };
        match db.apply(writes).await {
            Ok(()) => {
                touch(db, account, conversation, known.as_ref().unwrap_or(&fresh), now).await?;
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
        // The owner answers, so the owner has read the chat.
        if message.outbound && by != By::Sync {
            "SET #updated = :now, #expires = :expires, #unread = :unread"
        } else {
            "SET #updated = :now, #expires = :expires ADD #unread :unread"
        },
    );
    Ok(vec![
        if is_known { put } else { put.only_if_new() },
        Write::put(table, Key::new(messages(account), at.row.clone()), message)?,
        count.bind("now", message.updated)?.bind("expires", message.expires)?.bind("unread", u8::from(unread))?,
        syncing::count(db, account, "message_count")?,
    ])
}
