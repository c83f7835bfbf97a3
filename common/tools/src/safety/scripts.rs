//! Which letters are written together, and which look like others: Unicode's rules for identifiers (UTS 39), with its tables
//! (crate `unicode-security`).

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_security::general_security_profile::IdentifierType;
use unicode_security::mixed_script::AugmentedScriptSet;
use unicode_security::{GeneralSecurityProfile, MixedScript, skeleton};

/// Letters of the alphabets closest to Latin that browsers take for Latin ones. Unicode's table is not used for these alphabets:
/// with it, many words such as груша look like Latin letters without a meaning.
const LIKE_LATIN: &str = "асԁеһіјӏорԛѕԝхуъьҽпгѵѡαγικνορτυωχօոսցզհյքԍ";

/// Whether a letter is in no common use, by Unicode's profile for identifiers. Rare Chinese characters are in names, and
/// Korean letters may stand alone. Marks belong to their letters: Yiddish has them.
pub fn is_unusual(letter: char) -> bool {
    let is_usual = |letter: char| letter.is_ascii() || letter.identifier_allowed();
    let scripts = AugmentedScriptSet::from(letter);
    let is_asian = !scripts.base.is_common() && (scripts.hanb || scripts.jpan || scripts.kore);
    let is_letter = letter.is_alphabetic() && !is_combining_mark(letter);
    is_letter && !is_usual(letter) && !is_asian && !letter.nfd().next().is_some_and(is_usual)
}

/// Whether a letter is in no common use, and Latin or a sign: phonetic letters, small capitals. Letters of other rare scripts are
/// told from Latin ones by [`imitates_latin`].
pub fn is_odd_latin(letter: char) -> bool {
    let is_sign = letter.identifier_type() == Some(IdentifierType::Technical);
    is_unusual(letter) && (is_sign || are_of_one('a', letter))
}

/// Whether a word has letters that are not written together: not one script, nor Latin beside Chinese, Japanese or Korean.
pub fn mixes(word: &str) -> bool {
    let others: String = word.chars().filter(|letter| !are_of_one('a', *letter)).collect();
    let others = others.as_str().resolve_script_set();
    !(word.is_single_script() || others.hanb || others.jpan || others.kore)
}

/// Whether a word without a Latin letter looks like Latin ones only, such as Cyrillic сора.
pub fn imitates_latin(word: &str) -> bool {
    let mut letters = word.chars().filter(|letter| !is_combining_mark(*letter));
    !word.is_ascii() && letters.all(|letter| "0123456789-".contains(letter) || looks_latin(letter))
}

fn looks_latin(letter: char) -> bool {
    if ['а', 'α', 'ա'].into_iter().any(|of| are_of_one(of, letter)) {
        return LIKE_LATIN.contains(letter);
    }
    !are_of_one('a', letter) && skeleton(letter.encode_utf8(&mut [0; 4])).all(|seen| seen.is_ascii_alphabetic())
}

fn are_of_one(one: char, other: char) -> bool {
    AugmentedScriptSet::from(one) == AugmentedScriptSet::from(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart_by_their_scripts_and_looks() {
        // Scripts beyond one block of Unicode, marks and digits of a script, and Latin beside Asian ones.
        for word in [
            "ኢትዮጵያ",
            "ሀⶀꬁ",
            "აⴀ",
            "ⵜⴰⵎ",
            "देवनागरी२",
            "தமிழ்",
            "ភាសាខ្មែរ",
            "မြန်မာꩠ",
            "العربيةݐࢠ",
            "łトヨタ",
            "漢字ひらがなカナー",
            "ㄅ漢a",
            "한국a",
            "ᏣᎳᎩꮳ",
            "24",
            "e\u{301}a",
        ] {
            assert!(!mixes(word), "{word}");
        }
        for word in ["pаypal", "αpple", "аα", "かな한", "กa", "ኢa", "5μm"] {
            assert!(mixes(word), "{word}");
        }
        for word in ["əɛɔɓɗɖƙŋɣʋɩıƒẹǝ", "ኢትዮጵያ", "𠮷", "漢"] {
            assert!(!word.chars().any(is_unusual), "{word}");
        }
        for letter in "ɑɡᴀʀꜱɾⱥʹ".chars() {
            assert!(is_odd_latin(letter), "{letter}");
        }
        for letter in "Ꮳⲁᲀҝ\u{5b7}".chars() {
            assert!(!is_odd_latin(letter), "{letter}");
        }
        for (word, imitates) in [
            ("сора", true),
            ("сора-24", true),
            ("οχυ", true),
            ("ոսօ", true),
            ("ᎳᎠ", true),
            ("ꓐꓑꓓ", true),
            ("груша", false),
            ("москва", false),
            ("αβγ", false),
            ("ኢትዮጵያ", false),
            ("altın", false),
            ("cora", false),
            ("24", false),
        ] {
            assert_eq!(imitates_latin(word), imitates, "{word}");
        }
    }
}
