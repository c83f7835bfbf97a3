//! Credits by card, against a contract server that speaks the card processor's documented protocol: Stripe Checkout
//! (docs.stripe.com/api/checkout/sessions/create; docs.stripe.com/webhooks#verify-manually; read 2026-11).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base::clock::Clock;
use futures_util::future::join_all;
use ledger::seller;
use ring::hmac;
use serde_json::{Value, json};

use local::{Options, Stack};

use crate::souls_market::{Shop, text};
use crate::support::proxy::{Life, Proxy};
use crate::support::{Answer, Payer, VIN, VIN_PATH, books, run, stack_with};

const KEY: &str = "sk_test_a_key";
const SECRET: &str = "whsec_a_secret";

/// The requests to the processor, form decoded.
type Asked = Arc<Mutex<Vec<HashMap<String, String>>>>;

/// Opens a session if the key is right. An amount of 13 dollars is declined as Stripe declines it: with a body that has
/// the reason.
async fn session(State(asked): State<Asked>, headers: HeaderMap, body: String) -> (StatusCode, String) {
    if headers.get("authorization").is_none_or(|value| value != &format!("Bearer {KEY}")) {
        return (StatusCode::UNAUTHORIZED, json!({"error": {"message": "Invalid API Key provided"}}).to_string());
    }
    assert_eq!(headers["content-type"], "application/x-www-form-urlencoded");
    let form: HashMap<String, String> = body
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect();
    let amount = form["line_items[0][price_data][unit_amount]"].clone();
    asked.lock().unwrap().push(form);
    if amount == "1300" {
        let error = json!({"error": {"type": "invalid_request_error", "message": "Amount not allowed"}});
        return (StatusCode::BAD_REQUEST, error.to_string());
    }
    let id = format!("cs_test_{amount}");
    (
        StatusCode::OK,
        json!({"id": id, "object": "checkout.session", "url": format!("https://checkout.test/{id}")}).to_string(),
    )
}

fn decoded(text: &str) -> String {
    text.replace("%5B", "[").replace("%5D", "]").replace("%3A", ":").replace("%2F", "/").replace('+', " ")
}

async fn processor() -> (String, Asked) {
    let asked = Asked::default();
    let router = axum::Router::new().route("/v1/checkout/sessions", post(session)).with_state(asked.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, asked)
}

/// The payment behind a session.
fn payment_of(session: &str) -> String {
    session.replacen("cs_", "pi_", 1)
}

pub fn event(session: &str, agent: &str, cents: u64) -> String {
    json!({"id": "evt_1", "created": 1_795_000_000, "type": "checkout.session.completed", "data": {"object": {
        "id": session, "client_reference_id": agent, "amount_total": cents, "currency": "usd", "payment_status": "paid",
        "payment_intent": payment_of(session),
    }}})
    .to_string()
}

/// An event about a refund or a dispute, `after` seconds later than the payment.
pub fn taken_back(session: &str, kind: &str, id: &str, cents: u64, status: &str, after: i64) -> String {
    json!({"id": "evt_2", "created": 1_795_000_000 + after, "type": kind, "data": {"object": {
        "id": id, "payment_intent": payment_of(session), "amount": cents, "currency": "usd", "status": status,
    }}})
    .to_string()
}

pub fn refunded(session: &str, cents: u64, after: i64) -> String {
    json!({"id": "evt_3", "created": 1_795_000_000 + after, "type": "charge.refunded", "data": {"object": {
        "id": "ch_1", "payment_intent": payment_of(session), "amount": 10_000, "amount_refunded": cents, "currency": "usd",
    }}})
    .to_string()
}

pub async fn heard(payer: &Payer, body: &str) {
    let answer = tell(payer, body, SECRET, Clock::system().now().secs()).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"received": true})));
}

/// A stack that accepts cards.
pub async fn shop(change: impl FnOnce(Options) -> Options) -> Stack {
    let (url, _) = processor().await;
    stack_with(|options| {
        change(
            options.with("CARD_PROCESSOR_URL", url).with("CARD_PROCESSOR_KEY", KEY).with("CARD_WEBHOOK_SECRET", SECRET),
        )
    })
    .await
}

/// The credits as the agent reads them: the balance it can spend, and its debt.
async fn seen(payer: &Payer) -> (String, String) {
    let balance = payer.get("/v1/tools/balance").await.json();
    let text = |name: &str| balance[name].as_str().unwrap().to_owned();
    (text("credits_balance"), text("credits_owed"))
}

fn dollars(balance: &str, owed: &str) -> (String, String) {
    (balance.to_owned(), owed.to_owned())
}

async fn tell(payer: &Payer, body: &str, secret: &str, at: i64) -> Answer {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), format!("{at}.{body}").as_bytes());
    let signature = format!("t={at},v1={}", &evm::hex0x(tag.as_ref())[2..]);
    let headers = [("content-type", "application/json"), ("stripe-signature", signature.as_str())];
    payer.client.send("POST", "/v1/credits/webhook", &headers, body.to_owned()).await.expect("an answer")
}

#[test]
fn card_credits_are_granted_once_after_the_processor_confirms() {
    run(async {
        let (url, asked) = processor().await;
        let stack = stack_with(|options| {
            options.with("CARD_PROCESSOR_URL", url).with("CARD_PROCESSOR_KEY", KEY).with("CARD_WEBHOOK_SECRET", SECRET)
        })
        .await;
        let payer = Payer::with(&stack, 0).await;
        let opened = payer.change("POST", "/v1/credits/checkout", &json!({"amount": "7.50"})).await;
        assert_eq!(opened.status, 200, "{}", opened.text);
        let data = opened.json()["data"].clone();
        assert_eq!(data, json!({"session_id": "cs_test_750", "url": "https://checkout.test/cs_test_750"}));
        let agent = payer.agent().to_string();
        let form = asked.lock().unwrap()[0].clone();
        assert_eq!((form["mode"].as_str(), form["client_reference_id"].as_str()), ("payment", agent.as_str()));
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 0, "a page is no payment");
        for _ in 0..2 {
            // The idempotency key of a failed request is free again.
            let proof = payer.proof("write");
            let headers = [("x-agent-proof", proof.as_str()), ("idempotency-key", "a-card")];
            let declined = payer.client.post("/v1/credits/checkout", &headers, &json!({"amount": 13})).await;
            assert_eq!(declined.error(), (503, "provider_unavailable".to_owned()));
            assert!(!declined.text.contains(KEY));
        }

        let (body, now) = (event("cs_test_750", &agent, 750), Clock::system().now().secs());
        for (secret, at) in [("whsec_other", now), (SECRET, now - 301), (SECRET, now + 360)] {
            assert_eq!(tell(&payer, &body, secret, at).await.error(), (401, "unauthorized".to_owned()));
        }
        let answers: Vec<Value> =
            join_all((0..10).map(|_| tell(&payer, &body, SECRET, now))).await.iter().map(Answer::json).collect();
        assert!(answers.iter().all(|answer| *answer == json!({"received": true})), "{answers:?}");
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 7_500_000, "credited once");
    });
}

/// Partial, repeated, out of order, or before the payment itself: the amount is deducted once. It comes from the
/// balance first; the rest is a debt that stops spending and is paid from later credits.
#[test]
fn refunds_and_disputes_deduct_credits_once() {
    run(async {
        let stack = shop(|options| options).await;
        let payer = Payer::with(&stack, 20_000_000).await;
        let agent = payer.agent().to_string();
        let audited = async || books::audit(&stack.app.db, payer.agent()).await;
        // The refund arrives before the payment.
        for _ in 0..2 {
            heard(&payer, &taken_back("cs_1", "refund.created", "re_1", 200, "pending", 10)).await;
        }
        assert_eq!(audited().await.credits.micro(), 0);
        for _ in 0..2 {
            heard(&payer, &event("cs_1", &agent, 750)).await;
        }
        assert_eq!(seen(&payer).await, dollars("5.500000", "0.000000"));
        for body in [
            refunded("cs_1", 200, 11),
            taken_back("cs_1", "refund.updated", "re_1", 200, "succeeded", 11),
            taken_back("cs_1", "charge.refund.updated", "re_1", 200, "succeeded", 11),
            taken_back("cs_1", "refund.created", "re_1", 200, "pending", 10),
            // An inquiry of the bank: no money has moved.
            taken_back("cs_1", "charge.dispute.created", "du_1", 550, "warning_needs_response", 12),
        ] {
            heard(&payer, &body).await;
            assert_eq!(seen(&payer).await, dollars("5.500000", "0.000000"), "{body}");
        }

        // Most of it is spent, then the rest of the payment is disputed.
        let token = payer.token(&stack).await;
        let call = async || payer.client.post(VIN_PATH, &[("authorization", &token)], &json!({"vin": VIN})).await;
        assert_eq!(call().await.status, 200);
        let spent = audited().await.credits.micro();
        assert_eq!(spent, 5_495_000);
        for kind in ["charge.dispute.created", "charge.dispute.funds_withdrawn", "charge.dispute.created"] {
            heard(&payer, &taken_back("cs_1", kind, "du_1", 550, "needs_response", 20)).await;
            assert_eq!(seen(&payer).await, dollars("0.000000", "0.005000"), "{kind}");
        }
        assert_eq!(audited().await.credits.micro(), 0, "never below nothing");
        let refused = call().await;
        assert_eq!(refused.error(), (402, "insufficient_credits".to_owned()));
        let body = refused.json();
        assert_eq!(
            (&body["credits_owed"], &body["shortfall_usdc"]),
            (&json!("0.005000"), &json!("0.010000")),
            "{body}"
        );
        // Signed payments do not pay the debt. Credits that come in pay it first.
        assert_eq!(payer.buy(VIN_PATH, &json!({"vin": VIN})).await.status, 200);
        assert_eq!(payer.buy("/v1/credits/top-up", &json!({"amount": "0.01"})).await.status, 200);
        assert_eq!(seen(&payer).await, dollars("0.005000", "0.000000"));
        assert_eq!(call().await.status, 200);
        assert_eq!(seen(&payer).await, dollars("0.000000", "0.000000"));

        // The dispute is won. The closed and reinstated events arrive in the wrong order.
        heard(&payer, &taken_back("cs_1", "charge.dispute.funds_reinstated", "du_1", 550, "won", 31)).await;
        heard(&payer, &taken_back("cs_1", "charge.dispute.closed", "du_1", 550, "won", 30)).await;
        heard(&payer, &taken_back("cs_1", "charge.dispute.updated", "du_1", 550, "under_review", 25)).await;
        assert_eq!(seen(&payer).await, dollars("5.500000", "0.000000"));
        // Never more than was paid.
        heard(&payer, &taken_back("cs_1", "charge.dispute.created", "du_2", 750, "needs_response", 40)).await;
        assert_eq!(seen(&payer).await, dollars("0.000000", "0.000000"));
        let account = audited().await;
        assert_eq!((account.credits.micro(), account.debt.micro()), (0, 0));
        // Credits held for a quote are deducted as well.
        heard(&payer, &event("cs_2", &agent, 100)).await;
        let proof = payer.proof("write");
        let quoted = payer.client.post(VIN_PATH, &[("x-agent-proof", &proof)], &json!({"vin": VIN})).await;
        assert_eq!(quoted.status, 402);
        assert!(audited().await.reserved.micro() > 0);
        heard(&payer, &taken_back("cs_2", "charge.dispute.closed", "du_3", 100, "lost", 50)).await;
        let account = audited().await;
        assert_eq!((account.credits.micro(), account.reserved.micro(), account.debt.micro()), (0, 0, 0));
    });
}

/// A dispute is delivered repeatedly while an agent spends as fast as it can. The debt equals what was spent, to the
/// micro-dollar.
#[test]
fn a_dispute_during_spending_becomes_an_exact_debt() {
    run(async {
        let stack = shop(|options| options).await;
        for _ in 0..3 {
            let payer = Payer::with(&stack, 0).await;
            let agent = payer.agent().to_string();
            let session = format!("cs_{agent}");
            heard(&payer, &event(&session, &agent, 10)).await;
            let token = payer.token(&stack).await;
            let dispute = taken_back(&session, "charge.dispute.created", "du_1", 10, "needs_response", 5);
            let calls = (0..24).map(|at| {
                let (payer, token, dispute) = (payer.clone(), token.clone(), dispute.clone());
                tokio::spawn(async move {
                    if at % 6 == 5 {
                        heard(&payer, &dispute).await;
                        return 0;
                    }
                    let answer = payer.client.post(VIN_PATH, &[("authorization", &token)], &json!({"vin": VIN})).await;
                    match answer.status {
                        200 => 5_000,
                        402 => 0,
                        _ => panic!("{} {}", answer.status, answer.text),
                    }
                })
            });
            let spent: u64 = join_all(calls).await.into_iter().map(Result::unwrap).sum();
            let account = books::audit(&stack.app.db, payer.agent()).await;
            assert_eq!((account.credits.micro(), account.debt.micro()), (0, spent), "what was spent is owed");
            let answer = payer.client.post(VIN_PATH, &[("authorization", &token)], &json!({"vin": VIN})).await;
            assert_eq!(answer.error(), (402, "insufficient_credits".to_owned()));
        }
    });
}

/// The process crashes at every database request while it handles a payment and a dispute. When the events are
/// delivered again, as the processor does, the result is the same.
#[test]
fn refunds_and_disputes_survive_a_crash_at_every_request() {
    run(async {
        for last_one_arrives in [false, true] {
            for step in 1.. {
                let database = local::database::start(None).await.expect("a database");
                let life = Life::ending_at(i64::MAX, last_one_arrives);
                let proxy = Proxy::start(&database, life.clone()).await;
                let first = shop(|options| Options {
                    background: local::stack::Background::Worker,
                    ..options.with("AWS_ENDPOINT_URL", &proxy.url)
                })
                .await;
                let payer = Payer::with(&first, 0).await;
                payer.give_credits(&first, 3_000).await;
                let agent = payer.agent().to_string();
                let events = [
                    event("cs_1", &agent, 10),
                    taken_back("cs_1", "charge.dispute.created", "du_1", 10, "needs_response", 5),
                    taken_back("cs_1", "refund.created", "re_1", 4, "succeeded", 6),
                    taken_back("cs_1", "charge.dispute.closed", "du_1", 10, "won", 7),
                ];
                life.end_after(step);
                for body in &events {
                    tell(&payer, body, SECRET, Clock::system().now().secs()).await;
                }
                let died = life.is_over();
                first.kill().await;
                let second = shop(|options| options.with("AWS_ENDPOINT_URL", &database)).await;
                let payer = payer.at(&second);
                for body in &events {
                    heard(&payer, body).await;
                }
                let account = books::audit(&second.app.db, payer.agent()).await;
                let label = format!("step {step}, arrives: {last_one_arrives}");
                assert_eq!((account.credits.micro(), account.debt.micro()), (63_000, 0), "{label}");
                second.kill().await;
                if !died {
                    println!("{step} steps");
                    assert!(step > 8, "four events have more steps than this");
                    break;
                }
            }
        }
    });
}

const A_DAY: Duration = Duration::from_secs(24 * 3600);

/// A buyer's call of a shop's service with its credits, up to the worker's claim.
async fn ordered(stack: &Stack, payer: &Payer, shop: &Shop) -> String {
    let token = payer.token(stack).await;
    let bought = payer.client.post(&shop.execute_path(), &[("authorization", &token)], &text("x")).await;
    assert_eq!(bought.status, 202, "{}", bought.text);
    let job = bought.json()["soul_job_id"].as_str().expect("a job").to_owned();
    assert_eq!(shop.claim(&job).await.status, 200);
    job
}

async fn ends(shop: &Shop, job: &str, how: &str) {
    let body = if how == "complete" { json!({"result": "done"}) } else { json!({"reason": "no"}) };
    let ended = shop.send("POST", &format!("/jobs/{job}/{how}"), &body).await;
    assert_eq!(ended.status, 200, "{}", ended.text);
}

/// What a seller sees of its money: all of it, what it may have, and what matures.
async fn earned(shop: &Shop) -> [f64; 3] {
    let balance = shop.get("/balance").await.json();
    ["pending_usdc", "available_usdc", "maturing_usdc"].map(|name| balance[name].as_f64().expect(name))
}

/// A shop that sells for 15 dollars, with a wallet, and who bought 20 dollars of credits by card and 10 otherwise.
async fn sold(stack: &Stack, slug: &str) -> (Shop, Payer) {
    let shop = Shop::with(stack, slug, json!({"executor": "worker", "price_usd": 15})).await;
    let payer = Payer::with(stack, 0).await;
    let wallet = json!({"wallet_address": payer.address().to_string()});
    assert_eq!(shop.send("PUT", "/link-wallet", &wallet).await.status, 200);
    heard(&payer, &event(&format!("cs_{slug}"), &payer.agent().to_string(), 2_000)).await;
    payer.give_credits(stack, 10_000_000).await;
    (shop, payer)
}

/// Credits by card, work bought from one's own soul, and a payout: the money of a card that may be stolen waits for as long
/// as its holder may dispute the payment. Credits of other money do not wait.
#[test]
fn what_a_card_paid_a_seller_matures_before_it_is_paid_out() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let hand = clock.clone();
        let stack = shop(|options| Options { clock, ..options }).await;
        let (shop, payer) = sold(&stack, "card-sales").await;
        let audited = async || books::audit(&stack.app.db, payer.agent()).await;
        assert_eq!(audited().await.card.micro(), 20_000_000);

        // Work that fails gives back what it took: the same credits, bought by the same card.
        let failed = ordered(&stack, &payer, &shop).await;
        assert_eq!(audited().await.card.micro(), 5_000_000, "they are spent first");
        ends(&shop, &failed, "fail").await;
        assert_eq!((audited().await.card.micro(), earned(&shop).await), (20_000_000, [0.0; 3]));

        // 15 by card; then 5 by card and 10 otherwise.
        let first = ordered(&stack, &payer, &shop).await;
        ends(&shop, &first, "complete").await;
        assert_eq!(earned(&shop).await, [12.0, 0.0, 12.0]);
        let second = ordered(&stack, &payer, &shop).await;
        ends(&shop, &second, "complete").await;
        assert_eq!(audited().await.card.micro(), 0);
        assert_eq!(earned(&shop).await, [24.0, 7.0, 17.0]);
        let matures = hand.now().plus(120 * A_DAY).to_string();
        let told = shop.get("/balance").await.json()["maturing"].clone();
        let mut amounts: Vec<f64> =
            told.as_array().unwrap().iter().map(|row| row["amount_usdc"].as_f64().unwrap()).collect();
        amounts.sort_unstable_by(f64::total_cmp);
        assert_eq!((amounts, &told[0]["matures_at"]), (vec![5.0, 12.0], &json!(matures)));
        let entries = shop.get("/statement").await.json()["entries"].clone();
        assert_eq!((&entries[0]["maturing"], &entries[1]["matures_at"]), (&Value::Null, &json!(matures)));

        let ask = async |body: Value| shop.send("POST", "/payout", &body).await;
        let is_short = |answer: &Answer| {
            assert_eq!((answer.status, &answer.json()["reason"]), (400, &json!("balance_short")), "{}", answer.text);
        };
        is_short(&ask(json!({})).await);
        is_short(&ask(json!({"amount": 10})).await);
        hand.advance(120 * A_DAY - Duration::from_secs(1));
        is_short(&ask(json!({"amount": 10})).await);
        hand.advance(Duration::from_secs(1));
        assert_eq!(earned(&shop).await, [24.0, 24.0, 0.0]);
        // Taken back too late: that is the operator's loss.
        let dispute = taken_back("cs_card-sales", "charge.dispute.created", "du_1", 2_000, "needs_response", 9);
        assert_eq!(tell(&payer, &dispute, SECRET, hand.now().secs()).await.status, 200);
        let paid = ask(json!({})).await;
        assert_eq!((paid.status, &paid.json()["amount_usdc"]), (200, &json!(24)), "{}", paid.text);
        assert_eq!(audited().await.debt.micro(), 20_000_000);
    });
}

/// A dispute within the window: what the buyer still owes after it is the seller's loss, to the micro-dollar and once. If it
/// is won or paid back in time, the seller loses nothing.
#[test]
fn a_card_payment_that_was_taken_back_is_not_paid_out() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let hand = clock.clone();
        let stack = shop(|options| Options { clock, ..options }).await;
        let (lost, thief) = sold(&stack, "lost-dispute").await;
        let (won, buyer) = sold(&stack, "won-dispute").await;
        for (shop, payer) in [(&lost, &thief), (&won, &buyer)] {
            let job = ordered(&stack, payer, shop).await;
            ends(shop, &job, "complete").await;
            let session = format!("cs_{}", shop.slug);
            let dispute = taken_back(&session, "charge.dispute.created", "du_1", 2_000, "needs_response", 9);
            heard(payer, &dispute).await;
            // What is left of all credits pays first.
            let account = books::audit(&stack.app.db, payer.agent()).await;
            assert_eq!((account.credits.micro(), account.card.micro(), account.debt.micro()), (0, 0, 5_000_000));
            assert_eq!(earned(shop).await, [12.0, 0.0, 12.0], "nothing is taken before the end of the window");
        }
        heard(&buyer, &taken_back("cs_won-dispute", "charge.dispute.closed", "du_1", 2_000, "won", 30)).await;
        hand.advance(120 * A_DAY);
        // Asked many times at once.
        let asked = join_all((0..5).map(|_| lost.get("/balance"))).await;
        assert!(asked.iter().all(|answer| answer.status == 200));
        assert_eq!((earned(&lost).await, earned(&won).await), ([7.0, 7.0, 0.0], [12.0, 12.0, 0.0]));
        let entries = lost.get("/statement").await.json()["entries"].clone();
        let last = entries.as_array().unwrap().last().unwrap();
        assert_eq!(
            (&last["kind"], &last["amount"], &last["balance"]),
            (&json!("card_reversal"), &json!(-5), &json!(7))
        );
        assert_eq!(last["job_id"], entries[0]["job_id"]);
        let (thief, buyer) = (thief.agent(), buyer.agent());
        for agent in [thief, buyer] {
            assert_eq!(books::audit(&stack.app.db, agent).await.debt.micro(), 0);
        }
        let balance = seller::load(&stack.app.db, &lost.slug).await.unwrap();
        assert_eq!((balance.pending.micro(), balance.total_earnings.micro()), (7_000_000, 7_000_000));
    });
}
