//! Notifications to agents: jobs that ended, credits issued, budgets nearly spent, mails that arrived.
//!
//! A notification is one item of the agents table, `AGENT#<agent>` / `NOTE#<ulid>`, sorted by its key. Its id is derived
//! from its cause and the time of the cause. The write has no condition and does not touch the read mark, so raising
//! it twice has the same effect as once.
//!
//! An index keeps read and unread notifications apart, by the time they were raised, so listing the unread ones reads only
//! those. "Mark all as read" moves one mark (`AGENT#<agent>` / `NOTES`): everything raised before it counts as read. The
//! mark uses the time of raising, not the time in the id. Otherwise a notification raised late (from a stream) would count
//! as read before anybody saw it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256_parts;
use base::ids::AgentId;
use platform::store::db::Query;
use platform::store::table::INBOX_INDEX;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use ulid::Ulid;

/// How long a notification can be read.
pub const RETENTION: Duration = Duration::from_secs(90 * 24 * 3600);
/// Maximum length of a list.
pub const MOST_LISTED: u64 = 200;
/// Upper limit of the count that `read_all` returns.
const MOST_COUNTED: usize = 1000;
/// Writes started longer ago than this are done and visible in the index. The read mark never covers newer ones.
const SETTLING: Duration = Duration::from_secs(5);
/// Concurrent writes.
const AT_ONCE: usize = 10;

/// The kind of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationKind {
    JobCompleted,
    JobFailed,
    VoiceCompleted,
    SmsCompleted,
    CreditIssued,
    DomainExpiring,
    PhoneExpiring,
    BudgetWarning,
    BudgetExceeded,
    ApprovalDecided,
    SoulJobCompleted,
    SoulSale,
    PayoutCompleted,
    LinkedinReconnectRequired,
    /// A mail has arrived in the agent's mailbox.
    EmailReceived,
    /// A mail that the agent sent was refused for good after it had been accepted for delivery.
    EmailBounced,
    /// Too many of the agent's mails bounced or were reported as spam: it sends nothing more out of the deployment.
    EmailStopped,
    /// A text has arrived at one of the agent's numbers.
    SmsReceived,
    /// Events could not be delivered to one of the agent's webhook endpoints (see `webhooks`).
    WebhookFailed,
    /// The agent's mailbox refuses mails today.
    EmailRefused,
    /// A site that was built for the agent will be taken down, or was.
    SiteExpiring,
    /// A goal waits for its owner's answer.
    GoalWaiting,
    /// A purchase moved: it was sent, delivered, cancelled or paid back.
    OrderUpdated,
}

/// A notification to raise.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    pub kind: NotificationKind,
    pub title: String,
    pub body: Option<String>,
    /// A JSON object for programs.
    pub payload: Option<Value>,
}

/// The id of a notification, `note_<ulid>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotificationId(Ulid);

impl NotificationId {
    /// The same cause at the same time gives the same id.
    pub fn of(agent: AgentId, kind: NotificationKind, cause: &str, at: Timestamp) -> NotificationId {
        let millis = u64::try_from(at.millis()).unwrap_or_default();
        let kind = json!(kind).to_string();
        let digest = sha256_parts(&[b"notification", agent.bytes(), kind.as_bytes(), cause.as_bytes()]);
        let mut random = [0; 16];
        random[6..].copy_from_slice(&digest[..10]);
        NotificationId(Ulid::from_parts(millis, u128::from_be_bytes(random)))
    }
}

impl fmt::Display for NotificationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "note_{}", self.0)
    }
}

impl FromStr for NotificationId {
    type Err = ();

    fn from_str(text: &str) -> Result<NotificationId, ()> {
        let ulid = text.strip_prefix("note_").ok_or(())?;
        let id = Ulid::from_string(ulid).map(NotificationId).map_err(drop)?;
        // Only one spelling is accepted, because the text is part of the key.
        if id.to_string() == text { Ok(id) } else { Err(()) }
    }
}

/// A stored notification.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Note {
    id: String,
    kind: NotificationKind,
    title: String,
    #[serde(default)]
    body: Option<String>,
    /// JSON
    #[serde(default)]
    payload: Option<String>,
    created: Timestamp,
    /// When it was first written.
    raised: Timestamp,
    /// Partition of the inbox index.
    inbox: String,
}

/// The read mark: notifications raised up to `read_until` count as read.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Mark {
    #[serde(default)]
    read_until: Option<Timestamp>,
}

fn partition(agent: AgentId) -> String {
    format!("AGENT#{agent}")
}

fn key(agent: AgentId, id: NotificationId) -> Key {
    Key::new(partition(agent), format!("NOTE#{}", id.0))
}

fn mark_key(agent: AgentId) -> Key {
    Key::new(partition(agent), "NOTES")
}

fn unread_box(agent: AgentId) -> String {
    format!("UNREAD#{agent}")
}

fn read_box(agent: AgentId) -> String {
    format!("READ#{agent}")
}

/// The write that raises a notification, alone or in a caller's transaction. It has no condition.
///
/// `now` is part of the id. If the same cause may be raised again later, use [`raise_for`].
pub fn raise(db: &Db, agent: AgentId, note: Notification, cause: &str, now: Timestamp) -> Result<Write, StoreError> {
    raise_for(db, agent, note, cause, now, now)
}

/// Like [`raise`], for something that happened at `happened`, which must be the same each time. Raising it again for the
/// same cause (a redelivered message; a daily warning, whose time is the start of the day) leaves one notification.
pub fn raise_for(
    db: &Db,
    agent: AgentId,
    note: Notification,
    cause: &str,
    happened: Timestamp,
    now: Timestamp,
) -> Result<Write, StoreError> {
    let id = NotificationId::of(agent, note.kind, cause, happened);
    let mut set = "SET #id = :id, #kind = :kind, #title = :title, #created = :created, #expires = :expires, \
                   #raised = if_not_exists(#raised, :raised), #inbox = if_not_exists(#inbox, :inbox)"
        .to_owned();
    if note.body.is_some() {
        set.push_str(", #body = :body");
    }
    if note.payload.is_some() {
        set.push_str(", #payload = :payload");
    }
    let mut write = Write::update(&db.tables.agents, key(agent, id), &set)
        .bind("id", id.to_string())?
        .bind("kind", note.kind)?
        .bind("title", note.title)?
        .bind("created", happened)?
        .bind("expires", happened.plus(RETENTION).secs())?
        .bind("raised", now)?
        .bind("inbox", unread_box(agent))?;
    if let Some(body) = note.body {
        write = write.bind("body", body)?;
    }
    if let Some(payload) = note.payload {
        write = write.bind("payload", payload.to_string())?;
    }
    Ok(write)
}

/// Raises a notification.
pub async fn raise_now(
    db: &Db,
    agent: AgentId,
    note: Notification,
    cause: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    db.write(raise(db, agent, note, cause, now)?).await?;
    Ok(())
}

/// Runs writes made by [`raise_for`], a few at a time. After an error the other writes still run. The whole call may
/// be retried.
pub async fn raise_all(db: &Db, writes: Vec<Write>) -> Result<(), StoreError> {
    let mut writes = writes.into_iter();
    let mut running = tokio::task::JoinSet::new();
    let mut result = Ok(());
    loop {
        while running.len() < AT_ONCE
            && let Some(write) = writes.next()
        {
            let db = db.clone();
            running.spawn(async move { db.write(write).await.map(drop).map_err(StoreError::from) });
        }
        match running.join_next().await {
            None => return result,
            Some(done) => result = result.and(done.map_err(StoreError::new).and_then(|written| written)),
        }
    }
}

/// An agent's newest notifications as JSON for its owner.
pub async fn list(db: &Db, agent: AgentId, unread: bool, limit: usize) -> Result<Vec<Value>, StoreError> {
    let table = &db.tables.agents;
    let until = read_until(db, agent).await?;
    let query = match unread {
        true => unread_since(db, agent, until, limit)?,
        false => Query::prefixed(table, &partition(agent), "NOTE#", limit)?.newest_first(),
    };
    let mut notes: Vec<Note> = db.query(query).await?;
    // The index sorts by time of raising; readers expect the time of the cause.
    notes.sort_by(|left, right| right.id.cmp(&left.id));
    Ok(notes.iter().map(|note| note.to_json(agent, until)).collect())
}

async fn read_until(db: &Db, agent: AgentId) -> Result<Timestamp, StoreError> {
    let mark: Option<Mark> = db.get_latest(&db.tables.agents, mark_key(agent)).await?;
    Ok(mark.and_then(|mark| mark.read_until).unwrap_or(Timestamp::from_millis(0)))
}

fn unread_since(db: &Db, agent: AgentId, until: Timestamp, limit: usize) -> Result<Query<'_>, StoreError> {
    let query = Query::new(&db.tables.agents, "#inbox = :inbox AND #raised > :until", limit).index(INBOX_INDEX.name);
    Ok(query.bind("inbox", unread_box(agent))?.bind("until", until)?.newest_first())
}

/// Marks one notification as read: 1 if it was unread, 0 if it was read already, `None` if it does not exist.
pub async fn read(db: &Db, agent: AgentId, id: NotificationId) -> Result<Option<u64>, StoreError> {
    let write = Write::update(&db.tables.agents, key(agent, id), "SET #inbox = :read")
        .only_if("#inbox = :unread")
        .bind("read", read_box(agent))?
        .bind("unread", unread_box(agent))?;
    match db.write(write).await {
        Ok(_) => Ok(Some(1)),
        Err(WriteError::Failed(error)) => Err(error),
        Err(refused) => Ok(refused.refused(0).is_some_and(|refused| refused.old.is_some()).then_some(0)),
    }
}

/// Marks all notifications as read. Returns how many were unread (counted up to a thousand).
pub async fn read_all(db: &Db, agent: AgentId, now: Timestamp) -> Result<u64, StoreError> {
    let until = read_until(db, agent).await?;
    let unread: Vec<Note> = db.query(unread_since(db, agent, until, MOST_COUNTED)?).await?;
    let Some(newest) = unread.first() else { return Ok(0) };
    let mark = newest.raised.min(now.minus(SETTLING));
    // The mark cannot cover the newest notifications, because others may be written at this moment. Mark these one by one.
    for note in unread.iter().take_while(|note| note.raised > mark) {
        if let Ok(id) = note.id.parse() {
            read(db, agent, id).await?;
        }
    }
    let write = Write::update(&db.tables.agents, mark_key(agent), "SET #read_until = :until")
        .only_if("attribute_not_exists(#read_until) OR #read_until < :until")
        .bind("until", mark)?;
    match db.write(write).await {
        // Refused: another call has already moved the mark at least as far.
        Ok(_) | Err(WriteError::Refused(_)) => Ok(unread.len() as u64),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

impl Note {
    /// Some members appear under two names (`created_at` and `createdAt`, `payload` and `metadata`).
    fn to_json(&self, agent: AgentId, read_until: Timestamp) -> Value {
        let payload = self.payload.as_deref().and_then(|payload| serde_json::from_str::<Value>(payload).ok());
        let created = self.created.to_string();
        let mut body = json!({
            "id": self.id,
            "type": self.kind,
            "title": self.title,
            "read": self.inbox == read_box(agent) || self.raised <= read_until,
            "created_at": created,
            "createdAt": created,
            "agentId": agent,
            "metadata": payload.clone().unwrap_or_else(|| json!({})),
        });
        if let Some(text) = &self.body {
            body["body"] = json!(text);
        }
        if let Some(payload) = payload {
            body["payload"] = payload;
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use evm::Address;

    use super::*;

    #[test]
    fn ids_depend_on_the_cause_and_sort_by_time() {
        let agent = AgentId::of(Address::ZERO);
        let id = |kind, cause, secs| NotificationId::of(agent, kind, cause, Timestamp::from_secs(secs));
        let first = id(NotificationKind::JobFailed, "a", 10);
        assert_eq!(first, id(NotificationKind::JobFailed, "a", 10));
        assert_ne!(first, id(NotificationKind::CreditIssued, "a", 10), "one cause may raise two kinds");
        assert_ne!(first, id(NotificationKind::JobFailed, "b", 10));
        assert!(first < id(NotificationKind::JobFailed, "a", 11));
        assert_eq!(first.to_string().parse(), Ok(first));
        for wrong in ["", "note_", &first.to_string().to_lowercase(), &first.to_string()[5..], "note_x#y"] {
            assert!(wrong.parse::<NotificationId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn kinds_have_their_wire_names() {
        use NotificationKind::*;
        for (kind, name) in [
            (JobCompleted, "job_completed"),
            (JobFailed, "job_failed"),
            (VoiceCompleted, "voice_completed"),
            (SmsCompleted, "sms_completed"),
            (CreditIssued, "credit_issued"),
            (DomainExpiring, "domain_expiring"),
            (PhoneExpiring, "phone_expiring"),
            (BudgetWarning, "budget_warning"),
            (BudgetExceeded, "budget_exceeded"),
            (ApprovalDecided, "approval_decided"),
            (SoulJobCompleted, "soul_job_completed"),
            (SoulSale, "soul_sale"),
            (PayoutCompleted, "payout_completed"),
            (LinkedinReconnectRequired, "linkedin_reconnect_required"),
            (EmailReceived, "email_received"),
            (EmailBounced, "email_bounced"),
            (EmailStopped, "email_stopped"),
            (SmsReceived, "sms_received"),
            (WebhookFailed, "webhook_failed"),
        ] {
            assert_eq!(json!(kind), json!(name));
        }
    }
}
