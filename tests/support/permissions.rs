//! Collects uses and denials of the roles during a test. Denials fail the test. Uses are recorded for the test that
//! lists unused permissions.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use local::iam::{Guard, Use};
use serde_json::json;

use crate::quotas::dynamodb::{TRANSACTION_BYTES, TRANSACTION_ITEMS};

thread_local! {
    /// The guards of the stacks that this thread's test started.
    static WATCHED: RefCell<Vec<Arc<Guard>>> = const { RefCell::new(Vec::new()) };
}

/// Records the requests to a stack's AWS until this thread's test ends.
pub fn watch(guard: &Arc<Guard>) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    assert!(!name.starts_with("tokio"), "start stacks on the journey's own thread, or nobody looks at their requests");
    WATCHED.with_borrow_mut(|watched| watched.push(guard.clone()));
}

/// Prints what the functions of a test were refused, even if the test fails because of it.
pub struct Watch;

impl Watch {
    /// Ends a test, which fails if anything was refused.
    pub fn settle(self) {
        let refused = refused();
        assert!(
            refused.is_empty(),
            "{} requests are not allowed by template.yaml:\n{}",
            refused.len(),
            refused.join("\n")
        );
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for refused in refused() {
            eprintln!("not allowed by template.yaml: {refused}");
        }
    }
}

/// Denials since the last call. Also records uses.
fn refused() -> Vec<String> {
    let mut refused = BTreeSet::new();
    for guard in WATCHED.take() {
        let seen = guard.take_seen();
        keep(&seen.uses);
        let (items, bytes) = seen.largest_transaction;
        if items > TRANSACTION_ITEMS || bytes > TRANSACTION_BYTES {
            refused.insert(format!("a transaction had {items} items or {bytes} bytes"));
        }
        refused.extend(seen.denials.iter().map(ToString::to_string));
    }
    refused.into_iter().collect()
}

/// The folder with one record per test run.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("permissions")
}

/// Appends uses to this process's record. Only a run of all tests is recorded: a filtered run says nothing about unused
/// permissions.
pub fn keep(uses: &BTreeSet<Use>) {
    type Record = Mutex<(File, BTreeSet<Use>)>;
    static RECORD: OnceLock<Option<Record>> = OnceLock::new();
    let record = RECORD.get_or_init(|| {
        std::fs::create_dir_all(folder()).expect("a folder");
        let file = folder().join(format!("{}.jsonl", std::process::id()));
        is_whole_run().then(|| Mutex::new((File::create(file).expect("a file"), BTreeSet::new())))
    });
    let Some(record) = record else { return };
    let (file, known) = &mut *record.lock().unwrap_or_else(PoisonError::into_inner);
    for one in uses.difference(&known.clone()) {
        let Use { role, sid, action, resource, key } = one;
        writeln!(file, "{}", json!([role, sid, action, resource, key])).expect("a line");
        known.insert(one.clone());
    }
}

/// Whether this process runs all tests: no filter, and nothing skipped.
fn is_whole_run() -> bool {
    let mut arguments = std::env::args().skip(1);
    let mut whole = true;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--nocapture" | "--quiet" | "-q" | "--show-output" => {}
            "--test-threads" | "--color" | "--format" => drop(arguments.next()),
            _ if argument.starts_with("--test-threads=") || argument.starts_with("--color=") => {}
            _ => whole = false,
        }
    }
    whole
}
