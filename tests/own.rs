//! An operator's own services: sold like any tool, hostile answers, limits, and a service that must not be asked twice.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use base::digest::sha256;
use base::encoding::{base64_any, base64_url};
use futures_util::future::join_all;
use http::{HeaderMap, Method, Uri};
use local::{Options, Stack};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tools::spec::MARKET;
use tower::ServiceExt;

use crate::support::{Answer, Payer, books, crashes, run, stack_with};

const CREDITS: u64 = 1_000_000;
const PRICE: u64 = 2_000;

/// One request that the service got.
#[derive(Clone, Debug)]
struct Got {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

impl Got {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// The operator's service: a real server that keeps what it gets.
#[derive(Clone)]
pub struct Service {
    origin: String,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Service {
    pub async fn start() -> Service {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        let service = Service { origin, got: Arc::default() };
        let router = Router::new().fallback(answer).with_state(service.clone());
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        service
    }

    fn got(&self) -> Vec<Got> {
        self.got.lock().expect("a lock").clone()
    }

    /// A tool at a path of the service, which says how it answers.
    pub fn tool(&self, name: &str, change: Value) -> Value {
        let mut tool = json!({
            "name": name, "title": "Weather", "summary": "Tells the weather of a city", "price": "0.002", "private": true,
            "method": "GET", "address": self.origin, "path": format!("/{name}/{{city}}"), "deadline_seconds": 2,
            "input_schema": {
                "type": "object", "required": ["city"],
                "properties": {"city": {"type": "string", "minLength": 1, "description": "Its name"}, "days": {"type": "integer"}},
            },
        });
        for (member, value) in change.as_object().expect("an object") {
            tool[member] = value.clone();
        }
        tool
    }
}

async fn answer(State(service): State<Service>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let header = headers.get("authorization").map(|header| header.to_str().unwrap_or_default().to_owned());
    service.got.lock().expect("a lock").push(Got { method, uri: uri.clone(), headers, body });
    let count = service.got.lock().expect("a lock").len();
    let json = |status: u16, body: &str| {
        let response = Response::builder().status(status).header("content-type", "application/json");
        response.body(Body::from(body.to_owned())).expect("a response")
    };
    let how = uri.path().split('/').nth(1).unwrap_or_default();
    match how {
        "fails" => json(500, r#"{"secret": "stack trace"}"#),
        "recovers" if count == 1 => json(503, "{}"),
        "key_refused" => json(401, r#"{"error": "bad key sk_live_123"}"#),
        "rounds" => json(200, r#"{"id": 123456789012345678901234567890}"#),
        "shows_key" => json(200, &json!({"you_sent": header}).to_string()),
        "tells_key" => json(400, &json!({"you_sent": header}).to_string()),
        "unknown_city" => json(404, r#"{"error": "no such city"}"#),
        "moves" => {
            Response::builder().status(302).header("location", "http://169.254.169.254/").body(Body::empty()).unwrap()
        }
        "page" => ([("content-type", "text/html")], "<html>hello</html>").into_response(),
        "lies" => ([("content-type", "application/json")], "<html>hello</html>").into_response(),
        "huge" => json(200, &format!("\"{}\"", "a".repeat(2_000_000))),
        "other_schema" => json(200, r#"{"degrees": "warm"}"#),
        "slow" => {
            tokio::time::sleep(Duration::from_secs(20)).await;
            json(200, "{}")
        }
        "breaks" => Response::builder()
            .header("content-type", "application/json")
            .header("content-length", "1000")
            .body(Body::from_stream(futures_util::stream::iter([Ok("{"), Err(std::io::Error::other("gone"))])))
            .unwrap(),
        "manual" => ([("content-type", "text/markdown; charset=utf-8")], "# Vélo").into_response(),
        "picture" => {
            ([("content-type", "image/png")], [&b"\x89PNG\r\n\x1a\n"[..], &[7; 200_000]].concat()).into_response()
        }
        _ => json(200, &json!({"city": uri.path().rsplit('/').next(), "degrees": 21}).to_string()),
    }
}

async fn selling(tools: &[Value]) -> Stack {
    stack_with(|options| sold(options, tools)).await
}

pub fn sold(options: Options, tools: &[Value]) -> Options {
    let tools = json!({"tools": tools}).to_string();
    // A key that nothing uses would stop the start.
    let options = match tools.contains("weather_key") {
        true => options.with("PROVIDER_KEYS", r#"{"weather_key": "s3cret-key"}"#),
        false => options,
    };
    options.with("OWN_TOOLS", tools)
}

fn path(name: &str) -> String {
    format!("/v1/tools/own/{name}")
}

async fn rich(stack: &Stack) -> (Payer, String) {
    let payer = Payer::with(stack, 0).await;
    payer.give_credits(stack, CREDITS).await;
    let token = payer.token(stack).await;
    (payer, token)
}

async fn call(payer: &Payer, token: &str, name: &str, body: &Value) -> Answer {
    payer.client.post(&path(name), &[("authorization", token)], body).await
}

async fn credits(stack: &Stack, payer: &Payer) -> u64 {
    books::audit(&stack.app.db, payer.agent()).await.credits.micro()
}

#[test]
fn a_service_is_sold_like_any_tool() {
    run(async {
        let service = Service::start().await;
        let key = json!({"headers": {"authorization": {"secret": "weather_key", "prefix": "Bearer "}}});
        let stack = selling(&[service.tool("weather", json!({"constants": key}))]).await;
        let payer = Payer::new(&stack).await;
        let input = json!({"city": "Aix en Provence é?&#", "days": 3});
        let bought = payer.buy(&path("weather"), &input).await;
        assert_eq!(bought.status, 200, "{}", bought.text);
        let body = bought.json();
        assert_eq!(
            body["data"]["result"],
            json!({"city": "Aix%20en%20Provence%20%C3%A9%3F%26%23", "degrees": 21}),
            "{body}"
        );
        assert_eq!(body["data"]["tool"], "weather", "{body}");

        let got = service.got();
        let [request] = &got[..] else { panic!("{got:?}") };
        assert_eq!((request.method.as_str(), request.header("authorization")), ("GET", "Bearer s3cret-key"));
        assert_eq!(request.uri.to_string(), "/weather/Aix%20en%20Provence%20%C3%A9%3F%26%23?days=3");
        trusts(&payer, &service, request, &body).await;

        // Wherever tools are listed, or named in an owner's rules.
        let discovered = payer.client.get("/v1/tools/discover?query=weather+of+a+city", &[]).await;
        assert!(discovered.text.contains("\"weather\""), "{}", discovered.text);
        let described = payer.client.get("/openapi.json", &[]).await.json();
        let operation = &described["paths"][path("weather")]["post"];
        assert_eq!(operation["x-payment-info"]["price"]["amount"], "0.002", "{operation}");
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(schema["properties"]["city"]["minLength"], 1, "{operation}");
        for page in ["/pricing", "/llms-full.txt", "/.well-known/x402"] {
            assert!(payer.client.get(page, &[]).await.text.contains(&path("weather")), "{page}");
        }
        let capped = payer.change("PUT", "/v1/agents/me/budgets", &json!({"tools": {"weather": 1}})).await;
        assert_eq!(capped.status, 200, "{}", capped.text);
        let receipts = payer.get("/v1/audit/receipts").await.json();
        assert!(receipts.to_string().contains("\"weather\""), "{receipts}");

        let wrong = payer.client.post(&path("weather"), &[], &json!({"days": "x"})).await;
        assert_eq!(wrong.error().0, 400, "{}", wrong.text);
        assert!(wrong.text.contains("city") && !wrong.text.contains("s3cret-key"), "{}", wrong.text);
        for city in ["..", "a/b", "a%2fb", ""] {
            let wrong = payer.client.post(&path("weather"), &[], &json!({"city": city})).await;
            assert_eq!(wrong.error(), (400, "invalid_request".to_owned()), "{city}");
        }
        assert_eq!(service.got().len(), 1);
        let nothing = payer.client.post(&path("weather_of_mars"), &[], &input).await;
        assert_eq!(nothing.error(), (404, "not_found".to_owned()));
    });
}

/// What the service checks before it works: a token that the published key signed, for this request.
async fn trusts(payer: &Payer, service: &Service, request: &Got, bought: &Value) {
    let token = request.header("x-paid-call");
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("{token}") };
    let json = |part: &str| serde_json::from_slice::<Value>(&base64_any(part).unwrap()).unwrap();
    let keys = payer.client.get("/.well-known/jwks.json", &[]).await.json();
    let kid = &json(header)["kid"];
    let key = keys["keys"].as_array().unwrap().iter().find(|key| key["kid"] == *kid).expect("the key is published");
    let key = UnparsedPublicKey::new(&ED25519, base64_any(key["x"].as_str().unwrap()).unwrap());
    key.verify(format!("{header}.{claims}").as_bytes(), &base64_any(signature).unwrap()).expect("a signature");
    let claims = json(claims);
    assert_eq!(claims["htm"], "GET");
    assert_eq!(claims["htu"], format!("{}/weather/Aix%20en%20Provence%20%C3%A9%3F%26%23", service.origin));
    assert_eq!(claims["body_sha256"], base64_url(&sha256(&request.body)));
    assert_eq!(claims["amount_usdc"], "0.002000");
    assert_eq!(claims["sub"], payer.agent().to_string());
    assert_eq!(claims["jti"], bought["data"]["request_id"], "{bought}");
    assert_eq!(claims["receipt_id"], bought["data"]["receipt_id"], "{bought}");
}

#[test]
fn what_a_service_gets_wrong_costs_nothing() {
    run(async {
        let service = Service::start().await;
        let promised = json!({"output_schema": {"type": "object", "properties": {"degrees": {"type": "number"}}}});
        let keyed =
            json!({"constants": {"headers": {"authorization": {"secret": "weather_key", "prefix": "Bearer "}}}});
        let kinds = [
            ("fails", 3, "provider_unavailable"),
            ("slow", 1, "provider_unavailable"),
            ("breaks", 3, "provider_unavailable"),
            ("moves", 1, "provider_unavailable"),
            ("page", 1, "provider_unavailable"),
            ("lies", 1, "provider_unavailable"),
            ("huge", 1, "provider_unavailable"),
            ("other_schema", 1, "provider_unavailable"),
            ("key_refused", 1, "provider_unavailable"),
            ("rounds", 1, "provider_unavailable"),
            ("shows_key", 1, "provider_unavailable"),
            ("tells_key", 1, "provider_unavailable"),
            ("unknown_city", 1, "invalid_input"),
        ];
        let tools: Vec<Value> = kinds
            .iter()
            .map(|(name, ..)| match *name {
                "other_schema" => service.tool(name, promised.clone()),
                "shows_key" | "tells_key" => service.tool(name, keyed.clone()),
                _ => service.tool(name, json!({})),
            })
            .collect();
        let stack = selling(&tools).await;
        let (payer, token) = rich(&stack).await;
        for (name, requests, code) in kinds {
            let before = service.got().len();
            let answer = call(&payer, &token, name, &json!({"city": "Lyon"})).await;
            assert_eq!(answer.json()["error"], code, "{name}: {}", answer.text);
            assert_eq!(credits(&stack, &payer).await, CREDITS, "{name}: {}", answer.text);
            assert_eq!(service.got().len() - before, requests, "{name}: {}", answer.text);
            // What the service says of itself is not for buyers; what it says of their input is.
            for shown in ["stack trace", "sk_live", "s3cret-key"] {
                assert!(!answer.text.contains(shown), "{name}: {}", answer.text);
            }
            assert_eq!(answer.text.contains("no such city"), name == "unknown_city", "{}", answer.text);
        }
    });
}

#[test]
fn a_service_that_recovers_is_asked_again_with_the_same_id() {
    run(async {
        let service = Service::start().await;
        let post = json!({"method": "POST", "call_id_header": "idempotency-key"});
        let stack = selling(&[service.tool("recovers", post)]).await;
        let (payer, token) = rich(&stack).await;
        let answer = call(&payer, &token, "recovers", &json!({"city": "Lyon"})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let ids: Vec<String> = service.got().iter().map(|got| got.header("idempotency-key").to_owned()).collect();
        assert!(ids.len() == 2 && ids[0] == ids[1] && !ids[0].is_empty(), "{ids:?}");
        assert_eq!(credits(&stack, &payer).await, CREDITS - PRICE);
    });
}

#[test]
fn limits_hold_for_all_buyers_together() {
    run(async {
        let service = Service::start().await;
        let daily = service.tool("daily", json!({"calls_per_day": 3}));
        let kept = service.tool("kept", json!({"cache_seconds": 60}));
        let stack = selling(&[daily, kept]).await;
        let (payer, token) = rich(&stack).await;
        let cities: Vec<Value> = (0..8).map(|number| json!({"city": format!("city {number}")})).collect();
        let answers = join_all(cities.iter().map(|city| call(&payer, &token, "daily", city))).await;
        let done = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!((done, service.got().len()), (3, 3));
        let refused = answers.iter().find(|answer| answer.status != 200).expect("a refusal");
        assert_eq!(refused.error(), (503, "provider_unavailable".to_owned()), "{}", refused.text);
        assert_eq!(credits(&stack, &payer).await, CREDITS - 3 * PRICE);
        // Nobody is asked to pay for what cannot be had today.
        let unpaid = payer.client.post(&path("daily"), &[], &cities[0]).await;
        assert_eq!(unpaid.error(), (503, "provider_unavailable".to_owned()), "{}", unpaid.text);
        assert!(unpaid.header("retry-after").is_some(), "{}", unpaid.text);

        // An answer that is kept is sold again without asking.
        for _ in 0..2 {
            let answer = call(&payer, &token, "kept", &json!({"city": "Lyon"})).await;
            assert_eq!(answer.json()["data"]["result"]["degrees"], 21, "{}", answer.text);
        }
        assert_eq!(service.got().len(), 4);
        assert_eq!(credits(&stack, &payer).await, CREDITS - 5 * PRICE);
    });
}

#[test]
fn a_short_text_is_the_answer_and_a_picture_a_file_of_its_job() {
    run(async {
        let service = Service::start().await;
        let manual = service.tool("manual", json!({"answers": ["text/markdown"], "max_response_bytes": 65_536}));
        let picture = service.tool("picture", json!({"answers": ["image/png"], "category": "pictures"}));
        let stack = selling(&[manual, picture]).await;
        let (payer, token) = rich(&stack).await;
        let read = call(&payer, &token, "manual", &json!({"city": "Lyon"})).await;
        let expected = json!({"content_type": "text/markdown", "bytes": 7, "text": "# Vélo"});
        assert_eq!((read.status, &read.json()["data"]["result"]), (200, &expected), "{}", read.text);
        let accepted = call(&payer, &token, "picture", &json!({"city": "Lyon"})).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let id = accepted.json()["request_id"].as_str().expect("an id").to_owned();
        let job = payer.finished(&id).await;
        assert_eq!(job["result"], json!({"content_type": "image/png", "bytes": 200_008, "file": "answer"}), "{job}");
        let file = payer.get(&format!("/v1/requests/{id}/files/answer")).await;
        assert_eq!(
            (file.status, file.header("content-type")),
            (200, Some("image/png")),
            "{:?}",
            file.header("location")
        );
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
    });
}

/// A service that does something each time it is asked: whatever dies, it is asked at most once, and paid exactly if it answered.
#[test]
fn a_service_that_must_not_be_asked_twice_survives_crashes() {
    run(async {
        crashes::at_every_second_request(10, async |step, arrives| {
            let service = Service::start().await;
            let tool = service.tool("orders", json!({"method": "POST"}));
            let prepare = |options: Options| sold(options, std::slice::from_ref(&tool));
            let input = json!({"city": "Lyon"});
            let resumed =
                crashes::resume_at_fixed_price(step, arrives, prepare, (CREDITS, "/v1/tools/own/orders", &input)).await;
            let label = format!("step {step}, arrives: {arrives}: {}", resumed.job);
            let asked = service.got().len();
            assert!(asked <= 1, "{label}");
            let is_done = resumed.job["status"] == "completed";
            assert!(asked == 1 || !is_done, "{label}");
            let left = if is_done { CREDITS - PRICE } else { CREDITS };
            assert_eq!(credits(&resumed.stack, &resumed.payer).await, left, "{label}");
            resumed.stack.kill().await;
            resumed.died
        })
        .await;
    });
}

#[test]
fn settings_that_are_wrong_stop_the_start_with_every_problem() {
    run(async {
        let service = Service::start().await;
        let tools = json!({"tools": [
            service.tool("web_read", json!({})),
            service.tool("weather", json!({"private": false, "price": "free", "pirce": "0.01"})),
        ]});
        let chain = crate::support::chain().await;
        let options = Options::in_memory(chain).with("OWN_TOOLS", tools.to_string());
        let error = Stack::start(options).await.err().expect("it does not start").to_string();
        for problem in [
            "/tools/0/name is the name of another tool",
            "/tools/1/price must be",
            "/tools/1/pirce",
            "/tools/1/address",
        ] {
            assert!(error.contains(problem), "{problem} in {error}");
        }
    });
}

/// A service that sends more than it was asked for: what comes behind an answer is nobody's.
#[test]
fn what_a_service_sends_behind_an_answer_reaches_no_other_buyer() {
    async fn serve(mut stream: tokio::net::TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        loop {
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await?);
            }
            let text = String::from_utf8_lossy(&head).into_owned();
            let city = text.split(' ').nth(1).and_then(|path| path.rsplit('/').next()).unwrap_or_default();
            let answer = |city: &str| {
                let body = json!({"city": city}).to_string();
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                )
            };
            stream.write_all(answer(city).as_bytes()).await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
            stream.write_all(answer(&format!("{city} again")).as_bytes()).await?;
            head.clear();
        }
    }
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        let stack = selling(&[Service { origin, got: Arc::default() }.tool("weather", json!({}))]).await;
        let (payer, token) = rich(&stack).await;
        for number in 0..8 {
            let city = format!("city-{number}");
            let answer = call(&payer, &token, "weather", &json!({"city": city})).await;
            assert_eq!(answer.json()["data"]["result"]["city"], city.as_str(), "{}", answer.text);
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    });
}

/// An MCP server with sessions, as its protocol describes it.
#[test]
fn a_tool_of_an_mcp_server_is_sold() {
    /// Methods with the session and the id that they had.
    #[derive(Clone, Default)]
    struct Server(Arc<Mutex<Vec<(String, String, String)>>>);
    async fn speak(State(server): State<Server>, headers: HeaderMap, body: axum::Json<Value>) -> Response {
        let method = body["method"].as_str().unwrap_or_default().to_owned();
        let id = &body["id"];
        let session = headers.get("mcp-session-id").and_then(|session| session.to_str().ok()).unwrap_or_default();
        let known = {
            let mut asked = server.0.lock().expect("a lock");
            asked.push((method.clone(), session.to_owned(), id.to_string()));
            asked.iter().filter(|(method, ..)| method == "initialize").count()
        };
        if method == "initialize" {
            let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}});
            let session = [("mcp-session-id", format!("s{known}"))];
            return (session, axum::Json(json!({"jsonrpc": "2.0", "id": id, "result": result}))).into_response();
        }
        if !session.starts_with('s') {
            return http::StatusCode::NOT_FOUND.into_response();
        }
        if method == "notifications/initialized" {
            return http::StatusCode::ACCEPTED.into_response();
        }
        let echoed = &body["params"]["arguments"]["text"];
        let result = |text: &Value| json!({"content": [{"type": "text", "text": text}]});
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result(echoed)});
        // What another call was answered is on the stream, too.
        let other = json!({"jsonrpc": "2.0", "id": "another", "result": result(&json!("another's"))});
        let stream = format!("event: message\ndata: {other}\n\nevent: message\ndata: {message}\n\n");
        ([("content-type", "text/event-stream")], stream).into_response()
    }
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let server = Server::default();
        let router = Router::new().fallback(speak).with_state(server.clone());
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        let tool = json!({
            "name": "echo", "title": "Echo", "summary": "Says what it is told", "price": "0.002", "private": true,
            "kind": "mcp", "address": address, "tool": "echo",
            "input_schema": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
        });
        let stack = selling(&[tool]).await;
        let (payer, token) = rich(&stack).await;
        for word in ["hello", "again"] {
            let answer = call(&payer, &token, "echo", &json!({"text": word})).await;
            assert_eq!(answer.json()["data"]["result"], json!({"text": word}), "{}", answer.text);
        }
        assert_eq!(credits(&stack, &payer).await, CREDITS - 2 * PRICE);
        // Another agent has a session of its own, and no two calls have one id.
        let (other, other_token) = rich(&stack).await;
        let answer = call(&other, &other_token, "echo", &json!({"text": "mine"})).await;
        assert_eq!(answer.json()["data"]["result"], json!({"text": "mine"}), "{}", answer.text);
        let asked = server.0.lock().expect("a lock").clone();
        let calls: Vec<_> = asked.iter().filter(|(method, ..)| method == "tools/call").collect();
        let sessions: Vec<&str> = calls.iter().map(|(_, session, _)| session.as_str()).collect();
        assert_eq!(sessions, ["s1", "s1", "s2"], "{asked:?}");
        let ids: HashSet<&str> = calls.iter().map(|(.., id)| id.as_str()).collect();
        assert_eq!(ids.len(), 3, "{asked:?}");
    });
}

/// A deployment that sells its own service and one tool beside it: what it leaves out is nowhere.
#[test]
fn what_is_not_chosen_is_nowhere() {
    run(async {
        let service = Service::start().await;
        let weather = service.tool("weather", json!({}));
        let stack = stack_with(|options| {
            let options = sold(options, std::slice::from_ref(&weather));
            options.with("TOOLS", "own,vin_decode").with("MARKETPLACE", "false")
        })
        .await;
        let payer = Payer::with(&stack, 0).await;
        let client = &payer.client;
        let kept = ["vin_decode", "weather"];
        let left_out: Vec<_> = catalog::CATALOG.iter().copied().filter(|tool| !kept.contains(&tool.name)).collect();
        for tool in left_out.iter().copied().chain(MARKET.iter().copied()) {
            let path = tool.path().replace("{slug}", "somebody").replace("{service}", "something");
            let answer = client.post(&path, &[], &tool.example()).await;
            assert_eq!(answer.error(), (404, "not_found".to_owned()), "{path}");
        }
        for (path, named) in [
            ("/v1/tools/own/weather", json!({"city": "Lyon"})),
            ("/v1/tools/lookup/vin", json!({"vin": "1HGCM82633A004352"})),
        ] {
            assert_eq!(client.post(path, &[], &named).await.status, 402, "{path}");
        }
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
        let accept = [("accept", "application/json, text/event-stream")];
        let mcp = client.post("/mcp", &accept, &list).await.text;
        assert!(mcp.contains("_weather") && !mcp.contains("web_read") && !mcp.contains("soul"), "{mcp}");
        for method in ["prompts/list", "resources/templates/list"] {
            let list = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
            let mcp = client.post("/mcp", &accept, &list).await.text;
            assert!(mcp.contains("result") && !mcp.contains("soul") && !mcp.contains("research"), "{mcp}");
        }
        for page in ["/llms.txt", "/skill.md"] {
            let text = client.get(page, &[]).await.text;
            assert!(!text.contains("/v1/soul"), "{page}: {text}");
        }
        for page in
            ["/openapi.json", "/pricing", "/llms.txt", "/skill.md", "/.well-known/x402", "/v1/tools/discover?limit=50"]
        {
            let answer = client.get(page, &[]).await;
            assert_eq!(answer.status, 200, "{page}: {}", answer.text);
            let described = serde_json::from_str::<Value>(&answer.text).unwrap_or_default();
            let is_shown = |path: &str| match page {
                // Free routes have some of the paths, and others lie below.
                "/openapi.json" => !described["paths"][path]["post"].is_null(),
                _ => answer.text.match_indices(path).any(|(at, _)| {
                    let next = answer.text[at + path.len()..].chars().next();
                    next.is_none_or(|next| !matches!(next, '/' | '-' | 'a'..='z'))
                }),
            };
            let shown: Vec<&str> = left_out.iter().map(|tool| tool.path()).filter(|path| is_shown(path)).collect();
            assert_eq!(shown, [""; 0], "{page}");
        }
        // Not by the client, which holds every answer against the description of a deployment that sells everything.
        let souls =
            [("souls", "GET", "/v1/soul/search?q=a"), ("souls", "GET", "/v1/soul"), ("seller", "GET", "/v1/soul/me")];
        for (group, method, path) in souls.into_iter().chain([("souls", "POST", "/v1/soul/register")]) {
            let request = http::Request::builder().method(method).uri(path).body(Body::from("{}")).unwrap();
            let answer = stack.groups[group].clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), 404, "{path}");
        }
        let soul = json!({"name": "Counter", "slug": "counter", "soul_md": "# Counter\n\nYou count words."});

        let closed = stack_with(|options| options.with("REGISTRATION", "closed")).await;
        let refused = Payer::with(&closed, 0).await.client.post("/v1/soul/register", &[], &soul).await;
        assert_eq!(refused.error(), (403, "registration_closed".to_owned()), "{}", refused.text);

        let chain = crate::support::chain().await;
        let options = Options::in_memory(chain).with("TOOLS", "web_raed,-emial*");
        let error = Stack::start(options).await.err().expect("it does not start").to_string();
        assert!(error.contains("TOOLS names \"web_raed\"") && error.contains("TOOLS names \"emial*\""), "{error}");
    });
}
