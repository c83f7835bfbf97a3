//! Pages of what an agent received: mails and texts.

use axum::response::Response;
use base::clock::Timestamp;
use gate::limits::{self, Class, Subject};
use http::StatusCode;
use platform::auth::Caller;
use platform::http::{ApiError, Params, private_text};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Messaging;

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;

/// The page that is asked for.
pub struct Page {
    pub since: Option<Timestamp>,
    pub limit: usize,
    /// The last item of the page before.
    pub before: Option<Uuid>,
}

impl Page {
    /// Reads `since`, `limit` and `cursor`. What is wrong with the first two is in `params` then.
    ///
    /// # Errors
    /// 400 `invalid_cursor`.
    pub fn of(params: &mut Params) -> Result<Page, ApiError> {
        let since = params.time("since");
        let limit = params.integer("limit", 1, MAX_LIMIT).unwrap_or(DEFAULT_LIMIT);
        let before = params.text("cursor").map(|cursor| Uuid::try_parse(cursor).map_err(|_| ApiError::InvalidCursor));
        Ok(Page { since, limit, before: before.transpose()? })
    }
}

/// Leaves out expired items, and tells whether there is another page. They count as gone, and are the oldest ones; DynamoDB
/// deletes them later.
pub fn leave_out_expired<T>(items: &mut Vec<T>, has_more: bool, is_expired: impl Fn(&T) -> bool) -> bool {
    let read = items.len();
    items.retain(|item| !is_expired(item));
    has_more && items.len() == read
}

/// The answer: the items under `name`. `next`: the last of them, if there is another page.
pub async fn answer(
    state: &Messaging,
    caller: &Caller,
    name: &str,
    items: Vec<Value>,
    next: Option<Uuid>,
) -> Result<Response, ApiError> {
    let agent_id = caller.wallet.to_string();
    let mut body = json!({"count": items.len(), "has_more": next.is_some(), "agent_id": agent_id});
    body[name] = Value::Array(items);
    if let Some(next) = next {
        body["next_cursor"] = json!(next);
    }
    counted(state, caller, &body).await
}

/// An answer whose bytes are counted like those of other long lists.
pub async fn counted(state: &Messaging, caller: &Caller, body: &Value) -> Result<Response, ApiError> {
    let text = body.to_string();
    limits::take_list(state.app(), Subject::Agent(caller.agent), Class::Export, text.len()).await?;
    Ok(private_text(StatusCode::OK, text))
}
