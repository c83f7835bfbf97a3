//! The marketplace: souls, what they sell, and who buys it.
//!
//! A soul is a seller: a profile, a text (soul.md) that may be for sale, and services that are. A sale goes through the
//! same gate, job, ledger and receipts as a tool of our own; what is different lies here.
//!
//! | module | what it is |
//! |---|---|
//! | [`soul`] | a seller's record, its key, its text's versions |
//! | [`service`] | what it sells, and the terms of each version |
//! | [`afford`] | what a price pays for of the model |
//! | [`counting`] | ended sales, added to everything they add up to |
//! | [`recent`], [`reputation`] | what is counted of a soul's sales |
//! | [`wallet`], [`payouts`], [`statement`] | a seller's money on its way out |
//! | [`category`] | what kind of work a service does |
//! | [`listing`] | souls by completed jobs, in pages |
//! | [`search`] | souls by words, ranked; [`ranking`] is the published formula, [`matching`] applies it |
//! | [`index`] | keeps both in step with the records; [`posting`] and [`vocabulary`] are what it writes, [`base::words`] how texts are read |
//! | [`totals`] | what the marketplace has done, added up |
//! | [`form`], [`service_form`] | what bodies of sellers may say |
//! | [`schema`] | schemas that sellers write, and inputs judged by them |
//! | [`safety`], [`moderation`] | what may not be published |
//! | [`registration`] | registering under a name of one's own |
//! | [`registry`] | registering, and everything a seller changes of its soul and its services |
//! | [`seller`] | who is calling a seller's route |
//! | [`starters`] | service types and templates to begin with |
//! | [`view`] | the wire shapes of souls and services |
//! | [`slots`] | how many jobs of one soul, and of one buyer, are done at once |
//! | [`trials`] | a seller's test cases, run now and then |
//! | [`webhook`] | secrets that webhooks are signed with |
//! | [`history`] | which text was published when |
//! | [`market`] | what the functions of the marketplace share |

pub mod afford;
pub mod category;
pub mod checkout;
pub mod counting;
pub mod files;
pub mod form;
pub mod history;
pub mod index;
pub mod jobs;
pub mod listing;
pub mod market;
pub mod matching;
pub mod moderation;
pub mod offer;
pub mod party;
pub mod payouts;
pub mod posting;
pub mod ranking;
pub mod rating;
pub mod recent;
pub mod registration;
pub mod registry;
pub mod reputation;
pub mod safety;
pub mod schema;
pub mod search;
pub mod seller;
pub mod service;
pub mod service_form;
pub mod service_runner;
pub mod slots;
pub mod sold;
pub mod soul;
pub mod starters;
pub mod statement;
pub mod totals;
pub mod trials;
pub mod view;
pub mod vocabulary;
pub mod wallet;
pub mod webhook;
pub mod worker;

use axum::response::{IntoResponse, Response};
pub(crate) use base::words;
pub use market::Market;
use platform::http::ApiError;

/// The answer of a handler of the marketplace: where tools and souls have different words for the same, its own.
pub fn respond(result: Result<Response, ApiError>) -> Response {
    result.unwrap_or_else(|error| match error {
        ApiError::QuoteMismatch => ApiError::InvalidQuote.into_response(),
        error => error.into_response(),
    })
}
