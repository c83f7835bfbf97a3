//! Runs sellers' programs: interpreted WebAssembly, with a new instance for each commission.
//!
//! | limit | value | when exceeded |
//! |---|---|---|
//! | computing | [`TOTAL_FUEL`], for each instruction, each byte of bulk operations, and the translation of code; [`TOTAL_TIME`] of one core | the job fails |
//! | time | the commission's deadline, checked between slices of [`SLICE_FUEL`] | the job fails |
//! | memory | [`gate::work::program::MAX_PAGES`] pages, one memory, four tables with 20,000 elements in total | growing is refused |
//! | stack | 2 MiB of values, 4,000 calls deep | traps |
//! | output | result and files as for all work, 8 KiB of log | the job fails; files are refused; the log is cut |
//! | outside | the service's tools, within the service's budget | an error that the program can read |
//!
//! When a job fails, the buyer is paid back. The interpreter is mostly safe Rust and generates no machine code, so a
//! program has no machine code to jump to.

mod host;
mod machine;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gate::work::program::{ProgramInfo, inspect};
use gate::work::{Allowance, Commission, Executor, MAX_LOG_BYTES, Report, Spending, ToolAccess, Work, out_of_time};
use platform::store::BoxFuture;
use serde_json::{Value, json};
use tools::{Mode, ToolError, Unavailable};
use wasmi::{CompilationMode, Config, EnforcedLimits, Engine, Module};

use machine::{Machine, Next};

/// Fuel for one run: about one unit for each instruction. Measured: about 30 seconds of a core.
pub const TOTAL_FUEL: u64 = 20_000_000_000;
/// The same limit in time: a unit of fuel copies 64 bytes, which on a busy machine takes longer than an instruction.
pub const TOTAL_TIME: Duration = Duration::from_secs(60);
/// Fuel between two checks of the clock.
pub const SLICE_FUEL: u64 = 20_000_000;

/// Runs programs.
pub struct ProgramExecutor {
    engine: Engine,
    access: ToolAccess,
    total_fuel: u64,
}

impl ProgramExecutor {
    pub fn new(access: ToolAccess) -> ProgramExecutor {
        ProgramExecutor::with_fuel(access, TOTAL_FUEL)
    }

    /// With another limit than [`TOTAL_FUEL`].
    pub fn with_fuel(access: ToolAccess, total_fuel: u64) -> ProgramExecutor {
        ProgramExecutor { engine: engine(), access, total_fuel }
    }

    async fn work(&self, commission: &Commission, allowance: &mut Allowance<'_>, log: &Log) -> Result<Work, ToolError> {
        let program = commission.program.clone().ok_or_else(|| seller_failed("the service has no program"))?;
        let (engine, input, log) = (self.engine.clone(), commission.input.to_string().into_bytes(), log.clone());
        let mut machine =
            blocking(move || Machine::start(&engine, &program, input, log)).await?.map_err(seller_failed)?;
        loop {
            let (after, next) = blocking(move || machine.step()).await?;
            machine = after;
            match next {
                Next::Slice if machine.fuel_used() > self.total_fuel || machine.computed() > TOTAL_TIME => {
                    return Err(seller_failed("the program computed for too long"));
                }
                Next::Slice => {}
                Next::Tool(asked) => {
                    let answer = call(allowance, &asked).await;
                    machine.answer(answer.to_string().into_bytes());
                }
                Next::Ended => break,
                Next::Failed(message) => return Err(seller_failed(message)),
            }
        }
        let (output, files) = machine.into_made();
        let result = String::from_utf8(output).map_err(|_| seller_failed("the program's result is not UTF-8"))?;
        if result.is_empty() && files.is_empty() {
            return Err(seller_failed("the program wrote no result"));
        }
        Ok(Work {
            result,
            files,
            model_used: None,
            tokens_used: None,
            provider: "program",
            provider_request_id: None,
            mode: Mode::Embedded,
        })
    }
}

impl Executor for ProgramExecutor {
    fn run<'a>(&'a self, commission: &'a Commission, spending: &'a mut Spending) -> BoxFuture<'a, Report> {
        Box::pin(async move {
            let mut allowance = Allowance::of(commission, &self.access, spending);
            let log = Log::default();
            let left = commission.deadline.millis() - allowance.clock().now().millis();
            let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
            let outcome = tokio::time::timeout(left, self.work(commission, &mut allowance, &log)).await;
            let outcome = outcome.unwrap_or_else(|_| Err(out_of_time()));
            Report { outcome, tools_used: allowance.into_used(), log: log.text() }
        })
    }
}

/// Whether a program may be sold: checks its structure ([`inspect`]) and whether the engine accepts its code.
pub fn check_program(program: &[u8]) -> Result<ProgramInfo, Vec<String>> {
    let info = inspect(program)?;
    match Module::new(&engine(), program) {
        Ok(_) => Ok(info),
        Err(error) => Err(vec![format!("is not valid: {error}")]),
    }
}

/// WebAssembly 2.0 without vectors and without multiple memories, with fuel metering.
fn engine() -> Engine {
    let mut config = Config::default();
    config
        .consume_fuel(true)
        .compilation_mode(CompilationMode::LazyTranslation)
        .enforced_limits(EnforcedLimits::strict())
        .ignore_custom_sections(true)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        .wasm_tail_call(false)
        .set_max_recursion_depth(4000)
        .set_max_stack_height(2 * 1024 * 1024)
        .set_max_cached_stacks(1);
    Engine::new(&config)
}

/// Calls a tool; request and answer are JSON.
async fn call(allowance: &mut Allowance<'_>, asked: &[u8]) -> Value {
    let asked: Value = serde_json::from_slice(asked).unwrap_or_default();
    let arguments = asked.get("arguments").cloned().unwrap_or_else(|| json!({}));
    match allowance.call(asked["tool"].as_str().unwrap_or_default(), &arguments).await {
        Ok(result) => json!({"ok": true, "result": result}),
        Err(error) => json!({"ok": false, "error": error}),
    }
}

/// The first bytes of the program's stderr, kept even if the program never ends.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn add(&self, bytes: &[u8]) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_LOG_BYTES - log.len().min(MAX_LOG_BYTES);
        log.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

/// Runs off the async thread: a slice computes for tens of milliseconds.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ToolError::internal("the program's engine failed"))
}

fn seller_failed(message: impl Into<String>) -> ToolError {
    ToolError::unavailable(Unavailable::SellerFailed, message)
}
