//! What anybody may read.

use axum::response::Response;
use common::http::public_json;
use serde_json::json;

/// These change with a deployment only.
const KEPT_SECS: u32 = 3600;

/// `GET /v1/soul/service-types` (contract §19).
pub async fn service_types() -> Response {
    public_json(&json!({"types": [], "categories": []}), KEPT_SECS)
}

/// `GET /v1/soul/templates`.
pub async fn templates() -> Response {
    public_json(&json!({"templates": []}), KEPT_SECS)
}
