//! Splits the words of a task into clauses, each of which starts with a verb or says where or when the next one holds.

use super::pairs;
use super::words::{Token, fold, joined};

/// Words that start a clause. Those that are also nouns start one only after a comma, "and" or "then".
const VERBS: &[&str] = &[
    "open",
    "visit",
    "navigate",
    "go",
    "load",
    "click",
    "tap",
    "press",
    "hit",
    "push",
    "select",
    "choose",
    "pick",
    "enter",
    "type",
    "fill",
    "input",
    "write",
    "put",
    "set",
    "check",
    "tick",
    "uncheck",
    "untick",
    "scroll",
    "wait",
    "read",
    "find",
    "locate",
    "search",
    "look",
    "log",
    "login",
    "sign",
    "drag",
    "move",
    "expand",
    "collapse",
    "switch",
    "submit",
    "hover",
    "focus",
    "copy",
    "paste",
    "highlight",
    "close",
    "dismiss",
    "delete",
    "remove",
    "reply",
    "forward",
    "send",
    "order",
    "buy",
    "book",
    "mark",
    "sort",
    "extract",
    "get",
    "tell",
    "return",
    "report",
    "give",
    "what",
    "what's",
    "how",
    "which",
    "is",
    "are",
    "use",
    "using",
    "generate",
    "guess",
    "solve",
    "resize",
    "count",
    "accept",
    "add",
    "clear",
    "upload",
    "attach",
    "take",
    "capture",
    "download",
    "double-click",
    "right-click",
    "toggle",
    "turn",
    "star",
    "list",
    "show",
    "make",
    "create",
    "complete",
    "confirm",
    "save",
    "edit",
    "like",
    "share",
    "insert",
    "browse",
    "agree",
    "unfold",
    "proceed",
    "continue",
    "change",
    "update",
    "view",
    "let",
];
/// They say when or where, and the clause after them says what.
const BEFORE: [&str; 13] =
    ["for", "in", "on", "under", "at", "from", "if", "when", "once", "after", "using", "inside", "within"];
/// They join a clause to the one before.
const JOINERS: [&str; 9] = ["and", "then", "finally", "also", "afterwards", "to", "please", "next", "lastly"];
/// Said before a verb, without a meaning of its own.
const POLITE: [&str; 24] = [
    "please",
    "now",
    "then",
    "first",
    "firstly",
    "next",
    "finally",
    "lastly",
    "also",
    "and",
    "just",
    "kindly",
    "to",
    "afterwards",
    "second",
    "secondly",
    "third",
    "-",
    "*",
    "•",
    "–",
    "can",
    "could",
    "you",
];

/// Words of courtesy before one step; what is longer is none.
const MOST_LEAD: usize = 24;
/// Said before a step, without a meaning of their own.
const LEADS: &[&[&str]] = &[
    &["i", "want", "you", "to"],
    &["i", "need", "you", "to"],
    &["i", "would", "like", "you", "to"],
    &["i'd", "like", "you", "to"],
    &["i", "want", "to"],
    &["i", "need", "to"],
    &["i", "would", "like", "to"],
    &["i'd", "like", "to"],
    &["you", "should"],
    &["you", "need", "to"],
    &["you", "have", "to"],
    &["your", "task", "is", "to"],
    &["the", "task", "is", "to"],
    &["would", "you"],
    &["will", "you"],
    &["help", "me"],
    &["be", "so", "kind", "and"],
    &["be", "so", "kind", "as", "to"],
    &["go", "ahead", "and"],
    &["try", "to"],
    &["make", "sure", "to"],
    &["be", "sure", "to"],
    &["do", "the", "following"],
    &["follow", "these", "steps"],
    &["here", "is", "what", "to", "do"],
    &["after", "that"],
    &["after", "this"],
    &["after", "doing", "that"],
    &["when", "done"],
    &["once", "done"],
    &["when", "you", "are", "done"],
    &["once", "you", "are", "done"],
    &["when", "that", "is", "done"],
    &["once", "that", "is", "done"],
    &["when", "that's", "done"],
    &["once", "that's", "done"],
    &["when", "the", "page", "opens"],
    &["when", "the", "page", "has", "loaded"],
    &["once", "the", "page", "has", "loaded"],
    &["once", "you", "are", "there"],
    &["on", "the", "page", "that", "opens"],
    &["on", "the", "page", "that", "loads"],
    &["on", "the", "opened", "page"],
    &["on", "the", "resulting", "page"],
    &["on", "the", "next", "page"],
    &["on", "the", "new", "page"],
    &["on", "that", "page"],
    &["on", "this", "page"],
    &["on", "the", "page"],
    &["from", "there"],
    &["in", "the", "end"],
    &["at", "the", "end"],
    &["there"],
    &["lastly"],
    &["thirdly"],
    &["as", "a", "last", "step"],
    &["thanks"],
    &["thank", "you"],
    &["hi"],
    &["hello"],
];

#[derive(Clone, Debug)]
pub struct Clause {
    pub tokens: Vec<Token>,
    /// It only says where.
    pub context: bool,
    pub optional: bool,
    /// It belongs to the clause before it, in the same sentence or right after "find".
    pub follows: bool,
}

/// How many words say nothing before the step: these and `LEADS`.
fn leading(tokens: &[Token], words: &[&str]) -> usize {
    let mut at = 0;
    loop {
        let rest = &tokens[at..];
        // "First name" is the name of a field.
        if matches!(rest, [_, name, ..] if name.is(&["name", "names"])) {
            return at;
        }
        let is_said =
            |lead: &&&[&str]| rest.len() >= lead.len() && lead.iter().zip(rest).all(|(word, t)| t.is(&[word]));
        let longest = LEADS.iter().filter(is_said).map(|lead| lead.len()).max();
        let more = longest.unwrap_or_else(|| usize::from(rest.first().is_some_and(|t| t.is(words))));
        if more == 0 || at > MOST_LEAD {
            return at;
        }
        at += more;
    }
}

/// Whether a clause may start with it.
#[must_use]
pub fn is_verb(token: &Token) -> bool {
    token.is(VERBS)
}

/// Whether a clause starts here: "visit the page", but not "Visit date to …".
fn starts(tokens: &[Token]) -> bool {
    const NOUNS: &[&str] = &["date", "name", "number", "code", "time", "type", "title", "id", "address"];
    let is_field = matches!(tokens, [_, noun, joiner, ..]
        if noun.is(NOUNS) && (noun.after == Some(':') || joiner.is(&["to", "with", "as", "is", "="])));
    tokens.first().is_some_and(is_verb) && !is_field
}

/// Whether a word is the number of a list of steps: `1.`, `2)`, `Step 3:`.
fn is_number(token: &Token) -> bool {
    !token.quoted
        && (token.low.strip_suffix(')').unwrap_or(&token.low).parse::<u32>().is_ok())
        && (token.low.ends_with(')') || token.after == Some('.'))
}

/// Splits a task.
#[must_use]
pub fn clauses(tokens: &[Token]) -> Vec<Clause> {
    let mut out: Vec<Clause> = Vec::new();
    let mut current: Vec<Token> = Vec::new();
    let mut follows = false;
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        // Where the next clause would start, past "and then".
        let skip = leading(&tokens[at..], &JOINERS);
        // "…, please. Click Send": what ends a sentence does not start the next clause.
        let ended = tokens[at..at + skip].iter().any(|t| matches!(t.after, Some('.' | '!' | '?' | ';' | '\n')));
        let verb = !ended && starts(&tokens[at + skip..]);
        let mark = current.last().and_then(|t| t.after);
        // A missing comma: "scroll to the top hit submit".
        let strong = token.is(&["hit", "press", "click"])
            && current.len() > 2
            && !current.last().is_some_and(|t| t.is(&["to", "and", "or", "then", "by", "the", "a"]));
        let strong = strong && tokens.get(at + 1).is_some_and(|t| t.is(&["submit", "save", "enter", "ok"]));
        let joins = skip > 0 && token.is(&["and", "then", "finally", "afterwards"]);
        let upper = token.text.chars().next().is_some_and(|c| c.is_uppercase() || c.is_numeric()) || token.quoted;
        let ends = match mark {
            Some('\n' | ';' | '?') => true,
            Some('.' | '!') => {
                verb || is_number(token)
                    || token.is(&BEFORE)
                    || token.is(&POLITE)
                    || (upper && current.last().is_some_and(|t| t.text.len() > 3 || t.quoted))
            }
            Some(',') => verb || token.is(&["if", "then"]),
            Some(':') => verb && current.iter().all(|t| !is_verb(t)),
            _ => (joins && verb) || strong,
        };
        // "for the form to be sent": a purpose is no clause; "and" joins only verbs.
        let bare_to = token.is(&["to"]) && mark != Some(',');
        if ends && !bare_to && !current.is_empty() {
            push(&mut out, std::mem::take(&mut current), follows);
            follows = mark != Some('\n');
        }
        if current.is_empty() && (is_number(token) || token.is(&["step"])) {
            // The numbers of a list say nothing.
            at += 1;
            if token.is(&["step"]) && tokens.get(at).is_some_and(|t| t.low.parse::<u32>().is_ok()) {
                at += 1;
            }
            continue;
        }
        current.push(token.clone());
        at += 1;
    }
    push(&mut out, current, follows);
    out
}

fn push(out: &mut Vec<Clause>, mut tokens: Vec<Token>, follows: bool) {
    let lead = leading(&tokens, &POLITE);
    tokens.drain(..lead.min(tokens.len()));
    while tokens.len() > 1 && tokens.last().is_some_and(|t| t.is(&["please", "thanks"])) && !pairs::is_line(&tokens) {
        tokens.pop();
    }
    let Some(first) = tokens.first() else { return };
    let mut optional = false;
    if first.is(&["if"]) {
        // "if asked, click …": the words up to the comma are the condition.
        let Some(comma) = tokens.iter().position(|t| t.after == Some(',')).filter(|at| at + 1 < tokens.len()) else {
            let last_is_condition =
                !tokens.iter().skip(1).any(is_verb) || tokens.last().is_some_and(|t| t.after == Some(','));
            out.push(Clause { context: false, optional: last_is_condition, tokens, follows });
            return;
        };
        tokens.drain(..=comma);
        optional = true;
    } else if out.last().is_some_and(|c| c.optional && c.tokens.first().is_some_and(|t| t.is(&["if"]))) {
        out.pop();
        optional = true;
    }
    let Some(first) = tokens.first() else { return };
    if first.is(&["using", "when", "once", "after"]) && !tokens.iter().skip(1).any(is_verb) {
        return;
    }
    let context = first.is(&BEFORE) && tokens.last().is_some_and(|t| t.after == Some(','));
    if first.is(&["once", "when", "after", "using"]) && context {
        return;
    }
    out.push(Clause { context, optional, tokens, follows });
}

/// The part of "for the user @leo" that the page shows.
#[must_use]
pub fn phrase(tokens: &[Token]) -> String {
    if let Some(quoted) = tokens.iter().find(|t| t.quoted) {
        return fold(&quoted.text);
    }
    let dull = [
        "the", "a", "an", "user", "section", "page", "row", "of", "card", "panel", "dialog", "form", "menu", "list",
        "tab", "with", "by",
    ];
    let kept: Vec<Token> = tokens.iter().filter(|t| !t.is(&dull)).cloned().collect();
    fold(&joined(&kept))
}

#[cfg(test)]
mod tests {
    use super::super::words::tokens;
    use super::*;

    fn split(text: &str) -> Vec<String> {
        clauses(&tokens(text)).iter().map(|c| joined(&c.tokens)).collect()
    }

    #[test]
    fn sentences_lists_and_conditions_become_clauses() {
        assert_eq!(
            split("Please open https://a.example/x, enter \"Ada\" and then click Save. Finally press Enter"),
            ["open https://a.example/x", "enter Ada", "click Save", "press Enter"]
        );
        assert_eq!(
            split("1. Click A\n2. Type \"b, and c\" into D\n- submit"),
            ["Click A", "Type b, and c into D", "submit"]
        );
        assert_eq!(split("Select a, b and click Submit."), ["Select a, b", "click Submit"]);
        let list = clauses(&tokens("If asked about cookies, click Accept. For the user @leo, click \"Like\"."));
        assert!(list[0].optional && joined(&list[0].tokens) == "click Accept");
        assert!(list[1].context && !list[2].context);
    }
}
