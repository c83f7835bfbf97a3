//! The exchange from its caller's side: turns, a line with one call, limits, passing on, refusals; and that open calls hold no
//! worker.

use std::time::Duration;

use base::clock::Clock;
use base::digest::sha256_parts;
use base::ids::{RequestId, uuid_of};
use futures_util::future::join_all;
use gate::idempotency;
use gate::limits::{self, Class, RateLimitSlot, STOP_SEEN_FOR, Subject};
use ledger::account;
use local::{Options, Stack};
use platform::store::queue::send_or_log;
use platform::store::{Key, Write, daily};
use serde_json::{Value, json};
use tools_sms::number::Number;
use tools_sms::phone::{self, Owner, Phone};
use tools_voice::dialogue::{Speaker, Turn};
use tools_voice::velocity::{self, MAX_A_DAY, MAX_MINUTES_TO_NUMBER, MAX_TO_NUMBER, MAX_UNANSWERED};
use tools_voice::{calls, exchange};

use super::{Agent, CALLS, EXCHANGE, MINUTE, call_id, data, settings};
use crate::approvals::{APPROVER, POLICY, decide, link};
use crate::support::{Answer, run, stack, stack_with};

/// More calls than there are workers.
const OPEN: usize = 25;
const PASSING: &str = "I will connect you.";
const UNREACHABLE: &str = "I will connect you. I cannot reach anybody now.";

/// A stack whose time stands still.
async fn standing_still() -> (Stack, Clock) {
    let clock = Clock::pinned(Clock::system().now());
    let of_stack = clock.clone();
    (stack_with(|options| Options { clock: of_stack, ..options }).await, clock)
}

/// Stores a counter of today.
pub(super) async fn counted(stack: &Stack, of: String, row: Value) {
    let day = stack.app.clock.now().secs().div_euclid(24 * 3600);
    let db = &stack.app.db;
    let write = Write::put(&db.tables.messages, Key::new(of, day.to_string()), &row).expect("a write");
    assert!(db.write_if(write).await.expect("a database"));
}

/// A refusal says for how many seconds it holds, in its body and for every client of HTTP.
#[track_caller]
fn refused_until(answer: &Answer, (status, code): (u16, &str), secs: u64) {
    assert_eq!(answer.error(), (status, code.to_owned()), "{}", answer.text);
    assert_eq!(answer.json()["retry_after"], secs, "{}", answer.text);
    assert_eq!(answer.header("retry-after"), Some(secs.to_string().as_str()));
}

/// A call in which nothing is said.
async fn short_call(caller: &Agent, to: &Phone) -> RequestId {
    let call = call_id(&caller.ring(&to.number).await);
    assert_eq!(caller.hang_up(call).await.status, 200);
    call
}

#[test]
fn a_caller_speaks_in_turns() {
    run(async {
        let (stack, clock) = standing_still().await;
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, json!({})).await;
        let (carl, of_carl) = Agent::with_number(&stack).await;
        let rung = carl.ring(&of_bob.number).await;
        let call = call_id(&rung);
        assert_eq!(rung["said"], "Hello, you have reached an automated assistant. How can I help you?");
        assert_eq!(
            (&rung["call"]["from"], &rung["call"]["to"]),
            (&json!(of_carl.number), &json!(of_bob.number)),
            "{rung}"
        );
        for text in ["", " \u{200b}\n", "a".repeat(1_001).as_str()] {
            let answer = carl.say(call, text).await;
            let refused = (answer.error(), answer.json()["details"][0]["path"].clone());
            assert_eq!(refused, ((400, "invalid_request".to_owned()), json!("text")), "{}", answer.text);
        }

        // It is not said, and takes no turn.
        let threat = carl.say(call, "I will kill you.").await;
        assert_eq!(threat.error(), (400, "content_blocked".to_owned()), "{}", threat.text);

        // Eight turns in a started minute.
        for _ in 0..7 {
            assert_eq!(carl.hears(call, "How much is bread?").await["said"], "Bread costs 4 dollars.");
        }
        clock.advance(Duration::from_secs(40));
        carl.hears(call, "How much is bread?").await;
        refused_until(&carl.say(call, "And rolls?").await, (429, "too_many_turns"), 21);
        clock.advance(Duration::from_secs(21));

        // A turn that a process left behind blocks the call for half a minute.
        let db = &stack.app.db;
        let mut taken = calls::load(db, call).await.expect("a database").expect("a call");
        taken.answering = Some(clock.now().plus(Duration::from_secs(30)));
        taken.revision += 1;
        assert!(calls::change(db, &taken).await.expect("a database"));
        refused_until(&carl.say(call, "Hello?").await, (409, "turn_in_progress"), 2);
        clock.advance(Duration::from_secs(30));
        assert_eq!(carl.hears(call, "When are you open?").await["said"], "We are open from 7 to 18 h.");

        // After so long without a word, the call has ended.
        clock.advance(Duration::from_secs(60));
        assert_eq!(carl.say(call, "Hello?").await.error(), (409, "call_ended".to_owned()));
        let seen = carl.dialled(call).await;
        assert_eq!((&seen["ended_reason"], &seen["duration_seconds"]), (&json!("silence"), &json!(146)), "{seen}");
        let transcript = seen["transcript"].as_str().expect("a transcript");
        assert_eq!(transcript.lines().count(), 1 + 2 * 9, "{transcript}");
        assert!(
            transcript.ends_with("Caller: When are you open?\nAssistant: We are open from 7 to 18 h."),
            "{transcript}"
        );
        for name in ["charge_usdc", "receipt_id", "mode", "phone_number_id", "summary", "recording_url"] {
            assert!(seen.get(name).is_none(), "{name} is the callee's: {seen}");
        }
        assert_eq!(bob.charged(call).await["charge_usdc"], "1.050000");
        assert_eq!(bob.credits(&stack).await, 7 * MINUTE);
    });
}

/// Calls of before settings were an item of their own have them in the call's.
#[test]
fn a_call_that_is_stored_with_its_settings_goes_on() {
    run(async {
        let (stack, _) = standing_still().await;
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, json!({})).await;
        let (carl, _) = Agent::with_number(&stack).await;
        let id = call_id(&carl.ring(&of_bob.number).await);
        let db = &stack.app.db;
        let call = calls::load(db, id).await.expect("a database").expect("a call");
        let mut row = serde_json::to_value(&call).expect("a row");
        row["config"] = serde_json::to_value(&call.config).expect("settings");
        let of_settings = Key::new(format!("CALL#{id}"), "CONFIG");
        for write in [
            Write::put(&db.tables.messages, calls::key(id), &row).expect("a write"),
            Write::delete(&db.tables.messages, of_settings).only_if("attribute_exists(#pk)"),
        ] {
            assert!(db.write_if(write).await.expect("a database"));
        }
        for _ in 0..2 {
            assert_eq!(carl.hears(id, "How much is bread?").await["said"], "Bread costs 4 dollars.");
        }
        assert_eq!(carl.hang_up(id).await.status, 200);
        assert_eq!(bob.charged(id).await["charge_usdc"], "0.350000");
    });
}

#[test]
fn a_number_has_one_call_at_a_time() {
    run(async {
        let stack = stack().await;
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, json!({"max_minutes": 1})).await;
        let (_, of_dana) = Agent::answering(&stack, 10 * MINUTE, json!({"max_minutes": 1})).await;
        let (carl, _) = Agent::with_number(&stack).await;
        let dials = join_all((0..5).map(|_| carl.dial(&of_bob.number))).await;
        let (answered, refused): (Vec<_>, Vec<_>) = dials.iter().partition(|answer| answer.status == 201);
        assert_eq!((answered.len(), refused.len()), (1, 4), "{dials:?}");
        for answer in refused {
            assert_eq!(answer.error(), (409, "line_busy".to_owned()));
        }
        let first = call_id(&data(answered[0]));
        assert_eq!(carl.dial(&of_dana.number).await.error(), (409, "line_busy".to_owned()));
        for _ in 0..2 {
            let ended = data(&carl.hang_up(first).await);
            assert_eq!((&ended["status"], &ended["ended_reason"]), (&json!("ended"), &json!("caller_hung_up")));
        }
        let second = call_id(&carl.ring(&of_dana.number).await);
        assert_eq!(carl.hang_up(second).await.status, 200);
        assert_eq!(bob.charged(first).await["charge_usdc"], "0.350000");
        assert_eq!((bob.calls("").await.len(), bob.credits(&stack).await), (1, 9 * MINUTE));
    });
}

/// Dials with an idempotency key, at the time of the stack.
async fn dial_once(stack: &Stack, caller: &Agent, to: &Phone, key: &str) -> Answer {
    let proof = caller.payer.proof_at("write", stack.app.clock.now().secs());
    let headers = [("content-type", "application/json"), ("x-agent-proof", proof.as_str()), ("idempotency-key", key)];
    let body = json!({"to": to.number}).to_string();
    caller.payer.client.send("POST", EXCHANGE, &headers, body).await.expect("an answer")
}

/// Forgets the answer that is kept for a key. The call stays.
async fn forget(stack: &Stack, caller: &Agent, key: &str) {
    let route_and_key: [&[u8]; 2] = [b"POST /v1/tools/voice/exchange", key.as_bytes()];
    let taken = format!("ONCE#{}", const_hex::encode(sha256_parts(&route_and_key)));
    let taken = Key::new(format!("AGENT#{}", caller.payer.agent()), taken);
    let db = &stack.app.db;
    let forget = Write::delete(&db.tables.agents, taken).only_if("attribute_exists(#pk)");
    assert!(db.write_if(forget).await.expect("a database"), "the key was stored");
}

/// As long as a key is remembered, its dial is one call, also if its first answer was lost. Then it is a new request.
#[test]
fn a_dial_with_a_key_rings_once() {
    run(async {
        let (stack, clock) = standing_still().await;
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, json!({"max_minutes": 1})).await;
        let (carl, _) = Agent::with_number(&stack).await;
        let first = dial_once(&stack, &carl, &of_bob, "once").await;
        forget(&stack, &carl, "once").await;
        let again = dial_once(&stack, &carl, &of_bob, "once").await;
        assert_eq!((first.status, again.status, data(&first)), (201, 201, data(&again)));
        assert_eq!(bob.calls("").await.len(), 1);

        let first = call_id(&data(&first));
        assert_eq!(carl.hang_up(first).await.status, 200);
        clock.advance(Duration::from_secs(idempotency::KEEP_SECS.unsigned_abs()));
        forget(&stack, &carl, "once").await;
        assert_eq!(call_id(&data(&dial_once(&stack, &carl, &of_bob, "once").await)), first);
        clock.advance(Duration::from_secs(1));
        forget(&stack, &carl, "once").await;
        assert_ne!(call_id(&data(&dial_once(&stack, &carl, &of_bob, "once").await)), first);
    });
}

#[test]
fn no_caller_uses_up_a_callees_credits() {
    run(async {
        let (stack, _) = standing_still().await;
        let minutes = json!({"max_minutes": 1});
        let (bob, of_bob) = Agent::answering(&stack, 20 * MINUTE, minutes.clone()).await;
        let (_, of_dana) = Agent::answering(&stack, 20 * MINUTE, minutes).await;
        let (carl, _) = Agent::with_number(&stack).await;
        let (erin, _) = Agent::with_number(&stack).await;
        let limited = (429, "voice_limit_reached".to_owned());
        let mut called = Vec::new();
        for _ in 0..MAX_TO_NUMBER {
            called.push(short_call(&carl, &of_bob).await);
        }
        let of_day = daily::secs_left(stack.app.clock.now());
        refused_until(&carl.dial(&of_bob.number).await, (429, "voice_limit_reached"), of_day);
        called.push(short_call(&erin, &of_bob).await);
        for call in &called {
            bob.charged(*call).await;
        }
        assert_eq!(bob.credits(&stack).await, 9 * MINUTE);

        let pair = uuid_of(&[b"voice_to", carl.payer.agent().bytes(), of_dana.number.as_str().as_bytes()]);
        for (minutes, is_limited) in [(MAX_MINUTES_TO_NUMBER, true), (MAX_MINUTES_TO_NUMBER - 1, false)] {
            let row = json!({"used": 1, "minutes": minutes, "last": RequestId::random(), "expires": i64::MAX});
            counted(&stack, format!("VOICETO#{pair}"), row).await;
            if is_limited {
                assert_eq!(carl.dial(&of_dana.number).await.error(), limited, "minutes of calls to a number");
            } else {
                short_call(&carl, &of_dana).await;
            }
        }
        let of_erin = format!("VOICEDAY#{}", erin.payer.agent());
        counted(&stack, of_erin, json!({"used": MAX_A_DAY - 1, "expires": i64::MAX})).await;
        short_call(&erin, &of_dana).await;
        assert_eq!(erin.dial(&of_dana.number).await.error(), limited, "calls of a caller");

        // What is being dialled from another number of the caller may be answered, for half a minute.
        for (secs, is_full) in [(0, true), (30, false)] {
            let (caller, mut at) = (Agent::new(&stack).await.payer.agent(), stack.app.clock.now());
            let mut taken = Vec::new();
            for _ in 0..=MAX_TO_NUMBER {
                taken.push(velocity::take(&stack.app.db, caller, &of_bob.number, RequestId::random(), at).await);
                at = at.plus(Duration::from_secs(secs));
            }
            let last = taken.pop().expect("a dial").expect("a database");
            assert_eq!(last.is_some(), is_full, "{last:?}");
            assert!(taken.iter().all(|why| why == &Ok(None)), "{taken:?}");
        }

        // A dial that is repeated is counted once.
        let db = &stack.app.db;
        let (frank, now) = (Agent::new(&stack).await.payer.agent(), stack.app.clock.now());
        counted(&stack, format!("VOICEDAY#{frank}"), json!({"used": MAX_A_DAY - 1, "expires": i64::MAX})).await;
        let (call, other) = (RequestId::random(), RequestId::random());
        for (id, is_refused) in [(call, false), (call, false), (other, true)] {
            let why = velocity::take(db, frank, &of_bob.number, id, now).await.expect("a database");
            assert_eq!(why.is_some(), is_refused, "{why:?}");
        }
    });
}

/// A callee without credits, or with its phone switched off, does not use up what its caller may call.
#[test]
fn calls_that_nobody_answers_have_a_limit_of_their_own() {
    run(async {
        let (stack, _) = standing_still().await;
        let (bob, of_bob) = Agent::answering(&stack, 0, json!({"max_minutes": 1})).await;
        let (carl, _) = Agent::with_number(&stack).await;
        for _ in 0..MAX_TO_NUMBER {
            assert_eq!(data(&carl.dial(&of_bob.number).await)["call"]["status"], "declined");
        }
        bob.configure(&of_bob, &settings(json!({"enabled": false}))).await;
        for _ in 0..MAX_TO_NUMBER {
            assert_eq!(carl.dial(&of_bob.number).await.error(), (404, "number_not_in_service".to_owned()));
        }
        bob.configure(&of_bob, &settings(json!({"max_minutes": 1}))).await;
        bob.payer.give_credits(&stack, 10 * MINUTE).await;
        short_call(&carl, &of_bob).await;

        let pair = uuid_of(&[b"voice_to", carl.payer.agent().bytes(), of_bob.number.as_str().as_bytes()]);
        for (unanswered, is_limited) in [(MAX_UNANSWERED - 1, true), (MAX_UNANSWERED - 2, false)] {
            let last = RequestId::random();
            let row = json!({"used": 0, "unanswered": unanswered, "minutes": 0, "last": last, "expires": i64::MAX});
            counted(&stack, format!("VOICETO#{pair}"), row).await;
            if is_limited {
                assert_eq!(carl.dial(&of_bob.number).await.error(), (429, "voice_limit_reached".to_owned()));
            } else {
                short_call(&carl, &of_bob).await;
            }
        }
    });
}

/// Each time, its caller hears that nobody was reached: a line more than in other turns.
#[test]
fn a_failed_transfer_is_one_turn() {
    run(async {
        let (stack, _) = standing_still().await;
        let (_, of_dana) = Agent::with_number(&stack).await;
        let passing = json!({"allowed_tools": ["transfer_call"], "transfer_number": of_dana.number});
        let (_, of_bob) = Agent::answering(&stack, 10 * MINUTE, passing).await;
        let (carl, _) = Agent::with_number(&stack).await;
        let call = call_id(&carl.ring(&of_bob.number).await);
        for _ in 0..exchange::TURNS_A_MINUTE {
            assert_eq!(carl.hears(call, "Can I talk to a human?").await["said"], UNREACHABLE);
        }
        assert_eq!(carl.say(call, "Hello?").await.error(), (429, "too_many_turns".to_owned()));
    });
}

/// Also beyond the declined calls that are put on record.
#[test]
fn a_declined_call_leaves_the_line_free() {
    run(async {
        let (stack, _) = standing_still().await;
        let (_, of_bob) = Agent::answering(&stack, 0, json!({})).await;
        let (_, of_dana) = Agent::answering(&stack, 10 * MINUTE, json!({})).await;
        let (carl, _) = Agent::with_number(&stack).await;
        counted(&stack, format!("VOICEDECLINED#{}", of_bob.id), json!({"used": 100, "expires": i64::MAX})).await;
        let declined = data(&carl.dial(&of_bob.number).await);
        assert_eq!(declined["call"]["status"], "declined", "{declined}");
        carl.ring(&of_dana.number).await;
    });
}

#[test]
fn the_emergency_stop_stops_dials_and_no_open_call() {
    run(async {
        let (stack, clock) = standing_still().await;
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, json!({"max_minutes": 1})).await;
        let (carl, _) = Agent::with_number(&stack).await;
        let call = call_id(&carl.ring(&of_bob.number).await);
        limits::stop(&stack.app, Some("testing")).await.expect("a database");
        clock.advance(STOP_SEEN_FOR);
        assert_eq!(carl.hears(call, "How much is bread?").await["said"], "Bread costs 4 dollars.");
        carl.hang_up(call).await;
        bob.charged(call).await;
        assert_eq!(carl.dial(&of_bob.number).await.error(), (503, "service_paused".to_owned()));
        assert_eq!(bob.credits(&stack).await, 9 * MINUTE);
        limits::stop(&stack.app, None).await.expect("a database");
        clock.advance(STOP_SEEN_FOR);
        carl.ring(&of_bob.number).await;
    });
}

/// Its owner pays for it, whoever talks on.
#[test]
fn a_callee_ends_an_open_call_by_a_freeze_or_by_hanging_up() {
    run(async {
        let (stack, clock) = standing_still().await;
        let (bob, of_bob) = Agent::answering(&stack, 20 * MINUTE, json!({"allowed_tools": []})).await;
        let (carl, _) = Agent::with_number(&stack).await;
        let freeze = async |is_frozen: bool| {
            let rules = account::change_rules(&stack.app.db, bob.payer.agent(), |account| {
                account.frozen.tools.clear();
                account.frozen.tools.extend(is_frozen.then(|| "voice".to_owned()));
            });
            rules.await.expect("a database");
        };
        // Its caller's next words find it, or its job.
        for is_said in [true, false] {
            let call = call_id(&carl.ring(&of_bob.number).await);
            carl.hears(call, "How much is bread?").await;
            clock.advance(Duration::from_secs(50));
            carl.hears(call, "How much is bread?").await;
            clock.advance(Duration::from_secs(20));
            freeze(true).await;
            if is_said {
                assert_eq!(carl.say(call, "And rolls?").await.error(), (409, "call_ended".to_owned()));
            } else {
                send_or_log(&*stack.queue, call, None).await;
            }
            let ended = bob.charged(call).await;
            let end = (&ended["ended_reason"], &ended["duration_seconds"], &ended["charge_usdc"]);
            assert_eq!(end, (&json!("frozen"), &json!(70), &json!("0.700000")), "{ended}");
            let seen = carl.dialled(call).await;
            assert_eq!(seen["ended_reason"], "assistant_hung_up", "a freeze is the callee's own affair: {seen}");
            freeze(false).await;
        }

        let call = call_id(&carl.ring(&of_bob.number).await);
        for _ in 0..2 {
            let ended = data(&bob.hang_up(call).await);
            assert_eq!((&ended["status"], &ended["ended_reason"]), (&json!("ended"), &json!("assistant_hung_up")));
        }
        assert_eq!(carl.say(call, "Hello?").await.error(), (409, "call_ended".to_owned()));
        assert_eq!(bob.charged(call).await["charge_usdc"], "0.350000");
        assert_eq!(bob.credits(&stack).await, 15 * MINUTE);
    });
}

#[test]
fn pages_by_id_leave_out_no_call_of_one_millisecond() {
    run(async {
        let (stack, _) = standing_still().await;
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, json!({"max_minutes": 1})).await;
        let (carl, _) = Agent::with_number(&stack).await;
        for _ in 0..3 {
            short_call(&carl, &of_bob).await;
        }
        let ids = |calls: &[Value]| calls.iter().map(|call| call["id"].clone()).collect::<Vec<_>>();
        let all = ids(&bob.calls("").await);
        for of_number in [String::new(), format!("&phone_number_id={}", of_bob.id)] {
            let mut seen: Vec<Value> = Vec::new();
            for _ in 0..4 {
                let before =
                    seen.last().map_or_else(String::new, |last| format!("&before={}", last.as_str().expect("an id")));
                seen.extend(ids(&bob.calls(&format!("?limit=1{before}{of_number}")).await));
            }
            assert_eq!((seen.len(), &seen), (3, &all));
        }
        // Another agent's call has no place here.
        let answer = carl.payer.get(&format!("{CALLS}?before={}", all[0].as_str().expect("an id"))).await;
        assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{}", answer.text);
    });
}

#[test]
fn long_transcripts_are_cut_from_a_list_and_counted() {
    run(async {
        let (stack, clock) = standing_still().await;
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, json!({"max_minutes": 1})).await;
        let (carl, _) = Agent::with_number(&stack).await;
        // Two of them fit into a list.
        let long = vec![Turn { speaker: Speaker::Caller, text: "a".repeat(100_000) }; 4];
        let mut called = Vec::new();
        for turns in [&long[..0], &long[..], &long[..], &long[..]] {
            let call = short_call(&carl, &of_bob).await;
            calls::add_turns(&stack.app.db, call, 1, turns, clock.now()).await.expect("a database");
            called.push(call);
            clock.advance(Duration::from_secs(1));
        }
        let listed = bob.calls("?include_transcript=true").await;
        let omitted: Vec<bool> = listed.iter().map(|call| call["transcript_omitted"] == true).collect();
        assert_eq!(omitted, [false, false, true, true], "none is read after one that does not fit");

        let slot = RateLimitSlot::now(&stack.app, Subject::Agent(carl.payer.agent()), Class::Export);
        assert_eq!(slot.used(&stack.app).await.expect("a database"), 0);
        carl.dialled(called[3]).await;
        assert!(slot.used(&stack.app).await.expect("a database") >= 390, "KiB");
    });
}

#[test]
fn a_call_is_passed_on_once() {
    run(async {
        let stack = stack().await;
        let to =
            |phone: &Phone| json!({"allowed_tools": ["transfer_call", "end_call"], "transfer_number": phone.number});
        let (_, of_eve) = Agent::answering(&stack, 10 * MINUTE, json!({})).await;
        let mut members = to(&of_eve);
        members["first_message"] = json!("Dana's bakery.");
        let (dana, of_dana) = Agent::answering(&stack, 10 * MINUTE, members).await;
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, to(&of_dana)).await;
        let (carl, of_carl) = Agent::with_number(&stack).await;

        let first = call_id(&carl.ring(&of_bob.number).await);
        let answer = carl.hears(first, "Can I talk to a human?").await;
        let ended = (&answer["said"], &answer["status"], &answer["ended_reason"]);
        assert_eq!(ended, (&json!(PASSING), &json!("ended"), &json!("transferred")), "{answer}");
        let next = &answer["passed_on"];
        let second = call_id(next);
        assert_eq!(
            (&next["said"], &next["call"]["status"]),
            (&json!("Dana's bakery."), &json!("in-progress")),
            "{next}"
        );
        assert_eq!(carl.dialled(first).await["passed_on_to"], json!(second));
        assert_eq!(bob.charged(first).await["charge_usdc"], "0.350000");
        // The caller's line is in the second call now.
        assert_eq!(carl.dial(&of_eve.number).await.error(), (409, "line_busy".to_owned()));

        let again = carl.hears(second, "I want a human").await;
        assert_eq!((&again["said"], &again["status"]), (&json!(UNREACHABLE), &json!("in-progress")), "{again}");
        assert!(again.get("passed_on").is_none(), "{again}");
        let bye = carl.hears(second, "Bye").await;
        assert_eq!((&bye["status"], &bye["ended_reason"]), (&json!("ended"), &json!("assistant_hung_up")), "{bye}");
        let of_call = dana.charged(second).await;
        assert_eq!(
            (&of_call["from"], &of_call["charge_usdc"]),
            (&json!(of_carl.number), &json!("0.350000")),
            "{of_call}"
        );

        // Where nobody answers, the call goes on.
        let mut off = to(&of_eve);
        off["enabled"] = json!(false);
        dana.configure(&of_dana, &settings(off)).await;
        let third = call_id(&carl.ring(&of_bob.number).await);
        let failed = carl.hears(third, "Can I talk to a human?").await;
        assert_eq!((&failed["said"], &failed["status"]), (&json!(UNREACHABLE), &json!("in-progress")), "{failed}");
        assert_eq!(carl.hears(third, "How much is bread?").await["said"], "Bread costs 4 dollars.");
    });
}

#[test]
fn refused_dials_cost_nothing() {
    run(async {
        let stack = stack().await;
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, json!({})).await;
        let ((carl, of_carl), (erin, of_erin)) = (Agent::with_number(&stack).await, Agent::with_number(&stack).await);
        // Carl has another number, from a provider: it is his own, too.
        let (id, source) = (uuid_of(&[b"second"]), "vapi".to_owned());
        let number = Number::parse("+12065552001").expect("a number");
        let owner = Owner { agent: of_carl.agent, id, source: source.clone(), used_at: None, free_from: None };
        let second = Phone { id, number, source, ..of_carl.clone() };
        let table = &stack.app.db.tables.messages;
        let rows = [
            Write::put(table, phone::key_of(second.agent, &second.source), &second).expect("a row"),
            Write::put(table, phone::owner_key(&second.number), &owner).expect("a row"),
        ];
        stack.app.db.transact(&rows).await.expect("a number");
        carl.configure(&second, &settings(json!({}))).await;
        let nameless = Agent::new(&stack).await;
        assert_eq!(nameless.dial(&of_bob.number).await.error(), (400, "number_needed".to_owned()));
        for is_frozen in [true, false] {
            let rules =
                account::change_rules(&stack.app.db, carl.payer.agent(), |account| account.frozen.agent = is_frozen);
            rules.await.expect("a database");
            if is_frozen {
                assert_eq!(carl.dial(&of_bob.number).await.error(), (403, "frozen_by_owner".to_owned()));
            }
        }
        for (body, status, code) in [
            (json!({}), 400, "invalid_request"),
            (json!({"to": "911"}), 400, "emergency_number_blocked"),
            (json!({"to": "112"}), 400, "emergency_number_blocked"),
            (json!({"to": "24273"}), 400, "invalid_request"),
            (json!({"to": 7}), 400, "invalid_request"),
            (json!({"to": of_carl.number}), 400, "invalid_request"),
            (json!({"to": second.number}), 400, "invalid_request"),
            (json!({"to": of_bob.number, "from": of_erin.number}), 400, "invalid_request"),
            (json!({"to": of_erin.number}), 404, "number_not_in_service"),
            (json!({"to": of_erin.number, "from": null}), 404, "number_not_in_service"),
            (json!({"to": "+14155552671"}), 404, "number_not_in_service"),
        ] {
            let answer = carl.payer.change("POST", EXCHANGE, &body).await;
            assert_eq!(answer.error(), (status, code.to_owned()), "{body}");
        }
        assert!(bob.calls("").await.is_empty());
        assert_eq!(bob.credits(&stack).await, 10 * MINUTE);

        // A token calls as its agent. Nobody else takes part, the callee neither.
        let token = carl.payer.token(&stack).await;
        let body = json!({"to": of_bob.number});
        let dialled = carl.payer.client.post(EXCHANGE, &[("authorization", &token)], &body).await;
        let call = call_id(&data(&dialled));
        let unknown = (404, "call_not_found".to_owned());
        for stranger in [&erin, &bob] {
            assert_eq!(stranger.say(call, "Hello").await.error(), unknown);
            let seen = stranger.payer.get(&format!("{EXCHANGE}/{call}")).await;
            assert_eq!(seen.error(), unknown);
        }
        assert_eq!(erin.hang_up(call).await.error(), unknown);
        assert_eq!(carl.payer.get(&format!("{EXCHANGE}/none")).await.error(), unknown);
        assert_eq!(carl.dialled(call).await["status"], "in-progress");
    });
}

#[test]
fn open_calls_hold_no_worker() {
    run(async {
        let (stack, _) = standing_still().await;
        let credits = OPEN as u64 * MINUTE;
        let (bob, of_bob) = Agent::answering(&stack, credits, json!({"max_minutes": 1})).await;
        let callers = join_all((0..OPEN).map(|_| Agent::with_number(&stack))).await;
        let mut open = Vec::new();
        for (caller, _) in &callers {
            open.push(call_id(&caller.ring(&of_bob.number).await));
        }
        for call in &open {
            send_or_log(&*stack.queue, *call, None).await;
        }
        // Its job comes after those of all open calls.
        assert_eq!(callers[0].0.hang_up(open[0]).await.status, 200);
        assert_eq!(bob.charged(open[0]).await["status"], "ended");
        for call in &open[1..] {
            let job = bob.payer.get(&format!("/v1/requests/{call}")).await.json();
            assert!(matches!(job["status"].as_str(), Some("pending" | "processing")), "{job}");
        }
    });
}

/// Otherwise a dial would do for nothing what the owner forbids to buy.
#[test]
fn a_dial_keeps_to_the_owners_action_policy() {
    run(async {
        let stack = stack().await;
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, json!({})).await;
        let (carl, _) = Agent::with_number(&stack).await;
        let rule = async |action: &str, when: Value| {
            let rules = json!([{"tool": "voice", "action": action, "when": when}]);
            let put = json!({"rules": rules, "approver": {"email": APPROVER}});
            let put = carl.payer.change("PUT", POLICY, &put).await;
            assert_eq!(put.status, 200, "{}", put.text);
        };
        let (_, of_dana) = Agent::answering(&stack, 10 * MINUTE, json!({})).await;
        let before = call_id(&carl.ring(&of_dana.number).await);
        // No minute of the day is in both of these.
        let (day, night) = (json!({"start": "06:00", "end": "18:00"}), json!({"start": "18:00", "end": "06:00"}));
        let hours = |mut hours: Value| {
            hours["timezone"] = json!("UTC");
            json!({"outside_hours": hours})
        };
        let is_day = (6 * 3600..18 * 3600).contains(&stack.app.clock.now().secs().rem_euclid(24 * 3600));
        for when in [json!({"always": true}), hours(if is_day { night } else { day }), json!({"recipients_over": 0})] {
            rule("deny", when.clone()).await;
            let denied = carl.dial(&of_bob.number).await;
            assert_eq!(denied.error(), (403, "action_denied_by_policy".to_owned()), "{when}");
        }
        assert!(bob.calls("").await.is_empty());

        // An approval releases one dial of this number.
        rule("require_approval", json!({"always": true})).await;
        let held = carl.dial(&of_bob.number).await;
        assert_eq!(held.error(), (403, "approval_required".to_owned()), "{}", held.text);
        let held = held.json();
        let page = link(&stack, &held["approval"]);
        assert_eq!(decide(&carl.payer, &page, "decision=approve").await.status, 200);
        let id = held["approval_id"].as_str().expect("an id");
        let dial = async |key: &str| {
            let proof = carl.payer.proof("write");
            let headers = [
                ("content-type", "application/json"),
                ("x-agent-proof", proof.as_str()),
                ("x-approval-id", id),
                ("idempotency-key", key),
            ];
            let body = json!({"to": of_bob.number}).to_string();
            carl.payer.client.send("POST", EXCHANGE, &headers, body).await.expect("an answer")
        };
        // A dial from a number that is in a call does not use it up.
        assert_eq!(dial("busy").await.error(), (409, "line_busy".to_owned()));
        assert_eq!(carl.hang_up(before).await.status, 200);
        let first = data(&dial("approved").await);
        // If its answer was lost, the same dial needs no other approval.
        forget(&stack, &carl, "approved").await;
        assert_eq!(call_id(&data(&dial("approved").await)), call_id(&first));
        assert_eq!(carl.hang_up(call_id(&first)).await.status, 200);
        assert_eq!(dial("another").await.error(), (403, "approval_invalid".to_owned()));
        assert_eq!(bob.calls("").await.len(), 1);

        // A dial costs nothing.
        rule("deny", json!({"amount_over_usdc": "0.1"})).await;
        let open: RequestId = bob.calls("").await[0]["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        assert_eq!(carl.hang_up(open).await.status, 200);
        carl.ring(&of_bob.number).await;
    });
}
