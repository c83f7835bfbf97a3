//! A minute without work costs next to nothing, and no work is overlooked because of that.

use std::time::Duration;

use base::clock::Clock;
use local::queue::LocalQueue;
use market::index;
use platform::config::Config;
use platform::connections::Connections;
use platform::net::PlainHttp;
use platform::providers::Chain;
use platform::store::Db;
use serde_json::json;

use crate::support::proxy::{Life, Proxy};
use crate::support::run;

const MINUTE: Duration = Duration::from_secs(60);

/// A database; the scheduler, which uses it through a proxy; and a writer, which does not.
struct Stage {
    proxy: Proxy,
    scheduler: Db,
    /// Each process knows only its own announcements.
    writer: Db,
    clock: Clock,
    queue: LocalQueue,
    /// Required by the sweep, but never used: nothing is settled here.
    chain: Chain,
}

fn config(endpoint: &str) -> Config {
    Config::read(|name| match name {
        "AWS_ENDPOINT_URL" => Some(endpoint.to_owned()),
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("local".to_owned()),
        "PAY_TO" => Some("0x70997970C51812dc3A010C7d01b50e0d17dc79C8".to_owned()),
        _ => None,
    })
    .expect("a configuration")
}

fn db(endpoint: &str) -> Db {
    let config = config(endpoint);
    let connections = Connections::open(&config).expect("connections");
    Db::new(connections.aws.dynamodb(), config.tables.clone())
}

impl Stage {
    async fn open() -> Stage {
        let database = local::database::start(None).await.expect("a database");
        let proxy = Proxy::start(&database, Life::immortal()).await;
        let (scheduler, writer) = (db(&proxy.url), db(&database));
        local::database::create_tables(&writer).await.expect("tables");
        let clock = Clock::pinned(base::clock::Timestamp::from_secs(1_795_000_000));
        let chain = Chain::new(PlainHttp::new(None), &config(&database).chain);
        Stage { proxy, scheduler, writer, clock, queue: LocalQueue::default(), chain }
    }

    /// Runs the scheduler once and returns its requests.
    async fn sweep(&self) -> Vec<String> {
        self.proxy.take_seen();
        let queue = &self.queue;
        let queues = scheduler::Queues { tools: queue, souls: queue, browser: queue, deliveries: queue };
        scheduler::run(&self.scheduler, &self.chain, queues, &self.clock).await.expect("a run");
        self.proxy.take_seen().into_iter().map(|seen| seen.operation).collect()
    }

    /// A writer that dies right after a write: it leaves a mark, which the scheduler removes within two minutes.
    async fn leave_a_mark(writer: &Db, clock: &Clock) {
        let slug = "nobody".parse().expect("a slug");
        let mark = index::pending(writer, &slug, clock.now()).expect("a write");
        writer.write(mark).await.expect("a mark");
    }

    async fn is_done(&self) -> bool {
        index::is_finished(&self.writer).await.expect("an answer")
    }
}

#[test]
fn an_idle_minute_makes_two_requests() {
    run(async {
        let stage = Stage::open().await;
        assert!(stage.sweep().await.len() > 30, "nobody knows that there is nothing");
        for minute in 1..10 {
            stage.clock.advance(MINUTE);
            // Every fifth minute the worker checks which tools are unavailable and stores the result.
            let noted: &[&str] = if minute == 5 { &["UpdateItem"] } else { &[] };
            assert_eq!(stage.sweep().await, [&["GetItem"], noted, &["PutItem"]].concat(), "{minute}");
        }
        stage.clock.advance(MINUTE);
        assert!(stage.sweep().await.len() > 30, "now and then it looks all the same");

        // Only lists that may hold something are read, until they are known to be empty again.
        Stage::leave_a_mark(&stage.writer, &stage.clock).await;
        stage.clock.advance(MINUTE);
        let seen = stage.sweep().await;
        assert_eq!(seen.iter().filter(|operation| *operation == "Query").count(), 4 + 1, "{seen:?}");
        assert!(stage.is_done().await);
        stage.clock.advance(31 * MINUTE);
        stage.sweep().await;
        stage.clock.advance(MINUTE);
        assert_eq!(stage.sweep().await, ["GetItem", "PutItem"]);
    });
}

#[test]
fn a_list_of_unknown_state_is_swept() {
    run(async {
        let stage = Stage::open().await;
        stage.sweep().await;
        Stage::leave_a_mark(&stage.writer, &stage.clock).await;
        stage.clock.advance(MINUTE);
        let broken = json!({"__type": "com.amazon.coral.validate#ValidationException", "message": "broken"});
        let mut is_first = true;
        stage.proxy.inject(move |operation| {
            (operation == "GetItem" && std::mem::take(&mut is_first)).then(|| (400, broken.clone()))
        });
        stage.sweep().await;
        assert!(stage.is_done().await);
    });
}

/// An item is added between any two requests of a run that finds the list empty, that knows it to be empty, or that
/// comes right after the writer's announcement expired. It is found within the promised two minutes.
#[test]
fn work_added_during_a_sweep_is_found() {
    #[derive(Clone, Copy, Debug)]
    enum Before {
        Unknown,
        Empty,
        JustOver,
    }
    run(async {
        for before in [Before::Unknown, Before::Empty, Before::JustOver] {
            for request in 1.. {
                let stage = Stage::open().await;
                match before {
                    Before::Unknown => {}
                    Before::Empty => drop(stage.sweep().await),
                    Before::JustOver => {
                        Stage::leave_a_mark(&stage.writer, &stage.clock).await;
                        stage.clock.advance(30 * MINUTE);
                        stage.sweep().await;
                        stage.clock.advance(Duration::from_millis(1));
                    }
                }
                let (writer, clock) = (stage.writer.clone(), stage.clock.clone());
                let mut seen = 0;
                stage.proxy.inject(move |_| {
                    seen += 1;
                    if seen == request {
                        let put = Stage::leave_a_mark(&writer, &clock);
                        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(put));
                    }
                    None
                });
                let made = stage.sweep().await.len();
                stage.proxy.heal();
                if made < request {
                    assert!(request > 1, "{before:?}: nothing was tried");
                    break;
                }
                for _ in 0..2 {
                    stage.clock.advance(MINUTE);
                    stage.sweep().await;
                }
                assert!(stage.is_done().await, "{before:?}, before request {request} of {made}");
            }
        }
    });
}
