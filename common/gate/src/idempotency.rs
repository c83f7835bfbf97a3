//! Requests under a name of the caller's own (`Idempotency-Key`): worked on once, and whoever repeats one gets the first
//! answer, for two days. Here for what is free and changes something ([`once`]), for registrations
//! (`marketplace::registration`) and for checkout sessions (`checkout::once`); paid calls keep their names with their jobs
//! (`payments::idempotency`).
//!
//! The name is taken before the work and the answer kept after it. Whoever dies in between leaves a name that is taken
//! over once nobody can be at work any more: so what is done under a name may be done twice by a crash, unless it is known
//! by itself that it was done, and never by a repeat.

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

/// Answers are kept for so long.
const KEEP_SECS: i64 = 2 * 24 * 3600;
/// No function that answers works longer on a request.
const DEAD_AFTER: Duration = Duration::from_secs(30);

/// A name and what it stands for.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct KeyRecord {
    /// SHA-256 of the body, as JSON means it.
    #[serde(with = "serde_bytes")]
    body: Word,
    first: Timestamp,
    begun: Timestamp,
    /// The first answer, once there is one: its status, and its JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// Unix seconds after which the row may go.
    expires: i64,
}

/// A name that was taken, and is to be answered.
pub struct Taken {
    key: Key,
    /// When it was taken first: what is made under a name of another day is another thing.
    pub first: Timestamp,
}

/// What a name leads to.
pub enum IdempotencyState {
    Fresh(Taken),
    /// Its first answer.
    Replay(StatusCode, String),
    /// It stands for another body.
    Reused,
    /// Somebody is at work.
    InProgress,
}

/// What a body means: the same for bodies that differ only in how they are written.
pub fn digest(body: &Map<String, Value>) -> Word {
    sha256(canonical_json(&meaning(&Value::Object(body.clone()))).as_bytes())
}

/// Takes the name that this key of the agents table is made of, or finds its answer.
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
    // Whoever began it is dead: it is begun again, by one of those who see that.
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
    /// Keeps the answer.
    pub async fn answered(&self, app: &App, status: StatusCode, answer: &str) -> Result<(), StoreError> {
        let write = Write::update(&app.db.tables.agents, self.key.clone(), "SET #status = :status, #answer = :answer")
            .bind("status", status.as_u16())?
            .bind("answer", answer)?;
        Ok(app.db.write(write).await.map(drop)?)
    }

    /// Gives the name back: what it was for did not happen.
    pub async fn release(&self, app: &App) -> Result<(), StoreError> {
        let write = Write::delete(&app.db.tables.agents, self.key.clone());
        Ok(app.db.write(write).await.map(drop)?)
    }
}

/// A request that changes something.
pub struct Request<'a> {
    pub caller: &'a Caller,
    pub headers: &'a HeaderMap,
    /// Method and path, as the route names them.
    pub route: &'static str,
    pub body: &'a Map<String, Value>,
    /// A member of `data` that is shown once and never kept.
    pub secret: Option<&'static str>,
}

/// Makes a change once under its name; without a name, simply makes it.
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
            // Nothing was changed: the name is free again.
            taken.release(app).await?;
            Err(error)
        }
    }
}

/// JSON by what it means: 1.0 is 1. (`null` is something, and arrays have an order.)
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
    // Beyond 2^53 a float names more than one whole number.
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
