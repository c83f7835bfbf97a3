//! VAT numbers: each country's checksum, as its tax office and the Commission publish it (VIES, "algorithms"; HMRC and the
//! Swiss and Norwegian business registers for theirs).

use super::Checked;
use super::numbers::{digits, luhn, mod_97, plain, weighted};

const FORM: &str = "it does not have the form of its country's numbers";
const DIGITS: &str = "its check digits are wrong";
const STATE: &str = "its country is not supported; supported are the EU, GB, XI, CH and NO";

/// Outcome of a country's rule: whether the check digits are right, or that there are none.
enum Said {
    Fits(bool),
    FormOnly,
}
use Said::{Fits, FormOnly};

/// Checks a number with its country letters, or without them if `country` is given.
pub fn vat(text: &str, country: Option<&str>) -> Result<Checked, &'static str> {
    let text: String = plain(text).replace('/', "");
    if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+*".contains(&byte)) || text.len() < 4 {
        return Err(FORM);
    }
    let (country, number) = match country {
        Some(country) => (country, text.strip_prefix(country).unwrap_or(&text)),
        None => (&text[..2], &text[2..]),
    };
    let country = if country == "GR" { "EL" } else { country };
    let said = rule(country, number)?;
    match said {
        Fits(false) => Err(DIGITS),
        said => Ok(Checked {
            canonical: format!("{country}{number}"),
            by_digits: matches!(said, Fits(_)),
            country: Some(country.to_owned()),
        }),
    }
}

fn rule(country: &str, number: &str) -> Result<Said, &'static str> {
    // Most countries' numbers consist only of digits and have a fixed length.
    let all = digits(number);
    let of = |length: usize| all.clone().filter(|digits| digits.len() == length).ok_or(FORM);
    let not_zero_first = |digits: Vec<u32>| if digits[0] == 0 { Err(FORM) } else { Ok(digits) };
    Ok(match country {
        "AT" => {
            let d = number.strip_prefix('U').and_then(digits).filter(|d| d.len() == 8).ok_or(FORM)?;
            let sum: u32 = (0..7).map(|i| if i % 2 == 0 { d[i] } else { d[i] * 2 / 10 + d[i] * 2 % 10 }).sum();
            Fits((10 - (sum + 4) % 10) % 10 == d[7])
        }
        "BE" => {
            let d = of(10)?;
            if d[0] > 1 {
                return Err(FORM);
            }
            Fits(97 - value(&d[..8]) % 97 == value(&d[8..]))
        }
        "BG" => bulgaria(&all.ok_or(FORM)?)?,
        "CY" => {
            let (head, letter) = split_letter(number)?;
            let d = digits(head).filter(|d| d.len() == 8).ok_or(FORM)?;
            const ODD: [u32; 10] = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21];
            let sum: u32 = d.iter().enumerate().map(|(i, d)| if i % 2 == 0 { ODD[*d as usize] } else { *d }).sum();
            Fits(u32::from(letter - b'A') == sum % 26)
        }
        "CZ" => match all.ok_or(FORM)? {
            d if d.len() == 8 && d[0] != 9 => Fits((11 - weighted(&d[..7], &[8, 7, 6, 5, 4, 3, 2]) % 11) % 10 == d[7]),
            d if d.len() == 9 && d[0] == 6 => Fits((weighted(&d[1..8], &[8, 7, 6, 5, 4, 3, 2]) % 11 + 8) % 10 == d[8]),
            d => birth_number(&d)?,
        },
        "DE" => Fits(mod_11_10(&not_zero_first(of(9)?)?)),
        "DK" => Fits(weighted(&not_zero_first(of(8)?)?, &[2, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11)),
        "EE" => {
            let d = of(9)?;
            Fits((10 - weighted(&d[..8], &[3, 7, 1, 3, 7, 1, 3, 7]) % 10) % 10 == d[8])
        }
        "EL" => {
            let d = of(9)?;
            Fits(weighted(&d[..8], &[256, 128, 64, 32, 16, 8, 4, 2]) % 11 % 10 == d[8])
        }
        "ES" => spain(number)?,
        "FI" => {
            let d = of(8)?;
            let rest = weighted(&d[..7], &[7, 9, 10, 5, 8, 4, 2]) % 11;
            Fits(rest != 1 && (11 - rest) % 11 == d[7])
        }
        "FR" => {
            let (key, siren) = number.split_at_checked(2).ok_or(FORM)?;
            let siren = digits(siren).filter(|d| d.len() == 9).ok_or(FORM)?;
            // Monaco's numbers begin with 000, and are not in the register of companies.
            let is_listed = siren.starts_with(&[0, 0, 0]) || luhn(&siren);
            let siren = value(&siren);
            let fits = match digits(key) {
                Some(key) => value(&key) == (12 + 3 * (siren % 97)) % 97,
                None => {
                    const KEY: &str = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ";
                    let mut places = key.chars().map(|letter| KEY.find(letter).ok_or(FORM));
                    let (first, second) = (places.next().ok_or(FORM)??, places.next().ok_or(FORM)??);
                    let key = if first < 10 { first * 24 + second - 10 } else { first * 34 + second - 100 } as u64;
                    (siren + 1 + key / 11) % 11 == key % 11
                }
            };
            Fits(is_listed && fits)
        }
        "HR" => Fits(mod_11_10(&of(11)?)),
        "HU" => {
            let d = of(8)?;
            Fits((10 - weighted(&d[..7], &[9, 7, 3, 1, 9, 7, 3]) % 10) % 10 == d[7])
        }
        "IE" => ireland(number)?,
        "IT" => {
            let d = of(11)?;
            // The office that issued it.
            let is_office = matches!(value(&d[7..10]), 1..=100 | 120 | 121 | 888 | 999);
            if value(&d[..7]) == 0 || !is_office {
                return Err(FORM);
            }
            Fits(luhn(&d))
        }
        "LT" => lithuania(&all.ok_or(FORM)?)?,
        "LU" => {
            let d = of(8)?;
            Fits(value(&d[..6]) % 89 == value(&d[6..]))
        }
        "LV" => {
            let d = of(11)?;
            // A person's code. Since 2017 they begin with 32 and have no date.
            if d[0] <= 3 {
                if d[..2] == [3, 2] {
                    return Ok(FormOnly);
                }
                let year = 1800 + 100 * value(&d[6..7]) + value(&d[4..6]);
                if d[6] > 2 || !is_date(year, value(&d[2..4]), value(&d[..2])) {
                    return Err(FORM);
                }
                let check = (1 + weighted(&d[..10], &[10, 5, 8, 4, 2, 1, 6, 3, 7, 9])) % 11 % 10;
                return Ok(Fits(check == d[10]));
            }
            let sum = weighted(&d[..10], &[9, 1, 4, 8, 3, 10, 2, 5, 7, 6]);
            let rest = if sum % 11 == 4 && d[0] == 9 { sum.saturating_sub(45) % 11 } else { sum % 11 };
            let check = match rest {
                4 => 0,
                5.. => 14 - rest,
                _ => 3 - rest,
            };
            Fits(check == d[10])
        }
        "MT" => {
            let d = not_zero_first(of(8)?)?;
            Fits(u64::from(37 - weighted(&d[..6], &[3, 4, 6, 7, 8, 9]) % 37) == value(&d[6..]))
        }
        "NL" => {
            let (head, branch) = number.split_once('B').ok_or(FORM)?;
            let d = digits(head).filter(|d| d.len() == 9).ok_or(FORM)?;
            digits(branch).filter(|d| d.len() == 2 && value(d) > 0).ok_or(FORM)?;
            if value(&d) == 0 {
                return Err(FORM);
            }
            let by_eleven = weighted(&d[..8], &[9, 8, 7, 6, 5, 4, 3, 2]) % 11 == d[8];
            // Since 2020, sole traders' numbers follow the mod 97 rule.
            Fits(by_eleven || mod_97(&format!("NL{number}")) == Some(1))
        }
        "PL" => {
            let d = of(10)?;
            Fits(weighted(&d[..9], &[6, 5, 7, 2, 3, 4, 5, 6, 7]) % 11 == d[9])
        }
        "PT" => {
            let d = not_zero_first(of(9)?)?;
            let check = 11 - weighted(&d[..8], &[9, 8, 7, 6, 5, 4, 3, 2]) % 11;
            Fits((if check >= 10 { 0 } else { check }) == d[8])
        }
        "RO" => {
            let d = all.filter(|d| (2..=10).contains(&d.len()) && d[0] != 0).ok_or(FORM)?;
            let mut padded = vec![0; 10 - d.len()];
            padded.extend(&d);
            Fits(weighted(&padded[..9], &[7, 5, 3, 2, 1, 7, 5, 3, 2]) * 10 % 11 % 10 == padded[9])
        }
        "SE" => {
            let d = of(12)?;
            if !(1..=94).contains(&value(&d[10..])) {
                return Err(FORM);
            }
            Fits(luhn(&d[..10]))
        }
        "SI" => {
            let d = not_zero_first(of(8)?)?;
            let check = 11 - weighted(&d[..7], &[8, 7, 6, 5, 4, 3, 2]) % 11;
            Fits(check != 11 && check % 10 == d[7])
        }
        "SK" => {
            let d = of(10)?;
            let is_issued = d[0] > 0 && matches!(d[2], 2..=4 | 7..=9) && value(&d).is_multiple_of(11);
            Fits(is_issued || matches!(birth_number(&d), Ok(Fits(true))))
        }
        "GB" | "XI" => united_kingdom(number)?,
        "CH" => {
            let number = number.strip_prefix('E').ok_or(FORM)?;
            let number = ["MWST", "TVA", "IVA"].iter().find_map(|end| number.strip_suffix(end)).unwrap_or(number);
            let d = digits(number).filter(|d| d.len() == 9).ok_or(FORM)?;
            let check = 11 - weighted(&d[..8], &[5, 4, 3, 2, 7, 6, 5, 4]) % 11;
            Fits(check != 10 && check % 11 == d[8])
        }
        "NO" => {
            let d = digits(number.strip_suffix("MVA").unwrap_or(number)).filter(|d| d.len() == 9).ok_or(FORM)?;
            let check = 11 - weighted(&d[..8], &[3, 2, 7, 6, 5, 4, 3, 2]) % 11;
            Fits(check != 10 && check % 11 == d[8])
        }
        _ => return Err(STATE),
    })
}

/// Digits as a number (at most nineteen digits).
fn value(digits: &[u32]) -> u64 {
    digits.iter().fold(0, |number, digit| number * 10 + u64::from(*digit))
}

fn is_date(year: u64, month: u64, day: u64) -> bool {
    let part = |number: u64| u32::try_from(number).unwrap_or(0);
    let year = i32::try_from(year).unwrap_or(0);
    chrono::NaiveDate::from_ymd_opt(year, part(month), part(day)).is_some()
}

/// A Czech or Slovak birth number: the date, the month plus 50 for women and plus 20 if the day's numbers ran out, and a serial
/// number. Since 1954 it has ten digits and is a multiple of 11. Until 1985 a check digit of ten was written as 0.
fn birth_number(d: &[u32]) -> Result<Said, &'static str> {
    if !matches!(d.len(), 9 | 10) {
        return Err(FORM);
    }
    let is_old = d.len() == 9;
    let year = match (value(&d[..2]), is_old) {
        (year @ 0..=53, true) | (year @ 54.., false) => 1900 + year,
        (year @ 80.., true) => 1800 + year,
        (year, false) => 2000 + year,
        (_, true) => return Err(FORM),
    };
    let month = match value(&d[2..4]) % 50 {
        month @ 21..=32 => month - 20,
        month => month,
    };
    if !is_date(year, month, value(&d[4..6])) {
        return Err(FORM);
    }
    if is_old {
        return Ok(FormOnly);
    }
    let rest = value(&d[..9]) % 11;
    Ok(Fits(rest == u64::from(d[9]) || (rest == 10 && d[9] == 0 && year <= 1985)))
}

fn split_letter(number: &str) -> Result<(&str, u8), &'static str> {
    let last = number.as_bytes().last().copied().filter(u8::is_ascii_uppercase).ok_or(FORM)?;
    Ok((&number[..number.len() - 1], last))
}

/// ISO 7064 mod 11,10.
fn mod_11_10(digits: &[u32]) -> bool {
    let Some((check, number)) = digits.split_last() else { return false };
    let product = number.iter().fold(10, |product, digit| {
        let sum = (digit + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    (11 - product) % 10 == *check
}

fn bulgaria(d: &[u32]) -> Result<Said, &'static str> {
    match d.len() {
        9 => {
            let first = weighted(&d[..8], &[1, 2, 3, 4, 5, 6, 7, 8]) % 11;
            let check = if first == 10 { weighted(&d[..8], &[3, 4, 5, 6, 7, 8, 9, 10]) % 11 % 10 } else { first };
            Ok(Fits(check == d[8]))
        }
        // A citizen's number, a foreigner's, or another one.
        10 => {
            // The month of a citizen's birth tells the century, too.
            let (century, month) = match value(&d[2..4]) {
                month @ 41.. => (2000, month - 40),
                month @ 21.. => (1800, month - 20),
                month => (1900, month),
            };
            let is_born = is_date(century + value(&d[..2]), month, value(&d[4..6]));
            let citizen = is_born && weighted(&d[..9], &[2, 4, 8, 5, 10, 9, 7, 3, 6]) % 11 % 10 == d[9];
            let foreigner = weighted(&d[..9], &[21, 19, 17, 13, 11, 9, 7, 3, 1]) % 10 == d[9];
            let other = 11 - weighted(&d[..9], &[4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
            Ok(Fits(citizen || foreigner || (other != 10 && other % 11 == d[9])))
        }
        _ => Err(FORM),
    }
}

fn spain(number: &str) -> Result<Said, &'static str> {
    const PERSON: &[u8; 23] = b"TRWAGMYFPDXBNJZSQVHLCKE";
    const COMPANY: &[u8; 10] = b"JABCDEFGHI";
    if number.len() != 9 {
        return Err(FORM);
    }
    let bytes = number.as_bytes();
    // The letter of a foreigner stands for a digit.
    let person = |head: u8, rest: &str| {
        let d = digits(rest).filter(|d| d.len() == 7).ok_or(FORM)?;
        let number = u64::from(head) * 10_000_000 + value(&d);
        Ok(Fits(PERSON[(number % 23) as usize] == bytes[8]))
    };
    match bytes[0] {
        first @ b'0'..=b'9' => person(first - b'0', &number[1..8]),
        first @ b'X'..=b'Z' => person(first - b'X', &number[1..8]),
        b'K' | b'L' | b'M' => person(0, &number[1..8]),
        first if b"ABCDEFGHJNPQRSUVW".contains(&first) => {
            let d = digits(&number[1..8]).ok_or(FORM)?;
            let doubled = |digit: u32| digit * 2 / 10 + digit * 2 % 10;
            let sum: u32 = d.iter().enumerate().map(|(i, d)| if i % 2 == 0 { doubled(*d) } else { *d }).sum();
            let check = (10 - sum % 10) % 10;
            let by_digit = bytes[8] == b'0' + u8::try_from(check).unwrap_or(0);
            let by_letter = bytes[8] == COMPANY[check as usize];
            Ok(Fits(match first {
                // A letter if the company is not resident.
                b'A' | b'B' | b'E' | b'H' => by_digit || (by_letter && d[..2] == [0, 0]),
                b'P' | b'Q' | b'R' | b'S' | b'W' | b'N' => by_letter,
                _ => by_digit || by_letter,
            }))
        }
        _ => Err(FORM),
    }
}

fn ireland(number: &str) -> Result<Said, &'static str> {
    const LETTERS: &[u8; 23] = b"WABCDEFGHIJKLMNOPQRSTUV";
    let bytes = number.as_bytes();
    let (seven, letter, extra) = match (bytes.len(), bytes.get(1)) {
        // The form before 2013, with a letter or sign in second place.
        (8, Some(second)) if !second.is_ascii_digit() => (format!("0{}{}", &number[2..7], &number[..1]), bytes[7], 0),
        (8, _) => (number[..7].to_owned(), bytes[7], 0),
        (9, _) => {
            let extra = match bytes[8] {
                b'W' => 0,
                letter @ b'A'..=b'I' => u32::from(letter - b'A') + 1,
                _ => return Err(FORM),
            };
            (number[..7].to_owned(), bytes[7], extra)
        }
        _ => return Err(FORM),
    };
    let d = digits(&seven).ok_or(FORM)?;
    let sum = weighted(&d, &[8, 7, 6, 5, 4, 3, 2]) + 9 * extra;
    Ok(Fits(LETTERS[sum as usize % 23] == letter))
}

fn lithuania(d: &[u32]) -> Result<Said, &'static str> {
    let (number, marker) = match d.len() {
        9 => (&d[..8], d[7]),
        12 => (&d[..11], d[10]),
        _ => return Err(FORM),
    };
    if marker != 1 {
        return Err(FORM);
    }
    let sum = |from: u32| number.iter().zip(from..).map(|(d, i)| d * ((i - 1) % 9 + 1)).sum::<u32>() % 11;
    let check = if sum(1) == 10 { sum(3) % 10 } else { sum(1) };
    Ok(Fits(check == d[d.len() - 1]))
}

fn united_kingdom(number: &str) -> Result<Said, &'static str> {
    // Government departments and health authorities have three digits, each in its range.
    for (word, range) in [("GD", 0..=499), ("HA", 500..=999)] {
        if let Some(rest) = number.strip_prefix(word) {
            let d = digits(rest).filter(|d| d.len() == 3).ok_or(FORM)?;
            return if range.contains(&value(&d)) { Ok(FormOnly) } else { Err(FORM) };
        }
    }
    let d = digits(number).filter(|d| matches!(d.len(), 9 | 12)).ok_or(FORM)?;
    let sum = u64::from(weighted(&d[..7], &[8, 7, 6, 5, 4, 3, 2])) + value(&d[7..9]);
    // Numbers issued since 2010, from 100 on, are offset by 55.
    Ok(Fits(sum.is_multiple_of(97) || (d[0] > 0 && (sum + 55).is_multiple_of(97))))
}
