//! Amazon SES, API version 2, `SendEmail` with a raw message.
//! <https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html>
//!
//! The request is signed with the function's own credentials. The tags `request_id` and `index` come back in events.

use base::encoding::push_base64;
use http::header::HeaderMap;
use platform::http::log;
use platform::net::PlainHttp;
use platform::providers::{Ask, OutboundError};
use platform::store::StoreError;
use platform::store::aws::SignedHttp;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::Toolbox;

use super::{Handed, Outgoing, clean_reason};

pub const NAME: &str = "ses";

/// The tags of a mail that its events repeat.
pub const TAG_REQUEST: &str = "request_id";
pub const TAG_INDEX: &str = "index";

const PATH: &str = "/v2/email/outbound-emails";
const JSON: &str = "application/json";
/// The headers that the signature adds. The session token is there only with temporary credentials.
const SIGNATURE: [&str; 3] = ["authorization", "x-amz-date", "x-amz-security-token"];
/// SES's own limit is per account (1 in the sandbox, then 14 and more). Above it SES answers 429, and the mail waits.
const PER_SECOND: f64 = 14.0;

/// Sends one mail.
pub async fn hand_over(toolbox: &Toolbox, mail: Outgoing<'_>, deadline: Instant) -> Handed {
    let aws = &toolbox.config.aws;
    let own = aws.endpoint.clone().unwrap_or_else(|| format!("https://email.{}.amazonaws.com", aws.region));
    let origin = toolbox.config.providers.urls.get(NAME).unwrap_or(&own);
    let body = body(&mail, toolbox.config.email.configuration_set.as_deref());
    let ask = match signed(toolbox, origin, body.to_string().into_bytes()) {
        Ok(ask) => ask,
        Err(error) => {
            log::failure("a request to SES could not be signed", &error);
            return Handed::NotNow { reason: "the mail provider is not configured correctly".to_owned() };
        }
    };
    match toolbox.outbound.send(NAME, &own, &ask, &[400, 404], deadline).await {
        Ok(answer) => {
            let body = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
            answered(answer.status, answer.error_type.as_deref(), &body)
        }
        Err(error) => unanswered(&error),
    }
}

fn body(mail: &Outgoing<'_>, configuration_set: Option<&str>) -> Value {
    let mut data = String::with_capacity(mail.raw.len() / 3 * 4 + 4);
    push_base64(mail.raw, &mut data);
    let mut body = json!({
        "FromEmailAddress": mail.from.as_str(),
        "Destination": {"ToAddresses": [mail.to.as_str()]},
        "Content": {"Raw": {"Data": data}},
        "EmailTags": [
            {"Name": TAG_REQUEST, "Value": mail.request_id.to_string()},
            {"Name": TAG_INDEX, "Value": mail.index.to_string()},
        ],
    });
    if let Some(name) = configuration_set {
        body["ConfigurationSetName"] = json!(name);
    }
    body
}

/// The request with AWS Signature Version 4. Never repeated after it may have arrived: SES has no idempotency key.
fn signed(toolbox: &Toolbox, origin: &str, body: Vec<u8>) -> Result<Ask, StoreError> {
    // Only signs; the connections are those of `Outbound`.
    let signer = SignedHttp::new(PlainHttp::new(None), &toolbox.config.aws);
    let request = signer.sign("ses", "POST", &format!("{origin}{PATH}"), &[("content-type", JSON)], body)?;
    let (head, body) = request.into_parts();
    let ask = Ask {
        method: http::Method::POST,
        body: Some((JSON, body)),
        repeatable: false,
        per_second: PER_SECOND,
        ..Ask::get(PATH)
    };
    Ok(SIGNATURE.into_iter().fold(ask, |ask, name| match text_of(&head.headers, name) {
        Some(value) => ask.header(name, value),
        None => ask,
    }))
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// The outcome of an answer with status 2xx, 400 or 404.
///
/// SES names the exception in the header `X-Amzn-ErrorType`, and some servers in the body. Without a name, the words of
/// the message decide. A temporary refusal that is not recognised counts as a final one: the mail is then not sent, and not
/// charged.
fn answered(status: u16, error_type: Option<&str>, body: &Value) -> Handed {
    if status / 100 == 2 {
        let id = body["MessageId"].as_str().map(clean_reason);
        return Handed::Accepted { provider: NAME, provider_message_id: id };
    }
    let text = |name: &str| body[name].as_str().unwrap_or_default();
    let message = clean_reason(if text("message").is_empty() { text("Message") } else { text("message") });
    // `com.amazonaws.ses#MessageRejected`, or with a URL behind a colon.
    let in_body = if text("__type").is_empty() { text("code") } else { text("__type") };
    let kind = error_type.filter(|name| !name.is_empty()).unwrap_or(in_body);
    let kind = kind.rsplit('#').next().unwrap_or_default().split(':').next().unwrap_or_default();
    let lower = message.to_ascii_lowercase();
    let says = |words: &[&str]| kind.is_empty() && words.iter().any(|word| lower.contains(word));
    let is_paused = matches!(kind, "SendingPausedException" | "AccountSuspendedException")
        || says(&["sending paused", "has been paused", "suspended", "shut down"]);
    let is_limit = matches!(kind, "LimitExceededException" | "TooManyRequestsException")
        || says(&["quota exceeded", "rate exceeded", "sending rate"]);
    if is_paused {
        // Messages may repeat addresses, so they are not logged.
        log::failure("SES does not send for this account", &kind);
        return Handed::NotNow { reason: "the mail provider has paused this deployment".to_owned() };
    }
    if is_limit {
        return Handed::NotNow { reason: "the mail provider's sending limit is reached".to_owned() };
    }
    if kind == "MailFromDomainNotVerifiedException" || lower.contains("not verified") {
        log::failure("SES refused a sender or, in its sandbox, a recipient, as not verified", &kind);
        return Handed::Refused { reason: "the mail provider does not accept this sender".to_owned() };
    }
    let reason = if message.is_empty() { format!("the mail provider answered HTTP {status}") } else { message };
    Handed::Refused { reason }
}

/// The outcome without a usable answer. A status of 500 and above does not say whether the mail was accepted.
fn unanswered(error: &OutboundError) -> Handed {
    let reason = format!("the mail provider {error}");
    match error {
        OutboundError::NotConfigured(_)
        | OutboundError::NotAsked(_)
        | OutboundError::TooMany
        | OutboundError::Unauthorized(_) => Handed::NotNow { reason },
        OutboundError::Refused(400..=499) => Handed::Refused { reason },
        OutboundError::Refused(_)
        | OutboundError::Unknown(_)
        | OutboundError::Unreadable(_)
        | OutboundError::Failed(_) => Handed::Unknown { reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    enum Is {
        Accepted,
        Refused,
        NotNow,
        Unknown,
    }

    fn is(handed: &Handed) -> Is {
        match handed {
            Handed::Accepted { .. } => Is::Accepted,
            Handed::Refused { .. } => Is::Refused,
            Handed::NotNow { .. } => Is::NotNow,
            Handed::Unknown { .. } => Is::Unknown,
        }
    }

    #[test]
    fn only_a_mail_that_was_certainly_not_accepted_may_be_sent_again() {
        for (error_type, message, outcome) in [
            ("MessageRejected", "The account is suspended, says the text of the mail", Is::Refused),
            ("LimitExceededException", "Try later.", Is::NotNow),
            ("SendingPausedException", "", Is::NotNow),
            ("BadRequestException", "Daily message quota exceeded.", Is::Refused),
        ] {
            let body = json!({"message": message, "code": "TooManyRequestsException"});
            assert_eq!(is(&answered(400, Some(error_type), &body)), outcome, "{error_type}");
        }
        for (status, body, outcome) in [
            (200, json!({"MessageId": "0100018f"}), Is::Accepted),
            (200, Value::Null, Is::Accepted),
            (400, json!({"__type": "com.amazonaws.ses#MessageRejected", "message": "no"}), Is::Refused),
            (400, json!({"message": "Email address is not verified. The following identities failed"}), Is::Refused),
            (400, json!({"code": "MailFromDomainNotVerifiedException"}), Is::Refused),
            (400, json!({"__type": "LimitExceededException:http://x/"}), Is::NotNow),
            (400, json!({"message": "Daily message quota exceeded."}), Is::NotNow),
            (400, json!({"message": "Sending paused for this account."}), Is::NotNow),
            (400, json!({"code": "AccountSuspendedException", "Message": "x"}), Is::NotNow),
            (404, json!({"message": "Configuration set does not exist"}), Is::Refused),
        ] {
            assert_eq!(is(&answered(status, None, &body)), outcome, "{status} {body}");
        }
        let why = || "cause".to_owned();
        for (error, outcome) in [
            (OutboundError::NotAsked(why()), Is::NotNow),
            (OutboundError::TooMany, Is::NotNow),
            (OutboundError::Unauthorized(403), Is::NotNow),
            (OutboundError::Refused(413), Is::Refused),
            (OutboundError::Refused(503), Is::Unknown),
            (OutboundError::Unknown(why()), Is::Unknown),
        ] {
            assert_eq!(is(&unanswered(&error)), outcome, "{error:?}");
        }
    }
}
