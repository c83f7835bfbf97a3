//! The task that holds the connection: it sends calls, follows events, and makes the pages' requests. It goes on
//! between the acts, so pages stay alive while the caller thinks.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use super::super::cdp::{Cdp, Event, Incoming};
use super::super::{AT_ONCE, SHUT, WINDOW, metrics};
use super::downloads::MadeFile;
use super::shared::{Dialog, Shared, Tab};
use super::traffic::Made;
use super::{CLOSED, MAX_TABS};
use crate::net::Fetcher;

/// Takes away service workers: their requests are not paused, so they could never load. Takes the ways around the proxy
/// from a new tab's first, empty document, which its opener can use before the browser tells of it. Lets files that a
/// page made live for a while after it dropped them, so that they can still be taken.
const CHANGED: &str = "{
  delete Navigator.prototype.serviceWorker;
  const open = globalThis.open, revoke = URL.revokeObjectURL.bind(URL);
  globalThis.open = function() {
    const opened = open.apply(globalThis, arguments);
    try {
      for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebTransport']) delete opened[name];
    } catch {}
    return opened;
  };
  URL.revokeObjectURL = (url) => { setTimeout(revoke, 10000, url); };
}";

/// Where the response to a call goes.
type Answer = oneshot::Sender<Result<Value, String>>;

/// A call of a method.
pub(super) struct Call {
    /// The page; `None` for the browser itself.
    pub session: Option<String>,
    pub method: &'static str,
    pub params: Value,
    pub answer: Answer,
}

pub(super) struct Link {
    pub cdp: Cdp,
    pub fetcher: Arc<Fetcher>,
    pub shared: Arc<Shared>,
    /// Limits the requests that are made at once.
    pub turns: Arc<Semaphore>,
    /// Calls without a response: their page, and who waits.
    pub waiting: HashMap<u64, (Option<String>, Answer)>,
    pub under_way: FuturesUnordered<BoxFuture<'static, Made>>,
}

impl Link {
    pub fn new(cdp: Cdp, fetcher: Arc<Fetcher>, shared: Arc<Shared>) -> Link {
        let (turns, waiting) = (Arc::new(Semaphore::new(AT_ONCE)), HashMap::new());
        Link { cdp, fetcher, shared, turns, waiting, under_way: FuturesUnordered::new() }
    }

    /// Works until the session is dropped or the connection breaks.
    pub async fn run(mut self, mut calls: mpsc::UnboundedReceiver<Call>) {
        if let Err(error) = self.work(&mut calls).await {
            self.shared.state().lost.get_or_insert(error);
        }
    }

    async fn work(&mut self, calls: &mut mpsc::UnboundedReceiver<Call>) -> Result<(), String> {
        loop {
            tokio::select! {
                incoming = self.cdp.read() => match incoming? {
                    Incoming::Answer(id, result) => {
                        if let Some((_, answer)) = self.waiting.remove(&id) {
                            // The caller may have given up.
                            let _ = answer.send(result);
                        }
                    }
                    Incoming::Event(event) => self.follow(event).await?,
                },
                call = calls.recv() => {
                    let Some(Call { session, method, params, answer }) = call else { return Ok(()) };
                    let id = self.cdp.send_to(session.as_deref(), method, params).await?;
                    self.waiting.insert(id, (session, answer));
                }
                Some(made) = self.under_way.next() => self.answer(made).await?,
            }
        }
    }

    /// Calls a method and ignores its response.
    pub async fn tell(&mut self, session: Option<&str>, method: &str, params: Value) -> Result<(), String> {
        self.cdp.send_to(session, method, params).await.map(drop)
    }

    async fn follow(&mut self, event: Event) -> Result<(), String> {
        let Event { session, method, params } = event;
        let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
        let session = session.as_deref().unwrap_or_default();
        match method.as_str() {
            "Fetch.requestPaused" => return self.paused(session, &params).await,
            "Target.attachedToTarget" => return self.attached(&params).await,
            "Target.detachedFromTarget" => {
                let closed = text("sessionId");
                self.shared.state().forget(&closed);
                // What it was doing has no response any more.
                let ended = self.waiting.extract_if(|_, (session, _)| session.as_ref() == Some(&closed));
                for (_, (_, answer)) in ended {
                    let _ = answer.send(Err(CLOSED.to_owned()));
                }
            }
            "Inspector.targetCrashed" => {
                let mut state = self.shared.state();
                if state.tab_of(session).is_some() {
                    return Err("the page crashed".to_owned());
                }
                // A frame in a process of its own: the page around it goes on.
                state.forget(session);
            }
            "Page.javascriptDialogOpening" => {
                let kind = text("type");
                if kind == "beforeunload" {
                    let leave = json!({"accept": true});
                    return self.tell(Some(session), "Page.handleJavaScriptDialog", leave).await;
                }
                let dialog = Dialog { kind, message: text("message"), default: text("defaultPrompt") };
                self.shared.state().set_dialog(session, Some(dialog));
            }
            "Page.javascriptDialogClosed" => {
                let mut state = self.shared.state();
                state.active_at = Some(Instant::now());
                state.set_dialog(session, None);
            }
            "Page.frameStartedLoading" | "Page.frameStoppedLoading" | "Page.frameRequestedNavigation" => {
                let mut state = self.shared.state();
                state.active_at = Some(Instant::now());
                if let Some(tab) = state.tab_of(session).filter(|tab| tab.target == params["frameId"]) {
                    tab.is_loading = method == "Page.frameStartedLoading";
                }
            }
            "Page.frameNavigated" if params["frame"]["parentId"].is_null() => {
                let url = params["frame"]["url"].as_str().unwrap_or_default().to_owned();
                let mut state = self.shared.state();
                if let Some(tab) = state.tab_of(session) {
                    tab.is_new &= url == "about:blank" || url.is_empty();
                }
            }
            "Page.downloadWillBegin" => {
                let (url, name) = (text("url"), text("suggestedFilename"));
                let mut state = self.shared.state();
                if url.starts_with("blob:") || url.starts_with("data:") {
                    state.made.push(MadeFile { session: session.to_owned(), frame: text("frameId"), url, name });
                } else {
                    state.name_download(&url, &name);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes a new page, frame or worker under the session's rules before it runs. Pages of other sessions are let go.
    async fn attached(&mut self, params: &Value) -> Result<(), String> {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let about = &params["targetInfo"];
        let target = about["targetId"].as_str().unwrap_or_default().to_owned();
        let is_page = about["type"] == "page";
        let (is_ours, is_too_many) = {
            let state = self.shared.state();
            (about["browserContextId"] == state.place.as_str(), !state.wants_helper && state.tabs.len() >= MAX_TABS)
        };
        if !is_ours {
            self.tell(Some(&session), "Runtime.runIfWaitingForDebugger", json!({})).await?;
            return self.tell(None, "Target.detachFromTarget", json!({"sessionId": session})).await;
        }
        // All at once: some answer only when the target runs.
        if about["type"] != "worker" {
            self.prepare(&session, is_page).await?;
        }
        self.tell(Some(&session), "Runtime.runIfWaitingForDebugger", json!({})).await?;
        if is_page && is_too_many {
            // Only now, because a page that waits would stop the one that opened it.
            self.shared.state().refuse("GET", "a new tab", "too many tabs are open");
            return self.tell(None, "Target.closeTarget", json!({"targetId": target})).await;
        }
        let mut state = self.shared.state();
        state.active_at = Some(Instant::now());
        if is_page {
            let opener = about["openerId"].as_str().map(str::to_owned);
            let tab = Tab { target, session, opener, is_loading: false, is_new: true, dialog: None };
            if tab.opener.is_none() && std::mem::take(&mut state.wants_helper) {
                state.helper = Some(tab);
            } else {
                state.tabs.push(tab);
                state.current = state.tabs.len() - 1;
            }
        } else if about["type"] == "iframe" {
            state.frames.insert(target, session);
        }
        Ok(())
    }

    async fn prepare(&mut self, session: &str, is_page: bool) -> Result<(), String> {
        let inner = json!([{"type": "iframe"}, {"type": "worker"}, {"exclude": true}]);
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": inner});
        for (method, params) in [
            ("Fetch.enable", json!({"patterns": [{"urlPattern": "*"}]})),
            ("Network.enable", json!({"maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 0})),
            ("Network.setBypassServiceWorker", json!({"bypass": true})),
            ("Inspector.enable", json!({})),
            ("Page.enable", json!({})),
            (
                "Page.addScriptToEvaluateOnNewDocument",
                json!({"source": format!("{SHUT}{CHANGED}"), "runImmediately": true}),
            ),
            // Nobody could answer the dialog for files.
            ("Page.setInterceptFileChooserDialog", json!({"enabled": true})),
            ("Target.setAutoAttach", attach),
        ] {
            self.tell(Some(session), method, params).await?;
        }
        if is_page {
            let (width, height) = WINDOW;
            self.tell(Some(session), "Emulation.setDeviceMetricsOverride", metrics(width, height)).await?;
            self.tell(Some(session), "Emulation.setFocusEmulationEnabled", json!({"enabled": true})).await?;
            self.tell(Some(session), "Page.setPrerenderingAllowed", json!({"isAllowed": false})).await?;
        }
        Ok(())
    }
}
