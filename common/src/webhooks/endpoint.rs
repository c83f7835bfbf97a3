//! An address an agent named: what it wants to be told, and how it has been lately.
//!
//! One item of the agents table, `AGENT#<agent>` / `WEBHOOK#<ulid>`. Its secrets are numbers only (see
//! [`super::secret`]).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::EventKind;
use super::secret::{Secret, SigningKey};
use crate::clock::Timestamp;
use crate::digest;
use crate::ids::AgentId;
use crate::store::db::Query;
use crate::store::{Db, Key, StoreError};

/// Most endpoints of one agent: what a raised event writes at most.
pub const MAX_ENDPOINTS: usize = 10;
/// A rotated secret signs for so long beside the new one, if nothing else is said.
pub const OVERLAP: Duration = Duration::from_secs(24 * 3600);
/// Most secrets that sign at once: the newest ones of rotations that follow each other closely.
const MOST_SECRETS: usize = 4;

/// The id of an endpoint, `wh_<ulid>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub(super) Ulid);

impl EndpointId {
    pub fn random() -> EndpointId {
        EndpointId(Ulid::from_bytes(digest::random()))
    }
}

super::text_of_ulid!(EndpointId, "wh_");

/// Why an endpoint takes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disabled {
    ByOwner,
    /// The receiver answered 410.
    Gone,
}

/// A secret that was rotated away and still signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Older {
    pub number: u32,
    pub until: Timestamp,
}

/// An endpoint as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    pub id: EndpointId,
    pub agent: AgentId,
    pub url: String,
    /// What it wants; empty is everything.
    #[serde(default)]
    pub events: Vec<EventKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<Disabled>,
    /// Number of the secret that is shown and signs.
    pub secret: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub older: Vec<Older>,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// Raised by each change of its owner: who changes it has seen the latest.
    pub revision: u32,
    /// Attempts in a row that waited in vain for the receiver.
    #[serde(default)]
    pub strikes: u32,
    /// Until then nothing is sent, because the receiver did not answer at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resting: Option<Timestamp>,
}

fn partition(agent: AgentId) -> String {
    format!("AGENT#{agent}")
}

fn key(agent: AgentId, id: EndpointId) -> Key {
    Key::new(partition(agent), format!("WEBHOOK#{}", id.0))
}

impl Endpoint {
    pub fn wants(&self, kind: EventKind) -> bool {
        self.disabled.is_none() && (self.events.is_empty() || self.events.contains(&kind))
    }

    /// What a delivery at `now` is signed with, the newest first.
    pub fn secrets(&self, keys: &SigningKey, now: Timestamp) -> Vec<Secret> {
        let older = self.older.iter().filter(|older| now < older.until).map(|older| older.number);
        std::iter::once(self.secret).chain(older).map(|number| keys.secret(self.agent, self.id, number)).collect()
    }

    /// The same with a new secret; the ones before sign for `overlap` beside it, or with none no more.
    pub fn rotated(&self, overlap: Duration, now: Timestamp) -> Endpoint {
        let mut older = Vec::new();
        if !overlap.is_zero() {
            older.push(Older { number: self.secret, until: now.plus(overlap) });
            older.extend(self.older.iter().filter(|older| now < older.until));
            older.truncate(MOST_SECRETS - 1);
        }
        Endpoint { secret: self.secret.saturating_add(1), older, ..self.clone() }
    }
}

/// The agent's endpoints, at most [`MAX_ENDPOINTS`]: half a read unit for an agent that has none.
pub async fn of_agent(db: &Db, agent: AgentId) -> Result<Vec<Endpoint>, StoreError> {
    db.query(Query::prefixed(&db.tables.agents, &partition(agent), "WEBHOOK#", MAX_ENDPOINTS)?).await
}

/// As the latest change left it.
pub async fn load(db: &Db, agent: AgentId, id: EndpointId) -> Result<Option<Endpoint>, StoreError> {
    db.get_latest(&db.tables.agents, key(agent, id)).await
}
