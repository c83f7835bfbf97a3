//! The price: 0.002 USDC for each step that the task is expected to take, and what the model that plans them may cost, with a
//! fifth on top. At least 0.005. What is not used comes back.

use std::sync::Arc;

use base::ids::AgentId;
use base::input::FieldError;
use base::money::Usdc;
use browse::{NotUnderstood, Plan};
use http::StatusCode;
use platform::config::Tokens;
use platform::http::ApiError;
use platform::providers::Model;
use platform::providers::browser::Rules;
use platform::store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tools::quoting::{AskedPrice, QuoteRequest, Quoter};
use tools::{Toolbox, files};
use url::Url;
use uuid::Uuid;

use crate::browser::{LEAST, MAX_STEPS, SPEC, STEP, USUAL_STEPS};
use crate::{planner, sessions, work};

/// Longest part of the task that the quote shows, in bytes.
const PREVIEW: usize = 200;

pub static QUOTER: Quoter = Quoter {
    spec: &SPEC,
    quote: |toolbox, request| Box::pin(quote(toolbox, request)),
    check: |toolbox, input, _, agent, proven| {
        Box::pin(async move {
            check(toolbox, input, agent).await?;
            check_files(toolbox, input, agent, proven).await
        })
    },
    begins: |_| false,
};

/// What a quote fixes for the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locked {
    /// Steps that are paid for.
    pub steps: u64,
    /// micro-USDC for each.
    pub step: u64,
    /// micro-USDC: the least that a task costs.
    pub least: u64,
    /// micro-USDC that the model may cost here, the fifth on top included; 0: rules plan.
    pub model: u64,
}

impl Locked {
    fn price(&self) -> Usdc {
        self.of(self.steps, self.model)
    }

    /// What is charged for so many steps, and this cost of the model.
    pub fn of(&self, steps: u64, model: u64) -> Usdc {
        Usdc::from_micro((self.step.saturating_mul(steps).saturating_add(model)).max(self.least))
    }
}

/// The session that is to go on.
pub fn session_of(input: &Map<String, Value>) -> Option<Uuid> {
    Uuid::try_parse(input.get("session_id")?.as_str()?).ok()
}

/// The most steps that the caller allows.
fn max_steps(input: &Map<String, Value>) -> u64 {
    input.get("max_steps").and_then(Value::as_u64).unwrap_or(USUAL_STEPS).min(MAX_STEPS)
}

/// The task as rules read it.
///
/// # Errors
/// What they do not understand.
pub fn read(input: &Map<String, Value>) -> Result<Plan, NotUnderstood> {
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    Plan::read(text("task").unwrap_or_default(), text("start_url"), input.get("output_schema"))
}

/// Steps that are paid for if rules plan: twice what is written, because a written step may take two (scroll, then click), and a
/// few for what pages ask between them.
fn expected(written: usize, most: u64) -> u64 {
    (u64::try_from(written).unwrap_or(u64::MAX).saturating_mul(2).saturating_add(3)).min(most)
}

/// What the work may do, and its price.
pub fn locked(input: &Map<String, Value>, model: Option<&Model>, usual: Usdc) -> Result<Locked, ApiError> {
    let at = |price: Usdc| {
        let scaled = u128::from(price.micro()) * u128::from(usual.micro()) / u128::from(LEAST.micro());
        u64::try_from(scaled).unwrap_or(u64::MAX)
    };
    let (step, least, most) = (at(STEP), at(LEAST), max_steps(input));
    match (read(input), model) {
        (Ok(plan), _) if u64::try_from(plan.written_steps()).unwrap_or(u64::MAX) > most => {
            let what = format!("is less than the {} steps of the task", plan.written_steps());
            Err(ApiError::InvalidRequest(vec![FieldError::new("max_steps", what)]))
        }
        (Ok(plan), _) => Ok(Locked { steps: expected(plan.written_steps(), most), step, least, model: 0 }),
        (Err(_), Some(model)) => {
            let tokens = Tokens { input: planner::PROMPT_TOKENS, output: planner::ANSWER_TOKENS };
            let each = model.prices().cost(tokens).micro();
            let model = each.saturating_mul(most).saturating_mul(6) / 5;
            Ok(Locked { steps: most, step, least, model })
        }
        (Err(why), None) => Err(ApiError::Tool {
            status: StatusCode::BAD_REQUEST,
            code: "needs_planner",
            message: format!(
                "not understood: {}. This deployment plans by rules: write the steps, as in: Open https://example.com, click \
                 \"Log in\", enter \"Ann\" in the Name field, choose A from Size, read the price",
                cut(&why.parts.join("; "), 500)
            ),
        }),
    }
}

async fn quote(toolbox: Arc<Toolbox>, request: QuoteRequest) -> Result<AskedPrice, ApiError> {
    let input = &request.input;
    check(&toolbox, input, request.agent).await?;
    check_files(&toolbox, input, request.agent, request.proven).await?;
    // Reading a long task takes a while.
    let (body, tools, usual) = (input.clone(), toolbox.clone(), request.tool.price.usual());
    let reading = tokio::task::spawn_blocking(move || {
        check_allowed(&body)?;
        locked(&body, tools.model.as_ref(), usual)
    });
    let locked = reading.await.map_err(|error| ApiError::Unavailable(StoreError::new(error)))??;
    let price = locked.price();
    let task = input.get("task").and_then(Value::as_str).unwrap_or_default();
    let amount = price.to_string();
    let context = json!({
        "task_preview": cut(task, PREVIEW),
        "estimated_steps": locked.steps,
        "max_steps": max_steps(input),
        "estimated_cost": amount,
        "total": amount,
        "has_output_schema": input.contains_key("output_schema"),
        "start_url": input.get("start_url"),
        "planner": if locked.model == 0 { "rules" } else { "model" },
    });
    let as_map = |value: Value| value.as_object().cloned().unwrap_or_default();
    let locked = serde_json::to_value(locked).map(as_map).unwrap_or_default();
    Ok(AskedPrice { price, context: as_map(context), locked })
}

fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Refuses addresses of the body that its own `allowed_domains` exclude.
fn check_allowed(input: &Map<String, Value>) -> Result<(), ApiError> {
    let rules = Rules { allowed: work::allowed(input, None) };
    if !input.contains_key("allowed_domains") {
        return Ok(());
    }
    let start = input.get("start_url").and_then(Value::as_str).map(str::to_owned);
    let opened = read(input).map(|plan| plan.addresses()).unwrap_or_default();
    let outside = start.into_iter().chain(opened).find(|url| Url::parse(url).is_ok_and(|url| !rules.allows(&url)));
    match outside {
        Some(url) => {
            let what = format!("leaves out {}, which the task opens", cut(&url, 200));
            Err(ApiError::InvalidRequest(vec![FieldError::new("allowed_domains", what)]))
        }
        None => Ok(()),
    }
}

/// Refuses sessions and profiles that are not there.
async fn check(toolbox: &Toolbox, input: &Map<String, Value>, agent: Option<AgentId>) -> Result<(), ApiError> {
    if input.get("profile_id").and_then(Value::as_str).is_some_and(|id| !id.is_empty()) {
        return Err(ApiError::Tool {
            status: StatusCode::NOT_FOUND,
            code: "profile_not_found",
            message: "there is no such profile of yours: leave profile_id out".to_owned(),
        });
    }
    if let Some(session) = session_of(input) {
        sessions::own(&toolbox.db, session, agent, toolbox.clock.now()).await?;
    }
    Ok(())
}

/// Refuses files that are not there, as soon as it is known whose they have to be.
async fn check_files(
    toolbox: &Toolbox,
    input: &Map<String, Value>,
    agent: Option<AgentId>,
    proven: bool,
) -> Result<(), ApiError> {
    let Some(agent) = agent.filter(|_| proven) else { return Ok(()) };
    for (index, file) in planner::files_of(input).into_iter().enumerate() {
        let found = file.is_of(&toolbox.db, agent).await.map_err(ApiError::Unavailable)?
            && files::load(&toolbox.db, file.job, &file.path).await.map_err(ApiError::Unavailable)?.is_some();
        if !found {
            let what = "is no file of a job of yours";
            return Err(ApiError::InvalidRequest(vec![FieldError::new(format!("files[{index}]"), what)]));
        }
    }
    Ok(())
}
