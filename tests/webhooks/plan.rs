//! The retry schedule of deliveries, what ends it, and what the owner is told.

use std::time::Duration;

use futures_util::future::join_all;
use ledger::notifications;
use ledger::webhooks::endpoint::{self, Disabled};
use ledger::webhooks::{DeliveryState, Endpoint, outbox};
use serde_json::json;

use super::bench::Bench;
use super::states;
use crate::support::receiver::{Receiver, status};
use crate::support::run;

const MINUTE: u64 = 60;

#[test]
fn after_six_attempts_a_delivery_is_dead_reported_and_replayable() {
    run(async {
        let receiver = Receiver::start().await;
        receiver.answer(|| status(500));
        let bench = Bench::new(&[&receiver]).await;
        let endpoint = bench.endpoint(&receiver.url).await;
        let event = bench.raise("a").await;
        bench.work().await;
        for (attempt, minutes) in [(1, 1), (2, 5), (3, 30), (4, 120), (5, 600)] {
            assert_eq!(receiver.count(), attempt);
            let wait = Duration::from_secs(minutes * MINUTE);
            // Delays that the queue supports are sent with the message. Longer ones are left to the sweeper.
            let sent = bench.sent.take();
            assert_eq!(
                sent.iter().map(|(_, delay)| *delay).collect::<Vec<_>>(),
                if minutes <= 15 { vec![wait] } else { vec![] }
            );
            bench.clock.advance(wait - Duration::from_millis(1));
            assert_eq!(bench.sweep().await, 0, "nothing is due before {minutes} minutes");
            bench.courier.deliver(bench.agent, endpoint.id, event).await.unwrap();
            assert_eq!(receiver.count(), attempt, "a message that comes early changes nothing");
            bench.clock.advance(Duration::from_millis(1));
            assert_eq!(bench.sweep().await, 1);
            bench.work().await;
        }
        assert_eq!(receiver.count(), 6);
        let dead = bench.delivery(&endpoint, event).await;
        assert_eq!((dead.state, dead.attempts.len(), dead.tries), (DeliveryState::Dead, 6, 6));
        let notes = notifications::list(&bench.db, bench.agent, true, 10).await.unwrap();
        assert_eq!((notes.len(), &notes[0]["type"]), (1, &json!("webhook_failed")));
        assert_eq!(notes[0]["payload"]["event_id"], json!(event));
        bench.clock.advance(Duration::from_secs(24 * 3600));
        assert_eq!(bench.sweep().await, 0, "what is dead is in no index");
        let ids: Vec<String> = receiver.received().iter().map(|one| one.header("webhook-id").to_owned()).collect();
        assert!(ids.iter().all(|id| *id == event.to_string()), "{ids:?}");
        let bodies: Vec<String> = receiver.received().into_iter().map(|one| one.body).collect();
        assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]));

        // Two concurrent replays: one round, with the same event.
        receiver.answer(|| status(200));
        let replays = join_all((0..2).map(|_| outbox::replay(&bench.db, &*bench.sent, &dead, bench.clock.now()))).await;
        assert_eq!(replays.iter().filter(|done| *done.as_ref().unwrap()).count(), 1, "{replays:?}");
        bench.work().await;
        let done = bench.delivery(&endpoint, event).await;
        assert_eq!((done.state, done.tries, done.attempts.len()), (DeliveryState::Delivered, 1, 7));
        assert_eq!(receiver.received()[6].header("webhook-id"), event.to_string());
    });
}

#[test]
fn retry_after_is_honoured_within_bounds() {
    run(async {
        let receiver = Receiver::start().await;
        let bench = Bench::new(&[&receiver]).await;
        let endpoint = bench.endpoint(&receiver.url).await;
        for (asked, minutes) in [("600", 10), ("1", 1), ("99999999", 600), ("nonsense", 1)] {
            receiver.answer(move || {
                let mut answer = status(503);
                answer.headers_mut().insert("retry-after", asked.parse().unwrap());
                answer
            });
            let event = bench.raise(asked).await;
            bench.work().await;
            let next = bench.delivery(&endpoint, event).await.not_before;
            assert_eq!(next, bench.clock.now().plus(Duration::from_secs(minutes * MINUTE)), "{asked}");
        }
    });
}

#[test]
fn a_410_disables_the_endpoint_and_cancels_its_deliveries() {
    run(async {
        let receiver = Receiver::start().await;
        receiver.answer(|| status(410));
        let bench = Bench::new(&[&receiver]).await;
        let endpoint = bench.endpoint(&receiver.url).await;
        for cause in ["a", "b", "c"] {
            bench.raise(cause).await;
        }
        bench.work().await;
        assert_eq!(receiver.count(), 1);
        assert_eq!(load(&bench, &endpoint).await.disabled, Some(Disabled::Gone));
        let mut states = states(&bench.log(&endpoint).await);
        states.sort_by_key(ToString::to_string);
        assert_eq!(states, [json!("cancelled"), json!("cancelled"), json!("dead")]);
        bench.raise("d").await;
        assert_eq!(bench.log(&endpoint).await.len(), 3, "nothing more is put in");
        let notes = notifications::list(&bench.db, bench.agent, true, 10).await.unwrap();
        assert_eq!(notes.len(), 1, "{notes:?}");
    });
}

async fn load(bench: &Bench, endpoint: &Endpoint) -> Endpoint {
    endpoint::load(&bench.db, bench.agent, endpoint.id).await.unwrap().expect("an endpoint")
}

#[test]
fn concurrent_rotations_and_disabling_are_all_kept() {
    run(async {
        let receiver = Receiver::start().await;
        receiver.answer(|| status(410));
        let bench = Bench::new(&[&receiver]).await;
        let endpoint = bench.endpoint(&receiver.url).await;
        bench.raise("a").await;
        let now = bench.clock.now();
        let rotate = || {
            endpoint::change(&bench.db, bench.agent, endpoint.id, now, |before| before.rotated(endpoint::OVERLAP, now))
        };
        let (rotated, ()) = tokio::join!(join_all((0..3).map(|_| rotate())), bench.work());
        let mut numbers: Vec<u32> = rotated.into_iter().map(|rotated| rotated.unwrap().unwrap().secret).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [2, 3, 4], "each rotation has a secret of its own");
        let left = load(&bench, &endpoint).await;
        assert_eq!((left.secret, left.disabled, left.older.len()), (4, Some(Disabled::Gone), 3));

        // During the rotation each secret signs.
        endpoint::change(&bench.db, bench.agent, endpoint.id, now, |before| Endpoint {
            disabled: None,
            ..before.clone()
        })
        .await
        .unwrap();
        receiver.answer(|| status(200));
        bench.raise("b").await;
        bench.work().await;
        let last = receiver.received().pop().unwrap();
        assert_eq!(last.header("webhook-signature").split(' ').count(), 4);
        bench.clock.advance(endpoint::OVERLAP);
        bench.raise("c").await;
        bench.work().await;
        let last = receiver.received().pop().unwrap();
        assert_eq!(last.header("webhook-signature").split(' ').count(), 1);
    });
}

#[test]
fn ten_workers_post_one_delivery_once() {
    run(async {
        let receiver = Receiver::start().await;
        let bench = Bench::new(&[&receiver]).await;
        let endpoint = bench.endpoint(&receiver.url).await;
        let event = bench.raise("a").await;
        // Raised again, as by a stream that is read twice.
        assert_eq!(bench.raise("a").await, event);
        let deliver = || bench.courier.deliver(bench.agent, endpoint.id, event);
        for done in join_all((0..10).map(|_| deliver())).await {
            done.unwrap();
        }
        assert_eq!(bench.raise("a").await, event);
        bench.work().await;
        assert_eq!(receiver.count(), 1);
        assert_eq!(states(&bench.log(&endpoint).await), [json!("delivered")]);
    });
}

#[test]
fn log_pages_continue_without_gaps() {
    run(async {
        let receiver = Receiver::start().await;
        let bench = Bench::new(&[&receiver]).await;
        let endpoint = bench.endpoint(&receiver.url).await;
        let mut raised = Vec::new();
        for cause in 0..5 {
            bench.clock.advance(Duration::from_secs(1));
            raised.push(bench.raise(&cause.to_string()).await);
        }
        raised.reverse();
        let page = |after| ledger::webhooks::delivery::list(&bench.db, bench.agent, endpoint.id, after, 2);
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let found = page(after).await.unwrap();
            seen.extend(found.iter().map(|delivery| delivery.event));
            after = found.last().map(|last| last.event);
            if found.len() < 2 {
                break;
            }
        }
        assert_eq!(seen, raised);
    });
}
