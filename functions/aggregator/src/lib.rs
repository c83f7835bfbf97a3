//! The aggregator reads the stream of the jobs table, off the call path. It adds up the service's statistics, notifies
//! agents of ended jobs, posts their webhook events, and counts sellers' sales.

mod notices;
mod sales;
mod surges;
mod warnings;

use std::collections::BTreeSet;

use base::clock::Timestamp;
use base::ids::RequestId;
use gate::jobs::{finality, job};
use gate::stats::{self, Batch, JobState};
use ledger::notifications;
use ledger::webhooks::outbox;
use market::checkout;
use platform::http::log;
use platform::mail::Mailer;
use platform::store::stream::StreamEvent;
use platform::store::{Db, Queue, StoreError};
use serde_json::Value;

/// Processes a batch of changes. It is idempotent: after an error the batch is delivered again, and nothing is counted or
/// sent twice.
///
/// `deliveries` is the queue of webhook events.
pub async fn handle(
    db: &Db,
    mailer: &Mailer,
    deliveries: &dyn Queue,
    event: StreamEvent<Value>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (Some(first), Some(last)) = (event.records.first(), event.records.last()) else { return Ok(()) };
    let id = format!("{}-{}", first.dynamodb.sequence_number, last.dynamodb.sequence_number);
    let (mut batch, mut notes, mut charged) = (Batch::default(), Vec::new(), BTreeSet::new());
    let (mut sellers, mut events, mut orders) = (BTreeSet::new(), Vec::new(), Vec::new());
    let mut settled = Vec::new();
    for record in &event.records {
        let change = &record.dynamodb;
        let [old, new] = [&change.old_image, &change.new_image].map(|image| image.as_ref().unwrap_or(&Value::Null));
        sellers.extend(sales::seller_of_ended(old, new));
        charged.extend(surges::charged(old, new));
        settled.extend(settled_on_chain(old, new));
        events.extend(notices::events(old, new));
        orders.extend(checkout::events::of_change(old, new));
        notes.extend(notices::of_change(db, old, new, now)?);
        // Claims share the table with jobs, and a deleted job has no new image.
        if let Some(state) = job_state(new) {
            batch.count(job_state(old), state);
        }
    }
    let noted = finality::note(db, &id, &settled, now).await;
    let noted = noted.inspect_err(|error| log::failure("settlements could not be recorded", error));
    let counted = stats::add(db, &id, &batch, now.secs()).await;
    let counted = counted.inspect_err(|error| log::failure("a batch could not be counted", error));
    let told = async {
        let (surging, surges) = surges::notes(db, &charged, now).await?;
        notes.extend(surging);
        events.extend(surges);
        let outgoing = outbox::put_all(db, &events, now).await?.and(checkout::events::outgoing(db, &orders, now)?);
        outgoing.keep(db).await?;
        outgoing.announce(deliveries).await;
        notifications::raise_all(db, notes).await
    };
    let told = told.await;
    let told = told.inspect_err(|error| log::failure("agents could not be notified of a batch", error));
    sales::count(db, &sellers, now).await;
    // Last, because a mail relay may be slow.
    let warned = warnings::send(db, mailer, &charged, now).await;
    let warned = warned.inspect_err(|error| log::failure("owners could not be warned of a batch", error));
    noted.and(counted).and(told).and(warned)
}

/// The job whose signed payment this change settled.
fn settled_on_chain(old: &Value, new: &Value) -> Option<RequestId> {
    let is_settled = |image: &Value| image["settlement"]["S"] == "settled";
    let is_paid = new["payment"]["M"].is_object() && new["transaction"]["S"].is_string();
    let is_new = is_settled(new) && !is_settled(old) && is_paid;
    is_new.then(|| job::request_id_of(new["pk"]["S"].as_str()?)).flatten()
}

/// Reads a job's state from an image in DynamoDB JSON.
fn job_state(image: &Value) -> Option<JobState<'_>> {
    let text = |name: &str| image[name]["S"].as_str();
    if !text("pk")?.starts_with("JOB#") {
        return None;
    }
    let word = |name: &str| image[name].get("S").cloned();
    let settlement = serde_json::from_value(word("settlement")?).ok()?;
    let outcome = word("outcome").and_then(|outcome| serde_json::from_value(outcome).ok());
    let number = |name: &str| image[name]["N"].as_str();
    Some(JobState {
        outcome,
        settlement,
        price: number("price")?.parse().ok()?,
        agent: text("agent")?,
        overlap: image["overlap"]["BOOL"].as_bool().unwrap_or_default(),
        reorganized: image["reorganized"]["BOOL"].as_bool().unwrap_or_default(),
        created: Timestamp::from_millis(number("created")?.parse().ok()?),
    })
}
