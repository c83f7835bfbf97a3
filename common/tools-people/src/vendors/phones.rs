//! Finds the country of a phone number.

use super::Phone;

/// ITU-T E.164 country codes, each followed by its ISO 3166-1 alpha-2 country. No code is a prefix of another. Codes shared
/// by several countries are left out, so numbers in North America (+1) have no country.
const CODES: &str = "\
    20EG 211SS 212MA 213DZ 216TN 218LY 220GM 221SN 222MR 223ML 224GN 225CI 226BF 227NE 228TG 229BJ 230MU 231LR 232SL 233GH \
    234NG 235TD 236CF 237CM 238CV 239ST 240GQ 241GA 242CG 243CD 244AO 245GW 246IO 248SC 249SD 250RW 251ET 252SO 253DJ 254KE \
    255TZ 256UG 257BI 258MZ 260ZM 261MG 262RE 263ZW 264NA 265MW 266LS 267BW 268SZ 269KM 27ZA 290SH 291ER 297AW 298FO 299GL \
    30GR 31NL 32BE 33FR 34ES 350GI 351PT 352LU 353IE 354IS 355AL 356MT 357CY 358FI 359BG 36HU 370LT 371LV 372EE 373MD 374AM \
    375BY 376AD 377MC 378SM 380UA 381RS 382ME 383XK 385HR 386SI 387BA 389MK 39IT 40RO 41CH 420CZ 421SK 423LI 43AT 44GB 45DK \
    46SE 47NO 48PL 49DE 500FK 501BZ 502GT 503SV 504HN 505NI 506CR 507PA 508PM 509HT 51PE 52MX 53CU 54AR 55BR 56CL 57CO 58VE \
    590GP 591BO 592GY 593EC 594GF 595PY 596MQ 597SR 598UY 60MY 61AU 62ID 63PH 64NZ 65SG 66TH 670TL 673BN 674NR 675PG 676TO \
    677SB 678VU 679FJ 680PW 681WF 682CK 683NU 685WS 686KI 687NC 688TV 689PF 690TK 691FM 692MH 73RU 74RU 75RU 76KZ 77KZ 78RU \
    79RU 81JP 82KR 84VN 850KP 852HK 853MO 855KH 856LA 86CN 880BD 886TW 90TR 91IN 92PK 93AF 94LK 95MM 960MV 961LB 962JO 963SY \
    964IQ 965KW 966SA 967YE 968OM 970PS 971AE 972IL 973BH 974QA 975BT 976MN 977NP 98IR 992TJ 993TM 994AZ 995GE 996KG 998UZ";
/// E.164 allows at most 15 digits; fewer than 7 are not a subscriber number.
const DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

impl Phone {
    /// A number as written, and its kind such as `mobile`.
    pub fn of(fullphone: String, kind: Option<String>) -> Phone {
        Phone { country: country(&fullphone), fullphone, kind }
    }
}

/// The country of a number in international form (`+` or `00`).
fn country(number: &str) -> Option<&'static str> {
    let number = number.trim();
    let rest = number.strip_prefix('+').or_else(|| number.strip_prefix("00"))?;
    let digits: String = rest.chars().filter(char::is_ascii_digit).collect();
    let is_one = |entry: &&str| digits.starts_with(&entry[..entry.len() - 2]);
    let entry = CODES.split_whitespace().find(is_one).filter(|_| DIGITS.contains(&digits.len()))?;
    Some(&entry[entry.len() - 2..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn international_numbers_give_their_country() {
        for (number, known) in [
            ("+49 (0)30 123 45 67", Some("DE")),
            ("0044 20 7946 0000", Some("GB")),
            ("+77271234567", Some("KZ")),
            ("+79161234567", Some("RU")),
            ("+15555550100", None),
            ("030 1234567", None),
            ("+49", None),
            ("+491234567890123456", None),
        ] {
            assert_eq!(country(number), known, "{number}");
        }
        let codes: Vec<&str> = CODES.split_whitespace().map(|entry| &entry[..entry.len() - 2]).collect();
        for (at, code) in codes.iter().enumerate() {
            assert!(codes.iter().enumerate().all(|(other, longer)| other == at || !longer.starts_with(code)), "{code}");
        }
    }
}
