//! Hourly work of the worker that nobody buys: leases that end, sites that expire. The list of all is `catalog::CHORES`.

use platform::store::{BoxFuture, StoreError};
use serde_json::Value;

use crate::Toolbox;

/// A chore. It may run twice at once, and may stop at any moment.
pub struct Chore {
    /// In messages and in the log.
    pub name: &'static str,
    pub run: for<'a> fn(&'a Toolbox) -> BoxFuture<'a, Result<Done, StoreError>>,
}

/// What one run of a chore did.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// Counts for the log; null if there was nothing to do.
    pub counts: Value,
    /// There is more to do than one run takes.
    pub more: bool,
}
