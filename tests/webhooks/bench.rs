//! Couriers for tests: a database, a clock that the test moves, and a queue that only records.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::ids::{AgentId, EventId};
use evm::Address;
use gate::secrets::ServiceKeys;
use ledger::webhooks::form::{self, Draft};
use ledger::webhooks::{Courier, Delivery, Endpoint, Event, EventKind, delivery, endpoint, outbox};
use platform::config::Config;
use platform::connections::Connections;
use platform::net::FetchPolicy;
use platform::store::queue::{Message, Queue};
use platform::store::{BoxFuture, Db, StoreError};
use serde_json::json;

use crate::support::receiver::Receiver;

const SECRET: &str = "a secret of the bench, which is long enough";

/// The messages sent, with their delays.
#[derive(Default)]
pub struct Sent(Mutex<Vec<(Message, Duration)>>);

impl Queue for Sent {
    fn send_after<'a>(&'a self, message: &'a Message, delay: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        self.0.lock().unwrap().push((message.clone(), delay));
        Box::pin(async { Ok(()) })
    }
}

impl Sent {
    pub fn take(&self) -> Vec<(Message, Duration)> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// A configuration with this endpoint in place of AWS.
pub fn config(aws: &str) -> Config {
    let environment: HashMap<&str, &str> = HashMap::from([
        ("AWS_ENDPOINT_URL", aws),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("SERVICE_SECRET", SECRET),
        ("PAY_TO", "0x00000000000000000000000000000000000000ff"),
        ("CHAIN_RPC_URL", "http://127.0.0.1:1"),
    ]);
    Config::read(|name| environment.get(name).map(|value| (*value).to_owned())).expect("a config")
}

pub struct Bench {
    pub db: Db,
    pub clock: Clock,
    pub sent: Arc<Sent>,
    pub courier: Arc<Courier>,
    pub agent: AgentId,
    policy: FetchPolicy,
}

impl Bench {
    pub async fn new(receivers: &[&Receiver]) -> Bench {
        let database = local::database::start(None).await.expect("a database");
        let bench = Bench::over(&database, receivers, Clock::pinned(Timestamp::from_secs(1_800_000_000)));
        local::database::create_tables(&bench.db).await.expect("tables");
        bench
    }

    /// Another process on the same database.
    pub fn over(database: &str, receivers: &[&Receiver], clock: Clock) -> Bench {
        let config = config(database);
        let db = Db::new(Connections::open(&config).expect("connections").aws.dynamodb(), config.tables.clone());
        let keys = ServiceKeys::derive(SECRET).expect("keys").webhooks;
        let policy = FetchPolicy::default().allowing_local(receivers.iter().map(|receiver| receiver.host.clone()));
        let sent = Arc::new(Sent::default());
        let queue = sent.clone() as Arc<dyn Queue>;
        let courier = Courier::new(db.clone(), clock.clone(), queue, keys, &config, policy.clone()).expect("a courier");
        Bench { db, clock, sent, courier: Arc::new(courier), agent: AgentId::of(Address::ZERO), policy }
    }

    pub async fn endpoint(&self, url: &str) -> Endpoint {
        let body = json!({"url": url});
        let draft = Draft::read(form::CREATE, &[], body.as_object().unwrap(), &self.policy).expect("a good body");
        let endpoint = draft.endpoint(self.agent, self.clock.now()).expect("a URL");
        assert!(endpoint::create(&self.db, &endpoint).await.expect("a database"));
        endpoint
    }

    /// Raises an event for all endpoints and announces it to the queue.
    pub async fn raise(&self, cause: &str) -> EventId {
        let event = Event::new(self.agent, EventKind::RequestFailed, cause, self.clock.now(), json!({"cause": cause}));
        let outgoing = outbox::put(&self.db, &event, self.clock.now()).await.expect("a database");
        outgoing.keep(&self.db).await.expect("a database");
        outgoing.announce(&*self.sent).await;
        event.id
    }

    /// Delivers everything in the queue, ignoring delays.
    pub async fn work(&self) {
        for (message, _) in self.sent.take() {
            let Message::Delivery { agent, endpoint, event } = message else { panic!("{message:?}") };
            self.courier.deliver(agent, endpoint, event).await.expect("a database");
        }
    }

    /// One run of the scheduler.
    pub async fn sweep(&self) -> usize {
        outbox::sweep(&self.db, &*self.sent, self.clock.now()).await.expect("a database")
    }

    pub async fn delivery(&self, endpoint: &Endpoint, event: EventId) -> Delivery {
        delivery::load(&self.db, self.agent, endpoint.id, event).await.expect("a database").expect("a delivery")
    }

    pub async fn log(&self, endpoint: &Endpoint) -> Vec<Delivery> {
        delivery::list(&self.db, self.agent, endpoint.id, None, 1000).await.expect("a database")
    }
}
