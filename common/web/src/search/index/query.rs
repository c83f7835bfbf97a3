//! Ranking: BM25 over the terms, then the texts of the best pages are read and ranked again.

use std::collections::HashSet;

use base::words::{stem, typos, typos_allowed};

use super::reader::Opened;
use super::segment::Doc;
use super::words;

/// The usual BM25 parameters.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// Share of the score that a page keeps even if it has few of the query's terms.
const PARTLY: f32 = 0.5;
/// Bonuses of the second ranking: terms close together, terms in the title, neighbouring terms in the order of the query.
const CLOSE: f32 = 0.25;
const IN_TITLE: f32 = 0.2;
const SIDE_BY_SIDE: f32 = 0.15;
/// Weight of a term that replaces a misspelt one.
const MISSPELT: f32 = 0.6;
/// Length of a snippet in words.
const SNIPPET_WORDS: usize = 45;

/// A query, weighted for one generation of the index.
pub struct Asked {
    pub terms: Vec<AskedTerm>,
}

pub struct AskedTerm {
    pub term: String,
    /// Inverse document frequency.
    pub weight: f32,
}

/// A page that has at least one of the terms.
pub struct Candidate<'a> {
    pub doc: &'a Doc,
    pub score: f32,
}

impl Asked {
    pub fn of(text: &str, opened: &Opened) -> Asked {
        let pages: usize = opened.segments.iter().map(|(_, segment, deleted)| segment.docs.len() - deleted.len()).sum();
        let weighed = |term: String, share: f32| {
            let with = pages_with(opened, &term);
            let rarity = (1.0 + (pages as f32 - with as f32 + 0.5) / (with as f32 + 0.5)).ln();
            (with > 0).then_some(AskedTerm { term, weight: share * rarity.max(0.01) })
        };
        let found = words::asked(text).into_iter().filter_map(|term| match pages_with(opened, &term) {
            0 => weighed(nearest(opened, &term)?, MISSPELT),
            _ => weighed(term, 1.0),
        });
        let mut seen = HashSet::new();
        Asked { terms: found.filter(|asked| seen.insert(asked.term.clone())).collect() }
    }
}

fn pages_with(opened: &Opened, term: &str) -> usize {
    let count = opened.segments.iter().map(|(_, segment, deleted)| {
        segment.pages_with(term).filter(|(number, _)| deleted.binary_search(number).is_err()).count()
    });
    count.sum()
}

/// The correction of a term that no page has: the fewest typos away, then the most frequent.
fn nearest(opened: &Opened, term: &str) -> Option<String> {
    let allowed = typos_allowed(term);
    // Only words of ASCII letters are corrected: a different number is not a typo.
    if allowed == 0 || !term.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    let near = opened.segments.iter().flat_map(|(_, segment, _)| segment.terms()).filter_map(|other| {
        let alike = other.as_bytes().first() == term.as_bytes().first() && other.len().abs_diff(term.len()) <= allowed;
        alike.then(|| typos(term, other, allowed).map(|count| (count, other))).flatten()
    });
    let near: HashSet<(usize, &str)> = near.collect();
    let best =
        near.into_iter().min_by_key(|(count, other)| (*count, std::cmp::Reverse(pages_with(opened, other)), *other));
    best.map(|(_, other)| other.to_owned())
}

/// The best pages by BM25, and how many pages have any of the terms.
pub fn candidates<'a>(opened: &'a Opened, asked: &Asked, most: usize) -> (Vec<Candidate<'a>>, u64) {
    let all_weights: f32 = asked.terms.iter().map(|asked| asked.weight).sum();
    let mut found = Vec::new();
    for (_, segment, deleted) in &opened.segments {
        let mut scores = vec![(0f32, 0f32); segment.docs.len()];
        for asked in &asked.terms {
            for (number, weight) in segment.pages_with(&asked.term) {
                let Some(doc) = segment.docs.get(number as usize) else { continue };
                let weight = f32::from(weight);
                let norm = K1 * (1.0 - B + B * doc.length as f32 / opened.mean_length);
                let (score, had) = &mut scores[number as usize];
                *score += asked.weight * weight * (K1 + 1.0) / (weight + norm);
                *had += asked.weight;
            }
        }
        for (number, (score, had)) in (0..).zip(scores) {
            if had > 0.0 && deleted.binary_search(&number).is_err() {
                let score = score * (PARTLY + (1.0 - PARTLY) * had / all_weights);
                found.push(Candidate { doc: &segment.docs[number as usize], score });
            }
        }
    }
    let total = found.len() as u64;
    // Equal scores: the page read last comes first.
    found.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| other.doc.read_at.cmp(&one.doc.read_at)));
    found.truncate(most);
    (found, total)
}

/// Result of the second ranking of one page.
#[derive(Default)]
pub struct Close {
    pub snippet: Option<String>,
    /// 0 to 1: how close together the terms are.
    nearness: f32,
    /// 0 to 1: share of neighbouring terms that are also neighbours in the text.
    side_by_side: f32,
}

impl Close {
    /// The BM25 score with the bonuses for text and title.
    pub fn improved(&self, candidate: &Candidate<'_>, asked: &Asked) -> f32 {
        let title = base::words::words(&candidate.doc.title, 60);
        let title: HashSet<String> = title.iter().map(|word| stem(word)).collect();
        let (mut had, mut all) = (0.0, 0.0f32);
        for asked in &asked.terms {
            all += asked.weight;
            had += if title.contains(&asked.term) { asked.weight } else { 0.0 };
        }
        let in_title = if all > 0.0 { had / all } else { 0.0 };
        candidate.score * (1.0 + CLOSE * self.nearness + SIDE_BY_SIDE * self.side_by_side + IN_TITLE * in_title)
    }
}

/// A term found in a text.
struct Place {
    /// Index of the word in the text.
    word: usize,
    /// Index of the query term.
    term: usize,
}

/// Finds the terms in a text, and cuts the best snippet.
pub fn look_at(text: &str, asked: &Asked) -> Close {
    let firsts: HashSet<char> = asked.terms.iter().filter_map(|asked| asked.term.chars().next()).collect();
    let (mut places, mut starts): (Vec<Place>, Vec<usize>) = (Vec::new(), Vec::new());
    for (start, piece) in pieces(text) {
        starts.push(start);
        // Skip most words by their first letter. (A letter with an accent may fold to any other.)
        let first = piece.chars().next().map(|first| first.to_lowercase().next().unwrap_or(first));
        if !first.is_some_and(|first| !first.is_ascii() || firsts.contains(&first)) {
            continue;
        }
        for word in base::words::words(piece, 8) {
            let term = stem(&word);
            if let Some(found) = asked.terms.iter().position(|asked| asked.term == term) {
                places.push(Place { word: starts.len() - 1, term: found });
            }
        }
    }
    if places.is_empty() {
        return Close { snippet: piece_of(text, &starts, 0), ..Close::default() };
    }
    let (from, coverage) = best_window(&places, asked);
    Close {
        snippet: piece_of(text, &starts, from),
        nearness: coverage,
        side_by_side: side_by_side(&places, asked.terms.len()),
    }
}

/// Words between whitespace, with their byte offsets.
fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = text.as_ptr() as usize;
    text.split_whitespace().map(move |piece| (piece.as_ptr() as usize - start, piece))
}

/// The word where the best snippet starts, and how close its terms are (0 to 1). A snippet's value is the weight of its
/// terms, each counted once, reduced if they are far apart.
fn best_window(places: &[Place], asked: &Asked) -> (usize, f32) {
    let all: f32 = asked.terms.iter().map(|asked| asked.weight).sum();
    let mut best = (0, -1.0f32, 0.0f32);
    for (index, first) in places.iter().enumerate().take(2_000) {
        let mut seen = vec![false; asked.terms.len()];
        let (mut weight, mut last, mut again) = (0.0, first.word, 0.0);
        for place in places[index..].iter().take_while(|place| place.word < first.word + SNIPPET_WORDS - 8) {
            if seen[place.term] {
                again += 0.02 * asked.terms[place.term].weight;
            } else {
                seen[place.term] = true;
                weight += asked.terms[place.term].weight;
                last = place.word;
            }
        }
        let spread = (last - first.word) as f32 / SNIPPET_WORDS as f32;
        let value = weight * (1.0 - 0.3 * spread) + again;
        if value > best.1 {
            let nearness = if asked.terms.len() > 1 { weight / all * (1.0 - spread) } else { 0.0 };
            best = (first.word, value, nearness);
        }
    }
    (best.0.saturating_sub(6), best.2.clamp(0.0, 1.0))
}

/// Share of the query's neighbouring terms that are also neighbours in the text, in the same order.
fn side_by_side(places: &[Place], terms: usize) -> f32 {
    if terms < 2 {
        return 0.0;
    }
    let mut pairs: HashSet<usize> = HashSet::new();
    for (one, other) in places.iter().zip(places.iter().skip(1)) {
        if other.term == one.term + 1 && other.word <= one.word + 2 {
            pairs.insert(one.term);
        }
    }
    pairs.len() as f32 / (terms - 1) as f32
}

fn piece_of(text: &str, starts: &[usize], from: usize) -> Option<String> {
    let start = *starts.get(from)?;
    let end = starts.get(from + SNIPPET_WORDS).copied().unwrap_or(text.len());
    // A snippet is one line: drop heading marks.
    let piece: Vec<&str> =
        text[start..end].split_whitespace().filter(|word| !word.bytes().all(|byte| byte == b'#')).collect();
    let piece = piece.join(" ");
    let (before, after) = (if from > 0 { "… " } else { "" }, if end < text.len() { " …" } else { "" });
    (!piece.is_empty()).then(|| format!("{before}{piece}{after}"))
}
