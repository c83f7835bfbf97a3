//! Credits: bought once, held for quotes, spent exactly, paid back; and calls with idempotency keys.

use base::clock::Clock;
use base::money::Usdc;
use futures_util::future::join_all;
use ledger::credit::EntryKind;
use ledger::{account, credit, hold};
use serde_json::{Value, json};
use std::time::Duration;

use crate::support::payer::{bare, header};
use crate::support::{Answer, Payer, READ_PATH, VIN, VIN_PATH, books, run, stack, stack_with};

const TOP_UP: &str = "/v1/credits/top-up";

fn vin() -> Value {
    json!({"vin": VIN})
}

#[test]
fn a_top_up_is_credited_once() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 10_000_000).await;
        let body = json!({"amount": "2.50", "memo": "for May"});
        let unpaid = payer.client.post(TOP_UP, &[], &body).await;
        let quoted = unpaid.json();
        assert_eq!((unpaid.status, &quoted["payment_request"]["amount"]), (402, &json!("2.500000")));
        assert_eq!(quoted["context"]["tool"], "credits_top_up");
        assert_eq!(quoted["context"]["top_up_usd"], "2.500000");
        let payment = payer.pay(&unpaid);
        let copies =
            (0..10).map(|_| payer.clone().call(TOP_UP, vec![("payment-signature", payment.clone())], body.clone()));
        let answers: Vec<Answer> = join_all(copies).await.into_iter().collect();
        let done: Vec<Value> = answers.iter().filter(|answer| answer.status == 200).map(Answer::json).collect();
        assert!(!done.is_empty() && answers.iter().all(|answer| [200, 202].contains(&answer.status)), "{answers:?}");
        let first = done.iter().filter(|body| body["data"]["already_credited"] == false).count();
        assert!(first <= 1, "one call credits: {done:?}");
        let again = payer.client.post(TOP_UP, &[("payment-signature", &payment)], &body).await.json();
        let data = &again["data"];
        assert_eq!((&data["already_credited"], &data["topped_up"]), (&json!(true), &json!("2.500000")), "{again}");
        assert_eq!(data["credits_balance"], "2.500000");
        assert!(data["settlement_tx"].as_str().is_some_and(|hash| hash.len() == 66));
        assert_eq!(payer.balance(&stack).await, 7_500_000);
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 2_500_000);
        // Buying credits does not count as spending.
        let budget = payer.get("/v1/agents/me/budgets").await.json();
        assert_eq!(budget["data"]["spent_today_usdc"], "0.000000");
    });
}

#[test]
fn invalid_amounts_are_refused_by_name() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        for amount in [json!(-1), json!(0), json!("0.009"), json!(1000.01), json!("1.0000001"), json!("x"), json!(null)]
        {
            for path in [TOP_UP, "/v1/credits/checkout"] {
                let answer = payer.client.post(path, &[], &json!({"amount": amount})).await;
                assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{path} {amount}");
                assert_eq!(answer.json()["details"][0]["path"], "amount", "{path} {amount}");
            }
        }
        let answer = payer.change("POST", "/v1/credits/checkout", &json!({"amount": 5})).await;
        assert_eq!(answer.error(), (503, "provider_unavailable".to_owned()), "no card processor is configured");
    });
}

#[test]
fn credits_pay_for_exactly_what_they_cover() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        // Enough for fifty calls; 200 are made at once.
        payer.give_credits(&stack, 50 * 5_000).await;
        let token = payer.token(&stack).await;
        let calls = (0..200).map(|_| payer.clone().call(VIN_PATH, vec![("authorization", token.clone())], vin()));
        let answers = join_all(calls).await;
        let done = answers.iter().filter(|answer| answer.status == 200).count();
        crate::support::print_caps("credits", done, answers.len());
        assert_eq!(done, 50, "{:?}", answers.iter().map(|answer| answer.status).collect::<Vec<_>>());
        let short = answers.iter().find(|answer| answer.status != 200).unwrap();
        assert_eq!(short.error(), (402, "insufficient_credits".to_owned()));
        let short = short.json();
        for member in ["required_usdc", "credits_balance", "shortfall_usdc", "credits_reserved_on_quote"] {
            assert!(short[member].is_string(), "{member}: {short}");
        }
        assert!(short.as_object().unwrap().contains_key("quote_id"));
        assert!(short["top_up"]["message"].is_string() && short["top_up"]["docs_url"].is_string());
        assert_eq!((&short["required_usdc"], &short["shortfall_usdc"]), (&json!("0.005000"), &json!("0.005000")));
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 0);
    });
}

#[test]
fn a_quote_holds_credits_and_is_redeemed_once() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 12_000).await;
        let ask = |scope: &'static str, key: Option<&'static str>| {
            let payer = payer.clone();
            async move {
                let proof = payer.proof(scope);
                let mut headers = vec![("x-agent-proof", proof.as_str())];
                headers.extend(key.map(|key| ("idempotency-key", key)));
                payer.client.post(VIN_PATH, &headers, &vin()).await
            }
        };
        // A read proof does not authorise spending. A proof for a call with an idempotency key does.
        assert_eq!(ask("read", None).await.json()["payment_request"]["amount"], "0.005000");
        assert_eq!(ask("read", Some("k1")).await.json()["payment_request"]["amount"], "0.000000");
        let unpaid = ask("write", None).await;
        let quoted = unpaid.json();
        assert_eq!(quoted["payment_request"]["amount"], "0.000000");
        assert_eq!(
            (&quoted["context"]["total"], &quoted["context"]["credits_applied"]),
            (&json!("0.005000"), &json!("0.005000"))
        );
        let account = books::audit(&stack.app.db, payer.agent()).await;
        assert_eq!((account.credits.micro(), account.reserved.micro()), (2_000, 10_000));

        let quote = quoted["quote_id"].as_str().unwrap();
        let redeem = |nothing: String, proof: Option<String>| {
            let (payer, quote) = (payer.clone(), quote.to_owned());
            async move {
                let mut headers = vec![("x-quote-id", quote.as_str()), ("payment-signature", nothing.as_str())];
                headers.extend(proof.as_deref().map(|proof| ("x-agent-proof", proof)));
                payer.client.post(VIN_PATH, &headers, &vin()).await
            }
        };
        // As clients do that know credits, and as x402 clients that sign whatever is offered.
        let zeros = [payer.nothing(), payer.pay(&unpaid)];
        for zero in &zeros {
            let unproven = redeem(zero.clone(), None).await;
            assert_eq!((unproven.status, unproven.json()["reason"].clone()), (402, json!("zero_cost_not_allowed")));
        }
        let answers = zeros.iter().cycle().take(10).map(|zero| redeem(zero.clone(), Some(payer.proof("write"))));
        let answers = join_all(answers).await;
        let ids: Vec<Value> = answers
            .iter()
            .map(|answer| {
                let body = answer.json();
                let id = if answer.status == 200 { &body["data"]["request_id"] } else { &body["request_id"] };
                assert!([200, 202].contains(&answer.status), "{}", answer.text);
                id.clone()
            })
            .collect();
        assert!(ids.iter().all(|id| *id == ids[0] && id.is_string()), "one call: {ids:?}");
        let account = books::audit(&stack.app.db, payer.agent()).await;
        assert_eq!((account.credits.micro(), account.reserved.micro()), (2_000, 5_000));
    });
}

#[test]
fn credits_can_pay_part_of_a_price() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        payer.give_credits(&stack, 1_500).await;
        let unpaid = payer.client.post(VIN_PATH, &[("x-agent-proof", &payer.proof("write"))], &vin()).await;
        assert_eq!(unpaid.json()["payment_request"]["amount"], "0.003500");
        let payment = payer.pay(&unpaid);
        let paid = payer.client.post(VIN_PATH, &[("payment-signature", &payment)], &vin()).await;
        assert_eq!(paid.status, 200, "{}", paid.text);
        assert_eq!(payer.balance(&stack).await, 1_000_000 - 3_500);
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 0);
        // All of it counts against the day, however it is paid.
        let budget = payer.get("/v1/agents/me/budgets").await.json();
        assert_eq!(budget["data"]["spent_today_usdc"], "0.005000");
    });
}

#[test]
fn an_expired_quote_releases_its_credits() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let hand = clock.clone();
        let stack = stack_with(|options| local::Options { clock, ..options }).await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 5_000).await;
        let now = || hand.now().secs();
        let proof = payer.proof_at("write", now());
        let quoted = payer.client.post(VIN_PATH, &[("x-agent-proof", &proof)], &vin()).await.json();
        assert_eq!(quoted["payment_request"]["amount"], "0.000000");
        hand.advance(Duration::from_secs(901));
        let quote = quoted["quote_id"].as_str().unwrap();
        let proof = payer.proof_at("write", now());
        let headers = [("x-quote-id", quote), ("payment-signature", &payer.nothing()), ("x-agent-proof", &proof)];
        let late = payer.client.post(VIN_PATH, &headers, &vin()).await;
        assert_eq!(late.error(), (400, "invalid_quote".to_owned()));
        let proof = payer.proof_at("read", now());
        let balance = payer.client.get("/v1/tools/balance", &[("x-agent-proof", &proof)]).await.json();
        assert_eq!(
            (&balance["credits_balance"], &balance["credits_reserved"]),
            (&json!("0.005000"), &json!("0.000000"))
        );
    });
}

#[test]
fn any_number_of_expired_holds_is_released() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 120).await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        // The expired ones come after more rows than one read returns.
        for index in 0..120u8 {
            let until = if index < 100 { now.plus(Duration::from_secs(60)) } else { now };
            assert!(hold::place(db, payer.agent(), &[index; 12], Usdc::from_micro(1), until, now).await.unwrap());
        }
        assert_eq!(hold::release(db, payer.agent(), false, now).await.unwrap().micro(), 20);
        assert_eq!(hold::release(db, payer.agent(), true, now).await.unwrap().micro(), 100);
        assert_eq!(books::audit(db, payer.agent()).await.credits.micro(), 120);
    });
}

#[test]
fn failed_work_gives_credits_back() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 2_000).await;
        let token = payer.token(&stack).await;
        let body = json!({"url": "http://no-such-host.invalid/"});
        let accepted = payer.client.post(READ_PATH, &[("authorization", &token)], &body).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let job = payer.finished(accepted.json()["request_id"].as_str().unwrap()).await;
        assert_eq!((&job["status"], &job["settlement_status"]), (&json!("failed"), &json!("not_required")), "{job}");
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 2_000);
        let budget = payer.get("/v1/agents/me/budgets").await.json();
        assert_eq!(budget["data"]["spent_today_usdc"], "0.000000", "what was paid back was not spent");
        let entries = credit::entries(&stack.app.db, payer.agent(), 100).await.unwrap();
        let kinds: Vec<EntryKind> = entries.iter().map(|entry| entry.kind).collect();
        assert!(kinds.contains(&EntryKind::Charge) && kinds.contains(&EntryKind::Refund), "{kinds:?}");
    });
}

#[test]
fn calls_with_one_idempotency_key_are_charged_once() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let named = |payment: String| {
            let payer = payer.clone();
            async move {
                payer.client.post(VIN_PATH, &[("x-payment", &payment), ("idempotency-key", "May 1")], &vin()).await
            }
        };
        // Ten payments, each signed separately, with one idempotency key.
        let payments: Vec<String> = (0..10).map(|_| header(&bare(&payer.authorize(5_000)))).collect();
        let answers = join_all(payments.into_iter().map(named)).await;
        for answer in &answers {
            assert!(
                answer.status == 200 || answer.error() == (409, "request_in_progress".to_owned()),
                "{}",
                answer.text
            );
        }
        let later = named(header(&bare(&payer.authorize(5_000)))).await;
        assert_eq!(later.status, 200);
        let id = later.json()["data"]["request_id"].clone();
        let same = answers
            .iter()
            .filter(|answer| answer.status == 200)
            .all(|answer| answer.json()["data"]["request_id"] == id);
        assert!(same && id.is_string());
        assert_eq!(payer.balance(&stack).await, 995_000, "charged once");

        let other = json!({"vin": "5YJ3E1EA7KF317000"});
        let payment = header(&bare(&payer.authorize(5_000)));
        let headers = [("x-payment", payment.as_str()), ("idempotency-key", "May 1")];
        let answer = payer.client.post(VIN_PATH, &headers, &other).await;
        assert_eq!(answer.error(), (422, "idempotency_key_reused".to_owned()));
        assert_eq!(payer.balance(&stack).await, 995_000);
        // An idempotency key belongs to its agent: another agent's is a different one.
        let second = Payer::new(&stack).await;
        let payment = header(&bare(&second.authorize(5_000)));
        let headers = [("x-payment", payment.as_str()), ("idempotency-key", "May 1")];
        assert_eq!(second.client.post(VIN_PATH, &headers, &other).await.status, 200);
        let long = "k".repeat(256);
        let answer = payer.client.post(VIN_PATH, &[("idempotency-key", &long)], &vin()).await;
        assert_eq!(answer.error(), (400, "invalid_request".to_owned()));
    });
}

#[test]
fn token_calls_with_one_idempotency_key_are_charged_once() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 50_000).await;
        let token = payer.token(&stack).await;
        let headers = [("authorization", token.as_str()), ("idempotency-key", "k")];
        let body = vin();
        let answers = join_all((0..10).map(|_| payer.client.post(VIN_PATH, &headers, &body))).await;
        assert!(answers.iter().any(|answer| answer.status == 200));
        assert_eq!(account::load(&stack.app.db, payer.agent()).await.unwrap().credits.micro(), 45_000);
    });
}

/// A payment that was refused because the wallet was empty is valid again once the wallet is funded, or once somebody
/// else has broadcast it.
#[test]
fn a_refused_payment_can_be_retried() {
    run(async {
        let stack = stack().await;
        for broadcast in [false, true] {
            let payer = Payer::with(&stack, 5_000).await;
            let authorizations: Vec<_> = (0..4).map(|_| payer.authorize(5_000)).collect();
            let headers: Vec<String> = authorizations.iter().map(|payment| header(&bare(payment))).collect();
            let body = vin();
            let calls = headers
                .iter()
                .map(|payment| payer.clone().call(VIN_PATH, vec![("x-payment", payment.clone())], body.clone()));
            let answers = join_all(calls).await;
            assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1, "there was money for one");
            let poor = answers.iter().position(|answer| answer.status == 402).expect("one was refused");
            let chain = stack.chain.as_ref().unwrap();
            chain.mint(&payer.address().to_string(), 5_000).await.unwrap();
            if broadcast {
                crate::front_run::broadcast(chain, &authorizations[poor]).await;
                let state = payer.payment_state(&authorizations[poor]).await;
                assert!(["received", "never_seen"].contains(&state["state"].as_str().unwrap()), "{state}");
            }
            let again = payer.client.post(VIN_PATH, &[("x-payment", &headers[poor])], &body).await;
            assert_eq!(again.status, 200, "{}", again.text);
            assert_eq!(payer.balance(&stack).await, 0);
        }
    });
}
