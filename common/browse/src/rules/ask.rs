//! Clauses that ask: for one value, for several of one thing, for the same of each thing in a list, or for their number.

use super::answer::{self, Question};
use super::read::Reading;
use super::shop::{CARTS, Cart, is_cart};
use super::step::What;
use super::words::{Token, count, fold, joined, ordinal};

/// What things of a list have, as people ask for it.
const ATTRIBUTES: &[&str] = &[
    "name",
    "title",
    "price",
    "cost",
    "link",
    "url",
    "author",
    "rating",
    "availability",
    "date",
    "headline",
    "heading",
    "description",
    "stock",
    "status",
];
/// Words before what is asked.
const DULL: &[&str] = &[
    "new", "final", "overall", "who", "my", "your", "me", "us", "out", "the", "a", "an", "what", "is", "are", "know",
    "please", "back",
];
/// Pages that are already there.
const HERE: &[&str] = &[
    "this", "that", "current", "same", "product", "next", "opened", "new", "web", "results", "result", "first", "main",
    "details", "detail",
];

/// Which things of a list are asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Each {
    pub attributes: Vec<String>,
    /// The first so many; `None`: all.
    pub first: Option<usize>,
    /// Exactly one thing was asked for, and its values are the answer.
    pub single: bool,
}

/// Reads a clause that asks; `None` if no rule reads it.
#[must_use]
pub fn read(first: &Token, rest: &[Token], reading: &Reading) -> Option<Vec<What>> {
    let (rest, before) = place(rest);
    let mut steps: Vec<What> = before.into_iter().collect();
    let start = rest.iter().take_while(|t| t.is(&["me", "us", "know", "out"])).count();
    // "what does the Red Kettle cost"
    if let [does, thing @ .., cost] = rest
        && does.is(&["does", "do", "did"])
        && cost.is(&["cost", "costs"])
        && !thing.is_empty()
    {
        let of: Vec<Token> = thing.iter().filter(|t| !t.is(&["the", "a", "an"])).cloned().collect();
        steps.push(What::Ask(Question::Value { words: "price".to_owned(), of: Some(fold(&joined(&of))) }));
        return Some(steps);
    }
    let many = rest[start..].first().is_some_and(|t| t.is(&["how"])) && !first.is(&["how"]);
    let (first, rest) = if many { (&rest[start], &rest[start + 1..]) } else { (first, rest) };
    // "tell me what the total is"
    let rest = match rest.split_last() {
        Some((last, front)) if last.is(&["is", "are", "was"]) && front.len() > 1 => front,
        _ => rest,
    };
    if !first.is(&["how", "count", "is", "are", "does", "when", "where", "who"])
        && let Some(questions) = attributes(rest, reading)
    {
        steps.extend(questions.into_iter().map(What::Ask));
        return Some(steps);
    }
    let questions = answer::read_each(first, rest)?;
    steps.extend(questions.into_iter().map(What::Ask));
    Some(steps)
}

/// Whether a clause such as "find the price of X" asks for a value.
#[must_use]
pub fn is_value(rest: &[Token]) -> bool {
    let start = rest.iter().take_while(|t| t.is(DULL)).count();
    let Some(head) = rest.get(start) else { return false };
    let says = head.is(&["price", "cost", "total", "author", "phone", "rating", "availability", "number"]);
    let next = rest.get(start + 1);
    let of = rest.iter().any(|t| t.is(&["of"]));
    says && (of || next.is_none() || (head.is(&["phone"]) && next.is_some_and(|t| t.is(&["number"]))))
        && !rest.iter().any(|t| t.quoted && of && head.is(&["number"]))
}

/// Cuts "on the contact page" and "in the cart" off, with the step that leads there.
fn place(rest: &[Token]) -> (&[Token], Option<What>) {
    let Some(at) = rest.iter().rposition(|t| t.is(&["on", "from", "in", "at"])).filter(|at| *at > 0) else {
        return (rest, None);
    };
    let (front, tail) = (&rest[..at], &rest[at + 1..]);
    if is_cart(tail) && tail.iter().any(|t| t.is(CARTS)) {
        return (front, Some(What::Cart(Cart::Open)));
    }
    let Some((last, name)) = tail.split_last() else { return (rest, None) };
    let name: Vec<Token> = name.iter().filter(|t| !t.is(&["the", "a", "your", "their", "its"])).cloned().collect();
    if !last.is(&["page", "screen"]) {
        return (rest, None);
    }
    if name.is_empty() || name.iter().any(|t| t.is(HERE)) {
        return (front, None);
    }
    (front, Some(What::Visit(fold(&joined(&name)))))
}

/// "the title, price and availability of the first three books", "all product names", "its author".
fn attributes(rest: &[Token], reading: &Reading) -> Option<Vec<Question>> {
    let start = rest.iter().take_while(|t| t.is(DULL)).count();
    let rest = &rest[start..];
    let at = rest.iter().position(|t| t.is(&["of", "for"]) && !t.quoted).filter(|at| *at > 0 && at + 1 < rest.len());
    let Some(at) = at else { return without_object(rest, reading) };
    let (names, object) = (list(&rest[..at]), &rest[at + 1..]);
    if let Some((first, single)) = things(object, rest[..at].iter().all(is_plural)) {
        let attributes = names.iter().map(|name| singular(name)).collect();
        return Some(vec![Question::Each(Each { attributes, first, single })]);
    }
    let plain = |t: &&Token| t.quoted || !t.is(&["the", "a", "an", "this", "page", "product"]);
    let of = object.iter().filter(plain).cloned().collect::<Vec<_>>();
    // A thing of the page, not a part of the name: "date of birth", "terms of use".
    let known = names.iter().all(|name| ATTRIBUTES.contains(&name.as_str()));
    if of.is_empty() || !known || (names.len() == 1 && names[0] == "title") {
        return None;
    }
    let pronoun = of.len() == 1 && of[0].is(&["it", "that", "one"]);
    let of = if pronoun { reading.context.clone() } else { Some(fold(&joined(&of))) };
    Some(names.into_iter().map(|words| Question::Value { words, of: of.clone() }).collect())
}

/// "its author", "all product names".
fn without_object(rest: &[Token], reading: &Reading) -> Option<Vec<Question>> {
    let theirs = rest.first().is_some_and(|t| t.is(&["its", "their", "his", "her"]));
    if theirs || reading.asks_of_found {
        let of = reading.context.clone()?;
        let names = list(if theirs { &rest[1..] } else { rest });
        let ask = |words: String| Question::Value { words, of: Some(of.clone()) };
        return (!names.is_empty()).then(|| names.into_iter().map(ask).collect());
    }
    let all = rest.first().is_some_and(|t| t.is(&["all", "every", "each"]));
    let words: Vec<Token> = rest.iter().filter(|t| !t.is(&["all", "every", "each", "the", "of"])).cloned().collect();
    let names = list(&words);
    let last = |name: &String| name.rsplit(' ').next().unwrap_or_default().to_owned();
    let plural = |name: &String| name.ends_with('s') && ATTRIBUTES.contains(&singular(&last(name)).as_str());
    // "the names and prices" of a list; "the first name" is one value.
    let several = all || names.len() > 1 || words.len() > 1;
    if !several || names.is_empty() || !names.iter().all(plural) {
        return None;
    }
    let attributes = names.iter().map(|name| singular(&last(name))).collect();
    Some(vec![Question::Each(Each { attributes, first: None, single: false })])
}

fn is_plural(token: &Token) -> bool {
    token.is(&["and", "the"]) || (token.low.ends_with('s') && ATTRIBUTES.contains(&singular(&token.low).as_str()))
}

fn singular(name: &str) -> String {
    let single = name.strip_suffix('s').filter(|single| ATTRIBUTES.contains(single));
    single.unwrap_or(name).to_owned()
}

/// "title, price and availability" as three.
fn list(tokens: &[Token]) -> Vec<String> {
    let mut out: Vec<Vec<Token>> = vec![Vec::new()];
    for token in tokens {
        if token.is(&["and", "&"]) {
            out.push(Vec::new());
            continue;
        }
        if let Some(last) = out.last_mut().filter(|_| !token.is(&["the", "a", "an", "its", "their"])) {
            last.push(token.clone());
        }
        if token.after == Some(',') {
            out.push(Vec::new());
        }
    }
    out.iter().map(|words| fold(&joined(words))).filter(|name| !name.is_empty()).collect()
}

/// "all products", "each book", "the first three books", "the first book"; `plural`: "names of the products".
fn things(object: &[Token], plural: bool) -> Option<(Option<usize>, bool)> {
    let words: Vec<&Token> = object.iter().filter(|t| !t.is(&["the", "of", "a"])).collect();
    let first = words.first()?;
    let rest = words.get(1)?;
    if first.is(&["all", "every", "each"]) && words.len() < 5 {
        return Some((None, false));
    }
    if first.is(&["first", "top"]) || (ordinal(&first.low) == Some(super::words::Ordinal::Nth(1)) && !first.quoted) {
        return match count(&rest.low) {
            Some(n) if words.len() == 3 => Some((Some(n), false)),
            None if words.len() == 2 && first.is(&["first"]) => Some((Some(1), true)),
            _ => None,
        };
    }
    let _ = plural;
    None
}

#[cfg(test)]
mod tests {
    use super::super::words::tokens;
    use super::*;

    #[test]
    fn lists_and_their_attributes_are_read() {
        for (text, attributes, first) in [
            (
                "Get the title, price and availability of the first three books",
                vec!["title", "price", "availability"],
                Some(3),
            ),
            ("List the names of all products", vec!["name"], None),
            ("Give me the names and prices of all the products", vec!["name", "price"], None),
            ("List all product names", vec!["name"], None),
        ] {
            let words = tokens(text);
            let steps = read(&words[0], &words[1..], &Reading::default());
            let attributes = attributes.into_iter().map(str::to_owned).collect();
            let each = Each { attributes, first, single: false };
            assert_eq!(steps, Some(vec![What::Ask(Question::Each(each))]), "{text}");
        }
    }

    #[test]
    fn places_are_visited_first() {
        let words = tokens("return the phone number on the contact page");
        let steps = read(&words[0], &words[1..], &Reading::default()).unwrap_or_default();
        assert_eq!(steps.first(), Some(&What::Visit("contact".to_owned())));
        assert!(matches!(&steps[1], What::Ask(Question::Value { words, .. }) if words == "phone number"));
    }
}
