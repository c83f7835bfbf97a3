//! Arguments that are dates, numbers, choices and codes.

use serde_json::Value;

use crate::check;
use crate::fill::Filler;
use crate::meaning::{Meaning, Slot, shape};
use crate::values::{self, Found};
use crate::words::{Token, number_word};

impl Filler<'_> {
    /// A date behind "since" or "until" where the argument's name says so.
    pub(crate) fn date(&mut self, slot: &Slot) -> Vec<Value> {
        let has = |words: &[&str]| slot.parts.iter().any(|part| words.contains(&part.as_str()));
        let starts = has(&["after", "since", "start", "from", "begin", "checkin", "departure"]);
        let ends = has(&["before", "until", "end", "to", "checkout", "return"]);
        let free = self.free(&[Meaning::Date]);
        let before = |found: &Found, words: &[&str]| found.from > 0 && self.clause.tokens[found.from - 1].is(words);
        let one = free.iter().find(|found| match (starts, ends) {
            (true, false) => {
                before(found, &["since", "after", "from", "between", "starting", "on", "in", "departing", "leaving"])
            }
            (false, true) => before(found, &["until", "before", "to", "and", "by", "till", "through", "-"]),
            _ => true,
        });
        let one = one.or_else(|| free.first().filter(|_| slot.required && free.len() == 1));
        self.taken(one.cloned().into_iter().collect())
    }

    pub(crate) fn figure(&mut self, slot: &Slot) -> Vec<Value> {
        let free = self.free(&[Meaning::Number, Meaning::Money]);
        let tokens = &self.clause.tokens;
        let is_year = |found: &Found| values::year(&tokens[found.from].lower).is_some();
        if slot.meaning != Meaning::Year
            && let Some(near) = free.iter().find(|found| measures(tokens, found, slot)).cloned()
        {
            return self.taken(vec![near]);
        }
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
            // With several numbers, only their nouns tell.
            _ if slot.required && free.len() == self.figures => {
                self.figures -= 1;
                free.into_iter().take(1).collect()
            }
            _ => Vec::new(),
        };
        self.taken(fit)
    }

    /// A switch that the clause names: "with phone numbers" for `include_phone`.
    pub(crate) fn flag(&mut self, slot: &Slot) -> Vec<Value> {
        let small = [
            "include",
            "is",
            "has",
            "with",
            "only",
            "enable",
            "enabled",
            "use",
            "show",
            "should",
            "want",
            "get",
            "require",
            "for",
            "good",
            "allowed",
            "available",
            "in",
            "unit",
            "of",
            "on",
            "to",
            "service",
            "services",
            "suitable",
            "needs",
        ];
        let parts: Vec<String> = slot
            .parts
            .iter()
            .filter(|part| !small.contains(&part.as_str()))
            .map(|part| base::words::stem(part))
            .collect();
        let said = |part: &&String| {
            self.clause.tokens.iter().any(|token| !token.quoted && same_thing(&base::words::stem(&token.lower), part))
        };
        let is_said = !parts.is_empty() && parts.iter().filter(said).count() == parts.len();
        if is_said {
            self.mark(&parts);
        }
        if is_said { vec![Value::Bool(true)] } else { Vec::new() }
    }

    pub(crate) fn chosen(&mut self, slot: &Slot) -> Vec<Value> {
        let Some(value) = choice(slot, &self.clause.tokens) else { return Vec::new() };
        let words = base::words::words(value.as_str().unwrap_or_default(), 20);
        self.mark(&words.iter().map(|word| base::words::stem(word)).collect::<Vec<_>>());
        vec![value]
    }

    /// Marks words with these stems as used.
    pub(crate) fn mark(&mut self, stems: &[String]) {
        for (token, used) in self.clause.tokens.iter().zip(&mut self.used) {
            let stem = base::words::stem(&token.lower);
            *used |= !token.quoted && stems.iter().any(|other| same_thing(&stem, other));
        }
    }

    pub(crate) fn currency(&mut self) -> Vec<Value> {
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
    pub(crate) fn code(&mut self, slot: &Slot) -> Vec<Value> {
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
                && !slot.parts.contains(&token.lower)
                && (token.has_digit() || is_upper && is_place)
                && (!is_digits || is_said)
                && check::value(self.schema, slot, &check::coerced(&slot.schema, Value::from(token.text.as_str())))
                    .is_ok()
        };
        let fitting: Vec<usize> = (0..tokens.len().min(200)).filter(fits).take(20).collect();
        let texts = fitting.iter().map(|at| Value::from(tokens[*at].text.as_str())).collect();
        fitting.iter().for_each(|at| self.take(*at, at + 1));
        texts
    }
}

/// Stems that are equal, or a child and a kid.
fn same_thing(one: &str, other: &str) -> bool {
    const KIDS: &[&str] = &["kid", "children", "child"];
    one == other || KIDS.contains(&one) && KIDS.contains(&other)
}

/// The choice for yes, where the choices are yes and no.
pub(crate) fn yes(slot: &Slot) -> Option<Value> {
    let (one, ..) = shape(&slot.schema);
    let choices = one["enum"].as_array()?;
    let is = |choice: &&Value, words: &[&str]| {
        choice.as_str().is_some_and(|text| words.contains(&text.to_lowercase().as_str()))
    };
    let yes = choices.iter().find(|choice| is(choice, &["true", "yes"]))?;
    choices.iter().any(|choice| is(&choice, &["false", "no"])).then(|| yes.clone())
}

/// Whether the noun of a number is the argument's: "2 bedrooms" for `number_of_beds`, "for two people" for `adults`.
fn measures(tokens: &[Token], found: &Found, slot: &Slot) -> bool {
    const PEOPLE: &[&str] =
        &["people", "persons", "person", "adults", "passengers", "guests", "seats", "travelers", "ppl"];
    let plain = ["number", "of", "the", "in", "min", "max", "minimum", "maximum", "num", "count", "no"];
    let parts = || slot.parts.iter().filter(|part| !plain.contains(&part.as_str()));
    let is_alike = |part: &str, word: &str| {
        let common = part.bytes().zip(word.bytes()).take_while(|(one, other)| one == other).count();
        common >= 3 && common + 1 >= part.len().min(word.len()) || PEOPLE.contains(&part) && PEOPLE.contains(&word)
    };
    let noun = tokens[found.to..]
        .iter()
        .take(2)
        .take_while(|token| !token.has_digit() && !token.is(&["and", "or", "for", "in", "with"]));
    let behind = !tokens[found.to - 1].pauses()
        && noun.into_iter().any(|token| parts().any(|part| is_alike(part, &token.lower)));
    let lead = [
        "of", "is", "at", "least", "most", "above", "over", "below", "under", "than", "more", "less", "higher",
        "exactly", "to", "a", "up",
    ];
    let before = tokens[..found.from].iter().rev().take(4).find(|token| !token.is(&lead));
    let is_before = before.is_some_and(|token| {
        !token.pauses()
            && parts().any(|part| {
                is_alike(part, &token.lower)
                    || part.len() > 3 && base::words::stem(part) == base::words::stem(&token.lower)
            })
    });
    behind || is_before
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
