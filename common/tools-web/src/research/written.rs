//! A language model's part in research on a topic: it plans and writes, if it is configured and its output passes the
//! checks.
//!
//! If it fails, the built-in plan and quotations are used instead, and the report says so.
//!
//! The price of the research pays for it: a request is sent only if it and its longest answer cost no more than what is
//! left.

use base::money::Usdc;
use platform::config::Tokens;
use platform::providers::Model;
use platform::providers::model::{Answer, Message, Question as Asked, Stop};
use tokio::time::{Instant, timeout_at};
use tools::Toolbox;
use web::research::{Findings, Page, Question, choose, excerpts, plan, writer};

use super::topic::Depth;

/// A request is not sent unless the budget allows an answer of this many tokens.
const MIN_ANSWER_TOKENS: u64 = 512;
/// Fewer characters of excerpts are not worth a request.
const MIN_CHARS: usize = 2_000;

/// The model's part in one piece of research.
pub struct Written {
    /// The model's name, set once it wrote part of the report.
    pub model: Option<String>,
    /// The provider's id of the answer.
    pub id: Option<String>,
    pub tokens: Option<Tokens>,
    /// Why a model that was asked wrote nothing, or only a part.
    pub note: Option<String>,
    /// The rest of the budget for the model.
    left: Usdc,
}

impl Written {
    /// A new budget. `price` is what all requests to the model may cost together.
    pub fn within(price: Usdc) -> Written {
        Written { model: None, id: None, tokens: None, note: None, left: price }
    }

    /// The questions of a topic, from the model if the topic needs one.
    pub async fn plan(&mut self, toolbox: &Toolbox, topic: &str, depth: &Depth, end: Instant) -> Vec<Question> {
        let own = plan::plan(topic, depth.questions);
        let Some(model) = toolbox.model.as_ref().filter(|_| writer::needs_plan(topic, &own)) else { return own };
        let text = writer::ask_for_plan(topic, depth.questions);
        // `end` is the deadline of the search step. If the model is late, the built-in plan is used.
        let answer = self.ask(toolbox, model, text, end).await;
        answer.and_then(|answer| writer::read_plan(&answer.text, depth.questions)).unwrap_or(own)
    }

    /// The findings: the model's statements that pass the checks, and otherwise quotations.
    pub async fn conclude(
        &mut self,
        toolbox: &Toolbox,
        topic: &str,
        questions: &[Question],
        pages: &[Page],
        depth: &Depth,
        end: Instant,
    ) -> Findings {
        let quoted = choose::extract(questions, pages, depth.claims);
        let Some(model) = toolbox.model.as_ref().filter(|_| !pages.is_empty() && !questions.is_empty()) else {
            return quoted;
        };
        let mut chars = depth.model_chars;
        let (shown, text) = loop {
            let shown = excerpts::nearest(questions, pages, chars);
            if shown.is_empty() {
                return self
                    .without("No page has text close to the questions, so no model was asked to write.", quoted);
            }
            let text = writer::ask_for_claims(topic, questions, pages, &shown, depth.claims);
            if self.longest_answer(model, &text).is_some() {
                break (shown, text);
            }
            chars /= 2;
            if chars < MIN_CHARS {
                let note = "The model costs more than the price of this research pays for, so it wrote none of this.";
                return self.without(note, quoted);
            }
        };
        let Some(answer) = self.ask(toolbox, model, text, end).await else {
            return self.without("A language model was asked, and gave no answer.", quoted);
        };
        let told = writer::read_claims(&answer.text, questions, pages, &shown, depth.claims);
        let Some(mut findings) = told else {
            return self.without("A language model was asked, and its answer was not in the form asked for.", quoted);
        };
        if findings.claims.is_empty() {
            let note = match findings.dropped {
                0 => "A language model was asked, and stated nothing.".to_owned(),
                1 => "A language model was asked; its one statement had no support and was removed.".to_owned(),
                count => {
                    format!("A language model was asked; none of its {count} statements had support, all were removed.")
                }
            };
            return self.without(&note, Findings { dropped: findings.dropped, ..quoted });
        }
        let silent = findings.unanswered(questions.len());
        if !silent.is_empty() {
            let count = silent.len();
            self.note = Some(format!(
                "The model stated nothing that holds to {count} of {} questions. Where sentences of pages answer those, they \
                 are quoted word for word.",
                questions.len()
            ));
            findings.add_quoted(quoted, &silent);
        }
        self.model = Some(answer.model.unwrap_or_else(|| model.name().to_owned()));
        self.id = answer.id;
        findings
    }

    /// Quotations only, with the reason.
    fn without(&mut self, note: &str, quoted: Findings) -> Findings {
        self.note = Some(note.to_owned());
        quoted
    }

    /// Sends one request to the model. `None` if there is no complete answer.
    async fn ask(&mut self, toolbox: &Toolbox, model: &Model, text: String, end: Instant) -> Option<Answer> {
        let longest = self.longest_answer(model, &text)?;
        let messages = [Message::Asked(text)];
        let max_tokens = u32::try_from(longest).unwrap_or(u32::MAX);
        let question = Asked { system: writer::SYSTEM, messages: &messages, tools: &[], max_tokens };
        let before = self.left;
        // Takes the highest possible cost from the budget first, because a failed request may be billed too.
        self.spend(model.prices().cost(Tokens { input: question.most_tokens(), output: longest }));
        let deadline = toolbox.clock.now().plus(end.saturating_duration_since(Instant::now()));
        let answer = timeout_at(end, model.ask(&question, deadline, &toolbox.clock)).await.ok()?.ok()?;
        if let Some(tokens) = answer.tokens {
            self.left = before;
            self.spend(model.prices().cost(tokens));
            let sum = self.tokens.unwrap_or_default();
            self.tokens = Some(Tokens { input: sum.input + tokens.input, output: sum.output + tokens.output });
        }
        // No tools were offered, so a tool call is not an answer.
        (answer.stop == Stop::Done).then_some(answer)
    }

    fn spend(&mut self, cost: Usdc) {
        self.left = self.left.checked_sub(cost).unwrap_or_default();
    }

    /// The longest answer that the budget allows, in tokens; `None` if it is too short.
    fn longest_answer(&self, model: &Model, text: &str) -> Option<u64> {
        let messages = [Message::Asked(text.to_owned())];
        let question = Asked { system: writer::SYSTEM, messages: &messages, tools: &[], max_tokens: 0 };
        let most = u64::from(model.max_tokens());
        let longest = model.prices().longest_answer(self.left, question.most_tokens()).min(most);
        (longest >= MIN_ANSWER_TOKENS.min(most)).then_some(longest)
    }
}
