//! The price of a send, and the address that it is sent from. Both are locked into the quote.
//!
//! Without `from_address` the pool chooses: the least recently used domain of the agent with enough room today. With
//! one, the address must be the agent's, or free on an operator's domain (the paid send then takes it), or on a domain
//! that the agent proves to control by a DNS record.
//!
//! A quote only looks: anyone may ask for one in an agent's name, and pay for nothing. What it finds, the paid send writes.
//! Only a caller that proved to be the agent is told what limits its mails, may answer them, and has its own domains set up at
//! the provider ([`identity`]). Whoever pays for a quote that was not proven is told before the payment is taken.

use std::collections::HashSet;
use std::sync::Arc;

use base::clock::Timestamp;
use base::ids::AgentId;
use base::money::Usdc;
use base::untrusted_text;
use http::StatusCode;
use ledger::account;
use platform::http::ApiError;
use platform::store::{StoreError, daily};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::Toolbox;
use tools::quoting::{AskedPrice, QuoteRequest, Quoter};
use tools::safety::names::{Likeness, is_one_of, likeness};
use unicode_normalization::UnicodeNormalization;
use uuid::Uuid;

use crate::address::Address;
use crate::domain::{self, Provisioning, SendingDomain, Warmup};
use crate::identity::{self, May, Proofs, Waiting};
use crate::mailbox::{self, Sent};
use crate::volume::Share;
use crate::{providers, receive, send, standing, upload, volume};

/// For each recipient, unless the operator set another price: 0.005 USDC.
pub const FEE: Usdc = Usdc::from_micro(5_000);

pub static QUOTER: Quoter = Quoter {
    spec: &send::SPEC,
    quote: |toolbox, request| Box::pin(quote(toolbox, request)),
    check: |toolbox, input, locked, agent, proven| Box::pin(check(toolbox, input, locked, agent, proven)),
    begins: |_| false,
};

/// The members of [`AskedPrice::locked`].
pub(crate) const FROM: &str = "from_address";
/// The send takes a free address.
pub(crate) const IS_NEW: &str = "is_new";
pub(crate) const WARNING: &str = "warning";
/// The price of one recipient, in micro-USDC.
const EACH: &str = "each";
/// Mail cannot be sent from the domain: it is not proven to be the caller's, or not set up at the provider.
const UNPROVEN: &str = "unproven";
/// The asker was not proven, and was not told what limits the agent's mails.
const UNTOLD: &str = "untold";

/// Beginning of the addresses that agents get by themselves.
const AGENTS_OWN: &str = "agent-";

/// Checks the input of a paid send against its quote.
///
/// # Errors
/// 400 `from_address_mismatch` if it names another sender; 400 `domain_not_owned` if the quote said that the domain is
/// not proven.
pub fn check_send(input: &Map<String, Value>, locked: &Map<String, Value>) -> Result<(), ApiError> {
    let folded = |value: Option<&Value>| {
        value.and_then(Value::as_str).and_then(|text| Address::parse(text).ok()).map(|address| address.folded())
    };
    if let (Some(named), Some(quoted)) = (folded(input.get(FROM)), folded(locked.get(FROM)))
        && named != quoted
    {
        let message = format!("the quote was given for {quoted}; ask for a quote with this from_address");
        return Err(refused("from_address_mismatch", message));
    }
    if locked.get(UNPROVEN) == Some(&Value::Bool(true)) {
        return Err(refused(
            "domain_not_owned",
            "the domain is not ready: follow next_step of the quote, then ask for a new quote".to_owned(),
        ));
    }
    Ok(())
}

fn refused(code: &'static str, message: String) -> ApiError {
    ApiError::Tool { status: StatusCode::BAD_REQUEST, code, message }
}

/// The recipients, subject and thread of a mail, of which a reply derives some.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    /// At least one; each once.
    pub to: Vec<Address>,
    pub subject: String,
    /// Message ids, without `<>`.
    pub in_reply_to: Option<String>,
    pub references: Vec<String>,
    /// The thread of the mail that is answered.
    pub thread: Option<Uuid>,
}

/// Why a mail has no content.
#[derive(Debug)]
pub(crate) enum NoContent {
    /// The agent has no mail with the id in `reply_to_email_id`.
    NotFound,
    /// The agent sent that mail, and the caller did not prove to be the agent.
    Unproven,
    /// That mail names no sender.
    NotAnswerable,
    /// The agent sent that mail to more recipients than are stored.
    TooMany,
    Store(StoreError),
}

impl From<StoreError> for NoContent {
    fn from(error: StoreError) -> NoContent {
        NoContent::Store(error)
    }
}

impl From<NoContent> for ApiError {
    fn from(error: NoContent) -> ApiError {
        match error {
            NoContent::NotFound => ApiError::Tool {
                status: StatusCode::NOT_FOUND,
                code: "email_not_found",
                message: "you have no mail with the id in reply_to_email_id".to_owned(),
            },
            NoContent::Unproven => ApiError::ProofRequired,
            NoContent::NotAnswerable => {
                ApiError::field("reply_to_email_id", "is a mail without a sender; give to_address and subject")
            }
            NoContent::TooMany => ApiError::field("reply_to_email_id", "was sent to more than ten; give to_address"),
            NoContent::Store(error) => ApiError::Unavailable(error),
        }
    }
}

/// What to send to whom. The input has passed [`send::SPEC`]'s check. Recipients and subject of the input win over
/// those of the mail that is answered. Only a proven agent may answer a mail of its own: how many got it is in the price.
pub(crate) async fn content(
    toolbox: &Toolbox,
    agent: AgentId,
    input: &Map<String, Value>,
    proven: bool,
) -> Result<Content, NoContent> {
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    let to = send::recipients(input);
    let subject = text("subject").map(str::to_owned);
    let Some(reply_to) = text("reply_to_email_id").and_then(|id| Uuid::try_parse(id).ok()) else {
        let subject = subject.unwrap_or_default();
        return Ok(Content { to, subject, in_reply_to: None, references: Vec::new(), thread: None });
    };
    let (now, db) = (toolbox.clock.now(), &toolbox.db);
    let inbound = mailbox::inbound(db, agent, reply_to).await?.filter(|mail| !mail.is_expired(now));
    let answered = match inbound {
        Some(mail) => Content {
            to: mail.reply_to.or_else(|| Address::parse(&mail.from).ok()).into_iter().collect(),
            subject: mail.subject,
            in_reply_to: mail.message_id.filter(|id| is_message_id(id)),
            references: mail.references,
            thread: Some(mail.thread_id),
        },
        None => {
            let sent = mailbox::sent(db, agent, reply_to).await?.filter(|sent| !sent.is_expired(now));
            let sent = sent.ok_or(NoContent::NotFound)?;
            if !proven {
                return Err(NoContent::Unproven);
            }
            if to.is_empty() && names_too_few(&sent) {
                return Err(NoContent::TooMany);
            }
            Content {
                in_reply_to: Some(send::message_id(sent.id, 0, sent.from.domain())),
                to: sent.to,
                subject: sent.subject,
                references: sent.references,
                thread: Some(sent.thread_id),
            }
        }
    };
    let to = if to.is_empty() { answered.to } else { to };
    if to.is_empty() {
        return Err(NoContent::NotAnswerable);
    }
    let mut references: Vec<String> = answered.references.into_iter().filter(|id| is_message_id(id)).collect();
    if let Some(last) = &answered.in_reply_to
        && !references.contains(last)
    {
        references.push(last.clone());
    }
    let subject = subject.unwrap_or_else(|| reply_subject(&answered.subject));
    Ok(Content { to, subject, in_reply_to: answered.in_reply_to, references, thread: answered.thread })
}

/// Only the first recipients of a mail are stored with it.
fn names_too_few(sent: &Sent) -> bool {
    usize::try_from(sent.recipients).is_ok_and(|recipients| recipients > sent.to.len())
}

/// Safe in a header.
fn is_message_id(id: &str) -> bool {
    id.len() <= 500 && !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>".contains(&byte))
}

/// `Re: …`, once, on one line.
fn reply_subject(subject: &str) -> String {
    let subject = untrusted_text::visible(subject).replace(['\n', '\t'], " ");
    let subject = subject.trim();
    let is_reply = subject.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("re:"));
    let subject = if is_reply { subject.to_owned() } else { format!("Re: {subject}") };
    subject.trim().chars().take(send::MAX_SUBJECT).collect()
}

async fn quote(toolbox: Arc<Toolbox>, request: QuoteRequest) -> Result<AskedPrice, ApiError> {
    let agent = request
        .agent
        .ok_or_else(|| ApiError::field("X-Agent-ID", "is required: a mail is sent from an address of an agent"))?;
    let (now, db, config) = (toolbox.clock.now(), &toolbox.db, &toolbox.config);
    let content = content(&toolbox, agent, &request.input, request.proven).await?;
    check_reachable(&toolbox, &content.to).await?;
    if request.proven {
        check_standing(&toolbox, agent, &content.to).await?;
    }
    // How much money an agent has is told to nobody else.
    let share = match request.proven {
        true => Share::of(&account::load(db, agent).await?, config.email.daily_mails),
        false => Share::whole(config.email.daily_mails),
    };
    check_outside(&toolbox, &content.to, share, now).await?;
    let recipients = u32::try_from(content.to.len()).unwrap_or(u32::MAX);
    let named = request.input.get(FROM).and_then(Value::as_str).and_then(|text| Address::parse(text).ok());
    let domains = domain::with_defaults(db, config, agent, now).await?;
    // How much the agent sent today is told to nobody else.
    let room = if request.proven { recipients } else { 0 };
    let may = if request.proven { May::Ask } else { May::Look };
    let sender = match named {
        Some(named) => pinned(&toolbox, agent, &domains, named, room, may, now).await?,
        None => pooled(&toolbox, domains, recipients, room, may, now).await?,
    };
    check_name(&toolbox, &request.input, &sender.from)?;
    let mut asked = asked(&sender, request.tool.price.usual(), recipients);
    if !request.proven {
        asked.locked.insert(UNTOLD.to_owned(), json!(true));
    }
    // The owner's rules see the recipients of a reply, too.
    if !request.input.contains_key("to_address") {
        asked.locked.insert("to_address".to_owned(), json!(content.to));
    }
    Ok(asked)
}

/// Refuses addresses outside this deployment if no provider can reach them. Stops at the first one.
async fn check_reachable(toolbox: &Toolbox, to: &[Address]) -> Result<(), ApiError> {
    if providers::chosen(&toolbox.config).is_some() {
        return Ok(());
    }
    // What stands behind a `+` is not looked up again, so there are as many reads as owned addresses at most.
    let mut known: HashSet<String> = HashSet::new();
    let mut proofs = Proofs::new(May::Read);
    for address in to {
        let plain = receive::plain(address).unwrap_or_else(|| address.clone());
        if known.contains(&plain.folded()) {
            continue;
        }
        if receive::is_local(toolbox, &plain, &mut proofs).await? {
            known.insert(plain.folded());
        } else if plain == *address || !receive::is_local(toolbox, address, &mut proofs).await? {
            let what = "provider for addresses outside this deployment (EMAIL_PROVIDERS)".to_owned();
            return Err(ApiError::NotConfigured { what });
        }
    }
    Ok(())
}

/// Refuses addresses outside if the agent's mail there is stopped.
///
/// # Errors
/// 403 `sending_stopped`.
async fn check_standing(toolbox: &Toolbox, agent: AgentId, to: &[Address]) -> Result<(), ApiError> {
    let Some(rates) = standing::stopped(&toolbox.db, agent).await? else { return Ok(()) };
    let mut proofs = Proofs::new(May::Read);
    for address in to {
        if !receive::is_local(toolbox, address, &mut proofs).await? {
            let message = format!("your mail is stopped: {}; {}", rates.told(), standing::next_step(toolbox));
            return Err(ApiError::Tool { status: StatusCode::FORBIDDEN, code: standing::STOPPED, message });
        }
    }
    Ok(())
}

/// Refuses addresses outside if all mail there is stopped, or has no room today.
///
/// # Errors
/// 429 `email_limit_reached`, 503 `new_recipients_stopped`.
async fn check_outside(toolbox: &Toolbox, to: &[Address], share: Share, now: Timestamp) -> Result<(), ApiError> {
    let number = |of: &[&Address]| u32::try_from(of.len()).unwrap_or(u32::MAX);
    let db = &toolbox.db;
    let foreign: Vec<&Address> =
        to.iter().filter(|address| !domain::is_operators(&toolbox.config, address.domain())).collect();
    if foreign.is_empty() {
        return Ok(());
    }
    let are_new_stopped = standing::are_new_stopped(db, now).await?;
    let has_room = volume::check_room(db, number(&foreign), share, now).await.is_ok();
    if !are_new_stopped && has_room {
        return Ok(());
    }
    // Addresses on agents' own domains may be here. That takes a read for each domain.
    let (mut outside, mut proofs) = (Vec::new(), Proofs::new(May::Read));
    for address in foreign {
        if !receive::is_local(toolbox, address, &mut proofs).await? {
            outside.push(address);
        }
    }
    if outside.is_empty() {
        return Ok(());
    }
    volume::check_room(db, number(&outside), share, now).await?;
    if are_new_stopped {
        for address in outside {
            if !standing::is_reached(db, address).await? {
                return Err(ApiError::Later {
                    status: StatusCode::SERVICE_UNAVAILABLE,
                    code: "new_recipients_stopped",
                    message: standing::NEW_STOPPED.to_owned(),
                    retry_after_secs: daily::secs_left(now),
                });
            }
        }
    }
    Ok(())
}

/// The sender of a quote.
#[derive(Debug)]
struct Sender {
    from: Address,
    is_new: bool,
    warning: Option<&'static str>,
    /// Why mail cannot be sent from the domain yet.
    waiting: Option<Waiting>,
}

/// The pool's choice: a domain with room for the recipients, or else with as much as there has to be at least (`room`).
async fn pooled(
    toolbox: &Toolbox,
    mut domains: Vec<SendingDomain>,
    recipients: u32,
    room: u32,
    may: May,
    now: Timestamp,
) -> Result<Sender, ApiError> {
    let until = Instant::now() + identity::LOOKING;
    while let Some(chosen) = domain::choose(&domains, recipients, now).or_else(|| domain::choose(&domains, room, now)) {
        let from = chosen.default_from.clone();
        if chosen.shared || is_ready(toolbox, chosen, may, now).await? {
            return Ok(Sender { from, is_new: false, warning: None, waiting: None });
        }
        // If looking takes long, an operator's domain is taken.
        domains.retain(|row| row.domain != from.domain() && (row.shared || Instant::now() < until));
    }
    let message = format!(
        "none of your sending domains is active and has room for {recipients} recipients today: see \
         GET /v1/tools/email/domains, resume one, or wait for the next UTC day"
    );
    Err(refused("no_sending_domain", message))
}

/// Whether mail can be sent from a domain of the agent's own.
async fn is_ready(toolbox: &Toolbox, row: &SendingDomain, may: May, now: Timestamp) -> Result<bool, StoreError> {
    match domain::own_domain(&toolbox.db, &row.domain).await?.filter(|own| own.agent == row.agent) {
        Some(own) => Ok(identity::waiting(toolbox, &own, may, now).await?.is_none()),
        None => Ok(false),
    }
}

/// Whose the domain of a named address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DomainOf {
    Operator,
    /// Proven by the caller.
    Caller,
    /// The DNS shows the caller's record, and no other owner's. The paid send makes the domain the caller's.
    Shown,
    /// Proven by another agent.
    Other,
    Unproven,
}

/// Whose the address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressOf {
    Nobody,
    Caller,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Use {
        is_new: bool,
    },
    /// Owned by another agent, or reserved.
    Taken,
    NotOwned,
    /// The DNS records are missing.
    Unproven,
}

/// `is_claimable`: a name that an agent may take on an operator's domain.
fn decide(domain: DomainOf, address: AddressOf, is_claimable: bool) -> Decision {
    match (domain, address) {
        (DomainOf::Other, _) => Decision::NotOwned,
        (DomainOf::Unproven, _) => Decision::Unproven,
        // Whoever had an address on it loses it with the domain.
        (DomainOf::Shown, _) => Decision::Use { is_new: true },
        (_, AddressOf::Caller) => Decision::Use { is_new: false },
        (_, AddressOf::Other) => Decision::Taken,
        (DomainOf::Operator, AddressOf::Nobody) if !is_claimable => Decision::Taken,
        (DomainOf::Operator | DomainOf::Caller, AddressOf::Nobody) => Decision::Use { is_new: true },
    }
}

/// `domains`: those of the agent.
async fn pinned(
    toolbox: &Toolbox,
    agent: AgentId,
    domains: &[SendingDomain],
    from: Address,
    room: u32,
    may: May,
    now: Timestamp,
) -> Result<Sender, ApiError> {
    let of_domain = whose_domain(toolbox, agent, &from).await?;
    // The row that the paid send will write.
    let fresh = SendingDomain::new(&from, agent, false, now);
    let row = match of_domain {
        DomainOf::Shown => Some(&fresh),
        _ => domains.iter().find(|row| row.domain == from.domain()),
    };
    // A default address may not be written yet.
    let is_default = row.is_some_and(|row| row.default_from.folded() == from.folded());
    let of_address = match domain::owner_of(&toolbox.db, &from).await? {
        None if is_default => AddressOf::Caller,
        None => AddressOf::Nobody,
        Some(owner) if owner == agent => AddressOf::Caller,
        Some(_) => AddressOf::Other,
    };
    match decide(of_domain, of_address, is_claimable(from.local(), &toolbox.config.service_name)) {
        Decision::Taken => Err(taken(&from)),
        Decision::NotOwned => Err(refused("domain_not_owned", format!("{} belongs to another agent", from.domain()))),
        Decision::Unproven => {
            let waiting = Some(Waiting::unproven(toolbox, agent, from.domain()));
            Ok(Sender { from, is_new: true, warning: None, waiting })
        }
        Decision::Use { .. } if of_domain == DomainOf::Shown && domain::is_full(domains) => Err(domain::too_many()),
        Decision::Use { is_new } => {
            if let Some(full) = row.and_then(|row| volume::refuses(row, room, now)) {
                return Err(refused("no_sending_domain", full.message(from.domain(), room)));
            }
            let is_warming = row.is_some_and(|row| matches!(row.warmup(now), Warmup::Warming));
            let warning = is_warming.then_some("pinned_domain_warming");
            let waiting = match of_domain {
                DomainOf::Caller => match domain::own_domain(&toolbox.db, from.domain()).await? {
                    Some(own) if own.agent == agent => identity::waiting(toolbox, &own, may, now).await?,
                    _ => Some(Waiting::unproven(toolbox, agent, from.domain())),
                },
                DomainOf::Shown => identity::waiting_when_shown(toolbox, agent, from.domain(), may, now).await?,
                DomainOf::Operator | DomainOf::Other | DomainOf::Unproven => None,
            };
            Ok(Sender { from, is_new, warning, waiting })
        }
    }
}

pub(crate) fn taken(address: &Address) -> ApiError {
    refused("address_taken", format!("{} is reserved, or another agent has it", address.as_str()))
}

/// Only looks. The record of a domain that is not the caller's is looked up each time: the domain may pass on.
async fn whose_domain(toolbox: &Toolbox, agent: AgentId, from: &Address) -> Result<DomainOf, ApiError> {
    if domain::is_operators(&toolbox.config, from.domain()) {
        return Ok(DomainOf::Operator);
    }
    let owner = domain::own_domain(&toolbox.db, from.domain()).await?.map(|own| own.agent);
    if owner == Some(agent) {
        return Ok(DomainOf::Caller);
    }
    if domain::shows_record(&toolbox.db, &toolbox.dns, &toolbox.mail_secret, agent, from.domain()).await? {
        return Ok(DomainOf::Shown);
    }
    Ok(if owner.is_some() { DomainOf::Other } else { DomainOf::Unproven })
}

/// Whether an agent may take this name on an operator's domain.
///
/// `service`: the operator's name.
pub(crate) fn is_claimable(local: &str, service: &str) -> bool {
    let is_plain = local.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let is_agents = local.to_ascii_lowercase().starts_with(AGENTS_OWN);
    (3..=64).contains(&local.len()) && is_plain && !is_agents && likeness(local, service).is_none()
}

/// What a call that redeems a quote names beside it: the sender's name, which the quote does not lock, and uploads. If the payer
/// is the agent, also what the quote did not tell an asker who was not proven.
async fn check(
    toolbox: &Toolbox,
    input: &Map<String, Value>,
    locked: &Map<String, Value>,
    agent: Option<AgentId>,
    proven: bool,
) -> Result<(), ApiError> {
    let from = locked.get(FROM).and_then(Value::as_str).and_then(|text| Address::parse(text).ok());
    if let Some(from) = &from {
        check_name(toolbox, input, from)?;
    }
    upload::check(toolbox, input, locked, agent, proven).await?;
    let is_untold = locked.get(UNTOLD) == Some(&Value::Bool(true));
    let (Some(agent), Some(from)) = (agent.filter(|_| proven && is_untold), from) else { return Ok(()) };
    let now = toolbox.clock.now();
    let to = content(toolbox, agent, input, true).await?.to;
    check_standing(toolbox, agent, &to).await?;
    let recipients = u32::try_from(to.len()).unwrap_or(u32::MAX);
    let row = domain::load(&toolbox.db, agent, from.domain()).await?;
    match row.and_then(|row| volume::refuses(&row, recipients, now)) {
        Some(full) => Err(refused("no_sending_domain", full.message(from.domain(), recipients))),
        None => Ok(()),
    }
}

/// Refuses a sender's name that could be taken for the operator's, or that names another address or domain than the
/// sender's own. The mail is signed, so its reader believes the name.
fn check_name(toolbox: &Toolbox, input: &Map<String, Value>, from: &Address) -> Result<(), ApiError> {
    let Some(name) = input.get(FROM_NAME).and_then(Value::as_str) else { return Ok(()) };
    let is_operators = domain::is_operators(&toolbox.config, from.domain());
    let why = match likeness(name, &toolbox.config.service_name) {
        // Every owner of a domain has such offices.
        Some(Likeness::Office) if !is_operators => None,
        other => other.map(Likeness::message),
    };
    let why = why.or_else(|| names_another(name, from, &toolbox.config.email.domains).then_some(ANOTHER));
    why.map_or(Ok(()), |why| Err(ApiError::field(FROM_NAME, why)))
}

/// A member of the input: what is shown with the sender's address.
const FROM_NAME: &str = "from_name";
const ANOTHER: &str = "must not contain an @ or a domain, unless it is the sender's own address or domain";

/// The most used ends of domains. Behind another dot there is a name: Dr.House, Node.js.
const TOPS: [&str; 36] = [
    "com", "net", "org", "io", "co", "app", "dev", "ai", "xyz", "info", "biz", "me", "us", "uk", "de", "fr", "eu",
    "nl", "it", "es", "ch", "ca", "au", "jp", "cn", "br", "ru", "рф", "edu", "gov", "online", "shop", "site", "store",
    "tech", "bank",
];

/// Whether a name has a word that looks like an address or a domain and is not the sender's own. Nobody but the operator
/// names an operator's domain.
///
/// `operators`: the operator's domains.
fn names_another(name: &str, from: &Address, operators: &[String]) -> bool {
    // Other letters for an @ and for a dot become these (UTS 46 names the dots).
    let name = untrusted_text::visible(name).nfkc().collect::<String>().replace('\u{3002}', ".").to_lowercase();
    let domain = from.domain();
    let is_operators = operators.iter().any(|ours| ours.eq_ignore_ascii_case(domain));
    name.split(|letter: char| !(letter.is_alphanumeric() || "@.-_+".contains(letter))).any(|word| {
        let word = word.trim_matches(['.', '-', '_']);
        let top = word.rsplit_once('.').map_or("", |(_, top)| top);
        let is_in = |ours: &String| {
            word.strip_suffix(&ours.to_lowercase()).is_some_and(|sub| sub.is_empty() || sub.ends_with('.'))
        };
        let is_domain = is_one_of(top, &TOPS) || top.starts_with("xn--") || operators.iter().any(is_in);
        let is_own = !is_operators && (domain == word || domain.ends_with(&format!(".{word}")));
        (word.contains('@') || is_domain) && word != from.folded() && !is_own
    })
}

/// The price of a number of recipients.
fn price(each: Usdc, recipients: u32) -> Usdc {
    Usdc::from_micro(each.micro().saturating_mul(u64::from(recipients)))
}

/// The part of a quote's price that this number of recipients costs.
pub(crate) fn used(locked: &Map<String, Value>, recipients: u32) -> Usdc {
    // Quotes from before the price could be changed do not have it.
    let each = locked.get(EACH).and_then(Value::as_u64).map_or(FEE, Usdc::from_micro);
    price(each, recipients)
}

fn asked(sender: &Sender, each: Usdc, recipients: u32) -> AskedPrice {
    let price = price(each, recipients);
    let zero = Usdc::ZERO.to_number();
    let mut context = json!({
        "domain": sender.from.domain(),
        "is_new": sender.is_new,
        "available": sender.waiting.is_none(),
        "registration_fee": zero,
        "service_fee": price.to_number(),
        "mailbox_provisioning_fee": zero,
        "total_cost": price.to_number(),
        "currency": "USD",
        "status": sender.waiting.as_ref().map_or(Provisioning::Verified, |waiting| waiting.why.provisioning()),
        "from_address": sender.from.as_str(),
        "recipients": recipients,
    });
    let mut locked = json!({FROM: sender.from.as_str(), EACH: each.micro()});
    if sender.is_new {
        locked[IS_NEW] = json!(true);
    }
    if let Some(warning) = sender.warning {
        context[WARNING] = json!(warning);
        locked[WARNING] = json!(warning);
    }
    if let Some(waiting) = &sender.waiting {
        waiting.tell(&mut context);
        locked[UNPROVEN] = json!(true);
    }
    let members = |value: Value| match value {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    AskedPrice { price, context: members(context), locked: members(locked) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Why;

    #[test]
    fn an_address_is_used_only_by_its_owner() {
        use AddressOf as A;
        use DomainOf as D;
        let (mine, new) = (Decision::Use { is_new: false }, Decision::Use { is_new: true });
        for (domain, address, is_claimable, expected) in [
            (D::Operator, A::Nobody, true, new),
            (D::Operator, A::Nobody, false, Decision::Taken),
            // The agent's own address is of a kind that nobody can take.
            (D::Operator, A::Caller, false, mine),
            (D::Operator, A::Other, true, Decision::Taken),
            (D::Caller, A::Nobody, false, new),
            (D::Caller, A::Caller, true, mine),
            (D::Caller, A::Other, true, Decision::Taken),
            (D::Shown, A::Nobody, false, new),
            (D::Shown, A::Other, false, new),
            (D::Other, A::Nobody, true, Decision::NotOwned),
            (D::Other, A::Caller, true, Decision::NotOwned),
            (D::Unproven, A::Caller, true, Decision::Unproven),
            (D::Unproven, A::Nobody, true, Decision::Unproven),
        ] {
            assert_eq!(decide(domain, address, is_claimable), expected, "{domain:?} {address:?}");
        }
    }

    #[test]
    fn names_of_the_operator_cannot_be_taken() {
        for free in ["ada", "ada.lovelace", "shop-7", "acme-support"] {
            assert!(is_claimable(free, "Agora"), "{free}");
        }
        for not in ["Postmaster", "agora-support", "KYC.1", "a", "bounces+x", "Agent-0123456789ab", "it's"] {
            assert!(!is_claimable(not, "Agora"), "{not}");
        }
    }

    #[test]
    fn a_senders_name_names_no_other_address_or_domain() {
        let [own, shared] = ["ada@mail.acme.com", "ada@agents.test"].map(|text| Address::parse(text).unwrap());
        let names = |name: &str, from: &Address| names_another(name, from, &["agents.test".to_owned()]);
        for name in [
            "boss@bank.test",
            "Bank (bank.com)",
            "Bank.COM",
            "＠bank",
            "bank．com",
            "bank。com",
            "bank.со",
            "a\u{ad}@b",
            "x.xn--p1ai",
            "почта.рф",
            "agents.test",
            "mail.Agents.test",
        ] {
            assert!(names(name, &own) && names(name, &shared), "{name}");
        }
        for name in [
            "Ada",
            "Dr. Ada",
            "Dr.House",
            "Anna.Maria",
            "Bill.Gates",
            "Node.js",
            "J.R.R. Tolkien",
            "Version 2.0",
            "St. Gallen...",
            "a.b",
        ] {
            assert!(!names(name, &own) && !names(name, &shared), "{name}");
        }
        for name in ["Ada at acme.com", "Mail.Acme.com", "ada@mail.acme.com"] {
            assert!(!names(name, &own) && names(name, &shared), "{name}");
        }
        assert!(!names("ada@agents.test", &shared));
    }

    #[test]
    fn the_quote_locks_the_sender() {
        let sender = |why: Option<Why>| Sender {
            from: Address::parse("Ada@agents.test").unwrap(),
            is_new: true,
            warning: Some("pinned_domain_warming"),
            waiting: why.map(|why| Waiting { why, dns_records: json!([]) }),
        };
        let asked_for = asked(&sender(None), FEE, 3);
        assert_eq!(asked_for.price, Usdc::from_micro(15_000));
        assert_eq!(asked_for.context["total_cost"].to_string(), "0.015");
        assert_eq!(asked_for.context["available"], true);
        let with = |from: &str| json!({"from_address": from}).as_object().cloned().unwrap();
        fn code(input: &Map<String, Value>, locked: &Map<String, Value>) -> Result<(), &'static str> {
            check_send(input, locked).map_err(|error| error.code())
        }
        assert_eq!(code(&Map::new(), &asked_for.locked), Ok(()));
        assert_eq!(code(&with("ada@AGENTS.test"), &asked_for.locked), Ok(()));
        assert_eq!(code(&with("bob@agents.test"), &asked_for.locked), Err("from_address_mismatch"));
        let dearer = asked(&sender(None), Usdc::from_micro(7_000), 3);
        assert_eq!((dearer.price.micro(), dearer.context["service_fee"].to_string()), (21_000, "0.021".to_owned()));
        assert_eq!(used(&dearer.locked, 2), Usdc::from_micro(14_000), "what is charged follows the quote");
        assert_eq!(used(&Map::new(), 2), Usdc::from_micro(10_000));
        for (why, status, reason) in
            [(Why::Unproven, "unprovisioned", "record_missing"), (Why::Pending, "provisioning", "pending")]
        {
            let waiting = asked(&sender(Some(why)), FEE, 1);
            let said = |name: &str| waiting.context[name].clone();
            assert_eq!(
                [said("status"), said("available"), said("reason")],
                [json!(status), json!(false), json!(reason)]
            );
            assert_eq!(code(&Map::new(), &waiting.locked), Err("domain_not_owned"));
        }
    }

    #[test]
    fn a_reply_has_one_prefix_and_one_line() {
        for (subject, reply) in [
            ("Hello", "Re: Hello"),
            ("RE: Hello", "RE: Hello"),
            ("Hello\r\nBcc: x@y.test", "Re: Hello Bcc: x@y.test"),
            ("", "Re:"),
        ] {
            assert_eq!(reply_subject(subject), reply);
        }
        assert!(is_message_id("a.0@b.test") && !is_message_id("a\r\nBcc: x") && !is_message_id(""));
    }
}
