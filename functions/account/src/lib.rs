//! The agent's own: who it is and what it has.

mod notifications;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use common::app::App;
use common::auth::Scope;
use common::evm::word_to_u64;
use common::gate::respond;
use common::http::{ApiError, private_json};
use common::ledger::credit;
use common::money::Usdc;
use common::store::StoreError;
use http::{HeaderMap, StatusCode};
use serde_json::json;

pub fn router(app: App) -> Router {
    let router = Router::new().route("/v1/agents/me", get(me)).route("/v1/tools/balance", get(balance));
    common::http::routes::finish(router.merge(notifications::routes()).with_state(app))
}

/// `GET /v1/agents/me`: the agent behind the proof.
async fn me(State(app): State<App>, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = app.caller(&headers, Scope::Read).await?;
        let data =
            json!({"agent_id": caller.agent, "wallet_address": caller.wallet.to_string(), "auth_mode": "wallet"});
        Ok(private_json(StatusCode::OK, &json!({"success": true, "data": data})))
    };
    respond(answer.await)
}

/// `GET /v1/tools/balance`: USDC on chain, and credits here.
async fn balance(State(app): State<App>, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = app.caller(&headers, Scope::Read).await?;
        let (on_chain, credits) =
            tokio::join!(app.chain.balance_of(caller.wallet), credit::balance(&app.db, caller.agent));
        let on_chain = on_chain.map_err(|error| ApiError::Unavailable(StoreError::new(error)))?;
        let body = json!({
            // More than 2^64 micro-USDC is more than there is.
            "on_chain_balance": Usdc::from_micro(word_to_u64(&on_chain).unwrap_or(u64::MAX)).to_string(),
            "credits_balance": credits?.credits.to_string(),
            "currency": "USDC",
            "address": caller.wallet.to_string(),
            "chain_id": app.config.chain.chain_id,
        });
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}
