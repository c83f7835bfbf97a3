//! Getting an authorization on chain. Two adapters behind one trait: an x402 [`facilitator`] over HTTP, and our own
//! [`relayer`].
//!
//! The protocol with the caller (the jobs engine) is: *prepare* says what will be broadcast, the engine writes that
//! down, *submit* broadcasts, the engine writes down what came of it. Whoever finds an intent without an outcome calls
//! *reconcile*, which broadcasts nothing but what is written down. Where that was bid too low, it says what to write
//! down and submit in its place (`payments::bid`).

pub mod facilitator;
pub mod relayer;
pub mod tag;

use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::ids::RequestId;
use evm::authorization::Authorization;
use evm::transaction::Replaced;
use evm::{Address, Word, compact};
use platform::providers::chain::{Chain, ChainError, NonceUse};
use platform::store::{BoxFuture, StoreError, Write};
use serde::{Deserialize, Serialize};

use self::tag::BroadcastFor;
use super::bid::Bid;
use super::reason::Reason;
pub use facilitator::Facilitator;
pub use relayer::Relayer;
pub use tag::Tags;

/// A signed payment, and the job that it pays for.
#[derive(Clone, Copy, Debug)]
pub struct JobPayment<'a> {
    pub authorization: &'a Authorization,
    pub job: RequestId,
}

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
    /// It arrived, in this transaction, for another purchase, and buys nothing more.
    ForAnother { transaction: String },
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
    /// It was put on chain for another purchase.
    PaidForAnother {
        transaction: String,
    },
    /// Nobody could be asked.
    Unknown(String),
}

/// A way to settle.
pub trait Settler: Send + Sync {
    /// Whether the payment would go through now, before it is claimed. A transfer that was mined before `quoted_at`, when
    /// the quote was given, does not pay it.
    fn check<'a>(&'a self, payment: JobPayment<'a>, quoted_at: Option<Timestamp>) -> BoxFuture<'a, Verdict>;

    /// Says what would be broadcast. Broadcasts nothing.
    fn prepare<'a>(&'a self, payment: JobPayment<'a>) -> BoxFuture<'a, Result<Prepared, Settled>>;

    /// Broadcasts, and waits a while for the outcome.
    fn submit<'a>(&'a self, payment: JobPayment<'a>, intent: Option<&'a Intent>) -> BoxFuture<'a, Settled>;

    /// Finds out what became of something submitted earlier.
    fn reconcile<'a>(
        &'a self,
        payment: JobPayment<'a>,
        intent: Option<&'a Intent>,
    ) -> BoxFuture<'a, Result<Found, StoreError>>;
}

/// Before a payment is claimed, its use is looked for over so many ranges of blocks: what was used longer ago is not
/// honoured any more (`payments::claim`).
const JUST_NOW: u64 = 1;
/// What was claimed may have waited, and is looked for over so many: more than two days on an L2.
const LOOK_BACK_RANGES: u64 = 20;

/// After these pauses, logs that a node did not have yet are asked for again.
const LOGS_LATE_BY: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_millis(700), Duration::from_millis(1500)];

/// How far a block's clock may be behind ours, where a transfer is compared with the quote that it pays.
const BLOCK_LAG: Duration = Duration::from_secs(10);

/// What became of the nonce of a payment.
enum Use {
    Unused,
    /// The money came in this transaction, and pays for the job.
    ForThisJob {
        transaction: String,
    },
    /// The money came in this transaction, for another purchase.
    ForAnother {
        transaction: String,
    },
    /// It was used for another transfer, or cancelled.
    Otherwise,
    /// It was used, by what cannot be found.
    Untraceable,
}

/// The chain, as one deployment reads it.
#[derive(Clone, Debug)]
pub struct Evidence {
    chain: Chain,
    tags: Tags,
}

impl Evidence {
    pub fn new(chain: Chain, tags: Tags) -> Evidence {
        Evidence { chain, tags }
    }

    /// What became of the nonce of a payment, looking back over so many ranges of blocks.
    async fn used(
        &self,
        payment: JobPayment<'_>,
        quoted_at: Option<Timestamp>,
        ranges: u64,
    ) -> Result<Use, ChainError> {
        let transaction = match self.chain.nonce_use(payment.authorization, ranges).await? {
            NonceUse::ByThisTransfer(transaction) => transaction,
            NonceUse::Unused => return Ok(Use::Unused),
            NonceUse::Otherwise => return Ok(Use::Otherwise),
            NonceUse::Untraceable => return Ok(Use::Untraceable),
        };
        let mined = self.chain.mined(&transaction).await?;
        let is_for_this = match (self.tags.read(&mined.input, payment.authorization, payment.job), quoted_at) {
            (BroadcastFor::ThisJob, _) => true,
            (BroadcastFor::AnotherPurchase, _) => false,
            // Nobody pays a quote that was not given yet.
            (BroadcastFor::Unsaid, Some(quoted_at)) => {
                self.chain.block_time(mined.block).await?.plus(BLOCK_LAG) >= quoted_at
            }
            (BroadcastFor::Unsaid, None) => true,
        };
        Ok(if is_for_this { Use::ForThisJob { transaction } } else { Use::ForAnother { transaction } })
    }

    /// The same of a payment that was good a moment ago: a node may have the state of a new block before its logs, which are
    /// waited for a little.
    async fn used_perhaps_just_now(&self, payment: JobPayment<'_>) -> Result<Use, ChainError> {
        let mut found = self.used(payment, None, LOOK_BACK_RANGES).await?;
        for pause in LOGS_LATE_BY {
            if !matches!(found, Use::Untraceable) {
                break;
            }
            tokio::time::sleep(pause).await;
            found = self.used(payment, None, JUST_NOW).await?;
        }
        Ok(found)
    }

    /// Why a payment that was not used does not go through.
    async fn lacking(&self, authorization: &Authorization, otherwise: Reason) -> Result<Reason, ChainError> {
        let balance = self.chain.balance_of(authorization.from).await?;
        // Big-endian words compare as numbers.
        Ok(if balance < authorization.value { Reason::InsufficientFunds } else { otherwise })
    }

    /// What the chain alone says of a payment that somebody else was to broadcast.
    async fn reconcile(&self, payment: JobPayment<'_>, clock: &Clock) -> Result<Settled, ChainError> {
        Ok(match self.used(payment, None, LOOK_BACK_RANGES).await? {
            Use::ForThisJob { transaction } => Settled::Yes { transaction },
            Use::ForAnother { transaction } => Settled::ForAnother { transaction },
            Use::Otherwise => Settled::No(Reason::NonceUsed),
            Use::Untraceable => Settled::Pending { transaction: None },
            Use::Unused => {
                // A block's time may lag behind ours a little.
                const BLOCK_LAG_SECS: u64 = 120;
                let now = u64::try_from(clock.now().secs()).unwrap_or_default();
                if payment.authorization.valid_before_secs().saturating_add(BLOCK_LAG_SECS) < now {
                    Settled::No(Reason::Expired)
                } else {
                    Settled::Pending { transaction: None }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_compare_as_numbers() {
        assert!(evm::word_from_u64(255) < evm::word_from_u64(256));
        assert!(evm::word_from_u64(u64::MAX) < [1; 32]);
    }
}
