//! The pusher: tells subscribers of the changes of their jobs, off the jobs table's stream.
//!
//! The filter in `template.yaml` lets only changes of jobs through that somebody subscribed to before (`watched` in the old
//! image), so jobs that nobody follows never wake it.

use base::clock::Timestamp;
use futures_util::{StreamExt, stream};
use gate::jobs::Job;
use gate::push::{Pusher, is_news};
use platform::http::log;
use platform::store::StoreError;
use platform::store::stream::{Change, StreamEvent};
pub use serde_dynamo::Item;
use serde_dynamo::{AttributeValue, from_item};

/// So many jobs are told of at the same time.
const AT_ONCE: usize = 8;

/// Tells of a batch: the changes of one job one after the other, jobs beside each other.
///
/// # Errors
/// If the database does not say who subscribed to a job. The batch is then to be delivered again; who was told is told
/// again, which changes nothing for them.
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
    told.into_iter().collect::<Result<(), _>>().inspect_err(|error| log::failure("a batch could not be told", error))
}

async fn tell_in_turn(pusher: &Pusher, jobs: &[Job], now: Timestamp) -> Result<(), StoreError> {
    for job in jobs {
        pusher.tell(job, now).await?;
    }
    Ok(())
}

/// The job as it is after a change that subscribers see. A record that is no job's, or not to be read, is no news.
fn news(change: Change<Item>) -> Option<Job> {
    let is_job = |item: &Item| matches!(item.get("pk"), Some(AttributeValue::S(pk)) if pk.starts_with("JOB#"));
    let (old, new) = (change.old_image.filter(is_job)?, change.new_image.filter(is_job)?);
    let (old, new): (Job, Job) = (from_item(old).ok()?, from_item(new).ok()?);
    (old.watched && is_news(&old, &new)).then_some(new)
}
