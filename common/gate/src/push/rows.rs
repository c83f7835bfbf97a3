//! Connections and subscriptions as rows, and every key of theirs.
//!
//! TTL only cleans up: a row whose connection's time is over counts as absent wherever it is read.

use std::collections::BTreeSet;

use base::clock::Timestamp;
use base::digest;
use base::ids::{AgentId, RequestId};
use platform::http::log;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::{LIFETIME, MAX_CONNECTIONS, MAX_SUBSCRIPTIONS};

/// How often another slot is tried when somebody else took the one chosen.
const SLOT_TRIES: u32 = 8;
/// Subscribers that are read of one job: all its owner's connections may be, and as many whose time is over.
const MOST_READ: usize = 2 * MAX_CONNECTIONS as usize;
/// How long a row outlives its connection, in seconds.
const KEPT_SECS: i64 = 3600;

/// A connection that was let in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Connection {
    pub agent: AgentId,
    /// The slot of its agent that it takes.
    pub slot: String,
    /// The access token it was opened with, by its key; none if a wallet opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// What it is subscribed to.
    #[serde(default, with = "serde_dynamo::string_set", skip_serializing_if = "BTreeSet::is_empty")]
    pub requests: BTreeSet<String>,
    /// The gateway has closed it by then.
    pub until: Timestamp,
    /// Unix seconds after which the row may go.
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

/// What became of a wish to follow jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watching {
    Yes,
    /// The connection would follow more jobs than it may.
    Full,
    /// It was closed meanwhile.
    Closed,
}

/// A set of strings, as an update adds it and takes it away.
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

/// Lets a connection in. `false` if its agent has as many as it may.
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
        // Any of them, so that those who connect at once seldom choose the same.
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

/// A connection that is still open, as far as anybody knows.
pub async fn load(db: &Db, connection: &str, now: Timestamp) -> Result<Option<Connection>, StoreError> {
    let found: Option<Connection> = db.get_latest(&db.tables.agents, connection_key(connection)).await?;
    Ok(found.filter(|found| now < found.until))
}

/// Lets a connection follow jobs that it does not follow yet.
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

/// Lets a connection no longer follow these jobs.
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

/// The connections that follow a job: one query of its own partition. As the latest writes left it, because a
/// subscription is told of every change after it.
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

/// The job is over and the connection was told: makes room for others. What is left by a failure here goes with the
/// connection.
pub async fn end(db: &Db, request: RequestId, connection: &str) {
    if let Err(error) = unwatch(db, connection, &[request]).await {
        log::failure("a subscription could not be ended", &error);
    }
}

/// A subscription whose connection is gone.
pub async fn drop_subscription(db: &Db, request: RequestId, connection: &str) {
    let write = Write::delete(&db.tables.agents, watch_key(&request.to_string(), connection));
    if let Err(error) = db.write(write).await {
        log::failure("a dead subscription could not be removed", &error);
    }
}

/// Forgets a connection and everything that it follows. What is left by a failure here is met as gone later, or expires.
pub async fn close(db: &Db, connection: &str) {
    let done = async {
        let row: Option<Connection> = db.get_latest(&db.tables.agents, connection_key(connection)).await?;
        let Some(row) = row else { return Ok(()) };
        let delete = |request: &String| Write::delete(&db.tables.agents, watch_key(request, connection));
        db.batch_write(row.requests.iter().map(delete).collect()).await?;
        let slot = Write::delete(&db.tables.agents, Key::new(slots(row.agent), &row.slot));
        // Unless its time was over and another has it.
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
