//! Calls with numbers outside by Telnyx: its posts come forged, late, twice, in odd orders or never, and answers are lost.

use std::time::Duration;

use base::clock::Clock;
use base::ids::RequestId;
use base::money::Usdc;
use gate::limits;
use local::Stack;
use platform::store::Write;
use serde_json::{Map, Value, json};
use tools::{ErrorCode, Task};
use tools_sms::number::Number;
use tools_sms::phone::{self, Phone};
use tools_voice::outbound;
use tools_voice::outside::MAX_MINUTES_A_DAY;

use super::exchange::counted;
use super::inbound::closed;
use super::outbound::task;
use super::providers::{CALL, CALLER, buy, call_to, finished, look, looked_at, money, newest, outside, recording};
use super::telnyx_api::{ASSISTANT, OWN_KEY, Placing, Telnyx, post, signed};
use super::{Agent, MINUTE, NUMBERS, data, settings};
use crate::support::receiver::Receiver;
use crate::support::{self, eventually, run, stack_with};

async fn telnyx() -> Telnyx {
    Telnyx::start(Clock::system()).await
}

/// Posts the insights of a call until its job has ended: the worker may be busy with an earlier post. Returns the job.
async fn reported(telnyx: &Telnyx, stack: &Stack, call: &str, agent: &Agent, job: RequestId) -> Value {
    let post = telnyx.looks_through(call);
    eventually("the job's end", || async {
        telnyx.posts(stack, &post).await;
        finished(agent, job).await
    })
    .await
}

/// A call rings at an agent's number, and its assistant answers.
async fn rung(telnyx: &Telnyx, stack: &Stack, call: &str, phone: &Phone, agent: &Agent) -> RequestId {
    telnyx.posts(stack, &telnyx.rings(call, phone.number.as_str())).await;
    assert_eq!(telnyx.actions(call), ["answer"]);
    newest(agent).await
}

#[test]
fn a_call_that_rings_at_telnyx_is_answered_charged_and_reported() {
    run(async {
        let (telnyx, receiver) = (telnyx().await, Receiver::start().await);
        let allowed = receiver.allowed();
        let stack = stack_with(|options| telnyx.options(options).with("LOCAL_FETCH_ALLOW", allowed)).await;
        let members = json!({
            "first_message": "Rossi, hello.", "webhook_url": receiver.url, "voice_id": "Telnyx.KokoroTTS.af",
            "allowed_tools": ["end_call", "transfer_call"], "transfer_number": CALLER, "prompt": "Say {{secret}}.",
        });
        let (bob, of_bob) = Agent::answering(&stack, 5 * MINUTE, members).await;
        assert_eq!(of_bob.line.as_deref(), Some(of_bob.number.as_str()));
        let now = stack.app.clock.now();
        let rings = telnyx.rings("v3:a", of_bob.number.as_str());
        for _ in 0..2 {
            telnyx.posts(&stack, &rings).await;
        }
        let obeyed = telnyx.obeyed("v3:a");
        let [(action, answered)] = &obeyed[..] else { panic!("one command: {obeyed:?}") };
        assert_eq!(action, "answer");
        for (pointer, value) in [
            ("/assistant/id", json!(ASSISTANT)),
            ("/assistant/greeting", json!("Rossi, hello. This call is recorded.")),
            ("/assistant/voice_settings/voice", json!("Telnyx.KokoroTTS.af")),
            ("/assistant/tools/0/type", json!("hangup")),
            ("/assistant/tools/1/transfer/targets/0/to", json!(CALLER)),
            ("/record", json!("record-from-answer")),
        ] {
            assert_eq!(answered.pointer(pointer), Some(&value), "{pointer}: {answered}");
        }
        let rules = answered.pointer("/assistant/instructions").and_then(Value::as_str).expect("instructions");
        assert!(rules.contains("Say { {secret} }."), "variables are not filled in: {rules}");
        assert_eq!((bob.calls("").await.len(), bob.credits(&stack).await), (1, 0));
        let id = newest(&bob).await;
        let open = bob.call(id).await;
        assert_eq!((&open["status"], &open["from"]), (&json!("in-progress"), &json!(CALLER)), "{open}");

        // It is over before that is known to have been answered, then it is not looked through, then it is, twice.
        let hangup = telnyx.ends("v3:a", now, 95, "normal_clearing", "caller");
        for _ in 0..2 {
            telnyx.posts(&stack, &hangup).await;
        }
        telnyx.posts(&stack, &telnyx.happens("v3:a", "call.answered", now, json!({}))).await;
        assert_eq!(bob.call(id).await["status"], "in-progress", "the insights are not there yet");
        reported(&telnyx, &stack, "v3:a", &bob, id).await;
        let call = bob.charged(id).await;
        for (member, value) in [
            ("status", json!("ended")),
            ("ended_reason", json!("caller_hung_up")),
            ("duration_seconds", json!(95)),
            ("charge_usdc", json!("0.700000")),
            ("summary", json!("They talked about bread.")),
            ("transcript", json!("Assistant: Hello.\nCaller: Bread, please.\nAssistant: Four dollars.")),
        ] {
            assert_eq!(call[member], value, "{member}: {call}");
        }
        let link = recording(&stack, &call["recording_url"]).await;
        assert_eq!(link.as_deref(), Some("https://signed.example/recording.mp3?signature=1"));
        let event = eventually("the event", || async { receiver.received().first().cloned() }).await;
        assert_eq!(event.json()["data"]["id"], json!(id));

        // Late: the charge is final.
        for late in [rings, hangup] {
            telnyx.posts(&stack, &late).await;
        }
        look(&stack, id).await;
        assert_eq!((bob.calls("").await.len(), bob.credits(&stack).await), (1, 3 * MINUTE));
    });
}

#[test]
fn callers_who_are_not_answered_cost_nothing() {
    run(async {
        let telnyx = telnyx().await;
        let stack = telnyx.stack().await;
        let now = stack.app.clock.now();
        let shut = json!({
            "business_hours": closed(now), "after_hours": "decline", "after_hours_message": "Wir haben zu.",
            "language": "de",
        });
        let (ada, of_ada) = Agent::answering(&stack, MINUTE, shut).await;
        let (bob, of_bob) = Agent::answering(&stack, MINUTE - 1, json!({})).await;
        // Too few credits, and a number that nobody has.
        for (call, to) in [("v3:poor", of_bob.number.as_str()), ("v3:free", "+12065559999"), ("v3:odd", "anonymous")] {
            telnyx.posts(&stack, &telnyx.rings(call, to)).await;
            assert_eq!(telnyx.obeyed(call)[0].1["cause"], "USER_BUSY", "{call}");
            assert_eq!(telnyx.actions(call), ["reject"], "{call}");
        }
        let declined = bob.calls("").await;
        assert_eq!((declined.len(), &declined[0]["status"]), (1, &json!("declined")), "{declined:?}");

        // After hours: the owner's message is said, and nothing else.
        telnyx.posts(&stack, &telnyx.rings("v3:late", of_ada.number.as_str())).await;
        let answered = telnyx.answers("v3:late", now);
        telnyx.posts(&stack, &answered).await;
        telnyx.posts(&stack, &telnyx.happens("v3:late", "call.speak.ended", now, json!({}))).await;
        assert_eq!(telnyx.actions("v3:late"), ["answer", "speak", "hangup"]);
        let said = &telnyx.obeyed("v3:late")[1].1;
        assert_eq!((&said["payload"], &said["language"]), (&json!("Wir haben zu."), &json!("de-DE")), "{said}");
        assert!(telnyx.obeyed("v3:late")[0].1.get("assistant").is_none());
        let declined = ada.calls("").await;
        assert_eq!((declined.len(), &declined[0]["ended_reason"]), (1, &json!("after_hours")), "{declined:?}");
        // Strangers cannot make the operator pay for it all day.
        counted(&stack, format!("VOICEDECLINED#{}", of_ada.id), json!({"used": 100, "expires": i64::MAX})).await;
        telnyx.posts(&stack, &telnyx.rings("v3:many", of_ada.number.as_str())).await;
        assert_eq!(telnyx.actions("v3:many"), ["reject"]);
        assert_eq!(ada.calls("").await.len(), 1);
        assert_eq!((ada.credits(&stack).await, bob.credits(&stack).await), (MINUTE, MINUTE - 1));

        // A caller who gives up before the assistant is there.
        ada.configure(&of_ada, &settings(json!({}))).await;
        let id = rung(&telnyx, &stack, "v3:gone", &of_ada, &ada).await;
        assert_eq!(ada.credits(&stack).await, 0);
        let gone = telnyx.hangs_up("v3:gone", now, "originator_cancel", "caller");
        eventually("the job's end", || async {
            telnyx.posts(&stack, &gone).await;
            finished(&ada, id).await
        })
        .await;
        let call = ada.charged(id).await;
        assert_eq!((&call["status"], &call["charge_usdc"]), (&json!("declined"), &json!("0.000000")), "{call}");
        assert_eq!(ada.credits(&stack).await, MINUTE);
    });
}

#[test]
fn a_call_that_rings_at_telnyx_while_paid_calls_are_stopped_is_declined() {
    run(async {
        let telnyx = telnyx().await;
        let stack = telnyx.stack().await;
        let (ada, of_ada) = Agent::answering(&stack, MINUTE, json!({})).await;
        limits::stop(&stack.app, Some("testing")).await.expect("a database");
        telnyx.posts(&stack, &telnyx.rings("v3:stop", of_ada.number.as_str())).await;
        assert_eq!(telnyx.actions("v3:stop"), ["reject"]);
        assert_eq!((ada.calls("").await.len(), ada.credits(&stack).await), (0, MINUTE));
    });
}

#[test]
fn a_call_after_hours_is_passed_on_and_ends_with_its_second_leg() {
    run(async {
        let telnyx = telnyx().await;
        let stack = telnyx.stack().await;
        let now = stack.app.clock.now();
        let members = json!({
            "business_hours": closed(now), "after_hours": "transfer", "after_hours_message": "One moment.",
            "allowed_tools": ["transfer_call"], "transfer_number": "+14155552672",
        });
        let (bob, of_bob) = Agent::answering(&stack, 3 * MINUTE, members).await;
        let id = rung(&telnyx, &stack, "v3:b", &of_bob, &bob).await;
        telnyx.posts(&stack, &telnyx.answers("v3:b", now)).await;
        telnyx.posts(&stack, &telnyx.happens("v3:b", "call.speak.ended", now, json!({}))).await;
        assert_eq!(telnyx.actions("v3:b"), ["answer", "speak", "transfer"]);
        let commands = telnyx.obeyed("v3:b");
        assert_eq!(commands[1].1["payload"], "One moment.");
        let passed = &commands[2].1;
        for (member, value) in
            [("to", json!("+14155552672")), ("from", json!(of_bob.number)), ("time_limit_secs", json!(180))]
        {
            assert_eq!(passed[member], value, "{member}: {passed}");
        }
        // The second leg ends, so the caller's does.
        telnyx.happens("v3:b", "call.bridged", now, json!({}));
        let mut second = telnyx.rings("v3:second", "+14155552672");
        second["data"]["event_type"] = json!("call.hangup");
        second["data"]["payload"]["client_state"] = passed["target_leg_client_state"].clone();
        telnyx.posts(&stack, &second).await;
        assert_eq!(telnyx.actions("v3:b").last().map(String::as_str), Some("hangup"));
        looked_at_after(&telnyx, &stack, &bob, id, "v3:b").await;
        let call = bob.charged(id).await;
        for (member, value) in
            [("mode", json!("transfer")), ("ended_reason", json!("transferred")), ("charge_usdc", json!("0.350000"))]
        {
            assert_eq!(call[member], value, "{member}: {call}");
        }
        assert!(call["recording_url"].is_null(), "no recording was asked for: {call}");
        assert_eq!(bob.credits(&stack).await, 2 * MINUTE);
    });
}

/// Nobody is on the line that was answered only to pass the call on, and its owner pays for each minute.
#[test]
fn a_caller_whom_telnyx_does_not_pass_on_is_hung_up() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let telnyx = Telnyx::start(clock.clone()).await;
        let stack = telnyx.stack().await;
        let members = json!({
            "business_hours": closed(clock.now()), "after_hours": "transfer", "max_minutes": 3,
            "allowed_tools": ["transfer_call"], "transfer_number": "+14155552672",
        });
        let (bob, of_bob) = Agent::answering(&stack, 6 * MINUTE, members).await;
        let mut ids = Vec::new();
        for (call, status) in [("v3:no-a", 422), ("v3:no-b", 403)] {
            ids.push(rung(&telnyx, &stack, call, &of_bob, &bob).await);
            telnyx.posts(&stack, &telnyx.answers(call, clock.now())).await;
            telnyx.refuses("transfer", status);
            telnyx.posts(&stack, &telnyx.happens(call, "call.speak.ended", clock.now(), json!({}))).await;
            assert_eq!(telnyx.actions(call), ["answer", "speak", "hangup"], "{status}");
            clock.advance(Duration::from_secs(1));
        }
        // There was no conversation, so no insights come.
        clock.advance(Duration::from_secs(91));
        for id in ids {
            looked_at(&stack, &bob, id).await;
            assert_eq!(bob.charged(id).await["charge_usdc"], "0.350000");
        }
        assert_eq!(bob.credits(&stack).await, 4 * MINUTE);
    });
}

/// Lets the worker look at the job of a call whose insights are there.
async fn looked_at_after(telnyx: &Telnyx, stack: &Stack, agent: &Agent, id: RequestId, call: &str) -> Value {
    telnyx.looks_through(call);
    looked_at(stack, agent, id).await
}

#[test]
fn forged_and_stale_posts_change_nothing() {
    run(async {
        let telnyx = telnyx().await;
        let stack = telnyx.stack().await;
        let now = stack.app.clock.now();
        let (bob, of_bob) = Agent::answering(&stack, 3 * MINUTE, json!({})).await;
        let rings = telnyx.rings("v3:d", of_bob.number.as_str()).to_string();
        let at = now.secs();
        let refused = (401, "invalid_signature".to_owned());
        // Another key, and another time than now.
        for (at, key) in [(at, OWN_KEY + 1), (at - 301, OWN_KEY), (at + 400, OWN_KEY)] {
            assert_eq!(signed(&stack, &rings, at, key).await.error(), refused, "{at} {key}");
        }
        for (time, signature) in [("", ""), (at.to_string().as_str(), "AAAA"), ("now", "?")] {
            assert_eq!(post(&stack, &rings, time, signature).await.error(), refused, "{time:?} {signature:?}");
        }
        assert_eq!((bob.calls("").await.len(), telnyx.actions("v3:d").len()), (0, 0));
        assert_eq!(bob.credits(&stack).await, 3 * MINUTE);
        // Signed, and about nothing of ours.
        for text in ["{}", "[]", r#"{"data": {"event_type": "call.hangup", "payload": {"call_control_id": "../x"}}}"#] {
            assert_eq!(signed(&stack, text, at, OWN_KEY).await.status, 200, "{text}");
        }
        assert_eq!(signed(&stack, "{", at, OWN_KEY).await.error(), (400, "invalid_request".to_owned()));

        // A signed end of a call that goes on ends nothing: Telnyx is asked.
        let id = rung(&telnyx, &stack, "v3:d", &of_bob, &bob).await;
        let mut early = telnyx.answers("v3:d", now);
        early["data"]["event_type"] = json!("call.hangup");
        telnyx.posts(&stack, &early).await;
        eventually("the question", || async { (telnyx.count("/v2/calls/v3:d") > 0).then_some(()) }).await;
        assert_eq!(bob.call(id).await["status"], "in-progress");
        telnyx.ends("v3:d", now, 10, "normal_clearing", "callee");
        reported(&telnyx, &stack, "v3:d", &bob, id).await;
        let call = bob.charged(id).await;
        assert_eq!((&call["charge_usdc"], &call["ended_reason"]), (&json!("0.350000"), &json!("assistant_hung_up")));

        let embedded = support::stack().await;
        assert_eq!(signed(&embedded, &rings, at, OWN_KEY).await.status, 404, "Telnyx is not in use");
    });
}

#[test]
fn a_caller_whose_assistant_has_gone_is_not_left_on_the_line() {
    run(async {
        let telnyx = telnyx().await;
        let stack = telnyx.stack().await;
        let (bob, of_bob) = Agent::answering(&stack, MINUTE, json!({})).await;
        let id = rung(&telnyx, &stack, "v3:c", &of_bob, &bob).await;
        let now = stack.app.clock.now();
        telnyx.talks("v3:c", now);
        telnyx.posts(&stack, &telnyx.happens("v3:c", "call.conversation.ended", now, json!({"reason": null}))).await;
        assert_eq!(telnyx.actions("v3:c"), ["answer", "hangup"]);
        looked_at_after(&telnyx, &stack, &bob, id, "v3:c").await;
        let call = bob.charged(id).await;
        assert_eq!((&call["ended_reason"], &call["charge_usdc"]), (&json!("assistant_hung_up"), &json!("0.350000")));
    });
}

#[test]
fn keys_that_a_caller_presses_do_not_hide_what_a_call_costs() {
    run(async {
        let telnyx = telnyx().await;
        let stack = telnyx.stack().await;
        let (bob, of_bob) = Agent::answering(&stack, MINUTE, json!({})).await;
        let id = rung(&telnyx, &stack, "v3:keys", &of_bob, &bob).await;
        let now = stack.app.clock.now();
        telnyx.ends("v3:keys", now, 30, "normal_clearing", "caller");
        // More than a page has, of which most are newer than the end.
        for second in 0..240 {
            let at = now.plus(Duration::from_secs(second));
            telnyx.happens("v3:keys", "call.dtmf.received", at, json!({"digit": "1"}));
        }
        looked_at_after(&telnyx, &stack, &bob, id, "v3:keys").await;
        let call = bob.charged(id).await;
        assert_eq!((&call["charge_usdc"], &call["duration_seconds"]), (&json!("0.350000"), &json!(30)), "{call}");
    });
}

/// Its posts never arrive. Answering takes no longest length, so the job hangs up.
#[test]
fn a_call_that_telnyx_says_nothing_about_is_ended_when_its_credit_ends() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let telnyx = Telnyx::start(clock.clone()).await;
        let stack = telnyx.stack().await;
        let (bob, of_bob) = Agent::answering(&stack, MINUTE, json!({})).await;
        let id = rung(&telnyx, &stack, "v3:e", &of_bob, &bob).await;
        telnyx.talks("v3:e", clock.now());
        clock.advance(Duration::from_secs(61));
        looked_at_after(&telnyx, &stack, &bob, id, "v3:e").await;
        assert_eq!(telnyx.actions("v3:e"), ["answer", "hangup"]);
        let call = bob.charged(id).await;
        assert_eq!((&call["charge_usdc"], &call["duration_seconds"]), (&json!("0.350000"), &json!(60)), "{call}");
        assert_eq!(bob.credits(&stack).await, 0);
    });
}

#[test]
fn a_call_outside_is_placed_once_by_telnyx_and_charged_by_its_events() {
    run(async {
        let telnyx = telnyx().await;
        let stack = telnyx.stack().await;
        let (ada, of_ada) = Agent::with_number(&stack).await;
        let now = stack.app.clock.now();
        let to = outside(now);
        let id = buy(&ada, to).await;
        let placed = eventually("the call", || async { telnyx.placed().first().cloned() }).await;
        let first = "Hello, this is an AI assistant calling for Ann. This call is recorded.";
        for (pointer, value) in [
            ("/from", json!(of_ada.number)),
            ("/to", json!(to)),
            ("/time_limit_secs", json!(180)),
            ("/assistant/id", json!(ASSISTANT)),
            ("/assistant/greeting", json!(first)),
            ("/assistant/tools/0/type", json!("hangup")),
        ] {
            assert_eq!(placed.pointer(pointer), Some(&value), "{pointer}: {placed}");
        }
        let rules = placed.pointer("/assistant/instructions").and_then(Value::as_str).expect("instructions");
        assert!(rules.contains("Ask what bread costs.") && rules.contains(of_ada.number.as_str()), "{rules}");
        let call = eventually("the call's id", || async { telnyx.ids().first().cloned() }).await;

        // The end comes before the start, and twice.
        let hangup = telnyx.ends(&call, now, 70, "normal_clearing", "callee");
        for post in [&hangup, &telnyx.happens(&call, "call.answered", now, json!({})), &hangup] {
            telnyx.posts(&stack, post).await;
        }
        let job = reported(&telnyx, &stack, &call, &ada, id).await;
        let result = &job["result"];
        for (member, value) in [
            ("status", json!("completed")),
            ("outcome", json!("reached_person")),
            ("ended_reason", json!("normal_clearing")),
            ("duration_seconds", json!(70)),
            ("transcript", json!("Caller: Hello.\nAssistant: Bread, please.\nCaller: Four dollars.")),
            ("summary", json!("They talked about bread.")),
            ("success_evaluation", json!("pass")),
            ("cost", json!("0.700000")),
            ("credit_issued", json!("0.350000")),
        ] {
            assert_eq!(result[member], value, "{member}: {job}");
        }
        assert_eq!(result["structured_data"]["points"], json!([{"point": "Ask what bread costs", "answered": true}]));
        assert!(recording(&stack, &result["recording_url"]).await.is_some());
        telnyx.posts(&stack, &hangup).await;
        look(&stack, id).await;
        assert_eq!((telnyx.placed().len(), money(&ada, &stack).await), (1, (3 * MINUTE, MINUTE)));

        // Telnyx no longer has her number: a price finds that out, and the call is from another one, which costs nothing.
        let dropped = Phone { number: Number::parse("+12065552009").expect("a number"), line: None, ..of_ada };
        let (db, key) = (&stack.app.db, phone::key_of(dropped.agent, &dropped.source));
        let put = Write::put(&db.tables.messages, key, &dropped).expect("a row");
        db.write_if(put).await.expect("a database");
        let looked_up = telnyx.count("/v2/phone_numbers");
        for _ in 0..2 {
            let unpaid = ada.payer.ask(CALL, &call_to(to)).await;
            assert_eq!(unpaid.status, 402, "{}", unpaid.text);
            assert_eq!(unpaid.json()["context"]["phone_registration_fee"], "0.000000", "{}", unpaid.text);
        }
        assert_eq!(
            telnyx.count("/v2/phone_numbers"),
            looked_up + 2,
            "one list is not believed, and a third not asked for"
        );
        let listed = data(&ada.payer.get(NUMBERS).await)["numbers"][0].clone();
        assert_eq!((&listed["phone_number"], &listed["status"]), (&json!(dropped.number), &json!("lost")), "{listed}");
        buy(&ada, to).await;
        let placed = eventually("the next call", || async { telnyx.placed().get(1).cloned() }).await;
        assert_ne!(placed["from"], json!(dropped.number), "{placed}");
        let own = phone::list(db, dropped.agent).await.expect("a database");
        assert_eq!((own.len(), &own[0].bought_by, own[0].lost_at), (1, &dropped.bought_by, None));
    });
}

#[test]
fn a_call_outside_whose_input_is_lost_is_charged_by_its_record() {
    run(async {
        let telnyx = telnyx().await;
        let stack = telnyx.stack().await;
        let (ada, own) = Agent::with_number(&stack).await;
        let (toolbox, now) = (stack.worker.toolbox.clone(), stack.app.clock.now());
        let to = Number::parse(outside(now)).expect("a number");
        for is_ended in [true, false] {
            let mut task = task(&toolbox, ada.payer.agent(), &to);
            task.locked.insert("source".to_owned(), json!(own.source));
            let known = telnyx.ids();
            let waits = (outbound::RUNNER.run)(toolbox.clone(), task.clone()).await.expect("a call");
            assert!(waits.waits.is_some(), "{waits:?}");
            let call = telnyx.ids().into_iter().find(|call| !known.contains(call)).expect("a call");
            let (actions, used) = match is_ended {
                true => {
                    telnyx.ends(&call, now, 70, "normal_clearing", "callee");
                    (Vec::new(), 2 * MINUTE)
                }
                // It goes on, so it is hung up, and nobody knows what it came to.
                false => (vec!["hangup"], 0),
            };
            let lost = Task { input: Map::new(), is_over: true, ..task };
            let output = (outbound::RUNNER.run)(toolbox.clone(), lost).await.expect("its end");
            assert_eq!(output.used, Some(Usdc::from_micro(used)), "{}", output.result);
            assert_eq!(telnyx.actions(&call), actions, "{}", output.result);
            assert_eq!(output.result["legs"][0]["to"], json!(to), "{}", output.result);
        }
    });
}

#[test]
fn a_job_with_more_minutes_than_a_day_calls_nobody() {
    run(async {
        let telnyx = telnyx().await;
        let stack = telnyx.stack().await;
        let (ada, own) = Agent::with_number(&stack).await;
        let toolbox = stack.worker.toolbox.clone();
        let to = Number::parse(outside(stack.app.clock.now())).expect("a number");
        let mut task = task(&toolbox, ada.payer.agent(), &to);
        task.locked.insert("source".to_owned(), json!(own.source));
        task.locked.insert("minutes".to_owned(), json!(MAX_MINUTES_A_DAY + 1));
        let refused = (outbound::RUNNER.run)(toolbox, task).await.expect_err("a refusal");
        assert_eq!((refused.code, telnyx.placed().len()), (ErrorCode::RateLimited, 0), "{}", refused.message);
    });
}

#[test]
fn a_call_by_telnyx_whose_placing_was_not_answered_is_never_placed_again() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let telnyx = Telnyx::start(clock.clone()).await;
        let stack = telnyx.stack().await;
        let (ada, _) = Agent::with_number(&stack).await;
        let to = outside(clock.now());
        // It is found among the calls that go on, or by its events; or Telnyx posts, and nothing else shows it.
        for (is_alive, is_listed, outcome) in
            [(true, true, "no_answer"), (false, true, "refused"), (true, false, "wrong_number")]
        {
            let cause = match outcome {
                "no_answer" => "user_busy",
                "refused" => "call_rejected",
                _ => "not_found",
            };
            let (before, known, had) = (telnyx.placed().len(), telnyx.ids(), money(&ada, &stack).await);
            telnyx.next(&[Placing::Lost { is_alive, is_listed }]);
            let id = buy(&ada, to).await;
            let call =
                eventually("the call", || async { telnyx.ids().into_iter().find(|call| !known.contains(call)) }).await;
            if is_listed {
                let path = format!("/v2/calls/{call}");
                eventually("the question", || async {
                    look(&stack, id).await;
                    (telnyx.count(&path) > 0).then_some(())
                })
                .await;
            }
            let hangup = telnyx.hangs_up(&call, clock.now(), cause, "callee");
            if !is_listed {
                telnyx.posts(&stack, &hangup).await;
            }
            let job = looked_at(&stack, &ada, id).await;
            assert_eq!(job["result"]["outcome"], outcome, "{job}");
            let has = money(&ada, &stack).await;
            assert_eq!((has.0 - had.0, has.1 - had.1), (3 * MINUTE, 3 * MINUTE), "{outcome}: {job}");
            assert_eq!(telnyx.placed().len() - before, 1, "{outcome}");
        }

        // Refused for good, and refused for now.
        for (next, placings, status) in
            [(vec![Placing::Fails(403)], 1, "failed"), (vec![Placing::Fails(401)], 2, "no_answer")]
        {
            let (before, known, had) = (telnyx.placed().len(), telnyx.ids(), money(&ada, &stack).await);
            telnyx.next(&next);
            let id = buy(&ada, to).await;
            let job = eventually("the job's end", || async {
                for call in telnyx.ids().iter().filter(|call| !known.contains(call)) {
                    telnyx.hangs_up(call, clock.now(), "timeout", "unknown");
                }
                look(&stack, id).await;
                finished(&ada, id).await
            })
            .await;
            assert_eq!(job["result"]["status"], status, "{next:?}: {job}");
            assert_eq!(telnyx.placed().len() - before, placings, "{next:?}: {job}");
            let has = money(&ada, &stack).await;
            assert_eq!((has.0 - had.0, has.1 - had.1), (3 * MINUTE, 3 * MINUTE), "{next:?}: {job}");
        }

        // It may have been placed, and is nowhere: nobody is called again, and nothing is charged.
        let (before, had) = (telnyx.placed().len(), money(&ada, &stack).await);
        telnyx.next(&[Placing::Fails(500)]);
        let id = buy(&ada, to).await;
        eventually("the call", || async { (telnyx.placed().len() > before).then_some(()) }).await;
        clock.advance(Duration::from_secs(181));
        let job = looked_at(&stack, &ada, id).await;
        assert_eq!((&job["result"]["status"], telnyx.placed().len() - before), (&json!("failed"), 1), "{job}");
        let has = money(&ada, &stack).await;
        assert_eq!((has.0 - had.0, has.1 - had.1), (3 * MINUTE, 3 * MINUTE), "{job}");
    });
}
