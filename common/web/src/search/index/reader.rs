//! Opens the index and caches it for the life of the process.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::clock::Timestamp;
use base::tool_result::{Source, ToolError, Unavailable};
use futures_util::future::{join_all, try_join_all};
use platform::http::log;
use platform::store::{Blobs, Db, StoreError};
use tokio::sync::Mutex;

use super::super::{Found, Hit, Query, tidied};
use super::query::{self, Asked, Candidate};
use super::{Manifest, Pointer, Segment, StoredPage, load_segment};

/// How many of the best pages are read in full and ranked again.
const LOOKED_AT: usize = 20;

/// A cached index.
#[derive(Default)]
pub struct Reader {
    open: Mutex<Option<Arc<Opened>>>,
    had_pages: AtomicBool,
}

/// One generation of the index, open.
pub struct Opened {
    pub pointer: Pointer,
    pub segments: Vec<(String, Arc<Segment>, Vec<u32>)>,
    /// Mean words per page.
    pub mean_length: f32,
}

impl Reader {
    /// The current generation: reads one item, and only the blobs that are not cached.
    async fn open(&self, db: &Db, blobs: &dyn Blobs) -> Result<Option<Arc<Opened>>, StoreError> {
        let Some(pointer) = Pointer::load(db, false).await? else { return Ok(None) };
        let mut open = self.open.lock().await;
        if let Some(opened) = open.as_ref().filter(|opened| opened.pointer.generation >= pointer.generation) {
            return Ok(Some(opened.clone()));
        }
        let before: HashMap<&str, &Arc<Segment>> = open
            .iter()
            .flat_map(|opened| opened.segments.iter().map(|(key, segment, _)| (key.as_str(), segment)))
            .collect();
        let opened = Arc::new(Opened::load(blobs, pointer, &before).await?);
        *open = Some(opened.clone());
        Ok(Some(opened))
    }

    /// Whether the index has any page. A `true` is cached for the life of the process, because an index is hardly ever
    /// emptied.
    pub async fn has_pages(&self, db: &Db) -> Result<bool, StoreError> {
        if self.had_pages.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let has_pages = Pointer::load(db, false).await?.is_some_and(|pointer| pointer.pages > 0);
        self.had_pages.store(has_pages, Ordering::Relaxed);
        Ok(has_pages)
    }

    /// Searches the index. An index without pages is an error.
    pub async fn search(&self, db: &Db, blobs: &dyn Blobs, query: &Query, now: Timestamp) -> Result<Found, ToolError> {
        let unreadable = |error: StoreError| {
            log::failure("the index could not be read", &error);
            ToolError::unavailable(Unavailable::SourceUnavailable, "the index cannot be read at the moment")
        };
        let opened = self.open(db, blobs).await.map_err(unreadable)?.filter(|opened| opened.pointer.pages > 0);
        let Some(opened) = opened else {
            let message = "no search provider is configured, and this deployment's own index has no page yet";
            return Err(ToolError::unavailable(Unavailable::NotInLocalIndex, message));
        };
        let load = |key: &str| {
            let key = key.to_owned();
            async move {
                StoredPage::load(blobs, &key).await.unwrap_or_else(|error| {
                    log::failure("a page of the index could not be read", &error);
                    None
                })
            }
        };
        let (hits, total) = rank(&opened, query, load).await;
        Ok(Found {
            hits: tidied(hits, query.max_results, now),
            total: Some(total),
            source: Source::embedded("index"),
            index: Some(opened.pointer.extent()),
        })
    }
}

/// The best pages, best first, and how many pages match in all. `load` reads a page with its text; a page that cannot be
/// read has no snippet.
pub async fn rank<F: Future<Output = Option<StoredPage>>>(
    opened: &Opened,
    query: &Query,
    load: impl Fn(&str) -> F,
) -> (Vec<Hit>, u64) {
    let asked = Asked::of(&query.text, opened);
    let (candidates, total) = query::candidates(opened, &asked, LOOKED_AT.max(query.max_results));
    let pages = join_all(candidates.iter().map(|candidate| load(&candidate.doc.key))).await;
    let looked_at = candidates.iter().zip(pages).map(|(candidate, page)| {
        let close = page.map(|page| query::look_at(&page.text, &asked)).unwrap_or_default();
        (close.improved(candidate, &asked), candidate, close.snippet)
    });
    let mut ranked: Vec<(f32, &Candidate<'_>, Option<String>)> = looked_at.collect();
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
    let hits = ranked.into_iter().map(|(_, candidate, snippet)| Hit {
        title: candidate.doc.title.clone(),
        url: candidate.doc.url.clone(),
        snippet,
        published_at: candidate.doc.published_at.clone(),
        site: candidate.doc.site.clone(),
    });
    (hits.collect(), total)
}

impl Opened {
    async fn load(
        blobs: &dyn Blobs,
        pointer: Pointer,
        before: &HashMap<&str, &Arc<Segment>>,
    ) -> Result<Opened, StoreError> {
        let manifest = Manifest::load(blobs, &pointer.manifest).await?;
        let segments = try_join_all(manifest.segments.into_iter().map(|part| async move {
            let segment = match before.get(part.key.as_str()) {
                Some(known) => (*known).clone(),
                None => Arc::new(load_segment(blobs, &part.key).await?),
            };
            Ok::<_, StoreError>((part.key, segment, part.deleted))
        }));
        Ok(Opened::of(pointer, segments.await?))
    }

    pub fn of(pointer: Pointer, segments: Vec<(String, Arc<Segment>, Vec<u32>)>) -> Opened {
        let (mut pages, mut words) = (0u64, 0u64);
        for (_, segment, _) in &segments {
            pages += segment.docs.len() as u64;
            words += segment.docs.iter().map(|doc| u64::from(doc.length)).sum::<u64>();
        }
        let mean_length = (words as f32 / pages.max(1) as f32).max(1.0);
        Opened { pointer, segments, mean_length }
    }
}
