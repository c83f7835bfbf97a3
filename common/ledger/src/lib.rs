//! The ledger: accounts and the entries that make them up, holds, caps, and a receipt for every charge.
//!
//! | module | what it is |
//! |---|---|
//! | [`account`] | what an agent has, and the rules for spending it |
//! | [`credit`] | entries: why an account changed, kept for ever |
//! | [`hold`] | credits kept for an open quote |
//! | [`debt`], [`card`] | credits that are taken back; a card's payment, its refunds and disputes |
//! | [`charge`] | how one job is paid for: how it begins and how it ends |
//! | [`day`] | what a UTC day cost: the counters behind every cap |
//! | [`budget`], [`freeze`] | the owner's rules |
//! | [`fee`], [`earning`] | a sale's shares; what a seller's ended sales came to |
//! | [`seller`], [`payout`] | what a seller has, and how it is paid out |
//! | [`surge`] | days far above the usual ones |
//! | [`receipt`], [`signing`] | a signed receipt for every charge |
//! | [`value`] | what the agent says its purchases brought |
//!
//! Entries are never changed; a receipt is revised in the open, each revision signed. What is written here is written
//! in the same transaction as the job it belongs to.

pub mod account;
pub mod budget;
pub mod card;
pub mod cards;
pub mod charge;
pub mod credit;
pub mod day;
pub mod debt;
pub mod earning;
pub mod fee;
pub mod freeze;
pub mod hold;
pub mod notifications;
pub mod payments;
pub mod payout;
pub mod receipt;
pub mod seller;
pub mod signing;
pub mod surge;
pub mod value;
pub mod webhooks;

use base::ids::AgentId;

/// Partition of everything the ledger knows of one agent.
fn agent_partition(agent: AgentId) -> String {
    format!("AGENT#{agent}")
}
