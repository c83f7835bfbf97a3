//! The graph of tasks, clause by clause.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::clauses::{self, Clause, message_at};
use crate::earlier::{self, Output};
use crate::fill::{Fill, Filler};
use crate::meaning::{Meaning, Slot, shape};
use crate::pick::Picker;
use crate::values;
use crate::words::{FILLERS, PRONOUNS, RESULTS, Token, number_word};
use crate::{Asked, Kind, MAX_TASKS, MAX_TEXT, Objective, Part, Plan, Refusal, Source, Task, Tool, phrase};

/// Most clauses of an objective, and most repetitions of one clause.
const MAX_CLAUSES: usize = 40;
const MAX_REPEATS: usize = 20;
const MAX_SUBJECT: usize = 80;

/// A call of the plan so far.
struct Call {
    task: usize,
    tool: usize,
    outputs: Vec<Output>,
}

struct Builder<'a> {
    picker: Picker<'a>,
    params: &'a Map<String, Value>,
    text: &'a str,
    tasks: Vec<Task>,
    calls: Vec<Call>,
    /// How many calls there were before this clause.
    before: usize,
    /// The tasks of the last clause, and its words.
    last: Vec<usize>,
    last_words: String,
    /// The words of the first clause.
    first_words: String,
}

pub(crate) fn plan(objective: &Objective<'_>, tools: &[Tool<'_>]) -> Result<Plan, Refusal> {
    let refused =
        |clause: &str, why: &str| Refusal { clause: clause.to_owned(), why: why.to_owned(), nearest: Vec::new() };
    if objective.text.len() > MAX_TEXT {
        return Err(refused("", "the objective is too long: at most 10,000 bytes are read"));
    }
    let clauses = merged(objective.text, clauses::split(objective.text));
    if clauses.len() > MAX_CLAUSES {
        return Err(refused("", "the objective has too many parts: at most 40 are read"));
    }
    clauses.iter().try_for_each(clauses::refuse_unclear)?;
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

fn summary(text: &str, tasks: &[Task]) -> String {
    let calls = tasks.iter().filter(|task| task.kind == Kind::ToolCall).count();
    let questions = tasks.len() - calls;
    let first: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
    let asked = if questions > 0 { format!(", {questions} questions") } else { String::new() };
    format!("{first} ({calls} tool calls{asked})")
}

/// What an assistant is to say on the phone, and the steps in a browser, belong to one call.
fn merged(text: &str, clauses: Vec<Clause>) -> Vec<Clause> {
    const CALLS: &[&str] = &["call", "phone", "ring", "dial"];
    const SPEAKS: &[&str] = &["ask", "tell", "say", "book", "reserve", "inquire", "order", "confirm"];
    const OPENS: &[&str] = &["open", "go", "visit", "navigate", "browse", "log", "sign"];
    const STEPS: &[&str] =
        &["click", "fill", "type", "select", "submit", "press", "download", "choose", "log", "sign", "upload"];
    let mut merged: Vec<Clause> = Vec::new();
    for clause in clauses {
        let verb = |clause: &Clause, verbs: &[&str]| clause.tokens.first().is_some_and(|token| token.is(verbs));
        match merged.last_mut() {
            Some(before)
                if verb(before, CALLS)
                    && verb(&clause, SPEAKS)
                    && !clause.tokens.get(1).is_some_and(|token| token.is(&["me"]))
                    || verb(before, OPENS) && verb(&clause, STEPS) =>
            {
                let end = clause.start + clause.text.len();
                before.text = text.get(before.start..end).unwrap_or(&before.text).to_owned();
                before.tokens.extend(clause.tokens);
            }
            _ => merged.push(clause),
        }
    }
    merged
}

impl Builder<'_> {
    fn clause(&mut self, clause: &Clause) -> Result<(), Refusal> {
        if is_report(clause) && !self.calls.is_empty() || is_courtesy(clause) {
            return Ok(());
        }
        let found = values::find(&clause.tokens);
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
        let mut filler = Filler::new(clause, self.params, &tool, item.is_some());
        let mut input = BTreeMap::new();
        let mut many: Option<(String, Vec<Value>)> = None;
        for slot in &slots {
            let refused =
                |why: String| Refusal { clause: clause.text.clone(), why, nearest: vec![tool.name.to_owned()] };
            match filler.fill(slot).map_err(refused)? {
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
        let filled = |name: &str| many.as_ref().is_some_and(|(of, _)| of == name);
        for slot in slots.iter().filter(|slot| !filled(&slot.name)) {
            self.refer(clause, at, slot, item, &mut input);
        }
        self.complete(clause, at, &filler, &input, many.is_some())?;
        let (name, values) = many.map_or((String::new(), vec![Value::Null]), |many| many);
        let asked = input;
        for value in values {
            let mut input = asked.clone();
            if !name.is_empty() {
                input.insert(name.clone(), Source::Value(value));
            }
            self.ask(clause, at, &mut input)?;
            self.call(clause, at, input)?;
        }
        Ok(())
    }

    /// The body and the subject of a message, and what a call is to reach.
    fn message(&self, clause: &Clause, at: usize, filler: &Filler, input: &mut BTreeMap<String, Source>) {
        let slots = &self.picker.slots[at];
        let sends = slots.iter().any(|slot| matches!(slot.meaning, Meaning::Email | Meaning::Phone));
        let subject_at = clause.tokens.iter().position(|token| token.is(&["subject", "titled", "title"]));
        let free = |at: &usize| clause.tokens[*at].quoted && !filler.used[*at];
        let subject = subject_at
            .and_then(|from| (from + 1..clause.tokens.len().min(from + 3)).find(|at| clause.tokens[*at].quoted));
        let empty: Vec<&Slot> = slots.iter().filter(|slot| !input.contains_key(&slot.name)).collect();
        for slot in empty {
            let source = match slot.meaning {
                Meaning::Subject => subject.map(|at| Source::Value(Value::from(clause.tokens[at].text.as_str()))),
                Meaning::Body if sends => {
                    let quoted = (0..clause.tokens.len()).filter(free).find(|at| Some(*at) != subject);
                    self.body(clause, quoted)
                }
                Meaning::Query if slot.required => Some(Source::Value(Value::from(task_words(clause, filler)))),
                _ => None,
            };
            if let Some(source) = source {
                input.insert(slot.name.clone(), source);
            }
        }
        let subject = slots
            .iter()
            .find(|slot| slot.meaning == Meaning::Subject && slot.required && !input.contains_key(&slot.name));
        let body = slots.iter().find(|slot| slot.meaning == Meaning::Body).and_then(|slot| input.get(&slot.name));
        if let (Some(slot), Some(body)) = (subject, body) {
            let words = match body {
                Source::Value(Value::String(text)) => text.as_str(),
                _ => self.first_words.as_str(),
            };
            input.insert(slot.name.clone(), Source::Value(Value::from(headline(words))));
        }
    }

    /// A quotation, the words after "saying", or what was found before.
    fn body(&self, clause: &Clause, quoted: Option<usize>) -> Option<Source> {
        if let Some(at) = quoted {
            return Some(Source::Value(Value::from(clause.tokens[at].text.as_str())));
        }
        if let Some(from) = message_at(&clause.tokens).filter(|from| *from < clause.tokens.len()) {
            return Some(Source::Value(Value::from(phrase::slice(clause, from, clause.tokens.len()))));
        }
        let tasks: Vec<usize> = match &self.last[..] {
            [] => return None,
            last => self.calls.iter().map(|call| call.task).filter(|task| last.contains(task)).collect(),
        };
        let tasks = if tasks.iter().all(|task| self.acts(*task)) {
            self.calls.iter().map(|call| call.task).filter(|task| !self.acts(*task)).collect()
        } else {
            tasks
        };
        let part = |task: usize| {
            let call = self.calls.iter().find(|call| call.task == task);
            let pointer = call.map(|call| earlier::telling(self.picker.tools[call.tool].output)).unwrap_or_default();
            Part::Result { task, pointer }
        };
        let parts: Vec<Part> = tasks.into_iter().map(part).collect();
        (!parts.is_empty()).then_some(Source::Text { parts })
    }

    fn acts(&self, task: usize) -> bool {
        self.calls.iter().any(|call| call.task == task && self.picker.tools[call.tool].acts)
    }

    /// Fills an argument from what earlier tasks were given or brought.
    fn refer(
        &self,
        clause: &Clause,
        at: usize,
        slot: &Slot,
        item: Option<usize>,
        input: &mut BTreeMap<String, Source>,
    ) {
        let acts = self.picker.tools[at].acts;
        let points = clause
            .tokens
            .iter()
            .any(|token| token.is(PRONOUNS) || token.is(RESULTS) || token.is(&["each", "first", "same"]));
        let current = input.get(&slot.name);
        let is_pronoun = matches!(current, Some(Source::Value(Value::String(text))) if text.split(' ').all(|word| PRONOUNS.contains(&word.to_lowercase().as_str()) || RESULTS.contains(&word) || FILLERS.contains(&word) || matches!(word, "each" | "first" | "same" | "company" | "person" | "three" | "two")));
        let empty = self.picker.slots[at].iter().all(|slot| !slot.required) && input.is_empty();
        let is_free = current.is_none() && (slot.required || empty && points && earlier::EXACT.contains(&slot.meaning))
            || is_pronoun && !acts;
        if !is_free {
            return;
        }
        if let Some(source) = self.given(clause, slot).filter(|_| item.is_none()) {
            input.insert(slot.name.clone(), source);
            return;
        }
        let is_recipient = matches!(
            slot.meaning,
            Meaning::Email | Meaning::Phone | Meaning::Money | Meaning::Iban | Meaning::Number | Meaning::Url
        );
        if acts && (!is_recipient || !finds(clause)) {
            return;
        }
        for call in self.calls[..self.before].iter().rev().filter(|call| !self.picker.tools[call.tool].acts) {
            let Some(mut pointer) = earlier::matching(slot, &call.outputs, points) else { continue };
            if let Some(item) = item {
                let Some(other) = earlier::of_item(&pointer, item) else { continue };
                pointer = other;
            }
            input.insert(slot.name.clone(), Source::Result { task: call.task, pointer });
            return;
        }
    }

    /// "Verify ada@example.com and e-mail her": the value that the objective gave to an earlier task.
    fn given(&self, clause: &Clause, slot: &Slot) -> Option<Source> {
        let person = clause.tokens.iter().any(|token| token.is(&["her", "him", "them", "she", "he", "they"]));
        let thing = clause.tokens.iter().any(|token| token.is(&["it", "this", "that", "same", "its"]));
        let is_meant = match slot.meaning {
            Meaning::Email | Meaning::Phone => {
                person
                    || clause.tokens.iter().any(|token| token.is(&["that", "same", "this"]))
                    || thing && !is_message(clause)
            }
            Meaning::Url | Meaning::Domain | Meaning::Vin | Meaning::Iban => {
                thing || clause.tokens.iter().any(|token| token.is(&["its", "page", "site"]))
            }
            Meaning::Person | Meaning::Company | Meaning::Name | Meaning::Place => person || thing,
            _ => false,
        };
        if !is_meant {
            return None;
        }
        let of = |call: &Call| {
            let slots = self.picker.slots[call.tool].iter().filter(|other| {
                other.meaning == slot.meaning
                    || slot.meaning == Meaning::Name && matches!(other.meaning, Meaning::Person | Meaning::Company)
            });
            slots
                .filter_map(|other| self.tasks[call.task].input.get(&other.name))
                .find(|source| matches!(source, Source::Value(_) | Source::Param(_)))
                .cloned()
        };
        self.calls[..self.before].iter().rev().find_map(of)
    }

    /// Refuses a call that the clause says too little for, or more than the call would do.
    fn complete(
        &self,
        clause: &Clause,
        at: usize,
        filler: &Filler,
        input: &BTreeMap<String, Source>,
        has_many: bool,
    ) -> Result<(), Refusal> {
        let tool = &self.picker.tools[at];
        let slots = &self.picker.slots[at];
        let refused =
            |why: String| Err(Refusal { clause: clause.text.clone(), why, nearest: vec![tool.name.to_owned()] });
        if !slots.is_empty() && !slots.iter().any(|slot| slot.required) && input.is_empty() && !has_many && !tool.acts {
            let names: Vec<&str> = slots.iter().take(6).map(|slot| slot.name.as_str()).collect();
            return refused(format!("it does not say what to look for; {} takes {}", tool.name, names.join(", ")));
        }
        let sends = tool.acts && slots.iter().any(|slot| slot.meaning == Meaning::Body && slot.required);
        if !sends {
            return Ok(());
        }
        let end = message_at(&clause.tokens).unwrap_or(clause.tokens.len());
        let unexplained = |(at, token): (usize, &Token)| {
            let explained = token.quoted
                || filler.used[at]
                || filler.found.iter().any(|found| found.from <= at && at < found.to && found.meaning != Meaning::Date)
                || at == 0
                || FILLERS.contains(&token.lower.as_str())
                || RESULTS.contains(&token.lower.as_str())
                || token.is(PRONOUNS)
                || self.params.keys().take(100).any(|name| crate::words::name_parts(name).contains(&token.lower))
                || self.text_before(clause).contains(&token.lower)
                || token.is(&["what", "person", "reading", "following"]);
            (!explained && token.text.len() > 1).then(|| token.text.clone())
        };
        let words: Vec<String> =
            clause.tokens[..end.min(clause.tokens.len())].iter().enumerate().filter_map(unexplained).take(8).collect();
        if words.is_empty() {
            return Ok(());
        }
        refused(format!(
            "what \u{201c}{}\u{201d} is to mean for {} is not understood. Write the message in quotation marks",
            words.join(" "),
            tool.name
        ))
    }

    /// The objective before a clause, in lower case.
    fn text_before(&self, clause: &Clause) -> String {
        self.text.get(..clause.start).unwrap_or_default().to_lowercase()
    }

    /// Asks the owner for what is missing.
    fn ask(&mut self, clause: &Clause, at: usize, input: &mut BTreeMap<String, Source>) -> Result<(), Refusal> {
        let tool = self.picker.tools[at];
        for slot in self.picker.slots[at].clone() {
            if !slot.required || input.contains_key(&slot.name) {
                continue;
            }
            let text = question(&slot, &tool, &clause.text);
            let schema = tool.input["properties"][&slot.name].clone();
            let asks = Asked { text: text.clone(), argument: slot.name.clone(), meaning: slot.meaning, schema };
            let known = self.tasks.iter().position(|task| task.asks.as_ref() == Some(&asks));
            let task = match known {
                Some(task) => task,
                None => {
                    // What was found before may be what the owner needs to answer.
                    let needs: Vec<usize> = self.last.iter().copied().filter(|task| !self.acts(*task)).collect();
                    let reason =
                        format!("{} needs {}, and neither the objective nor its params have it", tool.name, slot.name);
                    self.push(Task {
                        kind: Kind::Question,
                        tool: None,
                        description: text,
                        reason,
                        phase: 1,
                        needs,
                        input: BTreeMap::new(),
                        asks: Some(asks),
                    })?
                }
            };
            input.insert(slot.name.clone(), Source::Answer { task });
        }
        Ok(())
    }

    fn call(&mut self, clause: &Clause, at: usize, input: BTreeMap<String, Source>) -> Result<(), Refusal> {
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
        let reason = format!("\u{201c}{}\u{201d}", clause.text.chars().take(300).collect::<String>());
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

    fn push(&mut self, mut task: Task) -> Result<usize, Refusal> {
        if self.tasks.len() >= MAX_TASKS {
            return Err(Refusal {
                clause: String::new(),
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

/// "e-mail the address you find": the objective allows a recipient from a result.
fn finds(clause: &Clause) -> bool {
    let tokens = &clause.tokens;
    (1..tokens.len()).any(|at| {
        tokens[at].is(&["find", "found", "get", "discover"]) && tokens[at - 1].is(&["you", "you've", "is", "was", "we"])
    })
}

fn is_message(clause: &Clause) -> bool {
    clause
        .tokens
        .first()
        .is_some_and(|token| token.is(&["email", "e-mail", "mail", "text", "sms", "send", "call", "forward"]))
}

/// "Tell me what you found": results are shown anyway.
fn is_report(clause: &Clause) -> bool {
    let starts = clause
        .tokens
        .first()
        .is_some_and(|token| token.is(&["tell", "give", "show", "report", "return", "let", "present", "list"]));
    starts
        && clause.tokens[1..].iter().all(|token| {
            token.is(RESULTS) || token.is(FILLERS) || token.is(PRONOUNS) || token.is(&["know", "back", "found"])
        })
}

fn is_courtesy(clause: &Clause) -> bool {
    clause.tokens.iter().all(|token| {
        token.is(&[
            "thanks", "thank", "you", "hi", "hello", "please", "very", "much", "a", "lot", "in", "advance", "cheers",
        ])
    })
}

/// What is to be done in a call or a browser: the clause without the number.
fn task_words(clause: &Clause, filler: &Filler) -> String {
    let phone = filler.found.iter().filter(|found| found.meaning == Meaning::Phone).map(|found| found.to).max();
    let from = phone.filter(|from| *from < clause.tokens.len());
    let from =
        from.map(|from| from + clause.tokens[from..].iter().take_while(|token| token.is(&["and", "to"])).count());
    match from.filter(|from| *from < clause.tokens.len()) {
        Some(from) => phrase::slice(clause, from, clause.tokens.len()),
        None => clause.text.clone(),
    }
}

/// The first words of a text, as a subject.
fn headline(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.chars().count() + word.chars().count() >= MAX_SUBJECT {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if word.ends_with(['.', '!', '?']) {
            break;
        }
    }
    let line = line.trim_end_matches([',', ';', ':', '.']).to_owned();
    if line.is_empty() { text.chars().take(MAX_SUBJECT).collect() } else { line }
}

fn question(slot: &Slot, tool: &Tool, clause: &str) -> String {
    let clause: String = clause.chars().take(120).collect();
    let wanted = match slot.meaning {
        Meaning::Email if tool.acts => "Which address should the mail go to".to_owned(),
        Meaning::Phone if tool.acts => "Which phone number, with its country code".to_owned(),
        Meaning::Body => "What should the message say".to_owned(),
        Meaning::Subject => "Which subject should it have".to_owned(),
        Meaning::Money => "Which amount".to_owned(),
        Meaning::Url => "Which web address".to_owned(),
        Meaning::Domain => "Which domain".to_owned(),
        _ => format!("Which {}", slot.parts.join(" ")),
    };
    let (one, ..) = shape(&slot.schema);
    let choices: Vec<&str> = one["enum"].as_array().into_iter().flatten().take(12).filter_map(Value::as_str).collect();
    let about = match (choices.is_empty(), slot.about.is_empty()) {
        (false, _) => format!(" ({})", choices.join(", ")),
        (true, false) => {
            format!(" ({})", slot.about.split(". ").next().unwrap_or_default().chars().take(120).collect::<String>())
        }
        _ => String::new(),
    };
    format!("{wanted} for \u{201c}{clause}\u{201d}?{about}")
}
