//! How many texts go to numbers outside this deployment: for an agent, for a block of numbers, and for one number, in a UTC
//! day.
//!
//! The counters are exact when several sends race for the last place. They are limits against abuse (traffic pumping, in
//! which somebody earns from each text to a block of numbers), so a deployment's `RATE_LIMIT_SCALE` does not raise them.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use crate::inbox::short_hash;
use crate::number::Number;

/// Most texts of an agent to numbers outside.
pub const MAX_A_DAY: u32 = 1_000;
/// Most texts of all agents to a block of numbers ([`Number::block`]).
pub const MAX_TO_BLOCK: u32 = 200;
/// Most texts of an agent to one number.
pub const MAX_TO_NUMBER: u32 = 20;
/// Most texts that an agent receives, from inside and outside.
pub const MAX_IN_A_DAY: u32 = 1_000;

const DAY_SECS: i64 = 24 * 3600;
/// How long it is known that a job has its places: longer than jobs run.
const RESERVED: Duration = Duration::from_secs(30 * 24 * 3600);

/// The places of a job: `JOB#<request>` / `RESERVED`.
#[derive(Serialize, Deserialize)]
struct Reserved {
    recipients: u32,
    expires: i64,
}

/// A counter of a day.
#[derive(Deserialize)]
struct Counted {
    #[serde(default)]
    used: u32,
}

fn day(now: Timestamp) -> i64 {
    now.secs().div_euclid(DAY_SECS)
}

fn of_agent(agent: AgentId) -> String {
    format!("SMSDAY#{agent}")
}

/// Adds `by` (at most `most`) to a counter of today, if it does not exceed `most` then.
fn count(db: &Db, partition: String, by: u32, most: u32, now: Timestamp) -> Result<Write, StoreError> {
    let day = day(now);
    let key = Key::new(partition, day.to_string());
    Write::update(&db.tables.messages, key, "SET #expires = :expires ADD #used :by")
        .only_if("attribute_not_exists(#used) OR #used <= :room")
        .bind("by", by)?
        // The highest count to which they may be added.
        .bind("room", most.saturating_sub(by))?
        .bind("expires", (day + 2) * DAY_SECS)
}

/// Counts a job's `recipients` outside of today; false, and nothing is counted, if the agent has too few places left. Once
/// per job: true without counting again if an earlier run counted.
pub async fn reserve(
    db: &Db,
    request_id: RequestId,
    agent: AgentId,
    recipients: u32,
    now: Timestamp,
) -> Result<bool, StoreError> {
    if recipients == 0 {
        return Ok(true);
    }
    if recipients > MAX_A_DAY {
        return Ok(false);
    }
    let key = Key::new(format!("JOB#{request_id}"), "RESERVED");
    let earlier: Option<Reserved> = db.get_latest(&db.tables.messages, key.clone()).await?;
    if earlier.is_some() {
        return Ok(true);
    }
    let mark = Reserved { recipients, expires: now.plus(RESERVED).secs() };
    let mark = Write::put(&db.tables.messages, key, &mark)?.only_if_new();
    match db.transact(&[count(db, of_agent(agent), recipients, MAX_A_DAY, now)?, mark]).await {
        Ok(()) => Ok(true),
        // Another run counted in the meantime.
        Err(error) if error.refused(1).is_some() => Ok(true),
        Err(WriteError::Refused(_)) => Ok(false),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Whether the agent has places for so many recipients outside today. For a price: [`reserve`] decides.
pub async fn has_room(db: &Db, agent: AgentId, recipients: u32, now: Timestamp) -> Result<bool, StoreError> {
    let key = Key::new(of_agent(agent), day(now).to_string());
    let row: Option<Counted> = db.get(&db.tables.messages, key).await?;
    Ok(row.map_or(0, |row| row.used).saturating_add(recipients) <= MAX_A_DAY)
}

/// Counts one more text of this agent to a number outside. Why it may not be sent: the number or its block has had too many
/// today. The agent's own limit is the first, so that an agent at its limit takes nothing from the others' block.
pub async fn take(db: &Db, agent: AgentId, to: &Number, now: Timestamp) -> Result<Option<&'static str>, StoreError> {
    let of_number = format!("SMSTO#{}", short_hash(&[agent.bytes(), to.as_str().as_bytes()]));
    if !db.write_if(count(db, of_number, 1, MAX_TO_NUMBER, now)?).await? {
        return Ok(Some("you have sent as many texts to this number today as an agent may"));
    }
    let of_block = format!("SMSBLOCK#{}", to.block());
    if !db.write_if(count(db, of_block, 1, MAX_TO_BLOCK, now)?).await? {
        return Ok(Some("as many texts have gone to numbers like this one today as may"));
    }
    Ok(None)
}
