//! Final treatment of text: removes invisible characters and extra blank lines, escapes, cuts to length.

use base::untrusted_text;

/// [`untrusted_text::visible`] with every kind of line break as a line feed.
pub(super) fn visible(text: &str) -> String {
    untrusted_text::visible(&text.replace("\r\n", "\n").replace(['\r', '\u{85}', '\u{c}'], "\n"))
}

/// [`visible`] on one line, at most `max_chars` long. For titles and the like.
pub(super) fn line(text: &str, max_chars: usize) -> String {
    let visible = visible(text);
    let mut line = String::new();
    for word in visible.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if let Some((end, _)) = line.char_indices().nth(max_chars) {
        line.truncate(end);
    }
    line
}

/// Escapes plain text for Markdown, so that nothing in it is Markdown or HTML markup. Not for the start of a line. Escapes
/// the same characters as the Markdown writer.
pub(super) fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '|' | '~') {
            literal.push('\\');
        }
        literal.push(letter);
    }
    literal
}

/// The text as a fenced block, for data such as JSON.
pub(super) fn fenced(text: &str, language: &str) -> String {
    let text = visible(text);
    let longest_run = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest_run.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim())
}

/// Collapses blank lines, except in fenced blocks.
pub(super) fn tidy(markdown: &str) -> String {
    let mut tidy = String::with_capacity(markdown.len());
    let mut fence = Fence::default();
    let mut blank_lines = 0;
    for line in markdown.trim().lines() {
        let inside = fence.is_open();
        fence.pass(line);
        if line.trim().is_empty() && !inside {
            blank_lines += 1;
            continue;
        }
        if blank_lines > 0 {
            tidy.push('\n');
            blank_lines = 0;
        }
        tidy.push_str(line);
        tidy.push('\n');
    }
    tidy.truncate(tidy.trim_end().len());
    tidy
}

/// Cuts to at most `max_bytes`, at a paragraph, line or word if that loses little. Closes a fenced block that was cut open.
/// Returns whether it cut.
pub(super) fn cut(mut markdown: String, max_bytes: usize) -> (String, bool) {
    if markdown.len() <= max_bytes {
        return (markdown, false);
    }
    markdown.truncate(cutting_point(&markdown, max_bytes));
    if let Some(closing) = open_fence(&markdown) {
        let room = max_bytes.saturating_sub(closing.len() + 1);
        markdown.truncate(cutting_point(&markdown, room));
        // The shorter text may no longer contain the fence.
        if let Some(closing) = open_fence(&markdown) {
            markdown.push('\n');
            markdown.push_str(&closing);
        }
    }
    (markdown, true)
}

fn cutting_point(markdown: &str, max_bytes: usize) -> usize {
    let window = &markdown[..markdown.floor_char_boundary(max_bytes)];
    if window.len() == markdown.len() {
        return window.len();
    }
    // Cut at a paragraph if that loses at most a quarter, at a line or word if at most half.
    let boundaries = [("\n\n", 3, 4), ("\n", 1, 2), (" ", 1, 2)];
    let fitting = boundaries.iter().find_map(|&(boundary, part, whole)| {
        let at = window.rfind(boundary)?;
        (at >= window.len() * part / whole).then_some(at)
    });
    window[..fitting.unwrap_or(window.len())].trim_end().len()
}

/// The closing fence, if the text ends inside a fenced block.
fn open_fence(markdown: &str) -> Option<String> {
    let mut fence = Fence::default();
    for line in markdown.lines() {
        fence.pass(line);
    }
    fence.is_open().then(|| {
        let indent = " ".repeat(fence.indent);
        format!("{indent}{}", "`".repeat(fence.length))
    })
}

/// Tracks fenced code blocks line by line.
#[derive(Default)]
struct Fence {
    /// Backticks of the open fence; 0 if none is open.
    length: usize,
    indent: usize,
}

impl Fence {
    fn is_open(&self) -> bool {
        self.length > 0
    }

    fn pass(&mut self, line: &str) {
        // The fence may follow a list mark or `>` on the same line.
        let bare = line.trim_start_matches([' ', '-', '>']);
        let run = bare.len() - bare.trim_start_matches('`').len();
        if run < 3 {
            return;
        }
        if !self.is_open() {
            if !bare[run..].contains('`') {
                self.length = run;
                self.indent = line.len() - line.trim_start_matches(' ').len();
            }
        } else if run >= self.length && bare[run..].trim().is_empty() {
            self.length = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_removed() {
        for (text, kept) in [
            ("plain text\n\ttab", "plain text\n\ttab"),
            ("zero\u{200b}width\u{2060}\u{feff}\u{ad}", "zerowidth"),
            ("a\u{202e}cba\u{202c}\u{2066}x\u{2069}\u{200f}", "acbax"),
            ("nul\0bell\u{7}esc\u{1b}[0m", "nulbellesc[0m"),
            ("tags\u{e0049}\u{e0067}\u{e01ef}", "tags"),
            ("selectors\u{fe00}\u{fe01}\u{fe0f}\u{fe0f}", "selectors"),
            ("lines\r\nand\rmore\u{2028}", "lines\nand\nmore\n"),
            ("in\u{200d}visi\u{200c}ble", "invisible"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("क्\u{200d}ष", "क्\u{200d}ष"),
            ("👩\u{200d}👩\u{200d}👧", "👩\u{200d}👩\u{200d}👧"),
            ("❤\u{fe0f}\u{200d}🔥", "❤\u{fe0f}\u{200d}🔥"),
            ("\u{200d}\u{200c}\u{200d}\u{200c}", ""),
            ("م\u{200c}\u{200d}\u{200c}م", "م\u{200c}م"),
        ] {
            assert_eq!(visible(text), kept, "{text:?}");
        }
    }

    #[test]
    fn lines_are_single_and_short() {
        assert_eq!(line(" two\n\twords\u{200b} ", 100), "two words");
        assert_eq!(line("äöü", 2), "äö");
    }

    #[test]
    fn literal_text_is_no_markup() {
        let text = "a <b onclick=x()> [c](d) ![e](f) *g* _h_ `i` ~~j~~ k | l \\< 1 > 0";
        let marked = literal(text);
        assert_eq!(
            marked,
            "a \\<b onclick=x()> \\[c\\](d) !\\[e\\](f) \\*g\\* \\_h\\_ \\`i\\` \\~\\~j\\~\\~ k \\| l \\\\\\< 1 > 0"
        );
        assert_eq!(literal("Größe: 3 & 4 # 5"), "Größe: 3 & 4 # 5");
    }

    #[test]
    fn fences_are_longer_than_what_they_hold() {
        assert_eq!(fenced(" {} ", "json"), "```json\n{}\n```");
        assert_eq!(fenced("a```b", "xml"), "````xml\na```b\n````");
    }

    #[test]
    fn blank_lines_are_evened_outside_code() {
        assert_eq!(tidy("\n\na  \nb\n\n\n\n```\nx\n\n\n\ny\n```\n\n\n \nc\n"), "a  \nb\n\n```\nx\n\n\n\ny\n```\n\nc");
    }

    #[test]
    fn short_text_is_not_cut() {
        assert_eq!(cut("abc".to_owned(), 3), ("abc".to_owned(), false));
    }

    #[test]
    fn long_text_is_cut_at_the_best_boundary() {
        let cut_to = |text: &str, max| {
            let (cut, was_cut) = cut(text.to_owned(), max);
            assert!(was_cut && cut.len() <= max);
            cut
        };
        assert_eq!(cut_to("one two\n\nthree four five", 10), "one two");
        assert_eq!(cut_to("one\n\ntwo three\nfour five", 20), "one\n\ntwo three");
        assert_eq!(cut_to("one two three", 12), "one two");
        assert_eq!(cut_to("ééééé", 5), "éé");
        assert_eq!(cut_to("日本語の文章", 10), "日本語");
    }

    #[test]
    fn a_cut_code_block_is_closed() {
        let code = format!("intro\n\n```rust\n{}```\n\nend", "let x = 1;\n".repeat(20));
        let (text, _) = cut(code, 100);
        assert!(text.ends_with("let x = 1;\n```"), "{text}");
        assert!(text.len() <= 100);
        let nested = format!("- ````\n  {}", "```\n  ".repeat(40));
        let (text, _) = cut(nested, 60);
        assert!(text.ends_with("\n````"), "{text}");
        let (text, _) = cut(format!("0123456789\n```{}", "x".repeat(50)), 14);
        assert!(!text.contains("```") && text.len() <= 14, "{text}");
    }
}
