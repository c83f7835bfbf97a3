//! Search providers: one file each, and nothing else to touch (`docs/SEARCH.md`). `build.rs` lists the files.

use platform::providers::Ask;
use serde_json::Value;

use super::{Hit, Query};

include!(concat!(env!("OUT_DIR"), "/search_vendors.rs"));

/// How one provider is asked, and how its answer is read. What an answer says is a stranger's text: it is made plain and
/// short by whoever calls `read`, so that a file of this folder cannot forget it.
pub struct Vendor {
    /// As in `SEARCH_PROVIDERS`, `PROVIDER_KEYS` and `PROVIDER_URLS`.
    pub name: &'static str,
    /// Scheme and host, unless `PROVIDER_URLS` names another. Empty for what everybody runs for themselves.
    pub origin: &'static str,
    /// Whether it is asked with a key, which is then handed to `ask`; otherwise that gets an empty text.
    pub needs_key: bool,
    pub ask: fn(&Query, key: &str) -> Ask,
    /// The answer's hits, best first; `None` if this is not what the provider's documentation says an answer is.
    pub read: fn(&Value) -> Option<Answer>,
}

/// What a provider answered.
#[derive(Debug, Default, PartialEq)]
pub struct Answer {
    pub hits: Vec<Hit>,
    /// How many there are in all, where it says so.
    pub total: Option<u64>,
    /// Its own name for the question.
    pub request_id: Option<String>,
}

/// The provider of this name.
pub fn find(name: &str) -> Option<&'static Vendor> {
    ALL.iter().copied().find(|vendor| vendor.name == name)
}

/// A text member, where there is one that is not empty.
pub fn text(of: &Value, name: &str) -> Option<String> {
    of[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The question as a query's value.
pub fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
