//! Telnyx: assistants on the phone. <https://developers.telnyx.com/api-reference/call-commands/dial>,
//! <https://developers.telnyx.com/api-reference/call-commands/answer-call>, types of team-telnyx/telnyx-node (2026-08-21)
//!
//! - A repeated command is ignored for only 60 seconds, so a call is placed once. It has our id as its `client_state`, and is
//!   looked for among the application's calls and their events if an answer was lost.
//! - A call that comes in waits for commands: Telnyx does not use the answer to what it posts.
//! - Telnyx signs what it posts. It still only says when to act: a call is charged by its events, which are asked for.
//! - Answering takes no longest length, so an inbound call is ended by us when its time is over.

use std::time::Duration;

use base::clock::Timestamp;
use base::encoding::{base64_any, base64_standard};
use base::ids::{RequestId, uuid_of};
use platform::config::{Capability, Redacted};
use platform::http::log;
use platform::providers::{Amount, Ask, Charge, Lane, Outbound, OutboundError};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::Toolbox;
use tools_sms::number::Number;
use tools_sms::providers::telnyx::{self as account, ASSISTANT, ORIGIN, PUBLIC_KEY, query};

use super::{
    Facts, Heard, MAX_CALLBACK, MAX_REASON, MAX_SUMMARY, MAX_URL, OUTCOMES, Placed, Placing, Verdict, WHO, plain,
    prompt, recorded, text, time, unplaced,
};
use crate::call::{Ended, Mode, Phase, State};
use crate::calls::{Call, MAX_TURNS};
use crate::config::{InboundConfig, Language, Tool};
use crate::dialogue::{self, MAX_SAID, Speaker, Turn, cleaned};
use crate::outside;

pub use tools_sms::providers::telnyx::NAME;

pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::Voice,
    tools: &["voice"],
    amount: Amount::public(
        61_400,
        "a minute in the US with a model and a line, at least",
        "https://telnyx.com/pricing/voice-ai-agents",
        "2026-09",
    ),
};

/// The headers of what Telnyx posts: Unix seconds, and the signature in base64.
pub const TIMESTAMP_HEADER: &str = "telnyx-timestamp";
pub const SIGNATURE_HEADER: &str = "telnyx-signature-ed25519";
/// How far its time may be from ours. <https://developers.telnyx.com/development/api-fundamentals/webhooks/receiving-webhooks>
const MAX_SKEW_SECS: i64 = 300;

/// How long a phone rings, in seconds.
const RINGS_SECS: u32 = 45;
/// Messages of a page, and pages of a conversation: [`MAX_TURNS`] in all.
const PAGE: usize = 100;
const PAGES: usize = 4;
/// Most items of a page of calls or events.
const PAGE_SIZE: &str = "100";
/// The events of a call that say what it costs and how it ended.
const EVENTS: [&str; 3] = ["call.hangup", "call.answered", "call.bridged"];
/// A call that was placed is among those of this long before, by Telnyx's clock.
const AROUND: Duration = Duration::from_secs(300);
/// Statuses that say that a call is over or not known.
const GONE: [u16; 2] = [404, 422];
/// How deep events are searched: what they have of the post itself is not described.
const DEPTH: usize = 5;

/// The operator's account.
pub struct Account {
    key: Redacted,
    public_key: Redacted,
    connection: Redacted,
    assistant: Redacted,
}

impl Account {
    /// The account of `PROVIDER_KEYS`.
    pub async fn of(outbound: &Outbound) -> Result<Account, OutboundError> {
        Ok(Account {
            key: account::key(outbound).await?,
            public_key: outbound.needed_key(PUBLIC_KEY).await?,
            connection: account::connection(outbound).await?,
            assistant: outbound.needed_key(ASSISTANT).await?,
        })
    }

    /// Whether Telnyx has signed this body, at most five minutes ago.
    pub fn has_signed(&self, timestamp: &str, body: &[u8], signature: &str, now: Timestamp) -> bool {
        let is_fresh = timestamp.parse::<i64>().is_ok_and(|at| at.abs_diff(now.secs()) <= MAX_SKEW_SECS.unsigned_abs());
        let (Some(key), Some(signature)) = (base64_any(self.public_key.expose()), base64_any(signature)) else {
            return false;
        };
        let signed = [timestamp.as_bytes(), b"|", body].concat();
        is_fresh && UnparsedPublicKey::new(&ED25519, key).verify(&signed, &signature).is_ok()
    }

    fn get(&self, path: &str, pairs: &[(&str, &str)]) -> Ask {
        let path = if pairs.is_empty() { path.to_owned() } else { query(path, pairs) };
        account::ask(&self.key, Ask::get(path))
    }

    /// A command for a call, in which somebody waits. It is ignored if it comes again within a minute.
    fn command(&self, control: &str, action: &str, mut body: Value) -> Ask {
        body["command_id"] = json!(command_id(control, action));
        account::ask(&self.key, Ask::post(format!("/calls/{control}/actions/{action}"), &body)).on(Lane::Live)
    }
}

fn command_id(call: &str, action: &str) -> String {
    uuid_of(&[NAME.as_bytes(), action.as_bytes(), call.as_bytes()]).to_string()
}

/// Telnyx's ids of a call, as one text: who made it, its leg, and what commands name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    pub is_outbound: bool,
    pub leg: String,
    pub control: String,
}

impl Ids {
    /// Those of a call in an answer, a post or a list. `None` if they may not be part of a path.
    pub fn of(value: &Value, is_outbound: bool) -> Option<Ids> {
        let id = |name: &str| value[name].as_str().filter(|id| is_id(id)).map(str::to_owned);
        Some(Ids { is_outbound, leg: id("call_leg_id")?, control: id("call_control_id")? })
    }

    pub fn parse(text: &str) -> Option<Ids> {
        let mut parts = text.split('.');
        let (direction, leg, control) = (parts.next()?, parts.next()?, parts.next()?);
        let is_known = matches!(direction, "in" | "out") && is_id(leg) && is_id(control) && parts.next().is_none();
        is_known.then(|| Ids { is_outbound: direction == "out", leg: leg.to_owned(), control: control.to_owned() })
    }

    pub fn to_text(&self) -> String {
        let direction = if self.is_outbound { "out" } else { "in" };
        format!("{direction}.{}.{}", self.leg, self.control)
    }
}

fn is_id(text: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':');
    (1..=200).contains(&text.len()) && text.bytes().all(is_known)
}

/// What Telnyx returns with each post about a call (`client_state`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// A call that a job has placed.
    Placed { request_id: RequestId, index: u32 },
    /// The caller has to hear this once the call is answered.
    Says { text: String, language: Language, then: Option<Target> },
    /// The caller hears it.
    Said { then: Option<Target> },
    /// The second leg of this call, which was passed on.
    Second { first: String },
}

/// Where a call is passed on to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    to: String,
    /// Our number, which the owner sees.
    from: String,
    secs: u32,
}

impl Mark {
    fn to_state(&self) -> String {
        base64_standard(json!(self).to_string().as_bytes())
    }

    /// `None`: it is none of ours.
    pub fn of_state(state: &str) -> Option<Mark> {
        serde_json::from_slice(&base64_any(state)?).ok()
    }
}

// --- Outbound ---

/// Places a call. It is never asked twice after it may have arrived.
pub async fn place(toolbox: &Toolbox, placing: &Placing<'_>, deadline: Instant) -> Placed {
    let account = match Account::of(&toolbox.outbound).await {
        Ok(account) => account,
        Err(error) => {
            log::failure("Telnyx cannot be used", &error.detail());
            return Placed::NotNow(format!("{WHO} {error}"));
        }
    };
    let body = placed(placing, &account);
    let ask = Ask { repeatable: false, ..account::ask(&account.key, Ask::post("/calls", &body)) };
    // 403: the account may not call there.
    match toolbox.outbound.send(NAME, ORIGIN, &ask, &[400, 403, 404, 422], deadline).await {
        Ok(answer) if answer.status >= 400 => {
            // Its messages may repeat the number, so they are not logged.
            log::failure("Telnyx refused a call", &format_args!("HTTP {}", answer.status));
            Placed::No(format!("{WHO} refused the call"))
        }
        Ok(answer) => {
            let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            Ids::of(&body["data"], true).map_or(Placed::Unknown, |ids| Placed::Yes(ids.to_text()))
        }
        Err(error) => unplaced(&error),
    }
}

fn placed(placing: &Placing<'_>, account: &Account) -> Value {
    let mark = Mark::Placed { request_id: placing.request_id, index: placing.index };
    let prompt = format!(
        "{}\nIf a machine takes messages, wait for its tone, say the following, and hang up:\n{}\n",
        placing.prompt, placing.message
    );
    let hangup =
        json!({"type": "hangup", "hangup": {"description": "Ends the call when there is nothing left to say."}});
    json!({
        "connection_id": account.connection.expose(),
        "from": placing.line,
        "to": placing.to,
        "command_id": command_id(&format!("{}.{}", placing.request_id, placing.index), "dial"),
        "client_state": mark.to_state(),
        "timeout_secs": RINGS_SECS,
        "time_limit_secs": placing.minutes.saturating_mul(60),
        "record": "record-from-answer",
        "record_channels": "single",
        "record_format": "mp3",
        "assistant": {
            "id": account.assistant.expose(),
            "instructions": plain(&prompt),
            "greeting": plain(placing.first),
            "tools": [hangup],
        },
    })
}

/// Looks for a call whose placing was not answered. `line`: the number that calls; `since`: when it was placed.
pub async fn find(
    toolbox: &Toolbox,
    placing: (RequestId, u32),
    line: &str,
    since: Timestamp,
    deadline: Instant,
) -> Result<Option<String>, OutboundError> {
    let account = Account::of(&toolbox.outbound).await?;
    let state = Mark::Placed { request_id: placing.0, index: placing.1 }.to_state();
    let path = format!("/connections/{}/active_calls", account.connection.expose());
    let active = list(toolbox, &account, &path, &[("page[size]", PAGE_SIZE)], deadline).await?;
    let is_ours = |call: &&Value| call["client_state"] == state.as_str();
    if let Some(ids) = active.iter().find(is_ours).and_then(|call| Ids::of(call, true)) {
        return Ok(Some(ids.to_text()));
    }
    let from = since.minus(AROUND).to_string();
    let pairs = [
        ("filter[connection_id]", account.connection.expose()),
        ("filter[from]", line),
        ("filter[name]", "call.initiated"),
        ("filter[occurred_at][gte]", from.as_str()),
        ("page[size]", PAGE_SIZE),
    ];
    let events = list(toolbox, &account, "/call_events", &pairs, deadline).await?;
    let of_event = |event: &Value| {
        let raw = &event["metadata"];
        if member(raw, "client_state", DEPTH)?.as_str()? != state {
            return None;
        }
        let control = member(raw, "call_control_id", DEPTH)?;
        Ids::of(&json!({"call_leg_id": event["call_leg_id"], "call_control_id": control}), true)
    };
    Ok(events.iter().find_map(of_event).map(|ids| ids.to_text()))
}

/// The items of a list.
async fn list(
    toolbox: &Toolbox,
    account: &Account,
    path: &str,
    pairs: &[(&str, &str)],
    deadline: Instant,
) -> Result<Vec<Value>, OutboundError> {
    items(toolbox, &account.get(path, pairs), deadline).await
}

async fn items(toolbox: &Toolbox, ask: &Ask, deadline: Instant) -> Result<Vec<Value>, OutboundError> {
    let (_, mut answer) = toolbox.outbound.json(NAME, ORIGIN, ask, &[404], deadline).await?;
    match answer.get_mut("data").map(Value::take) {
        Some(Value::Array(items)) => Ok(items),
        _ => Ok(Vec::new()),
    }
}

/// A member of this name, wherever it is.
fn member<'a>(value: &'a Value, name: &str, depth: usize) -> Option<&'a Value> {
    let members = value.as_object().filter(|_| depth > 0)?;
    let own = members.get(name).filter(|found| !found.is_null());
    own.or_else(|| members.values().find_map(|inner| member(inner, name, depth - 1)))
}

// --- Inbound ---

/// Tells Telnyx how to treat a call that rings and was answered here.
///
/// # Errors
/// If Telnyx may not have heard; the same again is harmless.
pub async fn treat(toolbox: &Toolbox, call: &Call, control: &str, deadline: Instant) -> Result<(), OutboundError> {
    let (Some(config), Some(state)) = (&call.config, &call.state) else {
        return reject(toolbox, control, deadline).await;
    };
    // The operator pays for the line on which a call is passed on.
    let is_served = |number: &Number| !number.is_fictitious() && outside::is_served(&toolbox.config, number);
    let transfer_number = config.transfer_number.clone().filter(is_served);
    let config = &InboundConfig { transfer_number, ..config.clone() };
    let account = Account::of(&toolbox.outbound).await?;
    let body = match (state.phase, state.mode, &config.transfer_number) {
        (Phase::Ended { .. }, _, _) | (_, Mode::Transfer, None) => return reject(toolbox, control, deadline).await,
        (_, Mode::Transfer, Some(number)) => says(
            &dialogue::greeting(config, Mode::Transfer),
            config.language,
            Some(Target {
                to: number.as_str().to_owned(),
                from: call.to.clone(),
                secs: state.minutes.saturating_mul(60),
            }),
        ),
        _ => answering(config, state, &call.to, account.assistant.expose()),
    };
    send(toolbox, &account.command(control, "answer", body), &GONE, deadline).await.map(drop)
}

/// Declines a call. Nobody pays for it, and the caller hears what the network says of a busy number.
pub async fn reject(toolbox: &Toolbox, control: &str, deadline: Instant) -> Result<(), OutboundError> {
    act(toolbox, control, "reject", json!({"cause": "USER_BUSY"}), deadline).await
}

/// Answers a call to say something, and then hangs up.
pub async fn decline(
    toolbox: &Toolbox,
    control: &str,
    said: &str,
    language: Language,
    deadline: Instant,
) -> Result<(), OutboundError> {
    act(toolbox, control, "answer", says(said, language, None), deadline).await
}

/// A call was answered: what has to be said is said.
pub async fn say(
    toolbox: &Toolbox,
    control: &str,
    said: &str,
    language: Language,
    then: Option<Target>,
    deadline: Instant,
) -> Result<(), OutboundError> {
    let body = json!({
        "payload": said,
        "voice": "female",
        "service_level": "basic",
        "language": locale(language),
        "client_state": Mark::Said { then }.to_state(),
    });
    act(toolbox, control, "speak", body, deadline).await
}

/// Passes a call on. Whoever is on a line that was answered only for that hears nothing more, so it is hung up if Telnyx refuses.
pub async fn pass_on(
    toolbox: &Toolbox,
    control: &str,
    target: &Target,
    deadline: Instant,
) -> Result<(), OutboundError> {
    let body = json!({
        "to": target.to,
        "from": target.from,
        "timeout_secs": RINGS_SECS,
        "time_limit_secs": target.secs,
        "target_leg_client_state": Mark::Second { first: control.to_owned() }.to_state(),
    });
    let command = Account::of(&toolbox.outbound).await?.command(control, "transfer", body);
    match send(toolbox, &command, &[403, 404, 422], deadline).await? {
        true => Ok(()),
        false => hang_up(toolbox, control, deadline).await,
    }
}

/// Ends a call. `control`: what commands name, or all its ids. A call that is over stays as it is.
pub async fn hang_up(toolbox: &Toolbox, control: &str, deadline: Instant) -> Result<(), OutboundError> {
    let ids = Ids::parse(control);
    let control = ids.as_ref().map_or(control, |ids| ids.control.as_str());
    // It becomes part of a path.
    if !is_id(control) {
        return Ok(());
    }
    act(toolbox, control, "hangup", json!({}), deadline).await
}

async fn act(
    toolbox: &Toolbox,
    control: &str,
    action: &str,
    body: Value,
    deadline: Instant,
) -> Result<(), OutboundError> {
    let account = Account::of(&toolbox.outbound).await?;
    send(toolbox, &account.command(control, action, body), &GONE, deadline).await.map(drop)
}

/// Sends a command. False: it was refused with one of these statuses, as are commands for a call that is over, and those that
/// were obeyed long ago.
async fn send(toolbox: &Toolbox, command: &Ask, refusals: &[u16], deadline: Instant) -> Result<bool, OutboundError> {
    let answer = toolbox.outbound.send(NAME, ORIGIN, command, refusals, deadline).await?;
    let is_taken = answer.status < 400;
    if !is_taken {
        log::failure("Telnyx refused a command", &format_args!("HTTP {}", answer.status));
    }
    Ok(is_taken)
}

fn says(said: &str, language: Language, then: Option<Target>) -> Value {
    json!({"client_state": Mark::Says { text: said.to_owned(), language, then }.to_state()})
}

fn answering(config: &InboundConfig, state: &State, own: &str, assistant: &str) -> Value {
    let is_open = state.mode == Mode::InHours;
    let mut tools = Vec::new();
    if config.allows(Tool::EndCall) {
        tools.push(json!({"type": "hangup", "hangup": {"description": "Ends the call when it is over."}}));
    }
    if let Some(number) = config.transfer_number.as_ref().filter(|_| is_open && config.allows(Tool::TransferCall)) {
        tools
            .push(json!({"type": "transfer", "transfer": {"from": own, "targets": [{"name": "owner", "to": number}]}}));
    }
    let first = format!("{} {}", dialogue::greeting(config, state.mode), recorded(config.language));
    let rules = format!("{}\n\nSpeak {}.", prompt(&config.prompt, is_open), spoken(config.language));
    let mut assistant =
        json!({"id": assistant, "instructions": plain(&rules), "greeting": plain(&first), "tools": tools});
    if let Some(voice) = config.voice_id.as_deref().filter(|voice| is_voice(voice)) {
        assistant["voice_settings"] = json!({"voice": voice});
    }
    json!({
        "assistant": assistant,
        "record": "record-from-answer",
        "record_channels": "single",
        "record_format": "mp3",
    })
}

/// A voice of Telnyx's own (`Telnyx.<model>.<voice>`). Others may need keys of their vendors, and are not used.
fn is_voice(name: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    name.starts_with("Telnyx.") && name.bytes().all(is_known)
}

fn spoken(language: Language) -> &'static str {
    match language {
        Language::En => "English",
        Language::Es => "Spanish",
        Language::Fr => "French",
        Language::De => "German",
        Language::Pt => "Portuguese",
        Language::It => "Italian",
        Language::Nl => "Dutch",
        Language::Multi => "the caller's language",
    }
}

fn locale(language: Language) -> &'static str {
    match language {
        Language::En | Language::Multi => "en-US",
        Language::Es => "es-ES",
        Language::Fr => "fr-FR",
        Language::De => "de-DE",
        Language::Pt => "pt-PT",
        Language::It => "it-IT",
        Language::Nl => "nl-NL",
    }
}

// --- What became of a call ---

/// Asks what became of a call. Telnyx keeps a call's state for ten minutes after its end and its events for longer, so a call
/// that has no state is not taken for one that never was.
pub async fn ask(toolbox: &Toolbox, id: &str, deadline: Instant) -> Result<Heard, OutboundError> {
    let Some(ids) = Ids::parse(id) else { return Ok(Heard::NoSuchCall) };
    let account = Account::of(&toolbox.outbound).await?;
    let open = || Heard::Open { control: Some(id.to_owned()) };
    let ask = account.get(&format!("/calls/{}", ids.control), &[]);
    let (_, status) = toolbox.outbound.json(NAME, ORIGIN, &ask, &GONE, deadline).await?;
    if status["data"]["is_alive"] == true {
        return Ok(open());
    }
    let mut events = Vec::new();
    // Each by its name: other events, as of the keys that a caller presses, can fill any page. The end comes first, so that what
    // was before it is there when it is.
    for name in EVENTS {
        let pairs = [
            ("filter[leg_id]", ids.leg.as_str()),
            ("filter[name]", name),
            ("filter[type]", "webhook"),
            ("page[size]", PAGE_SIZE),
        ];
        events.extend(list(toolbox, &account, "/call_events", &pairs, deadline).await?);
    }
    let Some(end) = End::of(&status["data"], &events) else { return Ok(open()) };
    let spoken = match end.answered {
        Some(_) => spoken_in(toolbox, &account, &ids.control, deadline).await?,
        None => Spoken::default(),
    };
    Ok(Heard::Over(Box::new(facts(ids.is_outbound, &end, &spoken))))
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
struct End {
    answered: Option<Timestamp>,
    at: Timestamp,
    /// Telnyx's words; empty if it has not told them.
    cause: String,
    source: String,
    was_passed_on: bool,
    /// Whether a recording was asked for: not of a call that was answered only to say something, or to be passed on.
    is_recorded: bool,
}

impl End {
    /// `None`: it is not over. `is_alive` is false, too, before a call that was placed begins.
    fn of(status: &Value, events: &[Value]) -> Option<End> {
        let event = |name: &str| events.iter().find(|event| event["name"] == name);
        let at = |event: &Value| text(event, "/event_timestamp").and_then(time);
        let hangup = event("call.hangup");
        let word = |name: &str| {
            let found = hangup.and_then(|event| member(&event["metadata"], name, DEPTH)).and_then(Value::as_str);
            found.and_then(|word| cleaned(word, MAX_REASON)).unwrap_or_default()
        };
        let state = |event: &Value| Mark::of_state(member(&event["metadata"], "client_state", DEPTH)?.as_str()?);
        let only_says = |event: &Value| matches!(state(event), Some(Mark::Says { .. } | Mark::Said { .. }));
        Some(End {
            is_recorded: !events.iter().any(only_says),
            answered: event("call.answered").and_then(at),
            at: hangup.and_then(at).or_else(|| text(status, "/end_time").and_then(time))?,
            cause: word("hangup_cause"),
            source: word("hangup_source"),
            was_passed_on: event("call.bridged").is_some(),
        })
    }
}

/// What was said in a call, and what its assistant's insights found.
#[derive(Clone, Debug, Default)]
struct Spoken {
    messages: Vec<Value>,
    insights: Vec<Value>,
}

/// A call without a conversation has nothing of it.
async fn spoken_in(
    toolbox: &Toolbox,
    account: &Account,
    control: &str,
    deadline: Instant,
) -> Result<Spoken, OutboundError> {
    let of_call = format!("eq.{control}");
    let pairs = [("metadata->call_control_id", of_call.as_str()), ("limit", "1")];
    let found = list(toolbox, account, "/ai/conversations", &pairs, deadline).await?;
    let Some(id) = found.first().and_then(|conversation| conversation["id"].as_str()).filter(|id| is_id(id)) else {
        return Ok(Spoken::default());
    };
    let path = format!("/ai/conversations/{id}/messages");
    let mut messages = Vec::new();
    for page in 1..=PAGES {
        let (size, number) = (PAGE.to_string(), page.to_string());
        let pairs = [("page[size]", size.as_str()), ("page[number]", number.as_str())];
        let some = list(toolbox, account, &path, &pairs, deadline).await?;
        let is_last = some.len() < PAGE;
        messages.extend(some);
        if is_last {
            break;
        }
    }
    let path = format!("/ai/conversations/{id}/conversations-insights");
    let insights = list(toolbox, account, &path, &[], deadline).await?;
    Ok(Spoken { messages, insights })
}

fn facts(is_outbound: bool, end: &End, spoken: &Spoken) -> Facts {
    // In calls that we make, the assistant is the caller.
    let (ours, other) = match is_outbound {
        true => (Speaker::Caller, Speaker::Assistant),
        false => (Speaker::Assistant, Speaker::Caller),
    };
    let turns = turns(&spoken.messages, ours, other);
    let was_heard = turns.iter().any(|turn| turn.speaker == other);
    let was_answered = end.answered.is_some();
    let found = analysed(&spoken.insights);
    let said = |name: &str, most: usize| found[name].as_str().and_then(|text| cleaned(text, most));
    let answered = found["answered"].as_array().into_iter().flatten();
    let is_looked_through =
        spoken.insights.iter().any(|some| matches!(text(some, "/status"), Some("completed" | "failed")));
    Facts {
        started: end.answered,
        ended: end.at,
        why: why(end, is_outbound),
        verdict: verdict(&end.cause, was_answered),
        outcome: outcome(&end.cause, was_answered, found["outcome"].as_str(), was_heard),
        summary: said("summary", MAX_SUMMARY),
        is_success: found["success"].as_bool(),
        answered: answered.filter_map(|number| number.as_str()?.parse().ok()).collect(),
        callback: said("callback_number", MAX_CALLBACK),
        has_recording: was_answered && end.is_recorded,
        // The hang-up and the insights follow some seconds after the end. A call that was passed on at once has none.
        is_whole: !end.cause.is_empty()
            && (!was_answered || is_looked_through || (end.was_passed_on && spoken.messages.is_empty())),
        reason: end.cause.clone(),
        turns,
    }
}

/// The pages may have any order.
fn turns(messages: &[Value], ours: Speaker, other: Speaker) -> Vec<Turn> {
    let mut messages: Vec<&Value> = messages.iter().collect();
    let when = |message: &Value| {
        let at = text(message, "/sent_at").or_else(|| text(message, "/created_at")).and_then(time);
        at.map_or(0, Timestamp::millis)
    };
    messages.sort_by_key(|message| when(message));
    let turn = |message: &Value| {
        let speaker = match message["role"].as_str()? {
            "assistant" => ours,
            "user" => other,
            _ => return None,
        };
        Some(Turn { speaker, text: cleaned(message["text"].as_str()?, MAX_SAID)? })
    };
    let most = usize::try_from(MAX_TURNS).unwrap_or(usize::MAX);
    messages.into_iter().filter_map(turn).take(most).collect()
}

/// What the insights found: the members of the insight that docs/VOICE.md describes. Another insight's text is a summary.
fn analysed(insights: &[Value]) -> Value {
    let mut found = json!({});
    let results = insights.iter().filter_map(|some| some["conversation_insights"].as_array()).flatten();
    for result in results.map(|insight| &insight["result"]) {
        let parsed = match result {
            Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| json!({"summary": text})),
            other => other.clone(),
        };
        if let (Value::Object(members), Some(known)) = (parsed, found.as_object_mut()) {
            known.extend(members);
        }
    }
    found
}

fn why(end: &End, is_outbound: bool) -> Ended {
    let us = if is_outbound { "caller" } else { "callee" };
    match end.cause.as_str() {
        "time_limit" => Ended::TimeLimit,
        _ if end.was_passed_on => Ended::Transferred,
        "unspecified" if end.answered.is_some() => Ended::Failed,
        _ if end.source == us => Ended::AssistantHungUp,
        _ => Ended::CallerHungUp,
    }
}

/// <https://developers.telnyx.com/api-reference/callbacks/call-hangup>
fn verdict(cause: &str, was_answered: bool) -> Verdict {
    match cause {
        "originator_cancel" if !was_answered => Verdict::Cancelled,
        "unspecified" if was_answered => Verdict::Provider,
        "" | "normal_clearing" | "originator_cancel" | "time_limit" | "timeout" | "no_answer" | "user_busy"
        | "call_rejected" | "not_found" => Verdict::Usual,
        _ if was_answered => Verdict::Usual,
        _ => Verdict::Unreachable,
    }
}

/// What came of a call: if nobody was connected, by its end; else as the insights say, or if somebody spoke.
fn outcome(cause: &str, was_answered: bool, analysed: Option<&str>, was_heard: bool) -> Option<&'static str> {
    match cause {
        "timeout" | "no_answer" | "user_busy" if !was_answered => Some("no_answer"),
        "call_rejected" if !was_answered => Some("refused"),
        "not_found" if !was_answered => Some("wrong_number"),
        _ if !was_answered => None,
        _ => {
            let analysed = OUTCOMES.into_iter().find(|word| Some(*word) == analysed);
            analysed.or_else(|| was_heard.then_some("reached_person"))
        }
    }
}

/// A link to a call's recording, valid for minutes; `None` if there is none.
pub async fn recording(toolbox: &Toolbox, id: &str, deadline: Instant) -> Result<Option<String>, OutboundError> {
    let Some(ids) = Ids::parse(id) else { return Ok(None) };
    let account = Account::of(&toolbox.outbound).await?;
    let pairs = [("filter[call_leg_id]", ids.leg.as_str())];
    let found = items(toolbox, &account.get("/recordings", &pairs).on(Lane::Reads), deadline).await?;
    let url = found.first().and_then(|recording| text(recording, "/download_urls/mp3"));
    Ok(url.filter(|url| url.starts_with("https://") && url.len() <= MAX_URL).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use ring::signature::{Ed25519KeyPair, KeyPair};

    use super::*;

    const NOON: Timestamp = Timestamp::from_secs(1_795_176_000); // 2026-11-20T12:00:00Z

    fn event(name: &str, secs: u64, metadata: Value) -> Value {
        json!({"name": name, "event_timestamp": NOON.plus(Duration::from_secs(secs)).to_string(), "metadata": metadata})
    }

    #[test]
    fn ends_are_told_apart_by_their_cause_and_who_hung_up() {
        use Verdict::{Cancelled, Provider, Unreachable, Usual};
        let message = json!({"role": "user", "text": "Hi", "sent_at": NOON.to_string()});
        let spoken = Spoken { messages: vec![message], insights: Vec::new() };
        for (cause, source, was_answered, why, verdict, outcome) in [
            ("normal_clearing", "callee", true, Ended::CallerHungUp, Usual, Some("reached_person")),
            ("normal_clearing", "caller", true, Ended::AssistantHungUp, Usual, Some("reached_person")),
            ("time_limit", "unknown", true, Ended::TimeLimit, Usual, Some("reached_person")),
            ("unspecified", "unknown", true, Ended::Failed, Provider, Some("reached_person")),
            ("unspecified", "unknown", false, Ended::CallerHungUp, Unreachable, None),
            ("timeout", "unknown", false, Ended::CallerHungUp, Usual, Some("no_answer")),
            ("no_answer", "unknown", false, Ended::CallerHungUp, Usual, Some("no_answer")),
            ("user_busy", "callee", false, Ended::CallerHungUp, Usual, Some("no_answer")),
            ("call_rejected", "callee", false, Ended::CallerHungUp, Usual, Some("refused")),
            ("not_found", "unknown", false, Ended::CallerHungUp, Usual, Some("wrong_number")),
            ("originator_cancel", "callee", false, Ended::CallerHungUp, Cancelled, None),
            // Words that are not known yet.
            ("brand_new", "unknown", true, Ended::CallerHungUp, Usual, Some("reached_person")),
            ("brand_new", "unknown", false, Ended::CallerHungUp, Unreachable, None),
        ] {
            let raw = json!({"x": {"payload": {"hangup_cause": cause, "hangup_source": source}}});
            let mut events = vec![event("call.hangup", 90, raw)];
            if was_answered {
                events.push(event("call.answered", 5, json!({})));
            }
            let end = End::of(&Value::Null, &events).unwrap();
            let spoken = if was_answered { spoken.clone() } else { Spoken::default() };
            let facts = facts(true, &end, &spoken);
            assert_eq!((facts.why, facts.verdict, facts.outcome), (why, verdict, outcome), "{cause} {was_answered}");
            assert_eq!(facts.length(), was_answered.then_some(Duration::from_secs(85)), "{cause}");
            assert_eq!(facts.is_whole, !was_answered, "{cause}: its insights are not there");
        }
    }

    #[test]
    fn a_call_is_over_once_its_end_has_a_time() {
        let answered = [event("call.answered", 0, json!({}))];
        assert_eq!(End::of(&json!({"is_alive": false}), &answered), None);
        let told = End::of(&json!({"end_time": NOON.to_string()}), &answered).unwrap();
        assert_eq!((told.answered, told.at, told.cause.as_str()), (Some(NOON), NOON, ""));
        assert!(!facts(false, &told, &Spoken::default()).is_whole, "the event with its cause may come");
    }

    #[test]
    fn insights_and_messages_are_cleaned_and_belong_to_their_side() {
        let message = |second: u64, role: &str, text: &str| {
            let at = NOON.plus(Duration::from_secs(second)).to_string();
            json!({"role": role, "text": text, "created_at": at})
        };
        let found = json!({"outcome": "refused", "success": false, "answered": ["2", "x"], "callback_number": "+1"});
        let results = json!([{"result": "Just\u{200b} text"}, {"result": found.to_string()}]);
        let spoken = Spoken {
            messages: vec![message(2, "user", " Hi\n you "), message(1, "assistant", "Hello\u{202e} there"), json!(1)],
            insights: vec![json!({"status": "completed", "conversation_insights": results})],
        };
        let raw = json!({"hangup_cause": "normal_clearing", "hangup_source": "caller"});
        let events = [event("call.answered", 0, json!({})), event("call.hangup", 9, raw)];
        let end = End::of(&Value::Null, &events).unwrap();
        let turn = |speaker: Speaker, text: &str| Turn { speaker, text: text.to_owned() };
        let outbound = facts(true, &end, &spoken);
        assert_eq!(outbound.turns, [turn(Speaker::Caller, "Hello there"), turn(Speaker::Assistant, "Hi you")]);
        assert_eq!((outbound.summary.as_deref(), outbound.is_success), (Some("Just text"), Some(false)));
        assert_eq!((outbound.outcome, outbound.answered.clone()), (Some("refused"), vec![2]));
        assert!(outbound.is_whole && outbound.has_recording);
        let inbound = facts(false, &end, &spoken);
        assert_eq!(inbound.turns, [turn(Speaker::Assistant, "Hello there"), turn(Speaker::Caller, "Hi you")]);
        assert_eq!((outbound.why, inbound.why), (Ended::AssistantHungUp, Ended::CallerHungUp));
    }

    #[test]
    fn only_what_telnyx_signed_lately_counts() {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let account = Account {
            key: Redacted::new("key"),
            public_key: Redacted::new(base64_standard(pair.public_key().as_ref())),
            connection: Redacted::new("1"),
            assistant: Redacted::new("assistant-1"),
        };
        let signature = base64_standard(pair.sign(b"1795176000|{}").as_ref());
        let is_signed = |at: &str, body: &str, signature: &str, late: u64| {
            account.has_signed(at, body.as_bytes(), signature, NOON.plus(Duration::from_secs(late)))
        };
        assert!(is_signed("1795176000", "{}", &signature, 0) && is_signed("1795176000", "{}", &signature, 300));
        assert!(!is_signed("1795176000", "{}", &signature, 301), "too old");
        for (at, body, signature) in [
            ("1795176001", "{}", signature.as_str()),
            ("1795176000", "{ }", signature.as_str()),
            ("1795176000", "{}", "AAAA"),
            ("1795176000", "{}", "?"),
            ("", "", ""),
        ] {
            assert!(!is_signed(at, body, signature, 0), "{at} {body} {signature}");
        }
    }

    #[test]
    fn ids_and_marks_are_read_only_in_our_own_spelling() {
        let ids = Ids { is_outbound: true, leg: "leg-1".to_owned(), control: "v3:a_B-1".to_owned() };
        assert_eq!((ids.to_text().as_str(), Ids::parse(&ids.to_text())), ("out.leg-1.v3:a_B-1", Some(ids.clone())));
        for text in ["", "out.leg-1", "up.leg-1.v3", "out.leg-1.v3.x", "out..v3", "out.leg-1.../calls", "out.leg-1.a/b"]
        {
            assert_eq!(Ids::parse(text), None, "{text}");
        }
        assert_eq!(Ids::of(&json!({"call_leg_id": "l", "call_control_id": "../x"}), true), None);
        let mark = Mark::Placed { request_id: RequestId::from_bytes([1; 16]), index: 0 };
        assert_eq!(Mark::of_state(&mark.to_state()), Some(mark));
        assert_eq!((Mark::of_state("?"), Mark::of_state("e30=")), (None, None));
        for (name, is_used) in [("Telnyx.KokoroTTS.af", true), ("ElevenLabs.x.y", false), ("Telnyx.a b", false)] {
            assert_eq!(is_voice(name), is_used, "{name}");
        }
    }
}
