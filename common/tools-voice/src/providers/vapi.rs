//! Vapi: assistants on the phone. <https://docs.vapi.ai/api-reference>, openapi.json of VapiAI/docs (2026-08-20),
//! <https://docs.vapi.ai/server-url/events>, <https://docs.vapi.ai/call-features>, <https://docs.vapi.ai/assistants/retrieve-call-artifacts>
//!
//! - Vapi has no idempotency key. A call has our id as its `name`, and is looked for among the calls if an answer was lost.
//! - Vapi refuses members that it does not know, so a request has only those of its description.
//! - What Vapi posts carries a secret of ours, but nothing signs it: it only says when to ask for the call.
//! - Recordings are private; a link to one is valid for minutes.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use base::ids::RequestId;
use futures_util::future;
use platform::config::{Capability, Redacted};
use platform::http::log;
use platform::providers::{Amount, Ask, Charge, Lane, Outbound, OutboundError};
use ring::hmac;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::Toolbox;
use tools_sms::number::Number;
use tools_sms::providers::vapi::{self as account, ORIGIN, SECRET, is_id};

use super::{
    Facts, Heard, MAX_CALLBACK, MAX_REASON, MAX_SUMMARY, MAX_URL, OUTCOMES, Placed, Placing, Verdict, WHO, plain,
    prompt, recorded, text, time, unplaced,
};
use crate::call::{Ended, Mode, Phase, State};
use crate::calls::{Call, MAX_TURNS};
use crate::config::{InboundConfig, Language, Tool};
use crate::dialogue::{self, MAX_SAID, Speaker, Turn, cleaned};
use crate::outside;

pub use tools_sms::providers::vapi::{NAME, hook_url};

pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::Voice,
    tools: &["voice"],
    amount: Amount::public(
        96_000,
        "a minute in the US with a model, a voice and a line, at least",
        "https://vapi.ai/pricing",
        "2026-09",
    ),
};

/// The header that Vapi sends our secret in.
pub const SECRET_HEADER: &str = "x-vapi-secret";

const MODEL: (&str, &str) = ("openai", "gpt-4.1-mini");
const VOICE: &str = "Elliot";
/// Tokens of one answer.
const MAX_TOKENS: u32 = 250;
/// Longest wait for each part of the analysis after a call, in seconds.
const ANALYSIS_SECS: u32 = 30;
/// A call that was placed is created so soon before or after, by Vapi's clock.
const AROUND: Duration = Duration::from_secs(300);

/// The operator's account: its key, and the secret that Vapi sends with what it posts.
pub struct Account {
    key: Redacted,
    secret: Redacted,
}

impl Account {
    /// The account of `PROVIDER_KEYS`.
    pub async fn of(outbound: &Outbound) -> Result<Account, OutboundError> {
        Ok(Account { key: account::key(outbound).await?, secret: outbound.needed_key(SECRET).await? })
    }

    /// Whether this is our secret. Compared in constant time, as the key of two authentication codes.
    pub fn has_sent(&self, secret: &str) -> bool {
        let key = |secret: &str| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let tag = digest::hmac(&key(secret), NAME.as_bytes());
        hmac::verify(&key(self.secret.expose()), NAME.as_bytes(), &tag).is_ok()
    }

    fn get(&self, path: impl Into<String>) -> Ask {
        account::ask(&self.key, Ask::get(path))
    }
}

/// The name of a call at Vapi: at most 40 characters.
fn name_of(request_id: RequestId, index: u32) -> String {
    format!("{request_id}.{index}")
}

/// The request that a call's name is about.
pub fn request_of(name: &str) -> Option<(RequestId, u32)> {
    let (request_id, index) = name.split_once('.')?;
    let (request_id, index): (RequestId, u32) = (request_id.parse().ok()?, index.parse().ok()?);
    (name_of(request_id, index) == name).then_some((request_id, index))
}

// --- Outbound ---

/// Places a call. It is never asked twice after it may have arrived.
pub async fn place(toolbox: &Toolbox, placing: &Placing<'_>, deadline: Instant) -> Placed {
    let account = match Account::of(&toolbox.outbound).await {
        Ok(account) => account,
        Err(error) => {
            log::failure("Vapi cannot be used", &error.detail());
            return Placed::NotNow(format!("{WHO} {error}"));
        }
    };
    let server = server(toolbox.config.base_url.as_deref(), &account.secret);
    let ask = Ask { repeatable: false, ..account::ask(&account.key, Ask::post("/call", &placed(placing, server))) };
    let answer = toolbox.outbound.send(NAME, ORIGIN, &ask, &[400], deadline).await;
    match answer {
        Ok(answer) if answer.status == 400 => {
            // Its messages may repeat the number, so they are not logged.
            log::failure("Vapi refused a call", &"HTTP 400");
            Placed::No(format!("{WHO} refused the call"))
        }
        Ok(answer) => {
            let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            body["id"].as_str().filter(|id| is_id(id)).map_or(Placed::Unknown, |id| Placed::Yes(id.to_owned()))
        }
        Err(error) => unplaced(&error),
    }
}

/// Looks for a call whose placing was not answered. `since`: when it was placed.
pub async fn find(
    toolbox: &Toolbox,
    placing: (RequestId, u32),
    line: &str,
    since: Timestamp,
    deadline: Instant,
) -> Result<Option<String>, OutboundError> {
    let account = Account::of(&toolbox.outbound).await?;
    let (from, to) = (since.minus(AROUND), since.plus(AROUND));
    let ask = account.get(format!("/call?phoneNumberId={line}&createdAtGe={from}&createdAtLe={to}&limit=1000"));
    let (_, calls) = toolbox.outbound.json(NAME, ORIGIN, &ask, &[], deadline).await?;
    let name = name_of(placing.0, placing.1);
    let found = calls.as_array().into_iter().flatten().find(|call| call["name"] == name.as_str());
    Ok(found.and_then(|call| call["id"].as_str()).filter(|id| is_id(id)).map(str::to_owned))
}

fn placed(placing: &Placing<'_>, server: Option<Value>) -> Value {
    let name = name_of(placing.request_id, placing.index);
    let numbers: Vec<String> = (1..=placing.points).map(|number| number.to_string()).collect();
    let answered = match numbers.is_empty() {
        true => json!({"type": "array", "items": {"type": "string"}}),
        false => json!({"type": "array", "items": {"type": "string", "enum": numbers}}),
    };
    let mut assistant = assistant(&Script {
        name: "outbound",
        first: placing.first,
        prompt: placing.prompt,
        // It may have to find its way through a menu.
        tools: vec![json!({"type": "endCall"}), json!({"type": "dtmf"})],
        minutes: placing.minutes,
        voice: None,
        language: Language::Multi,
        server,
    });
    assistant["voicemailDetection"] = json!({
        "provider": "vapi",
        "type": "audio",
        "beepMaxAwaitSeconds": 25,
        "backoffPlan": {"startAtSeconds": 2, "frequencySeconds": 2.5, "maxRetries": 6},
    });
    let message: String = plain(placing.message).chars().take(outside::MAX_MESSAGE).collect();
    assistant["voicemailMessage"] = json!(message);
    assistant["analysisPlan"]["successEvaluationPlan"] =
        json!({"enabled": true, "rubric": "PassFail", "timeoutSeconds": ANALYSIS_SECS});
    assistant["analysisPlan"]["structuredDataPlan"] = json!({
        "enabled": true,
        "timeoutSeconds": ANALYSIS_SECS,
        "schema": {
            "type": "object",
            "properties": {
                "outcome": {"type": "string", "enum": OUTCOMES, "description": "What came of the call"},
                "answered": answered,
                "callback_number": {"type": "string", "description": "Where the person wants to be called back"},
            },
            "required": ["outcome"],
        },
    });
    json!({
        "name": name,
        "phoneNumberId": placing.line,
        "customer": {"number": placing.to},
        "assistant": assistant,
    })
}

// --- Assistants ---

/// What an assistant says and may do.
struct Script<'a> {
    name: &'a str,
    first: &'a str,
    prompt: &'a str,
    tools: Vec<Value>,
    minutes: u32,
    /// Vapi's name of a voice.
    voice: Option<&'a str>,
    language: Language,
    server: Option<Value>,
}

fn assistant(script: &Script<'_>) -> Value {
    let mut assistant = json!({
        "name": script.name,
        "firstMessage": plain(script.first),
        "firstMessageMode": "assistant-speaks-first",
        "model": {
            "provider": MODEL.0,
            "model": MODEL.1,
            "temperature": 0.3,
            "maxTokens": MAX_TOKENS,
            "messages": [{"role": "system", "content": plain(script.prompt)}],
            "tools": script.tools,
        },
        "voice": {"provider": "vapi", "voiceId": script.voice.unwrap_or(VOICE), "version": "latest"},
        "transcriber": {"provider": "deepgram", "model": "nova-3", "language": script.language},
        "maxDurationSeconds": script.minutes.saturating_mul(60),
        "analysisPlan": {
            "minMessagesThreshold": 0,
            "summaryPlan": {"enabled": true, "timeoutSeconds": ANALYSIS_SECS},
            "successEvaluationPlan": {"enabled": false},
            "structuredDataPlan": {"enabled": false},
        },
        "artifactPlan": {
            "recordingEnabled": true,
            "recordingFormat": "mp3",
            "pcapEnabled": false,
            "loggingEnabled": false,
            "transcriptPlan": {"enabled": true},
        },
        "monitorPlan": {"listenEnabled": false, "controlEnabled": true},
        // What comes of a call is asked for; this only says when.
        "serverMessages": ["end-of-call-report"],
    });
    if let Some(server) = &script.server {
        assistant["server"] = server.clone();
    }
    assistant
}

/// Where Vapi posts. Without an address of its own, this deployment is not told of ends, and finds them by asking.
fn server(base: Option<&str>, secret: &Redacted) -> Option<Value> {
    let base = base?;
    Some(json!({
        "url": hook_url(base),
        "timeoutSeconds": 20,
        "headers": {SECRET_HEADER: secret.expose()},
        "backoffPlan": {"type": "exponential", "maxRetries": 10, "baseDelaySeconds": 2},
    }))
}

// --- Inbound ---

/// A call that rings, as Vapi itself knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ringing {
    pub to: Number,
    /// The caller's number; empty if it is withheld.
    pub from: String,
}

/// Asks about a call that is said to ring at this line. `None`: it does not ring there, so somebody else has posted it.
pub async fn ringing(
    toolbox: &Toolbox,
    id: &str,
    line: &str,
    deadline: Instant,
) -> Result<Option<Ringing>, OutboundError> {
    if !is_id(id) || !is_id(line) {
        return Ok(None);
    }
    let account = Account::of(&toolbox.outbound).await?;
    let get = |path: String| account.get(path).on(Lane::Live);
    let (of_call, of_line) = (get(format!("/call/{id}")), get(format!("/phone-number/{line}")));
    let (call, phone) = future::try_join(
        toolbox.outbound.json(NAME, ORIGIN, &of_call, &[404], deadline),
        toolbox.outbound.json(NAME, ORIGIN, &of_line, &[404], deadline),
    )
    .await?;
    let (call, phone) = (call.1, phone.1);
    let rings = call["id"] == id
        && call["type"] == "inboundPhoneCall"
        && call["phoneNumberId"] == line
        && call["status"] != "ended";
    let to = account::line(&phone).filter(|_| rings).map(|line| line.number);
    let from = text(&call, "/customer/number").unwrap_or_default().to_owned();
    Ok(to.map(|to| Ringing { to, from }))
}

/// How Vapi has to treat an inbound call: the answer to its `assistant-request`.
/// <https://docs.vapi.ai/server-url/events#retrieving-assistants>
pub async fn treatment(toolbox: &Toolbox, call: &Call) -> Result<Value, OutboundError> {
    let account = Account::of(&toolbox.outbound).await?;
    let (Some(config), Some(state)) = (&call.config, &call.state) else { return Ok(declined(None)) };
    // The operator pays for the line on which a call is passed on.
    let is_served = |number: &Number| !number.is_fictitious() && outside::is_served(&toolbox.config, number);
    let transfer_number = config.transfer_number.clone().filter(is_served);
    let config = &InboundConfig { transfer_number, ..config.clone() };
    match (state.phase, state.mode, &config.transfer_number) {
        (Phase::Ended { .. }, _, _) => Ok(declined(None)),
        (_, Mode::Transfer, Some(number)) => Ok(passed_on(config, number)),
        (_, Mode::Transfer, None) => Ok(declined(None)),
        _ => {
            let server = server(toolbox.config.base_url.as_deref(), &account.secret);
            Ok(json!({"assistant": answering(config, state, server)}))
        }
    }
}

/// Vapi says this, and hangs up. It cannot decline a call in silence.
pub fn declined(say: Option<&str>) -> Value {
    json!({"error": say.unwrap_or("Nobody can take your call now. Goodbye.")})
}

/// Nobody has the number.
pub fn not_in_service() -> Value {
    json!({"error": "This number is not in service. Goodbye."})
}

fn passed_on(config: &InboundConfig, number: &Number) -> Value {
    let message = dialogue::greeting(config, Mode::Transfer);
    json!({"destination": {"type": "number", "number": number, "message": plain(&message)}})
}

fn answering(config: &InboundConfig, state: &State, server: Option<Value>) -> Value {
    let is_open = state.mode == Mode::InHours;
    let mut tools = Vec::new();
    if config.allows(Tool::EndCall) {
        tools.push(json!({"type": "endCall"}));
    }
    if let Some(number) = config.transfer_number.as_ref().filter(|_| is_open && config.allows(Tool::TransferCall)) {
        tools.push(json!({
            "type": "transferCall",
            "destinations": [{
                "type": "number",
                "number": number,
                // In business hours, the message for other hours is not said.
                "message": dialogue::greeting(&InboundConfig { after_hours_message: None, ..config.clone() }, Mode::Transfer),
                "description": "A person of the owner, if the caller asks for one",
                "transferPlan": {"mode": "blind-transfer"},
            }],
        }));
    }
    assistant(&Script {
        name: "inbound",
        first: &format!("{} {}", dialogue::greeting(config, state.mode), recorded(config.language)),
        prompt: &prompt(&config.prompt, is_open),
        tools,
        minutes: state.minutes,
        voice: config.voice_id.as_deref(),
        language: config.language,
        server,
    })
}

// --- What became of a call ---

/// Asks what became of a call.
pub async fn ask(toolbox: &Toolbox, id: &str, deadline: Instant) -> Result<Heard, OutboundError> {
    if !is_id(id) {
        return Ok(Heard::NoSuchCall);
    }
    let account = Account::of(&toolbox.outbound).await?;
    let ask = account.get(format!("/call/{id}"));
    let (status, call) = toolbox.outbound.json(NAME, ORIGIN, &ask, &[404], deadline).await?;
    if status == 404 {
        return Ok(Heard::NoSuchCall);
    }
    Ok(match facts(&call) {
        Some(facts) => Heard::Over(Box::new(facts)),
        None => Heard::Open { control: text(&call, "/monitor/controlUrl").map(str::to_owned) },
    })
}

/// Ends a call that goes on for too long. `control`: the address that Vapi gave for it; nothing is posted elsewhere.
/// <https://docs.vapi.ai/calls/call-features#end-call>
pub async fn hang_up(toolbox: &Toolbox, control: &str, deadline: Instant) -> Result<(), OutboundError> {
    let Some((origin, path)) = of_vapi(control) else {
        return Err(OutboundError::Unreadable("the address that ends a call is not Vapi's".to_owned()));
    };
    let ask = Ask::post(path, &json!({"type": "end-call"}));
    toolbox.outbound.send(NAME, origin, &ask, &[], deadline).await.map(drop)
}

/// An address at a host of Vapi, as origin and path.
fn of_vapi(url: &str) -> Option<(&str, &str)> {
    let host_and_path = url.strip_prefix("https://").filter(|_| url.len() <= MAX_URL)?;
    let (host, _) = host_and_path.split_once('/')?;
    let is_host = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
    (is_host && host.ends_with(".vapi.ai")).then(|| url.split_at("https://".len() + host.len()))
}

/// A link to a call's recording, valid for minutes; `None` if there is none.
pub async fn recording(toolbox: &Toolbox, id: &str, deadline: Instant) -> Result<Option<String>, OutboundError> {
    if !is_id(id) {
        return Ok(None);
    }
    let account = Account::of(&toolbox.outbound).await?;
    let ask = account.get(format!("/call/{id}/mono-recording")).on(Lane::Reads);
    let answer = toolbox.outbound.send(NAME, ORIGIN, &ask, &[302, 404], deadline).await?;
    let is_link = |url: &String| url.starts_with("https://") && url.len() <= MAX_URL;
    Ok(answer.location.filter(|url| answer.status == 302 && is_link(url)))
}

/// A call that is over. `None` while it is not.
fn facts(call: &Value) -> Option<Facts> {
    if call["status"] != "ended" {
        return None;
    }
    let started = text(call, "/startedAt").and_then(time);
    let ended = text(call, "/endedAt").or_else(|| text(call, "/updatedAt")).and_then(time)?;
    let turns = turns(call);
    let reason = text(call, "/endedReason").and_then(|reason| cleaned(reason, MAX_REASON)).unwrap_or_default();
    let data = &call["analysis"]["structuredData"];
    let said = |name: &str, most: usize| data[name].as_str().and_then(|text| cleaned(text, most));
    let was_heard = turns.iter().any(|turn| turn.speaker == other_side(call));
    let outcome = outcome(&reason, started.is_some(), data["outcome"].as_str(), was_heard);
    let answered = data["answered"].as_array().into_iter().flatten();
    Some(Facts {
        started,
        ended,
        why: why(&reason),
        verdict: verdict(&reason, started.is_some()),
        outcome,
        summary: text(call, "/analysis/summary").and_then(|summary| cleaned(summary, MAX_SUMMARY)),
        is_success: match text(call, "/analysis/successEvaluation") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        },
        answered: answered.filter_map(|number| number.as_str()?.parse().ok()).collect(),
        callback: said("callback_number", MAX_CALLBACK),
        has_recording: text(call, "/artifact/recordingUrl").is_some(),
        // The analysis follows some seconds after the end.
        is_whole: started.is_none() || call["analysis"].as_object().is_some_and(|analysis| !analysis.is_empty()),
        reason,
        turns,
    })
}

/// Who the person on the phone is. In calls that we make, the assistant is the caller.
fn other_side(call: &Value) -> Speaker {
    if call["type"] == "outboundPhoneCall" { Speaker::Assistant } else { Speaker::Caller }
}

fn turns(call: &Value) -> Vec<Turn> {
    let other = other_side(call);
    let ours = if other == Speaker::Caller { Speaker::Assistant } else { Speaker::Caller };
    let turn = |message: &Value| {
        let speaker = match message["role"].as_str()? {
            "bot" | "assistant" => ours,
            "user" => other,
            _ => return None,
        };
        Some(Turn { speaker, text: cleaned(message["message"].as_str()?, MAX_SAID)? })
    };
    let most = usize::try_from(MAX_TURNS).unwrap_or(usize::MAX);
    let messages = call.pointer("/artifact/messages").and_then(Value::as_array);
    messages.into_iter().flatten().filter_map(turn).take(most).collect()
}

/// Vapi has more than 600 words for the end of a call, and new ones come: they are told apart by what they contain.
fn why(reason: &str) -> Ended {
    let has = |part: &str| reason.contains(part);
    match reason {
        "exceeded-max-duration" => Ended::TimeLimit,
        "silence-timed-out" => Ended::Silence,
        "assistant-forwarded-call" | "assistant-request-returned-forwarding-phone-number" => Ended::Transferred,
        _ if has("hook-executed-transfer") || has("-completed-call") || reason == "vonage-completed" => {
            Ended::Transferred
        }
        _ if is_failed_transfer(reason) => Ended::TransferFailed,
        _ if has("did-not-receive-customer-audio") => Ended::Silence,
        _ if reason.starts_with("assistant-ended-call") || reason == "assistant-said-end-call-phrase" => {
            Ended::AssistantHungUp
        }
        _ if is_fault(reason) => Ended::Failed,
        _ => Ended::CallerHungUp,
    }
}

/// The call was not passed on: whoever owns the number that it was to go to decides that, so it is nobody's fault. Ask only about
/// words that do not say that it was.
fn is_failed_transfer(reason: &str) -> bool {
    reason.contains("transfer") || reason.contains("forwarding")
}

fn is_fault(reason: &str) -> bool {
    const BEGINNINGS: [&str; 6] = [
        "pipeline-",
        "worker-shutdown",
        "assistant-not-",
        "assistant-join-",
        "phone-call-provider-",
        "assistant-request-",
    ];
    let is_usual = reason.contains("did-not-receive-customer-audio") || is_failed_transfer(reason);
    !is_usual && (reason.contains("error") || BEGINNINGS.iter().any(|beginning| reason.starts_with(beginning)))
}

/// Nobody was at the phone.
fn is_unanswered(reason: &str) -> bool {
    matches!(reason, "customer-did-not-answer" | "customer-busy")
        || reason.contains("sip-408")
        || reason.contains("sip-480")
}

fn verdict(reason: &str, was_answered: bool) -> Verdict {
    match reason {
        "manually-canceled" | "call-deleted" | "scheduled-call-deleted" => Verdict::Cancelled,
        "vonage-rejected" | "twilio-reported-customer-misdialed" | "voicemail" => Verdict::Usual,
        _ if is_unanswered(reason) => Verdict::Usual,
        "twilio-failed-to-connect-call"
        | "vonage-failed-to-connect-call"
        | "call.start.error-vapi-number-international"
        | "call.start.error-vapi-number-outbound-daily-limit" => Verdict::Unreachable,
        _ if reason.contains("sip-outbound-call-failed-to-connect") => Verdict::Unreachable,
        _ if is_fault(reason) => Verdict::Provider,
        _ if was_answered => Verdict::Usual,
        _ => Verdict::Unreachable,
    }
}

/// What came of a call: if nobody was connected, by its end; else as the analysis says, or if somebody spoke.
fn outcome(reason: &str, was_answered: bool, analysed: Option<&str>, was_heard: bool) -> Option<&'static str> {
    match reason {
        // It always has a message to leave.
        "voicemail" => return Some("voicemail_left"),
        "vonage-rejected" => return Some("refused"),
        "twilio-reported-customer-misdialed" => return Some("wrong_number"),
        _ if is_unanswered(reason) => return Some("no_answer"),
        _ if !was_answered => return None,
        _ => {}
    }
    let analysed = OUTCOMES.into_iter().find(|word| Some(*word) == analysed);
    analysed.or_else(|| was_heard.then_some("reached_person"))
}

#[cfg(test)]
mod tests {
    use platform::net::FetchPolicy;

    use super::*;
    use crate::call::{self, Answer};
    use crate::config;

    const NOON: Timestamp = Timestamp::from_secs(1_795_176_000); // 2026-11-20T12:00:00Z, a Friday

    fn call(reason: &str, started: bool, members: Value) -> Value {
        let mut call = json!({
            "id": "019a9046", "type": "outboundPhoneCall", "status": "ended", "endedReason": reason,
            "endedAt": "2026-11-20T12:01:30.500Z", "updatedAt": "2026-11-20T12:02:00Z",
        });
        if started {
            call["startedAt"] = json!("2026-11-20T12:00:00.000Z");
        }
        for (name, value) in members.as_object().unwrap() {
            call[name] = value.clone();
        }
        call
    }

    #[test]
    fn ends_are_told_apart_by_what_their_words_contain() {
        use Verdict::{Cancelled, Provider, Unreachable, Usual};
        let analysed = |word: &str| json!({"analysis": {"structuredData": {"outcome": word}}});
        let none = || json!({});
        for (reason, started, members, why, verdict, outcome) in [
            (
                "customer-ended-call",
                true,
                analysed("reached_person"),
                Ended::CallerHungUp,
                Usual,
                Some("reached_person"),
            ),
            ("customer-ended-call", true, analysed("hacked"), Ended::CallerHungUp, Usual, None),
            ("assistant-ended-call-with-hangup-task", true, none(), Ended::AssistantHungUp, Usual, None),
            ("assistant-forwarded-call", true, none(), Ended::Transferred, Usual, None),
            ("call.in-progress.twilio-completed-call", true, none(), Ended::Transferred, Usual, None),
            ("call.forwarding.no-answer", true, none(), Ended::TransferFailed, Usual, None),
            ("call.in-progress.error-transfer-failed", true, none(), Ended::TransferFailed, Usual, None),
            ("call.in-progress.error-warm-transfer-max-duration", true, none(), Ended::TransferFailed, Usual, None),
            ("assistant-request-returned-forwarding-phone-number", true, none(), Ended::Transferred, Usual, None),
            ("exceeded-max-duration", true, analysed("refused"), Ended::TimeLimit, Usual, Some("refused")),
            ("silence-timed-out", true, none(), Ended::Silence, Usual, None),
            (
                "call.in-progress.error-assistant-did-not-receive-customer-audio",
                true,
                none(),
                Ended::Silence,
                Usual,
                None,
            ),
            ("voicemail", true, none(), Ended::CallerHungUp, Usual, Some("voicemail_left")),
            ("customer-did-not-answer", false, none(), Ended::CallerHungUp, Usual, Some("no_answer")),
            ("customer-busy", false, none(), Ended::CallerHungUp, Usual, Some("no_answer")),
            (
                "call.in-progress.error-providerfault-outbound-sip-480-temporarily-unavailable",
                false,
                none(),
                Ended::Failed,
                Usual,
                Some("no_answer"),
            ),
            ("vonage-rejected", false, none(), Ended::CallerHungUp, Usual, Some("refused")),
            ("twilio-reported-customer-misdialed", false, none(), Ended::CallerHungUp, Usual, Some("wrong_number")),
            ("manually-canceled", false, none(), Ended::CallerHungUp, Cancelled, None),
            ("twilio-failed-to-connect-call", false, none(), Ended::CallerHungUp, Unreachable, None),
            ("call.start.error-vapi-number-international", false, none(), Ended::Failed, Unreachable, None),
            ("call.start.error-subscription-frozen", false, none(), Ended::Failed, Provider, None),
            ("pipeline-no-available-llm-model", true, none(), Ended::Failed, Provider, None),
            ("worker-shutdown", true, none(), Ended::Failed, Provider, None),
            // Words that are not known yet.
            ("brand-new-reason", true, none(), Ended::CallerHungUp, Usual, None),
            ("brand-new-reason", false, none(), Ended::CallerHungUp, Unreachable, None),
        ] {
            let facts = facts(&call(reason, started, members)).unwrap();
            assert_eq!((facts.why, facts.verdict, facts.outcome), (why, verdict, outcome), "{reason} {started}");
        }
    }

    #[test]
    fn what_was_said_is_cleaned_and_belongs_to_its_side() {
        let message = |role: &str, text: &str| json!({"role": role, "message": text, "time": 1, "endTime": 2});
        let spoken = json!({
            "artifact": {"recordingUrl": "https://x", "messages": [
                message("system", "secret rules"), message("bot", "Hello\u{202e} there"), message("user", " Hi\n you "),
                message("user", ""), message("tool_calls", "x"), json!("nonsense"),
            ]},
            "analysis": {"summary": "They\u{200b} talked", "successEvaluation": "true",
                "structuredData": {"answered": ["1", "x", 3], "callback_number": "+1"}},
        });
        let mut call = call("customer-ended-call", true, spoken);
        let of_outbound = facts(&call).unwrap();
        let turn = |speaker: Speaker, text: &str| Turn { speaker, text: text.to_owned() };
        assert_eq!(of_outbound.turns, [turn(Speaker::Caller, "Hello there"), turn(Speaker::Assistant, "Hi you")]);
        assert_eq!((of_outbound.summary.as_deref(), of_outbound.is_success), (Some("They talked"), Some(true)));
        assert_eq!((of_outbound.outcome, of_outbound.answered.clone()), (Some("reached_person"), vec![1]));
        assert_eq!(of_outbound.length(), Some(Duration::from_millis(90_500)));
        assert!(of_outbound.is_whole && of_outbound.has_recording);
        call["type"] = json!("inboundPhoneCall");
        let of_inbound = facts(&call).unwrap();
        assert_eq!(of_inbound.turns, [turn(Speaker::Assistant, "Hello there"), turn(Speaker::Caller, "Hi you")]);
        call["analysis"] = json!({});
        assert!(!facts(&call).unwrap().is_whole, "the analysis is not there yet");
        for open in ["queued", "ringing", "in-progress", "forwarding", "not-found"] {
            call["status"] = json!(open);
            assert_eq!(facts(&call), None, "{open}");
        }
        assert_eq!(facts(&json!({"status": "ended"})), None, "without a time");
    }

    #[test]
    fn an_assistant_has_what_the_settings_allow() {
        let body = json!({
            "prompt": "You answer for Rossi.", "first_message": "Rossi, hello.", "language": "de", "voice_id": "Clara",
            "allowed_tools": ["transfer_call", "end_call"], "transfer_number": "+12125550123", "max_minutes": 7,
            "after_hours": "transfer", "after_hours_message": "We are closed.",
            "business_hours": {"timezone": "UTC", "windows": [{"days": ["fri"], "start": "00:00", "end": "24:00"}]},
        });
        let config = config::read(body.as_object().unwrap(), &FetchPolicy::default()).unwrap();
        let state = |now: Timestamp, credit: u32| match call::ring(Some(&config), now, credit, false) {
            Answer::Answered { state, .. } => state,
            other => panic!("{other:?}"),
        };
        let open = answering(&config, &state(NOON, 3), None);
        assert_eq!(open["firstMessage"], "Rossi, hello. Dieser Anruf wird aufgezeichnet.");
        assert_eq!(open["maxDurationSeconds"], 180);
        assert_eq!((&open["voice"]["voiceId"], &open["transcriber"]["language"]), (&json!("Clara"), &json!("de")));
        let tools = open["model"]["tools"].as_array().unwrap();
        assert_eq!((tools.len(), &tools[0]["type"]), (2, &json!("endCall")));
        let destination = &tools[1]["destinations"][0];
        assert_eq!(destination["number"], "+12125550123");
        assert_ne!(destination["message"], "We are closed.");
        assert!(open.get("server").is_none());
        let later = NOON.plus(Duration::from_secs(24 * 3600));
        let closed = answering(&config, &state(later, 9), None);
        assert_eq!(
            closed["model"]["tools"],
            json!([{"type": "endCall"}]),
            "nobody is passed on after hours by a model"
        );
        let destination = json!({"type": "number", "number": "+12125550123", "message": "We are closed."});
        assert_eq!(passed_on(&config, config.transfer_number.as_ref().unwrap()), json!({"destination": destination}));
    }

    /// Otherwise Vapi fills them in.
    #[test]
    fn no_text_of_an_agent_has_variables() {
        let id = RequestId::from_bytes([1; 16]);
        let (to, first, prompt, message) =
            (Number::fictitious(7), "Hi {{first}}.", "Ask {{prompt}}.", "{{m}}".repeat(300));
        let message = message.as_str();
        let placing =
            Placing { request_id: id, index: 0, line: "line", to: &to, minutes: 1, first, prompt, message, points: 0 };
        let assistant = &placed(&placing, None)["assistant"];
        assert_eq!(assistant["firstMessage"], "Hi { {first} }.");
        assert_eq!(assistant["model"]["messages"][0]["content"], "Ask { {prompt} }.");
        let left = assistant["voicemailMessage"].as_str().unwrap();
        assert!(left.starts_with("{ {m} }{ {m} }") && left.chars().count() == 1_000, "{left}");
    }

    #[test]
    fn calls_are_ended_only_at_hosts_of_vapi() {
        let control = "https://phone-call-websocket.aws-us-west-2-backend-production1.vapi.ai/019a/control";
        let (origin, path) = of_vapi(control).unwrap();
        assert_eq!((format!("{origin}{path}").as_str(), path), (control, "/019a/control"));
        for url in [
            "http://a.vapi.ai/x",
            "https://vapi.ai.evil.example/x",
            "https://evilvapi.ai/x",
            "https://a@b.vapi.ai/x",
            "https://evil.example/.vapi.ai/x",
            "https://a.vapi.ai",
            "",
        ] {
            assert_eq!(of_vapi(url), None, "{url}");
        }
    }

    #[test]
    fn a_name_is_read_only_in_our_own_spelling() {
        let id = RequestId::bought_with("quote", &[b"q"]);
        let name = name_of(id, 4);
        assert!(name.len() <= 40, "{name}");
        assert_eq!(request_of(&name), Some((id, 4)));
        for name in [id.to_string(), format!("{id}.04"), format!("{id}.+4"), format!("{id}."), String::new()] {
            assert_eq!(request_of(&name), None, "{name}");
        }
    }
}
