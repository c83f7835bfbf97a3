//! What a seller has: a balance, and the immutable entries that it is the sum of.
//!
//! The balance changes only together with its entries, in one transaction, and only from the revision it was read at:
//! whoever lost a race reads again. So every entry knows the balance behind it, entries are numbered without a gap, and
//! whatever else is written in such a transaction (reputation, counters, a payout) has one writer at a time.

use base::clock::Timestamp;
use base::ids::ReceiptId;
use base::money::Usdc;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::earning::seller_partition;
use super::payout::PayoutId;

/// A seller's balance, in micro-USDC. A seller that never sold has an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// Earned and not asked for: what a payout may take.
    pub pending: Usdc,
    /// Earned, ever.
    pub total_earnings: Usdc,
    /// Services done, ever.
    pub total_jobs: u64,
    /// Paid out, ever: only what arrived.
    #[serde(default)]
    pub paid_out: Usdc,
    /// Number of the latest entry.
    pub entries: u64,
    /// Counts the changes of this item.
    pub revision: u64,
    /// When the latest entry was booked: the next is not booked before it, whatever clock its writer has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booked: Option<Timestamp>,
    /// The payout that is under way; there is never a second one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<PayoutId>,
}

/// Why a balance changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A service was done.
    Sale,
    /// The soul's text was bought.
    Purchase,
    /// A sale failed and its buyer was paid back: nothing earned, kept for the record.
    Failed,
    /// Asked for as a payout.
    Payout,
    /// A payout that came to nothing.
    PayoutReturned,
}

/// One change of a balance. Never changed itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// From 1, without gaps.
    pub number: u64,
    pub kind: EntryKind,
    /// micro-USDC, with its sign
    pub amount: i64,
    /// What the balance came to with it.
    pub balance: Usdc,
    /// When it was booked.
    pub at: Timestamp,
    /// When what it is about happened.
    pub happened: Timestamp,
    #[serde(flatten)]
    pub about: About,
}

/// What an entry is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The job's request id, or the payout's id.
    pub cause: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt_id: Option<ReceiptId>,
    /// The service's slug.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// What the buyer paid, in micro-USDC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Usdc>,
    /// The platform's part of it, in micro-USDC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fee: Option<Usdc>,
}

/// A change of a balance that is not written yet.
#[derive(Clone, Debug)]
pub struct Books {
    before: u64,
    pub balance: Balance,
    pub entries: Vec<Entry>,
}

impl Books {
    /// Opens the books at the balance that was read.
    pub fn open(balance: Balance) -> Books {
        Books {
            before: balance.revision,
            balance: Balance { revision: balance.revision + 1, ..balance },
            entries: Vec::new(),
        }
    }

    /// Books an entry. Refused where it would leave less than nothing, or more than can be counted.
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

    /// The writes: the balance first, which is refused if another changed it since it was read, then its entries.
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

/// The balance as the latest write left it.
pub async fn load(db: &Db, soul: &str) -> Result<Balance, StoreError> {
    Ok(db.get_latest(&db.tables.ledger, balance_key(soul)).await?.unwrap_or_default())
}

/// Where a statement goes on: behind this entry.
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
    // '!' sorts before every digit and behind the end: the first text behind an entry's own key.
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
        /// Whatever is booked, with whatever clocks: entries add up, never below nothing, in the order of their keys.
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
