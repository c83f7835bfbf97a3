//! Connections and subscriptions as rows, with all their keys.
//!
//! TTL only cleans up: a row whose `until` has passed counts as absent wherever it is read.

use std::collections::BTreeSet;

use base::clock::Timestamp;
use base::digest;
use base::ids::{AgentId, RequestId};
use platform::http::log;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::{LIFETIME, MAX_CONNECTIONS, MAX_SUBSCRIPTIONS};

/// How many times a slot is chosen again after a concurrent connection took it.
const SLOT_TRIES: u32 = 8;
/// Most subscribers read per job: all connections of its owner, and as many expired ones.
const MOST_READ: usize = 2 * MAX_CONNECTIONS as usize;
/// How long a row outlives its connection, in seconds.
const KEPT_SECS: i64 = 3600;

/// An accepted connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Connection {
    pub agent: AgentId,
    /// Its slot among its agent's connections.
    pub slot: String,
    /// Key of the access token it was opened with; none if a wallet opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Ids of the jobs it is subscribed to.
    #[serde(default, with = "serde_dynamo::string_set", skip_serializing_if = "BTreeSet::is_empty")]
    pub requests: BTreeSet<String>,
    /// API Gateway has closed it by then.
    pub until: Timestamp,
    /// Unix seconds after which the row may be deleted.
    pub expires: i64,
}

#[derive(Serialize, Deserialize)]
struct Slot {
    connection: String,
    until: Timestamp,
    expires: i64,
}

/// A subscription. Its partition is the job's own.
#[derive(Serialize, Deserialize)]
struct Watch {
    until: Timestamp,
    expires: i64,
}

/// The result of subscribing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watching {
    Yes,
    /// The connection would have more subscriptions than allowed.
    Full,
    /// The connection was closed in the meantime.
    Closed,
}

/// A DynamoDB string set, to add to or delete from a set.
#[derive(Serialize)]
#[serde(transparent)]
struct Ids(#[serde(with = "serde_dynamo::string_set")] Vec<String>);

fn connection_key(connection: &str) -> Key {
    Key::new(format!("SOCKET#{connection}"), "SOCKET")
}

fn slots(agent: AgentId) -> String {
    format!("SOCKETS#{agent}")
}

fn watchers(request: &str) -> String {
    format!("WATCH#{request}")
}

fn watch_key(request: &str, connection: &str) -> Key {
    Key::new(watchers(request), connection)
}

/// Accepts a connection. `false` if its agent has the most allowed.
pub async fn open(
    db: &Db,
    connection: &str,
    agent: AgentId,
    token: Option<String>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let until = now.plus(LIFETIME);
    let expires = until.secs() + KEPT_SECS;
    let Some(slot) = take_slot(db, connection, agent, until, expires, now).await? else { return Ok(false) };
    let row = Connection { agent, slot, token, requests: BTreeSet::new(), until, expires };
    db.write(Write::put(&db.tables.agents, connection_key(connection), &row)?).await?;
    Ok(true)
}

async fn take_slot(
    db: &Db,
    connection: &str,
    agent: AgentId,
    until: Timestamp,
    expires: i64,
    now: Timestamp,
) -> Result<Option<String>, StoreError> {
    #[derive(Deserialize)]
    struct Row {
        sk: String,
        until: Timestamp,
    }
    for _ in 0..SLOT_TRIES {
        let query = Query::new(&db.tables.agents, "#pk = :pk", usize::from(MAX_CONNECTIONS)).latest();
        let rows: Vec<Row> = db.query(query.bind("pk", slots(agent))?).await?;
        let taken: BTreeSet<String> = rows.into_iter().filter(|row| now < row.until).map(|row| row.sk).collect();
        let free: Vec<String> =
            (0..MAX_CONNECTIONS).map(|slot| format!("{slot:02}")).filter(|slot| !taken.contains(slot)).collect();
        // A random one, so that concurrent connections seldom choose the same.
        let dice = usize::from(u16::from_be_bytes(digest::random()));
        let Some(slot) = free.get(dice % free.len().max(1)) else { return Ok(None) };
        let row = Slot { connection: connection.to_owned(), until, expires };
        let write = Write::put(&db.tables.agents, Key::new(slots(agent), slot), &row)?
            .only_if("attribute_not_exists(#pk) OR #until <= :now OR #connection = :connection")
            .bind("now", now)?
            .bind("connection", connection)?;
        match db.write(write).await {
            Ok(_) => return Ok(Some(slot.clone())),
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Ok(None)
}

/// A connection that is open, as far as the table shows.
pub async fn load(db: &Db, connection: &str, now: Timestamp) -> Result<Option<Connection>, StoreError> {
    let found: Option<Connection> = db.get_latest(&db.tables.agents, connection_key(connection)).await?;
    Ok(found.filter(|found| now < found.until))
}

/// Subscribes a connection to those of the jobs that it is not subscribed to yet.
pub async fn watch(
    db: &Db,
    connection: &str,
    row: &Connection,
    requests: &[RequestId],
) -> Result<Watching, StoreError> {
    let new: Vec<String> =
        requests.iter().map(RequestId::to_string).filter(|request| !row.requests.contains(request)).collect();
    if new.is_empty() {
        return Ok(Watching::Yes);
    }
    let Some(room) = MAX_SUBSCRIPTIONS.checked_sub(new.len()) else { return Ok(Watching::Full) };
    let write = Write::update(&db.tables.agents, connection_key(connection), "ADD #requests :new")
        .only_if("attribute_exists(#pk) AND (attribute_not_exists(#requests) OR size(#requests) <= :room)")
        .bind("new", Ids(new.clone()))?
        .bind("room", room)?;
    match db.write(write).await {
        Ok(_) => {}
        Err(refused @ WriteError::Refused(_)) => {
            let is_there = refused.refused(0).is_some_and(|refused| refused.old.is_some());
            return Ok(if is_there { Watching::Full } else { Watching::Closed });
        }
        Err(WriteError::Failed(error)) => return Err(error),
    }
    let watch = Watch { until: row.until, expires: row.expires };
    let put = |request: &String| Write::put(&db.tables.agents, watch_key(request, connection), &watch);
    db.batch_write(new.iter().map(put).collect::<Result<_, _>>()?).await?;
    Ok(Watching::Yes)
}

/// Unsubscribes a connection from these jobs.
pub async fn unwatch(db: &Db, connection: &str, requests: &[RequestId]) -> Result<(), StoreError> {
    if requests.is_empty() {
        return Ok(());
    }
    let requests: Vec<String> = requests.iter().map(RequestId::to_string).collect();
    let delete = |request: &String| Write::delete(&db.tables.agents, watch_key(request, connection));
    db.batch_write(requests.iter().map(delete).collect()).await?;
    let write = Write::update(&db.tables.agents, connection_key(connection), "DELETE #requests :these")
        .only_if("attribute_exists(#pk)")
        .bind("these", Ids(requests))?;
    match db.write(write).await {
        Ok(_) | Err(WriteError::Refused(_)) => Ok(()),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// The connections that are subscribed to a job: one query of its own partition, and a consistent read, because a
/// subscriber gets every change after its subscription.
pub async fn subscribers(db: &Db, request: RequestId, now: Timestamp) -> Result<Vec<String>, StoreError> {
    #[derive(Deserialize)]
    struct Row {
        sk: String,
        until: Timestamp,
    }
    let query = Query::new(&db.tables.agents, "#pk = :pk", MOST_READ).latest();
    let rows: Vec<Row> = db.query(query.bind("pk", watchers(&request.to_string()))?).await?;
    Ok(rows.into_iter().filter(|row| now < row.until).map(|row| row.sk).collect())
}

/// Ends the subscription to a job that has ended, so that the connection may subscribe to another job. If this fails, the
/// subscription ends with the connection.
pub async fn end(db: &Db, request: RequestId, connection: &str) {
    if let Err(error) = unwatch(db, connection, &[request]).await {
        log::failure("a subscription could not be ended", &error);
    }
}

/// Removes a subscription whose connection is closed.
pub async fn drop_subscription(db: &Db, request: RequestId, connection: &str) {
    let write = Write::delete(&db.tables.agents, watch_key(&request.to_string(), connection));
    if let Err(error) = db.write(write).await {
        log::failure("a dead subscription could not be removed", &error);
    }
}

/// Removes a connection and its subscriptions. If this fails, they are removed at the next failed push, or expire.
pub async fn close(db: &Db, connection: &str) {
    let done = async {
        let row: Option<Connection> = db.get_latest(&db.tables.agents, connection_key(connection)).await?;
        let Some(row) = row else { return Ok(()) };
        let delete = |request: &String| Write::delete(&db.tables.agents, watch_key(request, connection));
        db.batch_write(row.requests.iter().map(delete).collect()).await?;
        let slot = Write::delete(&db.tables.agents, Key::new(slots(row.agent), &row.slot));
        // Refused if this connection had expired and another one has taken the slot.
        match db.write(slot.only_if("#connection = :connection").bind("connection", connection)?).await {
            Ok(_) | Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
        db.write(Write::delete(&db.tables.agents, connection_key(connection))).await.map(drop).map_err(StoreError::from)
    };
    if let Err(error) = done.await {
        log::failure("a connection could not be forgotten", &error);
    }
}
