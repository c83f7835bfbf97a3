//! Jobs: every paid call is one, whether its answer is direct or queued.
//!
//! [`job`] holds the record and the rule of what comes next; [`store`] writes each move as one conditional write or one
//! transaction; [`engine`] makes the moves; [`meter`] writes down what sold work uses; [`sweep`] finds what was left lying;
//! [`finality`] looks at settled payments again;
//! [`view`] is what the owner sees.

pub mod engine;
pub mod finality;
pub mod job;
pub mod meter;
pub mod store;
pub mod sweep;
pub mod view;

pub use engine::{Engine, Queues};
pub use job::{Job, Outcome, Settlement, Status, Step};
