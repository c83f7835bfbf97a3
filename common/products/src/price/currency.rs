//! Currencies by their codes, signs and names.

/// Codes of ISO 4217 in use, sorted.
const CODES: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD \
CAD CDF CHF CLF CLP CNH CNY COP CRC CUC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ \
GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD \
MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON \
RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD \
UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWL";

/// Codes that are also English words; they count only beside a number.
const WORDS: [&str; 12] = ["ALL", "BAM", "COP", "CUP", "GEL", "LAK", "MAD", "MOP", "PEN", "SOS", "TOP", "TRY"];

/// Signs with the currencies they stand for. The first one is meant if nothing else is known; `?`: none is.
/// ASCII letters are compared without case, except in [`EXACT`].
const SIGNS: &[(&str, &str)] = &[
    (
        "$",
        "USD AUD CAD NZD HKD SGD TWD MXN ARS CLP COP UYU BBD BMD BND BSD BZD DOP FJD GYD JMD KYD LRD NAD SBD SRD TTD XCD",
    ),
    ("€", "EUR"),
    ("£", "GBP EGP FKP GIP LBP SHP SYP"),
    ("￡", "GBP"),
    ("¥", "JPY CNY"),
    ("￥", "JPY CNY"),
    ("kr", "? SEK NOK DKK ISK"),
    ("rs", "INR PKR LKR NPR MUR SCR"),
    ("₨", "? INR PKR LKR NPR MUR SCR"),
    ("us$", "USD"),
    ("u$s", "USD"),
    ("usd$", "USD"),
    ("a$", "AUD"),
    ("au$", "AUD"),
    ("aud$", "AUD"),
    ("ca$", "CAD"),
    ("c$", "CAD NIO"),
    ("can$", "CAD"),
    ("cad$", "CAD"),
    ("nz$", "NZD"),
    ("hk$", "HKD"),
    ("s$", "SGD"),
    ("sg$", "SGD"),
    ("nt$", "TWD"),
    ("mx$", "MXN"),
    ("mex$", "MXN"),
    ("mxn$", "MXN"),
    ("r$", "BRL"),
    ("ar$", "ARS"),
    ("clp$", "CLP"),
    ("col$", "COP"),
    ("rd$", "DOP"),
    ("j$", "JMD"),
    ("tt$", "TTD"),
    ("$u", "UYU"),
    ("bz$", "BZD"),
    ("bds$", "BBD"),
    ("fj$", "FJD"),
    ("ec$", "XCD"),
    ("cuc$", "CUC"),
    ("t$", "TOP"),
    ("euro", "EUR"),
    ("euros", "EUR"),
    ("dollar", "USD AUD CAD NZD HKD SGD"),
    ("dollars", "USD AUD CAD NZD HKD SGD"),
    ("pounds", "GBP"),
    ("zł", "PLN"),
    ("zl", "PLN"),
    ("złotych", "PLN"),
    ("kč", "CZK"),
    ("kčs", "CZK"),
    ("kc", "CZK"),
    ("ft", "HUF"),
    ("lei", "RON MDL"),
    ("leu", "RON MDL"),
    ("лв", "BGN KGS"),
    ("lv", "BGN"),
    ("ден", "MKD"),
    ("ден.", "MKD"),
    ("din", "RSD MKD"),
    ("дин", "RSD"),
    ("dinara", "RSD"),
    ("kn", "HRK"),
    ("lek", "ALL"),
    ("руб", "RUB BYN"),
    ("рублей", "RUB BYN"),
    ("рубль", "RUB BYN"),
    ("рубля", "RUB BYN"),
    ("р", "RUB BYN"),
    ("Р", "RUB BYN"),
    ("₽", "RUB"),
    ("rub.", "RUB"),
    ("грн", "UAH"),
    ("гривень", "UAH"),
    ("₴", "UAH"),
    ("₸", "KZT"),
    ("тг", "KZT"),
    ("тенге", "KZT"),
    ("сом", "KGS"),
    ("so'm", "UZS"),
    ("сум", "UZS"),
    ("₾", "GEL"),
    ("ლარი", "GEL"),
    ("₼", "AZN"),
    ("֏", "AMD"),
    ("₺", "TRY"),
    ("₪", "ILS"),
    ("ש״ח", "ILS"),
    ("ש\"ח", "ILS"),
    ("ש'ח", "ILS"),
    ("nis", "ILS"),
    ("د.إ", "AED"),
    ("درهم", "AED MAD"),
    ("د.م", "MAD"),
    ("dhs", "AED MAD"),
    ("dh", "? AED MAD"),
    ("ر.س", "SAR"),
    ("ريال", "SAR OMR QAR YER"),
    ("ر.ق", "QAR"),
    ("ر.ع", "OMR"),
    ("د.ك", "KWD"),
    ("دينار كويتي", "KWD"),
    ("د.ب", "BHD"),
    ("د.أ", "JOD"),
    ("د.ا", "JOD"),
    ("دينار أردني", "JOD"),
    ("د.ع", "IQD"),
    ("د.ل", "LYD"),
    ("د.ت", "TND"),
    ("د.ج", "DZD"),
    ("دينار", "? KWD BHD JOD IQD LYD TND DZD"),
    ("ج.م", "EGP"),
    ("جنيه", "EGP"),
    ("e£", "EGP"),
    ("ل.ل", "LBP"),
    ("ل.س", "SYP"),
    ("﷼", "? IRR SAR OMR QAR YER"),
    ("₹", "INR"),
    ("रु", "INR NPR"),
    ("৳", "BDT"),
    ("රු", "LKR"),
    ("฿", "THB"),
    ("บาท", "THB"),
    ("baht", "THB"),
    ("₫", "VND"),
    ("đ", "VND"),
    ("vnđ", "VND"),
    ("rp", "IDR"),
    ("₱", "PHP"),
    ("php", "PHP"),
    ("₭", "LAK"),
    ("៛", "KHR"),
    ("₮", "MNT"),
    ("₩", "KRW"),
    ("￦", "KRW"),
    ("원", "KRW"),
    ("円", "JPY"),
    ("元", "CNY TWD HKD"),
    ("圆", "CNY"),
    ("圓", "CNY"),
    ("人民币", "CNY"),
    ("rmb", "CNY"),
    ("₡", "CRC"),
    ("₲", "PYG"),
    ("b/.", "PAB"),
    ("s/", "PEN"),
    ("bs", "BOB VES"),
    ("₦", "NGN"),
    ("gh₵", "GHS"),
    ("gh¢", "GHS"),
    ("₵", "GHS"),
    ("ksh", "KES"),
    ("kshs", "KES"),
    ("tsh", "TZS"),
    ("ush", "UGX"),
    ("fcfa", "XOF XAF"),
    ("cfa", "XOF XAF"),
    ("cfp", "XPF"),
    ("sfr", "CHF"),
    ("ƒ", "AWG ANG"),
    ("؋", "AFN"),
    ("b$", "BND"),
    ("g$", "GYD"),
    ("gy$", "GYD"),
    ("l$", "LRD"),
    ("n$", "NAD"),
    ("ws$", "WST"),
    ("si$", "SBD"),
    ("mop$", "MOP"),
    ("$b", "BOB"),
    ("z$", "ZWL"),
    ("cfpf", "XPF"),
    ("fbu", "BIF"),
    ("frw", "RWF"),
    ("fdj", "DJF"),
    ("nfk", "ERN"),
    ("mtn", "MZN"),
    ("nu.", "BTN"),
    ("esc.", "CVE"),
    ("nkr", "NOK"),
    ("skr", "SEK"),
    ("dkr", "DKK"),
    ("ikr", "ISK"),
    ("manat", "AZN TMT"),
];

/// Signs of letters that are also words or units in another case; they count only beside a number, written just so.
const EXACT: &[(&str, &str)] = &[
    ("R", "ZAR"),
    ("RM", "MYR"),
    ("TL", "TRY"),
    ("KM", "BAM"),
    ("Kr", "? SEK NOK DKK ISK"),
    ("Fr", "CHF"),
    ("Fr.", "CHF"),
    ("L", "HNL"),
    ("Q", "GTQ"),
    ("MK", "MWK"),
    ("KD", "KWD"),
    ("BD", "BHD"),
    ("DT", "TND"),
    ("DA", "DZD"),
    ("LD", "LYD"),
    ("LE", "EGP"),
    ("Br", "? BYN ETB"),
    ("Rf", "MVR"),
    ("Db", "STN"),
    ("GBp", "?"),
    ("Af", "AFN"),
    ("Kz", "AOA"),
    ("FC", "CDF"),
    ("CF", "KMF"),
    ("FG", "GNF"),
    ("JD", "JOD"),
    ("LL", "LBP"),
    ("Ar", "MGA"),
    ("UM", "MRU"),
    ("MT", "MZN"),
    ("QR", "QAR"),
    ("SR", "? SAR SCR"),
    ("Le", "SLE"),
    ("VT", "VUV"),
    ("YR", "YER"),
    ("Ls", "? LVL"),
];

/// A currency in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sign {
    /// Where it is, in characters.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The currencies it may stand for; see [`SIGNS`].
    codes: &'static str,
    /// It counts only beside a number.
    pub(super) weak: bool,
}

impl Sign {
    /// The currency meant, if `near` (a code) may decide between several.
    pub(super) fn code(&self, near: Option<&str>) -> Option<&'static str> {
        let near = near.and_then(|near| self.codes.split(' ').find(|code| *code == near));
        near.or(self.codes.split(' ').next()).filter(|code| code.len() == 3)
    }

    /// Whether it is one Latin letter. Behind a number, that is mostly a unit.
    pub(super) fn is_letter(&self, text: &[char]) -> bool {
        self.end - self.start == 1 && text[self.start].is_ascii_alphabetic()
    }

    /// Whether it stands for one currency only.
    pub(super) fn is_sure(&self) -> bool {
        self.codes.len() == 3
    }
}

/// The code in upper case, if it is one of ISO 4217.
pub(super) fn known_code(text: &str) -> Option<&'static str> {
    let text = text.trim();
    if text.len() != 3 || !text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    CODES.split(' ').find(|code| code.eq_ignore_ascii_case(text))
}

/// All currencies of a text, in order.
pub(super) fn signs(text: &[char]) -> Vec<Sign> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let starts = !text[at].is_whitespace() && !text[at].is_ascii_digit() && starts_word(text, at);
        match starts.then(|| longest(text, at)).flatten() {
            Some(sign) => {
                at = sign.end;
                found.push(sign);
            }
            None => at += 1,
        }
    }
    found
}

/// Letters belong to a word from its start on; any other sign may stand anywhere.
fn starts_word(text: &[char], at: usize) -> bool {
    !text[at].is_alphabetic() || is_dense(text[at]) || at == 0 || !text[at - 1].is_alphabetic()
}

fn is_dense(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

fn longest(text: &[char], start: usize) -> Option<Sign> {
    let ends_word = |end: usize| {
        let last = text[end - 1];
        !last.is_alphabetic() || is_dense(last) || !text.get(end).is_some_and(|next| next.is_alphabetic())
    };
    let mut best: Option<Sign> = None;
    let mut offer = |end: usize, codes: &'static str, weak: bool| {
        if best.is_none_or(|best| best.end < end) && ends_word(end) {
            best = Some(Sign { start, end, codes, weak });
        }
    };
    if let Some(three) = text.get(start..start + 3)
        && let Some(code) = known_code(&three.iter().collect::<String>())
    {
        let is_upper = three.iter().all(char::is_ascii_uppercase);
        offer(start + 3, code, !is_upper || WORDS.contains(&code));
    }
    for (signs, exact) in [(SIGNS, false), (EXACT, true)] {
        for (sign, codes) in signs {
            let same = |(one, other): (&char, char)| *one == other || !exact && lower(*one) == other;
            let size = sign.chars().count();
            let matches = text.get(start..start + size).is_some_and(|part| part.iter().zip(sign.chars()).all(same));
            if matches {
                let weak = exact || sign.chars().all(char::is_alphabetic) && size < 4 && !is_dense(text[start]);
                offer(start + size, codes, weak);
            }
        }
    }
    best
}

fn lower(letter: char) -> char {
    letter.to_lowercase().next().unwrap_or(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Option<&'static str>> {
        let text: Vec<char> = text.chars().collect();
        signs(&text).iter().map(|sign| sign.code(None)).collect()
    }

    #[test]
    fn the_longest_sign_wins_and_words_are_no_signs() {
        assert_eq!(found("US$ R$ CA$ € Kč"), [Some("USD"), Some("BRL"), Some("CAD"), Some("EUR"), Some("CZK")]);
        assert_eq!(found("12,000원 3円"), [Some("KRW"), Some("JPY")]);
        assert_eq!(found("krill Rsvp Euromaster chfx"), []);
        assert_eq!(found("10 kr"), [None]);
        assert!(CODES.split(' ').is_sorted());
    }
}
