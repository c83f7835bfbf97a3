//! Clauses of a wish, and what is quoted in them.

use crate::copy::text;

/// Verbs that begin a wish of their own after "and" or a comma.
#[rustfmt::skip]
const VERBS: &[&str] = &[
    "make", "change", "use", "add", "remove", "set", "rename", "move", "delete", "replace", "put", "drop", "turn",
    "switch", "give", "shorten", "update", "increase", "swap", "ajoute", "ajoutez", "supprime", "supprimez",
    "remplace", "remplacez", "mets", "mettez", "renomme", "déplace", "füge", "entferne", "ersetze", "mach", "mache",
    "ändere", "setze", "lösche", "verschiebe", "añade", "cambia", "elimina", "quita", "pon", "reemplaza", "mueve",
];

const QUOTES: [(char, &[char]); 8] = [
    ('"', &['"']),
    ('“', &['”', '“']),
    ('„', &['“', '”']),
    ('«', &['»']),
    ('»', &['«']),
    ('‘', &['’']),
    ('\'', &['\'']),
    ('「', &['」']),
];

/// Where the quoted words stand: the marks' outer and the words' inner offsets.
fn spans(clause: &str) -> Vec<(usize, usize, usize, usize)> {
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some((start, open)) =
        clause[at..].char_indices().map(|(offset, c)| (at + offset, c)).find(|(start, c)| {
            let apart = clause[..*start].chars().next_back().is_none_or(|before| !before.is_alphanumeric());
            apart && QUOTES.iter().any(|(open, _)| open == c)
        })
    {
        let inner = start + open.len_utf8();
        let closing = QUOTES.iter().find(|(known, _)| *known == open).map_or(&[][..], |(_, closing)| closing);
        let close = clause[inner..].char_indices().map(|(offset, c)| (inner + offset, c)).find(|(end, c)| {
            // "don't" closes nothing.
            let apostrophe = matches!(c, '\'' | '’') && clause[end + c.len_utf8()..].starts_with(char::is_alphanumeric);
            closing.contains(c) && !apostrophe
        });
        match close {
            Some((end, c)) => {
                spans.push((start, end + c.len_utf8(), inner, end));
                at = end + c.len_utf8();
            }
            None => at = inner,
        }
    }
    spans
}

/// The clauses of a wish; quoted words are never split, nor the text of a new section.
pub fn split(changes: &str) -> Vec<String> {
    let lines = changes.lines().map(text::fold).filter(|line| !line.is_empty());
    lines.flat_map(|line| split_line(&line)).collect()
}

fn split_line(line: &str) -> Vec<String> {
    let quoted = spans(line);
    let inside = |at: usize| quoted.iter().any(|(start, end, ..)| (*start..*end).contains(&at));
    let mut clauses = Vec::new();
    let mut start = 0;
    for (at, c) in line.char_indices() {
        if at < start || inside(at) {
            continue;
        }
        let rest = &line[at..];
        let joint = match c {
            ';' => 1,
            '.' | '!' if rest[1..].starts_with(' ') || rest.len() == 1 => 1,
            ',' | ' ' => [", and ", ", then ", ", ", " and then ", " and ", " then ", " et ", " und ", " y "]
                .iter()
                .find(|joint| rest.starts_with(**joint) && begins_with_verb(&rest[joint.len()..]))
                .map_or(0, |joint| joint.len()),
            _ => 0,
        };
        if joint == 0 || (c != ';' && has_text(&line[start..at])) {
            continue;
        }
        push(&mut clauses, &line[start..at]);
        start = at + joint;
    }
    push(&mut clauses, &line[start..]);
    clauses
}

/// "Add a section about our history: We began small. We grew." is one wish.
fn has_text(clause: &str) -> bool {
    let lower = clause.to_lowercase();
    let adds = ["add", "new ", "ajoute", "füge", "añade"].iter().any(|verb| lower.contains(verb));
    adds && (lower.contains("section")
        || lower.contains("page")
        || lower.contains("abschnitt")
        || lower.contains("sección"))
        && lower.contains(": ")
}

fn begins_with_verb(rest: &str) -> bool {
    let first = rest.split([' ', ',']).next().unwrap_or_default().to_lowercase();
    VERBS.contains(&first.as_str())
}

fn push(clauses: &mut Vec<String>, clause: &str) {
    let clause = clause.trim().trim_end_matches(['.', ',', ';']).trim();
    let courtesy = matches!(
        clause.to_lowercase().as_str(),
        "please" | "thanks" | "thank you" | "hi" | "hello" | "danke" | "merci" | "gracias"
    );
    if clause.chars().any(char::is_alphanumeric) && !courtesy {
        clauses.push(clause.to_owned());
    }
}

/// One clause, read.
pub struct Wish {
    /// As written, without courtesies.
    pub text: String,
    pub lower: String,
    pub quotes: Vec<String>,
}

impl Wish {
    pub fn of(clause: &str) -> Wish {
        let mut bare = clause.trim();
        for courtesy in [
            "please ",
            "can you ",
            "could you ",
            "i would like you to ",
            "i'd like you to ",
            "i want you to ",
            "also ",
            "then ",
            "and ",
            "bitte ",
            "merci de ",
            "por favor ",
        ] {
            let starts = bare.get(..courtesy.len()).is_some_and(|start| start.eq_ignore_ascii_case(courtesy));
            if starts {
                bare = &bare[courtesy.len()..];
            }
        }
        let quotes = spans(bare)
            .iter()
            .map(|(_, _, from, to)| text::fold(&bare[*from..*to]))
            .filter(|words| !words.is_empty())
            .collect();
        Wish { text: bare.to_owned(), lower: bare.to_lowercase(), quotes }
    }

    /// Whether the clause says what is not to be done.
    pub fn negated(&self) -> bool {
        let unquoted = self.unquoted();
        let head = unquoted.split(": ").next().unwrap_or_default();
        let words: Vec<&str> = head.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’').collect();
        words.iter().any(|word| {
            matches!(*word, "don't" | "don’t" | "not" | "never" | "nicht" | "kein" | "keine" | "keep" | "without")
        })
    }

    /// In lower case, without what is quoted.
    pub fn unquoted(&self) -> String {
        let mut out = String::new();
        let mut at = 0;
        for (start, end, ..) in spans(&self.text) {
            out.push_str(&self.text[at..start]);
            at = end;
        }
        out.push_str(&self.text[at..]);
        text::fold(&out.to_lowercase())
    }

    /// Whether one of the words stands in the clause outside quotes.
    pub fn says(&self, words: &[&str]) -> bool {
        let unquoted = self.unquoted();
        unquoted.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| words.contains(&word))
    }

    /// Whether a phrase stands in it.
    pub fn has(&self, phrases: &[&str]) -> bool {
        let unquoted = self.unquoted();
        phrases.iter().any(|phrase| unquoted.contains(phrase))
    }

    /// What a wish sets something to: the last quoted words, or what follows the last "to" or the first colon.
    pub fn value(&self) -> Option<String> {
        if let Some(last) = self.quotes.last() {
            return Some(last.clone());
        }
        let marks = [": ", " to ", " into ", " en ", " zu ", " auf ", " à ", " par ", " a ", " por ", " = "];
        let (at, length) = marks.iter().filter_map(|mark| self.text.find(mark).map(|at| (at, mark.len()))).next()?;
        let value = text::fold(&self.text[at + length..]);
        (!value.is_empty()).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_split_into_clauses() {
        assert_eq!(
            split(
                "Make it green and change \"bread and make\" to \"rolls. Cakes\". Remove the pricing section; dark mode, please\nAdd a section about us: We bake. We sell, and make more."
            ),
            [
                "Make it green",
                "change \"bread and make\" to \"rolls. Cakes\"",
                "Remove the pricing section",
                "dark mode, please",
                "Add a section about us: We bake. We sell, and make more"
            ]
        );
        assert_eq!(split("use navy and beige"), ["use navy and beige"]);
    }

    #[test]
    fn quotes_of_all_kinds_are_read() {
        assert_eq!(
            Wish::of("change 'it's here' to „neu“ and «vieux» and “new”").quotes,
            ["it's here", "neu", "vieux", "new"]
        );
        assert_eq!(Wish::of("set the tagline to Bread for all").value().as_deref(), Some("Bread for all"));
    }
}
