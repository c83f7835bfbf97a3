//! Showing a site that is not published yet: its pages are given to the browser from memory, at a host that does not exist, and
//! measured by a script.

use std::time::Duration;

use base::encoding::base64_standard;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout_at};
use url::Url;

use super::cdp::{Cdp, Event, MAX_MESSAGE};
use super::{Browser, BrowserError, FULFIL, metrics, open, picture};
use crate::config::Redacted;

/// Where the site seems to be.
const ORIGIN: &str = "https://site.invalid";
/// Height of the window, in CSS pixels.
const HEIGHT: u32 = 800;
/// A loaded page is measured when it has made no request for this long: fonts are asked for late.
const QUIET: Duration = Duration::from_millis(80);
/// Most messages that are kept of a page.
const MAX_ERRORS: usize = 20;

/// A file of the site.
pub struct SiteFile<'a> {
    pub content_type: &'a str,
    pub bytes: &'a [u8],
}

/// The files of a site, by the path of their address, such as `/` or `/style.css`.
pub type SiteFiles<'a> = dyn Fn(&str) -> Option<SiteFile<'a>> + Sync + 'a;

/// A page to look at.
#[derive(Clone, Debug)]
pub struct SiteView {
    pub path: String,
    /// Width of the window, in CSS pixels.
    pub width: u32,
    pub is_dark: bool,
    pub with_picture: bool,
}

/// What was seen of a page.
#[derive(Clone, Debug)]
pub struct Viewed {
    pub view: SiteView,
    /// The value of the script.
    pub measured: Value,
    /// Addresses that the page asked for and that are no files of the site, and errors that the browser logged.
    pub errors: Vec<String>,
    /// PNG
    pub picture: Option<Vec<u8>>,
}

impl Browser {
    /// Shows pages of a site one after the other, and evaluates `script` in each when it has loaded. `policy`: the
    /// `Content-Security-Policy` that pages are served with.
    ///
    /// # Errors
    /// If the browser cannot be reached, breaks off, or has not finished at `until`.
    pub async fn view_site<'a>(
        &self,
        key: Option<Redacted>,
        files: &'a SiteFiles<'a>,
        policy: &'a str,
        views: &[SiteView],
        script: &str,
        until: Instant,
    ) -> Result<Vec<Viewed>, BrowserError> {
        let viewed = timeout_at(until, async {
            let address = self.address(key.as_ref().map_or("", Redacted::expose)).await?;
            let mut cdp = Cdp::open(&address, MAX_MESSAGE).await?;
            open(&mut cdp).await?;
            cdp.call("Log.enable", json!({})).await?;
            let mut window = Window { cdp, files, policy, errors: Vec::new() };
            let mut viewed = Vec::with_capacity(views.len());
            for view in views {
                viewed.push(window.view(view, script, until).await?);
            }
            Ok(viewed)
        });
        viewed.await.unwrap_or_else(|_| Err("it did not finish in time".to_owned())).map_err(BrowserError)
    }
}

struct Window<'a> {
    cdp: Cdp,
    files: &'a SiteFiles<'a>,
    policy: &'a str,
    errors: Vec<String>,
}

impl Window<'_> {
    async fn view(&mut self, view: &SiteView, script: &str, until: Instant) -> Result<Viewed, String> {
        self.errors.clear();
        self.cdp.call("Emulation.setDeviceMetricsOverride", metrics(view.width, HEIGHT)).await?;
        let scheme = if view.is_dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.cdp.call("Emulation.setEmulatedMedia", features).await?;
        self.cdp.send("Page.navigate", json!({"url": format!("{ORIGIN}{}", view.path)})).await?;
        self.settle(until).await?;
        let evaluated = self.cdp.call("Runtime.evaluate", json!({"expression": script, "returnByValue": true})).await?;
        if !evaluated["exceptionDetails"].is_null() {
            return Err("a page could not be measured".to_owned());
        }
        let measured = evaluated["result"]["value"].clone();
        let picture = match view.with_picture {
            true => Some(picture(&mut self.cdp, (view.width, HEIGHT)).await?),
            false => None,
        };
        Ok(Viewed { view: view.clone(), measured, errors: std::mem::take(&mut self.errors), picture })
    }

    /// Answers the page's requests until it has loaded and makes no more.
    async fn settle(&mut self, until: Instant) -> Result<(), String> {
        let (mut is_loaded, mut rests_at) = (false, until);
        loop {
            tokio::select! {
                event = self.cdp.event() => {
                    let Event { method, params, .. } = event?;
                    match method.as_str() {
                        "Fetch.requestPaused" => self.answer(&params).await?,
                        "Page.loadEventFired" => is_loaded = true,
                        "Log.entryAdded" if params["entry"]["level"] == "error" => {
                            self.note(params["entry"]["text"].as_str().unwrap_or_default());
                        }
                        "Inspector.targetCrashed" => return Err("the page crashed it".to_owned()),
                        _ => {}
                    }
                }
                () = sleep_until(rests_at) => return Ok(()),
            }
            if is_loaded {
                rests_at = until.min(Instant::now() + QUIET);
            }
        }
    }

    async fn answer(&mut self, params: &Value) -> Result<(), String> {
        let (id, url) = (&params["requestId"], params["request"]["url"].as_str().unwrap_or_default());
        let path = Url::parse(url).ok().filter(|_| url.starts_with(ORIGIN)).map(|url| url.path().to_owned());
        let answer = match path.as_deref().and_then(self.files) {
            Some(file) => json!({
                "requestId": id,
                "responseCode": 200,
                "responseHeaders": [
                    {"name": "content-type", "value": file.content_type},
                    {"name": "content-security-policy", "value": self.policy},
                ],
                "body": base64_standard(file.bytes),
            }),
            None => {
                self.note(&format!("{url} is no file of the site"));
                let refused = json!({"requestId": id, "errorReason": "BlockedByClient"});
                return self.cdp.send("Fetch.failRequest", refused).await.map(drop);
            }
        };
        self.cdp.send(FULFIL, answer).await.map(drop)
    }

    fn note(&mut self, error: &str) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error.chars().take(300).collect());
        }
    }
}
