//! The words of a clause that say what is looked for.

use std::collections::HashSet;

use crate::clauses::Clause;
use crate::words::{NOUN_VERBS, Token, VERBS, number_word};

const MEDIA: &[&str] = &["web", "internet", "online", "google", "net"];
const GENERIC: &[&str] = &[
    "information",
    "info",
    "articles",
    "article",
    "papers",
    "paper",
    "news",
    "pages",
    "page",
    "publications",
    "results",
    "report",
    "summary",
    "documents",
    "details",
    "facts",
    "everything",
    "something",
    "overview",
    "studies",
    "data",
    "search",
    "research",
    "sources",
    "latest",
    "recent",
    "newest",
    "best",
    "opinions",
    "cases",
    "topic",
    "question",
    "posts",
    "websites",
    "sites",
    "links",
];
const LEADERS: &[&str] = &[
    "quick",
    "deep",
    "short",
    "brief",
    "thorough",
    "detailed",
    "me",
    "us",
    "up",
    "out",
    "into",
    "the",
    "a",
    "an",
    "some",
    "any",
    "all",
    "for",
    "on",
    "about",
    "of",
    "over",
    "regarding",
    "what",
    "you",
    "can",
    "court",
    "scientific",
    "scholarly",
    "top",
    "first",
    "whether",
    "if",
    "do",
];
const TAILS: &[&str] = &[
    "on", "the", "in", "web", "internet", "online", "please", "and", "for", "me", "using", "google", "via", "with",
    "now", "then", "also",
];

/// What is asked: the clause without its verb and what leads to it. A quotation stands for itself.
/// `own` are the stems of the tool's words: of "clinical trials for diabetes", the tool for them wants the last.
pub(crate) fn query(clause: &Clause, used: &[bool], own: &HashSet<String>) -> Option<String> {
    let all = &clause.tokens;
    let mut from = usize::from(
        all.first().is_some_and(|first| is_verb_word(first) || first.is(&["do", "conduct", "perform", "run"])),
    );
    let is_led = from > 0 || all.first().is_some_and(|first| first.is(&["a", "an", "the"]) || first.is(GENERIC));
    let led = |at: usize| {
        let token = &all[at];
        let is_generic = token.is(GENERIC)
            && all[at + 1..]
                .iter()
                .take(2)
                .any(|next| next.is(&["about", "on", "for", "of", "regarding", "that", "from"]) || next.is(GENERIC));
        token.is(LEADERS)
            || token.is(MEDIA)
            || is_generic
            || used[at] && (number_word(&token.lower).is_some() || token.has_digit())
    };
    while is_led && from + 1 < all.len() && led(from) {
        from += 1;
    }
    let is_own = |token: &Token| {
        !token.quoted
            && !token.is_capital()
            && (own.contains(&base::words::stem(&token.lower)) || token.is(LEADERS) || token.is(GENERIC))
    };
    let lead = all[from..].iter().take(6).position(|token| token.is(&["for", "about", "on", "of", "regarding", "by"]));
    if let Some(lead) = lead
        && is_led
        && from + lead + 1 < all.len()
        && all[from..from + lead].iter().all(is_own)
    {
        from += lead + 1;
    }
    let mut to = all.len();
    while to > from + 1
        && (all[to - 1].is(TAILS) || used[to - 1] || used.get(to).is_some_and(|used| *used) && all[to - 1].is(DATED))
    {
        to -= 1;
    }
    while to > from + 1 && to < all.len() && all[to - 1].is(DATED) {
        to -= 1;
    }
    let rest = all.get(from..to).filter(|rest| !rest.is_empty())?;
    if !rest.iter().any(|token| token.quoted)
        && rest.iter().all(|token| token.is(crate::words::PRONOUNS) || token.is(&["each", "every"]))
        && !is_led
    {
        return None;
    }
    if let [only] = rest {
        return Some(only.text.clone());
    }
    if let Some(quoted) = rest.iter().find(|token| token.quoted)
        && rest.len() <= 3
    {
        return Some(quoted.text.clone());
    }
    Some(slice(clause, from, to))
}

/// Words of the clause as they stand in the objective.
pub(crate) fn slice(clause: &Clause, from: usize, to: usize) -> String {
    let (first, last) = (&clause.tokens[from], &clause.tokens[to - 1]);
    let begin = first.start.saturating_sub(clause.start + usize::from(first.quoted));
    let end = last.end.saturating_sub(clause.start) + usize::from(last.quoted);
    let text =
        clause.text.get(begin..end.min(clause.text.len())).or_else(|| clause.text.get(begin..)).unwrap_or(&clause.text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn is_verb_word(token: &Token) -> bool {
    token.is(VERBS) || token.is(NOUN_VERBS)
}

const DATED: &[&str] =
    &["after", "before", "since", "until", "from", "filed", "published", "dated", "on", "between", "limit", "to"];
const ENDS: &[&str] = &[
    "in", "at", "of", "from", "near", "around", "with", "who", "that", "working", "for", "and", "based", "on", "about",
    "to", "whose", "which", "by", "within",
];
const CONTACTS: &[&str] = &[
    "phone",
    "number",
    "numbers",
    "email",
    "e-mail",
    "address",
    "addresses",
    "website",
    "name",
    "names",
    "contact",
    "details",
    "emails",
    "profile",
    "profiles",
];

/// "three software engineers in Berlin": the noun and its adjectives.
pub(crate) fn kind(clause: &Clause, used: &[bool]) -> Option<(usize, usize)> {
    let all = &clause.tokens;
    let skipped = |token: &Token| {
        token.is(LEADERS)
            || is_verb_word(token) && !token.pauses() && token.is(VERBS)
            || token.is(&["best", "local", "nearby", "good", "who", "is", "are", "their", "its", "list", "search"])
            || number_word(&token.lower).is_some()
            || token.tail.contains(':')
            || token.text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut from = 0;
    loop {
        while from < all.len() && skipped(&all[from]) {
            from += 1;
        }
        let mut to = from;
        while to < all.len()
            && !all[to].is(ENDS)
            && !all[to].quoted
            && !used[to]
            && (to == from || !all[to - 1].pauses())
        {
            to += 1;
        }
        let is_contact = to > from && all[from..to].iter().all(|token| token.is(CONTACTS));
        if is_contact && to < all.len() {
            from = to + 1;
            continue;
        }
        let points =
            all[from.min(to)..to].iter().any(|token| token.is(crate::words::PRONOUNS) || token.is(&["each", "every"]));
        let is_fit = !points
            && to > from
            && to - from <= 4
            && !is_contact
            && all[from..to].iter().all(|token| token.text.len() > 1 && !token.text.contains('@'));
        let says_something = is_fit
            && !all[from..to].iter().all(|token| {
                token.is(&[
                    "people",
                    "works",
                    "work",
                    "person",
                    "employees",
                    "companies",
                    "company",
                    "businesses",
                    "someone",
                    "somebody",
                    "anyone",
                ]) || token.is(GENERIC)
            });
        let role = all
            .iter()
            .position(|token| token.is(&["as"]))
            .map(|at| (at + 1, all.len()))
            .filter(|(from, to)| from < to && to - from <= 3);
        return if says_something { Some((from, to)) } else { role.filter(|_| is_fit) };
    }
}
