//! Screenshots: stored next to the result of their tool, and shown through links that expire.

use std::time::Duration;

use base::ids::RequestId;
use platform::store::blob::Access;
use platform::store::{Blobs, StoreError};
use serde_json::{Value, json};

/// The only tool whose results have screenshots.
pub const TOOL: &str = "web_read";
const MEMBER: &str = "screenshot_url";
/// How long a link is valid; every poll creates a new one.
const LINK_VALID: Duration = Duration::from_secs(3600);

fn key(request_id: RequestId) -> String {
    format!("results/{request_id}.png")
}

/// Stores a PNG and marks the result. [`link`] adds the link when the result is read.
///
/// # Errors
/// If it cannot be stored.
pub async fn keep(
    blobs: &dyn Blobs,
    request_id: RequestId,
    png: Vec<u8>,
    result: &mut Value,
) -> Result<(), StoreError> {
    blobs.put(&key(request_id), "image/png", png).await?;
    result[MEMBER] = Value::Null;
    Ok(())
}

/// Adds a link to the screenshot to a result of [`TOOL`] that has one.
///
/// # Errors
/// If no link can be made.
pub fn link(blobs: &dyn Blobs, request_id: RequestId, result: &mut Value) -> Result<(), StoreError> {
    if result.get(MEMBER).is_some() {
        let access = Access::Get { content_type: "image/png", file_name: "screenshot.png" };
        result[MEMBER] = json!(blobs.url(&key(request_id), access, LINK_VALID)?);
    }
    Ok(())
}
