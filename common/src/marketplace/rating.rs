//! Ratings: once, by the buyer, of a completed job. The job's mark and the soul's sum change in one transaction, so the
//! average is exact however many rate at once.

use super::index;
use super::ranking;
use super::reputation;
use super::soul::{self, Slug};
use super::totals::{self, Change};
use crate::clock::Timestamp;
use crate::http::{ApiError, MarketError};
use crate::jobs::job::{Job, Outcome};
use crate::store::{Db, StoreError, Write, WriteError};

/// Rates a job, 1 to 5. A bare address may rate, as the mission has it, and anybody can write one: so a rating that is
/// proven to be the buyer's takes the place of one that is not, once.
///
/// # Errors
/// 400 `job_not_completed`, 400 `already_rated`; 403 for a soul that bought from itself.
pub async fn rate(
    db: &Db,
    job: &Job,
    rating: u8,
    review: Option<&str>,
    proven: bool,
    now: Timestamp,
) -> Result<(), ApiError> {
    let Some(sold) = &job.sold else { return Err(ApiError::NotFound) };
    if reputation::buyer(db, &sold.soul, job.agent).await?.linked {
        return Err(MarketError::Forbidden("a soul's own wallet does not rate it").into());
    }
    if job.outcome != Some(Outcome::Completed) {
        return Err(MarketError::JobNotCompleted.into());
    }
    let replaced = job.rating.filter(|_| proven && !job.rating_proven);
    if job.rating.is_some() && replaced.is_none() {
        return Err(MarketError::AlreadyRated.into());
    }
    let expression = match review {
        Some(_) => "SET #rating = :rating, #rated_at = :now, #rating_proven = :proven, #review = :review",
        None => "SET #rating = :rating, #rated_at = :now, #rating_proven = :proven REMOVE #review",
    };
    let unrated = match replaced {
        Some(_) => "#rating = :replaced AND #rating_proven = :no",
        None => "attribute_not_exists(#rating)",
    };
    let mut mark = Write::update(&db.tables.jobs, job.key(), expression)
        .only_if(&format!("#outcome = :completed AND {unrated}"))
        .bind("completed", Outcome::Completed)?
        .bind("rating", rating)?
        .bind("proven", proven)?
        .bind("now", now)?;
    if let Some(replaced) = replaced {
        mark = mark.bind("replaced", replaced)?.bind("no", false)?;
    }
    let (sum, count) = (i64::from(rating) - i64::from(replaced.unwrap_or_default()), i64::from(replaced.is_none()));
    if let Some(review) = review {
        mark = mark.bind("review", review)?;
    }
    // The average of all is shown, and the soul is ranked by what its raters paid.
    let weight = i64::try_from(ranking::weight_of_vote(sold.split.fee)).map_err(StoreError::new)?;
    let added = "ADD #rating_sum :sum, #rating_count :count, #vote_stars :stars, #vote_weight :weight";
    let add = Write::update(&db.tables.souls, soul::key(&sold.soul), added)
        .only_if("attribute_exists(#pk)")
        .bind("sum", sum)?
        .bind("count", count)?
        .bind("stars", sum * weight)?
        .bind("weight", count * weight)?;
    let counted = Change { rating_sum: sum, rating_count: count, ..Change::default() };
    let slug: Slug = sold.soul.parse().map_err(StoreError::new)?;
    let found = index::pending(db, &slug, now)?;
    let mut writes = vec![mark, add, found];
    if !counted.is_empty() {
        writes.push(totals::add(db, &sold.soul, &counted)?);
    }
    match db.transact(&writes).await {
        Ok(()) => Ok(()),
        Err(WriteError::Refused(_)) => Err(MarketError::AlreadyRated.into()),
        Err(WriteError::Failed(error)) => Err(ApiError::Unavailable(error)),
    }
}
