//! Whether a piece of a page states something: a sentence or a named value, not a caption, button, menu or line about the
//! page itself. Recognised by form and by a few words of the supported languages.

use super::plan::is_question;
use super::words;

/// Minimum number of words in a piece that ends like a sentence, and in one that does not.
const MIN_WORDS: usize = 3;
const MIN_WORDS_OPEN: usize = 5;
/// Longest name of a named value, in words: `Opening hours in winter: 9 to 4`.
const MAX_NAME_WORDS: usize = 6;
/// Longest line about the page itself, in words; in a longer sentence the same phrases may be content.
const MAX_FURNITURE_WORDS: usize = 14;

/// Verbs that make a line without a full stop a sentence.
const VERBS: &str = "is are was were be been has have had does do did can could may might must will would should costs cost takes \
    took lasts holds weighs gives needs means runs keeps stands lies uses shows contains includes became began opened closed \
    ist sind war waren wird wurde wurden hat haben kann muss soll est sont etait sera peut doit es son era fue tiene puede debe";

/// Phrases of pages about themselves, and of forum posts before a question.
const FURNITURE: [&str; 49] = [
    "all rights reserved",
    "privacy policy",
    "terms of use",
    "terms of service",
    "cookie policy",
    "we use cookies",
    "uses cookies",
    "accept cookies",
    "accept all",
    "subscribe to",
    "subscribe now",
    "sign up for",
    "sign up to",
    "sign in to",
    "log in to",
    "create an account",
    "our newsletter",
    "click here",
    "tap here",
    "read more",
    "learn more",
    "continue reading",
    "keep reading",
    "see also",
    "share this",
    "share on",
    "follow us",
    "skip to content",
    "back to top",
    "add to cart",
    "add to basket",
    "leave a comment",
    "leave a reply",
    "min read",
    "posted on",
    "posted by",
    "posted in",
    "last updated",
    "last modified",
    "filed under",
    "hello everybody",
    "hi everyone",
    "thanks in advance",
    "does anyone know",
    "i could not find",
    "i couldn't find",
    "tagged with",
    "advertisement",
    "©",
];

/// First words of captions.
const CAPTIONS: &str = "photo photograph photos image images picture illustration drawing figure fig table chart video credit \
    credits caption source sources courtesy foto bild abbildung abb tabelle quelle grafik imagen figura fuente tabla";

/// Names of values that describe the page, not its subject.
const OWN_NAMES: &str = "author authors by tag tags category categories topic topics keyword keywords posted published updated \
    modified share print menu home search next previous related more filed section permalink reading skip autor";

/// First words of sentences that refer to the sentence before.
const BACK: &str = "it its they their them this that these those he his she her such here there both es er dies diese dieser il \
    elle ils elles ce cette ello este esta estos";

/// Whether the piece states something. `is_links`: all its words are in links.
pub fn states(text: &str, is_links: bool) -> bool {
    let bare = closed(text);
    let asks = bare.ends_with(['?', '？']);
    if asks || text.contains("</") || is_furniture(text) {
        return false;
    }
    let count = words::words(text).len();
    if is_whole(text) {
        return count >= MIN_WORDS && !is_caption(text, count);
    }
    // "Why the tower had to close" is a heading.
    let is_sentence = || count >= MIN_WORDS_OPEN && has_verb(text) && !is_question(text);
    !is_links && !is_caption(text, count) && (is_named_value(text) || is_sentence())
}

pub fn is_whole(text: &str) -> bool {
    closed(text).ends_with(['.', '!', '…', '。', '！'])
}

/// Whether it begins with a word that refers to the sentence before.
pub fn leans_back(text: &str) -> bool {
    let first = words::words(text).into_iter().next().unwrap_or_default();
    BACK.split_whitespace().any(|word| word == first)
}

/// The text without closing quotation marks and brackets.
fn closed(text: &str) -> &str {
    text.trim_end_matches(['"', '\'', '”', '’', '»', ')', ']', '*', '」', ' '])
}

/// Name, colon, value: `Weight: 118 kg`.
fn is_named_value(text: &str) -> bool {
    // A dash also occurs in page titles, so its value needs a digit.
    let dashed = || text.split_once(" – ").filter(|(_, value)| value.contains(|letter: char| letter.is_ascii_digit()));
    let Some((name, value)) = text.split_once(": ").or_else(dashed) else { return false };
    let names = words::words(name);
    let is_own = names.iter().all(|word| OWN_NAMES.split_whitespace().any(|own| own == word));
    let has_value = value.contains(char::is_alphanumeric);
    !names.is_empty() && names.len() <= MAX_NAME_WORDS && has_value && !is_own
}

fn is_caption(text: &str, count: usize) -> bool {
    let begun = words::words(text);
    let Some(first) = begun.first().filter(|first| CAPTIONS.split_whitespace().any(|word| word == *first)) else {
        return false;
    };
    let after =
        text.trim_start_matches(|letter: char| !letter.is_alphanumeric()).get(first.len()..).unwrap_or_default();
    let second = begun.get(1).map_or("", String::as_str);
    let is_numbered = second.starts_with(|letter: char| letter.is_ascii_digit());
    let is_credit = after.starts_with([':', '/', '©']) || ["by", "credit", "courtesy", "von"].contains(&second);
    // A caption that is a whole sentence states something.
    (is_numbered || is_credit) && !(is_whole(text) && count >= MIN_WORDS_OPEN + 2 && has_verb(text))
}

fn is_furniture(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.split_whitespace().count() <= MAX_FURNITURE_WORDS && FURNITURE.iter().any(|phrase| lower.contains(phrase))
}

fn has_verb(text: &str) -> bool {
    words::words(text).iter().any(|word| VERBS.split_whitespace().any(|verb| verb == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_recognised() {
        for stating in [
            "The tower is 31 metres high.",
            "Closed on Mondays.",
            "The tower is 31 metres high",
            "Weight: 118 kg",
            "Height – 31 metres",
            "Figure 3: The tower was 31 metres high before the storm of 1902.",
            "He said the tower was \"not that high.\"",
            "The cookie factory says that its new newsletter, in which it asked readers to sign up for a tour, was a success.",
            "Die Brücke ist 31 Meter hoch",
            "灯台は三十一メートルの高さである。",
        ] {
            assert!(states(stating, false), "{stating}");
        }
        for other in [
            "Home",
            "The Skerry lighthouse",
            "Photo: Ada Stone / Harbour Press",
            "Figure 3. The tower in 1862.",
            "Source: Harbour authority, 2025",
            "Tags: harbour, towers",
            "Author: Ada Stone",
            "Read more about the tower.",
            "We use cookies to improve your visit.",
            "© 2026 Harbour Press. All rights reserved.",
            "Subscribe to our newsletter for more!",
            "How high is the tower?",
            "By Ada Stone, 4 March 2026",
            "4 min read",
            "Adult ticket",
            "Skerry light – Harbour Press",
            "Why the tower had to close",
        ] {
            assert!(!states(other, false), "{other}");
        }
        assert!(!states("The tower is closed for the winter", true), "the title of another page");
    }
}
