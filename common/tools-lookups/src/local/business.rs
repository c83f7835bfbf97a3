//! A local business in one form for all providers.

use base::tool_result::Source;
use base::untrusted_text::visible;
use platform::config::Capability;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::{ToolError, Toolbox, Unavailable};

use super::{google, overpass};

/// A provider's record of a business. Strings are untrusted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Business {
    pub id: String,
    pub name: String,
    pub website: Option<String>,
    pub phone: Option<String>,
    pub address: Option<String>,
    pub category: Option<String>,
    /// `None` if the provider does not say.
    pub is_open: Option<bool>,
    /// Whether it is known to belong to a chain.
    pub is_chain: bool,
    pub socials: Vec<String>,
    pub rating: Option<f64>,
    pub review_count: Option<u64>,
    pub latitude: Option<f64>,
    pub longitude: Option<f64>,
}

impl Business {
    /// The website's host without `www.`. Other tools look companies up by it.
    pub fn domain(&self) -> Option<String> {
        let url = url::Url::parse(self.website.as_deref()?).ok()?;
        Some(url.host_str()?.trim_start_matches("www.").to_lowercase())
    }

    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id, "name": self.name, "domain": self.domain(), "website": self.website, "phone": self.phone,
            "address": self.address, "category": self.category,
            "operating_status": self.is_open.map(|open| if open { "open" } else { "closed" }),
            "is_chain": self.is_chain.then_some(true), "socials": self.socials, "rating": self.rating,
            "review_count": self.review_count, "latitude": self.latitude, "longitude": self.longitude,
        })
    }
}

/// JSON Schema of [`Business::to_json`].
pub fn schema() -> Value {
    let text = json!({"type": ["string", "null"]});
    let number = json!({"type": ["number", "null"]});
    let mut properties = Map::new();
    for name in ["domain", "website", "phone", "address", "category", "operating_status"] {
        properties.insert(name.to_owned(), text.clone());
    }
    for name in ["rating", "review_count", "latitude", "longitude"] {
        properties.insert(name.to_owned(), number.clone());
    }
    properties.insert("id".to_owned(), json!({"type": "string"}));
    properties.insert("name".to_owned(), json!({"type": "string"}));
    properties.insert("is_chain".to_owned(), json!({"enum": [true, null]}));
    properties.insert("socials".to_owned(), json!({"type": "array", "items": {"type": "string"}}));
    let required: Vec<String> = properties.keys().cloned().collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// An untrusted string as one short line, without invisible characters.
pub fn line(value: Option<&Value>) -> Option<String> {
    let text = visible(value?.as_str()?);
    let text: String = text.trim().chars().take(300).collect();
    (!text.is_empty()).then_some(text)
}

/// The same, if it is a web address.
pub fn web(value: Option<&Value>) -> Option<String> {
    line(value).filter(|text| text.starts_with("http") && url::Url::parse(text).is_ok())
}

/// The businesses, their provider, and the number of requests made.
pub struct Found {
    pub businesses: Vec<Business>,
    pub source: Source,
    pub calls: u64,
    pub attribution: &'static str,
}

/// Asks the configured providers in order until one answers. Searches for words at a place.
pub async fn find(
    toolbox: &Toolbox,
    words: &str,
    place: &str,
    most: usize,
    deadline: Instant,
) -> Result<Found, ToolError> {
    let mut failure = None;
    for name in toolbox.config.providers.order(Capability::Places) {
        let found = match name.as_str() {
            google::NAME => google::find(&toolbox.outbound, words, place, most, deadline).await,
            overpass::NAME => overpass::find(&toolbox.outbound, words, place, most, deadline).await,
            _ => continue,
        };
        match found {
            Ok(found) => return Ok(found),
            Err(error) => failure = Some(error.of(name)),
        }
    }
    Err(failure.unwrap_or_else(|| {
        let message = "no provider of local businesses is configured here (PLACES_PROVIDERS: google_places, overpass)";
        ToolError::unavailable(Unavailable::ProviderNotConfigured, message)
    }))
}
