//! Registration of sellers.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use gate::{MAX_BODY_BYTES, parse_body, respond};
use http::HeaderMap;
use market::{Market, registration};
use platform::http::read_body;

/// `POST /v1/soul/register`: the soul key is in this answer, and in a replay with the same `Idempotency-Key`.
pub async fn register(State(market): State<Arc<Market>>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = parse_body(&headers, &read_body(body, MAX_BODY_BYTES).await?)?;
        registration::answer(&market, &headers, &body).await
    };
    respond(answer.await)
}
