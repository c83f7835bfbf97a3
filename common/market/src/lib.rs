//! The marketplace: souls, the services they sell, and their buyers.
//!
//! A soul is a seller: a profile, a text (soul.md) that may be for sale, and services. A sale goes through the same
//! gate, job, ledger and receipts as one of the platform's own tools. This crate holds only what differs. Start with
//! [`soul`], [`service`] and [`registry`].
//!
//! | module | contents |
//! |---|---|
//! | [`soul`] | a seller's record, its key, the versions of its text |
//! | [`service`] | a service, and the terms of each version |
//! | [`offer`], [`service_runner`] | the terms of a sale, and running the sold job |
//! | [`sold`] | lists of a soul's jobs |
//! | [`jobs`] | a job as its buyer and its seller see it |
//! | [`worker`] | jobs of a seller's own worker: claim, progress, completion |
//! | [`party`], [`rating`] | who may see a job, buyers' ratings |
//! | [`checkout`] | checkout sessions for agent platforms (ACP) |
//! | [`afford`] | how much model use a price covers |
//! | [`counting`] | adds each ended sale to its counters, once |
//! | [`recent`], [`reputation`], [`statistics`] | figures computed from a soul's sales |
//! | [`wallet`], [`payouts`], [`statement`] | a seller's wallet, payouts and earnings statement |
//! | [`category`] | the kinds of work |
//! | [`listing`] | souls by completed jobs, in pages |
//! | [`search`] | souls by words, ranked; [`ranking`] is the published formula, [`matching`] applies it |
//! | [`index`] | keeps [`listing`] and [`search`] in step with the records; writes [`posting`] and [`vocabulary`] |
//! | [`totals`] | totals over the whole marketplace |
//! | [`form`], [`service_form`] | validation of sellers' request bodies |
//! | [`schema`] | JSON schemas written by sellers, and validation of inputs against them |
//! | [`safety`] | what may not be published |
//! | [`registration`] | registering under an idempotency key |
//! | [`registry`] | registration, and every change a seller makes |
//! | [`seller`] | authenticates the caller of a seller's route |
//! | [`starters`] | service types and templates for new sellers |
//! | [`view`] | the wire shapes of souls and services |
//! | [`slots`] | limits on concurrent jobs per soul and per buyer |
//! | [`trials`] | scheduled runs of a seller's test cases |
//! | [`webhook`] | the secrets that sign webhooks |
//! | [`history`] | the versions of a soul's text and their dates |
//! | [`market`] | state shared by the marketplace's functions |

pub mod afford;
pub mod category;
pub mod checkout;
pub mod counting;
pub mod form;
pub mod history;
pub mod index;
pub mod jobs;
pub mod listing;
pub mod market;
pub mod matching;
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
pub mod statistics;
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

/// Turns a handler's result into a response. A quote mismatch has another error code in the marketplace than for tools.
pub fn respond(result: Result<Response, ApiError>) -> Response {
    result.unwrap_or_else(|error| match error {
        ApiError::QuoteMismatch => ApiError::InvalidQuote.into_response(),
        error => error.into_response(),
    })
}
