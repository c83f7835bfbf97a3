//! What Unipile posts: that an account changed, what happens to messages, and who has become a connection. With our secret, which its webhooks carry in a header.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use base::input;
use gate::limits::{self, Class, Subject};
use gate::{Gate, respond};
use http::{HeaderMap, StatusCode};
use platform::http::{ApiError, log, private_json, read_body};
use platform::providers::OutboundError;
use platform::store::StoreError;
use serde_json::{Map, Value, json};
use tools_network::events::{self, ACCOUNT_STATUS, MESSAGING, RELATION};
use tools_network::providers::{self, unipile};

use crate::{Shared, queue, toolbox};

/// Posts have a message with its attachments' names, not their bytes.
const MAX_POST: usize = 256 * 1024;

/// `POST /v1/tools/linkedin/webhook/account-status`
pub async fn account_status(State(gate): Shared, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let mut posted = posted(&gate, &headers, body).await?;
        // Unipile's own form has one more level.
        if let Some(Value::Object(inner)) = posted.remove("AccountStatus") {
            posted = inner;
        }
        input::validate(ACCOUNT_STATUS, &posted).map_err(ApiError::InvalidRequest)?;
        events::account_status(toolbox(&gate), unipile::NAME, &posted).await?;
        Ok(private_json(StatusCode::OK, &json!({"received": true})))
    };
    respond(answer.await)
}

/// `POST /v1/tools/linkedin/webhook/messaging`
pub async fn messaging(State(gate): Shared, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let posted = posted(&gate, &headers, body).await?;
        input::validate(MESSAGING, &posted).map_err(ApiError::InvalidRequest)?;
        events::messaging(toolbox(&gate), queue(&gate), unipile::NAME, &posted).await?;
        Ok(private_json(StatusCode::OK, &json!({"received": true})))
    };
    respond(answer.await)
}

/// `POST /v1/tools/linkedin/webhook/relations`
pub async fn relations(State(gate): Shared, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let posted = posted(&gate, &headers, body).await?;
        input::validate(RELATION, &posted).map_err(ApiError::InvalidRequest)?;
        events::relation(toolbox(&gate), queue(&gate), unipile::NAME, &posted).await?;
        Ok(private_json(StatusCode::OK, &json!({"received": true})))
    };
    respond(answer.await)
}

/// The object of a post with our secret. Its content type does not matter: Unipile's webhooks that were made by its API have none.
async fn posted(gate: &Gate, headers: &HeaderMap, body: Body) -> Result<Map<String, Value>, ApiError> {
    if providers::chosen(&gate.app.config) != Some(unipile::NAME) {
        return Err(ApiError::NotFound);
    }
    let secret = headers.get(unipile::SECRET_HEADER).and_then(|secret| secret.to_str().ok()).unwrap_or_default();
    let is_ours = unipile::has_sent(&toolbox(gate).outbound, secret).await.map_err(|error| match error {
        OutboundError::NotConfigured(_) => ApiError::NotFound,
        error => {
            log::failure("Unipile's posts cannot be checked", &error.detail());
            ApiError::Unavailable(StoreError::new(error.detail()))
        }
    })?;
    if !is_ours {
        limits::take(&gate.app, Subject::source(), Class::Open).await?;
        return Err(ApiError::Tool {
            status: StatusCode::UNAUTHORIZED,
            code: "unauthorized",
            message: format!("the header {} is missing or wrong", unipile::SECRET_HEADER),
        });
    }
    let body = read_body(body, MAX_POST).await?;
    match input::parse(&body) {
        Ok(Value::Object(posted)) => Ok(posted),
        Ok(_) => Err(ApiError::field("", "must be a JSON object")),
        Err(wrong) => Err(ApiError::InvalidRequest(vec![wrong])),
    }
}
