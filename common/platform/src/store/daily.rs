//! Daily quotas: counters per UTC day with a limit.

use base::clock::Timestamp;

use super::db::Write;
use super::{Db, Key, StoreError};

const DAY_SECS: i64 = 24 * 3600;

/// Counts one more use today, at most `most` a day. Exact under concurrency. False if the limit is reached. The counters
/// are in the agents table.
pub async fn take(db: &Db, partition: String, most: u32, now: Timestamp) -> Result<bool, StoreError> {
    let day = now.secs().div_euclid(DAY_SECS);
    let write = Write::update(
        &db.tables.agents,
        Key::new(partition, day.to_string()),
        "SET #expires = :expires ADD #used :one",
    )
    .only_if("attribute_not_exists(#used) OR #used < :most")
    .bind("one", 1)?
    .bind("most", most)?
    .bind("expires", (day + 2) * DAY_SECS)?;
    db.write_if(write).await
}

/// How often something was counted today.
pub async fn used(db: &Db, partition: String, now: Timestamp) -> Result<u64, StoreError> {
    #[derive(serde::Deserialize)]
    struct Counter {
        #[serde(default)]
        used: u64,
    }
    let day = now.secs().div_euclid(DAY_SECS);
    let counter: Option<Counter> = db.get(&db.tables.agents, Key::new(partition, day.to_string())).await?;
    Ok(counter.map_or(0, |counter| counter.used))
}

/// Seconds until the next UTC day.
pub fn secs_left(now: Timestamp) -> u64 {
    (DAY_SECS - now.secs().rem_euclid(DAY_SECS)).unsigned_abs()
}
