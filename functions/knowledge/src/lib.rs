//! Knowledge tools: web read, research, enrichment, verification, lookups, and the operator's own services. Every path comes
//! from the catalog.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use api::routes;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use gate::{Call, Gate};
use http::Method;
use platform::http::ApiError;
use platform::http::log::Route;
use tools::Runner;
use tools::spec::ToolSpec;
use tools_lookups::{lookups, vehicle_identification};
use tools_people::verification::identity;
use tools_web::web_search;

/// The group's name in the catalog and in the table of routes.
pub const GROUP: &str = "knowledge";

/// Tools this function runs itself; the worker runs the queued ones.
pub static RUNNERS: LazyLock<Vec<&'static Runner>> = LazyLock::new(|| {
    [vec![&vehicle_identification::RUNNER, &web_search::RUNNER, &tools_own::RUNNER], lookups::runners()].concat()
});

/// The handler's state.
#[derive(Clone)]
struct Shop {
    gate: Arc<Gate>,
    /// Tools by path. Making a router with more than a hundred routes would take longer than the rest of an unpaid call.
    tools: Arc<HashMap<&'static str, &'static ToolSpec>>,
}

pub fn router(gate: Arc<Gate>) -> Router {
    let tools = gate.app.catalog.iter().filter(|tool| tool.group == GROUP);
    let tools = Arc::new(tools.flat_map(|tool| tool.paths.iter().map(|path| (*path, *tool))).collect());
    routes::with_middleware(Router::new().fallback(answer).with_state(Shop { gate, tools }))
}

async fn answer(State(Shop { gate, tools }): State<Shop>, request: Request) -> Response {
    match tools.get_key_value(request.uri().path()) {
        Some((path, tool)) if request.method() == Method::POST => {
            let mut response = call(&gate, tool, request).await;
            response.extensions_mut().insert(Route(path));
            response
        }
        _ => routes::unrouted(request).await,
    }
}

async fn call(gate: &Gate, tool: &'static ToolSpec, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let resource = gate.app.resource_url(&parts);
    let answer = async {
        if tool.name == identity::SPEC.name && identity::lacks_proof(&parts.headers) {
            return Err(ApiError::AgentProofRequired);
        }
        let body = platform::http::read_body(body, gate::MAX_BODY_BYTES).await?;
        gate.call(Call { tool, listing: None, resource: &resource, headers: &parts.headers, body }).await
    };
    gate::respond(answer.await)
}
