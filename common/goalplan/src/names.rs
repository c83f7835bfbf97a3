//! Names of people, companies and places, by capital letters and the words before them.

use crate::words::{FILLERS, NOUN_VERBS, Token, VERBS};

/// What stands behind the names of companies.
const FIRMS: &[&str] = &[
    "inc",
    "corp",
    "corporation",
    "ltd",
    "llc",
    "gmbh",
    "ag",
    "plc",
    "co",
    "company",
    "group",
    "labs",
    "bank",
    "university",
    "limited",
    "holdings",
    "technologies",
    "systems",
];
const TITLES: &[&str] = &[
    "cto", "ceo", "cfo", "coo", "cmo", "vp", "hr", "us", "eu", "usa", "uk", "pdf", "sms", "vin", "iban", "url", "ai",
    "it", "i", "sec", "fda",
];

const QUESTIONS: &[&str] =
    &["how", "where", "when", "why", "does", "do", "did", "whose", "details", "top", "any", "hey"];

/// A run of capitalised words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub from: usize,
    pub to: usize,
    pub text: String,
    /// The word before it, in lower case.
    pub before: String,
}

/// The names in a clause.
pub(crate) fn runs(tokens: &[Token]) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !is_name(tokens, at) {
            at += 1;
            continue;
        }
        let mut to = at + 1;
        while to < tokens.len() && to - at < 6 && joins(tokens, to) {
            to += 1;
        }
        while to > at + 1 && !tokens[to - 1].is_capital() && !tokens[to - 1].has_digit() {
            to -= 1;
        }
        let before = if at > 0 { tokens[at - 1].lower.clone() } else { String::new() };
        runs.push(Run { from: at, to, text: spoken(&tokens[at..to]), before });
        at = to;
    }
    runs
}

fn is_name(tokens: &[Token], at: usize) -> bool {
    let token = &tokens[at];
    let lower = token.lower.as_str();
    let is_first = at == 0
        && (VERBS.contains(&lower)
            || NOUN_VERBS.contains(&lower)
            || FILLERS.contains(&lower)
            || QUESTIONS.contains(&lower));
    token.is_capital()
        && !is_first
        && !token.text.contains(['@', '/'])
        && token.text != "I"
        && !token.text.starts_with("I'")
}

fn joins(tokens: &[Token], to: usize) -> bool {
    let (before, token) = (&tokens[to - 1], &tokens[to]);
    if before.pauses() && before.tail != "." || token.quoted {
        return false;
    }
    let next_is_name = tokens.get(to + 1).is_some_and(Token::is_capital);
    is_name(tokens, to)
        || token.is(&["de", "van", "von", "der", "la", "&", "du", "bin", "al", "da"]) && next_is_name
        || token.text == "&" && next_is_name
}

/// Words with single spaces, without what stands around them.
pub(crate) fn spoken(tokens: &[Token]) -> String {
    let words: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
    words.join(" ")
}

fn is_firm(run: &Run) -> bool {
    run.text.split(' ').skip(1).any(|word| FIRMS.contains(&word.to_lowercase().trim_end_matches('.')))
}

/// "Ada Lovelace": two to four words that are no firm, not behind "in" or "at".
pub(crate) fn person<'a>(runs: &'a [Run]) -> Option<&'a Run> {
    let is_person = |run: &&'a Run| {
        let words: Vec<&str> = run.text.split(' ').collect();
        let is_title = words.iter().any(|word| TITLES.contains(&word.to_lowercase().as_str()));
        (2..=4).contains(&words.len())
            && !is_firm(run)
            && !is_title
            && !matches!(run.before.as_str(), "in" | "at" | "near" | "around")
            && !run.text.contains(|letter: char| letter.is_ascii_digit())
    };
    runs.iter().find(is_person)
}

/// "Example Inc", or a name behind "at" or "of".
pub(crate) fn company<'a>(runs: &'a [Run]) -> Option<&'a Run> {
    let behind =
        |run: &&'a Run| matches!(run.before.as_str(), "at" | "of" | "by" | "company" | "from" | "called" | "firm");
    let is_title = |run: &Run| TITLES.contains(&run.text.to_lowercase().as_str());
    runs.iter().find(|run| is_firm(run)).or_else(|| runs.iter().filter(|run| !is_title(run)).find(behind))
}

/// The name of a place behind "in", with a state or country behind a comma: "Austin, TX".
pub(crate) fn place(tokens: &[Token], runs: &[Run]) -> Vec<Run> {
    let behind =
        |run: &&Run| matches!(run.before.as_str(), "in" | "near" | "around" | "for" | "of" | "at" | "to" | "from");
    let inside = |run: &&Run| matches!(run.before.as_str(), "in" | "near" | "around");
    let first =
        runs.iter().position(|run| inside(&run)).or_else(|| runs.iter().position(|run| behind(&run) && !is_firm(run)));
    let Some(first) = first else { return Vec::new() };
    let mut places: Vec<Run> = Vec::new();
    let mut at = first;
    while let Some(run) = runs.get(at) {
        let last = places.last_mut();
        let gap = last.as_ref().map_or(0, |last| run.from - last.to);
        match last {
            None => places.push(run.clone()),
            Some(last) if gap == 0 && tokens[run.from - 1].tail.contains(',') => {
                last.text = format!("{}, {}", last.text, run.text);
                last.to = run.to;
            }
            Some(last)
                if (1..=2).contains(&gap)
                    && tokens[last.to].is(&["and"])
                    && tokens[last.to + 1..run.from].iter().all(|token| token.is(&["the"]))
                    && !is_firm(run) =>
            {
                places.push(run.clone());
            }
            Some(_) => break,
        }
        at += 1;
    }
    places
}
