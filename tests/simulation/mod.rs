//! The ledger under attack: thousands of random interleavings of everything agents, owners, strangers and the service
//! itself do. Database, queue and chain fail in every way they can, processes die between any two steps, and clocks
//! disagree.
//!
//! Real: the routers, the gate, the engine, the sweeper, the SDK client and the database engine. Modelled: everything
//! outside of the service, that is the chain ([`chain`]), the queue ([`world`]), time ([`world::World::advance`]), what
//! most tools do, what quoters find ([`asked`]), and the use of tools by sellers' programs and the model ([`sellers`]). Texts
//! between agents ([`texts`]) are sent, calls ([`calls`]) taken and made, and goals ([`goals`]) driven, by their own tools.
//! Everything follows from one seed: a run has no threads and no sockets, and time passes only while every task waits.
//!
//! A run of many steps consists of episodes, each with its own database and agents. A violation prints the episode's
//! seed, with the command that repeats it.

mod acts;
mod asked;
mod calls;
mod chain;
mod check;
mod database;
mod dice;
mod faults;
mod goals;
mod last_claim;
mod places;
mod sellers;
mod texts;
mod world;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gate::jobs::job::Lane;
use gate::jobs::{Job, job, store};
use ledger::hold;
use platform::store::StoreError;
use tokio::task::JoinSet;

use acts::{Act, Agent};
use check::Seen;
use dice::Figures;
use faults::Life;
use world::World;

/// Steps of one episode.
const EPISODE: u64 = 400;
/// A quiet moment comes after this many steps.
const QUIET: u64 = 100;
/// The most concurrent requests.
const AT_ONCE: usize = 8;
/// Steps of the run in `make test`.
const SHORT_RUN: u64 = 1_200;

#[test]
fn no_interleaving_breaks_the_books() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("SIMULATE_SEED").unwrap_or(20_261_121);
    let steps = number("SIMULATE_STEPS").unwrap_or(SHORT_RUN);
    run(seed, steps);
}

/// The seed of an episode. The first one's is the run's own seed, so that an episode can be repeated alone.
fn seed_of(seed: u64, episode: u64) -> u64 {
    seed.wrapping_add(episode.wrapping_mul(1_000_003))
}

fn run(seed: u64, steps: u64) {
    let episodes = steps.div_ceil(EPISODE).max(1);
    let started = Instant::now();
    let (figures, next, failed) = (Figures::default(), AtomicU64::new(0), AtomicBool::new(false));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let thread = std::thread::Builder::new().stack_size(local::STACK_BYTES);
            let thread = thread.spawn_scoped(scope, || {
                loop {
                    let episode = next.fetch_add(1, Ordering::SeqCst);
                    if episode >= episodes || failed.load(Ordering::SeqCst) {
                        return;
                    }
                    let seed = seed_of(seed, episode);
                    let steps = (steps - episode * EPISODE).min(EPISODE);
                    let done = std::panic::catch_unwind(AssertUnwindSafe(|| play(seed, steps)));
                    match done {
                        Ok(done) => figures.take_from(&done),
                        Err(_) => {
                            failed.store(true, Ordering::SeqCst);
                            eprintln!("VIOLATION. To see it again:\n\n    make simulate STEPS={steps} SEED={seed}\n");
                        }
                    }
                    if episode % 25 == 24 {
                        eprintln!("{} of {episodes} episodes, {:?}", episode + 1, started.elapsed());
                    }
                }
            });
            thread.expect("a thread");
        }
    });
    let faults = figures.sum("fault ");
    eprintln!("seed {seed}, {:.0?}", started.elapsed());
    for (what, times) in figures.all("") {
        eprintln!("{times:>9}  {what}");
    }
    let violations = u32::from(failed.load(Ordering::SeqCst));
    let steps = figures.sum("steps");
    eprintln!("{steps:>9}  steps, {faults} faults, {violations} violations");
    assert_eq!(violations, 0, "the simulation found a violation; its seed is above");
    assert!(faults * 10 >= steps, "{faults} faults in {steps} steps are too few");
    assert!(steps < SHORT_RUN || figures.sum("asked quotes, ") > 0, "no quote of an asked price was bought");
    assert!(steps < SHORT_RUN || figures.sum("texts accepted") > 0, "no text arrived");
    assert!(steps < SHORT_RUN || figures.sum("answered calls") > 0, "no call was answered");
    assert!(steps < SHORT_RUN || figures.sum("calls of goals") > 0, "no goal bought a call");
    assert!(steps < 10 * SHORT_RUN || figures.sum("stopped by token_") > 0, "no token's own cap was reached");
}

/// One episode, from its seed.
fn play(seed: u64, steps: u64) -> Figures {
    simulated(seed, episode(seed, steps))
}

/// Runs with the randomness of a seed and in simulated time.
fn simulated<T>(seed: u64, run: impl Future<Output = T>) -> T {
    fastrand::seed(seed);
    base::digest::seeded::seed(Some(seed));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let done = runtime.block_on(run);
    base::digest::seeded::seed(None);
    done
}

async fn episode(seed: u64, steps: u64) -> Figures {
    let world = Arc::new(World::new(seed).await);
    let ticking = tokio::spawn(world.clone().tick());
    let agents: Vec<Arc<Agent>> = (0..2 + world.fate.dice.roll(5)).map(|_| Agent::new(&world)).collect();
    calls::open(&world, &agents).await;
    let mut seen: Vec<Seen> = agents.iter().map(|_| Seen::default()).collect();
    let mut running = JoinSet::new();
    for step in 1..=steps {
        world.fate.figures.count("steps");
        begin(&world, world.fate.dice.pick(&agents).unwrap(), &mut running);
        while running.len() >= AT_ONCE {
            finish_one(&mut running).await;
        }
        tokio::time::sleep(world.fate.dice.millis(25)).await;
        if step % QUIET == 0 {
            settle_down(&world, &mut running).await;
            world.fate.set(false);
            for (agent, seen) in agents.iter().zip(&mut seen) {
                check::quiet(&world, agent, seen).await;
            }
            sellers::quiet(&world).await;
            asked::check(&world, &agents).await;
            texts::check(&world, &agents).await;
            calls::check(&world, &agents).await;
            goals::check(&world, &agents).await;
            world.fate.set(true);
        }
    }
    settle_down(&world, &mut running).await;
    world.fate.set(false);
    end(&world, &agents).await;
    ticking.abort();
    let figures = Figures::default();
    figures.take_from(&world.fate.figures);
    figures
}

/// Starts one step.
fn begin(world: &Arc<World>, agent: &Arc<Agent>, running: &mut JoinSet<()>) {
    let (world, agent, dice) = (world.clone(), agent.clone(), &world.fate.dice);
    let act = Act::draw(&world);
    world.fate.figures.count(&format!("act {act:?}"));
    acts::happen(act, &world, &agent);
    let dies = dice.percent(20);
    let steps = if dies { 1 + i64::try_from(dice.roll(12)).unwrap() } else { i64::MAX };
    let life = Life::of(steps, dice.percent(50));
    // The work of tools takes no steps of a process, so some die at a moment of their own.
    if dice.percent(10) {
        let (life, moment) = (life.clone(), dice.millis(400));
        tokio::spawn(async move {
            tokio::time::sleep(moment).await;
            life.end();
        });
    }
    let node = usize::try_from(dice.roll(world.nodes.len() as u64)).unwrap();
    let world = world.clone();
    running.spawn(async move {
        let died = match act {
            Act::Deliver => {
                let Some(message) = world.queue.take() else { return };
                let done = life.live(world.nodes[node].gate.engine.run(message.0)).await;
                if !matches!(done, Some(Ok(()))) {
                    world.queue.give_back(message);
                }
                done.is_none()
            }
            act => life.live(acts::perform(act, &world, &agent, node)).await.is_none(),
        };
        if died {
            world.fate.figures.count("fault process died");
        }
    });
}

async fn finish_one(running: &mut JoinSet<()>) {
    if let Some(Err(error)) = running.join_next().await {
        std::panic::resume_unwind(error.into_panic());
    }
}

/// Waits until nothing runs any more and delayed requests have arrived.
async fn settle_down(world: &World, running: &mut JoinSet<()>) {
    while !running.is_empty() {
        finish_one(running).await;
    }
    world.fate.figures.count("quiet moments");
    tokio::time::sleep(Duration::from_secs(4)).await;
}

/// The end of an episode, without faults: every paid purchase is claimed, everything completes, and the books are
/// checked.
async fn end(world: &Arc<World>, agents: &[Arc<Agent>]) {
    // Waiting transactions are mined, or never will be.
    world.advance(Duration::from_secs(100));
    // Twice: work before settlement may still be open when its payment is sent again, and then fail. Nothing was sent
    // to the chain for it, so the payment can be used again, and buys if a stranger broadcast it.
    for _ in 0..2 {
        for agent in agents {
            claim_everything(world, agent).await;
        }
        close_everything(world).await;
    }
    // Unused holds are released when their quotes expire. Quotes of souls live longest, half an hour.
    world.advance(Duration::from_secs(1_810));
    for agent in agents {
        while hold::release(&world.db, agent.id, false, world.clock.now()).await.unwrap().micro() > 0 {}
        check::at_rest(world, agent).await;
    }
    check::money(world, agents).await;
    sellers::check(world, agents).await;
    asked::at_rest(world, agents).await;
    texts::at_rest(world, agents).await;
    calls::at_rest(world, agents).await;
    goals::at_rest(world, agents).await;
}

/// Sweeps and works until no job is open.
async fn close_everything(world: &World) {
    let mut errors = BTreeMap::new();
    for round in 0.. {
        if round == 120 {
            stuck(world, &errors).await;
        }
        world.sweep(&world.nodes[0]).await.unwrap();
        while let Some((request_id, _)) = world.queue.take() {
            // The node whose clock is right. The sweeper retries an engine that fails.
            if let Err(error) = world.nodes[0].gate.engine.run(request_id).await {
                errors.insert(request_id.to_string(), error);
            }
        }
        if open(world).await.is_empty() {
            break;
        }
        world.advance(Duration::from_secs(61));
    }
}

/// Prints the jobs that do not end, and fails.
async fn stuck(world: &World, errors: &BTreeMap<String, StoreError>) -> ! {
    for request_id in open(world).await.iter().filter_map(|pk| job::request_id_of(pk)) {
        let job = store::load_latest(&world.db, request_id).await.unwrap().unwrap();
        let Job { settlement, outcome, attempt, transaction, .. } = &job;
        let nonce = job.intent.as_ref().map(|intent| intent.account_nonce);
        let error = errors.get(&request_id.to_string());
        eprintln!(
            "{request_id} {}: {settlement:?} {outcome:?} {attempt} {transaction:?} {nonce:?} {error:?}",
            job.tool
        );
    }
    panic!("jobs stay open for ever; the chain: {}", world.chain.describe());
}

async fn open(world: &World) -> Vec<String> {
    let far = world.clock.now().plus(Duration::from_secs(365 * 24 * 3600));
    let mut open = Vec::new();
    for (lane, shard) in Lane::ALL.iter().flat_map(|lane| (0..job::OPEN_SHARDS).map(move |n| (*lane, n))) {
        open.extend(store::due(&world.db, lane, shard, far, 1_000).await.unwrap().into_iter().map(|job| job.pk));
    }
    open
}

/// The owner lifts every rule, and every payment that moved money is sent once more.
async fn claim_everything(world: &World, agent: &Agent) {
    for what in [r#"{"what":"agent"}"#, r#"{"what":"tool","id":"vin_decode"}"#, r#"{"what":"payee","id":"service"}"#] {
        let proof = [("x-agent-proof", agent.payer.proof_at("write", world.clock.now().secs()))];
        let lifted = world.send(&world.nodes[0], "POST", "/v1/agents/me/freezes/lift", &proof, what).await;
        assert_eq!(lifted.status, 200, "{lifted:?}");
    }
    let proof = [("x-agent-proof", agent.payer.proof_at("write", world.clock.now().secs()))];
    let none = r#"{"daily":null,"per_transaction":null,"tools":null,"payees":null}"#;
    assert_eq!(world.send(&world.nodes[0], "PUT", "/v1/agents/me/budgets", &proof, none).await.status, 200);
    let shown = agent.notes.lock().unwrap().shown.clone();
    for shown in shown {
        // Without its idempotency key: that purchase may have been paid with another payment.
        let shown = acts::Shown { name: None, ..shown };
        let moved = world.chain.used(&shown.authorization).is_some_and(|used| used.moved);
        if !moved || !check::may_be_claimed(&shown, world.clock.now()) {
            continue;
        }
        let answer = acts::present(world, 0, &shown, false).await;
        world.fate.figures.count("payments shown again at the end");
        // Done, in progress, failed and paid back, or spent on something else. (A quote's hold may be gone.)
        let served = [200, 202, 409, 503].contains(&answer.status);
        assert!(served || shown.quote_id.is_some(), "money arrived, and is not known: {answer:?}");
    }
}
