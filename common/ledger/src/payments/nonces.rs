//! Account nonces of the service's wallets: handed out by one item in the database, in the same transaction that writes
//! down what is sent with them. So a nonce is never taken without a transaction that can be signed and broadcast again.
//!
//! A gap can still come to be: a chain that forgets a block forgets what was settled in it, which is noticed a minute later
//! (`jobs::finality`); or the chain was set back, as a local one is that dies before it has saved. Then everything behind
//! the gap waits in the nodes' pools for ever. So whoever waits behind one for two minutes closes it, with transactions that move
//! nothing ([`close_gap`]). If what belongs there turns up after all, the chain has taken its place: a payment is begun anew, and a
//! payout given back, as for any transaction that lost its account nonce.

use std::time::Duration;

use base::clock::Timestamp;
use evm::Address;
use evm::signature::PrivateKey;
use evm::transaction::Transaction;
use platform::http::log;
use platform::providers::chain::{self, Chain, ChainError};
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::bid::{Bid, FeeCap};

/// An account nonce that may be taken.
#[derive(Clone, Copy, Debug)]
pub struct NextNonce {
    /// What the database's item holds, if there is one.
    pub stored: Option<u64>,
    /// The nonce to take.
    pub nonce: u64,
}

/// The item that hands out account nonces.
#[derive(Serialize, Deserialize)]
struct AccountNonces {
    next: u64,
}

/// How long a gap has to be seen before it is closed: what is on its way has arrived by then, or was sent again.
const GAP_STANDS: Duration = Duration::from_secs(120);
/// Gaps closed at one look.
const MAX_CLOSED: u64 = 16;
/// A transfer of nothing to oneself costs this.
const PLAIN_GAS: u64 = 21_000;

/// The gap that somebody waits behind.
#[derive(Serialize, Deserialize)]
struct Gap {
    nonce: u64,
    since: Timestamp,
}

/// Closes the gap before `waiting`, a nonce whose transaction the nodes know and do not take, once it has stood long enough.
/// Only what nodes have nothing for is closed, never what waits for its fee.
///
/// # Errors
/// If chain or database do not answer. Nothing is lost then: the next look goes on.
pub async fn close_gap(
    db: &Db,
    chain: &Chain,
    wallet: &PrivateKey,
    waiting: u64,
    cap: &FeeCap,
    now: Timestamp,
) -> Result<(), StoreError> {
    let address = wallet.address();
    let mut free = chain.next_free_nonce(address).await.map_err(StoreError::new)?;
    if free >= waiting {
        return Ok(());
    }
    let key = Key { sk: "GAP".to_owned(), ..key(chain, address) };
    let seen: Option<Gap> = db.get_latest(&db.tables.ledger, key.clone()).await?;
    match seen.filter(|gap| gap.nonce == free) {
        Some(gap) if gap.since.plus(GAP_STANDS) <= now => {}
        Some(_) => return Ok(()),
        None => {
            let gap = Gap { nonce: free, since: now };
            db.write(Write::put(&db.tables.ledger, key, &gap)?).await?;
            return Ok(());
        }
    }
    let market = chain.market().await.map_err(StoreError::new)?;
    let Some(bid) = Bid::first(market, cap.per_gas(PLAIN_GAS)) else { return Ok(()) };
    for _ in 0..MAX_CLOSED {
        log::failure("an account nonce was lost, and is spent on nothing", &format_args!("{address}: {free}"));
        let nothing = Transaction {
            chain_id: chain.chain_id,
            nonce: free,
            max_priority_fee_per_gas: u128::from(bid.priority_fee),
            max_fee_per_gas: u128::from(bid.max_fee),
            gas_limit: PLAIN_GAS,
            to: address,
            data: Vec::new(),
        };
        match chain.broadcast(&nothing.sign(wallet).raw).await {
            Ok(()) => {}
            // Another process closed it.
            Err(ChainError::Rejected { message, .. }) if chain::is_nonce_spent(&message) => return Ok(()),
            Err(error) => return Err(StoreError::new(error)),
        }
        let next = chain.next_free_nonce(address).await.map_err(StoreError::new)?;
        if next <= free || next >= waiting {
            return Ok(());
        }
        free = next;
    }
    Ok(())
}

/// A wallet has one item, whatever it is used for.
fn key(chain: &Chain, wallet: Address) -> Key {
    Key::new(format!("RELAYER#{}#{}", chain.chain_id, wallet.lower()), "NONCES")
}

/// The account nonce to take next: what the database says, or the chain where the wallet was used elsewhere.
pub async fn next(db: &Db, chain: &Chain, wallet: Address) -> Result<Result<NextNonce, ChainError>, StoreError> {
    let stored: Option<AccountNonces> = db.get_latest(&db.tables.ledger, key(chain, wallet)).await?;
    let stored = stored.map(|nonces| nonces.next);
    let on_chain = chain.transaction_count(wallet).await;
    Ok(on_chain.map(|on_chain| NextNonce { stored, nonce: stored.unwrap_or_default().max(on_chain) }))
}

/// The write that takes it. Refused if another process took it.
pub fn take(db: &Db, chain: &Chain, wallet: Address, next: NextNonce) -> Result<Write, StoreError> {
    let write =
        Write::update(&db.tables.ledger, key(chain, wallet), "SET #next = :after").bind("after", next.nonce + 1)?;
    match next.stored {
        Some(stored) => write.only_if("#next = :stored").bind("stored", stored),
        None => Ok(write.only_if("attribute_not_exists(#next)")),
    }
}
