//! What sold work uses, on its job.

use base::clock::Clock;
use platform::store::{BoxFuture, Db, StoreError};

use super::job::Job;
use super::store::{self, MoveError};
use crate::work::{Meter, Usage};

/// Writes down on a job what its work uses. Refused once another attempt has the job, so two executors never spend one
/// budget twice: the later one goes on from what the earlier has written.
pub struct JobMeter {
    db: Db,
    clock: Clock,
    /// As it was taken up.
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
