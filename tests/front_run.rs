//! Money that arrived is honoured: an authorization that a stranger broadcasts first buys what it was signed for, once.

use std::sync::Arc;
use std::time::Duration;

use devchain::DevChain;
use evm::abi::{self, Argument};
use evm::authorization::Authorization;
use evm::{hex0x, word_from_u64};
use local::Options;
use serde_json::json;
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox, Unavailable};
use tools_web::web_read;

use crate::support::payer::{bare, header};
use crate::support::{Payer, READ_PATH, VIN, VIN_PATH, run, stack};

/// Broadcasts an authorization, as anybody may.
pub async fn broadcast(chain: &DevChain, authorization: &Authorization) {
    let mut arguments: Vec<Argument<'_>> = [
        authorization.from.word(),
        authorization.to.word(),
        authorization.value,
        authorization.valid_after,
        authorization.valid_before,
        authorization.nonce,
    ]
    .into_iter()
    .map(Argument::Word)
    .collect();
    arguments.push(Argument::Bytes(&authorization.signature));
    let data =
        abi::call("transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)", &arguments);
    let receipt = chain.send(chain.token(), &hex0x(&data)).await.expect("a receipt");
    assert_eq!(receipt["status"], "0x1");
}

#[test]
fn a_payment_broadcast_by_a_stranger_is_served_once() {
    run(async {
        let stack = stack().await;
        let chain = stack.chain.clone().unwrap();
        for (path, body, price, status) in [
            (VIN_PATH, json!({"vin": VIN}), 5_000, 200),
            (READ_PATH, json!({"url": format!("{}/plain", stack.site_url)}), 2_000, 202),
        ] {
            let payer = Payer::new(&stack).await;
            let authorization = payer.authorize(price);
            broadcast(&chain, &authorization).await;
            let payment = header(&bare(&authorization));
            let calls: Vec<_> = (0..5)
                .map(|_| {
                    let (payer, payment, body) = (payer.clone(), payment.clone(), body.clone());
                    tokio::spawn(async move { payer.client.post(path, &[("x-payment", &payment)], &body).await })
                })
                .collect();
            for call in calls {
                let answer = call.await.unwrap();
                assert!(answer.status == status || answer.status == 202, "{}", answer.text);
            }
            let answer = payer.client.post(path, &[("x-payment", &payment)], &body).await;
            assert_eq!(answer.status, status);
            assert_eq!(answer.base64_header("payment-response")["success"], true);
            assert_eq!(u64::try_from(payer.balance(&stack).await).unwrap(), 1_000_000 - price);
            // Only once: with another body it is a conflict, not a second purchase.
            let other = if path == VIN_PATH {
                json!({"vin": VIN, "model_year": 2003})
            } else {
                json!({"url": "http://example.com/"})
            };
            let answer = payer.client.post(path, &[("x-payment", &payment)], &other).await;
            assert_eq!(answer.error(), (409, "payment_already_used".to_owned()));
        }
    });
}

/// The stranger broadcasts after our check and before our own broadcast.
#[test]
fn a_broadcast_between_check_and_settlement_is_found() {
    run(async {
        let chain = crate::support::chain().await;
        let proxy = crate::support::proxy::Proxy::start(chain.rpc_url(), crate::support::proxy::Life::immortal()).await;
        let stack = crate::support::stack_with(|options| options.with("CHAIN_RPC_URL", &proxy.url)).await;
        let payer = Payer::new(&stack).await;
        let authorization = payer.authorize(5_000);
        // When our transaction is sent, the stranger's is mined first.
        let stranger = (chain.clone(), authorization.clone());
        let mut armed = true;
        proxy.inject(move |method| {
            if method == "eth_sendRawTransaction" && std::mem::take(&mut armed) {
                let (chain, authorization) = stranger.clone();
                tokio::task::block_in_place(|| {
                    tokio::runtime::Handle::current().block_on(broadcast(&chain, &authorization))
                });
            }
            None
        });
        let payment = header(&bare(&authorization));
        let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &json!({"vin": VIN})).await;
        assert!(matches!(answer.status, 200 | 202), "{}", answer.text);
        let id =
            answer.json()["data"]["request_id"].as_str().or(answer.json()["request_id"].as_str()).unwrap().to_owned();
        let job = payer.finished(&id).await;
        assert_eq!((&job["status"], &job["settlement_status"]), (&json!("completed"), &json!("settled")));
        assert_eq!(payer.balance(&stack).await, 995_000, "paid once");
    });
}

/// Nodes behind one endpoint do not all have the newest block: one knows that the nonce is used, another does not know the
/// transaction yet.
#[test]
fn an_unknown_transaction_is_asked_for_again_not_told_as_a_used_nonce() {
    run(async {
        let chain = crate::support::chain().await;
        let proxy = crate::support::proxy::Proxy::start(chain.rpc_url(), crate::support::proxy::Life::immortal()).await;
        let stack = crate::support::stack_with(|options| options.with("CHAIN_RPC_URL", &proxy.url)).await;
        let body = json!({"vin": VIN});
        // The logs are waited for. Without the receipt, the caller is told to send the payment again.
        for (late, unknown, status) in
            [("eth_getLogs", json!([]), 200), ("eth_getTransactionReceipt", json!(null), 503)]
        {
            let payer = Payer::new(&stack).await;
            let payment = payer.authorize(5_000);
            broadcast(&chain, &payment).await;
            let payment = header(&bare(&payment));
            let mut is_first = true;
            proxy.inject(move |method| {
                let missing = method == late && std::mem::take(&mut is_first);
                missing.then(|| (200, json!({"jsonrpc": "2.0", "id": 0, "result": unknown})))
            });
            let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
            assert_eq!(answer.status, status, "{late}: {}", answer.text);
            let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
            assert_eq!(answer.status, 200, "{late}: {}", answer.text);
            assert_eq!(payer.balance(&stack).await, 995_000, "paid once");
        }
        // The stranger's transaction is mined between the check and the settlement.
        let payer = Payer::new(&stack).await;
        let authorization = payer.authorize(5_000);
        let stranger = (chain.clone(), authorization.clone());
        let (mut armed, mut unknown) = (true, true);
        proxy.inject(move |method| {
            if method == "eth_estimateGas" && std::mem::take(&mut armed) {
                let (chain, authorization) = stranger.clone();
                tokio::task::block_in_place(|| {
                    tokio::runtime::Handle::current().block_on(broadcast(&chain, &authorization))
                });
            }
            let missing = method == "eth_getTransactionReceipt" && !armed && std::mem::take(&mut unknown);
            missing.then(|| (200, json!({"jsonrpc": "2.0", "id": 0, "result": null})))
        });
        let payment = header(&bare(&authorization));
        let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        let job = payer.finished(answer.json()["request_id"].as_str().expect("a request id")).await;
        assert_eq!((&job["status"], &job["settlement_status"]), (&json!("completed"), &json!("settled")), "{job}");
        assert_eq!(payer.balance(&stack).await, 995_000, "paid once");
    });
}

static STRANGER: std::sync::Mutex<Option<(Arc<DevChain>, Authorization)>> = std::sync::Mutex::new(None);

/// A page read during which a stranger broadcasts the payment, and which then fails because its source is down. Later
/// reads succeed.
fn interrupted(_: Arc<Toolbox>, _: Task) -> Running {
    Box::pin(async {
        let stranger = STRANGER.lock().unwrap().take();
        if let Some((chain, authorization)) = stranger {
            broadcast(&chain, &authorization).await;
            return Err(ToolError::unavailable(Unavailable::SourceUnavailable, "the source is down"));
        }
        let result = json!({"read": true});
        Ok(Output::new(result, Source::embedded("test")))
    })
}

static INTERRUPTED: [&Runner; 1] = [&Runner { spec: &web_read::SPEC, run: interrupted }];

/// The work ran before settlement and failed, so the payment was never sent and the purchase is void. But the money has
/// arrived: the payment can be used again, and buys.
#[test]
fn a_payment_that_arrived_during_failed_work_still_buys() {
    run(async {
        let chain = crate::support::chain().await;
        let change = |options: Options| {
            let options = Options { runners: Some(&INTERRUPTED), ..options };
            options.with("OVERLAP_BELOW_USDC", "0.01").with("PAYMENT_HOLD_MS", "0")
        };
        let stack = crate::support::stack_with(change).await;
        let payer = Payer::new(&stack).await;
        payer.has_settled(&stack, 2_000).await;
        let authorization = payer.authorize(2_000);
        *STRANGER.lock().unwrap() = Some((chain, authorization.clone()));
        let (payment, body) = (header(&bare(&authorization)), json!({"url": "http://example.com/"}));
        let mut ends = Vec::new();
        for _ in 0..2 {
            let answer = payer.client.post(READ_PATH, &[("x-payment", &payment)], &body).await;
            assert_eq!(answer.status, 202, "{}", answer.text);
            let job = payer.finished(answer.json()["request_id"].as_str().unwrap()).await;
            ends.push((job["status"].clone(), job["settlement_status"].clone()));
        }
        let end = |status: &str, settlement: &str| (json!(status), json!(settlement));
        assert_eq!(ends, [end("failed", "failed"), end("completed", "settled")]);
        assert_eq!(payer.balance(&stack).await, 998_000, "paid once");
    });
}

#[test]
fn another_transfer_of_the_same_payer_does_not_pay() {
    run(async {
        let stack = stack().await;
        let chain = stack.chain.clone().unwrap();
        let payer = Payer::new(&stack).await;
        // The nonce was used for a transfer to somebody else, in the same block as an equal payment to us with another
        // nonce.
        let elsewhere = payer.authorize_with(5_000, |payment| payment.to = evm::Address::from_bytes([5; 20]));
        let ours = payer.authorize(5_000);
        broadcast(&chain, &elsewhere).await;
        broadcast(&chain, &ours).await;
        let claimed = payer.authorize_with(5_000, |payment| payment.nonce = elsewhere.nonce);
        let answer =
            payer.client.post(VIN_PATH, &[("x-payment", &header(&bare(&claimed)))], &json!({"vin": VIN})).await;
        assert_eq!((answer.status, &answer.json()["reason"]), (402, &json!("invalid_exact_evm_nonce_already_used")));
    });
}

#[test]
fn a_transfer_is_honoured_for_one_hour() {
    run(async {
        let chain = crate::support::chain().await;
        let now = base::clock::Clock::system().now();
        for (later, status) in [(Duration::from_secs(600), 200), (Duration::from_secs(2 * 3600), 402)] {
            let clock = base::clock::Clock::pinned(now.plus(later));
            let stack = crate::support::stack_with(|options| local::Options { clock, ..options }).await;
            let payer = Payer::new(&stack).await;
            let soon = word_from_u64(now.secs().unsigned_abs() + 60);
            let authorization = payer.authorize_with(5_000, |payment| payment.valid_before = soon);
            broadcast(&chain, &authorization).await;
            let payment = header(&bare(&authorization));
            let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &json!({"vin": VIN})).await;
            assert_eq!(answer.status, status, "{}", answer.text);
        }
    });
}
