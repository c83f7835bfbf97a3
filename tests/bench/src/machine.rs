//! The machine that was measured on, and what a process used of it.

use std::fs;
use std::io;
use std::process::Command;
use std::time::Duration;

use base::clock::Clock;

/// The machine in one line.
pub fn facts() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let day = Clock::system().now().to_string();
    let mut facts = vec![
        day[..16].to_owned(),
        format!("{cores} x {}", model.unwrap_or("unknown CPU").trim()),
        format!("{} {}", std::env::consts::ARCH, kernel.trim()),
        format!("load {}", load.split(' ').next().unwrap_or("?")),
    ];
    facts.extend(version("rustc").map(|text| text.split(' ').take(2).collect::<Vec<_>>().join(" ")));
    facts.extend(version("node").map(|version| format!("node {version}")));
    facts.join(", ")
}

/// The version that a program prints, if it is installed.
pub fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// CPU time of a process so far, of all its threads, user and system, from the scheduler: in nanoseconds, and current
/// for all threads that are not running at the moment.
pub fn cpu_of(pid: u32) -> io::Result<Duration> {
    let mut nanos = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let schedstat = fs::read_to_string(task?.path().join("schedstat"))?;
        nanos += schedstat.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or_default();
    }
    Ok(Duration::from_nanos(nanos))
}

/// Waits until no thread of a process runs, so that its figures no longer change.
pub fn wait_until_asleep(pid: u32) -> io::Result<()> {
    let runs = |stat: &str| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('R'));
    let mut calm = 0;
    for _ in 0..2000 {
        let mut running = false;
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            running |= fs::read_to_string(task?.path().join("stat")).is_ok_and(|stat| runs(&stat));
        }
        calm = if running { 0 } else { calm + 1 };
        if calm == 3 {
            return Ok(());
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    Err(io::Error::other("the process does not come to rest"))
}

/// The peak memory of a process, in bytes. Not the `ru_maxrss` of `wait4`: that one starts with the parent's memory at
/// the fork, which is larger here.
pub fn peak_rss(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    let peak = peak.and_then(|kib| kib.trim().parse::<u64>().ok());
    peak.map(|kib| kib * 1024).ok_or_else(|| io::Error::other("/proc has no VmHWM"))
}
