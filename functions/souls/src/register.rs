//! Becoming a seller.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use common::gate::{MAX_BODY_BYTES, parse_body, respond};
use common::http::{private_json, read_body};
use common::marketplace::{Market, registry, view};
use http::{HeaderMap, StatusCode};
use serde_json::json;

/// `POST /v1/soul/register`: the soul key is in this answer and nowhere else.
pub async fn register(State(market): State<Arc<Market>>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = parse_body(&headers, &read_body(body, MAX_BODY_BYTES).await?)?;
        let made = registry::register(&market, &body).await?;
        let mut answer = json!({"success": true, "soul_key": made.key, "soul_agent": view::registered(&made.soul)});
        if let Some(service) = &made.service {
            answer["service"] = view::first_service(&made.soul, service);
        }
        if let Some(secret) = made.webhook_secret(&market) {
            answer["webhook_secret"] = json!(secret);
        }
        Ok(private_json(StatusCode::OK, &answer))
    };
    respond(answer.await)
}
