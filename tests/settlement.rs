//! Facilitators and chains that fail, lie or do not answer: never a second payment, never a fresh 402 after a
//! broadcast, and money that moved is always found in the end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use gate::jobs::Settlement;
use gate::jobs::store::{self, MoveError};
use local::Stack;
use serde_json::{Value, json};

use crate::support::payer::{bare, header};
use crate::support::proxy::{Life, Proxy};
use crate::support::{Answer, Payer, READ_PATH, VIN, VIN_PATH, books, chain, eventually, run, stack_with};

/// A facilitator that speaks the x402 facilitator protocol (`/verify`, `/settle`) and settles on the local chain, or
/// follows a script.
#[derive(Clone, Default)]
struct Facilitator {
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    script: Arc<Mutex<Vec<Act>>>,
    /// Broadcast payments that are in no block yet.
    waiting: Arc<Mutex<Vec<Value>>>,
}

/// How the facilitator handles a `/settle`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    /// Settles and returns success.
    Settle,
    /// Broadcasts, and answers that the outcome is not known yet.
    SayPending,
    /// Broadcasts, and drops the connection.
    SettleAndHang,
    /// Broadcasts, and answers with this status and error before any block has it.
    BroadcastAndSay(u16, &'static str),
    /// Broadcasts nothing and returns a named refusal.
    Refuse,
    /// Broadcasts nothing and returns an overloaded proxy's error page.
    Overloaded,
    /// Answers that the request was not authorized.
    Unauthorized,
}

impl Facilitator {
    async fn start(&self) -> String {
        let router =
            Router::new().route("/verify", post(verify)).route("/settle", post(settle)).with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        url
    }

    fn will(&self, acts: &[Act]) {
        *self.script.lock().unwrap() = acts.to_vec();
    }

    /// Mines what was broadcast.
    async fn mine(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap());
        for body in waiting {
            put_on_chain(&body).await.expect("it is mined");
        }
    }

    fn asked(&self, what: &str) -> Vec<Value> {
        self.asked.lock().unwrap().iter().filter(|(asked, _)| asked == what).map(|(_, body)| body.clone()).collect()
    }
}

async fn verify(State(facilitator): State<Facilitator>, Json(body): Json<Value>) -> Json<Value> {
    let payer = body["paymentPayload"]["payload"]["authorization"]["from"].clone();
    facilitator.asked.lock().unwrap().push(("verify".to_owned(), body));
    Json(json!({"isValid": true, "payer": payer}))
}

async fn settle(State(facilitator): State<Facilitator>, Json(body): Json<Value>) -> (http::StatusCode, Json<Value>) {
    facilitator.asked.lock().unwrap().push(("settle".to_owned(), body.clone()));
    let act = {
        let mut script = facilitator.script.lock().unwrap();
        if script.is_empty() { Act::Settle } else { script.remove(0) }
    };
    let ok = http::StatusCode::OK;
    let network = body["paymentRequirements"]["network"].clone();
    match act {
        Act::Refuse => (
            ok,
            Json(json!({"success": false, "errorReason": "insufficient_funds", "transaction": "", "network": network})),
        ),
        Act::Overloaded => (http::StatusCode::BAD_GATEWAY, Json(json!("upstream overloaded"))),
        Act::Unauthorized => (http::StatusCode::UNAUTHORIZED, Json(json!({"message": "who are you"}))),
        Act::BroadcastAndSay(status, word) => {
            facilitator.waiting.lock().unwrap().push(body);
            let answer = match word {
                "" => json!({"error": "Invalid request"}),
                word => json!({"success": false, "errorReason": word, "transaction": "", "network": network}),
            };
            (http::StatusCode::from_u16(status).unwrap(), Json(answer))
        }
        Act::Settle | Act::SayPending | Act::SettleAndHang => {
            let transaction = put_on_chain(&body).await;
            match (act, transaction) {
                (Act::SettleAndHang, _) => std::future::pending().await,
                (_, None) => {
                    let reason = "invalid_exact_evm_nonce_already_used";
                    (ok, Json(json!({"success": false, "errorReason": reason, "transaction": "", "network": network})))
                }
                (Act::SayPending, Some(hash)) => {
                    let answer = json!({"success": false, "errorReason": "settlement_pending", "transaction": hash, "network": network});
                    (http::StatusCode::INTERNAL_SERVER_ERROR, Json(answer))
                }
                (_, Some(hash)) => (ok, Json(json!({"success": true, "transaction": hash, "network": network}))),
            }
        }
    }
}

/// Broadcasts the payload's authorization; `None` if it reverts.
async fn put_on_chain(body: &Value) -> Option<Value> {
    use evm::abi::{self, Argument};
    use evm::{parse_decimal_word, parse_hex0x, parse_word};
    let payload = &body["paymentPayload"]["payload"];
    let message = &payload["authorization"];
    let address = |name: &str| message[name].as_str().unwrap().parse::<evm::Address>().unwrap().word();
    let number = |name: &str| parse_decimal_word(message[name].as_str().unwrap()).unwrap();
    let signature = parse_hex0x(payload["signature"].as_str().unwrap()).unwrap();
    let nonce = parse_word(message["nonce"].as_str().unwrap()).unwrap();
    let words = [address("from"), address("to"), number("value"), number("validAfter"), number("validBefore"), nonce];
    let mut arguments: Vec<Argument<'_>> = words.into_iter().map(Argument::Word).collect();
    arguments.push(Argument::Bytes(&signature));
    let data =
        abi::call("transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)", &arguments);
    let chain = chain().await;
    let receipt = chain.send(chain.token(), &evm::hex0x(&data)).await.ok()?;
    (receipt["status"] == "0x1").then(|| receipt["transactionHash"].clone())
}

async fn stack_of(facilitator: &Facilitator) -> Stack {
    let url = facilitator.start().await;
    stack_with(|options| options.with("FACILITATOR_URL", url).with("FACILITATOR_TOKEN", "letmein")).await
}

fn id_of(answer: &Answer) -> String {
    let body = answer.json();
    body["request_id"].as_str().or(body["data"]["request_id"].as_str()).expect("a request id").to_owned()
}

#[test]
fn facilitator_requests_follow_the_protocol() {
    run(async {
        let facilitator = Facilitator::default();
        let stack = stack_of(&facilitator).await;
        let payer = Payer::new(&stack).await;
        assert_eq!(payer.buy(VIN_PATH, &json!({"vin": VIN})).await.status, 200);
        let accepted = payer.buy(READ_PATH, &json!({"url": format!("{}/plain", stack.site_url)})).await;
        assert_eq!(payer.finished(&id_of(&accepted)).await["status"], "completed");
        assert_eq!(payer.balance(&stack).await, 993_000);
        let settles = facilitator.asked("settle");
        assert_eq!((facilitator.asked("verify").len(), settles.len()), (2, 2));
        let question = &settles[0];
        assert_eq!(question["x402Version"], 2);
        assert_eq!(question["paymentRequirements"], question["paymentPayload"]["accepted"]);
        for (name, value) in [
            ("scheme", json!("exact")),
            ("network", json!("eip155:84532")),
            ("amount", json!("5000")),
            ("payTo", json!(stack.config.payments.pay_to.to_string())),
            ("asset", json!(stack.config.chain.token.address.to_string())),
            ("maxTimeoutSeconds", json!(300)),
            ("extra", json!({"name": "USDC", "version": "2"})),
        ] {
            assert_eq!(question["paymentRequirements"][name], value, "{name}");
        }
        assert_eq!(question["paymentPayload"]["payload"]["authorization"]["from"], payer.address().to_string());
    });
}

#[test]
fn a_refusal_is_a_402_and_runs_nothing() {
    run(async {
        let facilitator = Facilitator::default();
        let stack = stack_of(&facilitator).await;
        let payer = Payer::with(&stack, 1_000).await;
        facilitator.will(&[Act::Refuse]);
        let answer = payer
            .client
            .post(VIN_PATH, &[("x-payment", &header(&bare(&payer.authorize(5_000))))], &json!({"vin": VIN}))
            .await;
        assert_eq!((answer.status, &answer.json()["reason"]), (402, &json!("insufficient_funds")));
        // For a queued call, either the caller gets the refusal or the job fails. In both cases nothing was charged and
        // nothing was read.
        facilitator.will(&[Act::Refuse]);
        let authorization = payer.authorize(2_000);
        let body = json!({"url": format!("{}/plain", stack.site_url)});
        payer.client.post(READ_PATH, &[("x-payment", &header(&bare(&authorization)))], &body).await;
        let state = eventually("the refusal", || async {
            let state = payer.payment_state(&authorization).await;
            (state["state"] == "refused").then_some(state)
        })
        .await;
        assert_eq!(state["payments"][0]["reason"], "insufficient_funds");
        assert_eq!(payer.balance(&stack).await, 1_000);
        // The same payment again gets the same answer.
        let again = payer.client.post(READ_PATH, &[("x-payment", &header(&bare(&authorization)))], &body).await;
        assert_eq!((again.status, &again.json()["reason"]), (402, &json!("insufficient_funds")));
    });
}

/// After a broadcast with unknown outcome the answer is "pending" and never a fresh 402. The money is found on chain.
#[test]
fn an_unknown_outcome_is_pending_until_the_chain_shows_it() {
    run(async {
        for act in [Act::SayPending, Act::SettleAndHang, Act::Overloaded] {
            let facilitator = Facilitator::default();
            let stack = stack_of(&facilitator).await;
            let payer = Payer::new(&stack).await;
            facilitator.will(&[act]);
            let authorization = payer.authorize(5_000);
            let payment = header(&bare(&authorization));
            let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &json!({"vin": VIN})).await;
            assert_eq!(answer.status, 202, "{act:?}: {}", answer.text);
            answer.assert_unsettled();
            // The scheduler completes it.
            reconcile_now(&stack).await;
            let job = payer.finished(&id_of(&answer)).await;
            assert_eq!(
                (&job["status"], &job["settlement_status"]),
                (&json!("completed"), &json!("settled")),
                "{act:?}"
            );
            let again = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &json!({"vin": VIN})).await;
            assert_eq!((again.status, &again.json()["data"]["result"]["make"]), (200, &json!("Honda")));
            let settled = again.base64_header("payment-response");
            assert_eq!((&settled["success"], settled["transaction"].as_str().map(str::len)), (&json!(true), Some(66)));
            assert_eq!(
                (again.header("x-settlement-status"), &again.json()["data"]["settlement_status"]),
                (None, &Value::Null)
            );
            assert_eq!(payer.balance(&stack).await, 995_000, "{act:?}: paid once");
        }
    });
}

/// An error after a broadcast leaves the payment pending, unless it is one that is only given before a broadcast. The
/// chain then shows the outcome.
#[test]
fn an_error_after_a_broadcast_is_not_a_refusal() {
    run(async {
        let facilitator = Facilitator::default();
        let stack = stack_of(&facilitator).await;
        let statuses = [400, 402, 408, 409, 422, 425, 429, 500, 502, 503, 504].map(|status| (status, ""));
        let words = [
            "transaction_failed",
            "transaction_failed: nonce too low: next nonce 7, tx nonce 6",
            "invalid_exact_evm_transaction_failed",
            "invalid_exact_evm_transfer_event_mismatch",
            "invalid_transaction_state",
            "unexpected_settle_error",
            "failed to get receipt: insufficient peers",
            "could not wait for the signature of the value: simulation_failed",
            "invalid_exact_evm_nonce_already_used",
            "settlement_pending",
        ];
        for (status, word) in statuses.into_iter().chain(words.map(|word| (200, word))).chain([(429, words[0])]) {
            let payer = Payer::new(&stack).await;
            facilitator.will(&[Act::BroadcastAndSay(status, word)]);
            let payment = header(&bare(&payer.authorize(5_000)));
            let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &json!({"vin": VIN})).await;
            assert_eq!(answer.status, 202, "{status} {word:?}: {}", answer.text);
            answer.assert_unsettled();
            facilitator.mine().await;
            reconcile_now(&stack).await;
            let job = payer.finished(&id_of(&answer)).await;
            let end = (&job["status"], &job["settlement_status"]);
            assert_eq!(end, (&json!("completed"), &json!("settled")), "{status} {word:?}");
            assert_eq!(payer.balance(&stack).await, 995_000, "{status} {word:?}: paid once");
        }
    });
}

/// Asked again after a lost answer, the facilitator refuses the payment that it has broadcast itself. Only the chain
/// shows what happened.
#[test]
fn a_refusal_after_a_lost_answer_is_not_believed() {
    run(async {
        let facilitator = Facilitator::default();
        let stack = stack_of(&facilitator).await;
        let payer = Payer::new(&stack).await;
        facilitator.will(&[
            Act::BroadcastAndSay(504, ""),
            Act::Refuse,
            Act::Refuse,
            Act::Refuse,
            Act::Refuse,
            Act::Refuse,
        ]);
        let payment = header(&bare(&payer.authorize(5_000)));
        let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &json!({"vin": VIN})).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        let id = id_of(&answer).parse().unwrap();
        reconcile_now(&stack).await;
        let asked_again = || async { (facilitator.asked("settle").len() > 1).then_some(()) };
        eventually("the facilitator to be asked again", asked_again).await;
        let rests = || async {
            let job = store::load_latest(&stack.app.db, id).await.unwrap().unwrap();
            job.lease_until.is_none().then_some(job.settlement)
        };
        assert_eq!(eventually("the job to rest", rests).await, Settlement::Submitted);
        facilitator.mine().await;
        reconcile_now(&stack).await;
        assert_eq!(payer.finished(&id_of(&answer)).await["status"], "completed");
        assert_eq!(payer.balance(&stack).await, 995_000);
    });
}

/// Does now what the sweeper would do in a minute.
async fn reconcile_now(stack: &Stack) {
    local::stack::release_leases(&stack.app.db, stack.app.clock.now()).await.unwrap();
}

#[test]
fn a_payment_never_sent_is_released_and_can_be_retried() {
    run(async {
        let facilitator = Facilitator::default();
        let stack = stack_of(&facilitator).await;
        let payer = Payer::new(&stack).await;
        let body = json!({"vin": VIN});
        let unpaid = payer.client.post(VIN_PATH, &[], &body).await;
        let payment = payer.pay(&unpaid);
        facilitator.will(&[Act::Unauthorized]);
        let answer = payer.client.post(VIN_PATH, &[("payment-signature", &payment)], &body).await;
        assert_eq!(answer.error(), (500, "payment_processing_error".to_owned()));
        assert_eq!(answer.json()["expected"]["amount"], "0.005000");
        assert_eq!(payer.balance(&stack).await, 1_000_000);
        // The same payment for the same quote, after the facilitator has recovered.
        let answer = payer.client.post(VIN_PATH, &[("payment-signature", &payment)], &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(payer.balance(&stack).await, 995_000);
    });
}

#[test]
fn a_queued_call_waits_out_an_outage() {
    run(async {
        let facilitator = Facilitator::default();
        let stack = stack_of(&facilitator).await;
        let payer = Payer::new(&stack).await;
        facilitator.will(&[Act::Unauthorized, Act::Unauthorized]);
        let accepted = payer.buy(READ_PATH, &json!({"url": format!("{}/plain", stack.site_url)})).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        for _ in 0..2 {
            reconcile_now(&stack).await;
            tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
        }
        reconcile_now(&stack).await;
        assert_eq!(payer.finished(&id_of(&accepted)).await["status"], "completed");
        assert_eq!(payer.balance(&stack).await, 998_000);
    });
}

/// A void purchase is made again with the same id, and its attempts start again. A worker that still holds the old job
/// cannot change the new one.
#[test]
fn a_stale_lease_does_not_affect_the_remade_job() {
    run(async {
        let facilitator = Facilitator::default();
        let stack = stack_of(&facilitator).await;
        let payer = Payer::new(&stack).await;
        let body = json!({"vin": VIN});
        let unpaid = payer.client.post(VIN_PATH, &[], &body).await;
        let payment = payer.pay(&unpaid);
        facilitator.will(&[Act::Unauthorized, Act::Overloaded]);
        let answer = payer.client.post(VIN_PATH, &[("payment-signature", &payment)], &body).await;
        assert_eq!(answer.status, 500, "{}", answer.text);
        let db = &stack.app.db;
        let id = books::receipts(db, payer.agent()).await[0].job_id;
        let mut old = store::load_latest(db, id).await.unwrap().expect("the job");
        assert_eq!(old.settlement, Settlement::Void);
        let answer = payer.client.post(VIN_PATH, &[("payment-signature", &payment)], &body).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        let new = store::load_latest(db, id).await.unwrap().expect("the job");
        assert_eq!((new.attempt, new.open.is_some()), (old.attempt, true), "the same in all but when it was made");
        let moved = store::postpone(db, &mut old, Duration::from_secs(3600), stack.app.clock.now()).await;
        assert!(matches!(moved, Err(MoveError::LostLease)), "{moved:?}");
        reconcile_now(&stack).await;
        assert_eq!(payer.finished(&id_of(&answer)).await["status"], "completed");
        assert_eq!(payer.balance(&stack).await, 995_000);
    });
}

/// The first answer was lost, and the second attempt is refused. The refusal says nothing about the first attempt.
#[test]
fn a_payment_that_may_have_been_sent_is_not_released() {
    run(async {
        let facilitator = Facilitator::default();
        let stack = stack_of(&facilitator).await;
        let payer = Payer::new(&stack).await;
        facilitator.will(&[Act::Overloaded, Act::Unauthorized]);
        let accepted = payer.buy(READ_PATH, &json!({"url": format!("{}/plain", stack.site_url)})).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let id = id_of(&accepted);
        let settlement = async || {
            let job = gate::jobs::store::load_latest(&stack.app.db, id.parse().unwrap()).await.unwrap().unwrap();
            (job.lease_until.is_none(), job.settlement)
        };
        for asked in 1..=2 {
            let rests = || async { (facilitator.asked("settle").len() >= asked && settlement().await.0).then_some(()) };
            eventually("the facilitator to be asked", rests).await;
            assert_eq!(settlement().await.1, gate::jobs::Settlement::Submitted, "asked {asked} times");
            reconcile_now(&stack).await;
        }
        assert_eq!(payer.finished(&id).await["status"], "completed");
        assert_eq!(payer.balance(&stack).await, 998_000);
    });
}

#[test]
fn an_unreachable_chain_causes_no_charge_and_no_loss() {
    run(async {
        let chain = chain().await;
        let proxy = Proxy::start(chain.rpc_url(), Life::immortal()).await;
        let stack = stack_with(|options| options.with("CHAIN_RPC_URL", &proxy.url)).await;
        let payer = Payer::new(&stack).await;
        let body = json!({"vin": VIN});
        let payment = header(&bare(&payer.authorize(5_000)));
        proxy.inject(|_| Some((503, json!("down"))));
        let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!(answer.error(), (503, "provider_unavailable".to_owned()));
        assert_eq!(payer.get("/v1/tools/balance").await.error(), (503, "provider_unavailable".to_owned()));

        // The chain fails from the broadcast on. The transaction may have been sent, so the call is pending.
        let mut broadcasts = 0;
        proxy.inject(move |method| {
            broadcasts += usize::from(method == "eth_sendRawTransaction");
            (broadcasts > 0).then(|| (503, json!("down")))
        });
        let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        proxy.heal();
        reconcile_now(&stack).await;
        assert_eq!(payer.finished(&id_of(&answer)).await["status"], "completed");
        assert_eq!(payer.balance(&stack).await, 995_000);

        // A stored answer is returned even while the chain is down.
        proxy.inject(|_| Some((503, json!("down"))));
        let again = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &body).await;
        assert_eq!((again.status, id_of(&again)), (200, id_of(&answer)), "{}", again.text);
    });
}

/// A node that throttles, lags, or finds no gas money says nothing about the payment. Before the claim the caller is
/// told to retry; after it the job waits or becomes void. The payment is never reported as badly signed.
#[test]
fn a_failing_node_never_makes_a_payment_look_invalid() {
    run(async {
        let chain = chain().await;
        let proxy = Proxy::start(chain.rpc_url(), Life::immortal()).await;
        let stack = stack_with(|options| options.with("CHAIN_RPC_URL", &proxy.url)).await;
        let body = json!({"vin": VIN});
        let causes = [
            json!({"code": -32016, "message": "over rate limit"}),
            json!({"code": 429, "message": "Your app has exceeded its compute units per second capacity."}),
            json!({"code": -32000, "message": "header not found"}),
            json!({"code": -32000, "message": "insufficient funds for gas * price + value: have 0 want 9"}),
        ];
        for cause in causes {
            let payer = Payer::new(&stack).await;
            let unpaid = payer.client.post(VIN_PATH, &[], &body).await;
            let payment = payer.pay(&unpaid);
            let alone = json!({"jsonrpc": "2.0", "id": 0, "error": cause});
            let batch: Vec<Value> = (0..4).map(|id| json!({"jsonrpc": "2.0", "id": id, "error": cause})).collect();

            // During the check.
            let throttled = alone.clone();
            proxy.inject(move |method| (method == "eth_call").then(|| (429, throttled.clone())));
            let answer = payer.client.post(VIN_PATH, &[("payment-signature", &payment)], &body).await;
            assert_eq!(answer.error(), (503, "provider_unavailable".to_owned()), "{cause}: {}", answer.text);
            assert_eq!(answer.header("retry-after"), Some("2"));
            assert!(books::receipts(&stack.app.db, payer.agent()).await.is_empty(), "{cause}: nothing was claimed");

            // After the claim: a direct caller is told that nothing was sent, a job waits.
            let throttled = json!(batch);
            proxy.inject(move |method| (method == "eth_estimateGas").then(|| (200, throttled.clone())));
            let answer = payer.client.post(VIN_PATH, &[("payment-signature", &payment)], &body).await;
            assert_eq!(answer.error(), (500, "payment_processing_error".to_owned()), "{cause}: {}", answer.text);
            let queued = payer.buy(READ_PATH, &json!({"url": format!("{}/plain", stack.site_url)})).await;
            assert_eq!(queued.status, 202, "{cause}: {}", queued.text);

            proxy.heal();
            let answer = payer.client.post(VIN_PATH, &[("payment-signature", &payment)], &body).await;
            assert_eq!(answer.status, 200, "{cause}: {}", answer.text);
            reconcile_now(&stack).await;
            let job = payer.finished(&id_of(&queued)).await;
            assert_eq!(
                (&job["status"], &job["settlement_status"]),
                (&json!("completed"), &json!("settled")),
                "{cause}"
            );
            assert_eq!(payer.balance(&stack).await, 993_000, "{cause}: each was paid once");
        }
    });
}

/// The broadcast never reached the node, and a stranger broadcast the payment. The fee wallet's account nonce must be
/// used all the same: a gap would block every later payment.
#[test]
fn a_strangers_broadcast_leaves_no_account_nonce_gap() {
    run(async {
        let chain = chain().await;
        let proxy = Proxy::start(chain.rpc_url(), Life::immortal()).await;
        let stack = stack_with(|options| options.with("CHAIN_RPC_URL", &proxy.url)).await;
        let payer = Payer::new(&stack).await;
        let body = json!({"vin": VIN});
        proxy.inject(|method| (method == "eth_sendRawTransaction").then(|| (503, json!("down"))));
        let authorization = payer.authorize(5_000);
        let answer = payer.client.post(VIN_PATH, &[("x-payment", &header(&bare(&authorization)))], &body).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        crate::front_run::broadcast(&chain, &authorization).await;
        proxy.heal();
        reconcile_now(&stack).await;
        assert_eq!(payer.finished(&id_of(&answer)).await["status"], "completed");
        let next = payer.buy(VIN_PATH, &body).await;
        assert_eq!(next.status, 200, "the next payment is not held up: {}", next.text);
        assert_eq!(payer.balance(&stack).await, 990_000, "charged once each");
    });
}

/// Concurrent calls through one fee wallet use every account nonce once and leave no gap.
#[test]
fn parallel_settlements_share_a_fee_wallet() {
    run(async {
        let stack = stack_with(|options| options).await;
        let payer = Payer::new(&stack).await;
        let calls: Vec<_> = (0..12)
            .map(|_| {
                let payer = payer.clone();
                tokio::spawn(async move { payer.buy(VIN_PATH, &json!({"vin": VIN})).await })
            })
            .collect();
        for call in calls {
            let answer = call.await.unwrap();
            assert!(matches!(answer.status, 200 | 202), "{}", answer.text);
            assert_eq!(payer.finished(&id_of(&answer)).await["status"], "completed");
        }
        assert_eq!(payer.balance(&stack).await, 1_000_000 - 12 * 5_000);
    });
}

/// Somebody else also uses the fee wallet: the prepared transaction can no longer be mined, so it is prepared again.
#[test]
fn an_account_nonce_spent_elsewhere_is_skipped() {
    run(async {
        let stack = stack_with(|options| options).await;
        let payer = Payer::new(&stack).await;
        assert_eq!(payer.buy(VIN_PATH, &json!({"vin": VIN})).await.status, 200);
        let chain = stack.chain.as_ref().unwrap();
        let relayer = relayer_of(&stack, &payer).await;
        chain.rpc().call("anvil_impersonateAccount", json!([relayer])).await.expect("impersonation");
        let transfer = json!({"from": relayer, "to": relayer, "value": "0x0"});
        chain.rpc().send(transfer).await.expect("a transaction of the fee wallet");
        let answer = payer.buy(VIN_PATH, &json!({"vin": VIN})).await;
        assert!(matches!(answer.status, 200 | 202), "{}", answer.text);
        assert_eq!(payer.finished(&id_of(&answer)).await["status"], "completed");
        assert_eq!(payer.balance(&stack).await, 985_000);
    });
}

/// The fee wallet of a stack: the sender of its last settlement.
async fn relayer_of(stack: &Stack, payer: &Payer) -> String {
    let answer = payer.buy(VIN_PATH, &json!({"vin": VIN})).await;
    let transaction = answer.base64_header("payment-response")["transaction"].clone();
    let rpc = stack.chain.as_ref().unwrap().rpc();
    let transaction = rpc.call("eth_getTransactionByHash", json!([transaction])).await.expect("a transaction");
    transaction["from"].as_str().expect("a sender").to_owned()
}
