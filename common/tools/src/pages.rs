//! Finds and reads pages of the public web, for web search, web read, research and company profiles. Pages that are read
//! are sent to the search index.

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

use super::{Reporter, ToolError, Toolbox, Unavailable};
use crate::spec::Need;

/// Longest time the browser gets if the caller sets no limit.
const BROWSER_TIME: Duration = Duration::from_secs(12);

/// A search needs at least one of these.
pub const SEARCHED_WITH: [Need; 2] = [Need::Provider(Capability::Search), Need::Pages];

/// The name of the browser's key in `PROVIDER_KEYS`.
pub const BROWSER: &str = "browser";

/// A page that was read.
pub struct Seen {
    pub read: ReadResult,
    /// A PNG screenshot, if one was wanted and a browser showed the page.
    pub picture: Option<Vec<u8>>,
    /// Whether a browser ran the page's scripts.
    pub by_browser: bool,
}

impl Toolbox {
    /// Searches until the deadline; see [`Search::find`].
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

    /// Reads the main content of a page. The text is untrusted: see [`base::untrusted_text`].
    pub async fn read_page(&self, url: &str) -> Result<ReadResult, ToolError> {
        Ok(self.see_page(url, false, Instant::now() + BROWSER_TIME, &Reporter::default()).await?.read)
    }

    /// Reads a page, with a screenshot if wanted. The browser, if configured, is used for the screenshot, or if the page
    /// has no text without its scripts. It ends before `until`.
    pub async fn see_page(
        &self,
        url: &str,
        with_picture: bool,
        until: Instant,
        reporter: &Reporter,
    ) -> Result<Seen, ToolError> {
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
            // A browser may be paid by the page.
            reporter.must_end();
            let shown = browser.show(&self.fetcher, key, page, with_picture, until).await;
            let shown =
                shown.map_err(|error| ToolError::unavailable(Unavailable::SourceUnavailable, error.to_string()))?;
            let (_, read) = self.parse(shown.page).await?;
            seen = Seen { read, picture: shown.picture, by_browser: true };
        }
        let read = &seen.read;
        if seen.by_browser && read.markdown.is_empty() {
            let message = "the page shows no text, even after its scripts have run";
            return Err(ToolError::unavailable(Unavailable::SourceUnavailable, message));
        }
        if read.needs_browser && !seen.by_browser {
            let message =
                "the page shows no text without its scripts, and no browser is configured to run them (BROWSER_URL)";
            return Err(ToolError::unavailable(Unavailable::NeedsBrowser, message));
        }
        if read.markdown.is_empty() && read.truncated {
            let message = "the page was cut off, or is nested too deeply, before any text could be read";
            return Err(ToolError::unavailable(Unavailable::SourceUnavailable, message));
        }
        // An indexing failure does not fail the read; the page is indexed when it is read again.
        if let Err(error) = self.remember(read).await {
            log::failure("a page could not be sent to the search index", &error);
        }
        Ok(seen)
    }

    /// Parses a fetched page, and returns it too.
    async fn parse(&self, page: Page) -> Result<(Page, ReadResult), ToolError> {
        let options = ReadOptions { agent: self.fetcher.product().to_owned(), ..ReadOptions::default() };
        // Parsing a large page would block the async thread.
        let parsed = tokio::task::spawn_blocking(move || {
            let read = read::read_page(&page, &options);
            (page, read)
        });
        let (page, read) = parsed.await.map_err(|_| ToolError::internal("the page could not be parsed"))?;
        let read = read
            .map_err(|unsupported| ToolError::unavailable(Unavailable::SourceUnavailable, unsupported.to_string()))?;
        Ok((page, read))
    }

    /// Reads a page only to index it. A failure is logged and not retried before the next round.
    pub async fn visit(&self, url: &str) {
        if let Err(error) = self.read_page(url).await {
            log::failure("a page could not be read for the search index", &format_args!("{url}: {}", error.message));
        }
    }

    /// Sends a page to the index, if there is an index and the page allows it.
    async fn remember(&self, read: &ReadResult) -> Result<(), StoreError> {
        let Some(queue) = &self.index_queue else { return Ok(()) };
        // Index only URLs that the fetch policy allows. (In development these include local addresses.)
        if check_url(&read.url, self.fetcher.policy()).is_err() {
            return Ok(());
        }
        if !read.indexable || matches!(read.metadata.status_code, 404 | 410) {
            // The page forbids indexing or is gone: remove it from the index.
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

/// The error of a page that its caller named. What a host does wrong is told apart from what a provider lacks.
pub fn explain(error: FetchError) -> ToolError {
    let reason = match &error {
        FetchError::NotReachable(_)
        | FetchError::NotAllowed(_)
        | FetchError::TooManyRedirects
        | FetchError::DecompressionLimit
        | FetchError::Protocol(_) => Unavailable::DestinationNotReachable,
        FetchError::Forbidden(_) | FetchError::UnsupportedContent(_) => Unavailable::SourceUnavailable,
    };
    ToolError::unavailable(reason, error.to_string())
}
