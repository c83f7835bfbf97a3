//! One run of a program: it is started and advanced slice by slice, and returns its output at the end.

use std::time::{Duration, Instant};

use gate::work::FileMade;
use gate::work::program::MAX_PAGES;
use wasmi::{
    Engine, Error, Linker, Module, ResumableCall, ResumableCallHostTrap, ResumableCallOutOfFuel, Store, StoreLimits,
    StoreLimitsBuilder, Val,
};

use super::host::{self, Left, Made};
use super::{Log, SLICE_FUEL};

const PAGE_BYTES: usize = 64 * 1024;

/// The host's data for one program.
pub(super) struct State {
    limits: StoreLimits,
    pub(super) made: Made,
}

pub(super) struct Machine {
    store: Store<State>,
    at: At,
    fuel_used: u64,
    computed: Duration,
}

/// The state of the run.
enum At {
    /// Nothing has run yet.
    Start(wasmi::Func),
    OutOfFuel(ResumableCallOutOfFuel),
    /// It waits for a tool's answer.
    Waiting(ResumableCallHostTrap),
    /// The tool has answered; the answer has this length.
    Answered(ResumableCallHostTrap, i32),
    Over,
}

/// The result of a step.
pub(super) enum Next {
    /// The slice is used up.
    Slice,
    /// It calls a tool with this request (JSON).
    Tool(Vec<u8>),
    Ended,
    Failed(String),
}

impl Machine {
    /// Loads a program. None of its code runs yet.
    pub(super) fn start(engine: &Engine, program: &[u8], input: Vec<u8>, log: Log) -> Result<Machine, String> {
        // Also refuses start sections, so no code runs before it can be metered and interrupted.
        gate::work::program::inspect(program).map_err(|problems| format!("the program {}", problems.join("; ")))?;
        let module = Module::new(engine, program).map_err(|error| format!("the program is not valid: {error}"))?;
        let limits = StoreLimitsBuilder::new()
            .memory_size(PAGE_BYTES * usize::try_from(MAX_PAGES).unwrap_or(0))
            .memories(1)
            .tables(4)
            .table_elements(20_000)
            .instances(1)
            .build();
        let mut store = Store::new(engine, State { limits, made: Made::new(input, log) });
        store.limiter(|state| &mut state.limits);
        store.set_fuel(SLICE_FUEL).map_err(told)?;
        let mut linker = Linker::new(engine);
        host::define(&mut linker).map_err(told)?;
        let instance = linker.instantiate_and_start(&mut store, &module).map_err(told)?;
        let start = instance.get_func(&store, "_start").ok_or("the program has no _start")?;
        let spent = SLICE_FUEL - store.get_fuel().unwrap_or(0).min(SLICE_FUEL);
        Ok(Machine { store, at: At::Start(start), fuel_used: spent, computed: Duration::ZERO })
    }

    /// Runs until the slice is used up, a tool is called, or the program ends.
    pub(super) fn step(mut self) -> (Machine, Next) {
        let needed = match &self.at {
            // An operation that costs more than a slice gets the fuel it needs; all of it counts.
            At::OutOfFuel(call) => call.required_fuel().max(SLICE_FUEL),
            _ => SLICE_FUEL,
        };
        if self.store.set_fuel(needed).is_err() {
            return (self, Next::Failed("the program's engine is not counted".to_owned()));
        }
        let begun = Instant::now();
        let done = match std::mem::replace(&mut self.at, At::Over) {
            At::Start(start) => start.call_resumable(&mut self.store, &[], &mut []),
            At::OutOfFuel(call) => call.resume(&mut self.store, &mut []),
            At::Answered(call, length) => call.resume(&mut self.store, &[Val::I32(length)], &mut []),
            At::Waiting(_) | At::Over => return (self, Next::Failed("the program is over".to_owned())),
        };
        self.fuel_used = self.fuel_used.saturating_add(needed - self.store.get_fuel().unwrap_or(0).min(needed));
        self.computed += begun.elapsed();
        let next = match done {
            Ok(ResumableCall::Finished) => Next::Ended,
            Ok(ResumableCall::OutOfFuel(call)) => {
                self.at = At::OutOfFuel(call);
                Next::Slice
            }
            Ok(ResumableCall::HostTrap(call)) => match call.host_error().downcast_ref::<Left>() {
                Some(Left::ForTool(asked)) => {
                    let asked = asked.clone();
                    self.at = At::Waiting(call);
                    Next::Tool(asked)
                }
                Some(Left::ForGood(status)) => exited(*status),
                Some(Left::Forbidden(message)) => Next::Failed((*message).to_owned()),
                None => Next::Failed(told(call.into_host_error())),
            },
            Err(error) => match error.downcast_ref::<Left>() {
                Some(Left::ForGood(status)) => exited(*status),
                _ => Next::Failed(told(error)),
            },
        };
        (self, next)
    }

    /// Passes in the answer of the tool that was called.
    pub(super) fn answer(&mut self, answer: Vec<u8>) {
        let length = i32::try_from(answer.len()).unwrap_or(i32::MAX);
        self.store.data_mut().made.answer = answer;
        self.at = match std::mem::replace(&mut self.at, At::Over) {
            At::Waiting(call) => At::Answered(call, length),
            at => at,
        };
    }

    pub(super) fn fuel_used(&self) -> u64 {
        self.fuel_used
    }

    /// Time spent in its code.
    pub(super) fn computed(&self) -> Duration {
        self.computed
    }

    /// Its result and files.
    pub(super) fn into_made(self) -> (Vec<u8>, Vec<FileMade>) {
        let made = self.store.into_data().made;
        (made.output, made.files)
    }
}

fn exited(status: i32) -> Next {
    if status == 0 { Next::Ended } else { Next::Failed(format!("the program ended with exit code {status}")) }
}

/// An engine error in one line.
fn told(error: Error) -> String {
    let text = error.to_string();
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(300).collect();
    format!("the program failed: {line}")
}
