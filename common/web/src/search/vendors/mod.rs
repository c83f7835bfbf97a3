//! Search providers. Adding one means adding one file here (`docs/SEARCH.md`): `build.rs` generates [`ALL`] from the
//! folder.

use platform::providers::{Amount, Ask};
use serde_json::Value;

use super::{Hit, Query};

include!(concat!(env!("OUT_DIR"), "/search_vendors.rs"));

/// One provider: how to ask it and how to read its answer. Answers are untrusted; the caller of `read` cleans and shortens
/// every string, so an adapter does not have to.
pub struct Vendor {
    /// The name used in `SEARCH_PROVIDERS`, `PROVIDER_KEYS` and `PROVIDER_URLS`.
    pub name: &'static str,
    /// Scheme and host; `PROVIDER_URLS` overrides it. Empty for self-hosted providers, which need `PROVIDER_URLS`.
    pub origin: &'static str,
    /// Whether `ask` needs a key; if not, it gets an empty string.
    pub needs_key: bool,
    /// What it charges for a search.
    pub charge: Amount,
    pub ask: fn(&Query, key: &str) -> Ask,
    /// The hits, best first; `None` if the answer does not have the documented shape.
    pub read: fn(&Value) -> Option<Answer>,
}

/// The answer of a provider.
#[derive(Debug, Default, PartialEq)]
pub struct Answer {
    pub hits: Vec<Hit>,
    /// Total number of hits, if the provider reports it.
    pub total: Option<u64>,
    /// The provider's own id of the request.
    pub request_id: Option<String>,
}

pub fn find(name: &str) -> Option<&'static Vendor> {
    ALL.iter().copied().find(|vendor| vendor.name == name)
}

/// A string member that is not empty.
pub fn text(of: &Value, name: &str) -> Option<String> {
    of[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The text, percent-encoded for a query string.
pub fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
