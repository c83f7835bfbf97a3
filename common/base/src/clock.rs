//! Time as a value: pure functions take [`Timestamp`]s; only handlers read the [`Clock`].

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{Datelike, Timelike};
use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z. Stored as an integer, printed as ISO 8601 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_millis(millis: i64) -> Timestamp {
        Timestamp(millis)
    }

    pub const fn from_secs(secs: i64) -> Timestamp {
        Timestamp(secs.saturating_mul(1000))
    }

    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Whole seconds, rounded down.
    pub const fn secs(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// The year in UTC.
    pub fn year(self) -> u16 {
        chrono::DateTime::from_timestamp_millis(self.0).and_then(|time| u16::try_from(time.year()).ok()).unwrap_or(1970)
    }

    pub fn plus(self, duration: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    pub fn minus(self, duration: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// `2026-11-21T08:15:30.250Z`
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(time) = chrono::DateTime::from_timestamp_millis(self.0) else { return write!(f, "{} ms", self.0) };
        let Ok(year @ 0..=9999) = u32::try_from(time.year()) else {
            return write!(f, "{}", time.format("%Y-%m-%dT%H:%M:%S%.3fZ"));
        };
        // Written by hand because every log line and price has a time, and chrono parses its format string each time.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let parts = [
            (0, 4, year),
            (5, 2, time.month()),
            (8, 2, time.day()),
            (11, 2, time.hour()),
            (14, 2, time.minute()),
            (17, 2, time.second()),
            (20, 3, time.timestamp_subsec_millis()),
        ];
        for (begin, digits, mut number) in parts {
            for place in text[begin..begin + digits].iter_mut().rev() {
                *place = b'0' + (number % 10) as u8;
                number /= 10;
            }
        }
        f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// The current time: from the machine, or a fixed one in tests.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    pinned: Option<Arc<AtomicI64>>,
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Clock {
        Clock::default()
    }

    /// A clock that stays at a time until [`Clock::advance`] moves it.
    pub fn pinned(at: Timestamp) -> Clock {
        Clock { pinned: Some(Arc::new(AtomicI64::new(at.0))) }
    }

    pub fn now(&self) -> Timestamp {
        match &self.pinned {
            Some(hand) => Timestamp(hand.load(Ordering::SeqCst)),
            None => {
                let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
            }
        }
    }

    /// Moves a pinned clock. Has no effect on the machine's clock.
    pub fn advance(&self, by: Duration) {
        if let Some(hand) = &self.pinned {
            hand.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
        }
    }
}

/// A cached value with the time it was read, shared within this process.
#[derive(Clone, Debug)]
pub struct Lately<T>(Arc<Mutex<Option<(Timestamp, T)>>>);

impl<T> Default for Lately<T> {
    fn default() -> Lately<T> {
        Lately(Arc::default())
    }
}

impl<T: Clone> Lately<T> {
    /// The cached value, if it is younger than `within`.
    pub fn get(&self, now: Timestamp, within: Duration) -> Option<T> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().filter(|(at, _)| *at <= now && now < at.plus(within)).map(|(_, value)| value.clone())
    }

    pub fn keep(&self, now: Timestamp, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_iso_8601_with_milliseconds() {
        assert_eq!(Timestamp::from_millis(1_795_249_530_250).to_string(), "2026-11-21T08:25:30.250Z");
        assert_eq!(Timestamp::from_secs(0).to_string(), "1970-01-01T00:00:00.000Z");
        for millis in [-1, 951_782_400_001, 253_402_300_799_999, 253_402_300_800_000, -62_167_219_200_001, i64::MAX] {
            let chrono = chrono::DateTime::from_timestamp_millis(millis)
                .map_or(format!("{millis} ms"), |time| time.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string());
            assert_eq!(Timestamp::from_millis(millis).to_string(), chrono);
        }
    }

    #[test]
    fn a_pinned_clock_moves_only_when_advanced() {
        let clock = Clock::pinned(Timestamp::from_secs(100));
        assert_eq!(clock.now(), clock.now());
        clock.clone().advance(Duration::from_secs(5));
        assert_eq!(clock.now(), Timestamp::from_secs(105));
    }
}
