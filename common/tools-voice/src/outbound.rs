//! Calling: an agent buys a call to up to five numbers, one after the other.
//!
//! A number that an agent of this deployment has is called over the exchange ([`crate::exchange`]): the job's run speaks for
//! the caller ([`crate::script`]), the number's own settings answer, and its owner pays for that as for any call. The agent
//! gets its number before the first call. The number is its own from then on, whatever becomes of the calls, and is charged
//! to this job. Other numbers are called through a provider ([`crate::outside`]). One job has numbers of one kind.
//!
//! The record of a job that calls numbers here are its legs (`JOB#<request>` / `LEG#<index>`), each with the id of its one
//! call. An id rings once, so a leg is never dialled twice: a run that finds the call of a leg that has not ended was preceded
//! by one that died, and hangs up. What was said until then counts.
//!
//! What is charged: the started minutes of each leg in which somebody talked or took a message, and the number. A job that
//! reached nobody completes. It fails, and everything comes back, only if it could not begin.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::RequestId;
use base::input::{Field, FieldError, Kind};
use base::money::Usdc;
use ledger::account;
use ledger::freeze::SERVICE_PAYEE;
use platform::http::log;
use platform::net::FetchPolicy;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, jobs};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout};
use tools::run::{DEADLINE, SOON, STORE_PAUSE, Stop, within_limit};
use tools::spec::{Price, ToolSpec};
use tools::{ErrorCode, Output, Runner, Running, Source, Task, ToolError, Toolbox, Unavailable};
use tools_sms::buy;
use tools_sms::named::{NUMBER, Named};
use tools_sms::number::Number;
use tools_sms::phone::{self, Phone, RegisterError, Registered};

use crate::call::{Ended, Mode, State};
use crate::calls::{self, Call};
use crate::dialogue::{self, Speaker, Turn};
use crate::exchange::{self, Dialled, Said};
use crate::outside;
use crate::plan::{self, EACH, MAX_MINUTES, MAX_TARGETS};
use crate::quote::Locked;
use crate::result::{self, Told};
use crate::script::{self, Brief, Found, MAX_NAME};

/// Longest run of a job that is over.
const CLOSING: Duration = Duration::from_secs(50);
/// No leg is begun later than this in a run, and none is spoken in for longer.
const DIALLING: Duration = Duration::from_secs(30);
const SPEAKING: Duration = Duration::from_secs(40);
/// Longest look-up of the numbers at a provider.
const LOOK_UP: Duration = Duration::from_secs(20);
/// Pause before the next run while the agent's own line is busy.
const LINE_PAUSE: Duration = Duration::from_secs(15);
/// For so long a leg waits for the agent's own line, which another call of the agent occupies.
const LINE_PATIENCE: Duration = Duration::from_secs(1_200);
/// For so long after its first run a job goes on.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// The source of a call that stays in the deployment.
const LOCAL: &str = "exchange";

/// Why a leg has ended that nobody answered; part of the result.
const NOT_IN_SERVICE: &str = "not_in_service";
const DECLINED: &str = "declined";
const LINE_BUSY: &str = "line_busy";
const LIMIT_REACHED: &str = "limit_reached";
const OWN_NUMBER: &str = "own_number";
const FROZEN: &str = "frozen_by_owner";
/// It was dialled; the rest is in the call.
const DIALLED: &str = "dialled";

/// Who is called.
pub(crate) const NAMED: Named = Named("target_number");
const MOST: Usdc = Usdc::from_micro(EACH.micro() * MAX_MINUTES as u64 * MAX_TARGETS as u64 + phone::FEE.micro());

pub static SPEC: ToolSpec = ToolSpec {
    name: "voice",
    title: "Voice call",
    summary: "An assistant calls up to 5 phone numbers for you, from a number of yours, and tells what it was answered",
    group: "voice",
    paths: &["/v1/tools/voice/call"],
    price: Price::Asked { usual: EACH, most: MOST },
    expensive: true,
    keeps_record: true,
    judged: &["objective", "context", "caller_persona", "caller_name"],
    may_include: Some(&buy::SPEC),
    refusals: &[
        (400, "emergency_number_blocked"),
        (400, "number_not_needed"),
        (400, "country_not_allowed"),
        (400, "quiet_hours"),
        (429, "voice_limit_reached"),
    ],
    category: "communication",
    deadline: DEADLINE,
    input: &[
        Field::required(
            "objective",
            Kind::Text { min: 10, max: 5_000, format: None },
            "What the call is to achieve. Each of its first five sentences is a point of the call",
        ),
        Field::required(
            NAMED.0,
            Kind::OneOrMore { of: &NUMBER, max: MAX_TARGETS },
            "Who is called: a phone number with its country code, or up to 5, one after the other",
        ),
        Field::optional(
            "caller_name",
            Kind::Text { min: 0, max: MAX_NAME, format: None },
            "For whom the assistant says that it calls",
        ),
        Field::optional(
            "caller_persona",
            Kind::Text { min: 0, max: 1_000, format: None },
            "How the assistant speaks, where a model speaks",
        ),
        Field::optional(
            "context",
            Kind::Text { min: 0, max: 10_000, format: None },
            "What the assistant may need to know. Never read out as it is",
        ),
        Field::optional(
            "max_duration_minutes",
            Kind::Integer { min: 1, max: MAX_MINUTES as i64 },
            "The longest call to a number, which is paid in advance; unused minutes come back as credits. Default: 10",
        ),
    ],
    refuse: |body| NAMED.refuse(body),
    check,
    accepted: |_, _, _, input, locked| accepted(input, locked),
    example: || json!({"objective": "Ask whether a table for four is free at 7 pm today.", "target_number": "+14155552671"}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

/// Checks that the schema cannot express: each number, and that the objective says something.
fn check(input: &Map<String, Value>, _: &FetchPolicy) -> Vec<FieldError> {
    let mut wrong = NAMED.wrong(input);
    if plan::points(input.get("objective").and_then(Value::as_str).unwrap_or_default()).is_empty() {
        wrong.push(FieldError::new("objective", "must have words"));
    }
    wrong
}

/// Public clients read `conference_mode`; the numbers are called one after the other.
fn accepted(input: &Map<String, Value>, locked: &Map<String, Value>) -> Value {
    let (to, from) = (NAMED.numbers(input), locked.get("from"));
    json!({"call": {"target_numbers": to, "from_number": from, "conference_mode": false}})
}

/// A number that is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Leg {
    request_id: RequestId,
    /// Place in the job, from 0.
    index: u32,
    to: Number,
    /// The id of its call, whether or not it was dialled yet.
    call: RequestId,
    /// Why it has ended: [`DIALLED`], or why nobody was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    created: Timestamp,
    /// Unix seconds after which the row may be deleted.
    expires: i64,
}

impl Leg {
    fn new(request_id: RequestId, index: u32, to: &Number, now: Timestamp) -> Leg {
        Leg {
            request_id,
            index,
            to: to.clone(),
            call: RequestId::bought_with("leg", &[request_id.bytes(), &index.to_be_bytes()]),
            ended: None,
            created: now,
            expires: now.plus(calls::KEPT).secs(),
        }
    }
}

fn partition(request_id: RequestId) -> String {
    format!("JOB#{request_id}")
}

fn key(leg: &Leg) -> Key {
    Key::new(partition(leg.request_id), format!("LEG#{}", leg.index))
}

/// The legs of a job in order of their index, consistent.
async fn legs(db: &Db, request_id: RequestId) -> Result<Vec<Leg>, StoreError> {
    db.query(Query::prefixed(&db.tables.messages, &partition(request_id), "LEG#", MAX_TARGETS)?.latest()).await
}

/// Writes a leg. One that exists stays as it is.
async fn create(db: &Db, leg: &Leg) -> Result<(), StoreError> {
    db.write_if(Write::put(&db.tables.messages, key(leg), leg)?.only_if_new()).await.map(drop)
}

/// Ends a leg, once.
async fn end(db: &Db, leg: &Leg, why: &str) -> Result<(), StoreError> {
    let write = Write::update(&db.tables.messages, key(leg), "SET #ended = :why")
        .only_if("attribute_exists(#pk) AND attribute_not_exists(#ended)")
        .bind("why", why)?;
    db.write_if(write).await.map(drop)
}

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        if task.is_over {
            return match timeout(CLOSING, over(&toolbox, &task)).await {
                Ok(Ok(output)) => Ok(output),
                Ok(Err(Stop::Failed(error))) => Err(error),
                Ok(Err(Stop::Store(_))) | Err(_) => Ok(again(&toolbox, STORE_PAUSE)),
            };
        }
        let (its_toolbox, its_task) = (toolbox.clone(), task);
        match within_limit(async move { work(&its_toolbox, &its_task).await }).await {
            Ok(ended) => ended,
            Err((pause, cause)) => {
                log::failure("a run of a call could not go on", &cause);
                Ok(again(&toolbox, pause))
            }
        }
    })
}

/// Another run after a pause. The engine ends the job some time after [`PATIENCE`], by its record.
fn again(toolbox: &Toolbox, pause: Duration) -> Output {
    Output::again(pause, toolbox.clock.now().plus(PATIENCE), Source::embedded(LOCAL))
}

/// One run.
async fn work(toolbox: &Toolbox, task: &Task) -> Result<Output, Stop> {
    let begun = Instant::now();
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let locked = Locked::of(task)?;
    let to = NAMED.numbers(&task.input);
    if outside::leaves(db, task.request_id, &to).await? {
        return outside::work(toolbox, task, &locked, &to, begun).await;
    }
    let mut found = legs(db, task.request_id).await?;
    if found.is_empty() && locked.source != phone::source(&toolbox.config) {
        // An earlier run has got the number of the former provider: it is charged.
        if phone::bought(db, task.agent, task.request_id).await?.is_some() {
            return finish(toolbox, task, &[]).await;
        }
        let message = "the provider of the calling number is no longer in use; nobody was called";
        return Err(ToolError::unavailable(Unavailable::SourceUnavailable, message).into());
    }
    let phone = match found.is_empty() {
        true => caller(toolbox, task, begun).await?,
        false => {
            let phone = phone::of_agent(db, task.agent, &locked.source).await?;
            phone.ok_or_else(|| ToolError::internal("the calling number is gone"))?
        }
    };
    // A process that died may have written some of them.
    if found.len() < to.len() {
        for (index, to) in (0..).zip(&to) {
            create(db, &Leg::new(task.request_id, index, to, now)).await?;
        }
        found = legs(db, task.request_id).await?;
    }
    let calling = Calling { toolbox, task, brief: brief(task, &phone), phone, each: locked.price().each };
    let all = found.len();
    for (done, leg) in found.iter().enumerate().filter(|(_, leg)| leg.ended.is_none()) {
        if begun.elapsed() >= DIALLING {
            return Ok(again(toolbox, SOON));
        }
        let percent = u8::try_from(done * 100 / all.max(1)).unwrap_or(99);
        task.reporter.say(percent.min(99), format!("{done} of {all} numbers were called"));
        match calling.call(leg).await? {
            Some(why) => end(db, leg, why).await?,
            None => return Ok(again(toolbox, LINE_PAUSE)),
        }
    }
    let found = legs(db, task.request_id).await?;
    finish(toolbox, task, &found).await
}

/// The end of a job that is given up: what is open is hung up, and what was said is charged.
async fn over(toolbox: &Toolbox, task: &Task) -> Result<Output, Stop> {
    let mut to = NAMED.numbers(&task.input);
    if to.is_empty() {
        // The input is lost. What was done is on record.
        to = outside::called(&toolbox.db, task.request_id).await?;
    }
    if outside::leaves(&toolbox.db, task.request_id, &to).await? {
        return outside::work(toolbox, task, &Locked::of(task)?, &to, Instant::now()).await;
    }
    let found = legs(&toolbox.db, task.request_id).await?;
    for leg in found.iter().filter(|leg| leg.ended.is_none()) {
        if hang_up(toolbox, leg).await? {
            end(&toolbox.db, leg, DIALLED).await?;
        }
    }
    let found = legs(&toolbox.db, task.request_id).await?;
    finish(toolbox, task, &found).await
}

/// The agent's number.
pub(crate) async fn caller(toolbox: &Toolbox, task: &Task, begun: Instant) -> Result<Phone, Stop> {
    match phone::register(toolbox, task.agent, task.request_id, begun + LOOK_UP).await {
        Ok(Registered::New(phone) | Registered::Known(phone)) => {
            phone::used(&toolbox.db, &phone, toolbox.clock.now()).await?;
            Ok(phone)
        }
        Ok(Registered::NoneLeft) => {
            let reason = Some("no_number_available".to_owned());
            let message = "no phone number is free now; nobody was called".to_owned();
            Err(ToolError { code: ErrorCode::ProviderUnavailable, reason, message }.into())
        }
        Err(RegisterError::Store(error)) => Err(error.into()),
        Err(RegisterError::Provider(error)) => {
            let message = format!("the provider did not tell its numbers: {error}; nobody was called");
            Err(ToolError::unavailable(Unavailable::SourceUnavailable, message).into())
        }
    }
}

fn brief(task: &Task, phone: &Phone) -> Brief {
    Brief::new(task.text("caller_name"), phone.number.as_str(), plan::points(task.text("objective")))
}

/// Ends the calls of a leg. False if it was never dialled.
async fn hang_up(toolbox: &Toolbox, leg: &Leg) -> Result<bool, StoreError> {
    let is_dialled = exchange::hang_up(toolbox, leg.call).await?.is_some();
    exchange::hang_up(toolbox, exchange::passed_id(leg.call)).await?;
    Ok(is_dialled)
}

/// What is the same for all legs.
struct Calling<'a> {
    toolbox: &'a Toolbox,
    task: &'a Task,
    phone: Phone,
    brief: Brief,
    /// The price of a minute, in micro-USDC.
    each: Usdc,
}

impl Calling<'_> {
    /// Calls a number, and speaks to whoever answers. Why the leg has ended; `None` if the agent's line is busy now.
    async fn call(&self, leg: &Leg) -> Result<Option<&'static str>, StoreError> {
        let Calling { toolbox, task, phone, .. } = self;
        // An earlier run dialled, and died.
        if calls::glance(&toolbox.db, leg.call).await?.is_some() {
            hang_up(toolbox, leg).await?;
            return Ok(Some(DIALLED));
        }
        let frozen = account::glance(&toolbox.db, task.agent).await?.frozen;
        if frozen.stops(task.token, SPEC.name, SERVICE_PAYEE).is_some() {
            return Ok(Some(FROZEN));
        }
        // A quote for nobody does not know it.
        if leg.to == phone.number {
            return Ok(Some(OWN_NUMBER));
        }
        match exchange::dial(toolbox, task.agent, phone, &leg.to, leg.call, self.each).await? {
            dialled @ Dialled::Answered { .. } => {
                self.speak(dialled, Instant::now() + SPEAKING).await?;
                Ok(Some(DIALLED))
            }
            Dialled::Declined(..) => Ok(Some(DECLINED)),
            Dialled::NotInService => Ok(Some(NOT_IN_SERVICE)),
            Dialled::Busy if toolbox.clock.now() < leg.created.plus(LINE_PATIENCE) => Ok(None),
            Dialled::Busy => Ok(Some(LINE_BUSY)),
            Dialled::Limited(_) => Ok(Some(LIMIT_REACHED)),
        }
    }

    /// Speaks in a call and in the one that it is passed on to, until all is said, and hangs up.
    async fn speak(&self, dialled: Dialled, stop: Instant) -> Result<(), StoreError> {
        let mut next = Some(dialled);
        while let Some(Dialled::Answered { call, said, passed_on }) = next {
            next = match passed_on {
                Some(to) => Some(*to),
                None => self.speak_in(call, said, stop).await?,
            };
        }
        Ok(())
    }

    /// Speaks in one call. Returns the call to which it is passed on.
    async fn speak_in(&self, call: Call, greeting: String, stop: Instant) -> Result<Option<Dialled>, StoreError> {
        let Some(mode) = call.state.as_ref().filter(|_| call.is_open()).map(|state| state.mode) else {
            return Ok(None);
        };
        let mut turns = vec![Turn { speaker: Speaker::Assistant, text: greeting }];
        while Instant::now() < stop
            && let Some(line) = self.brief.next_line(mode, &turns)
        {
            let Said::Answer { call: after, text, passed_on } = exchange::say(self.toolbox, call.id, &line).await?
            else {
                break;
            };
            if let Some(to) = passed_on {
                return Ok(Some(*to));
            }
            if !after.is_open() {
                return Ok(None);
            }
            turns.push(Turn { speaker: Speaker::Caller, text: line });
            turns.push(Turn { speaker: Speaker::Assistant, text });
        }
        exchange::hang_up(self.toolbox, call.id).await?;
        Ok(None)
    }
}

/// Whether the other side said something after the caller did. A greeting alone, or words that nobody answered because a
/// process died, are no talk.
fn has_talked<'a>(turns: impl Iterator<Item = &'a Turn>) -> bool {
    turns.skip_while(|turn| turn.speaker != Speaker::Caller).any(|turn| turn.speaker == Speaker::Assistant)
}

/// Whether a leg with this outcome is charged.
fn is_reached(outcome: Option<&str>) -> bool {
    matches!(outcome, Some("reached_person" | "voicemail_left"))
}

/// A leg with its calls: none if nobody was called, two if the call was passed on.
struct Called<'a> {
    leg: &'a Leg,
    calls: Vec<(Call, Vec<Turn>)>,
}

impl Called<'_> {
    /// The states of the calls that were answered.
    fn answered(&self) -> impl DoubleEndedIterator<Item = &State> {
        self.calls.iter().filter_map(|(call, _)| call.state.as_ref())
    }

    /// `None` if no number was called.
    fn outcome(&self, brief: &Brief) -> Option<&'static str> {
        match self.leg.ended.as_deref() {
            Some(NOT_IN_SERVICE | LINE_BUSY) => return Some("no_answer"),
            Some(DECLINED) => return Some("refused"),
            _ if self.calls.is_empty() => return None,
            _ => {}
        }
        let Some(last) = self.answered().next_back() else { return Some("refused") };
        Some(match last.mode {
            _ if !has_talked(self.calls.iter().flat_map(|(_, turns)| turns)) => "no_answer",
            Mode::InHours => "reached_person",
            Mode::TakeMessage if self.found(brief).message_left => "voicemail_left",
            Mode::TakeMessage | Mode::Transfer | Mode::Decline => "no_answer",
        })
    }

    /// Why it has ended, as the result says it.
    fn reason(&self) -> String {
        let Some((last, _)) = self.calls.last() else {
            return self.leg.ended.clone().unwrap_or_else(|| "not_called".to_owned());
        };
        let ended = last.state.as_ref().map(State::ended);
        match ended {
            None => DECLINED.to_owned(),
            Some(Some((_, why))) => word(why).to_owned(),
            Some(None) => "in_progress".to_owned(),
        }
    }

    fn told(&self, brief: &Brief) -> result::Leg {
        let outcome = self.outcome(brief);
        result::Leg {
            to: self.leg.to.clone(),
            outcome: outcome.map(str::to_owned),
            ended_reason: self.reason(),
            length: self.length(),
            is_charged: is_reached(outcome),
            recording_url: None,
        }
    }

    fn length(&self) -> Duration {
        self.answered().filter_map(State::length).sum()
    }

    fn found(&self, brief: &Brief) -> Found {
        let found = self.calls.iter().map(|(_, turns)| brief.found(turns));
        found.reduce(Found::and).unwrap_or_else(|| brief.found(&[]))
    }
}

/// Why a call has ended, as the result says it. The assistant is the caller's here.
fn word(why: Ended) -> &'static str {
    match why {
        Ended::AssistantHungUp | Ended::Frozen => "callee_hung_up",
        why => why.to_caller(),
    }
}

/// Reads the calls of a job that has no more to do, and ends it.
async fn finish(toolbox: &Toolbox, task: &Task, legs: &[Leg]) -> Result<Output, Stop> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let locked = Locked::of(task)?;
    let phone = phone::of_agent(db, task.agent, &locked.source).await?;
    let is_bought = phone.as_ref().is_some_and(|phone| phone.bought_by == task.request_id);
    let mut called = Vec::new();
    for leg in legs {
        let mut with_turns = Vec::new();
        if leg.ended.as_deref() == Some(DIALLED) {
            for id in [leg.call, exchange::passed_id(leg.call)] {
                if let Some(call) = calls::glance(db, id).await? {
                    // The job of whom we called waits for the end of the call.
                    if let Some(queue) = &toolbox.job_queue {
                        jobs::wake(db, &**queue, id).await;
                    }
                    with_turns.push((call.now(now), calls::turns(db, id).await?));
                }
            }
        }
        called.push(Called { leg, calls: with_turns });
    }
    let is_begun = legs.iter().any(|leg| leg.ended.is_some());
    match phone {
        Some(phone) if is_begun || is_bought => Ok(ended(toolbox, task, &locked, &phone, &called)),
        _ => Err(ToolError::unavailable(Unavailable::SourceUnavailable, "nobody was called").into()),
    }
}

/// The result, and what is charged.
fn ended(toolbox: &Toolbox, task: &Task, locked: &Locked, phone: &Phone, called: &[Called<'_>]) -> Output {
    let brief = brief(task, phone);
    let told = |leg: &Called<'_>| result::Leg { recording_url: recording_url(toolbox, leg), ..leg.told(&brief) };
    let legs: Vec<result::Leg> = called.iter().map(told).collect();
    let outcome = result::best(&legs);
    let is_completed = is_reached(outcome);
    let status = match outcome {
        Some("no_answer") => "no_answer",
        Some(_) if is_completed => "completed",
        _ => "failed",
    };
    let found = called.iter().map(|leg| leg.found(&brief)).reduce(Found::and).unwrap_or_default();
    let calls = || called.iter().flat_map(|leg| &leg.calls);
    let turns: Vec<Turn> = calls().flat_map(|(_, turns)| turns.clone()).collect();
    let spoken = calls().filter(|(_, turns)| !turns.is_empty());
    let told = Told {
        status,
        legs,
        said: spoken.map(|(call, turns)| (call.to.clone(), dialogue::transcript(turns))).collect(),
        summary: is_completed.then(|| script::summary(&found, &turns)),
        is_success: is_completed && found.is_all(),
        found,
        callback_number: None,
    };
    result::output(task, &locked.price(), phone, &told, Source::embedded(LOCAL))
}

/// A link to hear what was said, valid as long as the call is kept. `None` if it was said in several calls.
fn recording_url(toolbox: &Toolbox, leg: &Called<'_>) -> Option<String> {
    let mut spoken = leg.calls.iter().filter(|(_, turns)| !turns.is_empty());
    let (Some((call, _)), None) = (spoken.next(), spoken.next()) else { return None };
    let base = toolbox.config.base_url.as_deref().filter(|_| call.is_audible(toolbox.config.voice.espeak.is_some()))?;
    let token = calls::recording_token(&toolbox.mail_secret, call.id, Timestamp::from_secs(call.expires));
    Some(format!("{base}/v1/tools/voice/recordings/{token}"))
}

fn output() -> Value {
    let text = json!({"type": "string"});
    let seconds = json!({"type": "integer", "minimum": 0});
    let reason =
        json!({"type": ["string", "null"], "description": "Why the last call has ended, or why nobody was called"});
    let outcome = json!({
        "type": ["string", "null"],
        "enum": [
            "reached_person", "voicemail_left", "no_answer", "refused", "phone_menu_dead_end", "wrong_number", null,
        ],
        "description": "reached_person: a person or an assistant talked; voicemail_left: a message was taken; refused: the \
                        number declined",
    });
    json!({
        "type": "object",
        "properties": {
            "status": {
                "type": "string",
                "enum": ["completed", "no_answer", "failed"],
                "description": "completed: somebody answered",
            },
            "ended_reason": reason,
            "duration_seconds": seconds,
            "transcript": {"type": ["string", "null"], "description": "Caller: your assistant; Assistant: who answered"},
            "summary": {"type": ["string", "null"]},
            "success_evaluation": {
                "type": "string",
                "enum": ["pass", "fail"],
                "description": "pass: each point of the objective was answered",
            },
            "structured_data": result::schema(),
            "outcome": outcome,
            "recording_url": {"type": ["string", "null"], "description": "Null without a recording"},
            "from": {"type": "string", "description": "Your number"},
            "legs": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "to": text,
                        "outcome": outcome,
                        "ended_reason": text,
                        "duration_seconds": seconds,
                        "recording_url": {"type": ["string", "null"]},
                    },
                    "required": ["to", "outcome", "ended_reason", "duration_seconds"],
                },
            },
            "registration": {
                "type": "object",
                "description": "The number that you got with this call",
                "properties": {"phone_number": text, "fee": text},
                "required": ["phone_number", "fee"],
            },
            "warning": {"type": "string", "description": "frozen_by_owner: a freeze stopped the rest, which is not charged"},
            "cost": {"type": "string", "description": "What is charged, in USDC"},
            "credit_issued": {"type": "string", "description": "What comes back as credits, in USDC"},
            "untrusted": {"type": "boolean", "description": "True: the transcript and the summary have words of others"},
        },
        "required": [
            "status", "ended_reason", "duration_seconds", "transcript", "summary", "success_evaluation", "structured_data",
            "outcome", "recording_url", "from", "legs", "cost", "untrusted",
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_input_is_checked_with_its_paths() {
        let wrong = |body: Value| -> Vec<String> {
            let body = body.as_object().cloned().unwrap();
            let errors = match base::input::validate(SPEC.input, &body) {
                Ok(input) => check(&input, &FetchPolicy::default()),
                Err(errors) => errors,
            };
            errors.into_iter().map(|error| error.path).collect()
        };
        let of = |to: Value, objective: &str| wrong(json!({"target_number": to, "objective": objective}));
        let (none, ask): ([&str; 0], _) = ([], "Ask what bread costs.");
        assert_eq!(wrong(SPEC.example()), none);
        assert_eq!(of(json!("14155552671"), ask), none, "without the plus");
        assert_eq!(of(json!("+19005550123"), ask), ["target_number"], "premium");
        assert_eq!(of(json!(["+14155552671", "24273"]), ask), ["target_number.1"]);
        assert_eq!(of(json!(vec!["+14155552671"; 6]), ask), ["target_number"]);
        assert_eq!(of(json!("+14155552671"), "Ask."), ["objective"]);
        assert_eq!(of(json!("+14155552671"), "............"), ["objective"]);
        for minutes in [0, 31] {
            let body = json!({"target_number": "+14155552671", "objective": ask, "max_duration_minutes": minutes});
            assert_eq!(wrong(body), ["max_duration_minutes"]);
        }
    }

    #[test]
    fn only_legs_in_which_somebody_talked_are_charged() {
        let turn = |speaker: Speaker| Turn { speaker, text: "Hello".to_owned() };
        let (greeting, words) = (turn(Speaker::Assistant), turn(Speaker::Caller));
        let talked = |turns: &[&Turn]| has_talked(turns.iter().copied());
        assert!(talked(&[&greeting, &words, &greeting]));
        assert!(!talked(&[]) && !talked(&[&greeting]));
        assert!(!talked(&[&greeting, &words]), "a process died before the answer");
        for (outcome, is_charged) in [
            (Some("reached_person"), true),
            (Some("voicemail_left"), true),
            (Some("no_answer"), false),
            (Some("refused"), false),
            (None, false),
        ] {
            assert_eq!(is_reached(outcome), is_charged, "{outcome:?}");
        }
    }

    #[test]
    fn each_leg_has_one_call() {
        let (job, to) = (RequestId::from_bytes([1; 16]), Number::fictitious(7));
        let leg = |index: u32| Leg::new(job, index, &to, Timestamp::from_secs(0));
        assert_eq!(leg(0).call, leg(0).call);
        assert_ne!(leg(0).call, leg(1).call);
    }
}
