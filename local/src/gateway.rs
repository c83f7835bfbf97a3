//! The gateway: one port, every function behind it, by the table of routes.

use std::collections::HashMap;

use approvals::Desk;
use axum::Router;
use std::net::SocketAddr;

use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use common::app::App;
use common::checkout::Checkout;
use common::gate::Gate;
use common::http::limit::Peer;
use common::http::{ApiError, private_json, routes};
use common::insights::audit::CursorKey;
use common::marketplace::Market;
use common::net::PlainHttp;
use common::providers::Cards;
use http::{StatusCode, header};
use serde_json::json;
use tower::ServiceExt;
use webhooks::Hooks;

use std::sync::Arc;

/// The router of every group, by the group's name.
pub type Groups = Arc<HashMap<&'static str, Router>>;

/// Every function's router. `cursors` authenticates the audit's cursors; without `hooks` nobody keeps webhooks.
pub fn groups(app: &App, gate: Arc<Gate>, market: Arc<Market>, cursors: CursorKey, hooks: Option<Hooks>) -> Groups {
    let cards = Cards::configured(&app.config, &PlainHttp::new(None));
    let queues = vec![("queue", gate.engine.queues.tools.clone()), ("soul_queue", gate.engine.queues.souls.clone())];
    let quotes = gate.quote_key.clone();
    let desk = Desk {
        app: app.clone(),
        signer: gate.engine.signer.clone(),
        notices: gate.notices.clone(),
        queue: gate.engine.queues.tools.clone(),
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
pub async fn route(State(groups): State<Groups>, mut request: Request) -> Response {
    if let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>().copied() {
        request.extensions_mut().insert(Peer(peer.ip()));
    }
    match groups.get(routes::group_of(request.method().as_str(), request.uri().path())) {
        Some(router) => router.clone().oneshot(request).await.unwrap_or_else(|never| match never {}),
        None => ApiError::NotFound.into_response(),
    }
}
