//! The database, in a process of its own: the embedded DynamoDB behind a proxy that counts the units of each request.
//! The chain is reached through it too, to count its requests.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use http::HeaderMap;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::Error;

/// The requests and units since the last read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Consumed {
    pub requests: f64,
    pub read_units: f64,
    pub write_units: f64,
    pub chain_requests: f64,
}

#[derive(Clone)]
struct Counter {
    database: String,
    chain: String,
    consumed: Arc<Mutex<Consumed>>,
    http: Client<HttpConnector, Full<Bytes>>,
}

/// Serves until the process is ended. Prints its address in one line. The chain's address comes in `CHAIN_RPC_URL`.
pub fn serve() -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let database = format!("http://{}", listener.local_addr()?);
        let memory = dynoxide::Database::memory()?;
        tokio::spawn(dynoxide::server::serve_with_shutdown(listener, memory, std::future::pending()));
        let http = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
        let chain = std::env::var("CHAIN_RPC_URL")?;
        let counter = Counter { database, chain, consumed: Arc::default(), http };
        let router = Router::new().route("/consumed", get(consumed)).fallback(forward).with_state(counter);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        Ok(axum::serve(listener, router).await?)
    })
}

impl Consumed {
    pub fn read(answer: &Value) -> Consumed {
        let number = |name: &str| answer[name].as_f64().unwrap_or_default();
        Consumed {
            requests: number("requests"),
            read_units: number("read_units"),
            write_units: number("write_units"),
            chain_requests: number("chain_requests"),
        }
    }
}

async fn consumed(State(counter): State<Counter>) -> axum::Json<Value> {
    let Consumed { requests, read_units, write_units, chain_requests } =
        std::mem::take(&mut *counter.consumed.lock().unwrap_or_else(PoisonError::into_inner));
    axum::Json(json!({
        "requests": requests, "read_units": read_units, "write_units": write_units, "chain_requests": chain_requests,
    }))
}

async fn forward(State(counter): State<Counter>, headers: HeaderMap, body: Bytes) -> Response {
    let forwarded = match headers.get("x-amz-target").and_then(|target| target.to_str().ok()) {
        Some(target) => ask_database(&counter, target.to_owned(), headers, body).await,
        None => ask_chain(&counter, headers, body).await,
    };
    forwarded.unwrap_or_else(|error| {
        let mut response = Response::new(Body::from(error.to_string()));
        *response.status_mut() = http::StatusCode::BAD_GATEWAY;
        response
    })
}

async fn ask_database(counter: &Counter, target: String, headers: HeaderMap, body: Bytes) -> Result<Response, Error> {
    let is_stream = target.starts_with("DynamoDBStreams");
    let operation = target.rsplit('.').next().unwrap_or_default();
    // Stream reads are made by the poller, for which Lambda does not charge.
    let body = if is_stream { body } else { asking_for_units(&body)? };
    let (response, answer) = pass_on(counter, &counter.database, &headers, body).await?;
    if !is_stream {
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let units = match &answer["ConsumedCapacity"] {
            Value::Array(tables) => tables.iter().filter_map(|table| table["CapacityUnits"].as_f64()).sum(),
            table => table["CapacityUnits"].as_f64().unwrap_or_default(),
        };
        let mut consumed = counter.consumed.lock().unwrap_or_else(PoisonError::into_inner);
        consumed.requests += 1.0;
        match operation {
            "GetItem" | "BatchGetItem" | "Query" => consumed.read_units += units,
            _ => consumed.write_units += units,
        }
    }
    Ok(response)
}

async fn ask_chain(counter: &Counter, headers: HeaderMap, body: Bytes) -> Result<Response, Error> {
    counter.consumed.lock().unwrap_or_else(PoisonError::into_inner).chain_requests += 1.0;
    Ok(pass_on(counter, &counter.chain, &headers, body).await?.0)
}

fn asking_for_units(body: &[u8]) -> Result<Bytes, Error> {
    let mut body: Value = serde_json::from_slice(body)?;
    body["ReturnConsumedCapacity"] = json!("INDEXES");
    Ok(body.to_string().into())
}

async fn pass_on(counter: &Counter, to: &str, headers: &HeaderMap, body: Bytes) -> Result<(Response, Bytes), Error> {
    let mut request = http::Request::post(to);
    for (name, value) in headers {
        if name != http::header::CONTENT_LENGTH && name != http::header::HOST {
            request = request.header(name, value);
        }
    }
    let (parts, body) = counter.http.request(request.body(Full::new(body))?).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    let mut response = Response::new(Body::from(body.clone()));
    *response.status_mut() = parts.status;
    for name in ["content-type", "x-amzn-requestid", "x-amz-crc32"] {
        if let Some(value) = parts.headers.get(name) {
            response.headers_mut().insert(http::HeaderName::from_static(name), value.clone());
        }
    }
    Ok((response, body))
}
