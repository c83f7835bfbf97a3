//! Arguments from the params. They never override the words of the objective.

use serde_json::Value;

use crate::fill::Filler;
use crate::meaning::{Meaning, Slot, shape};
use crate::message::says_what;
use crate::words::{FILLERS, PRONOUNS, RESULTS, Token, name_parts};
use crate::{check, values};

impl Filler<'_> {
    /// A member of the params with the argument's name, or one that the clause names and whose value has the argument's form.
    ///
    /// # Errors
    /// Two members, or a member and words of the objective, that may both be meant.
    pub(crate) fn param(&mut self, slot: &Slot) -> Result<Option<String>, String> {
        let exact = self.params.keys().find(|name| name_parts(name) == slot.parts).cloned();
        let meant = self.meant_params(slot);
        let chosen = exact.or_else(|| meant.first().cloned());
        let Some(name) = chosen else { return Ok(None) };
        let value = self.params[&name].clone();
        if let Some(other) = meant.iter().find(|other| self.params[*other] != value) {
            return Err(format!(
                "the params' {name} and {other} may both be meant. Keep one of them, or write a sentence for each, with its value in it"
            ));
        }
        if self.says_otherwise(slot, &value) {
            return Err(format!("the objective says something else than the params' {name}. Leave one of them out"));
        }
        let is_recipient = self.reading.is_some() && matches!(slot.meaning, Meaning::Email | Meaning::Phone);
        let said = self.sequence(&name_parts(&name));
        if let Some(at) = said.filter(|at| *at > 0 && is_recipient && meant.contains(&name))
            && !self.is_reached(at, at + name_parts(&name).len())
        {
            return Err(format!(
                "whether the params' {name} is the recipient is not clear. Write its value into the sentence, behind \u{201c}to\u{201d}"
            ));
        }
        Ok(Some(name))
    }

    /// The members that the clause names, or that are named like the kind of the argument.
    fn meant_params(&self, slot: &Slot) -> Vec<String> {
        let is_meant = |name: &str, value: &Value| {
            let parts = name_parts(name);
            let said = !parts.is_empty() && self.sequence(&parts).is_some_and(|at| self.is_before_words(at));
            let form = value.as_str().map(crate::words::tokens).map(|tokens| values::find(&tokens));
            let fits = form.is_some_and(|found| found.len() == 1 && found[0].meaning == slot.meaning);
            let is_kind = parts.len() == 1
                && crate::meaning::meaning_of(&parts, &serde_json::json!({"type": "string"}), "") == slot.meaning;
            fits && slot.required && if is_kind { self.free(&[slot.meaning]).is_empty() } else { said }
        };
        let all = self.params.iter().take(100).filter(|(name, value)| is_meant(name, value));
        all.map(|(name, _)| name.clone()).collect()
    }

    fn is_before_words(&self, at: usize) -> bool {
        self.reading.as_ref().is_none_or(|reading| at < reading.words_from)
    }

    /// "Email the customer …", "Send it to our customer": not "the customer's friend" or "about the customer".
    fn is_reached(&self, from: usize, to: usize) -> bool {
        const BEHIND: &[&str] = &["that", "saying", "says", "with", "the", "a", "an", "about", "and", "to", "me"];
        let tokens = &self.clause.tokens;
        let article = |token: &&Token| token.is(&["the", "our", "my", "this", "a"]);
        let lead = from.checked_sub(1 + tokens[..from].iter().rev().take_while(article).count());
        let last = &tokens[to.min(tokens.len()) - 1];
        let is_alone = !self.is_before_words(to)
            || last.pauses()
            || tokens.get(to).is_none_or(|next| next.quoted || next.is(BEHIND));
        let is_lead = lead.is_some_and(|at| at == 0 || tokens[at].is(&["to"]));
        is_lead && is_alone && !last.tail.contains(['\'', '’'])
    }

    /// Whether the clause has another value for an argument than a param.
    fn says_otherwise(&mut self, slot: &Slot, param: &Value) -> bool {
        if let Some(reading) = &self.reading {
            let has_words = reading.words_from < self.clause.tokens.len();
            match slot.meaning {
                Meaning::Body => return reading.body.is_some() || has_words,
                Meaning::Subject => return reading.subject.is_some(),
                Meaning::Query => return says_what(self.clause, self),
                _ => {}
            }
        }
        let used = self.used.clone();
        let said = self.values(slot);
        let one = shape(&slot.schema).0;
        let list = match param {
            Value::Array(items) => items.clone(),
            other => vec![other.clone()],
        };
        let list: Vec<Value> = list.into_iter().map(|value| check::coerced(one, value)).collect();
        let is_other = |value: &Value| !list.contains(value) && (slot.meaning != Meaning::Query || self.is_new(value));
        let is_otherwise = said.iter().any(is_other);
        if said.is_empty() || is_otherwise {
            self.used = used;
        }
        is_otherwise
    }

    /// Whether words say more than the tool's own.
    fn is_new(&self, value: &Value) -> bool {
        let plain = |token: &Token| {
            token.is(FILLERS)
                || token.is(RESULTS)
                || token.is(PRONOUNS)
                || self.own.contains(&base::words::stem(&token.lower))
        };
        value.as_str().is_some_and(|text| crate::words::tokens(text).iter().any(|token| !plain(token)))
    }
}
