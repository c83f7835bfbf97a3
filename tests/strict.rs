//! Bodies that set something refuse what they do not know: nobody may believe in a cap, a rule or an amount that was misspelt
//! and dropped. What answers say can be sent back.

use std::collections::BTreeSet;

use api::operations::{self, Body};
use base::clock::Clock;
use local::{Options, Stack};
use market::service::{self, Executor};
use platform::store::Write;
use serde_json::{Value, json};

use crate::approvals::{APPROVER, POLICY};
use crate::souls_market::Shop;
use crate::support::seller::someone;
use crate::support::{Answer, Payer, Seller, run, stack_with};

const BUDGETS: &str = "/v1/agents/me/budgets";
const TOKENS: &str = "/v1/agents/me/access-tokens";
const FREEZES: &str = "/v1/agents/me/freezes";
const HOOKS: &str = "/v1/webhooks";
const OWN: &str = "/v1/soul/me";

/// Paths whose bodies may have more members: agent platforms extend their protocol, and vendors their events.
const OTHERS: [&str; 4] = ["/acp/", "/v1/checkout_sessions", "/v1/providers/", "/v1/tools/linkedin/webhook/"];
/// Operations that ignore unknown members: they set nothing, so nothing is lost.
const OPEN: [&str; 3] = ["hangUp", "linkedInConnected", "quoteEmail"];

/// Who sends a request.
#[derive(Clone, Copy)]
enum By {
    Wallet,
    Soul,
    Nobody,
}

/// A wallet with an endpoint, and a soul with a service.
struct World {
    payer: Payer,
    shop: Shop,
    hook: String,
}

impl World {
    async fn new(stack: &Stack) -> World {
        let payer = Payer::with(stack, 0).await;
        let made = payer.change("POST", HOOKS, &json!({"url": "https://example.org/", "description": "mine"})).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let hook = format!("{HOOKS}/{}", made.json()["data"]["id"].as_str().expect("an id"));
        World { payer, shop: Shop::open(stack, "strict-soul").await, hook }
    }

    async fn send(&self, by: By, method: &str, path: &str, body: &Value) -> Answer {
        match by {
            By::Wallet => self.payer.change(method, path, body).await,
            By::Soul => self.shop.send(method, path.strip_prefix(OWN).expect("a path of the soul's"), body).await,
            By::Nobody => {
                let json = [("content-type", "application/json")];
                self.payer.client.send(method, path, &json, body.to_string()).await.expect("an answer")
            }
        }
    }

    /// Everything that the bodies could have set.
    async fn seen(&self) -> Vec<Value> {
        let mut seen = Vec::new();
        for path in [BUDGETS, TOKENS, FREEZES, POLICY, HOOKS, "/v1/approvals", "/v1/tools/balance"] {
            seen.push(self.payer.get(path).await.json());
        }
        for path in ["", "/statistics", "/soul/versions", "/balance", "/payouts"] {
            seen.push(self.shop.get(path).await.json());
        }
        seen.push(self.payer.client.get(&format!("/v1/soul/{}", self.shop.slug), &[]).await.json());
        seen
    }

    /// A valid body for every operation that sets something: its id, a path, who sends it, the body.
    fn bodies(&self) -> Vec<(&'static str, String, By, Value)> {
        use By::{Nobody, Soul, Wallet};
        let own = |path: &str| format!("{OWN}{path}");
        let job = |path: &str| format!("{OWN}/jobs/job_{}{path}", "0".repeat(32));
        let hook = |path: &str| format!("{}{path}", self.hook);
        let insights = |path: &str| format!("/v1/analytics/{path}");
        let domain = |path: &str| format!("/v1/tools/email/domains/mail.example.com/{path}");
        let voice = |path: &str| format!("/v1/tools/voice/{path}");
        let goal = |path: &str| format!("/v1/compute/goal_{}/{path}", "0".repeat(32));
        let network = |path: &str| format!("/v1/tools/linkedin/{path}");
        let notes = |path: &str| format!("/v1/tools/notifications/{path}");
        let new_soul = json!({"name": "A soul", "slug": "another-soul", "soul_md": "# Another\n\nIt has a text."});
        let number = "numbers/3f6b2f0e-0000-4000-8000-000000000000/inbound";
        let replay = "/deliveries/evt_01ARZ3NDEKTSV4RRFFQ69G5FAV/replay";
        let file = json!({"path": "a.txt", "size": 5, "content_type": "text/plain"});
        let asked = json!({"action_summary": "Buy a boat", "approver": {"email": APPROVER}});
        let value = json!({"type": "revenue", "amount": 1});
        let outcome = json!({"goal_id": "g1", "type": "revenue", "amount": 1});
        vec![
            ("setBudgets", BUDGETS.to_owned(), Wallet, json!({"daily": 1})),
            ("mintAccessToken", TOKENS.to_owned(), Wallet, json!({"name": "laptop"})),
            ("freeze", FREEZES.to_owned(), Wallet, json!({"what": "agent"})),
            ("liftFreeze", format!("{FREEZES}/lift"), Wallet, json!({"what": "agent"})),
            ("setActionPolicy", POLICY.to_owned(), Wallet, json!({"rules": []})),
            ("backtestActionPolicy", format!("{POLICY}/backtest"), Wallet, json!({"rules": []})),
            ("askApproval", "/v1/approvals".to_owned(), Wallet, asked),
            ("cancelApproval", "/v1/approvals/appr_x/cancel".to_owned(), Wallet, json!({})),
            ("readAllNotifications", notes("read-all"), Wallet, json!({})),
            ("readNotification", notes("ntf_x/read"), Wallet, json!({})),
            ("openCheckout", "/v1/credits/checkout".to_owned(), Wallet, json!({"amount": 5})),
            ("tagReceipt", insights("receipts/rcpt_x/value"), Wallet, value),
            ("confirmReceiptValue", insights("receipts/rcpt_x/value/confirm"), Wallet, json!({"amount": 1})),
            ("reportOutcome", insights("outcomes"), Wallet, outcome),
            ("confirmOutcome", insights("outcomes/x/confirm"), Wallet, json!({})),
            ("createWebhook", HOOKS.to_owned(), Wallet, json!({"url": "https://example.org/2"})),
            ("changeWebhook", hook(""), Wallet, json!({"description": "changed"})),
            ("rotateWebhookSecret", hook("/rotate-secret"), Wallet, json!({"overlap_hours": 1})),
            ("testWebhook", hook("/test"), Wallet, json!({})),
            ("replayDelivery", hook(replay), Wallet, json!({})),
            ("uploadAttachment", "/v1/tools/email/uploads".to_owned(), Wallet, json!({"size": 5})),
            ("pauseEmailDomain", domain("pause"), Wallet, json!({})),
            ("resumeEmailDomain", domain("resume"), Wallet, json!({})),
            ("setVoiceAnswering", voice(number), Wallet, json!({"prompt": "You answer for a bakery."})),
            ("dial", voice("exchange"), Wallet, json!({"to": "+12025550123"})),
            ("sayInCall", voice("exchange/x/turns"), Wallet, json!({"text": "Hello"})),
            ("connectLinkedInAccount", network("connect"), Wallet, json!({"requested_actions": ["read"]})),
            ("reconnectLinkedInAccount", network("accounts/x/reconnect"), Wallet, json!({})),
            ("getLocalNetworkCode", network("local/code"), Wallet, json!({"name": "Ann"})),
            ("acceptLocalInvitation", network("local/invitations/x/accept"), Wallet, json!({})),
            ("publishLocalPost", network("local/posts"), Wallet, json!({"text": "Hello"})),
            ("cancelGoal", goal("cancel"), Wallet, json!({})),
            ("pauseGoal", goal("pause"), Wallet, json!({})),
            ("resumeGoal", goal("resume"), Wallet, json!({})),
            ("respondToGoal", goal("respond"), Wallet, json!({"approved": true})),
            ("fundGoal", goal("fund"), Wallet, json!({"amount": 1})),
            ("rateSoulJob", "/v1/soul/jobs/job_x/rate".to_owned(), Wallet, json!({"rating": 5})),
            ("registerSoul", "/v1/soul/register".to_owned(), Nobody, new_soul),
            ("changeOwnSoul", own(""), Soul, json!({"bio": "Reads"})),
            ("rotateSoulKey", own("/rotate-key"), Soul, json!({})),
            ("createService", own("/services"), Soul, json!({"name": "C", "slug": "count", "price_usd": 1})),
            ("changeService", own("/services/summary"), Soul, json!({"price_usd": 2})),
            ("setSoulText", own("/soul"), Soul, json!({"soul_md": "# Strict\n\nIt has another text."})),
            ("setSoulPrice", own("/soul-price"), Soul, json!({"soul_price": 9})),
            ("linkWallet", own("/link-wallet"), Soul, json!({"wallet_address": someone().to_string()})),
            ("askPayout", own("/payout"), Soul, json!({"amount": 10})),
            ("claimJob", job("/claim"), Soul, json!({})),
            ("reportProgress", job("/progress"), Soul, json!({"percent": 50})),
            ("announceFile", job("/files"), Soul, file),
            ("completeJob", job("/complete"), Soul, json!({"result": "done"})),
            ("failJob", job("/fail"), Soul, json!({"reason": "it rained"})),
            ("createGood", own("/goods"), Soul, json!({"title": "Lamp", "price": "1"})),
            ("changeGood", own("/goods/good_x"), Soul, json!({"price": "1"})),
            ("shipOrder", own("/orders/x/ship"), Soul, json!({"carrier": "UPS"})),
            ("deliverOrder", own("/orders/x/delivered"), Soul, json!({})),
            ("cancelOrder", own("/orders/x/cancel"), Soul, json!({"reason": "it rained"})),
        ]
    }
}

/// A stack whose time stands still, so that nothing that is read changes by itself.
async fn standing_still() -> Stack {
    let clock = Clock::pinned(Clock::system().now());
    stack_with(|options| Options { clock, ..options }).await
}

fn method_of(id: &str) -> &'static str {
    operations::all().find(|operation| operation.id == id).unwrap_or_else(|| panic!("no operation {id}")).method
}

/// Checks that a body is refused for these members and nothing else.
#[track_caller]
fn refused(answer: &Answer, members: &[&str]) {
    assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{members:?}: {}", answer.text);
    let details = answer.json()["details"].clone();
    let paths: Vec<&str> = details.as_array().expect("details").iter().filter_map(|one| one["path"].as_str()).collect();
    assert_eq!(paths, members, "{}", answer.text);
}

#[test]
fn no_setting_swallows_an_unknown_member() {
    run(async {
        let stack = standing_still().await;
        let world = World::new(&stack).await;
        let before = world.seen().await;
        let bodies = world.bodies();
        for (id, path, by, body) in &bodies {
            // A member that is null is not absent: its name is misspelt all the same.
            for value in [json!(1), Value::Null] {
                let mut more = body.clone();
                more["dayly"] = value;
                let answer = world.send(*by, method_of(id), path, &more).await;
                assert_eq!(answer.status, 400, "{id}: {}", answer.text);
                refused(&answer, &["dayly"]);
            }
        }
        let case = |more: Value| {
            let mut case = json!({"name": "one", "input": {"text": "a"}, "checks": [{"path": "", "exists": true}]});
            for (name, value) in more.as_object().expect("members") {
                case[name] = value.clone();
            }
            json!({"test_cases": [case]})
        };
        let text = "# Another\n\nIt has a text.";
        let service = json!({"name": "S", "slug": "ser", "price_usd": 1, "price": 2});
        let soul = json!({"name": "A soul", "slug": "another-soul", "soul_md": text, "service": service});
        let rule = json!({"tool": "*", "action": "deny", "when": {"always": true}, "wen": {}});
        let hours =
            json!({"timezone": "UTC", "zone": 1, "windows": [{"days": ["mon"], "start": "09:00", "end": "10:00"}]});
        for (id, body, member) in [
            ("registerSoul", soul, "service.price"),
            ("changeService", case(json!({"chekcs": []})), "test_cases.0.chekcs"),
            (
                "changeService",
                case(json!({"checks": [{"path": "", "exists": true, "equal": 1}]})),
                "test_cases.0.checks.0.equal",
            ),
            ("setActionPolicy", json!({"rules": [rule]}), "rules.0.wen"),
            ("setVoiceAnswering", json!({"prompt": "Hello", "business_hours": hours}), "business_hours.zone"),
            ("askApproval", json!({"action_summary": "x", "approver": {"email": APPROVER, "fax": 1}}), "approver.fax"),
        ] {
            let (_, path, by, _) = bodies.iter().find(|row| row.0 == id).expect("a row");
            refused(&world.send(*by, method_of(id), path, &body).await, &[member]);
        }
        assert_eq!(world.seen().await, before);

        // A new route is listed here, or above with the reason why not.
        let mut open = BTreeSet::new();
        for operation in operations::all().filter(|operation| operation.method != "GET") {
            match operation.body {
                Body::Open(_) => {
                    open.insert(operation.id);
                }
                Body::Fields(_) | Body::Nullable(_) | Body::Json { .. } | Body::Tools { .. } => {
                    let is_listed = bodies.iter().any(|row| row.0 == operation.id);
                    let is_others = OTHERS.iter().any(|prefix| operation.path.starts_with(prefix));
                    assert!(is_listed || is_others, "{} is not tried", operation.id);
                }
                Body::None | Body::Bytes { .. } | Body::Form(_) | Body::Rpc(_) | Body::Sold => {}
            }
        }
        assert_eq!(open, BTreeSet::from(OPEN));
    });
}

#[test]
fn what_an_answer_says_can_be_sent_back() {
    run(async {
        let stack = standing_still().await;
        let world = World::new(&stack).await;
        let (payer, shop) = (&world.payer, &world.shop);
        let budget = json!({
            "daily": 5, "per_transaction": "0.5", "alert_at": 0.5, "alert_email": "owner@example.com",
            "tools": {"web_read": 1}, "payees": {"service": 2},
        });
        let rule = json!({"tool": "*", "action": "require_approval", "when": {"amount_over_usdc": "0.5"}});
        let policy = json!({"rules": [rule], "approver": {"email": APPROVER}, "timezone": "Europe/Berlin"});
        for (path, body) in [(BUDGETS, budget), (POLICY, policy)] {
            assert_eq!(payer.change("PUT", path, &body).await.status, 200, "{path}");
        }
        let shown = async |path: &str| {
            let mut shown = payer.get(path).await.json()["data"].clone();
            shown.as_object_mut().expect("members").remove("updated_at");
            shown
        };
        for (method, path) in [("PUT", BUDGETS), ("PUT", POLICY), ("PATCH", world.hook.as_str())] {
            let whole = payer.get(path).await.json()["data"].clone();
            let before = shown(path).await;
            let answer = payer.change(method, path, &whole).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text);
            assert_eq!(shown(path).await, before, "{path}");
        }

        let profile = json!({"name": "A strict soul", "bio": "Sums up", "avatar_url": "https://example.com/a.png"});
        let changed = shop.send("PUT", "", &profile).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        let before = shop.get("").await.json()["soul"].clone();
        assert_eq!(changed.json()["soul"], before);
        let again = shop.send("PUT", "", &before).await;
        assert_eq!((again.status, &again.json()["soul"]), (200, &before), "{}", again.text);
        for (member, value) in [
            ("slug", json!("other")),
            ("slug", Value::Null),
            ("id", json!("other")),
            ("status", json!("suspended")),
            // The price and the wallet have routes of their own.
            ("soul_price", json!(3)),
            ("soul_price", Value::Null),
            ("soul_for_sale", json!(false)),
            ("payout_address", json!(someone().to_string())),
            ("payout_address_verified", json!(true)),
            // Of the whole answer, beside the soul.
            ("services", json!([])),
        ] {
            let mut body = before.clone();
            body[member] = value;
            refused(&shop.send("PUT", "", &body).await, &[member]);
        }
        assert_eq!(shop.send("PUT", "", &json!({"soul_price": 2.0})).await.status, 200, "the same by value");
        assert_eq!(shop.get("").await.json()["soul"], before);

        let cases = json!([{"name": "one", "input": {"text": "a"}, "checks": [{"path": "", "exists": true}]}]);
        let path = "/services/summary";
        let changed = shop.send("PUT", path, &json!({"test_cases": cases, "description": "Sums up"})).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        let listed = async || shop.get("/services").await.json()["services"][0].clone();
        let before = listed().await;
        let again = shop.send("PUT", path, &before).await;
        assert_eq!((again.status, &again.json()["service"]), (200, &before), "{}", again.text);
        for (body, member) in [
            (json!({"slug": "other"}), "slug"),
            (json!({"slug": null}), "slug"),
            // Meant as test cases.
            (json!({"tests": []}), "tests"),
            (json!({"price": 2}), "price"),
        ] {
            refused(&shop.send("PUT", path, &body).await, &[member]);
        }

        // Without a model, a model's service is shown as a worker's. Sent back, it stays a model's.
        let (db, key) = (&stack.app.db, service::key(&shop.slug, "summary"));
        let write = Write::update(
            &db.tables.souls,
            key,
            "SET #terms.#executor = :executor, #terms.#deadline_seconds = :deadline",
        );
        let write = write.bind("executor", Executor::Model).and_then(|write| write.bind("deadline", 240));
        db.write(write.expect("a write")).await.expect("a database");
        let before = listed().await;
        assert_eq!((&before["executor"], &before["deadline_seconds"]), (&json!("worker"), &json!(240)));
        let again = shop.send("PUT", path, &before).await;
        assert_eq!((again.status, &again.json()["service"]), (200, &before), "{}", again.text);
        let executor = async || {
            let stored = service::load_latest(db, &shop.slug, "summary").await.expect("a database");
            stored.expect("a service").terms.executor
        };
        assert_eq!(executor().await, Executor::Model);
        let hooked = json!({"executor": "worker", "webhook_url": "https://example.com/hook"});
        assert_eq!(shop.send("PUT", path, &hooked).await.status, 200);
        assert_eq!(executor().await, Executor::Worker, "a webhook says that a worker is meant");
    });
}

/// Members that were dropped once: the owner believed in a cap, the seller in a part of the balance.
#[test]
fn misspelt_caps_set_nothing() {
    run(async {
        let stack = standing_still().await;
        let world = World::new(&stack).await;
        let before = world.seen().await;
        for (by, method, path, body, member) in [
            (By::Wallet, "PUT", BUDGETS, json!({"dayly": 1}), "dayly"),
            (By::Wallet, "PUT", BUDGETS, json!({"daily": 1, "per_call": 0.1}), "per_call"),
            (By::Wallet, "POST", TOKENS, json!({"name": "laptop", "expire_in_days": 1}), "expire_in_days"),
            (By::Wallet, "PUT", POLICY, json!({"rules": [], "enable": false}), "enable"),
            (By::Wallet, "PATCH", world.hook.as_str(), json!({"event": ["request.failed"]}), "event"),
            (By::Soul, "PUT", "/v1/soul/me/services/summary", json!({"tool_budget": 0}), "tool_budget"),
            (
                By::Soul,
                "PUT",
                "/v1/soul/me/link-wallet",
                json!({"wallet_address": someone().to_string(), "prof": "x"}),
                "prof",
            ),
        ] {
            refused(&world.send(by, method, path, &body).await, &[member]);
        }
        assert_eq!(world.seen().await, before);

        // Without an amount, a payout is everything.
        let seller = Seller::new(&stack).await;
        seller.earn(30_000_000, stack.app.clock.now()).await;
        assert_eq!(seller.link(someone()).await.status, 200);
        let balance = seller.get("balance").await;
        assert_eq!(balance["available_usdc"].as_f64(), Some(30.0), "{balance}");
        for body in [json!({"amout": 10}), json!({"amount_usdc": 10}), json!({"amount": 10, "amout": null})] {
            assert_eq!(seller.ask(&body).await.error(), (400, "invalid_request".to_owned()), "{body}");
        }
        assert_eq!(seller.get("balance").await, balance);
        assert_eq!(seller.get("payouts").await["payouts"], json!([]));
        assert_eq!(seller.ask(&json!({"amount": 10})).await.json()["amount_usdc"].as_f64(), Some(10.0));
    });
}
