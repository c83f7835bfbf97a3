//! Sends to a connection with API Gateway's management API (`POST @connections/<id>`), signed here without an SDK. The
//! local stack has the same API.

use std::time::Duration;

use base::encoding::percent_encoded;
use platform::config::Config;
use platform::net::PlainHttp;
use platform::store::StoreError;
use platform::store::aws::SignedHttp;

/// The gateway accepts a message at once or not at all, and one slow connection must not hold up the others.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Pauses before a message is tried again if the gateway was busy.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_millis(300)];

/// Sends messages to the connections of one gateway.
#[derive(Clone)]
pub struct Sender {
    http: SignedHttp,
    endpoint: String,
}

/// The result of sending a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    Yes,
    /// The connection does not exist, or no longer.
    Gone,
    /// It may or may not have arrived, with the cause.
    Failed(String),
}

impl Sender {
    /// # Errors
    /// If `SOCKET_ENDPOINT` is not set.
    pub fn new(config: &Config, http: &PlainHttp) -> Result<Sender, StoreError> {
        let endpoint = config.aws.socket_endpoint.clone();
        let endpoint = endpoint.ok_or_else(|| StoreError::new("SOCKET_ENDPOINT is not set"))?;
        Ok(Sender { http: SignedHttp::new(http.lasting(TIMEOUT), &config.aws), endpoint })
    }

    /// Sends a text message.
    pub async fn send(&self, connection: &str, text: &str) -> Sent {
        let mut pauses = PAUSES.iter();
        loop {
            let (status, retry) = match self.ask("POST", connection, text).await {
                Ok(200..=299) => return Sent::Yes,
                Ok(410) => return Sent::Gone,
                Ok(status) => (format!("the gateway answered {status}"), status == 429 || status >= 500),
                Err(error) => (error.to_string(), false),
            };
            match pauses.next().filter(|_| retry) {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => return Sent::Failed(status),
            }
        }
    }

    /// Closes a connection. It is not an error if it is closed already.
    pub async fn hang_up(&self, connection: &str) {
        match self.ask("DELETE", connection, "").await {
            Ok(200..=299 | 410) => {}
            Ok(status) => platform::http::log::failure("a connection could not be closed", &status),
            Err(error) => platform::http::log::failure("a connection could not be closed", &error),
        }
    }

    async fn ask(&self, method: &str, connection: &str, text: &str) -> Result<u16, StoreError> {
        // Connection ids end in `=`.
        let url = format!("{}/@connections/{}", self.endpoint, percent_encoded(connection));
        let headers = [("content-type", "application/json")];
        let answer = self.http.send("execute-api", method, &url, &headers, text.as_bytes().to_vec()).await?;
        Ok(answer.status)
    }
}
