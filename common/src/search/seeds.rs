//! What the operator wants in the index (`SEARCH_SEEDS`): pages, and the pages that sitemaps and feeds lead to.

use std::collections::BTreeSet;
use std::time::Duration;

use super::address;
use crate::http::log;
use crate::net::check_url;
use crate::store::queue::{MAX_DELAY, Message};
use crate::store::{Queue, StoreError};
use crate::tools::Toolbox;

/// Most pages that one seed leads to, and most sitemaps that a list of sitemaps does.
const MOST_PAGES: usize = 500;
const MOST_SITEMAPS: usize = 10;
/// Pages are asked for one after the other, so far apart: nobody's server is to notice.
const STEP: Duration = Duration::from_secs(2);

/// What lies behind an address.
#[derive(Debug, PartialEq)]
enum Found {
    Page,
    /// Pages of a sitemap or a feed.
    Pages(Vec<String>),
    Sitemaps(Vec<String>),
}

impl Toolbox {
    /// Looks at every seed and puts the pages it leads to on their way. Returns how many those are.
    pub async fn visit_seeds(&self, queue: &dyn Queue) -> Result<usize, StoreError> {
        let mut pages = BTreeSet::new();
        for seed in &self.config.providers.seeds {
            pages.extend(self.pages_behind(seed).await);
        }
        for (number, url) in (0u32..).zip(&pages) {
            queue.send_after(&Message::Visit { url: url.clone() }, (STEP * number).min(MAX_DELAY)).await?;
        }
        Ok(pages.len())
    }

    async fn pages_behind(&self, seed: &str) -> Vec<String> {
        let mut pages = match self.look(seed).await {
            Found::Page => vec![seed.to_owned()],
            Found::Pages(pages) => pages,
            Found::Sitemaps(maps) => {
                let mut pages = Vec::new();
                for map in maps.iter().take(MOST_SITEMAPS) {
                    if let Found::Pages(more) = self.look(map).await {
                        pages.extend(more);
                    }
                }
                pages
            }
        };
        pages.retain(|page| check_url(page, self.fetcher.policy()).is_ok());
        pages.truncate(MOST_PAGES);
        pages
    }

    async fn look(&self, url: &str) -> Found {
        match self.fetcher.get(url).await {
            Ok(page) if page.status == 200 => links(&String::from_utf8_lossy(&page.body), &page.final_url),
            Ok(page) => {
                log::failure("a seed of the index is no page", &format_args!("{url} answered {}", page.status));
                Found::Pages(Vec::new())
            }
            Err(error) => {
                log::failure("a seed of the index cannot be read", &format_args!("{url}: {error}"));
                Found::Pages(Vec::new())
            }
        }
    }

    /// Reads a page for the index. What cannot be read is not tried again before the next round.
    pub async fn visit(&self, url: &str) {
        if let Err(error) = self.read_page(url).await {
            log::failure("a page could not be read for the index", &format_args!("{url}: {}", error.message));
        }
    }
}

/// Reads sitemaps (sitemaps.org), RSS and Atom as far as addresses go. Whatever is none of these is a page.
fn links(text: &str, base: &url::Url) -> Found {
    let start: String = text.chars().take(2_000).collect::<String>().to_ascii_lowercase();
    let has = |name: &str| start.contains(&format!("<{name}"));
    let resolved = |links: Vec<&str>| -> Vec<String> {
        let links = links.into_iter().filter_map(|link| {
            let link = link.trim().trim_start_matches("<![CDATA[").trim_end_matches("]]>").replace("&amp;", "&");
            address::tidy(base.join(link.trim()).ok()?.as_str())
        });
        links.map(String::from).take(MOST_PAGES).collect()
    };
    // A sitemap speaks for its own host alone.
    let own = |links: Vec<String>| -> Vec<String> {
        links.into_iter().filter(|link| url::Url::parse(link).is_ok_and(|link| link.host() == base.host())).collect()
    };
    if has("sitemapindex") {
        Found::Sitemaps(own(resolved(elements(text, "loc"))))
    } else if has("urlset") {
        Found::Pages(own(resolved(elements(text, "loc"))))
    } else if has("rss") || has("rdf:rdf") {
        Found::Pages(resolved(elements(text, "link")))
    } else if has("feed") {
        Found::Pages(resolved(hrefs(text)))
    } else {
        Found::Page
    }
}

/// What stands in every element of this name.
fn elements<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let pieces = text.split(open.as_str()).skip(1);
    pieces.filter_map(|piece| Some(piece.split_once(close.as_str())?.0)).take(MOST_PAGES).collect()
}

/// Addresses of an Atom feed's entries: links that are the entry itself.
fn hrefs(text: &str) -> Vec<&str> {
    let links = text.split("<link").skip(1).filter_map(|piece| piece.split_once('>')).map(|(link, _)| link);
    let own = links.filter(|link| !link.contains("rel=") || link.contains("rel=\"alternate\""));
    own.filter_map(|link| link.split_once("href=\"")?.1.split_once('"').map(|(href, _)| href))
        .take(MOST_PAGES)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sitemaps_and_feeds_are_read_for_their_addresses() {
        let base = url::Url::parse("https://example.org/x").unwrap();
        let pages = |text: &str| match links(text, &base) {
            Found::Pages(pages) => pages.join(" "),
            other => format!("{other:?}"),
        };
        let map = "<?xml version='1.0'?><urlset><url><loc> https://example.org/a?b=1&amp;c=2 </loc></url>\
                   <url><loc>https://elsewhere.org/</loc></url><url><loc>javascript:alert(1)</loc></url></urlset>";
        assert_eq!(pages(map), "https://example.org/a?b=1&c=2");
        let index = "<sitemapindex><sitemap><loc>https://example.org/1.xml</loc></sitemap></sitemapindex>";
        assert_eq!(links(index, &base), Found::Sitemaps(vec!["https://example.org/1.xml".to_owned()]));
        let rss = "<rss><channel><link>https://example.org/</link><item><link><![CDATA[/news/1]]></link></item></channel></rss>";
        assert_eq!(pages(rss), "https://example.org/ https://example.org/news/1");
        let atom =
            "<feed><link rel=\"self\" href=\"/feed\"/><entry><link href=\"https://other.org/1\"/></entry></feed>";
        assert_eq!(pages(atom), "https://other.org/1");
        assert_eq!(links("<!doctype html><p>Hello", &base), Found::Page);
    }
}
