//! Refuses what a plan cannot express: conditions, negations and schedules.

use crate::Refusal;
use crate::clauses::Clause;
use crate::words::Token;

const ASKING: &[&str] =
    &["check", "see", "verify", "confirm", "know", "determine", "out", "tell", "ask", "me", "validate", "learn"];

/// Refuses what a plan cannot express.
pub(crate) fn refuse_unclear(clause: &Clause) -> Result<(), Refusal> {
    for (at, token) in clause.tokens.iter().enumerate() {
        if let Some(why) = unclear(&clause.tokens, at, token) {
            return Err(Refusal {
                clause: clause.text.clone(),
                why: format!("\u{201c}{}\u{201d}: {why}", token.text),
                nearest: Vec::new(),
            });
        }
    }
    clause.context.iter().try_for_each(refuse_unclear)
}

const CONDITION: &str = "conditions are not understood. Write what is to be done in any case, and start the rest when the result is known; words of a message belong in quotation marks";
const NEGATION: &str =
    "negations are not understood. Write only what is to be done; words of a message belong in quotation marks";
const SCHEDULE: &str = "times and repetitions are not read from the objective; write what is to be done once; schedules are not sold here yet";

fn unclear(all: &[Token], at: usize, token: &Token) -> Option<&'static str> {
    let before = |words: &[&str]| at > 0 && all[at - 1].is(words);
    let next = |words: &[&str]| all.get(at + 1).is_some_and(|next| next.is(words));
    if token.quoted {
        return None;
    }
    match token.lower.as_str() {
        "first" | "top" | "last"
            if all.get(at + 1).is_some_and(|next| next.has_digit() && next.head.ends_with(['-', '−', '–'])) =>
        {
            Some("a number of results is at least 1")
        }
        "if" if next(&["possible"])
            || next(&["you"]) && all.get(at + 2).is_some_and(|word| word.is(&["can", "could", "please"])) =>
        {
            None
        }
        "if" if before(ASKING) && !next(&["so", "not", "yes", "no"]) => None,
        "if" | "unless" | "otherwise" | "else" | "whenever" | "except" | "provided" | "assuming" | "depending"
        | "in-case" => Some(CONDITION),
        "until" | "till" if !all.get(at + 1).is_some_and(Token::has_digit) => Some(CONDITION),
        "case" if before(&["in"]) && !next(&["of", "number"]) => Some(CONDITION),
        "long" if before(&["as"]) && next(&["as"]) => Some(CONDITION),
        "when" | "once" if is_condition(all, at) => Some(CONDITION),
        "not" | "don't" | "don’t" | "dont" | "never" | "without" | "avoid" | "cannot" | "can't" | "nobody"
        | "excluding" => Some(NEGATION),
        "every" | "each" if next(UNITS) => Some(SCHEDULE),
        "daily" | "weekly" | "hourly" | "monthly" | "nightly"
            if at + 1 == all.len() || next(REPORTS) || token.pauses() =>
        {
            Some(SCHEDULE)
        }
        _ => None,
    }
}

const UNITS: &[&str] = &[
    "day",
    "week",
    "hour",
    "month",
    "year",
    "minute",
    "morning",
    "evening",
    "night",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "weekday",
    "quarter",
    "time",
    "few",
    "other",
];
const REPORTS: &[&str] =
    &["report", "summary", "update", "updates", "digest", "mail", "email", "at", "alert", "check", "briefing"];

/// "When was it built" asks, "when it is done" is a condition.
fn is_condition(all: &[Token], at: usize) -> bool {
    let asks = &["was", "is", "were", "did", "does", "do", "are", "will", "can", "has", "to"];
    let next_asks = all.get(at + 1).is_some_and(|next| next.is(asks));
    if all[at].lower == "once" {
        return all.get(at + 1).is_some_and(|next| {
            next.is(&["a", "per", "it", "you", "they", "the", "he", "she", "that", "this", "done"])
        });
    }
    let is_asked = at > 0 && all[at - 1].is(&["out", "know", "me", "check", "determine", "up", "and", "where"]);
    !(at == 0 && next_asks
        || is_asked
            && !all
                .first()
                .is_some_and(|first| first.is(&["email", "mail", "text", "call", "e-mail", "notify", "send"])))
}
