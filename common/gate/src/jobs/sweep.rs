//! The sweeper: finds jobs that got stuck and sends them to their queue again. It runs every minute and reads an index that
//! has only open jobs, so its cost does not grow with the number of finished jobs.

use std::time::Duration;

use base::clock::Timestamp;
use platform::http::log;
use platform::store::due::FAR;
use platform::store::queue::{self, Queue};
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::job::{self, Lane, OPEN_SHARDS};
use super::store;

/// Jobs taken from one shard in one sweep.
const PER_SHARD: usize = 200;
/// Delay before a job that was sent to its queue again is swept the next time.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// While its queue has a backlog, a job's message that nobody has taken counts as lost only after this time.
const MAX_QUEUED: Duration = Duration::from_secs(600);

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Jobs sent to their queue again.
    pub sent: u32,
    /// Age of the oldest due job since it was created, in seconds.
    pub oldest_secs: u64,
}

/// The last complete sweep, for health checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSweep {
    pub at: Timestamp,
    /// As in [`Swept`].
    pub sent: u32,
    pub oldest_secs: u64,
}

fn last_key() -> Key {
    Key::new("SWEEP", "LAST")
}

/// Records that a sweep was completed.
pub async fn note(db: &Db, swept: Swept, now: Timestamp) -> Result<(), StoreError> {
    let last = LastSweep { at: now, sent: swept.sent, oldest_secs: swept.oldest_secs };
    db.write(Write::put(&db.tables.ledger, last_key(), &last)?).await?;
    Ok(())
}

/// The last sweep, if there was one.
pub async fn last(db: &Db) -> Result<Option<LastSweep>, StoreError> {
    db.get(&db.tables.ledger, last_key()).await
}

/// Sends every due job of a lane to the lane's queue again, except those that only wait in the queue's backlog: a second
/// message for each of them every minute would make the backlog longer.
pub async fn sweep(db: &Db, lane: Lane, queue: &dyn Queue, now: Timestamp) -> Result<Swept, StoreError> {
    let (mut swept, mut failed) = (Swept::default(), None);
    let has_backlog = queue.waiting().await.unwrap_or_else(|error| {
        log::failure("a queue's waiting messages could not be counted", &error);
        None
    });
    // A later message may still wait.
    let lost = if has_backlog.is_some_and(|waiting| waiting > 0) { now.minus(MAX_QUEUED) } else { FAR };
    for shard in 0..OPEN_SHARDS {
        // A shard that cannot be read does not stop the others.
        if let Err(error) = sweep_shard(db, lane, shard, queue, lost, now, &mut swept).await {
            log::failure("a shard of the open jobs could not be swept", &error);
            failed = Some(error);
        }
    }
    if swept.sent > 0 {
        log::event("swept", serde_json::json!({"sent": swept.sent, "oldest_secs": swept.oldest_secs}));
    }
    failed.map_or(Ok(swept), Err)
}

/// Whether no job of a lane is open, due or not.
pub async fn is_over(db: &Db, lane: Lane) -> Result<bool, StoreError> {
    for shard in 0..OPEN_SHARDS {
        if !store::due(db, lane, shard, FAR, 1).await?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn sweep_shard(
    db: &Db,
    lane: Lane,
    shard: u8,
    queue: &dyn Queue,
    lost: Timestamp,
    now: Timestamp,
    swept: &mut Swept,
) -> Result<(), StoreError> {
    for open in store::due(db, lane, shard, now, PER_SHARD).await? {
        let Some(request_id) = job::request_id_of(&open.pk) else { continue };
        let age = now.secs().saturating_sub(open.created.secs()).unsigned_abs();
        swept.oldest_secs = swept.oldest_secs.max(age);
        // The due time is moved first. So only one of two sweepers sends the job, and it becomes due again if the message
        // is lost.
        if store::send_again(db, request_id, open.due, now.plus(LOOK_AGAIN), lost, now).await? {
            queue::send_or_log(queue, request_id, None).await;
            swept.sent += 1;
        } else {
            // Out of the way of the jobs behind it: a sweep reads only so many.
            store::look_again_at(db, request_id, open.due, now.plus(MAX_QUEUED)).await?;
        }
    }
    Ok(())
}
