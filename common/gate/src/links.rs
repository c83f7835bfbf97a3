//! Links to files in the blob store.
//!
//! The store serves whoever has a link, as often as it is asked until the link expires, and counts nothing. So the file's size
//! counts for its owner when the link is made, and the link is valid only as long as a download needs to begin.

use std::time::Duration;

use base::ids::AgentId;
use platform::http::ApiError;
use platform::store::blob::Access;
use serde_json::{Value, json};
use tools::picture;

use crate::app::App;
use crate::jobs::Job;
use crate::limits::{self, Class, Subject};

/// How long a link is valid. The store looks only when a download begins.
pub const VALID: Duration = Duration::from_secs(60);

/// A link to a file, which counts against its owner's `files` limit. `None` if the file is no longer stored.
///
/// # Errors
/// 429 if the owner's limit is used up.
pub async fn to_file(
    app: &App,
    owner: AgentId,
    key: &str,
    content_type: &str,
    file_name: &str,
) -> Result<Option<String>, ApiError> {
    let Some(size) = app.blobs.size(key).await? else { return Ok(None) };
    let bytes = usize::try_from(size).unwrap_or(usize::MAX);
    limits::take_bytes(app, Subject::Agent(owner), Class::Files, bytes).await?;
    Ok(Some(app.blobs.url(key, Access::Get { content_type, file_name }, VALID)?))
}

/// Adds the link to a job's screenshot to its result, if there is one. Over its owner's limit the member stays null, because the
/// rest of the result is told all the same.
///
/// # Errors
/// If the blob store fails.
pub async fn add_picture(app: &App, job: &Job, result: &mut Value) -> Result<(), ApiError> {
    if job.tool != picture::TOOL || result.get(picture::MEMBER).is_none() {
        return Ok(());
    }
    let key = picture::key(job.request_id);
    match to_file(app, job.agent, &key, picture::CONTENT_TYPE, picture::FILE_NAME).await {
        Ok(url) => result[picture::MEMBER] = json!(url),
        Err(ApiError::RateLimited(_)) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}
