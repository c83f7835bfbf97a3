//! A database that returns conflicts, throttles and loses answers, as a real one does and an emulator never.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use gate::jobs::job::{Lane, OPEN_SHARDS};
use gate::jobs::sweep;
use local::stack::Background;
use local::{Options, Stack};
use serde_json::json;

use crate::support::payer::{bare, header};
use crate::support::proxy::{Life, Proxy, throttled, transaction_conflict};
use crate::support::{Payer, READ_PATH, VIN, VIN_PATH, books, run, stack_with};

async fn stack_on_proxy() -> (Stack, Proxy) {
    let database = local::database::start(None).await.expect("a database");
    let proxy = Proxy::start(&database, Life::immortal()).await;
    let stack = stack_with(|options| options.with("AWS_ENDPOINT_URL", &proxy.url)).await;
    (stack, proxy)
}

/// A small generator, so that a run can be repeated from its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

#[test]
fn conflicts_and_throttling_are_retried() {
    run(async {
        let (stack, proxy) = stack_on_proxy().await;
        let payer = Payer::new(&stack).await;
        let mut left = 3;
        proxy.inject(move |operation| {
            let hit = operation == "TransactWriteItems" && left > 0;
            left -= i32::from(hit);
            hit.then(transaction_conflict)
        });
        assert_eq!(payer.buy(VIN_PATH, &json!({"vin": VIN})).await.status, 200);
        // Only the first two requests of each kind fail. So no request fails at all of its three attempts, whatever
        // else runs.
        let mut asked: HashMap<String, u32> = HashMap::new();
        proxy.inject(move |operation| {
            let count = asked.entry(operation.to_owned()).or_default();
            *count += 1;
            (*count <= 2).then(throttled)
        });
        assert_eq!(payer.buy(VIN_PATH, &json!({"vin": VIN})).await.status, 200);
        proxy.heal();
        assert_eq!(payer.balance(&stack).await, 990_000);
    });
}

/// A transaction was applied but is reported as a conflict. The retry must recognise its own writes. Taken for
/// another's, they would leave a gap in the fee wallet's account nonces, which blocks every later payment.
#[test]
fn a_retried_transaction_recognises_its_own_writes() {
    run(async {
        let (stack, proxy) = stack_on_proxy().await;
        let payer = Payer::new(&stack).await;
        let mut applied = 0;
        proxy.inject_afterwards(move |operation| {
            applied += u32::from(operation == "TransactWriteItems");
            (operation == "TransactWriteItems" && applied % 2 == 1).then(transaction_conflict)
        });
        for _ in 0..2 {
            let bought = payer.buy(VIN_PATH, &json!({"vin": VIN})).await;
            assert_eq!(bought.status, 200, "{}", bought.text);
        }
        proxy.heal();
        assert_eq!(payer.balance(&stack).await, 990_000);
        books::audit(&stack.app.db, payer.agent()).await;
    });
}

/// Forty calls of four payers, some sent twice, on a database that fails one request in eight. Every payer is charged
/// exactly for what it got, and every failed job is paid back.
#[test]
fn the_books_stay_right_on_a_failing_database() {
    run(async {
        const SEED: u64 = 0x5eed0f7e57;
        let (stack, proxy) = stack_on_proxy().await;
        let dice = Arc::new(Mutex::new(Dice(SEED)));
        let thrown = dice.clone();
        let mut payers = Vec::new();
        for _ in 0..4 {
            payers.push(Payer::new(&stack).await);
        }
        proxy.inject(move |operation| match thrown.lock().unwrap().roll(16) {
            0 if operation == "TransactWriteItems" => Some(transaction_conflict()),
            0 | 1 => Some(throttled()),
            _ => None,
        });
        let mut calls = Vec::new();
        for index in 0..40 {
            let payer = payers[index % payers.len()].clone();
            let (path, body, price) = match index % 3 {
                0 => (VIN_PATH, json!({"vin": VIN}), 5_000),
                1 => (READ_PATH, json!({"url": format!("{}/plain", stack.site_url)}), 2_000),
                _ => (READ_PATH, json!({"url": "http://no-such-host.invalid/"}), 2_000),
            };
            let copies = 1 + dice.lock().unwrap().roll(3);
            let authorization = payer.authorize(price);
            let payment = header(&bare(&authorization));
            for _ in 0..copies {
                let (payer, payment, body) = (payer.clone(), payment.clone(), body.clone());
                calls.push(tokio::spawn(
                    async move { payer.client.post(path, &[("x-payment", &payment)], &body).await },
                ));
            }
            calls.push(tokio::spawn(async move { payer.client.get("/health", &[]).await }));
        }
        for call in calls {
            let answer = call.await.unwrap();
            assert!(matches!(answer.status, 200 | 202 | 500 | 503), "{} {}", answer.status, answer.text);
        }
        proxy.heal();
        local::stack::release_leases(&stack.app.db, stack.app.clock.now()).await.unwrap();
        for payer in &payers {
            books_are_straight(&stack, payer).await;
        }
    });
}

async fn books_are_straight(stack: &Stack, payer: &Payer) {
    let db = &stack.app.db;
    crate::support::eventually("the payer's jobs to end", || async {
        let open = ledger::receipt::all(db, payer.agent()).await.unwrap();
        open.iter().all(|receipt| receipt.is_terminal()).then_some(())
    })
    .await;
    let receipts = ledger::receipt::all(db, payer.agent()).await.unwrap();
    use ledger::receipt::{ExecutionStatus, ReceiptStatus};
    let settled = receipts.iter().filter(|receipt| receipt.status == ReceiptStatus::Settled);
    let charged: u64 = settled.clone().map(|receipt| receipt.amount.micro()).sum();
    let owed: u64 = settled
        .filter(|receipt| receipt.execution_status == ExecutionStatus::Failed)
        .map(|receipt| receipt.amount.micro())
        .sum();
    assert_eq!(1_000_000 - u64::try_from(payer.balance(stack).await).unwrap(), charged, "charged for what settled");
    assert_eq!(books::audit(db, payer.agent()).await.credits.micro(), owed, "paid back for what failed");
    let mut transactions: Vec<_> = receipts.iter().filter_map(|receipt| receipt.settlement_tx.as_ref()).collect();
    let all = transactions.len();
    transactions.sort();
    transactions.dedup();
    assert_eq!(transactions.len(), all, "no transfer pays for two receipts");
}

/// A shard of the open jobs that cannot be read does not block the later shards, and the sweep does not count as
/// complete.
#[test]
fn an_unreadable_shard_blocks_no_other_shard() {
    run(async {
        let database = local::database::start(None).await.expect("a database");
        let proxy = Proxy::start(&database, Life::immortal()).await;
        let stack = stack_with(|options| {
            let options = options.with("AWS_ENDPOINT_URL", &proxy.url);
            Options { background: Background::Worker, ..options }
        })
        .await;
        let mut is_first = true;
        proxy.inject(move |operation| {
            let broken = json!({"__type": "com.amazon.coral.validate#ValidationException", "message": "broken"});
            (operation == "Query" && std::mem::take(&mut is_first)).then_some((400, broken))
        });
        proxy.take_seen();
        let swept = sweep::sweep(&stack.app.db, Lane::Tools, &*stack.queue, stack.app.clock.now()).await;
        assert!(swept.is_err(), "{swept:?}");
        let read = proxy.take_seen().iter().filter(|seen| seen.operation == "Query").count();
        assert_eq!(read, usize::from(OPEN_SHARDS) - 1);
    });
}
