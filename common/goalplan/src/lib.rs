//! Plans of tool calls from objectives in words, by rules.
//!
//! [`plan`] splits an objective into clauses, chooses a tool for each, and fills its arguments with values of the objective,
//! of its params, or of earlier results. What is missing becomes a question to the owner; what no rule understands is
//! refused. Nothing is invented, and recipients, amounts and phone numbers of tools that act never come from a result,
//! unless the objective says so ("e-mail the address you find").
//!
//! - `clauses`: sentences and their parts, one wish each; `unclear` refuses conditions, negations and schedules.
//! - `meaning`: what an argument is for, by its name and schema.
//! - `values`, `names`: addresses, numbers, dates and names in words.
//! - `pick`, `channel`: the tool for a clause.
//! - `fill`, with `figures`, `nouns` and `phrase`: the arguments of a tool, from a clause and the params.
//! - `params`: arguments from the params.
//! - `refer`, `earlier`: arguments from what earlier tasks were given or brought.
//! - `recipients`: whom a clause reaches, and its quotations; what has no single place is refused.
//! - `message`: what a mail, a text or a phone call says.
//! - `complete`: refuses a call that leaves a part of its clause out.
//! - `wishes`: several wishes in one clause or beside it.
//! - `build`, with `around` and `questions`: the graph.
//! - `run`: the input of a task once the earlier ones have ended, and the owner's answers.

mod around;
mod build;
mod channel;
mod check;
mod clauses;
mod complete;
mod earlier;
mod figures;
mod fill;
mod meaning;
mod message;
mod names;
mod nouns;
mod params;
mod phrase;
mod pick;
mod questions;
mod recipients;
mod refer;
mod run;
mod unclear;
mod values;
mod wishes;
mod words;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use meaning::Meaning;
pub use run::{answer, input_of};

/// A tool that a plan may use.
#[derive(Clone, Copy)]
pub struct Tool<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub about: &'a str,
    /// Words that people use for it and that its other texts do not have.
    pub also: &'a str,
    /// JSON schemas.
    pub input: &'a Value,
    pub output: &'a Value,
    /// It sends, publishes, buys or changes something outside.
    pub acts: bool,
}

/// What an owner wants.
pub struct Objective<'a> {
    pub text: &'a str,
    pub params: &'a Map<String, Value>,
}

/// Why there is no plan.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The words that were not understood.
    pub clause: String,
    pub why: String,
    /// Names of at most five tools that come nearest.
    pub nearest: Vec<String>,
}

/// At most [`MAX_TASKS`] tasks; each needs only earlier ones.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Plan {
    pub summary: String,
    pub tasks: Vec<Task>,
}

#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    ToolCall,
    Question,
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Task {
    pub kind: Kind,
    /// The name of the tool of a call.
    pub tool: Option<String>,
    pub description: String,
    pub reason: String,
    /// Its depth in the graph, from 1.
    pub phase: u32,
    /// Places of earlier tasks.
    pub needs: Vec<usize>,
    pub input: BTreeMap<String, Source>,
    /// Of a question.
    pub asks: Option<Asked>,
}

/// A question to the owner.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Asked {
    pub text: String,
    /// The argument that the answer fills, what it means, and its schema.
    pub argument: String,
    pub meaning: Meaning,
    pub schema: Value,
}

/// Where the value of an argument comes from.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Words of the objective.
    Value(Value),
    /// A member of the params.
    Param(String),
    /// A value of an earlier task's result, by a JSON pointer.
    Result { task: usize, pointer: String },
    /// Plain text, put together.
    Text { parts: Vec<Part> },
    /// What the owner answered to an earlier question.
    Answer { task: usize },
}

/// A part of a text.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Words of the objective.
    Words(String),
    /// A value of an earlier task's result, shown as plain text.
    Result { task: usize, pointer: String },
}

/// Most tasks of a plan, and the longest objective, in bytes.
pub const MAX_TASKS: usize = 100;
pub const MAX_TEXT: usize = 10_000;

/// Plans an objective. Refuses what no rule understands, and invents no value.
///
/// # Errors
/// The words that were not understood, and why.
pub fn plan(objective: &Objective<'_>, tools: &[Tool<'_>]) -> Result<Plan, Refusal> {
    build::plan(objective, tools)
}

#[cfg(test)]
mod sending;
#[cfg(test)]
mod tests;
