//! Limits on concurrent jobs, so that no buyer uses all workers. A job without a free slot is put down and tried again.
//!
//! A slot is a row taken by a condition and valid until a time, like a lease. After a crash it becomes free when that time
//! is over. The same job can take its own slot again at once. `market` limits the executor's jobs with the same slots.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256;
use base::ids::AgentId;
use platform::http::log;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

/// Concurrent jobs per buyer that do the work of our own tools in the workers.
pub const OF_BUYER: u8 = 4;
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

/// The pool of a buyer's slots in the workers.
pub fn of_buyer(buyer: AgentId) -> (String, u8) {
    (format!("SLOTS#TOOLS#{buyer}"), OF_BUYER)
}

/// Takes a slot of each pool (its partition and its number of slots) for at most `most`. `None` if one has no free slot.
pub async fn take(
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
                log::failure("a slot could not be released", &error);
            }
        }
    }
}
