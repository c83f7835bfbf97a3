//! Fills the arguments of a tool with values of a clause and of the params. Every value is checked against the schema.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::clauses::Clause;
use crate::meaning::{Meaning, Slot, shape};
use crate::names::{self, Run};
use crate::values::{self, Found};
use crate::words::{Token, name_parts, number_word};
use crate::{Source, Tool, check, phrase};

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
    schema: &'a Value,
    acts: bool,
    pub found: Vec<Found>,
    runs: Vec<Run>,
    /// The stems of the tool's texts.
    own: HashSet<String>,
    /// Words that an argument has taken.
    pub used: Vec<bool>,
}

impl<'a> Filler<'a> {
    /// `repeats`: the clause's count says how often it is done.
    pub fn new(clause: &'a Clause, params: &'a Map<String, Value>, tool: &Tool<'a>, repeats: bool) -> Self {
        let found = values::find(&clause.tokens);
        let runs = names::runs(&clause.tokens);
        let own = base::words::words(&format!("{} {} {}", tool.name.replace('_', " "), tool.title, tool.about), 200);
        let own = own.iter().map(|word| base::words::stem(word)).collect();
        let is_count = |token: &Token| {
            repeats && (number_word(&token.lower).is_some() || token.text.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let used = clause.tokens.iter().map(is_count).collect();
        Filler { clause, params, schema: tool.input, acts: tool.acts, found, runs, own, used }
    }

    /// Fills one argument.
    ///
    /// # Errors
    /// A value that is meant for it, but that its schema refuses.
    pub fn fill(&mut self, slot: &Slot) -> Result<Fill, String> {
        if let Some(name) = self.param(slot) {
            let value = check::coerced(&slot.schema, self.params[&name].clone());
            check::value(self.schema, slot, &value).map_err(|why| format!("the params' {name} does not fit: {why}"))?;
            return Ok(Fill::One(Source::Param(name)));
        }
        let values = match self.named(slot) {
            Some(value) => vec![value],
            None => self.meant(slot),
        };
        let mut values: Vec<Value> =
            values.into_iter().map(|value| check::coerced(shape(&slot.schema).0, value)).collect();
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

    /// A member of the params with the argument's name, or one that the clause names and whose value has the argument's form.
    fn param(&self, slot: &Slot) -> Option<String> {
        if let Some((name, _)) = self.params.iter().find(|(name, _)| name_parts(name) == slot.parts) {
            return Some(name.clone());
        }
        let is_meant = |name: &str, value: &Value| {
            let parts = name_parts(name);
            let said = !parts.is_empty() && self.sequence(&parts).is_some();
            let form = value.as_str().map(crate::words::tokens).map(|tokens| values::find(&tokens));
            let fits = form.is_some_and(|found| found.len() == 1 && found[0].meaning == slot.meaning);
            let is_kind = parts.len() == 1
                && crate::meaning::meaning_of(&parts, &serde_json::json!({"type": "string"}), "") == slot.meaning;
            fits && slot.required && (said || is_kind)
        };
        self.params.iter().take(100).find(|(name, value)| is_meant(name, value)).map(|(name, _)| name.clone())
    }

    /// Where the clause has these words, one after the other.
    fn sequence(&self, parts: &[String]) -> Option<usize> {
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
    fn is_value(&self, at: usize) -> bool {
        let token = &self.clause.tokens[at];
        let plain = crate::words::FILLERS.contains(&token.lower.as_str())
            || phrase::is_verb_word(token)
            || token.is(crate::words::RESULTS)
            || token.is(crate::words::PRONOUNS);
        !plain && !self.used[at] && !self.own.contains(&base::words::stem(&token.lower))
    }

    /// The words behind the last "of", "for" or "about".
    fn last_words(&mut self) -> Vec<Value> {
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

    fn take(&mut self, from: usize, to: usize) {
        self.used[from..to].iter_mut().for_each(|used| *used = true);
    }

    fn free(&self, meanings: &[Meaning]) -> Vec<Found> {
        let is_free = |found: &&Found| meanings.contains(&found.meaning) && !self.used[found.from];
        self.found.iter().filter(is_free).cloned().collect()
    }

    fn taken(&mut self, found: Vec<Found>) -> Vec<Value> {
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
            Meaning::Choice => choice(slot, &self.clause.tokens).into_iter().collect(),
            Meaning::Currency => self.currency(),
            Meaning::Code => self.code(slot),
            Meaning::Person | Meaning::FirstName | Meaning::LastName | Meaning::Company | Meaning::Name => {
                self.name(slot)
            }
            Meaning::Place => self.place(slot),
            Meaning::Kind => self.kind(),
            Meaning::Query if !self.acts && (slot.required || !self.used.contains(&true)) => {
                phrase::query(self.clause, &self.used).map(Value::from).into_iter().collect()
            }
            Meaning::Other => self.other(slot),
            Meaning::Object => self.described(slot),
            Meaning::Query | Meaning::Body | Meaning::Subject => Vec::new(),
        }
    }

    /// A thing with a name and a description: "a bakery in Lyon called Four Miche".
    fn described(&mut self, slot: &Slot) -> Vec<Value> {
        let of = &slot.schema["properties"];
        if !slot.required || !of["name"].is_object() || !of["description"].is_object() {
            return Vec::new();
        }
        let runs = self.free_runs();
        let Some(run) = runs.iter().find(|run| matches!(run.before.as_str(), "called" | "named")) else {
            return Vec::new();
        };
        let Some(text) = phrase::query(self.clause, &self.used) else { return Vec::new() };
        vec![serde_json::json!({"name": run.text, "description": text})]
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

    /// A date behind "since" or "until" where the argument's name says so.
    fn date(&mut self, slot: &Slot) -> Vec<Value> {
        let has = |words: &[&str]| slot.parts.iter().any(|part| words.contains(&part.as_str()));
        let starts = has(&["after", "since", "start", "from", "begin", "checkin", "departure"]);
        let ends = has(&["before", "until", "end", "to", "checkout", "return"]);
        let free = self.free(&[Meaning::Date]);
        let before = |found: &Found, words: &[&str]| found.from > 0 && self.clause.tokens[found.from - 1].is(words);
        let one = free.iter().find(|found| match (starts, ends) {
            (true, false) => before(found, &["since", "after", "from", "between", "starting"]),
            (false, true) => before(found, &["until", "before", "to", "and", "by", "till", "through", "-"]),
            _ => true,
        });
        let one = one.or_else(|| free.first().filter(|_| slot.required && free.len() == 1));
        self.taken(one.cloned().into_iter().collect())
    }

    fn figure(&mut self, slot: &Slot) -> Vec<Value> {
        let free = self.free(&[Meaning::Number, Meaning::Money]);
        let tokens = &self.clause.tokens;
        let is_year = |found: &Found| values::year(&tokens[found.from].lower).is_some();
        let fit: Vec<Found> = match slot.meaning {
            Meaning::Year => free.into_iter().filter(is_year).take(1).collect(),
            Meaning::Money => {
                let money: Vec<Found> = free.iter().filter(|found| found.meaning == Meaning::Money).cloned().collect();
                match money.is_empty() && slot.required && free.len() == 1 {
                    true => free,
                    false => money.into_iter().take(1).collect(),
                }
            }
            Meaning::Count => {
                free.into_iter().filter(|found| !is_year(found) && counts(tokens, found)).take(1).collect()
            }
            _ if slot.required => free.into_iter().filter(|found| found.meaning == Meaning::Number).take(1).collect(),
            _ => Vec::new(),
        };
        self.taken(fit)
    }

    /// A switch that the clause names: "with phone numbers" for `include_phone`.
    fn flag(&self, slot: &Slot) -> Vec<Value> {
        let small = [
            "include", "is", "has", "with", "only", "enable", "enabled", "use", "show", "should", "want", "get",
            "require",
        ];
        let parts: Vec<String> = slot
            .parts
            .iter()
            .filter(|part| !small.contains(&part.as_str()))
            .map(|part| base::words::stem(part))
            .collect();
        let said = |part: &String| {
            self.clause.tokens.iter().any(|token| !token.quoted && base::words::stem(&token.lower) == *part)
        };
        let is_said = !parts.is_empty() && parts.iter().all(said);
        if is_said { vec![Value::Bool(true)] } else { Vec::new() }
    }

    fn currency(&mut self) -> Vec<Value> {
        const NAMES: &[(&str, &str)] = &[
            ("euro", "EUR"),
            ("dollar", "USD"),
            ("pound", "GBP"),
            ("yen", "JPY"),
            ("franc", "CHF"),
            ("yuan", "CNY"),
            ("rupee", "INR"),
        ];
        const CODES: &[&str] = &[
            "USD", "EUR", "GBP", "JPY", "CHF", "CNY", "INR", "CAD", "AUD", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF",
            "BRL", "MXN", "ZAR", "SGD", "HKD", "NZD", "KRW", "TRY",
        ];
        let code = |token: &Token| {
            let by_name =
                NAMES.iter().find(|(name, _)| token.lower.trim_end_matches('s') == *name).map(|(_, code)| *code);
            by_name.or_else(|| CODES.iter().copied().find(|code| *code == token.text))
        };
        let at = (0..self.clause.tokens.len()).find(|at| !self.used[*at] && code(&self.clause.tokens[*at]).is_some());
        let Some(at) = at else { return Vec::new() };
        self.take(at, at + 1);
        code(&self.clause.tokens[at]).map(Value::from).into_iter().collect()
    }

    /// A word of the argument's own form. Digits alone count only where the clause names the argument.
    fn code(&mut self, slot: &Slot) -> Vec<Value> {
        let (one, ..) = shape(&slot.schema);
        if !one["pattern"].is_string() {
            return Vec::new();
        }
        let is_said = slot.parts.iter().any(|part| {
            part.len() > 1 && part != "id" && part != "number" && self.sequence(std::slice::from_ref(part)).is_some()
        });
        let tokens = &self.clause.tokens;
        let fits = |at: &usize| {
            let token = &tokens[*at];
            let is_digits = token.text.bytes().all(|byte| byte.is_ascii_digit());
            let is_upper = token.text.bytes().all(|byte| byte.is_ascii_uppercase());
            let is_place = token.text.len() > 2
                || *at > 0 && (tokens[at - 1].tail.contains(',') || tokens[at - 1].is(&["in", "state"]));
            !self.used[*at]
                && !token.text.is_empty()
                && (token.has_digit() || is_upper && is_place)
                && (!is_digits || is_said)
                && check::value(self.schema, slot, &check::coerced(&slot.schema, Value::from(token.text.as_str())))
                    .is_ok()
        };
        let fitting: Vec<usize> = (0..tokens.len()).filter(fits).take(20).collect();
        let texts = fitting.iter().map(|at| Value::from(tokens[*at].text.as_str())).collect();
        fitting.iter().for_each(|at| self.take(*at, at + 1));
        texts
    }

    fn free_runs(&self) -> Vec<Run> {
        let is_free = |run: &&Run| {
            !self.used[run.from..run.to].iter().any(|used| *used)
                && !self.found.iter().any(|found| found.from >= run.from && found.to <= run.to)
        };
        self.runs.iter().filter(is_free).cloned().collect()
    }

    fn name(&mut self, slot: &Slot) -> Vec<Value> {
        let runs = self.free_runs();
        let called = |run: &&Run| matches!(run.before.as_str(), "called" | "named");
        let quoted =
            self.clause.tokens.iter().position(|token| token.quoted).filter(|at| !self.acts && !self.used[*at]);
        let run = match slot.meaning {
            Meaning::Company => names::company(&runs).cloned(),
            Meaning::Name => {
                runs.iter().find(called).or_else(|| names::company(&runs)).or_else(|| runs.first()).cloned()
            }
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
    fn domain_as_company(&mut self, slot: &Slot) -> Vec<Value> {
        if slot.meaning != Meaning::Company || !slot.about.contains("domain") {
            return Vec::new();
        }
        let free = self.free(&[Meaning::Domain]);
        self.taken(free)
    }

    fn place(&mut self, slot: &Slot) -> Vec<Value> {
        if slot.parts.iter().any(|part| part == "address") {
            return self.street();
        }
        let places = names::place(&self.clause.tokens, &self.free_runs());
        places.iter().for_each(|run| self.take(run.from, run.to));
        places.into_iter().map(|run| Value::from(run.text)).collect()
    }

    /// "1600 Pennsylvania Ave NW, Washington, DC 20500".
    fn street(&mut self) -> Vec<Value> {
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

    fn kind(&mut self) -> Vec<Value> {
        let Some((from, to)) = phrase::kind(self.clause, &self.used) else { return Vec::new() };
        self.take(from, to);
        vec![Value::from(names::spoken(&self.clause.tokens[from..to]))]
    }

    /// Make and model of "2003 Honda Accord"; a ticker; otherwise a quotation or the only name.
    fn other(&mut self, slot: &Slot) -> Vec<Value> {
        let (one, ..) = shape(&slot.schema);
        if !slot.required || !crate::meaning::is_of(one, "string") {
            return Vec::new();
        }
        if matches!(slot.name.as_str(), "value" | "identifier") {
            let codes: Vec<usize> =
                (0..self.used.len()).filter(|at| !self.used[*at] && self.clause.tokens[*at].has_digit()).collect();
            let free = self.free(&[Meaning::Iban, Meaning::Vin]);
            if let [only] = codes[..]
                && free.is_empty()
            {
                self.take(only, only + 1);
                return vec![Value::from(self.clause.tokens[only].text.as_str())];
            }
            return self.taken(free);
        }
        let runs = self.free_runs();
        let vehicle = runs.iter().find(|run| run.to - run.from >= 2);
        match (slot.name.as_str(), vehicle) {
            ("make", Some(run)) => {
                let at = run.from;
                self.take(at, at + 1);
                return vec![Value::from(self.clause.tokens[at].text.as_str())];
            }
            ("model", _) => {
                let after = |run: &&Run| run.from > 0 && self.used[run.from - 1];
                let rest = self.runs.iter().find(|run| self.used[run.from] && !self.used[run.to - 1]).cloned();
                let rest = rest
                    .map(|run| (run.from + 1, run.to))
                    .or_else(|| runs.iter().find(after).map(|run| (run.from, run.to)));
                let Some((from, to)) = rest else { return Vec::new() };
                self.take(from, to);
                return vec![Value::from(names::spoken(&self.clause.tokens[from..to]))];
            }
            _ => {}
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

/// "top 5", "three plumbers", "at most 10": a number that counts things.
fn counts(tokens: &[Token], found: &Found) -> bool {
    let before = found.from > 0
        && tokens[found.from - 1]
            .is(&["top", "first", "last", "latest", "newest", "limit", "to", "most", "best", "recent"]);
    let units = [
        "miles",
        "km",
        "years",
        "days",
        "hours",
        "minutes",
        "degrees",
        "percent",
        "stars",
        "months",
        "weeks",
        "seconds",
        "employees",
    ];
    let is_thing =
        |token: &Token| !token.quoted && !token.is_capital() && token.lower.ends_with('s') && !token.is(&units);
    let noun =
        tokens[found.to..].iter().take(3).take_while(|token| !token.is(&["in", "of", "at", "for", "from", "about"]));
    let word = number_word(&tokens[found.from].lower).is_some();
    let is_bare = word || tokens[found.from].text.bytes().all(|byte| byte.is_ascii_digit());
    is_bare && (before || noun.clone().any(|token| is_thing(token) || token.is(&["people", "companies", "businesses"])))
}

/// The choice whose words the tokens have; the longest. Two different ones are none.
pub(crate) fn choice(slot: &Slot, tokens: &[Token]) -> Option<Value> {
    let (one, ..) = shape(&slot.schema);
    let words: Vec<String> = tokens.iter().filter(|token| !token.quoted).map(|token| token.lower.clone()).collect();
    let stems: Vec<String> = words.iter().map(|word| base::words::stem(word)).collect();
    let mut best: Option<(usize, &Value)> = None;
    let mut doubtful = false;
    for option in one["enum"].as_array()?.iter().take(200) {
        let Some(text) = option.as_str() else { continue };
        let parts: Vec<String> = text
            .to_lowercase()
            .split(['_', '-', ' ', '/'])
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        let stemmed: Vec<String> = parts.iter().map(|part| base::words::stem(part)).collect();
        // A code of two letters counts only as it is written: "IT" is not "it".
        let exact = text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_uppercase());
        let is_said = match exact {
            true => tokens.iter().any(|token| token.text == text),
            false => {
                !parts.is_empty()
                    && (words.contains(&text.to_lowercase())
                        || stems.windows(stemmed.len()).any(|window| window == stemmed))
            }
        };
        let length = parts.len() * 100 + text.len();
        match best {
            _ if !is_said => {}
            Some((longest, _)) if length / 100 < longest / 100 => {}
            Some((longest, _)) if length / 100 == longest / 100 => doubtful = true,
            _ => (best, doubtful) = (Some((length, option)), false),
        }
    }
    best.filter(|_| !doubtful).map(|(_, option)| option.clone())
}
