//! Limits on concurrent jobs in the executor, per soul and per buyer, so that none of them uses all capacity. A job
//! without a free slot is postponed.
//!
//! A slot is a row that is taken by a conditional write and has an expiry, like a lease. After a crash it becomes free
//! when it expires, which is after the longest time of one execution. The same job can take its own slot again at once.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256;
use base::ids::{AgentId, RequestId};
use platform::http::log;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::service_runner::MOST_EXECUTION;

/// Concurrent jobs per soul.
pub const OF_SOUL: u8 = 3;
/// Concurrent jobs per buyer.
pub const OF_BUYER: u8 = 4;
/// Concurrent trials over all souls: nobody pays for them.
pub const OF_TRIALS: u8 = 2;
/// Extra time for loading the inputs and storing the result.
const MARGIN: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
struct Row {
    holder: String,
    until: Timestamp,
    /// DynamoDB TTL in Unix seconds.
    expires: i64,
}

/// Slots that were taken together.
pub struct Slots {
    taken: Vec<Key>,
    holder: String,
}

/// Takes the slots of a soul's job. `None` if its soul or its buyer has no free slot.
pub async fn take(
    db: &Db,
    soul: &str,
    buyer: AgentId,
    job: RequestId,
    now: Timestamp,
) -> Result<Option<Slots>, StoreError> {
    let pools = [(format!("SLOTS#SOUL#{soul}"), OF_SOUL), (format!("SLOTS#BUYER#{buyer}"), OF_BUYER)];
    take_all(db, &pools, job.to_string(), MOST_EXECUTION, now).await
}

/// Takes a slot for a trial that lasts at most `most`.
pub async fn take_for_trial(db: &Db, trial: &str, most: Duration, now: Timestamp) -> Result<Option<Slots>, StoreError> {
    take_all(db, &[("SLOTS#TRIALS".to_owned(), OF_TRIALS)], trial.to_owned(), most, now).await
}

async fn take_all(
    db: &Db,
    pools: &[(String, u8)],
    holder: String,
    most: Duration,
    now: Timestamp,
) -> Result<Option<Slots>, StoreError> {
    let mut slots = Slots { taken: Vec::new(), holder };
    let until = now.plus(most + MARGIN);
    for (pool, count) in pools {
        match take_one(db, pool, *count, &slots.holder, until, now).await? {
            Some(key) => slots.taken.push(key),
            None => {
                slots.release(db, now).await;
                return Ok(None);
            }
        }
    }
    Ok(Some(slots))
}

async fn take_one(
    db: &Db,
    pool: &str,
    count: u8,
    holder: &str,
    until: Timestamp,
    now: Timestamp,
) -> Result<Option<Key>, StoreError> {
    // Holders start at different slots, so that a free one is found soon and a job finds its own again.
    let first = sha256(holder.as_bytes())[0] % count;
    for place in (0..count).map(|step| (first + step) % count) {
        let key = Key::new(pool, format!("{place:02}"));
        let row = Row { holder: holder.to_owned(), until, expires: until.secs() };
        let write = Write::put(&db.tables.souls, key.clone(), &row)?
            .only_if("attribute_not_exists(#pk) OR #until <= :now OR #holder = :holder")
            .bind("now", now)?
            .bind("holder", holder)?;
        if db.write_if(write).await? {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

impl Slots {
    /// Releases the slots. A slot whose release fails becomes free when its time is over.
    pub async fn release(self, db: &Db, now: Timestamp) {
        for key in self.taken {
            let release = async {
                let write = Write::update(&db.tables.souls, key, "SET #until = :now").only_if("#holder = :holder");
                db.write_if(write.bind("now", now)?.bind("holder", &self.holder)?).await
            };
            if let Err(error) = release.await {
                log::failure("a slot of the executor could not be released", &error);
            }
        }
    }
}
