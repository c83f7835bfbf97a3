//! A call, read and validated: what is bought, by whom, and under which conditions of the caller's own.

use axum::body::Bytes;
use base::digest::{canonical_json, sha256, sha256_parts};
use base::ids::AgentId;
use base::input::{self, FieldError};
use base::money::Usdc;
use evm::Word;
use http::{HeaderMap, header};
use ledger::freeze::SERVICE_PAYEE;
use ledger::payments::quote::Purchase;
use ledger::receipt;
use platform::auth::{AgentName, Caller, Scope, Session};
use platform::http::headers::CallHeaders;
use platform::http::{ApiError, MarketError, headers};
use platform::net::FetchPolicy;
use serde_json::{Map, Value};
use tools::spec::{RECEIPT_FIELDS, ToolSpec};

use super::checkout_binding::CheckoutBinding;
use crate::jobs::job::Lane;

/// Largest memo, decision context and value tag together: they become part of the receipt's item.
const MAX_METADATA_BYTES: usize = 16 * 1024;

/// What a seller sells with this call, at the terms the call is for.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The soul's slug.
    pub soul: String,
    /// The service's; none if it is the soul's text that is sold.
    pub service: Option<String>,
    /// Version of the service's terms, or of the text.
    pub terms: u32,
    /// micro-USDC
    pub price: Usdc,
    /// The most of it that is kept if the work fails, in micro-USDC.
    pub kept_up_to: Usdc,
    /// The same for a purchase that names no quote: less for a while after the seller raised it.
    pub kept_up_to_without_quote: Usdc,
    /// Who does it, or sees that it is done.
    pub lane: Lane,
    pub title: String,
    pub summary: String,
    /// What the 402's context says beside the quote.
    pub context: Map<String, Value>,
    /// What the 202 says beside the job.
    pub accepted: Map<String, Value>,
    /// Whether these are the terms of a quote that the call names, and not today's: then only that quote buys, and no new
    /// one is made of them.
    pub quoted: bool,
    /// Why nothing new is sold here, if it is so. What was bought before is answered all the same.
    pub closed: Option<MarketError>,
}

impl Listing {
    /// Refuses what is no longer sold.
    pub fn check_open(&self) -> Result<(), ApiError> {
        self.closed.clone().map_or(Ok(()), |closed| Err(closed.into()))
    }
}

/// One call of something that is sold.
pub struct Call<'a> {
    pub tool: &'static ToolSpec,
    /// Where a seller sells it.
    pub listing: Option<&'a Listing>,
    /// Full URL of the request.
    pub resource: &'a str,
    pub headers: &'a HeaderMap,
    pub body: Bytes,
}

impl Call<'_> {
    /// SHA-256 of what is called and with which bytes: the same on the request that asks the price and the one that pays it.
    pub fn digest(&self) -> [u8; 32] {
        sha256_parts(&[self.resource.as_bytes(), &self.body])
    }
}

/// A call whose body is what the tool takes.
pub struct Order<'a> {
    pub tool: &'static ToolSpec,
    pub listing: Option<&'a Listing>,
    pub resource: &'a str,
    /// Who the caller says it is.
    pub named: Option<AgentName>,
    /// Who the caller proved to be.
    pub caller: Option<Caller>,
    pub max_cost: Option<Usdc>,
    pub quote_id: Option<&'a str>,
    pub idempotency_key: Option<&'a str>,
    pub approval_id: Option<&'a str>,
    pub input: Map<String, Value>,
    /// What it costs, in micro-USDC.
    pub price: Usdc,
    pub metadata: Option<String>,
    pub goal_id: Option<String>,
    /// SHA-256 of the canonical body, and of the seller it is for.
    pub body: [u8; 32],
    pub trace: Option<String>,
    /// The checkout session that it completes.
    pub binding: Option<&'a CheckoutBinding>,
}

impl<'a> Order<'a> {
    /// Reads a call; whatever is wrong with it is named, all at once.
    pub fn read(call: &Call<'a>, caller: Option<Caller>, policy: &FetchPolicy) -> Result<Order<'a>, ApiError> {
        let body = parse_body(call.headers, &call.body)?;
        let input = input::validate(call.tool.input, &body).map_err(ApiError::InvalidRequest)?;
        let attached = input::validate(RECEIPT_FIELDS, &body).map_err(ApiError::InvalidRequest)?;
        let wrong = (call.tool.check)(&input, policy);
        if !wrong.is_empty() {
            return Err(ApiError::InvalidRequest(wrong));
        }
        if let Some(Value::Object(tag)) = attached.get("valueTag") {
            ledger::value::amount(tag, "valueTag.").map_err(|wrong| ApiError::InvalidRequest(vec![wrong]))?;
        }
        let metadata = receipt::metadata(&attached);
        if metadata.as_ref().is_some_and(|metadata| metadata.len() > MAX_METADATA_BYTES) {
            let path = if attached.contains_key("decisionContext") { "decisionContext" } else { "memo" };
            return Err(ApiError::field(
                path,
                format!("memo, decisionContext and valueTag may have {MAX_METADATA_BYTES} bytes together"),
            ));
        }
        let goal_id = attached.get("decisionContext").and_then(|context| context["goalId"].as_str()).map(str::to_owned);
        let said = CallHeaders::read(call.headers)?;
        let canonical = canonical_json(&Value::Object(body));
        Ok(Order {
            tool: call.tool,
            listing: call.listing,
            resource: call.resource,
            named: caller.as_ref().map(|caller| AgentName::Wallet(caller.wallet)).or(said.agent),
            caller,
            max_cost: said.max_cost,
            quote_id: said.quote_id,
            idempotency_key: said.idempotency_key,
            approval_id: said.approval_id,
            price: call.listing.map_or_else(|| call.tool.price.of(&input), |listing| listing.price),
            input,
            metadata,
            goal_id,
            body: match call.listing {
                None => sha256(canonical.as_bytes()),
                // The same body means another purchase at another seller.
                Some(listing) => sha256_parts(&[
                    listing.soul.as_bytes(),
                    listing.service.as_deref().unwrap_or_default().as_bytes(),
                    canonical.as_bytes(),
                ]),
            },
            trace: headers::text(call.headers, "x-amzn-trace-id")?.map(str::to_owned),
            binding: None,
        })
    }

    /// The call as part of a checkout session: the same body means another purchase in another session.
    pub fn in_checkout(self, binding: Option<&'a CheckoutBinding>) -> Order<'a> {
        match binding {
            None => self,
            Some(binding) => Order { body: binding.bind(&self.body), binding: Some(binding), ..self },
        }
    }

    pub fn purchase(&self) -> Purchase<'_> {
        Purchase { tool: self.tool.name, body: &self.body }
    }

    /// What a payment or a name is claimed for.
    pub fn purchase_digest(&self) -> Word {
        sha256_parts(&[self.tool.name.as_bytes(), &self.body])
    }

    /// The agent the quote is for, as far as it is known.
    pub fn agent(&self) -> Option<AgentId> {
        self.named.map(|named| named.agent())
    }

    /// The proven caller, if its credits may be used: a read proof is a statement about reading, unless the caller
    /// named the call (contract §1.5).
    pub fn spender(&self) -> Option<&Caller> {
        let caller = self.caller.as_ref()?;
        let may_spend = match caller.session {
            Session::Wallet(Scope::Write | Scope::Submit) | Session::Token(_) => true,
            Session::Wallet(Scope::Read) => self.idempotency_key.is_some(),
        };
        (may_spend && !self.tool.sells_credits).then_some(caller)
    }

    /// Whether the terms are those of a quote that the call names.
    pub fn is_quoted(&self) -> bool {
        self.listing.is_some_and(|listing| listing.quoted)
    }

    /// Refuses what its seller no longer sells.
    pub fn check_open(&self) -> Result<(), ApiError> {
        self.listing.map_or(Ok(()), Listing::check_open)
    }

    /// Who is paid, as the owner's rules name it: a soul's slug, or ourselves.
    pub fn payee(&self) -> &str {
        self.listing.map_or(SERVICE_PAYEE, |listing| &listing.soul)
    }

    /// The service's own address, as the caller sees it.
    pub fn origin(&self) -> &str {
        self.resource.split_once("/v1/").map_or(self.resource, |(origin, _)| origin)
    }

    /// Refuses what is above the caller's own cap.
    pub fn check_cap(&self, price: Usdc) -> Result<(), ApiError> {
        check_cap(self.max_cost, price)
    }
}

/// Refuses what costs more than the caller's own cap, if it set one.
pub fn check_cap(cap: Option<Usdc>, price: Usdc) -> Result<(), ApiError> {
    match cap {
        Some(cap) if price > cap => Err(ApiError::ExceedsCallerBudget { price, cap }),
        _ => Ok(()),
    }
}

/// A JSON object, whatever else was sent being named.
pub fn parse_body(headers: &HeaderMap, body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    if body.is_empty() {
        return Ok(Map::new());
    }
    let content_type = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    if content_type.is_some_and(|content_type| !is_json(content_type)) {
        return Err(ApiError::UnsupportedMediaType);
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(body)) => match input::check_depth(&body) {
            Ok(()) => Ok(body),
            Err(wrong) => Err(ApiError::InvalidRequest(wrong)),
        },
        Ok(_) => Err(ApiError::InvalidRequest(vec![FieldError::new("", "the body must be a JSON object")])),
        Err(_) => Err(ApiError::InvalidRequest(vec![input::not_json(body)])),
    }
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.starts_with("application/") && essence.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json_objects() {
        let parse = |content_type: Option<&str>, body: &[u8]| {
            let mut headers = HeaderMap::new();
            if let Some(content_type) = content_type {
                headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
            }
            parse_body(&headers, body).map_err(|error| error.code())
        };
        assert!(parse(None, b"{}").is_ok());
        assert!(parse(Some("application/json; charset=utf-8"), b"{}").is_ok());
        assert!(parse(Some("application/vnd.api+json"), b"{}").is_ok());
        assert_eq!(parse(Some("text/plain"), b"{}"), Err("unsupported_media_type"));
        for body in [&b"["[..], b"[]", b"null", b"{\"a\":1}x", b"\xff\xfe", "[".repeat(100_000).as_bytes()] {
            assert_eq!(parse(None, body), Err("invalid_request"));
        }
    }
}
