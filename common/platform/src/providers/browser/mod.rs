//! A browser that runs a page's scripts, for pages that are empty without them: a Chromium, the operator's or a vendor's,
//! reached over the DevTools protocol (`BROWSER_URL`).
//!
//! The browser never fetches anything itself. It gets its own context with a proxy that does not exist, and each of its
//! requests is intercepted and made by the guarded client ([`Fetcher`]), or refused. So scripts cannot reach more than
//! pages can. A read makes only GETs: it must not change anything. A [`session`] acts for somebody, under rules of its own.

mod cdp;
pub mod session;
mod site;

use std::fmt;
use std::time::Duration;

use base::encoding::{base64_any, base64_standard};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use url::Url;

use self::cdp::{Cdp, Event, MAX_MESSAGE};
pub use self::session::{ActError, At, Click, Download, Rules, Session, StorageState};
pub use self::site::{SiteFile, SiteFiles, SiteView, Viewed};
use crate::config::Redacted;
use crate::net::{Fetcher, Page, PlainHttp};

/// Placeholder for the vendor's key in the address.
const KEY: &str = "{key}";
/// Window size in CSS pixels.
const WINDOW: (u32, u32) = (1280, 800);
/// Maximum height of a screenshot, in CSS pixels.
const MAX_HEIGHT: f64 = 4000.0;
/// Maximum number of requests of one page, and of bytes that they load in all.
const MAX_REQUESTS: usize = 100;
const MAX_BYTES: usize = 12 * 1024 * 1024;
/// Maximum number of concurrent requests.
const AT_ONCE: usize = 8;
/// Maximum number of documents shown for one page: the page itself, and those it navigates to.
const MAX_DOCUMENTS: usize = 3;
/// A loaded page is ready when it has made no request for this long.
const QUIET: Duration = Duration::from_millis(500);
/// A page counts as ready after this time at the latest: some pages never stop making requests.
const PATIENCE: Duration = Duration::from_secs(8);
/// A proxy that does not exist, so that the browser cannot reach the network.
const NOWHERE: &str = "http://127.0.0.1:9";
/// The DevTools method that answers an intercepted request.
const FULFIL: &str = "Fetch.fulfillRequest";
/// The error if a page navigates to another page that cannot be read.
const ASTRAY: &str = "it leads to a page that cannot be read";
/// Removes the interfaces with which a script could reach the network without the proxy.
const SHUT: &str =
    "for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebTransport']) delete globalThis[name];";

/// The address of the browser.
#[derive(Clone)]
pub struct Browser {
    /// May hold a vendor's key.
    url: Redacted,
    http: PlainHttp,
}

/// A page after its scripts have run.
pub struct Shown {
    /// The current document, in place of the one that was fetched.
    pub page: Page,
    /// A PNG screenshot, if one was requested.
    pub picture: Option<Vec<u8>>,
}

/// Why there is no result. For the log and the caller.
#[derive(Debug)]
pub struct BrowserError(String);

impl fmt::Display for BrowserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the browser could not show the page: {}", self.0)
    }
}

impl Browser {
    /// `url`: `ws`, `wss`, or the `http` address of a browser's debugging port. `{key}` in it is replaced by a vendor's
    /// key.
    pub fn new(url: Redacted, http: &PlainHttp) -> Browser {
        Browser { url, http: http.clone() }
    }

    /// Whether the address needs a key.
    pub fn wants_key(&self) -> bool {
        self.url.expose().contains(KEY)
    }

    /// Shows a page that was fetched and runs its scripts, until it is ready or `until`.
    pub async fn show(
        &self,
        fetcher: &Fetcher,
        key: Option<Redacted>,
        page: Page,
        with_picture: bool,
        until: Instant,
    ) -> Result<Shown, BrowserError> {
        let shown = timeout_at(until, async {
            let address = self.address(key.as_ref().map_or("", Redacted::expose)).await?;
            let cdp = Cdp::open(&address, MAX_MESSAGE).await?;
            let at_once = Semaphore::new(AT_ONCE);
            Window { cdp, fetcher, with_picture, page, frame: Value::Null, asked: 0, brought: 0, documents: 0 }
                .show(&at_once, until)
                .await
        });
        shown.await.unwrap_or_else(|_| Err("it did not finish in time".to_owned())).map_err(BrowserError)
    }

    /// The WebSocket address: as configured, or as the debugging port reports it.
    async fn address(&self, key: &str) -> Result<Url, String> {
        let unusable = |_| "BROWSER_URL is not a valid URL".to_owned();
        let mut url = Url::parse(&self.url.expose().replace(KEY, key)).map_err(unusable)?;
        if url.scheme().starts_with("ws") {
            return Ok(url);
        }
        let ask = url.join("/json/version").map_err(unusable)?;
        let request =
            http::Request::get(ask.as_str()).body(Vec::new()).map_err(|_| "BROWSER_URL is not a valid URL")?;
        let answer = self.http.send(request).await.map_err(|error| error.to_string())?;
        let about: Value = serde_json::from_slice(&answer.body).map_err(|_| "it is not a browser's debugging port")?;
        let named = about["webSocketDebuggerUrl"].as_str().and_then(|url| Url::parse(url).ok());
        let named = named.ok_or("it is not a browser's debugging port")?;
        let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
        url.set_scheme(scheme).map_err(|()| "BROWSER_URL is not a valid URL")?;
        url.set_path(named.path());
        Ok(url)
    }
}

/// One page in the browser.
struct Window<'a> {
    cdp: Cdp,
    fetcher: &'a Fetcher,
    with_picture: bool,
    page: Page,
    /// Id of the page's main frame.
    frame: Value,
    asked: usize,
    brought: usize,
    documents: usize,
}

/// A request that was made for the page: its id, the response, and whether it is a navigation to a new document.
type Made = (String, Option<Page>, bool);

impl Window<'_> {
    async fn show(mut self, at_once: &Semaphore, until: Instant) -> Result<Shown, String> {
        self.open().await?;
        let address = self.page.final_url.to_string();
        self.cdp.send("Page.navigate", json!({"url": address})).await?;
        self.settle(at_once, until.min(Instant::now() + PATIENCE)).await?;
        let document = self.cdp.call("DOM.getDocument", json!({"depth": 0})).await?;
        let node = &document["root"]["nodeId"];
        let html = self.cdp.call("DOM.getOuterHTML", json!({"nodeId": node})).await?;
        let html = html["outerHTML"].as_str().ok_or("it has no document")?.to_owned();
        let picture = if self.with_picture { Some(picture(&mut self.cdp, WINDOW).await?) } else { None };
        let most = self.fetcher.policy().max_decoded_bytes;
        let truncated = self.page.truncated || html.len() > most;
        let mut body = html.into_bytes();
        body.truncate(most);
        let content_type = Some("text/html; charset=utf-8".to_owned());
        Ok(Shown { page: Page { content_type, body, truncated, ..self.page }, picture })
    }

    async fn open(&mut self) -> Result<(), String> {
        self.frame = open(&mut self.cdp).await?;
        Ok(())
    }

    /// Makes the page's requests until it makes no more.
    async fn settle(&mut self, at_once: &Semaphore, until: Instant) -> Result<(), String> {
        let mut under_way = FuturesUnordered::new();
        let mut is_loaded = false;
        let mut rests_at = until;
        loop {
            tokio::select! {
                event = self.cdp.event() => {
                    let Event { method, params, .. } = event?;
                    match method.as_str() {
                        "Fetch.requestPaused" => {
                            rests_at = until;
                            if let Some((id, url, is_document)) = self.wanted(&params).await? {
                                let fetcher = self.fetcher;
                                under_way.push(async move {
                                    let _turn = at_once.acquire().await;
                                    // New documents are read like any page (robots.txt applies), other requests are not.
                                    let page = if is_document { fetcher.read(&url).await } else { fetcher.part(&url).await };
                                    (id, page.ok(), is_document)
                                });
                            }
                        }
                        "Page.loadEventFired" => is_loaded = true,
                        "Page.javascriptDialogOpening" => {
                            self.cdp.send("Page.handleJavaScriptDialog", json!({"accept": false})).await?;
                        }
                        "Inspector.targetCrashed" => return Err("the page crashed it".to_owned()),
                        _ => {}
                    }
                }
                Some(made) = under_way.next() => {
                    rests_at = until;
                    self.answer(made).await?;
                }
                () = tokio::time::sleep_until(rests_at) => return Ok(()),
            }
            if is_loaded && under_way.is_empty() && rests_at == until {
                rests_at = until.min(Instant::now() + QUIET);
            }
        }
    }

    /// Decides about an intercepted request. `Some` if it is to be made: its id, its address, and whether it is a
    /// navigation.
    async fn wanted(&mut self, params: &Value) -> Result<Option<(String, String, bool)>, String> {
        let id = params["requestId"].as_str().unwrap_or_default().to_owned();
        let is_get = params["request"]["method"] == "GET";
        let kind = params["resourceType"].as_str().unwrap_or_default();
        // Frames inside the page stay empty.
        let is_document = kind == "Document" && params["frameId"] == self.frame;
        self.asked += 1;
        if is_document && self.documents == 0 {
            self.documents = 1;
            let answer = fulfilment(&id, &self.page);
            self.cdp.send(FULFIL, answer).await?;
            return Ok(None);
        }
        let is_wanted = match kind {
            "Script" | "Stylesheet" | "XHR" | "Fetch" => true,
            "Image" | "Font" => self.with_picture,
            _ => is_document && self.documents < MAX_DOCUMENTS,
        };
        if !(is_get && is_wanted && self.asked <= MAX_REQUESTS && self.brought < MAX_BYTES) {
            if is_document {
                return Err(ASTRAY.to_owned());
            }
            self.refuse(&id).await?;
            return Ok(None);
        }
        self.documents += usize::from(is_document);
        let url = params["request"]["url"].as_str().unwrap_or_default().to_owned();
        Ok(Some((id, url, is_document)))
    }

    async fn answer(&mut self, (id, page, is_document): Made) -> Result<(), String> {
        let Some(page) = page else {
            // Otherwise the browser would show its own error page.
            return if is_document { Err(ASTRAY.to_owned()) } else { self.refuse(&id).await };
        };
        self.brought += page.body.len();
        self.cdp.send(FULFIL, fulfilment(&id, &page)).await?;
        if is_document {
            self.page = page;
        }
        Ok(())
    }

    async fn refuse(&mut self, id: &str) -> Result<(), String> {
        self.cdp.send("Fetch.failRequest", json!({"requestId": id, "errorReason": "BlockedByClient"})).await.map(drop)
    }
}

/// Opens an empty page in its own browser context, which is deleted with the connection. Each of its requests is paused. Returns
/// the id of its main frame.
async fn open(cdp: &mut Cdp) -> Result<Value, String> {
    let alone = json!({"disposeOnDetach": true, "proxyServer": NOWHERE, "proxyBypassList": "<-loopback>"});
    let place = cdp.call("Target.createBrowserContext", alone).await?["browserContextId"].take();
    let no_files = json!({"behavior": "deny", "browserContextId": place});
    cdp.call("Browser.setDownloadBehavior", no_files).await?;
    let (width, height) = WINDOW;
    let blank = json!({"url": "about:blank", "browserContextId": place, "width": width, "height": height});
    // The id of the main frame is the id of its target.
    let frame = cdp.call("Target.createTarget", blank).await?["targetId"].take();
    let attached = cdp.call("Target.attachToTarget", json!({"targetId": frame, "flatten": true})).await?;
    cdp.session = attached["sessionId"].as_str().map(str::to_owned);
    for (method, params) in [
        ("Fetch.enable", json!({"patterns": [{"urlPattern": "*"}]})),
        ("Network.enable", json!({})),
        ("Network.setBypassServiceWorker", json!({"bypass": true})),
        ("Page.enable", json!({})),
        ("Page.addScriptToEvaluateOnNewDocument", json!({"source": SHUT})),
        ("Emulation.setDeviceMetricsOverride", metrics(width, height)),
    ] {
        cdp.call(method, params).await?;
    }
    Ok(frame)
}

/// A PNG of the whole page, down to [`MAX_HEIGHT`].
async fn picture(cdp: &mut Cdp, (width, height): (u32, u32)) -> Result<Vec<u8>, String> {
    let metrics = cdp.call("Page.getLayoutMetrics", json!({})).await?;
    let height = metrics["cssContentSize"]["height"].as_f64().unwrap_or_default().clamp(f64::from(height), MAX_HEIGHT);
    let clip = json!({"x": 0, "y": 0, "width": width, "height": height, "scale": 1});
    let ask = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
    let picture = cdp.call("Page.captureScreenshot", ask).await?;
    picture["data"].as_str().and_then(base64_any).ok_or_else(|| "it returned no screenshot".to_owned())
}

fn metrics(width: u32, height: u32) -> Value {
    json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
}

/// The DevTools answer to an intercepted request.
fn fulfilment(id: &str, page: &Page) -> Value {
    let mut headers = vec![json!({"name": "access-control-allow-origin", "value": "*"})];
    if let Some(kind) = &page.content_type {
        headers.push(json!({"name": "content-type", "value": kind}));
    }
    let body = base64_standard(&page.body);
    json!({"requestId": id, "responseCode": page.status, "responseHeaders": headers, "body": body})
}
