//! The marketplace: souls, what they sell, and who buys it.
//!
//! A soul is a seller: a profile, a text (soul.md) that may be for sale, and services that are. A sale goes through the
//! same gate, job, ledger and receipts as a tool of our own; what is different lies here.
//!
//! | module | what it is |
//! |---|---|
//! | [`soul`] | a seller's record, its key, its text's versions |
//! | [`service`] | what it sells, and the terms of each version |
//! | [`counting`] | ended sales, added to everything they add up to |
//! | [`recent`], [`reputation`] | what is counted of a soul's sales |
//! | [`wallet`], [`payouts`], [`statement`] | a seller's money on its way out |
//! | [`category`] | what kind of work a service does |
//! | [`form`], [`service_form`] | what bodies of sellers may say |
//! | [`schema`] | schemas that sellers write, and inputs judged by them |
//! | [`safety`], [`moderation`] | what may not be published |
//! | [`registry`] | registering, and everything a seller changes of its soul and its services |
//! | [`seller`] | who is calling a seller's route |
//! | [`starters`] | service types and templates to begin with |
//! | [`view`] | the wire shapes of souls and services |
//! | [`webhook`] | secrets that webhooks are signed with |
//! | [`history`] | which text was published when |
//! | [`market`] | what the functions of the marketplace share |

pub mod category;
pub mod counting;
pub mod form;
pub mod history;
pub mod market;
pub mod moderation;
pub mod payouts;
pub mod recent;
pub mod registry;
pub mod reputation;
pub mod safety;
pub mod schema;
pub mod seller;
pub mod service;
pub mod service_form;
pub mod soul;
pub mod starters;
pub mod statement;
pub mod view;
pub mod wallet;
pub mod webhook;

pub use market::Market;
