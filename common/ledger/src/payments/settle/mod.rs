//! Puts an authorization on chain. One trait, two adapters: an x402 [`facilitator`] over HTTP, and our own [`relayer`].
//!
//! The caller is the jobs engine. *prepare* returns what will be broadcast, and the engine stores it. *submit* broadcasts,
//! and the engine stores the outcome. For an intent without an outcome, *reconcile* is called; it broadcasts only what is
//! stored. If the stored bid has become too low, it returns the intent to store and submit instead (`payments::bid`).

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

/// A signed payment and the job it pays for.
#[derive(Clone, Copy, Debug)]
pub struct JobPayment<'a> {
    pub authorization: &'a Authorization,
    pub job: RequestId,
}

/// A transaction of our relayer, stored before it is broadcast. It holds what is needed to sign the same bytes again
/// (signing is deterministic); storing the bytes would double the price of every write. A facilitator has no
/// intent: its transaction is found on chain by payer and nonce.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The fee wallet.
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
    /// Earlier transactions with the same account nonce and lower bids.
    #[serde(default, skip_serializing_if = "Replaced::is_empty")]
    pub replaced: Replaced,
}

impl Intent {
    pub fn bid(&self) -> Bid {
        Bid { max_fee: self.max_fee, priority_fee: self.priority_fee }
    }

    /// Hashes of all transactions signed for this intent, the latest first.
    pub fn hashes(&self) -> Vec<String> {
        self.replaced.with(&self.hash)
    }
}

/// The intent and the write to store together before anything is broadcast.
pub struct Prepared {
    pub intent: Option<Intent>,
    /// Takes the fee wallet's account nonce. If this write is refused, another process took the nonce: prepare again, with
    /// this intent.
    pub allocation: Option<Write>,
}

/// The state of a payment after submitting or reconciling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The money arrived in this transaction.
    Yes { transaction: String },
    /// It may still arrive. The hash, if one is known.
    Pending { transaction: Option<String> },
    /// It did not and will not arrive.
    No(Reason),
    /// The money arrived in this transaction, but for another purchase. It buys nothing more.
    ForAnother { transaction: String },
    /// Nothing was broadcast. The cause may be temporary.
    NotSent(String),
    /// The prepared transaction can never be mined and nothing else was broadcast: start again.
    Dropped,
}

/// The result of [`Settler::reconcile`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Known(Settled),
    /// The fee has become too low. Store this intent in its place and submit it.
    Outgrown(Intent),
}

/// Whether a payment would succeed now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Good,
    Refused(Reason),
    /// Exactly this payment is already on chain.
    AlreadyPaid {
        transaction: String,
    },
    /// It was put on chain for another purchase.
    PaidForAnother {
        transaction: String,
    },
    /// No answer from chain or facilitator.
    Unknown(String),
}

/// A way to settle.
pub trait Settler: Send + Sync {
    /// Whether the payment would succeed now; called before it is claimed. A transfer mined before `quoted_at` (when the
    /// quote was given) does not pay for the quote.
    fn check<'a>(&'a self, payment: JobPayment<'a>, quoted_at: Option<Timestamp>) -> BoxFuture<'a, Verdict>;

    /// Returns what [`Settler::submit`] will broadcast. Broadcasts nothing. `lost` is an intent whose account nonce another
    /// process took: it gets the next one without another question to the chain.
    fn prepare<'a>(&'a self, payment: JobPayment<'a>, lost: Option<Intent>)
    -> BoxFuture<'a, Result<Prepared, Settled>>;

    /// Broadcasts, and waits some seconds for the outcome.
    fn submit<'a>(&'a self, payment: JobPayment<'a>, intent: Option<&'a Intent>) -> BoxFuture<'a, Settled>;

    /// Finds out the outcome of a payment submitted earlier. May send the same payment again.
    fn reconcile<'a>(
        &'a self,
        payment: JobPayment<'a>,
        intent: Option<&'a Intent>,
    ) -> BoxFuture<'a, Result<Found, StoreError>>;
}

/// Ranges of blocks searched if only a recent use of a payment matters: before its claim, and for logs that a node
/// published late. An older use of an unclaimed payment is not honoured (`payments::claim`).
const JUST_NOW: u64 = 1;
/// Ranges searched for a claimed payment, which may have waited: more than two days on an L2.
const LOOK_BACK_RANGES: u64 = 20;

/// Pauses between retries for what a node does not show yet: logs, or a transfer that is pending.
const LOGS_LATE_BY: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_millis(700), Duration::from_millis(1500)];

/// How far a block's clock may be behind ours when a transfer is compared with its quote's time.
const BLOCK_LAG: Duration = Duration::from_secs(10);

/// How the nonce of a payment was used.
enum Use {
    Unused,
    /// The money came in this transaction and pays for the job.
    ForThisJob {
        transaction: String,
    },
    /// The money came in this transaction, for another purchase.
    ForAnother {
        transaction: String,
    },
    /// The nonce was used by another transfer, or the authorization was cancelled.
    Otherwise,
    /// It is used, but the transaction that used it cannot be found.
    Untraceable,
}

/// Reads the chain on behalf of one deployment.
#[derive(Clone, Debug)]
pub struct Evidence {
    chain: Chain,
    tags: Tags,
}

impl Evidence {
    pub fn new(chain: Chain, tags: Tags) -> Evidence {
        Evidence { chain, tags }
    }

    /// How the nonce of a payment was used, searching back over `ranges` ranges of blocks.
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
            // A transfer cannot pay for a quote that was not given yet.
            (BroadcastFor::Unsaid, Some(quoted_at)) => {
                self.chain.block_time(mined.block).await?.plus(BLOCK_LAG) >= quoted_at
            }
            (BroadcastFor::Unsaid, None) => true,
        };
        Ok(if is_for_this { Use::ForThisJob { transaction } } else { Use::ForAnother { transaction } })
    }

    /// Like `used`, for a payment that may have been used just now. A node may have the state of a new block before its
    /// logs, so this waits a little for the logs.
    async fn used_perhaps_just_now(
        &self,
        payment: JobPayment<'_>,
        quoted_at: Option<Timestamp>,
        ranges: u64,
    ) -> Result<Use, ChainError> {
        let mut found = self.used(payment, quoted_at, ranges).await?;
        for pause in LOGS_LATE_BY {
            if !matches!(found, Use::Untraceable) {
                break;
            }
            tokio::time::sleep(pause).await;
            found = self.used(payment, quoted_at, JUST_NOW).await?;
        }
        Ok(found)
    }

    /// Why an unused payment does not succeed: the payer's balance, or else `otherwise`.
    async fn lacking(&self, authorization: &Authorization, otherwise: Reason) -> Result<Reason, ChainError> {
        let balance = self.chain.balance_of(authorization.from).await?;
        // Big-endian words compare as numbers.
        Ok(if balance < authorization.value { Reason::InsufficientFunds } else { otherwise })
    }

    /// The state of a payment that a facilitator or another third party broadcasts, read from the chain alone.
    async fn reconcile(&self, payment: JobPayment<'_>, clock: &Clock) -> Result<Settled, ChainError> {
        Ok(match self.used(payment, None, LOOK_BACK_RANGES).await? {
            Use::ForThisJob { transaction } => Settled::Yes { transaction },
            Use::ForAnother { transaction } => Settled::ForAnother { transaction },
            Use::Otherwise => Settled::No(Reason::NonceUsed),
            Use::Untraceable => Settled::Pending { transaction: None },
            Use::Unused => {
                // A block's time may be a little behind ours.
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
