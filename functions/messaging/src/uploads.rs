//! Where an agent uploads attachments that are too large for a call.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use base::input;
use gate::limits::{self, Class, Subject};
use gate::{parse_body, respond};
use http::{HeaderMap, StatusCode};
use platform::auth::Scope;
use platform::http::{ApiError, private_json, read_body};
use serde_json::{Value, json};
use tools_email::upload::{self, Upload};

use crate::Messaging;

/// `POST /v1/tools/email/uploads`: a URL that takes exactly `size` bytes, once.
pub async fn announce(State(state): State<Messaging>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = parse_body(&headers, &read_body(body, gate::MAX_BODY_BYTES).await?)?;
        let app = state.app();
        let caller = app.caller(&headers, Scope::Write).await?;
        let fields = input::validate_all(upload::FIELDS, &[], &body).map_err(ApiError::InvalidRequest)?;
        let size = fields.get("size").and_then(Value::as_u64).and_then(|size| u32::try_from(size).ok());
        let size = size.ok_or_else(|| ApiError::field("size", "is too large"))?;
        upload::check_reserved(&app.db, caller.agent).await?;
        let bytes = usize::try_from(size).unwrap_or(usize::MAX);
        limits::take_bytes(app, Subject::Agent(caller.agent), Class::Stored, bytes).await?;
        let (toolbox, now) = (state.toolbox(), app.clock.now());
        let upload = Upload::new(size, now);
        let body = json!({
            "upload_id": upload.name(&toolbox.mail_secret, caller.agent),
            "url": upload.url(toolbox, caller.agent)?,
            "method": "PUT",
            "headers": {
                "content-type": upload::CONTENT_TYPE,
                "content-length": size.to_string(),
                "if-none-match": "*",
            },
            "expires_at": now.plus(upload::URL_VALID).to_string(),
            "attachable_until": upload.expires().to_string(),
            "max_bytes": size,
        });
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}
