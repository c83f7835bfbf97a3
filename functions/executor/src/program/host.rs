//! The host functions of a program: exactly those in `gate::work::program::OFFERED`.
//!
//! Pointers and lengths are untrusted and checked against the program's memory. Every copy costs fuel by its size, so one
//! instruction cannot keep the host busy for long.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base::digest;
use gate::work::allowance::MAX_ARGUMENT_BYTES;
use gate::work::program::{OFFERED, OURS, WASI};
use gate::work::{FileMade, MAX_FILE_BYTES, MAX_FILES, MAX_RESULT_BYTES, check_content_type, check_file_path};
use wasmi::{Caller, Error, Extern, FuncType, Linker, Val, ValType};

use super::Log;
use super::machine::State;

/// WASI error numbers.
const SUCCESS: i32 = 0;
const BADF: i32 = 8;
const FAULT: i32 = 21;
const INVAL: i32 = 28;
const NOSYS: i32 = 52;
const SPIPE: i32 = 70;

/// Limit of buffers in one read or write, and of subscriptions in one poll.
const MAX_PIECES: u32 = 1024;
/// Limit of random bytes in one call.
const MAX_RANDOM: u32 = 64 * 1024;
/// Resolution of the clocks: too coarse for timing attacks on the host.
const TICK: Duration = Duration::from_millis(1);

type Host<'a> = Caller<'a, State>;

/// The program's output so far, and its input.
pub(super) struct Made {
    input: Vec<u8>,
    read: usize,
    pub(super) output: Vec<u8>,
    pub(super) files: Vec<FileMade>,
    /// The answer of the last tool call.
    pub(super) answer: Vec<u8>,
    log: Log,
    started: Instant,
    /// How long the program has slept: nothing waits, its clock is moved forward.
    slept: Duration,
}

impl Made {
    pub(super) fn new(input: Vec<u8>, log: Log) -> Made {
        let (output, files, answer) = (Vec::new(), Vec::new(), Vec::new());
        Made { input, read: 0, output, files, answer, log, started: Instant::now(), slept: Duration::ZERO }
    }
}

/// Why execution left the program's code.
#[derive(Debug)]
pub(super) enum Left {
    /// A tool call with this request (JSON). The program continues afterwards.
    ForTool(Vec<u8>),
    /// It exited with this code.
    ForGood(i32),
    /// It exceeded a limit.
    Forbidden(&'static str),
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Left::ForTool(_) => f.write_str("waits for a tool"),
            Left::ForGood(status) => write!(f, "ended with exit code {status}"),
            Left::Forbidden(message) => f.write_str(message),
        }
    }
}

impl wasmi::errors::HostError for Left {}

/// A host call failed: an error number for the program, or the end of the run.
enum Wrong {
    Number(i32),
    Leave(Left),
}

type Done = Result<i32, Wrong>;

/// Defines every offered function.
pub(super) fn define(linker: &mut Linker<State>) -> Result<(), Error> {
    for (module, name, parameters, results) in OFFERED {
        let types = |letters: &str| {
            let letters = letters.chars().map(|letter| if letter == 'I' { ValType::I64 } else { ValType::I32 });
            letters.collect::<Vec<_>>()
        };
        let kind = FuncType::new(types(parameters), types(results));
        linker.func_new(module, name, kind, move |mut caller, parameters, results| {
            let number = match call(&mut caller, module, name, parameters) {
                Ok(number) => number,
                // The service's own functions return lengths; -1 cannot be mistaken for one.
                Err(Wrong::Number(_)) if *module == OURS => -1,
                Err(Wrong::Number(number)) => number,
                Err(Wrong::Leave(left)) => return Err(Error::host(left)),
            };
            if let Some(result) = results.first_mut() {
                *result = Val::I32(number);
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn call(caller: &mut Host<'_>, module: &str, name: &str, parameters: &[Val]) -> Done {
    // The engine has checked the signature. The program's numbers are unsigned.
    let at = |index: usize| match parameters.get(index) {
        Some(Val::I32(number)) => number.cast_unsigned(),
        _ => 0,
    };
    match (module, name) {
        (OURS, "call_tool") => {
            if at(1) > u32::try_from(MAX_ARGUMENT_BYTES).unwrap_or(0) {
                return Err(Wrong::Leave(Left::Forbidden("the program called a tool with too large arguments")));
            }
            Err(Wrong::Leave(Left::ForTool(read(caller, at(0), at(1))?)))
        }
        (OURS, "take") => {
            let answer = std::mem::take(&mut caller.data_mut().made.answer);
            let taken = answer.len().min(usize::try_from(at(1)).unwrap_or(0));
            let written = write(caller, at(0), &answer[..taken]);
            caller.data_mut().made.answer = answer;
            written?;
            Ok(i32::try_from(taken).unwrap_or(i32::MAX))
        }
        (OURS, "put_file") => put_file(caller, [at(0), at(1), at(2), at(3), at(4), at(5)]),
        (WASI, "proc_exit") => Err(Wrong::Leave(Left::ForGood(at(0).cast_signed()))),
        (WASI, "proc_raise") => Err(Wrong::Leave(Left::ForGood(128))),
        (WASI, "sched_yield") => Ok(SUCCESS),
        // There are no arguments and no environment: two zeros, and nothing to write.
        (WASI, "args_sizes_get" | "environ_sizes_get") => {
            write(caller, at(0), &[0; 4])?;
            write(caller, at(1), &[0; 4])
        }
        (WASI, "args_get" | "environ_get") => Ok(SUCCESS),
        (WASI, "clock_res_get") if at(0) <= 1 => write(caller, at(1), &nanos(TICK)),
        (WASI, "clock_time_get") if at(0) <= 1 => {
            let time = now(&caller.data().made, at(0) == 0);
            write(caller, at(2), &nanos(time))
        }
        (WASI, "clock_res_get" | "clock_time_get") => Err(Wrong::Number(INVAL)),
        (WASI, "random_get") => random(caller, at(0), at(1)),
        (WASI, "poll_oneoff") => poll(caller, at(0), at(1), at(2), at(3)),
        (WASI, "fd_read") if at(0) == 0 => fd_read(caller, at(1), at(2), at(3)),
        (WASI, "fd_write") if at(0) == 1 || at(0) == 2 => fd_write(caller, at(0), at(1), at(2), at(3)),
        (WASI, "fd_close" | "fd_sync" | "fd_datasync") if at(0) <= 2 => Ok(SUCCESS),
        (WASI, "fd_fdstat_get") if at(0) <= 2 => {
            // A character device, no flags, with the right to read (2) or to write (64).
            let mut stat = [0u8; 24];
            stat[0] = 2;
            stat[8] = if at(0) == 0 { 2 } else { 64 };
            write(caller, at(1), &stat)
        }
        (WASI, "fd_filestat_get") if at(0) <= 2 => {
            let mut stat = [0u8; 64];
            stat[16] = 2;
            write(caller, at(1), &stat)
        }
        (WASI, "fd_fdstat_set_flags") if at(0) <= 2 => Ok(SUCCESS),
        (WASI, "fd_seek" | "fd_tell") if at(0) <= 2 => Err(Wrong::Number(SPIPE)),
        // There are no files besides the three above.
        (WASI, name) if name.starts_with("fd_") => Err(Wrong::Number(BADF)),
        (WASI, name) if name.starts_with("path_") => Err(Wrong::Number(BADF)),
        _ => Err(Wrong::Number(NOSYS)),
    }
}

fn put_file(caller: &mut Host<'_>, [path, path_len, kind, kind_len, bytes, bytes_len]: [u32; 6]) -> Done {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap_or_default();
    let path = if path_len <= 255 { text(read(caller, path, path_len)?) } else { String::new() };
    let content_type = if kind_len <= 127 { text(read(caller, kind, kind_len)?) } else { String::new() };
    if check_file_path(&path).is_err() {
        return Ok(1);
    }
    if check_content_type(&content_type).is_err() {
        return Ok(2);
    }
    if usize::try_from(bytes_len).unwrap_or(usize::MAX) > MAX_FILE_BYTES {
        return Ok(3);
    }
    let file = FileMade { path, content_type, bytes: read(caller, bytes, bytes_len)? };
    let files = &mut caller.data_mut().made.files;
    match files.iter().position(|known| known.path == file.path) {
        Some(known) => files[known] = file,
        None if files.len() >= MAX_FILES => return Ok(4),
        None => files.push(file),
    }
    Ok(SUCCESS)
}

fn fd_read(caller: &mut Host<'_>, pieces: u32, count: u32, read_at: u32) -> Done {
    let mut total = 0u32;
    for (pointer, length) in self::pieces(caller, pieces, count)? {
        let made = &caller.data().made;
        let rest = &made.input[made.read..];
        let taken = rest[..rest.len().min(usize::try_from(length).unwrap_or(0))].to_vec();
        write(caller, pointer, &taken)?;
        caller.data_mut().made.read += taken.len();
        total = total.saturating_add(u32::try_from(taken.len()).unwrap_or(u32::MAX));
        if taken.len() < usize::try_from(length).unwrap_or(0) {
            break;
        }
    }
    write(caller, read_at, &total.to_le_bytes())
}

fn fd_write(caller: &mut Host<'_>, fd: u32, pieces: u32, count: u32, written_at: u32) -> Done {
    let mut total = 0u32;
    for (pointer, length) in self::pieces(caller, pieces, count)? {
        if fd == 1 {
            let room = MAX_RESULT_BYTES - caller.data().made.output.len();
            if usize::try_from(length).unwrap_or(usize::MAX) > room {
                return Err(Wrong::Leave(Left::Forbidden("the program's result is larger than 1 MiB")));
            }
            let bytes = read(caller, pointer, length)?;
            caller.data_mut().made.output.extend_from_slice(&bytes);
        } else {
            // Reads no more than the log keeps.
            let bytes = read(caller, pointer, length.min(u32::try_from(gate::work::MAX_LOG_BYTES).unwrap_or(0)))?;
            caller.data().made.log.add(&bytes);
        }
        total = total.saturating_add(length);
    }
    write(caller, written_at, &total.to_le_bytes())
}

/// The buffers of a read or write, as pointer and length.
fn pieces(caller: &mut Host<'_>, pointer: u32, count: u32) -> Result<Vec<(u32, u32)>, Wrong> {
    if count > MAX_PIECES {
        return Err(Wrong::Number(INVAL));
    }
    let list = read(caller, pointer, count * 8)?;
    Ok(list.chunks_exact(8).map(|piece| (number(piece, 0), number(piece, 4))).collect())
}

fn random(caller: &mut Host<'_>, pointer: u32, length: u32) -> Done {
    if length > MAX_RANDOM {
        return Err(Wrong::Number(INVAL));
    }
    let length = usize::try_from(length).unwrap_or(0);
    let mut bytes = Vec::with_capacity(length + 32);
    while bytes.len() < length {
        bytes.extend_from_slice(&digest::random::<32>());
    }
    // Random bytes cost more than a copy.
    charge(caller, length.saturating_mul(16));
    write(caller, pointer, &bytes[..length])
}

/// Everything is ready at once; a sleep only moves the program's clock.
fn poll(caller: &mut Host<'_>, wanted: u32, events: u32, count: u32, events_at: u32) -> Done {
    if count == 0 || count > MAX_PIECES {
        return Err(Wrong::Number(INVAL));
    }
    let wanted = read(caller, wanted, count * 48)?;
    let mut ready = Vec::with_capacity(wanted.len());
    let mut latest = Duration::ZERO;
    for subscription in wanted.chunks_exact(48) {
        let mut event = [0u8; 32];
        event[..8].copy_from_slice(&subscription[..8]);
        event[10] = subscription[8];
        if subscription[8] == 0 {
            let until =
                Duration::from_nanos(u64::from(number(subscription, 24)) | u64::from(number(subscription, 28)) << 32);
            let is_absolute = subscription[40] & 1 == 1;
            let from = now(&caller.data().made, number(subscription, 16) == 0);
            latest = latest.max(if is_absolute { until.saturating_sub(from) } else { until });
        }
        ready.extend_from_slice(&event);
    }
    let made = &mut caller.data_mut().made;
    // A day at most, so that the clock cannot overflow.
    made.slept = made.slept.saturating_add(latest).min(Duration::from_secs(24 * 3600));
    write(caller, events, &ready)?;
    write(caller, events_at, &count.to_le_bytes())
}

fn now(made: &Made, is_wall_clock: bool) -> Duration {
    let time = match is_wall_clock {
        true => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        false => made.started.elapsed(),
    };
    Duration::from_millis(u64::try_from((time + made.slept).as_millis()).unwrap_or(0))
}

fn nanos(time: Duration) -> [u8; 8] {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).to_le_bytes()
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// Copies out of the program's memory.
fn read(caller: &mut Host<'_>, pointer: u32, length: u32) -> Result<Vec<u8>, Wrong> {
    let range = range(pointer, length)?;
    charge(caller, range.len());
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else { return Err(Wrong::Number(FAULT)) };
    memory.data(&*caller).get(range).map(<[u8]>::to_vec).ok_or(Wrong::Number(FAULT))
}

/// Copies into the program's memory. Returns 0, so that it can end a host call.
fn write(caller: &mut Host<'_>, pointer: u32, bytes: &[u8]) -> Done {
    let range = range(pointer, u32::try_from(bytes.len()).map_err(|_| Wrong::Number(FAULT))?)?;
    charge(caller, range.len());
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else { return Err(Wrong::Number(FAULT)) };
    memory.data_mut(caller).get_mut(range).ok_or(Wrong::Number(FAULT))?.copy_from_slice(bytes);
    Ok(SUCCESS)
}

fn range(pointer: u32, length: u32) -> Result<std::ops::Range<usize>, Wrong> {
    let (start, length) = (usize::try_from(pointer), usize::try_from(length));
    let (Ok(start), Ok(length)) = (start, length) else { return Err(Wrong::Number(FAULT)) };
    Ok(start..start.checked_add(length).ok_or(Wrong::Number(FAULT))?)
}

/// Charges fuel for a host call and for every eight bytes it copies. Without fuel, the program stops at its next
/// instruction.
fn charge(caller: &mut Host<'_>, bytes: usize) {
    let cost = 100u64.saturating_add(u64::try_from(bytes / 8).unwrap_or(u64::MAX));
    if let Ok(fuel) = caller.get_fuel() {
        let _ = caller.set_fuel(fuel.saturating_sub(cost));
    }
}
