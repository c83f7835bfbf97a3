//! Sending: one text to each recipient.
//!
//! The job runs until every recipient has an outcome ([`messages::run`]). A text to a number that an agent of this deployment
//! has never leaves it; if its hand-over was interrupted, the inbox takes it again, as the same text. The agent gets its number
//! before the first text. The number is its own from then on, whatever becomes of the texts, and is charged to this job.
//!
//! What is charged: the texts that an inbox or the provider accepted, and the number. A job whose texts nobody accepted
//! completes with the status `failed`. It fails, and everything comes back, only if it could not begin.
//!
//! The owner's freezes and the recipient's STOP are looked at before each text.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId, TokenId};
use base::input::{Field, FieldError, Kind};
use base::money::Usdc;
use base::untrusted_text::visible;
use ledger::account;
use ledger::freeze::SERVICE_PAYEE;
use messages::hand::Handed;
use messages::ids::{message_uuid, time_of};
use messages::recipient::{self, State};
use messages::run::{self, HAND_OVER, Medium, SENDING, Step};
use platform::config::Capability;
use platform::net::FetchPolicy;
use platform::store::{BoxFuture, Db, StoreError};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::run::{DEADLINE, Stop};
use tools::spec::{Need, Price, ToolSpec};
use tools::{ErrorCode, Output, Runner, Running, Source, Task, ToolError, Toolbox, Unavailable};
use uuid::Uuid;

use crate::buy;
use crate::inbox::{self, Sent};
use crate::named::{NUMBER, Named};
use crate::number::Number;
use crate::opt_out::{self, Why};
use crate::phone::{self, Phone, RegisterError, Registered};
use crate::providers::{self, Outgoing};
use crate::quote::{self, EACH, Locked};
use crate::receive::{self, Incoming, Taken};
use crate::segments::{self, MAX_CHARS, MAX_SEGMENTS};
use crate::velocity;

/// Most recipients of a job.
pub const MAX_RECIPIENTS: usize = 100;
/// Texts handed over at once.
const AT_ONCE: usize = 4;
/// Rows are kept this much longer than texts: reports of delivery arrive for a few days.
const REPORTS: Duration = Duration::from_secs(7 * 24 * 3600);
/// Longest look-up of a sending number that the provider refused.
const LOOK_UP: Duration = Duration::from_secs(10);
/// The source of a text that stayed in the deployment.
const LOCAL: &str = "inbox";
const OTHER_PROVIDER: &str = "the provider of the sending number is no longer in use";

static MEDIUM: Medium<Number> = Medium {
    embedded: LOCAL,
    too_late: "the text could not be handed over in time",
    interrupted: "the work was interrupted while the text was handed over; it may have been sent",
    reported_within: Duration::from_secs(30),
    finish: |toolbox, task, rows| Box::pin(finish(toolbox, task, rows)),
};

/// The recipient of a text. `sender` is the sending number.
type Recipient = recipient::Recipient<Number>;

/// Who gets the texts.
pub(crate) const NAMED: Named = Named("to_number");
const TO: Field = Field::required(
    NAMED.0,
    Kind::OneOrMore { of: &NUMBER, max: MAX_RECIPIENTS },
    "Who gets the text: a phone number with its country code, or up to 100. Each gets a text of its own",
);
/// Most characters of a message as it is written: Normalization Form C makes one of at most four of them. [`check`] counts what
/// is sent.
const MAX_WRITTEN: usize = 4 * MAX_CHARS;
const MESSAGE: Field = Field::required(
    "message",
    Kind::Text { min: 1, max: MAX_WRITTEN, format: None },
    "The text, of at most 1,600 characters in Normalization Form C. It is paid by segments: 160 characters, or 153 each if \
     there are more; with characters outside the GSM alphabet 70, or 67 each",
);

const MOST: Usdc = Usdc::from_micro(EACH.micro() * MAX_SEGMENTS as u64 * MAX_RECIPIENTS as u64 + phone::FEE.micro());

pub static SPEC: ToolSpec = ToolSpec {
    name: "sms",
    title: "SMS",
    summary: "Sends a text message to each of up to 100 phone numbers, from a number of yours; answers arrive in your inbox",
    group: "messaging",
    paths: &["/v1/tools/sms/send"],
    price: Price::Asked { usual: EACH, most: MOST },
    judged: &["message"],
    keeps_record: true,
    may_include: Some(&buy::SPEC),
    refusals: &[
        (400, "emergency_number_blocked"),
        (400, "country_not_allowed"),
        (400, "number_not_needed"),
        (429, "sms_limit_reached"),
    ],
    category: "communication",
    deadline: DEADLINE,
    needs,
    input: &[TO, MESSAGE],
    refuse: |body| NAMED.refuse(body),
    check,
    accepted: |_, _, _, input, _| accepted(input),
    example: || json!({"to_number": "+14155552671", "message": "Your table is ready."}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

/// The message as it is counted, sent and stored.
pub(crate) fn message(input: &Map<String, Value>) -> Cow<'_, str> {
    segments::prepared(input.get("message").and_then(Value::as_str).unwrap_or_default())
}

/// Numbers outside this deployment need a provider; without an input, the tool works.
fn needs(_: &ToolSpec, input: &Map<String, Value>) -> Vec<Need> {
    let is_outside = |text: &str| Number::parse(text).is_ok_and(|number| !number.is_fictitious());
    if NAMED.texts(input).any(is_outside) { vec![Need::Provider(Capability::Sms)] } else { Vec::new() }
}

/// Checks that the schema cannot express: each number, and the message in its normal form.
fn check(input: &Map<String, Value>, _: &FetchPolicy) -> Vec<FieldError> {
    let mut wrong = NAMED.wrong(input);
    let message = message(input);
    if message.contains('\0') {
        wrong.push(FieldError::new("message", "must not contain the character U+0000"));
    }
    if visible(&message).trim().is_empty() {
        wrong.push(FieldError::new("message", "must have more than blank characters"));
    }
    let chars = message.chars().count();
    if chars > MAX_CHARS {
        let what = format!("must have at most {MAX_CHARS} characters in Normalization Form C, has {chars}");
        wrong.push(FieldError::new("message", what));
    }
    wrong
}

fn accepted(input: &Map<String, Value>) -> Value {
    json!({"sms": {"to_numbers": NAMED.numbers(input), "segment_count": segments::of(&message(input)).count}})
}

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    let (its_toolbox, its_task) = (toolbox.clone(), task.clone());
    let work = Box::pin(async move { work(its_toolbox, &its_task).await });
    Box::pin(run::run(toolbox, task, work, &MEDIUM))
}

/// What is the same for all recipients.
struct Batch {
    toolbox: Arc<Toolbox>,
    request_id: RequestId,
    agent: AgentId,
    /// The access token that pays.
    token: Option<TokenId>,
    from: Number,
    to: Vec<Number>,
    text: String,
    segments: u32,
    id: Uuid,
    /// When the first run made the text.
    started: Timestamp,
}

async fn work(toolbox: Arc<Toolbox>, task: &Task) -> Result<Output, Stop> {
    let begun = Instant::now();
    let (db, now) = (toolbox.db.clone(), toolbox.clock.now());
    let locked = Locked::of(task)?;
    let to = NAMED.numbers(&task.input);
    let mut rows: Vec<Recipient> = recipient::all(&db, task.request_id).await?;
    let mut cannot_go_on = (locked.source != phone::source(&toolbox.config)).then(|| OTHER_PROVIDER.to_owned());
    let (from, id) = match rows.first() {
        Some(row) => {
            let from = Number::parse(&row.sender).map_err(|_| ToolError::internal("the sending number is invalid"))?;
            (from, id_of(row).ok_or_else(|| ToolError::internal("the text has no id"))?)
        }
        None => {
            if let Some(why) = &cannot_go_on {
                velocity::give_back(&db, task.request_id, task.agent, 0).await?;
                // An earlier run has got the number of that provider: it is charged.
                if phone::bought(&db, task.agent, task.request_id).await?.is_some() {
                    return finish(&toolbox, task, &[]).await;
                }
                let message = format!("{why}; nothing was sent");
                return Err(ToolError::unavailable(Unavailable::SourceUnavailable, message).into());
            }
            let phone = sender(&toolbox, task, &locked, &to, begun).await?;
            (phone.number, message_uuid(now, &[b"sms", b"sent", task.request_id.bytes()]))
        }
    };
    let batch = Arc::new(Batch {
        request_id: task.request_id,
        agent: task.agent,
        token: task.token,
        from,
        to,
        text: message(&task.input).into_owned(),
        segments: locked.segments,
        id,
        started: time_of(id),
        toolbox: toolbox.clone(),
    });
    // A process that died may have written some of the rows.
    if rows.len() < batch.to.len() && cannot_go_on.is_none() {
        recipient::create_all(&db, batch.rows()).await?;
        rows = recipient::all(&db, task.request_id).await?;
    }
    if rows.iter().all(|row| row.state == State::Pending) {
        inbox::put_sent(&db, &batch.sent()).await?;
    }
    if batch.end_interrupted(&rows).await? {
        rows = recipient::all(&db, task.request_id).await?;
    }
    let in_all = rows.len();
    let pending: Vec<Recipient> = rows.into_iter().filter(|row| row.state == State::Pending).collect();
    let (sent, failed) = match cannot_go_on {
        Some(_) => Default::default(),
        None => {
            let deliver = move |row: Recipient| -> BoxFuture<'static, Result<Step, StoreError>> {
                let batch = batch.clone();
                Box::pin(async move { batch.deliver(&row).await })
            };
            run::each(pending, AT_ONCE, begun + SENDING, task, in_all, deliver).await
        }
    };
    if let Some(error) = failed {
        return Err(error.into());
    }
    if let Some(what) = sent.frozen {
        cannot_go_on = Some(run::frozen_reason(what, "text"));
    }
    run::after(&toolbox, task, &sent, cannot_go_on.as_deref(), &MEDIUM).await
}

/// The agent's number. The places of the day come first: an agent without places must not get a number, because the job then
/// fails and costs nothing.
async fn sender(toolbox: &Toolbox, task: &Task, locked: &Locked, to: &[Number], begun: Instant) -> Result<Phone, Stop> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let mut outside = quote::outside(db, to).await?;
    // Those who said STOP get nothing.
    if !outside.is_empty()
        && let Some(own) = phone::of_agent(db, task.agent, &locked.source).await?
        && own.lost_at.is_none()
    {
        outside = opt_out::without(db, &own.number, outside).await?;
    }
    let (segments, most) = (locked.segments_to(&outside), toolbox.config.sms.daily_segments);
    if let Some(full) = velocity::reserve(db, task.request_id, task.agent, segments, most, now).await? {
        let message = format!("{}; nothing was sent", full.message(segments, most));
        return Err(ToolError::new(ErrorCode::RateLimited, message).into());
    }
    let registered = phone::register(toolbox, task.agent, task.request_id, begun + HAND_OVER).await;
    if matches!(registered, Ok(Registered::NoneLeft) | Err(RegisterError::Provider(_))) {
        velocity::give_back(db, task.request_id, task.agent, 0).await?;
    }
    match registered {
        Ok(Registered::New(phone) | Registered::Known(phone)) => {
            phone::used(db, &phone, now).await?;
            Ok(phone)
        }
        Ok(Registered::NoneLeft) => {
            let reason = Some("no_number_available".to_owned());
            let message = "no phone number is free now; nothing was sent".to_owned();
            Err(ToolError { code: ErrorCode::ProviderUnavailable, reason, message }.into())
        }
        Err(RegisterError::Store(error)) => Err(error.into()),
        Err(RegisterError::Provider(error)) => {
            let message = format!("the provider did not tell its numbers: {error}; nothing was sent");
            Err(ToolError::unavailable(Unavailable::SourceUnavailable, message).into())
        }
    }
}

/// The id of the text ([`Sent::id`]) that a row is about.
fn id_of(row: &Recipient) -> Option<Uuid> {
    Uuid::try_parse(row.message_id.split('.').next()?).ok()
}

impl Batch {
    fn rows(&self) -> Vec<Recipient> {
        let row = |(index, to): (u32, &Number)| Recipient {
            request_id: self.request_id,
            index,
            agent: self.agent,
            sender: self.from.as_str().to_owned(),
            to: to.clone(),
            state: State::Pending,
            message_id: format!("{}.{index}", self.id),
            provider_message_id: None,
            run: None,
            reason: None,
            opens: 0,
            clicks: 0,
            changed: self.started,
            expires: self.started.plus(inbox::KEPT + REPORTS).secs(),
        };
        (0..).zip(&self.to).map(row).collect()
    }

    fn sent(&self) -> Sent {
        Sent {
            id: self.id,
            agent: self.agent,
            request_id: self.request_id,
            from: self.from.clone(),
            to: self.to.clone(),
            body: self.text.clone(),
            segments: self.segments,
            sent_at: self.started,
            expires: self.started.plus(inbox::KEPT).secs(),
        }
    }

    /// Ends the submissions of a run that died. Returns whether some may begin again.
    async fn end_interrupted(&self, rows: &[Recipient]) -> Result<bool, StoreError> {
        let (db, now) = (&self.toolbox.db, self.toolbox.clock.now());
        let mut reopened = false;
        for row in rows.iter().filter(|row| row.state == State::Submitting) {
            if phone::owner_of(db, &row.to).await?.is_some() {
                reopened |= recipient::ended(db, row, State::Pending, None, None, now).await?;
            } else {
                recipient::ended(db, row, State::Ambiguous, None, Some(MEDIUM.interrupted), now).await?;
            }
        }
        Ok(reopened)
    }

    /// Sends one text.
    async fn deliver(&self, row: &Recipient) -> Result<Step, StoreError> {
        let (db, now) = (&self.toolbox.db, self.toolbox.clock.now());
        let account = account::glance(db, self.agent).await?;
        if let Some(what) = account.frozen.stops(self.token, SPEC.name, SERVICE_PAYEE) {
            return Ok(Step::Frozen(what));
        }
        let is_local = phone::owner_of(db, &row.to).await?.is_some();
        let is_out = opt_out::is_out(db, &self.from, &row.to).await?;
        // A row with a reason was counted by the run that the provider sent away.
        let is_counted = is_local || is_out || row.reason.is_some();
        let too_many = match is_counted {
            true => None,
            false => velocity::take(db, self.agent, account.is_proven(), &row.to, now).await?,
        };
        let refused = match (is_out, too_many) {
            (true, _) => Some((State::Suppressed, "the recipient wants no texts from this number")),
            (false, Some(why)) => Some((State::Refused, why)),
            (false, None) => None,
        };
        if let Some((state, why)) = refused {
            recipient::refuse(db, row, state, why, now).await?;
            return Ok(Step::Ended);
        }
        // Before the text is out, because its answer can be here at once.
        let other = std::slice::from_ref(&row.to);
        inbox::put_pairs(db, self.agent, &self.from, other, self.id, now).await?;
        if !recipient::begin(db, row, now).await? {
            return Ok(Step::Ended);
        }
        if is_local { self.deliver_here(row).await } else { self.deliver_outside(row).await }
    }

    /// Into an inbox of this deployment. Repeating it stores the same text.
    async fn deliver_here(&self, row: &Recipient) -> Result<Step, StoreError> {
        let db = &self.toolbox.db;
        let incoming = Incoming {
            from: self.from.as_str(),
            to: &row.to,
            body: &self.text,
            num_media: 0,
            at: self.started,
            event_id: &row.message_id,
            local_sender: Some(self.agent),
        };
        let taken = receive::receive(&self.toolbox, &incoming).await;
        let now = self.toolbox.clock.now();
        let why = match taken {
            Ok(Taken::Stored) => {
                let ended = recipient::ended(db, row, State::Delivered, None, None, now).await?;
                return Ok(if ended { Step::Delivered } else { Step::Ended });
            }
            Ok(Taken::Full) => "the recipient takes no more texts today",
            Ok(Taken::UnknownNumber) => "nobody has this number",
            Err(error) => {
                recipient::ended(db, row, State::Pending, None, None, now).await?;
                return Err(error);
            }
        };
        recipient::ended(db, row, State::Refused, None, Some(why), now).await?;
        Ok(Step::Ended)
    }

    async fn deliver_outside(&self, row: &Recipient) -> Result<Step, StoreError> {
        let db = &self.toolbox.db;
        let text =
            Outgoing { from: &self.from, to: &row.to, body: &self.text, request_id: row.request_id, index: row.index };
        let handed = providers::hand_over(&self.toolbox, text, Instant::now() + HAND_OVER).await;
        let now = self.toolbox.clock.now();
        let step = run::outcome(db, row, &handed, now).await?;
        match handed {
            Handed::Suppressed { .. } => opt_out::set(db, &self.from, &row.to, true, Why::Provider, now).await?,
            Handed::NoSender { .. } => {
                phone::check_lost(&self.toolbox, self.agent, &self.from, Instant::now() + LOOK_UP).await?;
            }
            _ => {}
        }
        Ok(step)
    }
}

async fn finish(toolbox: &Toolbox, task: &Task, rows: &[Recipient]) -> Result<Output, Stop> {
    let locked = Locked::of(task)?;
    let handed_over: Vec<Number> = rows.iter().filter(|row| row.was_handed_over()).map(|row| row.to.clone()).collect();
    // What was not closed may be sent yet.
    let may_be_sent = rows.iter().any(|row| row.state == State::Pending);
    if !may_be_sent && (rows.is_empty() || handed_over.len() < rows.len()) {
        let outside = quote::outside(&toolbox.db, &handed_over).await?;
        velocity::give_back(&toolbox.db, task.request_id, task.agent, locked.segments_to(&outside)).await?;
    }
    let phone = phone::of_agent(&toolbox.db, task.agent, &locked.source).await?;
    let bought = phone.filter(|phone| phone.bought_by == task.request_id);
    if rows.is_empty() && bought.is_none() {
        return Err(ToolError::unavailable(Unavailable::SourceUnavailable, "nothing was sent").into());
    }
    Ok(ended(task, &locked, rows, bought.as_ref(), providers::chosen(&toolbox.config)))
}

/// The result, and what is charged. `bought`: the number that this job bought.
fn ended(
    task: &Task,
    locked: &Locked,
    rows: &[Recipient],
    bought: Option<&Phone>,
    provider: Option<&'static str>,
) -> Output {
    let total = NAMED.numbers(&task.input).len();
    let count = |is: fn(State) -> bool| rows.iter().filter(|row| is(row.state)).count();
    let accepted = rows.iter().filter(|row| row.is_charged()).count();
    let delivered = count(|state| state == State::Delivered);
    let reached = count(|state| matches!(state, State::Accepted | State::Delivered));
    let status = match reached {
        0 => "failed",
        reached if reached == total => "all_delivered",
        _ => "partial",
    };
    let used = locked.used(accepted, bought.is_some());
    let details: Vec<Value> = rows.iter().map(detail).collect();
    let mut result = json!({
        "status": status,
        "sent": accepted,
        "delivered": delivered,
        "failed": total.saturating_sub(accepted),
        "total": total,
        "segment_count": locked.segments,
        "from": rows.first().map(|row| row.sender.as_str()).or(bought.map(|phone| phone.number.as_str())),
        "details": details,
        "cost": used.to_string(),
    });
    if let Some(phone) = bought {
        result["registration"] = json!({"phone_number": phone.number, "fee": Usdc::from_micro(locked.fee).to_string()});
    }
    if run::frozen(rows).is_some() {
        result["warning"] = json!(Unavailable::FrozenByOwner.as_str());
    } else if rows.iter().any(|row| row.state == State::Ambiguous) {
        result["warning"] = json!("delivery_unknown");
    }
    let id = rows.iter().find_map(|row| row.provider_message_id.clone());
    let source = match (id, provider) {
        (Some(id), Some(name)) => Source::upstream(name, Some(id)),
        _ => Source::embedded(LOCAL),
    };
    Output::new(result, source).charging(used)
}

fn detail(row: &Recipient) -> Value {
    let mut detail = json!({"to": row.to, "from": row.sender, "status": word(row.state)});
    if let Some(id) = &row.provider_message_id {
        detail["message_sid"] = json!(id);
    }
    if let Some(reason) = &row.reason {
        detail["error"] = json!(reason);
    }
    detail
}

/// A recipient's state in the words of texts.
fn word(state: State) -> &'static str {
    match state {
        State::Bounced => "undelivered",
        State::Suppressed => "opted_out",
        State::Refused => "failed",
        State::Pending
        | State::Submitting
        | State::Accepted
        | State::Delivered
        | State::Complained
        | State::Ambiguous => state.as_str(),
    }
}

/// The states that a tracking counts.
const COUNTED: [State; 6] =
    [State::Accepted, State::Delivered, State::Bounced, State::Refused, State::Suppressed, State::Ambiguous];

/// `sms_tracking` of a polled job: `{status, from, recipients, last_event_at}`. `None` if there is no such job of this agent.
/// `status` is the state that all recipients have, `sending` until each was handed over, otherwise `mixed`; `recipients` counts
/// them by state.
pub async fn tracking(db: &Db, agent: AgentId, request_id: RequestId) -> Result<Option<Value>, StoreError> {
    let rows: Vec<Recipient> = recipient::all(db, request_id).await?;
    let Some(first) = rows.first().filter(|row| row.agent == agent) else { return Ok(None) };
    let status = if rows.iter().all(|row| row.state == first.state) {
        word(first.state)
    } else if rows.iter().any(|row| row.state.is_open()) {
        "sending"
    } else {
        "mixed"
    };
    let of = |state: State| rows.iter().filter(|row| row.state == state).count();
    let counts: Map<String, Value> =
        COUNTED.into_iter().map(|state| (word(state).to_owned(), json!(of(state)))).collect();
    Ok(Some(json!({
        "status": status,
        "from": first.sender,
        "recipients": counts,
        "last_event_at": rows.iter().map(|row| row.changed).max().map(|at| at.to_string()),
    })))
}

fn output() -> Value {
    let text = json!({"type": "string"});
    let count = json!({"type": "integer", "minimum": 0});
    let words: Vec<&str> = State::ALL.into_iter().map(word).collect();
    json!({
        "type": "object",
        "properties": {
            "status": {
                "type": "string",
                "enum": ["all_delivered", "partial", "failed"],
                "description": "all_delivered: all accepted it, and none is known to have failed; failed: nobody got it",
            },
            "sent": {"type": "integer", "minimum": 0, "description": "Accepted, and charged"},
            "delivered": {"type": "integer", "minimum": 0, "description": "Of these, known to have arrived"},
            "failed": {"type": "integer", "minimum": 0, "description": "Not accepted, and not charged"},
            "total": count,
            "segment_count": count,
            "from": {"type": ["string", "null"], "description": "Your number"},
            "details": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "to": text,
                        "from": text,
                        "status": {"type": "string", "enum": words},
                        "message_sid": {"type": "string", "description": "The provider's id"},
                        "error": text,
                    },
                    "required": ["to", "from", "status"],
                },
            },
            "registration": {
                "type": "object",
                "description": "The number that you got with this text",
                "properties": {"phone_number": text, "fee": text},
                "required": ["phone_number", "fee"],
            },
            "warning": {
                "type": "string",
                "description": "delivery_unknown: whether a text was sent is not known; it is not charged. frozen_by_owner: a \
                                freeze stopped the rest, which is not charged",
            },
            "cost": {"type": "string", "description": "What is charged, in USDC"},
        },
        "required": ["status", "sent", "delivered", "failed", "total", "segment_count", "from", "details", "cost"],
    })
}

#[cfg(test)]
mod tests {
    use tools::Reporter;

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
        let of = |to: Value, message: &str| wrong(json!({"to_number": to, "message": message}));
        let none: [&str; 0] = [];
        assert_eq!(wrong(SPEC.example()), none);
        assert_eq!(of(json!("14155552671"), "x"), none, "without the plus");
        assert_eq!(of(json!("+19005550123"), "x"), ["to_number"], "premium");
        assert_eq!(of(json!(["+14155552671", "24273", "+1 415 555 2671"]), "x"), ["to_number.1", "to_number.2"]);
        assert_eq!(of(json!("+14155552671"), "a\0b"), ["message"]);
        assert_eq!(of(json!("+14155552671"), " \n"), ["message"]);
        // What counts is Normalization Form C: of it are letters that become two, and others that four become.
        assert_eq!(of(json!("+14155552671"), &"\u{958}".repeat(1600)), ["message"]);
        for letter in ["e\u{301}", "\u{1112}\u{1161}\u{11ab}", "\u{3b1}\u{313}\u{342}\u{345}", "x"] {
            assert_eq!(of(json!("+14155552671"), &letter.repeat(1600)), none, "{letter}");
            assert_eq!(of(json!("+14155552671"), &letter.repeat(1601)), ["message"], "{letter}");
        }
        assert_eq!(of(json!(vec!["+14155552671"; 101]), "x"), ["to_number"]);
    }

    #[test]
    fn only_accepted_texts_and_an_own_number_are_charged() {
        let (agent, request_id) = (AgentId::from_bytes([2; 16]), RequestId::from_bytes([1; 16]));
        let row = |(index, (state, id)): (u32, (State, Option<&str>))| Recipient {
            request_id,
            index,
            agent,
            sender: "+12025550100".to_owned(),
            to: Number::fictitious(u64::from(index)),
            state,
            message_id: "m".to_owned(),
            provider_message_id: id.map(str::to_owned),
            run: None,
            reason: None,
            opens: 0,
            clicks: 0,
            changed: Timestamp::from_secs(0),
            expires: 0,
        };
        let phone = Phone {
            id: Uuid::nil(),
            agent,
            number: Number::fictitious(100),
            source: phone::EMBEDDED.to_owned(),
            bought_by: request_id,
            created: Timestamp::from_secs(0),
            last_used_at: None,
            leased: false,
            lost_at: None,
            inbound: None,
            line: None,
        };
        use State::{Accepted, Ambiguous, Bounced, Delivered, Refused, Suppressed};
        let quoted = json!({"segments": 2, "source": "embedded", "each": 3_500, "fee": 5_000_000});
        for (states, buys, expected) in [
            (vec![(Delivered, None), (Accepted, Some("a"))], false, ("all_delivered", 2, 1, 14_000)),
            (vec![(Delivered, None), (Refused, None)], true, ("partial", 1, 1, 5_007_000)),
            (vec![(Delivered, None), (Bounced, Some("a"))], false, ("partial", 2, 1, 14_000)),
            (vec![(Bounced, Some("a"))], false, ("failed", 1, 0, 7_000)),
            (vec![(Suppressed, None), (Ambiguous, None)], false, ("failed", 0, 0, 0)),
            (vec![(Refused, None)], true, ("failed", 0, 0, 5_000_000)),
        ] {
            let rows: Vec<Recipient> = (0..).zip(states).map(row).collect();
            let to: Vec<&Number> = rows.iter().map(|row| &row.to).collect();
            let task = Task {
                tool: &SPEC,
                input: json!({"to_number": to, "message": "x"}).as_object().cloned().unwrap(),
                locked: quoted.as_object().cloned().unwrap(),
                price: Usdc::ZERO,
                request_id,
                receipt_id: None,
                agent,
                wallet_signed: true,
                token: None,
                funds: None,
                is_over: false,
                deadline: Timestamp::from_secs(0),
                reporter: Reporter::default(),
            };
            let output = ended(&task, &Locked::of(&task).unwrap(), &rows, buys.then_some(&phone), Some("twilio"));
            let (result, used) = (&output.result, output.used.unwrap().micro());
            let told = (result["status"].as_str().unwrap(), result["sent"].as_u64().unwrap());
            assert_eq!((told.0, told.1, result["delivered"].as_u64().unwrap(), used), expected, "{result}");
            assert_eq!(result.get("registration").is_some(), buys, "{result}");
            assert_eq!(result["details"].as_array().unwrap().len(), rows.len(), "{result}");
            let unknown = rows.iter().any(|row| row.state == Ambiguous);
            assert_eq!(result.get("warning") == Some(&json!("delivery_unknown")), unknown, "{result}");
        }
        let words: Vec<&str> = [Bounced, Suppressed, Refused, Accepted].into_iter().map(word).collect();
        assert_eq!(words, ["undelivered", "opted_out", "failed", "accepted"]);
    }
}
