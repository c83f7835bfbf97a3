//! Screenshots: stored next to the result of their tool. Whoever shows the result makes a link to it.

use base::ids::RequestId;
use platform::store::{Blobs, StoreError};
use serde_json::Value;

/// The only tool whose results have screenshots.
pub const TOOL: &str = "web_read";
/// The member of a result that has a screenshot: null where it is stored.
pub const MEMBER: &str = "screenshot_url";
pub const CONTENT_TYPE: &str = "image/png";
pub const FILE_NAME: &str = "screenshot.png";

/// The blob of a job's screenshot.
pub fn key(request_id: RequestId) -> String {
    format!("results/{request_id}.png")
}

/// Stores a PNG and marks the result.
///
/// # Errors
/// If it cannot be stored.
pub async fn keep(
    blobs: &dyn Blobs,
    request_id: RequestId,
    png: Vec<u8>,
    result: &mut Value,
) -> Result<(), StoreError> {
    blobs.put(&key(request_id), CONTENT_TYPE, png).await?;
    result[MEMBER] = Value::Null;
    Ok(())
}
