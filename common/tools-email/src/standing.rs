//! How many mails to addresses outside come back: of each agent, and of all agents together. Mail hosts and Amazon SES look at
//! these two rates. SES reviews an account above 5 % of bounces or 0.1 % of complaints, and soon stops it; then nobody sends.
//! <https://docs.aws.amazon.com/ses/latest/dg/faqs-enforcement.html>
//!
//! | item | key |
//! |---|---|
//! | what became of an agent's mails, and since when it is stopped | `AGENT#<agent>` / `MAILRATE` |
//! | what became of all mails | `MAILRATE#ALL` / `MAILRATE` |
//! | an address that a mail has reached | `REACHED#<SHA-256 of the address>` / `ALL` |
//!
//! An agent above a rate sends nothing more to addresses outside, from whatever domain, until the operator deletes its row. If all
//! mails together are above one, only addresses that a mail has reached before get mail. That ends when the rate has come down,
//! with the period, or when the operator deletes the row.
//!
//! A period is a week, from the first mail in it. A few failures prove nothing: below the least number nobody is stopped.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256;
use base::ids::AgentId;
use platform::http::log;
use platform::store::db;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tools::Toolbox;

use crate::address::Address;
use crate::notices;

const PERIOD: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long an address counts as one that mails reach.
const REACHED: Duration = Duration::from_secs(180 * 24 * 3600);
/// Attempts when a new period begins for several at the same time.
const TRIES: u32 = 3;
/// Counts bounces and complaints while all mails together are above a rate. An alarm looks at it.
const METRIC: &str = "NewRecipientsStopped";

/// Why a stopped agent's mail is refused, for jobs.
pub const STOPPED: &str = "sending_stopped";
/// Why a recipient gets no mail while new ones are stopped.
pub const NEW_STOPPED: &str = "too many mails of this deployment came back lately: only addresses that a mail has reached before \
                               get mail now; try again in a day";

/// From so many failures on, the rate counts.
struct Least {
    bounced: i64,
    complained: i64,
}

const OF_AGENT: Least = Least { bounced: 5, complained: 3 };
const OF_ALL: Least = Least { bounced: 50, complained: 5 };

/// What became of mails to addresses outside, in this period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    since: Timestamp,
    /// Accepted by the provider.
    handed: i64,
    bounced: i64,
    complained: i64,
    /// Since when the agent is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stopped_at: Option<Timestamp>,
}

impl Rates {
    /// Above 5 % of bounces, or 0.1 % of complaints.
    fn are_bad(&self, least: &Least) -> bool {
        let above =
            |failed: i64, least: i64, one_in: i64| failed >= least && failed.saturating_mul(one_in) > self.handed;
        above(self.bounced, least.bounced, 20) || above(self.complained, least.complained, 1_000)
    }

    pub(crate) fn told(&self) -> String {
        format!(
            "of {} mails to addresses outside, {} bounced and {} were reported as spam",
            self.handed, self.bounced, self.complained
        )
    }
}

/// What happened to a mail outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    Handed,
    Bounced,
    Complained,
}

fn of_agent(agent: AgentId) -> Key {
    Key::new(format!("AGENT#{agent}"), "MAILRATE")
}

fn of_all() -> Key {
    Key::new("MAILRATE#ALL", "MAILRATE")
}

fn reached_key(address: &Address) -> Key {
    Key::new(format!("REACHED#{}", const_hex::encode(sha256(address.folded().as_bytes()))), "ALL")
}

/// Counts one mail, in a new period if the last one is over. Not idempotent: call it after the write that changed the recipient.
async fn count(db: &Db, key: Key, became: Became, now: Timestamp) -> Result<Rates, StoreError> {
    let one = |of: Became| i64::from(became == of);
    let begun = now.minus(PERIOD);
    for _ in 0..TRIES {
        let set =
            "SET #since = if_not_exists(#since, :now) ADD #handed :handed, #bounced :bounced, #complained :complained";
        let more = Write::update(&db.tables.messages, key.clone(), set)
            .only_if("attribute_not_exists(#since) OR #since > :begun OR attribute_exists(#stopped_at)")
            .bind("now", now)?
            .bind("begun", begun)?
            .bind("handed", one(Became::Handed))?
            .bind("bounced", one(Became::Bounced))?
            .bind("complained", one(Became::Complained))?;
        match db.write(more).await {
            Ok(item) => return db::parse(item),
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
        let anew = "SET #since = :now, #handed = :none, #bounced = :none, #complained = :none";
        let anew = Write::update(&db.tables.messages, key.clone(), anew)
            .only_if("#since <= :begun AND attribute_not_exists(#stopped_at)")
            .bind("now", now)?
            .bind("begun", begun)?
            .bind("none", 0)?;
        db.write_if(anew).await?;
    }
    Err(StoreError::new("the rates of mails are changed by too many at the same time"))
}

/// Counts what became of a mail of this agent to an address outside. If the agent is above a rate now, it is stopped, and told.
/// Not idempotent: call it after the write that changed the recipient.
pub async fn note(toolbox: &Toolbox, agent: AgentId, became: Became, now: Timestamp) -> Result<(), StoreError> {
    let db = &toolbox.db;
    let all = count(db, of_all(), became, now).await?;
    let own = count(db, of_agent(agent), became, now).await?;
    if became == Became::Handed {
        return Ok(());
    }
    if all.are_bad(&OF_ALL) {
        log::failure("new recipients get no mail, because too many mails came back", &all.told());
        log::metric(&toolbox.config.metric_namespace, METRIC, "Count", 1);
    }
    if own.stopped_at.is_none() && own.are_bad(&OF_AGENT) {
        let stop = Write::update(&db.tables.messages, of_agent(agent), "SET #stopped_at = :now")
            .only_if("attribute_exists(#pk) AND attribute_not_exists(#stopped_at)")
            .bind("now", now)?;
        let told = notices::stopped(db, agent, &own, &next_step(toolbox), now)?;
        match db.transact(&[stop, told]).await {
            Ok(()) => log::event("an agent's mail is stopped", json!({"agent": agent, "rates": own.told()})),
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Ok(())
}

/// The rates of an agent whose mail to addresses outside is stopped.
pub async fn stopped(db: &Db, agent: AgentId) -> Result<Option<Rates>, StoreError> {
    let rates: Option<Rates> = db.get(&db.tables.messages, of_agent(agent)).await?;
    Ok(rates.filter(|rates| rates.stopped_at.is_some()))
}

/// What a stopped agent can do.
pub fn next_step(toolbox: &Toolbox) -> String {
    let to = toolbox.config.email.domains.first().map(|domain| format!(": write to postmaster@{domain}"));
    format!(
        "correct your list of addresses, then ask the operator to lift the stop{}; mail to agents of this deployment still goes",
        to.unwrap_or_default()
    )
}

/// Whether only addresses that a mail has reached before get mail now.
pub async fn are_new_stopped(db: &Db, now: Timestamp) -> Result<bool, StoreError> {
    let rates: Option<Rates> = db.get(&db.tables.messages, of_all()).await?;
    Ok(rates.is_some_and(|rates| rates.are_bad(&OF_ALL) && now < rates.since.plus(PERIOD)))
}

/// Notes that a mail has reached this address.
pub async fn note_reached(db: &Db, address: &Address, now: Timestamp) -> Result<(), StoreError> {
    let row = json!({"expires": now.plus(REACHED).secs()});
    db.write(Write::put(&db.tables.messages, reached_key(address), &row)?).await?;
    Ok(())
}

pub async fn is_reached(db: &Db, address: &Address) -> Result<bool, StoreError> {
    let row: Option<serde_json::Value> = db.get(&db.tables.messages, reached_key(address)).await?;
    Ok(row.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_counts_from_a_least_number_on() {
        for (handed, bounced, complained, agent, all) in [
            (0, 4, 2, false, false),
            (20, 5, 0, true, false),
            (100, 5, 0, false, false),
            (99, 5, 0, true, false),
            (1_000, 50, 0, false, false),
            (999, 50, 0, true, true),
            (1_000, 0, 2, false, false),
            (2_999, 0, 3, true, false),
            (3_000, 0, 3, false, false),
            (4_999, 0, 5, true, true),
            (5_000, 0, 5, false, false),
        ] {
            let rates = Rates { since: Timestamp::from_secs(0), handed, bounced, complained, stopped_at: None };
            assert_eq!((rates.are_bad(&OF_AGENT), rates.are_bad(&OF_ALL)), (agent, all), "{rates:?}");
        }
    }
}
