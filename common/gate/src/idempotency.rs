//! Idempotency keys (`Idempotency-Key`) of free requests: a request runs once, and a retry gets the first answer for two
//! days. Used for free changes ([`once`]), registrations (`market::registration`) and checkout sessions
//! (`market::checkout::once`). Paid calls store their keys with their jobs (`ledger::payments::idempotency`).
//!
//! The key is taken before the work and the answer is stored after it. After a crash in between, a retry takes the key over
//! once `DEAD_AFTER` has passed. So a crash can make the work run twice, unless the work itself detects that it was done; a
//! retry alone never can.

use std::future::Future;
use std::time::Duration;

use axum::response::Response;
use base::clock::Timestamp;
use base::digest::{canonical_json, sha256, sha256_parts};
use evm::Word;
use http::{HeaderMap, StatusCode};
use platform::auth::Caller;
use platform::http::{ApiError, headers, private_json};
use platform::store::{Key, StoreError, Write, WriteError, db};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use crate::app::App;

/// How long answers are kept, in seconds.
pub const KEEP_SECS: i64 = 2 * 24 * 3600;
/// No function works longer than this on a request, so after this an unfinished one has crashed.
const DEAD_AFTER: Duration = Duration::from_secs(30);

/// A key, and the request it was used for.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeyRecord {
    /// SHA-256 of the canonical body ([`digest`]).
    #[serde(with = "serde_bytes")]
    body: Word,
    first: Timestamp,
    begun: Timestamp,
    /// Status and JSON of the first answer, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// Unix seconds after which the row may be deleted.
    expires: i64,
}

/// A key that this request took and has to answer or release.
pub struct Taken {
    key: Key,
    /// When the key was first taken. It is part of the ids derived from a key. So a key that is used again after its record
    /// expired creates something new.
    pub first: Timestamp,
}

/// The state of a key.
pub enum IdempotencyState {
    Fresh(Taken),
    /// The first answer.
    Replay(StatusCode, String),
    /// The key was used for another body.
    Reused,
    /// Another request with this key is still running.
    InProgress,
}

/// Digest of a body. Bodies that differ only in notation have the same digest.
pub fn digest(body: &Map<String, Value>) -> Word {
    sha256(canonical_json(&meaning(&Value::Object(body.clone()))).as_bytes())
}

/// Takes `key`, the idempotency key's item in the agents table, or returns the state of a key that is already taken.
pub async fn begin(app: &App, key: Key, body: &Map<String, Value>) -> Result<IdempotencyState, StoreError> {
    let (table, now) = (&app.db.tables.agents, app.clock.now());
    let body = digest(body);
    let fresh = KeyRecord { body, first: now, begun: now, status: None, answer: None, expires: now.secs() + KEEP_SECS };
    let take = Write::put(table, key.clone(), &fresh)?
        .only_if("attribute_not_exists(#pk) OR #expires < :now")
        .bind("now", now.secs())?;
    let old: KeyRecord = match app.db.write(take).await {
        Ok(_) => return Ok(IdempotencyState::Fresh(Taken { key, first: now })),
        Err(WriteError::Failed(error)) => return Err(error),
        Err(refused) => match refused.refused(0).and_then(|refused| refused.old.clone()) {
            Some(old) => db::parse(old)?,
            None => return Ok(IdempotencyState::InProgress),
        },
    };
    if old.body != body {
        return Ok(IdempotencyState::Reused);
    }
    if let (Some(status), Some(answer)) = (old.status, old.answer) {
        return Ok(IdempotencyState::Replay(StatusCode::from_u16(status).unwrap_or(StatusCode::OK), answer));
    }
    if now < old.begun.plus(DEAD_AFTER) {
        return Ok(IdempotencyState::InProgress);
    }
    // The first request crashed. One of the retries takes the key over.
    let again = Write::update(table, key.clone(), "SET #begun = :now")
        .only_if("#begun = :before AND attribute_not_exists(#answer)")
        .bind("now", now)?
        .bind("before", old.begun)?;
    match app.db.write(again).await {
        Ok(_) => Ok(IdempotencyState::Fresh(Taken { key, first: old.first })),
        Err(WriteError::Failed(error)) => Err(error),
        Err(WriteError::Refused(_)) => Ok(IdempotencyState::InProgress),
    }
}

impl Taken {
    /// Stores the answer.
    pub async fn answered(&self, app: &App, status: StatusCode, answer: &str) -> Result<(), StoreError> {
        let write = Write::update(&app.db.tables.agents, self.key.clone(), "SET #status = :status, #answer = :answer")
            .bind("status", status.as_u16())?
            .bind("answer", answer)?;
        Ok(app.db.write(write).await.map(drop)?)
    }

    /// Releases the key: nothing was done.
    pub async fn release(&self, app: &App) -> Result<(), StoreError> {
        let write = Write::delete(&app.db.tables.agents, self.key.clone());
        Ok(app.db.write(write).await.map(drop)?)
    }
}

/// A request that changes something.
pub struct Request<'a> {
    pub caller: &'a Caller,
    pub headers: &'a HeaderMap,
    /// Method and path template of the route.
    pub route: &'static str,
    pub body: &'a Map<String, Value>,
    /// A member of `data` that is shown once and never stored.
    pub secret: Option<&'static str>,
}

/// Runs `change` once per idempotency key. Without a key, runs it every time. A failed change releases the key.
pub async fn once(
    app: &App,
    request: Request<'_>,
    change: impl Future<Output = Result<(StatusCode, Value), ApiError>>,
) -> Result<Response, ApiError> {
    let Some(name) = headers::idempotency_key(request.headers)? else {
        let (status, answer) = change.await?;
        return Ok(private_json(status, &answer));
    };
    let digest = const_hex::encode(sha256_parts(&[request.route.as_bytes(), name.as_bytes()]));
    let key = Key::new(format!("AGENT#{}", request.caller.agent), format!("ONCE#{digest}"));
    let taken = match begin(app, key, request.body).await? {
        IdempotencyState::Fresh(taken) => taken,
        IdempotencyState::Replay(status, answer) => {
            let answer = serde_json::from_str(&answer).map_err(StoreError::new)?;
            return Ok(private_json(status, &answer));
        }
        IdempotencyState::Reused => return Err(ApiError::IdempotencyKeyReused),
        IdempotencyState::InProgress => return Err(ApiError::RequestInProgress),
    };
    match change.await {
        Ok((status, answer)) => {
            let mut kept = answer.clone();
            if let (Some(secret), Some(data)) = (request.secret, kept["data"].as_object_mut()) {
                data.insert(secret.to_owned(), Value::Null);
            }
            taken.answered(app, status, &kept.to_string()).await?;
            Ok(private_json(status, &answer))
        }
        Err(error) => {
            // Nothing changed: the key is free again.
            taken.release(app).await?;
            Err(error)
        }
    }
}

/// JSON reduced to its meaning: 1.0 becomes 1. (`null` differs from a missing member, and arrays keep their order.)
fn meaning(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(whole(number).unwrap_or_else(|| number.clone())),
        Value::Array(items) => items.iter().map(meaning).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), meaning(value))).collect(),
        other => other.clone(),
    }
}

fn whole(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    // Above 2^53 a float stands for more than one integer.
    (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0).then(|| Number::from(float as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bodies_are_compared_by_meaning() {
        let same = |one: Value, other: Value| canonical_json(&meaning(&one)) == canonical_json(&meaning(&other));
        assert!(same(json!({"a": 1.0, "b": [2]}), json!({"b": [2.0], "a": 1})));
        for (one, other) in [
            (json!({"a": null}), json!({})),
            (json!([1, 2]), json!([2, 1])),
            (json!({"a": "1"}), json!({"a": 1})),
            (json!(1.5), json!(1)),
        ] {
            assert!(!same(one.clone(), other), "{one}");
        }
    }
}
