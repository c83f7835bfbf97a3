//! The embedded DynamoDB behind the real SDK client, without a network between them, so that the simulation controls
//! time and order; and with the faults of a real one.

use std::fmt;
use std::sync::Arc;

use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, SharedAsyncSleep};
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use dynoxide::Database;
use platform::config::Tables;
use platform::store::Db;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::faults::Fate;
use crate::support::proxy::{throttled, transaction_conflict};

#[derive(Clone)]
struct Wire {
    database: Database,
    fate: Arc<Fate>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

/// A client of a new, empty database.
pub fn open(fate: Arc<Fate>, tables: Tables, seed: u64) -> Db {
    let database = Database::memory().expect("a database");
    let wire = SharedHttpConnector::new(Wire { database, fate });
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "simulation"))
        .endpoint_url("http://database.invalid")
        .http_client(http_client_fn(move |_, _| wire.clone()))
        .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
        // As deployed, but with a retry bucket per run: a shared one would let runs affect each other.
        .retry_config(
            RetryConfig::standard().with_max_attempts(3).with_initial_backoff(std::time::Duration::from_millis(50)),
        )
        .retry_partition(aws_sdk_dynamodb::config::retry::RetryPartition::new(format!("simulation-{seed}")))
        .build();
    Db::new(aws_sdk_dynamodb::Client::from_conf(config), tables)
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let wire = self.clone();
        HttpConnectorFuture::new(async move { wire.clone().fate.step(wire.answer(&request)).await })
    }
}

impl Wire {
    async fn answer(&self, request: &HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body = String::from_utf8_lossy(request.body().bytes().unwrap_or_default()).into_owned();
        let fate = &self.fate;
        let writes = !matches!(operation.as_str(), "GetItem" | "BatchGetItem" | "Query");
        if operation == "TransactWriteItems" && fate.strikes("TransactionConflict", 30) {
            return respond(transaction_conflict());
        }
        if fate.strikes("throttled", 20) {
            return respond(throttled());
        }
        if fate.strikes("request lost", 12) {
            return Err(broken());
        }
        if writes && fate.strikes("request late", 6) {
            // The caller has given up. The request arrives all the same, after others.
            let (database, delay) = (self.database.clone(), fate.dice.millis(2_000));
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                run(&database, &operation, &body);
            });
            return Err(broken());
        }
        let answer = run(&self.database, &operation, &body);
        if fate.strikes("answer lost", 15) {
            return Err(broken());
        }
        respond(answer)
    }
}

fn broken() -> ConnectorError {
    ConnectorError::io("the connection broke".into())
}

fn respond((status, body): (u16, Value)) -> Result<HttpResponse, ConnectorError> {
    let status = status.try_into().expect("a status");
    let mut response = HttpResponse::new(status, SdkBody::from(body.to_string()));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    Ok(response)
}

fn run(database: &Database, operation: &str, body: &str) -> (u16, Value) {
    match operation {
        "GetItem" => ask(body, |request| database.get_item(request)),
        "BatchGetItem" => ask(body, |request| database.batch_get_item(request)),
        "Query" => ask(body, |request| database.query(request)),
        "PutItem" => ask(body, |request| database.put_item(request)),
        "UpdateItem" => ask(body, |request| database.update_item(request)),
        "DeleteItem" => ask(body, |request| database.delete_item(request)),
        "TransactWriteItems" => ask(body, |request| database.transact_write_items(request)),
        "CreateTable" => ask(body, |request| database.create_table(request)),
        "UpdateTimeToLive" => ask(body, |request| database.update_time_to_live(request)),
        other => panic!("the simulation knows no {other}"),
    }
}

fn ask<Q: DeserializeOwned, A: Serialize>(body: &str, ask: impl FnOnce(Q) -> dynoxide::Result<A>) -> (u16, Value) {
    match ask(serde_json::from_str(body).expect("a request the database can read")) {
        Ok(answer) => (200, serde_json::to_value(answer).expect("an answer")),
        Err(error) => (error.status_code(), serde_json::from_str(&error.to_json()).expect("an error in JSON")),
    }
}
