//! Each request of a session's pages is paused, judged, and made by the guarded client, or refused.

use std::sync::Arc;

use base::encoding::{base64_any, base64_standard};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use url::Url;

use super::super::FULFIL;
use super::downloads::is_file;
use super::link::Link;
use super::rules::Wanted;
use super::{MAX_BYTES, MAX_DOCUMENTS, MAX_REQUESTS};
use crate::net::{Exchanged, FetchError};

/// A paused request.
#[derive(Clone)]
pub(super) struct Paused {
    session: String,
    /// Its id in the browser.
    id: String,
    method: String,
    url: Url,
    /// It brings a document, for a tab or a frame.
    is_document: bool,
    /// It changes what a tab shows.
    is_navigation: bool,
    /// A link asks for a file.
    is_file: bool,
    is_allowed: bool,
}

/// A request that was made, and its response.
pub(super) type Made = (Paused, Result<Exchanged, FetchError>);

impl Link {
    /// Decides about a request, and begins it.
    pub async fn paused(&mut self, session: &str, params: &Value) -> Result<(), String> {
        let request = &params["request"];
        let id = params["requestId"].as_str().unwrap_or_default().to_owned();
        let address = request["url"].as_str().unwrap_or_default();
        let method = request["method"].as_str().unwrap_or_default().to_owned();
        let Ok(mut url) = Url::parse(address) else { return self.fail(session, &id, false).await };
        if matches!(url.scheme(), "data" | "blob") {
            // These hold their content themselves.
            return self.tell(Some(session), "Fetch.continueRequest", json!({"requestId": id})).await;
        }
        url.set_fragment(None);
        if !self.shared.state().knows(session) {
            // A tab that is being closed, because there are too many.
            return self.fail(session, &id, true).await;
        }
        let kind = params["resourceType"].as_str().unwrap_or_default();
        let is_document = kind == "Document";
        let is_file = is_document && params["networkId"].is_null();
        let (decided, is_navigation, is_helper) = {
            let mut state = self.shared.state();
            state.active_at = Some(Instant::now());
            let frame = &params["frameId"];
            let is_helper = state.helper.as_ref().is_some_and(|helper| *frame == helper.target.as_str());
            let is_tab = state.tabs.iter().any(|tab| *frame == tab.target.as_str());
            let is_navigation = is_document && is_tab && !is_file;
            let none = Map::new();
            let body = body_of(request);
            let wanted = Wanted {
                method: &method,
                url: &url,
                headers: request["headers"].as_object().unwrap_or(&none),
                has_body: body.as_ref().is_none_or(|body| !body.is_empty()),
                is_navigation,
            };
            state.asked += 1;
            state.documents += usize::from(is_document);
            let is_beyond = state.asked > MAX_REQUESTS || state.brought > MAX_BYTES || state.documents > MAX_DOCUMENTS;
            let decided = match body {
                _ if is_beyond => Err("the session has made too many requests"),
                // Its response never ends.
                _ if kind == "EventSource" => Err("streams of events are not read"),
                None => Err("its body cannot be read"),
                Some(body) => self.shared.rules.judge(&wanted, &state.typed).map(|headers| (headers, body)),
            };
            if let (Err(why), false) = (&decided, is_helper) {
                state.refuse(&method, url.as_str(), why);
            }
            (decided, is_navigation, is_helper)
        };
        if is_helper {
            let empty = json!([{"name": "content-type", "value": "text/html"}]);
            let answer = json!({"requestId": id, "responseCode": 200, "responseHeaders": empty, "body": ""});
            return match is_document {
                true => self.tell(Some(session), FULFIL, answer).await,
                false => self.fail(session, &id, false).await,
            };
        }
        let Ok((headers, body)) = decided else {
            self.fail(session, &id, is_navigation).await?;
            return if is_navigation { self.close_if_new(session).await } else { Ok(()) };
        };
        let is_allowed = self.shared.rules.allows(&url);
        self.shared.state().under_way += 1;
        let session = session.to_owned();
        let paused = Paused { session, id, method, url, is_document, is_navigation, is_file, is_allowed };
        let (fetcher, turns) = (Arc::clone(&self.fetcher), Arc::clone(&self.turns));
        self.under_way.push(Box::pin(async move {
            let _turn = turns.acquire().await;
            let made = fetcher.exchange(&paused.method, paused.url.as_str(), &headers, body).await;
            (paused, made)
        }));
        Ok(())
    }

    /// Gives the browser the response to a request, or keeps it as a file.
    pub async fn answer(&mut self, (paused, made): Made) -> Result<(), String> {
        let Paused { session, id, url, .. } = &paused;
        {
            let mut state = self.shared.state();
            state.active_at = Some(Instant::now());
            state.under_way = state.under_way.saturating_sub(1);
            match &made {
                Ok(answer) => state.brought += answer.body.len(),
                Err(error) => state.refuse(&paused.method, url.as_str(), &error.to_string()),
            }
            if paused.is_navigation && paused.is_allowed {
                state.note_origin(url);
            }
        }
        let Ok(answer) = made else {
            self.fail(session, id, paused.is_navigation).await?;
            return if paused.is_navigation { self.close_if_new(session).await } else { Ok(()) };
        };
        if paused.is_file && (200..300).contains(&answer.status) {
            // The browser begins its download with the name that the link gives, and drops it.
            let fulfilment = fulfilment(id, &answer, b"", paused.is_allowed);
            self.shared.state().keep(url, answer);
            return self.tell(Some(session), FULFIL, fulfilment).await;
        }
        if paused.is_document && is_file(&answer) {
            self.shared.state().keep(url, answer);
            self.fail(session, id, true).await?;
            return self.close_if_new(session).await;
        }
        if paused.is_navigation && !matches!(answer.status, 204 | 205 | 300..400) {
            // A new tab does not tell that it begins to load, only that it has loaded.
            let mut state = self.shared.state();
            state.tab_of(session).into_iter().for_each(|tab| tab.is_loading = true);
        }
        let fulfilment = fulfilment(id, &answer, &answer.body, paused.is_allowed);
        self.tell(Some(session), FULFIL, fulfilment).await
    }

    /// `is_navigation`: the page stays as it is, instead of showing an error.
    async fn fail(&mut self, session: &str, id: &str, is_navigation: bool) -> Result<(), String> {
        let why = if is_navigation { "Aborted" } else { "BlockedByClient" };
        self.tell(Some(session), "Fetch.failRequest", json!({"requestId": id, "errorReason": why})).await
    }

    /// Closes a tab that was opened for a page that is not shown.
    async fn close_if_new(&mut self, session: &str) -> Result<(), String> {
        let target = {
            let mut state = self.shared.state();
            let is_last = state.tabs.len() < 2;
            let tab = state.tab_of(session).filter(|tab| tab.is_new && tab.opener.is_some() && !is_last);
            tab.map(|tab| tab.target.clone())
        };
        match target {
            Some(target) => self.tell(None, "Target.closeTarget", json!({"targetId": target})).await,
            None => Ok(()),
        }
    }
}

/// The body of a request, `None` if the browser does not give it: it is a stream, or too large.
fn body_of(request: &Value) -> Option<Vec<u8>> {
    if request["hasPostData"] != true {
        return Some(Vec::new());
    }
    let mut body = Vec::new();
    for entry in request["postDataEntries"].as_array()? {
        body.extend(base64_any(entry["bytes"].as_str()?)?);
    }
    Some(body)
}

/// The DevTools answer to a paused request: the response as it came. Hosts outside the allowed domains set no cookies.
fn fulfilment(id: &str, answer: &Exchanged, body: &[u8], is_allowed: bool) -> Value {
    let headers = answer.headers.iter().filter(|(name, _)| is_allowed || name != "set-cookie");
    let headers: Vec<_> = headers.map(|(name, value)| json!({"name": name, "value": value})).collect();
    json!({
        "requestId": id, "responseCode": answer.status, "responseHeaders": headers, "body": base64_standard(body),
    })
}
