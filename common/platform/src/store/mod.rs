//! Storage: items in DynamoDB ([`db`]), large texts and files in S3 ([`blob`]), work in SQS ([`queue`]).
//!
//! This layer reads and writes but does not know what the data means. Keys are built beside the entity they belong to
//! (`jobs::job`, `payments::claim`, `ledger::receipt`, …). Every rule that must hold under concurrency is a condition of a
//! write, never a read followed by a write.

pub mod aws;
pub mod blob;
pub mod daily;
pub mod db;
pub mod due;
pub mod jobs;
pub mod lists;
pub mod queue;
pub mod stream;
pub mod table;

use std::fmt;
use std::pin::Pin;

pub use blob::Blobs;
pub use db::{Db, Item, Key, Refused, Write, WriteError};
pub use queue::Queue;

/// A boxed future, for traits of this layer that are used as `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A dependency failed. The caller did nothing wrong and may retry. The text is for the log, not for callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreError(String);

impl StoreError {
    pub fn new(what: impl fmt::Display) -> StoreError {
        StoreError(what.to_string())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StoreError {}
