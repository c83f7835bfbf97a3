//! Approvals and the action policy: the human's brake on an agent with money (contract §27).
//!
//! An owner's policy says which calls are denied and which are held until a human has said yes. A held call makes an
//! approval; its approver gets a link by mail, reads on a page what is to be decided, and decides once; the agent repeats
//! the call with `X-Approval-Id`, and the approval releases exactly that one call.
//!
//! [`policy`] and [`hours`] are pure rules, [`form`] reads them strictly; [`approval`] is the record and its states,
//! [`store`] and [`moves`] every write, [`gate`] what the payment gate asks, [`decision`] the signed record of a decision, [`page`]
//! what the approver sees, [`notice`] how the link reaches them, [`backtest`] a draft policy over past receipts.

pub mod approval;
pub mod approver;
pub mod backtest;
pub mod decision;
pub mod form;
pub mod gate;
pub mod hours;
pub mod moves;
pub mod notice;
pub mod page;
pub mod policy;
pub mod store;

pub use gate::{GateCall, GateVerdict, gate_check};

pub use approval::{Approval, ApprovalId};
pub use notice::Notices;
pub use policy::Policy;
