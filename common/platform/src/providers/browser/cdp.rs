//! The part of the Chrome DevTools Protocol that is needed: numbered requests, responses and events, as JSON over one
//! WebSocket (<https://chromedevtools.github.io/devtools-protocol/>, read Nov 2026).
//!
//! The crate `chromiumoxide` was considered: 111,000 generated lines and two minutes of building for a dozen methods, and
//! it fails on every event of a newer browser that its types do not have.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use url::Url;

use crate::net::tls;

/// Largest message of a page that is read: its whole HTML, or a screenshot. In bytes.
pub const MAX_MESSAGE: usize = 24 * 1024 * 1024;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection to a browser. Closing it also closes everything that was opened over it.
pub struct Cdp {
    socket: WebSocketStream<Box<dyn Stream>>,
    next: u64,
    /// The page that methods are sent to; without one, the browser itself.
    pub session: Option<String>,
    events: VecDeque<Event>,
}

/// A message of the browser.
pub enum Incoming {
    /// The response to the call of this number.
    Answer(u64, Result<Value, String>),
    Event(Event),
}

/// An event of a page, or of the browser.
pub struct Event {
    /// The page it comes from; `None` for the browser itself.
    pub session: Option<String>,
    pub method: String,
    pub params: Value,
}

impl Cdp {
    /// Connects to a `ws` or `wss` address. Errors never contain the address, because it may hold a key. A message of more
    /// than `max_message` bytes breaks the connection.
    pub async fn open(url: &Url, max_message: usize) -> Result<Cdp, String> {
        let host = url.host_str().ok_or("its address has no host")?;
        let port = url.port_or_known_default().ok_or("its address has no port")?;
        let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await;
        let stream = stream.map_err(|error| format!("no connection: {error}"))?;
        let stream: Box<dyn Stream> = if url.scheme() == "wss" {
            let name = ServerName::try_from(host.to_owned()).map_err(|_| "its host name is not valid")?;
            let connector = TlsConnector::from(Arc::new(tls::client_config(None)?));
            Box::new(connector.connect(name, stream).await.map_err(|error| format!("no TLS: {error}"))?)
        } else {
            Box::new(stream)
        };
        let config = WebSocketConfig::default().max_message_size(Some(max_message)).max_frame_size(Some(max_message));
        let (socket, _) = tokio_tungstenite::client_async_with_config(url.as_str(), stream, Some(config))
            .await
            .map_err(|error| match error {
                tokio_tungstenite::tungstenite::Error::Http(answer) => format!("it answered {}", answer.status()),
                _ => "it does not speak WebSocket".to_owned(),
            })?;
        Ok(Cdp { socket, next: 1, session: None, events: VecDeque::new() })
    }

    /// Calls a method without waiting for its response.
    pub async fn send(&mut self, method: &str, params: Value) -> Result<u64, String> {
        let session = self.session.clone();
        self.send_to(session.as_deref(), method, params).await
    }

    /// Like [`Cdp::send`], to this page or to the browser itself.
    pub async fn send_to(&mut self, session: Option<&str>, method: &str, params: Value) -> Result<u64, String> {
        let id = self.next;
        self.next += 1;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).await.map_err(|_| "the connection broke".to_owned())?;
        Ok(id)
    }

    /// Calls a method and waits for its response. Events that arrive meanwhile are kept.
    pub async fn call(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.send(method, params).await?;
        loop {
            match self.read().await? {
                Incoming::Answer(answered, result) if answered == id => {
                    return result.map_err(|error| format!("{method}: {error}"));
                }
                Incoming::Answer(..) => {}
                Incoming::Event(event) => self.events.push_back(event),
            }
        }
    }

    /// The next event.
    pub async fn event(&mut self) -> Result<Event, String> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            if let Incoming::Event(event) = self.read().await? {
                return Ok(event);
            }
        }
    }

    /// The next message. Dropping the future loses none.
    pub async fn read(&mut self) -> Result<Incoming, String> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    let message = parsed(&text).ok_or("it sent an unreadable message")?;
                    if let Some(incoming) = incoming(message) {
                        return Ok(incoming);
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err("the connection broke".to_owned()),
            }
        }
    }
}

fn incoming(mut message: Value) -> Option<Incoming> {
    if let Some(id) = message["id"].as_u64() {
        let result = match message["error"]["message"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(message["result"].take()),
        };
        return Some(Incoming::Answer(id, result));
    }
    let method = message["method"].as_str()?.to_owned();
    let session = message["sessionId"].as_str().map(str::to_owned);
    Some(Incoming::Event(Event { session, method, params: message["params"].take() }))
}

/// A message as JSON. Texts of the browser may hold halves of surrogate pairs, such as the bytes of a posted file: they become
/// U+FFFD.
fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| serde_json::from_str(&without_halves(text)?).ok())
}

/// `None` if the text ends within an escape.
fn without_halves(text: &str) -> Option<String> {
    // The code of `\uXXXX` at this place.
    let code = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut whole, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(next) = text[at..].find('\\') {
        let escape = at + next;
        whole.push_str(&text[at..escape]);
        let (kept, length) = match (code(escape), code(escape + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => (text.get(escape..escape + 12)?, 12),
            (Some(0xd800..0xe000), _) => ("\\ufffd", 6),
            (Some(_), _) => (text.get(escape..escape + 6)?, 6),
            (None, _) => (text.get(escape..escape + 2)?, 2),
        };
        whole.push_str(kept);
        at = escape + length;
    }
    whole.push_str(&text[at..]);
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::parsed;

    #[test]
    fn halves_of_surrogate_pairs_do_not_break_a_message() {
        for (text, value) in [
            (r#"{"a":"\ud83d x"}"#, "\u{fffd} x"),
            (r#"{"a":"\udc00\ud83d"}"#, "\u{fffd}\u{fffd}"),
            (r#"{"a":"\ud83d\ude00 \ud83d \\ud83d \""}"#, "😀 \u{fffd} \\ud83d \""),
        ] {
            assert_eq!(parsed(text).expect(text)["a"], value, "{text}");
        }
        assert_eq!(parsed(r#"{"a":"\"#), None);
    }
}
