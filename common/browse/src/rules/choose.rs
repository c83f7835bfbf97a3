//! Clauses that select, choose, check and set.

use super::dates::{self, Date};
use super::read::Reading;
use super::step::{How, Value, What};
use super::target::{Kind, Many, Target, colours};
use super::words::{Token, fold, joined, number, ordinal};
use super::{pairs, verbs};

type Read = Option<Vec<What>>;

/// Names of one clause; more are refused.
const MOST_NAMES: usize = 100;

/// "select A, B and C", "choose X from the list Y", "set Z to 5", "pick 3 with the slider", "use the textbox to enter
/// X".
pub fn read(verb: &Token, rest: &[Token], reading: &mut Reading) -> Read {
    let all = fold(&joined(rest));
    if verb.is(&["use"]) {
        let to = rest.iter().position(|t| t.is(&["to"]))?;
        let act = rest.get(to + 1)?;
        if !act.is(&["enter", "type", "write", "search", "input"]) {
            return None;
        }
        let mut words = rest[to + 2..].to_vec();
        words.extend(super::words::tokens("into"));
        words.extend(rest[..to].iter().cloned());
        return super::fill::read(&words, reading);
    }
    if rest.iter().any(|t| t.is(&["similar", "synonym", "synonyms", "opposite"])) {
        return None;
    }
    if let Some(steps) = super::special::best(rest) {
        return Some(steps);
    }
    // "set the sliders to the combination [1,2,3]"
    if rest.iter().any(|t| t.is(&["slider", "sliders", "spinner", "spinbutton"])) {
        let inside = all.split_once('[').and_then(|(_, end)| end.split(']').next());
        if let Some(list) = inside {
            let values: Option<Vec<f64>> = list.split([',', ' ']).filter(|p| !p.is_empty()).map(number).collect();
            let slides = values?
                .into_iter()
                .enumerate()
                .map(|(n, value)| What::Slide { value, ordinal: Some(super::words::Ordinal::Nth(n + 1)) });
            return Some(slides.collect());
        }
        let value = rest.iter().filter(|t| ordinal(&t.low).is_none()).find_map(|t| number(&t.text))?;
        return Some(vec![What::Slide { value, ordinal: rest.iter().find_map(|t| ordinal(&t.low)) }]);
    }
    if rest.iter().any(|t| t.is(&["color", "colour"])) && rest.iter().any(|t| t.is(&["picker", "wheel"])) {
        let colour = rest.iter().find(|t| !colours(&t.low).is_empty() || t.text.starts_with('#'))?;
        return Some(vec![What::Colour(colour.low.clone())]);
    }
    if verb.is(&["set", "change", "update"]) {
        return set(rest, reading);
    }
    if let Some(list) = [&["as"][..], &["for"], &["from", "in"]].iter().find_map(|j| pairs::values_first(rest, j)) {
        let one = |(list, value): &pairs::Pair<'_>| What::Choose {
            names: vec![value.iter().find(|t| t.quoted).map_or_else(|| joined(value), |t| t.text.clone())],
            list: Some(Target::read(list)),
        };
        return Some(list.iter().map(one).collect());
    }
    if let Some(date) = rest.iter().find_map(|t| Date::read(&t.text)).or_else(|| spelled_date(rest)) {
        return Some(vec![What::Date { date, field: None }]);
    }
    if let Some(time) =
        rest.windows(2).find(|w| dates::time(&w[0].text).is_some()).map(joined).filter(|_| all.contains("time"))
    {
        return Some(vec![What::Time { text: time, field: None }]);
    }
    if verb.is(&["mark"]) {
        return None;
    }
    let (before, list) =
        match rest.iter().rposition(|t| t.is(&["from", "in", "for", "as"])).filter(|at| *at > 0 && at + 1 < rest.len())
        {
            Some(at) => (&rest[..at], Some(Target::read(&rest[at + 1..]))),
            None => (rest, None),
        };
    if all == "nothing" || all == "none" {
        return Some(Vec::new());
    }
    if all.contains('>') {
        let names: Vec<String> = joined(rest).split('>').map(fold).filter(|p| !p.is_empty()).collect();
        return (names.len() > 1).then(|| vec![What::Path(names)]);
    }
    let shades = rest.iter().position(|t| t.is(&["shades", "tints", "tones"]));
    if let Some(colour) = shades.and_then(|_| rest.iter().find(|t| !colours(&t.low).is_empty())) {
        let target =
            Target { said: joined(rest), many: Many::All, colour: Some(shade(&colour.low)), ..Target::default() };
        return Some(vec![What::Click { target, how: How::Once, explore: false }]);
    }
    let target = Target::read(before);
    let typed = matches!(
        target.kind,
        Some(Kind::Tab | Kind::Button | Kind::Link | Kind::Result | Kind::Icon | Kind::Checkbox | Kind::Radio)
    );
    if (typed || target.ordinal.is_some() || target.many == Many::All) && !target.quoted {
        let target = reading.target(rest);
        return Some(vec![What::Click { target, how: How::Once, explore: reading.explore }]);
    }
    let names = names(before);
    (!names.is_empty()).then(|| vec![What::Choose { names, list }])
}

/// "set the country to France", "set Check-in to 2026-12-01 and Check-out to 2026-12-03".
fn set(rest: &[Token], reading: &Reading) -> Read {
    let one = |(name, value): pairs::Pair<'_>| {
        let text = value.iter().find(|t| t.quoted).map_or_else(|| pairs::text(value), |t| t.text.clone());
        let field = if name.is_empty() { Target::default() } else { reading.target(name) };
        if let Some(date) = Date::read(&text) {
            return What::Date { date, field: Some(field) };
        }
        if dates::time(&text).is_some() && (text.to_lowercase().ends_with('m') || field.name.contains("time")) {
            return What::Time { text, field: Some(field) };
        }
        What::Choose { names: vec![text], list: Some(field) }
    };
    if let Some(list) = pairs::names_first(rest, &["to"]) {
        return Some(list.into_iter().map(one).collect());
    }
    let Some(to) = rest.iter().position(|t| t.is(&["to", "as"])).filter(|at| at + 1 < rest.len()) else {
        // "set the date 12/31/2016"
        let date = rest.iter().find_map(|t| Date::read(&t.text)).or_else(|| spelled_date(rest))?;
        return Some(vec![What::Date { date, field: None }]);
    };
    Some(vec![one((&rest[..to], &rest[to + 1..]))])
}

/// A light red looks pink.
fn shade(colour: &str) -> String {
    if colour == "red" { "reddish".to_owned() } else { colour.to_owned() }
}

/// "March 5, 2016" in three words.
fn spelled_date(tokens: &[Token]) -> Option<Date> {
    tokens.windows(3).find_map(|three| Date::read(&three.iter().map(|t| t.text.as_str()).collect::<Vec<_>>().join(" ")))
}

/// The names of a list "A, B and C".
fn names(tokens: &[Token]) -> Vec<String> {
    let mut out = Vec::new();
    let mut current: Vec<&str> = Vec::new();
    let plain = [
        "the",
        "option",
        "options",
        "item",
        "items",
        "value",
        "checkbox",
        "checkboxes",
        "a",
        "an",
        "labeled",
        "named",
        "following",
    ];
    for token in tokens {
        if token.quoted {
            out.push(token.text.clone());
            current.clear();
            continue;
        }
        if token.is(&["and", "&"]) {
            out.push(current.join(" "));
            current.clear();
            continue;
        }
        if !token.is(&plain) || tokens.len() == 1 {
            current.push(&token.text);
        }
        if token.after == Some(',') {
            out.push(current.join(" "));
            current.clear();
        }
    }
    // Words beside quoted names describe them.
    if !tokens.iter().any(|t| t.quoted) {
        out.push(current.join(" "));
    }
    out.retain(|name| !name.is_empty());
    if out.len() > MOST_NAMES {
        out.clear();
    }
    out
}

/// "check the box …", "tick A and B", "check the 2nd radio button".
pub fn check(verb: &Token, rest: &[Token], reading: &Reading) -> Read {
    let mut on = !verb.is(&["uncheck", "untick", "disable"]);
    let mut rest = verbs::without_purpose(rest);
    if verb.is(&["turn"]) {
        let at = rest.iter().position(|t| t.is(&["on", "off"]))?;
        on = rest[at].is(&["on"]);
        let words: Vec<Token> = rest.iter().filter(|t| !t.is(&["on", "off"])).cloned().collect();
        let target = reading.target(&words);
        return Some(vec![What::Check { target, on }]);
    }
    if rest.first().is_some_and(|t| t.is(&["off", "on"])) {
        rest = &rest[1..];
    }
    if rest.first().is_some_and(|t| t.is(&["that", "whether", "if"])) || rest.is_empty() {
        return None;
    }
    let target = reading.target(rest);
    if target.quoted
        || target.ordinal.is_some()
        || target.many == Many::All
        || !rest.iter().any(|t| t.is(&["and"]) || t.after == Some(','))
    {
        return Some(vec![What::Check { target, on }]);
    }
    let each =
        names(rest).into_iter().map(|name| What::Check { target: Target::read(&super::words::tokens(&name)), on });
    Some(each.collect())
}

/// Used by fields that take a list's option: the same words typed.
#[must_use]
pub fn as_text(names: &[String]) -> Value {
    Value::Text(names.join(", "))
}
