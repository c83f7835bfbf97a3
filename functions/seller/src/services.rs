//! A soul's services.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use gate::limits::{self, Class, Subject};
use gate::work::program::MAX_PROGRAM_BYTES;
use gate::{MAX_BODY_BYTES, parse_body, respond};
use http::{HeaderMap, StatusCode};
use market::registry::{self, Offered};
use market::service;
use market::soul::Soul;
use market::{Market, seller, view};
use platform::http::{ApiError, Segment, private_json, read_body};
use serde_json::{Value, json};

/// `GET /v1/soul/me/services`: includes disabled ones.
pub async fn list(State(market): State<Arc<Market>>, headers: HeaderMap) -> Response {
    let answer = async {
        let soul = seller::caller(&market.app, &headers).await?;
        let body = json!({"services": all(&market, &soul).await?});
        let bytes = body.to_string().len();
        limits::take_list(&market.app, Subject::Soul(soul.id()), Class::Export, bytes).await?;
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}

/// A soul's services, also disabled ones, as the seller sees them.
pub async fn all(market: &Market, soul: &Soul) -> Result<Vec<Value>, ApiError> {
    let services = service::of_soul_latest(&market.app.db, soul.slug.as_str()).await?;
    Ok(services.iter().map(|service| view::service(soul, service, market.conditions())).collect())
}

/// `POST /v1/soul/me/services`.
pub async fn create(State(market): State<Arc<Market>>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = read_body(body, MAX_BODY_BYTES).await?;
        let soul = seller::caller(&market.app, &headers).await?;
        let body = parse_body(&headers, &body)?;
        let offered = registry::add_service(&market, &soul, &body).await?;
        Ok(shown(&market, StatusCode::CREATED, &soul, &offered))
    };
    respond(answer.await)
}

/// `PUT /v1/soul/me/services/{service}`: absent members stay as they are; the slug cannot change.
pub async fn change(
    State(market): State<Arc<Market>>,
    Segment(name): Segment,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let answer = async {
        let body = read_body(body, MAX_BODY_BYTES).await?;
        let soul = seller::caller(&market.app, &headers).await?;
        let body = parse_body(&headers, &body)?;
        let offered = registry::change_service(&market, &soul, &name, &body).await?;
        Ok(shown(&market, StatusCode::OK, &soul, &offered))
    };
    respond(answer.await)
}

/// `DELETE /v1/soul/me/services/{service}`: disables it. Jobs already bought are still done.
pub async fn disable(State(market): State<Arc<Market>>, Segment(name): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let soul = seller::caller(&market.app, &headers).await?;
        registry::disable_service(&market, &soul, &name).await?;
        let message = format!("{name} is no longer offered; PUT it with active: true to offer it again");
        Ok(private_json(StatusCode::OK, &json!({"success": true, "message": message})))
    };
    respond(answer.await)
}

/// `PUT /v1/soul/me/services/{service}/program`: the body is the program, with any content type.
pub async fn program(
    State(market): State<Arc<Market>>,
    Segment(name): Segment,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let answer = async {
        let bytes = read_body(body, MAX_PROGRAM_BYTES).await?;
        let soul = seller::caller(&market.app, &headers).await?;
        let offered = registry::change_program(&market, &soul, &name, bytes.to_vec()).await?;
        Ok(shown(&market, StatusCode::OK, &soul, &offered))
    };
    respond(answer.await)
}

fn shown(market: &Market, status: StatusCode, soul: &Soul, offered: &Offered) -> Response {
    let mut body = json!({"success": true, "service": view::service(soul, &offered.service, market.conditions())});
    if let Some(secret) = &offered.webhook_secret {
        body["webhook_secret"] = json!(secret);
    }
    private_json(status, &body)
}
