//! The HTTP client for addresses the operator configured: the chain's RPC endpoint, a facilitator, AWS, providers.
//!
//! Never use it for a URL from a caller or a web page; use the guarded fetcher.

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
use crate::http::limit;

/// Default timeout of a request, connection and whole response included.
const TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// An unused connection is closed after this time.
const IDLE: Duration = Duration::from_secs(30);
/// For AWS: a shorter connect timeout, because it is near, and a longer idle time, because it is used all the time.
const AWS_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const AWS_IDLE: Duration = Duration::from_secs(90);
/// Largest response.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;

type HyperClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// An HTTP/1.1 client that keeps connections open and follows no redirects. It is created at its first use, so that
/// functions which do not need it do not pay for it.
#[derive(Clone)]
pub struct PlainHttp {
    client: Arc<OnceLock<HyperClient>>,
    trust: Trust,
    timeout: Duration,
    connect_timeout: Duration,
    idle: Duration,
}

/// Which root certificates are trusted.
#[derive(Clone)]
enum Trust {
    /// The web's roots, and optionally these (PEM).
    Web(Option<Arc<[u8]>>),
    /// Only these (PEM).
    Only(Arc<[u8]>),
}

/// A complete response.
#[derive(Clone, Debug)]
pub struct PlainAnswer {
    pub status: u16,
    /// The total size from `Content-Range`, for a partial response.
    pub content_range_total: Option<u64>,
    /// `Retry-After`, if it was in seconds.
    pub retry_after: Option<Duration>,
    /// The peer's id of the request (`X-Request-Id` or `Request-Id`), if it sent one. Untrusted text.
    pub request_id: Option<String>,
    /// The name of an AWS service's error (`X-Amzn-ErrorType`), without what may follow it behind a colon. Untrusted text.
    pub error_type: Option<String>,
    /// Where a redirect leads (`Location`). Untrusted text.
    pub location: Option<String>,
    pub body: Vec<u8>,
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlainError {
    /// No connection was made: the peer has not seen the request.
    NotSent(String),
    /// The request may have reached the peer, and may have been processed.
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
    /// `extra_roots`: PEM certificates to trust in addition to the web's.
    pub fn new(extra_roots: Option<Vec<u8>>) -> PlainHttp {
        PlainHttp {
            client: Arc::default(),
            trust: Trust::Web(extra_roots.map(Arc::from)),
            timeout: TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
            idle: IDLE,
        }
    }

    /// A client for AWS that trusts only these roots (PEM).
    pub fn of_aws(roots: Vec<u8>) -> PlainHttp {
        PlainHttp {
            trust: Trust::Only(roots.into()),
            connect_timeout: AWS_CONNECT_TIMEOUT,
            idle: AWS_IDLE,
            ..PlainHttp::new(None)
        }
    }

    /// The same connections with another timeout for a whole response.
    pub fn lasting(&self, timeout: Duration) -> PlainHttp {
        PlainHttp { timeout, ..self.clone() }
    }

    fn client(&self) -> Result<&HyperClient, PlainError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let tls = match &self.trust {
            Trust::Web(extra) => tls::client_config(extra.as_deref()),
            Trust::Only(roots) => tls::client_config_of(roots),
        };
        let tls = tls.map_err(PlainError::NotSent)?;
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(self.connect_timeout));
        let https = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(self.idle)
            .build(https);
        Ok(self.client.get_or_init(|| client))
    }

    /// Sends a request and returns the response with the few headers that are used.
    pub async fn send(&self, request: http::Request<Vec<u8>>) -> Result<PlainAnswer, PlainError> {
        let answer = self.exchange(request).await?;
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        Ok(PlainAnswer {
            status: answer.status().as_u16(),
            content_range_total: header("content-range").and_then(|range| range.rsplit('/').next()?.parse().ok()),
            retry_after: header("retry-after").and_then(|text| text.trim().parse().ok()).map(Duration::from_secs),
            request_id: header("x-request-id").or_else(|| header("request-id")).map(str::to_owned),
            error_type: header("x-amzn-errortype")
                .and_then(|text| text.split(':').next())
                .map(|name| name.trim().to_owned()),
            location: header("location").map(str::to_owned),
            body: answer.into_body().to_vec(),
        })
    }

    /// Sends a request and returns the response, its body read completely.
    pub async fn exchange(&self, request: http::Request<Vec<u8>>) -> Result<http::Response<Bytes>, PlainError> {
        let client = self.client()?;
        let exchange = async {
            let answer = client.request(request.map(|body| Full::new(Bytes::from(body)))).await.map_err(|error| {
                let cause = full_cause(&error);
                if error.is_connect() { PlainError::NotSent(cause) } else { PlainError::Lost(cause) }
            })?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await.map_err(|error| {
                let too_long = error.downcast_ref::<LengthLimitError>().is_some();
                PlainError::Lost(if too_long {
                    format!("the answer is larger than {MAX_ANSWER_BYTES} bytes")
                } else {
                    error.to_string()
                })
            })?;
            Ok(http::Response::from_parts(head, body.to_bytes()))
        };
        // AWS is asked to the end: what was done has to be stored.
        let timeout = match self.trust {
            Trust::Web(_) => self.timeout.min(limit::time_left()),
            Trust::Only(_) => self.timeout,
        };
        tokio::time::timeout(timeout, exchange).await.unwrap_or_else(|_| Err(PlainError::Lost("timed out".to_owned())))
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

/// An error and its causes in one line. URLs are left out, because they may contain keys.
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
