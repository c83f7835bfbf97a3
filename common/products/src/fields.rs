//! Reads single values: texts, addresses, availability, ratings, GTINs.

use base::untrusted_text::visible;
use url::Url;

use crate::Price;

pub(crate) const MAX_ID_CHARS: usize = 100;
pub(crate) const MAX_TITLE_CHARS: usize = 300;
pub(crate) const MAX_WORD_CHARS: usize = 200;
pub(crate) const MAX_DESCRIPTION_CHARS: usize = 1_000;
/// Longest address kept, in bytes.
pub(crate) const MAX_URL_BYTES: usize = 2_048;
/// Bytes of a text that are looked at for each character kept; markup is longer than its text.
const BYTES_PER_CHAR: usize = 8;

/// The text on one line, without invisible characters, at most `max_chars` long.
pub(crate) fn line(text: &str, max_chars: usize) -> String {
    let text = &text[..text.floor_char_boundary(max_chars.saturating_mul(BYTES_PER_CHAR))];
    let mut line = String::new();
    for word in visible(text).split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if let Some((end, _)) = line.char_indices().nth(max_chars) {
        line.truncate(end);
        line.truncate(line.trim_end().len());
    }
    line
}

/// [`line`], or `None` if nothing is left.
pub(crate) fn some_line(text: &str, max_chars: usize) -> Option<String> {
    Some(line(text, max_chars)).filter(|line| !line.is_empty())
}

/// Text that may be HTML, as plain text on one line. Tags become spaces; the usual entities are decoded once.
pub(crate) fn plain(text: &str, max_chars: usize) -> Option<String> {
    let mut text = &text[..text.floor_char_boundary(max_chars.saturating_mul(BYTES_PER_CHAR))];
    let mut plain = String::with_capacity(text.len());
    while let Some(at) = text.find(['<', '&']) {
        let (before, rest) = text.split_at(at);
        plain.push_str(before);
        let (letter, taken) = markup(rest);
        plain.push(letter);
        text = &rest[taken..];
    }
    plain.push_str(text);
    some_line(&plain, max_chars)
}

/// Longest entity, with `&` and `;`.
const MAX_ENTITY_BYTES: usize = 10;

/// What stands for the tag or entity at the start of `text`, and its length.
fn markup(text: &str) -> (char, usize) {
    if let Some(inside) = text.strip_prefix('<') {
        let is_tag = inside.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!'));
        // A tag that was cut off goes to the end.
        return if is_tag { (' ', inside.find('>').map_or(text.len(), |end| end + 2)) } else { ('<', 1) };
    }
    let short = &text[..text.floor_char_boundary(MAX_ENTITY_BYTES)];
    let entity = short.find(';').and_then(|end| Some((entity(&short[1..end])?, end + 1)));
    entity.unwrap_or(('&', 1))
}

/// The character of an entity: those that shops use most, and all numbers.
fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let hexadecimal = number.strip_prefix(['x', 'X']).map(|digits| u32::from_str_radix(digits, 16));
        return char::from_u32(hexadecimal.unwrap_or_else(|| number.parse()).ok()?);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "rsquo" => '’',
        "lsquo" => '‘',
        "rdquo" => '”',
        "ldquo" => '“',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "bull" => '•',
        "reg" => '®',
        "trade" => '™',
        "copy" => '©',
        "deg" => '°',
        "times" => '×',
        "euro" => '€',
        "pound" => '£',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "szlig" => 'ß',
        "eacute" => 'é',
        "egrave" => 'è',
        _ => return None,
    })
}

/// An absolute `http` or `https` address without user name.
pub(crate) fn address(text: &str, base: Option<&Url>) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_URL_BYTES {
        return None;
    }
    let url = match base {
        Some(base) => base.join(text).ok()?,
        None => Url::parse(text).ok()?,
    };
    let is_web = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    (is_web && url.as_str().len() <= MAX_URL_BYTES).then(|| url.into())
}

/// Whether availability words mean that the product can be ordered now. Reads those of schema.org (with or without address),
/// of Google's feeds and of Open Graph. Pre-orders and back orders can be ordered.
pub(crate) fn in_stock(text: &str) -> Option<bool> {
    let text = text.trim();
    let text = &text[..text.floor_char_boundary(MAX_WORD_CHARS)];
    let word = text.rsplit(['/', '#', ':']).next().unwrap_or_default();
    let word: String = word.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    match word.as_str() {
        "instock"
        | "instoreonly"
        | "limitedavailability"
        | "onlineonly"
        | "preorder"
        | "presale"
        | "backorder"
        | "madetoorder"
        | "available"
        | "availablefororder"
        | "onbackorder"
        | "yes"
        | "true"
        | "1" => Some(true),
        "outofstock" | "soldout" | "discontinued" | "unavailable" | "notavailable" | "reserved" | "pending" | "no"
        | "false" | "0" | "oos" => Some(false),
        _ => None,
    }
}

/// A rating as a number from 0 to 5, from one on the scale up to `best` (5 if that is not said).
pub(crate) fn rating(value: &str, best: Option<&str>) -> Option<f64> {
    let number = |text: &str| -> Option<f64> {
        let text = text.trim();
        let plain =
            !text.is_empty() && text.len() <= 20 && text.bytes().all(|b| b.is_ascii_digit() || b".,".contains(&b));
        plain.then(|| text.replace(',', ".").parse().ok()).flatten()
    };
    let best = best.and_then(number).filter(|best| *best > 0.0).unwrap_or(5.0);
    let value = number(value)?;
    let rating = (value / best * 500.0).round() / 100.0;
    (0.0..=5.0).contains(&rating).then_some(rating).filter(|rating| *rating > 0.0)
}

/// A count; separators of thousands are allowed.
pub(crate) fn count(text: &str) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_suffix(".0").unwrap_or(text);
    let plain = text.len() <= 24 && text.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '.' | ' ' | '\u{a0}'));
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    plain.then(|| digits.parse().ok()).flatten()
}

/// A GTIN (also ISBN-13, EAN, UPC) of 8, 12, 13 or 14 digits with a valid check digit.
pub(crate) fn gtin(text: &str) -> Option<String> {
    let text = text.trim();
    let plain = text.len() <= 24 && text.chars().all(|c| c.is_ascii_digit() || matches!(c, ' ' | '-'));
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !plain || !matches!(digits.len(), 8 | 12 | 13 | 14) || digits.bytes().all(|b| b == b'0') {
        return None;
    }
    // From the right, the check digit counts once, the next three times, and so on.
    let sum: u32 = digits.bytes().rev().zip([1, 3].into_iter().cycle()).map(|(b, by)| u32::from(b - b'0') * by).sum();
    sum.is_multiple_of(10).then_some(digits)
}

/// What is paid, and the regular price if it is higher. Both must have the same currency.
pub(crate) fn paid_and_listed(price: Option<Price>, regular: Option<Price>) -> (Option<Price>, Option<Price>) {
    match (price, regular) {
        (Some(price), Some(regular)) if regular.currency == price.currency && regular.amount > price.amount => {
            (Some(price), Some(regular))
        }
        (Some(price), _) => (Some(price), None),
        (None, regular) => (regular, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_plain_and_cut() {
        assert_eq!(plain("<p>Fish &amp; <b>chips</b><br>for 1 < 2</p", 100).as_deref(), Some("Fish & chips for 1 < 2"));
        assert_eq!(
            plain("it&#8217;s &eacute;t&#xe9; &amp;amp; &unknown; &", 100).as_deref(),
            Some("it’s été &amp; &unknown; &")
        );
        assert_eq!(plain(" \u{200b}<p></p> ", 100), None);
        assert_eq!(line("a\u{202e}b \n c", 3), "ab");
        assert_eq!(line(&"é".repeat(9_000), 300).chars().count(), 300);
    }

    #[test]
    fn addresses_are_absolute_and_of_the_web() {
        let base = Url::parse("https://shop.example/a/b").unwrap();
        assert_eq!(address("../c?x=1", Some(&base)).as_deref(), Some("https://shop.example/c?x=1"));
        assert_eq!(address("//cdn.example/i.png", Some(&base)).as_deref(), Some("https://cdn.example/i.png"));
        for bad in ["javascript:x()", "data:image/png;base64,AA", "ftp://a.example/", "https://u:p@a.example/", ""] {
            assert_eq!(address(bad, Some(&base)), None, "{bad}");
        }
        assert_eq!(address("/c", None), None);
    }

    #[test]
    fn availability_ratings_counts_and_gtins_are_read() {
        for (text, expected) in [
            ("https://schema.org/InStock", Some(true)),
            ("in stock", Some(true)),
            ("out_of_stock", Some(false)),
            ("schema:PreOrder", Some(true)),
            ("SoldOut", Some(false)),
            ("ask us", None),
        ] {
            assert_eq!(in_stock(text), expected, "{text}");
        }
        assert_eq!(rating("9", Some("10")), Some(4.5));
        assert_eq!((rating("4,5", None), rating("7", None), rating("NaN", None)), (Some(4.5), None, None));
        assert_eq!((count("1,234"), count("12 reviews"), count("")), (Some(1234), None, None));
        assert_eq!(gtin("4006381-333931").as_deref(), Some("4006381333931"));
        assert_eq!((gtin("4006381333932"), gtin("00000000"), gtin("1")), (None, None, None));
    }
}
