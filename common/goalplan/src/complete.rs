//! Refuses calls that leave a part of their clause out.

use std::collections::{BTreeMap, HashSet};

use crate::build::Builder;
use crate::clauses::{Clause, message_at};
use crate::fill::Filler;
use crate::meaning::{Meaning, Slot};
use crate::words::{FILLERS, PRONOUNS, RESULTS, Token};
use crate::{Refusal, Source};

impl Builder<'_> {
    /// Refuses a call that the clause says too little for, or more than the call would do. The words without a place in a
    /// call that only looks are returned.
    pub(crate) fn complete(
        &self,
        at: usize,
        fillers: &[&Filler],
        input: &BTreeMap<String, Source>,
        has_many: bool,
    ) -> Result<Vec<String>, Refusal> {
        let tool = &self.picker.tools[at];
        let slots = &self.picker.slots[at];
        let clause = fillers[0].clause;
        let refused =
            |why: String| Err(Refusal { clause: clause.text.clone(), why, nearest: vec![tool.name.to_owned()] });
        let is_all =
            clause.tokens.iter().any(|token| token.is(&["all", "list", "every", "available"])) || slots.len() == 1;
        if !slots.is_empty()
            && !is_all
            && !slots.iter().any(|slot| slot.required)
            && input.is_empty()
            && !has_many
            && !tool.acts
        {
            let names: Vec<&str> = slots.iter().take(6).map(|slot| slot.name.as_str()).collect();
            return refused(format!("it does not say what to look for; {} takes {}", tool.name, names.join(", ")));
        }
        let needed = slots.iter().filter(|slot| slot.required).count();
        if !tool.acts && needed > 1 && input.is_empty() && !has_many {
            return Err(self.picker.refusal(
                clause,
                &crate::pick::unquoted(&clause.tokens),
                "it has none of the values that the nearest tool needs",
            ));
        }
        let reaches =
            |slot: &Slot| slot.required && matches!(slot.meaning, Meaning::Body | Meaning::Phone | Meaning::Email);
        let sends = tool.acts && slots.iter().any(reaches);
        if let Some((word, why)) = unsure(&clause.tokens).filter(|_| sends) {
            return refused(format!("\u{201c}{word}\u{201d}: {why}"));
        }
        // The argument has the words of the clause.
        let has_words =
            |slot: &&Slot| matches!(slot.meaning, Meaning::Query | Meaning::Object) && input.contains_key(&slot.name);
        if slots.iter().any(|slot| has_words(&slot)) {
            return Ok(Vec::new());
        }
        self.leftovers(at, fillers, sends)
    }

    /// The words without a place in a call. Values, second things and second wishes among them are refused.
    fn leftovers(&self, at: usize, fillers: &[&Filler], sends: bool) -> Result<Vec<String>, Refusal> {
        let tool = &self.picker.tools[at];
        let clause = fillers[0].clause;
        let refused =
            |why: String| Err(Refusal { clause: clause.text.clone(), why, nearest: vec![tool.name.to_owned()] });
        let own = self.known_words(at, sends);
        let mut left = Vec::new();
        for filler in fillers {
            let places = self.unexplained(filler, &own, sends);
            let tokens = &filler.clause.tokens;
            let is_wish = |at: &usize| {
                let before = tokens[..*at].iter().rev().find(|token| !token.is(&["the", "its", "their", "his", "her"]));
                before.is_some_and(|token| token.is(&["and", "but", "plus"])) && !tokens[*at].is_capital()
            };
            let is_value = |at: &usize| {
                tokens[*at].quoted
                    || tool.acts && tokens[*at].is_capital()
                    || filler
                        .found
                        .iter()
                        .any(|found| found.from == *at && (tool.acts || found.meaning != Meaning::Number))
            };
            let is_main = std::ptr::eq(filler.clause, clause);
            let is_name = |at: &usize| {
                tokens[*at].is_capital()
                    && tokens.get(at + 1).is_some_and(Token::is_capital)
                    && places.contains(&(at + 1))
            };
            if let Some(at) = places
                .iter()
                .copied()
                .find(|at| is_wish(at) || is_main && (is_value(at) || is_name(at)))
                .or_else(|| second(filler).filter(|_| is_main))
            {
                return refused(format!("\u{201c}{}\u{201d} has no place in {}", tokens[at].text, tool.name));
            }
            left.extend(places.into_iter().map(|at| tokens[at].text.clone()).take(8));
        }
        if sends && !left.is_empty() {
            let words = left.join(" ");
            return refused(format!(
                "what \u{201c}{words}\u{201d} is to mean for {} is not understood. Write the message in quotation marks",
                tool.name
            ));
        }
        Ok(left)
    }

    /// The words that say what a tool does; of a message, those that say what was done before: "mail the profile".
    pub(crate) fn known_words(&self, at: usize, sends: bool) -> HashSet<String> {
        match sends {
            true => self.calls.iter().flat_map(|call| self.picker.vocabulary(call.tool)).cloned().collect(),
            false => self.picker.vocabulary(at).clone(),
        }
    }

    /// The words that fill no argument and say nothing of the tool.
    pub(crate) fn unexplained(&self, filler: &Filler, own: &HashSet<String>, sends: bool) -> Vec<usize> {
        let clause = filler.clause;
        let end = message_at(&clause.tokens).unwrap_or(clause.tokens.len());
        let earlier = self.words_before(clause);
        let whom = if sends { self.whom(filler) } else { 0..0 };
        // Whom a message reaches, a param says only if it is the recipient.
        let counts = |name: &String| !sends || filler.params_used.contains(name);
        let is_param = |word: &String| {
            let mut names = self.params.keys().take(100).filter(|name| counts(name));
            names.any(|name| crate::words::name_parts(name).contains(word))
        };
        let is_explained = |at: usize| {
            let token = &clause.tokens[at];
            let lower = &token.lower;
            let is_number = filler.found.iter().any(|found| found.from == at && found.meaning == Meaning::Number);
            filler.used[at]
                || at == 0
                || token.text.len() < 2
                || sends && (token.quoted || is_number || whom.contains(&at))
                || FILLERS.contains(&lower.as_str())
                || RESULTS.contains(&lower.as_str())
                || token.is(PRONOUNS)
                || token.is(&[
                    "what",
                    "person",
                    "reading",
                    "following",
                    "how",
                    "many",
                    "much",
                    "any",
                    "whether",
                    "if",
                    "you",
                    "does",
                    "do",
                ])
                || own.contains(&base::words::stem(lower))
                || is_param(lower)
                || !token.quoted && earlier.contains(lower)
        };
        (0..end.min(clause.tokens.len())).filter(|at| !is_explained(*at)).collect()
    }

    /// The words of the objective before a clause, in lower case.
    pub(crate) fn words_before(&self, clause: &Clause) -> HashSet<String> {
        let before = self.text.get(..clause.start).unwrap_or_default();
        crate::words::tokens(before).into_iter().map(|token| token.lower).collect()
    }

    /// The words for somebody whose address is not known: "Text my landlord that …", "Email the results to Ada".
    pub(crate) fn whom(&self, filler: &Filler) -> std::ops::Range<usize> {
        let tokens = &filler.clause.tokens;
        if filler.found.iter().any(|found| matches!(found.meaning, Meaning::Email | Meaning::Phone)) {
            return 0..0;
        }
        let is_word = |token: &Token| !token.quoted && !token.is(&["that", "saying", "says", "the", "about", "with"]);
        let behind = tokens.iter().rposition(|token| token.is(&["to"])).unwrap_or(0);
        let length = tokens.iter().skip(behind + 1).take(3).take_while(|token| is_word(token)).count();
        behind + 1..behind + 1 + length
    }
}

/// A second thing that the call leaves out: "the Toyota Camry and the 2018 Honda Accord".
fn second(filler: &Filler) -> Option<usize> {
    let tokens = &filler.clause.tokens;
    let is_between = |token: &&Token| token.is(&["the", "a", "an", "of", "from", "for", "in"]) || token.has_digit();
    let is_left = |at: &usize| {
        let before = tokens[..*at].iter().rev().take(4).find(|token| !is_between(token));
        tokens[*at].is_capital() && !filler.used[*at] && before.is_some_and(|token| token.is(&["and"]))
    };
    // "restaurants and bars": the first has its place, the second has none.
    let is_second = |at: &usize| {
        let token = &tokens[*at];
        let plain = token.is(FILLERS) || token.is(PRONOUNS) || token.is(RESULTS) || token.text.len() < 2;
        let before = tokens[..*at].iter().rposition(|token| !token.is(&["the", "a", "an"])).unwrap_or(0);
        let follows = tokens[before].is(&["and", "plus"]) && before > 0 && filler.used[before - 1];
        // "indicator NY.GDP": the name of an argument before its value.
        let is_name = filler.used.get(at + 1) == Some(&true);
        follows && !filler.acts && !filler.used[*at] && !is_name && !plain && !crate::phrase::is_verb_word(token)
    };
    (0..tokens.len()).find(|at| is_left(at) || is_second(at))
}

/// An alternative or a time in the words that say whom to reach: which one, or when, a call cannot tell.
fn unsure(tokens: &[Token]) -> Option<(&str, &'static str)> {
    const TIMES: &[&str] = &[
        "tomorrow",
        "tonight",
        "later",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "noon",
        "midnight",
        "morning",
        "afternoon",
        "evening",
        "weekend",
        "hour",
        "hours",
        "minutes",
        "week",
        "month",
    ];
    const SPEAKS: &[&str] = &["ask", "tell", "say", "book", "reserve", "inquire", "order", "confirm"];
    let end = message_at(tokens).unwrap_or(tokens.len()).min(tokens.len());
    let end = tokens[..end].iter().skip(1).position(|token| token.is(SPEAKS)).map_or(end, |at| at + 1);
    let is_hour = |token: &Token| token.has_digit() && (token.lower.ends_with("am") || token.lower.ends_with("pm"));
    let is_time = |token: &&Token| !token.quoted && (token.is(TIMES) || is_hour(token) && token.text.len() <= 7);
    if let Some(word) = tokens[..end].iter().find(is_time) {
        return Some((
            &word.text,
            "a message goes out at once; write what is to be done once; schedules are not sold here yet",
        ));
    }
    let word = tokens[..end].iter().find(|token| token.is(&["or"]))?;
    Some((&word.text, "it does not say which; name whom to reach"))
}
