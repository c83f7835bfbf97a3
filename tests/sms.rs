//! Texts: prices and segments, sending between agents and to the phone network, limits and refusals. Agents' numbers are in
//! `numbers`, received texts and STOP in `inbox`, the providers' requests and reports in `providers`, crashes in `crashes`.

mod crashes;
mod inbox;
mod numbers;
mod providers;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::http::{Method, Response};
use base::clock::Clock;
use base::ids::{AgentId, RequestId};
use futures_util::future::join_all;
use local::{Options, Stack};
use platform::store::{Key, Write};
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::Toolbox;
use tools_sms::number::Number;
use tools_sms::phone::{self, Registered};
use tools_sms::segments::Encoding;
use tools_sms::velocity::{self, MAX_A_DAY, MAX_TO_BLOCK_OF_STRANGERS};

use crate::email::one_day;
use crate::mcp_calls::call;
use crate::support::receiver::Receiver;
use crate::support::{Answer, Payer, books, eventually, run, stack, stack_with};
use crate::webhooks;

const SEND: &str = "/v1/tools/sms/send";
const INBOX: &str = "/v1/tools/sms/inbox";
const NUMBERS: &str = "/v1/tools/voice/numbers";
/// The address of a deployment that uses Twilio.
const BASE: &str = "https://sms.example";
/// micro-USDC per segment and recipient
pub const EACH: u64 = 3_500;
/// micro-USDC for a number
const FEE: u64 = 5_000_000;
/// What an agent has on chain at first, in micro-USDC.
const FUNDS: u64 = 20_000_000;

/// A wallet with twenty dollars.
#[derive(Clone)]
pub struct Agent {
    pub payer: Payer,
}

impl Agent {
    async fn new(stack: &Stack) -> Agent {
        Agent { payer: Payer::with(stack, FUNDS).await }
    }

    /// One that has a number.
    pub async fn with_number(stack: &Stack) -> (Agent, Number) {
        let agent = Agent::new(stack).await;
        let number = number_for(&stack.worker.toolbox, agent.payer.agent()).await;
        (agent, number)
    }

    /// Asks for the price, as a client that names its wallet.
    async fn ask(&self, body: &Value) -> Answer {
        self.payer.ask(SEND, body).await
    }

    /// The same, proven: only then is it told what it has left.
    async fn ask_proven(&self, body: &Value) -> Answer {
        self.payer.client.post(SEND, &[("x-agent-proof", &self.payer.proof("read"))], body).await
    }

    /// Pays a 402.
    async fn pay(&self, unpaid: &Answer, body: &Value) -> Answer {
        self.payer.redeem(SEND, unpaid, body).await
    }

    /// Asks, pays, and waits for the job's end.
    async fn text(&self, to: impl Into<Value>, message: &str) -> Value {
        let body = text_to(to, message);
        let unpaid = self.ask(&body).await;
        self.ended(self.pay(&unpaid, &body).await).await
    }

    async fn ended(&self, accepted: Answer) -> Value {
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let body = accepted.json();
        assert_eq!((&body["tool"], &body["status"]), (&json!("sms"), &json!("processing")));
        self.payer.finished(body["request_id"].as_str().expect("an id")).await
    }

    /// What its inbox shows, newest first.
    async fn texts(&self) -> Vec<Value> {
        let answer = self.payer.get(INBOX).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["messages"].as_array().expect("a list").clone()
    }

    /// What it has paid on chain so far, and the credits that it has, in micro-USDC.
    async fn money(&self, stack: &Stack) -> (u64, u64) {
        let left = u64::try_from(self.payer.balance(stack).await).expect("an amount");
        (FUNDS - left, books::audit(&stack.app.db, self.payer.agent()).await.credits.micro())
    }
}

/// A number for an agent that has none, without a payment.
async fn number_for(toolbox: &Toolbox, agent: AgentId) -> Number {
    let deadline = Instant::now() + Duration::from_secs(20);
    let registered = phone::register(toolbox, agent, RequestId::random(), deadline).await;
    let Ok(Registered::New(phone)) = registered else { panic!("a number: {registered:?}") };
    phone.number
}

pub fn text_to(to: impl Into<Value>, message: &str) -> Value {
    json!({"to_number": to.into(), "message": message})
}

/// The price in a 402, in micro-USDC.
fn price(unpaid: &Answer) -> u64 {
    let asked = unpaid.base64_header("payment-required");
    asked["accepts"][0]["amount"].as_str().and_then(|amount| amount.parse().ok()).expect("an amount")
}

/// A phone that Twilio answers about by its last digit: it has opted out (1), cannot get texts (2), or the answer is lost (3).
pub fn phone_outside(last: u32) -> String {
    format!("+1415234567{last}")
}

/// Twilio with numbers for agents. It accepts no text.
#[derive(Clone)]
pub struct Twilio {
    url: String,
    /// The bodies of the requests to send a text.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Twilio {
    pub async fn start() -> Twilio {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let twilio = Twilio { url, asked: Arc::default() };
        let asked = twilio.asked.clone();
        let router = Router::new().fallback(move |method: Method, body: String| {
            let asked = asked.clone();
            async move {
                let (status, answer) = if method == Method::GET {
                    (200, pool())
                } else {
                    let answer = answer(&body);
                    asked.lock().expect("a lock").push(body);
                    answer
                };
                let response = Response::builder().status(status).header("content-type", "application/json");
                response.body(answer.to_string()).expect("a response")
            }
        });
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        twilio
    }

    pub fn options(&self, options: Options) -> Options {
        options
            .with("SMS_PROVIDERS", "twilio")
            .with("PUBLIC_BASE_URL", BASE)
            .with("PROVIDER_KEYS", json!({"twilio": "AC0123456789abcdef0123456789abcdef:token"}).to_string())
            .with("PROVIDER_URLS", json!({"twilio": self.url}).to_string())
    }

    pub async fn stack(&self) -> Stack {
        stack_with(|options| self.options(options)).await
    }

    /// How many texts it was asked to send.
    pub fn count(&self) -> usize {
        self.asked.lock().expect("a lock").len()
    }
}

fn pool() -> Value {
    let number = |index: u32| {
        json!({
            "phone_number": format!("+1206234567{index}"), "capabilities": {"sms": true},
            "sms_url": format!("{BASE}/v1/providers/twilio/inbound"),
        })
    };
    json!({"incoming_phone_numbers": (0..8).map(number).collect::<Vec<_>>()})
}

fn answer(form: &str) -> (u16, Value) {
    let mut pairs = url::form_urlencoded::parse(form.as_bytes());
    let to = pairs.find(|(name, _)| name == "To").map(|(_, to)| to.into_owned()).expect("a recipient");
    let code = match to.chars().last() {
        Some('1') => 21_610,
        Some('3') => return (500, json!({"code": 20_500, "message": "Internal Server Error", "status": 500})),
        _ => 21_211,
    };
    (400, json!({"code": code, "message": "no", "more_info": "", "status": 400}))
}

#[test]
fn two_agents_text_each_other() {
    run(async {
        let receiver = Receiver::start().await;
        let stack = stack_with(|options| options.with("LOCAL_FETCH_ALLOW", receiver.allowed())).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let hook = webhooks::create(&bob.payer, &json!({"url": receiver.url, "events": ["sms.received"]})).await;
        bob.payer.give_credits(&stack, FEE).await;
        let bought = bob.payer.change("POST", NUMBERS, &json!({})).await;
        assert_eq!(bought.status, 201, "{}", bought.text);
        let of_bob = bought.json()["data"]["phone_number"].as_str().expect("a number").to_owned();
        assert_eq!(bob.money(&stack).await, (0, 0));

        let body = text_to(of_bob.as_str(), "Shall we meet on Monday?");
        let unpaid = ada.ask(&body).await;
        assert_eq!(price(&unpaid), FEE + EACH);
        let context = &unpaid.json()["context"];
        for (member, value) in [
            ("tool", json!("sms")),
            ("recipient_count", json!(1)),
            ("message_length", json!(24)),
            ("segment_count", json!(1)),
            ("encoding", json!("GSM-7")),
            ("per_message_rate", json!("0.003500")),
            ("messaging_fee", json!("0.003500")),
            ("phone_registration_fee", json!("5.000000")),
            ("needs_phone_registration", json!(true)),
        ] {
            assert_eq!(context[member], value, "{member}: {context}");
        }
        let accepted = ada.pay(&unpaid, &body).await;
        assert_eq!(accepted.json()["sms"], json!({"to_numbers": [of_bob], "segment_count": 1}), "{}", accepted.text);
        let job = ada.ended(accepted).await;
        assert_eq!(job["status"], "completed", "{job}");
        let result = &job["result"];
        let of_ada = result["registration"]["phone_number"].as_str().unwrap_or_else(|| panic!("{job}")).to_owned();
        assert_eq!(result["registration"]["fee"], "5.000000");
        assert_eq!((&result["status"], &result["cost"]), (&json!("all_delivered"), &json!("5.003500")), "{job}");
        assert_eq!((&result["sent"], &result["delivered"], &result["total"]), (&json!(1), &json!(1), &json!(1)));
        assert_eq!(result["details"], json!([{"to": of_bob, "from": of_ada, "status": "delivered"}]));
        assert_eq!(
            (&job["sms_tracking"]["status"], &job["sms_tracking"]["from"]),
            (&json!("delivered"), &json!(of_ada))
        );
        assert_eq!(ada.money(&stack).await, (FEE + EACH, 0));

        let texts = bob.texts().await;
        let [text] = &texts[..] else { panic!("one text: {texts:?}") };
        assert_eq!((&text["from"], &text["to"]), (&json!(of_ada), &json!(of_bob)));
        assert_eq!(text["body"], "Shall we meet on Monday?");
        assert!(text.get("related_outbound_id").is_none(), "bob has not written to ada: {text}");
        let notes = bob.payer.get("/v1/tools/notifications").await.json();
        let notes = notes["notifications"].as_array().expect("a list").iter();
        assert_eq!(notes.filter(|note| note["type"] == "sms_received").count(), 1);

        // Bob has a number, so the answer costs one segment.
        let reply = bob.text(of_ada.as_str(), "Yes, at noon.").await;
        assert_eq!((&reply["status"], reply["result"].get("registration")), (&json!("completed"), None), "{reply}");
        assert_eq!(bob.money(&stack).await, (EACH, 0));
        let got = ada.texts().await[0].clone();
        assert_eq!((&got["from"], &got["body"]), (&json!(of_bob), &json!("Yes, at noon.")));
        let answered = got["related_outbound_id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        let sent = tools_sms::inbox::sent(&stack.app.db, ada.payer.agent(), answered).await.expect("a database");
        let sent = sent.expect("the text that it answers");
        assert_eq!((json!(sent.request_id), sent.segments), (job["request_id"].clone(), 1));
        assert_eq!(sent.body, "Shall we meet on Monday?");

        let posted = eventually("the event", || async { receiver.received().first().cloned() }).await;
        let event = posted.json();
        let url = format!("{INBOX}/{}", text["id"].as_str().expect("an id"));
        let data = json!({
            "message_id": text["id"], "thread_id": text["thread_id"], "to": of_bob, "message_url": url,
        });
        assert_eq!((&event["type"], &event["data"]), (&json!("sms.received"), &data), "and nothing that ada wrote");
        webhooks::check_signatures(hook["secret"].as_str().expect("a secret"), &posted.headers, &posted.body);
        assert_eq!(receiver.count(), 1);
    });
}

#[test]
fn the_quote_counts_as_the_send() {
    run(async {
        let stack = stack().await;
        let ((ada, _), (bob, of_bob)) = (Agent::with_number(&stack).await, Agent::with_number(&stack).await);
        let (a, accents) = (|count: usize| "a".repeat(count), |count: usize| "ê".repeat(count));
        let mut paid = 0;
        for (message, encoding, segments) in [
            (a(160), Encoding::Gsm7, 1),
            (a(161), Encoding::Gsm7, 2),
            (a(307), Encoding::Gsm7, 3),
            (accents(70), Encoding::Ucs2, 1),
            (accents(71), Encoding::Ucs2, 2),
            // Neither an escape nor a surrogate pair is split.
            (a(152) + "€" + &a(152), Encoding::Gsm7, 3),
            (accents(66) + "😀" + &accents(66), Encoding::Ucs2, 3),
            // Written with combining marks, sent as one letter each.
            ("u\u{308}".repeat(160), Encoding::Gsm7, 1),
        ] {
            let label = format!("{} characters, {encoding:?}", message.chars().count());
            let body = text_to(of_bob.as_str(), &message);
            let unpaid = ada.ask(&body).await;
            let context = &unpaid.json()["context"];
            let counted = (&context["segment_count"], &context["encoding"], price(&unpaid));
            assert_eq!(counted, (&json!(segments), &json!(encoding), EACH * segments), "{label}");
            let accepted = ada.pay(&unpaid, &body).await;
            assert_eq!(accepted.json()["sms"]["segment_count"], segments, "{label}: {}", accepted.text);
            let job = ada.ended(accepted).await;
            assert_eq!((&job["status"], &job["result"]["segment_count"]), (&json!("completed"), &json!(segments)));
            paid += EACH * segments;
            assert_eq!(ada.money(&stack).await, (paid, 0), "{label}");
        }
        assert_eq!(bob.texts().await[0]["body"], "ü".repeat(160));
    });
}

#[test]
fn only_accepted_texts_are_charged() {
    run(async {
        let twilio = Twilio::start().await;
        let stack = twilio.stack().await;
        let (ada, carl) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let (bob, of_bob) = Agent::with_number(&stack).await;
        let to = json!([of_bob, phone_outside(1), phone_outside(2), phone_outside(3)]);
        let job = ada.text(to, "Hello").await;
        let result = &job["result"];
        assert_eq!((&job["status"], &result["status"]), (&json!("completed"), &json!("partial")), "{job}");
        assert_eq!((&result["sent"], &result["failed"], &result["total"]), (&json!(1), &json!(3), &json!(4)));
        let details = result["details"].as_array().expect("a list").iter();
        let states: Vec<&str> = details.map(|detail| detail["status"].as_str().expect("a state")).collect();
        assert_eq!(states, ["delivered", "opted_out", "failed", "ambiguous"], "{job}");
        assert_eq!((&result["warning"], &result["cost"]), (&json!("delivery_unknown"), &json!("5.003500")), "{job}");
        assert_eq!(ada.money(&stack).await, (FEE + 4 * EACH, 3 * EACH), "{job}");
        assert_eq!(bob.texts().await.len(), 1);
        assert_eq!(twilio.count(), 3, "the one whose answer was lost is not sent again");

        // A refusal for an opt-out is known from then on, for this number.
        let job = ada.text(phone_outside(1), "Hello again").await;
        assert_eq!((&job["status"], &job["result"]["status"]), (&json!("completed"), &json!("failed")), "{job}");
        assert_eq!((ada.money(&stack).await, twilio.count()), ((FEE + 5 * EACH, 4 * EACH), 3), "{job}");

        // Nobody gets it: the number is the agent's all the same.
        let job = carl.text(phone_outside(2), "Hello").await;
        assert_eq!((&job["status"], &job["result"]["status"]), (&json!("completed"), &json!("failed")), "{job}");
        assert_eq!(job["result"]["cost"], "5.000000", "{job}");
        assert_eq!(carl.money(&stack).await, (FEE + EACH, EACH));
        assert_eq!(price(&carl.ask(&text_to(of_bob.as_str(), "Hello")).await), EACH);
    });
}

/// A model makes one call. A call over HTTP with a token takes two: the price, then its quote.
#[test]
fn a_token_buys_a_text_with_one_call_over_mcp() {
    run(async {
        let stack = stack().await;
        let ((ada, _), (bob, of_bob)) = (Agent::with_number(&stack).await, Agent::with_number(&stack).await);
        ada.payer.give_credits(&stack, 10 * EACH).await;
        let token = ada.payer.token(&stack).await;
        let headers = [("authorization", token.as_str())];
        let bought = call(&ada.payer.client, &headers, "agora_sms", text_to(of_bob.as_str(), "Hello"), json!({})).await;
        assert_eq!(bought["isError"], false, "{bought}");
        let id = bought["structuredContent"]["request_id"].as_str().expect("an id");
        assert_eq!(ada.payer.finished(id).await["result"]["status"], "all_delivered");
        assert_eq!((ada.money(&stack).await, bob.texts().await.len()), ((0, 9 * EACH), 1));

        let blank =
            call(&ada.payer.client, &headers, "agora_sms", text_to(of_bob.as_str(), "\u{200b}"), json!({})).await;
        assert_eq!(blank["structuredContent"]["error"], "invalid_request", "{blank}");
        assert_eq!(ada.money(&stack).await, (0, 9 * EACH));
    });
}

/// A client that only pays is nobody until then. It pays for its first number, and not for another.
#[test]
fn a_payer_without_a_name_pays_for_one_number() {
    run(async {
        let stack = stack().await;
        let (ada, (_, of_bob)) = (Agent::new(&stack).await, Agent::with_number(&stack).await);
        let body = text_to(of_bob.as_str(), "Hello");
        let only_pay = async || {
            let unpaid = ada.payer.client.post(SEND, &[], &body).await;
            assert_eq!(price(&unpaid), FEE + EACH);
            let payment = ada.payer.pay(&unpaid);
            ada.payer.client.post(SEND, &[("payment-signature", &payment)], &body).await
        };
        assert_eq!(ada.ended(only_pay().await).await["result"]["cost"], "5.003500");
        let again = only_pay().await;
        assert_eq!(again.error(), (400, "number_not_needed".to_owned()), "{}", again.text);
        assert_eq!(ada.money(&stack).await, (FEE + EACH, 0));
        assert_eq!(price(&ada.ask(&body).await), EACH);
    });
}

#[test]
fn emergency_short_and_premium_numbers_are_refused_before_a_price() {
    run(async {
        let stack = stack().await;
        let (ada, of_ada) = Agent::with_number(&stack).await;
        for (to, blocked) in [
            (json!("911"), "911"),
            (json!("112"), "112"),
            (json!("000"), "000"),
            (json!("+1911"), "+1911"),
            (json!("15"), "15"),
            (json!("９１１"), "９１１"),
            (json!("00 44 (0) 999"), "00 44 (0) 999"),
            (json!(911), "911"),
            // They come before all other refusals.
            (json!(["24273", of_ada, "9-1-1"]), "9-1-1"),
        ] {
            let answer = ada.ask(&text_to(to, "Hello")).await;
            assert_eq!(answer.error(), (400, "emergency_number_blocked".to_owned()), "{blocked}");
            let body = answer.json();
            assert_eq!((&body["blocked_number"], body.get("context")), (&json!(blocked), None), "{body}");
        }
        let without_message = ada.ask(&json!({"to_number": "112"})).await;
        assert_eq!(without_message.error(), (400, "emergency_number_blocked".to_owned()));
        let unassigned = ada.ask(&text_to("+1415555267", "Hello")).await;
        assert_eq!(unassigned.error(), (400, "invalid_request".to_owned()));
        assert!(unassigned.text.contains("does not exist"), "{}", unassigned.text);
        for (to, path) in [
            (json!("+19002345678"), "to_number"),
            (json!("24273"), "to_number"),
            (json!([of_ada, "+1415555"]), "to_number.1"),
            (json!([of_ada, "+1 415 555 2671"]), "to_number.1"),
            (json!([]), "to_number"),
            (json!(vec![of_ada.as_str(); 101]), "to_number"),
        ] {
            let answer = ada.ask(&text_to(to, "Hello")).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{path}: {}", answer.text);
            let body = answer.json();
            assert_eq!((&body["details"][0]["path"], body.get("context")), (&json!(path), None), "{body}");
        }
        for message in ["", "\n ", "a\0b"] {
            let answer = ada.ask(&text_to(of_ada.as_str(), message)).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{message:?}");
        }
        let threat = ada.ask(&text_to(of_ada.as_str(), "I will kill you.")).await;
        assert_eq!(threat.error(), (400, "content_blocked".to_owned()));
        assert_eq!(ada.money(&stack).await, (0, 0));
    });
}

#[test]
fn a_number_outside_needs_a_provider() {
    run(async {
        let fictitious = Number::fictitious(7);
        let outside = phone_outside(2);
        let alone = stack().await;
        let (ada, of_ada) = Agent::with_number(&alone).await;
        let answer = ada.ask(&text_to(json!([of_ada, outside]), "Hello")).await;
        assert_eq!(answer.error(), (503, "provider_unavailable".to_owned()), "{}", answer.text);
        assert!(answer.json()["message"].as_str().is_some_and(|why| why.contains("SMS_PROVIDERS")), "{}", answer.text);
        let answer = ada.ask(&text_to(json!([of_ada, fictitious]), "Hello")).await;
        assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{}", answer.text);
        assert_eq!(answer.json()["details"][0]["path"], "to_number.1", "{}", answer.text);

        let with_provider = Twilio::start().await.stack().await;
        let bob = Agent::new(&with_provider).await;
        assert_eq!(price(&bob.ask(&text_to(outside, "Hello")).await), FEE + EACH);
        let german = bob.ask(&text_to("+4915112345678", "Hello")).await;
        assert_eq!(german.error(), (400, "country_not_allowed".to_owned()), "{}", german.text);
        let nobody = bob.ask(&text_to(json!(fictitious), "Hello")).await;
        assert_eq!(nobody.error(), (400, "invalid_request".to_owned()), "{}", nobody.text);
    });
}

/// Writes a counter of today.
async fn used_today(stack: &Stack, counter: String, used: u32) {
    let db = &stack.app.db;
    let day = Clock::system().now().secs().div_euclid(24 * 3600).to_string();
    let write = Write::update(&db.tables.messages, Key::new(counter, day), "SET #used = :used");
    db.write(write.bind("used", used).expect("a number")).await.expect("a counter");
}

#[test]
fn two_sends_race_for_the_last_place() {
    run(async {
        one_day().await;
        let twilio = Twilio::start().await;
        let stack = twilio.stack().await;
        let (ada, _) = Agent::with_number(&stack).await;
        used_today(&stack, format!("SMSDAY#{}", ada.payer.agent()), MAX_A_DAY - 1).await;
        let body = text_to(phone_outside(2), "Hello");
        let unpaid = [ada.ask_proven(&body).await, ada.ask_proven(&body).await];
        let send = |of: &Agent, unpaid: &Answer, body: &Value| {
            let (of, unpaid, body) = (of.clone(), unpaid.clone(), body.clone());
            async move { of.ended(of.pay(&unpaid, &body).await).await }
        };
        let ended = join_all(unpaid.iter().map(|unpaid| send(&ada, unpaid, &body))).await;
        let [lost] = &ended.iter().filter(|job| job["status"] == "failed").collect::<Vec<_>>()[..] else {
            panic!("exactly one goes through: {ended:?}")
        };
        assert_eq!(
            (&lost["error_code"], &lost["credited_usdc"]),
            (&json!("rate_limited"), &json!("0.003500")),
            "{lost}"
        );
        // The other one was handed over, and refused.
        assert_eq!((ada.money(&stack).await, twilio.count()), ((2 * EACH, 2 * EACH), 1));
        assert_eq!(ada.ask_proven(&body).await.error(), (429, "sms_limit_reached".to_owned()));
        // Texts that stay here have places.
        let (_, of_bob) = Agent::with_number(&stack).await;
        assert_eq!(ada.text(of_bob.as_str(), "Hello").await["result"]["status"], "all_delivered");

        // Two agents, and one place left for a block of numbers.
        let ((carl, _), (dora, _)) = (Agent::with_number(&stack).await, Agent::with_number(&stack).await);
        used_today(&stack, "SMSBLOCK#+1415234".to_owned(), MAX_TO_BLOCK_OF_STRANGERS - 1).await;
        let unpaid = [carl.ask_proven(&body).await, dora.ask_proven(&body).await];
        let ended = tokio::join!(send(&carl, &unpaid[0], &body), send(&dora, &unpaid[1], &body));
        for job in [&ended.0, &ended.1] {
            assert_eq!((&job["status"], &job["result"]["status"]), (&json!("completed"), &json!("failed")), "{job}");
        }
        assert_eq!(twilio.count(), 2, "one of them: {ended:?}");
    });
}

/// Segments are what providers are paid for. Whoever pays without a name has the same limit.
#[test]
fn segments_of_a_day_are_limited_for_an_agent_and_for_all() {
    run(async {
        one_day().await;
        let twilio = Twilio::start().await;
        let stack = stack_with(|options| twilio.options(options).with("SMS_DAILY_SEGMENTS", "100")).await;
        let full = (429, "sms_limit_reached".to_owned());
        let (ada, _) = Agent::with_number(&stack).await;
        let (short, long) = (text_to(phone_outside(2), "Hello"), text_to(phone_outside(2), &"a".repeat(161)));
        used_today(&stack, format!("SMSDAY#{}", ada.payer.agent()), MAX_A_DAY - 1).await;
        let refused = ada.ask_proven(&long).await;
        assert_eq!(refused.error(), full, "{}", refused.text);
        assert!(refused.json()["retry_after"].as_u64().is_some_and(|secs| secs <= 86_400), "{}", refused.text);
        assert_eq!(price(&ada.ask_proven(&short).await), EACH, "one segment is left");
        // Whoever only names it is not told, and cannot pay for more than is left.
        let unpaid = ada.ask(&long).await;
        assert_eq!((price(&unpaid), ada.pay(&unpaid, &long).await.error()), (2 * EACH, full.clone()));
        assert_eq!(ada.money(&stack).await, (0, 0));
        // Eleven segments to each of ten.
        let too_many = text_to((0..10).map(phone_outside).collect::<Vec<_>>(), &"a".repeat(1_600));
        assert_eq!(ada.ask(&too_many).await.error(), (400, "invalid_request".to_owned()));

        let carl = Agent::new(&stack).await;
        used_today(&stack, format!("SMSDAY#{}", carl.payer.agent()), MAX_A_DAY).await;
        let unpaid = carl.payer.client.post(SEND, &[], &short).await;
        let payment = carl.payer.pay(&unpaid);
        let refused = carl.payer.client.post(SEND, &[("payment-signature", &payment)], &short).await;
        assert_eq!((refused.error(), carl.money(&stack).await), (full.clone(), (0, 0)), "{}", refused.text);

        // All agents together: one segment is left, and none when the work begins.
        let (bob, of_bob) = Agent::with_number(&stack).await;
        used_today(&stack, "SMSDAY#ALL".to_owned(), 99).await;
        assert_eq!(bob.ask(&long).await.error(), full);
        let unpaid = bob.ask_proven(&short).await;
        used_today(&stack, "SMSDAY#ALL".to_owned(), 100).await;
        let job = bob.ended(bob.pay(&unpaid, &short).await).await;
        assert_eq!((&job["status"], &job["error_code"]), (&json!("failed"), &json!("rate_limited")), "{job}");
        assert_eq!((bob.money(&stack).await, twilio.count()), ((EACH, EACH), 0), "{job}");
        // Texts that stay here do not count.
        assert_eq!(ada.text(of_bob.as_str(), "Hello").await["result"]["status"], "all_delivered");
    });
}

#[test]
fn a_send_that_cannot_begin_gives_its_segments_back() {
    run(async {
        one_day().await;
        let stack = Twilio::start().await.stack().await;
        let (ada, body) = (Agent::new(&stack).await, text_to(phone_outside(2), "Hello"));
        let unpaid = ada.ask(&body).await;
        // Others take all of the provider's numbers.
        for _ in 0..8 {
            let deadline = Instant::now() + Duration::from_secs(20);
            let other = AgentId::from_bytes(base::digest::random());
            let registered = phone::register(&stack.worker.toolbox, other, RequestId::random(), deadline).await;
            assert!(matches!(registered, Ok(Registered::New(_))), "{registered:?}");
        }
        let job = ada.ended(ada.pay(&unpaid, &body).await).await;
        assert_eq!(job["status"], "failed", "{job}");
        // There is room for a whole day's segments, of the agent and of all.
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let full = velocity::full(db, Some(ada.payer.agent()), MAX_A_DAY, MAX_A_DAY, now).await;
        assert_eq!(full.expect("a database"), None);
    });
}

#[test]
fn a_policy_holds_texts_outside_hours_and_by_recipients() {
    run(async {
        let stack = stack().await;
        let ((ada, _), (bob, of_bob)) = (Agent::with_number(&stack).await, Agent::with_number(&stack).await);
        let (_, of_carl) = Agent::with_number(&stack).await;
        let minute = stack.app.clock.now().secs().rem_euclid(86_400) / 60;
        let rules = |start: i64, end: i64| {
            let at = |minute: i64| {
                let minute = minute.rem_euclid(24 * 60);
                format!("{:02}:{:02}", minute / 60, minute % 60)
            };
            json!({"enabled": true, "approver": {"email": "alice@example.com"}, "rules": [
                {"tool": "sms", "action": "require_approval",
                    "when": {"outside_hours": {"timezone": "UTC", "start": at(start), "end": at(end)}}},
                {"tool": "sms", "action": "deny", "when": {"recipients_over": 1}},
            ]})
        };
        let set = async |policy: Value| {
            let set = ada.payer.change("PUT", "/v1/agents/me/action-policy", &policy).await;
            assert_eq!(set.status, 200, "{}", set.text);
        };
        let body = text_to(of_bob.as_str(), "Hello");
        let send = async |body: &Value| match ada.ask(body).await {
            unpaid if unpaid.status == 402 => ada.pay(&unpaid, body).await,
            refused => refused,
        };
        set(rules(minute + 60, minute + 120)).await;
        let held = send(&body).await;
        assert_eq!(held.error(), (403, "approval_required".to_owned()));
        // The approver sees the text, and not what the price was made of.
        let preview = held.json()["approval"]["preview"].clone();
        let members: Vec<&String> = preview.as_object().expect("members").keys().collect();
        assert_eq!(members, ["message", "to_number"], "{preview}");
        assert_eq!((ada.money(&stack).await, bob.texts().await.len()), ((0, 0), 0));
        set(rules(minute - 60, minute + 60)).await;
        assert_eq!(ada.ended(send(&body).await).await["status"], "completed");
        let both = send(&text_to(json!([of_bob, of_carl]), "Hello")).await;
        assert_eq!(both.status, 403, "{}", both.text);
        assert_eq!((ada.money(&stack).await, bob.texts().await.len()), ((EACH, 0), 1));
    });
}
