//! What is checked before a call is sold, and what it takes in the transaction that claims it.

use base::ids::AgentId;
use base::input::FieldError;
use http::StatusCode;
use platform::http::ApiError;
use platform::store::{Db, Write};
use serde_json::{Map, Value, json};
use tools::spec::Claiming;
use tools::{Toolbox, lock};
use uuid::Uuid;

use crate::account::{self, Account, Allowed, Status};
use crate::action::{Action, Kind};
use crate::invitations::{self, Invitation};
use crate::syncing::{self, Run};
use crate::{inbox, limits, providers, sync};

/// The refusals of every paid tool of the family.
pub const REFUSALS: &[(u16, &str)] = &[
    (400, "idempotency_key_required"),
    (403, "grant_missing"),
    (404, "account_not_found"),
    (409, "account_not_connected"),
    (429, "account_send_limit"),
    (503, "provider_unavailable"),
];

pub fn not_found(code: &'static str, message: &str) -> ApiError {
    ApiError::Tool { status: StatusCode::NOT_FOUND, code, message: message.to_owned() }
}

pub fn account_not_found() -> ApiError {
    not_found("account_not_found", "you have no account with this id: GET /v1/tools/linkedin/accounts lists them")
}

/// A member of an input, as a UUID; the schema has checked its form.
pub fn id(input: &Map<String, Value>, name: &str) -> Uuid {
    let text = input.get(name).and_then(Value::as_str);
    text.and_then(|text| Uuid::try_parse(text).ok()).unwrap_or_default()
}

/// The account that an input names, if its owner allows this with it.
///
/// # Errors
/// 404 `account_not_found`; 403 `grant_missing`; 409 `account_not_connected`.
pub async fn usable(
    toolbox: &Toolbox,
    agent: AgentId,
    input: &Map<String, Value>,
    needed: Allowed,
) -> Result<Account, ApiError> {
    let db = &toolbox.db;
    let account = account::load(db, agent, id(input, "account_id")).await?.ok_or_else(account_not_found)?;
    if account.status == Status::Revoked || !account.grant.has(needed) {
        return Err(ApiError::Tool {
            status: StatusCode::FORBIDDEN,
            code: "grant_missing",
            message: format!("{} is not allowed with this account; nothing was charged", json!(needed)),
        });
    }
    let why = if providers::chosen(&toolbox.config).is_some_and(|name| name != account.provider) {
        "this service reaches another network now; POST /v1/tools/linkedin/connect connects an account of that"
    } else if account.status != Status::Connected {
        "the account is not connected now: POST /v1/tools/linkedin/accounts/{id}/reconnect"
    } else {
        return Ok(account);
    };
    Err(ApiError::Tool { status: StatusCode::CONFLICT, code: "account_not_connected", message: why.to_owned() })
}

/// Checks an action before a price. What is private is only looked at for a proven agent; the claim checks all of it again.
pub async fn check(
    toolbox: &Toolbox,
    kind: Kind,
    input: &Map<String, Value>,
    agent: Option<AgentId>,
    is_proven: bool,
) -> Result<(), ApiError> {
    // Without a provider, that is what is said.
    match agent.filter(|_| is_proven && providers::chosen(&toolbox.config).is_some()) {
        Some(agent) => allowed(toolbox, kind, input, agent).await.map(drop),
        None => Ok(()),
    }
}

/// The account with which an action is allowed now.
async fn allowed(
    toolbox: &Toolbox,
    kind: Kind,
    input: &Map<String, Value>,
    agent: AgentId,
) -> Result<Account, ApiError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let account = usable(toolbox, agent, input, kind.needs()).await?;
    match kind {
        Kind::Reply => {
            let found = inbox::conversation(db, account.id, id(input, "conversation_id")).await?;
            let gone = || not_found("conversation_not_found", "the account has no conversation with this id here");
            if found.ok_or_else(gone)?.read_only {
                return Err(ApiError::Tool {
                    status: StatusCode::CONFLICT,
                    code: "conversation_read_only",
                    message: "nobody can write in this conversation; nothing was charged".to_owned(),
                });
            }
        }
        Kind::Invite => {
            check_invite(db, &account, input).await?;
        }
        Kind::WithdrawInvite => {
            let found = invitations::load(db, account.id, id(input, "invitation_id")).await?;
            found.ok_or_else(|| not_found("invitation_not_found", "the account has no invitation with this id"))?;
        }
        Kind::Message | Kind::ProfileView | Kind::React => {}
    }
    if let Some(limit) = kind.limit() {
        limits::check(db, &account, limit, now).await?;
    }
    Ok(account)
}

/// Refuses an invitation that its account may not send. An earlier one of the member that was left behind.
async fn check_invite(db: &Db, account: &Account, input: &Map<String, Value>) -> Result<Option<Uuid>, ApiError> {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    let longest = limits::longest_note(account.tier);
    if text("note").chars().count() > longest {
        let message = format!("this account's notes have at most {longest} characters");
        return Err(ApiError::InvalidRequest(vec![FieldError::new("note", message)]));
    }
    match invitations::open_of(db, account.id, text("profile")).await? {
        None => Ok(None),
        Some(open) if invitations::never_paid(db, &open).await? => Ok(Some(open.id)),
        Some(open) => Err(ApiError::Detailed {
            status: StatusCode::CONFLICT,
            code: "duplicate_request",
            message: "this member has an open invitation of the account; nothing was charged".to_owned(),
            details: json!({
                "request_id": open.request,
                "action_request_id": open.request,
                "invitation_id": open.id,
            }),
        }),
    }
}

/// What an action takes in its claim: its record, and its place in the limits.
pub async fn claim(toolbox: &Toolbox, claiming: Claiming<'_>, kind: Kind) -> Result<Vec<Write>, ApiError> {
    let (db, now) = (&toolbox.db, claiming.now);
    let account = allowed(toolbox, kind, claiming.input, claiming.agent).await?;
    stay_awake(db, &account, now).await?;
    let mut action = Action::new(claiming.request_id, &account, kind, now);
    let text = |name: &str| claiming.input.get(name).and_then(Value::as_str);
    let mut writes = Vec::new();
    match kind {
        Kind::Invite => {
            let profile = text("profile").unwrap_or_default();
            let invitation = Invitation::new(claiming.request_id, profile, text("note"), now);
            let left = check_invite(db, &account, claiming.input).await?;
            writes = invitation.begin(db, account.id, left)?;
            action.invitation = Some(invitation.id);
        }
        Kind::WithdrawInvite => action.invitation = Some(id(claiming.input, "invitation_id")),
        _ => {}
    }
    writes.extend(action.begin(db)?);
    if let Some(limit) = kind.limit() {
        writes.extend(limits::take(db, &account, limit, now)?);
    }
    Ok(writes)
}

/// Its owner uses the account, so it is not idle.
pub async fn stay_awake(db: &Db, account: &Account, now: base::clock::Timestamp) -> Result<(), ApiError> {
    if let Some(next) = account.used(now) {
        // Whoever changes it meanwhile knows that it is used.
        account.save(db, &next).await?;
    }
    Ok(())
}

/// Checks a sync before a price.
pub async fn check_sync(
    toolbox: &Toolbox,
    input: &Map<String, Value>,
    agent: Option<AgentId>,
    is_proven: bool,
) -> Result<(), ApiError> {
    let may_look = is_proven && providers::chosen(&toolbox.config).is_some();
    let Some(agent) = agent.filter(|_| may_look) else { return Ok(()) };
    let account = usable(toolbox, agent, input, Allowed::Read).await?;
    let key = syncing::lock_key(account.id);
    match lock::holder(&toolbox.db, &toolbox.db.tables.messages, key).await? {
        Some(job) => Err(in_progress(job)),
        None => Ok(()),
    }
}

fn in_progress(job: base::ids::RequestId) -> ApiError {
    ApiError::Detailed {
        status: StatusCode::CONFLICT,
        code: "sync_in_progress",
        message: format!("the account is being read by {job}; nothing was charged"),
        details: json!({"request_id": job}),
    }
}

/// What a sync takes in its claim: its record, and the account's lock.
pub async fn claim_sync(toolbox: &Toolbox, claiming: Claiming<'_>) -> Result<Vec<Write>, ApiError> {
    let (db, now) = (&toolbox.db, claiming.now);
    let account = usable(toolbox, claiming.agent, claiming.input, Allowed::Read).await?;
    stay_awake(db, &account, now).await?;
    let key = syncing::lock_key(account.id);
    let taken = lock::take(db, &db.tables.messages, key, claiming.request_id, now).await?;
    let lock = taken.map_err(in_progress)?;
    let coverage = syncing::coverage(db, account.id).await?;
    let begun = sync::begins(claiming.input, &coverage);
    let pages = claiming.input.get("max_pages").and_then(Value::as_u64).and_then(|pages| u32::try_from(pages).ok());
    let mut run =
        Run::new(claiming.request_id, (claiming.agent, account.id), begun.kind, pages.unwrap_or(sync::MAX_PAGES), now);
    (run.cursor, run.until) = (begun.cursor, begun.until);
    let mut writes = run.begin(db)?;
    writes.push(lock);
    Ok(writes)
}
