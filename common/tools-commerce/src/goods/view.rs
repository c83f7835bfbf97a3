//! Goods and orders on the wire.

use std::collections::BTreeMap;

use base::money::Usdc;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::good::{self, Good, Variant};
use super::sale::{Sale, State};
use crate::address::Address;

/// The address as the seller gets it.
pub fn address(address: &Address) -> Value {
    json!({
        "first_name": address.first_name,
        "last_name": address.last_name,
        "street": address.street,
        "street2": address.street2,
        "city": address.city,
        "state": address.state,
        "zip_code": address.zip,
        "phone": address.phone,
        "email": address.email,
        "country": "US",
    })
}

/// The state as the buyer knows it, in the words for orders of shops.
pub fn status(sale: &Sale) -> &'static str {
    match sale.state {
        State::Held => "pending",
        State::Dropped => "failed",
        State::Placed => "placed",
        State::Shipped => "shipped",
        State::Delivered | State::Settled => "delivered",
        State::Cancelled => "canceled",
    }
}

/// The member `order_tracking` of a polled purchase.
pub fn tracking(sale: &Sale) -> Value {
    let parcel = sale.parcel.clone().unwrap_or_default();
    let changed = sale.closed.or(sale.delivered).or(sale.shipped).or(sale.placed);
    json!({
        "status": status(sale),
        "order_id": sale.request.to_string(),
        "carrier": Some(parcel.carrier).filter(|carrier| !carrier.is_empty()),
        "tracking_number": parcel.number,
        "tracking_url": parcel.url,
        "updated_at": changed.map(|at| at.to_string()),
        "returned_usdc": sale.returned,
        "reason": sale.reason,
    })
}

/// An order as its seller sees it.
pub fn order(sale: &Sale) -> Value {
    let time = |at: Option<base::clock::Timestamp>| at.map(|at| at.to_string());
    let parcel = sale.parcel.as_ref();
    let address: Option<Value> = sale.address.as_ref().and_then(|address| serde_json::from_str(address).ok());
    json!({
        "order_id": sale.request.to_string(),
        "status": sale.state.as_str(),
        "good_id": sale.good,
        "variant_id": sale.variant.to_string(),
        "labels": sale.labels,
        "title": sale.title,
        "quantity": sale.quantity,
        "subtotal": sale.cost.subtotal.to_string(),
        "shipping": sale.cost.shipping.to_string(),
        "tax": sale.cost.tax.to_string(),
        "earning": sale.cost.total.to_string(),
        "placed_at": time(sale.placed),
        "shipped_at": time(sale.shipped),
        "delivered_at": time(sale.delivered),
        "closed_at": time(sale.closed),
        "next_step_at": time(sale.deadline()),
        "carrier": parcel.map(|parcel| &parcel.carrier),
        "tracking_number": parcel.and_then(|parcel| parcel.number.as_ref()),
        "tracking_url": parcel.and_then(|parcel| parcel.url.as_ref()),
        "reason": sale.reason,
        "shipping_address": address.filter(|_| sale.state.is_open()),
    })
}

/// A good as its seller sees it. `left`: of each variant.
pub fn own(good: &Good, left: &BTreeMap<u32, u32>, base_url: Option<&str>) -> Value {
    let variants: Vec<Value> = good.variants.iter().map(|one| variant(one, left.get(&one.id).copied())).collect();
    let amounts = |states: &BTreeMap<String, Usdc>| -> BTreeMap<String, String> {
        states.iter().map(|(state, amount)| (state.clone(), amount.to_string())).collect()
    };
    let rates: BTreeMap<&String, Value> = good.tax.states.iter().map(|(state, rate)| (state, percent(*rate))).collect();
    json!({
        "good_id": good.id,
        "url": base_url.map(|base| format!("{base}{}", good::path(&good.id))),
        "title": good.title,
        "description": good.description,
        "status": if good.listed { "listed" } else { "unlisted" },
        "variants": variants,
        "images": good.images,
        "shipping": {
            "default": good.shipping.default.map(|amount| amount.to_string()),
            "states": amounts(&good.shipping.states),
            "free_from": good.shipping.free_from.map(|amount| amount.to_string()),
        },
        "tax": {"default": percent(good.tax.default), "states": rates, "on_shipping": good.tax.on_shipping},
        "handling_days": good.handling_days,
        "return_days": good.return_days,
        "created_at": good.created.to_string(),
        "updated_at": good.updated.to_string(),
    })
}

fn variant(variant: &Variant, left: Option<u32>) -> Value {
    json!({
        "variant_id": variant.id.to_string(),
        "labels": variant.labels,
        "price": variant.price.to_string(),
        "stock": left.unwrap_or_default(),
    })
}

/// Parts per million as a number in percent.
fn percent(rate: u32) -> Value {
    let percent = Decimal::new(i64::from(rate), 4).normalize();
    serde_json::from_str(&percent.to_string()).unwrap_or_default()
}
