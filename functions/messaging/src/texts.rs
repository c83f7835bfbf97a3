//! The texts an agent has received.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use gate::respond;
use http::{HeaderMap, StatusCode};
use platform::auth::Scope;
use platform::http::{ApiError, Params, Segment};
use tools_sms::inbox::{self, MAX_SENDER};
use uuid::Uuid;

use crate::Messaging;
use crate::page::{self, Page};

/// `GET /v1/tools/sms/inbox`: newest first; of one sender, with `from`. A page of the longest texts has 1.3 MB.
pub async fn list(State(state): State<Messaging>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        let Page { since, limit, before } = Page::of(&mut params)?;
        let from = params.short_text("from", MAX_SENDER).map(|from| inbox::sender(&from));
        params.check()?;
        let app = state.app();
        let caller = app.caller(&headers, Scope::Read).await?;
        let (mut texts, has_more) = inbox::inbox(&app.db, caller.agent, from.as_deref(), since, before, limit).await?;
        let now = app.clock.now();
        let has_more = page::leave_out_expired(&mut texts, has_more, |text| text.is_expired(now));
        let next = texts.last().filter(|_| has_more).map(|last| last.id);
        page::answer(&state, &caller, "messages", texts.iter().map(inbox::view).collect(), next).await
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
        page::counted(&state, &caller, &inbox::view(&text)).await
    };
    respond(answer.await)
}

fn message_not_found() -> ApiError {
    ApiError::Tool {
        status: StatusCode::NOT_FOUND,
        code: "message_not_found",
        message: "your inbox has no text with this id; texts are kept for 30 days".to_owned(),
    }
}
