//! Names that a reader could take for the operator's: of mail addresses, of senders, of souls.
//!
//! A word of the letters a to z, accents and digits around it left out, is read as it is written: Ali is not "all", nor Arni
//! "aml". So "adrnin" is free. The letters of other words are compared by how they look, with Unicode's table of confusable
//! characters (UTS 39, crate `unicode-security`).

use std::sync::LazyLock;

use base::untrusted_text::visible;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_security::skeleton;

use super::scripts::{is_unusual, mixes};

/// Why a name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// It has the service's name, or letters that look like it.
    Service,
    /// It says only what an office of the operator does.
    Office,
    /// It has letters that names are not written with today: small capitals, letters in boxes.
    Unusual,
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
            Likeness::Unusual => {
                "must not have letters that are in no common use, such as small capitals, letters in boxes or phonetic signs"
            }
            Likeness::Mixed => "must not mix letters of different scripts in a word",
        }
    }
}

/// Offices that mail is written to or comes from (RFC 2142; certificate authorities; what frauds use), in the
/// singular. Not "bill": many are called so.
const OFFICES: [&str; 75] = [
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

/// A word that is looked for, and whether it is an office.
type Known = (String, bool);

/// The same words as they are written.
static WRITTEN: LazyLock<Vec<Known>> = LazyLock::new(|| known(str::to_owned));
/// The same words as a reader sees them.
static SEEN: LazyLock<Vec<Known>> = LazyLock::new(|| known(looks));

fn known(read: fn(&str) -> String) -> Vec<Known> {
    let of =
        |words: &[&str], is_office: bool| -> Vec<Known> { words.iter().map(|word| (read(word), is_office)).collect() };
    [of(&OFFICES, true), of(&BESIDE, false)].concat()
}

/// A shorter service's name is not put together from words.
const LEAST_JOINED: usize = 4;

/// Whether a reader may take the name for the operator's. `service`: the operator's own name (`SERVICE_NAME`).
pub fn likeness(name: &str, service: &str) -> Option<Likeness> {
    let name: String = visible(name).nfkc().collect();
    let apart: Vec<Vec<&str>> = name.split_whitespace().map(words).filter(|words| !words.is_empty()).collect();
    let words = apart.concat();
    if names(&apart, service) {
        Some(Likeness::Service)
    } else if is_office(&words) {
        Some(Likeness::Office)
    } else if name.chars().any(is_unusual) {
        Some(Likeness::Unusual)
    } else if words.iter().any(|word| mixes(word)) {
        Some(Likeness::Mixed)
    } else {
        None
    }
}

/// Whether a word is one of these or, if it has other letters than a to z, looks like one. All in small letters.
pub fn is_one_of(word: &str, these: &[&str]) -> bool {
    these.contains(&word) || !word.is_ascii() && these.iter().any(|other| looks(other) == looks(word))
}

fn words(text: &str) -> Vec<&str> {
    text.split(|letter| !belongs_to_a_word(letter)).filter(|word| !word.is_empty()).collect()
}

/// Letters, digits, marks on letters, and what looks like a letter.
fn belongs_to_a_word(letter: char) -> bool {
    letter.is_alphanumeric() || is_combining_mark(letter) || "|$".contains(letter)
}

/// How a word is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// As it is written: Support, agora2.
    Written,
    /// As it is written, digits for the letters that they stand for: suppor7, 4gora. The 1 is an i: 1nfo.
    WrittenI,
    /// The 1 is an l: al1.
    WrittenL,
    /// Capitals as their small letters, digits left out: SUP24PORT.
    Small,
    /// As it looks, so a capital I is an l: BiII1ng, supp0rt24.
    Looks,
    /// Digits and signs for the letters that they stand for in play: 5upp0r7, v3rify.
    Digits,
}

impl Reading {
    const OF_LETTERS: [Reading; 3] = [Reading::Written, Reading::WrittenI, Reading::WrittenL];
    const OF_SIGNS: [Reading; 3] = [Reading::Small, Reading::Looks, Reading::Digits];

    /// The readings of words that belong together.
    fn all(words: &[&str]) -> [Reading; 3] {
        let of_letters = |word: &&str| {
            let bare = bare(word);
            bare.trim_matches(char::is_numeric).bytes().all(|byte| byte.is_ascii_alphabetic())
        };
        if words.iter().all(of_letters) { Reading::OF_LETTERS } else { Reading::OF_SIGNS }
    }

    fn known(self) -> &'static [Known] {
        if Reading::OF_LETTERS.contains(&self) { &WRITTEN } else { &SEEN }
    }

    fn of(self, word: &str) -> String {
        let read = match self {
            Reading::Written => bare(word),
            Reading::WrittenI => for_digits(&bare(word)).replace('1', "i").replace('0', "o"),
            Reading::WrittenL => for_digits(&bare(word)).replace('1', "l").replace('0', "o"),
            Reading::Small => looks(&word.to_lowercase().replace(char::is_numeric, "")),
            Reading::Looks => looks(word.trim_matches(char::is_numeric)),
            Reading::Digits => looks(&for_digits(&word.to_lowercase())),
        };
        read.replace(char::is_numeric, "")
    }
}

/// The letters as they are written, small and without marks.
fn bare(word: &str) -> String {
    word.nfd().filter(|letter| !is_combining_mark(*letter)).flat_map(char::to_lowercase).collect()
}

/// The letters as they look, small and without marks. I, l and 1 are one letter.
fn looks(text: &str) -> String {
    let letters = skeleton(text).filter(|letter| !is_combining_mark(*letter));
    let small = letters.flat_map(char::to_lowercase);
    small.map(|letter| if letter == 'i' { 'l' } else { letter }).collect()
}

/// Letters for the digits and signs that stand for one.
fn for_digits(word: &str) -> String {
    let letter = |letter: char| match letter {
        '3' => 'e',
        '4' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        other => other,
    };
    word.chars().map(letter).collect()
}

/// Whether a word is the service's name, alone or with offices and words beside them: theagora. The words of an address are
/// read as one word, too (ag-ora), and letters that stand alone (A g o r a), but "AG Orange" is two words.
///
/// `apart`: the words between spaces.
fn names(apart: &[Vec<&str>], service: &str) -> bool {
    let own = service.to_lowercase();
    let own_words = words(&own);
    let own = own_words.concat();
    let has_digits = own.contains(char::is_numeric);
    let all = apart.concat();
    let joined = if own.chars().count() < LEAST_JOINED { Vec::new() } else { joined(apart) };
    let alone = all.iter().map(std::slice::from_ref);
    let together = all.windows(own_words.len().max(1));
    alone.chain(together).chain(joined.iter().map(Vec::as_slice)).any(|words| {
        let with_own: Vec<&str> = words.iter().copied().chain([own.as_str()]).collect();
        // A digit of the service's name counts, so it is not left out.
        let readings = if has_digits { [Reading::Digits; 3] } else { Reading::all(&with_own) };
        readings.iter().any(|reading| {
            let (words, own) = (words.iter().map(|word| reading.of(word)).collect::<Vec<String>>(), reading.of(&own));
            !own.is_empty() && are_filled(&words, reading.known(), Some(&own))
        })
    })
}

/// Words that are read as one: those without a space between them, and letters that stand alone.
fn joined<'a>(apart: &[Vec<&'a str>]) -> Vec<Vec<&'a str>> {
    let are_letters = |words: &[&str]| {
        words.iter().all(|word| word.chars().filter(|letter| !is_combining_mark(*letter)).count() == 1)
    };
    let mut joined: Vec<Vec<&str>> = Vec::new();
    for words in apart {
        match joined.last_mut() {
            Some(last) if are_letters(last) && are_letters(words) => last.extend(words),
            _ => joined.push(words.clone()),
        }
    }
    joined
}

/// Whether the words are nothing but offices and words beside them.
fn is_office(words: &[&str]) -> bool {
    Reading::all(words).iter().any(|reading| {
        let words: Vec<String> = words.iter().map(|word| reading.of(word)).collect();
        are_filled(&words, reading.known(), None)
    })
}

/// Whether known words fill all the letters, an office among them. With the service's name: whether they fill some of the
/// words that follow each other, that name among them.
fn are_filled(words: &[String], known: &[Known], service: Option<&str>) -> bool {
    let letters = words.concat();
    // Where a word begins or ends.
    let mut bounds = vec![false; letters.len() + 1];
    let mut bound = 0;
    for word in words {
        bounds[bound] = true;
        bound += word.len();
    }
    bounds[bound] = true;
    // For each place: whether known words can end there, and whether one that is looked for can be among them.
    let mut ends: Vec<Option<bool>> = vec![None; letters.len() + 1];
    ends[0] = Some(false);
    for at in 0..letters.len() {
        if service.is_some() && bounds[at] {
            if ends[at] == Some(true) {
                return true;
            }
            ends[at] = Some(false);
        }
        let Some(had) = ends[at] else { continue };
        let offices = known.iter().map(|(word, is_office)| (word.as_str(), *is_office && service.is_none()));
        for (word, is_wanted) in offices.chain(service.map(|service| (service, true))) {
            let Some(rest) = letters[at..].strip_prefix(word) else { continue };
            let end = letters.len() - rest.len();
            for end in [end, end + usize::from(rest.starts_with('s'))] {
                ends[end] = Some(ends[end].unwrap_or(false) || had || is_wanted);
            }
        }
    }
    ends[letters.len()] == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_the_operators_are_found() {
        for (names, expected) in [
            (
                "agora agora-support the.agora.team myagora24 ag-ora a.g.o.r.a Agora AGORA ag0ra 4gora Agorа аgоrа ＡＧＯＲＡ \
                 Agóra 𝐀gora Ⓐⓖⓞⓡⓐ agorasupport theagora supportagora agora2 theag-ora acme-ag-0ra agoras D'Agora",
                Some(Likeness::Service),
            ),
            (
                "support refunds kyc billing billing2 b1lling BILLING BiII1ng supp0rt24 5upp0r7 v3rify no-reply no.reply \
                 donotreply customer-support-team supportdesk mailer-daemon a.b.u.s.e adm1n аdrnin 1nfo al1 suppor7 Súpport payments hostmaster \
                 help_desk accounts info security-team ѕupport trust-and-safety verify-your-account",
                Some(Likeness::Office),
            ),
            ("pаypal Яhoo 5μm µTorrent", Some(Likeness::Mixed)),
            ("ᴀɢᴏʀᴀ ꜱᴜᴘᴘᴏʀᴛ 🅰🅶🅾🆁🅰 agoɾa ⱥgora ʀoot", Some(Likeness::Unusual)),
            (
                "ada ada.lovelace shop-7 acme-support supporters saga oracle mag-orange agent-x infotech sails legally \
                 allison helpmann Ärzte Яндекс トヨタtoyota 医者 o'neill ɓala ələ कमल the-team 24 cafe\u{301} \
                 Ali Bill Mali Ami Arni Árni Alis ali bill arni ali24 ali5 mali2 bill1 Bill's adrnin BiIIing \
                 Pitágoras Mandragora ag-orange a.goransson Dr.House \
                 Əliyev Məmmədov Şahin Işık İnci Ɓello Ɗanladi Ƙofa ƙaura Kɔdzo Ɛsi Akɔɖu Ŋutifafa Nguyễn Đặng Trương \
                 Алексей Ђорђе Їжак Әлия Αλέξανδρος Γιώργος محمد فاطمہ گلنار דוד שרה בלאַנק अनीता प्रिया फ़ातिमा สมชาย น้ำ \
                 王小明 陳 𠮷田 山﨑 佐々木 さくら ヴィクター エー 김민준 ㅋㅋ Գոռ გიორგი ሰላም Żółć Søren Łukasz Groß",
                None,
            ),
        ] {
            for name in names.split_ascii_whitespace() {
                assert_eq!(likeness(name, "Agora"), expected, "{name}");
            }
        }
        for free in [
            "",
            "Mag Orange",
            "Ada at work",
            "Jane, head of sales",
            "Ali Bill",
            "A. Göransson",
            "A Goran",
            "AG Orange",
            "Ag ora",
            "Pitágoras Silva",
            "Pythagoras Tours",
            "Mandragora",
            "Dr. Ali 2",
            "👩\u{200d}🌾 Farm",
        ] {
            assert_eq!(likeness(free, "Agora"), None, "{free}");
        }
        for taken in
            ["Ag\u{ad}ora", "A g o r a", "Dr A. G. 0. R. A.", "Agora Vega Bakery", "Ag-ora Bakery", "Old 4gora"]
        {
            assert_eq!(likeness(taken, "Agora"), Some(Likeness::Service), "{taken}");
        }
        assert_eq!(likeness("5μm Labs", "Agora"), Some(Likeness::Mixed));
        assert_eq!(likeness("Support Team", "Agora"), Some(Likeness::Office));
        assert_eq!([likeness("new-hub", "Hub"), likeness("x", "Hub")], [Some(Likeness::Service), None]);
        assert_eq!(
            [likeness("github", "Hub"), likeness("tool-market", "Tool-Market")],
            [None, Some(Likeness::Service)]
        );
        for (name, service, expected) in [
            ("The Tool Market", "Tool Market", Some(Likeness::Service)),
            ("tool", "Tool Market", None),
            ("H. U. Bauer", "Hub", None),
            ("web3hub", "Web3Hub", Some(Likeness::Service)),
            ("webhub", "Web3Hub", None),
            ("Базар", "Базар", Some(Likeness::Service)),
            ("Ada", "", None),
        ] {
            assert_eq!(likeness(name, service), expected, "{name}, {service}");
        }
    }

    #[test]
    fn a_long_name_is_read_quickly() {
        let begun = cpu_time::ThreadTime::now();
        for part in ["a", "a ", "a.", "to", "support ", "agor ", "|", "\u{fdfa}"] {
            likeness(&part.repeat(255), "Agora");
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(5));
    }
}
