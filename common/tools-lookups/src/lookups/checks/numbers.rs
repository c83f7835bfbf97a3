//! One function per rule. All rules are public: ISO's and GS1's in their standards, the others at their registries.

use super::Checked;

type Verdict = Result<Checked, &'static str>;

const FORM: &str = "it does not have the form of this kind";
const DIGITS: &str = "its check digits are wrong";

/// Letters and digits in capitals, without separators.
pub fn plain(text: &str) -> String {
    text.chars().filter(|letter| !" -.\u{a0}".contains(*letter)).map(|letter| letter.to_ascii_uppercase()).collect()
}

pub fn digits(text: &str) -> Option<Vec<u32>> {
    text.bytes().map(|byte| byte.is_ascii_digit().then(|| u32::from(byte - b'0'))).collect()
}

fn checked(canonical: impl Into<String>, fits: bool) -> Verdict {
    if fits { Ok(Checked { canonical: canonical.into(), by_digits: true, country: None }) } else { Err(DIGITS) }
}

fn formed(canonical: impl Into<String>) -> Verdict {
    Ok(Checked { canonical: canonical.into(), by_digits: false, country: None })
}

fn with_country(verdict: Verdict, country: &str) -> Verdict {
    verdict.map(|checked| Checked { country: Some(country.to_owned()), ..checked })
}

/// The digits, if there are exactly this many.
fn of_length(text: &str, length: usize) -> Result<Vec<u32>, &'static str> {
    digits(text).filter(|digits| digits.len() == length).ok_or(FORM)
}

/// Luhn's check: the sum is a multiple of ten (ISO/IEC 7812).
pub fn luhn(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| if index % 2 == 0 { *digit } else { digit * 2 / 10 + digit * 2 % 10 })
        .sum();
    sum.is_multiple_of(10)
}

/// ISO 7064 mod 97-10: letters count from 10; the remainder must be 1.
pub fn mod_97(text: &str) -> Option<u32> {
    text.bytes().try_fold(0_u32, |rest, byte| match byte {
        b'0'..=b'9' => Some((rest * 10 + u32::from(byte - b'0')) % 97),
        b'A'..=b'Z' => Some((rest * 100 + u32::from(byte - b'A') + 10) % 97),
        _ => None,
    })
}

/// Weighted sum of the digits.
pub fn weighted(digits: &[u32], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| digit * weight).sum()
}

pub fn npi(text: &str, _: Option<&str>) -> Verdict {
    let text = plain(text);
    let digits = of_length(&text, 10)?;
    if !matches!(digits[0], 1 | 2) {
        return Err(FORM);
    }
    checked(text, luhn(&[&[8, 0, 8, 4, 0], &digits[..]].concat()))
}

pub fn lei(text: &str, _: Option<&str>) -> Verdict {
    let text = plain(text);
    let is_formed = text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_formed || !text.bytes().skip(18).all(|byte| byte.is_ascii_digit()) {
        return Err(FORM);
    }
    let fits = mod_97(&text) == Some(1);
    checked(text, fits)
}

/// Lengths by country (IBAN registry, release 99).
const IBAN_LENGTHS: &[(&str, usize)] = &[
    ("AD", 24),
    ("AE", 23),
    ("AL", 28),
    ("AT", 20),
    ("AZ", 28),
    ("BA", 20),
    ("BE", 16),
    ("BG", 22),
    ("BH", 22),
    ("BI", 27),
    ("BR", 29),
    ("BY", 28),
    ("CH", 21),
    ("CR", 22),
    ("CY", 28),
    ("CZ", 24),
    ("DE", 22),
    ("DJ", 27),
    ("DK", 18),
    ("DO", 28),
    ("EE", 20),
    ("EG", 29),
    ("ES", 24),
    ("FI", 18),
    ("FK", 18),
    ("FO", 18),
    ("FR", 27),
    ("GB", 22),
    ("GE", 22),
    ("GI", 23),
    ("GL", 18),
    ("GR", 27),
    ("GT", 28),
    ("HN", 28),
    ("HR", 21),
    ("HU", 28),
    ("IE", 22),
    ("IL", 23),
    ("IQ", 23),
    ("IS", 26),
    ("IT", 27),
    ("JO", 30),
    ("KW", 30),
    ("KZ", 20),
    ("LB", 28),
    ("LC", 32),
    ("LI", 21),
    ("LT", 20),
    ("LU", 20),
    ("LV", 21),
    ("LY", 25),
    ("MC", 27),
    ("MD", 24),
    ("ME", 22),
    ("MK", 19),
    ("MN", 20),
    ("MR", 27),
    ("MT", 31),
    ("MU", 30),
    ("NI", 28),
    ("NL", 18),
    ("NO", 15),
    ("OM", 23),
    ("PK", 24),
    ("PL", 28),
    ("PS", 29),
    ("PT", 25),
    ("QA", 29),
    ("RO", 24),
    ("RS", 22),
    ("RU", 33),
    ("SA", 24),
    ("SC", 31),
    ("SD", 18),
    ("SE", 24),
    ("SI", 19),
    ("SK", 24),
    ("SM", 27),
    ("SO", 23),
    ("ST", 25),
    ("SV", 28),
    ("TL", 23),
    ("TN", 24),
    ("TR", 26),
    ("UA", 29),
    ("VA", 22),
    ("VG", 24),
    ("XK", 20),
    ("YE", 30),
];

pub fn iban(text: &str, _: Option<&str>) -> Verdict {
    let text = plain(text);
    if !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) || text.len() < 15 {
        return Err(FORM);
    }
    let (head, account) = text.split_at(4);
    let length = IBAN_LENGTHS.iter().find(|(country, _)| *country == &head[..2]);
    let (country, length) = length.ok_or("its country has no IBANs")?;
    if text.len() != *length {
        return Err("its length is wrong for its country");
    }
    if !head[2..].bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(FORM);
    }
    let fits = mod_97(&format!("{account}{head}")) == Some(1);
    with_country(checked(text.clone(), fits), country)
}

pub fn bic(text: &str, _: Option<&str>) -> Verdict {
    let text = plain(text);
    let is_formed = matches!(text.len(), 8 | 11)
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().take(6).all(|byte| byte.is_ascii_alphabetic());
    if !is_formed {
        return Err(FORM);
    }
    let country = text[4..6].to_owned();
    with_country(formed(text), &country)
}

pub fn aba(text: &str, _: Option<&str>) -> Verdict {
    let text = plain(text);
    let digits = of_length(&text, 9)?;
    // The first two digits are a Federal Reserve district (0 to 12), a district plus 20 (thrifts) or plus 60 (electronic
    // transactions), or 80 (traveller's cheques).
    let district = digits[0] * 10 + digits[1];
    if !matches!(district, 0..=12 | 21..=32 | 61..=72 | 80) || text == "000000000" {
        return Err(FORM);
    }
    checked(text, weighted(&digits, &[3, 7, 1, 3, 7, 1, 3, 7, 1]).is_multiple_of(10))
}

pub fn isin(text: &str, _: Option<&str>) -> Verdict {
    let text = plain(text);
    let is_formed = text.len() == 12
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().take(2).all(|byte| byte.is_ascii_alphabetic())
        && text.ends_with(|letter: char| letter.is_ascii_digit());
    if !is_formed {
        return Err(FORM);
    }
    let expanded: Vec<u32> = text.chars().filter_map(|letter| letter.to_digit(36)).flat_map(two_digits).collect();
    let country = text[..2].to_owned();
    with_country(checked(text, luhn(&expanded)), &country)
}

fn two_digits(number: u32) -> Vec<u32> {
    if number < 10 { vec![number] } else { vec![number / 10, number % 10] }
}

pub fn cusip(text: &str, _: Option<&str>) -> Verdict {
    let text = plain(text);
    let value = |(index, byte): (usize, u8)| {
        let value = match byte {
            b'0'..=b'9' => u32::from(byte - b'0'),
            b'A'..=b'Z' => u32::from(byte - b'A') + 10,
            b'*' => 36,
            b'@' => 37,
            b'#' => 38,
            _ => return None,
        };
        let value = if index % 2 == 1 { value * 2 } else { value };
        Some(value / 10 + value % 10)
    };
    if text.len() != 9 || !text.ends_with(|letter: char| letter.is_ascii_digit()) {
        return Err(FORM);
    }
    let sum: Option<u32> = text.bytes().take(8).enumerate().map(value).sum();
    let fits = (10 - sum.ok_or(FORM)? % 10) % 10 == u32::from(text.as_bytes()[8] - b'0');
    checked(text, fits)
}

pub fn cik(text: &str, _: Option<&str>) -> Verdict {
    let text = text.trim();
    let digits = digits(text).filter(|digits| (1..=10).contains(&digits.len())).ok_or(FORM)?;
    if digits.iter().all(|digit| *digit == 0) {
        return Err(FORM);
    }
    formed(format!("{text:0>10}"))
}

pub fn cas(text: &str, _: Option<&str>) -> Verdict {
    let text = text.trim();
    let parts: Vec<&str> = text.split('-').collect();
    let is_formed = parts.len() == 3 && (2..=7).contains(&parts[0].len()) && parts[1].len() == 2 && parts[2].len() == 1;
    if !is_formed {
        return Err(FORM);
    }
    let digits = digits(&parts.concat()).ok_or(FORM)?;
    let (check, number) = digits.split_last().ok_or(FORM)?;
    let sum: u32 = number.iter().rev().zip(1..).map(|(digit, weight)| digit * weight).sum();
    checked(text, sum % 10 == *check)
}

pub fn inchikey(text: &str, _: Option<&str>) -> Verdict {
    let text = text.trim();
    if is_inchikey(text) { formed(text) } else { Err(FORM) }
}

/// 14 capitals, 10 capitals, one capital.
pub fn is_inchikey(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [14, 10, 1] && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
}

pub fn gtin(text: &str, _: Option<&str>) -> Verdict {
    let text = plain(text);
    let digits = digits(&text).filter(|digits| matches!(digits.len(), 8 | 12 | 13 | 14)).ok_or(FORM)?;
    checked(text, gs1(&digits))
}

fn gs1(digits: &[u32]) -> bool {
    let sum: u32 =
        digits.iter().rev().enumerate().map(|(index, digit)| digit * (if index % 2 == 0 { 1 } else { 3 })).sum();
    sum.is_multiple_of(10) && digits.iter().any(|digit| *digit != 0)
}

pub fn isbn(text: &str, _: Option<&str>) -> Verdict {
    let text = plain(text);
    match text.len() {
        13 if text.starts_with("978") || text.starts_with("979") => {
            let digits = digits(&text).ok_or(FORM)?;
            checked(text, gs1(&digits))
        }
        10 => {
            let values = with_x(&text).ok_or(FORM)?;
            let fits = weighted(&values, &[10, 9, 8, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11);
            checked(text, fits)
        }
        _ => Err(FORM),
    }
}

pub fn issn(text: &str, _: Option<&str>) -> Verdict {
    let text = plain(text);
    let values = with_x(&text).filter(|values| values.len() == 8).ok_or(FORM)?;
    checked(format!("{}-{}", &text[..4], &text[4..]), weighted(&values, &[8, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11))
}

/// Digits, of which the last may be X for ten.
fn with_x(text: &str) -> Option<Vec<u32>> {
    let (last, head) = text.as_bytes().split_last()?;
    let mut values = digits(std::str::from_utf8(head).ok()?)?;
    values.push(if *last == b'X' { 10 } else { digits(std::str::from_utf8(&[*last]).ok()?)?[0] });
    Some(values)
}

pub fn orcid(text: &str, _: Option<&str>) -> Verdict {
    let bare = text.trim().trim_start_matches("https://orcid.org/");
    let text = plain(bare);
    let values = with_x(&text).filter(|values| values.len() == 16).ok_or(FORM)?;
    let rest = values[..15].iter().fold(0, |rest, digit| (rest + digit) * 2 % 11);
    let fits = (12 - rest) % 11 == values[15];
    checked(format!("{}-{}-{}-{}", &text[..4], &text[4..8], &text[8..12], &text[12..]), fits)
}

pub fn imei(text: &str, _: Option<&str>) -> Verdict {
    let text = plain(text);
    let digits = of_length(&text, 15)?;
    if digits.iter().all(|digit| *digit == 0) {
        return Err(FORM);
    }
    checked(text, luhn(&digits))
}

pub fn cve(text: &str, _: Option<&str>) -> Verdict {
    let text = text.trim();
    if is_cve(text) { formed(text.to_ascii_uppercase()) } else { Err(FORM) }
}

/// CVE, a year from 1999 on, and four or more digits.
pub fn is_cve(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [word, year, number] = parts[..] else { return false };
    word.eq_ignore_ascii_case("cve")
        && year.len() == 4
        && (4..=19).contains(&number.len())
        && [year, number].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
        && year >= "1999"
}
