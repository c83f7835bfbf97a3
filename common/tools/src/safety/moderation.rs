//! The client of the moderation server, if one is configured. Its callers decide what to do if it does not answer.

use std::sync::Arc;

use platform::config::{Config, ModerationConfig};
use platform::net::PlainHttp;
use platform::store::{BoxFuture, StoreError};
use serde_json::{Value, json};

/// Checks texts before they are published or sent.
pub trait Moderate: Send + Sync {
    /// The categories that the texts together violate; empty if they are harmless.
    fn judge<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;
}

/// The configured model.
pub type Moderation = Arc<dyn Moderate>;

/// The configured model, if any.
pub fn configured(config: &Config, http: &PlainHttp) -> Option<Moderation> {
    let config = config.moderation.clone()?;
    Some(Arc::new(ModerationsApi { http: http.clone(), config }))
}

/// `POST /v1/moderations` as documented by OpenAI and supported by several servers
/// (platform.openai.com/docs/api-reference/moderations, read 2026-11).
struct ModerationsApi {
    http: PlainHttp,
    config: ModerationConfig,
}

impl Moderate for ModerationsApi {
    fn judge<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let url = format!("{}/v1/moderations", self.config.url);
            let key = self.config.key.as_ref().map(|key| key.expose());
            let asked = json!({"model": self.config.model, "input": texts});
            let (status, answer) = self.http.post_json(&url, key, &asked).await.map_err(StoreError::new)?;
            match (status, answer["results"].as_array()) {
                (200, Some(results)) if results.len() == texts.len() => Ok(categories(results)),
                (status, _) => Err(StoreError::new(format_args!("the moderation model answered {status}"))),
            }
        })
    }
}

/// The categories of flagged results, without duplicates. A flag without a category becomes `flagged`.
fn categories(results: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    for result in results.iter().filter(|result| result["flagged"] == true) {
        let named = result["categories"].as_object().into_iter().flatten();
        let named: Vec<String> = named.filter(|(_, on)| **on == true).map(|(name, _)| name.clone()).collect();
        found.extend(if named.is_empty() { vec!["flagged".to_owned()] } else { named });
    }
    found.sort_unstable();
    found.dedup();
    found
}
