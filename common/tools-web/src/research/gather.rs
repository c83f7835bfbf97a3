//! Searching and reading for research: several queries and several pages at a time, until a moment, with what came by then.
//!
//! What is read is what a search found. No address in a page is followed because the page says so.

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

/// Pages that all research of this process reads at a time: each may be 5 MB, with a tree several times that.
static READERS: Semaphore = Semaphore::const_new(8);
/// Longest wait for one page: the others have the answer too, or nobody has.
const PAGE_TIME: Duration = Duration::from_secs(12);

/// What several searches found.
#[derive(Debug, Default)]
pub struct Hits {
    /// Best of each first, each page once.
    pub hits: Vec<Hit>,
    /// Who searched, each once, with the name of its first answer.
    pub searched_with: Vec<Source>,
    /// How much the own index holds, where that was asked.
    pub index: Option<Extent>,
}

impl Hits {
    /// Where a result comes from that rests on what was found: the provider that searched, or this part of the service.
    pub fn source(&self, own: &'static str) -> Source {
        let vendor = self.searched_with.iter().find(|source| source.mode == Mode::Upstream);
        vendor.cloned().unwrap_or(Source::embedded(own))
    }

    pub fn names(&self) -> Vec<&'static str> {
        self.searched_with.iter().map(|source| source.provider).collect()
    }
}

/// Searches for each of the queries. An error only if none of them could be searched for.
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
    // The best of each query before the second best of any.
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

/// An address as one name for its page.
fn name_of(url: &str) -> Option<String> {
    let mut url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.set_fragment(None);
    Some(url.as_str().trim_end_matches('/').to_owned())
}

/// What came of reading pages.
#[derive(Debug, Default)]
pub struct Reading {
    /// In the order of the search.
    pub pages: Vec<(Hit, ReadResult)>,
    /// Pages that could not be read, or not in time.
    pub failed: usize,
}

/// Reads the pages, `at_once` of them at a time, until `end`. `told` hears how many are done.
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
    // Two addresses may lead to one page.
    let mut seen = HashSet::new();
    for (_, hit, page) in read {
        if seen.insert(name_of(&page.url)) {
            reading.pages.push((hit, page));
        }
    }
    reading
}
