//! The gateway: one port for all functions, by the table of routes.

use std::collections::HashMap;

use std::sync::Arc;

use api::routes;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{StatusCode, header};
use platform::http::private_json;
use serde_json::json;

use crate::http_api;

/// The router of each group, by the group's name.
pub type Groups = Arc<HashMap<&'static str, Router>>;

/// One router over all groups.
pub fn router(groups: Groups) -> Router {
    Router::new().fallback(route).with_state(groups)
}

/// Middleware that refuses requests from web pages of other origins. The wallets' keys of a local stack are public, so any
/// page could buy with them and use the stack's credentials. `LOCAL_OPEN_TO_PAGES=true` allows such pages.
pub async fn keep_pages_out(State(known): State<Arc<[String]>>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN);
    if origin.is_none_or(|origin| known.iter().any(|known| known.as_bytes() == origin.as_bytes())) {
        return next.run(request).await;
    }
    let message = "a local stack refuses calls from web pages of other origins; to allow them, set LOCAL_OPEN_TO_PAGES=true or ALLOWED_ORIGINS";
    private_json(StatusCode::FORBIDDEN, &json!({"error": "forbidden", "message": message}))
}

/// Passes a request to the function of its route.
pub async fn route(State(groups): State<Groups>, request: Request) -> Response {
    http_api::handle(request, |method, path| groups.get(routes::group_of(method, path)).cloned()).await
}
