//! A soul's services.

use axum::response::Response;
use common::gate::respond;
use common::http::ApiError;

pub async fn list() -> Response {
    respond(Err(ApiError::Unauthorized))
}
