//! The products of a web page, from JSON-LD, Microdata, RDFa and `meta` tags.
//!
//! All notations are read into one form (`items`), products are made from it (`schema`, `offers`), and what describes the
//! same product is merged (`merge`).

mod dom;
mod items;
mod linked;
mod markup;
mod merge;
mod meta;
mod offers;
mod schema;
#[cfg(test)]
mod tests;

use url::Url;

use crate::Product;

/// Longest page looked at, in bytes; the rest is not read.
pub const MAX_PAGE_BYTES: usize = 8_000_000;
/// Most products of one page.
pub const MAX_PRODUCTS: usize = 200;

/// Reads the products of a page. The one that the page is about comes first, if there is one; then the others, in the
/// page's order. The same product in several notations is one product: JSON-LD counts before Microdata, RDFa and `meta`.
/// `url` is the address of the page: relative addresses are relative to it, and a product without address has it. Broken
/// parts of a page are skipped.
pub fn read(html: &str, url: &Url) -> Vec<Product> {
    let html = &html[..html.floor_char_boundary(MAX_PAGE_BYTES)];
    let scanned = markup::scan(html);
    let mut items = items::Items::default();
    for block in &scanned.blocks {
        linked::read(block, &mut items);
    }
    let document = dom::parse(&scanned.markup);
    let head = meta::read(&document, url);
    dom::read(&document, &mut items);
    let by_product = offers::by_product(&items);
    let left = schema::MAX_READ.into();
    let context = schema::Context { items: &items, url, currency: head.currency, by_product, left };
    let found = schema::products(&context, MAX_PRODUCTS);
    merge::merged(found, head, url)
}
