//! Hostile receivers and dead receivers.

use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::response::Response;
use ledger::webhooks::delivery::Failure;
use ledger::webhooks::{Delivery, DeliveryState};
use platform::store::queue::Message;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::bench::Bench;
use crate::support::receiver::{Receiver, status};
use crate::support::run;

async fn outcome(answer: impl Fn() -> Response + Send + 'static) -> (ledger::webhooks::Delivery, Duration) {
    let receiver = Receiver::start().await;
    receiver.answer(answer);
    let bench = Bench::new(&[&receiver]).await;
    let endpoint = bench.endpoint(&receiver.url).await;
    let event = bench.raise("a").await;
    let started = Instant::now();
    bench.work().await;
    assert_eq!(receiver.count(), 1);
    (bench.delivery(&endpoint, event).await, started.elapsed())
}

#[test]
fn no_redirect_is_followed() {
    run(async {
        for to in ["http://169.254.169.254/latest/meta-data/", "/elsewhere"] {
            let (delivery, _) = outcome(move || {
                let mut answer = status(307);
                answer.headers_mut().insert("location", to.parse().unwrap());
                answer
            })
            .await;
            assert_eq!((delivery.state, delivery.attempts[0].status), (DeliveryState::Pending, Some(307)), "{to}");
            assert_eq!(delivery.attempts[0].failure, Some(Failure::Status));
        }
    });
}

#[test]
fn endless_answers_are_read_for_one_kilobyte_or_two_seconds() {
    run(async {
        // As fast as it can be read, without end.
        let flood = || {
            let pieces = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 65536])));
            Response::new(Body::from_stream(pieces))
        };
        let (delivery, took) = outcome(flood).await;
        assert_eq!(
            (delivery.state, delivery.attempts[0].answer.as_deref().map(str::len)),
            (DeliveryState::Delivered, Some(1024))
        );
        assert!(took < Duration::from_secs(2), "{took:?}");
        // A head, a few bytes, then nothing.
        let silence = || {
            let first = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"thanks\x1b[2J\0"))]);
            let never = futures_util::stream::pending();
            Response::new(Body::from_stream(futures_util::StreamExt::chain(first, never)))
        };
        let (delivery, took) = outcome(silence).await;
        assert_eq!(
            (delivery.state, delivery.attempts[0].answer.as_deref()),
            (DeliveryState::Delivered, Some("thanks[2J"))
        );
        assert!(took < Duration::from_secs(4), "{took:?}");
        // A compressed answer: it is neither decompressed nor stored.
        let bomb =
            || Response::builder().header("content-encoding", "gzip").body(Body::from(vec![0x1f; 4096])).unwrap();
        let (delivery, _) = outcome(bomb).await;
        assert_eq!((delivery.state, delivery.attempts[0].answer.as_deref()), (DeliveryState::Delivered, None));
    });
}

/// A server that accepts connections and sends this text one byte at a time.
async fn dripping(text: &'static str, each: Duration) -> (String, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            tokio::spawn(async move {
                for byte in text.as_bytes() {
                    tokio::time::sleep(each).await;
                    if connection.write_all(&[*byte]).await.is_err() {
                        return;
                    }
                }
                std::future::pending::<()>().await;
            });
        }
    });
    ("127.0.0.1".to_owned(), port)
}

/// One receiver sends its head byte by byte forever, with twenty events waiting for it; another works. With four
/// workers and batches of five, as deployed, the working one gets all of its events within one attempt of the dead one.
#[test]
fn a_dead_receiver_delays_nobody_and_keeps_its_attempts() {
    run(async {
        let good = Receiver::start().await;
        let mut dead = Receiver::start().await;
        dead.host = dripping(
            "HTTP/1.1 200 OK\r\nx: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
            Duration::from_secs(1),
        )
        .await;
        dead.url = format!("http://{}:{}/", dead.host.0, dead.host.1);
        // Receivers are distinguished by host name.
        good.answer(|| status(200));
        let bench = Bench::new(&[&good, &dead]).await;
        let waits = bench.endpoint(&dead.url).await;
        let well = bench.endpoint(&good.url).await;
        for number in 0..20 {
            bench.raise(&number.to_string()).await;
        }
        let queue = std::sync::Arc::new(local::queue::LocalQueue::default());
        for (message, _) in bench.sent.take() {
            queue.push(message.to_json());
        }
        let started = Instant::now();
        for _ in 0..4 {
            let (queue, courier) = (queue.clone(), bench.courier.clone());
            tokio::spawn(async move {
                let function = |event| {
                    let courier = courier.clone();
                    async move { deliveries::handle(&courier, event).await }
                };
                queue.work(function).await;
            });
        }
        crate::support::eventually("the good ones", || async { (good.count() == 20).then_some(()) }).await;
        assert!(started.elapsed() < Duration::from_secs(16), "{:?}", started.elapsed());
        let log = crate::support::eventually("the dead ones", || async {
            let log = bench.log(&waits).await;
            let looked_at = |delivery: &Delivery| delivery.tries > 0 || delivery.not_before > bench.clock.now();
            log.iter().all(|delivery| delivery.lease.is_none() && looked_at(delivery)).then_some(log)
        })
        .await;
        let tried: Vec<_> = log.iter().filter(|delivery| delivery.tries > 0).collect();
        assert!(tried.len() <= 4, "{} attempts were made", tried.len());
        assert!(tried.iter().all(|delivery| delivery.attempts[0].failure == Some(Failure::Timeout)), "{tried:?}");
        let off: Vec<_> = log.iter().filter(|delivery| delivery.tries == 0).collect();
        assert!(off.iter().all(|delivery| delivery.attempts.is_empty() && delivery.not_before > bench.clock.now()));
        assert_eq!(off.len() + tried.len(), 20);
        assert!(bench.log(&well).await.iter().all(|delivery| delivery.state == DeliveryState::Delivered));

        // After the pause one delivery is tried before the others.
        bench.sent.take();
        bench.clock.advance(Duration::from_secs(600));
        assert_eq!(bench.sweep().await, 20);
        let before: u32 = bench.log(&waits).await.iter().map(|delivery| delivery.tries).sum();
        let again = bench.sent.take().into_iter().map(async |(message, _)| {
            let Message::Delivery { agent, endpoint, event } = message else { panic!("{message:?}") };
            bench.courier.deliver(agent, endpoint, event).await.unwrap();
        });
        futures_util::future::join_all(again).await;
        let after: u32 = bench.log(&waits).await.iter().map(|delivery| delivery.tries).sum();
        assert_eq!(after, before + 1);
    });
}

#[test]
fn an_address_that_became_private_is_refused_at_delivery() {
    run(async {
        let receiver = Receiver::start().await;
        let bench = Bench::new(&[&receiver]).await;
        let endpoint = bench.endpoint(&receiver.url).await;
        let event = bench.raise("a").await;
        // The address was allowed when the endpoint was created. It is not allowed by the time of delivery.
        ledger::webhooks::endpoint::change(&bench.db, bench.agent, endpoint.id, bench.clock.now(), |before| {
            ledger::webhooks::Endpoint { url: "https://localhost/".to_owned(), ..before.clone() }
        })
        .await
        .unwrap();
        bench.work().await;
        let delivery = bench.delivery(&endpoint, event).await;
        assert_eq!(delivery.attempts[0].failure, Some(Failure::NotAllowed));
        assert_eq!((delivery.state, receiver.count()), (DeliveryState::Pending, 0));
    });
}
