//! The resources that a kind of call used, per process.

use std::fs;
use std::time::Duration;

use crate::calls::Kind;
use crate::database::Consumed;

/// The processes whose CPU time is measured.
pub const PROCESSES: [&str; 4] = ["service", "database", "chain", "agents"];

/// The unit of CPU times below `/proc`.
const TICK_MS: u64 = 10;

/// The use during a series of calls, or while idle.
pub struct Section {
    /// The duration of each call; empty for the idle section.
    pub took: Vec<Duration>,
    pub wall: Duration,
    /// CPU seconds of each of [`PROCESSES`].
    pub cpu: [f64; 4],
    pub consumed: Consumed,
}

/// CPU time of a process so far, including ended threads, in steps of a hundredth of a second.
pub fn cpu_of(pid: u32) -> Result<Duration, crate::Error> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // After the name, which may contain anything: state, ten numbers, user time, system time.
    let (_, rest) = stat.rsplit_once(')').ok_or("a process without a name")?;
    let ticks = rest.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * TICK_MS))
}

/// The chain's node: the process with this name below this ancestor.
pub fn find_below(ancestor: u32, name: &str) -> Option<u32> {
    let stat = |pid: u32| -> Option<(String, u32)> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (head, rest) = stat.rsplit_once(')')?;
        let command = head.split_once('(')?.1.to_owned();
        Some((command, rest.split_whitespace().nth(1)?.parse().ok()?))
    };
    let is_below = |mut pid: u32| {
        while let Some((_, parent)) = stat(pid).filter(|_| pid > 1) {
            if parent == ancestor {
                return true;
            }
            pid = parent;
        }
        false
    };
    let pids = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.into_iter().find(|pid| stat(*pid).is_some_and(|(command, _)| command == name) && is_below(*pid))
}

impl Section {
    /// The use per call, less the use while idle.
    fn each(&self, idle: &Section, of: impl Fn(&Section) -> f64) -> f64 {
        let meanwhile = of(idle) * self.wall.as_secs_f64() / idle.wall.as_secs_f64();
        (of(self) - meanwhile).max(0.0) / self.took.len().max(1) as f64
    }

    fn percentile(&self, part: f64) -> f64 {
        let mut took = self.took.clone();
        took.sort_unstable();
        let at = ((took.len() as f64 * part) as usize).min(took.len().saturating_sub(1));
        took.get(at).map_or(f64::NAN, |took| took.as_secs_f64() * 1e3)
    }

    /// The reason why no more calls were made, judged by the shares of CPU time.
    fn limit(&self, agents: usize) -> String {
        let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        let used: f64 = self.cpu.iter().sum::<f64>() / self.wall.as_secs_f64();
        let busiest = (0..PROCESSES.len()).max_by(|a, b| self.cpu[*a].total_cmp(&self.cpu[*b])).unwrap_or_default();
        if used > 0.8 * cores {
            format!("the CPU, of which the {} has most", PROCESSES[busiest])
        } else if self.cpu[1] / self.wall.as_secs_f64() > 0.8 {
            "the database's one writer".to_owned()
        } else {
            format!("the time {agents} agents wait")
        }
    }
}

/// Prints one line for each kind.
pub fn print(idle: &Section, sections: &[(&'static Kind, Section)], agents: usize) {
    let service = |section: &Section| section.cpu[0];
    let free = sections.first().map(|(_, section)| section);
    let (free_cpu, free_p50) =
        free.map_or((f64::NAN, f64::NAN), |free| (free.each(idle, service), free.percentile(0.5)));
    let seconds = idle.wall.as_secs_f64();
    println!(
        "\nwhile nobody calls: service {:.1} ms of CPU a second, database {:.1}, chain {:.1}; {:.1} requests to the database",
        idle.cpu[0] * 1e3 / seconds,
        idle.cpu[1] * 1e3 / seconds,
        idle.cpu[2] * 1e3 / seconds,
        idle.consumed.requests / seconds,
    );
    println!(
        "\n{:34}{:>7}{:>9}{:>9}{:>7}{:>9}{:>9}{:>7}",
        "", "calls", "calls/s", "/CPU s", "CPU x", "p50 ms", "p99 ms", "p50 x"
    );
    for (kind, section) in sections {
        let (cpu, p50) = (section.each(idle, service), section.percentile(0.5));
        println!(
            "{:34}{:>7}{:>9.1}{:>9.0}{:>7.1}{:>9.2}{:>9.2}{:>7.1}",
            kind.name,
            section.took.len(),
            section.took.len() as f64 / section.wall.as_secs_f64(),
            1.0 / cpu,
            cpu / free_cpu,
            p50,
            section.percentile(0.99),
            p50 / free_p50,
        );
    }
    println!(
        "\n{:34}{:>9}{:>7}{:>7}{:>7}  {:>8}{:>9}{:>7}{:>8}  more calls are kept back by",
        "a call: requests, units; CPU %",
        "database",
        "read",
        "write",
        "chain",
        "service",
        "database",
        "chain",
        "agents"
    );
    for (kind, section) in sections {
        let all: f64 = section.cpu.iter().sum();
        let share = |process: usize| 100.0 * section.cpu[process] / all;
        println!(
            "{:34}{:>9.1}{:>7.1}{:>7.1}{:>7.1}  {:>8.0}{:>9.0}{:>7.0}{:>8.0}  {}",
            kind.name,
            section.each(idle, |section| section.consumed.requests),
            section.each(idle, |section| section.consumed.read_units),
            section.each(idle, |section| section.consumed.write_units),
            section.each(idle, |section| section.consumed.chain_requests),
            share(0),
            share(1),
            share(2),
            share(3),
            section.limit(agents),
        );
    }
}
