//! Runs every bench in its shortest form, so that none stops working unnoticed. The figures it prints mean nothing.

use std::process::{Command, Stdio};

#[test]
fn every_bench_runs() {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_bench"));
    let output = bench.arg("quick").stdin(Stdio::null()).output().expect("the bench can be started");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{text}");
    // A comparison that could not be made is only one line of the output.
    assert!(!text.contains("no comparison"), "{text}");
}
