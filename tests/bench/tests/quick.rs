//! Every bench, run as shortly as it can be: so that none of them stops working unnoticed. What it prints says nothing.

use std::process::{Command, Stdio};

#[test]
fn every_bench_can_be_run() {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_bench"));
    let output = bench.arg("quick").stdin(Stdio::null()).output().expect("the bench can be started");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{text}");
    // A comparison that could not be made is only a line.
    assert!(!text.contains("no comparison"), "{text}");
}
