//! Reads a task into steps: sentences into clauses, each clause by its verb. What no rule reads makes the whole task
//! refused.

use super::clause::{Clause, clauses};
use super::step::{Step, What, hidden};
use super::target::Target;
use super::words::{Token, joined, tokens};
use super::{ask, choose, doubts, fill, login, mail, moving, pairs, shop, special, verbs};

/// Longest task, in bytes.
const MOST_TASK: usize = 8_000;
/// Most steps of a task.
const MOST_STEPS: usize = 200;

/// What the clauses before one leave to it.
#[derive(Default)]
pub struct Reading {
    /// It is to be looked for behind tabs, sections, menus and pages.
    pub explore: bool,
    /// A phrase that says where: "For the user @leo, …".
    pub context: Option<String>,
    pub optional: bool,
    /// A value was found or copied.
    pub kept: bool,
    /// The clause before looked for a thing, and this one asks about it.
    pub asks_of_found: bool,
    pub steps: Vec<Step>,
}

/// A task that was understood.
pub struct Read {
    pub steps: Vec<Step>,
    /// Whether dialogs of the browser that ask something are accepted; `None`: the task does not say.
    pub accepts: Option<bool>,
}

/// Reads a task.
///
/// # Errors
/// The words that were not understood.
pub fn read(task: &str) -> Result<Read, Vec<String>> {
    if task.len() > MOST_TASK {
        return Err(vec![format!("the task is longer than {MOST_TASK} bytes")]);
    }
    let mut words = tokens(task);
    if words.first().is_some_and(|t| t.is(&["task"]) && t.after == Some(':')) {
        words.remove(0);
    }
    if let Some(steps) = mail::read(&words).or_else(|| special::read(&words)) {
        return Ok(Read { steps, accepts: None });
    }
    let unsafe_parts = doubts::doubts(&words);
    if !unsafe_parts.is_empty() {
        return Err(unsafe_parts);
    }
    let accepts = doubts::answer_to_dialogs(&words)?;
    let mut reading = Reading::default();
    let mut failed = Vec::new();
    let list = clauses(&words);
    for (at, clause) in list.iter().enumerate() {
        if accepts.is_some() && doubts::is_about_dialog(&clause.tokens) {
            continue;
        }
        match one(clause, list.get(at + 1), &mut reading) {
            Some(what) => reading.push(&clause.tokens, what),
            None => failed.push(joined(&clause.tokens)),
        }
    }
    if reading.steps.is_empty() && failed.is_empty() {
        failed.push(task.chars().take(200).collect());
    }
    if reading.steps.len() > MOST_STEPS {
        failed.push(format!("more than {MOST_STEPS} steps"));
    }
    if failed.is_empty() { Ok(Read { steps: reading.steps, accepts }) } else { Err(failed) }
}

impl Reading {
    fn push(&mut self, said: &[Token], whats: Vec<What>) {
        // One sentence may hold a user and a password: no step of it shows the password.
        let said = hidden(&joined(said), &whats);
        for what in whats {
            self.steps.push(Step { said: said.clone(), what, optional: self.optional });
        }
    }

    /// A target with what was said before it.
    #[must_use]
    pub fn target(&self, tokens: &[Token]) -> Target {
        let mut target = Target::read(tokens);
        if target.near.is_none() {
            target.near = self.context.clone().map(|phrase| (super::target::Relation::Of, phrase));
        }
        target
    }
}

/// The steps of a clause; `None` if no rule reads it.
fn one(clause: &Clause, next: Option<&Clause>, reading: &mut Reading) -> Option<Vec<What>> {
    let tokens = &clause.tokens;
    let first = tokens.first()?;
    reading.optional = clause.optional;
    if clause.context {
        reading.context = Some(super::clause::phrase(&tokens[1..])).filter(|p| !p.is_empty());
        return Some(Vec::new());
    }
    reading.asks_of_found = reading.explore && clause.follows;
    if !clause.follows {
        reading.explore = false;
    }
    let next_finds = next.is_some_and(|n| n.tokens.first().is_some_and(|t| t.is(&["find", "locate"])));
    let rest = &tokens[1..];
    // A line of a list of details: "Name: Ada".
    if pairs::is_line(tokens) && !first.is(&["click", "press", "open", "select", "choose", "answer", "tell", "return"])
    {
        return pairs::details(tokens).map(|list| fill::steps(&list));
    }
    // "Fill in the form:", with its details on the lines behind.
    if next.is_some_and(|n| pairs::is_line(&n.tokens)) && introduces(first, rest) {
        return Some(Vec::new());
    }

    if let Some(steps) = shop::read(first, rest) {
        return Some(steps);
    }
    match first.low.as_str() {
        _ if first.quoted => None,
        "find" | "look" | "check" | "see" | "identify" if ask::is_value(rest) => ask::read(first, rest, reading),
        "find" | "locate" | "look" | "identify" => verbs::find(rest, reading),
        "expand" | "collapse" | "unfold" if next_finds && rest.iter().all(|t| !t.quoted) => verbs::explore(reading),
        "switch" | "navigate" | "browse" if verbs::through(rest) => verbs::explore(reading),
        "return" if rest.first().is_some_and(|t| t.is(&["to", "back"])) => verbs::open(first, rest, reading),
        "open" | "visit" | "go" | "navigate" | "load" | "browse" | "view" | "proceed" if !rest.is_empty() => {
            verbs::open(first, rest, reading)
        }
        "click" | "tap" | "press" | "hit" | "push" | "doubleclick" | "double-click" | "right-click" => {
            verbs::click(first, rest, reading)
        }
        "double" | "right" if rest.first().is_some_and(|t| t.is(&["click"])) => {
            verbs::click(first, &rest[1..], reading)
        }
        "select" | "choose" | "pick" | "set" | "change" | "update" | "use" | "mark" => {
            choose::read(first, rest, reading)
        }
        "check" | "tick" | "uncheck" | "untick" | "enable" | "disable" | "toggle" | "turn" => {
            choose::check(first, rest, reading)
        }
        "enter" | "type" | "fill" | "input" | "write" | "put" | "insert" | "paste" | "complete" => {
            fill::read(rest, reading)
        }
        "copy" => verbs::copy(rest, reading),
        "upload" | "attach" => verbs::upload(rest, reading),
        "take" | "capture" | "make" if rest.iter().any(|t| t.is(&["screenshot", "screenshots"])) => {
            Some(vec![What::Screenshot])
        }
        "search" => fill::search(rest),
        "log" | "login" | "sign" if !login::is_log_out(rest) => login::read(rest),
        "drag" | "move" => special::drag(rest),
        "expand" | "collapse" | "unfold" => verbs::expand(rest),
        "switch" => moving::switch(rest, reading),
        "scroll" => moving::scroll(rest),
        "wait" => moving::wait(rest),
        "hover" => moving::hover(rest, reading),
        "focus" => moving::focus(rest, reading),
        "highlight" => Some(vec![What::Highlight(Target::read(rest))]),
        "submit" => verbs::submit(rest, reading),
        "send" if rest.iter().all(|t| t.is(&["the", "it", "form", "message", "this", "off", "my", "request"])) => {
            Some(vec![What::Submit])
        }
        "close" | "dismiss" => verbs::close(rest, reading),
        "generate" | "solve" | "sort" | "order" | "buy" | "book" => special::clause(first, rest),
        "give" | "make" if rest.iter().any(|t| t.is(&["style", "color", "colour"])) => special::clause(first, rest),
        "let" | "show" if !rest.first().is_some_and(|t| t.is(&["me"])) => None,
        "let" | "show" | "read" | "get" | "extract" | "tell" | "return" | "report" | "what" | "what's" | "how"
        | "which" | "is" | "are" | "who" | "when" | "where" | "list" | "count" | "give" | "does" | "note" => {
            ask::read(first, rest, reading)
        }
        _ => verbs::generic(first, rest, reading),
    }
}

/// Whether a clause only says that a list of details follows.
fn introduces(first: &Token, rest: &[Token]) -> bool {
    let is_fill = first.is(&["fill", "enter", "complete", "type", "use", "using", "with", "input", "put"]);
    let rest = if rest.first().is_some_and(|t| t.is(&["in", "out", "up"])) { &rest[1..] } else { rest };
    let lead = pairs::lead(rest);
    let purpose = |t: &Token| t.is(&["to", "complete", "fill", "in", "out", "the", "contact", "form", "it"]);
    is_fill && (rest.is_empty() || (lead > 0 && rest[lead..].iter().all(purpose)))
}
