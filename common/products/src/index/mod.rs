//! Products in one file, found by words.
//!
//! [`Builder`] takes products one by one and makes the file; [`Index`] searches its bytes without unpacking them. Ranking is
//! BM25 over four fields: title above vendor above category above description. Words are compared without accents, case and
//! English endings. A word that no product has may stand for words that it begins, or that differ by a typo.
//!
//! ```text
//! "PRD1"  six u32: products, bytes of blocks, blocks, terms, bytes of entries, mean length
//! blocks:   some products each, as deflated JSON;  u32 end of each
//! products: u32 block, u16 length, u16 currency, i64 price in 1/10000, u64 hash of the group
//! ids:      u64 hash of the id and u32 product, sorted
//! terms:    entries (u8 size, term, then varint distance and u8 weight for each product);  u32 end of each
//! ```
//! Numbers are little-endian; terms are sorted.

mod builder;
mod bytes;
mod query;
mod search;
#[cfg(test)]
mod tests;
mod words;

use std::fmt;

pub use builder::Builder;
pub use search::Index;

use crate::Product;

/// Most products of an index.
pub const MAX_PRODUCTS: usize = 2_000_000;
/// Most hits of a search.
pub const MAX_HITS: usize = 200;

/// A product that matches a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    pub product: Product,
    /// The higher, the better; comparable within one search.
    pub score: f32,
}

/// The bytes are no index of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnIndex;

impl fmt::Display for NotAnIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes are not an index of products, or one of another version")
    }
}

impl std::error::Error for NotAnIndex {}
