//! Fees rise while our transactions wait. The fees are raised up to a cap, and the money moves once, whichever bid is
//! mined, with crashes and concurrent runs.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Clock;
use devchain::DevChain;
use evm::hex0x;
use evm::signature::PrivateKey;
use gate::jobs::{Job, Settlement, store};
use ledger::payments::bid::FeeCap;
use ledger::payments::nonces;
use ledger::payments::settle::{JobPayment, Relayer, Settler, Tags};
use ledger::payments::treasury::Treasury;
use ledger::payout::{self, Payout, PayoutStatus, Sending, Waiting};
use local::stack::Background;
use local::{Options, Stack};
use market::payouts::{self, PayoutRunReport};
use serde_json::{Value, json};

use crate::support::payer::{bare, header};
use crate::support::permissions;
use crate::support::proxy::{Life, Proxy};
use crate::support::seller::someone;
use crate::support::{Payer, Seller, VIN, VIN_PATH, eventually, root, run};

const USDC: u64 = 1_000_000;
const GWEI: u64 = 1_000_000_000;
/// More than any test here needs: 10,000,000 gwei.
const AMPLE: &str = "10000000";

/// A chain of this test's own. The test makes its blocks and sets its fees.
#[derive(Clone)]
pub struct Blocks(pub Arc<DevChain>);

impl Blocks {
    pub async fn start() -> Blocks {
        let binary = devchain::install::ensure(&root().join(".tools/anvil"), &|line| eprintln!("{line}")).await;
        let options = devchain::Options::new(binary.expect("anvil can be installed with npm"));
        let chain = tokio::spawn(DevChain::start(options)).await.expect("starting the chain");
        Blocks(Arc::new(chain.expect("the chain starts")))
    }

    pub async fn call(&self, method: &str, params: Value) -> Value {
        self.0.rpc().call(method, params).await.expect(method)
    }

    pub async fn fund(&self, key: &PrivateKey, usdc: u64) {
        let address = key.address().to_string();
        self.call("anvil_setBalance", json!([address, "0x8ac7230489e80000"])).await;
        if usdc > 0 {
            self.0.mint(&address, u128::from(usdc * USDC)).await.expect("minting");
        }
    }

    /// While `held`, transactions wait.
    async fn hold(&self, held: bool) {
        self.call("evm_setAutomine", json!([!held])).await;
    }

    /// Mines a block that takes no transaction, at this gas price. Waiting transactions stay.
    async fn rise_to(&self, base_fee: u64) {
        self.call("anvil_setBlockGasLimit", json!(["0x5208"])).await;
        self.mine_at(base_fee).await;
        self.call("anvil_setBlockGasLimit", json!(["0x1c9c380"])).await;
    }

    /// Mines a block that takes waiting transactions, at this gas price. Transactions that offer less are dropped, as
    /// nodes sometimes do.
    async fn mine_at(&self, base_fee: u64) {
        self.call("anvil_setNextBlockBaseFeePerGas", json!([format!("0x{base_fee:x}")])).await;
        self.call("evm_mine", json!([])).await;
    }

    async fn knows(&self, hash: &str) -> bool {
        !self.call("eth_getTransactionByHash", json!([hash])).await.is_null()
    }

    async fn usdc_of(&self, wallet: evm::Address) -> u128 {
        self.0.balance_of(&wallet.to_string()).await.expect("a balance")
    }

    pub async fn stack(&self, change: impl FnOnce(Options) -> Options) -> Stack {
        let secret: evm::Word = base::digest::random();
        self.fund(&PrivateKey::from_bytes(&secret).expect("a key"), 0).await;
        let options = Options::in_memory(self.0.clone()).with("RELAYER_PRIVATE_KEY", hex0x(&secret));
        let options = change(options.with("RATE_LIMIT_SCALE", "1000").with("TRANSACTION_FEE_CAP_GWEI", AMPLE));
        let stack = tokio::spawn(Stack::start(options)).await.expect("starting a stack").expect("the stack starts");
        permissions::watch(&stack.guard);
        stack
    }
}

/// A stack without background work, and its treasury.
struct Till {
    blocks: Blocks,
    stack: Stack,
    treasury: Treasury,
    to_chain: Proxy,
}

impl Till {
    async fn with(cap: &'static str) -> Till {
        let blocks = Blocks::start().await;
        let key = PrivateKey::from_bytes(&base::digest::random()).expect("a key");
        blocks.fund(&key, 100).await;
        let to_chain = Proxy::start(blocks.0.rpc_url(), Life::immortal()).await;
        let url = to_chain.url.clone();
        let stack = blocks.stack(|options| {
            let options = options.with("CHAIN_RPC_URL", url).with("TRANSACTION_FEE_CAP_GWEI", cap);
            Options { background: Background::Worker, ..options }
        });
        let stack = stack.await;
        let treasury = treasury(&stack, &key);
        Till { blocks, stack, treasury, to_chain }
    }

    async fn run(&self, secs_from_now: u64) -> PayoutRunReport {
        let now = self.stack.app.clock.now().plus(Duration::from_secs(secs_from_now));
        payouts::run(&self.stack.app.db, &self.treasury, now).await.expect("a run")
    }

    async fn latest(&self, seller: &Seller) -> Payout {
        payout::list(&self.stack.app.db, &seller.slug, None, 1).await.unwrap().remove(0)
    }
}

fn treasury(stack: &Stack, key: &PrivateKey) -> Treasury {
    Treasury::new(stack.app.chain.clone(), stack.app.db.clone(), key.clone(), FeeCap::of(&stack.config))
}

/// A seller that has requested a payout of its whole balance.
async fn asking(stack: &Stack, usdc: u64) -> (Seller, evm::Address) {
    let (seller, wallet) = (Seller::new(stack).await, someone());
    seller.earn(usdc * USDC, stack.app.clock.now()).await;
    assert_eq!(seller.link(wallet).await.status, 200);
    assert_eq!(seller.ask(&json!({})).await.status, 200);
    (seller, wallet)
}

/// Nodes accept a replacement only with the same nonce and with both fees at least a tenth higher.
fn assert_replaces(raised: &Sending, first: &Sending) {
    assert_eq!(raised.account_nonce, first.account_nonce);
    assert!(raised.max_fee * 10 >= first.max_fee * 11 && raised.priority_fee * 10 >= first.priority_fee * 11);
    assert_eq!(raised.hashes()[1..], first.hashes(), "what was bid before is remembered");
}

#[test]
fn an_underpriced_payout_is_raised_and_paid_once() {
    run(async {
        for is_sent in [true, false] {
            let till = Till::with(AMPLE).await;
            let (seller, wallet) = asking(&till.stack, 20).await;
            till.blocks.hold(true).await;
            assert_eq!(till.run(0).await.sent, 1);
            let first = till.latest(&seller).await.sending.expect("a transaction");
            assert_eq!(till.run(6).await.raised, 0, "what the next block would take is left alone");
            till.blocks.rise_to(5 * GWEI).await;
            if !is_sent {
                till.to_chain.inject(|operation| (operation == "eth_sendRawTransaction").then(|| (503, json!({}))));
            }
            // Concurrent runs raise it once.
            let runs = futures_util::future::join_all((0..4).map(|_| till.run(12))).await;
            assert_eq!(runs.iter().map(|ran| ran.raised).sum::<u32>(), 1, "{runs:?}");
            let raised = till.latest(&seller).await.sending.expect("a transaction");
            assert_replaces(&raised, &first);
            let (latest, before) = (hex0x(&raised.hash), hex0x(&first.hash));
            assert_eq!((till.blocks.knows(&latest).await, till.blocks.knows(&before).await), (is_sent, !is_sent));
            assert_eq!(till.run(18).await.raised, 0, "one raise is enough");
            till.blocks.mine_at(GWEI).await;
            till.to_chain.heal();
            assert_eq!(till.run(24).await.completed, 1);
            let paid = till.latest(&seller).await;
            assert_eq!(paid.tx_hash, Some(if is_sent { latest } else { before }), "the one that was mined");
            assert_eq!(till.blocks.usdc_of(wallet).await, u128::from(20 * USDC));
            assert_eq!(seller.audit().await.0.paid_out.micro(), 20 * USDC);
        }
    });
}

/// The process crashes at every request of a run that raises a payout. Then blocks drop transactions that offer too
/// little, and fees stay high.
#[test]
fn raising_a_fee_survives_a_crash_at_every_request() {
    run(async {
        let (blocks, key) = (Blocks::start().await, PrivateKey::from_bytes(&base::digest::random()).expect("a key"));
        blocks.fund(&key, 3000).await;
        let database = local::database::start(None).await.expect("a database");
        let still = |options: Options| Options { background: Background::Worker, ..options };
        let living = blocks.stack(|options| still(options.with("AWS_ENDPOINT_URL", &database))).await;
        for arrives in [false, true] {
            for step in 1.. {
                let life = Life::ending_at(i64::MAX, arrives);
                let to_database = Proxy::start(&database, life.clone()).await;
                let to_chain = Proxy::start(blocks.0.rpc_url(), life.clone()).await;
                blocks.hold(false).await;
                blocks.mine_at(GWEI).await;
                let dying = blocks.stack(|options| {
                    let options = options.with("AWS_ENDPOINT_URL", &to_database.url);
                    still(options.with("CHAIN_RPC_URL", &to_chain.url))
                });
                let dying = dying.await;
                let ((seller, wallet), now) = (asking(&living, 12).await, living.app.clock.now());
                blocks.hold(true).await;
                let at = |secs| now.plus(Duration::from_secs(secs));
                assert_eq!(payouts::run(&living.app.db, &treasury(&living, &key), at(0)).await.unwrap().sent, 1);
                blocks.rise_to(5 * GWEI).await;
                life.end_after(step);
                let _ = payouts::run(&dying.app.db, &treasury(&dying, &key), at(6)).await;
                let died = life.is_over();
                dying.kill().await;

                let mut secs = 6;
                while seller.audit().await.0.in_flight.is_some() {
                    secs += 6;
                    assert!(secs < 100, "a payout that never ends: step {step}, arrives: {arrives}");
                    payouts::run(&living.app.db, &treasury(&living, &key), at(secs)).await.unwrap();
                    blocks.mine_at(5 * GWEI).await;
                }
                let (balance, entries) = seller.audit().await;
                assert_eq!(blocks.usdc_of(wallet).await, u128::from(12 * USDC), "step {step}, arrives: {arrives}");
                assert_eq!((balance.paid_out.micro(), entries.len()), (12 * USDC, 2));
                if !died {
                    println!("{step} steps, the last one arriving: {arrives}");
                    assert!(step > 8, "a raise makes more requests than this");
                    break;
                }
            }
        }
    });
}

#[test]
fn fees_stay_below_the_cap_and_waiting_payouts_say_so() {
    run(async {
        // About five gwei per gas of a transfer.
        let till = Till::with("350000").await;
        let (seller, wallet) = asking(&till.stack, 20).await;
        till.blocks.hold(true).await;
        assert_eq!(till.run(0).await.sent, 1);
        till.blocks.rise_to(50 * GWEI).await;
        assert_eq!(till.run(6).await.raised, 1, "to the cap");
        let (late, late_wallet) = asking(&till.stack, 10).await;
        for secs in [12, 80] {
            let ran = till.run(secs).await;
            assert_eq!((ran.raised, ran.sent, ran.waiting), (0, 0, 2), "{ran:?}");
        }
        let (capped, unsent) = (till.latest(&seller).await, till.latest(&late).await);
        let sending = capped.sending.expect("a transaction");
        assert!(
            u128::from(sending.max_fee) * u128::from(sending.gas_limit) <= till.stack.config.payments.fee_cap_wei()
        );
        assert_eq!((capped.status, capped.waiting), (PayoutStatus::Processing, Some(Waiting::FeesTooHigh)));
        assert_eq!((unsent.status, unsent.waiting), (PayoutStatus::Pending, Some(Waiting::FeesTooHigh)));
        assert_eq!(late.get("payouts").await["payouts"][0]["waiting_for"], "fees_too_high");
        // The last bid is mined as soon as fees allow it, and the other payout is sent.
        for secs in (150..600).step_by(6) {
            till.blocks.mine_at(GWEI).await;
            till.run(secs).await;
        }
        for seller in [&seller, &late] {
            assert_eq!(till.latest(seller).await.status, PayoutStatus::Completed);
        }
        assert_eq!(till.blocks.usdc_of(wallet).await, u128::from(20 * USDC));
        assert_eq!(till.blocks.usdc_of(late_wallet).await, u128::from(10 * USDC));
        seller.audit().await;
        late.audit().await;
    });
}

/// Makes two account nonces of a wallet disappear: the chain forgot their transactions, and nothing looks for them any
/// more.
async fn lose_nonces(stack: &Stack, wallet: evm::Address) {
    let (db, chain) = (&stack.app.db, &stack.app.chain);
    for _ in 0..2 {
        let on_chain = chain.transaction_count(wallet).await.unwrap();
        let next = nonces::next(db, chain, wallet, on_chain).await.unwrap();
        db.write(nonces::take(db, chain, wallet, next).unwrap()).await.unwrap();
    }
}

#[test]
fn lost_account_nonces_block_nobody() {
    run(async {
        let till = Till::with(AMPLE).await;
        lose_nonces(&till.stack, till.treasury.address()).await;
        let (seller, wallet) = asking(&till.stack, 20).await;
        assert_eq!(till.run(0).await.sent, 1);
        // A transaction may take two minutes to arrive. Its nonce is not reused before.
        for secs in [6, 60, 120] {
            assert_eq!(till.run(secs).await.completed, 0, "{secs}");
        }
        assert_eq!(till.stack.app.chain.transaction_count(till.treasury.address()).await.unwrap(), 0);
        for secs in (130..).step_by(6) {
            assert!(secs < 600, "it waits for ever");
            till.run(secs).await;
            if till.latest(&seller).await.status == PayoutStatus::Completed {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(till.blocks.usdc_of(wallet).await, u128::from(20 * USDC));
        assert_eq!(till.stack.app.chain.transaction_count(till.treasury.address()).await.unwrap(), 3);
        seller.audit().await;

        // The same before a buyer's payment.
        let (clock, blocks) = (Clock::pinned(Clock::system().now()), Blocks::start().await);
        let hand = clock.clone();
        let stack = blocks.stack(|options| Options { clock, ..options }).await;
        let payer = Payer::new(&stack).await;
        let buy = || async { payer.buy(VIN_PATH, &json!({"vin": VIN})).await.json() };
        let id_of =
            |body: &Value| body["request_id"].as_str().or(body["data"]["request_id"].as_str()).unwrap().to_owned();
        let first: base::ids::RequestId = id_of(&buy().await).parse().unwrap();
        let job = store::load_latest(&stack.app.db, first).await.unwrap().unwrap();
        let sent = blocks.call("eth_getTransactionByHash", json!([job.transaction])).await;
        lose_nonces(&stack, sent["from"].as_str().unwrap().parse().unwrap()).await;
        let body = buy().await;
        assert_eq!(body["settlement_status"], "pending", "{body}");
        let second: base::ids::RequestId = id_of(&body).parse().unwrap();
        eventually("the payment to settle", || async {
            hand.advance(Duration::from_secs(30));
            local::stack::release_leases(&stack.app.db, stack.app.clock.now()).await.unwrap();
            let job = store::load_latest(&stack.app.db, second).await.unwrap().unwrap();
            (job.settlement == Settlement::Settled && job.outcome.is_some()).then_some(())
        })
        .await;
        assert_eq!(payer.balance(&stack).await, 1_000_000 - 2 * 5_000);
    });
}

/// Sixteen processes take an account nonce at once, with a node that answers after 100 ms: each asks it once, however often
/// another is faster.
#[test]
fn the_node_is_not_asked_while_an_account_nonce_is_taken() {
    run(async {
        const PROCESSES: u64 = 16;
        let blocks = Blocks::start().await;
        let to_chain = Proxy::start(blocks.0.rpc_url(), Life::immortal()).await;
        let url = to_chain.url.clone();
        let stack =
            blocks.stack(|options| Options { background: Background::Worker, ..options.with("CHAIN_RPC_URL", url) });
        let stack = stack.await;
        let payer = Payer::new(&stack).await;
        let key = PrivateKey::from_bytes(&base::digest::random()).expect("a key");
        blocks.fund(&key, 0).await;
        to_chain.slow_down(Duration::from_millis(100));
        to_chain.take_seen();
        let begun = std::time::Instant::now();
        let taken = futures_util::future::join_all((0..PROCESSES).map(|_| async {
            let (app, authorization) = (&stack.app, payer.authorize(5_000));
            let (chain, db, tags) = (app.chain.clone(), app.db.clone(), Tags::new(&[1; 32]));
            let relayer = Relayer::new(chain, tags, db, app.clock.clone(), key.clone(), FeeCap::of(&stack.config));
            let job = base::ids::RequestId::from_bytes([1; 16]);
            let payment = JobPayment { authorization: &authorization, job };
            let mut lost = None;
            loop {
                let Ok(prepared) = Settler::prepare(&relayer, payment, lost).await else { panic!("not prepared") };
                if app.db.write_if(prepared.allocation.expect("a write")).await.expect("a database") {
                    return prepared.intent.expect("an intent").account_nonce;
                }
                lost = prepared.intent;
            }
        }));
        let mut taken = taken.await;
        println!("{PROCESSES} account nonces in {:?}", begun.elapsed());
        taken.sort_unstable();
        assert_eq!(taken, (0..PROCESSES).collect::<Vec<_>>(), "each once, none left out");
        assert_eq!(to_chain.take_seen().len() as u64, PROCESSES, "each asked the node once");
    });
}

/// A call whose broadcast gets no answer, on a chain that mines nothing.
struct Stuck {
    blocks: Blocks,
    stack: Stack,
    to_chain: Proxy,
    payer: Payer,
    id: String,
}

impl Stuck {
    /// `arrives`: whether the node has the transaction.
    async fn new(arrives: bool) -> Stuck {
        let blocks = Blocks::start().await;
        let to_chain = Proxy::start(blocks.0.rpc_url(), Life::immortal()).await;
        let url = to_chain.url.clone();
        let stack = blocks.stack(|options| options.with("CHAIN_RPC_URL", url)).await;
        let payer = Payer::new(&stack).await;
        blocks.hold(true).await;
        let lost = |operation: &str| (operation == "eth_sendRawTransaction").then(|| (503, json!("down")));
        match arrives {
            true => to_chain.inject_afterwards(lost),
            false => to_chain.inject(lost),
        }
        let authorization = payer.authorize(5_000);
        let payment = header(&bare(&authorization));
        let answer = payer.client.post(VIN_PATH, &[("x-payment", &payment)], &json!({"vin": VIN})).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        let body = answer.json();
        let id = body["request_id"].as_str().or(body["data"]["request_id"].as_str()).expect("an id").to_owned();
        if !arrives {
            blocks.hold(false).await;
            crate::front_run::broadcast(&blocks.0, &authorization).await;
        }
        Stuck { blocks, stack, to_chain, payer, id }
    }

    async fn job(&self) -> Job {
        store::load_latest(&self.stack.app.db, self.id.parse().unwrap()).await.unwrap().expect("a job")
    }

    /// Does now what the sweeper would do in a minute.
    async fn look(&self) {
        local::stack::release_leases(&self.stack.app.db, self.stack.app.clock.now()).await.unwrap();
    }
}

#[test]
fn an_underpriced_settlement_is_raised_and_served_once() {
    run(async {
        for is_sent in [true, false] {
            let stuck = Stuck::new(true).await;
            let first = stuck.job().await.intent.expect("an intent");
            stuck.to_chain.heal();
            if !is_sent {
                stuck.to_chain.inject(|operation| (operation == "eth_sendRawTransaction").then(|| (503, json!({}))));
            }
            stuck.blocks.rise_to(5 * GWEI).await;
            stuck.look().await;
            let raised = eventually("the raise", || async {
                stuck.job().await.intent.filter(|intent| intent.hash != first.hash)
            })
            .await;
            assert_eq!((raised.account_nonce, &raised.hashes()[1..]), (first.account_nonce, &first.hashes()[..]));
            assert!(raised.max_fee * 10 >= first.max_fee * 11 && raised.priority_fee * 10 >= first.priority_fee * 11);
            assert_eq!(stuck.job().await.transaction, Some(hex0x(&raised.hash)));
            let mined = hex0x(if is_sent { &raised.hash } else { &first.hash });
            eventually("the node to have it", || async { stuck.blocks.knows(&mined).await.then_some(()) }).await;
            // With automatic mining turned on first, the node would try the waiting transactions at the last block's
            // fees and drop them.
            stuck.blocks.mine_at(GWEI).await;
            stuck.blocks.hold(false).await;
            stuck.to_chain.heal();
            let done = eventually("the settlement", || async {
                stuck.look().await;
                let job = stuck.job().await;
                (job.settlement == Settlement::Settled && job.outcome.is_some()).then_some(job)
            })
            .await;
            assert_eq!(done.transaction, Some(mined), "the one that was mined");
            let payer = &stuck.payer;
            assert_eq!(payer.finished(&stuck.id).await["status"], "completed");
            // Later payments are not blocked.
            assert_eq!(payer.buy(VIN_PATH, &json!({"vin": VIN})).await.status, 200);
            assert_eq!(payer.balance(&stuck.stack).await, 990_000, "charged once each");
        }
    });
}

/// Our transaction stayed in the pool and a stranger broadcast the payment. Thousands of blocks later ours is mined and
/// reverts. The money has arrived all the same, and is honoured.
#[test]
fn an_old_transfer_by_a_stranger_is_found() {
    run(async {
        let stuck = Stuck::new(false).await;
        // A chain of 8,000 blocks. One log query covers 5,000, and the latest blocks are empty.
        let mut asked = 0;
        stuck.to_chain.inject(move |operation| {
            asked += usize::from(operation == "eth_getLogs");
            let result = match operation {
                "eth_blockNumber" => json!("0x1f40"),
                "eth_getLogs" if asked % 2 == 1 => json!([]),
                _ => return None,
            };
            Some((200, json!({"jsonrpc": "2.0", "id": 0, "result": result})))
        });
        stuck.look().await;
        let done =
            eventually("the end", || async { Some(stuck.job().await).filter(|job| job.outcome.is_some()) }).await;
        assert_eq!((done.settlement, done.refusal), (Settlement::Settled, None));
        assert_eq!(stuck.payer.finished(&stuck.id).await["status"], "completed");
        assert_eq!(stuck.payer.balance(&stuck.stack).await, 995_000);
    });
}

/// Above the cap nothing is sent: the payer keeps the payment.
#[test]
fn a_payment_above_the_fee_cap_is_not_sent() {
    run(async {
        let blocks = Blocks::start().await;
        let stack = blocks.stack(|options| options.with("TRANSACTION_FEE_CAP_GWEI", "1000")).await;
        let payer = Payer::new(&stack).await;
        let answer = payer.buy(VIN_PATH, &json!({"vin": VIN})).await;
        assert_eq!(answer.error(), (500, "payment_processing_error".to_owned()));
        assert_eq!(payer.balance(&stack).await, 1_000_000);
    });
}
