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
//! | [`start`] | every function from its spawn to its first answer, against hello-world and against Node |
//!
//! Benches never assert: a figure beyond its target is printed as `over`, and the exit code is 0. It is 1 only if
//! something could not be measured at all.

mod challenge;
#[path = "../../support/crowd.rs"]
mod crowd;
mod find;
mod machine;
mod payer;
mod read;
mod start;
mod stubs;
mod table;
mod turns;
mod verify;

use std::process::ExitCode;

pub type Error = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1).as_deref() {
        None => run(&["verify", "challenge", "start", "find", "read"]),
        // What `challenge` starts beside itself.
        Some(challenge::IN_PROCESS) => challenge::in_process(),
        Some(challenge::SERVER) => challenge::server(),
        Some(one @ ("verify" | "challenge" | "start" | "find" | "read")) => run(&[one]),
        Some(other) => Err(format!("there is no bench {other:?}: verify, challenge, start, find or read").into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(benches: &[&str]) -> Result<(), Error> {
    if cfg!(debug_assertions) && benches != ["find"] && benches != ["read"] {
        return Err("an unoptimised build says nothing: cargo run -p bench --release".into());
    }
    let asked = |bench: &str| benches.contains(&bench);
    println!("{}", machine::facts());
    if asked("verify") {
        table::ratios(&verify::rows());
    }
    if asked("challenge") || asked("start") {
        let world = start::World::start(start::Functions::build()?)?;
        if asked("challenge") {
            table::ratios(&challenge::rows(&world)?);
        }
        if asked("start") {
            start::measure(&world)?;
        }
    }
    if asked("find") {
        find::measure()?;
    }
    if asked("read") {
        read::measure()?;
    }
    Ok(())
}
