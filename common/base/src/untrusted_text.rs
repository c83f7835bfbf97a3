//! Handling of untrusted text: removes invisible characters, and marks it as data when it goes to a model.

use crate::digest;

/// Characters that show nothing and can hide or reorder the text around them: zero-width characters, bidirectional
/// controls, tags, variation selectors of the supplement.
pub fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a text contains an invisible character or a control character. With `lines`, line breaks and tabs are allowed. A
/// joiner that joins is not hidden: see [`joins`].
pub fn hides_something(text: &str, lines: bool) -> bool {
    text.char_indices().any(|(at, letter)| match letter {
        ZWNJ | ZWJ => !joins(letter, &text[..at], &text[at + letter.len_utf8()..]),
        '\n' | '\r' | '\t' => !lines,
        letter => is_invisible(letter) || letter.is_control(),
    })
}

const ZWNJ: char = '\u{200c}';
const ZWJ: char = '\u{200d}';

/// Whether a joiner changes how the text looks: U+200D between two emoji, or one joiner directly behind a letter of a script
/// that is written with joiners. Elsewhere it shows nothing, so two different names would look the same.
fn joins(joiner: char, before: &str, after: &str) -> bool {
    // The letter before may have a selector that says how it looks: a heart as an emoji.
    let drawn = before.strip_suffix('\u{fe0f}').unwrap_or(before);
    let between_emoji = joiner == ZWJ && drawn.ends_with(is_emoji) && after.starts_with(is_emoji);
    between_emoji || before.ends_with(is_written_with_joiners)
}

/// The emoji that are joined with others, among them the skin tones and the signs for gender, work and direction.
fn is_emoji(letter: char) -> bool {
    matches!(letter, '\u{2194}'..='\u{2195}' | '\u{25aa}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{1f300}'..='\u{1faff}')
}

/// Arabic and Persian, the scripts of India and Sri Lanka, Myanmar, Khmer.
fn is_written_with_joiners(letter: char) -> bool {
    let in_script = matches!(letter,
        '\u{0600}'..='\u{06ff}' | '\u{0750}'..='\u{077f}' | '\u{0900}'..='\u{0dff}' | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}');
    in_script && !is_invisible(letter)
}

/// The text without invisible characters and without control characters other than tab and line feed.
pub fn visible(text: &str) -> String {
    text.chars().filter(|letter| shows(*letter)).collect()
}

fn shows(letter: char) -> bool {
    !is_invisible(letter) && (!letter.is_control() || matches!(letter, '\n' | '\t'))
}

/// As [`visible`], but with the joiners (U+200C and U+200D) that emoji and many scripts are written with, such as Persian and
/// Hindi. One is kept behind a character that is not ASCII, so that they cannot be a message of their own.
pub fn visible_with_joiners(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for letter in text.chars() {
        let is_joiner = matches!(letter, ZWNJ | ZWJ);
        let joins = || kept.ends_with(|before: char| !before.is_ascii() && !is_invisible(before));
        let stays = if is_joiner { joins() } else { shows(letter) };
        if stays {
            kept.push(letter);
        }
    }
    kept
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
    use super::*;

    #[test]
    fn joiners_are_kept_where_they_join() {
        for text in
            ["👨\u{200d}👩\u{200d}👧", "❤\u{fe0f}\u{200d}🔥", "می\u{200c}خواهم", "क्\u{200d}ष", "क्\u{200d} x", "a\nb\tc"]
        {
            assert_eq!(visible_with_joiners(text), text);
        }
        let hidden = "a\u{200d}b\u{200c}\u{200d}é\u{200d}\u{200c}\u{200d}c\u{202e}d\u{200b}e\u{e0041}\r\u{1b}\u{2066}f";
        assert_eq!(visible_with_joiners(hidden), "abé\u{200d}cdef");
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
