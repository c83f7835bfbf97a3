//! Phone numbers: bought once, by a first text or by themselves; who may buy; a provider's pool that is too small.

use std::time::Duration;

use axum::{Json, Router};
use base::clock::Clock;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use futures_util::future::join_all;
use local::{Options, Stack};
use platform::store::{Key, Write};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tools::spec::ToolSpec;
use tools::{Reporter, Task};
use tools_sms::number::Number;
use tools_sms::phone::{self, Phone};
use tools_sms::{buy, send};

use super::BASE;
use crate::support::crashes::{Death, Dying, die_at_steps};
use crate::support::{Answer, Payer, books, eventually, run, stack, stack_with};

const NUMBERS: &str = "/v1/tools/voice/numbers";
const SEND: &str = "/v1/tools/sms/send";
/// micro-USDC
const FEE: u64 = 5_000_000;
const EACH: u64 = 3_500;

async fn with_credits(stack: &Stack, micro: u64) -> Payer {
    let payer = Payer::with(stack, 0).await;
    payer.give_credits(stack, micro).await;
    payer
}

/// Asks for the agent's number, with a proof of its own.
async fn ask(payer: &Payer) -> Answer {
    payer.change("POST", NUMBERS, &json!({})).await
}

/// The number in an answer.
fn number(answer: &Answer) -> String {
    let body = answer.json();
    assert_eq!(body["success"], true, "{body}");
    body["data"]["phone_number"].as_str().unwrap_or_else(|| panic!("no number: {body}")).to_owned()
}

async fn listed(payer: &Payer) -> Vec<Value> {
    let answer = payer.get(NUMBERS).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["data"]["numbers"].as_array().expect("a list").clone()
}

async fn credits(stack: &Stack, payer: &Payer) -> u64 {
    books::audit(&stack.app.db, payer.agent()).await.credits.micro()
}

#[test]
fn a_wallet_buys_its_number_and_then_has_it() {
    run(async {
        let stack = stack().await;
        let (ada, poor) = (with_credits(&stack, 2 * FEE).await, with_credits(&stack, FEE - 1).await);
        assert!(listed(&ada).await.is_empty());

        let bought = ask(&ada).await;
        assert_eq!(bought.status, 201, "{}", bought.text);
        let data = &bought.json()["data"];
        for (member, value) in [
            ("is_new", json!(true)),
            ("sms_capable", json!(true)),
            ("voice_capable", json!(true)),
            ("inbound_configured", json!(false)),
            ("inbound_enabled", json!(false)),
            ("charged", json!("5.000000")),
        ] {
            assert_eq!(data[member], value, "{member}");
        }
        assert!(data["receipt_id"].as_str().is_some_and(|id| id.starts_with("rcpt_")), "{data}");
        let again = ask(&ada).await;
        assert_eq!((again.status, number(&again)), (200, number(&bought)));
        let data = &again.json()["data"];
        assert_eq!(
            (&data["is_new"], &data["charged"], &data["receipt_id"]),
            (&json!(false), &json!("0.000000"), &Value::Null)
        );
        assert_eq!(credits(&stack, &ada).await, FEE);
        let all = listed(&ada).await;
        assert_eq!(all.len(), 1);
        assert_eq!((&all[0]["phone_number"], &all[0]["status"]), (&json!(number(&bought)), &json!("active")));
        assert_eq!(all[0]["id"], data["id"]);

        // Too few credits buy nothing.
        assert_eq!(ask(&poor).await.error(), (402, "insufficient_credits".to_owned()));
        assert_eq!((listed(&poor).await.len(), credits(&stack, &poor).await), (0, FEE - 1));
        // Neither a token nor a proof for reading buys, whoever has the number.
        for payer in [&ada, &with_credits(&stack, FEE).await] {
            let token = payer.token(&stack).await;
            let by_token = payer.client.post(NUMBERS, &[("authorization", &token)], &json!({})).await;
            assert_eq!(by_token.error(), (403, "access_tokens_wallet_only".to_owned()));
            let proof = payer.proof("read");
            let by_reader = payer.client.post(NUMBERS, &[("x-agent-proof", &proof)], &json!({})).await;
            assert_eq!(by_reader.error(), (401, "invalid_proof".to_owned()));
            assert_eq!(by_reader.json()["reason"], "wrong_scope");
            assert_eq!(credits(&stack, payer).await, FEE);
        }
        // A number is told to nobody else: the proof is checked before the answer.
        let forged = ada.proof_at("write", 1);
        let answer = ada.client.post(NUMBERS, &[("x-agent-proof", &forged)], &json!({})).await;
        assert_eq!(answer.error(), (401, "invalid_proof".to_owned()));
    });
}

#[test]
fn a_number_bought_from_credits_survives_a_crash_at_every_step() {
    run(die_at_steps(1, 1, die_at));
}

/// Buys a number with a process that dies, and asks until it is there: it is bought once, and paid once. `false` if the purchase
/// needed fewer steps.
async fn die_at(death: Death) -> bool {
    let dying = Dying::start(death, |options| options).await;
    let ada = with_credits(&dying.stack, 2 * FEE).await;
    let proof = ada.proof("write");
    let headers = [("x-agent-proof", proof.as_str())];
    let (stack, _, died) = dying.die_in(ada.client.try_post(NUMBERS, &headers, &json!({}))).await;

    let ada = ada.at(&stack);
    eventually("the number", || async {
        let answer = ask(&ada).await;
        assert!(matches!(answer.status, 200 | 201 | 409 | 503), "{death:?}: {}", answer.text);
        (answer.status < 300).then_some(())
    })
    .await;
    // If the dead process had paid for one, the second purchase finds it or is paid back.
    eventually("one fee", || async { (credits(&stack, &ada).await == FEE).then_some(()) }).await;
    eventually("an empty queue", || async { stack.queue.is_idle().then_some(()) }).await;
    let all = listed(&ada).await;
    assert_eq!((all.len(), credits(&stack, &ada).await), (1, FEE), "{death:?}: {all:?}");
    stack.kill().await;
    died
}

/// Without credits, a wallet pays by x402. Its payment sent again is answered again.
#[test]
fn a_number_is_paid_by_x402() {
    run(async {
        let stack = stack().await;
        let eve = Payer::with(&stack, 3 * FEE).await;
        let unpaid = eve.client.post(NUMBERS, &[], &json!({})).await;
        assert_eq!(unpaid.status, 402, "{}", unpaid.text);
        let payment = eve.pay(&unpaid);
        let headers = [("payment-signature", payment.as_str())];
        let bought = eve.client.post(NUMBERS, &headers, &json!({})).await;
        assert_eq!(bought.status, 201, "{}", bought.text);
        let again = eve.client.post(NUMBERS, &headers, &json!({})).await;
        assert_eq!((again.status, again.json()), (201, bought.json()));
        assert_eq!(eve.balance(&stack).await, u128::from(2 * FEE));
        // Another payment is refused before it is taken, and so is the name alone, before it is asked to pay.
        let other = eve.buy(NUMBERS, &json!({})).await;
        assert_eq!(other.error(), (400, "number_not_needed".to_owned()), "{}", other.text);
        let agent = eve.address().to_string();
        let named = eve.client.post(NUMBERS, &[("x-agent-id", &agent)], &json!({})).await;
        assert_eq!(named.error(), (400, "number_not_needed".to_owned()), "{}", named.text);
        assert_eq!((eve.balance(&stack).await, credits(&stack, &eve).await), (u128::from(2 * FEE), 0));
        assert_eq!((listed(&eve).await.len(), books::receipts(&stack.app.db, eve.agent()).await.len()), (1, 1));
        // With a proof, it is told.
        assert_eq!((ask(&eve).await.status, number(&ask(&eve).await)), (200, number(&bought)));
    });
}

/// Calls of one wallet at the same time: one of them buys, and says so.
#[test]
fn one_of_ten_calls_buys_the_number() {
    run(async {
        // Calls share a purchase for a minute of the clock.
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|options| Options { clock, ..options }).await;
        let ada = with_credits(&stack, 10 * FEE).await;
        let answers = join_all((0..10).map(|_| ask(&ada))).await;
        let mut bought = 0;
        for answer in &answers {
            let data = &answer.json()["data"];
            match answer.status {
                201 => {
                    bought += 1;
                    assert_eq!((&data["is_new"], &data["charged"]), (&json!(true), &json!("5.000000")), "{data}");
                }
                200 => {
                    assert_eq!((&data["is_new"], &data["charged"]), (&json!(false), &json!("0.000000")), "{data}");
                    assert_eq!(data["receipt_id"], Value::Null, "{data}");
                }
                _ => assert_eq!(answer.error(), (409, "provisioning_in_progress".to_owned()), "{}", answer.text),
            }
        }
        assert_eq!(bought, 1, "{answers:?}");
        assert_eq!(credits(&stack, &ada).await, 9 * FEE);
        assert_eq!(books::receipts(&stack.app.db, ada.agent()).await.len(), 1);
    });
}

/// A token asks for a price as often as it likes. It redeems a quote with what is free then.
#[test]
fn quotes_of_a_token_keep_no_credits() {
    run(async {
        let stack = stack().await;
        let (ada, bob) = (with_credits(&stack, FEE + EACH).await, with_credits(&stack, FEE).await);
        let to = number(&ask(&bob).await);
        let (token, body) = (ada.token(&stack).await, json!({"message": "Hello", "to_number": to}));
        let mut quotes = Vec::new();
        for _ in 0..3 {
            let asked = ada.client.post(SEND, &[("authorization", &token)], &body).await;
            assert_eq!(asked.status, 402, "{}", asked.text);
            let asked = asked.json();
            let message = asked["message"].as_str().expect("a text");
            let needs = ["X-Quote-ID", "neither a proof nor a payment"];
            assert!(needs.iter().all(|need| message.contains(need)) && !message.contains("cap"), "{message}");
            quotes.push(asked["context"]["quote_id"].as_str().expect("a quote").to_owned());
            let account = books::audit(&stack.app.db, ada.agent()).await;
            assert_eq!((account.credits.micro(), account.reserved.micro()), (FEE + EACH, 0));
        }
        let redeem =
            async |quote: &str| ada.client.post(SEND, &[("authorization", &token), ("x-quote-id", quote)], &body).await;
        let accepted = redeem(&quotes[0]).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        ada.finished(accepted.json()["request_id"].as_str().expect("an id")).await;
        assert_eq!(credits(&stack, &ada).await, 0);
        assert_eq!(redeem(&quotes[1]).await.error(), (402, "insufficient_credits".to_owned()));
        assert_eq!(redeem(&quotes[0]).await.status, 202, "the same again");
    });
}

/// A job of an agent, as an earlier run left it that got a number of a provider which is no longer in use.
async fn at_another_provider(stack: &Stack, tool: &'static ToolSpec, input: Value) -> (Task, Phone) {
    let toolbox = &stack.worker.toolbox;
    let task = Task {
        tool,
        input: input.as_object().expect("an input").clone(),
        locked: match json!({"segments": 1, "source": "twilio", "each": EACH, "fee": FEE}) {
            Value::Object(locked) => locked,
            _ => Map::new(),
        },
        price: Usdc::from_micro(FEE + EACH),
        request_id: RequestId::random(),
        receipt_id: None,
        agent: AgentId::from_bytes(base::digest::random()),
        wallet_signed: true,
        token: None,
        funds: None,
        is_over: false,
        deadline: toolbox.clock.now().plus(Duration::from_secs(60)),
        reporter: Reporter::default(),
    };
    let phone = Phone {
        id: base::ids::uuid_of(&[b"phone", task.agent.bytes()]),
        agent: task.agent,
        number: Number::parse("+14155552671").expect("a number"),
        source: "twilio".to_owned(),
        bought_by: task.request_id,
        created: toolbox.clock.now(),
        last_used_at: None,
        leased: false,
        lost_at: None,
        inbound: None,
        line: None,
    };
    let key = Key::new(format!("AGENT#{}", task.agent), "PHONE#twilio");
    toolbox.db.write(Write::put(&toolbox.db.tables.messages, key, &phone).expect("a row")).await.expect("a database");
    (task, phone)
}

/// The operator changes the provider while a job waits for its next run: the number that it got is paid for, and it gets no
/// second one.
#[test]
fn a_number_of_an_earlier_provider_is_paid_for_once() {
    run(async {
        let stack = stack().await;
        let toolbox = stack.worker.toolbox.clone();
        let text = json!({"to_number": "+14155552672", "message": "Hello"});
        let (sends, _) = at_another_provider(&stack, &send::SPEC, text).await;
        let output = (send::RUNNER.run)(toolbox.clone(), sends.clone()).await.expect("the number is charged");
        assert_eq!((&output.result["status"], output.used), (&json!("failed"), Some(Usdc::from_micro(FEE))));
        let (buys, phone) = at_another_provider(&stack, &buy::SPEC, json!({})).await;
        let output = (buy::RUNNER.run)(toolbox.clone(), buys.clone()).await.expect("the number is charged");
        assert_eq!((&output.result["phone_number"], &output.result["is_new"]), (&json!(phone.number), &json!(true)));
        let again = Task { is_over: true, ..buys.clone() };
        let again = (buy::RUNNER.run)(toolbox.clone(), again).await.expect("the number is charged");
        assert_eq!((&again.result, again.used), (&output.result, None));
        for task in [sends, buys] {
            assert_eq!(phone::list(&toolbox.db, task.agent).await.expect("a database").len(), 1);
        }
    });
}

/// First texts and purchases of one agent at the same time.
#[test]
fn a_number_is_bought_once() {
    const TEXTS: usize = 6;
    const CALLS: usize = 20;
    const GIVEN: u64 = 60 * FEE;
    run(async {
        let stack = stack().await;
        let (ada, bob) = (with_credits(&stack, GIVEN).await, with_credits(&stack, FEE).await);
        let to = number(&ask(&bob).await);
        let (token, body) = (ada.token(&stack).await, json!({"message": "Hello", "to_number": to}));
        // Each quote has the fee, and each of its purchases could be the one that buys the number.
        let mut quotes = Vec::new();
        for _ in 0..TEXTS {
            let asked = ada.client.post(SEND, &[("authorization", &token)], &body).await;
            assert_eq!(asked.status, 402, "{}", asked.text);
            let context = asked.json()["context"].clone();
            assert_eq!((&context["needs_phone_registration"], &context["total"]), (&json!(true), &json!("5.003500")));
            quotes.push(context["quote_id"].as_str().expect("a quote").to_owned());
        }
        let texts = join_all(quotes.into_iter().map(|quote| {
            let headers = vec![("authorization", token.clone()), ("x-quote-id", quote)];
            ada.clone().call(SEND, headers, body.clone())
        }));
        let calls = join_all((0..CALLS).map(|_| ask(&ada)));
        let (texts, calls) = tokio::join!(texts, calls);

        let mut numbers = Vec::new();
        for answer in &calls {
            match answer.status {
                200 | 201 => numbers.push(number(answer)),
                409 => assert_eq!(answer.error().1, "provisioning_in_progress"),
                _ => panic!("{} {}", answer.status, answer.text),
            }
        }
        for accepted in &texts {
            assert_eq!(accepted.status, 202, "{}", accepted.text);
            let job = ada.finished(accepted.json()["request_id"].as_str().expect("an id")).await;
            assert_eq!(job["result"]["status"], "all_delivered", "{job}");
            numbers.push(job["result"]["from"].as_str().expect("a number").to_owned());
        }
        let all = listed(&ada).await;
        assert_eq!(all.len(), 1);
        assert!(numbers.iter().all(|number| all[0]["phone_number"] == number.as_str()), "{numbers:?}");
        // One of them paid for the number; what the others paid for it is back.
        let left = GIVEN - FEE - EACH * u64::try_from(TEXTS).expect("a number");
        eventually("the money that comes back", || async {
            let account = ledger::account::load(&stack.app.db, ada.agent()).await.expect("a database");
            (account.reserved.is_zero() && account.credits.micro() >= left).then_some(())
        })
        .await;
        assert_eq!(credits(&stack, &ada).await, left);
    });
}

/// The operator's numbers at Twilio, as it lists them.
async fn pool(numbers: &[&str]) -> String {
    let capabilities = json!({"voice": true, "sms": true, "mms": true, "fax": false});
    let sms_url = format!("{BASE}/v1/providers/twilio/inbound");
    let entry =
        |number: &&str| json!({"sid": "PN1", "phone_number": number, "capabilities": capabilities, "sms_url": sms_url});
    let entries: Vec<Value> = numbers.iter().map(entry).collect();
    let list = json!({"incoming_phone_numbers": entries, "page": 0, "page_size": 500, "next_page_uri": null});
    let router = Router::new().fallback(move || {
        let list = list.clone();
        async move { Json(list) }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { drop(axum::serve(listener, router).await) });
    url
}

#[test]
fn the_last_number_of_a_provider_goes_to_one_agent() {
    const NUMBER: &str = "+14155552671";
    run(async {
        let url = pool(&[NUMBER]).await;
        let key = format!("AC{}:{}", "0".repeat(32), "1".repeat(32));
        let stack = stack_with(|options| {
            options
                .with("SMS_PROVIDERS", "twilio")
                .with("PUBLIC_BASE_URL", BASE)
                .with("PROVIDER_KEYS", json!({"twilio": key}).to_string())
                .with("PROVIDER_URLS", json!({"twilio": url}).to_string())
        })
        .await;
        let (ada, bob) = (with_credits(&stack, FEE).await, with_credits(&stack, FEE).await);
        let (of_ada, of_bob) = tokio::join!(ask(&ada), ask(&bob));
        let (winner, got, loser, lost) = match of_ada.status {
            201 => (&ada, of_ada, &bob, of_bob),
            _ => (&bob, of_bob, &ada, of_ada),
        };
        assert_eq!((got.status, number(&got)), (201, NUMBER.to_owned()), "{}", got.text);
        assert_eq!(lost.error(), (503, "provider_unavailable".to_owned()));
        assert_eq!((listed(winner).await.len(), credits(&stack, winner).await), (1, 0));
        assert_eq!((listed(loser).await.len(), credits(&stack, loser).await), (0, FEE));
        let number = tools_sms::number::Number::parse(NUMBER).expect("a number");
        let owner = phone::owner_of(&stack.app.db, &number).await.expect("a database").expect("an owner");
        assert_eq!((owner.agent, owner.source.as_str()), (winner.agent(), "twilio"));

        // From now on, nobody is charged first.
        let receipts = books::receipts(&stack.app.db, loser.agent()).await.len();
        assert_eq!(ask(loser).await.error(), (503, "provider_unavailable".to_owned()));
        assert_eq!(books::receipts(&stack.app.db, loser.agent()).await.len(), receipts);
        assert_eq!(ask(winner).await.status, 200);
    });
}
