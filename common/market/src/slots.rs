//! Limits on concurrent jobs in the executor, per soul and per buyer, so that none of them uses all capacity. A job
//! without a free slot is postponed.
//!
//! The slots are those of [`gate::jobs::slots`]. After a crash a slot becomes free one execution later.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use gate::jobs::slots::{self, Slots};
use platform::store::{Db, StoreError};

use super::service_runner::MOST_EXECUTION;

/// Concurrent jobs per soul.
pub const OF_SOUL: u8 = 3;
/// Concurrent jobs per buyer.
pub const OF_BUYER: u8 = 4;
/// Concurrent trials over all souls: nobody pays for them.
pub const OF_TRIALS: u8 = 2;

/// Takes the slots of a soul's job. `None` if its soul or its buyer has no free slot.
pub async fn take(
    db: &Db,
    soul: &str,
    buyer: AgentId,
    job: RequestId,
    now: Timestamp,
) -> Result<Option<Slots>, StoreError> {
    let pools = [(format!("SLOTS#SOUL#{soul}"), OF_SOUL), (format!("SLOTS#BUYER#{buyer}"), OF_BUYER)];
    slots::take(db, &pools, job.to_string(), MOST_EXECUTION, now).await
}

/// Takes a slot for a trial that lasts at most `most`.
pub async fn take_for_trial(db: &Db, trial: &str, most: Duration, now: Timestamp) -> Result<Option<Slots>, StoreError> {
    slots::take(db, &[("SLOTS#TRIALS".to_owned(), OF_TRIALS)], trial.to_owned(), most, now).await
}
