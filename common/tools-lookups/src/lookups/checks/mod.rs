//! Checks identifiers offline, by their form and check digits.
//!
//! One tool with a table of kinds: a new kind is a row of [`KINDS`]. A valid identifier need not have been issued; the
//! registries' own lookups tell that.

mod numbers;
mod vat;

use std::sync::Arc;

use base::input::{Field, FieldError, Kind as Of};
use base::money::Usdc;
use serde_json::{Value, json};
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox};

use super::row::words;
pub use numbers::{is_cve, is_inchikey};

/// One kind of identifier.
pub struct Kind {
    pub word: &'static str,
    pub about: &'static str,
    /// Checks a value, with a country if one was given; an error says what is wrong.
    pub check: fn(&str, Option<&str>) -> Result<Checked, &'static str>,
}

/// A valid identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// In its usual notation.
    pub canonical: String,
    /// Whether check digits were verified, or only the form.
    pub by_digits: bool,
    /// The country it names, if any.
    pub country: Option<String>,
}

/// All kinds that can be checked.
pub static KINDS: &[Kind] = &[
    Kind { word: "npi", about: "US health provider: Luhn over 80840 and the number", check: numbers::npi },
    Kind { word: "lei", about: "Legal entity: ISO 17442, ISO 7064 mod 97-10", check: numbers::lei },
    Kind { word: "vat", about: "VAT number of the EU, GB, XI, CH or NO: the state's own checksum", check: vat::vat },
    Kind { word: "iban", about: "Bank account: ISO 13616, length of its country, mod 97-10", check: numbers::iban },
    Kind { word: "bic", about: "Bank: ISO 9362, form only", check: numbers::bic },
    Kind { word: "aba_routing", about: "US bank: weights 3-7-1", check: numbers::aba },
    Kind { word: "isin", about: "Security: ISO 6166, Luhn", check: numbers::isin },
    Kind { word: "cusip", about: "North American security: its modified Luhn", check: numbers::cusip },
    Kind { word: "cik", about: "SEC filer: form only", check: numbers::cik },
    Kind { word: "cas", about: "Chemical: weights from the right, mod 10", check: numbers::cas },
    Kind { word: "inchikey", about: "Structure: form only", check: numbers::inchikey },
    Kind { word: "gtin", about: "Product: GS1, of 8, 12, 13 or 14 digits", check: numbers::gtin },
    Kind { word: "isbn", about: "Book: of 10 or 13 digits", check: numbers::isbn },
    Kind { word: "issn", about: "Serial: mod 11", check: numbers::issn },
    Kind { word: "orcid", about: "Researcher: ISO 7064 mod 11-2", check: numbers::orcid },
    Kind { word: "imei", about: "Mobile device: Luhn", check: numbers::imei },
    Kind { word: "cve", about: "Vulnerability: form only", check: numbers::cve },
];

/// The words of [`KINDS`], for the schema; a test compares the two.
const WORDS: [&str; 17] = [
    "npi",
    "lei",
    "vat",
    "iban",
    "bic",
    "aba_routing",
    "isin",
    "cusip",
    "cik",
    "cas",
    "inchikey",
    "gtin",
    "isbn",
    "issn",
    "orcid",
    "imei",
    "cve",
];

pub static SPEC: ToolSpec = ToolSpec {
    name: "identifier_check",
    title: "Identifier check",
    summary: "Checks an identifier's form and check digits offline: NPI, LEI, VAT, IBAN, BIC, ABA, ISIN, CAS, GTIN, ISBN, ORCID and others",
    group: "knowledge",
    paths: &["/v1/tools/lookup/identifier-check"],
    price: Price::Fixed(Usdc::from_micro(1_000)),
    input: &[
        Field::required("kind", Of::Choice(&WORDS), "What it is meant to be"),
        Field::required("value", words(1, 64), "The identifier; spaces and dashes are ignored"),
        Field::optional(
            "country",
            Of::Text { min: 2, max: 2, format: Some(&super::row::STATE_CODE) },
            "Of a VAT number without its letters",
        ),
    ],
    check: |input, _| {
        let given = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
        match input.contains_key("country") && given("kind") != "vat" {
            true => vec![FieldError::new("country", "is allowed for vat only")],
            false => Vec::new(),
        }
    },
    example: || json!({"kind": "iban", "value": "GB82 WEST 1234 5698 7654 32"}),
    output,
    ..ToolSpec::DIRECT
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

fn run(_: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let kind = KINDS.iter().find(|kind| kind.word == task.text("kind"));
        let kind = kind.ok_or_else(|| ToolError::internal("there is no such kind"))?;
        let country = task.input.get("country").and_then(Value::as_str);
        let result = match (kind.check)(task.text("value"), country) {
            Ok(checked) => json!({
                "kind": kind.word, "valid": true, "canonical": checked.canonical, "country": checked.country,
                "assurance": if checked.by_digits { "check_digits" } else { "form" }, "reason": null, "notice": NOTICE,
            }),
            Err(reason) => json!({
                "kind": kind.word, "valid": false, "canonical": null, "country": null, "assurance": null,
                "reason": reason, "notice": NOTICE,
            }),
        };
        Ok(Output::new(result, Source::embedded("checks")))
    })
}

const NOTICE: &str = "Whether it can be one; not whether it was issued, or to whom.";

fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": WORDS},
            "valid": {"type": "boolean"},
            "canonical": {"type": ["string", "null"], "description": "As it is written"},
            "country": {"type": ["string", "null"], "description": "The country it names"},
            "assurance": {
                "enum": ["check_digits", "form", null],
                "description": "Whether check digits were verified, or only the form",
            },
            "reason": {"type": ["string", "null"], "description": "What is wrong with it"},
            "notice": {"type": "string"},
        },
        "required": ["kind", "valid", "canonical", "country", "assurance", "reason", "notice"],
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Published examples of each kind.
    const GOOD: &[(&str, &[&str])] = &[
        ("npi", &["1245319599", "1234567893", "1881018208"]),
        ("lei", &["DPRBOZP0K5RM2YE8UU08", "HWUPKR0MPOU8FGXBT394", "5493001KJTIIGC8Y1R12"]),
        (
            "iban",
            &[
                "GB82 WEST 1234 5698 7654 32",
                "DE89370400440532013000",
                "FR1420041010050500013M02606",
                "NO9386011117947",
            ],
        ),
        ("bic", &["DEUTDEFF", "NEDSZAJJXXX"]),
        ("aba_routing", &["021000021", "111000025"]),
        ("isin", &["US0378331005", "AU0000XVGZA3", "GB0002634946"]),
        ("cusip", &["037833100", "17275R102", "38259P508"]),
        ("cik", &["320193", "0000320193"]),
        ("cas", &["50-00-0", "7732-18-5", "58-08-2"]),
        ("inchikey", &["BSYNRYMUTXBXSQ-UHFFFAOYSA-N"]),
        ("gtin", &["4006381333931", "73513537", "036000291452", "10614141000415"]),
        ("isbn", &["0-306-40615-2", "978-0-306-40615-7", "080442957X"]),
        ("issn", &["0378-5955", "2049-3630"]),
        ("orcid", &["0000-0002-1825-0097", "0000-0001-5109-3700", "0000-0002-1694-233X"]),
        ("imei", &["490154203237518", "352099001761481"]),
        ("cve", &["CVE-2021-44228", "cve-2014-0160"]),
        (
            "vat",
            &[
                "ATU13585627",
                "BE0428759497",
                "BG175074752",
                "CY10259033P",
                "CZ25123891",
                "DE136695976",
                "DK13585628",
                "EE100931558",
                "EL023456780",
                "ES54362315K",
                "ESX2482300W",
                "ESJ99216582",
                "FI20774740",
                "FR40303265045",
                "HR33392005961",
                "HU12892312",
                "IE6433435F",
                "IE8D79739I",
                "IE6388047V",
                "IT00743110157",
                "LT119511515",
                "LT100001919017",
                "LU15027442",
                "LV40003521600",
                "MT11679112",
                "NL004495445B01",
                "PL8567346215",
                "PT501964843",
                "RO18547290",
                "SE123456789701",
                "SI50223054",
                "SK2022749619",
                "GB980780684",
                "CHE100155212",
                "NO995525828",
                "NO995525828MVA",
            ],
        ),
    ];

    fn check(kind: &str, value: &str) -> Result<Checked, &'static str> {
        (KINDS.iter().find(|known| known.word == kind).unwrap().check)(value, None)
    }

    #[test]
    fn published_examples_pass_for_every_kind() {
        assert_eq!(WORDS.to_vec(), KINDS.iter().map(|kind| kind.word).collect::<Vec<_>>());
        for kind in KINDS {
            let (_, good) = GOOD.iter().find(|(word, _)| *word == kind.word).unwrap();
            for value in *good {
                let checked =
                    (kind.check)(value, None).unwrap_or_else(|reason| panic!("{} {value}: {reason}", kind.word));
                // The canonical form is stable.
                assert_eq!((kind.check)(&checked.canonical, None), Ok(checked));
            }
            for value in ["", " ", "x", "0", "\u{661}\u{662}", "12345678901234567890123456789012345678901234567890"] {
                if !(kind.word == "cik" && value == "0") {
                    assert!((kind.check)(value, None).is_err(), "{} {value:?}", kind.word);
                }
            }
        }
        for (kind, bad) in [
            ("npi", "1245319598"),
            ("lei", "DPRBOZP0K5RM2YE8UU09"),
            ("iban", "GB82WEST12345698765433"),
            ("iban", "GB82WEST1234569876543"),
            ("iban", "ZZ82WEST12345698765432"),
            ("aba_routing", "021000022"),
            ("cas", "50-00-1"),
            ("vat", "DE136695975"),
            ("vat", "US123456789"),
            ("cve", "CVE-1998-0001"),
        ] {
            assert!(check(kind, bad).is_err(), "{kind} {bad}");
        }
        assert_eq!(check("iban", "gb82 west 1234 5698 7654 32").unwrap().country.as_deref(), Some("GB"));
        assert_eq!(vat::vat("6388047V", Some("IE")).unwrap().canonical, "IE6388047V");
    }

    /// Numbers that differ in one thing only: the first of each pair is good.
    #[test]
    fn what_a_rule_forbids_is_found() {
        for (kind, good, bad) in [
            // Above what 32 bits hold; born in 1970 and in 1987, with a check digit of ten.
            ("vat", "CZ8557121232", "CZ8557121233"),
            ("vat", "CZ7001010160", "CZ8701010000"),
            ("vat", "CZ0575120040", "CZ0545120010"),
            ("vat", "CZ420315123", "CZ421315123"),
            ("vat", "CZ690123459", "CZ690123458"),
            ("vat", "SK8123456781", "SK8003991237"),
            ("vat", "SK8557121232", "SK8557121233"),
            ("vat", "FRK3404833048", "FRK4404833049"),
            ("vat", "FR83404833048", "FR86404833049"),
            ("vat", "FR34000123456", "FRO3404833048"),
            ("vat", "LV15118012341", "LV15118012342"),
            ("vat", "LV32028012342", "LV15138012341"),
            ("vat", "IT00743110157", "IT00743111015"),
            ("vat", "BG7523169263", "BG7553169265"),
            ("vat", "ESA00123455", "ESA5881850A"),
            ("vat", "ESA0012345E", "ESA0012345F"),
            ("vat", "NL004495445B01", "NL004495445B00"),
            ("vat", "SE123456789794", "SE123456789795"),
            ("vat", "GB123456727", "GB012345662"),
            ("isin", "XS0123456781", "ZZ0123456780"),
            ("isin", "XTV15WLZJMF0", "QQ0123456782"),
            ("isin", "EZ000000ABC8", "EZ000000ABC9"),
            ("isin", "AN8068571086", "AN8068571087"),
            ("bic", "NCBVXKPR", "DEUTZZFF"),
            ("iban", "NL91ABNA0417164300", "NL77AB1A0417164300"),
            ("iban", "MT84MALT011000012345MTLCAST001S", "DE0537040044053201300A"),
        ] {
            assert!(check(kind, good).is_ok(), "{kind} {good}");
            assert!(check(kind, bad).is_err(), "{kind} {bad}");
        }
        assert_eq!(check("isin", "US0378331005").unwrap().country.as_deref(), Some("US"));
        assert_eq!(check("isin", "XS0123456781").unwrap().country, None);
    }

    proptest! {
        /// Kinds whose rule detects any single wrong digit.
        #[test]
        fn any_single_wrong_digit_is_found(at in 0_usize..40, other in 0_u8..10, pick in 0_usize..40) {
            let promised = ["npi", "lei", "iban", "aba_routing", "gtin", "issn", "orcid", "imei", "isbn"];
            for (kind, good) in GOOD.iter().filter(|(kind, _)| promised.contains(kind)) {
                let good = good[pick % good.len()];
                let mut letters: Vec<char> = good.chars().collect();
                let at = at % letters.len();
                let digit = char::from(b'0' + other);
                if letters[at].is_ascii_digit() && letters[at] != digit {
                    letters[at] = digit;
                    let wrong: String = letters.into_iter().collect();
                    prop_assert!(check(kind, &wrong).is_err(), "{} {}", kind, wrong);
                }
            }
        }

        /// VAT rules with a weighted sum over a prime, or Luhn's, detect any single wrong digit too.
        #[test]
        fn any_single_wrong_digit_of_a_vat_number_is_found(at in 0_usize..20, other in 0_u8..10, pick in 0_usize..20) {
            let good = ["DE136695976", "DK13585628", "IT00743110157", "PL8567346215", "SK2022749619", "HR33392005961",
                "BE0428759497", "SE123456789701", "LU15027442"];
            let good = good[pick % good.len()];
            let mut letters: Vec<char> = good.chars().collect();
            let at = 2 + at % (if good.starts_with("SE") { 10 } else { letters.len() - 2 });
            let digit = char::from(b'0' + other);
            if letters[at] != digit {
                letters[at] = digit;
                let wrong: String = letters.into_iter().collect();
                prop_assert!(check("vat", &wrong).is_err(), "{}", wrong);
            }
        }

        /// No text makes a check panic.
        #[test]
        fn no_text_makes_a_check_panic(value in "\\PC{0,64}", country in proptest::option::of("[A-Z]{2}")) {
            for kind in KINDS {
                let _ = (kind.check)(&value, country.as_deref());
            }
        }

        #[test]
        fn no_identifier_like_text_makes_a_check_panic(value in "[A-Z]{0,3}[0-9]{0,14}[A-Z]{0,3}") {
            for kind in KINDS {
                let _ = (kind.check)(&value, None);
            }
        }
    }
}
