//! Arguments that are names, places and things.

use serde_json::Value;

use crate::fill::Filler;
use crate::meaning::{Meaning, Slot, shape};
use crate::names::{self, Run};
use crate::phrase;
use crate::words::Token;

impl Filler<'_> {
    /// A thing with a name and a description: "a bakery in Lyon called Four Miche".
    pub(crate) fn described(&mut self, slot: &Slot) -> Vec<Value> {
        let of = &slot.schema["properties"];
        if !slot.required || !of["name"].is_object() || !of["description"].is_object() {
            return Vec::new();
        }
        let runs = self.free_runs();
        let quoted = self.clause.tokens.iter().find(|token| token.quoted).map(|token| token.text.clone());
        let called = runs.into_iter().find(|run| matches!(run.before.as_str(), "called" | "named")).map(|run| run.text);
        let Some(name) = called.or(quoted) else { return Vec::new() };
        let Some(text) = phrase::query(self.clause, &self.used, &self.own) else { return Vec::new() };
        vec![serde_json::json!({"name": name, "description": text})]
    }

    /// The words behind the last "of", "for" or "about".
    pub(crate) fn last_words(&mut self) -> Vec<Value> {
        let tokens = &self.clause.tokens;
        let Some(from) = tokens.iter().rposition(|token| token.is(&["of", "for", "about", "on", "named", "called"]))
        else {
            return Vec::new();
        };
        let from = from + 1 + tokens[from + 1..].iter().take_while(|token| token.is(&["the", "a", "an"])).count();
        let to = tokens.len();
        if from >= to || to - from > 3 || !(from..to).all(|at| self.is_value(at)) {
            return Vec::new();
        }
        self.take(from, to);
        vec![Value::from(names::spoken(&self.clause.tokens[from..to]))]
    }

    pub(crate) fn free_runs(&self) -> Vec<Run> {
        let is_free = |run: &&Run| {
            !self.used[run.from..run.to].iter().any(|used| *used)
                && !self.found.iter().any(|found| found.from >= run.from && found.to <= run.to)
        };
        self.runs.iter().filter(is_free).cloned().collect()
    }

    pub(crate) fn name(&mut self, slot: &Slot) -> Vec<Value> {
        let runs = self.free_runs();
        let called = |run: &&Run| matches!(run.before.as_str(), "called" | "named");
        let quoted =
            self.clause.tokens.iter().position(|token| token.quoted).filter(|at| !self.acts && !self.used[*at]);
        let run = match slot.meaning {
            Meaning::Company => names::company(&runs).cloned(),
            Meaning::Name => runs
                .iter()
                .find(called)
                .or_else(|| names::company(&runs))
                .or_else(|| runs.iter().find(|run| self.is_value(run.from)))
                .cloned(),
            _ => names::person(&runs).cloned(),
        };
        let Some(run) = run else {
            let at = quoted.filter(|_| matches!(slot.meaning, Meaning::Name | Meaning::Company | Meaning::Person));
            let Some(at) = at.filter(|_| slot.required) else { return self.domain_as_company(slot) };
            self.take(at, at + 1);
            return vec![Value::from(self.clause.tokens[at].text.as_str())];
        };
        let words: Vec<&str> = run.text.split(' ').collect();
        let text = match slot.meaning {
            // Both are taken from one name; the last one marks it.
            Meaning::FirstName => return vec![Value::from(words[0])],
            Meaning::LastName => words[words.len() - 1].to_owned(),
            _ => run.text.clone(),
        };
        self.take(run.from, run.to);
        vec![Value::from(text)]
    }

    /// A company may be given by its domain where the argument says so.
    pub(crate) fn domain_as_company(&mut self, slot: &Slot) -> Vec<Value> {
        if slot.meaning != Meaning::Company || !slot.about.contains("domain") {
            return Vec::new();
        }
        let free = self.free(&[Meaning::Domain]);
        self.taken(free)
    }

    pub(crate) fn place(&mut self, slot: &Slot) -> Vec<Value> {
        if slot.parts.iter().any(|part| part == "address") {
            return self.street();
        }
        let places = names::place(&self.clause.tokens, &self.free_runs());
        places.iter().for_each(|run| self.take(run.from, run.to));
        places.into_iter().map(|run| Value::from(run.text)).collect()
    }

    /// "1600 Pennsylvania Ave NW, Washington, DC 20500".
    pub(crate) fn street(&mut self) -> Vec<Value> {
        let tokens = &self.clause.tokens;
        let starts = |at: &usize| {
            tokens[*at].has_digit() && tokens.get(at + 1).is_some_and(Token::is_capital) && !self.used[*at]
        };
        let Some(from) = (0..tokens.len()).find(starts) else { return Vec::new() };
        let length = tokens[from..].iter().take(14).take_while(|token| token.is_capital() || token.has_digit()).count();
        let text = phrase::slice(self.clause, from, from + length);
        self.take(from, from + length);
        vec![Value::from(text)]
    }

    pub(crate) fn kind(&mut self) -> Vec<Value> {
        let Some((from, to)) = phrase::kind(self.clause, &self.used) else { return Vec::new() };
        // "Search the web for …": where to look is no kind.
        if self.clause.tokens[from..to].iter().any(|token| token.is(&["web", "internet", "online"])) {
            return Vec::new();
        }
        self.take(from, to);
        vec![Value::from(names::spoken(&self.clause.tokens[from..to]))]
    }

    /// "with Emma Watson in the cast", "songs by Ariana Grande", "starring Jim Carrey": a name by its role.
    fn by_role(&mut self, slot: &Slot) -> Option<Value> {
        const ROLES: &[(&[&str], &[&str])] = &[
            (&["by", "from"], &["artist", "author", "creator", "singer", "band"]),
            (
                &["with", "featuring", "starring", "features", "stars", "feature", "actor", "include"],
                &["cast", "actor", "actors", "starring"],
            ),
            (&["album"], &["album"]),
            (&["by"], &["director", "directed"]),
        ];
        let tokens = &self.clause.tokens;
        let is_slot = |token: &Token| slot.parts.contains(&token.lower);
        let runs = self.free_runs();
        let before = |run: &&Run| {
            tokens.get(run.to).is_some_and(|token| token.is(&["in", "as"]))
                && tokens[run.to..].iter().take(4).any(is_slot)
        };
        let role = |run: &&Run| {
            ROLES.iter().any(|(words, parts)| {
                words.contains(&run.before.as_str()) && slot.parts.iter().any(|part| parts.contains(&part.as_str()))
            })
        };
        let run = runs.iter().find(before).or_else(|| runs.iter().find(role))?;
        self.take(run.from, run.to);
        Some(Value::from(run.text.as_str()))
    }

    /// Make or model of "2003 Honda Accord": the first word of a name, and the rest of it.
    fn vehicle(&mut self, part: &str, runs: &[Run]) -> Option<Value> {
        if part == "make" {
            let at = runs.iter().find(|run| run.to - run.from >= 2)?.from;
            self.take(at, at + 1);
            return Some(Value::from(self.clause.tokens[at].text.as_str()));
        }
        let after = |run: &&Run| run.from > 0 && self.used[run.from - 1];
        let rest = self.runs.iter().find(|run| self.used[run.from] && !self.used[run.to - 1]);
        let rest = rest.map(|run| (run.from + 1, run.to));
        let (from, mut to) = rest.or_else(|| runs.iter().find(after).map(|run| (run.from, run.to)))?;
        let is_number = |token: &Token| token.has_digit() && token.text.len() <= 4;
        while !self.used.get(to).copied().unwrap_or(true) && is_number(&self.clause.tokens[to]) {
            to += 1;
        }
        self.take(from, to);
        Some(Value::from(names::spoken(&self.clause.tokens[from..to])))
    }

    /// The only value of a form.
    fn identifier(&mut self) -> Vec<Value> {
        let has_digit = |at: &usize| !self.used[*at] && self.clause.tokens[*at].has_digit();
        let codes: Vec<usize> = (0..self.used.len()).filter(has_digit).collect();
        let free = self.free(&[Meaning::Iban, Meaning::Vin]);
        if let [only] = codes[..]
            && free.is_empty()
        {
            self.take(only, only + 1);
            return vec![Value::from(self.clause.tokens[only].text.as_str())];
        }
        self.taken(free)
    }

    /// Make and model, or an identifier; otherwise a quotation or the only name.
    pub(crate) fn other(&mut self, slot: &Slot) -> Vec<Value> {
        let (one, ..) = shape(&slot.schema);
        if !crate::meaning::is_of(one, "string") {
            return Vec::new();
        }
        if slot.name == "text" {
            let free = self.free(&[Meaning::Url, Meaning::Domain, Meaning::Email]);
            return self.taken(free.into_iter().take(1).collect());
        }
        if !slot.required {
            return self.by_role(slot).into_iter().collect();
        }
        if matches!(slot.name.as_str(), "value" | "identifier") {
            return self.identifier();
        }
        let runs = self.free_runs();
        if matches!(slot.name.as_str(), "make" | "model")
            && let Some(value) = self.vehicle(&slot.name, &runs)
        {
            return vec![value];
        }
        let quoted: Vec<usize> =
            (0..self.used.len()).filter(|at| self.clause.tokens[*at].quoted && !self.used[*at]).collect();
        if let [only] = quoted[..] {
            self.take(only, only + 1);
            return vec![Value::from(self.clause.tokens[only].text.as_str())];
        }
        match (&runs[..], self.acts) {
            ([only], false) => {
                self.take(only.from, only.to);
                vec![Value::from(only.text.as_str())]
            }
            ([], false) => self.last_words(),
            _ => Vec::new(),
        }
    }
}
