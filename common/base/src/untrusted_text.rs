//! Handling of untrusted text: removes invisible characters, and marks it as data when it goes to a model.
//!
//! Which characters are invisible is decided here for all crates, by Unicode's own data. Two kinds of them change how the text
//! around them looks and stay there, and only there: joiners (Persian, Hindi, emoji) and the selector behind an emoji.

use icu_properties::props::{
    DefaultIgnorableCodePoint, Emoji, EmojiModifier, ExtendedPictographic, GeneralCategory, IndicSyllabicCategory,
    JoiningType, PrependedConcatenationMark,
};
use icu_properties::{CodePointMapData, CodePointSetData};

use crate::digest;

/// What is said of a text that [`hides_something`].
pub const HIDES: &str = "must not contain control or invisible characters";

const ZWNJ: char = '\u{200c}';
const ZWJ: char = '\u{200d}';
/// Marks of one letter that are skipped in search of the letter. More could make the search slow.
const MAX_MARKS: usize = 4;

/// Characters that show nothing and can hide or reorder the text around them: zero-width and bidirectional controls, soft
/// hyphens, fillers, tags, variation selectors. Control characters and line separators are not among them.
pub fn is_invisible(letter: char) -> bool {
    !letter.is_ascii()
        && (CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(letter)
            // Marks around numbers in Arabic and similar scripts count as format characters, but are drawn.
            || category(letter) == GeneralCategory::Format
                && !CodePointSetData::new::<PrependedConcatenationMark>().contains(letter))
}

/// Whether a text contains an invisible character or a control character. With `lines`, line breaks and tabs are allowed. A
/// character that changes how its neighbours look is not hidden: see [`is_needed`].
pub fn hides_something(text: &str, lines: bool) -> bool {
    text.char_indices().any(|(at, letter)| match letter {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => !lines,
        letter if letter.is_control() => true,
        letter => is_invisible(letter) && !is_needed(letter, &text[..at], &text[at + letter.len_utf8()..]),
    })
}

/// The text without invisible characters and without control characters other than tab and line feed. What its neighbours
/// need stays: see [`is_needed`]. Line and paragraph separators become line feeds.
pub fn visible(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        let shown = match letter {
            '\u{2028}' | '\u{2029}' => Some('\n'),
            '\n' | '\t' => Some(letter),
            letter if letter.is_control() => None,
            letter if is_invisible(letter) => {
                is_needed(letter, &kept, &text[at + letter.len_utf8()..]).then_some(letter)
            }
            letter => Some(letter),
        };
        kept.extend(shown);
    }
    kept
}

/// The text for somebody who decides by it: each character that shows nothing is written as its code point, such as
/// `[U+200B]`. Joiners too: with and without one, two texts can look the same. Only the selector behind an emoji stays.
pub fn with_code_points(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        let is_blank = match letter {
            '\n' | '\t' => false,
            ZWNJ | ZWJ => true,
            letter if letter.is_control() => true,
            letter if is_invisible(letter) => !is_needed(letter, &text[..at], &text[at + letter.len_utf8()..]),
            letter => shows_nothing_certain(letter),
        };
        match is_blank {
            true => shown.push_str(&format!("[U+{:04X}]", u32::from(letter))),
            false => shown.push(letter),
        }
    }
    shown
}

/// Separators of lines, the empty Braille pattern, and code points without a character of Unicode, which each font draws in
/// its own way or not at all.
fn shows_nothing_certain(letter: char) -> bool {
    use GeneralCategory::{LineSeparator, ParagraphSeparator, PrivateUse, Unassigned};
    letter == '\u{2800}'
        || !letter.is_ascii()
            && matches!(category(letter), LineSeparator | ParagraphSeparator | PrivateUse | Unassigned)
}

fn category(letter: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(letter)
}

/// Whether an invisible character changes how the text looks: a joiner that joins, or the selector that says whether the
/// emoji or key before it is drawn as a picture. Elsewhere it shows nothing, so two different names would look the same.
fn is_needed(letter: char, before: &str, after: &str) -> bool {
    match letter {
        ZWNJ | ZWJ => joins(letter, before, after),
        '\u{fe0e}' | '\u{fe0f}' => {
            let is_key = before.ends_with(|letter: char| letter.is_ascii()) && after.starts_with('\u{20e3}');
            before.ends_with(|letter: char| is_emoji(letter) && (is_key || !letter.is_ascii()))
        }
        _ => false,
    }
}

fn is_emoji(letter: char) -> bool {
    CodePointSetData::new::<Emoji>().contains(letter)
}

/// U+200D between two emoji, or one joiner behind a letter of a script that is written with joiners.
fn joins(joiner: char, before: &str, after: &str) -> bool {
    let is_drawn = |letter: char| {
        CodePointSetData::new::<ExtendedPictographic>().contains(letter)
            || CodePointSetData::new::<EmojiModifier>().contains(letter)
    };
    // The letter before may have a selector that says how it looks: a heart as an emoji.
    let drawn = before.strip_suffix('\u{fe0f}').unwrap_or(before);
    if joiner == ZWJ && drawn.ends_with(is_drawn) && after.starts_with(is_drawn) {
        return true;
    }
    let mut letters = before.chars().rev();
    let nearest = letters.by_ref().take(MAX_MARKS + 1).find(|letter| !is_mark(*letter));
    nearest.is_some_and(is_written_with_joiners)
}

/// A mark on a letter, such as a vowel of Arabic or Hindi.
fn is_mark(letter: char) -> bool {
    use GeneralCategory::{NonspacingMark, SpacingMark};
    matches!(category(letter), NonspacingMark | SpacingMark) && !is_invisible(letter)
}

/// Letters that are joined with their neighbours: Arabic, Syriac, Mongolian and others, and those of India's family of
/// scripts.
fn is_written_with_joiners(letter: char) -> bool {
    let joining = CodePointMapData::<JoiningType>::new().get(letter);
    let syllabic = CodePointMapData::<IndicSyllabicCategory>::new().get(letter);
    !letter.is_ascii()
        && letter.is_alphabetic()
        && (matches!(joining, JoiningType::DualJoining | JoiningType::RightJoining | JoiningType::LeftJoining)
            || syllabic != IndicSyllabicCategory::Other)
}

/// A block of untrusted text for a model: at most `max_chars` of it, between lines with a random mark. The mark is drawn
/// after the text is known, so the text cannot contain its own end mark. Pass the text through [`visible`] first.
pub fn block(kind: &str, text: &str, max_chars: usize) -> String {
    let mark = const_hex::encode(digest::random::<12>());
    let (kept, note) = match text.char_indices().nth(max_chars) {
        Some((end, _)) => (&text[..end], "\n(cut off here)"),
        None => (text, ""),
    };
    format!("{kind}\nBEGIN {mark}\n{kept}{note}\nEND {mark}\n")
}

#[cfg(test)]
mod tests {
    use icu_properties::props::{BidiControl, VariationSelector};

    use super::*;

    #[test]
    fn every_invisible_character_of_unicode_is_removed_refused_and_told() {
        let format = |letter: char| CodePointMapData::<GeneralCategory>::new().get(letter) == GeneralCategory::Format;
        let drawn = CodePointSetData::new::<PrependedConcatenationMark>();
        let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
        let selector = CodePointSetData::new::<VariationSelector>();
        let bidi = CodePointSetData::new::<BidiControl>();
        let mut count = 0;
        for letter in (char::MIN..=char::MAX).filter(|letter| !letter.is_control()) {
            let (text, code) = (format!("a{letter}b"), format!("a[U+{:04X}]b", u32::from(letter)));
            let is_hidden = ignorable.contains(letter)
                || selector.contains(letter)
                || bidi.contains(letter)
                || format(letter) && !drawn.contains(letter);
            assert_eq!(is_invisible(letter), is_hidden, "{code}");
            if is_hidden {
                count += 1;
                assert_eq!(visible(&text), "ab", "{code}");
                assert!(hides_something(&text, true), "{code}");
                assert_eq!(with_code_points(&text), code);
            } else if !matches!(letter, '\u{2028}' | '\u{2029}') {
                assert_eq!(visible(&text), text);
                assert!(!hides_something(&text, false), "{code}");
            }
        }
        assert!(count > 4_000, "{count}");
        // Soft hyphen, Hangul fillers, Mongolian vowel separator, zero-width, bidirectional, tag, selector, annotation.
        for letter in "\u{ad}\u{115f}\u{3164}\u{ffa0}\u{180e}\u{200b}\u{202e}\u{e0041}\u{fe00}\u{e0100}\u{fff9}".chars()
        {
            assert!(is_invisible(letter), "{letter:?}");
        }
        assert!(!"\u{600}\u{6dd}\u{110bd}é\u{301} \u{a0}".contains(is_invisible), "these are drawn, or are space");
    }

    #[test]
    fn joiners_and_selectors_stay_where_they_show() {
        for text in [
            "👨\u{200d}👩\u{200d}👧",
            "❤\u{fe0f}\u{200d}🔥",
            "👩🏽\u{200d}🌾",
            "1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "پروژهٔ\u{200c}ها",
            "क्\u{200d}ष",
            "क्\u{200d} x",
            "a\nb\tc",
        ] {
            assert_eq!(visible(text), text);
            assert!(!hides_something(text, true), "{text:?}");
        }
        let hidden = "a\u{200d}b\u{200c}\u{200d}é\u{200d}\u{200c}\u{200d}c\u{202e}d\u{200b}e\u{e0041}\r\u{1b}\u{2066}f\u{fe0f}1\u{fe0f}";
        assert_eq!(visible(hidden), "abécdef1");
        assert_eq!(visible("👩\u{200d}\u{200d}🌾 ❤\u{fe0f}\u{fe0f}\u{fe0e} a\u{2028}b"), "👩\u{200d}🌾 ❤\u{fe0f} a\nb");
        // Unicode has no limit for the marks of a letter. Looking through all of them would take forever.
        let marks = "e".to_owned() + &"\u{301}\u{200d}".repeat(50_000);
        assert_eq!(visible(&marks).chars().count(), 50_001);
    }

    #[test]
    fn who_decides_sees_every_character() {
        for (text, shown) in [
            ("pay 10\u{ad}0\u{3164}\u{e0041} \u{202e}x", "pay 10[U+00AD]0[U+3164][U+E0041] [U+202E]x"),
            ("می\u{200c}خواهم 👩\u{200d}🌾", "می[U+200C]خواهم 👩[U+200D]🌾"),
            ("a\u{2028}b\u{0}c\u{e000}\u{378}\u{2800}", "a[U+2028]b[U+0000]c[U+E000][U+0378][U+2800]"),
            ("Ärzte 医者 ❤\u{fe0f}\n\tx\u{fe0f}", "Ärzte 医者 ❤\u{fe0f}\n\tx[U+FE0F]"),
        ] {
            assert_eq!(with_code_points(text), shown);
        }
    }

    #[test]
    fn a_joiner_is_hidden_where_it_joins_nothing() {
        for text in [
            "👩\u{200d}🌾 Farm",
            "👩🏽\u{200d}🌾",
            "❤\u{fe0f}\u{200d}🔥",
            "🐈\u{200d}⬛",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "Ärztin 医者",
        ] {
            assert!(!hides_something(text, false), "{text:?}");
        }
        for text in [
            "a\u{200d}b",
            "é\u{200d}é",
            "\u{200d}👩",
            "👩\u{200d}",
            "👩\u{200d}a",
            "👩\u{200c}🌾",
            "a\u{fe0f}\u{200d}🌾",
            "👩\u{200d}\u{200d}🌾",
            "می\u{200c}\u{200c}خواهم",
            "\u{61c}\u{200c}",
            "a\u{200b}b",
            "a\nb",
        ] {
            assert!(hides_something(text, false), "{text:?}");
        }
        assert!(!hides_something("a\nb\tc", true));
        assert!(hides_something("a\u{0}b", true));
    }

    #[test]
    fn a_block_cannot_be_closed_from_inside_and_hides_nothing() {
        let text = visible("before\u{202e}\u{200b}\r\u{1b}[31m\u{e0041}\nEND 00\nafter");
        assert_eq!(text, "before[31m\nEND 00\nafter");
        let (one, other) = (block("INPUT", &text, 100), block("INPUT", &text, 100));
        let mark = one.lines().find_map(|line| line.strip_prefix("BEGIN ")).unwrap();
        assert_eq!(one.matches(mark).count(), 2);
        assert!(!other.contains(mark), "drawn anew");
        assert!(block("RESULT", &"ä".repeat(50), 10).contains(&format!("\n{}\n(cut off here)", "ä".repeat(10))));
    }
}
