//! Ended sales become balances, entries, counters and reputation: each is counted once, under concurrent counters and
//! crashes.

use std::collections::BTreeSet;
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::money::Usdc;
use evm::Address;
use ledger::earning::SaleEnd::{Completed, Failed};
use ledger::payout::{self, End, Failure};
use ledger::seller::EntryKind;
use local::stack::Background;
use local::{Options, Stack};
use market::counting::{self, BATCH, ROUNDS};
use market::{payouts, recent, reputation, service, statistics, wallet};
use serde_json::json;

use crate::support::proxy::{Life, Proxy, throttled, transaction_conflict};
use crate::support::seller::{SERVICE, someone};
use crate::support::{Seller, run, stack_with};

const SECOND: Duration = Duration::from_secs(1);

async fn still_stack(database: Option<&str>) -> Stack {
    stack_with(|options| {
        let options = Options { background: Background::Worker, ..options };
        match database {
            Some(url) => options.with("AWS_ENDPOINT_URL", url),
            None => options,
        }
    })
    .await
}

/// Checks that all counted values agree.
async fn check(seller: &Seller, sales: u64, purchases: u64, failed: u64) {
    let (balance, entries) = seller.audit().await;
    let count = |kind| entries.iter().filter(|entry| entry.kind == kind).count() as u64;
    assert_eq!(
        [count(EntryKind::Sale), count(EntryKind::Purchase), count(EntryKind::Failed)],
        [sales, purchases, failed],
        "each sale has one entry"
    );
    let causes: BTreeSet<&str> = entries.iter().map(|entry| entry.about.cause.as_str()).collect();
    assert_eq!(causes.len() as u64, sales + purchases + failed);
    let soul = seller.soul().await;
    assert_eq!((soul.jobs, soul.purchases, balance.total_jobs), (sales, purchases, sales));
    let work = service::load(&seller.db, &seller.slug, SERVICE).await.unwrap().expect("the service");
    assert_eq!(work.total_executions, sales);
    let kept = reputation::load_latest(&seller.db, &seller.slug).await.unwrap();
    assert_eq!((kept.completed, kept.refunded), (sales + purchases, failed));
    // Midnight may have passed since the sales ended.
    let told = statistics::told(&seller.db, &seller.slug, 2, Clock::system().now()).await.unwrap();
    let totals = &told["totals"];
    let counted = ["completed_jobs", "purchases", "failed_jobs", "failed_purchases"];
    let [done, bought, failed_jobs, failed_purchases] = counted.map(|name| totals[name].as_u64().expect("a count"));
    assert_eq!([done, bought, failed_jobs + failed_purchases], [sales, purchases, failed], "{told}");
    assert_eq!(totals["revenue"], json!(balance.total_earnings.to_string()), "{told}");
}

#[test]
fn concurrent_counters_count_each_sale_once() {
    run(async {
        let database = local::database::start(None).await.expect("a database");
        let proxy = Proxy::start(&database, Life::immortal()).await;
        let stack = still_stack(Some(&proxy.url)).await;
        let (seller, now) = (Seller::new(&stack).await, stack.app.clock.now());
        let buyers: Vec<Address> = (0..40).map(|_| someone()).collect();
        let sales = (0..130).map(|index| {
            let end = if index % 13 == 0 { Failed } else { Completed };
            let mut sale = seller.sale(10_000 + index, buyers[index as usize % 40], end, now, SECOND);
            if index % 10 == 1 {
                sale.sold.service = None;
            }
            sale
        });
        let sales: Vec<_> = sales.collect();
        let of = |end, is_work: bool| {
            let of = sales.iter().filter(|sale| sale.ended == end && (sale.sold.service.is_some() || !is_work));
            of.count() as u64
        };
        let (done, failed) = (of(Completed, true), of(Failed, false));
        let bought = of(Completed, false) - done;
        seller.record(&sales).await;
        // Conflicts and throttling before the write, lost answers after it.
        let mut turn = 0;
        proxy.inject(move |operation| {
            turn += 1;
            let hit = operation == "TransactWriteItems" && turn % 5 == 0;
            hit.then(|| if turn % 2 == 0 { throttled() } else { transaction_conflict() })
        });
        let mut turn = 0;
        proxy.inject_afterwards(move |operation| {
            turn += 1;
            (operation == "TransactWriteItems" && turn % 7 == 0)
                .then(|| (500, json!({"__type": "InternalServerError"})))
        });
        let counters = (0..8).map(|_| {
            let (db, slug) = (seller.db.clone(), seller.slug.clone());
            tokio::spawn(async move { counting::fold(&db, &slug, 10, now).await })
        });
        for counter in counters.collect::<Vec<_>>() {
            // Some give up. What they leave is counted below.
            let _ = counter.await.unwrap();
        }
        proxy.heal();
        let last = counting::fold(&seller.db, &seller.slug, 10, now).await.unwrap();
        assert!(!last.more);
        check(&seller, done, bought, failed).await;
        assert_eq!(counting::fold(&seller.db, &seller.slug, 10, now).await.unwrap().records, 0, "nothing is left");
    });
}

#[test]
fn counting_survives_a_crash_at_every_request() {
    run(async {
        let database = local::database::start(None).await.expect("a database");
        for arrives in [false, true] {
            for step in 1.. {
                let life = Life::ending_at(i64::MAX, arrives);
                let proxy = Proxy::start(&database, life.clone()).await;
                let (dying, living) = (still_stack(Some(&proxy.url)).await, still_stack(Some(&database)).await);
                let (seller, now) = (Seller::new(&living).await, living.app.clock.now());
                let sales: Vec<_> =
                    (0..30).map(|_| seller.sale(10_000, Address::ZERO, Completed, now, SECOND)).collect();
                seller.record(&sales).await;
                life.end_after(step);
                let _ = counting::fold(&dying.app.db, &seller.slug, ROUNDS, now).await;
                let died = life.is_over();
                counting::fold(&seller.db, &seller.slug, ROUNDS, now).await.unwrap();
                check(&seller, 30, 0, 0).await;
                dying.kill().await;
                living.kill().await;
                if !died {
                    assert!(step > 8, "counting makes more requests than this");
                    break;
                }
            }
        }
    });
}

#[test]
fn sales_of_a_missing_soul_or_service_are_still_counted() {
    run(async {
        let stack = still_stack(None).await;
        let (mut seller, now) = (Seller::new(&stack).await, stack.app.clock.now());
        let mut sale = seller.sale(20_000, someone(), Completed, now, SECOND);
        sale.sold.service = Some("no-such-service".to_owned());
        seller.record(&[sale]).await;
        counting::fold(&seller.db, &seller.slug, ROUNDS, now).await.unwrap();
        assert_eq!(seller.audit().await.0.pending, Usdc::from_micro(16_000));
        assert!(service::load(&seller.db, &seller.slug, "no-such-service").await.unwrap().is_none());
        seller.slug = "nobody-at-all".to_owned();
        seller.record(&[seller.sale(20_000, someone(), Completed, now, SECOND)]).await;
        counting::fold(&seller.db, &seller.slug, ROUNDS, now).await.unwrap();
        assert_eq!(seller.audit().await.0.pending, Usdc::from_micro(16_000));
    });
}

/// The stream's reader counts the sale; a repeated delivery counts once.
#[test]
fn a_job_that_ends_is_counted_as_one_sale() {
    run(async {
        let stack = still_stack(None).await;
        let (seller, now) = (Seller::new(&stack).await, stack.app.clock.now());
        let sale = seller.sale(10_000, someone(), Completed, now, SECOND);
        seller.record(std::slice::from_ref(&sale)).await;
        let image = |outcome: serde_json::Value| {
            let pk = format!("JOB#{}", sale.request_id);
            let sold = json!({"M": {"soul": {"S": seller.slug}}});
            let mut image =
                json!({"pk": {"S": pk}, "settlement": {"S": "settled"}, "price": {"N": "10000"}, "sold": sold});
            image["agent"] = json!({"S": sale.buyer});
            image["outcome"] = outcome;
            image
        };
        let images = json!({
            "SequenceNumber": "1", "OldImage": image(json!(null)), "NewImage": image(json!({"S": "completed"})),
        });
        let event = json!({"Records": [{"dynamodb": images}]});
        for _ in 0..2 {
            aggregator::handle(
                &seller.db,
                stack.notices.mailer(),
                &*stack.deliveries,
                serde_json::from_value(event.clone()).unwrap(),
                now,
            )
            .await
            .unwrap();
            check(&seller, 1, 0, 0).await;
        }
    });
}

/// Each sale is in the row of the day on which it ended, and old days are not shown.
#[test]
fn sales_are_counted_on_the_day_they_ended() {
    run(async {
        let stack = still_stack(None).await;
        let (seller, now) = (Seller::new(&stack).await, Timestamp::from_secs(1_795_249_530));
        let ago = |days: u64| now.minus(Duration::from_secs(days * 24 * 3600));
        let mut sales: Vec<_> = [0, 0, 1, 29, 30, 89, 90]
            .into_iter()
            .map(|days| seller.sale(10_000, someone(), Completed, ago(days), SECOND))
            .collect();
        sales[1].sold.service = None;
        sales.push(seller.sale(10_000, someone(), Failed, ago(1), SECOND));
        seller.record(&sales).await;
        assert_eq!(counting::fold(&seller.db, &seller.slug, ROUNDS, now).await.unwrap().records, 8);
        for (days, dates, done) in [(1, 1, 1), (2, 2, 2), (30, 3, 3), (31, 4, 4), (90, 5, 5)] {
            let told = statistics::told(&seller.db, &seller.slug, days, now).await.unwrap();
            let daily = told["daily"].as_array().unwrap();
            let ordered = daily.is_sorted_by(|one, next| one["date"].as_str() < next["date"].as_str());
            assert_eq!(
                (daily.len(), &told["totals"]["completed_jobs"], ordered),
                (dates, &json!(done), true),
                "{told}"
            );
            let last = daily.last().unwrap();
            assert_eq!(
                (&last["purchases"], &last["purchase_revenue"], &last["revenue"]),
                (&json!(1), &json!("0.008000"), &json!("0.016000"))
            );
        }
        let two = statistics::told(&seller.db, &seller.slug, 2, now).await.unwrap();
        let work = json!({"service": SERVICE, "completed_jobs": 1, "failed_jobs": 1, "revenue": "0.008000"});
        assert_eq!(two["daily"][0]["services"], json!([work]));
    });
}

/// The cost of counting a sale, and that a seller with many sales still gets an answer.
#[test]
fn counting_is_cheap_and_bounded() {
    run(async {
        let database = local::database::start(None).await.expect("a database");
        let proxy = Proxy::start(&database, Life::immortal()).await;
        let stack = still_stack(Some(&proxy.url)).await;
        let (seller, now) = (Seller::new(&stack).await, stack.app.clock.now());
        let sales = |count: usize| (0..count).map(|_| seller.sale(10_000, someone(), Completed, now, SECOND));
        let cost = |seen: &[crate::support::proxy::Seen]| {
            (
                seen.iter().map(|seen| seen.read_units).sum::<f64>(),
                seen.iter().map(|seen| seen.write_units).sum::<f64>(),
            )
        };
        for (count, most_writes) in [(1, 28.0), (BATCH, 192.0)] {
            seller.record(&sales(count).collect::<Vec<_>>()).await;
            proxy.take_seen();
            assert_eq!(counting::fold(&seller.db, &seller.slug, ROUNDS, now).await.unwrap().records, count);
            let (reads, writes) = cost(&proxy.take_seen());
            println!("counting {count}: {reads} read units, {writes} write units, {:.1} a sale", writes / count as f64);
            assert!(writes <= most_writes, "{writes} write units for {count} sales");
            assert!(reads <= 12.0 + 1.5 * count as f64, "{reads} read units for {count} sales");
        }
        seller.record(&sales(ROUNDS * BATCH + 60).collect::<Vec<_>>()).await;
        proxy.take_seen();
        let first = seller.get("balance").await;
        let asked = proxy.take_seen();
        assert_eq!(first["uncounted"], true, "{first}");
        assert!(asked.len() <= ROUNDS * (BATCH + 9) + 10, "{} requests", asked.len());
        let second = seller.get("balance").await;
        assert_eq!(second.get("uncounted"), None);
        assert_eq!(second["balance"]["total_jobs"], 1 + BATCH + ROUNDS * BATCH + 60);
    });
}

#[test]
fn the_sellers_own_wallets_do_not_count_for_reputation() {
    run(async {
        let stack = still_stack(None).await;
        let (seller, now) = (Seller::new(&stack).await, stack.app.clock.now());
        let (db, slug) = (&seller.db, seller.slug.as_str());
        assert_eq!(reputation::public(db, slug).await.unwrap()["median_seconds"], json!(null));
        let [often, once, unlucky, own, late] = [(); 5].map(|()| someone());
        let seconds = Duration::from_secs;
        assert!(wallet::link(db, &slug.parse().unwrap(), own, true, now).await.unwrap());
        let mut sales = vec![
            seller.sale(10_000, often, Completed, now, seconds(10)),
            seller.sale(10_000, often, Completed, now, seconds(20)),
            seller.sale(10_000, often, Completed, now, seconds(30)),
            seller.sale(10_000, once, Completed, now, seconds(40)),
            seller.sale(10_000, unlucky, Failed, now, seconds(50)),
            // The seller itself: this counts as a job and as nothing else.
            seller.sale(10_000, own, Completed, now, seconds(1)),
            seller.sale(10_000, own, Completed, now, seconds(1)),
            seller.sale(10_000, own, Failed, now, seconds(1)),
        ];
        let mut text = seller.sale(10_000, once, Completed, now, seconds(0));
        text.sold.service = None;
        sales.push(text);
        seller.record(&sales).await;
        counting::fold(db, slug, ROUNDS, now).await.unwrap();
        let figures = |distinct: u64, repeat: f64, refund: f64, sample: u64| {
            json!({
                "distinct_buyers": distinct, "repeat_rate": repeat, "refund_rate": refund, "median_seconds": 20.0,
                "p95_seconds": 40.0, "sample_size": sample,
            })
        };
        assert_eq!(reputation::public(db, slug).await.unwrap(), figures(2, 1.0, 0.1666, 6));
        let soul = seller.soul().await;
        assert_eq!((soul.jobs, soul.buyers), (6, 2), "the mission's count is of all jobs");
        assert_eq!(soul.standing.backing, 0, "and the rank goes by what buyers paid in fees: two cents are nothing");
        let recent = recent::purchases(db, slug, now).await.unwrap();
        assert_eq!((recent.last_24h, recent.last_7d, recent.last_30d), (1, 1, 1));

        // A wallet that bought before it was linked, and one that is no longer linked.
        seller.record(&[seller.sale(1_000_000, late, Completed, now, seconds(20))]).await;
        counting::fold(db, slug, ROUNDS, now).await.unwrap();
        assert_eq!(reputation::public(db, slug).await.unwrap(), figures(3, 0.6666, 0.1428, 7));
        let soul = seller.soul().await;
        assert_eq!((soul.buyers, soul.standing.backing), (3, 2), "a fee of 0.20 is four times that of one");
        // Any wallet can be linked, also that of an unhappy buyer, and this removes no rating.
        assert!(wallet::link(db, &slug.parse().unwrap(), unlucky, false, now).await.unwrap());
        assert_eq!(reputation::public(db, slug).await.unwrap(), figures(3, 0.6666, 0.1428, 7));
        assert!(wallet::link(db, &slug.parse().unwrap(), late, true, now).await.unwrap());
        assert_eq!(reputation::public(db, slug).await.unwrap(), figures(2, 1.0, 0.1666, 6));
        let soul = seller.soul().await;
        assert_eq!((soul.buyers, soul.standing.backing), (2, 0), "what it paid is its own by now");
        // A payout to the wallet of the unhappy buyer, linked above without a signature, removes nothing either, and
        // what the wallet buys from then on is left out.
        wallet::is_paid_at(db, &slug.parse().unwrap(), unlucky, now).await.unwrap();
        assert_eq!(reputation::public(db, slug).await.unwrap(), figures(2, 1.0, 0.1666, 6));
        let after = now.plus(seconds(60));
        seller.record(&[seller.sale(10_000, unlucky, Completed, after, seconds(1))]).await;
        seller.record(&[seller.sale(10_000, unlucky, Failed, after, seconds(1))]).await;
        seller.record(&[seller.sale(10_000, own, Completed, now, seconds(1))]).await;
        seller.record(&[seller.sale(10_000, late, Completed, now, seconds(20))]).await;
        counting::fold(db, slug, ROUNDS, now).await.unwrap();
        assert_eq!(reputation::public(db, slug).await.unwrap(), figures(2, 1.0, 0.1666, 6));
        seller.audit().await;
    });
}

/// Sales, counting, payout requests, payout ends and wallet links in any order and concurrently: the books are right at
/// every moment.
#[test]
fn concurrent_sales_payouts_and_links_keep_the_books_right() {
    run(async {
        let stack = still_stack(None).await;
        let mut dice = fastrand::Rng::with_seed(20_261_121);
        let (mut returned, mut paid) = (0, Usdc::ZERO);
        for _ in 0..3 {
            let (seller, now) = (Seller::new(&stack).await, stack.app.clock.now());
            let slug = seller.slug.parse().unwrap();
            wallet::link(&seller.db, &slug, someone(), false, now).await.unwrap();
            let mut earned = 0;
            for _ in 0..40 {
                let mut acts = tokio::task::JoinSet::new();
                for _ in 0..dice.usize(1..6) {
                    let (seller, at) = (seller.clone(), Timestamp::from_millis(now.millis() + dice.i64(0..5000)));
                    let (roll, amount) = (dice.u8(0..6), dice.u64(10_000_000..40_000_000));
                    earned += if roll < 2 { amount } else { 0 };
                    acts.spawn(async move { act(&seller, roll, amount, at).await });
                }
                while let Some(done) = acts.join_next().await {
                    done.unwrap();
                }
                seller.audit().await;
            }
            counting::fold(&seller.db, &seller.slug, 100, now).await.unwrap();
            let (balance, entries) = seller.audit().await;
            assert_eq!(balance.total_earnings.micro(), earned);
            returned += entries.iter().filter(|entry| entry.kind == EntryKind::PayoutReturned).count();
            paid = paid.checked_add(balance.paid_out).unwrap();
        }
        assert!(returned > 0 && paid > Usdc::ZERO, "payouts failed ({returned}) and were paid ({paid})");
    });
}

async fn act(seller: &Seller, roll: u8, amount: u64, at: Timestamp) {
    let (db, slug) = (&seller.db, seller.slug.as_str());
    match roll {
        0 | 1 => seller.earn(amount, at).await,
        2 => drop(counting::fold(db, slug, 2, at).await.unwrap()),
        3 => {
            let asked = amount.is_multiple_of(3).then(|| Usdc::from_micro(amount));
            drop(payouts::request(db, &seller.soul().await, asked, None, at).await.unwrap());
        }
        4 => {
            for open in payout::list(db, slug, None, 100).await.unwrap().iter().filter(|payout| payout.is_open()) {
                // A payout that was sent, or one that the token refuses.
                let paid = End::Paid { transaction: "0x1".to_owned() };
                if amount.is_multiple_of(2) {
                    let sent = payout::Payout { status: payout::PayoutStatus::Processing, ..open.clone() };
                    if db.transact(&open.moved(db, sent.clone()).unwrap()).await.is_ok() {
                        let sent = payout::Payout { moves: open.moves + 1, ..sent };
                        payout::end(db, &sent, &paid, &[], at).await.unwrap();
                    }
                } else {
                    payout::end(db, open, &End::Failed(Failure::TransferRefused), &[], at).await.unwrap();
                }
            }
        }
        _ => drop(wallet::link(db, &seller.slug.parse().unwrap(), someone(), false, at).await.unwrap()),
    }
}
