//! Payouts: a seller's earnings arrive at its wallet once, under concurrent requests, crashes, chain failures and an
//! empty treasury.

use std::time::{Duration, Instant};

use base::money::Usdc;
use evm::abi::{self, Argument};
use evm::signature::PrivateKey;
use evm::{Address, hex0x, word_from_u64};
use ledger::earning::SaleEnd;
use ledger::payments::bid::FeeCap;
use ledger::payments::nonces::{self, NextNonce};
use ledger::payments::treasury::Treasury;
use ledger::payout::{self, Failure, Payout, PayoutStatus, Waiting};
use local::stack::Background;
use local::{Options, Stack};
use market::payouts::{self, PayoutRunReport};
use market::soul;
use platform::store::{Key, Write};
use serde_json::{Value, json};

use crate::support::proxy::{Life, Proxy};
use crate::support::seller::someone;
use crate::support::{Client, Payer, Seller, chain, eventually, run, stack_with};

const USDC: u64 = 1_000_000;

/// A wallet with gas money and this many USDC.
async fn wallet_with(usdc: u64) -> PrivateKey {
    let key = PrivateKey::from_bytes(&base::digest::random()).expect("a key");
    fund(&key, usdc).await;
    key
}

async fn fund(key: &PrivateKey, usdc: u64) {
    let (chain, address) = (chain().await, key.address().to_string());
    chain.rpc().call("anvil_setBalance", json!([address, "0x8ac7230489e80000"])).await.expect("gas money");
    chain.mint(&address, u128::from(usdc * USDC)).await.expect("minting");
}

/// A stack without background work, and its treasury.
struct Till {
    stack: Stack,
    key: PrivateKey,
    treasury: Treasury,
    to_chain: Proxy,
}

impl Till {
    async fn with(usdc: u64) -> Till {
        let (key, to_chain) = (wallet_with(usdc).await, Proxy::start(chain().await.rpc_url(), Life::immortal()).await);
        let stack = stack_with(|options| {
            let options = options.with("CHAIN_RPC_URL", &to_chain.url);
            Options { background: Background::Worker, ..options }
        })
        .await;
        let treasury =
            Treasury::new(stack.app.chain.clone(), stack.app.db.clone(), key.clone(), FeeCap::of(&stack.config));
        Till { stack, key, treasury, to_chain }
    }

    /// A seller with a linked wallet and this many USDC on its balance.
    async fn seller(&self, usdc: u64) -> (Seller, Address) {
        let (seller, wallet) = (Seller::new(&self.stack).await, someone());
        seller.earn(usdc * USDC, self.stack.app.clock.now()).await;
        assert_eq!(seller.link(wallet).await.status, 200);
        (seller, wallet)
    }

    /// Runs the payouts this many seconds from now, after the node has mined the treasury's transactions.
    async fn run(&self, secs_from_now: u64) -> PayoutRunReport {
        let (chain, address) = (chain().await, self.key.address().to_string());
        eventually("the treasury's transactions to be mined", || async {
            let [mined, sent] = ["latest", "pending"]
                .map(|block| chain.rpc().quantity("eth_getTransactionCount", json!([address, block])));
            (mined.await.ok()? == sent.await.ok()?).then_some(())
        })
        .await;
        // The node has a block's new state before its receipts, and begins another block when both are there.
        chain.rpc().call("evm_mine", json!([])).await.expect("a block");
        let now = self.stack.app.clock.now().plus(Duration::from_secs(secs_from_now));
        payouts::run(&self.stack.app.db, &self.treasury, now).await.expect("a run")
    }

    /// From now on the node refuses transactions.
    fn stop_broadcasts(&self) {
        self.to_chain.inject(|operation| (operation == "eth_sendRawTransaction").then(|| (503, json!({}))));
    }

    async fn latest(&self, seller: &Seller) -> Payout {
        payout::list(&self.stack.app.db, &seller.slug, None, 1).await.unwrap().remove(0)
    }

    /// The treasury sends a transaction that this service does not know.
    async fn operator_sends(&self, to: Address, data: &[u8]) {
        let (rpc, from) = (chain().await, self.key.address().to_string());
        let rpc = rpc.rpc();
        rpc.call("anvil_impersonateAccount", json!([from])).await.expect("impersonation");
        let sent = json!({"from": from, "to": to.to_string(), "data": hex0x(data)});
        rpc.call("eth_sendTransaction", json!([sent])).await.expect("a transaction");
    }
}

async fn usdc_of(wallet: Address) -> u128 {
    chain().await.balance_of(&wallet.to_string()).await.expect("a balance")
}

fn transfer(to: Address, micro: u64) -> Vec<u8> {
    abi::call("transfer(address,uint256)", &[to.word(), word_from_u64(micro)].map(Argument::Word))
}

#[test]
fn earnings_arrive_at_the_linked_wallet() {
    run(async {
        let secret: [u8; 32] = base::digest::random();
        fund(&PrivateKey::from_bytes(&secret).expect("a key"), 100).await;
        let stack = stack_with(|options| options.with("TREASURY_PRIVATE_KEY", hex0x(&secret))).await;
        let (seller, now) = (Seller::new(&stack).await, stack.app.clock.now());
        let owner = Payer::new(&stack).await;
        let sale = seller.sale(15_000_003, someone(), SaleEnd::Completed, now, Duration::from_secs(2));
        seller.record(&[sale]).await;
        assert_eq!(seller.ask(&json!({})).await.error(), (400, "wallet_not_linked".to_owned()));
        assert_eq!(seller.link(owner.address()).await.status, 200);
        let balance = seller.get("balance").await;
        assert_eq!(
            balance["balance"].to_string(),
            r#"{"pending":12.000003,"total_earnings":12.000003,"total_jobs":1}"#
        );
        assert_eq!(balance["recent_payouts"], json!([]));
        assert_eq!((&balance["available_usdc"], &balance["total_earned_usdc"]), (&json!(12.000003), &json!(12.000003)));
        assert_eq!(balance["payout_address"], owner.address().to_string());

        let asked = seller.ask(&json!({"amount": 11.5})).await;
        assert_eq!(asked.status, 200, "{}", asked.text);
        let asked = asked.json();
        assert_eq!((&asked["success"], &asked["payout"]["status"]), (&json!(true), &json!("pending")));
        assert_eq!(asked["payout"]["amount"], 11.5);
        let done = eventually("the payout", || async {
            let payout = seller.get("balance").await["recent_payouts"][0].clone();
            (payout["status"] == "completed").then_some(payout)
        })
        .await;
        assert_eq!(done["id"], asked["payout"]["id"]);
        assert!(done["tx_hash"].as_str().is_some_and(|hash| hash.len() == 66) && done["processed_at"].is_string());
        assert_eq!(owner.balance(&stack).await, 1_000_000 + 11_500_000, "the tokens are there");
        assert_eq!(seller.get("payouts").await["payouts"], json!([done]));
        let told = owner.get("/v1/tools/notifications").await.json();
        assert_eq!(told["notifications"][0]["type"], "payout_completed", "{told}");

        let statement = seller.get("statement").await;
        let rows = statement["entries"].as_array().unwrap();
        assert_eq!((&rows[0]["kind"], &rows[0]["amount"]), (&json!("sale"), &json!(12.000003)));
        assert_eq!((&rows[0]["price"], &rows[0]["platform_fee"]), (&json!(15.000003), &json!(3)));
        assert_eq!((&rows[1]["amount"], &rows[1]["balance"]), (&json!(-11.5), &json!(0.500003)));
        let first = seller.get("statement?limit=1").await;
        let next = first["next_cursor"].as_str().expect("a cursor");
        assert_eq!(seller.get(&format!("statement?limit=1&cursor={next}")).await["entries"], json!([rows[1]]));
        let before = format!("statement?to={}", rows[0]["booked_at"].as_str().unwrap());
        assert_eq!(seller.get(&before).await["count"], 0);
        let csv = seller.call("GET", "statement", &[("accept", "text/csv")], &Value::Null).await.unwrap();
        assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
        assert_eq!(csv.text.lines().count(), 3, "{}", csv.text);
        seller.audit().await;
    });
}

#[test]
fn bad_input_is_refused_by_name() {
    run(async {
        let till = Till::with(0).await;
        let (seller, _) = till.seller(30).await;
        let (unknown, anybody) = (hex0x(&[1; 32]), Client::new(&till.stack.base_url));
        for key in [None, Some("Bearer nonsense".to_owned()), Some(format!("Bearer soul_{}", &unknown[2..]))] {
            let headers: Vec<(&str, &str)> = key.iter().map(|key| ("authorization", key.as_str())).collect();
            assert_eq!(anybody.get("/v1/soul/me/balance", &headers).await.error(), (401, "unauthorized".to_owned()));
        }
        for (body, status, code) in [
            (json!({"amount": 9.999999}), 400, "payout_failed"),
            (json!({"amount": 0}), 400, "payout_failed"),
            (json!({"amount": 30.000001}), 400, "payout_failed"),
            (json!({"amount": 10.0000001}), 400, "invalid_request"),
            (json!({"amount": -10}), 400, "invalid_request"),
            (json!({"amount": "20"}), 400, "invalid_request"),
            (json!({"amount": 1e300}), 400, "invalid_request"),
            (json!([]), 400, "invalid_request"),
        ] {
            assert_eq!(seller.ask(&body).await.error(), (status, code.to_owned()), "{body}");
        }
        let config = &till.stack.config;
        till.run(0).await;
        // A wallet that the service pays gas with, such as the relayer.
        let (app, relayer) = (&till.stack.app, someone());
        let first = NextNonce { stored: None, nonce: 7 };
        app.db.write(nonces::take(&app.db, &app.chain, relayer, first).unwrap()).await.unwrap();
        for wallet in [
            json!(relayer.to_string()),
            json!("0x5AaeB6053F3E94C9b9A09f33669435E7Ef1BeAed"),
            json!(Address::ZERO.lower()),
            json!(config.chain.token.address.to_string()),
            json!(config.payments.pay_to.to_string()),
            json!(till.key.address().to_string()),
            json!("0x12"),
            json!("0X00000000000000000000000000000000000000ff"),
            json!(7),
            Value::Null,
        ] {
            let answer = seller.call("PUT", "link-wallet", &[], &json!({"wallet_address": wallet})).await.unwrap();
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{wallet}");
            assert_eq!(answer.json()["details"][0]["path"], "wallet_address");
        }
        for path in
            ["statement?limit=0", "statement?limit=501", "statement?from=x", "statement?format=pdf", "payouts?limit=x"]
        {
            let answer = seller.call("GET", path, &[], &Value::Null).await.unwrap();
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{path}");
        }
        for path in ["statement?cursor=x", "payouts?before=x"] {
            let answer = seller.call("GET", path, &[], &Value::Null).await.unwrap();
            assert_eq!(answer.error(), (400, "invalid_cursor".to_owned()), "{path}");
        }
        assert_eq!(seller.audit().await.0.pending, Usdc::from_micro(30 * USDC));
    });
}

#[test]
fn twenty_concurrent_requests_make_one_payout() {
    run(async {
        let till = Till::with(100).await;
        let (seller, wallet) = till.seller(60).await;
        let asked = (0..20).map(|_| {
            let seller = seller.clone();
            tokio::spawn(async move { seller.ask(&json!({"amount": 20})).await })
        });
        let mut accepted = 0;
        for asked in asked.collect::<Vec<_>>() {
            let answer = asked.await.unwrap();
            match answer.status {
                200 => accepted += 1,
                _ => assert_eq!(answer.error(), (400, "payout_failed".to_owned())),
            }
        }
        assert_eq!(accepted, 1);
        // Concurrent runs count as one run.
        let runs = futures_util::future::join_all((0..4).map(|_| till.run(0))).await;
        assert_eq!(runs.iter().map(|ran| ran.sent).sum::<u32>(), 1, "{runs:?}");
        futures_util::future::join_all((0..4).map(|_| till.run(10))).await;
        assert_eq!(usdc_of(wallet).await, u128::from(20 * USDC));
        assert_eq!(seller.audit().await.0.pending, Usdc::from_micro(40 * USDC));
        assert_eq!(seller.audit().await.0.in_flight, None);

        // Requests with one idempotency key are one request.
        let key = [("idempotency-key", "march")];
        let body = json!({"amount": 15});
        let asked = (0..10).map(|_| seller.call("POST", "payout", &key, &body));
        let ids = futures_util::future::join_all(asked).await.into_iter().map(|answer| {
            let answer = answer.unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text);
            answer.json()["payout"]["id"].as_str().unwrap().to_owned()
        });
        let ids: std::collections::BTreeSet<String> = ids.collect();
        assert_eq!(ids.len(), 1);
        let other = seller.call("POST", "payout", &key, &json!({"amount": 16})).await.unwrap();
        assert_eq!(other.error(), (422, "idempotency_key_reused".to_owned()));
        assert_eq!(seller.audit().await.0.pending, Usdc::from_micro(25 * USDC));
    });
}

/// The process crashes at every request of asking for a payout and of paying it, before or after the request arrives.
/// Then the seller asks again with the same idempotency key, and is paid once.
#[test]
fn a_payout_survives_a_crash_at_every_request() {
    run(async {
        let (chain, key) = (chain().await, wallet_with(3000).await);
        let database = local::database::start(None).await.expect("a database");
        let still = |options: Options| Options { background: Background::Worker, ..options };
        let living = stack_with(|options| still(options.with("AWS_ENDPOINT_URL", &database))).await;
        let treasury = |stack: &Stack| {
            Treasury::new(stack.app.chain.clone(), stack.app.db.clone(), key.clone(), FeeCap::of(&stack.config))
        };
        for arrives in [false, true] {
            for step in 1.. {
                let life = Life::ending_at(i64::MAX, arrives);
                let to_database = Proxy::start(&database, life.clone()).await;
                let to_chain = Proxy::start(chain.rpc_url(), life.clone()).await;
                let dying = stack_with(|options| {
                    let options = options.with("AWS_ENDPOINT_URL", &to_database.url);
                    still(options.with("CHAIN_RPC_URL", &to_chain.url))
                })
                .await;
                let (seller, wallet, now) = (Seller::new(&living).await, someone(), living.app.clock.now());
                seller.earn(12 * USDC, now).await;
                assert_eq!(seller.link(wallet).await.status, 200);
                let name = [("idempotency-key", "the one")];
                life.end_after(step);
                let _ = seller.at(&dying).call("POST", "payout", &name, &json!({})).await;
                for secs in [0, 6] {
                    let now = now.plus(Duration::from_secs(secs));
                    let _ = payouts::run(&dying.app.db, &treasury(&dying), now).await;
                }
                let died = life.is_over();
                dying.kill().await;

                let again = seller.call("POST", "payout", &name, &json!({})).await.unwrap();
                assert_eq!(again.status, 200, "{}", again.text);
                let (mut secs, asked) = (10, Instant::now());
                while seller.audit().await.0.in_flight.is_some() {
                    secs += 6;
                    // The node needs some time to mine.
                    let is_patient = asked.elapsed() < Duration::from_secs(30);
                    assert!(is_patient, "a payout that never ends: step {step}, arrives: {arrives}");
                    payouts::run(&living.app.db, &treasury(&living), now.plus(Duration::from_secs(secs.min(100))))
                        .await
                        .unwrap();
                    tokio::time::sleep(Duration::from_millis(if secs < 30 { 0 } else { 50 })).await;
                }
                let (balance, entries) = seller.audit().await;
                assert_eq!(usdc_of(wallet).await, u128::from(12 * USDC), "step {step}, arrives: {arrives}");
                assert_eq!((balance.pending, balance.paid_out.micro()), (Usdc::ZERO, 12 * USDC));
                assert_eq!(entries.len(), 2, "earned and paid");
                if !died {
                    println!("{step} steps, the last one arriving: {arrives}");
                    assert!(step > 20, "a payout makes more requests than this");
                    break;
                }
            }
        }
    });
}

#[test]
fn a_reverted_transfer_is_given_back_once() {
    run(async {
        let till = Till::with(20).await;
        let (seller, wallet) = till.seller(20).await;
        assert_eq!(seller.ask(&json!({})).await.status, 200);
        till.stop_broadcasts();
        assert_eq!(till.run(0).await.sent, 1);
        // Between the intent and the broadcast the money is spent elsewhere, without using an account nonce of the
        // treasury.
        let holder = Payer::of(till.key.clone(), &till.stack.config, &till.stack.base_url);
        let away = holder.authorize_with(15 * USDC, |payment| payment.to = someone());
        let (chain, data) = (chain().await, platform::providers::chain::transfer_call(&away));
        chain.send(chain.token(), &hex0x(&data)).await.expect("the money is gone");
        till.to_chain.heal();
        till.run(6).await;
        assert_eq!((till.run(12).await.failed, till.run(30).await.failed), (0, 0), "not believed at once");
        let waiting = till.latest(&seller).await;
        assert_eq!(waiting.in_doubt.map(|(failure, _)| failure), Some(Failure::Reverted), "{waiting:?}");
        assert_eq!(seller.audit().await.0.pending, Usdc::ZERO);
        let ran = futures_util::future::join_all((0..3).map(|_| till.run(80))).await;
        assert_eq!(ran.iter().map(|ran| ran.failed).sum::<u32>(), 1, "{ran:?}");
        let failed = seller.get("payouts").await["payouts"][0].clone();
        assert_eq!((&failed["status"], &failed["failure"]), (&json!("failed"), &json!("reverted")));
        assert_eq!(seller.audit().await.0.pending, Usdc::from_micro(20 * USDC));

        // Once more, now with funds.
        chain.mint(&till.key.address().to_string(), u128::from(20 * USDC)).await.unwrap();
        assert_eq!(seller.ask(&json!({})).await.status, 200);
        till.run(90).await;
        till.run(100).await;
        assert_eq!(usdc_of(wallet).await, u128::from(20 * USDC));
        assert_eq!(seller.audit().await.0.pending, Usdc::ZERO);
    });
}

#[test]
fn a_replacement_transfer_by_the_operator_is_recognised() {
    run(async {
        for pays in [true, false] {
            let till = Till::with(50).await;
            let (seller, wallet) = till.seller(20).await;
            assert_eq!(seller.ask(&json!({})).await.status, 200);
            till.stop_broadcasts();
            assert_eq!(till.run(0).await.sent, 1);
            let token = till.stack.config.chain.token.address;
            let to = if pays { wallet } else { someone() };
            till.operator_sends(token, &transfer(to, 20 * USDC)).await;
            till.to_chain.heal();
            if pays {
                // A node that returns the log but not its transaction proves nothing.
                let nothing = json!({"jsonrpc": "2.0", "id": 0, "result": null});
                let unknown =
                    move |operation: &str| (operation == "eth_getTransactionByHash").then(|| (200, nothing.clone()));
                till.to_chain.inject(unknown);
                for secs in [10, 1900] {
                    assert_eq!(till.run(secs).await.failed, 0, "given back, and it arrived");
                }
                till.to_chain.heal();
                // The same transfer with the same account nonce counts as the payout once the chain shows it.
                eventually("the operator's transfer", || async { (till.run(10).await.completed == 1).then_some(()) })
                    .await;
                let paid = till.latest(&seller).await;
                assert_ne!(paid.tx_hash, Some(hex0x(&paid.sending.unwrap().hash)));
                assert_eq!(usdc_of(wallet).await, u128::from(20 * USDC));
            } else {
                for secs in [10, 60, 1700] {
                    assert_eq!(till.run(secs).await.failed, 0, "not believed before half an hour");
                }
                assert_eq!(till.run(1900).await.failed, 1);
                assert_eq!(till.latest(&seller).await.failure, Some(Failure::Replaced));
                assert_eq!(usdc_of(wallet).await, 0);
            }
            let pending = if pays { 0 } else { 20 * USDC };
            assert_eq!(seller.audit().await.0.pending, Usdc::from_micro(pending));
        }
    });
}

#[test]
fn a_payout_waits_and_says_why() {
    run(async {
        let till = Till::with(15).await;
        let ((first, one), (second, two)) = (till.seller(10).await, till.seller(10).await);
        assert_eq!(first.ask(&json!({})).await.status, 200);
        assert_eq!(second.ask(&json!({})).await.status, 200);
        let suspend = |status: &'static str| {
            let table = &till.stack.app.db.tables.souls;
            let write = Write::update(table, soul::key(&first.slug), "SET #status = :status");
            till.stack.app.db.write(write.bind("status", status).unwrap())
        };
        let why = async |seller: &Seller| till.latest(seller).await.waiting;
        suspend("suspended").await.unwrap();
        assert_eq!((till.run(0).await.sent, why(&first).await), (1, Some(Waiting::SellerSuspended)));
        suspend("active").await.unwrap();
        // The amount already sent still counts, and the rest is not enough.
        let ran = till.run(200).await;
        assert_eq!((ran.completed, ran.sent, why(&first).await), (1, 0, Some(Waiting::TreasuryShort)));
        assert_eq!((usdc_of(one).await, usdc_of(two).await), (0, u128::from(10 * USDC)));
        assert_eq!(first.get("payouts").await["payouts"][0]["waiting_for"], "treasury_short");
        let (chain, address) = (chain().await, till.key.address().to_string());
        chain.mint(&address, u128::from(10 * USDC)).await.unwrap();
        chain.rpc().call("anvil_setBalance", json!([address, "0x1"])).await.unwrap();
        assert_eq!((till.run(300).await.sent, why(&first).await), (0, Some(Waiting::TreasuryOutOfGas)));
        till.to_chain.inject(|_| Some((502, json!({}))));
        assert_eq!((till.run(400).await.sent, why(&first).await), (0, Some(Waiting::ChainUnavailable)));
        till.to_chain.heal();
        chain.rpc().call("anvil_setBalance", json!([address, "0x8ac7230489e80000"])).await.unwrap();
        till.run(500).await;
        till.run(510).await;
        assert_eq!(
            (till.latest(&first).await.status, usdc_of(one).await),
            (PayoutStatus::Completed, u128::from(10 * USDC))
        );
        first.audit().await;
        second.audit().await;
    });
}

/// An unreadable record affects its own seller and needs an operator. All other payouts continue.
#[test]
fn an_unreadable_payout_blocks_no_other() {
    run(async {
        let till = Till::with(100).await;
        let ((broken, _), (whole, wallet)) = (till.seller(10).await, till.seller(10).await);
        for seller in [&broken, &whole] {
            assert_eq!(seller.ask(&json!({})).await.status, 200);
        }
        let key = Key::new(format!("SELLER#{}", broken.slug), format!("PAYOUT#{}", till.latest(&broken).await.id));
        let write = Write::update(&till.stack.app.db.tables.ledger, key, "SET #amount = :amount");
        till.stack.app.db.write(write.bind("amount", "much").unwrap()).await.unwrap();
        till.run(0).await;
        till.run(10).await;
        assert_eq!(usdc_of(wallet).await, u128::from(10 * USDC));
    });
}

#[test]
fn a_wallet_is_linked_to_one_soul_chosen_by_its_owner() {
    run(async {
        let till = Till::with(0).await;
        let owner = Payer::new(&till.stack).await;
        let wallet = owner.address();
        let body = json!({"wallet_address": wallet.to_string()});
        // One of several concurrent requests succeeds.
        let souls = futures_util::future::join_all((0..8).map(|_| Seller::new(&till.stack))).await;
        let linked = futures_util::future::join_all(souls.iter().map(|soul| soul.link(wallet))).await;
        let winners: Vec<usize> = (0..8).filter(|index| linked[*index].status == 200).collect();
        assert_eq!(winners.len(), 1, "{linked:?}");
        let squatter = &souls[winners[0]];
        let refused = linked.iter().find(|answer| answer.status != 200).unwrap();
        assert_eq!(refused.error(), (409, "wallet_already_linked".to_owned()));
        assert_eq!(squatter.link(wallet).await.status, 200, "again is the same as once");

        let mine = &souls[(winners[0] + 1) % 8];
        let prove = async |soul: &Seller, proof: &str| {
            soul.call("PUT", "link-wallet", &[("x-agent-proof", proof)], &body).await.unwrap()
        };
        assert_eq!(prove(mine, &owner.proof("read")).await.error(), (401, "invalid_proof".to_owned()));
        let stranger = Payer::new(&till.stack).await.proof("write");
        assert_eq!(prove(mine, &stranger).await.json()["reason"], "agent_mismatch");
        let taken = prove(mine, &owner.proof("write")).await;
        assert_eq!((taken.status, &taken.json()["verified"]), (200, &json!(true)), "{}", taken.text);
        assert_eq!((mine.soul().await.wallet, squatter.soul().await.wallet), (Some(wallet), None));
        assert_eq!(squatter.link(wallet).await.status, 409);
        assert_eq!(prove(squatter, &owner.proof("write")).await.status, 409, "a proven link is nobody's to take");

        // Linking another wallet frees it, here with the proof in the body.
        assert_eq!(mine.link(someone()).await.status, 200);
        assert!(!mine.soul().await.wallet_verified);
        let mut body = body.clone();
        body["proof"] = json!(owner.proof("write"));
        let again = squatter.call("PUT", "link-wallet", &[], &body).await.unwrap();
        assert_eq!((again.status, squatter.soul().await.wallet_verified), (200, true));
        let found = soul::find(&till.stack.app.db, &wallet.to_string()).await.unwrap();
        assert_eq!(found.map(|soul| soul.slug.to_string()).as_deref(), Some(squatter.slug.as_str()));
    });
}
