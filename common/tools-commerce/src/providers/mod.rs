//! Outside providers: who knows products, and who buys.

pub mod rye;
pub mod shopify;

use base::untrusted_text;
use serde_json::Value;

/// Who knows products, by their names in `PRODUCT_PROVIDERS`.
pub const CATALOGS: [&str; 1] = [shopify::NAME];
/// Who buys, by their names in `PURCHASE_PROVIDERS`.
pub const BUYERS: [&str; 1] = [rye::NAME];
/// What they charge.
pub const CHARGES: [platform::providers::Charge; 2] = [shopify::CHARGE, rye::CHARGE];

/// Longest text of a provider that is kept, in characters.
const MAX_TEXT: usize = 300;

/// A text of a provider, on one line.
fn text(value: &Value) -> Option<String> {
    let text = untrusted_text::visible(value.as_str()?);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text: String = text.chars().take(MAX_TEXT).collect();
    Some(text).filter(|text| !text.is_empty())
}
