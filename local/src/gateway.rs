//! The gateway: one port, every function behind it, by the table of routes.

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

/// The router of every group, by the group's name.
pub type Groups = Arc<HashMap<&'static str, Router>>;

/// One router over all of them.
pub fn router(groups: Groups) -> Router {
    Router::new().fallback(route).with_state(groups)
}

/// Middleware: web pages of other origins are kept out. On a developer's machine the wallets' keys are everybody's, so any
/// page could buy with them, and with what the stack is configured with. (`LOCAL_OPEN_TO_PAGES=true` lets them in.)
pub async fn keep_pages_out(State(known): State<Arc<[String]>>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN);
    if origin.is_none_or(|origin| known.iter().any(|known| known.as_bytes() == origin.as_bytes())) {
        return next.run(request).await;
    }
    let message =
        "a local stack takes no calls of web pages; LOCAL_OPEN_TO_PAGES=true, or ALLOWED_ORIGINS, lets them in";
    private_json(StatusCode::FORBIDDEN, &json!({"error": "forbidden", "message": message}))
}

/// Hands a request to the function whose route it is.
pub async fn route(State(groups): State<Groups>, request: Request) -> Response {
    http_api::handle(request, |method, path| groups.get(routes::group_of(method, path)).cloned()).await
}
