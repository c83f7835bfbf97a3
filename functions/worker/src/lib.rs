//! The worker: takes jobs off the queue and brings them to their end.

use common::http::log;
use common::jobs::Engine;
use common::store::queue::Message;
use common::tools::{Runner, vehicle_identification, web_read};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Every tool: a direct call that its own function left behind ends here too.
pub const RUNNERS: &[&Runner] = &[&vehicle_identification::RUNNER, &web_read::RUNNER];

/// What the queue hands over. Only what is read is named.
#[derive(Debug, Deserialize)]
pub struct SqsEvent {
    #[serde(rename = "Records", default)]
    pub records: Vec<SqsRecord>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SqsRecord {
    pub message_id: String,
    #[serde(default)]
    pub body: String,
}

/// Which messages the queue should hand over again.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SqsAnswer {
    pub batch_item_failures: Vec<BatchItemFailure>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchItemFailure {
    pub item_identifier: String,
}

/// Works on a batch. Only the messages that failed are reported; the rest are done with.
pub async fn handle(engine: &Engine, event: SqsEvent) -> SqsAnswer {
    let mut answer = SqsAnswer::default();
    // One after the other: a message is one job, and the queue runs as many workers as there is work.
    for record in event.records {
        if let Err(cause) = work_on(engine, &record).await {
            log::failure(&format!("message {} failed", record.message_id), &cause);
            answer.batch_item_failures.push(BatchItemFailure { item_identifier: record.message_id });
        }
    }
    answer
}

async fn work_on(engine: &Engine, record: &SqsRecord) -> Result<(), common::store::StoreError> {
    let Message::Job { request_id, trace } = Message::parse(&record.body)?;
    let started = engine.clock.now();
    engine.run(request_id).await?;
    let ms = engine.clock.now().millis() - started.millis();
    log::event("job", json!({"request_id": request_id, "ms": ms, "trace": trace}));
    Ok(())
}
