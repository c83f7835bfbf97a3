//! What the providers of calls post: a call that rings, and calls that are over.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use gate::limits::{self, Class, Subject};
use gate::respond;
use http::{HeaderMap, StatusCode};
use platform::http::{ApiError, log, private_json, read_body};
use platform::providers::OutboundError;
use platform::store::StoreError;
use serde_json::{Value, json};
use tools_voice::commands;
use tools_voice::events::{self, Posted};
use tools_voice::providers::{self, telnyx, vapi};

use crate::{Voice, wake_job};

/// Reports have the whole transcript.
const MAX_POST_BYTES: usize = 1024 * 1024;

/// `POST /v1/providers/vapi`: from Vapi, with our secret. The answer to a call that rings says how it is treated; other posts
/// are answered with `{}`. While the operator has stopped paid calls, a call that rings is declined.
pub async fn vapi(State(state): State<Voice>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        state.sent_by_vapi(&headers).await?;
        let body = read_body(body, MAX_POST_BYTES).await?;
        let posted: Value = serde_json::from_slice(&body).map_err(|_| ApiError::field("", "must be JSON"))?;
        if events::is_ringing(&posted) && limits::stopped(state.app()).await?.is_some() {
            return Ok(private_json(StatusCode::OK, &vapi::declined(None)));
        }
        let answer = match events::apply_vapi(state.toolbox(), &posted).await? {
            Posted::Answer(answer) => answer,
            Posted::Wakes(job) => {
                wake_job(&state, job).await;
                json!({})
            }
            Posted::Nothing => json!({}),
        };
        Ok(private_json(StatusCode::OK, &answer))
    };
    respond(answer.await)
}

/// `POST /v1/providers/telnyx`: from Telnyx, signed. What has to be done about it is told to Telnyx in requests of our own, so
/// the answer is `{}`. While the operator has stopped paid calls, a call that rings is declined.
pub async fn telnyx(State(state): State<Voice>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let account = state.telnyx_account().await?;
        let body = read_body(body, MAX_POST_BYTES).await?;
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (timestamp, signature) = (header(telnyx::TIMESTAMP_HEADER), header(telnyx::SIGNATURE_HEADER));
        if !account.has_signed(timestamp, &body, signature, state.app().clock.now()) {
            limits::take(state.app(), Subject::source(), Class::Open).await?;
            return Err(ApiError::Tool {
                status: StatusCode::UNAUTHORIZED,
                code: "invalid_signature",
                message: "the telnyx-signature-ed25519 is missing or wrong, or older than five minutes".to_owned(),
            });
        }
        let posted: Value = serde_json::from_slice(&body).map_err(|_| ApiError::field("", "must be JSON"))?;
        let is_stopped = commands::is_ringing(&posted) && limits::stopped(state.app()).await?.is_some();
        if let Posted::Wakes(job) = commands::apply(state.toolbox(), &posted, is_stopped).await? {
            wake_job(&state, job).await;
        }
        Ok(private_json(StatusCode::OK, &json!({})))
    };
    respond(answer.await)
}

/// Why a provider's post cannot be checked: 404 without keys, else 503.
fn unchecked(provider: &str, error: &OutboundError) -> ApiError {
    log::failure(&format!("{provider}'s posts cannot be checked"), &error.detail());
    match error {
        OutboundError::NotConfigured(_) => ApiError::NotFound,
        error => ApiError::Unavailable(StoreError::new(error.detail())),
    }
}

impl Voice {
    /// The account whose posts are taken.
    ///
    /// # Errors
    /// 404 unless calls go through Telnyx; 503 if its keys cannot be read now.
    async fn telnyx_account(&self) -> Result<telnyx::Account, ApiError> {
        if providers::chosen(&self.app().config) != Some(telnyx::NAME) {
            return Err(ApiError::NotFound);
        }
        telnyx::Account::of(&self.toolbox().outbound).await.map_err(|error| unchecked("Telnyx", &error))
    }

    /// Checks that a request has our secret.
    ///
    /// # Errors
    /// 404 unless calls go through Vapi; 401 `invalid_signature`; 503 if the secret cannot be read now.
    async fn sent_by_vapi(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let app = self.app();
        if providers::chosen(&app.config) != Some(vapi::NAME) {
            return Err(ApiError::NotFound);
        }
        let account = vapi::Account::of(&self.toolbox().outbound).await.map_err(|error| unchecked("Vapi", &error))?;
        let secret = headers.get(vapi::SECRET_HEADER).and_then(|secret| secret.to_str().ok());
        if secret.is_some_and(|secret| account.has_sent(secret)) {
            return Ok(());
        }
        limits::take(app, Subject::source(), Class::Open).await?;
        Err(ApiError::Tool {
            status: StatusCode::UNAUTHORIZED,
            code: "invalid_signature",
            message: "the X-Vapi-Secret is missing or wrong".to_owned(),
        })
    }
}
