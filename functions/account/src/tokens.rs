//! Access tokens. Only the wallet may mint, list and revoke them.

use std::time::Duration;

use api::operations::account::MINT;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use base::input;
use gate::app::App;
use gate::idempotency::{self, Request};
use gate::{parse_body, respond};
use http::{HeaderMap, StatusCode};
use ledger::day;
use platform::auth::token::{self, AccessToken, MAX_ACTIVE, Page};
use platform::auth::{Caller, Scope};
use platform::http::{ApiError, Params, Segment, read_body};
use serde_json::{Map, Value, json};

const MAX_BODY_BYTES: usize = 16 * 1024;
/// `last_used_at` is searched on this many of the latest days with charges.
const USES_OF_DAYS: usize = 30;
/// Largest page.
const MOST_LISTED: usize = 100;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// `POST /v1/agents/me/access-tokens`: only this answer contains the token itself.
pub async fn mint(State(app): State<App>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = parse_body(&headers, &read_body(body, MAX_BODY_BYTES).await?)?;
        // `null` counts as absent.
        let given = body.into_iter().filter(|(_, value)| !value.is_null()).collect();
        let input = input::validate(MINT, &given).map_err(ApiError::InvalidRequest)?;
        let caller = app.wallet_caller(&headers, Scope::Write, ApiError::WalletOnly).await?;
        let route = "POST /v1/agents/me/access-tokens";
        let request = Request { caller: &caller, headers: &headers, route, body: &given, secret: Some("token") };
        idempotency::once(&app, request, make(&app, &caller, &input)).await
    };
    respond(answer.await)
}

async fn make(app: &App, caller: &Caller, input: &Map<String, Value>) -> Result<(StatusCode, Value), ApiError> {
    let now = app.clock.now();
    let expires = input.get("expires_in_days").and_then(Value::as_u64).and_then(|days| u32::try_from(days).ok());
    let expires = expires.map(|days| now.plus(DAY * days));
    let name = input.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned);
    let prefix = app.config.token_prefixes.first().map_or("agent_", String::as_str);
    let minted = token::mint(&app.db, prefix, caller.wallet, name, expires, now).await?;
    let minted = minted.ok_or(ApiError::TooManyAccessTokens { most: MAX_ACTIVE })?;
    let mut about = describe(&minted.token);
    about["token"] = json!(minted.secret);
    Ok((StatusCode::CREATED, json!({"success": true, "data": about})))
}

/// `GET /v1/agents/me/access-tokens`: newest first, by cursor; `active=true|false` filters.
pub async fn list(State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        let active = params.choice("active", &["true", "false"]).map(|active| active == "true");
        let limit = params.integer("limit", 1, MOST_LISTED).unwrap_or(MOST_LISTED);
        let cursor = params.text("cursor").map(|text| text.parse().map_err(|_| ApiError::InvalidCursor));
        params.check()?;
        let cursor = cursor.transpose()?;
        let caller = app.stopping_caller(&headers, Scope::Read).await?.wallet_only(ApiError::WalletOnly)?;
        let (now, db, agent) = (app.clock.now(), &app.db, caller.agent);
        let page = async {
            match active {
                // Active tokens are few and fit on one page.
                Some(true) => Ok(Page { tokens: token::active(db, agent, now).await?, next: None }),
                _ => token::page(db, agent, cursor, limit).await,
            }
        };
        let today = day::name(now);
        let days = day::until(db, agent, &today, USES_OF_DAYS);
        let (page, today, days) = tokio::join!(page, day::load(db, agent, &today), days);
        let (page, today, days): (Page, _, _) = (page?, today?, days?);
        let tokens: Vec<Value> = page
            .tokens
            .iter()
            .filter(|token| active.is_none_or(|active| token.is_active(now) == active))
            .map(|token| {
                let mut about = describe(token);
                about["spent_today_usdc"] = json!(today.of_token(token.id).to_string());
                let paid = [&today].into_iter().chain(&days).filter_map(|day| day.used_by(token.id)).max();
                about["last_used_at"] = json!(paid.max(token.used_at).map(|at| at.to_string()));
                about
            })
            .collect();
        let body = json!({"tokens": tokens, "has_more": page.next.is_some(), "next_cursor": page.next});
        Ok(super::data(StatusCode::OK, &body))
    };
    respond(answer.await)
}

/// `DELETE /v1/agents/me/access-tokens/{id}`: the next request with the token is refused.
pub async fn revoke(State(app): State<App>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = app.stopping_caller(&headers, Scope::Write).await?.wallet_only(ApiError::WalletOnly)?;
        let id = id.parse().map_err(|_| ApiError::AccessTokenNotFound)?;
        let revoked = token::revoke(&app.db, caller.agent, id, app.clock.now()).await?;
        let revoked = revoked.ok_or(ApiError::AccessTokenNotFound)?;
        Ok(super::data(StatusCode::OK, &json!({"id": id, "revoked_at": revoked.to_string()})))
    };
    respond(answer.await)
}

fn describe(token: &AccessToken) -> Value {
    json!({
        "id": token.id,
        "token_prefix": token.shown,
        "name": token.name,
        "source": "wallet",
        "created_at": token.created_at.to_string(),
        "expires_at": token.expires_at.map(|at| at.to_string()),
        "revoked_at": token.revoked_at.map(|at| at.to_string()),
        "last_used_at": token.used_at.map(|at| at.to_string()),
        "created_by": token.wallet.to_string(),
    })
}
