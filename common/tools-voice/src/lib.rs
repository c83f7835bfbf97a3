//! Voice: agents' numbers take calls and make calls.
//!
//! What always holds:
//!
//! - A call does only what its number's settings allow: [`call`] decides, and everything else follows its actions.
//! - An inbound call is answered only if its owner's credits cover a minute, and ends when the minutes that they cover end.
//! - Emergency numbers, short codes and special rates are neither called nor transferred to (`tools_sms::number`).
//! - What others said is untrusted: it is cleaned, shown as theirs, and never logged.
//!
//! [`config`], [`hours`], [`call`], [`dialogue`] and [`plan`] are rules that need neither a database nor a provider.

pub mod call;
pub mod config;
pub mod dialogue;
pub mod hours;
pub mod plan;
