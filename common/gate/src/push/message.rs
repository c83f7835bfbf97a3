//! The messages on a connection, in both directions.

use std::collections::BTreeSet;

use base::ids::RequestId;
use base::input::FieldError;
use platform::http::ApiError;
use serde_json::{Map, Value, json};

use super::MAX_SUBSCRIPTIONS;

/// Longest text that is parsed as an id.
const MAX_ID_CHARS: usize = 64;

/// A client's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Ping,
    /// The ids to unsubscribe from and to subscribe to, without duplicates, in the order given.
    Change {
        unsubscribe: Option<Vec<String>>,
        subscribe: Option<Vec<String>>,
    },
}

/// Parses a client's message.
///
/// # Errors
/// 400 `invalid_request` with the paths of the invalid members.
pub fn read(text: &str) -> Result<Said, ApiError> {
    let wrong =
        || ApiError::field("", "send JSON: {\"subscribe\": [ids]}, {\"unsubscribe\": [ids]} or {\"type\": \"ping\"}");
    let message: Map<String, Value> = serde_json::from_str(text).map_err(|_| wrong())?;
    let mut errors = Vec::new();
    let unsubscribe = ids(&message, "unsubscribe", &mut errors);
    let subscribe = ids(&message, "subscribe", &mut errors);
    if !errors.is_empty() {
        return Err(ApiError::InvalidRequest(errors));
    }
    match (&unsubscribe, &subscribe) {
        (None, None) if message.get("type").is_some_and(|kind| kind == "ping") => Ok(Said::Ping),
        (None, None) => Err(wrong()),
        _ => Ok(Said::Change { unsubscribe, subscribe }),
    }
}

fn ids(message: &Map<String, Value>, name: &str, errors: &mut Vec<FieldError>) -> Option<Vec<String>> {
    let list = message.get(name).filter(|list| !list.is_null())?;
    let Some(list) = list.as_array() else {
        errors.push(FieldError::new(name, "must be a list of request ids"));
        return None;
    };
    if list.len() > MAX_SUBSCRIPTIONS {
        errors.push(FieldError::new(name, format!("may name at most {MAX_SUBSCRIPTIONS} requests")));
        return None;
    }
    let mut seen = BTreeSet::new();
    let mut ids = Vec::with_capacity(list.len());
    for (index, id) in list.iter().enumerate() {
        match id.as_str().filter(|id| id.chars().count() <= MAX_ID_CHARS) {
            Some(id) if seen.insert(id) => ids.push(id.to_owned()),
            Some(_) => {}
            None => errors.push(FieldError::new(format!("{name}[{index}]"), "must be a request id")),
        }
    }
    Some(ids)
}

/// The answer to a subscription. Another agent's job and a job that does not exist are rejected in the same way.
pub fn subscribed(requests: &[RequestId], rejected: &[String]) -> String {
    json!({"type": "subscribed", "requests": requests, "rejected": rejected}).to_string()
}

pub fn unsubscribed(requests: &[RequestId]) -> String {
    json!({"type": "unsubscribed", "requests": requests}).to_string()
}

pub fn pong() -> String {
    json!({"type": "pong"}).to_string()
}

/// Sent in place of a state whose result is too large for a message. It has no `request_id`, so a client that does not know
/// this message ignores it and goes on polling.
pub fn poll(request: RequestId) -> String {
    let about = "the result is too large for a message; poll for it";
    json!({"type": "poll", "requests": [request], "message": about}).to_string()
}

/// An error, with the members of an HTTP error body.
pub fn error(error: &ApiError) -> String {
    let mut body = error.body();
    body["type"] = json!("error");
    body.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(text: &str) -> Value {
        read(text).unwrap_err().body()["details"].clone()
    }

    #[test]
    fn client_messages_are_parsed() {
        assert_eq!(read(r#"{"type":"ping"}"#).unwrap(), Said::Ping);
        assert_eq!(
            read(r#"{"subscribe":["a","b","a"],"more":1}"#).unwrap(),
            Said::Change { unsubscribe: None, subscribe: Some(vec!["a".to_owned(), "b".to_owned()]) }
        );
        let both = read(r#"{"type":"x","subscribe":[],"unsubscribe":["c"]}"#).unwrap();
        assert_eq!(both, Said::Change { unsubscribe: Some(vec!["c".to_owned()]), subscribe: Some(Vec::new()) });
        let full = json!({"subscribe": (0..100).map(|id| id.to_string()).collect::<Vec<_>>()});
        assert!(read(&full.to_string()).is_ok());
    }

    #[test]
    fn invalid_messages_are_refused_with_their_paths() {
        for text in ["", "null", "[]", "7", "\"subscribe\"", "{}", r#"{"type":"pong"}"#, r#"{"subscribe":null}"#] {
            assert_eq!(details(text)[0]["path"], "", "{text}");
        }
        assert_eq!(details(r#"{"subscribe":"a"}"#)[0]["path"], "subscribe");
        assert_eq!(details(r#"{"subscribe":["a",1,{}]}"#)[1]["path"], "subscribe[2]");
        assert_eq!(details(&json!({"unsubscribe": ["x".repeat(65)]}).to_string())[0]["path"], "unsubscribe[0]");
        let many = json!({"subscribe": (0..101).collect::<Vec<_>>()});
        assert_eq!(
            details(&many.to_string()),
            json!([{"path": "subscribe", "message": "may name at most 100 requests"}])
        );
        // Deep nesting is a parser error, not a stack overflow.
        assert_eq!(details(&"[".repeat(100_000))[0]["path"], "");
    }
}
