//! What a session knows of its browser. The connection's task writes it, the session's methods read it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;

use super::downloads::{Download, MadeFile};
use super::rules::{Rules, Typed};
use super::{MAX_NOTES, QUIET};

/// After this time, requests no longer keep a loaded page from resting: some ask for news all the time.
const BUSY: Duration = Duration::from_secs(3);

pub(super) struct Shared {
    pub rules: Rules,
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    /// The id of the browser context.
    pub place: String,
    pub tabs: Vec<Tab>,
    /// Index of the tab that is shown and acted on.
    pub current: usize,
    /// An empty page for storage, which is no tab.
    pub helper: Option<Tab>,
    /// The next page that is opened becomes the helper.
    pub wants_helper: bool,
    /// The sessions of frames that have a process of their own, by the frame's id.
    pub frames: HashMap<String, String>,
    /// Frames that were viewed; the first is named `f1`.
    pub names: Vec<FrameName>,
    pub typed: Typed,
    /// Origins of allowed documents.
    pub origins: BTreeSet<String>,
    pub downloads: Vec<Download>,
    /// Files that pages made themselves, to be taken.
    pub made: Vec<MadeFile>,
    pub refused: Vec<String>,
    /// Number of requests on their way.
    pub under_way: usize,
    /// When something last happened.
    pub active_at: Option<Instant>,
    /// When the current wait for rest began.
    pub waits_since: Option<Instant>,
    /// Requests, bytes and documents so far.
    pub asked: usize,
    pub brought: usize,
    pub documents: usize,
    /// Why the session is over.
    pub lost: Option<String>,
}

/// A page with a window of its own.
#[derive(Clone)]
pub(super) struct Tab {
    /// The id of its target, which is also that of its main frame.
    pub target: String,
    pub session: String,
    pub opener: Option<String>,
    pub is_loading: bool,
    /// No document was shown in it.
    pub is_new: bool,
    pub dialog: Option<Dialog>,
}

#[derive(Clone)]
pub(super) struct Dialog {
    /// `alert`, `confirm` or `prompt`.
    pub kind: String,
    pub message: String,
    pub default: String,
}

/// A frame that was viewed, and where it is.
#[derive(Clone)]
pub(super) struct FrameName {
    pub frame: String,
    pub parent: String,
    /// The id of the frame's element in its parent.
    pub element: String,
}

impl Dialog {
    pub fn to_json(&self) -> Value {
        json!({"kind": self.kind, "message": self.message, "default": self.default})
    }
}

impl Shared {
    pub fn new(rules: Rules) -> Shared {
        Shared { rules, state: Mutex::default() }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    pub fn tab(&self) -> Option<&Tab> {
        self.tabs.get(self.current)
    }

    pub fn tab_of(&mut self, session: &str) -> Option<&mut Tab> {
        self.tabs.iter_mut().find(|tab| tab.session == session)
    }

    /// A frame in another process reports its dialog itself; it blocks the tab that is shown.
    pub fn set_dialog(&mut self, session: &str, dialog: Option<Dialog>) {
        let at = self.tabs.iter().position(|tab| tab.session == session).unwrap_or(self.current);
        if let Some(tab) = self.tabs.get_mut(at) {
            tab.dialog = dialog;
        }
    }

    /// The session that a frame is reached over. `parent`: the session of the frame around it.
    pub fn session_of(&self, frame: &str, parent: &str) -> String {
        self.frames.get(frame).map_or(parent, String::as_str).to_owned()
    }

    /// Whether it is the session of a tab, a frame or the helper.
    pub fn knows(&self, session: &str) -> bool {
        let mut pages = self.tabs.iter().chain(&self.helper);
        pages.any(|tab| tab.session == session) || self.frames.values().any(|known| known == session)
    }

    /// Notes a request that was not made, for the caller.
    pub fn refuse(&mut self, method: &str, url: &str, why: &str) {
        if self.refused.len() < MAX_NOTES {
            let url: String = url.chars().take(200).collect();
            self.refused.push(format!("{method} {url}: {why}"));
        }
    }

    pub fn note_origin(&mut self, url: &Url) {
        self.origins.insert(url.origin().ascii_serialization());
    }

    /// Forgets a page or frame that was closed. The tab that opened a closed one is shown again.
    pub fn forget(&mut self, session: &str) {
        self.frames.retain(|_, known| known != session);
        if self.helper.as_ref().is_some_and(|helper| helper.session == session) {
            self.helper = None;
        }
        let Some(at) = self.tabs.iter().position(|tab| tab.session == session) else { return };
        let shown = self.tab().map(|tab| tab.target.clone());
        let closed = self.tabs.remove(at);
        let next = if shown.as_ref() == Some(&closed.target) { closed.opener } else { shown };
        let next = next.and_then(|next| self.tabs.iter().position(|tab| tab.target == next));
        self.current = next.unwrap_or_else(|| self.tabs.len().saturating_sub(1));
        if self.tabs.is_empty() {
            self.lost.get_or_insert_with(|| "its last page was closed".to_owned());
        }
    }

    /// Whether the shown tab has loaded, or waits for an answer, and nothing happened for a while.
    pub fn is_resting(&self) -> bool {
        let Some(tab) = self.tab() else { return true };
        let is_quiet = self.under_way == 0 && self.active_at.is_none_or(|at| at.elapsed() >= QUIET);
        let is_busy = self.waits_since.is_some_and(|since| since.elapsed() >= BUSY);
        self.lost.is_some() || tab.dialog.is_some() || (!tab.is_loading && (is_quiet || is_busy))
    }
}
