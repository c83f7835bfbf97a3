//! How an agent's number answers calls: showing, putting and switching off its settings.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use base::ids::AgentId;
use gate::idempotency::{self, Request};
use gate::{parse_body, respond};
use http::{HeaderMap, StatusCode};
use platform::auth::Scope;
use platform::http::{ApiError, Segment, headers, private_json, read_body};
use serde_json::{Value, json};
use tools_sms::phone::{self, Phone};
use tools_voice::config::{self, InboundConfig};
use tools_voice::{outside, providers, settings};
use uuid::Uuid;

use crate::{Voice, not_found, number_not_found};

/// `GET /v1/tools/voice/numbers/{id}/inbound`
pub async fn show(State(state): State<Voice>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let app = state.app();
        let caller = app.caller(&headers, Scope::Read).await?;
        let phone = owned(&state, caller.agent, &id).await?;
        let stored = settings::load(&app.db, caller.agent, phone.id).await?.ok_or_else(not_configured)?;
        Ok(private_json(StatusCode::OK, &answer_of(&settings::view(&stored, None))))
    };
    respond(answer.await)
}

/// `PUT /v1/tools/voice/numbers/{id}/inbound`: replaces the settings. The webhook's secret is in the answer that sets or
/// changes its address, and in no other.
pub async fn put(State(state): State<Voice>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let mut body = parse_body(&headers, &read_body(body, gate::MAX_BODY_BYTES).await?)?;
        if let Some(number) = config::emergency_number(&body) {
            return Err(ApiError::EmergencyNumber { number });
        }
        let config = config::read(&body, &state.gate.fetch_policy).map_err(ApiError::InvalidRequest)?;
        let app = state.app();
        let caller = app.wallet_caller(&headers, Scope::Write, ApiError::WalletOnly).await?;
        let phone = owned(&state, caller.agent, &id).await?;
        if config.transfer_number.as_ref() == Some(&phone.number) {
            return Err(ApiError::field("transfer_number", "is this number itself"));
        }
        // A provider passes calls on over the operator's line.
        if let Some(to) = config.transfer_number.as_ref().filter(|to| !to.is_fictitious())
            && providers::chosen(&app.config).is_some()
        {
            outside::check_country(&app.config, to)?;
            let before = settings::load(&app.db, caller.agent, phone.id).await?;
            // What was checked is not asked for again.
            if before.and_then(|before| before.config.transfer_number).as_ref() != Some(to) {
                outside::check_target(state.toolbox(), caller.agent, to).await?;
            }
        }
        state.toolbox().judge.judge(&said(&config)).await?;
        let set_by = headers::idempotency_key(&headers)?;
        // Binds the idempotency key to this number.
        body.insert("phone_number_id".to_owned(), json!(phone.id));
        let route = "PUT /v1/tools/voice/numbers/{id}/inbound";
        let secret = Some("webhook_secret");
        let request = Request { caller: &caller, headers: &headers, route, body: &body, secret };
        let save = async {
            let saved = settings::save(&app.db, &phone, &config, set_by, app.clock.now()).await?;
            let saved = saved.ok_or_else(number_not_found)?;
            let secret =
                saved.new_secret.map(|number| state.keys.secret(caller.agent, saved.endpoint, number).to_text());
            Ok((StatusCode::OK, answer_of(&settings::view(&saved.stored, secret))))
        };
        idempotency::once(app, request, save).await
    };
    respond(answer.await)
}

/// `DELETE /v1/tools/voice/numbers/{id}/inbound`: the number does not answer any more; the rest of its settings stays.
pub async fn disable(State(state): State<Voice>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let app = state.app();
        let caller = app.wallet_caller(&headers, Scope::Write, ApiError::WalletOnly).await?;
        let phone = owned(&state, caller.agent, &id).await?;
        let stored = settings::disable(&app.db, &phone, app.clock.now()).await?.ok_or_else(not_configured)?;
        Ok(private_json(StatusCode::OK, &answer_of(&settings::view(&stored, None))))
    };
    respond(answer.await)
}

/// The agent's number with this id.
async fn owned(state: &Voice, agent: AgentId, id: &str) -> Result<Phone, ApiError> {
    let id = Uuid::try_parse(id).map_err(|_| number_not_found())?;
    let phones = phone::list(&state.app().db, agent).await?;
    phones.into_iter().find(|phone| phone.id == id).ok_or_else(number_not_found)
}

/// What callers may hear: sentences of the prompt are read out, and the messages are said as they are.
fn said(config: &InboundConfig) -> Vec<(&'static str, &str)> {
    let texts = [
        ("prompt", Some(config.prompt.as_str())),
        ("first_message", config.first_message.as_deref()),
        ("after_hours_message", config.after_hours_message.as_deref()),
    ];
    texts.into_iter().filter_map(|(name, text)| text.map(|text| (name, text))).collect()
}

fn answer_of(data: &Value) -> Value {
    json!({"success": true, "data": data})
}

fn not_configured() -> ApiError {
    not_found("inbound_not_configured", "this number has no settings for calls and answers none: PUT them here")
}
