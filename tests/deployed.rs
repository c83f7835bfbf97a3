//! Things that a function does rarely and that missing permissions would have broken in a deployment. Each test makes a
//! function ask AWS for something that no other test makes it ask for.

use gate::approvals::store::MAX_PENDING;
use ledger::webhooks::endpoint::MAX_ENDPOINTS;
use platform::auth::token::MAX_ACTIVE;
use serde_json::{Value, json};

use crate::mcp_calls;
use crate::souls_market::{Shop, buy, read};
use crate::support::platform::payment;
use crate::support::receiver::Receiver;
use crate::support::{Answer, Payer, Platform, VIN, VIN_PATH, eventually, run, stack, stack_with};
use crate::voice::Agent;

/// A seller's worker delivers a result that is too large for an item, and a file. Both are blobs, written by `seller`
/// and read by the functions that show the job.
#[test]
fn everyone_with_access_can_read_a_large_result_of_a_worker() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "delivers-much").await;
        let payer = Payer::new(&stack).await;
        let job = buy(&shop, &payer, "a long text").await;
        assert_eq!(shop.claim(&job).await.status, 200);
        let put = shop.raw("PUT", &format!("/jobs/{job}/files/a.txt"), "text/plain", b"a file".to_vec()).await;
        assert_eq!(put.status, 200, "{}", put.text);
        let result = "many words ".repeat(2_000);
        let done = shop.send("POST", &format!("/jobs/{job}/complete"), &json!({"result": result})).await;
        assert_eq!(done.status, 200, "{}", done.text);

        assert_eq!(read(&payer, &job).await.json()["job"]["result"], result.as_str());
        let file = read(&payer, &format!("{job}/files/a.txt")).await;
        assert_eq!((file.status, file.text.as_str()), (200, "a file"));
        let shown = shop.get(&format!("/jobs/{job}")).await;
        assert_eq!(shown.json()["job"]["result"], result.as_str(), "{}", shown.text);
        let listed = shop.get("/jobs?status=completed").await;
        assert_eq!(listed.json()["jobs"][0]["id"], job.as_str(), "{}", listed.text);
        let receipt = payer.get("/v1/analytics/receipts").await.json()["receipts"][0]["receipt_id"].clone();
        let explained = payer.get(&format!("/v1/receipts/{}/explain", receipt.as_str().unwrap())).await;
        assert_eq!(explained.status, 200, "{}", explained.text);
    });
}

/// A failed request frees its idempotency key: sent again, it gets the same refusal, and not "in progress".
#[test]
fn idempotency_keys_of_failed_requests_are_free_again() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let named = async |path: &str, body: &Value| -> Answer {
            let proof = payer.proof("write");
            let headers = [("x-agent-proof", proof.as_str()), ("idempotency-key", "the same every time")];
            payer.client.post(path, &headers, body).await
        };
        let (tokens, approvals, hooks) = ("/v1/agents/me/access-tokens", "/v1/approvals", "/v1/webhooks");
        let question = json!({"action_summary": "Buy a boat", "approver": {"email": "alice@example.com"}});
        let hook = json!({"url": "https://example.com/hook"});
        for _ in 0..MAX_ACTIVE {
            payer.token(&stack).await;
        }
        for _ in 0..MAX_PENDING {
            assert_eq!(payer.change("POST", approvals, &question).await.status, 201);
        }
        for _ in 0..MAX_ENDPOINTS {
            assert_eq!(payer.change("POST", hooks, &hook).await.status, 201);
        }
        for (path, body, code) in [
            (tokens, json!({}), "too_many_access_tokens"),
            (approvals, question, "too_many_pending_approvals"),
            (hooks, hook, "too_many_webhooks"),
        ] {
            for time in 1..=2 {
                assert_eq!(named(path, &body).await.error(), (409, code.to_owned()), "{path}, {time}");
            }
        }
    });
}

/// Any function that spends from a budget looks up the owner's webhooks and notifies them.
#[test]
fn budget_warnings_reach_webhooks_from_every_selling_function() {
    run(async {
        let receiver = Receiver::start().await;
        let stack = stack_with(|options| options.with("LOCAL_FETCH_ALLOW", receiver.allowed())).await;
        let shop = Shop::open(&stack, "costs-a-budget").await;
        let (_, phone) = Agent::answering(&stack, 1_000_000, json!({})).await;
        let selling = ["knowledge", "mcp", "souls", "checkout", "messaging", "voice"];
        for (number, function) in selling.into_iter().enumerate() {
            let payer = Payer::with(&stack, 10_000_000).await;
            let hook = json!({"url": receiver.url, "events": ["budget.warning"]});
            assert_eq!(payer.change("POST", "/v1/webhooks", &hook).await.status, 201);
            let budget = json!({"daily": 10, "alert_at": 0.0001});
            assert_eq!(payer.change("PUT", "/v1/agents/me/budgets", &budget).await.status, 200);
            let bought = match function {
                "knowledge" => Some(payer.buy(VIN_PATH, &json!({"vin": VIN})).await),
                "souls" => Some(payer.buy(&shop.execute_path(), &json!({"input": {"text": "some words"}})).await),
                "messaging" => {
                    let body = json!({"to_number": phone.number, "message": "Two loaves, please."});
                    Some(payer.buy("/v1/tools/sms/send", &body).await)
                }
                "voice" => {
                    let objective = "Ask what bread costs";
                    let body =
                        json!({"objective": objective, "target_number": phone.number, "max_duration_minutes": 1});
                    Some(payer.buy("/v1/tools/voice/call", &body).await)
                }
                "checkout" => {
                    let platform = Platform::acp(&stack);
                    let item = format!("agora-soul-{}-summary", shop.slug);
                    let session = platform.open(&item, json!({"text": "some words"})).await;
                    Some(platform.complete(&session, &payment(&session, &payer)).await)
                }
                _ => {
                    payer.give_credits(&stack, 1_000_000).await;
                    let token = payer.token(&stack).await;
                    let headers = [("authorization", token.as_str())];
                    mcp_calls::call(&payer.client, &headers, "agora_vin_decode", json!({"vin": VIN}), json!({})).await;
                    None
                }
            };
            assert!(bought.as_ref().is_none_or(|answer| [200, 202].contains(&answer.status)), "{function}: {bought:?}");
            let told = || async { (receiver.count() > number).then_some(()) };
            eventually(&format!("the warning of what {function} sold"), told).await;
        }
    });
}
