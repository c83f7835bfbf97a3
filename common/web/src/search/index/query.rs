//! What a question finds: BM25 over the terms, then a close look at the texts of the best.

use std::collections::HashSet;

use base::words::{stem, typos, typos_allowed};

use super::reader::Opened;
use super::segment::Doc;
use super::words;

/// BM25's usual parameters.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// How much the score of a page with only some of the terms keeps, of what it would have.
const PARTLY: f32 = 0.5;
/// What the terms being close together, in the title, and side by side as asked, adds to a score.
const CLOSE: f32 = 0.25;
const IN_TITLE: f32 = 0.2;
const SIDE_BY_SIDE: f32 = 0.15;
/// A term that was read as another counts so much.
const MISSPELT: f32 = 0.6;
/// Words of a snippet.
const SNIPPET_WORDS: usize = 45;

/// A question, against one generation of the index.
pub struct Asked {
    pub terms: Vec<AskedTerm>,
}

pub struct AskedTerm {
    pub term: String,
    /// How rare it is.
    pub weight: f32,
}

/// A page that has some of the terms.
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

/// The term that a word which nothing has was probably meant to be: few letters away, and the most usual of those.
fn nearest(opened: &Opened, term: &str) -> Option<String> {
    let allowed = typos_allowed(term);
    // Numbers are not misspelt into other numbers.
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

/// The best pages by BM25, and how many have any of the terms.
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
    // Of equals the one that was read last.
    found.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| other.doc.read_at.cmp(&one.doc.read_at)));
    found.truncate(most);
    (found, total)
}

/// What a close look at a text showed.
#[derive(Default)]
pub struct Close {
    pub snippet: Option<String>,
    /// 0 to 1: how near the terms come to each other.
    nearness: f32,
    /// 0 to 1: how many of them stand side by side, as in the question.
    side_by_side: f32,
}

impl Close {
    /// The score with what the text and the title add to it.
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

/// Where a term stands in a text.
struct Place {
    /// Which word of the text.
    word: usize,
    /// Which of the asked terms.
    term: usize,
}

/// Looks for the terms in a text, and cuts the piece out that has most of them.
pub fn look_at(text: &str, asked: &Asked) -> Close {
    let firsts: HashSet<char> = asked.terms.iter().filter_map(|asked| asked.term.chars().next()).collect();
    let (mut places, mut starts): (Vec<Place>, Vec<usize>) = (Vec::new(), Vec::new());
    for (start, piece) in pieces(text) {
        starts.push(start);
        // Most words are told apart by their first letter. (An accented one may fold to any.)
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

/// Runs of what is no blank, with where they begin.
fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = text.as_ptr() as usize;
    text.split_whitespace().map(move |piece| (piece.as_ptr() as usize - start, piece))
}

/// The word at which the piece begins whose terms weigh most, each counted once; and the share of all it has, less where
/// they are far apart.
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

/// How many of the question's neighbours are neighbours in the text.
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
    // A heading's marks say nothing in a line.
    let piece: Vec<&str> =
        text[start..end].split_whitespace().filter(|word| !word.bytes().all(|byte| byte == b'#')).collect();
    let piece = piece.join(" ");
    let (before, after) = (if from > 0 { "… " } else { "" }, if end < text.len() { " …" } else { "" });
    (!piece.is_empty()).then(|| format!("{before}{piece}{after}"))
}
