//! The engine: takes a job from its claim to its end, whichever process picks it up.
//!
//! The same code runs a direct call in the function that received it and a queued one in the worker. It also resumes jobs
//! after a crash. [`super::job::next_step`] decides the next step, and every transition is stored before the next
//! step runs.
//!
//! | crash | what is found | what happens |
//! |---|---|---|
//! | before the claim is written | nothing | nothing was charged |
//! | claim written, queue send lost | claimed, no lease | the sweeper sends it again |
//! | before the intent is written | claimed, lease expired | settled as if new |
//! | between intent and broadcast | submitted, unknown on chain | the same bytes are broadcast |
//! | between broadcast and storing the outcome | submitted, known on chain | the outcome is read from the chain |
//! | between raising the fee, storing the raise and its broadcast | submitted, one bid known or none | the latest is broadcast; any may be mined (`ledger::payments::bid`) |
//! | (no crash) a reorganisation after settlement | settled, gone from the chain | claimed again and sent again (`super::finality`) |
//! | during the work | settled, no outcome | the work runs again, at most five times, then the price is credited back, less what the tool's own record says was done |
//! | the input's blob is gone, or was changed | settled, no outcome | the price is credited back, less what the tool's own record says was done |
//! | between the work and storing its outcome | settled, no outcome | as above: tools may run twice, charges never |
//! | while sold work uses a paid tool or the model | its usage is on the job | the next attempt has the rest of the budget |

use std::sync::Arc;
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::digest;
use base::ids::RequestId;
use evm::authorization::Authorization;
use evm::hex0x;
use ledger::account;
use ledger::payments::reason::Reason;
use ledger::payments::settle::{Found, JobPayment, Settled, Settler};
use ledger::signing::ReceiptSigner;
use platform::config::ChainConfig;
use platform::http::{limit, log};
use platform::store::jobs;
use platform::store::queue::{self, Message};
use platform::store::{Blobs, BoxFuture, Db, Queue, StoreError};
use serde_json::{Map, Value};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tools::{ErrorCode, Funds, Output, Reporter, Runner, Task, ToolError, Toolbox, Unavailable, Wait};

use super::input::Unread;
use super::job::{Job, Lane, Place, RETENTION, Settlement, Step, StoredResult};
use super::slots::{self, End, Slots};
use super::store::{self, MoveError, Refusal};
use crate::work::Usage;

/// Results up to this size are stored in the job's item. Above it, a blob is cheaper.
const INLINE_RESULT_BYTES: usize = 8 * 1024;
/// Largest result, as JSON bytes. With the rest of the answer, and in base64, it stays below Lambda's response limit
/// ([`platform::http::lambda`]).
pub const MAX_RESULT_BYTES: usize = 4 * 1024 * 1024;
/// Delay before a settlement that is pending, or could not be sent, is checked or sent again.
const SETTLEMENT_PAUSE: Duration = Duration::from_secs(15);
/// Delay before a seller's worker is reminded of a job it has not claimed. Doubles with each attempt, up to 64 minutes.
const FIRST_REMINDER: Duration = Duration::from_secs(60);
/// Delay before a job that found no free slot is tried again. Doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// A job that found no free slot for this long is credited back.
pub const MOST_WAIT: Duration = Duration::from_secs(3600);
/// Work that goes on in several runs is given up this long after its own time.
const GRACE: Duration = Duration::from_secs(3600);
/// A run that waits longer for hosts that its caller named needs one of the few places for that. If none is free, it is
/// broken off and begins anew later.
const BRIEF: Duration = Duration::from_secs(3);
/// Interval at which the lease is renewed during work.
const RENEW_AFTER: Duration = Duration::from_secs(20);
/// Delay after a failed renewal.
const RENEW_AGAIN: Duration = Duration::from_secs(5);
/// Least time between two writes of the progress.
const REPORT_AFTER: Duration = Duration::from_secs(3);
/// Delay before a job that was given up, and whose tool could not read its record, is ended.
const RECORD_PAUSE: Duration = Duration::from_secs(30);
/// How many times a new account nonce is requested after another process took it.
const ALLOCATION_RETRIES: usize = 20;

/// Everything needed to take a job to its end.
pub struct Engine {
    pub db: Db,
    pub blobs: Arc<dyn Blobs>,
    pub queues: Queues,
    pub clock: Clock,
    pub chain: ChainConfig,
    pub settler: Box<dyn Settler>,
    pub signer: ReceiptSigner,
    pub runners: &'static [&'static Runner],
    pub toolbox: Arc<Toolbox>,
    /// Runs sellers' services; `None` where only our own tools run.
    pub sellers: Option<Arc<dyn ServiceRunner>>,
}

/// The queues of the lanes.
#[derive(Clone)]
pub struct Queues {
    pub tools: Arc<dyn Queue>,
    pub souls: Arc<dyn Queue>,
    pub browser: Arc<dyn Queue>,
}

impl Queues {
    pub fn of(&self, lane: Lane) -> &dyn Queue {
        match lane {
            Lane::Tools => &*self.tools,
            Lane::Souls => &*self.souls,
            Lane::Browser => &*self.browser,
        }
    }
}

/// Runs the work of jobs that were sold for a soul.
pub trait ServiceRunner: Send + Sync {
    /// Does the work, or hands it to the seller's own worker and returns the end of that worker's time. It is never later
    /// than the deadline in the service's terms.
    fn run<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, Attempted>;

    /// Notifies the seller's worker of a job that it has not claimed. Called on hand-over and at intervals.
    fn remind<'a>(&'a self, job: &'a Job) -> BoxFuture<'a, ()>;

    /// Runs the test cases of a service, for the trial that was due at `due`. `daily`: the trial was not caused by a change
    /// of the service.
    fn try_out<'a>(
        &'a self,
        soul: &'a str,
        service: &'a str,
        due: Timestamp,
        daily: bool,
    ) -> BoxFuture<'a, Result<(), StoreError>>;
}

/// The result of an attempt at the work.
#[derive(Debug)]
pub struct Attempted {
    pub outcome: Result<Worked, ToolError>,
    /// Usage so far, over all attempts.
    pub used: Usage,
}

/// The progress that an attempt made.
#[derive(Debug)]
pub enum Worked {
    Done(Output),
    /// The seller's own worker has the work until then, or our tool waits for an external event until then.
    HandedOver {
        until: Timestamp,
        /// Our tool has more to do and is run again after this pause.
        again_after: Option<Duration>,
    },
    /// The soul or the buyer has reached its limit of concurrent jobs, or too many wait for hosts. The job is retried later.
    Busy,
    /// The input is lost, so there is no more work than earlier attempts have done.
    InputLost,
}

/// The way a job is advanced: for a caller who waits, or in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    /// A caller waits: what is not available now fails. Settlement after the work is left to the worker, and so is work
    /// that could take longer than the rest of the request's time.
    Caller,
    /// Nobody waits: what is not available now is tried again later.
    Worker,
}

impl Engine {
    /// Leases a job and advances it. `Ok` also if there is nothing to do.
    pub async fn run(&self, request_id: RequestId) -> Result<(), StoreError> {
        let holder = hex0x(&digest::random::<8>());
        match store::take_up(&self.db, request_id, &holder, self.clock.now()).await? {
            Some(job) => self.advance(job, RunMode::Worker).await.map(drop),
            None => Ok(()),
        }
    }

    /// Advances a job whose lease is held until it ends or has to wait, and returns it.
    pub async fn advance(&self, mut job: Job, patience: RunMode) -> Result<Job, StoreError> {
        loop {
            let moved = match job.next_step() {
                Step::Rest => {
                    if crate::came_to_nothing(&job)
                        && let Some(runner) = self.runner(&job)
                        && let Err(error) = (runner.spec.release)(&self.toolbox, job.request_id).await
                    {
                        log::failure("what a job had claimed could not be taken back now", &error);
                    }
                    // Its goal goes on. What is lost here only delays the goal until its next look.
                    if let Some(from) = job.charge.purse {
                        jobs::wake(&self.db, &*self.queues.tools, from.goal).await;
                    }
                    return Ok(job);
                }
                Step::Settle if patience == RunMode::Caller && job.outcome.is_some() => self.leave(&mut job).await,
                Step::Work if patience == RunMode::Caller && limit::time_left() < self.needed(&job) => {
                    self.leave(&mut job).await
                }
                // On the heap: nested and unoptimised, the futures overflow a thread's stack.
                Step::Settle => Box::pin(self.settle(&mut job, patience)).await,
                Step::Reconcile => Box::pin(self.reconcile(&mut job)).await,
                Step::Work => Box::pin(self.work(&mut job, patience)).await,
            };
            match moved {
                Ok(Progress::Moved) => {}
                Ok(Progress::Paused) => return Ok(job),
                // Another attempt has the job, and its result stands.
                Err(MoveError::LostLease) => {
                    return Ok(store::load_latest(&self.db, job.request_id).await?.unwrap_or(job));
                }
                Err(MoveError::Failed(error)) => return Err(error),
            }
        }
    }

    /// Leaves a job to the worker.
    async fn leave(&self, job: &mut Job) -> Result<Progress, MoveError> {
        let moved = store::postpone(&self.db, job, Duration::ZERO, self.clock.now()).await;
        queue::send_or_log(self.queues.of(job.lane()), job.request_id, None).await;
        moved.map(|()| Progress::Paused)
    }

    /// The longest time that the job's tool may take.
    fn needed(&self, job: &Job) -> Duration {
        self.runner(job).map_or(Duration::ZERO, |runner| runner.spec.deadline)
    }

    async fn settle(&self, job: &mut Job, patience: RunMode) -> Result<Progress, MoveError> {
        if job.is_worn_out() {
            let error = ToolError { code: ErrorCode::PaymentFailed, reason: None, message: gave_up_settling() };
            return self.fail(job, error).await;
        }
        let authorization = signed_payment(job)?;
        let payment = JobPayment { authorization: &authorization, job: job.request_id };
        let mut lost = None;
        for attempt in 0..ALLOCATION_RETRIES {
            let prepared = match self.settler.prepare(payment, lost).await {
                Ok(prepared) => prepared,
                Err(settled) => return self.record(job, settled, patience).await,
            };
            lost = prepared.intent.clone();
            if store::submitting(&self.db, job, prepared, self.clock.now()).await? {
                let settled = self.settler.submit(payment, job.intent.as_ref()).await;
                return self.record(job, settled, patience).await;
            }
            // Jobs that lost the same race wait for different times, so that they do not lose the next one together.
            let pause = job.request_id.bytes()[attempt % 16];
            tokio::time::sleep(Duration::from_millis(u64::from(pause) / 4)).await;
        }
        self.record(job, Settled::NotSent("the fee wallet is contended".to_owned()), patience).await
    }

    async fn reconcile(&self, job: &mut Job) -> Result<Progress, MoveError> {
        let authorization = signed_payment(job)?;
        let payment = JobPayment { authorization: &authorization, job: job.request_id };
        let settled = match self.settler.reconcile(payment, job.intent.as_ref()).await? {
            Found::Known(settled) => settled,
            Found::Outgrown(raised) => {
                store::raised(&self.db, job, raised, self.clock.now()).await?;
                self.settler.submit(payment, job.intent.as_ref()).await
            }
        };
        let settled = match settled {
            // It may have been sent before, so only the chain can tell.
            Settled::NotSent(_) => Settled::Pending { transaction: None },
            known => known,
        };
        self.record(job, settled, RunMode::Worker).await
    }

    /// Stores the result of a settlement step.
    async fn record(&self, job: &mut Job, settled: Settled, patience: RunMode) -> Result<Progress, MoveError> {
        let now = self.clock.now();
        match settled {
            Settled::Yes { transaction } => store::settled(&self.db, &self.signer, job, transaction, now).await?,
            Settled::No(reason) => {
                if job.outcome.is_some() {
                    let lost = format_args!("job {}, {} USDC: {reason}", job.request_id, job.price);
                    log::failure("work was done but will not be paid", &lost);
                }
                store::refused(&self.db, &self.signer, &self.chain, job, Refusal::of(reason), now).await?;
            }
            Settled::ForAnother { transaction } => {
                log::failure("a payment was put on chain for another purchase", &transaction);
                let refusal = Refusal { reason: Reason::PaidForAnother, transaction: Some(transaction) };
                store::refused(&self.db, &self.signer, &self.chain, job, refusal, now).await?;
            }
            Settled::Dropped => store::dropped(&self.db, job, now).await?,
            Settled::Pending { transaction: Some(transaction) } if job.transaction.is_none() => {
                store::pending(&self.db, job, transaction, SETTLEMENT_PAUSE, now).await?;
                return Ok(Progress::Paused);
            }
            Settled::Pending { .. } => {
                store::postpone(&self.db, job, SETTLEMENT_PAUSE, now).await?;
                return Ok(Progress::Paused);
            }
            Settled::NotSent(cause) => {
                log::failure("a payment could not be sent", &cause);
                // The facilitator was not reached, so nothing is on its way.
                if job.settlement == Settlement::Submitted {
                    store::dropped(&self.db, job, now).await?;
                }
                if patience == RunMode::Caller {
                    let error = ToolError { code: ErrorCode::PaymentFailed, reason: None, message: gave_up_settling() };
                    return self.fail(job, error).await;
                }
                store::postpone(&self.db, job, SETTLEMENT_PAUSE, now).await?;
                return Ok(Progress::Paused);
            }
        }
        Ok(Progress::Moved)
    }

    async fn work(&self, job: &mut Job, patience: RunMode) -> Result<Progress, MoveError> {
        let now = self.clock.now();
        let is_handed_over = job.handed_until.is_some();
        // One of our own tools that waits for an external event is run again to check it.
        let waits = is_handed_over && job.sold.is_none() && !job.goes_on;
        if job.goes_on && job.handed_until.is_some_and(|until| now > until.plus(GRACE)) {
            return self.give_up(job, ToolError::internal("the work did not end in its time")).await;
        }
        if let (Some(until), Some(_)) = (job.handed_until, &job.sold) {
            if now < until {
                if let (Some(sellers), false) = (&self.sellers, job.is_claimed(now)) {
                    sellers.remind(job).await;
                }
                store::postpone(&self.db, job, reminder(job, until, now), now).await?;
                return Ok(Progress::Paused);
            }
            let message = "the seller did not deliver before the service's deadline";
            return self.fail(job, ToolError::unavailable(Unavailable::DeadlineExceeded, message)).await;
        }
        if job.is_worn_out() && !waits {
            let error = ToolError::internal("the work was tried several times and never finished");
            return self.give_up(job, error).await;
        }
        // The owner may have frozen the agent or token while the job waited. What is half done goes on: its price is not paid
        // back.
        if patience == RunMode::Worker && !is_handed_over {
            let frozen = account::glance(&self.db, job.agent).await?.frozen;
            if let Some(what) = frozen.stops(job.charge.token, &job.tool, job.payee()) {
                let message = format!("the owner froze this {what} before the work began");
                return self.give_up(job, ToolError::unavailable(Unavailable::FrozenByOwner, message)).await;
            }
        }
        // Our own work in the workers is limited per buyer: stalling sources of one buyer must not hold every worker. So is
        // what waits for hosts that callers name, of all buyers together: the other workers settle. A job that waits for an
        // event is only checked.
        let needs_slot = patience == RunMode::Worker && job.sold.is_none() && !waits;
        let by_hosts = needs_slot && self.waits_for_hosts(job).await;
        let mut slots = if needs_slot { self.take_slots(job, by_hosts).await? } else { None };
        let worked = match &mut slots {
            None if needs_slot => Ok(Ok(Worked::Busy)),
            slots => self.do_work(job, slots.as_mut().filter(|_| by_hosts)).await,
        };
        if let Some(slots) = slots {
            let end = match &worked {
                Ok(Ok(Worked::Done(_))) => End::Worked,
                Ok(Err(error)) => End::of(error),
                _ => End::Other,
            };
            slots.release_after(&self.db, job.agent, end, self.clock.now()).await;
        }
        match worked? {
            // The payment must not expire while the work goes on later, so it is settled first.
            Ok(Worked::HandedOver { .. }) if job.settlement == Settlement::Claimed && job.sold.is_none() => {
                return Box::pin(self.settle(job, patience)).await;
            }
            Ok(Worked::HandedOver { until, again_after }) => {
                let now = self.clock.now();
                // The time of the first run stands, so that work cannot go on for ever.
                let until = job.handed_until.filter(|_| job.goes_on).map_or(until, |first| first.min(until));
                job.goes_on = again_after.is_some();
                // With a pause, a message is sent; the sweeper looks only in case it was lost.
                let look = again_after.map_or_else(|| reminder(job, until, now), |pause| pause + FIRST_REMINDER);
                let retention = self.runner(job).map_or(RETENTION, |runner| runner.spec.retention);
                let woken = store::hand_over(&self.db, &self.signer, job, until, look, retention, now).await?;
                match again_after {
                    Some(pause) => self.send_later(job, pause).await,
                    // The event came while this run looked for it.
                    None if woken != job.woken => self.send_later(job, Duration::ZERO).await,
                    None => {}
                }
                // Notified only after the write: a quick worker would find a job that it cannot claim yet.
                if let (Some(sellers), true) = (&self.sellers, job.sold.is_some()) {
                    sellers.remind(job).await;
                }
                return Ok(Progress::Paused);
            }
            // The payment must not expire while the work waits, so it is settled first.
            Ok(Worked::Busy) if job.settlement == Settlement::Claimed => {
                return Box::pin(self.settle(job, patience)).await;
            }
            Ok(Worked::Busy) => return self.put_down(job).await,
            Ok(Worked::InputLost) => return self.give_up(job, Unread::Lost.into()).await,
            Ok(Worked::Done(output)) => self.complete(job, output).await?,
            Err(error) => return self.fail(job, error).await,
        }
        Ok(Progress::Moved)
    }

    /// Takes one of the buyer's slots for a tool's work, and one of those for hosts.
    async fn take_slots(&self, job: &Job, by_hosts: bool) -> Result<Option<Slots>, StoreError> {
        let pools = [slots::of_buyer(job.agent), slots::of_hosts(self.toolbox.config.host_places)];
        let pools = if by_hosts { &pools[..] } else { &pools[..1] };
        slots::take(&self.db, pools, job.request_id.to_string(), self.needed(job), self.clock.now()).await
    }

    /// Whether the work begins with hosts that its caller named. Work that goes on has what it needed of them.
    async fn waits_for_hosts(&self, job: &Job) -> bool {
        let waits = self.runner(job).and_then(|runner| runner.spec.waits_for_hosts).filter(|_| !job.goes_on);
        match waits {
            Some(waits) => job.input.read(&*self.blobs).await.is_ok_and(|input| waits(&input)),
            None => false,
        }
    }

    fn runner(&self, job: &Job) -> Option<&'static Runner> {
        self.runners.iter().copied().find(|runner| runner.spec.name == job.tool)
    }

    /// Releases a job that found no free slot, and queues it again with growing delays, for at most [`MOST_WAIT`].
    async fn put_down(&self, job: &mut Job) -> Result<Progress, MoveError> {
        let now = self.clock.now();
        if now >= job.created.plus(MOST_WAIT) && !job.goes_on {
            let message = "the job waited too long: as many jobs as are allowed were running, of its soul, of its buyer, or of \
                           all that wait for slow hosts";
            return self.give_up(job, ToolError::unavailable(Unavailable::DeadlineExceeded, message)).await;
        }
        let pause = (FIRST_PAUSE * 2u32.pow(job.put_down.min(10))).min(LONGEST_PAUSE);
        store::put_down(&self.db, job, pause + FIRST_REMINDER, now).await?;
        self.send_later(job, pause).await;
        Ok(Progress::Paused)
    }

    /// Queues a job again after a pause.
    async fn send_later(&self, job: &Job, pause: Duration) {
        let message = Message::Job { request_id: job.request_id, trace: None };
        if let Err(error) = self.queues.of(job.lane()).send_after(&message, pause).await {
            log::failure("could not queue a job that is to run again; the sweeper will", &error);
        }
    }

    async fn fail(&self, job: &mut Job, error: ToolError) -> Result<Progress, MoveError> {
        store::failed(&self.db, &self.signer, &self.chain, job, error, self.clock.now()).await?;
        Ok(Progress::Moved)
    }

    /// Ends a job that is not tried again. If its tool keeps a record, an earlier attempt may have done a part: that part is
    /// charged. Otherwise the job fails with `error`.
    async fn give_up(&self, job: &mut Job, error: ToolError) -> Result<Progress, MoveError> {
        let keeps_record = self.runner(job).is_some_and(|runner| runner.spec.keeps_record);
        if !keeps_record || job.sold.is_some() {
            return self.fail(job, error).await;
        }
        let input = match job.input.read(&*self.blobs).await {
            Ok(input) => input,
            Err(Unread::Failed(error)) => return Err(error.into()),
            // The record says what was done, also without the input.
            Err(Unread::Lost) => Map::new(),
        };
        match self.run_tool(job, input, Reporter::default(), true).await {
            Ok(output) if output.waits.is_some() => {
                store::postpone(&self.db, job, RECORD_PAUSE, self.clock.now()).await?;
                Ok(Progress::Paused)
            }
            Ok(output) => self.complete(job, output).await.map(|()| Progress::Moved),
            Err(_) => self.fail(job, error).await,
        }
    }

    /// Runs the work, ours or a seller's, and renews the lease meanwhile. `for_hosts`: the slots of work that waits for hosts
    /// which its caller named.
    async fn do_work(
        &self,
        job: &mut Job,
        mut for_hosts: Option<&mut Slots>,
    ) -> Result<Result<Worked, ToolError>, MoveError> {
        let input = match &job.sold {
            // Its runner reads it.
            Some(_) => Map::new(),
            None => match (job.input.read(&*self.blobs).await, job.handed_until.filter(|_| job.goes_on)) {
                (Ok(input), _) => input,
                // What is half done must not fail because of a store that does not answer now.
                (Err(Unread::Failed(error)), Some(until)) => {
                    log::failure("the input of a job that goes on could not be read", &error);
                    return Ok(Ok(Worked::HandedOver { until, again_after: Some(FIRST_REMINDER) }));
                }
                (Err(Unread::Failed(error)), None) => return Err(error.into()),
                (Err(Unread::Lost), _) => return Ok(Ok(Worked::InputLost)),
            },
        };
        let sold = job.clone();
        let (reporter, mut reports) = Reporter::new();
        let reported = reporter.clone();
        let work = async {
            let outcome = match (&self.sellers, &sold.sold) {
                (Some(sellers), Some(_)) => return sellers.run(&sold).await,
                (None, Some(_)) => Err(ToolError::internal("this function does not run sellers' services")),
                (_, None) => self.run_tool(&sold, input, reporter, false).await.map(|output| match output.waits {
                    Some(Wait { until, again_after }) => Worked::HandedOver { until, again_after },
                    None => Worked::Done(output),
                }),
            };
            Attempted { outcome, used: sold.used }
        };
        tokio::pin!(work);
        let begun = Instant::now();
        let (mut renewed, mut written) = (begun, job.progress.clone());
        let mut was_taken = true;
        let mut ask_at = begun + BRIEF;
        loop {
            let pause = match was_taken {
                true if job.progress == written => RENEW_AFTER,
                true => REPORT_AFTER,
                false => RENEW_AGAIN,
            };
            tokio::select! {
                biased;
                attempted = &mut work => {
                    job.used = attempted.used;
                    // The last report is kept, because the job may wait now.
                    while let Ok(report) = reports.try_recv() {
                        job.progress = Some(report);
                    }
                    return Ok(attempted.outcome);
                }
                Some(report) = reports.recv() => {
                    job.progress = Some(report);
                    continue;
                }
                () = tokio::time::sleep_until(ask_at), if for_hosts.is_some() => {
                    let Some(slots) = for_hosts.take().filter(|_| !reported.is_to_end()) else { continue };
                    match self.may_wait_long(job, slots).await {
                        Ok(may_wait) if may_wait || reported.is_to_end() => {}
                        Ok(_) => return Ok(Ok(Worked::Busy)),
                        // A store that does not answer is no reason to throw the work away.
                        Err(error) => {
                            log::failure("a place for long waits could not be asked for", &error);
                            (for_hosts, ask_at) = (Some(slots), Instant::now() + RENEW_AGAIN);
                        }
                    }
                    continue;
                }
                () = tokio::time::sleep_until(renewed + pause) => {}
            }
            let now = self.clock.now();
            match store::renew(&self.db, job, now).await {
                Ok(()) => (was_taken, written) = (true, job.progress.clone()),
                // The lease still holds: one failed renewal is no reason to throw the work away.
                Err(MoveError::Failed(error)) if job.lease_until.is_some_and(|until| now.plus(RENEW_AGAIN) < until) => {
                    log::failure("a job's lease could not be renewed", &error);
                    was_taken = false;
                }
                Err(lost) => return Err(lost),
            }
            renewed = Instant::now();
        }
    }

    /// Takes a place for a run that waits long for hosts.
    async fn may_wait_long(&self, job: &Job, slots: &mut Slots) -> Result<bool, StoreError> {
        let pool = slots::of_slow_hosts(self.toolbox.config.host_places);
        slots.add(&self.db, &[pool], self.needed(job), self.clock.now()).await
    }

    /// Runs the tool under its deadline; with `is_over`, only to say what it has done ([`Task::is_over`]). A panic becomes
    /// this job's failure only.
    async fn run_tool(
        &self,
        job: &Job,
        input: Map<String, Value>,
        reporter: Reporter,
        is_over: bool,
    ) -> Result<Output, ToolError> {
        let runner = self.runner(job).ok_or_else(|| ToolError::internal("this deployment does not run the tool"))?;
        let locked = job.locked.as_deref().map(serde_json::from_str).transpose();
        let locked = locked.map_err(|_| ToolError::internal("the stored quote cannot be read"))?.unwrap_or_default();
        let deadline = self.clock.now().plus(runner.spec.deadline);
        let task = Task {
            tool: runner.spec,
            input,
            locked,
            price: job.price,
            request_id: job.request_id,
            receipt_id: Some(job.receipt_id.clone()),
            agent: job.agent,
            wallet_signed: job.charge.token.is_none() && job.charge.purse.is_none(),
            token: job.charge.token,
            funds: job.wallet.map(|wallet| Funds { wallet, card: job.charge.card, at: job.created }),
            is_over,
            deadline,
            reporter,
        };
        // Dropping the set aborts the task. So if another process takes over the job, this one stops working on it.
        let mut work = JoinSet::new();
        work.spawn((runner.run)(self.toolbox.clone(), task));
        match tokio::time::timeout(runner.spec.deadline, work.join_next()).await {
            Ok(Some(Ok(output))) => output,
            Ok(Some(Err(panic))) => {
                log::failure("a tool panicked", &panic);
                Err(ToolError::internal("the tool failed unexpectedly"))
            }
            Ok(None) => Err(ToolError::internal("the tool did not start")),
            Err(_) => Err(ToolError::unavailable(
                Unavailable::SourceUnavailable,
                format!("the work took longer than {} s", runner.spec.deadline.as_secs()),
            )),
        }
    }

    /// Ends a held job with its result. A result above [`MAX_RESULT_BYTES`] is a failure.
    pub async fn complete(&self, job: &mut Job, output: Output) -> Result<(), MoveError> {
        let reported = store::Reported {
            bought: output.credited,
            used: output.used,
            passed_on: output.passed_on,
            writes: output.writes.clone(),
        };
        let json = output.result.to_string();
        if json.len() > MAX_RESULT_BYTES {
            let why = format!("the result has {} bytes, more than {MAX_RESULT_BYTES}", json.len());
            let error = match job.sold {
                Some(_) => ToolError::unavailable(Unavailable::SellerFailed, why),
                None => ToolError::internal(why),
            };
            return self.fail(job, error).await.map(drop);
        }
        let result = self.keep(job, output, json).await?;
        let written = match &result.place {
            Place::Blob(key) => Some(key.clone()),
            Place::Inline(_) => None,
        };
        let ended = store::completed(&self.db, &self.signer, job, result, reported, self.clock.now()).await;
        // Deleted only after a certain refusal: a write that failed may have been applied.
        if let (Err(MoveError::LostLease), Some(key)) = (&ended, written)
            && let Err(error) = self.blobs.delete(&key).await
        {
            log::failure("the result of a superseded attempt was not deleted", &error);
        }
        ended
    }

    /// Stores a result in the job's item, or in a blob if it is large. Every attempt uses a new blob key, so that one that
    /// lost its lease cannot overwrite a delivered result.
    async fn keep(&self, job: &Job, output: Output, json: String) -> Result<StoredResult, StoreError> {
        let place = if json.len() <= INLINE_RESULT_BYTES {
            Place::Inline(json)
        } else {
            // Jobs with a short retention use a prefix whose blobs are deleted sooner (template.yaml, BlobBucket).
            let is_brief = job.expires < job.created.plus(RETENTION).secs();
            let folder = if is_brief { "results/brief" } else { "results" };
            let key = format!("{folder}/{}-{}.json", job.request_id, const_hex::encode(digest::random::<8>()));
            self.blobs.put(&key, "application/json", json.into_bytes()).await?;
            Place::Blob(key)
        };
        Ok(StoredResult {
            place,
            provider: output.source.provider.to_owned(),
            provider_request_id: output.source.request_id,
            mode: output.source.mode,
        })
    }
}

/// A stored result as JSON. `None` if its blob is gone: blobs are deleted by age, even while a job refers to them.
pub async fn read_result(blobs: &dyn Blobs, result: &StoredResult) -> Result<Option<Value>, StoreError> {
    let bytes = match &result.place {
        Place::Inline(json) => Some(json.clone().into_bytes()),
        Place::Blob(key) => blobs.get(key).await?,
    };
    bytes.map(|bytes| serde_json::from_slice(&bytes).map_err(StoreError::new)).transpose()
}

/// The payment to settle. A job paid from credits never needs it.
fn signed_payment(job: &Job) -> Result<Authorization, StoreError> {
    job.payment.clone().ok_or_else(|| StoreError::new(format_args!("job {} has no payment to settle", job.request_id)))
}

/// Delay until a handed-over job is checked again: at growing intervals, to remind its worker, and at its deadline.
fn reminder(job: &Job, until: Timestamp, now: Timestamp) -> Duration {
    let times = job.attempt.saturating_sub(job.settled_in).min(6);
    let left = Duration::from_millis((until.millis() - now.millis()).max(0).unsigned_abs());
    left.min(FIRST_REMINDER * 2u32.pow(times))
}

enum Progress {
    Moved,
    Paused,
}

fn gave_up_settling() -> String {
    "the payment could not be sent to the chain; nothing was charged".to_owned()
}
