//! Child processes get their own standard streams. A child that inherits ours may make them non-blocking (Node does
//! with pipes), and then the next write of cargo or make fails. `make test | tee log` failed that way.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// Starts a program that runs until it is dropped. Its standard output can be read; its standard error is printed line
/// by line.
pub fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            eprintln!("{line}");
        }
    });
    child
}
