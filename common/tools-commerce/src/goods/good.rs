//! A good that is for sale here.
//!
//! | item (table souls) | key |
//! |---|---|
//! | a good | `GOOD#<id>` / `GOOD` |
//! | how many are left of a variant | `GOOD#<id>` / `STOCK#<variant>` |
//! | a good in its seller's list | `GOODS#<seller>` / `GOOD#<id>` |
//! | how many goods a seller has | `GOODS#<seller>` / `COUNT` |
//!
//! Purchases take from the stock in the transaction that claims them, so it is a row of its own: a purchase does not change the good.

use std::collections::BTreeMap;

use base::clock::Timestamp;
use base::digest;
use base::money::Usdc;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use url::Url;

/// Most goods of a seller.
pub const MOST_GOODS: u32 = 200;
/// Most variants of a good: its rows are written in one transaction.
pub const MOST_VARIANTS: usize = 40;

/// The soul that sells a good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seller {
    pub slug: String,
    pub id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Good {
    pub id: String,
    pub seller: Seller,
    pub title: String,
    pub description: String,
    /// At least one.
    pub variants: Vec<Variant>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    pub shipping: Shipping,
    pub tax: Tax,
    /// Within so many days an order is sent.
    pub handling_days: u8,
    /// For so many days after the delivery it can be sent back.
    pub return_days: u8,
    /// An index of the table has the attribute `listed`.
    #[serde(rename = "for_sale")]
    pub listed: bool,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// Each change adds one.
    pub revision: u32,
    /// The number of the next variant.
    pub next_variant: u32,
}

impl Good {
    /// All that its seller says of it.
    pub fn words(&self) -> String {
        let labels = self.variants.iter().flat_map(|variant| &variant.labels).flat_map(|(label, value)| [label, value]);
        let texts = [&self.title, &self.description].into_iter().chain(labels);
        texts.map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// From 1. Never used again in its good.
    pub id: u32,
    /// Such as `Size` and `10`; empty if the good has one form.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// micro-USDC, whole cents
    pub price: Usdc,
}

/// What sending one order costs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shipping {
    /// To states that are not named; `None`: nothing is sent there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Usdc>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub states: BTreeMap<String, Usdc>,
    /// Orders of this subtotal or more are sent for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_from: Option<Usdc>,
}

/// Sales tax, in parts per million.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tax {
    #[serde(default)]
    pub default: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub states: BTreeMap<String, u32>,
    /// Shipping is taxed, too.
    #[serde(default)]
    pub on_shipping: bool,
}

/// How many are left of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stock {
    pub variant: u32,
    pub left: u32,
}

#[derive(Serialize, Deserialize)]
pub struct Listed {
    pub id: String,
}

pub fn new_id() -> String {
    format!("good_{}", const_hex::encode(digest::random::<10>()))
}

/// Whether a text has the form of an id.
pub fn is_id(text: &str) -> bool {
    let hex = text.strip_prefix("good_").unwrap_or_default();
    hex.len() == 20 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The path of a good's page.
pub fn path(id: &str) -> String {
    format!("/goods/{id}")
}

/// The good's id in the address of its page, at whatever host.
pub fn id_in(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let id = url.path().strip_prefix("/goods/")?;
    is_id(id).then(|| id.to_owned())
}

/// The good's id in an address of this service.
pub fn id_here(base_url: Option<&str>, url: &str) -> Option<String> {
    let own = Url::parse(base_url?).ok()?;
    let is_here = Url::parse(url).is_ok_and(|url| url.origin() == own.origin());
    id_in(url).filter(|_| is_here)
}

pub fn key(id: &str) -> Key {
    Key::new(format!("GOOD#{id}"), "GOOD")
}

pub fn stock_key(id: &str, variant: u32) -> Key {
    Key::new(format!("GOOD#{id}"), format!("STOCK#{variant:04}"))
}

fn partition(seller: &Seller) -> String {
    format!("GOODS#{}", seller.slug)
}

pub fn list_key(seller: &Seller, id: &str) -> Key {
    Key::new(partition(seller), format!("GOOD#{id}"))
}

pub fn count_key(seller: &Seller) -> Key {
    Key::new(partition(seller), "COUNT")
}

/// A good.
///
/// # Errors
/// If the database fails.
pub async fn load(db: &Db, id: &str) -> Result<Option<Good>, StoreError> {
    if !is_id(id) {
        return Ok(None);
    }
    db.get_latest(&db.tables.souls, key(id)).await
}

/// What is left of a good's variants; rows that are missing have none.
///
/// # Errors
/// If the database fails.
pub async fn stock(db: &Db, good: &Good) -> Result<BTreeMap<u32, u32>, StoreError> {
    let rows = Query::prefixed(&db.tables.souls, &format!("GOOD#{}", good.id), "STOCK#", 1_000)?.latest();
    let rows: Vec<Stock> = db.query(rows).await?;
    Ok(rows.into_iter().map(|row| (row.variant, row.left)).collect())
}

/// What is left of one variant; `None`: it is gone.
///
/// # Errors
/// If the database fails.
pub async fn left(db: &Db, id: &str, variant: u32) -> Result<Option<u32>, StoreError> {
    let row: Option<Stock> = db.get_latest(&db.tables.souls, stock_key(id, variant)).await?;
    Ok(row.map(|row| row.left))
}

/// What is left of the variants of each of these goods.
///
/// # Errors
/// If the database fails.
pub async fn stocks(db: &Db, goods: &[Good]) -> Result<Vec<BTreeMap<u32, u32>>, StoreError> {
    let keys = |good: &Good| good.variants.iter().map(|one| stock_key(&good.id, one.id)).collect::<Vec<_>>();
    let all: Vec<Key> = goods.iter().flat_map(keys).collect();
    let mut rows = db.batch_get::<Stock>(&db.tables.souls, &all, true).await?.into_iter();
    let left = |row: Option<Stock>| row.map(|row| (row.variant, row.left));
    Ok(goods.iter().map(|good| rows.by_ref().take(good.variants.len()).filter_map(left).collect()).collect())
}

/// A page of a seller's goods, by id, and the cursor of the next one. `after` is the cursor of a page before.
///
/// # Errors
/// If the database fails.
pub async fn of(
    db: &Db,
    seller: &Seller,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<Good>, Option<String>), StoreError> {
    let start = after.map(|id| list_key(seller, id));
    let rows = Query::prefixed(&db.tables.souls, &partition(seller), "GOOD#", limit + 1)?.after(start).latest();
    let mut rows: Vec<Listed> = db.query(rows).await?;
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| has_more).map(|row| row.id.clone());
    let keys: Vec<Key> = rows.iter().map(|row| key(&row.id)).collect();
    let goods: Vec<Option<Good>> = db.batch_get(&db.tables.souls, &keys, true).await?;
    Ok((goods.into_iter().flatten().collect(), next))
}

/// Takes from the stock, if enough is left.
///
/// # Errors
/// If a value cannot be written.
pub fn take(db: &Db, id: &str, variant: u32, quantity: u32) -> Result<Write, StoreError> {
    Write::update(&db.tables.souls, stock_key(id, variant), "ADD #left :less")
        .only_if("#left >= :quantity")
        .bind("less", -i64::from(quantity))?
        .bind("quantity", quantity)
}

/// Puts back into the stock of a variant that there is.
///
/// # Errors
/// If a value cannot be written.
pub fn put_back(db: &Db, id: &str, variant: u32, quantity: u32) -> Result<Write, StoreError> {
    Write::update(&db.tables.souls, stock_key(id, variant), "ADD #left :quantity")
        .only_if("attribute_exists(#pk)")
        .bind("quantity", quantity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_is_known_by_its_address_here() {
        let id = new_id();
        let here = Some("https://tools.example");
        assert_eq!(id_here(here, &format!("https://tools.example/goods/{id}")), Some(id.clone()));
        for other in [
            format!("https://other.example/goods/{id}"),
            format!("http://tools.example/goods/{id}"),
            format!("https://tools.example/goods/{id}x"),
            format!("https://tools.example/goods/{id}/more"),
            "https://tools.example/goods/good_".to_owned(),
            "not an address".to_owned(),
        ] {
            assert_eq!(id_here(here, &other), None, "{other}");
        }
        assert_eq!(id_here(None, &format!("https://tools.example/goods/{id}")), None);
    }
}
