//! What providers tell: what became of a text that was sent, and texts that came in.
//!
//! Whoever calls these functions has checked the signature. Events arrive twice, late and out of order;
//! [`recipient::note`] only moves forward. An event about no text of ours changes nothing.
//!
//! A text that came in is known by the provider's id. Its time is that of its first arrival, which makes its own id: one that
//! arrives again is the same item, and nothing once that has expired.

use std::collections::BTreeMap;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::RequestId;
use messages::hand::clean_reason;
use messages::recipient::{self, Happened, State};
use platform::http::log;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::Toolbox;

use crate::inbox::KEPT;
use crate::number::Number;
use crate::opt_out::{self, Why};
use crate::providers::{aws, twilio};
use crate::receive::{self, Incoming};

/// How long an inbound text's first arrival is known. Longer than the text itself is kept.
const REMEMBERED: Duration = Duration::from_secs(60 * 86_400);
/// Longest id of an inbound text, in bytes. AWS sends UUIDs, Twilio `SM` and 32 hex digits.
const MAX_ID_BYTES: usize = 100;

/// When an inbound text first arrived: `EVENT#sms#<id of the provider>` / `SEEN`.
#[derive(Serialize, Deserialize)]
struct Seen {
    at: Timestamp,
    /// Unix seconds.
    expires: i64,
}

/// Applies an event of AWS End User Messaging, published to SNS at `at`: what became of a text, or one that came in. Others are
/// ignored. `event_id` identifies an inbound text without an id.
///
/// # Errors
/// If the database fails; the event must then be delivered again.
pub async fn apply_aws(toolbox: &Toolbox, message: &Value, event_id: &str, at: Timestamp) -> Result<(), StoreError> {
    match read(message) {
        Some(Event::Of { request_id, index, what }) => {
            recipient::note::<Number>(&toolbox.db, request_id, index, &what, toolbox.clock.now()).await.map(drop)
        }
        Some(Event::Received(text)) => {
            let text = Received { id: text.id.or(Some(event_id)), ..text };
            // The publisher's clock may be ahead of ours.
            take(toolbox, &text, at.min(toolbox.clock.now())).await
        }
        None => Ok(()),
    }
}

/// Applies a state that Twilio reports of a text. `request` and `index` are parameters of the address that it was given.
/// <https://www.twilio.com/docs/messaging/guides/track-outbound-message-status>
///
/// # Errors
/// If the database fails; Twilio need not repeat the report.
pub async fn apply_twilio_status(
    toolbox: &Toolbox,
    request: &str,
    index: &str,
    form: &BTreeMap<String, String>,
) -> Result<(), StoreError> {
    let (Some((request_id, index)), Some(what)) = (place(request, index), state(form)) else { return Ok(()) };
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    if code(form) == Some(twilio::OPTED_OUT)
        && let Some(row) = recipient::load::<Number>(db, request_id, index).await?
        && let Ok(from) = Number::parse(&row.sender)
        // A repeated report must not undo a later START.
        && row.state != State::Bounced
    {
        opt_out::set(db, &from, &row.to, true, Why::Provider, now).await?;
    }
    recipient::note::<Number>(db, request_id, index, &what, now).await.map(drop)
}

/// Takes a text that Twilio posts. <https://www.twilio.com/docs/messaging/guides/webhook-request>
///
/// # Errors
/// If the database fails; the operator's fallback URL may then get the text.
pub async fn apply_twilio_inbound(toolbox: &Toolbox, form: &BTreeMap<String, String>) -> Result<(), StoreError> {
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let text = Received {
        from: field("From"),
        to: field("To"),
        body: field("Body"),
        num_media: field("NumMedia").parse().unwrap_or_default(),
        id: Some(field("MessageSid")),
    };
    take(toolbox, &text, toolbox.clock.now()).await
}

/// An event of AWS that concerns us.
enum Event<'a> {
    Of { request_id: RequestId, index: u32, what: Happened },
    Received(Received<'a>),
}

/// A text that came in, as the provider describes it.
struct Received<'a> {
    from: &'a str,
    to: &'a str,
    body: &'a str,
    num_media: u32,
    id: Option<&'a str>,
}

/// Reads an event. <https://docs.aws.amazon.com/sms-voice/latest/userguide/configuration-sets-event-format.html>,
/// `configuration-sets-event-types.html`, `two-way-sms-payload.html`
fn read(message: &Value) -> Option<Event<'_>> {
    let text = |name: &str| message[name].as_str();
    let Some(kind) = text("eventType") else {
        let id = text("inboundMessageId");
        let (from, to, body) = (text("originationNumber")?, text("destinationNumber")?, text("messageBody")?);
        return Some(Event::Received(Received { from, to, body, num_media: 0, id }));
    };
    let context = |name: &str| message["context"][name].as_str().unwrap_or_default();
    let (request_id, index) = place(context(aws::CONTEXT_REQUEST), context(aws::CONTEXT_INDEX))?;
    let what = match kind {
        // Which of the two is sent depends on the country.
        "TEXT_DELIVERED" | "TEXT_SUCCESSFUL" => Happened::Delivered,
        "TEXT_BLOCKED"
        | "TEXT_CARRIER_BLOCKED"
        | "TEXT_CARRIER_UNREACHABLE"
        | "TEXT_INVALID"
        | "TEXT_INVALID_MESSAGE"
        | "TEXT_PROTECT_BLOCKED"
        | "TEXT_SPAM"
        | "TEXT_TTL_EXPIRED"
        | "TEXT_UNKNOWN"
        | "TEXT_UNREACHABLE"
            if message["isFinal"] == true =>
        {
            let reason = clean_reason(text("messageStatusDescription").unwrap_or(kind));
            Happened::Bounced { permanent: true, signed: true, reason }
        }
        _ => return None,
    };
    Some(Event::Of { request_id, index, what })
}

/// Which text an event is about. What we gave to the provider comes back from outside.
fn place(request: &str, index: &str) -> Option<(RequestId, u32)> {
    let (request_id, number): (RequestId, u32) = (request.parse().ok()?, index.parse().ok()?);
    // Both are as we wrote them: without a sign, zeros before them, or another spelling.
    (request_id.to_string() == request && number.to_string() == index).then_some((request_id, number))
}

/// What Twilio's `MessageStatus` means. A text is on its way in all other states.
fn state(form: &BTreeMap<String, String>) -> Option<Happened> {
    match form.get("MessageStatus")?.as_str() {
        "delivered" => Some(Happened::Delivered),
        "undelivered" | "failed" => {
            let reason = twilio::reason(code(form));
            Some(Happened::Bounced { permanent: true, signed: true, reason })
        }
        _ => None,
    }
}

fn code(form: &BTreeMap<String, String>) -> Option<u64> {
    form.get("ErrorCode")?.parse().ok()
}

/// Takes a text into the inbox of the agent that has the number.
async fn take(toolbox: &Toolbox, text: &Received<'_>, now: Timestamp) -> Result<(), StoreError> {
    // An operator's number for something else, or another channel, such as `whatsapp:+1…`.
    let Ok(to) = Number::parse(text.to) else { return Ok(()) };
    let id = text.id.unwrap_or_default();
    let is_id = !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_id {
        log::failure("a text was dropped", &"it came in without an id");
        return Ok(());
    }
    let at = first_seen(&toolbox.db, id, now).await?;
    // It comes again after its item was deleted.
    if now >= at.plus(KEPT) {
        return Ok(());
    }
    let incoming = Incoming {
        from: text.from,
        to: &to,
        body: text.body,
        num_media: text.num_media,
        at,
        event_id: id,
        local_sender: None,
    };
    receive::receive(toolbox, &incoming).await.map(drop)
}

/// When the text with this id first arrived: now, if it is not known.
async fn first_seen(db: &Db, id: &str, now: Timestamp) -> Result<Timestamp, StoreError> {
    let key = || Key::new(format!("EVENT#sms#{id}"), "SEEN");
    let seen = Seen { at: now, expires: now.plus(REMEMBERED).secs() };
    if db.write_if(Write::put(&db.tables.messages, key(), &seen)?.only_if_new()).await? {
        return Ok(now);
    }
    let seen: Option<Seen> = db.get_latest(&db.tables.messages, key()).await?;
    Ok(seen.map_or(now, |seen| seen.at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request() -> RequestId {
        RequestId::bought_with("quote", &[b"q"])
    }

    fn words(what: &Happened) -> String {
        match what {
            Happened::Bounced { permanent: true, signed: true, reason } => format!("undelivered: {reason}"),
            Happened::Delivered => "delivered".to_owned(),
            other => panic!("{other:?}"),
        }
    }

    /// The example of the user guide, with our context.
    fn event(kind: &str, is_final: bool) -> Value {
        json!({
            "eventType": kind, "eventVersion": "1.0", "eventTimestamp": 1_686_975_103_470_u64, "isFinal": is_final,
            "originationPhoneNumber": "+12065550152", "destinationPhoneNumber": "+14255550156",
            "messageId": "862a8790-60c0-4430-9b2b-658bdexample", "messageStatus": "SUCCESSFUL",
            "messageStatusDescription": "Message \u{202e}has been\r\n handled",
            "context": {"request_id": request().to_string(), "index": "17"}, "totalMessageParts": 1,
        })
    }

    #[test]
    fn events_of_aws_become_what_happened_to_a_text() {
        let undelivered = Some("undelivered: Message has been handled");
        for (kind, is_final, expected) in [
            ("TEXT_SUCCESSFUL", true, Some("delivered")),
            ("TEXT_DELIVERED", true, Some("delivered")),
            ("TEXT_UNREACHABLE", true, undelivered),
            ("TEXT_CARRIER_BLOCKED", true, undelivered),
            ("TEXT_PROTECT_BLOCKED", true, undelivered),
            ("TEXT_TTL_EXPIRED", true, undelivered),
            // It is tried again.
            ("TEXT_CARRIER_UNREACHABLE", false, None),
            ("TEXT_QUEUED", false, None),
            ("TEXT_PENDING", false, None),
            ("TEXT_SENT", true, None),
            ("VOICE_FAILED", true, None),
        ] {
            let event = event(kind, is_final);
            let told = match read(&event) {
                Some(Event::Of { request_id, index, what }) => {
                    assert_eq!((request_id, index), (request(), 17));
                    Some(words(&what))
                }
                Some(Event::Received(_)) => panic!("{kind}"),
                None => None,
            };
            assert_eq!(told.as_deref(), expected, "{kind}");
        }
    }

    #[test]
    fn only_our_own_spelling_names_a_text() {
        let id = request().to_string();
        assert_eq!(place(&id, "0"), Some((request(), 0)));
        let (upper, simple) = (id.to_uppercase(), id.replace('-', ""));
        for (request, index) in [
            (id.as_str(), "+1"),
            (&id, "01"),
            (&id, ""),
            (&id, "-1"),
            (&id, "4294967296"),
            (&id, "1 "),
            (&upper, "1"),
            (&simple, "1"),
            ("", "1"),
            ("../x", "1"),
        ] {
            assert_eq!(place(request, index), None, "{request:?} {index:?}");
        }
    }

    #[test]
    fn a_two_way_text_is_read() {
        let message = json!({
            "originationNumber": "+14255550182", "destinationNumber": "+12125550101", "messageKeyword": "JOIN",
            "messageBody": "EXAMPLE", "inboundMessageId": "cae173d2-66b9-564c-8309-21f858e9fb84",
            "previousPublishedMessageId": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        });
        let Some(Event::Received(text)) = read(&message) else { panic!("not read") };
        assert_eq!((text.from, text.to, text.body), ("+14255550182", "+12125550101", "EXAMPLE"));
        assert_eq!(text.id, Some("cae173d2-66b9-564c-8309-21f858e9fb84"));
        for nonsense in [json!({}), json!([]), json!("x"), json!({"eventType": 1}), json!({"messageBody": "x"})] {
            assert!(read(&nonsense).is_none(), "{nonsense}");
        }
    }

    #[test]
    fn states_of_twilio_become_what_happened_to_a_text() {
        for (status, code, expected) in [
            ("delivered", "", Some("delivered")),
            ("undelivered", "30003", Some("undelivered: the text provider could not reach the phone")),
            ("failed", "21610", Some("undelivered: the recipient wants no more texts from this number")),
            ("failed", "", Some("undelivered: the text provider refused the text")),
            ("undelivered", "-1", Some("undelivered: the text provider refused the text")),
            ("sent", "", None),
            ("queued", "", None),
            ("read", "", None),
            ("", "", None),
        ] {
            let form = [("MessageStatus", status), ("ErrorCode", code)];
            let form = form.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let told = state(&BTreeMap::from(form)).map(|what| words(&what));
            assert_eq!(told.as_deref(), expected, "{status} {code}");
        }
        assert_eq!(state(&BTreeMap::new()), None);
    }
}
