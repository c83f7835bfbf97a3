//! The service as deployed, several times over one database: gates and engines with shared tables, a queue that loses
//! and repeats messages, and clocks that disagree.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::routes;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use base::clock::{Clock, Timestamp};
use base::ids::RequestId;
use base::money::Usdc;
use gate::app::App;
use gate::approvals::Notices;
use gate::jobs::job::Lane;
use gate::jobs::{Engine, Queues, sweep};
use gate::limits::{Exhausted, StopSwitch};
use gate::secrets::ServiceKeys;
use gate::work::{Resource, ToolAccess};
use gate::{Gate, GoalCalls};
use ledger::cards::Cards;
use ledger::payments::policy::Gauge;
use local::http_api;
use market::service_runner::SoulServiceRunner;
use market::{Market, webhook};
use platform::config::Config;
use platform::connections::Connections;
use platform::net::{FetchPolicy, PlainHttp};
use platform::store::blob::Access;
use platform::store::queue::Message;
use platform::store::{BoxFuture, Db, Queue, StoreError};
use serde_json::{Value, json};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox, Unavailable, top_up};
use tools_lookups::vehicle_identification;
use tools_web::web_read;
use tower::ServiceExt;

use super::asked::{self, Book};
use super::calls;
use super::chain::{Chain, Model, Way};
use super::database;
use super::dice::Dice;
use super::faults::{self, Fate};
use super::sellers::{self, Hands};
use super::texts::{self, Numbers};

const SECRET: &str = "a secret all processes of the simulation share";
pub const WEBHOOK_SECRET: &str = "a secret of the card processor";
/// The processes' clock errors, in milliseconds.
const SKEWS: [i64; 4] = [0, -3_000, 2_500, 700];

/// Percentage of work whose source is down.
const SOURCE_DOWN: u64 = 12;

thread_local! {
    static WORK: Cell<u64> = const { Cell::new(0) };
}

static RUNNERS: [&Runner; 10] = [
    &Runner { spec: &web_read::SPEC, run: |_, task| work(&task) },
    &Runner { spec: &vehicle_identification::SPEC, run: |_, task| work(&task) },
    &Runner {
        spec: &asked::BY_ROUTE,
        run: |toolbox, task| Box::pin(async move { Box::pin(asked::within_lock(&toolbox, &task, work(&task))).await }),
    },
    &Runner { spec: &asked::BY_CALL, run: |_, task| work(&task) },
    &Runner { spec: &asked::PLACES, run: |_, task| work(&task) },
    &top_up::RUNNER,
    &tools_sms::send::RUNNER,
    &tools_voice::inbound::RUNNER,
    &tools_voice::outbound::RUNNER,
    &tools_compute::compute::RUNNER,
];

/// Makes the next work on this thread find its source down.
pub fn fail_next_work() {
    WORK.set((0..).find(|seed| Dice::new(*seed).roll(100) < SOURCE_DOWN).unwrap());
}

/// A tool that succeeds, uses all or a part of its price, wants another run, fails, is slow, hangs or panics.
fn work(task: &Task) -> Running {
    let spec = task.tool;
    let price = task.locked.get("price").and_then(Value::as_u64).unwrap_or(spec.price.usual().micro());
    let seed = WORK.get();
    WORK.set(seed.wrapping_add(1));
    let dice = Dice::new(seed);
    Box::pin(async move {
        match dice.roll(100) {
            0..SOURCE_DOWN => {
                return Err(ToolError::unavailable(Unavailable::SourceUnavailable, "the source is down"));
            }
            SOURCE_DOWN..14 => std::panic::resume_unwind(Box::new("a bug in a tool")),
            14 => tokio::time::sleep(spec.deadline + Duration::from_secs(1)).await,
            15..25 => tokio::time::sleep(dice.millis(2_000)).await,
            // Nobody waits for a queued tool, so it may continue in another run.
            25..32 if spec.answer == tools::spec::Answer::Queued => {
                return Ok(Output::again(dice.millis(5_000), Timestamp::from_secs(0), Source::embedded("simulation")));
            }
            _ => {}
        }
        let padding = if dice.percent(3) { "x".repeat(10_000) } else { String::new() };
        let result = json!({"worked": true, "padding": padding});
        let output = Output::new(result, Source::embedded("simulation"));
        // Up to a tenth more than the price: what is above it is not charged.
        let part = price * dice.roll(111) / 100;
        Ok(if dice.percent(30) { output.charging(Usdc::from_micro(part)) } else { output })
    })
}

/// A process that serves requests and works on jobs.
pub struct Node {
    pub gate: Arc<Gate>,
    groups: HashMap<&'static str, Router>,
}

pub struct World {
    pub fate: Arc<Fate>,
    pub config: Arc<Config>,
    /// The simulation's own connection.
    pub db: Db,
    pub chain: Arc<Chain>,
    pub queue: Arc<Messages>,
    /// The true time.
    pub clock: Clock,
    pub way: Way,
    pub nodes: Vec<Node>,
    pub keys: ServiceKeys,
    pub asked: Book,
    pub numbers: Numbers,
}

/// An answer of the service.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl World {
    pub async fn new(seed: u64) -> World {
        let fate = Arc::new(Fate::new(seed));
        fate.set(false);
        WORK.set(seed ^ 0x5eed);
        let dice = &fate.dice;
        let way = if dice.percent(50) { Way::Facilitator } else { Way::Relayer };
        let overlap = if dice.percent(50) { "0.01" } else { "0.000001" };
        let config = Config::read(|name| {
            let value = match name {
                "PAY_TO" => "0x00000000000000000000000000000000000000aa",
                "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" | "CARD_PROCESSOR_KEY" => "local",
                "CARD_WEBHOOK_SECRET" => WEBHOOK_SECRET,
                "SERVICE_SECRET" => SECRET,
                "RATE_LIMIT_SCALE" => "1000",
                "PAYMENT_HOLD_MS" => "100",
                "OVERLAP_BELOW_USDC" => overlap,
                "OVERLAP_EXPOSURE_USDC" => "0.012",
                "PRICES" => calls::PRICES,
                "MODEL_PROVIDER" => "openai",
                "MODEL_NAME" => "a-model",
                "MODEL_INPUT_USD_PER_MILLION" | "MODEL_OUTPUT_USD_PER_MILLION" => "0.01",
                _ => return None,
            };
            Some(value.to_owned())
        });
        let config = Arc::new(config.expect("a configuration"));
        // One to two hours before midnight UTC.
        let start = Timestamp::from_secs(1_795_219_200 - 7_200 + i64::try_from(dice.roll(3_600)).unwrap());
        let clock = Clock::pinned(start);
        let db = database::open(fate.clone(), config.tables.clone(), seed);
        local::database::create_tables(&db).await.expect("tables");
        sellers::open(&db, start).await;
        let chain = Arc::new(Chain::new(clock.clone(), fate.clone()));
        let queue = Arc::new(Messages { fate: fate.clone(), waiting: Mutex::default() });
        let mut world = World {
            fate,
            db,
            chain,
            queue,
            clock,
            way,
            nodes: Vec::new(),
            keys: ServiceKeys::derive(SECRET).expect("keys"),
            asked: Book::default(),
            numbers: Numbers::default(),
            config,
        };
        let http = PlainHttp::new(None);
        for skew in SKEWS {
            let clock = Clock::pinned(Timestamp::from_millis(start.millis() + skew));
            let node = world.node(clock, &http);
            world.nodes.push(node);
        }
        texts::open(&world).await;
        world.fate.set(true);
        world
    }

    fn node(&self, clock: Clock, http: &PlainHttp) -> Node {
        let catalog = asked::CATALOG.priced(&self.config.prices);
        let app = App {
            config: self.config.clone(),
            clock: clock.clone(),
            db: self.db.clone(),
            blobs: Arc::new(Nowhere),
            chain: platform::providers::Chain::new(http.clone(), &self.config.chain),
            stop: StopSwitch::default(),
            exhausted: Exhausted::default(),
            exposure: Gauge::default(),
            forms: Default::default(),
            availability: Default::default(),
            catalog,
        };
        let (db, fate) = (self.db.clone(), self.fate.clone());
        let settler = Model { way: self.way, chain: self.chain.clone(), fate, db, clock: clock.clone() };
        let policy = FetchPolicy::default();
        let connections = Connections::open(&self.config).expect("connections");
        let queues = Queues { tools: self.queue.clone(), souls: self.queue.clone(), browser: self.queue.clone() };
        let notices = Notices::new(&self.config).expect("notices");
        let calls =
            GoalCalls { app: app.clone(), queues: queues.clone(), notices: notices.clone(), policy: policy.clone() };
        let toolbox = Toolbox {
            buyer: Some(Arc::new(calls)),
            job_queue: Some(self.queue.clone()),
            ..app.toolbox(&connections, policy.clone()).expect("a toolbox")
        };
        let keys = ServiceKeys::derive(SECRET).expect("keys");
        let toolbox = Arc::new(toolbox);
        let hands = |resource| {
            let access = ToolAccess { runners: &RUNNERS, catalog, toolbox: toolbox.clone() };
            Arc::new(Hands { fate: self.fate.clone(), access, resource }) as Arc<dyn gate::work::Executor>
        };
        let service_runner = SoulServiceRunner {
            model: Some(hands(Resource::Model)),
            programs: Some(hands(Resource::Tools)),
            ..SoulServiceRunner::handing_over(&app, &toolbox, webhook::key(&keys.quotes))
        };
        let engine = Engine {
            db: self.db.clone(),
            blobs: app.blobs.clone(),
            queues,
            clock,
            chain: self.config.chain.clone(),
            settler: Box::new(settler),
            signer: keys.receipts,
            runners: &RUNNERS,
            toolbox,
            sellers: Some(Arc::new(service_runner)),
        };
        let gate = Gate { app: app.clone(), engine, quote_key: keys.quotes, fetch_policy: policy, notices };
        let gate = Arc::new(gate);
        let cards = Cards::configured(&app.config, http);
        let groups = HashMap::from([
            (knowledge::GROUP, knowledge::router(gate.clone())),
            ("credits", credits::router(gate.clone(), cards)),
            ("account", account::router(app)),
            (messaging::GROUP, messaging::router(gate.clone())),
            (voice::GROUP, voice::router(gate.clone(), keys.webhooks)),
            ("souls", souls::router(Arc::new(Market::new(gate.clone(), http)))),
            (compute::GROUP, compute::router(gate.clone())),
            (asked::GROUP, asked::router(gate.clone())),
        ]);
        Node { gate, groups }
    }

    /// Moves every clock forward.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
        for node in &self.nodes {
            node.gate.app.clock.advance(by);
        }
    }

    /// Keeps the clocks in step with simulated time, forever.
    pub async fn tick(self: Arc<World>) {
        const TICK: Duration = Duration::from_millis(50);
        loop {
            tokio::time::sleep(TICK).await;
            self.advance(TICK);
        }
    }

    pub async fn sweep(&self, node: &Node) -> Result<(), StoreError> {
        for lane in Lane::ALL {
            sweep::sweep(&self.db, lane, &*self.queue, node.gate.app.clock.now()).await?;
        }
        Ok(())
    }

    /// A request to one of the processes.
    pub async fn send(&self, node: &Node, method: &str, path: &str, headers: &[(&str, String)], body: &str) -> Answer {
        let mut request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Body::from(body.to_owned())).expect("a request");
        self.asked.note_payment(headers, node.gate.app.clock.now(), &self.keys);
        let life = faults::current();
        let answer = http_api::handle(request, |method, path| {
            let group = if asked::serves(path) { asked::GROUP } else { routes::group_of(method, path) };
            let router = node.groups.get(group)?.clone();
            // The gateway spawns the function, which dies with this process all the same.
            Some(Router::new().fallback(move |request: Request| faults::within(life, router.oneshot(request))))
        })
        .await;
        let status = answer.status().as_u16();
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
        Answer { status, body: serde_json::from_slice(&body).unwrap_or_default() }
    }
}

/// The queue: messages are lost, repeated, and come in any order.
pub struct Messages {
    fate: Arc<Fate>,
    waiting: Mutex<Vec<(RequestId, u32)>>,
}

impl Messages {
    /// Takes any message.
    pub fn take(&self) -> Option<(RequestId, u32)> {
        let mut waiting = self.waiting.lock().unwrap();
        if waiting.is_empty() {
            return None;
        }
        let index = usize::try_from(self.fate.dice.roll(waiting.len() as u64)).unwrap();
        let (request_id, receives) = waiting.swap_remove(index);
        if self.fate.strikes("message delivered twice", 60) {
            waiting.push((request_id, receives));
        }
        Some((request_id, receives))
    }

    /// A message whose work failed returns, until it has been received too often.
    pub fn give_back(&self, (request_id, receives): (RequestId, u32)) {
        if receives < 4 {
            self.waiting.lock().unwrap().push((request_id, receives + 1));
        } else {
            self.fate.figures.count("messages dead");
        }
    }
}

impl Queue for Messages {
    fn send_after<'a>(&'a self, message: &'a Message, _: std::time::Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        let Message::Job { request_id, .. } = message else {
            return Box::pin(async { Err(StoreError::new("nothing is tried here")) });
        };
        Box::pin(self.fate.step(async move {
            if self.fate.strikes("message not sent", 30) {
                return Err(StoreError::new("the queue was not reached"));
            }
            if self.fate.strikes("message lost", 50) {
                return Ok(());
            }
            let copies = if self.fate.strikes("message sent twice", 50) { 2 } else { 1 };
            self.waiting.lock().unwrap().extend((0..copies).map(|_| (*request_id, 0)));
            Ok(())
        }))
    }
}

/// No blob store: blobs are not tested here.
struct Nowhere;

impl platform::store::Blobs for Nowhere {
    fn put<'a>(&'a self, _: &'a str, _: &'a str, _: Vec<u8>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }

    fn get<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async { Ok(Some(b"{}".to_vec())) })
    }

    fn part<'a>(&'a self, _: &'a str, _: u64, _: u64) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async { Ok(None) })
    }

    fn size<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        Box::pin(async { Ok(None) })
    }

    fn delete<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }

    fn url(&self, _: &str, _: Access<'_>, _: Duration) -> Result<String, StoreError> {
        Err(StoreError::new("nowhere has no addresses"))
    }
}
