//! Request headers of a call. Names and words match in any case; an empty value counts as absent, except where noted.

use base::money::Usdc;
use http::HeaderMap;

use super::ApiError;
use crate::auth::AgentName;

/// Longest idempotency key.
pub const MAX_KEY_BYTES: usize = 255;
/// Longest quote id and approval id that are accepted; ours are shorter.
pub const MAX_QUOTE_BYTES: usize = 2048;
pub const MAX_APPROVAL_BYTES: usize = 100;
/// Longest `X-Max-Cost-USDC`; no float is written with more digits.
pub const MAX_COST_BYTES: usize = 40;

/// How a soul key begins, which is sent where an access token is.
pub const SOUL_KEY_PREFIX: &str = "soul_";

/// A header's value, trimmed; `None` if it is absent or empty.
pub fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ApiError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let value = value.to_str().map_err(|_| ApiError::field(name, "must be ASCII text"))?.trim();
    Ok((!value.is_empty()).then_some(value))
}

/// Like [`text`], but an empty value is an error.
fn not_empty<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ApiError> {
    match text(headers, name)? {
        None if headers.contains_key(name) => Err(ApiError::field(name, "must have a value, or be left out")),
        value => Ok(value),
    }
}

/// The agent the caller claims to be (`X-Agent-ID`).
pub fn agent_name(headers: &HeaderMap) -> Result<Option<AgentName>, ApiError> {
    let Some(value) = text(headers, "x-agent-id")? else { return Ok(None) };
    value.parse().map(Some).map_err(|message| ApiError::field("X-Agent-ID", message))
}

/// The most the caller will pay for this call (`X-Max-Cost-USDC`). Exponents and extra digits are accepted.
pub fn max_cost(headers: &HeaderMap) -> Result<Option<Usdc>, ApiError> {
    // Reject an empty cap: the client believes its costs are limited.
    let Some(value) = not_empty(headers, "x-max-cost-usdc")? else { return Ok(None) };
    if value.len() > MAX_COST_BYTES {
        return Err(ApiError::field("X-Max-Cost-USDC", format!("must have at most {MAX_COST_BYTES} characters")));
    }
    Usdc::parse_cap(value).map(Some).map_err(|error| ApiError::field("X-Max-Cost-USDC", error.to_string()))
}

/// The quote being redeemed (`X-Quote-ID`).
pub fn quote_id(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    bounded(headers, "X-Quote-ID", MAX_QUOTE_BYTES)
}

/// A header of at most `max` bytes.
fn bounded<'a>(headers: &'a HeaderMap, name: &str, max: usize) -> Result<Option<&'a str>, ApiError> {
    match text(headers, name)? {
        Some(value) if value.len() > max => Err(ApiError::field(name, format!("must have at most {max} characters"))),
        value => Ok(value),
    }
}

/// Whether an `Authorization` value is a bearer token, and so not a payment.
pub fn is_bearer(value: &str) -> bool {
    value.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("bearer ")) || value.eq_ignore_ascii_case("bearer")
}

/// The bearer token, without the word `Bearer`.
pub fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let value = text(headers, "authorization")?.filter(|value| is_bearer(value));
    Ok(value.map(|value| value.get(7..).unwrap_or_default().trim()))
}

/// The idempotency key (`Idempotency-Key`).
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let key = text(headers, "idempotency-key")?;
    match key {
        // Reject an empty key: the client believes it is protected.
        None if headers.contains_key("idempotency-key") => Err(ApiError::field(
            "Idempotency-Key",
            format!("must have 1 to {MAX_KEY_BYTES} characters, or be left out"),
        )),
        Some(key) if key.len() > MAX_KEY_BYTES => {
            Err(ApiError::field("Idempotency-Key", format!("must have at most {MAX_KEY_BYTES} characters")))
        }
        key => Ok(key),
    }
}

/// Whether this is a dry run (`X-Dry-Run: true`).
pub fn is_dry_run(headers: &HeaderMap) -> Result<bool, ApiError> {
    match not_empty(headers, "x-dry-run")? {
        None | Some("false" | "False" | "0") => Ok(false),
        // As Python prints it, too.
        Some("true" | "True" | "1") => Ok(true),
        // A misspelt dry run must not become a charged call.
        Some(_) => Err(ApiError::field("X-Dry-Run", "must be true or false")),
    }
}

/// The approval that releases a held call (`X-Approval-Id`).
pub fn approval_id(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    bounded(headers, "X-Approval-Id", MAX_APPROVAL_BYTES)
}

/// The headers of a paid call, other than its payment. All are read first, so that a call with a wrong header is refused
/// before it gets a price.
pub struct CallHeaders<'a> {
    pub agent: Option<AgentName>,
    pub max_cost: Option<Usdc>,
    pub quote_id: Option<&'a str>,
    pub idempotency_key: Option<&'a str>,
    pub approval_id: Option<&'a str>,
}

impl<'a> CallHeaders<'a> {
    pub fn read(headers: &'a HeaderMap) -> Result<CallHeaders<'a>, ApiError> {
        Ok(CallHeaders {
            agent: agent_name(headers)?,
            max_cost: max_cost(headers)?,
            quote_id: quote_id(headers)?,
            idempotency_key: idempotency_key(headers)?,
            approval_id: approval_id(headers)?,
        })
    }
}
