//! Limits on unsettled work: cheap work that runs before its payment settles.

use std::time::Duration;

use base::clock::Clock;
use base::money::Usdc;
use ledger::payments::policy;
use local::{Options, Stack};
use serde_json::json;

use crate::support::payer::{bare, header};
use crate::support::proxy::{Life, Proxy};
use crate::support::{Payer, VIN, chain, eventually, run, stack_with};

const PATH: &str = "/v1/tools/lookup/vin";
/// The price of one call here, in micro-USDC.
const PRICE: u64 = 5_000;

/// The value of the work, in micro-USDC, that a wallet got with this many calls before any settlement.
async fn got_for_nothing(payer: &Payer, calls: usize) -> u64 {
    let mut got = 0;
    for _ in 0..calls {
        let payment = header(&bare(&payer.authorize(PRICE)));
        let answer = payer.client.post(PATH, &[("x-payment", &payment)], &json!({"vin": VIN})).await;
        match answer.status {
            200 => got += PRICE,
            202 => break,
            status => panic!("{status} {}", answer.text),
        }
    }
    got
}

/// A stack where a lookup is cheap, and whose node accepts no transaction.
async fn stack_without_blocks(change: impl FnOnce(Options) -> Options) -> (Stack, Proxy) {
    let proxy = Proxy::start(chain().await.rpc_url(), Life::immortal()).await;
    proxy.inject(|method| (method == "eth_sendRawTransaction").then(|| (503, json!("down"))));
    let url = proxy.url.clone();
    let change = |options: Options| change(options.with("CHAIN_RPC_URL", url).with("OVERLAP_BELOW_USDC", "0.01"));
    (stack_with(change).await, proxy)
}

/// Wallets are free. New wallets, each with the price of one call, get no work before they have paid.
#[test]
fn new_wallets_get_no_work_before_payment() {
    run(async {
        let (stack, _proxy) = stack_without_blocks(|options| options).await;
        let mut got = 0;
        for _ in 0..4 {
            got += got_for_nothing(&Payer::with(&stack, PRICE).await, 12).await;
        }
        println!("4 new wallets got {} USDC of work for nothing", Usdc::from_micro(got));
        assert_eq!(got, 0);
    });
}

/// A wallet gets unsettled work up to what it has settled before. After that it has to pay first.
#[test]
fn unsettled_work_never_exceeds_what_the_wallet_has_settled() {
    run(async {
        let (stack, proxy) = stack_without_blocks(|options| options).await;
        proxy.heal();
        let payer = Payer::with(&stack, 8 * PRICE).await;
        for _ in 0..3 {
            let answer = payer.buy(PATH, &json!({"vin": VIN})).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            payer.finished(answer.json()["data"]["request_id"].as_str().unwrap()).await;
        }
        proxy.inject(|method| (method == "eth_sendRawTransaction").then(|| (503, json!("down"))));
        assert_eq!(got_for_nothing(&payer, 12).await, 3 * PRICE);
        let exposure = policy::exposure(&stack.app.db, payer.agent()).await.unwrap();
        assert_eq!(exposure.unsettled.micro(), 3 * PRICE);
    });
}

/// The unsettled work of all payers together is limited per hour, besides each payer's own limit.
#[test]
fn unsettled_work_of_all_wallets_together_is_limited() {
    run(async {
        let now = Clock::system().now();
        let clock = Clock::pinned(now);
        let (stack, proxy) = stack_without_blocks(|options| Options {
            clock: clock.clone(),
            ..options.with("OVERLAP_TOTAL_USDC", "0.03")
        })
        .await;
        let known = async || {
            let payer = Payer::with(&stack, PRICE).await;
            payer.has_settled(&stack, 50_000).await;
            payer
        };
        let (first, second) = (known().await, known().await);
        assert_eq!(got_for_nothing(&first, 4).await + got_for_nothing(&second, 2).await, 30_000);
        let counted = || async { (policy::unsettled(&stack.app.db, now).await.unwrap() == 30_000).then_some(()) };
        eventually("the stream to be counted", counted).await;
        // The total is read every five seconds.
        clock.advance(Duration::from_secs(5));
        assert_eq!(got_for_nothing(&known().await, 2).await, 0, "of anybody's");
        proxy.heal();
        local::stack::release_leases(&stack.app.db, clock.now()).await.unwrap();
        let settled = || async { (policy::unsettled(&stack.app.db, now).await.unwrap() < 30_000).then_some(()) };
        eventually("a settlement to be counted", settled).await;
        clock.advance(Duration::from_secs(5));
        assert_eq!(got_for_nothing(&known().await, 1).await, PRICE, "what is settled makes room");
    });
}
