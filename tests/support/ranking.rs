//! Measures the ranking of pages: the judged queries over the test sites, our index against plain BM25, by nDCG at 10.
//!
//! Gain is 2^grade − 1, discounted by log2(rank + 1), relative to the best possible order (Järvelin and Kekäläinen
//! 2002).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::clock::Timestamp;
use platform::net::Page;
use url::Url;
use web::read::{ReadOptions, read_page};
use web::search::index::{self, Opened, Pointer, Segment, StoredPage};
use web::search::{Query, address};

/// An index in memory, of every page that allows indexing.
#[allow(dead_code, reason = "the bench prints what the tests leave alone")]
pub struct Sites {
    opened: Opened,
    pages: HashMap<String, StoredPage>,
    pub bytes: usize,
    pub indexing: Duration,
}

/// The quality of one ranking.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quality {
    /// Mean over the queries, 0 to 1.
    pub ndcg: f64,
    /// Share of queries whose first result has the highest grade.
    pub first: f64,
    pub time_each: Duration,
}

impl Sites {
    pub fn read() -> Sites {
        let now = Timestamp::from_secs(1_795_249_530);
        let stored = sites::pages().iter().filter(|page| !page.truth.noindex).filter_map(|page| {
            let fetched = Page {
                final_url: Url::parse(&page.url()).ok()?,
                status: 200,
                content_type: Some(page.content_type.clone()),
                robots: None,
                cache_control: None,
                body: page.body.clone(),
                truncated: false,
                redirects: 0,
            };
            let stored = StoredPage::of(&read_page(&fetched, &ReadOptions::default()).ok()?, now)?;
            Some((stored.key(), stored))
        });
        let stored: BTreeMap<String, StoredPage> = stored.collect();
        let started = Instant::now();
        let all: Vec<(String, StoredPage)> = stored.into_iter().collect();
        let bytes = Segment::of(&all).expect("a segment");
        let (indexing, size) = (started.elapsed(), bytes.len());
        let segment = Arc::new(Segment::open(bytes).expect("a segment"));
        let pointer = Pointer { pages: all.len() as u64, ..Pointer::default() };
        let opened = Opened::of(pointer, vec![(String::new(), segment, Vec::new())]);
        Sites { opened, pages: all.into_iter().collect(), bytes: size, indexing }
    }

    pub fn count(&self) -> usize {
        self.pages.len()
    }

    /// The ten best by our index.
    pub fn ours(&self, query: &str) -> Vec<String> {
        let load = |key: &str| std::future::ready(self.pages.get(key).cloned());
        let query = Query { text: query.to_owned(), max_results: 10 };
        let ranked = index::rank(&self.opened, &query, load);
        let (hits, _) = futures_util::FutureExt::now_or_never(ranked).expect("nothing to wait for");
        hits.into_iter().take(10).map(|hit| hit.url).collect()
    }
}

/// Plain BM25: unchanged words, title and text together, nothing else.
pub struct Plain<'a> {
    pages: Vec<(&'a str, HashMap<String, f64>, f64)>,
    mean: f64,
}

impl<'a> Plain<'a> {
    pub fn of(sites: &'a Sites) -> Plain<'a> {
        let counted = sites.pages.values().map(|page| {
            let mut counts: HashMap<String, f64> = HashMap::new();
            plain_words(&format!("{}\n{}", page.title, page.text))
                .for_each(|word| *counts.entry(word).or_default() += 1.0);
            let length: f64 = counts.values().sum();
            (page.url.as_str(), counts, length)
        });
        let pages: Vec<_> = counted.collect();
        let mean = pages.iter().map(|(_, _, length)| length).sum::<f64>() / pages.len() as f64;
        Plain { pages, mean }
    }

    pub fn ranked(&self, query: &str) -> Vec<String> {
        let mut scores: Vec<(f64, &str)> = self.pages.iter().map(|(url, _, _)| (0.0, *url)).collect();
        for word in plain_words(query) {
            let with = self.pages.iter().filter(|(_, counts, _)| counts.contains_key(&word)).count() as f64;
            let rarity = (1.0 + (self.pages.len() as f64 - with + 0.5) / (with + 0.5)).ln();
            for ((score, _), (_, counts, length)) in scores.iter_mut().zip(&self.pages) {
                let count = counts.get(&word).copied().unwrap_or_default();
                *score += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / self.mean));
            }
        }
        scores.retain(|(score, _)| *score > 0.0);
        scores.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
        scores.into_iter().take(10).map(|(_, url)| url.to_owned()).collect()
    }
}

fn plain_words(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// The quality of a ranking over every judged query.
pub fn judge(queries: &[sites::Judged], ranked: impl Fn(&str) -> Vec<String>) -> Quality {
    let started = Instant::now();
    let mut quality = Quality::default();
    for judged in queries {
        let grades: HashMap<String, u8> = judged.grades.iter().map(|(url, grade)| (same(url), *grade)).collect();
        let found: Vec<u8> =
            ranked(&judged.query).iter().map(|url| grades.get(&same(url)).copied().unwrap_or_default()).collect();
        let mut best: Vec<u8> = grades.into_values().collect();
        best.sort_unstable_by(|one, other| other.cmp(one));
        quality.ndcg += gain(&found) / gain(&best).max(f64::MIN_POSITIVE);
        quality.first += f64::from(u8::from(found.first().is_some_and(|first| Some(first) == best.first())));
    }
    let count = queries.len().max(1);
    quality.time_each = started.elapsed() / count as u32;
    Quality { ndcg: quality.ndcg / count as f64, first: quality.first / count as f64, ..quality }
}

fn same(url: &str) -> String {
    address::tidy(url).map_or_else(String::new, |url| address::same_page(&url))
}

fn gain(grades: &[u8]) -> f64 {
    let gains = grades.iter().take(10).zip(2u32..);
    gains.map(|(grade, rank)| (2f64.powi(i32::from(*grade)) - 1.0) / f64::from(rank).log2()).sum()
}
