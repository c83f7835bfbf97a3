//! Products in shops of Shopify, by its Global Catalog: JSON-RPC `tools/call` of `search_catalog` at `/api/ucp/mcp`, in the
//! shapes of the Universal Commerce Protocol (ucp.dev/specification/catalog/mcp and shopify.dev/docs/agents/catalog, read 2026-11 in
//! stored copies). It needs no key, but the address of a profile of the agent, which this service serves. Amounts are in minor units of
//! their currency.

use platform::config::Capability;
use platform::providers::outbound::{Ask, Outbound, OutboundError};
use platform::providers::{Amount, Charge};
use products::{Price, Product, Variant};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;

use super::text;

pub const NAME: &str = "shopify";
pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::Products,
    tools: &["commerce_search"],
    amount: Amount::Unknown("it publishes none, and asks without a key"),
};
const ORIGIN: &str = "https://catalog.shopify.com";
/// Where this service serves the profile that the catalog reads.
pub const PROFILE: &str = "/.well-known/ucp-agent.json";
const VERSION: &str = "2026-04-08";
/// Most variants of a product that are shown.
const MAX_VARIANTS: usize = 20;

/// What the catalog reads about its caller.
pub fn profile() -> Value {
    let capability = |name: &str, page: &str| {
        json!({name: [{
            "version": VERSION,
            "spec": format!("https://ucp.dev/{VERSION}/specification/catalog/{page}"),
            "schema": format!("https://ucp.dev/{VERSION}/schemas/shopping/catalog_{page}.json"),
        }]})
    };
    json!({"ucp": {"version": VERSION, "capabilities": capability("dev.ucp.shopping.catalog.search", "search")}})
}

/// The products that fit best, in the catalog's order. `origin`: where this service is reached.
///
/// # Errors
/// If the catalog does not answer as expected.
pub async fn search(
    outbound: &Outbound,
    origin: &str,
    query: &str,
    limit: usize,
    deadline: Instant,
) -> Result<Vec<Product>, OutboundError> {
    let body = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search_catalog", "arguments": {
            "meta": {"ucp-agent": {"profile": format!("{origin}{PROFILE}")}},
            "catalog": {
                "query": query,
                "context": {"address_country": "US", "currency": "USD"},
                "pagination": {"limit": limit},
            },
        }},
    });
    let ask = Ask::post("/api/ucp/mcp", &body).header("accept", "application/json, text/event-stream");
    let ask = match outbound.key(NAME).await {
        Ok(Some(key)) => ask.header("authorization", format!("Bearer {}", key.expose())),
        _ => ask,
    };
    let (_, json) = outbound.json(NAME, ORIGIN, &ask, &[], deadline).await?;
    if json["error"].is_object() || json["result"]["isError"] == true {
        let code = json["error"]["code"].as_i64().unwrap_or_default();
        return Err(OutboundError::Failed(format!("JSON-RPC error {code}")));
    }
    let listed = json["result"]["structuredContent"]["products"].as_array();
    let listed = listed.ok_or_else(|| OutboundError::Unreadable("no products in it".to_owned()))?;
    Ok(listed.iter().filter_map(product).take(limit).collect())
}

fn product(product: &Value) -> Option<Product> {
    let variants: Vec<Variant> =
        product["variants"].as_array().into_iter().flatten().filter_map(variant).take(MAX_VARIANTS).collect();
    let first = product["variants"].get(0);
    let of_first = |name: &str| first.map(|first| &first[name]).and_then(link);
    let url = link(&product["url"]).or_else(|| of_first("url")).or_else(|| of_first("checkout_url"))?;
    let rating = &product["rating"];
    let scale = rating["scale_max"].as_f64().filter(|scale| *scale > 0.0).unwrap_or(5.0);
    let in_stock = variants.iter().filter_map(|variant| variant.in_stock).reduce(|one, other| one || other);
    Some(Product {
        id: text(&product["id"]).unwrap_or_default(),
        url,
        title: text(&product["title"])?,
        price: money(&product["price_range"]["min"]).or_else(|| variants.first().and_then(|first| first.price.clone())),
        image_url: product["media"].as_array().into_iter().flatten().find_map(|media| link(&media["url"])),
        vendor: first.and_then(|first| text(&first["seller"]["name"])),
        rating: rating["value"].as_f64().filter(|value| (0.0..=scale).contains(value)).map(|value| value / scale * 5.0),
        review_count: rating["count"].as_u64(),
        in_stock,
        description: text(&product["description"]["plain"]),
        variants,
        ..Product::default()
    })
}

fn variant(variant: &Value) -> Option<Variant> {
    Some(Variant {
        id: text(&variant["id"])?,
        title: text(&variant["title"]).unwrap_or_default(),
        price: money(&variant["price"]),
        in_stock: variant["availability"]["available"].as_bool(),
        url: link(&variant["url"]).or_else(|| link(&variant["checkout_url"])),
    })
}

/// Minor units, with as many decimals as the currency has.
fn money(money: &Value) -> Option<Price> {
    let amount = money["amount"].as_i64().filter(|amount| *amount > 0)?;
    let currency = money["currency"].as_str().filter(|code| code.len() == 3).and_then(products::price::code)?;
    Some(Price { amount: Decimal::new(amount, decimals(currency)), currency: currency.to_owned() })
}

/// Decimals of a currency (ISO 4217): two, with these exceptions.
fn decimals(currency: &str) -> u32 {
    match currency {
        "BIF" | "CLP" | "DJF" | "GNF" | "ISK" | "JPY" | "KMF" | "KRW" | "PYG" | "RWF" | "UGX" | "VND" | "VUV"
        | "XAF" | "XOF" | "XPF" => 0,
        "BHD" | "IQD" | "JOD" | "KWD" | "LYD" | "OMR" | "TND" => 3,
        _ => 2,
    }
}

fn link(value: &Value) -> Option<String> {
    let url = value.as_str().filter(|url| url.len() <= 2048)?;
    Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https")).then(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_the_catalog_are_read() {
        let shoe = json!({
            "id": "gid://shopify/p/abc", "title": "Blue Runner", "description": {"plain": "Light."},
            "price_range": {"min": {"amount": 12000, "currency": "USD"}, "max": {"amount": 13000, "currency": "USD"}},
            "media": [{"type": "image", "url": "https://cdn.example/x.jpg"}],
            "variants": [
                {"id": "gid://shopify/ProductVariant/1", "title": "10", "price": {"amount": 12000, "currency": "USD"},
                 "availability": {"available": false}, "seller": {"name": "Example"}, "url": "https://shop.example/products/runner?variant=1"},
                {"id": "gid://shopify/ProductVariant/2", "title": "11", "availability": {"available": true}},
            ],
            "rating": {"value": 9.0, "scale_max": 10, "count": 128},
        });
        let read = product(&shoe).unwrap();
        assert_eq!(read.url, "https://shop.example/products/runner?variant=1");
        assert_eq!(read.price, Some(Price { amount: Decimal::new(12000, 2), currency: "USD".to_owned() }));
        assert_eq!((read.rating, read.review_count, read.in_stock), (Some(4.5), Some(128), Some(true)));
        assert_eq!((read.vendor.as_deref(), read.variants.len()), (Some("Example"), 2));
        let yen = json!({"amount": 1200, "currency": "JPY"});
        assert_eq!(money(&yen).unwrap().amount, Decimal::new(1200, 0));
        for wrong in [
            json!({"amount": -1, "currency": "USD"}),
            json!({"amount": 1.5, "currency": "USD"}),
            json!({"amount": 1, "currency": "dollars"}),
        ] {
            assert_eq!(money(&wrong), None, "{wrong}");
        }
        for wrong in [json!({}), json!({"title": "x"}), json!({"title": "x", "url": "javascript:alert(1)"}), json!([])]
        {
            assert_eq!(product(&wrong), None, "{wrong}");
        }
    }
}
