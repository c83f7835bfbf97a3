//! Query parameters. Every problem is reported, with the parameter's name as its path; nothing is clamped.

use std::any::Any;
use std::collections::HashMap;
use std::fmt::Display;
use std::str::FromStr;

use base::clock::Timestamp;
use base::input::FieldError;

use super::ApiError;

/// Most unknown parameters that are named, and the longest part of such a name in an error, in characters: it is the caller's
/// text.
const MAX_UNKNOWN: usize = 50;
const MAX_SHOWN_NAME: usize = 64;

/// Reads the parameters one by one and collects what is wrong.
pub struct Params {
    given: HashMap<String, String>,
    wrong: Vec<FieldError>,
}

impl Params {
    /// If a parameter is given twice, the first one counts.
    pub fn of(query: Option<&str>) -> Params {
        let mut given = HashMap::new();
        for (name, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            given.entry(name.into_owned()).or_insert_with(|| value.into_owned());
        }
        Params { given, wrong: Vec::new() }
    }

    /// Refuses parameters that are not `known`: a misspelt one must not pass as one that was left out.
    pub fn only(&mut self, known: &[&str]) {
        let mut others: Vec<&str> =
            self.given.keys().map(String::as_str).filter(|name| !known.contains(name)).collect();
        others.sort_unstable();
        for name in others.into_iter().take(MAX_UNKNOWN) {
            let shown: String = name.chars().take(MAX_SHOWN_NAME).collect();
            let message = format!("is not a known parameter; known are {}", known.join(", "));
            self.wrong.push(FieldError::new(shown, message));
        }
    }

    /// A text; an empty one counts as absent. (For the other kinds an empty value is an error.)
    pub fn text(&self, name: &str) -> Option<&str> {
        self.given.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// A text of at most `max` characters.
    pub fn short_text(&mut self, name: &str, max: usize) -> Option<String> {
        let text = self.text(name)?;
        if text.chars().count() <= max {
            return Some(text.to_owned());
        }
        self.wrong.push(FieldError::new(name, format!("must have at most {max} characters")));
        None
    }

    pub fn integer(&mut self, name: &str, min: usize, max: usize) -> Option<usize> {
        let text = self.given.get(name)?;
        // `parse` would accept a sign.
        let number = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.wrong.push(FieldError::new(name, format!("must be a whole number from {min} to {max}")));
        }
        number
    }

    pub fn flag(&mut self, name: &str) -> Option<bool> {
        match self.given.get(name)?.to_ascii_lowercase().as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => {
                self.wrong.push(FieldError::new(name, "must be true or false"));
                None
            }
        }
    }

    pub fn choice(&mut self, name: &str, choices: &[&'static str]) -> Option<&'static str> {
        let text = self.given.get(name)?;
        let found = choices.iter().copied().find(|choice| choice == text);
        if found.is_none() {
            self.wrong.push(FieldError::new(name, format!("must be one of {}", choices.join(", "))));
        }
        found
    }

    /// A value of any type that parses itself; its error becomes the message, unless it has a library's words.
    pub fn parsed<T: FromStr<Err: Display + 'static>>(&mut self, name: &str) -> Option<T> {
        match self.given.get(name)?.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                let error: T::Err = error;
                let is_of_uuid = (&error as &dyn Any).is::<uuid::Error>();
                let message = if is_of_uuid { "must be a UUID".to_owned() } else { error.to_string() };
                self.wrong.push(FieldError::new(name, message));
                None
            }
        }
    }

    /// ISO 8601. A date alone means midnight; without a zone, UTC.
    pub fn time(&mut self, name: &str) -> Option<Timestamp> {
        let time = parse_time(self.given.get(name)?);
        if time.is_none() {
            self.wrong.push(FieldError::new(name, "must be a time such as 2026-11-21T08:15:30Z"));
        }
        time
    }

    /// Adds a problem that the caller found.
    pub fn refuse(&mut self, name: &str, message: impl Into<String>) {
        self.wrong.push(FieldError::new(name, message));
    }

    /// Fails if any parameter read so far was wrong.
    pub fn check(self) -> Result<(), ApiError> {
        if self.wrong.is_empty() { Ok(()) } else { Err(ApiError::InvalidRequest(self.wrong)) }
    }
}

fn parse_time(text: &str) -> Option<Timestamp> {
    // An unescaped plus sign arrives as a space.
    let text = text.trim().replace(' ', "+");
    let millis = if let Ok(time) = chrono::DateTime::parse_from_rfc3339(&text) {
        time.timestamp_millis()
    } else if let Ok(time) = chrono::NaiveDateTime::parse_from_str(&text, "%Y-%m-%dT%H:%M:%S%.f") {
        time.and_utc().timestamp_millis()
    } else {
        chrono::NaiveDate::parse_from_str(&text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0)?.and_utc().timestamp_millis()
    };
    Some(Timestamp::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_forms_clients_send() {
        let at = Some(Timestamp::from_millis(1_795_249_530_250));
        for text in [
            "2026-11-21T08:25:30.250Z",
            "2026-11-21T09:25:30.25+01:00",
            "2026-11-21T09:25:30.25 01:00",
            "2026-11-21T08:25:30.250000",
        ] {
            assert_eq!(parse_time(text), at, "{text}");
        }
        assert_eq!(parse_time("2026-11-21").map(|time| time.to_string()).as_deref(), Some("2026-11-21T00:00:00.000Z"));
        for text in ["yesterday", "1795249530", "2026-13-01", "2026-11-21T25:00:00Z", ""] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn out_of_range_values_are_reported_not_clamped() {
        let mut params = Params::of(Some("limit=101&offset=-1&period=+5&flag=yes&since=yesterday"));
        params.integer("limit", 1, 100);
        params.integer("offset", 0, 9);
        params.integer("period", 1, 365);
        params.flag("flag");
        params.time("since");
        let Err(ApiError::InvalidRequest(wrong)) = params.check() else { panic!("nothing was wrong") };
        let paths: Vec<_> = wrong.iter().map(|wrong| wrong.path.as_str()).collect();
        assert_eq!(paths, ["limit", "offset", "period", "flag", "since"]);
    }

    #[test]
    fn an_unknown_parameter_is_named_with_the_known_ones() {
        let mut params = Params::of(Some("perid=7&limit=2&LIMIT=3"));
        params.only(&["period", "limit"]);
        let Err(ApiError::InvalidRequest(wrong)) = params.check() else { panic!("nothing was wrong") };
        let unknown = |name| FieldError::new(name, "is not a known parameter; known are period, limit");
        assert_eq!(wrong, ["LIMIT", "perid"].map(unknown));
        let mut params = Params::of(Some("limit=2"));
        params.only(&["period", "limit"]);
        assert!(params.check().is_ok());
    }

    #[test]
    fn what_does_not_parse_is_told_in_our_words() {
        let mut params = Params::of(Some("id=x&amount=x"));
        assert_eq!(params.parsed::<uuid::Uuid>("id"), None);
        assert_eq!(params.parsed::<base::money::Usdc>("amount"), None);
        let Err(ApiError::InvalidRequest(wrong)) = params.check() else { panic!("nothing was wrong") };
        assert_eq!(wrong[0], FieldError::new("id", "must be a UUID"));
        assert_eq!(wrong[1].message, "x".parse::<base::money::Usdc>().unwrap_err().to_string());
    }
}
