//! Due lists: entities that must be looked at by a certain time, sorted by that time.
//!
//! There are two forms. A *row* is an item of its own that points to the entity; it is moved in the same transaction as the
//! entity. An *item in an index* is the entity itself, with its due time and shard as attributes. Both are sharded, so that
//! no partition gets hot. The cost of both does not grow with the number of past entries.

use base::clock::Timestamp;

use super::db::Query;
use super::{Db, Key, StoreError, Write};

/// Later than any due time (end of the year 9999).
pub const FAR: Timestamp = Timestamp::from_secs(253_402_300_799);

/// The sort key of a row: due time, then name.
pub fn row(due: Timestamp, name: impl std::fmt::Display) -> String {
    format!("{:015}#{name}", due.millis().max(0))
}

/// Due rows of a partition, the longest due first.
pub fn rows<'a>(table: &'a str, partition: &str, now: Timestamp, limit: usize) -> Result<Query<'a>, StoreError> {
    // '~' sorts after every character of a name.
    Query::between(table, partition, "0", &row(now, "~"), limit)
}

/// A due list in an index. Its keys are the attributes `shard` and `due`; an item without a shard is not in the list.
#[derive(Clone, Copy, Debug)]
pub struct InIndex<'a> {
    pub table: &'a str,
    pub index: &'static str,
    pub shard: &'static str,
    /// The key condition of due items: `#<shard> = :shard AND #due <= :now`.
    pub is_due: &'static str,
}

impl<'a> InIndex<'a> {
    /// Due items of a shard, the longest due first.
    pub fn items(&self, shard: &str, now: Timestamp, limit: usize) -> Result<Query<'a>, StoreError> {
        Query::new(self.table, self.is_due, limit).index(self.index).bind("shard", shard)?.bind("now", now)
    }

    /// Sets an item's next due time. False if it was changed or removed meanwhile: of two concurrent workers, one
    /// continues.
    pub async fn look_again_at(&self, db: &Db, key: Key, was: Timestamp, due: Timestamp) -> Result<bool, StoreError> {
        let write = Write::update(self.table, key, "SET #due = :due")
            .only_if(&format!("#due = :was AND attribute_exists(#{})", self.shard))
            .bind("due", due)?
            .bind("was", was)?;
        db.write_if(write).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_sort_by_time_and_are_due_to_the_millisecond() {
        let at = Timestamp::from_millis;
        assert!(row(at(9), "z") < row(at(10), "a"));
        assert_eq!(row(at(-1), "a"), row(at(0), "a"));
        for name in ["payout_01ZZ", "zeta#zeta", "~"] {
            assert!(row(at(5), name) <= row(at(5), "~") && row(at(6), name) > row(at(5), "~"), "{name}");
        }
    }
}
