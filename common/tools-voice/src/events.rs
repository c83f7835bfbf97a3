//! What providers tell of calls; Telnyx's part is [`crate::commands`].
//!
//! Whoever calls [`apply_vapi`] has checked the secret. What is posted may come twice, late, in any order, or never, and Vapi
//! signs nothing. So it only says which call rings, or which job to run: the provider is asked about a call before credits are held
//! for it ([`vapi::ringing`]) and before it is charged ([`hear`]).

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::RequestId;
use platform::http::log;
use platform::store::{Db, StoreError, WriteError};
use serde_json::Value;
use tokio::time::Instant;
use tools::Toolbox;

use crate::call::{self, Ended, Event, Phase, State};
use crate::calls::{self, Call};
use crate::failures;
use crate::outside;
use crate::providers::{self, Facts, Heard, Verdict, text, vapi};
use crate::ringing::{self, Rang, Ring};

/// Vapi waits 7.5 s in all for an answer to a call that rings.
const RINGS: Duration = Duration::from_secs(4);
/// What Vapi posts when a call rings.
const RINGING: &str = "assistant-request";
/// Longest wait for a provider that is asked about a call.
const ASK: Duration = Duration::from_secs(15);
/// The analysis follows the end of a call within this time, or does not come.
pub(crate) const ANALYSIS: Duration = Duration::from_secs(90);
/// Pause before a provider is asked again.
pub(crate) const AGAIN: Duration = Duration::from_secs(60);
/// Longest time between two looks at a call that goes on at its provider: so soon a freeze ends it.
pub(crate) const LOOKS: Duration = Duration::from_secs(5 * 60);
/// How long a provider is asked about a call that must be over.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// How long a call is shown of which the provider never says how long it was.
const FIRST_MINUTE: Duration = Duration::from_secs(60);
/// How often a change is tried again because another one was faster.
const TRIES: usize = 10;

/// What has to be done about something that was posted.
#[derive(Clone, Debug, PartialEq)]
pub enum Posted {
    /// It waits for this answer.
    Answer(Value),
    /// This job has to run.
    Wakes(RequestId),
    Nothing,
}

/// Takes what Vapi posts: `{message: {type, call, …}}`. <https://docs.vapi.ai/server-url/events>
///
/// # Errors
/// If the database fails. Vapi repeats a report then, and tells a caller that there is an error.
pub async fn apply_vapi(toolbox: &Toolbox, posted: &Value) -> Result<Posted, StoreError> {
    let message = &posted["message"];
    match text(message, "/type") {
        Some(RINGING) => Ok(Posted::Answer(rings(toolbox, message).await?)),
        Some("end-of-call-report") => over(&toolbox.db, message).await,
        Some("status-update") if message["status"] == "ended" => over(&toolbox.db, message).await,
        _ => Ok(Posted::Nothing),
    }
}

/// Whether a call rings with this post of Vapi's.
pub fn is_ringing(posted: &Value) -> bool {
    text(&posted["message"], "/type") == Some(RINGING)
}

/// The id of an inbound call: the same however often it rings.
pub(crate) fn inbound_id(provider: &str, provider_id: &str) -> RequestId {
    RequestId::bought_with("ring", &[provider.as_bytes(), provider_id.as_bytes()])
}

/// A call rings at one of the operator's numbers.
async fn rings(toolbox: &Toolbox, message: &Value) -> Result<Value, StoreError> {
    let (Some(id), Some(line)) = (text(message, "/call/id"), text(message, "/call/phoneNumberId")) else {
        return Ok(vapi::not_in_service());
    };
    let ringing = match vapi::ringing(toolbox, id, line, Instant::now() + RINGS).await {
        Ok(Some(ringing)) => ringing,
        Ok(None) => return Ok(vapi::not_in_service()),
        Err(error) => {
            log::failure("a call could not be confirmed, and was not answered", &error.detail());
            return Ok(vapi::declined(None));
        }
    };
    let ring = Ring {
        id: inbound_id(vapi::NAME, id),
        to: &ringing.to,
        from: &ringing.from,
        // Anybody can show any number, so no agent is known by it.
        caller: None,
        provider: Some((vapi::NAME, id)),
        price: ringing::price_of_minute(&toolbox.config),
        hops: 0,
    };
    let call = match ringing::ring(toolbox, &ring).await? {
        Rang::NotInService => return Ok(vapi::not_in_service()),
        Rang::Declined(_, say) => return Ok(vapi::declined(say.as_deref())),
        Rang::Answered(call) | Rang::Known(call) => call,
    };
    let call = outside::reachable_by_line(&toolbox.db, call).await?;
    match vapi::treatment(toolbox, &call).await {
        Ok(treatment) => Ok(treatment),
        Err(error) => {
            log::failure("a call could not be answered", &error.detail());
            Ok(vapi::declined(None))
        }
    }
}

/// A call is said to be over. An unknown one changes nothing.
async fn over(db: &Db, message: &Value) -> Result<Posted, StoreError> {
    let Some(id) = text(message, "/call/id") else { return Ok(Posted::Nothing) };
    wakes(db, inbound_id(vapi::NAME, id), text(message, "/call/name").and_then(vapi::request_of)).await
}

/// The job of a call that something was told about: one that came in, or that a job placed.
pub(crate) async fn wakes(db: &Db, inbound: RequestId, placed: Option<(RequestId, u32)>) -> Result<Posted, StoreError> {
    if let Some(call) = calls::glance(db, inbound).await? {
        return Ok(if call.outcome.is_none() { Posted::Wakes(call.id) } else { Posted::Nothing });
    }
    let Some((request_id, index)) = placed else { return Ok(Posted::Nothing) };
    let is_ours = outside::is_placed(db, request_id, index).await?;
    Ok(if is_ours { Posted::Wakes(request_id) } else { Posted::Nothing })
}

/// Asks the provider of an inbound call how it went, and stores that: its times, its end, what was said, the summary. It counts
/// more than our own clock, by which the call may have ended already. Nothing is asked about a call of the exchange, or one that
/// the provider has told about.
///
/// A call is ended there if its length is over, or if its owner has frozen its calls.
///
/// Returns when to ask again, if the call must be over and the provider does not say so yet. `is_last`: it cannot be asked
/// again. Without an answer, in the end, the call failed, and costs nothing.
///
/// # Errors
/// If the database fails.
pub async fn hear(toolbox: &Toolbox, id: RequestId, is_last: bool) -> Result<Option<Timestamp>, StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let Some(call) = calls::load(db, id).await?.filter(|call| call.outcome.is_none()) else { return Ok(None) };
    let (Some(of_provider), Some(state), Some(until)) = (call.provider_id.clone(), call.state.clone(), call.until())
    else {
        return Ok(None);
    };
    // The name is needed beside the call, which is given away.
    let name = call.provider.clone().unwrap_or_default();
    let name = name.as_str();
    // Whoever freezes its calls would go on paying for this one.
    let must_be_over = !call.now(now).is_open() || ringing::is_frozen(db, call.agent).await?;
    let is_said_over = match providers::ask(toolbox, name, &of_provider, Instant::now() + ASK).await {
        Ok(Heard::Over(facts)) if facts.is_whole || is_last || now >= facts.ended.plus(ANALYSIS) => {
            return store(db, call, &facts).await.map(|()| None);
        }
        Ok(Heard::Over(_)) => true,
        Ok(Heard::Open { control }) => {
            if let Some(control) = control.filter(|_| must_be_over) {
                end(toolbox, name, &control).await;
            }
            false
        }
        Ok(Heard::NoSuchCall) => false,
        Err(error) => {
            log::failure("a provider did not tell about a call", &error.detail());
            false
        }
    };
    if is_last || now >= until.plus(PATIENCE) {
        log::failure("a call has ended without its provider's word", &id);
        return store(db, call, &unheard(state.answered)).await.map(|()| None);
    }
    Ok((is_said_over || must_be_over).then(|| now.plus(AGAIN)))
}

/// Ends a call that lasts longer than was paid for, or whose owner has frozen its calls. If that fails, it is tried again with
/// the next look.
pub(crate) async fn end(toolbox: &Toolbox, provider: &str, control: &str) {
    if let Err(error) = providers::hang_up(toolbox, provider, control, Instant::now() + ASK).await {
        log::failure("a call that must be over could not be ended", &error.detail());
    }
}

/// A call of which nothing is known but that it was answered.
fn unheard(answered: Timestamp) -> Facts {
    Facts {
        started: Some(answered),
        ended: answered.plus(FIRST_MINUTE),
        reason: "unknown".to_owned(),
        why: Ended::Failed,
        verdict: Verdict::Provider,
        turns: Vec::new(),
        summary: None,
        is_success: None,
        outcome: None,
        answered: Vec::new(),
        callback: None,
        has_recording: false,
        is_whole: true,
    }
}

/// Stores what a provider told. The turns come first, so that a call that was told about has them. A call that failed is counted
/// in the same transaction.
async fn store(db: &Db, mut call: Call, facts: &Facts) -> Result<(), StoreError> {
    calls::add_turns(db, call.id, 0, &facts.turns, facts.ended).await?;
    for _ in 0..TRIES {
        let next = told(&call, facts);
        let mut writes = vec![calls::changed(db, &next)?];
        if next.state.as_ref().and_then(State::ended).is_some_and(|(_, why)| why == Ended::Failed) {
            writes.push(failures::count(db, &next.to, 1, facts.ended)?);
        }
        match db.transact(&writes).await {
            Ok(()) => return Ok(()),
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
        call = calls::load(db, next.id).await?.ok_or_else(|| StoreError::new("a call vanished"))?;
        if call.outcome.is_some() {
            return Ok(());
        }
    }
    Err(StoreError::new("a call changes faster than it can be told about"))
}

/// The call with what its provider told. `outcome` says that it did.
fn told(call: &Call, facts: &Facts) -> Call {
    let state = match (&call.config, &call.state) {
        (Some(config), Some(state)) if was_connected(facts) => {
            // Whatever our own clock has made of it.
            let (phase, answered) = (Phase::Talking, facts.started.unwrap_or(state.answered).max(state.answered));
            let state = State { phase, answered, heard: answered, ..state.clone() };
            let state = call::next(config, &state, facts.ended, Event::HungUp);
            Some(because(state, facts.why))
        }
        // The caller gave up before it was answered: it costs nothing.
        _ => None,
    };
    let reason = if facts.reason.is_empty() { "ended" } else { facts.reason.as_str() };
    Call {
        state,
        turns: u32::try_from(facts.turns.len()).unwrap_or(u32::MAX),
        answering: None,
        recording: call.provider_id.clone().filter(|_| facts.has_recording),
        summary: facts.summary.clone().or_else(|| call.summary.clone()),
        outcome: Some(facts.outcome.unwrap_or(reason).to_owned()),
        revision: call.revision.saturating_add(1),
        ..call.clone()
    }
}

/// Vapi names no start for a call that it passed on at once.
fn was_connected(facts: &Facts) -> bool {
    facts.started.is_some() || facts.why == Ended::Transferred
}

/// An end by its reason, unless it was the length that was paid for. What failed costs nothing, also at that length.
fn because(state: State, why: Ended) -> State {
    match state.phase {
        Phase::Ended { at, .. } if why == Ended::Failed => State { phase: Phase::Ended { at, why }, ..state },
        Phase::Ended { at, why: Ended::CallerHungUp } => {
            // Vapi counts the seconds a little differently.
            let why = if why == Ended::TimeLimit { state.must_end().1 } else { why };
            State { phase: Phase::Ended { at, why }, ..state }
        }
        _ => state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::example::{NOON, a_call};

    fn after(secs: u64) -> Timestamp {
        NOON.plus(Duration::from_secs(secs))
    }

    fn call() -> Call {
        a_call(Some(vapi::NAME))
    }

    #[test]
    fn a_providers_times_count_within_what_was_paid() {
        let limit = call().now(after(9_999));
        assert_eq!(limit.charged_minutes(), Some(3));
        for (name, before, started, ended, why, expected) in [
            ("an ordinary call", call(), Some(5), 70, Ended::CallerHungUp, Some((2, Ended::CallerHungUp))),
            (
                "after our clock had ended it",
                limit,
                Some(5),
                50,
                Ended::AssistantHungUp,
                Some((1, Ended::AssistantHungUp)),
            ),
            ("longer than was paid", call(), Some(5), 9_999, Ended::CallerHungUp, Some((3, Ended::CreditLimit))),
            ("cut by the provider", call(), Some(0), 179, Ended::TimeLimit, Some((3, Ended::CreditLimit))),
            ("an end before its start", call(), Some(90), 80, Ended::CallerHungUp, Some((1, Ended::CallerHungUp))),
            ("passed on at once", call(), None, 61, Ended::Transferred, Some((2, Ended::Transferred))),
            ("the provider's fault", call(), Some(5), 170, Ended::Failed, Some((0, Ended::Failed))),
            ("never connected", call(), None, 5, Ended::CallerHungUp, None),
        ] {
            let facts = Facts { started: started.map(after), ended: after(ended), why, ..unheard(NOON) };
            let told = told(&before, &facts);
            let end = told.state.as_ref().and_then(State::ended).map(|(_, why)| why);
            assert_eq!(told.charged_minutes().zip(end), expected, "{name}");
            assert!(told.outcome.is_some() && !told.is_open(), "{name}");
            if expected.is_none() {
                assert_eq!((told.status(), told.charged_minutes()), ("declined", Some(0)), "{name}");
            }
        }
        let lost = told(&call(), &unheard(NOON));
        assert_eq!((lost.charged_minutes(), lost.outcome.as_deref()), (Some(0), Some("unknown")));
    }
}
