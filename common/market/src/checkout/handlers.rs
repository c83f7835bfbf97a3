//! The ways to pay a session: a signed x402 payment of its quote, or prepaid credits behind an access token. Both go
//! through the gate. The documents about each handler, at the URLs that a session names, are served here too.

use ledger::payments::wire::MAX_TIMEOUT_SECS;
use platform::config::Config;
use serde_json::{Value, json};

use super::Checkout;
use super::goods::Goods;
use super::session::Session;

pub const X402: &str = "x402";
pub const CREDITS: &str = "credits";

/// The payment handlers of a session (ACP's `PaymentHandler`). The x402 handler's `accepts` is empty while the session
/// has no price.
pub fn of_session(checkout: &Checkout, session: &Session, origin: &str, complete_url: &str) -> Vec<Value> {
    let config = &checkout.app.config;
    let mut handlers = vec![handler(config, origin, X402, x402_config(config, session, complete_url))];
    // Credits cannot buy credits.
    if session.offer.as_ref().is_none_or(|offer| offer.goods != Goods::Credits) {
        let credits = json!({
            "currency": "USDC",
            "token_prefixes": config.token_prefixes,
            "top_up_url": format!("{origin}/v1/credits/top-up"),
        });
        handlers.push(handler(config, origin, CREDITS, credits));
    }
    handlers
}

/// The handlers for the manifest, without a session.
pub fn in_manifest(config: &Config) -> Value {
    json!([
        {"id": X402, "type": "x402", "provider": "x402", "network": config.chain.caip2()},
        {"id": CREDITS, "type": "prepaid_credits", "provider": config.service_name.to_ascii_lowercase()},
    ])
}

fn handler(config: &Config, origin: &str, id: &str, settings: Value) -> Value {
    json!({
        "id": id,
        "name": format!("{}.{id}", reversed(origin)),
        "version": super::VERSION,
        "spec": format!("{origin}/acp/handlers/{id}/spec.md"),
        "requires_delegate_payment": false,
        "requires_pci_compliance": false,
        "psp": if id == X402 { X402.to_owned() } else { config.service_name.to_ascii_lowercase() },
        "config_schema": format!("{origin}/acp/handlers/{id}/config.json"),
        "instrument_schemas": [format!("{origin}/acp/handlers/{id}/instrument.json")],
        "config": settings,
    })
}

/// An x402 PaymentRequired for this session. The quote in `extra` binds the payment to it.
fn x402_config(config: &Config, session: &Session, complete_url: &str) -> Value {
    let chain = &config.chain;
    let title = session.offer.as_ref().map_or("", |offer| offer.title.as_str());
    let accepts = session.price.as_ref().map(|price| {
        json!({
            "scheme": "exact",
            "network": chain.caip2(),
            "amount": price.amount.micro().to_string(),
            "asset": chain.token.address.to_string(),
            "payTo": config.payments.pay_to.to_string(),
            "maxTimeoutSeconds": MAX_TIMEOUT_SECS,
            "extra": {"name": chain.token.name, "version": chain.token.version, "quoteId": price.quote},
        })
    });
    json!({
        "x402Version": 2,
        "resource": {"url": complete_url, "description": title, "mimeType": "application/json"},
        "accepts": accepts.into_iter().collect::<Vec<_>>(),
    })
}

/// `com.example.shop` for `https://shop.example.com`: the prefix of handler names.
fn reversed(origin: &str) -> String {
    let host = url::Url::parse(origin).ok().and_then(|url| url.domain().map(str::to_ascii_lowercase));
    match host {
        Some(domain) => domain.split('.').rev().collect::<Vec<_>>().join("."),
        // An IP address has no domain name to reverse.
        None => "localhost".to_owned(),
    }
}

/// A document about a handler.
pub enum Document {
    Markdown(String),
    Schema(Value),
}

/// `GET /acp/handlers/{handler}/{document}`.
pub fn document(config: &Config, handler: &str, document: &str) -> Option<Document> {
    match (handler, document) {
        (X402, "spec.md") => Some(Document::Markdown(x402_spec(config))),
        (CREDITS, "spec.md") => Some(Document::Markdown(credits_spec(config))),
        (X402, "config.json") => Some(Document::Schema(x402_config_schema())),
        (CREDITS, "config.json") => Some(Document::Schema(credits_config_schema())),
        (X402, "instrument.json") => Some(Document::Schema(instrument(
            X402,
            "Base64 of the JSON of an x402 v2 PaymentPayload that accepts the session's `config.accepts[0]`",
        ))),
        (CREDITS, "instrument.json") => Some(Document::Schema(instrument(
            CREDITS,
            "An access token of the buyer; it spends the buyer's prepaid credits",
        ))),
        _ => None,
    }
}

fn x402_spec(config: &Config) -> String {
    format!(
        "# Payment handler `x402`\n\n\
         Pays a checkout session of {} with USDC on {}, by the scheme `exact` of x402 version 2 (EIP-3009).\n\n\
         1. Read `capabilities.payment.handlers[]` with id `x402`. Its `config` is what x402 calls payment required; \
         `accepts[0]` is there as soon as the session is `ready_for_payment`.\n\
         2. Let the buyer's wallet sign `accepts[0]`, as for an HTTP 402 answer. `extra.quoteId` binds the payment to this \
         session: it buys nothing else.\n\
         3. Complete the session with `payment_data: {{handler_id: \"x402\", instrument: {{type: \"x402\", credential: \
         {{type: \"x402\", token: <base64 of the PaymentPayload>}}}}}}`.\n\n\
         A payment is charged once, however often it is sent. If an answer is lost, send the same request again, with the \
         same Idempotency-Key. A refused payment leaves the session `ready_for_payment` with a `payment_declined` message, \
         and nothing is charged.\n",
        config.service_name,
        config.chain.caip2(),
    )
}

fn credits_spec(config: &Config) -> String {
    format!(
        "# Payment handler `credits`\n\n\
         Pays a checkout session of {0} with the buyer's prepaid credits.\n\n\
         Complete the session with `payment_data: {{handler_id: \"credits\", instrument: {{type: \"credits\", credential: \
         {{type: \"credits\", token: <access token>}}}}}}`. Access tokens are minted by the wallet that owns the credits \
         (`POST /v1/agents/me/access-tokens`) and begin with `{1}`; its budgets and freezes hold here too. The whole price \
         is taken at once, or nothing is.\n",
        config.service_name,
        config.token_prefixes.first().map_or("", String::as_str),
    )
}

fn x402_config_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of the payment handler x402: an x402 v2 PaymentRequired",
        "type": "object",
        "properties": {
            "x402Version": {"const": 2},
            "resource": {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
            "accepts": {
                "type": "array",
                "maxItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "scheme": {"const": "exact"},
                        "network": {"type": "string", "pattern": "^eip155:[0-9]+$"},
                        "amount": {"type": "string", "pattern": "^[0-9]+$"},
                        "asset": {"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$"},
                        "payTo": {"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$"},
                        "maxTimeoutSeconds": {"type": "integer"},
                        "extra": {
                            "type": "object",
                            "properties": {
                                "name": {"type": "string"},
                                "version": {"type": "string"},
                                "quoteId": {"type": "string"},
                            },
                            "required": ["name", "version", "quoteId"],
                        },
                    },
                    "required": ["scheme", "network", "amount", "asset", "payTo", "maxTimeoutSeconds", "extra"],
                },
            },
        },
        "required": ["x402Version", "resource", "accepts"],
    })
}

fn credits_config_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of the payment handler credits",
        "type": "object",
        "properties": {
            "currency": {"const": "USDC"},
            "token_prefixes": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "top_up_url": {"type": "string", "format": "uri"},
        },
        "required": ["currency", "token_prefixes", "top_up_url"],
    })
}

fn instrument(name: &str, about: &str) -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("Instrument of the payment handler {name}"),
        "type": "object",
        "properties": {
            "type": {"const": name},
            "credential": {
                "type": "object",
                "properties": {
                    "type": {"const": name},
                    "token": {"type": "string", "minLength": 1, "description": about},
                },
                "required": ["type", "token"],
            },
        },
        "required": ["type", "credential"],
    })
}
