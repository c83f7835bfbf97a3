//! What goes to numbers outside this deployment in a UTC day: segments, of an agent and of all agents together, because
//! providers are paid by them; and texts, to a block of numbers, from an agent to a block, and from an agent to one number.
//!
//! A job's segments are counted when its work begins ([`reserve`]), for each number outside. When it ends, those of texts that
//! the provider was not asked to take are given back ([`give_back`]): a text that is never sent must not take the place of
//! another. Both are one transaction with the job's own row, so they count once, whatever runs again. The counter of all agents
//! is one item; transactions that meet there are repeated, and a day has few of them.
//!
//! The counters are exact when several sends race for the last place. They are limits against abuse (traffic pumping, in
//! which somebody earns from each text to a block of numbers), so a deployment's `RATE_LIMIT_SCALE` does not raise them. A block
//! has ten thousand numbers of many people: no agent may use up what is left of it for the others, and the last texts of a day
//! are for agents with money behind them.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use crate::inbox::short_hash;
use crate::number::Number;

/// Most segments of an agent to numbers outside.
pub const MAX_A_DAY: u32 = 1_000;
/// Most texts of all agents to a block of numbers ([`Number::block`]).
pub const MAX_TO_BLOCK: u32 = 200;
/// Agents without money behind them get no more once this many have gone to a block.
pub const MAX_TO_BLOCK_OF_STRANGERS: u32 = 120;
/// Most texts of an agent to a block.
pub const MAX_TO_BLOCK_OF_AGENT: u32 = 40;
/// Most texts of an agent to one number.
pub const MAX_TO_NUMBER: u32 = 20;
/// Most texts that an agent receives, from inside and outside.
pub const MAX_IN_A_DAY: u32 = 1_000;

const DAY_SECS: i64 = 24 * 3600;
/// How long it is known that a job has its places: longer than jobs run.
const RESERVED: Duration = Duration::from_secs(30 * 24 * 3600);

/// The segments of a job: `JOB#<request>` / `RESERVED`.
#[derive(Serialize, Deserialize)]
struct Reserved {
    /// Those that still count. 0: all were given back.
    #[serde(default)]
    segments: u32,
    /// The day in which they were counted.
    #[serde(default)]
    day: i64,
    expires: i64,
}

/// Whose segments of today are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    Agent,
    Deployment,
}

impl Full {
    /// Says that so many segments are too many. `most_of_all`: the deployment's limit.
    pub fn message(self, segments: u32, most_of_all: u32) -> String {
        let (whose, most) = match self {
            Full::Agent => ("an agent", MAX_A_DAY),
            Full::Deployment => ("this deployment", most_of_all),
        };
        format!(
            "these are {segments} segments to numbers outside this deployment, more than are left today: {whose} sends at \
             most {most} in a UTC day"
        )
    }
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

fn of_all() -> String {
    "SMSDAY#ALL".to_owned()
}

fn reserved_key(request_id: RequestId) -> Key {
    Key::new(format!("JOB#{request_id}"), "RESERVED")
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

/// Takes `by` off a counter of this day. Nothing if the counter has less: then it has expired.
fn uncount(db: &Db, partition: String, by: u32, day: i64) -> Result<Write, StoreError> {
    Write::update(&db.tables.messages, Key::new(partition, day.to_string()), "ADD #used :less")
        .only_if("#used >= :by")
        .bind("by", by)?
        .bind("less", -i64::from(by))
}

/// Counts a job's segments to numbers outside, of all recipients together, in today's counters of the agent and of all agents
/// (at most `most_of_all`). If a limit leaves too few: which one, and nothing is counted. Once per job: `None` without
/// counting again if an earlier run counted.
pub async fn reserve(
    db: &Db,
    request_id: RequestId,
    agent: AgentId,
    segments: u32,
    most_of_all: u32,
    now: Timestamp,
) -> Result<Option<Full>, StoreError> {
    if segments == 0 {
        return Ok(None);
    }
    if segments > MAX_A_DAY {
        return Ok(Some(Full::Agent));
    }
    let key = reserved_key(request_id);
    let earlier: Option<Reserved> = db.get_latest(&db.tables.messages, key.clone()).await?;
    if earlier.is_some_and(|earlier| earlier.segments > 0) {
        return Ok(None);
    }
    if segments > most_of_all {
        return Ok(Some(Full::Deployment));
    }
    let mark = Reserved { segments, day: day(now), expires: now.plus(RESERVED).secs() };
    let mark = Write::put(&db.tables.messages, key, &mark)?
        .only_if("attribute_not_exists(#pk) OR #segments = :none")
        .bind("none", 0)?;
    let all = count(db, of_all(), segments, most_of_all, now)?;
    match db.transact(&[mark, all, count(db, of_agent(agent), segments, MAX_A_DAY, now)?]).await {
        Ok(()) => Ok(None),
        // Another run counted in the meantime.
        Err(error) if error.refused(0).is_some() => Ok(None),
        Err(error) if error.refused(1).is_some() => Ok(Some(Full::Deployment)),
        Err(WriteError::Refused(_)) => Ok(Some(Full::Agent)),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Gives back what [`reserve`] counted for a job beyond the segments that it `used`. Repeating it changes nothing.
pub async fn give_back(db: &Db, request_id: RequestId, agent: AgentId, used: u32) -> Result<(), StoreError> {
    let key = reserved_key(request_id);
    let reserved: Option<Reserved> = db.get_latest(&db.tables.messages, key.clone()).await?;
    let Some(Reserved { segments, day, .. }) = reserved.filter(|reserved| reserved.segments > used) else {
        return Ok(());
    };
    let unused = segments - used;
    let mark = Write::update(&db.tables.messages, key, "SET #segments = :used")
        .only_if("#segments = :segments")
        .bind("used", used)?
        .bind("segments", segments)?;
    let writes = [mark, uncount(db, of_all(), unused, day)?, uncount(db, of_agent(agent), unused, day)?];
    match db.transact(&writes).await {
        // Refused: another run gave them back, or the day is long over.
        Ok(()) | Err(WriteError::Refused(_)) => Ok(()),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Which limit leaves too few segments today; of the agent, if it is known, and of all agents. For a price: [`reserve`]
/// decides.
pub async fn full(
    db: &Db,
    agent: Option<AgentId>,
    segments: u32,
    most_of_all: u32,
    now: Timestamp,
) -> Result<Option<Full>, StoreError> {
    if segments == 0 {
        return Ok(None);
    }
    let limits = [(agent.map(of_agent), MAX_A_DAY, Full::Agent), (Some(of_all()), most_of_all, Full::Deployment)];
    for (partition, most, full) in limits {
        let Some(partition) = partition else { continue };
        let row: Option<Counted> = db.get(&db.tables.messages, Key::new(partition, day(now).to_string())).await?;
        if row.map_or(0, |row| row.used).saturating_add(segments) > most {
            return Ok(Some(full));
        }
    }
    Ok(None)
}

/// Counts one more text of this agent to a number outside. Why it may not be sent: the number or its block has had too many
/// today. The agent's own limits are the first, so that an agent at its limit takes nothing from the others' block. `is_proven`:
/// there is money behind the agent.
pub async fn take(
    db: &Db,
    agent: AgentId,
    is_proven: bool,
    to: &Number,
    now: Timestamp,
) -> Result<Option<&'static str>, StoreError> {
    let of_number = format!("SMSTO#{}", short_hash(&[agent.bytes(), to.as_str().as_bytes()]));
    if !db.write_if(count(db, of_number, 1, MAX_TO_NUMBER, now)?).await? {
        return Ok(Some("you have sent as many texts to this number today as an agent may"));
    }
    let of_block = format!("SMSBLOCK#{}", to.block());
    let own = format!("{of_block}#{agent}");
    if !db.write_if(count(db, own, 1, MAX_TO_BLOCK_OF_AGENT, now)?).await? {
        return Ok(Some("you have sent as many texts to numbers like this one today as an agent may"));
    }
    let most = if is_proven { MAX_TO_BLOCK } else { MAX_TO_BLOCK_OF_STRANGERS };
    if !db.write_if(count(db, of_block, 1, most, now)?).await? {
        return Ok(Some("as many texts have gone to numbers like this one today as may"));
    }
    Ok(None)
}
