//! The graph of tasks, clause by clause.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::around::{is_courtesy, is_report, merged, points_to, sent_object};
use crate::clauses::{self, Clause};
use crate::earlier::{self, Output};
use crate::fill::{Fill, Filler};
use crate::meaning::Meaning;
use crate::pick::Picker;
use crate::values;
use crate::words::{FILLERS, Token, number_word};
use crate::{Kind, MAX_TASKS, MAX_TEXT, Objective, Part, Plan, Refusal, Source, Task, Tool, recipients, unclear};

/// Most clauses of an objective, and most repetitions of one clause.
const MAX_CLAUSES: usize = 40;
const MAX_REPEATS: usize = 20;
/// How a reason names the words that have no place in a call.
const LEFT: &str = "without a place in this call";

/// A call of the plan so far.
pub(crate) struct Call {
    pub task: usize,
    pub tool: usize,
    pub outputs: Vec<Output>,
}

pub(crate) struct Builder<'a> {
    pub picker: Picker<'a>,
    pub params: &'a Map<String, Value>,
    pub text: &'a str,
    pub tasks: Vec<Task>,
    pub calls: Vec<Call>,
    /// How many calls there were before this clause.
    pub before: usize,
    /// The tasks of the last clause, and its words.
    pub last: Vec<usize>,
    pub last_words: String,
    /// The words of the first clause.
    pub first_words: String,
}

pub(crate) fn plan(objective: &Objective<'_>, tools: &[Tool<'_>]) -> Result<Plan, Refusal> {
    let refused =
        |clause: &str, why: &str| Refusal { clause: clause.to_owned(), why: why.to_owned(), nearest: Vec::new() };
    if objective.text.len() > MAX_TEXT {
        return Err(refused(&shown(objective.text), "the objective is too long: at most 10,000 bytes are read"));
    }
    if objective.text.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t' | '\r')) {
        let why = "it has control characters: write plain text";
        return Err(refused(&shown(&objective.text.replace(char::is_control, " ")), why));
    }
    let clauses = merged(objective.text, clauses::split(objective.text));
    if clauses.len() > MAX_CLAUSES {
        return Err(refused(&shown(objective.text), "the objective has too many parts: at most 40 are read"));
    }
    clauses.iter().try_for_each(unclear::refuse_unclear)?;
    let mut builder = Builder {
        picker: Picker::new(tools),
        params: objective.params,
        text: objective.text,
        tasks: Vec::new(),
        calls: Vec::new(),
        before: 0,
        last: Vec::new(),
        last_words: String::new(),
        first_words: clauses.first().map(|clause| clause.text.clone()).unwrap_or_default(),
    };
    for clause in &clauses {
        builder.clause(clause)?;
    }
    if builder.tasks.is_empty() {
        return Err(refused(objective.text.trim(), "it asks for nothing that a tool does"));
    }
    Ok(Plan { summary: summary(objective.text, &builder.tasks), tasks: builder.tasks })
}

/// The first words of an objective.
fn shown(text: &str) -> String {
    let start: String = text.chars().take(400).collect();
    start.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

fn summary(text: &str, tasks: &[Task]) -> String {
    let calls = tasks.iter().filter(|task| task.kind == Kind::ToolCall).count();
    let questions = tasks.len() - calls;
    let first = shown(text);
    let asked = if questions > 0 { format!(", {questions} questions") } else { String::new() };
    format!("{first} ({calls} tool calls{asked})")
}

impl Builder<'_> {
    fn clause(&mut self, clause: &Clause) -> Result<(), Refusal> {
        if is_report(clause) && !self.calls.is_empty() || is_courtesy(clause) {
            return Ok(());
        }
        let found = values::find(&clause.tokens);
        if let Some((from, to)) = sent_object(clause, &found) {
            recipients::read(clause, &found, false).map_err(|why| Refusal {
                clause: clause.text.clone(),
                why,
                nearest: Vec::new(),
            })?;
            let (object, rest) = clause.parted(from, to);
            if self.is_looked_up(&object) {
                if self.first_words == clause.text {
                    self.first_words = object.text;
                }
                return self.clause(&rest);
            }
        }
        if let Some(parts) = self.nouns(clause, &found)? {
            let first = self.tasks.len();
            for part in &parts {
                self.clause(part)?;
            }
            self.last = (first..self.tasks.len()).filter(|task| self.tasks[*task].kind == Kind::ToolCall).collect();
            return Ok(());
        }
        let at = self.picker.pick(clause, &found, &self.last_words)?;
        let repeats = self.repeats(clause)?;
        let first = self.tasks.len();
        self.before = self.calls.len();
        for item in 0..repeats.unwrap_or(1) {
            self.calls_of(clause, at, repeats.map(|_| item))?;
        }
        let made: Vec<usize> =
            (first..self.tasks.len()).filter(|task| self.tasks[*task].kind == Kind::ToolCall).collect();
        if !made.is_empty() {
            self.last = made;
        }
        self.last_words = crate::pick::unquoted(&clause.tokens);
        Ok(())
    }

    /// Plans what a message is to say, if a tool that only looks brings it and nothing is left to ask.
    fn is_looked_up(&mut self, clause: &Clause) -> bool {
        let known = self.words_before(clause);
        let done = self.known_words(0, true);
        let is_new = |token: &Token| {
            let is_known = known.contains(&token.lower) || done.contains(&base::words::stem(&token.lower));
            !FILLERS.contains(&token.lower.as_str()) && !is_known
        };
        let (tasks, calls) = (self.tasks.len(), self.calls.len());
        let (last, words) = (self.last.clone(), self.last_words.clone());
        let planned = clause.tokens.iter().any(is_new) && self.clause(clause).is_ok();
        let is_whole = |task: usize| {
            self.tasks[task].kind == Kind::ToolCall && !self.acts(task) && !self.tasks[task].reason.contains(LEFT)
        };
        if planned && self.tasks.len() > tasks && (tasks..self.tasks.len()).all(is_whole) {
            return true;
        }
        self.tasks.truncate(tasks);
        self.calls.truncate(calls);
        (self.last, self.last_words) = (last, words);
        false
    }

    /// "each of the first three": so many items of an earlier result.
    fn repeats(&self, clause: &Clause) -> Result<Option<usize>, Refusal> {
        let all = &clause.tokens;
        let Some(at) = all.iter().position(|token| token.is(&["each", "every", "all", "first", "top", "both"])) else {
            return Ok(None);
        };
        let is_earlier = !self.calls.is_empty()
            && !values::find(all).iter().any(|found| earlier::EXACT.contains(&found.meaning) && found.from > at);
        let number =
            all[at..].iter().take(5).find_map(|token| number_word(&token.lower).or_else(|| token.text.parse().ok()));
        let is_each =
            all[at].is(&["each", "every"]) || number.is_some() && all[at].is(&["first", "top", "all", "both"]);
        if !is_earlier || !(is_each || all[at].is(&["both"])) {
            return Ok(None);
        }
        let number = number.or_else(|| all[at].is(&["both"]).then_some(2)).or_else(|| self.asked_for());
        let refused =
            |why: &str| Err(Refusal { clause: clause.text.clone(), why: why.to_owned(), nearest: Vec::new() });
        match number.and_then(|number| usize::try_from(number).ok()) {
            Some(number) if (1..=MAX_REPEATS).contains(&number) => Ok(Some(number)),
            Some(_) => refused("a clause is repeated at most 20 times"),
            None => refused("how many there will be is not known: write \u{201c}each of the first three\u{201d}"),
        }
    }

    /// How many results the last call asks for.
    fn asked_for(&self) -> Option<u64> {
        let call = self.calls.last()?;
        let counts = self.picker.slots[call.tool].iter().filter(|slot| slot.meaning == Meaning::Count);
        counts.filter_map(|slot| self.tasks[call.task].input.get(&slot.name)).find_map(|source| match source {
            Source::Value(value) => value.as_u64(),
            _ => None,
        })
    }

    /// The calls of one clause: one, or one for each value of a list.
    fn calls_of(&mut self, clause: &Clause, at: usize, item: Option<usize>) -> Result<(), Refusal> {
        let tool = self.picker.tools[at];
        let slots = self.picker.slots[at].clone();
        let mut filler = Filler::new(clause, self.params, &tool, &slots, item.is_some());
        let mut context: Vec<Filler> =
            clause.context.iter().map(|beside| Filler::new(beside, self.params, &tool, &slots, false)).collect();
        let refused = |why: String| Refusal { clause: clause.text.clone(), why, nearest: vec![tool.name.to_owned()] };
        if recipients::reaches(tool.acts, &slots) {
            let talks = recipients::talks(&slots);
            let reading = recipients::read(clause, &filler.found, talks).map_err(refused)?;
            filler.keep(reading, talks);
        }
        let mut input = BTreeMap::new();
        let mut many: Option<(String, Vec<Value>)> = None;
        for slot in &slots {
            let mut filled = filler.fill(slot).map_err(refused)?;
            for beside in &mut context {
                if filled == Fill::Nothing
                    && slot.meaning != Meaning::Query
                    && (!tool.acts || points_to(clause, beside.clause, filler.reading.is_some()))
                {
                    filled = beside.fill(slot).map_err(refused)?;
                }
            }
            match filled {
                Fill::Nothing => {}
                Fill::One(source) => drop(input.insert(slot.name.clone(), source)),
                Fill::Many(values) if many.is_none() && values.len() <= MAX_REPEATS => {
                    many = Some((slot.name.clone(), values))
                }
                Fill::Many(_) => {
                    return Err(refused(format!(
                        "{} has several values, and so has another argument: write a sentence for each",
                        slot.name
                    )));
                }
            }
        }
        if tool.acts {
            self.message(clause, at, &filler, &mut input);
        }
        if let Some(reading) = &filler.reading {
            let many = many.as_ref().map(|(_, values)| values.as_slice()).unwrap_or_default();
            recipients::placed(clause, &filler.found, reading, input.values(), many).map_err(refused)?;
        }
        let filled = |name: &str| many.as_ref().is_some_and(|(of, _)| of == name);
        for slot in slots.iter().filter(|slot| !filled(&slot.name)) {
            self.refer(clause, at, slot, item, &mut input);
        }
        self.beside(at, &filler, &context, &input).map_err(|(clause, why)| Refusal {
            clause,
            why,
            nearest: vec![tool.name.to_owned()],
        })?;
        let fillers: Vec<&Filler> = std::iter::once(&filler).chain(&context).collect();
        let left = self.complete(at, &fillers, &input, many.is_some())?;
        let (name, values) = many.map_or((String::new(), vec![Value::Null]), |many| many);
        let asked = input;
        for value in values {
            let mut input = asked.clone();
            if !name.is_empty() {
                input.insert(name.clone(), Source::Value(value));
            }
            self.ask(clause, at, &mut input)?;
            self.call(clause, at, input, &left)?;
        }
        Ok(())
    }

    pub(crate) fn acts(&self, task: usize) -> bool {
        self.calls.iter().any(|call| call.task == task && self.picker.tools[call.tool].acts)
    }

    fn call(
        &mut self,
        clause: &Clause,
        at: usize,
        input: BTreeMap<String, Source>,
        left: &[String],
    ) -> Result<(), Refusal> {
        let tool = self.picker.tools[at];
        let same = |task: &Task| task.tool.as_deref() == Some(tool.name) && task.input == input;
        if self.tasks.iter().any(same) {
            return Ok(());
        }
        let mut needs: Vec<usize> = input.values().flat_map(needed).collect();
        if tool.acts {
            // It acts once everything that was asked for before is known.
            needs.extend(self.calls.iter().map(|call| call.task).filter(|task| !self.acts(*task)));
            needs.extend(self.last.iter().copied().filter(|_| clause.follows));
        }
        needs.sort_unstable();
        needs.dedup();
        let shown = if tool.title.is_empty() { tool.name } else { tool.title };
        let description = format!("{shown}: {}", clause.text.chars().take(300).collect::<String>());
        let words: String = clause.text.chars().take(300).collect();
        let reason = match left.is_empty() {
            true => format!("\u{201c}{words}\u{201d}"),
            false => format!("\u{201c}{words}\u{201d}; {LEFT}: {}", left.join(", ")),
        };
        let task = Task {
            kind: Kind::ToolCall,
            tool: Some(tool.name.to_owned()),
            description,
            reason,
            phase: 1,
            needs,
            input,
            asks: None,
        };
        let task = self.push(task)?;
        self.calls.push(Call { task, tool: at, outputs: earlier::outputs(tool.output) });
        Ok(())
    }

    pub(crate) fn push(&mut self, mut task: Task) -> Result<usize, Refusal> {
        if self.tasks.len() >= MAX_TASKS {
            return Err(Refusal {
                clause: shown(self.text),
                why: format!("the objective has more than {MAX_TASKS} tasks"),
                nearest: Vec::new(),
            });
        }
        task.phase = 1 + task.needs.iter().map(|need| self.tasks[*need].phase).max().unwrap_or(0);
        self.tasks.push(task);
        Ok(self.tasks.len() - 1)
    }
}

fn needed(source: &Source) -> Vec<usize> {
    match source {
        Source::Value(_) | Source::Param(_) => Vec::new(),
        Source::Result { task, .. } | Source::Answer { task } => vec![*task],
        Source::Text { parts } => parts
            .iter()
            .filter_map(|part| if let Part::Result { task, .. } = part { Some(*task) } else { None })
            .collect(),
    }
}
