//! Untrusted titles and snippets as plain text of limited length, and dates in one form.

use std::time::Duration;

use base::clock::Timestamp;
use base::untrusted_text;
use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};

/// Plain text without markup and invisible characters, whitespace collapsed, at most `max_chars` characters (an ellipsis
/// marks a cut). Escaped markup (`&lt;script&gt;`) is removed too: it must not run if a client shows the text as HTML by
/// mistake.
pub fn short(text: &str, max_chars: usize) -> String {
    // Limits the work: a much longer text adds nothing to the result.
    let start: String = text.chars().take(max_chars.saturating_mul(8)).collect();
    let mut text = decoded(&start);
    // Removing inner tags can leave a new tag.
    for _ in 0..4 {
        match untagged(&text) {
            Some(fewer) => text = fewer,
            None => break,
        }
    }
    let text = text.replace(['<', '>'], " ");
    let text = untrusted_text::visible(&text).split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(max_chars) {
        None => text,
        Some(_) => {
            let end = text.char_indices().nth(max_chars.saturating_sub(1)).map_or(0, |(end, _)| end);
            // Cut at the end of a word if one is near.
            let cut = text[..end].rfind(' ').filter(|cut| *cut + 40 > end).unwrap_or(end);
            format!("{}…", text[..cut].trim_end())
        }
    }
}

/// The text without tags and comments; `None` if it has none. `a < b` has none.
fn untagged(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut found = false;
    while let Some(start) = rest.find('<') {
        let opens = rest[start + 1..].chars().next();
        let is_tag = opens.is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, '/' | '!' | '?'));
        out.push_str(&rest[..start]);
        rest = if is_tag {
            found = true;
            // Only tags that break a line separate words; `<b>` inside a word does not.
            let end = rest[start..].find('>').map_or(rest.len(), |end| start + end + 1);
            if rest[start..end].starts_with("<br") || rest[start..end].starts_with("<p") {
                out.push(' ');
            }
            &rest[end..]
        } else {
            out.push('<');
            &rest[start + 1..]
        };
    }
    out.push_str(rest);
    found.then_some(out)
}

/// Replaces character references by the characters.
fn decoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.char_indices().take(12).find(|(_, letter)| *letter == ';').map(|(end, _)| end);
        match end.and_then(|end| Some((end, character(&rest[1..end])?))) {
            Some((end, letter)) => {
                out.push(letter);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn character(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "hellip" => '…',
        "ndash" => '–',
        "mdash" => '—',
        _ => {
            let number = name.strip_prefix('#')?;
            let hex = number.strip_prefix(['x', 'X']).map(|hex| u32::from_str_radix(hex, 16));
            char::from_u32(hex.unwrap_or_else(|| number.parse()).ok()?)?
        }
    })
}

/// The date as RFC 3339, or `YYYY-MM-DD` if only the day is known. Reads RFC 3339, RFC 2822, common written forms and `3
/// days ago`; anything else is `None`.
pub fn date(text: &str, now: Timestamp) -> Option<String> {
    let text = text.trim();
    if text.len() > 64 {
        return None;
    }
    let whole = DateTime::parse_from_rfc3339(text).or_else(|_| DateTime::parse_from_rfc2822(text));
    if let Ok(moment) = whole {
        return Some(moment.with_timezone(&Utc).to_rfc3339_opts(SecondsFormat::Secs, true));
    }
    if let Some(day) = text.get(..10).and_then(|day| NaiveDate::parse_from_str(day, "%Y-%m-%d").ok()) {
        return Some(day.to_string());
    }
    let written = ["%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y", "%Y/%m/%d"];
    if let Some(day) = written.iter().find_map(|form| NaiveDate::parse_from_str(text, form).ok()) {
        return Some(day.to_string());
    }
    let ago = text.strip_suffix(" ago")?;
    let (number, unit) = ago.split_once(' ')?;
    let days = match unit.trim_end_matches('s') {
        "minute" | "min" | "hour" => 0,
        "day" => 1,
        "week" => 7,
        "month" => 30,
        "year" => 365,
        _ => return None,
    };
    let then = now.minus(Duration::from_secs(86_400 * days * number.parse::<u64>().ok().filter(|n| *n < 1000)?));
    Some(then.to_string()[..10].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_removed() {
        for (text, expected) in [
            ("<strong>Tides</strong> &amp; moon", "Tides & moon"),
            ("a < b and c > d", "a b and c d"),
            ("one<br/>two  \n three\u{200b}\u{202e}", "one two three"),
            ("<scr<b>ipt>alert(1)</scr</b>ipt>x", "ipt alert(1)ipt x"),
            ("&lt;img src=x onerror=alert(1)&gt;safe", "safe"),
            ("&#60;script&#x3e;alert(1)", "alert(1)"),
            ("<!-- hidden --><a href='javascript:x'>link", "link"),
            ("5 &unknown; AT&T", "5 &unknown; AT&T"),
            ("<unclosed", ""),
        ] {
            assert_eq!(short(text, 100), expected, "{text}");
        }
        assert_eq!(short("ää öö üü", 6), "ää…");
        assert_eq!(short(&"x".repeat(100_000), 10).chars().count(), 10);
    }

    #[test]
    fn dates_are_normalised() {
        let now = Timestamp::from_millis(1_795_249_530_250);
        for (text, expected) in [
            ("2025-03-04T05:06:07.000Z", Some("2025-03-04T05:06:07Z")),
            ("2025-03-04T05:06:07+02:00", Some("2025-03-04T03:06:07Z")),
            ("2025-03-04T05:06:07", Some("2025-03-04")),
            ("2025-03-04", Some("2025-03-04")),
            ("Tue, 4 Mar 2025 10:00:00 GMT", Some("2025-03-04T10:00:00Z")),
            ("Mar 4, 2025", Some("2025-03-04")),
            ("3 days ago", Some("2026-11-18")),
            ("5 hours ago", Some("2026-11-21")),
            ("yesterday, I think", None),
            ("", None),
            ("ünï-cö-dé", None),
        ] {
            assert_eq!(date(text, now).as_deref(), expected, "{text}");
        }
    }
}
