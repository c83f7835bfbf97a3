//! An approval: one question to a human, and its states.
//!
//! ```text
//! pending ─► approved ─► consumed
//!    │           └─────► expired    (not used in time)
//!    ├─► denied
//!    ├─► cancelled
//!    └─► expired                    (nobody answered: counts as denied)
//! ```
//!
//! Expiry is never stored: it is computed from the time, and every write has it as a condition.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use base::hours::{self, Zone};
use base::ids::{AgentId, RequestId, TokenId};
use base::money::Usdc;
use evm::Address;
use platform::auth::token;
use platform::http::log;
use platform::store::Db;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::approver::Approver;
use super::decision::DecisionReceipt;

/// The least time in which an approval can be used. Otherwise it is as long as the approver had for the decision.
const USE_AT_LEAST: Duration = Duration::from_secs(15 * 60);
/// How long approvals are kept, as evidence.
pub const RETENTION: Duration = Duration::from_secs(400 * 24 * 3600);

/// `appr_<ulid>`: sorts by creation time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApprovalId(String);

impl ApprovalId {
    pub fn random(now: Timestamp) -> ApprovalId {
        ApprovalId(ulid_text("appr_", now))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ApprovalId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<ApprovalId, &'static str> {
        let ulid = text.strip_prefix("appr_").filter(|ulid| ulid.len() == 26 && ulid::Ulid::from_string(ulid).is_ok());
        ulid.map(|_| ApprovalId(text.to_owned())).ok_or("must be appr_ and a ULID")
    }
}

/// A prefix and a ULID of this time.
pub(super) fn ulid_text(prefix: &str, now: Timestamp) -> String {
    let mut random = [0; 16];
    random[6..].copy_from_slice(&digest::random::<10>());
    let millis = u64::try_from(now.millis()).unwrap_or_default();
    format!("{prefix}{}", ulid::Ulid::from_parts(millis, u128::from_be_bytes(random)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    Approved,
    Denied,
    Expired,
    Cancelled,
    Consumed,
}

impl Status {
    pub fn parse(text: &str) -> Option<Status> {
        serde_json::from_value(Value::String(text.to_owned())).ok()
    }
}

/// The origin of an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A rule of the owner's policy held a call.
    Policy,
    /// The agent requested the approval itself (`POST /v1/approvals`).
    Api,
}

/// Who asked, as its owner knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asker {
    pub wallet: Address,
    /// The access token that was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<TokenId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_name: Option<String>,
}

impl Asker {
    /// Reads the token's name. A call must not fail for it: if it cannot be read, the id has to do.
    pub async fn of(db: &Db, wallet: Address, token_id: Option<TokenId>) -> Asker {
        let token_name = match token_id {
            None => None,
            Some(id) => match token::load(db, AgentId::of(wallet), id).await {
                Ok(token) => token.and_then(|token| token.name),
                Err(error) => {
                    log::failure("the name of an access token could not be read", &error);
                    None
                }
            },
        };
        Asker { wallet, token_id, token_name }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    pub approval_id: ApprovalId,
    pub agent_id: AgentId,
    pub source: Source,
    /// As last stored. [`Approval::status_at`] gives the current status.
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// SHA-256 of the held call's canonical body, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_digest: Option<String>,
    /// micro-USDC: the price that the human sees, and the most that the released call may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Usdc>,
    pub action_summary: String,
    /// JSON of the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// The full JSON, if `preview` was cut. Stored in an item of its own and loaded for the page.
    #[serde(skip)]
    pub whole: Option<String>,
    /// `preview` was cut. The full JSON is in its own item, or is too large to be stored.
    #[serde(default)]
    pub cut: bool,
    /// What a seller calls the offer that the call buys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_rule: Option<String>,
    /// That rule in words, for the approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_says: Option<String>,
    /// `None` in approvals of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<Asker>,
    /// The owner's time zone, in which the approver is told times. `None` means UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<Zone>,
    #[serde(default)]
    pub approver: Approver,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub use_by: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_receipt: Option<DecisionReceipt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumed_at: Option<Timestamp>,
    pub notified: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify_error: Option<String>,
    /// The job that waits for the decision: a goal's, for a call that it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakes: Option<RequestId>,
    /// Unix seconds after which the row may be deleted.
    pub expires: i64,
}

impl Approval {
    /// A new approval: pending, and nobody notified yet.
    pub fn pending(agent: AgentId, approver: Approver, seconds: u32, now: Timestamp) -> Approval {
        Approval {
            approval_id: ApprovalId::random(now),
            agent_id: agent,
            source: Source::Api,
            status: Status::Pending,
            tool: None,
            body_digest: None,
            amount: None,
            action_summary: String::new(),
            preview: None,
            whole: None,
            cut: false,
            offer: None,
            policy_rule: None,
            rule_says: None,
            asked_by: None,
            timezone: None,
            approver,
            created_at: now,
            expires_at: now.plus(Duration::from_secs(u64::from(seconds))),
            use_by: None,
            decided_at: None,
            decision_note: None,
            decision_receipt: None,
            consumed_at: None,
            notified: false,
            notify_error: None,
            wakes: None,
            expires: now.plus(RETENTION).secs(),
        }
    }

    /// The status at a time.
    pub fn status_at(&self, now: Timestamp) -> Status {
        match self.status {
            Status::Pending if now >= self.expires_at => Status::Expired,
            Status::Approved if self.use_by.is_some_and(|use_by| now >= use_by) => Status::Expired,
            status => status,
        }
    }

    /// The end of the time in which it can be used, if it is approved now. `None` for an approval that the agent requested
    /// itself: it releases no call and stays approved.
    pub fn use_by_if_approved(&self, now: Timestamp) -> Option<Timestamp> {
        let had = Duration::from_millis((self.expires_at.millis() - self.created_at.millis()).unsigned_abs());
        (self.source == Source::Policy).then(|| now.plus(had.max(USE_AT_LEAST)))
    }

    /// The JSON that the agent sees. It never contains the link.
    pub fn view(&self, now: Timestamp) -> Value {
        let status = self.status_at(now);
        let timed_out = self.status == Status::Pending && status == Status::Expired;
        let decided_at = if timed_out { Some(self.expires_at) } else { self.decided_at };
        let decided_via = match (timed_out, self.decision_receipt.is_some()) {
            (true, _) => Some("timeout"),
            (false, true) => Some("link"),
            (false, false) => None,
        };
        let text = |at: Option<Timestamp>| at.map(|at| at.to_string());
        let preview: Option<Value> = self.preview.as_deref().and_then(|preview| serde_json::from_str(preview).ok());
        json!({
            "approval_id": self.approval_id,
            "source": self.source,
            "tool": self.tool,
            "status": status,
            "action_summary": self.action_summary,
            "preview": preview,
            "amount_usdc": self.amount.map(|amount| amount.to_string()),
            "body_digest": self.body_digest,
            "policy_rule": self.policy_rule,
            "asked_by": self.asked_by.as_ref().map(|asker| json!({
                "wallet": asker.wallet.to_string(),
                "token_id": asker.token_id,
                "token_name": asker.token_name,
            })),
            "approver": self.approver.masked(),
            "expires_at": self.expires_at.to_string(),
            "use_by": text(self.use_by),
            "decided_at": text(decided_at),
            "decided_via": decided_via,
            "decision_note": self.decision_note,
            "decision_receipt_id": self.decision_receipt.as_ref().map(|receipt| &receipt.decision_receipt_id),
            "consumed_at": text(self.consumed_at),
            "notified": self.notified,
            "notify_error": self.notify_error,
            "created_at": self.created_at.to_string(),
        })
    }

    /// A time as the approver is told it.
    pub fn told(&self, at: Timestamp) -> String {
        hours::for_people(at, self.timezone.as_ref())
    }

    /// The JSON that the approver reads.
    pub fn shown(&self) -> Option<&str> {
        self.whole.as_deref().or(self.preview.as_deref())
    }

    /// The same, with the signed record of the decision.
    pub fn view_with_receipt(&self, now: Timestamp) -> Value {
        let mut view = self.view(now);
        view["decision_receipt"] = self.decision_receipt.as_ref().map_or(Value::Null, DecisionReceipt::view);
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_ids_are_refused() {
        let id = ApprovalId::random(Timestamp::from_secs(1_795_000_000));
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        for bad in ["", "appr_", "appr_1", "rcpt_01ARZ3NDEKTSV4RRFFQ69G5FAV", "appr_01ARZ3NDEKTSV4RRFFQ69G5FA/"] {
            assert!(bad.parse::<ApprovalId>().is_err(), "{bad}");
        }
    }
}
