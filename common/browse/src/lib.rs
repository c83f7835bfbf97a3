//! What a browser task sees, may do and does next. No browser and no network: the session evaluates `VIEW_SCRIPT` in
//! each frame of a page and merges what it returns into a [`View`]; a planner answers a view with an [`Action`]. Here
//! is one planner, of rules: [`rules::Plan`]. A model may be another; it reads [`View::lines`] and obeys
//! [`action::schema`].
//!
//! Texts of a page are untrusted. They are searched for what the task names; they never add a step.

pub mod action;
pub mod rules;
pub mod view;

pub use action::{Action, Spot};
pub use rules::{Decision, NotUnderstood, Outcome, Plan};
pub use view::{Node, View, changed};

/// Defines `globalThis.agoraView` in the isolated world of a frame.
pub const VIEW_SCRIPT: &str = include_str!("view.js");
