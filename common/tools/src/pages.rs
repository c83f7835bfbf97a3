//! Pages of the public web, looked for and read on somebody's behalf: what web search and web read sell, and what research
//! and company profiles work with. What was read is handed to the index.

use std::time::Duration;

use platform::config::Capability;
use platform::http::log;
use platform::net::{FetchError, Page, check_url};
use platform::store::StoreError;
use platform::store::queue::Message;
use tokio::time::Instant;
use web::read::{self, ReadOptions, ReadResult};
use web::search::index::StoredPage;
use web::search::{Found, Query, Search, address};

use super::{ToolError, Toolbox, Unavailable};
use crate::spec::Need;

/// Longest a browser is waited for, where nothing else says.
const BROWSER_TIME: Duration = Duration::from_secs(12);

/// One of these is needed where pages are looked for.
pub const SEARCHED_WITH: [Need; 2] = [Need::Provider(Capability::Search), Need::Pages];

/// The name of the browser's key.
const BROWSER: &str = "browser";

/// A page that was read.
pub struct Seen {
    pub read: ReadResult,
    /// A PNG of it, where one was wanted and it is a page.
    pub picture: Option<Vec<u8>>,
    /// Its scripts have run.
    pub by_browser: bool,
}

impl Toolbox {
    /// Looks for pages, until the deadline. See [`Search::find`].
    pub async fn find_pages(&self, query: &Query, deadline: Instant) -> Result<Found, ToolError> {
        let search = Search {
            config: &self.config.providers,
            outbound: &self.outbound,
            index: &self.index,
            db: &self.db,
            blobs: &*self.blobs,
            now: self.clock.now(),
        };
        search.find(query, deadline).await
    }

    /// Reads a page's main content. What it says is a stranger's text: see [`base::untrusted_text`].
    pub async fn read_page(&self, url: &str) -> Result<ReadResult, ToolError> {
        Ok(self.see_page(url, false, Instant::now() + BROWSER_TIME).await?.read)
    }

    /// The same, with a picture of it if one is wanted. The browser, if there is one, is asked where the page shows nothing
    /// before its scripts have run, or for a picture; it ends before `until`.
    pub async fn see_page(&self, url: &str, with_picture: bool, until: Instant) -> Result<Seen, ToolError> {
        let page = self.fetcher.read(url).await.map_err(explain)?;
        let (page, read) = self.parse(page).await?;
        let mut seen = Seen { read, picture: None, by_browser: false };
        if let Some(browser) = &self.browser
            && (seen.read.needs_browser || with_picture && read::is_html(&page))
        {
            let key = match browser.wants_key() {
                true => Some(self.outbound.needed_key(BROWSER).await.map_err(|error| error.of(BROWSER))?),
                false => None,
            };
            let shown = browser.show(&self.fetcher, key, page, with_picture, until).await;
            let shown =
                shown.map_err(|error| ToolError::unavailable(Unavailable::SourceUnavailable, error.to_string()))?;
            let (_, read) = self.parse(shown.page).await?;
            seen = Seen { read, picture: shown.picture, by_browser: true };
        }
        let read = &seen.read;
        if seen.by_browser && read.markdown.is_empty() {
            let message = "the page shows nothing, also when its scripts have run";
            return Err(ToolError::unavailable(Unavailable::SourceUnavailable, message));
        }
        if read.needs_browser && !seen.by_browser {
            let message =
                "the page shows nothing before its scripts have run, and this deployment has no browser to run them";
            return Err(ToolError::unavailable(Unavailable::NeedsBrowser, message));
        }
        if read.markdown.is_empty() && read.truncated {
            let message = "the page broke off, or is nested too deeply, before anything could be read";
            return Err(ToolError::unavailable(Unavailable::SourceUnavailable, message));
        }
        // The reader's work does not depend on it: what could not be handed over is not found, until it is read again.
        if let Err(error) = self.remember(read).await {
            log::failure("a page could not be handed to the index", &error);
        }
        Ok(seen)
    }

    /// Reads a page that came, and gives it back.
    async fn parse(&self, page: Page) -> Result<(Page, ReadResult), ToolError> {
        let options = ReadOptions { agent: self.fetcher.product().to_owned(), ..ReadOptions::default() };
        // Parsing a large page takes long enough to be kept off the thread that answers.
        let parsed = tokio::task::spawn_blocking(move || {
            let read = read::read_page(&page, &options);
            (page, read)
        });
        let (page, read) = parsed.await.map_err(|_| ToolError::internal("the page could not be parsed"))?;
        let read = read
            .map_err(|unsupported| ToolError::unavailable(Unavailable::SourceUnavailable, unsupported.to_string()))?;
        Ok((page, read))
    }

    /// Reads a page for the index alone. What cannot be read is not tried again before the next round.
    pub async fn visit(&self, url: &str) {
        if let Err(error) = self.read_page(url).await {
            log::failure("a page could not be read for the index", &format_args!("{url}: {}", error.message));
        }
    }

    /// Hands a page that was read to the index, if there is one and nothing forbids it.
    async fn remember(&self, read: &ReadResult) -> Result<(), StoreError> {
        let Some(queue) = &self.index_queue else { return Ok(()) };
        // What could only be read because somebody is developing this may be found by them, too.
        if check_url(&read.url, self.fetcher.policy()).is_err() {
            return Ok(());
        }
        if !read.indexable || matches!(read.metadata.status_code, 404 | 410) {
            // It does not want to be found, or is gone: so what was indexed before goes as well.
            let Some(url) = address::tidy(&read.url) else { return Ok(()) };
            return queue.send(&Message::Unlist { page: address::same_page(&url) }).await;
        }
        let Some(page) = StoredPage::of(read, self.clock.now()) else { return Ok(()) };
        let key = page.key();
        let bytes = serde_json::to_vec(&page).map_err(StoreError::new)?;
        self.blobs.put(&key, "application/json", bytes).await?;
        queue.send(&Message::Page { key }).await
    }
}

fn explain(error: FetchError) -> ToolError {
    let reason = match &error {
        FetchError::NotReachable(_) | FetchError::NotAllowed(_) => Unavailable::DestinationNotReachable,
        FetchError::Forbidden(_)
        | FetchError::TooManyRedirects
        | FetchError::DecompressionLimit
        | FetchError::UnsupportedContent(_)
        | FetchError::Protocol(_) => Unavailable::SourceUnavailable,
    };
    ToolError::unavailable(reason, error.to_string())
}
