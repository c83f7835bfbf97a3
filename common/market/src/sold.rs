//! Lists of a soul's jobs, newest first. The index keeps open, completed and failed jobs in separate partitions. A page
//! reads at most as many rows of each as its offset and limit need. A page of pending or processing jobs reads up to
//! `OPEN_READ` rows.

use std::collections::HashSet;

use base::clock::Timestamp;
use gate::jobs::job::{self, Job, Outcome, RETENTION, Status};
use platform::store::db::Query;
use platform::store::table::SOLD_INDEX;
use platform::store::{Db, Key, StoreError};
use serde::Deserialize;

use super::jobs;

/// Largest offset of a list. Older jobs can be listed by status or read in the statement.
pub const MAX_OFFSET: usize = 10_000;
/// Most open jobs that are read to list pending or processing ones. The index does not tell these apart; their leases
/// do.
const OPEN_READ: usize = 1_000;
const LOADED_AT_ONCE: usize = 100;

/// The requested page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub limit: usize,
    pub offset: usize,
    pub status: Option<Status>,
}

/// A page of jobs.
pub struct Found {
    pub jobs: Vec<Job>,
    pub has_more: bool,
}

#[derive(Deserialize)]
struct Row {
    pk: String,
    created: Timestamp,
}

/// A page of a soul's jobs, newest first.
pub async fn of_soul(db: &Db, soul: &str, page: &Page, now: Timestamp) -> Result<Found, StoreError> {
    match page.status {
        Some(status @ (Status::Pending | Status::Processing)) => {
            let rows = rows(db, soul, None, OPEN_READ, now).await?;
            let wanted = page.offset + page.limit;
            let mut open = Vec::new();
            for rows in rows.chunks(LOADED_AT_ONCE) {
                open.extend(load(db, rows, now).await?.into_iter().filter(|job| jobs::status(job, now) == status));
                if open.len() > wanted {
                    break;
                }
            }
            let has_more = open.len() > wanted;
            let jobs = open.into_iter().skip(page.offset).take(page.limit).collect();
            Ok(Found { jobs, has_more })
        }
        status => {
            let wanted: &[Option<Outcome>] = match status {
                Some(Status::Completed) => &[Some(Outcome::Completed)],
                Some(Status::Failed) => &[Some(Outcome::Failed)],
                _ => &[None, Some(Outcome::Completed), Some(Outcome::Failed)],
            };
            let mut all = Vec::new();
            for outcome in wanted {
                all.extend(rows(db, soul, *outcome, page.offset + page.limit + 1, now).await?);
            }
            // A job that ends between two queries appears in both results.
            let mut seen = HashSet::new();
            all.retain(|row| seen.insert(row.pk.clone()));
            all.sort_by_key(|row| std::cmp::Reverse(row.created));
            let has_more = all.len() > page.offset + page.limit;
            let shown: Vec<Row> = all.into_iter().skip(page.offset).take(page.limit).collect();
            Ok(Found { jobs: load(db, &shown, now).await?, has_more })
        }
    }
}

/// Rows of jobs that are not expired, so that `has_more` never promises more than can be shown.
async fn rows(
    db: &Db,
    soul: &str,
    outcome: Option<Outcome>,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<Row>, StoreError> {
    let kept = "#sold_by = :sold_by AND #created >= :since";
    let query = Query::new(&db.tables.jobs, kept, limit).index(SOLD_INDEX.name).newest_first();
    // In whole seconds, as in `Job::is_forgotten`.
    let since = Timestamp::from_secs(now.secs() + 1).minus(RETENTION);
    db.query(query.bind("sold_by", job::sold_by(soul, outcome))?.bind("since", since)?).await
}

/// The jobs of these rows, without expired ones.
async fn load(db: &Db, rows: &[Row], now: Timestamp) -> Result<Vec<Job>, StoreError> {
    let keys: Vec<Key> = rows.iter().filter_map(|row| job::request_id_of(&row.pk)).map(job::key).collect();
    let jobs: Vec<Option<Job>> = db.batch_get(&db.tables.jobs, &keys, false).await?;
    Ok(jobs.into_iter().flatten().filter(|job| !job.is_forgotten(now)).collect())
}
