//! Status, prices, statistics and public keys of the service, and the documents by which agents find it. Also answers every
//! path that no other group has.

mod documents;
mod status;

use std::sync::{Arc, Mutex, PoisonError};

use api::discovery::{Documents, Library, search};
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gate::app::App;
use gate::limits;
use gate::respond;
use gate::stats;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use ledger::signing;
use platform::http::{ApiError, Kept, Segment, json, public_json};
use platform::store::StoreError;
use serde_json::json;
use tools::availability::Lacking;
use tools_commerce::providers::shopify;

pub use status::Queues;
use status::Watch;

/// The API description, and the tools it marks as unavailable.
type Described = (Arc<Lacking>, Kept);

/// State shared by the handlers.
#[derive(Clone)]
struct Meta {
    app: App,
    library: Arc<Library>,
    watch: Arc<Watch>,
    /// Made when it is first requested.
    openapi: Arc<Mutex<Option<Described>>>,
}

impl Meta {
    /// The documents for the origin of a request.
    async fn documents(&self, headers: &HeaderMap) -> Arc<Documents> {
        let lacking = self.app.lacking().await;
        self.library.of(&self.app.config, self.app.catalog, &self.app.origin(headers), lacking)
    }

    /// The API description, made again when the available tools change.
    async fn openapi(&self) -> Result<Kept, ApiError> {
        let lacking = self.app.lacking().await;
        let mut made = self.openapi.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some((of, document)) if *of == lacking => Ok(document.clone()),
            _ => {
                let document = documents::openapi(&self.app, &lacking)?;
                *made = Some((lacking, document.clone()));
                Ok(document)
            }
        }
    }
}

/// `queues` are checked for `/v1/status`.
pub fn router(app: App, queues: Queues) -> Router {
    let router = Router::new()
        .route("/", get(index))
        .route("/health", get(health))
        .route("/llms.txt", get(llms))
        .route("/llms-full.txt", get(llms_full))
        .route("/skill.md", get(skill))
        .route("/guides/{page}", get(guide))
        .route("/pricing", get(pricing))
        .route("/pricing.md", get(pricing_markdown))
        .route("/v1/tools/discover", get(discover))
        .route("/v1/status", get(service_status))
        .route("/v1/stats", get(statistics))
        .route("/.well-known/jwks.json", get(jwks))
        .route("/.well-known/x402", get(x402))
        .route("/.well-known/acp.json", get(acp))
        .route(shopify::PROFILE, get(ucp_agent))
        .route("/openapi.json", get(openapi))
        .route("/docs", get(docs))
        .route("/docs/{asset}", get(docs_asset))
        .route("/.well-known/{document}", get(well_known));
    let router = router.route_layer(from_fn_with_state(app.clone(), limits::weigh));
    let meta = Meta { app, library: Arc::default(), watch: Arc::new(Watch::new(queues)), openapi: Arc::default() };
    api::routes::finish(router.with_state(meta))
}

/// `GET /`: an overview, with links to everything else. Browsers, which name HTML in `Accept`, get a page; everybody else
/// gets JSON.
async fn index(State(meta): State<Meta>, headers: HeaderMap) -> Response {
    if wants(&headers, "text/html") && !wants(&headers, "application/json") {
        return meta.documents(&headers).await.home().answer(&headers);
    }
    let config = &meta.app.config;
    let lacking = meta.app.lacking().await;
    let catalog = meta.app.catalog;
    let tools: Vec<_> = catalog
        .iter()
        .filter(|tool| lacking.can(tool))
        .map(|tool| json!({"tool": tool.name, "method": "POST", "path": tool.path(), "price_usdc": tool.price.usual().to_string(), "summary": tool.summary}))
        .collect();
    let body = json!({
        "service": config.service_name,
        "version": env!("CARGO_PKG_VERSION"),
        "network": config.chain.caip2(),
        "tools": tools,
        "how_to_pay": "POST to a tool's path: the 402 answer says what to sign (x402 v1 and v2)",
        "jobs": "GET /v1/requests/{id}; yours: GET /v1/requests",
        "payments": "GET /v1/payments/{reference}, a nonce or a transaction hash",
        "discover": "/v1/tools/discover",
        "for_agents": "/llms.txt",
        "skill": "/skill.md",
        "pricing": "/pricing",
        "status": "/v1/status",
        "health": "/health",
        "openapi": "/openapi.json",
        "docs": "/docs",
    });
    Kept::json(&body, 300).by("accept").answer(&headers)
}

/// Whether `Accept` names this type. `*/*` names none.
fn wants(headers: &HeaderMap, kind: &str) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|given| given.split(';').next().unwrap_or_default().trim() == kind)
}

/// `GET /health`: the service answers.
async fn health(State(meta): State<Meta>) -> Response {
    let now = meta.app.clock.now().to_string();
    let body = json!({"status": "ok", "service": meta.app.config.service_name, "timestamp": now});
    let mut response = json(StatusCode::OK, &body);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// `GET /v1/status`: the state of everything the service depends on.
async fn service_status(State(meta): State<Meta>) -> Response {
    meta.watch.answer(&meta.app).await
}

/// `GET /llms.txt`: an index of the service, for models.
async fn llms(State(meta): State<Meta>, headers: HeaderMap) -> Response {
    meta.documents(&headers).await.llms().answer(&headers)
}

/// `GET /llms-full.txt`: the same with every tool and all guides, in one file.
async fn llms_full(State(meta): State<Meta>, headers: HeaderMap) -> Response {
    meta.documents(&headers).await.llms_full().answer(&headers)
}

/// `GET /skill.md`: how to use the service, as an agent's skill.
async fn skill(State(meta): State<Meta>, headers: HeaderMap) -> Response {
    meta.documents(&headers).await.skill().answer(&headers)
}

/// `GET /guides/{page}`: a guide, as Markdown.
async fn guide(State(meta): State<Meta>, Segment(page): Segment, headers: HeaderMap) -> Response {
    let documents = meta.documents(&headers).await;
    documents.guide(&page).map_or_else(|| ApiError::NotFound.into_response(), |guide| guide.answer(&headers))
}

/// `GET /pricing`: the price list as a page, or as Markdown or JSON by `Accept`.
async fn pricing(State(meta): State<Meta>, headers: HeaderMap) -> Response {
    let documents = meta.documents(&headers).await;
    if wants(&headers, "text/html") {
        documents.pricing_page().answer(&headers)
    } else if wants(&headers, "text/markdown") || wants(&headers, "text/plain") {
        documents.pricing_markdown().answer(&headers)
    } else if wants(&headers, "application/json") {
        found(&meta, None).await.map_or_else(IntoResponse::into_response, |list| list.by("accept").answer(&headers))
    } else {
        documents.pricing_page().answer(&headers)
    }
}

/// `GET /pricing.md`
async fn pricing_markdown(State(meta): State<Meta>, headers: HeaderMap) -> Response {
    meta.documents(&headers).await.pricing_markdown().answer(&headers)
}

/// `GET /v1/tools/discover`: finds tools by words, with their schemas.
async fn discover(State(meta): State<Meta>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    respond(found(&meta, query.as_deref()).await.map(|list| list.answer(&headers)))
}

async fn found(meta: &Meta, query: Option<&str>) -> Result<Kept, ApiError> {
    let app = &meta.app;
    let page = search::discover(app.catalog, &app.config.service_name, query, &*app.lacking().await)?;
    Ok(Kept::json(&serde_json::to_value(&page).map_err(StoreError::new)?, 300))
}

/// `GET /.well-known/x402`: the paid resources, for directories.
async fn x402(State(meta): State<Meta>, headers: HeaderMap) -> Response {
    meta.documents(&headers).await.x402().answer(&headers)
}

/// `GET /v1/stats`: totals of the service, a few seconds old.
async fn statistics(State(meta): State<Meta>) -> Response {
    let answer = async {
        let stats = stats::load(&meta.app.db).await?;
        Ok(public_json(&stats.to_json(), 10))
    };
    respond(answer.await)
}

/// `GET /.well-known/acp.json`: where agent platforms open checkout sessions.
async fn acp(State(meta): State<Meta>, headers: HeaderMap) -> Response {
    public_json(&market::checkout::manifest::discovery(&meta.app.origin(&headers)), 3600)
}

/// `GET /.well-known/ucp-agent.json`: what catalogs of products read about their caller.
async fn ucp_agent() -> Response {
    public_json(&shopify::profile(), 3600)
}

/// `GET /.well-known/jwks.json`: the keys receipts are signed with.
async fn jwks(State(meta): State<Meta>, headers: HeaderMap) -> Response {
    respond(keys(&meta.app, &headers).await)
}

/// `GET /.well-known/<service>-receipts.json`: the same keys, at the path that SDKs use.
async fn well_known(State(meta): State<Meta>, Segment(document): Segment, headers: HeaderMap) -> Response {
    let receipts = format!("{}-receipts.json", meta.app.config.service_name.to_ascii_lowercase());
    let answer = async { if document == receipts { keys(&meta.app, &headers).await } else { Err(ApiError::NotFound) } };
    respond(answer.await)
}

/// Keys are never removed, so that old receipts can be checked after a rotation.
async fn keys(app: &App, headers: &HeaderMap) -> Result<Response, ApiError> {
    let keys: Vec<_> = signing::published(&app.db).await?.iter().map(signing::PublicKey::jwk).collect();
    Ok(Kept::json(&json!({"keys": keys}), 300).answer(headers))
}

/// `GET /openapi.json`: every operation, for machines.
async fn openapi(State(meta): State<Meta>, headers: HeaderMap) -> Response {
    respond(meta.openapi().await.map(|document| document.answer(&headers)))
}

/// `GET /docs`: the same as a page for people.
async fn docs(State(meta): State<Meta>, headers: HeaderMap) -> Response {
    documents::page(&meta.app.config.service_name).answer(&headers)
}

/// `GET /docs/{asset}`
async fn docs_asset(Segment(asset): Segment, headers: HeaderMap) -> Response {
    let asset = documents::asset(&asset).map(|asset| asset.answer(&headers));
    respond(asset.ok_or(ApiError::NotFound))
}
