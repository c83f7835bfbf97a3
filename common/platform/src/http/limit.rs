//! Rate limit headers of a response, and what the rate limits need to know about the request.
//!
//! [`headers`] wraps every router and keeps both in a task-local while the request runs. So a handler that authenticates
//! its caller is limited, and its response marked, without code of its own. The limits themselves are in `gate::limits`.

use std::cell::Cell;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Method};
use lambda_http::request::RequestContext;
use subtle::ConstantTimeEq;

/// A counted request: what is left of its rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Name of the limit.
    pub policy: &'static str,
    /// Requests, or KiB, in one window.
    pub limit: u64,
    pub window_secs: u64,
    /// Requests left in this window.
    pub remaining: u64,
    /// Seconds until the next window, at least one.
    pub reset_secs: u64,
}

impl Taken {
    /// Adds the rate limit headers: `ratelimit-limit`, `-remaining` and `-reset`, and those of the IETF draft
    /// (`draft-ietf-httpapi-ratelimit-headers`, version 11).
    pub fn mark(&self, mut response: Response) -> Response {
        self.write(response.headers_mut());
        response
    }

    /// The unit that is counted, for messages.
    pub(super) fn unit(&self) -> &'static str {
        match self.policy {
            "public" | "result" | "export" => "KiB of answers of this kind",
            "stored" => "KiB of uploads and of inputs above 8 KiB",
            _ => "requests of this kind",
        }
    }

    pub(super) fn write(&self, headers: &mut HeaderMap) {
        headers.insert("ratelimit-limit", HeaderValue::from(self.limit));
        headers.insert("ratelimit-remaining", HeaderValue::from(self.remaining));
        headers.insert("ratelimit-reset", HeaderValue::from(self.reset_secs));
        let policy = format!("\"{}\";q={};w={}", self.policy, self.limit, self.window_secs);
        let state = format!("\"{}\";r={};t={}", self.policy, self.remaining, self.reset_secs);
        for (name, text) in [("ratelimit-policy", policy), ("ratelimit", state)] {
            if let Ok(value) = HeaderValue::from_str(&text) {
                headers.insert(name, value);
            }
        }
    }
}

/// Whether an answer is for a caller that proved itself or paid. The other limits of that caller count it. A request's
/// extension, so that a router within another one can tell the outer one.
#[derive(Clone, Debug, Default)]
pub struct Owned(Arc<AtomicBool>);

impl Owned {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How long a request may take. The functions are stopped after 29 s and the gateway gives up after 30 s, so four seconds
/// are left to store and to answer.
const REQUEST_TIME: Duration = Duration::from_secs(25);

/// When a request arrived. A request's extension, so that a router within another one does not start anew.
#[derive(Clone, Copy, Debug)]
pub struct Arrived(pub Instant);

struct Here {
    arrived: Instant,
    owned: Owned,
    reads: bool,
    marketplace: bool,
    source: Option<IpAddr>,
    taken: Cell<Option<Taken>>,
}

tokio::task_local! {
    static HERE: Here;
}

/// Wraps a router: keeps the request's facts, and marks the response if the request was counted.
pub async fn headers(mut request: Request, next: impl AsyncFnOnce(Request) -> Response) -> Response {
    let Arrived(arrived) = *request.extensions_mut().get_or_insert_with(|| Arrived(Instant::now()));
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let marketplace = request.uri().path().starts_with("/v1/soul");
    let owned = request.extensions().get::<Owned>().cloned().unwrap_or_default();
    let here = Here { arrived, owned, reads, marketplace, source: source_of(&request), taken: Cell::new(None) };
    let answer = async {
        let response = next(request).await;
        match HERE.try_with(|here| here.taken.get()) {
            // A refusal already names the limit it exceeded.
            Ok(Some(taken)) if !response.headers().contains_key("ratelimit") => taken.mark(response),
            _ => response,
        }
    };
    HERE.scope(here, answer).await
}

/// The secret of our distribution (CDN) in front of the gateway, if there is one.
static EDGE: OnceLock<String> = OnceLock::new();

/// Trusts the viewer's address in requests that carry this secret. Without it, all viewers behind the distribution would
/// share one rate limit, because the gateway sees only the distribution.
pub fn trust_edge(secret: &str) {
    let _ = EDGE.set(secret.to_owned());
}

/// The viewer's address, as our distribution states it. It overwrites both headers on every request, so a client cannot set
/// them.
fn viewer(headers: &HeaderMap, secret: Option<&str>) -> Option<IpAddr> {
    let said = headers.get("x-edge-secret")?;
    let is_ours: bool = said.as_bytes().ct_eq(secret?.as_bytes()).into();
    headers.get("x-edge-viewer").filter(|_| is_ours)?.to_str().ok()?.parse().ok()
}

/// The client's address. Trusted sources are API Gateway, which puts the peer into the event's context, and our own
/// distribution. `X-Forwarded-For` is not trusted: it begins with a value that the caller chose.
fn source_of(request: &Request) -> Option<IpAddr> {
    let Some(RequestContext::ApiGatewayV2(context)) = request.extensions().get() else { return None };
    peer_or_viewer(request.headers(), context.http.source_ip.as_deref())
}

/// The viewer's address from trusted headers, else the peer that the gateway saw.
pub fn peer_or_viewer(headers: &HeaderMap, peer: Option<&str>) -> Option<IpAddr> {
    viewer(headers, EDGE.get().map(String::as_str)).or_else(|| peer?.parse().ok())
}

/// The name under which a source is counted.
pub fn name_of(source: Option<IpAddr>) -> String {
    match source.map(|address| address.to_canonical()) {
        None => "source:unknown".to_owned(),
        Some(IpAddr::V4(address)) => format!("source:{address}"),
        // One subscriber usually has the whole /64.
        Some(IpAddr::V6(address)) => format!("source:{}/64", Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

/// Remembers a count for the response's headers. The last one wins.
pub fn note(taken: Taken) {
    let _ = HERE.try_with(|here| here.taken.set(Some(taken)));
}

/// What is left of the current request's time. `Duration::MAX` outside a request: a worker has the time it needs.
pub fn time_left() -> Duration {
    HERE.try_with(|here| REQUEST_TIME.saturating_sub(here.arrived.elapsed())).unwrap_or(Duration::MAX)
}

/// Remembers that the current request's caller proved itself or paid.
pub fn note_owner() {
    let _ = HERE.try_with(|here| here.owned.set());
}

/// Whether the current request only reads, by its method. `None` outside a request.
pub fn reads() -> Option<bool> {
    HERE.try_with(|here| here.reads).ok()
}

/// Whether the current request is for the marketplace, by its path.
pub fn on_marketplace() -> bool {
    HERE.try_with(|here| here.marketplace).unwrap_or_default()
}

/// The client's address of the current request.
pub fn source() -> Option<IpAddr> {
    HERE.try_with(|here| here.source).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{PlainError, PlainHttp};

    #[tokio::test]
    async fn questions_to_others_end_with_the_requests_time() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let mut request = Request::new(axum::body::Body::empty());
        let arrived = Instant::now().checked_sub(REQUEST_TIME - Duration::from_millis(300)).unwrap();
        request.extensions_mut().insert(Arrived(arrived));
        let asked = Instant::now();
        let answer = headers(request, async |_| {
            let lost = PlainHttp::new(None).post_json(&url, None, &serde_json::json!({})).await;
            assert!(matches!(lost, Err(PlainError::Lost(_))), "{lost:?}");
            assert_eq!(time_left(), Duration::ZERO);
            Response::default()
        });
        answer.await;
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        assert_eq!(time_left(), Duration::MAX);
    }

    #[test]
    fn viewer_address_needs_the_edge_secret() {
        let from = |said: &'static str, secret: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert("x-edge-viewer", HeaderValue::from_static("203.0.113.7"));
            headers.insert("x-edge-secret", HeaderValue::from_static(said));
            viewer(&headers, secret)
        };
        assert_eq!(from("secret", Some("secret")), "203.0.113.7".parse().ok());
        for (said, secret) in [("guess", Some("secret")), ("", Some("secret")), ("secret", None), ("", None)] {
            assert_eq!(from(said, secret), None, "{said:?} {secret:?}");
        }
        assert_eq!(viewer(&HeaderMap::new(), Some("secret")), None);
    }
}
