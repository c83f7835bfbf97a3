//! Outside addresses: SES and a mail relay by contract servers, their events, and unsubscribing.
//!
//! SES's formats follow its documentation (stored copies, read 2026-11-23):
//! docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html, API_CreateEmailIdentity.html, API_GetEmailIdentity.html,
//! API_DeleteEmailIdentity.html, …/dg/event-publishing-retrieving-sns-examples.html.
//! Messages of SNS are signed with a key of the tests, whose certificate the contract server serves in Amazon's place.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use base::encoding::base64_any;
use futures_util::stream;
use serde_json::{Map, Value, json};

use super::*;
use crate::support::Client;
use crate::support::receiver::Received;
use crate::support::relay::relay;
use crate::support::sns::{self, CERTIFICATE, CERTIFICATE_PATH, signed};

const EVENTS: &str = "/v1/providers/ses";
const TOPIC: &str = "arn:aws:sns:us-east-1:123456789012:mail";
const IDENTITIES: &str = "/v2/email/identities";

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: Method,
    pub path: String,
    headers: HeaderMap,
    raw: Bytes,
    pub body: Value,
}

impl Asked {
    pub fn to(&self) -> &str {
        self.body["Destination"]["ToAddresses"][0].as_str().unwrap_or_default()
    }

    /// The message, with folded header lines joined.
    fn message(&self) -> String {
        let data = self.body["Content"]["Raw"]["Data"].as_str().expect("a raw message");
        let raw = String::from_utf8(base64_any(data).expect("base64")).expect("seven bits");
        let (head, rest) = raw.split_once("\r\n\r\n").expect("a header");
        format!("{}\r\n\r\n{rest}", head.replace("\r\n ", " ").replace("\r\n\t", " "))
    }

    pub fn header(&self, name: &str) -> Option<String> {
        let message = self.message();
        let (head, _) = message.split_once("\r\n\r\n")?;
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    }

    /// The tags in the form of SES's events.
    fn tags(&self) -> Value {
        let tags = self.body["EmailTags"].as_array().expect("tags").iter();
        let tag = |tag: &Value| (tag["Name"].as_str().unwrap().to_owned(), json!([tag["Value"]]));
        Value::Object(tags.map(tag).collect::<Map<_, _>>())
    }
}

/// SES and SNS. SES answers by the recipient's name: `refused@…` is refused for good, the answer for `lost@…` is lost.
/// A domain that is an identity must be verified before it sends; others are not checked.
#[derive(Clone)]
pub struct Ses {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Requests about identities.
    asked_about: Arc<Mutex<Vec<Asked>>>,
    /// The account's identities, as `GetEmailIdentity` shows them.
    pub identities: Arc<Mutex<BTreeMap<String, Value>>>,
    /// Requests about identities are answered with 503.
    pub is_down: Arc<AtomicBool>,
    /// What SNS was asked for, besides the certificate.
    confirmed: Arc<Mutex<Vec<String>>>,
}

impl Ses {
    pub async fn start() -> Ses {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ses = Ses {
            url: format!("http://{}", listener.local_addr().unwrap()),
            asked: Arc::default(),
            asked_about: Arc::default(),
            identities: Arc::default(),
            is_down: Arc::default(),
            confirmed: Arc::default(),
        };
        let router = axum::Router::new().fallback(answer).with_state(ses.clone());
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        ses
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The requests about identities, since the last call.
    pub fn take_asked_about(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked_about.lock().unwrap())
    }

    /// Changes what SES knows of an identity.
    pub fn knows(&self, domain: &str, may_send: bool, dkim: &str) {
        let mut identities = self.identities.lock().unwrap();
        let identity = identities.get_mut(domain).expect("an identity");
        identity["VerifiedForSendingStatus"] = json!(may_send);
        identity["DkimAttributes"]["Status"] = json!(dkim);
    }

    fn about_identity(&self, asked: &Asked) -> Response<Body> {
        let answer = |status: u16, kind: &str, body: Value| {
            let response = Response::builder().status(status).header("content-type", "application/json");
            let response = if kind.is_empty() { response } else { response.header("x-amzn-errortype", kind) };
            response.body(Body::from(body.to_string())).unwrap()
        };
        if self.is_down.load(Ordering::SeqCst) {
            return answer(503, "", json!({"message": "Service Unavailable"}));
        }
        let mut identities = self.identities.lock().unwrap();
        let named = asked.path.strip_prefix(IDENTITIES).unwrap_or_default().trim_start_matches('/');
        let unknown = || json!({"message": format!("Email identity {named} does not exist.")});
        match (asked.method.as_str(), named) {
            ("POST", "") => {
                let domain = asked.body["EmailIdentity"].as_str().expect("a domain").to_owned();
                if identities.contains_key(&domain) {
                    let message = json!({"message": format!("Email identity {domain} already exist.")});
                    return answer(400, "AlreadyExistsException", message);
                }
                if domain.starts_with("bad.") {
                    return answer(400, "BadRequestException", json!({"message": "Domain name is not allowed"}));
                }
                let tokens = ["one", "two", "three"];
                let dkim = json!({"SigningEnabled": true, "Status": "NOT_STARTED", "Tokens": tokens,
                    "SigningAttributesOrigin": "AWS_SES"});
                let new = json!({"IdentityType": "DOMAIN", "VerifiedForSendingStatus": false, "DkimAttributes": dkim});
                identities.insert(domain, with(new.clone(), json!({"Tags": asked.body["Tags"]})));
                answer(200, "", new)
            }
            ("GET", domain) => match identities.get(domain) {
                Some(identity) => answer(200, "", identity.clone()),
                None => answer(404, "NotFoundException", unknown()),
            },
            ("DELETE", domain) => match identities.remove(domain) {
                Some(_) => answer(200, "", json!({})),
                None => answer(404, "NotFoundException", unknown()),
            },
            _ => answer(400, "BadRequestException", json!({"message": "Unknown operation"})),
        }
    }

    pub fn count(&self, to: &str) -> usize {
        self.asked().iter().filter(|asked| asked.to() == to).count()
    }

    pub async fn office(&self) -> Stack {
        self.office_with(|options| options).await
    }

    pub async fn office_with(&self, change: impl FnOnce(Options) -> Options) -> Stack {
        post_office(|options| change(self.options(options))).await
    }

    pub fn options(&self, options: Options) -> Options {
        let urls = json!({"ses": self.url, "sns": self.url}).to_string();
        let options = options.with("EMAIL_PROVIDERS", "ses").with("PROVIDER_URLS", urls);
        let options = options.with("EMAIL_TOPICS", TOPIC).with("EMAIL_CONFIGURATION_SET", "a_set");
        options.with("AWS_REGION", sns::REGION).with("PUBLIC_BASE_URL", "https://mail.example")
    }
}

async fn answer(State(ses): State<Ses>, method: Method, uri: Uri, headers: HeaderMap, raw: Bytes) -> Response<Body> {
    let body: Value = serde_json::from_slice(&raw).unwrap_or_default();
    let asked = Asked { method: method.clone(), path: uri.to_string(), headers, raw, body };
    if uri.path().starts_with(IDENTITIES) {
        ses.asked_about.lock().unwrap().push(asked.clone());
        return ses.about_identity(&asked);
    }
    if method == Method::GET {
        if uri.path() != CERTIFICATE_PATH {
            ses.confirmed.lock().unwrap().push(uri.to_string());
        }
        return Response::new(Body::from(CERTIFICATE));
    }
    let number = {
        let mut all = ses.asked.lock().unwrap();
        all.push(asked.clone());
        all.len()
    };
    let typed = |status: u16| Response::builder().status(status).header("content-type", "application/json");
    let from = asked.body["FromEmailAddress"].as_str().unwrap_or_default();
    let domain = from.rsplit('@').next().unwrap_or_default();
    let identity = ses.identities.lock().unwrap().get(domain).cloned();
    if identity.is_some_and(|identity| identity["VerifiedForSendingStatus"] != true) {
        let error = typed(400).header("x-amzn-errortype", "MailFromDomainNotVerifiedException");
        return error.body(Body::from(json!({"message": "Email address is not verified."}).to_string())).unwrap();
    }
    match asked.to().split('@').next().unwrap_or_default() {
        "refused" => {
            let error = typed(400).header("x-amzn-errortype", "MessageRejected");
            error.body(Body::from(json!({"message": "Message content was rejected"}).to_string())).unwrap()
        }
        "lost" => {
            let broken = stream::iter([Err::<Bytes, _>(std::io::Error::other("the connection broke"))]);
            typed(200).header("content-length", "40").body(Body::from_stream(broken)).unwrap()
        }
        _ => typed(200).body(Body::from(json!({"MessageId": format!("0102-{number}")}).to_string())).unwrap(),
    }
}

/// Recomputes the signature of a function's request to SES.
pub fn assert_signed(asked: &Asked, function: &str) {
    sns::assert_signed("ses", function, &asked.method, &asked.path, &asked.headers, &asked.raw);
}

#[test]
fn ses_gets_one_signed_message_per_recipient_and_its_refusals_are_paid_back() {
    run(async {
        let ses = Ses::start().await;
        let stack = ses.office().await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let more = json!({"from_name": "Ada, the \"first\"", "subject": "Grüße", "body": "Line\n.\nEnd"});
        let body = with(mail_to(json!(["jane@example.com", "refused@example.org", bob.address])), more);
        let job = ada.mail(&body).await;
        assert_eq!((&job["status"], reached(&job)), (&json!("completed"), 2), "{job}");
        assert_eq!(job["result"]["failed"][0]["to"], "refused@example.org");
        assert_eq!(job["result"]["failed"][0]["state"], "refused");
        assert_eq!(ada.money(&stack).await, (3 * EACH, EACH));
        assert_eq!(bob.mails().await.len(), 1, "mail inside the deployment does not go through the provider");

        let asked = ses.asked();
        assert_eq!(asked.len(), 2, "a refusal is not repeated: {asked:?}");
        let id = job["request_id"].as_str().unwrap();
        for one in &asked {
            assert_eq!(one.path, "/v2/email/outbound-emails");
            assert_eq!(one.body["ConfigurationSetName"], "a_set");
            assert_signed(one, "worker");
            assert_eq!(one.body["FromEmailAddress"], ada.address);
            assert_eq!(one.body["Destination"]["ToAddresses"].as_array().map(Vec::len), Some(1));
            let tags = one.tags();
            assert!(tags.as_object().unwrap().values().any(|value| value == &json!([id])), "{tags}");
            let to = one.header("to").unwrap();
            assert!(to.contains(one.to()) && to.matches('@').count() == 1, "only its own recipient: {to}");
            let from = one.header("from").unwrap();
            assert!(from.ends_with(&format!("<{}>", ada.address)), "{from}");
            assert!(one.message().is_ascii(), "{}", one.message());
            let message_id = one.header("message-id").unwrap();
            assert!(message_id.ends_with(&format!("@{DOMAIN}>")), "{message_id}");
            assert!(one.header("list-unsubscribe").is_some_and(|link| link.starts_with("<https://mail.example/")));
            assert_eq!(one.header("list-unsubscribe-post").as_deref(), Some("List-Unsubscribe=One-Click"));
        }
        assert_ne!(asked[0].header("message-id"), asked[1].header("message-id"));

        // A mail to one person is no list.
        ada.mail(&mail_to("jane@example.com")).await;
        let last = ses.asked().pop().unwrap();
        assert_eq!((last.to(), last.header("list-unsubscribe")), ("jane@example.com", None));
        // If it is refused, everything is paid back.
        let job = ada.mail(&mail_to("refused@example.com")).await;
        assert_eq!((&job["status"], &job["credited_usdc"]), (&json!("failed"), &json!("0.005000")), "{job}");
    });
}

#[test]
fn a_mail_whose_acceptance_is_unknown_is_never_sent_again() {
    run(async {
        let ses = Ses::start().await;
        let stack = ses.office().await;
        let ada = Agent::new(&stack).await;
        let job = ada.mail(&mail_to(json!(["lost@example.com", "jane@example.com"]))).await;
        assert_eq!((&job["status"], reached(&job)), (&json!("completed"), 1), "{job}");
        let failed = &job["result"]["failed"][0];
        assert_eq!((&failed["to"], &failed["state"]), (&json!("lost@example.com"), &json!("ambiguous")), "{job}");
        assert_eq!(ada.money(&stack).await, (2 * EACH, EACH), "only what was accepted is charged");

        let id = job["request_id"].as_str().unwrap();
        for _ in 0..3 {
            stack.queue.push(Message::Job { request_id: id.parse().unwrap(), trace: None }.to_json());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!((ses.count("lost@example.com"), ses.count("jane@example.com")), (1, 1));

        // SES's event says what became of it.
        let asked = ses.asked().into_iter().find(|asked| asked.to() == "lost@example.com").unwrap();
        publish(&stack, "late", event("Delivery", &asked, json!({}))).await;
        let job = ada.payer.get(&format!("/v1/requests/{id}")).await.json();
        assert_eq!(job["email_tracking"]["recipients"]["delivered"], 1, "{job}");
        assert_eq!(ada.money(&stack).await, (2 * EACH, EACH), "the charge is final");
    });
}

/// An event of SES about a message that it was given.
pub fn event(kind: &str, asked: &Asked, about: Value) -> Value {
    json!({
        "eventType": kind,
        "mail": {
            "timestamp": "2026-11-23T10:00:00.000Z", "source": asked.body["FromEmailAddress"],
            "messageId": "0102-1", "destination": [asked.to()], "tags": asked.tags(),
        },
        kind.to_ascii_lowercase(): about,
    })
}

fn notification(id: &str, text: &str) -> Value {
    sns::notification(TOPIC, id, text)
}

async fn post(stack: &Stack, message: &Value) -> Answer {
    sns::post(stack, EVENTS, message).await
}

pub async fn publish(stack: &Stack, id: &str, event: Value) {
    sns::publish(stack, EVENTS, TOPIC, id, &event).await;
}

#[test]
fn events_of_ses_change_tracking_analytics_and_suppression_once() {
    run(async {
        let (ses, receiver) = (Ses::start().await, Receiver::start().await);
        let stack = ses.office_with(|options| options.with("LOCAL_FETCH_ALLOW", receiver.allowed())).await;
        let (ada, eve) = (Agent::new(&stack).await, Agent::new(&stack).await);
        webhooks::create(&ada.payer, &json!({"url": receiver.url, "events": ["email.bounced"]})).await;
        let people = ["jane@example.com", "gone@example.com", "angry@example.com"];
        let job = ada.mail(&mail_to(json!(people))).await;
        let path = format!("/v1/requests/{}", job["request_id"].as_str().unwrap());
        let tracking = || async { ada.payer.get(&path).await.json()["email_tracking"].clone() };
        let asked = |to: &str| ses.asked().into_iter().find(|asked| asked.to() == to).unwrap();
        let [jane, gone, angry] = people.map(asked);

        let bounced = |to: &str| {
            json!({"bounceType": "Permanent", "bounceSubType": "General",
            "bouncedRecipients": [{"emailAddress": to, "action": "failed", "status": "5.1.1",
                "diagnosticCode": "smtp; 550 5.1.1 no such user"}], "feedbackId": "f"})
        };
        let complaint =
            json!({"complainedRecipients": [{"emailAddress": people[2]}], "complaintFeedbackType": "abuse"});
        let events = [
            ("1", event("Delivery", &jane, json!({"recipients": [people[0]], "smtpResponse": "250 ok"}))),
            ("2", event("Bounce", &gone, bounced(people[1]))),
            ("3", event("Delivery", &angry, json!({"recipients": [people[2]]}))),
            ("4", event("Complaint", &angry, complaint)),
            ("5", event("Open", &jane, json!({"ipAddress": "192.0.2.1"}))),
            ("6", event("Open", &jane, json!({"ipAddress": "192.0.2.1"}))),
            ("7", event("Click", &jane, json!({"link": "https://example.net/"}))),
        ];
        // SNS may deliver an event more than once.
        for _ in 0..2 {
            for (id, event) in &events {
                publish(&stack, id, event.clone()).await;
            }
        }
        for (id, event) in events.iter().rev() {
            publish(&stack, id, event.clone()).await;
        }
        let told = tracking().await;
        for (state, count) in [("delivered", 1), ("bounced", 1), ("complained", 1)] {
            assert_eq!(told["recipients"][state], count, "{state}: {told}");
        }
        assert_eq!((&told["opens"], &told["clicks"]), (&json!(1), &json!(1)), "recipients are counted: {told}");
        let counts = ada.analytics().await;
        for (name, count) in [("sent", 3), ("delivered", 2), ("bounced", 1), ("complained", 1), ("clicked", 1)] {
            assert_eq!(counts[name], count, "{name}: {counts}");
        }
        let posted = eventually("the bounce", || async { receiver.received().first().map(Received::json) }).await;
        let data = json!({
            "request_id": job["request_id"], "to": people[1], "from_domain": DOMAIN, "status_url": path,
        });
        assert_eq!((&posted["type"], &posted["data"]), (&json!("email.bounced"), &data));

        // No mail for addresses that bounced or complained, whoever sends it. They cost nothing.
        let job = eve.mail(&mail_to(json!(people))).await;
        assert_eq!(reached(&job), 1, "{job}");
        let failed = job["result"]["failed"].as_array().unwrap();
        assert!(failed.iter().all(|one| one["state"] == "suppressed") && failed.len() == 2, "{job}");
        assert_eq!(eve.money(&stack).await, (3 * EACH, 2 * EACH));
        assert_eq!(people.map(|to| ses.count(to)), [2, 1, 1]);

        // SES reports what a recipient's host wrote. It cannot suppress somebody else's address.
        publish(&stack, "forged", event("Bounce", &jane, bounced("victim@example.com"))).await;
        assert_eq!(eve.mail(&mail_to("victim@example.com")).await["status"], "completed");
        assert_eq!(eve.mail(&mail_to(people[0])).await["status"], "completed", "the own address was not named");

        // A temporary bounce suppresses nobody, and events about nothing of ours do nothing.
        let later = json!({"bounceType": "Transient", "bouncedRecipients": [{"emailAddress": people[0]}]});
        publish(&stack, "8", event("Bounce", &jane, later)).await;
        let mut foreign = event("Complaint", &jane, json!({"complainedRecipients": [{"emailAddress": people[0]}]}));
        foreign["mail"]["tags"] = json!({"ses:configuration-set": ["others"]});
        publish(&stack, "9", foreign).await;
        for nonsense in [json!({}), json!({"eventType": "Open"}), json!({"eventType": 1, "mail": []}), json!([])] {
            publish(&stack, "10", nonsense).await;
        }
        assert_eq!(ada.mail(&mail_to(people[0])).await["status"], "completed");
        // The second bounce for good is told within a minute.
        let told: Vec<Value> = receiver.received().iter().map(|event| event.json()["data"]["to"].clone()).collect();
        assert!(told.len() == 1 || told == [people[1], people[0]], "a temporary bounce is not told: {told:?}");
    });
}

#[test]
fn forged_events_change_nothing() {
    run(async {
        let ses = Ses::start().await;
        let stack = ses.office().await;
        let ada = Agent::new(&stack).await;
        let job = ada.mail(&mail_to("jane@example.com")).await;
        let complained = json!({"complainedRecipients": [{"emailAddress": "jane@example.com"}]});
        let complaint = event("Complaint", &ses.asked()[0], complained).to_string();
        let fetched = Receiver::start().await;
        let good = signed(notification("1", &complaint));
        let old = Clock::system().now().minus(Duration::from_secs(3_700)).to_string();
        for (message, status) in [
            (notification("1", &complaint), 401),
            (with(good.clone(), json!({"Message": complaint.replace("jane", "john")})), 401),
            (with(good.clone(), json!({"MessageId": "another"})), 401),
            (with(good.clone(), json!({"Signature": base64_standard(&[7; 256])})), 401),
            (with(good.clone(), json!({"SignatureVersion": "1"})), 401),
            (signed(with(notification("1", &complaint), json!({"Timestamp": old}))), 401),
            (signed(with(notification("1", &complaint), json!({"TopicArn": format!("{TOPIC}s")}))), 403),
            (serde_json::from_str(&complaint).unwrap(), 401),
            (json!({}), 401),
            (json!("x"), 401),
        ] {
            let answer = post(&stack, &message).await;
            assert_eq!(answer.error(), (status, "invalid_signature".to_owned()), "{message}");
        }
        for certificate in [
            fetched.url.as_str(),
            "http://sns.us-east-1.amazonaws.com/a.pem",
            "https://sns.us-east-1.amazonaws.com.evil.test/a.pem",
            "https://evil.test/sns.us-east-1.amazonaws.com/a.pem",
            "https://sns.us-east-1.amazonaws.com@evil.test/a.pem",
            "https://sns.us-east-1.amazonaws.com/?Action=GetTopicAttributes&a=/a.pem",
            "https://sns.us-east-1.amazonaws.com/a/../b.pem?x",
            "https://sns.eu-west-1.amazonaws.com/a.pem",
            "file:///etc/passwd",
            "",
        ] {
            let answer = post(&stack, &with(good.clone(), json!({"SigningCertURL": certificate}))).await;
            assert_eq!(answer.error(), (401, "invalid_signature".to_owned()), "{certificate}");
        }
        let confirmation = |url: &str| {
            json!({
                "Type": "SubscriptionConfirmation", "MessageId": "2", "Token": "t", "TopicArn": TOPIC, "Message": "confirm",
                "SubscribeURL": url, "Timestamp": Clock::system().now().to_string(),
            })
        };
        let url = format!("https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn={TOPIC}&Token=t");
        for message in [signed(confirmation(&fetched.url)), confirmation(&url)] {
            assert_eq!(post(&stack, &message).await.status, 401, "{message}");
        }
        assert_eq!((fetched.count(), ses.confirmed.lock().unwrap().len()), (0, 0), "no stranger's address is opened");
        let job = ada.payer.get(&format!("/v1/requests/{}", job["request_id"].as_str().unwrap())).await.json();
        assert_eq!(job["email_tracking"]["recipients"]["complained"], 0, "{job}");
        assert_eq!(ada.mail(&mail_to("jane@example.com")).await["status"], "completed", "nobody is suppressed");

        // The same messages with good signatures.
        assert_eq!(post(&stack, &signed(confirmation(&url))).await.status, 200);
        let confirmed = ses.confirmed.lock().unwrap().clone();
        assert!(matches!(&confirmed[..], [one] if one.contains("ConfirmSubscription")), "{confirmed:?}");
        assert_eq!(post(&stack, &good).await.status, 200);
        assert_eq!(ada.mail(&mail_to("jane@example.com")).await["status"], "failed");
    });
}

#[test]
fn an_unsubscribed_address_is_skipped_and_not_charged() {
    run(async {
        let ses = Ses::start().await;
        let stack = ses.office().await;
        let (ada, eve) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let body = mail_to(json!(["jane@example.com", "john@example.com"]));
        ada.mail(&body).await;
        let jane = ses.asked().into_iter().find(|asked| asked.to() == "jane@example.com").unwrap();
        let link = jane.header("list-unsubscribe").unwrap().replace(' ', "");
        let path = link.trim_start_matches("<https://mail.example").trim_end_matches('>');
        assert!(path.starts_with("/v1/tools/email/unsubscribe/"), "{link}");

        // Mail scanners open links, so reading the page changes nothing (RFC 8058).
        let client = Client::new(&stack.base_url);
        assert_eq!(client.get(path, &[]).await.status, 200);
        assert_eq!(reached(&ada.mail(&body).await), 2);
        let (changed, form) = (format!("{path}x"), [("content-type", "application/x-www-form-urlencoded")]);
        let forged = client.send("POST", &changed, &form, "List-Unsubscribe=One-Click").await.expect("an answer");
        assert!((400..500).contains(&forged.status), "{}", forged.text);
        for _ in 0..2 {
            let answer = client.send("POST", path, &form, "List-Unsubscribe=One-Click").await.expect("an answer");
            assert_eq!(answer.status, 200, "{}", answer.text);
        }

        let (paid, credits) = ada.money(&stack).await;
        let job = ada.mail(&body).await;
        assert_eq!(reached(&job), 1, "{job}");
        let failed = &job["result"]["failed"][0];
        assert_eq!((&failed["to"], &failed["state"]), (&json!("jane@example.com"), &json!("suppressed")));
        assert_eq!(ada.money(&stack).await, (paid + 2 * EACH, credits + EACH));
        assert_eq!(ses.count("jane@example.com"), 2);
        // She unsubscribed from one sender.
        assert_eq!(reached(&eve.mail(&body).await), 2);
    });
}

#[test]
fn a_relay_delivers_and_its_refusals_are_paid_back() {
    run(async {
        let (url, taken) = relay().await;
        let stack = post_office(|options| {
            let options = options.with("EMAIL_PROVIDERS", "smtp").with("SMTP_URL", url);
            options.with("MAIL_FROM", "agora@example.net").with("PUBLIC_BASE_URL", "https://mail.example")
        })
        .await;
        let ada = Agent::new(&stack).await;
        let job = ada.mail(&mail_to(json!(["jane@example.com", "nobody@example.com"]))).await;
        assert_eq!((&job["status"], reached(&job)), (&json!("completed"), 1), "{job}");
        assert_eq!(ada.money(&stack).await, (2 * EACH, EACH));
        let text = taken.lock().unwrap().clone();
        assert!(text.contains(&ada.address), "{text}");
        assert_eq!(text.matches("Subject: Hello").count(), 1, "{text}");
        let signature = text.find("DKIM-Signature:").expect("signed for the operator's domain");
        assert!(text[signature..].replace("\n ", "").replace("\n\t", "").contains(&format!("d={DOMAIN}")), "{text}");
    });
}
