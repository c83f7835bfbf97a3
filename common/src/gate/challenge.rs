//! The 402 answer: one body and one header that serve every client.
//!
//! The body holds the product's own quote fields, `payment_request` and `context` for its SDKs, and `x402Version: 1`
//! with `accepts` for x402 v1 clients; the header `PAYMENT-REQUIRED` is for x402 v2. Quote ids ride in `extra`, which v2
//! clients echo without knowing us.

use axum::response::Response;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::order::Listing;
use crate::catalog::{ToolSpec, bazaar};
use crate::config::Config;
use crate::encoding::base64_standard;
use crate::http::error::{PaymentContext, merge};
use crate::http::private_json;
use crate::money::Usdc;
use crate::payments::quote::Quote;
use crate::payments::reason::Reason;
use crate::payments::wire::{MAX_TIMEOUT_SECS, PAYMENT_IDENTIFIER};

/// Longest value of that header (contract §1.2): clients echo all of it in their payment, and a gateway takes 10 KB of
/// headers.
const MAX_HEADER_BYTES: usize = 3 * 1024;

pub const PAYMENT_REQUIRED: HeaderName = HeaderName::from_static("payment-required");

/// Stock clients refuse to pay more than this without their owner's word.
const CLIENT_DEFAULT_CAP: Usdc = Usdc::from_micro(1_000_000);

/// A price for one request, ready to be shown.
pub struct Offer<'a> {
    pub config: &'a Config,
    pub tool: &'static ToolSpec,
    pub listing: Option<&'a Listing>,
    /// Full URL of the request.
    pub resource: &'a str,
    pub quote: Quote,
    pub quote_id: &'a str,
    /// What the caller could spend before this quote, if it is known who calls.
    pub credits_balance: Option<Usdc>,
}

impl Offer<'_> {
    /// 402 for a request without payment.
    pub fn unpaid(&self) -> Response {
        let price = self.quote.amount;
        let mut message = format!("{} costs {price} USDC: repeat the request with a signed payment", self.title());
        if self.quote.credits > Usdc::ZERO {
            message = format!(
                "{} costs {price} USDC, of which your credits pay {}: repeat the request with this quote, a fresh proof \
                 and a payment of the rest",
                self.title(),
                self.quote.credits
            );
        }
        if let Some(kept) = self.listing.map(|listing| listing.kept_up_to).filter(|kept| *kept > Usdc::ZERO) {
            message.push_str(&format!(
                "; if the work fails, the price comes back as credits less what it used up of paid tools and model, at most \
                 {kept}"
            ));
        }
        if self.quote.remaining() > CLIENT_DEFAULT_CAP {
            message.push_str("; above 1 USD, x402 clients need their own spending cap raised first");
        }
        let mut body = json!({"error": "payment_required", "code": 402, "message": message});
        merge(&mut body, self.members());
        self.response(&body, "payment_required")
    }

    /// 402 for a payment that was refused, with the terms under which a new one is taken.
    pub fn refused(&self, reason: Reason, context: &PaymentContext) -> Response {
        let mut body = json!({
            "error": "payment_verification_failed",
            "code": 402,
            "message": format!("the payment was refused: {reason}; nothing was charged"),
            "reason": reason.as_str(),
            "stage": reason.stage(),
            "diagnostics": {"hint": reason.to_string()},
        });
        let mut members = self.members();
        merge(&mut members, context.members());
        // The quote to use from now on, not the one that failed.
        members["quote_id"] = json!(self.quote_id);
        merge(&mut body, members);
        self.response(&body, reason.as_str())
    }

    fn title(&self) -> &str {
        self.listing.map_or(self.tool.title, |listing| &listing.title)
    }

    fn summary(&self) -> &str {
        self.listing.map_or(self.tool.summary, |listing| &listing.summary)
    }

    fn members(&self) -> Value {
        let chain = &self.config.chain;
        let pay_to = self.config.payments.pay_to.to_string();
        let amount = self.quote.remaining();
        let expires = self.quote.expires.to_string();
        let mut members = json!({
            "quote_id": self.quote_id,
            "amount_usdc": amount.to_string(),
            "pay_to": pay_to,
            "network": chain.caip2(),
            "expires_at": expires,
            "payment_request": {
                "chain_id": chain.chain_id,
                "token_address": chain.token.address.to_string(),
                "amount": amount.to_string(),
                "recipient": pay_to,
            },
            "context": {
                "tool": self.tool.name,
                "quote_id": self.quote_id,
                "total": self.quote.amount.to_string(),
                "expires_at": expires,
            },
            "x402Version": 1,
            "extensions": extensions(Some(bazaar::http(self.tool))),
            "accepts": [{
                "scheme": "exact",
                "network": chain.v1_name(),
                "maxAmountRequired": amount.micro().to_string(),
                "resource": self.resource,
                "description": self.summary(),
                "mimeType": "application/json",
                "payTo": pay_to,
                "maxTimeoutSeconds": MAX_TIMEOUT_SECS,
                "asset": chain.token.address.to_string(),
                "extra": {"name": chain.token.name, "version": chain.token.version},
            }],
        });
        let context = &mut members["context"];
        if let Some(listing) = self.listing {
            merge(context, Value::Object(listing.context.clone()));
        }
        if self.quote.credits > Usdc::ZERO {
            context["credits_applied"] = json!(self.quote.credits.to_string());
        }
        if let Some(balance) = self.credits_balance {
            context["credits_balance"] = json!(balance.to_string());
        }
        if self.tool.sells_credits {
            context["top_up_usd"] = json!(self.quote.amount.to_string());
        }
        members
    }

    /// The header's value. What says how the call is made gives way where the seller's own words are long.
    fn header(&self, error: &str) -> String {
        let ways: [fn(&ToolSpec) -> Value; 2] = [bazaar::http, bazaar::http_brief];
        let long = ways.iter().map(|bazaar| self.header_with(error, Some(bazaar(self.tool))));
        let short = long.into_iter().find(|header| header.len() <= MAX_HEADER_BYTES);
        short.unwrap_or_else(|| self.header_with(error, None))
    }

    fn header_with(&self, error: &str, bazaar: Option<Value>) -> String {
        let chain = &self.config.chain;
        let challenge = json!({
            "x402Version": 2,
            "error": error,
            "resource": {"url": self.resource, "description": self.summary(), "mimeType": "application/json"},
            "accepts": [{
                "scheme": "exact",
                "network": chain.caip2(),
                "amount": self.quote.remaining().micro().to_string(),
                "asset": chain.token.address.to_string(),
                "payTo": self.config.payments.pay_to.to_string(),
                "maxTimeoutSeconds": MAX_TIMEOUT_SECS,
                "extra": {"name": chain.token.name, "version": chain.token.version, "quoteId": self.quote_id},
            }],
            "extensions": extensions(bazaar),
        });
        base64_standard(challenge.to_string().as_bytes())
    }

    fn response(&self, body: &Value, error: &str) -> Response {
        let mut response = private_json(StatusCode::PAYMENT_REQUIRED, body);
        if let Ok(header) = HeaderValue::from_str(&self.header(error)) {
            response.headers_mut().insert(PAYMENT_REQUIRED, header);
        }
        response
    }
}

/// What clients may use beside the payment itself.
fn extensions(bazaar: Option<Value>) -> Value {
    let mut extensions = json!({PAYMENT_IDENTIFIER: payment_identifier()});
    if let Some(bazaar) = bazaar {
        extensions[bazaar::BAZAAR] = bazaar;
    }
    extensions
}

/// Says that a payment may carry a name of its caller's: clients send one only where it is offered.
fn payment_identifier() -> Value {
    json!({
        "info": {"required": false},
        "schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "required": {"type": "boolean"},
                "id": {"type": "string", "minLength": 16, "maxLength": 128, "pattern": "^[a-zA-Z0-9_-]+$"},
            },
            "required": ["required"],
        },
    })
}
