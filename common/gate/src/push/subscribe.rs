//! Subscribing to jobs: the caller's jobs, the states that are sent first, and the order of writes that misses no change
//! (see [`super`]).

use std::collections::HashMap;
use std::time::Duration;

use base::ids::RequestId;
use futures_util::{StreamExt, TryStreamExt, stream};
use platform::http::ApiError;
use platform::store::{Db, StoreError, Write, WriteError, db};

use super::rows::{self, Connection, Watching};
use super::{MAX_SUBSCRIPTIONS, message, text_of};
use crate::app::App;
use crate::jobs::{Job, job};
use crate::limits;
use tools::files::Reader;

/// How many jobs are marked concurrently.
const AT_ONCE: usize = 8;
/// Pauses before a mark is tried again after a conflict with the engine's own transaction.
const PAUSES: [Duration; 3] = [Duration::from_millis(20), Duration::from_millis(60), Duration::from_millis(200)];

/// The messages for a connection, to send in this order.
pub struct Subscribed {
    pub ack: String,
    /// The state of each job.
    pub states: Vec<String>,
}

/// Subscribes to jobs.
///
/// # Errors
/// 409 `too_many_subscriptions`; 404 if the connection was closed; 503 if the database fails.
pub async fn subscribe(
    app: &App,
    id: &str,
    connection: &Connection,
    wanted: &[String],
) -> Result<Subscribed, ApiError> {
    let named: Vec<(&String, Option<RequestId>)> = wanted.iter().map(|text| (text, text.parse().ok())).collect();
    let mut ids: Vec<RequestId> = named.iter().filter_map(|(_, id)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut jobs = owned(app, connection, &ids).await?;
    let mut requests = Vec::new();
    let mut rejected = Vec::new();
    for (text, id) in named {
        match id.filter(|id| jobs.contains_key(id)) {
            Some(id) if requests.contains(&id) => {}
            Some(id) => requests.push(id),
            None => rejected.push(text.clone()),
        }
    }
    // An ended job is sent once, without a subscription.
    let open: Vec<RequestId> = requests.iter().copied().filter(|id| jobs[id].outcome.is_none()).collect();
    match rows::watch(&app.db, id, connection, &open).await? {
        Watching::Yes => {}
        Watching::Full => return Err(ApiError::TooManySubscriptions { most: MAX_SUBSCRIPTIONS }),
        Watching::Closed => return Err(ApiError::NotFound),
    }
    let marks: Vec<_> = open.iter().map(|id| found_watched(&app.db, *id, jobs[id].watched)).collect();
    let found: Vec<Option<Job>> = stream::iter(marks).buffered(AT_ONCE).try_collect().await?;
    let found: Vec<Job> = found.into_iter().flatten().collect();
    // Jobs that ended between the two reads.
    let over: Vec<RequestId> = found.iter().filter(|job| job.outcome.is_some()).map(|job| job.request_id).collect();
    rows::unwatch(&app.db, id, &over).await?;
    jobs.extend(found.into_iter().map(|job| (job.request_id, job)));
    let states: Vec<_> = requests.iter().map(|id| state(app, &jobs[id])).collect();
    let states = stream::iter(states).buffered(AT_ONCE).try_collect().await?;
    Ok(Subscribed { ack: message::subscribed(&requests, &rejected), states })
}

/// A job's state. If the buyer's `result` limit is used up, the client is told to poll instead, which gives the error.
async fn state(app: &App, job: &Job) -> Result<String, StoreError> {
    let text = text_of(&*app.blobs, job).await?;
    match limits::take_result(app, job, Reader::Buyer, || text.len()).await {
        Ok(()) => Ok(text),
        Err(_) => Ok(message::poll(job.request_id)),
    }
}

/// The jobs among these that the caller owns, by consistent reads.
async fn owned(app: &App, connection: &Connection, ids: &[RequestId]) -> Result<HashMap<RequestId, Job>, StoreError> {
    let keys: Vec<_> = ids.iter().map(|id| job::key(*id)).collect();
    let (db, now) = (&app.db, app.clock.now());
    let jobs: Vec<Option<Job>> = db.batch_get(&db.tables.jobs, &keys, true).await?;
    let jobs = jobs.into_iter().flatten().filter(|job| job.agent == connection.agent && !job.is_forgotten(now));
    Ok(jobs.map(|job| (job.request_id, job)).collect())
}

/// Marks the job as watched and returns its state. Every later change is pushed. `None` if the job is gone.
async fn found_watched(db: &Db, id: RequestId, is_watched: bool) -> Result<Option<Job>, StoreError> {
    if is_watched {
        return db.get_latest(&db.tables.jobs, job::key(id)).await;
    }
    let mut pauses = PAUSES.iter();
    loop {
        let write =
            Write::update(&db.tables.jobs, job::key(id), "SET #watched = :yes").only_if("attribute_exists(#pk)");
        match db.write(write.bind("yes", true)?).await {
            Ok(item) => return db::parse(item).map(Some),
            Err(WriteError::Refused(_)) => return Ok(None),
            // Most likely a conflict with the engine's transaction on the same item.
            Err(WriteError::Failed(error)) => match pauses.next() {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => return Err(error),
            },
        }
    }
}
