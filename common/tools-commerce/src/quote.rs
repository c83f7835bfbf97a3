//! The price of a purchase: what the shop takes, as the provider found out, and the fee.
//!
//! Finding it out may take longer than a request. What was begun is then kept by the gate, and the repeated request goes on.

use std::sync::Arc;
use std::time::Duration;

use base::ids::AgentId;
use base::money::Usdc;
use http::StatusCode;
use platform::config::FeeShare;
use platform::http::{ApiError, log};
use platform::providers::outbound::OutboundError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};
use tools::Toolbox;
use tools::quoting::{AskedPrice, QuoteRequest, Quoter};
use tools_email::domain;
use url::Url;

use crate::address::{self, Address};
use crate::buy::SPEC;
use crate::goods::buying::{self, Picked};
use crate::order::{Cost, Offer};
use crate::providers::rye::{self, Variant, Wanted};
use crate::restricted;

/// Longest wait for the price within a request.
const WITHIN: Duration = Duration::from_secs(14);
/// Pause between two looks at it.
const LOOKS: Duration = Duration::from_secs(1);
/// When the repeated request may have the price, in seconds.
const AGAIN_SECS: u64 = 10;
/// The least fee.
const LEAST_FEE: Usdc = Usdc::from_micro(250_000);
const MAX_TITLE: usize = 200;

pub static QUOTER: Quoter = Quoter {
    spec: &SPEC,
    quote: |toolbox, request| Box::pin(quote(toolbox, request)),
    check: |_, _, _, _, _| Box::pin(async { Ok(()) }),
    begins: |input| buying::id(input).is_none(),
};

/// What a quote fixes for the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locked {
    pub offer: String,
    pub title: String,
    pub quantity: u32,
    pub cost: Cost,
    /// micro-USDC
    pub fee: Usdc,
    /// Of a good that is sold here; its id is the `offer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good: Option<Picked>,
}

impl Locked {
    pub fn read(locked: &Map<String, Value>) -> Option<Locked> {
        serde_json::from_value(Value::Object(locked.clone())).ok()
    }

    /// What the agent pays.
    pub fn price(&self) -> Usdc {
        self.cost.total.checked_add(self.fee).unwrap_or(self.cost.total)
    }

    /// The lines as they are shown, in USDC. They add up to `total`.
    pub fn lines(&self) -> Map<String, Value> {
        let lines = [
            ("subtotal", self.cost.subtotal),
            ("shipping", self.cost.shipping),
            ("tax", self.cost.tax),
            ("fee", self.fee),
            ("total", self.price()),
        ];
        lines.into_iter().map(|(name, amount)| (name.to_owned(), json!(amount.to_string()))).collect()
    }
}

/// What an earlier request for the same purchase has begun.
#[derive(Serialize, Deserialize)]
struct Begun {
    offer: String,
    title: String,
}

/// The fee on what a shop takes: a share, rounded up to a cent, and at least [`LEAST_FEE`].
pub(crate) fn fee(total: Usdc, share: FeeShare) -> Usdc {
    const CENT: u128 = 10_000;
    let fee = (u128::from(total.micro()) * u128::from(share.percent())).div_ceil(100 * CENT) * CENT;
    Usdc::from_micro(u64::try_from(fee).unwrap_or(u64::MAX)).max(LEAST_FEE)
}

pub(crate) fn refused(status: StatusCode, code: &'static str, message: impl Into<String>) -> ApiError {
    ApiError::Tool { status, code, message: format!("{}; nothing was charged", message.into()) }
}

fn unavailable(error: &OutboundError) -> ApiError {
    refused(StatusCode::SERVICE_UNAVAILABLE, "provider_unavailable", format!("{} {error}", rye::NAME))
}

async fn quote(toolbox: Arc<Toolbox>, request: QuoteRequest) -> Result<AskedPrice, ApiError> {
    if let Some(id) = buying::id(&request.input) {
        let locked = buying::quote(&toolbox, &id, &request.input).await?;
        return Ok(asked(locked, &request.input));
    }
    let until = Instant::now() + WITHIN;
    let begun = match serde_json::from_value::<Begun>(Value::Object(request.begun.clone())) {
        Ok(begun) => begun,
        Err(_) => begin(&toolbox, &request, until).await?,
    };
    let cost = price(&toolbox, &begun, until).await?;
    let most = toolbox.config.largest_purchase;
    if cost.total > most {
        return Err(above(most, Some(cost.total)));
    }
    let balance = rye::balance(&toolbox.outbound, until.max(Instant::now() + LOOKS)).await;
    if balance.is_ok_and(|balance| balance.is_some_and(|balance| balance < cost.total)) {
        log::failure("a purchase was refused", &"the balance at the provider is below its total");
        let message = "this deployment's account at its provider is too low for this purchase: tell its operator";
        return Err(refused(StatusCode::SERVICE_UNAVAILABLE, "provider_unavailable", message));
    }
    let fee = fee(cost.total, toolbox.config.prices.commerce_fee);
    let quantity = quantity(&request.input);
    let locked = Locked { offer: begun.offer, title: begun.title, quantity, cost, fee, good: None };
    Ok(asked(locked, &request.input))
}

/// The price with what is shown of it.
fn asked(locked: Locked, input: &Map<String, Value>) -> AskedPrice {
    let mut context = locked.lines();
    context.insert("product_title".to_owned(), json!(locked.title));
    context.insert("quantity".to_owned(), json!(locked.quantity));
    context.insert("product_url".to_owned(), input.get("product_url").cloned().unwrap_or_default());
    if let Some(variant) = input.get("variant_id") {
        context.insert("variant_id".to_owned(), variant.clone());
    }
    let price = locked.price();
    let locked = serde_json::to_value(locked).ok().and_then(|locked| locked.as_object().cloned()).unwrap_or_default();
    AskedPrice { price, context, locked }
}

pub fn quantity(input: &Map<String, Value>) -> u32 {
    input.get("quantity").and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok()).unwrap_or(1)
}

pub(crate) fn above(most: Usdc, total: Option<Usdc>) -> ApiError {
    let takes = total.map(|total| format!("the shop takes {total} USD, and ")).unwrap_or_default();
    let message = format!("{takes}a purchase here may cost at most {most} USD without the fee");
    refused(StatusCode::BAD_REQUEST, "price_above_limit", message)
}

/// Begins to find out the price at the provider.
async fn begin(toolbox: &Toolbox, request: &QuoteRequest, until: Instant) -> Result<Begun, ApiError> {
    let input = &request.input;
    let address = address::read(input.get("shipping_address").unwrap_or(&Value::Null));
    let address = address.map_err(ApiError::InvalidRequest)?;
    let email = email(toolbox, &address, request.agent).await?;
    let variant = Variant::read(input).unwrap_or_default();
    let named = input.get("product_url").and_then(Value::as_str).unwrap_or_default();
    let url = with_variant(named, variant.number.as_deref());
    check_goods(named)?;
    let outbound = &toolbox.outbound;
    let title = match rye::title(outbound, &url, until).await {
        Ok(title) => title,
        Err(error @ (OutboundError::NotConfigured(_) | OutboundError::Unauthorized(_))) => {
            return Err(unavailable(&error));
        }
        Err(_) => None,
    };
    // The shop's own words, or the address: nothing is made up.
    let title: String = title.unwrap_or_else(|| named.to_owned()).chars().take(MAX_TITLE).collect();
    check_goods(&title)?;
    let wanted = Wanted {
        url: &url,
        quantity: quantity(input),
        variant: &variant.selections,
        address: &address,
        email: &email,
        most: toolbox.config.largest_purchase,
    };
    match rye::begin(outbound, &wanted, until).await {
        Ok(Some(offer)) => Ok(Begun { offer, title }),
        Ok(None) => Err(unsupported("the provider does not buy at this address")),
        Err(error) => Err(unavailable(&error)),
    }
}

fn unsupported(why: &str) -> ApiError {
    refused(StatusCode::BAD_REQUEST, "merchant_not_supported", why)
}

pub(crate) fn check_goods(text: &str) -> Result<(), ApiError> {
    match restricted::group(text) {
        Some(group) => {
            Err(refused(StatusCode::BAD_REQUEST, "restricted_product", format!("{group}: not bought by this service")))
        }
        None => Ok(()),
    }
}

/// Where the shop's mails go: the given address, or the agent's first one here.
async fn email(toolbox: &Toolbox, address: &Address, agent: Option<AgentId>) -> Result<String, ApiError> {
    if let Some(email) = &address.email {
        return Ok(email.clone());
    }
    let own = match agent {
        Some(agent) => domain::list(&toolbox.db, agent).await?.into_iter().next(),
        None => None,
    };
    own.map(|own| own.default_from.as_str().to_owned()).ok_or_else(|| {
        ApiError::field("shipping_address.email", "is needed: shops write to it, and you have no address here yet")
    })
}

/// The address of a variant: shops of Shopify read its number there.
fn with_variant(url: &str, number: Option<&str>) -> String {
    let (Some(number), Ok(mut parsed)) = (number, Url::parse(url)) else { return url.to_owned() };
    let others: Vec<(String, String)> = parsed
        .query_pairs()
        .filter(|(name, _)| name != "variant")
        .map(|(a, b)| (a.into_owned(), b.into_owned()))
        .collect();
    parsed.query_pairs_mut().clear().extend_pairs(others).append_pair("variant", number);
    parsed.to_string()
}

/// Waits for the price.
async fn price(toolbox: &Toolbox, begun: &Begun, until: Instant) -> Result<Cost, ApiError> {
    loop {
        let offer = rye::read(&toolbox.outbound, &begun.offer, until.max(Instant::now() + LOOKS)).await;
        let Ok(offer) = offer else { return Err(pending(begun)) };
        match offer {
            Offer::Ready(cost) => return Ok(cost),
            Offer::Begun if Instant::now() + LOOKS < until => sleep(LOOKS).await,
            Offer::Begun => return Err(pending(begun)),
            Offer::Unpriced => return Err(no_offer("unsupported_currency", toolbox.config.largest_purchase)),
            Offer::Failed { code } => return Err(no_offer(&code, toolbox.config.largest_purchase)),
            Offer::Placing | Offer::Placed { .. } | Offer::Gone => {
                return Err(refused(
                    StatusCode::CONFLICT,
                    "quote_expired",
                    "this offer is not there any more: ask again",
                ));
            }
        }
    }
}

/// The repeated request goes on with what was begun.
fn pending(begun: &Begun) -> ApiError {
    let begun = json!({"offer": begun.offer, "title": begun.title});
    ApiError::QuotePending { begun: begun.as_object().cloned().unwrap_or_default(), retry_after_secs: AGAIN_SECS }
}

/// Why the provider has no offer.
fn no_offer(code: &str, most: Usdc) -> ApiError {
    match code {
        "insufficient_stock" | "product_out_of_stock" => {
            refused(StatusCode::CONFLICT, "out_of_stock", "the shop has too few of this product")
        }
        "constraint_total_price_exceeded" | "constraint_shipping_cost_exceeded" => above(most, None),
        "variant_selections_required" => {
            ApiError::field("variant_id", "is needed: the product has variants, such as Size=10; Color=Blue")
        }
        "variant_selections_invalid" => ApiError::field("variant_id", "is not a variant of this product"),
        "product_not_found" => ApiError::field("product_url", "has no product that the provider could find"),
        "unsupported_currency" => unsupported("the shop does not sell in US dollars"),
        _ => unsupported("the provider cannot buy this product in this shop"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fee_is_a_share_in_whole_cents() {
        let share = FeeShare::of_percent(5).unwrap();
        for (total, wanted) in [(20_000_000, 1_000_000), (20_010_000, 1_010_000), (1_000_000, 250_000), (0, 250_000)] {
            assert_eq!(fee(Usdc::from_micro(total), share).micro(), wanted, "{total}");
        }
    }

    #[test]
    fn a_variants_number_is_put_into_the_address_once() {
        let url = "https://shop.example/products/lamp?ref=a%20b&variant=1#top";
        assert_eq!(with_variant(url, Some("42")), "https://shop.example/products/lamp?ref=a+b&variant=42#top");
        assert_eq!(with_variant(url, None), url);
    }

    #[test]
    fn every_failure_of_the_provider_is_a_refusal() {
        let codes = [
            ("product_out_of_stock", 409, "out_of_stock"),
            ("constraint_total_price_exceeded", 400, "price_above_limit"),
            ("variant_selections_required", 400, "invalid_request"),
            ("product_not_found", 400, "invalid_request"),
            ("captcha_blocked", 400, "merchant_not_supported"),
            ("something_new", 400, "merchant_not_supported"),
        ];
        for (code, status, wanted) in codes {
            let refusal = no_offer(code, Usdc::from_micro(1));
            assert_eq!((refusal.status().as_u16(), refusal.code()), (status, wanted), "{code}");
        }
    }
}
