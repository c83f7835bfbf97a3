//! Approvals: the owner's action policy, approval requests of agents, the decision page, and how the payment gate
//! treats held calls.

use std::time::Duration;

use ::gate::approvals::approval::ApprovalId;
use ::gate::approvals::{GateCall, GateVerdict, gate, gate_check};
use base::clock::Clock;
use base::digest::{canonical_json, sha256};
use base::encoding::base64_any;
use base::money::Usdc;
use catalog::CATALOG;
use futures_util::future::join_all;
use local::Stack;
use platform::http::ApiError;
use platform::store::Write;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Map, Value, json};

use crate::souls_market::Shop;
use crate::support::platform::payment;
use crate::support::relay::relay;
use crate::support::{Answer, Payer, Platform, run, stack, stack_with};

pub(crate) const POLICY: &str = "/v1/agents/me/action-policy";
const APPROVALS: &str = "/v1/approvals";
pub(crate) const APPROVER: &str = "alice@example.com";

/// Sends a request with a fresh proof, made at the stack's time.
async fn send(stack: &Stack, payer: &Payer, method: &str, path: &str, body: Value) -> Answer {
    let scope = if method == "GET" { "read" } else { "write" };
    let proof = payer.proof_at(scope, stack.app.clock.now().secs());
    let headers = [("content-type", "application/json"), ("x-agent-proof", proof.as_str())];
    let body = if method == "GET" { String::new() } else { body.to_string() };
    payer.client.send(method, path, &headers, body).await.expect("an answer")
}

async fn get(stack: &Stack, payer: &Payer, path: &str) -> Value {
    let answer = send(stack, payer, "GET", path, Value::Null).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["data"].clone()
}

async fn ask(stack: &Stack, payer: &Payer, body: Value) -> Value {
    let answer = send(stack, payer, "POST", APPROVALS, body).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.json()["data"].clone()
}

fn question() -> Value {
    json!({"action_summary": "Buy a boat", "approver": {"email": APPROVER}, "expires_in_seconds": 600})
}

/// How many mails were sent.
fn mails(stack: &Stack) -> usize {
    std::fs::read_dir(&stack.outbox).map_or(0, |files| files.count())
}

/// The mail about an approval.
fn mail_about(stack: &Stack, approval: &Value) -> String {
    let id = approval["approval_id"].as_str().expect("an id");
    std::fs::read_to_string(stack.outbox.join(format!("{id}.eml"))).expect("a mail")
}

/// The path of the link in the mail about an approval.
pub(crate) fn link(stack: &Stack, approval: &Value) -> String {
    link_to(stack, approval, APPROVER)
}

fn link_to(stack: &Stack, approval: &Value, address: &str) -> String {
    let mail = mail_about(stack, approval);
    let (headers, body) = mail.split_once("\r\n\r\n").expect("a body");
    assert!(headers.contains(&format!("To: <{address}>")), "{headers}");
    assert!(mail.is_ascii() && !mail.contains("boat"), "nothing in the agent's own words: {mail}");
    let url = body.lines().find(|line| line.contains("/approve/")).expect("a link");
    url.strip_prefix(&stack.base_url).expect("a link to this stack").to_owned()
}

pub(crate) async fn decide(payer: &Payer, path: &str, form: &str) -> Answer {
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    payer.client.send("POST", path, &headers, form.to_owned()).await.expect("an answer")
}

#[test]
fn only_the_wallet_can_change_or_remove_its_policy() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        assert_eq!(get(&stack, &payer, POLICY).await, Value::Null);
        let rules = json!([{"tool": "*", "action": "require_approval", "when": {"amount_over_usdc": "0.5"}}]);
        let put = send(&stack, &payer, "PUT", POLICY, json!({"rules": rules, "approver": {"email": APPROVER}})).await;
        assert_eq!(put.status, 200, "{}", put.text);
        assert_eq!(put.json()["success"], true);
        let policy = get(&stack, &payer, POLICY).await;
        assert_eq!(policy, put.json()["data"]);
        assert_eq!(policy["rules"][0]["when"], json!({"amount_over_usdc": "0.500000"}));
        let again = send(&stack, &payer, "PUT", POLICY, policy.clone()).await;
        assert_eq!(again.status, 200, "a policy can be put as it was shown: {}", again.text);
        let policy = get(&stack, &payer, POLICY).await;
        assert_eq!((&policy["rules"], &policy["approver"]["email"]), (&put.json()["data"]["rules"], &json!(APPROVER)));

        let bad = send(&stack, &payer, "PUT", POLICY, json!({"rules": [{}], "enable": false})).await;
        assert_eq!(bad.error(), (400, "invalid_request".to_owned()));
        assert_eq!(bad.json()["details"][0]["path"], "enable");
        assert_eq!(get(&stack, &payer, POLICY).await, policy, "what is refused changes nothing");

        // A token can read the policy but cannot loosen it.
        let bearer = payer.token(&stack).await;
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let as_token = async |method: &str, path: &str, body: &str| {
            payer.client.send(method, path, &headers, body.to_owned()).await.expect("an answer")
        };
        assert_eq!(as_token("GET", POLICY, "").await.json()["data"], policy);
        let approval = ask(&stack, &payer, question()).await;
        let cancel = format!("{APPROVALS}/{}/cancel", approval["approval_id"].as_str().unwrap());
        for (method, path) in [("PUT", POLICY), ("DELETE", POLICY), ("POST", cancel.as_str())] {
            let answer = as_token(method, path, "{}").await;
            assert_eq!(answer.error(), (403, "access_tokens_wallet_only".to_owned()), "{method} {path}");
        }
        assert_eq!(as_token("GET", APPROVALS, "").await.json()["data"]["approvals"][0]["status"], "pending");

        let gone = send(&stack, &payer, "DELETE", POLICY, Value::Null).await;
        assert_eq!(gone.json(), json!({"success": true, "data": null}));
        assert_eq!(get(&stack, &payer, POLICY).await, Value::Null);
    });
}

/// Asking costs a mail to somebody. A token may ask the approver whom its owner chose; a stolen one mails no strangers.
#[test]
fn a_token_may_ask_its_owners_approver_and_nobody_else() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        let token = payer.token(&stack).await;
        let by_token =
            |path: &'static str, body: Value| payer.clone().call(path, vec![("authorization", token.clone())], body);
        let wallet_only = (403, "access_tokens_wallet_only".to_owned());
        assert_eq!(by_token(APPROVALS, question()).await.error(), wallet_only, "no approver is known");
        let no_default = send(&stack, &payer, "POST", APPROVALS, json!({"action_summary": "x"})).await;
        assert_eq!((no_default.status, &no_default.json()["details"][0]["path"]), (400, &json!("approver")));
        put_rules(&stack, &payer, json!([])).await;

        for approver in [json!({"email": "stranger@example.com"}), json!({"phone": "+15551234567"})] {
            let refused = by_token(APPROVALS, json!({"action_summary": "x", "approver": approver})).await;
            assert_eq!(refused.error(), wallet_only, "{approver}");
        }
        let wrong = by_token(APPROVALS, json!({"action_summary": "x", "approver_email": APPROVER})).await;
        assert_eq!((wrong.status, &wrong.json()["details"][0]["path"]), (400, &json!("approver_email")));
        assert_eq!(mails(&stack), 0);

        for body in [json!({"action_summary": "Buy a boat"}), question()] {
            let asked = by_token(APPROVALS, body).await;
            assert_eq!(asked.status, 201, "{}", asked.text);
            let approval = asked.json()["data"].clone();
            assert_eq!(approval["asked_by"]["wallet"], payer.address().to_string());
            assert!(approval["asked_by"]["token_id"].is_string(), "{approval}");
            let id = approval["approval_id"].as_str().unwrap();
            let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
            let path = format!("{APPROVALS}/{id}/cancel");
            let cancel = payer.client.send("POST", &path, &headers, "{}".to_owned()).await.expect("an answer");
            assert_eq!(cancel.error(), wallet_only, "only the wallet takes a question back");
            assert_eq!(decide(&payer, &link(&stack, &approval), "decision=approve").await.status, 200);
        }
        assert_eq!(mails(&stack), 2);
    });
}

#[test]
fn approvals_can_be_requested_listed_cancelled_and_expire() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|mut options| {
            options.clock = clock.clone();
            options
        })
        .await;
        let (payer, stranger) = (Payer::with(&stack, 0).await, Payer::with(&stack, 0).await);
        let first = ask(&stack, &payer, question()).await;
        assert_eq!(
            (&first["status"], &first["source"], &first["notified"]),
            (&json!("pending"), &json!("api"), &json!(true))
        );
        assert_eq!(first["approver"], json!({"channel": "email", "address": "a***@example.com"}));
        let by_phone = json!({"action_summary": "Call", "approver": {"phone": "+15551234567"}, "preview": {"a": 1}});
        let second = ask(&stack, &payer, by_phone).await;
        assert_eq!((&second["notified"], &second["notify_error"]), (&json!(false), &json!("provider_not_configured")));
        assert_eq!(second["preview"], json!({"a": 1}));
        for (bad, path) in [
            (json!({"approver": {"email": APPROVER}}), "action_summary"),
            (json!({"action_summary": "x", "approver": {}}), "approver"),
            (json!({"action_summary": "x", "approver": {"email": APPROVER, "phone": "+15551234567"}}), "approver"),
            (
                json!({"action_summary": "x", "approver": {"email": APPROVER}, "preview": {"a": "é".repeat(4000)}}),
                "preview",
            ),
            (
                json!({"action_summary": "x", "approver": {"email": APPROVER}, "expires_in_seconds": 59}),
                "expires_in_seconds",
            ),
        ] {
            let answer = send(&stack, &payer, "POST", APPROVALS, bad).await;
            assert_eq!((answer.status, &answer.json()["details"][0]["path"]), (400, &json!(path)), "{}", answer.text);
        }

        let path = |approval: &Value| format!("{APPROVALS}/{}", approval["approval_id"].as_str().unwrap());
        let answer = send(&stack, &stranger, "GET", &path(&first), Value::Null).await;
        assert_eq!(answer.error(), (404, "not_found".to_owned()), "another agent's");
        let cancelled = send(&stack, &payer, "POST", &format!("{}/cancel", path(&second)), json!({})).await;
        assert_eq!(cancelled.json()["data"]["status"], "cancelled", "{}", cancelled.text);
        let again = send(&stack, &payer, "POST", &format!("{}/cancel", path(&second)), json!({})).await;
        assert_eq!((again.status, again.json()), (200, cancelled.json()));
        let ids = |list: Value| -> Vec<Value> {
            list["approvals"].as_array().unwrap().iter().map(|approval| approval["approval_id"].clone()).collect()
        };
        let pending = get(&stack, &payer, &format!("{APPROVALS}?status=pending&limit=1")).await;
        assert_eq!(ids(pending), [first["approval_id"].clone()]);
        assert_eq!(ids(get(&stack, &payer, APPROVALS).await).len(), 2);
        for query in ["status=maybe", "limit=0", "limit=201", "limit=x"] {
            let answer = send(&stack, &payer, "GET", &format!("{APPROVALS}?{query}"), Value::Null).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{query}");
        }

        clock.advance(Duration::from_secs(600));
        let expired = get(&stack, &payer, &path(&first)).await;
        assert_eq!((&expired["status"], &expired["decided_via"]), (&json!("expired"), &json!("timeout")));
        let late = decide(&payer, &link(&stack, &first), "decision=approve").await;
        assert_eq!(late.status, 409);
        assert!(late.text.contains("the answer was no"), "{}", late.text);
        let answer = send(&stack, &payer, "POST", &format!("{}/cancel", path(&first)), json!({})).await;
        assert_eq!(answer.error(), (409, "approval_not_pending".to_owned()));
        assert_eq!(get(&stack, &payer, &path(&first)).await["status"], "expired");
    });
}

#[test]
fn an_approval_link_decides_once() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        let hostile = "</p><script>alert(1)</script>\"'&<img src=x onerror=alert(1)>\u{202e}";
        let body = json!({"action_summary": hostile, "approver": {"email": APPROVER}, "preview": {hostile: [hostile]}});
        let approval = ask(&stack, &payer, body).await;
        let (link, id) = (link(&stack, &approval), approval["approval_id"].as_str().unwrap().to_owned());

        // Opening the page decides nothing and runs nothing.
        for _ in 0..2 {
            let page = payer.client.get(&link, &[]).await;
            assert_eq!((page.status, page.header("cache-control")), (200, Some("no-store")));
            assert_eq!(page.header("referrer-policy"), Some("same-origin"));
            assert_eq!(page.header("x-frame-options"), Some("DENY"));
            let policy = page.header("content-security-policy").unwrap();
            assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
            assert!(!page.text.contains("<script") && !page.text.contains("<img"), "{}", page.text);
            assert!(page.text.contains("&lt;script&gt;alert(1)") && page.text.contains("[U+202E]"), "{}", page.text);
            let style = page.text.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).unwrap();
            let digest = base::encoding::base64_standard(&sha256(style.as_bytes()));
            assert!(policy.contains(&format!("'sha256-{digest}'")), "the page's own style is let in");
        }
        let long = format!("decision=deny&note={}", "x".repeat(501));
        for bad in ["", "decision=", "decision=maybe", "decision=approve&decision=deny", long.as_str()] {
            assert_eq!(decide(&payer, &link, bad).await.status, 400, "{bad}");
        }
        for unknown in ["/approve/x".to_owned(), format!("/approve/{}", "A".repeat(43)), "/approve/%00%ff".to_owned()] {
            let status = payer.client.get(&unknown, &[]).await.status;
            assert!(status == 404 || status == 400, "{unknown}: {status}");
        }
        assert_eq!(get(&stack, &payer, &format!("{APPROVALS}/{id}")).await["status"], "pending");

        let decisions: Vec<_> = (0..10)
            .map(|index| {
                let (payer, link) = (payer.clone(), link.clone());
                let word = if index % 2 == 0 { "approve" } else { "deny" };
                tokio::spawn(
                    async move { decide(&payer, &link, &format!("decision={word}&note=%3Cb%3E{index}")).await },
                )
            })
            .collect();
        let mut answers = Vec::new();
        for decision in decisions {
            answers.push(decision.await.unwrap());
        }
        let won: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(won.len(), 1);
        assert!(answers.iter().all(|answer| answer.status == 200 || answer.status == 409));
        assert!(answers.iter().all(|answer| answer.text == won[0].text), "everybody is shown the first decision");
        assert_eq!(payer.client.get(&link, &[]).await.text, won[0].text);

        // The agent reads the signed decision. Nothing it reads has the link.
        let decided = get(&stack, &payer, &format!("{APPROVALS}/{id}")).await;
        let listed = get(&stack, &payer, APPROVALS).await;
        let token = link.rsplit('/').next().unwrap();
        for told in [&approval, &decided, &listed] {
            assert!(!told.to_string().contains(token));
        }
        let note = decided["decision_note"].as_str().unwrap();
        assert!(won[0].text.contains(&format!("&lt;b&gt;{}", &note[3..])), "{}", won[0].text);
        let receipt = &decided["decision_receipt"];
        assert_eq!((&receipt["decision"], &receipt["decided_via"]), (&decided["status"], &json!("link")));
        assert_eq!(receipt["decision_receipt_id"], decided["decision_receipt_id"]);
        let payload = receipt["payload"].as_str().unwrap();
        let key = base64_any(&stack.keys.receipts.public().x).unwrap();
        let signature = base64_any(receipt["signature"].as_str().unwrap()).unwrap();
        let key = UnparsedPublicKey::new(&ED25519, key);
        assert!(key.verify(payload.as_bytes(), &signature).is_ok());
        assert!(key.verify(payload.replace("approved", "denied").replace(&id, "x").as_bytes(), &signature).is_err());
        let signed: Value = serde_json::from_str(payload).unwrap();
        assert_eq!((&signed["approval_id"], &signed["agent_id"]), (&json!(id), &json!(payer.agent())));
    });
}

#[test]
fn at_most_twenty_approvals_are_pending() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|mut options| {
            options.clock = clock.clone();
            options
        })
        .await;
        let payer = Payer::with(&stack, 0).await;
        let proofs: Vec<String> = (0..25).map(|_| payer.proof_at("write", clock.now().secs())).collect();
        let asked: Vec<_> = proofs
            .into_iter()
            .map(|proof| {
                let payer = payer.clone();
                tokio::spawn(
                    async move { payer.client.post(APPROVALS, &[("x-agent-proof", &proof)], &question()).await },
                )
            })
            .collect();
        let mut statuses = Vec::new();
        for asked in asked {
            let answer = asked.await.unwrap();
            if answer.status == 409 {
                assert_eq!(answer.error().1, "too_many_pending_approvals");
            }
            statuses.push(answer.status);
        }
        assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 20, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 409).count(), 5, "{statuses:?}");
        let pending = get(&stack, &payer, &format!("{APPROVALS}?status=pending")).await;
        assert_eq!(pending["approvals"].as_array().unwrap().len(), 20);
        // A decision frees a place, and so does expiry.
        let one = &pending["approvals"][0];
        assert_eq!(decide(&payer, &link(&stack, one), "decision=deny").await.status, 200);
        ask(&stack, &payer, question()).await;
        assert_eq!(send(&stack, &payer, "POST", APPROVALS, question()).await.status, 409);
        clock.advance(Duration::from_secs(600));
        ask(&stack, &payer, question()).await;
    });
}

/// A call of web-read by an agent, as the gate checks it.
struct Asking<'a> {
    stack: &'a Stack,
    payer: &'a Payer,
    input: Map<String, Value>,
    body: [u8; 32],
    amount: Usdc,
}

impl<'a> Asking<'a> {
    fn new(stack: &'a Stack, payer: &'a Payer, url: &str) -> Asking<'a> {
        let input = json!({"url": url});
        let body = sha256(canonical_json(&input).as_bytes());
        Asking { stack, payer, input: input.as_object().unwrap().clone(), body, amount: Usdc::from_micro(2_000) }
    }

    async fn check(&self, approval_id: Option<&str>, consume: bool) -> Result<GateVerdict, ApiError> {
        let call = GateCall {
            wallet: self.payer.address(),
            token: None,
            tool: CATALOG.find("web_read").unwrap(),
            listing: None,
            input: &self.input,
            amount: self.amount,
            body: &self.body,
            approval_id,
            consume,
            wakes: None,
            now: self.stack.app.clock.now(),
        };
        gate_check(&self.stack.app.db, &self.stack.notices, &call).await
    }

    /// The approval that a held call gets.
    async fn held(&self) -> Value {
        match self.check(None, false).await {
            Err(ApiError::ApprovalRequired { approval_id, approval, .. }) => {
                assert_eq!(approval["approval_id"], json!(approval_id));
                *approval
            }
            other => panic!("not held: {other:?}"),
        }
    }

    async fn refused(&self, approval_id: &str) -> &'static str {
        match self.check(Some(approval_id), true).await {
            Err(ApiError::ApprovalInvalid(why)) => why,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// The write that marks the approval as used.
    async fn released(&self, approval_id: &str) -> Write {
        match self.check(Some(approval_id), true).await {
            Ok(GateVerdict::Released { consume: Some(write), .. }) => *write,
            other => panic!("not released: {other:?}"),
        }
    }
}

pub(crate) async fn put_rules(stack: &Stack, payer: &Payer, rules: Value) {
    let body = json!({"rules": rules, "approver": {"email": APPROVER}, "timeout_seconds": 600});
    let put = send(stack, payer, "PUT", POLICY, body).await;
    assert_eq!(put.status, 200, "{}", put.text);
}

#[test]
fn a_held_call_is_released_once() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|mut options| {
            options.clock = clock.clone();
            options
        })
        .await;
        let payer = Payer::with(&stack, 0).await;
        let asking = Asking::new(&stack, &payer, "https://example.com/");
        let other = Asking::new(&stack, &payer, "https://example.com/other");
        assert!(matches!(asking.check(None, true).await, Ok(GateVerdict::Allowed)), "no policy");
        let always = json!({"always": true});
        put_rules(&stack, &payer, json!([{"tool": "web_read", "action": "require_approval", "when": always}])).await;

        // Ten concurrent copies make one approval and one mail.
        let mut ids = std::collections::HashSet::new();
        for approval in join_all((0..10).map(|_| asking.held())).await {
            ids.insert(approval["approval_id"].as_str().unwrap().to_owned());
        }
        assert_eq!(ids.len(), 1);
        assert_eq!(std::fs::read_dir(&stack.outbox).unwrap().count(), 1);
        let approval = asking.held().await;
        let id = approval["approval_id"].as_str().unwrap();
        assert_eq!((&approval["tool"], &approval["policy_rule"]), (&json!("web_read"), &json!("rule_1")));
        assert_eq!(approval["preview"], json!({"url": "https://example.com/"}));
        assert_eq!((&approval["source"], &approval["notified"]), (&json!("policy"), &json!(true)));
        assert_ne!(other.held().await["approval_id"], approval["approval_id"]);

        assert_eq!(asking.refused(id).await, "the approval is not decided yet");
        let path = link(&stack, &approval);
        assert!(!approval.to_string().contains(path.rsplit('/').next().unwrap()));
        assert_eq!(decide(&payer, &path, "decision=approve").await.status, 200);
        assert_eq!(asking.held().await["status"], "approved", "a repeat without the header is led to it");
        assert_eq!(other.refused(id).await, "the approval is for another call");
        assert_eq!(asking.refused("appr_nonsense").await, "there is no such approval of this agent");
        let stranger = Payer::with(&stack, 0).await;
        put_rules(&stack, &stranger, json!([{"tool": "*", "action": "require_approval", "when": always}])).await;
        let strange = Asking::new(&stack, &stranger, "https://example.com/");
        assert_eq!(strange.refused(id).await, "there is no such approval of this agent");
        let dearer = Asking { amount: Usdc::from_micro(2_001), ..Asking::new(&stack, &payer, "https://example.com/") };
        assert_eq!(dearer.refused(id).await, "the call now costs more than what was approved");

        // Unpaid requests do not use the approval. Of ten paid ones, one gets through.
        assert!(matches!(asking.check(Some(id), false).await, Ok(GateVerdict::Released { consume: None, .. })));
        let db = &stack.app.db;
        let writes: Vec<Write> = join_all((0..10).map(|_| asking.released(id))).await;
        let claims = writes.into_iter().enumerate().map(|(index, consume)| async move {
            let key = platform::store::Key::new(format!("CLAIM#{index}"), "CLAIM");
            let claim = Write::put(&db.tables.jobs, key, &json!({"n": index})).unwrap().only_if_new();
            match db.transact(&[claim, consume]).await {
                Ok(()) => true,
                Err(error) if error.refused(1).is_some() => false,
                Err(error) => panic!("{error}"),
            }
        });
        assert_eq!(join_all(claims).await.into_iter().filter(|won| *won).count(), 1);
        let why = asking.refused(id).await;
        assert!(matches!(gate::approval_was_used(), ApiError::ApprovalInvalid(text) if text == why));
        let seen = get(&stack, &payer, &format!("{APPROVALS}/{id}")).await;
        assert_eq!(seen["status"], "consumed");
        assert!(seen["consumed_at"].is_string());

        // A long call is shown in full.
        let far = format!("https://example.com/?{}the-end", "x".repeat(5_000));
        let long = Asking::new(&stack, &payer, &far).held().await;
        assert!(long["preview"].to_string().len() < 4_000 && long["preview"]["cut_off"].is_string());
        assert!(payer.client.get(&link(&stack, &long), &[]).await.text.contains("xxthe-end"));

        // The same call again needs another approval, and an unused approval expires.
        let second = asking.held().await;
        let id = second["approval_id"].as_str().unwrap();
        assert!(!ids.contains(id));
        assert_eq!(decide(&payer, &link(&stack, &second), "decision=approve").await.status, 200);
        let write = asking.released(id).await;
        clock.advance(Duration::from_secs(15 * 60));
        assert_eq!(asking.refused(id).await, "the approval has expired");
        db.write(write).await.expect("the write was made in time");
        let third = asking.held().await;
        let id = third["approval_id"].as_str().unwrap().parse::<ApprovalId>().unwrap();
        assert_eq!(decide(&payer, &link(&stack, &third), "decision=deny&note=no").await.status, 200);
        assert_eq!(asking.refused(id.as_str()).await, "the approval was denied");

        // A deny rule overrides everything, including an approval.
        let deny = json!({"id": "never", "tool": "*", "action": "deny", "when": {"amount_over_usdc": 0.001}});
        put_rules(&stack, &payer, json!([{"tool": "*", "action": "require_approval", "when": always}, deny])).await;
        for approval in [None, Some(id.as_str())] {
            let refused = asking.check(approval, true).await;
            assert!(matches!(refused, Err(ApiError::ActionDenied { rule }) if rule == "never"));
        }
    });
}

#[test]
fn a_backtest_applies_a_draft_policy_to_past_charges() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let bought = payer.buy(crate::support::VIN_PATH, &json!({"vin": crate::support::VIN})).await;
        assert_eq!(bought.status, 200, "{}", bought.text);
        let rules = json!([
            {"id": "dear", "tool": "*", "action": "require_approval", "when": {"amount_over_usdc": "0.004"}},
            {"id": "far", "tool": "email", "action": "deny", "when": {"recipient_domain_not_in": ["example.com"]}},
        ]);
        let path = format!("{POLICY}/backtest");
        let answer = send(&stack, &payer, "POST", &path, json!({"rules": rules})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let data = &answer.json()["data"];
        assert_eq!((&data["held"], &data["denied"], &data["allowed"]), (&json!(1), &json!(0), &json!(0)));
        assert_eq!((&data["charges"][0]["rule"], &data["held_usdc"]), (&json!("dear"), &json!("0.005000")));
        assert_eq!(data["rules_not_evaluated"], json!(["far"]));
        assert_eq!(get(&stack, &payer, POLICY).await, Value::Null, "trying changes nothing");
        let bad = send(&stack, &payer, "POST", &path, json!({"rules": 1})).await;
        assert_eq!(bad.error(), (400, "invalid_request".to_owned()));
    });
}

#[test]
fn the_agent_learns_whether_the_approval_mail_was_sent() {
    run(async {
        let (url, kept) = relay().await;
        let stack = stack_with(|options| options.with("SMTP_URL", url).with("MAIL_FROM", "agora@example.org")).await;
        let payer = Payer::with(&stack, 0).await;
        let told = ask(&stack, &payer, question()).await;
        assert_eq!((&told["notified"], &told["notify_error"]), (&json!(true), &Value::Null));
        let mail = kept.lock().unwrap().clone();
        assert!(mail.contains("From: Agora <agora@example.org>") && mail.contains("To: <alice@example.com>"), "{mail}");
        let link = mail.lines().find_map(|line| line.strip_prefix(&stack.base_url)).expect("a link");
        assert_eq!(decide(&payer, link, "decision=approve").await.status, 200);
        let nobody = json!({"action_summary": "x", "approver": {"email": "nobody@example.com"}});
        let untold = ask(&stack, &payer, nobody).await;
        assert_eq!((&untold["notified"], &untold["notify_error"]), (&json!(false), &json!("delivery_failed")));
        assert!(!stack.outbox.exists(), "nothing is left behind");
    });
}

/// A held call from refusal to answer: a token's call, the approval, ten concurrent copies of the call, and the
/// explanation of the charge.
#[test]
fn an_approved_call_is_paid_once() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 100_000).await;
        let token = payer.token(&stack).await;
        let rules = json!([{"id": "ask", "tool": "vin_decode", "action": "require_approval", "when": {"always": true}},
            {"id": "never", "tool": "web_read", "action": "deny", "when": {"always": true}}]);
        let put = send(&stack, &payer, "PUT", POLICY, json!({"rules": rules, "approver": {"email": APPROVER}})).await;
        assert_eq!(put.status, 200, "{}", put.text);
        let call = |approval: Option<&Value>| {
            let mut headers = vec![("authorization", token.clone())];
            headers.extend(approval.map(|id| ("x-approval-id", id.as_str().expect("an id").to_owned())));
            payer.clone().call(crate::support::VIN_PATH, headers, json!({"vin": crate::support::VIN}))
        };
        let denied = payer.clone().call(
            crate::support::READ_PATH,
            vec![("authorization", token.clone())],
            json!({"url": "http://example.com/"}),
        );
        assert_eq!(denied.await.error(), (403, "action_denied_by_policy".to_owned()));
        let held = call(None).await;
        assert_eq!(held.error(), (403, "approval_required".to_owned()));
        let held = held.json();
        assert_eq!(call(None).await.json()["approval_id"], held["approval_id"], "asked once");
        let id = &held["approval_id"];
        assert_eq!(call(Some(id)).await.error(), (403, "approval_invalid".to_owned()), "not decided yet");

        let page = link(&stack, &held["approval"]);
        assert_eq!(decide(&payer, &page, "decision=approve").await.status, 200);
        let answers = join_all((0..10).map(|_| call(Some(id)))).await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
        let refused = answers.iter().all(|answer| answer.status == 200 || answer.error().1 == "approval_invalid");
        assert!(refused, "{answers:?}");
        let account = crate::support::books::audit(&stack.app.db, payer.agent()).await;
        assert_eq!(account.credits.micro(), 95_000, "charged once");

        let done = answers.iter().find(|answer| answer.status == 200).unwrap().json();
        let receipt = done["data"]["receipt_id"].as_str().unwrap();
        let explained = payer.get(&format!("/v1/receipts/{receipt}/explain")).await.json();
        assert_eq!(explained["policy"]["verdict"], "approved", "{explained}");
        assert_eq!(&explained["approval"]["approval_id"], id);
        assert!(explained["approval"]["decision_receipt"].is_object(), "{explained}");
        let notes = payer.get("/v1/tools/notifications").await.json();
        let decided = notes["notifications"].as_array().unwrap().iter().find(|note| note["type"] == "approval_decided");
        let title = decided.expect("a notification")["title"].as_str().unwrap();
        assert!(title.starts_with("A person approved this call: ") && title.contains("(vin_decode)"), "{title}");
    });
}

/// An agent repeats a call that a human denied, without naming the approval: the human gets no second mail about it, until
/// a day has passed or the owner changes the policy.
#[test]
fn a_denied_call_does_not_mail_again() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|mut options| {
            options.clock = clock.clone();
            options
        })
        .await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 100_000).await;
        let token = payer.token(&stack).await;
        let rules = json!([{"tool": "*", "action": "require_approval", "when": {"always": true}}]);
        put_rules(&stack, &payer, rules.clone()).await;
        let call =
            |body: Value| payer.clone().call(crate::support::VIN_PATH, vec![("authorization", token.clone())], body);
        let same = json!({"vin": crate::support::VIN});
        let denied = async || {
            let held = call(same.clone()).await;
            assert_eq!(held.error(), (403, "approval_required".to_owned()), "{}", held.text);
            let page = link(&stack, &held.json()["approval"]);
            assert_eq!(decide(&payer, &page, "decision=deny").await.status, 200);
            for _ in 0..3 {
                let repeated = call(same.clone()).await;
                assert_eq!(repeated.error(), (403, "approval_invalid".to_owned()), "{}", repeated.text);
            }
        };
        denied().await;
        assert_eq!(mails(&stack), 1);
        let other = call(json!({"vin": crate::support::VIN, "model_year": 2003})).await;
        assert_eq!((other.error().1.as_str(), mails(&stack)), ("approval_required", 2), "another call is asked about");
        clock.advance(Duration::from_secs(1));
        put_rules(&stack, &payer, rules).await;
        denied().await;
        assert_eq!(mails(&stack), 3, "the owner changed the policy");
        clock.advance(Duration::from_secs(24 * 3600));
        denied().await;
        assert_eq!(mails(&stack), 4, "a day passed");
        assert_eq!(crate::support::books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 100_000);
    });
}

/// People know a wallet, a token by its name, an amount and their own time; not ids of agents.
#[test]
fn mail_and_page_name_wallet_token_amount_and_local_time() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|mut options| {
            options.clock = clock.clone();
            options
        })
        .await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 100_000).await;
        let hours = json!({"outside_hours": {"timezone": "Europe/Berlin", "start": 9, "end": 17}});
        let always = json!({"tool": "vin_decode", "action": "require_approval", "when": {"always": true}});
        put_rules(&stack, &payer, json!([always, {"tool": "voice", "action": "deny", "when": hours}])).await;
        let minted = send(&stack, &payer, "POST", "/v1/agents/me/access-tokens", json!({"name": "laptop"})).await;
        let token = format!("Bearer {}", minted.json()["data"]["token"].as_str().expect("a token"));
        let body = json!({"vin": crate::support::VIN});
        let held = payer.clone().call(crate::support::VIN_PATH, vec![("authorization", token)], body).await.json();
        let approval = &held["approval"];
        assert_eq!(approval["asked_by"]["token_name"], "laptop", "{held}");

        let berlin = "Europe/Berlin".parse().unwrap();
        let local = base::hours::for_people(clock.now().plus(Duration::from_secs(600)), Some(&berlin));
        let title = CATALOG.find("vin_decode").expect("a tool").title;
        let wallet = payer.address().to_string();
        let mail = mail_about(&stack, approval);
        for part in [
            format!("Subject: Your decision is needed: {title} (vin_decode) for 0.005000 USDC\r\n"),
            format!("{title} (vin_decode) for 0.005000 USDC."),
            format!("Wallet: {wallet}\r\n"),
            "Access token: laptop\r\n".to_owned(),
            format!("Answer until: {local}\r\n"),
        ] {
            assert!(mail.contains(&part), "{part:?} in {mail}");
        }
        assert!(!mail.contains(&payer.agent().to_string()), "{mail}");

        let path = link(&stack, approval);
        let page = payer.client.get(&path, &[]).await.text;
        let rule = "every call of vin_decode (rule_1)";
        for part in [wallet.as_str(), "laptop", "0.005000 USDC", local.as_str(), rule] {
            assert!(page.contains(&format!("<dd>{part}</dd>")), "{part} in {page}");
        }
        let at = |page: &str, part: &str| page.find(part).unwrap_or_else(|| panic!("{part} in {page}"));
        assert!(at(&page, "<dl>") < at(&page, "<pre>") && at(&page, "<pre>") < at(&page, "<form"), "{page}");
        let decided = decide(&payer, &path, "decision=deny").await.text;
        assert!(decided.contains("<h1>You denied this</h1>"), "{decided}");
        assert!(at(&decided, "<p class=verdict>Denied") < at(&decided, "<dl>"), "the verdict comes first: {decided}");
    });
}

/// People are told their own time also where no rule is about hours.
#[test]
fn a_policy_names_the_time_zone_of_its_mails_and_pages() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|mut options| {
            options.clock = clock.clone();
            options
        })
        .await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 100_000).await;
        let rule = json!({"tool": "*", "action": "require_approval", "when": {"amount_over_usdc": "0.001"}});
        let mut policy = json!({"rules": [rule], "approver": {"email": APPROVER}, "timeout_seconds": 600});
        policy["timezone"] = json!("Mars/Base");
        let refused = send(&stack, &payer, "PUT", POLICY, policy.clone()).await;
        assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{}", refused.text);
        assert_eq!(refused.json()["details"][0]["path"], "timezone");
        policy["timezone"] = json!("Asia/Tokyo");
        let put = send(&stack, &payer, "PUT", POLICY, policy).await;
        assert_eq!((put.status, &put.json()["data"]["timezone"]), (200, &json!("Asia/Tokyo")), "{}", put.text);
        assert_eq!(get(&stack, &payer, POLICY).await["timezone"], "Asia/Tokyo");

        let token = payer.token(&stack).await;
        let body = json!({"vin": crate::support::VIN});
        let held = payer.clone().call(crate::support::VIN_PATH, vec![("authorization", token)], body).await.json();
        let asked = ask(&stack, &payer, question()).await;
        let tokyo = "Asia/Tokyo".parse().unwrap();
        let local = base::hours::for_people(clock.now().plus(Duration::from_secs(600)), Some(&tokyo));
        for approval in [&held["approval"], &asked] {
            let mail = mail_about(&stack, approval);
            assert!(mail.contains(&format!("Answer until: {local}\r\n")), "{mail}");
            let page = payer.client.get(&link(&stack, approval), &[]).await.text;
            assert!(page.contains(&format!("<dd>{local}</dd>")), "{page}");
        }
    });
}

/// Whoever the policy names now is asked, and nobody else: not whom it named when the call was held.
#[test]
fn a_replaced_approver_decides_nothing() {
    run(async {
        const OLD: &str = "old@example.com";
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 100_000).await;
        let token = payer.token(&stack).await;
        let name = async |email: &str| {
            let rules = json!([{"tool": "*", "action": "require_approval", "when": {"always": true}}]);
            let policy = json!({"rules": rules, "approver": {"email": email}});
            let put = send(&stack, &payer, "PUT", POLICY, policy).await;
            assert_eq!(put.status, 200, "{}", put.text);
        };
        let call = |year: u32, approval: Option<&Value>| {
            let mut headers = vec![("authorization", token.clone())];
            headers.extend(approval.map(|id| ("x-approval-id", id.as_str().expect("an id").to_owned())));
            let body = json!({"vin": crate::support::VIN, "model_year": year});
            payer.clone().call(crate::support::VIN_PATH, headers, body)
        };
        let held = async |year: u32| {
            let held = call(year, None).await;
            assert_eq!(held.error(), (403, "approval_required".to_owned()), "{}", held.text);
            held.json()["approval"].clone()
        };
        let status = async |approval: &Value| {
            let id = approval["approval_id"].as_str().expect("an id");
            get(&stack, &payer, &format!("{APPROVALS}/{id}")).await["status"].clone()
        };
        let is_turned_away = async |link: &str| {
            let page = payer.client.get(link, &[]).await;
            assert!(page.text.contains("<h1>You are no longer asked</h1>"), "{}", page.text);
            assert!(!page.text.contains("<form"), "{}", page.text);
            let refused = decide(&payer, link, "decision=approve").await;
            assert_eq!(refused.status, 409, "{}", refused.text);
            assert!(refused.text.contains("You are no longer asked"), "{}", refused.text);
        };

        name(OLD).await;
        let first = held(2001).await;
        let old_link = link_to(&stack, &first, OLD);
        assert!(payer.client.get(&old_link, &[]).await.text.contains("<form"));
        name(APPROVER).await;
        is_turned_away(&old_link).await;
        assert_eq!(status(&first).await, "pending");

        // The same call asks the new one, once.
        let second = held(2001).await;
        assert_ne!(second["approval_id"], first["approval_id"]);
        assert_eq!(held(2001).await["approval_id"], second["approval_id"]);
        assert_eq!((status(&first).await, mails(&stack)), (json!("cancelled"), 2));
        is_turned_away(&old_link).await;
        assert_eq!(decide(&payer, &link(&stack, &second), "decision=approve").await.status, 200);
        let done = call(2001, Some(&second["approval_id"])).await;
        assert_eq!(done.status, 200, "{}", done.text);

        // Of a decision and a change of the policy at once, the first counts.
        for year in 2002..2006 {
            name(OLD).await;
            let approval = held(year).await;
            let link = link_to(&stack, &approval, OLD);
            let (decided, ()) = tokio::join!(decide(&payer, &link, "decision=approve"), name(APPROVER));
            let expected = if decided.status == 200 { "approved" } else { "pending" };
            assert_eq!(status(&approval).await, expected, "{}: {}", decided.status, decided.text);
        }

        // Without a policy, nobody is asked.
        let last = held(2006).await;
        assert_eq!(send(&stack, &payer, "DELETE", POLICY, Value::Null).await.status, 200);
        is_turned_away(&link(&stack, &last)).await;
        assert_eq!(status(&last).await, "pending");
    });
}

/// A call that was held while nobody could be asked is asked about once the policy names somebody.
#[test]
fn an_approver_who_is_named_later_is_asked() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 100_000).await;
        let token = payer.token(&stack).await;
        let rules = json!([{"tool": "*", "action": "require_approval", "when": {"amount_over_usdc": "0.001"}}]);
        let held = async || {
            let headers = vec![("authorization", token.clone())];
            let body = json!({"vin": crate::support::VIN});
            payer.clone().call(crate::support::VIN_PATH, headers, body).await.json()["approval"].clone()
        };
        assert_eq!(send(&stack, &payer, "PUT", POLICY, json!({"rules": rules})).await.status, 200);
        let unsent = held().await;
        assert_eq!((&unsent["notified"], &unsent["notify_error"]), (&json!(false), &json!("no_approver")));
        assert_eq!(held().await["approval_id"], unsent["approval_id"]);
        assert_eq!(mails(&stack), 0);

        put_rules(&stack, &payer, rules).await;
        let sent = held().await;
        assert_eq!((&sent["notified"], mails(&stack)), (&json!(true), 1), "{sent}");
        assert_eq!(held().await["approval_id"], sent["approval_id"]);
        let page = payer.client.get(&link(&stack, &sent), &[]).await.text;
        assert!(page.contains("<dd>amount over 0.001 USDC (rule_1)</dd>"), "{page}");
        let decided = decide(&payer, &link(&stack, &sent), "decision=approve").await;
        assert!(decided.text.contains("<h1>You approved this</h1>"), "{}", decided.text);
    });
}

/// A dry run, a backtest and the call itself agree: on a call that is held, and on a top-up, which no rule judges.
#[test]
fn a_dry_run_tells_what_the_policy_does_to_the_call() {
    run(async {
        const TOP_UP: &str = "/v1/credits/top-up";
        let stack = stack().await;
        let payer = Payer::with(&stack, 1_000_000).await;
        payer.give_credits(&stack, 100_000).await;
        let token = payer.token(&stack).await;
        let rule = |action: &str| json!([{"tool": "*", "action": action, "when": {"always": true}}]);
        put_rules(&stack, &payer, rule("require_approval")).await;
        let call = |rehearse: bool, approval: Option<&Value>| {
            let mut headers = vec![("authorization", token.clone())];
            headers.extend(rehearse.then(|| ("x-dry-run", "true".to_owned())));
            headers.extend(approval.map(|id| ("x-approval-id", id.as_str().expect("an id").to_owned())));
            payer.clone().call(crate::support::VIN_PATH, headers, json!({"vin": crate::support::VIN}))
        };
        let told = call(true, None).await.json();
        let refusal = &told["refusal"];
        assert_eq!((&told["would_be_accepted"], &refusal["status"]), (&json!(false), &json!(403)), "{told}");
        assert_eq!((&refusal["error"], &refusal["approval_id"]), (&json!("approval_required"), &Value::Null), "{told}");
        assert_eq!(told["policy"], json!({"verdict": "require_approval", "rule": "rule_1"}));
        assert_eq!((get(&stack, &payer, APPROVALS).await, mails(&stack)), (json!({"approvals": []}), 0));

        let held = call(false, None).await.json();
        let id = &held["approval_id"];
        assert_eq!(&call(true, None).await.json()["refusal"]["approval_id"], id, "the one that waits");
        assert_eq!(call(true, Some(id)).await.json()["refusal"]["error"], "approval_invalid", "not decided yet");
        assert_eq!(decide(&payer, &link(&stack, &held["approval"]), "decision=approve").await.status, 200);
        assert_eq!(call(true, Some(id)).await.json()["would_be_accepted"], true);
        assert_eq!(call(false, Some(id)).await.status, 200, "and a dry run does not use it up");

        put_rules(&stack, &payer, rule("deny")).await;
        assert_eq!(call(true, None).await.json()["refusal"]["error"], "action_denied_by_policy");
        let proof = payer.proof("write");
        let headers = [("x-agent-proof", proof.as_str()), ("x-dry-run", "true")];
        let told = payer.client.post(TOP_UP, &headers, &json!({"amount": "0.10"})).await.json();
        assert_eq!((&told["would_be_accepted"], &told["policy"]["verdict"]), (&json!(true), &json!("none")), "{told}");
        let bought = payer.buy(TOP_UP, &json!({"amount": "0.10"})).await;
        assert_eq!(bought.status, 200, "{}", bought.text);
        let tried = send(&stack, &payer, "POST", &format!("{POLICY}/backtest"), json!({"rules": rule("deny")})).await;
        let tried = &tried.json()["data"];
        assert_eq!((&tried["denied"], &tried["allowed"]), (&json!(1), &json!(1)), "{tried}");
    });
}

/// Ten identical signed copies of an approved call: one charge, and an answer or a pending state for every copy.
#[test]
fn copies_of_an_approved_call_get_the_same_answer() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        put_rules(&stack, &payer, json!([{"tool": "*", "action": "require_approval", "when": {"always": true}}])).await;
        let payment = crate::support::payer::header(&crate::support::payer::bare(&payer.authorize(5_000)));
        let call = |approval: Option<&str>| {
            let mut headers = vec![("x-payment", payment.clone())];
            headers.extend(approval.map(|id| ("x-approval-id", id.to_owned())));
            payer.clone().call(crate::support::VIN_PATH, headers, json!({"vin": crate::support::VIN}))
        };
        let held = call(None).await.json();
        let id = held["approval_id"].as_str().expect("held").to_owned();
        assert_eq!(decide(&payer, &link(&stack, &held["approval"]), "decision=approve").await.status, 200);
        let answers = join_all((0..10).map(|_| call(Some(&id)))).await;
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert!(statuses.iter().all(|status| [200, 202].contains(status)), "{statuses:?}");
        assert_eq!(payer.balance(&stack).await, 995_000, "charged once");
    });
}

/// Ten copies of an approved call, which a token pays by the same quote: one charge, and the same call for all.
#[test]
fn copies_of_an_approved_call_by_quote_get_the_same_answer() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 100_000).await;
        let token = payer.token(&stack).await;
        put_rules(&stack, &payer, json!([{"tool": "*", "action": "require_approval", "when": {"always": true}}])).await;
        let body = json!({"vin": crate::support::VIN});
        let quoted = payer.ask(crate::support::VIN_PATH, &body).await.json();
        let quote = quoted["quote_id"].as_str().unwrap_or_else(|| panic!("a quote: {quoted}")).to_owned();
        let call = |approval: Option<&str>| {
            let mut headers = vec![("authorization", token.clone()), ("x-quote-id", quote.clone())];
            headers.extend(approval.map(|id| ("x-approval-id", id.to_owned())));
            payer.clone().call(crate::support::VIN_PATH, headers, body.clone())
        };
        let held = call(None).await.json();
        let id = held["approval_id"].as_str().unwrap_or_else(|| panic!("held: {held}")).to_owned();
        assert_eq!(decide(&payer, &link(&stack, &held["approval"]), "decision=approve").await.status, 200);
        let answers = join_all((0..10).map(|_| call(Some(&id)))).await;
        assert!(answers.iter().all(|answer| [200, 202].contains(&answer.status)), "{answers:?}");
        let account = crate::support::books::audit(&stack.app.db, payer.agent()).await;
        assert_eq!(account.credits.micro(), 95_000, "charged once");
    });
}

/// A platform completes a checkout that needs the buyer's approval: held, approved, completed, charged once.
#[test]
fn an_approved_checkout_is_completed_and_charged_once() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 5_000_000).await;
        Shop::open(&stack, "asks-first").await;
        put_rules(&stack, &payer, json!([{"tool": "soul", "action": "require_approval", "when": {"always": true}}]))
            .await;
        for platform in [Platform::acp(&stack), Platform::simple(&stack)] {
            let had = payer.balance(&stack).await;
            let session = platform.open("agora-soul-asks-first-summary", json!({"text": "some words"})).await;
            let body = payment(&session, &payer);
            let held = platform.complete(&session, &body).await;
            assert_ne!(platform.read(&session).await["status"], "completed", "{}", held.text);
            let listed = get(&stack, &payer, "/v1/approvals?status=pending").await;
            let approval = &listed["approvals"][0];
            let id = approval["approval_id"].as_str().unwrap_or_else(|| panic!("held: {}", held.text));
            assert!(held.text.contains(id), "the platform is told which: {}", held.text);
            // Who approves it is told whom he pays, and for what.
            let summary = "Service summary of the soul asks-first (soul) for 0.500000 USDC";
            assert_eq!(approval["action_summary"], summary);
            assert!(mail_about(&stack, approval).contains(summary));
            let page = payer.client.get(&link(&stack, approval), &[]).await.text;
            assert!(page.contains(summary) && page.contains("<dd>Summary by Soul asks-first</dd>"), "{page}");
            let too_early = platform.with_approval(id).complete(&session, &body).await;
            assert_ne!(platform.read(&session).await["status"], "completed", "{}", too_early.text);
            assert_eq!(payer.balance(&stack).await, had);
            assert_eq!(decide(&payer, &link(&stack, approval), "decision=approve").await.status, 200);
            let done = join_all((0..4).map(|_| {
                let platform = platform.with_approval(id);
                let (session, body) = (session.clone(), body.clone());
                async move { platform.complete(&session, &body).await }
            }));
            let done = done.await;
            assert!(done.iter().any(|answer| answer.status == 200), "{done:?}");
            assert_eq!(platform.read(&session).await["status"], "completed", "{done:?}");
            assert_eq!(payer.balance(&stack).await, had - 500_000, "charged once");
        }
    });
}
