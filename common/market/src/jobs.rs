//! A job as the marketplace shows it to its buyer and its seller.

use base::clock::Timestamp;
use base::money::Usdc;
use gate::app::App;
use gate::jobs::engine::read_result;
use gate::jobs::job::{Job, Outcome, Status};
use gate::limits;
use platform::http::{ApiError, Params};
use platform::store::{Blobs, Db, StoreError};
use serde_json::{Value, json};
use tools::files::{self, Reader};

use super::party::Party;

/// How much of a result is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The whole result (`full=true`).
    All,
    Beginning,
    /// As in a list of jobs.
    Preview,
}

impl Shown {
    /// Limits in characters and in bytes of JSON (a control character takes six bytes).
    fn most(self) -> (usize, usize) {
        match self {
            Shown::All => (usize::MAX, usize::MAX),
            Shown::Beginning => (50_000, 64 * 1024),
            Shown::Preview => (200, 800),
        }
    }
}

/// The status of a job in the marketplace's terms.
pub fn status(job: &Job, now: Timestamp) -> Status {
    match (job.status(), job.handed_until) {
        // Waiting for the seller's worker: not claimed, or the lease ran out.
        (Status::Processing, Some(_)) if !job.is_claimed(now) => Status::Pending,
        (status, _) => status,
    }
}

/// Reads `full` from a query.
pub fn asks_for_all(query: Option<&str>) -> Result<bool, ApiError> {
    let mut params = Params::of(query);
    let full = params.flag("full").unwrap_or_default();
    params.check().map(|()| full)
}

/// The result, if there is one and it has not expired.
async fn result(blobs: &dyn Blobs, job: &Job) -> Result<Option<Value>, StoreError> {
    match (&job.result, job.outcome) {
        (Some(stored), Some(Outcome::Completed)) => read_result(blobs, stored).await,
        _ => Ok(None),
    }
}

/// Whether a party may see the job's files. Both may once the job is completed. Files of a failed job are visible to
/// the seller only, and not if paid tools were used: their answers belong to the buyer.
pub fn may_see_files(job: &Job, party: Party) -> bool {
    job.outcome == Some(Outcome::Completed) || party == Party::Seller && job.used.tools == Usdc::ZERO
}

/// The `job` object of a response.
pub async fn view(
    db: &Db,
    blobs: &dyn Blobs,
    job: &Job,
    party: Party,
    shown: Shown,
    now: Timestamp,
) -> Result<Value, ApiError> {
    let mut view = summary(job, now);
    let result = result(blobs, job).await?;
    if let Some(result) = &result {
        let text = result["result"].as_str().unwrap_or_default();
        let shown = cut(text, shown.most());
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

/// The `job` object, counted against its reader's daily limit. Over the limit, it holds only a preview of the result.
///
/// # Errors
/// 429 over the limit if the full result was asked for.
pub async fn told(app: &App, job: &Job, party: Party, reader: Reader, full: bool) -> Result<Value, ApiError> {
    let (db, blobs, now) = (&app.db, &*app.blobs, app.clock.now());
    let told = view(db, blobs, job, party, if full { Shown::All } else { Shown::Beginning }, now).await?;
    match limits::take_result(app, job, reader, || told.to_string().len()).await {
        Ok(()) => Ok(told),
        Err(refused) if full => Err(refused),
        Err(_) => view(db, blobs, job, party, Shown::Preview, now).await,
    }
}

/// A job's row in a seller's list.
pub async fn row(blobs: &dyn Blobs, job: &Job, now: Timestamp) -> Result<Value, StoreError> {
    let mut row = summary(job, now);
    let result = result(blobs, job).await?;
    let text = result.as_ref().and_then(|result| result["result"].as_str());
    let preview = text.map(|text| cut(text, Shown::Preview.most()));
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
        view["rating_proven"] = json!(job.rating_proven);
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
        view["credited_usdc"] = json!(credited.to_string());
        view["kept_usdc"] = json!(job.kept.unwrap_or_default().to_string());
    }
    view
}

/// The beginning of a text, limited in characters and in bytes of JSON.
fn cut(text: &str, (chars, mut bytes): (usize, usize)) -> &str {
    let too_much = text.char_indices().enumerate().find(|(count, (_, letter))| {
        let left = bytes.checked_sub(in_json(*letter));
        bytes = left.unwrap_or_default();
        *count == chars || left.is_none()
    });
    too_much.map_or(text, |(_, (end, _))| &text[..end])
}

/// Bytes of a character in a JSON string written by `serde_json`.
fn in_json(letter: char) -> usize {
    match letter {
        '"' | '\\' | '\u{8}' | '\u{c}' | '\n' | '\r' | '\t' => 2,
        '\0'..'\u{20}' => 6,
        _ => letter.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("äöü", (2, 99)), "äö");
        assert_eq!(cut("äöü", (3, 99)), "äöü");
        assert_eq!(cut("äöü", (9, 5)), "äö");
        assert_eq!(cut("", (3, 9)), "");
    }

    #[test]
    fn previews_are_bounded_in_bytes_of_json() {
        for letter in ('\0'..'\u{a0}').chain(['ä', '€', '🦀', '\u{2028}']) {
            assert_eq!(json!(letter.to_string()).to_string().len() - 2, in_json(letter), "{letter:?}");
        }
        let sent = |shown: Shown| json!(cut(&"\u{1}".repeat(100_000), shown.most())).to_string().len();
        assert_eq!((sent(Shown::Beginning), sent(Shown::Preview)), (65_534, 800));
    }
}
