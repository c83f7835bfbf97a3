//! Knowledge tools: web read and lookups. Every path comes from the catalog.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use common::catalog::{CATALOG, ToolSpec};
use common::gate::{self, Call, Gate};
use common::http::ApiError;
use common::tools::verification::identity;
use common::tools::{Runner, lookups, vehicle_identification, web_search};

/// The group's name in the catalog and in the table of routes.
pub const GROUP: &str = "knowledge";

/// Tools this function runs itself; queued ones are the worker's.
pub static RUNNERS: LazyLock<Vec<&'static Runner>> =
    LazyLock::new(|| [vec![&vehicle_identification::RUNNER, &web_search::RUNNER], lookups::runners()].concat());

/// One route for each path of each tool of the group.
pub fn router(gate: Arc<Gate>) -> Router {
    let mut router = Router::new();
    for tool in CATALOG.iter().copied().filter(|tool| tool.group == GROUP) {
        for path in tool.paths {
            let handler = move |State(gate): State<Arc<Gate>>, request: Request| call(gate, tool, request);
            router = router.route(path, post(handler));
        }
    }
    common::http::routes::finish(router.with_state(gate))
}

async fn call(gate: Arc<Gate>, tool: &'static ToolSpec, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let resource = gate.app.resource_url(&parts);
    let answer = async {
        if tool.name == identity::SPEC.name && identity::lacks_proof(&parts.headers) {
            return Err(ApiError::AgentProofRequired);
        }
        let body = common::http::read_body(body, gate::MAX_BODY_BYTES).await?;
        gate.call(Call { tool, listing: None, resource: &resource, headers: &parts.headers, body }).await
    };
    gate::respond(answer.await)
}
