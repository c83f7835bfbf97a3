//! Holds: credits that an open quote keeps for its call, so that the call can still be paid.
//!
//! A hold ends once: captured by the call, or released after the quote's expiry. Both delete its item, and only one can
//! succeed. There is no timer: an expired hold stays reserved until the agent's credits are read next.

use base::clock::Timestamp;
use base::ids::AgentId;
use base::money::Usdc;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::account::{Change, minus, plus};
use super::agent_partition;
use super::credit::{self, EntryKind};

/// Holds read per query.
const AT_ONCE: usize = 50;

/// The stored hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    pub sk: String,
    /// micro-USDC
    pub credits: Usdc,
    /// The quote's expiry. From then on the hold can only be released.
    pub until: Timestamp,
}

/// Id of a hold: the quote's random id.
pub type HoldId = [u8; 12];

fn sort(id: &HoldId) -> String {
    format!("HOLD#{}", const_hex::encode(id))
}

/// The cause of a hold's entries.
fn cause(sort: &str) -> String {
    format!("hold_{}", sort.trim_start_matches("HOLD#"))
}

/// Holds credits for a quote. `Ok(false)` if there are not enough.
pub async fn place(
    db: &Db,
    agent: AgentId,
    id: &HoldId,
    credits: Usdc,
    until: Timestamp,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let sk = sort(id);
    let change = Change { credits: minus(credits)?, reserved: plus(credits)?, ..Change::default() };
    let [entry, account] = credit::change(db, agent, EntryKind::Reserve, change, &cause(&sk), None, now)?;
    let hold = Hold { sk: sk.clone(), credits, until };
    let put = Write::put(&db.tables.ledger, Key::new(agent_partition(agent), sk), &hold)?.only_if_new();
    match db.transact(&[put, account, entry]).await {
        Ok(()) => Ok(true),
        Err(WriteError::Refused(_)) => Ok(false),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// The hold of a quote, if there is one.
pub async fn load(db: &Db, agent: AgentId, id: &HoldId) -> Result<Option<Hold>, StoreError> {
    db.get_latest(&db.tables.ledger, Key::new(agent_partition(agent), sort(id))).await
}

/// The write that captures a hold for its call. Refused if it was released.
pub fn capture(db: &Db, agent: AgentId, id: &HoldId, credits: Usdc) -> Result<Write, StoreError> {
    Write::delete(&db.tables.ledger, Key::new(agent_partition(agent), sort(id)))
        .only_if("#credits = :credits")
        .bind("credits", credits)
}

/// Releases the holds of expired quotes, or with `all` every hold. Returns the released amount.
pub async fn release(db: &Db, agent: AgentId, all: bool, now: Timestamp) -> Result<Usdc, StoreError> {
    let mut released = Usdc::ZERO;
    let mut after = None;
    loop {
        let query = Query::prefixed(&db.tables.ledger, &agent_partition(agent), "HOLD#", AT_ONCE)?.latest();
        let holds: Vec<Hold> = db.query(query.after(after)).await?;
        // Holds are not sorted by time, so every page must be read to find the expired ones.
        after = holds.last().filter(|_| holds.len() == AT_ONCE).map(|last| Key::new(agent_partition(agent), &last.sk));
        for hold in holds {
            if !all && now < hold.until {
                continue;
            }
            let change = Change { credits: plus(hold.credits)?, reserved: minus(hold.credits)?, ..Change::default() };
            let [entry, account] = credit::change(db, agent, EntryKind::Release, change, &cause(&hold.sk), None, now)?;
            let delete = Write::delete(&db.tables.ledger, Key::new(agent_partition(agent), hold.sk.clone()))
                .only_if("attribute_exists(#pk)");
            match db.transact(&[delete, account, entry]).await {
                Ok(()) => released = released.checked_add(hold.credits).unwrap_or(released),
                // Somebody else captured or released it meanwhile.
                Err(WriteError::Refused(_)) => {}
                Err(WriteError::Failed(error)) => return Err(error),
            }
        }
        if after.is_none() {
            return Ok(released);
        }
    }
}
