//! A lost answer is not a lost payment: one payment runs the tool once, however often it is sent.

use base::clock::Clock;
use gate::jobs::job::RETENTION;
use ledger::account;
use local::Options;
use serde_json::json;

use crate::support::payer::{bare, header};
use crate::support::{Answer, Payer, READ_PATH, VIN, VIN_PATH, run, stack, stack_with};

/// Sends the same request many times concurrently.
async fn at_once(payer: &Payer, path: &str, payment: &str, body: &serde_json::Value, copies: usize) -> Vec<Answer> {
    let calls: Vec<_> = (0..copies)
        .map(|_| {
            let (payer, path, payment, body) = (payer.clone(), path.to_owned(), payment.to_owned(), body.clone());
            tokio::spawn(async move { payer.client.post(&path, &[("x-payment", &payment)], &body).await })
        })
        .collect();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.expect("an answer"));
    }
    answers
}

#[test]
fn ten_concurrent_copies_run_the_tool_once() {
    run(async {
        let stack = stack().await;
        for (path, body, price, status) in [
            (VIN_PATH, json!({"vin": VIN}), 5_000, 200),
            (READ_PATH, json!({"url": format!("{}/article", stack.site_url)}), 2_000, 202),
        ] {
            let payer = Payer::new(&stack).await;
            let payment = header(&bare(&payer.authorize(price)));
            let answers = at_once(&payer, path, &payment, &body, 10).await;
            let first = answers.iter().find(|answer| answer.status == status).expect("one answer at least");
            for answer in &answers {
                // The same answer, or a pending state that leads to it.
                assert!(
                    answer.status == status && answer.text == first.text || answer.status == 202,
                    "{}",
                    answer.text
                );
                let id = |answer: &Answer| {
                    let body = answer.json();
                    body["request_id"].as_str().or(body["data"]["request_id"].as_str()).map(str::to_owned)
                };
                assert_eq!(id(answer), id(first));
            }
            assert_eq!(u64::try_from(payer.balance(&stack).await).unwrap(), 1_000_000 - price, "charged once");

            // Later: the stored answer, byte for byte, with the stored settlement.
            let again = payer.client.post(path, &[("x-payment", &payment)], &body).await;
            assert_eq!((again.status, &again.text), (status, &first.text));
            assert_eq!(again.base64_header("payment-response")["success"], true);
            let transaction = |answer: &Answer| answer.base64_header("payment-response")["transaction"].clone();
            let settled = answers.iter().find(|answer| answer.header("payment-response").is_some()).unwrap();
            assert_eq!(transaction(&again), transaction(settled));
            assert_eq!(stack.queue.dead(), Vec::<String>::new());
        }
    });
}

#[test]
fn a_payment_on_another_route_or_body_is_a_conflict() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let payment = header(&bare(&payer.authorize(5_000)));
        let body = json!({"vin": VIN});
        let first = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!(first.status, 200);
        let elsewhere =
            [(VIN_PATH, json!({"vin": VIN, "model_year": 2003})), (READ_PATH, json!({"url": "http://example.com/"}))];
        for (path, body) in elsewhere {
            let answer = payer.client.post(path, &[("x-payment", &payment)], &body).await;
            assert_eq!(answer.error(), (409, "payment_already_used".to_owned()), "{path}");
        }
        // The order of members does not matter, and neither does the tool's older path.
        let text = format!("{{ \"vin\" : \"{VIN}\" }}");
        let json_type = ("content-type", "application/json");
        let same = payer
            .client
            .send("POST", "/v1/tools/lookup/vin", &[json_type, ("x-payment", &payment)], text)
            .await
            .unwrap();
        assert_eq!((same.status, same.text), (200, first.text));
        assert_eq!(payer.balance(&stack).await, 995_000);
    });
}

#[test]
fn an_expired_payment_still_gets_its_stored_answer() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let now = u64::try_from(base::clock::Clock::system().now().secs()).unwrap();
        let soon = payer.authorize_with(5_000, |payment| payment.valid_before = evm::word_from_u64(now + 8));
        let payment = header(&bare(&soon));
        let body = json!({"vin": VIN});
        let first = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!(first.status, 200, "{}", first.text);
        tokio::time::sleep(std::time::Duration::from_secs(4)).await;
        let again = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!((again.status, again.text), (200, first.text));
        // With another wallet's signature it opens nothing.
        let mut forged = soon.clone();
        forged.signature[10] ^= 1;
        let answer = payer.client.post(VIN_PATH, &[("x-payment", &header(&bare(&forged)))], &body).await;
        assert_eq!(answer.status, 402, "{}", answer.text);
    });
}

/// A client that repeats its idempotency key or payment after the result has expired gets that answer, and does not buy
/// again.
#[test]
fn an_expired_result_is_reported_as_gone() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let hand = clock.clone();
        let stack = stack_with(|options| Options { clock, ..options }).await;
        let payer = Payer::new(&stack).await;
        let body = json!({"vin": VIN});
        let payment = header(&bare(&payer.authorize(5_000)));
        let paid = async || payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
        payer.give_credits(&stack, 100_000).await;
        let named = async || {
            let token = payer.token(&stack).await;
            payer.client.post(VIN_PATH, &[("authorization", &token), ("idempotency-key", "once")], &body).await
        };
        assert_eq!((paid().await.status, named().await.status, named().await.status), (200, 200, 200));
        hand.advance(RETENTION);
        let gone = (410, "result_expired".to_owned());
        assert_eq!((paid().await.error(), named().await.error()), (gone.clone(), gone));
        let account = account::load(&stack.app.db, payer.agent()).await.unwrap();
        assert_eq!(account.credits.micro(), 95_000, "charged once");
    });
}

#[test]
fn many_payments_for_one_quote_buy_once() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let body = json!({"vin": VIN});
        let quote = payer.client.post(VIN_PATH, &[], &body).await.json()["quote_id"].as_str().unwrap().to_owned();
        let calls: Vec<_> = (0..8)
            .map(|_| {
                let (payer, quote, body) = (payer.clone(), quote.clone(), body.clone());
                let payment = header(&bare(&payer.authorize(5_000)));
                tokio::spawn(async move {
                    payer.client.post(VIN_PATH, &[("x-payment", &payment), ("x-quote-id", &quote)], &body).await
                })
            })
            .collect();
        let mut statuses = Vec::new();
        for call in calls {
            let answer = call.await.unwrap();
            statuses.push(answer.status);
            assert!(answer.status == 200 || answer.error().1 == "invalid_quote", "{}", answer.text);
        }
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
        assert_eq!(payer.balance(&stack).await, 995_000, "the others were not charged");
    });
}
