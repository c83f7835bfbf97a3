//! Products for sale: what a page or a shop's feed says about them, and an index that is searched.
//!
//! Everything happens in memory; there is no network and no clock. All input is untrusted: bytes, items, nesting and string
//! lengths have limits, work is linear, and nothing panics.
//!
//! - [`price`]: an amount and its currency from words such as `1.299,00 €`.
//! - [`page`]: the products of a web page, from its structured data.
//! - [`feed`]: the products of a shop's feed (Google Merchant's format), one by one.
//! - [`index`]: products in one file, found by words.

pub mod feed;
mod fields;
pub mod index;
pub mod page;
pub mod price;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

/// Most variants kept of a product.
pub const MAX_VARIANTS: usize = 100;

/// An amount above 0.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// Written as a string in JSON.
    #[serde(with = "rust_decimal::serde::str")]
    pub amount: Decimal,
    /// ISO 4217, in upper case.
    pub currency: String,
}

/// A form of a product that can be bought: a size, a colour, or the offer of one seller.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// The seller's number (SKU), or a GTIN. May be empty.
    pub id: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_stock: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A product. Texts are plain, on one line and cut to length; they are still untrusted.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Product {
    /// The seller's number (SKU or id of the feed), or a GTIN. May be empty for a page.
    pub id: String,
    /// Always `http` or `https`; fetch it only with the guarded client.
    pub url: String,
    pub title: String,
    /// What one pays now. For several offers or variants: the lowest, of those in stock if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The regular price, if it is higher than `price`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_price: Option<Price>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_url: Option<String>,
    /// The brand; without one, the maker or the seller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// From 0 to 5; other scales are converted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rating: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_count: Option<u64>,
    /// Whether it can be ordered now; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_stock: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Digits only, with a valid check digit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gtin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Of a feed: what the variants of one product share (`item_group_id`). A search returns one product of each group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
}
