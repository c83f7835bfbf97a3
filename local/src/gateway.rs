//! The gateway: one port, every function behind it, by the table of routes.

use std::collections::HashMap;

use approvals::Desk;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use common::app::App;
use common::approvals::Notices;
use common::gate::Gate;
use common::http::{ApiError, routes};
use tower::ServiceExt;

use std::sync::Arc;

/// The router of every group, by the group's name.
pub type Groups = Arc<HashMap<&'static str, Router>>;

/// Every function's router.
pub fn groups(app: &App, gate: Arc<Gate>, notices: Notices) -> Groups {
    let desk = Desk { app: app.clone(), signer: gate.engine.signer.clone(), notices };
    Arc::new(HashMap::from([
        (knowledge::GROUP, knowledge::router(gate)),
        ("requests", requests::router(app.clone())),
        ("account", account::router(app.clone())),
        ("approvals", approvals::router(desk)),
        ("meta", meta::router(app.clone())),
    ]))
}

/// One router over all of them.
pub fn router(groups: Groups) -> Router {
    Router::new().fallback(route).with_state(groups)
}

async fn route(State(groups): State<Groups>, request: Request) -> Response {
    let group = routes::find(request.method().as_str(), request.uri().path()).map_or("meta", |route| route.group);
    match groups.get(group) {
        Some(router) => router.clone().oneshot(request).await.unwrap_or_else(|never| match never {}),
        None => ApiError::NotFound.into_response(),
    }
}
