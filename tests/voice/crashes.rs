//! The process dies while two agents talk, while a call is passed on, or while a number's settings are put. Each call rings once,
//! its record has no gap, and its callee is charged once and told once. (Bought calls: `outbound`.)

use base::clock::{Clock, Timestamp};
use base::ids::RequestId;
use local::Options;
use platform::store::queue::send_or_log;
use platform::store::{Db, StoreError};
use serde_json::{Value, json};
use tools::Toolbox;
use tools_sms::phone::Phone;
use tools_voice::call::SILENCE;
use tools_voice::calls::{self, Call};
use tools_voice::exchange::{self, Dialled, Said};
use tools_voice::plan;

use super::inbound::closed;
use super::{Agent, MINUTE, data, inbound_of, settings};
use crate::support::crashes::{Death, Dying, die_at_steps};
use crate::support::run;

const WORDS: [&str; 2] = ["How much is bread?", "When are you open?"];

#[test]
fn a_talk_survives_a_crash_at_every_step() {
    run(die_at_steps(1, 2, die_in_a_talk));
}

#[test]
fn settings_survive_a_crash_at_every_step() {
    run(die_at_steps(1, 1, die_in_a_put));
}

#[test]
fn a_call_that_is_lost_while_it_is_passed_on_ends_by_itself() {
    run(die_at_steps(1, 2, die_in_a_transfer));
}

/// Dials, talks and hangs up. What was done before is done again.
async fn talk(toolbox: &Toolbox, from: &Phone, to: &Phone, id: RequestId) -> Result<Call, StoreError> {
    let dialled = exchange::dial(toolbox, from.agent, from, &to.number, id, plan::EACH).await?;
    let Dialled::Answered { said, passed_on: None, .. } = dialled else { panic!("{dialled:?}") };
    assert_eq!(said, "Hello, you have reached an automated assistant. How can I help you?");
    for words in WORDS {
        let answer = exchange::say(toolbox, id, words).await?;
        assert!(matches!(answer, Said::Answer { .. } | Said::Over(_)), "{answer:?}");
    }
    Ok(exchange::hang_up(toolbox, id).await?.expect("a call"))
}

/// The time for which a dead process keeps a turn passes.
async fn lapse(db: &Db, id: RequestId) {
    let Some(call) = calls::load(db, id).await.expect("a database") else { return };
    if call.answering.is_some() {
        let next = Call { answering: Some(Timestamp::default()), revision: call.revision + 1, ..call };
        assert!(calls::change(db, &next).await.expect("a database"));
    }
}

async fn die_in_a_talk(death: Death) -> bool {
    let dying = Dying::start(death, |options| options).await;
    let (bob, of_bob) = Agent::answering(&dying.stack, 10 * MINUTE, json!({})).await;
    let (_, of_carl) = Agent::with_number(&dying.stack).await;
    let id = RequestId::random();
    let (toolbox, queue) = (dying.stack.worker.toolbox.clone(), dying.stack.queue.clone());
    let first = async {
        if talk(&toolbox, &of_carl, &of_bob, id).await.is_ok() {
            send_or_log(&*queue, id, None).await;
        }
    };
    let (stack, (), died) = dying.die_in(first).await;

    let (db, bob) = (&stack.app.db, bob.at(&stack));
    lapse(db, id).await;
    let ended = talk(&stack.worker.toolbox, &of_carl, &of_bob, id).await.expect("a call");
    send_or_log(&*stack.queue, id, None).await;
    let record = bob.charged(id).await;
    assert_eq!((&record["status"], &record["ended_reason"]), (&json!("ended"), &json!("caller_hung_up")), "{death:?}");
    let charge = plan::price_of(ended.charged_minutes().expect("an end"), plan::EACH).expect("a price");
    assert_eq!(record["charge_usdc"], json!(charge.to_string()), "{death:?}");
    assert_eq!(bob.credits(&stack).await, 10 * MINUTE - charge.micro(), "{death:?}");
    assert_eq!(bob.calls("").await.len(), 1, "{death:?}");

    let transcript = record["transcript"].as_str().expect("a transcript");
    let lines: Vec<&str> = transcript.lines().collect();
    assert!(lines[0].starts_with("Assistant: Hello"), "{death:?}: {transcript}");
    for pair in lines[1..].chunks(2) {
        let expected = match pair[0] {
            "Caller: How much is bread?" => "Assistant: Bread costs 4 dollars.",
            "Caller: When are you open?" => "Assistant: We are open from 7 to 18 h.",
            other => panic!("{death:?}: {other}"),
        };
        assert_eq!(pair.get(1), Some(&expected), "{death:?}: {transcript}");
    }
    assert!(lines.len() > WORDS.len(), "{death:?}: {transcript}");
    let notes = bob.payer.get("/v1/tools/notifications").await.json();
    let notes = notes["notifications"].as_array().expect("a list").iter();
    assert_eq!(notes.filter(|note| note["type"] == "voice_completed").count(), 1, "{death:?}");
    stack.kill().await;
    died
}

/// Nobody goes on with the dial. Each call that rang costs its first minute, and the caller's line is free after that.
async fn die_in_a_transfer(death: Death) -> bool {
    let standing_still = |options: Options| Options { clock: Clock::pinned(Clock::system().now()), ..options };
    let dying = Dying::start(death, standing_still).await;
    let (dana, of_dana) = Agent::answering(&dying.stack, 10 * MINUTE, json!({})).await;
    let hours = closed(dying.stack.app.clock.now());
    let passing = json!({"business_hours": hours, "after_hours": "transfer", "transfer_number": of_dana.number});
    let (bob, of_bob) = Agent::answering(&dying.stack, 10 * MINUTE, passing).await;
    let (carl, of_carl) = Agent::with_number(&dying.stack).await;
    let (id, toolbox) = (RequestId::random(), dying.stack.worker.toolbox.clone());
    let dial = exchange::dial(&toolbox, of_carl.agent, &of_carl, &of_bob.number, id, plan::EACH);
    let (stack, _, died) = dying.die_in(dial).await;

    stack.app.clock.advance(SILENCE);
    for (callee, id) in [(bob, id), (dana, exchange::passed_id(id))] {
        let callee = callee.at(&stack);
        let has_rung = calls::load(&stack.app.db, id).await.expect("a database").is_some();
        if has_rung {
            send_or_log(&*stack.queue, id, None).await;
            let record = callee.charged(id).await;
            assert_eq!(record["charge_usdc"], "0.350000", "{death:?}: {record}");
        }
        let left = if has_rung { 9 * MINUTE } else { 10 * MINUTE };
        assert_eq!(callee.credits(&stack).await, left, "{death:?}");
    }
    carl.at(&stack).ring(&of_dana.number).await;
    stack.kill().await;
    died
}

async fn die_in_a_put(death: Death) -> bool {
    let dying = Dying::start(death, |options| options).await;
    let (bob, of_bob) = Agent::with_number(&dying.stack).await;
    let (path, proof) = (inbound_of(&of_bob), bob.payer.proof("write"));
    let wanted = settings(json!({"webhook_url": "https://example.com/calls", "max_minutes": 3}));
    let headers = [("content-type", "application/json"), ("x-agent-proof", proof.as_str())];
    let put = bob.payer.client.send("PUT", &path, &headers, wanted.to_string());
    let (stack, _, died) = dying.die_in(put).await;

    let bob = bob.at(&stack);
    let found = bob.payer.get(&path).await;
    // The settings are there as a whole, or not at all.
    match found.status {
        200 => is_as_wanted(&data(&found), &wanted),
        _ => assert_eq!(found.error(), (404, "inbound_not_configured".to_owned()), "{death:?}"),
    }
    is_as_wanted(&bob.configure(&of_bob, &wanted).await, &wanted);
    let hooks = data(&bob.payer.get("/v1/webhooks").await);
    let hooks = hooks["webhooks"].as_array().expect("a list").clone();
    let [hook] = &hooks[..] else { panic!("{death:?}: one endpoint: {hooks:?}") };
    assert_eq!((&hook["url"], &hook["phone_number_id"]), (&wanted["webhook_url"], &json!(of_bob.id)), "{death:?}");
    // Whoever has not seen the secret gets a new one.
    let rotate = format!("/v1/webhooks/{}/rotate-secret", hook["id"].as_str().expect("an id"));
    let rotated = data(&bob.payer.change("POST", &rotate, &json!({})).await);
    assert!(rotated["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")), "{death:?}: {rotated}");
    stack.kill().await;
    died
}

#[track_caller]
fn is_as_wanted(found: &Value, wanted: &Value) {
    for (name, value) in wanted.as_object().expect("members") {
        assert_eq!(&found[name], value, "{name}");
    }
}
