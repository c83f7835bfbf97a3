//! An address that an agent registered: its subscriptions, and its recent health.
//!
//! One item of the agents table, `AGENT#<agent>` / `WEBHOOK#<ulid>`. It stores only the numbers of its secrets (see
//! [`super::secret`]).

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, EndpointId};
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::EventKind;
use super::secret::{Secret, SigningKey};

/// Most endpoints that an agent creates, and so the most writes per event.
pub const MAX_ENDPOINTS: usize = 10;
/// More endpoints of phone numbers than an agent has numbers.
const MAX_OF_NUMBERS: usize = 10;
/// Default time for which a rotated secret still signs beside the new one.
pub const OVERLAP: Duration = Duration::from_secs(24 * 3600);
/// Most secrets that sign at once: after several quick rotations, the newest ones.
const MOST_SECRETS: usize = 4;

/// Why an endpoint is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disabled {
    ByOwner,
    /// The receiver answered 410.
    Gone,
}

/// A rotated secret that still signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Older {
    pub number: u32,
    pub until: Timestamp,
}

/// The stored endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    pub id: EndpointId,
    pub agent: AgentId,
    pub url: String,
    /// Subscribed types; empty means all.
    #[serde(default)]
    pub events: Vec<EventKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The phone number whose calls it is told about, and nothing else. It is made and changed with the number's settings,
    /// and does not count against [`MAX_ENDPOINTS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<Disabled>,
    /// Number of the current secret.
    pub secret: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub older: Vec<Older>,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// Number of changes (not counting `strikes` and `resting`). A change from an older revision is refused.
    pub revision: u32,
    /// Attempts in a row that failed slowly.
    #[serde(default)]
    pub strikes: u32,
    /// Nothing is sent before this time, because the receiver was too slow or did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resting: Option<Timestamp>,
}

fn partition(agent: AgentId) -> String {
    format!("AGENT#{agent}")
}

fn key(agent: AgentId, id: EndpointId) -> Key {
    Key::new(partition(agent), format!("WEBHOOK#{}", id.ulid()))
}

impl Endpoint {
    /// A new endpoint with its first secret, subscribed to these events.
    pub fn new(id: EndpointId, agent: AgentId, url: String, events: Vec<EventKind>, now: Timestamp) -> Endpoint {
        Endpoint {
            id,
            agent,
            url,
            events,
            description: None,
            number: None,
            disabled: None,
            secret: 1,
            older: Vec::new(),
            created: now,
            updated: now,
            revision: 1,
            strikes: 0,
            resting: None,
        }
    }

    /// Whether it subscribes to the events of this type. That of a phone number subscribes to none.
    pub fn wants(&self, kind: EventKind) -> bool {
        self.disabled.is_none() && self.number.is_none() && (self.events.is_empty() || self.events.contains(&kind))
    }

    /// The secrets that sign at `now`, the newest first.
    pub fn secrets(&self, keys: &SigningKey, now: Timestamp) -> Vec<Secret> {
        let older = self.older.iter().filter(|older| now < older.until).map(|older| older.number);
        std::iter::once(self.secret).chain(older).map(|number| keys.secret(self.agent, self.id, number)).collect()
    }

    /// The endpoint with a new secret. The older ones sign beside it for `overlap`, or stop at once if it is zero.
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

/// The agent's endpoints, with those of its phone numbers. Costs half a read unit for an agent that has none.
pub async fn of_agent(db: &Db, agent: AgentId) -> Result<Vec<Endpoint>, StoreError> {
    db.query(all(db, agent)?).await
}

fn all(db: &Db, agent: AgentId) -> Result<Query<'_>, StoreError> {
    Query::prefixed(&db.tables.agents, &partition(agent), "WEBHOOK#", MAX_ENDPOINTS + MAX_OF_NUMBERS)
}

/// The endpoint, from a strongly consistent read.
pub async fn load(db: &Db, agent: AgentId, id: EndpointId) -> Result<Option<Endpoint>, StoreError> {
    db.get_latest(&db.tables.agents, key(agent, id)).await
}

/// How many endpoints an agent has ever created.
#[derive(Default, Serialize, Deserialize)]
struct Made {
    made: u32,
}

fn made_key(agent: AgentId) -> Key {
    Key::new(partition(agent), "WEBHOOKS")
}

/// The write that stores an endpoint from the configuration, replacing the stored one.
pub fn configured(db: &Db, endpoint: &Endpoint) -> Result<Write, StoreError> {
    Write::put(&db.tables.agents, key(endpoint.agent, endpoint.id), endpoint)
}

/// Stores a new endpoint. `false` if there are too many.
pub async fn create(db: &Db, endpoint: &Endpoint) -> Result<bool, StoreError> {
    let agent = endpoint.agent;
    loop {
        // The number of endpoints ever created is the condition of the write, so the limit holds under concurrency.
        let made: Made = db.get_latest(&db.tables.agents, made_key(agent)).await?.unwrap_or_default();
        let stored: Vec<Endpoint> = db.query(all(db, agent)?.latest()).await?;
        if stored.iter().filter(|endpoint| endpoint.number.is_none()).count() >= MAX_ENDPOINTS {
            return Ok(false);
        }
        let count = Write::put(&db.tables.agents, made_key(agent), &Made { made: made.made.saturating_add(1) })?
            .only_if("attribute_not_exists(#pk) OR #made = :made")
            .bind("made", made.made)?;
        let put = Write::put(&db.tables.agents, key(agent, endpoint.id), endpoint)?.only_if_new();
        match db.transact(&[count, put]).await {
            Ok(()) => return Ok(true),
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
}

/// Changes an endpoint. Repeats if a concurrent call changed it. Returns the changed endpoint, or `None` if there is none.
pub async fn change(
    db: &Db,
    agent: AgentId,
    id: EndpointId,
    now: Timestamp,
    change: impl Fn(&Endpoint) -> Endpoint,
) -> Result<Option<Endpoint>, StoreError> {
    loop {
        let Some(seen) = load(db, agent, id).await? else { return Ok(None) };
        let next = Endpoint { revision: seen.revision.wrapping_add(1), updated: now, ..change(&seen) };
        let put = Write::put(&db.tables.agents, key(agent, id), &next)?;
        match db.write(put.only_if("#revision = :seen").bind("seen", seen.revision)?).await {
            Ok(_) => return Ok(Some(next)),
            // Somebody else changed or deleted it: try again.
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
}

/// Deletes an endpoint, if there is one. Its open deliveries are cancelled when they are due.
pub async fn delete(db: &Db, agent: AgentId, id: EndpointId) -> Result<bool, StoreError> {
    db.write_if(Write::delete(&db.tables.agents, key(agent, id)).only_if("attribute_exists(#pk)")).await
}

/// The write that disables an endpoint whose receiver answered 410. Refused if its owner has changed the URL since, or if
/// it is disabled already.
pub(super) fn disable(db: &Db, seen: &Endpoint) -> Result<Write, StoreError> {
    let write = Write::update(
        &db.tables.agents,
        key(seen.agent, seen.id),
        "SET #disabled = :gone, #revision = #revision + :one",
    );
    let write = write.only_if("#url = :url AND attribute_not_exists(#disabled)");
    write.bind("gone", Disabled::Gone)?.bind("one", 1)?.bind("url", &seen.url)
}

/// How long an endpoint rests after `strikes` slow failures in a row: 30 seconds, doubled each time, at most 8 minutes.
pub(super) fn rest_after(strikes: u32) -> Duration {
    Duration::from_secs(15 << strikes.clamp(1, 5))
}

/// The write after a slow failure: nothing is sent to the endpoint before its rest is over.
pub(super) fn strike(db: &Db, seen: &Endpoint, now: Timestamp) -> Result<Write, StoreError> {
    let strikes = seen.strikes.saturating_add(1);
    Write::update(&db.tables.agents, key(seen.agent, seen.id), "SET #strikes = :strikes, #resting = :until")
        .only_if("attribute_exists(#pk)")
        .bind("strikes", strikes)?
        .bind("until", now.plus(rest_after(strikes)))
}

/// The write that takes the one trial attempt after a rest. Other deliveries wait until its outcome is known.
pub(super) fn probe(db: &Db, seen: &Endpoint, until: Timestamp) -> Result<Write, StoreError> {
    Write::update(&db.tables.agents, key(seen.agent, seen.id), "SET #resting = :until")
        .only_if("#resting = :seen")
        .bind("until", until)?
        .bind("seen", seen.resting)
}

/// The write after an attempt that was delivered or failed quickly: the rest is over.
pub(super) fn recovered(db: &Db, seen: &Endpoint) -> Result<Write, StoreError> {
    Write::update(&db.tables.agents, key(seen.agent, seen.id), "SET #strikes = :none REMOVE #resting")
        .only_if("attribute_exists(#pk)")
        .bind("none", 0)
}

#[cfg(test)]
mod tests {
    use evm::Address;

    use super::*;

    fn endpoint() -> Endpoint {
        let (agent, now) = (AgentId::of(Address::ZERO), Timestamp::from_secs(0));
        Endpoint::new(EndpointId::random(), agent, "https://example.org/".to_owned(), Vec::new(), now)
    }

    #[test]
    fn old_secrets_sign_until_their_overlap_ends() {
        let keys = SigningKey::new(&[7; 32]);
        let at = |secs| Timestamp::from_secs(secs);
        let count = |endpoint: &Endpoint, secs| endpoint.secrets(&keys, at(secs)).len();
        let once = endpoint().rotated(Duration::from_secs(100), at(0));
        assert_eq!((once.secret, count(&once, 99), count(&once, 100)), (2, 2, 1));
        let twice = once.rotated(Duration::from_secs(100), at(50));
        assert_eq!((count(&twice, 99), count(&twice, 149), count(&twice, 150)), (3, 2, 1));
        let at_once = twice.rotated(Duration::ZERO, at(60));
        assert_eq!((at_once.secret, count(&at_once, 60)), (4, 1));
        let often = (0..20).fold(endpoint(), |endpoint, _| endpoint.rotated(Duration::from_secs(100), at(0)));
        assert_eq!(count(&often, 1), MOST_SECRETS);
    }

    #[test]
    fn an_enabled_endpoint_wants_only_its_subscriptions() {
        let all = endpoint();
        assert!(all.wants(EventKind::RequestFailed));
        let some = Endpoint { events: vec![EventKind::OrderCreate], ..endpoint() };
        assert!(some.wants(EventKind::OrderCreate) && !some.wants(EventKind::RequestFailed));
        assert!(!Endpoint { disabled: Some(Disabled::Gone), ..endpoint() }.wants(EventKind::RequestFailed));
        let of_number = Endpoint { number: Some(Uuid::nil()), ..endpoint() };
        assert!(!of_number.wants(EventKind::VoiceInboundCompleted), "it gets the calls of its number alone");
    }

    #[test]
    fn rests_double_up_to_eight_minutes() {
        assert_eq!(
            [1, 2, 3, 4, 5, 6, 1000].map(|strikes| rest_after(strikes).as_secs()),
            [30, 60, 120, 240, 480, 480, 480]
        );
    }
}
