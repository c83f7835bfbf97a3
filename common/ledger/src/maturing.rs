//! Earnings that were paid with credits bought by card. A card holder may dispute its payment for months, so they mature
//! for the dispute window before a payout may take them.
//!
//! They are in the seller's balance and entries like all others. Each has a row as well, written with its entry, and
//! [`Balance::maturing`](super::seller::Balance) is the sum of the rows. When the window is over, the row is deleted. If
//! the buyer then still owes credits that were taken back, as much of the earning pays that debt: one transaction takes it
//! from the seller's balance and from the buyer's debt.
//!
//! | what happens to the card payment | the buyer | the seller |
//! |---|---|---|
//! | nothing | nothing | may be paid out after the window |
//! | disputed within the window, and won or paid back | owes for a while | the same |
//! | disputed within the window, and still owed after it | owes less by what the seller loses | loses it, at most the debt |
//! | disputed after the window | owes it | keeps it: the operator bears the loss |

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::account::{self, Change, minus};
use super::credit::{self, EntryKind};
use super::debt;
use super::earning::{Earning, seller_partition};
use super::seller::{self, About, Balance, Books};

/// Rows per transaction. Each needs at most four of its 100 writes.
const AT_ONCE: usize = 20;
/// Transactions for a caller that answers a request. The rest follows with the next request.
const ROUNDS: usize = 4;
/// Retries when others change the balance or a buyer's account at the same time.
const TRIES: usize = 20;

/// An earning that matures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maturing {
    pub request_id: RequestId,
    pub buyer: AgentId,
    /// micro-USDC
    pub amount: Usdc,
    /// When the sale ended.
    pub ended: Timestamp,
}

fn key(soul: &str, ended: Timestamp, request_id: RequestId) -> Key {
    Key::new(seller_partition(soul), format!("MATURES#{:015}#{request_id}", ended.millis().max(0)))
}

/// The write of an earning's row. Belongs to the transaction that books the earning.
pub fn put(db: &Db, earning: &Earning, amount: Usdc) -> Result<Write, StoreError> {
    let Earning { request_id, buyer, ended_at: ended, .. } = *earning;
    let row = Maturing { request_id, buyer, amount, ended };
    let put = Write::put(&db.tables.ledger, key(&earning.sold.soul, ended, request_id), &row)?;
    Ok(put.only_if_new())
}

/// At most `limit` earnings that mature and ended by `until`, oldest first.
async fn ended_by(db: &Db, soul: &str, until: Timestamp, limit: usize) -> Result<Vec<Maturing>, StoreError> {
    let last = format!("MATURES#{:015}#~", until.millis().max(0));
    db.query(Query::between(&db.tables.ledger, &seller_partition(soul), "MATURES#", &last, limit)?.latest()).await
}

/// The next earnings to mature, at most `limit`.
pub async fn next(db: &Db, soul: &str, limit: usize) -> Result<Vec<Maturing>, StoreError> {
    db.query(Query::prefixed(&db.tables.ledger, &seller_partition(soul), "MATURES#", limit)?.latest()).await
}

/// Lets the earnings mature whose window is over, up to a limit. Returns the balance afterwards, and whether more are left.
pub async fn ripen(
    db: &Db,
    soul: &str,
    mut balance: Balance,
    window: Duration,
    now: Timestamp,
) -> Result<(Balance, bool), StoreError> {
    let (mut round, mut tries) = (0, 0);
    while balance.maturing > Usdc::ZERO {
        let rows = ended_by(db, soul, now.minus(window), AT_ONCE).await?;
        if rows.is_empty() || round == ROUNDS {
            return Ok((balance, !rows.is_empty()));
        }
        let (after, writes) = matured(db, soul, balance, &rows, now).await?;
        match db.transact(&writes).await {
            Ok(()) => (balance, round) = (after, round + 1),
            Err(WriteError::Refused(_)) if tries < TRIES => {
                tries += 1;
                balance = seller::load(db, soul).await?;
            }
            Err(WriteError::Refused(_)) => {
                return Err(StoreError::new("too many concurrent changes of the seller's balance"));
            }
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Ok((balance, false))
}

/// The balance after these rows have matured, and the writes.
async fn matured(
    db: &Db,
    soul: &str,
    balance: Balance,
    rows: &[Maturing],
    now: Timestamp,
) -> Result<(Balance, Vec<Write>), StoreError> {
    let mut debts: BTreeMap<AgentId, Usdc> = BTreeMap::new();
    for row in rows {
        if let Entry::Vacant(unread) = debts.entry(row.buyer) {
            let account = account::load(db, row.buyer).await?;
            // The buyer's own credits pay first.
            let account = match account.debt {
                Usdc::ZERO => account,
                _ => debt::collect(db, row.buyer, account, now).await?,
            };
            unread.insert(account.debt);
        }
    }
    let mut books = Books::open(balance);
    let mut taken: BTreeMap<AgentId, (Usdc, RequestId)> = BTreeMap::new();
    let less = |from: Usdc, amount: Usdc| {
        from.checked_sub(amount).ok_or_else(|| StoreError::new("a seller's balance has less than is taken from it"))
    };
    for row in rows {
        books.balance.maturing = less(books.balance.maturing, row.amount)?;
        let owed = debts.entry(row.buyer).or_default();
        let back = row.amount.min(*owed);
        if back == Usdc::ZERO {
            continue;
        }
        *owed = less(*owed, back)?;
        books.balance.total_earnings = less(books.balance.total_earnings, back)?;
        let about = About { cause: row.request_id.to_string(), ..About::default() };
        books.book(seller::EntryKind::CardReversal, minus(back)?, about, row.ended, now)?;
        let (sum, _) = taken.entry(row.buyer).or_insert((Usdc::ZERO, row.request_id));
        *sum = sum.checked_add(back).ok_or_else(|| StoreError::new("a debt overflows"))?;
    }
    let mut writes = books.writes(db, soul)?;
    for row in rows {
        let delete = Write::delete(&db.tables.ledger, key(soul, row.ended, row.request_id));
        writes.push(delete.only_if("attribute_exists(#pk)"));
    }
    for (buyer, (amount, first)) in taken {
        let change = Change { debt: minus(amount)?, ..Change::default() };
        let cause = format!("matured_{first}");
        writes.extend(credit::change(db, buyer, EntryKind::DebtPaid, change, &cause, None, now)?);
    }
    Ok((books.balance, writes))
}
