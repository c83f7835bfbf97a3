//! A job as the marketplace shows it: to its buyer, and to its seller.

use serde_json::{Value, json};

use super::files;
use super::party::Party;
use crate::clock::Timestamp;
use crate::http::{ApiError, Params};
use crate::jobs::engine::read_result;
use crate::jobs::job::{Job, Outcome, Status};
use crate::money::Usdc;
use crate::store::{Blobs, Db, StoreError};

/// More of a result is only shown when it is asked for (`full=true`), in characters (contract §19).
pub const SHOWN_CHARS: usize = 50_000;
/// So much of a result is shown in a list, in characters.
const PREVIEW_CHARS: usize = 200;

/// Where a job is, in the marketplace's words.
pub fn status(job: &Job, now: Timestamp) -> Status {
    match (job.status(), job.handed_until) {
        // Waiting for its seller's worker, which has not taken it up or has let its lease run out.
        (Status::Processing, Some(_)) if !job.is_claimed(now) => Status::Pending,
        (status, _) => status,
    }
}

/// `full` of a query: whether the whole result is asked for.
pub fn asks_for_all(query: Option<&str>) -> Result<bool, ApiError> {
    let mut params = Params::of(query);
    let full = params.flag("full").unwrap_or_default();
    params.check().map(|()| full)
}

/// The result, if there is one and it is still kept.
async fn result(blobs: &dyn Blobs, job: &Job) -> Result<Option<Value>, StoreError> {
    match (&job.result, job.outcome) {
        (Some(stored), Some(Outcome::Completed)) => read_result(blobs, stored).await,
        _ => Ok(None),
    }
}

/// Whether a job's files are this party's. Their buyer's once the job is completed; what a failed one left is its seller's
/// only, and nobody's where paid tools were used for it: their answers belong to a buyer who was given a result.
pub fn may_see_files(job: &Job, party: Party) -> bool {
    job.outcome == Some(Outcome::Completed) || party == Party::Seller && job.used.tools == Usdc::ZERO
}

/// The object under `job` (mission document, "Soul job").
pub async fn view(
    db: &Db,
    blobs: &dyn Blobs,
    job: &Job,
    party: Party,
    full: bool,
    now: Timestamp,
) -> Result<Value, ApiError> {
    let mut view = summary(job, now);
    let result = result(blobs, job).await?;
    if let Some(result) = &result {
        let text = result["result"].as_str().unwrap_or_default();
        let shown = cut(text, if full { usize::MAX } else { SHOWN_CHARS });
        view["result_truncated"] = json!(shown.len() < text.len());
        view["has_full_result"] = json!(shown.len() < text.len());
        view["result"] = json!(shown);
        for name in ["model_used", "tokens_used", "tools_used"] {
            if let Some(value) = result.get(name) {
                view[name] = value.clone();
            }
        }
    }
    if result.is_none() && job.outcome == Some(Outcome::Completed) {
        view["result_expired"] = json!(true);
    }
    let count = match &result {
        Some(result) => result["files"].as_array().map_or(0, Vec::len),
        None if may_see_files(job, party) => files::of_job(db, job.request_id).await?.len(),
        None => 0,
    };
    if count > 0 {
        let url = format!("/v1/soul/jobs/{}/files", job.request_id.soul_job());
        view["output"] = json!({"files": {"count": count, "url": url}});
    }
    Ok(view)
}

/// What a job's row in a seller's list says (contract §19.19).
pub async fn row(blobs: &dyn Blobs, job: &Job, now: Timestamp) -> Result<Value, StoreError> {
    let mut row = summary(job, now);
    let result = result(blobs, job).await?;
    let text = result.as_ref().and_then(|result| result["result"].as_str());
    let preview = text.map(|text| cut(text, PREVIEW_CHARS));
    row["has_full_result"] = json!(preview.zip(text).is_some_and(|(preview, text)| preview.len() < text.len()));
    row["result_preview"] = json!(preview);
    for name in ["model_used", "tokens_used"] {
        row[name] = result.as_ref().map_or(Value::Null, |result| result[name].clone());
    }
    Ok(row)
}

fn summary(job: &Job, now: Timestamp) -> Value {
    let sold = job.sold.clone();
    let split = sold.as_ref().map(|sold| sold.split).unwrap_or_default();
    let mut view = json!({
        "id": job.request_id.soul_job(),
        "job_id": job.request_id,
        "status": status(job, now),
        "pricing": {
            "service_price": split.price().to_number(),
            "platform_fee": split.fee.to_number(),
            "seller_revenue": split.revenue.to_number(),
        },
        "service": sold.as_ref().and_then(|sold| sold.service.clone()),
        "seller": sold.as_ref().map(|sold| sold.soul.clone()),
        "created_at": job.created.to_string(),
        "updated_at": job.updated.to_string(),
    });
    if let Some(rating) = job.rating {
        view["rating"] = json!(rating);
    }
    if let Some(review) = &job.review {
        view["review"] = json!(review);
    }
    if let (Some(progress), None) = (&job.progress, job.outcome) {
        view["progress"] = json!(progress);
    }
    if let (Some(until), None) = (job.handed_until, job.outcome) {
        view["deadline"] = json!(until.to_string());
    }
    if let Some(error) = &job.error {
        view["error"] = json!({"code": error.code, "reason": error.reason, "message": error.message});
    }
    if let Some(credited) = job.credited {
        view["credited_usdc"] = credited.to_number();
        view["kept_usdc"] = job.kept.unwrap_or_default().to_number();
    }
    view
}

/// At most so many characters of a text.
fn cut(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("äöü", 2), "äö");
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("", 3), "");
    }
}
