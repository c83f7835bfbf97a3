//! Common parts of all requests and responses: errors ([`error`]), request headers and query, rate limit headers, cached
//! documents, logs.

pub mod error;
pub mod headers;
pub mod kept;
pub mod lambda;
pub mod limit;
pub mod log;
pub mod market;
pub mod params;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Path};
use axum::response::Response;
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
pub use market::MarketError;
use serde::Serialize;
use serde_json::Value;

use crate::store::StoreError;
pub use error::ApiError;
pub use kept::Kept;
pub use params::Params;

/// API Gateway's own limit for a body.
const GATEWAY_LIMIT_BYTES: usize = 10 * 1024 * 1024;

/// The whole body, if it has at most `limit_bytes`. A larger one is read to its end and thrown away: a client that is still
/// sending would not see the error.
pub async fn read_body(mut body: Body, limit_bytes: usize) -> Result<Bytes, ApiError> {
    let mut kept = Vec::new();
    let mut seen = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ApiError::field("", "the body ended early"))?;
        let Ok(data) = frame.into_data() else { continue };
        seen += data.len();
        if seen > GATEWAY_LIMIT_BYTES {
            break;
        }
        if seen <= limit_bytes {
            kept.extend_from_slice(&data);
        }
    }
    if seen > limit_bytes { Err(ApiError::PayloadTooLarge { limit_bytes }) } else { Ok(Bytes::from(kept)) }
}

/// A segment of the path. One that is not valid UTF-8 gives 404.
pub struct Segment(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Segment, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(text)| Segment(text)).map_err(|_| ApiError::NotFound)
    }
}

/// A JSON response.
pub fn json(status: StatusCode, body: &Value) -> Response {
    text(status, body.to_string())
}

fn text(status: StatusCode, json: String) -> Response {
    let mut response = Response::new(Body::from(json));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A JSON response that no cache may store: prices, paid results, anything that belongs to one agent.
pub fn private_json(status: StatusCode, body: &Value) -> Response {
    private_text(status, body.to_string())
}

/// [`private_json`] for text that is JSON already.
pub fn private_text(status: StatusCode, json: String) -> Response {
    let mut response = text(status, json);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// [`private_json`] for a record; its members keep their order.
pub fn private_body(body: &impl Serialize) -> Result<Response, ApiError> {
    Ok(private_text(StatusCode::OK, serde_json::to_string(body).map_err(StoreError::new)?))
}

/// A JSON response that any cache may store for `max_age_secs`.
pub fn public_json(body: &Value, max_age_secs: u32) -> Response {
    let mut response = json(StatusCode::OK, body);
    if let Ok(value) = HeaderValue::from_str(&format!("public, max-age={max_age_secs}")) {
        response.headers_mut().insert(header::CACHE_CONTROL, value);
    }
    response
}
