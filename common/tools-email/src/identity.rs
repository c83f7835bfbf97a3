//! Whether mail can be sent from a domain of an agent's own now: its ownership record is there ([`domain::recheck`]), and the
//! provider takes mail from it. A relay takes any. For SES each domain must be an identity of the account, which SES
//! verifies by three DKIM records in the domain's DNS.
//!
//! | item | key |
//! |---|---|
//! | a domain's identity | `MAILDOMAIN#<domain>` / `IDENTITY` |
//! | when an identity is deleted, unless it is verified before | `MAILIDENTITIES` / `<due>#<domain>` |
//! | how many there are: in all, and of an agent | `MAILIDENTITIES` / `COUNT`, `AGENT#<agent>` / `MAILIDENTITIES` |
//!
//! SES allows 10,000 identities in a region, and they are the operator's. So one is made only for a caller that proved to be
//! the agent, has money, and has put its ownership record into the domain's DNS; and each agent has few. An identity that is
//! not verified within a week is deleted, as is one whose ownership record has been gone for a week. Nothing looks for these
//! by time: whoever makes a new one deletes up to two that are due, so there are never many of them.
//!
//! A row is changed only if it is what was read (its `version`). Who asks SES first writes `asked_at`, so of several calls at
//! the same time one asks. A call that dies is followed by another one later: each request to SES can be repeated. An
//! identity that this deployment did not make, because its operator did, is used and never deleted.

use std::collections::HashMap;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::AgentId;
use ledger::account;
use platform::http::{ApiError, log};
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, WriteError, due};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::Toolbox;

use crate::dkim::Signer;
use crate::domain::{self, OwnDomain, Proof, Provisioning, SendingDomain};
use crate::providers::{self, ses};
use crate::standing;

/// Most identities of an agent, and of the deployment. SES allows 10,000; the rest is the operator's.
const MAX_OF_AGENT: u32 = 10;
const MAX_IN_ALL: u32 = 9_000;
/// Longest wait for SES when an identity is made or looked at, and when due ones are deleted.
const PATIENCE: Duration = Duration::from_secs(6);
const SWEEP_PATIENCE: Duration = Duration::from_secs(4);
/// Due identities that are deleted when one is made.
const SWEPT_AT_ONCE: usize = 2;
/// An identity that is not verified, or whose domain's record is gone, is deleted after this time.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// When a deletion that failed is tried again.
const SWEPT_AGAIN: Duration = Duration::from_secs(24 * 3600);
/// Pauses between two questions to SES: about an identity that is being made or deleted, not verified yet, and verified.
const WORKING: Duration = Duration::from_secs(60);
const NOT_YET: Duration = Duration::from_secs(30);
const VERIFIED: Duration = Duration::from_secs(7 * 24 * 3600);
/// When an identity that failed is made anew.
const FAILED: Duration = Duration::from_secs(3600);
/// Who looks at several domains begins no further look after this time: one look takes 20 s at most, and a function has 29.
pub(crate) const LOOKING: Duration = Duration::from_secs(5);

const PARTITION: &str = "MAILIDENTITIES";

/// How far an identity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// SES is being asked for it, or did not answer.
    Creating,
    /// SES has not seen the DKIM records yet.
    Pending,
    Verified,
    /// SES has given up looking for the DKIM records (after 72 hours).
    Failed,
    /// SES does not take the domain.
    Refused,
    Removing,
}

/// A domain's identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    domain: String,
    /// Whose limit it counts against.
    agent: AgentId,
    state: State,
    /// This deployment made it.
    is_ours: bool,
    /// Names and values of the CNAME records.
    records: Vec<(String, String)>,
    /// When SES was last asked about it, or is being asked.
    asked_at: Timestamp,
    /// When it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    version: u32,
}

/// An entry of the list of identities to delete.
#[derive(Serialize, Deserialize)]
struct Due {
    domain: String,
    due: Timestamp,
}

/// What a look at a domain may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    /// Only read what is stored.
    Read,
    /// Look up the ownership record, and write nothing: the caller only names the agent.
    Look,
    /// Write what the look-up says.
    Write,
    /// Also ask SES.
    Ask,
}

/// Why mail cannot be sent from a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The ownership record is missing, or another agent's is there.
    Unproven,
    RecordGone,
    DnsUnavailable,
    ProofRequired,
    MoneyRequired,
    TooMany,
    Creating,
    Pending,
    Failed,
    Refused,
    ProviderUnavailable,
    /// Too many mails of the agent came back ([`standing`]).
    Stopped,
}

impl Why {
    /// The member `reason`.
    pub const CODES: [&str; 12] = [
        "record_missing",
        "record_gone",
        "dns_unavailable",
        "proof_required",
        "credits_required",
        "too_many_domains",
        "creating",
        "pending",
        "verification_failed",
        "refused",
        "provider_unavailable",
        standing::STOPPED,
    ];

    pub fn code(self) -> &'static str {
        match self {
            Why::Unproven => "record_missing",
            Why::RecordGone => "record_gone",
            Why::DnsUnavailable => "dns_unavailable",
            Why::ProofRequired => "proof_required",
            Why::MoneyRequired => "credits_required",
            Why::TooMany => "too_many_domains",
            Why::Creating => "creating",
            Why::Pending => "pending",
            Why::Failed => "verification_failed",
            Why::Refused => "refused",
            Why::ProviderUnavailable => "provider_unavailable",
            Why::Stopped => standing::STOPPED,
        }
    }

    /// What the agent can do about it.
    pub fn next_step(self) -> &'static str {
        match self {
            Why::Unproven => "create the dns_records, then ask again",
            Why::RecordGone => "the TXT record that proves the domain is gone: create it again, then ask again",
            Why::DnsUnavailable => "the name servers of the domain have not answered for days: ask again when they do",
            Why::ProofRequired => {
                "the domain has to be set up at the mail provider: ask for a quote again with x-agent-proof or a token"
            }
            Why::MoneyRequired => {
                "a domain is set up at the mail provider only for agents with money: buy credits of 0.05 USDC or more, then ask \
                 again"
            }
            Why::TooMany => "no further domain can be set up at the mail provider now: use one that you have",
            Why::Creating => "the domain is being set up at the mail provider: ask again in a minute",
            Why::Pending => {
                "create the dns_records; the mail provider looks for the CNAME records, which may take some hours: ask again then"
            }
            Why::Failed => {
                "the mail provider did not find the CNAME records within three days: create them, and ask again in an hour"
            }
            Why::Refused => "the mail provider does not take this domain: use another one",
            Why::ProviderUnavailable => "the mail provider did not answer: ask again in a minute",
            Why::Stopped => {
                "too many mails to addresses outside came back: a quote for such an address says what to do"
            }
        }
    }

    pub fn provisioning(self) -> Provisioning {
        match self {
            Why::Creating | Why::Pending | Why::ProviderUnavailable => Provisioning::Provisioning,
            Why::Stopped => Provisioning::Blocked,
            _ => Provisioning::Unprovisioned,
        }
    }
}

/// Why mail cannot be sent from a domain, and the DNS records that it needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    pub why: Why,
    pub dns_records: Value,
}

impl Waiting {
    /// For a domain that is not proven to be the agent's.
    pub fn unproven(toolbox: &Toolbox, agent: AgentId, domain: &str) -> Waiting {
        Waiting { why: Why::Unproven, dns_records: dns_records(toolbox, agent, domain, &[]) }
    }

    /// Adds the members that tell the agent.
    pub fn tell(&self, view: &mut Value) {
        view["dns_records"] = self.dns_records.clone();
        view["reason"] = json!(self.why.code());
        view["next_step"] = json!(self.why.next_step());
    }
}

/// The record that proves the domain, the one that receivers check our signatures with, and those of the provider.
fn dns_records(toolbox: &Toolbox, agent: AgentId, domain: &str, of_provider: &[(String, String)]) -> Value {
    let secret = &toolbox.mail_secret;
    let (name, value) = domain::ownership_record(secret, agent, domain);
    let key = Signer::derived(secret, domain).dns_record();
    let mut records = vec![
        json!({"type": "TXT", "name": name, "value": value}),
        json!({"type": "TXT", "name": format!("agora._domainkey.{domain}"), "value": key}),
    ];
    records.extend(of_provider.iter().map(|(name, value)| json!({"type": "CNAME", "name": name, "value": value})));
    Value::Array(records)
}

/// Whether a domain's ownership record is there. It is looked up again when that is due, and with [`May::Write`] the answer is
/// stored.
async fn proof(toolbox: &Toolbox, own: &OwnDomain, may: May, now: Timestamp) -> Result<Proof, StoreError> {
    if may == May::Read {
        return Ok(own.known());
    }
    let (db, may_write) = (&toolbox.db, matches!(may, May::Write | May::Ask));
    let proof = domain::recheck(db, &toolbox.dns, &toolbox.mail_secret, own, may_write, now).await?;
    if may_write && proof == Proof::Gone {
        lapse(db, &own.domain, now).await?;
    }
    Ok(proof)
}

/// Who has which domain, by a record that is still there. Each domain is looked at once; after [`LOOKING`], no record is looked
/// up again, because mails name any number of domains.
pub struct Proofs {
    owners: HashMap<String, Option<AgentId>>,
    may: May,
    until: Instant,
}

impl Proofs {
    pub fn new(may: May) -> Proofs {
        Proofs { owners: HashMap::new(), may, until: Instant::now() + LOOKING }
    }

    /// The owner of a domain that is not the operator's.
    pub async fn owner(&mut self, toolbox: &Toolbox, domain: &str) -> Result<Option<AgentId>, StoreError> {
        if let Some(known) = self.owners.get(domain) {
            return Ok(*known);
        }
        let may = if Instant::now() < self.until { self.may } else { May::Read };
        let owner = match domain::own_domain(&toolbox.db, domain).await? {
            Some(own) => (proof(toolbox, &own, may, toolbox.clock.now()).await? == Proof::Good).then_some(own.agent),
            None => None,
        };
        self.owners.insert(domain.to_owned(), owner);
        Ok(owner)
    }
}

/// Whether mail can be sent from a domain of this agent; `None` if it can. Its row in the pool then says the same, if it may
/// be written.
pub async fn waiting(
    toolbox: &Toolbox,
    own: &OwnDomain,
    may: May,
    now: Timestamp,
) -> Result<Option<Waiting>, StoreError> {
    let (db, agent, domain) = (&toolbox.db, own.agent, own.domain.as_str());
    let may_write = matches!(may, May::Write | May::Ask);
    let found = match proof(toolbox, own, may, now).await? {
        Proof::Good => at_provider(toolbox, agent, domain, may, now).await?,
        Proof::Gone => Found::not(Why::RecordGone),
        Proof::Unknown => Found::not(Why::DnsUnavailable),
    };
    if may_write {
        let provisioning = found.why.map_or(Provisioning::Verified, Why::provisioning);
        domain::set_provisioning(db, agent, domain, provisioning).await?;
    }
    Ok(found.waiting(toolbox, agent, domain))
}

/// The same for a domain that shows the agent's record and is not the agent's yet. With [`May::Ask`] it becomes the agent's
/// now, if SES has to verify it first. Otherwise it does with the first paid mail.
pub async fn waiting_when_shown(
    toolbox: &Toolbox,
    agent: AgentId,
    domain: &str,
    may: May,
    now: Timestamp,
) -> Result<Option<Waiting>, ApiError> {
    let db = &toolbox.db;
    if !is_needed(toolbox) {
        return Ok(None);
    }
    let known = load(db, domain).await?;
    if known.as_ref().is_some_and(|known| known.state == State::Verified) {
        return Ok(None);
    }
    let has_money = may == May::Ask && account::load(db, agent).await?.is_proven();
    let why = match may {
        May::Ask if has_money => None,
        May::Ask => Some(Why::MoneyRequired),
        _ => known.as_ref().map_or(Some(Why::ProofRequired), Identity::why),
    };
    if let Some(why) = why {
        let records = known.map(|known| known.records).unwrap_or_default();
        return Ok(Found { why: Some(why), records }.waiting(toolbox, agent, domain));
    }
    let is_verified = domain::verify_own(db, &toolbox.dns, &toolbox.mail_secret, agent, domain, now).await?;
    match domain::own_domain(db, domain).await?.filter(|own| is_verified && own.agent == agent) {
        Some(own) => Ok(waiting(toolbox, &own, may, now).await?),
        None => Ok(Some(Waiting::unproven(toolbox, agent, domain))),
    }
}

/// The agent's domains as it sees them. Those that cannot be sent from have what is missing.
pub async fn views(toolbox: &Toolbox, rows: Vec<SendingDomain>, now: Timestamp) -> Result<Vec<Value>, StoreError> {
    let until = Instant::now() + LOOKING;
    let is_stopped = match rows.first() {
        Some(row) => standing::stopped(&toolbox.db, row.agent).await?.is_some(),
        None => false,
    };
    let mut views = Vec::with_capacity(rows.len());
    for mut row in rows {
        if is_stopped {
            row.provisioning = Why::Stopped.provisioning();
            let mut view = row.view(now);
            view["reason"] = json!(Why::Stopped.code());
            view["next_step"] = json!(Why::Stopped.next_step());
            views.push(view);
            continue;
        }
        let own = match row.shared {
            true => None,
            false => domain::own_domain(&toolbox.db, &row.domain).await?.filter(|own| own.agent == row.agent),
        };
        let Some(own) = own else {
            views.push(row.view(now));
            continue;
        };
        let may = if Instant::now() < until { May::Ask } else { May::Read };
        let waiting = waiting(toolbox, &own, may, now).await?;
        row.provisioning = waiting.as_ref().map_or(Provisioning::Verified, |waiting| waiting.why.provisioning());
        let mut view = row.view(now);
        if let Some(waiting) = waiting {
            waiting.tell(&mut view);
        }
        views.push(view);
    }
    Ok(views)
}

/// What is known of a domain at the provider; no reason if it takes mail from it.
#[derive(Debug)]
struct Found {
    why: Option<Why>,
    records: Vec<(String, String)>,
}

impl Found {
    fn ready() -> Found {
        Found { why: None, records: Vec::new() }
    }

    fn not(why: Why) -> Found {
        Found { why: Some(why), records: Vec::new() }
    }

    fn waiting(self, toolbox: &Toolbox, agent: AgentId, domain: &str) -> Option<Waiting> {
        let Found { why, records } = self;
        why.map(|why| Waiting { why, dns_records: dns_records(toolbox, agent, domain, &records) })
    }
}

impl Identity {
    fn why(&self) -> Option<Why> {
        match self.state {
            State::Creating | State::Removing => Some(Why::Creating),
            State::Pending => Some(Why::Pending),
            State::Verified => None,
            State::Failed => Some(Why::Failed),
            State::Refused => Some(Why::Refused),
        }
    }

    fn found(self) -> Found {
        Found { why: self.why(), records: self.records }
    }

    /// Whether SES is to be asked again.
    fn is_to_be_asked(&self, now: Timestamp) -> bool {
        let pause = match self.state {
            State::Creating | State::Removing => WORKING,
            State::Pending => NOT_YET,
            State::Verified => VERIFIED,
            State::Failed | State::Refused => FAILED,
        };
        now >= self.asked_at.plus(pause)
    }
}

/// What follows from SES's answer. An identity that the operator made is the operator's to sign for.
fn state_of(was: State, found: &ses::Identity) -> State {
    let is_signed = match found.dkim {
        ses::Dkim::Success => true,
        ses::Dkim::TemporaryFailure => was == State::Verified,
        ses::Dkim::Failed | ses::Dkim::Pending => false,
    };
    match found.dkim {
        _ if found.may_send && (is_signed || !found.is_ours) => State::Verified,
        ses::Dkim::Failed => State::Failed,
        _ => State::Pending,
    }
}

/// Whether the provider in use verifies domains.
fn is_needed(toolbox: &Toolbox) -> bool {
    providers::chosen(&toolbox.config) == Some(ses::NAME)
}

fn key(domain: &str) -> Key {
    Key::new(format!("MAILDOMAIN#{domain}"), "IDENTITY")
}

fn due_key(at: Timestamp, domain: &str) -> Key {
    Key::new(PARTITION, due::row(at, domain))
}

/// Sorts behind every time.
fn count_in_all() -> Key {
    Key::new(PARTITION, "COUNT")
}

fn count_of(agent: AgentId) -> Key {
    Key::new(format!("AGENT#{agent}"), PARTITION)
}

fn count_up(db: &Db, key: Key, most: u32) -> Result<Write, StoreError> {
    Write::update(&db.tables.messages, key, "ADD #used :one")
        .only_if("attribute_not_exists(#used) OR #used < :most")
        .bind("one", 1)?
        .bind("most", most)
}

fn count_down(db: &Db, key: Key) -> Result<Write, StoreError> {
    Write::update(&db.tables.messages, key, "ADD #used :less").bind("less", -1)
}

async fn load(db: &Db, domain: &str) -> Result<Option<Identity>, StoreError> {
    db.get_latest(&db.tables.messages, key(domain)).await
}

/// The write that replaces a row, if nobody else has changed it.
fn put(db: &Db, was: &Identity, next: &Identity) -> Result<Write, StoreError> {
    Write::put(&db.tables.messages, key(&was.domain), next)?.only_if("#version = :version").bind("version", was.version)
}

/// Replaces a row, and moves it in the list of those to delete. `None` if somebody else has changed it.
async fn replace(db: &Db, was: &Identity, next: Identity) -> Result<Option<Identity>, StoreError> {
    let next = Identity { version: was.version.wrapping_add(1), ..next };
    let mut writes = vec![put(db, was, &next)?];
    if was.due != next.due {
        if let Some(at) = was.due {
            writes.push(Write::delete(&db.tables.messages, due_key(at, &was.domain)));
        }
        if let Some(at) = next.due {
            let entry = Due { domain: was.domain.clone(), due: at };
            writes.push(Write::put(&db.tables.messages, due_key(at, &was.domain), &entry)?);
        }
    }
    match db.apply(writes).await {
        Ok(()) => Ok(Some(next)),
        Err(WriteError::Refused(_)) => Ok(None),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Whether the provider takes mail from the domain. With [`May::Ask`], does the next step to it, if one is due.
async fn at_provider(
    toolbox: &Toolbox,
    agent: AgentId,
    domain: &str,
    may: May,
    now: Timestamp,
) -> Result<Found, StoreError> {
    if !is_needed(toolbox) {
        return Ok(Found::ready());
    }
    let db = &toolbox.db;
    let known = load(db, domain).await?;
    if may != May::Ask {
        return Ok(known.map_or(Found::not(Why::ProofRequired), Identity::found));
    }
    let Some(mut known) = known else { return begin(toolbox, agent, domain, now).await };
    if known.agent != agent {
        match pass(db, &known, agent).await? {
            Ok(passed) => known = passed,
            Err(why) => return Ok(Found::not(why)),
        }
    }
    // Its ownership record is there again.
    if known.state == State::Verified && known.due.is_some() {
        match replace(db, &known, Identity { due: None, ..known.clone() }).await? {
            Some(kept) => known = kept,
            None => return Ok(Found::not(Why::Creating)),
        }
    }
    if !known.is_to_be_asked(now) {
        return Ok(known.found());
    }
    let asking = replace(db, &known, Identity { asked_at: now, ..known.clone() }).await?;
    let Some(asking) = asking else { return Ok(known.found()) };
    match asking.state {
        State::Creating => create(toolbox, asking, now).await,
        State::Pending | State::Verified => look(toolbox, asking, now).await,
        State::Failed | State::Refused | State::Removing => {
            match remove(toolbox, &asking, Instant::now() + PATIENCE).await? {
                true => begin(toolbox, agent, domain, now).await,
                false => Ok(Found::not(Why::ProviderUnavailable)),
            }
        }
    }
}

/// Makes a domain's first row, and the identity.
async fn begin(toolbox: &Toolbox, agent: AgentId, domain: &str, now: Timestamp) -> Result<Found, StoreError> {
    let db = &toolbox.db;
    if !account::load(db, agent).await?.is_proven() {
        return Ok(Found::not(Why::MoneyRequired));
    }
    let due = now.plus(KEPT);
    let new = Identity {
        domain: domain.to_owned(),
        agent,
        state: State::Creating,
        is_ours: false,
        records: Vec::new(),
        asked_at: now,
        due: Some(due),
        version: 0,
    };
    let writes = [
        Write::put(&db.tables.messages, key(domain), &new)?.only_if_new(),
        count_up(db, count_in_all(), MAX_IN_ALL)?,
        count_up(db, count_of(agent), MAX_OF_AGENT)?,
        Write::put(&db.tables.messages, due_key(due, domain), &Due { domain: domain.to_owned(), due })?,
    ];
    let found = match db.transact(&writes).await {
        Ok(()) => create(toolbox, new, now).await?,
        Err(WriteError::Failed(error)) => return Err(error),
        // Another call is making it.
        Err(refused) if refused.refused(0).is_some() => {
            return Ok(load(db, domain).await?.map_or(Found::not(Why::Creating), Identity::found));
        }
        Err(refused) => {
            if refused.refused(1).is_some() {
                log::failure("there are as many domains of agents at SES as there may be", &MAX_IN_ALL);
            }
            Found::not(Why::TooMany)
        }
    };
    sweep(toolbox, now).await?;
    Ok(found)
}

/// Counts an identity for the domain's new owner.
async fn pass(db: &Db, known: &Identity, agent: AgentId) -> Result<Result<Identity, Why>, StoreError> {
    let next = Identity { agent, version: known.version.wrapping_add(1), ..known.clone() };
    let writes =
        [put(db, known, &next)?, count_up(db, count_of(agent), MAX_OF_AGENT)?, count_down(db, count_of(known.agent))?];
    match db.transact(&writes).await {
        Ok(()) => Ok(Ok(next)),
        Err(WriteError::Failed(error)) => Err(error),
        Err(refused) if refused.refused(1).is_some() => Ok(Err(Why::TooMany)),
        Err(_) => Ok(Err(Why::Creating)),
    }
}

async fn create(toolbox: &Toolbox, row: Identity, now: Timestamp) -> Result<Found, StoreError> {
    match ses::create_identity(toolbox, &row.domain, Instant::now() + PATIENCE).await {
        Ok(found) => settle(toolbox, row, found, now).await,
        Err(ses::IdentityError::Refused) => {
            let refused = Identity { state: State::Refused, ..row.clone() };
            Ok(replace(&toolbox.db, &row, refused).await?.unwrap_or(row).found())
        }
        Err(ses::IdentityError::Full) => Ok(Found::not(Why::TooMany)),
        Err(ses::IdentityError::Unavailable) => Ok(Found::not(Why::ProviderUnavailable)),
    }
}

async fn look(toolbox: &Toolbox, row: Identity, now: Timestamp) -> Result<Found, StoreError> {
    match ses::get_identity(toolbox, &row.domain, Instant::now() + PATIENCE).await {
        Ok(Some(found)) => settle(toolbox, row, found, now).await,
        // Somebody has deleted it.
        Ok(None) => {
            let gone = Identity { state: State::Creating, due: Some(now.plus(KEPT)), ..row.clone() };
            match replace(&toolbox.db, &row, gone).await? {
                Some(gone) => create(toolbox, gone, now).await,
                None => Ok(Found::not(Why::Creating)),
            }
        }
        Err(_) if row.state == State::Verified => Ok(row.found()),
        Err(_) => Ok(Found { why: Some(Why::ProviderUnavailable), records: row.records }),
    }
}

/// Stores what SES said.
async fn settle(toolbox: &Toolbox, row: Identity, found: ses::Identity, now: Timestamp) -> Result<Found, StoreError> {
    let state = state_of(row.state, &found);
    let due = (state != State::Verified).then(|| row.due.unwrap_or(now.plus(KEPT)));
    let next = Identity { state, due, is_ours: found.is_ours, records: found.records, ..row.clone() };
    // If another call was faster, it has learnt the same.
    Ok(replace(&toolbox.db, &row, next.clone()).await?.unwrap_or(next).found())
}

/// Notes that a domain's identity is to be deleted, because its ownership record is gone.
async fn lapse(db: &Db, domain: &str, now: Timestamp) -> Result<(), StoreError> {
    let Some(known) = load(db, domain).await?.filter(|known| known.due.is_none()) else { return Ok(()) };
    replace(db, &known, Identity { due: Some(now.plus(KEPT)), ..known.clone() }).await.map(drop)
}

/// Deletes an identity at SES, if this deployment made it, and its row. False if it is to be tried again.
async fn remove(toolbox: &Toolbox, row: &Identity, deadline: Instant) -> Result<bool, StoreError> {
    let db = &toolbox.db;
    // The call that made it may have died before it wrote so.
    let is_ours = match row.is_ours {
        true => Ok(true),
        false => {
            ses::get_identity(toolbox, &row.domain, deadline).await.map(|known| known.is_some_and(|one| one.is_ours))
        }
    };
    let is_done = match is_ours {
        Ok(true) => ses::delete_identity(toolbox, &row.domain, deadline).await.is_ok(),
        Ok(false) => true,
        Err(_) => false,
    };
    if !is_done {
        return Ok(false);
    }
    let gone = Write::delete(&db.tables.messages, key(&row.domain));
    let mut writes = vec![
        gone.only_if("#version = :version").bind("version", row.version)?,
        count_down(db, count_in_all())?,
        count_down(db, count_of(row.agent))?,
    ];
    writes.extend(row.due.map(|at| Write::delete(&db.tables.messages, due_key(at, &row.domain))));
    match db.transact(&writes).await {
        Ok(()) => Ok(true),
        Err(WriteError::Refused(_)) => Ok(false),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Deletes identities that are due.
async fn sweep(toolbox: &Toolbox, now: Timestamp) -> Result<(), StoreError> {
    let (db, deadline) = (&toolbox.db, Instant::now() + SWEEP_PATIENCE);
    let query: Query<'_> = due::rows(&db.tables.messages, PARTITION, now, SWEPT_AT_ONCE)?;
    let entries: Vec<Due> = db.query(query.latest()).await?;
    for entry in entries {
        let known = load(db, &entry.domain).await?.filter(|known| known.due == Some(entry.due));
        let Some(known) = known else {
            let stray = Write::delete(&db.tables.messages, due_key(entry.due, &entry.domain));
            db.write(stray).await.map_err(StoreError::from)?;
            continue;
        };
        // Its ownership record came back, and nobody who may write has looked since.
        let is_owned = domain::own_domain(db, &known.domain).await?.is_some_and(|own| own.known() == Proof::Good);
        if known.state == State::Verified && is_owned {
            replace(db, &known, Identity { due: None, ..known.clone() }).await?;
            continue;
        }
        let again = Some(now.plus(SWEPT_AGAIN));
        let removing = Identity { state: State::Removing, asked_at: now, due: again, ..known.clone() };
        if let Some(removing) = replace(db, &known, removing).await? {
            remove(toolbox, &removing, deadline).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_verified_when_ses_sends_and_signs_for_it() {
        use State::{Failed, Pending, Verified};
        use ses::Dkim;
        for (was, may_send, dkim, is_ours, expected) in [
            (Pending, true, Dkim::Success, true, Verified),
            (Pending, false, Dkim::Success, true, Pending),
            (Pending, true, Dkim::Pending, true, Pending),
            (Pending, true, Dkim::TemporaryFailure, true, Pending),
            (Verified, true, Dkim::TemporaryFailure, true, Verified),
            (Verified, false, Dkim::TemporaryFailure, true, Pending),
            (Pending, false, Dkim::Failed, true, Failed),
            (Verified, true, Dkim::Failed, true, Failed),
            // The operator made it, perhaps without DKIM by SES.
            (State::Creating, true, Dkim::Pending, false, Verified),
            (State::Creating, false, Dkim::Pending, false, Pending),
        ] {
            let found = ses::Identity { may_send, dkim, records: Vec::new(), mail_from: None, is_ours };
            assert_eq!(state_of(was, &found), expected, "{was:?} {found:?}");
        }
    }

    #[test]
    fn ses_is_asked_again_after_a_pause() {
        let at = Timestamp::from_secs(1_000_000);
        for (state, secs) in [
            (State::Creating, 60),
            (State::Removing, 60),
            (State::Pending, 30),
            (State::Failed, 3_600),
            (State::Refused, 3_600),
            (State::Verified, 7 * 86_400),
        ] {
            let row = Identity {
                domain: "firm.test".to_owned(),
                agent: AgentId::from_bytes([1; 16]),
                state,
                is_ours: true,
                records: Vec::new(),
                asked_at: at,
                due: None,
                version: 0,
            };
            let after = |secs| row.is_to_be_asked(at.plus(Duration::from_secs(secs)));
            assert_eq!((after(secs - 1), after(secs)), (false, true), "{state:?}");
        }
    }

    #[test]
    fn every_reason_has_its_code_and_says_what_to_do() {
        let all = [
            Why::Unproven,
            Why::RecordGone,
            Why::DnsUnavailable,
            Why::ProofRequired,
            Why::MoneyRequired,
            Why::TooMany,
            Why::Creating,
            Why::Pending,
            Why::Failed,
            Why::Refused,
            Why::ProviderUnavailable,
            Why::Stopped,
        ];
        assert_eq!(all.map(Why::code), Why::CODES);
        assert!(all.iter().all(|why| !why.next_step().contains("  ")));
    }
}
