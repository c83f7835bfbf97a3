//! The treasury: the wallet that pays sellers. It makes transfers, signs them again, and finds out their outcome.
//! `ledger::payout` holds the states, `market::payouts` drives them.
//!
//! A plain transfer has no nonce of its own (a signed authorization has one). Only the treasury's account nonce keeps it
//! from happening twice. So a payout keeps its account nonce: its transaction is sent again as the same bytes, or
//! as the same call with a higher fee (`payments::bid`). It is given up only after the chain has shown for a while that
//! it moved nothing, or that another transaction has its account nonce and moved nothing to the same wallet (an operator
//! may have sent the transfer again with higher fees).

use std::time::Duration;

use base::clock::Timestamp;
use base::money::Usdc;
use evm::abi::{self, Argument};
use evm::signature::PrivateKey;
use evm::transaction::{Replaced, SignedTransaction, Transaction};
use evm::{Address, hex0x, word_from_u64};
use platform::http::log;
use platform::providers::chain::{Chain, ChainError};
use platform::store::{Db, Key, StoreError, Write};

use super::bid::{Bid, FeeCap, Next};
use super::nonces;
use crate::payout::{Failure, Payout, Sending, Waiting};

/// A transfer costs about 60,000 gas. A transfer that needs more than this is refused.
const MAX_GAS: u64 = 200_000;
/// A revert is treated as final after this time, because the chain may still replace its newest blocks.
const REVERT_STANDS: Duration = Duration::from_secs(60);
/// The loss of an account nonce to another transaction is treated as final after this time. Until then, nodes behind one
/// endpoint may not all know the same blocks.
const REPLACEMENT_STANDS: Duration = Duration::from_secs(30 * 60);

pub struct Treasury {
    chain: Chain,
    db: Db,
    key: PrivateKey,
    cap: FeeCap,
}

/// The treasury's balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Funds {
    pub usdc: Usdc,
    pub wei: u128,
}

/// Why nothing can be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// A temporary cause: retry later.
    Wait(Waiting, String),
    /// The token refuses this transfer.
    Refused,
}

/// The outcome of a payout's transaction, as the chain shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The money arrived in this transaction.
    Paid { transaction: String },
    /// It seems to have failed.
    Doubtful(Failure),
    /// Nodes know it, but it is in no block yet.
    Waiting,
    /// Its fee has become too low. Store this in its place and send it.
    Outgrown(Sending),
    /// Its fee has become too low, and the fee cap does not allow a higher one.
    Capped,
    /// No node knows it and its account nonce is free: send it again.
    Lost,
    /// The chain shows something unexpected. An operator must check.
    Unclear(&'static str),
}

impl Treasury {
    pub fn new(chain: Chain, db: Db, key: PrivateKey, cap: FeeCap) -> Treasury {
        Treasury { chain, db, key, cap }
    }

    pub fn address(&self) -> Address {
        self.key.address()
    }

    pub async fn funds(&self) -> Result<Funds, ChainError> {
        let (usdc, wei) =
            tokio::join!(self.chain.balance_of(self.address()), self.chain.native_balance(self.address()));
        // An amount above 2^64 micro-USDC cannot exist.
        Ok(Funds { usdc: Usdc::from_micro(evm::word_to_u64(&usdc?).unwrap_or(u64::MAX)), wei: wei? })
    }

    /// The transaction that will be broadcast for a payout, and the write that takes its account nonce. Broadcasts nothing.
    pub async fn prepare(
        &self,
        payout: &Payout,
        funds: Funds,
    ) -> Result<Result<(Sending, Write), Obstacle>, StoreError> {
        if payout.amount > funds.usdc {
            let missing = format!("the treasury has {} USDC, and {} are to be paid", funds.usdc, payout.amount);
            return Ok(Err(Obstacle::Wait(Waiting::TreasuryShort, missing)));
        }
        let asked = async {
            let block = self.chain.block_number().await?;
            Ok::<_, ChainError>((block, self.chain.fees_for(&transfer(payout), self.address()).await?))
        };
        let (block, fees) = match asked.await {
            Ok((_, fees)) if fees.gas > MAX_GAS => return Ok(Err(Obstacle::Refused)),
            Ok(asked) => asked,
            Err(ChainError::Reverted(_)) => return Ok(Err(Obstacle::Refused)),
            Err(error) => return Ok(Err(unavailable(&error))),
        };
        let gas_limit = (fees.gas + fees.gas / 5).min(MAX_GAS);
        let Some(bid) = Bid::first(fees.market, self.cap.per_gas(gas_limit)) else {
            self.cap.is_too_low(&format_args!("{} is not sent", payout.id));
            return Ok(Err(Obstacle::Wait(Waiting::FeesTooHigh, format!("{:?}", fees.market))));
        };
        let cost = u128::from(gas_limit) * u128::from(bid.max_fee);
        if cost > funds.wei {
            let missing = format!("the treasury has {} wei, and up to {cost} may be needed", funds.wei);
            return Ok(Err(Obstacle::Wait(Waiting::TreasuryOutOfGas, missing)));
        }
        let next = nonces::next(&self.db, &self.chain, self.address(), fees.sent).await?;
        let mut sending = Sending {
            chain_id: self.chain.chain_id,
            token: self.chain.token(),
            from: self.address(),
            account_nonce: next.nonce,
            gas_limit,
            max_fee: bid.max_fee,
            priority_fee: bid.priority_fee,
            block,
            hash: [0; 32],
            replaced: Replaced::default(),
        };
        sending.hash = self.sign(payout, &sending).hash;
        Ok(Ok((sending, nonces::take(&self.db, &self.chain, self.address(), next)?)))
    }

    /// The same transaction with a higher bid.
    fn raised(&self, payout: &Payout, sending: &Sending, bid: Bid) -> Sending {
        let mut raised = Sending { max_fee: bid.max_fee, priority_fee: bid.priority_fee, ..sending.clone() };
        raised.replaced.push(sending.hash);
        raised.hash = self.sign(payout, &raised).hash;
        raised
    }

    /// The transaction of a payout. Signing again gives the same bytes.
    fn sign(&self, payout: &Payout, sending: &Sending) -> SignedTransaction {
        let transaction = Transaction {
            chain_id: sending.chain_id,
            nonce: sending.account_nonce,
            max_priority_fee_per_gas: u128::from(sending.priority_fee),
            max_fee_per_gas: u128::from(sending.max_fee),
            gas_limit: sending.gas_limit,
            to: sending.token,
            data: transfer(payout),
        };
        transaction.sign(&self.key)
    }

    /// Sends the transaction to the node, for the first time or again.
    pub async fn broadcast(&self, payout: &Payout, sending: &Sending) -> Result<(), ChainError> {
        self.chain.broadcast(&self.sign(payout, sending).raw).await
    }

    /// Whether a mined transaction is final.
    pub async fn is_final(&self, transaction: &str) -> Result<bool, ChainError> {
        let receipt = self.chain.receipt(transaction).await?;
        Ok(match receipt {
            Some(receipt) => receipt.block <= self.chain.last_final_block().await?,
            None => false,
        })
    }

    /// Reads the outcome of a payout's transaction from the chain.
    pub async fn look(&self, payout: &Payout, sending: &Sending, now: Timestamp) -> Result<Seen, ChainError> {
        if (sending.chain_id, sending.token) != (self.chain.chain_id, self.chain.token()) {
            return Ok(Seen::Unclear("it was sent on another chain or with another token than is configured now"));
        }
        if let Some(seen) = self.mined(payout, sending).await? {
            return Ok(seen);
        }
        if self.chain.transaction_count(sending.from).await? > sending.account_nonce {
            // Check the receipts again: one may have arrived between the two calls.
            if let Some(seen) = self.mined(payout, sending).await? {
                return Ok(seen);
            }
            let value = word_from_u64(payout.amount.micro());
            let (nonce, since) = (sending.account_nonce, sending.block);
            let paid = self.chain.transfer_under(nonce, sending.from, payout.wallet, &value, since).await?;
            return Ok(match paid {
                Some(transaction) => Seen::Paid { transaction },
                None => Seen::Doubtful(Failure::Replaced),
            });
        }
        if sending.from != self.address() {
            return Ok(Seen::Unclear("it is in no block yet, and the treasury's key has changed since it was signed"));
        }
        let bid = Bid { max_fee: sending.max_fee, priority_fee: sending.priority_fee };
        match bid.next(self.chain.market().await?, self.cap.per_gas(sending.gas_limit)) {
            Next::Keep => {}
            Next::Raise(bid) => return Ok(Seen::Outgrown(self.raised(payout, sending, bid))),
            Next::Capped => {
                self.cap.is_too_low(&format_args!("{}, nonce {}", payout.id, sending.account_nonce));
                return Ok(Seen::Capped);
            }
        }
        if !self.chain.knows_transaction(&hex0x(&sending.hash)).await? {
            return Ok(Seen::Lost);
        }
        let nonce = sending.account_nonce;
        if let Err(error) = nonces::close_gap(&self.db, &self.chain, &self.key, nonce, &self.cap, now).await {
            log::failure("could not check for an account nonce gap before a payout", &error);
        }
        Ok(Seen::Waiting)
    }

    async fn mined(&self, payout: &Payout, sending: &Sending) -> Result<Option<Seen>, ChainError> {
        let Some((hash, receipt)) = self.chain.first_receipt(&sending.hashes()).await? else { return Ok(None) };
        let value = word_from_u64(payout.amount.micro());
        Ok(Some(if self.chain.moved(&receipt, sending.from, payout.wallet, &value) {
            Seen::Paid { transaction: hash }
        } else if receipt.succeeded {
            Seen::Unclear("its transaction succeeded, but the token reports no transfer")
        } else {
            Seen::Doubtful(Failure::Reverted)
        }))
    }
}

/// Whether a failure first seen at `since` has been visible long enough to be treated as final.
pub fn stands(failure: Failure, since: Timestamp, now: Timestamp) -> bool {
    let wait = match failure {
        Failure::TransferRefused => Duration::ZERO,
        Failure::Reverted => REVERT_STANDS,
        Failure::Replaced => REPLACEMENT_STANDS,
    };
    since.plus(wait) <= now
}

/// The call data of the transfer.
fn transfer(payout: &Payout) -> Vec<u8> {
    let arguments = [payout.wallet.word(), word_from_u64(payout.amount.micro())].map(Argument::Word);
    abi::call("transfer(address,uint256)", &arguments)
}

fn unavailable(error: &ChainError) -> Obstacle {
    Obstacle::Wait(Waiting::ChainUnavailable, error.to_string())
}

fn known_key() -> Key {
    Key::new("TREASURY", "WALLET")
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Known {
    address: Address,
}

/// Stores the treasury's address for functions that must not have its key.
pub async fn publish(db: &Db, address: Address) -> Result<(), StoreError> {
    if known(db).await? != Some(address) {
        db.write(Write::put(&db.tables.ledger, known_key(), &Known { address })?).await?;
    }
    Ok(())
}

/// The treasury's address, if the treasury ever ran.
pub async fn known(db: &Db) -> Result<Option<Address>, StoreError> {
    let known: Option<Known> = db.get(&db.tables.ledger, known_key()).await?;
    Ok(known.map(|known| known.address))
}
