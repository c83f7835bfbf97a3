//! The service about itself: where to go, whether it is well, what it has done, and its public keys. Also answers every
//! path that no other group has.

mod documents;

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::{FromRef, State};
use axum::response::Response;
use axum::routing::get;
use common::app::App;
use common::catalog::CATALOG;
use common::gate::respond;
use common::http::{ApiError, Segment, json, public_json};
use common::ledger::signing;
use common::stats;
use documents::Document;
use http::{HeaderMap, StatusCode};
use serde_json::json;

/// What the routes share.
#[derive(Clone)]
struct Desk {
    app: App,
    /// Made when it is first asked for.
    openapi: Arc<OnceLock<Document>>,
}

impl FromRef<Desk> for App {
    fn from_ref(desk: &Desk) -> App {
        desk.app.clone()
    }
}

pub fn router(app: App) -> Router {
    let router = Router::new()
        .route("/", get(index))
        .route("/health", get(health))
        .route("/v1/stats", get(statistics))
        .route("/.well-known/jwks.json", get(jwks))
        .route("/.well-known/{document}", get(well_known))
        .route("/openapi.json", get(openapi))
        .route("/docs", get(docs))
        .route("/docs/{asset}", get(docs_asset));
    common::http::routes::finish(router.with_state(Desk { app, openapi: Arc::default() }))
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
        "jobs": "GET /v1/requests/{id}",
        "payments": "GET /v1/payments/{reference}, a nonce or a transaction hash",
        "health": "/health",
        "openapi": "/openapi.json",
        "docs": "/docs",
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

/// `GET /openapi.json`: every operation, for machines.
async fn openapi(State(desk): State<Desk>, headers: HeaderMap) -> Response {
    let document = match desk.openapi.get() {
        Some(document) => Ok(document),
        None => Document::openapi(&desk.app).map(|document| desk.openapi.get_or_init(|| document)),
    };
    respond(document.map(|document| document.answer(&headers)))
}

/// `GET /docs`: the same for people.
async fn docs(State(app): State<App>) -> Response {
    documents::page(&app.config.service_name)
}

/// `GET /docs/{asset}`
async fn docs_asset(Segment(asset): Segment, headers: HeaderMap) -> Response {
    let own = documents::own_asset(&asset);
    let answer = own.or_else(|| Document::asset(&asset).map(|asset| asset.answer(&headers)));
    respond(answer.ok_or(ApiError::NotFound))
}
