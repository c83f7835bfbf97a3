//! What the ledger tells its owner: receipts, what was spent and what it brought, and the audit that a third party can
//! check without us.
//!
//! [`view`] says how a receipt looks in every answer; [`span`] is which time is asked for; [`list`] shows
//! receipts; [`sums`] adds up a period;
//! [`audit`] pages through everything, oldest first; [`export`] writes the same rows as lines with a running hash, and
//! [`verify`] checks them offline; [`explain`] is everything known of one charge.

pub mod audit;
pub mod explain;
pub mod export;
pub mod list;
pub mod span;
pub mod sums;
pub mod verify;
pub mod view;

/// Most receipts one request reads. An answer that met this bound says so with `truncated`.
pub const MAX_RECEIPTS: usize = 10_000;
