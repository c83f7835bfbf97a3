//! The ledger: accounts, the entries they are the sum of, holds, caps, payments, payouts and receipts.
//!
//! | module | content |
//! |---|---|
//! | [`account`] | an agent's balance and the owner's rules for spending it |
//! | [`credit`] | entries: why an account changed, kept for ever |
//! | [`hold`] | credits held for an open quote |
//! | [`debt`], [`card`] | credits taken back; a card payment with its refunds and disputes |
//! | [`cards`] | the card processor's protocol |
//! | [`charge`] | how one job is paid for, from beginning to end |
//! | [`cost`] | what is charged, kept, spent and counted of a price |
//! | [`day`] | what a UTC day cost: the counters behind the caps of days |
//! | [`purse`] | the money of a goal, while its calls spend it |
//! | [`token_spend`] | what an access token has spent: the counter behind its cap for life |
//! | [`budget`], [`freeze`] | the owner's rules |
//! | [`budget_warning`] | tells the owner that a day's spending has come to its alert level |
//! | [`fee`], [`earning`] | the shares of a sale; the record of each ended sale |
//! | [`seller`], [`payout`] | a seller's balance and its payouts |
//! | [`maturing`] | earnings paid by card, which wait before they can be paid out |
//! | [`payments`] | x402 payments: reading, verifying, settling |
//! | [`surge`] | days far above the usual spending |
//! | [`returned`] | money that comes back after a call has ended |
//! | [`receipt`], [`signing`] | a signed receipt for every charge |
//! | [`value`] | what the agent reports that its purchases brought |
//! | [`notifications`], [`webhooks`] | what agents are told |
//!
//! Entries never change. A receipt is revised, and every terminal revision is signed. A job's ledger writes are in the same
//! transaction as the job's own. Start with [`charge`].

pub mod account;
pub mod budget;
pub mod budget_warning;
pub mod card;
pub mod cards;
pub mod charge;
pub mod cost;
pub mod credit;
pub mod day;
pub mod debt;
pub mod earning;
pub mod fee;
pub mod freeze;
pub mod hold;
pub mod maturing;
pub mod notifications;
pub mod payments;
pub mod payout;
pub mod purse;
pub mod receipt;
pub mod returned;
pub mod seller;
pub mod signing;
pub mod surge;
pub mod token_spend;
pub mod value;
pub mod webhooks;

use base::ids::AgentId;

/// Partition of everything the ledger stores about one agent.
fn agent_partition(agent: AgentId) -> String {
    format!("AGENT#{agent}")
}
