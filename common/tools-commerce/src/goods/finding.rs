//! Finds goods by words. Each good that is listed has a row on one shelf (`GOODS#@all` / `GOOD#<id>`, table souls), which is read whole
//! and searched as the operator's feed is: sellers are few.

use base::money::Usdc;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use products::index::{Builder, Index};
use products::{Price, Product};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use tools::Toolbox;

use super::buying;
use super::good::{self, Good};

/// No slug of a seller has this sign.
const SHELF: &str = "GOODS#@all";
/// Most goods that are searched.
const MOST: usize = 2_000;
const MOST_CHARS: usize = 300;
/// So many more than wanted are looked at: some cannot be sold now.
const BESIDE: usize = 50;

#[derive(Serialize, Deserialize)]
struct Row {
    id: String,
    title: String,
    about: String,
    price: Usdc,
}

fn key(id: &str) -> Key {
    Key::new(SHELF, format!("GOOD#{id}"))
}

/// The write that puts a good on the shelf, or takes it away.
///
/// # Errors
/// If the row cannot be written as an item.
pub fn shelve(db: &Db, good: &Good) -> Result<Write, StoreError> {
    let table = &db.tables.souls;
    if !good.listed {
        return Ok(remove(db, &good.id));
    }
    let row = Row {
        id: good.id.clone(),
        title: good.title.clone(),
        about: good.description.chars().take(MOST_CHARS).collect(),
        price: good.variants.iter().map(|variant| variant.price).min().unwrap_or_default(),
    };
    Write::put(table, key(&good.id), &row)
}

/// The write that takes a good from the shelf.
pub fn remove(db: &Db, id: &str) -> Write {
    Write::delete(&db.tables.souls, key(id))
}

/// Goods that match these words, the best first.
///
/// # Errors
/// If the database fails.
pub async fn search(toolbox: &Toolbox, query: &str, limit: usize) -> Result<Vec<Product>, StoreError> {
    if toolbox.config.goods_sellers.is_empty() || toolbox.config.base_url.is_none() {
        return Ok(Vec::new());
    }
    let rows: Vec<Row> = toolbox.db.query(Query::prefixed(&toolbox.db.tables.souls, SHELF, "GOOD#", MOST)?).await?;
    let query = query.to_owned();
    let matching =
        tokio::task::spawn_blocking(move || matching(&rows, &query, limit + BESIDE)).await.map_err(StoreError::new)?;
    let mut found = Vec::new();
    for id in matching {
        if found.len() >= limit {
            break;
        }
        found.extend(product(toolbox, &id).await?);
    }
    Ok(found)
}

/// The good of this address, if it is one of ours; the inner `None`: it is not for sale.
///
/// # Errors
/// If the database fails.
pub async fn at(toolbox: &Toolbox, url: &str) -> Result<Option<Option<Product>>, StoreError> {
    match good::id_here(toolbox.config.base_url.as_deref(), url) {
        Some(id) => Ok(Some(product(toolbox, &id).await?)),
        None => Ok(None),
    }
}

fn matching(rows: &[Row], query: &str, limit: usize) -> Vec<String> {
    let mut builder = Builder::new();
    for row in rows {
        builder.add(&Product {
            id: row.id.clone(),
            url: format!("https://example.com/{}", row.id),
            title: row.title.clone(),
            description: Some(row.about.clone()),
            price: Some(price(row.price)),
            ..Product::default()
        });
    }
    let Ok(index) = Index::open(builder.finish()) else { return Vec::new() };
    index.search(query, limit).into_iter().map(|hit| hit.product.id).collect()
}

fn price(amount: Usdc) -> Price {
    Price { amount: Decimal::from_i128_with_scale(i128::from(amount.micro()), 6), currency: "USD".to_owned() }
}

/// A good as products of shops are shown; `None` if it is not for sale.
async fn product(toolbox: &Toolbox, id: &str) -> Result<Option<Product>, StoreError> {
    let Some(good) = buying::for_sale(toolbox, id).await? else { return Ok(None) };
    let left = good::stock(&toolbox.db, &good).await?;
    let has = |variant: &good::Variant| left.get(&variant.id).is_some_and(|left| *left > 0);
    let title = |variant: &good::Variant| {
        let labels: Vec<String> = variant.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        labels.join("; ")
    };
    let variants = good.variants.iter().filter(|variant| !variant.labels.is_empty()).map(|variant| products::Variant {
        id: variant.id.to_string(),
        title: title(variant),
        price: Some(price(variant.price)),
        in_stock: Some(has(variant)),
        url: None,
    });
    let base = toolbox.config.base_url.as_deref().unwrap_or_default();
    Ok(Some(Product {
        id: good.id.clone(),
        url: format!("{base}{}", good::path(&good.id)),
        title: good.title.clone(),
        price: good.variants.iter().map(|variant| variant.price).min().map(price),
        image_url: good.images.first().cloned(),
        vendor: Some(good.seller.slug.clone()),
        in_stock: Some(good.variants.iter().any(has)),
        description: Some(good.description.clone()).filter(|text| !text.is_empty()),
        variants: variants.collect(),
        ..Product::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goods_are_found_by_their_words_and_price() {
        let row = |id: &str, title: &str, dollars: u64| Row {
            id: id.to_owned(),
            title: title.to_owned(),
            about: "For the desk".to_owned(),
            price: Usdc::from_micro(dollars * 1_000_000),
        };
        let rows = [row("a", "Brass lamp", 20), row("b", "Chair", 30), row("c", "Steel lamp", 90)];
        assert_eq!(matching(&rows, "brass lamps", 1), ["a"]);
        assert_eq!(matching(&rows, "lamp under 50 usd", 5), ["a"]);
        assert!(matching(&rows, "carpet", 5).is_empty() && matching(&[], "lamp", 5).is_empty());
    }
}
