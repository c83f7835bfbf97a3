//! The aggregator: adds up the jobs table's stream into the service's statistics, off the call path.

use common::http::log;
use common::stats::{self, Batch, JobState};
use common::store::{Db, StoreError};
use serde::Deserialize;
use serde_json::Value;

/// A batch of changes. Only what is read is named.
#[derive(Debug, Deserialize)]
pub struct StreamEvent {
    #[serde(rename = "Records", default)]
    pub records: Vec<StreamRecord>,
}

#[derive(Debug, Deserialize)]
pub struct StreamRecord {
    pub dynamodb: Change,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Change {
    pub sequence_number: String,
    #[serde(default)]
    pub new_image: Value,
    #[serde(default)]
    pub old_image: Value,
}

/// Counts a batch, once, however often it is delivered.
pub async fn handle(db: &Db, event: StreamEvent, now_secs: i64) -> Result<(), StoreError> {
    let (Some(first), Some(last)) = (event.records.first(), event.records.last()) else { return Ok(()) };
    let id = format!("{}-{}", first.dynamodb.sequence_number, last.dynamodb.sequence_number);
    let mut batch = Batch::default();
    for record in &event.records {
        let change = &record.dynamodb;
        // Claims share the table and are no jobs; a deleted job has no new image.
        if let Some(new) = job_state(&change.new_image) {
            batch.count(job_state(&change.old_image), new);
        }
    }
    stats::add(db, &id, &batch, now_secs).await.inspect_err(|error| log::failure("a batch could not be counted", error))
}

/// Reads a job's state out of an image in DynamoDB's JSON.
fn job_state(image: &Value) -> Option<JobState<'_>> {
    let text = |name: &str| image[name]["S"].as_str();
    if !text("pk")?.starts_with("JOB#") {
        return None;
    }
    let word = |name: &str| image[name].get("S").cloned();
    let settlement = serde_json::from_value(word("settlement")?).ok()?;
    let outcome = word("outcome").and_then(|outcome| serde_json::from_value(outcome).ok());
    Some(JobState { outcome, settlement, price: image["price"]["N"].as_str()?.parse().ok()?, agent: text("agent")? })
}
