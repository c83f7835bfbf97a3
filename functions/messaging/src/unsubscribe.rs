//! Unsubscribing from an agent's mails, by the link that bulk mails carry (RFC 8058).
//!
//! The token names agent and address, and is signed. Opening the page changes nothing, because mail scanners open
//! links. Requests are not counted: a token cannot be guessed, and each one causes one write at most.

use std::borrow::Cow;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use base::ids::AgentId;
use gate::approvals::page::{self, escaped};
use http::{HeaderValue, StatusCode, header};
use platform::http::{Segment, log, read_body};
use platform::store::StoreError;
use tools_email::address::Address;
use tools_email::suppression::{self, Why};

use crate::Messaging;

/// Limit of the form in bytes. Mail services send it as `multipart/form-data` too.
const MAX_FORM_BYTES: usize = 16 * 1024;

/// `GET /v1/tools/email/unsubscribe/{token}`: a page with a button. Changes nothing.
pub async fn show(State(state): State<Messaging>, Segment(token): Segment) -> Response {
    let Some((_, address)) = state.subscription(&token) else { return state.no_such_link() };
    let main = format!(
        "<h1>Unsubscribe</h1><p>You will get no more mail from this sender at <b>{}</b>.</p>\
         <form method=post><button class=yes name=List-Unsubscribe value=One-Click>Unsubscribe</button></form>",
        escaped(address.as_str())
    );
    page::page(StatusCode::OK, state.service(), "Unsubscribe", &main)
}

/// `POST /v1/tools/email/unsubscribe/{token}`: by the page's button, or by a mail service.
pub async fn unsubscribe(State(state): State<Messaging>, Segment(token): Segment, body: Body) -> Response {
    let Some((agent, address)) = state.subscription(&token) else { return state.no_such_link() };
    if !read_body(body, MAX_FORM_BYTES).await.is_ok_and(|body| is_one_click(&body)) {
        let text = "The form must contain List-Unsubscribe=One-Click.";
        return page::say(StatusCode::BAD_REQUEST, state.service(), "This request could not be read", text);
    }
    match state.suppress(agent, &address).await {
        Ok(()) => {
            let text = format!("There will be no more mail from this sender to {}.", address.as_str());
            page::say(StatusCode::OK, state.service(), "You are unsubscribed", &text)
        }
        Err(error) => {
            log::failure("dependency unavailable", &error);
            let text = "You are not unsubscribed yet. Try again shortly.";
            let mut page = page::say(StatusCode::SERVICE_UNAVAILABLE, state.service(), "Not now", text);
            page.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
            page
        }
    }
}

impl Messaging {
    fn subscription(&self, token: &str) -> Option<(AgentId, Address)> {
        suppression::read_unsubscribe(&self.toolbox().mail_secret, token)
    }

    async fn suppress(&self, agent: AgentId, address: &Address) -> Result<(), StoreError> {
        let app = self.app();
        if matches!(suppression::reason(&app.db, address, agent, app.clock.now()).await?, Some(Why::Unsubscribed)) {
            return Ok(());
        }
        suppression::suppress(&app.db, address.as_str(), Some(agent), Why::Unsubscribed, app.clock.now()).await
    }

    fn service(&self) -> &str {
        &self.app().config.service_name
    }

    fn no_such_link(&self) -> Response {
        let text = "The link is incomplete. Open it from the mail again.";
        page::say(StatusCode::NOT_FOUND, self.service(), "This link does not work", text)
    }
}

/// Whether a form says `List-Unsubscribe=One-Click`, URL-encoded or as `multipart/form-data`.
fn is_one_click(body: &[u8]) -> bool {
    let is_pair = |(name, value): (Cow<'_, str>, Cow<'_, str>)| {
        name.eq_ignore_ascii_case("list-unsubscribe") && value.trim().eq_ignore_ascii_case("one-click")
    };
    if url::form_urlencoded::parse(body).any(is_pair) {
        return true;
    }
    let text = String::from_utf8_lossy(body).to_ascii_lowercase();
    text.contains("name=\"list-unsubscribe\"") && text.lines().any(|line| line.trim() == "one-click")
}
