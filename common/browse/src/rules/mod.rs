//! A planner of rules: it reads a task into steps before anything is opened, or says what it does not understand, and
//! then finds each step's target on the page. It tells success only where every target was found without doubt and
//! every field holds what it should.

mod acts;
mod answer;
mod ask;
mod calendar;
mod cart;
mod choose;
mod clause;
mod dates;
mod doubts;
mod explore;
mod fields;
mod fill;
mod find;
mod finish;
mod login;
mod mail;
mod moves;
mod moving;
mod names;
mod output;
mod pairs;
mod pick;
mod read;
mod records;
mod repeat;
mod run;
mod shop;
mod special;
mod step;
mod target;
mod verbs;
mod words;

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::action::Action;
use crate::view::View;

use run::{Memo, Move};
use step::{Step, What};

/// Most acts of one plan.
const MOST_ACTS: u32 = 400;
/// An act is done so often without any change of the page.
const MOST_REPEATS: u32 = 3;

/// Why a task is refused before it has a price.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotUnderstood {
    /// Parts of the task, as they were written.
    pub parts: Vec<String>,
}

/// What became of the last act.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Outcome {
    pub error: Option<String>,
    /// What lay over the point of a click.
    pub covered: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    /// `goal` are the task's words for it.
    Act { action: Action, goal: String },
    /// `success` is `None` where the page does not show whether the goal is met.
    Done { success: Option<bool>, output: Value },
    /// `reason` is one of `target_not_found`, `act_failed`, `disabled`, `no_progress`, `too_many_steps`.
    GiveUp { reason: String, message: String },
}

/// A task that was understood.
#[derive(Clone, Debug)]
pub struct Plan {
    steps: Vec<Step>,
    /// Whether dialogs that ask something are accepted, if the task says so.
    accepts: Option<bool>,
    schema: Option<Value>,
    sends: bool,
    at: usize,
    memo: Memo,
    run: Run,
}

/// What a run of the plan found out so far.
#[derive(Clone, Debug)]
struct Run {
    /// Every target was found without doubt.
    sure: bool,
    /// The value that a step found or copied.
    kept: Option<String>,
    /// Names of the links before a search: they are no results of it.
    known: Vec<String>,
    /// What was found last; "their address" belongs to it.
    context: Option<String>,
    /// What was read, with the words that asked for it.
    answers: Vec<(String, Value)>,
    has_schema: bool,
    /// A field was changed and no button pressed since.
    edited: bool,
    /// Texts of the page before the last act.
    texts: Vec<String>,
    /// How many files the page had given before the last act.
    downloads: usize,
    /// The last act was a click.
    clicks: bool,
    /// The element that was clicked last.
    clicked: Option<String>,
    last: Option<(u64, u32)>,
    acts: u32,
}

impl Plan {
    /// Reads a task. With a start address the session has opened it already; an output schema asks for values of the
    /// last page.
    ///
    /// # Errors
    /// The parts of the task that no rule reads.
    pub fn read(task: &str, start_url: Option<&str>, output_schema: Option<&Value>) -> Result<Self, NotUnderstood> {
        let read::Read { mut steps, accepts } = read::read(task).map_err(|parts| NotUnderstood { parts })?;
        // "Extract the table from https://…": the page is opened first.
        if start_url.is_none()
            && !steps.iter().any(|step| matches!(step.what, What::Open(_)))
            && let Some(url) =
                words::tokens(task).iter().filter(|t| t.text.contains("://")).find_map(|t| verbs::address(&t.text))
        {
            let said = format!("Open {url}");
            steps.insert(0, Step { said, what: What::Open(url), optional: false });
        }
        let start = start_url.and_then(verbs::address);
        let opens = |step: &Step| matches!(&step.what, What::Open(url) if start.as_ref() == Some(url));
        // Opening the start address again would only lose what is on the page.
        if steps.len() > 1 && steps.first().is_some_and(opens) {
            steps.remove(0);
        }
        let asks_rows = steps.iter().any(|s| matches!(s.what, What::Ask(answer::Question::Rows)));
        if asks_rows && output_schema.is_none() {
            let parts = steps
                .iter()
                .filter(|s| matches!(s.what, What::Ask(answer::Question::Rows)))
                .map(|s| format!("{} (without an output schema)", s.said));
            return Err(NotUnderstood { parts: parts.collect() });
        }
        let run = Run {
            sure: true,
            kept: None,
            known: Vec::new(),
            context: None,
            answers: Vec::new(),
            has_schema: output_schema.is_some(),
            edited: false,
            texts: Vec::new(),
            downloads: 0,
            clicks: false,
            clicked: None,
            last: None,
            acts: 0,
        };
        Ok(Self { steps, schema: output_schema.cloned(), accepts, sends: false, at: 0, memo: Memo::default(), run })
    }

    /// Lets the plan press the button "Submit" at its end, where the task filled fields and says nothing about sending
    /// them. Without it such a task ends with nothing sent, and with `success: None`.
    #[must_use]
    pub fn sending(mut self) -> Self {
        self.sends = true;
        self
    }

    /// The addresses that the task opens.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        let opened = |step: &Step| match &step.what {
            What::Open(url) => Some(url.clone()),
            _ => None,
        };
        self.steps.iter().filter_map(opened).collect()
    }

    /// How many steps the task writes out; "add 3 kettles" are three.
    #[must_use]
    pub fn written_steps(&self) -> usize {
        let times = |step: &Step| match step.what {
            What::Cart(shop::Cart::Add { count, .. }) => count,
            _ => 1,
        };
        self.steps.iter().map(times).sum()
    }

    /// The next act, from what the page shows now and what became of the last act.
    pub fn next(&mut self, view: &View, outcome: Option<&Outcome>) -> Decision {
        if let Some(decision) = self.dialog(view) {
            return decision;
        }
        if let Some(outcome) = outcome
            && let Some(failed) = self.failed(outcome)
        {
            return failed;
        }
        let page = find::Page::new(view);
        // What lies over the target is sent away once, and the step is done again. Nothing is accepted on the way.
        if outcome.is_some_and(|o| o.covered.is_some())
            && self.memo.acted
            && !self.memo.cleared
            && let Some(id) = explore::way_out(&page)
        {
            self.memo.cleared = true;
            self.memo.acted = false;
            return self.act(run::click(id), view);
        }
        // A step may be over without an act; there are only so many steps.
        while let Some(step) = self.steps.get(self.at) {
            match run::step(step, &page, &mut self.memo, &mut self.run) {
                Move::Finished => {
                    self.at += 1;
                    self.memo = Memo { before: self.run.clicked.iter().cloned().collect(), ..Memo::default() };
                }
                Move::Stuck(reason, message) => {
                    if step.optional {
                        self.at += 1;
                        self.memo = Memo::default();
                        continue;
                    }
                    return Decision::GiveUp { reason: reason.to_owned(), message };
                }
                Move::Act(action) => return self.act(action, view),
            }
        }
        if self.sends && self.run.edited {
            let submit =
                page.all_where(|n| n.role == "button" && !n.is("disabled") && words::fold(&n.name) == "submit");
            if let [button] = submit.as_slice() {
                self.sends = false;
                return self.act(run::click(button.id), view);
            }
        }
        finish::finish(&page, &self.run, self.schema.as_ref())
    }

    fn act(&mut self, action: Action, view: &View) -> Decision {
        let goal = self.steps.get(self.at).map(Step::goal).unwrap_or_default();
        let mut hash = DefaultHasher::new();
        (self.at, format!("{action:?}"), serde_json::to_string(view).unwrap_or_default()).hash(&mut hash);
        let print = hash.finish();
        let repeats = self.run.last.filter(|(last, _)| *last == print).map_or(1, |(_, n)| n + 1);
        self.run.last = Some((print, repeats));
        self.run.acts += 1;
        // Waits are counted by their steps.
        if repeats > MOST_REPEATS && !matches!(action, Action::Wait { .. }) {
            return Decision::GiveUp {
                reason: "no_progress".to_owned(),
                message: format!("\"{goal}\": the page does not change"),
            };
        }
        if self.run.acts > MOST_ACTS {
            return Decision::GiveUp {
                reason: "too_many_steps".to_owned(),
                message: format!("more than {MOST_ACTS} acts"),
            };
        }
        self.run.texts = view.nodes.iter().map(|n| n.words().to_owned()).collect();
        self.run.downloads = view.downloads.len();
        self.run.clicks = matches!(action, Action::Click { .. } | Action::ClickAt { .. });
        if let Action::Click { id, .. } = &action {
            self.run.clicked = Some(id.clone());
        }
        match &action {
            Action::Click { id, .. }
                if view.element(id).is_none_or(|n| !matches!(n.role.as_str(), "button" | "link")) => {}
            Action::Click { .. } | Action::Press { .. } => self.run.edited = false,
            Action::Type { .. }
            | Action::Select { .. }
            | Action::Check { .. }
            | Action::Set { .. }
            | Action::Drag { .. } => self.run.edited = true,
            _ => {}
        }
        Decision::Act { action, goal }
    }

    /// A dialog of the browser stands before everything else. One that asks something is answered as the task says, and
    /// by nobody else.
    fn dialog(&mut self, view: &View) -> Option<Decision> {
        let dialog = view.dialog.as_ref()?;
        if dialog.kind == "prompt" {
            return Some(Decision::GiveUp {
                reason: "target_not_found".to_owned(),
                message: "the page asks for a text in a dialog".to_owned(),
            });
        }
        let accept = match (dialog.kind.as_str(), self.accepts) {
            ("confirm", Some(accepts)) => accepts,
            ("confirm", None) => {
                let asked: String = dialog.message.chars().take(200).collect();
                let message = format!("the page asks \"{asked}\": say whether to accept or to dismiss the dialog");
                return Some(Decision::GiveUp { reason: "dialog_open".to_owned(), message });
            }
            _ => true,
        };
        Some(self.act(Action::Dialog { accept, text: None }, view))
    }

    fn failed(&mut self, outcome: &Outcome) -> Option<Decision> {
        let error = outcome.error.as_deref()?;
        self.memo.errors += 1;
        self.memo.acted = false;
        let step = self.steps.get(self.at)?;
        // An address does not become good by itself.
        let tries = if matches!(step.what, What::Open(_)) { 1 } else { 3 };
        if self.memo.errors < tries {
            return None;
        }
        Some(Decision::GiveUp { reason: "act_failed".to_owned(), message: format!("\"{}\": {error}", step.said) })
    }
}

#[cfg(test)]
mod phrases;
#[cfg(test)]
mod tests;
