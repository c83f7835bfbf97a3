//! Records the usage of sold work on its job.

use base::clock::Clock;
use platform::store::{BoxFuture, Db, StoreError};

use super::job::Job;
use super::store::{self, MoveError};
use crate::work::{Meter, Usage};

/// Records usage on a job. Fails once another attempt has the job, so two executors never spend one budget twice: the later
/// one continues from what the earlier one recorded.
pub struct JobMeter {
    db: Db,
    clock: Clock,
    /// The job as it was when it was leased.
    job: Job,
}

impl JobMeter {
    pub fn new(db: &Db, clock: &Clock, job: &Job) -> JobMeter {
        JobMeter { db: db.clone(), clock: clock.clone(), job: job.clone() }
    }
}

impl Meter for JobMeter {
    fn record<'a>(&'a self, _: Usage, after: Usage) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            store::used(&self.db, &self.job, after, self.clock.now()).await.map_err(|error| match error {
                MoveError::LostLease => StoreError::new("another attempt has the job"),
                MoveError::Failed(error) => error,
            })
        })
    }
}
