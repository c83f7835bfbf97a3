//! The routes of a function that only sells: one for each path of its group's tools.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use gate::{Call, Gate};
use platform::http::read_body;
use tools::spec::ToolSpec;

use crate::routes;

/// Sells the tools of a group. No tool runs here.
pub fn router(gate: Arc<Gate>, group: &str) -> Router {
    router_with(gate, group, Router::new())
}

/// The same with more routes.
pub fn router_with(gate: Arc<Gate>, group: &str, more: Router<Arc<Gate>>) -> Router {
    let mut router = more;
    for tool in gate.app.catalog.iter().copied().filter(|tool| tool.group == group) {
        for path in tool.paths {
            let sell = move |State(gate): State<Arc<Gate>>, request: Request| sell(gate, tool, request);
            router = router.route(path, post(sell));
        }
    }
    routes::finish(router.with_state(gate))
}

/// A paid tool of the catalog.
async fn sell(gate: Arc<Gate>, tool: &'static ToolSpec, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let resource = gate.app.resource_url(&parts);
    let answer = async {
        let body = read_body(body, gate::MAX_BODY_BYTES).await?;
        gate.call(Call { tool, listing: None, resource: &resource, headers: &parts.headers, body }).await
    };
    gate::respond(answer.await)
}
