//! Voice: agents' numbers take calls and make calls.
//!
//! What always holds:
//!
//! - A call does only what its number's settings allow: [`call`] decides, and everything else follows its state.
//! - An inbound call is answered only if its owner's credits cover a minute, and ends when the minutes that they cover end.
//! - Emergency numbers, short codes and special rates are neither called nor transferred to (`tools_sms::number`).
//! - What others said is untrusted: it is cleaned, shown as theirs, and never logged.
//!
//! [`config`], [`hours`], [`call`], [`dialogue`] and [`plan`] are rules that need neither a database nor a provider.
//!
//! A call begins in [`ringing`] and nowhere else, and what happens to it is stored by [`ending`]; [`inbound`] is its job, which
//! charges it and tells its owner. [`exchange`] connects numbers of this deployment, where [`answers`] speaks. [`quote`],
//! [`outbound`] and [`script`] sell and make calls, and `result` tells what came of them. Calls with numbers outside go through
//! [`providers`]: [`outside`] makes them, and [`events`] and [`commands`] take what is told about them. [`spoken`] reads out
//! calls that no provider recorded.
//!
//! [`lease`] takes numbers back that nobody uses.

pub mod answers;
pub mod call;
pub mod calls;
pub mod commands;
pub mod config;
pub mod dialogue;
pub mod ending;
pub mod events;
pub mod exchange;
pub mod failures;
pub mod hours;
pub mod inbound;
pub mod lease;
mod notices;
pub mod outbound;
pub mod outside;
pub mod plan;
pub mod providers;
pub mod quiet;
pub mod quote;
mod result;
pub mod ringing;
pub mod script;
pub mod settings;
pub mod spoken;
pub mod velocity;
