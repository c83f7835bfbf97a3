//! Results and errors of tools, with the codes that providers, tools and jobs share.

use serde::{Deserialize, Serialize};

/// The source of a result; part of every job's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub provider: &'static str,
    /// The provider's id of the request, if it gave one.
    pub request_id: Option<String>,
    pub mode: Mode,
}

impl Source {
    /// Work of this service's own component `provider`.
    pub const fn embedded(provider: &'static str) -> Source {
        Source { provider, request_id: None, mode: Mode::Embedded }
    }

    /// Work of an outside provider.
    pub const fn upstream(provider: &'static str, request_id: Option<String>) -> Source {
        Source { provider, request_id, mode: Mode::Upstream }
    }
}

/// Progress of a job, as reported by the worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// 0 to 100
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
}

/// Whether this service did the work itself or an outside provider did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Embedded,
    Upstream,
}

/// The codes of failed jobs. The set is closed: clients match on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    PaymentFailed,
    InsufficientFunds,
    /// No provider could do the work: [`Unavailable`] says why.
    ProviderUnavailable,
    /// The provider rejected this deployment's key or does not permit the request.
    ProviderAuth,
    /// The provider limits our rate.
    RateLimited,
    /// The input turned out to be wrong during the work.
    InvalidInput,
    /// The text may not be sent or published, as a provider judged during the work.
    ContentBlocked,
    /// Every provider was asked, and none knows the answer.
    EnrichmentExhausted,
    /// The merchant did not complete the purchase.
    CheckoutFailed,
    InternalError,
}

/// Why the work could not be done: the `reason` beside `provider_unavailable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    DestinationNotReachable,
    SourceUnavailable,
    FrozenByOwner,
    /// The deployment has nothing configured for it.
    ProviderNotConfigured,
    /// The seller's program, worker or text did not do the work.
    SellerFailed,
    /// The deadline has passed.
    DeadlineExceeded,
    /// Only this deployment's own index could be searched, and it is still empty.
    NotInLocalIndex,
    /// The page needs scripts, and there is no browser to run them.
    NeedsBrowser,
    /// The person has opted out: no provider is asked about them.
    OptedOut,
}

impl Unavailable {
    pub fn as_str(self) -> &'static str {
        match self {
            Unavailable::DestinationNotReachable => "destination_not_reachable",
            Unavailable::SourceUnavailable => "source_unavailable",
            Unavailable::FrozenByOwner => "frozen_by_owner",
            Unavailable::ProviderNotConfigured => "provider_not_configured",
            Unavailable::SellerFailed => "seller_failed",
            Unavailable::DeadlineExceeded => "deadline_exceeded",
            Unavailable::NotInLocalIndex => "not_in_local_index",
            Unavailable::NeedsBrowser => "needs_browser",
            Unavailable::OptedOut => "opted_out",
        }
    }
}

/// Why a job failed. The caller reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    pub code: ErrorCode,
    /// The [`Unavailable`] reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub message: String,
}

impl ToolError {
    pub fn unavailable(reason: Unavailable, message: impl Into<String>) -> ToolError {
        let reason = Some(reason.as_str().to_owned());
        ToolError { code: ErrorCode::ProviderUnavailable, reason, message: message.into() }
    }

    /// Another code, without a reason.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> ToolError {
        ToolError { code, reason: None, message: message.into() }
    }

    pub fn internal(message: impl Into<String>) -> ToolError {
        ToolError::new(ErrorCode::InternalError, message)
    }

    /// The error's category, and an HTTP-like status.
    pub fn category(&self) -> (&'static str, u16) {
        match self.code {
            ErrorCode::PaymentFailed | ErrorCode::InsufficientFunds => ("payment_required", 402),
            ErrorCode::ProviderUnavailable | ErrorCode::ProviderAuth => ("upstream_rejected", 503),
            ErrorCode::RateLimited => ("upstream_rejected", 429),
            ErrorCode::InvalidInput | ErrorCode::ContentBlocked => ("bad_request", 400),
            ErrorCode::EnrichmentExhausted => ("upstream_rejected", 404),
            ErrorCode::CheckoutFailed => ("upstream_rejected", 502),
            ErrorCode::InternalError => ("internal_error", 500),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_a_category_and_a_status() {
        for (code, word, category) in [
            (ErrorCode::PaymentFailed, "payment_failed", ("payment_required", 402)),
            (ErrorCode::InsufficientFunds, "insufficient_funds", ("payment_required", 402)),
            (ErrorCode::ProviderUnavailable, "provider_unavailable", ("upstream_rejected", 503)),
            (ErrorCode::ProviderAuth, "provider_auth", ("upstream_rejected", 503)),
            (ErrorCode::RateLimited, "rate_limited", ("upstream_rejected", 429)),
            (ErrorCode::InvalidInput, "invalid_input", ("bad_request", 400)),
            (ErrorCode::ContentBlocked, "content_blocked", ("bad_request", 400)),
            (ErrorCode::EnrichmentExhausted, "enrichment_exhausted", ("upstream_rejected", 404)),
            (ErrorCode::CheckoutFailed, "checkout_failed", ("upstream_rejected", 502)),
            (ErrorCode::InternalError, "internal_error", ("internal_error", 500)),
        ] {
            assert_eq!(serde_json::to_value(code).unwrap(), word);
            assert_eq!(ToolError::new(code, "").category(), category);
        }
    }
}
