//! The state of a payment, looked up by its nonce or by a transaction hash.
//!
//! A nonce leads directly to its claims. Transactions are not indexed: the chain tells which authorizations a transaction
//! carried, and their nonces lead to the claims.

use evm::{Word, hex0x};
use ledger::payments::claim::{self, Claim};
use ledger::payments::reason::Reason;
use platform::auth::Caller;
use platform::config::ChainConfig;
use platform::providers::Chain;
use platform::providers::chain::NonceUse;
use platform::store::{Db, StoreError};
use serde_json::{Value, json};

use crate::jobs::{Job, Settlement, store};

/// How far back the chain is searched for a refused payment: one day of Base, in ranges of 5,000 blocks.
const LOOK_BACK_RANGES: u64 = 9;

/// A claimed payment and its state: `claimed`, `pending`, `settled`, `credited_back`, `refused`, `released`, `reversed` (it
/// was settled, a chain reorganisation took it back, and it could not be sent again) or `received` (the call was refused
/// but the money arrived; repeating the call will serve it).
pub struct PaymentStatus {
    pub state: &'static str,
    nonce: Word,
    claim: Claim,
    job: Option<Job>,
    network: String,
}

/// Every payment that the nonce or transaction hash leads to. Empty if there is none.
pub async fn find(
    db: &Db,
    chain: &Chain,
    config: &ChainConfig,
    reference: &Word,
) -> Result<Vec<PaymentStatus>, StoreError> {
    let mut found = of_nonce(db, chain, config, reference).await?;
    if found.is_empty() {
        let carried = chain.authorizations_in(&hex0x(reference)).await.map_err(StoreError::new)?;
        for (payer, nonce) in carried {
            let claims = of_nonce(db, chain, config, &nonce).await?;
            found.extend(claims.into_iter().filter(|payment| payment.claim.payer == payer));
        }
    }
    Ok(found)
}

async fn of_nonce(
    db: &Db,
    chain: &Chain,
    config: &ChainConfig,
    nonce: &Word,
) -> Result<Vec<PaymentStatus>, StoreError> {
    let mut found = Vec::new();
    for claim in claim::of_nonce(db, nonce).await? {
        let job = store::load(db, claim.request_id).await?;
        let mut state = state(job.as_ref());
        let payment = job.as_ref().and_then(|job| job.payment.as_ref());
        if let (true, Some(payment)) = (claim.reopened, payment) {
            let used = chain.nonce_use(payment, LOOK_BACK_RANGES).await.map_err(StoreError::new)?;
            let is_spent = job.as_ref().and_then(Job::refusal) == Some(Reason::PaidForAnother);
            if matches!(used, NonceUse::ByThisTransfer(_)) && !is_spent {
                state = "received";
            }
        }
        found.push(PaymentStatus { state, nonce: *nonce, claim, job, network: config.caip2() });
    }
    Ok(found)
}

fn state(job: Option<&Job>) -> &'static str {
    let Some(job) = job else { return "settled" };
    match (job.settlement, job.credited) {
        (Settlement::Refused, _) if job.reorganized => "reversed",
        (Settlement::Claimed | Settlement::Submitted, _) if job.reorganized => "pending",
        (_, Some(_)) => "credited_back",
        (Settlement::Settled, None) => "settled",
        (Settlement::Claimed, _) => "claimed",
        (Settlement::Submitted, _) => "pending",
        (Settlement::Refused, _) => "refused",
        (Settlement::Void, _) => "released",
    }
}

impl PaymentStatus {
    /// Whether `reference` is this claim's nonce and its state was read from the database, without a chain request.
    pub fn is_known_by(&self, reference: &Word) -> bool {
        self.nonce == *reference && !self.claim.reopened
    }

    /// The body of the answer. Only the payer gets the job's id.
    pub fn to_json(&self, caller: Option<&Caller>) -> Value {
        let mut body = json!({
            "nonce": hex0x(&self.nonce),
            "state": self.state,
            "payer": self.claim.payer.to_string(),
            "network": self.network,
            "claimed_at": self.claim.claimed_at.to_string(),
        });
        if caller.is_some_and(|caller| caller.wallet == self.claim.payer) {
            body["request_id"] = json!(self.claim.request_id);
        }
        if let Some(job) = &self.job {
            body["amount_usdc"] = json!(job.price.to_string());
            body["transaction"] = json!(job.transaction);
            body["job_status"] = json!(job.status());
            body["credited_usdc"] = json!(job.credited.map(|credited| credited.to_string()));
            body["kept_usdc"] = json!(job.credited.map(|_| job.kept.unwrap_or_default().to_string()));
            body["reason"] = json!(job.refusal);
            body["updated_at"] = json!(job.updated.to_string());
        }
        body
    }
}
