//! Public data of souls.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use gate::respond;
use http::StatusCode;
use market::{Market, history, recent, reputation, service, soul, starters, view};
use platform::http::{ApiError, Segment, private_json, public_json};
use serde_json::{Value, json};

/// Cache lifetime in seconds: these change only with a deployment.
const KEPT_SECS: u32 = 3600;

/// `GET /v1/soul/service-types`.
pub async fn service_types() -> Response {
    public_json(&starters::service_types(), KEPT_SECS)
}

/// `GET /v1/soul/templates`.
pub async fn templates() -> Response {
    public_json(&starters::templates(), KEPT_SECS)
}

/// `GET /v1/soul/{slug}`: by slug or linked wallet. A suspended soul is shown without services.
pub async fn profile(State(market): State<Arc<Market>>, Segment(name): Segment) -> Response {
    let answer = async {
        let db = &market.app.db;
        let soul = soul::find(db, &name).await?.ok_or(ApiError::NotFound)?;
        let services = if soul.is_active() { service::of_soul(db, soul.slug.as_str()).await? } else { Vec::new() };
        let offered = services.iter().filter(|service| service.is_offered());
        let services: Vec<Value> = offered.map(|service| view::offer(&soul, service, market.conditions())).collect();
        let (lately, reputation) = tokio::join!(
            recent::purchases(db, soul.slug.as_str(), market.app.clock.now()),
            reputation::public(db, soul.slug.as_str()),
        );
        let mut shown = view::soul(&soul, lately?);
        shown["reputation"] = reputation?;
        Ok(private_json(StatusCode::OK, &json!({"soul": shown, "services": services})))
    };
    respond(answer.await)
}

/// `GET /v1/soul/{slug}/versions`: when the text changed, and its hashes, without the texts.
pub async fn versions(
    State(market): State<Arc<Market>>,
    Segment(name): Segment,
    RawQuery(query): RawQuery,
) -> Response {
    let answer = async {
        let soul = soul::find(&market.app.db, &name).await?.ok_or(ApiError::NotFound)?;
        let page = history::page(&market.app, &soul, query.as_deref()).await?;
        Ok(private_json(StatusCode::OK, &page))
    };
    respond(answer.await)
}
