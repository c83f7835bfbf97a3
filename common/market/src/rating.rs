//! Ratings: one per completed job, by its buyer. The job and the soul's sums change in one transaction, so the average
//! is exact under concurrent ratings. Only ratings that are proven to come from the buyer count.

use base::clock::Timestamp;
use base::ids::AgentId;
use gate::jobs::job::{Job, Outcome};
use ledger::earning::Sold;
use platform::http::{ApiError, MarketError};
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::index;
use super::ranking;
use super::reputation;
use super::soul::{self, Slug};
use super::totals::{self, Change};

const OWN: &str = "a soul's own wallet may not rate it";
const PAID: &str = "a job that was bought after a payout of the soul to its buyer may not be rated";

/// The sums of one buyer's ratings of a soul.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Votes {
    rating_sum: i64,
    rating_count: i64,
    vote_stars: i64,
    vote_weight: i64,
    /// The buyer's wallet is the soul's own: no more ratings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    closed: bool,
}

fn votes_key(soul: &str, agent: AgentId) -> Key {
    Key::new(soul::partition(soul), format!("VOTES#{agent}"))
}

impl Votes {
    /// The members of a soul's record that hold ratings, for an update's `ADD`.
    pub const ADDED: &'static str = "#rating_sum :sum, #rating_count :count, #vote_stars :stars, #vote_weight :weight";

    /// Binds the values that subtract these ratings from a soul's record.
    pub fn taken_out(self, write: Write) -> Result<Write, StoreError> {
        let write = write.bind("sum", -self.rating_sum)?.bind("count", -self.rating_count)?;
        write.bind("stars", -self.vote_stars)?.bind("weight", -self.vote_weight)
    }
}

/// A buyer's ratings of a soul, and the writes that remove them and refuse further ones. The soul's own record is left
/// to the caller. Refused if the ratings change meanwhile.
pub async fn close(db: &Db, soul: &str, agent: AgentId) -> Result<(Votes, Vec<Write>), StoreError> {
    let found: Option<Votes> = db.get_latest(&db.tables.souls, votes_key(soul, agent)).await?;
    let closed = Write::put(&db.tables.souls, votes_key(soul, agent), &Votes { closed: true, ..Votes::default() })?;
    let Some(votes) = found else { return Ok((Votes::default(), vec![closed.only_if_new()])) };
    let same = closed.only_if("#rating_sum = :sum AND #rating_count = :count");
    let mut writes = vec![same.bind("sum", votes.rating_sum)?.bind("count", votes.rating_count)?];
    let change = Change { rating_sum: -votes.rating_sum, rating_count: -votes.rating_count, ..Change::default() };
    if !change.is_empty() {
        writes.push(totals::add(db, soul, &change)?);
    }
    Ok((votes, writes))
}

/// Rates a job, 1 to 5. A caller may name the buyer's address without proof. Such a rating is stored with the job and
/// does not count. A proven rating counts, and replaces an unproven one.
///
/// # Errors
/// 400 `job_not_completed`, 400 `already_rated`; 403 for a soul that bought from itself, or that had paid the
/// buyer before.
pub async fn rate(
    db: &Db,
    job: &Job,
    rating: u8,
    review: Option<&str>,
    proven: bool,
    now: Timestamp,
) -> Result<(), ApiError> {
    let Some(sold) = &job.sold else { return Err(ApiError::NotFound) };
    let buyer = reputation::buyer(db, &sold.soul, job.agent).await?;
    if buyer.linked {
        return Err(MarketError::Forbidden(OWN).into());
    }
    if buyer.was_paid_before(job.created) {
        return Err(MarketError::Forbidden(PAID).into());
    }
    if job.outcome != Some(Outcome::Completed) {
        return Err(MarketError::JobNotCompleted.into());
    }
    if job.rating.is_some() && (job.rating_proven || !proven) {
        return Err(MarketError::AlreadyRated.into());
    }
    let expression = match review {
        Some(_) => "SET #rating = :rating, #rated_at = :now, #rating_proven = :proven, #review = :review",
        None => "SET #rating = :rating, #rated_at = :now, #rating_proven = :proven REMOVE #review",
    };
    let unrated = match proven {
        true => "(attribute_not_exists(#rating) OR #rating_proven = :no)",
        false => "attribute_not_exists(#rating)",
    };
    let mut mark = Write::update(&db.tables.jobs, job.key(), expression)
        .only_if(&format!("#outcome = :completed AND {unrated}"))
        .bind("completed", Outcome::Completed)?
        .bind("rating", rating)?
        .bind("proven", proven)?
        .bind("now", now)?;
    if proven {
        mark = mark.bind("no", false)?;
    }
    if let Some(review) = review {
        mark = mark.bind("review", review)?;
    }
    let mut writes = vec![mark];
    if proven {
        writes.extend(count(db, sold, job.agent, rating, now)?);
    }
    match db.transact(&writes).await {
        Ok(()) => Ok(()),
        Err(refused) if refused.refused(1).is_some() => Err(MarketError::Forbidden(OWN).into()),
        Err(WriteError::Refused(_)) => Err(MarketError::AlreadyRated.into()),
        Err(WriteError::Failed(error)) => Err(ApiError::Unavailable(error)),
    }
}

/// The writes that count a rating. The first is refused if the buyer's wallet is the soul's own.
fn count(db: &Db, sold: &Sold, buyer: AgentId, rating: u8, now: Timestamp) -> Result<Vec<Write>, StoreError> {
    let stars = i64::from(rating);
    // The average shows all ratings alike; the ranking weights them by the fee that was paid.
    let weight = i64::try_from(ranking::weight_of_vote(sold.split.fee)).map_err(StoreError::new)?;
    let added = format!("ADD {}", Votes::ADDED);
    let add = |key: Key, condition: &str| {
        Write::update(&db.tables.souls, key, &added)
            .only_if(condition)
            .bind("sum", stars)?
            .bind("count", 1)?
            .bind("stars", stars * weight)?
            .bind("weight", weight)
    };
    let votes = add(votes_key(&sold.soul, buyer), "attribute_not_exists(#closed)")?;
    let soul = add(soul::key(&sold.soul), "attribute_exists(#pk)")?;
    let slug: Slug = sold.soul.parse().map_err(StoreError::new)?;
    let counted = Change { rating_sum: stars, rating_count: 1, ..Change::default() };
    Ok(vec![votes, soul, index::pending(db, &slug, now)?, totals::add(db, &sold.soul, &counted)?])
}
