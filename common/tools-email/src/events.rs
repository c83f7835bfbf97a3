//! What becomes of a mail after a provider has accepted it, and mail that SES received: this is queued first, because strangers
//! decide how much it is.
//!
//! The caller has checked the signature of the event. Events arrive more than once and in any order: a mail's state
//! only moves forward ([`crate::recipient::note`]), and what an event adds up is counted by the event that moved it.
//!
//! SES repeats what bounce reports say, and anyone can write those. So an event suppresses at most the address that its
//! mail was written to.

use base::clock::Timestamp;
use base::ids::RequestId;
use platform::http::log;
use platform::store::queue::Message;
use platform::store::{StoreError, daily};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tools::Toolbox;

use crate::address::Address;
use crate::domain;
use crate::identity::{May, Proofs};
use crate::mailbox::Verdicts;
use crate::notices;
use crate::providers::{clean_reason, ses};
use crate::receive::{self, Delivered, Envelope};
use crate::recipient::{self, Happened, Recipient};
use crate::standing::{self, Became};
use crate::stats::{self, Count};
use crate::suppression::{self, Why};

/// Received mails are stored by SES below this key of the blob bucket.
pub const RECEIVED: &str = "mail/received/";
/// Metrics: received mails that cannot be read, and the bytes of all that were received.
const UNREADABLE: &str = "MailsUnreadable";
const BYTES_RECEIVED: &str = "MailBytesReceived";
/// Most mails that cannot be read and are kept for the operator, in a UTC day: anybody can write them.
const MAX_UNREADABLE_A_DAY: u32 = 200;
/// Maximum number of recipients of one received mail (RFC 5321 §4.5.3.1.8).
const MAX_RECIPIENTS: usize = 100;
/// Largest mail that SES stored and we can read: the HTTP client takes answers of up to 8 MiB.
const MAX_RECEIVED_BYTES: u64 = 8 * 1024 * 1024 - 64 * 1024;

/// Applies an SES event (event publishing by SNS: Delivery, Bounce, Complaint, Open, Click; or `notificationType`
/// Received with an S3 action, which is queued). Other events are ignored. `event_id` identifies it if the mail has no id.
///
/// # Errors
/// If the database or the blob store fails; the event must then be delivered again.
pub async fn apply_ses(toolbox: &Toolbox, message: &Value, event_id: &str) -> Result<(), StoreError> {
    let now = toolbox.clock.now();
    match read(message) {
        Some(Event::Of { request_id, index, what, address }) => {
            // First, because an address that must not get mail is more important than an exact count.
            if let Some(why) = suppresses(&what)
                && let Some(row) = recipient::load(&toolbox.db, request_id, index).await?
                && names(address.as_deref(), &row.to)
            {
                suppression::suppress(&toolbox.db, row.to.as_str(), None, why, now).await?;
            }
            apply(toolbox, request_id, index, &what, now).await.map(drop)
        }
        Some(Event::Received(received)) => {
            let Some(queue) = &toolbox.mail_queue else { return Err(StoreError::new("MAIL_QUEUE_URL is not set")) };
            let mail = serde_json::to_value(received).map_err(StoreError::new)?;
            queue.send(&Message::Mail { event: event_id.to_owned(), mail }).await
        }
        None => Ok(()),
    }
}

/// Applies what happened to a mail: its state, the counts of its sender, and what its agent is told of a bounce. Returns the
/// mail's row if its state changed. The address is not suppressed.
pub(crate) async fn apply(
    toolbox: &Toolbox,
    request_id: RequestId,
    index: u32,
    what: &Happened,
    now: Timestamp,
) -> Result<Option<Recipient>, StoreError> {
    let db = &toolbox.db;
    let Some(row) = recipient::note(db, request_id, index, what, now).await? else { return Ok(None) };
    let became = match what {
        Happened::Delivered => {
            standing::note_reached(db, &row.to, now).await?;
            None
        }
        // A mail that stayed here was handed to nobody. Whoever got it may write a report of it.
        Happened::Bounced { permanent: true, signed, .. } if *signed || row.provider_message_id.is_some() => {
            Some(Became::Bounced)
        }
        Happened::Complained => Some(Became::Complained),
        _ => None,
    };
    let (count, good, bad) = match what {
        Happened::Delivered => (Count::Delivered, 1, 0),
        Happened::Bounced { permanent, .. } => (Count::Bounced, 0, u32::from(*permanent)),
        Happened::Complained => (Count::Complained, 0, 1),
        Happened::Opened => (Count::Opened, 0, 0),
        Happened::Clicked => (Count::Clicked, 0, 0),
    };
    stats::count(db, row.agent, &row.sender, count, 1, now).await?;
    if good + bad > 0 {
        domain::note_result(db, row.agent, &row.sender, good, bad).await?;
    }
    if let Some(became) = became {
        standing::note(toolbox, row.agent, became, now).await?;
    }
    if let Happened::Bounced { permanent: true, .. } = what {
        notices::tell_bounced(db, &row, now).await?;
    }
    Ok(Some(row))
}

/// Why an address that this happened to gets no more mail.
pub(crate) fn suppresses(what: &Happened) -> Option<Why> {
    match what {
        Happened::Bounced { permanent: true, .. } => Some(Why::Bounced),
        Happened::Complained => Some(Why::Complained),
        _ => None,
    }
}

/// Whether a reported address, if there is one, is the one that the mail was written to. SES also reports `Name <address>`.
fn names(reported: Option<&str>, to: &Address) -> bool {
    reported.is_none_or(|text| bare_address(text).is_some_and(|address| address.folded() == to.folded()))
}

/// An event that concerns us.
enum Event {
    /// `address`: the recipient, as the event names it.
    Of {
        request_id: RequestId,
        index: u32,
        what: Happened,
        address: Option<String>,
    },
    Received(Received),
}

/// A mail that SES stored in S3, as the queue of received mail has it.
#[derive(Serialize, Deserialize)]
struct Received {
    bucket: String,
    key: String,
    from: Option<String>,
    to: Vec<String>,
    id: Option<String>,
    at: Option<Timestamp>,
    verdicts: Verdicts,
    has_virus: bool,
}

/// Reads an event. <https://docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html>,
/// <https://docs.aws.amazon.com/ses/latest/dg/receiving-email-notifications-contents.html>
fn read(message: &Value) -> Option<Event> {
    let kind = message["eventType"].as_str().or_else(|| message["notificationType"].as_str())?;
    if kind == "Received" {
        return received(message).map(Event::Received);
    }
    let tag = |name: &str| message["mail"]["tags"][name][0].as_str();
    let request_id = tag(ses::TAG_REQUEST)?.parse().ok()?;
    let index = tag(ses::TAG_INDEX)?.parse().ok()?;
    let (what, address) = match kind {
        "Delivery" => (Happened::Delivered, None),
        "Bounce" => {
            let bounce = &message["bounce"];
            let recipient = &bounce["bouncedRecipients"][0];
            let words = [&recipient["status"], &recipient["diagnosticCode"], &bounce["bounceSubType"]];
            let reason = words.iter().filter_map(|word| word.as_str()).collect::<Vec<_>>().join(" ");
            let permanent = bounce["bounceType"] == "Permanent";
            let what = Happened::Bounced { permanent, signed: true, reason: clean_reason(&reason) };
            (what, recipient["emailAddress"].as_str())
        }
        // The recipient took the mail back out of the spam folder.
        "Complaint" if message["complaint"]["complaintFeedbackType"] == "not-spam" => return None,
        "Complaint" => {
            let address = message["complaint"]["complainedRecipients"][0]["emailAddress"].as_str();
            // A host may report a whole list; each of our mails has one recipient.
            (Happened::Complained, address)
        }
        // SES found a virus after it had accepted the mail.
        "Reject" => {
            let reason = message["reject"]["reason"].as_str().unwrap_or("rejected by the provider");
            (Happened::Bounced { permanent: false, signed: true, reason: clean_reason(reason) }, None)
        }
        "Open" => (Happened::Opened, None),
        "Click" => (Happened::Clicked, None),
        _ => return None,
    };
    Some(Event::Of { request_id, index, what, address: address.map(str::to_owned) })
}

fn bare_address(text: &str) -> Option<Address> {
    let bare = text.rsplit_once('<').map_or(text, |(_, rest)| rest.trim_end_matches('>'));
    Address::parse(bare.trim()).ok()
}

fn received(message: &Value) -> Option<Received> {
    let (mail, receipt) = (&message["mail"], &message["receipt"]);
    let action = &receipt["action"];
    if action["type"] != "S3" {
        return None;
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let verdict = |name: &str| receipt[name]["status"].as_str().map(str::to_ascii_lowercase);
    let to = receipt["recipients"].as_array()?.iter().filter_map(text).take(MAX_RECIPIENTS).collect();
    Some(Received {
        bucket: text(&action["bucketName"])?,
        key: text(&action["objectKey"])?,
        from: text(&mail["source"]).filter(|from| !from.is_empty() && from != "<>"),
        to,
        id: text(&mail["messageId"]),
        at: mail["timestamp"].as_str().and_then(time),
        verdicts: Verdicts {
            spf: verdict("spfVerdict"),
            dkim: verdict("dkimVerdict"),
            dmarc: verdict("dmarcVerdict"),
            spam: verdict("spamVerdict"),
        },
        has_virus: verdict("virusVerdict").as_deref() == Some("fail"),
    })
}

fn time(text: &str) -> Option<Timestamp> {
    let time = chrono::DateTime::parse_from_rfc3339(text).ok()?;
    Some(Timestamp::from_millis(time.timestamp_millis()))
}

/// Takes a received mail from the bucket into the mailboxes, and deletes the object: what is kept of it was stored anew.
///
/// SES has accepted the mail, so neither an unknown address nor a full mailbox gets a bounce: its sender may be forged. A mail
/// to a known address that cannot be read, or has more than [`MAX_RECEIVED_BYTES`], stays in the bucket and is logged and
/// counted: trying again would not help.
///
/// # Errors
/// If the database or the blob store fails; the message must then be delivered again.
pub async fn take(toolbox: &Toolbox, mail: Value, event_id: &str) -> Result<(), StoreError> {
    let received: Received = serde_json::from_value(mail).map_err(StoreError::new)?;
    let now = toolbox.clock.now();
    let is_ours = toolbox.config.aws.bucket.as_deref() == Some(received.bucket.as_str());
    let is_key = |rest: &str| {
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    // Every other key of the bucket belongs to somebody.
    if !is_ours || !received.key.strip_prefix(RECEIVED).is_some_and(is_key) {
        log::failure("a received mail is not where received mail is stored", &RECEIVED);
        return Ok(());
    }
    let Some(size) = toolbox.blobs.size(&received.key).await? else {
        log::event("a received mail is not in the bucket: it was taken before", json!({"key": received.key}));
        return Ok(());
    };
    log::metric(&toolbox.config.metric_namespace, BYTES_RECEIVED, "Bytes", size);
    let to: Vec<Address> = received.to.iter().filter_map(|to| Address::parse(to).ok()).collect();
    if received.has_virus || !knows_any(toolbox, &to).await? {
        return toolbox.blobs.delete(&received.key).await;
    }
    if size > MAX_RECEIVED_BYTES {
        return keep_unreadable(toolbox, &received.key, &format!("has {size} bytes: too large to be read"), now).await;
    }
    let Some(raw) = toolbox.blobs.get(&received.key).await? else { return Ok(()) };
    // The time identifies the mail, so a repeated event must give the same. One in the future would stay the newest.
    let received_at = received.at.filter(|at| *at <= now).unwrap_or(now);
    let envelope = Envelope {
        from: received.from.as_deref().and_then(bare_address),
        to: &to,
        source: crate::room::source_at_ses(&raw),
        event_id: received.id.as_deref().unwrap_or(event_id),
        received_at,
        verdicts: received.verdicts,
    };
    let delivered = receive::receive(toolbox, &envelope, &raw).await?;
    if delivered.iter().any(|(_, delivered)| *delivered == Delivered::Unreadable) {
        return keep_unreadable(toolbox, &received.key, "cannot be read, or was in a loop", now).await;
    }
    toolbox.blobs.delete(&received.key).await
}

async fn knows_any(toolbox: &Toolbox, to: &[Address]) -> Result<bool, StoreError> {
    let mut proofs = Proofs::new(May::Write);
    for address in to {
        if receive::knows(toolbox, address, &mut proofs).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Leaves a mail in the bucket for the operator, unless there are too many of a day. A repeated event counts again.
async fn keep_unreadable(toolbox: &Toolbox, key: &str, why: &str, now: Timestamp) -> Result<(), StoreError> {
    log::failure("a received mail cannot be read", &format_args!("{key} {why}"));
    log::metric(&toolbox.config.metric_namespace, UNREADABLE, "Count", 1);
    if daily::take(&toolbox.db, "MAILS#unreadable".to_owned(), MAX_UNREADABLE_A_DAY, now).await? {
        return Ok(());
    }
    toolbox.blobs.delete(key).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, more: Value) -> Value {
        let id = RequestId::bought_with("quote", &[b"q"]).to_string();
        let mut event = json!({"eventType": kind, "mail": {"tags": {"request_id": [id], "index": ["17"]}}});
        event.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        event
    }

    fn told(message: &Value) -> Option<(String, Option<String>, bool)> {
        match read(message)? {
            Event::Of { index, what, address, .. } => {
                assert_eq!(index, 17);
                let suppressed = suppresses(&what).is_some();
                let name = match what {
                    Happened::Delivered => "delivered".to_owned(),
                    Happened::Bounced { permanent, reason, signed } => {
                        assert!(signed);
                        format!("bounced {permanent} {reason}")
                    }
                    Happened::Complained => "complained".to_owned(),
                    Happened::Opened => "opened".to_owned(),
                    Happened::Clicked => "clicked".to_owned(),
                };
                Some((name, address, suppressed))
            }
            Event::Received(_) => None,
        }
    }

    #[test]
    fn events_become_what_happened_to_a_mail() {
        let bounce = |kind: &str| {
            json!({"bounce": {"bounceType": kind, "bouncedRecipients": [
                {"emailAddress": "Ann <a@b.test>", "status": "5.1.1", "diagnosticCode": "smtp; 550\r\n no\u{202e} user"}]}})
        };
        let complaint = json!({"complaint": {"complainedRecipients": [{"emailAddress": "a@b.test"}]}});
        let (address, named) = (Some("a@b.test".to_owned()), Some("Ann <a@b.test>".to_owned()));
        for (kind, more, expected) in [
            ("Delivery", json!({}), Some(("delivered", None, false))),
            ("Bounce", bounce("Permanent"), Some(("bounced true 5.1.1 smtp; 550 no user", named.clone(), true))),
            ("Bounce", bounce("Transient"), Some(("bounced false 5.1.1 smtp; 550 no user", named, false))),
            ("Complaint", complaint, Some(("complained", address, true))),
            ("Complaint", json!({"complaint": {"complaintFeedbackType": "not-spam"}}), None),
            ("Reject", json!({"reject": {"reason": "Bad content"}}), Some(("bounced false Bad content", None, false))),
            ("Open", json!({}), Some(("opened", None, false))),
            ("Click", json!({}), Some(("clicked", None, false))),
            ("Send", json!({}), None),
            ("DeliveryDelay", json!({}), None),
        ] {
            let expected = expected.map(|(what, address, is)| (what.to_owned(), address, is));
            assert_eq!(told(&event(kind, more)), expected, "{kind}");
        }
        assert!(read(&json!({"eventType": "Delivery", "mail": {"tags": {}}})).is_none(), "not our mail");
    }

    #[test]
    fn a_report_about_another_address_is_not_about_the_recipient() {
        let to = Address::parse("Ann@b.test").unwrap();
        for (reported, expected) in [
            (None, true),
            (Some("ann@B.test"), true),
            (Some("\"Ann, of b\" <ann@b.test>"), true),
            (Some("eve@b.test"), false),
            (Some("ann@b.test <eve@b.test>"), false),
            (Some("nobody in particular"), false),
            (Some(""), false),
        ] {
            assert_eq!(names(reported, &to), expected, "{reported:?}");
        }
    }

    #[test]
    fn a_received_mail_is_read_with_its_verdicts() {
        let message = json!({
            "notificationType": "Received",
            "mail": {"source": "<>", "messageId": "m1", "timestamp": "2026-11-21T08:25:30.250Z"},
            "receipt": {
                "recipients": ["a@b.test"], "spfVerdict": {"status": "PASS"}, "virusVerdict": {"status": "FAIL"},
                "action": {"type": "S3", "bucketName": "bucket", "objectKey": "mail/received/m1"},
            },
        });
        let Some(Event::Received(received)) = read(&message) else { panic!("not read") };
        assert_eq!((received.from, received.has_virus), (None, true));
        assert_eq!(received.at, Some(Timestamp::from_millis(1_795_249_530_250)));
        assert_eq!((received.verdicts.spf.as_deref(), received.verdicts.dkim), (Some("pass"), None));
    }
}
