//! One event for one endpoint.
//!
//! One item of the agents table, `AGENT#<agent>` / `DELIVERY#<endpoint>#<event>`, sorted by its key. While it is open it is
//! in the index `outbox`, sorted by the time it is due.
//!
//! ```text
//!            lease               2xx
//! pending ──────────► (leased) ───────────► delivered
//!    ▲                    │ 410, or the sixth attempt failed
//!    │  failed: the plan  ├─────────────────► dead ─── replay ──► pending
//!    └────────────────────┤
//!                         │ the endpoint is disabled or gone
//!                         └─────────────────► cancelled ─ replay ─► pending
//! ```

use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use base::ids::{AgentId, EndpointId, EventId};
use platform::store::db::{Query, parse};
use platform::store::lists::List;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::{Event, EventKind};

/// Waits after failed attempts, in minutes. When they are used up, the delivery is dead.
const PLAN_MINUTES: [u64; 5] = [1, 5, 30, 120, 600];
/// Attempts of a delivery in one round.
pub const MAX_TRIES: u32 = PLAN_MINUTES.len() as u32 + 1;
/// A delivery can be read and replayed for this long.
pub const RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);
/// The lease of one attempt. An attempt takes at most ten seconds, so a worker that holds it longer has died.
pub const LEASE: Duration = Duration::from_secs(60);
/// Logged attempts per delivery, including those of earlier rounds.
pub const MOST_ATTEMPTS: usize = 20;
/// Open deliveries are spread over this many partitions of the index.
pub const OUTBOX_SHARDS: u8 = 8;

/// State of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    Pending,
    Delivered,
    /// Given up. Its owner was notified and may replay it.
    Dead,
    /// The endpoint was disabled or deleted before it could be sent.
    Cancelled,
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The status was not 2xx.
    Status,
    /// No answer in ten seconds.
    Timeout,
    /// No DNS name, no connection, or no TLS.
    Unreachable,
    /// The URL, or an address behind it, is not on the public internet.
    NotAllowed,
    /// The answer was not HTTP.
    BadAnswer,
    /// The worker died during the attempt; the receiver may have got it.
    Lost,
}

/// One attempt, as logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub at: Timestamp,
    /// milliseconds
    pub ms: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The error, or the start of the receiver's answer: at most a kilobyte, without control characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The stored delivery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    pub agent: AgentId,
    pub endpoint: EndpointId,
    pub event: EventId,
    pub kind: EventKind,
    /// The body of every attempt.
    pub body: String,
    pub state: DeliveryState,
    pub created: Timestamp,
    /// When this round of attempts began: at the event, or at the latest replay.
    pub queued: Timestamp,
    /// Attempts begun in this round.
    #[serde(default)]
    pub tries: u32,
    /// No attempt before then.
    pub not_before: Timestamp,
    /// Partition of the index `outbox` while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbox: Option<String>,
    /// When the sweeper looks at it; the sort key of the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// The lease's expiry, and its random id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// Oldest first.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
    /// Unix seconds after which the row may be deleted.
    pub expires: i64,
}

pub(super) fn partition(agent: AgentId) -> String {
    format!("AGENT#{agent}")
}

pub(super) fn key(agent: AgentId, endpoint: EndpointId, event: EventId) -> Key {
    Key::new(partition(agent), format!("DELIVERY#{}#{}", endpoint.ulid(), event.ulid()))
}

/// Reads the keys of a delivery.
pub(super) fn of_key(pk: &str, sk: &str) -> Option<(AgentId, EndpointId, EventId)> {
    let (endpoint, event) = sk.strip_prefix("DELIVERY#")?.split_once('#')?;
    let agent = pk.strip_prefix("AGENT#")?.parse().ok()?;
    Some((agent, format!("wh_{endpoint}").parse().ok()?, format!("evt_{event}").parse().ok()?))
}

/// The index partition of an endpoint's open deliveries. It is the same for all deliveries of one endpoint, so a receiver
/// with many of them does not delay the other partitions.
pub(super) fn outbox_of(endpoint: EndpointId) -> String {
    format!("OUTBOX#{}", endpoint.ulid().to_bytes()[15] % OUTBOX_SHARDS)
}

pub(super) fn outbox_shard(shard: u8) -> String {
    format!("OUTBOX#{shard}")
}

impl Delivery {
    /// A delivery that is due at once.
    pub fn new(event: &Event, endpoint: EndpointId, now: Timestamp) -> Delivery {
        Delivery {
            agent: event.agent,
            endpoint,
            event: event.id,
            kind: event.kind,
            body: event.body(),
            state: DeliveryState::Pending,
            created: event.happened,
            queued: now,
            tries: 0,
            not_before: now,
            outbox: Some(outbox_of(endpoint)),
            due: Some(now),
            lease_until: None,
            lease: None,
            attempts: Vec::new(),
            expires: now.plus(RETENTION).secs(),
        }
    }

    /// The write that puts it into the outbox. Refused if it exists already.
    pub(super) fn put(&self, db: &Db) -> Result<Write, StoreError> {
        let put = Write::put(&db.tables.agents, key(self.agent, self.endpoint, self.event), self)?;
        Ok(put.into_list(List::Outbox, self.queued).only_if_new())
    }
}

/// The wait after failed attempt number `tries`: the plan's, or the receiver's `Retry-After` if that is longer, at most the
/// plan's longest. `None` after the last attempt.
pub fn wait_after(tries: u32, retry_after: Option<Duration>) -> Option<Duration> {
    let minutes = PLAN_MINUTES.get(usize::try_from(tries.checked_sub(1)?).ok()?)?;
    let planned = Duration::from_secs(minutes * 60);
    let longest = Duration::from_secs(PLAN_MINUTES[PLAN_MINUTES.len() - 1] * 60);
    Some(retry_after.map_or(planned, |asked| planned.max(asked.min(longest))))
}

/// Leases a due delivery for [`LEASE`] and counts the attempt. `None` if it has ended, is not due, or is leased by
/// another worker.
pub(super) async fn lease(
    db: &Db,
    (agent, endpoint, event): (AgentId, EndpointId, EventId),
    now: Timestamp,
) -> Result<Option<Delivery>, StoreError> {
    let set = "SET #lease = :lease, #lease_until = :until, #due = :until, #tries = #tries + :one";
    let write = Write::update(&db.tables.agents, key(agent, endpoint, event), set)
        .only_if(
            "attribute_exists(#outbox) AND #not_before <= :now \
             AND (attribute_not_exists(#lease_until) OR #lease_until <= :now)",
        )
        .bind("lease", const_hex::encode(digest::random::<8>()))?
        .bind("until", now.plus(LEASE))?
        .bind("now", now)?
        .bind("one", 1)?;
    match db.write(write).await {
        Ok(item) => parse(item).map(Some),
        Err(WriteError::Refused(_)) => Ok(None),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

impl Delivery {
    fn held(&self, db: &Db, set: &str) -> Result<Write, StoreError> {
        let write = Write::update(&db.tables.agents, key(self.agent, self.endpoint, self.event), set);
        write.only_if("#lease = :lease").bind("lease", &self.lease)
    }

    /// The write that ends it. Refused without the lease.
    pub(super) fn end(&self, db: &Db, state: DeliveryState, last: Option<Attempt>) -> Result<Write, StoreError> {
        let set = "SET #state = :state, #attempts = list_append(#attempts, :last) \
                   REMOVE #outbox, #due, #lease, #lease_until";
        self.held(db, set)?.bind("state", state)?.bind("last", Vec::from_iter(last))
    }

    /// The write after a failed attempt: the next one is due at `next`. Refused without the lease.
    pub(super) fn again(&self, db: &Db, next: Timestamp, last: Attempt) -> Result<Write, StoreError> {
        let set = "SET #not_before = :next, #due = :next, #attempts = list_append(#attempts, :last) \
                   REMOVE #lease, #lease_until";
        self.held(db, set)?.bind("next", next)?.bind("last", vec![last])
    }

    /// The write that postpones it; the attempt does not count. Refused without the lease.
    pub(super) fn put_off(&self, db: &Db, next: Timestamp) -> Result<Write, StoreError> {
        let set = "SET #not_before = :next, #due = :next, #tries = #tries - :one REMOVE #lease, #lease_until";
        self.held(db, set)?.bind("next", next)?.bind("one", 1)
    }

    /// The write that starts a new round of an ended delivery, with the same event. Refused if somebody else did.
    pub(super) fn replayed(&self, db: &Db, now: Timestamp) -> Result<Write, StoreError> {
        let latest = self.attempts.len().saturating_sub(MOST_ATTEMPTS - MAX_TRIES as usize);
        let next = Delivery {
            state: DeliveryState::Pending,
            queued: now,
            tries: 0,
            not_before: now,
            outbox: Some(outbox_of(self.endpoint)),
            due: Some(now),
            lease_until: None,
            lease: None,
            attempts: self.attempts[latest..].to_vec(),
            expires: now.plus(RETENTION).secs(),
            ..self.clone()
        };
        Write::put(&db.tables.agents, key(self.agent, self.endpoint, self.event), &next)?
            .into_list(List::Outbox, now)
            .only_if("#state = :state AND #queued = :queued")
            .bind("state", self.state)?
            .bind("queued", self.queued)
    }

    /// When the next attempt is due after this failed one. `None` if there is none. A test event is tried once.
    pub(super) fn next_after(&self, retry_after: Option<Duration>, now: Timestamp) -> Option<Timestamp> {
        let wait = if self.kind == EventKind::Test { None } else { wait_after(self.tries, retry_after) };
        wait.map(|wait| now.plus(wait))
    }
}

pub async fn load(
    db: &Db,
    agent: AgentId,
    endpoint: EndpointId,
    event: EventId,
) -> Result<Option<Delivery>, StoreError> {
    db.get_latest(&db.tables.agents, key(agent, endpoint, event)).await
}

/// An endpoint's deliveries, newest first; with `after`, only older ones.
pub async fn list(
    db: &Db,
    agent: AgentId,
    endpoint: EndpointId,
    after: Option<EventId>,
    limit: usize,
) -> Result<Vec<Delivery>, StoreError> {
    let prefix = format!("DELIVERY#{}#", endpoint.ulid());
    let query = Query::prefixed(&db.tables.agents, &partition(agent), &prefix, limit)?.newest_first();
    db.query(query.after(after.map(|event| key(agent, endpoint, event)))).await
}

#[cfg(test)]
mod tests {
    use evm::Address;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_retry_plan_and_retry_after_give_the_wait() {
        let waits: Vec<Option<u64>> =
            (1..=6).map(|tries| wait_after(tries, None).map(|wait| wait.as_secs() / 60)).collect();
        assert_eq!(waits, [Some(1), Some(5), Some(30), Some(120), Some(600), None]);
        assert_eq!(MAX_TRIES, 6);
        let asked = |tries, secs| wait_after(tries, Some(Duration::from_secs(secs))).map(|wait| wait.as_secs());
        assert_eq!(asked(1, 90), Some(90), "longer than planned");
        assert_eq!(asked(1, 5), Some(60), "never sooner than planned");
        assert_eq!(asked(1, u64::MAX), Some(36_000), "never for ever");
        assert_eq!(asked(6, 90), None);
        assert_eq!(wait_after(0, None), None);
    }

    #[test]
    fn a_key_gives_its_delivery() {
        let agent = AgentId::of(Address::ZERO);
        let event = Event::new(agent, EventKind::Test, "a", Timestamp::from_secs(1), json!({}));
        let endpoint = EndpointId::random();
        let key = key(agent, endpoint, event.id);
        assert_eq!(of_key(&key.pk, &key.sk), Some((agent, endpoint, event.id)));
        for (pk, sk) in [("AGENT#x", key.sk.as_str()), (&key.pk, "DELIVERY#x"), (&key.pk, "NOTE#x#y"), ("", "")] {
            assert_eq!(of_key(pk, sk), None);
        }
    }
}
