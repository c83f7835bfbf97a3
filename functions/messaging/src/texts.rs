//! The texts an agent has received.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use gate::limits::{self, Class, Subject};
use gate::respond;
use http::{HeaderMap, StatusCode};
use platform::auth::{Caller, Scope};
use platform::http::{ApiError, Params, Segment, private_text};
use serde_json::{Value, json};
use tools_sms::inbox::{self, MAX_PAGE, MAX_SENDER};
use uuid::Uuid;

use crate::Messaging;

const DEFAULT_LIMIT: usize = 50;

/// `GET /v1/tools/sms/inbox`: newest first; of one sender, with `from`. A page of the longest texts has 1.3 MB.
pub async fn list(State(state): State<Messaging>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        let since = params.time("since");
        let limit = params.integer("limit", 1, MAX_PAGE).unwrap_or(DEFAULT_LIMIT);
        let from = params.short_text("from", MAX_SENDER).map(|from| inbox::sender(&from));
        let before = params.text("cursor").map(|cursor| Uuid::try_parse(cursor).map_err(|_| ApiError::InvalidCursor));
        let before = before.transpose()?;
        params.check()?;
        let app = state.app();
        let caller = app.caller(&headers, Scope::Read).await?;
        let (mut texts, mut has_more) =
            inbox::inbox(&app.db, caller.agent, from.as_deref(), since, before, limit).await?;
        // Expired texts count as gone, and are the oldest ones. DynamoDB deletes them later.
        let (now, read) = (app.clock.now(), texts.len());
        texts.retain(|text| !text.is_expired(now));
        has_more &= texts.len() == read;
        let messages: Vec<Value> = texts.iter().map(inbox::view).collect();
        let agent_id = caller.wallet.to_string();
        let mut body = json!({"count": messages.len(), "has_more": has_more, "agent_id": agent_id});
        body["messages"] = Value::Array(messages);
        if let Some(last) = texts.last().filter(|_| has_more) {
            body["next_cursor"] = json!(last.id);
        }
        counted(&state, &caller, &body).await
    };
    respond(answer.await)
}

/// `GET /v1/tools/sms/inbox/{messageId}`
pub async fn show(State(state): State<Messaging>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let app = state.app();
        let caller = app.caller(&headers, Scope::Read).await?;
        let id = Uuid::try_parse(&id).map_err(|_| message_not_found())?;
        let text = inbox::text(&app.db, caller.agent, id).await?;
        let text = text.filter(|text| !text.is_expired(app.clock.now())).ok_or_else(message_not_found)?;
        counted(&state, &caller, &inbox::view(&text)).await
    };
    respond(answer.await)
}

/// The answer. Its bytes are counted like those of other long lists.
async fn counted(state: &Messaging, caller: &Caller, body: &Value) -> Result<Response, ApiError> {
    let text = body.to_string();
    limits::take_list(state.app(), Subject::Agent(caller.agent), Class::Export, text.len()).await?;
    Ok(private_text(StatusCode::OK, text))
}

fn message_not_found() -> ApiError {
    ApiError::Tool {
        status: StatusCode::NOT_FOUND,
        code: "message_not_found",
        message: "your inbox has no text with this id; texts are kept for 30 days".to_owned(),
    }
}
