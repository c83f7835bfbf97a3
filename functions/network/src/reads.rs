//! What is here of an account: its sync, conversations, messages and invitations.

use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use base::ids::RequestId;
use gate::{Gate, respond};
use http::{HeaderMap, StatusCode};
use platform::auth::Scope;
use platform::http::{ApiError, Params, Segment, private_json};
use serde_json::{Value, json};
use tools::lock;
use tools_network::account::Account;
use tools_network::claiming::not_found;
use tools_network::inbox::{self, Choice, Filter};
use tools_network::invitations::{self as invited, STATUSES};
use tools_network::syncing::{self, Run};
use uuid::Uuid;

use crate::{Shared, counted, own};

const MAX_CURSOR: usize = 512;
const LARGEST_PAGE: usize = 100;
const USUAL_PAGE: usize = 50;

fn run_not_found() -> ApiError {
    not_found("run_not_found", "you have no sync with this id; they are kept for 90 days")
}

/// The account's coverage and the state of its sync.
async fn covered(gate: &Gate, account: &Account) -> Result<(Value, &'static str), ApiError> {
    let db = &gate.app.db;
    let coverage = syncing::coverage(db, account.id).await?;
    let running = lock::holder(db, &db.tables.messages, syncing::lock_key(account.id)).await?;
    Ok((coverage.view(), coverage.state(account, running.is_some())))
}

/// `GET /v1/tools/linkedin/accounts/{id}/sync`
pub async fn sync(State(gate): Shared, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let (caller, account) = own(&gate, &headers, Scope::Read, &id).await?;
        let (coverage, state) = covered(&gate, &account).await?;
        let runs = syncing::runs(&gate.app.db, account.id).await?;
        let active = runs.iter().find(|run| !run.status.is_over()).filter(|_| state == "syncing").map(Run::view);
        let last = runs.iter().find(|run| run.status.is_over()).map(Run::view);
        let mut body = json!({
            "account_id": account.id,
            "sync_state": state,
            "coverage": coverage,
            "runs": runs.iter().map(Run::view).collect::<Vec<_>>(),
        });
        for (name, run) in [("active_run", active), ("last_run", last)] {
            if let Some(run) = run {
                body[name] = run;
            }
        }
        counted(&gate, &caller, &body).await
    };
    respond(answer.await)
}

/// `GET /v1/tools/linkedin/sync/{run}`
pub async fn run(State(gate): Shared, Segment(run): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = gate.app.caller(&headers, Scope::Read).await?;
        let id: RequestId = run.parse().map_err(|_| run_not_found())?;
        let found = syncing::load(&gate.app.db, id).await?.filter(|run| run.agent == caller.agent);
        Ok(private_json(StatusCode::OK, &found.ok_or_else(run_not_found)?.view()))
    };
    respond(answer.await)
}

/// A page of a list, with what is known of the whole.
async fn page(
    gate: &Gate,
    account: &Account,
    name: &str,
    items: Vec<Value>,
    next: Option<String>,
) -> Result<Value, ApiError> {
    let (coverage, state) = covered(gate, account).await?;
    let mut body = json!({"has_more": next.is_some(), "coverage": coverage, "sync_state": state});
    body[name] = json!(items);
    if let Some(next) = next {
        body["next_cursor"] = json!(next);
    }
    Ok(body)
}

/// `GET /v1/tools/linkedin/accounts/{id}/conversations`
pub async fn conversations(
    State(gate): Shared,
    Segment(id): Segment,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        let limit = params.integer("limit", 1, LARGEST_PAGE).unwrap_or(USUAL_PAGE);
        let cursor = params.short_text("cursor", MAX_CURSOR);
        let choice =
            Choice { since: params.time("since"), unread: params.flag("unread"), archived: params.flag("archived") };
        params.check()?;
        let (caller, account) = own(&gate, &headers, Scope::Read, &id).await?;
        let (found, next) = inbox::conversations(&gate.app.db, account.id, &choice, cursor.as_deref(), limit).await?;
        let views = found.iter().map(inbox::Conversation::view).collect();
        counted(&gate, &caller, &page(&gate, &account, "conversations", views, next).await?).await
    };
    respond(answer.await)
}

/// `GET /v1/tools/linkedin/accounts/{id}/messages`
pub async fn messages(
    State(gate): Shared,
    Segment(id): Segment,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        let limit = params.integer("limit", 1, LARGEST_PAGE).unwrap_or(USUAL_PAGE);
        let cursor = params.short_text("cursor", MAX_CURSOR);
        let filter = Filter {
            conversation: params.parsed::<Uuid>("conversation_id"),
            since: params.time("since"),
            changed_since: params.time("changed_since"),
            outbound: params.choice("direction", &["inbound", "outbound"]).map(|direction| direction == "outbound"),
            with_deleted: params.flag("include_deleted").unwrap_or(false),
        };
        params.check()?;
        let (caller, account) = own(&gate, &headers, Scope::Read, &id).await?;
        let (db, now) = (&gate.app.db, gate.app.clock.now());
        let (found, next) = inbox::list(db, account.id, &filter, cursor.as_deref(), limit, now).await?;
        let views = found.iter().map(inbox::Message::view).collect();
        counted(&gate, &caller, &page(&gate, &account, "messages", views, next).await?).await
    };
    respond(answer.await)
}

/// `GET /v1/tools/linkedin/accounts/{id}/invitations`: the newest first.
pub async fn invitations(
    State(gate): Shared,
    Segment(id): Segment,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        let limit = params.integer("limit", 1, LARGEST_PAGE).unwrap_or(USUAL_PAGE);
        let cursor = params.short_text("cursor", MAX_CURSOR);
        let choice =
            invited::Choice { status: params.choice("status", STATUSES), changed_since: params.time("changed_since") };
        params.check()?;
        let (caller, account) = own(&gate, &headers, Scope::Read, &id).await?;
        let (found, next) = invited::list(&gate.app.db, account.id, &choice, cursor.as_deref(), limit).await?;
        let views: Vec<Value> = found.iter().map(invited::Invitation::view).collect();
        let mut body = json!({"invitations": views, "has_more": next.is_some()});
        if let Some(next) = next {
            body["next_cursor"] = json!(next);
        }
        counted(&gate, &caller, &body).await
    };
    respond(answer.await)
}

/// `GET /v1/tools/linkedin/accounts/{id}/invitations/{invitation}`
pub async fn invitation(
    State(gate): Shared,
    path: Result<Path<(String, String)>, axum::extract::rejection::PathRejection>,
    headers: HeaderMap,
) -> Response {
    let answer = async {
        let Path((id, invitation)) = path.map_err(|_| ApiError::NotFound)?;
        let (_, account) = own(&gate, &headers, Scope::Read, &id).await?;
        let gone = || not_found("invitation_not_found", "the account has no invitation with this id");
        let invitation = Uuid::try_parse(&invitation).map_err(|_| gone())?;
        let found = invited::load(&gate.app.db, account.id, invitation).await?.ok_or_else(gone)?;
        Ok(private_json(StatusCode::OK, &found.view()))
    };
    respond(answer.await)
}
