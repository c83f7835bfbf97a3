//! Purses: the money of a goal, while its calls spend it.
//!
//! Whoever buys a goal buys one job, with an ordinary charge. The purse says how that money is used: each call that the goal makes takes
//! its price in the transaction that claims it, and gives the unused part back in the one that ends it. So
//! `budget = left + in_flight + spent` at every moment.
//!
//! ```text
//! open ──► closing    nothing new can be taken; what is in flight ends
//!              └─► closed    nothing was in flight, and the goal's charge keeps exactly what was settled
//! ```
//!
//! | row | holds |
//! |---|---|
//! | `AGENT#<id>` / `PURSE#<goal>` | the amounts, the state, and what the goal's charge keeps |
//!
//! The state is nowhere else, because every spend checks it here. It goes on after the goal has ended, so that nothing opens it again.

use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::account::{minus, plus};
use super::agent_partition;

/// What a purse may be used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PurseState {
    /// Calls may take from it.
    Open,
    /// Nothing new is taken. What is in flight ends.
    Closing,
    /// The goal's job has ended.
    #[default]
    Closed,
}

/// A goal's purse. Amounts are in micro-USDC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purse {
    pub state: PurseState,
    /// What the goal's calls may cost together, without the fee.
    #[serde(default)]
    pub budget: Usdc,
    #[serde(default)]
    pub left: Usdc,
    /// Taken by calls that have not ended.
    #[serde(default)]
    pub in_flight: Usdc,
    /// Kept by calls that have ended.
    #[serde(default)]
    pub spent: Usdc,
    /// The part of `left` that was bought by card. It is spent first.
    #[serde(default, skip_serializing_if = "Usdc::is_zero")]
    pub card: Usdc,
    /// Why it was closed: a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What the goal's charge keeps, once nothing is in flight any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Usdc>,
}

impl Purse {
    /// A new purse with this budget, of which `card` was bought by card.
    pub fn new(budget: Usdc, card: Usdc) -> Purse {
        Purse { state: PurseState::Open, budget, left: budget, card: card.min(budget), ..Purse::default() }
    }
}

/// What a call of a goal takes from the goal's purse. Stored with the call's charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromPurse {
    /// The request id of the goal's own job.
    pub goal: RequestId,
    /// micro-USDC
    pub amount: Usdc,
}

fn key(agent: AgentId, goal: RequestId) -> Key {
    Key::new(agent_partition(agent), format!("PURSE#{goal}"))
}

/// The purse of a goal, by a consistent read; `None` before it was opened.
pub async fn load(db: &Db, agent: AgentId, goal: RequestId) -> Result<Option<Purse>, StoreError> {
    db.get_latest(&db.tables.ledger, key(agent, goal)).await
}

/// The write that opens a purse. Refused if the goal has, or had, one.
pub fn open(db: &Db, agent: AgentId, goal: RequestId, purse: &Purse) -> Result<Write, StoreError> {
    Ok(Write::put(&db.tables.ledger, key(agent, goal), purse)?.only_if_new())
}

/// The write with which a call takes its price, of which `card` (micro-USDC) was bought by card. Refused if the purse is not open or
/// has too little.
pub fn take(db: &Db, agent: AgentId, of: FromPurse, card: Usdc) -> Result<Write, StoreError> {
    let (price, minus_price) = (of.amount, minus(of.amount)?);
    let (adds, needs) = match card {
        Usdc::ZERO => ("", ""),
        _ => (", #card :minus_card", " AND #card >= :card"),
    };
    let write =
        Write::update(&db.tables.ledger, key(agent, of.goal), &format!("ADD #left :minus, #in_flight :price{adds}"))
            .only_if(&format!("#state = :open AND #left >= :price{needs}"))
            .bind("open", PurseState::Open)?
            .bind("minus", minus_price)?
            .bind("price", price)?;
    if card == Usdc::ZERO { Ok(write) } else { write.bind("minus_card", minus(card)?)?.bind("card", card) }
}

/// The write with which a call that took `of` ends and keeps `kept` of it. `card`: the part that was bought by card.
pub fn end(db: &Db, agent: AgentId, of: FromPurse, kept: Usdc, card: Usdc) -> Result<Write, StoreError> {
    let kept = kept.min(of.amount);
    let back = of.amount.checked_sub(kept).unwrap_or_default();
    let mut adds = "#in_flight :minus, #spent :kept, #left :back".to_owned();
    let card_back = card.min(back);
    if card_back > Usdc::ZERO {
        adds.push_str(", #card :card");
    }
    let write = Write::update(&db.tables.ledger, key(agent, of.goal), &format!("ADD {adds}"))
        .only_if("#in_flight >= :amount")
        .bind("minus", minus(of.amount)?)?
        .bind("kept", plus(kept)?)?
        .bind("back", plus(back)?)?
        .bind("amount", of.amount)?;
    if card_back > Usdc::ZERO { write.bind("card", plus(card_back)?) } else { Ok(write) }
}

/// The write that lets nothing new be taken. `why` is a word. Refused if the purse is not open.
pub fn close(db: &Db, agent: AgentId, goal: RequestId, why: &str) -> Result<Write, StoreError> {
    Write::update(&db.tables.ledger, key(agent, goal), "SET #state = :closing, #why = :why")
        .only_if("#state = :open")
        .bind("closing", PurseState::Closing)?
        .bind("open", PurseState::Open)?
        .bind("why", why)
}

/// The write that fixes what the goal's charge keeps. Refused while anything is in flight, and before the purse is closed.
pub fn settle(db: &Db, agent: AgentId, goal: RequestId, kept: Usdc) -> Result<Write, StoreError> {
    Write::update(&db.tables.ledger, key(agent, goal), "SET #kept = :kept")
        .only_if("#state = :closing AND #in_flight = :zero")
        .bind("kept", kept)?
        .bind("closing", PurseState::Closing)?
        .bind("zero", Usdc::ZERO)
}

/// The write of the transaction that ends the goal's own charge and keeps `kept` of it. Refused unless there is no purse, or it is settled
/// at exactly this amount: no end of the job, whatever led to it, can pay back what was spent or may still be spent.
pub fn closed(db: &Db, agent: AgentId, goal: RequestId, kept: Usdc) -> Result<Write, StoreError> {
    Write::update(&db.tables.ledger, key(agent, goal), "SET #state = :closed, #left = :zero")
        .only_if("attribute_not_exists(#pk) OR (#state = :closing AND #in_flight = :zero AND #kept = :kept)")
        .bind("closed", PurseState::Closed)?
        .bind("closing", PurseState::Closing)?
        .bind("zero", Usdc::ZERO)?
        .bind("kept", kept)
}

/// The check of the transaction that undoes the goal's own charge, because its payment never arrived. Refused if anything was spent or may
/// still be spent. It writes no purse: the same purchase can be made again, and then begins.
pub fn unused(db: &Db, agent: AgentId, goal: RequestId) -> Result<Write, StoreError> {
    Write::check(&db.tables.ledger, key(agent, goal))
        .only_if("attribute_not_exists(#pk) OR (#state <> :open AND #in_flight = :zero AND #spent = :zero)")
        .bind("open", PurseState::Open)?
        .bind("zero", Usdc::ZERO)
}
