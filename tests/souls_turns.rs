//! The executor's slots: no single soul, buyer or set of trials can take all of them; how long work may last there; and
//! work that needs no slot.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use evm::Address;
use futures_util::future::join_all;
use gate::jobs::engine::ServiceRunner;
use gate::jobs::job::{Job, MAX_ATTEMPTS, Outcome};
use gate::jobs::store;
use gate::work::{Commission, Executor, Report, Spending, not_configured};
use local::{Options, Stack};
use market::service_runner::{MOST_EXECUTION, SoulServiceRunner};
use market::slots::{self, OF_BUYER, OF_SOUL, OF_TRIALS};
use market::{service, webhook};
use platform::store::queue::Message;
use platform::store::{BoxFuture, Write};
use serde_json::json;
use tools::{Runner, Running, Task, ToolError, Toolbox, Unavailable};
use tools_lookups::vehicle_identification;

use crate::souls_market::{Shop, read, text};
use crate::support::programs::caller;
use crate::support::{Payer, VIN, books, eventually, run, stack, stack_with};

/// Tools that wait until the test lets them go.
pub struct Waiting {
    now: AtomicUsize,
    most: AtomicUsize,
    let_go: AtomicBool,
}

impl Waiting {
    pub const fn new() -> Waiting {
        Waiting { now: AtomicUsize::new(0), most: AtomicUsize::new(0), let_go: AtomicBool::new(false) }
    }

    pub async fn wait(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        while !self.let_go.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.now.fetch_sub(1, Ordering::SeqCst);
    }

    pub fn now(&self) -> usize {
        self.now.load(Ordering::SeqCst)
    }

    pub fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    pub fn let_go(&self) {
        self.let_go.store(true, Ordering::SeqCst);
    }

    /// Waits until this many are waiting.
    pub async fn reach(&self, count: usize) {
        let enough = || async { (self.now.load(Ordering::SeqCst) >= count).then_some(()) };
        eventually("hostile jobs to wait", enough).await;
    }
}

pub fn down() -> ToolError {
    ToolError::unavailable(Unavailable::SourceUnavailable, "the source is down")
}

/// A service whose program waits for its tool and then fails.
async fn hostile_shop(stack: &Stack, slug: &str) -> Shop {
    let request = json!({"tool": "vin_decode", "arguments": {"vin": VIN}}).to_string();
    let tools = json!({"executor": "program", "sandbox": true, "tools": ["vin_decode"], "tool_budget_usd": 0.1});
    let shop = Shop::with(stack, slug, tools).await;
    bring(&shop, caller(&request, "(drop (call $call)) (unreachable)")).await;
    shop
}

/// A service whose program completes at once.
async fn honest_shop(stack: &Stack, slug: &str) -> Shop {
    let shop = Shop::with(stack, slug, json!({"executor": "program", "sandbox": true})).await;
    bring(&shop, caller("{}", "(call $print (i32.const 1) (i32.const 900) (i32.const 4))")).await;
    shop
}

async fn bring(shop: &Shop, program: Vec<u8>) {
    let put = shop.raw("PUT", "/services/summary/program", "application/wasm", program).await;
    assert_eq!(put.status, 200, "{}", put.text);
}

/// Jobs of a soul, bought with credits.
async fn order(stack: &Stack, shop: &Shop, payer: &Payer, count: usize) -> Vec<RequestId> {
    payer.give_credits(stack, 500_000 * count as u64).await;
    let token = payer.token(stack).await;
    let bought = join_all((0..count).map(|_| async {
        let answer = payer.client.post(&shop.execute_path(), &[("authorization", &token)], &text("x")).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        answer.json()["request_id"].as_str().unwrap().parse().unwrap()
    }));
    bought.await
}

pub async fn job(stack: &Stack, request_id: RequestId) -> Job {
    store::load_latest(&stack.app.db, request_id).await.unwrap().expect("a job")
}

pub async fn ended(stack: &Stack, request_id: RequestId) -> Job {
    eventually("a job to end", || async {
        let job = job(stack, request_id).await;
        job.outcome.is_some().then_some(job)
    })
    .await
}

static OF_ONE_SOUL: Waiting = Waiting::new();
static ONE_SOUL: [&Runner; 1] = [&Runner { spec: &vehicle_identification::SPEC, run: wait_for_one_soul }];

fn wait_for_one_soul(_: Arc<Toolbox>, _: Task) -> Running {
    Box::pin(async {
        OF_ONE_SOUL.wait().await;
        Err(down())
    })
}

/// One soul has more waiting jobs than the executor has slots. Another soul's job is done in the meantime. The jobs
/// without a slot do not fail because of it.
#[test]
fn waiting_jobs_of_one_soul_delay_no_other_soul() {
    run(async {
        let stack = stack_with(|options| Options { runners: Some(&ONE_SOUL), ..options }).await;
        let (hostile, honest) = tokio::join!(hostile_shop(&stack, "waits"), honest_shop(&stack, "works"));
        let buyers = join_all((0..3).map(|_| Payer::with(&stack, 0))).await;
        let waiting = join_all(buyers.iter().map(|buyer| order(&stack, &hostile, buyer, 4))).await.concat();
        OF_ONE_SOUL.reach(OF_SOUL.into()).await;
        let payer = Payer::with(&stack, 0).await;
        let done = ended(&stack, order(&stack, &honest, &payer, 1).await[0]).await;
        assert_eq!(done.outcome, Some(Outcome::Completed), "{done:?}");
        assert!(!OF_ONE_SOUL.let_go.load(Ordering::SeqCst), "while all the others still wait");
        let most = OF_ONE_SOUL.most.load(Ordering::SeqCst);
        assert_eq!(most, usize::from(OF_SOUL), "of one soul, so many at once");

        let put_down = eventually("the others to be put down", || async {
            let jobs = join_all(waiting.iter().map(|id| job(&stack, *id))).await;
            let put_down = jobs.into_iter().filter(|job| job.put_down > 0).collect::<Vec<_>>();
            (put_down.len() == waiting.len() - most).then_some(put_down)
        })
        .await;
        // A delivery without a free slot does not count as an attempt.
        let one = put_down[0].request_id;
        eventually("a job to come in vain", || async {
            stack.souls.push(Message::Job { request_id: one, trace: None }.to_json());
            (job(&stack, one).await.put_down > MAX_ATTEMPTS + 1).then_some(())
        })
        .await;
        OF_ONE_SOUL.let_go.store(true, Ordering::SeqCst);
        for id in &waiting {
            stack.souls.push(Message::Job { request_id: *id, trace: None }.to_json());
            let job = ended(&stack, *id).await;
            let error = job.error.expect("an error");
            assert_eq!(error.reason.as_deref(), Some("seller_failed"), "each had its turn: {error:?}");
        }
        for buyer in &buyers {
            assert_eq!(books::audit(&stack.app.db, buyer.agent()).await.credits.micro(), 2_000_000);
        }
    });
}

static OF_MANY_SOULS: Waiting = Waiting::new();
static MANY_SOULS: [&Runner; 1] = [&Runner { spec: &vehicle_identification::SPEC, run: wait_for_many_souls }];

fn wait_for_many_souls(_: Arc<Toolbox>, _: Task) -> Running {
    Box::pin(async {
        OF_MANY_SOULS.wait().await;
        Err(down())
    })
}

/// Enough souls and buyers to take every slot: jobs of a seller's own worker need none.
#[test]
fn jobs_of_sellers_workers_do_not_wait_for_executor_slots() {
    run(async {
        const PLACES: usize = 10;
        let stack = stack_with(|options| Options { runners: Some(&MANY_SOULS), ..options }).await;
        let shops = join_all((0..4).map(|n| {
            let (stack, slug) = (&stack, format!("waits-{n}"));
            async move { hostile_shop(stack, &slug).await }
        }))
        .await;
        for shop in &shops {
            let payer = Payer::with(&stack, 0).await;
            order(&stack, shop, &payer, 3).await;
        }
        OF_MANY_SOULS.reach(PLACES).await;
        let worker = Shop::open(&stack, "has-a-worker").await;
        let payer = Payer::new(&stack).await;
        let bought = payer.buy(&worker.execute_path(), &text("x")).await.json();
        let id = bought["soul_job_id"].as_str().expect("a job").to_owned();
        assert_eq!(worker.claim(&id).await.status, 200);
        let done = worker.send("POST", &format!("/jobs/{id}/complete"), &json!({"result": "short"})).await;
        assert_eq!(done.status, 200, "{}", done.text);
        assert_eq!(read(&payer, &id).await.json()["job"]["status"], "completed");
        assert_eq!(OF_MANY_SOULS.now.load(Ordering::SeqCst), PLACES, "they all still wait");
        OF_MANY_SOULS.let_go.store(true, Ordering::SeqCst);
    });
}

/// Slots are limited per soul and per buyer, return when released or expired, and belong to one job.
#[test]
fn executor_slots_are_limited_and_come_back() {
    run(async {
        let stack = stack().await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let buyer = |n: u8| AgentId::of(Address::from_bytes([n; 20]));
        let take = |soul: &'static str, who: u8, at: Timestamp| async move {
            let job = RequestId::random();
            (job, slots::take(db, soul, buyer(who), job, at).await.unwrap())
        };
        let mut taken = Vec::new();
        for who in 0..OF_SOUL {
            taken.push(take("one", who, now).await);
        }
        assert!(taken.iter().all(|(_, slots)| slots.is_some()));
        assert!(take("one", 9, now).await.1.is_none(), "the soul has no more");
        let (mine, _) = taken[0];
        assert!(slots::take(db, "one", buyer(0), mine, now).await.unwrap().is_some(), "but for its own job");
        let (_, given) = taken.pop().unwrap();
        given.unwrap().release(db, now).await;
        assert!(take("one", 9, now).await.1.is_some(), "what is given back is free");
        let later = now.plus(MOST_EXECUTION + Duration::from_secs(61));
        assert!(take("one", 9, later).await.1.is_some(), "whoever died is not waited for");

        // One buyer with many different souls.
        for soul in ["a", "b", "c", "d"] {
            assert!(take(soul, 50, now).await.1.is_some());
        }
        assert_eq!(OF_BUYER, 4);
        assert!(take("e", 50, now).await.1.is_none(), "the buyer has no more");
        for who in 60..60 + OF_SOUL {
            assert!(take("e", who, now).await.1.is_some(), "and what it took there in vain, it gave back");
        }
        for n in 0..OF_TRIALS {
            assert!(slots::take_for_trial(db, &n.to_string(), MOST_EXECUTION, now).await.unwrap().is_some());
        }
        assert!(slots::take_for_trial(db, "another", MOST_EXECUTION, now).await.unwrap().is_none());
    });
}

/// Records its deadline, and does nothing.
#[derive(Default)]
struct Idle(Mutex<Option<Timestamp>>);

impl Executor for Idle {
    fn run<'a>(&'a self, commission: &'a Commission, _: &'a mut Spending) -> BoxFuture<'a, Report> {
        *self.0.lock().unwrap() = Some(commission.deadline);
        Box::pin(async { Report { outcome: Err(not_configured()), tools_used: Vec::new(), log: String::new() } })
    }
}

/// Work here ends well before the function times out, whatever duration the service promised.
#[test]
fn work_ends_before_its_function_times_out() {
    run(async {
        let stack = stack().await;
        let shop = honest_shop(&stack, "promised-a-week").await;
        let week = json!({"deadline_seconds": 604_800});
        let refused = shop.send("PUT", "/services/summary", &week).await;
        assert_eq!((refused.status, &refused.json()["details"][0]["path"]), (400, &json!("deadline_seconds")));
        let terms = service::terms_key("promised-a-week", "summary", 2);
        let write = Write::update(&stack.app.db.tables.souls, terms, "SET #deadline_seconds = :week");
        stack.app.db.write(write.bind("week", 604_800).unwrap()).await.unwrap();
        let payer = Payer::with(&stack, 0).await;
        let job = ended(&stack, order(&stack, &shop, &payer, 1).await[0]).await;
        assert_eq!(job.sold.as_ref().map(|sold| sold.terms), Some(2));
        let (idle, before) = (Arc::new(Idle::default()), stack.app.clock.now());
        let (toolbox, key) = (&stack.executor.toolbox, webhook::key(&stack.keys.quotes));
        let service_runner = SoulServiceRunner {
            programs: Some(idle.clone()),
            ..SoulServiceRunner::handing_over(&stack.app, toolbox, key)
        };
        service_runner.run(&job).await.outcome.unwrap_err();
        let deadline = idle.0.lock().unwrap().expect("a deadline");
        assert!(deadline <= stack.app.clock.now().plus(MOST_EXECUTION) && deadline > before, "{deadline}");
        // The function's timeout in the template also has room for the longest settlement (130 s).
        let template = std::fs::read_to_string(crate::support::root().join("template.yaml")).unwrap();
        let executor = template.split("CodeUri: functions/executor").nth(1).expect("the executor");
        let timeout = executor.split("Timeout: ").nth(1).and_then(|rest| rest.lines().next()).expect("a timeout");
        let timeout = Duration::from_secs(timeout.parse().expect("seconds"));
        assert!(MOST_EXECUTION + Duration::from_secs(130) < timeout / 2);
    });
}
