//! One item of a feed as a product.

use chrono::{DateTime, NaiveDate, NaiveDateTime};

use super::{MAX_FIELD_BYTES, Problem, Shop};
use crate::fields::{
    MAX_DESCRIPTION_CHARS, MAX_ID_CHARS, MAX_TITLE_CHARS, MAX_WORD_CHARS, address, count, gtin, in_stock, line,
    paid_and_listed, plain, rating,
};
use crate::{Price, Product, price};

/// The fields that are read, and other names that shops use for them.
const FIELDS: [(&str, &str); 32] = [
    ("id", "id"),
    ("title", "title"),
    ("description", "description"),
    ("link", "link"),
    ("image_link", "image_link"),
    ("price", "price"),
    ("sale_price", "sale_price"),
    ("sale_price_effective_date", "sale_price_effective_date"),
    ("availability", "availability"),
    ("brand", "brand"),
    ("gtin", "gtin"),
    ("product_type", "product_type"),
    ("google_product_category", "google_product_category"),
    ("item_group_id", "item_group_id"),
    ("rating", "rating"),
    ("review_count", "review_count"),
    ("sku", "id"),
    ("name", "title"),
    ("summary", "description"),
    ("content", "description"),
    ("url", "link"),
    ("product_url", "link"),
    ("image", "image_link"),
    ("image_url", "image_link"),
    ("ean", "gtin"),
    ("upc", "gtin"),
    ("manufacturer", "brand"),
    ("vendor", "brand"),
    ("category", "product_type"),
    ("average_rating", "rating"),
    ("rating_count", "review_count"),
    ("number_of_reviews", "review_count"),
];

/// The field that a column or element means: its name, and whether that is Google's own name.
pub(super) fn field(name: &str) -> Option<(&'static str, bool)> {
    let name = name.trim().trim_matches('"');
    if name.len() > 64 {
        return None;
    }
    let name = name.to_ascii_lowercase().replace([' ', '-'], "_");
    let name = name.strip_prefix("g:").unwrap_or(&name);
    FIELDS.iter().find(|(known, _)| *known == name).map(|(known, field)| (*field, known == field))
}

/// An item as it is in the file.
#[derive(Default)]
pub(super) struct Record {
    pub(super) at: u64,
    fields: Vec<(&'static str, String, u8)>,
}

impl Record {
    pub(super) fn new(at: u64) -> Self {
        Self { at, fields: Vec::new() }
    }

    /// Keeps the value of a field; of several, the first of those with the highest rank.
    pub(super) fn set(&mut self, field: &'static str, value: &str, rank: u8) {
        let value = value[..value.floor_char_boundary(MAX_FIELD_BYTES)].trim();
        if value.is_empty() {
            return;
        }
        match self.fields.iter_mut().find(|(known, ..)| *known == field) {
            Some((_, known, before)) if *before < rank => (*known, *before) = (value.to_owned(), rank),
            Some(_) => {}
            None => self.fields.push((field, value.to_owned(), rank)),
        }
    }

    fn get(&self, field: &str) -> Option<&str> {
        self.fields.iter().find(|(known, ..)| *known == field).map(|(_, value, _)| value.as_str())
    }

    fn problem(&self, message: String) -> Problem {
        Problem { at: self.at, message }
    }

    /// The product, or what is wrong. It needs an id, a title, a link, and a price that can be read if there is one.
    pub(super) fn product(&self, shop: &Shop) -> Result<Product, Problem> {
        let needed = |field: &str, most: usize| {
            let text = self.get(field).and_then(|text| plain(text, most));
            text.ok_or_else(|| self.problem(format!("the item has no {field}")))
        };
        let words = |field: &str, most: usize| self.get(field).and_then(|text| plain(text, most));
        let web = |field: &str| self.get(field).and_then(|text| address(text, shop.url.as_ref()));
        let id = needed("id", MAX_ID_CHARS)?;
        let title = needed("title", MAX_TITLE_CHARS)?;
        let link = self.get("link").ok_or_else(|| self.problem(format!("item {id} has no link")))?;
        let url = address(link, shop.url.as_ref()).ok_or_else(|| {
            self.problem(format!("item {id}: the link is not an http or https address: {}", quoted(link)))
        })?;
        let (price, list_price) = self.prices(shop)?;
        Ok(Product {
            id,
            url,
            title,
            price,
            list_price,
            image_url: web("image_link"),
            vendor: words("brand", MAX_WORD_CHARS),
            rating: self.get("rating").and_then(|text| rating(text, None)),
            review_count: self.get("review_count").and_then(count),
            in_stock: self.get("availability").and_then(in_stock),
            description: words("description", MAX_DESCRIPTION_CHARS),
            gtin: self.get("gtin").and_then(gtin),
            category: words("product_type", MAX_WORD_CHARS)
                .or_else(|| words("google_product_category", MAX_WORD_CHARS)),
            group: words("item_group_id", MAX_ID_CHARS),
            variants: Vec::new(),
        })
    }

    /// What is paid now, and the regular price during a sale.
    fn prices(&self, shop: &Shop) -> Result<(Option<Price>, Option<Price>), Problem> {
        let regular = self.price("price", shop)?;
        let dates = self.get("sale_price_effective_date");
        if !dates.is_none_or(|dates| is_within(dates, shop.now)) {
            return Ok((regular, None));
        }
        Ok(match self.price("sale_price", shop)? {
            Some(sale) if regular.as_ref().is_none_or(|regular| sale.amount < regular.amount) => {
                paid_and_listed(Some(sale), regular)
            }
            _ => (regular, None),
        })
    }

    /// The price in a field; `None` if it is empty or free.
    fn price(&self, field: &str, shop: &Shop) -> Result<Option<Price>, Problem> {
        let Some(text) = self.get(field) else { return Ok(None) };
        let is_free = |text: &str| text.contains('0') && !text.chars().any(|c| matches!(c, '1'..='9'));
        match price::of_data(text, shop.currency.as_deref()) {
            None if is_free(text) => Ok(None),
            None => Err(self.problem(format!(
                "the {field} is not an amount above 0 with a currency, such as 15.00 USD: {}",
                quoted(text)
            ))),
            price => Ok(price),
        }
    }
}

/// A value of the feed for a message.
fn quoted(text: &str) -> String {
    format!("\"{}\"", line(text, 60))
}

/// Whether the time is within `from/until`. Dates that cannot be read are not.
fn is_within(dates: &str, now: i64) -> bool {
    let Some((from, until)) = dates.split_once('/') else { return false };
    let bound = |text: &str, of_day: i64| match text.trim() {
        "" => Some(None),
        text => time(text, of_day).map(Some),
    };
    let (Some(from), Some(until)) = (bound(from, 0), bound(until, 24 * 60 * 60 - 1)) else { return false };
    from.is_none_or(|from| from <= now) && until.is_none_or(|until| now <= until)
}

/// A time of ISO 8601, in seconds. Without a zone it is UTC; `of_day` completes a date alone.
fn time(text: &str, of_day: i64) -> Option<i64> {
    let text = text[..text.floor_char_boundary(40)].replace(' ', "T");
    let zoned = text.strip_suffix('Z').map_or(text.clone(), |text| format!("{text}+0000"));
    let in_zone = ["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M%z", "%Y-%m-%dT%H:%M:%S%.f%z"];
    let plain = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"];
    let zoned = in_zone.iter().find_map(|form| DateTime::parse_from_str(&zoned, form).ok());
    zoned
        .map(|time| time.timestamp())
        .or_else(|| {
            let time = plain.iter().find_map(|form| NaiveDateTime::parse_from_str(&text, form).ok());
            time.map(|time| time.and_utc().timestamp())
        })
        .or_else(|| {
            let date = NaiveDate::parse_from_str(&text, "%Y-%m-%d").ok()?;
            Some(date.and_hms_opt(0, 0, 0)?.and_utc().timestamp() + of_day)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sales_are_within_their_dates() {
        let noon = 1_772_107_200; // 2026-02-26T12:00:00Z
        for (dates, expected) in [
            ("2026-02-24T11:07:31+0100 / 2026-02-29T23:07:31-0800", false),
            ("2026-02-24T11:07:31+0100/2026-02-28T23:07:31-08:00", true),
            ("2026-02-26T13:00+0100/2026-02-26T12:00Z", true),
            ("2026-02-26T14:00+0100/", false),
            ("2026-02-20/2026-02-26", true),
            ("2026-02-20T00:00:00/2026-02-25T00:00:00", false),
            ("tomorrow", false),
        ] {
            assert_eq!(is_within(dates, noon), expected, "{dates}");
        }
    }
}
