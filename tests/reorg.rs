//! The chain loses its last blocks. A settlement or payout in them is sent again once; if that is impossible, the payer
//! owes the amount, or the seller gets the payout back.

use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use base::ids::RequestId;
use gate::jobs::finality::{self, Looked};
use gate::jobs::job::Lane;
use gate::jobs::{Settlement, store, sweep};
use ledger::account;
use ledger::payments::bid::FeeCap;
use ledger::payments::policy;
use ledger::payments::treasury::Treasury;
use ledger::payout::{self, Payout, PayoutStatus};
use ledger::receipt::ReceiptStatus;
use local::stack::Background;
use local::{Options, Stack};
use market::payouts::{self, PayoutRunReport};
use platform::config::ChainConfig;
use platform::net::PlainHttp;
use platform::providers::Chain;
use serde_json::{Value, json};

use crate::fees::Blocks;
use crate::front_run::broadcast;
use crate::support::proxy::{Life, Proxy};
use crate::support::seller::someone;
use crate::support::{Answer, Payer, READ_PATH, Seller, VIN, VIN_PATH, books, eventually, run};

const SOON: u64 = 61;
const LATE: u64 = 21 * 60;
const LIMIT: Duration = Duration::from_secs(20);

/// A stack on its own chain, whose last blocks can be removed.
struct Shaky {
    blocks: Blocks,
    stack: Stack,
}

impl Shaky {
    async fn new() -> Shaky {
        Shaky::with(|options| options).await
    }

    async fn with(change: impl FnOnce(Options) -> Options) -> Shaky {
        let blocks = Blocks::start().await;
        let stack = blocks.stack(change).await;
        Shaky { blocks, stack }
    }

    async fn snapshot(&self) -> Value {
        self.blocks.call("evm_snapshot", json!([])).await
    }

    /// Restores the chain at the snapshot, except for the account nonces of our wallets.
    async fn forget_since(&self, snapshot: &Value) {
        let wallets = [&self.stack.environment["RELAYER_PRIVATE_KEY"], &self.stack.environment["TREASURY_PRIVATE_KEY"]];
        let mut nonces = Vec::new();
        for key in wallets {
            let wallet = evm::signature::PrivateKey::parse(key).unwrap().address().to_string();
            let nonce = self.blocks.call("eth_getTransactionCount", json!([wallet, "latest"])).await;
            nonces.push((wallet, nonce));
        }
        assert_eq!(self.blocks.call("evm_revert", json!([snapshot])).await, true);
        for (wallet, nonce) in nonces {
            self.blocks.call("anvil_setNonce", json!([wallet, nonce])).await;
        }
        self.blocks.call("evm_mine", json!([])).await;
    }

    /// Waits until a job is noted this many times for the finality check.
    async fn noted(&self, answer: &Answer, times: usize) {
        let db = &self.stack.app.db;
        let id: RequestId = id_of(answer).parse().unwrap();
        eventually("the settlement to be noted", || async {
            let mut noted = 0;
            for shard in 0..4 {
                let partition = AttributeValue::S(format!("SETTLED#{shard}"));
                let rows = db.client().query().table_name(&db.tables.ledger).consistent_read(true);
                let rows = rows.key_condition_expression("pk = :pk").expression_attribute_values(":pk", partition);
                for row in rows.send().await.unwrap().items() {
                    let Some(Ok(jobs)) = row.get("jobs").map(AttributeValue::as_b) else { continue };
                    noted += jobs.as_ref().chunks(16).filter(|job| job == id.bytes()).count();
                }
            }
            (noted >= times).then_some(())
        })
        .await;
    }

    async fn look(&self, secs_from_now: u64) -> Looked {
        let app = &self.stack.app;
        let now = app.clock.now().plus(Duration::from_secs(secs_from_now));
        // Only a node whose newest block is younger than the settlement is asked about it.
        let looked = eventually("a look", || async {
            self.blocks.call("evm_mine", json!([])).await;
            let looked = finality::look(&app.db, &app.chain, now, LIMIT).await;
            (looked.failed == 0).then_some(looked)
        });
        let looked = looked.await;
        // The scheduler does this next: reopened jobs are due now.
        sweep::sweep(&app.db, Lane::Tools, &*self.stack.queue, now).await.expect("a sweep");
        looked
    }

    async fn exposed(&self, payer: &Payer) -> u64 {
        policy::exposure(&self.stack.app.db, payer.agent()).await.unwrap().unsettled.micro()
    }
}

fn id_of(answer: &Answer) -> String {
    let body = answer.json();
    body["request_id"].as_str().or(body["data"]["request_id"].as_str()).expect("a request id").to_owned()
}

#[test]
fn a_settlement_lost_in_a_reorg_is_sent_again_once() {
    run(async {
        for late in [false, true] {
            let shaky = Shaky::new().await;
            let payer = Payer::with(&shaky.stack, 5_000).await;
            let snapshot = shaky.snapshot().await;
            let answer = payer.buy(VIN_PATH, &json!({"vin": VIN})).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            shaky.noted(&answer, 1).await;
            if late {
                assert_eq!(shaky.look(SOON).await, Looked { asked: 1, ..Looked::default() }, "it is there");
                assert_eq!(shaky.look(SOON).await, Looked::default(), "and not asked for again so soon");
            }
            shaky.forget_since(&snapshot).await;
            assert_eq!(payer.balance(&shaky.stack).await, 5_000, "the money is back");
            // Two concurrent checks: one of them sends it.
            let secs = if late { LATE } else { SOON };
            let (one, other) = tokio::join!(shaky.look(secs), shaky.look(secs));
            assert_eq!(one.reopened + other.reopened, 1, "{one:?} {other:?}");
            let job = payer.finished(&id_of(&answer)).await;
            assert_eq!((&job["status"], &job["settlement_status"]), (&json!("completed"), &json!("settled")), "{job}");
            assert_eq!(payer.balance(&shaky.stack).await, 0, "paid once");
            assert_eq!(shaky.exposed(&payer).await, 0);
            books::audit(&shaky.stack.app.db, payer.agent()).await;
            let receipt = books::receipts(&shaky.stack.app.db, payer.agent()).await.remove(0);
            let job = store::load_latest(&shaky.stack.app.db, receipt.job_id).await.unwrap().unwrap();
            assert_eq!((receipt.status, receipt.settlement_tx), (ReceiptStatus::Settled, job.transaction));
            // After it is settled again it is checked again.
            shaky.noted(&answer, 2).await;
            assert_eq!(shaky.look(SOON).await.reopened, 0);
        }
    });
}

/// The payer has spent the money elsewhere in the meantime. The value of what it got becomes its debt.
#[test]
fn a_settlement_that_cannot_be_sent_again_becomes_the_payers_debt() {
    run(async {
        let shaky = Shaky::new().await;
        let (site, body) = (shaky.stack.site_url.clone(), |url: &str| json!({"url": url}));
        for (path, body, price, given) in [
            (VIN_PATH, json!({"vin": VIN}), 5_000, 0),
            (READ_PATH, body(&format!("{site}/plain")), 2_000, 0),
            (READ_PATH, body("http://no-such-host.invalid/"), 2_000, 2_000),
            ("/v1/credits/top-up", json!({"amount": "0.50"}), 500_000, 500_000),
        ] {
            let payer = Payer::with(&shaky.stack, price).await;
            let snapshot = shaky.snapshot().await;
            let authorization = payer.authorize(price);
            let payment = crate::support::payer::header(&crate::support::payer::bare(&authorization));
            let answer = payer.client.post(path, &[("x-payment", &payment)], &body).await;
            let job = payer.finished(&id_of(&answer)).await;
            assert_eq!(job["settlement_status"], "settled", "{path}: {job}");
            let db = &shaky.stack.app.db;
            assert_eq!(account::load(db, payer.agent()).await.unwrap().spendable().micro(), given, "{path}");
            shaky.noted(&answer, 1).await;
            shaky.forget_since(&snapshot).await;
            let elsewhere = payer.authorize_with(price, |payment| payment.to = someone());
            broadcast(&shaky.blocks.0, &elsewhere).await;
            let looked = async || shaky.look(SOON).await.reopened == 1;
            eventually("the look that finds it", || async { looked().await.then_some(()) }).await;
            eventually("the refusal", || async {
                let job = payer.get(&format!("/v1/requests/{}", id_of(&answer))).await.json();
                (job["settlement_status"] == "failed").then_some(())
            })
            .await;
            let account = books::audit(db, payer.agent()).await;
            assert_eq!(account.spendable().micro(), 0, "{path}: credits for nothing are owed: {account:?}");
            assert_eq!(shaky.exposed(&payer).await, if given == 0 { price } else { 0 }, "{path}");
            assert_eq!(payer.payment_state(&authorization).await["state"], "reversed", "{path}");
            let receipt = books::receipts(db, payer.agent()).await.remove(0);
            assert_eq!(receipt.status, ReceiptStatus::Failed, "{path}");
        }
    });
}

/// The finality check crashes at every database request. The next check does what is left, once.
#[test]
fn the_finality_check_survives_a_crash_at_every_step() {
    run(async {
        let database = local::database::start(None).await.expect("a database");
        let life = Life::ending_at(i64::MAX, false);
        let proxy = Proxy::start(&database, life.clone()).await;
        let url = proxy.url.clone();
        let shaky = Shaky::with(|options| options.with("AWS_ENDPOINT_URL", database)).await;
        // The finality check has its own connection.
        let connection = Shaky {
            blocks: shaky.blocks.clone(),
            stack: shaky
                .blocks
                .stack(|options| Options { background: Background::Worker, ..options.with("AWS_ENDPOINT_URL", url) })
                .await,
        };
        for step in 1.. {
            let payer = Payer::with(&shaky.stack, 5_000).await;
            let snapshot = shaky.snapshot().await;
            let answer = payer.buy(VIN_PATH, &json!({"vin": VIN})).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            shaky.noted(&answer, 1).await;
            shaky.forget_since(&snapshot).await;
            let (app, now) = (&connection.stack.app, shaky.stack.app.clock.now().plus(Duration::from_secs(SOON)));
            life.end_after(step);
            let first = finality::look(&app.db, &app.chain, now, LIMIT).await;
            let died = life.is_over();
            life.end_after(i64::MAX);
            shaky.look(SOON).await;
            let job = payer.finished(&id_of(&answer)).await;
            assert_eq!(job["settlement_status"], "settled", "step {step}: {first:?}");
            assert_eq!(payer.balance(&shaky.stack).await, 0, "step {step}: paid once");
            assert_eq!(shaky.exposed(&payer).await, 0, "step {step}");
            books::audit(&shaky.stack.app.db, payer.agent()).await;
            if !died {
                println!("{step} steps");
                assert!(step > 6, "a look has more steps than this");
                break;
            }
        }
    });
}

#[test]
fn a_final_settlement_is_not_checked_again() {
    run(async {
        let shaky = Shaky::with(|options| Options { background: Background::Everything, ..options }).await;
        let payer = Payer::new(&shaky.stack).await;
        let answer = payer.buy(VIN_PATH, &json!({"vin": VIN})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        shaky.noted(&answer, 1).await;
        assert_eq!(shaky.look(SOON).await.asked, 1);
        assert_eq!(shaky.look(LATE).await.asked, 1, "not final yet");
        assert_eq!(shaky.look(LATE + 60).await.asked, 0, "asked again after a while");
        shaky.blocks.call("anvil_mine", json!(["0x80"])).await;
        assert_eq!(shaky.look(LATE + 301).await.asked, 1, "final by now");
        assert_eq!(shaky.look(LATE + 3600).await, Looked::default());
        let job = store::load_latest(&shaky.stack.app.db, id_of(&answer).parse().unwrap()).await.unwrap().unwrap();
        assert_eq!((job.settlement, job.reorganized), (Settlement::Settled, false));
    });
}

/// A node that takes every request and answers none.
async fn mute_node() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            open.push(connection);
        }
    });
    url
}

#[test]
fn a_stalled_node_does_not_stop_the_sweeps_and_the_backlog_is_checked_in_one_look() {
    run(async {
        const BATCHES: u32 = 100;
        let shaky = Shaky::with(|options| Options { background: Background::Worker, ..options }).await;
        let (stack, app) = (&shaky.stack, &shaky.stack.app);
        let payer = Payer::new(stack).await;
        let answer = payer.buy(VIN_PATH, &json!({"vin": VIN})).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let settled = [id_of(&answer).parse().unwrap()];
        let written = app.clock.now().minus(Duration::from_secs(200));
        for batch in 0..BATCHES {
            finality::note(&app.db, &format!("batch {batch}"), &settled, written).await.expect("a row");
        }
        let queues = scheduler::Queues {
            tools: &*stack.queue,
            souls: &*stack.souls,
            browser: &*stack.browser,
            deliveries: &*stack.deliveries,
        };
        let config = ChainConfig { rpc_url: mute_node().await, ..stack.config.chain.clone() };
        let stalled = Chain::new(PlainHttp::new(None), &config);
        let begun = Instant::now();
        let sweeps = async {
            eventually("the sweeps", || async { sweep::last(&app.db).await.unwrap() }).await;
            begun.elapsed()
        };
        let (ran, swept_after) = tokio::join!(scheduler::run(&app.db, &stalled, queues, &app.clock), sweeps);
        let looked = ran.expect("a run").looked;
        assert!(swept_after < Duration::from_secs(8), "the sweeps waited for the node: {swept_after:?}");
        assert!(begun.elapsed() < Duration::from_secs(40), "the function's time is over: {:?}", begun.elapsed());
        assert!(looked.asked == 0 && looked.failed > 0 && looked.behind_secs >= 140, "{looked:?}");
        // The node answers again. The same job is in every row.
        let ran = scheduler::run(&app.db, &app.chain, queues, &app.clock).await.expect("a run");
        assert_eq!(ran.looked, Looked { asked: BATCHES, ..Looked::default() });
    });
}

/// A payout setup on a chain with removable blocks, without background work.
struct Till {
    shaky: Shaky,
    treasury: Treasury,
}

impl Till {
    async fn new() -> Till {
        let shaky = Shaky::with(|options| Options { background: Background::Worker, ..options }).await;
        let key = evm::signature::PrivateKey::parse(&shaky.stack.environment["TREASURY_PRIVATE_KEY"]).unwrap();
        shaky.blocks.fund(&key, 100).await;
        let app = &shaky.stack.app;
        let treasury = Treasury::new(app.chain.clone(), app.db.clone(), key, FeeCap::of(&shaky.stack.config));
        Till { shaky, treasury }
    }

    async fn run(&self, secs_from_now: u64) -> PayoutRunReport {
        let now = self.shaky.stack.app.clock.now().plus(Duration::from_secs(secs_from_now));
        payouts::run(&self.shaky.stack.app.db, &self.treasury, now).await.expect("a run")
    }

    async fn latest(&self, seller: &Seller) -> Payout {
        payout::list(&self.shaky.stack.app.db, &seller.slug, None, 1).await.unwrap().remove(0)
    }
}

#[test]
fn a_payout_lost_in_a_reorg_is_sent_again_and_paid_once() {
    run(async {
        let till = Till::new().await;
        let stack = &till.shaky.stack;
        let (seller, wallet) = (Seller::new(stack).await, someone());
        seller.earn(20_000_000, stack.app.clock.now()).await;
        assert_eq!(seller.link(wallet).await.status, 200);
        assert_eq!(seller.ask(&json!({})).await.status, 200);
        let snapshot = till.shaky.snapshot().await;
        assert_eq!(till.run(0).await.sent, 1);
        assert_eq!(till.run(6).await.completed, 1);
        let paid = async || till.shaky.blocks.0.balance_of(&wallet.to_string()).await.unwrap();
        assert_eq!(paid().await, 20_000_000);
        assert_eq!(till.run(30).await, PayoutRunReport::default(), "it is looked at again after a minute");
        // The chain loses the transaction, and the treasury's account nonce with it.
        assert_eq!(till.shaky.blocks.call("evm_revert", json!([snapshot])).await, true);
        assert_eq!(paid().await, 0);
        assert_eq!(till.run(70).await.reopened, 1);
        // The same bytes are sent. The node answers before they are in a block.
        eventually("the payment", || async { (paid().await == 20_000_000).then_some(()) }).await;
        assert_eq!(till.run(140).await, PayoutRunReport::default());
        let payout = till.latest(&seller).await;
        assert_eq!((payout.status, payout.is_final), (PayoutStatus::Completed, false));
        till.shaky.blocks.call("anvil_mine", json!(["0x80"])).await;
        assert_eq!(till.run(800).await, PayoutRunReport::default());
        assert!(till.latest(&seller).await.is_final);
        assert_eq!(till.run(3_600).await, PayoutRunReport::default());
        assert_eq!(paid().await, 20_000_000, "paid once");
    });
}

/// The account nonce was used for something else in the meantime: the seller gets the amount back.
#[test]
fn a_payout_that_cannot_be_sent_again_is_given_back() {
    run(async {
        let till = Till::new().await;
        let stack = &till.shaky.stack;
        let (seller, wallet) = (Seller::new(stack).await, someone());
        seller.earn(20_000_000, stack.app.clock.now()).await;
        assert_eq!(seller.link(wallet).await.status, 200);
        assert_eq!(seller.ask(&json!({})).await.status, 200);
        let snapshot = till.shaky.snapshot().await;
        assert_eq!(till.run(0).await.sent, 1);
        assert_eq!(till.run(6).await.completed, 1);
        till.shaky.forget_since(&snapshot).await;
        // The seller asks for another payout in the meantime.
        seller.earn(15_000_000, stack.app.clock.now()).await;
        assert_eq!(seller.ask(&json!({"amount": 15})).await.status, 200);
        for secs in [70, 100] {
            assert_eq!(till.run(secs).await.failed, 0, "it is believed after a while");
        }
        let ran = till.run(70 + 31 * 60).await;
        assert_eq!(ran.failed, 1, "{ran:?}");
        let all = payout::list(&stack.app.db, &seller.slug, None, 10).await.unwrap();
        let of = |status| all.iter().filter(|payout| payout.status == status).count();
        assert_eq!((of(PayoutStatus::Failed), of(PayoutStatus::Completed)), (1, 1), "{all:?}");
        let balance = ledger::seller::load(&stack.app.db, &seller.slug).await.unwrap();
        assert_eq!((balance.pending.micro(), balance.paid_out.micro()), (20_000_000, 15_000_000));
        assert_eq!(till.shaky.blocks.0.balance_of(&wallet.to_string()).await.unwrap(), 15_000_000);
    });
}
