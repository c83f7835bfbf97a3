//! What of an account's messages is here, and the runs that read them.
//!
//! | item (table messages) | key |
//! |---|---|
//! | how far an account is read | `NETSYNC#<account>` / `COVERAGE` |
//! | the run that reads it now | `NETSYNC#<account>` / `LOCK` |
//! | that an account has a run | `NETSYNC#<account>` / `RUN#<time>#<run>` |
//! | a run | `NETRUN#<run>` / `RUN` |

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, due};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::account::{self, Account};

/// A run can be read for so long.
const KEPT: Duration = Duration::from_secs(90 * 24 * 3600);
/// Runs that an account shows.
const MOST_SHOWN: usize = 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    #[default]
    Never,
    Requested,
    Running,
    Done,
    Error,
}

/// How far an account is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    #[serde(default)]
    pub history: History,
    /// All of it has been read once, then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_at: Option<Timestamp>,
    /// The beginning of the reading that goes on at `cursor`, or that was the last whole one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enumerated_as_of: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incremental_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_at: Option<Timestamp>,
    /// Where the next run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The reading that goes on at `cursor` needs nothing older: all of that was read before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(default)]
    pub message_count: u32,
    #[serde(default)]
    pub conversation_count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Initial,
    Continue,
    Incremental,
    HistoryRequest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Queued,
    Running,
    Succeeded,
    Failed,
    Paused,
}

impl Status {
    pub fn is_over(self) -> bool {
        matches!(self, Status::Succeeded | Status::Failed | Status::Paused)
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub id: RequestId,
    pub agent: AgentId,
    pub account: Uuid,
    pub kind: Kind,
    pub status: Status,
    pub max_pages: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<RequestId>,
    /// Where its next page is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// What is older was read before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    pub pages: u32,
    pub requests: u32,
    pub rate_limited: u32,
    /// Times that it began anew, because the provider knew its cursor no more.
    #[serde(default)]
    pub cursor_resets: u32,
    pub seen: u32,
    pub inserted: u32,
    pub updated: u32,
    pub conversations: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earliest: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest: Option<Timestamp>,
    /// The provider's word for its own sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_status: Option<String>,
    pub upstream_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub created: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Timestamp>,
    /// Counts the writes.
    pub revision: u32,
    pub expires: i64,
}

#[derive(Serialize, Deserialize)]
struct Pointer {
    run: RequestId,
    expires: i64,
}

fn coverage_key(account: Uuid) -> Key {
    Key::new(format!("NETSYNC#{account}"), "COVERAGE")
}

pub fn lock_key(account: Uuid) -> Key {
    Key::new(format!("NETSYNC#{account}"), "LOCK")
}

fn run_key(run: RequestId) -> Key {
    Key::new(format!("NETRUN#{run}"), "RUN")
}

/// The write that counts one more message or conversation.
pub fn count(db: &Db, account: Uuid, what: &'static str) -> Result<Write, StoreError> {
    let add = match what {
        "message_count" => "ADD #message_count :one",
        _ => "ADD #conversation_count :one",
    };
    Write::update(&db.tables.messages, coverage_key(account), add).bind("one", 1)
}

/// Notes that the provider has posted something about a message.
pub async fn heard(db: &Db, account: Uuid, now: Timestamp) -> Result<(), StoreError> {
    let write = Write::update(&db.tables.messages, coverage_key(account), "SET #webhook_at = :now").bind("now", now)?;
    db.write(write).await?;
    Ok(())
}

pub async fn coverage(db: &Db, account: Uuid) -> Result<Coverage, StoreError> {
    Ok(db.get_latest(&db.tables.messages, coverage_key(account)).await?.unwrap_or_default())
}

/// The write that notes how far an account is read now. Its counters are others' to write.
pub fn note(db: &Db, account: Uuid, next: &Coverage) -> Result<Write, StoreError> {
    let (mut set, mut remove) = (vec!["#history = :history"], Vec::new());
    let times = [
        ("#completed_at = :completed_at", "#completed_at", "completed_at", next.completed_at),
        ("#earliest_at = :earliest_at", "#earliest_at", "earliest_at", next.earliest_at),
        ("#latest_at = :latest_at", "#latest_at", "latest_at", next.latest_at),
        ("#enumerated_as_of = :enumerated_as_of", "#enumerated_as_of", "enumerated_as_of", next.enumerated_as_of),
        ("#incremental_at = :incremental_at", "#incremental_at", "incremental_at", next.incremental_at),
        ("#until = :until", "#until", "until", next.until),
    ];
    for (put, name, _, at) in &times {
        if at.is_some() { set.push(put) } else { remove.push(*name) }
    }
    if next.cursor.is_some() {
        set.push("#cursor = :cursor")
    } else {
        remove.push("#cursor")
    }
    let mut expression = format!("SET {}", set.join(", "));
    if !remove.is_empty() {
        expression.push_str(&format!(" REMOVE {}", remove.join(", ")));
    }
    let mut write =
        Write::update(&db.tables.messages, coverage_key(account), &expression).bind("history", next.history)?;
    for (_, _, name, at) in times {
        if let Some(at) = at {
            write = write.bind(name, at)?;
        }
    }
    match &next.cursor {
        Some(cursor) => write.bind("cursor", cursor),
        None => Ok(write),
    }
}

impl Run {
    pub fn new(id: RequestId, (agent, account): (AgentId, Uuid), kind: Kind, max_pages: u32, now: Timestamp) -> Run {
        Run {
            id,
            agent,
            account,
            kind,
            status: Status::Queued,
            max_pages,
            continues: None,
            cursor: None,
            until: None,
            pages: 0,
            requests: 0,
            rate_limited: 0,
            cursor_resets: 0,
            seen: 0,
            inserted: 0,
            updated: 0,
            conversations: 0,
            earliest: None,
            latest: None,
            provider_status: None,
            upstream_ms: 0,
            error: None,
            created: now,
            started: None,
            finished: None,
            revision: 0,
            expires: now.plus(KEPT).secs(),
        }
    }

    /// The writes that record it when it is bought: for the first time, or again after a payment that came to nothing.
    pub fn begin(&self, db: &Db) -> Result<Vec<Write>, StoreError> {
        let table = &db.tables.messages;
        let row = format!("RUN#{}", due::row(self.created, self.id));
        let pointer = Pointer { run: self.id, expires: self.expires };
        Ok(vec![
            Write::put(table, run_key(self.id), self)?
                .only_if("attribute_not_exists(#pk) OR #status = :queued")
                .bind("queued", Status::Queued)?,
            Write::put(table, Key::new(format!("NETSYNC#{}", self.account), row), &pointer)?,
        ])
    }

    /// The write that puts its next state, on the condition that nobody changed it since it was read.
    pub fn change(&self, db: &Db, next: &Run) -> Result<Write, StoreError> {
        Write::put(&db.tables.messages, run_key(self.id), next)?
            .only_if("#revision = :before")
            .bind("before", self.revision)
    }

    pub fn view(&self) -> Value {
        let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
        let length = self.started.zip(self.finished).map(|(from, to)| (to.millis() - from.millis()).max(0));
        json!({
            "run_id": self.id,
            "kind": self.kind,
            "trigger": "paid",
            "status": self.status,
            "continuation_of": self.continues,
            "has_next_cursor": self.cursor.is_some(),
            "max_pages": self.max_pages,
            "pages": self.pages,
            "requests": self.requests,
            "rate_limited": self.rate_limited,
            "cursor_resets": self.cursor_resets,
            "messages_seen": self.seen,
            "messages_inserted": self.inserted,
            "messages_updated": self.updated,
            "conversations_inserted": self.conversations,
            "earliest_seen_at": time(self.earliest),
            "latest_seen_at": time(self.latest),
            "provider_sync_status": self.provider_status,
            "upstream_ms": self.upstream_ms,
            "duration_ms": length,
            "error_code": self.error,
            "request_id": self.id,
            "created_at": self.created.to_string(),
            "started_at": time(self.started),
            "finished_at": time(self.finished),
        })
    }
}

pub async fn load(db: &Db, run: RequestId) -> Result<Option<Run>, StoreError> {
    db.get_latest(&db.tables.messages, run_key(run)).await
}

/// The latest runs of an account, the newest first.
pub async fn runs(db: &Db, account: Uuid) -> Result<Vec<Run>, StoreError> {
    let query = Query::prefixed(&db.tables.messages, &format!("NETSYNC#{account}"), "RUN#", MOST_SHOWN)?;
    let pointers: Vec<Pointer> = db.query(query.newest_first().latest()).await?;
    let keys: Vec<Key> = pointers.iter().map(|pointer| run_key(pointer.run)).collect();
    let found: Vec<Option<Run>> = db.batch_get(&db.tables.messages, &keys, true).await?;
    Ok(found.into_iter().flatten().collect())
}

impl Coverage {
    /// `sync` of an account.
    pub fn brief(&self) -> Value {
        let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
        json!({
            "history_sync_status": self.history,
            "history_sync_completed_at": time(self.completed_at),
            "coverage_earliest_at": time(self.earliest_at),
            "coverage_latest_at": time(self.latest_at),
            "last_full_enumeration_at": time(self.completed_at.and(self.enumerated_as_of)),
            "last_incremental_at": time(self.incremental_at),
            "last_webhook_at": time(self.webhook_at),
            "message_count": self.message_count,
            "conversation_count": self.conversation_count,
        })
    }

    pub fn view(&self) -> Value {
        let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
        json!({
            "provider_history": self.history,
            "provider_history_completed_at": time(self.completed_at),
            "enumerated_as_of": time(self.enumerated_as_of),
            "enumerated_back_to": time(self.earliest_at),
            "latest_message_at": time(self.latest_at),
            "pending_cursor": self.cursor.is_some(),
            "message_count": self.message_count,
            "conversation_count": self.conversation_count,
            "last_incremental_at": time(self.incremental_at),
            "last_webhook_at": time(self.webhook_at),
            "complete": self.is_complete(),
        })
    }

    pub fn is_complete(&self) -> bool {
        self.history == History::Done && self.cursor.is_none()
    }

    /// `reconnect_required`, `never_synced`, `syncing`, `partial` or `complete`
    pub fn state(&self, account: &Account, is_running: bool) -> &'static str {
        match account.status {
            account::Status::ReconnectRequired | account::Status::Error => "reconnect_required",
            _ if is_running => "syncing",
            _ if self.is_complete() => "complete",
            _ if self.history == History::Never => "never_synced",
            _ => "partial",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_complete_when_its_last_page_was_read() {
        let account = |status| Account { status, ..crate::testing::account() };
        let connected = account(account::Status::Connected);
        let at = |history, cursor: Option<&str>| Coverage {
            history,
            cursor: cursor.map(str::to_owned),
            ..Coverage::default()
        };
        for (coverage, is_running, state) in [
            (at(History::Never, None), false, "never_synced"),
            (at(History::Never, None), true, "syncing"),
            (at(History::Running, Some("c")), false, "partial"),
            (at(History::Done, None), false, "complete"),
            (at(History::Done, Some("c")), false, "partial"),
        ] {
            assert_eq!(coverage.state(&connected, is_running), state, "{coverage:?}");
            assert_eq!(coverage.state(&account(account::Status::Error), is_running), "reconnect_required");
        }
    }
}
