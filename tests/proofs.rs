//! Agent proofs on polling, balance and agents/me: fresh, single use, and bound to the agent.

use base::clock::Clock;
use serde_json::{Value, json};

use crate::support::{Answer, Payer, VIN, VIN_PATH, run, stack};

const ROUTES: [&str; 3] = ["/v1/agents/me", "/v1/tools/balance", "/v1/requests/00000000-0000-8000-8000-000000000000"];

#[test]
fn a_proof_is_required_and_valid_once() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        for route in ROUTES {
            let (found, missing) = if route.contains("requests") { (404, "not_found") } else { (200, "") };
            let answer = payer.client.get(route, &[]).await;
            assert_eq!(answer.error(), (401, "proof_required".to_owned()), "{route}");
            let proof = payer.proof("read");
            let answer = payer.client.get(route, &[("x-agent-proof", &proof)]).await;
            assert_eq!(answer.status, found, "{route}: {}", answer.text);
            assert_eq!(answer.json()["error"].as_str().unwrap_or_default(), missing);
            let answer = payer.client.get(route, &[("x-agent-proof", &proof)]).await;
            assert_eq!(
                (answer.error().1.as_str(), &answer.json()["reason"]),
                ("invalid_proof", &json!("already_used")),
                "{route}"
            );
        }
        let me = payer.get("/v1/agents/me").await.json();
        let expected =
            json!({"agent_id": payer.agent(), "wallet_address": payer.address().to_string(), "auth_mode": "wallet"});
        assert_eq!(me, json!({"success": true, "data": expected}));
    });
}

#[test]
fn bad_proofs_are_refused_by_reason_and_use_up_no_nonce() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let stranger = Payer::with(&stack, 0).await;
        let now = Clock::system().now().secs();
        let stranger_address = stranger.address().to_string();
        let own_id = payer.agent().to_string();
        let upper = format!("0x{}", payer.address().lower()[2..].to_uppercase());
        for (name, proof, agent, reason) in [
            ("old", payer.proof_at("read", now - 302), None, "expired"),
            ("from the future", payer.proof_at("read", now + 65), None, "expired"),
            ("garbage", "garbage".to_owned(), None, "malformed"),
            ("another agent's", payer.proof("read"), Some(stranger_address.as_str()), "agent_mismatch"),
        ] {
            let mut headers = vec![("x-agent-proof", proof.as_str())];
            headers.extend(agent.map(|agent| ("x-agent-id", agent)));
            let answer = payer.client.get("/v1/agents/me", &headers).await;
            assert_eq!((answer.status, &answer.json()["reason"]), (401, &json!(reason)), "{name}");
        }
        // A proof signed for another service.
        let other = crate::support::stack_with(|options| options.with("SERVICE_NAME", "Other")).await;
        let foreign = Payer::with(&other, 0).await.proof("read");
        let answer = payer.client.get("/v1/agents/me", &[("x-agent-proof", &foreign)]).await;
        assert_eq!((answer.status, &answer.json()["reason"]), (401, &json!("invalid")));

        // The proof is refused if the request names the wrong agent, and stays valid for the right one.
        let proof = payer.proof("write");
        let answer =
            payer.client.get("/v1/agents/me", &[("x-agent-proof", &proof), ("x-agent-id", &stranger_address)]).await;
        assert_eq!(answer.status, 401);
        let answer = payer.client.get("/v1/agents/me", &[("x-agent-proof", &proof), ("x-agent-id", &own_id)]).await;
        assert_eq!(answer.status, 200, "a write proof reads; an agent's UUID names it");
        let answer = payer
            .client
            .get("/v1/agents/me", &[("x-agent-proof", &payer.proof("submit")), ("x-agent-id", &upper)])
            .await;
        assert_eq!(answer.status, 200, "addresses are read in any case");
    });
}

#[test]
fn concurrent_uses_of_one_nonce_succeed_once() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let proof = payer.proof("read");
        let calls: Vec<_> = (0..10)
            .map(|_| {
                let (payer, proof) = (payer.clone(), proof.clone());
                tokio::spawn(
                    async move { payer.client.get("/v1/agents/me", &[("x-agent-proof", &proof)]).await.status },
                )
            })
            .collect();
        let mut statuses = Vec::new();
        for call in calls {
            statuses.push(call.await.unwrap());
        }
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    });
}

#[test]
fn a_proof_sent_with_a_payment_is_checked() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let body = json!({"vin": VIN});
        let proof = payer.proof("write");
        let unpaid = payer.client.post(VIN_PATH, &[("x-agent-proof", &proof)], &body).await;
        assert_eq!(unpaid.status, 402);
        let payment = payer.pay(&unpaid);
        let paid = |proof: String, body: Value| {
            let (payer, payment) = (payer.clone(), payment.clone());
            async move {
                let headers = [("x-agent-proof", proof.as_str()), ("payment-signature", payment.as_str())];
                payer.client.post(VIN_PATH, &headers, &body).await
            }
        };
        let is_used =
            |answer: &Answer| (answer.status, answer.json()["reason"].clone()) == (401, json!("already_used"));
        // It is valid once more, for the paid request of the same call.
        assert!(is_used(&paid(proof.clone(), json!({"vin": "1FTFW1ET5DFC10312"})).await), "for another call");
        assert!(is_used(&payer.client.get("/v1/agents/me", &[("x-agent-proof", &proof)]).await), "for a read");
        assert!(is_used(&payer.client.post(VIN_PATH, &[("x-agent-proof", &proof)], &body).await), "for a price");
        let both = tokio::join!(paid(proof.clone(), body.clone()), paid(proof.clone(), body.clone()));
        let mut statuses = [both.0.status, both.1.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 401], "two at once: {} {}", both.0.text, both.1.text);
        assert!(is_used(&paid(proof, body.clone()).await), "a third time");
        // A proof that was used for something else, or that already paid, buys nothing.
        let read = payer.proof("write");
        assert_eq!(payer.client.get("/v1/agents/me", &[("x-agent-proof", &read)]).await.status, 200);
        assert!(is_used(&paid(read, body.clone()).await), "after a read");
        let fresh = payer.proof("write");
        assert_eq!(paid(fresh.clone(), body.clone()).await.status, 200, "the answer again");
        assert!(is_used(&paid(fresh, body).await), "after it paid");
    });
}

/// A contract wallet's proof is verified on chain.
#[test]
fn a_contract_wallet_can_read_its_purchase() {
    run(async {
        use base::encoding::{base64_any, base64_standard};
        let stack = stack().await;
        let owner = Payer::with(&stack, 0).await;
        let chain = stack.chain.as_ref().unwrap();
        let owner_address = devchain::contracts::Arg::address(&owner.address().to_string());
        let wallet = chain.deploy(&devchain::contracts::TEST_WALLET, &[owner_address]).await.expect("a wallet");
        let proof = |signer: &Payer| {
            let mut proof: serde_json::Value =
                serde_json::from_slice(&base64_any(&signer.proof("read")).unwrap()).unwrap();
            proof["agent"] = json!(wallet);
            let parsed = platform::auth::Proof::parse(&base64_standard(proof.to_string().as_bytes())).unwrap();
            proof["signature"] = json!(evm::hex0x(&signer.key.sign(&parsed.digest("Agora")).to_bytes()));
            base64_standard(proof.to_string().as_bytes())
        };
        let answer = owner.client.get("/v1/agents/me", &[("x-agent-proof", &proof(&owner))]).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let stranger = Payer::with(&stack, 0).await;
        let answer = owner.client.get("/v1/agents/me", &[("x-agent-proof", &proof(&stranger))]).await;
        assert_eq!((answer.status, &answer.json()["reason"]), (401, &json!("invalid")));
    });
}
