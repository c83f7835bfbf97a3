//! Arguments from what earlier tasks were given or brought.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::build::{Builder, Call};
use crate::clauses::Clause;
use crate::meaning::{Meaning, Slot};
use crate::words::{FILLERS, PRONOUNS, RESULTS};
use crate::{Source, earlier};

impl Builder<'_> {
    /// Fills an argument from what earlier tasks were given or brought.
    pub(crate) fn refer(
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
        let her = slot.meaning == Meaning::Person
            && !acts
            && clause.tokens.iter().any(|token| token.is(&["her", "his", "him", "she", "he", "their", "them"]));
        let is_free = current.is_none()
            && (slot.required || her || empty && points && earlier::EXACT.contains(&slot.meaning))
            || is_pronoun && !acts;
        if !is_free {
            return;
        }
        if let Some(source) = self.given(clause, slot).filter(|_| item.is_none()) {
            input.insert(slot.name.clone(), source);
            return;
        }
        // A result is untrusted: it neither names a recipient nor says what is to be done, unless the objective says so.
        let may_be_found = matches!(slot.meaning, Meaning::Email | Meaning::Phone | Meaning::Url);
        if acts && !(may_be_found && finds(clause)) {
            return;
        }
        for call in self.calls[..self.before].iter().rev().filter(|call| !self.picker.tools[call.tool].acts) {
            let about = self.picker.tools[call.tool].about.to_lowercase();
            if slot.meaning == Meaning::Person && !about.contains("people") && !about.contains("person") {
                continue;
            }
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
    pub(crate) fn given(&self, clause: &Clause, slot: &Slot) -> Option<Source> {
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
        let mut given = self.calls[..self.before].iter().rev().filter_map(of);
        let last = given.next()?;
        // "Verify A and B and email her": which one, nobody can tell.
        let is_contact = matches!(slot.meaning, Meaning::Email | Meaning::Phone);
        (!is_contact || given.all(|other| other == last)).then_some(last)
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
