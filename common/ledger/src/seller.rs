//! A seller's balance, and the immutable entries that it is the sum of.
//!
//! The balance changes only together with its entries, in one transaction, and only from the revision that was read; after
//! a lost race, read again. So every entry holds the balance after it, entries are numbered without gaps, and
//! anything else in such a transaction (reputation, counters, a payout) has one writer at a time.

use base::clock::Timestamp;
use base::ids::ReceiptId;
use base::money::Usdc;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::earning::seller_partition;
use super::payout::PayoutId;

/// A seller's balance, in micro-USDC. A seller without sales has an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// Earned and not yet requested.
    pub pending: Usdc,
    /// The part of it that no payout may take yet (see [`super::maturing`]).
    #[serde(default)]
    pub maturing: Usdc,
    /// Total earned.
    pub total_earnings: Usdc,
    /// Total services completed.
    pub total_jobs: u64,
    /// Total paid out; only what arrived.
    #[serde(default)]
    pub paid_out: Usdc,
    /// Number of the latest entry.
    pub entries: u64,
    /// Number of changes of this item.
    pub revision: u64,
    /// When the latest entry was booked. The next is never booked earlier, even if its writer's clock is behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booked: Option<Timestamp>,
    /// The open payout. There is at most one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<PayoutId>,
}

impl Balance {
    /// What a payout may take.
    pub fn available(&self) -> Usdc {
        self.pending.checked_sub(self.maturing).unwrap_or_default()
    }
}

/// Why a balance changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A service was completed.
    Sale,
    /// The soul's text was bought.
    Purchase,
    /// A sale was paid by card, and the card payment was taken back.
    CardReversal,
    /// A sale failed and its buyer was refunded. Nothing earned, kept for the record.
    Failed,
    /// A payout was requested.
    Payout,
    /// A payout failed; its amount is back.
    PayoutReturned,
}

/// One change of a balance. Immutable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// From 1, without gaps.
    pub number: u64,
    pub kind: EntryKind,
    /// micro-USDC, signed
    pub amount: i64,
    /// The balance after this entry.
    pub balance: Usdc,
    /// When it was booked.
    pub at: Timestamp,
    /// When the sale or payout happened.
    pub happened: Timestamp,
    #[serde(flatten)]
    pub about: About,
}

/// The subject of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The job's request id, or the payout's id.
    pub cause: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt_id: Option<ReceiptId>,
    /// The service's slug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The part of the earning that was paid by card, in micro-USDC. It matures before a payout may take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<Usdc>,
    /// The price the buyer paid, in micro-USDC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Usdc>,
    /// The platform's fee, in micro-USDC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fee: Option<Usdc>,
}

/// A change of a balance, not yet written.
#[derive(Clone, Debug)]
pub struct Books {
    before: u64,
    pub balance: Balance,
    pub entries: Vec<Entry>,
}

impl Books {
    /// Starts from the balance that was read.
    pub fn open(balance: Balance) -> Books {
        Books {
            before: balance.revision,
            balance: Balance { revision: balance.revision + 1, ..balance },
            entries: Vec::new(),
        }
    }

    /// Adds an entry. An error if the balance would become negative or overflow.
    pub fn book(
        &mut self,
        kind: EntryKind,
        amount: i64,
        about: About,
        happened: Timestamp,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let part = Usdc::from_micro(amount.unsigned_abs());
        let pending = self.balance.pending;
        let after = if amount < 0 { pending.checked_sub(part) } else { pending.checked_add(part) };
        let after =
            after.ok_or_else(|| StoreError::new(format_args!("{pending} and {amount} micro-USDC do not add up")))?;
        let at = self.balance.booked.map_or(now, |booked| booked.max(now));
        self.balance.pending = after;
        self.balance.entries += 1;
        self.balance.booked = Some(at);
        let number = self.balance.entries;
        self.entries.push(Entry { number, kind, amount, balance: after, at, happened, about });
        Ok(())
    }

    /// The writes: first the balance (refused if somebody else changed it), then its entries.
    pub fn writes(&self, db: &Db, soul: &str) -> Result<Vec<Write>, StoreError> {
        let table = &db.tables.ledger;
        let balance = Write::put(table, balance_key(soul), &self.balance)?;
        let mut writes = vec![match self.before {
            0 => balance.only_if_new(),
            before => balance.only_if("#revision = :before").bind("before", before)?,
        }];
        for entry in &self.entries {
            let key = Key::new(seller_partition(soul), entry_sort(entry.at, entry.number));
            writes.push(Write::put(table, key, entry)?.only_if_new());
        }
        Ok(writes)
    }
}

fn balance_key(soul: &str) -> Key {
    Key::new(seller_partition(soul), "BALANCE")
}

fn entry_sort(at: Timestamp, number: u64) -> String {
    format!("ENTRY#{:015}#{number:012}", at.millis().max(0))
}

/// The balance, from a strongly consistent read.
pub async fn load(db: &Db, soul: &str) -> Result<Balance, StoreError> {
    Ok(db.get_latest(&db.tables.ledger, balance_key(soul)).await?.unwrap_or_default())
}

/// The entry after which a statement continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct After {
    pub at: Timestamp,
    pub number: u64,
}

/// At most `limit` entries booked from `from` up to (not including) `to`, oldest first.
pub async fn entries(
    db: &Db,
    soul: &str,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    after: Option<After>,
    limit: usize,
) -> Result<Vec<Entry>, StoreError> {
    // '!' sorts before every digit and after the end of a key, so this is the first key after the entry's own.
    let first = after.map(|after| format!("{}!", entry_sort(after.at, after.number)));
    let since = entry_sort(from.unwrap_or(Timestamp::from_millis(0)), 0);
    let first = first.map_or(since.clone(), |first| first.max(since));
    let last = to.map_or("ENTRY$".to_owned(), |to| entry_sort(to, 0));
    db.query(Query::between(&db.tables.ledger, &seller_partition(soul), &first, &last, limit)?.latest()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// For any amounts and clocks: entries add up, the balance is never negative, and keys are in order.
        #[test]
        fn entries_always_add_up(steps in prop::collection::vec((-50i64..50, -5i64..20), 0..60)) {
            let mut balance = Balance::default();
            let (mut sum, mut now, mut keys) = (0i64, 1_000_000i64, Vec::new());
            for (amount, passed) in steps {
                now += passed;
                let mut books = Books::open(balance.clone());
                let at = Timestamp::from_millis(now);
                let booked = books.book(EntryKind::Sale, amount, About::default(), at, at);
                prop_assert_eq!(booked.is_ok(), sum + amount >= 0);
                if booked.is_ok() {
                    sum += amount;
                    balance = books.balance;
                    let entry = &books.entries[0];
                    prop_assert_eq!(entry.balance, balance.pending);
                    keys.push(entry_sort(entry.at, entry.number));
                }
                prop_assert_eq!(balance.pending.micro(), sum.unsigned_abs());
            }
            prop_assert!(keys.is_sorted());
            prop_assert_eq!(balance.revision, keys.len() as u64);
        }
    }

    #[test]
    fn an_overflow_is_refused() {
        let mut books = Books::open(Balance { pending: Usdc::from_micro(u64::MAX), ..Balance::default() });
        let now = Timestamp::from_secs(1);
        assert!(books.book(EntryKind::Sale, 1, About::default(), now, now).is_err());
        assert!(books.entries.is_empty());
    }
}
