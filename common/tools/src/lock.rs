//! Locks that jobs hold: one job at a time works on a thing (a site, a browser's profile).
//!
//! A lock's row names its job, and is free when that job has ended. So nothing has to be written when a job ends or dies. It is
//! taken in the transaction that claims the job ([`crate::spec::ToolSpec::claims`]). A call whose money arrived first may be
//! claimed without it; the work therefore looks whether it has the lock, and ends on the condition that it still has it.

use base::clock::Timestamp;
use base::ids::RequestId;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

/// A row is kept for so long after its lock was taken. No job is open longer.
const KEPT_SECS: i64 = 400 * 24 * 3600;

#[derive(Serialize, Deserialize)]
struct Row {
    job: RequestId,
    /// Unix seconds.
    expires: i64,
}

/// As much of a job as a lock needs.
#[derive(Deserialize)]
struct Job {
    open: Option<String>,
}

/// The write that takes a lock for this job, on the condition that nobody was faster.
///
/// # Errors
/// `Ok(Err(job))` with the open job that holds the lock.
pub async fn take(
    db: &Db,
    table: &str,
    key: Key,
    job: RequestId,
    now: Timestamp,
) -> Result<Result<Write, RequestId>, StoreError> {
    let before: Option<Row> = db.get_latest(table, key.clone()).await?;
    if let Some(before) = &before
        && before.job != job
        && is_open(db, before.job).await?
    {
        return Ok(Err(before.job));
    }
    let put = Write::put(table, key, &Row { job, expires: now.secs() + KEPT_SECS })?;
    Ok(Ok(match before {
        None => put.only_if_new(),
        Some(before) => put.only_if("#job = :before").bind("before", before.job)?,
    }))
}

/// Whether this job has the lock.
pub async fn is_held(db: &Db, table: &str, key: Key, job: RequestId) -> Result<bool, StoreError> {
    let row: Option<Row> = db.get_latest(table, key).await?;
    Ok(row.is_some_and(|row| row.job == job))
}

/// A check for the transaction that ends the job: it still has the lock.
pub fn held(table: &str, key: Key, job: RequestId) -> Result<Write, StoreError> {
    Write::check(table, key).only_if("#job = :job").bind("job", job)
}

/// The open job that holds the lock, if there is one.
pub async fn holder(db: &Db, table: &str, key: Key) -> Result<Option<RequestId>, StoreError> {
    let row: Option<Row> = db.get_latest(table, key).await?;
    match row {
        Some(row) if is_open(db, row.job).await? => Ok(Some(row.job)),
        _ => Ok(None),
    }
}

/// Whether this job goes on.
pub async fn is_open(db: &Db, job: RequestId) -> Result<bool, StoreError> {
    let job: Option<Job> = db.get_latest(&db.tables.jobs, Key::of_job(job)).await?;
    Ok(job.is_some_and(|job| job.open.is_some()))
}
