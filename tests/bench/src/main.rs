//! The cost of the service, as ratios measured in one run: `make bench`, or `cargo run -p bench --release`.
//!
//! Absolute times mean little on another machine. So each figure is compared with something measured at the same time:
//! verification with its one unavoidable step, a priced route with a free one, a function with the smallest possible
//! function. A and B take turns many times, and the median counts. CPU time is measured, not wall time, so that other
//! work on the machine does not matter.
//!
//! | module | what it measures |
//! |---|---|
//! | [`verify`] | one payment, from its header to its signer, against the bare key recovery |
//! | [`challenge`] | the unpaid 402 answer against an unprotected route |
//! | [`find`] | a page of the list and searches among 1 000, 100 000 and 1 000 000 souls |
//! | [`read`] | the text of pages, by our reader and two public ones |
//! | [`search`] | the ranking of our own index against plain BM25, by nDCG at 10 |
//! | [`research`] | what extractive research finds and quotes on the test sites |
//! | [`start`] | every function from its spawn to its first answer, against hello-world and against Node |
//!
//! Benches never assert: a figure beyond its target is printed as `over`, and the exit code is 0. It is 1 only if
//! something could not be measured. `quick` before the names runs each in its shortest form, also unoptimised: its
//! figures mean nothing, but it fails where the long form would (`tests/quick.rs`).

mod challenge;
#[path = "../../support/crowd.rs"]
mod crowd;
mod find;
#[path = "../../support/findings.rs"]
mod findings;
mod machine;
mod payer;
#[path = "../../support/ranking.rs"]
mod ranking;
mod read;
mod research;
mod search;
mod start;
mod stubs;
mod table;
mod turns;
mod verify;

use std::process::ExitCode;

pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The length of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Full,
    /// Only long enough to see that it works.
    Quick,
}

impl Extent {
    pub fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Extent::Full => full,
            Extent::Quick => quick,
        }
    }
}

/// All benches, in the order they run.
const BENCHES: [&str; 7] = ["verify", "challenge", "start", "find", "read", "search", "research"];
/// These count results instead of time, so they may run unoptimised.
const COUNTING: [&str; 4] = ["find", "read", "search", "research"];

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    match begin(&asked.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn begin(asked: &[&str]) -> Result<(), Error> {
    let (extent, benches) = match asked {
        ["quick", benches @ ..] => (Extent::Quick, benches),
        benches => (Extent::Full, benches),
    };
    match benches {
        [] => run(&BENCHES, extent),
        // The processes that `challenge` starts.
        [challenge::IN_PROCESS] => challenge::in_process(extent),
        [challenge::SERVER] => challenge::server(),
        benches => match benches.iter().find(|bench| !BENCHES.contains(bench)) {
            None => run(benches, extent),
            Some(other) => Err(format!("there is no bench {other:?}: {}", BENCHES.join(", ")).into()),
        },
    }
}

fn run(benches: &[&str], extent: Extent) -> Result<(), Error> {
    if cfg!(debug_assertions) && extent == Extent::Full && !benches.iter().all(|bench| COUNTING.contains(bench)) {
        return Err("an unoptimised build says nothing: cargo run -p bench --release".into());
    }
    let asked = |bench: &str| benches.contains(&bench);
    println!("{}", machine::facts());
    if asked("verify") {
        table::ratios(&verify::rows(extent));
    }
    if asked("challenge") || asked("start") {
        let world = start::World::start(start::Functions::build(extent)?)?;
        if asked("challenge") {
            table::ratios(&challenge::rows(&world, extent)?);
        }
        if asked("start") {
            start::measure(&world, extent)?;
        }
    }
    if asked("find") {
        find::measure(extent)?;
    }
    if asked("read") {
        read::measure(extent)?;
    }
    if asked("search") {
        search::measure(extent)?;
    }
    if asked("research") {
        research::measure(extent)?;
    }
    Ok(())
}
