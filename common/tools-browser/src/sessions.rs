//! Sessions: what a task leaves for the next one of the same agent.
//!
//! | item (table agents) | key |
//! |---|---|
//! | a session: owner, page, sealed cookies and storage | `BROWSING#<session>` / `SESSION` |
//! | the task that uses it | `BROWSING#<session>` / `LOCK` |
//!
//! The id of a session is the request id of its first task. No browser is kept for it: the next task begins in a new one with the
//! same cookies and storage, at the same page. So a session costs nothing while nobody uses it, and outlives a browser.

use std::time::Duration;

use base::clock::Timestamp;
use base::encoding::{base64_any, base64_standard};
use base::ids::AgentId;
use http::StatusCode;
use platform::http::ApiError;
use platform::providers::browser::StorageState;
use platform::seal::{Place, Sealer};
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A session can be used for so long after its last task has ended.
pub const LIFE: Duration = Duration::from_secs(15 * 60);
/// The row stays a little longer than that.
const KEPT: Duration = Duration::from_secs(3600);
/// Largest sealed state. What is larger loses its storage, then its cookies.
const MAX_STATE: usize = 200_000;
/// A longer address is not gone back to, in bytes.
const MAX_URL: usize = 4_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Session {
    pub id: Uuid,
    pub agent: AgentId,
    /// The sites that its tasks may open, and no more.
    pub allowed: Vec<String>,
    /// Counts the tasks.
    pub version: u64,
    pub until: Timestamp,
    /// Sealed JSON of what [`Session::open`] returns, in base64.
    state: String,
    /// Unix seconds.
    expires: i64,
}

pub fn key(session: Uuid) -> Key {
    Key::new(format!("BROWSING#{session}"), "SESSION")
}

pub fn lock_key(session: Uuid) -> Key {
    Key::new(format!("BROWSING#{session}"), "LOCK")
}

/// The session, if it is this agent's and has not ended. Without an agent (the price of a stranger), whoever's it is.
///
/// # Errors
/// 404 `session_not_found`: also for another agent's, so that ids cannot be tried.
pub async fn own(db: &Db, session: Uuid, agent: Option<AgentId>, now: Timestamp) -> Result<Session, ApiError> {
    let found: Option<Session> = db.get_latest(&db.tables.agents, key(session)).await.map_err(ApiError::Unavailable)?;
    let is_own = |found: &Session| agent.is_none_or(|agent| found.agent == agent) && now < found.until;
    found.filter(is_own).ok_or_else(|| ApiError::Tool {
        status: StatusCode::NOT_FOUND,
        code: "session_not_found",
        message: "there is no such session of yours, or it has ended: they last 15 minutes. Leave session_id out"
            .to_owned(),
    })
}

/// What a task leaves.
pub struct Left {
    pub url: String,
    pub allowed: Vec<String>,
    pub state: StorageState,
}

impl Session {
    /// What the next task begins with: the address of the last page, cookies and storage. `None` if it cannot be opened any
    /// more.
    pub fn open(&self, sealer: &Sealer) -> Option<(String, StorageState)> {
        let plain = sealer.open(place(self.agent, &self.id.to_string(), self.version), &base64_any(&self.state)?)?;
        serde_json::from_slice(&plain).ok()
    }

    /// The session after a task: a new one without `before`.
    ///
    /// # Errors
    /// If the state cannot be sealed.
    pub fn after(
        id: Uuid,
        agent: AgentId,
        before: Option<&Session>,
        left: Left,
        sealer: &Sealer,
        now: Timestamp,
    ) -> Result<Session, StoreError> {
        let (version, until) = (before.map_or(1, |before| before.version + 1), now.plus(LIFE));
        let sealed = sealer.seal(place(agent, &id.to_string(), version), fitting(&left.url, left.state)?)?;
        let (state, expires) = (base64_standard(&sealed), until.plus(KEPT).secs());
        Ok(Session { id, agent, allowed: left.allowed, version, until, state, expires })
    }

    /// The write that keeps it, on the condition that no other task has changed it since it was read.
    ///
    /// # Errors
    /// If the row cannot be written as an item.
    pub fn put(&self, db: &Db) -> Result<Write, StoreError> {
        let put = Write::put(&db.tables.agents, key(self.id), self)?;
        match self.version {
            1 => Ok(put.only_if_new()),
            version => put.only_if("#version = :before").bind("before", version - 1),
        }
    }
}

fn place(agent: AgentId, id: &str, version: u64) -> Place<'_> {
    Place { agent, kind: "browser-session", id, version }
}

/// Address and state as JSON, without what is too large.
fn fitting(url: &str, mut state: StorageState) -> Result<Vec<u8>, StoreError> {
    let url = if url.len() > MAX_URL { "" } else { url };
    let shrinks: [fn(&mut StorageState); 3] = [|_| {}, |state| state.origins.clear(), |state| state.cookies.clear()];
    for shrink in shrinks {
        shrink(&mut state);
        let plain = serde_json::to_vec(&(url, &state)).map_err(StoreError::new)?;
        if plain.len() <= MAX_STATE {
            return Ok(plain);
        }
    }
    Err(StoreError::new("the state of a session does not fit"))
}
