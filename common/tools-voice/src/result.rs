//! The result of a bought call, and what is charged: the same for numbers here and outside.

use std::time::Duration;

use serde_json::{Value, json};
use tools::{Output, Source, Task, Unavailable};
use tools_sms::number::Number;
use tools_sms::phone::Phone;

use crate::call::started_seconds;
use crate::plan::{MAX_POINTS, Price};
use crate::script::Found;

/// What can come of a number, the best first.
const OUTCOMES: [&str; 6] =
    ["reached_person", "voicemail_left", "phone_menu_dead_end", "wrong_number", "refused", "no_answer"];

/// What became of the numbers of a job.
pub(crate) struct Told {
    /// `completed`, `no_answer` or `failed`.
    pub status: &'static str,
    pub legs: Vec<Leg>,
    /// The number and the transcript of each call in which something was said.
    pub said: Vec<(String, String)>,
    pub summary: Option<String>,
    pub is_success: bool,
    pub found: Found,
    pub callback_number: Option<String>,
}

/// What became of one number.
pub(crate) struct Leg {
    pub to: Number,
    /// A word of [`OUTCOMES`]; `None`: nobody was called, or nobody knows.
    pub outcome: Option<String>,
    pub ended_reason: String,
    pub length: Duration,
    /// Whether its minutes are charged.
    pub is_charged: bool,
    pub recording_url: Option<String>,
}

/// The best outcome of all numbers.
pub(crate) fn best(legs: &[Leg]) -> Option<&'static str> {
    OUTCOMES.into_iter().find(|outcome| legs.iter().any(|leg| leg.outcome.as_deref() == Some(*outcome)))
}

/// The result, and what is charged: the begun minutes of the charged numbers, and the calling number if this job bought it.
pub(crate) fn output(task: &Task, price: &Price, phone: &Phone, told: &Told, source: Source) -> Output {
    let is_bought = phone.bought_by == task.request_id;
    let charged: Vec<Duration> = told.legs.iter().filter(|leg| leg.is_charged).map(|leg| leg.length).collect();
    let used = price.used(&charged, is_bought);
    let mut result = json!({
        "status": told.status,
        "ended_reason": told.legs.last().map(|leg| &leg.ended_reason),
        "duration_seconds": told.legs.iter().map(|leg| started_seconds(leg.length)).sum::<u64>(),
        "transcript": transcript(&told.said),
        "summary": told.summary,
        "success_evaluation": if told.is_success { "pass" } else { "fail" },
        "structured_data": structured_data(&told.found, told.callback_number.as_deref()),
        "outcome": best(&told.legs),
        "recording_url": told.legs.iter().rev().find_map(|leg| leg.recording_url.as_ref()),
        "from": phone.number,
        "legs": told.legs.iter().map(detail).collect::<Vec<_>>(),
        "cost": used.to_string(),
        "untrusted": true,
    });
    if let Some(left) = task.price.checked_sub(used).filter(|left| !left.is_zero()) {
        result["credit_issued"] = json!(left.to_string());
    }
    if is_bought {
        result["registration"] = json!({"phone_number": phone.number, "fee": price.fee.to_string()});
    }
    if told.legs.iter().any(|leg| leg.ended_reason == Unavailable::FrozenByOwner.as_str()) {
        result["warning"] = json!(Unavailable::FrozenByOwner.as_str());
    }
    Output::new(result, source).charging(used)
}

/// The schema of `structured_data`: the same for every call, so that a caller can check it.
pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "description": "What was found out, in the same form for every call",
        "properties": {
            "points": {
                "type": "array",
                "description": "The points of the objective, in their order",
                "maxItems": MAX_POINTS,
                "items": {
                    "type": "object",
                    "properties": {
                        "point": {"type": "string"},
                        "answered": {"type": "boolean", "description": "In one of the calls at least"},
                    },
                    "required": ["point", "answered"],
                    "additionalProperties": false,
                },
            },
            "message_left": {"type": "boolean", "description": "Somebody, or a machine, took a message"},
            "callback_number": {
                "type": "string",
                "description": "Where the other side wants to be called back, in its own words; untrusted",
            },
        },
        "required": ["points", "message_left"],
        "additionalProperties": false,
    })
}

fn structured_data(found: &Found, callback_number: Option<&str>) -> Value {
    let points = found.points.iter().map(|(point, answered)| json!({"point": point, "answered": answered}));
    let mut data = json!({"points": points.collect::<Vec<Value>>(), "message_left": found.message_left});
    if let Some(number) = callback_number {
        data["callback_number"] = json!(number);
    }
    data
}

fn detail(leg: &Leg) -> Value {
    json!({
        "to": leg.to,
        "outcome": leg.outcome,
        "ended_reason": leg.ended_reason,
        "duration_seconds": started_seconds(leg.length),
        "recording_url": leg.recording_url,
    })
}

/// What was said; with the number before each call if there are several. `None` if nothing was said.
fn transcript(said: &[(String, String)]) -> Option<String> {
    match said {
        [] => None,
        [(_, only)] => Some(only.clone()),
        several => {
            Some(several.iter().map(|(to, text)| format!("Call to {to}\n{text}")).collect::<Vec<_>>().join("\n\n"))
        }
    }
}
