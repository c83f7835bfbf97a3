//! Hours of the week in a time zone. Pure, by local time, so that daylight saving time is respected.

use std::fmt;
use std::str::FromStr;

pub use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// Minutes in a day.
pub const DAY: u16 = 24 * 60;

/// From `start` to `end` (exclusive) on each of `days`. If the end is before the start, the window wraps over midnight and
/// belongs to the day on which it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hours {
    /// IANA name, such as `Europe/Berlin`.
    pub timezone: Zone,
    /// Minutes since midnight, below [`DAY`].
    pub start: u16,
    /// Minutes since midnight, up to [`DAY`].
    pub end: u16,
    /// Days on which the window begins: 0 is Sunday, 1 Monday, 6 Saturday. Empty means every day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<u8>,
}

/// A time zone of the IANA database, which is compiled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Zone {
    name: String,
    rules: TimeZone,
}

impl FromStr for Zone {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Zone, &'static str> {
        let rules = TimeZone::get(name).map_err(|_| "is not a time zone of the IANA database")?;
        // Spelled as in the database.
        Ok(Zone { name: rules.iana_name().unwrap_or(name).to_owned(), rules })
    }
}

impl Zone {
    /// The day of the week, and the minutes since midnight there. `None` beyond the years that the database knows.
    pub fn local(&self, now: Timestamp) -> Option<(Weekday, u16)> {
        let local = jiff::Timestamp::from_millisecond(now.millis()).ok()?.to_zoned(self.rules.clone());
        let minute = u16::try_from(i16::from(local.hour()) * 60 + i16::from(local.minute())).ok()?;
        Some((local.weekday(), minute))
    }
}

impl TryFrom<String> for Zone {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Zone, &'static str> {
        name.parse()
    }
}

impl From<Zone> for String {
    fn from(zone: Zone) -> String {
        zone.name
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Hours {
    /// Whether the time is inside the window.
    pub fn contain(&self, now: Timestamp) -> bool {
        let Some((today, minute)) = self.timezone.local(now) else { return false };
        if self.start < self.end {
            (self.start..self.end).contains(&minute) && self.has_day(today)
        } else {
            minute >= self.start && self.has_day(today) || minute < self.end && self.has_day(today.previous())
        }
    }

    fn has_day(&self, day: Weekday) -> bool {
        self.days.is_empty()
            || self.days.iter().any(|number| i16::from(*number) == i16::from(day.to_sunday_zero_offset()))
    }
}

/// A time for people: `Tue 24 Nov 2026, 10:30 in Europe/Berlin (09:30 UTC)`, or `Tue 24 Nov 2026, 09:30 UTC` without a zone.
pub fn for_people(at: Timestamp, zone: Option<&Zone>) -> String {
    const DAY_AND_TIME: &str = "%a %-d %b %Y, %H:%M";
    let Ok(instant) = jiff::Timestamp::from_millisecond(at.millis()) else { return at.to_string() };
    match zone.filter(|zone| zone.name != "UTC") {
        Some(zone) => {
            let local = instant.to_zoned(zone.rules.clone());
            format!("{} in {zone} ({} UTC)", local.strftime(DAY_AND_TIME), instant.strftime("%H:%M"))
        }
        None => format!("{} UTC", instant.strftime(DAY_AND_TIME)),
    }
}

/// Reads `HH:MM`, up to `24:00`.
pub fn minutes(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let two_digits = |text: &str| {
        (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse::<u16>().ok())?
    };
    let total = two_digits(hour)? * 60 + two_digits(minute).filter(|minute| *minute < 60)?;
    (total <= DAY).then_some(total)
}

/// Minutes as `HH:MM`.
pub fn clock_text(minutes: u16) -> String {
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::from_millis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    fn hours(timezone: &str, start: &str, end: &str, days: &[u8]) -> Hours {
        Hours {
            timezone: timezone.parse().unwrap(),
            start: minutes(start).unwrap(),
            end: minutes(end).unwrap(),
            days: days.to_vec(),
        }
    }

    #[test]
    fn windows_follow_local_time() {
        // 2026-11-20 is a Friday.
        let work = ("Europe/Berlin", "09:00", "17:00", &[1, 2, 3, 4, 5][..]);
        let night = ("America/New_York", "22:00", "06:00", &[5][..]);
        for ((zone, start, end, days), moment, inside) in [
            (work, "2026-11-20T07:59:59.999Z", false), // 08:59 in winter
            (work, "2026-11-20T08:00:00Z", true),
            (work, "2026-11-20T15:59:59Z", true),
            (work, "2026-11-20T16:00:00Z", false), // the end is outside
            (work, "2026-07-17T06:59:00Z", false), // summer time: an hour earlier in UTC
            (work, "2026-07-17T07:00:00Z", true),
            (work, "2026-07-17T15:00:00Z", false),
            (work, "2026-11-21T10:00:00Z", false), // Saturday
            (work, "2026-10-26T07:30:00Z", false), // the Monday after the clocks went back
            (work, "2026-10-26T08:00:00Z", true),
            (night, "2026-11-21T02:59:00Z", false), // Friday 21:59
            (night, "2026-11-21T03:00:00Z", true),  // Friday 22:00
            (night, "2026-11-21T10:59:00Z", true),  // Saturday 05:59 belongs to Friday's window
            (night, "2026-11-21T11:00:00Z", false),
            (night, "2026-11-20T08:00:00Z", false), // Friday 03:00 belongs to Thursday's
            (night, "2026-11-22T03:30:00Z", false), // Saturday 22:30
            // 2027-03-14, New York: 02:00 to 03:00 does not exist; 06:59Z is 01:59 and 07:00Z is 03:00.
            (("America/New_York", "01:00", "03:00", &[][..]), "2027-03-14T06:59:00Z", true),
            (("America/New_York", "01:00", "03:00", &[][..]), "2027-03-14T07:00:00Z", false),
            // 2026-11-01, New York: 01:30 exists twice.
            (("America/New_York", "01:00", "02:00", &[][..]), "2026-11-01T05:30:00Z", true),
            (("America/New_York", "01:00", "02:00", &[][..]), "2026-11-01T06:30:00Z", true),
            (("Asia/Kathmandu", "00:00", "24:00", &[0][..]), "2026-11-21T18:15:00Z", true), // Sunday 00:00, +05:45
            (("Asia/Kathmandu", "00:00", "24:00", &[0][..]), "2026-11-21T18:14:00Z", false),
        ] {
            assert_eq!(hours(zone, start, end, days).contain(at(moment)), inside, "{zone} {start}-{end} at {moment}");
        }
    }

    #[test]
    fn people_are_told_local_time_and_utc() {
        let zone = |name: &str| name.parse::<Zone>().unwrap();
        for (moment, name, told) in [
            ("2026-11-24T09:30:59.9Z", "Europe/Berlin", "Tue 24 Nov 2026, 10:30 in Europe/Berlin (09:30 UTC)"),
            ("2026-07-01T22:05:00Z", "europe/berlin", "Thu 2 Jul 2026, 00:05 in Europe/Berlin (22:05 UTC)"),
            ("2026-11-24T09:30:00Z", "UTC", "Tue 24 Nov 2026, 09:30 UTC"),
        ] {
            assert_eq!(for_people(at(moment), Some(&zone(name))), told);
        }
        assert_eq!(for_people(at("2026-11-24T09:30:00Z"), None), "Tue 24 Nov 2026, 09:30 UTC");
    }

    #[test]
    fn times_of_day_are_parsed_strictly() {
        assert_eq!(minutes("00:00"), Some(0));
        assert_eq!(minutes("24:00"), Some(DAY));
        for bad in ["", "9:00", "09:60", "24:01", "09-00", "+9:00", "09:0", "aa:bb"] {
            assert_eq!(minutes(bad), None, "{bad}");
        }
        assert_eq!(clock_text(545), "09:05");
    }
}
