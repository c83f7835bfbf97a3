//! Accounts of the professional network: how they are connected and given up, what is read of them, what providers post, the pages of
//! the local network, and the sale of what is done with them. The worker does it.

mod accounts;
mod connecting;
mod hooks;
mod local;
mod reads;

use std::sync::Arc;

use api::routes;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use base::ids::RequestId;
use gate::jobs::job::Lane;
use gate::limits::{self, Class, Subject};
use gate::{Call, Gate, parse_body, respond};
use http::{HeaderMap, StatusCode, header};
use platform::auth::{Caller, Scope};
use platform::http::{ApiError, log, private_text, read_body};
use platform::store::Queue;
use serde_json::{Map, Value};
use tools::Toolbox;
use tools::spec::ToolSpec;
use tools_network::account::{self, Account};
use tools_network::{action, claiming, limits as caps, sold};
use uuid::Uuid;

/// The group's name in the catalog and in the table of routes.
pub const GROUP: &str = tools_network::GROUP;

/// Largest body of the free routes.
const MAX_BODY: usize = 64 * 1024;
/// Largest answer that the room of an account is added to.
const MAX_ACCEPTED: usize = 256 * 1024;

/// What every route works with.
type Shared = State<Arc<Gate>>;

/// No tool runs here.
pub fn router(gate: Arc<Gate>) -> Router {
    let mut router = Router::new()
        .route("/v1/tools/linkedin/connect", post(connecting::begin))
        .route("/v1/tools/linkedin/connect/{id}", get(connecting::show))
        .route("/v1/tools/linkedin/connect/callback/{token}", post(connecting::callback))
        .route("/v1/tools/linkedin/accounts", get(accounts::list))
        .route("/v1/tools/linkedin/accounts/{id}", get(accounts::show).delete(accounts::revoke))
        .route("/v1/tools/linkedin/accounts/{id}/reconnect", post(connecting::again))
        .route("/v1/tools/linkedin/accounts/{id}/sync", get(reads::sync))
        .route("/v1/tools/linkedin/accounts/{id}/conversations", get(reads::conversations))
        .route("/v1/tools/linkedin/accounts/{id}/messages", get(reads::messages))
        .route("/v1/tools/linkedin/accounts/{id}/invitations", get(reads::invitations))
        .route("/v1/tools/linkedin/accounts/{id}/invitations/{invitation}", get(reads::invitation))
        .route("/v1/tools/linkedin/sync/{run}", get(reads::run))
        .route("/v1/tools/linkedin/webhook/account-status", post(hooks::account_status))
        .route("/v1/tools/linkedin/webhook/messaging", post(hooks::messaging))
        .route("/v1/tools/linkedin/webhook/relations", post(hooks::relations))
        .route("/v1/tools/linkedin/local", get(local::overview))
        .route("/v1/tools/linkedin/local/code", post(local::code))
        .route("/v1/tools/linkedin/local/login/{token}", get(local::page).post(local::enter))
        .route("/v1/tools/linkedin/local/invitations/{from}/accept", post(local::accept))
        .route("/v1/tools/linkedin/local/posts", post(local::publish));
    for tool in gate.app.catalog.iter().copied().filter(|tool| tool.group == GROUP) {
        for path in tool.paths {
            let sell = move |State(gate): Shared, request: Request| sell(gate, tool, request);
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
        let answer =
            gate.call(Call { tool, listing: None, resource: &resource, headers: &parts.headers, body }).await?;
        match sold::kind_of(tool.name).and_then(action::Kind::limit) {
            Some(limit) if answer.status() == StatusCode::ACCEPTED => with_headroom(&gate, limit, answer).await,
            _ => Ok(answer),
        }
    };
    respond(answer.await)
}

/// Adds to a 202 what is left of the account's limit.
async fn with_headroom(gate: &Gate, limit: caps::Limit, answer: Response) -> Result<Response, ApiError> {
    let (mut parts, body) = answer.into_parts();
    let bytes = read_body(body, MAX_ACCEPTED).await?;
    let Ok(mut told) = serde_json::from_slice::<Value>(&bytes) else {
        return Ok(Response::from_parts(parts, Body::from(bytes)));
    };
    // What was bought stays bought if this cannot be said.
    match headroom(gate, limit, &told).await {
        Ok(Some(left)) => told["linkedin"]["headroom"] = left,
        Ok(None) => {}
        Err(error) => log::failure("what is left of an account's limit could not be read", &error),
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::from(told.to_string())))
}

async fn headroom(gate: &Gate, limit: caps::Limit, told: &Value) -> Result<Option<Value>, platform::store::StoreError> {
    let db = &gate.app.db;
    let id = told["request_id"].as_str().and_then(|id| id.parse::<RequestId>().ok());
    let action = match id {
        Some(id) => action::load(db, id).await?,
        None => None,
    };
    let Some(action) = action else { return Ok(None) };
    let account = account::load(db, action.agent, action.account).await?;
    match account {
        Some(account) => Ok(Some(caps::headroom(db, &account, limit, gate.app.clock.now()).await?.view())),
        None => Ok(None),
    }
}

fn toolbox(gate: &Gate) -> &Toolbox {
    &gate.engine.toolbox
}

fn queue(gate: &Gate) -> &dyn Queue {
    gate.engine.queues.of(Lane::Tools)
}

/// The JSON object of a body.
async fn object(headers: &HeaderMap, body: Body) -> Result<Map<String, Value>, ApiError> {
    parse_body(headers, &read_body(body, MAX_BODY).await?)
}

/// The caller and an account of theirs. That they ask for it is a use of it.
async fn own(gate: &Gate, headers: &HeaderMap, scope: Scope, id: &str) -> Result<(Caller, Account), ApiError> {
    let caller = gate.app.caller(headers, scope).await?;
    let id = Uuid::try_parse(id).map_err(|_| claiming::account_not_found())?;
    let account = account::load(&gate.app.db, caller.agent, id).await?.ok_or_else(claiming::account_not_found)?;
    claiming::stay_awake(&gate.app.db, &account, gate.app.clock.now()).await?;
    Ok((caller, account))
}

/// A long answer, counted like others.
async fn counted(gate: &Gate, caller: &Caller, body: &Value) -> Result<Response, ApiError> {
    let text = body.to_string();
    limits::take_list(&gate.app, Subject::Agent(caller.agent), Class::Export, text.len()).await?;
    Ok(private_text(StatusCode::OK, text))
}
