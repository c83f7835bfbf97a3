//! Ratings: once, by the buyer, of a completed job. The job's mark and the soul's sum change in one transaction, so the
//! average is exact however many rate at once.

use super::index;
use super::soul::{self, Slug};
use super::totals::{self, Change};
use crate::clock::Timestamp;
use crate::http::{ApiError, MarketError};
use crate::jobs::job::{Job, Outcome};
use crate::store::{Db, StoreError, Write, WriteError};

/// Rates a job, 1 to 5.
///
/// # Errors
/// 400 `job_not_completed`, 400 `already_rated`.
pub async fn rate(db: &Db, job: &Job, rating: u8, review: Option<&str>, now: Timestamp) -> Result<(), ApiError> {
    let Some(sold) = &job.sold else { return Err(ApiError::NotFound) };
    if job.outcome != Some(Outcome::Completed) {
        return Err(MarketError::JobNotCompleted.into());
    }
    let expression = match review {
        Some(_) => "SET #rating = :rating, #rated_at = :now, #review = :review",
        None => "SET #rating = :rating, #rated_at = :now",
    };
    let mut mark = Write::update(&db.tables.jobs, job.key(), expression)
        .only_if("#outcome = :completed AND attribute_not_exists(#rating)")
        .bind("completed", Outcome::Completed)?
        .bind("rating", rating)?
        .bind("now", now)?;
    if let Some(review) = review {
        mark = mark.bind("review", review)?;
    }
    let add = Write::update(&db.tables.souls, soul::key(&sold.soul), "ADD #rating_sum :rating, #rating_count :one")
        .only_if("attribute_exists(#pk)")
        .bind("rating", rating)?
        .bind("one", 1)?;
    let counted = Change { rating_sum: i64::from(rating), rating_count: 1, ..Change::default() };
    let slug: Slug = sold.soul.parse().map_err(StoreError::new)?;
    let found = index::pending(db, &slug, now)?;
    match db.transact(&[mark, add, totals::add(db, &sold.soul, &counted)?, found]).await {
        Ok(()) => Ok(()),
        Err(WriteError::Refused(_)) => Err(MarketError::AlreadyRated.into()),
        Err(WriteError::Failed(error)) => Err(ApiError::Unavailable(error)),
    }
}
