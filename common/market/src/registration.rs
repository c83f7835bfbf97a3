//! Registration under an `Idempotency-Key`. The same key and body create one soul and return its soul key again, even
//! if the first answer was lost or the process died.
//!
//! The caller is not authenticated yet, so the idempotency key is bound to the source address: from another address it
//! is useless. The soul key is derived from the deployment's secret, the idempotency key and the body. So it can be
//! returned again without being stored. Once it is rotated, it is no longer returned.
//!
//! | crash | result of a retry |
//! |---|---|
//! | before the soul is created | the soul is created, under the same soul key |
//! | after the soul is created, before the answer is stored | the retry finds its soul by the key, and answers |

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

/// Registers a soul (once, if there is an idempotency key) and answers.
pub async fn answer(market: &Market, sent: &HeaderMap, body: &Map<String, Value>) -> Result<Response, ApiError> {
    if !market.app.config.registration {
        return Err(ApiError::Tool {
            status: StatusCode::FORBIDDEN,
            code: "registration_closed",
            message: "this deployment takes no new souls".to_owned(),
        });
    }
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
            // Nothing was registered, or a retry finds the soul by its key.
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

/// Puts the secrets back into a stored answer, unless the soul key was rotated.
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
