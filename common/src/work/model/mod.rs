//! A language model that does the work: the soul's text is its instructions, the buyer's input is its material.
//!
//! What a model says is believed in nothing but its answer. It may ask for the tools it was offered; whether a call runs is
//! decided by the [`Allowance`], and what is refused goes back to it as an error. It sees one commission and nothing else:
//! there is no conversation that outlives the job, and no tool that reads jobs.
//!
//! | file | what it is |
//! |---|---|
//! | `prompt` | the frame: who speaks, what is an instruction and what is material |
//!
//! How the model is asked, in which protocol, is [`crate::providers::model`]'s.

mod prompt;

use std::time::Duration;

use super::{Allowance, Commission, Desk, Executor, MAX_RESULT_BYTES, Report, Work};
use crate::providers::Model;
use crate::providers::model::{Answer, Message, Question, Reply, Stop};
use crate::store::BoxFuture;
use crate::tools::{Mode, ToolError, Unavailable};

/// Most questions to the model for one commission.
pub const MAX_ROUNDS: usize = 8;
/// Most calls a model may ask for at once; of all of them, [`super::allowance::MAX_CALLS`] are run.
const MAX_CALLS_AT_ONCE: usize = 32;
/// Largest input a model is given, in bytes of JSON.
pub const MAX_INPUT_BYTES: usize = 256 * 1024;

/// The configured model, as an executor.
pub struct ModelExecutor {
    model: Model,
    desk: Desk,
}

impl ModelExecutor {
    /// The executor, if a model is configured.
    pub fn configured(desk: Desk) -> Option<ModelExecutor> {
        let model = desk.toolbox.model.clone()?;
        Some(ModelExecutor { model, desk })
    }

    async fn work(&self, commission: &Commission, allowance: &mut Allowance) -> Result<Work, ToolError> {
        let system = prompt::system(commission);
        let offered: Vec<_> = allowance.tools().collect();
        let mut messages = vec![Message::Asked(prompt::question(commission)?)];
        let mut tokens = None;
        for round in 1..=MAX_ROUNDS {
            let ask = Question { system: &system, messages: &messages, tools: &offered };
            let answer = self.model.ask(&ask, commission.deadline, allowance.clock()).await?;
            if let Some(more) = answer.tokens {
                tokens = Some(tokens.unwrap_or(0u64).saturating_add(more));
            }
            match answer.stop {
                Stop::Done => return finished(commission, answer, tokens, self.model.provider()),
                Stop::Cut => return Err(seller_failed("the answer was longer than the model may write")),
                Stop::Refused => return Err(seller_failed("the model refused")),
                Stop::Tools => {}
            }
            if answer.calls.is_empty() || answer.calls.len() > MAX_CALLS_AT_ONCE {
                return Err(seller_failed("the model asked for no tool, or for too many at once"));
            }
            let mut replies = Vec::with_capacity(answer.calls.len());
            for call in answer.calls {
                let result = allowance.call(&call.name, &call.arguments).await;
                let ok = result.is_ok();
                let mut text = prompt::tool_result(result);
                if round + 1 == MAX_ROUNDS {
                    text.push_str("\nNo more tools from here on: answer now.");
                }
                replies.push(Reply { id: call.id, text, ok });
            }
            messages.push(Message::Answered(answer.echo));
            messages.push(Message::Replied(replies));
        }
        Err(seller_failed("the model did not come to an end"))
    }
}

impl Executor for ModelExecutor {
    fn run<'a>(&'a self, commission: &'a Commission) -> BoxFuture<'a, Report> {
        Box::pin(async move {
            let mut allowance = Allowance::of(commission, &self.desk);
            let left = commission.deadline.millis() - allowance.clock().now().millis();
            let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
            let outcome = tokio::time::timeout(left, self.work(commission, &mut allowance)).await;
            let outcome = outcome.unwrap_or_else(|_| Err(super::out_of_time()));
            Report { outcome, tools_used: allowance.into_used(), log: String::new() }
        })
    }
}

fn finished(
    commission: &Commission,
    answer: Answer,
    tokens_used: Option<u64>,
    provider: &'static str,
) -> Result<Work, ToolError> {
    let mut result = answer.text.trim();
    if commission.output_schema.is_some() {
        result = prompt::without_fence(result);
    }
    if result.is_empty() {
        return Err(seller_failed("the model answered nothing"));
    }
    if result.len() > MAX_RESULT_BYTES {
        return Err(seller_failed("the answer is too large"));
    }
    Ok(Work {
        result: result.to_owned(),
        files: Vec::new(),
        model_used: answer.model,
        tokens_used,
        provider,
        provider_request_id: answer.id,
        mode: Mode::Upstream,
    })
}

fn seller_failed(message: &str) -> ToolError {
    ToolError::unavailable(Unavailable::SellerFailed, message)
}
