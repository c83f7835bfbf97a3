//! Amazon SES, API version 2: `SendEmail` with a raw message, and the identities of agents' own domains.
//! <https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html>, `API_CreateEmailIdentity.html`,
//! `API_GetEmailIdentity.html`, `API_DeleteEmailIdentity.html`
//!
//! Requests are signed with the function's own credentials. The tags `request_id` and `index` of a mail come back in its
//! events. An identity has a tag with the deployment's name: only identities with it are deleted, here and by the role.

use base::encoding::push_base64;
use http::Method;
use platform::config::Capability;
use platform::http::log;
use platform::net::PlainHttp;
use platform::providers::{Amount, Ask, Charge, aws};
use platform::store::StoreError;
use platform::store::aws::SignedHttp;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::Toolbox;

use super::{Handed, Outgoing, clean_reason, unanswered};

pub const NAME: &str = "ses";
pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::Email,
    tools: &["email"],
    amount: Amount::public(160, "a mail to one recipient", "https://aws.amazon.com/ses/pricing/", "2026-08"),
};

/// The tags of a mail that its events repeat.
pub const TAG_REQUEST: &str = "request_id";
pub const TAG_INDEX: &str = "index";

const PATH: &str = "/v2/email/outbound-emails";
const JSON: &str = "application/json";
/// SES's own limit is per account (1 in the sandbox, then 14 and more). Above it SES answers 429, and the mail waits.
const PER_SECOND: f64 = 14.0;

const IDENTITIES: &str = "/v2/email/identities";
/// SES takes one such request a second for the whole account.
const IDENTITIES_PER_SECOND: f64 = 1.0;
/// The tag of identities that a deployment made; its value is the deployment's name (`TABLE_PREFIX`).
const TAG_DEPLOYMENT: &str = "agora-deployment";
/// The zone of the DKIM keys, if SES names no other.
const DKIM_ZONE: &str = "dkim.amazonses.com";
/// Easy DKIM has this many tokens.
const MAX_TOKENS: usize = 3;

/// Sends one mail.
pub async fn hand_over(toolbox: &Toolbox, mail: Outgoing<'_>, deadline: Instant) -> Handed {
    let own = own_origin(toolbox);
    let body = body(&mail, toolbox.config.email.configuration_set.as_deref());
    // Never repeated after it may have arrived: SES has no idempotency key for mails.
    let ask = Ask { method: Method::POST, repeatable: false, per_second: PER_SECOND, ..Ask::get(PATH) };
    let ask = match signed(toolbox, &own, ask, Some(&body)) {
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
        Err(error) => unanswered(&error, "the mail provider"),
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

/// SES's address in the region of this deployment, if `PROVIDER_URLS` names no other.
fn own_origin(toolbox: &Toolbox) -> String {
    let aws = &toolbox.config.aws;
    aws.endpoint.clone().unwrap_or_else(|| format!("https://email.{}.amazonaws.com", aws.region))
}

/// The request with AWS Signature Version 4.
fn signed(toolbox: &Toolbox, own_origin: &str, ask: Ask, body: Option<&Value>) -> Result<Ask, StoreError> {
    // Only signs; the connections are those of `Outbound`.
    let signer = SignedHttp::new(PlainHttp::new(None), &toolbox.config.aws);
    let origin = toolbox.config.providers.urls.get(NAME).map_or(own_origin, String::as_str);
    let body = body.map(|body| (JSON, body.to_string().into_bytes()));
    aws::signed(&signer, "ses", origin, Ask { body, ..ask })
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

/// What SES knows of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// `VerifiedForSendingStatus`: SES takes mail from it.
    pub may_send: bool,
    pub dkim: Dkim,
    /// The names of the CNAME records below `_domainkey.<domain>`, and what they point to.
    pub records: Vec<(String, String)>,
    /// The domain of bounces, whose SPF record counts, if it is set up.
    pub mail_from: Option<String>,
    /// This deployment made it.
    pub is_ours: bool,
}

/// `DkimAttributes.Status`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dkim {
    Success,
    /// SES looked for the records for 72 hours, and has given up.
    Failed,
    /// It saw them before and cannot at the moment.
    TemporaryFailure,
    Pending,
}

/// Why SES did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityError {
    /// For good: SES takes no such domain.
    Refused,
    /// The account has as many identities as it may have.
    Full,
    /// No answer, or none that says anything. It may be asked again.
    Unavailable,
}

/// Makes the domain an identity with Easy DKIM. If it is one already, returns that one.
pub async fn create_identity(toolbox: &Toolbox, domain: &str, deadline: Instant) -> Result<Identity, IdentityError> {
    let mut body = json!({
        "EmailIdentity": domain,
        "Tags": [{"Key": TAG_DEPLOYMENT, "Value": deployment(toolbox)}],
    });
    if let Some(name) = &toolbox.config.email.configuration_set {
        body["ConfigurationSetName"] = json!(name);
    }
    let (status, answer) = about_identity(toolbox, Method::POST, IDENTITIES.to_owned(), Some(&body), deadline).await?;
    if status / 100 == 2 {
        return Ok(Identity { is_ours: true, ..read_identity(&answer, domain, "") });
    }
    // `AlreadyExistsException` and the others have one status, and the name is in a header that `PlainAnswer` lacks.
    match get_identity(toolbox, domain, deadline).await? {
        Some(known) => Ok(known),
        None => {
            // Messages may repeat the domain, so they are not logged.
            let message = answer["message"].as_str().or(answer["Message"].as_str()).unwrap_or_default();
            let message = message.to_ascii_lowercase();
            let is_full = ["limit", "quota", "maximum"].iter().any(|word| message.contains(word));
            log::failure("SES did not take a domain", &if is_full { "its quota is used up" } else { "it is refused" });
            Err(if is_full { IdentityError::Full } else { IdentityError::Refused })
        }
    }
}

/// What SES knows of a domain; `None` if it is no identity.
pub async fn get_identity(
    toolbox: &Toolbox,
    domain: &str,
    deadline: Instant,
) -> Result<Option<Identity>, IdentityError> {
    let path = format!("{IDENTITIES}/{domain}");
    match about_identity(toolbox, Method::GET, path, None, deadline).await? {
        (404, _) => Ok(None),
        (200, answer) => Ok(Some(read_identity(&answer, domain, deployment(toolbox)))),
        _ => Err(IdentityError::Unavailable),
    }
}

/// Deletes an identity that this deployment made. One that is gone is no error.
pub async fn delete_identity(toolbox: &Toolbox, domain: &str, deadline: Instant) -> Result<(), IdentityError> {
    let path = format!("{IDENTITIES}/{domain}");
    match about_identity(toolbox, Method::DELETE, path, None, deadline).await? {
        (200 | 404, _) => Ok(()),
        _ => Err(IdentityError::Unavailable),
    }
}

/// The name of this deployment: the template gives it as the value of the tag, too.
fn deployment(toolbox: &Toolbox) -> &str {
    let table = toolbox.db.tables.messages.as_str();
    table.strip_suffix("-messages").unwrap_or(table)
}

/// A request about identities, and its answer with status 2xx, 400 or 404. Each of them may be repeated.
async fn about_identity(
    toolbox: &Toolbox,
    method: Method,
    path: String,
    body: Option<&Value>,
    deadline: Instant,
) -> Result<(u16, Value), IdentityError> {
    let own = own_origin(toolbox);
    let ask = Ask { method, per_second: IDENTITIES_PER_SECOND, ..Ask::get(path) };
    let ask = signed(toolbox, &own, ask, body).map_err(|error| {
        log::failure("a request to SES could not be signed", &error);
        IdentityError::Unavailable
    })?;
    // `Outbound` has logged the error.
    let answer = toolbox.outbound.send(NAME, &own, &ask, &[400, 404], deadline).await;
    let answer = answer.map_err(|_| IdentityError::Unavailable)?;
    Ok((answer.status, serde_json::from_slice(&answer.body).unwrap_or(Value::Null)))
}

/// Reads the answer of `CreateEmailIdentity` or `GetEmailIdentity`. Only what can be a DNS name becomes a record.
fn read_identity(answer: &Value, domain: &str, deployment: &str) -> Identity {
    let attributes = &answer["DkimAttributes"];
    let is_name = |text: &&str| {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        !text.is_empty() && text.len() <= 200 && text.bytes().all(is_fit)
    };
    let zone = attributes["SigningHostedZone"].as_str().filter(is_name).unwrap_or(DKIM_ZONE);
    // With a key of its owner's (`EXTERNAL`), the token is a selector, and no record points to SES.
    let is_easy = attributes["SigningAttributesOrigin"] != "EXTERNAL";
    let tokens = attributes["Tokens"].as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_str);
    let records = tokens.filter(|token| is_easy && is_name(token)).take(MAX_TOKENS);
    let records = records.map(|token| (format!("{token}._domainkey.{domain}"), format!("{token}.{zone}")));
    let tags = answer["Tags"].as_array().map_or(&[][..], Vec::as_slice);
    Identity {
        may_send: answer["VerifiedForSendingStatus"] == true,
        dkim: match attributes["Status"].as_str() {
            Some("SUCCESS") => Dkim::Success,
            Some("FAILED") => Dkim::Failed,
            Some("TEMPORARY_FAILURE") => Dkim::TemporaryFailure,
            _ => Dkim::Pending,
        },
        records: records.collect(),
        mail_from: answer["MailFromAttributes"]["MailFromDomain"].as_str().filter(is_name).map(str::to_owned),
        is_ours: tags.iter().any(|tag| tag["Key"] == TAG_DEPLOYMENT && tag["Value"] == deployment),
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
        Other,
    }

    fn is(handed: &Handed) -> Is {
        match handed {
            Handed::Accepted { .. } => Is::Accepted,
            Handed::Refused { .. } => Is::Refused,
            Handed::NotNow { .. } => Is::NotNow,
            Handed::Suppressed { .. } | Handed::NoSender { .. } | Handed::Unknown { .. } => Is::Other,
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
    }

    #[test]
    fn an_identity_is_read_with_its_records() {
        let answer = |dkim: Value, tags: Value| json!({"IdentityType": "DOMAIN", "VerifiedForSendingStatus": true, "DkimAttributes": dkim, "Tags": tags});
        let tokens = json!(["a1", "b2", "x y", "c3", "d4"]);
        let ours = json!([{"Key": "a", "Value": "b"}, {"Key": TAG_DEPLOYMENT, "Value": "agora"}]);
        let easy = answer(json!({"Status": "SUCCESS", "Tokens": tokens, "SigningAttributesOrigin": "AWS_SES"}), ours);
        let read = read_identity(&easy, "firm.test", "agora");
        assert_eq!((read.may_send, read.dkim, read.is_ours), (true, Dkim::Success, true));
        let named: Vec<_> = read.records.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected = [
            ("a1._domainkey.firm.test", "a1.dkim.amazonses.com"),
            ("b2._domainkey.firm.test", "b2.dkim.amazonses.com"),
            ("c3._domainkey.firm.test", "c3.dkim.amazonses.com"),
        ];
        assert_eq!(named, expected);
        assert!(!read_identity(&easy, "firm.test", "another").is_ours, "another deployment made it");
        let zoned =
            answer(json!({"Tokens": ["a1"], "SigningHostedZone": "x.dkim.eu-west-1.amazonses.com"}), Value::Null);
        let read = read_identity(&zoned, "firm.test", "agora");
        assert_eq!((read.records[0].1.as_str(), read.dkim), ("a1.x.dkim.eu-west-1.amazonses.com", Dkim::Pending));
        let own_key = answer(json!({"Tokens": ["selector"], "SigningAttributesOrigin": "EXTERNAL"}), json!([]));
        assert!(read_identity(&own_key, "firm.test", "agora").records.is_empty());
        let nothing = read_identity(&Value::Null, "firm.test", "agora");
        assert_eq!((nothing.may_send, nothing.dkim, nothing.records.len()), (false, Dkim::Pending, 0));
    }
}
