//! One function per rule. All rules are public: ISO's and GS1's in their standards, the others at their registries.

use super::Checked;

type Verdict = Result<Checked, &'static str>;

const FORM: &str = "it does not have the form of this kind";
const DIGITS: &str = "its check digits are wrong";
const COUNTRY: &str = "it names no country";
const LENGTH: &str = "its length is wrong for its country";

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

/// What follows the country and the check digits (IBAN registry, release 101): how many digits (n), capitals (a) or both (c).
const ACCOUNTS: &[(&str, &str)] = &[
    ("AD", "8n12c"),
    ("AE", "19n"),
    ("AL", "8n16c"),
    ("AT", "16n"),
    ("AZ", "4a20c"),
    ("BA", "16n"),
    ("BE", "12n"),
    ("BG", "4a6n8c"),
    ("BH", "4a14c"),
    ("BI", "23n"),
    ("BR", "23n1a1c"),
    ("BY", "4c4n16c"),
    ("CH", "5n12c"),
    ("CR", "18n"),
    ("CY", "8n16c"),
    ("CZ", "20n"),
    ("DE", "18n"),
    ("DJ", "23n"),
    ("DK", "14n"),
    ("DO", "4c20n"),
    ("EE", "16n"),
    ("EG", "25n"),
    ("ES", "20n"),
    ("FI", "14n"),
    ("FK", "2a12n"),
    ("FO", "14n"),
    ("FR", "10n11c2n"),
    ("GB", "4a14n"),
    ("GE", "2a16n"),
    ("GI", "4a15c"),
    ("GL", "14n"),
    ("GR", "7n16c"),
    ("GT", "24c"),
    ("HN", "4a20n"),
    ("HR", "17n"),
    ("HU", "24n"),
    ("IE", "4a14n"),
    ("IL", "19n"),
    ("IQ", "4a15n"),
    ("IS", "22n"),
    ("IT", "1a10n12c"),
    ("JO", "4a4n18c"),
    ("KW", "4a22c"),
    ("KZ", "3n13c"),
    ("LB", "4n20c"),
    ("LC", "4a24c"),
    ("LI", "5n12c"),
    ("LT", "16n"),
    ("LU", "3n13c"),
    ("LV", "4a13c"),
    ("LY", "21n"),
    ("MC", "10n11c2n"),
    ("MD", "20c"),
    ("ME", "18n"),
    ("MK", "3n10c2n"),
    ("MN", "16n"),
    ("MR", "23n"),
    ("MT", "4a5n18c"),
    ("MU", "4a19n3a"),
    ("NI", "4a20n"),
    ("NL", "4a10n"),
    ("NO", "11n"),
    ("OM", "3n16c"),
    ("PK", "4a16c"),
    ("PL", "24n"),
    ("PS", "4a21c"),
    ("PT", "21n"),
    ("QA", "4a21c"),
    ("RO", "4a16c"),
    ("RS", "18n"),
    ("RU", "14n15c"),
    ("SA", "2n18c"),
    ("SC", "4a20n3a"),
    ("SD", "14n"),
    ("SE", "20n"),
    ("SI", "15n"),
    ("SK", "20n"),
    ("SM", "1a10n12c"),
    ("SO", "19n"),
    ("ST", "21n"),
    ("SV", "4a20n"),
    ("TL", "19n"),
    ("TN", "20n"),
    ("TR", "6n16c"),
    ("UA", "6n19c"),
    ("VA", "18n"),
    ("VG", "4a16n"),
    ("XK", "16n"),
    ("YE", "4a4n18c"),
];

pub fn iban(text: &str, _: Option<&str>) -> Verdict {
    let text = plain(text);
    if !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) || text.len() < 15 {
        return Err(FORM);
    }
    let (head, account) = text.split_at(4);
    let (country, parts) =
        ACCOUNTS.iter().find(|(country, _)| *country == &head[..2]).ok_or("its country has no IBANs")?;
    let mut rest = account;
    for part in parts.split_inclusive(char::is_alphabetic) {
        let (length, kind) = part.split_at(part.len() - 1);
        let (these, others) = rest.split_at_checked(length.parse().unwrap_or(0)).ok_or(LENGTH)?;
        let is_one = match kind {
            "n" => |letter: u8| letter.is_ascii_digit(),
            "a" => |letter: u8| letter.is_ascii_uppercase(),
            _ => |letter: u8| letter.is_ascii_alphanumeric(),
        };
        if !these.bytes().all(is_one) {
            return Err(FORM);
        }
        rest = others;
    }
    if !rest.is_empty() {
        return Err(LENGTH);
    }
    if !head[2..].bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(FORM);
    }
    let fits = mod_97(&format!("{account}{head}")) == Some(1);
    with_country(checked(text.clone(), fits), country)
}

/// All codes of countries (ISO 3166-1 alpha-2, 249 since 2011).
const COUNTRIES: &str = "\
    AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ CA CC \
    CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD \
    GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH \
    KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW \
    MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC \
    SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY \
    UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW";
/// The code that banks and numbering agencies use for Kosovo, which ISO 3166 leaves to its users.
const KOSOVO: &str = "XK";
/// Other prefixes of ISINs. For several countries: EU, international securities (XS), derivatives (EZ), digital assets (XT). Of
/// the substitute agencies: XA to XD. Inside one market: XF, QS, QT. Countries that are no more: AN, CS.
const ISIN_PREFIXES: [&str; 14] =
    [KOSOVO, "EU", "XS", "EZ", "XT", "XA", "XB", "XC", "XD", "XF", "QS", "QT", "AN", "CS"];

fn is_country(code: &str) -> bool {
    COUNTRIES.split(' ').any(|country| country == code)
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
    if !is_country(&country) && country != KOSOVO {
        return Err(COUNTRY);
    }
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
    let prefix = text[..2].to_owned();
    let is_known = is_country(&prefix);
    if !is_known && !ISIN_PREFIXES.contains(&prefix.as_str()) {
        return Err(COUNTRY);
    }
    let expanded: Vec<u32> = text.chars().filter_map(|letter| letter.to_digit(36)).flat_map(two_digits).collect();
    let verdict = checked(text, luhn(&expanded));
    if is_known { with_country(verdict, &prefix) } else { verdict }
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
