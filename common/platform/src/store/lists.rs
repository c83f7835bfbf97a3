//! Which lists of what is due may hold anything: so that nobody looks through empty ones every minute.
//!
//! One item of the ledger, `SWEEP` / `LISTS`, has two times for each list. A writer announces until when it may put
//! something in ([`Announced`]); while that lasts, the list is swept. After it, a sweep that finds nothing in the list, due
//! or not, writes down when it began to look; until somebody announces something, the list is left out.
//!
//! ```text
//! announced     |<------- ANNOUNCED_FOR ------->|
//! puts          |<---------------------->|        at least SLACK before the end
//! found empty                                  |  only counts if the look began after it
//! ```
//!
//! So whatever was put in is seen by a look that begins after the announced time, and nothing is put in behind it
//! unannounced. A list is looked at every [`LOOK_ANYWAY`] all the same: functions of an older version announce nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use base::clock::Timestamp;
use serde::Deserialize;

use super::{Db, Key, StoreError, Write, WriteError};

/// How long an announcement holds: a process writes one so often at most, and a list is swept so long after its last.
const ANNOUNCED_FOR: Duration = Duration::from_secs(30 * 60);
/// What is left of it when a writer puts something in: more than clocks differ, a function runs and an index trails.
const SLACK: Duration = Duration::from_secs(5 * 60);
/// A list that was found empty is looked at again after so long, whatever was announced.
const LOOK_ANYWAY: Duration = Duration::from_secs(10 * 60);

/// How often it is asked what this deployment cannot do ([`tools::availability`]).
const AVAILABILITY_EVERY: Duration = Duration::from_secs(5 * 60);

/// A list that the scheduler sweeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum List {
    /// Open jobs of our own tools.
    Tools,
    /// Open jobs of souls.
    Souls,
    /// Deliveries to webhooks.
    Outbox,
    /// Souls that are not found as they are.
    Index,
    /// Services whose test cases are to be run.
    Trials,
    /// Settled payments that are looked at again.
    Settled,
}

impl List {
    pub const ALL: [List; 6] = [List::Tools, List::Souls, List::Outbox, List::Index, List::Trials, List::Settled];

    pub const fn name(self) -> &'static str {
        match self {
            List::Tools => "tools",
            List::Souls => "souls",
            List::Outbox => "outbox",
            List::Index => "index",
            List::Trials => "trials",
            List::Settled => "settled",
        }
    }
}

/// What this process announced: until when, of each list.
#[derive(Clone, Debug, Default)]
pub struct Announced(Arc<[AtomicI64; List::ALL.len()]>);

impl Announced {
    fn of(&self, list: List) -> &AtomicI64 {
        &self.0[list as usize]
    }

    /// Until when a writer has to announce first that it may put something in; `None` if it did lately.
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

/// The write that announces something. Refused if as much was announced already.
pub(super) fn announce(db: &Db, list: List, until: Timestamp) -> Result<Write, StoreError> {
    let attribute = format!("#{}_until", list.name());
    Write::update(&db.tables.ledger, key(), &format!("SET {attribute} = :until"))
        .only_if(&format!("attribute_not_exists({attribute}) OR {attribute} < :until"))
        .bind("until", until)
}

/// What is known of the lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Known {
    tools_until: Option<Timestamp>,
    tools_empty: Option<Timestamp>,
    souls_until: Option<Timestamp>,
    souls_empty: Option<Timestamp>,
    outbox_until: Option<Timestamp>,
    outbox_empty: Option<Timestamp>,
    index_until: Option<Timestamp>,
    index_empty: Option<Timestamp>,
    trials_until: Option<Timestamp>,
    trials_empty: Option<Timestamp>,
    settled_until: Option<Timestamp>,
    settled_empty: Option<Timestamp>,
    availability_asked: Option<Timestamp>,
}

impl Known {
    /// As the latest writes left it.
    pub async fn load(db: &Db) -> Result<Known, StoreError> {
        Ok(db.get_latest(&db.tables.ledger, key()).await?.unwrap_or_default())
    }

    /// Until when something was announced, and when the list was last found empty.
    fn of(&self, list: List) -> (Option<Timestamp>, Option<Timestamp>) {
        match list {
            List::Tools => (self.tools_until, self.tools_empty),
            List::Souls => (self.souls_until, self.souls_empty),
            List::Outbox => (self.outbox_until, self.outbox_empty),
            List::Index => (self.index_until, self.index_empty),
            List::Trials => (self.trials_until, self.trials_empty),
            List::Settled => (self.settled_until, self.settled_empty),
        }
    }

    /// Whether somebody may be putting something in.
    pub fn is_announced(&self, list: List, now: Timestamp) -> bool {
        self.of(list).0.is_some_and(|until| now <= until)
    }

    /// Whether it is time to ask again what this deployment cannot do.
    pub fn is_availability_due(&self, now: Timestamp) -> bool {
        self.availability_asked.is_none_or(|asked| asked.plus(AVAILABILITY_EVERY) <= now)
    }

    /// Whether there is nothing in the list, and nothing will be before it is announced.
    pub fn is_empty(&self, list: List, now: Timestamp) -> bool {
        let (until, empty) = self.of(list);
        empty.is_some_and(|empty| until.is_none_or(|until| until < empty) && now < empty.plus(LOOK_ANYWAY))
    }
}

/// Writes down that a look which began then found nothing in a list.
pub async fn found_empty(db: &Db, list: List, began: Timestamp) -> Result<(), StoreError> {
    note(db, &format!("{}_empty", list.name()), began).await
}

/// Writes down when it was asked what this deployment cannot do.
pub async fn availability_asked(db: &Db, now: Timestamp) -> Result<(), StoreError> {
    note(db, "availability_asked", now).await
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
    fn a_writer_announces_itself_before_the_last_announcement_runs_out() {
        let announced = Announced::default();
        assert_eq!(announced.due(List::Souls, at(0)), Some(at(30)));
        announced.note(List::Souls, at(30));
        assert_eq!(announced.clone().due(List::Souls, at(25)), None);
        assert_eq!(announced.due(List::Souls, at(26)), Some(at(56)));
        assert_eq!(announced.due(List::Tools, at(0)), Some(at(30)), "each list by itself");
        // One that came late does not take back what another one announced.
        announced.note(List::Souls, at(1));
        assert_eq!(announced.due(List::Souls, at(25)), None);
    }

    #[test]
    fn a_list_is_left_out_only_after_a_look_behind_all_announcements() {
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
