//! Messages that Amazon SNS posts over HTTPS, and their signatures.
//! <https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message-verify-message-signature.html>
//!
//! A message counts only if
//!
//! - its topic is one of the operator's,
//! - it is at most an hour old. (Elsewhere five minutes are the rule. But SNS repeats a post for up to an hour with the
//!   time and the signature of the first one, so a shorter time would throw away what a short outage delayed.)
//! - it is signed with SignatureVersion 2 (RSA with SHA-256) by a certificate from the SNS host of the topic's region.
//!
//! The certificate's address is read strictly: a path of one segment, without a query. With a query, the host would
//! answer API requests, and such an answer can contain a stranger's certificate. That a certificate is Amazon's follows
//! from TLS: it is fetched from Amazon's own host.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::clock::Timestamp;
use base::encoding::base64_any;
use serde::Deserialize;
use tokio::time::Instant;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use url::Url;
use webpki::EndEntityCert;
use webpki::ring::RSA_PKCS1_2048_8192_SHA256;

use super::outbound::{Ask, Outbound, OutboundError};

/// The name in `PROVIDER_URLS`, for tests.
pub const PROVIDER: &str = "sns";
/// Oldest message. SNS repeats a post for at most 3,600 seconds (delivery policy of HTTPS endpoints).
const MAX_AGE: Duration = Duration::from_secs(3600);
/// How far Amazon's clock may be ahead of ours.
const MAX_AHEAD: Duration = Duration::from_secs(300);
/// Most certificates in memory. Amazon replaces them about once a year, one for each region.
const MOST_CERTIFICATES: usize = 16;
/// Longest id of a message that is accepted, in bytes; SNS sends UUIDs.
const MAX_ID_BYTES: usize = 100;

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Notification,
    /// The endpoint was subscribed to the topic, and must confirm it: see [`confirm`].
    SubscriptionConfirmation,
    UnsubscribeConfirmation,
}

/// A message whose signature has not been checked yet.
#[derive(Clone, Debug)]
pub struct Message {
    pub kind: Kind,
    /// The same in every repetition. ASCII without spaces, at most 100 bytes.
    pub id: String,
    /// When it was published. The same in every repetition.
    pub at: Timestamp,
    /// The publisher's text.
    pub text: String,
    /// The text that was signed.
    signed: String,
    signature: Vec<u8>,
    /// The SNS host of the topic's region, with its scheme.
    origin: String,
    certificate_path: String,
    /// Path and query of the address that confirms a subscription.
    subscribe_path: Option<String>,
}

/// Why a message does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnsError {
    /// It does not have the form of an SNS message; the text says what is wrong.
    Unreadable(&'static str),
    /// Its topic is not one of the operator's.
    OtherTopic,
    /// It is too old, or its time is in the future.
    Stale,
    /// Its signature does not fit.
    Forged,
    /// The certificate could not be fetched now.
    Unavailable(OutboundError),
}

impl fmt::Display for SnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnsError::Unreadable(what) => f.write_str(what),
            SnsError::OtherTopic => f.write_str("the topic is not allowed here"),
            SnsError::Stale => f.write_str("the message is older than an hour, or its time is in the future"),
            SnsError::Forged => f.write_str("the signature is wrong"),
            SnsError::Unavailable(error) => write!(f, "the certificate could not be fetched: SNS {error}"),
        }
    }
}

impl std::error::Error for SnsError {}

/// The body of a post.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Posted {
    r#type: String,
    message_id: String,
    topic_arn: String,
    subject: Option<String>,
    message: String,
    timestamp: String,
    signature_version: String,
    signature: String,
    #[serde(rename = "SigningCertURL")]
    signing_cert_url: String,
    #[serde(rename = "SubscribeURL")]
    subscribe_url: Option<String>,
    token: Option<String>,
}

impl Posted {
    /// The text that SNS signs: names and values of these members, each on a line of its own.
    fn signed_text(&self, kind: Kind) -> Result<String, SnsError> {
        let mut lines = vec![("Message", self.message.as_str()), ("MessageId", self.message_id.as_str())];
        match kind {
            Kind::Notification => lines.extend(self.subject.as_deref().map(|subject| ("Subject", subject))),
            Kind::SubscriptionConfirmation | Kind::UnsubscribeConfirmation => {
                let url = self.subscribe_url.as_deref().ok_or(SnsError::Unreadable("SubscribeURL is missing"))?;
                lines.push(("SubscribeURL", url));
            }
        }
        lines.push(("Timestamp", self.timestamp.as_str()));
        if kind != Kind::Notification {
            lines.push(("Token", self.token.as_deref().ok_or(SnsError::Unreadable("Token is missing"))?));
        }
        lines.extend([("TopicArn", self.topic_arn.as_str()), ("Type", self.r#type.as_str())]);
        Ok(lines.iter().map(|(name, value)| format!("{name}\n{value}\n")).collect())
    }
}

impl Message {
    /// Reads a post and checks everything but its signature. `topics` are the ARNs that are allowed.
    pub fn read(body: &[u8], topics: &[String], now: Timestamp) -> Result<Message, SnsError> {
        let posted: Posted =
            serde_json::from_slice(body).map_err(|_| SnsError::Unreadable("the body is not a message of SNS"))?;
        let kind = match posted.r#type.as_str() {
            "Notification" => Kind::Notification,
            "SubscriptionConfirmation" => Kind::SubscriptionConfirmation,
            "UnsubscribeConfirmation" => Kind::UnsubscribeConfirmation,
            _ => return Err(SnsError::Unreadable("the Type is not one of SNS")),
        };
        if !topics.contains(&posted.topic_arn) {
            return Err(SnsError::OtherTopic);
        }
        if posted.signature_version != "2" {
            return Err(SnsError::Unreadable("SignatureVersion must be 2: set it in the topic's attributes"));
        }
        let at = chrono::DateTime::parse_from_rfc3339(&posted.timestamp)
            .map_err(|_| SnsError::Unreadable("the Timestamp is not a time"))?;
        let at = Timestamp::from_millis(at.timestamp_millis());
        if at < now.minus(MAX_AGE) || at > now.plus(MAX_AHEAD) {
            return Err(SnsError::Stale);
        }
        let id = &posted.message_id;
        if id.is_empty() || id.len() > MAX_ID_BYTES || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(SnsError::Unreadable("the MessageId is not one of SNS"));
        }
        let host = host_of(&posted.topic_arn).ok_or(SnsError::OtherTopic)?;
        let certificate = at_host(&posted.signing_cert_url, &host).filter(is_certificate);
        let certificate = certificate.ok_or(SnsError::Unreadable("SigningCertURL is not an address of SNS"))?;
        let subscribe_path = match kind {
            Kind::SubscriptionConfirmation => {
                let url = posted.subscribe_url.as_deref().and_then(|url| at_host(url, &host));
                let url = url.ok_or(SnsError::Unreadable("SubscribeURL is not an address of SNS"))?;
                Some(url[url::Position::BeforePath..].to_owned())
            }
            Kind::Notification | Kind::UnsubscribeConfirmation => None,
        };
        Ok(Message {
            kind,
            id: posted.message_id.clone(),
            at,
            signed: posted.signed_text(kind)?,
            signature: base64_any(&posted.signature).ok_or(SnsError::Unreadable("the Signature is not base64"))?,
            origin: format!("https://{host}"),
            certificate_path: certificate.path().to_owned(),
            subscribe_path,
            text: posted.message,
        })
    }

    /// Whether the key of this certificate signed the message.
    pub fn is_signed_by(&self, certificate: &CertificateDer<'_>) -> bool {
        EndEntityCert::try_from(certificate).is_ok_and(|certificate| {
            let signed = self.signed.as_bytes();
            certificate.verify_signature(RSA_PKCS1_2048_8192_SHA256, signed, &self.signature).is_ok()
        })
    }
}

/// The SNS host of a topic's region: `arn:aws:sns:<region>:<account>:<name>`.
fn host_of(topic: &str) -> Option<String> {
    let region = topic.split(':').nth(3)?;
    let is_region = !region.is_empty() && region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_region.then(|| format!("sns.{region}.amazonaws.com"))
}

/// An https URL at exactly this host, without port, user or fragment.
fn at_host(text: &str, host: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_plain = url.port().is_none() && url.username().is_empty() && url.password().is_none();
    let fits = url.scheme() == "https" && url.host_str() == Some(host) && is_plain && url.fragment().is_none();
    fits.then_some(url)
}

/// A file at the root: `/SimpleNotificationService-….pem`.
fn is_certificate(url: &Url) -> bool {
    let name = url.path().strip_prefix('/').and_then(|path| path.strip_suffix(".pem")).unwrap_or_default();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_name && name.len() <= MAX_ID_BYTES && url.query().is_none()
}

/// A certificate in DER.
pub type Certificate = Arc<CertificateDer<'static>>;

/// The certificates that this process has fetched, by their addresses.
#[derive(Clone, Debug, Default)]
pub struct Certificates(Arc<Mutex<HashMap<String, Certificate>>>);

impl Certificates {
    /// The certificate that a message names, if this process has fetched it before.
    pub fn known(&self, message: &Message) -> Option<Certificate> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&address(message)).cloned()
    }

    /// Fetches the certificate that a message names. Whoever posts a message chooses its name, so count these requests.
    pub async fn fetch(
        &self,
        outbound: &Outbound,
        message: &Message,
        deadline: Instant,
    ) -> Result<Certificate, SnsError> {
        let ask = Ask::get(&message.certificate_path).header("accept", "*/*");
        let answer = outbound.send(PROVIDER, &message.origin, &ask, &[], deadline).await;
        let answer = answer.map_err(|error| match error {
            // There is no such certificate.
            OutboundError::Refused(400..=499) | OutboundError::Unauthorized(_) => SnsError::Forged,
            error => SnsError::Unavailable(error),
        })?;
        let certificate = CertificateDer::from_pem_slice(&answer.body).map_err(|_| SnsError::Forged)?;
        let certificate = Arc::new(certificate);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_CERTIFICATES {
            known.clear();
        }
        known.insert(address(message), certificate.clone());
        Ok(certificate)
    }
}

fn address(message: &Message) -> String {
    format!("{}{}", message.origin, message.certificate_path)
}

/// Confirms a subscription by opening the address in its message. Only for a message whose signature was checked.
/// Doing it twice does no harm.
pub async fn confirm(outbound: &Outbound, message: &Message, deadline: Instant) -> Result<(), OutboundError> {
    let Some(path) = &message.subscribe_path else { return Ok(()) };
    let ask = Ask::get(path).header("accept", "*/*");
    outbound.send(PROVIDER, &message.origin, &ask, &[], deadline).await.map(drop)
}

/// A key and its certificate, for tests that post messages.
#[cfg(any(test, feature = "test-support"))]
pub mod testing {
    use base::encoding::base64_standard;
    use ring::rand::SystemRandom;
    use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
    use serde_json::{Value, json};
    use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject;

    /// PEM, as the SNS host serves it at [`CERTIFICATE_PATH`].
    pub const CERTIFICATE: &str = include_str!("../../../../tests/support/sns/certificate.pem");
    pub const CERTIFICATE_PATH: &str = "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem";
    const KEY: &str = include_str!("../../../../tests/support/sns/key.pem");

    /// Adds the signature to a post. `members` are those that it has besides `SignatureVersion`, `SigningCertURL` (of
    /// us-east-1, unless it is there) and `Signature`.
    pub fn signed(mut members: Value) -> Value {
        let url = format!("https://sns.us-east-1.amazonaws.com{CERTIFICATE_PATH}");
        for (name, value) in [("SignatureVersion", json!("2")), ("SigningCertURL", json!(url))] {
            if members[name].is_null() {
                members[name] = value;
            }
        }
        // Written again here, from Amazon's page, to check the code above.
        let names = match members["Type"].as_str() {
            Some("Notification") => vec!["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"],
            _ => vec!["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"],
        };
        let text: String =
            names.into_iter().filter_map(|name| Some(format!("{name}\n{}\n", members[name].as_str()?))).collect();
        let key = PrivatePkcs8KeyDer::from_pem_slice(KEY.as_bytes()).expect("a key in PKCS #8");
        let key = RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).expect("an RSA key");
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).expect("a signature");
        members["Signature"] = json!(base64_standard(&signature));
        members
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::http::Uri;
    use axum::response::IntoResponse;
    use serde_json::{Value, json};

    use super::*;

    const TOPIC: &str = "arn:aws:sns:us-east-1:123456789012:mail";
    const HOST: &str = "https://sns.us-east-1.amazonaws.com";

    fn now() -> Timestamp {
        // 2026-11-21T08:25:30Z
        Timestamp::from_secs(1_795_249_530)
    }

    fn notification() -> Value {
        json!({
            "Type": "Notification",
            "MessageId": "165545c9-2a5c-472c-8df2-7ff2be2b3b1b",
            "TopicArn": TOPIC,
            "Subject": "Amazon SES Email Event Notification",
            "Message": "{\"eventType\":\"Delivery\"}\n",
            "Timestamp": "2026-11-21T08:25:00.123Z",
        })
    }

    fn confirmation() -> Value {
        json!({
            "Type": "SubscriptionConfirmation",
            "MessageId": "165545c9-2a5c-472c-8df2-7ff2be2b3b1c",
            "TopicArn": TOPIC,
            "Token": "2336412f37",
            "Message": "You have chosen to subscribe to the topic.",
            "SubscribeURL": format!("{HOST}/?Action=ConfirmSubscription&TopicArn={TOPIC}&Token=2336412f37"),
            "Timestamp": "2026-11-21T08:25:00.123Z",
        })
    }

    /// A message with one member replaced; `null` removes it.
    fn with(mut message: Value, name: &str, value: Value) -> Value {
        message[name] = value;
        message
    }

    fn read(message: &Value) -> Result<Message, SnsError> {
        Message::read(message.to_string().as_bytes(), &[TOPIC.to_owned()], now())
    }

    fn is_signed(message: &Value) -> bool {
        let certificate = CertificateDer::from_pem_slice(testing::CERTIFICATE.as_bytes()).unwrap();
        read(message).unwrap().is_signed_by(&certificate)
    }

    #[test]
    fn signed_messages_are_accepted() {
        for message in [
            notification(),
            with(notification(), "Subject", Value::Null),
            confirmation(),
            with(confirmation(), "Type", json!("UnsubscribeConfirmation")),
        ] {
            assert!(is_signed(&testing::signed(message.clone())), "{message}");
        }
        let read = read(&testing::signed(notification())).unwrap();
        assert_eq!((read.kind, read.text.as_str()), (Kind::Notification, "{\"eventType\":\"Delivery\"}\n"));
    }

    #[test]
    fn a_change_of_any_signed_member_breaks_the_signature() {
        for (message, names) in [
            (notification(), &["Message", "MessageId", "Subject"][..]),
            (confirmation(), &["Message", "MessageId", "Token"][..]),
        ] {
            let signed = testing::signed(message);
            for name in names {
                assert!(!is_signed(&with(signed.clone(), name, json!("another"))), "{name}");
            }
            let later = json!("2026-11-21T08:25:01.123Z");
            assert!(!is_signed(&with(signed.clone(), "Timestamp", later)), "Timestamp");
            assert!(!is_signed(&with(signed, "Signature", json!("AAAA"))), "Signature");
        }
        let moved = with(testing::signed(notification()), "Subject", Value::Null);
        assert!(!is_signed(&moved), "a removed subject");
    }

    #[test]
    fn other_topics_versions_and_times_are_refused() {
        let refused = |name: &str, value: Value| read(&testing::signed(with(notification(), name, value))).unwrap_err();
        assert_eq!(refused("TopicArn", json!(format!("{TOPIC}2"))), SnsError::OtherTopic);
        for time in ["2026-11-21T07:25:29.999Z", "2026-11-21T08:30:30.001Z"] {
            assert_eq!(refused("Timestamp", json!(time)), SnsError::Stale, "{time}");
        }
        for (name, value) in [
            ("SignatureVersion", json!("1")),
            ("Timestamp", json!("yesterday")),
            ("Type", json!("Other")),
            ("MessageId", json!("")),
            ("MessageId", json!("a b")),
        ] {
            assert!(matches!(refused(name, value.clone()), SnsError::Unreadable(_)), "{name}: {value}");
        }
        // A post that SNS repeats until the hour is over.
        let late = with(notification(), "Timestamp", json!("2026-11-21T07:25:30.000Z"));
        assert!(is_signed(&testing::signed(late)));
        for body in [&b""[..], b"[]", b"{}", b"\xff"] {
            let error = Message::read(body, &[TOPIC.to_owned()], now()).unwrap_err();
            assert!(matches!(error, SnsError::Unreadable(_)));
        }
    }

    #[test]
    fn certificates_and_confirmations_come_from_the_topics_own_host() {
        let path = testing::CERTIFICATE_PATH;
        for url in [
            format!("http://sns.us-east-1.amazonaws.com{path}"),
            format!("https://sns.eu-west-1.amazonaws.com{path}"),
            format!("https://sns.us-east-1.amazonaws.com.evil.test{path}"),
            format!("https://sns.us-east-1.amazonaws.com:8443{path}"),
            format!("https://user@sns.us-east-1.amazonaws.com{path}"),
            format!("https://evil.test/{HOST}{path}"),
            format!("{HOST}{path}?Action=GetEndpointAttributes"),
            format!("{HOST}{path}#x"),
            format!("{HOST}/folder{path}"),
            format!("{HOST}/..%2f{path}"),
            format!("{HOST}/.pem"),
            format!("{HOST}/certificate.der"),
            "not a URL".to_owned(),
        ] {
            let message = testing::signed(with(notification(), "SigningCertURL", json!(url)));
            assert!(matches!(read(&message), Err(SnsError::Unreadable(_))), "{url}");
        }
        for url in ["http://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription", "https://evil.test/"] {
            let message = testing::signed(with(confirmation(), "SubscribeURL", json!(url)));
            assert!(matches!(read(&message), Err(SnsError::Unreadable(_))), "{url}");
        }
        let host = host_of("arn:aws-us-gov:sns:us-gov-west-1:1:x");
        assert_eq!(host.as_deref(), Some("sns.us-gov-west-1.amazonaws.com"));
        assert_eq!(host_of("arn:aws:sns:evil.test/:1:x"), None);
    }

    #[tokio::test]
    async fn certificates_are_fetched_once_and_subscriptions_confirmed() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        let answer = move |uri: Uri| {
            counter.fetch_add(1, Ordering::SeqCst);
            let is_confirmation = uri.query().is_some_and(|query| query.starts_with("Action=ConfirmSubscription&"));
            let answer = match uri.path() {
                testing::CERTIFICATE_PATH => testing::CERTIFICATE.into_response(),
                "/" if is_confirmation => "<ConfirmSubscriptionResponse/>".into_response(),
                _ => axum::http::StatusCode::NOT_FOUND.into_response(),
            };
            std::future::ready(answer)
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let urls = format!("{{\"sns\": \"http://{}\"}}", listener.local_addr().unwrap());
        let router = axum::Router::new().fallback(answer);
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        let outbound = Outbound::of(&[("PROVIDER_URLS", &urls)]);
        let deadline = || Instant::now() + Duration::from_secs(5);

        let certificates = Certificates::default();
        let message = read(&testing::signed(confirmation())).unwrap();
        assert!(certificates.known(&message).is_none());
        let fetched = certificates.fetch(&outbound, &message, deadline()).await.unwrap();
        assert!(message.is_signed_by(&fetched));
        assert_eq!(certificates.known(&message), Some(fetched));
        assert_eq!(asked.load(Ordering::SeqCst), 1);

        assert_eq!(confirm(&outbound, &message, deadline()).await, Ok(()));
        assert_eq!(asked.load(Ordering::SeqCst), 2);

        let missing = with(notification(), "SigningCertURL", json!(format!("{HOST}/missing.pem")));
        let missing = read(&testing::signed(missing)).unwrap();
        assert_eq!(certificates.fetch(&outbound, &missing, deadline()).await, Err(SnsError::Forged));
    }
}
