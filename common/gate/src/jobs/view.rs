//! A job as polling and pushes show it.

use platform::http::ApiError;
use platform::store::{Blobs, StoreError};
use serde_json::{Value, json};

use super::engine::read_result;
use super::job::Job;

/// The push message about a job: a subset of the members of [`poll`]. The progress is included while the work runs.
pub async fn push(blobs: &dyn Blobs, job: &Job) -> Result<Value, StoreError> {
    let mut message = json!({
        "request_id": job.request_id,
        "status": job.status(),
        "updated_at": job.updated.to_string(),
    });
    if let Some(stored) = &job.result
        && let Some(result) = read_result(blobs, stored).await?
    {
        message["result"] = result;
    }
    if let Some(error) = &job.error {
        message["error"] = json!(error.message);
        message["error_code"] = json!(error.code);
    }
    if let (Some(progress), None) = (&job.progress, job.outcome) {
        message["progress"] = json!(progress);
    }
    Ok(message)
}

/// What every view of a job for its owner begins with. Its amounts are those of [`ledger::cost`].
fn head(job: &Job) -> Value {
    let mut head = json!({
        "request_id": job.request_id,
        "tool": job.tool,
        "status": job.status(),
        "receipt_id": job.receipt_id,
        "settlement_status": job.settlement_status(),
        "amount_usdc": job.price.to_string(),
        "spent_usdc": job.cost().spent().to_string(),
        "created_at": job.created.to_string(),
        "updated_at": job.updated.to_string(),
    });
    if let Some(credited) = job.credited {
        head["credited_usdc"] = json!(credited.to_string());
        head["kept_usdc"] = json!(job.kept.unwrap_or_default().to_string());
    }
    head
}

/// A row of `GET /v1/requests`: neither input nor result.
pub fn listed(job: &Job) -> Value {
    let mut row = head(job);
    if job.sold.as_ref().is_some_and(|sold| sold.service.is_some()) {
        row["soul_job_id"] = json!(job.request_id.soul_job());
    }
    row
}

/// The body of `GET /v1/requests/{id}`. `result` is absent until there is one, because a known client treats a
/// falsy `result` as missing.
///
/// # Errors
/// 410 for a result that is no longer stored.
pub async fn poll(blobs: &dyn Blobs, job: &Job) -> Result<Value, ApiError> {
    let mut body = head(job);
    if let Some(stored) = &job.result {
        body["result"] = read_result(blobs, stored).await?.ok_or(ApiError::ResultExpired)?;
        body["provider"] = json!(stored.provider);
        body["provider_request_id"] = json!(stored.provider_request_id);
        body["mode"] = json!(stored.mode);
    }
    if let Some(error) = &job.error {
        let (category, status) = error.category();
        body["error"] = json!(error.message);
        body["error_code"] = json!(error.code);
        body["error_reason"] = json!(error.reason);
        body["error_category"] = json!(category);
        body["error_status"] = json!(status);
    }
    if let (Some(progress), None) = (&job.progress, job.outcome) {
        body["progress"] = json!(progress);
    }
    Ok(body)
}
