//! The agent's own account: identity, balance, budgets, freezes, access tokens, notifications.

mod budgets;
mod freezes;
mod notifications;
mod tokens;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{delete, get, post};
use base::money::Usdc;
use evm::word_to_u64;
use gate::app::App;
use gate::limits::{self, Class, Subject};
use gate::respond;
use http::{HeaderMap, StatusCode};
use ledger::{account, day, hold};
use platform::auth::{Scope, Session};
use platform::http::{ApiError, private_json};
use platform::store::StoreError;
use serde_json::{Value, json};

pub fn router(app: App) -> Router {
    let router = Router::new()
        .route("/v1/agents/me", get(me))
        .route("/v1/agents/me/budgets", get(budgets::show).put(budgets::change))
        .route("/v1/agents/me/access-tokens", get(tokens::list).post(tokens::mint))
        .route("/v1/agents/me/access-tokens/{id}", delete(tokens::revoke))
        .route("/v1/agents/me/freezes", get(freezes::show).post(freezes::freeze))
        .route("/v1/agents/me/freezes/lift", post(freezes::lift))
        .route("/v1/tools/balance", get(balance));
    api::routes::finish(router.merge(notifications::routes()).with_state(app))
}

/// The envelope of routes about the agent itself.
fn data(status: StatusCode, data: &Value) -> Response {
    private_json(status, &json!({"success": true, "data": data}))
}

/// `GET /v1/agents/me`: the agent behind the proof or the token, and what the token may spend.
async fn me(State(app): State<App>, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = app.caller(&headers, Scope::Read).await?;
        let mode = match caller.session {
            Session::Wallet(_) => "wallet",
            Session::Token { .. } => "access_token",
        };
        let mut about =
            json!({"agent_id": caller.agent, "wallet_address": caller.wallet.to_string(), "auth_mode": mode});
        if caller.token().is_some() {
            let today = day::load(&app.db, caller.agent, &day::name(app.clock.now())).await?;
            about["token"] = json!(tokens::own(&app, &caller, &today).await?);
        }
        Ok(data(StatusCode::OK, &about))
    };
    respond(answer.await)
}

/// `GET /v1/tools/balance`: USDC on chain, and credits.
async fn balance(State(app): State<App>, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = app.caller(&headers, Scope::Read).await?;
        let mut account = account::load(&app.db, caller.agent).await?;
        // A wallet costs nothing, and a question to the chain does: those without money share the limit of their source.
        if !account.is_proven() {
            limits::take(&app, Subject::source(), Class::Read).await?;
        }
        let on_chain = app.chain.balance_of(caller.wallet).await;
        let on_chain = on_chain.map_err(|error| ApiError::Unavailable(StoreError::new(error)))?;
        if account.reserved > Usdc::ZERO {
            // Credits held for expired quotes are spendable again.
            let released = hold::release(&app.db, caller.agent, false, app.clock.now()).await?;
            account.credits = account.credits.checked_add(released).unwrap_or(account.credits);
            account.reserved = account.reserved.checked_sub(released).unwrap_or_default();
        }
        let body = json!({
            // The total supply is less than 2^64 micro-USDC.
            "on_chain_balance": Usdc::from_micro(word_to_u64(&on_chain).unwrap_or(u64::MAX)).to_string(),
            "credits_balance": account.spendable().to_string(),
            "credits_reserved": account.reserved.to_string(),
            "credits_owed": account.owed().to_string(),
            "currency": "USDC",
            "address": caller.wallet.to_string(),
            "chain_id": app.config.chain.chain_id,
        });
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}
