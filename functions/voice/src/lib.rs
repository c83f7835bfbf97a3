//! Calls: how agents' numbers answer, the calls that they answered, the exchange between numbers of this deployment, and the
//! sale of calls.

mod calls;
mod exchange;
mod hooks;
mod settings;

use std::sync::Arc;

use api::routes;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use base::ids::RequestId;
use gate::app::App;
use gate::jobs::job::Lane;
use gate::limits::{self, Class, Subject};
use gate::{Call, Gate};
use http::StatusCode;
use ledger::webhooks::secret::SigningKey;
use platform::auth::Caller;
use platform::http::{ApiError, private_text, read_body};
use platform::store::jobs;
use serde_json::Value;
use tools::Toolbox;
use tools::spec::ToolSpec;

/// The group's name in the catalog and in the table of routes.
pub const GROUP: &str = "voice";

/// State shared by the routes.
#[derive(Clone)]
pub(crate) struct Voice {
    pub(crate) gate: Arc<Gate>,
    /// Makes the secrets of numbers' webhooks.
    pub(crate) keys: SigningKey,
}

impl Voice {
    pub(crate) fn app(&self) -> &App {
        &self.gate.app
    }

    pub(crate) fn toolbox(&self) -> &Toolbox {
        &self.gate.engine.toolbox
    }
}

/// `keys` are the service's own for webhooks. No tool runs here: the worker makes calls and ends those that were answered.
pub fn router(gate: Arc<Gate>, keys: SigningKey) -> Router {
    let answering = get(settings::show).put(settings::put).delete(settings::disable);
    let mut router = Router::new()
        .route("/v1/tools/voice/numbers/{id}/inbound", answering)
        .route("/v1/tools/voice/inbound", get(calls::list))
        .route("/v1/tools/voice/inbound/{id}", get(calls::show))
        .route("/v1/tools/voice/recordings/{token}", get(calls::recording))
        .route("/v1/tools/voice/exchange", post(exchange::dial))
        .route("/v1/tools/voice/exchange/{id}", get(exchange::show))
        .route("/v1/tools/voice/exchange/{id}/turns", post(exchange::say))
        .route("/v1/tools/voice/exchange/{id}/hang-up", post(exchange::hang_up))
        .route("/v1/providers/vapi", post(hooks::vapi))
        .route("/v1/providers/telnyx", post(hooks::telnyx));
    for tool in gate.app.catalog.iter().copied().filter(|tool| tool.group == GROUP) {
        for path in tool.paths {
            let sell = move |State(state): State<Voice>, request: Request| sell(state, tool, request);
            router = router.route(path, post(sell));
        }
    }
    routes::finish(router.with_state(Voice { gate, keys }))
}

/// A paid tool of the catalog.
async fn sell(state: Voice, tool: &'static ToolSpec, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let resource = state.app().resource_url(&parts);
    let answer = async {
        let body = read_body(body, gate::MAX_BODY_BYTES).await?;
        state.gate.call(Call { tool, listing: None, resource: &resource, headers: &parts.headers, body }).await
    };
    gate::respond(answer.await)
}

/// Wakes the job of a call.
pub(crate) async fn wake_job(state: &Voice, id: RequestId) {
    jobs::wake(&state.app().db, state.gate.engine.queues.of(Lane::Tools), id).await;
}

/// An answer whose bytes are counted like those of other long lists.
pub(crate) async fn counted(app: &App, caller: &Caller, body: &Value) -> Result<Response, ApiError> {
    let text = body.to_string();
    limits::take_list(app, Subject::Agent(caller.agent), Class::Export, text.len()).await?;
    Ok(private_text(StatusCode::OK, text))
}

pub(crate) fn number_not_found() -> ApiError {
    not_found("number_not_found", "you have no number with this id: GET /v1/tools/voice/numbers lists them")
}

pub(crate) fn call_not_found() -> ApiError {
    not_found("call_not_found", "you have no call with this id; calls are kept for 30 days")
}

fn not_found(code: &'static str, message: &str) -> ApiError {
    ApiError::Tool { status: StatusCode::NOT_FOUND, code, message: message.to_owned() }
}
