//! Fees that rise while transactions of ours wait: they are raised, up to a cap, and what they move is moved once,
//! whichever bid is mined, whoever dies and whoever else is at it.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Clock;
use devchain::DevChain;
use evm::hex0x;
use evm::signature::PrivateKey;
use gate::jobs::{Job, Settlement, store};
use ledger::payments::bid::FeeCap;
use ledger::payments::nonces;
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
/// Enough for everything here: 10,000,000 gwei.
const AMPLE: &str = "10000000";

/// A chain of this test's own, whose blocks are made, and whose fees are set, by hand.
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

    /// From now on transactions wait, or do not.
    async fn hold(&self, held: bool) {
        self.call("evm_setAutomine", json!([!held])).await;
    }

    /// A block that takes nothing, and in which gas costs so much: what waits goes on waiting.
    async fn rise_to(&self, base_fee: u64) {
        self.call("anvil_setBlockGasLimit", json!(["0x5208"])).await;
        self.mine_at(base_fee).await;
        self.call("anvil_setBlockGasLimit", json!(["0x1c9c380"])).await;
    }

    /// A block that takes what waits and pays so much. What offers less is thrown out, as nodes do now and then.
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

/// A stack in which nothing moves by itself, and its treasury.
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

/// A seller that has asked for everything it has.
async fn asking(stack: &Stack, usdc: u64) -> (Seller, evm::Address) {
    let (seller, wallet) = (Seller::new(stack).await, someone());
    seller.earn(usdc * USDC, stack.app.clock.now()).await;
    assert_eq!(seller.link(wallet).await.status, 200);
    assert_eq!(seller.ask(&json!({})).await.status, 200);
    (seller, wallet)
}

/// Nodes take a replacement only under the same nonce, and if it offers a tenth more of both.
fn assert_replaces(raised: &Sending, first: &Sending) {
    assert_eq!(raised.account_nonce, first.account_nonce);
    assert!(raised.max_fee * 10 >= first.max_fee * 11 && raised.priority_fee * 10 >= first.priority_fee * 11);
    assert_eq!(raised.hashes()[1..], first.hashes(), "what was bid before is remembered");
}

#[test]
fn a_payout_the_chain_outgrew_is_raised_and_paid_once_whichever_bid_is_mined() {
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
            // Many runs at once raise it once.
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

/// The process dies at every request of a run that raises a payout. Blocks then throw out what offers too little, and
/// fees stay where they are.
#[test]
fn a_raise_survives_death_at_every_request() {
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
fn the_cap_holds_and_who_waits_for_it_is_told() {
    run(async {
        // Some five gwei for each gas of a transfer.
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
        // What was bid last is mined as soon as fees allow it, and the other is sent.
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

/// Two account nonces of a wallet are gone: the chain forgot what was sent with them, and nobody looks for it any more.
async fn lose_nonces(stack: &Stack, wallet: evm::Address) {
    let (db, chain) = (&stack.app.db, &stack.app.chain);
    for _ in 0..2 {
        let next = nonces::next(db, chain, wallet).await.unwrap().unwrap();
        db.write(nonces::take(db, chain, wallet, next).unwrap()).await.unwrap();
    }
}

#[test]
fn account_nonces_that_the_chain_lost_hold_nobody_up() {
    run(async {
        let till = Till::with(AMPLE).await;
        lose_nonces(&till.stack, till.treasury.address()).await;
        let (seller, wallet) = asking(&till.stack, 20).await;
        assert_eq!(till.run(0).await.sent, 1);
        // What is on its way arrives within two minutes: nothing is taken from it before.
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

/// A call whose broadcast nobody answers for, on a chain that takes nothing.
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

    /// What the sweeper would look at in a minute, it looks at now.
    async fn look(&self) {
        local::stack::release_leases(&self.stack.app.db, self.stack.app.clock.now()).await.unwrap();
    }
}

#[test]
fn a_settlement_the_chain_outgrew_is_raised_and_served_once_whichever_bid_is_mined() {
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
            // Turned on first, the node would try what waits at the fees of the last block, and throw it out.
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
            // What comes after it is not held up.
            assert_eq!(payer.buy(VIN_PATH, &json!({"vin": VIN})).await.status, 200);
            assert_eq!(payer.balance(&stuck.stack).await, 990_000, "charged once each");
        }
    });
}

/// Ours was left lying, a stranger broadcast the payment meanwhile, and thousands of blocks later ours is mined and
/// reverts: the money is here all the same, and is honoured.
#[test]
fn money_that_came_another_way_long_ago_is_found() {
    run(async {
        let stuck = Stuck::new(false).await;
        // A chain of 8,000 blocks, of which one question for logs covers 5,000: the latest of them are empty.
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

/// Beyond the cap nothing is begun: the payment stays its payer's.
#[test]
fn a_payment_dearer_than_the_cap_is_not_sent() {
    run(async {
        let blocks = Blocks::start().await;
        let stack = blocks.stack(|options| options.with("TRANSACTION_FEE_CAP_GWEI", "1000")).await;
        let payer = Payer::new(&stack).await;
        let answer = payer.buy(VIN_PATH, &json!({"vin": VIN})).await;
        assert_eq!(answer.error(), (500, "payment_processing_error".to_owned()));
        assert_eq!(payer.balance(&stack).await, 1_000_000);
    });
}
