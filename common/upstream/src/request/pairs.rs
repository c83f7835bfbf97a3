//! Names and values of a query or a form.

use base::input::FieldError;
use serde_json::Value;

use super::{pair, scalar};
use crate::tool::Style;

/// Most pairs that one member makes, the longest name of one in bytes, and the deepest nesting. A long name that is repeated
/// for each item would make a small input large.
const MAX_PAIRS: usize = 1_000;
const MAX_NAME: usize = 500;
const MAX_DEPTH: usize = 6;

/// `a=b&c=d`, with everything but unreserved characters percent-encoded.
pub fn encoded(pairs: &[(String, String)]) -> String {
    let pairs: Vec<String> = pairs.iter().map(|(name, value)| pair(name, value)).collect();
    pairs.join("&")
}

/// A scalar, or the items of an array with `join` between them. Nothing for null.
pub fn joined(
    name: &str,
    member: &str,
    value: &Value,
    join: char,
    errors: &mut Vec<FieldError>,
) -> Option<(String, String)> {
    let items = match value {
        Value::Null => return None,
        Value::Array(items) => items,
        value => {
            let text = scalar(value);
            if text.is_none() {
                errors.push(FieldError::new(member, "must not be an object: it is sent as text"));
            }
            return Some((name.to_owned(), text?));
        }
    };
    let mut texts = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match scalar(item) {
            Some(text) if text.contains(join) => {
                errors.push(FieldError::new(
                    format!("{member}.{index}"),
                    format!("must not contain {join:?}, which separates the items"),
                ));
            }
            Some(text) => texts.push(text),
            None => {
                errors.push(FieldError::new(format!("{member}.{index}"), "must be a string, a number or a boolean"))
            }
        }
    }
    (!items.is_empty()).then(|| (name.to_owned(), texts.join(&join.to_string())))
}

/// Adds the pairs of one member in this style. Null and empty arrays are left out.
pub fn push(
    name: &str,
    member: &str,
    value: &Value,
    style: Style,
    pairs: &mut Vec<(String, String)>,
    errors: &mut Vec<FieldError>,
) {
    let mut found = Vec::new();
    let result = match (style, value) {
        (Style::Joined(join), value) => {
            found.extend(joined(name, member, value, join, errors));
            Ok(())
        }
        (Style::Repeated, Value::Array(items)) => items.iter().try_for_each(|item| one(name, item, &mut found)),
        (Style::Repeated, value) => one(name, value, &mut found),
        (Style::Brackets, value) => brackets(name.to_owned(), value, 0, &mut found),
    };
    match result {
        Ok(()) if found.len() <= MAX_PAIRS => pairs.extend(found),
        Ok(()) => errors.push(FieldError::new(member, format!("may have at most {MAX_PAIRS} values here"))),
        Err(message) => errors.push(FieldError::new(member, message)),
    }
}

fn one(name: &str, value: &Value, pairs: &mut Vec<(String, String)>) -> Result<(), &'static str> {
    if value.is_null() {
        return Ok(());
    }
    if name.len() > MAX_NAME {
        return Err("has a name that is too long: it is sent as text");
    }
    let text = scalar(value).ok_or("must not have objects or arrays in it: it is sent as text")?;
    pairs.push((name.to_owned(), text));
    Ok(())
}

fn brackets(name: String, value: &Value, depth: usize, pairs: &mut Vec<(String, String)>) -> Result<(), &'static str> {
    // Stops long before the names of nested members add up to much.
    if depth > MAX_DEPTH || pairs.len() > MAX_PAIRS || name.len() > MAX_NAME {
        return Err("is nested too deep or has too many values: it is sent as text");
    }
    match value {
        Value::Object(members) => {
            members.iter().try_for_each(|(member, value)| match member.is_empty() || member.contains(['[', ']']) {
                true => Err("must not have names with brackets: it is sent as text"),
                false => brackets(format!("{name}[{member}]"), value, depth + 1, pairs),
            })
        }
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(index, item)| brackets(format!("{name}[{index}]"), item, depth + 1, pairs))
        }
        value => one(&name, value, pairs),
    }
}
