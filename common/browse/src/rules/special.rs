//! Clauses about dragging, ordering, comparing and repeating.

use super::dates;
use super::step::{How, Measure, Place, Step, Value, Wanted, What};
use super::target::{Kind, Many, Relation, Target};
use super::words::{Token, count, fold, joined, number, ordinal};

type Read = Option<Vec<What>>;

fn click(name: &str, near: Option<&str>, many: Many) -> What {
    let near = near.map(|phrase| (Relation::Of, fold(phrase)));
    let target =
        Target { said: name.to_owned(), name: name.to_owned(), full: name.to_owned(), near, many, ..Target::default() };
    What::Click { target, how: How::Once, explore: false }
}

/// Tasks that are one thing in several sentences.
pub fn read(tokens: &[Token]) -> Option<Vec<Step>> {
    let first = tokens.first()?;
    let said = joined(tokens);
    let what = if first.is(&["guess"]) {
        let at = tokens.iter().position(|t| t.is(&["between"]))?;
        let numbers: Vec<i64> = tokens[at + 1..]
            .iter()
            .take(3)
            .flat_map(|t| t.text.split(['-', '–']))
            .filter_map(|p| p.parse().ok())
            .collect();
        let [least, most, ..] = numbers.as_slice() else { return None };
        (least < most && most - least < 1_000_000).then(|| vec![What::Guess { least: *least, most: *most }])?
    } else if first.is(&["book"]) {
        book(tokens)?
    } else if first.is(&["drag", "move"])
        && tokens.iter().any(|t| t.is(&["everything"]))
        && tokens.iter().any(|t| t.is(&["else"]))
    {
        // "drag all circles into the left box, and everything else into the right box"
        let split = tokens.iter().position(|t| t.is(&["everything"]))?;
        let end = if tokens[split - 1].is(&["and"]) { split - 1 } else { split };
        let mut steps = drag(&tokens[1..end])?;
        let into = split + tokens[split..].iter().position(|t| t.is(&["into", "to", "in", "onto"]))?;
        let rest = Target {
            said: "everything else".to_owned(),
            many: Many::All,
            shape: Some("shape".to_owned()),
            ..Target::default()
        };
        steps.push(What::Drag { what: rest, to: Place::Onto(side_of(&tokens[into + 1..])) });
        steps
    } else {
        return None;
    };
    Some(what.into_iter().map(|what| Step { said: said.clone(), what, optional: false }).collect())
}

/// "book the cheapest flight from: A to: B on 10/16/2016": the form, then the best of what it finds.
fn book(tokens: &[Token]) -> Read {
    let at = |words: &[&str]| tokens.iter().position(|t| t.is(words) || words.iter().any(|w| t.low == format!("{w}:")));
    let (from, to) = (at(&["from"])?, at(&["to"])?);
    let on = at(&["on"]).unwrap_or(tokens.len());
    if !(from < to && to < on) {
        return None;
    }
    let best = best(&tokens[1..from])?;
    let field = |name: &str| Target {
        said: name.to_owned(),
        name: name.to_owned(),
        full: name.to_owned(),
        kind: Some(Kind::Field),
        ..Target::default()
    };
    let text = |tokens: &[Token]| Value::Text(joined(tokens).trim_matches(',').to_owned());
    let mut steps = vec![
        What::Fill { value: text(&tokens[from + 1..to]), field: field("from"), enter: false },
        What::Fill { value: text(&tokens[to + 1..on]), field: field("to"), enter: false },
    ];
    if let Some(date) = tokens.get(on + 1..).and_then(|rest| rest.iter().find_map(|t| dates::Date::read(&t.text))) {
        steps.push(What::Date { date, field: None });
    }
    steps.push(click("search", None, Many::One));
    steps.extend(best);
    Some(steps)
}

/// Clauses with these verbs.
pub fn clause(verb: &Token, rest: &[Token]) -> Read {
    match verb.low.as_str() {
        "generate" => {
            let wanted = wanted(rest)?;
            Some(vec![What::Until { button: "generate".to_owned(), wanted }])
        }
        // The sum is on the page; the next clause says where its answer goes.
        "solve" => rest.iter().any(|t| t.is(&["x", "problem", "equation", "sum", "math"])).then(Vec::new),
        "sort" => rest
            .iter()
            .any(|t| t.is(&["increasing", "ascending"]))
            .then(|| vec![What::Ascending { target: Target::default(), drag: true }]),
        "give" | "make" => style(rest),
        "order" => order(rest),
        "buy" => match (rest.iter().position(|t| t.is(&["when", "if", "once"])), wanted(rest)) {
            (Some(_), Some(wanted)) => {
                Some(vec![What::Until { button: String::new(), wanted }, click("buy", None, Many::One)])
            }
            _ => best(rest),
        },
        "book" => best(rest),
        _ => None,
    }
}

fn wanted(tokens: &[Token]) -> Option<Wanted> {
    if tokens.iter().any(|t| t.is(&["even"])) {
        return Some(Wanted::Even);
    }
    if tokens.iter().any(|t| t.is(&["odd"])) {
        return Some(Wanted::Odd);
    }
    let at = tokens
        .iter()
        .position(|t| t.is(&["less", "lower", "below", "under", "greater", "more", "higher", "above", "over"]))?;
    let than = tokens[at..].iter().find_map(|t| number(&t.text))?;
    let less = tokens[at].is(&["less", "lower", "below", "under"]);
    Some(if less { Wanted::Less(than) } else { Wanted::Greater(than) })
}

/// "give everything the style bold".
fn style(rest: &[Token]) -> Read {
    let at = rest.iter().position(|t| t.is(&["style", "color", "colour"]))?;
    let style = rest.get(at + 1)?.low.clone();
    // A part of a text cannot be selected by its words, and a colour has no button of its own.
    let everything = rest.first().is_some_and(|t| t.is(&["everything", "all"]));
    (everything && rest[at].is(&["style"])).then(|| vec![What::Style(style)])
}

/// "order one of each item: A, B", "order 2 items that are vegan".
fn order(rest: &[Token]) -> Read {
    let mut steps = Vec::new();
    if let Some(colon) = rest.iter().position(|t| t.after == Some(':')) {
        let mut name: Vec<Token> = Vec::new();
        for token in &rest[colon + 1..] {
            name.push(token.clone());
            if token.after == Some(',') {
                steps.push(click("+", Some(&joined(&name)), Many::One));
                name.clear();
            }
        }
        if !name.is_empty() {
            steps.push(click("+", Some(&joined(&name)), Many::One));
        }
    } else {
        let n = rest.first().and_then(|t| count(&t.low))?;
        let at = rest.iter().position(|t| t.is(&["are", "is"]))?;
        steps.push(click("+", Some(&joined(&rest[at + 1..])), Many::Some(n)));
    }
    if steps.is_empty() {
        return None;
    }
    // Who orders wants the order placed.
    steps.push(What::Submit);
    Some(steps)
}

/// "the ticket with the cheapest cost", "the card with the greatest number".
pub fn best(tokens: &[Token]) -> Read {
    let most_words = ["longest", "greatest", "highest", "most", "largest", "biggest", "maximum", "latest"];
    let least_words = ["shortest", "cheapest", "lowest", "smallest", "least", "minimum", "fewest", "earliest"];
    let at = tokens.iter().position(|t| t.is(&most_words) || t.is(&least_words))?;
    let low = tokens[at].low.as_str();
    let says = |words: &[&str]| tokens.iter().any(|t| t.is(words));
    let measure = if says(&["cheapest", "expensive", "cost", "price", "priced"]) {
        Measure::Money
    } else if says(&["shortest", "longest", "duration", "fastest", "time"]) {
        Measure::Time
    } else if says(&["number", "value", "score", "amount", "rating"]) {
        Measure::Number
    } else {
        return None;
    };
    let words =
        tokens[..at].iter().filter(|t| !t.is(&["the", "a", "with", "that", "has"])).map(|t| t.low.clone()).collect();
    Some(vec![What::Best { most: most_words.contains(&low), measure, words }])
}

/// The side that "the left box" means is a place, not a name.
fn side_of(tokens: &[Token]) -> Target {
    let mut target = Target::read(tokens);
    for (side, place) in [("left", super::words::Ordinal::Nth(1)), ("right", super::words::Ordinal::Last(1))] {
        if target.name.split(' ').any(|w| w == side) {
            target.ordinal = Some(place);
            target.name = target.name.split(' ').filter(|w| *w != side).collect::<Vec<_>>().join(" ");
            target.full.clone_from(&target.name);
        }
    }
    if target.name == "box" {
        target.name.clear();
        target.full.clear();
    }
    if target.shape.is_none() && target.name.is_empty() {
        target.shape = Some("rectangle".to_owned());
    }
    target
}

/// "drag X to Y", "drag X to the 2nd position", "drag X left".
pub fn drag(rest: &[Token]) -> Read {
    let at = rest
        .iter()
        .position(|t| t.is(&["to", "into", "onto", "in", "inside", "so", "left", "right", "up", "down", "over"]))?;
    if at == 0 {
        return None;
    }
    let what = Target::read(&rest[..at]);
    if let Some((x, y)) = match rest[at].low.as_str() {
        "left" => Some((-1, 0)),
        "right" => Some((1, 0)),
        "up" => Some((0, -1)),
        "down" => Some((0, 1)),
        _ => None,
    } {
        let by = rest[at + 1..]
            .iter()
            .find_map(|t| count(&t.low))
            .and_then(|n| i64::try_from(n).ok())
            .unwrap_or(1)
            .min(1_000);
        return Some(vec![What::Drag { what, to: Place::By { x: x * by, y: y * by } }]);
    }
    let to: Vec<Token> = rest[at + 1..].iter().filter(|t| !t.is(&["the", "of", "list", "grid"])).cloned().collect();
    if let Some(n) =
        to.iter().find_map(|t| ordinal(&t.low)).filter(|_| to.iter().any(|t| t.is(&["position", "place", "spot"])))
    {
        return Some(vec![What::Drag { what, to: Place::Position(n) }]);
    }
    let says = |word: &str| to.iter().any(|t| t.is(&[word]));
    let corner = ["left", "right", "top", "bottom", "center", "centre", "middle", "corner"];
    if !to.is_empty() && to.iter().all(|t| t.is(&corner)) {
        let x = if says("left") {
            0.0
        } else if says("right") {
            1.0
        } else {
            0.5
        };
        let y = if says("top") {
            0.0
        } else if says("bottom") {
            1.0
        } else {
            0.5
        };
        return Some(vec![What::Drag { what, to: Place::Grid(x, y) }]);
    }
    // "so that it is completely inside the larger box"
    let inner = to.iter().rposition(|t| t.is(&["inside", "in", "into"])).map_or(&to[..], |at| &to[at + 1..]);
    // "so that it faces the user" is no place.
    let vague = rest[at].is(&["so"]) && inner.len() == to.len();
    (!inner.is_empty() && !vague).then(|| vec![What::Drag { what, to: Place::Onto(side_of(inner)) }])
}
