//! Goals: their sale, what their owners read of them, and what they do with them. The worker drives them.

use std::sync::Arc;

use api::routes;
use axum::Router;
use axum::extract::{Path, RawQuery, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use base::ids::RequestId;
use base::input;
use gate::jobs::engine::read_result;
use gate::jobs::{Job, Outcome, store};
use gate::limits::{self, Class, Subject};
use gate::{Call, Gate, parse_body, respond};
use http::{HeaderMap, StatusCode};
use ledger::purse::{self, Purse};
use platform::auth::{Caller, Scope};
use platform::http::{ApiError, Params, Segment, private_json, private_text, read_body};
use platform::store::StoreError;
use serde_json::{Map, Value, json};
use tools::spec::ToolSpec;
use tools_compute::compute::SPEC;
use tools_compute::control::{self, Answer};
use tools_compute::goal::{self, Goal, MAX_TASKS, Task, TaskState};
use tools_compute::quote::Locked;
use tools_compute::view::{self, Shown};

/// The group's name in the catalog and in the table of routes.
pub const GROUP: &str = "compute";

const USUAL_PAGE: usize = 20;
const LARGEST_PAGE: usize = 50;
/// Largest body of the free routes.
const MAX_BODY: usize = 64 * 1024;
/// Longest output that an answer holds.
const MAX_OUTPUT: usize = 1024 * 1024;

/// No tool runs here.
pub fn router(gate: Arc<Gate>) -> Router {
    let sell = |State(gate): State<Arc<Gate>>, request: Request| async { sell(gate, &SPEC, request).await };
    let router = Router::new()
        .route("/v1/compute", get(list).post(sell))
        .route("/v1/compute/{id}", get(show))
        .route("/v1/compute/{id}/tasks", get(tasks))
        .route("/v1/compute/{id}/budget", get(budget))
        .route("/v1/compute/{id}/outputs", get(outputs))
        .route("/v1/compute/{id}/outputs/{key}", get(output))
        .route("/v1/compute/{id}/cancel", post(cancel))
        .route("/v1/compute/{id}/pause", post(pause))
        .route("/v1/compute/{id}/resume", post(pause))
        .route("/v1/compute/{id}/respond", post(answer))
        .route("/v1/compute/{id}/fund", post(fund));
    routes::finish(router.with_state(gate))
}

/// Sells a goal, at the operator's fee.
async fn sell(gate: Arc<Gate>, tool: &'static ToolSpec, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let resource = gate.app.resource_url(&parts);
    let tool = gate.app.catalog.find(tool.name).unwrap_or(tool);
    let answer = async {
        let body = read_body(body, gate::MAX_BODY_BYTES).await?;
        gate.call(Call { tool, listing: None, resource: &resource, headers: &parts.headers, body }).await
    };
    respond(answer.await)
}

/// A goal of the caller, as it is stored.
struct Own {
    job: Job,
    input: Map<String, Value>,
    locked: Map<String, Value>,
    goal: Option<Goal>,
    purse: Option<Purse>,
}

impl Own {
    /// # Errors
    /// 404 `goal_not_found`, also for another agent's goal.
    async fn load(gate: &Gate, caller: &Caller, id: &str) -> Result<Own, ApiError> {
        let id = RequestId::of_goal(id).ok_or_else(control::not_found)?;
        Own::of(gate, caller, id).await?.ok_or_else(control::not_found)
    }

    async fn of(gate: &Gate, caller: &Caller, id: RequestId) -> Result<Option<Own>, ApiError> {
        let db = &gate.app.db;
        let (job, goal, purse) =
            tokio::join!(store::load_latest(db, id), goal::load(db, id), purse::load(db, caller.agent, id));
        let is_own = |job: &Job| job.agent == caller.agent && job.tool == SPEC.name && !gate::came_to_nothing(job);
        let Some(job) = job?.filter(|job| is_own(job) && !job.is_forgotten(gate.app.clock.now())) else {
            return Ok(None);
        };
        let input = job.input.read(&*gate.app.blobs).await.unwrap_or_default();
        let locked = job.locked.as_deref().map(serde_json::from_str).transpose().map_err(StoreError::new)?;
        Ok(Some(Own { input, locked: locked.unwrap_or_default(), goal: goal?, purse: purse?, job }))
    }

    fn id(&self) -> RequestId {
        self.job.request_id
    }

    fn shown<'a>(&'a self, tasks: &'a [Task], result: Option<&'a Value>) -> Result<Shown<'a>, ApiError> {
        let locked = Locked::read(&self.locked).ok_or_else(|| StoreError::new("a goal has no locked budget"))?;
        Ok(Shown {
            id: self.id(),
            created: self.job.created,
            input: &self.input,
            locked,
            goal: self.goal.as_ref(),
            purse: self.purse.as_ref(),
            tasks,
            result,
        })
    }

    /// Its job's result, once it has ended.
    async fn result(&self, gate: &Gate) -> Result<Option<Value>, ApiError> {
        let stored = self.job.result.as_ref().filter(|_| self.job.outcome == Some(Outcome::Completed));
        match stored {
            Some(stored) => Ok(read_result(&*gate.app.blobs, stored).await?),
            None => Ok(None),
        }
    }
}

fn data(body: Value) -> Response {
    private_json(StatusCode::OK, &json!({"success": true, "data": body}))
}

/// Like [`data`], counted as other long answers are.
async fn counted(gate: &Gate, caller: &Caller, body: Value) -> Result<Response, ApiError> {
    let text = json!({"success": true, "data": body}).to_string();
    limits::take_list(&gate.app, Subject::Agent(caller.agent), Class::Export, text.len()).await?;
    Ok(private_text(StatusCode::OK, text))
}

/// `GET /v1/compute`: the caller's goals, newest first.
async fn list(State(gate): State<Arc<Gate>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        let limit = params.integer("limit", 1, LARGEST_PAGE).unwrap_or(USUAL_PAGE);
        let status = params.choice("status", &["active", "completed", "cancelled", "failed"]);
        params.check()?;
        let caller = gate.app.caller(&headers, Scope::Read).await?;
        let mut goals = Vec::new();
        for id in goal::of_owner(&gate.app.db, caller.agent, LARGEST_PAGE).await? {
            let Some(own) = Own::of(&gate, &caller, id).await? else { continue };
            let view = own.shown(&[], None)?.brief();
            if status.is_none_or(|status| view["status"] == status) {
                goals.push(view);
            }
            if goals.len() == limit {
                break;
            }
        }
        counted(&gate, &caller, json!({"goals": goals})).await
    };
    respond(answer.await)
}

/// `GET /v1/compute/{id}`
async fn show(State(gate): State<Arc<Gate>>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = gate.app.caller(&headers, Scope::Read).await?;
        let own = Own::load(&gate, &caller, &id).await?;
        let (tasks, result) = tokio::join!(goal::tasks(&gate.app.db, own.id()), own.result(&gate));
        let (tasks, result) = (tasks?, result?);
        counted(&gate, &caller, own.shown(&tasks, result.as_ref())?.goal()).await
    };
    respond(answer.await)
}

/// `GET /v1/compute/{id}/tasks`
async fn tasks(
    State(gate): State<Arc<Gate>>,
    Segment(id): Segment,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        let limit = params.integer("limit", 1, 200).unwrap_or(2 * MAX_TASKS);
        let status = params.choice("status", &["pending", "running", "waiting", "completed", "failed"]);
        params.check()?;
        let caller = gate.app.caller(&headers, Scope::Read).await?;
        let own = Own::load(&gate, &caller, &id).await?;
        let tasks = goal::tasks(&gate.app.db, own.id()).await?;
        let is_over = own.shown(&tasks, None)?.status() != "active";
        let views = tasks.iter().map(|task| view::task(own.id(), task, is_over));
        let wanted = views.filter(|task| status.is_none_or(|status| task["status"] == status));
        let wanted: Vec<Value> = wanted.take(limit).collect();
        counted(&gate, &caller, json!(wanted)).await
    };
    respond(answer.await)
}

/// `GET /v1/compute/{id}/budget`
async fn budget(State(gate): State<Arc<Gate>>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = gate.app.caller(&headers, Scope::Read).await?;
        let own = Own::load(&gate, &caller, &id).await?;
        let tasks = goal::tasks(&gate.app.db, own.id()).await?;
        Ok(data(own.shown(&tasks, None)?.budget()))
    };
    respond(answer.await)
}

/// The results of ended calls, as outputs.
async fn outputs(State(gate): State<Arc<Gate>>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = gate.app.caller(&headers, Scope::Read).await?;
        let own = Own::load(&gate, &caller, &id).await?;
        let tasks = goal::tasks(&gate.app.db, own.id()).await?;
        let mut outputs = Vec::new();
        for task in tasks.iter().filter(|task| task.state == TaskState::Completed && task.request_id.is_some()) {
            outputs.push(json!({
                "key": view::task_id(task.number),
                "kind": "result",
                "content_type": "application/json",
                "task_id": view::task_id(task.number),
                "tool": task.tool,
                "request_id": task.request_id,
                "readable": true,
                "created_at": task.completed.map(|at| at.to_string()),
            }));
        }
        Ok(data(json!({"outputs": outputs})))
    };
    respond(answer.await)
}

/// `GET /v1/compute/{id}/outputs/{key}`
async fn output(
    State(gate): State<Arc<Gate>>,
    Path((id, key)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let answer = async {
        let caller = gate.app.caller(&headers, Scope::Read).await?;
        let own = Own::load(&gate, &caller, &id).await?;
        let missing = || ApiError::Tool {
            status: StatusCode::NOT_FOUND,
            code: "output_not_found",
            message: "the goal has no such output: GET …/outputs lists them".to_owned(),
        };
        let tasks = goal::tasks(&gate.app.db, own.id()).await?;
        let task = tasks.iter().find(|task| view::task_id(task.number) == key && task.state == TaskState::Completed);
        let request_id = task.and_then(|task| task.request_id).ok_or_else(missing)?;
        let job = store::load(&gate.app.db, request_id).await?.filter(|job| job.agent == caller.agent);
        let stored = job.and_then(|job| job.result).ok_or(ApiError::ResultExpired)?;
        let content = read_result(&*gate.app.blobs, &stored).await?.ok_or(ApiError::ResultExpired)?;
        let size = content.to_string().len();
        let readable = size <= MAX_OUTPUT;
        let content = if readable { content } else { Value::Null };
        let body = json!({
            "key": key, "kind": "result", "content_type": "application/json", "size": size, "readable": readable,
            "content": content, "request_id": request_id,
        });
        counted(&gate, &caller, body).await
    };
    respond(answer.await)
}

/// The members of a small body. An empty one has none.
async fn read_members(
    request: Request,
    fields: &'static [input::Field],
) -> Result<(HeaderMap, Map<String, Value>), ApiError> {
    let (parts, body) = request.into_parts();
    let body = read_body(body, MAX_BODY).await?;
    let body = if body.is_empty() { Map::new() } else { parse_body(&parts.headers, &body)? };
    Ok((parts.headers, input::validate_all(fields, &[], &body).map_err(ApiError::InvalidRequest)?))
}

/// `POST /v1/compute/{id}/cancel`
async fn cancel(State(gate): State<Arc<Gate>>, Segment(id): Segment, request: Request) -> Response {
    let answer = async {
        let (headers, _) = read_members(request, tools_compute::control::REASON).await?;
        let caller = gate.app.stopping_caller(&headers, Scope::Write).await?;
        let own = Own::load(&gate, &caller, &id).await?;
        let purse = control::cancel(&gate.engine.toolbox, caller.agent, own.id(), &own.locked).await?;
        let settles = purse.in_flight > base::money::Usdc::ZERO;
        let message = match settles {
            true => "nothing new is bought; calls that were bought already end first, and the rest is credited then",
            false => "nothing new is bought; what is left is credited with its fee",
        };
        let body = json!({
            "goal_id": own.id().goal(),
            "status": if settles { "pending_settlement" } else { "cancelled" },
            "remaining_budget": purse.left.to_number(),
            "message": message,
        });
        let status = if settles { StatusCode::ACCEPTED } else { StatusCode::OK };
        Ok(private_json(status, &json!({"success": true, "data": body})))
    };
    respond(answer.await)
}

/// `POST /v1/compute/{id}/pause` and `/resume`: no goal recurs here yet.
async fn pause(State(gate): State<Arc<Gate>>, Segment(id): Segment, request: Request) -> Response {
    let answer = async {
        let (headers, _) = read_members(request, tools_compute::control::REASON).await?;
        let caller = gate.app.caller(&headers, Scope::Write).await?;
        Own::load(&gate, &caller, &id).await?;
        Err(not_recurring("only recurring goals are paused and resumed; this one has no schedule"))
    };
    respond(answer.await)
}

/// `POST /v1/compute/{id}/fund`: no goal recurs here yet, and one that has ended stays so.
async fn fund(State(gate): State<Arc<Gate>>, Segment(id): Segment, request: Request) -> Response {
    let answer = async {
        let (headers, _) = read_members(request, tools_compute::control::FUNDS).await?;
        let caller = gate.app.caller(&headers, Scope::Write).await?;
        Own::load(&gate, &caller, &id).await?;
        Err(not_recurring("this service funds no goal a second time yet: buy a new one for what is left to do"))
    };
    respond(answer.await)
}

fn not_recurring(message: &str) -> ApiError {
    ApiError::Tool { status: StatusCode::BAD_REQUEST, code: "not_recurring", message: message.to_owned() }
}

/// `POST /v1/compute/{id}/respond`
async fn answer(State(gate): State<Arc<Gate>>, Segment(id): Segment, request: Request) -> Response {
    let answer = async {
        let (headers, given) = read_members(request, tools_compute::control::RESPONSE).await?;
        let text = |name: &str| given.get(name).and_then(Value::as_str).map(str::to_owned);
        let answer = Answer {
            task_id: text("task_id"),
            approved: given.get("approved").and_then(Value::as_bool),
            response: text("response"),
            confirm_done: given.get("confirm_done").and_then(Value::as_bool),
        };
        if answer.approved.is_none() && answer.response.is_none() && answer.confirm_done.is_none() {
            return Err(ApiError::field("response", "is needed, or approved, or confirm_done"));
        }
        let caller = gate.app.caller(&headers, Scope::Write).await?;
        let own = Own::load(&gate, &caller, &id).await?;
        let waiting = || ApiError::Tool {
            status: StatusCode::BAD_REQUEST,
            code: "invalid_state",
            message: "no task of the goal waits for an answer".to_owned(),
        };
        let goal = own.goal.as_ref().ok_or_else(waiting)?;
        let task = control::respond(&gate.engine.toolbox, goal, &answer).await?;
        Ok(data(json!({
            "task_id": view::task_id(task.number),
            "goal_id": own.id().goal(),
            "task_status": task.state.as_str(),
            "orchestrator_action": "continue_execution",
        })))
    };
    respond(answer.await)
}
