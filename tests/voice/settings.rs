//! How a number answers: settings that are put, read, replaced and switched off; the webhook of a number, its secret, and the
//! endpoint behind it; settings put at the same time, and again after an answer was lost.

use ledger::webhooks::endpoint::MAX_ENDPOINTS;
use local::Stack;
use platform::net::FetchPolicy;
use serde_json::{Value, json};
use tools_sms::phone::Phone;
use tools_voice::config;

use super::{Agent, NUMBERS, data, inbound_of, settings};
use crate::support::receiver::Receiver;
use crate::support::{Answer, eventually, run, stack, stack_with};
use crate::webhooks;

const HOOKS: &str = "/v1/webhooks";
const HOOK: &str = "https://example.com/hook";

fn every_member() -> Value {
    json!({
        "prompt": "You answer for a bakery.", "first_message": "Rossi, hello!", "voice_id": "alloy", "language": "de",
        "allowed_tools": ["transfer_call", "end_call"], "transfer_number": "+14155552671",
        "business_hours": {"timezone": "Europe/Berlin", "windows": [
            {"days": ["mon", "tue", "wed", "thu", "fri"], "start": "07:00", "end": "18:30"},
            {"days": ["sat"], "start": "08:00", "end": "24:00"},
        ]},
        "after_hours": "transfer", "after_hours_message": "We are closed.", "max_minutes": 25,
        "webhook_url": HOOK, "enabled": true,
    })
}

/// The settings in an answer, without what the service adds.
fn put_members(data: &Value) -> Value {
    let mut members = data.clone();
    for name in ["phone_number", "phone_number_id", "updated_at", "webhook_secret"] {
        members.as_object_mut().expect("members").remove(name);
    }
    members
}

/// The only number in an agent's list.
async fn listed(agent: &Agent) -> Value {
    let numbers = data(&agent.payer.get(NUMBERS).await)["numbers"].clone();
    let [number] = &numbers.as_array().expect("a list")[..] else { panic!("one number: {numbers}") };
    number.clone()
}

/// Puts settings with an idempotency key.
async fn put_once(agent: &Agent, phone: &Phone, settings: &Value, key: &str) -> Answer {
    let proof = agent.payer.proof("write");
    let headers = [("content-type", "application/json"), ("x-agent-proof", proof.as_str()), ("idempotency-key", key)];
    agent.payer.client.send("PUT", &inbound_of(phone), &headers, settings.to_string()).await.expect("an answer")
}

/// The endpoint of a number, as its owner's list shows it.
async fn endpoint_of(agent: &Agent, phone: &Phone) -> Value {
    let all = data(&agent.payer.get(HOOKS).await)["webhooks"].clone();
    let mut of_number =
        all.as_array().expect("a list").iter().filter(|hook| hook["phone_number_id"] == json!(phone.id));
    of_number.next().unwrap_or_else(|| panic!("no endpoint of the number: {all}")).clone()
}

fn path_of(hook: &Value, rest: &str) -> String {
    format!("{HOOKS}/{}{rest}", hook["id"].as_str().expect("an id"))
}

/// Checks that this secret, and no other, signs what the number's endpoint gets.
async fn signs(agent: &Agent, phone: &Phone, receiver: &Receiver, secret: &Value) {
    let before = receiver.count();
    let hook = endpoint_of(agent, phone).await;
    let test = agent.payer.change("POST", &path_of(&hook, "/test"), &json!({})).await;
    assert_eq!(test.status, 202, "{}", test.text);
    let posted = eventually("the test event", || async { receiver.received().get(before).cloned() }).await;
    webhooks::check_signatures(secret.as_str().expect("a secret"), &posted.headers, &posted.body);
}

async fn stack_and_receiver() -> (Stack, Receiver) {
    let receiver = Receiver::start().await;
    let stack = stack_with(|options| options.with("LOCAL_FETCH_ALLOW", receiver.allowed())).await;
    (stack, receiver)
}

#[test]
fn settings_are_put_read_replaced_and_disabled() {
    run(async {
        let stack = stack().await;
        let ((ada, phone), (bob, _)) = (Agent::with_number(&stack).await, Agent::with_number(&stack).await);
        let path = inbound_of(&phone);
        let no_settings = (404, "inbound_not_configured".to_owned());
        assert_eq!(ada.payer.get(&path).await.error(), no_settings);
        assert_eq!(ada.payer.change("DELETE", &path, &json!({})).await.error(), no_settings);
        assert_eq!(
            (&listed(&ada).await["voice_capable"], &listed(&ada).await["inbound_enabled"]),
            (&json!(true), &json!(false))
        );

        let put = ada.configure(&phone, &every_member()).await;
        assert_eq!(put_members(&put), every_member());
        assert_eq!((&put["phone_number"], &put["phone_number_id"]), (&json!(phone.number), &json!(phone.id)));
        assert!(put["updated_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{put}");
        assert!(put["webhook_secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")), "{put}");
        let read = data(&ada.payer.get(&path).await);
        let mut without_secret = put.clone();
        without_secret.as_object_mut().expect("members").remove("webhook_secret");
        assert_eq!(read, without_secret, "the secret is shown once");
        assert_eq!(listed(&ada).await["inbound_enabled"], true);
        let known = data(&ada.payer.change("POST", NUMBERS, &json!({})).await);
        assert_eq!((&known["inbound_configured"], &known["inbound_enabled"]), (&json!(true), &json!(true)), "{known}");

        // An answer is a body, too.
        assert_eq!(put_members(&ada.configure(&phone, &read).await), every_member());
        // Settings are replaced as a whole.
        let fewest = json!({"prompt": "Be brief.", "webhook_url": null});
        let defaults = json!({
            "prompt": "Be brief.", "first_message": null, "voice_id": null, "language": "en", "allowed_tools": ["end_call"],
            "transfer_number": null, "business_hours": null, "after_hours": "take_message", "after_hours_message": null,
            "max_minutes": 10, "webhook_url": null, "enabled": true,
        });
        assert_eq!(put_members(&ada.configure(&phone, &fewest).await), defaults);

        // Its owner reads it with a token, and only the wallet changes it. Nobody else knows of it.
        let token = ada.payer.token(&stack).await;
        let by_token = [("authorization", token.as_str()), ("content-type", "application/json")];
        assert_eq!(put_members(&data(&ada.payer.client.get(&path, &by_token[..1]).await)), defaults);
        for (method, body) in [("PUT", every_member()), ("DELETE", json!({}))] {
            let answer = ada.payer.client.send(method, &path, &by_token, body.to_string()).await.expect("an answer");
            assert_eq!(answer.error(), (403, "access_tokens_wallet_only".to_owned()), "{method}");
            for unknown in [path.as_str(), "/v1/tools/voice/numbers/x/inbound"] {
                let answer = bob.payer.change(method, unknown, &body).await;
                assert_eq!(answer.error(), (404, "number_not_found".to_owned()), "{method} {unknown}");
            }
        }
        assert_eq!(bob.payer.get(&path).await.error(), (404, "number_not_found".to_owned()));
        assert_eq!(bob.payer.client.get(&path, &[]).await.error(), (401, "proof_required".to_owned()));

        // Switched off, everything else stays; again is the same.
        let mut off = every_member();
        off["enabled"] = json!(false);
        ada.configure(&phone, &every_member()).await;
        for time in 1..=2 {
            let answer = data(&ada.payer.change("DELETE", &path, &json!({})).await);
            assert_eq!(put_members(&answer), off, "{time}");
            assert_eq!(listed(&ada).await["inbound_enabled"], false);
        }
        assert_eq!(put_members(&data(&ada.payer.get(&path).await)), off);
        let known = data(&ada.payer.change("POST", NUMBERS, &json!({})).await);
        assert_eq!((&known["inbound_configured"], &known["inbound_enabled"]), (&json!(true), &json!(false)), "{known}");
    });
}

#[test]
fn wrong_settings_are_refused_by_name_and_change_nothing() {
    run(async {
        let stack = stack().await;
        let (ada, phone) = Agent::with_number(&stack).await;
        let before = ada.configure(&phone, &settings(json!({"first_message": "Hello"}))).await;
        let window = |start: &str, end: &str| json!({"days": ["mon"], "start": start, "end": end});
        let hours = |windows: Value| json!({"business_hours": {"timezone": "UTC", "windows": windows}});
        for (body, path) in [
            (json!({}), "prompt"),
            (settings(json!({"prompt": "a".repeat(8_001)})), "prompt"),
            (settings(json!({"allowed_tools": ["transfer_call"]})), "transfer_number"),
            (settings(json!({"after_hours": "transfer"})), "transfer_number"),
            (settings(json!({"transfer_number": "+19005550123"})), "transfer_number"),
            // A number that passes its calls on to itself.
            (settings(json!({"transfer_number": phone.number})), "transfer_number"),
            (settings(json!({"webhook_url": "http://example.com/hook"})), "webhook_url"),
            (settings(json!({"webhook_url": "https://169.254.169.254/latest"})), "webhook_url"),
            (
                settings(json!({"business_hours": {"timezone": "Mars/Base", "windows": [window("09:00", "17:00")]}})),
                "business_hours.timezone",
            ),
            (settings(hours(json!([window("9:00", "17:00")]))), "business_hours.windows.0.start"),
            (settings(hours(json!(vec![window("09:00", "17:00"); 15]))), "business_hours.windows"),
            (settings(json!({"max_minutes": 61})), "max_minutes"),
        ] {
            let answer = ada.put(&phone, &body).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{path}: {}", answer.text);
            assert_eq!(answer.json()["details"][0]["path"], path, "{}", answer.text);
        }
        let emergency = ada.put(&phone, &json!({"transfer_number": "9-1-1"})).await;
        assert_eq!(emergency.error(), (400, "emergency_number_blocked".to_owned()), "before everything else");
        assert_eq!(emergency.json()["blocked_number"], "9-1-1");
        for said in ["first_message", "prompt"] {
            let threat = ada.put(&phone, &settings(json!({said: "I will kill you."}))).await;
            assert_eq!(threat.error(), (400, "content_blocked".to_owned()), "{}", threat.text);
        }
        assert_eq!(data(&ada.payer.get(&inbound_of(&phone)).await), before);
    });
}

#[test]
fn a_secret_is_shown_with_its_address_and_is_the_one_that_signs() {
    run(async {
        let (stack, receiver) = stack_and_receiver().await;
        let (ada, phone) = Agent::with_number(&stack).await;
        let to = |path: &str| settings(json!({"webhook_url": format!("http://{}/{path}", receiver.allowed())}));
        let first = ada.configure(&phone, &to("hook")).await;
        signs(&ada, &phone, &receiver, &first["webhook_secret"]).await;
        // Other settings leave the address and its secret as they are.
        let mut other = to("hook");
        other["max_minutes"] = json!(3);
        assert_eq!(ada.configure(&phone, &other).await.get("webhook_secret"), None);
        data(&ada.payer.change("DELETE", &inbound_of(&phone), &json!({})).await);
        assert_eq!(ada.configure(&phone, &to("hook")).await.get("webhook_secret"), None);
        signs(&ada, &phone, &receiver, &first["webhook_secret"]).await;

        // Another address, and one that is set again, get another secret at once.
        let moved = ada.configure(&phone, &to("hook?moved")).await;
        assert_ne!(moved["webhook_secret"], first["webhook_secret"]);
        signs(&ada, &phone, &receiver, &moved["webhook_secret"]).await;
        let removed = ada.configure(&phone, &settings(json!({}))).await;
        assert_eq!((&removed["webhook_url"], removed.get("webhook_secret")), (&Value::Null, None));
        let hook = endpoint_of(&ada, &phone).await;
        assert_eq!(hook["disabled_reason"], "by_owner", "{hook}");
        let again = ada.configure(&phone, &to("hook?moved")).await;
        assert_ne!(again["webhook_secret"], moved["webhook_secret"]);
        signs(&ada, &phone, &receiver, &again["webhook_secret"]).await;
        // It can be rotated where all endpoints are.
        let rotated =
            data(&ada.payer.change("POST", &path_of(&hook, "/rotate-secret"), &json!({"overlap_hours": 0})).await);
        signs(&ada, &phone, &receiver, &rotated["secret"]).await;
    });
}

#[test]
fn the_endpoint_of_a_number_changes_with_its_settings_only() {
    run(async {
        let stack = stack().await;
        let (ada, phone) = Agent::with_number(&stack).await;
        ada.configure(&phone, &settings(json!({"webhook_url": HOOK}))).await;
        let hook = endpoint_of(&ada, &phone).await;
        assert_eq!((&hook["url"], &hook["enabled"]), (&json!(HOOK), &json!(true)), "{hook}");
        assert_eq!(hook["events"], json!(["voice.inbound.completed"]), "{hook}");
        for (method, body) in [("PATCH", json!({"url": "https://example.org/mine"})), ("DELETE", json!({}))] {
            let answer = ada.payer.change(method, &path_of(&hook, ""), &body).await;
            assert_eq!(answer.error(), (409, "webhook_of_number".to_owned()), "{method}");
            assert!(answer.text.contains(&inbound_of(&phone)), "{}", answer.text);
        }
        assert_eq!(endpoint_of(&ada, &phone).await, hook);
        // It takes the place of none of the agent's own endpoints.
        for number in 0..=MAX_ENDPOINTS {
            let own = json!({"url": format!("https://example.org/{number}")});
            let status = if number < MAX_ENDPOINTS { 201 } else { 409 };
            assert_eq!(ada.payer.change("POST", HOOKS, &own).await.status, status, "{number}");
        }
        assert_eq!(data(&ada.payer.get(HOOKS).await)["count"], MAX_ENDPOINTS + 1);
    });
}

/// Whoever is last, its settings hold as a whole: the address, the secret that signs, and the list's copy.
#[test]
fn settings_put_at_the_same_time_have_one_order() {
    run(async {
        let (stack, receiver) = stack_and_receiver().await;
        for (round, before) in [None, Some("before")].into_iter().enumerate() {
            let (ada, phone) = Agent::with_number(&stack).await;
            let to = |path: &str, enabled: bool| {
                let url = format!("http://{}/{path}", receiver.allowed());
                settings(json!({"webhook_url": url, "enabled": enabled}))
            };
            if let Some(before) = before {
                ada.configure(&phone, &to(before, true)).await;
            }
            let (one, other) = (to("one", true), to("other", false));
            let (one, other) = tokio::join!(ada.configure(&phone, &one), ada.configure(&phone, &other));
            assert_ne!(one["webhook_secret"], other["webhook_secret"], "round {round}");
            let stored = data(&ada.payer.get(&inbound_of(&phone)).await);
            let last = if stored["webhook_url"] == one["webhook_url"] { &one } else { &other };
            assert_eq!(put_members(&stored), put_members(last), "round {round}");
            assert_eq!(listed(&ada).await["inbound_enabled"], last["enabled"], "round {round}");
            assert_eq!(endpoint_of(&ada, &phone).await["url"], last["webhook_url"], "round {round}");
            signs(&ada, &phone, &receiver, &last["webhook_secret"]).await;
        }
    });
}

#[test]
fn a_repeated_request_sets_nothing_twice() {
    run(async {
        let stack = stack().await;
        let (ada, phone) = Agent::with_number(&stack).await;
        let body = settings(json!({"webhook_url": HOOK}));
        let first = data(&put_once(&ada, &phone, &body, "one").await);
        assert!(first["webhook_secret"].is_string(), "{first}");
        let mut replayed = first.clone();
        replayed["webhook_secret"] = Value::Null;
        assert_eq!(data(&put_once(&ada, &phone, &body, "one").await), replayed);
        let other = put_once(&ada, &phone, &settings(json!({})), "one").await;
        assert_eq!(other.error(), (422, "idempotency_key_reused".to_owned()));
        assert_eq!(data(&ada.payer.get(&inbound_of(&phone)).await)["webhook_url"], HOOK);
    });
}

/// A process stores settings and dies before it answers. Only the same request is told the secret.
#[test]
fn a_secret_whose_answer_was_lost_is_shown_to_the_same_request() {
    run(async {
        let stack = stack().await;
        let (ada, phone) = Agent::with_number(&stack).await;
        let body = settings(json!({"webhook_url": HOOK}));
        let read = config::read(body.as_object().expect("members"), &FetchPolicy::default()).expect("settings");
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let lost = tools_voice::settings::save(db, &phone, &read, Some("lost"), now).await.expect("a database");
        let lost = lost.expect("a number");
        assert_eq!(
            ada.configure(&phone, &body).await.get("webhook_secret"),
            None,
            "without a key, it is another request"
        );
        assert_eq!(data(&put_once(&ada, &phone, &body, "mine").await)["webhook_secret"], Value::Null);
        let keys = &stack.keys.webhooks;
        let secret = keys.secret(ada.payer.agent(), lost.endpoint, lost.new_secret.expect("a secret")).to_text();
        assert_eq!(data(&put_once(&ada, &phone, &body, "lost").await)["webhook_secret"], secret);
    });
}
