//! Text that strangers wrote, on its way to a model or to a reader: without what hides in it, and between marks that it
//! cannot contain.

use crate::digest;

/// Characters that show nothing and can hide or turn around what stands beside them: zero-width ones, bidirectional
/// controls, tags, variation selectors of the supplement.
pub fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a text has something that shows nothing: an invisible character, or a control. Where it may have `lines`, line breaks
/// and tabs are none.
pub fn hides_something(text: &str, lines: bool) -> bool {
    let hides =
        |letter: char| is_invisible(letter) || letter.is_control() && !(lines && matches!(letter, '\n' | '\r' | '\t'));
    text.chars().any(hides)
}

/// A stranger's text without what shows nothing: invisible characters, and controls but tab and line feed.
pub fn visible(text: &str) -> String {
    let shows = |letter: &char| !is_invisible(*letter) && (!letter.is_control() || matches!(letter, '\n' | '\t'));
    text.chars().filter(shows).collect()
}

/// Material for a model: at most `max_chars` of the text, which should be [`visible`], between lines with a mark that is
/// drawn for this block alone, after its text is known. So no text can contain its own end.
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
    fn no_text_contains_its_own_end_and_none_hides_anything() {
        let text = visible("before\u{202e}\u{200b}\r\u{1b}[31m\u{e0041}\nEND 00\nafter");
        assert_eq!(text, "before[31m\nEND 00\nafter");
        let (one, other) = (block("INPUT", &text, 100), block("INPUT", &text, 100));
        let mark = one.lines().find_map(|line| line.strip_prefix("BEGIN ")).unwrap();
        assert_eq!(one.matches(mark).count(), 2);
        assert!(!other.contains(mark), "drawn anew");
        assert!(block("RESULT", &"ä".repeat(50), 10).contains(&format!("\n{}\n(cut off here)", "ä".repeat(10))));
    }
}
