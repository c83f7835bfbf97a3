//! Values of known forms in words: addresses, numbers, dates, names.

use base::contact::{is_domain, is_email, is_phone};
use serde_json::{Number, Value};

use crate::meaning::Meaning;
use crate::words::{Token, number_word};

/// A value and the words it was read from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub meaning: Meaning,
    /// The first word, and the one behind the last.
    pub from: usize,
    pub to: usize,
    pub value: Value,
}

/// The values of known forms in a clause, in their order.
pub(crate) fn find(tokens: &[Token]) -> Vec<Found> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let read = date(tokens, at).or_else(|| one(tokens, at)).or_else(|| spaced(tokens, at));
        at = match read {
            Some(value) => {
                let to = value.to;
                found.push(value);
                to
            }
            None => at + 1,
        };
    }
    found
}

fn one(tokens: &[Token], at: usize) -> Option<Found> {
    let token = &tokens[at];
    let text = token.text.as_str();
    let of = |meaning, value: Value| Some(Found { meaning, from: at, to: at + 1, value });
    let text_of = |meaning, text: &str| of(meaning, Value::from(text));
    if is_email(text) {
        return text_of(Meaning::Email, text);
    }
    if text.contains("://") {
        let is_web = url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        return is_web.then(|| text_of(Meaning::Url, text)).flatten();
    }
    if text.starts_with('+') && is_phone(text) && text.len() >= 8 {
        return text_of(Meaning::Phone, text);
    }
    if !token.quoted && text.contains('.') && text.contains(|letter: char| letter.is_ascii_alphabetic()) {
        return web(token).map(|(meaning, value)| Found { meaning, from: at, to: at + 1, value });
    }
    if text.len() == vin_length() && token.has_digit() && vin::Vin::parse(text).is_ok() {
        return text_of(Meaning::Vin, text);
    }
    if is_iban(text) {
        return text_of(Meaning::Iban, text);
    }
    if uuid(text) {
        return text_of(Meaning::Uuid, text);
    }
    if token.quoted { None } else { figure(tokens, at) }
}

const fn vin_length() -> usize {
    17
}

/// `example.com`, or `www.example.com/page` without its scheme.
fn web(token: &Token) -> Option<(Meaning, Value)> {
    let host = token.text.split(['/', '?']).next().unwrap_or_default();
    let top = host.rsplit('.').next().unwrap_or_default();
    let is_top = (2..=13).contains(&top.len()) && top.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_short = matches!(token.lower.as_str(), "e.g" | "i.e");
    if !is_top || is_short || !is_domain(host) {
        return None;
    }
    match host.len() == token.text.trim_end_matches('/').len() {
        true => Some((Meaning::Domain, Value::from(host.to_lowercase()))),
        false => Some((Meaning::Url, Value::from(format!("https://{}", token.text)))),
    }
}

fn uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

fn is_iban(text: &str) -> bool {
    let form = (15..=34).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && text.as_bytes()[..2].iter().all(u8::is_ascii_uppercase)
        && text.as_bytes()[2..4].iter().all(u8::is_ascii_digit);
    if !form {
        return false;
    }
    let digits = text[4..].chars().chain(text[..4].chars()).filter_map(|letter| letter.to_digit(36));
    digits.fold(0, |rest, digit| if digit > 9 { (rest * 100 + digit) % 97 } else { (rest * 10 + digit) % 97 }) == 1
}

/// A number, an amount of money, or a count in words.
fn figure(tokens: &[Token], at: usize) -> Option<Found> {
    let token = &tokens[at];
    let of = |meaning, to, value: Value| Some(Found { meaning, from: at, to, value });
    // "Four Seasons" is a name.
    let is_name = token.is_capital() && tokens.get(at + 1).is_some_and(Token::is_capital);
    if let Some(number) = number_word(&token.lower).filter(|_| !is_name) {
        // "The one", "one of them" are no counts.
        let is_count = token.lower != "one" || !tokens.get(at + 1).is_none_or(|next| next.is(&["of", "that", "who"]));
        return is_count.then(|| of(Meaning::Number, at + 1, Value::from(number))).flatten();
    }
    let text = token.text.as_str();
    let bare = text.trim_start_matches(['$', '€', '£']);
    let is_money = bare.len() < text.len() || token.head.ends_with(['$', '€', '£']);
    let (bare, is_money) = match bare.strip_suffix(['€', '£', '$']) {
        Some(bare) => (bare, true),
        None => (bare.strip_suffix('%').unwrap_or(bare), is_money),
    };
    let (bare, times) = match bare.strip_suffix(['k', 'K']).filter(|_| is_money) {
        Some(bare) => (bare, 1_000.0),
        None => (bare, 1.0),
    };
    let bare = if token.head.ends_with('-') { format!("-{bare}") } else { bare.to_owned() };
    let value = number(&bare)?;
    let value = if times == 1.0 { value } else { as_number(value.as_f64()? * times)? };
    let is_money = is_money || tokens.get(at + 1).is_some_and(|next| next.is(CURRENCIES));
    of(if is_money { Meaning::Money } else { Meaning::Number }, at + 1, value)
}

const CURRENCIES: &[&str] =
    &["usd", "usdc", "eur", "gbp", "chf", "jpy", "dollars", "dollar", "euros", "euro", "pounds", "cents", "bucks"];

/// Reads `1,200.50`. The grouping commas have to stand at thousands.
pub(crate) fn number(text: &str) -> Option<Value> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let whole = unsigned.split('.').next().unwrap_or_default();
    let grouped =
        whole.contains(',') && whole.split(',').skip(1).all(|group| group.len() == 3) && !whole.starts_with(',');
    let plain = if grouped { text.replace(',', "") } else { text.to_owned() };
    let is_number = !unsigned.is_empty()
        && unsigned.starts_with(|letter: char| letter.is_ascii_digit())
        && plain.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && plain.bytes().filter(|byte| *byte == b'.').count() <= 1
        && plain.len() <= 18;
    if !is_number {
        return None;
    }
    match plain.parse::<i64>() {
        Ok(whole) => Some(Value::from(whole)),
        Err(_) => as_number(plain.parse().ok()?),
    }
}

pub(crate) fn as_number(number: f64) -> Option<Value> {
    let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
    // Checked above: it fits.
    #[allow(clippy::cast_possible_truncation)]
    if is_whole { Some(Value::from(number as i64)) } else { Number::from_f64(number).map(Value::Number) }
}

/// A phone number or an IBAN that is written in groups.
fn spaced(tokens: &[Token], at: usize) -> Option<Found> {
    let first = &tokens[at];
    let is_group = |token: &Token| {
        !token.quoted && token.text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-/.".contains(&byte))
    };
    if first.text.starts_with('+') {
        let mut digits = String::from("+");
        let mut best = None;
        for (offset, token) in tokens[at..].iter().take(8).enumerate() {
            if !is_group(token) || token.text.bytes().any(|byte| byte.is_ascii_alphabetic()) || !token.has_digit() {
                break;
            }
            digits.extend(token.text.chars().filter(char::is_ascii_digit));
            if is_phone(&digits) && digits.len() >= 9 {
                best = Some(Found {
                    meaning: Meaning::Phone,
                    from: at,
                    to: at + offset + 1,
                    value: Value::from(digits.as_str()),
                });
            }
            if token.tail.contains([',', '.', ';']) {
                break;
            }
        }
        return best;
    }
    if first.text.len() != 4
        || !first.text.is_char_boundary(2)
        || !first.text[..2].bytes().all(|byte| byte.is_ascii_uppercase())
    {
        return None;
    }
    let mut whole = String::new();
    for (offset, token) in tokens[at..].iter().take(9).enumerate() {
        if token.text.len() > 4 || !is_group(token) {
            break;
        }
        whole.push_str(&token.text);
        if is_iban(&whole) {
            return Some(Found { meaning: Meaning::Iban, from: at, to: at + offset + 1, value: Value::from(whole) });
        }
    }
    None
}

const MONTHS: &[&str] = &[
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

fn month(word: &str) -> Option<u32> {
    let is = |name: &&&str| {
        word.len() >= 3 && (**name == word || name[..3] == *word || word == "sept" && name.starts_with("sept"))
    };
    MONTHS
        .iter()
        .find(is)
        .and_then(|name| MONTHS.iter().position(|one| one == name))
        .and_then(|at| u32::try_from(at + 1).ok())
}

fn day(word: &str) -> Option<u32> {
    let bare = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    bare.parse().ok().filter(|day| (1..=31).contains(day) && bare.len() <= 2)
}

pub(crate) fn year(word: &str) -> Option<u32> {
    word.parse().ok().filter(|year| (1000..=2999).contains(year) && word.len() == 4)
}

/// `2026-05-03`, "3 May 2026", "May 3rd, 2026" and `13/05/2026`; a date that may be read in two ways is none.
pub(crate) fn date(tokens: &[Token], at: usize) -> Option<Found> {
    let word = |offset: usize| {
        tokens
            .get(at + offset)
            .filter(|token| !token.quoted || offset == 0)
            .map(|token| token.lower.as_str())
            .unwrap_or_default()
    };
    let of = |length: usize, year: u32, month: u32, day: u32| {
        let value = Value::from(format!("{year:04}-{month:02}-{day:02}"));
        is_day(year, month, day).then_some(Found { meaning: Meaning::Date, from: at, to: at + length, value })
    };
    let shift = usize::from(word(1) == "of");
    if let (Some(day), Some(month), Some(year)) = (day(word(0)), month(word(1 + shift)), year(word(2 + shift))) {
        return of(3 + shift, year, month, day);
    }
    let of_year = usize::from(word(2) == "of");
    if let (Some(month), Some(day), Some(year)) = (month(word(0)), day(word(1)), year(word(2 + of_year))) {
        return of(3 + of_year, year, month, day);
    }
    let parts: Vec<u32> = word(0).split(['-', '/', '.']).map_while(|part| part.parse().ok()).collect();
    let [one, two, three] = parts[..] else { return None };
    let whole = word(0);
    match whole.split(['-', '/', '.']).next().map(str::len) {
        Some(4) if whole.len() <= 10 => of(1, one, two, three),
        Some(1 | 2) if three >= 1000 && (one > 12 || whole.contains('.')) => of(1, three, two, one),
        Some(1 | 2) if three >= 1000 && (two > 12 || one == two) => of(1, three, one, two),
        _ => None,
    }
}

pub(crate) fn is_day(year: u32, month: u32, day: u32) -> bool {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(is_leap),
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day) && (1000..=2999).contains(&year)
}
