//! Agent proofs on polling, balance and agents/me: fresh, single use, and bound to the agent.

use base::clock::Clock;
use serde_json::{Value, json};

use crate::support::payer::{bare, header};
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
        // A clock in milliseconds is told its unit; "expired" alone would be signed again in milliseconds.
        let proof = payer.proof_at("read", now * 1_000);
        let answer = payer.client.get("/v1/agents/me", &[("x-agent-proof", &proof)]).await;
        assert_eq!((answer.error(), &answer.json()["reason"]), ((401, "invalid_proof".to_owned()), &json!("expired")));
        assert!(answer.json()["message"].as_str().unwrap().contains("milliseconds"), "{}", answer.text);
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
        let first = paid(proof.clone(), body.clone()).await;
        assert_eq!(first.status, 200, "{}", first.text);
        // After that the proof is valid for this payment only.
        let other = header(&bare(&payer.authorize(5_000)));
        let headers = [("x-agent-proof", proof.as_str()), ("payment-signature", other.as_str())];
        assert!(is_used(&payer.client.post(VIN_PATH, &headers, &body).await), "with another payment");
        assert!(is_used(&paid(proof.clone(), json!({"vin": "1FTFW1ET5DFC10312"})).await), "for another call");
        assert!(is_used(&payer.client.get("/v1/agents/me", &[("x-agent-proof", &proof)]).await), "for a read");
        // A proof that was used for something else buys nothing.
        let read = payer.proof("write");
        assert_eq!(payer.client.get("/v1/agents/me", &[("x-agent-proof", &read)]).await.status, 200);
        assert!(is_used(&paid(read, body.clone()).await), "after a read");
        assert_eq!(paid(payer.proof("write"), body).await.text, first.text, "the answer again");
    });
}

/// A client that lost the answer repeats its request to the byte.
#[test]
fn a_paid_request_sent_again_with_its_proof_gets_the_stored_answer() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let (body, proof) = (json!({"vin": VIN}), payer.proof("write"));
        let unpaid = payer.client.post(VIN_PATH, &[("x-agent-proof", &proof)], &body).await;
        let payment = payer.pay(&unpaid);
        let headers = [("x-agent-proof", proof.as_str()), ("payment-signature", payment.as_str())];
        let paid = async || payer.client.post(VIN_PATH, &headers, &body).await;
        let (one, other) = tokio::join!(paid(), paid());
        let first = if one.status == 200 { &one } else { &other };
        assert_eq!(first.status, 200, "{} {}", one.text, other.text);
        for answer in [&one, &other, &paid().await] {
            assert!(answer.status == 202 || (answer.status, &answer.text) == (200, &first.text), "{}", answer.text);
        }
        let again = paid().await;
        assert_eq!((again.status, &again.text), (200, &first.text));
        assert_eq!(payer.balance(&stack).await, 995_000, "charged once");

        // Paid from credits: the payment is nothing, and the quote is what is bought with.
        payer.give_credits(&stack, 20_000).await;
        let proof = payer.proof("write");
        let unpaid = payer.client.post(VIN_PATH, &[("x-agent-proof", &proof)], &body).await;
        let (quote, nothing) = (unpaid.json()["quote_id"].as_str().unwrap().to_owned(), payer.nothing());
        let more = payer.client.post(VIN_PATH, &[("x-agent-proof", &payer.proof("write"))], &body).await;
        let more = more.json()["quote_id"].as_str().unwrap().to_owned();
        let paid = async |quote: &str| {
            let headers =
                [("x-agent-proof", proof.as_str()), ("payment-signature", nothing.as_str()), ("x-quote-id", quote)];
            payer.client.post(VIN_PATH, &headers, &body).await
        };
        let first = paid(&quote).await;
        assert_eq!(first.status, 200, "{}", first.text);
        assert_eq!(paid(&quote).await.text, first.text);
        let other = paid(&more).await;
        assert_eq!((other.status, &other.json()["reason"]), (401, &json!("already_used")), "another quote");
        assert_eq!(payer.balance(&stack).await, 995_000);
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
