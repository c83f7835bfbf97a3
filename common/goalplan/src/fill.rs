//! Fills the arguments of a tool with values of a clause and of the params. Every value is checked against the schema.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::clauses::Clause;
use crate::meaning::{Meaning, Slot, shape};
use crate::names::{self, Run};
use crate::recipients::Reading;
use crate::values::{self, Found};
use crate::words::{Token, name_parts, number_word};
use crate::{Source, Tool, check, figures, phrase};

/// What a clause says of an argument.
#[derive(Debug, PartialEq)]
pub(crate) enum Fill {
    Nothing,
    One(Source),
    /// Several values of an argument that takes one.
    Many(Vec<Value>),
}

pub(crate) struct Filler<'a> {
    pub clause: &'a Clause,
    pub params: &'a Map<String, Value>,
    pub schema: &'a Value,
    pub acts: bool,
    pub found: Vec<Found>,
    pub runs: Vec<Run>,
    /// The stems of the tool's texts.
    pub own: HashSet<String>,
    /// Numbers that the tool needs and that are not filled yet.
    pub figures: usize,
    /// Words that an argument has taken.
    pub used: Vec<bool>,
    /// Of a clause that reaches people.
    pub reading: Option<Reading>,
    /// The params that arguments have taken.
    pub params_used: Vec<String>,
}

impl<'a> Filler<'a> {
    /// `repeats`: the clause's count says how often it is done.
    pub fn new(
        clause: &'a Clause,
        params: &'a Map<String, Value>,
        tool: &Tool<'a>,
        slots: &[Slot],
        repeats: bool,
    ) -> Self {
        let found = values::find(&clause.tokens);
        let runs = names::runs(&clause.tokens);
        let own = base::words::words(
            &format!("{} {} {} {}", name_parts(tool.name).join(" "), tool.title, tool.about, tool.also),
            300,
        );
        let own = own.iter().map(|word| base::words::stem(word)).collect();
        let is_count = |token: &Token| {
            repeats && (number_word(&token.lower).is_some() || token.text.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let figures = slots.iter().filter(|slot| slot.required && slot.meaning == Meaning::Number).count();
        let used = clause.tokens.iter().map(is_count).collect();
        Filler {
            clause,
            params,
            schema: tool.input,
            acts: tool.acts,
            found,
            runs,
            own,
            figures,
            used,
            reading: None,
            params_used: Vec::new(),
        }
    }

    /// Leaves to the arguments what is theirs: no address beside the recipients, and nothing of a message's own words.
    pub fn keep(&mut self, reading: Reading, talks: bool) {
        let is_kept = |found: &&Found| {
            matches!(found.meaning, Meaning::Email | Meaning::Phone) && !reading.recipients.contains(&found.from)
        };
        let others: Vec<(usize, usize)> = self.found.iter().filter(is_kept).map(|one| (one.from, one.to)).collect();
        others.into_iter().for_each(|(from, to)| self.take(from, to));
        for at in reading.words_from..self.used.len() {
            self.used[at] |= !talks || self.clause.tokens[at].quoted;
        }
        self.reading = Some(reading);
    }

    /// Fills one argument.
    ///
    /// # Errors
    /// A value that is meant for it, but that its schema refuses.
    pub fn fill(&mut self, slot: &Slot) -> Result<Fill, String> {
        if let Some(name) = self.param(slot)? {
            self.params_used.push(name.clone());
            let value = check::coerced(&slot.schema, self.params[&name].clone());
            check::value(self.schema, slot, &value).map_err(|why| format!("the params' {name} does not fit: {why}"))?;
            return Ok(Fill::One(Source::Param(name)));
        }
        let mut values = self.values(slot);
        values.dedup();
        let whole = match values.len() {
            0 => return Ok(Fill::Nothing),
            1 => check::coerced(&slot.schema, values.remove(0)),
            _ if slot.takes_list => Value::Array(values),
            _ => {
                values.iter().try_for_each(|value| check::value(self.schema, slot, value))?;
                return Ok(Fill::Many(values));
            }
        };
        check::value(self.schema, slot, &whole)?;
        Ok(Fill::One(Source::Value(whole)))
    }

    /// Where the clause has these words, one after the other.
    pub(crate) fn sequence(&self, parts: &[String]) -> Option<usize> {
        let same = |(part, token): (&String, &Token)| {
            !token.quoted
                && (token.lower == *part
                    || token.lower.strip_suffix('s') == Some(part)
                    || part.strip_suffix('s') == Some(&token.lower))
        };
        let one_word = |token: &Token| !token.quoted && parts.len() > 1 && name_parts(&token.text) == parts;
        let tokens = &self.clause.tokens;
        (0..tokens.len()).find(|at| {
            one_word(&tokens[*at]) || tokens.len() >= at + parts.len() && parts.iter().zip(&tokens[*at..]).all(same)
        })
    }

    /// The values of the clause for an argument.
    pub(crate) fn values(&mut self, slot: &Slot) -> Vec<Value> {
        let values = match self.named(slot) {
            Some(value) => vec![value],
            None => self.meant(slot),
        };
        values.into_iter().map(|value| check::coerced(shape(&slot.schema).0, value)).collect()
    }

    /// "model year 2015", "with the subject “…”", "limit=5".
    fn named(&mut self, slot: &Slot) -> Option<Value> {
        let generic = [
            "name", "to", "type", "text", "address", "title", "state", "number", "body", "message", "query", "content",
            "location", "city",
        ];
        let tokens = &self.clause.tokens;
        let from = self.sequence(&slot.parts)?;
        let whole = if name_parts(&tokens[from].text) == slot.parts { 1 } else { slot.parts.len() };
        let mut at = from + whole;
        let mut is_told = tokens[at - 1].tail.starts_with([':', '=']);
        while tokens.get(at).is_some_and(|token| {
            token.is(&["is", "of", "=", "to", "as", "are", "being", "equals", "set", "named", "called"])
        }) {
            is_told |= tokens[at].is(&["is", "=", "to", "as", "named", "called"]);
            at += 1;
        }
        let token = tokens.get(at)?;
        let is_generic = slot.parts.len() == 1 && generic.contains(&slot.parts[0].as_str());
        // "Tesla Model 3": the word is a part of the name.
        if self.runs.iter().any(|run| run.from < from && from < run.to) {
            return None;
        }
        let form = self.found.iter().find(|found| found.from == at).cloned();
        let value = match slot.meaning {
            _ if self.used[at] => return None,
            Meaning::Bool | Meaning::Choice | Meaning::Object => return None,
            _ if token.quoted => Value::from(token.text.as_str()),
            Meaning::Number | Meaning::Money | Meaning::Count | Meaning::Year => {
                form.filter(|found| matches!(found.meaning, Meaning::Number | Meaning::Money))?.value
            }
            Meaning::Other | Meaning::Code if !is_generic && (token.is_capital() || token.has_digit()) => {
                Value::from(token.text.as_str())
            }
            Meaning::Other if !is_generic && (is_told || slot.required && !self.acts && self.is_value(at)) => {
                Value::from(token.text.as_str())
            }
            _ => return None,
        };
        let run = self.runs.iter().find(|run| run.from == at && slot.meaning == Meaning::Other).cloned();
        let (to, value) = run.map_or((at + 1, value), |run| (run.to, Value::from(run.text)));
        self.take(at, to);
        Some(value)
    }

    /// Whether a word can be a value: no filler, and none of the tool's own words.
    pub(crate) fn is_value(&self, at: usize) -> bool {
        let token = &self.clause.tokens[at];
        let plain = crate::words::FILLERS.contains(&token.lower.as_str())
            || phrase::is_verb_word(token)
            || token.is(crate::words::RESULTS)
            || token.is(crate::words::PRONOUNS);
        !plain && !self.used[at] && !self.own.contains(&base::words::stem(&token.lower))
    }

    pub(crate) fn take(&mut self, from: usize, to: usize) {
        self.used[from..to].iter_mut().for_each(|used| *used = true);
    }

    pub(crate) fn free(&self, meanings: &[Meaning]) -> Vec<Found> {
        let is_free = |found: &&Found| meanings.contains(&found.meaning) && !self.used[found.from];
        self.found.iter().filter(is_free).cloned().collect()
    }

    pub(crate) fn taken(&mut self, found: Vec<Found>) -> Vec<Value> {
        found.iter().for_each(|one| self.take(one.from, one.to));
        found.into_iter().map(|one| one.value).collect()
    }

    fn meant(&mut self, slot: &Slot) -> Vec<Value> {
        match slot.meaning {
            Meaning::Email
            | Meaning::Phone
            | Meaning::Vin
            | Meaning::Iban
            | Meaning::Uuid
            | Meaning::Url
            | Meaning::Domain => self.exact(slot),
            Meaning::Date => self.date(slot),
            Meaning::Year | Meaning::Money | Meaning::Number | Meaning::Count => self.figure(slot),
            Meaning::Bool => self.flag(slot),
            Meaning::Choice if figures::yes(slot).is_some() => match self.flag(slot)[..] {
                [] => Vec::new(),
                _ => figures::yes(slot).into_iter().collect(),
            },
            Meaning::Choice => self.chosen(slot),
            Meaning::Currency => self.currency(),
            Meaning::Code => self.code(slot),
            Meaning::Person | Meaning::FirstName | Meaning::LastName | Meaning::Company | Meaning::Name => {
                self.name(slot)
            }
            Meaning::Place => self.place(slot),
            Meaning::Kind => self.kind(),
            Meaning::Query if !self.acts && (slot.required || !self.used.contains(&true)) => {
                let words = phrase::query(self.clause, &self.used, &self.own);
                words.filter(|words| slot.required || words != "each").map(Value::from).into_iter().collect()
            }
            Meaning::Other => self.other(slot),
            Meaning::Object => self.described(slot),
            Meaning::Query | Meaning::Body | Meaning::Subject => Vec::new(),
        }
    }

    fn exact(&mut self, slot: &Slot) -> Vec<Value> {
        let sided = ["from", "reply", "cc", "bcc", "sender", "inbox", "source"];
        let mut free = self.free(&[slot.meaning]);
        // An address of one site: `linkedin_url`.
        let plain = [
            "url", "uri", "link", "website", "profile", "page", "start", "social", "media", "web", "source", "target",
            "site", "image",
        ];
        if slot.meaning == Meaning::Url && !slot.required {
            let is_of = |part: &String, found: &Found| {
                plain.contains(&part.as_str()) || found.value.to_string().to_lowercase().contains(part.as_str())
            };
            free.retain(|found| slot.parts.iter().all(|part| is_of(part, found)));
        }
        if let Some(side) = slot.parts.iter().find(|part| sided.contains(&part.as_str())) {
            free.retain(|found| found.from > 0 && self.clause.tokens[found.from - 1].lower == *side);
        }
        if free.is_empty() && slot.required {
            let other = match slot.meaning {
                Meaning::Url => Meaning::Domain,
                Meaning::Domain => Meaning::Url,
                _ => return Vec::new(),
            };
            let turned = |found: Found| -> Option<Found> {
                let text = found.value.as_str()?;
                let text = match slot.meaning {
                    Meaning::Url => format!("https://{text}"),
                    _ => url::Url::parse(text).ok()?.host_str()?.trim_start_matches("www.").to_owned(),
                };
                Some(Found { value: Value::from(text), ..found })
            };
            free = self.free(&[other]).into_iter().filter_map(turned).collect();
        }
        self.taken(free)
    }
}
