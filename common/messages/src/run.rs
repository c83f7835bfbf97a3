//! A job that hands messages over, in several runs if need be, until every recipient has an outcome.
//!
//! Its state is the rows of [`recipient`]:
//!
//! - A run that ended before the rows were written sent nothing; the next one begins anew.
//! - Rows that are `pending` are handed over by the next run.
//! - A row that is `submitting` when a run begins was left by one that died. What stays in this deployment can be repeated,
//!   as the same message. A message handed to a provider may be out: it becomes `ambiguous`, is never sent again and not
//!   charged.
//!
//! A job whose messages may be out must not fail, because then everything would be paid back. So a run that cannot go on
//! (the database failed, the time is up, a panic) is followed by another one, and after an hour and a half the job ends
//! by its rows. It also ends so when the engine gives it up ([`tools::spec::ToolSpec::keeps_record`]): its processes died too
//! often, or the owner froze it.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use platform::http::log;
use platform::store::{BoxFuture, Db, StoreError};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tools::run::{SOON, STORE_PAUSE, Stop, within_limit};
use tools::{Output, Source, Task, ToolError, Toolbox};

use crate::hand::Handed;
use crate::recipient::{self, Destination, Recipient, State};

/// After a run that was stopped: longest look at the rows, longest time to close them, and to tell the end. The three end
/// before [`tools::run::DEADLINE`].
const LAST_LOOK: Duration = Duration::from_secs(2);
/// The same for a job that is over. Together they end before the engine's lease of the job.
const CLOSING: Duration = Duration::from_secs(8);
/// No message is begun later than this in a run.
pub const SENDING: Duration = Duration::from_secs(70);
/// Longest hand-over of one message. With [`SENDING`] it leaves time to store the outcome.
pub const HAND_OVER: Duration = Duration::from_secs(20);
/// A report of delivery is missing; the provider took no more.
const UNTIL_REPORTED: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(120);
/// For so long messages are tried that the provider does not take now.
const PATIENCE: Duration = Duration::from_secs(3600);
/// For so long after the first run, runs that cannot go on are followed by others. The engine waits longer.
const GIVE_UP: Duration = Duration::from_secs(5400);
/// After so many messages that the provider does not take now, a run begins no others.
const MAX_NOT_NOW: usize = 8;

/// Tells how a job ends by its rows: the result and what is charged. Without rows nothing was sent.
pub type Finish<To> = for<'a> fn(&'a Toolbox, &'a Task, &'a [Recipient<To>]) -> BoxFuture<'a, Result<Output, Stop>>;

/// What differs between kinds of messages.
pub struct Medium<To: 'static> {
    /// The source of a message that stayed in the deployment.
    pub embedded: &'static str,
    /// Why a recipient got no message that could not be handed over in time.
    pub too_late: &'static str,
    /// What is told of a message that was being handed over when a run ended.
    pub interrupted: &'static str,
    /// For so long after the first run, a job waits for reports of the provider before it ends.
    pub reported_within: Duration,
    pub finish: Finish<To>,
}

/// What became of one recipient in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A provider has it.
    Accepted,
    /// Stored in this deployment.
    Delivered,
    Bounced,
    NotNow,
    /// Not begun: the owner has frozen this.
    Frozen(&'static str),
    /// Refused, suppressed or unknown; or another process has it.
    Ended,
}

/// What a run did, in recipients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    pub accepted: u32,
    pub delivered: u32,
    pub bounced: u32,
    pub not_now: usize,
    /// What the owner has frozen.
    pub frozen: Option<&'static str>,
}

/// One run of a job: `work` under the time limit of a run, and what follows if it cannot go on. The work of a job that is over
/// is not begun.
pub async fn run<To: Destination>(
    toolbox: Arc<Toolbox>,
    task: Task,
    work: BoxFuture<'static, Result<Output, Stop>>,
    medium: &'static Medium<To>,
) -> Result<Output, ToolError> {
    if task.is_over {
        return end_now(&toolbox, &task, medium).await;
    }
    match within_limit(work).await {
        Ok(ended) => ended,
        Err((pause, cause)) => {
            log::failure("a run of a send could not go on", &cause);
            go_on(&toolbox, &task, pause, medium).await
        }
    }
}

/// After a run that could not go on: another one after a pause, or the end.
async fn go_on<To: Destination>(
    toolbox: &Toolbox,
    task: &Task,
    pause: Duration,
    medium: &Medium<To>,
) -> Result<Output, ToolError> {
    let now = toolbox.clock.now();
    let again = |until| Ok(Output::again(pause, until, Source::embedded(medium.embedded)));
    let Ok(Ok(rows)) = timeout(LAST_LOOK, recipient::all::<To>(&toolbox.db, task.request_id)).await else {
        return again(now.plus(PATIENCE));
    };
    let Some(started) = rows.first().and_then(Recipient::started) else { return again(now.plus(PATIENCE)) };
    if now < started.plus(GIVE_UP) {
        return again(started.plus(PATIENCE));
    }
    end_by(toolbox, task, &rows, LAST_LOOK, medium).await
}

/// The end of a job that is over, by its rows. Another run if they cannot be read now.
async fn end_now<To: Destination>(toolbox: &Toolbox, task: &Task, medium: &Medium<To>) -> Result<Output, ToolError> {
    match timeout(CLOSING, recipient::all::<To>(&toolbox.db, task.request_id)).await {
        Ok(Ok(rows)) => end_by(toolbox, task, &rows, CLOSING, medium).await,
        Ok(Err(_)) | Err(_) => Ok(later(toolbox, medium)),
    }
}

/// Ends a job by these rows, after closing what is open, if that takes no longer than `time`.
async fn end_by<To: Destination>(
    toolbox: &Toolbox,
    task: &Task,
    rows: &[Recipient<To>],
    time: Duration,
    medium: &Medium<To>,
) -> Result<Output, ToolError> {
    let closing = async {
        close(toolbox, rows, None, medium).await?;
        recipient::all::<To>(&toolbox.db, task.request_id).await
    };
    let closed = timeout(time, closing).await;
    let rows = match &closed {
        Ok(Ok(closed)) => closed.as_slice(),
        // What was accepted is charged all the same.
        Ok(Err(_)) | Err(_) => rows,
    };
    match timeout(time, (medium.finish)(toolbox, task, rows)).await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(Stop::Failed(error))) => Err(error),
        Ok(Err(Stop::Store(_))) | Err(_) => Ok(later(toolbox, medium)),
    }
}

/// Another run, because the database does not answer now.
fn later<To: Destination>(toolbox: &Toolbox, medium: &Medium<To>) -> Output {
    Output::again(STORE_PAUSE, toolbox.clock.now().plus(PATIENCE), Source::embedded(medium.embedded))
}

/// Ends recipients that get no message after all; those that may have it become `ambiguous`. `why`: of those that were not
/// begun.
async fn close<To: Destination>(
    toolbox: &Toolbox,
    rows: &[Recipient<To>],
    why: Option<&str>,
    medium: &Medium<To>,
) -> Result<(), StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    for row in rows {
        match row.state {
            State::Pending => {
                let reason = why.or(row.reason.as_deref()).unwrap_or(medium.too_late);
                recipient::refuse(db, row, State::Refused, reason, now).await?;
            }
            State::Submitting => {
                recipient::ended(db, row, State::Ambiguous, None, Some(medium.interrupted), now).await?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Closes what is open, and ends the job by its rows. `why`: why recipients get no message.
///
/// # Errors
/// Those of the database, and of [`Medium::finish`].
pub async fn end<To: Destination>(
    toolbox: &Toolbox,
    task: &Task,
    rows: &[Recipient<To>],
    why: Option<&str>,
    medium: &Medium<To>,
) -> Result<Output, Stop> {
    close(toolbox, rows, why, medium).await?;
    let rows = recipient::all::<To>(&toolbox.db, task.request_id).await?;
    (medium.finish)(toolbox, task, &rows).await
}

/// After a run has handed over what it could: another run if something is left, or the end. `why`: why nothing more is sent.
///
/// # Errors
/// Those of the database, and of [`Medium::finish`].
pub async fn after<To: Destination>(
    toolbox: &Toolbox,
    task: &Task,
    sent: &Sending,
    why: Option<&str>,
    medium: &Medium<To>,
) -> Result<Output, Stop> {
    let rows = recipient::all::<To>(&toolbox.db, task.request_id).await?;
    let has = |state: State| rows.iter().any(|row| row.state == state);
    let (now, started) = (toolbox.clock.now(), rows.first().and_then(Recipient::started));
    let in_time = |time: Duration| started.map(|started| started.plus(time)).filter(|until| now < *until);
    let again = |pause, until| Ok(Output::again(pause, until, Source::embedded(medium.embedded)));
    // What is being handed over may be accepted yet, and is then charged.
    let goes_on = has(State::Submitting) || (has(State::Pending) && why.is_none());
    if goes_on && let Some(until) = in_time(PATIENCE) {
        return again(if sent.not_now > 0 { PAUSE } else { SOON }, until);
    }
    if rows.iter().any(|row| row.state.is_open()) {
        return end(toolbox, task, &rows, why, medium).await;
    }
    if has(State::Accepted)
        && let Some(until) = in_time(medium.reported_within)
    {
        return again(UNTIL_REPORTED, until);
    }
    (medium.finish)(toolbox, task, &rows).await
}

/// Stores what became of a message that was handed to a provider.
pub async fn outcome<To>(db: &Db, row: &Recipient<To>, handed: &Handed, now: Timestamp) -> Result<Step, StoreError> {
    let (state, reason, step) = match handed {
        Handed::Accepted { provider_message_id, .. } => {
            let id = provider_message_id.as_deref().unwrap_or(&row.message_id);
            if !recipient::ended(db, row, State::Accepted, Some(id), None, now).await? {
                // An event of the provider was faster. The id says that the message was accepted, and is charged.
                recipient::identify(db, row, id).await?;
            }
            return Ok(Step::Accepted);
        }
        Handed::Refused { reason } | Handed::NoSender { reason } => (State::Refused, reason, Step::Ended),
        Handed::Suppressed { reason } => (State::Suppressed, reason, Step::Ended),
        Handed::NotNow { reason } => (State::Pending, reason, Step::NotNow),
        Handed::Unknown { reason } => (State::Ambiguous, reason, Step::Ended),
    };
    recipient::ended(db, row, state, None, Some(reason), now).await?;
    Ok(step)
}

/// Hands over the messages of these rows, `at_once` at a time, and begins none after `stop`. After an error of the database or
/// a freeze no other is begun; those in work are finished. `in_all`: rows of the job, for the progress.
pub async fn each<To: Destination>(
    rows: Vec<Recipient<To>>,
    at_once: usize,
    stop: Instant,
    task: &Task,
    in_all: usize,
    deliver: impl Fn(Recipient<To>) -> BoxFuture<'static, Result<Step, StoreError>>,
) -> (Sending, Option<StoreError>) {
    let before = in_all.saturating_sub(rows.len());
    let (mut sending, mut done, mut failed) = (Sending::default(), 0usize, None);
    let mut waiting = rows.into_iter();
    let mut running = JoinSet::new();
    loop {
        while running.len() < at_once
            && failed.is_none()
            && sending.frozen.is_none()
            && sending.not_now < MAX_NOT_NOW
            && Instant::now() < stop
            && let Some(row) = waiting.next()
        {
            running.spawn(deliver(row));
        }
        let Some(joined) = running.join_next().await else { break };
        // Not the panic's text: it may have a text of the message.
        match joined.map_err(|_| StoreError::new("a hand-over panicked")).and_then(|step| step) {
            Ok(Step::Accepted) => sending.accepted += 1,
            Ok(Step::Delivered) => sending.delivered += 1,
            Ok(Step::Bounced) => sending.bounced += 1,
            Ok(Step::NotNow) => sending.not_now += 1,
            Ok(Step::Frozen(what)) => sending.frozen = Some(what),
            Ok(Step::Ended) => {}
            Err(error) => failed = Some(error),
        }
        done += 1;
        let percent = ((before + done) * 100 / in_all.max(1)).min(99);
        task.reporter.say(u8::try_from(percent).unwrap_or(99), format!("{} of {in_all} recipients", before + done));
    }
    (sending, failed)
}

/// Beginning of the reason of recipients whose message a freeze stopped.
const FROZEN: &str = "the owner froze ";

/// Why a recipient got no message after a freeze of `what`. `message`: a mail or a text.
pub fn frozen_reason(what: &str, message: &str) -> String {
    format!("{FROZEN}this {what} before the {message} was sent")
}

/// The reason of the first recipient whose message a freeze stopped.
pub fn frozen<'a, To: 'a>(rows: impl IntoIterator<Item = &'a Recipient<To>>) -> Option<&'a str> {
    rows.into_iter().filter_map(|row| row.reason.as_deref()).find(|reason| reason.starts_with(FROZEN))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use base::ids::{AgentId, RequestId};
    use base::money::Usdc;
    use tools::Reporter;
    use tools::spec::ToolSpec;

    use super::*;

    static SPEC: ToolSpec = ToolSpec::QUEUED;

    /// Hands over to 100, two at a time. Returns what was done, and how many were begun.
    async fn of_a_hundred(stop: Instant, became: fn(u32) -> Result<Step, StoreError>) -> (Sending, bool, usize) {
        let request_id = RequestId::from_bytes([1; 16]);
        let row = |index: u32| Recipient {
            request_id,
            index,
            agent: AgentId::from_bytes([2; 16]),
            sender: "a.example".to_owned(),
            to: index.to_string(),
            state: State::Pending,
            message_id: String::new(),
            provider_message_id: None,
            run: None,
            reason: None,
            opens: 0,
            clicks: 0,
            changed: Timestamp::from_secs(0),
            expires: 0,
        };
        let task = Task {
            tool: &SPEC,
            input: Default::default(),
            locked: Default::default(),
            price: Usdc::ZERO,
            request_id,
            receipt_id: None,
            agent: AgentId::from_bytes([2; 16]),
            wallet_signed: true,
            token: None,
            funds: None,
            is_over: false,
            deadline: Timestamp::from_secs(0),
            reporter: Reporter::default(),
        };
        let begun = Arc::new(AtomicUsize::new(0));
        let counter = begun.clone();
        let deliver = move |row: Recipient<String>| -> BoxFuture<'static, Result<Step, StoreError>> {
            counter.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move { became(row.index) })
        };
        let (sending, failed) = each((0..100).map(row).collect(), 2, stop, &task, 100, deliver).await;
        (sending, failed.is_some(), begun.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn a_run_begins_no_others_when_it_cannot_go_on() {
        let late = Instant::now() + Duration::from_secs(3600);
        let (sending, failed, begun) = of_a_hundred(late, |_| Ok(Step::Accepted)).await;
        assert_eq!((sending.accepted, failed, begun), (100, false, 100));
        let (sending, failed, begun) =
            of_a_hundred(late, |index| if index == 10 { Err(StoreError::new("away")) } else { Ok(Step::Delivered) })
                .await;
        assert!(failed && (10..=12).contains(&begun) && sending.delivered as usize == begun - 1, "{sending:?} {begun}");
        let (sending, failed, begun) = of_a_hundred(late, |_| Ok(Step::NotNow)).await;
        assert!(!failed && begun == sending.not_now && (8..=9).contains(&begun), "{sending:?} {begun}");
        let (sending, failed, begun) = of_a_hundred(late, |_| Ok(Step::Frozen("agent"))).await;
        assert!(!failed && begun <= 2 && sending.frozen == Some("agent"), "{sending:?} {begun}");
        let (sending, failed, begun) = of_a_hundred(Instant::now(), |_| Ok(Step::Accepted)).await;
        assert_eq!((sending, failed, begun), (Sending::default(), false, 0));
    }
}
