//! What sending mails and sending texts have in common.
//!
//! - [`recipient`]: the state of each recipient of a job.
//! - [`hand`]: what became of a message that was handed to a provider.
//! - [`ids`]: ids of messages that sort by time.
//! - [`run`]: a job in several runs, until every recipient has an outcome.

pub mod hand;
pub mod ids;
pub mod recipient;
pub mod run;
