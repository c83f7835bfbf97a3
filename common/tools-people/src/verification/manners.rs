//! Limits that keep mail host checks from being used to harvest addresses: results are cached, each host is asked by one
//! process at a time and left alone after it refused us, and an agent has a daily limit of addresses per domain.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::{random, sha256};
use base::ids::AgentId;
use platform::store::db;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::address::MailAddress;
use super::verdict::{Findings, Mailbox};

/// Cache TTL; shorter if nothing was settled, because greylisting accepts a retry after some minutes.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
const KEPT_UNSETTLED: Duration = Duration::from_secs(10 * 60);
/// How long a mail host that refused us is left alone.
const REST: Duration = Duration::from_secs(3600);
/// Lease on a mail host for one check. It expires if the process dies.
const HOLD: Duration = Duration::from_secs(30);
/// Maximum number of addresses at one domain that an agent may have checked with mail hosts in a UTC day.
pub const MAX_A_DAY: u32 = 100;

#[derive(Serialize, Deserialize)]
struct Kept {
    findings: Findings,
    checked_by: Vec<String>,
    checked_at: Timestamp,
    until: Timestamp,
    expires: i64,
}

/// Only the hash of the address is stored.
fn kept_at(address: &MailAddress) -> Key {
    Key::new(format!("EMAILCHECK#{}", const_hex::encode(sha256(address.ascii().as_bytes()))), "FOUND")
}

/// The cached findings, the checks that made them, and when.
pub async fn recall(
    db: &Db,
    address: &MailAddress,
    now: Timestamp,
) -> Result<Option<(Findings, Vec<String>, Timestamp)>, StoreError> {
    let kept: Option<Kept> = db.get(&db.tables.agents, kept_at(address)).await?;
    Ok(kept.filter(|kept| now < kept.until).map(|kept| (kept.findings, kept.checked_by, kept.checked_at)))
}

/// Caches the findings, if a mail host or a provider was asked.
pub async fn keep(
    db: &Db,
    address: &MailAddress,
    findings: &Findings,
    checked_by: &[String],
    now: Timestamp,
) -> Result<(), StoreError> {
    let asked = !matches!(findings.mailbox, Mailbox::NotAsked | Mailbox::Busy | Mailbox::Private | Mailbox::NeedsUtf8);
    if !asked {
        return Ok(());
    }
    let until = now.plus(if findings.is_settled() { KEPT } else { KEPT_UNSETTLED });
    let (findings, checked_by) = (findings.clone(), checked_by.to_vec());
    let kept = Kept { findings, checked_by, checked_at: now, until, expires: until.secs() };
    db.write(Write::put(&db.tables.agents, kept_at(address), &kept)?).await?;
    Ok(())
}

/// Counts one check of this agent and domain. False if the daily limit is reached.
pub async fn may_ask(db: &Db, agent: AgentId, domain: &str, now: Timestamp) -> Result<bool, StoreError> {
    const DAY_SECS: i64 = 24 * 3600;
    let day = now.secs().div_euclid(DAY_SECS);
    let domain = const_hex::encode(&sha256(domain.as_bytes())[..16]);
    let key = Key::new(format!("PROBES#{agent}"), format!("{day}#{domain}"));
    let write = Write::update(&db.tables.agents, key, "SET #expires = :expires ADD #asked :one")
        .only_if("attribute_not_exists(#asked) OR #asked < :most")
        .bind("one", 1)?
        .bind("most", MAX_A_DAY)?
        .bind("expires", (day + 2) * DAY_SECS)?;
    db.write_if(write).await
}

/// Outcome of taking the lease on a mail host.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// The caller holds the lease, under this name.
    Ours(String),
    /// Another process holds it.
    Theirs,
    /// The host refused us recently and is left alone.
    Rests,
}

#[derive(Deserialize)]
struct Host {
    #[serde(default)]
    holder: Option<String>,
    #[serde(default)]
    rests_until: Option<Timestamp>,
}

fn host_at(host: &str) -> Key {
    Key::new(format!("MAILHOST#{}", const_hex::encode(&sha256(host.as_bytes())[..16])), "TURN")
}

pub async fn take_turn(db: &Db, host: &str, now: Timestamp) -> Result<Turn, StoreError> {
    let holder = const_hex::encode(random::<8>());
    let set = "SET #holder = :holder, #held_until = :until, #expires = :expires";
    let write = Write::update(&db.tables.agents, host_at(host), set)
        .only_if(
            "(attribute_not_exists(#held_until) OR #held_until < :now) \
             AND (attribute_not_exists(#rests_until) OR #rests_until < :now)",
        )
        .bind("holder", &holder)?
        .bind("until", now.plus(HOLD))?
        .bind("now", now)?
        .bind("expires", now.plus(REST * 2).secs())?;
    match db.write(write).await {
        Ok(_) => Ok(Turn::Ours(holder)),
        Err(refused @ WriteError::Refused(_)) => {
            let old = refused.refused(0).and_then(|refused| refused.old.clone());
            let old: Option<Host> = old.map(db::parse).transpose()?;
            Ok(match old {
                // A retry of our own write, whose first answer was lost.
                Some(old) if old.holder.as_ref() == Some(&holder) => Turn::Ours(holder),
                Some(Host { rests_until: Some(until), .. }) if now < until => Turn::Rests,
                _ => Turn::Theirs,
            })
        }
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Releases the lease; `rest` leaves the host alone for a while.
pub async fn end_turn(db: &Db, host: &str, holder: &str, rest: bool, now: Timestamp) -> Result<(), StoreError> {
    let set =
        if rest { "SET #rests_until = :until REMOVE #holder, #held_until" } else { "REMOVE #holder, #held_until" };
    let mut write =
        Write::update(&db.tables.agents, host_at(host), set).only_if("#holder = :holder").bind("holder", holder)?;
    if rest {
        write = write.bind("until", now.plus(REST))?;
    }
    match db.write(write).await {
        // The lease expired, and another process may hold it.
        Ok(_) | Err(WriteError::Refused(_)) => Ok(()),
        Err(WriteError::Failed(error)) => Err(error),
    }
}
