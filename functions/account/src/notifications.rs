//! Notifications: wallets and tokens list them and mark them as read.

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use axum::routing::{get, patch};
use base::input::FieldError;
use gate::app::App;
use gate::{empty_body, respond};
use http::{HeaderMap, StatusCode};
use ledger::notifications::{self, MOST_LISTED, NotificationId};
use platform::auth::Scope;
use platform::http::{ApiError, Segment, private_json};
use serde_json::json;

const LISTED: u64 = 50;

type Pairs = Result<Query<Vec<(String, String)>>, QueryRejection>;

pub fn routes() -> Router<App> {
    Router::new()
        .route("/v1/tools/notifications", get(list))
        .route("/v1/tools/notifications/read-all", patch(read_all))
        .route("/v1/tools/notifications/{id}/read", patch(read))
}

/// `GET /v1/tools/notifications`: newest first.
async fn list(State(app): State<App>, query: Pairs, headers: HeaderMap) -> Response {
    let answer = async {
        let asked = Asked::read(query)?;
        let caller = app.caller(&headers, Scope::Read).await?;
        let notes = notifications::list(&app.db, caller.agent, asked.unread, asked.limit).await?;
        let count = notes.len();
        Ok(private_json(StatusCode::OK, &json!({"notifications": notes, "count": count})))
    };
    respond(answer.await)
}

/// `PATCH /v1/tools/notifications/{id}/read`
async fn read(State(app): State<App>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        empty_body(&headers, body).await?;
        // Older clients send a read proof. That is safe: only the caller's own read marks change.
        let caller = app.caller(&headers, Scope::Read).await?;
        let id: NotificationId = id.parse().map_err(|()| ApiError::NotificationNotFound)?;
        let updated = notifications::read(&app.db, caller.agent, id).await?.ok_or(ApiError::NotificationNotFound)?;
        Ok(private_json(StatusCode::OK, &json!({"success": true, "updated": updated})))
    };
    respond(answer.await)
}

/// `PATCH /v1/tools/notifications/read-all`
async fn read_all(State(app): State<App>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        empty_body(&headers, body).await?;
        let caller = app.caller(&headers, Scope::Read).await?;
        let updated = notifications::read_all(&app.db, caller.agent, app.clock.now()).await?;
        Ok(private_json(StatusCode::OK, &json!({"success": true, "updated": updated})))
    };
    respond(answer.await)
}

struct Asked {
    unread: bool,
    limit: usize,
}

impl Asked {
    fn read(query: Pairs) -> Result<Asked, ApiError> {
        let Query(pairs) = query.map_err(|_| ApiError::field("", "the query cannot be read"))?;
        let mut asked = Asked { unread: false, limit: LISTED as usize };
        let mut wrong = Vec::new();
        for (name, value) in pairs {
            match name.as_str() {
                "unread" => match value.to_ascii_lowercase().as_str() {
                    "true" | "1" => asked.unread = true,
                    "false" | "0" => asked.unread = false,
                    _ => wrong.push(FieldError::new("unread", "must be true or false")),
                },
                "limit" => match value.parse::<u64>() {
                    Ok(limit) if (1..=MOST_LISTED).contains(&limit) => asked.limit = limit as usize,
                    _ => wrong.push(FieldError::new("limit", format!("must be from 1 to {MOST_LISTED}"))),
                },
                _ => {}
            }
        }
        if wrong.is_empty() { Ok(asked) } else { Err(ApiError::InvalidRequest(wrong)) }
    }
}
