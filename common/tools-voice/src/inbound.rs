//! The job of an inbound call: it waits while the call lasts, and charges it when it has ended.
//!
//! It begins in the transaction that answers the call ([`crate::ringing`]), with the credits of the longest length, and is
//! never sold. Between events it occupies no worker. Whoever ends a call, or finds it ended, queues it. If nobody does, it looks
//! by itself: at a call of the exchange when silence or its length ends it, at a provider's after 1, 2, 4 … minutes and after the
//! longest length. It writes the summary, tells the owner, and keeps the started minutes; the rest is credited. Each of these
//! steps is the same when it is repeated.

use std::sync::Arc;
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::ids::RequestId;
use platform::http::log;
use platform::store::{Db, StoreError};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox};

use crate::call::Event;
use crate::calls::{self, Call};
use crate::dialogue::{self, Turn};
use crate::{answers, ending, events, notices, plan, ringing};

/// Time limit of a run.
const DEADLINE: Duration = Duration::from_secs(60);
/// A run is stopped then, so that the engine does not: it would fail the job, and a failed call is free.
const STOP: Duration = Duration::from_secs(50);
/// Longest wait before a job is run again whose run could not end it.
const AGAIN: Duration = Duration::from_secs(60);
/// The length shown for a call whose job was given up before its end.
const FIRST_MINUTE: Duration = Duration::from_secs(60);
/// How often the summary is tried again because the call changed in the meantime.
const TRIES: usize = 10;

/// Not in the catalog: nobody buys an inbound call.
pub static SPEC: ToolSpec = ToolSpec {
    name: "voice_inbound",
    title: "Inbound call",
    summary: "A call that your number answered",
    group: "voice",
    paths: &["/v1/tools/voice/inbound"],
    price: Price::Fixed(plan::EACH),
    keeps_record: true,
    category: "communication",
    deadline: DEADLINE,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let clock = toolbox.clock.clone();
        guarded(&clock, async move { work(&toolbox, &task).await }).await
    })
}

const SOURCE: Source = Source::embedded("exchange");

/// What a run found. `None`: there is no such call.
type Found = Result<Option<Output>, StoreError>;

/// A run that fails, panics or takes too long is tried again: a call that took place is neither lost nor free.
async fn guarded(clock: &Clock, work: impl Future<Output = Found> + Send + 'static) -> Result<Output, ToolError> {
    // Dropping the set stops the work.
    let mut working = JoinSet::new();
    working.spawn(work);
    let cause = match timeout(STOP, working.join_next()).await {
        Ok(Some(Ok(Ok(Some(output))))) => return Ok(output),
        // Its first transaction wrote both.
        Ok(Some(Ok(Ok(None)))) => return Err(ToolError::internal("the call is not on record")),
        Ok(Some(Ok(Err(error)))) => error,
        // Not the panic's text: it may have words of the call.
        Ok(Some(Err(_)) | None) => StoreError::new("it panicked"),
        Err(late) => StoreError::new(late),
    };
    log::failure("an inbound call could not be ended; it is tried again", &cause);
    Ok(Output::waiting(clock.now().plus(AGAIN), SOURCE))
}

async fn work(toolbox: &Toolbox, task: &Task) -> Found {
    let (db, id, now) = (&toolbox.db, task.request_id, toolbox.clock.now());
    if let Some(again) = events::hear(toolbox, id, task.is_over).await? {
        return Ok(Some(Output::waiting(again, SOURCE)));
    }
    let Some(mut call) = ending::apply(db, id, now, Event::Looked).await? else { return Ok(None) };
    // A provider's call is ended there ([`events::hear`]).
    if call.is_open() && call.provider.is_none() && !task.is_over && ringing::is_frozen(db, call.agent).await? {
        let Some(ended) = ending::apply(db, id, now, Event::Frozen).await? else { return Ok(None) };
        call = ended;
    }
    if call.is_open() && task.is_over {
        let answered = call.state.as_ref().map_or(now, |state| state.answered);
        let end = now.min(answered.plus(FIRST_MINUTE));
        let Some(ended) = ending::apply(db, id, end, Event::Failed).await? else { return Ok(None) };
        call = ended;
    }
    if let Some(until) = next_look(&call, now).filter(|_| call.is_open()) {
        return Ok(Some(Output::waiting(until, SOURCE)));
    }
    // What is being said now belongs to the record.
    if let Some(until) = call.answering.filter(|until| now < *until && !task.is_over) {
        return Ok(Some(Output::waiting(until, SOURCE)));
    }
    let turns = calls::turns(db, id).await?;
    let call = summarised(toolbox, call, &turns).await?;
    notices::completed(db, &call, &dialogue::transcript(&turns), now).await?;
    let charged = call.charged().ok_or_else(|| StoreError::new("a call has no end"))?;
    Ok(Some(Output::new(calls::view(&call, None, None), SOURCE).charging(charged)))
}

/// When to look at an open call again: when it ends if nobody speaks again.
fn next_look(call: &Call, now: Timestamp) -> Option<Timestamp> {
    match call.provider {
        None => call.state.as_ref().map(|state| state.must_end().0),
        Some(_) => call.until().map(|until| until.min(now.plus(events::LOOKS))),
    }
}

/// The call with its summary, which is stored once. A call in which the caller said nothing has none.
async fn summarised(toolbox: &Toolbox, mut call: Call, turns: &[Turn]) -> Result<Call, StoreError> {
    let Some(by_rules) = dialogue::summary(turns).filter(|_| call.summary.is_none()) else { return Ok(call) };
    let summary = answers::summary(toolbox, &call, turns).await.unwrap_or(by_rules);
    let db = &toolbox.db;
    for _ in 0..TRIES {
        if call.summary.is_some() {
            return Ok(call);
        }
        let revision = call.revision.saturating_add(1);
        let next = Call { summary: Some(summary.clone()), revision, ..call };
        if calls::change(db, &next).await? {
            return Ok(next);
        }
        call = reload(db, next.id).await?;
    }
    Err(StoreError::new("a call changes faster than it can be summarised"))
}

async fn reload(db: &Db, id: RequestId) -> Result<Call, StoreError> {
    calls::load(db, id).await?.ok_or_else(|| StoreError::new("a call vanished"))
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    async fn broken() -> Found {
        panic!("a bug")
    }

    async fn failing() -> Found {
        Err(StoreError::new("the database is down"))
    }

    #[test]
    fn a_run_that_breaks_or_hangs_is_tried_again() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let now = Timestamp::from_secs(1_000);
            let clock = Clock::pinned(now);
            let outputs =
                [guarded(&clock, broken()).await, guarded(&clock, failing()).await, guarded(&clock, pending()).await];
            for output in outputs {
                let waits = output.expect("it goes on").waits.expect("it waits");
                assert_eq!((waits.until, waits.again_after), (now.plus(AGAIN), None));
            }
        });
    }
}
