//! Approvals and the action policy: a human's control over an agent that has money.
//!
//! An owner's policy says which calls are denied and which are held until a human approves. A held call creates an
//! approval. Its approver gets a link by mail, reads on a page what to decide, and decides once. The agent repeats the call
//! with `X-Approval-Id`, and the approval releases exactly one call.
//!
//! [`policy`] and [`hours`] are pure rules, [`form`] parses them strictly. [`approval`] has the record and its states,
//! [`store`] and [`moves`] all writes, [`gate`] the check before payment, [`decision`] the signed record of a decision,
//! [`page`] the approver's page, [`notice`] the mail with the link, [`backtest`] a draft policy applied to past receipts.
//! Start with [`gate_check`].

pub mod approval;
pub mod approver;
pub mod backtest;
pub mod decision;
pub mod form;
pub mod gate;
pub mod moves;
pub mod notice;
pub mod page;
pub mod policy;
pub mod store;

pub use base::hours;
pub use gate::{GateCall, GateVerdict, check_before_price, gate_check};

pub use approval::{Approval, ApprovalId};
pub use notice::Notices;
pub use policy::Policy;
