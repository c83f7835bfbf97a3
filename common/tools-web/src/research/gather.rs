//! Searches and page reads for research, several at a time, until a deadline; returns what arrived by then.
//!
//! Only pages that a search found are read. Links in pages are not followed.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tools::{Mode, Source, ToolError, Toolbox};
use url::Url;
use web::read::ReadResult;
use web::search::{Extent, Hit, Query};

use super::networks;

/// Maximum number of pages that this process reads at a time for all research. A page may have 5 MB, and its tree takes
/// several times that.
static READERS: Semaphore = Semaphore::const_new(8);
/// Time limit of one page.
const PAGE_TIME: Duration = Duration::from_secs(12);

/// Results of several searches.
#[derive(Debug, Default)]
pub struct Hits {
    /// Best results of each query first, each page once.
    pub hits: Vec<Hit>,
    /// The providers that answered, each once, with the id of its first answer.
    pub searched_with: Vec<Source>,
    /// Size of our own index, if it was searched.
    pub index: Option<Extent>,
}

impl Hits {
    /// The source of a result: the vendor that searched, or else `own`.
    pub fn source(&self, own: &'static str) -> Source {
        let vendor = self.searched_with.iter().find(|source| source.mode == Mode::Upstream);
        vendor.cloned().unwrap_or(Source::embedded(own))
    }

    pub fn names(&self) -> Vec<&'static str> {
        self.searched_with.iter().map(|source| source.provider).collect()
    }
}

/// Searches for each query. Fails only if every search failed.
pub async fn search(toolbox: &Toolbox, queries: &[String], each: usize, end: Instant) -> Result<Hits, ToolError> {
    let asked = queries.iter().map(|text| async move {
        let query = Query { text: text.clone(), max_results: each };
        toolbox.find_pages(&query, end).await
    });
    let mut found = Vec::new();
    let mut error = None;
    for answer in join_all(asked).await {
        match answer {
            Ok(answer) => found.push(answer),
            Err(failed) => error = error.or(Some(failed)),
        }
    }
    if let (true, Some(error)) = (found.is_empty(), error) {
        return Err(error);
    }
    let mut hits = Hits::default();
    let mut seen = HashSet::new();
    for found in &found {
        if hits.searched_with.iter().all(|source| source.provider != found.source.provider) {
            hits.searched_with.push(found.source.clone());
        }
        hits.index = hits.index.or(found.index);
    }
    // Interleaves the queries by rank.
    for rank in 0..each {
        for hit in found.iter().filter_map(|found| found.hits.get(rank)) {
            if let Some(name) = name_of(&hit.url)
                && !networks::is_professional(&hit.url)
                && seen.insert(name)
            {
                hits.hits.push(hit.clone());
            }
        }
    }
    Ok(hits)
}

/// The URL without fragment and trailing slash, to compare pages.
fn name_of(url: &str) -> Option<String> {
    let mut url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.set_fragment(None);
    Some(url.as_str().trim_end_matches('/').to_owned())
}

/// Outcome of reading pages.
#[derive(Debug, Default)]
pub struct Reading {
    /// In the order of the search.
    pub pages: Vec<(Hit, ReadResult)>,
    /// Pages that could not be read, or not in time.
    pub failed: usize,
}

/// Reads the pages, `at_once` at a time, until `end`. `told` is called with the number done and the total.
pub async fn read(
    toolbox: &Toolbox,
    hits: Vec<Hit>,
    at_once: usize,
    end: Instant,
    mut told: impl FnMut(usize, usize),
) -> Reading {
    let all = hits.len();
    let reads = hits.into_iter().enumerate().map(|(rank, hit)| async move {
        let read = async {
            let _reader = READERS.acquire().await.ok()?;
            let read = timeout_at(end.min(Instant::now() + PAGE_TIME), toolbox.read_page(&hit.url)).await;
            read.ok()?.ok().filter(|read| read.metadata.status_code / 100 == 2)
        };
        let read = read.await;
        (rank, hit, read)
    });
    let mut reading = Reading::default();
    let mut read = Vec::new();
    let mut done = 0;
    let mut under_way = stream::iter(reads).buffer_unordered(at_once);
    while let Ok(Some((rank, hit, page))) = timeout_at(end, under_way.next()).await {
        read.extend(page.map(|page| (rank, hit, page)));
        done += 1;
        told(done, all);
    }
    read.sort_by_key(|(rank, _, _)| *rank);
    reading.failed = all - read.len();
    // Two URLs may lead to the same page.
    let mut seen = HashSet::new();
    for (_, hit, page) in read {
        if seen.insert(name_of(&page.url)) {
            reading.pages.push((hit, page));
        }
    }
    reading
}
