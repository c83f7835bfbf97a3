//! AWS End User Messaging SMS: `SendTextMessage` and `DescribePhoneNumbers`.
//! <https://docs.aws.amazon.com/pinpoint/latest/apireference_smsvoicev2/API_SendTextMessage.html>,
//! `API_DescribePhoneNumbers.html`
//!
//! Requests are signed with the function's own credentials. The members `request_id` and `index` of a text's `Context` come
//! back in its events.

use http::Method;
use messages::hand::{Handed, clean_reason, unanswered};
use platform::config::Capability;
use platform::http::log;
use platform::net::PlainHttp;
use platform::providers::aws::signed;
use platform::providers::{Amount, Ask, Charge, OutboundError};
use platform::store::StoreError;
use platform::store::aws::SignedHttp;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::Toolbox;

use super::{MAX_NUMBERS, Outgoing, VALID_SECS, WHO, max_price};
use crate::number::Number;
use crate::segments::{self, Encoding, Segments};

pub const NAME: &str = "aws_sms";
pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::Sms,
    tools: &["sms"],
    amount: Amount::Unknown("its rates are listed by country, and not on its page of prices"),
};

/// The members of a text's context that its events repeat.
pub const CONTEXT_REQUEST: &str = "request_id";
pub const CONTEXT_INDEX: &str = "index";

/// The signing name.
const SERVICE: &str = "sms-voice";
const JSON: &str = "application/x-amz-json-1.0";
const SEND: &str = "PinpointSMSVoiceV2.SendTextMessage";
const DESCRIBE: &str = "PinpointSMSVoiceV2.DescribePhoneNumbers";
/// AWS's limits are per number and account. Above them it answers `ThrottlingException`, and the text waits.
const PER_SECOND: f64 = 10.0;
/// Numbers of a page: the most that AWS gives. Five pages are [`MAX_NUMBERS`].
const PAGE: usize = 100;
/// User guide, "SMS character limits": 1530 characters of the GSM alphabet or 630 others.
const MAX_SEPTETS: u32 = 1_530;
const MAX_UNITS: u32 = 630;

/// Why AWS does not take a text of this length.
pub fn too_long(segments: &Segments) -> Option<&'static str> {
    match segments.encoding {
        Encoding::Gsm7 if segments.units > MAX_SEPTETS => {
            Some("must have at most 1,530 septets: the provider takes no longer texts")
        }
        Encoding::Ucs2 if segments.units > MAX_UNITS => Some(
            "must have at most 630 characters, because some are not in the GSM alphabet: the provider takes no more",
        ),
        Encoding::Gsm7 | Encoding::Ucs2 => None,
    }
}

/// Sends one text.
pub async fn hand_over(toolbox: &Toolbox, text: Outgoing<'_>, deadline: Instant) -> Handed {
    let own = own_origin(toolbox);
    let body = body(&text, toolbox.config.sms.configuration_set.as_deref());
    // Never repeated after it may have arrived: AWS has no idempotency key for texts.
    let ask = match ask(toolbox, &own, SEND, &body, false) {
        Ok(ask) => ask,
        Err(error) => {
            log::failure("a request to AWS End User Messaging could not be signed", &error);
            return Handed::NotNow { reason: format!("{WHO} is not configured correctly") };
        }
    };
    match toolbox.outbound.send(NAME, &own, &ask, &[400], deadline).await {
        Ok(answer) => {
            let body = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
            answered(answer.status, answer.error_type.as_deref(), &body)
        }
        Err(error) => unanswered(&error, WHO),
    }
}

/// The operator's numbers that send and receive transactional texts.
pub async fn numbers(toolbox: &Toolbox, deadline: Instant) -> Result<Vec<Number>, OutboundError> {
    let own = own_origin(toolbox);
    let mut found: Vec<Number> = Vec::new();
    let mut token: Option<String> = None;
    for _ in 0..MAX_NUMBERS / PAGE {
        let filter = |name: &str, value: &str| json!({"Name": name, "Values": [value]});
        let mut body = json!({
            "Filters": [
                filter("status", "ACTIVE"), filter("number-capability", "SMS"), filter("two-way-enabled", "true"),
                filter("message-type", "TRANSACTIONAL"),
            ],
            "MaxResults": PAGE,
        });
        if let Some(token) = &token {
            body["NextToken"] = json!(token);
        }
        let ask = ask(toolbox, &own, DESCRIBE, &body, true);
        let ask = ask.map_err(|error| OutboundError::NotConfigured(error.to_string()))?;
        let (_, answer) = toolbox.outbound.json(NAME, &own, &ask, &[], deadline).await?;
        found.extend(usable(&answer));
        token = answer["NextToken"].as_str().filter(|token| !token.is_empty()).map(str::to_owned);
        if token.is_none() {
            break;
        }
    }
    found.truncate(MAX_NUMBERS);
    Ok(found)
}

/// The numbers of a page. Simulators reach nobody, and short codes are no [`Number`]s.
fn usable(answer: &Value) -> Vec<Number> {
    let listed = answer["PhoneNumbers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let real = listed.iter().filter(|number| number["NumberType"] != "SIMULATOR");
    real.filter_map(|number| Number::parse(number["PhoneNumber"].as_str()?).ok()).collect()
}

fn body(text: &Outgoing<'_>, configuration_set: Option<&str>) -> Value {
    let mut body = json!({
        "DestinationPhoneNumber": text.to.as_str(),
        "OriginationIdentity": text.from.as_str(),
        "MessageBody": text.body,
        "MessageType": "TRANSACTIONAL",
        "MaxPrice": max_price(segments::of(text.body).count),
        "TimeToLive": VALID_SECS,
        "Context": {CONTEXT_REQUEST: text.request_id.to_string(), CONTEXT_INDEX: text.index.to_string()},
    });
    if let Some(name) = configuration_set {
        body["ConfigurationSetName"] = json!(name);
    }
    body
}

/// AWS's address in the region of this deployment, if `PROVIDER_URLS` names no other.
fn own_origin(toolbox: &Toolbox) -> String {
    let aws = &toolbox.config.aws;
    aws.endpoint.clone().unwrap_or_else(|| format!("https://sms-voice.{}.amazonaws.com", aws.region))
}

/// A signed request for an operation.
fn ask(
    toolbox: &Toolbox,
    own_origin: &str,
    operation: &str,
    body: &Value,
    repeatable: bool,
) -> Result<Ask, StoreError> {
    let body = Some((JSON, body.to_string().into_bytes()));
    let ask = Ask { method: Method::POST, body, repeatable, per_second: PER_SECOND, ..Ask::get("/") };
    let origin = toolbox.config.providers.urls.get(NAME).map_or(own_origin, String::as_str);
    // Only signs; the connections are those of `Outbound`.
    let signer = SignedHttp::new(PlainHttp::new(None), &toolbox.config.aws);
    signed(&signer, SERVICE, origin, ask.header("x-amz-target", operation))
}

/// The outcome of an answer with status 2xx or 400. AWS names the exception in the body, and a `Reason` for some.
fn answered(status: u16, error_type: Option<&str>, body: &Value) -> Handed {
    if status / 100 == 2 {
        let id = body["MessageId"].as_str().map(clean_reason);
        return Handed::Accepted { provider: NAME, provider_message_id: id };
    }
    let text = |name: &str| body[name].as_str().unwrap_or_default();
    // `com.amazonaws.…#ConflictException`, or with a URL behind a colon.
    let kind = if text("__type").is_empty() { error_type.unwrap_or_default() } else { text("__type") };
    let kind = kind.rsplit('#').next().unwrap_or_default().split(':').next().unwrap_or_default();
    let cause = if text("Reason").is_empty() { kind } else { text("Reason") };
    let refused = |why: &str| Handed::Refused { reason: format!("{WHO} {why}") };
    // Messages may repeat numbers, so they are not logged.
    let report = || log::failure("AWS End User Messaging did not take a text", &clean_reason(cause));
    match (kind, cause) {
        (_, "DESTINATION_PHONE_NUMBER_OPTED_OUT") => {
            Handed::Suppressed { reason: "the recipient wants no more texts from this number".to_owned() }
        }
        ("ThrottlingException", _) => Handed::NotNow { reason: format!("{WHO}'s sending limit is reached") },
        ("ServiceQuotaExceededException", _) => {
            report();
            Handed::NotNow { reason: format!("{WHO}'s spending or sending limit is reached") }
        }
        // The names that AWS services share for requests of a wrong identity.
        (
            "AccessDeniedException"
            | "UnrecognizedClientException"
            | "ExpiredTokenException"
            | "InvalidSignatureException"
            | "IncompleteSignature"
            | "MissingAuthenticationTokenException"
            | "OptInRequired",
            _,
        ) => {
            report();
            Handed::NotNow { reason: format!("{WHO} does not accept requests of this deployment") }
        }
        (
            _,
            "DESTINATION_COUNTRY_BLOCKED"
            | "DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION"
            | "COUNTRY_NOT_ENABLED",
        ) => refused("does not send to this country"),
        (_, "DESTINATION_PHONE_NUMBER_BLOCKED_BY_PROTECT_NUMBER_OVERRIDE") => refused("does not send to this number"),
        (_, "PRICE_OVER_THRESHOLD") => refused("asks for more than this deployment pays for such a text"),
        (_, "INTERNATIONAL_SENDING_NOT_SUPPORTED" | "INVALID_IDENTITY_FOR_DESTINATION_COUNTRY") => {
            refused("does not send to this country from this number")
        }
        ("ResourceNotFoundException" | "ValidationException", _) if is_about_sender(body) => {
            report();
            Handed::NoSender { reason: format!("{WHO} does not send from this number") }
        }
        (_, "DESTINATION_PHONE_NUMBER_NOT_VERIFIED") => {
            report();
            refused("is in its sandbox: it sends to verified numbers only")
        }
        _ => {
            report();
            refused(&format!("refused the text: {}", if cause.is_empty() { "no reason given" } else { cause }))
        }
    }
}

/// Whether an exception says that there is no such number of the account: by the type of the missing resource, or by the name
/// of the wrong field.
fn is_about_sender(body: &Value) -> bool {
    let is_sender =
        |field: &Value| field["Name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case("OriginationIdentity"));
    body["ResourceType"] == "phone-number"
        || body["Fields"].as_array().is_some_and(|fields| fields.iter().any(is_sender))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_become_outcomes() {
        let error = |kind: &str, reason: &str| json!({"__type": kind, "Message": "+12065550100", "Reason": reason});
        let conflict = "com.amazonaws.smsvoice#ConflictException";
        let (suppressed, later, refused, no_sender) = ("suppressed", "not now", "refused", "no sender");
        let missing =
            |kind: &str| json!({"__type": "ResourceNotFoundException", "ResourceType": kind, "ResourceId": "x"});
        for (body, expected, words) in [
            (error(conflict, "DESTINATION_PHONE_NUMBER_OPTED_OUT"), suppressed, "wants no more texts"),
            (error(conflict, "DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION"), refused, "this country"),
            (error(conflict, "DESTINATION_PHONE_NUMBER_NOT_VERIFIED"), refused, "sandbox"),
            (error("ConflictException", "RESOURCE_NOT_ACTIVE"), refused, "RESOURCE_NOT_ACTIVE"),
            (error("ValidationException", "PRICE_OVER_THRESHOLD"), refused, "more than this deployment pays"),
            (error("ValidationException", "FIELD_VALIDATION_FAILED"), refused, "FIELD_VALIDATION_FAILED"),
            (error("ResourceNotFoundException", ""), refused, "ResourceNotFoundException"),
            (missing("phone-number"), no_sender, "from this number"),
            (missing("configuration-set"), refused, "ResourceNotFoundException"),
            (
                json!({"__type": "ValidationException", "Reason": "FIELD_VALIDATION_FAILED",
                    "Fields": [{"Name": "OriginationIdentity", "Message": "+12065550100"}]}),
                no_sender,
                "from this number",
            ),
            (error("ThrottlingException:http://internal.amazon.com/", ""), later, "sending limit"),
            (
                error("ServiceQuotaExceededException", "MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT"),
                later,
                "spending or sending limit",
            ),
            (error("AccessDeniedException", "ACCOUNT_DISABLED"), later, "does not accept requests"),
            (Value::Null, refused, "no reason given"),
        ] {
            let (is, reason) = match answered(400, None, &body) {
                Handed::Suppressed { reason } => (suppressed, reason),
                Handed::NotNow { reason } => (later, reason),
                Handed::Refused { reason } => (refused, reason),
                Handed::NoSender { reason } => (no_sender, reason),
                other => panic!("{body}: {other:?}"),
            };
            assert_eq!(is, expected, "{body}");
            assert!(reason.contains(words) && !reason.contains("555"), "{body}: {reason}");
        }
        let in_header = answered(400, Some("ThrottlingException"), &json!({}));
        assert!(matches!(in_header, Handed::NotNow { .. }), "{in_header:?}");
        let id = Some("862a8790".to_owned());
        assert_eq!(
            answered(200, None, &json!({"MessageId": "862a8790"})),
            Handed::Accepted { provider: NAME, provider_message_id: id }
        );
    }

    #[test]
    fn a_text_may_be_as_long_as_aws_takes_it() {
        for (text, expected) in [
            ("a".repeat(1_530), false),
            ("a".repeat(1_531), true),
            ("€".repeat(765), false),
            ("€".repeat(766), true),
            ("я".repeat(630), false),
            ("я".repeat(631), true),
            ("😀".repeat(316), true),
        ] {
            assert_eq!(too_long(&segments::of(&text)).is_some(), expected, "{} characters", text.chars().count());
        }
    }

    #[test]
    fn only_numbers_that_reach_people_are_used() {
        let number = |number: &str, kind: &str| json!({"PhoneNumber": number, "NumberType": kind});
        let page = json!({"PhoneNumbers": [
            number("+12065550142", "TEN_DLC"), number("+14254147755", "SIMULATOR"), number("24273", "SHORT_CODE"),
            json!({"NumberType": "TOLL_FREE"}), number("+18005550123", "TOLL_FREE"),
        ]});
        let found: Vec<Number> = usable(&page);
        assert_eq!(found.iter().map(Number::as_str).collect::<Vec<_>>(), ["+12065550142", "+18005550123"]);
        assert!(usable(&json!({})).is_empty());
    }
}
