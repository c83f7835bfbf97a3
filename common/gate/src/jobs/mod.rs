//! Jobs. Every paid call becomes a job, whether its answer is direct or queued.
//!
//! [`job`] has the record and the rule for the next step. [`store`] makes each transition one conditional write or one
//! transaction. [`engine`] runs the steps, [`input`] keeps what was asked for, [`meter`] records what sold work uses,
//! [`slots`] limits concurrent jobs of a buyer, [`sweep`] finds jobs that got stuck, [`finality`] checks settled payments again after a while, [`own`]
//! begins jobs that no call buys, [`view`] is the answer to polling, [`list`] finds an agent's jobs. Start with [`engine`].

pub mod engine;
pub mod finality;
pub mod input;
pub mod job;
pub mod list;
pub mod meter;
pub mod own;
pub mod slots;
pub mod store;
pub mod sweep;
pub mod view;

pub use engine::{Engine, Queues};
pub use job::{Job, Outcome, Settlement, Status, Step};
