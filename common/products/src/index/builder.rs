//! Makes an index.

use std::collections::{HashMap, HashSet};

use rust_decimal::prelude::ToPrimitive;

use super::bytes::{MAGIC, NO_PRICE, PRICE_DECIMALS, currency_number, hash, push_varint};
use super::{MAX_PRODUCTS, words};
use crate::Product;

/// Products of a block, and its size in bytes when it is closed. A hit unpacks one block.
const BLOCK_PRODUCTS: usize = 16;
const BLOCK_BYTES: usize = 16 * 1024;
/// How hard blocks are packed, from 0 to 10.
const LEVEL: u8 = 4;
/// Most bytes of blocks and of postings; positions in them have 32 bits.
const MAX_BYTES: usize = 2 * 1024 * 1024 * 1024;

/// Makes an index of products, one after the other. It holds them packed.
#[derive(Default)]
pub struct Builder {
    /// Packed blocks, and the end of each.
    blocks: Vec<u8>,
    block_ends: Vec<u32>,
    /// The block that is being filled: a JSON array without its end.
    open: Vec<u8>,
    open_products: usize,
    /// The fixed part of each product.
    products: Vec<u8>,
    ids: Vec<(u64, u32)>,
    known: HashSet<u64>,
    known_words: words::Known,
    terms: HashMap<String, Postings>,
    postings_bytes: usize,
    lengths: u64,
}

/// The products of a term, as in the file.
#[derive(Default)]
struct Postings {
    bytes: Vec<u8>,
    last: u32,
}

impl Builder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a product. Returns whether it was added: not if one with its id is there, or if the index is full.
    pub fn add(&mut self, product: &Product) -> bool {
        let number = self.ids.len();
        let is_full = number >= MAX_PRODUCTS || self.blocks.len() + self.postings_bytes >= MAX_BYTES;
        // A product of a page may have no id; its address stands for it.
        let id = hash(if product.id.is_empty() { &product.url } else { &product.id });
        let Ok(json) = serde_json::to_vec(product) else { return false };
        if is_full || !self.known.insert(id) {
            return false;
        }
        let Ok(number) = u32::try_from(number) else { return false };
        let (terms, length) = words::terms(product, &mut self.known_words);
        self.open.push(if self.open_products == 0 { b'[' } else { b',' });
        self.open.extend_from_slice(&json);
        self.open_products += 1;
        self.ids.push((id, number));
        self.push_fixed(product, length);
        for (term, weight) in terms {
            let postings = self.terms.entry(term).or_default();
            let before = postings.bytes.len();
            push_varint(&mut postings.bytes, number - postings.last);
            postings.bytes.push(u8::try_from(weight).unwrap_or(u8::MAX));
            postings.last = number;
            self.postings_bytes += postings.bytes.len() - before;
        }
        if self.open_products >= BLOCK_PRODUCTS || self.open.len() >= BLOCK_BYTES {
            self.close_block();
        }
        true
    }

    fn push_fixed(&mut self, product: &Product, length: u16) {
        let price = product.price.as_ref();
        let scaled = price.and_then(|price| {
            let parts = price.amount.checked_mul(10_i64.pow(PRICE_DECIMALS).into())?;
            parts.ceil().to_i64()
        });
        let block = u32::try_from(self.block_ends.len()).unwrap_or(u32::MAX);
        self.products.extend(block.to_le_bytes());
        self.products.extend(length.to_le_bytes());
        self.products.extend(price.map_or(0, |price| currency_number(&price.currency)).to_le_bytes());
        self.products.extend(scaled.unwrap_or(NO_PRICE).to_le_bytes());
        self.products.extend(product.group.as_deref().map_or(0, hash).to_le_bytes());
        self.lengths += u64::from(length);
    }

    fn close_block(&mut self) {
        if self.open_products == 0 {
            return;
        }
        self.open.push(b']');
        self.blocks.extend(miniz_oxide::deflate::compress_to_vec(&self.open, LEVEL));
        self.block_ends.push(u32::try_from(self.blocks.len()).unwrap_or(u32::MAX));
        self.open.clear();
        self.open_products = 0;
    }

    /// The finished index.
    pub fn finish(mut self) -> Vec<u8> {
        self.close_block();
        self.known_words = words::Known::default();
        self.known = HashSet::new();
        self.ids.sort_unstable();
        let mut terms: Vec<(String, Postings)> = self.terms.drain().collect();
        terms.sort_unstable_by(|(one, _), (two, _)| one.cmp(two));
        let entries: usize = terms.iter().map(|(term, postings)| 1 + term.len() + postings.bytes.len()).sum();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes();
        let mean = self.lengths / u64::try_from(self.ids.len().max(1)).unwrap_or(1);

        let mut file = MAGIC.to_vec();
        // Without doubling while it grows.
        file.reserve_exact(
            64 + self.blocks.len() + self.products.len() + 16 * self.ids.len() + entries + 4 * terms.len(),
        );
        file.extend(count(self.ids.len()));
        file.extend(count(self.blocks.len()));
        file.extend(count(self.block_ends.len()));
        file.extend(count(terms.len()));
        file.extend(count(entries));
        file.extend(count(usize::try_from(mean).unwrap_or(usize::MAX)));
        file.append(&mut self.blocks);
        self.block_ends.iter().for_each(|end| file.extend(end.to_le_bytes()));
        file.append(&mut self.products);
        for (id, number) in &self.ids {
            file.extend(id.to_le_bytes());
            file.extend(number.to_le_bytes());
        }
        let mut ends = Vec::with_capacity(4 * terms.len());
        let start = file.len();
        for (term, postings) in terms {
            file.push(u8::try_from(term.len()).unwrap_or(u8::MAX));
            file.extend(term.as_bytes());
            file.extend(postings.bytes);
            ends.extend(count(file.len() - start));
        }
        file.extend(ends);
        file
    }
}
