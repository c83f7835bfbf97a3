//! Every transition of a job, as conditional writes.
//!
//! Each write requires that the attempt making it is still the latest, so a worker that lost its lease can change nothing.
//! It also requires the same `created`, because a job that bought nothing may be replaced by a new one with the same id,
//! whose attempts start again. Job, receipt, balance and claim change together in one transaction.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::RequestId;
use base::money::Usdc;
use evm::hex0x;
use ledger::account::{Change, plus};
use ledger::charge::Close;
use ledger::credit::{self, EntryKind};
use ledger::debt;
use ledger::earning::{self, Earning, SaleEnd};
use ledger::payments::reason::Reason;
use ledger::payments::settle::{Intent, Prepared};
use ledger::payments::{claim, policy};
use ledger::receipt::{self, Receipt};
use ledger::signing::ReceiptSigner;
use platform::config::ChainConfig;
use platform::store::db;
use platform::store::due::InIndex;
use platform::store::table::OPEN_INDEX;
use platform::store::{Db, StoreError, Write, WriteError};
use serde::Deserialize;
use tools::spec::TOP_UP;
use tools::{ErrorCode, Mode, ToolError};

use super::job::{self, Job, LEASE, Lane, Outcome, Settlement, StoredResult};
use crate::work::Usage;

/// Why a transition was not made.
#[derive(Debug)]
pub enum MoveError {
    LostLease,
    Failed(StoreError),
}

impl From<StoreError> for MoveError {
    fn from(error: StoreError) -> MoveError {
        MoveError::Failed(error)
    }
}

impl From<WriteError> for MoveError {
    fn from(error: WriteError) -> MoveError {
        match error {
            WriteError::Refused(_) => MoveError::LostLease,
            WriteError::Failed(error) => MoveError::Failed(error),
        }
    }
}

/// The job, by an eventually consistent read.
pub async fn load(db: &Db, request_id: RequestId) -> Result<Option<Job>, StoreError> {
    db.get(&db.tables.jobs, job::key(request_id)).await
}

/// The job, by a consistent read.
pub async fn load_latest(db: &Db, request_id: RequestId) -> Result<Option<Job>, StoreError> {
    db.get_latest(&db.tables.jobs, job::key(request_id)).await
}

/// The write that creates a job. Its condition fails if the id exists, unless that job failed without cost or was released.
pub fn create(db: &Db, job: &Job) -> Result<Write, StoreError> {
    let put = Write::put(&db.tables.jobs, job.key(), job)?;
    let put = match &job.open {
        Some(shard) => put.into_list(job::lane_of(shard).list(), job.created),
        None => put,
    };
    put.only_if("attribute_not_exists(#pk) OR #settlement = :void OR (#settlement = :refused AND #outcome = :failed)")
        .bind("void", Settlement::Void)?
        .bind("refused", Settlement::Refused)?
        .bind("failed", Outcome::Failed)
}

/// Leases a job. `None` if nothing is open or another process holds the lease.
pub async fn take_up(db: &Db, request_id: RequestId, holder: &str, now: Timestamp) -> Result<Option<Job>, StoreError> {
    let expression =
        "SET #attempt = #attempt + :one, #lease_until = :until, #holder = :holder, #updated = :now REMOVE #queued_at";
    let write = Write::update(&db.tables.jobs, job::key(request_id), expression)
        .only_if("attribute_exists(#open) AND (attribute_not_exists(#lease_until) OR #lease_until < :now)")
        .bind("one", 1)?
        .bind("until", now.plus(LEASE))?
        .bind("holder", holder)?
        .bind("now", now)?;
    match db.write(write).await {
        Ok(item) => db::parse(item).map(Some),
        Err(refused @ WriteError::Refused(_)) => {
            // The SDK repeats a write after a lost answer: our own write is then the one in the way.
            let old = refused.refused(0).and_then(|refused| refused.old.clone());
            let job: Option<Job> = old.map(db::parse).transpose()?;
            Ok(job.filter(|job| job.holder.as_deref() == Some(holder) && job.open.is_some()))
        }
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// The condition of every transition: this is the latest attempt at this job.
const HELD: &str = "#attempt = :attempt AND #created = :created AND attribute_exists(#open)";

/// A condition check that the job is still at this attempt, for transactions of other modules.
pub fn held(db: &Db, job: &Job) -> Result<Write, StoreError> {
    let check = Write::check(&db.tables.jobs, job.key()).only_if(HELD);
    check.bind("attempt", job.attempt)?.bind("created", job.created)
}

/// Starts an update of a job under its current attempt.
fn change(db: &Db, job: &Job, expression: &str, now: Timestamp) -> Result<Write, StoreError> {
    Write::update(&db.tables.jobs, job.key(), &expression.replacen("SET ", "SET #updated = :updated, ", 1))
        .only_if(HELD)
        .bind("attempt", job.attempt)?
        .bind("created", job.created)?
        .bind("updated", now)
}

/// Appended to every update after which nothing is open.
const CLOSE: &str = " REMOVE #open, #due, #queued_at, #lease_until, #holder, #intent, #handed_until, #claimed_until";
/// Appended for a seller's job that ends: it moves to the index partition of its outcome.
const RELIST: &str = ", #sold_by = :sold_by";

/// Stores the intent before it is broadcast. `Ok(false)` if another process took the fee wallet's account nonce.
pub async fn submitting(db: &Db, job: &mut Job, prepared: Prepared, now: Timestamp) -> Result<bool, MoveError> {
    let mut write = change(db, job, "SET #settlement = :submitted, #lease_until = :until", now)?;
    let transaction = prepared.intent.as_ref().map(|intent| hex0x(&intent.hash));
    if let Some(intent) = &prepared.intent {
        let expression =
            "SET #settlement = :submitted, #lease_until = :until, #intent = :intent, #transaction = :transaction";
        write = change(db, job, expression, now)?.bind("intent", intent)?.bind("transaction", &transaction)?;
    }
    // Only once: if a second intent replaced the first, the first one's account nonce would stay unused for ever and block
    // the wallet.
    let write = only_unsubmitted(write)?.bind("submitted", Settlement::Submitted)?.bind("until", now.plus(LEASE))?;
    match prepared.allocation {
        None => drop(db.write(write).await?),
        Some(allocation) => match db.transact(&[write, allocation]).await {
            Err(refused) if refused.refused(0).is_none() && refused.refused(1).is_some() => return Ok(false),
            outcome => outcome?,
        },
    }
    job.settlement = Settlement::Submitted;
    job.intent = prepared.intent;
    job.transaction = transaction.or(job.transaction.take());
    Ok(true)
}

/// Stores the raised fee bid before it is broadcast in place of the last one.
pub async fn raised(db: &Db, job: &mut Job, raised: Intent, now: Timestamp) -> Result<(), MoveError> {
    let (transaction, until) = (hex0x(&raised.hash), now.plus(LEASE));
    let write = change(db, job, "SET #intent = :intent, #transaction = :transaction, #lease_until = :until", now)?
        .only_if(&format!("{HELD} AND #settlement = :submitted"))
        .bind("submitted", Settlement::Submitted)?
        .bind("intent", &raised)?
        .bind("transaction", &transaction)?
        .bind("until", until)?;
    db.write(write).await?;
    job.intent = Some(raised);
    job.transaction = Some(transaction);
    job.lease_until = Some(until);
    Ok(())
}

/// The submitted transaction can no longer land and no other was sent: back to `Claimed`.
pub async fn dropped(db: &Db, job: &mut Job, now: Timestamp) -> Result<(), MoveError> {
    let write = change(db, job, "SET #settlement = :claimed REMOVE #intent, #transaction", now)?
        .bind("claimed", Settlement::Claimed)?;
    db.write(write).await?;
    job.settlement = Settlement::Claimed;
    job.intent = None;
    job.transaction = None;
    Ok(())
}

/// The money arrived. If the work has ended already, this ends the job.
pub async fn settled(
    db: &Db,
    signer: &ReceiptSigner,
    job: &mut Job,
    transaction: String,
    now: Timestamp,
) -> Result<(), MoveError> {
    let set = "SET #settlement = :settled, #transaction = :transaction, #settled_in = :attempt";
    let mut next = Job {
        settlement: Settlement::Settled,
        transaction: Some(transaction),
        settled_in: job.attempt,
        intent: None,
        ..job.clone()
    };
    let transaction = next.transaction.clone();
    let bind = |write: Write| write.bind("settled", Settlement::Settled)?.bind("transaction", &transaction);
    let mut writes = match job.outcome {
        // Its end was booked before the reorganisation took the payment back, so nothing is booked again.
        Some(ended) if job.reorganized => {
            close(&mut next);
            let mut writes = vec![bind(ending(db, job, set, ended, now)?)?, revised(db, signer, &next, now).await?];
            writes.extend(job.charge.stand(db, job.purchase())?);
            writes
        }
        Some(ended) => {
            let vouched = if ended == Outcome::Completed { vouched(job) } else { Usdc::ZERO };
            let close = Close { settled: vouched, ..Close::keeping(job.price, job.kept_if_completed()) };
            let (end, rest) = over(db, signer, job, &mut next, set, close, now).await?;
            [vec![bind(end)?], rest].concat()
        }
        None => vec![bind(change(db, job, &format!("{set} REMOVE #intent"), now)?)?],
    };
    if job.overlap {
        writes.push(policy::unexpose(db, job.agent, job.price)?);
    }
    db.apply(writes).await?;
    *job = next;
    Ok(())
}

/// Why the money will not arrive.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub reason: Reason,
    /// The transaction that paid for another purchase, if that is the reason.
    pub transaction: Option<String>,
}

impl Refusal {
    pub fn of(reason: Reason) -> Refusal {
        Refusal { reason, transaction: None }
    }
}

/// The money will not arrive. A job whose work has not ended fails. The claim is reopened, because the payment may succeed
/// later: when the wallet has funds, or when somebody else broadcasts it.
pub async fn refused(
    db: &Db,
    signer: &ReceiptSigner,
    chain: &ChainConfig,
    job: &mut Job,
    refusal: Refusal,
    now: Timestamp,
) -> Result<(), MoveError> {
    let reason = refusal.reason;
    let mut next = Job { settlement: Settlement::Refused, refusal: Some(reason.as_str().to_owned()), ..job.clone() };
    close(&mut next);
    let mut set = "SET #settlement = :refused, #refusal = :refusal".to_owned();
    if refusal.transaction.is_some() {
        next.transaction = refusal.transaction.clone();
        set.push_str(", #transaction = :transaction");
    }
    if job.outcome.is_none() {
        next.outcome = Some(Outcome::Failed);
        next.error = Some(payment_failed(&refusal));
        set.push_str(", #outcome = :outcome, #error = :error");
    }
    let ended = next.outcome.unwrap_or(Outcome::Failed);
    let mut write =
        ending(db, job, &set, ended, now)?.bind("refused", Settlement::Refused)?.bind("refusal", reason.as_str())?;
    if job.outcome.is_none() {
        write = write.bind("outcome", next.outcome)?.bind("error", &next.error)?;
    }
    if let Some(transaction) = &refusal.transaction {
        write = write.bind("transaction", transaction)?;
    }
    let mut writes = vec![write, revised(db, signer, &next, now).await?];
    writes.extend(match job.outcome {
        None => job.charge.undo(db, job.purchase(), now)?,
        Some(Outcome::Completed) => job.charge.forfeit(db, job.purchase(), job.kept)?,
        // It was settled, failed and was credited back before the reorganisation.
        Some(Outcome::Failed) => job.charge.stand(db, job.purchase())?,
    });
    // Credits that were given for this payment become a debt, so they are no exposure any more.
    let given = job.reorganized && (job.credited.is_some() || job.tool == TOP_UP.name);
    let is_unpaid_work = job.outcome == Some(Outcome::Completed) && job.tool != TOP_UP.name;
    if given {
        // Of completed work, only the rest of its price was given.
        let most = job.credited.filter(|_| is_unpaid_work).unwrap_or(job.price);
        let (cause, amount) = (job.receipt_id.as_str(), signed_part(job).min(most));
        let (kind, id) = (EntryKind::Reversal, Some(job.request_id));
        writes.extend(debt::owe(db, job.agent, kind, amount, cause, id, now)?);
    }
    if let (None, Some(payment)) = (job.outcome, &job.payment) {
        writes.push(claim::reopen(db, payment, chain, job.request_id)?);
    }
    // Work that was done and will never be paid stays counted in its payer's exposure.
    if job.overlap && !is_unpaid_work && (job.outcome.is_none() || given) {
        writes.push(policy::unexpose(db, job.agent, job.price)?);
    }
    db.transact(&writes).await?;
    *job = next;
    Ok(())
}

/// What completed work reports. Amounts are in micro-USDC.
#[derive(Clone, Debug, Default)]
pub struct Reported {
    /// Credits bought, if the tool sells credits. They are booked only when the money has arrived.
    pub bought: Option<Usdc>,
    /// What was used of the price, if not all of it. The rest is credited when the money has arrived.
    pub used: Option<Usdc>,
    /// What it spent on other calls ([`tools::Output::passing_on`]).
    pub passed_on: Option<Usdc>,
    /// The tool's own writes ([`tools::Output::with`]).
    pub writes: Vec<Write>,
}

/// The work is done. `LostLease` also if one of the tool's own writes was refused.
pub async fn completed(
    db: &Db,
    signer: &ReceiptSigner,
    job: &mut Job,
    result: StoredResult,
    reported: Reported,
    now: Timestamp,
) -> Result<(), MoveError> {
    let charged = reported.used.filter(|used| *used < job.price);
    let mut next = Job {
        outcome: Some(Outcome::Completed),
        result: Some(result),
        charged,
        passed_on: reported.passed_on,
        ..job.clone()
    };
    let set = match charged {
        None => "SET #outcome = :completed, #result = :result",
        Some(_) => "SET #outcome = :completed, #result = :result, #charged = :charged",
    };
    let result = next.result.clone();
    let bind = |write: Write| {
        let write = write.bind("completed", Outcome::Completed)?.bind("result", &result)?;
        charged.map_or(Ok(write.clone()), |charged| write.bind("charged", charged))
    };
    if job.settlement == Settlement::Settled {
        // Bought credits change the account by a write of their own.
        let settled = if reported.bought.is_some() { Usdc::ZERO } else { vouched(job) };
        let close = Close { settled, ..Close::keeping(job.price, next.kept_if_completed()) };
        let (end, rest) = over(db, signer, job, &mut next, set, close, now).await?;
        let mut writes = [vec![bind(end)?], rest].concat();
        if let Some(bought) = reported.bought {
            let change = Change { settled: plus(vouched(job))?, ..credit::add(bought)? };
            let cause = job.receipt_id.as_str();
            writes.extend(credit::change(db, job.agent, EntryKind::TopUp, change, cause, Some(job.request_id), now)?);
        }
        writes.extend(reported.writes);
        db.transact(&writes).await?;
    } else {
        let mut writes = vec![bind(change(db, job, set, now)?)?];
        writes.extend(reported.writes);
        db.apply(writes).await?;
    }
    *job = next;
    Ok(())
}

/// The work failed. If the money has arrived, the price is credited back, less what the work used of paid tools and the
/// model. Otherwise the payment is never submitted, and the payer may use it again.
pub async fn failed(
    db: &Db,
    signer: &ReceiptSigner,
    chain: &ChainConfig,
    job: &mut Job,
    error: ToolError,
    now: Timestamp,
) -> Result<(), MoveError> {
    let mut next = Job { outcome: Some(Outcome::Failed), error: Some(error), ..job.clone() };
    let set = "SET #outcome = :failed, #error = :error";
    let error = next.error.clone();
    let bind = |write: Write| write.bind("failed", Outcome::Failed)?.bind("error", &error);
    let writes = if job.settlement == Settlement::Settled {
        let close = Close::keeping(job.price, job.kept_if_failed());
        let (end, rest) = over(db, signer, job, &mut next, set, close, now).await?;
        [vec![bind(end)?], rest].concat()
    } else {
        close(&mut next);
        next.settlement = Settlement::Void;
        let set = format!("{set}, #settlement = :void");
        let write = bind(only_unsubmitted(ending(db, job, &set, Outcome::Failed, now)?)?)?;
        let mut writes = vec![write.bind("void", Settlement::Void)?];
        if let Some(payment) = &job.payment {
            writes.push(claim::reopen(db, payment, chain, job.request_id)?);
        }
        writes.extend(job.charge.undo(db, job.purchase(), now)?);
        if job.overlap {
            writes.push(policy::unexpose(db, job.agent, job.price)?);
        }
        writes.push(revised(db, signer, &next, now).await?);
        writes
    };
    db.transact(&writes).await?;
    *job = next;
    Ok(())
}

/// Ends a job whose money has arrived, with the outcome in `next`. A part of the price stays, the rest is credited back.
/// Every settled job ends here, except after a reorganisation. The first write is the job's own: the caller binds the
/// values of `set` to it.
async fn over(
    db: &Db,
    signer: &ReceiptSigner,
    job: &Job,
    next: &mut Job,
    set: &str,
    shared: Close,
    now: Timestamp,
) -> Result<(Write, Vec<Write>), StoreError> {
    close(next);
    let (ended, sale) = match next.outcome {
        Some(Outcome::Completed) => (Outcome::Completed, SaleEnd::Completed),
        _ => (Outcome::Failed, SaleEnd::Failed),
    };
    let mut set = set.to_owned();
    if ended == Outcome::Failed || shared.credited > Usdc::ZERO {
        next.credited = Some(shared.credited);
        next.kept = Some(shared.kept).filter(|kept| *kept > Usdc::ZERO || ended == Outcome::Completed);
        set.push_str(", #credited = :credited");
    }
    if next.kept.is_some() {
        set.push_str(", #kept = :kept");
    }
    if !next.used.is_none() {
        set.push_str(", #used = :used");
    }
    let mut end = ending(db, job, &set, ended, now)?;
    if let Some(credited) = next.credited {
        end = end.bind("credited", credited)?;
    }
    if let Some(kept) = next.kept {
        end = end.bind("kept", kept)?;
    }
    if !next.used.is_none() {
        end = end.bind("used", next.used)?;
    }
    let mut rest = vec![revised(db, signer, next, now).await?];
    rest.extend(earned(db, next, sale, now)?);
    rest.extend(job.charge.close(db, job.purchase(), shared, now)?);
    Ok((end, rest))
}

/// A reorganisation took the payment of an ended job back: reopens the job to submit it again, and counts it in its payer's
/// exposure until it is settled. `false` if the job was reopened already.
pub async fn reopen(db: &Db, job: &Job, now: Timestamp) -> Result<bool, StoreError> {
    // Only the settlement is left, and the worker does that.
    let lane = Lane::Tools;
    let next = Job { settlement: Settlement::Claimed, ..job.clone() };
    let set = "SET #settlement = :claimed, #overlap = :yes, #reorganized = :yes, #open = :open, #due = :now, #updated = :now \
               REMOVE #vouches";
    let write = Write::update(&db.tables.jobs, job.key(), set)
        .only_if("#settlement = :settled AND #transaction = :transaction AND #created = :created AND attribute_not_exists(#open)")
        .bind("claimed", Settlement::Claimed)?
        .bind("settled", Settlement::Settled)?
        .bind("transaction", &job.transaction)?
        .bind("created", job.created)?
        .bind("open", job::open_shard(job.request_id, lane))?
        .bind("yes", true)?
        .bind("now", now)?
        .into_list(lane.list(), now);
    let mut receipt = receipt_of(db, job).await?;
    revise(&mut receipt, &next, now);
    let mut writes = vec![write, receipt::revise(db, &receipt)?, policy::expose_anyway(db, job.agent, job.price)?];
    writes.extend(job.charge.resume(db, job.purchase())?);
    match db.transact(&writes).await {
        Ok(()) => Ok(true),
        Err(WriteError::Refused(_)) => Ok(false),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// An update after which neither work nor money is open.
fn ending(db: &Db, job: &Job, set: &str, outcome: Outcome, now: Timestamp) -> Result<Write, StoreError> {
    match job.sold.as_ref().filter(|_| job.sold_by.is_some()) {
        Some(sold) => change(db, job, &format!("{set}{RELIST}{CLOSE}"), now)?
            .bind("sold_by", job::sold_by(&sold.soul, Some(outcome))),
        None => change(db, job, &format!("{set}{CLOSE}"), now),
    }
}

/// The writes of a seller's earning when its job ends. Empty if nothing was sold for a seller.
fn earned(db: &Db, job: &Job, ended: SaleEnd, now: Timestamp) -> Result<Vec<Write>, StoreError> {
    let Some(sold) = &job.sold else { return Ok(Vec::new()) };
    let earning = Earning {
        request_id: job.request_id,
        receipt_id: job.receipt_id.clone(),
        sold: sold.clone(),
        buyer: job.agent,
        tools_cost: job.used.tools,
        card: job.charge.card,
        ended,
        bought_at: job.created,
        ended_at: now,
    };
    let mut writes = vec![earning::record(db, &earning)?];
    if sold.service.is_none() && ended == SaleEnd::Completed {
        writes.push(earning::grant(db, &earning)?);
    }
    Ok(writes)
}

/// Records what the work has used so far, before it uses it.
pub async fn used(db: &Db, job: &Job, used: Usage, now: Timestamp) -> Result<(), MoveError> {
    db.write(change(db, job, "SET #used = :used", now)?.bind("used", used)?).await?;
    Ok(())
}

/// Renews the lease of a job that is being worked on, and stores its progress.
pub async fn renew(db: &Db, job: &mut Job, now: Timestamp) -> Result<(), MoveError> {
    let until = now.plus(LEASE);
    let write = match &job.progress {
        Some(progress) => {
            change(db, job, "SET #lease_until = :until, #progress = :progress", now)?.bind("progress", progress)?
        }
        None => change(db, job, "SET #lease_until = :until", now)?,
    };
    db.write(write.bind("until", until)?).await?;
    job.lease_until = Some(until);
    Ok(())
}

/// Hands the work over until `until` (to the seller's own worker, to an external event, or to a later run), stores its progress, and
/// releases the lease. The job is checked again after `look_again`, and its row stays for `retention` after `until`. Returns how often the job
/// has been woken ([`platform::store::jobs::wake`]).
pub async fn hand_over(
    db: &Db,
    signer: &ReceiptSigner,
    job: &mut Job,
    until: Timestamp,
    look_again: Duration,
    retention: Duration,
    now: Timestamp,
) -> Result<u32, MoveError> {
    let due = now.plus(look_again);
    let expires = job.expires.max(until.plus(retention).secs());
    // A run that did its part does not count as an attempt.
    let times = job.put_down + u32::from(job.goes_on);
    let (goes_on, no_more) =
        if job.goes_on { (", #goes_on = :yes, #put_down = :times", "") } else { ("", ", #goes_on") };
    let says = if job.progress.is_some() { ", #progress = :progress" } else { "" };
    let expression = format!(
        "SET #handed_until = :until, #due = :due, #expires = :expires{goes_on}{says} REMOVE #lease_until, #holder, #queued_at{no_more}"
    );
    let mut write = change(db, job, &expression, now)?;
    if job.goes_on {
        write = write.bind("yes", true)?.bind("times", times)?;
    }
    if let Some(progress) = &job.progress {
        write = write.bind("progress", progress)?;
    }
    let write = write.bind("until", until)?.bind("due", due)?.bind("expires", expires)?;
    // Show the settlement on the receipt now, because handed-over work may take days. Other receipts show it when the work
    // ends.
    let woken = if job.payment.is_some() && job.handed_until.is_none() && job.settlement == Settlement::Settled {
        db.transact(&[write, revised(db, signer, job, now).await?]).await?;
        load_latest(db, job.request_id).await?.map(|job| job.woken)
    } else {
        db::parse::<Woken>(db.write(write).await?).map(|woken| Some(woken.woken))?
    };
    job.handed_until = Some(until);
    job.expires = expires;
    job.put_down = times;
    job.due = Some(due);
    job.lease_until = None;
    job.holder = None;
    Ok(woken.unwrap_or(job.woken))
}

/// As much of a job as [`hand_over`] looks at afterwards.
#[derive(Deserialize)]
struct Woken {
    #[serde(default)]
    woken: u32,
}

/// Releases the lease and makes the job due after `delay`.
pub async fn postpone(db: &Db, job: &mut Job, delay: Duration, now: Timestamp) -> Result<(), MoveError> {
    let due = now.plus(delay);
    db.write(change(db, job, "SET #due = :due REMOVE #lease_until, #queued_at", now)?.bind("due", due)?).await?;
    job.due = Some(due);
    job.lease_until = None;
    job.queued_at = None;
    Ok(())
}

/// Like [`postpone`], for work that found no free slot and for which a message is sent. Does not count as an attempt at
/// the work.
pub async fn put_down(db: &Db, job: &mut Job, delay: Duration, now: Timestamp) -> Result<(), MoveError> {
    let (due, times) = (now.plus(delay), job.put_down + 1);
    let write = change(db, job, "SET #due = :due, #put_down = :times, #queued_at = :now REMOVE #lease_until", now)?;
    db.write(write.bind("due", due)?.bind("times", times)?.bind("now", now)?).await?;
    job.due = Some(due);
    job.put_down = times;
    job.queued_at = Some(now);
    job.lease_until = None;
    Ok(())
}

/// Like [`postpone`], and stores the transaction that carries the payment.
pub async fn pending(
    db: &Db,
    job: &mut Job,
    transaction: String,
    delay: Duration,
    now: Timestamp,
) -> Result<(), MoveError> {
    let due = now.plus(delay);
    let set = "SET #due = :due, #transaction = :transaction REMOVE #lease_until, #queued_at";
    db.write(change(db, job, set, now)?.bind("due", due)?.bind("transaction", &transaction)?).await?;
    job.due = Some(due);
    job.lease_until = None;
    job.transaction = Some(transaction);
    Ok(())
}

/// A row of the index of open jobs.
#[derive(Clone, Debug, Deserialize)]
pub struct OpenJob {
    pub pk: String,
    pub due: Timestamp,
    pub created: Timestamp,
}

/// Due open jobs of a shard, the longest waiting first.
pub async fn due(db: &Db, lane: Lane, shard: u8, now: Timestamp, limit: usize) -> Result<Vec<OpenJob>, StoreError> {
    db.query(open(db).items(&job::shard_name(shard, lane), now, limit)?).await
}

/// The index of open jobs.
fn open(db: &Db) -> InIndex<'_> {
    InIndex {
        table: &db.tables.jobs,
        index: OPEN_INDEX.name,
        shard: OPEN_INDEX.partition,
        is_due: "#open = :shard AND #due <= :now",
    }
}

/// Moves the time when the sweeper checks a due job to `due`, without a message. `false` if another sweeper did.
pub async fn look_again_at(
    db: &Db,
    request_id: RequestId,
    was_due: Timestamp,
    due: Timestamp,
) -> Result<bool, StoreError> {
    open(db).look_again_at(db, job::key(request_id), was_due, due).await
}

/// Moves a due job's next look to `due`, before a message is sent for it. `false` if another sweeper did, or if a message
/// that was sent after `unless_after` may still wait.
pub async fn send_again(
    db: &Db,
    request_id: RequestId,
    was_due: Timestamp,
    due: Timestamp,
    unless_after: Timestamp,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let write = Write::update(&db.tables.jobs, job::key(request_id), "SET #due = :due, #queued_at = :now")
        .only_if(
            "#due = :was AND attribute_exists(#open) AND (attribute_not_exists(#queued_at) OR #queued_at <= :unless)",
        )
        .bind("due", due)?
        .bind("was", was_due)?
        .bind("unless", unless_after)?
        .bind("now", now)?;
    db.write_if(write).await
}

/// The part of the price that was signed for.
fn signed_part(job: &Job) -> Usdc {
    job.price.checked_sub(job.charge.credits).unwrap_or_default()
}

/// What a completed job adds to its payer's record of settled payments.
fn vouched(job: &Job) -> Usdc {
    if job.vouches { signed_part(job) } else { Usdc::ZERO }
}

fn close(job: &mut Job) {
    job.open = None;
    job.due = None;
    job.lease_until = None;
    job.intent = None;
}

fn payment_failed(refusal: &Refusal) -> ToolError {
    let reason = refusal.reason;
    let wherever = refusal.transaction.as_ref().map(|hash| format!(" (transaction {hash})")).unwrap_or_default();
    let code =
        if reason == Reason::InsufficientFunds { ErrorCode::InsufficientFunds } else { ErrorCode::PaymentFailed };
    ToolError {
        code,
        reason: Some(reason.as_str().to_owned()),
        message: format!("the payment failed: {reason}{wherever}; nothing was charged"),
    }
}

/// The next revision of the job's receipt. Signed once it is terminal.
async fn revised(db: &Db, signer: &ReceiptSigner, job: &Job, now: Timestamp) -> Result<Write, StoreError> {
    let mut receipt = receipt_of(db, job).await?;
    revise(&mut receipt, job, now);
    if receipt.is_terminal() {
        receipt.seal(signer);
    }
    receipt::revise(db, &receipt)
}

async fn receipt_of(db: &Db, job: &Job) -> Result<Receipt, StoreError> {
    let receipt = receipt::load(db, job.agent, &job.receipt_id).await?;
    receipt.ok_or_else(|| StoreError::new(format_args!("job {} has no receipt", job.request_id)))
}

fn revise(receipt: &mut Receipt, job: &Job, now: Timestamp) {
    receipt.revision += 1;
    receipt.seal = None;
    receipt.status = job.money();
    receipt.execution_status = job.work();
    if job.result.as_ref().is_some_and(|result| result.mode == Mode::Embedded) {
        receipt.provider_cost = Some(Usdc::ZERO);
    }
    receipt.kept = job.kept;
    receipt.passed_on = job.passed_on.or(receipt.passed_on);
    if job.settlement == Settlement::Settled {
        receipt.settlement_tx = job.transaction.clone();
        receipt.settled_at.get_or_insert(now);
    }
}

/// Adds the condition that the payment was not submitted.
fn only_unsubmitted(write: Write) -> Result<Write, StoreError> {
    write.only_if(&format!("{HELD} AND #settlement = :claimed")).bind("claimed", Settlement::Claimed)
}
