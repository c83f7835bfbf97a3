//! The terms of products and of queries.

use std::collections::HashMap;

use base::words::{MAX_WORD_CHARS, is_stop_word, stem, words};

use crate::Product;

/// Most words of a field that count.
const MAX_WORDS: usize = 200;
/// What a word counts in each field.
const TITLE: u32 = 10;
const VENDOR: u32 = 6;
const CATEGORY: u32 = 4;
const DESCRIPTION: u32 = 1;
/// Longest unit behind a number: `256 GB` is also `256gb`.
const MAX_UNIT_CHARS: usize = 3;

/// Most words whose terms are kept.
const MAX_KNOWN: usize = 100_000;

/// Terms of words seen before: finding the stem of a word takes most of the time of adding a product.
#[derive(Default)]
pub(super) struct Known(HashMap<String, String>);

impl Known {
    fn term(&mut self, word: &str) -> String {
        if let Some(term) = self.0.get(word) {
            return term.clone();
        }
        if self.0.len() >= MAX_KNOWN {
            self.0.clear();
        }
        let term = term(word);
        self.0.insert(word.to_owned(), term.clone());
        term
    }
}

/// The terms of a product with their weights, and its length in words.
pub(super) fn terms(product: &Product, known: &mut Known) -> (HashMap<String, u32>, u16) {
    let mut terms = HashMap::new();
    let mut length = 0_usize;
    let text = |text: &Option<String>| text.as_deref().map(str::to_owned).unwrap_or_default();
    for (text, weight) in [
        (product.title.clone(), TITLE),
        (text(&product.vendor), VENDOR),
        (text(&product.category), CATEGORY),
        (text(&product.description), DESCRIPTION),
    ] {
        let words = words(&text, MAX_WORDS);
        length += words.len();
        for word in &words {
            *terms.entry(known.term(word)).or_default() += weight;
        }
        for pair in words.windows(2) {
            if let Some(joined) = joined(&pair[0], &pair[1]) {
                *terms.entry(joined).or_default() += weight;
            }
        }
        if weight == TITLE {
            // `WH-1000XM5` is also `wh1000xm5`.
            for compound in compounds(&text) {
                terms.entry(compound).or_insert(weight);
            }
        }
    }
    for number in [Some(&product.id), product.gtin.as_ref()].into_iter().flatten() {
        for word in words(number, 4) {
            terms.entry(term(&word)).or_insert(DESCRIPTION);
        }
    }
    terms.retain(|term, _| !is_stop_word(term));
    (terms, u16::try_from(length).unwrap_or(u16::MAX))
}

/// The term of a word.
pub(super) fn term(word: &str) -> String {
    let mut term = stem(word);
    term.truncate(term.floor_char_boundary(usize::from(u8::MAX)));
    term
}

/// A number and its unit as one word, in either order: `256 gb`, `usb 3`.
pub(super) fn joined(one: &str, two: &str) -> Option<String> {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let is_unit = |word: &str| word.chars().count() <= MAX_UNIT_CHARS && word.chars().all(char::is_alphabetic);
    let fits = is_number(one) && is_unit(two) || is_unit(one) && is_number(two);
    (fits && !one.is_empty() && !two.is_empty()).then(|| format!("{one}{two}"))
}

/// Words with hyphens, without them.
fn compounds(text: &str) -> impl Iterator<Item = String> {
    let with_hyphens = text.split_whitespace().filter(|word| word.contains('-') && word.len() <= MAX_WORD_CHARS);
    with_hyphens.take(MAX_WORDS).filter_map(|word| {
        let plain: String = word.chars().filter(|c| *c != '-').collect();
        let mut words = words(&plain, 2);
        // One word is left if nothing else was in it.
        (words.len() == 1).then(|| words.pop()).flatten().map(|word| term(&word))
    })
}
