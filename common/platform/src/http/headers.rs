//! Headers callers send, read leniently: in any case, in any accepted form.

use base::money::Usdc;
use http::HeaderMap;

use super::ApiError;
use crate::auth::AgentName;

/// Longest idempotency key (contract §1.1).
pub const MAX_KEY_BYTES: usize = 255;
/// Longest quote id and approval id that are looked at; ours are shorter.
pub const MAX_QUOTE_BYTES: usize = 2048;
pub const MAX_APPROVAL_BYTES: usize = 100;
/// Longest `X-Max-Cost-USDC`: more than any float has digits.
pub const MAX_COST_BYTES: usize = 40;

/// A header's text, trimmed; `None` if it is absent or empty.
pub fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ApiError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let value = value.to_str().map_err(|_| ApiError::field(name, "must be ASCII text"))?.trim();
    Ok((!value.is_empty()).then_some(value))
}

/// As [`text`], where saying nothing is not the same as not being there.
fn not_empty<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ApiError> {
    match text(headers, name)? {
        None if headers.contains_key(name) => Err(ApiError::field(name, "is empty")),
        value => Ok(value),
    }
}

/// Who the caller says it is (`X-Agent-ID`).
pub fn agent_name(headers: &HeaderMap) -> Result<Option<AgentName>, ApiError> {
    let Some(value) = text(headers, "x-agent-id")? else { return Ok(None) };
    value.parse().map(Some).map_err(|message| ApiError::field("X-Agent-ID", message))
}

/// The most the caller wants to pay for this call (`X-Max-Cost-USDC`), also in exponent form, or
/// with all the digits of a float.
pub fn max_cost(headers: &HeaderMap) -> Result<Option<Usdc>, ApiError> {
    // An empty cap is a caller's mistake, and no leave to charge anything.
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

/// Text of at most so many bytes.
fn bounded<'a>(headers: &'a HeaderMap, name: &str, max: usize) -> Result<Option<&'a str>, ApiError> {
    match text(headers, name)? {
        Some(value) if value.len() > max => Err(ApiError::field(name, format!("may have at most {max} characters"))),
        value => Ok(value),
    }
}

/// Whether an `Authorization` value is a bearer token and so no payment.
pub fn is_bearer(value: &str) -> bool {
    value.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("bearer ")) || value.eq_ignore_ascii_case("bearer")
}

/// The secret of a bearer token, if the request carries one.
pub fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let value = text(headers, "authorization")?.filter(|value| is_bearer(value));
    Ok(value.map(|value| value.get(7..).unwrap_or_default().trim()))
}

/// The caller's own name for this request (`Idempotency-Key`).
pub fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let key = text(headers, "idempotency-key")?;
    match key {
        // Whoever sends a name that came out empty believes to be protected by it.
        None if headers.contains_key("idempotency-key") => {
            Err(ApiError::field("Idempotency-Key", "must have at least one character"))
        }
        Some(key) if key.len() > MAX_KEY_BYTES => {
            Err(ApiError::field("Idempotency-Key", format!("may have at most {MAX_KEY_BYTES} characters")))
        }
        key => Ok(key),
    }
}

/// Whether the caller only wants to know what would happen (`X-Dry-Run: true`).
pub fn is_dry_run(headers: &HeaderMap) -> Result<bool, ApiError> {
    match not_empty(headers, "x-dry-run")?.map(str::to_ascii_lowercase).as_deref() {
        None | Some("false" | "0") => Ok(false),
        Some("true" | "1") => Ok(true),
        // Whoever asks for a rehearsal and misspells it must not be charged.
        Some(_) => Err(ApiError::field("X-Dry-Run", "must be true or false")),
    }
}

/// The approval under which a held call is repeated (`X-Approval-Id`).
pub fn approval_id(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    bounded(headers, "X-Approval-Id", MAX_APPROVAL_BYTES)
}

/// What a paid call says in its headers beside its payment. Read whole, so that a price is not told to a call that would
/// be refused for one of them.
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
