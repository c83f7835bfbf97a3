//! Trials: runs of a seller's test cases, when a service is listed or changed and once a day after that. Buyers see how
//! many cases passed.
//!
//! A trial is free for the seller and uses neither tools nor buyers' data, so it is limited: [`MOST_A_DAY`] trials per
//! soul and day, [`CASE_SECS`] seconds per case, [`MOST_TIME`] for all cases, and a daily model budget of
//! [`MODEL_A_DAY_OF_SOUL`] per soul and [`MODEL_A_DAY`] for all souls. Services of a seller's own worker are not tried,
//! because the worker would know that it is a trial.
//!
//! | crash | result |
//! |---|---|
//! | before the message is sent | the row is due again after [`LEASE`] |
//! | during the trial | the same |
//! | after the result is stored | the next trial is due a day later |
//!
//! Each change requests a trial, and each trial requests the next daily one. A daily trial that is due soon after another
//! trial is skipped and its row deleted. So after many changes only one row is left.

use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::digest::sha256;
use base::money::Usdc;
use gate::work::{Meter, Usage};
use ledger::account::{minus, plus};
use ledger::day;
use platform::store::lists::List;
use platform::store::{self, BoxFuture, Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::service::{self, Executor, Service};
use super::soul::{self, Slug};

/// Trials per soul and UTC day.
pub const MOST_A_DAY: u32 = 20;
/// Longest run of a case, in seconds.
pub const CASE_SECS: u64 = 60;
/// Longest run of all cases of a trial.
pub const MOST_TIME: Duration = Duration::from_secs(240);
/// Model budget of trials per UTC day: for one soul, and for all souls.
pub const MODEL_A_DAY_OF_SOUL: Usdc = Usdc::from_micro(100_000);
pub const MODEL_A_DAY: Usdc = Usdc::from_micro(2_000_000);
const SHARDS: u8 = 4;
const EVERY: Duration = Duration::from_secs(24 * 3600);
/// A daily trial is skipped this soon after another trial.
const LATELY: Duration = Duration::from_secs(12 * 3600);
const LEASE: Duration = Duration::from_secs(15 * 60);
/// Trials started per scheduler run and shard.
const AT_ONCE: usize = 5;

/// The result of a service's test cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Version of the tested terms.
    pub version: u32,
    pub passed: u32,
    pub total: u32,
    /// The failed cases and their reasons, for the seller only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    pub at: Timestamp,
}

/// A service whose cases are due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    pub soul: Slug,
    pub service: Slug,
    pub due: Timestamp,
    /// A daily trial, not caused by a change.
    #[serde(default)]
    pub daily: bool,
}

fn partition(shard: u8) -> String {
    format!("TRIALS#{shard}")
}

impl Due {
    fn key(&self) -> Key {
        let name = format!("{}#{}", self.soul, self.service);
        Key::new(partition(sha256(name.as_bytes())[0] % SHARDS), store::due::row(self.due, name))
    }

    fn put(&self, db: &Db, now: Timestamp) -> Result<Write, StoreError> {
        Ok(Write::put(&db.tables.souls, self.key(), self)?.into_list(List::Trials, now))
    }
}

/// Whether a service can be tried: it is offered, has cases, and is not done by the seller's worker.
pub fn can_be_tried(service: &Service) -> bool {
    service.is_offered() && !service.test_cases.is_empty() && service.terms.executor != Executor::Worker
}

/// The write that requests a trial of a new or changed service.
pub fn ask(db: &Db, soul: &Slug, service: &Service, now: Timestamp) -> Result<Option<Write>, StoreError> {
    if !can_be_tried(service) {
        return Ok(None);
    }
    Due { soul: soul.clone(), service: service.slug.clone(), due: now, daily: false }.put(db, now).map(Some)
}

/// Whether no trial is planned at all.
pub async fn are_none(db: &Db) -> Result<bool, StoreError> {
    for shard in 0..SHARDS {
        let rows = store::due::rows(&db.tables.souls, &partition(shard), store::due::FAR, 1)?;
        if !db.query::<Due>(rows).await?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Takes the trials that are due. Each goes to one caller only, and is due again after `LEASE` if it does not finish.
pub async fn due(db: &Db, now: Timestamp) -> Result<Vec<Due>, StoreError> {
    let mut taken = Vec::new();
    for shard in 0..SHARDS {
        let rows: Vec<Due> = db.query(store::due::rows(&db.tables.souls, &partition(shard), now, AT_ONCE)?).await?;
        for row in rows {
            let later = Due { due: now.plus(LEASE), ..row.clone() };
            let gone = Write::delete(&db.tables.souls, row.key()).only_if("attribute_exists(#pk)");
            match db.transact(&[gone, later.put(db, now)?]).await {
                Ok(()) => taken.push(later),
                // Another scheduler was faster.
                Err(WriteError::Refused(_)) => {}
                Err(WriteError::Failed(error)) => return Err(error),
            }
        }
    }
    Ok(taken)
}

/// The usage of a soul's trials on a day.
fn day_key(soul: &Slug, now: Timestamp) -> Key {
    Key::new(soul::partition(soul.as_str()), format!("TRIALS#{}", day::name(now)))
}

/// Counts a trial against its soul's day. `false` if the limit is reached.
pub async fn take_turn(db: &Db, soul: &Slug, now: Timestamp) -> Result<bool, StoreError> {
    let write = Write::update(&db.tables.souls, day_key(soul, now), "ADD #used :one SET #expires = :expires")
        .only_if("attribute_not_exists(#used) OR #used < :most")
        .bind("one", 1)?
        .bind("most", MOST_A_DAY)?
        .bind("expires", now.plus(2 * EVERY).secs())?;
    db.write_if(write).await
}

/// Model usage of a day's trials.
#[derive(Default, Deserialize)]
struct ModelDay {
    /// micro-USD
    #[serde(default)]
    model: i64,
}

fn all_key(now: Timestamp) -> Key {
    Key::new("TRIALS#MODEL", day::name(now))
}

/// The rest of today's model budget for a soul's trials.
pub async fn model_left(db: &Db, soul: &Slug, now: Timestamp) -> Result<Usdc, StoreError> {
    let mut left = MODEL_A_DAY;
    for (key, most) in [(day_key(soul, now), MODEL_A_DAY_OF_SOUL), (all_key(now), MODEL_A_DAY)] {
        let used: ModelDay = db.get_latest(&db.tables.souls, key).await?.unwrap_or_default();
        let used = Usdc::from_micro(u64::try_from(used.model).unwrap_or_default());
        left = left.min(most.checked_sub(used).unwrap_or_default());
    }
    Ok(left)
}

/// Counts model usage of trials against the daily budgets of their soul and of all souls.
pub struct TrialMeter {
    db: Db,
    soul: Slug,
    clock: Clock,
}

impl TrialMeter {
    pub fn new(db: &Db, soul: &Slug, clock: &Clock) -> TrialMeter {
        TrialMeter { db: db.clone(), soul: soul.clone(), clock: clock.clone() }
    }
}

impl Meter for TrialMeter {
    fn record<'a>(&'a self, before: Usage, after: Usage) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let now = self.clock.now();
            let days = [(day_key(&self.soul, now), MODEL_A_DAY_OF_SOUL), (all_key(now), MODEL_A_DAY)];
            let more = after.model.checked_sub(before.model);
            let less = before.model.checked_sub(after.model);
            let mut writes = Vec::new();
            for (key, most) in days {
                let write = Write::update(&self.db.tables.souls, key, "ADD #model :change SET #expires = :expires")
                    .bind("expires", now.plus(2 * EVERY).secs())?;
                writes.push(match (more, less) {
                    (Some(more), _) => {
                        let room = most.checked_sub(more);
                        let room = room.ok_or_else(|| StoreError::new("more than a day's trials may cost"))?;
                        write
                            .only_if("attribute_not_exists(#model) OR #model <= :room")
                            .bind("change", plus(more)?)?
                            .bind("room", room)?
                    }
                    (None, less) => write.bind("change", minus(less.unwrap_or_default())?)?,
                });
            }
            match self.db.transact(&writes).await {
                Err(WriteError::Refused(_)) => Err(StoreError::new("the daily model budget of trials is used up")),
                done => Ok(done?),
            }
        })
    }
}

/// Stores the result, unless the terms changed meanwhile, and requests the next trial a day later.
pub async fn keep(db: &Db, taken: &Due, trial: Option<&Trial>, now: Timestamp) -> Result<(), StoreError> {
    if let Some(trial) = trial {
        let key = service::key(taken.soul.as_str(), taken.service.as_str());
        let write = Write::update(&db.tables.souls, key, "SET #trial = :trial")
            .only_if("#terms.#version = :version")
            .bind("trial", trial)?
            .bind("version", trial.version)?;
        match db.write(write).await {
            Ok(_) | Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    let next = Due { due: now.plus(EVERY), daily: true, ..taken.clone() };
    let writes = vec![Write::delete(&db.tables.souls, taken.key()), next.put(db, now)?];
    db.apply(writes).await.map_err(StoreError::from)
}

/// Whether a daily trial can be skipped and its row removed, because a change caused a trial meanwhile.
pub fn is_spare(taken: &Due, last: Option<&Trial>, now: Timestamp) -> bool {
    taken.daily && last.is_some_and(|trial| trial.at.plus(LATELY) > now)
}

/// Removes a trial's row.
pub async fn end(db: &Db, taken: &Due) -> Result<(), StoreError> {
    db.apply(vec![Write::delete(&db.tables.souls, taken.key())]).await.map_err(StoreError::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_changes_leave_one_daily_row() {
        let now = Timestamp::from_secs(1_800_000_000);
        let tried = |hours: u64| {
            let trial = Trial {
                version: 1,
                passed: 1,
                total: 1,
                failures: Vec::new(),
                at: now.minus(Duration::from_secs(hours * 3600)),
            };
            Some(trial)
        };
        let due = |daily| Due { soul: "a-soul".parse().unwrap(), service: "one".parse().unwrap(), due: now, daily };
        for (daily, trial, spare) in
            [(true, tried(2), true), (true, tried(24), false), (true, None, false), (false, tried(2), false)]
        {
            assert_eq!(is_spare(&due(daily), trial.as_ref(), now), spare, "{daily} {trial:?}");
        }
    }
}
