//! Whom a clause reaches, and the quotations that it sends. What has no single place in one call is refused.

use serde_json::Value;

use crate::Source;
use crate::clauses::{Clause, message_at};
use crate::meaning::{Meaning, Slot};
use crate::values::Found;
use crate::words::Token;

/// Verbs with which an assistant speaks on the phone.
const SPEAKS: &[&str] = &["ask", "tell", "say", "book", "reserve", "inquire", "order", "confirm"];
pub(crate) const SENDS: &[&str] =
    &["email", "e-mail", "mail", "text", "sms", "call", "phone", "ring", "dial", "send", "forward"];
/// Before "to", these say whose something is, and not where it goes.
const NO_GOAL: &[&str] = &[
    "according",
    "sent",
    "belongs",
    "belonging",
    "related",
    "thanks",
    "due",
    "replied",
    "said",
    "given",
    "happened",
    "owed",
    "similar",
    "copy",
];

/// The places of a clause's recipients and quotations.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The first words of the recipients.
    pub recipients: Vec<usize>,
    /// Where the words of a message begin that stand without quotation marks; the number of words, if there are none.
    pub words_from: usize,
    pub body: Option<usize>,
    pub subject: Option<usize>,
}

/// Whether a tool reaches people: it acts, and needs an address or a number.
pub(crate) fn reaches(acts: bool, slots: &[Slot]) -> bool {
    acts && slots.iter().any(|slot| slot.required && matches!(slot.meaning, Meaning::Email | Meaning::Phone))
}

/// Whether a tool talks to whom it reaches: it gets a task in words.
pub(crate) fn talks(slots: &[Slot]) -> bool {
    slots.iter().any(|slot| slot.required && slot.meaning == Meaning::Query)
}

fn is_contact(found: &&Found) -> bool {
    matches!(found.meaning, Meaning::Email | Meaning::Phone)
}

/// Reads a clause that reaches people.
///
/// # Errors
/// An address or a quotation whose place is not clear.
pub(crate) fn read(clause: &Clause, found: &[Found], talks: bool) -> Result<Reading, String> {
    let tokens = &clause.tokens;
    let words_from = words_from(tokens, found, talks);
    let contacts: Vec<&Found> = found.iter().filter(is_contact).collect();
    let (list, inside): (Vec<&Found>, Vec<&Found>) = contacts.into_iter().partition(|one| one.from < words_from);
    if let Some(at) = (1..words_from).find(|at| is_lost(tokens, found, *at)) {
        return Err(format!(
            "\u{201c}{}\u{201d} may be a recipient, but is no whole address or number. Write all recipients as e-mail addresses, or as phone numbers with their country codes",
            tokens[at].text
        ));
    }
    for one in &inside {
        in_words(tokens, one, &list, talks)?;
    }
    for (at, one) in list.iter().enumerate() {
        let is_joined = match at.checked_sub(1).map(|before| list[before]) {
            Some(before) => joins(tokens, before, one),
            None => leads(tokens, one),
        };
        if tokens[one.from].quoted || !is_joined {
            return Err(format!(
                "\u{201c}{}\u{201d} is not clearly a recipient. Write one sentence for each message, with its recipients behind the verb or behind \u{201c}to\u{201d}, and everything else of the message in quotation marks: Email ada@example.com \u{201c}Hello\u{201d}",
                tokens[one.from].text
            ));
        }
    }
    let (subject, body) = quotations(tokens, words_from, talks)?;
    Ok(Reading { recipients: list.iter().map(|one| one.from).collect(), words_from, body, subject })
}

/// "and me", "and 415-555-0101", "and bob@localhost": somebody else, whom a call would leave out.
fn is_lost(tokens: &[Token], found: &[Found], at: usize) -> bool {
    let token = &tokens[at];
    if token.quoted || found.iter().filter(is_contact).any(|one| one.from <= at && at < one.to) {
        return false;
    }
    let before = tokens[..at].iter().rposition(|token| !token.is(&["to", "also"])).unwrap_or(0);
    let is_joined = before > 0 && (tokens[before].is(&["and", "plus"]) || tokens[before].tail.contains(','));
    let digits = token.text.bytes().filter(u8::is_ascii_digit).count();
    let is_number = digits > 6 && !token.text.bytes().any(|byte| byte.is_ascii_alphabetic());
    is_joined && token.is(&["me", "us", "her", "him", "them"]) || is_number || token.text.contains('@')
}

/// Where words without quotation marks begin that are to be said.
fn words_from(tokens: &[Token], found: &[Found], talks: bool) -> usize {
    let says = message_at(tokens).filter(|at| !tokens.get(*at).is_some_and(|token| token.quoted));
    let reached = found.iter().filter(is_contact).map(|one| one.to).next().unwrap_or(1);
    let speaks = (reached..tokens.len()).find(|at| talks && tokens[*at].is(SPEAKS));
    says.into_iter().chain(speaks).min().unwrap_or(tokens.len()).min(tokens.len())
}

/// An address among the words that are to be said: it may be meant as another recipient.
fn in_words(tokens: &[Token], one: &Found, list: &[&Found], talks: bool) -> Result<(), String> {
    let before = &tokens[one.from - usize::from(one.from > 0)];
    let follows = tokens.get(one.to).is_some_and(|next| next.quoted || next.is(&["saying", "says"]));
    let sends = (1..one.from)
        .any(|at| tokens[at].is(SENDS) && (tokens[at - 1].is(&["and", "then", "but"]) || tokens[at - 1].pauses()));
    let is_other = before.is(&["and", "cc", "bcc", "copy", "plus"])
        || before.quoted
        || before.tail.contains([',', ';'])
        || before.is(&["to"]) && list.is_empty()
        || talks && before.is(&["tell", "ask"])
        || follows
        || sends
        || tokens[one.from].quoted;
    if is_other || list.is_empty() && before.is(&["to", "at", "for"]) {
        return Err(format!(
            "whether \u{201c}{}\u{201d} is a recipient or a part of the message is not clear. Write the message in quotation marks, and one sentence for each message",
            tokens[one.from].text
        ));
    }
    Ok(())
}

/// "A and B", "A, B".
fn joins(tokens: &[Token], before: &Found, one: &Found) -> bool {
    let between = &tokens[before.to..one.from];
    let has_comma = tokens[before.to - 1].tail.contains(',');
    let has_and = between.first().is_some_and(|token| token.is(&["and", "or"]));
    between.len() <= 2
        && (has_comma || has_and)
        && between.iter().all(|token| token.is(&["and", "or", "to"]) && !token.pauses())
}

/// The first recipient stands behind the verb or behind "to".
fn leads(tokens: &[Token], one: &Found) -> bool {
    const NOUNS: &[&str] = &[
        "the",
        "number",
        "numbers",
        "address",
        "addresses",
        "phone",
        "e-mail",
        "email",
        "mail",
        "mobile",
        "following",
        "these",
        "both",
    ];
    let mut at = one.from;
    while at > 1 && tokens[at - 1].is(NOUNS) {
        at -= 1;
    }
    let Some(before) = at.checked_sub(1) else { return false };
    let is_for_speaker = before > 0 && tokens[before - 1].is(&["me", "us", "her", "him", "them"]);
    match before {
        0 => crate::phrase::is_verb_word(&tokens[0]) || tokens[0].is(SENDS),
        _ if tokens[before].is(&["to"]) => !tokens[before - 1].is(NO_GOAL),
        _ => tokens[before].is(&["at"]) || is_for_speaker && tokens[before].is(&["on"]),
    }
}

/// The quotations of the subject and of the message: at most one of each.
fn quotations(tokens: &[Token], words_from: usize, talks: bool) -> Result<(Option<usize>, Option<usize>), String> {
    let is_subject =
        |at: usize| (1..=2).any(|back| at >= back && tokens[at - back].is(&["subject", "titled", "title"]));
    let (mut subject, mut body) = (None, None);
    for at in (0..tokens.len()).filter(|at| tokens[*at].quoted) {
        let is_inside = at >= words_from;
        let place = match (is_subject(at), is_inside) {
            (false, true) => continue,
            (true, true) if talks => continue,
            (true, true) => {
                return Err(format!(
                    "whether \u{201c}{}\u{201d} is the subject or a part of the message is not clear. Write the subject before the message, and the message in quotation marks",
                    tokens[at].text
                ));
            }
            (true, false) => &mut subject,
            (false, false) => &mut body,
        };
        let is_second = place.is_some() || words_from < tokens.len() && !is_subject(at) && !talks;
        if is_second {
            return Err(format!(
                "\u{201c}{}\u{201d}: one sentence sends one message. Write a sentence for each: Email ada@example.com \u{201c}One\u{201d}. Email bob@example.com \u{201c}Two\u{201d}",
                tokens[at].text
            ));
        }
        *place = Some(at);
    }
    let has_subject_word = tokens[..words_from].iter().any(|token| token.is(&["subject"]));
    if has_subject_word && subject.is_none() && body.is_some() && !talks {
        return Err("which quotation is the subject is not clear. Write: Email ada@example.com \u{201c}Hello\u{201d} with the subject \u{201c}Greeting\u{201d}".to_owned());
    }
    Ok((subject, body))
}

/// Whether every recipient and every quotation has its place in a call. `many` are values of calls of their own.
pub(crate) fn placed<'a>(
    clause: &Clause,
    found: &[Found],
    reading: &Reading,
    inputs: impl Iterator<Item = &'a Source>,
    many: &[Value],
) -> Result<(), String> {
    let mut values: Vec<&Value> = many.iter().collect();
    for source in inputs {
        match source {
            Source::Value(Value::Array(items)) => values.extend(items),
            Source::Value(value) => values.push(value),
            _ => {}
        }
    }
    let is_listed = |one: &&Found| reading.recipients.contains(&one.from);
    let lost = found.iter().filter(is_listed).find(|one| !values.contains(&&one.value)).map(|one| one.from);
    let inside = found.iter().filter(is_contact).map(|one| one.from).filter(|at| *at >= reading.words_from);
    let quotes = (0..clause.tokens.len()).filter(|at| clause.tokens[*at].quoted);
    let has = |at: &usize| {
        let text = &clause.tokens[*at].text;
        values.iter().any(|value| value.as_str().is_some_and(|words| words.contains(text.as_str())))
    };
    match lost.or_else(|| inside.chain(quotes).find(|at| !has(at))) {
        Some(at) => Err(format!(
            "\u{201c}{}\u{201d} has no place in this call. Write one sentence for each message: to whom, and in quotation marks what it says",
            clause.tokens[at].text
        )),
        None => Ok(()),
    }
}
