//! A registration under a name of its caller's own (`Idempotency-Key`): the same name and body make one soul, and lead to
//! its key again, also where the first answer was lost or its process died.
//!
//! Nobody is known yet who registers, so a name is its source address's: whoever guesses it elsewhere gets nothing. The soul
//! key is derived from the service's secret, the name and the body, so that it can be told again and is kept nowhere; once
//! it was replaced, it is not told any more.
//!
//! | what dies | what the same request finds |
//! |---|---|
//! | before the soul is made | nothing was registered: it is, under the same key |
//! | between the soul and its answer | its own soul, by the key: the answer |

use axum::response::Response;
use base::digest::sha256_parts;
use gate::idempotency::{self, IdempotencyState};
use gate::limits::Subject;
use http::{HeaderMap, StatusCode};
use platform::http::{ApiError, headers, private_json};
use platform::store::{Key, StoreError};
use serde_json::{Map, Value, json};

use super::registry::{self, Registered};
use super::{Market, soul, view, webhook};

/// Registers a soul, once under its name if it has one, and answers.
pub async fn answer(market: &Market, sent: &HeaderMap, body: &Map<String, Value>) -> Result<Response, ApiError> {
    let Some(name) = headers::idempotency_key(sent)? else {
        let made = registry::register(market, body, None).await?;
        return Ok(private_json(StatusCode::OK, &shown(market, &made)));
    };
    let name = sha256_parts(&[Subject::source().to_string().as_bytes(), name.as_bytes()]);
    let secret = soul::named_key(&market.soul_keys, &name, &idempotency::digest(body));
    let row = Key::new(format!("REGISTRATION#{}", const_hex::encode(name)), "ANSWER");
    let taken = match idempotency::begin(&market.app, row, body).await? {
        IdempotencyState::Fresh(taken) => taken,
        IdempotencyState::Replay(status, answer) => {
            let mut answer: Value = serde_json::from_str(&answer).map_err(StoreError::new)?;
            tell_again(market, &mut answer, &secret).await?;
            return Ok(private_json(status, &answer));
        }
        IdempotencyState::Reused => return Err(ApiError::IdempotencyKeyReused),
        IdempotencyState::InProgress => return Err(ApiError::RequestInProgress),
    };
    match registry::register(market, body, Some(secret)).await {
        Ok(made) => {
            let answer = shown(market, &made);
            let mut kept = answer.clone();
            for secret in ["soul_key", "webhook_secret"] {
                if let Some(secret) = kept.get_mut(secret) {
                    *secret = Value::Null;
                }
            }
            taken.answered(&market.app, StatusCode::OK, &kept.to_string()).await?;
            Ok(private_json(StatusCode::OK, &answer))
        }
        Err(error) => {
            // Nothing was registered, or it is found again by its key.
            taken.release(&market.app).await?;
            Err(error)
        }
    }
}

fn shown(market: &Market, made: &Registered) -> Value {
    let mut answer = json!({"success": true, "soul_key": made.key, "soul_agent": view::registered(&made.soul)});
    if let Some(service) = &made.service {
        answer["service"] = view::first_service(&made.soul, service);
    }
    if let Some(secret) = made.webhook_secret(market) {
        answer["webhook_secret"] = json!(secret);
    }
    answer
}

/// Puts the secrets back into an answer that was kept without them, as long as the key is the soul's.
async fn tell_again(market: &Market, answer: &mut Value, secret: &str) -> Result<(), ApiError> {
    let slug = answer["soul_agent"]["slug"].as_str().unwrap_or_default().to_owned();
    let soul = soul::load_latest(&market.app.db, &slug).await?;
    if soul.is_none_or(|soul| soul.key_hash != soul::key_hash(secret)) {
        return Ok(());
    }
    answer["soul_key"] = json!(secret);
    if answer.get("webhook_secret").is_some() {
        let service = answer["service"]["slug"].as_str().unwrap_or_default().to_owned();
        answer["webhook_secret"] =
            json!(webhook::secret(&market.webhook_key, &slug, &service, registry::FIRST_WEBHOOK));
    }
    Ok(())
}
