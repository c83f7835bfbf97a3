//! The gateway: one port, every function behind it, by the table of routes.

use std::collections::HashMap;

use approvals::Desk;
use axum::Router;
use std::net::SocketAddr;

use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Response};
use common::app::App;
use common::checkout::Checkout;
use common::gate::Gate;
use common::http::limit::Peer;
use common::http::{ApiError, routes};
use common::insights::audit::CursorKey;
use common::marketplace::Market;
use common::net::PlainHttp;
use common::providers::Cards;
use tower::ServiceExt;
use webhooks::Hooks;

use std::sync::Arc;

/// The router of every group, by the group's name.
pub type Groups = Arc<HashMap<&'static str, Router>>;

/// Every function's router. `cursors` authenticates the audit's cursors; without `hooks` nobody keeps webhooks.
pub fn groups(app: &App, gate: Arc<Gate>, market: Arc<Market>, cursors: CursorKey, hooks: Option<Hooks>) -> Groups {
    let cards = Cards::configured(&app.config, &PlainHttp::new(None));
    let queues = vec![("queue", gate.engine.queue.clone()), ("soul_queue", market.gate.engine.queue.clone())];
    let quotes = gate.quote_key.clone();
    let desk = Desk {
        app: app.clone(),
        signer: gate.engine.signer.clone(),
        notices: gate.notices.clone(),
        queue: gate.engine.queue.clone(),
    };
    let mut groups = HashMap::from([
        ("checkout", checkout::router(Arc::new(Checkout::new(gate.clone(), market.clone())))),
        ("souls", souls::router(market.clone())),
        ("seller", seller::router(market)),
        ("credits", credits::router(gate.clone(), cards)),
        (knowledge::GROUP, knowledge::router(gate)),
        ("requests", requests::router(app.clone())),
        ("account", account::router(app.clone())),
        ("insights", insights::router(app.clone(), cursors)),
        ("approvals", approvals::router(desk)),
        ("meta", meta::router(app.clone(), queues)),
    ]);
    groups.extend(hooks.map(|hooks| ("webhooks", webhooks::router(hooks))));
    // Its tools lead to the others.
    groups.insert("mcp", mcp::router(app.clone(), groups.clone(), &quotes));
    Arc::new(groups)
}

/// One router over all of them.
pub fn router(groups: Groups) -> Router {
    Router::new().fallback(route).with_state(groups)
}

/// Hands a request to the function whose route it is.
pub async fn route(State(groups): State<Groups>, mut request: Request) -> Response {
    if let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>().copied() {
        request.extensions_mut().insert(Peer(peer.ip()));
    }
    match groups.get(routes::group_of(request.method().as_str(), request.uri().path())) {
        Some(router) => router.clone().oneshot(request).await.unwrap_or_else(|never| match never {}),
        None => ApiError::NotFound.into_response(),
    }
}
