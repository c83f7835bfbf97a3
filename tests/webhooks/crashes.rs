//! A courier that crashes at each of its requests, before or after it arrives; and the cost of an event.

use std::time::Duration;

use ledger::webhooks::DeliveryState;

use super::bench::Bench;
use crate::support::proxy::{Life, Proxy, Seen};
use crate::support::receiver::{Receiver, status};
use crate::support::run;

/// After any crash the event arrives with the same id, at most once more than there were crashes.
#[test]
fn an_event_arrives_after_any_crash() {
    run(async {
        for (first, last_one_arrives) in [(204, false), (204, true), (500, false), (500, true)] {
            for step in 1..20 {
                if !die_at(step, last_one_arrives, first).await {
                    assert!(step > 3, "an attempt has more requests than this");
                    break;
                }
                assert!(step < 19, "an attempt that never ends");
            }
        }
    });
}

async fn die_at(step: i64, last_one_arrives: bool, first: u16) -> bool {
    let label = format!("step {step}, arrives {last_one_arrives}, first answer {first}");
    let receiver = Receiver::start().await;
    receiver.answer(move || status(first));
    let database = local::database::start(None).await.expect("a database");
    let whole = Bench::over(
        &database,
        &[&receiver],
        base::clock::Clock::pinned(base::clock::Timestamp::from_secs(1_800_000_000)),
    );
    local::database::create_tables(&whole.db).await.expect("tables");
    let endpoint = whole.endpoint(&receiver.url).await;

    let life = Life::ending_at(i64::MAX, last_one_arrives);
    let proxy = Proxy::start(&database, life.clone()).await;
    let mortal = Bench::over(&proxy.url, &[&receiver], whole.clock.clone());
    let event = whole.raise("a").await;
    whole.sent.take();
    life.end_after(step);
    // The SDK retries requests without an answer, and those are lost too.
    let _ = mortal.courier.deliver(whole.agent, endpoint.id, event).await;
    let died = life.is_over();

    receiver.answer(|| status(204));
    let before = receiver.count();
    for _ in 0..3 {
        whole.clock.advance(Duration::from_secs(61));
        whole.sweep().await;
        whole.work().await;
    }
    let end = whole.delivery(&endpoint, event).await;
    assert_eq!(end.state, DeliveryState::Delivered, "{label}: {end:?}");
    assert!(receiver.count() <= before + 1, "{label}: {} posts", receiver.count());
    assert!(receiver.received().iter().all(|one| one.header("webhook-id") == event.to_string()), "{label}");
    assert_eq!(whole.sweep().await, 0, "{label}: nothing is left open");
    died
}

fn units(seen: &[Seen]) -> (Vec<&str>, f64, f64) {
    let names = seen.iter().map(|seen| seen.operation.as_str()).collect();
    (names, seen.iter().map(|seen| seen.read_units).sum(), seen.iter().map(|seen| seen.write_units).sum())
}

/// An agent without endpoints costs one read. Each delivery costs a put, a lease, a read of its endpoint and an end.
#[test]
fn an_event_without_endpoints_costs_half_a_read_unit() {
    run(async {
        let receiver = Receiver::start().await;
        let database = local::database::start(None).await.expect("a database");
        let proxy = Proxy::start(&database, Life::immortal()).await;
        let clock = base::clock::Clock::pinned(base::clock::Timestamp::from_secs(1_800_000_000));
        let bench = Bench::over(&proxy.url, &[&receiver], clock);
        local::database::create_tables(&bench.db).await.expect("tables");
        proxy.take_seen();
        bench.raise("nobody").await;
        let seen = proxy.take_seen();
        assert_eq!(units(&seen), (vec!["Query"], 0.5, 0.0));

        bench.endpoint(&receiver.url).await;
        proxy.take_seen();
        bench.raise("the first").await;
        let raised = proxy.take_seen();
        assert_eq!(units(&raised).0, ["Query", "UpdateItem", "PutItem"], "announced twice an hour, for the sweeper");
        bench.work().await;
        proxy.take_seen();
        bench.raise("somebody").await;
        let raised = proxy.take_seen();
        println!("raising: {:?}", units(&raised));
        assert_eq!(units(&raised).0, ["Query", "PutItem"]);
        bench.work().await;
        let delivered = proxy.take_seen();
        println!("delivering: {:?}", units(&delivered));
        assert_eq!(units(&delivered).0, ["UpdateItem", "GetItem", "UpdateItem"]);
        let (_, reads, writes) = units(&delivered);
        assert!(reads <= 1.0 && units(&raised).2 + writes <= 8.0, "{raised:?} {delivered:?}");
        assert_eq!(receiver.count(), 2);
    });
}
