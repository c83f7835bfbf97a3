//! Due lists: what has to be looked at by a certain time, found in the order of that time.
//!
//! Two forms. A *row* of its own leads to what is due: it sorts by its time, and is moved in the transaction that moves
//! what it leads to. An *item in an index* carries its time and its shard itself, where it is written anyway. Both are
//! sharded, so that no partition gets hot, and both cost the same however much there was before.

use base::clock::Timestamp;

use super::db::Query;
use super::{Db, Key, StoreError, Write};

/// Nothing is due later.
pub const FAR: Timestamp = Timestamp::from_secs(253_402_300_799);

/// The sort key of a row: by its time, then by its name.
pub fn row(due: Timestamp, name: impl std::fmt::Display) -> String {
    format!("{:015}#{name}", due.millis().max(0))
}

/// Rows of a partition that are due, the longest due first.
pub fn rows<'a>(table: &'a str, partition: &str, now: Timestamp, limit: usize) -> Result<Query<'a>, StoreError> {
    // '~' sorts behind every name.
    Query::between(table, partition, "0", &row(now, "~"), limit)
}

/// Where items are due by an index: the attributes `shard` and `due` are its keys, and an item without a shard has left it.
#[derive(Clone, Copy, Debug)]
pub struct InIndex<'a> {
    pub table: &'a str,
    pub index: &'static str,
    pub shard: &'static str,
    /// The key condition of what is due: `#<shard> = :shard AND #due <= :now`.
    pub is_due: &'static str,
}

impl<'a> InIndex<'a> {
    /// Items of a shard that are due, the longest due first.
    pub fn items(&self, shard: &str, now: Timestamp, limit: usize) -> Result<Query<'a>, StoreError> {
        Query::new(self.table, self.is_due, limit).index(self.index).bind("shard", shard)?.bind("now", now)
    }

    /// Moves an item's next look. `false` if somebody else did, or it has left: of two who look, one goes on.
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
