//! The approver's page: no scripts, nothing loaded from elsewhere.
//!
//! An agent's text is untrusted. It is escaped where it is inserted, and the page's content security policy would not run
//! it anyway. Opening the page changes nothing, because mail scanners open links.

use axum::body::Body;
use axum::response::Response;
use base::clock::Timestamp;
use base::digest::sha256;
use base::encoding::base64_standard;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;

use super::approval::{Approval, Asker, Status};
use super::decision::Decision;

/// Most characters of a note.
pub const MAX_NOTE_CHARS: usize = 500;

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
    let title = if asking { "An agent needs your decision" } else { "This question is closed" };
    let (summary, facts) = (format!("<p class=quote>{}</p>", escaped(&approval.action_summary)), facts(approval));
    // The answer comes before the details. Who has to decide first reads what about.
    let main = match asking {
        true => format!("<h1>{title}</h1>{summary}{facts}{}{}", form(approval), preview(approval)),
        false => format!("<h1>{title}</h1>{}{summary}{facts}{}", verdict(approval, now), preview(approval)),
    };
    page(status, service, title, &main)
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
    match &approval.asked_by {
        Some(asker) => row("Wallet", &asker.wallet.to_string()),
        None => row("Agent", &approval.agent_id.to_string()),
    }
    if let Some(Asker { token_id: Some(id), token_name, .. }) = &approval.asked_by {
        row("Access token", token_name.as_deref().unwrap_or(&id.to_string()));
    }
    if let Some(rule) = &approval.policy_rule {
        row("Held by rule", rule);
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
        (None, Status::Cancelled) => "Cancelled by the agent",
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
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("x-robots-tag"), "noindex, nofollow"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Escapes text for HTML elements and quoted attributes. Invisible characters and those that change the text direction are
/// shown as their code points, so that they cannot mislead the approver.
pub fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len() + text.len() / 8);
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            '\n' | '\t' => html.push(letter),
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}' => {
                html.push_str(&format!("[U+{:04X}]", letter as u32));
            }
            letter if letter.is_control() => html.push_str(&format!("[U+{:04X}]", letter as u32)),
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
