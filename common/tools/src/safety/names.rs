//! Names that a reader could take for the operator's: of mail addresses, of senders, of souls.
//!
//! Letters are compared by how they look, with Unicode's table of confusable characters (UTS 39, crate `unicode-security`).

use std::sync::LazyLock;

use base::untrusted_text::visible;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_security::mixed_script::AugmentedScriptSet;
use unicode_security::{MixedScript, skeleton};

/// Why a name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// It has the service's name, or letters that look like it.
    Service,
    /// It says only what an office of the operator does.
    Office,
    /// A word has letters of different scripts, of which some look like others.
    Mixed,
}

impl Likeness {
    /// The rest of a sentence about the member.
    pub fn message(self) -> &'static str {
        match self {
            Likeness::Service => "must not contain the name of this service, or letters that look like it",
            Likeness::Office => {
                "could be taken for the operator's office; add a name of your own, such as acme-support"
            }
            Likeness::Mixed => "must not mix letters of different scripts in a word",
        }
    }
}

/// Offices that mail is written to or comes from (RFC 2142; certificate authorities; what frauds use), in the singular.
const OFFICES: [&str; 76] = [
    "abuse",
    "account",
    "admin",
    "administrator",
    "alert",
    "all",
    "aml",
    "approval",
    "auth",
    "authentication",
    "bill",
    "billing",
    "bounce",
    "chargeback",
    "compliance",
    "contact",
    "daemon",
    "dispute",
    "dmarc",
    "donotreply",
    "escrow",
    "finance",
    "fraud",
    "ftp",
    "help",
    "hostmaster",
    "identity",
    "info",
    "invoice",
    "kyb",
    "kyc",
    "legal",
    "login",
    "mail",
    "mailer",
    "marketing",
    "moderation",
    "moderator",
    "news",
    "noc",
    "noreply",
    "notification",
    "notify",
    "office",
    "official",
    "operator",
    "owner",
    "password",
    "payment",
    "payout",
    "postmaster",
    "privacy",
    "refund",
    "registrar",
    "root",
    "sale",
    "security",
    "service",
    "settlement",
    "signin",
    "staff",
    "support",
    "sysadmin",
    "sysop",
    "treasury",
    "trust",
    "unsubscribe",
    "usenet",
    "uucp",
    "verification",
    "verified",
    "verify",
    "wallet",
    "webmaster",
    "welcome",
    "www",
];
/// Words that say nothing of their own beside an office: customer-support-team.
const BESIDE: [&str; 40] = [
    "agent",
    "and",
    "auto",
    "automated",
    "bot",
    "care",
    "center",
    "centre",
    "client",
    "customer",
    "department",
    "dept",
    "desk",
    "do",
    "email",
    "for",
    "from",
    "global",
    "group",
    "hq",
    "my",
    "no",
    "not",
    "of",
    "online",
    "our",
    "please",
    "reply",
    "request",
    "safety",
    "system",
    "team",
    "the",
    "to",
    "update",
    "user",
    "with",
    "you",
    "your",
    "us",
];

/// The same words as a reader sees them.
static WORDS: LazyLock<Vec<(String, bool)>> = LazyLock::new(|| {
    let of = |words: &[&str], is_office: bool| -> Vec<(String, bool)> {
        words.iter().map(|word| (looks(&word.to_lowercase()), is_office)).collect()
    };
    [of(&OFFICES, true), of(&BESIDE, false)].concat()
});

/// A shorter service's name is looked for as a whole word only.
const LEAST_INSIDE: usize = 4;

/// Whether a reader may take the name for the operator's. `service`: the operator's own name (`SERVICE_NAME`).
pub fn likeness(name: &str, service: &str) -> Option<Likeness> {
    let name: String = visible(name).nfkc().collect();
    let words: Vec<&str> = name.split(|letter| !belongs_to_a_word(letter)).filter(|word| !word.is_empty()).collect();
    let readings = Reading::ALL.map(|reading| words.iter().map(|word| reading.of(word)).collect::<Vec<String>>());
    if readings.iter().any(|words| names(words, service)) {
        Some(Likeness::Service)
    } else if readings.iter().any(|words| is_office(&words.concat())) {
        Some(Likeness::Office)
    } else if words.iter().any(|word| mixes(word)) {
        Some(Likeness::Mixed)
    } else {
        None
    }
}

/// Letters, digits, marks on letters, and what looks like a letter.
fn belongs_to_a_word(letter: char) -> bool {
    letter.is_alphanumeric() || is_combining_mark(letter) || "|$".contains(letter)
}

/// How a word is read.
#[derive(Clone, Copy)]
enum Reading {
    /// Capitals as their small letters, digits left out: SUPPORT24.
    Small,
    /// As it looks, so a capital I is an l: BiIIing, supp0rt24.
    Looks,
    /// Digits and signs for the letters that they stand for in play: 5upp0r7, v3rify.
    Digits,
}

impl Reading {
    const ALL: [Reading; 3] = [Reading::Small, Reading::Looks, Reading::Digits];

    fn of(self, word: &str) -> String {
        let inner = word.trim_matches(char::is_numeric);
        let read = match self {
            Reading::Small => looks(&word.to_lowercase().replace(char::is_numeric, "")),
            Reading::Looks => looks(inner),
            Reading::Digits => {
                let letter = |letter: char| match letter {
                    '3' => 'e',
                    '4' => 'a',
                    '5' | '$' => 's',
                    '7' => 't',
                    other => other,
                };
                looks(&word.to_lowercase().chars().map(letter).collect::<String>())
            }
        };
        read.replace(char::is_numeric, "")
    }
}

/// The letters as they look, small and without marks. I, l and 1 are one letter.
fn looks(text: &str) -> String {
    let letters = skeleton(text).filter(|letter| !is_combining_mark(*letter));
    let small = letters.flat_map(char::to_lowercase);
    small.map(|letter| if letter == 'i' { 'l' } else { letter }).collect()
}

/// Whether the service's name stands in a word, or in words that are written apart: ag-ora.
fn names(words: &[String], service: &str) -> bool {
    let service: String = service.to_lowercase().chars().filter(|letter| letter.is_alphanumeric()).collect();
    let service = looks(&service);
    let is_long = service.chars().count() >= LEAST_INSIDE;
    (0..words.len()).any(|at| match is_long {
        true => words[at].contains(&service) || words[at..].concat().starts_with(&service),
        false => words[at] == service,
    })
}

/// Whether the letters are nothing but offices and words beside them.
fn is_office(letters: &str) -> bool {
    // For each place: whether words can end there, and whether an office can be among them.
    let mut ends: Vec<Option<bool>> = vec![None; letters.len() + 1];
    ends[0] = Some(false);
    for at in 0..letters.len() {
        let Some(had_office) = ends[at] else { continue };
        for (word, is_office) in WORDS.iter().filter(|(word, _)| letters[at..].starts_with(word)) {
            let end = at + word.len();
            let plural = end + usize::from(letters[end..].starts_with('s'));
            for end in [end, plural] {
                ends[end] = Some(ends[end].unwrap_or(false) || had_office || *is_office);
            }
        }
    }
    ends[letters.len()] == Some(true)
}

/// Whether a word has letters that are not written together: not one script, nor Latin beside Chinese, Japanese or Korean.
fn mixes(word: &str) -> bool {
    let others: AugmentedScriptSet = word.replace(|letter: char| letter.is_ascii(), "").as_str().into();
    !(word.is_single_script() || others.hanb || others.jpan || others.kore)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_the_operators_are_found() {
        for (names, expected) in [
            (
                "agora agora-support the.agora.team myagora24 ag-ora a.g.o.r.a Agora AGORA ag0ra 4gora Agorа аgоrа ＡＧＯＲＡ \
                 Agóra 𝐀gora Ⓐⓖⓞⓡⓐ",
                Some(Likeness::Service),
            ),
            (
                "support refunds kyc billing billing2 b1lling BILLING BiIIing supp0rt24 5upp0r7 v3rify no-reply no.reply \
                 donotreply customer-support-team supportdesk mailer-daemon a.b.u.s.e adrnin payments hostmaster \
                 help_desk accounts info security-team ѕupport trust-and-safety verify-your-account",
                Some(Likeness::Office),
            ),
            ("pаypal Яhoo", Some(Likeness::Mixed)),
            (
                "ada ada.lovelace shop-7 acme-support supporters saga oracle mag-orange agent-x infotech sails legally \
                 allison helpmann Ärzte Яндекс トヨタtoyota 医者 o'neill ɓala ələ कमल the-team 24 cafe\u{301}",
                None,
            ),
        ] {
            for name in names.split_ascii_whitespace() {
                assert_eq!(likeness(name, "Agora"), expected, "{name}");
            }
        }
        for free in ["", "Mag Orange", "Ada at work", "Jane, head of sales", "👩\u{200d}🌾 Farm"] {
            assert_eq!(likeness(free, "Agora"), None, "{free}");
        }
        assert_eq!(likeness("Ag or\u{ad}a", "Agora"), Some(Likeness::Service));
        assert_eq!(likeness("Support Team", "Agora"), Some(Likeness::Office));
        assert_eq!([likeness("new-hub", "Hub"), likeness("x", "Hub")], [Some(Likeness::Service), None]);
        assert_eq!(
            [likeness("github", "Hub"), likeness("tool-market", "Tool-Market")],
            [None, Some(Likeness::Service)]
        );
    }

    #[test]
    fn a_long_name_is_read_quickly() {
        let begun = cpu_time::ThreadTime::now();
        for part in ["a", "to", "support ", "agor ", "|", "\u{fdfa}"] {
            likeness(&part.repeat(255), "Agora");
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(5));
    }
}
