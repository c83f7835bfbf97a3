//! Imports the operator's copy of a register (docs/LOOKUPS.md): `import-snapshot <name> <YYYY-MM-DD> <file> [<file of other
//! names>] [--force]`.
//!
//! A damaged file is refused. A copy that is older than the current one, far smaller, or incomplete is refused unless it is
//! forced.
//!
//! Writes to `BLOB_BUCKET` with the credentials and `AWS_REGION` of the environment, or to the folder `BLOB_FOLDER`, where
//! the local stack keeps its blobs. Functions read the new copy with their next call.

use std::process::ExitCode;

use base::clock::Clock;
use local::operator;
use tools::snapshot;
use tools_lookups::lookups::{import, row};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    operator::exit(run().await)
}

async fn run() -> Result<String, String> {
    let (flags, arguments): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let is_forced = flags == ["--force"];
    let (name, as_of, file, others) = match &arguments[..] {
        [name, as_of, file] if flags.is_empty() || is_forced => (name, as_of, file, None),
        [name, as_of, file, others] if flags.is_empty() || is_forced => (name, as_of, file, Some(others)),
        _ => {
            let names = snapshot::NAMES.join("|");
            return Err(format!("usage: import-snapshot {names} YYYY-MM-DD file [file of other names] [--force]"));
        }
    };
    if !(row::DAY.matches)(as_of) {
        return Err(format!("{as_of} is not a day (YYYY-MM-DD)"));
    }
    if as_of.as_str() > &Clock::system().now().to_string()[..10] {
        return Err(format!("{as_of} is in the future: AS_OF is the day on which the register was published"));
    }
    let read = |file: &String| std::fs::read(file).map_err(|error| format!("{file}: {error}"));
    // Some of these files are not valid UTF-8.
    let text = String::from_utf8_lossy(&read(file)?).into_owned();
    let others = others.map(read).transpose()?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let stays = "the current copy stays";
    let records = import::records(name, &text, others.as_deref()).map_err(|why| format!("{file}: {why}; {stays}"))?;
    if records.is_empty() {
        return Err(format!("{file} has no records; {stays}"));
    }
    let blobs = operator::blobs()?;
    let before = snapshot::in_force(&*blobs, name).await.map_err(|error| error.to_string())?;
    let doubts = import::doubts(name, as_of, records.len(), others.is_some(), before.as_ref());
    if !doubts.is_empty() && !is_forced {
        return Err(format!("{}; {stays} (FORCE=1 replaces it anyway)", doubts.join("; ")));
    }
    let done = snapshot::publish(&*blobs, name, as_of, records).await.map_err(|error| error.to_string())?;
    let replaced = match before {
        Some(before) => format!("replaces {} records of {} ({})", before.records, before.as_of, before.generation),
        None => "the first one".to_owned(),
    };
    let (count, bytes, generation) = (done.records, done.bytes, done.generation);
    Ok(format!("{name} of {as_of}: {count} records, {bytes} bytes unpacked, generation {generation}; {replaced}"))
}
