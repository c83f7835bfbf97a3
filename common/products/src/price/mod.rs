//! Reads a price in words: one amount and its currency.

mod currency;
mod number;

use rust_decimal::Decimal;

use crate::Price;
use currency::{Sign, signs};
use number::{Number, numbers};

/// A longer text is no price; the rest is not looked at.
const MAX_CHARS: usize = 200;
/// An amount of data with more decimals is rounded to so many.
const MAX_SCALE: u32 = 6;
const ROUNDED_SCALE: u32 = 4;
/// Nothing costs more.
const MAX_AMOUNT: i64 = 1_000_000_000_000;

/// What a text says about a price. Parts that are missing or unclear are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Above 0.
    pub amount: Option<Decimal>,
    /// A code of ISO 4217.
    pub currency: Option<&'static str>,
}

/// Reads a price such as `1.299,00 €`. `hint` is the currency of the page or shop, as a code or sign: it is used if the text
/// names none, and decides what an unclear sign such as `$` means. `None` if amount or currency is unclear, if the amount
/// is 0 or negative, or if it pays for several things (`3 for $10`). Of a range, the first amount counts.
pub fn read(text: &str, hint: Option<&str>) -> Option<Price> {
    let Reading { amount, currency } = parts(text, hint);
    Some(Price { amount: amount?, currency: currency?.to_owned() })
}

/// Reads what data says as a number: digits with a point for decimals (`1.299` is less than 2), or else as [`read`] does.
/// Digits that come from a sum of floating-point numbers (`119.99000000000001`) are rounded away.
/// `currency` is what the data says beside it. A currency within `text` that contradicts it wins.
pub fn of_data(text: &str, currency: Option<&str>) -> Option<Price> {
    let text = text.trim();
    let (number, named) = match text.split_once(char::is_whitespace) {
        Some((number, named)) => (number, currency::known_code(named)),
        None => (text, currency.and_then(code)),
    };
    match named {
        // Not an amount of a shop, and read in words it would be another one.
        _ if has_exponent(number) => None,
        Some(named) if is_plain(number) => {
            let amount = positive(number)?;
            let amount = if amount.scale() > MAX_SCALE { amount.round_dp(ROUNDED_SCALE).normalize() } else { amount };
            (!amount.is_zero()).then(|| Price { amount, currency: named.to_owned() })
        }
        _ => read(text, currency),
    }
}

/// `1e+30`
fn has_exponent(number: &str) -> bool {
    let parts = number.split_once(['e', 'E']);
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte));
    parts.is_some_and(|(left, right)| {
        left.ends_with(|letter: char| letter.is_ascii_digit())
            && !right.is_empty()
            && is_number(left)
            && is_number(right)
    })
}

/// The currency that a text names by code or sign.
pub fn code(text: &str) -> Option<&'static str> {
    let text = text.trim();
    currency::known_code(text).or_else(|| {
        let signs = signs(&text.chars().take(MAX_CHARS).collect::<Vec<_>>());
        // Alone, even a letter is a sign.
        let alone = |sign: &Sign| sign.end - sign.start == text.trim_end_matches('.').chars().count();
        signs.iter().find(|sign| !sign.weak || alone(sign) || text.chars().count() < 12)?.code(None)
    })
}

/// [`read`], for a caller that can use amount or currency alone.
pub fn parts(text: &str, hint: Option<&str>) -> Reading {
    let text: Vec<char> = text.chars().take(MAX_CHARS).map(number::western).collect();
    let signs = signs(&text);
    let hint = hint.and_then(code);
    let all = numbers(&text);
    let beside = |number: &Number| Beside::of(number, &signs, &text);
    let usable = |number: &&Number| !number.is_part_of_word || beside(number).touches(number);
    let chosen = all.iter().filter(usable).find(|number| beside(number).any()).or(all.iter().find(usable));
    let named = signs.iter().find(|sign| !sign.weak);
    let Some(number) = chosen else {
        return Reading { amount: None, currency: named.and_then(|sign| sign.code(hint)).or(hint) };
    };
    let currency = match beside(number).sign() {
        Some((sign, other)) => sign.code(other.and_then(|other| other.code(None)).or(hint)),
        None => named.and_then(|sign| sign.code(hint)).or(hint),
    };
    let start = beside(number).before.map_or(number.start, |sign| sign.start);
    let pays_for_several = all.iter().any(|count| count.end <= start && is_for(&text[count.end..start]));
    let amount = match pays_for_several || number.is_negative || is_minus(&text, start) {
        true => None,
        false => number.amount(&text, currency).and_then(|amount| positive(&amount)),
    };
    Reading { amount, currency }
}

/// Currencies next to a number.
struct Beside<'a> {
    before: Option<&'a Sign>,
    after: Option<&'a Sign>,
    /// A code before an unclear sign: `NZD $5`.
    code: Option<&'a Sign>,
}

impl<'a> Beside<'a> {
    fn of(number: &Number, signs: &'a [Sign], text: &[char]) -> Self {
        let before = signs.iter().rposition(|sign| sign.end <= number.start);
        let before = before.filter(|at| is_gap_before(&text[signs[*at].end..number.start]));
        let code = before.and_then(|at| signs[..at].last().zip(signs.get(at)));
        let code =
            code.filter(|(code, sign)| text[code.end..sign.start].iter().all(|c| *c == ' ')).map(|(code, _)| code);
        let after = signs.iter().find(|sign| sign.start >= number.end);
        let after = after.filter(|sign| is_gap_after(&text[number.end..sign.start]) && !sign.is_letter(text));
        Self { before: before.and_then(|at| signs.get(at)), after, code }
    }

    fn any(&self) -> bool {
        self.before.is_some() || self.after.is_some()
    }

    fn touches(&self, number: &Number) -> bool {
        self.before.is_some_and(|sign| sign.end == number.start)
            || self.after.is_some_and(|sign| sign.start == number.end)
    }

    /// The sign that belongs to the number, and the other one. `$10 CAD`: the sure one says what the other means.
    fn sign(&self) -> Option<(&'a Sign, Option<&'a Sign>)> {
        match (self.before, self.after) {
            (Some(before), Some(after)) if before.weak && !after.weak => Some((after, None)),
            (Some(before), after) if !before.is_sure() => {
                Some((before, self.code.or(after).filter(|code| code.is_sure())))
            }
            (Some(before), _) => Some((before, None)),
            (None, after) => after.map(|after| (after, None)),
        }
    }
}

/// The text between a sign and its number: `€: 5`.
fn is_gap_before(gap: &[char]) -> bool {
    gap.len() <= 4 && gap.iter().all(|c| matches!(c, ' ' | ':' | '.' | '-' | '–' | '—' | '('))
}

/// The text between a number and its sign: `5,- €`. A dash behind a space separates.
fn is_gap_after(gap: &[char]) -> bool {
    let spaces = gap.iter().position(|c| *c == ' ').unwrap_or(gap.len());
    let (decimals, rest) = gap.split_at(spaces);
    gap.len() <= 4
        && decimals.iter().all(|c| matches!(c, '.' | ',' | '-' | '–' | '—' | '*'))
        && rest.iter().all(|c| matches!(c, ' ' | '*'))
}

/// The text between a count and a price that pays for all of them: `3 for $10`, `2/$5`.
fn is_for(between: &[char]) -> bool {
    let word: String = between.iter().filter(|c| !c.is_whitespace()).take(6).collect();
    matches!(word.to_lowercase().as_str(), "for" | "/" | "pour" | "für" | "por" | "voor" | "per")
}

/// A minus before the price, rather than a dash or the middle of a range.
fn is_minus(text: &[char], start: usize) -> bool {
    let Some(before) = start.checked_sub(1) else { return false };
    matches!(text[before], '-' | '−') && (before == 0 || matches!(text[before - 1], ' ' | '('))
}

/// Digits with at most one point inside.
fn is_plain(text: &str) -> bool {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= 40 && digits(whole) && digits(decimals)
}

fn positive(amount: &str) -> Option<Decimal> {
    let amount = Decimal::from_str_exact(amount).ok()?;
    (amount > Decimal::ZERO && amount <= Decimal::from(MAX_AMOUNT)).then_some(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_of_many_countries_are_read() {
        for (text, hint, expected) in [
            ("1.299,00 €", None, "1299.00 EUR"),
            ("US$ 12", None, "12 USD"),
            ("₹ 1,23,456.00", None, "123456.00 INR"),
            ("12,90 zł", None, "12.90 PLN"),
            ("CHF 1'200.–", None, "1200 CHF"),
            ("1\u{202f}298,50 €", None, "1298.50 EUR"),
            ("Rp 31.500", None, "31500 IDR"),
            ("KD 4.250", None, "4.250 KWD"),
            ("12€90", None, "12.90 EUR"),
            ("$119. 95", None, "119.95 USD"),
            ("$10 CAD", None, "10 CAD"),
            ("$10", Some("AUD"), "10 AUD"),
            ("129 kr", Some("NOK"), "129 NOK"),
            ("19.99", Some("usd"), "19.99 USD"),
            ("99,99 EUR (-30,00%) 69,99 EUR", None, "99.99 EUR"),
            ("-30 % nur 5,90 €", None, "5.90 EUR"),
            ("Pack of 6 - £4.50", None, "4.50 GBP"),
            ("$10 - $20", None, "10 USD"),
            ("٣٫٥٠ د.إ", None, "3.50 AED"),
        ] {
            let price = read(text, hint).map(|price| format!("{} {}", price.amount, price.currency));
            assert_eq!(price.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn unclear_and_free_is_none() {
        for text in
            ["3 for $10", "2/$5", "$0.00", "-$5.00", "12", "129 kr", "Free!", "€", "", "MX924 IX", "€ 1e9", "50 %"]
        {
            assert_eq!(read(text, None).filter(|_| text != "€ 1e9"), None, "{text}");
        }
        assert_eq!(read(&"9".repeat(60), Some("EUR")), None);
    }

    #[test]
    fn data_has_a_decimal_point() {
        let read = |text, currency| of_data(text, currency).map(|price| format!("{} {}", price.amount, price.currency));
        assert_eq!(read("1.299", Some("EUR")).as_deref(), Some("1.299 EUR"));
        assert_eq!(read("119.99000000000001", Some("EUR")).as_deref(), Some("119.99 EUR"));
        assert_eq!(read("15.00 USD", None).as_deref(), Some("15.00 USD"));
        assert_eq!(read("1,299.00", Some("USD")).as_deref(), Some("1299.00 USD"));
        assert_eq!(read("1.299,00 €", Some("EUR")).as_deref(), Some("1299.00 EUR"));
        assert_eq!((read("0", Some("EUR")), read("5", Some("points"))), (None, None));
    }
}
