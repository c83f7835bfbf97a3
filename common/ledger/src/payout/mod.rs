//! Payouts: transfers of a seller's earnings to its wallet. The record, its states, and the writes of each move.
//!
//! ```text
//! pending ─► processing ─► completed ─► completed, and final on chain
//!    └──────────┴────────────┴─► failed: the amount is back on the balance
//! ```
//!
//! The amount leaves the balance when the payout is requested. Each move is one transaction with a condition on the
//! previous move, so only one of several processes makes it. What happens when a process dies:
//!
//! | when it dies | state | consequence |
//! |---|---|---|
//! | before the request is written | nothing | the seller requests again |
//! | after it, before the answer | the payout, debited once | a retry with its idempotency key gets it; without a key the seller sees it in its balance, and a second one is refused |
//! | before the intent is written | pending, no account nonce taken | the next run starts again |
//! | after the intent, before the broadcast | processing, no node knows the transaction | the same bytes are sent |
//! | while its fee is raised | processing, several hashes, one of them known | see `payments::bid`: whichever is mined pays it |
//! | after the broadcast | processing, the node knows it | the next run asks for its receipt |
//! | after the receipt, before completion is written | processing, mined | the next run asks again and completes it, once |
//! | in any transaction whose answer is lost | all of it or nothing | the next run reads the state |
//!
//! A completed payout is checked until its block is final, because a reorganisation of the chain may undo it. Then the same
//! bytes are sent again. It fails only if its account nonce was used for something else meanwhile.
//!
//! It cannot be paid twice: an intent fixes the treasury's account nonce, the chain accepts one transaction per nonce, and
//! a payout never gets a second nonce. Its amount is returned only when the chain shows that its transaction moved
//! nothing and never will (`payments::treasury`).

mod moves;

use std::fmt;
use std::str::FromStr;

use base::clock::Timestamp;
use base::digest;
use base::money::Usdc;
use evm::transaction::Replaced;
use evm::{Address, Word};
use platform::store::db::Query;
use platform::store::{self, Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::earning::seller_partition;
pub use moves::{End, Name, Refusal, end, named, request};

/// Smallest payout: 10 USDC.
pub const LEAST: Usdc = Usdc::from_micro(10_000_000);
/// Open payouts are spread over this many partitions.
pub const SHARDS: u8 = 4;

/// The id of a payout, `payout_<ulid>`. Sorts by the time of the request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PayoutId(String);

impl PayoutId {
    pub fn new(now: Timestamp) -> PayoutId {
        let millis = u64::try_from(now.millis()).unwrap_or_default();
        PayoutId(format!("payout_{}", Ulid::from_parts(millis, u128::from_be_bytes(digest::random()))))
    }

    fn shard(&self) -> u8 {
        self.0.bytes().last().unwrap_or_default() % SHARDS
    }
}

impl fmt::Display for PayoutId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PayoutId {
    type Err = ();

    fn from_str(text: &str) -> Result<PayoutId, ()> {
        let ulid = text.strip_prefix("payout_").ok_or(())?;
        // Only one spelling is accepted, because the text is part of the key.
        let is_ours = Ulid::from_string(ulid).is_ok_and(|parsed| parsed.to_string() == ulid);
        if is_ours { Ok(PayoutId(text.to_owned())) } else { Err(()) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayoutStatus {
    /// Nothing is on chain yet.
    Pending,
    /// Its transaction is stored and may be on chain.
    Processing,
    /// The money arrived.
    Completed,
    /// It failed; the amount is back on the balance.
    Failed,
}

/// Why an open payout waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// An operator suspended the soul.
    SellerSuspended,
    /// The treasury does not have enough USDC.
    TreasuryShort,
    /// The treasury does not have enough ETH for gas.
    TreasuryOutOfGas,
    /// The chain gave no usable answer.
    ChainUnavailable,
    /// Gas costs more than the operator's cap per transaction. Also possible after the broadcast.
    FeesTooHigh,
}

/// Why a payout failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The token refuses to move money to this wallet; nothing was sent.
    TransferRefused,
    /// The transaction was mined and moved nothing.
    Reverted,
    /// Another transaction of the treasury used the account nonce and moved nothing to this wallet.
    Replaced,
}

/// A transaction of the treasury, stored before it is broadcast. Enough to sign the same bytes again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    pub chain_id: u64,
    /// The token's contract.
    pub token: Address,
    /// The treasury's address.
    pub from: Address,
    pub account_nonce: u64,
    pub gas_limit: u64,
    /// wei per gas
    pub max_fee: u64,
    /// wei per gas
    pub priority_fee: u64,
    /// The latest block when this was created: the transaction cannot be in an earlier one.
    pub block: u64,
    /// Hash of the signed transaction.
    #[serde(with = "serde_bytes")]
    pub hash: Word,
    /// Earlier transactions with the same account nonce and lower bids.
    #[serde(default, skip_serializing_if = "Replaced::is_empty")]
    pub replaced: Replaced,
}

impl Sending {
    /// Hashes of all transactions signed for this payout, the latest first.
    pub fn hashes(&self) -> Vec<String> {
        self.replaced.with(&self.hash)
    }
}

/// The stored payout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payout {
    pub id: PayoutId,
    /// The soul's slug.
    pub soul: String,
    /// micro-USDC
    pub amount: Usdc,
    /// The wallet that was linked at the time of the request.
    pub wallet: Address,
    pub status: PayoutStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sending: Option<Sending>,
    /// The transaction that paid it, or is expected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tx_hash: Option<String>,
    /// A failure seen on chain, and the time when it was first seen. It becomes final after a waiting time
    /// (`treasury::stands`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_doubt: Option<(Failure, Timestamp)>,
    /// Number of moves. A process with an older record can move nothing.
    pub moves: u32,
    pub created: Timestamp,
    /// When the payout is checked next.
    pub due: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processed: Option<Timestamp>,
    /// Completed, and the chain can no longer undo it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_final: bool,
}

impl Payout {
    pub fn is_open(&self) -> bool {
        matches!(self.status, PayoutStatus::Pending | PayoutStatus::Processing)
    }

    /// Whether it is still checked when it is due.
    pub fn is_watched(&self) -> bool {
        self.is_open() || self.status == PayoutStatus::Completed && !self.is_final
    }

    /// The writes from this record to `next`, the record first. Refused if somebody else moved it.
    pub fn moved(&self, db: &Db, mut next: Payout) -> Result<Vec<Write>, StoreError> {
        if !may_move(self.status, next.status) {
            return Err(StoreError::new(format_args!("{} cannot move to {:?}", self.id, next.status)));
        }
        let table = &db.tables.ledger;
        next.moves = self.moves + 1;
        let mut writes = vec![
            Write::put(table, key(&self.soul, &self.id), &next)?
                .only_if("#moves = :moves")
                .bind("moves", self.moves)?,
        ];
        if next.is_watched() && next.due == self.due {
            return Ok(writes);
        }
        writes.push(Write::delete(table, due_key(self.due, &self.id)));
        if next.is_watched() {
            writes.push(next.waits(db)?);
        }
        Ok(writes)
    }

    /// The write of the row that leads to this payout when it is due.
    fn waits(&self, db: &Db) -> Result<Write, StoreError> {
        let due = Due { soul: self.soul.clone(), id: self.id.clone() };
        Write::put(&db.tables.ledger, due_key(self.due, &self.id), &due)
    }
}

/// The allowed moves.
pub fn may_move(from: PayoutStatus, to: PayoutStatus) -> bool {
    use PayoutStatus::{Completed, Failed, Pending, Processing};
    matches!(
        (from, to),
        (Pending, Pending | Processing | Failed)
            | (Processing, Processing | Completed | Failed)
            | (Completed, Completed | Failed)
    )
}

/// A row that points to a payout that is still checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    pub soul: String,
    pub id: PayoutId,
}

fn key(soul: &str, id: &PayoutId) -> Key {
    Key::new(seller_partition(soul), format!("PAYOUT#{id}"))
}

fn due_partition(shard: u8) -> String {
    format!("PAYOUTS#{shard}")
}

fn due_key(due: Timestamp, id: &PayoutId) -> Key {
    Key::new(due_partition(id.shard()), store::due::row(due, id))
}

/// The payout, from a strongly consistent read.
pub async fn load(db: &Db, soul: &str, id: &PayoutId) -> Result<Option<Payout>, StoreError> {
    db.get_latest(&db.tables.ledger, key(soul, id)).await
}

/// A seller's payouts, newest first; with `before`, only older ones.
pub async fn list(db: &Db, soul: &str, before: Option<&PayoutId>, limit: usize) -> Result<Vec<Payout>, StoreError> {
    let last = before.map_or("PAYOUT#payout_~".to_owned(), |id| format!("PAYOUT#{id}"));
    let query = Query::between(&db.tables.ledger, &seller_partition(soul), "PAYOUT#payout_", &last, limit + 1)?;
    let mut found: Vec<Payout> = db.query(query.newest_first().latest()).await?;
    found.retain(|payout| Some(&payout.id) != before);
    found.truncate(limit);
    Ok(found)
}

/// Due payouts of a shard, the longest due first.
pub async fn due(db: &Db, shard: u8, now: Timestamp, limit: usize) -> Result<Vec<Due>, StoreError> {
    db.query(store::due::rows(&db.tables.ledger, &due_partition(shard), now, limit)?.latest()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [PayoutStatus; 4] =
        [PayoutStatus::Pending, PayoutStatus::Processing, PayoutStatus::Completed, PayoutStatus::Failed];

    #[test]
    fn payouts_only_move_forward_and_failed_is_final() {
        for from in ALL {
            for to in ALL {
                let backwards = from != PayoutStatus::Pending && to == PayoutStatus::Pending
                    || from == PayoutStatus::Completed && to == PayoutStatus::Processing;
                let unsent = from == PayoutStatus::Pending && to == PayoutStatus::Completed;
                let may = from != PayoutStatus::Failed && !backwards && !unsent;
                assert_eq!(may_move(from, to), may, "{from:?} -> {to:?}");
            }
        }
    }

    #[test]
    fn ids_round_trip_and_sort_by_time() {
        let (early, late) = (PayoutId::new(Timestamp::from_secs(1)), PayoutId::new(Timestamp::from_secs(2)));
        assert!(early < late);
        assert_eq!(early.to_string().parse(), Ok(early.clone()));
        for wrong in ["", "payout_", "payout_1", &early.to_string().to_lowercase(), "payout_ZZZZZZZZZZZZZZZZZZZZZZZZZZ"]
        {
            assert_eq!(wrong.parse::<PayoutId>(), Err(()), "{wrong}");
        }
    }
}
