//! Limits on concurrent jobs, so that no buyer uses all workers. A job without a free slot is put down and tried again.
//!
//! A slot is a row taken by a condition and valid until a time, like a lease. After a crash it becomes free when that time
//! is over. The same job can take its own slot again at once. `market` limits the executor's jobs with the same slots.
//!
//! A buyer's slots also remember how the work in them ended. One whose jobs were mostly refunded within an hour, because of
//! hosts or input that the buyer named, is closed for an hour; the first one stays open. So work that is free for its buyer
//! takes one worker at a time.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256;
use base::ids::AgentId;
use base::tool_result::{ErrorCode, ToolError, Unavailable};
use platform::http::log;
use platform::store::db;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

/// Concurrent jobs per buyer that do the work of our own tools in the workers.
pub const OF_BUYER: u8 = 4;
/// Extra time for loading the inputs and storing the result.
const MARGIN: Duration = Duration::from_secs(60);
/// How long the ends of a slot's jobs count, and how long a slot is closed.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// Refunds after which a slot is closed, if they are the most.
const MOST_REFUNDED: u32 = 3;
/// The slot of a pool that is never closed.
const FIRST: &str = "00";

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Row {
    holder: String,
    until: Timestamp,
    /// How the jobs ended that had the slot, and since when they are counted.
    since: Timestamp,
    refunded: u32,
    worked: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_until: Option<Timestamp>,
    /// DynamoDB TTL in Unix seconds.
    expires: i64,
}

/// How the work in a slot ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Worked,
    /// It was paid back because of hosts or input that the buyer named.
    Refunded,
    /// It goes on later, or it failed for another reason, such as a provider's outage.
    Other,
}

impl End {
    /// The end by the error of the work.
    pub fn of(error: &ToolError) -> End {
        let by_host = error.reason.as_deref() == Some(Unavailable::DestinationNotReachable.as_str());
        match error.code {
            ErrorCode::InvalidInput | ErrorCode::ContentBlocked => End::Refunded,
            _ if by_host => End::Refunded,
            _ => End::Other,
        }
    }
}

impl Row {
    /// The row after a job's end.
    fn after(&self, end: End, may_close: bool, now: Timestamp) -> Row {
        let is_old = self.since.plus(REMEMBERED) <= now;
        let mut next = if is_old { Row { since: now, refunded: 0, worked: 0, ..self.clone() } } else { self.clone() };
        match end {
            End::Worked => next.worked += 1,
            End::Refunded => next.refunded += 1,
            End::Other => return next,
        }
        if may_close && next.refunded >= MOST_REFUNDED && next.refunded > next.worked {
            let until = now.plus(REMEMBERED);
            next = Row { closed_until: Some(until), since: until, refunded: 0, worked: 0, ..next };
        }
        next
    }
}

/// Slots that were taken together.
pub struct Slots {
    taken: Vec<(Key, Row)>,
    holder: String,
}

/// The pool of a buyer's slots in the workers.
pub fn of_buyer(buyer: AgentId) -> (String, u8) {
    (format!("SLOTS#TOOLS#{buyer}"), OF_BUYER)
}

/// The pool of the workers that may wait for hosts that callers name.
pub fn of_hosts(places: u8) -> (String, u8) {
    ("SLOTS#TOOLS#HOSTS".to_owned(), places)
}

/// The pool of those that may wait long.
pub fn of_slow_hosts(places: u8) -> (String, u8) {
    ("SLOTS#TOOLS#SLOW".to_owned(), places / 2)
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
    Ok(if slots.add(db, pools, most, now).await? {
        Some(slots)
    } else {
        slots.release(db, now).await;
        None
    })
}

impl Slots {
    /// Takes a slot of each of these pools too. `false` if one has no free slot.
    pub async fn add(
        &mut self,
        db: &Db,
        pools: &[(String, u8)],
        most: Duration,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let until = now.plus(most + MARGIN);
        for (pool, count) in pools {
            match take_one(db, pool, *count, &self.holder, until, now).await? {
                Some(taken) => self.taken.push(taken),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Releases the slots. A slot whose release fails becomes free when its time is over.
    pub async fn release(self, db: &Db, now: Timestamp) {
        self.give_back(db, "", End::Other, now).await;
    }

    /// Releases the slots of a buyer's work that ended so. Those of its own remember the end.
    pub async fn release_after(self, db: &Db, buyer: AgentId, end: End, now: Timestamp) {
        self.give_back(db, &of_buyer(buyer).0, end, now).await;
    }

    /// Slots of the pool `remembers` remember the end.
    async fn give_back(self, db: &Db, remembers: &str, end: End, now: Timestamp) {
        for (key, row) in self.taken {
            let release = async {
                let write = if key.pk == remembers && end != End::Other {
                    let next = row.after(end, key.sk != FIRST, now);
                    let next = Row { until: now, expires: now.plus(REMEMBERED * 2).secs(), ..next };
                    Write::put(&db.tables.souls, key, &next)?
                } else {
                    Write::update(&db.tables.souls, key, "SET #until = :now").bind("now", now)?
                };
                db.write_if(write.only_if("#holder = :holder").bind("holder", &self.holder)?).await
            };
            if let Err(error) = release.await {
                log::failure("a slot could not be released", &error);
            }
        }
    }
}

async fn take_one(
    db: &Db,
    pool: &str,
    count: u8,
    holder: &str,
    until: Timestamp,
    now: Timestamp,
) -> Result<Option<(Key, Row)>, StoreError> {
    // Holders start at different slots, so that a free one is found soon and a job finds its own again.
    let first = u16::from(sha256(holder.as_bytes())[0]);
    for place in (0..u16::from(count)).map(|step| (first + step) % u16::from(count)) {
        let key = Key::new(pool, format!("{place:02}"));
        let write =
            Write::update(&db.tables.souls, key.clone(), "SET #holder = :holder, #until = :until, #expires = :expires")
                .only_if(
                    "(attribute_not_exists(#pk) OR #until <= :now OR #holder = :holder) \
             AND (attribute_not_exists(#closed_until) OR #closed_until <= :now)",
                )
                .bind("holder", holder)?
                .bind("until", until)?
                .bind("expires", until.plus(REMEMBERED).secs())?
                .bind("now", now)?;
        match db.write(write).await {
            Ok(row) => return Ok(Some((key, db::parse(row)?))),
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_closes_when_most_of_its_jobs_were_refunded() {
        let now = Timestamp::from_secs(1_795_000_000);
        let after = |ends: &[End], may_close: bool| {
            ends.iter().fold(Row::default(), |row, end| row.after(*end, may_close, now)).closed_until
        };
        let (back, good, other) = (End::Refunded, End::Worked, End::Other);
        assert_eq!(after(&[back, back, back], true), Some(now.plus(REMEMBERED)));
        assert_eq!(after(&[back, other, back, good, back], true), Some(now.plus(REMEMBERED)));
        for open in [&[back, back][..], &[other; 9], &[good, good, good, back, back, back], &[back, back, good]] {
            assert_eq!(after(open, true), None, "{open:?}");
        }
        assert_eq!(after(&[back; 9], false), None, "one slot stays open");
        // What is older than an hour does not count.
        let old = [back, back].iter().fold(Row::default(), |row, end| row.after(*end, true, now));
        assert_eq!(old.after(back, true, now.plus(REMEMBERED)).closed_until, None);
    }

    #[test]
    fn a_providers_outage_is_not_the_buyers_doing() {
        let unavailable = |reason| End::of(&ToolError::unavailable(reason, ""));
        assert_eq!(unavailable(Unavailable::DestinationNotReachable), End::Refunded);
        assert_eq!(End::of(&ToolError::new(ErrorCode::InvalidInput, "")), End::Refunded);
        for reason in [Unavailable::SourceUnavailable, Unavailable::FrozenByOwner, Unavailable::ProviderNotConfigured] {
            assert_eq!(unavailable(reason), End::Other, "{reason:?}");
        }
        for code in [ErrorCode::ProviderAuth, ErrorCode::RateLimited, ErrorCode::InternalError] {
            assert_eq!(End::of(&ToolError::new(code, "")), End::Other, "{code:?}");
        }
    }
}
