//! The errors of the marketplace, beside those of every route.

use axum::response::{IntoResponse, Response};
use base::input::FieldError;
use http::StatusCode;

use super::ApiError;
use super::error::listed;

/// A refusal of a marketplace route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarketError {
    /// The soul does not exist or is suspended, on routes without a code of their own for it.
    Unlisted,
    /// `execute`: no soul of this slug, or it is suspended.
    SoulNotFound,
    /// The soul has no service of this slug, or it is not active.
    ServiceNotFound,
    /// The soul's text has no price, so it cannot be bought.
    NotForSale,
    /// The input of `execute` does not satisfy the service's `input_schema`.
    InvalidInput(Vec<FieldError>),
    /// A worker's result does not satisfy the service's `output_schema`.
    InvalidOutput(Vec<FieldError>),
    /// The reader of a job is neither its buyer nor its seller, or the rater is not its buyer.
    Forbidden(&'static str),
    JobNotCompleted,
    AlreadyRated,
    /// Another worker of the same seller holds the job's lease.
    AlreadyClaimed,
    /// The requested range is outside the file.
    NoSuchRange,
    /// The job is not in a state that allows this step.
    InvalidState(&'static str),
}

impl MarketError {
    pub fn status(&self) -> StatusCode {
        match self {
            MarketError::Unlisted | MarketError::SoulNotFound | MarketError::ServiceNotFound => StatusCode::NOT_FOUND,
            MarketError::NotForSale
            | MarketError::InvalidInput(_)
            | MarketError::InvalidOutput(_)
            | MarketError::JobNotCompleted
            | MarketError::AlreadyRated => StatusCode::BAD_REQUEST,
            MarketError::NoSuchRange => StatusCode::RANGE_NOT_SATISFIABLE,
            MarketError::Forbidden(_) => StatusCode::FORBIDDEN,
            MarketError::AlreadyClaimed | MarketError::InvalidState(_) => StatusCode::CONFLICT,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            MarketError::Unlisted => "not_found",
            MarketError::SoulNotFound => "soul_not_found",
            MarketError::ServiceNotFound => "service_not_found",
            MarketError::NotForSale => "not_for_sale",
            MarketError::InvalidInput(_) => "invalid_input",
            MarketError::InvalidOutput(_) => "invalid_output",
            MarketError::Forbidden(_) => "forbidden",
            MarketError::JobNotCompleted => "job_not_completed",
            MarketError::AlreadyRated => "already_rated",
            MarketError::AlreadyClaimed => "already_claimed",
            MarketError::NoSuchRange => "range_not_satisfiable",
            MarketError::InvalidState(_) => "invalid_state",
        }
    }

    pub fn message(&self) -> String {
        match self {
            MarketError::Unlisted | MarketError::SoulNotFound => {
                "no active soul has this slug; GET /v1/soul/search finds souls".to_owned()
            }
            MarketError::ServiceNotFound => {
                "the soul has no active service with this slug; its profile lists its services".to_owned()
            }
            MarketError::NotForSale => "this soul's text is not for sale".to_owned(),
            MarketError::InvalidInput(errors) => first(errors, "input does not satisfy the service's input_schema"),
            MarketError::InvalidOutput(errors) => {
                first(errors, "the result does not satisfy the service's output_schema")
            }
            MarketError::Forbidden(why) | MarketError::InvalidState(why) => (*why).to_owned(),
            MarketError::NoSuchRange => "the range is outside the file; Content-Range gives the file's size".to_owned(),
            MarketError::JobNotCompleted => "only a completed job can be rated".to_owned(),
            MarketError::AlreadyRated => "the job has been rated already; a job can be rated only once".to_owned(),
            MarketError::AlreadyClaimed => "another worker has the job; its lease has not run out".to_owned(),
        }
    }

    pub fn details(&self) -> Option<&[FieldError]> {
        match self {
            MarketError::InvalidInput(errors) | MarketError::InvalidOutput(errors) => Some(errors),
            _ => None,
        }
    }
}

impl IntoResponse for MarketError {
    fn into_response(self) -> Response {
        ApiError::from(self).into_response()
    }
}

fn first(errors: &[FieldError], what: &str) -> String {
    if errors.is_empty() { what.to_owned() } else { format!("{what}: {}", listed(errors)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_status_and_code() {
        let rows = [
            (MarketError::Unlisted, 404, "not_found"),
            (MarketError::SoulNotFound, 404, "soul_not_found"),
            (MarketError::ServiceNotFound, 404, "service_not_found"),
            (MarketError::NotForSale, 400, "not_for_sale"),
            (MarketError::InvalidInput(Vec::new()), 400, "invalid_input"),
            (MarketError::InvalidOutput(Vec::new()), 400, "invalid_output"),
            (MarketError::Forbidden("no"), 403, "forbidden"),
            (MarketError::JobNotCompleted, 400, "job_not_completed"),
            (MarketError::AlreadyRated, 400, "already_rated"),
            (MarketError::AlreadyClaimed, 409, "already_claimed"),
            (MarketError::NoSuchRange, 416, "range_not_satisfiable"),
            (MarketError::InvalidState("no"), 409, "invalid_state"),
        ];
        for (error, status, code) in rows {
            assert_eq!((error.status().as_u16(), error.code()), (status, code));
            assert!(!error.message().is_empty());
        }
    }
}
