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

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Jobs sent to their queue again.
    pub sent: u32,
    /// Age of the oldest of them since it was created, in seconds.
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

/// Sends every due job of a lane to the lane's queue again.
pub async fn sweep(db: &Db, lane: Lane, queue: &dyn Queue, now: Timestamp) -> Result<Swept, StoreError> {
    let (mut swept, mut failed) = (Swept::default(), None);
    for shard in 0..OPEN_SHARDS {
        // A shard that cannot be read does not stop the others.
        if let Err(error) = sweep_shard(db, lane, shard, queue, now, &mut swept).await {
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
    now: Timestamp,
    swept: &mut Swept,
) -> Result<(), StoreError> {
    for open in store::due(db, lane, shard, now, PER_SHARD).await? {
        let Some(request_id) = job::request_id_of(&open.pk) else { continue };
        // The due time is moved first. So only one of two sweepers sends the job, and it becomes due again if the message
        // is lost.
        if store::look_again_at(db, request_id, open.due, now.plus(LOOK_AGAIN)).await? {
            queue::send_or_log(queue, request_id, None).await;
            swept.sent += 1;
            let age = now.secs().saturating_sub(open.created.secs()).unsigned_abs();
            swept.oldest_secs = swept.oldest_secs.max(age);
        }
    }
    Ok(())
}
