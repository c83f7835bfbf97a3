//! The words by which a recipient ends, resumes and asks about texts from a number.
//!
//! A word counts if it is the whole message; capitals, spaces, quotes and full stops do not matter, nor whether letters are
//! full-width or otherwise shaped (Normalization Form KC). The words to end include those of 47 CFR 64.1200(a)(10), which names
//! "stop," "quit," "end," "revoke," "opt out," "cancel" and "unsubscribe".

use base::untrusted_text::is_invisible;
use icu_normalizer::ComposingNormalizerBorrowed;

/// What a message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyword {
    /// No more texts from this number.
    Stop,
    /// Texts from this number again.
    Start,
    /// Who sends these texts.
    Help,
}

const WORDS: [(&str, Keyword); 15] = [
    ("STOP", Keyword::Stop),
    ("STOPALL", Keyword::Stop),
    ("UNSUBSCRIBE", Keyword::Stop),
    ("CANCEL", Keyword::Stop),
    ("END", Keyword::Stop),
    ("QUIT", Keyword::Stop),
    ("REVOKE", Keyword::Stop),
    ("OPTOUT", Keyword::Stop),
    ("ARRET", Keyword::Stop),
    ("ARRÊT", Keyword::Stop),
    ("START", Keyword::Start),
    ("UNSTOP", Keyword::Start),
    ("YES", Keyword::Start),
    ("HELP", Keyword::Help),
    ("INFO", Keyword::Help),
];
/// Letters of the longest word.
const LONGEST: usize = 11;

/// The keyword that a message is.
pub fn of(body: &str) -> Option<Keyword> {
    let even = ComposingNormalizerBorrowed::new_nfkc().normalize_iter(body.chars());
    let letters = even.filter(|letter| letter.is_alphanumeric() && !is_invisible(*letter)).take(LONGEST + 1);
    let letters: String = letters.flat_map(char::to_uppercase).collect();
    let (_, keyword) = WORDS.iter().find(|(word, _)| *word == letters)?;
    // "Yes?" is a question. Whoever has ended texts must not get them again by mistake.
    let is_question = body.contains(['?', '¿', '؟', '？']);
    (*keyword != Keyword::Start || !is_question).then_some(*keyword)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyword_is_a_whole_message() {
        use Keyword::{Help, Start, Stop};
        for (body, expected) in [
            ("STOP", Some(Stop)),
            ("stop", Some(Stop)),
            (" Stop.\r\n", Some(Stop)),
            ("\"STOP!\"", Some(Stop)),
            ("STOP\u{200b}\u{3164}", Some(Stop)),
            ("stop all", Some(Stop)),
            ("Unsubscribe", Some(Stop)),
            ("CANCEL", Some(Stop)),
            ("end", Some(Stop)),
            ("QUIT?", Some(Stop)),
            ("revoke", Some(Stop)),
            ("Opt-out", Some(Stop)),
            ("ARRET", Some(Stop)),
            ("arrêt", Some(Stop)),
            ("arre\u{302}t", Some(Stop)),
            ("Start", Some(Start)),
            ("unstop", Some(Start)),
            ("Yes!", Some(Start)),
            ("Yes?", None),
            ("¿START", None),
            ("help", Some(Help)),
            ("INFO?", Some(Help)),
            ("", None),
            ("...", None),
            ("STOP it", None),
            ("Don't stop", None),
            ("yes please", None),
            ("STOPP", None),
            ("UNSUBSCRIBED", None),
            ("help me, I cannot stop", None),
            ("ＳＴＯＰ", Some(Stop)),
            (" ｓｔｏｐ！", Some(Stop)),
            ("ⓢⓣⓞⓟ", Some(Stop)),
            ("ＳＴＡＲＴ？", None),
            ("STOP \u{1f44d}\u{1f3fd}…", Some(Stop)),
        ] {
            assert_eq!(of(body), expected, "{body:?}");
        }
        assert_eq!(of(&format!("stop{}", "\n".repeat(100_000))), Some(Keyword::Stop));
        assert_eq!(of(&"stop".repeat(100_000)), None);
        assert_eq!(WORDS.iter().map(|(word, _)| word.chars().count()).max(), Some(LONGEST));
    }
}
