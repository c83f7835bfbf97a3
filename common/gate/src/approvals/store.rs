//! Approvals in the agents table: creation and reads. [`super::moves`] has the later transitions.
//!
//! | key | contents |
//! |---|---|
//! | `AGENT#<id>` / `POLICY` | the action policy |
//! | `AGENT#<id>` / `APPROVAL#<approval id>` | an approval |
//! | `AGENT#<id>` / `PENDING` | the set of pending approvals, which bounds their number |
//! | `AGENT#<id>` / `HELD#<digest>` | the latest approval of one held call, so that a repeat finds it |
//! | `AGENT#<id>` / `SHOWN#<approval id>` | a long input in full, for the approver |
//! | `MAILS#<SHA-256 of an address>` / day | how many mails an address got that day |
//! | `DECIDE#<SHA-256 of the link's token>` / `DECIDE` | the approval that a link decides |

use base::clock::Timestamp;
use base::digest::{self, sha256, sha256_parts};
use base::encoding::base64_url;
use base::ids::AgentId;
use ledger::account;
use platform::http::limit::{self, Taken};
use platform::store::db::{Query, parse};
use platform::store::{Db, Key, StoreError, Write, WriteError, daily};
use serde::{Deserialize, Serialize};

use super::approval::{Approval, ApprovalId, Status};
use super::policy::Policy;

/// Most pending approvals of one agent.
pub const MAX_PENDING: usize = 20;
/// Most approvals a day created from one source address. Each stores up to 128 KB, and new wallets are free.
pub const MAX_OF_SOURCE_A_DAY: u32 = 500;
/// Characters of a link's token: base64url of 32 random bytes.
const TOKEN_CHARS: usize = 43;
/// How many approvals a filtered list searches.
const LISTED: usize = 500;
/// How many times a creation is tried if concurrent ones interfere.
const ATTEMPTS: usize = 8;

/// The secret of a decision link. It exists only here and in the mail; the database has its hash.
#[derive(Clone)]
pub struct LinkToken(String);

impl LinkToken {
    fn random() -> LinkToken {
        LinkToken(base64_url(&digest::random::<32>()))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// The approval that a link leads to.
#[derive(Serialize, Deserialize)]
struct Link {
    agent_id: AgentId,
    approval_id: ApprovalId,
    /// Unix seconds after which the row may be deleted.
    expires: i64,
}

/// An agent's pending approvals, as a set of `<expires at, ms>#<approval id>`.
#[derive(Default, Deserialize)]
struct Pending {
    #[serde(default, with = "serde_dynamo::string_set")]
    open: Vec<String>,
}

/// A DynamoDB string set, to bind to an expression.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Set(#[serde(with = "serde_dynamo::string_set")] Vec<String>);

#[derive(Serialize, Deserialize)]
struct Held {
    approval_id: ApprovalId,
    /// Unix seconds after which the row may be deleted.
    expires: i64,
}

#[derive(Serialize, Deserialize)]
struct Shown {
    whole: String,
    /// Unix seconds after which the row may be deleted.
    expires: i64,
}

/// Why no approval was created.
#[derive(Debug)]
pub enum CreateError {
    TooManyPending,
    /// The source address reached its limit for today.
    TooManyToday(Taken),
    /// A concurrent request created an approval for the same call.
    Exists(ApprovalId),
    Store(StoreError),
}

impl From<StoreError> for CreateError {
    fn from(error: StoreError) -> CreateError {
        CreateError::Store(error)
    }
}

fn partition(agent: AgentId) -> String {
    format!("AGENT#{agent}")
}

fn policy_key(agent: AgentId) -> Key {
    Key::new(partition(agent), "POLICY")
}

pub(super) fn approval_key(agent: AgentId, id: &ApprovalId) -> Key {
    Key::new(partition(agent), format!("APPROVAL#{id}"))
}

fn shown_key(agent: AgentId, id: &ApprovalId) -> Key {
    Key::new(partition(agent), format!("SHOWN#{id}"))
}

pub(super) fn pending_key(agent: AgentId) -> Key {
    Key::new(partition(agent), "PENDING")
}

fn held_key(agent: AgentId, tool: &str, body: &[u8; 32]) -> Key {
    Key::new(partition(agent), format!("HELD#{}", const_hex::encode(sha256_parts(&[tool.as_bytes(), body]))))
}

/// The key of a link's token, or `None` for text that cannot be one.
fn link_key(token: &str) -> Option<Key> {
    let is_form =
        token.len() == TOKEN_CHARS && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    is_form.then(|| Key::new(format!("DECIDE#{}", const_hex::encode(sha256(token.as_bytes()))), "DECIDE"))
}

/// The approval's entry in the set of pending ones.
pub(super) fn pending_entry(approval: &Approval) -> Set {
    Set(vec![format!("{}#{}", approval.expires_at.millis(), approval.approval_id)])
}

/// The action policy, by a consistent read: a change applies from the next call on.
pub async fn policy(db: &Db, agent: AgentId) -> Result<Option<Policy>, StoreError> {
    db.get_latest(&db.tables.agents, policy_key(agent)).await
}

/// Stores a policy and marks the account as having one. So agents without a policy cost no read, and a charge that was
/// judged by the old policy is judged again.
pub async fn put_policy(db: &Db, agent: AgentId, policy: &Policy) -> Result<(), StoreError> {
    db.write(Write::put(&db.tables.agents, policy_key(agent), policy)?).await?;
    account::change_rules(db, agent, |account| account.policy = true).await?;
    Ok(())
}

pub async fn delete_policy(db: &Db, agent: AgentId) -> Result<(), StoreError> {
    account::change_rules(db, agent, |account| account.policy = false).await?;
    db.write(Write::delete(&db.tables.agents, policy_key(agent))).await?;
    Ok(())
}

/// The policy that asks for an approval: the agent's, if it still names this approver.
pub async fn asking(db: &Db, approval: &Approval) -> Result<Option<Policy>, StoreError> {
    let policy = policy(db, approval.agent_id).await?;
    Ok(policy.filter(|policy| policy.approver.is_same(&approval.approver)))
}

/// A check that an agent's policy is still the one that was read, for the transaction of a decision.
pub(super) fn unchanged(db: &Db, agent: AgentId, policy: &Policy) -> Result<Write, StoreError> {
    let check = Write::check(&db.tables.agents, policy_key(agent)).only_if("#updated_at = :updated_at");
    check.bind("updated_at", policy.updated_at)
}

pub async fn load(db: &Db, agent: AgentId, id: &ApprovalId) -> Result<Option<Approval>, StoreError> {
    db.get_latest(&db.tables.agents, approval_key(agent, id)).await
}

/// An agent's approvals, newest first. With a status, only those among the latest [`LISTED`] that have it now.
pub async fn list(
    db: &Db,
    agent: AgentId,
    status: Option<Status>,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<Approval>, StoreError> {
    let read = if status.is_some() { LISTED } else { limit };
    let query = Query::prefixed(&db.tables.agents, &partition(agent), "APPROVAL#", read)?.newest_first().latest();
    let mut approvals: Vec<Approval> = db.query(query).await?;
    approvals.retain(|approval| status.is_none_or(|status| approval.status_at(now) == status));
    approvals.truncate(limit);
    Ok(approvals)
}

/// The latest approval created for this call, by a consistent read.
pub async fn held(db: &Db, agent: AgentId, tool: &str, body: &[u8; 32]) -> Result<Option<Approval>, StoreError> {
    let held: Option<Held> = db.get_latest(&db.tables.agents, held_key(agent, tool, body)).await?;
    match held {
        Some(held) => load(db, agent, &held.approval_id).await,
        None => Ok(None),
    }
}

/// The call that an approval is bound to, and the earlier approval that it replaces.
pub struct Call<'a> {
    pub tool: &'a str,
    pub body: &'a [u8; 32],
    pub before: Option<&'a ApprovalId>,
}

/// Creates an approval, its entry among the pending ones and its link, in one transaction.
pub async fn create(
    db: &Db,
    approval: &Approval,
    call: Option<Call<'_>>,
    now: Timestamp,
) -> Result<LinkToken, CreateError> {
    // A goal's call has no source: it counts for its agent.
    let source = limit::source().map_or_else(|| format!("agent:{}", approval.agent_id), |at| limit::name_of(Some(at)));
    if !daily::take(db, format!("RATE#{source}#approval"), MAX_OF_SOURCE_A_DAY, now).await? {
        let (limit, reset_secs) = (MAX_OF_SOURCE_A_DAY.into(), daily::secs_left(now));
        let taken = Taken { policy: "approval", limit, window_secs: 24 * 3600, remaining: 0, reset_secs };
        return Err(CreateError::TooManyToday(taken));
    }
    let table = &db.tables.agents;
    let agent = approval.agent_id;
    let token = LinkToken::random();
    let link_key = link_key(token.expose()).ok_or_else(|| StoreError::new("a generated link token is malformed"))?;
    let link = Link { agent_id: agent, approval_id: approval.approval_id.clone(), expires: approval.expires };
    let mut writes = vec![
        Write::put(table, approval_key(agent, &approval.approval_id), approval)?.only_if_new(),
        Write::update(table, pending_key(agent), "ADD #open :entry")
            .only_if("attribute_not_exists(#open) OR size(#open) < :most")
            .bind("entry", pending_entry(approval))?
            .bind("most", MAX_PENDING)?,
        Write::put(table, link_key, &link)?.only_if_new(),
    ];
    let is_call = call.is_some();
    if let Some(call) = call {
        let held = Held { approval_id: approval.approval_id.clone(), expires: approval.expires };
        let write = Write::put(table, held_key(agent, call.tool, call.body), &held)?;
        writes.push(match call.before {
            Some(before) => {
                write.only_if("attribute_not_exists(#pk) OR #approval_id = :before").bind("before", before)?
            }
            None => write.only_if_new(),
        });
    }
    if let Some(whole) = &approval.whole {
        let shown = Shown { whole: whole.clone(), expires: approval.expires };
        writes.push(Write::put(table, shown_key(agent, &approval.approval_id), &shown)?.only_if_new());
    }
    for _ in 0..ATTEMPTS {
        match db.transact(&writes).await {
            Ok(()) => return Ok(token),
            Err(refused @ WriteError::Refused(_)) => {
                if let Some(faster) = refused.refused(3).filter(|_| is_call) {
                    let item = faster.old.clone().ok_or_else(|| StoreError::new("a held call vanished"))?;
                    return Err(CreateError::Exists(parse::<Held>(item)?.approval_id));
                }
                if refused.refused(1).is_none() {
                    return Err(CreateError::Store(StoreError::new("an approval was refused without a cause")));
                }
                if !forget_expired(db, agent, now).await? {
                    return Err(CreateError::TooManyPending);
                }
            }
            Err(WriteError::Failed(error)) => return Err(CreateError::Store(error)),
        }
    }
    Err(CreateError::Store(StoreError::new("too many approvals are being made at once")))
}

/// Removes expired entries from the pending set. `false` if it is full of approvals that are still open.
async fn forget_expired(db: &Db, agent: AgentId, now: Timestamp) -> Result<bool, StoreError> {
    let pending: Pending = db.get_latest(&db.tables.agents, pending_key(agent)).await?.unwrap_or_default();
    let has_passed = |entry: &String| {
        let at = entry.split('#').next().and_then(|at| at.parse().ok());
        at.is_none_or(|at| now >= Timestamp::from_millis(at))
    };
    if pending.open.len() < MAX_PENDING {
        return Ok(true);
    }
    let passed: Vec<String> = pending.open.into_iter().filter(has_passed).collect();
    if passed.is_empty() {
        return Ok(false);
    }
    let write = Write::update(&db.tables.agents, pending_key(agent), "DELETE #open :passed");
    db.write(write.bind("passed", Set(passed))?).await?;
    Ok(true)
}

/// Stores whether the approver was notified.
pub async fn note_notice(db: &Db, approval: &Approval) -> Result<(), StoreError> {
    let expression = match approval.notify_error {
        Some(_) => "SET #notified = :notified, #notify_error = :error",
        None => "SET #notified = :notified REMOVE #notify_error",
    };
    let key = approval_key(approval.agent_id, &approval.approval_id);
    let write = Write::update(&db.tables.agents, key, expression).only_if("attribute_exists(#pk)");
    let write = write.bind("notified", approval.notified)?;
    let write = match &approval.notify_error {
        Some(error) => write.bind("error", error)?,
        None => write,
    };
    db.write(write).await?;
    Ok(())
}

/// The approval that a link leads to, with the full input if it was cut.
pub async fn of_link(db: &Db, token: &str) -> Result<Option<Approval>, StoreError> {
    let Some(key) = link_key(token) else { return Ok(None) };
    let Some(link) = db.get_latest::<Link>(&db.tables.agents, key).await? else { return Ok(None) };
    let Some(mut approval) = load(db, link.agent_id, &link.approval_id).await? else { return Ok(None) };
    if approval.cut {
        let key = shown_key(link.agent_id, &link.approval_id);
        approval.whole = db.get_latest::<Shown>(&db.tables.agents, key).await?.map(|shown| shown.whole);
    }
    Ok(Some(approval))
}
