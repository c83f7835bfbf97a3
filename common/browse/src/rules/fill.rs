//! Clauses that type and search.

use super::read::Reading;
use super::step::{Value, What};
use super::target::{Kind, Many, Target};
use super::words::{Token, fold, joined};
use super::{dates, pairs, verbs};

type Read = Option<Vec<What>>;

/// Words that stand before a quoted value and name no field.
const PLAIN: [&str; 12] =
    ["the", "a", "an", "text", "value", "number", "word", "words", "item", "string", "following", "phrase"];

fn field(tokens: &[Token]) -> Target {
    let mut target = Target::read(tokens);
    if target.kind.is_none() || target.kind == Some(Kind::Item) {
        target.kind = Some(Kind::Field);
    }
    target.shape = None;
    if matches!(target.name.as_str(), "form" | "it" | "page" | "box" | "text" | "input") {
        target.name.clear();
        target.full.clear();
    }
    if target.kind == Some(Kind::Field) {
        target.full.clone_from(&target.name);
    }
    target
}

/// What is to be typed, with "in all lower case letters" applied.
fn value(tokens: &[Token], reading: &Reading) -> Option<Value> {
    let case = tokens.iter().position(|t| t.is(&["case", "lowercase", "uppercase"])).and_then(|at| {
        let low = tokens[..=at].iter().any(|t| t.is(&["lower", "lowercase"]));
        let start = tokens[..at].iter().rposition(|t| t.is(&["in"]))?;
        Some((start, low))
    });
    let tokens = case.map_or(tokens, |(start, _)| &tokens[..start]);
    let quoted: Vec<&Token> = tokens.iter().filter(|t| t.quoted).collect();
    if tokens.iter().any(|t| t.is(&["starts", "starting", "begins", "beginning"])) {
        let starts = quoted.first()?.text.clone();
        return Some(Value::Completed { starts, ends: quoted.get(1).map(|t| t.text.clone()) });
    }
    let text = match quoted.as_slice() {
        [] => {
            let low = fold(&joined(tokens));
            match low.as_str() {
                "that" | "it" | "this" | "the text" | "them" if reading.kept => return Some(Value::Kept),
                "your answer" | "the answer" | "the result" | "the solution" => return Some(Value::Answer),
                "the text below" | "the text above" | "the text shown" | "the following text" => {
                    return Some(Value::Shown);
                }
                _ => {}
            }
            // What is only described cannot be typed.
            if tokens.first().is_some_and(|t| t.is(&["the", "your", "that", "this"]))
                && !low.starts_with("the value of ")
                && tokens.len() > 2
            {
                return None;
            }
            if let Some(label) = low.strip_prefix("the value of ").or_else(|| low.strip_prefix("value of ")) {
                return Some(Value::Labelled(label.trim_start_matches("the ").to_owned()));
            }
            let plain = tokens.iter().take_while(|t| t.is(&PLAIN[..7])).count();
            joined(&tokens[if plain < tokens.len() { plain } else { 0 }..])
        }
        [one] => one.text.clone(),
        _ => return None,
    };
    let text = match case {
        Some((_, true)) => text.to_lowercase(),
        Some((_, false)) => text.to_uppercase(),
        None => text,
    };
    (!text.is_empty()).then_some(Value::Text(text))
}

fn fill(value: Value, field: Target) -> What {
    if let Value::Text(text) = &value {
        if let Some(date) = dates::Date::read(text) {
            return What::Date { date, field: Some(field) };
        }
        if dates::time(text).is_some() && (text.to_lowercase().ends_with('m') || field.name.contains("time")) {
            return What::Time { text: text.clone(), field: Some(field) };
        }
    }
    What::Fill { value, field, enter: false }
}

/// "enter X into the Y field", "fill in Y with X", "enter the username "a" and the password "b" into the fields", "Y:
/// X".
pub fn read(rest: &[Token], reading: &Reading) -> Read {
    let rest = if rest.first().is_some_and(|t| t.is(&["in", "out", "up"])) { &rest[1..] } else { rest };
    let all = joined(rest).to_lowercase();
    if all.contains("corresponds with each label") || all.contains("each label") {
        return Some(vec![What::FillLabelled]);
    }
    if let Some(steps) = many(rest) {
        return steps;
    }
    let joiner = |t: &Token| t.is(&["into", "in", "inside", "to", "as", "for"]);
    let case = rest.iter().position(|t| t.is(&["case", "lowercase", "uppercase"]));
    let into =
        rest.iter().enumerate().rposition(|(at, t)| joiner(t) && at > 0 && case.is_none_or(|c| at > c || c - at > 3));
    let with = rest.iter().position(|t| t.is(&["with"])).filter(|at| *at > 0 && *at + 1 < rest.len());
    if let Some(at) = with.filter(|_| !rest.iter().any(|t| t.is(&["starts", "ends"]))) {
        // "fill the field Y with X"
        return Some(vec![fill(value(&rest[at + 1..], reading)?, field(&rest[..at]))]);
    }
    let (before, target) = match into {
        Some(at) if at + 1 < rest.len() => (&rest[..at], field(&rest[at + 1..])),
        _ => (rest, Target { kind: Some(Kind::Field), ..Target::default() }),
    };
    if before.iter().any(|t| t.is(&["date", "time"]))
        && before.iter().filter(|t| t.quoted).count() == 1
        && target.is_bare()
    {
        let quoted = before.iter().find(|t| t.quoted)?;
        return Some(vec![fill(Value::Text(quoted.text.clone()), target)]);
    }
    let completes = before.iter().any(|t| t.is(&["starts", "starting", "begins", "beginning"]));
    let pairs = if completes { Vec::new() } else { named_values(before) };
    if !pairs.is_empty() && (target.is_bare() || pairs.len() > 1) {
        if target.many == Many::All && pairs.len() == 1 {
            return Some(vec![fill(Value::Text(pairs[0].1.clone()), target)]);
        }
        return Some(
            pairs
                .into_iter()
                .map(|(name, text)| fill(Value::Text(text), field(&super::words::tokens(&name))))
                .collect(),
        );
    }
    let value = value(before, reading)?;
    if matches!(&value, Value::Text(_)) && target.is_bare() && into.is_none() && before.iter().all(|t| !t.quoted) {
        // "fill in the form": nothing says with what.
        return None;
    }
    if target.name == "date" && matches!(&value, Value::Text(t) if dates::Date::read(t).is_some()) {
        return Some(vec![fill(value, Target { kind: Some(Kind::Field), ..Target::default() })]);
    }
    Some(vec![fill(value, target)])
}

/// `the username "a" and the password "b"`: names and values; empty if a value has no name.
fn named_values(tokens: &[Token]) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut name: Vec<&str> = Vec::new();
    for token in tokens {
        if token.quoted {
            if name.is_empty() {
                return Vec::new();
            }
            out.push((name.join(" "), token.text.clone()));
            name.clear();
        } else if !token.is(&PLAIN) && !token.is(&["and", "as", "my", "your", "is", "with", "for", "to", "=", "user's"])
        {
            name.push(&token.text);
        }
    }
    if name.is_empty() { out } else { Vec::new() }
}

/// Steps that fill fields with their values.
#[must_use]
pub fn steps(pairs: &[pairs::Pair<'_>]) -> Vec<What> {
    let one = |(name, value): &pairs::Pair<'_>| {
        let mut text = pairs::text(value);
        // After "Message:" a sentence has its own full stop.
        let labelled = name.last().is_some_and(|t| t.after == Some(':'));
        if let Some(last) = value.last().filter(|_| labelled && value.len() > 2) {
            let mark = if last.after == Some('\n') { last.mark } else { last.after };
            text.extend(mark.filter(|mark| matches!(mark, '.' | '?')));
        }
        fill(Value::Text(text), named(name))
    };
    pairs.iter().map(one).collect()
}

/// A field by its whole name: of "First name" the first word is no position.
fn named(tokens: &[Token]) -> Target {
    let quoted = tokens.iter().find(|t| t.quoted);
    let dull = ["the", "my", "your", "a", "an", "field", "box", "input", "is", "="];
    let words: Vec<Token> = tokens.iter().filter(|t| !t.is(&dull)).cloned().collect();
    let exact = quoted.map_or_else(|| joined(&words), |t| t.text.clone());
    let name = fold(&exact);
    Target {
        said: joined(tokens),
        full: name.clone(),
        name,
        exact,
        quoted: quoted.is_some(),
        kind: Some(Kind::Field),
        ..Target::default()
    }
}

/// Several fields of one clause; `Some(None)` where it is a list that is not understood.
fn many(rest: &[Token]) -> Option<Read> {
    let lead = pairs::lead(rest);
    if lead > 0 && lead < rest.len() {
        return Some(pairs::details(&rest[lead..]).map(|list| steps(&list)));
    }
    let list = pairs::names_first(rest, &["with"]).or_else(|| {
        [&["into", "in", "inside"][..], &["as"], &["for"]].iter().find_map(|joiner| pairs::values_first(rest, joiner))
    });
    if let Some(list) = list {
        return Some(Some(steps(&list)));
    }
    let joins = rest.iter().any(|t| t.is(&["into", "in", "inside", "with", "as", "to"]));
    let colon = pairs::is_line(rest);
    let list = pairs::details(rest).filter(|_| colon || !joins)?;
    // A value in quotes stands alone: what is around it says something else.
    let plain = |value: &[Token]| value.len() == 1 || value.iter().all(|t| !t.quoted);
    list.iter().all(|(_, value)| plain(value)).then(|| Some(steps(&list)))
}

/// "search for X"; in a form of several fields each part of X goes where its words say.
pub fn search(rest: &[Token]) -> Read {
    let rest = if rest.first().is_some_and(|t| t.is(&["for", "the"])) { &rest[1..] } else { rest };
    let rest = verbs::without_purpose(rest);
    if rest.is_empty() {
        return None;
    }
    let text =
        rest.iter().find(|t| t.quoted).filter(|_| rest.len() < 4).map_or_else(|| joined(rest), |t| t.text.clone());
    let mut parts: Vec<(Vec<String>, String)> = Vec::new();
    let mut start = 0;
    for (at, token) in rest.iter().enumerate() {
        if token.is(&["by", "from", "in", "of", "with", "to", "since", "named"]) && at + 1 < rest.len() && at > 0 {
            let before = &rest[start..at];
            if parts.is_empty() {
                // "crime movies directed": the value comes first, then the noun; a participle belongs to the next part.
                let verb = before.last().filter(|t| t.low.ends_with("ed") && before.len() > 1);
                let noun = if verb.is_some() { &before[..before.len() - 1] } else { before };
                if let Some((value, words)) = noun.split_first() {
                    parts.push((words.iter().map(|t| t.low.clone()).collect(), value.text.clone()));
                }
                let mut words: Vec<String> = verb.iter().map(|t| t.low.clone()).collect();
                words.push(token.low.clone());
                parts.push((words, String::new()));
            } else {
                close(&mut parts, before);
                parts.push((vec![token.low.clone()], String::new()));
            }
            start = at + 1;
        }
    }
    if !parts.is_empty() {
        close(&mut parts, &rest[start..]);
        parts.retain(|(_, value)| !value.is_empty());
    }
    Some(vec![What::Search { text, parts }])
}

/// Ends a part of a search: its last word is the value, the others name the field.
fn close(parts: &mut [(Vec<String>, String)], tokens: &[Token]) {
    if let (Some((words, value)), Some((last, names))) = (parts.last_mut(), tokens.split_last()) {
        words.extend(names.iter().map(|t| t.low.clone()));
        value.clone_from(&last.text);
    }
}
