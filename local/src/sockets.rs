//! WebSockets as API Gateway holds them: this keeps the connections, sends the function an event for each message or change
//! ([`socket::Socket`]), and accepts messages to clients on its management API ([`management`]).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, Request, State};
use axum::response::Response;
use axum::routing::any;
use base::clock::Clock;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use gate::push::{IDLE, LIFETIME, MAX_MESSAGE_BYTES};
use http::{HeaderMap, Method, StatusCode, header};
use hyper_util::rt::TokioIo;
use platform::http::log;
use serde_json::{Map, Value, json};
use socket::Socket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::error::Error as WsError;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use crate::gateway::{self, Groups};
use crate::iam::Guard;

/// Where clients connect.
pub const PATH: &str = "/v1/requests/subscribe";
/// Largest frame of a client (API Gateway's limit).
const MAX_FRAME_BYTES: usize = 32 * 1024;
/// Limit of messages waiting to be sent on one connection; more are refused.
const BACKLOG: usize = 256;
/// Messages of one connection that are handled at the same time.
const IN_FLIGHT: usize = 16;

/// The connections, and the function that handles their events.
pub struct Hub {
    function: Socket,
    guard: Arc<Guard>,
    connections: Mutex<HashMap<String, Connection>>,
}

struct Connection {
    out: mpsc::Sender<Out>,
    source: String,
    connected_at: String,
}

enum Out {
    Text(String),
    Close,
}

impl Hub {
    pub fn new(function: Socket, guard: Arc<Guard>) -> Arc<Hub> {
        Arc::new(Hub { function, guard, connections: Mutex::default() })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an event to the function and returns its answer.
    async fn tell(&self, event: Value) -> Value {
        match serde_json::from_value(event) {
            Ok(event) => self.function.handle(event).await,
            Err(error) => {
                log::failure("an event of a connection cannot be read", &error);
                json!({"statusCode": 500})
            }
        }
    }
}

/// The path of the upgrade. Requests without an upgrade are handled like others.
pub fn router(hub: Arc<Hub>, groups: Groups) -> Router {
    Router::new().route(PATH, any(connect)).with_state((hub, groups))
}

async fn connect(State((hub, groups)): State<(Arc<Hub>, Groups)>, mut request: Request) -> Response {
    let is_upgrade = has_word(request.headers(), header::CONNECTION, "upgrade")
        && has_word(request.headers(), header::UPGRADE, "websocket");
    if !is_upgrade || request.method() != Method::GET {
        return gateway::route(State(groups), request).await;
    }
    let version = request.headers().get(header::SEC_WEBSOCKET_VERSION);
    let key = request.headers().get(header::SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
    let (Some(key), true) = (key, version.is_some_and(|version| version == "13")) else {
        return plain(StatusCode::BAD_REQUEST, String::new());
    };
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip().to_string());
    let id = STANDARD.encode(base::digest::random::<11>());
    let about = About::new(&id, peer.unwrap_or_default());
    let answer = hub.tell(about.connect(&request)).await;
    let status = answer["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok());
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if !status.is_success() {
        let mut refusal = plain(status, answer["body"].as_str().unwrap_or_default().to_owned());
        let retry_after = answer["headers"]["retry-after"].as_str().and_then(|text| text.parse().ok());
        if let Some(retry_after) = retry_after {
            refusal.headers_mut().insert(header::RETRY_AFTER, retry_after);
        }
        return refusal;
    }
    let (out, inbox) = mpsc::channel(BACKLOG);
    let connection = Connection { out, source: about.source.clone(), connected_at: Clock::system().now().to_string() };
    hub.lock().insert(id.clone(), connection);
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let code = match upgrade.await {
            Ok(upgraded) => {
                let config = WebSocketConfig::default()
                    .max_message_size(Some(MAX_MESSAGE_BYTES))
                    .max_frame_size(Some(MAX_FRAME_BYTES));
                let stream = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
                hold(&hub, &about, stream, inbox).await
            }
            Err(_) => 1006,
        };
        hub.lock().remove(&id);
        hub.tell(about.event("$disconnect", "DISCONNECT", json!({"disconnectStatusCode": code}))).await;
    });
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_ACCEPT, key);
    response.body(Body::empty()).unwrap_or_default()
}

/// Holds a connection until it ends; returns the close code.
async fn hold<S>(hub: &Arc<Hub>, about: &About, mut stream: WebSocketStream<S>, mut inbox: mpsc::Receiver<Out>) -> u16
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let end = tokio::time::sleep(LIFETIME);
    tokio::pin!(end);
    let idle = tokio::time::sleep(IDLE);
    tokio::pin!(idle);
    let mut in_flight = JoinSet::new();
    loop {
        tokio::select! {
            said = stream.next(), if in_flight.len() < IN_FLIGHT => {
                idle.as_mut().reset(tokio::time::Instant::now() + IDLE);
                let (body, is_bytes) = match said {
                    Some(Ok(Message::Text(text))) => (text.as_str().to_owned(), false),
                    Some(Ok(Message::Binary(bytes))) => (STANDARD.encode(&bytes), true),
                    Some(Ok(Message::Close(frame))) => {
                        let _ = stream.flush().await;
                        return frame.map_or(1005, |frame| frame.code.into());
                    }
                    Some(Ok(_)) => continue,
                    Some(Err(WsError::Capacity(_))) => return hang_up(&mut stream, CloseCode::Size).await,
                    Some(Err(WsError::Utf8(_))) => return hang_up(&mut stream, CloseCode::Invalid).await,
                    Some(Err(_)) | None => return 1006,
                };
                let event = about.event("$default", "MESSAGE", json!({"messageId": about.new_id()}));
                let event = with(event, json!({"body": body, "isBase64Encoded": is_bytes}));
                let hub = hub.clone();
                in_flight.spawn(async move { hub.tell(event).await });
            }
            _ = in_flight.join_next(), if !in_flight.is_empty() => {}
            Some(out) = inbox.recv() => {
                idle.as_mut().reset(tokio::time::Instant::now() + IDLE);
                match out {
                    Out::Close => return hang_up(&mut stream, CloseCode::Normal).await,
                    // A client that does not read must not block.
                    Out::Text(text) => {
                        let send = stream.send(Message::text(text));
                        if !matches!(tokio::time::timeout(Duration::from_secs(10), send).await, Ok(Ok(()))) {
                            return 1006;
                        }
                    }
                }
            }
            () = &mut end => return hang_up(&mut stream, CloseCode::Away).await,
            () = &mut idle => return hang_up(&mut stream, CloseCode::Away).await,
        }
    }
}

async fn hang_up<S>(stream: &mut WebSocketStream<S>, code: CloseCode) -> u16
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let close = stream.close(Some(CloseFrame { code, reason: "".into() }));
    let _ = tokio::time::timeout(Duration::from_secs(1), close).await;
    // Reads and discards the client's remaining messages: a reset would discard the close frame.
    let rest = async { while let Some(Ok(_)) = stream.next().await {} };
    let _ = tokio::time::timeout(Duration::from_secs(1), rest).await;
    code.into()
}

/// The management API: `POST`, `GET` and `DELETE` on `/@connections/<id>`, for signed requests.
pub fn management(hub: Arc<Hub>) -> Router {
    let router = Router::new().route("/@connections/{id}", any(manage));
    router.layer(DefaultBodyLimit::max(2 * MAX_MESSAGE_BYTES)).with_state(hub)
}

async fn manage(
    State(hub): State<Arc<Hub>>,
    Path(id): Path<String>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let signature = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let is_signed = |value: &&str| value.starts_with("AWS4-HMAC-SHA256 ") && value.contains("/execute-api/");
    let Some(signature) = signature.filter(is_signed) else {
        return plain(StatusCode::FORBIDDEN, json!({"message": "Missing Authentication Token"}).to_string());
    };
    if let Err(denial) = hub.guard.check_socket(signature, method.as_str(), &id) {
        return plain(StatusCode::FORBIDDEN, json!({"message": denial.message()}).to_string());
    }
    let connections = hub.lock();
    let Some(connection) = connections.get(&id) else { return plain(StatusCode::GONE, String::new()) };
    let sent = match method {
        Method::GET => {
            let about = json!({"connectedAt": connection.connected_at, "identity": {"sourceIp": connection.source}});
            return plain(StatusCode::OK, about.to_string());
        }
        Method::DELETE => connection.out.try_send(Out::Close),
        Method::POST if body.len() > MAX_MESSAGE_BYTES => {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, String::new());
        }
        Method::POST => connection.out.try_send(Out::Text(String::from_utf8_lossy(&body).into_owned())),
        _ => return plain(StatusCode::METHOD_NOT_ALLOWED, String::new()),
    };
    match sent {
        Ok(()) if method == Method::DELETE => plain(StatusCode::NO_CONTENT, String::new()),
        Ok(()) => plain(StatusCode::OK, String::new()),
        Err(mpsc::error::TrySendError::Full(_)) => plain(StatusCode::TOO_MANY_REQUESTS, String::new()),
        Err(mpsc::error::TrySendError::Closed(_)) => plain(StatusCode::GONE, String::new()),
    }
}

/// Members of every event of a connection.
struct About {
    id: String,
    source: String,
    connected_at: i64,
}

impl About {
    fn new(id: &str, source: String) -> About {
        About { id: id.to_owned(), source, connected_at: Clock::system().now().millis() }
    }

    fn new_id(&self) -> String {
        STANDARD.encode(base::digest::random::<11>())
    }

    fn event(&self, route: &str, kind: &str, more: Value) -> Value {
        let context = json!({
            "routeKey": route,
            "eventType": kind,
            "connectionId": self.id,
            "connectedAt": self.connected_at,
            "requestTimeEpoch": Clock::system().now().millis(),
            "requestId": self.new_id(),
            "extendedRequestId": self.new_id(),
            "messageDirection": "IN",
            "stage": "live",
            "apiId": "local",
            "domainName": "local.execute-api.us-east-1.amazonaws.com",
            "identity": {"sourceIp": self.source},
        });
        json!({"requestContext": with(context, more), "isBase64Encoded": false})
    }

    fn connect(&self, request: &Request) -> Value {
        let mut headers: Map<String, Value> = Map::new();
        let mut all: Map<String, Value> = Map::new();
        for name in request.headers().keys() {
            let values: Vec<String> = request.headers().get_all(name).iter().map(text).collect();
            headers.insert(name.as_str().to_owned(), json!(values.last()));
            all.insert(name.as_str().to_owned(), json!(values));
        }
        let event = self.event("$connect", "CONNECT", json!({}));
        let mut event = with(event, json!({"headers": headers, "multiValueHeaders": all}));
        let mut query: HashMap<String, Vec<String>> = HashMap::new();
        for (name, value) in url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()) {
            query.entry(name.into_owned()).or_default().push(value.into_owned());
        }
        if !query.is_empty() {
            let last: HashMap<&String, Option<&String>> = query.iter().map(|(name, all)| (name, all.last())).collect();
            event["queryStringParameters"] = json!(last);
            event["multiValueQueryStringParameters"] = json!(query);
        }
        event
    }
}

fn with(mut into: Value, more: Value) -> Value {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
    into
}

fn text(value: &http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Whether a list header contains this word.
fn has_word(headers: &HeaderMap, name: header::HeaderName, word: &str) -> bool {
    let values = headers.get_all(name);
    values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| part.trim().eq_ignore_ascii_case(word))
}

fn plain(status: StatusCode, body: String) -> Response {
    let response = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    response.body(Body::from(body)).unwrap_or_default()
}
