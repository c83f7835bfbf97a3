//! The treasury: the wallet that sellers are paid from. It makes transfers, signs them again, and finds out what became
//! of them; `ledger::payout` holds the states, `marketplace::payouts` makes the moves.
//!
//! A plain transfer has no nonce of its own, as a signed authorization has: what keeps it from happening twice is the
//! treasury's account nonce alone. So a payout keeps the nonce it got: its transaction is sent again as the same bytes, or
//! as the same call with a higher fee (`payments::bid`), and it is only given up
//! once the chain has shown for a while that it moved nothing, or that another transaction has its account nonce and
//! moved nothing to the same wallet (an operator may have sent the transfer again with higher fees).

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

/// A transfer costs about 60,000 gas; a token that wants more than this is not fed.
const MAX_GAS: u64 = 200_000;
/// A reverted transaction is believed after this long: blocks at the tip may still be exchanged.
const REVERT_STANDS: Duration = Duration::from_secs(60);
/// An account nonce that something else took is believed after this long: nodes behind one endpoint may not all know
/// the same blocks.
const REPLACEMENT_STANDS: Duration = Duration::from_secs(30 * 60);

pub struct Treasury {
    chain: Chain,
    db: Db,
    key: PrivateKey,
    cap: FeeCap,
}

/// What the treasury can pay with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Funds {
    pub usdc: Usdc,
    pub wei: u128,
}

/// Why nothing is sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// It may pass.
    Wait(Waiting, String),
    /// The token refuses this transfer.
    Refused,
}

/// What the chain says of a payout's transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The money arrived, in this transaction.
    Paid { transaction: String },
    /// It seems to have failed.
    Doubtful(Failure),
    /// Known, and in no block yet.
    Waiting,
    /// Its fee has become too low: this is to be written down in its place, and sent.
    Outgrown(Sending),
    /// Its fee has become too low, and a higher one is not allowed.
    Capped,
    /// Nobody knows it, and its account nonce is free: it has to be sent again.
    Lost,
    /// A person has to look.
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
        // More than 2^64 micro-USDC is more than there is.
        Ok(Funds { usdc: Usdc::from_micro(evm::word_to_u64(&usdc?).unwrap_or(u64::MAX)), wei: wei? })
    }

    /// What will be broadcast for a payout, and the write that takes its account nonce. Broadcasts nothing.
    pub async fn prepare(
        &self,
        payout: &Payout,
        funds: Funds,
    ) -> Result<Result<(Sending, Write), Obstacle>, StoreError> {
        if payout.amount > funds.usdc {
            let missing = format!("{} USDC are there, {} are to be paid", funds.usdc, payout.amount);
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
            let missing = format!("{} wei are there, {cost} may be needed", funds.wei);
            return Ok(Err(Obstacle::Wait(Waiting::TreasuryOutOfGas, missing)));
        }
        let next = match nonces::next(&self.db, &self.chain, self.address()).await? {
            Ok(next) => next,
            Err(error) => return Ok(Err(unavailable(&error))),
        };
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

    /// The same with a higher bid.
    fn raised(&self, payout: &Payout, sending: &Sending, bid: Bid) -> Sending {
        let mut raised = Sending { max_fee: bid.max_fee, priority_fee: bid.priority_fee, ..sending.clone() };
        raised.replaced.push(sending.hash);
        raised.hash = self.sign(payout, &raised).hash;
        raised
    }

    /// The transaction of a payout: the same bytes whenever it is signed.
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

    /// Hands the transaction to the node, for the first time or again.
    pub async fn broadcast(&self, payout: &Payout, sending: &Sending) -> Result<(), ChainError> {
        self.chain.broadcast(&self.sign(payout, sending).raw).await
    }

    /// Whether the chain can no longer take a mined transaction back.
    pub async fn is_final(&self, transaction: &str) -> Result<bool, ChainError> {
        let receipt = self.chain.receipt(transaction).await?;
        Ok(match receipt {
            Some(receipt) => receipt.block <= self.chain.last_final_block().await?,
            None => false,
        })
    }

    /// Asks the chain what became of a payout's transaction.
    pub async fn look(&self, payout: &Payout, sending: &Sending, now: Timestamp) -> Result<Seen, ChainError> {
        if (sending.chain_id, sending.token) != (self.chain.chain_id, self.chain.token()) {
            return Ok(Seen::Unclear("it was sent on another chain or with another token than is configured now"));
        }
        if let Some(seen) = self.mined(payout, sending).await? {
            return Ok(seen);
        }
        if self.chain.transaction_count(sending.from).await? > sending.account_nonce {
            // Asked once more, because the receipt may have come between the two questions.
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
            log::failure("a gap before a payout could not be looked at", &error);
        }
        Ok(Seen::Waiting)
    }

    async fn mined(&self, payout: &Payout, sending: &Sending) -> Result<Option<Seen>, ChainError> {
        let Some((hash, receipt)) = self.chain.first_receipt(&sending.hashes()).await? else { return Ok(None) };
        let value = word_from_u64(payout.amount.micro());
        Ok(Some(if self.chain.moved(&receipt, sending.from, payout.wallet, &value) {
            Seen::Paid { transaction: hash }
        } else if receipt.succeeded {
            Seen::Unclear("its transaction succeeded, and the token reports no transfer")
        } else {
            Seen::Doubtful(Failure::Reverted)
        }))
    }
}

/// Whether what the chain seems to say since then is believed by now.
pub fn stands(failure: Failure, since: Timestamp, now: Timestamp) -> bool {
    let wait = match failure {
        Failure::TransferRefused => Duration::ZERO,
        Failure::Reverted => REVERT_STANDS,
        Failure::Replaced => REPLACEMENT_STANDS,
    };
    since.plus(wait) <= now
}

/// The call that pays.
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

/// Makes the treasury's address known to functions that must not have its key.
pub async fn publish(db: &Db, address: Address) -> Result<(), StoreError> {
    if known(db).await? != Some(address) {
        db.write(Write::put(&db.tables.ledger, known_key(), &Known { address })?).await?;
    }
    Ok(())
}

/// The treasury's address, if it ever ran.
pub async fn known(db: &Db) -> Result<Option<Address>, StoreError> {
    let known: Option<Known> = db.get(&db.tables.ledger, known_key()).await?;
    Ok(known.map(|known| known.address))
}
