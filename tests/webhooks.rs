//! Outgoing webhooks: how owners manage endpoints, and how events are delivered.

mod batches;
mod bench;
mod crashes;
mod hostile;
mod plan;

use ledger::webhooks::Delivery;
use ledger::webhooks::endpoint::MAX_ENDPOINTS;
use local::Stack;
use serde_json::{Value, json};

use crate::support::receiver::Receiver;
use crate::support::{Answer, Payer, READ_PATH, eventually, run, stack, stack_with};

const HOOKS: &str = "/v1/webhooks";

pub async fn create(payer: &Payer, body: &Value) -> Value {
    let answer = payer.change("POST", HOOKS, body).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.json()["data"].clone()
}

fn path_of(hook: &Value, rest: &str) -> String {
    format!("{HOOKS}/{}{rest}", hook["id"].as_str().unwrap())
}

async fn deliveries(payer: &Payer, hook: &Value) -> Vec<Value> {
    payer.get(&path_of(hook, "/deliveries")).await.json()["data"]["deliveries"].as_array().unwrap().clone()
}

async fn stack_and_receiver() -> (Stack, Receiver) {
    let receiver = Receiver::start().await;
    let stack = stack_with(|options| options.with("LOCAL_FETCH_ALLOW", receiver.allowed())).await;
    (stack, receiver)
}

#[test]
fn a_finished_job_is_posted_signed_and_logged() {
    run(async {
        let (stack, receiver) = stack_and_receiver().await;
        let payer = Payer::new(&stack).await;
        let hook = create(&payer, &json!({"url": receiver.url, "events": ["request.completed"]})).await;
        let secret = hook["secret"].as_str().unwrap();
        let page = format!("{}/plain", stack.site_url);
        let good = payer.buy(READ_PATH, &json!({"url": page})).await.json();
        let bad = payer.buy(READ_PATH, &json!({"url": "http://no-such-host.invalid/"})).await.json();
        payer.finished(bad["request_id"].as_str().unwrap()).await;
        let received = eventually("the event", || async { receiver.received().first().cloned() }).await;

        let event = received.json();
        assert_eq!(event["type"], "request.completed");
        assert_eq!(event["agent_id"], json!(payer.agent()));
        assert_eq!(
            (&event["data"]["request_id"], &event["data"]["status"]),
            (&good["request_id"], &json!("completed"))
        );
        assert_eq!(
            (&event["created_at"], event["id"].as_str()),
            (&event["timestamp"], Some(received.header("webhook-id")))
        );
        assert_eq!(received.header("x-webhook-id"), received.header("webhook-id"));
        check_signatures(secret, &received.headers, &received.body);

        // The log has this event, and none that was not subscribed to.
        let log = eventually("the log", || async {
            let log = deliveries(&payer, &hook).await;
            (log[0]["state"] == "delivered").then_some(log)
        })
        .await;
        assert_eq!(log.len(), 1, "{log:?}");
        assert_eq!((&log[0]["attempts"][0]["status"], &log[0]["attempts_made"]), (&json!(204), &json!(1)));
        assert_eq!(log[0]["payload"], event);
        assert_eq!(receiver.count(), 1);
    });
}

/// Checks both signature headers by hand, as documented.
pub fn check_signatures(secret: &str, headers: &http::HeaderMap, body: &str) {
    let of = |name: &str| headers[name].to_str().unwrap();
    let key = base::encoding::base64_any(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key);
    let at = of("webhook-timestamp");
    let mac = |text: String| base::digest::hmac(&key, text.as_bytes());
    let standard = base::encoding::base64_standard(&mac(format!("{}.{at}.{body}", of("webhook-id"))));
    assert_eq!(of("webhook-signature"), format!("v1,{standard}"));
    assert_eq!(of("x-agora-signature"), format!("t={at},v1={}", const_hex::encode(mac(format!("{at}.{body}")))));
}

#[test]
fn an_endpoint_can_be_created_changed_tested_and_deleted() {
    run(async {
        let (stack, receiver) = stack_and_receiver().await;
        let (payer, stranger) = (Payer::with(&stack, 0).await, Payer::with(&stack, 0).await);
        let hook = create(&payer, &json!({"url": receiver.url, "description": "mine"})).await;
        assert_eq!((&hook["events"], &hook["enabled"]), (&json!(["*"]), &json!(true)));
        let mut shown = hook.clone();
        shown.as_object_mut().unwrap().remove("secret");
        assert_eq!(payer.get(&path_of(&hook, "")).await.json()["data"], shown, "the secret is shown once");
        assert_eq!(payer.get(HOOKS).await.json()["data"], json!({"webhooks": [shown], "count": 1}));

        // A token reads them, but the owner is told through them, so only the wallet changes any. A stranger sees nothing.
        let token = payer.token(&stack).await;
        let bearer = [("authorization", token.as_str()), ("content-type", "application/json")];
        let own = json!({"url": receiver.url}).to_string();
        for (method, path, body) in [
            ("POST", HOOKS.to_owned(), own.as_str()),
            ("PATCH", path_of(&hook, ""), r#"{"enabled": false}"#),
            ("POST", path_of(&hook, "/rotate-secret"), "{}"),
            ("DELETE", path_of(&hook, ""), "{}"),
        ] {
            let answer = payer.client.send(method, &path, &bearer, body.to_owned()).await.unwrap();
            assert_eq!(answer.error(), (403, "access_tokens_wallet_only".to_owned()), "{method} {path}");
        }
        for path in [path_of(&hook, ""), path_of(&hook, "/deliveries")] {
            assert_eq!(payer.client.get(&path, &bearer[..1]).await.status, 200, "{path}");
        }
        let listed = payer.client.get(HOOKS, &bearer[..1]).await.json()["data"].clone();
        assert_eq!(listed, json!({"webhooks": [shown], "count": 1}), "nothing has changed");
        assert_eq!(stranger.get(HOOKS).await.json()["data"]["count"], 0);
        let missing = (404, "webhook_not_found".to_owned());
        for rest in ["", "/deliveries"] {
            assert_eq!(stranger.get(&path_of(&hook, rest)).await.error(), missing);
        }
        for (method, rest) in [("PATCH", ""), ("DELETE", ""), ("POST", "/test"), ("POST", "/rotate-secret")] {
            assert_eq!(
                stranger.change(method, &path_of(&hook, rest), &json!({})).await.error(),
                missing,
                "{method} {rest}"
            );
        }
        assert_eq!(payer.client.get(HOOKS, &[]).await.error(), (401, "proof_required".to_owned()));

        let test = payer.change("POST", &path_of(&hook, "/test"), &json!({})).await;
        assert_eq!((test.status, &test.json()["data"]["state"]), (202, &json!("pending")));
        let received = eventually("the test", || async { receiver.received().first().cloned() }).await;
        assert_eq!(
            (&received.json()["type"], &received.json()["id"]),
            (&json!("webhook.test"), &test.json()["data"]["event_id"])
        );

        let off =
            payer.change("PATCH", &path_of(&hook, ""), &json!({"enabled": false, "events": ["order_create"]})).await;
        let off = off.json()["data"].clone();
        assert_eq!((&off["disabled_reason"], &off["events"]), (&json!("by_owner"), &json!(["order_create"])));
        let refused = (409, "webhook_disabled".to_owned());
        assert_eq!(payer.change("POST", &path_of(&hook, "/test"), &json!({})).await.error(), refused);
        let event = test.json()["data"]["event_id"].as_str().unwrap().to_owned();
        let replay = path_of(&hook, &format!("/deliveries/{event}/replay"));
        assert_eq!(payer.change("POST", &replay, &json!({})).await.error(), refused);
        let on = payer.change("PATCH", &path_of(&hook, ""), &json!({"enabled": true, "events": ["*"]})).await;
        assert_eq!(on.json()["data"]["disabled_reason"], Value::Null);

        // A replay sends the same event.
        eventually("the end of the first", || async {
            (deliveries(&payer, &hook).await[0]["state"] == "delivered").then_some(())
        })
        .await;
        assert_eq!(payer.change("POST", &replay, &json!({})).await.status, 202);
        eventually("the replay", || async { (receiver.count() == 2).then_some(()) }).await;
        assert_eq!(receiver.received()[1].header("webhook-id"), event);
        let other = path_of(&hook, "/deliveries/evt_01ARZ3NDEKTSV4RRFFQ69G5FAV/replay");
        assert_eq!(payer.change("POST", &other, &json!({})).await.error(), (404, "delivery_not_found".to_owned()));

        assert_eq!(payer.change("DELETE", &path_of(&hook, ""), &json!({})).await.status, 200);
        assert_eq!(payer.change("DELETE", &path_of(&hook, ""), &json!({})).await.error(), missing);
        assert_eq!(payer.get(&path_of(&hook, "")).await.error(), missing);
    });
}

#[test]
fn concurrent_creations_never_exceed_ten_endpoints() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        let made = (0..20).map(|number| {
            let payer = payer.clone();
            async move { payer.change("POST", HOOKS, &json!({"url": format!("https://example.org/{number}")})).await }
        });
        let made: Vec<Answer> = futures_util::future::join_all(made).await;
        let count = |status| made.iter().filter(|answer| answer.status == status).count();
        assert_eq!((count(201), count(409)), (MAX_ENDPOINTS, 20 - MAX_ENDPOINTS), "{made:?}");
        assert_eq!(payer.get(HOOKS).await.json()["data"]["count"], MAX_ENDPOINTS);
        // The same idempotency key creates no second endpoint.
        let named = Payer::with(&stack, 0).await;
        for _ in 0..2 {
            let headers = [("x-agent-proof", named.proof("write")), ("idempotency-key", "one".to_owned())];
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let answer = named.client.post(HOOKS, &headers, &json!({"url": "https://example.org/"})).await;
            assert_eq!(answer.status, 201, "{}", answer.text);
        }
        assert_eq!(named.get(HOOKS).await.json()["data"]["count"], 1);
    });
}

#[test]
fn invalid_bodies_and_queries_are_refused_by_name() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        let hook = create(&payer, &json!({"url": "https://example.org/"})).await;
        let wrong = (400, "invalid_request".to_owned());
        for (body, path) in [
            (json!({}), "url"),
            (json!({"url": "http://example.org/"}), "url"),
            (json!({"url": "https://169.254.169.254/latest"}), "url"),
            (json!({"url": "https://example.org/", "events": ["nothing"]}), "events.0"),
            (json!({"url": "https://example.org/", "description": "x".repeat(201)}), "description"),
        ] {
            let answer = payer.change("POST", HOOKS, &body).await;
            assert_eq!((answer.error(), &answer.json()["details"][0]["path"]), (wrong.clone(), &json!(path)), "{body}");
        }
        for (rest, body) in [("", json!({"enabled": 1})), ("/rotate-secret", json!({"overlap_hours": 169}))] {
            let method = if rest.is_empty() { "PATCH" } else { "POST" };
            assert_eq!(payer.change(method, &path_of(&hook, rest), &body).await.error(), wrong, "{body}");
        }
        for query in ["limit=0", "limit=101", "limit=x"] {
            assert_eq!(payer.get(&path_of(&hook, &format!("/deliveries?{query}"))).await.error(), wrong, "{query}");
        }
        let cursor = payer.get(&path_of(&hook, "/deliveries?cursor=x")).await;
        assert_eq!(cursor.error(), (400, "invalid_cursor".to_owned()));
        for id in ["x", "wh_", "wh_01arz3ndektsv4rrffq69g5fav", "%00", "wh_%23"] {
            assert_eq!(
                payer.get(&format!("{HOOKS}/{id}")).await.error(),
                (404, "webhook_not_found".to_owned()),
                "{id}"
            );
        }
    });
}

/// The event is raised in the warning's own transaction, by a function without a queue for it. The sweeper sends it.
#[test]
fn a_budget_warning_is_posted_once() {
    run(async {
        let (stack, receiver) = stack_and_receiver().await;
        let payer = Payer::new(&stack).await;
        create(&payer, &json!({"url": receiver.url, "events": ["budget.warning"]})).await;
        payer.give_credits(&stack, 20_000).await;
        payer.change("PUT", "/v1/agents/me/budgets", &json!({"daily": 0.012})).await;
        let token = payer.token(&stack).await;
        for _ in 0..2 {
            let body = json!({"vin": crate::support::VIN});
            let answer = payer.client.post(crate::support::VIN_PATH, &[("authorization", &token)], &body).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
        let received = eventually("the warning", || async { receiver.received().first().cloned() }).await;
        let event = received.json();
        assert_eq!(event["type"], "budget.warning");
        assert_eq!(event["data"]["spent_today_usdc"], "0.010000");
        assert!(event["data"].get("alert_email").is_none(), "whose mail it is, is nothing to tell a receiver");
        assert_eq!(receiver.count(), 1);
    });
}

/// The states in a log, newest first.
fn states(log: &[Delivery]) -> Vec<Value> {
    log.iter().map(|delivery| json!(delivery.state)).collect()
}
