//! A small HTTP client that keeps status, headers and body apart.

use base::encoding::base64_any;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

#[derive(Clone)]
pub struct Client {
    base_url: String,
    http: hyper_util::client::legacy::Client<HttpConnector, Full<Bytes>>,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub text: String,
    /// The same as it came.
    pub bytes: Bytes,
}

impl Client {
    pub fn new(base_url: &str) -> Client {
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(HttpConnector::new());
        Client { base_url: base_url.to_owned(), http }
    }

    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send("GET", path, headers, "").await.expect("an answer")
    }

    /// Posts JSON.
    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.try_post(path, headers, body).await.expect("an answer")
    }

    /// Posts JSON; `None` if the connection breaks.
    pub async fn try_post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Option<Answer> {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        self.send("POST", path, &all, body.to_string()).await
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Option<Answer> {
        let mut request = http::Request::builder().method(method).uri(format!("{}{path}", self.base_url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = self.http.request(request.body(Full::new(body.into())).expect("a request")).await.ok()?;
        let (parts, body) = answer.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        let answer = Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            text: String::from_utf8_lossy(&body).into_owned(),
            bytes: body,
        };
        // In every test, each answer has to match the API description.
        if let Err(wrong) = super::described::judge(method, path, &answer) {
            panic!("{method} {path} is not as described: {wrong}\n{} {}", answer.status, answer.text);
        }
        Some(answer)
    }
}

impl Answer {
    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON ({}): {}", self.status, self.text))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// A header with base64 of JSON.
    #[track_caller]
    pub fn base64_header(&self, name: &str) -> Value {
        let header = self.header(name).unwrap_or_else(|| panic!("no {name} in {:?}", self.headers));
        serde_json::from_slice(&base64_any(header).expect("base64")).expect("JSON")
    }

    /// Asserts that the answer tells the payment's state as pending, and has none of the settlement headers: x402 clients
    /// take those of an unsettled payment for a failure.
    #[track_caller]
    pub fn assert_unsettled(&self) {
        let body = self.json();
        let said = body["settlement_status"].as_str().or(body["data"]["settlement_status"].as_str());
        assert_eq!((self.header("x-settlement-status"), said), (Some("pending"), Some("pending")), "{}", self.text);
        assert_eq!((self.header("payment-response"), self.header("x-payment-response")), (None, None));
    }

    /// Status and error code, for short assertions.
    #[track_caller]
    pub fn error(&self) -> (u16, String) {
        let code = self.json()["error"].as_str().unwrap_or_default().to_owned();
        (self.status, code)
    }
}

/// Headers as a [`Client`] takes them.
pub fn borrowed<'a>(headers: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
}
