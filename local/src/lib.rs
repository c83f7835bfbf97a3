//! The whole service in one process, for development and tests. Never deployed.
//!
//! Every function's own code runs here; these modules replace AWS: [`gateway`] routes requests by the table of routes and
//! passes on what API Gateway would ([`http_api`]), [`queue`] has visibility timeouts and a dead-letter list, [`blobs`] is
//! a folder, [`database`] is an embedded DynamoDB behind the real SDK client, [`stream`] reads its stream, and [`chain`] is
//! a real EVM node. [`functions`] opens each function with its own identity, and [`iam`] enforces its role from
//! `template.yaml`. [`site`] is a small web site, so that there is a page to read without the internet, [`library`] has
//! pages to find, and [`smtp`] takes inbound mail.
//!
//! [`operator`] is what the operator's commands share.
//!
//! Start with [`stack`], which puts everything together.

pub mod blobs;
pub mod browser;
pub mod database;
pub mod doctor;
pub mod functions;
pub mod gateway;
pub mod http_api;
pub mod iam;
pub mod library;
pub mod operator;
pub mod queue;
pub mod report;
pub mod settings;
pub mod site;
pub mod smtp;
pub mod sockets;
pub mod stack;
pub mod state;
pub mod stream;

pub use devchain as chain;
pub use sam_template as template;
pub use stack::{Options, Stack};

/// Stack size of threads that run the service: the same as a process's main stack, on which deployed functions run. An
/// unoptimised call through all functions can need more than a thread's default of two megabytes.
pub const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Writes a file so that no reader sees half of it, even after a crash. Only this user may read it.
pub fn write_whole(path: &std::path::Path, text: &str) -> Result<(), Error> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let draft = path.with_extension("draft");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(&draft, path)?;
    Ok(())
}

/// An error that keeps the stack from starting.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
