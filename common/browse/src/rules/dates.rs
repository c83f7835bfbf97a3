//! Dates and times as people write them in tasks, and as calendars show them.

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    pub year: u32,
    pub month: u32,
    pub day: u32,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Number of a month by its name, also cut to three letters.
#[must_use]
pub fn month(word: &str) -> Option<u32> {
    let low = word.to_lowercase();
    let at = MONTHS.iter().position(|m| *m == low || (low.len() >= 3 && low.len() <= 4 && m.starts_with(&low)))?;
    u32::try_from(at + 1).ok()
}

impl Date {
    /// Reads `12/31/2016` (month first), `2016-12-31`, `31 December 2016` or `December 31, 2016`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let pieces: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|p| !p.is_empty()).collect();
        let [a, b, c] = pieces.as_slice() else { return None };
        let day = |text: &str| text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse::<u32>().ok();
        let numeric = text.contains(['/', '-', '.']);
        let (year, month, day) = if let Some(named) = month(a) {
            (c.parse().ok()?, named, day(b)?)
        } else if let Some(named) = month(b) {
            (c.parse().ok()?, named, day(a)?)
        } else if numeric && a.len() == 4 {
            (a.parse().ok()?, b.parse().ok()?, c.parse().ok()?)
        } else if numeric && c.len() == 4 {
            (c.parse().ok()?, a.parse().ok()?, b.parse().ok()?)
        } else {
            return None;
        };
        ((1..=12).contains(&month) && (1..=31).contains(&day) && (1000..=9999).contains(&year)).then_some(Self {
            year,
            month,
            day,
        })
    }

    /// As fields of dates hold it.
    #[must_use]
    pub fn iso(self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// Months since the year 0.
    #[must_use]
    pub fn months(self) -> i64 {
        i64::from(self.year) * 12 + i64::from(self.month) - 1
    }
}

/// The month that a calendar's heading shows, in months since the year 0: `March 2016`.
#[must_use]
pub fn shown_month(text: &str) -> Option<i64> {
    let pieces: Vec<&str> = text.split_whitespace().collect();
    let at = pieces.iter().position(|p| p.len() > 2 && month(p).is_some())?;
    let year: i64 = pieces.iter().filter(|p| p.len() == 4).find_map(|p| p.parse().ok())?;
    (pieces.len() <= 4).then(|| year * 12 + i64::from(month(pieces[at]).unwrap_or(1)) - 1)
}

/// `8:04 PM` as `20:04`.
#[must_use]
pub fn time(text: &str) -> Option<String> {
    let low = text.to_lowercase();
    let (hours, rest) = low.trim().split_once(':')?;
    let minutes: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let hours = match (rest.contains('p'), rest.contains('a')) {
        (true, _) if hours < 12 => hours + 12,
        (_, true) if hours == 12 => 0,
        _ => hours,
    };
    (hours < 24 && minutes < 60).then(|| format!("{hours:02}:{minutes:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_read_in_the_usual_forms() {
        for text in ["03/05/2016", "2016-03-05", "March 5, 2016", "5 Mar 2016"] {
            assert_eq!(Date::read(text).map(Date::iso).as_deref(), Some("2016-03-05"), "{text}");
        }
        for text in ["13/05/2016", "03/05", "Marchetti 5 2016", "99999999999/1/1"] {
            assert_eq!(Date::read(text), None, "{text}");
        }
        assert_eq!(shown_month("December 2016"), Some(2016 * 12 + 11));
        for (text, is) in [("8:04 PM", "20:04"), ("12:30 AM", "00:30"), ("12:00 PM", "12:00")] {
            assert_eq!(time(text).as_deref(), Some(is));
        }
        assert_eq!(time("25:00"), None);
    }
}
