//! Finding souls among a thousand, a hundred thousand and a million: items read, read units and time per query.
//!
//! The table is the embedded DynamoDB in a file, created once and kept next to the built programs. Queries go through
//! the real SDK client. Figures are medians over at least fifty different queries; the last column compares a million
//! souls with a thousand.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use dynoxide::Database;
use market::listing::{self, Cursor};
use market::search::{self, MAX_ITEMS};

use crate::crowd::{self, Reads};
use crate::table::Verdict;
use crate::turns::{median, micros};
use crate::{Error, Extent};

const SIZES: [usize; 3] = [1_000, 100_000, 1_000_000];
const SEED: u64 = 20_261_121;
/// Format of a kept file. To be changed with the postings.
const FORMAT: u32 = 1;
/// Disk space per soul, with room to work and as much again left free for others.
const BYTES_EACH: u64 = 16_000;

/// The cost of one kind of query at one size.
#[derive(Clone, Copy, Default)]
struct Cost {
    reads: Reads,
    /// The maximum over the queries.
    most_items: u64,
    time: Duration,
    /// Results of a query, on average.
    results: f64,
}

pub fn measure(extent: Extent) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    // A smaller maximum, for a quick run: FIND_SOULS=100000.
    let top: usize = std::env::var("FIND_SOULS").ok().and_then(|top| top.parse().ok()).unwrap_or(usize::MAX);
    let top = extent.pick(top, SIZES[0]);
    let sizes: Vec<usize> = SIZES.into_iter().filter(|size| *size <= top).collect();
    let questions = extent.pick(60, 2);
    let mut table: Vec<(&str, Vec<Cost>)> = Vec::new();
    for size in &sizes {
        let database = kept(&file(*size)?, *size, SEED)?;
        let (db, counted) = crowd::connect(&database);
        let mut note = |kind: &'static str, costs: Vec<(Reads, Duration, usize)>| {
            let reads = Reads {
                requests: median(costs.iter().map(|(reads, _, _)| reads.requests)),
                items: median(costs.iter().map(|(reads, _, _)| reads.items)),
                units: median(costs.iter().map(|(reads, _, _)| reads.units)),
            };
            let most_items = costs.iter().map(|(reads, _, _)| reads.items).max().unwrap_or_default();
            let results = costs.iter().map(|(_, _, found)| *found as f64).sum::<f64>() / costs.len() as f64;
            let cost = Cost { reads, most_items, time: median(costs.iter().map(|(_, time, _)| *time)), results };
            match table.iter_mut().find(|(other, _)| *other == kind) {
                Some((_, row)) => row.push(cost),
                None => table.push((kind, vec![cost])),
            }
        };
        let mut costs = Vec::new();
        for round in 0..questions {
            let begun = Instant::now();
            let page = runtime.block_on(listing::page(&db, &Cursor::start(None), 0, 50))?;
            if round > 0 {
                costs.push((counted.take(), begun.elapsed(), page.souls.len()));
            } else {
                counted.take();
            }
        }
        note("list, first page", costs);
        for (kind, queries) in crowd::questions(SIZES[0], SEED) {
            let mut costs = Vec::new();
            for query in queries.iter().take(questions) {
                // One unmeasured run first, to measure the work and not the disk.
                runtime.block_on(search::search(&db, query, None, 20))?;
                counted.take();
                let begun = Instant::now();
                let found = runtime.block_on(search::search(&db, query, None, 20))?;
                costs.push((counted.take(), begun.elapsed(), found.found.len()));
            }
            note(kind, costs);
        }
    }
    print(&sizes, &table);
    Ok(())
}

fn print(sizes: &[usize], table: &[(&str, Vec<Cost>)]) {
    println!("\nfinding souls: median of a query (items read, most items read, read units, ms, results)");
    println!("{:18} {}", "", sizes.iter().map(|size| format!("{size:>31}")).collect::<String>());
    for (kind, costs) in table {
        let columns: String = costs
            .iter()
            .map(|cost| {
                let millis = micros(cost.time) / 1_000.0;
                let Cost { reads, most_items, results, .. } = cost;
                format!("{:>8} {most_items:>5} {:>5.1} {millis:>5.1} {results:>4.1}", reads.items, reads.units)
            })
            .collect();
        let (first, last) = (costs.first().copied().unwrap_or_default(), costs.last().copied().unwrap_or_default());
        let items = last.reads.items as f64 / first.reads.items.max(1) as f64;
        let time = last.time.as_secs_f64() / first.time.as_secs_f64().max(1e-9);
        let bounded = Verdict::at_most(last.most_items as f64, MAX_ITEMS as f64);
        println!("{kind:18} {columns}   items x {items:.2}, time x {time:.2}  {}", bounded.as_str());
    }
    println!("no search reads more than {MAX_ITEMS} items, by its own limits");
}

fn file(size: usize) -> Result<PathBuf, Error> {
    let folder = std::env::current_exe()?.parent().map(|folder| folder.join("crowds"));
    let folder = folder.ok_or("the program is nowhere")?;
    std::fs::create_dir_all(&folder)?;
    Ok(folder.join(format!("souls-{size}-{FORMAT}.sqlite")))
}

/// The table of souls in a file, created once.
fn kept(file: &Path, count: usize, seed: u64) -> Result<Database, Error> {
    if !file.exists() {
        let needed = count as u64 * BYTES_EACH;
        if let Some(free) = free_bytes(file)
            && free < needed
        {
            let (free, needed) = (free >> 30, needed >> 30);
            return Err(
                format!("{count} souls need {needed} GB on the disk, and {free} are free; see FIND_SOULS").into()
            );
        }
        let draft = file.with_extension("draft");
        let remove = || {
            for end in ["", "-wal", "-shm"] {
                let _ = std::fs::remove_file(format!("{}{end}", draft.display()));
            }
        };
        remove();
        let filled = Database::new(&draft.to_string_lossy())
            .and_then(|database| crowd::fill(&database, count, seed, |what| eprintln!("filling: {what}")));
        if let Err(error) = filled {
            remove();
            return Err(error.into());
        }
        std::fs::rename(&draft, file)?;
    }
    Ok(Database::new(&file.to_string_lossy())?)
}

/// Free space on the disk of a file, as `df` reports it.
fn free_bytes(file: &Path) -> Option<u64> {
    let output = Command::new("df").args(["-Pk"]).arg(file.parent()?).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.lines().nth(1)?.split_whitespace().nth(3)?.parse::<u64>().ok()? * 1024)
}
