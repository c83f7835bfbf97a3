//! A page's Markdown as plain text, and its sentences that can be quoted.
//!
//! Every sentence is an exact piece of the plain text, so every quotation occurs in the page.

use std::sync::Arc;

use super::markup::{is_only_links, plain};
use super::sentences::sentences;
use super::{statement, words};

/// Maximum number of sentences per page; the Markdown of a page is at most 50 KB.
const MAX_SENTENCES: usize = 2_000;
/// Minimum number of letters and digits in a sentence, and its maximum length in characters.
const MIN_LETTERS: usize = 8;
const MAX_CHARS: usize = 600;
/// Maximum number of words used from a title or heading.
const MAX_HEADING_TERMS: usize = 20;
/// Longest piece of context, in characters.
const MAX_CONTEXT_CHARS: usize = 300;

/// The plain text of a page.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// The lines, in order, without markup.
    pub plain: String,
    pub sentences: Vec<Sentence>,
}

/// A quotable piece: a sentence, a list item or a table row.
#[derive(Clone, Debug)]
pub struct Sentence {
    pub text: String,
    pub terms: Vec<String>,
    /// Words of the title, headings and table head above it. Shared within a section.
    pub under: Arc<Vec<String>>,
    /// Words of the sentence before, or of the line that introduces its list.
    pub before: Vec<String>,
    /// Text to show with it, word for word from the page: its table head, the line that introduces its list, the sentence
    /// that says who "it" is. Empty if it needs none.
    pub context: Vec<String>,
    /// Whether it is prose, not a list fragment, table row or code.
    pub is_prose: bool,
    /// Whether it states something, see [`statement::states`].
    pub states: bool,
}

/// Reads Markdown. `title` is the title of the page.
pub fn read(markdown: &str, title: &str) -> Text {
    let mut title = words::terms(title);
    title.truncate(MAX_HEADING_TERMS);
    let mut reader = Reader { title, ..Reader::default() };
    let mut paragraph = Paragraph::default();
    let mut fence: Option<String> = None;
    for line in markdown.lines() {
        let bare = line.trim();
        let mark: String = bare.chars().take_while(|letter| matches!(letter, '`' | '~')).collect();
        if fence.as_ref().is_some_and(|fence| mark.starts_with(fence.as_str())) {
            fence = None;
            continue;
        }
        if fence.is_some() {
            reader.code(bare);
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
            // A feed entry as `crate::read` writes it: a heading for what follows, not a statement.
            reader.heading(6, &plain(entry));
        } else if let Some(item) = item(bare) {
            // An item may hold sentences and continue on the next line.
            paragraph = Paragraph { markdown: item.to_owned(), is_item: true };
        } else {
            if !paragraph.markdown.is_empty() {
                paragraph.markdown.push(' ');
            }
            paragraph.markdown.push_str(bare);
        }
    }
    reader.prose(&mut paragraph);
    reader.text
}

/// A paragraph or list item that is being read.
#[derive(Default)]
struct Paragraph {
    markdown: String,
    is_item: bool,
}

#[derive(Default)]
struct Reader {
    text: Text,
    title: Vec<String>,
    /// The current headings with their levels.
    headings: Vec<(usize, String)>,
    /// The head of the current table, and its number of columns.
    table_head: Option<(String, usize)>,
    /// Words of title, headings and table head, computed when needed.
    section: Option<Arc<Vec<String>>>,
    /// The last sentence of the paragraph that introduces the current list or table.
    lead: String,
    before: String,
}

impl Reader {
    fn prose(&mut self, paragraph: &mut Paragraph) {
        let Paragraph { markdown, is_item } = std::mem::take(paragraph);
        if markdown.is_empty() {
            return;
        }
        if self.table_head.take().is_some() {
            self.section = None;
        }
        let is_links = is_only_links(&markdown);
        let whole = plain(&markdown);
        self.line(&whole);
        if !is_item {
            self.lead.clear();
        }
        self.before.clone_from(&self.lead);
        for (index, sentence) in sentences(&whole).into_iter().enumerate() {
            let leans = statement::leans_back(sentence);
            let is_fragment = !statement::is_whole(sentence);
            let context = match (is_item, index) {
                (true, 0) if is_fragment => self.place(&self.lead),
                (true, 0) if leans => self.place(&self.lead),
                _ if leans && !self.before.is_empty() => vec![self.before.clone()],
                _ if leans => self.place(""),
                _ => Vec::new(),
            };
            let states = statement::states(sentence, is_links);
            self.keep(sentence, !(is_item && is_fragment), states, context);
            if !is_item {
                sentence.clone_into(&mut self.lead);
            }
        }
    }

    /// A line of code or data: shown to a model as context, but never a statement.
    fn code(&mut self, line: &str) {
        self.line(line);
        self.keep(line, false, false, Vec::new());
    }

    fn heading(&mut self, level: usize, heading: &str) {
        self.headings.retain(|(open, _)| *open < level);
        self.headings.push((level, heading.to_owned()));
        (self.table_head, self.section) = (None, None);
        self.before.clear();
        self.lead.clear();
        self.line(heading);
    }

    /// A table row.
    fn row(&mut self, line: &str) {
        let cells: Vec<String> = line.trim_matches('|').split('|').map(|cell| plain(cell.trim())).collect();
        let is_rule = cells.iter().all(|cell| cell.chars().all(|letter| matches!(letter, '-' | ':' | ' ')));
        if is_rule {
            return;
        }
        let cells: Vec<String> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
        let row = cells.join(" | ");
        self.before.clone_from(&self.lead);
        let Some((head, columns)) = self.table_head.clone() else {
            self.line(&row);
            self.section = None;
            // A first row of two cells with a number is a name with its value, not a head.
            if cells.len() == 2 && cells[1].contains(|letter: char| letter.is_ascii_digit()) {
                self.keep(&row, false, true, self.place(""));
                self.table_head = Some((String::new(), 2));
            } else {
                self.table_head = Some((row, cells.len()));
            }
            return;
        };
        self.line(&row);
        let mut context = self.place(&self.lead);
        if !head.is_empty() {
            context.push(head);
        }
        // A row with fewer cells than the head is a subheading or a note.
        let states = cells.len() > 1 && (cells.len() >= columns || columns <= 2);
        self.keep(&row, false, states, context);
    }

    /// Context of a row or item: its heading and the line that introduces it.
    fn place(&self, lead: &str) -> Vec<String> {
        let heading = self.headings.last().map(|(_, heading)| heading.as_str());
        let pieces = heading.into_iter().chain([lead]).filter(|piece| !piece.is_empty());
        pieces.map(str::to_owned).collect()
    }

    /// Words of the current section.
    fn section(&mut self) -> Arc<Vec<String>> {
        let head = self.table_head.as_ref().map_or("", |(head, _)| head.as_str());
        let (title, headings) = (&self.title, &self.headings);
        let section = self.section.get_or_insert_with(|| {
            let above = headings.iter().map(|(_, heading)| heading.as_str()).chain([head]);
            let above = above.flat_map(|text| words::terms(text).into_iter().take(MAX_HEADING_TERMS));
            Arc::new(title.iter().cloned().chain(above).collect())
        });
        section.clone()
    }

    fn line(&mut self, line: &str) {
        if !line.is_empty() {
            self.text.plain.push_str(line);
            self.text.plain.push('\n');
        }
    }

    fn keep(&mut self, sentence: &str, is_prose: bool, states: bool, mut context: Vec<String>) {
        let sentence = sentence.trim();
        let letters = sentence.chars().filter(|letter| letter.is_alphanumeric()).take(MIN_LETTERS).count();
        let terms = words::terms(sentence);
        let fits = letters >= MIN_LETTERS && sentence.chars().nth(MAX_CHARS).is_none() && terms.len() > 1;
        if fits && self.text.sentences.len() < MAX_SENTENCES {
            let (under, before) = (self.section(), words::terms(&self.before));
            context.retain(|piece| piece.chars().nth(MAX_CONTEXT_CHARS).is_none() && piece != sentence);
            self.text.sentences.push(Sentence {
                text: sentence.to_owned(),
                terms,
                under,
                before,
                context,
                is_prose,
                states,
            });
        }
        sentence.clone_into(&mut self.before);
    }
}

/// Whether an item is a feed entry as [`crate::read`] writes it, which ends in a timestamp.
fn is_entry(item: &str) -> bool {
    let time = item.strip_suffix(')').and_then(|item| item.rsplit_once('(')).map(|(_, time)| time);
    time.is_some_and(|time| {
        time.len() >= 19 && time.as_bytes()[10] == b'T' && time.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// The content of a list item.
fn item(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(['-', '*', '+']).or_else(|| {
        let rest = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
        (rest.len() < line.len()).then(|| rest.strip_prefix(['.', ')'])).flatten()
    })?;
    rest.starts_with(' ').then(|| rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_occur_in_the_plain_text() {
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
        let price = &text.sentences[2].under;
        assert!(["light", "ticket", "cost"].iter().all(|word| price.iter().any(|term| term == word)), "{price:?}");
    }
}
