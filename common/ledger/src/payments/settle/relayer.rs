//! Our own relayer: a fee wallet that sends `transferWithAuthorization`.
//!
//! The database hands out the wallet's account nonces, in the transaction that stores the intent (`payments::nonces`).

use std::sync::Mutex;
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use evm::authorization::Authorization;
use evm::hex0x;
use evm::signature::PrivateKey;
use evm::transaction::{Replaced, SignedTransaction, Transaction};
use platform::http::{limit, log};
use platform::providers::chain::{self, Chain, ChainError, TransactionReceipt};
use platform::store::{BoxFuture, Db, StoreError};

use super::{
    Evidence, Found, Intent, JUST_NOW, JobPayment, LOGS_LATE_BY, LOOK_BACK_RANGES, Prepared, Settled, Settler, Tags,
    Use, Verdict,
};
use crate::payments::bid::{Bid, FeeCap, Next};
use crate::payments::nonces::{self, NextNonce};
use crate::payments::reason::Reason;
use crate::payments::verify;

/// A transfer costs about 90,000 gas. Contract wallets may use more, up to this limit.
pub const MAX_GAS: u64 = 500_000;
/// After the check, gas may rise to this many times a payment's share before the payment is refused: it was good then, and
/// its work may be done. A contract wallet may ask for more gas than it did when it was checked.
const SHARES_WHEN_SENT: u128 = 2;
/// How long to wait for a receipt before reconciliation takes over.
const WAIT: Duration = Duration::from_secs(12);

pub struct Relayer {
    chain: Chain,
    tags: Tags,
    evidence: Evidence,
    db: Db,
    clock: Clock,
    key: PrivateKey,
    cap: FeeCap,
    /// The next account nonce as this process last saw it. Only a hint: the database decides.
    next_nonce: Mutex<Option<NextNonce>>,
}

impl Relayer {
    pub fn new(chain: Chain, tags: Tags, db: Db, clock: Clock, key: PrivateKey, cap: FeeCap) -> Relayer {
        let evidence = Evidence::new(chain.clone(), tags.clone());
        Relayer { chain, tags, evidence, db, clock, key, cap, next_nonce: Mutex::new(None) }
    }

    /// The next account nonce: the hint, the database's, or `on_chain` if the wallet was used elsewhere.
    async fn next_nonce(&self, on_chain: u64) -> Result<NextNonce, StoreError> {
        // The hint is taken out here, and put back only when the allocation is stored. After a refused allocation there is
        // no hint.
        if let Some(known) = self.hint().take() {
            return Ok(known);
        }
        nonces::next(&self.db, &self.chain, self.key.address(), on_chain).await
    }

    fn hint(&self) -> std::sync::MutexGuard<'_, Option<NextNonce>> {
        self.next_nonce.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    async fn prepare(&self, payment: JobPayment<'_>, lost: Option<Intent>) -> Result<Prepared, Settled> {
        let (mut intent, on_chain) = match lost {
            // The winner stored a nonce that is not below the chain's.
            Some(intent) => (intent, 0),
            None => {
                let intent = self.intent(payment).await?;
                let on_chain = intent.account_nonce;
                (intent, on_chain)
            }
        };
        let failed = |error: StoreError| Settled::NotSent(error.to_string());
        // Between this read and the write of the allocation, nothing else is asked.
        let next = self.next_nonce(on_chain).await.map_err(failed)?;
        intent.account_nonce = next.nonce;
        intent.hash = self.sign(payment, &intent).hash;
        let allocation = nonces::take(&self.db, &self.chain, self.key.address(), next).map_err(failed)?;
        Ok(Prepared { intent: Some(intent), allocation: Some(allocation) })
    }

    /// The intent at current fees, with the chain's account nonce and without its hash.
    async fn intent(&self, payment: JobPayment<'_>) -> Result<Intent, Settled> {
        let call = self.tags.call(payment.authorization, payment.job);
        let fees = match self.chain.fees_for(&call, self.key.address()).await {
            Ok(fees) if fees.gas > MAX_GAS => return Err(Settled::No(Reason::Reverted)),
            Ok(fees)
                if fees.market.cost_of(fees.gas)
                    > self.cap.share_of(&payment.authorization.value) * SHARES_WHEN_SENT =>
            {
                return Err(Settled::No(Reason::GasTooHigh));
            }
            Ok(fees) => fees,
            Err(ChainError::Reverted(_)) => return Err(self.refused(payment).await),
            Err(unknown) => return Err(not_sent(unknown)),
        };
        let gas_limit = (fees.gas + fees.gas / 5).min(MAX_GAS);
        let Some(bid) = Bid::first(fees.market, self.cap.per_gas(gas_limit)) else {
            self.cap.is_too_low(&"a payment is not sent");
            return Err(Settled::NotSent(format!("gas fees are above TRANSACTION_FEE_CAP_GWEI: {:?}", fees.market)));
        };
        Ok(Intent {
            relayer: self.key.address(),
            account_nonce: fees.sent,
            gas_limit,
            max_fee: bid.max_fee,
            priority_fee: bid.priority_fee,
            hash: [0; 32],
            replaced: Replaced::default(),
        })
    }

    /// The same intent with a higher bid.
    fn raised(&self, payment: JobPayment<'_>, intent: &Intent, bid: Bid) -> Intent {
        let mut raised = Intent { max_fee: bid.max_fee, priority_fee: bid.priority_fee, ..intent.clone() };
        raised.replaced.push(intent.hash);
        raised.hash = self.sign(payment, &raised).hash;
        raised
    }

    /// The transaction of an intent. Signing again gives the same bytes.
    fn sign(&self, payment: JobPayment<'_>, intent: &Intent) -> SignedTransaction {
        let transaction = Transaction {
            chain_id: self.chain.chain_id,
            nonce: intent.account_nonce,
            max_priority_fee_per_gas: u128::from(intent.priority_fee),
            max_fee_per_gas: u128::from(intent.max_fee),
            gas_limit: intent.gas_limit,
            to: self.chain.token(),
            data: self.tags.call(payment.authorization, payment.job),
        };
        transaction.sign(&self.key)
    }

    /// The result for a transfer that would revert: the reason, or success if the money came another way.
    async fn refused(&self, payment: JobPayment<'_>) -> Settled {
        let why = async {
            Ok(match self.used_now_or_soon(payment).await? {
                Use::ForThisJob { transaction } => Settled::Yes { transaction },
                Use::ForAnother { transaction } => Settled::ForAnother { transaction },
                Use::Otherwise => Settled::No(Reason::NonceUsed),
                Use::Untraceable => Settled::Pending { transaction: None },
                Use::Unused => Settled::No(self.lacking(payment.authorization).await?),
            })
        };
        // Without an answer the money may have come: the caller must not read that nothing was charged.
        let settled: Result<Settled, ChainError> = why.await;
        settled.unwrap_or(Settled::Pending { transaction: None })
    }

    /// How the nonce of a payment was used whose transfer would revert. A node may estimate on top of what is pending: then a
    /// transfer of the same payment, on its way from another deployment, is in the way. On the latest block this one still
    /// succeeds, and the chain does not show who paid. So this waits a little for that transfer.
    async fn used_now_or_soon(&self, payment: JobPayment<'_>) -> Result<Use, ChainError> {
        let mut pauses = LOGS_LATE_BY.iter();
        loop {
            // Asked before the use of the nonce: a transfer that is mined between both is seen.
            let succeeds = match self.chain.simulate_transfer(payment.authorization, self.key.address()).await {
                Ok(_) => true,
                Err(ChainError::Reverted(_)) => false,
                Err(unknown) => return Err(unknown),
            };
            let found = self.evidence.used_perhaps_just_now(payment, None, LOOK_BACK_RANGES).await?;
            match pauses.next() {
                Some(pause) if succeeds && matches!(found, Use::Unused) => tokio::time::sleep(*pause).await,
                // Not mined yet: it may bring this very payment, so it is not refused.
                None if succeeds && matches!(found, Use::Unused) => return Ok(Use::Untraceable),
                _ => return Ok(found),
            }
        }
    }

    /// Why a transfer reverts although its nonce is unused.
    async fn lacking(&self, authorization: &Authorization) -> Result<Reason, ChainError> {
        self.evidence.lacking(authorization, self.likely_reason(authorization)).await
    }

    /// Why a transfer reverts although nonce and balance are good.
    fn likely_reason(&self, authorization: &Authorization) -> Reason {
        verify::check_window(authorization, self.clock.now()).err().unwrap_or(Reason::BadSignature)
    }

    async fn submit(&self, payment: JobPayment<'_>, intent: &Intent) -> Settled {
        let hash = hex0x(&intent.hash);
        if intent.relayer != self.key.address() {
            // The operator changed the fee wallet, and the new one cannot sign for the old one. The chain will show the
            // outcome, at the latest when the authorization has expired.
            return Settled::Pending { transaction: Some(hash) };
        }
        match self.chain.broadcast(&self.sign(payment, intent).raw).await {
            Ok(()) => self.wait_for(payment, intent).await,
            Err(ChainError::Rejected { message, .. }) if chain::is_nonce_spent(&message) => {
                self.hint().take();
                self.after_spent_nonce(payment, intent).await
            }
            // No node has it (rate limit, fee too low, no ETH for gas). The same bytes are sent again later.
            Err(ChainError::Rejected { .. } | ChainError::Reverted(_)) => Settled::Pending { transaction: None },
            Err(ChainError::Unavailable(_)) => Settled::Pending { transaction: Some(hash) },
        }
    }

    async fn wait_for(&self, payment: JobPayment<'_>, intent: &Intent) -> Settled {
        let hashes = intent.hashes();
        let deadline = tokio::time::Instant::now() + WAIT.min(limit::time_left());
        let mut pause = Duration::from_millis(20);
        loop {
            match self.chain.first_receipt(&hashes).await {
                Ok(Some((hash, receipt))) => return self.judge(payment, &hash, &receipt).await,
                _ if tokio::time::Instant::now() + pause > deadline => {
                    return Settled::Pending { transaction: Some(hex0x(&intent.hash)) };
                }
                _ => tokio::time::sleep(pause).await,
            }
            pause = (pause * 3 / 2).min(Duration::from_millis(500));
        }
    }

    /// The result of our mined transaction. If it did not move the money, checks whether another transaction did.
    async fn judge(&self, payment: JobPayment<'_>, hash: &str, receipt: &TransactionReceipt) -> Settled {
        let authorization = payment.authorization;
        if self.chain.carries(receipt, authorization) {
            return Settled::Yes { transaction: hash.to_owned() };
        }
        let why = async {
            // The payment may have waited for days, so search as far back as for a claimed payment.
            Ok(match self.evidence.used(payment, None, LOOK_BACK_RANGES).await? {
                Use::ForThisJob { transaction } => Settled::Yes { transaction },
                Use::ForAnother { transaction } => Settled::ForAnother { transaction },
                Use::Otherwise => Settled::No(Reason::NonceUsed),
                Use::Untraceable => Settled::Pending { transaction: Some(hash.to_owned()) },
                Use::Unused => Settled::No(self.evidence.lacking(authorization, Reason::Reverted).await?),
            })
        };
        why.await.unwrap_or_else(|_: ChainError| Settled::Pending { transaction: Some(hash.to_owned()) })
    }

    /// The account nonce is used. If none of our transactions used it, ours can never be mined.
    async fn after_spent_nonce(&self, payment: JobPayment<'_>, intent: &Intent) -> Settled {
        match self.chain.first_receipt(&intent.hashes()).await {
            Ok(Some((hash, receipt))) => self.judge(payment, &hash, &receipt).await,
            Ok(None) => Settled::Dropped,
            Err(_) => Settled::Pending { transaction: Some(hex0x(&intent.hash)) },
        }
    }

    async fn reconcile(&self, payment: JobPayment<'_>, intent: &Intent) -> Result<Found, ChainError> {
        let hash = hex0x(&intent.hash);
        if let Some((hash, receipt)) = self.chain.first_receipt(&intent.hashes()).await? {
            return Ok(Found::Known(self.judge(payment, &hash, &receipt).await));
        }
        let used = match self.evidence.used(payment, None, LOOK_BACK_RANGES).await? {
            Use::ForThisJob { transaction } => Some(Settled::Yes { transaction }),
            Use::ForAnother { transaction } => Some(Settled::ForAnother { transaction }),
            Use::Otherwise => Some(Settled::No(Reason::NonceUsed)),
            // The nonce is used, but the transaction that used it is unknown. An operator must check (the alarm on stuck
            // settlements fires).
            Use::Untraceable => return Ok(Found::Known(Settled::Pending { transaction: Some(hash) })),
            Use::Unused => None,
        };
        if intent.relayer != self.key.address() {
            return Ok(Found::Known(match used {
                Some(known) => known,
                None => self.evidence.reconcile(payment, &self.clock).await?,
            }));
        }
        if self.chain.transaction_count(intent.relayer).await? > intent.account_nonce {
            return Ok(Found::Known(match used {
                Some(known) => known,
                // Check the receipts again: one may have arrived between the two calls.
                None => self.after_spent_nonce(payment, intent).await,
            }));
        }
        // The account nonce must be used up even if the authorization has expired or somebody else has broadcast it;
        // otherwise all later transactions wait for ever. So the intent is kept until the nonce is used.
        match intent.bid().next(self.chain.market().await?, self.cap.per_gas(intent.gas_limit)) {
            Next::Keep => {}
            Next::Raise(bid) => return Ok(Found::Outgrown(self.raised(payment, intent, bid))),
            Next::Capped => self.cap.is_too_low(&format_args!("payment in {hash}, nonce {}", intent.account_nonce)),
        }
        if self.chain.knows_transaction(&hash).await? {
            let (nonce, now) = (intent.account_nonce, self.clock.now());
            if let Err(error) = nonces::close_gap(&self.db, &self.chain, &self.key, nonce, &self.cap, now).await {
                log::failure("could not check for an account nonce gap before a payment", &error);
            }
            return Ok(Found::Known(Settled::Pending { transaction: Some(hash) }));
        }
        // No node knows it: broadcast the same bytes again.
        Ok(Found::Known(self.submit(payment, intent).await))
    }
}

impl Settler for Relayer {
    fn check<'a>(&'a self, payment: JobPayment<'a>, quoted_at: Option<Timestamp>) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let authorization = payment.authorization;
            match self.chain.simulate_transfer(authorization, self.key.address()).await {
                Ok(cost) if cost > self.cap.share_of(&authorization.value) => {
                    return Verdict::Refused(Reason::GasTooHigh);
                }
                Ok(_) => return Verdict::Good,
                Err(ChainError::Reverted(_)) => {}
                Err(error) => return Verdict::Unknown(error.to_string()),
            }
            let why = async {
                Ok(match self.evidence.used_perhaps_just_now(payment, quoted_at, JUST_NOW).await? {
                    Use::ForThisJob { transaction } => Verdict::AlreadyPaid { transaction },
                    Use::ForAnother { transaction } => Verdict::PaidForAnother { transaction },
                    Use::Otherwise | Use::Untraceable => Verdict::Refused(Reason::NonceUsed),
                    Use::Unused => Verdict::Refused(self.lacking(authorization).await?),
                })
            };
            why.await.unwrap_or_else(|error: ChainError| Verdict::Unknown(error.to_string()))
        })
    }

    fn prepare<'a>(
        &'a self,
        payment: JobPayment<'a>,
        lost: Option<Intent>,
    ) -> BoxFuture<'a, Result<Prepared, Settled>> {
        Box::pin(self.prepare(payment, lost))
    }

    fn submit<'a>(&'a self, payment: JobPayment<'a>, intent: Option<&'a Intent>) -> BoxFuture<'a, Settled> {
        Box::pin(async move {
            let Some(intent) = intent else { return Settled::Dropped };
            // The nonce was taken just now, so it is a good hint. Not after a raise: others may have taken later nonces.
            if intent.replaced.is_empty() {
                let after = intent.account_nonce + 1;
                *self.hint() = Some(NextNonce { stored: Some(after), nonce: after });
            }
            self.submit(payment, intent).await
        })
    }

    fn reconcile<'a>(
        &'a self,
        payment: JobPayment<'a>,
        intent: Option<&'a Intent>,
    ) -> BoxFuture<'a, Result<Found, StoreError>> {
        Box::pin(async move {
            let found = match intent {
                Some(intent) => self.reconcile(payment, intent).await,
                // Submitted through a facilitator before the operator switched to a relayer.
                None => self.evidence.reconcile(payment, &self.clock).await.map(Found::Known),
            };
            found.map_err(StoreError::new)
        })
    }
}

fn not_sent(error: ChainError) -> Settled {
    Settled::NotSent(error.to_string())
}
