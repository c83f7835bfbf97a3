//! A proxy in front of the database or the chain that counts requests and fails on command, as a real network and a
//! real DynamoDB sometimes do, and an emulator never.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use http_body_util::Full;
use hyper::body::Frame;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::{Value, json};

/// The life of a process: a number of requests, after which nothing gets through. The proxies of one stack share it, so
/// that all of them stop at once.
#[derive(Clone)]
pub struct Life {
    left: Arc<AtomicI64>,
    /// Whether the last request still reaches the other side, and only its answer is lost.
    last_one_arrives: Arc<AtomicBool>,
}

impl Life {
    pub fn immortal() -> Life {
        Life::ending_at(i64::MAX, false)
    }

    /// Ends at the nth request: before it arrives, or after.
    pub fn ending_at(request: i64, last_one_arrives: bool) -> Life {
        Life { left: Arc::new(AtomicI64::new(request)), last_one_arrives: Arc::new(AtomicBool::new(last_one_arrives)) }
    }

    /// From now on, allows this many requests.
    pub fn end_after(&self, requests: i64) {
        self.left.store(requests, Ordering::SeqCst);
    }

    /// Starts a new life that ends at this request.
    pub fn die_at(&self, request: i64, last_one_arrives: bool) {
        self.last_one_arrives.store(last_one_arrives, Ordering::SeqCst);
        self.end_after(request);
    }

    pub fn is_over(&self) -> bool {
        self.left.load(Ordering::SeqCst) <= 0
    }
}

enum Fate {
    Passes,
    /// The request arrives; its answer does not.
    Orphaned,
    Lost,
}

impl Life {
    fn spend(&self) -> Fate {
        match self.left.fetch_sub(1, Ordering::SeqCst) {
            left if left > 1 => Fate::Passes,
            1 if self.last_one_arrives.load(Ordering::SeqCst) => Fate::Orphaned,
            _ => Fate::Lost,
        }
    }
}

/// One request that got through.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// DynamoDB operation or JSON-RPC method.
    pub operation: String,
    pub read_units: f64,
    pub write_units: f64,
}

/// A fault: for an operation, returns an answer to give instead of the real one, or `None`.
type Fault = Box<dyn FnMut(&str) -> Option<(u16, Value)> + Send>;

/// A Secrets Manager: gets a request's `Authorization` and the requested ARN, and returns a status and an answer.
type Secrets = Box<dyn Fn(&str, &str) -> (u16, Value) + Send>;

#[derive(Clone)]
pub struct Proxy {
    pub url: String,
    state: Arc<ProxyState>,
}

struct ProxyState {
    target: String,
    life: Life,
    seen: Mutex<Vec<Seen>>,
    fault: Mutex<Option<Fault>>,
    afterwards: Mutex<Option<Fault>>,
    delay: Mutex<Duration>,
    secrets: Mutex<Option<Secrets>>,
    /// Requests that are not answered yet.
    busy: AtomicUsize,
    http: hyper_util::client::legacy::Client<HttpConnector, Full<Bytes>>,
}

impl Proxy {
    pub async fn start(target: &str, life: Life) -> Proxy {
        // A proxy lives as long as the tests run. Its idle connections must not: a crash test starts dozens of proxies.
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(2))
            .build(HttpConnector::new());
        let state = ProxyState {
            target: target.to_owned(),
            life,
            seen: Mutex::default(),
            fault: Mutex::default(),
            afterwards: Mutex::default(),
            delay: Mutex::default(),
            secrets: Mutex::default(),
            busy: AtomicUsize::new(0),
            http,
        };
        let state = Arc::new(state);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let router = Router::new().fallback(forward).with_state(state.clone());
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Proxy { url, state }
    }

    /// The requests that got through since the last call.
    pub fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.state.seen.lock().expect("a lock"))
    }

    /// Whether every request was answered, or given up.
    pub fn is_idle(&self) -> bool {
        self.state.busy.load(Ordering::SeqCst) == 0
    }

    /// From now on, this may answer requests in place of the server.
    pub fn inject(&self, fault: impl FnMut(&str) -> Option<(u16, Value)> + Send + 'static) {
        *self.state.fault.lock().expect("a lock") = Some(Box::new(fault));
    }

    /// From now on, this may replace answers after the request was executed.
    pub fn inject_afterwards(&self, fault: impl FnMut(&str) -> Option<(u16, Value)> + Send + 'static) {
        *self.state.afterwards.lock().expect("a lock") = Some(Box::new(fault));
    }

    /// From now on, also answers as Secrets Manager.
    pub fn hold_secrets(&self, secrets: impl Fn(&str, &str) -> (u16, Value) + Send + 'static) {
        *self.state.secrets.lock().expect("a lock") = Some(Box::new(secrets));
    }

    /// From now on, every answer takes this much longer.
    pub fn slow_down(&self, delay: Duration) {
        *self.state.delay.lock().expect("a lock") = delay;
    }

    pub fn heal(&self) {
        *self.state.afterwards.lock().expect("a lock") = None;
        *self.state.fault.lock().expect("a lock") = None;
    }
}

/// DynamoDB's answer when two transactions conflict, which emulators never give.
pub fn transaction_conflict() -> (u16, Value) {
    let kind = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
    let reasons =
        json!([{"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}, {"Code": "None"}]);
    (400, json!({"__type": kind, "Message": "Transaction cancelled", "CancellationReasons": reasons}))
}

/// DynamoDB's answer when a partition is too busy.
pub fn throttled() -> (u16, Value) {
    let kind = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException";
    (400, json!({"__type": kind, "message": "slow down"}))
}

/// A request that is being answered. It is dropped with its handler if the client goes away.
struct Busy(Arc<ProxyState>);

impl Busy {
    fn with(state: &Arc<ProxyState>) -> Busy {
        state.busy.fetch_add(1, Ordering::SeqCst);
        Busy(state.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn forward(State(state): State<Arc<ProxyState>>, headers: HeaderMap, body: Bytes) -> Response {
    let _busy = Busy::with(&state);
    let operation = operation(&headers, &body);
    let fate = state.life.spend();
    if matches!(fate, Fate::Lost) {
        return broken();
    }
    if operation == "GetSecretValue" {
        let text = |value: Option<&http::HeaderValue>| value.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let authorization = text(headers.get(http::header::AUTHORIZATION)).unwrap_or_default();
        let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
        let secrets = state.secrets.lock().expect("a lock");
        let answer = secrets.as_ref().map(|secrets| secrets(&authorization, asked["SecretId"].as_str().unwrap_or("")));
        let (status, answer) = answer.unwrap_or((400, json!({"__type": "ResourceNotFoundException"})));
        return answer_instead(status, &answer);
    }
    let delay = *state.delay.lock().expect("a lock");
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let fault = state.fault.lock().expect("a lock").as_mut().and_then(|fault| fault(&operation));
    if let Some((status, body)) = fault {
        return answer_instead(status, &body);
    }
    let is_database = headers.contains_key("x-amz-target");
    let body = if is_database { asking_for_capacity(&body) } else { body };
    let mut request = http::Request::post(&state.target);
    for (name, value) in
        headers.iter().filter(|(name, _)| *name != http::header::CONTENT_LENGTH && *name != http::header::HOST)
    {
        request = request.header(name, value);
    }
    let Ok(answer) = state.http.request(request.body(Full::new(body)).expect("a request")).await else {
        return broken();
    };
    let (parts, body) = answer.into_parts();
    let Ok(body) = http_body_util::BodyExt::collect(body).await else { return broken() };
    let body = body.to_bytes();
    let (read_units, write_units) = capacity(&operation, &body);
    let fault = state.afterwards.lock().expect("a lock").as_mut().and_then(|fault| fault(&operation));
    state.seen.lock().expect("a lock").push(Seen { operation, read_units, write_units });
    if let Some((status, body)) = fault {
        return answer_instead(status, &body);
    }
    if matches!(fate, Fate::Orphaned) {
        return broken();
    }
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = parts.status;
    for name in ["content-type", "x-amzn-requestid", "x-amz-crc32"] {
        if let Some(value) = parts.headers.get(name) {
            response.headers_mut().insert(http::HeaderName::from_static(name), value.clone());
        }
    }
    response
}

fn answer_instead(status: u16, body: &Value) -> Response {
    let body = Body::from(body.to_string());
    let content_type = "application/x-amz-json-1.0";
    Response::builder().status(status).header("content-type", content_type).body(body).expect("a response")
}

/// An answer whose connection breaks.
fn broken() -> Response {
    Response::new(Body::new(BrokenBody))
}

struct BrokenBody;

impl hyper::body::Body for BrokenBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        Poll::Ready(Some(Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))))
    }
}

fn operation(headers: &HeaderMap, body: &[u8]) -> String {
    if let Some(target) = headers.get("x-amz-target").and_then(|target| target.to_str().ok()) {
        return target.rsplit('.').next().unwrap_or_default().to_owned();
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let first = if body.is_array() { &body[0] } else { &body };
    first["method"].as_str().unwrap_or("?").to_owned()
}

fn asking_for_capacity(body: &Bytes) -> Bytes {
    let Ok(Value::Object(mut body)) = serde_json::from_slice(body) else { return body.clone() };
    body.insert("ReturnConsumedCapacity".to_owned(), json!("INDEXES"));
    Bytes::from(Value::Object(body).to_string())
}

fn capacity(operation: &str, body: &[u8]) -> (f64, f64) {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let consumed = match &body["ConsumedCapacity"] {
        Value::Array(tables) => tables.clone(),
        Value::Null => Vec::new(),
        table => vec![table.clone()],
    };
    let total: f64 = consumed.iter().filter_map(|table| table["CapacityUnits"].as_f64()).sum();
    if matches!(operation, "GetItem" | "BatchGetItem" | "Query") { (total, 0.0) } else { (0.0, total) }
}
