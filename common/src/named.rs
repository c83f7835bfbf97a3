//! Free routes that change something, called under a name of the caller's own (`Idempotency-Key`): the change is made once,
//! and whoever repeats the request gets the first answer. Paid calls keep their names with their jobs
//! (`payments::idempotency`).
//!
//! The name is taken before the change and the answer kept after it. Whoever dies in between leaves a name that is taken
//! over after a minute; all changes here may be made twice by a crash, never by a repeat.

use std::future::Future;
use std::time::Duration;

use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::app::App;
use crate::auth::Caller;
use crate::clock::Timestamp;
use crate::digest::{canonical_json, sha256, sha256_parts};
use crate::evm::Word;
use crate::http::{ApiError, headers, private_json};
use crate::store::{Key, Write, WriteError, db};

/// Answers are kept for so long.
const KEEP_SECS: i64 = 2 * 24 * 3600;
/// A change that has not been answered by then died.
const DEAD_AFTER: Duration = Duration::from_secs(60);

/// A name and what it stands for.
#[derive(Serialize, Deserialize)]
struct Named {
    /// SHA-256 of the canonical body.
    #[serde(with = "serde_bytes")]
    body: Word,
    begun: Timestamp,
    /// The first answer, once there is one: its status, and its JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// Unix seconds after which the row may go.
    expires: i64,
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
    let (table, now) = (&app.db.tables.agents, app.clock.now());
    let digest = const_hex::encode(sha256_parts(&[request.route.as_bytes(), name.as_bytes()]));
    let key = Key::new(format!("AGENT#{}", request.caller.agent), format!("ONCE#{digest}"));
    let body = sha256(canonical_json(&Value::Object(request.body.clone())).as_bytes());
    let mut named = Named { body, begun: now, status: None, answer: None, expires: now.secs() + KEEP_SECS };
    let take = Write::put(table, key.clone(), &named)?
        .only_if("attribute_not_exists(#pk) OR (attribute_not_exists(#answer) AND #body = :body AND #begun < :dead)")
        .bind("body", serde_bytes::Bytes::new(&body))?
        .bind("dead", now.minus(DEAD_AFTER))?;
    match app.db.write(take).await {
        Ok(_) => {}
        Err(refused @ WriteError::Refused(_)) => {
            let old = refused.refused(0).and_then(|refused| refused.old.clone()).ok_or(ApiError::RequestInProgress)?;
            return first_answer(&db::parse(old)?, &body);
        }
        Err(WriteError::Failed(error)) => return Err(ApiError::Unavailable(error)),
    }
    match change.await {
        Ok((status, answer)) => {
            let mut kept = answer.clone();
            if let (Some(secret), Some(data)) = (request.secret, kept["data"].as_object_mut()) {
                data.insert(secret.to_owned(), Value::Null);
            }
            named.status = Some(status.as_u16());
            named.answer = Some(kept.to_string());
            app.db.write(Write::put(table, key, &named)?).await.map_err(crate::store::StoreError::from)?;
            Ok(private_json(status, &answer))
        }
        Err(error) => {
            // Nothing was changed: the name is free again.
            app.db.write(Write::delete(table, key)).await.map_err(crate::store::StoreError::from)?;
            Err(error)
        }
    }
}

fn first_answer(named: &Named, body: &Word) -> Result<Response, ApiError> {
    if named.body != *body {
        return Err(ApiError::IdempotencyKeyReused);
    }
    let (Some(status), Some(answer)) = (named.status, &named.answer) else { return Err(ApiError::RequestInProgress) };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let answer = serde_json::from_str(answer).map_err(crate::store::StoreError::new)?;
    Ok(private_json(status, &answer))
}
