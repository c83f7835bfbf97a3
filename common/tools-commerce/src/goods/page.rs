//! The page of a good: HTML with its data as JSON-LD, or JSON. It loads nothing and runs no script; all texts are the seller's.

use std::collections::BTreeMap;

use base::money::Usdc;
use base::untrusted_text::with_code_points;
use platform::http::ApiError;
use serde_json::{Value, json};
use tools::Toolbox;

use super::buying;
use super::good::{self, Good, Variant};

/// `Content-Security-Policy` of the page.
pub const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A good that is for sale, and what is left of its variants.
pub struct Page {
    good: Good,
    left: BTreeMap<u32, u32>,
    url: String,
}

/// The page of a good.
///
/// # Errors
/// 404 if it is not for sale.
pub async fn load(toolbox: &Toolbox, id: &str) -> Result<Page, ApiError> {
    let good = buying::for_sale(toolbox, id).await?.ok_or(ApiError::NotFound)?;
    let left = good::stock(&toolbox.db, &good).await?;
    let base = toolbox.config.base_url.as_deref().unwrap_or_default();
    Ok(Page { url: format!("{base}{}", good::path(&good.id)), good, left })
}

impl Page {
    fn in_stock(&self, variant: &Variant) -> bool {
        self.left.get(&variant.id).is_some_and(|left| *left > 0)
    }

    /// The page as JSON.
    pub fn json(&self) -> Value {
        let good = &self.good;
        let variant = |variant: &Variant| {
            json!({
                "variant_id": variant.id.to_string(),
                "labels": variant.labels,
                "price": variant.price.to_string(),
                "in_stock": self.in_stock(variant),
            })
        };
        json!({
            "good_id": good.id,
            "url": self.url,
            "title": good.title,
            "description": good.description,
            "currency": "USD",
            "seller": good.seller.slug,
            "variants": good.variants.iter().map(variant).collect::<Vec<_>>(),
            "images": good.images,
            "handling_days": good.handling_days,
            "return_days": good.return_days,
            "buy": "/v1/tools/commerce/buy",
        })
    }

    /// The page as HTML.
    pub fn html(&self) -> String {
        let good = &self.good;
        let title = escaped(&good.title);
        let rows: String = good.variants.iter().map(|variant| self.row(variant)).collect();
        let images: String = good.images.iter().map(|image| link(image, image)).collect();
        let description = escaped(&good.description).replace('\n', "<br>");
        // `<` could end the element.
        let data = self.data().to_string().replace('<', "\\u003c");
        format!(
            "<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title>\
             <meta name=viewport content=\"width=device-width, initial-scale=1\">\
             <script type=\"application/ld+json\">{data}</script></head><body><main><h1>{title}</h1><p>{description}</p>\
             <table><thead><tr><th>variant_id<th>variant<th>price<th>stock</thead><tbody>{rows}</tbody></table>\
             <p>Sold by {seller}. Sent within {handling} days; {returns} days to send it back.</p><ul>{images}</ul>\
             <p>Agents buy it with <code>POST /v1/tools/commerce/buy</code> and this address as <code>product_url</code>.</p>\
             </main></body></html>",
            seller = escaped(&good.seller.slug),
            handling = good.handling_days,
            returns = good.return_days,
        )
    }

    fn row(&self, variant: &Variant) -> String {
        let labels: Vec<String> = variant.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let stock = if self.in_stock(variant) { "in stock" } else { "out of stock" };
        let labels = escaped(&labels.join("; "));
        format!("<tr><td>{}<td>{labels}<td>{} USD<td>{stock}", variant.id, dollars(variant.price))
    }

    /// A product of schema.org's vocabulary.
    fn data(&self) -> Value {
        let good = &self.good;
        let offer = |variant: &Variant| {
            let stock = if self.in_stock(variant) { "InStock" } else { "OutOfStock" };
            json!({
                "@type": "Offer",
                "sku": variant.id.to_string(),
                "price": dollars(variant.price),
                "priceCurrency": "USD",
                "availability": format!("https://schema.org/{stock}"),
                "url": self.url,
            })
        };
        json!({
            "@context": "https://schema.org",
            "@type": "Product",
            "name": good.title,
            "description": good.description,
            "image": good.images,
            "url": self.url,
            "offers": good.variants.iter().map(offer).collect::<Vec<_>>(),
        })
    }
}

/// With two decimals.
fn dollars(amount: Usdc) -> String {
    let cents = amount.micro() / 10_000;
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn link(url: &str, text: &str) -> String {
    format!("<li><a rel=\"nofollow noreferrer\" href=\"{}\">{}</a>", escaped(url), escaped(text))
}

/// Escapes text for elements and quoted attributes.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    // Line breaks stay; other letters that show nothing are shown by their numbers.
    for (index, line) in text.lines().enumerate() {
        if index > 0 {
            html.push('\n');
        }
        for letter in with_code_points(line).chars() {
            match letter {
                '&' => html.push_str("&amp;"),
                '<' => html.push_str("&lt;"),
                '>' => html.push_str("&gt;"),
                '"' => html.push_str("&quot;"),
                '\'' => html.push_str("&#39;"),
                letter => html.push(letter),
            }
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_words_stay_words() {
        let hostile = "</script><script>alert(1)</script>\"><img src=x onerror=alert(1)>";
        let good = Good {
            title: hostile.to_owned(),
            description: format!("{hostile}\nnext line"),
            images: vec!["https://images.example/a'b.png".to_owned()],
            ..super::super::price::tests::good()
        };
        let page = Page { good, left: BTreeMap::from([(1, 3)]), url: "https://tools.example/goods/x".to_owned() };
        let html = page.html();
        assert_eq!(html.matches("<script").count(), 1, "{html}");
        assert_eq!(html.matches("</script").count(), 1, "{html}");
        assert!(!html.contains("<img") && html.contains("next line") && html.contains("19.99"), "{html}");
        let data = html.split("ld+json\">").nth(1).and_then(|rest| rest.split("</script>").next()).unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!((&data["name"], &data["offers"][0]["price"]), (&json!(hostile), &json!("19.99")));
    }
}
