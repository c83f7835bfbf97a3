//! The library: pages of an invented land, so that search and research find something without the internet.
//!
//! The stack serves them beside its [`site`](crate::site), and at its first start queues some of them, and the site's own
//! articles, for its search index.

use std::collections::HashSet;
use std::time::Duration;

use axum::Router;
use platform::store::queue::Message;
use platform::store::{Db, Queue};
use sites::{PageKind, SitePage};
use web::search::index::Pointer;

use crate::Error;
use crate::queue::LocalQueue;

/// The site's own pages that are read first.
const OWN: [&str; 2] = ["/article", "/prices"];
/// Between two pages. The reader pauses 250 ms between pages of one site, and what it read goes into the index meanwhile.
const STEP: Duration = Duration::from_millis(300);

/// Ordinary pages: articles, entries, manuals, threads.
fn pages() -> impl Iterator<Item = &'static SitePage> {
    use PageKind::{Blog, Docs, Forum, News, Product, Recipe, Wiki};
    let kinds = [Blog, Docs, Forum, News, Product, Recipe, Wiki];
    sites::pages().iter().filter(move |page| kinds.contains(&page.kind))
}

/// Serves the library: `/wiki.calderland.example/wiki/calder-bridge`.
pub fn router() -> Router {
    sites::router_of(&pages().cloned().collect::<Vec<_>>())
}

/// The addresses that go into the index: the site's own pages, then one page about each subject.
pub fn urls(site_url: &str) -> Vec<String> {
    let mut subjects = HashSet::new();
    let first = pages().filter(|page| subjects.insert(page.topic)).map(|page| page.local_url(site_url));
    OWN.iter().map(|path| format!("{site_url}{path}")).chain(first).collect()
}

/// Queues the library for the indexer. Does nothing if the index has as many pages already, as after a restart.
///
/// # Errors
/// The database cannot be read.
pub async fn queue(db: &Db, indexer: &LocalQueue, site_url: &str) -> Result<(), Error> {
    let (urls, known) = (urls(site_url), Pointer::load(db, true).await?.map_or(0, |pointer| pointer.pages));
    if known >= urls.len() as u64 {
        return Ok(());
    }
    for (number, url) in (0u32..).zip(urls) {
        indexer.send_after(&Message::Visit { url }, STEP * number).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_the_library_is_different_and_on_the_site() {
        let urls = urls("http://127.0.0.1:9");
        assert!(urls.len() > 30, "{}", urls.len());
        assert_eq!(urls[0], "http://127.0.0.1:9/article");
        assert_eq!(urls.iter().collect::<HashSet<_>>().len(), urls.len());
        assert!(urls.iter().all(|url| url.starts_with("http://127.0.0.1:9/") && !url.contains("hostile")), "{urls:?}");
    }
}
