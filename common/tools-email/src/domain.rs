//! Sending domains of an agent: the pool they form, their warm-up and daily limits, and the addresses on them.
//!
//! | item | key |
//! |---|---|
//! | a domain in an agent's pool | `AGENT#<agent>` / `MAILDOMAIN#<domain>` |
//! | the owner of an address | `ADDRESS#<folded address>` / `OWNER` |
//! | the owner of a domain that is not the operator's | `MAILDOMAIN#<domain>` / `DOMAIN` |
//!
//! On an operator's domain every agent has the address `agent-<12 hex>`, and may claim free names. A domain of an agent's
//! own is verified by a TXT record. It passes to another agent that shows its own record, once the first one's is gone.
//! The record is looked up again when the domain is used and it was last seen a week ago ([`recheck`]). Whether the
//! provider takes mail from such a domain is another question ([`crate::identity`]).
//!
//! A new domain may send 20 mails on its first UTC day, 10 more each day up to 50, and 500 when it is warmed: a score of
//! at least 75 after 50 deliveries. Below 50, it is degraded: it leaves the pool until its agent resumes it, and may send
//! 20 a day. That binds all its addresses together, also those that the agent names ([`crate::volume`]).

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::{self, sha256_parts};
use base::ids::AgentId;
use platform::config::Config;
use platform::http::ApiError;
use platform::providers::Dns;
use platform::store::db::{self, Query};
use platform::store::{Db, Key, StoreError, Write, WriteError};
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::address::Address;
use crate::stats;

const DAY_SECS: i64 = 24 * 3600;
/// Mails a day: on the first day, more on each further day, at most while warming, and when warmed.
const FIRST_DAY: u32 = 20;
const MORE_EACH_DAY: u32 = 10;
const WARMING_MOST: u32 = 50;
const WARMED_MOST: u32 = 500;
/// A domain with this score or more is warmed, below the second it is degraded; both need this many results.
const WARMED_SCORE: u8 = 75;
const DEGRADED_SCORE: u8 = 50;
const ENOUGH_RESULTS: u32 = 50;
/// A bounce or complaint counts as much as this many deliveries: one in 16 is a score of 75.
const BAD_WEIGHT: u64 = 5;
/// Most domains of an agent, and most addresses of an agent on one domain.
const MAX_DOMAINS: usize = 50;
const MAX_ADDRESSES: usize = 20;
/// Attempts when others change the same items.
const TRIES: u32 = 5;
/// Longest wait for a TXT record.
const DNS_PATIENCE: Duration = Duration::from_secs(4);
/// How long a record that was seen counts, and how much longer if the name servers do not answer.
const SEEN_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
const DNS_GRACE: Duration = Duration::from_secs(3 * 24 * 3600);
/// Names that every agent has on operators' domains begin so; the rest is derived from its id.
const AGENT_PREFIX: &str = "agent-";
/// Hex digits of the agent's id in its address. If another agent's id begins with the same, all of them.
const AGENT_DIGITS: usize = 12;
/// The first address on a domain of an agent's own.
const OWN_NAME: &str = "agent";

/// Whether the pool may choose a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolStatus {
    Active,
    Paused,
    /// No longer the agent's; not shown.
    Removed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provisioning {
    Unprovisioned,
    Provisioning,
    Verified,
    Blocked,
}

/// Why a domain is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    Warming,
    LowReputation,
    Manual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    Warming,
    Warmed,
    Degraded,
}

/// A domain that an agent sends from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendingDomain {
    /// In lower case, as all domains here.
    pub domain: String,
    pub agent: AgentId,
    /// An operator's domain.
    pub shared: bool,
    pub default_from: Address,
    /// The agent's addresses, in lower case.
    pub addresses: Vec<Address>,
    pub pool_status: PoolStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_reason: Option<PauseReason>,
    pub provisioning: Provisioning,
    pub warmup_started_at: Timestamp,
    /// The UTC day (`2026-11-21`) of `sent_count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_date: Option<String>,
    #[serde(default)]
    pub sent_count: u32,
    /// Deliveries of all time, for the score.
    #[serde(default)]
    pub good: u32,
    /// Bounces and complaints of all time.
    #[serde(default)]
    pub bad: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    pub created: Timestamp,
}

/// A domain of an agent's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnDomain {
    pub domain: String,
    pub agent: AgentId,
    pub verified_at: Timestamp,
    /// When its record was last seen, if it was looked up since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
    /// Since when its record is known to be gone. Nothing is sent from the domain until it is there again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_since: Option<Timestamp>,
}

/// Whether the record of a domain's owner is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    Good,
    Gone,
    /// No name server has answered for days.
    Unknown,
}

impl OwnDomain {
    /// Whether the record has to be looked up before the domain is used.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.gone_since.is_some() || now >= self.seen().plus(SEEN_FOR)
    }

    fn seen(&self) -> Timestamp {
        self.seen_at.unwrap_or(self.verified_at)
    }

    /// What a look-up says. `found`: whether the record is there; `None` without an answer.
    fn proof(&self, found: Option<bool>, now: Timestamp) -> Proof {
        match found {
            Some(true) => Proof::Good,
            Some(false) => Proof::Gone,
            None if self.gone_since.is_some() => Proof::Gone,
            None if now < self.seen().plus(SEEN_FOR + DNS_GRACE) => Proof::Good,
            None => Proof::Unknown,
        }
    }

    /// What is known without a look-up.
    pub fn known(&self) -> Proof {
        if self.gone_since.is_some() { Proof::Gone } else { Proof::Good }
    }
}

/// The owner of an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    agent: AgentId,
    /// On an operator's domain. Otherwise the agent must still own the domain.
    shared: bool,
    claimed_at: Timestamp,
}

impl SendingDomain {
    pub(crate) fn new(first: &Address, agent: AgentId, shared: bool, now: Timestamp) -> SendingDomain {
        SendingDomain {
            domain: first.domain().to_owned(),
            agent,
            shared,
            default_from: first.clone(),
            addresses: vec![first.clone()],
            pool_status: PoolStatus::Active,
            pause_reason: None,
            provisioning: Provisioning::Verified,
            warmup_started_at: now,
            sent_date: None,
            sent_count: 0,
            good: 0,
            bad: 0,
            last_used_at: None,
            created: now,
        }
    }

    /// The reputation, 0 to 100: the share of deliveries in all results, where bad ones count five times. `None` before the
    /// first result.
    pub fn score(&self) -> Option<u8> {
        let (good, bad) = (u64::from(self.good), u64::from(self.bad) * BAD_WEIGHT);
        u8::try_from((good * 100).checked_div(good + bad)?).ok()
    }

    fn is_degraded(&self) -> bool {
        let is_known = self.good.saturating_add(self.bad) >= ENOUGH_RESULTS;
        is_known && self.score().is_some_and(|score| score < DEGRADED_SCORE)
    }

    /// A domain is never warmed on its first day.
    pub fn warmup(&self, now: Timestamp) -> Warmup {
        if self.is_degraded() {
            return Warmup::Degraded;
        }
        let is_good = self.good >= ENOUGH_RESULTS && self.score().is_some_and(|score| score >= WARMED_SCORE);
        if is_good && self.days(now) > 0 { Warmup::Warmed } else { Warmup::Warming }
    }

    /// UTC days since the day on which the warm-up started.
    fn days(&self, now: Timestamp) -> u32 {
        let day = |at: Timestamp| at.secs().div_euclid(DAY_SECS);
        u32::try_from(day(now).saturating_sub(day(self.warmup_started_at))).unwrap_or(0)
    }

    /// Most mails of today.
    pub fn limit(&self, now: Timestamp) -> u32 {
        match self.warmup(now) {
            Warmup::Warmed => WARMED_MOST,
            Warmup::Warming => FIRST_DAY.saturating_add(self.days(now).saturating_mul(MORE_EACH_DAY)).min(WARMING_MOST),
            Warmup::Degraded => FIRST_DAY,
        }
    }

    /// The day that is being counted, if it is today. Another process may have begun the next day already.
    pub(crate) fn counted_day(&self, now: Timestamp) -> Option<&str> {
        self.sent_date.as_deref().filter(|date| *date >= stats::day(now).as_str())
    }

    fn sent_today(&self, now: Timestamp) -> u32 {
        self.counted_day(now).map_or(0, |_| self.sent_count)
    }

    /// Mails that may still be sent today.
    pub fn left(&self, now: Timestamp) -> u32 {
        self.limit(now).saturating_sub(self.sent_today(now))
    }

    /// The domain as its agent sees it.
    pub fn view(&self, now: Timestamp) -> Value {
        let warmup = self.warmup(now);
        let status = match self.provisioning {
            Provisioning::Verified => "active",
            Provisioning::Provisioning => "provisioning",
            Provisioning::Unprovisioned | Provisioning::Blocked => "failed",
        };
        // Mail to a domain of an agent's own comes here only if its owner points it here.
        let mailbox_mode = if self.shared { "mailbox" } else { "relay" };
        let addresses: Vec<Value> = self
            .addresses
            .iter()
            .map(|address| json!({"address": address, "status": status, "warmup_state": warmup}))
            .collect();
        let mut view = json!({
            "domain": self.domain,
            "default_from": self.default_from,
            "mailbox_mode": mailbox_mode,
            "addresses": addresses,
            "pool_status": self.pool_status,
            "warmup_state": warmup,
            "provisioning_status": self.provisioning,
            "warmup_started_at": self.warmup_started_at.to_string(),
            "daily_send_limit": self.limit(now),
            "daily_sent_count": self.sent_today(now),
        });
        if let Some(reason) = self.pause_reason {
            view["pause_reason"] = json!(reason);
        }
        if let Some(score) = self.score() {
            view["warmup_score"] = json!(score);
        }
        if let Some(date) = self.counted_day(now) {
            view["daily_sent_date"] = json!(date);
        }
        if let Some(at) = self.last_used_at {
            view["last_used_at"] = json!(at.to_string());
        }
        view
    }
}

fn partition(agent: AgentId) -> String {
    format!("AGENT#{agent}")
}

fn domain_key(agent: AgentId, domain: &str) -> Key {
    Key::new(partition(agent), format!("MAILDOMAIN#{}", domain.to_ascii_lowercase()))
}

fn owner_key(address: &Address) -> Key {
    Key::new(format!("ADDRESS#{}", address.folded()), "OWNER")
}

fn own_key(domain: &str) -> Key {
    Key::new(format!("MAILDOMAIN#{}", domain.to_ascii_lowercase()), "DOMAIN")
}

/// The agent's names on operators' domains: the usual one, and the one if another agent has that.
fn agent_names(agent: AgentId) -> [String; 2] {
    let hex = const_hex::encode(agent.bytes());
    [format!("{AGENT_PREFIX}{}", &hex[..AGENT_DIGITS]), format!("{AGENT_PREFIX}{hex}")]
}

/// Whether the name (lower case) on an operator's domain is of the kind that another agent has by itself.
fn is_anothers(agent: AgentId, name: &str) -> bool {
    name.starts_with(AGENT_PREFIX) && !agent_names(agent).iter().any(|own| own == name)
}

/// Whether the domain is one of the operator's (`EMAIL_DOMAINS`).
pub fn is_operators(config: &Config, domain: &str) -> bool {
    config.email.domains.iter().any(|ours| ours.eq_ignore_ascii_case(domain))
}

/// The agent's domains, oldest first. On first use, makes the agent's address on each of the operator's domains. Domains
/// that are no longer the operator's are left out.
pub async fn ensure_default(
    db: &Db,
    config: &Config,
    agent: AgentId,
    now: Timestamp,
) -> Result<Vec<SendingDomain>, StoreError> {
    let mut domains = rows(db, agent).await?;
    for domain in &config.email.domains {
        if !domains.iter().any(|row| row.domain.eq_ignore_ascii_case(domain)) {
            domains.push(add_shared(db, agent, domain, now).await?);
        }
    }
    domains.retain(|row| !row.shared || is_operators(config, &row.domain));
    Ok(shown(domains))
}

/// Whether [`ensure_default`] would write for an agent without money.
pub async fn is_new_without_money(db: &Db, config: &Config, agent: AgentId) -> Result<bool, StoreError> {
    let known = rows(db, agent).await?;
    let is_known = |domain: &String| known.iter().any(|row| row.domain.eq_ignore_ascii_case(domain));
    Ok(!config.email.domains.iter().all(is_known) && !ledger::account::load(db, agent).await?.is_proven())
}

/// What [`ensure_default`] would return, without a write: for callers that only look.
pub async fn with_defaults(
    db: &Db,
    config: &Config,
    agent: AgentId,
    now: Timestamp,
) -> Result<Vec<SendingDomain>, StoreError> {
    let mut domains = rows(db, agent).await?;
    for domain in &config.email.domains {
        if !domains.iter().any(|row| row.domain.eq_ignore_ascii_case(domain)) {
            domains.extend(default_on(db, agent, domain, now).await?);
        }
    }
    domains.retain(|row| !row.shared || is_operators(config, &row.domain));
    Ok(shown(domains))
}

/// The row that [`add_shared`] would write.
async fn default_on(
    db: &Db,
    agent: AgentId,
    domain: &str,
    now: Timestamp,
) -> Result<Option<SendingDomain>, StoreError> {
    for name in agent_names(agent) {
        let address = Address::parse(&format!("{name}@{domain}")).map_err(StoreError::new)?;
        if owner_of(db, &address).await?.is_none_or(|owner| owner == agent) {
            return Ok(Some(SendingDomain::new(&address, agent, true, now)));
        }
    }
    Ok(None)
}

/// Whether the agent has as many domains of its own as it may have.
pub fn is_full(domains: &[SendingDomain]) -> bool {
    domains.iter().filter(|row| !row.shared).count() >= MAX_DOMAINS
}

/// Adds an operator's domain with the agent's own address; returns the row that an earlier call added.
async fn add_shared(db: &Db, agent: AgentId, domain: &str, now: Timestamp) -> Result<SendingDomain, StoreError> {
    for name in agent_names(agent) {
        let address = Address::parse(&format!("{name}@{domain}")).map_err(StoreError::new)?;
        let row = SendingDomain::new(&address, agent, true, now);
        let put = Write::put(&db.tables.messages, domain_key(agent, &row.domain), &row)?.only_if_new();
        match db.transact(&[put, claim(db, agent, &address, now)?]).await {
            Ok(()) => return Ok(row),
            Err(WriteError::Failed(error)) => return Err(error),
            Err(WriteError::Refused(_)) => {}
        }
        // Either another call was faster, or another agent has the address: then the longer one is tried.
        if let Some(row) = find(db, agent, &row.domain).await? {
            return Ok(row);
        }
    }
    Err(StoreError::new("an agent's own address belongs to another agent"))
}

/// The agent's domains, oldest first; removed ones are hidden.
pub async fn list(db: &Db, agent: AgentId) -> Result<Vec<SendingDomain>, StoreError> {
    Ok(shown(rows(db, agent).await?))
}

fn shown(mut domains: Vec<SendingDomain>) -> Vec<SendingDomain> {
    domains.retain(|row| row.pool_status != PoolStatus::Removed);
    domains.sort_by(|a, b| (a.created, &a.domain).cmp(&(b.created, &b.domain)));
    domains
}

/// All rows of the agent, removed ones too.
async fn rows(db: &Db, agent: AgentId) -> Result<Vec<SendingDomain>, StoreError> {
    // Operators' domains come beside the agent's own.
    let query = Query::prefixed(&db.tables.messages, &partition(agent), "MAILDOMAIN#", 2 * MAX_DOMAINS)?;
    db.query(query.latest()).await
}

/// The agent's row, even if it is removed.
async fn find(db: &Db, agent: AgentId, domain: &str) -> Result<Option<SendingDomain>, StoreError> {
    db.get_latest(&db.tables.messages, domain_key(agent, domain)).await
}

/// One of the agent's domains, if it is not removed.
pub async fn load(db: &Db, agent: AgentId, domain: &str) -> Result<Option<SendingDomain>, StoreError> {
    Ok(find(db, agent, domain).await?.filter(|row| row.pool_status != PoolStatus::Removed))
}

/// Pauses or resumes a domain. Pausing a paused one changes nothing; only a paused one can be resumed. `None`: no such
/// domain, or no such transition.
pub async fn set_status(
    db: &Db,
    agent: AgentId,
    domain: &str,
    status: PoolStatus,
    _now: Timestamp,
) -> Result<Option<SendingDomain>, StoreError> {
    let write = |set: &str| Write::update(&db.tables.messages, domain_key(agent, domain), set);
    let write = match status {
        PoolStatus::Paused => {
            write("SET #pool_status = :paused, #pause_reason = if_not_exists(#pause_reason, :manual)")
                .only_if("#pool_status IN (:active, :paused)")
                .bind("active", PoolStatus::Active)?
                .bind("manual", PauseReason::Manual)?
        }
        PoolStatus::Active => write("SET #pool_status = :active REMOVE #pause_reason")
            .only_if("#pool_status = :paused")
            .bind("active", PoolStatus::Active)?,
        PoolStatus::Removed => return Ok(None),
    };
    match db.write(write.bind("paused", PoolStatus::Paused)?).await {
        Ok(item) => db::parse(item).map(Some),
        Err(WriteError::Refused(_)) => Ok(None),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// The pool's choice for a mail to `recipients` recipients: active, verified, enough left today; of these the least
/// recently used.
pub fn choose(domains: &[SendingDomain], recipients: u32, now: Timestamp) -> Option<&SendingDomain> {
    fn order(row: &SendingDomain) -> (Option<Timestamp>, Timestamp, &str) {
        (row.last_used_at, row.created, row.domain.as_str())
    }
    domains
        .iter()
        .filter(|row| row.pool_status == PoolStatus::Active && row.provisioning == Provisioning::Verified)
        .filter(|row| row.left(now) >= recipients)
        .min_by(|a, b| order(a).cmp(&order(b)))
}

/// The write that adds `recipients` to the count of the day `date`, if that is still the domain's day and has room.
pub(crate) fn count(
    db: &Db,
    row: &SendingDomain,
    date: &str,
    recipients: u32,
    now: Timestamp,
) -> Result<Write, StoreError> {
    let update = |set: &str| Write::update(&db.tables.messages, domain_key(row.agent, &row.domain), set);
    let count = match row.counted_day(now) {
        Some(_) => update("SET #last_used_at = :now ADD #sent_count :recipients")
            .only_if("#pool_status = :active AND #sent_date = :date AND #sent_count <= :room")
            // The highest count to which the recipients may be added.
            .bind("room", row.limit(now).saturating_sub(recipients))?,
        None => update("SET #last_used_at = :now, #sent_date = :date, #sent_count = :recipients")
            .only_if("#pool_status = :active AND (attribute_not_exists(#sent_date) OR #sent_date < :date)"),
    };
    count.bind("date", date)?.bind("now", now)?.bind("recipients", recipients)?.bind("active", PoolStatus::Active)
}

/// The write that takes `recipients` off the count of this day, if the domain still counts it.
pub(crate) fn uncount(db: &Db, agent: AgentId, domain: &str, date: &str, recipients: u32) -> Result<Write, StoreError> {
    Write::update(&db.tables.messages, domain_key(agent, domain), "ADD #sent_count :less")
        .only_if("#sent_date = :date AND #sent_count >= :recipients")
        .bind("date", date)?
        .bind("recipients", recipients)?
        .bind("less", -i64::from(recipients))
}

/// Adds results to the domain's score. Not idempotent: call it only after a write that changed a recipient's state. A
/// domain that becomes degraded leaves the pool.
pub async fn note_result(db: &Db, agent: AgentId, domain: &str, good: u32, bad: u32) -> Result<(), StoreError> {
    if good == 0 && bad == 0 {
        return Ok(());
    }
    let write = Write::update(&db.tables.messages, domain_key(agent, domain), "ADD #good :good, #bad :bad")
        .only_if("attribute_exists(#pk)")
        .bind("good", good)?
        .bind("bad", bad)?;
    let row: SendingDomain = match db.write(write).await {
        Ok(item) => db::parse(item)?,
        Err(WriteError::Refused(_)) => return Ok(()),
        Err(WriteError::Failed(error)) => return Err(error),
    };
    // Only bad news pauses: a domain that its agent resumed stays until then.
    if bad > 0 && row.is_degraded() && row.pool_status == PoolStatus::Active {
        let set = "SET #pool_status = :paused, #pause_reason = :reason";
        let pause = Write::update(&db.tables.messages, domain_key(agent, domain), set)
            .only_if("#pool_status = :active")
            .bind("paused", PoolStatus::Paused)?
            .bind("reason", PauseReason::LowReputation)?
            .bind("active", PoolStatus::Active)?;
        db.write_if(pause).await?;
    }
    Ok(())
}

/// The agent that has the address, in any case of letters. `None` also if it lost the domain.
pub async fn owner_of(db: &Db, address: &Address) -> Result<Option<AgentId>, StoreError> {
    let owner: Option<Owner> = db.get_latest(&db.tables.messages, owner_key(address)).await?;
    let Some(owner) = owner else { return Ok(None) };
    if owner.shared {
        return Ok(Some(owner.agent));
    }
    let domain = own_domain(db, address.domain()).await?;
    Ok(domain.map(|domain| domain.agent).filter(|agent| *agent == owner.agent))
}

/// The write that gives an agent an address on an operator's domain. Refused if another agent has it.
fn claim(db: &Db, agent: AgentId, address: &Address, now: Timestamp) -> Result<Write, StoreError> {
    Write::put(&db.tables.messages, owner_key(address), &Owner { agent, shared: true, claimed_at: now })?
        .only_if("attribute_not_exists(#pk) OR #agent = :agent")
        .bind("agent", agent)
}

/// The write that gives an agent an address on its own domain, whoever had it before the domain was its.
fn take_over(db: &Db, agent: AgentId, address: &Address, now: Timestamp) -> Result<Write, StoreError> {
    Write::put(&db.tables.messages, owner_key(address), &Owner { agent, shared: false, claimed_at: now })
}

/// Gives the agent an address on one of its sending domains, and adds it to the domain's row. True again if it has it
/// already. False: it is another agent's, the domain is not one of this agent's, or the agent has 20 addresses on it. Whether
/// the name is reserved is asked before ([`crate::quote::is_claimable`]).
pub async fn claim_address(db: &Db, agent: AgentId, address: &Address, now: Timestamp) -> Result<bool, StoreError> {
    let address = Address::parse(&address.folded()).map_err(StoreError::new)?;
    let Some(row) = load(db, agent, address.domain()).await? else { return Ok(false) };
    if row.addresses.contains(&address) {
        return Ok(true);
    }
    let add = Write::update(
        &db.tables.messages,
        domain_key(agent, address.domain()),
        "SET #addresses = list_append(#addresses, :new)",
    )
    .only_if("#pool_status IN (:active, :paused) AND size(#addresses) < :most AND NOT contains(#addresses, :address)")
    .bind("new", vec![&address])?
    .bind("address", &address)?
    .bind("active", PoolStatus::Active)?
    .bind("paused", PoolStatus::Paused)?
    .bind("most", MAX_ADDRESSES)?;
    let writes = if row.shared {
        if is_anothers(agent, address.local()) {
            return Ok(false);
        }
        vec![add, claim(db, agent, &address, now)?]
    } else {
        let is_mine = Write::check(&db.tables.messages, own_key(address.domain()));
        vec![add, take_over(db, agent, &address, now)?, is_mine.only_if("#agent = :agent").bind("agent", agent)?]
    };
    match db.transact(&writes).await {
        Ok(()) => Ok(true),
        // Another call of this agent may have been faster.
        Err(WriteError::Refused(_)) => {
            Ok(load(db, agent, address.domain()).await?.is_some_and(|row| row.addresses.contains(&address)))
        }
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// The TXT record that shows an agent's ownership of a domain: its name and its value. The value is derived from the
/// secret, so one agent's record proves nothing for another.
pub fn ownership_record(secret: &[u8], agent: AgentId, domain: &str) -> (String, String) {
    let domain = domain.to_ascii_lowercase();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let mac = digest::hmac(&key, &sha256_parts(&[b"mail domain", agent.bytes(), domain.as_bytes()]));
    (record_name(&domain), format!("agora-verify={}", const_hex::encode(&mac[..16])))
}

/// The name of every agent's record for a domain.
fn record_name(domain: &str) -> String {
    format!("_agora.{domain}")
}

/// The agent that has verified the domain.
pub async fn own_domain(db: &Db, domain: &str) -> Result<Option<OwnDomain>, StoreError> {
    db.get_latest(&db.tables.messages, own_key(domain)).await
}

/// Whether the agent's TXT record is there, and the one of the domain's owner is not, if another agent owns it. Also false
/// without an answer from the name server, or if it is no domain. Writes nothing: anybody may ask, in anybody's name.
///
/// The process caches DNS answers for up to 15 minutes, also that there is no record.
pub async fn shows_record(db: &Db, dns: &Dns, secret: &[u8], agent: AgentId, domain: &str) -> Result<bool, StoreError> {
    let Ok(first) = Address::parse(&format!("{OWN_NAME}@{domain}")) else { return Ok(false) };
    let texts = record_texts(dns, first.domain()).await;
    if !has_record(&texts, secret, agent, first.domain()) {
        return Ok(false);
    }
    let owner = own_domain(db, first.domain()).await?.map(|known| known.agent);
    Ok(passes(&texts, secret, agent, owner, first.domain()))
}

/// The texts of a domain's ownership record; none if the name server does not answer.
async fn record_texts(dns: &Dns, domain: &str) -> Vec<String> {
    answered_texts(dns, domain).await.unwrap_or_default()
}

/// The same; `None` if the name server does not answer.
async fn answered_texts(dns: &Dns, domain: &str) -> Option<Vec<String>> {
    match dns.texts(&record_name(domain), Instant::now() + DNS_PATIENCE).await {
        Ok(texts) => Some(texts),
        Err(error) => error.is_answer().then(Vec::new),
    }
}

/// Looks up the record of a domain's owner again, if it was not seen for a week or is gone. With `may_write`, the answer is
/// stored.
pub async fn recheck(
    db: &Db,
    dns: &Dns,
    secret: &[u8],
    own: &OwnDomain,
    may_write: bool,
    now: Timestamp,
) -> Result<Proof, StoreError> {
    if !own.is_due(now) {
        return Ok(Proof::Good);
    }
    let texts = answered_texts(dns, &own.domain).await;
    let found = texts.map(|texts| has_record(&texts, secret, own.agent, &own.domain));
    let is_news = found.is_some_and(|found| found || own.gone_since.is_none());
    if may_write
        && is_news
        && let Some(found) = found
    {
        let set = match found {
            true => "SET #seen_at = :now REMOVE #gone_since",
            false => "SET #gone_since = if_not_exists(#gone_since, :now)",
        };
        let write = Write::update(&db.tables.messages, own_key(&own.domain), set)
            .only_if("#agent = :agent")
            .bind("agent", own.agent)?
            .bind("now", now)?;
        db.write_if(write).await?;
    }
    Ok(own.proof(found, now))
}

/// Says in the agent's row whether the domain can be sent from, unless the row says so already.
pub(crate) async fn set_provisioning(
    db: &Db,
    agent: AgentId,
    domain: &str,
    provisioning: Provisioning,
) -> Result<(), StoreError> {
    if load(db, agent, domain).await?.is_none_or(|row| row.shared || row.provisioning == provisioning) {
        return Ok(());
    }
    let write = Write::update(&db.tables.messages, domain_key(agent, domain), "SET #provisioning = :provisioning")
        .only_if("#pool_status IN (:active, :paused) AND #shared = :shared")
        .bind("provisioning", provisioning)?
        .bind("active", PoolStatus::Active)?
        .bind("paused", PoolStatus::Paused)?
        .bind("shared", false)?;
    db.write_if(write).await.map(drop)
}

fn has_record(texts: &[String], secret: &[u8], agent: AgentId, domain: &str) -> bool {
    let (_, value) = ownership_record(secret, agent, domain);
    texts.iter().any(|text| text.trim() == value)
}

/// Whether these records give the domain of `owner` to the agent: its own is there, and another owner's is gone.
fn passes(texts: &[String], secret: &[u8], agent: AgentId, owner: Option<AgentId>, domain: &str) -> bool {
    let before = owner.filter(|owner| *owner != agent);
    has_record(texts, secret, agent, domain) && !before.is_some_and(|before| has_record(texts, secret, before, domain))
}

/// Looks for the agent's TXT record. If it is there, writes [`OwnDomain`] and the agent's row with the address
/// `agent@<domain>`. False as in [`shows_record`]. Idempotent. The caller has checked that the agent is the one who pays,
/// and that the domain is not an operator's.
pub async fn verify_own(
    db: &Db,
    dns: &Dns,
    secret: &[u8],
    agent: AgentId,
    domain: &str,
    now: Timestamp,
) -> Result<bool, ApiError> {
    let Ok(first) = Address::parse(&format!("{OWN_NAME}@{domain}")) else { return Ok(false) };
    let domain = first.domain();
    let texts = record_texts(dns, domain).await;
    for _ in 0..TRIES {
        let owner = own_domain(db, domain).await?.map(|known| known.agent);
        if !passes(&texts, secret, agent, owner, domain) {
            return Ok(false);
        }
        let row = find(db, agent, domain).await?;
        let is_row_good = row.as_ref().is_some_and(|row| !row.shared && row.pool_status != PoolStatus::Removed);
        if owner == Some(agent) && is_row_good {
            return Ok(true);
        }
        if row.is_none() && is_full(&rows(db, agent).await?) {
            return Err(too_many());
        }
        match db.transact(&verified(db, agent, &first, owner, now).await?).await {
            Ok(()) => return Ok(true),
            // Another call wrote: look again.
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error.into()),
        }
    }
    Err(StoreError::new("a domain is verified by too many at the same time").into())
}

/// The refusal of one more domain.
pub(crate) fn too_many() -> ApiError {
    let message = format!("is on a new domain, and you have {MAX_DOMAINS} domains already");
    ApiError::field("from_address", message)
}

/// The writes that make the domain of `first` the agent's, if `owner` still has it: the domain, a new row of the agent with
/// its first address, and the end of the previous owner's row.
async fn verified(
    db: &Db,
    agent: AgentId,
    first: &Address,
    owner: Option<AgentId>,
    now: Timestamp,
) -> Result<Vec<Write>, StoreError> {
    let domain = first.domain();
    let record = OwnDomain { domain: domain.to_owned(), agent, verified_at: now, seen_at: None, gone_since: None };
    let record = Write::put(&db.tables.messages, own_key(domain), &record)?;
    let record = match owner {
        None => record.only_if_new(),
        Some(owner) => record.only_if("#agent = :owner").bind("owner", owner)?,
    };
    // Replaces a row from a time before another agent had the domain, or when it was the operator's. What went out today still
    // counts, whoever sent it.
    let before = match owner.filter(|owner| *owner != agent) {
        Some(before) => find(db, before, domain).await?,
        None => None,
    };
    let counted = before.as_ref().map(|before| (before.sent_date.clone(), before.sent_count));
    let (sent_date, sent_count) = counted.unwrap_or_default();
    let row = SendingDomain { sent_date, sent_count, ..SendingDomain::new(first, agent, false, now) };
    let row = Write::put(&db.tables.messages, domain_key(agent, domain), &row)?
        .only_if("attribute_not_exists(#pk) OR #pool_status = :removed OR #shared = :shared")
        .bind("removed", PoolStatus::Removed)?
        .bind("shared", true)?;
    let mut writes = vec![record, row, take_over(db, agent, first, now)?];
    if let Some(before) = before {
        let set = "SET #pool_status = :removed, #provisioning = :unprovisioned REMOVE #pause_reason";
        let end = Write::update(&db.tables.messages, domain_key(before.agent, domain), set)
            .only_if("attribute_exists(#pk)")
            .bind("removed", PoolStatus::Removed)?
            .bind("unprovisioned", Provisioning::Unprovisioned)?;
        writes.push(end);
    }
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400;

    fn at(day: i64) -> Timestamp {
        Timestamp::from_secs(20_000 * DAY + day * DAY + 3600)
    }

    fn row(name: &str) -> SendingDomain {
        let address = Address::parse(&format!("agent-1@{name}.example")).unwrap();
        SendingDomain::new(&address, AgentId::from_bytes([7; 16]), true, at(0))
    }

    fn with_results(good: u32, bad: u32) -> SendingDomain {
        SendingDomain { good, bad, ..row("a") }
    }

    #[test]
    fn results_and_days_give_score_warmup_and_limit() {
        use Warmup::{Degraded, Warmed, Warming};
        let rows = [
            // good, bad, day, score, warm-up, limit
            (0, 0, 0, None, Warming, 20),
            (0, 0, 1, None, Warming, 30),
            (0, 0, 2, None, Warming, 40),
            (0, 0, 3, None, Warming, 50),
            (0, 0, 400, None, Warming, 50),
            (0, 0, -1, None, Warming, 20),
            (1, 0, 1, Some(100), Warming, 30),
            (0, 1, 1, Some(0), Warming, 30),
            (49, 0, 3, Some(100), Warming, 50),
            (50, 0, 0, Some(100), Warming, 20),
            (50, 0, 1, Some(100), Warmed, 500),
            (75, 5, 3, Some(75), Warmed, 500),
            (74, 5, 3, Some(74), Warming, 50),
            (50, 10, 3, Some(50), Warming, 50),
            (49, 10, 3, Some(49), Degraded, 20),
            (39, 10, 3, Some(43), Warming, 50),
            (0, 50, 0, Some(0), Degraded, 20),
            (u32::MAX, u32::MAX, 3, Some(16), Degraded, 20),
        ];
        for (good, bad, day, score, warmup, limit) in rows {
            let row = with_results(good, bad);
            assert_eq!(row.score(), score, "{good} {bad}");
            assert_eq!(row.warmup(at(day)), warmup, "{good} {bad} day {day}");
            assert_eq!(row.limit(at(day)), limit, "{good} {bad} day {day}");
        }
    }

    #[test]
    fn only_the_mails_of_today_count() {
        let rows = [
            // day and number of the mails sent, today, mails left
            (None, 0, 0, 20),
            (Some(0), 5, 0, 15),
            (Some(0), 25, 0, 0),
            (Some(0), 20, 1, 30),
            (Some(1), 20, 1, 10),
            // Another process is in the next day already.
            (Some(1), 20, 0, 0),
        ];
        for (sent_on, sent_count, today, left) in rows {
            let sent_date = sent_on.map(|day| stats::day(at(day)));
            let row = SendingDomain { sent_date, sent_count, ..row("a") };
            assert_eq!(row.left(at(today)), left, "{sent_on:?} {sent_count} {today}");
        }
    }

    #[test]
    fn the_pool_takes_the_least_recently_used_domain_with_room() {
        let today = stats::day(at(0));
        let used = |name, hour: i64| SendingDomain {
            last_used_at: Some(Timestamp::from_secs(at(0).secs() + hour * 3600)),
            ..row(name)
        };
        let unused = row("unused");
        let full = SendingDomain { sent_date: Some(today), sent_count: 19, ..row("full") };
        let paused = SendingDomain { pool_status: PoolStatus::Paused, ..row("paused") };
        let unverified = SendingDomain { provisioning: Provisioning::Provisioning, ..row("unverified") };
        let rows = [
            (vec![], 1, None),
            (vec![used("late", 2), used("early", 1)], 1, Some("early.example")),
            (vec![used("early", 1), unused.clone()], 1, Some("unused.example")),
            (vec![row("b"), row("a")], 1, Some("a.example")),
            (vec![full.clone(), used("early", 1)], 1, Some("full.example")),
            (vec![full.clone(), used("early", 1)], 2, Some("early.example")),
            (vec![unused], 21, None),
            (vec![paused, unverified], 1, None),
        ];
        for (domains, recipients, expected) in rows {
            assert_eq!(choose(&domains, recipients, at(0)).map(|row| row.domain.as_str()), expected);
        }
    }

    #[test]
    fn names_of_other_agents_are_reserved() {
        let agent = AgentId::from_bytes([0xab; 16]);
        let [short, long] = agent_names(agent);
        assert_eq!((short.as_str(), long.len()), ("agent-abababababab", 38));
        let rows = [
            (short.as_str(), false),
            (long.as_str(), false),
            ("agent-000000000000", true),
            ("agent-", true),
            ("agent", false),
        ];
        for (name, expected) in rows {
            assert_eq!(is_anothers(agent, name), expected, "{name}");
        }
    }

    #[test]
    fn an_ownership_record_is_for_one_agent_and_one_domain() {
        let [one, other] = [1, 2].map(|byte| AgentId::from_bytes([byte; 16]));
        let (name, value) = ownership_record(b"secret", one, "Example.com");
        assert_eq!(name, "_agora.example.com");
        assert_eq!(value.strip_prefix("agora-verify=").map(str::len), Some(32));
        assert_eq!(ownership_record(b"secret", one, "example.com").1, value);
        for different in [
            ownership_record(b"secret", other, "example.com"),
            ownership_record(b"secret", one, "example.org"),
            ownership_record(b"another", one, "example.com"),
        ] {
            assert_ne!(different.1, value);
        }
    }

    #[test]
    fn a_domain_passes_on_when_its_owners_record_is_gone() {
        let [old, new] = [1, 2].map(|byte| AgentId::from_bytes([byte; 16]));
        let value = |agent| format!(" {} ", ownership_record(b"secret", agent, "a.example").1);
        for (records, owner, expected) in [
            (vec![], None, false),
            (vec![value(new)], None, true),
            (vec![value(new)], Some(new), true),
            (vec![value(old)], Some(old), false),
            (vec![value(old), value(new)], Some(old), false),
            (vec![value(new)], Some(old), true),
            (vec!["v=spf1 -all".to_owned()], Some(new), false),
        ] {
            assert_eq!(passes(&records, b"secret", new, owner, "a.example"), expected, "{records:?} {owner:?}");
        }
    }

    #[test]
    fn a_record_counts_for_a_week_and_ten_days_without_an_answer() {
        use Proof::{Gone, Good, Unknown};
        let own = |seen: Option<i64>, gone: Option<i64>| OwnDomain {
            domain: "a.example".to_owned(),
            agent: AgentId::from_bytes([7; 16]),
            verified_at: at(0),
            seen_at: seen.map(at),
            gone_since: gone.map(at),
        };
        for (seen, gone, today, due, answers) in [
            // The answers: the record is there, it is not, and none.
            (None, None, 6, false, [Good, Gone, Good]),
            (None, None, 7, true, [Good, Gone, Good]),
            (None, None, 9, true, [Good, Gone, Good]),
            (None, None, 10, true, [Good, Gone, Unknown]),
            (Some(7), None, 13, false, [Good, Gone, Good]),
            (Some(7), None, 16, true, [Good, Gone, Good]),
            (Some(7), Some(14), 14, true, [Good, Gone, Gone]),
        ] {
            let own = own(seen, gone);
            assert_eq!(own.is_due(at(today)), due, "{own:?} on {today}");
            assert_eq!([Some(true), Some(false), None].map(|found| own.proof(found, at(today))), answers, "{own:?}");
        }
    }

    #[test]
    fn the_view_has_the_members_of_a_domain() {
        let fresh = row("a").view(at(0));
        assert_eq!(
            fresh,
            json!({
                "domain": "a.example",
                "default_from": "agent-1@a.example",
                "mailbox_mode": "mailbox",
                "addresses": [{"address": "agent-1@a.example", "status": "active", "warmup_state": "warming"}],
                "pool_status": "active",
                "warmup_state": "warming",
                "provisioning_status": "verified",
                "warmup_started_at": at(0).to_string(),
                "daily_send_limit": 20,
                "daily_sent_count": 0,
            })
        );
        let used = SendingDomain {
            pool_status: PoolStatus::Paused,
            pause_reason: Some(PauseReason::LowReputation),
            sent_date: Some(stats::day(at(1))),
            sent_count: 3,
            last_used_at: Some(at(1)),
            ..with_results(10, 90)
        };
        let view = used.view(at(1));
        assert_eq!(view["pause_reason"], "low_reputation");
        assert_eq!((&view["warmup_state"], &view["warmup_score"]), (&json!("degraded"), &json!(2)));
        assert_eq!((&view["daily_sent_count"], &view["daily_sent_date"]), (&json!(3), &json!(stats::day(at(1)))));
        assert_eq!(used.view(at(2))["daily_sent_count"], 0);
        assert_eq!(used.view(at(2)).get("daily_sent_date"), None);
    }
}
