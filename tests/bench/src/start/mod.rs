//! Every function from its spawn to its first answer, as Lambda starts it: the workspace's release build, one process
//! for one event, the database behind TLS, keys from Secrets Manager.
//!
//! The figure is CPU time of all threads from the spawn until the function waits for its second event; wall time is
//! shown too. Page caches are warm, so Lambda's cost of a binary's size (download, unpack) is not included.
//!
//! [`cases`] has the events for each function, made by [`events`]; [`world`] has the stand-ins, with the environment
//! from [`template`]; [`process`] starts and measures a function; [`build`] and [`node`] build the programs.

mod build;
mod cases;
mod events;
mod node;
mod process;
mod template;
mod world;

pub use build::Functions;
pub use cases::{HEALTH, UNPAID};
pub use process::Kept;
pub use world::World;

use crate::turns::median;
use crate::{Error, Extent};
use build::Program;
use cases::Case;
use process::Sample;

/// The most CPU time that a function may use until its first answer, in milliseconds.
const CPU_MS: f64 = 8.0;
const PEAK_MB: f64 = 20.0;
const BINARY_MB: f64 = 11.0;
/// The bundled Node handler should take at least this many times more CPU time.
const NODE_RATIO: f64 = 25.0;

/// Measured spawns, after those that only warm caches.
const SPAWNS: usize = 21;
const DISCARDED: usize = 2;

/// A case, the program that answers it, and its measurements.
struct Entry {
    case: &'static Case,
    program: Program,
    /// Bytes on disk, and compressed.
    bytes: (u64, u64),
    samples: Vec<Sample>,
}

/// Starts all programs in turns and prints the results.
pub fn measure(world: &World, extent: Extent) -> Result<(), Error> {
    let mut entries = Vec::new();
    for case in cases::ALL {
        entries.push(Entry::new(case, world.functions.program(case.function), extent)?);
    }
    match node::bundle(&world.functions) {
        // A comparison may be missing, except in the quick form, which only checks that everything works.
        Err(error) if extent == Extent::Quick => return Err(error),
        Err(error) => println!("\nno comparison with Node: {error}"),
        Ok(bundles) => {
            for case in cases::ALL {
                if let Some(handler) = case.node {
                    entries.push(Entry::new(case, bundles.program(handler), extent)?);
                }
            }
        }
    }
    let (spawns, discarded) = extent.pick((SPAWNS, DISCARDED), (1, 0));
    eprintln!("bench: starting {} programs {} times each", entries.len(), spawns + discarded);
    for round in 0..spawns + discarded {
        let counts = round >= discarded;
        let failed =
            entries.iter_mut().find_map(|entry| Some((entry.program.is_node(), entry.spawn(world, counts).err()?)));
        match failed {
            None => {}
            Some((true, error)) if extent == Extent::Full => {
                println!("\nno comparison with Node: {error}");
                entries.retain(|entry| !entry.program.is_node());
            }
            Some((_, error)) => return Err(error),
        }
    }
    print(&entries);
    Ok(())
}

impl Entry {
    fn new(case: &'static Case, program: Program, extent: Extent) -> Result<Entry, Error> {
        let bytes = build::sizes(program.file(), extent)?;
        Ok(Entry { case, program, bytes, samples: Vec::new() })
    }

    fn spawn(&mut self, world: &World, counts: bool) -> Result<(), Error> {
        let sample = process::first_answer(world, &self.program, self.case)?;
        if sample.calls == 0 && self.case.function != cases::HELLO {
            return Err(format!("{}, {}: it asked nobody anything", self.case.function, self.case.what).into());
        }
        if counts {
            self.samples.push(sample);
        }
        Ok(())
    }

    fn median(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        median(self.samples.iter().map(of))
    }

    fn cpu_ms(&self) -> f64 {
        self.median(|sample| sample.cpu.as_secs_f64() * 1e3)
    }

    fn peak_mb(&self) -> f64 {
        self.median(|sample| sample.peak_rss as f64 / 1e6)
    }

    fn binary_mb(&self) -> f64 {
        self.bytes.0 as f64 / 1e6
    }

    /// The figures beyond their targets.
    fn over(&self, node_ratio: Option<f64>) -> Vec<&'static str> {
        let mut over = Vec::new();
        let checks = [
            ("CPU", self.cpu_ms() > CPU_MS),
            ("peak", self.peak_mb() > PEAK_MB),
            ("size", self.binary_mb() > BINARY_MB),
            ("Node", node_ratio.is_some_and(|ratio| ratio < NODE_RATIO)),
        ];
        over.extend(checks.into_iter().filter(|(_, is_over)| *is_over).map(|(name, _)| name));
        over
    }
}

fn print(entries: &[Entry]) {
    println!(
        "\nspawn to first answer over TLS, median of {SPAWNS}; MB are 10^6 bytes; calls are made of AWS and chain"
    );
    println!(
        "{:37}{:>6}{:>7}{:>8}{:>8}{:>8}{:>7}{:>7}{:>6}",
        "", "Node/", "/hello", "CPU ms", "wall ms", "peak MB", "MB", "packed", "calls"
    );
    println!("{:37}{:>6}{:>7}{:>8}{:>8}{:>8}{:>7}", "target", ">= 25", "", "<= 8", "", "<= 20", "<= 11");
    let hello = entries.iter().find(|entry| entry.case.function == cases::HELLO).map(Entry::cpu_ms);
    for entry in entries {
        let is_node = entry.program.is_node();
        let of_node = |other: &&Entry| other.program.is_node() && std::ptr::eq(other.case, entry.case);
        let node_ratio = entries.iter().find(of_node).filter(|_| !is_node).map(|node| node.cpu_ms() / entry.cpu_ms());
        let over = entry.over(node_ratio);
        let verdict = match over.as_slice() {
            _ if is_node || entry.case.function == cases::HELLO => String::new(),
            [] => "PASS".to_owned(),
            over => format!("over: {}", over.join(", ")),
        };
        println!(
            "{:37}{:>6}{:>7.1}{:>8.2}{:>8.2}{:>8.1}{:>7.2}{:>7.2}{:>6}  {verdict}",
            format!("{}{}, {}", if is_node { "Node: " } else { "" }, entry.case.function, entry.case.what),
            node_ratio.map_or(String::new(), |ratio| format!("{ratio:.1}")),
            entry.cpu_ms() / hello.unwrap_or(f64::NAN),
            entry.cpu_ms(),
            entry.median(|sample| sample.wall.as_secs_f64() * 1e3),
            entry.peak_mb(),
            entry.binary_mb(),
            entry.bytes.1 as f64 / 1e6,
            entry.median(|sample| sample.calls as f64),
        );
    }
}
