//! What the service costs, as ratios measured in one run: `make bench`, or `cargo run -p bench --release`.
//!
//! Bare times say little on somebody else's machine. So each figure is held against something measured between the
//! same two ticks of the clock: verification against its one unavoidable step, a priced route against a free one, a
//! function against the least a function can be. A and B take turns, many times over, and the median counts; what is
//! counted is CPU time, not wall time, so that whoever else works on the machine does not matter.
//!
//! | module | what it measures |
//! |---|---|
//! | [`verify`] | one payment, from its header to its signer, against the bare key recovery |
//! | [`challenge`] | the unpaid 402 answer against an unprotected route |
//! | [`find`] | a page of the list and searches among 1 000, 100 000 and 1 000 000 souls |
//! | [`read`] | the text of pages, ours beside two public readers |
//! | [`search`] | the ranking of the own index against plain BM25, by nDCG at 10 |
//! | [`research`] | what extractive research finds and quotes on the sites for tests |
//! | [`start`] | every function from its spawn to its first answer, against hello-world and against Node |
//!
//! Benches never assert: a figure beyond its target is printed as `over`, and the exit code is 0. It is 1 only if
//! something could not be measured at all. `quick` in front of the names runs each as shortly as it can, also
//! unoptimised: its figures say nothing, but it ends with 1 where the long form would (`tests/quick.rs`).

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

/// How long is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    Full,
    /// Only as long as it takes to see that it works.
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

/// All of them, in the order they run.
const BENCHES: [&str; 7] = ["verify", "challenge", "start", "find", "read", "search", "research"];
/// What counts results instead of time, and so may run unoptimised.
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
        // What `challenge` starts beside itself.
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
