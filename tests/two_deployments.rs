//! Two deployments with the same payment address: a payment buys at one of them, and the other names the transaction.

use std::time::Duration;

use base::clock::Clock;
use evm::signature::PrivateKey;
use local::Options;
use serde_json::{Value, json};

use crate::front_run::broadcast;
use crate::support::payer::{bare, header, v2};
use crate::support::proxy::{Life, Proxy};
use crate::support::{Answer, Payer, READ_PATH, VIN, VIN_PATH, books, chain, run, stack, stack_with};

/// Checks the refusal of a payment that bought elsewhere, and the transaction it names.
fn assert_spent(answer: &Answer, transaction: &str) {
    assert_eq!(answer.error(), (409, "payment_already_used".to_owned()), "{}", answer.text);
    assert_eq!(answer.json()["transaction"], transaction, "{}", answer.text);
}

#[test]
fn a_payment_buys_at_only_one_of_two_deployments() {
    run(async {
        let (here, there) = (stack().await, stack().await);
        assert_eq!(here.config.payments.pay_to, there.config.payments.pay_to);
        let body = json!({"vin": VIN});
        for with_quote in [false, true] {
            let payer = Payer::new(&here).await;
            let elsewhere = payer.at(&there);
            // Both deployments have quoted before anything is paid.
            let quoted = [&payer, &elsewhere].map(|payer| payer.client.post(VIN_PATH, &[], &body));
            let quoted = futures_util::future::join_all(quoted).await;
            let authorization = payer.authorize(5_000);
            let payment = |unpaid: &Answer| match with_quote {
                true => header(&v2(&authorization, &unpaid.base64_header("payment-required")["accepts"][0])),
                false => header(&bare(&authorization)),
            };
            let paid = payer.client.post(VIN_PATH, &[("x-payment", &payment(&quoted[0]))], &body).await;
            assert_eq!(paid.status, 200, "{}", paid.text);
            let transaction = paid.base64_header("payment-response")["transaction"].clone();
            for _ in 0..2 {
                let again = elsewhere.client.post(VIN_PATH, &[("x-payment", &payment(&quoted[1]))], &body).await;
                assert_spent(&again, transaction.as_str().unwrap());
            }
            assert!(books::receipts(&there.app.db, payer.agent()).await.is_empty(), "nothing was sold there");
            assert_eq!(payer.balance(&here).await, 995_000);
            // At the first deployment the stored answer is unchanged.
            let again = payer.client.post(VIN_PATH, &[("x-payment", &payment(&quoted[0]))], &body).await;
            assert_eq!((again.status, again.text), (200, paid.text));
        }
    });
}

#[test]
fn a_payment_sent_to_both_at_once_buys_at_one() {
    run(async {
        let (here, there) = (stack().await, stack().await);
        let body = json!({"vin": VIN});
        for round in 0..5 {
            let payer = Payer::new(&here).await;
            let payment = header(&bare(&payer.authorize(5_000)));
            let both = [&payer, &payer.at(&there)].map(|payer| payer.clone());
            let answers = both.iter().map(|payer| {
                let headers = vec![("x-payment", payment.clone())];
                tokio::spawn(payer.clone().call(VIN_PATH, headers, body.clone()))
            });
            let answers: Vec<Answer> =
                futures_util::future::join_all(answers).await.into_iter().map(Result::unwrap).collect();
            let served: Vec<usize> = (0..2).filter(|at| answers[*at].status == 200).collect();
            assert_eq!(served.len(), 1, "round {round}: {answers:?}");
            let (won, lost) = (&answers[served[0]], 1 - served[0]);
            let transaction = won.base64_header("payment-response")["transaction"].clone();
            assert_spent(&answers[lost], transaction.as_str().unwrap());
            assert_eq!(payer.balance(&here).await, 995_000, "round {round}: paid once");
            for (payer, stack) in both.iter().zip([&here, &there]) {
                books::audit(&stack.app.db, payer.agent()).await;
            }
            let again = both[lost].client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
            assert_spent(&again, transaction.as_str().unwrap());
        }
    });
}

/// The payment is broadcast elsewhere after it passed the check here, and the node has the new state before its logs.
/// The service waits for the logs, because only they name the transaction.
#[test]
fn the_loser_learns_the_transaction_even_if_the_nodes_logs_lag() {
    run(async {
        let proxy = Proxy::start(chain().await.rpc_url(), Life::immortal()).await;
        let here = stack().await;
        let there = stack_with(|options| options.with("CHAIN_RPC_URL", &proxy.url)).await;
        let payer = Payer::new(&here).await;
        let payment = header(&bare(&payer.authorize(5_000)));
        let body = json!({"vin": VIN});
        let won = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!(won.status, 200, "{}", won.text);
        let transaction = won.base64_header("payment-response")["transaction"].clone();
        let answer = |result: Value| Some((200, json!({"jsonrpc": "2.0", "id": 0, "result": result})));
        let (mut good, mut late) = (1, 2);
        proxy.inject(move |method| match method {
            // The check whether the payment would succeed: answered as before the other payment.
            "eth_call" if good > 0 => {
                good -= 1;
                let results = [json!("0x"), json!("0x15f90"), json!({"baseFeePerGas": "0x1"}), json!("0x1")];
                let answers = results.iter().enumerate();
                let answers = answers.map(|(id, result)| json!({"jsonrpc": "2.0", "id": id, "result": result}));
                Some((200, answers.collect()))
            }
            "eth_getLogs" if late > 0 => {
                late -= 1;
                answer(json!([]))
            }
            _ => None,
        });
        let lost = payer.at(&there).client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
        assert_spent(&lost, transaction.as_str().unwrap());
        books::audit(&there.app.db, payer.agent()).await;
    });
}

/// The payment passed the check, and the other deployment's transfer of it is pending when this one estimates its own: the
/// estimate reverts, while the latest block does not have the transfer yet. It is no bad signature.
#[test]
fn the_loser_learns_the_transaction_even_if_it_was_pending() {
    run(async {
        let (lost, transaction) = lost_to_pending(1).await;
        assert_spent(&lost, &transaction);
    });
}

/// Nobody knows yet whether the payment will arrive: it is not refused, and the work is not done.
#[test]
fn a_payment_whose_transfer_stays_pending_is_not_refused() {
    run(async {
        let (lost, _) = lost_to_pending(MAX_LOOKS).await;
        assert_eq!((lost.status, &lost.json()["settlement_status"]), (202, &json!("pending")), "{}", lost.text);
    });
}

/// More often than a settlement looks for a pending transfer.
const MAX_LOOKS: usize = 10;

/// Pays here, then with the same payment there, where the transfer is pending for so many looks of the settlement. Gives the
/// second answer, and the transaction.
async fn lost_to_pending(looks: usize) -> (Answer, String) {
    let proxy = Proxy::start(chain().await.rpc_url(), Life::immortal()).await;
    let here = stack().await;
    let there = stack_with(|options| options.with("CHAIN_RPC_URL", &proxy.url)).await;
    let payer = Payer::new(&here).await;
    let payment = header(&bare(&payer.authorize(5_000)));
    let body = json!({"vin": VIN});
    let won = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
    assert_eq!(won.status, 200, "{}", won.text);
    let transaction = won.base64_header("payment-response")["transaction"].clone();
    // A batch of four with this first answer. The others are those of the check; an estimate that reverts needs none.
    let batch = |first: (&str, Value)| {
        let market = [json!("0x15f90"), json!({"baseFeePerGas": "0x1"}), json!("0x1")];
        let mut answers = vec![json!({"jsonrpc": "2.0", "id": 0, (first.0): first.1})];
        answers.extend((1..).zip(market).map(|(id, result)| json!({"jsonrpc": "2.0", "id": id, "result": result})));
        (200, Value::Array(answers))
    };
    let (mut calls, mut estimates) = (0, 0);
    proxy.inject(move |method| match method {
        "eth_call" => {
            calls += 1;
            match calls {
                // As of the latest block the transfer succeeds: in the check, and after the estimate.
                1 => Some(batch(("result", json!("0x")))),
                call if call > 1 + 2 * looks => None,
                call if call % 2 == 0 => Some(batch(("result", json!("0x")))),
                // The nonce is unused there.
                _ => {
                    let unused = format!("0x{}", "0".repeat(64));
                    Some((200, json!({"jsonrpc": "2.0", "id": 0, "result": unused})))
                }
            }
        }
        "eth_estimateGas" => {
            estimates += 1;
            let reverted = json!({"code": 3, "message": "execution reverted"});
            (estimates == 1).then(|| batch(("error", reverted)))
        }
        _ => None,
    });
    let lost = payer.at(&there).client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
    books::audit(&there.app.db, payer.agent()).await;
    (lost, transaction.as_str().unwrap().to_owned())
}

/// The work is queued, and its caller is gone. The job gives the reason for its failure.
#[test]
fn a_job_whose_payment_went_elsewhere_fails_and_names_the_transaction() {
    run(async {
        let chain = chain().await;
        let proxy = Proxy::start(chain.rpc_url(), Life::immortal()).await;
        let here = stack().await;
        let there = stack_with(|options| options.with("CHAIN_RPC_URL", &proxy.url).with("PAYMENT_HOLD_MS", "0")).await;
        let payer = Payer::new(&here).await;
        let authorization = payer.authorize(2_000);
        let payment = header(&bare(&authorization));
        // There the payment is claimed, but not sent before it is settled here.
        proxy.inject(|method| (method == "eth_estimateGas").then(|| (503, json!("down"))));
        let elsewhere = payer.at(&there);
        let body = json!({"url": format!("{}/plain", there.site_url)});
        let accepted = elsewhere.client.post(READ_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let body = json!({"url": format!("{}/plain", here.site_url)});
        let paid = payer.client.post(READ_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!(paid.status, 202, "{}", paid.text);
        assert_eq!(payer.finished(paid.json()["request_id"].as_str().unwrap()).await["settlement_status"], "settled");
        proxy.heal();
        local::stack::release_leases(&there.app.db, there.app.clock.now()).await.unwrap();
        let job = elsewhere.finished(accepted.json()["request_id"].as_str().unwrap()).await;
        assert_eq!((&job["status"], &job["settlement_status"]), (&json!("failed"), &json!("failed")), "{job}");
        let transaction = payer.payment_state(&authorization).await["payments"][0]["transaction"].clone();
        assert!(job.to_string().contains(transaction.as_str().unwrap()), "{job}");
        let state = elsewhere.payment_state(&authorization).await;
        assert_eq!(
            (&state["state"], &state["payments"][0]["transaction"]),
            (&json!("refused"), &transaction),
            "{state}"
        );
        assert_eq!(payer.balance(&here).await, 998_000, "paid once");
    });
}

#[test]
fn the_doctor_finds_other_settlers_to_the_same_address() {
    use local::doctor::{Level, examine};
    run(async {
        let (here, there) = (stack().await, stack().await);
        let payer = Payer::new(&here).await;
        assert_eq!(payer.buy(VIN_PATH, &json!({"vin": VIN})).await.status, 200);
        let finding = async |facilitator: Option<&str>| {
            let mut environment = there.environment.clone();
            environment.extend(facilitator.map(|url| ("FACILITATOR_URL".to_owned(), url.to_owned())));
            let report = examine(&environment).await;
            let found: Vec<_> = report.0.into_iter().filter(|finding| finding.check == "other deployments").collect();
            assert!(found.iter().all(|finding| finding.level == Level::Warn), "{found:?}");
            serde_json::to_string(&found).unwrap()
        };
        let relayer = PrivateKey::parse(&here.environment["RELAYER_PRIVATE_KEY"]).unwrap().address().to_string();
        assert!(finding(None).await.contains(&relayer));
        assert!(finding(Some("http://127.0.0.1:1")).await.contains("a PAY_TO of its own"));
    });
}

/// A quote is paid only by a payment that is made after it.
#[test]
fn a_transfer_older_than_a_quote_does_not_pay_it() {
    run(async {
        let chain = chain().await;
        let body = json!({"vin": VIN});
        let later = Clock::pinned(Clock::system().now().plus(Duration::from_secs(60)));
        for (clock, is_before) in [(later, true), (Clock::system(), false)] {
            let stack = stack_with(|options| Options { clock, ..options }).await;
            let payer = Payer::new(&stack).await;
            let authorization = payer.authorize(5_000);
            let quoted = match is_before {
                true => {
                    broadcast(&chain, &authorization).await;
                    payer.client.post(VIN_PATH, &[], &body).await
                }
                false => {
                    let quoted = payer.client.post(VIN_PATH, &[], &body).await;
                    broadcast(&chain, &authorization).await;
                    quoted
                }
            };
            let payment = header(&v2(&authorization, &quoted.base64_header("payment-required")["accepts"][0]));
            let answer = payer.client.post(VIN_PATH, &[("payment-signature", &payment)], &body).await;
            if is_before {
                assert_eq!(answer.error(), (409, "payment_already_used".to_owned()), "{}", answer.text);
                assert!(answer.json()["transaction"].as_str().is_some_and(|hash| hash.len() == 66));
            } else {
                assert_eq!(answer.status, 200, "{}", answer.text);
            }
        }
    });
}
