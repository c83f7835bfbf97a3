//! The owner's view of the ledger: receipts, spend and value, and an audit that a third party can verify offline.
//!
//! [`view`] is how a receipt looks in every answer, [`span`] reads the requested period, [`list`] lists receipts, [`sums`]
//! adds up a period, [`audit`] pages through everything, oldest first. [`export`] writes the audit's rows as lines with a
//! running hash, and [`verify`] checks them offline. [`explain`] is everything known about one charge.

pub mod audit;
pub mod explain;
pub mod export;
pub mod list;
pub mod span;
pub mod sums;
pub mod verify;
pub mod view;

/// Most receipts that one request reads. An answer that reached the limit has `truncated`.
pub const MAX_RECEIPTS: usize = 10_000;
