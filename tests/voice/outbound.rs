//! Calls that an agent buys: to numbers of other agents, whose settings answer. What is refused before a price, what is
//! charged, and what becomes of a call whose process dies.

use std::time::Duration;

use base::ids::{AgentId, RequestId, uuid_of};
use base::money::Usdc;
use ledger::account;
use local::Stack;
use platform::store::queue;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::{Reporter, Task, Toolbox};
use tools_sms::number::Number;
use tools_sms::phone::{self, EMBEDDED, Registered};
use tools_voice::outbound;
use tools_voice::velocity::{MAX_A_DAY, MAX_MINUTES_TO_NUMBER, MAX_TO_NUMBER};

use super::exchange::counted;
use super::{Agent, FUNDS, MINUTE, described, inbound_of};
use crate::support::crashes::{Death, Dying, Survived, die_at_steps};
use crate::support::{Answer, run, stack};

const CALL: &str = "/v1/tools/voice/call";
/// micro-USDC for a number
const FEE: u64 = 5_000_000;
const ASK: &str = "Ask what bread costs.";

fn call_to(to: impl Into<Value>, minutes: u32) -> Value {
    json!({"objective": ASK, "target_number": to.into(), "caller_name": "Ann", "max_duration_minutes": minutes})
}

/// The price in a 402, in micro-USDC.
fn price(unpaid: &Answer) -> u64 {
    assert_eq!(unpaid.status, 402, "{}", unpaid.text);
    let asked = unpaid.base64_header("payment-required");
    asked["accepts"][0]["amount"].as_str().and_then(|amount| amount.parse().ok()).expect("an amount")
}

/// What an agent has paid on chain so far, and the credits that it has, in micro-USDC.
async fn money(agent: &Agent, stack: &Stack) -> (u64, u64) {
    let left = u64::try_from(agent.payer.balance(stack).await).expect("an amount");
    (FUNDS - left, agent.credits(stack).await)
}

/// Buys a call at this price, and waits for the end of its job.
async fn redeemed(agent: &Agent, unpaid: &Answer, body: &Value) -> Value {
    let accepted = agent.payer.redeem(CALL, unpaid, body).await;
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    agent.payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await
}

/// The only call that a number took, after its job has ended.
async fn only_call(callee: &Agent, stack: &Stack) -> Value {
    let calls = callee.calls("").await;
    let [call] = &calls[..] else { panic!("one call: {calls:?}") };
    let id: RequestId = call["id"].as_str().expect("an id").parse().expect("an id");
    // Its job would look by itself, some time later.
    queue::send_or_log(&*stack.queue, id, None).await;
    callee.charged(id).await
}

#[test]
fn an_agent_buys_a_call_to_another() {
    run(async {
        let stack = stack().await;
        let ada = Agent::new(&stack).await;
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, json!({})).await;
        let body = call_to(of_bob.number.as_str(), 3);
        let unpaid = ada.payer.ask(CALL, &body).await;
        assert_eq!(price(&unpaid), FEE + 3 * MINUTE);
        let context = &unpaid.json()["context"];
        for (member, value) in [
            ("tool", json!("voice")),
            ("target_numbers", json!([of_bob.number])),
            ("conference_mode", json!(false)),
            ("pipeline_fee", json!("0.000000")),
            ("phone_registration_fee", json!("5.000000")),
            ("estimated_call_cost", json!("1.050000")),
            ("needs_phone_registration", json!(true)),
            ("talking_points", json!(["Ask what bread costs"])),
        ] {
            assert_eq!(context[member], value, "{member}: {context}");
        }
        let accepted = ada.payer.redeem(CALL, &unpaid, &body).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let accepted = accepted.json();
        let call = json!({"target_numbers": [of_bob.number], "from_number": null, "conference_mode": false});
        assert_eq!((&accepted["tool"], &accepted["call"]), (&json!("voice"), &call), "{accepted}");

        let job = ada.payer.finished(accepted["request_id"].as_str().expect("an id")).await;
        let result = described(&job);
        for (member, value) in [
            ("status", json!("completed")),
            ("outcome", json!("reached_person")),
            ("ended_reason", json!("callee_hung_up")),
            ("success_evaluation", json!("pass")),
            ("cost", json!("5.350000")),
            ("credit_issued", json!("0.700000")),
            ("untrusted", json!(true)),
        ] {
            assert_eq!(result[member], value, "{member}: {job}");
        }
        let points = json!([{"point": "Ask what bread costs", "answered": true}]);
        assert_eq!(result["structured_data"], json!({"points": points, "message_left": false}), "{job}");
        let transcript = result["transcript"].as_str().unwrap_or_else(|| panic!("{job}"));
        let lines: Vec<&str> = transcript.lines().collect();
        let disclosed = "Caller: Hello, this is an AI assistant calling for Ann. This call is written down. ";
        assert!(lines[0].starts_with("Assistant: ") && lines[1].starts_with(disclosed), "{transcript}");
        assert_eq!(lines[2], "Assistant: Bread costs 4 dollars.", "{transcript}");
        assert_eq!(money(&ada, &stack).await, (FEE + 3 * MINUTE, 2 * MINUTE), "{job}");

        // Bob's number took the call as any other.
        let taken = only_call(&bob, &stack).await;
        assert_eq!((&taken["from"], &taken["charge_usdc"]), (&result["from"], &json!("0.350000")), "{taken}");
        assert_eq!((&taken["mode"], &taken["transcript"]), (&json!("in_hours"), &json!(transcript)), "{taken}");
        assert_eq!(bob.credits(&stack).await, 9 * MINUTE);

        // Ada has a number now, so nobody sells her another.
        let unpaid = ada.payer.ask(CALL, &body).await;
        assert_eq!(price(&unpaid), 3 * MINUTE);
        let accepted = ada.payer.redeem(CALL, &unpaid, &body).await;
        assert_eq!(accepted.json()["call"]["from_number"], result["from"], "{}", accepted.text);
        let nameless = ada.payer.client.post(CALL, &[], &body).await;
        assert_eq!(price(&nameless), FEE + 3 * MINUTE);
        let payment = ada.payer.pay(&nameless);
        let refused = ada.payer.client.post(CALL, &[("payment-signature", &payment)], &body).await;
        assert_eq!(refused.error(), (400, "number_not_needed".to_owned()), "{}", refused.text);
    });
}

#[test]
fn numbers_are_called_one_after_the_other_and_only_answers_are_paid() {
    run(async {
        let stack = stack().await;
        let (ada, own) = Agent::with_number(&stack).await;
        let (bob, of_bob) = Agent::answering(&stack, MINUTE, json!({})).await;
        let (carl, switched_off) = Agent::answering(&stack, MINUTE, json!({})).await;
        let (_, without_credit) = Agent::answering(&stack, 0, json!({})).await;
        let to: Vec<&Number> = [&switched_off, &without_credit, &of_bob].map(|phone| &phone.number).to_vec();
        let body = call_to(json!(to), 2);
        let unpaid = ada.payer.ask(CALL, &body).await;
        assert_eq!((price(&unpaid), &unpaid.json()["context"]["conference_mode"]), (6 * MINUTE, &json!(false)));

        // One takes no more calls after the price was asked.
        let alone = call_to(switched_off.number.as_str(), 2);
        let of_nobody = ada.payer.ask(CALL, &alone).await;
        assert_eq!(carl.payer.change("DELETE", &inbound_of(&switched_off), &json!({})).await.status, 200);
        let job = redeemed(&ada, &unpaid, &body).await;
        let result = described(&job);
        let legs: Vec<(&Value, &Value)> = result["legs"]
            .as_array()
            .unwrap_or_else(|| panic!("{job}"))
            .iter()
            .map(|leg| (&leg["outcome"], &leg["ended_reason"]))
            .collect();
        let expected = [
            (json!("no_answer"), json!("not_in_service")),
            (json!("refused"), json!("declined")),
            (json!("reached_person"), json!("callee_hung_up")),
        ];
        assert_eq!(legs, expected.iter().map(|(outcome, why)| (outcome, why)).collect::<Vec<_>>(), "{job}");
        assert_eq!((&result["status"], &result["cost"]), (&json!("completed"), &json!("0.350000")), "{job}");
        assert_eq!(result["from"], json!(own.number), "{job}");
        assert_eq!(money(&ada, &stack).await, (6 * MINUTE, 5 * MINUTE), "{job}");
        only_call(&bob, &stack).await;
        assert_eq!(bob.credits(&stack).await, 0);

        let nobody = redeemed(&ada, &of_nobody, &alone).await;
        assert_eq!(nobody["status"], "completed", "{nobody}");
        let result = described(&nobody);
        assert_eq!((&result["status"], &result["cost"]), (&json!("no_answer"), &json!("0.000000")), "{nobody}");
        assert_eq!(money(&ada, &stack).await, (8 * MINUTE, 7 * MINUTE), "{nobody}");
    });
}

#[test]
fn what_cannot_be_called_is_refused_before_a_price() {
    run(async {
        let stack = stack().await;
        let (ada, own) = Agent::with_number(&stack).await;
        let (_, of_bob) = Agent::answering(&stack, 0, json!({})).await;
        let (_, unset) = Agent::with_number(&stack).await;
        let (_, off) = Agent::answering(&stack, 0, json!({"enabled": false})).await;
        let taken = [&own, &of_bob, &unset, &off].map(|phone| phone.number.clone());
        let (own, of_bob) = (own.number.as_str(), of_bob.number.as_str());
        let nobody = (0..).map(Number::fictitious).find(|number| !taken.contains(number));
        let nobody = nobody.expect("a number that nobody has");
        for to in [
            json!("911"),
            json!([of_bob, "+1911"]),
            json!("112"),
            json!(911),
            json!(["24273", "9-1-1"]),
            json!([["911"]]),
        ] {
            let answer = ada.payer.ask(CALL, &call_to(to.clone(), 1)).await;
            assert_eq!(answer.error(), (400, "emergency_number_blocked".to_owned()), "{to}: {}", answer.text);
            assert!(answer.json().get("context").is_none(), "{}", answer.text);
        }
        for (to, path) in [
            (json!("+19002345678"), "target_number"),
            (json!("24273"), "target_number"),
            (json!([of_bob, "+1415555"]), "target_number.1"),
            (json!([]), "target_number"),
            (json!(vec![of_bob; 6]), "target_number"),
            (json!(own), "target_number"),
            (json!([of_bob, own]), "target_number.1"),
            (json!([of_bob, nobody]), "target_number.1"),
            (json!(unset.number), "target_number"),
            (json!([of_bob, off.number]), "target_number.1"),
        ] {
            let answer = ada.payer.ask(CALL, &call_to(to.clone(), 1)).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{to}: {}", answer.text);
            assert_eq!(answer.json()["details"][0]["path"], path, "{to}: {}", answer.text);
        }
        for minutes in [0, 31] {
            let answer = ada.payer.ask(CALL, &call_to(of_bob, minutes)).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{minutes}: {}", answer.text);
        }
        let outside = ada.payer.ask(CALL, &call_to(json!([of_bob, "+14155552671"]), 1)).await;
        assert_eq!(outside.error(), (503, "provider_unavailable".to_owned()), "{}", outside.text);
        let threat = json!({"objective": "Tell them: I will kill you.", "target_number": of_bob});
        let threat = ada.payer.ask(CALL, &threat).await;
        assert_eq!(threat.error(), (400, "content_blocked".to_owned()), "{}", threat.text);
        assert_eq!(money(&ada, &stack).await, (0, 0));
    });
}

/// What would be refused when it is dialled has no price. Asking counts nothing.
#[test]
fn calls_beyond_a_limit_of_today_are_not_sold() {
    run(async {
        let stack = stack().await;
        let (ada, of_ada) = Agent::answering(&stack, 0, json!({})).await;
        let ((_, of_bob), (_, of_carl)) =
            (Agent::answering(&stack, 0, json!({})).await, Agent::answering(&stack, 0, json!({})).await);
        let (to_bob, to_both) =
            (call_to(of_bob.number.as_str(), 1), call_to(json!([of_carl.number, of_bob.number, of_bob.number]), 1));
        let agent = ada.payer.agent();
        let pair = uuid_of(&[b"voice_to", agent.bytes(), of_bob.number.as_str().as_bytes()]);
        let (of_pair, of_day) = (format!("VOICETO#{pair}"), format!("VOICEDAY#{agent}"));
        let limited = (429, "voice_limit_reached".to_owned());
        for (used, minutes, is_limited) in [
            (MAX_TO_NUMBER, 0, true),
            (1, MAX_MINUTES_TO_NUMBER, true),
            (MAX_TO_NUMBER - 1, MAX_MINUTES_TO_NUMBER - 1, false),
        ] {
            let row = json!({"used": used, "minutes": minutes, "last": RequestId::random(), "expires": i64::MAX});
            counted(&stack, of_pair.clone(), row).await;
            // Twice: the first question was not counted.
            for body in [&to_bob, &to_both, &to_bob] {
                let answer = ada.asks(CALL, body).await;
                match is_limited {
                    true => assert_eq!(answer.error(), limited, "{used} {minutes}: {}", answer.text),
                    false => assert_eq!(answer.status, 402, "{used} {minutes}: {}", answer.text),
                }
            }
        }
        // There is one call left today.
        counted(&stack, of_day, json!({"used": MAX_A_DAY - 1, "expires": i64::MAX})).await;
        assert_eq!(ada.asks(CALL, &to_bob).await.status, 402);
        // A price for nobody is not limited: its payer is not known. Nor is one for an agent that is only named: whoever asks is not
        // told what it has called, or that a number is its own. The agent's payment is refused.
        assert_eq!(ada.payer.client.post(CALL, &[], &to_both).await.status, 402);
        let to_herself = call_to(of_ada.number.as_str(), 1);
        for (body, refused) in [(to_both, limited), (to_herself, (400, "invalid_request".to_owned()))] {
            assert_eq!(ada.asks(CALL, &body).await.error(), refused, "{body}");
            let unpaid = ada.payer.ask(CALL, &body).await;
            assert_eq!(unpaid.status, 402, "{}", unpaid.text);
            assert_eq!(ada.payer.redeem(CALL, &unpaid, &body).await.error(), refused, "{body}");
        }
        assert_eq!(money(&ada, &stack).await, (0, 0));
    });
}

#[test]
fn a_call_survives_a_crash_at_every_step() {
    run(die_at_steps(1, 2, die_at));
}

/// Calls a number with a process that dies: it rings once, the callee pays one minute, and so does the buyer if anybody talked.
/// `false` if the call needed fewer steps.
async fn die_at(death: Death) -> bool {
    let dying = Dying::start(death, |options| options).await;
    let ada = Agent::new(&dying.stack).await;
    let (bob, of_bob) = Agent::answering(&dying.stack, 10 * MINUTE, json!({})).await;
    let body = call_to(of_bob.number.as_str(), 2);
    let unpaid = ada.payer.ask(CALL, &body).await;
    let Survived { stack, payer, request_id, job, died } = dying.pay(&ada.payer, CALL, &unpaid, &body).await;
    let (ada, bob) = (Agent { payer }, bob.at(&stack));

    // A call in which nobody answered the caller before the process died costs its buyer nothing. It still costs the callee.
    let (cost, minutes) = match job["result"]["outcome"] == "reached_person" {
        true => ("5.350000", 1),
        false => ("5.000000", 0),
    };
    assert_eq!((&job["status"], &job["result"]["cost"]), (&json!("completed"), &json!(cost)), "{death:?}: {job}");
    let own = phone::list(&stack.app.db, ada.payer.agent()).await.expect("a database");
    assert_eq!(own.iter().map(|phone| phone.bought_by).collect::<Vec<_>>(), [request_id], "{death:?}");
    assert_eq!(money(&ada, &stack).await, (FEE + 2 * MINUTE, (2 - minutes) * MINUTE), "{death:?}: {job}");
    // A turn that died is being answered for a while, so its job may end later.
    let calls = bob.calls("").await;
    let [taken] = &calls[..] else { panic!("{death:?}: it rings once: {calls:?}") };
    assert_eq!((&taken["status"], &taken["charge_usdc"]), (&json!("ended"), &json!("0.350000")), "{death:?}: {taken}");
    stack.kill().await;
    died
}

/// A job of an agent that calls this number, for two minutes at most.
pub(super) fn task(toolbox: &Toolbox, agent: AgentId, to: &Number) -> Task {
    let locked = json!({"minutes": 2, "legs": 1, "source": EMBEDDED, "each": MINUTE, "fee": FEE});
    Task {
        tool: &outbound::SPEC,
        input: call_to(json!(to), 2).as_object().expect("an input").clone(),
        locked: locked.as_object().expect("members").clone(),
        price: Usdc::from_micro(FEE + 2 * MINUTE),
        request_id: RequestId::random(),
        receipt_id: None,
        agent,
        wallet_signed: true,
        token: None,
        funds: None,
        is_over: false,
        deadline: toolbox.clock.now().plus(Duration::from_secs(60)),
        reporter: Reporter::default(),
    }
}

#[test]
fn a_call_that_is_given_up_is_charged_by_its_record() {
    run(async {
        let stack = stack().await;
        let toolbox = stack.worker.toolbox.clone();
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, json!({})).await;
        let ada = Agent::new(&stack).await.payer.agent();
        let over = |task: &Task| Task { is_over: true, ..task.clone() };
        let run_tool = async |task: Task| (outbound::RUNNER.run)(toolbox.clone(), task).await;

        // Nothing was begun.
        let of_ada = task(&toolbox, ada, &of_bob.number);
        let error = run_tool(over(&of_ada)).await;
        assert!(error.is_err(), "{error:?}");
        // It died when it had the number.
        let deadline = Instant::now() + Duration::from_secs(20);
        let registered = phone::register(&toolbox, ada, of_ada.request_id, deadline).await;
        assert!(matches!(registered, Ok(Registered::New(_))), "{registered:?}");
        let output = run_tool(over(&of_ada)).await.expect("the number is charged");
        assert_eq!((&output.result["status"], output.used), (&json!("failed"), Some(Usdc::from_micro(FEE))));
        // A run that is repeated, or that is the last one, does not dial again.
        let output = run_tool(of_ada.clone()).await.expect("a call");
        assert_eq!(
            (&output.result["status"], output.used),
            (&json!("completed"), Some(Usdc::from_micro(FEE + MINUTE)))
        );
        for again in [of_ada.clone(), over(&of_ada)] {
            assert_eq!(run_tool(again).await.expect("the same"), output);
        }
        only_call(&bob, &stack).await;
        // A freeze stops what was not dialled.
        let frozen = account::change_rules(&stack.app.db, ada, |account| account.frozen.agent = true);
        frozen.await.expect("a freeze");
        let output = run_tool(task(&toolbox, ada, &of_bob.number)).await.expect("nobody was called");
        let result = &output.result;
        assert_eq!((&result["status"], output.used), (&json!("failed"), Some(Usdc::ZERO)), "{result}");
        assert_eq!(result["warning"], "frozen_by_owner", "{result}");
        assert_eq!(bob.calls("").await.len(), 1);
    });
}
