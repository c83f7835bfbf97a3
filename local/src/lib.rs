//! The whole service in one process, for development and tests. Never deployed.
//!
//! Every function's own code runs here; what AWS does between them is stood in for: [`gateway`] routes by the table of
//! routes and hands over what API Gateway would ([`http_api`]), [`queue`] keeps messages with visibility and a dead-letter list, [`blobs`] is a folder, [`database`] is an
//! embedded DynamoDB behind the real SDK client, [`stream`] reads its stream, and [`chain`] is a real EVM node.
//! [`functions`] opens each function with an identity of its own, and [`iam`] holds it to its role in `template.yaml`.
//! [`stack`] puts them together; [`site`] is a small web site, so that there is a page to read without the internet.

pub mod blobs;
pub mod browser;
pub mod database;
pub mod doctor;
pub mod functions;
pub mod gateway;
pub mod http_api;
pub mod iam;
pub mod queue;
pub mod report;
pub mod settings;
pub mod site;
pub mod sockets;
pub mod stack;
pub mod state;
pub mod stream;

pub use devchain as chain;
pub use sam_template as template;
pub use stack::{Options, Stack};

/// Stack of a thread that runs the service, as large as a process's own, on which deployed functions run. Unoptimised, a call
/// through all functions has needed more than the two megabytes of a thread.
pub const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Writes a file so that nobody, not even after a crash, finds half of it. Only this user may read it.
pub fn write_whole(path: &std::path::Path, text: &str) -> Result<(), Error> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let draft = path.with_extension("draft");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(&draft, path)?;
    Ok(())
}

/// Anything that keeps the stack from starting, in words.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
