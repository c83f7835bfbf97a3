//! The check before a price is quoted or charged: does the action policy allow this call?

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::canonical_json;
use base::ids::{AgentId, RequestId, TokenId};
use base::money::Usdc;
use evm::Address;
use platform::http::ApiError;
use platform::store::{Db, Write};
use serde_json::{Map, Value, json};
use tools::spec::ToolSpec;

use super::approval::{Approval, ApprovalId, Asker, Source, Status};
use super::form::MAX_PREVIEW_CHARS;
use super::moves::{self, Moved};
use super::notice::Notices;
use super::policy::{Policy, Rule, Verdict};
use super::store::{self, CreateError};
use crate::order::Listing;

/// Largest input that its approver can read in full, in bytes.
const MAX_WHOLE_BYTES: usize = 128 * 1024;

/// A call that was denied is not asked about again for this long, unless the owner changes the policy.
const DENIED_FOR: Duration = Duration::from_secs(24 * 3600);

/// A tool call, as it would be paid.
pub struct GateCall<'a> {
    /// Proven by an agent proof, a token or the payment's signature, never by `X-Agent-ID`: a held call sends a mail to its
    /// agent's approver.
    pub wallet: Address,
    /// The access token that was used.
    pub token: Option<TokenId>,
    pub tool: &'a ToolSpec,
    /// The seller's listing; `None` for our own tools.
    pub listing: Option<&'a Listing>,
    /// The tool's own input, validated.
    pub input: &'a Map<String, Value>,
    pub amount: Usdc,
    /// SHA-256 of the canonical body.
    pub body: &'a [u8; 32],
    /// `X-Approval-Id`.
    pub approval_id: Option<&'a str>,
    /// Set for the paid request: the approval that releases the call is used up with it.
    pub consume: bool,
    /// The job that goes on once the call is decided on.
    pub wakes: Option<RequestId>,
    pub now: Timestamp,
}

impl GateCall<'_> {
    fn agent(&self) -> AgentId {
        AgentId::of(self.wallet)
    }
}

/// Why a call may be made.
#[derive(Debug)]
pub enum GateVerdict {
    /// No rule holds or denies it.
    Allowed,
    /// An approval releases it. For the paid request, `consume` belongs in the transaction of the claim. If its condition
    /// fails there, another call used the approval ([`approval_was_used`]).
    Released { approval_id: ApprovalId, consume: Option<Box<Write>> },
}

/// Judges a call by its agent's policy. Costs one read if there is none.
///
/// # Errors
/// 403 `action_denied_by_policy`; 403 `approval_required` with the new or existing approval; 403 `approval_invalid` for an
/// approval that does not release this call; 409 `too_many_pending_approvals`.
pub async fn gate_check(db: &Db, notices: &Notices, call: &GateCall<'_>) -> Result<GateVerdict, ApiError> {
    let Some(policy) = store::policy(db, call.agent()).await? else { return Ok(GateVerdict::Allowed) };
    match policy.judge(call.tool, call.input, call.amount, call.now) {
        Verdict::Allow => Ok(GateVerdict::Allowed),
        Verdict::Deny { rule } => Err(ApiError::ActionDenied { rule: rule.id.clone() }),
        Verdict::Hold { rule } => match call.approval_id {
            Some(id) => release(db, call, id).await,
            None => Err(hold(db, notices, call, &policy, rule).await?),
        },
    }
}

/// Refuses what the owner's policy denies at any price, before a provider is told of the call to find out its price.
///
/// # Errors
/// 403 `action_denied_by_policy`.
pub async fn check_before_price(
    db: &Db,
    agent: AgentId,
    tool: &ToolSpec,
    input: &Map<String, Value>,
    now: Timestamp,
) -> Result<(), ApiError> {
    let Some(policy) = store::policy(db, agent).await? else { return Ok(()) };
    match policy.judge(tool, input, Usdc::ZERO, now) {
        Verdict::Deny { rule } => Err(ApiError::ActionDenied { rule: rule.id.clone() }),
        Verdict::Allow | Verdict::Hold { .. } => Ok(()),
    }
}

/// The refusal of a call that a rule holds, for a dry run: nobody is asked. `None` if its approval releases it.
///
/// # Errors
/// Only that the database does not answer.
pub async fn refusal_if_held(db: &Db, call: &GateCall<'_>, policy: &Policy) -> Result<Option<ApiError>, ApiError> {
    if let Some(id) = call.approval_id {
        return match release(db, call, id).await {
            Ok(_) => Ok(None),
            Err(error @ ApiError::Unavailable(_)) => Err(error),
            Err(refused) => Ok(Some(refused)),
        };
    }
    let before = store::held(db, call.agent(), call.tool.name, call.body).await?;
    let before = before.filter(|before| !is_replaced(before, call, policy));
    let known = before.and_then(|before| known(&before, call, policy));
    Ok(Some(known.unwrap_or_else(|| ApiError::ApprovalRequired {
        approval_id: None,
        approval: Box::default(),
        message: "this call needs a human's approval; a dry run asks nobody, the call itself does",
    })))
}

/// The error of a claim whose approval was used by another call in the meantime.
pub fn approval_was_used() -> ApiError {
    ApiError::ApprovalInvalid("the approval was used; it releases one call")
}

async fn release(db: &Db, call: &GateCall<'_>, id: &str) -> Result<GateVerdict, ApiError> {
    let unknown = || ApiError::ApprovalInvalid("there is no such approval of this agent");
    let id: ApprovalId = id.parse().map_err(|_| unknown())?;
    let approval = store::load(db, call.agent(), &id).await?.ok_or_else(unknown)?;
    if let Some(wrong) = mismatch(&approval, call) {
        return Err(ApiError::ApprovalInvalid(wrong));
    }
    let consume = if call.consume { Some(Box::new(moves::consume(db, &approval, call.now)?)) } else { None };
    Ok(GateVerdict::Released { approval_id: id, consume })
}

/// Why an approval does not release a call, or `None` if it does.
fn mismatch(approval: &Approval, call: &GateCall<'_>) -> Option<&'static str> {
    let same_call = approval.source == Source::Policy
        && approval.tool.as_deref() == Some(call.tool.name)
        && approval.body_digest.as_deref() == Some(const_hex::encode(call.body).as_str());
    match approval.status_at(call.now) {
        _ if !same_call => Some("the approval is for another call"),
        Status::Pending => Some("the approval is not decided yet"),
        Status::Denied => Some("the approval was denied"),
        Status::Expired => Some("the approval has expired"),
        Status::Cancelled => Some("the approval was cancelled"),
        Status::Consumed => Some("the approval was used; it releases one call"),
        // The human approved a price, so a higher one is not covered.
        Status::Approved if approval.amount.is_none_or(|amount| call.amount > amount) => {
            Some("the call now costs more than what was approved")
        }
        Status::Approved => None,
    }
}

/// The error for a held call: with its open approval (pending, or approved and unused), or with a new one. A call that was
/// denied lately gets no new one, so that an agent that repeats it does not mail the approver each time.
async fn hold(
    db: &Db,
    notices: &Notices,
    call: &GateCall<'_>,
    policy: &Policy,
    rule: &Rule,
) -> Result<ApiError, ApiError> {
    let mut before = store::held(db, call.agent(), call.tool.name, call.body).await?;
    if let Some(open) = before.as_ref().filter(|open| is_replaced(open, call, policy)) {
        // Of an old link and a new one, only the new one is to decide. What was decided just before stands.
        let (Moved::Now(closed) | Moved::Before(closed)) = moves::cancel(db, open, call.now).await?;
        before = Some(*closed);
    }
    if let Some(known) = before.as_ref().and_then(|before| known(before, call, policy)) {
        return Ok(known);
    }
    let asked_by = Some(Asker::of(db, call.wallet, call.token).await);
    let mut approval = Approval { asked_by, ..new_approval(call, policy, rule) };
    let before = before.as_ref().map(|approval| &approval.approval_id);
    let bound = store::Call { tool: call.tool.name, body: call.body, before };
    match store::create(db, &approval, Some(bound), call.now).await {
        Ok(token) => {
            notices.send(db, &mut approval, &token, call.now).await;
            Ok(required(&approval, call.now))
        }
        Err(CreateError::Exists(id)) => {
            let approval = store::load(db, call.agent(), &id).await?.unwrap_or(approval);
            Ok(required(&approval, call.now))
        }
        Err(CreateError::TooManyPending) => Err(ApiError::TooManyPendingApprovals),
        Err(CreateError::TooManyToday(taken)) => Err(ApiError::RateLimited(taken)),
        Err(CreateError::Store(error)) => Err(ApiError::Unavailable(error)),
    }
}

/// The error that an earlier approval gives this call: it waits or is unused, or was denied lately. `None` if the call needs a
/// new one.
fn known(before: &Approval, call: &GateCall<'_>, policy: &Policy) -> Option<ApiError> {
    if still_counts(before, call) {
        return Some(required(before, call.now));
    }
    was_denied(before, call, policy).then_some(ApiError::ApprovalInvalid(
        "this call was denied: change it, or talk to your owner; the same call is asked about again a day after the \
         denial, or once the owner changes the policy",
    ))
}

/// Whether the owner has changed the policy since this approval was requested, so that somebody else is to be asked, or its
/// approver for the first time. A call that still has the policy from before replaces nothing.
fn is_replaced(open: &Approval, call: &GateCall<'_>, policy: &Policy) -> bool {
    let asks_other = open.created_at <= policy.updated_at && !policy.approver.is_same(&open.approver);
    // In the same millisecond, a copy of this call may be sending the mail.
    let was_never_sent = open.created_at < policy.updated_at && !open.notified;
    open.status_at(call.now) == Status::Pending && (asks_other || was_never_sent)
}

/// Whether an earlier approval covers this call: it is pending or unused, and for at least this price.
fn still_counts(approval: &Approval, call: &GateCall<'_>) -> bool {
    let waits = matches!(approval.status_at(call.now), Status::Pending | Status::Approved);
    waits && approval.amount.is_some_and(|amount| call.amount <= amount)
}

/// Whether the call was denied under this policy within [`DENIED_FOR`].
fn was_denied(approval: &Approval, call: &GateCall<'_>, policy: &Policy) -> bool {
    let lately = |at: Timestamp| at >= policy.updated_at && call.now < at.plus(DENIED_FOR);
    approval.status == Status::Denied && approval.decided_at.is_some_and(lately)
}

fn new_approval(call: &GateCall<'_>, policy: &Policy, rule: &Rule) -> Approval {
    let tool = call.tool;
    let whole = canonical_json(&Value::Object(call.input.clone()));
    let cut = whole.chars().count() > MAX_PREVIEW_CHARS;
    Approval {
        source: Source::Policy,
        tool: Some(tool.name.to_owned()),
        body_digest: Some(const_hex::encode(call.body)),
        amount: Some(call.amount),
        action_summary: format!("{} ({}) for {} USDC", bought(call), tool.name, call.amount),
        offer: call.listing.map(|listing| listing.title.clone()),
        preview: Some(if cut { beginning(&whole) } else { whole.clone() }),
        whole: (cut && whole.len() <= MAX_WHOLE_BYTES).then_some(whole),
        cut,
        policy_rule: Some(rule.id.clone()),
        rule_says: Some(rule.words()),
        timezone: policy.timezone().cloned(),
        wakes: call.wakes,
        ..Approval::pending(call.agent(), policy.approver.clone(), policy.timeout_seconds, call.now)
    }
}

/// What the call buys. Of a seller, only slugs: they go into a mail, and names could be a message to whoever gets it.
fn bought(call: &GateCall<'_>) -> String {
    match call.listing {
        None => call.tool.title.to_owned(),
        Some(Listing { soul, service: Some(service), .. }) => format!("Service {service} of the soul {soul}"),
        Some(Listing { soul, service: None, .. }) => format!("Text of the soul {soul}"),
    }
}

/// The beginning of an input that is longer than a preview.
fn beginning(whole: &str) -> String {
    let chars = whole.chars().count();
    // Escaping may double the length of the excerpt.
    let begins: String = whole.chars().take(MAX_PREVIEW_CHARS / 2 - 100).collect();
    canonical_json(&json!({"cut_off": format!("only the beginning of {chars} characters"), "begins": begins}))
}

fn required(approval: &Approval, now: Timestamp) -> ApiError {
    let approved = approval.status_at(now) == Status::Approved;
    ApiError::ApprovalRequired {
        approval_id: Some(approval.approval_id.to_string()),
        approval: Box::new(approval.view(now)),
        message: if approved {
            "this call was approved: repeat it with the header X-Approval-Id"
        } else {
            "this call needs a human's approval; once it is given, repeat the call with the header X-Approval-Id"
        },
    }
}
