//! Access tokens. Only the wallet may mint, list and revoke them.

use std::collections::BTreeMap;
use std::time::Duration;

use api::operations::account::MINT;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use base::ids::TokenId;
use base::input::{self, FieldError};
use base::money::Usdc;
use gate::app::App;
use gate::idempotency::{self, Request};
use gate::{parse_body, respond};
use http::{HeaderMap, StatusCode};
use ledger::day::{self, Day};
use ledger::token_spend::{self, TokenSpend};
use platform::auth::token::{self, AccessToken, MAX_ACTIVE, Page, TokenCaps};
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
        let mut given = body.clone();
        given.retain(|_, value| !value.is_null());
        let (input, caps) = read(&body, &given).map_err(ApiError::InvalidRequest)?;
        let caller = app.wallet_caller(&headers, Scope::Write, ApiError::WalletOnly).await?;
        let route = "POST /v1/agents/me/access-tokens";
        let request = Request { caller: &caller, headers: &headers, route, body: &given, secret: Some("token") };
        idempotency::once(&app, request, make(&app, &caller, &input, caps)).await
    };
    respond(answer.await)
}

/// The validated members and the caps. `given` is the body without `null`s; an unknown member is refused even if it is
/// `null`.
fn read(
    body: &Map<String, Value>,
    given: &Map<String, Value>,
) -> Result<(Map<String, Value>, TokenCaps), Vec<FieldError>> {
    let mut errors = input::unknown(MINT, &[], body);
    let input = match input::validate(MINT, given) {
        Ok(input) => input,
        Err(wrong) => {
            errors.extend(wrong);
            return Err(errors);
        }
    };
    let caps = TokenCaps {
        per_transaction: cap(&input, "per_transaction", "per_transaction_usdc", &mut errors),
        daily: cap(&input, "daily", "daily_usdc", &mut errors),
        lifetime: cap(&input, "lifetime", "lifetime_usdc", &mut errors),
    };
    if errors.is_empty() { Ok((input, caps)) } else { Err(errors) }
}

/// A cap of a validated body, by its name or by `alias`, the one of answers. Both may be there if they are equal.
fn cap(input: &Map<String, Value>, name: &str, alias: &str, errors: &mut Vec<FieldError>) -> Option<Usdc> {
    let mut of = |name: &str| {
        // Amounts that are validated are strings.
        let text = input.get(name)?.as_str().unwrap_or_default();
        Usdc::parse_plain(text).map_err(|wrong| errors.push(FieldError::new(name, wrong.to_string()))).ok()
    };
    let (cap, same) = (of(name), of(alias));
    if cap.is_some() && same.is_some() && cap != same {
        errors.push(FieldError::new(alias, format!("is the same as {name}: send one")));
    }
    cap.or(same)
}

async fn make(
    app: &App,
    caller: &Caller,
    input: &Map<String, Value>,
    caps: TokenCaps,
) -> Result<(StatusCode, Value), ApiError> {
    let now = app.clock.now();
    let expires = input.get("expires_in_days").and_then(Value::as_u64).and_then(|days| u32::try_from(days).ok());
    let expires = expires.map(|days| now.plus(DAY * days));
    let name = input.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned);
    let prefix = app.config.token_prefixes.first().map_or("agent_", String::as_str);
    let minted = token::mint_capped(&app.db, prefix, caller.wallet, name, expires, caps, now).await?;
    let minted = minted.ok_or(ApiError::TooManyAccessTokens { most: MAX_ACTIVE })?;
    let mut about = describe(&minted.token);
    about["token"] = json!(minted.secret);
    Ok((StatusCode::CREATED, json!({"success": true, "data": about})))
}

/// `GET /v1/agents/me/access-tokens`: newest first, by cursor; `active=true|false` filters.
pub async fn list(State(app): State<App>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        params.only(&["active", "limit", "cursor"]);
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
        let shown: Vec<&AccessToken> =
            page.tokens.iter().filter(|token| active.is_none_or(|active| token.is_active(now) == active)).collect();
        let counted: Vec<TokenId> =
            shown.iter().filter(|token| token.caps.lifetime.is_some()).map(|token| token.id).collect();
        let spends = token_spend::load_all(db, agent, &counted).await?;
        let spends: BTreeMap<TokenId, TokenSpend> = counted.into_iter().zip(spends).collect();
        let tokens: Vec<Value> = shown
            .into_iter()
            .map(|token| {
                let mut about = describe(token);
                about["spent_today_usdc"] = json!(today.of_token(token.id).to_string());
                about["spent_usdc"] = json!(spends.get(&token.id).map(|spend| spend.spent.to_string()));
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

/// What an access token may spend and has spent, for the token itself; `None` for a wallet. `today` are the counters of its
/// owner's day.
pub async fn own(app: &App, caller: &Caller, today: &Day) -> Result<Option<Value>, ApiError> {
    let Some(id) = caller.token() else { return Ok(None) };
    let caps = caller.caps();
    let spent = match caps.lifetime {
        Some(_) => Some(token_spend::load(&app.db, caller.agent, id).await?.spent),
        None => None,
    };
    let spent_today = today.of_token(id);
    let left = |cap: Option<Usdc>, spent: Usdc| cap.map(|cap| cap.checked_sub(spent).unwrap_or_default());
    let remaining = [left(caps.daily, spent_today), left(caps.lifetime, spent.unwrap_or_default())];
    let mut about = described(caps);
    about["id"] = json!(id);
    about["spent_today_usdc"] = json!(spent_today.to_string());
    about["spent_usdc"] = json!(spent.map(|spent| spent.to_string()));
    about["remaining_usdc"] = json!(remaining.into_iter().flatten().min().map(|left| left.to_string()));
    Ok(Some(about))
}

/// Caps as answers show them.
fn described(caps: TokenCaps) -> Value {
    let amount = |cap: Option<Usdc>| cap.map(|cap| cap.to_string());
    json!({
        "per_transaction_usdc": amount(caps.per_transaction),
        "daily_usdc": amount(caps.daily),
        "lifetime_usdc": amount(caps.lifetime),
    })
}

fn describe(token: &AccessToken) -> Value {
    let mut about = json!({
        "id": token.id,
        "token_prefix": token.shown,
        "name": token.name,
        "source": "wallet",
        "created_at": token.created_at.to_string(),
        "expires_at": token.expires_at.map(|at| at.to_string()),
        "revoked_at": token.revoked_at.map(|at| at.to_string()),
        "last_used_at": token.used_at.map(|at| at.to_string()),
        "created_by": token.wallet.to_string(),
    });
    if let (Value::Object(about), Value::Object(caps)) = (&mut about, described(token.caps)) {
        about.extend(caps);
    }
    about
}
