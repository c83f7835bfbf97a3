//! Sending: one mail to each recipient.
//!
//! The job runs until every recipient has an outcome ([`messages::run`]). A mailbox of this deployment takes a mail whose
//! hand-over was interrupted again, as the same mail. Without rows nothing was sent, and the job fails.
//!
//! The owner's freezes are looked at before each mail. After one, the mails in work are finished, and no other is sent.
//!
//! Attachments given by URL are fetched before the rows are written, and stored, so that all recipients get the same.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base::clock::Timestamp;
use base::encoding::base64_any;
use base::ids::{AgentId, TokenId};
use base::input::{Field, FieldError, Format, Kind};
use base::money::Usdc;
use base::untrusted_text;
use ledger::account;
use ledger::freeze::SERVICE_PAYEE;
use messages::ids::time_of;
use messages::run::{self, HAND_OVER, Medium, SENDING, Sending, Step};
use platform::http::{ApiError, log};
use platform::net::{FetchPolicy, check_url, essence};
use platform::store::{BoxFuture, StoreError};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};
use tools::run::{DEADLINE, Stop};
use tools::spec::{Price, ToolSpec, URI};
use tools::{ErrorCode, Output, Runner, Running, Source, Task, ToolError, Toolbox, Unavailable};
use uuid::Uuid;

use crate::address::Address;
use crate::compose::{self, Attached, Draft};
use crate::dkim::Signer;
use crate::domain;
use crate::identity::{self, May, Proofs};
use crate::mailbox::{self, Sent, Verdicts};
use crate::programs;
use crate::providers::{self, Outgoing};
use crate::quote::{self, Content, FEE, NoContent};
use crate::receive::{self, Delivered, Envelope};
use crate::recipient::{self, MAX_RECIPIENTS, Recipient, State};
use crate::standing::{self, Became};
use crate::stats::{self, Count};
use crate::suppression::{self, Why};
use crate::volume::{Mails, Share};
use crate::{upload, volume};

/// Longest subject, in characters.
pub(crate) const MAX_SUBJECT: usize = 500;
const MAX_ATTACHMENTS: usize = 10;
/// Attachments of a mail together, in bytes.
pub(crate) const MAX_BYTES: usize = 26_214_400;
/// Content in the call itself, in base64 characters. The body's own limit comes first (`gate::LARGEST_BODY_BYTES`).
const MAX_INLINE: usize = 26_214_400;
/// Mails handed over at once, and their raw bytes together: a mail with large attachments needs four times its size.
const AT_ONCE: usize = 8;
const BYTES_AT_ONCE: usize = 48 * 1024 * 1024;

/// Longest fetch of all attachments of a mail.
const FETCHING: Duration = Duration::from_secs(40);
/// Failed recipients named in the result.
const MAX_NAMED: usize = 50;
/// Bounces of one mail that become reports in the sender's mailbox. The job's result names the others.
const MAX_REPORTS: u32 = 5;
/// Recipients named in the sent mail.
const MAX_TO: usize = 10;
/// The source of a mail that stayed in the deployment.
const EMBEDDED: &str = "mailbox";
/// Why recipients get no mail, if their own row does not say.
const TOO_LATE: &str = "the mail could not be handed over in time";
const INTERRUPTED: &str = "the work was interrupted while the mail was handed over; it may have been sent";
const NOT_YOURS: &str = "the sender's address is no longer yours";
const NOT_STORED: &str = "the mail that this one answers is no longer stored";

/// Checked by [`check`], which says what is wrong with an address.
static EMAIL: Format =
    Format { name: Some("email"), pattern: None, matches: |_| true, message: "must be an e-mail address" };

static UUID: Format = Format {
    name: Some("uuid"),
    pattern: None,
    matches: |text| Uuid::try_parse(text).is_ok(),
    message: "must be a UUID",
};

/// Goes into a header beside the address.
static NAME: Format = Format {
    name: None,
    pattern: None,
    matches: |text| is_one_line(text) && !text.contains(['<', '>']),
    message: "must be one line without <, > and invisible characters",
};

static LINE: Format = Format {
    name: None,
    pattern: None,
    matches: is_one_line,
    message: "must be one line without control or invisible characters",
};

/// `type/subtype`, without parameters.
static MEDIA_TYPE: Format = Format {
    name: None,
    pattern: Some("^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$"),
    matches: is_media_type,
    message: "must be a media type such as application/pdf",
};

const ADDRESS: Kind = Kind::Text { min: 3, max: 320, format: Some(&EMAIL) };
const TO: Field = Field::optional(
    "to_address",
    Kind::OneOrMore { of: &ADDRESS, max: MAX_RECIPIENTS },
    "Who gets the mail: an address, or up to 500. Each gets a mail of its own. Needed unless reply_to_email_id is given",
);
const SUBJECT: Field = Field::optional(
    "subject",
    Kind::Text { min: 1, max: MAX_SUBJECT, format: Some(&LINE) },
    "Needed unless reply_to_email_id is given",
);
const BODY: Field = Field::required(
    "body",
    Kind::Text { min: 1, max: 100_000, format: None },
    "The text; HTML if it begins with < and has a closing tag",
);
const FROM: Field = Field::optional(
    "from_address",
    ADDRESS,
    "The sender: an address of yours, a free one on a domain of this service, or one on a domain that you prove to control. \
     Default: the service chooses among your addresses",
);
const FROM_NAME: Field = Field::optional(
    "from_name",
    Kind::Text { min: 1, max: 100, format: Some(&NAME) },
    "Shown with the sender's address",
);
const MODE: Field = Field::optional(
    "mailbox_mode",
    Kind::Choice(&["relay", "mailbox"]),
    "Accepted for compatibility: answers always arrive in your inbox",
);
const REPLY: Field = Field::optional(
    "reply_to_email_id",
    Kind::Text { min: 36, max: 36, format: Some(&UUID) },
    "A mail of your inbox, or one that you sent, that this one answers: recipient, subject and thread follow from it",
);
const ATTACHMENT_FIELDS: &[Field] = &[
    Field::required("filename", Kind::Text { min: 1, max: 255, format: Some(&LINE) }, "Name with extension"),
    Field::optional("content", Kind::Text { min: 1, max: MAX_INLINE, format: None }, "base64; or give url"),
    Field::optional(
        "url",
        Kind::Text { min: 1, max: 2048, format: Some(&URI) },
        "Fetched when the mail is sent, at most 5 MB; or an upload_id of POST /v1/tools/email/uploads; or give content",
    ),
    Field::optional(
        "content_type",
        Kind::Text { min: 3, max: 100, format: Some(&MEDIA_TYPE) },
        "Default: what the URL's server says, or application/octet-stream",
    ),
];
const ATTACHMENT: Kind = Kind::Object { fields: ATTACHMENT_FIELDS, open: false };
const ATTACHMENTS: Field = Field::optional(
    "attachments",
    Kind::List { of: &ATTACHMENT, max: MAX_ATTACHMENTS },
    "At most 25 MB together, of which about 3 MB in `content`. Programs are refused",
);
const QUOTE_ID: Field = Field::optional(
    "quote_id",
    Kind::Text { min: 1, max: 200, format: None },
    "The id of the quote, if it is not in the header X-Quote-ID",
);

/// The fields of a quote; the send adds attachments and quote id.
pub const FIELDS: &[Field] = &[TO, SUBJECT, BODY, FROM, FROM_NAME, MODE, REPLY];

pub static SPEC: ToolSpec = ToolSpec {
    name: "email",
    title: "E-mail",
    summary: "Sends an e-mail to each of up to 500 recipients, from an address of yours; answers arrive in your inbox",
    group: "messaging",
    paths: &["/v1/tools/email/send"],
    price: Price::Asked { usual: FEE, most: Usdc::from_micro(FEE.micro() * MAX_RECIPIENTS as u64) },
    quote_path: Some("/v1/tools/email/quote"),
    quote_ttl: Some(Duration::from_secs(3600)),
    // Not the sender: another one than the quote's has an error of its own.
    quoted_fields: &["to_address", "subject", "body", "reply_to_email_id"],
    judged: &["subject", "body", "from_name", "attachments.filename"],
    keeps_record: true,
    check_quoted: quote::check_send,
    refusals: &[(400, "from_address_mismatch"), (400, "domain_not_owned"), (400, "no_sending_domain")],
    category: "communication",
    deadline: DEADLINE,
    waits_for_hosts: Some(|input| {
        attachments(input).iter().filter_map(|given| given["url"].as_str()).any(|url| !upload::is_named(url))
    }),
    input: &[TO, SUBJECT, BODY, FROM, FROM_NAME, MODE, REPLY, ATTACHMENTS, QUOTE_ID],
    check,
    example: || json!({"to_address": "ada@example.com", "subject": "Hello", "body": "Shall we meet on Monday?"}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

/// One line that shows all of itself.
fn is_one_line(text: &str) -> bool {
    !text.trim().is_empty() && !untrusted_text::hides_something(text, false)
}

fn is_media_type(text: &str) -> bool {
    let is_token = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    text.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

/// Checks that the schema cannot express: each address, each attachment, and that there are recipients.
fn check(input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let to = input.get("to_address").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (index, address) in to.iter().enumerate() {
        if let Err(why) = Address::parse(address.as_str().unwrap_or_default()) {
            let path = if to.len() == 1 { "to_address".to_owned() } else { format!("to_address.{index}") };
            wrong.push(FieldError::new(path, why));
        }
    }
    if let Some(from) = input.get("from_address").and_then(Value::as_str)
        && let Err(why) = Address::parse(from)
    {
        wrong.push(FieldError::new("from_address", why));
    }
    if !input.contains_key("reply_to_email_id") {
        for name in ["to_address", "subject"].into_iter().filter(|name| !input.contains_key(*name)) {
            wrong.push(FieldError::new(name, "is required unless reply_to_email_id is given"));
        }
    }
    if input.get("body").and_then(Value::as_str).is_some_and(|body| body.contains('\0')) {
        wrong.push(FieldError::new("body", "must not contain the character U+0000"));
    }
    check_attachments(attachments(input), policy, &mut wrong);
    wrong
}

pub(crate) fn attachments(input: &Map<String, Value>) -> &[Value] {
    input.get("attachments").and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
}

fn check_attachments(attachments: &[Value], policy: &FetchPolicy, wrong: &mut Vec<FieldError>) {
    let mut bytes = 0usize;
    for (index, attachment) in attachments.iter().enumerate() {
        let mut refuse = |name: &str, why: String| {
            wrong.push(FieldError::new(format!("attachments.{index}.{name}"), why));
        };
        let text = |name: &str| attachment[name].as_str();
        if let Some(why) = bad_name(text("filename").unwrap_or_default()) {
            refuse("filename", why.to_owned());
        }
        match (text("content"), text("url")) {
            (Some(content), None) => match base64_any(content) {
                Some(decoded) => bytes = bytes.saturating_add(decoded.len()),
                None => refuse("content", "must be base64".to_owned()),
            },
            (None, Some(url)) if upload::is_named(url) => match upload::bytes_of(url) {
                Some(size) => bytes = bytes.saturating_add(size),
                None => refuse("url", "is not an upload_id".to_owned()),
            },
            (None, Some(url)) => {
                if let Err(refused) = check_url(url, policy) {
                    refuse("url", refused.to_string());
                }
            }
            _ => refuse("content", "give either content or url".to_owned()),
        }
    }
    if bytes > MAX_BYTES {
        wrong.push(FieldError::new(
            "attachments",
            format!("must have at most {MAX_BYTES} bytes together, have {bytes}"),
        ));
    }
}

/// Why a file name is refused.
fn bad_name(name: &str) -> Option<&'static str> {
    if name.contains(['/', '\\', '"']) || untrusted_text::hides_something(name, false) {
        return Some("must not contain slashes, quotes or invisible characters");
    }
    if name.trim_end_matches(['.', ' ']).is_empty() {
        return Some("must be a file name");
    }
    programs::is_program(name).then_some("is a kind of file that runs when it is opened; mail hosts refuse it")
}

/// The recipients of the input, each once, in their order.
pub(crate) fn recipients(input: &Map<String, Value>) -> Vec<Address> {
    let named = input.get("to_address").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut seen = std::collections::HashSet::new();
    named.filter_map(|text| Address::parse(text).ok()).filter(|address| seen.insert(address.folded())).collect()
}

/// The `Message-ID` of a recipient's mail, without `<>`.
pub(crate) fn message_id(mail: Uuid, index: u32, domain: &str) -> String {
    format!("{mail}.{index}@{domain}")
}

/// The mail and the recipient's index in a message id made by [`message_id`].
pub(crate) fn mail_of_message_id(id: &str) -> Option<(Uuid, u32)> {
    let (local, _) = id.trim_matches(['<', '>', ' ']).split_once('@')?;
    let (mail, index) = local.split_once('.')?;
    Some((Uuid::try_parse(mail).ok()?, index.parse().ok()?))
}

static MEDIUM: Medium<Address> = Medium {
    embedded: EMBEDDED,
    too_late: TOO_LATE,
    interrupted: INTERRUPTED,
    // Reports come for days. A poll shows them.
    reported_within: Duration::ZERO,
    finish: |toolbox, task, rows| Box::pin(close(toolbox, task, rows)),
};

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    let (its_toolbox, its_task) = (toolbox.clone(), task.clone());
    let work = Box::pin(async move {
        let done = work(its_toolbox.clone(), &its_task).await;
        // It may fail before there are rows, and after it has counted them.
        if let Err(Stop::Failed(_)) = &done {
            give_back(&its_toolbox, &its_task, &recipient::all(&its_toolbox.db, its_task.request_id).await?).await?;
        }
        done
    });
    Box::pin(run::run(toolbox, task, work, &MEDIUM))
}

/// What is the same for all recipients.
struct Batch {
    toolbox: Arc<Toolbox>,
    agent: AgentId,
    /// The access token that pays.
    token: Option<TokenId>,
    from: Address,
    from_name: Option<String>,
    body: String,
    content: Content,
    /// The recipients in this deployment, folded.
    local: HashSet<String>,
    attachments: Vec<Attached>,
    mail: Uuid,
    /// When the mail was made, in the first run.
    started: Timestamp,
    /// Only addresses that a mail has reached before get mail now.
    new_are_stopped: bool,
    /// Bounces of this run.
    reports: AtomicU32,
}

async fn work(toolbox: Arc<Toolbox>, task: &Task) -> Result<Output, Stop> {
    let begun = Instant::now();
    let (db, now) = (toolbox.db.clone(), toolbox.clock.now());
    let from = task.locked.get(quote::FROM).and_then(Value::as_str).and_then(|text| Address::parse(text).ok());
    let from = from.ok_or_else(|| ToolError::internal("the stored quote names no sender"))?;
    let mut rows: Vec<Recipient> = recipient::all(&db, task.request_id).await?;
    let is_first = rows.is_empty();
    if !is_first {
        task.reporter.must_end();
    }
    let content = match quote::content(&toolbox, task.agent, &task.input, true).await {
        Ok(content) => content,
        Err(NoContent::Store(error)) => return Err(error.into()),
        // It expired since the first run.
        Err(_) if !is_first => return run::end(&toolbox, task, &rows, Some(NOT_STORED), &MEDIUM).await,
        Err(_) => {
            let message = format!("{NOT_STORED}; nothing was sent");
            return Err(ToolError::unavailable(Unavailable::SourceUnavailable, message).into());
        }
    };
    let mail = match rows.first().and_then(|row| mail_of_message_id(&row.message_id)) {
        Some((mail, _)) => mail,
        None => mailbox::mail_id(now, &[b"sent", task.request_id.bytes()]),
    };
    let mut cannot_go_on = None;
    if is_first {
        own_sender(&toolbox, task, &from, now).await?;
    } else if domain::owner_of(&db, &from).await? != Some(task.agent) {
        // The domain passed on since the first run.
        cannot_go_on = Some(NOT_YOURS.to_owned());
    }
    let mut attachments = Vec::new();
    if cannot_go_on.is_none() {
        let attached = timeout(FETCHING, attached(&toolbox, task, mail)).await;
        match attached.unwrap_or_else(|_| Err(not_served("the attachments took too long").into())) {
            Ok(attached) => attachments = attached,
            Err(Stop::Failed(error)) if !is_first => cannot_go_on = Some(error.message),
            Err(stop) => return Err(stop),
        }
    }
    task.reporter.must_end();
    let local = local(&toolbox, &content.to).await?;
    let domain = from.domain().to_owned();
    let count = u32::try_from(content.to.len()).unwrap_or(u32::MAX);
    let outside =
        u32::try_from(content.to.iter().filter(|to| !local.contains(&to.folded())).count()).unwrap_or(u32::MAX);
    if outside > 0
        && let Some(rates) = standing::stopped(&db, task.agent).await?
    {
        let why = format!("your mail is stopped: {}", rates.told());
        if is_first {
            let message = format!("{why}; nothing was sent; {}", standing::next_step(&toolbox));
            let reason = Some(standing::STOPPED.to_owned());
            return Err(ToolError { code: ErrorCode::ProviderUnavailable, reason, message }.into());
        }
        cannot_go_on = Some(why);
    }
    if is_first {
        let account = account::load(&db, task.agent).await?;
        let share = Share::of(&account, toolbox.config.email.daily_mails);
        let mails =
            Mails { request_id: task.request_id, agent: task.agent, domain: &domain, recipients: count, outside };
        if let Some(full) = volume::reserve(&db, mails, share, now).await? {
            let message = format!("{}; nothing was sent", full.message(&domain, count));
            return Err(ToolError { code: ErrorCode::RateLimited, reason: None, message }.into());
        }
    }
    let batch = Arc::new(Batch {
        agent: task.agent,
        token: task.token,
        from,
        from_name: task.input.get("from_name").and_then(Value::as_str).map(str::to_owned),
        body: task.text("body").to_owned(),
        content,
        local,
        attachments,
        mail,
        started: time_of(mail),
        new_are_stopped: outside > 0 && standing::are_new_stopped(&db, now).await?,
        reports: AtomicU32::new(0),
        toolbox: toolbox.clone(),
    });
    // A process that died may have written some of the rows.
    if rows.len() < batch.content.to.len() && cannot_go_on.is_none() {
        recipient::create_all(&db, batch.rows(task)).await?;
        rows = recipient::all(&db, task.request_id).await?;
    }
    if rows.iter().all(|row| row.state == State::Pending) {
        mailbox::put_sent(&db, &batch.sent(task)).await?;
    }
    let reopened = batch.end_interrupted(&rows, cannot_go_on.is_none()).await?;
    if reopened {
        rows = recipient::all(&db, task.request_id).await?;
    }

    let pending: Vec<Recipient> = rows.iter().filter(|row| row.state == State::Pending).cloned().collect();
    let sent = match &cannot_go_on {
        None => send_all(&batch, pending, begun + SENDING, task, rows.len()).await?,
        Some(_) => Sending::default(),
    };
    if let Some(what) = sent.frozen {
        cannot_go_on = Some(run::frozen_reason(what, "mail"));
    }
    run::after(&toolbox, task, &sent, cannot_go_on.as_deref(), &MEDIUM).await
}

/// The recipients in this deployment, folded. Each run looks anew, because domains change hands.
async fn local(toolbox: &Toolbox, to: &[Address]) -> Result<HashSet<String>, StoreError> {
    let (mut local, mut proofs) = (HashSet::new(), Proofs::new(May::Write));
    for address in to {
        if receive::is_local(toolbox, address, &mut proofs).await? {
            local.insert(address.folded());
        }
    }
    Ok(local)
}

/// Sends the mails of these recipients, and counts them for the sender.
async fn send_all(
    batch: &Arc<Batch>,
    pending: Vec<Recipient>,
    stop: Instant,
    task: &Task,
    in_all: usize,
) -> Result<Sending, StoreError> {
    let its_batch = batch.clone();
    let deliver = move |row: Recipient| -> BoxFuture<'static, Result<Step, StoreError>> {
        let batch = its_batch.clone();
        Box::pin(async move { batch.deliver(&row).await })
    };
    let (sent, failed) = run::each(pending, batch.at_once(), stop, task, in_all, deliver).await;
    batch.count(&sent).await?;
    failed.map_or(Ok(sent), Err)
}

/// Makes the quoted sender the agent's, if it is free; it may have been taken since the quote. A domain whose record the
/// quote has seen becomes the agent's, too.
async fn own_sender(toolbox: &Toolbox, task: &Task, from: &Address, now: Timestamp) -> Result<(), Stop> {
    let db = &toolbox.db;
    domain::ensure_default(db, &toolbox.config, task.agent, now).await?;
    let refuse = |reason: &str, message: String| {
        let reason = Some(reason.to_owned());
        Err(Stop::Failed(ToolError { code: ErrorCode::ProviderUnavailable, reason, message }))
    };
    let is_operators = domain::is_operators(&toolbox.config, from.domain());
    if !is_operators && domain::own_domain(db, from.domain()).await?.is_none_or(|own| own.agent != task.agent) {
        let secret = &toolbox.mail_secret;
        match domain::verify_own(db, &toolbox.dns, secret, task.agent, from.domain(), now).await {
            Ok(true) => {}
            Err(ApiError::Unavailable(error)) => return Err(error.into()),
            Ok(false) => {
                let message = format!("{} is not proven to be yours; nothing was sent", from.domain());
                return refuse("domain_not_owned", message);
            }
            // The agent has too many domains.
            Err(error) => return refuse("domain_not_owned", format!("{}; nothing was sent", error.message())),
        }
    }
    // Its ownership record may be gone since it was proven. What the quote said of the provider is stored.
    if !is_operators
        && let Some(own) = domain::own_domain(db, from.domain()).await?
        && let Some(waiting) = identity::waiting(toolbox, &own, May::Write, now).await?
    {
        let message = format!("{} cannot be sent from: {}; nothing was sent", from.domain(), waiting.why.next_step());
        return refuse(waiting.why.code(), message);
    }
    let is_free = match domain::owner_of(db, from).await? {
        Some(owner) => owner == task.agent,
        None => {
            (!is_operators || quote::is_claimable(from.local(), &toolbox.config.service_name))
                && domain::claim_address(db, task.agent, from, now).await?
        }
    };
    if is_free {
        return Ok(());
    }
    refuse("address_taken", format!("another agent has taken {}; nothing was sent", from.as_str()))
}

/// The host of an attachment did not give it.
fn not_served(why: &str) -> ToolError {
    ToolError::unavailable(Unavailable::DestinationNotReachable, format!("{why}; no further mail was sent"))
}

fn not_fetched(why: &str) -> ToolError {
    ToolError::unavailable(Unavailable::SourceUnavailable, format!("{why}; no further mail was sent"))
}

/// The attachments of the input. Those given by URL are fetched once, and then read from the blob store. An upload never
/// changes.
async fn attached(toolbox: &Toolbox, task: &Task, mail: Uuid) -> Result<Vec<Attached>, Stop> {
    let mut all: Vec<Attached> = Vec::new();
    for (index, given) in attachments(&task.input).iter().enumerate() {
        let text = |name: &str| given[name].as_str();
        let filename = text("filename").unwrap_or_default().to_owned();
        let (of_source, content) = match (text("content"), text("url")) {
            (Some(content), _) => {
                let content = base64_any(content).ok_or_else(|| ToolError::internal("an attachment is not base64"))?;
                (None, content)
            }
            (None, Some(url)) if upload::is_named(url) => {
                let content = upload::content(toolbox, task.agent, url).await?;
                (None, content.ok_or_else(|| not_fetched(&format!("the upload of {filename} is no longer stored")))?)
            }
            (None, Some(url)) => fetched(toolbox, &format!("mail/{mail}/attached-{index}"), url, &filename).await?,
            (None, None) => return Err(ToolError::internal("an attachment is empty").into()),
        };
        let content_type = text("content_type").map(str::to_owned).or(of_source);
        let content_type = content_type.unwrap_or_else(|| "application/octet-stream".to_owned());
        all.push(Attached { filename, content_type, content });
        if all.iter().map(|attached| attached.content.len()).sum::<usize>() > MAX_BYTES {
            return Err(not_fetched("the attachments have more than 25 MB").into());
        }
    }
    Ok(all)
}

/// Content type and content of an attachment at a URL. The blob has the content type in its first line.
async fn fetched(toolbox: &Toolbox, key: &str, url: &str, filename: &str) -> Result<(Option<String>, Vec<u8>), Stop> {
    if let Some(stored) = toolbox.blobs.get(key).await? {
        let end = stored.iter().position(|byte| *byte == b'\n').unwrap_or(stored.len());
        let content_type = String::from_utf8_lossy(&stored[..end]).into_owned();
        let content = stored.get(end + 1..).unwrap_or_default().to_vec();
        return Ok((Some(content_type).filter(|text| !text.is_empty()), content));
    }
    let page = toolbox.fetcher.part(url).await;
    let page = page.map_err(|error| not_served(&format!("the attachment {filename} was not fetched: {error}")))?;
    if page.status != 200 {
        return Err(not_served(&format!("the attachment {filename} was answered with HTTP {}", page.status)).into());
    }
    if page.truncated {
        return Err(not_served(&format!("the attachment {filename} is larger than 5 MB or ended early")).into());
    }
    let content_type =
        page.content_type.as_deref().map(essence).filter(|kind| kind.len() <= 100 && is_media_type(kind));
    let mut stored = content_type.clone().unwrap_or_default().into_bytes();
    stored.push(b'\n');
    stored.extend_from_slice(&page.body);
    toolbox.blobs.put(key, "application/octet-stream", stored).await?;
    Ok((content_type, page.body))
}

impl Batch {
    fn rows(&self, task: &Task) -> Vec<Recipient> {
        let row = |(index, to): (u32, &Address)| Recipient {
            request_id: task.request_id,
            index,
            agent: self.agent,
            sender: self.from.domain().to_owned(),
            to: to.clone(),
            state: State::Pending,
            message_id: message_id(self.mail, index, self.from.domain()),
            provider_message_id: None,
            run: None,
            reason: None,
            opens: 0,
            clicks: 0,
            changed: self.started,
            // Events arrive for a few days after the mail.
            expires: self.started.plus(mailbox::KEPT + Duration::from_secs(7 * 24 * 3600)).secs(),
        };
        (0..).zip(&self.content.to).map(row).collect()
    }

    fn sent(&self, task: &Task) -> Sent {
        let root = message_id(self.mail, 0, self.from.domain());
        Sent {
            id: self.mail,
            agent: self.agent,
            request_id: task.request_id,
            from: self.from.clone(),
            to: self.content.to.iter().take(MAX_TO).cloned().collect(),
            recipients: u32::try_from(self.content.to.len()).unwrap_or(u32::MAX),
            subject: self.content.subject.clone(),
            references: self.content.references.clone(),
            thread_id: self.content.thread.unwrap_or_else(|| mailbox::thread_of(self.agent, &root)),
            sent_at: self.started,
            expires: self.started.plus(mailbox::KEPT).secs(),
        }
    }

    /// Ends the submissions of a run that died. Returns whether some may begin again. `may_repeat`: this run sends mails.
    async fn end_interrupted(&self, rows: &[Recipient], may_repeat: bool) -> Result<bool, StoreError> {
        let (db, now) = (&self.toolbox.db, self.toolbox.clock.now());
        let mut reopened = false;
        for row in rows.iter().filter(|row| row.state == State::Submitting) {
            if may_repeat && self.is_local(row) {
                reopened |= recipient::ended(db, row, State::Pending, None, None, now).await?;
            } else {
                recipient::ended(db, row, State::Ambiguous, None, Some(INTERRUPTED), now).await?;
            }
        }
        Ok(reopened)
    }

    fn is_local(&self, row: &Recipient) -> bool {
        self.local.contains(&row.to.folded())
    }

    /// Adds what this run did to the counts of the sender.
    async fn count(&self, sent: &Sending) -> Result<(), StoreError> {
        let (db, now, domain) = (&self.toolbox.db, self.toolbox.clock.now(), self.from.domain());
        let accepted = sent.accepted + sent.delivered;
        for (what, by) in [(Count::Sent, accepted), (Count::Delivered, sent.delivered), (Count::Bounced, sent.bounced)]
        {
            if by > 0 {
                stats::count(db, self.agent, domain, what, by, now).await?;
            }
        }
        // A relay reports no deliveries: what it took counts as delivered, until it bounces.
        let is_relay = providers::chosen(&self.toolbox.config) == Some(providers::smtp::NAME);
        let good = sent.delivered + if is_relay { sent.accepted } else { 0 };
        if good + sent.bounced > 0 {
            domain::note_result(db, self.agent, domain, good, sent.bounced).await?;
        }
        Ok(())
    }

    /// The mail to one recipient, signed.
    fn written(&self, row: &Recipient) -> Result<Vec<u8>, StoreError> {
        let secret = &self.toolbox.mail_secret;
        // One-click unsubscription (RFC 8058), for mails to several.
        let unsubscribe = (self.content.to.len() > 1).then(|| {
            let origin = self.toolbox.config.base_url.as_deref().filter(|origin| origin.starts_with("https://"))?;
            let token = suppression::unsubscribe_token(secret, self.agent, &row.to);
            Some(format!("{origin}/v1/tools/email/unsubscribe/{token}"))
        });
        let unsubscribe = unsubscribe.flatten();
        let raw = compose::compose(&Draft {
            from: &self.from,
            from_name: self.from_name.as_deref(),
            to: &row.to,
            subject: &self.content.subject,
            body: &self.body,
            message_id: &row.message_id,
            in_reply_to: self.content.in_reply_to.as_deref(),
            references: &self.content.references,
            attachments: &self.attachments,
            unsubscribe: unsubscribe.as_deref(),
            auto_submitted: false,
            agent: Some((&self.toolbox.config.service_name, self.agent)),
            date: self.started,
        });
        Signer::derived(secret, self.from.domain()).sign(&raw)
    }

    /// Mails in work at once.
    fn at_once(&self) -> usize {
        let bytes: usize = self.attachments.iter().map(|attached| attached.content.len()).sum();
        // base64 in the message, and base64 of that for a provider.
        (BYTES_AT_ONCE / (2 * bytes + self.body.len() + 1)).clamp(1, AT_ONCE)
    }

    /// Sends one mail.
    async fn deliver(&self, row: &Recipient) -> Result<Step, StoreError> {
        let (db, now) = (&self.toolbox.db, self.toolbox.clock.now());
        let frozen = account::glance(db, self.agent).await?.frozen;
        if let Some(what) = frozen.stops(self.token, SPEC.name, SERVICE_PAYEE) {
            return Ok(Step::Frozen(what));
        }
        let suppressed = suppression::reason(db, &row.to, self.agent, now).await?;
        let is_stopped = self.new_are_stopped && !self.is_local(row) && !standing::is_reached(db, &row.to).await?;
        let refused = match suppressed {
            Some(why) => Some((State::Suppressed, told(why))),
            None => is_stopped.then_some((State::Refused, standing::NEW_STOPPED)),
        };
        if let Some((state, why)) = refused {
            recipient::refuse(db, row, state, why, now).await?;
            return Ok(Step::Ended);
        }
        // Before the submission begins, because it can fail.
        let raw = self.written(row)?;
        if suppressed.is_none() {
            mailbox::note_written_to(db, self.agent, &row.to, now).await?;
        }
        if !recipient::begin(db, row, now).await? {
            return Ok(Step::Ended);
        }
        if self.is_local(row) { self.deliver_here(row, &raw).await } else { self.deliver_outside(row, &raw).await }
    }

    /// Into a mailbox of this deployment. Repeating it stores the same mail.
    async fn deliver_here(&self, row: &Recipient, raw: &[u8]) -> Result<Step, StoreError> {
        let db = &self.toolbox.db;
        let pass = || Some("pass".to_owned());
        let envelope = Envelope {
            from: Some(self.from.clone()),
            to: std::slice::from_ref(&row.to),
            source: None,
            event_id: &row.message_id,
            received_at: self.started,
            // It never left the deployment, and the sender is the agent's.
            verdicts: Verdicts { spf: pass(), dkim: pass(), dmarc: pass(), spam: None },
        };
        let received = receive::receive_from(&self.toolbox, &envelope, raw, Some(self.agent)).await;
        let now = self.toolbox.clock.now();
        let delivered = match received {
            Ok(received) => received.first().map_or(Delivered::UnknownUser, |(_, delivered)| *delivered),
            Err(error) => {
                recipient::ended(db, row, State::Pending, None, None, now).await?;
                return Err(error);
            }
        };
        match delivered {
            Delivered::Stored => {
                let ended = recipient::ended(db, row, State::Delivered, None, None, now).await?;
                Ok(if ended { Step::Delivered } else { Step::Ended })
            }
            Delivered::Unreadable => {
                let reason = "5.6.0 the mail cannot be read";
                recipient::ended(db, row, State::Refused, None, Some(reason), now).await?;
                Ok(Step::Ended)
            }
            Delivered::Full => {
                let reason = "the mailbox takes no more mail today";
                recipient::ended(db, row, State::Refused, None, Some(reason), now).await?;
                Ok(Step::Ended)
            }
            Delivered::UnknownUser => {
                let reason = "5.1.1 there is no such address";
                if !recipient::ended(db, row, State::Bounced, None, Some(reason), now).await? {
                    return Ok(Step::Ended);
                }
                // The outcome stands without the bounce. Many would fill the sender's own mailbox.
                if self.reports.fetch_add(1, Ordering::Relaxed) < MAX_REPORTS
                    && let Err(error) = self.bounce(row, reason, now).await
                {
                    log::failure("a bounce was not delivered to the sender of a mail", &error);
                }
                Ok(Step::Bounced)
            }
        }
    }

    /// A bounce into the sender's own mailbox.
    async fn bounce(&self, row: &Recipient, reason: &str, now: Timestamp) -> Result<(), StoreError> {
        let domain = self.from.domain();
        let id = format!("{}.bounce-{}@{domain}", self.mail, row.index);
        let raw = compose::bounce(&self.from, &row.to, &row.message_id, reason, &id, domain, now);
        let envelope = Envelope {
            from: None,
            to: std::slice::from_ref(&self.from),
            source: None,
            event_id: &id,
            received_at: self.started,
            verdicts: Verdicts::default(),
        };
        receive::receive(&self.toolbox, &envelope, &raw).await.map(drop)
    }

    async fn deliver_outside(&self, row: &Recipient, raw: &[u8]) -> Result<Step, StoreError> {
        let db = &self.toolbox.db;
        let mail = Outgoing { from: &self.from, to: &row.to, raw, request_id: row.request_id, index: row.index };
        let handed = providers::hand_over(&self.toolbox, mail, Instant::now() + HAND_OVER).await;
        let now = self.toolbox.clock.now();
        let step = run::outcome(db, row, &handed, now).await?;
        if step == Step::Accepted {
            standing::note(&self.toolbox, self.agent, Became::Handed, now).await?;
        }
        Ok(step)
    }
}

fn told(why: Why) -> &'static str {
    match why {
        Why::Bounced => "mail to this address has bounced",
        Why::Complained => "the recipient has complained about mail",
        Why::Unsubscribed => "the recipient has unsubscribed",
    }
}

/// Gives back the places of today for mails that nobody was asked to take.
async fn give_back(toolbox: &Toolbox, task: &Task, rows: &[Recipient]) -> Result<(), StoreError> {
    let used: Vec<&Recipient> = rows.iter().filter(|row| row.was_handed_over()).collect();
    let counted = volume::counted(&toolbox.db, task.request_id).await?;
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    // What was not closed may be sent yet.
    if number(used.len()) >= counted || rows.iter().any(|row| row.state == State::Pending) {
        return Ok(());
    }
    let (mut outside, mut proofs) = (0, Proofs::new(May::Read));
    for row in &used {
        outside += u32::from(!receive::is_local(toolbox, &row.to, &mut proofs).await?);
    }
    volume::give_back(&toolbox.db, task.request_id, task.agent, number(used.len()), outside).await
}

/// The end of a job by its rows.
async fn close(toolbox: &Toolbox, task: &Task, rows: &[Recipient]) -> Result<Output, Stop> {
    give_back(toolbox, task, rows).await?;
    Ok(finish(toolbox, task, rows)?)
}

/// The result, and what is charged.
///
/// # Errors
/// If no recipient is charged; everything then comes back.
fn finish(toolbox: &Toolbox, task: &Task, rows: &[Recipient]) -> Result<Output, ToolError> {
    let accepted: Vec<&Recipient> = rows.iter().filter(|row| row.is_charged()).collect();
    let failed: Vec<&Recipient> = rows.iter().filter(|row| !row.is_charged()).collect();
    let Some(first) = accepted.first() else { return Err(nobody(&failed)) };
    let (mail, _) = mail_of_message_id(&first.message_id).unwrap_or_default();
    let outside = accepted.iter().find_map(|row| row.provider_message_id.clone());
    let source = match (outside.clone(), providers::chosen(&toolbox.config)) {
        (Some(id), Some(name)) => Source::upstream(name, Some(id)),
        _ => Source::embedded(EMBEDDED),
    };
    let is_ambiguous = failed.iter().any(|row| row.state == State::Ambiguous);
    let locked = |name: &str| task.locked.get(name).cloned();
    let warning = if run::frozen(rows).is_some() {
        Some(json!(Unavailable::FrozenByOwner.as_str()))
    } else if is_ambiguous {
        Some(json!("delivery_unknown"))
    } else {
        locked(quote::WARNING)
    };
    let recipients: Map<String, Value> = State::ALL
        .into_iter()
        .map(|state| (state.as_str().to_owned(), json!(rows.iter().filter(|row| row.state == state).count())))
        .collect();
    let named = failed.iter().take(MAX_NAMED);
    let named: Vec<Value> =
        named.map(|row| json!({"to": row.to.as_str(), "state": row.state, "reason": row.reason})).collect();
    let mut result = json!({
        "status": if failed.is_empty() { "sent" } else { "partial" },
        "email": {"id": mail, "provider_message_id": outside, "status": first.state},
        "domain": {
            "domain": first.sender,
            "status": "verified",
            "was_provisioned": locked(quote::IS_NEW) == Some(json!(true)),
        },
        "timeline": [
            {"status": "processing", "at": time_of(mail).to_string()},
            {"status": "sent", "at": toolbox.clock.now().to_string()},
        ],
        "recipients": recipients,
        "failed": named,
    });
    if let Some(warning) = warning {
        result["warning"] = warning;
    }
    let used = quote::used(&task.locked, u32::try_from(accepted.len()).unwrap_or(u32::MAX));
    Ok(Output::new(result, source).charging(used))
}

fn nobody(failed: &[&Recipient]) -> ToolError {
    if let Some(reason) = run::frozen(failed.iter().copied()) {
        return ToolError::unavailable(Unavailable::FrozenByOwner, reason);
    }
    if failed.iter().any(|row| row.state == State::Ambiguous) {
        let message = "the provider did not say whether it accepted the mail; it may arrive, and is not sent again";
        return ToolError::unavailable(Unavailable::SourceUnavailable, message);
    }
    let first = failed.iter().find_map(|row| row.reason.as_deref()).unwrap_or("no reason was given");
    let message = match failed {
        [_] => format!("the recipient did not get the mail: {first}"),
        _ => format!("none of {} recipients got the mail; the first reason: {first}", failed.len()),
    };
    // The provider took none of them for an hour: that is not the recipients' doing.
    let is_late = failed.iter().all(|row| row.reason.as_deref() == Some(TOO_LATE));
    ToolError::unavailable(
        if is_late { Unavailable::SourceUnavailable } else { Unavailable::DestinationNotReachable },
        message,
    )
}

fn output() -> Value {
    let text = json!({"type": "string"});
    let states: Vec<&str> = State::ALL.into_iter().map(State::as_str).collect();
    let counts: Map<String, Value> =
        states.iter().map(|state| ((*state).to_owned(), json!({"type": "integer", "minimum": 0}))).collect();
    json!({
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": ["sent", "partial"], "description": "partial: not all accepted it"},
            "email": {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "format": "uuid", "description": "For reply_to_email_id"},
                    "provider_message_id": {"type": ["string", "null"]},
                    "status": {"type": "string", "enum": states, "description": "Of the first that accepted it"},
                },
                "required": ["id", "provider_message_id", "status"],
            },
            "domain": {
                "type": "object",
                "properties": {
                    "domain": text,
                    "status": text,
                    "was_provisioned": {"type": "boolean", "description": "Whether the sender's address was new"},
                },
                "required": ["domain", "status", "was_provisioned"],
            },
            "timeline": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"status": text, "at": {"type": "string", "format": "date-time"}},
                    "required": ["status", "at"],
                },
            },
            "warning": {
                "type": "string",
                "description": "pinned_domain_warming, delivery_unknown: whether a mail was sent is not \
                                known; it is not charged, or frozen_by_owner: a freeze stopped the rest, which is not charged",
            },
            "recipients": {"type": "object", "properties": counts, "description": "Number of recipients in each state"},
            "failed": {
                "type": "array",
                "description": "Recipients that are not charged, the first 50",
                "items": {
                    "type": "object",
                    "properties": {
                        "to": text,
                        "state": {"type": "string", "enum": states},
                        "reason": {"type": ["string", "null"]},
                    },
                    "required": ["to", "state", "reason"],
                },
            },
        },
        "required": ["status", "email", "domain", "timeline", "recipients", "failed"],
    })
}

#[cfg(test)]
mod tests {
    use base::ids::RequestId;

    use super::*;

    fn wrong(body: Value) -> Vec<String> {
        let body = body.as_object().cloned().unwrap();
        let errors = match base::input::validate(SPEC.input, &body) {
            Ok(input) => check(&input, &FetchPolicy::default()),
            Err(errors) => errors,
        };
        errors.into_iter().map(|error| error.path).collect()
    }

    #[test]
    fn the_input_is_checked_with_its_paths() {
        let with = |name: &str, value: Value| {
            let mut body = SPEC.example();
            body[name] = value;
            wrong(body)
        };
        let file = |filename: &str, more: Value| {
            let mut file = json!({"filename": filename});
            file.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
            with("attachments", json!([file]))
        };
        let content = || json!({"content": "aGVsbG8="});
        let none: [&str; 0] = [];
        assert_eq!(wrong(SPEC.example()), none);
        assert_eq!(
            with("to_address", json!(["a@b.test", "bad", "c@d.test", "x y@z.test"])),
            ["to_address.1", "to_address.3"]
        );
        assert_eq!(with("to_address", json!("bad")), ["to_address"]);
        assert_eq!(with("from_address", json!("a@b.test\r\nBcc: c@d.test")), ["from_address"]);
        assert_eq!(with("from_name", json!("Ada\r\nBcc: c@d.test")), ["from_name"]);
        assert_eq!(with("from_name", json!("<ada>")), ["from_name"]);
        assert_eq!(with("subject", json!("a\nb")), ["subject"]);
        assert_eq!(with("subject", json!("👩\u{200d}💻")), none);
        assert_eq!(wrong(json!({"body": "x"})), ["to_address", "subject"]);
        assert_eq!(wrong(json!({"body": "x", "reply_to_email_id": "0190163d-8694-739b-aea5-966c26f8ad91"})), none);
        assert_eq!(file("a.pdf", content()), none);
        assert_eq!(file("a.pdf", json!({"url": "https://example.com/a.pdf"})), none);
        for name in ["a.exe", "a.pdf.JS", "a.scr. ", "../a.pdf", "a\u{202e}fdp.x", "...", "a.exe "] {
            assert_eq!(file(name, content()), ["attachments.0.filename"], "{name}");
        }
        assert_eq!(file("a.pdf", json!({"content": "%%"})), ["attachments.0.content"]);
        assert_eq!(file("a.pdf", json!({})), ["attachments.0.content"]);
        assert_eq!(file("a.pdf", json!({"url": "http://169.254.169.254/"})), ["attachments.0.url"]);
        assert_eq!(
            file("a.pdf", json!({"content": "aGk=", "content_type": "a/b\r\nx"})),
            ["attachments.0.content_type"]
        );
    }

    #[test]
    fn the_same_address_gets_one_mail() {
        let input = json!({"to_address": ["Ada@Example.com", "bob@b.test", "ada@example.COM"]});
        let found = recipients(input.as_object().unwrap());
        assert_eq!(found.iter().map(Address::as_str).collect::<Vec<_>>(), ["Ada@example.com", "bob@b.test"]);
    }

    #[test]
    fn message_ids_name_mail_and_recipient() {
        let at = Timestamp::from_millis(1_795_249_530_250);
        let mail = mailbox::mail_id(at, &[b"x"]);
        assert_eq!(mail_of_message_id(&format!("<{}>", message_id(mail, 17, "a.test"))), Some((mail, 17)));
        assert_eq!(mail_of_message_id(&format!("{mail}.bounce-1@a.test")), None);
        assert_eq!(time_of(mail), at);
    }

    #[test]
    fn a_failed_send_says_what_became_of_it() {
        let row = |state: State| Recipient {
            request_id: RequestId::from_bytes([1; 16]),
            index: 0,
            agent: AgentId::from_bytes([2; 16]),
            sender: "a.test".to_owned(),
            to: Address::parse("b@c.test").unwrap(),
            state,
            message_id: "m".to_owned(),
            provider_message_id: None,
            run: None,
            reason: Some("because".to_owned()),
            opens: 0,
            clicks: 0,
            changed: Timestamp::from_secs(0),
            expires: 0,
        };
        let (unknown, refused) = (row(State::Ambiguous), row(State::Refused));
        assert_eq!(nobody(&[&refused, &unknown]).reason.as_deref(), Some("source_unavailable"));
        assert_eq!(nobody(&[&refused]).reason.as_deref(), Some("destination_not_reachable"));
        assert!(nobody(&[&refused]).message.ends_with("because"));
    }
}
