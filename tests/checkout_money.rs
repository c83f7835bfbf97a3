//! A session is charged once or not at all, under concurrent requests and crashes at any point.

use base::clock::Clock;
use base::ids::AgentId;
use futures_util::future::join_all;
use gate::jobs::{Outcome, Settlement};
use local::stack::Background;
use local::{Options, Stack};
use serde_json::{Value, json};

use crate::front_run::broadcast;
use crate::support::payer::{header, v2};
use crate::support::platform::{asked, at, paid_with, payment};
use crate::support::proxy::{Life, Proxy};
use crate::support::{Payer, Platform, books, chain, eventually, run, stack, stack_with};

const CREDITS: &str = "agora-credits";
/// Upper bound of the requests of a completion.
const MOST_STEPS: i64 = 60;

/// The money and the session agree: completed and charged once, or neither. Returns whether it was completed.
async fn check(stack: &Stack, platform: &Platform, session: &Value, payer: &Payer, had: u64) -> bool {
    let session = platform.read(session).await;
    let spent = had - u64::try_from(payer.balance(stack).await).unwrap();
    let completed = session["status"] == "completed";
    assert_eq!(spent, if completed { 1_000_000 } else { 0 }, "{session}");
    let agent: AgentId = payer.agent();
    let credits = books::audit(&stack.app.db, agent).await.credits.micro();
    assert_eq!(credits, spent, "what was bought is there, once");
    completed
}

#[test]
fn concurrent_completions_charge_once() {
    run(async {
        let stack = stack().await;
        let platform = Platform::acp(&stack);
        for round in 0..6 {
            let payer = Payer::with(&stack, 10_000_000).await;
            let session = platform.open(CREDITS, json!({})).await;
            let same = payment(&session, &payer);
            let sent: Vec<Value> = (0..6)
                // One payment six times, six payments, or a mix.
                .map(|index| {
                    if round % 3 == 0 || round % 3 == 2 && index < 3 { same.clone() } else { payment(&session, &payer) }
                })
                .collect();
            let answers = join_all(sent.iter().map(|body| platform.complete(&session, body))).await;
            let done =
                answers.iter().filter(|answer| answer.status == 200 && answer.json()["status"] != "ready_for_payment");
            let done = done.inspect(|answer| platform.check("CheckoutSessionWithOrder", answer)).count();
            assert!(done >= 1, "{answers:?}");
            if round % 3 == 0 {
                assert_eq!(done, 6, "copies of one payment get its answer: {answers:?}");
            }
            if round % 3 == 1 {
                assert_eq!(done, 1, "of six payments one is taken: {answers:?}");
            }
            assert!(check(&stack, &platform, &session, &payer, 10_000_000).await);
        }
    });
}

#[test]
fn a_canceled_session_is_not_charged() {
    run(async {
        let stack = stack().await;
        let platform = Platform::acp(&stack);
        let (mut paid, mut canceled) = (0, 0);
        for round in 0..24_u64 {
            let payer = Payer::with(&stack, 2_000_000).await;
            let session = platform.open(CREDITS, json!({})).await;
            let pay = payment(&session, &payer);
            let later = async {
                tokio::time::sleep(std::time::Duration::from_millis(round % 12 * 2)).await;
                platform.post(&at(&session, "/cancel"), &json!({})).await
            };
            let (done, cancel) = tokio::join!(platform.complete(&session, &pay), later);
            let completed = check(&stack, &platform, &session, &payer, 2_000_000).await;
            let answers = format!("{} {} / {} {}", done.status, done.text, cancel.status, cancel.text);
            match completed {
                true => assert_eq!((done.status, cancel.status), (200, 405), "{answers}"),
                false => assert_eq!((done.status, cancel.status), (400, 200), "{answers}"),
            }
            if completed { paid += 1 } else { canceled += 1 }
        }
        println!("{paid} paid, {canceled} canceled");
        assert!(paid > 0 && canceled > 0, "the race was none: {paid} paid, {canceled} canceled");
    });
}

#[test]
fn a_payment_pays_one_session() {
    run(async {
        let stack = stack().await;
        for platform in [Platform::acp(&stack), Platform::simple(&stack)] {
            let payer = Payer::with(&stack, 10_000_000).await;
            let sessions = [platform.open(CREDITS, json!({})).await, platform.open(CREDITS, json!({})).await];
            // A payment made for one session and sent to another.
            let mixed_up = platform.complete(&sessions[1], &payment(&sessions[0], &payer)).await;
            assert_ne!(mixed_up.json()["status"], "completed", "{}", mixed_up.text);
            assert_eq!(payer.balance(&stack).await, 10_000_000);
            // One signed for the first session, one for no quote at all.
            let authorization = payer.authorize(1_000_000);
            let mut accepts = asked(&sessions[0]);
            accepts["extra"].as_object_mut().unwrap().remove("quoteId");
            let pay = paid_with("x402", &header(&v2(&authorization, &accepts)));
            let answers = join_all(sessions.iter().map(|session| platform.complete(session, &pay))).await;
            let mut completed = 0;
            for session in &sessions {
                completed += usize::from(platform.read(session).await["status"] == "completed");
            }
            assert_eq!(completed, 1, "{answers:?}");
            assert_eq!(payer.balance(&stack).await, 9_000_000);
            // It buys nothing else either.
            let unpaid = payer
                .client
                .post(
                    "/v1/credits/top-up",
                    &[("payment-signature", &header(&v2(&authorization, &accepts)))],
                    &json!({"amount": "1.00"}),
                )
                .await;
            assert_eq!(unpaid.error(), (409, "payment_already_used".to_owned()));
        }
    });
}

/// Anyone who has a signed payment can put it on chain. It then completes the session it was signed for, even an
/// expired one, and buys nothing else.
#[test]
fn a_payment_broadcast_by_a_stranger_completes_its_session() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|options| Options { clock: clock.clone(), ..options }).await;
        let platform = Platform::acp(&stack);
        for late in [false, true] {
            let payer = Payer::with(&stack, 5_000_000).await;
            let session = platform.open(CREDITS, json!({})).await;
            let authorization = payer.authorize(1_000_000);
            broadcast(stack.chain.as_ref().expect("a chain"), &authorization).await;
            let pay = paid_with("x402", &header(&v2(&authorization, &asked(&session))));
            if late {
                clock.advance(std::time::Duration::from_secs(31 * 60));
                assert_eq!(platform.read(&session).await["status"], "expired");
            }
            let answers = join_all((0..3).map(|_| platform.complete(&session, &pay))).await;
            assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
            assert!(check(&stack, &platform, &session, &payer, 5_000_000).await);
            let other = platform.open(CREDITS, json!({})).await;
            platform.complete(&other, &pay).await;
            assert_eq!(platform.read(&other).await["status"], "ready_for_payment");
        }
    });
}

#[test]
fn concurrent_requests_with_one_idempotency_key_count_once() {
    run(async {
        let stack = stack().await;
        let platform = Platform::acp(&stack);
        let payer = Payer::with(&stack, 5_000_000).await;
        let body = json!({"line_items": [{"id": CREDITS}], "currency": "usd", "capabilities": {}});
        let made = join_all((0..8).map(|_| platform.named("make", "", &body))).await;
        let ids: std::collections::BTreeSet<String> = made
            .iter()
            .filter(|answer| answer.status == 201)
            .map(|answer| answer.json()["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(ids.len(), 1, "{made:?}");
        let session = made.iter().find(|answer| answer.status == 201).unwrap().json();
        let pay = payment(&session, &payer);
        let path = at(&session, "/complete");
        let done = join_all((0..8).map(|_| platform.named("pay", &path, &pay))).await;
        for answer in &done {
            match answer.status {
                200 => assert_eq!(answer.json()["status"], "completed", "{}", answer.text),
                409 => {
                    assert_eq!(answer.json()["code"], "idempotency_in_flight");
                    assert!(answer.header("retry-after").is_some());
                    platform.check("Error", answer);
                }
                _ => panic!("{} {}", answer.status, answer.text),
            }
        }
        assert!(done.iter().any(|answer| answer.status == 200));
        assert!(check(&stack, &platform, &session, &payer, 5_000_000).await);
    });
}

#[test]
fn a_completion_survives_a_crash_at_every_step() {
    run(async {
        for last_one_arrives in [false, true] {
            for step in 1..=MOST_STEPS {
                if !die_at(step, last_one_arrives).await {
                    println!("{step} steps, the last one arriving: {last_one_arrives}");
                    assert!(step > 10, "a completion has more steps than this");
                    break;
                }
                assert!(step < MOST_STEPS, "a completion that never ends");
            }
        }
    });
}

/// Waits until neither a settlement nor work of a session is open.
async fn at_rest(platform: &Platform, session: &Value) {
    eventually("the session to come to rest", || async {
        let session = platform.read(session).await;
        let is_delivered = session["status"] != "completed" || session["order"]["status"] == "delivered";
        (session["status"] != "complete_in_progress" && is_delivered).then_some(())
    })
    .await;
}

/// Completes a session in a process that crashes at this step, restarts, and checks everything. `false` if it needed
/// fewer steps.
async fn die_at(step: i64, last_one_arrives: bool) -> bool {
    let chain = chain().await;
    let database = local::database::start(None).await.expect("a database");
    let life = Life::ending_at(i64::MAX, last_one_arrives);
    let to_database = Proxy::start(&database, life.clone()).await;
    let to_chain = Proxy::start(chain.rpc_url(), life.clone()).await;
    let secret = "a secret that two processes of one deployment share";
    let with_secret = |options: Options| options.with("SERVICE_SECRET", secret).with("PAYMENT_HOLD_MS", "300");
    let first = stack_with(|options| {
        let options =
            with_secret(options).with("AWS_ENDPOINT_URL", &to_database.url).with("CHAIN_RPC_URL", &to_chain.url);
        Options { background: Background::Worker, ..options }
    })
    .await;
    let platform = Platform::acp(&first);
    let payer = Payer::with(&first, 5_000_000).await;
    let session = platform.open(CREDITS, json!({})).await;
    let pay = payment(&session, &payer);
    life.end_after(step);
    let before = platform.try_send("POST", &at(&session, "/complete"), Some("first"), &pay).await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let died = life.is_over();
    let fee_wallet = first.environment["RELAYER_PRIVATE_KEY"].clone();
    first.kill().await;

    let second = stack_with(|options| {
        with_secret(options).with("AWS_ENDPOINT_URL", &database).with("RELAYER_PRIVATE_KEY", fee_wallet)
    })
    .await;
    local::stack::release_leases(&second.app.db, second.app.clock.now()).await.expect("leases");
    let platform = Platform::acp(&second);
    let label = format!("step {step}, arrives: {last_one_arrives}, first answer: {before:?}");
    // No half-done state remains.
    at_rest(&platform, &session).await;
    let completed = check(&second, &platform, &session, &payer, 5_000_000).await;
    if before.as_ref().is_some_and(|answer| answer.status == 200) {
        assert!(completed, "{label}");
    }
    // The lost answer is found: the same payment completes the session, or reports that it did.
    let after = platform.complete(&session, &pay).await;
    assert_eq!(after.status, 200, "{label}: {}", after.text);
    at_rest(&platform, &session).await;
    assert!(check(&second, &platform, &session, &payer, 5_000_000).await, "{label}");
    let request_id = platform.read(&session).await["metadata"]["request_id"].as_str().unwrap().parse().unwrap();
    let job = gate::jobs::store::load_latest(&second.app.db, request_id).await.unwrap().expect(&label);
    assert_eq!((job.settlement, job.outcome), (Settlement::Settled, Some(Outcome::Completed)), "{label}");
    let cancel = platform.post(&at(&session, "/cancel"), &json!({})).await;
    assert_eq!(cancel.status, 405, "{label}");
    // The same idempotency key again: in progress for a while if its worker died, then the stored answer.
    let again = platform.named("first", &at(&session, "/complete"), &pay).await;
    assert!(matches!(again.status, 200 | 409), "{label}: {}", again.text);
    second.kill().await;
    died
}
