//! Phone numbers, and which of them get no texts.
//!
//! A [`Number`] is in E.164 form and fits the numbering plan of its country (libphonenumber's metadata, see
//! `assets/phone/NOTICE.md`). Whether somebody has it is not known. Refused are, in this order:
//!
//! 1. emergency numbers, of any country: as they are dialled (`112`), and behind their calling code (`+1 911`). They are
//!    looked for before the text is parsed, so that no spelling of one passes as another number;
//! 2. short codes, and numbers without their calling code or end;
//! 3. numbers at a special rate (premium, shared cost, personal, and those of `COSTLY`): whoever has one may earn from each
//!    text or call to it;
//! 4. what is no number, and numbers that no country has.
//!
//! Numbers with 555-0100 to 555-0199 behind a North American area code are set aside for fiction and belong to nobody
//! (ATIS-0300115, 555 NXX Line Number Reference Document).

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use regex_lite::Regex;
use serde::{Deserialize, Serialize};

use crate::digits;

/// Lines of the numbering plans; `assets/phone/import.py` describes them.
const DATA: &str = include_str!("../assets/phone/plans.txt");
/// E.164: most digits, with the calling code.
const MAX_DIGITS: usize = 15;
/// No number with its calling code is as short as this.
const MAX_SHORT: usize = 6;
/// Most digits of a calling code.
const MAX_CODE: usize = 3;
/// Most characters of a refused number that are shown again.
const MAX_SHOWN: usize = 64;
/// What is dialled before a calling code in place of the `+`: in most countries, in North America, Australia, Japan.
const ABROAD: [&str; 4] = ["00", "011", "0011", "010"];
/// Last digits of the numbers of one block.
const BLOCK_DIGITS: usize = 4;
/// Fictitious numbers of an area code.
const OF_AREA: u64 = 100;
/// ISO 3166 has no country for it: satellites, international networks and free numbers.
const NO_COUNTRY: &str = "001";
/// Numbers that libphonenumber counts among ordinary ones, and that cost more: by calling code, patterns as in
/// [`DATA`]. This list is ours and cannot be complete. Pagers are those that libphonenumber calls so.
const COSTLY: [(&str, &str); 17] = [
    // In any area but the free 800 and 833 to 888: pay-per-call (976) and directory assistance (555-1212), special use
    // codes of ATIS-0300051, Central Office Code (NXX) Assignment Guidelines. Area 600: satellites, and mobiles that the
    // caller pays for, Canadian NPA 600 NXX Code Assignment Guideline.
    ("1", r"(?:[2-79]\d\d|8(?:0[^0]|3[^3]|4[^4]|5[^5]|6[^6]|7[^7]|8[^8]|[129]\d))(?:976|5551212)\d*|600\d*"),
    // Persoonlijke assistentdiensten (084, 087) and pagers (066): Nummerplan telefoon- en ISDN-diensten, ACM.
    ("31", r"(?:66|8[47])\d*"),
    // Números de acesso universal (707, 708), ANACOM; pagers.
    ("351", r"(?:70|6222|689)\d*"),
    // Service numbers and directory assistance: Traficom, service numbers.
    ("358", r"(?:100|20(?:0|2[023]|9[89])|300|606|70[78]|75(?:[03]0|32|75|98)[0-2])\d*"),
    // Pagers.
    ("41", r"74\d*"),
    // Pagers (076; 07624 are mobiles of the Isle of Man): Ofcom, National Telephone Numbering Plan.
    ("44", r"76(?:[013-9]|2[0-35-9])\d*"),
    // Pagers.
    ("46", r"74\d*"),
    ("48", r"64\d*"),
    // Pagers (0164, 0168, 0169) and private networks (0181 to 0189): Bundesnetzagentur, numbering plan.
    ("49", r"(?:16[489]|18[1-9])\d*"),
    // Satellites (014) and pagers (016): ACMA, Telecommunications Numbering Plan 2015.
    ("61", r"1[46]\d*"),
    // Navi Dial (0570) and pagers (020): MIC, telephone numbering plan.
    ("81", r"(?:570|20)\d*"),
    // Satellites and international networks: ITU-T E.164, list of assigned country codes. 808 and 979 are in the data,
    // 800 is free.
    ("870", r"\d*"),
    ("878", r"\d*"),
    ("881", r"\d*"),
    ("882", r"\d*"),
    ("883", r"\d*"),
    ("888", r"\d*"),
];

/// A phone number that may get texts: `+` and digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Number(String);

/// Why a text is not a [`Number`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Emergency,
    /// Also a number that is cut off.
    ShortCode,
    /// At a special rate: premium, shared cost, personal, or of `COSTLY`.
    Premium,
    /// In E.164 form, but no country has it: its calling code, its area or its length is wrong.
    Unassigned,
    Invalid,
}

impl Refusal {
    /// What is wrong; follows the name of the field.
    pub fn message(self) -> &'static str {
        match self {
            Refusal::Emergency => "is an emergency number",
            Refusal::ShortCode => {
                "is a short code, or not the whole number: give it with its country code, as +14155552671"
            }
            Refusal::Premium => "is a number at a special rate",
            Refusal::Unassigned => {
                "is a number that does not exist: check its country code, its area code and its length, as in +14155552671"
            }
            Refusal::Invalid => "must be a phone number in E.164 form, such as +14155552671",
        }
    }
}

impl Number {
    /// Reads a number in E.164 form. The `+` may be missing; the country code may not.
    pub fn parse(text: &str) -> Result<Number, Refusal> {
        if is_emergency(text) {
            return Err(Refusal::Emergency);
        }
        let digits = text.strip_prefix('+').unwrap_or(text);
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || !(1..=MAX_DIGITS).contains(&digits.len()) {
            return Err(Refusal::Invalid);
        }
        if digits.len() <= MAX_SHORT {
            return Err(Refusal::ShortCode);
        }
        if digits.starts_with('0') {
            return Err(Refusal::Invalid);
        }
        let (plans, national) = PLANS.of(digits).ok_or(Refusal::Unassigned)?;
        match plans.iter().find_map(|plan| plan.rate(national)) {
            Some(Rate::Ordinary) => Ok(Number(format!("+{digits}"))),
            Some(Rate::Special) => Err(Refusal::Premium),
            None if national.len() <= MAX_SHORT => Err(Refusal::ShortCode),
            None => Err(Refusal::Unassigned),
        }
    }

    /// `+14155550123`
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The country (ISO 3166-1 alpha-2), or `001` for numbers of no country.
    pub fn region(&self) -> &'static str {
        let found = PLANS.of(self.0.trim_start_matches('+')).and_then(|(plans, national)| {
            plans.iter().find(|plan| plan.rate(national).is_some()).map(|plan| plan.region)
        });
        found.unwrap_or(NO_COUNTRY)
    }

    /// The number without its last four digits. Operators get numbers in such blocks.
    pub fn block(&self) -> &str {
        &self.0[..self.0.len().saturating_sub(BLOCK_DIGITS)]
    }

    /// Whether it is set aside for fiction, so that nobody outside this deployment can have it.
    pub fn is_fictitious(&self) -> bool {
        let line = self.0.strip_prefix("+1").and_then(|national| national.get(3..));
        line.is_some_and(|line| line.len() == 7 && line.starts_with("55501"))
    }

    /// A fictitious number of the United States. Numbers of different indexes below [`Number::fictitious_count`] differ.
    pub fn fictitious(index: u64) -> Number {
        let (areas, line) = (&PLANS.areas, index % OF_AREA);
        let area = usize::try_from(index / OF_AREA).ok().and_then(|place| place.checked_rem(areas.len()));
        let area = area.and_then(|place| areas.get(place)).copied().unwrap_or("202");
        Number(format!("+1{area}55501{line:02}"))
    }

    pub fn fictitious_count() -> u64 {
        OF_AREA * u64::try_from(PLANS.areas.len()).unwrap_or_default()
    }
}

/// Whether a country (ISO 3166-1 alpha-2, in upper case) has numbers.
pub fn has_country(country: &str) -> bool {
    country != NO_COUNTRY && PLANS.by_code.values().flatten().any(|plan| plan.region == country)
}

/// Whether a text dials an emergency service in some country. Only its digits count, of any script, with or without what is
/// dialled for a call abroad; and in an address such as `tel:911;phone-context=+1`, those before its parameters or host.
pub fn is_emergency(text: &str) -> bool {
    let number = text.split([';', ',', '@']).next().unwrap_or_default();
    [text, number].into_iter().any(|text| {
        let digits = digits::ascii(text, MAX_DIGITS + 1);
        let from_abroad = ABROAD.into_iter().filter_map(|prefix| digits.strip_prefix(prefix));
        std::iter::once(digits.as_str()).chain(from_abroad).any(dials_emergency)
    })
}

/// The beginning of a refused number, as its refusal shows it.
pub fn shown(text: &str) -> String {
    text.chars().take(MAX_SHOWN).collect()
}

/// As [`is_emergency`], of digits. Some write a zero between the calling code and the number (`+44 (0) 999`); no ordinary
/// number looks like this.
fn dials_emergency(digits: &str) -> bool {
    let has = |list: &str, number: &str| !number.is_empty() && list.split(' ').any(|known| known == number);
    has(PLANS.emergency, digits)
        || PLANS.of(digits).is_some_and(|(plans, national)| {
            let without_zero = national.strip_prefix('0').unwrap_or_default();
            plans.iter().any(|plan| has(plan.emergency, national) || has(plan.emergency, without_zero))
        })
}

/// Of a number that fits a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rate {
    Ordinary,
    Special,
}

/// All numbering plans.
struct Plans {
    /// Area codes with fictitious numbers.
    areas: Vec<&'static str>,
    /// Emergency numbers of all countries, with spaces between.
    emergency: &'static str,
    /// By calling code; no code is the beginning of another.
    by_code: HashMap<&'static str, Vec<Plan>>,
}

/// The numbering plan of one region.
struct Plan {
    region: &'static str,
    ordinary: Pattern,
    special: Pattern,
    /// Those of [`COSTLY`], of all regions with this calling code.
    costly: Pattern,
    emergency: &'static str,
}

static PLANS: LazyLock<Plans> = LazyLock::new(|| Plans::read(DATA));

impl Plans {
    fn read(data: &'static str) -> Plans {
        let mut plans = Plans { areas: Vec::new(), emergency: "", by_code: HashMap::new() };
        for line in data.lines() {
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["areas", areas] => plans.areas = areas.split(' ').collect(),
                ["emergency", numbers] => plans.emergency = numbers,
                [code, region, ordinary, special, emergency] => {
                    let (ordinary, special) = (Pattern::new(ordinary), Pattern::new(special));
                    let costly = COSTLY.iter().find(|(of, _)| *of == code).map_or("", |(_, pattern)| *pattern);
                    let plan = Plan { region, ordinary, special, costly: Pattern::new(costly), emergency };
                    plans.by_code.entry(code).or_default().push(plan);
                }
                _ => {}
            }
        }
        plans
    }

    /// The plans of a number's calling code, and the number without it.
    fn of<'a>(&self, digits: &'a str) -> Option<(&[Plan], &'a str)> {
        (1..=MAX_CODE).find_map(|length| {
            let (code, national) = digits.split_at_checked(length)?;
            Some((self.by_code.get(code)?.as_slice(), national))
        })
    }
}

impl Plan {
    /// `None`: the number is not of this region.
    fn rate(&self, national: &str) -> Option<Rate> {
        if self.special.matches(national) {
            return Some(Rate::Special);
        }
        let of_ordinary = || if self.costly.matches(national) { Rate::Special } else { Rate::Ordinary };
        self.ordinary.matches(national).then(of_ordinary)
    }
}

/// A pattern, compiled when it is first needed. An empty one matches nothing.
struct Pattern {
    text: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    fn new(text: &'static str) -> Pattern {
        Pattern { text, compiled: OnceLock::new() }
    }

    fn matches(&self, national: &str) -> bool {
        self.compiled().is_some_and(|regex| regex.is_match(national))
    }

    /// `None` if it is empty; a test compiles all others.
    fn compiled(&self) -> Option<&Regex> {
        let compile = || {
            let text = Some(self.text).filter(|text| !text.is_empty())?;
            Regex::new(&format!("^(?:{text})$")).ok()
        };
        self.compiled.get_or_init(compile).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<(String, &'static str), Refusal> {
        Number::parse(text).map(|number| (number.as_str().to_owned(), number.region()))
    }

    #[test]
    fn the_data_is_whole() {
        let plans: Vec<&Plan> = PLANS.by_code.values().flatten().collect();
        assert_eq!(plans.len(), DATA.lines().count() - 2);
        for plan in &plans {
            for pattern in [&plan.ordinary, &plan.special, &plan.costly] {
                assert_eq!(pattern.compiled().is_some(), !pattern.text.is_empty(), "{}: {}", plan.region, pattern.text);
            }
        }
        // Every country of ISO 3166 with a numbering plan, and its emergency numbers.
        assert!(plans.len() > 240 && PLANS.emergency.split(' ').count() > 200);
        let regions: HashSet<&str> = plans.iter().map(|plan| plan.region).collect();
        let without: Vec<&str> =
            plans.iter().filter(|plan| plan.emergency.is_empty()).map(|plan| plan.region).collect();
        assert!(regions.contains("US") && regions.contains("ZW"));
        assert!(["US", "CA", "DE", "ZW"].into_iter().all(has_country));
        assert!(!["XX", "UK", "us", NO_COUNTRY, ""].into_iter().any(has_country));
        // The source has none for these.
        assert!(
            without.iter().all(|region| [NO_COUNTRY, "GN", "GQ", "IO", "TA", "TK"].contains(region)),
            "{without:?}"
        );
        let codes: Vec<&str> = PLANS.by_code.keys().copied().collect();
        for code in &codes {
            let longer = codes.iter().find(|other| other.starts_with(code) && *other != code);
            assert!((1..=MAX_CODE).contains(&code.len()) && longer.is_none(), "{code} {longer:?}");
        }
    }

    #[test]
    fn emergency_numbers_of_all_countries_are_found_in_any_spelling() {
        // United States, European Union, United Kingdom, Australia, Japan, China, Brazil, India, Russia, Germany, France,
        // Switzerland, New Zealand, South Africa, Mexico, Nigeria, Kenya, Israel, Iran, Turkey, Ukraine.
        for number in [
            "911", "112", "999", "000", "119", "120", "190", "100", "102", "110", "15", "17", "18", "144", "111",
            "10111", "066", "199", "101", "125", "155", "103",
        ] {
            for spelled in [
                number.to_owned(),
                format!("+{number}"),
                format!(" {number} "),
                format!("tel:{number}"),
                format!("tel:{number};phone-context=+1"),
                format!("sip:{number}@203.0.113.7:5060"),
                format!("00{number}"),
            ] {
                assert_eq!(Number::parse(&spelled), Err(Refusal::Emergency), "{spelled}");
            }
        }
        for spelled in [
            "9-1-1",
            "9,1,1",
            "+1911",
            "+1 (911)",
            "+44999",
            "+44 112",
            "+61000",
            "+49110",
            "+33 15",
            "９１１",
            "＋１９１１",
            "٩١١",
            "१००",
            "0044999",
            "00 44 (0) 999",
            "+49 (0) 110",
            "011 44 999",
            "0011 1 911",
            "010-1-911",
            "+00 1 911",
        ] {
            assert!(is_emergency(spelled), "{spelled}");
        }
        let long = format!("112{}", " ".repeat(1_000));
        assert!(is_emergency(&long), "however long it is");
        assert_eq!(shown(&long).len(), MAX_SHOWN);
        // Behind a country code, only the emergency numbers of that country count.
        for other in ["+4915", "+8190", "+35290000"] {
            assert!(!is_emergency(other), "{other}");
        }
        for other in
            ["", "+", "nine one one", "9111", "+19115550100", "+12025550911", "+4915112345678", "+910000000000"]
        {
            assert!(!is_emergency(other), "{other}");
        }
    }

    #[test]
    fn numbers_are_read_with_their_country_or_refused() {
        use Refusal::{Invalid, Premium, ShortCode, Unassigned};
        let number = |text: &str, region| Ok((text.to_owned(), region));
        for (text, expected) in [
            ("+14155550123", number("+14155550123", "US")),
            ("14155550123", number("+14155550123", "US")),
            ("+16135550123", number("+16135550123", "CA")),
            ("+18765551234", number("+18765551234", "JM")),
            ("+18005550123", number("+18005550123", "US")),
            ("+447400123456", number("+447400123456", "GB")),
            ("+447781123456", number("+447781123456", "GG")),
            ("+4915112345678", number("+4915112345678", "DE")),
            // Italian numbers keep the zero of their area.
            ("+390612345678", number("+390612345678", "IT")),
            ("+79161234567", number("+79161234567", "RU")),
            ("+77012345678", number("+77012345678", "KZ")),
            ("+2908123", number("+2908123", "TA")),
            ("+2478123", Err(ShortCode)),
            ("+5491123456789", number("+5491123456789", "AR")),
            ("+80012345678", number("+80012345678", "001")),
            // Short codes: as they are dialled, and behind a country code.
            ("24273", Err(ShortCode)),
            ("+24273", Err(ShortCode)),
            ("123456", Err(ShortCode)),
            ("+124273", Err(ShortCode)),
            ("+4460777", Err(ShortCode)),
            ("+49", Err(ShortCode)),
            // Premium numbers, shared cost, personal numbers.
            ("+19002345678", Err(Premium)),
            ("+449011234567", Err(Premium)),
            ("+448431234567", Err(Premium)),
            ("+447012345678", Err(Premium)),
            ("+15002345678", Err(Premium)),
            ("+33891123456", Err(Premium)),
            ("+979123456789", Err(Premium)),
            // No numbers.
            ("", Err(Invalid)),
            ("+", Err(Invalid)),
            ("0049 151 12345678", Err(Invalid)),
            ("+1 415 555 0123", Err(Invalid)),
            ("++14155550123", Err(Invalid)),
            ("004915112345678", Err(Invalid)),
            // The form of numbers, and no country has them: too short, too long, an area and calling codes that are free.
            ("+1415555012", Err(Unassigned)),
            ("+141555501234", Err(Unassigned)),
            ("+11155550123", Err(Unassigned)),
            ("4155550123", Err(Unassigned)),
            ("+2101234567", Err(Unassigned)),
            ("+9999999999", Err(Unassigned)),
            ("+1234567890123456", Err(Invalid)),
            ("+１４１５５５５０１２３", Err(Invalid)),
            ("+14155550123\n", Err(Invalid)),
            ("+1415555\u{202e}0123", Err(Invalid)),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }

    #[test]
    fn numbers_that_cost_more_are_refused_beside_ordinary_ones_of_their_country() {
        // Calling code; refused, by the data or by our table; ordinary: lines, mobiles, free numbers.
        for (code, refused, ordinary) in [
            (
                "1",
                "2129761234 4169761234 8019761234 8089761234 2125551212 4165551212 6002345678 \
                 9002345678 5002345678 5222345678 5332345678 5882345678 2469761234",
                "2122345678 4162345678 2129751234 2125551213 8009761234 8339761234 8889761234 8005551212 8662345678",
            ),
            ("31", "840123456 870123456 661234567 9001234", "201234567 612345678 880123456 8001234"),
            ("33", "891123456 820123456 810123456", "123456789 612345678 970123456 801123456"),
            ("34", "803123456 901123456 701234567", "911234567 612345678 900123456"),
            ("351", "707123456 708123456 760123456 622212345", "211234567 912345678 800123456"),
            (
                "358",
                "100100 20202 202021 2098123456 3001234 600123456 6061234567 7500012",
                "912345678 401234567 201234567 294123456 7500312 800123456",
            ),
            ("39", "899123456 199123456 848123456", "0612345678 3121234567 800123456"),
            ("41", "740123456 900123456", "441234567 781234567 800123456"),
            (
                "44",
                "7640123456 7600123456 7012345678 8451234567 8711234567 9012345678",
                "2079460018 7400123456 7624501234 3012345678 8081234567",
            ),
            ("46", "740123456 9001234567", "81234567 701234567 20123456"),
            ("48", "641234567 701234567", "123456789 512345678 800123456"),
            (
                "49",
                "1641234567 16812345 18112345 18012345 1371234567 9001234567 70012345678",
                "3012345678 15112345678 1601234567 1721234567 8001234567",
            ),
            ("61", "147112345 145101234 1631234 1300123456", "212345678 412345678 1800123456"),
            ("81", "570123456 2012345678 990123456", "312345678 9012345678 5012345678 120123456"),
            ("870", "612345678 773111632", ""),
            ("878", "101234567890", ""),
            ("881", "612345678 812345678", ""),
            ("882", "1612345678", ""),
            ("883", "510012345", ""),
            ("888", "12345678901", ""),
        ] {
            for national in refused.split_whitespace() {
                assert_eq!(read(&format!("+{code}{national}")), Err(Refusal::Premium), "+{code} {national}");
            }
            for national in ordinary.split_whitespace() {
                assert!(read(&format!("+{code}{national}")).is_ok(), "+{code} {national}");
            }
        }
        // Each line of the table is for a calling code that exists, and the only one for it.
        let codes: HashSet<&str> = COSTLY.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes.len(), COSTLY.len());
        assert!(codes.iter().all(|code| PLANS.by_code.contains_key(code)), "{codes:?}");
    }

    #[test]
    fn fictitious_numbers_are_valid_and_differ() {
        let count = Number::fictitious_count();
        assert!(count > 30_000, "{count}");
        let numbers: HashSet<Number> = (0..count).map(Number::fictitious).collect();
        assert_eq!(u64::try_from(numbers.len()).unwrap(), count);
        for index in [0, 1, 99, 100, count - 1, count, u64::MAX] {
            let number = Number::fictitious(index);
            assert_eq!(Number::parse(number.as_str()), Ok(number.clone()));
            assert_eq!((number.region(), number.is_fictitious()), ("US", true), "{number:?}");
        }
        assert_eq!(Number::fictitious(count), Number::fictitious(0));
        for (text, expected) in [
            ("+12025550100", true),
            ("+12025550199", true),
            ("+16135550142", true),
            ("+12025550200", false),
            ("+12025550099", false),
            ("+12025560100", false),
            ("+4915112345678", false),
        ] {
            assert_eq!(Number::parse(text).unwrap().is_fictitious(), expected, "{text}");
        }
    }

    #[test]
    fn a_block_is_the_number_without_four_digits() {
        let of = |text: &str| Number::parse(text).unwrap().block().to_owned();
        assert_eq!((of("+12025550100").as_str(), of("+4915112345678").as_str()), ("+1202555", "+491511234"));
    }

    #[test]
    fn a_stored_number_is_its_text() {
        let number = Number::fictitious(0);
        assert_eq!(serde_json::json!(number), serde_json::json!(number.as_str()));
        assert_eq!(serde_json::from_str::<Number>(&format!("\"{}\"", number.as_str())).unwrap(), number);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}|\\+?[0-9]{0,17}") {
            if let Ok(number) = Number::parse(&text) {
                prop_assert!((8..=16).contains(&number.as_str().len()));
                prop_assert_eq!(Number::parse(number.as_str()), Ok(number.clone()));
                prop_assert!(number.region().len() >= 2);
            }
        }
    }
}
