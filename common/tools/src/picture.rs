//! Pictures of pages: kept beside the result of the tool that took them, and shown by links that expire.

use std::time::Duration;

use base::ids::RequestId;
use platform::store::blob::Access;
use platform::store::{Blobs, StoreError};
use serde_json::{Value, json};

/// The wire name of the tool whose results have pictures.
pub const TOOL: &str = "web_read";
const MEMBER: &str = "screenshot_url";
/// How long a link is valid; each poll makes a new one.
const LINK_VALID: Duration = Duration::from_secs(3600);

fn key(request_id: RequestId) -> String {
    format!("results/{request_id}.png")
}

/// Keeps a PNG, and marks the result as having one. [`link`] fills in the link when the result is read.
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

/// Puts a link to the picture into a result of [`TOOL`] that has one.
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
