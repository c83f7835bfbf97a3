//! The tools: one file each, with its catalog entry, its input, its result and its work.
//!
//! A tool's entry ([`crate::catalog::ToolSpec`]) says what is sold; its [`Runner`] does it. A function links only the
//! runners it names.

pub mod soul;
pub mod top_up;
pub mod vehicle_identification;
pub mod web_read;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::catalog::ToolSpec;
use crate::clock::Clock;
use crate::config::Config;
use crate::money::Usdc;
use crate::net::{FetchPolicy, Fetcher};
use crate::store::{BoxFuture, StoreError};

/// Does a tool's work.
pub struct Runner {
    pub spec: &'static ToolSpec,
    pub run: fn(Arc<Toolbox>, Map<String, Value>) -> Running,
}

/// Work under way.
pub type Running = BoxFuture<'static, Result<Output, ToolError>>;

/// What tools work with.
pub struct Toolbox {
    pub clock: Clock,
    pub fetcher: Fetcher,
}

impl Toolbox {
    /// The servers we read from are told who we are, and where, if that is configured.
    pub fn new(clock: Clock, policy: FetchPolicy, config: &Config) -> Result<Toolbox, StoreError> {
        let contact = config.base_url.as_deref().unwrap_or("tools for software agents");
        let user_agent = format!("{}/{} (+{contact})", config.service_name, env!("CARGO_PKG_VERSION"));
        Ok(Toolbox { clock, fetcher: Fetcher::new(policy, &user_agent).map_err(StoreError::new)? })
    }
}

/// A result, and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub result: Value,
    pub provider: &'static str,
    pub provider_request_id: Option<String>,
    pub mode: Mode,
    /// Credits that were bought, in micro-USDC: where credits themselves are what is sold.
    pub credited: Option<Usdc>,
    /// What tools that the work used cost, of a seller's share, in micro-USDC.
    pub tools_cost: Usdc,
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
    ProviderUnavailable,
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
            ErrorCode::ProviderUnavailable => ("upstream_rejected", 503),
            ErrorCode::InternalError => ("internal_error", 500),
        }
    }
}
