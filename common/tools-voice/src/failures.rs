//! Calls with numbers outside that failed by their provider's fault. They cost their agent nothing, but the operator what was
//! talked until then. An agent that finds a way to make them fail must not talk for nothing all day: after some failures in a
//! UTC day, its number makes and takes no more calls outside.

use base::clock::Timestamp;
use platform::store::{Db, Key, StoreError, Write};
use serde::Deserialize;

/// Failed calls of a number in a UTC day, after which it has no others.
pub const MAX_A_DAY: u32 = 3;

const DAY_SECS: i64 = 24 * 3600;

/// The failed calls of a number in a day: `VOICEFAILED#<number>` / `<day>`.
#[derive(Deserialize)]
struct Counted {
    failed: u32,
}

fn key(number: &str, day: i64) -> Key {
    Key::new(format!("VOICEFAILED#{number}"), day.to_string())
}

fn day(at: Timestamp) -> i64 {
    at.secs().div_euclid(DAY_SECS)
}

/// Counts failed calls of an agent's number.
pub(crate) fn count(db: &Db, number: &str, failed: u32, now: Timestamp) -> Result<Write, StoreError> {
    Write::update(&db.tables.messages, key(number, day(now)), "SET #expires = :expires ADD #failed :failed")
        .bind("expires", (day(now) + 2) * DAY_SECS)?
        .bind("failed", failed)
}

/// Whether so many calls of this number have failed today that it has no others.
pub(crate) async fn are_too_many(db: &Db, number: &str, now: Timestamp) -> Result<bool, StoreError> {
    let counted: Option<Counted> = db.get(&db.tables.messages, key(number, day(now))).await?;
    Ok(counted.is_some_and(|counted| counted.failed >= MAX_A_DAY))
}
