//! Telnyx's API, as far as calls need it: it refuses what its description does not know, ignores repeated commands, and signs
//! what it posts.
//!
//! Formats follow the types of team-telnyx/telnyx-node (2026-08-21) and the pages of developers.telnyx.com that the adapter names.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use base::clock::{Clock, Timestamp};
use base::encoding::{base64_any, base64_standard};
use base::ids::RequestId;
use local::{Options, Stack};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::providers::{Asked, BASE, CALLER, lost};
use crate::support::{Answer, Client, stack_with};

pub const HOOK: &str = "/v1/providers/telnyx";
const KEY: &str = "telnyx-key";
const CONNECTION: &str = "1494404757140276705";
/// The key that Telnyx signs with.
pub const OWN_KEY: u8 = 7;
pub const ASSISTANT: &str = "assistant-1";
/// The application's numbers. The last one is not active yet.
const NUMBERS: [(&str, &str); 4] = [
    ("+12065552001", "active"),
    ("+12065552002", "active"),
    ("+12065552003", "active"),
    ("+12065552004", "purchase-pending"),
];

/// What becomes of a request to place a call.
#[derive(Clone, Copy, Debug)]
pub enum Placing {
    /// Answered with this status; there is no call.
    Fails(u16),
    /// The call is there, but the answer is lost. `is_listed`: lists show it.
    Lost { is_alive: bool, is_listed: bool },
}

/// A call.
#[derive(Clone, Debug, Default)]
struct Leg {
    is_alive: bool,
    is_incoming: bool,
    is_hidden: bool,
    is_recorded: bool,
    from: String,
    to: String,
    client_state: Option<String>,
    events: Vec<Value>,
    messages: Vec<Value>,
    insights: Option<Value>,
}

#[derive(Default)]
struct Inner {
    asked: Vec<Asked>,
    legs: BTreeMap<String, Leg>,
    /// Commands that were obeyed: call, action, body.
    obeyed: Vec<(String, String, Value)>,
    known: HashSet<String>,
    /// For the next requests to place a call. Without any, they are placed.
    next: VecDeque<Placing>,
    /// The next command of this name is refused with this status.
    refuses: Option<(&'static str, u16)>,
    posts: u32,
}

#[derive(Clone)]
pub struct Telnyx {
    url: String,
    clock: Clock,
    keys: Arc<Ed25519KeyPair>,
    inner: Arc<Mutex<Inner>>,
}

impl Telnyx {
    pub async fn start(clock: Clock) -> Telnyx {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/v2", listener.local_addr().expect("an address"));
        let keys = Arc::new(pair(OWN_KEY));
        let telnyx = Telnyx { url, clock, keys, inner: Arc::default() };
        let router = axum::Router::new().fallback(answer).with_state(telnyx.clone());
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        telnyx
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.inner.lock().expect("a lock"))
    }

    pub fn options(&self, options: Options) -> Options {
        let keys = json!({
            "telnyx": KEY, "telnyx_connection": CONNECTION, "telnyx_assistant": ASSISTANT,
            "telnyx_public_key": base64_standard(self.keys.public_key().as_ref()),
        });
        let clock = self.clock.clone();
        Options { clock, ..options }
            .with("VOICE_PROVIDERS", "telnyx")
            .with("VOICE_COUNTRIES", "US,DE,JP")
            .with("PUBLIC_BASE_URL", BASE)
            .with("PROVIDER_KEYS", keys.to_string())
            .with("PROVIDER_URLS", json!({"telnyx": self.url}).to_string())
    }

    pub async fn stack(&self) -> Stack {
        stack_with(|options| self.options(options)).await
    }

    /// The bodies of the requests to place a call.
    pub fn placed(&self) -> Vec<Value> {
        let is_placing = |asked: &&Asked| asked.method == Method::POST && asked.path == "/v2/calls";
        self.with(|inner| inner.asked.iter().filter(is_placing).map(|asked| asked.body.clone()).collect())
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        self.with(|inner| inner.asked.iter().filter(|asked| asked.path == path).count())
    }

    /// The commands that a call obeyed.
    pub fn obeyed(&self, call: &str) -> Vec<(String, Value)> {
        let of_call =
            |(known, action, body): &(String, String, Value)| (known == call).then(|| (action.clone(), body.clone()));
        self.with(|inner| inner.obeyed.iter().filter_map(of_call).collect())
    }

    /// Their names.
    pub fn actions(&self, call: &str) -> Vec<String> {
        self.obeyed(call).into_iter().map(|(action, _)| action).collect()
    }

    /// What becomes of the next requests to place a call.
    pub fn next(&self, next: &[Placing]) {
        self.with(|inner| inner.next = next.iter().copied().collect());
    }

    /// Refuses the next command of this name.
    pub fn refuses(&self, action: &'static str, status: u16) {
        self.with(|inner| inner.refuses = Some((action, status)));
    }

    /// The ids of all calls.
    pub fn ids(&self) -> Vec<String> {
        self.with(|inner| inner.legs.keys().cloned().collect())
    }

    /// A call comes in. Returns what Telnyx posts.
    pub fn rings(&self, call: &str, to: &str) -> Value {
        let leg =
            Leg { is_alive: true, is_incoming: true, from: CALLER.to_owned(), to: to.to_owned(), ..Leg::default() };
        self.with(|inner| drop(inner.legs.insert(call.to_owned(), leg)));
        self.event("call.initiated", call, self.clock.now(), json!({"state": "parked"}))
    }

    /// Something happens in a call. Returns what Telnyx posts.
    pub fn happens(&self, call: &str, name: &str, at: Timestamp, more: Value) -> Value {
        let post = self.event(name, call, at, more);
        self.with(|inner| note(inner, call, &post));
        post
    }

    /// A call was answered.
    pub fn answers(&self, call: &str, at: Timestamp) -> Value {
        self.with(|inner| inner.legs.get_mut(call).expect("a call").is_alive = true);
        self.happens(call, "call.answered", at, json!({"state": "answered"}))
    }

    /// A call ends, so many seconds after it was answered at `answered`. Somebody talked about bread.
    pub fn ends(&self, call: &str, answered: Timestamp, secs: u64, cause: &str, source: &str) -> Value {
        self.talks(call, answered);
        self.hangs_up(call, answered.plus(Duration::from_secs(secs)), cause, source)
    }

    /// A call was answered at `answered`, and somebody talks about bread.
    pub fn talks(&self, call: &str, answered: Timestamp) {
        self.answers(call, answered);
        let message = |second: u64, role: &str, text: &str| {
            let at = answered.plus(Duration::from_secs(second)).to_string();
            json!({"role": role, "text": text, "sent_at": at})
        };
        // In no order.
        let messages = vec![
            message(2, "user", "Bread, \u{202e}please."),
            message(1, "assistant", "Hello."),
            message(4, "tool", "{}"),
            message(3, "assistant", "Four dollars."),
        ];
        self.with(|inner| inner.legs.get_mut(call).expect("a call").messages = messages);
    }

    /// A call is over. Returns what Telnyx posts.
    pub fn hangs_up(&self, call: &str, at: Timestamp, cause: &str, source: &str) -> Value {
        self.with(|inner| inner.legs.get_mut(call).expect("a call").is_alive = false);
        let more =
            json!({"state": "hangup", "hangup_cause": cause, "hangup_source": source, "sip_hangup_cause": "200"});
        self.happens(call, "call.hangup", at, more)
    }

    /// The insights of a call. Returns what Telnyx posts.
    pub fn looks_through(&self, call: &str) -> Value {
        let result = json!({
            "outcome": "reached_person", "success": true, "summary": "They talked about bread.", "answered": ["1"],
        });
        let found = json!([{"insight_id": "x", "result": result.to_string()}]);
        let insights = json!([{"id": "i", "status": "completed", "conversation_insights": found}]);
        self.with(|inner| inner.legs.get_mut(call).expect("a call").insights = Some(insights));
        self.event("call.conversation_insights.generated", call, self.clock.now(), json!({"results": []}))
    }

    fn event(&self, name: &str, call: &str, at: Timestamp, more: Value) -> Value {
        self.with(|inner| {
            inner.posts += 1;
            let leg = &inner.legs[call];
            let mut payload = json!({
                "call_control_id": call, "call_leg_id": leg_of(call), "call_session_id": "session",
                "connection_id": CONNECTION, "client_state": leg.client_state, "from": leg.from, "to": leg.to,
                "direction": if leg.is_incoming { "incoming" } else { "outgoing" },
            });
            payload.as_object_mut().expect("members").extend(more.as_object().expect("members").clone());
            json!({
                "data": {
                    "record_type": "event", "event_type": name, "id": format!("event-{}", inner.posts),
                    "occurred_at": at.to_string(), "payload": payload,
                },
                "meta": {"attempt": 1, "delivered_to": format!("{BASE}{HOOK}")},
            })
        })
    }

    /// Posts as Telnyx does.
    pub async fn posts(&self, stack: &Stack, post: &Value) {
        let text = post.to_string();
        let answer = signed(stack, &text, self.clock.now().secs(), OWN_KEY).await;
        assert_eq!((answer.status, answer.json()), (200, json!({})), "{post}");
    }
}

/// Posts a text with this time, signed by one of many keys.
pub async fn signed(stack: &Stack, text: &str, at: i64, key: u8) -> Answer {
    let signature = pair(key).sign(format!("{at}|{text}").as_bytes());
    post(stack, text, &at.to_string(), &base64_standard(signature.as_ref())).await
}

/// Posts this, whoever signed it.
pub async fn post(stack: &Stack, text: &str, timestamp: &str, signature: &str) -> Answer {
    let headers = [
        ("content-type", "application/json"),
        ("telnyx-timestamp", timestamp),
        ("telnyx-signature-ed25519", signature),
    ];
    let client = Client::new(&stack.base_url);
    client.send("POST", HOOK, &headers, text.to_owned()).await.expect("an answer")
}

fn pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).expect("a key")
}

fn leg_of(call: &str) -> String {
    format!("leg-{}", call.replace(':', "-"))
}

/// Puts a post among the events of its call. Where the post is in an event is not described.
fn note(inner: &mut Inner, call: &str, post: &Value) {
    let event = json!({
        "record_type": "call_event", "type": "webhook", "name": post["data"]["event_type"],
        "event_timestamp": post["data"]["occurred_at"], "call_leg_id": leg_of(call), "call_session_id": "session",
        "metadata": {"raw": {"payload": post["data"]["payload"]}},
    });
    inner.legs.get_mut(call).expect("a call").events.push(event);
}

async fn answer(
    State(telnyx): State<Telnyx>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    raw: Bytes,
) -> Response<Body> {
    let body: Value = serde_json::from_slice(&raw).unwrap_or_default();
    let asked = Asked { method, path: uri.path().to_owned(), headers, body };
    let now = telnyx.clock.now();
    let (status, answer) = telnyx.with(|inner| {
        inner.asked.push(asked.clone());
        answered(inner, &asked, &uri, now)
    });
    if status == 0 {
        return lost();
    }
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(Body::from(answer.to_string())).expect("a response")
}

/// Telnyx's form of an error.
fn refused(status: u16, code: &str, detail: &str) -> (u16, Value) {
    (status, json!({"errors": [{"code": code, "title": "refused", "detail": detail}]}))
}

fn data(items: Vec<Value>) -> (u16, Value) {
    let meta = json!({"page_number": 1, "page_size": 250, "total_pages": 1, "total_results": items.len()});
    (200, json!({"data": items, "meta": meta}))
}

fn answered(inner: &mut Inner, asked: &Asked, uri: &Uri, now: Timestamp) -> (u16, Value) {
    let key = format!("Bearer {KEY}");
    if asked.headers.get("authorization").and_then(|value| value.to_str().ok()) != Some(key.as_str()) {
        return refused(401, "10009", "Authentication failed");
    }
    let query = uri.query().unwrap_or_default().to_owned();
    let param = |name: &str| {
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs.find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
    };
    let not_found = || refused(404, "10005", "Resource not found");
    let parts: Vec<&str> = asked.path.trim_matches('/').split('/').collect();
    match (asked.method.as_str(), &parts[..]) {
        ("GET", ["v2", "phone_numbers"]) if param("filter[connection_id]").as_deref() == Some(CONNECTION) => {
            let phone = |(number, status): (&str, &str)| {
                let mut phone = json!({"id": "1", "phone_number": number, "connection_id": CONNECTION});
                phone["status"] = json!(status);
                phone
            };
            data(NUMBERS.into_iter().map(phone).collect())
        }
        ("POST", ["v2", "calls"]) => placing(inner, &asked.body, now),
        ("GET", ["v2", "calls", call]) => match inner.legs.get(*call) {
            Some(leg) => (200, json!({"data": shown(call, leg)})),
            None => not_found(),
        },
        ("POST", ["v2", "calls", call, "actions", action]) => commanded(inner, call, action, &asked.body, now),
        ("GET", ["v2", "connections", CONNECTION, "active_calls"]) => data(
            inner
                .legs
                .iter()
                .filter(|(_, leg)| leg.is_alive && !leg.is_hidden)
                .map(|(call, leg)| shown(call, leg))
                .collect(),
        ),
        ("GET", ["v2", "call_events"]) => {
            let wanted = [("filter[leg_id]", "/call_leg_id"), ("filter[name]", "/name"), ("filter[type]", "/type")];
            let of_call = [
                ("filter[connection_id]", "/metadata/raw/payload/connection_id"),
                ("filter[from]", "/metadata/raw/payload/from"),
            ];
            let is_shown = |leg: &&Leg| !leg.is_hidden || param("filter[leg_id]").is_some();
            let is_listed = |event: &&Value| {
                wanted.into_iter().chain(of_call).all(|(name, pointer)| {
                    let found = event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
                    param(name).is_none_or(|value| value == found)
                })
            };
            let events = inner.legs.values().filter(is_shown).flat_map(|leg| &leg.events).filter(is_listed);
            // Newest first, and no more than a page.
            let mut events: Vec<Value> = events.cloned().collect();
            events.sort_by_key(|event| std::cmp::Reverse(event["event_timestamp"].to_string()));
            events.truncate(param("page[size]").and_then(|size| size.parse().ok()).unwrap_or(20));
            data(events)
        }
        ("GET", ["v2", "ai", "conversations"]) => {
            let call = param("metadata->call_control_id").unwrap_or_default();
            let call = call.strip_prefix("eq.").unwrap_or_default();
            let is_known = inner.legs.get(call).is_some_and(|leg| !leg.messages.is_empty());
            data(if is_known { vec![json!({"id": call, "metadata": {"call_control_id": call}})] } else { Vec::new() })
        }
        ("GET", ["v2", "ai", "conversations", call, "messages"]) => match inner.legs.get(*call) {
            Some(leg) if param("page[number]").as_deref() == Some("1") => data(leg.messages.clone()),
            Some(_) => data(Vec::new()),
            None => not_found(),
        },
        ("GET", ["v2", "ai", "conversations", call, "conversations-insights"]) => {
            let insights = inner.legs.get(*call).and_then(|leg| leg.insights.clone());
            (200, json!({"data": insights.unwrap_or_else(|| json!([{"id": "i", "status": "pending"}]))}))
        }
        ("GET", ["v2", "recordings"]) => {
            let leg = param("filter[call_leg_id]").unwrap_or_default();
            let is_recorded = inner.legs.iter().any(|(call, known)| leg_of(call) == leg && known.is_recorded);
            let urls = json!({"mp3": "https://signed.example/recording.mp3?signature=1"});
            data(if is_recorded { vec![json!({"id": "r", "download_urls": urls})] } else { Vec::new() })
        }
        _ => not_found(),
    }
}

fn shown(call: &str, leg: &Leg) -> Value {
    json!({
        "record_type": "call", "call_control_id": call, "call_leg_id": leg_of(call), "call_session_id": "session",
        "client_state": leg.client_state, "is_alive": leg.is_alive,
    })
}

/// The members that a command may have, and those that it must have.
fn members(command: &str) -> Option<(&'static [&'static str], &'static [&'static str])> {
    let members: (&'static [&'static str], &'static [&'static str]) = match command {
        "dial" => (
            &[
                "connection_id",
                "from",
                "to",
                "command_id",
                "client_state",
                "timeout_secs",
                "time_limit_secs",
                "record",
                "record_channels",
                "record_format",
                "assistant",
            ],
            &["connection_id", "from", "to", "command_id", "client_state", "time_limit_secs"],
        ),
        "answer" => (
            &["assistant", "record", "record_channels", "record_format", "client_state", "command_id"],
            &["command_id"],
        ),
        "reject" => (&["cause", "client_state", "command_id"], &["cause", "command_id"]),
        "hangup" => (&["client_state", "command_id"], &["command_id"]),
        "speak" => (
            &["payload", "voice", "service_level", "language", "client_state", "command_id"],
            &["payload", "voice", "command_id"],
        ),
        "transfer" => (
            &["to", "from", "timeout_secs", "time_limit_secs", "target_leg_client_state", "client_state", "command_id"],
            &["to", "command_id"],
        ),
        "assistant" => (&["id", "instructions", "greeting", "tools", "voice_settings"], &["id"]),
        "tool" => (&["type", "hangup", "transfer"], &["type"]),
        _ => return None,
    };
    Some(members)
}

/// What is wrong with a command.
fn wrong(command: &str, body: &Value) -> Option<String> {
    let Some((known, needed)) = members(command) else { return Some(format!("no command {command}")) };
    let Some(body) = body.as_object() else { return Some("not an object".to_owned()) };
    if let Some(name) = body.keys().find(|name| !known.contains(&name.as_str())) {
        return Some(format!("{command}: {name} is not known"));
    }
    if let Some(name) = needed.iter().find(|name| !body.contains_key(**name)) {
        return Some(format!("{command}: {name} is missing"));
    }
    let number = |name: &str| body.get(name).and_then(Value::as_u64);
    let is_state =
        |name: &str| body.get(name).is_none_or(|state| state.as_str().is_some_and(|s| base64_any(s).is_some()));
    let is_long = |name: &str| body.get(name).and_then(Value::as_str).is_some_and(|text| text.chars().count() > 3_000);
    if number("time_limit_secs").is_some_and(|secs| !(30..=14_400).contains(&secs))
        || number("timeout_secs").is_some_and(|secs| !(5..=600).contains(&secs))
        || !is_state("client_state")
        || !is_state("target_leg_client_state")
        || is_long("greeting")
        || is_long("payload")
        || body.get("command_id").is_some_and(|id| id.as_str().is_none_or(|id| id.parse::<RequestId>().is_err()))
        || body.get("cause").is_some_and(|cause| cause != "USER_BUSY" && cause != "CALL_REJECTED")
        || body.get("connection_id").is_some_and(|id| id != CONNECTION)
    {
        return Some(format!("{command}: {body:?}"));
    }
    let mut tools = body.get("tools").and_then(Value::as_array).into_iter().flatten();
    let inner = body.get("assistant").and_then(|assistant| wrong("assistant", assistant));
    inner.or_else(|| tools.find_map(|tool| wrong("tool", tool)))
}

/// Status 0: the answer is lost.
fn placing(inner: &mut Inner, body: &Value, now: Timestamp) -> (u16, Value) {
    if let Some(wrong) = wrong("dial", body) {
        return refused(422, "10015", &wrong);
    }
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    if !NUMBERS.iter().any(|(number, status)| *number == body["from"] && *status == "active") {
        return refused(422, "10002", "from is not a number of this connection");
    }
    let next = inner.next.pop_front();
    if let Some(Placing::Fails(status)) = next {
        return refused(status, "10000", "no");
    }
    if !inner.known.insert(text("command_id")) {
        return refused(422, "10012", "a repeated command");
    }
    let call = format!("v3:out-{}", inner.legs.len());
    // It is alive once the phone rings: dialling is asynchronous.
    let leg = Leg {
        is_recorded: body["record"].is_string(),
        from: text("from"),
        to: text("to"),
        client_state: Some(text("client_state")),
        ..Leg::default()
    };
    let answer = json!({"data": shown(&call, &leg)});
    let post = json!({"data": {"event_type": "call.initiated", "occurred_at": now.to_string(), "payload": {
        "call_control_id": call, "client_state": leg.client_state, "from": leg.from, "connection_id": CONNECTION,
    }}});
    let (is_alive, is_listed) = match next {
        Some(Placing::Lost { is_alive, is_listed }) => (is_alive, is_listed),
        _ => (true, true),
    };
    inner.legs.insert(call.clone(), Leg { is_alive, is_hidden: !is_listed, ..leg });
    note(inner, &call, &post);
    if next.is_some() { (0, Value::Null) } else { (200, answer) }
}

fn commanded(inner: &mut Inner, call: &str, action: &str, body: &Value, now: Timestamp) -> (u16, Value) {
    if let Some(wrong) = wrong(action, body) {
        return refused(422, "10015", &wrong);
    }
    if let Some((_, status)) = inner.refuses.take_if(|(refused, _)| *refused == action) {
        return refused(status, "10010", "no");
    }
    let done = (200, json!({"data": {"result": "ok"}}));
    if !inner.known.insert(format!("{call} {}", body["command_id"])) {
        return done;
    }
    let Some(leg) = inner.legs.get_mut(call) else { return refused(404, "10005", "Resource not found") };
    if !leg.is_alive {
        return refused(422, "90018", "Call has already ended");
    }
    if let Some(state) = body["client_state"].as_str() {
        leg.client_state = Some(state.to_owned());
    }
    leg.is_recorded |= body["record"].is_string();
    inner.obeyed.push((call.to_owned(), action.to_owned(), body.clone()));
    if matches!(action, "hangup" | "reject") {
        leg.is_alive = false;
        let source = if leg.is_incoming { "callee" } else { "caller" };
        let post = json!({"data": {"event_type": "call.hangup", "occurred_at": now.to_string(), "payload": {
            "hangup_cause": "normal_clearing", "hangup_source": source,
        }}});
        note(inner, call, &post);
    }
    done
}
