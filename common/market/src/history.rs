//! The history of a soul's text: the versions with their dates and hashes.

use gate::app::App;
use platform::http::{ApiError, Params};
use serde_json::{Value, json};

use super::soul::{self, Soul};
use super::view;

const USUAL: usize = 20;
const MOST: usize = 100;

/// A page of the history, newest first: `limit` versions before the version `before`.
pub async fn page(app: &App, soul: &Soul, query: Option<&str>) -> Result<Value, ApiError> {
    let mut params = Params::of(query);
    let limit = params.integer("limit", 1, MOST).unwrap_or(USUAL);
    let before = params.integer("before", 1, u32::MAX as usize);
    params.check()?;
    // Without `before`, starts at the current version.
    let from = before.and_then(|before| before.try_into().ok()).unwrap_or(u32::MAX).min(soul.version.saturating_add(1));
    let versions = soul::versions(&app.db, soul.slug.as_str(), from, limit).await?;
    let has_more = versions.last().is_some_and(|last| last.version > 1);
    let shown: Vec<Value> = versions.iter().map(view::version).collect();
    Ok(json!({
        "slug": soul.slug,
        "version": soul.version,
        "versions": shown,
        "pagination": {"limit": limit, "before": before, "has_more": has_more},
    }))
}
