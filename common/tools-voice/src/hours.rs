//! Business hours of a number: windows of the week in a time zone. By local time, so that daylight saving time is respected.

use base::clock::Timestamp;
use base::hours::{Weekday, Zone, clock_text};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Most windows of a number.
pub const MAX_WINDOWS: usize = 14;

/// When somebody is there. Outside these hours, the number does what its settings say for after hours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BusinessHours {
    pub timezone: Zone,
    /// 1 to [`MAX_WINDOWS`]; they may overlap.
    pub windows: Vec<Window>,
}

/// From `start` to `end` (exclusive) on each of `days`. It does not pass midnight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// At least one.
    pub days: Vec<Day>,
    /// Minutes since midnight.
    pub start: u16,
    /// Minutes since midnight, after `start`; 24:00 is the end of the day.
    pub end: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl Day {
    /// The names of the wire, from Monday on.
    pub const NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

    fn of(day: Weekday) -> Day {
        match day {
            Weekday::Monday => Day::Mon,
            Weekday::Tuesday => Day::Tue,
            Weekday::Wednesday => Day::Wed,
            Weekday::Thursday => Day::Thu,
            Weekday::Friday => Day::Fri,
            Weekday::Saturday => Day::Sat,
            Weekday::Sunday => Day::Sun,
        }
    }
}

impl BusinessHours {
    /// Whether the time is inside one of the windows.
    pub fn is_open(&self, now: Timestamp) -> bool {
        let Some((day, minute)) = self.timezone.local(now) else { return false };
        let day = Day::of(day);
        self.windows.iter().any(|window| window.days.contains(&day) && (window.start..window.end).contains(&minute))
    }

    /// As on the wire, which can be put again.
    pub fn view(&self) -> Value {
        let windows: Vec<Value> = self
            .windows
            .iter()
            .map(
                |window| json!({"days": window.days, "start": clock_text(window.start), "end": clock_text(window.end)}),
            )
            .collect();
        json!({"timezone": self.timezone.to_string(), "windows": windows})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(zone: &str, windows: &[(&[Day], u16, u16)]) -> BusinessHours {
        let windows =
            windows.iter().map(|(days, start, end)| Window { days: days.to_vec(), start: *start, end: *end }).collect();
        BusinessHours { timezone: zone.parse().unwrap(), windows }
    }

    #[test]
    fn a_number_is_open_inside_any_of_its_windows_by_local_time() {
        use Day::{Fri, Mon, Sat, Sun};
        let secs = Timestamp::from_secs;
        let shop =
            hours("Europe/Berlin", &[(&[Mon, Fri], 9 * 60, 12 * 60), (&[Fri], 13 * 60, 17 * 60), (&[Sat], 0, 1440)]);
        // 2026-11-20 is a Friday; Berlin is one hour ahead in winter, two in summer.
        for (moment, is_open) in [
            (1_795_161_599, false), // Friday 08:59:59
            (1_795_161_600, true),  // 09:00
            (1_795_172_399, true),  // 11:59:59
            (1_795_172_400, false), // 12:00: the end is outside
            (1_795_176_000, true),  // 13:00
            (1_795_190_400, false), // 17:00
            (1_795_215_599, false), // Friday 23:59:59
            (1_795_215_600, true),  // Saturday 00:00
            (1_795_301_999, true),  // Saturday 23:59:59
            (1_795_302_000, false), // Sunday
            (1_784_271_600, true),  // 2026-07-17, a Friday, 07:00 UTC: 09:00 in summer
        ] {
            assert_eq!(shop.is_open(secs(moment)), is_open, "{moment}");
        }
        // Kathmandu is 5:45 hours ahead: its Sunday begins on Saturday at 18:15 UTC.
        let minute = hours("Asia/Kathmandu", &[(&[Sun], 0, 1)]);
        assert!(minute.is_open(secs(1_795_284_900)) && !minute.is_open(secs(1_795_284_899)));
    }

    #[test]
    fn hours_are_shown_as_they_are_put() {
        let shop = hours("europe/berlin", &[(&[Day::Mon, Day::Sun], 0, 1440)]);
        let expected = json!({
            "timezone": "Europe/Berlin",
            "windows": [{"days": ["mon", "sun"], "start": "00:00", "end": "24:00"}],
        });
        assert_eq!(shop.view(), expected);
        for (name, day) in Day::NAMES.iter().zip([0, 1, 2, 3, 4, 5, 6]) {
            let parsed: Day = serde_json::from_value(json!(name)).unwrap();
            assert_eq!(parsed as usize, day);
        }
    }
}
