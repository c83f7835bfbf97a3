//! Product search: an address of a product's page, or words, for which the operator's own products and the configured catalogs are
//! searched.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use base::input::{A_WORD, Field, FieldError, Kind};
use base::money::Usdc;
use platform::config::Capability;
use platform::net::{FetchPolicy, check_url};
use platform::providers::outbound::OutboundError;
use products::{Price, Product, page};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::spec::{Need, Price as ToolPrice, ToolSpec};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox, Unavailable, pages};

use crate::feed;
use crate::goods::{finding, good};
use crate::providers::shopify;

const USUAL_PRODUCTS: i64 = 10;
/// Time limit of the catalogs.
const TIME: Duration = Duration::from_secs(15);
/// Most variants of a product that are shown.
const MAX_VARIANTS: usize = 20;

pub static SPEC: ToolSpec = ToolSpec {
    name: "commerce_search",
    title: "Product search",
    summary: "Finds products in shops by words, or reads the product of a page: price, currency, stock, variants, seller",
    group: "commerce",
    paths: &["/v1/tools/commerce/search", "/v1/tools/find/product"],
    price: ToolPrice::Fixed(Usdc::from_micro(2_000)),
    category: "commerce",
    deadline: Duration::from_secs(40),
    waits_for_hosts: Some(|input| address(input).is_some()),
    needs,
    input: &[
        Field::required(
            "query",
            Kind::Text { min: 1, max: 200, format: Some(&A_WORD) },
            "What to look for, or the address of a product's page",
        ),
        Field::optional("limit", Kind::Integer { min: 1, max: 50 }, "Most products wanted. Default: 10"),
    ],
    check,
    example: || json!({"query": "waterproof hiking boots", "limit": 5}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

/// The query, if it is an address.
fn address(input: &Map<String, Value>) -> Option<&str> {
    let query = input.get("query").and_then(Value::as_str)?.trim();
    let begins_with = |scheme: &str| query.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme));
    let is_address = begins_with("http://") || begins_with("https://");
    is_address.then_some(query)
}

/// A page is read without any provider.
fn needs(_: &ToolSpec, input: &Map<String, Value>) -> Vec<Need> {
    match address(input) {
        Some(_) => Vec::new(),
        None => vec![Need::Provider(Capability::Products), Need::Products, Need::Goods],
    }
}

fn check(input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
    // Nothing is fetched from the page of a good that is sold here, and a page of another host is checked when it is read.
    match address(input).filter(|url| good::id_in(url).is_none()).map(|url| check_url(url, policy)) {
        Some(Err(refused)) => vec![FieldError::new("query", refused.to_string())],
        _ => Vec::new(),
    }
}

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let limit = usize::try_from(task.number("limit").unwrap_or(USUAL_PRODUCTS)).unwrap_or_default();
        let (mut found, source) = match address(&task.input) {
            Some(url) => of_address(&toolbox, url).await?,
            None => by_words(&toolbox, task.text("query"), limit).await?,
        };
        found.truncate(limit);
        let products: Vec<Value> = found.iter().map(shown).collect();
        let result = json!({
            "status": "completed",
            "query": task.text("query"),
            "products": products,
            "count": products.len(),
        });
        Ok(Output::new(result, source))
    })
}

/// The product of an address: a good that is sold here, or what a page describes.
async fn of_address(toolbox: &Toolbox, url: &str) -> Result<(Vec<Product>, Source), ToolError> {
    let here = finding::at(toolbox, url).await.map_err(|error| ToolError::internal(error.to_string()))?;
    match here {
        Some(good) => Ok((good.into_iter().collect(), Source::embedded("goods"))),
        None => Ok((of_page(toolbox, url).await?, Source::embedded("web"))),
    }
}

/// The products that a page describes in its data.
async fn of_page(toolbox: &Toolbox, url: &str) -> Result<Vec<Product>, ToolError> {
    let page = toolbox.fetcher.read(url).await.map_err(pages::explain)?;
    if page.status >= 400 {
        let message = format!("the page answered HTTP {}", page.status);
        return Err(ToolError::unavailable(Unavailable::SourceUnavailable, message));
    }
    // Parsing a large page takes a while.
    let reading = tokio::task::spawn_blocking(move || {
        web::read::html_of(&page).map(|html| page::read(&html, &page.final_url)).unwrap_or_default()
    });
    reading.await.map_err(|error| ToolError::internal(error.to_string()))
}

/// Goods that are sold here first, then the operator's own products, then those of the configured catalogs. What a failing catalog would have added is left out, if
/// there is anything else.
async fn by_words(toolbox: &Toolbox, query: &str, limit: usize) -> Result<(Vec<Product>, Source), ToolError> {
    let (feed, goods) =
        tokio::try_join!(feed::search(&*toolbox.blobs, query, limit), finding::search(toolbox, query, limit))
            .map_err(|error| ToolError::internal(error.to_string()))?;
    let own = match feed {
        None if toolbox.config.goods_sellers.is_empty() => None,
        feed => Some(goods.into_iter().chain(feed.unwrap_or_default()).collect::<Vec<_>>()),
    };
    let embedded = Source::embedded("feed");
    let has_catalog = !toolbox.config.providers.order(Capability::Products).is_empty();
    match own {
        Some(own) if own.len() >= limit || !has_catalog => Ok((own, embedded)),
        Some(own) => match of_catalogs(toolbox, query, limit).await {
            Ok((others, source)) if own.is_empty() => Ok((others, source)),
            Ok((others, source)) => Ok((once(own.into_iter().chain(others).collect()), source)),
            Err(error) if own.is_empty() => Err(error),
            Err(_) => Ok((own, embedded)),
        },
        None => of_catalogs(toolbox, query, limit).await,
    }
}

/// Products of the configured catalogs, each once.
async fn of_catalogs(toolbox: &Toolbox, query: &str, limit: usize) -> Result<(Vec<Product>, Source), ToolError> {
    let until = Instant::now() + TIME;
    let origin = toolbox.config.base_url.as_deref().unwrap_or("https://example.com");
    let mut failed: Option<OutboundError> = None;
    for name in toolbox.config.providers.order(Capability::Products) {
        if name != shopify::NAME {
            continue;
        }
        match shopify::search(&toolbox.outbound, origin, query, limit, until).await {
            Ok(products) => return Ok((once(products), Source::upstream(shopify::NAME, None))),
            Err(error) => failed = Some(error),
        }
    }
    Err(match failed {
        Some(error) => error.of(shopify::NAME),
        None => ToolError::unavailable(Unavailable::ProviderNotConfigured, "no catalog of products is configured"),
    })
}

fn once(products: Vec<Product>) -> Vec<Product> {
    let mut seen = HashSet::new();
    products.into_iter().filter(|product| seen.insert(product.url.clone())).collect()
}

fn shown(product: &Product) -> Value {
    let mut shown = json!({
        "product_url": product.url,
        "title": product.title,
        "price": product.price.as_ref().map(number),
        "currency": product.price.as_ref().map(|price| &price.currency),
    });
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            shown[name] = value;
        }
    };
    add("list_price", product.list_price.as_ref().map(number));
    add("image_url", product.image_url.as_ref().map(|url| json!(url)));
    add("vendor", product.vendor.as_ref().map(|vendor| json!(vendor)));
    add("rating", product.rating.map(|rating| json!(rating)));
    add("review_count", product.review_count.map(|count| json!(count)));
    add("in_stock", product.in_stock.map(|in_stock| json!(in_stock)));
    add("description", product.description.as_ref().map(|text| json!(text)));
    add("gtin", product.gtin.as_ref().map(|gtin| json!(gtin)));
    if !product.variants.is_empty() {
        shown["variants"] = product.variants.iter().take(MAX_VARIANTS).map(variant).collect();
    }
    shown
}

fn variant(variant: &products::Variant) -> Value {
    json!({
        "variant_id": Some(&variant.id).filter(|id| !id.is_empty()),
        "title": variant.title,
        "price": variant.price.as_ref().map(number),
        "currency": variant.price.as_ref().map(|price| &price.currency),
        "in_stock": variant.in_stock,
    })
}

/// The digits of the amount as a JSON number, without a float in between.
fn number(price: &Price) -> Value {
    serde_json::from_str(&price.amount.normalize().to_string()).unwrap_or_default()
}

fn output() -> Value {
    let maybe = |kind: &str, about: &str| json!({"type": [kind, "null"], "description": about});
    json!({
        "type": "object",
        "required": ["status", "query", "products", "count"],
        "properties": {
            "status": {"type": "string"},
            "query": {"type": "string"},
            "count": {"type": "integer"},
            "products": {"type": "array", "items": {
                "type": "object",
                "required": ["product_url", "title", "price", "currency"],
                "properties": {
                    "product_url": {"type": "string", "format": "uri", "description": "What a purchase takes"},
                    "title": {"type": "string", "description": "Untrusted text of the shop"},
                    "price": maybe("number", "What one pays now, without shipping and tax; null if the shop does not say"),
                    "currency": maybe("string", "ISO 4217"),
                    "list_price": {"type": "number", "description": "The regular price, if it is higher"},
                    "image_url": {"type": "string"},
                    "vendor": {"type": "string"},
                    "rating": {"type": "number", "description": "From 0 to 5"},
                    "review_count": {"type": "integer"},
                    "in_stock": {"type": "boolean"},
                    "description": {"type": "string", "description": "Untrusted text of the shop"},
                    "gtin": {"type": "string"},
                    "variants": {"type": "array", "items": {"type": "object", "properties": {
                        "variant_id": maybe("string", "The shop's id. A purchase takes numbers and ids of Shopify; otherwise send labels and values"),
                        "title": {"type": "string"},
                        "price": maybe("number", "What one pays now"),
                        "currency": maybe("string", "ISO 4217"),
                        "in_stock": maybe("boolean", "Whether it can be ordered now"),
                    }}},
                },
            }},
        },
    })
}
