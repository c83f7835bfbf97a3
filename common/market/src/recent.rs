//! Recent purchases of a soul's text: counts per hour for two days and per day for a month (UTC), in one small item per
//! soul.
//!
//! "Last 24 hours" means the last 24 clock hours including the current one, and "last 7 days" the last 7 calendar days
//! including today. So both may be shorter by the part of the current hour or day that is still to come.

use base::clock::Timestamp;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::soul::partition;

const HOUR_SECS: i64 = 3600;
const DAY_SECS: i64 = 24 * HOUR_SECS;
const KEPT_HOURS: i64 = 48;
const KEPT_DAYS: i64 = 31;

/// The stored counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recent {
    /// Hours since 1970, with their counts.
    hours: Vec<(i64, u32)>,
    /// Days since 1970, with their counts.
    days: Vec<(i64, u32)>,
}

/// The figures on a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purchases {
    pub last_24h: u64,
    pub last_7d: u64,
    pub last_30d: u64,
}

impl Recent {
    /// Counts one purchase.
    pub fn count(&mut self, bought_at: Timestamp) {
        for (counts, slot) in [(&mut self.hours, HOUR_SECS), (&mut self.days, DAY_SECS)] {
            let slot = bought_at.secs().div_euclid(slot);
            match counts.binary_search_by_key(&slot, |(slot, _)| *slot) {
                Ok(at) => counts[at].1 += 1,
                Err(at) => counts.insert(at, (slot, 1)),
            }
        }
    }

    /// Drops counts that are too old to be shown.
    pub fn forget(&mut self, now: Timestamp) {
        self.hours.retain(|(hour, _)| *hour > now.secs().div_euclid(HOUR_SECS) - KEPT_HOURS);
        self.days.retain(|(day, _)| *day > now.secs().div_euclid(DAY_SECS) - KEPT_DAYS);
    }

    pub fn purchases(&self, now: Timestamp) -> Purchases {
        let since = |counts: &[(i64, u32)], first: i64| -> u64 {
            counts.iter().filter(|(slot, _)| *slot > first).map(|(_, count)| u64::from(*count)).sum()
        };
        let (hour, day) = (now.secs().div_euclid(HOUR_SECS), now.secs().div_euclid(DAY_SECS));
        Purchases {
            last_24h: since(&self.hours, hour - 24),
            last_7d: since(&self.days, day - 7),
            last_30d: since(&self.days, day - 30),
        }
    }

    pub fn write(&self, db: &Db, soul: &str) -> Result<Write, StoreError> {
        Write::put(&db.tables.souls, key(soul), self)
    }
}

fn key(soul: &str) -> Key {
    Key::new(partition(soul), "RECENT")
}

/// The counts by a consistent read.
pub async fn load_latest(db: &Db, soul: &str) -> Result<Recent, StoreError> {
    Ok(db.get_latest(&db.tables.souls, key(soul)).await?.unwrap_or_default())
}

/// Purchases of a soul's text, by an eventually consistent read.
pub async fn purchases(db: &Db, soul: &str, now: Timestamp) -> Result<Purchases, StoreError> {
    let recent: Option<Recent> = db.get(&db.tables.souls, key(soul)).await?;
    Ok(recent.unwrap_or_default().purchases(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_purchases_are_dropped() {
        let now = Timestamp::from_secs(1_795_249_530);
        let mut recent = Recent::default();
        // In any order, some of them late.
        for hours in [0, 400, 23, 25, 160, 0, 700, 800] {
            recent.count(Timestamp::from_secs(now.secs() - hours * HOUR_SECS));
        }
        assert_eq!(recent.purchases(now), Purchases { last_24h: 3, last_7d: 4, last_30d: 7 });
        let before = recent.purchases(now);
        recent.forget(now);
        assert_eq!(recent.purchases(now), before);
        assert!(recent.hours.len() <= 3 && recent.days.len() <= 5, "{recent:?}");
        assert_eq!(recent.purchases(Timestamp::from_secs(now.secs() + 40 * DAY_SECS)), Purchases::default());
    }
}
