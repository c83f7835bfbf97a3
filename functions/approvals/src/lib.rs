//! An agent's action policy, approvals, and the page on which a human decides.

mod identity;

use std::str::FromStr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post};
use base::clock::Timestamp;
use base::digest::canonical_json;
use base::input::FieldError;
use gate::app::App;
use gate::approvals::approval::{Approval, ApprovalId, Asker, Source, Status};
use gate::approvals::decision::Decision;
use gate::approvals::hours::Zone;
use gate::approvals::moves::{self, Moved};
use gate::approvals::store::{self, CreateError};
use gate::approvals::{Notices, Policy, backtest, form, page};
use gate::idempotency::{self, Request};
use gate::limits::{self, Class, Subject};
use gate::{MAX_BODY_BYTES, empty_body, parse_body, respond};
use http::{HeaderMap, StatusCode};
use ledger::notifications::{self, Notification, NotificationKind};
use ledger::receipt::{self, Order, Span};
use ledger::signing::ReceiptSigner;
use ledger::webhooks::{Event, EventKind, outbox};
use platform::auth::{Caller, Scope};
use platform::http::{ApiError, Segment, private_json, read_body};
use platform::store::jobs;
use platform::store::{Queue, StoreError};
use serde_json::{Map, Value, json};

/// Limit of a decision's body in bytes: a word and a note, percent-encoded.
const MAX_DECISION_BYTES: usize = 16 * 1024;
const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;

/// State shared by the routes.
#[derive(Clone)]
pub struct ApprovalsState {
    pub app: App,
    /// Signs decisions.
    pub signer: ReceiptSigner,
    pub notices: Notices,
    /// The job queue: identity checks wait for a person there.
    pub queue: Arc<dyn Queue>,
}

pub fn router(state: ApprovalsState) -> Router {
    let router = Router::new()
        .route("/v1/agents/me/action-policy", get(read_policy).put(put_policy).delete(delete_policy))
        .route("/v1/agents/me/action-policy/backtest", post(test_policy))
        .route("/v1/approvals", get(list).post(create))
        .route("/v1/approvals/{id}", get(read))
        .route("/v1/approvals/{id}/cancel", post(cancel))
        .route("/approve/{token}", get(ask).post(decide))
        .route("/identity/{id}", get(identity::show).post(identity::answer))
        .route("/v1/identity/webhook", post(identity::event));
    api::routes::finish(router.with_state(state))
}

/// `GET /v1/agents/me/action-policy`: the policy, or null.
async fn read_policy(State(state): State<ApprovalsState>, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = state.app.caller(&headers, Scope::Read).await?;
        let policy = store::policy(&state.app.db, caller.agent).await?;
        Ok(success(StatusCode::OK, policy.map_or(Value::Null, |policy| policy.view())))
    };
    respond(answer.await)
}

/// `PUT /v1/agents/me/action-policy`: replaces the whole policy.
async fn put_policy(State(state): State<ApprovalsState>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let caller = state.owner(&headers).await?;
        let body = json_body(&headers, body).await?;
        let policy = form::policy(state.app.catalog, &body, state.app.clock.now()).map_err(ApiError::InvalidRequest)?;
        store::put_policy(&state.app.db, caller.agent, &policy).await?;
        Ok(success(StatusCode::OK, policy.view()))
    };
    respond(answer.await)
}

/// `DELETE /v1/agents/me/action-policy`: from the next call on, nothing is held.
async fn delete_policy(State(state): State<ApprovalsState>, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = state.owner(&headers).await?;
        store::delete_policy(&state.app.db, caller.agent).await?;
        Ok(success(StatusCode::OK, Value::Null))
    };
    respond(answer.await)
}

/// `POST /v1/agents/me/action-policy/backtest`: applies a draft to the charges of the last 30 days.
async fn test_policy(State(state): State<ApprovalsState>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let caller = state.app.caller(&headers, Scope::Read).await?;
        let body = json_body(&headers, body).await?;
        let now = state.app.clock.now();
        let policy = form::policy(state.app.catalog, &body, now).map_err(ApiError::InvalidRequest)?;
        let from = now.minus(std::time::Duration::from_secs(backtest::DAYS * 24 * 3600));
        let receipts = {
            let span = Span { since: Some(from), until: None };
            receipt::within(&state.app.db, caller.agent, span, Order::NewestFirst, None, backtest::MAX_RECEIPTS).await?
        };
        Ok(success(StatusCode::OK, backtest::run(state.app.catalog, &policy, &receipts, from, now)))
    };
    respond(answer.await)
}

/// `POST /v1/approvals`: the agent asks for an approval that no rule demands. A wallet may ask anybody. An access token may
/// ask only the approver whom its owner's policy names: a stolen one must not send mails to strangers.
async fn create(State(state): State<ApprovalsState>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let caller = state.app.caller(&headers, Scope::Write).await?;
        let body = json_body(&headers, body).await?;
        let policy = store::policy(&state.app.db, caller.agent).await?;
        let owners = policy.as_ref().map(|policy| &policy.approver).filter(|approver| approver.one().is_some());
        if caller.token().is_some() && owners.is_none() {
            return Err(not_by_token("set an action policy with an approver first, whom access tokens may ask"));
        }
        let request = form::request(&body, owners).map_err(ApiError::InvalidRequest)?;
        if caller.token().is_some() && !owners.is_some_and(|owners| owners.includes(&request.approver)) {
            return Err(not_by_token("an access token may ask only the approver of its owner's action policy"));
        }
        let timezone = policy.as_ref().and_then(Policy::timezone).cloned();
        let route = "POST /v1/approvals";
        let named = Request { caller: &caller, headers: &headers, route, body: &body, secret: None };
        idempotency::once(&state.app, named, state.ask(&caller, request, timezone)).await
    };
    respond(answer.await)
}

/// The refusal of an approval that only the wallet may ask for.
fn not_by_token(why: &str) -> ApiError {
    ApiError::Tool { status: StatusCode::FORBIDDEN, code: ApiError::WalletOnly.code(), message: why.to_owned() }
}

/// `GET /v1/approvals`: newest first.
async fn list(State(state): State<ApprovalsState>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    let answer = async {
        let (status, limit) = list_query(query.as_deref().unwrap_or_default())?;
        let caller = state.app.caller(&headers, Scope::Read).await?;
        let now = state.app.clock.now();
        let approvals = store::list(&state.app.db, caller.agent, status, limit, now).await?;
        let approvals: Vec<Value> = approvals.iter().map(|approval| approval.view(now)).collect();
        let body = json!({"approvals": approvals});
        limits::take_list(&state.app, Subject::Agent(caller.agent), Class::Export, body.to_string().len()).await?;
        Ok(success(StatusCode::OK, body))
    };
    respond(answer.await)
}

/// `GET /v1/approvals/{id}`: one, with the signed record of its decision.
async fn read(State(state): State<ApprovalsState>, headers: HeaderMap, Segment(id): Segment) -> Response {
    let answer = async {
        let caller = state.app.caller(&headers, Scope::Read).await?;
        let approval = state.approval(&caller, &id).await?;
        Ok(success(StatusCode::OK, approval.view_with_receipt(state.app.clock.now())))
    };
    respond(answer.await)
}

/// `POST /v1/approvals/{id}/cancel`: idempotent.
async fn cancel(State(state): State<ApprovalsState>, headers: HeaderMap, Segment(id): Segment, body: Body) -> Response {
    let answer = async {
        empty_body(&headers, body).await?;
        let caller = state.app.stopping_caller(&headers, Scope::Write).await?.wallet_only(ApiError::WalletOnly)?;
        let approval = state.approval(&caller, &id).await?;
        let now = state.app.clock.now();
        let approval = match moves::cancel(&state.app.db, &approval, now).await? {
            Moved::Now(approval) => approval,
            Moved::Before(approval) if approval.status == Status::Cancelled => approval,
            Moved::Before(_) => return Err(ApiError::ApprovalNotPending),
        };
        Ok(success(StatusCode::OK, approval.view_with_receipt(now)))
    };
    respond(answer.await)
}

/// `GET /approve/{token}`: shows the action to decide on. Changes nothing.
async fn ask(State(state): State<ApprovalsState>, Segment(token): Segment) -> Response {
    // The rate limit also stops guessing of links.
    if let Err(refused) = limits::take(&state.app, Subject::source(), Class::Open).await {
        return respond(Err(refused));
    }
    let approval = match store::of_link(&state.app.db, &token).await {
        Ok(Some(approval)) => approval,
        Ok(None) => return state.no_such_link(),
        Err(error) => return state.not_now(&error),
    };
    let now = state.app.clock.now();
    match moves::is_asked(&state.app.db, &approval, now).await {
        Ok(true) => page::show(&approval, state.name(), now, StatusCode::OK),
        Ok(false) => page::no_longer_asked(StatusCode::OK, state.name()),
        Err(error) => state.not_now(&error),
    }
}

/// `POST /approve/{token}`: decides, once. A later call shows the first decision.
async fn decide(State(state): State<ApprovalsState>, Segment(token): Segment, body: Body) -> Response {
    if let Err(refused) = limits::take(&state.app, Subject::source(), Class::Open).await {
        return respond(Err(refused));
    }
    let approval = match store::of_link(&state.app.db, &token).await {
        Ok(Some(approval)) => approval,
        Ok(None) => return state.no_such_link(),
        Err(error) => return state.not_now(&error),
    };
    let Ok(body) = read_body(body, MAX_DECISION_BYTES).await else { return state.bad_form("It is too long.") };
    let (decision, note) = match decision(&body) {
        Ok(decided) => decided,
        Err(what) => return state.bad_form(what),
    };
    let now = state.app.clock.now();
    match moves::decide(&state.app.db, &approval, decision, note.as_deref(), now, &state.signer).await {
        Ok(Some(Moved::Now(approval))) => {
            state.tell(&approval, now).await;
            if let Some(waiting) = approval.wakes {
                jobs::wake(&state.app.db, &*state.queue, waiting).await;
            }
            page::show(&approval, state.name(), now, StatusCode::OK)
        }
        Ok(Some(Moved::Before(approval))) => page::show(&approval, state.name(), now, StatusCode::CONFLICT),
        Ok(None) => page::no_longer_asked(StatusCode::CONFLICT, state.name()),
        Err(error) => state.not_now(&error),
    }
}

impl ApprovalsState {
    /// The wallet itself: an access token must not change the policy that limits it.
    async fn owner(&self, headers: &HeaderMap) -> Result<Caller, ApiError> {
        self.app.wallet_caller(headers, Scope::Write, ApiError::WalletOnly).await
    }

    /// Creates an approval and notifies the approver.
    async fn ask(
        &self,
        caller: &Caller,
        request: form::Request,
        timezone: Option<Zone>,
    ) -> Result<(StatusCode, Value), ApiError> {
        let now = self.app.clock.now();
        let mut approval = Approval {
            source: Source::Api,
            asked_by: Some(Asker::of(&self.app.db, caller.wallet, caller.token()).await),
            timezone,
            action_summary: request.action_summary,
            preview: request.preview.as_ref().map(canonical_json),
            ..Approval::pending(caller.agent, request.approver, request.expires_in_seconds, now)
        };
        let token = match store::create(&self.app.db, &approval, None, now).await {
            Ok(token) => token,
            Err(CreateError::TooManyPending) => return Err(ApiError::TooManyPendingApprovals),
            Err(CreateError::TooManyToday(taken)) => return Err(ApiError::RateLimited(taken)),
            Err(CreateError::Exists(id)) => return Err(StoreError::new(format_args!("{id} is there already")).into()),
            Err(CreateError::Store(error)) => return Err(error.into()),
        };
        self.notices.send(&self.app.db, &mut approval, &token, now).await;
        Ok((StatusCode::CREATED, json!({"success": true, "data": approval.view_with_receipt(now)})))
    }

    async fn approval(&self, caller: &Caller, id: &str) -> Result<Approval, ApiError> {
        let id = ApprovalId::from_str(id).map_err(|_| ApiError::NotFound)?;
        store::load(&self.app.db, caller.agent, &id).await?.ok_or(ApiError::NotFound)
    }

    /// Notifies the agent of the decision. The agent can also read the approval.
    async fn tell(&self, approval: &Approval, now: Timestamp) {
        let view = approval.view(now);
        let about = json!({"approval_id": view["approval_id"], "status": view["status"], "use_by": view["use_by"]});
        let note = Notification {
            kind: NotificationKind::ApprovalDecided,
            title: told(approval),
            body: None,
            payload: Some(about.clone()),
        };
        let (db, agent, cause) = (&self.app.db, approval.agent_id, approval.approval_id.to_string());
        let event = Event::new(agent, EventKind::ApprovalDecided, &cause, now, about);
        // The sweeper sends the event within a minute.
        let told = async { outbox::put(db, &event, now).await?.keep(db).await };
        let (noted, told) = tokio::join!(notifications::raise_now(db, agent, note, &cause, now), told);
        if let Err(error) = noted.and(told) {
            platform::http::log::failure("the agent could not be notified of a decision", &error);
        }
    }

    fn name(&self) -> &str {
        &self.app.config.service_name
    }

    fn no_such_link(&self) -> Response {
        let text = "The link is incomplete or has expired. Open it from the mail again.";
        page::say(StatusCode::NOT_FOUND, self.name(), "This link does not work", text)
    }

    fn bad_form(&self, what: &str) -> Response {
        page::say(StatusCode::BAD_REQUEST, self.name(), "This answer could not be read", what)
    }

    fn not_now(&self, error: &StoreError) -> Response {
        platform::http::log::failure("dependency unavailable", error);
        let text = "Nothing was decided. Try again shortly.";
        let mut page = page::say(StatusCode::SERVICE_UNAVAILABLE, self.name(), "Not now", text);
        page.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("2"));
        page
    }
}

/// A decision as its agent is told it.
fn told(approval: &Approval) -> String {
    let verb = if approval.status == Status::Approved { "approved" } else { "denied" };
    match approval.source {
        Source::Policy => format!("A person {verb} this call: {}", approval.action_summary),
        Source::Api => format!("A person {verb} what you asked for"),
    }
}

fn success(status: StatusCode, data: Value) -> Response {
    private_json(status, &json!({"success": true, "data": data}))
}

async fn json_body(headers: &HeaderMap, body: Body) -> Result<Map<String, Value>, ApiError> {
    let body: Bytes = read_body(body, MAX_BODY_BYTES).await?;
    parse_body(headers, &body)
}

/// A form with `decision` and an optional `note`.
fn decision(body: &[u8]) -> Result<(Decision, Option<String>), &'static str> {
    let (mut decision, mut note) = (None, None);
    for (name, value) in url::form_urlencoded::parse(body) {
        match &*name {
            "decision" if decision.is_some() => return Err("It has two decisions."),
            "decision" => decision = Some(value.into_owned()),
            "note" => note = Some(value.trim().to_owned()).filter(|note| !note.is_empty()),
            _ => {}
        }
    }
    if note.as_ref().is_some_and(|note| note.chars().count() > page::MAX_NOTE_CHARS) {
        return Err("The note may have at most 500 characters.");
    }
    match decision.as_deref() {
        Some("approve") => Ok((Decision::Approved, note)),
        Some("deny") => Ok((Decision::Denied, note)),
        _ => Err("It must approve or deny."),
    }
}

/// `status` and `limit` of a list.
fn list_query(query: &str) -> Result<(Option<Status>, usize), ApiError> {
    let (mut status, mut limit, mut wrong) = (None, DEFAULT_LIMIT, Vec::new());
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "status" => match Status::parse(&value) {
                Some(known) => status = Some(known),
                None => wrong.push(FieldError::new(
                    "status",
                    "must be pending, approved, denied, expired, cancelled or consumed",
                )),
            },
            "limit" => match value.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit)) {
                Some(number) => limit = number,
                None => wrong.push(FieldError::new("limit", format!("must be a whole number from 1 to {MAX_LIMIT}"))),
            },
            _ => {}
        }
    }
    if wrong.is_empty() { Ok((status, limit)) } else { Err(ApiError::InvalidRequest(wrong)) }
}
