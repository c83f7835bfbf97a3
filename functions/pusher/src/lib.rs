//! The pusher: notifies subscribers of changes to their jobs, from the stream of the jobs table.
//!
//! The filter in `template.yaml` passes only jobs that already had a subscriber (`watched` in the old image), so jobs
//! without subscribers never start it.

use base::clock::Timestamp;
use futures_util::{StreamExt, stream};
use gate::jobs::Job;
use gate::push::{Pusher, is_news};
use platform::http::log;
use platform::store::StoreError;
use platform::store::stream::{Change, StreamEvent};
pub use serde_dynamo::Item;
use serde_dynamo::{AttributeValue, from_item};

/// How many jobs are handled at the same time.
const AT_ONCE: usize = 8;

/// Handles a batch: changes of one job in order, different jobs in parallel.
///
/// # Errors
/// If subscribers cannot be read from the database. The batch is then delivered again; a subscriber may get the same state
/// twice, which is harmless.
pub async fn handle(pusher: &Pusher, event: StreamEvent<Item>, now: Timestamp) -> Result<(), StoreError> {
    let mut changed: Vec<Vec<Job>> = Vec::new();
    for job in event.records.into_iter().filter_map(|record| news(record.dynamodb)) {
        match changed.iter_mut().find(|jobs| jobs[0].request_id == job.request_id) {
            Some(jobs) => jobs.push(job),
            None => changed.push(vec![job]),
        }
    }
    let tell: Vec<_> = changed.iter().map(|jobs| tell_in_turn(pusher, jobs, now)).collect();
    let told: Vec<Result<(), StoreError>> = stream::iter(tell).buffer_unordered(AT_ONCE).collect().await;
    told.into_iter()
        .collect::<Result<(), _>>()
        .inspect_err(|error| log::failure("subscribers could not be notified of a batch", error))
}

async fn tell_in_turn(pusher: &Pusher, jobs: &[Job], now: Timestamp) -> Result<(), StoreError> {
    for job in jobs {
        pusher.tell(job, now).await?;
    }
    Ok(())
}

/// The job after a change that subscribers can see. Records of other items, or unreadable ones, are ignored.
fn news(change: Change<Item>) -> Option<Job> {
    let is_job = |item: &Item| matches!(item.get("pk"), Some(AttributeValue::S(pk)) if pk.starts_with("JOB#"));
    let (old, new) = (change.old_image.filter(is_job)?, change.new_image.filter(is_job)?);
    let (old, new): (Job, Job) = (from_item(old).ok()?, from_item(new).ok()?);
    (old.watched && is_news(&old, &new)).then_some(new)
}
