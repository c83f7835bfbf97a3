//! What every answer has in common: the error body, headers, and the table of routes.

pub mod error;
pub mod headers;
pub mod log;
pub mod routes;

pub use error::ApiError;

use axum::body::{Body, Bytes};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;

/// The whole body, if it is not larger than `limit_bytes`. What it says of its own length is believed when it is bad
/// news, so that a large body is refused before it is read.
pub async fn read_body(headers: &HeaderMap, body: Body, limit_bytes: usize) -> Result<Bytes, ApiError> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > limit_bytes) {
        return Err(ApiError::PayloadTooLarge { limit_bytes });
    }
    axum::body::to_bytes(body, limit_bytes).await.map_err(|_| ApiError::PayloadTooLarge { limit_bytes })
}

/// A JSON answer.
pub fn json(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A JSON answer that no cache may keep: prices, paid results, anything of one agent.
pub fn private_json(status: StatusCode, body: &Value) -> Response {
    let mut response = json(status, body);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A JSON answer that may be kept for a while by everybody.
pub fn public_json(body: &Value, max_age_secs: u32) -> Response {
    let mut response = json(StatusCode::OK, body);
    if let Ok(value) = HeaderValue::from_str(&format!("public, max-age={max_age_secs}")) {
        response.headers_mut().insert(header::CACHE_CONTROL, value);
    }
    response
}
