//! Inbound calls: answered and reported once, and outside business hours, without settings, credits or the owner's leave.

use base::clock::Timestamp;
use base::ids::RequestId;
use gate::insights::verify::{self, Keys};
use ledger::account;
use local::Stack;
use serde_json::{Value, json};

use super::{Agent, CALLS, MINUTE, call_id, data, settings};
use crate::support::receiver::Receiver;
use crate::support::{books, eventually, run, stack_with};
use crate::webhooks;

const GREETING: &str = "Hello, you have reached an automated assistant. How can I help you?";

#[test]
fn a_second_agent_calls_and_its_callee_reads() {
    run(async {
        let (own, other) = (Receiver::start().await, Receiver::start().await);
        let allowed = format!("{},{}", own.allowed(), other.allowed());
        let stack = stack_with(|options| options.with("LOCAL_FETCH_ALLOW", allowed)).await;
        let ((ada, of_ada), (bob, of_bob)) = (Agent::with_number(&stack).await, Agent::with_number(&stack).await);
        bob.payer.give_credits(&stack, 5 * MINUTE).await;
        let configured = bob.configure(&of_bob, &settings(json!({"webhook_url": own.url}))).await;
        let secret = configured["webhook_secret"].as_str().expect("a secret").to_owned();
        let subscribed = json!({"url": other.url, "events": ["voice.inbound.completed"]});
        webhooks::create(&bob.payer, &subscribed).await;

        let rung = ada.ring(&of_bob.number).await;
        assert_eq!(rung["said"], GREETING);
        let first = call_id(&rung);
        let open = bob.call(first).await;
        assert_eq!((&open["status"], &open["charge_usdc"]), (&json!("in-progress"), &Value::Null), "{open}");
        assert_eq!(open["held_usdc"], "1.750000", "{open}");
        assert_eq!(bob.credits(&stack).await, 0, "they are held for the longest call");
        assert_eq!(ada.hears(first, "How much does bread cost?").await["said"], "Bread costs 4 dollars.");
        let asked = "I am Ada, about an order of ten loaves for tomorrow at noon.";
        ada.hears(first, asked).await;
        let noted = ada.hears(first, "Ada, +12025550123, ten loaves").await;
        assert_eq!(noted["said"], "Thank you, I have noted that. Is there anything else?");
        let bye = ada.hears(first, "No, thank you. Bye!").await;
        assert_eq!((&bye["status"], &bye["ended_reason"]), (&json!("ended"), &json!("assistant_hung_up")), "{bye}");

        let call = bob.charged(first).await;
        for (member, value) in [
            ("phone_number_id", json!(of_bob.id)),
            ("from", json!(of_ada.number)),
            ("to", json!(of_bob.number)),
            ("status", json!("ended")),
            ("mode", json!("in_hours")),
            ("charge_usdc", json!("0.350000")),
        ] {
            assert_eq!(call[member], value, "{member}: {call}");
        }
        assert!(call["summary"].as_str().expect("a summary").contains(asked), "{call}");
        let transcript = call["transcript"].as_str().expect("a transcript");
        assert!(transcript.starts_with(&format!("Assistant: {GREETING}\nCaller: How much")), "{transcript}");
        assert!(transcript.ends_with("Assistant: Thank you for calling. Goodbye."), "{transcript}");
        assert_eq!(bob.credits(&stack).await, 4 * MINUTE);
        check_receipt(&stack, &bob, &call).await;

        // The number's webhook and the other endpoint get the whole call.
        let posted = eventually("the event", || async { own.received().first().cloned() }).await;
        assert_eq!((&posted.json()["type"], &posted.json()["data"]), (&json!("voice.inbound.completed"), &call));
        webhooks::check_signatures(&secret, &posted.headers, &posted.body);
        let posted = eventually("the event", || async { other.received().first().cloned() }).await;
        assert_eq!(posted.json()["data"], call);

        let second = call_id(&ada.ring(&of_bob.number).await);
        let hung_up = data(&ada.hang_up(second).await);
        assert_eq!(data(&ada.hang_up(second).await), hung_up, "once");
        let silent = bob.charged(second).await;
        assert_eq!((&silent["summary"], &silent["charge_usdc"]), (&Value::Null, &json!("0.350000")), "{silent}");
        check_lists(&bob, &call, &silent).await;
        eventually("the second event", || async { (own.count() == 2 && other.count() == 2).then_some(()) }).await;
        let notes = bob.payer.get("/v1/tools/notifications").await.json();
        let notes = notes["notifications"].as_array().expect("a list").iter();
        let bodies: Vec<&Value> = notes.filter(|n| n["type"] == "voice_completed").map(|n| &n["body"]).collect();
        assert_eq!(bodies.len(), 2, "{bodies:?}");
        assert!(bodies.contains(&&call["summary"]), "{bodies:?}");

        // Nobody else reads it.
        for id in [first.to_string(), RequestId::random().to_string(), "x".to_owned()] {
            let answer = ada.payer.get(&format!("{CALLS}/{id}")).await;
            assert_eq!(answer.error(), (404, "call_not_found".to_owned()), "{id}");
        }
        assert!(ada.calls("").await.is_empty());
        let link = bob.payer.client.get("/v1/tools/voice/recordings/AAAA", &[]).await;
        assert_eq!(link.error(), (404, "recording_not_found".to_owned()));
    });
}

/// The receipt says what was held and what was kept, and is signed by the service's key.
async fn check_receipt(stack: &Stack, bob: &Agent, call: &Value) {
    let receipts = books::receipts(&stack.app.db, bob.payer.agent()).await;
    let [receipt] = &receipts[..] else { panic!("one receipt: {receipts:?}") };
    assert_eq!(json!(receipt.receipt_id), call["receipt_id"]);
    assert_eq!((receipt.amount.micro(), receipt.kept.map(|kept| kept.micro())), (5 * MINUTE, Some(MINUTE)));
    let jwks = eventually("the keys", || async {
        let jwks = bob.payer.client.get("/.well-known/jwks.json", &[]).await;
        jwks.json()["keys"].as_array().is_some_and(|keys| !keys.is_empty()).then_some(jwks.text)
    })
    .await;
    let export = bob.payer.get("/v1/audit/export?format=csv").await.text;
    let verified = verify::export(&export, &Keys::parse(&jwks).expect("keys")).expect("signatures that hold");
    assert!(verified.signed > 0, "{export}");
}

/// Two calls in a list, the second without a word of the caller.
async fn check_lists(bob: &Agent, first: &Value, second: &Value) {
    let without = |call: &Value| {
        let mut call = call.clone();
        call.as_object_mut().expect("members").remove("transcript");
        call
    };
    assert_eq!(bob.calls("").await, [without(second), without(first)]);
    assert_eq!(bob.calls("?include_transcript=true").await, [second.clone(), first.clone()]);
    assert_eq!(bob.calls("?limit=1").await, [without(second)]);
    let rang = second["created_at"].as_str().expect("a time");
    assert_eq!(bob.calls(&format!("?before={rang}")).await, [without(first)]);
    assert_eq!(bob.calls("?before=2300-01-01T00:00:00Z").await.len(), 2);
    let number = second["phone_number_id"].as_str().expect("an id");
    assert_eq!(bob.calls(&format!("?phone_number_id={number}&limit=100")).await.len(), 2);
    assert!(bob.calls(&format!("?phone_number_id={}", RequestId::random())).await.is_empty());
    for wrong in ["limit=0", "limit=101", "before=noon", "phone_number_id=1", "include_transcript=maybe"] {
        let answer = bob.payer.get(&format!("{CALLS}?{wrong}")).await;
        assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{wrong}");
    }
}

/// Business hours that are far from now: three days away.
pub(super) fn closed(now: Timestamp) -> Value {
    const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    // The first of January 1970 was a Thursday.
    let day = usize::try_from(now.secs().div_euclid(86_400)).expect("after 1970") + 3;
    let windows = json!([{"days": [DAYS[(day + 3) % 7]], "start": "00:00", "end": "24:00"}]);
    json!({"timezone": "UTC", "windows": windows})
}

#[test]
fn closed_numbers_do_what_their_settings_say() {
    run(async {
        let receiver = Receiver::start().await;
        let stack = stack_with(|options| options.with("LOCAL_FETCH_ALLOW", receiver.allowed())).await;
        let closed = closed(stack.app.clock.now());
        let (ada, _) = Agent::with_number(&stack).await;
        let (cem, of_cem) = Agent::answering(&stack, 20 * MINUTE, json!({})).await;
        let closed = |after_hours: &str| {
            json!({
                "business_hours": closed, "after_hours": after_hours, "after_hours_message": "We are closed.",
                "allowed_tools": ["transfer_call", "end_call"], "transfer_number": of_cem.number,
                "webhook_url": receiver.url,
            })
        };
        let (bob, of_bob) = Agent::answering(&stack, 20 * MINUTE, closed("take_message")).await;

        // It takes a message, and passes nobody on.
        let rung = ada.ring(&of_bob.number).await;
        assert_eq!(rung["said"], "We are closed.");
        let call = call_id(&rung);
        let answer = ada.hears(call, "Please transfer me to a person now, it is urgent.").await;
        assert_eq!((&answer["status"], answer.get("passed_on")), (&json!("in-progress"), None), "{answer}");
        assert_eq!(answer["said"], "Thank you, I have noted that. Is there anything else?");
        ada.hang_up(call).await;
        let taken = bob.charged(call).await;
        assert_eq!((&taken["mode"], &taken["charge_usdc"]), (&json!("take_message"), &json!("0.350000")), "{taken}");

        // It transfers at once. Each owner pays for its own call.
        bob.configure(&of_bob, &settings(closed("transfer"))).await;
        let passed = data(&ada.dial(&of_bob.number).await);
        assert_eq!(passed["call"]["ended_reason"], "transferred", "{passed}");
        let (from_bob, to_cem) = (call_id(&passed), call_id(&passed["passed_on"]));
        assert_eq!(ada.hears(to_cem, "How much does bread cost?").await["said"], "Bread costs 4 dollars.");
        ada.hang_up(to_cem).await;
        let (from_bob, to_cem) = (bob.charged(from_bob).await, cem.charged(to_cem).await);
        assert_eq!((&from_bob["mode"], &from_bob["charge_usdc"]), (&json!("transfer"), &json!("0.350000")));
        assert_eq!((&to_cem["mode"], &to_cem["charge_usdc"]), (&json!("in_hours"), &json!("0.350000")));
        assert_eq!((bob.credits(&stack).await, cem.credits(&stack).await), (18 * MINUTE, 19 * MINUTE));

        // A transfer to a number that cannot be reached is free.
        bob.configure(&of_bob, &settings(with(closed("transfer"), "transfer_number", json!("+14155552671")))).await;
        let failed = data(&ada.dial(&of_bob.number).await);
        assert_eq!(failed["call"]["ended_reason"], "transfer_failed", "{failed}");
        assert_eq!(bob.charged(call_id(&failed)).await["charge_usdc"], "0.000000");
        assert_eq!(bob.credits(&stack).await, 18 * MINUTE);

        // It declines. That is free, on record, and no event.
        bob.configure(&of_bob, &settings(closed("decline"))).await;
        let declined = data(&ada.dial(&of_bob.number).await);
        assert_eq!((&declined["call"]["status"], &declined["said"]), (&json!("declined"), &json!("We are closed.")));
        check_declined(&stack, &bob, call_id(&declined), "after_hours", json!("decline")).await;

        // The owner froze its calls: nobody answers at its expense.
        bob.configure(&of_bob, &settings(closed("take_message"))).await;
        let freeze = account::change_rules(&stack.app.db, bob.payer.agent(), |account| {
            account.frozen.tools.insert("voice".to_owned());
        });
        freeze.await.expect("a freeze");
        let frozen = data(&ada.dial(&of_bob.number).await);
        check_declined(&stack, &bob, call_id(&frozen), "frozen", Value::Null).await;
        assert_eq!(bob.credits(&stack).await, 18 * MINUTE);
        let told = bob.payer.get("/v1/tools/notifications").await.json();
        let told = told["notifications"].as_array().expect("a list").iter();
        assert_eq!(told.filter(|note| note["type"] == "voice_completed").count(), 3, "none for what was declined");
        let hooks = data(&bob.payer.get("/v1/webhooks").await);
        let hook = hooks["webhooks"][0]["id"].as_str().unwrap_or_else(|| panic!("{hooks}")).to_owned();
        let events = data(&bob.payer.get(&format!("/v1/webhooks/{hook}/deliveries")).await);
        assert_eq!(events["deliveries"].as_array().expect("a list").len(), 3, "{events}");

        // Switched off, or never set up: there is no such number.
        let off = closed("take_message");
        bob.configure(&of_bob, &settings(with(off, "enabled", json!(false)))).await;
        let (_, of_dan) = Agent::with_number(&stack).await;
        let on_record = bob.calls("").await.len();
        for number in [&of_bob.number, &of_dan.number] {
            assert_eq!(ada.dial(number).await.error(), (404, "number_not_in_service".to_owned()), "{number:?}");
        }
        assert_eq!(bob.calls("").await.len(), on_record);
    });
}

fn with(mut members: Value, name: &str, value: Value) -> Value {
    members[name] = value;
    members
}

/// A declined call costs nothing and bought nothing.
async fn check_declined(stack: &Stack, bob: &Agent, id: RequestId, why: &str, mode: Value) {
    let call = bob.call(id).await;
    for (member, value) in [
        ("status", json!("declined")),
        ("ended_reason", json!(why)),
        ("mode", mode),
        ("charge_usdc", json!("0.000000")),
        ("receipt_id", Value::Null),
        ("started_at", Value::Null),
        ("duration_seconds", json!(0)),
        ("transcript", Value::Null),
    ] {
        assert_eq!(call[member], value, "{member}: {call}");
    }
    let job = gate::jobs::store::load_latest(&stack.app.db, id).await.expect("a database");
    assert!(job.is_none(), "{job:?}");
}
