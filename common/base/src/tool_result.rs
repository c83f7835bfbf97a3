//! How work ended: where a result came from, or why there is none. Providers, tools and jobs say it in the same words.

use serde::{Deserialize, Serialize};

/// Where a result came from: every job's result carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub provider: &'static str,
    /// The provider's own name for the request, where it gave one.
    pub request_id: Option<String>,
    pub mode: Mode,
}

impl Source {
    /// Work this service did itself, by this part of it.
    pub const fn embedded(provider: &'static str) -> Source {
        Source { provider, request_id: None, mode: Mode::Embedded }
    }

    /// Work this provider did.
    pub const fn upstream(provider: &'static str, request_id: Option<String>) -> Source {
        Source { provider, request_id, mode: Mode::Upstream }
    }
}

/// How far work has come, in the words of whoever does it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// 0 to 100
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
}

/// Whether this service did the work itself or had it done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Embedded,
    Upstream,
}

/// The closed set of codes a failed job can carry (contract §0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    PaymentFailed,
    InsufficientFunds,
    /// Nothing at hand could do it: [`Unavailable`] says why.
    ProviderUnavailable,
    /// The provider does not know this deployment's key, or may not do this for it.
    ProviderAuth,
    /// The provider has had enough of us for now.
    RateLimited,
    InternalError,
}

/// Why a provider was of no use: the finer word beside `provider_unavailable` (contract §0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    DestinationNotReachable,
    SourceUnavailable,
    FrozenByOwner,
    /// The deployment has nothing that could do it.
    ProviderNotConfigured,
    /// What the seller brought (a program, a worker, a text) did not do the work.
    SellerFailed,
    /// The promised time is over.
    DeadlineExceeded,
    /// Only this deployment's own index could be asked, and there is nothing in it yet.
    NotInLocalIndex,
    /// The page is made by scripts, and nothing here runs them.
    NeedsBrowser,
    /// Whom it is about asked not to be found: nobody is asked about them.
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

/// Why a job failed: what its owner reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    pub code: ErrorCode,
    /// The finer word beside the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub message: String,
}

impl ToolError {
    pub fn unavailable(reason: Unavailable, message: impl Into<String>) -> ToolError {
        let reason = Some(reason.as_str().to_owned());
        ToolError { code: ErrorCode::ProviderUnavailable, reason, message: message.into() }
    }

    pub fn internal(message: impl Into<String>) -> ToolError {
        ToolError { code: ErrorCode::InternalError, reason: None, message: message.into() }
    }

    /// The coarser word (contract §0), and a status like HTTP's.
    pub fn category(&self) -> (&'static str, u16) {
        match self.code {
            ErrorCode::PaymentFailed | ErrorCode::InsufficientFunds => ("payment_required", 402),
            ErrorCode::ProviderUnavailable | ErrorCode::ProviderAuth => ("upstream_rejected", 503),
            ErrorCode::RateLimited => ("upstream_rejected", 429),
            ErrorCode::InternalError => ("internal_error", 500),
        }
    }
}
