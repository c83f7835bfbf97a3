//! One function, spawned as Lambda spawns it, and its measurements.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::build::Program;
use super::cases::Case;
use super::world::World;
use crate::Error;
use crate::machine;
use crate::stubs::runtime::{Report, RuntimeApi};

/// The longest time for one answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The measurements of one spawn until its first answer.
pub struct Sample {
    pub cpu: Duration,
    pub wall: Duration,
    /// bytes
    pub peak_rss: u64,
    /// Requests to AWS and to the chain.
    pub calls: u64,
    pub answer: Value,
}

/// Spawns a program, sends it one event, and ends it.
pub fn first_answer(world: &World, program: &Program, case: &Case) -> Result<Sample, Error> {
    let event = (case.event)(world);
    let calls_before = world.calls();
    world.runtime.begin();
    world.runtime.hand_out([event]);
    let mut process = Process::spawn(world, program, case, &world.runtime)?;
    let (answered, answer) = process.answer(case, &world.runtime)?;
    process.idle(&world.runtime)?;
    Ok(Sample {
        cpu: machine::cpu_of(process.pid())?,
        wall: answered.duration_since(process.spawned),
        peak_rss: machine::peak_rss(process.pid())?,
        calls: world.calls() - calls_before,
        answer,
    })
}

/// A function that has answered its first event and can answer more.
pub struct Kept<'a> {
    world: &'a World,
    case: &'static Case,
    runtime: RuntimeApi,
    process: Process,
}

impl Kept<'_> {
    pub fn start<'a>(world: &'a World, case: &'static Case) -> Result<Kept<'a>, Error> {
        let runtime = RuntimeApi::start()?;
        runtime.hand_out([(case.event)(world)]);
        let mut process = Process::spawn(world, &world.functions.program(case.function), case, &runtime)?;
        process.answer(case, &runtime)?;
        process.idle(&runtime)?;
        Ok(Kept { world, case, runtime, process })
    }

    /// Sends this many events, one after the other, and returns the CPU time per event.
    pub fn answer(&mut self, events: u32) -> Result<Duration, Error> {
        let before = machine::cpu_of(self.process.pid())?;
        self.runtime.hand_out((0..events).map(|_| (self.case.event)(self.world)));
        for _ in 0..events {
            self.process.answer(self.case, &self.runtime)?;
        }
        self.process.idle(&self.runtime)?;
        Ok((machine::cpu_of(self.process.pid())? - before) / events)
    }
}

/// A spawned program. It is killed when this is dropped.
struct Process {
    child: Child,
    spawned: Instant,
    log: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn spawn(world: &World, program: &Program, case: &Case, runtime: &RuntimeApi) -> Result<Process, Error> {
        let log = world.functions.scratch()?.join(format!("{}.log", case.function));
        let output = File::create(&log)?;
        let mut command = program.command();
        command.env_clear().envs(world.environment(case.function, runtime)?).stdin(Stdio::null());
        command.stdout(output.try_clone()?).stderr(output);
        if program.is_node() {
            command.envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
            command.env("NODE_EXTRA_CA_CERTS", world.root_file()).env("NODE_ENV", "production");
            command.env("AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED", "true");
        }
        let spawned = Instant::now();
        Ok(Process { child: command.spawn()?, spawned, log })
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the answer to an event. Returns the time it came, and the answer.
    fn answer(&mut self, case: &Case, runtime: &RuntimeApi) -> Result<(Instant, Value), Error> {
        match self.report(runtime)? {
            Report::Answered(body) => {
                let answered = Instant::now();
                let answer: Value = serde_json::from_slice(&body)?;
                if (case.is_good)(&answer) {
                    Ok((answered, answer))
                } else {
                    Err(self.fault(&format!("answered {answer}")))
                }
            }
            Report::Failed(body) => Err(self.fault(&format!("failed: {}", String::from_utf8_lossy(&body)))),
            Report::Idle => Err(self.fault("asked for another event before it answered this one")),
        }
    }

    /// Waits until the function only waits for events.
    fn idle(&mut self, runtime: &RuntimeApi) -> Result<(), Error> {
        match self.report(runtime)? {
            Report::Idle => Ok(machine::wait_until_asleep(self.pid())?),
            Report::Answered(_) | Report::Failed(_) => Err(self.fault("answered one event twice")),
        }
    }

    fn report(&mut self, runtime: &RuntimeApi) -> Result<Report, Error> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(report) = runtime.report(Duration::from_millis(100)) {
                return Ok(report);
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(self.fault(&format!("ended: {status}")));
            }
        }
        Err(self.fault("said nothing"))
    }

    /// An error with the program's own output.
    fn fault(&self, what: &str) -> Error {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        format!("{} {what}\n{log}", self.log.file_stem().unwrap_or_default().display()).into()
    }
}
