//! Clauses that are no calls of their own.

use crate::clauses::{Clause, message_at};
use crate::meaning::Meaning;
use crate::values::Found;
use crate::words::{FILLERS, PRONOUNS, RESULTS, Token};

/// What an assistant is to say on the phone, and the steps in a browser, belong to one call.
pub(crate) fn merged(text: &str, clauses: Vec<Clause>) -> Vec<Clause> {
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

/// "Tell me what you found": results are shown anyway.
pub(crate) fn is_report(clause: &Clause) -> bool {
    let starts = clause
        .tokens
        .first()
        .is_some_and(|token| token.is(&["tell", "give", "show", "report", "return", "let", "present", "list"]));
    starts
        && clause.tokens[1..].iter().all(|token| {
            token.is(RESULTS) || token.is(FILLERS) || token.is(PRONOUNS) || token.is(&["know", "back", "found"])
        })
}

pub(crate) fn is_courtesy(clause: &Clause) -> bool {
    clause.tokens.iter().all(|token| {
        token.is(&[
            "thanks", "thank", "you", "hi", "hello", "please", "very", "much", "a", "lot", "in", "advance", "cheers",
        ])
    })
}

/// Whether a clause points to a sentence beside it, by a pronoun or a name: "Ada has the address …. Email her".
/// A message goes to people: "it" does not point to one.
pub(crate) fn points_to(clause: &Clause, beside: &Clause, to_people: bool) -> bool {
    let shared = |token: &Token| {
        let points =
            if to_people { token.is(&["her", "him", "them", "she", "he", "they"]) } else { token.is(PRONOUNS) };
        points || token.is_capital() && beside.tokens.iter().any(|other| other.text == token.text)
    };
    clause.tokens.iter().skip(1).any(shared)
}

/// What is to be looked up first, in a clause that sends it: "Email ada@example.com the recalls of the 2003 Honda Accord",
/// "Text the weather in Oslo to +14155550100". The places of its first word and of the one behind its last.
pub(crate) fn sent_object(clause: &Clause, found: &[Found]) -> Option<(usize, usize)> {
    let all = &clause.tokens;
    let sends = all.first()?.is(&["email", "e-mail", "mail", "text", "sms", "send", "forward"]);
    if !sends || all.iter().any(|token| token.quoted) || message_at(all).is_some() {
        return None;
    }
    let whom: Vec<&Found> = found.iter().filter(|one| matches!(one.meaning, Meaning::Email | Meaning::Phone)).collect();
    let (first, last) = (whom.first()?, whom.last()?);
    let plain = |token: &Token| token.is(RESULTS) || token.is(FILLERS) || token.is(PRONOUNS);
    let (from, to) = match first.from {
        behind if all[..behind].iter().skip(1).all(plain) => (last.to, all.len()),
        behind => (1, behind - usize::from(all[behind - 1].is(&["to", "at"]))),
    };
    let from = from
        + all[from..].iter().take(2).take_while(|token| token.is(&["me", "us", "with", "containing", "about"])).count();
    let subject = all.iter().position(|token| token.is(&["subject"])).unwrap_or(all.len());
    let is_thing = all.get(from)?.is(&["the", "all", "what", "how", "a", "an"]);
    let is_new = |token: &Token| !token.is(RESULTS) && !token.is(FILLERS) && !token.is(PRONOUNS);
    (is_thing && from + 1 < to && subject >= to && all[from..to].iter().any(is_new)).then_some((from, to))
}
