//! The whole service in one process, for development and tests. Never deployed.
//!
//! Every function's own code runs here; what AWS does between them is stood in for: [`gateway`] routes by the table of
//! routes, [`queue`] keeps messages with visibility and a dead-letter list, [`blobs`] is a folder, [`database`] is an
//! embedded DynamoDB behind the real SDK client, [`stream`] reads its stream, and [`chain`] is a real EVM node.
//! [`stack`] puts them together; [`site`] is a small web site, so that there is a page to read without the internet.

pub mod blobs;
pub mod database;
pub mod gateway;
pub mod queue;
pub mod report;
pub mod settings;
pub mod site;
pub mod stack;
pub mod stream;

pub use devchain as chain;
pub use stack::{Options, Stack};

/// Anything that keeps the stack from starting, in words.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
