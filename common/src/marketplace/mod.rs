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

pub mod files;
pub mod jobs;
pub mod market;
pub mod moderation;
pub mod offer;
pub mod party;
pub mod rating;
pub mod schema;
pub mod service;
pub mod sold;
pub mod soul;
pub mod webhook;
pub mod worker;
pub mod workshop;

pub use market::Market;

use axum::response::{IntoResponse, Response};

use crate::http::ApiError;

/// The answer of a handler of the marketplace: where tools and souls have different words for the same, its own.
pub fn respond(result: Result<Response, ApiError>) -> Response {
    result.unwrap_or_else(|error| match error {
        ApiError::QuoteMismatch => ApiError::InvalidQuote.into_response(),
        ApiError::RateLimited(taken) => ApiError::MarketLimited(taken).into_response(),
        error => error.into_response(),
    })
}
