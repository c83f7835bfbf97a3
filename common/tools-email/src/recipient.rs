//! The state of each recipient of a mail ([`messages::recipient`]), and what a poll of its job shows. Rows are kept 37 days.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
pub use messages::recipient::{
    Happened, MAX_RECIPIENTS, State, all, begin, create_all, ended, identify, load, note, refuse, summary,
};
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::address::Address;
use crate::mailbox;

/// The rows of a mail to more than this are not all read with each poll: 500 of them have some 200 KB.
const FEW: usize = 25;
/// For so long, polls of a mail to many show what one of them has counted.
const COUNTED_AGAIN: Duration = Duration::from_secs(30);

/// One recipient of a mail. `sender` is the sender's domain.
pub type Recipient = messages::recipient::Recipient<Address>;

fn counted_key(request_id: RequestId) -> Key {
    Key::new(format!("JOB#{request_id}"), "COUNTED")
}

/// The tracking of a mail to many, as a poll has counted it: `JOB#<request id>` / `COUNTED`.
#[derive(Serialize, Deserialize)]
struct Counted {
    at: Timestamp,
    /// The job had ended.
    has_ended: bool,
    /// JSON
    tracking: String,
    /// Unix seconds after which the row may be deleted.
    expires: i64,
}

/// `email_tracking` of a polled job: `{status, opens, clicks, from, to, subject, created_at, last_event_at, recipients}`.
/// `None` if there is no such job of this agent. `to` is one address, or a list of the first ten; `recipients` counts them
/// by state; `opens` and `clicks` count recipients. Of a mail to more than 25 it may be half a minute old, but is never
/// from before the job's end once that `has_ended`.
pub async fn tracking(
    db: &Db,
    agent: AgentId,
    request_id: RequestId,
    has_ended: bool,
    now: Timestamp,
) -> Result<Option<Value>, StoreError> {
    let query = Query::prefixed(&db.tables.messages, &format!("JOB#{request_id}"), "TO#", FEW + 1)?;
    let mut rows: Vec<Recipient> = db.query(query.latest()).await?;
    if rows.first().is_none_or(|row| row.agent != agent) {
        return Ok(None);
    }
    let are_many = rows.len() > FEW;
    if are_many {
        let counted: Option<Counted> = db.get_latest(&db.tables.messages, counted_key(request_id)).await?;
        let is_fresh = |counted: &Counted| counted.has_ended == has_ended && now < counted.at.plus(COUNTED_AGAIN);
        if let Some(counted) = counted.filter(is_fresh) {
            return serde_json::from_str(&counted.tracking).map(Some).map_err(StoreError::new);
        }
        rows = all(db, request_id).await?;
    }
    let Some(first) = rows.first() else { return Ok(None) };
    let sent = match mail_of(&first.message_id) {
        Some(id) => mailbox::sent(db, agent, id).await?,
        None => None,
    };
    let mut tracking = summary(&rows);
    if let Some(sent) = sent {
        tracking["from"] = json!(sent.from);
        tracking["subject"] = json!(sent.subject);
        tracking["created_at"] = json!(sent.sent_at.to_string());
    }
    if are_many {
        let counted = Counted { at: now, has_ended, tracking: tracking.to_string(), expires: first.expires };
        db.write(Write::put(&db.tables.messages, counted_key(request_id), &counted)?).await?;
    }
    Ok(Some(tracking))
}

/// The mail's id in a recipient's message id.
fn mail_of(message_id: &str) -> Option<Uuid> {
    Uuid::try_parse(message_id.split('.').next()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_id_names_its_mail() {
        assert_eq!(mail_of(&format!("{}.1@a.example", Uuid::nil())), Some(Uuid::nil()));
        assert_eq!(mail_of("x.1@a.example"), None);
    }
}
