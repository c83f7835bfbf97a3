//! Purchases in shops by Rye's Universal Checkout.
//!
//! `POST /api/v1/checkout-intents` begins an intent for one product, which finds out its price (`retrieving_offer`,
//! `awaiting_confirmation`); `POST …/{id}/confirm` with a payment method places the order (`requires_action`, `placing_order`,
//! `completed`, `failed`). The operator's prepaid balance pays (`drawdown`). A second confirmation is 409. Shapes: the public SDK
//! `checkout-intents` 0.28.0, read 2026-11. Money is in subunits.

use std::time::Duration;

use base::money::Usdc;
use platform::config::Capability;
use platform::providers::outbound::{Ask, Outbound, OutboundError};
use platform::providers::{Amount, Charge};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::text;
use crate::address::Address;
use crate::order::{Cost, Offer};
use crate::tracking::Parcel;

pub const NAME: &str = "rye";
pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::Purchases,
    tools: &["commerce"],
    amount: Amount::public(
        70_000,
        "a lookup and an order, beside 149 USD a month",
        "https://rye.com/pricing",
        "2026-09",
    ),
};
const ORIGIN: &str = "https://api.commerce.jolly.dev";
/// micro-USDC of a cent
const CENT: u64 = 10_000;

/// What to buy.
pub struct Wanted<'a> {
    pub url: &'a str,
    pub quantity: u32,
    /// Labels and values of the variant.
    pub variant: &'a [(String, String)],
    pub address: &'a Address,
    pub email: &'a str,
    /// The most that the shop may take.
    pub most: Usdc,
}

/// What became of a confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmed {
    /// It arrived.
    Taken,
    /// It certainly did not arrive: it may be tried again.
    NotSent,
    /// It was refused for good.
    Refused,
    /// That is not known.
    Unknown,
}

/// A parcel of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shipment {
    pub parcel: Parcel,
    pub carrier: Option<String>,
    pub number: Option<String>,
    pub url: Option<String>,
}

/// Begins an intent: its id. `Ok(None)`: the provider refuses the product.
///
/// # Errors
/// If the provider does not answer as expected.
pub async fn begin(
    outbound: &Outbound,
    wanted: &Wanted<'_>,
    deadline: Instant,
) -> Result<Option<String>, OutboundError> {
    let address = wanted.address;
    let mut buyer = json!({
        "firstName": address.first_name,
        "lastName": address.last_name,
        "email": wanted.email,
        "phone": address.phone,
        "address1": address.street,
        "city": address.city,
        "province": address.state,
        "country": "US",
        "postalCode": address.zip,
    });
    if let Some(line) = &address.street2 {
        buyer["address2"] = json!(line);
    }
    let mut body = json!({
        "buyer": buyer,
        "productUrl": wanted.url,
        "quantity": wanted.quantity,
        "constraints": {"maxTotalPrice": wanted.most.micro() / CENT},
    });
    if !wanted.variant.is_empty() {
        let selections = wanted.variant.iter().map(|(label, value)| json!({"label": label, "value": value}));
        body["variantSelections"] = selections.collect();
    }
    // A second intent is never confirmed, but counts among those of the day.
    let ask = Ask { repeatable: false, ..Ask::post("/api/v1/checkout-intents", &body) };
    let ask = authorized(outbound, ask).await?;
    let (status, json) = outbound.json(NAME, ORIGIN, &ask, &[400, 404, 422], deadline).await?;
    if status / 100 != 2 {
        return Ok(None);
    }
    let id = json["id"].as_str().filter(|id| is_id(id));
    id.map(|id| Some(id.to_owned())).ok_or_else(|| OutboundError::Unreadable("no intent in it".to_owned()))
}

/// An intent as it is now.
///
/// # Errors
/// If the provider does not answer as expected.
pub async fn read(outbound: &Outbound, id: &str, deadline: Instant) -> Result<Offer, OutboundError> {
    let ask = authorized(outbound, Ask::get(format!("/api/v1/checkout-intents/{id}"))).await?;
    let (status, json) = outbound.json(NAME, ORIGIN, &ask, &[404], deadline).await?;
    if status == 404 {
        return Ok(Offer::Gone);
    }
    understood(&json).ok_or_else(|| OutboundError::Unreadable("no state in it".to_owned()))
}

/// Confirms an intent, which buys: called once for each.
pub async fn confirm(outbound: &Outbound, id: &str, deadline: Instant) -> Confirmed {
    let body = json!({"paymentMethod": {"type": "drawdown"}});
    let ask = Ask { repeatable: false, ..Ask::post(format!("/api/v1/checkout-intents/{id}/confirm"), &body) };
    let Ok(ask) = authorized(outbound, ask).await else { return Confirmed::NotSent };
    match outbound.send(NAME, ORIGIN, &ask, &[409], deadline).await {
        // 409: it was confirmed before.
        Ok(answer) if answer.status == 409 => Confirmed::Unknown,
        Ok(_) => Confirmed::Taken,
        Err(OutboundError::NotAsked(_) | OutboundError::TooMany | OutboundError::NotConfigured(_)) => {
            Confirmed::NotSent
        }
        Err(OutboundError::Unauthorized(_)) => Confirmed::Refused,
        Err(OutboundError::Refused(status)) if (400..500).contains(&status) && status != 408 => Confirmed::Refused,
        Err(_) => Confirmed::Unknown,
    }
}

/// The title of a product, if the provider knows it.
///
/// # Errors
/// If the provider does not answer as expected.
pub async fn title(outbound: &Outbound, url: &str, deadline: Instant) -> Result<Option<String>, OutboundError> {
    let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("url", url).finish();
    let ask = authorized(outbound, Ask::get(format!("/api/v1/products/lookup?{query}"))).await?;
    let (status, json) = outbound.json(NAME, ORIGIN, &ask, &[400, 404, 422], deadline).await?;
    Ok(text(&json["name"]).filter(|_| status / 100 == 2))
}

/// The operator's prepaid balance. `None`: not in dollars.
///
/// # Errors
/// If the provider does not answer as expected.
pub async fn balance(outbound: &Outbound, deadline: Instant) -> Result<Option<Usdc>, OutboundError> {
    let ask = authorized(outbound, Ask::get("/api/v1/billing/balance")).await?;
    let (_, json) = outbound.json(NAME, ORIGIN, &ask, &[], deadline).await?;
    Ok(match json["drawdownEnabled"].as_bool() {
        Some(false) => Some(Usdc::ZERO),
        _ if json["balance"]["amountSubunits"].as_i64().is_some_and(|cents| cents < 0) => Some(Usdc::ZERO),
        _ => money(&json["balance"]),
    })
}

/// The parcels of an order.
///
/// # Errors
/// If the provider does not answer as expected.
pub async fn shipments(outbound: &Outbound, id: &str, deadline: Instant) -> Result<Vec<Shipment>, OutboundError> {
    let ask = authorized(outbound, Ask::get(format!("/api/v1/checkout-intents/{id}/shipments?limit=50"))).await?;
    let (_, json) = outbound.json(NAME, ORIGIN, &ask, &[], deadline).await?;
    let listed = json["data"].as_array().ok_or_else(|| OutboundError::Unreadable("no list in it".to_owned()))?;
    Ok(listed.iter().filter_map(shipment).collect())
}

/// Whether the shop has cancelled the order.
///
/// # Errors
/// If the provider does not answer as expected.
pub async fn is_cancelled(outbound: &Outbound, id: &str, deadline: Instant) -> Result<bool, OutboundError> {
    let ask = authorized(outbound, Ask::get(format!("/api/v1/checkout-intents/{id}/order"))).await?;
    let (_, json) = outbound.json(NAME, ORIGIN, &ask, &[404], deadline).await?;
    Ok(json["cancellation"]["state"] == "completed")
}

async fn authorized(outbound: &Outbound, ask: Ask) -> Result<Ask, OutboundError> {
    let key = outbound.needed_key(NAME).await?;
    Ok(ask.header("authorization", format!("Bearer {}", key.expose())))
}

/// Ids become parts of paths.
fn is_id(text: &str) -> bool {
    (1..=100).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn understood(intent: &Value) -> Option<Offer> {
    Some(match intent["state"].as_str()? {
        "retrieving_offer" => Offer::Begun,
        "awaiting_confirmation" => match cost(&intent["offer"]["cost"]) {
            Some(cost) => Offer::Ready(cost),
            None => Offer::Unpriced,
        },
        // Another way to pay than ours would have to be paid: the intent expires.
        "requires_action" | "placing_order" => Offer::Placing,
        "completed" => Offer::Placed { order_id: text(&intent["orderId"]) },
        "failed" => {
            let code = intent["failureReason"]["code"].as_str().unwrap_or("unknown");
            let code = code.to_ascii_lowercase();
            let code: String = code.chars().filter(|letter| letter.is_ascii_lowercase() || *letter == '_').collect();
            Offer::Failed { code: code.chars().take(64).collect() }
        }
        _ => return None,
    })
}

/// In dollars. Whatever is neither shipping nor tax (a surcharge, a discount) is in the subtotal, so that the lines add up.
fn cost(cost: &Value) -> Option<Cost> {
    let line = |name: &str| match cost.get(name) {
        None | Some(Value::Null) => Some(Usdc::ZERO),
        Some(line) => money(line),
    };
    let (total, shipping, tax) = (line("total")?, line("shipping")?, line("tax")?);
    let subtotal = total.checked_sub(shipping)?.checked_sub(tax)?;
    (!total.is_zero()).then_some(Cost { subtotal, shipping, tax, total })
}

fn money(money: &Value) -> Option<Usdc> {
    let cents = money["amountSubunits"].as_u64().filter(|_| money["currencyCode"] == "USD")?;
    cents.checked_mul(CENT).map(Usdc::from_micro)
}

fn shipment(shipment: &Value) -> Option<Shipment> {
    let tracking = &shipment["tracking"];
    let url = text(&tracking["url"]).filter(|url| url.starts_with("https://"));
    Some(Shipment {
        parcel: Parcel::read(shipment["status"].as_str()?)?,
        carrier: text(&tracking["carrierName"]),
        number: text(&tracking["number"]),
        url,
    })
}

/// Longest wait for one answer.
pub const ASK: Duration = Duration::from_secs(15);

/// Members of an input that only this provider reads: `variant_id` as labels and values, or as the number of a variant in the address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    pub selections: Vec<(String, String)>,
    pub number: Option<String>,
}

impl Variant {
    /// Reads `Size=10; Color=Blue`, a number, or a Shopify id that ends in one.
    pub fn read(input: &Map<String, Value>) -> Option<Variant> {
        let Some(text) = input.get("variant_id").and_then(Value::as_str).map(str::trim) else {
            return Some(Variant::default());
        };
        let number = text.rsplit('/').next().unwrap_or(text);
        let is_shopify = text == number || text.starts_with("gid://shopify/ProductVariant/");
        if is_shopify && !number.is_empty() && number.len() <= 20 && number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(Variant { number: Some(number.to_owned()), ..Variant::default() });
        }
        let selections = text.split([';', '\n']).map(str::trim).filter(|part| !part.is_empty()).map(|part| {
            let (label, value) = part.split_once('=').or_else(|| part.split_once(": "))?;
            let (label, value) = (label.trim(), value.trim());
            (!label.is_empty() && !value.is_empty()).then(|| (label.to_owned(), value.to_owned()))
        });
        let selections: Vec<_> = selections.collect::<Option<_>>()?;
        (!selections.is_empty()).then_some(Variant { selections, number: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(cost: Value) -> Option<Offer> {
        understood(&json!({"state": "awaiting_confirmation", "offer": {"cost": cost}}))
    }

    fn dollars(cents: i64) -> Value {
        json!({"amountSubunits": cents, "currencyCode": "USD"})
    }

    #[test]
    fn the_lines_of_an_offer_add_up() {
        let cost = json!({"subtotal": dollars(2_000), "discount": dollars(100), "shipping": dollars(499), "tax": dollars(173),
            "total": dollars(2_572)});
        let usd = |cents: u64| Usdc::from_micro(cents * CENT);
        let wanted = Cost { subtotal: usd(1_900), shipping: usd(499), tax: usd(173), total: usd(2_572) };
        assert_eq!(ready(cost), Some(Offer::Ready(wanted)));
        let unsupported = Some(Offer::Unpriced);
        for cost in [
            json!({"total": {"amountSubunits": 100, "currencyCode": "EUR"}}),
            json!({"total": dollars(-1)}),
            json!({"total": dollars(0)}),
            json!({"total": dollars(100), "tax": dollars(101)}),
            json!({"total": {"amountSubunits": 1.5, "currencyCode": "USD"}}),
            json!({"total": {"amountSubunits": u64::MAX, "currencyCode": "USD"}}),
            json!({}),
        ] {
            assert_eq!(ready(cost.clone()), unsupported, "{cost}");
        }
    }

    #[test]
    fn states_that_are_not_known_are_no_offers() {
        for intent in [json!({}), json!({"state": "lost"}), json!({"state": 1}), json!([])] {
            assert_eq!(understood(&intent), None, "{intent}");
        }
        let failed = json!({"state": "failed", "failureReason": {"code": "Bad <code>", "message": "x"}});
        assert_eq!(understood(&failed), Some(Offer::Failed { code: "badcode".to_owned() }));
        assert_eq!(understood(&json!({"state": "completed"})), Some(Offer::Placed { order_id: None }));
        for id in ["", "a/b", "a?b", "..", "a b", &"a".repeat(101)] {
            assert!(!is_id(id), "{id}");
        }
    }

    #[test]
    fn variants_are_numbers_or_labels_with_values() {
        let read = |text: &str| Variant::read(json!({"variant_id": text}).as_object().unwrap());
        let number = |number: &str| Some(Variant { number: Some(number.to_owned()), ..Variant::default() });
        assert_eq!(read("40123"), number("40123"));
        assert_eq!(read("gid://shopify/ProductVariant/40123"), number("40123"));
        let selections = vec![("Size".to_owned(), "10".to_owned()), ("Color".to_owned(), "Blue".to_owned())];
        assert_eq!(read("Size=10; Color: Blue"), Some(Variant { selections, number: None }));
        for text in ["", "large", "Size=", "=10", "gid://other/1", ";"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(Variant::read(&Map::new()), Some(Variant::default()));
    }
}
