//! The mails an agent has received.
//!
//! A function's answer has at most 6 MB, and it is escaped once more on its way to the gateway. So three limits hold:
//! on the list, on the bodies and attachments in it, and on the number of URLs. Together they keep an answer under 4 MB.
//! What does not fit is marked `content_omitted` and has a URL ([`file`]).

use axum::extract::{RawQuery, State};
use axum::response::Response;
use base::encoding::base64_standard;
use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use gate::{links, respond};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use platform::auth::Scope;
use platform::http::{ApiError, Params, Segment, private_json};
use platform::store::{Blobs, StoreError};
use serde_json::{Map, Value, json};
use tools_email::file_link::{self, FileLink, Part};
use tools_email::mailbox::{self, Body, Inbound, StoredAttachment};
use uuid::Uuid;

use crate::page::{self, Page};
use crate::{Messaging, email_not_found};

/// Largest list without bodies and attachments, in bytes as they are sent. A page ends there.
const MAX_LIST_BYTES: usize = 1024 * 1024;
/// Most bytes of bodies and attachments in an answer.
const MAX_CONTENT_BYTES: usize = 5 * 512 * 1024;
/// Most attachments in an answer, and most URLs of what is not in it.
const MAX_CONTENTS: usize = 100;
const MAX_URLS: usize = 150;
/// Blobs that are read at the same time.
const AT_ONCE: usize = 8;

/// `GET /v1/tools/inbox`: newest first.
pub async fn list(State(state): State<Messaging>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        let Page { since, limit, before } = Page::of(&mut params)?;
        let with_bodies = params.flag("include_body").unwrap_or(false);
        params.check()?;
        let app = state.app();
        let caller = app.caller(&headers, Scope::Read).await?;
        let (mut mails, has_more) = mailbox::inbox(&app.db, caller.agent, since, before, limit).await?;
        let now = app.clock.now();
        let mut has_more = page::leave_out_expired(&mut mails, has_more, |mail| mail.is_expired(now));
        let mut emails: Vec<Value> = mails.iter().map(view).collect();
        let fits = fitting(&emails);
        if fits < emails.len() {
            emails.truncate(fits);
            mails.truncate(fits);
            has_more = true;
        }
        if with_bodies {
            add_contents(&state, &headers, &mails, &mut emails).await?;
        }
        let next = mails.last().filter(|_| has_more).map(|last| last.id);
        page::answer(&state, &caller, "emails", emails, next).await
    };
    respond(answer.await)
}

/// `GET /v1/tools/inbox/{emailId}`: with its body and attachments.
pub async fn show(State(state): State<Messaging>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let app = state.app();
        let caller = app.caller(&headers, Scope::Read).await?;
        let id = Uuid::try_parse(&id).map_err(|_| email_not_found())?;
        let mail = mailbox::inbound(&app.db, caller.agent, id).await?;
        // An expired row counts as gone. DynamoDB deletes it later.
        let mail = mail.filter(|mail| !mail.is_expired(app.clock.now()));
        let mail = [mail.ok_or_else(email_not_found)?];
        let mut emails = [view(&mail[0])];
        add_contents(&state, &headers, &mail, &mut emails).await?;
        page::counted(&state, &caller, &emails[0]).await
    };
    respond(answer.await)
}

/// `GET /v1/tools/inbox/files/{token}`: a redirect to a part of a mail that was not in an answer. Its size counts for the owner
/// of the mail at each opening.
pub async fn file(State(state): State<Messaging>, Segment(token): Segment) -> Response {
    let answer = async {
        let (app, now) = (state.app(), state.app().clock.now());
        let link = FileLink::read(&state.toolbox().mail_secret, &token, now).ok_or_else(file_not_found)?;
        let mail = mailbox::inbound(&app.db, link.agent, link.mail).await?.filter(|mail| !mail.is_expired(now));
        let file = mail.as_ref().and_then(|mail| link.file(mail)).ok_or_else(file_not_found)?;
        let url = links::to_file(app, link.agent, &file.key, file.content_type, &file.name).await?;
        let url = url.ok_or_else(file_not_found)?;
        let mut response = private_json(StatusCode::TEMPORARY_REDIRECT, &json!({"download_url": url}));
        response.headers_mut().insert(header::LOCATION, HeaderValue::from_str(&url).map_err(StoreError::new)?);
        Ok(response)
    };
    respond(answer.await)
}

fn file_not_found() -> ApiError {
    ApiError::Tool {
        status: StatusCode::NOT_FOUND,
        code: "file_not_found",
        message: "this link has expired, or the file is no longer kept: read the mail again for a new link".to_owned(),
    }
}

/// A mail without its body and without the content of its attachments.
fn view(mail: &Inbound) -> Value {
    let attachments: Vec<Value> = mail.attachments.iter().map(attachment).collect();
    let mut view = json!({
        "id": mail.id,
        "from": mail.from,
        "to": mail.to,
        "subject": mail.subject,
        "received_at": mail.received_at.to_string(),
        "thread_id": mail.thread_id,
        "size": mail.size,
        "attachments": attachments,
    });
    let verdicts = &mail.verdicts;
    let known =
        [("spf", &verdicts.spf), ("dkim", &verdicts.dkim), ("dmarc", &verdicts.dmarc), ("spam", &verdicts.spam)];
    let known: Map<String, Value> =
        known.into_iter().filter_map(|(name, verdict)| Some((name.to_owned(), json!(verdict.as_ref()?)))).collect();
    for (name, value) in [
        ("from_name", mail.from_name.as_ref().map(|name| json!(name))),
        ("from_agent_id", mail.from_agent.map(|agent| json!(agent))),
        ("reply_to", mail.reply_to.as_ref().map(|address| json!(address))),
        ("body_truncated", mail.is_cut.then_some(json!(true))),
        ("message_id", mail.message_id.as_ref().map(|id| json!(id))),
        ("related_outbound_id", mail.in_reply_to_sent.map(|sent| json!(sent))),
        ("verdicts", (!known.is_empty()).then_some(Value::Object(known))),
    ] {
        if let Some(value) = value {
            view[name] = value;
        }
    }
    view
}

fn attachment(stored: &StoredAttachment) -> Value {
    json!({"filename": stored.filename, "content_type": stored.content_type, "size": stored.size})
}

/// Bytes of a JSON text after it was escaped once more.
fn sent_bytes(json: &str) -> usize {
    json.bytes().map(|byte| if matches!(byte, b'"' | b'\\') { 2 } else { 1 }).sum()
}

/// Number of mails whose list stays within its limit; at least one.
fn fitting(emails: &[Value]) -> usize {
    let mut left = MAX_LIST_BYTES;
    let fits = emails.iter().take_while(|email| take(&mut left, sent_bytes(&email.to_string()))).count();
    fits.max(1).min(emails.len())
}

/// Takes `bytes` of what is left, if that much is left.
fn take(left: &mut usize, bytes: usize) -> bool {
    match left.checked_sub(bytes) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}

/// Base64 of this many bytes, in bytes.
fn base64_bytes(bytes: u32) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX).div_ceil(3).saturating_mul(4)
}

/// Adds the bodies, and then the contents of attachments, as far as they fit.
async fn add_contents(
    state: &Messaging,
    headers: &HeaderMap,
    mails: &[Inbound],
    emails: &mut [Value],
) -> Result<(), StoreError> {
    let blobs = &*state.app().blobs;
    let mut urls = MAX_URLS;
    let mut left = MAX_CONTENT_BYTES;
    // A few at a time, because a body may turn out larger than expected.
    for (mails, emails) in mails.chunks(AT_ONCE).zip(emails.chunks_mut(AT_ONCE)) {
        let mut expected = left;
        let reads: Vec<_> =
            mails.iter().map(|mail| load_body(blobs, mail.id, take(&mut expected, body_bytes(mail)))).collect();
        let bodies: Vec<Loaded> = try_join_all(reads).await?;
        for ((mail, email), body) in mails.iter().zip(emails.iter_mut()).zip(bodies) {
            match body {
                Loaded::Body(body) if take(&mut left, sent_body_bytes(&body)) => {
                    email["body"] = Value::String(body.text);
                    if let Some(html) = body.html {
                        email["body_html"] = Value::String(html);
                    }
                }
                // The URL leads to JSON with `text` and `html`.
                Loaded::Body(_) | Loaded::TooLarge => {
                    email["content_omitted"] = json!(true);
                    if take(&mut urls, 1) {
                        email["body_url"] = json!(url_of(state, headers, mail, Part::Body));
                    }
                }
                // Nothing of it is stored any more.
                Loaded::Gone => {}
            }
            if mail.is_cut && take(&mut urls, 1) {
                email["mail_url"] = json!(url_of(state, headers, mail, Part::Whole));
            }
        }
    }
    let mut chosen = Vec::new();
    for (position, mail) in mails.iter().enumerate() {
        for (index, stored) in mail.attachments.iter().enumerate() {
            if chosen.len() < MAX_CONTENTS && take(&mut left, base64_bytes(stored.size)) {
                chosen.push((position, index));
                continue;
            }
            let shown = &mut emails[position]["attachments"][index];
            shown["content_omitted"] = json!(true);
            if let Ok(index) = u16::try_from(index)
                && take(&mut urls, 1)
            {
                shown["url"] = json!(url_of(state, headers, mail, Part::Attachment(index)));
            }
        }
    }
    let reads: Vec<_> = chosen.iter().map(|(position, index)| content(blobs, mails[*position].id, *index)).collect();
    let read: Vec<Option<String>> = stream::iter(reads).buffered(AT_ONCE).try_collect().await?;
    for ((position, index), content) in chosen.into_iter().zip(read) {
        if let Some(content) = content {
            emails[position]["attachments"][index]["content"] = Value::String(content);
        }
    }
    Ok(())
}

/// A body that was asked for.
enum Loaded {
    Body(Body),
    /// It would not fit, so it was not read.
    TooLarge,
    Gone,
}

/// About the bytes of a body, before it is read: the mail without its attachments.
fn body_bytes(mail: &Inbound) -> usize {
    let attached = mail.attachments.iter().map(|stored| base64_bytes(stored.size)).fold(0, usize::saturating_add);
    usize::try_from(mail.size).unwrap_or(usize::MAX).saturating_sub(attached)
}

/// The bytes of a body as they are sent.
fn sent_body_bytes(body: &Body) -> usize {
    let bytes = |text: &str| sent_bytes(&Value::from(text).to_string());
    bytes(&body.text).saturating_add(body.html.as_deref().map_or(0, bytes))
}

async fn load_body(blobs: &dyn Blobs, id: Uuid, fits: bool) -> Result<Loaded, StoreError> {
    if !fits {
        return Ok(Loaded::TooLarge);
    }
    Ok(mailbox::body(blobs, id).await?.map_or(Loaded::Gone, Loaded::Body))
}

/// The URL of a part of a mail that is not in the answer.
fn url_of(state: &Messaging, headers: &HeaderMap, mail: &Inbound, part: Part) -> String {
    let until = state.app().clock.now().plus(file_link::VALID);
    let link = FileLink { agent: mail.agent, mail: mail.id, part, until };
    format!("{}/v1/tools/inbox/files/{}", state.app().origin(headers), link.token(&state.toolbox().mail_secret))
}

/// The content of an attachment in base64; `None` if it is no longer stored.
async fn content(blobs: &dyn Blobs, id: Uuid, index: usize) -> Result<Option<String>, StoreError> {
    Ok(mailbox::attachment(blobs, id, index).await?.map(|bytes| base64_standard(&bytes)))
}
