//! Getting an authorization on chain. Two adapters behind one trait: an x402 [`facilitator`] over HTTP, and our own
//! [`relayer`].
//!
//! The protocol with the caller (the jobs engine) is: *prepare* says what will be broadcast, the engine writes that
//! down, *submit* broadcasts, the engine writes down what came of it. Whoever finds an intent without an outcome calls
//! *reconcile*, which broadcasts nothing but what is written down. Where that was bid too low, it says what to write
//! down and submit in its place (`payments::bid`).

pub mod facilitator;
pub mod relayer;

use serde::{Deserialize, Serialize};

pub use facilitator::Facilitator;
pub use relayer::Relayer;

use super::bid::Bid;
use super::reason::Reason;
use crate::evm::authorization::Authorization;
use crate::evm::transaction::Replaced;
use crate::evm::{Address, Word, compact};
use crate::providers::chain::{Chain, ChainError, NonceUse};
use crate::store::{BoxFuture, StoreError, Write};

/// A transaction of our relayer, written down before it is broadcast: what is needed to sign the same bytes again, since
/// signing is deterministic. (The bytes themselves would double the price of every write while they are kept.) With a
/// facilitator there is no intent: what it does is found on chain by payer and nonce.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Fee wallet.
    #[serde(with = "compact::address")]
    pub relayer: Address,
    /// Its account nonce.
    pub account_nonce: u64,
    pub gas_limit: u64,
    /// wei per gas
    pub max_fee: u64,
    /// wei per gas
    pub priority_fee: u64,
    /// Hash of the signed transaction.
    #[serde(with = "serde_bytes")]
    pub hash: Word,
    /// What was bid for the same account nonce before.
    #[serde(default, skip_serializing_if = "Replaced::is_empty")]
    pub replaced: Replaced,
}

impl Intent {
    pub fn bid(&self) -> Bid {
        Bid { max_fee: self.max_fee, priority_fee: self.priority_fee }
    }

    /// Every transaction that was signed for it, the latest first.
    pub fn hashes(&self) -> Vec<String> {
        self.replaced.with(&self.hash)
    }
}

/// What must be written down together before anything is broadcast.
pub struct Prepared {
    pub intent: Option<Intent>,
    /// The allocation of the fee wallet's account nonce. If it is refused, another process took that nonce: prepare
    /// again.
    pub allocation: Option<Write>,
}

/// What is known of a payment after trying, or after asking again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The money arrived, in this transaction.
    Yes { transaction: String },
    /// It may still arrive; the hash, if there is one.
    Pending { transaction: Option<String> },
    /// It did not and will not arrive.
    No(Reason),
    /// Nothing was broadcast, and the cause may pass.
    NotSent(String),
    /// What was prepared can no longer land, and nothing else was broadcast: begin again.
    Dropped,
}

/// What is found of something submitted earlier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Known(Settled),
    /// The chain has outgrown its fee: this is to be written down in its place, and submitted.
    Outgrown(Intent),
}

/// Whether a payment would go through now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Good,
    Refused(Reason),
    /// Somebody has put exactly this payment on chain already.
    AlreadyPaid {
        transaction: String,
    },
    /// Nobody could be asked.
    Unknown(String),
}

/// A way to settle.
pub trait Settler: Send + Sync {
    /// Whether the payment would go through now, before it is claimed.
    fn check<'a>(&'a self, authorization: &'a Authorization) -> BoxFuture<'a, Verdict>;

    /// Says what would be broadcast. Broadcasts nothing.
    fn prepare<'a>(&'a self, authorization: &'a Authorization) -> BoxFuture<'a, Result<Prepared, Settled>>;

    /// Broadcasts, and waits a while for the outcome.
    fn submit<'a>(&'a self, authorization: &'a Authorization, intent: Option<&'a Intent>) -> BoxFuture<'a, Settled>;

    /// Finds out what became of something submitted earlier.
    fn reconcile<'a>(
        &'a self,
        authorization: &'a Authorization,
        intent: Option<&'a Intent>,
    ) -> BoxFuture<'a, Result<Found, StoreError>>;
}

/// Before a payment is claimed, its use is looked for over so many ranges of blocks: what was used longer ago is not
/// honoured any more (`payments::claim`).
const JUST_NOW: u64 = 1;
/// What was claimed may have waited, and is looked for over so many: more than two days on an L2.
const LOOK_BACK_RANGES: u64 = 20;

/// What the chain says of a payment that somebody refused.
enum Explained {
    /// The money came another way, in this transaction.
    Paid { transaction: String },
    /// Its nonce was used for something else, or cancelled.
    Spent,
    /// Its nonce was used, by what cannot be found.
    Untraceable,
    /// It was not used; and the payer's balance does not cover it.
    Uncovered,
    /// It was not used.
    Unused,
}

async fn explain(chain: &Chain, authorization: &Authorization, ranges: u64) -> Result<Explained, ChainError> {
    Ok(match chain.nonce_use(authorization, ranges).await? {
        NonceUse::ByThisTransfer(transaction) => Explained::Paid { transaction },
        NonceUse::Otherwise => Explained::Spent,
        NonceUse::Untraceable => Explained::Untraceable,
        // Big-endian words compare as numbers.
        NonceUse::Unused if chain.balance_of(authorization.from).await? < authorization.value => Explained::Uncovered,
        NonceUse::Unused => Explained::Unused,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_compare_as_numbers() {
        assert!(crate::evm::word_from_u64(255) < crate::evm::word_from_u64(256));
        assert!(crate::evm::word_from_u64(u64::MAX) < [1; 32]);
    }
}
