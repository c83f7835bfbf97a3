//! The service about itself: where to go, whether it is well, what it has done, and its public keys. Also answers every
//! path that no other group has.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use common::app::App;
use common::catalog::CATALOG;
use common::gate::respond;
use common::http::{ApiError, Segment, json, public_json};
use common::ledger::signing;
use common::stats;
use http::StatusCode;
use serde_json::json;

pub fn router(app: App) -> Router {
    let router = Router::new()
        .route("/", get(index))
        .route("/health", get(health))
        .route("/v1/stats", get(statistics))
        .route("/.well-known/jwks.json", get(jwks))
        .route("/.well-known/acp.json", get(acp))
        .route("/.well-known/{document}", get(well_known));
    common::http::routes::finish(router.with_state(app))
}

/// `GET /`: what this is and where to go.
async fn index(State(app): State<App>) -> Response {
    let tools: Vec<_> = CATALOG
        .iter()
        .map(|tool| json!({"tool": tool.name, "method": "POST", "path": tool.path(), "price_usdc": tool.price.usual().to_string(), "summary": tool.summary}))
        .collect();
    let body = json!({
        "service": app.config.service_name,
        "version": env!("CARGO_PKG_VERSION"),
        "network": app.config.chain.caip2(),
        "tools": tools,
        "how_to_pay": "POST to a tool's path: the 402 answer says what to sign (x402 v1 and v2)",
        "jobs": "/v1/requests/{id}",
        "payments": "/v1/payments/{nonce or transaction hash}",
        "health": "/health",
    });
    public_json(&body, 300)
}

/// `GET /health`: this process answers.
async fn health(State(app): State<App>) -> Response {
    let body = json!({"status": "ok", "service": app.config.service_name, "timestamp": app.clock.now().to_string()});
    json(StatusCode::OK, &body)
}

/// `GET /v1/stats`: what the service has done so far. A few seconds behind.
async fn statistics(State(app): State<App>) -> Response {
    let answer = async {
        let stats = stats::load(&app.db).await?;
        Ok(public_json(&stats.to_json(), 10))
    };
    respond(answer.await)
}

/// `GET /.well-known/acp.json`: where agent platforms open checkout sessions.
async fn acp(State(app): State<App>, request: axum::extract::Request) -> Response {
    let (parts, _) = request.into_parts();
    let url = app.resource_url(&parts);
    let origin = url.strip_suffix(parts.uri.path()).unwrap_or(&url);
    public_json(&common::checkout::manifest::discovery(origin), 3600)
}

/// `GET /.well-known/jwks.json`: the keys receipts are signed with.
async fn jwks(State(app): State<App>) -> Response {
    respond(keys(&app).await)
}

/// `GET /.well-known/<service>-receipts.json`: the same keys, at the path the SDKs read.
async fn well_known(State(app): State<App>, Segment(document): Segment) -> Response {
    let receipts = format!("{}-receipts.json", app.config.service_name.to_ascii_lowercase());
    let answer = async { if document == receipts { keys(&app).await } else { Err(ApiError::NotFound) } };
    respond(answer.await)
}

async fn keys(app: &App) -> Result<Response, ApiError> {
    let keys: Vec<_> = signing::published(&app.db).await?.iter().map(signing::PublicKey::jwk).collect();
    Ok(public_json(&json!({"keys": keys}), 300))
}
