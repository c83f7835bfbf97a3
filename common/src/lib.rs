//! Everything with meaning, in layers that only look down.
//!
//! ```text
//! operations, discovery, checkout -> app, marketplace, push -> gate, insights, limits, named -> approvals, jobs, notifications, webhooks -> work -> tools, payments -> search, opt_out -> availability, connections, mail, ledger, auth, providers -> http, store -> catalog, config -> research -> read -> net, vin, outcome, material, names -> words, encoding, evm, money, ids, clock, digest
//! ```
//!
//! The functions under `functions/` are thin: they name the routes of their group and call in here.

pub mod app;
pub mod approvals;
pub mod auth;
pub mod availability;
pub mod catalog;
pub mod checkout;
pub mod clock;
pub mod config;
pub mod connections;
pub mod contact;
pub mod digest;
pub mod discovery;
pub mod encoding;
pub mod evm;
pub mod gate;
pub mod http;
pub mod ids;
pub mod insights;
pub mod jobs;
#[cfg(test)]
mod layers;
pub mod ledger;
pub mod limits;
pub mod mail;
pub mod marketplace;
pub mod material;
pub mod money;
pub mod named;
pub mod names;
pub mod net;
pub mod notifications;
pub mod operations;
pub mod opt_out;
pub mod outcome;
pub mod payments;
pub mod providers;
pub mod push;
pub mod read;
pub mod research;
pub mod search;
pub mod secrets;
pub mod stats;
pub mod store;
pub mod tools;
pub mod vin;
pub mod webhooks;
pub mod words;
pub mod work;
