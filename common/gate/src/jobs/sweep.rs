//! The sweeper: finds jobs that should have moved and asks for them again. It runs every minute, reads an index that
//! holds only open jobs, and so costs the same whether there were a thousand jobs before or a billion.

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
/// A job that was asked for again is left alone for this long.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// What a sweep found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Swept {
    /// Jobs asked for again.
    pub sent: u32,
    /// Age of the oldest of them, in seconds since it was made.
    pub oldest_secs: u64,
}

/// The last sweep that came to its end, for who wants to know whether anybody sweeps.
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

/// Writes down that a sweep came to its end.
pub async fn note(db: &Db, swept: Swept, now: Timestamp) -> Result<(), StoreError> {
    let last = LastSweep { at: now, sent: swept.sent, oldest_secs: swept.oldest_secs };
    db.write(Write::put(&db.tables.ledger, last_key(), &last)?).await?;
    Ok(())
}

/// The last sweep, if there was one.
pub async fn last(db: &Db) -> Result<Option<LastSweep>, StoreError> {
    db.get(&db.tables.ledger, last_key()).await
}

/// Sends every due job of a lane again, to the lane's queue.
pub async fn sweep(db: &Db, lane: Lane, queue: &dyn Queue, now: Timestamp) -> Result<Swept, StoreError> {
    let (mut swept, mut failed) = (Swept::default(), None);
    for shard in 0..OPEN_SHARDS {
        // A shard that cannot be read is no reason to leave the jobs of the others lying.
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
        // Moved first: of two sweepers one sends, and a job whose message is lost again comes back.
        if store::look_again_at(db, request_id, open.due, now.plus(LOOK_AGAIN)).await? {
            queue::send_or_log(queue, request_id, None).await;
            swept.sent += 1;
            let age = now.secs().saturating_sub(open.created.secs()).unsigned_abs();
            swept.oldest_secs = swept.oldest_secs.max(age);
        }
    }
    Ok(())
}
