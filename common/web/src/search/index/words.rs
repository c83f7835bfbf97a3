//! Splits texts into index terms: words without accents, stemmed if in Latin letters.

use std::collections::BTreeMap;

use base::words::{stem, words};

use super::page::StoredPage;

/// Maximum number of words indexed per page. (50 KB of Markdown have about 8,000.)
const MOST_WORDS: usize = 10_000;
/// Maximum number of words in a query.
const MOST_ASKED: usize = 32;

/// Query words that do not help to find a page.
const STOP_WORDS: &[&str] = &[
    "a", "about", "an", "and", "are", "as", "at", "be", "by", "can", "did", "do", "does", "for", "from", "had", "has",
    "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my", "of", "on", "or", "our", "should", "than",
    "that", "the", "their", "there", "these", "they", "this", "to", "was", "we", "were", "what", "whats", "when",
    "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// Weights: a word of the title counts as much as six of the text.
const TITLE: u32 = 6;
const HEADING: u32 = 3;
const ADDRESS: u32 = 3;
const DESCRIPTION: u32 = 2;

/// The terms of a page.
pub struct Counted {
    /// Each term with its total weight, at most 255.
    pub terms: BTreeMap<String, u8>,
    /// Words in the text.
    pub length: u32,
}

fn of(text: &str, most: usize) -> impl Iterator<Item = String> {
    words(text, most).into_iter().map(|word| stem(&word))
}

/// The terms of a query, each once, in order. Stop words are dropped, unless there is nothing else.
pub fn asked(text: &str) -> Vec<String> {
    let all = words(text, MOST_ASKED);
    let telling: Vec<&String> = all.iter().filter(|word| STOP_WORDS.binary_search(&word.as_str()).is_err()).collect();
    let chosen = if telling.is_empty() { all.iter().collect() } else { telling };
    let mut terms: Vec<String> = Vec::new();
    for word in chosen {
        let term = stem(word);
        if !terms.contains(&term) {
            terms.push(term);
        }
    }
    terms
}

pub fn count(page: &StoredPage) -> Counted {
    let mut weights: BTreeMap<String, u32> = BTreeMap::new();
    let mut length = 0;
    let mut add = |term: String, weight: u32| *weights.entry(term).or_default() += weight;
    for line in page.text.lines() {
        let left = MOST_WORDS.saturating_sub(length as usize);
        let weight = if line.starts_with('#') { HEADING } else { 1 };
        for term in of(line, left) {
            length += 1;
            add(term, weight);
        }
    }
    of(&page.title, 100).for_each(|term| add(term, TITLE));
    of(&page.description, 200).for_each(|term| add(term, DESCRIPTION));
    if let Ok(url) = url::Url::parse(&page.url) {
        let host = url.host_str().unwrap_or_default();
        of(&format!("{host} {}", url.path()), 50).for_each(|term| add(term, ADDRESS));
    }
    let terms = weights.into_iter().map(|(term, weight)| (term, weight.min(255) as u8)).collect();
    Counted { terms, length }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_stemmed_and_stop_words_dropped() {
        assert_eq!(asked("How do the lighthouses' keepers keep keeping?"), ["lighthous", "keeper", "keep"]);
        assert_eq!(asked("Which is it?"), ["which", "is", "it"], "better than nothing");
        assert_eq!(asked("GPT-4o Überprüfung 深層学習"), ["gpt", "4o", "uberprufung", "深層", "層学", "学習"]);
        assert!(STOP_WORDS.is_sorted());
    }
}
