//! A random generator, so that a run can be repeated from its seed; and counters of what it decided.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// SplitMix64.
pub struct Dice(Mutex<u64>);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(Mutex::new(seed))
    }

    /// A number below `sides`.
    pub fn roll(&self, sides: u64) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    /// True with this chance, in percent.
    pub fn percent(&self, chance: u64) -> bool {
        self.roll(100) < chance
    }

    pub fn millis(&self, below: u64) -> Duration {
        Duration::from_millis(self.roll(below))
    }

    pub fn pick<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.roll(from.len().max(1) as u64)).unwrap();
        from.get(index)
    }
}

/// Counts of events, by name.
#[derive(Default)]
pub struct Figures(Mutex<BTreeMap<String, u64>>);

impl Figures {
    pub fn count(&self, what: &str) {
        self.add(what, 1);
    }

    pub fn add(&self, what: &str, times: u64) {
        *self.0.lock().unwrap().entry(what.to_owned()).or_default() += times;
    }

    pub fn take_from(&self, other: &Figures) {
        for (what, times) in other.0.lock().unwrap().iter() {
            self.add(what, *times);
        }
    }

    /// All counts whose name starts with this prefix.
    pub fn all(&self, prefix: &str) -> Vec<(String, u64)> {
        let figures = self.0.lock().unwrap();
        let of = figures.iter().filter_map(|(name, times)| Some((name.strip_prefix(prefix)?.to_owned(), *times)));
        of.collect()
    }

    pub fn sum(&self, prefix: &str) -> u64 {
        self.all(prefix).iter().map(|(_, times)| times).sum()
    }
}
