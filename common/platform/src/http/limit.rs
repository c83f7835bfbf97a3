//! What a request's answer says of its rate limit, and what a limit has to know of the request.
//!
//! What is around every router ([`headers`]) keeps both for as long as the request is worked on, so that a handler
//! which asks who is calling is limited, and its answer marked, without a word of its own. The rules are in
//! [`gate::limits`].

use std::cell::Cell;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::OnceLock;

use axum::extract::Request;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Method};
use lambda_http::request::RequestContext;
use subtle::ConstantTimeEq;

/// A request that was counted: what is left of its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The limit's name.
    pub policy: &'static str,
    /// Requests in a window, or KiB.
    pub limit: u64,
    pub window_secs: u64,
    /// Requests left in this window.
    pub remaining: u64,
    /// Seconds until the next window, at least one.
    pub reset_secs: u64,
}

impl Taken {
    /// The response with the headers of this limit (contract §0): those of the contract, and those of the IETF's draft 11.
    pub fn mark(&self, mut response: Response) -> Response {
        self.write(response.headers_mut());
        response
    }

    /// What is counted.
    pub(super) fn unit(&self) -> &'static str {
        match self.policy {
            "public" | "result" | "export" => "KiB of answers of this kind",
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

struct Here {
    reads: bool,
    marketplace: bool,
    source: Option<IpAddr>,
    taken: Cell<Option<Taken>>,
}

tokio::task_local! {
    static HERE: Here;
}

/// Answers whose request was counted say what is left.
pub async fn headers(request: Request, next: impl AsyncFnOnce(Request) -> Response) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let marketplace = request.uri().path().starts_with("/v1/soul");
    let here = Here { reads, marketplace, source: source_of(&request), taken: Cell::new(None) };
    let answer = async {
        let response = next(request).await;
        match HERE.try_with(|here| here.taken.get()) {
            // A refusal says of itself which limit it came to.
            Ok(Some(taken)) if !response.headers().contains_key("ratelimit") => taken.mark(response),
            _ => response,
        }
    };
    HERE.scope(here, answer).await
}

/// What a distribution in front of the gateway proves itself with, once this process was told of one.
static EDGE: OnceLock<String> = OnceLock::new();

/// From now on a distribution that knows the secret is believed who asked it. (To the gateway it is the peer itself, and
/// everybody behind it would share one limit.)
pub fn trust_edge(secret: &str) {
    let _ = EDGE.set(secret.to_owned());
}

/// Who asked the distribution. It puts both headers in place of whatever its caller wrote there.
fn viewer(headers: &HeaderMap, secret: Option<&str>) -> Option<IpAddr> {
    let said = headers.get("x-edge-secret")?;
    let is_ours: bool = said.as_bytes().ct_eq(secret?.as_bytes()).into();
    headers.get("x-edge-viewer").filter(|_| is_ours)?.to_str().ok()?.parse().ok()
}

/// Where a request came from. Only those who hold the connection are believed: API Gateway, which puts the peer into
/// the event's context, and our own distribution. `X-Forwarded-For` begins with whatever the caller wrote into it.
fn source_of(request: &Request) -> Option<IpAddr> {
    let Some(RequestContext::ApiGatewayV2(context)) = request.extensions().get() else { return None };
    peer_or_viewer(request.headers(), context.http.source_ip.as_deref())
}

/// Where something came from, by its headers and the peer that the gateway saw.
pub fn peer_or_viewer(headers: &HeaderMap, peer: Option<&str>) -> Option<IpAddr> {
    viewer(headers, EDGE.get().map(String::as_str)).or_else(|| peer?.parse().ok())
}

/// What a source is called where it is counted.
pub fn name_of(source: Option<IpAddr>) -> String {
    match source.map(|address| address.to_canonical()) {
        None => "source:unknown".to_owned(),
        Some(IpAddr::V4(address)) => format!("source:{address}"),
        // Whoever has one address of a /64 has all of them.
        Some(IpAddr::V6(address)) => format!("source:{}/64", Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

/// Remembers what was taken, for the answer's headers. The last one counts.
pub fn note(taken: Taken) {
    let _ = HERE.try_with(|here| here.taken.set(Some(taken)));
}

/// Whether the request being worked on only reads, by its method.
pub fn reads() -> Option<bool> {
    HERE.try_with(|here| here.reads).ok()
}

/// Whether the request being worked on is one of the marketplace.
pub fn on_marketplace() -> bool {
    HERE.try_with(|here| here.marketplace).unwrap_or_default()
}

/// Where the request being worked on came from.
pub fn source() -> Option<IpAddr> {
    HERE.try_with(|here| here.source).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_distribution_is_believed() {
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
