//! A language model's part in research on a topic: it plans and writes where it is configured and what it says holds.
//!
//! Whatever it does not do, or does not do well enough to be told, is done without it, and the report says so: questions of
//! our own, and quotations instead of statements.

use tokio::time::{Instant, timeout_at};

use super::topic::Depth;
use crate::providers::Model;
use crate::providers::model::{Answer, Message, Question as Asked, Stop};
use crate::research::{Findings, Page, Question, choose, excerpts, plan, writer};
use crate::tools::Toolbox;

/// How the model took part.
#[derive(Default)]
pub struct Written {
    /// Its own name, once it wrote what the report says.
    pub model: Option<String>,
    /// Its provider's name for the answer.
    pub id: Option<String>,
    pub tokens: Option<u64>,
    /// Why it wrote nothing, or not all, where one was asked.
    pub note: Option<String>,
}

impl Written {
    /// The topic as questions, by the model where it is worth asking one.
    pub async fn plan(&mut self, toolbox: &Toolbox, topic: &str, depth: &Depth, end: Instant) -> Vec<Question> {
        let own = plan::plan(topic, depth.questions);
        let Some(model) = toolbox.model.as_ref().filter(|_| writer::needs_plan(topic, &own)) else { return own };
        let text = writer::ask_for_plan(topic, depth.questions);
        // As long as searching: without its plan there is another.
        let answer = self.ask(toolbox, model, text, end).await;
        answer.and_then(|answer| writer::read_plan(&answer.text, depth.questions)).unwrap_or(own)
    }

    /// What the pages say: in the model's words where it has any that hold, and else in their own.
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
        let shown = excerpts::nearest(questions, pages, depth.model_chars);
        if shown.is_empty() {
            return self.without("No page says anything near the questions, so no model was asked to write.", quoted);
        }
        if self.tokens.unwrap_or_default() >= depth.model_tokens {
            return self.without("The model's tokens were used up by planning, so it wrote none of this.", quoted);
        }
        let text = writer::ask_for_claims(topic, questions, pages, &shown, depth.claims);
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

    /// The pages' own words alone, and why.
    fn without(&mut self, note: &str, quoted: Findings) -> Findings {
        self.note = Some(note.to_owned());
        quoted
    }

    /// Puts one question to the model. None if there is no answer, or half of one.
    async fn ask(&mut self, toolbox: &Toolbox, model: &Model, text: String, end: Instant) -> Option<Answer> {
        let messages = [Message::Asked(text)];
        let question = Asked { system: writer::SYSTEM, messages: &messages, tools: &[] };
        let deadline = toolbox.clock.now().plus(end.saturating_duration_since(Instant::now()));
        let answer = timeout_at(end, model.ask(&question, deadline, &toolbox.clock)).await.ok()?.ok()?;
        if let Some(tokens) = answer.tokens {
            self.tokens = Some(self.tokens.unwrap_or_default().saturating_add(tokens));
        }
        // It was offered no tools: whatever it wants to call, nobody calls.
        (answer.stop == Stop::Done).then_some(answer)
    }
}
