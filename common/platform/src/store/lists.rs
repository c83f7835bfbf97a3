//! Tells the scheduler which due lists may contain anything, so that empty ones are not swept every minute.
//!
//! One item of the ledger table, `SWEEP` / `LISTS`, has two times for each list. A writer *announces* until when it may add
//! entries ([`Announced`]); until that time, the list is swept. After it, a sweep that finds the list empty (due or not)
//! records when it began. From then on the list is skipped, until a writer announces again.
//!
//! ```text
//! announced     |<------- ANNOUNCED_FOR ------->|
//! puts          |<---------------------->|        at least SLACK before the end
//! found empty                                  |  only counts if the sweep began after it
//! ```
//!
//! So a sweep that begins after the announced time sees every entry, and nothing is added later without a new announcement.
//! Every list is swept at least every [`LOOK_ANYWAY`]: functions of an older version do not announce.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use base::clock::Timestamp;
use serde::Deserialize;

use super::{Db, Key, StoreError, Write, WriteError};

/// Validity of an announcement. A process writes one at most this often, and a list is swept this long after the
/// last.
const ANNOUNCED_FOR: Duration = Duration::from_secs(30 * 60);
/// The announcement must be valid for at least this long when a writer adds an entry. Covers clock differences, a
/// function's run time and the delay of an index.
const SLACK: Duration = Duration::from_secs(5 * 60);
/// A list that was found empty is swept again after this time, even without an announcement.
const LOOK_ANYWAY: Duration = Duration::from_secs(10 * 60);

/// The unavailable tools are determined again at this interval (see `tools::availability`).
const AVAILABILITY_EVERY: Duration = Duration::from_secs(5 * 60);

/// The worker does its chores at this interval.
const CHORES_EVERY: Duration = Duration::from_secs(3600);

/// A due list that the scheduler sweeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum List {
    /// Open jobs of built-in tools.
    Tools,
    /// Open jobs of souls (sellers).
    Souls,
    /// Open jobs of the browser.
    Browser,
    /// Webhook deliveries.
    Outbox,
    /// Souls whose search index entries are out of date.
    Index,
    /// Services whose test cases are due to run.
    Trials,
    /// Settled payments that are checked again for finality.
    Settled,
}

impl List {
    pub const ALL: [List; 7] =
        [List::Tools, List::Souls, List::Browser, List::Outbox, List::Index, List::Trials, List::Settled];

    pub const fn name(self) -> &'static str {
        match self {
            List::Tools => "tools",
            List::Souls => "souls",
            List::Browser => "browser",
            List::Outbox => "outbox",
            List::Index => "index",
            List::Trials => "trials",
            List::Settled => "settled",
        }
    }
}

/// The announcements of this process: for each list, until when.
#[derive(Clone, Debug, Default)]
pub struct Announced(Arc<[AtomicI64; List::ALL.len()]>);

impl Announced {
    fn of(&self, list: List) -> &AtomicI64 {
        &self.0[list as usize]
    }

    /// The time to announce before adding an entry; `None` if the last announcement is recent enough.
    pub(super) fn due(&self, list: List, now: Timestamp) -> Option<Timestamp> {
        let until = Timestamp::from_millis(self.of(list).load(Ordering::Relaxed));
        (until < now.plus(SLACK)).then(|| now.plus(ANNOUNCED_FOR))
    }

    pub(super) fn note(&self, list: List, until: Timestamp) {
        self.of(list).fetch_max(until.millis(), Ordering::Relaxed);
    }
}

fn key() -> Key {
    Key::new("SWEEP", "LISTS")
}

/// The write of an announcement. Refused if the same or a later time is announced already.
pub(super) fn announce(db: &Db, list: List, until: Timestamp) -> Result<Write, StoreError> {
    let attribute = format!("#{}_until", list.name());
    Write::update(&db.tables.ledger, key(), &format!("SET {attribute} = :until"))
        .only_if(&format!("attribute_not_exists({attribute}) OR {attribute} < :until"))
        .bind("until", until)
}

/// The stored times of all lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Known {
    tools_until: Option<Timestamp>,
    tools_empty: Option<Timestamp>,
    souls_until: Option<Timestamp>,
    souls_empty: Option<Timestamp>,
    browser_until: Option<Timestamp>,
    browser_empty: Option<Timestamp>,
    outbox_until: Option<Timestamp>,
    outbox_empty: Option<Timestamp>,
    index_until: Option<Timestamp>,
    index_empty: Option<Timestamp>,
    trials_until: Option<Timestamp>,
    trials_empty: Option<Timestamp>,
    settled_until: Option<Timestamp>,
    settled_empty: Option<Timestamp>,
    availability_asked: Option<Timestamp>,
    chores_asked: Option<Timestamp>,
}

impl Known {
    /// Strongly consistent.
    pub async fn load(db: &Db) -> Result<Known, StoreError> {
        Ok(db.get_latest(&db.tables.ledger, key()).await?.unwrap_or_default())
    }

    /// Until when additions are announced, and when the list was last found empty.
    fn of(&self, list: List) -> (Option<Timestamp>, Option<Timestamp>) {
        match list {
            List::Tools => (self.tools_until, self.tools_empty),
            List::Souls => (self.souls_until, self.souls_empty),
            List::Browser => (self.browser_until, self.browser_empty),
            List::Outbox => (self.outbox_until, self.outbox_empty),
            List::Index => (self.index_until, self.index_empty),
            List::Trials => (self.trials_until, self.trials_empty),
            List::Settled => (self.settled_until, self.settled_empty),
        }
    }

    /// Whether a writer may be adding entries now.
    pub fn is_announced(&self, list: List, now: Timestamp) -> bool {
        self.of(list).0.is_some_and(|until| now <= until)
    }

    /// Whether the unavailable tools should be determined again.
    pub fn is_availability_due(&self, now: Timestamp) -> bool {
        self.availability_asked.is_none_or(|asked| asked.plus(AVAILABILITY_EVERY) <= now)
    }

    /// Whether the worker should do its chores again.
    pub fn are_chores_due(&self, now: Timestamp) -> bool {
        self.chores_asked.is_none_or(|asked| asked.plus(CHORES_EVERY) <= now)
    }

    /// Whether the list can be skipped: it was found empty after the last announcement ended, and recently enough.
    pub fn is_empty(&self, list: List, now: Timestamp) -> bool {
        let (until, empty) = self.of(list);
        empty.is_some_and(|empty| until.is_none_or(|until| until < empty) && now < empty.plus(LOOK_ANYWAY))
    }
}

/// Records that a sweep which began at this time found the list empty.
pub async fn found_empty(db: &Db, list: List, began: Timestamp) -> Result<(), StoreError> {
    note(db, &format!("{}_empty", list.name()), began).await
}

/// Records when the unavailable tools were determined.
pub async fn availability_asked(db: &Db, now: Timestamp) -> Result<(), StoreError> {
    note(db, "availability_asked", now).await
}

/// Records when the worker was asked for its chores.
pub async fn chores_asked(db: &Db, now: Timestamp) -> Result<(), StoreError> {
    note(db, "chores_asked", now).await
}

async fn note(db: &Db, attribute: &str, at: Timestamp) -> Result<(), StoreError> {
    let set = format!("SET #{attribute} = :at");
    match db.write(Write::update(&db.tables.ledger, key(), &set).bind("at", at)?).await {
        Ok(_) | Err(WriteError::Refused(_)) => Ok(()),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_secs(1_795_000_000 + minutes * 60)
    }

    #[test]
    fn writers_renew_an_announcement_before_it_runs_out() {
        let announced = Announced::default();
        assert_eq!(announced.due(List::Souls, at(0)), Some(at(30)));
        announced.note(List::Souls, at(30));
        assert_eq!(announced.clone().due(List::Souls, at(25)), None);
        assert_eq!(announced.due(List::Souls, at(26)), Some(at(56)));
        assert_eq!(announced.due(List::Tools, at(0)), Some(at(30)), "each list by itself");
        // A later note of an earlier time does not shorten an announcement.
        announced.note(List::Souls, at(1));
        assert_eq!(announced.due(List::Souls, at(25)), None);
    }

    #[test]
    fn a_list_is_skipped_only_if_found_empty_after_the_last_announcement() {
        let known = |until: Option<i64>, empty: Option<i64>| Known {
            tools_until: until.map(at),
            tools_empty: empty.map(at),
            ..Known::default()
        };
        let list = List::Tools;
        assert!(!known(None, None).is_empty(list, at(0)), "nobody ever looked");
        assert!(known(None, Some(0)).is_empty(list, at(1)));
        assert!(!known(None, Some(0)).is_empty(list, at(10)), "an older version announces nothing");
        for (until, is_empty) in [(29, true), (30, false), (31, false), (60, false)] {
            assert_eq!(known(Some(until), Some(30)).is_empty(list, at(31)), is_empty, "{until}");
        }
        assert!(known(Some(30), None).is_announced(list, at(30)) && !known(Some(30), None).is_announced(list, at(31)));
        assert!(!known(None, Some(0)).is_empty(List::Souls, at(1)), "each list by itself");
    }
}
