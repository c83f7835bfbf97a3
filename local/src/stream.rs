//! Reads the stream of the jobs table like Lambda's poller, and passes it to the aggregator and the pusher.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gate::app::App;
use gate::push::Pusher;
use platform::http::log;
use platform::mail::Mailer;
use platform::store::Queue;
use platform::store::aws::SignedHttp;
use serde_json::{Value, json};

use crate::Error;

const PAUSE: Duration = Duration::from_millis(300);
/// Shorter, because subscribers are waiting.
const PUSH_PAUSE: Duration = Duration::from_millis(100);

/// The consumer of the stream.
pub enum Consumer {
    /// Reads from the beginning, or after the sequence number in the file `place`, which keeps the position.
    Aggregator { mailer: Mailer, deliveries: Arc<dyn Queue>, place: Option<PathBuf> },
    /// Reads from now on, and only what its filter in `template.yaml` passes.
    Pusher(Box<Pusher>),
}

impl Consumer {
    async fn take(&self, app: &App, event: Value) -> Result<(), Error> {
        let now = app.clock.now();
        match self {
            Consumer::Aggregator { mailer, deliveries, .. } => {
                aggregator::handle(&app.db, mailer, &**deliveries, serde_json::from_value(event)?, now).await?;
            }
            Consumer::Pusher(pusher) => {
                if event["Records"][0]["dynamodb"]["OldImage"]["watched"]["BOOL"] == true {
                    // A failed push is only logged here; deployed, it is delivered again.
                    let _ = pusher::handle(pusher, serde_json::from_value(event)?, now).await;
                }
            }
        }
        Ok(())
    }
}

/// Reads the stream of the jobs table until the task is dropped, one record in each batch. So batches are the same wherever
/// and however often reading starts again.
pub async fn follow(app: App, consumer: Consumer, http: SignedHttp, endpoint: String) {
    let reader = Reader { http, endpoint };
    let (place, pause, first) = match &consumer {
        Consumer::Aggregator { place, .. } => (place.clone(), PAUSE, "TRIM_HORIZON"),
        Consumer::Pusher(_) => (None, PUSH_PAUSE, "LATEST"),
    };
    let mut iterator = None;
    let mut after =
        place.as_ref().and_then(|place| std::fs::read_to_string(place).ok()).filter(|number| !number.is_empty());
    loop {
        let step = async {
            let at = match iterator.take() {
                Some(iterator) => iterator,
                None => reader.iterator(&app.db.tables.jobs, after.as_deref(), first).await?,
            };
            let answer = reader.ask("GetRecords", &json!({"ShardIterator": at, "Limit": 100})).await?;
            let records = answer["Records"].as_array().cloned().unwrap_or_default();
            let idle = records.is_empty();
            for record in records {
                let number = record["dynamodb"]["SequenceNumber"].as_str().map(str::to_owned);
                consumer.take(&app, json!({"Records": [record]})).await?;
                if let (Some(place), Some(number)) = (&place, &number) {
                    crate::write_whole(place, number)?;
                }
                after = number;
            }
            iterator = answer["NextShardIterator"].as_str().map(str::to_owned);
            Ok::<bool, Error>(idle)
        };
        match step.await {
            Ok(false) => {}
            Ok(true) => tokio::time::sleep(pause).await,
            Err(error) => {
                log::failure("the stream could not be read", &error);
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
        }
    }
}

struct Reader {
    http: SignedHttp,
    endpoint: String,
}

impl Reader {
    async fn iterator(&self, table: &str, after: Option<&str>, first: &str) -> Result<String, Error> {
        let streams = self.ask("ListStreams", &json!({"TableName": table})).await?;
        let arn = text(&streams["Streams"][0]["StreamArn"])?;
        let stream = self.ask("DescribeStream", &json!({"StreamArn": arn})).await?;
        let shard = text(&stream["StreamDescription"]["Shards"][0]["ShardId"])?;
        let mut question = json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": first});
        if let Some(after) = after {
            question["ShardIteratorType"] = json!("AFTER_SEQUENCE_NUMBER");
            question["SequenceNumber"] = json!(after);
        }
        text(&self.ask("GetShardIterator", &question).await?["ShardIterator"])
    }

    async fn ask(&self, what: &str, question: &Value) -> Result<Value, Error> {
        let target = format!("DynamoDBStreams_20120810.{what}");
        let headers = [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", target.as_str())];
        let url = format!("{}/", self.endpoint);
        let answer = self.http.send("dynamodb", "POST", &url, &headers, question.to_string().into_bytes()).await?;
        if answer.status != 200 {
            return Err(format!("{what} answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body)).into());
        }
        Ok(serde_json::from_slice(&answer.body)?)
    }
}

fn text(value: &Value) -> Result<String, Error> {
    value.as_str().map(str::to_owned).ok_or_else(|| "the stream's answer lacks a name".into())
}
