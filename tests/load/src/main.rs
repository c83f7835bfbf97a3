//! Paid calls of every kind against the release build: `make load`.
//!
//! Four processes on the loopback address, so that each has its own CPU time: the service (`agora-local`, with its
//! gateway, all functions and the queues between them), the database, the chain, and this one, which is all agents.
//! Database and chain stand in for AWS and the network; signatures, transactions and blocks are real.
//!
//! Each kind of call runs for the same time, with the same number of concurrent agents, each of which waits for its
//! answer before the next call. The cost of a call is the service's CPU time, less its idle use, as a ratio to a free
//! route in the same run. There are no targets: to judge a change, compare two runs.

mod calls;
mod database;
mod measure;
mod stack;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use calls::{KINDS, Kind};
use measure::print;
use stack::Stack;

pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The argument with which this program starts itself as the database.
const DATABASE: &str = "database";
/// Total duration, unless `LOAD_SECONDS` is set.
const SECONDS: u64 = 60;
/// The most calls of one kind.
const MOST_CALLS: usize = 20_000;
/// Concurrent agents, unless `LOAD_AGENTS` is set.
const AGENTS: usize = 8;

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some(DATABASE) => database::serve(),
        Some(service) => run(service),
        None => Err("say where the service is: target/release/agora-local".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(service: &str) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure_all(service))
}

async fn measure_all(service: &str) -> Result<(), Error> {
    let number = |name: &str, default: u64| -> Result<u64, Error> {
        match std::env::var(name).ok().filter(|text| !text.is_empty()) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|_| format!("{name} must be a whole number (got {text:?})").into()),
        }
    };
    let seconds = number("LOAD_SECONDS", SECONDS)?.max(1);
    let agents = usize::try_from(number("LOAD_AGENTS", AGENTS as u64)?)?.clamp(1, stack::PAYERS);
    // One share more, to measure the idle use.
    let share = Duration::from_secs(seconds) / (KINDS.len() as u32 + 1);
    eprintln!("load: starting a database, a chain and the service");
    let stack = Stack::start(service, agents).await?;
    eprintln!("load: {} kinds of calls, {agents} agents at once, {:.1} s each", KINDS.len(), share.as_secs_f64());
    let idle = stack.section(async {
        tokio::time::sleep(share).await;
        Ok(Vec::new())
    });
    let idle = idle.await?;
    let mut sections = Vec::new();
    for kind in &KINDS {
        let section = stack.section(call_for(&stack, kind, agents, share)).await;
        sections.push((kind, section.map_err(|error| format!("{}: {error}", kind.name))?));
    }
    print(&idle, &sections, agents);
    stack.stop().await;
    Ok(())
}

/// Lets agents make calls of a kind for a while. Started calls are completed. Returns the duration of each call.
async fn call_for(stack: &Stack, kind: &'static Kind, agents: usize, share: Duration) -> Result<Vec<Duration>, Error> {
    let until = Instant::now() + share;
    let calls = (0..agents).map(|agent| {
        let agent = stack.agents[agent].clone();
        tokio::spawn(async move {
            let mut took = Vec::new();
            while Instant::now() < until && took.len() < MOST_CALLS / agents {
                let begun = Instant::now();
                (kind.call)(agent.clone()).await?;
                took.push(begun.elapsed());
            }
            Ok::<_, Error>(took)
        })
    });
    let mut all = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        all.extend(call.await??);
    }
    Ok(all)
}
