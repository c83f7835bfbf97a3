//! The exchange: a call from a number here to a number here, in turns of text. The callee's assistant answers, and the callee
//! pays, as for any call that comes in.
//!
//! A turn is taken before it is answered, so that two never run at once, and stored after it was answered. If a process dies
//! in between, the turn can be taken again after a while, and is answered anew.
//!
//! A call that is passed on goes to the owner of the transfer number as a call of its own: that owner's settings decide, and
//! that owner pays. Its id follows from the first call's, so a repetition passes it on once. It is not passed on again.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use platform::store::{Db, StoreError};
use tools::Toolbox;
use tools_sms::number::Number;
use tools_sms::phone::{self, Phone};

use crate::answers;
use crate::call::{self, Ended, Event, Phase, State};
use crate::calls::{self, Call, MAX_TURNS};
use crate::dialogue::{self, Speaker, Turn};
use crate::ending;
use crate::ringing::{self, Rang, Ring};
use crate::velocity;

/// Most turns of a caller in a started minute, on average since the call was answered.
pub const TURNS_A_MINUTE: u32 = 8;
/// A turn that is not answered after this long is answered by nobody.
const ANSWERING: Duration = Duration::from_secs(30);
const MINUTE: Duration = Duration::from_secs(60);
/// Rows that one turn of a caller can add: the words, the answer, and that nobody was reached.
const ROWS_OF_A_TURN: u32 = 3;
/// Attempts to store a change while others change the call.
const TRIES: usize = 5;

/// What became of a dialled number.
#[derive(Debug)]
pub enum Dialled {
    /// The call may have ended: it was passed on, or this is the answer to a repeated dial.
    Answered {
        call: Call,
        /// The first words of the assistant.
        said: String,
        /// The call to which it was passed on; always `Answered`.
        passed_on: Option<Box<Dialled>>,
    },
    /// With what the caller hears; nothing in the answer to a repeated dial.
    Declined(Call, Option<String>),
    NotInService,
    /// The caller's number is in another call.
    Busy,
    /// A limit of today is reached; the text says which.
    Limited(&'static str),
}

/// What became of a caller's turn.
#[derive(Debug)]
pub enum Said {
    /// The call may have ended with it.
    Answer { call: Call, text: String, passed_on: Option<Box<Dialled>> },
    /// The call had ended before, or ends now because its callee has frozen its calls.
    Over(Call),
    /// Another turn is being answered, until then at the latest.
    Busy { until: Timestamp },
    /// There were as many turns as a call of this length may have, or as any call may have. After this time another one is taken,
    /// or the call has ended.
    TooFast { until: Timestamp },
}

/// A turn that was taken, or why not.
enum Taken {
    Turn(Call),
    Not(Said),
}

/// What became of a call that its assistant passes on.
struct Passed {
    call: Call,
    /// That nobody was reached.
    said: Option<String>,
    to: Option<Box<Dialled>>,
}

/// The id of the call to which this one is passed on.
pub fn passed_id(id: RequestId) -> RequestId {
    RequestId::bought_with("passed_on", &[id.bytes()])
}

/// Calls a number from a number of the caller. The same id dials once: a repetition gets the call as it is. `price`: of a
/// minute.
pub async fn dial(
    toolbox: &Toolbox,
    caller: AgentId,
    from: &Phone,
    to: &Number,
    id: RequestId,
    price: Usdc,
) -> Result<Dialled, StoreError> {
    let db = &toolbox.db;
    if let Some(call) = calls::load(db, id).await? {
        let dialled = greeted(toolbox, call).await?;
        return connected(toolbox, dialled).await;
    }
    // Nobody calls a number of their own, from whichever they do.
    if phone::owner_of(db, to).await?.is_none_or(|owner| owner.agent == caller) {
        return Ok(Dialled::NotInService);
    }
    let (number, now) = (from.number.as_str(), toolbox.clock.now());
    phone::used(db, from, now).await?;
    if !velocity::take_line(db, number, id, now).await? {
        return Ok(Dialled::Busy);
    }
    if let Some(why) = velocity::take(db, caller, to, id, now).await? {
        velocity::free_line(db, number, id, now).await?;
        return Ok(Dialled::Limited(why));
    }
    let ring = Ring { id, to, from: number, caller: Some(caller), provider: None, price, hops: 0 };
    match begin(toolbox, &ring).await {
        Ok(dialled @ Dialled::Answered { .. }) => connected(toolbox, dialled).await,
        other => {
            // A call that was answered all the same keeps the line while it is open, and counts as answered.
            let freed = velocity::free_line(db, number, id, now).await;
            let counted = velocity::unanswered(db, caller, to, id, now).await;
            let dialled = other?;
            freed.and(counted).map(|()| dialled)
        }
    }
}

/// The caller says something: visible text of at most [`dialogue::MAX_SAID`] characters ([`dialogue::cleaned`]).
///
/// # Errors
/// Those of the database, and if there is no such call.
pub async fn say(toolbox: &Toolbox, id: RequestId, text: &str) -> Result<Said, StoreError> {
    let db = &toolbox.db;
    let call = match take_turn(toolbox, id).await? {
        Taken::Turn(call) => call,
        Taken::Not(said) => return Ok(said),
    };
    let (Some(config), Some(state)) = (&call.config, &call.state) else { return Ok(Said::Over(call)) };
    let said = Turn { speaker: Speaker::Caller, text: text.to_owned() };
    if state.phase == Phase::Transferred {
        // A process died while it passed the call on.
        calls::add_turns(db, id, call.turns, &[said], toolbox.clock.now()).await?;
        let call = stored(db, call, |call| {
            call.turns += 1;
            call.spoken += 1;
            call.answering = None;
        })
        .await?;
        let Passed { call, said, to } = pass_on(toolbox, call).await?;
        let text = said.or_else(|| greeting_of(to.as_deref())).unwrap_or_default();
        return Ok(Said::Answer { call, text, passed_on: to });
    }
    let mut turns = calls::turns(db, id).await?;
    // Later rows are of a turn that was not answered to its end.
    turns.truncate(usize::try_from(call.turns).unwrap_or(usize::MAX));
    turns.push(said.clone());
    let (reply, has_failed) = answers::reply(toolbox, &call, config, state.mode, &turns).await;
    let now = toolbox.clock.now();
    let answer = Turn { speaker: Speaker::Assistant, text: reply.text.clone() };
    calls::add_turns(db, id, call.turns, &[said, answer], now).await?;
    let call = stored(db, call, |call| {
        call.turns += 2;
        call.failures = call.failures.saturating_add(has_failed.into());
        call.spoken += 1;
        call.answering = None;
        if let (Some(tool), Some(config), Some(state)) = (reply.uses, &call.config, &call.state) {
            call.state = Some(call::next(config, state, now, Event::Uses(tool)));
        }
    })
    .await?;
    if !is_being_passed_on(&call) {
        return Ok(Said::Answer { call, text: reply.text, passed_on: None });
    }
    let Passed { call, said, to } = pass_on(toolbox, call).await?;
    Ok(Said::Answer { call, text: joined(reply.text, said), passed_on: to })
}

/// The caller hangs up. A call that has ended stays as it is. `None`: there is no such call.
pub async fn hang_up(toolbox: &Toolbox, id: RequestId) -> Result<Option<Call>, StoreError> {
    ending::apply(&toolbox.db, id, toolbox.clock.now(), Event::HungUp).await
}

/// The owner of the called number hangs up. A call that has ended stays as it is. `None`: there is no such call.
pub async fn hang_up_by_callee(toolbox: &Toolbox, id: RequestId) -> Result<Option<Call>, StoreError> {
    ending::apply(&toolbox.db, id, toolbox.clock.now(), Event::CalleeHungUp).await
}

/// Rings, and greets if the call is answered. Passes nothing on.
async fn begin(toolbox: &Toolbox, ring: &Ring<'_>) -> Result<Dialled, StoreError> {
    match ringing::ring(toolbox, ring).await? {
        Rang::NotInService => Ok(Dialled::NotInService),
        Rang::Declined(call, said) => Ok(Dialled::Declined(call, said)),
        Rang::Answered(call) | Rang::Known(call) => greeted(toolbox, call).await,
    }
}

/// Stores the greeting of a call that rang, if that has not happened.
async fn greeted(toolbox: &Toolbox, call: Call) -> Result<Dialled, StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let call = call.now(now);
    let (Some(config), Some(state)) = (&call.config, &call.state) else { return Ok(Dialled::Declined(call, None)) };
    let said = dialogue::greeting(config, state.mode);
    if call.turns > 0 || !call.is_open() {
        return Ok(Dialled::Answered { call, said, passed_on: None });
    }
    let greeting = Turn { speaker: Speaker::Assistant, text: said.clone() };
    calls::add_turns(db, call.id, 0, &[greeting], now).await?;
    let call = stored(db, call, |call| call.turns = call.turns.max(1)).await?;
    Ok(Dialled::Answered { call, said, passed_on: None })
}

/// Passes a call on that was answered only for that. Adds the second call to one that has been passed on.
async fn connected(toolbox: &Toolbox, dialled: Dialled) -> Result<Dialled, StoreError> {
    let Dialled::Answered { call, said, .. } = dialled else { return Ok(dialled) };
    if is_being_passed_on(&call) {
        let Passed { call, said: more, to } = pass_on(toolbox, call).await?;
        return Ok(Dialled::Answered { call, said: joined(said, more), passed_on: to });
    }
    let mut passed_on = None;
    if ended_with(&call, Ended::Transferred)
        && let Some(next) = calls::load(&toolbox.db, passed_id(call.id)).await?
    {
        passed_on = Some(Box::new(greeted(toolbox, next).await?));
    }
    Ok(Dialled::Answered { call, said, passed_on })
}

/// Takes the caller's turn: until it is answered, or its time is over, no other turn is taken. If the database's answer is
/// lost, the SDK asks again, and the turn is `Busy`: by its own doing, and for that time.
async fn take_turn(toolbox: &Toolbox, id: RequestId) -> Result<Taken, StoreError> {
    let db = &toolbox.db;
    for _ in 0..TRIES {
        let mut call = calls::load(db, id).await?.ok_or_else(vanished)?;
        let now = toolbox.clock.now();
        let (Some(config), Some(state)) = (&call.config, &call.state) else { return Ok(Taken::Not(Said::Over(call))) };
        let next = call::next(config, state, now, Event::Heard);
        if next.ended().is_some() {
            let ended = ending::apply(db, id, now, Event::Looked).await?;
            return Ok(Taken::Not(Said::Over(ended.unwrap_or(call))));
        }
        // Its owner would go on paying.
        if ringing::is_frozen(db, call.agent).await? {
            let ended = ending::apply(db, id, now, Event::Frozen).await?;
            return Ok(Taken::Not(Said::Over(ended.unwrap_or(call))));
        }
        if let Some(until) = call.answering.filter(|until| now < *until) {
            return Ok(Taken::Not(Said::Busy { until }));
        }
        if call.turns + ROWS_OF_A_TURN > MAX_TURNS {
            let (until, _) = state.must_end();
            return Ok(Taken::Not(Said::TooFast { until }));
        }
        let minutes = call::started_minutes(between(state.answered, now));
        if call.spoken >= TURNS_A_MINUTE.saturating_mul(minutes) {
            let until = state.answered.plus(MINUTE * minutes);
            return Ok(Taken::Not(Said::TooFast { until }));
        }
        call.state = Some(next);
        call.answering = Some(now.plus(ANSWERING));
        call.revision += 1;
        if calls::change(db, &call).await? {
            return Ok(Taken::Turn(call));
        }
    }
    Err(changed_too_often())
}

/// Passes a call on to its transfer number, or tells its caller that nobody can be reached.
async fn pass_on(toolbox: &Toolbox, call: Call) -> Result<Passed, StoreError> {
    let number = call.config.as_ref().and_then(|config| config.transfer_number.clone());
    let next = match number.filter(|_| call.hops == 0) {
        Some(number) => second(toolbox, &call, &number).await?,
        None => None,
    };
    let Some(next) = next else {
        let (call, said) = not_passed_on(toolbox, call).await?;
        return Ok(Passed { call, said, to: None });
    };
    let ended = ending::apply(&toolbox.db, call.id, toolbox.clock.now(), Event::PassedOn).await?;
    Ok(Passed { call: ended.unwrap_or(call), said: None, to: Some(Box::new(next)) })
}

/// The call to which this one is passed on, if it is answered.
async fn second(toolbox: &Toolbox, call: &Call, to: &Number) -> Result<Option<Dialled>, StoreError> {
    let (db, id) = (&toolbox.db, passed_id(call.id));
    let Some(caller) = call.caller else { return Ok(None) };
    if calls::glance(db, id).await?.is_none() {
        let is_refused = phone::owner_of(db, to).await?.is_none_or(|owner| owner.agent == caller)
            || velocity::take(db, caller, to, id, toolbox.clock.now()).await?.is_some();
        if is_refused {
            return Ok(None);
        }
    }
    let hops = call.hops.saturating_add(1);
    let ring = Ring { id, to, from: &call.from, caller: Some(caller), provider: None, price: call.price, hops };
    let Dialled::Answered { call: next, said, .. } = begin(toolbox, &ring).await? else { return Ok(None) };
    velocity::hand_line(db, &call.from, call.id, id).await?;
    if !is_being_passed_on(&next) {
        return Ok(Some(Dialled::Answered { call: next, said, passed_on: None }));
    }
    let (next, more) = not_passed_on(toolbox, next).await?;
    Ok(Some(Dialled::Answered { call: next, said: joined(said, more), passed_on: None }))
}

/// A transfer failed. With what the caller hears then.
async fn not_passed_on(toolbox: &Toolbox, call: Call) -> Result<(Call, Option<String>), StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let Some(failed) = ending::apply(db, call.id, now, Event::TransferFailed).await? else { return Ok((call, None)) };
    // Unless its time was over before.
    let is_told = failed.is_open() || ended_with(&failed, Ended::TransferFailed);
    let text = failed.config.as_ref().map(dialogue::unreachable);
    let Some(text) = text.filter(|_| is_told) else { return Ok((failed, None)) };
    let turn = Turn { speaker: Speaker::Assistant, text: text.clone() };
    calls::add_turns(db, failed.id, failed.turns, &[turn], now).await?;
    let told = stored(db, failed, |call| call.turns += 1).await?;
    Ok((told, Some(text)))
}

/// Stores a change of a call, again if somebody else was faster.
async fn stored(db: &Db, mut call: Call, change: impl Fn(&mut Call)) -> Result<Call, StoreError> {
    for _ in 0..TRIES {
        change(&mut call);
        call.revision += 1;
        if calls::change(db, &call).await? {
            return Ok(call);
        }
        let found = calls::glance(db, call.id).await?.ok_or_else(vanished)?;
        let found = Call { config: call.config.clone(), ..found };
        // A write whose answer was lost is sent again by the SDK, and then refused by its own success.
        if found == call {
            return Ok(call);
        }
        call = found;
    }
    Err(changed_too_often())
}

fn is_being_passed_on(call: &Call) -> bool {
    call.state.as_ref().is_some_and(|state| state.phase == Phase::Transferred)
}

fn ended_with(call: &Call, reason: Ended) -> bool {
    call.state.as_ref().and_then(State::ended).is_some_and(|(_, why)| why == reason)
}

fn greeting_of(dialled: Option<&Dialled>) -> Option<String> {
    match dialled? {
        Dialled::Answered { said, .. } => Some(said.clone()),
        _ => None,
    }
}

fn joined(said: String, more: Option<String>) -> String {
    match more {
        Some(more) => format!("{said} {more}"),
        None => said,
    }
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(to.millis().saturating_sub(from.millis())).unwrap_or_default())
}

fn vanished() -> StoreError {
    StoreError::new("a call vanished")
}

fn changed_too_often() -> StoreError {
    StoreError::new("a call does not stop changing")
}
