//! Headers callers send, read leniently: in any case, in any accepted form.

use http::HeaderMap;

use super::ApiError;
use crate::auth::AgentName;
use crate::money::Usdc;

/// A header's text, trimmed; `None` if it is absent or empty.
pub fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ApiError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let value = value.to_str().map_err(|_| ApiError::field(name, "must be ASCII text"))?.trim();
    Ok((!value.is_empty()).then_some(value))
}

/// Who the caller says it is (`X-Agent-ID`).
pub fn agent_name(headers: &HeaderMap) -> Result<Option<AgentName>, ApiError> {
    let Some(value) = text(headers, "x-agent-id")? else { return Ok(None) };
    value.parse().map(Some).map_err(|message| ApiError::field("X-Agent-ID", message))
}

/// The most the caller wants to pay for this call (`X-Max-Cost-USDC`), also in exponent form.
pub fn max_cost(headers: &HeaderMap) -> Result<Option<Usdc>, ApiError> {
    let Some(value) = text(headers, "x-max-cost-usdc")? else { return Ok(None) };
    Usdc::parse(value).map(Some).map_err(|error| ApiError::field("X-Max-Cost-USDC", error.to_string()))
}

/// The quote being redeemed (`X-Quote-ID`).
pub fn quote_id(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    text(headers, "x-quote-id")
}

/// Whether the request carries a bearer token.
pub fn has_bearer(headers: &HeaderMap) -> Result<bool, ApiError> {
    Ok(text(headers, "authorization")?.is_some_and(crate::payments::wire::is_bearer))
}
