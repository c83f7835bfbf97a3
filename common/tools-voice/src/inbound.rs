//! The job of an inbound call: it waits while the call lasts, and charges it when it has ended.
//!
//! It begins in the transaction that answers the call ([`crate::ringing`]), with the credits of the longest length, and is
//! never sold. Between events it occupies no worker. Whoever ends a call queues it; if that message is lost, it looks by itself
//! after 1, 2, 4 … minutes and at the longest length. It writes the summary, tells the owner, and keeps the started minutes; the
//! rest is credited. Each of these steps is the same when it is repeated.

use std::sync::Arc;
use std::time::Duration;

use base::ids::RequestId;
use platform::http::log;
use platform::store::{Db, StoreError};
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox};

use crate::call::Event;
use crate::calls::{self, Call};
use crate::dialogue::{self, Turn};
use crate::{ending, events, notices, plan};

/// Longest wait before a job is run again whose rows could not be read or written.
const AGAIN: Duration = Duration::from_secs(60);
/// What an unfinished call is charged if its job is given up: the minute that it was answered for.
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
    deadline: Duration::from_secs(60),
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        match work(&toolbox, &task).await {
            Ok(Some(output)) => Ok(output),
            // Its first transaction wrote both.
            Ok(None) => Err(ToolError::internal("the call is not on record")),
            // A call that took place is neither lost nor free.
            Err(error) => {
                log::failure("an inbound call could not be ended; it is tried again", &error);
                Ok(Output::waiting(toolbox.clock.now().plus(AGAIN), SOURCE))
            }
        }
    })
}

const SOURCE: Source = Source::embedded("exchange");

/// `None`: there is no such call.
async fn work(toolbox: &Toolbox, task: &Task) -> Result<Option<Output>, StoreError> {
    let (db, id, now) = (&toolbox.db, task.request_id, toolbox.clock.now());
    if let Some(again) = events::hear(toolbox, id, task.is_over).await? {
        return Ok(Some(Output::waiting(again, SOURCE)));
    }
    let Some((mut call, _)) = ending::apply(db, id, now, Event::Looked).await? else { return Ok(None) };
    if call.is_open() && task.is_over {
        let answered = call.state.as_ref().map_or(now, |state| state.answered);
        let end = now.min(answered.plus(FIRST_MINUTE));
        let Some((ended, _)) = ending::apply(db, id, end, Event::Failed).await? else { return Ok(None) };
        call = ended;
    }
    if let Some(until) = call.until().filter(|_| call.is_open()) {
        return Ok(Some(Output::waiting(until, SOURCE)));
    }
    // What is being said now belongs to the record.
    if let Some(until) = call.answering.filter(|until| now < *until && !task.is_over) {
        return Ok(Some(Output::waiting(until, SOURCE)));
    }
    let turns = calls::turns(db, id).await?;
    let call = summarised(db, call, &turns).await?;
    notices::completed(db, &call, &dialogue::transcript(&turns), now).await?;
    let charged = call.charged().ok_or_else(|| StoreError::new("a call has no end"))?;
    Ok(Some(Output::new(calls::view(&call, None, None), SOURCE).charging(charged)))
}

/// The call with its summary, which is stored once. A call in which the caller said nothing has none.
async fn summarised(db: &Db, mut call: Call, turns: &[Turn]) -> Result<Call, StoreError> {
    let Some(summary) = dialogue::summary(turns) else { return Ok(call) };
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
