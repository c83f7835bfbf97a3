//! Compute: an objective in words and a budget become calls of this service's tools, paid from a purse.
//!
//! | file | content |
//! |---|---|
//! | [`compute`] | what is sold |
//! | [`quote`] | its price: what the calls may cost together, and the platform's fee on it |
//! | [`goal`] | the rows of a goal and its tasks |
//! | [`next`] | what a goal does next, from its tasks alone: pure |
//! | [`notices`] | what its owner is told while it waits |
//! | [`open`] | how many goals an owner has at once |
//! | [`run`] | one run of the goal's job: looks what ended, starts what can start |
//! | [`close`] | the end: what is kept, and the result |
//! | [`control`] | what the owner does: cancel, respond |
//! | [`view`] | goals and tasks as callers read them |
//!
//! A plan is made once, from the objective and the params alone. What a tool returns fills arguments of tasks that the plan already has; it
//! never adds a task, a tool or a recipient.

pub mod close;
pub mod compute;
pub mod control;
pub mod goal;
pub mod next;
pub mod notices;
pub mod open;
pub mod quote;
pub mod run;
pub mod view;

tools::family!(compute);
