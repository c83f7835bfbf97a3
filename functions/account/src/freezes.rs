//! Freezes stop an agent, a token, a tool or a payee at once, until they are lifted. Something frozen buys nothing, its
//! queued jobs are refunded instead of done, and credits held for its quotes are released.

use api::operations::account::FREEZE;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use base::ids::TokenId;
use base::input;
use gate::app::App;
use gate::{parse_body, respond};
use http::{HeaderMap, StatusCode};
use ledger::freeze::{Freezes, SERVICE_PAYEE};
use ledger::{account, hold};
use market::soul;
use platform::auth::{Scope, token};
use platform::http::{ApiError, read_body};
use serde_json::{Value, json};
use tools::spec::Catalog;

const MAX_BODY_BYTES: usize = 16 * 1024;
/// Limit of freezes of one kind: each is a condition of every charge.
const MOST: usize = 50;

/// Something that can be frozen.
enum Target {
    Agent,
    Token(TokenId),
    Tool(String),
    Payee(String),
}

/// `GET /v1/agents/me/freezes`
pub async fn show(State(app): State<App>, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = app.stopping_caller(&headers, Scope::Read).await?;
        let account = account::load(&app.db, caller.agent).await?;
        Ok(super::data(StatusCode::OK, &describe(&account.frozen)))
    };
    respond(answer.await)
}

/// `POST /v1/agents/me/freezes`
pub async fn freeze(State(app): State<App>, headers: HeaderMap, body: Body) -> Response {
    respond(set(&app, &headers, body, true).await)
}

/// `POST /v1/agents/me/freezes/lift`
pub async fn lift(State(app): State<App>, headers: HeaderMap, body: Body) -> Response {
    respond(set(&app, &headers, body, false).await)
}

async fn set(app: &App, headers: &HeaderMap, body: Body, frozen: bool) -> Result<Response, ApiError> {
    let body = parse_body(headers, &read_body(body, MAX_BODY_BYTES).await?)?;
    let target = target(&input::validate_all(FREEZE, &[], &body).map_err(ApiError::InvalidRequest)?, app.catalog)?;
    let caller = match frozen {
        true => app.stopping_caller(headers, Scope::Write).await?,
        false => app.caller(headers, Scope::Write).await?,
    };
    let caller = caller.wallet_only(ApiError::WalletOnly)?;
    // A freeze can be lifted after its token is deleted.
    if let (Target::Token(token), true) = (&target, frozen)
        && !token::exists(&app.db, caller.agent, *token).await?
    {
        return Err(ApiError::field("id", "is not an access token of yours"));
    }
    if let Target::Payee(payee) = &target
        && payee != SERVICE_PAYEE
        && soul::load(&app.db, payee).await?.is_none()
    {
        return Err(ApiError::field("id", format!("is not a payee: it must be `{SERVICE_PAYEE}` or a soul's slug")));
    }
    let now = account::load(&app.db, caller.agent).await?.frozen;
    let full = match &target {
        Target::Agent => false,
        Target::Token(_) => now.tokens.len() >= MOST,
        Target::Tool(_) => now.tools.len() >= MOST,
        Target::Payee(_) => now.payees.len() >= MOST,
    };
    if frozen && full {
        return Err(ApiError::field("id", format!("at most {MOST} of a kind can be frozen; freeze the agent instead")));
    }
    let account = account::change_rules(&app.db, caller.agent, |account| apply(&mut account.frozen, &target, frozen));
    let mut about = describe(&account.await?.frozen);
    if frozen {
        // Quotes of frozen things cannot be paid any more. All holds are released; other quotes are quickly made again.
        let released = hold::release(&app.db, caller.agent, true, app.clock.now()).await?;
        about["credits_released"] = json!(released.to_string());
    }
    Ok(super::data(StatusCode::OK, &about))
}

fn target(input: &serde_json::Map<String, Value>, catalog: &Catalog) -> Result<Target, ApiError> {
    let id = input.get("id").and_then(Value::as_str);
    match (input["what"].as_str().unwrap_or_default(), id) {
        ("agent", None) => Ok(Target::Agent),
        // Something else may be meant than everything.
        ("agent", Some(_)) => Err(ApiError::field("id", "does not belong to an agent: leave it out")),
        (_, None) => Err(ApiError::field("id", "is required, except for an agent")),
        ("token", Some(id)) => {
            id.parse().map(Target::Token).map_err(|_| ApiError::field("id", "must be the id of an access token"))
        }
        // Refuses unknown tools: the owner would believe that the freeze protects.
        ("tool", Some(id)) => match catalog.name_of(id) {
            Some(tool) => Ok(Target::Tool(tool.to_owned())),
            None => Err(ApiError::field("id", "is not a tool of this service")),
        },
        (_, Some(payee)) => Ok(Target::Payee(payee.to_owned())),
    }
}

fn apply(frozen: &mut Freezes, target: &Target, on: bool) {
    fn put<T: Ord + Clone>(set: &mut std::collections::BTreeSet<T>, value: &T, on: bool) {
        if on {
            set.insert(value.clone());
        } else {
            set.remove(value);
        }
    }
    match target {
        Target::Agent => frozen.agent = on,
        Target::Token(token) => put(&mut frozen.tokens, token, on),
        Target::Tool(tool) => put(&mut frozen.tools, tool, on),
        Target::Payee(payee) => put(&mut frozen.payees, payee, on),
    }
}

fn describe(frozen: &Freezes) -> Value {
    json!({"agent": frozen.agent, "tokens": frozen.tokens, "tools": frozen.tools, "payees": frozen.payees})
}
