//! Splits an objective into clauses, one wish each.

use crate::recipients::SENDS;
use crate::values;
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
    /// Sentences beside it that wish nothing, but may have its values: "I leave on 3 May 2026."
    pub context: Vec<Clause>,
    pub is_statement: bool,
}

impl Clause {
    /// Some of its words as a clause, and the others as one.
    pub fn parted(&self, from: usize, to: usize) -> (Clause, Clause) {
        let inner = self.tokens[from..to].to_vec();
        let start = inner.first().map_or(self.start, |token| token.start);
        let text = crate::phrase::slice(self, from, to);
        let rest = self.tokens[..from].iter().chain(&self.tokens[to..]).cloned().collect();
        let part = Clause { tokens: inner, text, start, context: self.context.clone(), ..self.clone() };
        (part, Clause { tokens: rest, context: Vec::new(), ..self.clone() })
    }
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
    &["i'm", "looking", "for"],
    &["i'm", "looking", "to"],
    &["i", "am", "looking", "for"],
    &["i", "am", "looking", "to"],
    &["i'm", "trying", "to"],
    &["i'm", "interested", "in"],
    &["i", "am", "interested", "in"],
    &["i'd", "like"],
    &["i", "would", "like"],
    &["i", "want"],
    &["i", "need"],
    &["we", "need"],
    &["we", "want"],
    &["let's"],
    &["start", "with"],
    &["begin", "with"],
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
    attached(clauses)
}

/// Statements become the context of the wish before them, or of the first one.
fn attached(clauses: Vec<Clause>) -> Vec<Clause> {
    if clauses.iter().all(|clause| clause.is_statement) {
        return clauses;
    }
    let mut wishes: Vec<Clause> = Vec::new();
    let mut early = Vec::new();
    for clause in clauses {
        match wishes.last_mut() {
            Some(wish) if clause.is_statement => wish.context.push(clause),
            None if clause.is_statement => early.push(clause),
            _ => wishes.push(clause),
        }
    }
    // "I'm in the mood for a drama. Can you find one for me?": the sentence before says what is wanted.
    let is_bare = |wish: &Clause| wish.tokens.iter().all(|token| token.is(BARE));
    if let Some(first) = wishes.first_mut() {
        if is_bare(first) && !early.is_empty() {
            *first = early.remove(0);
        }
        first.context.extend(early);
    }
    let bare: Vec<bool> = wishes.iter().enumerate().map(|(at, wish)| at > 0 && is_bare(wish)).collect();
    wishes.into_iter().zip(bare).filter(|(_, is_bare)| !is_bare).map(|(wish, _)| wish).collect()
}

/// Words of a wish that names nothing.
const BARE: &[&str] = &[
    "find",
    "one",
    "for",
    "me",
    "us",
    "something",
    "some",
    "options",
    "available",
    "get",
    "show",
    "what's",
    "any",
    "a",
    "few",
    "help",
    "out",
    "can",
    "you",
];

const STATES: &[&str] = &[
    "i",
    "i'm",
    "i've",
    "i'll",
    "my",
    "we",
    "we're",
    "our",
    "the",
    "it",
    "it's",
    "this",
    "that",
    "they",
    "he",
    "she",
    "her",
    "his",
    "their",
    "today",
    "there",
    "these",
    "those",
    "currently",
    "departing",
    "leaving",
    "starting",
    "here",
    "ours",
    "everyone",
];

fn clause(text: &str, all: &[Token], is_later: bool) -> Option<Clause> {
    let follows = is_later
        && !all.first().is_some_and(|first| first.is(&["and"]) && !all.get(1).is_some_and(|next| next.is(&["then"])));
    let (kept, is_wish) = without_lead(all);
    let has = |token: &Token| token.is(&["has", "is", "was", "lives", "works", "needs", "uses", "wants"]);
    let asks = kept.first().is_some_and(|first| {
        first.is(&["what", "who", "whose", "which", "where", "when", "how", "why", "what's", "is", "are"])
    });
    let is_said = !asks && kept.first().is_some_and(Token::is_capital) && kept.get(1).is_some_and(has);
    let is_statement = is_said
        || !is_wish && kept.first().is_some_and(|first| first.is(STATES) || values::year(&first.text).is_some());
    let (first, last) = (kept.first()?, kept.last()?);
    let (start, mut end) = (first.start, last.end);
    let mut start = if first.quoted { start.saturating_sub(1) } else { start };
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    if last.quoted {
        end += text[end..].chars().next().map_or(0, char::len_utf8);
    }
    let mut tokens = kept.to_vec();
    if is_sent(&tokens[0], tokens.get(1)) {
        "send".clone_into(&mut tokens[0].lower);
    }
    Some(Clause { tokens, text: text[start..end].to_owned(), follows, start, context: Vec::new(), is_statement })
}

/// Whether words begin with "I need to" or the like.
fn wishes(all: &[Token]) -> bool {
    WISHES.iter().any(|wish| all.len() > wish.len() && wish.iter().zip(all).all(|(word, token)| token.is(&[word])))
}

/// Whether it is a wish in the first person, too. Without "and then", "please", "2." and "could you".
fn without_lead(mut all: &[Token]) -> (&[Token], bool) {
    let mut is_wish = false;
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
            (all, is_wish) = (&all[wish.len()..], true);
        } else {
            break;
        }
    }
    (all, is_wish)
}

fn is_boundary(all: &[Token], begin: usize, at: usize) -> bool {
    let (before, token) = (&all[at - 1], &all[at]);
    if ends_sentence(before, token, all.get(at + 1)) {
        return true;
    }
    // "Email the list sent to …" says which list.
    let sends = all[begin..at].iter().find(|token| !token.is(LEADS)).is_some_and(|token| token.is(SENDS));
    if is_sent(token, all.get(at + 1)) && !sends {
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
    if (token.is(&["and", "but"]) || before.tail.contains(','))
        && wishes(&all[at + usize::from(token.is(&["and", "but"]))..])
    {
        return true;
    }
    let leads = token.is(&["and"]) || before.tail.contains(',') || token.opens_line;
    leads && verb_at(behind(at)) && !all[begin..at].last().is_some_and(|word| word.is(&["to"]))
}

/// "… sent to ada@example.com": a wish of its own.
fn is_sent(token: &Token, next: Option<&Token>) -> bool {
    let goes = next.is_some_and(|next| next.is(&["to"]));
    goes && token.is(&["sent", "mailed", "emailed", "texted", "forwarded"])
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

/// Where the message of "saying …", "that says …" or "text her that I …" begins.
pub(crate) fn message_at(tokens: &[Token]) -> Option<usize> {
    const FIRST_PERSON: &[&str] = &["i", "i'm", "i'll", "i've", "we", "we're", "we'll", "we've", "it's"];
    let sends = tokens
        .iter()
        .take(4)
        .any(|token| token.is(&["text", "email", "e-mail", "mail", "message", "tell", "notify", "send", "sms"]));
    let is_that = |at: usize| tokens[at].is(&["that"]) && tokens.get(at + 1).is_some_and(|next| next.is(FIRST_PERSON));
    let at = (0..tokens.len()).find(|at| tokens[*at].is(&["saying", "says"]) || sends && is_that(*at))?;
    let has_that = tokens.get(at + 1).is_some_and(|token| token.is(&["that"]));
    Some(at + 1 + usize::from(has_that))
}
