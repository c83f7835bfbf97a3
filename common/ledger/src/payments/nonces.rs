//! Account nonces of the service's wallets. One database item hands them out, in the same transaction that records what
//! is sent with them. So every nonce taken has a transaction that can be signed and broadcast again.
//!
//! A gap can still occur: when a chain reorganisation drops a settled transaction (noticed a minute later, see
//! `gate::jobs::finality`), or when the chain is set back, for example a local node that stops before it saves. Then all
//! later transactions wait in the nodes' pools for ever. A transaction that has waited behind a gap for two minutes closes
//! it with empty transactions ([`close_gap`]). If the missing transaction appears after all, it has lost its account nonce:
//! a payment is started again, and a payout is returned.

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

/// An account nonce that can be taken.
#[derive(Clone, Copy, Debug)]
pub struct NextNonce {
    /// The value in the database's item, if there is one.
    pub stored: Option<u64>,
    pub nonce: u64,
}

/// The item that hands out account nonces.
#[derive(Serialize, Deserialize)]
struct AccountNonces {
    next: u64,
}

/// A gap must be seen for this long before it is closed. By then a transaction on its way has arrived or was sent again.
const GAP_STANDS: Duration = Duration::from_secs(120);
/// At most this many gaps are closed per call.
const MAX_CLOSED: u64 = 16;
/// Gas of an empty transaction (a transfer of zero to the own address).
const PLAIN_GAS: u64 = 21_000;

/// A gap that a transaction waits behind.
#[derive(Serialize, Deserialize)]
struct Gap {
    nonce: u64,
    since: Timestamp,
}

/// Closes the gap before `waiting` if it has existed for two minutes. `waiting` is the account nonce of a transaction that
/// the nodes know but do not mine. Only nonces for which the nodes have no transaction are closed, never one that waits for
/// its fee.
///
/// # Errors
/// If chain or database do not answer. The next call continues.
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
        log::failure(
            "an account nonce was lost; it is used up by an empty transaction",
            &format_args!("{address}: {free}"),
        );
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

/// One item per wallet, whatever the wallet is used for.
fn key(chain: &Chain, wallet: Address) -> Key {
    Key::new(format!("RELAYER#{}#{}", chain.chain_id, wallet.lower()), "NONCES")
}

/// Whether this service sends from the wallet: it is a relayer or a treasury that sent something.
pub async fn is_ours(db: &Db, chain: &Chain, wallet: Address) -> Result<bool, StoreError> {
    let stored: Option<AccountNonces> = db.get(&db.tables.ledger, key(chain, wallet)).await?;
    Ok(stored.is_some())
}

/// The next account nonce: from the database, or `on_chain` if the wallet was used elsewhere. The caller asks the chain
/// before: between this read and [`take`] a slow question would let only a few payments a second take a nonce.
pub async fn next(db: &Db, chain: &Chain, wallet: Address, on_chain: u64) -> Result<NextNonce, StoreError> {
    let stored: Option<AccountNonces> = db.get_latest(&db.tables.ledger, key(chain, wallet)).await?;
    let stored = stored.map(|nonces| nonces.next);
    Ok(NextNonce { stored, nonce: stored.unwrap_or_default().max(on_chain) })
}

/// The write that takes the nonce. Refused if another process took it first.
pub fn take(db: &Db, chain: &Chain, wallet: Address, next: NextNonce) -> Result<Write, StoreError> {
    let write =
        Write::update(&db.tables.ledger, key(chain, wallet), "SET #next = :after").bind("after", next.nonce + 1)?;
    match next.stored {
        Some(stored) => write.only_if("#next = :stored").bind("stored", stored),
        None => Ok(write.only_if("attribute_not_exists(#next)")),
    }
}
