//! The approver's page: no scripts, nothing loaded from elsewhere.
//!
//! An agent's text is untrusted. It is escaped where it is inserted, and the page's content security policy would not run
//! it anyway. Opening the page changes nothing, because mail scanners open links.

use axum::body::Body;
use axum::response::Response;
use base::clock::Timestamp;
use base::digest::sha256;
use base::encoding::base64_standard;
use base::untrusted_text::with_code_points;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;

use super::approval::{Approval, Asker, Status};
use super::decision::Decision;

/// Most characters of a note.
pub const MAX_NOTE_CHARS: usize = 500;

const NOT_ASKED: &str = "You are no longer asked";

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:0 auto;padding:1.5rem 1rem;overflow-wrap:anywhere}\
h1{font-size:1.4rem;line-height:1.25}\
.quote{border-left:.25rem solid #888;padding:.25rem 0 .25rem .75rem;white-space:pre-wrap}\
pre{border:1px solid #888;border-radius:.4rem;padding:.75rem;white-space:pre-wrap;max-height:28rem;overflow:auto;font-size:.85rem}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}dt{opacity:.7}dd{margin:0}\
textarea{box-sizing:border-box;width:100%;font:inherit;padding:.5rem}\
button{font:inherit;font-weight:600;padding:.75rem 1.5rem;margin:.75rem .75rem 0 0;border-radius:.5rem;border:2px solid;cursor:pointer}\
.yes{background:#0a6b2d;border-color:#0a6b2d;color:#fff}.no{background:none;color:inherit}\
.verdict{font-size:1.15rem;font-weight:600}small{opacity:.7}";

/// The page of an approval: a form while it is pending, afterwards the decision.
pub fn show(approval: &Approval, service: &str, now: Timestamp, status: StatusCode) -> Response {
    let asking = approval.status_at(now) == Status::Pending;
    let title = title(approval, now);
    let summary = format!("<p class=quote>{}</p>", escaped(&approval.action_summary));
    // Who has to decide reads all of it before the buttons. A decision comes before the details.
    let (before, after) = match asking {
        true => (String::new(), form(approval)),
        false => (verdict(approval, now), String::new()),
    };
    let main = format!("<h1>{title}</h1>{before}{summary}{}{}{after}", facts(approval), preview(approval));
    page(status, service, title, &main)
}

/// The page of a link whose approver the policy no longer names.
pub fn no_longer_asked(status: StatusCode, service: &str) -> Response {
    let text = "The owner's policy no longer names you for this call. Nothing was decided.";
    say(status, service, NOT_ASKED, text)
}

fn title(approval: &Approval, now: Timestamp) -> &'static str {
    let decided = approval.decision_receipt.as_ref().map(|receipt| receipt.decision);
    match (decided, approval.status_at(now)) {
        (Some(Decision::Approved), _) => "You approved this",
        (Some(Decision::Denied), _) => "You denied this",
        (None, Status::Pending) => "An agent needs your decision",
        (None, Status::Cancelled) => NOT_ASKED,
        (None, _) => "The time to answer is over",
    }
}

/// A page with a title and a text only.
pub fn say(status: StatusCode, service: &str, title: &str, text: &str) -> Response {
    page(status, service, title, &format!("<h1>{}</h1><p>{}</p>", escaped(title), escaped(text)))
}

/// Who asks, for what, until when.
fn facts(approval: &Approval) -> String {
    let mut rows = String::new();
    let mut row = |name: &str, value: &str| {
        rows.push_str(&format!("<dt>{name}</dt><dd>{}</dd>", escaped(value)));
    };
    if let Some(tool) = &approval.tool {
        row("Tool", tool);
    }
    if let Some(amount) = approval.amount {
        row("Price", &format!("{amount} USDC"));
    }
    if let Some(offer) = &approval.offer {
        row("Offer", offer);
    }
    match &approval.asked_by {
        Some(asker) => row("Wallet", &asker.wallet.to_string()),
        None => row("Agent", &approval.agent_id.to_string()),
    }
    if let Some(Asker { token_id: Some(id), token_name, .. }) = &approval.asked_by {
        row("Access token", token_name.as_deref().unwrap_or(&id.to_string()));
    }
    if let Some(rule) = &approval.policy_rule {
        let says = approval.rule_says.as_ref().map(|says| format!("{says} ({rule})"));
        row("Held by rule", says.as_deref().unwrap_or(rule));
    }
    row("Asked at", &approval.told(approval.created_at));
    row("Answer until", &approval.told(approval.expires_at));
    format!("<dl>{rows}</dl>")
}

/// The action in full, as far as it is stored.
fn preview(approval: &Approval) -> String {
    let shown = approval.shown().map(|shown| {
        let value: Value = serde_json::from_str(shown).unwrap_or_default();
        let pretty = serde_json::to_string_pretty(&value).unwrap_or_default();
        let says = if approval.cut && approval.whole.is_none() {
            "The content is too long to show in full. This is its beginning:"
        } else {
            "This is exactly what you decide on:"
        };
        format!("<p>{says}</p><pre>{}</pre>", escaped(&pretty))
    });
    shown.unwrap_or_default()
}

fn form(approval: &Approval) -> String {
    let effect = match approval.use_by_if_approved(approval.created_at) {
        Some(_) => "If you approve, the agent may make exactly this call, once. ",
        None => "The agent is told your answer. ",
    };
    format!(
        "<form method=post><p><label for=note>A note for the agent and the record (optional)</label>\
         <textarea id=note name=note rows=3 maxlength={MAX_NOTE_CHARS}></textarea></p>\
         <button class=yes name=decision value=approve>Approve</button>\
         <button class=no name=decision value=deny>Deny</button></form>\
         <p><small>{effect}If you do nothing, the answer is no.</small></p>"
    )
}

fn verdict(approval: &Approval, now: Timestamp) -> String {
    let decided = approval.decision_receipt.as_ref().map(|receipt| receipt.decision);
    let text = match (decided, approval.status_at(now)) {
        (Some(Decision::Approved), _) => "Approved",
        (Some(Decision::Denied), _) => "Denied",
        (None, Status::Cancelled) => "Cancelled, and nothing was decided",
        (None, _) => "Nobody answered in time, so the answer was no",
    };
    let at = approval.decided_at.map(|at| escaped(&format!(": {}", approval.told(at)))).unwrap_or_default();
    let note = approval.decision_note.as_deref().map(|note| format!("<p class=quote>{}</p>", escaped(note)));
    format!("<p class=verdict>{text}{at}.</p>{}", note.unwrap_or_default())
}

/// A page with this HTML, in which all untrusted text must be [`escaped`].
pub fn page(status: StatusCode, service: &str, title: &str, main: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>{title} - {service}</title>\
         <meta name=viewport content=\"width=device-width, initial-scale=1\"><meta name=robots content=noindex>\
         <style>{STYLE}</style></head><body><main>{main}</main><hr><p><small>{service}</small></p></body></html>",
        title = escaped(title),
        service = escaped(service),
    );
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = status;
    // The style is allowed by its digest; everything else is blocked.
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        base64_standard(&sha256(STYLE.as_bytes()))
    );
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        // Others are not told the link. With `no-referrer`, a browser would post the form as a page of nobody's origin.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("x-robots-tag"), "noindex, nofollow"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Escapes text for HTML elements and quoted attributes. Characters that show nothing or change the text direction are shown
/// as their code points, so that they cannot mislead the approver.
pub fn escaped(text: &str) -> String {
    let text = with_code_points(text);
    let mut html = String::with_capacity(text.len() + text.len() / 8);
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            letter => html.push(letter),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_escaped() {
        assert_eq!(
            escaped("<b a=\"1\" c='2'>&\u{202e}\u{0}\n"),
            "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;[U+202E][U+0000]\n"
        );
    }
}
