//! What keeps asking mail hosts from being harvesting: answers are kept, each host is asked by one of us at a time and left
//! alone where it wants to be, and an agent asks for so many addresses of a domain a day and no more.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::{random, sha256};
use base::ids::AgentId;
use platform::store::db;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::address::MailAddress;
use super::verdict::{Findings, Mailbox};

/// How long an answer is kept, and how long one that settles nothing: greylisting lets strangers in after some minutes.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
const KEPT_UNSETTLED: Duration = Duration::from_secs(10 * 60);
/// A mail host that refused us is left alone for so long.
const REST: Duration = Duration::from_secs(3600);
/// Longest a host is held for one question; a process that dies lets go of it then.
const HOLD: Duration = Duration::from_secs(30);
/// Addresses of one domain for which an agent may have mail hosts asked in a day (UTC).
pub const MAX_A_DAY: u32 = 100;

#[derive(Serialize, Deserialize)]
struct Kept {
    findings: Findings,
    checked_by: Vec<String>,
    checked_at: Timestamp,
    until: Timestamp,
    expires: i64,
}

/// The address itself is not kept: its hash leads to what was found.
fn kept_at(address: &MailAddress) -> Key {
    Key::new(format!("EMAILCHECK#{}", const_hex::encode(sha256(address.ascii().as_bytes()))), "FOUND")
}

/// What was found out lately, by whom, and when.
pub async fn recall(
    db: &Db,
    address: &MailAddress,
    now: Timestamp,
) -> Result<Option<(Findings, Vec<String>, Timestamp)>, StoreError> {
    let kept: Option<Kept> = db.get(&db.tables.agents, kept_at(address)).await?;
    Ok(kept.filter(|kept| now < kept.until).map(|kept| (kept.findings, kept.checked_by, kept.checked_at)))
}

/// Keeps what was found out, if a mail host or a provider was asked for it.
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

/// Counts a question of this agent about a domain. False if it had its most for this day.
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

/// Whose turn it is at a mail host.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// Ours, until it is given back by this name.
    Ours(String),
    /// Somebody else is asking it.
    Theirs,
    /// It wants to be left alone.
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
                // Our own write, sent again after its answer was lost, meets itself.
                Some(old) if old.holder.as_ref() == Some(&holder) => Turn::Ours(holder),
                Some(Host { rests_until: Some(until), .. }) if now < until => Turn::Rests,
                _ => Turn::Theirs,
            })
        }
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Gives the turn back; `rest` leaves the host alone for a while.
pub async fn end_turn(db: &Db, host: &str, holder: &str, rest: bool, now: Timestamp) -> Result<(), StoreError> {
    let set =
        if rest { "SET #rests_until = :until REMOVE #holder, #held_until" } else { "REMOVE #holder, #held_until" };
    let mut write =
        Write::update(&db.tables.agents, host_at(host), set).only_if("#holder = :holder").bind("holder", holder)?;
    if rest {
        write = write.bind("until", now.plus(REST))?;
    }
    match db.write(write).await {
        // Held for too long, and somebody else's by now.
        Ok(_) | Err(WriteError::Refused(_)) => Ok(()),
        Err(WriteError::Failed(error)) => Err(error),
    }
}
