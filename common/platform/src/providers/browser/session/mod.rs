//! A session in the browser for somebody who acts on sites: it opens pages, clicks, types, and keeps cookies.
//!
//! Like a read, it has its own context with a proxy that does not exist, and each request of its pages is paused,
//! judged ([`Rules`]), and made by the guarded client. What a trial showed (Chromium 156), and what follows from it:
//!
//! - A paused request carries the context's cookies as the browser would send them (`HttpOnly`, `Secure` and `SameSite`
//!   included), and `Set-Cookie` in a fulfilment is kept. So the browser's own jar is used.
//! - Bodies come whole in `postDataEntries`, files that a script set included; `postData` damages bytes. Streams do not
//!   come.
//! - A fulfilled redirect is followed by the browser, and its next step is paused again, with its cookies.
//! - The document of a frame in another process is paused in its parent, everything after it in the frame's own
//!   session. Dedicated workers' requests are paused in their page, but only if the worker is attached. Those of
//!   nested, shared and service workers are not paused, so they fail at the proxy, as WebSockets do. With the proxy,
//!   hints such as `dns-prefetch` look nothing up.
//! - Only the browser as a whole tells of a new tab before it asks for anything; it also tells of other sessions' tabs.
//!   The opener of a tab can use its first, empty document before that, and waits while the tab waits.
//! - A navigation that fails with `Aborted` leaves the page as it was. A link with `download` is a document without a
//!   `networkId`. An open dialog blocks scripts, input and screenshots of its tab.
//! - Input at the page reaches frames in other processes; a drag needs its button in each move.
//!
//! What the rules cannot stop: a script of another domain that the page itself embeds gets what the page gives it, and
//! can send it home in a form that nobody recognizes.

mod calls;
mod downloads;
mod frames;
mod input;
mod link;
mod rules;
mod shared;
mod storage;
#[cfg(test)]
mod tests;
mod traffic;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base::encoding::base64_any;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use self::link::{Call, Link};
use self::shared::{Shared, Tab};
use super::cdp::Cdp;
use super::{Browser, BrowserError, NOWHERE};
use crate::config::Redacted;
use crate::net::{Fetcher, check_url};

pub use self::downloads::Download;
pub use self::input::{At, Click};
pub use self::rules::Rules;
pub use self::storage::{Cookie, OriginState, StorageState};

/// Most requests of a session, bytes that they load, and documents, those of frames included.
const MAX_REQUESTS: usize = 5000;
const MAX_BYTES: usize = 300 * 1024 * 1024;
const MAX_DOCUMENTS: usize = 500;
/// Most tabs that are open at once.
const MAX_TABS: usize = 8;
/// Most files that are kept until they are taken, and most bytes of each.
const MAX_DOWNLOADS: usize = 5;
const MAX_DOWNLOAD: usize = 20 * 1024 * 1024;
/// Most notes on refused requests that are kept until they are taken.
const MAX_NOTES: usize = 50;
/// Largest message of the browser, in bytes: a request with a file, which comes twice, as text and encoded.
const MAX_MESSAGE: usize = 96 * 1024 * 1024;
/// A page rests when nothing has happened for this long.
const QUIET: Duration = Duration::from_millis(400);
/// A page counts as resting after this time at the latest.
const PATIENCE: Duration = Duration::from_secs(8);
/// Longest wait for a page to draw.
const FRAME_TIME: Duration = Duration::from_millis(500);
/// Longest wait for one response of the browser.
const CALL_TIME: Duration = Duration::from_secs(10);
/// Longest wait for a page that is opened: a little more than one request may take.
const OPEN_TIME: Duration = Duration::from_secs(25);
/// How often a condition is looked at.
const TICK: Duration = Duration::from_millis(20);
/// Why an act is refused when a page's script never ends.
const NO_ANSWER: &str = "the page does not respond";
/// Why an act has no result when it, or somebody else, closed its page.
const CLOSED: &str = "the page was closed";
/// Why most acts are refused while a dialog is open.
const DIALOG_OPEN: &str = "a dialog is open; answer it first";

/// Pages in a browser context of their own. Dropping it closes them.
pub struct Session {
    calls: mpsc::UnboundedSender<Call>,
    shared: Arc<Shared>,
    fetcher: Arc<Fetcher>,
    script: &'static str,
    task: JoinHandle<()>,
}

/// Why an act has no result. In plain words, for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActError {
    /// This act is not possible. The session goes on.
    Refused(String),
    /// The page crashed or the connection broke. The session is over.
    Lost(String),
}

impl fmt::Display for ActError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => f.write_str(why),
            Self::Lost(why) => write!(f, "the browser session ended: {why}"),
        }
    }
}

impl std::error::Error for ActError {}

fn refused(why: impl Into<String>) -> ActError {
    ActError::Refused(why.into())
}

impl Browser {
    /// Starts a session with one empty tab. `script` is evaluated in a world of its own in each frame, where pages
    /// cannot reach it, and defines `globalThis.agoraView`. `state`: cookies and storage of an earlier session.
    ///
    /// # Errors
    /// If the browser cannot be reached or breaks off, or the state cannot be restored.
    pub async fn session(
        &self,
        key: Option<Redacted>,
        fetcher: Arc<Fetcher>,
        rules: Rules,
        script: &'static str,
        state: Option<StorageState>,
    ) -> Result<Session, BrowserError> {
        let opened = timeout_at(Instant::now() + OPEN_TIME, async {
            let address = self.address(key.as_ref().map_or("", Redacted::expose)).await?;
            let mut cdp = Cdp::open(&address, MAX_MESSAGE).await?;
            let alone = json!({"disposeOnDetach": true, "proxyServer": NOWHERE, "proxyBypassList": "<-loopback>"});
            let place = cdp.call("Target.createBrowserContext", alone).await?["browserContextId"].take();
            let no_files = json!({"behavior": "deny", "browserContextId": place});
            cdp.call("Browser.setDownloadBehavior", no_files).await?;
            let shared = Arc::new(Shared::new(rules));
            shared.state().place = place.as_str().ok_or("it opened no context")?.to_owned();
            let (calls, received) = mpsc::unbounded_channel();
            let link = Link::new(cdp, Arc::clone(&fetcher), Arc::clone(&shared));
            let task = tokio::spawn(link.run(received));
            let session = Session { calls, shared, fetcher, script, task };
            session.begin(state).await.map_err(|error| match error {
                ActError::Refused(why) | ActError::Lost(why) => why,
            })?;
            Ok(session)
        });
        opened.await.unwrap_or_else(|_| Err("it did not start in time".to_owned())).map_err(BrowserError)
    }
}

impl Session {
    async fn begin(&self, state: Option<StorageState>) -> Result<(), ActError> {
        let place = self.shared.state().place.clone();
        // Sessions share the clipboard of their browser.
        let secret = json!({"permission": {"name": "clipboard-read"}, "setting": "denied", "browserContextId": place});
        self.ask(None, "Browser.setPermission", secret).await?;
        let pages = json!([{"type": "page"}, {"exclude": true}]);
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": pages});
        self.ask(None, "Target.setAutoAttach", attach).await?;
        if let Some(state) = state {
            self.restore(state).await?;
        }
        self.new_page().await?;
        self.wait_for(|shared| !shared.state().tabs.is_empty()).await?;
        let tab = self.current()?;
        self.make_ready(&tab).await
    }

    /// Waits until a new page has taken its rules. Chromium 156 crashes pages that are opened earlier.
    async fn make_ready(&self, tab: &Tab) -> Result<(), ActError> {
        self.on(tab, "Runtime.evaluate", json!({"expression": "0"})).await.map(drop)
    }

    async fn new_page(&self) -> Result<(), ActError> {
        let place = self.shared.state().place.clone();
        let blank = json!({"url": "about:blank", "browserContextId": place});
        self.ask(None, "Target.createTarget", blank).await.map(drop)
    }

    /// Opens an address in the current tab.
    ///
    /// # Errors
    /// If the address is not allowed, or cannot be reached.
    pub async fn goto(&self, url: &str) -> Result<(), ActError> {
        let url = check_url(url, self.fetcher.policy()).map_err(|why| refused(format!("the URL {why}")))?;
        if !self.shared.rules.allows(&url) {
            return Err(refused(format!("{} is not an allowed domain", url.host_str().unwrap_or_default())));
        }
        let tab = self.free_tab()?;
        let before = self.shared.state().downloads.len();
        let at = self.send(Some(&tab.session), "Page.navigate", json!({"url": url.as_str()}))?;
        let opened = self.answer(Some(&tab.session), at, OPEN_TIME).await?.unwrap_or_default();
        self.rest().await?;
        let state = self.shared.state();
        match opened["errorText"].as_str() {
            Some(error) if state.downloads.len() == before => {
                let why = state.refused.last().cloned().unwrap_or_else(|| error.to_owned());
                Err(refused(format!("the page was not opened: {why}")))
            }
            _ => Ok(()),
        }
    }

    /// Goes back to the page before, in the current tab.
    ///
    /// # Errors
    /// If there is none.
    pub async fn back(&self) -> Result<(), ActError> {
        let tab = self.free_tab()?;
        let history = self.on(&tab, "Page.getNavigationHistory", json!({})).await?;
        let at = history["currentIndex"].as_u64().and_then(|at| usize::try_from(at).ok()).unwrap_or_default();
        let before = at.checked_sub(1).map(|before| &history["entries"][before]);
        let before =
            before.filter(|entry| entry["url"] != "about:blank").ok_or_else(|| refused("this is the first page"))?;
        self.on(&tab, "Page.navigateToHistoryEntry", json!({"entryId": before["id"]})).await?;
        self.rest().await
    }

    /// A PNG of the window.
    pub async fn screenshot(&self) -> Result<Vec<u8>, ActError> {
        let tab = self.free_tab()?;
        let picture = self.on(&tab, "Page.captureScreenshot", json!({"format": "png"})).await?;
        picture["data"].as_str().and_then(base64_any).ok_or_else(|| refused("the browser made no screenshot"))
    }

    /// Shows another tab, by its number in the view (from 1).
    pub async fn tab(&self, number: usize) -> Result<(), ActError> {
        let tab = {
            let mut state = self.shared.state();
            let at = number.checked_sub(1).filter(|at| *at < state.tabs.len());
            state.current = at.ok_or_else(|| refused(format!("there is no tab {number}")))?;
            state.tabs[state.current].clone()
        };
        self.ask(Some(&tab.session), "Page.bringToFront", json!({})).await?;
        self.rest().await
    }

    /// Closes the current tab and shows the one that opened it.
    ///
    /// # Errors
    /// If it is the only one.
    pub async fn close_tab(&self) -> Result<(), ActError> {
        let tab = self.current()?;
        if self.shared.state().tabs.len() < 2 {
            return Err(refused("it is the only tab"));
        }
        self.ask(None, "Target.closeTarget", json!({"targetId": tab.target})).await?;
        self.wait_for(|shared| shared.state().tabs.iter().all(|open| open.target != tab.target)).await?;
        let shown = self.current()?;
        self.ask(Some(&shown.session), "Page.bringToFront", json!({})).await?;
        self.rest().await
    }

    /// Answers the open dialog. `text`: what is typed into a `prompt`.
    ///
    /// # Errors
    /// If none is open.
    pub async fn dialog(&self, accept: bool, text: Option<&str>) -> Result<(), ActError> {
        let tab = self.current()?;
        if tab.dialog.is_none() {
            return Err(refused("no dialog is open"));
        }
        let mut answer = json!({"accept": accept});
        if let Some(text) = text {
            self.shared.state().typed.add(text);
            answer["promptText"] = json!(text);
        }
        self.ask(Some(&tab.session), "Page.handleJavaScriptDialog", answer).await?;
        self.wait_for(|shared| shared.state().tab().is_none_or(|tab| tab.dialog.is_none())).await?;
        self.rest().await
    }

    /// The files that pages sent since the last call.
    pub fn take_downloads(&self) -> Vec<Download> {
        std::mem::take(&mut self.shared.state().downloads)
    }

    /// Requests that were refused or failed since the last call, each with the reason. At most 50.
    pub fn refused(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.state().refused)
    }

    /// Waits until the current page rests, at most until then: it has loaded, and nothing has happened for 400 ms, or
    /// it goes on asking for things for 3 seconds.
    ///
    /// # Errors
    /// If the session is over.
    pub async fn settle(&self, until: Instant) -> Result<(), ActError> {
        self.shared.state().waits_since = Some(Instant::now());
        while Instant::now() < until && !self.shared.state().is_resting() {
            sleep(TICK).await;
        }
        self.current().map(drop)
    }

    /// Ends the session. Dropping it has the same effect, a little later.
    pub async fn close(self) {
        let place = self.shared.state().place.clone();
        // If it fails, the browser disposes of the context when the connection ends.
        let _ = self.ask(None, "Target.disposeBrowserContext", json!({"browserContextId": place})).await;
    }

    /// Settles after an act.
    async fn rest(&self) -> Result<(), ActError> {
        self.wait_for_frame().await?;
        self.shared.state().active_at = Some(Instant::now());
        self.settle(Instant::now() + PATIENCE).await?;
        self.take_made().await
    }

    /// Waits until the page has drawn, so that it has begun what the act leads to, and takes input. Not for long: a
    /// page may be gone or stuck.
    async fn wait_for_frame(&self) -> Result<(), ActError> {
        let tab = self.current()?;
        let drawn = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))";
        let ask = json!({"expression": drawn, "awaitPromise": true});
        let sent = self.send(Some(&tab.session), "Runtime.evaluate", ask)?;
        match self.answer(Some(&tab.session), sent, FRAME_TIME).await {
            Err(ActError::Lost(why)) => Err(ActError::Lost(why)),
            _ => Ok(()),
        }
    }

    fn current(&self) -> Result<Tab, ActError> {
        let state = self.shared.state();
        let lost = || ActError::Lost(state.lost.clone().unwrap_or_else(|| "it has no page".to_owned()));
        state.tab().filter(|_| state.lost.is_none()).cloned().ok_or_else(lost)
    }

    /// The current tab, if no dialog blocks it.
    fn free_tab(&self) -> Result<Tab, ActError> {
        let tab = self.current()?;
        if tab.dialog.is_some() { Err(refused(DIALOG_OPEN)) } else { Ok(tab) }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The address of the page that an origin's storage is reached at.
fn page_of(origin: &str) -> Option<Url> {
    Url::parse(origin).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}
