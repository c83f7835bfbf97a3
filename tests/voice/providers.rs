//! Calls with numbers outside: Vapi by a contract server that refuses what its description does not know, posts in odd orders,
//! and loses answers.
//!
//! Formats follow openapi.json of VapiAI/docs (2026-08-20), docs.vapi.ai/server-url/events, /calls/call-features,
//! /assistants/retrieve-call-artifacts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use base::clock::{Clock, Timestamp};
use base::ids::RequestId;
use futures_util::stream;
use gate::limits::{self, Class};
use ledger::account;
use local::{Options, Stack};
use platform::store::{Key, Write, queue};
use serde_json::{Value, json};
use tools_sms::number::Number;
use tools_sms::phone::{self, Phone};
use tools_voice::outside::MAX_MINUTES_A_DAY;
use tools_voice::quiet::is_quiet;

use super::exchange::counted;
use super::{Agent, FUNDS, MINUTE, NUMBERS, data, described, settings};
use crate::support::{self, Answer, Client, eventually, run, stack_with};

const HOOK: &str = "/v1/providers/vapi";
pub const CALL: &str = "/v1/tools/voice/call";
/// The deployment's address, as providers know it.
pub(super) const BASE: &str = "https://calls.example";
const KEY: &str = "vapi-key";
const SECRET: &str = "a-secret-of-the-operator";
/// The operator's numbers, and Vapi's ids of them.
pub const LINES: [(&str, &str); 3] =
    [("+12065552001", "line-1"), ("+12065552002", "line-2"), ("+12065552003", "line-3")];
/// A caller.
pub(super) const CALLER: &str = "+14155552671";
/// A number in each of three countries. In one of them it is always day, and in one night.
const OUTSIDE: [(&str, &str); 3] = [("US", "+14155552672"), ("DE", "+4915123456789"), ("JP", "+819012345678")];

/// A number in a country where it is day, for an hour at least.
pub fn outside(now: Timestamp) -> &'static str {
    let later = now.plus(Duration::from_secs(3_600));
    let is_day = |country: &str| !is_quiet(country, now) && !is_quiet(country, later);
    OUTSIDE.iter().find(|(country, _)| is_day(country)).expect("it is day somewhere").1
}

/// The number beside another one.
fn beside(number: &str, last: u8) -> String {
    format!("{}{last}", &number[..number.len() - 1])
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

/// What becomes of a request to place a call.
#[derive(Clone, Copy, Debug)]
pub enum Placing {
    /// Answered with this status; there is no call.
    Fails(u16),
    /// The call is there, but the answer is lost.
    Lost,
}

#[derive(Default)]
pub struct Inner {
    asked: Vec<Asked>,
    calls: BTreeMap<String, Value>,
    /// For the next requests to place a call. Without any, they are placed.
    next: VecDeque<Placing>,
}

/// Vapi's API.
#[derive(Clone)]
pub struct Vapi {
    url: String,
    inner: Arc<Mutex<Inner>>,
}

impl Vapi {
    pub async fn start() -> Vapi {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let vapi = Vapi { url, inner: Arc::default() };
        let router = axum::Router::new().fallback(answer).with_state(vapi.clone());
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        vapi
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.inner.lock().expect("a lock"))
    }

    fn options(&self, options: Options) -> Options {
        options
            .with("VOICE_PROVIDERS", "vapi")
            .with("VOICE_COUNTRIES", "US,DE,JP")
            .with("PUBLIC_BASE_URL", BASE)
            .with("PROVIDER_KEYS", json!({"vapi": KEY, "vapi_secret": SECRET}).to_string())
            .with("PROVIDER_URLS", json!({"vapi": self.url}).to_string())
    }

    pub async fn stack(&self) -> Stack {
        stack_with(|options| self.options(options)).await
    }

    fn asked(&self) -> Vec<Asked> {
        self.with(|inner| inner.asked.clone())
    }

    /// The bodies of the requests to place a call.
    pub fn placed(&self) -> Vec<Value> {
        let is_placing = |asked: &Asked| asked.method == Method::POST && asked.path == "/call";
        self.asked().into_iter().filter(is_placing).map(|asked| asked.body).collect()
    }

    /// What becomes of the next requests to place a call.
    pub fn next(&self, next: &[Placing]) {
        self.with(|inner| inner.next = next.iter().copied().collect());
    }

    /// The ids of all calls.
    pub fn ids(&self) -> Vec<String> {
        self.with(|inner| inner.calls.keys().cloned().collect())
    }

    /// A call comes in at a line.
    pub fn rings(&self, id: &str, line: &str, now: Timestamp) {
        let call = json!({
            "id": id, "orgId": "org", "type": "inboundPhoneCall", "status": "ringing", "phoneNumberId": line,
            "customer": {"number": CALLER}, "createdAt": now.to_string(), "updatedAt": now.to_string(),
            "monitor": {"controlUrl": format!("https://phone-call-websocket.x.vapi.ai/{id}/control")},
        });
        self.with(|inner| drop(inner.calls.insert(id.to_owned(), call)));
    }

    /// Changes a call.
    fn becomes(&self, id: &str, members: &Value) {
        self.with(|inner| {
            let call = inner.calls.get_mut(id).expect("a call").as_object_mut().expect("members");
            call.extend(members.as_object().expect("members").clone());
        });
    }

    /// A call ends, so many seconds after it `started`.
    pub fn ends(&self, id: &str, started: Timestamp, secs: u64, reason: &str) {
        let message = |role: &str, text: &str| json!({"role": role, "message": text, "time": 1, "endTime": 2});
        let messages =
            [message("bot", "Hello."), message("user", "Bread, \u{202e}please."), message("bot", "Four dollars.")];
        self.becomes(
            id,
            &json!({
                "status": "ended", "endedReason": reason, "startedAt": started.to_string(),
                "endedAt": started.plus(Duration::from_secs(secs)).to_string(),
                "artifact": {"messages": messages, "recordingUrl": "https://storage.vapi.ai/private.mp3"},
                "analysis": {
                    "summary": "They talked about bread.", "successEvaluation": "true",
                    "structuredData": {"outcome": "reached_person", "answered": ["1"], "callback_number": "+1 415"},
                },
            }),
        );
    }

    fn call(&self, id: &str) -> Value {
        self.with(|inner| inner.calls[id].clone())
    }

    /// What Vapi posts about a call.
    fn message(&self, kind: &str, id: &str) -> Value {
        let call = self.call(id);
        json!({"message": {
            "type": kind, "timestamp": 1, "status": call["status"], "endedReason": call["endedReason"],
            "artifact": call["artifact"], "analysis": call["analysis"], "call": call,
        }})
    }

    /// Posts as Vapi does.
    pub async fn posts(&self, stack: &Stack, kind: &str, id: &str) -> Value {
        let answer = post(stack, &self.message(kind, id), Some(SECRET)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    /// Reports the end of a call until its job has ended: the worker may be busy with an earlier post. Returns the job.
    pub async fn reports(&self, stack: &Stack, id: &str, agent: &Agent, job: RequestId) -> Value {
        eventually("the job's end", || async {
            self.posts(stack, "end-of-call-report", id).await;
            finished(agent, job).await
        })
        .await
    }
}

/// A job that has completed.
pub(super) async fn finished(agent: &Agent, id: RequestId) -> Option<Value> {
    let job = agent.payer.get(&format!("/v1/requests/{id}")).await.json();
    (job["status"] == "completed").then_some(job)
}

async fn post(stack: &Stack, message: &Value, secret: Option<&str>) -> Answer {
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(secret.map(|secret| ("x-vapi-secret", secret)));
    Client::new(&stack.base_url).send("POST", HOOK, &headers, message.to_string()).await.expect("an answer")
}

async fn answer(State(vapi): State<Vapi>, method: Method, uri: Uri, headers: HeaderMap, raw: Bytes) -> Response<Body> {
    let body: Value = serde_json::from_slice(&raw).unwrap_or_default();
    let asked = Asked { method, path: uri.path().to_owned(), headers, body };
    let (status, answer) = vapi.with(|inner| {
        inner.asked.push(asked.clone());
        answered(inner, &asked, &uri)
    });
    if status == 0 {
        return lost();
    }
    let mut response = Response::builder().status(status).header("content-type", "application/json");
    if status == 302 {
        response = response.header("location", "https://signed.example/recording.mp3?signature=1");
    }
    response.body(Body::from(answer.to_string())).expect("a response")
}

/// An answer that breaks off.
pub(super) fn lost() -> Response<Body> {
    let broken = stream::iter([Err::<Bytes, _>(std::io::Error::other("the connection broke"))]);
    Response::builder().header("content-length", "40").body(Body::from_stream(broken)).expect("a response")
}

/// Vapi's form of an error.
fn refused(status: u16, messages: &[String], error: &str) -> (u16, Value) {
    (status, json!({"message": messages, "error": error, "statusCode": status}))
}

fn answered(inner: &mut Inner, asked: &Asked, uri: &Uri) -> (u16, Value) {
    let parts: Vec<&str> = asked.path.trim_matches('/').split('/').collect();
    // The address that ends a call is a capability, and gets no key.
    if let ("POST", [id, "control"]) = (asked.method.as_str(), &parts[..]) {
        let is_right = !asked.headers.contains_key("authorization") && asked.body == json!({"type": "end-call"});
        let Some(call) = inner.calls.get_mut(*id).filter(|_| is_right) else { return refused(400, &[], "Bad Request") };
        call["status"] = json!("ended");
        call["endedReason"] = json!("assistant-ended-call");
        call["endedAt"] = json!(Clock::system().now().plus(Duration::from_secs(600)).to_string());
        call["analysis"] = json!({"summary": "It was cut."});
        return (200, json!({}));
    }
    let key = format!("Bearer {KEY}");
    if asked.headers.get("authorization").and_then(|value| value.to_str().ok()) != Some(key.as_str()) {
        return refused(401, &["Invalid Key.".to_owned()], "Unauthorized");
    }
    let line = |(number, id): (&str, &str)| {
        json!({"id": id, "orgId": "org", "provider": "twilio", "number": number, "status": "active",
            "server": {"url": format!("{BASE}{HOOK}")}})
    };
    match (asked.method.as_str(), &parts[..]) {
        ("GET", ["phone-number"]) => (200, LINES.into_iter().map(line).collect()),
        ("GET", ["phone-number", id]) => match LINES.into_iter().find(|(_, known)| known == id) {
            Some(found) => (200, line(found)),
            None => refused(404, &[], "Not Found"),
        },
        ("GET", ["call", id]) => match inner.calls.get(*id) {
            Some(call) => (200, call.clone()),
            None => refused(404, &[], "Not Found"),
        },
        ("GET", ["call", id, "mono-recording"]) if inner.calls.contains_key(*id) => (302, json!({})),
        ("GET", ["call"]) => (200, listed(inner, uri.query().unwrap_or_default())),
        ("POST", ["call"]) => placing(inner, &asked.body),
        _ => refused(404, &[], "Not Found"),
    }
}

/// The calls of a line that were created within a time.
fn listed(inner: &Inner, query: &str) -> Value {
    let param = |name: &str| {
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs.find(|(known, _)| known == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
    };
    let (line, from, to) = (param("phoneNumberId"), param("createdAtGe"), param("createdAtLe"));
    let is_listed = |call: &&Value| {
        let created = call["createdAt"].as_str().unwrap_or_default();
        call["phoneNumberId"] == line.as_str() && from.as_str() <= created && created <= to.as_str()
    };
    inner.calls.values().filter(is_listed).cloned().collect()
}

/// Status 0: the answer is lost.
fn placing(inner: &mut Inner, body: &Value) -> (u16, Value) {
    let wrong = unknown("", body);
    if !wrong.is_empty() {
        return refused(400, &wrong, "Bad Request");
    }
    let next = inner.next.pop_front();
    if let Some(Placing::Fails(status)) = next {
        return refused(status, &["no".to_owned()], "no");
    }
    let (id, now) = (format!("019a-{}", inner.calls.len()), Clock::system().now().to_string());
    let mut call = json!({
        "id": id, "orgId": "org", "type": "outboundPhoneCall", "status": "queued", "createdAt": now, "updatedAt": now,
        "subscriptionLimits": {"concurrencyBlocked": false},
        "monitor": {"controlUrl": format!("https://phone-call-websocket.x.vapi.ai/{id}/control")},
    });
    for member in ["name", "phoneNumberId", "customer"] {
        call[member] = body[member].clone();
    }
    inner.calls.insert(id, call.clone());
    if next.is_some() { (0, Value::Null) } else { (201, call) }
}

/// The members that Vapi's description knows at a place of a request to place a call. `None`: any.
fn known(at: &str) -> Option<&'static [&'static str]> {
    let known: &[&str] = match at {
        "" => &["name", "phoneNumberId", "customer", "assistant"],
        "customer" => &["number", "externalId"],
        "assistant" => &[
            "name",
            "firstMessage",
            "firstMessageMode",
            "model",
            "voice",
            "transcriber",
            "maxDurationSeconds",
            "voicemailDetection",
            "voicemailMessage",
            "endCallMessage",
            "analysisPlan",
            "artifactPlan",
            "monitorPlan",
            "serverMessages",
            "server",
            "metadata",
        ],
        "assistant.model" => &["provider", "model", "temperature", "maxTokens", "messages", "tools"],
        "assistant.model.messages" => &["role", "content"],
        "assistant.model.tools" => &["type", "destinations"],
        "assistant.model.tools.destinations" => &["type", "number", "message", "description", "transferPlan"],
        "assistant.model.tools.destinations.transferPlan" => &["mode"],
        "assistant.voice" => &["provider", "voiceId", "version"],
        "assistant.transcriber" => &["provider", "model", "language"],
        "assistant.voicemailDetection" => &["provider", "type", "beepMaxAwaitSeconds", "backoffPlan"],
        "assistant.voicemailDetection.backoffPlan" => &["startAtSeconds", "frequencySeconds", "maxRetries"],
        "assistant.analysisPlan" => {
            &["minMessagesThreshold", "summaryPlan", "successEvaluationPlan", "structuredDataPlan"]
        }
        "assistant.analysisPlan.summaryPlan" => &["enabled", "timeoutSeconds"],
        "assistant.analysisPlan.successEvaluationPlan" => &["enabled", "rubric", "timeoutSeconds"],
        "assistant.analysisPlan.structuredDataPlan" => &["enabled", "schema", "timeoutSeconds"],
        "assistant.artifactPlan" => {
            &["recordingEnabled", "recordingFormat", "pcapEnabled", "loggingEnabled", "transcriptPlan"]
        }
        "assistant.artifactPlan.transcriptPlan" => &["enabled", "assistantName", "userName"],
        "assistant.monitorPlan" => &["listenEnabled", "controlEnabled"],
        "assistant.server" => &["url", "timeoutSeconds", "headers", "backoffPlan"],
        "assistant.server.backoffPlan" => &["type", "maxRetries", "baseDelaySeconds"],
        "assistant.server.headers" | "assistant.analysisPlan.structuredDataPlan.schema" | "assistant.metadata" => {
            return None;
        }
        _ => &[],
    };
    Some(known)
}

/// What Vapi refuses about a part of a request to place a call, or about an assistant.
fn unknown(at: &str, value: &Value) -> Vec<String> {
    let members = match value {
        Value::Object(members) => members,
        Value::Array(items) => return items.iter().flat_map(|item| unknown(at, item)).collect(),
        _ => return Vec::new(),
    };
    let Some(known) = known(at) else { return Vec::new() };
    let mut wrong = Vec::new();
    for (name, value) in members {
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        match known.contains(&name.as_str()) {
            true => wrong.extend(unknown(&path, value)),
            false => wrong.push(format!("{path}: property {name} should not exist")),
        }
    }
    for (name, most) in [("name", 40), ("voicemailMessage", 1_000), ("endCallMessage", 1_000)] {
        if value[name].as_str().is_some_and(|text| text.chars().count() > most) {
            wrong.push(format!("{name} must be shorter than or equal to {most} characters"));
        }
    }
    if value["maxDurationSeconds"].as_u64().is_some_and(|secs| !(10..=43_200).contains(&secs)) {
        wrong.push("maxDurationSeconds must not be less than 10".to_owned());
    }
    wrong
}

/// The assistant of an answer to a call that rings.
#[track_caller]
pub fn assistant(answer: &Value) -> &Value {
    assert_eq!(answer.as_object().map(|members| members.len()), Some(1), "{answer}");
    let assistant = &answer["assistant"];
    assert!(assistant.is_object(), "{answer}");
    assert_eq!(unknown("assistant", assistant), Vec::<String>::new());
    assistant
}

/// Vapi's id of an agent's number.
pub fn line_of(phone: &Phone) -> &'static str {
    let found = LINES.iter().find(|(number, _)| *number == phone.number.as_str());
    let (_, line) = found.unwrap_or_else(|| panic!("not a number of the operator: {phone:?}"));
    assert_eq!(phone.line.as_deref(), Some(*line));
    line
}

/// Lets the worker run a job, as its next look would.
pub(super) async fn look(stack: &Stack, id: RequestId) {
    queue::send_or_log(&*stack.queue, id, None).await;
}

/// Lets the worker look at a job until it has ended.
pub async fn looked_at(stack: &Stack, agent: &Agent, id: RequestId) -> Value {
    eventually("the job's end", || async {
        look(stack, id).await;
        finished(agent, id).await
    })
    .await
}

/// The id of the agent's newest inbound call.
pub async fn newest(agent: &Agent) -> RequestId {
    let calls = agent.calls("").await;
    calls[0]["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("{calls:?}"))
}

/// Where a link to a recording leads.
pub(super) async fn recording(stack: &Stack, url: &Value) -> Option<String> {
    let path = url.as_str().and_then(|url| url.strip_prefix(BASE));
    let path = path.unwrap_or_else(|| panic!("not a link of ours: {url}"));
    let answer = Client::new(&stack.base_url).get(path, &[]).await;
    assert_eq!(answer.status, 302, "{}", answer.text);
    answer.header("location").map(str::to_owned)
}

#[test]
fn a_call_that_rings_at_vapi_is_answered_and_charged_by_its_record() {
    run(async {
        let vapi = Vapi::start().await;
        let stack = vapi.stack().await;
        let (bob, of_bob) = Agent::answering(&stack, 5 * MINUTE, json!({"first_message": "Rossi, hello."})).await;
        let now = stack.app.clock.now();
        vapi.rings("019b", line_of(&of_bob), now);
        let answer = vapi.posts(&stack, "assistant-request", "019b").await;
        let answered = assistant(&answer);
        for (pointer, value) in [
            ("/firstMessage", json!("Rossi, hello. This call is recorded.")),
            ("/maxDurationSeconds", json!(300)),
            ("/server/url", json!(format!("{BASE}{HOOK}"))),
            ("/server/headers/x-vapi-secret", json!(SECRET)),
            ("/serverMessages", json!(["end-of-call-report"])),
            ("/model/tools", json!([{"type": "endCall"}])),
        ] {
            assert_eq!(answered.pointer(pointer), Some(&value), "{pointer}: {answer}");
        }
        // It may ask again, and gets the same; the credits are held once.
        assert_eq!(vapi.posts(&stack, "assistant-request", "019b").await, answer);
        assert_eq!(bob.credits(&stack).await, 0);
        let id = newest(&bob).await;
        let open = bob.call(id).await;
        assert_eq!((&open["status"], &open["from"]), (&json!("in-progress"), &json!(CALLER)), "{open}");

        // The end is posted before its time, then before Vapi has looked through the call, then with everything, twice.
        vapi.becomes("019b", &json!({"status": "in-progress"}));
        vapi.posts(&stack, "end-of-call-report", "019b").await;
        vapi.ends("019b", now, 95, "customer-ended-call");
        vapi.becomes("019b", &json!({"analysis": {}}));
        vapi.posts(&stack, "status-update", "019b").await;
        assert_eq!(bob.call(id).await["status"], "in-progress");
        vapi.ends("019b", now, 95, "customer-ended-call");
        vapi.reports(&stack, "019b", &bob, id).await;
        vapi.posts(&stack, "end-of-call-report", "019b").await;
        let call = bob.charged(id).await;
        for (member, value) in [
            ("status", json!("ended")),
            ("ended_reason", json!("caller_hung_up")),
            ("duration_seconds", json!(95)),
            ("charge_usdc", json!("0.700000")),
            ("summary", json!("They talked about bread.")),
            ("transcript", json!("Assistant: Hello.\nCaller: Bread, please.\nAssistant: Four dollars.")),
        ] {
            assert_eq!(call[member], value, "{member}: {call}");
        }
        assert_eq!(bob.credits(&stack).await, 3 * MINUTE);
        let link = recording(&stack, &call["recording_url"]).await;
        assert_eq!(link.as_deref(), Some("https://signed.example/recording.mp3?signature=1"));

        // Late, and with another length: the charge is final.
        vapi.ends("019b", now, 280, "customer-ended-call");
        for kind in ["end-of-call-report", "status-update", "conversation-update"] {
            vapi.posts(&stack, kind, "019b").await;
        }
        look(&stack, id).await;
        assert_eq!(bob.call(id).await["charge_usdc"], "0.700000");
        assert_eq!(bob.credits(&stack).await, 3 * MINUTE);
    });
}

/// Whoever has a link opens it for nothing: the openings of a minute ask Vapi once, and take nothing of what Vapi may be asked
/// in a day about calls.
#[test]
fn openings_of_a_recording_ask_once_a_minute_and_keep_no_call_waiting() {
    run(async {
        let vapi = Vapi::start().await;
        let most = 1_000;
        let now = Clock::system().now().secs();
        let clock = Clock::pinned(Timestamp::from_secs(now - now % 60));
        let stack = stack_with(|options| {
            let options = vapi.options(options).with("PROVIDER_CALLS_PER_DAY", format!("vapi={most}"));
            Options { clock, ..options.with("RATE_LIMIT_SCALE", "1") }
        })
        .await;
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, json!({})).await;
        let now = stack.app.clock.now();
        vapi.rings("019b", line_of(&of_bob), now);
        assistant(&vapi.posts(&stack, "assistant-request", "019b").await);
        let id = newest(&bob).await;
        vapi.ends("019b", now, 50, "customer-ended-call");
        vapi.reports(&stack, "019b", &bob, id).await;
        let call = bob.charged(id).await;
        let link = call["recording_url"].as_str().and_then(|url| url.strip_prefix(BASE)).expect("a link").to_owned();
        let client = Client::new(&stack.base_url);
        let asked = || vapi.asked().into_iter().filter(|asked| asked.path.ends_with("/mono-recording")).count();

        let limit = Class::Recording.limit().count;
        for _ in 0..limit {
            let opened = client.get(&link, &[]).await;
            assert_eq!(opened.status, 302, "{}", opened.text);
            assert_eq!(opened.header("location"), Some("https://signed.example/recording.mp3?signature=1"));
        }
        assert_eq!(asked(), 1);
        assert_eq!(client.get(&link, &[]).await.error(), (429, "rate_limit_exceeded".to_owned()));
        stack.app.clock.advance(Duration::from_secs(60));
        assert_eq!(client.get(&link, &[]).await.status, 302);
        assert_eq!(asked(), 2, "its answer is kept for a minute");

        let day = stack.app.clock.now().secs().div_euclid(86_400).to_string();
        let counter = |name: &str| Key::new(format!("RATE#provider:vapi#{name}"), day.clone());
        let used = async |name| {
            let row: Option<Value> =
                stack.app.db.get_latest(&stack.app.db.tables.agents, counter(name)).await.expect("a row");
            row.and_then(|row| row["used"].as_u64()).unwrap_or_default()
        };
        assert_eq!(used("reads").await, 2);
        let before = used("calls").await;
        let full = Write::put(&stack.app.db.tables.agents, counter("reads"), &json!({"used": most})).expect("a row");
        stack.app.db.write(full).await.expect("a database");
        stack.app.clock.advance(Duration::from_secs(60));
        assert_eq!(client.get(&link, &[]).await.status, 503);
        vapi.rings("019c", line_of(&of_bob), stack.app.clock.now());
        assistant(&vapi.posts(&stack, "assistant-request", "019c").await);
        assert!(used("calls").await > before);
    });
}

#[test]
fn a_caller_who_is_not_answered_hears_why_and_costs_nothing() {
    run(async {
        let vapi = Vapi::start().await;
        let stack = vapi.stack().await;
        let now = stack.app.clock.now();
        let (ada, of_ada) = Agent::answering(&stack, MINUTE, json!({})).await;
        let (bob, of_bob) = Agent::answering(&stack, MINUTE - 1, json!({})).await;
        let taken = [line_of(&of_ada), line_of(&of_bob)];
        let free = LINES.iter().find(|(_, line)| !taken.contains(line)).expect("a line").1;
        vapi.rings("019c-free", free, now);
        vapi.rings("019c-poor", line_of(&of_bob), now);
        for (id, said) in
            [("019c-free", "This number is not in service."), ("019c-poor", "Nobody can take your call now.")]
        {
            let answer = vapi.posts(&stack, "assistant-request", id).await;
            let error = answer["error"].as_str().unwrap_or_else(|| panic!("{id}: {answer}"));
            assert!(error.starts_with(said), "{id}: {error}");
        }
        let declined = bob.calls("").await;
        assert_eq!((declined.len(), &declined[0]["status"]), (1, &json!("declined")), "{declined:?}");
        assert_eq!(bob.credits(&stack).await, MINUTE - 1);

        // A caller who gives up before the assistant is there.
        vapi.rings("019c-gone", line_of(&of_ada), now);
        assistant(&vapi.posts(&stack, "assistant-request", "019c-gone").await);
        assert_eq!(ada.credits(&stack).await, 0);
        let reason = "call.ringing.sip-inbound-caller-hungup-before-call-connect";
        let ended = json!({"status": "ended", "endedReason": reason, "endedAt": now.to_string()});
        vapi.becomes("019c-gone", &ended);
        let id = newest(&ada).await;
        vapi.reports(&stack, "019c-gone", &ada, id).await;
        let call = ada.charged(id).await;
        assert_eq!((&call["status"], &call["charge_usdc"]), (&json!("declined"), &json!("0.000000")), "{call}");
        assert_eq!(ada.credits(&stack).await, MINUTE);
    });
}

#[test]
fn a_call_that_rings_while_paid_calls_are_stopped_is_declined() {
    run(async {
        let vapi = Vapi::start().await;
        let stack = vapi.stack().await;
        let (ada, of_ada) = Agent::answering(&stack, MINUTE, json!({})).await;
        limits::stop(&stack.app, Some("testing")).await.expect("a database");
        vapi.rings("019c-stop", line_of(&of_ada), stack.app.clock.now());
        let answer = vapi.posts(&stack, "assistant-request", "019c-stop").await;
        assert!(answer["error"].as_str().is_some_and(|said| said.starts_with("Nobody can take your call")), "{answer}");
        assert_eq!((ada.calls("").await.len(), ada.credits(&stack).await), (0, MINUTE));
    });
}

#[test]
fn posts_that_vapi_does_not_confirm_change_nothing() {
    run(async {
        let vapi = Vapi::start().await;
        let stack = vapi.stack().await;
        let now = stack.app.clock.now();
        let (bob, of_bob) = Agent::answering(&stack, 3 * MINUTE, json!({})).await;
        let line = line_of(&of_bob);
        vapi.rings("019d", line, now);
        let rings = vapi.message("assistant-request", "019d");
        for secret in [None, Some(""), Some("a-secret-of-the-operatoR"), Some(KEY)] {
            let answer = post(&stack, &rings, secret).await;
            assert_eq!(answer.error(), (401, "invalid_signature".to_owned()), "{secret:?}");
        }
        // Whoever has the secret cannot invent a call: Vapi knows of none, or of none at this line.
        let with = |member: &str, value: &str| {
            let mut message = rings.clone();
            message["message"]["call"][member] = json!(value);
            message
        };
        let other = LINES.iter().find(|(_, id)| *id != line).expect("a line").1;
        for message in [
            with("id", "019d-invented"),
            with("phoneNumberId", other),
            with("id", "../phone-number"),
            json!({"message": {"type": "assistant-request"}}),
        ] {
            let answer = post(&stack, &message, Some(SECRET)).await;
            assert!(answer.status == 200 && answer.json()["error"].is_string(), "{message}: {}", answer.text);
        }
        assert!(bob.calls("").await.is_empty());
        assert_eq!(bob.credits(&stack).await, 3 * MINUTE);

        // Nor can it end one, or say how long it was.
        assistant(&vapi.posts(&stack, "assistant-request", "019d").await);
        vapi.becomes("019d", &json!({"status": "in-progress"}));
        let id = newest(&bob).await;
        let mut report = vapi.message("end-of-call-report", "019d");
        report["message"]["endedReason"] = json!("customer-ended-call");
        report["message"]["endedAt"] = json!(now.plus(Duration::from_secs(170)).to_string());
        let asks = || vapi.asked().into_iter().filter(|asked| asked.path == "/call/019d").count();
        let before = asks();
        assert_eq!(post(&stack, &report, Some(SECRET)).await.json(), json!({}));
        eventually("the question", || async { (asks() > before).then_some(()) }).await;
        assert_eq!(bob.call(id).await["status"], "in-progress");
        vapi.ends("019d", now, 10, "assistant-ended-call");
        vapi.reports(&stack, "019d", &bob, id).await;
        let call = bob.charged(id).await;
        assert_eq!((&call["charge_usdc"], &call["ended_reason"]), (&json!("0.350000"), &json!("assistant_hung_up")));

        // What concerns nothing of ours.
        for message in [json!({}), json!([]), json!({"message": {"type": "end-of-call-report", "call": {"id": "x"}}})] {
            assert_eq!(post(&stack, &message, Some(SECRET)).await.status, 200, "{message}");
        }
        let headers = [("content-type", "application/json"), ("x-vapi-secret", SECRET)];
        let nonsense = Client::new(&stack.base_url).send("POST", HOOK, &headers, "{").await.expect("an answer");
        assert_eq!(nonsense.error(), (400, "invalid_request".to_owned()));
        let embedded = support::stack().await;
        assert_eq!(post(&embedded, &rings, Some(SECRET)).await.status, 404, "Vapi is not in use");
    });
}

/// The first end that was stored counts, whatever is told later.
#[test]
fn a_call_that_fails_by_vapis_fault_costs_nothing() {
    run(async {
        let vapi = Vapi::start().await;
        let stack = vapi.stack().await;
        let (bob, of_bob) = Agent::answering(&stack, 3 * MINUTE, json!({})).await;
        let (fault, usual) = ("pipeline-error-openai-llm-failed", "customer-ended-call");
        for (id, first, then, reason, charge, left) in [
            ("019f-a", fault, usual, "failed", "0.000000", 3 * MINUTE),
            ("019f-b", usual, fault, "caller_hung_up", "0.700000", MINUTE),
        ] {
            let now = stack.app.clock.now();
            vapi.rings(id, line_of(&of_bob), now);
            assistant(&vapi.posts(&stack, "assistant-request", id).await);
            assert_eq!(bob.credits(&stack).await, 0, "{id}: held");
            let job = newest(&bob).await;
            vapi.ends(id, now, 95, first);
            vapi.reports(&stack, id, &bob, job).await;
            vapi.ends(id, now, 30, then);
            vapi.posts(&stack, "end-of-call-report", id).await;
            look(&stack, job).await;
            let call = bob.charged(job).await;
            for (member, value) in [("status", "ended"), ("ended_reason", reason), ("charge_usdc", charge)] {
                assert_eq!(call[member], value, "{member}: {call}");
            }
            assert_eq!((&call["duration_seconds"], bob.credits(&stack).await), (&json!(95), left), "{call}");
        }
    });
}

/// Its reports never arrive, and it does not hang up when it has to.
#[test]
fn a_call_that_vapi_says_nothing_about_is_ended_when_its_credit_ends() {
    run(async {
        let vapi = Vapi::start().await;
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|options| vapi.options(Options { clock: clock.clone(), ..options })).await;
        let (bob, of_bob) = Agent::answering(&stack, MINUTE, json!({})).await;
        vapi.rings("019e", line_of(&of_bob), clock.now());
        assistant(&vapi.posts(&stack, "assistant-request", "019e").await);
        vapi.becomes("019e", &json!({"status": "in-progress", "startedAt": clock.now().to_string()}));
        let id = newest(&bob).await;
        clock.advance(Duration::from_secs(61));
        looked_at(&stack, &bob, id).await;
        assert_eq!(vapi.call("019e")["status"], "ended");
        let call = bob.charged(id).await;
        assert_eq!(
            (&call["charge_usdc"], &call["ended_reason"]),
            (&json!("0.350000"), &json!("credit_limit")),
            "{call}"
        );
        assert_eq!((&call["summary"], bob.credits(&stack).await), (&json!("It was cut."), 0));
    });
}

/// With minutes of credit left.
#[test]
fn a_freeze_ends_an_open_call_at_vapi() {
    run(async {
        let vapi = Vapi::start().await;
        let stack = vapi.stack().await;
        let (bob, of_bob) = Agent::answering(&stack, 3 * MINUTE, json!({})).await;
        let now = stack.app.clock.now();
        vapi.rings("019h", line_of(&of_bob), now);
        assistant(&vapi.posts(&stack, "assistant-request", "019h").await);
        vapi.becomes("019h", &json!({"status": "in-progress", "startedAt": now.to_string()}));
        let freeze = account::change_rules(&stack.app.db, bob.payer.agent(), |account| {
            account.frozen.tools.insert("voice".to_owned());
        });
        freeze.await.expect("a freeze");
        looked_at(&stack, &bob, newest(&bob).await).await;
        assert_eq!(vapi.call("019h")["status"], "ended");
    });
}

/// Vapi goes on to say that two calls last, and gives nothing to end them with. They end in the times that the guide states, and
/// cost nothing.
#[test]
fn calls_whose_end_is_never_heard_end_in_time_and_cost_nothing() {
    run(async {
        let vapi = Vapi::start().await;
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|options| vapi.options(Options { clock: clock.clone(), ..options })).await;
        let lasts = |id: &str| vapi.becomes(id, &json!({"status": "in-progress", "monitor": {}}));
        let (bob, of_bob) = Agent::answering(&stack, MINUTE, json!({})).await;
        vapi.rings("019g", line_of(&of_bob), clock.now());
        assistant(&vapi.posts(&stack, "assistant-request", "019g").await);
        lasts("019g");
        let came_in = newest(&bob).await;
        let (ada, _) = Agent::with_number(&stack).await;
        let bought = buy(&ada, outside(clock.now())).await;
        let placed = eventually("the call's id", || async { vapi.ids().into_iter().find(|id| id != "019g") }).await;
        lasts(&placed);
        // No proof is as old as this becomes.
        let (of_bobs, of_adas) = (bob.payer.token(&stack).await, ada.payer.token(&stack).await);
        let read =
            async |path: String, token: &str| bob.payer.client.get(&path, &[("authorization", token)]).await.json();
        let states = async || {
            let mut states = Vec::new();
            for (id, token) in [(came_in, &of_bobs), (bought, &of_adas)] {
                look(&stack, id).await;
                states.push(read(format!("/v1/requests/{id}"), token).await["status"].clone());
            }
            states
        };
        for (minutes, expected) in [
            (30, ["processing", "processing"]),
            (4, ["completed", "processing"]),
            (12, ["completed", "processing"]),
            (4, ["completed", "completed"]),
        ] {
            clock.advance(Duration::from_secs(60 * minutes));
            eventually("the states of the calls", || async { (states().await == expected).then_some(()) }).await;
        }
        let call = read(format!("/v1/tools/voice/inbound/{came_in}"), &of_bobs).await["data"].clone();
        assert_eq!((&call["ended_reason"], &call["charge_usdc"]), (&json!("failed"), &json!("0.000000")), "{call}");
        assert_eq!(bob.credits(&stack).await, MINUTE);
        let job = read(format!("/v1/requests/{bought}"), &of_adas).await;
        assert_eq!((&job["result"]["status"], &job["result"]["cost"]), (&json!("failed"), &json!("0.000000")), "{job}");
        assert_eq!(money(&ada, &stack).await, (3 * MINUTE, 3 * MINUTE));
    });
}

pub fn call_to(to: impl Into<Value>) -> Value {
    let (objective, name) = ("Ask what bread costs.", "Ann");
    json!({"objective": objective, "target_number": to.into(), "caller_name": name, "max_duration_minutes": 3})
}

/// Pays for a call of at most three minutes; the id of its job.
pub async fn buy(agent: &Agent, to: &str) -> RequestId {
    let body = call_to(to);
    let unpaid = agent.payer.ask(CALL, &body).await;
    redeem(agent, &unpaid, &body).await
}

/// Pays this price; the id of the job.
async fn redeem(agent: &Agent, unpaid: &Answer, body: &Value) -> RequestId {
    let accepted = agent.payer.redeem(CALL, unpaid, body).await;
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    accepted.json()["request_id"].as_str().and_then(|id| id.parse().ok()).expect("an id")
}

/// What an agent has paid on chain so far, and the credits that it has, in micro-USDC.
pub(super) async fn money(agent: &Agent, stack: &Stack) -> (u64, u64) {
    let left = u64::try_from(agent.payer.balance(stack).await).expect("an amount");
    (FUNDS - left, agent.credits(stack).await)
}

#[test]
fn a_call_outside_is_placed_once_and_charged_by_its_record() {
    run(async {
        let vapi = Vapi::start().await;
        let stack = vapi.stack().await;
        let (ada, of_ada) = Agent::with_number(&stack).await;
        let capable = async || {
            let numbers = data(&ada.payer.get(NUMBERS).await)["numbers"].clone();
            (numbers[0]["voice_capable"].clone(), numbers[0]["sms_capable"].clone())
        };
        assert_eq!(capable().await, (json!(true), json!(false)), "Vapi carries no texts");
        // Vapi got the number later.
        phone::note_line(&stack.app.db, &of_ada, None).await.expect("a database");
        assert_eq!(capable().await.0, false);
        let now = stack.app.clock.now();
        let to = outside(now);
        // A price finds that out, and the next one does not ask Vapi again.
        let asks = || vapi.asked().into_iter().filter(|asked| asked.path == "/phone-number").count();
        let before = asks();
        for _ in 0..2 {
            assert_eq!(ada.payer.ask(CALL, &call_to(to)).await.status, 402);
        }
        assert_eq!((asks() - before, capable().await.0), (1, json!(true)));
        let id = buy(&ada, to).await;
        let placed = eventually("the call", || async { vapi.placed().first().cloned() }).await;
        let first = "Hello, this is an AI assistant calling for Ann. This call is recorded.";
        for (pointer, value) in [
            ("/name", json!(format!("{id}.0"))),
            ("/phoneNumberId", json!(line_of(&of_ada))),
            ("/customer/number", json!(to)),
            ("/assistant/firstMessage", json!(first)),
            ("/assistant/maxDurationSeconds", json!(180)),
            ("/assistant/server/headers/x-vapi-secret", json!(SECRET)),
            ("/assistant/analysisPlan/successEvaluationPlan/rubric", json!("PassFail")),
        ] {
            assert_eq!(placed.pointer(pointer), Some(&value), "{pointer}: {placed}");
        }
        let left = placed.pointer("/assistant/voicemailMessage").and_then(Value::as_str).expect("a message");
        let system = placed.pointer("/assistant/model/messages/0/content").and_then(Value::as_str).expect("a prompt");
        assert!(left.starts_with(first) && left.contains(of_ada.number.as_str()), "{left}");
        assert!(system.contains("Ask what bread costs.") && system.contains(of_ada.number.as_str()), "{system}");

        // An end that is posted before its time ends nothing.
        let call = eventually("the call's id", || async { vapi.ids().first().cloned() }).await;
        vapi.becomes(&call, &json!({"status": "in-progress"}));
        vapi.posts(&stack, "end-of-call-report", &call).await;
        look(&stack, id).await;
        assert_eq!(finished(&ada, id).await, None);
        vapi.ends(&call, now, 70, "customer-ended-call");
        let job = vapi.reports(&stack, &call, &ada, id).await;
        let result = described(&job);
        for (member, value) in [
            ("status", json!("completed")),
            ("outcome", json!("reached_person")),
            ("ended_reason", json!("customer-ended-call")),
            ("duration_seconds", json!(70)),
            ("transcript", json!("Caller: Hello.\nAssistant: Bread, please.\nCaller: Four dollars.")),
            ("summary", json!("They talked about bread.")),
            ("success_evaluation", json!("pass")),
            ("cost", json!("0.700000")),
            ("credit_issued", json!("0.350000")),
            ("from", json!(of_ada.number)),
        ] {
            assert_eq!(result[member], value, "{member}: {job}");
        }
        let points = json!([{"point": "Ask what bread costs", "answered": true}]);
        let data = json!({"points": points, "message_left": false, "callback_number": "+1 415"});
        assert_eq!(result["structured_data"], data);
        assert!(recording(&stack, &result["recording_url"]).await.is_some());
        assert_eq!(money(&ada, &stack).await, (3 * MINUTE, MINUTE));
        vapi.posts(&stack, "end-of-call-report", &call).await;
        look(&stack, id).await;
        assert_eq!((vapi.placed().len(), money(&ada, &stack).await), (1, (3 * MINUTE, MINUTE)));
    });
}

#[test]
fn a_call_whose_placing_was_not_answered_is_looked_for_and_never_placed_again() {
    run(async {
        let vapi = Vapi::start().await;
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|options| vapi.options(Options { clock: clock.clone(), ..options })).await;
        let (ada, _) = Agent::with_number(&stack).await;
        let to = outside(clock.now());

        // The answer is lost: the call is found by its name.
        vapi.next(&[Placing::Lost]);
        let id = buy(&ada, to).await;
        let call = eventually("the call", || async { vapi.ids().first().cloned() }).await;
        vapi.ends(&call, clock.now(), 20, "voicemail");
        let job = looked_at(&stack, &ada, id).await;
        assert_eq!((&job["result"]["outcome"], &job["result"]["cost"]), (&json!("voicemail_left"), &json!("0.350000")));
        assert_eq!((vapi.placed().len(), money(&ada, &stack).await), (1, (3 * MINUTE, 2 * MINUTE)), "{job}");

        // Refused for good, and refused for now.
        for (next, placings, status, back) in [
            (vec![Placing::Fails(400)], 1, "failed", 3),
            (vec![Placing::Fails(401), Placing::Fails(401)], 3, "completed", 2),
        ] {
            let (before, calls, had) = (vapi.placed().len(), vapi.ids(), money(&ada, &stack).await);
            vapi.next(&next);
            let id = buy(&ada, to).await;
            let job = eventually("the job's end", || async {
                for call in vapi.ids().iter().filter(|call| !calls.contains(call)) {
                    vapi.ends(call, clock.now(), 20, "customer-ended-call");
                }
                look(&stack, id).await;
                finished(&ada, id).await
            })
            .await;
            assert_eq!(described(&job)["status"], status, "{next:?}: {job}");
            assert_eq!(vapi.placed().len() - before, placings, "{next:?}: {job}");
            let has = money(&ada, &stack).await;
            assert_eq!((has.0 - had.0, has.1 - had.1), (3 * MINUTE, back * MINUTE), "{next:?}: {job}");
        }

        // It may have been placed, and is nowhere: nobody is called again, and nothing is charged.
        let (before, had) = (vapi.placed().len(), money(&ada, &stack).await);
        vapi.next(&[Placing::Fails(500)]);
        let id = buy(&ada, to).await;
        eventually("the call", || async { (vapi.placed().len() > before).then_some(()) }).await;
        clock.advance(Duration::from_secs(181));
        let job = looked_at(&stack, &ada, id).await;
        assert_eq!((&job["result"]["status"], vapi.placed().len() - before), (&json!("failed"), 1), "{job}");
        let has = money(&ada, &stack).await;
        assert_eq!((has.0 - had.0, has.1 - had.1), (3 * MINUTE, 3 * MINUTE), "{job}");
    });
}

#[test]
fn numbers_outside_are_refused_before_a_price() {
    run(async {
        let vapi = Vapi::start().await;
        let stack = vapi.stack().await;
        let (ada, own) = Agent::with_number(&stack).await;
        let (_, of_bob) = Agent::answering(&stack, 0, json!({})).await;
        // Calls are not passed on to other countries either: that is the operator's line.
        let abroad = settings(json!({"allowed_tools": ["transfer_call"], "transfer_number": "+442079460018"}));
        assert_eq!(ada.put(&own, &abroad).await.error(), (400, "country_not_allowed".to_owned()));
        let now = stack.app.clock.now();
        let asleep = OUTSIDE.iter().find(|(country, _)| is_quiet(country, now)).expect("it is night somewhere").1;
        for (to, code) in [
            (json!(asleep), "quiet_hours"),
            (json!("+442079460018"), "country_not_allowed"),
            (json!(Number::fictitious(77)), "invalid_request"),
        ] {
            let refused = ada.payer.ask(CALL, &call_to(to.clone())).await;
            assert_eq!(refused.error(), (400, code.to_owned()), "{to}: {}", refused.text);
        }
        // Numbers here and outside are not called together, nor for longer than a day has minutes.
        let many: Vec<String> = (0..3).map(|last| beside(outside(now), last)).collect();
        let long = json!({"objective": "Ask what bread costs.", "target_number": many, "max_duration_minutes": 30});
        let mixed = call_to(json!([of_bob.number, outside(now)]));
        for (body, path) in [(mixed, "target_number.1"), (long, "max_duration_minutes")] {
            let refused = ada.payer.ask(CALL, &body).await;
            assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{}", refused.text);
            assert_eq!(refused.json()["details"][0]["path"], path, "{}", refused.text);
        }
        assert!(vapi.placed().is_empty());
        // Without a provider, nobody outside can be called.
        let embedded = support::stack().await;
        let refused = ada.at(&embedded).payer.ask(CALL, &call_to(outside(now))).await;
        assert_eq!(refused.status, 503, "{}", refused.text);
    });
}

/// What calls outside can cost the operator in a day. Their longest lengths count.
#[test]
fn minutes_outside_are_limited_for_an_agent_and_for_all() {
    run(async {
        let vapi = Vapi::start().await;
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|options| {
            vapi.options(Options { clock: clock.clone(), ..options }).with("VOICE_DAILY_MINUTES", "50")
        })
        .await;
        let ((ada, _), (bob, _)) = (Agent::with_number(&stack).await, Agent::with_number(&stack).await);
        let (body, full) = (call_to(outside(clock.now())), (429, "voice_limit_reached".to_owned()));
        let used = |of: String, minutes: u32| {
            counted(&stack, of, json!({"minutes": minutes, "calls": 1, "expires": i64::MAX}))
        };
        let all = || "VOICEOUT#ALL".to_owned();
        // The call needs three minutes. Two are left for all, whoever asks.
        used(all(), 48).await;
        for refused in [ada.payer.ask(CALL, &body).await, ada.payer.client.post(CALL, &[], &body).await] {
            assert_eq!(refused.error(), full, "{}", refused.text);
        }
        used(all(), 0).await;
        used(format!("VOICEOUT#{}", ada.payer.agent()), MAX_MINUTES_A_DAY - 2).await;
        assert_eq!(ada.asks(CALL, &body).await.error(), full);
        used(format!("VOICEOUT#{}", ada.payer.agent()), 0).await;

        // Two agents have a price, and race for the last three minutes.
        used(all(), 47).await;
        let unpaid = tokio::join!(ada.payer.ask(CALL, &body), bob.payer.ask(CALL, &body));
        let ids = tokio::join!(redeem(&ada, &unpaid.0, &body), redeem(&bob, &unpaid.1, &body));
        let mut ended = Vec::new();
        for (agent, id) in [(&ada, ids.0), (&bob, ids.1)] {
            let job = eventually("the job's end", || async {
                for call in vapi.ids() {
                    vapi.ends(&call, clock.now(), 20, "customer-ended-call");
                }
                look(&stack, id).await;
                let job = agent.payer.get(&format!("/v1/requests/{id}")).await.json();
                matches!(job["status"].as_str(), Some("completed" | "failed")).then_some(job)
            })
            .await;
            ended.push((job["error_code"].as_str().map(str::to_owned), money(agent, &stack).await));
        }
        ended.sort();
        let refused = (Some("rate_limited".to_owned()), (3 * MINUTE, 3 * MINUTE));
        assert_eq!(ended, [(None, (3 * MINUTE, 2 * MINUTE)), refused]);
        assert_eq!((vapi.placed().len(), ada.payer.ask(CALL, &body).await.error()), (1, full));
    });
}

#[test]
fn numbers_outside_are_called_one_after_the_other() {
    run(async {
        let vapi = Vapi::start().await;
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|options| vapi.options(Options { clock: clock.clone(), ..options })).await;
        let (ada, _) = Agent::with_number(&stack).await;
        let to: Vec<String> = (3..6).map(|last| beside(outside(clock.now()), last)).collect();
        let body = call_to(json!(to));
        let unpaid = ada.payer.ask(CALL, &body).await;
        assert_eq!(unpaid.json()["context"]["conference_mode"], false, "{}", unpaid.text);
        let id = redeem(&ada, &unpaid, &body).await;
        let first = eventually("the first call", || async { vapi.ids().first().cloned() }).await;
        let asks = || vapi.asked().into_iter().filter(|asked| asked.path == format!("/call/{first}")).count();
        eventually("a question about it", || async {
            look(&stack, id).await;
            (asks() > 0).then_some(())
        })
        .await;
        assert_eq!(vapi.placed().len(), 1, "the others have to wait");

        // The second is refused for good, so the third follows at once.
        vapi.next(&[Placing::Fails(400)]);
        vapi.ends(&first, clock.now(), 70, "customer-ended-call");
        let third = eventually("the third call", || async {
            look(&stack, id).await;
            vapi.ids().into_iter().find(|call| *call != first)
        })
        .await;
        // What came of the first is stored.
        vapi.ends(&first, clock.now(), 170, "pipeline-error-openai-llm-failed");
        vapi.ends(&third, clock.now(), 20, "voicemail");
        let job = vapi.reports(&stack, &third, &ada, id).await;
        let result = described(&job);
        let legs: Vec<(&Value, &Value, &Value)> = result["legs"]
            .as_array()
            .unwrap_or_else(|| panic!("{job}"))
            .iter()
            .map(|leg| (&leg["to"], &leg["outcome"], &leg["duration_seconds"]))
            .collect();
        let expected =
            [(json!("reached_person"), json!(70)), (Value::Null, json!(0)), (json!("voicemail_left"), json!(20))];
        let numbers: Vec<Value> = to.iter().map(|to| json!(to)).collect();
        let expected: Vec<_> = numbers.iter().zip(&expected).map(|(to, (outcome, secs))| (to, outcome, secs)).collect();
        assert_eq!(legs, expected, "{job}");
        for (member, value) in [
            ("status", json!("completed")),
            ("outcome", json!("reached_person")),
            ("ended_reason", json!("voicemail")),
            ("duration_seconds", json!(90)),
            ("cost", json!("1.050000")),
            ("credit_issued", json!("2.100000")),
        ] {
            assert_eq!(result[member], value, "{member}: {job}");
        }
        let talk = "Caller: Hello.\nAssistant: Bread, please.\nCaller: Four dollars.";
        let transcript = format!("Call to {}\n{talk}\n\nCall to {}\n{talk}", to[0], to[2]);
        assert_eq!(result["transcript"], json!(transcript), "{job}");
        for (leg, is_recorded) in [(0, true), (1, false), (2, true)] {
            assert_eq!(result["legs"][leg]["recording_url"].is_string(), is_recorded, "{job}");
        }
        assert_eq!(money(&ada, &stack).await, (9 * MINUTE, 6 * MINUTE), "{job}");
        let placed = vapi.placed();
        let called: Vec<(&Value, &Value)> =
            placed.iter().map(|body| (&body["customer"]["number"], &body["name"])).collect();
        let names: Vec<Value> = (0..3).map(|index| json!(format!("{id}.{index}"))).collect();
        assert_eq!(called, numbers.iter().zip(&names).collect::<Vec<_>>());
    });
}
