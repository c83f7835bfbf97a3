//! Account nonces of the service's wallets: handed out by one item in the database, in the same transaction that writes
//! down what is sent with them. So a nonce is never taken without a transaction that can be signed and broadcast again,
//! and no gap can stay open that would hold up everything behind it.

use serde::{Deserialize, Serialize};

use crate::evm::Address;
use crate::providers::chain::{Chain, ChainError};
use crate::store::{Db, Key, StoreError, Write};

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
