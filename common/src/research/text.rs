//! A page's Markdown as plain text, and the sentences of it that can be quoted.
//!
//! Every sentence is a piece of the plain text as it stands there: what is quoted occurs in what was read.

use super::words;

/// Most sentences of one page: the Markdown of a page is at most 50 KB.
const MAX_SENTENCES: usize = 2_000;
/// What is shorter says nothing, in letters and digits; what is longer is no sentence, in characters.
const MIN_LETTERS: usize = 8;
const MAX_CHARS: usize = 600;

/// A page that was read, as plain text.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// Lines of it, in order, without markup.
    pub plain: String,
    pub sentences: Vec<Sentence>,
}

/// A piece of a page that can be quoted: a sentence, an item of a list, a row of a table.
#[derive(Clone, Debug)]
pub struct Sentence {
    pub text: String,
    pub terms: Vec<String>,
    /// What it stands under and after: headings, the head of its table, the sentence before.
    pub around: Vec<String>,
    /// Prose, and not an item or a heading.
    pub is_prose: bool,
    /// It can be an answer: no question itself, and no markup.
    pub states: bool,
}

/// Reads Markdown. `title` is the page's own.
pub fn read(markdown: &str, title: &str) -> Text {
    let mut reader = Reader { title: words::terms(title), ..Reader::default() };
    let mut paragraph = String::new();
    let mut fence: Option<String> = None;
    for line in markdown.lines() {
        let bare = line.trim();
        let mark: String = bare.chars().take_while(|letter| matches!(letter, '`' | '~')).collect();
        if fence.as_ref().is_some_and(|fence| mark.starts_with(fence.as_str())) {
            fence = None;
            continue;
        }
        if fence.is_some() {
            reader.whole(bare, false);
            continue;
        }
        if mark.len() >= 3 {
            reader.prose(&mut paragraph);
            fence = Some(mark);
            continue;
        }
        let is_block = bare.is_empty() || bare.starts_with(['#', '|', '>']) || item(bare).is_some();
        if is_block {
            reader.prose(&mut paragraph);
        }
        if bare.is_empty() {
            continue;
        }
        let bare = bare.trim_start_matches(['>', ' ']);
        if let Some(heading) = bare.strip_prefix('#') {
            let level = 1 + heading.chars().take_while(|letter| *letter == '#').count();
            reader.heading(level, &plain(heading.trim_start_matches('#').trim()));
        } else if bare.starts_with('|') {
            reader.row(bare);
        } else if let Some(entry) = item(bare).filter(|item| is_entry(item)) {
            // The reader's own way to write an entry of a feed: a heading to what follows, and nobody's words.
            reader.heading(6, &plain(entry));
        } else if let Some(item) = item(bare) {
            reader.table_head.clear();
            // An item may be sentences; it may also go on in the next line.
            paragraph.push_str(item);
        } else {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(bare);
        }
    }
    reader.prose(&mut paragraph);
    reader.text
}

#[derive(Default)]
struct Reader {
    text: Text,
    title: Vec<String>,
    /// Open headings with their levels.
    headings: Vec<(usize, Vec<String>)>,
    table_head: Vec<String>,
    before: Vec<String>,
}

impl Reader {
    fn prose(&mut self, paragraph: &mut String) {
        if paragraph.is_empty() {
            return;
        }
        self.table_head.clear();
        let whole = plain(&std::mem::take(paragraph));
        self.line(&whole);
        self.before.clear();
        for sentence in sentences(&whole) {
            self.keep(sentence, true);
        }
    }

    /// A line that is quoted whole or not at all.
    fn whole(&mut self, line: &str, is_prose: bool) {
        self.line(line);
        self.keep(line, is_prose);
    }

    fn heading(&mut self, level: usize, heading: &str) {
        self.headings.retain(|(open, _)| *open < level);
        self.headings.push((level, words::terms(heading)));
        self.table_head.clear();
        self.before.clear();
        self.line(heading);
    }

    /// A row of a table, with its cells as they stand.
    fn row(&mut self, line: &str) {
        let cells: Vec<String> = line.trim_matches('|').split('|').map(|cell| plain(cell.trim())).collect();
        let is_rule = cells.iter().all(|cell| cell.chars().all(|letter| matches!(letter, '-' | ':' | ' ')));
        if is_rule {
            return;
        }
        let cells: Vec<String> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
        let row = cells.join(" | ");
        let first = self.table_head.is_empty();
        self.before.clear();
        if first {
            self.line(&row);
            self.table_head = words::terms(&row);
        } else {
            self.whole(&row, false);
        }
    }

    fn line(&mut self, line: &str) {
        if !line.is_empty() {
            self.text.plain.push_str(line);
            self.text.plain.push('\n');
        }
    }

    fn keep(&mut self, sentence: &str, is_prose: bool) {
        let sentence = sentence.trim();
        let letters = sentence.chars().filter(|letter| letter.is_alphanumeric()).take(MIN_LETTERS).count();
        let terms = words::terms(sentence);
        let fits = letters >= MIN_LETTERS && sentence.chars().nth(MAX_CHARS).is_none() && terms.len() > 1;
        if fits && self.text.sentences.len() < MAX_SENTENCES {
            let mut around = self.title.clone();
            self.headings.iter().for_each(|(_, heading)| around.extend_from_slice(heading));
            around.extend_from_slice(&self.table_head);
            around.extend_from_slice(&self.before);
            let states =
                !sentence.trim_end_matches(['"', '”', ')', '*']).ends_with(['?', '？']) && !sentence.contains("</");
            let text = sentence.to_owned();
            self.text.sentences.push(Sentence { text, terms: terms.clone(), around, is_prose, states });
        }
        self.before = terms;
    }
}

/// Whether an item is a feed's entry, as [`crate::read`] writes it: it ends in its time.
fn is_entry(item: &str) -> bool {
    let time = item.strip_suffix(')').and_then(|item| item.rsplit_once('(')).map(|(_, time)| time);
    time.is_some_and(|time| {
        time.len() >= 19 && time.as_bytes()[10] == b'T' && time.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// What an item of a list says.
fn item(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(['-', '*', '+']).or_else(|| {
        let rest = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
        (rest.len() < line.len()).then(|| rest.strip_prefix(['.', ')'])).flatten()
    })?;
    rest.starts_with(' ').then(|| rest.trim_start())
}

/// One line of Markdown without its markup: links as their words, pictures not at all.
pub fn plain(markdown: &str) -> String {
    let mut plain = String::with_capacity(markdown.len());
    let mut rest = markdown;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        match letter {
            '\\' if after.starts_with(|next: char| next.is_ascii_punctuation()) => {
                plain.extend(after.chars().next());
                rest = &after[1..];
            }
            '!' if after.starts_with('[') && link(after).is_some() => {
                rest = link(after).map_or(after, |(_, after)| after);
            }
            '[' => match link(rest) {
                Some((words, after)) => {
                    plain.push_str(&self::plain(words));
                    rest = after;
                }
                None => {
                    plain.push('[');
                    rest = after;
                }
            },
            '<' if address(after).is_some() => rest = address(after).unwrap_or_default(),
            '*' | '`' => rest = after,
            '~' if after.starts_with('~') => rest = &after[1..],
            '_' => {
                // Within a word it belongs to it.
                let inside = plain.ends_with(char::is_alphanumeric) && after.starts_with(char::is_alphanumeric);
                if inside {
                    plain.push('_');
                }
                rest = after;
            }
            _ => {
                plain.push(letter);
                rest = after;
            }
        }
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of a link that begins here, and what comes after it.
fn link(text: &str) -> Option<(&str, &str)> {
    let close = closing(text, b'[', b']')?;
    let target = &text[close + 1..];
    let end = if target.starts_with('(') {
        closing(target, b'(', b')')?
    } else if target.starts_with('[') {
        closing(target, b'[', b']')?
    } else {
        return None;
    };
    Some((&text[1..close], &target[end + 1..]))
}

/// Where the bracket that opens the text is closed. Not further than a link reaches, so that many that are never closed
/// cost little.
fn closing(text: &str, open: u8, close: u8) -> Option<usize> {
    let mut depth = 0;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().take(3_000) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            byte if byte == open => depth += 1,
            byte if byte == close => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// What comes after an address in angle brackets.
fn address(after: &str) -> Option<&str> {
    let (inner, rest) = after.split_once('>')?;
    let is_address = inner.starts_with("http") || inner.starts_with("mailto:");
    (is_address && !inner.contains(char::is_whitespace)).then_some(rest)
}

/// Words that end in a dot without ending a sentence.
const SHORT: &str = "mr mrs ms dr prof st vs etc approx no nos vol fig inc ltd co corp dept est e.g i.e cf al jr sr gen col sgt \
    capt rev hon jan feb mar apr jun jul aug sep sept oct nov dec p pp ca bzw z.b d.h usw u.a nr art";

/// The sentences of a line, each a piece of it.
pub fn sentences(line: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut begin = 0;
    let mut letters = line.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let wide = matches!(letter, '。' | '！' | '？');
        if !wide && !matches!(letter, '.' | '!' | '?' | '…') {
            continue;
        }
        let mut end = at + letter.len_utf8();
        // What closes with the sentence belongs to it.
        while let Some((at, closing)) = letters.peek().copied() {
            if !matches!(closing, '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '.' | '!' | '?' | '」') {
                break;
            }
            end = at + closing.len_utf8();
            letters.next();
        }
        let after = &line[end..];
        let ends = wide || after.is_empty() || after.starts_with(char::is_whitespace) && begins(after.trim_start());
        if ends && !(letter == '.' && is_short(&line[begin..at])) {
            sentences.push(line[begin..end].trim());
            begin = end;
        }
    }
    sentences.push(line[begin..].trim());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

fn begins(text: &str) -> bool {
    text.starts_with(|letter: char| !letter.is_lowercase() && !matches!(letter, ',' | ';' | ':' | '–' | '-' | ')'))
}

/// Whether a dot after this text belongs to its last word.
fn is_short(text: &str) -> bool {
    let last =
        text.rsplit(|letter: char| letter.is_whitespace() || matches!(letter, '(' | '"')).next().unwrap_or_default();
    let letters = last.chars().count();
    let is_initial = letters == 1 && last.chars().all(|letter| letter.is_alphabetic());
    let lower = last.to_lowercase();
    is_initial || SHORT.split_whitespace().any(|short| short == lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_sentences() {
        assert_eq!(
            sentences(
                "Dr. A. Stone built it in 1862. It cost 3.5 million! \"Why?\" he asked. e.g. this one, No. 5 ends"
            ),
            ["Dr. A. Stone built it in 1862.", "It cost 3.5 million!", "\"Why?\" he asked. e.g. this one, No. 5 ends"]
        );
        assert_eq!(sentences("灯台は高い。三十メートル。"), ["灯台は高い。", "三十メートル。"]);
    }

    #[test]
    fn markup_is_left_out() {
        assert_eq!(
            plain(
                "**The** [tall *light*](http://x.example/a_(b) \"t\") ![pic](y.png)is `31 m` snake_case \\*high\\* <https://z.example>"
            ),
            "The tall light is 31 m snake_case *high*"
        );
        assert_eq!(plain("a [b] c ![d e"), "a [b] c ![d e");
        assert!(plain(&"[".repeat(50_000)).len() == 50_000);
    }

    #[test]
    fn what_can_be_quoted_occurs_in_the_plain_text() {
        let markdown = "# Skerry light\n\nIt is *31 metres* high. It was\nbuilt in 1862.\n\n## Prices\n\n| Ticket | Price |\n| --- | --- |\n\
                        | Adult visitor | 12 EUR |\n\n- Open daily from nine. Closed on Mondays.\n\n```text\nlet height = 31; // metres\n```\n> A quoted sentence is here.";
        let text = read(markdown, "The light");
        let quoted: Vec<&str> = text.sentences.iter().map(|sentence| sentence.text.as_str()).collect();
        assert_eq!(
            quoted,
            [
                "It is 31 metres high.",
                "It was built in 1862.",
                "Adult visitor | 12 EUR",
                "Open daily from nine.",
                "Closed on Mondays.",
                "let height = 31; // metres",
                "A quoted sentence is here."
            ]
        );
        assert!(quoted.iter().all(|quote| text.plain.contains(quote)), "{}", text.plain);
        let price = &text.sentences[2].around;
        assert!(["light", "ticket", "cost"].iter().all(|word| price.iter().any(|term| term == word)), "{price:?}");
    }
}
