//! Approvals in the agents table: how they are made and read. How they move on is [`super::moves`]' work.
//!
//!
//! | key | what |
//! |---|---|
//! | `AGENT#<id>` / `POLICY` | the action policy |
//! | `AGENT#<id>` / `APPROVAL#<approval id>` | an approval |
//! | `AGENT#<id>` / `PENDING` | the set of pending approvals, which bounds how many there are |
//! | `AGENT#<id>` / `HELD#<digest>` | the latest approval of one held call, so that a repeat finds it |
//! | `AGENT#<id>` / `SHOWN#<approval id>` | a long input, whole, for the approver |
//! | `MAILS#<SHA-256 of an address>` / day | how many mails an address got that day |
//! | `DECIDE#<SHA-256 of the link's token>` / `DECIDE` | which approval a link decides |

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
/// Most approvals a day that requests from one source address ask for: each keeps up to 128 KB, and wallets cost nothing.
pub const MAX_OF_SOURCE_A_DAY: u32 = 500;
/// Characters of a link's token: base64url of 32 random bytes.
const TOKEN_CHARS: usize = 43;
/// A filtered list looks at this many approvals.
const LISTED: usize = 500;
/// How often a creation that met others is tried.
const ATTEMPTS: usize = 8;

/// The secret of a decision link. It exists here, in the mail, and nowhere else.
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

/// Where a link leads.
#[derive(Serialize, Deserialize)]
struct Link {
    agent_id: AgentId,
    approval_id: ApprovalId,
    /// Unix seconds, for cleaning up.
    expires: i64,
}

/// The pending approvals of an agent as a set of `<expires at, ms>#<approval id>`.
#[derive(Default, Deserialize)]
struct Pending {
    #[serde(default, with = "serde_dynamo::string_set")]
    open: Vec<String>,
}

/// A set of strings as DynamoDB knows it, to bind.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Set(#[serde(with = "serde_dynamo::string_set")] Vec<String>);

#[derive(Serialize, Deserialize)]
struct Held {
    approval_id: ApprovalId,
    /// Unix seconds, for cleaning up.
    expires: i64,
}

#[derive(Serialize, Deserialize)]
struct Shown {
    whole: String,
    /// Unix seconds, for cleaning up.
    expires: i64,
}

/// Why no approval was made.
#[derive(Debug)]
pub enum CreateError {
    TooManyPending,
    /// So many were asked for from the same source address today.
    TooManyToday(Taken),
    /// Another approval for the same call was made at the same time.
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

/// `None` for what cannot be a token of ours.
fn link_key(token: &str) -> Option<Key> {
    let is_form =
        token.len() == TOKEN_CHARS && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    is_form.then(|| Key::new(format!("DECIDE#{}", const_hex::encode(sha256(token.as_bytes()))), "DECIDE"))
}

/// Its entry among the pending.
pub(super) fn pending_entry(approval: &Approval) -> Set {
    Set(vec![format!("{}#{}", approval.expires_at.millis(), approval.approval_id)])
}

/// The policy as its owner last put it: a brake counts from the next call on.
pub async fn policy(db: &Db, agent: AgentId) -> Result<Option<Policy>, StoreError> {
    db.get_latest(&db.tables.agents, policy_key(agent)).await
}

/// Keeps a policy, and says on the account that there is one: so agents without cost no read, and a charge that was
/// judged by the policy before is judged again.
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

pub async fn load(db: &Db, agent: AgentId, id: &ApprovalId) -> Result<Option<Approval>, StoreError> {
    db.get_latest(&db.tables.agents, approval_key(agent, id)).await
}

/// An agent's approvals, newest first; with a status, those among the latest [`LISTED`] that have it now.
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

/// The approval that was last made for this call, as the latest write left it.
pub async fn held(db: &Db, agent: AgentId, tool: &str, body: &[u8; 32]) -> Result<Option<Approval>, StoreError> {
    let held: Option<Held> = db.get_latest(&db.tables.agents, held_key(agent, tool, body)).await?;
    match held {
        Some(held) => load(db, agent, &held.approval_id).await,
        None => Ok(None),
    }
}

/// What an approval of a held call is bound to, and the approval before it that no longer counts.
pub struct Call<'a> {
    pub tool: &'a str,
    pub body: &'a [u8; 32],
    pub before: Option<&'a ApprovalId>,
}

/// Makes an approval, its place among the pending, and its link, in one transaction.
pub async fn create(
    db: &Db,
    approval: &Approval,
    call: Option<Call<'_>>,
    now: Timestamp,
) -> Result<LinkToken, CreateError> {
    let source = limit::name_of(limit::source());
    if !daily::take(db, format!("RATE#{source}#approval"), MAX_OF_SOURCE_A_DAY, now).await? {
        let (limit, reset_secs) = (MAX_OF_SOURCE_A_DAY.into(), daily::secs_left(now));
        let taken = Taken { policy: "approval", limit, window_secs: 24 * 3600, remaining: 0, reset_secs };
        return Err(CreateError::TooManyToday(taken));
    }
    let table = &db.tables.agents;
    let agent = approval.agent_id;
    let token = LinkToken::random();
    let link_key = link_key(token.expose()).ok_or_else(|| StoreError::new("a token has no form"))?;
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

/// Takes those whose time has passed out of the pending. False if every place is held by one that still waits.
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

/// Writes down whether the approver was told.
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

/// The approval a link leads to, with all that its approver is shown.
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
