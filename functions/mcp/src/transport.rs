//! The HTTP side of the protocol: one stateless POST, both eras, JSON answers. This module checks that a message is valid,
//! who sends it and how large it is; `rmcp` does the rest, and the handler interprets it.
//!
//! Every error is JSON-RPC with the matching HTTP status.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use base::encoding::base64_any;
use base::input;
use gate::app::App;
use gate::limits::{self, Owned};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use platform::http::{ApiError, private_json, read_body};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tower::Service;

use crate::guard::Guard;

/// Largest message, in bytes.
const MAX_BODY_BYTES: usize = gate::MAX_BODY_BYTES;

/// Largest batch. Only revision 2025-03-26 has batches.
const MAX_BATCH: usize = 20;

/// Limit for all answers of a batch together, in bytes. A single answer cannot be larger: results are limited when they are
/// stored.
const MAX_ANSWERS_BYTES: usize = 4 * 1024 * 1024 + 256 * 1024;

/// The first revision without batches. Revisions are dates and compare as text.
const WITHOUT_BATCHES: &str = "2025-06-18";

const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// HTTP status and headers that a handler adds to its answer. They travel in the request's extensions, because a message
/// has no place for them.
#[derive(Clone, Debug, Default)]
pub struct Aside(Arc<Mutex<Said>>);

#[derive(Debug, Default)]
struct Said {
    status: Option<StatusCode>,
    headers: HeaderMap,
}

impl Aside {
    /// The `Aside` of the request with these parts.
    pub fn of(parts: &Parts) -> Aside {
        parts.extensions.get::<Aside>().cloned().unwrap_or_default()
    }

    pub fn status(&self, status: StatusCode) {
        if let Ok(mut said) = self.0.lock() {
            said.status = Some(status);
        }
    }

    pub fn header(&self, name: header::HeaderName, value: HeaderValue) {
        if let Ok(mut said) = self.0.lock() {
            said.headers.insert(name, value);
        }
    }

    fn write(&self, response: &mut Response) {
        let Ok(mut said) = self.0.lock() else { return };
        if let Some(status) = said.status.take() {
            *response.status_mut() = status;
        }
        response.headers_mut().extend(said.headers.drain().filter_map(|(name, value)| Some((name?, value))));
    }
}

struct Frame<S> {
    /// Counts large answers; without it, nothing is counted.
    app: Option<App>,
    guard: Guard,
    service: StreamableHttpService<S, NeverSessionManager>,
}

// Not derived, because that would require the handler to be `Clone`.
impl<S> Clone for Frame<S> {
    fn clone(&self) -> Frame<S> {
        Frame { app: self.app.clone(), guard: self.guard.clone(), service: self.service.clone() }
    }
}

/// `POST /mcp`, answered by this handler.
pub fn router<S: ServerHandler + Clone>(handler: S, guard: Guard, app: Option<App>) -> Router {
    // The guard checks hosts and origins.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(None)
        .with_sse_retry(None)
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let service =
        StreamableHttpService::new(move || Ok(handler.clone()), Arc::new(NeverSessionManager::default()), config);
    Router::new().route("/mcp", post(take::<S>)).with_state(Frame { app, guard, service })
}

async fn take<S: ServerHandler>(State(frame): State<Frame<S>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    frame.answer(parts, body).await.unwrap_or_else(|refused| refused.0)
}

/// The answer to a message that is refused before it reaches the handler.
struct Refused(Response);

fn refuse(status: StatusCode, code: i32, message: impl Into<String>) -> Refused {
    Refused(private_json(status, &error(&Value::Null, code, message.into())))
}

fn error(id: &Value, code: i32, message: String) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

impl<S: ServerHandler> Frame<S> {
    async fn answer(&self, mut parts: Parts, body: Body) -> Result<Response, Refused> {
        self.guard.check(&parts).map_err(|why| refuse(StatusCode::FORBIDDEN, -32600, why))?;
        let body = read_body(body, MAX_BODY_BYTES).await.map_err(|error: ApiError| {
            refuse(error.status(), -32600, error.body()["message"].as_str().unwrap_or_default())
        })?;
        if !is_json(&parts.headers) {
            return Err(refuse(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                -32600,
                "send the message with Content-Type: application/json",
            ));
        }
        let as_events = wants_events(&parts.headers)
            .ok_or_else(|| refuse(StatusCode::NOT_ACCEPTABLE, -32600, "Accept must allow JSON or SSE"))?;
        // The form of the answer is decided here. `rmcp` requires both in `Accept`.
        parts.headers.insert(header::ACCEPT, BOTH);
        // Also of two caps that a message says, one would be lost.
        let message = input::parse(&body).map_err(|wrong| {
            let place = if wrong.path.is_empty() { String::new() } else { format!("{}: ", wrong.path) };
            refuse(StatusCode::BAD_REQUEST, -32700, format!("{place}{}", wrong.message))
        })?;
        let response = match message {
            Value::Object(_) => self.one(&parts, &message, body).await,
            Value::Array(batch) => self.batch(&parts, &batch).await?,
            _ => return Err(refuse(StatusCode::BAD_REQUEST, -32600, "a message is a JSON object")),
        };
        Ok(if as_events { events(response).await } else { response })
    }

    /// Passes one message to `rmcp`, and counts a large answer.
    async fn one(&self, parts: &Parts, message: &Value, body: Bytes) -> Response {
        let id = &message["id"];
        // The library rejects parameters that are not an object as an invalid message.
        let params = message.get("params").filter(|params| !params.is_object() && !params.is_null());
        if params.is_some() && message["method"].is_string() && (id.is_string() || id.is_number()) {
            let why = "params has to be an object, with parameters by name".to_owned();
            return private_json(StatusCode::BAD_REQUEST, &error(id, -32602, why));
        }
        let (aside, owned) = (Aside::default(), Owned::default());
        let mut request = http::Request::new(Body::from(body));
        *request.method_mut() = parts.method.clone();
        *request.uri_mut() = parts.uri.clone();
        *request.headers_mut() = parts.headers.clone();
        *request.extensions_mut() = parts.extensions.clone();
        request.extensions_mut().insert(aside.clone());
        request.extensions_mut().insert(owned.clone());
        let answered: Result<_, Infallible> = self.service.clone().call(request).await;
        let response = answered.unwrap_or_else(|never| match never {}).map(Body::new);
        let mut response = spelled_out(response).await;
        aside.write(&mut response);
        response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        match &self.app {
            Some(app) => limits::weigh_message(app, &parts.headers, &owned, response).await,
            None => response,
        }
    }

    /// Passes on the messages of a batch, one after another.
    async fn batch(&self, parts: &Parts, batch: &[Value]) -> Result<Response, Refused> {
        let revision = parts.headers.get("mcp-protocol-version").and_then(|value| value.to_str().ok());
        if revision.is_some_and(|revision| revision >= WITHOUT_BATCHES) {
            return Err(refuse(StatusCode::BAD_REQUEST, -32600, "this revision has no batches; send one message"));
        }
        if batch.is_empty() || batch.len() > MAX_BATCH {
            let message = format!("a batch has 1 to {MAX_BATCH} messages");
            return Err(refuse(StatusCode::BAD_REQUEST, -32600, message));
        }
        let (mut answers, mut bytes) = (Vec::new(), 0);
        for message in batch {
            let response = self.one(parts, message, Bytes::from(message.to_string())).await;
            let Ok(body) = read_body(response.into_body(), usize::MAX).await else { continue };
            let Ok(mut answer) = serde_json::from_slice::<Value>(&body) else { continue };
            if answer["jsonrpc"].is_null() {
                // The refusal of an answer that exceeds the byte limit.
                answer = error(&message["id"], -32000, answer["message"].as_str().unwrap_or_default().to_owned());
            }
            let fits = bytes + body.len() <= MAX_ANSWERS_BYTES;
            if fits {
                bytes += body.len();
            }
            let too_large = "the answers of this batch are too large together: send this message again, alone, with the \
                             same idempotency_key or payment";
            answers.push(if fits { answer } else { error(&message["id"], -32603, too_large.to_owned()) });
        }
        if answers.is_empty() {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::ACCEPTED;
            return Ok(response);
        }
        Ok(private_json(StatusCode::OK, &json!(answers)))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// Whether to answer with an event stream: only if the client does not accept JSON. `None` if it accepts neither.
fn wants_events(headers: &HeaderMap) -> Option<bool> {
    let mut given = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    if given.peek().is_none() {
        return Some(false);
    }
    let mut events = false;
    for range in given.flat_map(|value| value.split(',')) {
        match range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "application/json" | "application/*" | "*/*" => return Some(false),
            "text/event-stream" | "text/*" => events = true,
            _ => {}
        }
    }
    events.then_some(true)
}

/// Turns a plain-text error of the library into JSON-RPC.
async fn spelled_out(response: Response) -> Response {
    let is_said = |response: &Response| {
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        kind.is_some_and(|kind| kind.starts_with("application/json") || kind.starts_with("text/event-stream"))
    };
    if response.status().is_success() || is_said(&response) {
        return response;
    }
    let status = response.status();
    let words = read_body(response.into_body(), MAX_BODY_BYTES).await.unwrap_or_default();
    let words = String::from_utf8_lossy(&words).into_owned();
    match status {
        // JSON, but not a message of the protocol.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => refuse(StatusCode::BAD_REQUEST, -32600, words).0,
        StatusCode::INTERNAL_SERVER_ERROR => {
            platform::http::log::failure("the protocol's library failed", &words);
            refuse(status, -32603, "the message could not be answered").0
        }
        status => refuse(status, -32600, words).0,
    }
}

/// The same answer as an event stream with one event.
async fn events(response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if !response.status().is_success() || kind.is_none_or(|kind| kind != "application/json") {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let body = read_body(body, usize::MAX).await.unwrap_or_default();
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from([b"event: message\ndata: ", &body[..], b"\n\n"].concat()))
}

/// The base64 JSON of an x402 header.
pub fn decoded(headers: &HeaderMap, name: &str) -> Option<Value> {
    let text = headers.get(name)?.to_str().ok()?;
    serde_json::from_slice(&base64_any(text)?).ok()
}
