//! The owner's view of spending: receipts, value and returns, the audit, an export that can be verified offline, and
//! the explanation of a charge. All calls here were really paid.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::digest::{random, sha256};
use base::ids::{ReceiptId, RequestId};
use base::money::Usdc;
use evm::hex0x;
use gate::insights::verify::{self, Keys};
use ledger::receipt::{self, ExecutionStatus, Receipt, ReceiptStatus};
use local::Stack;
use platform::auth::token;
use serde_json::{Value, json};

use crate::support::{Answer, Payer, READ_PATH, VIN, VIN_PATH, eventually, run, stack};

impl Payer {
    /// Sends JSON with a proof of this scope.
    async fn send_json(&self, method: &str, path: &str, scope: &str, body: &Value) -> Answer {
        let proof = self.proof(scope);
        let headers = [("content-type", "application/json"), ("x-agent-proof", proof.as_str())];
        self.client.send(method, path, &headers, body.to_string()).await.expect("an answer")
    }

    /// Buys a vehicle lookup. Returns the ids of its receipt and its request.
    async fn buy_lookup(&self, more: Value) -> (String, String) {
        let mut body = json!({"vin": VIN});
        platform::http::error::merge(&mut body, more);
        let answer = self.buy(VIN_PATH, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let data = &answer.json()["data"];
        let id = |name: &str| data[name].as_str().expect("an id").to_owned();
        (id("receipt_id"), id("request_id"))
    }

    /// Buys a read of an unknown host, and waits until it was paid back.
    async fn buy_failing_read(&self) -> Value {
        let accepted = self.buy(READ_PATH, &json!({"url": "http://no-such-host.invalid/", "memo": "try"})).await;
        self.finished(accepted.json()["request_id"].as_str().expect("an id")).await
    }
}

/// The secret of a new access token of the payer.
async fn token_of(stack: &Stack, payer: &Payer) -> String {
    let prefix = &stack.config.token_prefixes[0];
    let now = Clock::system().now();
    let minted = token::mint(&stack.app.db, prefix, payer.address(), None, None, now).await.expect("a token");
    format!("Bearer {}", minted.expect("room for a token").secret)
}

#[test]
fn receipts_are_listed_and_filtered_per_agent() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let attached = json!({
            "memo": "=a car", "decisionContext": {"goal": "sell", "goalId": "g1", "confidence": 0.1},
            "valueTag": {"type": "lead", "amount": 2.5},
        });
        let (first, request) = payer.buy_lookup(attached).await;
        let between = Clock::system().now().plus(Duration::from_millis(1));
        tokio::time::sleep(Duration::from_millis(5)).await;
        let (second, _) = payer.buy_lookup(json!({})).await;

        let listed = payer.get("/v1/analytics/receipts").await.json();
        let members: Vec<&str> = listed.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members, ["count", "has_more", "receipts", "truncated"]);
        assert_eq!(ids(&listed), [second.clone(), first.clone()], "newest first");
        let receipt = &listed["receipts"][1];
        for (member, value) in [
            ("id", json!(first)),
            ("job_id", json!(request)),
            ("agent_id", json!(payer.agent())),
            ("category", json!("data")),
            ("subcategory", json!("vin_decode")),
            ("amount_usdc", json!("0.005000")),
            ("status", json!("settled")),
            ("execution_status", json!("completed")),
            ("goal_id", json!("g1")),
            ("memo", json!("=a car")),
            ("decisionContext", json!({"goal": "sell", "goalId": "g1", "confidence": 0.1})),
            ("value_tag", json!({"type": "lead", "amount": 2.5, "label": null, "status": "pending"})),
            ("alg", json!("Ed25519")),
            ("soul_agent_id", Value::Null),
            ("provider_cost", json!("0.000000")),
        ] {
            assert_eq!(receipt.get(member), Some(&value), "{member}");
        }

        for (query, expected) in [
            ("limit=1".to_owned(), vec![&second]),
            ("limit=1&offset=1".to_owned(), vec![&first]),
            ("category=data&limit=1&offset=1".to_owned(), vec![&first]),
            ("category=commerce".to_owned(), vec![]),
            ("period=1".to_owned(), vec![&second, &first]),
            (format!("since={between}"), vec![&second]),
            (format!("until={between}"), vec![&first]),
            (format!("since={between}&until={between}"), vec![]),
        ] {
            let page = payer.get(&format!("/v1/analytics/receipts?{query}")).await.json();
            assert_eq!(ids(&page).iter().collect::<Vec<_>>(), expected, "{query}");
            assert_eq!(page["has_more"], json!(query == "limit=1"), "{query}");
        }
        for query in [
            "limit=0",
            "limit=101",
            "offset=-1",
            "period=366",
            "category=cars",
            "since=soon",
            "limit=x",
            "limt=2",
            "until=2020-01-01T00:00:00Z&period=1",
            "until=2020-01-01T00:00:00Z&since=2021-01-01T00:00:00Z",
        ] {
            let answer = payer.get(&format!("/v1/analytics/receipts?{query}")).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{query}");
            assert_eq!(answer.json()["details"][0]["path"], query.split('=').next().unwrap());
        }
        let stranger = Payer::with(&stack, 0).await;
        assert_eq!(ids(&stranger.get("/v1/analytics/receipts").await.json()), [""; 0]);
        let bearer = token_of(&stack, &payer).await;
        let answer = payer.client.get("/v1/analytics/receipts", &[("authorization", &bearer)]).await;
        assert_eq!(ids(&answer.json()).len(), 2, "a token reads receipts");
    });
}

/// The goal is read in the spelling of receipts too.
#[test]
fn a_goal_has_two_spellings_and_one_value() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        for (context, goal) in [
            (json!({"goal_id": "g1"}), json!("g1")),
            (json!({"goalId": "g2", "goal_id": "g2"}), json!("g2")),
            (json!({"goal": "sell"}), Value::Null),
        ] {
            payer.buy_lookup(json!({"decisionContext": context})).await;
            let receipts = payer.get("/v1/analytics/receipts?limit=1").await.json();
            assert_eq!(receipts["receipts"][0]["goal_id"], goal, "{context}");
        }
        let two = json!({"vin": VIN, "decisionContext": {"goalId": "g1", "goal_id": "g2"}});
        let refused = payer.client.post(VIN_PATH, &[], &two).await;
        let path = &refused.json()["details"][0]["path"];
        assert_eq!((refused.status, path), (400, &json!("decisionContext.goal_id")), "{}", refused.text);
    });
}

#[test]
fn value_counts_after_its_owner_confirms_it() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let attached = json!({"decisionContext": {"goalId": "g1"}, "valueTag": {"type": "lead", "amount": 1}});
        let (receipt, request) = payer.buy_lookup(attached).await;
        let path = format!("/v1/analytics/receipts/{receipt}/value");
        let rocs = || async { payer.get("/v1/analytics/rocs?period=1").await.json() };
        assert_eq!(rocs().await["rocs"], json!(0.0), "what was only attached does not count");

        // The request's id works as well, and a repetition changes nothing.
        for target in [path.clone(), path.replace(&receipt, &request)] {
            let tag = json!({"type": "revenue", "amount": 0.02, "label": "deal"});
            let answer = payer.send_json("PATCH", &target, "write", &tag).await;
            let expected = json!({"type": "revenue", "amount": 0.02, "label": "deal", "status": "pending"});
            assert_eq!(answer.json(), json!({"success": true, "receipt_id": receipt, "value_tag": expected}));
        }
        let listed = payer.get("/v1/analytics/receipts").await.json();
        assert_eq!(listed["receipts"][0]["value_tag"]["type"], "revenue", "replaces what was attached");

        let bearer = token_of(&stack, &payer).await;
        let confirm = format!("{path}/confirm");
        let answer = payer.client.post(&confirm, &[("authorization", &bearer)], &json!({})).await;
        assert_eq!(answer.error(), (403, "access_tokens_wallet_only".to_owned()));
        let answer = payer.send_json("POST", &confirm, "write", &json!({"amount": 0.01})).await;
        assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "another amount than the one reported");
        let answer = payer.send_json("POST", &confirm, "write", &json!({"amount": 0.02})).await;
        assert_eq!(answer.json()["value_tag"]["status"], "confirmed", "{}", answer.text);
        let sums = rocs().await;
        assert_eq!((&sums["rocs"], &sums["rocs_percent"]), (&json!(4.0), &json!(400.0)), "{sums}");
        assert_eq!((&sums["total_spend"], &sums["total_value"]), (&json!("0.005000"), &json!("0.020000")));

        // The same value again stays confirmed. A token that raises it makes it pending.
        let patch = |amount: f64| {
            let (headers, path) =
                ([("authorization", bearer.clone()), ("content-type", "application/json".to_owned())], path.clone());
            let client = payer.client.clone();
            async move {
                let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let body = json!({"type": "revenue", "amount": amount, "label": "deal"}).to_string();
                client.send("PATCH", &path, &headers, body).await.unwrap().json()["value_tag"]["status"].clone()
            }
        };
        assert_eq!(patch(0.02).await, "confirmed");
        assert_eq!(patch(1_000_000.0).await, "pending");
        assert_eq!(rocs().await["total_value"], "0.000000");

        // An outcome of the goal is replaced, confirmed and counted.
        let outcome = |amount: f64| json!({"goal_id": "g1", "type": "savings", "amount": amount});
        let reported = payer.send_json("POST", "/v1/analytics/outcomes", "write", &outcome(0.5)).await.json();
        let replaced = payer.send_json("POST", "/v1/analytics/outcomes", "write", &outcome(0.25)).await.json();
        assert_eq!(reported["outcome_id"], replaced["outcome_id"]);
        assert_eq!(reported["outcome"]["created_at"], replaced["outcome"]["created_at"]);
        let confirm = format!("/v1/analytics/outcomes/{}/confirm", replaced["outcome_id"].as_str().unwrap());
        assert_eq!(
            payer.send_json("POST", &confirm, "write", &json!({})).await.json()["outcome"]["status"],
            "confirmed"
        );
        let goals = payer.get("/v1/analytics/rocs/by-goal?goal_id=g1").await.json();
        let goal = &goals["goals"][0];
        assert_eq!((&goal["spend"], &goal["value"]), (&json!("0.005000"), &json!("0.250000")), "{goals}");
        assert_eq!((&goal["rocs"], &goal["receipt_count"]), (&json!(50.0), &json!(1)));
        assert_eq!(goal["outcomes"][0]["amount"], json!(0.25));
        assert_eq!(payer.get("/v1/analytics/rocs/by-goal?goal_id=g2").await.json()["goals"], json!([]));

        // Another agent's receipt, and invalid values.
        let stranger = Payer::with(&stack, 0).await;
        let good = json!({"type": "revenue", "amount": 1});
        for id in [receipt.as_str(), request.as_str(), "rcpt_x"] {
            let path = format!("/v1/analytics/receipts/{id}/value");
            assert_eq!(
                stranger.send_json("PATCH", &path, "write", &good).await.error(),
                (404, "receipt_not_found".to_owned())
            );
        }
        for (body, at) in [
            (json!({"type": "revenue"}), "amount"),
            (json!({"type": "revenue", "amount": 0}), "amount"),
            (json!({"type": "revenue", "amount": -1}), "amount"),
            (json!({"type": "revenue", "amount": 1_000_001}), "amount"),
            (json!({"type": "revenue", "amount": 0.0000001}), "amount"),
            (json!({"type": "revenue", "amount": "1"}), "amount"),
            (json!({"type": "luck", "amount": 1}), "type"),
            (json!({"type": "lead", "amount": 1, "label": "x".repeat(201)}), "label"),
        ] {
            let answer = payer.send_json("PATCH", &path, "write", &body).await;
            assert_eq!((answer.status, &answer.json()["details"][0]["path"]), (400, &json!(at)), "{body}");
        }
        let too_fine = json!({"vin": VIN, "valueTag": {"type": "lead", "amount": 0.0000001}});
        let answer = payer.client.post(VIN_PATH, &[], &too_fine).await;
        assert_eq!((answer.status, &answer.json()["details"][0]["path"]), (400, &json!("valueTag.amount")));
        let unscoped = payer.send_json("PATCH", &path, "read", &good).await;
        assert_eq!(unscoped.json()["reason"], "wrong_scope");
    });
}

#[test]
fn spend_excludes_what_was_paid_back() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        payer.buy_lookup(json!({})).await;
        payer.buy_failing_read().await;
        let spent = payer.get("/v1/analytics/spend/breakdown?subcategories=true").await.json();
        let expected = json!({
            "categories": [{
                "category": "data", "total": "0.005000", "count": 1, "pct": 100.0, "total_usdc": "0.005000", "call_count": 1,
                "subcategories": [{"name": "vin_decode", "total_usdc": "0.005000", "call_count": 1}],
            }],
            "total": "0.005000", "total_spent_usdc": "0.005000", "period_days": 30, "truncated": false,
        });
        assert_eq!(spent, expected);
    });
}

/// A top-up is not spend; a token's paid call is.
#[test]
fn top_ups_are_not_spend_and_token_calls_are() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let bought = payer.buy("/v1/credits/top-up", &json!({"amount": 0.5})).await;
        assert_eq!(bought.status, 200, "{}", bought.text);
        let bearer = token_of(&stack, &payer).await;
        let answer = payer.client.post(VIN_PATH, &[("authorization", &bearer)], &json!({"vin": VIN})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let receipt = answer.json()["data"]["receipt_id"].as_str().expect("an id").to_owned();
        let spent = payer.get("/v1/analytics/spend/breakdown").await.json();
        assert_eq!((&spent["total"], &spent["categories"][0]["count"]), (&json!("0.005000"), &json!(1)), "{spent}");

        let explained = payer.get(&format!("/v1/receipts/{receipt}/explain")).await.json();
        for (pointer, value) in [
            ("/receipt/credits_used_usdc", json!("0.005000")),
            ("/payment/credits_usdc", json!("0.005000")),
            ("/payment/access_token_id", explained["receipt"]["access_token_id"].clone()),
            ("/payment/settlement_status", json!("not_required")),
            ("/payment/nonce", Value::Null),
            ("/entries/0/kind", json!("charge")),
            ("/entries/0/credits_usdc", json!("-0.005000")),
            ("/refund", Value::Null),
        ] {
            assert_eq!(explained.pointer(pointer), Some(&value), "{pointer} of {explained}");
        }
        assert!(explained["payment"]["access_token_id"].is_string());
        let jwks = eventually("the keys", || async {
            let jwks = payer.client.get("/.well-known/jwks.json", &[]).await;
            jwks.json()["keys"].as_array().is_some_and(|keys| !keys.is_empty()).then_some(jwks.text)
        })
        .await;
        let export = payer.get("/v1/audit/export?format=csv").await.text;
        let verified = verify::export(&export, &Keys::parse(&jwks).unwrap()).unwrap();
        assert_eq!((verified.rows, verified.signed), (2, 2));
    });
}

/// Pages of two while receipts are added: every receipt appears once, in order.
#[test]
fn audit_pages_are_stable_while_receipts_are_added() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let mut bought = Vec::new();
        for _ in 0..3 {
            bought.push(payer.buy_lookup(json!({})).await.0);
        }
        let mut seen = Vec::new();
        let mut path = "/v1/audit/receipts?limit=2".to_owned();
        loop {
            let page = payer.get(&path).await.json();
            assert_eq!(page["count"], json!(page["receipts"].as_array().unwrap().len()));
            seen.extend(ids(&page));
            if bought.len() < 6 {
                bought.push(payer.buy_lookup(json!({})).await.0);
            }
            match page["next_cursor"].as_str() {
                Some(cursor) => path = format!("/v1/audit/receipts?limit=2&cursor={cursor}"),
                None => break assert_eq!(page["has_more"], false),
            }
        }
        assert!(seen.len() > 3, "rows that were added meanwhile are found");
        assert_eq!(seen, bought[..seen.len()]);

        for cursor in ["x", "MQ", &"A".repeat(5000)] {
            let answer = payer.get(&format!("/v1/audit/receipts?cursor={cursor}")).await;
            assert_eq!(answer.error(), (400, "invalid_cursor".to_owned()), "{cursor}");
        }
        for path in [
            "audit/receipts?limit=0",
            "audit/receipts?limit=501",
            "audit/receipts?limt=1",
            "audit/export?limt=3",
            "analytics/rocs?perid=7",
            "analytics/rocs/by-goal?goal=g1",
            "analytics/spend/breakdown?perid=7",
            "requests?limt=1",
            "agents/me/access-tokens?activ=true",
        ] {
            let answer = payer.get(&format!("/v1/{path}")).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{path}");
        }
        let bearer = token_of(&stack, &payer).await;
        for path in ["/v1/audit/receipts", "/v1/audit/export"] {
            let answer = payer.client.get(path, &[("authorization", &bearer)]).await;
            assert_eq!(answer.error(), (403, "access_tokens_wallet_only".to_owned()));
            assert_eq!(payer.client.get(path, &[]).await.error(), (401, "proof_required".to_owned()));
        }
    });
}

/// An export is joined from pages and verified with only the published keys, then tampered with.
#[test]
fn an_export_can_be_verified_offline() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let stranger = Payer::new(&stack).await;
        let hostile = json!({"memo": "a, \"b\"\n'c", "decisionContext": {"goalId": "=1+1\n,\"x\"", "confidence": 0.1}});
        let mut bought = vec![payer.buy_lookup(hostile).await.0];
        payer.buy_failing_read().await;
        bought.push(payer.buy_lookup(json!({})).await.0);
        let jwks = eventually("the keys", || async {
            let jwks = payer.client.get("/.well-known/jwks.json", &[]).await;
            jwks.json()["keys"].as_array().is_some_and(|keys| !keys.is_empty()).then_some(jwks.text)
        })
        .await;
        let keys = Keys::parse(&jwks).unwrap();

        for format in ["csv", "jsonl"] {
            let (mut text, mut path) = (String::new(), format!("/v1/audit/export?format={format}&limit=1"));
            let last_hash = loop {
                let page = payer.get(&path).await;
                assert_eq!((page.status, page.header("x-export-rows")), (200, Some("1")), "{}", page.text);
                text.push_str(&page.text);
                match page.header("x-next-cursor") {
                    Some(cursor) => path = format!("/v1/audit/export?format={format}&limit=1&cursor={cursor}"),
                    None => break page.header("x-export-hash").unwrap().to_owned(),
                }
            };
            let whole = payer.get(&format!("/v1/audit/export?format={format}")).await;
            assert_eq!(whole.text, text, "pages put together are the whole");
            let verified = verify::export(&text, &keys).unwrap();
            assert_eq!((verified.rows, verified.signed, verified.pending), (3, 3, 0));
            assert_eq!(verified.last_hash, last_hash);

            let file = TestFile::of(format, &text);
            let published = format!("{}/.well-known/jwks.json", stack.base_url);
            let (code, said) = verifier(&file.0, &published).await;
            assert_eq!(code, Some(0), "{said}");
            for part in ["3 receipts", &bought[0], bought.last().unwrap(), &last_hash] {
                assert!(said.contains(part), "{part} in {said}");
            }
            // A header alone, or an empty file, proves nothing.
            for empty in [text.split_inclusive('\n').next().unwrap(), ""] {
                if format == "csv" || empty.is_empty() {
                    let file = TestFile::of(format, empty);
                    assert_eq!(verifier(&file.0, &published).await, (Some(2), String::new()));
                }
            }

            // One digit of an amount is changed.
            let changed = text.replacen("0.002000", "0.001000", 1);
            let wrong = verify::export(&changed, &keys).unwrap_err();
            assert!(wrong.what.contains("digest"), "{wrong}");
            let keys_file = TestFile::of("json", &jwks);
            let file = TestFile::of(format, &changed);
            let (code, said) = verifier(&file.0, &keys_file.0.display().to_string()).await;
            assert_eq!((code, said.trim()), (Some(1), wrong.to_string().as_str()));

            // The row of the failed read is removed, so the last row no longer follows the one before it.
            let kept: Vec<&str> = text.split_inclusive('\n').filter(|line| !line.contains("web_read")).collect();
            let wrong = verify::export(&kept.concat(), &keys).unwrap_err();
            assert_eq!(wrong.receipt_id.as_ref(), bought.last(), "{wrong}");

            let mixed = if format == "csv" { "jsonl" } else { "csv" };
            let cursor = payer.get(&format!("/v1/audit/export?format={format}&limit=1")).await;
            let cursor = cursor.header("x-next-cursor").unwrap();
            for path in [
                format!("/v1/audit/export?format={mixed}&cursor={cursor}"),
                format!("/v1/audit/receipts?cursor={cursor}"),
            ] {
                assert_eq!(payer.get(&path).await.error(), (400, "invalid_cursor".to_owned()));
            }
            let path = format!("/v1/audit/export?format={format}&cursor={cursor}");
            let foreign = stranger.get(&path).await;
            assert_eq!(foreign.error(), (400, "invalid_cursor".to_owned()), "another agent's cursor");
            assert_eq!(foreign.json()["details"][0]["path"], "cursor");
        }
        let other = ledger::signing::ReceiptSigner::from_seed(&[9; 32]).unwrap().public();
        let foreign = Keys::parse(&json!({"keys": [other.jwk()]}).to_string()).unwrap();
        let text = payer.get("/v1/audit/export").await.text;
        assert_eq!(verify::export(&text, &foreign).unwrap_err().line, 1);
    });
}

#[test]
fn a_charge_is_explained_completely() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let (receipt, request) = payer.buy_lookup(json!({"memo": "why", "decisionContext": {"goal": "sell"}})).await;
        let explained = payer.get(&format!("/v1/receipts/{receipt}/explain")).await.json();
        let result = payer.finished(&request).await["result"].clone();
        for (pointer, value) in [
            ("/receipt/receipt_id", json!(receipt)),
            ("/memo", json!("why")),
            ("/decision_context", json!({"goal": "sell"})),
            ("/job/status", json!("completed")),
            ("/job/tool", json!("vin_decode")),
            ("/job/result_digest", json!(hex0x(&sha256(result.to_string().as_bytes()))[2..])),
            ("/payment/payer", json!(payer.address().to_string())),
            ("/payment/amount_usdc", json!("0.005000")),
            ("/payment/network", json!("eip155:84532")),
            ("/payment/transaction", explained["receipt"]["settlement_tx"].clone()),
            ("/payment/settlement_status", json!("settled")),
            ("/refund", Value::Null),
            ("/policy/verdict", json!("none")),
            ("/approval", Value::Null),
        ] {
            assert_eq!(explained.pointer(pointer), Some(&value), "{pointer}");
        }
        assert_eq!(payer.get(&format!("/v1/receipts/{request}/explain")).await.json(), explained, "by request");

        let failed = payer.buy_failing_read().await;
        let explained =
            payer.get(&format!("/v1/receipts/{}/explain", failed["receipt_id"].as_str().unwrap())).await.json();
        assert_eq!(explained["refund"]["amount_usdc"], "0.002000", "{explained}");
        assert_eq!(explained["job"]["error"]["error_code"], failed["error_code"]);
        let stranger = Payer::with(&stack, 0).await;
        for id in [receipt.as_str(), request.as_str(), "nothing", "%FF"] {
            let answer = stranger.get(&format!("/v1/receipts/{id}/explain")).await;
            assert_eq!(answer.error(), (404, "receipt_not_found".to_owned()));
        }
    });
}

/// A receipt that was never paid for.
fn made(payer: &Payer, number: u32, created_at: Timestamp, metadata: Option<String>) -> Receipt {
    let job_id = RequestId::bought_with("test", &[&number.to_be_bytes()]);
    Receipt {
        receipt_id: ReceiptId::of(job_id, created_at),
        agent_id: payer.agent(),
        job_id,
        category: "data".to_owned(),
        subcategory: "vin_decode".to_owned(),
        amount: Usdc::from_micro(1),
        credits: Usdc::ZERO,
        token_id: None,
        provider_cost: None,
        service_fee: None,
        kept: None,
        passed_on: None,
        judged: Default::default(),
        quote: None,
        status: ReceiptStatus::Settled,
        execution_status: ExecutionStatus::Completed,
        settlement_tx: None,
        goal_id: None,
        metadata,
        created_at,
        settled_at: None,
        revision: 1,
        seal: None,
    }
}

/// A page of receipts ends at a size limit, and the next page continues after it.
#[test]
fn receipt_pages_are_bounded_in_size() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        let (db, now) = (&stack.app.db, Clock::system().now());
        let long = json!({"decisionContext": {"x": "\u{1}".repeat(2_700)}}).to_string();
        let receipts: Vec<Receipt> = (0..40).map(|number| made(&payer, number, now, Some(long.clone()))).collect();
        for some in receipts.chunks(20) {
            let writes: Vec<_> = some.iter().map(|receipt| receipt::create(db, receipt).unwrap()).collect();
            db.transact(&writes).await.expect("receipts");
        }
        let mut seen = Vec::new();
        loop {
            let page = payer.get(&format!("/v1/analytics/receipts?limit=100&offset={}", seen.len())).await;
            assert!(page.text.len() <= 256 * 1024, "{} bytes", page.text.len());
            let page = page.json();
            let found = ids(&page);
            assert_eq!(page["count"], json!(found.len()));
            assert!(!found.is_empty());
            seen.extend(found);
            if page["has_more"] == false {
                break;
            }
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 40);
    });
}

/// There are more receipts than one request reads. The answer says that it is truncated, and a shorter period reads
/// only its own receipts.
#[test]
fn analytics_report_when_receipts_were_left_out() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        let now = Clock::system().now();
        let hour = Duration::from_secs(3600);
        let receipts: Vec<Receipt> = (0..10_050u32)
            .map(|number| made(&payer, number, if number < 3 { now.minus(hour) } else { now.minus(hour * 48) }, None))
            .collect();
        let db = &stack.app.db;
        for some in receipts.chunks(100) {
            let writes: Vec<_> = some.iter().map(|receipt| receipt::create(db, receipt).unwrap()).collect();
            db.transact(&writes).await.expect("receipts");
        }
        let get = |query: &str| {
            let (path, payer) = (format!("/v1/analytics/{query}"), payer.clone());
            async move { payer.get(&path).await.json() }
        };
        let day = get("spend/breakdown?period=1").await;
        assert_eq!((&day["total"], &day["truncated"]), (&json!("0.000003"), &json!(false)));
        let month = get("spend/breakdown").await;
        assert_eq!((&month["total"], &month["truncated"]), (&json!("0.010000"), &json!(true)));
        assert_eq!(get("rocs").await["truncated"], true);
        let last = get("receipts?offset=9900&limit=100").await;
        assert_eq!((&last["count"], &last["has_more"], &last["truncated"]), (&json!(100), &json!(false), &json!(true)));
        let rare = get("receipts?category=commerce").await;
        assert_eq!((&rare["count"], &rare["truncated"]), (&json!(0), &json!(true)));
        assert_eq!(get("receipts?category=data&limit=1").await["has_more"], true);

        // The audit is limited only per page.
        let (mut seen, mut path) = (Vec::new(), "/v1/audit/receipts?limit=500".to_owned());
        loop {
            let page = payer.get(&path).await.json();
            seen.extend(ids(&page));
            match page["next_cursor"].as_str() {
                Some(cursor) => path = format!("/v1/audit/receipts?limit=500&cursor={cursor}"),
                None => break,
            }
        }
        assert_eq!(seen.len(), 10_050);
        assert!(seen.is_sorted());
    });
}

fn ids(page: &Value) -> Vec<String> {
    let receipts = page["receipts"].as_array().unwrap_or_else(|| panic!("no receipts: {page}"));
    receipts.iter().map(|receipt| receipt["receipt_id"].as_str().unwrap().to_owned()).collect()
}

/// A temporary file, deleted with the test.
struct TestFile(PathBuf);

impl TestFile {
    fn of(extension: &str, text: &str) -> TestFile {
        let name = format!("agora-export-{}.{extension}", &hex0x(&random::<8>())[2..]);
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("a file");
        TestFile(path)
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs the `verify-receipts` program. Returns its exit code and its output.
async fn verifier(export: &std::path::Path, keys: &str) -> (Option<i32>, String) {
    let program = crate::kill::program("verify-receipts");
    let (export, keys) = (export.to_owned(), keys.to_owned());
    let run = move || Command::new(&program).arg(export).arg(keys).output().expect("cargo build -p local first");
    let output = tokio::task::spawn_blocking(run).await.expect("a run");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}
