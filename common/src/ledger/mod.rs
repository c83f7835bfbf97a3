//! The ledger: a receipt for every charge, and the credit balance with the entries that make it up.
//!
//! Entries are never changed; a receipt is revised in the open, each revision signed. What is written here is written
//! in the same transaction as the job it belongs to.

pub mod credit;
pub mod receipt;
pub mod signing;
pub mod value;

use crate::ids::AgentId;

/// Partition of everything the ledger knows of one agent.
fn agent_partition(agent: AgentId) -> String {
    format!("AGENT#{agent}")
}
