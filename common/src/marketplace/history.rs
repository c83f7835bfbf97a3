//! The history of a soul's text: which version was published when, and what it hashes to.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::soul::{self, Soul};
use super::view;
use crate::app::App;
use crate::http::ApiError;

const USUAL: u32 = 20;
const MOST: u32 = 100;

/// A page of the history, the newest first: `limit` versions before the version `before`.
pub async fn page(app: &App, soul: &Soul, query: &HashMap<String, String>) -> Result<Value, ApiError> {
    let limit = number(query, "limit", 1, MOST)?.unwrap_or(USUAL);
    let before = number(query, "before", 1, u32::MAX)?;
    // The next version there will be is before none.
    let from = before.unwrap_or(u32::MAX).min(soul.version.saturating_add(1));
    let versions = soul::versions(&app.db, soul.slug.as_str(), from, limit as usize).await?;
    let has_more = versions.last().is_some_and(|last| last.version > 1);
    let shown: Vec<Value> = versions.iter().map(view::version).collect();
    Ok(json!({
        "slug": soul.slug,
        "version": soul.version,
        "versions": shown,
        "pagination": {"limit": limit, "before": before, "has_more": has_more},
    }))
}

fn number(query: &HashMap<String, String>, name: &str, min: u32, max: u32) -> Result<Option<u32>, ApiError> {
    let Some(text) = query.get(name) else { return Ok(None) };
    let number = text.parse::<u32>().ok().filter(|number| (min..=max).contains(number));
    number.map(Some).ok_or_else(|| ApiError::field(name, format!("must be a whole number from {min} to {max}")))
}
