//! Puts events into the outbox, and sweeps deliveries that are due.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, EndpointId, EventId};
use futures_util::future::join_all;
use platform::http::log;
use platform::store::due::{FAR, InIndex};
use platform::store::queue::{Message, Queue};
use platform::store::table::OUTBOX_INDEX;
use platform::store::{Db, StoreError, Write, WriteError};
use serde::Deserialize;

use super::delivery::{self, Delivery, OUTBOX_SHARDS};
use super::{Event, endpoint};

/// Deliveries taken from one shard in one sweep.
const PER_SHARD: usize = 200;
/// Concurrent writes.
const AT_ONCE: usize = 10;
/// A swept delivery is not swept again for this long.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// An event's deliveries, not yet written. Empty if no endpoint wants the event.
#[derive(Debug, Default)]
pub struct Outgoing {
    writes: Vec<Write>,
    messages: Vec<Message>,
}

/// Looks up the endpoints that want the event. Costs half a read unit if there are none.
pub async fn put(db: &Db, event: &Event, now: Timestamp) -> Result<Outgoing, StoreError> {
    put_all(db, std::slice::from_ref(event), now).await
}

/// Like [`put`], for several events, with one query per agent.
pub async fn put_all(db: &Db, events: &[Event], now: Timestamp) -> Result<Outgoing, StoreError> {
    let (mut known, mut outgoing) = (HashMap::new(), Outgoing::default());
    for event in events {
        let endpoints = match known.entry(event.agent) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(endpoint::of_agent(db, event.agent).await?),
        };
        let wanting = endpoints.iter().filter(|endpoint| endpoint.wants(event.kind));
        outgoing = outgoing.and(to(db, event, wanting.map(|endpoint| endpoint.id), now)?);
    }
    Ok(outgoing)
}

/// Like [`put`], for known endpoints.
pub fn to(
    db: &Db,
    event: &Event,
    endpoints: impl Iterator<Item = EndpointId>,
    now: Timestamp,
) -> Result<Outgoing, StoreError> {
    let mut outgoing = Outgoing::default();
    for endpoint in endpoints {
        outgoing.writes.push(Delivery::new(event, endpoint, now).put(db)?);
        outgoing.messages.push(message(event.agent, endpoint, event.id));
    }
    Ok(outgoing)
}

impl Outgoing {
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// The writes for the caller's transaction, at most [`endpoint::MAX_ENDPOINTS`] per event. One of them is refused only
    /// if this event was put before.
    pub fn writes(&self) -> impl Iterator<Item = Write> {
        self.writes.iter().cloned()
    }

    /// Joins two sets of deliveries, for one [`Outgoing::keep`] or [`Outgoing::announce`].
    pub fn and(mut self, other: Outgoing) -> Outgoing {
        self.writes.extend(other.writes);
        self.messages.extend(other.messages);
        self
    }

    /// Writes the deliveries outside a transaction. Existing ones stay as they are, so it may be called again for the same
    /// event.
    pub async fn keep(&self, db: &Db) -> Result<(), StoreError> {
        for writes in self.writes.chunks(AT_ONCE) {
            for written in join_all(writes.iter().map(|write| db.write(write.clone()))).await {
                match written {
                    Ok(_) | Err(WriteError::Refused(_)) => {}
                    Err(WriteError::Failed(error)) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Queues the deliveries now. It never fails: the sweeper sends what could not be queued. A caller without access to
    /// the queue need not call it.
    pub async fn announce(&self, queue: &dyn Queue) {
        send_all_or_log(queue, &self.messages).await;
    }
}

pub(super) fn message(agent: AgentId, endpoint: EndpointId, event: EventId) -> Message {
    Message::Delivery { agent, endpoint, event }
}

pub(super) async fn send_or_log(queue: &dyn Queue, message: &Message, after: Duration) {
    if let Err(error) = queue.send_after(message, after).await {
        log::failure("could not queue a delivery; the sweeper will", &error);
    }
}

async fn send_all_or_log(queue: &dyn Queue, messages: &[Message]) {
    if let Err(error) = queue.send_all(messages).await {
        log::failure("could not queue deliveries; the sweeper will", &error);
    }
}

/// Restarts a delivery that has ended, with the same event. `false` if somebody else just did.
pub async fn replay(db: &Db, queue: &dyn Queue, found: &Delivery, now: Timestamp) -> Result<bool, StoreError> {
    match db.write(found.replayed(db, now)?).await {
        Ok(_) => {}
        Err(WriteError::Refused(_)) => return Ok(false),
        Err(WriteError::Failed(error)) => return Err(error),
    }
    send_or_log(queue, &message(found.agent, found.endpoint, found.event), Duration::ZERO).await;
    Ok(true)
}

#[derive(Deserialize)]
struct Open {
    pk: String,
    sk: String,
    due: Timestamp,
}

fn outbox(db: &Db) -> InIndex<'_> {
    InIndex {
        table: &db.tables.agents,
        index: OUTBOX_INDEX.name,
        shard: OUTBOX_INDEX.partition,
        is_due: "#outbox = :shard AND #due <= :now",
    }
}

/// Whether no delivery is open, due or not.
pub async fn is_empty(db: &Db) -> Result<bool, StoreError> {
    for shard in 0..OUTBOX_SHARDS {
        if !db.query::<Open>(outbox(db).items(&delivery::outbox_shard(shard), FAR, 1)?).await?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Queues every due delivery again. Returns how many.
pub async fn sweep(db: &Db, queue: &dyn Queue, now: Timestamp) -> Result<usize, StoreError> {
    let outbox = outbox(db);
    let mut sent = 0;
    for shard in 0..OUTBOX_SHARDS {
        let mut messages = Vec::new();
        for open in db.query::<Open>(outbox.items(&delivery::outbox_shard(shard), now, PER_SHARD)?).await? {
            let Some((agent, endpoint, event)) = delivery::of_key(&open.pk, &open.sk) else { continue };
            // The due time is moved first, so only one of two sweepers sends, and a delivery whose message is lost is due
            // again.
            let key = delivery::key(agent, endpoint, event);
            if outbox.look_again_at(db, key, open.due, now.plus(LOOK_AGAIN)).await? {
                messages.push(message(agent, endpoint, event));
            }
        }
        send_all_or_log(queue, &messages).await;
        sent += messages.len();
    }
    if sent > 0 {
        log::event("deliveries swept", serde_json::json!({"sent": sent}));
    }
    Ok(sent)
}
