//! Splits an objective into clauses, one wish each, and refuses conditions, negations and schedules.

use crate::Refusal;
use crate::words::{Token, is_verb, tokens};

/// One wish.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub tokens: Vec<Token>,
    /// As it stands in the objective.
    pub text: String,
    /// It begins with "then" or stands behind another sentence.
    pub follows: bool,
    /// Where `text` begins in the objective.
    pub start: usize,
}

/// Words with a dot that ends no sentence.
const SHORT: &[&str] = &[
    "inc", "ltd", "co", "corp", "dr", "mr", "mrs", "ms", "prof", "st", "no", "vs", "e.g", "i.e", "etc", "u.s", "jr",
    "sr", "dept", "approx", "ave", "llc",
];

/// What may stand before the verb of a wish.
const LEADS: &[&str] = &[
    "and",
    "then",
    "also",
    "please",
    "finally",
    "next",
    "afterwards",
    "lastly",
    "first",
    "second",
    "third",
    "firstly",
    "secondly",
    "step",
    "now",
    "kindly",
    "hi",
    "hello",
    "hey",
    "thanks",
];
const WISHES: &[&[&str]] = &[
    &["after", "that"],
    &["can", "you"],
    &["could", "you"],
    &["would", "you"],
    &["will", "you"],
    &["i", "want", "you", "to"],
    &["i", "would", "like", "you", "to"],
    &["i'd", "like", "you", "to"],
    &["i", "need", "you", "to"],
    &["i", "want", "to"],
    &["i", "need", "to"],
    &["i", "would", "like", "to"],
    &["i'd", "like", "to"],
    &["we", "need", "to"],
    &["help", "me"],
    &["your", "task", "is", "to"],
    &["you", "should"],
];

pub(crate) fn split(text: &str) -> Vec<Clause> {
    let all: Vec<Token> = tokens(text)
        .into_iter()
        .filter(|token| !token.text.is_empty() || token.head.contains(['-', '*', '•']))
        .collect();
    let mut clauses = Vec::new();
    let mut begin = 0;
    for at in 1..=all.len() {
        if at == all.len() || is_boundary(&all, begin, at) {
            clauses.extend(clause(text, &all[begin..at], begin > 0));
            begin = at;
        }
    }
    clauses
}

fn clause(text: &str, all: &[Token], is_later: bool) -> Option<Clause> {
    let follows = is_later
        && !all.first().is_some_and(|first| first.is(&["and"]) && !all.get(1).is_some_and(|next| next.is(&["then"])));
    let kept = without_lead(all);
    let (first, last) = (kept.first()?, kept.last()?);
    let (start, mut end) = (first.start, last.end);
    let mut start = if first.quoted { start.saturating_sub(1) } else { start };
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    if last.quoted {
        end += text[end..].chars().next().map_or(0, char::len_utf8);
    }
    Some(Clause { tokens: kept.to_vec(), text: text[start..end].to_owned(), follows, start })
}

/// Without "and then", "please", "2." and "could you".
fn without_lead(mut all: &[Token]) -> &[Token] {
    while let [first, rest @ ..] = all {
        let is_mark = first.text.is_empty()
            || first.opens_line
                && first.tail.starts_with(['.', ')', ':'])
                && first.text.bytes().all(|byte| byte.is_ascii_digit())
            || first.tail.starts_with(')') && first.text.len() <= 2 && first.has_digit();
        let said =
            |wish: &&&[&str]| all.len() > wish.len() && wish.iter().zip(all).all(|(word, token)| token.is(&[word]));
        if is_mark || first.is(LEADS) {
            all = rest;
        } else if let Some(wish) = WISHES.iter().find(said) {
            all = &all[wish.len()..];
        } else {
            break;
        }
    }
    all
}

fn is_boundary(all: &[Token], begin: usize, at: usize) -> bool {
    let (before, token) = (&all[at - 1], &all[at]);
    if ends_sentence(before, token, all.get(at + 1)) {
        return true;
    }
    if before.text.is_empty() || all[begin..at].iter().all(|token| token.is(LEADS)) {
        return false;
    }
    let is_numbered = token.tail.starts_with(')')
        && token.head.is_empty()
        && token.text.len() <= 2
        && token.text.bytes().all(|byte| byte.is_ascii_digit());
    let is_item = token.opens_line
        && (token.text.is_empty()
            || is_numbered
            || token.tail.starts_with('.') && token.has_digit() && token.text.len() <= 2);
    if is_item || is_numbered {
        return true;
    }
    // What follows "saying" is a message up to the end of its sentence.
    if says(&all[begin..at]) {
        return false;
    }
    let verb_at = |from: usize| all.get(from).is_some_and(|word| is_verb(word, all.get(from + 1)));
    let behind =
        |from: usize| from + all[from.min(all.len())..].iter().take(3).take_while(|word| word.is(LEADS)).count();
    if token.is(&["then", "afterwards", "finally"]) && !before.is(&["and"]) && at + 1 < all.len() {
        return verb_at(behind(at));
    }
    let leads = token.is(&["and"]) || before.tail.contains(',') || token.opens_line;
    leads && verb_at(behind(at)) && !all[begin..at].last().is_some_and(|word| word.is(&["to"]))
}

fn ends_sentence(before: &Token, token: &Token, next: Option<&Token>) -> bool {
    if before.tail.contains(';') || before.tail.contains(['!', '?']) && !before.quoted {
        return true;
    }
    if !before.tail.contains(['.', '!', '?']) {
        return false;
    }
    let starts = token.is_capital() || token.quoted || token.opens_line || is_verb(token, next) || token.has_digit();
    // A quotation that ends with its own dot goes on in lower case.
    let is_own = before.quoted && !before.tail.ends_with(['.', '!', '?']);
    if before.quoted && (is_own || before.tail.len() == 1) {
        return token.is_capital() || token.opens_line;
    }
    let is_short = SHORT.contains(&before.lower.as_str()) || before.text.chars().count() == 1 && before.is_capital();
    let is_mark = before.text.len() <= 2 && before.text.bytes().all(|byte| byte.is_ascii_digit()) && before.opens_line;
    starts && !is_mark && (!is_short || is_verb(token, next))
}

/// Whether words of a message have begun, without quotation marks.
pub(crate) fn says(tokens: &[Token]) -> bool {
    message_at(tokens).is_some_and(|at| !tokens.get(at).is_some_and(|token| token.quoted))
}

/// Where the message of "saying …" or "that says …" begins.
pub(crate) fn message_at(tokens: &[Token]) -> Option<usize> {
    let at = tokens.iter().position(|token| token.is(&["saying", "says"]))?;
    let is_that = tokens.get(at + 1).is_some_and(|token| token.is(&["that"]));
    Some(at + 1 + usize::from(is_that))
}

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
    Ok(())
}

const CONDITION: &str = "conditions are not understood. Write what is to be done in any case, and start the rest when the result is known; words of a message belong in quotation marks";
const NEGATION: &str =
    "negations are not understood. Write only what is to be done; words of a message belong in quotation marks";
const SCHEDULE: &str = "times and repetitions are not read from the objective; a schedule has its own member";

fn unclear(all: &[Token], at: usize, token: &Token) -> Option<&'static str> {
    let before = |words: &[&str]| at > 0 && all[at - 1].is(words);
    let next = |words: &[&str]| all.get(at + 1).is_some_and(|next| next.is(words));
    if token.quoted {
        return None;
    }
    match token.lower.as_str() {
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
