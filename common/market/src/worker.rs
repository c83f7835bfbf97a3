//! Jobs of a seller's own worker: claim, progress, files, then complete or fail.
//!
//! ```text
//! handed over ──claim──► processing ──complete──► completed
//!      ▲                     │  └────fail───────► failed, the buyer is refunded
//!      └──the lease ran out──┘
//! past the deadline: failed, the buyer is refunded
//! stopped by the buyer's owner before a claim: failed, the buyer is refunded
//! ```
//!
//! The worker's lease only keeps two workers of one seller apart. To end a job, the engine's own lease and transaction
//! are needed, so a job ends only once.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use base::ids::RequestId;
use evm::hex0x;
use gate::jobs::input::Unread;
use gate::jobs::job::{Job, Outcome, Progress, Settlement};
use gate::jobs::store::{self, MoveError};
use ledger::account;
use platform::auth::token;
use platform::http::{ApiError, MarketError};
use platform::store::{StoreError, Write, WriteError, db};
use serde_json::{Value, json};
use tools::files::{self, FileRow, NotKept};
use tools::{Output, Source, ToolError, Unavailable};

use super::service;
use super::service_runner::{check_output, result_of};
use super::soul::Soul;
use super::{Market, jobs};

/// A worker that sends no progress for this long counts as dead. Its job can then be claimed again.
pub const WORKER_LEASE: Duration = Duration::from_secs(5 * 60);
/// Retries while another process holds the job.
const HOLD_TRIES: u32 = 10;
const HOLD_PAUSE: Duration = Duration::from_millis(60);

/// A job that this soul sold.
///
/// # Errors
/// 404, also for another soul's job.
pub async fn job_of(market: &Market, soul: &Soul, id: &str) -> Result<Job, ApiError> {
    let request_id = RequestId::of_soul_job(id).ok_or(ApiError::NotFound)?;
    let job = store::load_latest(&market.app.db, request_id).await?.ok_or(ApiError::NotFound)?;
    let is_ours = job.sold.as_ref().is_some_and(|sold| sold.soul == soul.slug.as_str() && sold.service.is_some());
    if is_ours && !job.is_forgotten(market.app.clock.now()) { Ok(job) } else { Err(ApiError::NotFound) }
}

/// Checks that a job waits for a worker or has one.
///
/// # Errors
/// 409 `invalid_state` with the reason.
fn check_handed(job: &Job, now: Timestamp) -> Result<(), ApiError> {
    let wrong = match (job.outcome, job.settlement, job.handed_until) {
        (Some(_), ..) => "the job is finished",
        (None, settlement, _) if settlement != Settlement::Settled => "the job's payment is not settled yet",
        (None, _, None) => "the job was not handed to a worker, or not yet",
        (None, _, Some(until)) if now >= until => "the service's deadline has passed; the buyer is refunded",
        (None, _, Some(_)) => return Ok(()),
    };
    Err(MarketError::InvalidState(wrong).into())
}

/// Claims a job for [`WORKER_LEASE`]. A job that the buyer's owner has stopped since ends instead.
///
/// # Errors
/// 409 `already_claimed` while another worker's lease lasts; 409 `invalid_state`, also if the job was stopped.
pub async fn claim(market: &Market, job: &Job) -> Result<Job, ApiError> {
    let now = market.app.clock.now();
    check_handed(job, now)?;
    // The claim's condition is on the job, so the owner's rules are read just before it. A freeze that comes between the
    // two stops nothing: the job was claimed first. If one worker still claims while another one's request has seen the
    // freeze and ends the job, the job is failed and paid back once, and the first worker finds it finished.
    if !job.is_claimed(now)
        && let Some(stopped) = stopped(market, job).await?
    {
        fail(market, job, stopped, check_waits).await?;
        let why = "the buyer's owner stopped the job before a worker claimed it; the buyer is refunded";
        return Err(MarketError::InvalidState(why).into());
    }
    let free = "(attribute_not_exists(#claimed_until) OR #claimed_until <= :now)";
    let holder = hex0x(&digest::random::<8>());
    let set = "SET #claimed_until = :until, #holder = :holder, #updated = :now";
    let write = lease(market, job, set, free, now)?.bind("holder", &holder)?;
    match market.app.db.write(write).await {
        Ok(item) => Ok(db::parse(item)?),
        Err(WriteError::Failed(error)) => Err(ApiError::Unavailable(error)),
        Err(refused) => {
            let old = refused.refused(0).and_then(|refused| refused.old.clone());
            let old: Option<Job> = old.map(db::parse).transpose()?;
            match old {
                // The SDK retried our own write after its answer was lost.
                Some(job) if job.is_claimed(now) && job.holder.as_ref() == Some(&holder) => Ok(job),
                Some(job) if job.outcome.is_none() && job.is_claimed(now) => Err(MarketError::AlreadyClaimed.into()),
                Some(job) => check_handed(&job, now).and(Err(MarketError::InvalidState("the job changed").into())),
                None => Err(ApiError::NotFound),
            }
        }
    }
}

/// Why a job that no worker has must not be done any more: the buyer's owner has frozen something since, or revoked the
/// token that bought it.
async fn stopped(market: &Market, job: &Job) -> Result<Option<ToolError>, StoreError> {
    let db = &market.app.db;
    let frozen = account::load(db, job.agent).await?.frozen;
    let why = match (frozen.stops(job.charge.token, &job.tool, job.payee()), job.charge.token) {
        (Some(what), _) => Some(format!("the owner froze this {what} before the work began")),
        (None, Some(id)) => {
            let token = token::load(db, job.agent, id).await?;
            let is_revoked = token.is_some_and(|token| token.revoked_at.is_some());
            is_revoked.then(|| "the owner revoked this token before the work began".to_owned())
        }
        (None, None) => None,
    };
    Ok(why.map(|why| ToolError::unavailable(Unavailable::FrozenByOwner, why)))
}

/// Stores the worker's progress and extends its lease.
pub async fn progress(market: &Market, job: &Job, progress: &Progress) -> Result<Job, ApiError> {
    let now = market.app.clock.now();
    check_claimed(job, now)?;
    let expression = "SET #claimed_until = :until, #progress = :progress, #updated = :now";
    let write = lease(market, job, expression, "attribute_exists(#claimed_until)", now)?.bind("progress", progress)?;
    match market.app.db.write(write).await {
        Ok(item) => Ok(db::parse(item)?),
        Err(WriteError::Refused(_)) => Err(MarketError::InvalidState("the job is finished").into()),
        Err(WriteError::Failed(error)) => Err(ApiError::Unavailable(error)),
    }
}

fn lease(market: &Market, job: &Job, set: &str, only_if: &str, now: Timestamp) -> Result<Write, StoreError> {
    let handed = "attribute_exists(#handed_until) AND #handed_until > :now";
    Write::update(&market.app.db.tables.jobs, job.key(), set)
        .only_if(&format!("{handed} AND {only_if}"))
        .bind("until", now.plus(WORKER_LEASE))?
        .bind("now", now)
}

/// Checks that a job waits and no worker has it.
fn check_waits(job: &Job, now: Timestamp) -> Result<(), ApiError> {
    check_handed(job, now)?;
    if job.is_claimed(now) { Err(MarketError::AlreadyClaimed.into()) } else { Ok(()) }
}

fn check_claimed(job: &Job, now: Timestamp) -> Result<(), ApiError> {
    check_handed(job, now)?;
    if job.is_claimed(now) {
        Ok(())
    } else {
        Err(MarketError::InvalidState("no worker holds the job: claim it first, or again").into())
    }
}

/// Stores a file of a claimed job. Without content, it is announced for upload to a URL.
///
/// # Errors
/// 409 `invalid_state`; 400 if the job's limits are exceeded.
pub async fn add_file(market: &Market, job: &Job, row: FileRow, content: Option<Vec<u8>>) -> Result<(), ApiError> {
    let now = market.app.clock.now();
    check_claimed(job, now)?;
    // A worker that lost the job must not change what another one delivered.
    let claimed = Write::check(&market.app.db.tables.jobs, job.key())
        .only_if("attribute_not_exists(#outcome) AND #claimed_until > :now")
        .bind("now", now)?;
    match files::keep(&market.app.db, &*market.app.blobs, job.files(), claimed, row, content).await? {
        Ok(()) => Ok(()),
        Err(NotKept::Lost) => Err(MarketError::InvalidState("the job is finished, or no worker holds it").into()),
        Err(NotKept::Busy) => Err(ApiError::RequestInProgress),
        Err(NotKept::Full { field, why }) => Err(ApiError::field(field, why)),
    }
}

/// Delivers a result. A result that does not match the output schema is refused, and the worker may deliver another one
/// before the deadline.
///
/// # Errors
/// 400 `invalid_output`; 400 `invalid_request` if an announced file was not uploaded; 409 `invalid_state`.
pub async fn complete(market: &Market, job: &Job, result: &str) -> Result<Job, ApiError> {
    let now = market.app.clock.now();
    check_claimed(job, now)?;
    let Some((soul, service, terms)) =
        job.sold.as_ref().and_then(|sold| Some((&sold.soul, sold.service.as_ref()?, sold.terms)))
    else {
        return Err(ApiError::NotFound);
    };
    let terms = service::load_terms(&market.app.db, soul, service, terms).await?;
    if let Some(promised) = terms.as_ref().and_then(|terms| terms.output_schema.as_ref()) {
        check_output(promised, result).map_err(MarketError::InvalidOutput)?;
    }
    let files = files::of_job(&market.app.db, job.request_id).await?;
    if result.trim().is_empty() && files.is_empty() {
        return Err(ApiError::field("result", "is empty, and there is no file: nothing would be delivered"));
    }
    for file in files.iter().filter(|file| file.uploaded.is_some()) {
        let size = market.app.blobs.size(&file.blob(job.request_id)).await?;
        if size != Some(file.size) {
            return Err(ApiError::field(
                "files",
                format!("{} was not uploaded with the announced {} bytes", file.path, file.size),
            ));
        }
    }
    let mut made = result_of(job, result);
    if !files.is_empty() {
        made["files"] = json!(files.iter().map(|file| &file.path).collect::<Vec<_>>());
    }
    let output = Output::new(made, Source::upstream("seller", None));
    let mut held = hold(market, job, check_claimed).await?;
    let ended = market.gate.engine.complete(&mut held, output).await;
    finish(market, held, ended).await
}

/// Fails a job on the worker's request. The buyer is refunded.
pub async fn give_up(market: &Market, job: &Job, reason: &str) -> Result<Job, ApiError> {
    let error = ToolError::unavailable(Unavailable::SellerFailed, format!("the seller gave up the job: {reason}"));
    fail(market, job, error, check_handed).await
}

/// The buyer's input of a claimed job. If it is lost, nobody can do the work: the job fails, and the buyer is refunded.
///
/// # Errors
/// 409 `invalid_state` if the input is lost.
pub async fn input_of(market: &Market, job: &Job) -> Result<Value, ApiError> {
    match job.input.read(&*market.app.blobs).await {
        Ok(mut input) => Ok(input.remove("input").unwrap_or_default()),
        Err(Unread::Failed(error)) => Err(ApiError::Unavailable(error)),
        Err(lost @ Unread::Lost) => {
            fail(market, job, lost.into(), check_handed).await?;
            Err(MarketError::InvalidState("the job's input was lost; the buyer is refunded").into())
        }
    }
}

async fn fail(market: &Market, job: &Job, error: ToolError, check: Check) -> Result<Job, ApiError> {
    let now = market.app.clock.now();
    check(job, now)?;
    let engine = &market.gate.engine;
    let mut held = hold(market, job, check).await?;
    let ended = store::failed(&engine.db, &engine.signer, &engine.chain, &mut held, error, now).await;
    finish(market, held, ended).await
}

/// What must hold of a job for it to be ended here.
type Check = fn(&Job, Timestamp) -> Result<(), ApiError>;

/// Takes the engine's lease on a job, so that only one process ends it.
async fn hold(market: &Market, job: &Job, check: Check) -> Result<Job, ApiError> {
    for _ in 0..HOLD_TRIES {
        let now = market.app.clock.now();
        let holder = hex0x(&digest::random::<8>());
        if let Some(held) = store::take_up(&market.app.db, job.request_id, &holder, now).await? {
            if let Err(refused) = check(&held, now) {
                // The job can no longer be ended here: release it unchanged.
                let mut held = held;
                let _ = store::postpone(&market.app.db, &mut held, Duration::ZERO, now).await;
                return Err(refused);
            }
            return Ok(held);
        }
        let now_is = store::load_latest(&market.app.db, job.request_id).await?.ok_or(ApiError::NotFound)?;
        check_handed(&now_is, now)?;
        tokio::time::sleep(HOLD_PAUSE).await;
    }
    Err(ApiError::Unavailable(StoreError::new("another process holds the job for too long")))
}

async fn finish(market: &Market, mut held: Job, ended: Result<(), MoveError>) -> Result<Job, ApiError> {
    if let Err(MoveError::Failed(_)) = &ended {
        // Release the job so that the worker can retry at once. Refused if the job has ended after all.
        let _ = store::postpone(&market.app.db, &mut held, Duration::ZERO, market.app.clock.now()).await;
    }
    match ended {
        Ok(()) => Ok(held),
        Err(MoveError::LostLease) => {
            let job = store::load_latest(&market.app.db, held.request_id).await?.ok_or(ApiError::NotFound)?;
            match job.outcome {
                Some(Outcome::Completed | Outcome::Failed) => {
                    Err(MarketError::InvalidState("the job is finished").into())
                }
                None => Err(ApiError::Unavailable(StoreError::new("another process has taken over the job"))),
            }
        }
        Err(MoveError::Failed(error)) => Err(ApiError::Unavailable(error)),
    }
}

/// A claimed job as its worker sees it. `input`: the buyer's ([`input_of`]).
pub fn for_worker(job: &Job, input: Value, now: Timestamp) -> Value {
    let sold = job.sold.as_ref();
    json!({
        "id": job.request_id.soul_job(),
        "job_id": job.request_id,
        "status": jobs::status(job, now),
        "input": input,
        "service": sold.and_then(|sold| sold.service.clone()),
        "service_version": sold.map(|sold| sold.terms),
        "lease_expires_at": job.claimed_until.map(|until| until.to_string()),
        "deadline": job.handed_until.map(|until| until.to_string()),
    })
}
