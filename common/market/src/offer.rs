//! Current offers of a seller for the gate: a service's execution or a soul's text. Chooses the version of the terms
//! for a call, and the contents of its 402 and 202.

use base::input::FieldError;
use base::money::Usdc;
use gate::jobs::job::Lane;
use gate::{InputShape, Listing};
use http::HeaderMap;
use ledger::fee::Split;
use platform::http::{ApiError, MarketError};
use platform::store::StoreError;
use serde_json::{Map, Value, json};

use super::Market;
use super::afford::{self, TextOf};
use super::service::{self, Conditions, Executor, Service, Terms};
use super::soul::{self, Soul, TextVersion};

/// An execution that can be quoted.
pub struct Execution {
    pub listing: Listing,
    pub terms: Terms,
    /// Largest input that this price covers, in bytes of JSON.
    most_input_bytes: Option<u64>,
}

impl Execution {
    /// Refuses an input that does not match the terms; `path` is put before each error's path. An input that is only
    /// too large for the price closes the offer, but a call that was already paid is still answered.
    pub fn check_input(&mut self, path: &str, input: &Value) -> Result<(), ApiError> {
        let invalid = |errors| MarketError::InvalidInput(schema::under(path, errors));
        schema::fits(input).map_err(invalid)?;
        if let Some(asked) = &self.terms.input_schema {
            schema::validate(asked, input).map_err(invalid)?;
        }
        let bytes = u64::try_from(input.to_string().len()).unwrap_or(u64::MAX);
        if let Some(most) = self.most_input_bytes.filter(|most| bytes > *most) {
            let message = format!("has {bytes} bytes as JSON; for this price the model reads at most {most}");
            self.listing.closed.get_or_insert(invalid(vec![FieldError::new("", message)]));
        }
        Ok(())
    }
}

/// The execution that a call asks for. With a quote, the quoted terms apply, even if the seller changed them since. A quote
/// that has not expired is honoured even if the service is no longer sold.
pub async fn execution(market: &Market, soul: &str, service: &str, headers: &HeaderMap) -> Result<Execution, ApiError> {
    let db = &market.app.db;
    let soul = soul::find(db, soul).await?.ok_or(MarketError::SoulNotFound)?;
    let found = service::load(db, soul.slug.as_str(), service).await?.ok_or(MarketError::ServiceNotFound)?;
    let closed = match () {
        () if !soul.is_active() => Some(MarketError::SoulNotFound),
        () if !found.is_offered() => Some(MarketError::ServiceNotFound),
        () => None,
    };
    let quoted = gate::named_quote(headers, &market.gate.quote_key).filter(|quote| quote.terms > 0);
    let current = market.conditions();
    // The gate checks whether the quote belongs to this call.
    let on = Conditions { fee: quoted.map_or(current.fee, |quote| quote.fee), ..current };
    let terms = match quoted.filter(|quote| quote.terms != found.terms.version) {
        Some(quote) => service::load_terms(db, soul.slug.as_str(), service, quote.terms).await?,
        None => None,
    };
    let terms = terms.unwrap_or_else(|| found.terms.clone());
    let (now, quote_ttl) = (market.app.clock.now(), market.app.config.payments.soul_quote_ttl);
    let listing = Listing {
        soul: soul.slug.to_string(),
        service: Some(found.slug.to_string()),
        terms: terms.version,
        price: terms.price,
        fee: on.fee,
        kept_up_to: terms.kept_if_failed_up_to(on),
        kept_up_to_without_quote: terms.budget_without_quote(on, now, quote_ttl).total(),
        lane: match terms.done_by(on.has_model) {
            Executor::Worker => Lane::Tools,
            Executor::Model | Executor::Program => Lane::Souls,
        },
        title: format!("{} by {}", terms.name, soul.name),
        summary: found.description.clone().unwrap_or_else(|| format!("{} by {}", terms.name, soul.name)),
        input: Some(shape_of(terms.input_schema.as_ref())),
        context: execution_context(&soul, &found, &terms, on),
        accepted: members(json!({
            "service": {"name": terms.name, "seller": soul.name, "price": terms.price.to_string()},
        })),
        quoted: terms.version != found.terms.version || on != current,
        closed,
    };
    let description = found.description.as_deref();
    let most_input_bytes =
        afford::most_input_bytes(market.app.catalog, market.model, on.fee, TextOf::soul(&soul), &terms, description);
    Ok(Execution { listing, terms, most_input_bytes })
}

/// What a service asks for. An example is shown only if it is valid: the schema's first own one, or an empty input.
fn shape_of(asked: Option<&Value>) -> InputShape {
    let own = asked.and_then(|schema| schema["examples"].get(0)).cloned();
    let is_valid = |example: &Value| {
        // The header of a 402 has no room for a long one.
        example.is_object()
            && example.to_string().len() <= 300
            && asked.is_none_or(|schema| schema::validate(schema, example).is_ok())
    };
    let example = own.into_iter().chain([json!({})]).find(is_valid);
    InputShape { schema: asked.cloned(), example }
}

fn execution_context(soul: &Soul, service: &Service, terms: &Terms, on: Conditions) -> Map<String, Value> {
    let split = Split::of(terms.price, on.fee);
    let kept = terms.kept_if_failed_up_to(on).to_string();
    members(json!({
        "service": {"id": service.id(&soul.slug), "name": terms.name, "slug": service.slug, "version": terms.version},
        "seller": {"name": soul.name, "slug": soul.slug},
        "pricing": {
            "service_price": terms.price.to_string(),
            "platform_fee": split.fee.to_string(),
            "seller_revenue": split.revenue.to_string(),
            "kept_if_failed_up_to": kept,
            "total": terms.price.to_string(),
        },
        "deadline_seconds": terms.deadline_seconds,
        "done_by": terms.done_by(on.has_model),
        "kept_if_failed_up_to": kept,
    }))
}

/// A soul's text that can be bought, or is free.
pub struct TextOffer {
    pub soul: Soul,
    pub text: TextVersion,
    /// Zero is free.
    pub price: Usdc,
    pub listing: Listing,
}

/// The text that a call asks for: the quoted version and price, or the current ones.
pub async fn text(market: &Market, soul: &str, headers: &HeaderMap) -> Result<TextOffer, ApiError> {
    let db = &market.app.db;
    let soul = soul::find(db, soul).await?.ok_or(MarketError::Unlisted)?;
    let quoted = gate::named_quote(headers, &market.gate.quote_key).filter(|quote| quote.terms > 0);
    let version = quoted.map_or(soul.version, |quote| quote.terms);
    let text = match soul::load_version(db, soul.slug.as_str(), version).await? {
        Some(text) => text,
        // The quote is for something else. The gate will refuse it.
        None => soul::load_version(db, soul.slug.as_str(), soul.version)
            .await?
            .ok_or_else(|| StoreError::new(format_args!("{} has no text", soul.slug)))?,
    };
    let closed = match soul.price {
        _ if !soul.is_active() => Some(MarketError::Unlisted),
        None => Some(MarketError::NotForSale),
        Some(_) => None,
    };
    let price = match (&closed, soul.price, quoted) {
        (None, Some(Usdc::ZERO), _) => Usdc::ZERO,
        (_, _, Some(quote)) => quote.amount,
        (None, Some(price), None) => price,
        (closed, _, None) => return Err(closed.clone().unwrap_or(MarketError::NotForSale).into()),
    };
    let current = market.app.config.prices.platform_fee;
    let fee = quoted.map_or(current, |quote| quote.fee);
    let split = Split::of(price, fee);
    let listing = Listing {
        soul: soul.slug.to_string(),
        service: None,
        terms: text.version,
        price,
        fee,
        kept_up_to: Usdc::ZERO,
        kept_up_to_without_quote: Usdc::ZERO,
        lane: Lane::Tools,
        title: format!("The text of {}", soul.name),
        summary: format!("The soul.md of {}, version {}", soul.name, text.version),
        input: None,
        context: members(json!({
            "soul_slug": soul.slug,
            "soul_name": soul.name,
            "soul_version": text.version,
            "price": price.to_string(),
            "platform_fee": split.fee.to_string(),
            "seller_revenue": split.revenue.to_string(),
        })),
        accepted: Map::new(),
        quoted: text.version != soul.version || Some(price) != soul.price || fee != current,
        closed,
    };
    Ok(TextOffer { soul, text, price, listing })
}

/// The response that hands a text over. `split` is the one of the sale.
pub fn handed_over(soul: &Soul, text: &TextVersion, soul_md: &str, split: Split, purchased_at: &str) -> Value {
    json!({
        "success": true,
        "soul": {"name": soul.name, "slug": soul.slug, "version": text.version},
        "soul_md": soul_md,
        "purchase": {
            "price": split.price().to_number(),
            "platform_fee": split.fee.to_number(),
            "seller_revenue": split.revenue.to_number(),
            "purchased_at": purchased_at,
        },
    })
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
