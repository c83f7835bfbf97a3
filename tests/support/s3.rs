//! A bucket that answers as S3 does, and checks signatures (Signature Version 4).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use base::clock::Clock;
use base::digest::sha256;
use base::encoding::{percent_decoded, percent_encoded};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use platform::http::Params;
use ring::hmac;

/// The access key's secret.
pub const SECRET: &str = "test";

#[derive(Clone, Default)]
pub struct Bucket {
    objects: Arc<Mutex<HashMap<String, Bytes>>>,
    may_list: bool,
}

impl Bucket {
    /// A bucket that a role may list or not. If not, S3 does not say that a missing key is missing.
    pub fn new(may_list: bool) -> Bucket {
        Bucket { may_list, ..Bucket::default() }
    }

    /// Serves the bucket, and returns the endpoint.
    pub async fn serve(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let router = Router::new().fallback(answer).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }

    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.objects.lock().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    }
}

async fn answer(State(bucket): State<Bucket>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
    let query: BTreeMap<String, String> = parts
        .uri
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'))
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (percent_decoded(name), percent_decoded(value)))
        .collect();
    if let Err(why) = check(&parts.method, parts.uri.path(), &query, &parts.headers, &body) {
        return error(StatusCode::FORBIDDEN, why);
    }
    let key = parts.uri.path().to_owned();
    let mut objects = bucket.objects.lock().unwrap();
    let found = objects.get(&key).cloned();
    match (parts.method, found) {
        (Method::PUT, Some(_)) if parts.headers.get(header::IF_NONE_MATCH).is_some_and(|value| value == "*") => {
            error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed")
        }
        (Method::PUT, _) => {
            objects.insert(key, body);
            StatusCode::OK.into_response()
        }
        (Method::DELETE, _) => {
            objects.remove(&key);
            StatusCode::NO_CONTENT.into_response()
        }
        (Method::GET, Some(bytes)) => read(&bytes, &parts.headers, &query),
        (Method::GET, None) if bucket.may_list => error(StatusCode::NOT_FOUND, "NoSuchKey"),
        (Method::GET, None) => error(StatusCode::FORBIDDEN, "AccessDenied"),
        _ => error(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
    }
}

fn read(bytes: &Bytes, headers: &HeaderMap, query: &BTreeMap<String, String>) -> Response {
    let mut response = match headers.get(header::RANGE).map(|range| range.to_str().expect("text")) {
        Some(range) => {
            let (first, last) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-')).expect("a range");
            let (first, last): (usize, usize) = (first.parse().expect("a number"), last.parse().expect("a number"));
            if first >= bytes.len() {
                return error(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange");
            }
            let last = last.min(bytes.len() - 1);
            let range = [(header::CONTENT_RANGE, format!("bytes {first}-{last}/{}", bytes.len()))];
            (StatusCode::PARTIAL_CONTENT, range, bytes.slice(first..=last)).into_response()
        }
        None => Response::new(Body::from(bytes.clone())),
    };
    for name in [header::CONTENT_TYPE, header::CONTENT_DISPOSITION] {
        if let Some(value) = query.get(&format!("response-{name}")) {
            response.headers_mut().insert(name, HeaderValue::from_str(value).expect("a header"));
        }
    }
    response
}

fn error(status: StatusCode, code: &str) -> Response {
    (status, format!("<Error><Code>{code}</Code></Error>")).into_response()
}

/// Checks that the request is signed, in its headers or its query, and still valid.
fn check(
    method: &Method,
    path: &str,
    query: &BTreeMap<String, String>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<(), &'static str> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let (credential, signed, signature, date, payload) = match query.get("X-Amz-Signature") {
        Some(signature) => {
            let named = |name: &str| query.get(name).cloned().unwrap_or_default();
            let date = secs(&named("X-Amz-Date")).ok_or("AccessDenied")?;
            let valid: i64 = named("X-Amz-Expires").parse().map_err(|_| "AccessDenied")?;
            if Clock::system().now().secs() >= date + valid {
                return Err("AccessDenied");
            }
            let signed = named("X-Amz-SignedHeaders");
            (named("X-Amz-Credential"), signed, signature.clone(), named("X-Amz-Date"), "UNSIGNED-PAYLOAD".to_owned())
        }
        None => {
            let authorization = header("authorization");
            let part = |name: &str| {
                let rest = authorization.split(name).nth(1).unwrap_or_default();
                rest.split([',', ' ']).next().unwrap_or_default().to_owned()
            };
            let payload = header("x-amz-content-sha256");
            if payload != const_hex::encode(sha256(body)) {
                return Err("XAmzContentSHA256Mismatch");
            }
            (part("Credential="), part("SignedHeaders="), part("Signature="), header("x-amz-date"), payload)
        }
    };
    let canonical_query: Vec<String> = query
        .iter()
        .filter(|(name, _)| *name != "X-Amz-Signature")
        .map(|(name, value)| format!("{}={}", percent_encoded(name), percent_encoded(value)))
        .collect();
    let names = signed.split(';').map(|name| name.parse::<HeaderName>().map_err(|_| "AccessDenied"));
    let mut canonical_headers = String::new();
    for name in names {
        let name = name?;
        canonical_headers.push_str(&format!("{name}:{}\n", header(name.as_str()).trim()));
    }
    let request = format!("{method}\n{path}\n{}\n{canonical_headers}\n{signed}\n{payload}", canonical_query.join("&"));
    let scope = credential.split_once('/').ok_or("AccessDenied")?.1;
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", const_hex::encode(sha256(request.as_bytes())));
    let sign = |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes());
    let key =
        scope.split('/').fold(format!("AWS4{SECRET}").into_bytes(), |key, part| sign(&key, part).as_ref().to_vec());
    if const_hex::encode(sign(&key, &text)) == signature { Ok(()) } else { Err("SignatureDoesNotMatch") }
}

/// `20261122T034500Z` in Unix seconds.
fn secs(text: &str) -> Option<i64> {
    let part = |range| text.get(range);
    let (year, month, day) = (part(0..4)?, part(4..6)?, part(6..8)?);
    let (hour, minute, second) = (part(9..11)?, part(11..13)?, part(13..15)?);
    let query = format!("at={year}-{month}-{day}T{hour}:{minute}:{second}Z");
    Params::of(Some(&query)).time("at").map(|at| at.secs())
}
