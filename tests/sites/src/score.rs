//! Scores an extracted text against a page's known text.

use std::collections::HashMap;

use crate::Truth;

/// The score of one text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    /// Harmonic mean of precision and recall, over words with their counts.
    pub f1: f64,
    pub precision: f64,
    pub recall: f64,
    /// The share of texts besides the content that were extracted all the same; `None` if the page has none.
    pub boilerplate: Option<f64>,
}

/// Scores what a reader extracted from a page. The title is optional. Markdown marks and addresses do not count as
/// words.
pub fn score(text: &str, truth: &Truth) -> Score {
    let text = without_addresses(text);
    let mut found = count(&text);
    let wanted = count(&truth.main_text.join("\n"));
    // The title does not count, wherever it is.
    for word in words(&truth.title) {
        if let Some(times) = found.get_mut(&word)
            && *times > wanted.get(&word).copied().unwrap_or(0)
        {
            *times -= 1;
        }
    }
    let both: usize = wanted.iter().map(|(word, times)| (*times).min(found.get(word).copied().unwrap_or(0))).sum();
    let (found_all, wanted_all) = (found.values().sum::<usize>(), wanted.values().sum::<usize>());
    let share = |part: usize, whole: usize| {
        if whole == 0 { f64::from(u8::from(part == 0)) } else { part as f64 / whole as f64 }
    };
    let (precision, recall) = match (found_all, wanted_all) {
        (0, 0) => (1.0, 1.0),
        _ => (share(both, found_all), share(both, wanted_all)),
    };
    let f1 = if precision + recall > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 };
    let flat = words(&text).join(" ");
    let kept = truth.boilerplate.iter().filter(|part| flat.contains(&words(part).join(" "))).count();
    let boilerplate = (!truth.boilerplate.is_empty()).then(|| kept as f64 / truth.boilerplate.len() as f64);
    Score { f1, precision, recall, boilerplate }
}

/// Markdown links without their addresses.
fn without_addresses(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        out.push_str(&rest[..at + 1]);
        let after = &rest[at + 2..];
        rest = after.find(')').map_or("", |end| &after[end + 1..]);
    }
    out.push_str(rest);
    out
}

/// Words in lower case. In scripts without spaces each letter is a word.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for letter in text.chars() {
        let alone = matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}');
        if letter.is_alphanumeric() && !alone {
            word.extend(letter.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if alone {
            words.push(letter.to_string());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn count(text: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for word in words(text) {
        *counts.entry(word).or_insert(0) += 1;
    }
    counts
}
