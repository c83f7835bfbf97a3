//! Requests under a name (`Idempotency-Key`): worked on once, and answered the same for a day and longer.
//!
//! The name is taken before the work and the answer kept after it. Who dies in between leaves a name that is taken over
//! once nobody can be at work any more; what the work itself does is done once all the same, because a session's id
//! follows from its name and a session is taken by one payment only. Names belong to a platform and a path.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use uuid::Uuid;

use super::error::CheckoutError;
use crate::app::App;
use crate::clock::Timestamp;
use crate::digest::{canonical_json, sha256, sha256_parts};
use crate::evm::Word;
use crate::store::{Key, StoreError, Write, WriteError, db};

/// Answers are kept for so long.
const KEEP_SECS: i64 = 2 * 24 * 3600;
/// No function works longer on a request.
const DEAD_AFTER: Duration = Duration::from_secs(30);

/// A name and what it stands for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Named {
    /// SHA-256 of the body, as JSON means it.
    #[serde(with = "serde_bytes")]
    body: Word,
    /// When the name was first taken: part of what ids follow from, so that a name of another day means another thing.
    pub first: Timestamp,
    begun: Timestamp,
    /// The answer, once there is one.
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
    pub named: Named,
    /// SHA-256 of platform, path and name, in hex.
    pub digest: String,
}

/// What a name leads to.
pub enum Begun {
    Fresh(Taken),
    /// Its first answer.
    Replay(u16, String),
}

/// Takes a name, or finds its answer.
pub async fn begin(
    app: &App,
    platform: Uuid,
    path: &str,
    name: &str,
    body: &Map<String, Value>,
) -> Result<Begun, CheckoutError> {
    let (table, now) = (&app.db.tables.agents, app.clock.now());
    let digest = const_hex::encode(sha256_parts(&[platform.as_bytes(), path.as_bytes(), name.as_bytes()]));
    let key = Key::new(format!("CHECKOUTNAME#{digest}"), "ANSWER");
    let body = sha256(canonical_json(&meaning(&Value::Object(body.clone()))).as_bytes());
    let fresh = Named { body, first: now, begun: now, status: None, answer: None, expires: now.secs() + KEEP_SECS };
    let take = Write::put(table, key.clone(), &fresh)?
        .only_if("attribute_not_exists(#pk) OR #expires < :now")
        .bind("now", now.secs())?;
    let old: Named = match app.db.write(take).await {
        Ok(_) => return Ok(Begun::Fresh(Taken { key, named: fresh, digest })),
        Err(refused @ WriteError::Refused(_)) => {
            let old = refused.refused(0).and_then(|refused| refused.old.clone()).ok_or(CheckoutError::InFlight)?;
            db::parse(old)?
        }
        Err(failed) => return Err(failed.into()),
    };
    if old.body != body {
        return Err(CheckoutError::KeyReused);
    }
    if let (Some(status), Some(answer)) = (old.status, old.answer) {
        return Ok(Begun::Replay(status, answer));
    }
    if now < old.begun.plus(DEAD_AFTER) {
        return Err(CheckoutError::InFlight);
    }
    // Whoever began it is dead: it is begun again, by one of those who see that.
    let named = Named { begun: now, status: None, answer: None, ..old };
    let again = Write::update(table, key.clone(), "SET #begun = :now")
        .only_if("#begun = :before AND attribute_not_exists(#answer)")
        .bind("now", now)?
        .bind("before", old.begun)?;
    match app.db.write(again).await {
        Ok(_) => Ok(Begun::Fresh(Taken { key, named, digest })),
        Err(WriteError::Refused(_)) => Err(CheckoutError::InFlight),
        Err(failed) => Err(failed.into()),
    }
}

impl Taken {
    /// The id of what is made under this name.
    pub fn id(&self) -> Uuid {
        crate::ids::uuid_of(&[b"checkout", self.digest.as_bytes(), &self.named.first.millis().to_be_bytes()])
    }

    /// Keeps the answer.
    pub async fn answered(&self, app: &App, status: u16, answer: &str) -> Result<(), StoreError> {
        let write = Write::update(&app.db.tables.agents, self.key.clone(), "SET #status = :status, #answer = :answer")
            .bind("status", status)?
            .bind("answer", answer)?;
        Ok(app.db.write(write).await.map(drop)?)
    }

    /// Gives the name back: what it was for did not happen.
    pub async fn release(&self, app: &App) -> Result<(), StoreError> {
        let write = Write::delete(&app.db.tables.agents, self.key.clone());
        Ok(app.db.write(write).await.map(drop)?)
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
