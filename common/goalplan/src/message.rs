//! What a message says, and what a call or a browser is to reach.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::build::Builder;
use crate::clauses::{Clause, message_at};
use crate::fill::Filler;
use crate::meaning::{Meaning, Slot};
use crate::values::Found;
use crate::words::{FILLERS, PRONOUNS, Token};
use crate::{Part, Source, earlier, phrase};

const MAX_SUBJECT: usize = 80;

impl Builder<'_> {
    /// The body and the subject of a message, and what a call is to reach.
    pub(crate) fn message(&self, clause: &Clause, at: usize, filler: &Filler, input: &mut BTreeMap<String, Source>) {
        let slots = &self.picker.slots[at];
        let reading = filler.reading.as_ref();
        let (subject, quoted) = reading.map_or((None, None), |reading| (reading.subject, reading.body));
        let empty: Vec<&Slot> = slots.iter().filter(|slot| !input.contains_key(&slot.name)).collect();
        for slot in empty {
            let source = match slot.meaning {
                Meaning::Subject => subject.map(|at| Source::Value(Value::from(clause.tokens[at].text.as_str()))),
                Meaning::Body if reading.is_some() => self.body(clause, quoted),
                Meaning::Query if slot.required && says_what(clause, filler) => {
                    Some(Source::Value(Value::from(task_words(clause, filler))))
                }
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

    /// The tasks whose results a message passes on: the last ones that looked something up, or else a call that tells
    /// what it was answered.
    fn told(&self) -> Vec<usize> {
        let all = || self.calls.iter().map(|call| call.task);
        let last: Vec<usize> = all().filter(|task| self.last.contains(task) && !self.acts(*task)).collect();
        if !last.is_empty() {
            return last;
        }
        let tells = |task: &usize| {
            let call = self.calls.iter().find(|call| call.task == *task);
            self.last.contains(task)
                && call.is_some_and(|call| !earlier::telling(self.picker.tools[call.tool].output).is_empty())
        };
        let answered: Vec<usize> = all().filter(tells).collect();
        if answered.is_empty() { all().filter(|task| !self.acts(*task)).collect() } else { answered }
    }

    /// A quotation, the words after "saying", or what was found before.
    pub(crate) fn body(&self, clause: &Clause, quoted: Option<usize>) -> Option<Source> {
        if let Some(at) = quoted {
            return Some(Source::Value(Value::from(clause.tokens[at].text.as_str())));
        }
        if let Some(from) = message_at(&clause.tokens).filter(|from| *from < clause.tokens.len()) {
            return Some(Source::Value(Value::from(phrase::slice(clause, from, clause.tokens.len()))));
        }
        let tasks = self.told();
        let part = |task: usize| {
            let call = self.calls.iter().find(|call| call.task == task);
            let pointer = call.map(|call| earlier::telling(self.picker.tools[call.tool].output)).unwrap_or_default();
            Part::Result { task, pointer }
        };
        let parts: Vec<Part> = tasks.into_iter().map(part).collect();
        (!parts.is_empty()).then_some(Source::Text { parts })
    }
}

/// Whether a clause says more than whom to reach: not "Call Ada".
pub(crate) fn says_what(clause: &Clause, filler: &Filler) -> bool {
    let is_value = |at: usize| {
        filler.found.iter().any(|found| found.from <= at && at < found.to && found.meaning == Meaning::Phone)
    };
    let plain = |token: &Token| {
        token.is(FILLERS) || token.is(PRONOUNS) || token.is(&["number", "find", "found", "each", "one"])
    };
    let says = |at: usize| !is_value(at) && !plain(&clause.tokens[at]) && !clause.tokens[at].is_capital();
    (1..clause.tokens.len()).any(says)
}

/// What is to be done in a call or a browser: the clause without the number, where that stands first.
fn task_words(clause: &Clause, filler: &Filler) -> String {
    let tokens = &clause.tokens;
    let is_recipient =
        |found: &&Found| filler.reading.as_ref().is_some_and(|reading| reading.recipients.contains(&found.from));
    let all: Vec<&Found> = filler.found.iter().filter(is_recipient).collect();
    let plain = |token: &Token| token.is(FILLERS) || token.is(PRONOUNS);
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return clause.text.clone() };
    let from = last.to + tokens[last.to..].iter().take_while(|token| token.is(&["and", "to"])).count();
    match from < tokens.len() && tokens[..first.from].iter().skip(1).all(plain) {
        true => phrase::slice(clause, from, tokens.len()),
        false => clause.text.clone(),
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
