//! Numbers outside the deployment: both providers by a contract server, what they report later, and the texts they pass on.
//!
//! Formats follow the providers' documents (stored copies, read 2026-11-23). AWS: API model pinpoint-sms-voice-v2/2022-03-31
//! (botocore); docs.aws.amazon.com/sms-voice/latest/userguide/configuration-sets-event-format.html, two-way-sms-payload.html.
//! Twilio: twilio.com/docs/messaging/api/message-resource, /messaging/guides/track-outbound-message-status,
//! /messaging/guides/webhook-request, /usage/security, /api/errors/21610.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use base::clock::Clock;
use base::encoding::base64_standard;
use base::ids::RequestId;
use futures_util::stream;
use ledger::webhooks::endpoint::{self, Disabled};
use local::{Options, Stack};
use messages::hand::Handed;
use ring::hmac;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools_sms::inbox::{self, Text};
use tools_sms::number::Number;
use tools_sms::phone::{self, Registered};
use tools_sms::providers::{self, Outgoing};
use tools_sms::{opt_out, signature};
use tools_voice::ringing::{self, Rang, Ring};
use tools_voice::{lease, plan, settings};
use url::form_urlencoded::Serializer;

use super::{EACH, SEND, number_for, text_to};
use crate::support::sns::{self, CERTIFICATE, CERTIFICATE_PATH, signed};
use crate::support::{Answer, Client, Payer, books, eventually, run, stack_with};

const EVENTS: &str = "/v1/providers/sms";
const STATUS: &str = "/v1/providers/twilio/status";
const INBOUND: &str = "/v1/providers/twilio/inbound";
const TOPIC: &str = "arn:aws:sns:us-east-1:123456789012:texts";
/// The deployment's address, as Twilio knows it.
const BASE: &str = "https://sms.example";
const SID: &str = "AC0123456789abcdef0123456789abcdef";
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The operator's numbers.
const OWN: [&str; 2] = ["+12065550142", "+12065550143"];
/// A number of the operator whose texts go to another program.
const ELSEWHERE: &str = "+12065550145";
/// Recipients, and what the provider does with a text to them.
const REACHED: &str = "+14155551230";
const OPTED_OUT: &str = "+14155551231";
const REFUSED: &str = "+14155551232";
const LOST: &str = "+14155551233";
const LATER: &str = "+14155551234";

/// A request as it arrived.
#[derive(Clone, Debug)]
struct Asked {
    method: Method,
    path: String,
    headers: HeaderMap,
    raw: Bytes,
}

impl Asked {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.raw).unwrap_or_default()
    }

    fn form(&self) -> BTreeMap<String, String> {
        signature::form(&self.raw)
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn is_of_aws(&self) -> bool {
        self.headers.contains_key("x-amz-target")
    }

    /// The recipient of a text. Empty: it is no text.
    fn to(&self) -> String {
        if self.is_of_aws() {
            return self.json()["DestinationPhoneNumber"].as_str().unwrap_or_default().to_owned();
        }
        self.form().get("To").cloned().unwrap_or_default()
    }
}

/// AWS End User Messaging, Twilio's API and SNS, at one address.
#[derive(Clone)]
struct Vendors {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Numbers that are no longer the operator's.
    gone: Arc<Mutex<Vec<String>>>,
}

impl Vendors {
    async fn start() -> Vendors {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let vendors = Vendors { url, asked: Arc::default(), gone: Arc::default() };
        let router = axum::Router::new().fallback(answer).with_state(vendors.clone());
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        vendors
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("a lock").clone()
    }

    fn gone(&self) -> Vec<String> {
        self.gone.lock().expect("a lock").clone()
    }

    /// Takes a number from the operator.
    fn take(&self, number: &Number) {
        self.gone.lock().expect("a lock").push(number.as_str().to_owned());
    }

    /// The texts that it was given.
    fn texts(&self) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| !asked.to().is_empty()).collect()
    }

    fn text_to(&self, to: &str) -> Asked {
        self.texts().into_iter().find(|asked| asked.to() == to).unwrap_or_else(|| panic!("no text to {to}"))
    }

    fn count(&self, to: &str) -> usize {
        self.texts().iter().filter(|asked| asked.to() == to).count()
    }

    /// A deployment whose texts go through AWS.
    async fn aws(&self) -> Stack {
        let urls = json!({"aws_sms": self.url, "sns": self.url}).to_string();
        stack_with(|options| {
            let options = options.with("SMS_PROVIDERS", "aws_sms").with("PROVIDER_URLS", urls);
            let options = options.with("SMS_TOPICS", TOPIC).with("SMS_CONFIGURATION_SET", "texts");
            options.with("AWS_REGION", sns::REGION)
        })
        .await
    }

    /// The options of a deployment whose texts go through Twilio.
    fn twilio(&self, options: Options) -> Options {
        let key = format!("{SID}:{TOKEN}");
        let options = options.with("SMS_PROVIDERS", "twilio").with("PUBLIC_BASE_URL", BASE);
        let options = options.with("PROVIDER_URLS", json!({"twilio": self.url}).to_string());
        options.with("PROVIDER_KEYS", json!({"twilio": key}).to_string())
    }
}

async fn answer(
    State(vendors): State<Vendors>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    raw: Bytes,
) -> Response<Body> {
    if uri.path() == CERTIFICATE_PATH {
        return Response::new(Body::from(CERTIFICATE));
    }
    let asked = Asked { method, path: uri.to_string(), headers, raw };
    let number = {
        let mut all = vendors.asked.lock().expect("a lock");
        all.push(asked.clone());
        all.len()
    };
    let to = asked.to();
    if to == LOST {
        let broken = stream::iter([Err::<Bytes, _>(std::io::Error::other("the connection broke"))]);
        return Response::builder().header("content-length", "40").body(Body::from_stream(broken)).expect("a response");
    }
    let (status, body) = match asked.is_of_aws() {
        true => of_aws(&vendors, &asked, &to, number),
        false => of_twilio(&vendors, &asked, &to, number),
    };
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(Body::from(body.to_string())).expect("a response")
}

fn of_aws(vendors: &Vendors, asked: &Asked, to: &str, number: usize) -> (u16, Value) {
    let from = asked.json()["OriginationIdentity"].as_str().map(str::to_owned);
    if let Some(from) = from.filter(|from| vendors.gone().contains(from)) {
        let kind = "ResourceNotFoundException";
        return (400, json!({"__type": kind, "Message": "no", "ResourceType": "phone-number", "ResourceId": from}));
    }
    let error = |kind: &str, reason: &str| (400, json!({"__type": kind, "Message": "no", "Reason": reason}));
    match (asked.header("x-amz-target"), to) {
        ("PinpointSMSVoiceV2.DescribePhoneNumbers", _) => {
            // A page for each number.
            let second = asked.json()["NextToken"] == "second";
            let own = OWN[usize::from(second)];
            let kind = if vendors.gone().iter().any(|gone| gone == own) { "SIMULATOR" } else { "TEN_DLC" };
            let phone = json!({"PhoneNumber": own, "Status": "ACTIVE", "NumberType": kind,
                "MessageType": "TRANSACTIONAL", "NumberCapabilities": ["SMS"], "TwoWayEnabled": true});
            let token = if second { json!({}) } else { json!({"NextToken": "second"}) };
            let mut page = json!({"PhoneNumbers": [phone]});
            page.as_object_mut().expect("members").extend(token.as_object().cloned().unwrap_or_default());
            (200, page)
        }
        ("PinpointSMSVoiceV2.SendTextMessage", OPTED_OUT) => {
            error("ConflictException", "DESTINATION_PHONE_NUMBER_OPTED_OUT")
        }
        ("PinpointSMSVoiceV2.SendTextMessage", REFUSED) => error("ValidationException", "PRICE_OVER_THRESHOLD"),
        ("PinpointSMSVoiceV2.SendTextMessage", LATER) => error("ThrottlingException", ""),
        ("PinpointSMSVoiceV2.SendTextMessage", _) => (200, json!({"MessageId": format!("862a8790-{number}")})),
        _ => error("ValidationException", "UNKNOWN_OPERATION"),
    }
}

fn of_twilio(vendors: &Vendors, asked: &Asked, to: &str, number: usize) -> (u16, Value) {
    let credentials = base64_standard(format!("{SID}:{TOKEN}").as_bytes());
    if asked.header("authorization") != format!("Basic {credentials}") {
        return (401, json!({"code": 20_003, "message": "Authenticate", "status": 401}));
    }
    let error = |code: u32| {
        let more = format!("https://www.twilio.com/docs/errors/{code}");
        (400, json!({"code": code, "message": "no", "more_info": more, "status": 400}))
    };
    let resource = asked.path.strip_prefix(&format!("/2010-04-01/Accounts/{SID}/")).unwrap_or_default();
    match (asked.method.as_str(), resource.split('?').next().unwrap_or_default(), to) {
        ("GET", "IncomingPhoneNumbers.json", _) => {
            let able = |sms: bool| json!({"voice": true, "sms": sms, "mms": false, "fax": false});
            let ours = format!("{BASE}{INBOUND}");
            let number = |number: &str, sms: bool, url: &str| {
                let capabilities = able(sms);
                json!({"phone_number": number, "capabilities": capabilities, "sms_url": url, "sms_method": "POST"})
            };
            let mut numbers =
                vec![number("+12065550144", false, &ours), number(ELSEWHERE, true, "https://other.example/")];
            let gone = vendors.gone();
            let own = OWN.iter().filter(|own| !gone.iter().any(|gone| gone == *own));
            numbers.extend(own.map(|own| number(own, true, &ours)));
            (200, json!({"incoming_phone_numbers": numbers, "page": 0, "page_size": 500, "next_page_uri": null}))
        }
        ("POST", "Messages.json", _) if asked.form().get("From").is_some_and(|from| vendors.gone().contains(from)) => {
            error(21_660)
        }
        ("POST", "Messages.json", OPTED_OUT) => error(21_610),
        ("POST", "Messages.json", REFUSED) => error(21_408),
        ("POST", "Messages.json", LATER) => error(21_611),
        ("POST", "Messages.json", _) => {
            let sid = format!("SM{number:032}");
            (201, json!({"sid": sid, "status": "queued", "error_code": null, "to": to}))
        }
        _ => (404, json!({"code": 20_404, "message": "not found", "status": 404})),
    }
}

/// A wallet with a dollar and one of the operator's numbers.
struct Agent {
    payer: Payer,
    number: Number,
}

impl Agent {
    async fn new(stack: &Stack) -> Agent {
        let payer = Payer::new(stack).await;
        let number = number_for(&stack.worker.toolbox, payer.agent()).await;
        assert!(OWN.contains(&number.as_str()), "{number:?}");
        Agent { payer, number }
    }

    /// Pays for a text; the id of its job.
    async fn send(&self, to: &[&str], message: &str) -> String {
        let body = text_to(json!(to), message);
        let accepted = self.payer.redeem(SEND, &self.payer.ask(SEND, &body).await, &body).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        accepted.json()["request_id"].as_str().expect("an id").to_owned()
    }

    /// How many recipients of a job are in a state.
    async fn tracked(&self, id: &str, state: &str) -> u64 {
        let job = self.payer.get(&format!("/v1/requests/{id}")).await.json();
        job["sms_tracking"]["recipients"][state].as_u64().unwrap_or_else(|| panic!("{job}"))
    }

    /// What it has paid on chain so far, and the credits that it has, in micro-USDC.
    async fn money(&self, stack: &Stack) -> (u64, u64) {
        let left = u64::try_from(self.payer.balance(stack).await).expect("an amount");
        (1_000_000 - left, books::audit(&stack.app.db, self.payer.agent()).await.credits.micro())
    }

    /// What is stored for it, newest first.
    async fn texts(&self, stack: &Stack) -> Vec<Text> {
        inbox::inbox(&stack.app.db, self.payer.agent(), None, None, None, 200).await.expect("a database").0
    }

    async fn is_stopped_by(&self, stack: &Stack, recipient: &str) -> bool {
        let recipient = Number::parse(recipient).expect("a number");
        opt_out::is_out(&stack.app.db, &self.number, &recipient).await.expect("a database")
    }

    /// Hands a text over without a job.
    async fn hand_over(&self, stack: &Stack, to: &str) -> Handed {
        let to = Number::parse(to).expect("a number");
        let (from, request_id) = (&self.number, RequestId::random());
        let text = Outgoing { from, to: &to, body: "Hello", request_id, index: 0 };
        providers::hand_over(&stack.worker.toolbox, text, Instant::now() + Duration::from_secs(10)).await
    }
}

/// The states of a job's recipients, in their order.
fn states(job: &Value) -> Vec<&str> {
    let details = job["result"]["details"].as_array().unwrap_or_else(|| panic!("{job}"));
    details.iter().map(|detail| detail["status"].as_str().expect("a state")).collect()
}

/// What AWS reports of a text that it was given.
fn event(kind: &str, is_final: bool, asked: &Asked) -> Value {
    let sent = asked.json();
    json!({
        "eventType": kind, "eventVersion": "1.0", "eventTimestamp": Clock::system().now().millis(), "isFinal": is_final,
        "originationPhoneNumber": sent["OriginationIdentity"], "destinationPhoneNumber": sent["DestinationPhoneNumber"],
        "isInternationalSend": false, "messageId": "862a8790", "messageEncoding": "GSM", "messageType": "TRANSACTIONAL",
        "messageStatusDescription": "Phone is currently unreachable", "context": sent["Context"],
        "totalMessageParts": 1,
    })
}

async fn publish(stack: &Stack, id: &str, event: &Value) {
    sns::publish(stack, EVENTS, TOPIC, id, event).await;
}

/// A text to the operator's number, as AWS publishes it.
fn two_way(from: &str, to: &Number, body: &str, id: &str) -> Value {
    json!({
        "originationNumber": from, "destinationNumber": to, "messageKeyword": "KEYWORD_1", "messageBody": body,
        "inboundMessageId": id, "previousPublishedMessageId": "862a8790",
    })
}

#[test]
fn aws_gets_each_text_once_and_only_what_it_accepts_is_charged() {
    run(async {
        let vendors = Vendors::start().await;
        let stack = vendors.aws().await;
        let ada = Agent::new(&stack).await;
        assert_eq!(vendors.asked().len(), 2, "both pages of its numbers");
        let message = "Grüße & more: 10 €";
        let id = ada.send(&[REACHED, OPTED_OUT, REFUSED, LOST], message).await;
        let sent = eventually("the texts", || async { Some(vendors.texts()).filter(|texts| texts.len() >= 4) }).await;
        // It may be told before the send has ended.
        publish(&stack, "1", &event("TEXT_DELIVERED", true, &vendors.text_to(REACHED))).await;
        let job = ada.payer.finished(&id).await;
        assert_eq!((&job["status"], &job["result"]["status"]), (&json!("completed"), &json!("partial")), "{job}");
        assert_eq!(states(&job), ["delivered", "opted_out", "failed", "ambiguous"], "{job}");
        assert_eq!(ada.money(&stack).await, (4 * EACH, 3 * EACH));

        for asked in &vendors.asked() {
            sns::assert_signed("sms-voice", "worker", &asked.method, &asked.path, &asked.headers, &asked.raw);
            assert_eq!(asked.header("content-type"), "application/x-amz-json-1.0");
            assert!(asked.header("authorization").contains("x-amz-target"), "the operation is signed: {asked:?}");
        }
        for asked in &sent {
            let body = asked.json();
            for (member, value) in [
                ("OriginationIdentity", json!(ada.number)),
                ("MessageBody", json!(message)),
                ("MessageType", json!("TRANSACTIONAL")),
                ("ConfigurationSetName", json!("texts")),
                ("MaxPrice", json!("0.10")),
                ("TimeToLive", json!(14_400)),
            ] {
                assert_eq!(body[member], value, "{member}");
            }
            assert_eq!(body["Context"]["request_id"], id);
        }

        // The provider knows who wants no texts, and so do we now.
        let job = ada.payer.finished(&ada.send(&[OPTED_OUT], message).await).await;
        assert_eq!(states(&job), ["opted_out"], "{job}");
        assert_eq!(ada.money(&stack).await, (5 * EACH, 4 * EACH));
        assert!(ada.is_stopped_by(&stack, OPTED_OUT).await);
        assert!(matches!(ada.hand_over(&stack, LATER).await, Handed::NotNow { .. }));
        assert_eq!([REACHED, OPTED_OUT, REFUSED, LOST].map(|to| vendors.count(to)), [1; 4], "none is repeated");
    });
}

#[test]
fn events_of_aws_move_a_text_forward_once() {
    run(async {
        let vendors = Vendors::start().await;
        let stack = vendors.aws().await;
        let ada = Agent::new(&stack).await;
        let id = ada.send(&[REACHED, LOST], "Hello").await;
        eventually("the texts", || async { (vendors.texts().len() >= 2).then_some(()) }).await;
        let (reached, lost) = (vendors.text_to(REACHED), vendors.text_to(LOST));
        // What came in twice, late and out of order. A queued text is no end.
        for message in ["1", "2", "1"] {
            publish(&stack, message, &event("TEXT_DELIVERED", true, &reached)).await;
            publish(&stack, &format!("queued-{message}"), &event("TEXT_QUEUED", false, &reached)).await;
        }
        let job = ada.payer.finished(&id).await;
        assert_eq!(states(&job), ["delivered", "ambiguous"], "{job}");
        let money = ada.money(&stack).await;
        assert_eq!(money, (2 * EACH, EACH));

        // What became of the text whose answer was lost. The charge is final.
        publish(&stack, "3", &event("TEXT_CARRIER_UNREACHABLE", false, &lost)).await;
        assert_eq!(ada.tracked(&id, "ambiguous").await, 1, "it is tried again");
        publish(&stack, "4", &event("TEXT_SUCCESSFUL", true, &lost)).await;
        assert_eq!((ada.tracked(&id, "delivered").await, ada.tracked(&id, "ambiguous").await), (2, 0));
        publish(&stack, "5", &event("TEXT_UNREACHABLE", true, &lost)).await;
        publish(&stack, "6", &event("TEXT_DELIVERED", true, &lost)).await;
        assert_eq!((ada.tracked(&id, "delivered").await, ada.tracked(&id, "undelivered").await), (1, 1));
        assert_eq!(ada.money(&stack).await, money);

        // Events about nothing of ours, and forged ones.
        let mut foreign = event("TEXT_UNREACHABLE", true, &reached);
        let unknown = json!({"request_id": RequestId::random().to_string(), "index": "0"});
        let spelled = json!({"request_id": id, "index": "00"});
        for (number, context) in [unknown, spelled, json!({}), json!([])].into_iter().enumerate() {
            foreign["context"] = context;
            publish(&stack, &format!("7-{number}"), &foreign).await;
        }
        let text = event("TEXT_UNREACHABLE", true, &reached).to_string();
        let good = signed(sns::notification(TOPIC, "9", &text));
        let mut changed = good.clone();
        changed["Message"] = json!(text.replace("currently", "never"));
        let elsewhere = signed(sns::notification(&format!("{TOPIC}s"), "9", &text));
        for (message, status) in [(changed, 401), (elsewhere, 403), (sns::notification(TOPIC, "9", &text), 401)] {
            let answer = sns::post(&stack, EVENTS, &message).await;
            assert_eq!(answer.error(), (status, "invalid_signature".to_owned()), "{message}");
        }
        assert_eq!(ada.tracked(&id, "delivered").await, 1, "nothing has changed");
        assert_eq!(sns::post(&stack, EVENTS, &good).await.status, 200);
        assert_eq!(ada.tracked(&id, "undelivered").await, 2);
    });
}

#[test]
fn texts_from_aws_are_stored_once() {
    run(async {
        let vendors = Vendors::start().await;
        let stack = vendors.aws().await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        assert_ne!(ada.number, bob.number);
        // SNS may deliver a message twice, and AWS may publish a text twice.
        for message in ["1", "2", "1"] {
            publish(&stack, message, &two_way(REACHED, &ada.number, "Hello \u{202e}there", "in-1")).await;
        }
        let texts = ada.texts(&stack).await;
        assert_eq!(texts.len(), 1, "{texts:?}");
        assert_eq!((texts[0].from.as_str(), texts[0].body.as_str()), (REACHED, "Hello there"));
        for (message, word, is_out) in [("3", "Stop", true), ("4", "START", false), ("3", "Stop", false)] {
            publish(&stack, message, &two_way(REACHED, &ada.number, word, &format!("in-{message}"))).await;
            assert_eq!(ada.is_stopped_by(&stack, REACHED).await, is_out, "{message} {word}");
        }
        assert!(!bob.is_stopped_by(&stack, REACHED).await && bob.texts(&stack).await.is_empty());
        let nobody = Number::parse("+12065550144").expect("a number");
        publish(&stack, "5", &two_way(REACHED, &nobody, "Hello", "in-5")).await;
        assert_eq!(ada.texts(&stack).await.len(), 3);
    });
}

/// Twilio's signature of a request: HMAC-SHA1 of the address and of the sorted fields.
fn signature_of(token: &str, path: &str, fields: &[(&str, &str)]) -> String {
    let sorted: BTreeMap<&str, &str> = fields.iter().copied().collect();
    let fields: String = sorted.iter().map(|(name, value)| format!("{name}{value}")).collect();
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, token.as_bytes());
    base64_standard(hmac::sign(&key, format!("{BASE}{path}{fields}").as_bytes()).as_ref())
}

async fn post_form(stack: &Stack, path: &str, fields: &[(&str, &str)], signature: &str) -> Answer {
    let form = Serializer::new(String::new()).extend_pairs(fields).finish();
    let kind = ("content-type", "application/x-www-form-urlencoded; charset=UTF-8");
    let headers = [kind, ("x-twilio-signature", signature)];
    Client::new(&stack.base_url).send("POST", path, &headers, form).await.expect("an answer")
}

/// Posts as Twilio does.
async fn post(stack: &Stack, path: &str, fields: &[(&str, &str)]) -> Answer {
    post_form(stack, path, fields, &signature_of(TOKEN, path, fields)).await
}

/// Reports a state of a text to the address that Twilio was given with it.
async fn report(stack: &Stack, asked: &Asked, status: &str, code: &str) {
    let form = asked.form();
    let path = form["StatusCallback"].strip_prefix(BASE).expect("an address of this deployment");
    let fields = [
        ("MessageSid", "SM1"),
        ("MessageStatus", status),
        ("ErrorCode", code),
        ("To", form["To"].as_str()),
        ("From", form["From"].as_str()),
        ("AccountSid", SID),
        ("ApiVersion", "2010-04-01"),
    ];
    let answer = post(stack, path, &fields).await;
    assert_eq!((answer.status, answer.text.as_str()), (204, ""), "{status}");
}

#[test]
fn twilio_gets_each_text_once_and_reports_move_it_forward() {
    run(async {
        let vendors = Vendors::start().await;
        let stack = stack_with(|options| vendors.twilio(options)).await;
        let ada = Agent::new(&stack).await;
        let message = "Grüße & more: 10 €";
        let id = ada.send(&[REACHED, OPTED_OUT, REFUSED, LOST], message).await;
        eventually("the texts", || async { (vendors.texts().len() >= 4).then_some(()) }).await;
        // Late: a text that was delivered is then said to be sent.
        let reached = vendors.text_to(REACHED);
        for status in ["delivered", "sent", "queued", "delivered"] {
            report(&stack, &reached, status, "").await;
        }
        let job = ada.payer.finished(&id).await;
        assert_eq!(states(&job), ["delivered", "opted_out", "failed", "ambiguous"], "{job}");
        assert_eq!(ada.money(&stack).await, (4 * EACH, 3 * EACH));
        for (index, asked) in vendors.texts().iter().enumerate() {
            assert_eq!(asked.header("content-type"), "application/x-www-form-urlencoded");
            let form = asked.form();
            for (name, value) in [
                ("From", ada.number.as_str()),
                ("Body", message),
                ("SmartEncoded", "false"),
                ("ValidityPeriod", "14400"),
                ("MaxPrice", "0.10"),
            ] {
                assert_eq!(form.get(name).map(String::as_str), Some(value), "{name} of {index}");
            }
            assert!(form["StatusCallback"].starts_with(&format!("{BASE}{STATUS}?request={id}&index=")), "{form:?}");
        }

        // An opt-out that Twilio finds out later holds; a repeated report does not undo a START.
        let lost = vendors.text_to(LOST);
        report(&stack, &lost, "failed", "21610").await;
        assert!(ada.is_stopped_by(&stack, LOST).await && ada.is_stopped_by(&stack, OPTED_OUT).await);
        assert_eq!((ada.tracked(&id, "undelivered").await, ada.tracked(&id, "ambiguous").await), (1, 0));
        let start = [("MessageSid", "SMstart"), ("From", LOST), ("To", ada.number.as_str()), ("Body", "Start")];
        assert_eq!(post(&stack, INBOUND, &start).await.status, 200);
        report(&stack, &lost, "failed", "21610").await;
        assert!(!ada.is_stopped_by(&stack, LOST).await);
        assert_eq!(ada.money(&stack).await, (4 * EACH, 3 * EACH), "the charge is final");
        assert!(matches!(ada.hand_over(&stack, LATER).await, Handed::NotNow { .. }));
        assert_eq!([REACHED, OPTED_OUT, REFUSED, LOST].map(|to| vendors.count(to)), [1; 4], "none is repeated");
    });
}

/// Numbers that cannot text, or whose texts go to another program, are given to nobody, and the doctor counts them.
#[test]
fn twilio_numbers_that_are_not_set_up_for_this_deployment_are_passed_over() {
    run(async {
        let vendors = Vendors::start().await;
        let stack = stack_with(|options| vendors.twilio(options)).await;
        for _ in OWN {
            Agent::new(&stack).await;
        }
        let (toolbox, agent) = (&stack.worker.toolbox, Payer::new(&stack).await.agent());
        let deadline = Instant::now() + Duration::from_secs(20);
        let third = phone::register(toolbox, agent, RequestId::random(), deadline).await;
        assert!(matches!(third, Ok(Registered::NoneLeft)), "{third:?}");

        // Seen from another address, all of them are set up for another deployment.
        let mut environment = stack.environment.clone();
        environment.insert("PUBLIC_BASE_URL".to_owned(), vendors.url.clone());
        let report = local::doctor::examine(&environment).await;
        for (found, count) in [("what they receive is not posted here", 3), ("they cannot text", 1)] {
            let found = format!("numbers at Twilio passed over, because {found}: {count}");
            assert!(report.0.iter().any(|finding| finding.found == found), "{found}: {}", report.text());
        }
    });
}

/// A call comes in, from a phone.
async fn ring(stack: &Stack, to: &Number) -> Rang {
    let id = RequestId::random();
    let ring = Ring { id, to, from: REACHED, caller: None, provider: None, price: plan::EACH, hops: 0 };
    ringing::ring(&stack.worker.toolbox, &ring).await.expect("a database")
}

/// The operator gave a number back, or lost it: its agent gets another one with its next text, and pays for it once. Calls to the
/// old one, which its agent can no longer switch off, are not answered at its expense.
#[test]
fn a_number_that_the_provider_no_longer_has_is_replaced() {
    run(async {
        for by_aws in [true, false] {
            let vendors = Vendors::start().await;
            let stack = match by_aws {
                true => vendors.aws().await,
                false => stack_with(|options| vendors.twilio(options)).await,
            };
            let ada = Agent::new(&stack).await;
            let (db, agent) = (&stack.app.db, ada.payer.agent());
            let id = phone::list(db, agent).await.expect("a database")[0].id;
            let path = format!("/v1/tools/voice/numbers/{id}/inbound");
            let body = json!({"prompt": "You answer for Ada.", "webhook_url": "https://example.com/calls"});
            let put = ada.payer.change("PUT", &path, &body).await;
            assert_eq!(put.status, 200, "{}", put.text);
            assert!(matches!(ring(&stack, &ada.number).await, Rang::Declined(..)), "it has no credits");
            vendors.take(&ada.number);
            let job = ada.payer.finished(&ada.send(&[REACHED], "Hello").await).await;
            assert_eq!(states(&job), ["failed"], "by AWS: {by_aws}: {job}");
            assert_eq!(ada.money(&stack).await, (EACH, EACH), "a text that was not accepted costs nothing");
            let listed = ada.payer.get("/v1/tools/voice/numbers").await.json()["data"]["numbers"].clone();
            assert_eq!((&listed[0]["phone_number"], &listed[0]["status"]), (&json!(ada.number), &json!("lost")));
            assert_eq!(listed[0]["inbound_enabled"], false);
            assert_eq!(ring(&stack, &ada.number).await, Rang::NotInService);
            let notes = ada.payer.get("/v1/tools/notifications").await.json();
            let notes = notes["notifications"].as_array().expect("a list").iter();
            assert_eq!(notes.filter(|note| note["type"] == "phone_expiring").count(), 1);

            // Of a refusal, no report is waited for.
            let job = ada.payer.finished(&ada.send(&[OPTED_OUT], "Hello").await).await;
            let from = job["result"]["from"].as_str().expect("a number");
            assert!(from != ada.number.as_str() && OWN.contains(&from), "by AWS: {by_aws}: {job}");
            assert_eq!((states(&job), job["result"].get("registration")), (vec!["opted_out"], None), "{job}");
            assert_eq!(ada.money(&stack).await, (2 * EACH, 2 * EACH), "the number was paid for before");
            let owner = phone::owner_of(db, &ada.number).await.expect("a database");
            assert_eq!(owner.expect("an owner").agent, agent, "nobody else gets it");
            assert_eq!(ring(&stack, &ada.number).await, Rang::NotInService);
            let call = json!({"target_number": ada.number, "objective": "Ask what bread costs."});
            let refused = Payer::new(&stack).await.ask("/v1/tools/voice/call", &call).await;
            assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{}", refused.text);
            // Its settings end with the next look at the leases.
            lease::look(&stack.worker.toolbox).await.expect("a database");
            eventually("the end of its settings", || async {
                settings::load(db, agent, id).await.expect("a database").is_none().then_some(())
            })
            .await;
            let hook = endpoint::load(db, agent, settings::endpoint_id(id)).await.expect("a database");
            assert_eq!(hook.expect("an endpoint").disabled, Some(Disabled::ByOwner));

            // A refusal is not believed alone: a number that the provider lists stays.
            let from = Number::parse(from).expect("a number");
            let (toolbox, deadline) = (&stack.worker.toolbox, Instant::now() + Duration::from_secs(20));
            phone::check_lost(toolbox, agent, &from, deadline).await.expect("a database");
            let own = phone::list(db, agent).await.expect("a database");
            assert_eq!((own.len(), own[0].lost_at), (1, None));
        }
    });
}

#[test]
fn requests_that_twilio_has_not_signed_change_nothing() {
    run(async {
        let vendors = Vendors::start().await;
        let stack = stack_with(|options| vendors.twilio(options)).await;
        let ada = Agent::new(&stack).await;
        let id = ada.send(&[REACHED], "Hello").await;
        eventually("the text", || async { (!vendors.texts().is_empty()).then_some(()) }).await;
        let path = vendors.text_to(REACHED).form()["StatusCallback"].replace(BASE, "");
        let fields = [("MessageSid", "SM1"), ("MessageStatus", "failed"), ("ErrorCode", "21610")];
        let changed = [("MessageSid", "SM1"), ("MessageStatus", "failed"), ("ErrorCode", "30003")];
        let good = signature_of(TOKEN, &path, &fields);
        let (forged, other) = (signature_of(SID, &path, &fields), format!("{path}0"));
        let text = [("MessageSid", "SM2"), ("From", REACHED), ("To", ada.number.as_str()), ("Body", "STOP")];
        for (path, fields, signature) in [
            (path.as_str(), fields.as_slice(), ""),
            (&path, &fields, forged.as_str()),
            (&path, &changed, &good),
            (&other, &fields, &good),
            (STATUS, &fields, &good),
            (INBOUND, &text, &good),
            (INBOUND, &text, "not base64"),
        ] {
            let answer = post_form(&stack, path, fields, signature).await;
            assert_eq!(answer.error(), (403, "invalid_signature".to_owned()), "{path} {fields:?} {signature}");
        }
        let client = Client::new(&stack.base_url);
        assert_eq!(client.post(INBOUND, &[], &json!({"Body": "STOP"})).await.status, 415);
        // Signed, but about no text of ours.
        let unknown = format!("{STATUS}?request={}&index=0", RequestId::random());
        let spelled = path.replace("index=0", "index=00");
        for path in [STATUS, unknown.as_str(), spelled.as_str()] {
            assert_eq!(post(&stack, path, &fields).await.status, 204, "{path}");
        }
        assert!(!ada.is_stopped_by(&stack, REACHED).await && ada.texts(&stack).await.is_empty());
        assert_eq!(ada.tracked(&id, "undelivered").await, 0);
        assert_eq!(post(&stack, &path, &fields).await.status, 204);
        assert_eq!(ada.tracked(&id, "undelivered").await, 1);

        // A deployment whose texts go elsewhere, or nowhere, knows no Twilio.
        let embedded = crate::support::stack().await;
        for path in [STATUS, INBOUND] {
            assert_eq!(post(&embedded, path, &fields).await.status, 404, "{path}");
        }
    });
}

/// Twilio's signature has no time in it, so a request may be sent again at any time.
#[test]
fn a_text_from_twilio_is_stored_once_however_late_it_is_posted_again() {
    run(async {
        let vendors = Vendors::start().await;
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|options| vendors.twilio(Options { clock: clock.clone(), ..options })).await;
        let ada = Agent::new(&stack).await;
        let to = ada.number.as_str();
        let text = [("MessageSid", "SM1"), ("From", REACHED), ("To", to), ("Body", "Stop"), ("NumMedia", "2")];
        let start = [("MessageSid", "SM2"), ("From", REACHED), ("To", to), ("Body", "start"), ("NumMedia", "0")];
        for (fields, stored, is_out) in [(&text, 1, true), (&text, 1, true), (&start, 2, false)] {
            let answer = post(&stack, INBOUND, fields).await;
            assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/xml")), "{}", answer.text);
            assert!(answer.text.ends_with("<Response/>"), "{}", answer.text);
            assert_eq!((ada.texts(&stack).await.len(), ada.is_stopped_by(&stack, REACHED).await), (stored, is_out));
            clock.advance(Duration::from_secs(60));
        }
        let media: Vec<u32> = ada.texts(&stack).await.iter().map(|text| text.num_media).collect();
        assert_eq!(media, [0, 2]);
        for days in [1, 40] {
            clock.advance(Duration::from_secs(days * 86_400));
            assert_eq!(post(&stack, INBOUND, &text).await.status, 200);
            assert_eq!(ada.texts(&stack).await.len(), 2, "after {days} days");
            assert!(!ada.is_stopped_by(&stack, REACHED).await, "an old STOP does not undo a START");
        }
        // Another channel, and a number that nobody here has.
        for to in ["whatsapp:+12065550142", "+12065550144", ""] {
            let other = [("MessageSid", "SM3"), ("From", REACHED), ("To", to), ("Body", "Hello")];
            assert_eq!(post(&stack, INBOUND, &other).await.status, 200, "{to}");
        }
        assert_eq!(ada.texts(&stack).await.len(), 2);
    });
}
