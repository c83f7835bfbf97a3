//! The marketplace: souls, what they sell, and who buys it.
//!
//! A soul is a seller: a profile, a text (soul.md) that may be for sale, and services that are. A sale goes through the
//! same gate, job, ledger and receipts as a tool of our own; what is different lies here.
//!
//! | module | what it is |
//! |---|---|
//! | [`soul`] | a seller's record, its key, its text's versions |
//! | [`service`] | what it sells, and the terms of each version |
//! | [`webhook`] | secrets that webhooks are signed with |
//! | [`market`] | what the functions of the marketplace share |

pub mod market;
pub mod moderation;
pub mod safety;
pub mod schema;
pub mod service;
pub mod soul;
pub mod webhook;

pub use market::Market;
