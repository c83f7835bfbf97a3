//! The products of a shop's feed, one by one: Google Merchant's product data specification as a text file (tabs or commas)
//! or as XML (RSS 2.0, Atom).
//!
//! A feed is read as a stream: memory does not depend on its size. An item that cannot be used is a [`Problem`], and
//! reading goes on; a file that cannot be read further ends with one.

mod bounded;
mod delimited;
mod item;
#[cfg(test)]
mod tests;
mod xml;

use std::fmt;
use std::io::BufRead;

use url::Url;

use crate::Product;
use bounded::Bounded;

/// Most bytes read of a feed.
pub const MAX_FEED_BYTES: u64 = 4 * 1024 * 1024 * 1024;
/// Most items read of a feed, with those that have problems.
pub const MAX_ITEMS: u64 = 2_000_000;
/// Longest text of a field, in bytes; longer ones are cut.
const MAX_FIELD_BYTES: usize = 16 * 1024;

/// The form of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Lines of fields. The first line names them, and shows whether tabs, commas, semicolons or bars are between them.
    Text,
    /// RSS 2.0 or Atom, with Google's elements.
    Xml,
}

/// What a feed does not say itself.
#[derive(Clone, Debug, Default)]
pub struct Shop {
    /// Relative addresses are relative to it; without it they are refused.
    pub url: Option<Url>,
    /// Currency of prices without one, as a code of ISO 4217.
    pub currency: Option<String>,
    /// Seconds since 1970. A sale price counts only between the dates that the feed gives for it.
    pub now: i64,
}

/// What is wrong with an item or with the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line of a text file, the number of the item in XML. Both begin with 1.
    pub at: u64,
    /// In words, for the shop.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

impl std::error::Error for Problem {}

/// Reads a feed. Without a `kind`, a file that starts with `<` is XML. The reader should have a buffer of some kilobytes.
pub fn read<R: BufRead>(reader: R, kind: Option<Kind>, shop: Shop) -> impl Iterator<Item = Result<Product, Problem>> {
    let mut reader = Bounded::new(reader, MAX_FEED_BYTES);
    let kind = kind.or_else(|| reader.kind()).unwrap_or(Kind::Text);
    let records = match kind {
        Kind::Text => Records::Text(delimited::Lines::new(reader)),
        Kind::Xml => Records::Xml(xml::Elements::new(reader)),
    };
    Feed { records, shop, items: 0, ended: false }
}

/// A source of records.
enum Records<R> {
    Text(delimited::Lines<R>),
    Xml(xml::Elements<R>),
}

/// Why there is no record.
enum Broken {
    /// This one cannot be read.
    Item(Problem),
    /// Nothing more can be read.
    File(Problem),
}

struct Feed<R> {
    records: Records<R>,
    shop: Shop,
    items: u64,
    ended: bool,
}

impl<R: BufRead> Iterator for Feed<R> {
    type Item = Result<Product, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let record = match &mut self.records {
            Records::Text(lines) => lines.next(),
            Records::Xml(elements) => elements.next(),
        };
        self.ended = matches!(record, None | Some(Err(Broken::File(_))));
        let item = match record? {
            Ok(record) => record.product(&self.shop),
            Err(Broken::Item(problem) | Broken::File(problem)) => Err(problem),
        };
        self.items += 1;
        if self.items > MAX_ITEMS {
            self.ended = true;
            return Some(Err(Problem { at: self.items, message: format!("the feed has more than {MAX_ITEMS} items") }));
        }
        Some(item)
    }
}
