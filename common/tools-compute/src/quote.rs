//! The price: what the calls may cost together, and the platform's fee on it. What is not spent comes back, with its fee.
//!
//! The plan is made by rules, from the objective and the params alone. So a quote asks no model and fetches nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::clock::Timestamp;
use base::input::FieldError;
use base::money::Usdc;
use goalplan::{Kind, Objective, Part, Plan, Source};
use http::StatusCode;
use platform::http::ApiError;
use platform::store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tools::Toolbox;
use tools::quoting::{AskedPrice, QuoteRequest, Quoter};
use tools::spec::{Price, ToolSpec};

use crate::compute::{LEAST, LONGEST_LIFE, MOST, SPEC, USUAL_LIFE, budget_too_low, time};
use crate::goal::{Approvals, MAX_TASKS};

/// The member that says how long a call may take, and what it is without.
const MINUTES: &str = "max_duration_minutes";
const USUAL_MINUTES: u64 = 10;
/// Longest part of the objective that the quote shows, in bytes.
const PREVIEW: usize = 200;

pub static QUOTER: Quoter = Quoter {
    spec: &SPEC,
    quote: |toolbox, request| Box::pin(quote(toolbox, request)),
    check: |_, _, _, _, _| Box::pin(async { Ok(()) }),
    begins: |_| false,
};

/// What a quote fixes for the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locked {
    /// What the calls may cost together, in micro-USDC.
    pub budget: Usdc,
    /// The platform's fee on what is spent, in per cent.
    pub fee: u8,
}

impl Locked {
    pub fn read(locked: &Map<String, Value>) -> Option<Locked> {
        serde_json::from_value(Value::Object(locked.clone())).ok()
    }

    /// What is charged for so much spent: with the fee, rounded up to a micro-USDC.
    pub fn with_fee(&self, spent: Usdc) -> Usdc {
        let fee = (u128::from(spent.micro()) * u128::from(self.fee)).div_ceil(100);
        Usdc::from_micro(spent.micro().saturating_add(u64::try_from(fee).unwrap_or(u64::MAX)))
    }
}

/// When the goal takes nothing new any more.
pub fn deadline(input: &Map<String, Value>, created: Timestamp) -> Timestamp {
    let given = input.get("deadline").and_then(Value::as_str).and_then(time);
    given.map_or(created.plus(USUAL_LIFE), |given| given.min(created.plus(LONGEST_LIFE)))
}

/// The plan of a body, with the tools that it may use.
///
/// # Errors
/// 400 `needs_planner`: what the rules do not understand, and the tools that come nearest.
pub async fn plan(
    toolbox: &Arc<Toolbox>,
    input: &Map<String, Value>,
) -> Result<(Plan, Vec<&'static ToolSpec>), ApiError> {
    let buyer = toolbox.buyer.as_ref().ok_or_else(|| StoreError::new("no goal is driven here"))?;
    let usable = buyer.tools().await;
    let text = input.get("objective").and_then(Value::as_str).unwrap_or_default().to_owned();
    let params = input.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
    let (tools, reading) = (usable.clone(), text);
    // Reading a long objective takes a while.
    let planning = tokio::task::spawn_blocking(move || {
        let schemas: Vec<_> = tools.iter().map(|tool| (tool.input_schema(), tool.output_schema())).collect();
        let known = tools.iter().zip(&schemas).map(|(tool, (input, output))| goalplan::Tool {
            name: tool.name,
            title: tool.title,
            about: tool.summary,
            also: tools::words::said(tool.name),
            input,
            output,
            acts: acts(tool),
        });
        let known: Vec<_> = known.collect();
        goalplan::plan(&Objective { text: &reading, params: &params }, &known)
    });
    let plan = planning.await.map_err(StoreError::new)?;
    let plan = plan.map_err(|refusal| ApiError::Tool {
        status: StatusCode::BAD_REQUEST,
        code: "needs_planner",
        message: format!(
            "not understood: {:?}: {}{}",
            cut(&refusal.clause, 200),
            cut(&refusal.why, 500),
            match refusal.nearest.is_empty() {
                true => String::new(),
                false => format!(". Tools that come near: {}", refusal.nearest.join(", ")),
            }
        ),
    })?;
    Ok((plan, usable))
}

/// Whether the tool sends, publishes, or changes something outside.
fn acts(tool: &ToolSpec) -> bool {
    tool.keeps_record || !tool.judged.is_empty()
}

/// What one task of a plan is expected to cost: the price of its input, as far as that is known.
pub fn expected(plan: &Plan, at: usize, usable: &[&'static ToolSpec], params: &Map<String, Value>) -> Usdc {
    let Some(task) = plan.tasks.get(at).filter(|task| task.kind == Kind::ToolCall) else { return Usdc::ZERO };
    let Some(tool) = usable.iter().find(|tool| Some(tool.name) == task.tool.as_deref()) else { return Usdc::ZERO };
    let known = task.input.iter().filter_map(|(name, source)| match source {
        Source::Value(value) => Some((name.clone(), value.clone())),
        Source::Param(param) => Some((name.clone(), params.get(param)?.clone())),
        _ => None,
    });
    let known: Map<String, Value> = known.collect();
    let each = tool.price.of(&known);
    match tool.price {
        Price::Asked { .. } => Usdc::from_micro(each.micro().saturating_mul(units(tool, &known))),
        Price::Fixed(_) | Price::Of { .. } | Price::Own(_) => each,
    }
}

/// How often an asked price counts the usual one, as far as that follows from the input: once for each recipient, and for each minute that a
/// call may take.
fn units(tool: &ToolSpec, input: &Map<String, Value>) -> u64 {
    let to = input.iter().filter(|(name, _)| name.starts_with("to_") || name.starts_with("target_"));
    let to = to.filter_map(|(_, value)| value.as_array()).map(Vec::len).max().unwrap_or(1).max(1);
    let recipients = u64::try_from(to).unwrap_or(u64::MAX);
    let usual = tool.input.iter().any(|field| field.name == MINUTES).then_some(USUAL_MINUTES);
    let minutes = input.get(MINUTES).and_then(Value::as_u64).or(usual).unwrap_or(1);
    recipients.saturating_mul(minutes)
}

/// What the plan's tools may sell along, once each: a first phone number.
fn along(plan: &Plan, usable: &[&'static ToolSpec]) -> Usdc {
    let named = |tool: &&&'static ToolSpec| plan.tasks.iter().any(|task| task.tool.as_deref() == Some(tool.name));
    let other = usable.iter().filter(named).filter_map(|tool| tool.may_include).next();
    other.map_or(Usdc::ZERO, |other| {
        usable.iter().find(|tool| tool.name == other.name).map_or(other.price.usual(), |tool| tool.price.usual())
    })
}

async fn quote(toolbox: Arc<Toolbox>, request: QuoteRequest) -> Result<AskedPrice, ApiError> {
    let input = &request.input;
    let now = toolbox.clock.now();
    if let Some(deadline) = input.get("deadline").and_then(Value::as_str).and_then(time) {
        let wrong = match deadline {
            _ if deadline <= now => Some("has passed"),
            _ if deadline > now.plus(LONGEST_LIFE) => Some("must be within 30 days"),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(ApiError::InvalidRequest(vec![FieldError::new("deadline", wrong)]));
        }
    }
    let given = input.get("budget_usdc").and_then(Value::as_str).and_then(|text| Usdc::parse(text).ok());
    if given.is_some_and(|budget| budget < LEAST) {
        return Err(budget_too_low(LEAST, "a goal has at least this"));
    }
    let params = input.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
    let (plan, usable) = plan(&toolbox, input).await?;
    if plan.tasks.len() > MAX_TASKS {
        let what = format!("would take {} tasks; a goal has at most {MAX_TASKS}", plan.tasks.len());
        return Err(ApiError::field("objective", what));
    }
    check_approvals(input, &usable)?;
    let costs: Vec<Usdc> = (0..plan.tasks.len()).map(|at| expected(&plan, at, &usable, &params)).collect();
    let estimate = costs.iter().try_fold(Usdc::ZERO, |sum, cost| sum.checked_add(*cost)).unwrap_or(MOST);
    if given.is_some_and(|budget| budget < estimate) {
        return Err(budget_too_low(estimate, "the plan is expected to cost so much"));
    }
    if estimate > MOST {
        return Err(ApiError::field("objective", format!("would cost {estimate} USDC, more than {MOST}")));
    }
    // Who has no phone number yet gets one with its first text. What is not needed comes back.
    let most = estimate.checked_add(along(&plan, &usable)).unwrap_or(MOST);
    let budget = given.unwrap_or_else(|| most.max(LEAST).min(MOST));
    let locked = Locked { budget, fee: toolbox.config.prices.platform_fee.percent() };
    let price = locked.with_fee(budget);
    Ok(AskedPrice { price, context: context(input, &plan, &costs, &locked, now), locked: as_map(json!(locked)) })
}

/// Refuses approvals of tools that no goal calls here: a misspelt name would hold nothing.
fn check_approvals(input: &Map<String, Value>, usable: &[&'static ToolSpec]) -> Result<(), ApiError> {
    let unknown = |(at, name): (usize, String)| {
        let is_known = usable.iter().any(|tool| tool.name == name);
        (!is_known).then(|| {
            FieldError::new(format!("approvals.tools[{at}]"), "is not the name of a tool that a goal can call here")
        })
    };
    let wrong: Vec<FieldError> = Approvals::read(input).tools.into_iter().enumerate().filter_map(unknown).collect();
    if wrong.is_empty() { Ok(()) } else { Err(ApiError::InvalidRequest(wrong)) }
}

fn context(
    input: &Map<String, Value>,
    plan: &Plan,
    costs: &[Usdc],
    locked: &Locked,
    now: Timestamp,
) -> Map<String, Value> {
    let price = locked.with_fee(locked.budget);
    let fee = price.checked_sub(locked.budget).unwrap_or_default();
    let mut breakdown: BTreeMap<String, Usdc> = BTreeMap::new();
    for (task, cost) in plan.tasks.iter().zip(costs) {
        if let Some(tool) = &task.tool {
            let sum = breakdown.entry(tool.clone()).or_default();
            *sum = sum.checked_add(*cost).unwrap_or(*sum);
        }
    }
    let mut breakdown: Map<String, Value> =
        breakdown.into_iter().map(|(tool, cost)| (tool, json!(cost.to_string()))).collect();
    breakdown.insert("orchestrator".to_owned(), json!(Usdc::ZERO.to_string()));
    breakdown.insert("platform_fee".to_owned(), json!(fee.to_string()));
    let tasks = plan.tasks.iter().zip(costs).map(|(task, cost)| {
        json!({
            "tool": task.tool, "description": task.description, "reason": task.reason, "phase": task.phase,
            "input": task.input.iter().map(|(name, source)| (name.clone(), shown(source))).collect::<Map<_, _>>(),
            "needs": task.needs, "expected_usdc": cost.to_string(), "asks": task.asks.as_ref().map(|asked| &asked.text),
        })
    });
    let life = deadline(input, now).secs() - now.secs();
    let objective = input.get("objective").and_then(Value::as_str).unwrap_or_default();
    as_map(json!({
        "objective_summary": cut(&plan.summary, 500),
        "objective_preview": cut(objective, PREVIEW),
        "estimated_phases": plan.tasks.iter().map(|task| task.phase).max().unwrap_or_default(),
        "estimated_tasks": plan.tasks.len(),
        "estimated_duration_days": (life.max(0) / (24 * 3600)).max(1),
        "planned_tasks": tasks.collect::<Vec<_>>(),
        "budget_breakdown": breakdown,
        "total_budget": locked.budget.to_string(),
        "total": price.to_string(),
        "planner": "rules",
    }))
}

/// Where the value of an argument comes from, as the buyer reads it before paying.
fn shown(source: &Source) -> Value {
    match source {
        Source::Value(value) => value.clone(),
        Source::Param(name) => json!({"param": name}),
        Source::Result { task, pointer } => json!({"result_of": task, "at": pointer}),
        Source::Answer { task } => json!({"answer_to": task}),
        Source::Text { parts } => parts
            .iter()
            .map(|part| match part {
                Part::Words(words) => json!(words),
                Part::Result { task, pointer } => json!({"result_of": task, "at": pointer}),
            })
            .collect(),
    }
}

pub(crate) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn as_map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fee_is_a_share_of_what_is_spent() {
        let locked = Locked { budget: Usdc::from_micro(1_000_000), fee: 20 };
        let charged = |micro| locked.with_fee(Usdc::from_micro(micro)).micro();
        assert_eq!([charged(0), charged(1), charged(5), charged(1_000_000)], [0, 2, 6, 1_200_000]);
        for spent in [0, 1, 3, 999_999, 1_000_000] {
            assert!(charged(spent) <= charged(1_000_000), "never above the price");
        }
    }
}
