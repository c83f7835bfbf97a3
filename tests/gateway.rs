//! The layer between a client and a function: the gateway's form of requests and answers, its limits, and Lambda's.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use base::ids::ReceiptId;
use http::{HeaderMap, StatusCode};
use lambda_http::lambda_runtime::{Context, LambdaEvent};
use ledger::account;
use ledger::receipt::{self, Receipt};
use local::Options;
use local::http_api::{self, MAX_BODY_BYTES, MAX_HEADER_BYTES};
use platform::http::lambda::{self, MAX_PAYLOAD_BYTES};
use serde_json::{Value, json};
use tools::{Output, Runner, Source};
use tools_web::web_read;

use crate::souls_market::{Shop, buy};
use crate::support::{Payer, READ_PATH, VIN, VIN_PATH, run, stack, stack_with};

/// A function that returns the request it got.
fn echo() -> Router {
    let said = async |RawQuery(query): RawQuery, headers: HeaderMap, path: Option<Path<String>>, body: String| {
        let headers = headers.iter().map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap())));
        let headers: serde_json::Map<String, Value> = headers.collect();
        let path = path.map(|Path(path)| path);
        axum::Json(json!({"path": path, "query": query, "headers": headers, "body": body})).into_response()
    };
    Router::new().route("/f/{*path}", any(said))
}

async fn through(function: Router, request: Request) -> (StatusCode, HeaderMap, Vec<u8>) {
    let (parts, body) = http_api::handle(request, |_, _| Some(function)).await.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    (parts.status, parts.headers, body.to_vec())
}

fn ask(method: &str, path: &str) -> http::request::Builder {
    http::Request::builder().method(method).uri(path)
}

/// No API has such a host name, and the host becomes part of the function's URL.
#[test]
fn an_invalid_host_is_a_bad_request() {
    run(async {
        for host in ["\"", "<", "a b", "x:99999", "x:abc", "[::1", "{}", "|", "%00"] {
            let request = ask("GET", "/f/a").header("Host", host).body(Body::empty()).unwrap();
            assert_eq!(through(echo(), request).await.0, StatusCode::BAD_REQUEST, "{host}");
        }
        for host in ["x.example:8402", "127.0.0.1:8402", "[::1]:8402"] {
            let request = ask("GET", "/f/a").header("Host", host).body(Body::empty()).unwrap();
            assert_eq!(through(echo(), request).await.0, StatusCode::OK, "{host}");
        }
    });
}

#[test]
fn a_request_reaches_its_function_as_it_was_sent() {
    run(async {
        let request = ask("POST", "/f/100%25/a%20b/%23%40/t%C3%A4g%5Clich?q=a%20b&r=%23&s={}")
            .header("X-Some-Thing", "one")
            .header("X-Some-Thing", "two")
            .header("Cookie", "a=1; b=2")
            .header("X-Forwarded-For", "198.51.100.1")
            .header("X-Forwarded-Proto", "gopher:")
            .header("Content-Type", "application/x-anything");
        let (status, _, body) = through(echo(), request.body(Body::from("bytes")).unwrap()).await;
        let seen: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, &seen["path"]), (StatusCode::OK, &json!("100%/a b/#@/täg\\lich")), "{seen}");
        assert_eq!((&seen["query"], &seen["body"]), (&json!("q=a%20b&r=%23&s={}"), &json!("bytes")));
        let header = |name: &str| seen["headers"][name].as_str().unwrap_or_default().to_owned();
        assert_eq!(header("x-some-thing"), "one,two", "one line for each name");
        assert_eq!(
            (header("cookie"), header("x-forwarded-for")),
            ("a=1; b=2".to_owned(), "198.51.100.1, 127.0.0.1".to_owned())
        );
        // Escaped characters do not end the path, except a question mark, as on AWS.
        for (sent, seen) in [("/f/a%3Fb", "a"), ("/f/%2541", "%41"), ("/f/x%20", "x "), ("/f/%2e%2E%2e", "...")] {
            let (_, _, body) = through(echo(), ask("GET", sent).body(Body::empty()).unwrap()).await;
            assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["path"], seen, "{sent}");
        }
    });
}

#[test]
fn an_answer_reaches_its_client_unchanged() {
    run(async {
        let latin = b"t\xe4glich \xff\xfe".to_vec();
        let marked = b"\xef\xbb\xbfwith a byte order mark".to_vec();
        for (kind, bytes) in [
            ("text/csv; charset=iso-8859-1", latin.clone()),
            ("text/plain", marked.clone()),
            ("application/json", marked),
            ("application/octet-stream", "täglich".as_bytes().to_vec()),
            ("image/png", latin),
        ] {
            let sent = bytes.clone();
            let answer = async move || ([("content-type", kind), ("set-cookie", "a=1"), ("vary", "x")], sent);
            let function = Router::new().route(
                "/f",
                get(async move || {
                    let mut response = answer().await.into_response();
                    response.headers_mut().append("vary", "y".parse().unwrap());
                    response.headers_mut().append("set-cookie", "b=2".parse().unwrap());
                    response
                }),
            );
            let (status, headers, body) = through(function, ask("GET", "/f").body(Body::empty()).unwrap()).await;
            assert_eq!((status, body), (StatusCode::OK, bytes), "{kind}");
            assert_eq!(headers.get("content-type").unwrap(), kind);
            assert_eq!(headers.get("vary").unwrap(), "x, y", "one line for each name");
            let cookies: Vec<_> = headers.get_all("set-cookie").iter().collect();
            assert_eq!(cookies, ["a=1", "b=2"]);
        }
    });
}

#[test]
fn the_gateway_has_the_limits_of_aws() {
    run(async {
        let function = || {
            Router::new().route(
                "/f",
                any(async |body: Body| {
                    let read = axum::body::to_bytes(body, usize::MAX).await.unwrap();
                    read.len().to_string()
                }),
            )
        };
        for (kind, bytes, status) in [
            ("application/wasm", MAX_BODY_BYTES + 1, 413),
            // Base64 makes four bytes of three.
            ("application/wasm", 4 * 1024 * 1024, 200),
            ("application/wasm", MAX_PAYLOAD_BYTES * 3 / 4, 413),
            ("text/plain", MAX_PAYLOAD_BYTES - 16 * 1024, 200),
            ("text/plain", MAX_PAYLOAD_BYTES, 413),
        ] {
            let request = ask("PUT", "/f").header("content-type", kind).body(Body::from(vec![b'x'; bytes])).unwrap();
            assert_eq!(through(function(), request).await.0, status, "{bytes} of {kind}");
        }
        for (bytes, status) in [(MAX_HEADER_BYTES - 200, 200), (MAX_HEADER_BYTES, 431)] {
            let request = ask("GET", "/f").header("x-long", "x".repeat(bytes)).body(Body::empty()).unwrap();
            assert_eq!(through(function(), request).await.0, status, "{bytes} of headers");
        }
        assert_eq!(
            through(function(), ask("GET", "*").body(Body::empty()).unwrap()).await.0,
            400,
            "a request for no path"
        );
        let panics = Router::new().route("/f", get(async || -> Response { panic!("on purpose") }));
        assert_eq!(through(panics, ask("GET", "/f").body(Body::empty()).unwrap()).await.0, 500);
    });
    // With a clock that skips all waiting time.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    for (seconds, status) in [(28, 200), (30, 500)] {
        let slow = Router::new().route("/f", get(async move || tokio::time::sleep(Duration::from_secs(seconds)).await));
        let answer = runtime.block_on(through(slow, ask("GET", "/f").body(Body::empty()).unwrap()));
        assert_eq!(answer.0, status, "{seconds} s");
    }
}

/// An answer that Lambda would refuse to return becomes an error answer of ours.
#[test]
fn an_answer_too_large_for_lambda_becomes_an_error() {
    run(async {
        for (text, bytes, status) in [
            ("x", MAX_PAYLOAD_BYTES - 1024, 200),
            ("x", MAX_PAYLOAD_BYTES, 503),
            // Base64 adds a third; JSON escaping would need two or six times the size.
            ("\"", 4 * 1024 * 1024, 200),
            ("\u{1}", 4 * 1024 * 1024, 200),
            ("\u{1}", 5 * 1024 * 1024, 503),
        ] {
            let body = text.repeat(bytes / text.len());
            let function = Router::new().route("/f", get(async move || body));
            let (answered, _, body) = through(function, ask("GET", "/f").body(Body::empty()).unwrap()).await;
            assert_eq!(answered, status, "{bytes} of {text:?}");
            assert!(status != 200 || body.len() == bytes, "{bytes} of {text:?}");
        }
    });
}

/// The largest accepted result fits into every answer that returns it, by HTTP and over MCP. A larger one is refused.
#[test]
fn results_are_bounded_by_their_encoded_size() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "large-results").await;
        let payer = Payer::with(&stack, 5_000_000).await;
        let bearer = payer.token(&stack).await;
        let kib = 1024;
        for (text, bytes, status) in
            [("\"", 1024 * kib, 200), ("\u{1}", 600 * kib, 413), ("\u{1}", 500 * kib, 200), ("é", 1024 * kib, 200)]
        {
            let job = buy(&shop, &payer, "x").await;
            assert_eq!(shop.claim(&job).await.status, 200);
            let result = text.repeat(bytes / text.len());
            // As sent by clients that escape everything except ASCII.
            let body = json!({"result": result}).to_string().replace('é', "\\u00e9");
            let done = shop.raw("POST", &format!("/jobs/{job}/complete"), "application/json", body.into()).await;
            assert_eq!(done.status, status, "{bytes} of {text:?}: {:.300}", done.text);
            if status != 200 {
                continue;
            }
            let address = payer.address().to_string();
            let full = payer.client.get(&format!("/v1/soul/jobs/{job}?full=true"), &[("x-agent-id", &address)]).await;
            assert_eq!(full.json()["job"]["result"], json!(result), "{text:?}");
            let id = full.json()["job"]["job_id"].as_str().unwrap().to_owned();
            let polled = payer.client.get(&format!("/v1/requests/{id}"), &[("authorization", &bearer)]).await;
            assert_eq!(polled.json()["result"]["result"], json!(result), "{text:?}");
            assert_eq!(shop.get(&format!("/jobs/{job}?full=true")).await.json()["job"]["result"], json!(result));
            let call = |id: u32| {
                json!({
                    "jsonrpc": "2.0", "id": id, "method": "tools/call",
                    "params": {"name": "agora_get_request", "arguments": {"request_id": polled.json()["request_id"]}},
                })
            };
            let headers = [
                ("authorization", bearer.as_str()),
                ("mcp-protocol-version", "2025-03-26"),
                ("accept", "application/json"),
            ];
            let read = payer.client.post("/mcp", &headers, &call(1)).await;
            let read = read.json()["result"]["structuredContent"].clone();
            assert_eq!(read["result"]["result"], json!(result), "{text:?}");
            let batch: Vec<Value> = (0..10).map(call).collect();
            let answers = payer.client.post("/mcp", &headers, &json!(batch)).await.json();
            let answers = answers.as_array().unwrap();
            let (whole, rest): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer["error"].is_null());
            assert!(answers.len() == 10 && !whole.is_empty() && !rest.is_empty(), "{} whole", whole.len());
            assert!(rest.iter().all(|answer| answer["id"].is_u64() && answer["error"]["code"] == -32603));
        }
    });
}

static HUGE: [&Runner; 1] = [&Runner {
    spec: &web_read::SPEC,
    run: |_, _| Box::pin(async { Ok(Output::new(json!("\u{1}".repeat(1024 * 1024)), Source::embedded("test"))) }),
}];

#[test]
fn a_result_too_large_to_return_is_paid_back() {
    run(async {
        let stack = stack_with(|options| Options { runners: Some(&HUGE), ..options }).await;
        let payer = Payer::new(&stack).await;
        let bought = payer.buy(READ_PATH, &json!({"url": "http://example.com/"})).await;
        let failed = payer.finished(bought.json()["request_id"].as_str().unwrap()).await;
        assert_eq!(
            (&failed["status"], &failed["error_code"]),
            (&json!("failed"), &json!("internal_error")),
            "{failed}"
        );
        let credits = account::load(&stack.app.db, payer.agent()).await.unwrap().credits;
        assert_eq!(credits.micro(), 2_000);
    });
}

/// The longest possible pages, of characters that need the most bytes in JSON, and in JSON inside JSON.
#[test]
fn pages_are_bounded_by_their_encoded_size() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let (db, agent) = (&stack.app.db, payer.agent());
        assert_eq!(payer.buy(VIN_PATH, &json!({"vin": VIN})).await.status, 200);
        let like = receipt::all(db, agent).await.unwrap().remove(0);
        let memo = json!({"memo": "\"".repeat(8_000)});
        for number in 1..=400u64 {
            let created_at = like.created_at.plus(Duration::from_secs(number));
            let receipt_id = ReceiptId::of(like.job_id, created_at);
            let metadata = receipt::metadata(memo.as_object().unwrap());
            let one = Receipt { receipt_id, created_at, metadata, ..like.clone() };
            db.write(receipt::create(db, &one).unwrap()).await.unwrap();
        }
        for path in ["/v1/audit/receipts?limit=500", "/v1/audit/export?format=csv", "/v1/audit/export?format=jsonl"] {
            let page = payer.get(path).await;
            assert_eq!(page.status, 200, "{path}: {:.300}", page.text);
            assert!(page.text.len() > 2 * 1024 * 1024, "{path} has {} bytes", page.text.len());
        }
        let page = payer.get("/v1/analytics/receipts?limit=100").await;
        assert_eq!((page.status, page.json()["has_more"] == true), (200, true));
        assert!(page.text.len() <= 256 * 1024, "{} bytes", page.text.len());

        let shop = Shop::open(&stack, "large-services").await;
        // A schema and test cases that consist almost only of quotes.
        let schema = json!({"type": "object", "description": "\"".repeat(7_900)});
        let case = json!({"name": "n", "input": {"a": "\"".repeat(1_300)}, "checks": [{"path": "/x", "exists": true}]});
        for number in 1..50 {
            let service = json!({
                "name": "Large", "slug": format!("large-{number}"), "price_usd": 1, "executor": "worker",
                "input_schema": schema, "output_schema": schema, "test_cases": vec![&case; 10],
            });
            let made = shop.send("POST", "/services", &service).await;
            assert_eq!(made.status, 201, "{}", made.text);
        }
        let listed = shop.get("/services").await;
        assert_eq!(listed.json()["services"].as_array().map(Vec::len), Some(50));
        assert!(listed.text.len() > 2 * 1024 * 1024, "{} bytes", listed.text.len());
        assert_eq!(payer.client.get("/v1/soul/large-services", &[]).await.status, 200);
    });
}

/// A body arrives unchanged or is refused: the gateway reads bodies with a text content type as UTF-8.
#[test]
fn a_text_body_that_is_not_utf8_is_refused() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "latin").await;
        let payer = Payer::new(&stack).await;
        let job = buy(&shop, &payer, "x").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        let path = format!("/jobs/{job}/files/latin.csv");
        let refused = shop.raw("PUT", &path, "text/csv; charset=iso-8859-1", b"t\xe4glich".to_vec()).await;
        assert_eq!(
            (refused.status, &refused.json()["details"][0]["path"]),
            (400, &json!("Content-Type")),
            "{}",
            refused.text
        );
        assert_eq!(shop.raw("PUT", &path, "application/octet-stream", b"t\xe4glich".to_vec()).await.status, 200);
        let path = format!("/jobs/{job}/complete");
        let refused = shop.raw("POST", &path, "application/json", b"{\"result\": \"t\xe4glich\"}".to_vec()).await;
        assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "what was not sent is not delivered");
        let sent = "{\"result\": \"täglich\"}";
        assert_eq!(shop.raw("POST", &path, "application/json", sent.as_bytes().to_vec()).await.status, 200);
    });
}

/// The gateway may pass a `%` on as `%25` or unchanged. In both cases the function reads the path that was sent.
#[test]
fn percent_signs_in_paths_are_read_in_both_encodings() {
    run(async {
        for (sent, kept, decoded) in
            [("100%", "/f/100%25", "/f/100%"), ("%41", "/f/%2541", "/f/%41"), ("a%2f", "/f/a%252f", "/f/a%2f")]
        {
            for path in [kept, decoded] {
                let event = json!({
                    "version": "2.0", "rawPath": path, "rawQueryString": "a=<b>", "headers": {"host": "x.example"},
                    "requestContext": {"http": {"method": "GET", "path": path}, "stage": "$default"},
                });
                let event = LambdaEvent::new(serde_json::from_str(&event.to_string()).unwrap(), Context::default());
                let answer = json!(lambda::answer(echo(), event).await);
                let seen: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
                assert_eq!((&seen["path"], &seen["query"]), (&json!(sent), &json!("a=%3Cb%3E")), "{path}");
            }
        }
    });
}
