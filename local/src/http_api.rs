//! API Gateway's HTTP API, between a client and a function: turns a request into an event of payload format 2.0 and the
//! function's JSON into a response, within the limits of the gateway and of Lambda.
//!
//! The format: <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html>.
//! The gateway's limits: <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html>. Behaviour
//! that these pages leave open follows observations by others; the source is beside each. Members that no function reads
//! are left out: `pathParameters`, `queryStringParameters`, `stageVariables`, `authentication`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use api::routes;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use base::clock::Clock;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::BodyExt;
use lambda_http::lambda_runtime::{Context, LambdaEvent};
use lambda_http::request::LambdaRequest;
use platform::http::lambda::{self, MAX_PAYLOAD_BYTES};
use platform::http::log;
use serde_json::{Map, Value, json};

/// Largest request body of the gateway.
pub const MAX_BODY_BYTES: usize = 10 * 1024 * 1024;
/// Limit of the request line and all header values together.
pub const MAX_HEADER_BYTES: usize = 10_240;
/// Timeout of a function (template.yaml, `Globals`). The gateway would wait a second longer.
pub const TIMEOUT: Duration = Duration::from_secs(29);
/// The API's own name; a local client's `Host` is always different.
const DOMAIN: &str = "local.execute-api.invalid";
/// Headers of the connection, which are not taken from functions.
const CONNECTION_HEADERS: [HeaderName; 5] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];

/// Passes a request to the function that `find` returns for its method and path, and returns the answer.
pub async fn handle(request: Request, find: impl FnOnce(&str, &str) -> Option<Router>) -> Response {
    let (parts, body) = request.into_parts();
    let line = parts.method.as_str().len() + parts.uri.to_string().len() + " / HTTP/1.1".len();
    if line + parts.headers.values().map(HeaderValue::len).sum::<usize>() > MAX_HEADER_BYTES {
        return said(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "Request Header Fields Too Large");
    }
    // No API can have such a host name, and it would become part of the function's URL.
    if parts.headers.get(header::HOST).is_some_and(|host| !is_host(host)) {
        return said(StatusCode::BAD_REQUEST, "Bad Request");
    }
    let Some(body) = whole(body).await else {
        // Observed for both limits that answer 413: <https://github.com/koki-develop/lgtm-generator/issues/10>.
        return said(StatusCode::PAYLOAD_TOO_LARGE, "HTTP content length exceeded 10485760 bytes.");
    };
    let path = decoded_path(parts.uri.path());
    // Such as `OPTIONS *`, a request to the server as a whole.
    if !path.starts_with('/') {
        return said(StatusCode::BAD_REQUEST, "Bad Request");
    }
    let Some(function) = find(parts.method.as_str(), &path) else {
        return said(StatusCode::NOT_FOUND, "Not Found");
    };
    let event = event(&parts, path, &body).to_string();
    if event.len() > MAX_PAYLOAD_BYTES {
        return said(StatusCode::PAYLOAD_TOO_LARGE, "Request Too Long");
    }
    // In a task of its own, so that the function finishes even if the client hangs up.
    match tokio::spawn(invoke(function, event)).await {
        Ok(Some(answer)) => response(&answer),
        // A function that fails, times out or returns too much looks the same to an HTTP API
        // (<https://github.com/denoland/deno_registry2/issues/87>). Only a function that takes longer than the gateway's 30
        // s would be 503 (<https://github.com/cortexlabs/cortex/issues/1225>), and Lambda stops ours earlier.
        Ok(None) => said(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error"),
        Err(panicked) => {
            log::failure("a function panicked", &panicked);
            said(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
        }
    }
}

fn is_host(host: &HeaderValue) -> bool {
    let url = host.to_str().ok().and_then(|host| url::Url::parse(&format!("https://{host}/")).ok());
    url.is_some_and(|url| url.as_str().parse::<http::Uri>().is_ok())
}

/// Invokes a function as Lambda does; `None` if it times out or returns too much.
async fn invoke(function: Router, event: String) -> Option<Value> {
    let event: LambdaRequest =
        serde_json::from_str(&event).map_err(|error| log::failure("an event cannot be read", &error)).ok()?;
    let answer = tokio::time::timeout(TIMEOUT, lambda::answer(function, LambdaEvent::new(event, Context::default())));
    let Ok(answer) = answer.await else {
        log::failure("a function was stopped", &"it took longer than 29 s");
        return None;
    };
    let answer = serde_json::to_string(&answer).ok()?;
    // An answer may have a hundred bytes more than an event: "Exceeded maximum allowed payload size (6291556 bytes)".
    if answer.len() > MAX_PAYLOAD_BYTES + 100 {
        log::failure("a function returned too much", &answer.len());
        return None;
    }
    serde_json::from_str(&answer).ok()
}

/// The body, or `None` if it is too large. It is read to the end in any case: a client that is still sending would not see
/// the answer.
async fn whole(mut body: Body) -> Option<Vec<u8>> {
    let (mut kept, mut seen) = (Vec::new(), 0);
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        seen += data.len();
        if seen <= MAX_BODY_BYTES {
            kept.extend_from_slice(&data);
        }
    }
    (seen <= MAX_BODY_BYTES).then_some(kept)
}

/// `rawPath`: all escapes are decoded except `%25`, and everything after an escaped `?` is cut
/// (<https://github.com/middleapi/standard-server/pull/93>; `platform::http::lambda` explains more).
fn decoded_path(path: &str) -> String {
    let kept = path.replace("%25", "%2525");
    let decoded = base::encoding::percent_decoded(&kept);
    decoded.split('?').next().unwrap_or_default().to_owned()
}

/// Whether a body is passed as text: the list was observed on AWS (<https://github.com/ministackorg/ministack/pull/766>).
/// Everything else is base64, also without a content type.
fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind.starts_with("text/") || ["application/json", "application/xml", "application/javascript"].contains(&&*kind)
}

fn event(parts: &http::request::Parts, path: String, body: &[u8]) -> Value {
    let source = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
    let source = source.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)).to_string();
    let mut headers = Map::new();
    // The gateway passes on the length, and no other header of the connection.
    let is_dropped = |name: &HeaderName| {
        *name == header::COOKIE || *name != header::CONTENT_LENGTH && CONNECTION_HEADERS.contains(name)
    };
    for name in parts.headers.keys().filter(|name| !is_dropped(name)) {
        headers.insert(name.to_string(), json!(lines(&parts.headers, name).join(",")));
    }
    let forwarded = lines(&parts.headers, &HeaderName::from_static("x-forwarded-for")).join(",");
    let forwarded = if forwarded.is_empty() { source.clone() } else { format!("{forwarded}, {source}") };
    for (name, value) in
        [("x-forwarded-for", forwarded.as_str()), ("x-forwarded-port", "443"), ("x-forwarded-proto", "https")]
    {
        headers.insert(name.to_owned(), json!(value));
    }
    let method = parts.method.as_str();
    let route = routes::find(method, &path).map_or("$default".to_owned(), |route| format!("{method} {}", route.path));
    let now = Clock::system().now();
    let mut event = json!({
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "rawQueryString": parts.uri.query().unwrap_or_default(),
        "headers": headers,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "local",
            "domainName": DOMAIN,
            "domainPrefix": "local",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": source,
                "userAgent": headers.get("user-agent").cloned().unwrap_or_default(),
            },
            "requestId": STANDARD.encode(base::digest::random::<11>()),
            "routeKey": route,
            "stage": "$default",
            "time": now.to_string(),
            "timeEpoch": now.millis(),
        },
        "isBase64Encoded": false,
    });
    let cookies = lines(&parts.headers, &header::COOKIE);
    if !cookies.is_empty() {
        event["cookies"] = json!(cookies.iter().flat_map(|line| line.split("; ")).collect::<Vec<_>>());
    }
    match body {
        [] => {}
        body if is_text(&parts.headers) => event["body"] = json!(String::from_utf8_lossy(body)),
        body => {
            event["body"] = json!(STANDARD.encode(body));
            event["isBase64Encoded"] = json!(true);
        }
    }
    event
}

fn lines(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    headers.get_all(name).iter().map(|line| String::from_utf8_lossy(line.as_bytes()).into_owned()).collect()
}

fn response(answer: &Value) -> Response {
    let text = answer["body"].as_str().unwrap_or_default();
    let body = match answer["isBase64Encoded"].as_bool() {
        Some(true) => STANDARD.decode(text).unwrap_or_default(),
        _ => text.as_bytes().to_vec(),
    };
    let mut response = Response::new(Body::from(body));
    let status = answer["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok());
    *response.status_mut() =
        status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = answer["headers"].as_object().into_iter().flatten();
    let cookies = answer["cookies"].as_array().into_iter().flatten().map(|cookie| (header::SET_COOKIE, cookie));
    let headers = headers.filter_map(|(name, value)| Some((name.parse::<HeaderName>().ok()?, value)));
    for (name, value) in headers.filter(|(name, _)| !CONNECTION_HEADERS.contains(name)).chain(cookies) {
        if let Some(Ok(value)) = value.as_str().map(HeaderValue::from_str) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// An answer of the gateway itself.
fn said(status: StatusCode, message: &str) -> Response {
    platform::http::json(status, &json!({"message": message}))
}
