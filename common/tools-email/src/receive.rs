//! Takes a mail that arrived (from SES, from a listener, or from another agent of this deployment) into the mailboxes.
//!
//! No mail is ever answered here, so no two mailboxes can keep each other busy. A mailbox takes so many mails a day
//! ([`room`]); a mail with more than 30 `Received` headers has been in a loop and is refused, as is one that cannot be read. A
//! mail is stored once, however often it arrives.
//!
//! `postmaster@` and `abuse@` of every domain are accepted (RFC 5321 §4.5.1, RFC 2142): on a domain of an agent's own for
//! that agent, on an operator's domain for the operator. Those are stored as they came, below [`FOR_OPERATOR`] of the blobs.
//!
//! Bounce reports end the send they report on, if they come to the envelope sender of that mail or name a mail that the
//! receiving agent sent, and name the recipient's address too. They suppress the address for this agent only, and say
//! nothing of a mail that is still being handed over, because a report is not signed.

use std::net::IpAddr;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use platform::http::log;
use platform::store::{Db, StoreError, daily};
use serde_json::json;
use tools::Toolbox;
use uuid::Uuid;

use crate::address::Address;
use crate::compose::Attached;
use crate::identity::{May, Proofs};
use crate::mailbox::{self, Body, Inbound, Sent, StoredAttachment, Verdicts};
use crate::parse::{self, Parsed, Report};
use crate::providers::{clean_reason, smtp};
use crate::recipient::{self, Happened, Recipient};
use crate::send::mail_of_message_id;
use crate::stats::{self, Count};
use crate::{domain, events, notices, room, suppression};

/// Most mails for the operator that are stored in a UTC day: anybody can write them.
const MAX_FOR_OPERATOR_A_DAY: u32 = 200;
/// Mails for the operator are stored below this key of the blobs, for as long as those of agents.
pub const FOR_OPERATOR: &str = "mail/operator/";
/// Names that every domain has.
const ROLES: [&str; 2] = ["postmaster", "abuse"];
/// A mail that more hosts than this have passed on is in a loop.
const MAX_HOPS: usize = 30;

/// How a mail arrived.
pub struct Envelope<'a> {
    /// `None`: the empty sender of a bounce.
    pub from: Option<Address>,
    pub to: &'a [Address],
    /// Where it came from; `None` inside the deployment, or if that is not known.
    pub source: Option<IpAddr>,
    /// What makes it unique: the same mail arriving again has the same.
    pub event_id: &'a str,
    /// The same each time, too.
    pub received_at: Timestamp,
    pub verdicts: Verdicts,
}

/// What became of a mail for one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// It is in the mailbox, now or already before; or it needed none (a bounce report of a send).
    Stored,
    UnknownUser,
    /// The agent's mailbox takes no more mails of this sender today, or the operator's as many as are stored.
    Full,
    /// It is no mail, or was in a loop.
    Unreadable,
}

/// Whose mailbox an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Agent(AgentId),
    Operator,
}

/// Stores the mail for each recipient address that is ours. Applies bounce reports to the send they report on, counts
/// replies, tells the agent (`notices`). Never answers a mail itself; the caller makes the bounce for `UnknownUser` (SMTP
/// 550, or `compose::bounce` for a local sender).
///
/// # Errors
/// If the database or the blob store fails; the mail must then be delivered again.
pub async fn receive(
    toolbox: &Toolbox,
    envelope: &Envelope<'_>,
    raw: &[u8],
) -> Result<Vec<(Address, Delivered)>, StoreError> {
    receive_from(toolbox, envelope, raw, None).await
}

/// [`receive`] for a mail that an agent here has sent. What a mail says of its own agent is not believed.
pub(crate) async fn receive_from(
    toolbox: &Toolbox,
    envelope: &Envelope<'_>,
    raw: &[u8],
    sender: Option<AgentId>,
) -> Result<Vec<(Address, Delivered)>, StoreError> {
    let parsed = if hops(raw) > MAX_HOPS { None } else { parse::parse(raw) };
    if parsed.is_none() {
        log::event("a mail cannot be read, or was in a loop", json!({"bytes": raw.len()}));
    }
    let mut done = Vec::with_capacity(envelope.to.len());
    let mut served: Vec<AgentId> = Vec::new();
    let mut proofs = Proofs::new(May::Write);
    for to in envelope.to {
        let delivered = match (bounced_mail(toolbox, to), &parsed) {
            (Some(_), None) => Delivered::Unreadable,
            (Some((request_id, index)), Some(parsed)) => {
                apply_report(toolbox, parsed.report.as_ref(), request_id, index).await?;
                Delivered::Stored
            }
            (None, parsed) => match (holder(toolbox, to, &mut proofs).await?, parsed) {
                (None, _) => Delivered::UnknownUser,
                (Some(_), None) => Delivered::Unreadable,
                (Some(Holder::Operator), Some(_)) => for_operator(toolbox, envelope, raw).await?,
                (Some(Holder::Agent(agent)), Some(parsed)) if !served.contains(&agent) => {
                    served.push(agent);
                    store(toolbox, envelope, parsed, raw, (agent, to), sender).await?
                }
                // In this agent's mailbox already by another of its addresses.
                (Some(Holder::Agent(_)), Some(_)) => Delivered::Stored,
            },
        };
        done.push((to.clone(), delivered));
    }
    Ok(done)
}

/// Whether mail to this address stays in the deployment: its domain is an operator's, or it is an agent's address on a
/// domain whose ownership record is still there. Without the record the domain may be somebody else's by now. Other addresses
/// on that domain may have their mailboxes elsewhere.
pub async fn is_local(toolbox: &Toolbox, address: &Address, proofs: &mut Proofs) -> Result<bool, StoreError> {
    if domain::is_operators(&toolbox.config, address.domain()) {
        return Ok(true);
    }
    Ok(proofs.owner(toolbox, address.domain()).await?.is_some() && owner(&toolbox.db, address).await?.is_some())
}

/// The address without what stands behind a `+` in the name; `None` if there is no `+`.
pub(crate) fn plain(address: &Address) -> Option<Address> {
    let (name, _) = address.local().split_once('+')?;
    Address::parse(&format!("{name}@{}", address.domain())).ok()
}

/// Whether a mail to this address is taken: it is an agent's, the operator's, or the envelope sender of a mail that was sent.
pub async fn knows(toolbox: &Toolbox, address: &Address, proofs: &mut Proofs) -> Result<bool, StoreError> {
    Ok(bounced_mail(toolbox, address).is_some() || holder(toolbox, address, proofs).await?.is_some())
}

/// Whether every domain has this name.
pub fn is_role(address: &Address) -> bool {
    ROLES.iter().any(|role| address.local().eq_ignore_ascii_case(role))
}

/// Whose mail it is.
async fn holder(toolbox: &Toolbox, to: &Address, proofs: &mut Proofs) -> Result<Option<Holder>, StoreError> {
    let is_operators = domain::is_operators(&toolbox.config, to.domain());
    let of_domain = if is_operators { None } else { proofs.owner(toolbox, to.domain()).await? };
    if !is_operators && of_domain.is_none() {
        return Ok(None);
    }
    if let Some(agent) = owner(&toolbox.db, to).await? {
        return Ok(Some(Holder::Agent(agent)));
    }
    if !is_role(to) {
        return Ok(None);
    }
    Ok(Some(of_domain.map_or(Holder::Operator, Holder::Agent)))
}

/// Stores a mail for the operator, as it came. The log has its key. A mail that arrives again is counted again, and stored
/// at the same key.
async fn for_operator(toolbox: &Toolbox, envelope: &Envelope<'_>, raw: &[u8]) -> Result<Delivered, StoreError> {
    let id = mailbox::mail_id(envelope.received_at, &[b"operator", envelope.event_id.as_bytes()]);
    let key = format!("{FOR_OPERATOR}{id}.eml");
    let now = toolbox.clock.now();
    if !daily::take(&toolbox.db, "MAILS#operator".to_owned(), MAX_FOR_OPERATOR_A_DAY, now).await? {
        return Ok(Delivered::Full);
    }
    toolbox.blobs.put(&key, "message/rfc822", raw.to_vec()).await?;
    log::event("a mail for the operator", json!({"key": key, "bytes": raw.len()}));
    log::metric(&toolbox.config.metric_namespace, "MailsForOperator", "Count", 1);
    Ok(Delivered::Stored)
}

/// The agent with this address. `name+anything` belongs to the owner of `name`.
async fn owner(db: &Db, to: &Address) -> Result<Option<AgentId>, StoreError> {
    if let Some(agent) = domain::owner_of(db, to).await? {
        return Ok(Some(agent));
    }
    match plain(to) {
        Some(plain) => domain::owner_of(db, &plain).await,
        None => Ok(None),
    }
}

/// The mail whose envelope sender this is.
fn bounced_mail(toolbox: &Toolbox, to: &Address) -> Option<(RequestId, u32)> {
    domain::is_operators(&toolbox.config, to.domain()).then(|| smtp::of_envelope_sender(to)).flatten()
}

async fn store(
    toolbox: &Toolbox,
    envelope: &Envelope<'_>,
    parsed: &Parsed,
    raw: &[u8],
    (agent, to): (AgentId, &Address),
    sender: Option<AgentId>,
) -> Result<Delivered, StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let folded = to.folded();
    let id = mailbox::mail_id(envelope.received_at, &[agent.bytes(), envelope.event_id.as_bytes(), folded.as_bytes()]);
    // A mail that arrives again was counted the first time.
    let is_known = mailbox::inbound(db, agent, id).await?.is_some();
    let answered = answered(db, agent, parsed).await?;
    if !is_known && !room::take(db, &toolbox.config, agent, envelope, parsed, answered.as_ref(), now).await? {
        notices::tell_refused(db, agent, now).await?;
        log::metric(&toolbox.config.metric_namespace, "MailsRefused", "Count", 1);
        return Ok(Delivered::Full);
    }
    let mail = Inbound {
        id,
        agent,
        to: to.clone(),
        from: parsed.from.clone().unwrap_or_default(),
        from_name: parsed.from_name.clone(),
        from_agent: sender,
        reply_to: parsed.reply_to.clone(),
        subject: parsed.subject.clone(),
        message_id: parsed.message_id.clone(),
        references: parsed.references.clone(),
        thread_id: answered.as_ref().map_or_else(|| thread(agent, parsed, id), |sent| sent.thread_id),
        in_reply_to_sent: answered.as_ref().map(|sent| sent.id),
        received_at: envelope.received_at,
        size: u32::try_from(raw.len()).unwrap_or(u32::MAX),
        is_cut: parsed.is_cut,
        verdicts: envelope.verdicts.clone(),
        attachments: parsed.attachments.iter().map(listed).collect(),
        expires: envelope.received_at.plus(mailbox::KEPT).secs(),
    };
    let body = Body { text: parsed.text.clone(), html: parsed.html.clone() };
    let is_new =
        !is_known && mailbox::put_inbound(db, &*toolbox.blobs, &mail, &body, parsed.attachments.clone(), raw).await?;
    if let Some((sent, index)) = reported(db, agent, parsed).await? {
        apply_report(toolbox, parsed.report.as_ref(), sent.request_id, index).await?;
    }
    if let (true, Some(sent), true) = (is_new, &answered, is_from_somebody(envelope, parsed)) {
        stats::count(db, agent, sent.from.domain(), Count::Replied, 1, now).await?;
    }
    // For a repeated mail too: the process may have died after it stored the mail.
    notices::tell_received(db, &mail, now).await?;
    Ok(Delivered::Stored)
}

/// Written by a person or an agent, not by a machine on its own (RFC 3834).
fn is_from_somebody(envelope: &Envelope<'_>, parsed: &Parsed) -> bool {
    envelope.from.is_some() && !parsed.is_automatic && parsed.report.is_none()
}

fn listed(attached: &Attached) -> StoredAttachment {
    StoredAttachment {
        filename: attached.filename.clone(),
        content_type: attached.content_type.clone(),
        size: u32::try_from(attached.content.len()).unwrap_or(u32::MAX),
    }
}

/// The thread of a mail that answers none of ours: named by its first message.
fn thread(agent: AgentId, parsed: &Parsed, id: Uuid) -> Uuid {
    let first = parsed.references.first().or(parsed.in_reply_to.as_ref()).or(parsed.message_id.as_ref());
    match first {
        Some(first) => mailbox::thread_of(agent, first),
        None => mailbox::thread_of(agent, &id.to_string()),
    }
}

/// The mail of this agent that the parsed one answers; the newest, if it names several.
async fn answered(db: &Db, agent: AgentId, parsed: &Parsed) -> Result<Option<Sent>, StoreError> {
    let mut known = parsed.in_reply_to.iter().chain(parsed.references.iter().rev());
    match known.find_map(|id| mail_of_message_id(id)) {
        Some((id, _)) => mailbox::sent(db, agent, id).await,
        None => Ok(None),
    }
}

/// The mail of this agent, and the recipient, that a bounce report is about.
async fn reported(db: &Db, agent: AgentId, parsed: &Parsed) -> Result<Option<(Sent, u32)>, StoreError> {
    let original = parsed.report.as_ref().and_then(|report| report.original_message_id.as_deref());
    let Some((id, index)) = original.and_then(mail_of_message_id) else { return Ok(None) };
    Ok(mailbox::sent(db, agent, id).await?.map(|sent| (sent, index)))
}

/// Applies a bounce report. Anything else that comes to an envelope sender (an absence note, a warning of a delay) says
/// nothing about the mail.
///
/// The report must name the recipient's address: every recipient of a send knows its request id and could report the
/// mails of the others.
async fn apply_report(
    toolbox: &Toolbox,
    report: Option<&Report>,
    request_id: RequestId,
    index: u32,
) -> Result<(), StoreError> {
    let Some((report, what)) = report.and_then(|report| Some((report, meaning(report)?))) else { return Ok(()) };
    let named = report.recipient.as_deref().and_then(|text| Address::parse(text).ok());
    let rows = recipient::all(&toolbox.db, request_id).await?;
    let is_of_recipient =
        |row: &Recipient| row.index == index && named.as_ref().is_some_and(|named| named.folded() == row.to.folded());
    if !rows.iter().any(is_of_recipient) {
        return Ok(());
    }
    let now = toolbox.clock.now();
    let Some(row) = events::apply(toolbox, request_id, index, &what, now).await? else { return Ok(()) };
    if let Some(why) = events::suppresses(&what) {
        suppression::suppress(&toolbox.db, row.to.as_str(), Some(row.agent), why, now).await?;
    }
    Ok(())
}

/// What a report says (RFC 3464 §2.3.3 and §2.3.4).
fn meaning(report: &Report) -> Option<Happened> {
    if !report.action.eq_ignore_ascii_case("failed") {
        return None;
    }
    let status = report.status.as_deref().unwrap_or_default();
    // A failure without a status is one for good: the host has given up.
    let permanent = !status.starts_with('4');
    let reason = clean_reason(&format!("{status} reported by a mail host"));
    Some(Happened::Bounced { permanent, signed: false, reason })
}

/// Number of `Received` headers.
fn hops(raw: &[u8]) -> usize {
    const NAME: &[u8] = b"received:";
    let lines = raw.split(|byte| *byte == b'\n').take_while(|line| !line.trim_ascii().is_empty());
    lines.filter(|line| line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_final_report_is_a_bounce() {
        let report = |action: &str, status: Option<&str>| Report {
            recipient: None,
            action: action.to_owned(),
            status: status.map(str::to_owned),
            original_message_id: None,
        };
        for (action, status, permanent) in [
            ("failed", Some("5.1.1"), Some(true)),
            ("Failed", None, Some(true)),
            ("failed", Some("4.4.7"), Some(false)),
            ("delayed", Some("4.4.1"), None),
            ("delivered", Some("2.0.0"), None),
        ] {
            let found = meaning(&report(action, status)).map(|what| match what {
                Happened::Bounced { permanent, signed: false, .. } => permanent,
                other => panic!("{other:?}"),
            });
            assert_eq!(found, permanent, "{action} {status:?}");
        }
    }

    #[test]
    fn what_stands_behind_a_plus_does_not_matter() {
        let plain = |text: &str| plain(&Address::parse(text).unwrap()).map(|address| address.as_str().to_owned());
        assert_eq!(plain("ada+a+b@B.test").as_deref(), Some("ada@b.test"));
        assert_eq!((plain("ada@b.test"), plain("+a@b.test")), (None, None));
    }

    #[test]
    fn every_domain_has_a_postmaster() {
        let is_role = |text: &str| is_role(&Address::parse(text).unwrap());
        assert!(is_role("Postmaster@agents.test") && is_role("abuse@firm.test"));
        assert!(!is_role("postmaster2@agents.test") && !is_role("postmaster+x@agents.test"));
    }

    #[test]
    fn hops_are_counted_in_the_header_only() {
        let mail = b"Received: by a\r\n\tfrom b\r\nRECEIVED: by b\r\nX-Received: c\r\n\r\nReceived: body\r\n";
        assert_eq!(hops(mail), 2);
        assert_eq!(hops(&b"Received: x\n".repeat(40)), 40);
    }
}
