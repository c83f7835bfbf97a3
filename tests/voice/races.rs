//! Money of inbound calls: calls at once, the same ring many times, and calls that end by their time.

use std::time::Duration;

use base::clock::Clock;
use base::ids::RequestId;
use base::money::Usdc;
use futures_util::future::join_all;
use gate::jobs::job::Lane;
use gate::jobs::{own, store, sweep};
use ledger::{account, hold};
use local::stack::Background;
use local::{Options, Stack};
use platform::connections::Connections;
use platform::net::FetchPolicy;
use platform::store::{Db, StoreError, Write};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use tools::{NewJob, Reporter, Task, Toolbox};
use tools_sms::phone::{self, Phone};
use tools_voice::call::SILENCE;
use tools_voice::ringing::{self, Rang, Ring};
use tools_voice::{inbound, plan, settings};

use super::{Agent, MINUTE, call_id, data, phone_for};
use crate::support::{Answer, Payer, VIN, VIN_PATH, books, eventually, run, stack, stack_with};

const BUDGETS: &str = "/v1/agents/me/budgets";
/// Callers at once.
const CALLERS: usize = 100;
/// Rings of one call at once.
const RINGS: usize = 10;

/// An agent that can call, without money.
async fn caller(stack: &Stack) -> (Agent, Phone) {
    let agent = Agent { payer: Payer::with(stack, 0).await };
    let phone = phone_for(&stack.worker.toolbox, agent.payer.agent()).await;
    (agent, phone)
}

#[test]
fn a_hundred_calls_at_once_charge_at_most_the_credit() {
    run(async {
        let stack = stack().await;
        // Credits for ten minutes: ten calls of one, or three of three and one of one.
        for (minutes, most) in [(1, 10), (3, 4)] {
            let callers = join_all((0..CALLERS).map(|_| caller(&stack))).await;
            let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, json!({"max_minutes": minutes})).await;
            let dialled = join_all(callers.iter().map(|(ada, _)| ada.dial(&of_bob.number))).await;
            let mut answered = Vec::new();
            for (answer, (ada, _)) in dialled.iter().zip(&callers) {
                match answer.status {
                    201 => answered.push((ada, call_id(&data(answer)))),
                    200 => assert_eq!(data(answer)["call"]["status"], "declined", "{}", answer.text),
                    // The account is too busy; nothing was taken.
                    503 => {}
                    _ => panic!("{} {}", answer.status, answer.text),
                }
            }
            assert!((1..=most).contains(&answered.len()), "{} of {most} calls were answered", answered.len());
            // Not below zero, and every entry agrees with a job and a receipt.
            let held = 10 * MINUTE - bob.credits(&stack).await;
            let receipts = books::receipts(&stack.app.db, bob.payer.agent()).await;
            assert_eq!(receipts.iter().map(|receipt| receipt.amount.micro()).sum::<u64>(), held);
            assert_eq!(receipts.len(), answered.len());
            join_all(answered.iter().map(|(ada, call)| ada.hang_up(*call))).await;
            let charged = join_all(answered.iter().map(|(_, call)| bob.charged(*call))).await;
            assert!(charged.iter().all(|call| call["charge_usdc"] == "0.350000"), "{charged:?}");
            let count = u64::try_from(answered.len()).expect("a count");
            assert_eq!(bob.credits(&stack).await, (10 - count) * MINUTE);
        }
    });
}

/// Calls that come in count against the owner's budget like what it buys: together they keep within it, a call is cut to what a
/// cap leaves, and comes back to what it used.
#[test]
fn calls_in_and_purchases_at_once_keep_within_the_budget() {
    run(async {
        let stack = stack().await;
        let callers = join_all((0..20).map(|_| caller(&stack))).await;
        let (bob, of_bob) = Agent::answering(&stack, 100 * MINUTE, json!({"max_minutes": 1})).await;
        let (cap, each) = (3 * MINUTE + 12_000, 5_000);
        let budget = async |members: Value| assert_eq!(bob.payer.change("PUT", BUDGETS, &members).await.status, 200);
        let counted = async || data(&bob.payer.get(BUDGETS).await)["spent_today_usdc"].clone();
        budget(json!({"daily": Usdc::from_micro(cap).to_string()})).await;
        let token = bob.payer.token(&stack).await;
        let buy = || bob.payer.clone().call(VIN_PATH, vec![("authorization", token.clone())], json!({"vin": VIN}));
        let dialled = join_all(callers.iter().map(|(ada, _)| ada.dial(&of_bob.number)));
        let (dialled, bought) = tokio::join!(dialled, join_all((0..20).map(|_| buy())));
        let of_call = |answer: &Answer| (answer.status == 201).then(|| call_id(&data(answer)));
        let answered: Vec<_> =
            dialled.iter().zip(&callers).filter_map(|(a, (ada, _))| Some((ada, of_call(a)?))).collect();
        let bought = bought.iter().filter(|answer| answer.status == 200).count();
        let sum = |calls: usize, bought: usize| Usdc::from_micro(calls as u64 * MINUTE + bought as u64 * each);
        let spent = sum(answered.len(), bought);
        assert!(spent <= Usdc::from_micro(cap) && !answered.is_empty() && bought > 0, "{spent}");
        assert_eq!(counted().await, spent.to_string());
        assert!(bob.calls("?limit=100").await.iter().any(|call| call["ended_reason"] == "over_budget"));

        join_all(answered.iter().map(|(ada, call)| ada.hang_up(*call))).await;
        join_all(answered.iter().map(|(_, call)| bob.charged(*call))).await;
        assert_eq!(counted().await, spent.to_string(), "each used its minute");

        // Two more minutes and a bit fit under the cap of the day; then only one under the cap of a call.
        bob.configure(&of_bob, &super::settings(json!({"max_minutes": 10}))).await;
        let (ada, _) = &callers[0];
        for (cap_of_one, held) in [(Value::Null, "0.700000"), (json!("0.5"), "0.350000")] {
            let daily = counted().await.as_str().and_then(|spent| spent.parse::<f64>().ok()).expect("an amount") + 0.9;
            budget(json!({"daily": format!("{daily:.6}"), "per_transaction": cap_of_one})).await;
            let call = call_id(&ada.ring(&of_bob.number).await);
            assert_eq!(bob.call(call).await["held_usdc"], held);
            ada.hang_up(call).await;
            assert_eq!(bob.charged(call).await["charge_usdc"], "0.350000");
        }
        budget(json!({"per_transaction": "0.349999"})).await;
        assert_eq!(data(&ada.dial(&of_bob.number).await)["call"]["status"], "declined");
        assert_eq!(counted().await, sum(answered.len() + 2, bought).to_string());
        bob.credits(&stack).await;
    });
}

/// Rings again, at once and later, also when the credits are gone and when the number is switched off.
#[test]
fn a_repeated_ring_is_one_call() {
    run(async {
        let stack = stack().await;
        let (bob, of_bob) = Agent::answering(&stack, 20 * MINUTE, json!({"max_minutes": 2})).await;
        let toolbox = &stack.toolboxes["voice"];
        let id = RequestId::random();
        let ring = Ring {
            id,
            to: &of_bob.number,
            from: "+12025550199\u{202e}\n",
            caller: None,
            provider: None,
            price: plan::EACH,
            hops: 0,
        };
        let rang = join_all((0..RINGS).map(|_| ringing::ring(toolbox, &ring))).await;
        let mut answered = 0;
        for rang in rang {
            match rang.expect("a database") {
                Rang::Answered(call) => {
                    answered += 1;
                    assert_eq!(call.from, "+12025550199", "cleaned");
                }
                Rang::Known(call) => assert_eq!(call.id, id),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((answered, bob.credits(&stack).await), (1, 18 * MINUTE));
        let db = &stack.app.db;
        let frozen = account::change_rules(db, bob.payer.agent(), |account| account.frozen.agent = true);
        frozen.await.expect("a freeze");
        assert!(matches!(ringing::ring(toolbox, &ring).await, Ok(Rang::Known(_))), "nothing is left for another call");
        bob.configure(&of_bob, &super::settings(json!({"enabled": false}))).await;
        assert!(matches!(ringing::ring(toolbox, &ring).await, Ok(Rang::Known(_))), "it was in service");
        assert_eq!((bob.calls("").await.len(), bob.credits(&stack).await), (1, 18 * MINUTE));

        // Its job is given up before the call has an end: that costs nothing, and later runs say the same.
        let task = Task {
            tool: &inbound::SPEC,
            input: Map::new(),
            locked: Map::new(),
            price: Usdc::from_micro(2 * MINUTE),
            request_id: id,
            receipt_id: None,
            agent: bob.payer.agent(),
            wallet_signed: true,
            token: None,
            funds: None,
            is_over: true,
            deadline: stack.app.clock.now().plus(Duration::from_secs(60)),
            reporter: Reporter::default(),
        };
        for _ in 0..2 {
            let output = (inbound::RUNNER.run)(stack.worker.toolbox.clone(), task.clone()).await.expect("a result");
            assert_eq!((output.waits, output.used.map(|used| used.micro())), (None, Some(0)), "{output:?}");
            assert_eq!(output.result["ended_reason"], "failed", "{output:?}");
        }
    });
}

/// Begins a job, after its owner has switched its numbers off. By then, the ring has read the settings.
fn begun_too_late(db: &Db, new: &NewJob) -> Result<Vec<Write>, StoreError> {
    let switch_off = async {
        for phone in phone::list(db, new.agent).await? {
            settings::disable(db, &phone, new.now).await?;
        }
        Ok::<(), StoreError>(())
    };
    block_in_place(|| Handle::current().block_on(switch_off))?;
    own::begin(db, new)
}

#[test]
fn a_number_that_was_switched_off_while_it_rang_does_not_answer() {
    run(async {
        let stack = stack().await;
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, json!({})).await;
        let connections = Connections::open(&stack.app.config).expect("connections");
        let toolbox = stack.app.toolbox(&connections, FetchPolicy::default()).expect("a toolbox");
        let toolbox = Toolbox { begin_job: Some(begun_too_late), ..toolbox };
        let (id, to) = (RequestId::random(), &of_bob.number);
        let ring = Ring { id, to, from: "+12025550199", caller: None, provider: None, price: plan::EACH, hops: 0 };
        let rang = ringing::ring(&toolbox, &ring).await.expect("a database");
        assert_eq!(rang, Rang::NotInService);
        assert_eq!((bob.calls("").await.len(), bob.credits(&stack).await), (0, 10 * MINUTE));
    });
}

/// A stack whose time stands still, and that looks after nothing by itself.
async fn clocked() -> (Stack, Clock) {
    let clock = Clock::pinned(Clock::system().now());
    let stack = stack_with(|options| Options { clock: clock.clone(), background: Background::Worker, ..options }).await;
    (stack, clock)
}

/// What a call that has ended shows: why, how long it was, and its charge.
fn end(call: &Value) -> (&str, u64, &str) {
    let text = |name: &str| call[name].as_str().unwrap_or_else(|| panic!("{name}: {call}"));
    (text("ended_reason"), call["duration_seconds"].as_u64().expect("seconds"), text("charge_usdc"))
}

#[test]
fn a_call_is_cut_to_what_credits_cover() {
    run(async {
        let (stack, clock) = clocked().await;
        let ((ada, _), (eve, _)) = (caller(&stack).await, caller(&stack).await);
        let (bob, of_bob) = Agent::answering(&stack, 3 * MINUTE + 1_000, json!({})).await;
        let call = call_id(&ada.ring(&of_bob.number).await);
        assert_eq!(bob.credits(&stack).await, 1_000);
        let declined = data(&eve.dial(&of_bob.number).await);
        let shown = (&declined["call"]["status"], &declined["call"]["ended_reason"], &declined["said"]);
        assert_eq!(shown, (&json!("declined"), &Value::Null, &Value::Null), "the callee's credits are its own affair");
        for _ in 0..3 {
            clock.advance(Duration::from_secs(50));
            ada.hears(call, "How much does bread cost?").await;
        }
        clock.advance(Duration::from_secs(50));
        assert_eq!(ada.say(call, "Are you there?").await.error(), (409, "call_ended".to_owned()));
        assert_eq!(ada.dialled(call).await["ended_reason"], "time_limit");
        let ended = bob.charged(call).await;
        assert_eq!(end(&ended), ("credit_limit", 180, "1.050000"), "{ended}");
        assert_eq!(bob.credits(&stack).await, 1_000);
    });
}

/// Nobody hangs up: whoever looks ends the call on record, and if nobody looks, its job does. What was held comes back.
#[test]
fn a_call_ends_by_its_length_and_by_silence() {
    run(async {
        let (stack, clock) = clocked().await;
        let (ada, _) = caller(&stack).await;
        let (bob, of_bob) = Agent::answering(&stack, 20 * MINUTE, json!({"max_minutes": 1})).await;
        let sweep = async || {
            let now = clock.now();
            sweep::sweep(&stack.app.db, Lane::Tools, &*stack.queue, now).await.expect("a sweep");
        };

        let long = call_id(&ada.ring(&of_bob.number).await);
        clock.advance(Duration::from_secs(50));
        ada.hears(long, "How much does bread cost?").await;
        clock.advance(Duration::from_secs(11));
        assert_eq!(end(&bob.calls("").await[0]), ("time_limit", 60, "0.350000"));
        assert_eq!(end(&bob.charged(long).await), ("time_limit", 60, "0.350000"), "without a sweep");
        assert_eq!(bob.credits(&stack).await, 19 * MINUTE);

        bob.configure(&of_bob, &super::settings(json!({"max_minutes": 10}))).await;
        let silent = call_id(&ada.ring(&of_bob.number).await);
        assert_eq!(bob.credits(&stack).await, 9 * MINUTE);
        clock.advance(Duration::from_secs(50));
        ada.hears(silent, "How much does bread cost?").await;
        let ends = clock.now().plus(SILENCE);
        clock.advance(Duration::from_secs(5));
        sweep().await;
        // It is looked at when nothing more can be said.
        eventually("the next look", || async {
            let job = store::load_latest(&stack.app.db, silent).await.expect("a database");
            job.filter(|job| job.due == Some(ends) && job.lease_until.is_none())
        })
        .await;
        clock.advance(Duration::from_secs(50));
        sweep().await;
        assert_eq!(end(&bob.charged(silent).await), ("silence", 105, "0.700000"));
        assert_eq!(bob.credits(&stack).await, 17 * MINUTE);

        // The line is free for the next call. Its caller looks at it.
        let seen = call_id(&ada.ring(&of_bob.number).await);
        clock.advance(SILENCE);
        assert_eq!(ada.dialled(seen).await["ended_reason"], "silence");
        assert_eq!(end(&bob.charged(seen).await), ("silence", 55, "0.350000"), "without a sweep");
        assert_eq!(bob.credits(&stack).await, 16 * MINUTE);
    });
}

/// What quotes hold beyond their time does not silence a number.
#[test]
fn credits_of_expired_quotes_pay_for_a_call() {
    run(async {
        let stack = stack().await;
        let (ada, _) = caller(&stack).await;
        let (bob, of_bob) = Agent::answering(&stack, 2 * MINUTE, json!({})).await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let all = Usdc::from_micro(2 * MINUTE);
        let held = hold::place(db, bob.payer.agent(), &[7; 12], all, now, now).await;
        assert!(held.expect("a database"));
        let call = call_id(&ada.ring(&of_bob.number).await);
        ada.hang_up(call).await;
        assert_eq!(bob.charged(call).await["charge_usdc"], "0.350000");
        assert_eq!(bob.credits(&stack).await, MINUTE);
    });
}
