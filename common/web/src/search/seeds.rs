//! Pages that the operator wants in the index (`SEARCH_SEEDS`), listed directly or through sitemaps and feeds.

use std::collections::BTreeSet;
use std::time::Duration;

use platform::http::log;
use platform::net::{Fetcher, Page, check_url};
use platform::store::queue::{MAX_DELAY, Message};
use platform::store::{Queue, StoreError};

use super::address;
use crate::read::read_feed;

/// Maximum number of pages per seed, and of sitemaps read from a sitemap index.
const MOST_PAGES: usize = 500;
const MOST_SITEMAPS: usize = 10;
/// Delay between two page reads, to keep the load on a site low.
const STEP: Duration = Duration::from_secs(2);

/// The content of an address.
#[derive(Debug, PartialEq)]
enum Found {
    Page,
    /// Pages listed by a sitemap or feed.
    Pages(Vec<String>),
    Sitemaps(Vec<String>),
}

/// Reads every seed and queues its pages for the indexer. Returns how many pages were queued.
pub async fn send_all(seeds: &[String], fetcher: &Fetcher, queue: &dyn Queue) -> Result<usize, StoreError> {
    let mut pages = BTreeSet::new();
    for seed in seeds {
        pages.extend(pages_behind(seed, fetcher).await);
    }
    for (number, url) in (0u32..).zip(&pages) {
        queue.send_after(&Message::Visit { url: url.clone() }, (STEP * number).min(MAX_DELAY)).await?;
    }
    Ok(pages.len())
}

async fn pages_behind(seed: &str, fetcher: &Fetcher) -> Vec<String> {
    let mut pages = match look(seed, fetcher).await {
        Found::Page => vec![seed.to_owned()],
        Found::Pages(pages) => pages,
        Found::Sitemaps(maps) => {
            let mut pages = Vec::new();
            for map in maps.iter().take(MOST_SITEMAPS) {
                if let Found::Pages(more) = look(map, fetcher).await {
                    pages.extend(more);
                }
            }
            pages
        }
    };
    pages.retain(|page| check_url(page, fetcher.policy()).is_ok());
    pages.truncate(MOST_PAGES);
    pages
}

async fn look(url: &str, fetcher: &Fetcher) -> Found {
    match fetcher.read(url).await {
        Ok(page) if page.status == 200 => links(&page),
        Ok(page) => {
            log::failure("a search seed did not answer 200", &format_args!("{url} answered {}", page.status));
            Found::Pages(Vec::new())
        }
        Err(error) => {
            log::failure("a search seed cannot be read", &format_args!("{url}: {error}"));
            Found::Pages(Vec::new())
        }
    }
}

/// Reads the addresses of a sitemap (sitemaps.org) or feed. Anything else is a page.
fn links(page: &Page) -> Found {
    if let Some(feed) = read_feed(page) {
        let pages = feed.items.into_iter().filter_map(|item| Some(address::tidy(&item.url?)?.into()));
        return Found::Pages(pages.take(MOST_PAGES).collect());
    }
    let text = String::from_utf8_lossy(&page.body);
    let base = &page.final_url;
    let start: String = text.chars().take(2_000).collect::<String>().to_ascii_lowercase();
    let listed = || -> Vec<String> {
        let links = elements(&text, "loc").into_iter().filter_map(|link| {
            let link = link.trim().trim_start_matches("<![CDATA[").trim_end_matches("]]>").replace("&amp;", "&");
            address::tidy(base.join(link.trim()).ok()?.as_str())
        });
        // A sitemap may only list its own host.
        links.filter(|link| link.host() == base.host()).map(String::from).take(MOST_PAGES).collect()
    };
    if start.contains("<sitemapindex") {
        Found::Sitemaps(listed())
    } else if start.contains("<urlset") {
        Found::Pages(listed())
    } else {
        Found::Page
    }
}

/// The content of every element with this name.
fn elements<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let pieces = text.split(open.as_str()).skip(1);
    pieces.filter_map(|piece| Some(piece.split_once(close.as_str())?.0)).take(MOST_PAGES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sitemaps_and_feeds_are_read_for_their_addresses() {
        let links = |text: &str| {
            links(&Page {
                final_url: url::Url::parse("https://example.org/x").unwrap(),
                status: 200,
                content_type: Some("application/xml".to_owned()),
                robots: None,
                cache_control: None,
                body: text.as_bytes().to_vec(),
                truncated: false,
                redirects: 0,
            })
        };
        let pages = |text: &str| match links(text) {
            Found::Pages(pages) => pages.join(" "),
            other => format!("{other:?}"),
        };
        let map = "<?xml version='1.0'?><urlset><url><loc> https://example.org/a?b=1&amp;c=2 </loc></url>\
                   <url><loc>https://elsewhere.org/</loc></url><url><loc>javascript:alert(1)</loc></url></urlset>";
        assert_eq!(pages(map), "https://example.org/a?b=1&c=2");
        let index = "<sitemapindex><sitemap><loc>https://example.org/1.xml</loc></sitemap></sitemapindex>";
        assert_eq!(links(index), Found::Sitemaps(vec!["https://example.org/1.xml".to_owned()]));
        let rss = "<rss version=\"2.0\"><channel><title>T</title><link>https://example.org/</link>\
                   <item><title>One</title><link>https://example.org/news/1?utm_source=rss</link></item></channel></rss>";
        assert_eq!(pages(rss), "https://example.org/news/1");
        assert_eq!(links("<!doctype html><p>Hello"), Found::Page);
    }
}
