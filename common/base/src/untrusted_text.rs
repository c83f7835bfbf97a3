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

/// Whether a text contains an invisible character or a control character. With `lines`, line breaks and tabs are allowed.
pub fn hides_something(text: &str, lines: bool) -> bool {
    let hides =
        |letter: char| is_invisible(letter) || letter.is_control() && !(lines && matches!(letter, '\n' | '\r' | '\t'));
    text.chars().any(hides)
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
        let is_joiner = matches!(letter, '\u{200c}' | '\u{200d}');
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
