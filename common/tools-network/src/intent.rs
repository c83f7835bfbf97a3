//! Connect intents: an owner logs in at the provider's page, and the provider says what came of it.
//!
//! ```text
//! pending ──► verifying ──► completed
//!    │            └───────► failed
//!    ├──► expired (after 30 minutes)
//!    └──► cancelled (its account was given up)
//! ```
//!
//! | item (table messages) | key |
//! |---|---|
//! | an intent | `NETAGENT#<agent>` / `INTENT#<intent>` |
//! | whose intent a callback is for | `NETTOKEN#<SHA-256 of its token>` / `TOKEN` |

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256;
use base::ids::AgentId;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::account::Grant;

/// How long a link can be used.
pub const VALID: Duration = Duration::from_secs(30 * 60);
/// How long an intent can be read.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    Verifying,
    Completed,
    Failed,
    Expired,
    Cancelled,
}

/// What happens to an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The provider says that somebody has logged in.
    LoggedIn,
    /// The account is checked and connected.
    Connected,
    /// The account was not accepted.
    Refused,
    /// Its time is over.
    Late,
    /// The account that it was to connect again is given up.
    GivenUp,
}

impl Status {
    /// The status after an event; `None`: it changes nothing.
    pub fn after(self, event: Event) -> Option<Status> {
        match (self, event) {
            (Status::Pending, Event::LoggedIn) => Some(Status::Verifying),
            (Status::Pending, Event::Late) => Some(Status::Expired),
            (Status::Pending, Event::GivenUp) => Some(Status::Cancelled),
            (Status::Verifying, Event::Connected) => Some(Status::Completed),
            (Status::Verifying, Event::Refused | Event::GivenUp) => Some(Status::Failed),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    pub id: Uuid,
    pub agent: AgentId,
    pub status: Status,
    /// The account that is connected again; `None`: a new one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnects: Option<Uuid>,
    /// The grant that the account gets. `None`: it keeps the one that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
    pub created: Timestamp,
    pub expires_at: Timestamp,
    /// The provider's id of the account, as its callback says it. Not checked yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
    /// The account, once it is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
    pub expires: i64,
}

/// Where a callback's token leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub agent: AgentId,
    pub intent: Uuid,
    expires: i64,
}

impl Intent {
    pub fn new(id: Uuid, agent: AgentId, reconnects: Option<Uuid>, grant: Option<Grant>, now: Timestamp) -> Intent {
        Intent {
            id,
            agent,
            status: Status::Pending,
            reconnects,
            grant,
            created: now,
            expires_at: now.plus(VALID),
            upstream: None,
            account: None,
            failure_reason: None,
            expires: now.plus(KEPT).secs(),
        }
    }

    /// The status that it has at a time: one whose time is over needs no write for it.
    pub fn status_at(&self, now: Timestamp) -> Status {
        let late = (now >= self.expires_at).then_some(Event::Late);
        late.and_then(|event| self.status.after(event)).unwrap_or(self.status)
    }

    /// `create` or `reconnect`
    pub fn kind(&self) -> &'static str {
        if self.reconnects.is_some() { "reconnect" } else { "create" }
    }

    /// As its owner sees it, without the account.
    pub fn view(&self, granted: &Grant, now: Timestamp) -> Value {
        let mut view = json!({
            "intent_id": self.id,
            "type": self.kind(),
            "status": self.status_at(now),
            "requested_actions": self.grant.as_ref().unwrap_or(granted),
            "expires_at": self.expires_at.to_string(),
        });
        if let Some(reason) = &self.failure_reason {
            view["failure_reason"] = json!(reason);
        }
        view
    }

    /// The write that moves it from the status that it has. Refused if that has changed.
    pub fn moved(&self, db: &Db, next: &Intent) -> Result<Write, StoreError> {
        Write::put(&db.tables.messages, key(self.agent, self.id), next)?
            .only_if("#status = :before")
            .bind("before", self.status)
    }

    /// The writes that begin it. The token itself is not stored.
    pub fn begin(&self, db: &Db, token: &str) -> Result<Vec<Write>, StoreError> {
        let place = Place { agent: self.agent, intent: self.id, expires: self.expires };
        let table = &db.tables.messages;
        Ok(vec![
            Write::put(table, key(self.agent, self.id), self)?.only_if_new(),
            Write::put(table, token_key(token), &place)?.only_if_new(),
        ])
    }
}

fn key(agent: AgentId, id: Uuid) -> Key {
    Key::new(format!("NETAGENT#{agent}"), format!("INTENT#{id}"))
}

fn token_key(token: &str) -> Key {
    Key::new(format!("NETTOKEN#{}", const_hex::encode(sha256(token.as_bytes()))), "TOKEN")
}

pub async fn load(db: &Db, agent: AgentId, id: Uuid) -> Result<Option<Intent>, StoreError> {
    db.get_latest(&db.tables.messages, key(agent, id)).await
}

/// The intent that a callback's token belongs to.
pub async fn of_token(db: &Db, token: &str) -> Result<Option<Intent>, StoreError> {
    let place: Option<Place> = db.get_latest(&db.tables.messages, token_key(token)).await?;
    match place {
        Some(place) => load(db, place.agent, place.intent).await,
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_moves_only_forward() {
        use Event::{Connected, GivenUp, Late, LoggedIn, Refused};
        use Status::{Cancelled, Completed, Expired, Failed, Pending, Verifying};
        let events = [LoggedIn, Connected, Refused, Late, GivenUp];
        for (from, to) in [
            (Pending, [Some(Verifying), None, None, Some(Expired), Some(Cancelled)]),
            (Verifying, [None, Some(Completed), Some(Failed), None, Some(Failed)]),
            (Completed, [None; 5]),
            (Failed, [None; 5]),
            (Expired, [None; 5]),
            (Cancelled, [None; 5]),
        ] {
            assert_eq!(events.map(|event| from.after(event)), to, "{from:?}");
        }
    }

    #[test]
    fn a_link_ends_to_the_millisecond() {
        let now = Timestamp::from_secs(1_000_000);
        let intent = Intent::new(Uuid::nil(), AgentId::from_bytes([1; 16]), None, None, now);
        assert_eq!(intent.status_at(now.plus(VALID).minus(Duration::from_millis(1))), Status::Pending);
        assert_eq!(intent.status_at(now.plus(VALID)), Status::Expired);
        let verifying = Intent { status: Status::Verifying, ..intent };
        assert_eq!(verifying.status_at(now.plus(VALID)), Status::Verifying);
    }
}
