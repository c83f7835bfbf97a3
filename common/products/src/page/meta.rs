//! The product of a page as its `meta` tags say it: Open Graph and its product tags.

use dom_query::Document;
use url::Url;

use crate::fields::{
    MAX_DESCRIPTION_CHARS, MAX_ID_CHARS, MAX_TITLE_CHARS, MAX_WORD_CHARS, address, gtin, in_stock, paid_and_listed,
    plain, some_line,
};
use crate::{Product, price};

/// Most `meta` tags read.
const MAX_TAGS: usize = 500;

/// What the head of a page says.
pub(super) struct Head {
    /// The product; without a price it may as well be another page.
    pub(super) product: Product,
    /// The page says that it is about one product.
    pub(super) is_product: bool,
    pub(super) canonical: Option<String>,
    /// Currency of prices without one.
    pub(super) currency: Option<&'static str>,
}

pub(super) fn read(document: &Document, url: &Url) -> Head {
    let tags = Tags::of(document);
    let link = document.select_single("link[rel=canonical]").attr("href");
    let canonical = link.and_then(|href| address(&href, Some(url)));
    let page_url = tags.first(&["og:url"]).and_then(|text| address(text, Some(url)));
    let currency = tags
        .first(&["product:price:currency", "og:price:currency", "product:sale_price:currency", "currency"])
        .and_then(price::code);
    let amount = |names: &[&str]| tags.first(names).and_then(|text| price::of_data(text, currency));
    let sale = amount(&["product:sale_price:amount"]);
    let regular = amount(&["product:price:amount", "og:price:amount", "price"]);
    let original = amount(&["product:original_price:amount", "og:price:standard_amount"]);
    let (price, list_price) = match sale {
        Some(sale) => paid_and_listed(Some(sale), regular.or(original)),
        None => paid_and_listed(regular, original),
    };
    let page_title = || some_line(&document.select_single("head title").text(), MAX_TITLE_CHARS);
    let words = |names: &[&str], most| tags.first(names).and_then(|text| some_line(text, most));
    let is_product = tags.first(&["og:type"]).is_some_and(|kind| kind.to_ascii_lowercase().contains("product"));
    let number = words(&["product:retailer_item_id", "product:retailer_part_no", "product:sku"], MAX_ID_CHARS);
    let gtin = tags.first(&["product:ean", "product:upc", "product:gtin", "product:isbn", "og:upc"]).and_then(gtin);
    let product = Product {
        id: number.or_else(|| gtin.clone()).unwrap_or_default(),
        url: page_url.clone().or_else(|| canonical.clone()).unwrap_or_else(|| url.to_string()),
        title: words(&["og:title", "twitter:title"], MAX_TITLE_CHARS).or_else(page_title).unwrap_or_default(),
        price,
        list_price,
        image_url: tags
            .first(&["og:image:secure_url", "og:image", "og:image:url", "twitter:image"])
            .and_then(|text| address(text, Some(url))),
        vendor: words(&["product:brand", "og:brand"], MAX_WORD_CHARS),
        in_stock: tags.first(&["product:availability", "og:availability"]).and_then(in_stock),
        description: tags
            .first(&["og:description", "description", "twitter:description"])
            .and_then(|text| plain(text, MAX_DESCRIPTION_CHARS)),
        gtin,
        category: words(&["product:category", "og:category"], MAX_WORD_CHARS),
        ..Product::default()
    };
    Head { product, is_product, canonical: canonical.or(page_url), currency }
}

/// Names in lower case with their values.
struct Tags(Vec<(String, String)>);

impl Tags {
    fn of(document: &Document) -> Self {
        let tags = document.select("meta[content]");
        let named = tags.nodes().iter().take(MAX_TAGS).filter_map(|tag| {
            let name = tag.attr("property").or_else(|| tag.attr("name"))?;
            let content = tag.attr("content")?;
            let content = content.trim();
            (!content.is_empty()).then(|| (name.trim().to_ascii_lowercase(), content.to_owned()))
        });
        Self(named.collect())
    }

    /// The value of the first of these names that the page has.
    fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.0.iter().find(|(known, _)| known == name)).map(|(_, value)| value.as_str())
    }
}
