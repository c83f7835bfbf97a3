//! The jobs table's stream, read as Lambda's poller would and handed to the aggregator.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use common::app::App;
use common::http::log;
use common::mail::Mailer;
use common::store::aws::SignedHttp;
use serde_json::{Value, json};

use crate::Error;
use crate::queue::LocalQueue;

const PAUSE: Duration = Duration::from_millis(300);

/// Reads the stream of the jobs table until the task is dropped. `place` keeps how far it came.
pub async fn follow(
    app: App,
    mailer: Mailer,
    deliveries: Arc<LocalQueue>,
    http: SignedHttp,
    endpoint: String,
    place: Option<PathBuf>,
) {
    let reader = Reader { http, endpoint };
    let mut iterator = None;
    let mut after =
        place.as_ref().and_then(|place| std::fs::read_to_string(place).ok()).filter(|number| !number.is_empty());
    loop {
        let step = async {
            let from = match iterator.take() {
                Some(iterator) => iterator,
                None => reader.iterator(&app.db.tables.jobs, after.as_deref()).await?,
            };
            let answer = reader.ask("GetRecords", &json!({"ShardIterator": from, "Limit": 100})).await?;
            let records = answer["Records"].as_array().cloned().unwrap_or_default();
            let idle = records.is_empty();
            for record in records {
                let number = record["dynamodb"]["SequenceNumber"].as_str().map(str::to_owned);
                // One record a batch: then a batch is the same however often and wherever reading begins again.
                let event = serde_json::from_value(json!({"Records": [record]}))?;
                aggregator::handle(&app.db, &mailer, &*deliveries, event, app.clock.now()).await?;
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
            Ok(true) => tokio::time::sleep(PAUSE).await,
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
    async fn iterator(&self, table: &str, after: Option<&str>) -> Result<String, Error> {
        let streams = self.ask("ListStreams", &json!({"TableName": table})).await?;
        let arn = text(&streams["Streams"][0]["StreamArn"])?;
        let stream = self.ask("DescribeStream", &json!({"StreamArn": arn})).await?;
        let shard = text(&stream["StreamDescription"]["Shards"][0]["ShardId"])?;
        let mut question = json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"});
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
