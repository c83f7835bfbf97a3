//! Twilio: creating a message, and the account's phone numbers.
//! <https://www.twilio.com/docs/messaging/api/message-resource>,
//! <https://www.twilio.com/docs/phone-numbers/api/incomingphonenumber-resource>,
//! <https://www.twilio.com/docs/api/errors>
//!
//! The key is `<account SID>:<auth token>`. With the same token Twilio signs what it posts.

use base::encoding::base64_standard;
use http::Method;
use messages::hand::{Handed, clean_reason, unanswered};
use platform::config::{Capability, Config, Redacted};
use platform::http::log;
use platform::providers::{Amount, Ask, Charge, Outbound, OutboundError};
use serde_json::Value;
use tokio::time::Instant;
use tools::Toolbox;
use url::form_urlencoded::Serializer;

use super::{MAX_NUMBERS, Outgoing, VALID_SECS, WHO, max_price};
use crate::number::Number;
use crate::segments;
use crate::signature;

pub const NAME: &str = "twilio";
pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::Sms,
    tools: &["sms"],
    amount: Amount::public(
        10_800,
        "a segment in the US with the lowest carrier fee",
        "https://www.twilio.com/en-us/sms/pricing/us",
        "2026-11",
    ),
};

/// The parameters of the address that a text's states are posted to.
pub const PARAM_REQUEST: &str = "request";
pub const PARAM_INDEX: &str = "index";
/// The recipient has answered STOP. <https://www.twilio.com/docs/api/errors/21610>
pub const OPTED_OUT: u64 = 21_610;

/// The sender is no number of the account that texts (to this recipient), no number of Twilio at all, or another account's.
/// <https://www.twilio.com/docs/api/errors/21606>, `21659`, `21660`
const NOT_OURS: u64 = 21_606;
const NOT_A_SENDER: u64 = 21_659;
const MISMATCH: u64 = 21_660;

const ORIGIN: &str = "https://api.twilio.com";
const STATUS_PATH: &str = "/v1/providers/twilio/status";
const INBOUND_PATH: &str = "/v1/providers/twilio/inbound";
const FORM: &str = "application/x-www-form-urlencoded";
/// Twilio queues what a number cannot send at once, so this only keeps its API from answering 429.
const PER_SECOND: f64 = 20.0;

/// The operator's account.
#[derive(Clone, Debug)]
pub struct Account {
    sid: String,
    token: Redacted,
}

impl Account {
    /// The account of `PROVIDER_KEYS`.
    pub async fn of(outbound: &Outbound) -> Result<Account, OutboundError> {
        let key = outbound.needed_key(NAME).await?;
        let unreadable =
            || OutboundError::NotConfigured("the key of twilio is not <account SID>:<auth token>".to_owned());
        Account::read(key.expose()).ok_or_else(unreadable)
    }

    fn read(key: &str) -> Option<Account> {
        let (sid, token) = key.split_once(':').filter(|(sid, token)| is_sid(sid) && !token.is_empty())?;
        Some(Account { sid: sid.to_owned(), token: Redacted::new(token) })
    }

    /// Whether Twilio has signed a request: see [`signature::is_signed`].
    pub fn has_signed(&self, url: &str, body: &[u8], signature: &str) -> bool {
        signature::is_signed(self.token.expose(), url, body, signature)
    }

    /// A request about this account.
    fn ask(&self, resource: &str) -> Ask {
        let credentials = base64_standard(format!("{}:{}", self.sid, self.token.expose()).as_bytes());
        let path = format!("/2010-04-01/Accounts/{}/{resource}", self.sid);
        Ask { per_second: PER_SECOND, ..Ask::get(path) }.header("authorization", format!("Basic {credentials}"))
    }
}

/// The SID becomes part of a path.
fn is_sid(text: &str) -> bool {
    text.starts_with("AC") && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Sends one text.
pub async fn hand_over(toolbox: &Toolbox, text: Outgoing<'_>, deadline: Instant) -> Handed {
    let account = match Account::of(&toolbox.outbound).await {
        Ok(account) => account,
        Err(error) => {
            log::failure("Twilio cannot be used", &error.detail());
            return unanswered(&error, WHO);
        }
    };
    let body = Some((FORM, form(&toolbox.config, &text).into_bytes()));
    // Never repeated after it may have arrived: Twilio has no idempotency key for messages.
    let ask = Ask { method: Method::POST, body, repeatable: false, ..account.ask("Messages.json") };
    match toolbox.outbound.send(NAME, ORIGIN, &ask, &[400], deadline).await {
        Ok(answer) => {
            let body = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
            answered(answer.status, &body)
        }
        Err(error) => unanswered(&error, WHO),
    }
}

/// The account's numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Those that agents get: they send texts, and what they receive is posted to this deployment.
    pub usable: Vec<Number>,
    /// How many cannot text, or are no numbers as agents have them (short codes).
    pub without_texts: usize,
    /// How many have their received texts posted elsewhere, or nowhere.
    pub elsewhere: usize,
}

/// The account's numbers, at most [`MAX_NUMBERS`].
pub async fn list(toolbox: &Toolbox, deadline: Instant) -> Result<Listed, OutboundError> {
    let account = Account::of(&toolbox.outbound).await?;
    let ask = account.ask(&format!("IncomingPhoneNumbers.json?PageSize={MAX_NUMBERS}"));
    let (_, answer) = toolbox.outbound.json(NAME, ORIGIN, &ask, &[], deadline).await?;
    Ok(sorted(toolbox.config.base_url.as_deref(), &answer))
}

/// The address that received texts have to be posted to.
pub fn inbound_url(base: &str) -> String {
    format!("{base}{INBOUND_PATH}")
}

/// Without an address of its own (`base`), this deployment cannot tell which numbers are set up for it, and takes all.
fn sorted(base: Option<&str>, answer: &Value) -> Listed {
    let inbound = base.map(inbound_url);
    let mut found = Listed::default();
    for number in answer["incoming_phone_numbers"].as_array().into_iter().flatten().take(MAX_NUMBERS) {
        let able = number["capabilities"]["sms"] == true;
        match number["phone_number"].as_str().and_then(|text| Number::parse(text).ok()).filter(|_| able) {
            None => found.without_texts += 1,
            Some(_) if inbound.as_ref().is_some_and(|inbound| !is_posted_to(number, inbound)) => found.elsewhere += 1,
            Some(number) => found.usable.push(number),
        }
    }
    found
}

/// Whether Twilio posts what a number receives to this address. A TwiML application of the number replaces its address.
fn is_posted_to(number: &Value, address: &str) -> bool {
    let text = |name: &str| number[name].as_str().unwrap_or_default();
    // Parameters are signed with the address, and what follows `#` is for Twilio alone.
    let url = text("sms_url").split(['?', '#']).next().unwrap_or_default();
    url == address && text("sms_application_sid").is_empty() && text("sms_method") != "GET"
}

fn form(config: &Config, text: &Outgoing<'_>) -> String {
    let mut form = Serializer::new(String::new());
    form.append_pair("To", text.to.as_str())
        .append_pair("From", text.from.as_str())
        .append_pair("Body", text.body)
        // Otherwise Twilio replaces characters, and the text is not the one that was counted.
        .append_pair("SmartEncoded", "false")
        .append_pair("ValidityPeriod", &VALID_SECS.to_string())
        .append_pair("MaxPrice", &max_price(segments::of(text.body).count));
    // Without an address of its own, this deployment cannot be told.
    if let Some(base) = &config.base_url {
        let (request, index) = (text.request_id, text.index);
        let address = format!("{base}{STATUS_PATH}?{PARAM_REQUEST}={request}&{PARAM_INDEX}={index}");
        form.append_pair("StatusCallback", &address);
    }
    form.finish()
}

/// The outcome of an answer with status 2xx or 400: `{"code": 21610, "message": "…", "more_info": "…", "status": 400}`.
fn answered(status: u16, body: &Value) -> Handed {
    if status / 100 == 2 {
        let id = body["sid"].as_str().map(clean_reason);
        return Handed::Accepted { provider: NAME, provider_message_id: id };
    }
    let code = body["code"].as_u64();
    match code {
        Some(OPTED_OUT) => Handed::Suppressed { reason: reason(code) },
        // Too many requests; the number's rate; its queue is full; the account's texts of a day.
        Some(20_429 | 14_107 | 21_611 | 63_038) => {
            Handed::NotNow { reason: format!("{WHO}'s sending limit is reached") }
        }
        _ => {
            // Messages may repeat numbers, so they are not logged.
            log::failure("Twilio refused a text", &format_args!("error {}", code.unwrap_or_default()));
            let reason = reason(code);
            match code {
                Some(NOT_OURS | NOT_A_SENDER | MISMATCH) => Handed::NoSender { reason },
                _ => Handed::Refused { reason },
            }
        }
    }
}

/// What an error of Twilio means to the sender.
pub fn reason(code: Option<u64>) -> String {
    let why = match code {
        Some(OPTED_OUT) => return "the recipient wants no more texts from this number".to_owned(),
        Some(21_211 | 21_217 | 21_614 | 30_006) => "says that this number cannot get texts",
        Some(21_408 | 21_612) => "does not send to this country from this number",
        Some(21_608) => "is on trial: it sends to verified numbers only",
        Some(NOT_OURS | NOT_A_SENDER | MISMATCH) => "does not send from this number",
        Some(30_003 | 30_005) => "could not reach the phone",
        Some(30_004) => "says that the phone blocks the text",
        Some(30_007) => "or the recipient's carrier took the text for spam",
        Some(30_032 | 30_034) => "has not registered this number for such texts",
        Some(code) => return format!("{WHO} refused the text (error {code})"),
        None => "refused the text",
    };
    format!("{WHO} {why}")
}

#[cfg(test)]
mod tests {
    use base::ids::RequestId;
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_become_outcomes() {
        let error = |code: u64| json!({"code": code, "message": "To +12065550100 \u{202e}", "status": 400});
        let (suppressed, later, refused, no_sender) = ("suppressed", "not now", "refused", "no sender");
        for (body, expected, words) in [
            (error(21_610), suppressed, "wants no more texts"),
            (error(21_611), later, "sending limit"),
            (error(14_107), later, "sending limit"),
            (error(63_038), later, "sending limit"),
            (error(21_211), refused, "cannot get texts"),
            (error(21_408), refused, "country"),
            (error(21_606), no_sender, "from this number"),
            (error(21_659), no_sender, "from this number"),
            (error(21_660), no_sender, "from this number"),
            (error(99_999), refused, "error 99999"),
            (json!("<html>"), refused, "refused the text"),
        ] {
            let (is, reason) = match answered(400, &body) {
                Handed::Suppressed { reason } => (suppressed, reason),
                Handed::NotNow { reason } => (later, reason),
                Handed::Refused { reason } => (refused, reason),
                Handed::NoSender { reason } => (no_sender, reason),
                other => panic!("{body}: {other:?}"),
            };
            assert_eq!(is, expected, "{body}");
            assert!(reason.contains(words) && !reason.contains("555"), "{body}: {reason}");
        }
        let accepted = Handed::Accepted { provider: NAME, provider_message_id: Some("SM1".to_owned()) };
        assert_eq!(answered(201, &json!({"sid": "SM1", "status": "queued"})), accepted);
    }

    #[test]
    fn only_numbers_whose_texts_arrive_here_are_used() {
        let ours = "https://a.test/v1/providers/twilio/inbound";
        let number = |line: u32, sms: bool, more: Value| {
            let mut number = json!({"phone_number": format!("+1206555{line}"), "capabilities": {"sms": sms}});
            number.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            number
        };
        let listed = json!({"incoming_phone_numbers": [
            number(2001, true, json!({"sms_url": ours, "sms_method": "POST", "sms_application_sid": ""})),
            number(2002, true, json!({"sms_url": format!("{ours}#rc=2")})),
            number(2003, false, json!({"sms_url": ours})),
            number(2004, true, json!({"sms_url": "https://demo.twilio.com/welcome/sms/reply"})),
            number(2005, true, json!({"sms_url": ""})),
            number(2006, true, json!({"sms_url": format!("{ours}/more")})),
            number(2007, true, json!({"sms_url": ours, "sms_application_sid": "AP1"})),
            number(2008, true, json!({"sms_url": ours, "sms_method": "GET"})),
            json!({"phone_number": "24273", "capabilities": {"sms": true}, "sms_url": ours}),
        ]});
        let found = sorted(Some("https://a.test"), &listed);
        let usable: Vec<&str> = found.usable.iter().map(Number::as_str).collect();
        assert_eq!((usable, found.without_texts, found.elsewhere), (vec!["+12065552001", "+12065552002"], 2, 5));
        let of_any_address = sorted(None, &listed);
        assert_eq!((of_any_address.usable.len(), of_any_address.elsewhere), (7, 0));
        assert_eq!(sorted(None, &json!({})), Listed::default());
    }

    #[test]
    fn a_form_has_everything_that_the_text_needs() {
        let (from, to) = (Number::fictitious(0), Number::fictitious(1));
        let request_id = RequestId::bought_with("quote", &[b"q"]);
        let body = "a=1&b=\u{20ac} +\n".repeat(20);
        let text = Outgoing { from: &from, to: &to, body: &body, request_id, index: 7 };
        let form = |config: &Config| signature::form(form(config, &text).as_bytes());
        let mut config =
            Config::read(|name| (name == "PAY_TO").then(|| "0x00000000000000000000000000000000000000ff".to_owned()))
                .unwrap();
        assert!(!form(&config).contains_key("StatusCallback"));
        config.base_url = Some("https://a.test".to_owned());
        let form = form(&config);
        let callback = format!("https://a.test/v1/providers/twilio/status?request={request_id}&index=7");
        for (name, value) in [
            ("To", to.as_str()),
            ("From", from.as_str()),
            ("Body", body.as_str()),
            ("SmartEncoded", "false"),
            ("ValidityPeriod", "14400"),
            ("MaxPrice", "0.20"),
            ("StatusCallback", callback.as_str()),
        ] {
            assert_eq!(form.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert_eq!(form.len(), 7);
    }

    #[test]
    fn a_key_is_an_account_and_its_token() {
        for (key, expected) in [
            ("AC0123456789abcdef0123456789abcdef:secret", true),
            ("AC0123456789abcdef0123456789abcdef:", false),
            ("AC0123456789abcdef0123456789abcdef", false),
            ("AC01/../x:secret", false),
            ("SK0123456789abcdef0123456789abcdef:secret", false),
        ] {
            let account = Account::read(key);
            assert_eq!(account.is_some(), expected, "{key}");
            assert!(!format!("{account:?}").contains("secret"), "{key}");
        }
    }
}
