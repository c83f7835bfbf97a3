//! The client for addresses the operator configured: the chain's endpoint, a facilitator, AWS.
//!
//! Addresses that came from a caller or from a page never go through here; they go through the guarded fetcher.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::tls;

/// Longest an operator-configured peer may take, connection and whole answer included, if nothing else is said.
const TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest answer read from such a peer.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

type HyperClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// An HTTP/1.1 client that keeps connections and follows no redirects. It is made at its first use, so that a function
/// which answers without it does not pay for it.
#[derive(Clone)]
pub struct PlainHttp {
    client: Arc<OnceLock<HyperClient>>,
    /// PEM certificates to trust besides the web's.
    extra_roots: Option<Arc<[u8]>>,
    timeout: Duration,
}

/// An answer, read whole.
#[derive(Clone, Debug)]
pub struct PlainAnswer {
    pub status: u16,
    /// The whole's size, where the answer is a part of it (`Content-Range`).
    pub content_range_total: Option<u64>,
    /// The peer's `Retry-After`, if it counted seconds.
    pub retry_after: Option<Duration>,
    /// The peer's own name for the exchange (`X-Request-Id`, or `Request-Id`), where it gave one: a stranger's text.
    pub request_id: Option<String>,
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlainError {
    /// No connection was made, so the peer has seen nothing of the request.
    NotSent(String),
    /// The request may have reached the peer.
    Lost(String),
}

impl fmt::Display for PlainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlainError::NotSent(cause) => write!(f, "could not connect: {cause}"),
            PlainError::Lost(cause) => write!(f, "no answer: {cause}"),
        }
    }
}

impl std::error::Error for PlainError {}

impl fmt::Debug for PlainHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlainHttp")
    }
}

impl PlainHttp {
    /// `extra_roots`: PEM certificates to trust besides the web's.
    pub fn new(extra_roots: Option<Vec<u8>>) -> PlainHttp {
        PlainHttp { client: Arc::default(), extra_roots: extra_roots.map(Arc::from), timeout: TIMEOUT }
    }

    /// The same connections, for peers that may take so long for a whole answer.
    pub fn lasting(&self, timeout: Duration) -> PlainHttp {
        PlainHttp { timeout, ..self.clone() }
    }

    fn client(&self) -> Result<&HyperClient, PlainError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let tls = tls::client_config(self.extra_roots.as_deref()).map_err(PlainError::NotSent)?;
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .build(https);
        Ok(self.client.get_or_init(|| client))
    }

    pub async fn send(&self, request: http::Request<Vec<u8>>) -> Result<PlainAnswer, PlainError> {
        let client = self.client()?;
        let exchange = async {
            let answer = client.request(request.map(|body| Full::new(Bytes::from(body)))).await.map_err(|error| {
                let cause = full_cause(&error);
                if error.is_connect() { PlainError::NotSent(cause) } else { PlainError::Lost(cause) }
            })?;
            let status = answer.status().as_u16();
            let range = answer.headers().get(http::header::CONTENT_RANGE).and_then(|range| range.to_str().ok());
            let content_range_total = range.and_then(|range| range.rsplit('/').next()?.parse().ok());
            let retry_after = answer.headers().get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
            let retry_after = retry_after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
            let named = ["x-request-id", "request-id"].iter().find_map(|name| answer.headers().get(*name));
            let request_id = named.and_then(|value| value.to_str().ok()).map(str::to_owned);
            let body = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await.map_err(|error| {
                let too_long = error.downcast_ref::<LengthLimitError>().is_some();
                PlainError::Lost(if too_long {
                    format!("the answer is larger than {MAX_ANSWER_BYTES} bytes")
                } else {
                    error.to_string()
                })
            })?;
            Ok(PlainAnswer { status, content_range_total, retry_after, request_id, body: body.to_bytes().to_vec() })
        };
        tokio::time::timeout(self.timeout, exchange)
            .await
            .unwrap_or_else(|_| Err(PlainError::Lost("timed out".to_owned())))
    }

    /// Posts JSON and reads JSON, whatever the status.
    pub async fn post_json(
        &self,
        url: &str,
        bearer: Option<&str>,
        body: &serde_json::Value,
    ) -> Result<(u16, serde_json::Value), PlainError> {
        let mut request =
            http::Request::post(url).header("content-type", "application/json").header("accept", "application/json");
        if let Some(token) = bearer {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request =
            request.body(body.to_string().into_bytes()).map_err(|error| PlainError::NotSent(error.to_string()))?;
        let answer = self.send(request).await?;
        let json = serde_json::from_slice(&answer.body)
            .map_err(|error| PlainError::Lost(format!("status {}, not JSON: {error}", answer.status)))?;
        Ok((answer.status, json))
    }
}

/// An error and what caused it, in one line. URLs are left out: they may hold keys.
fn full_cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
