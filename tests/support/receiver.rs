//! A webhook receiver: a real server that records what it gets and answers as the test wants.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use serde_json::Value;

#[derive(Clone, Debug)]
pub struct Received {
    pub headers: HeaderMap,
    pub body: String,
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_else(|| panic!("no {name}: {self:?}"))
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

type Answer = Box<dyn Fn() -> Response + Send>;

#[derive(Clone)]
pub struct Receiver {
    pub url: String,
    /// In the form of `LOCAL_FETCH_ALLOW`.
    pub host: (String, u16),
    received: Arc<Mutex<Vec<Received>>>,
    answer: Arc<Mutex<Answer>>,
}

impl Receiver {
    /// A receiver that answers 204.
    pub async fn start() -> Receiver {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let receiver = Receiver {
            url: format!("http://127.0.0.1:{port}/hook?a=b"),
            host: ("127.0.0.1".to_owned(), port),
            received: Arc::default(),
            answer: Arc::new(Mutex::new(Box::new(|| status(204)))),
        };
        let router = Router::new().fallback(take).with_state(receiver.clone());
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        receiver
    }

    pub fn allowed(&self) -> String {
        format!("{}:{}", self.host.0, self.host.1)
    }

    pub fn answer(&self, answer: impl Fn() -> Response + Send + 'static) {
        *self.answer.lock().expect("a lock") = Box::new(answer);
    }

    /// The requests it has received so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().expect("a lock").clone()
    }

    pub fn count(&self) -> usize {
        self.received.lock().expect("a lock").len()
    }
}

pub fn status(status: u16) -> Response {
    Response::builder().status(status).body(Body::empty()).expect("a response")
}

async fn take(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> Response {
    let body = String::from_utf8_lossy(&body).into_owned();
    receiver.received.lock().expect("a lock").push(Received { headers, body });
    (receiver.answer.lock().expect("a lock"))()
}
