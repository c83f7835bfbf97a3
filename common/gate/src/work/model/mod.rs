//! An executor: a language model does the work. The soul's text is its instructions, the buyer's input is its material.
//!
//! Nothing a model says is trusted except as its answer. It may ask for the tools it was offered; the [`Allowance`] decides
//! whether a call runs, and a refusal goes back to the model as an error. It sees one commission only: no conversation
//! outlives the job, and no tool reads jobs.
//!
//! `prompt` builds the texts, and separates instructions from material. The protocol of the model's provider is in
//! [`platform::providers::model`].
//!
//! The platform's part of the price pays for the model. Before each request to the model, its highest possible cost is
//! taken from that budget: for the prompt by its bytes (a token has at least one byte), for the answer by its length limit.
//! The unused part is given back when the provider has counted the tokens.

mod prompt;

use std::time::Duration;

use base::money::Usdc;
use platform::config::{FeeShare, ModelPrices, Tokens};
use platform::providers::Model;
use platform::providers::model::{Answer, Message, ModelTool, Question, Reply, Stop, most_tokens_of_frame};
use platform::store::BoxFuture;
use tools::spec::ToolSpec;
use tools::{Mode, ToolError, Unavailable};

use super::{
    Allowance, Commission, Executor, MAX_RESULT_BYTES, NotTaken, Report, Resource, Spending, ToolAccess, Work,
};

/// Most requests to the model for one commission.
pub const MAX_ROUNDS: usize = 8;
/// Most calls a model may ask for in one answer. In total [`super::allowance::MAX_CALLS`] are run.
const MAX_CALLS_AT_ONCE: usize = 32;
/// Largest input for a model, in bytes of JSON.
pub const MAX_INPUT_BYTES: usize = 256 * 1024;
/// No request is sent if the budget leaves no room for an answer of this many tokens.
const MIN_ANSWER_TOKENS: u64 = 256;
/// A service is offered only if its price has room for an input of this many bytes.
const MIN_INPUT_BYTES: u64 = 256;

/// The configured model, as an executor.
pub struct ModelExecutor {
    model: Model,
    access: ToolAccess,
}

impl ModelExecutor {
    /// The executor, or `None` if no model is configured.
    pub fn configured(access: ToolAccess) -> Option<ModelExecutor> {
        let model = access.toolbox.model.clone()?;
        Some(ModelExecutor { model, access })
    }

    async fn work(&self, commission: &Commission, allowance: &mut Allowance<'_>) -> Result<Work, ToolError> {
        let system = prompt::system(commission);
        let offered: Vec<_> = allowance.tools().map(|tool| tool as &dyn ModelTool).collect();
        let mut messages = vec![Message::Asked(prompt::question(commission)?)];
        let mut used: Option<Tokens> = None;
        // Tokens of the conversation until now, as the provider counted them.
        let mut counted: Option<u64> = None;
        for round in 1..=MAX_ROUNDS {
            let mut ask = Question { system: &system, messages: &messages, tools: &offered, max_tokens: 0 };
            // Only the replies to the last calls are new since that count.
            let by_count = counted.zip(messages.last()).map(|(known, new)| known.saturating_add(new.most_tokens()));
            let question = ask.most_tokens().min(by_count.unwrap_or(u64::MAX));
            let (most, cost) = self.afford(question, allowance.spending())?;
            ask.max_tokens = most;
            allowance.spending().take(Resource::Model, cost).await.map_err(not_taken)?;
            let answer = match self.model.ask(&ask, commission.deadline, allowance.clock()).await {
                Ok(answer) => answer,
                Err(unanswered) => {
                    if !unanswered.may_cost {
                        allowance.spending().give_back(Resource::Model, cost).await;
                    }
                    return Err(unanswered.error);
                }
            };
            if let Some(tokens) = answer.tokens {
                let unused = cost.checked_sub(self.model.prices().cost(tokens)).unwrap_or_default();
                allowance.spending().give_back(Resource::Model, unused).await;
                let sum = used.unwrap_or_default();
                let (input, output) = (sum.input + tokens.input, sum.output + tokens.output);
                used = Some(Tokens { input, output });
            }
            counted = answer.tokens.map(Tokens::total);
            match answer.stop {
                Stop::Done => return finished(commission, answer, used, self.model.provider()),
                Stop::Cut => {
                    return Err(seller_failed("the answer was longer than the model may write for this price"));
                }
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
        Err(seller_failed("the model did not finish"))
    }

    /// The longest answer, in tokens, that the budget pays for after a prompt of `question` tokens, and the highest cost of
    /// both together.
    fn afford(&self, question: u64, spending: &Spending) -> Result<(u32, Usdc), ToolError> {
        let prices = self.model.prices();
        let most = prices.longest_answer(spending.left(Resource::Model), question).min(self.model.max_tokens().into());
        if most < MIN_ANSWER_TOKENS.min(self.model.max_tokens().into()) {
            return Err(seller_failed("the model budget of this price is used up"));
        }
        let cost = prices.cost(Tokens { input: question, output: most });
        Ok((u32::try_from(most).unwrap_or(u32::MAX), cost))
    }
}

/// The parts of a service's prompt that are known before it is bought.
pub struct Outline<'a> {
    pub soul: &'a str,
    /// Bytes of the soul's text.
    pub soul_bytes: usize,
    pub service_name: &'a str,
    pub service_description: Option<&'a str>,
    pub output_schema: Option<&'a serde_json::Value>,
    pub tools: Vec<&'static ToolSpec>,
}

impl Outline<'_> {
    /// Most tokens of the first prompt, for an input of this many bytes of JSON.
    fn most_tokens(&self, input_bytes: u64) -> u64 {
        let frame = prompt::frame_bytes(self) + prompt::QUESTION_BYTES;
        most_tokens_of_frame(frame, self.tools.iter().map(|tool| *tool as &dyn ModelTool)).saturating_add(input_bytes)
    }

    /// The highest cost of a first prompt with this many bytes of input, and of a short answer.
    pub fn least_budget(&self, prices: ModelPrices, input_bytes: u64) -> Usdc {
        prices.cost(Tokens { input: self.most_tokens(input_bytes), output: MIN_ANSWER_TOKENS })
    }

    /// The lowest price whose fee pays for a short prompt and its answer, in whole cents.
    pub fn least_price(&self, prices: ModelPrices, fee: FeeShare) -> Usdc {
        const CENT: u64 = 10_000;
        let least = self.least_budget(prices, MIN_INPUT_BYTES);
        let price = (u128::from(least.micro()) * 100).div_ceil(u128::from(fee.percent()));
        Usdc::from_micro(u64::try_from(price).unwrap_or(u64::MAX).div_ceil(CENT).saturating_mul(CENT))
    }

    /// The largest input that a fee pays for, in bytes of JSON.
    pub fn most_input_bytes(&self, prices: ModelPrices, fee: Usdc) -> u64 {
        let answer = prices.cost(Tokens { input: 0, output: MIN_ANSWER_TOKENS });
        let left = fee.checked_sub(answer).unwrap_or_default();
        // `longest_answer` divides a budget by the price of output. With the input's price there, it gives the longest
        // prompt.
        let question = ModelPrices { input: Usdc::ZERO, output: prices.input }.longest_answer(left, 0);
        let most = u64::try_from(MAX_INPUT_BYTES).unwrap_or(u64::MAX);
        question.saturating_sub(self.most_tokens(0)).min(most)
    }
}

impl Executor for ModelExecutor {
    fn run<'a>(&'a self, commission: &'a Commission, spending: &'a mut Spending) -> BoxFuture<'a, Report> {
        Box::pin(async move {
            let mut allowance = Allowance::of(commission, &self.access, spending);
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
    tokens_used: Option<Tokens>,
    provider: &'static str,
) -> Result<Work, ToolError> {
    let mut result = answer.text.trim();
    if commission.output_schema.is_some() {
        result = prompt::without_fence(result);
    }
    if result.is_empty() {
        return Err(seller_failed("the model gave an empty answer"));
    }
    if result.len() > MAX_RESULT_BYTES {
        return Err(seller_failed("the answer is too large"));
    }
    Ok(Work {
        result: result.to_owned(),
        files: Vec::new(),
        model_used: answer.model,
        tokens_used: tokens_used.map(Tokens::total),
        provider,
        provider_request_id: answer.id,
        mode: Mode::Upstream,
    })
}

fn not_taken(refused: NotTaken) -> ToolError {
    match refused {
        NotTaken::OverBudget { .. } => seller_failed("the model budget of this price is used up"),
        NotTaken::NotRecorded => ToolError::internal("the usage of the work could not be recorded"),
    }
}

fn seller_failed(message: &str) -> ToolError {
    ToolError::unavailable(Unavailable::SellerFailed, message)
}
