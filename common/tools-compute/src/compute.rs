//! The catalog's entry: a goal.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::RequestId;
use base::input::{Field, FieldError, Format, Kind};
use base::money::Usdc;
use http::StatusCode;
use platform::config::PLATFORM_FEE;
use platform::http::ApiError;
use platform::net::FetchPolicy;
use serde_json::{Map, Value, json};
use tools::spec::{Price, ToolSpec};
use tools::{Runner, run as runs};

use crate::{open, quote, run};

/// The least budget.
pub const LEAST: Usdc = Usdc::from_micro(1_000_000);
/// The most that a goal may spend, without the fee.
pub const MOST: Usdc = Usdc::from_micro(1_000_000_000);
/// The least price: the least budget, and the usual fee of 20 % on it.
const USUAL: Usdc = Usdc::from_micro(1_200_000);
/// No goal costs more: the largest budget, and a fee of 50 %.
const DEAREST: Usdc = Usdc::from_micro(1_500_000_000);
/// A goal that names no deadline has so long.
pub const USUAL_LIFE: Duration = Duration::from_secs(24 * 3600);
pub const LONGEST_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Largest `params`, in bytes of JSON.
const MAX_PARAMS: usize = 16 * 1024;
/// How long a goal can be read after its end.
pub const KEPT: Duration = Duration::from_secs(60 * 24 * 3600);

static TIME: Format = Format {
    name: Some("date-time"),
    pattern: None,
    matches: |text| time(text).is_some(),
    message: "must be a time such as 2026-12-01T12:00:00Z",
};

/// Reads a time with its offset.
pub fn time(text: &str) -> Option<Timestamp> {
    let time = chrono::DateTime::parse_from_rfc3339(text).ok()?;
    Some(Timestamp::from_millis(time.timestamp_millis()))
}

const APPROVALS: &[Field] = &[
    Field::optional(
        "spend_over_usdc",
        Kind::Amount { min: Usdc::ZERO, max: MOST },
        "Calls that may cost more wait for your answer",
    ),
    Field::optional(
        "tools",
        Kind::List { of: &Kind::Text { min: 1, max: 64, format: None }, max: 50 },
        "Calls of these tools wait for your answer",
    ),
];

pub static SPEC: ToolSpec = ToolSpec {
    name: "compute",
    title: "Goal",
    summary: "Reaches an objective in several steps: plans, calls this service's tools within your budget, asks you when it must, and gives the rest back",
    group: "compute",
    paths: &["/v1/compute"],
    price: Price::Asked { usual: USUAL, most: DEAREST },
    expensive: true,
    keeps_record: true,
    buys: true,
    fee: Some(PLATFORM_FEE),
    category: "infrastructure",
    deadline: runs::DEADLINE,
    retention: KEPT,
    input: &[
        Field::required(
            "objective",
            Kind::Text { min: 10, max: 10_000, format: None },
            "What to reach, in English, step by step. Values are written out, and the words of messages are in quotation marks",
        ),
        Field::optional(
            "params",
            Kind::Object { fields: &[], open: true },
            "Values by the names of the tools' arguments, used where the objective names none. At most 16 KiB",
        ),
        Field::optional(
            "budget_usdc",
            Kind::Amount { min: Usdc::ZERO, max: MOST },
            "The most that the calls may cost together, at least 1.00. Default: what the plan is expected to cost",
        ),
        Field::optional(
            "deadline",
            Kind::Text { min: 1, max: 40, format: Some(&TIME) },
            "Nothing new is called after it. Default: in 24 hours; at most in 30 days",
        ),
        Field::optional("soul_slug", Kind::Text { min: 1, max: 100, format: None }, "Not supported here yet"),
        Field::optional("soul_service_slug", Kind::Text { min: 1, max: 100, format: None }, "Not supported here yet"),
        Field::optional("schedule", Kind::Object { fields: &[], open: true }, "Not supported here yet"),
        Field::optional(
            "approvals",
            Kind::Object { fields: APPROVALS, open: false },
            "Which calls wait for your answer (respond) before they are bought",
        ),
    ],
    judged: &["objective", "params"],
    refusals: &[(400, "budget_too_low"), (400, "needs_planner"), (409, "too_many_open_goals")],
    claims: |toolbox, claiming| Box::pin(open::claim(toolbox, claiming)),
    refuse,
    check,
    accepted,
    example: || json!({"objective": "Decode the VIN 1HGCM82633A004352 and verify the email address ada@example.com"}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run: run::run };

/// Members that would spend money in a way that is not built yet.
fn refuse(body: &Map<String, Value>) -> Option<ApiError> {
    let given = |name: &str| body.get(name).is_some_and(|value| !value.is_null());
    if let Some(approvals) = body.get("approvals").and_then(Value::as_object) {
        let unknown = approvals.keys().find(|name| !["spend_over_usdc", "tools"].contains(&name.as_str()));
        if let Some(name) = unknown {
            let name = &name[..name.floor_char_boundary(64)];
            return Some(ApiError::field(
                &format!("approvals.{name}"),
                "is not known; approvals has spend_over_usdc and tools",
            ));
        }
    }
    let unbuilt = ["schedule", "soul_slug", "soul_service_slug"].into_iter().find(|name| given(name))?;
    Some(ApiError::field(unbuilt, "is not supported by this service yet: leave it out"))
}

fn check(input: &Map<String, Value>, _: &FetchPolicy) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let params = input.get("params").map_or(0, |params| params.to_string().len());
    if params > MAX_PARAMS {
        wrong.push(FieldError::new("params", format!("has {params} bytes of JSON, more than {MAX_PARAMS}")));
    }
    wrong
}

/// The members of a 202. Its status is that of the goal: clients of other services wait for no other.
fn accepted(
    _: &str,
    request_id: RequestId,
    created: Timestamp,
    input: &Map<String, Value>,
    locked: &Map<String, Value>,
) -> Value {
    let budget = quote::Locked::read(locked).map(|locked| locked.budget);
    let deadline = quote::deadline(input, created);
    json!({
        "goal_id": request_id.goal(),
        "status": "active",
        "tool": SPEC.name,
        "message": format!("The goal goes on by itself: read it at /v1/compute/{}", request_id.goal()),
        "goal": {
            "objective": input.get("objective"),
            "budget_usdc": budget.map(|budget| budget.to_number()),
            "deadline": deadline.to_string(),
        },
    })
}

fn output() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let amount = |about: &str| json!({"type": "string", "description": about});
    json!({
        "type": "object",
        "required": ["goal_id", "status", "end_reason", "spent_usdc", "tasks"],
        "properties": {
            "goal_id": text("Read it at /v1/compute/{goal_id}"),
            "status": text("completed, failed or cancelled"),
            "end_reason": text("completed, cancelled, task_failed, no_progress, budget_exhausted, deadline_exceeded, …"),
            "spent_usdc": amount("What the calls cost, without the fee"),
            "fee_usdc": amount("The platform's fee on it"),
            "tasks": {"type": "array", "items": {"type": "object", "properties": {
                "id": {"type": "string"}, "tool": {"type": ["string", "null"]}, "description": {"type": "string"},
                "status": {"type": "string"}, "request_id": {"type": ["string", "null"]}, "actual_usdc": {"type": ["string", "null"]},
            }}},
            "results": {"type": "object", "description": "The results of the last tasks of the plan, by task id"},
        },
    })
}

/// Refuses a budget that is too low.
///
/// # Errors
/// 400 `budget_too_low`.
pub fn budget_too_low(least: Usdc, why: &str) -> ApiError {
    ApiError::Tool {
        status: StatusCode::BAD_REQUEST,
        code: "budget_too_low",
        message: format!("budget_usdc must be at least {least}: {why}"),
    }
}
