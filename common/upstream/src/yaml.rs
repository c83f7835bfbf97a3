//! YAML as JSON, for documents that are published in it. The parser is the one that reads this project's own template.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// Largest document, in bytes, its deepest nesting, and most values with its aliases written out.
const MAX_BYTES: usize = 16 * 1024 * 1024;
const MAX_DEPTH: usize = 100;
const MAX_VALUES: usize = 2_000_000;

/// Reads a YAML document (core schema of YAML 1.2). JSON is YAML too, but `serde_json` reads it faster.
///
/// # Errors
/// What is wrong, for the operator: not YAML, too large or too deep, a member said twice.
pub fn from_yaml(text: &str) -> Result<Value, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("the document may have at most {MAX_BYTES} bytes"));
    }
    let mut parser = Parser::new_from_str(text);
    let mut next = || match parser.next() {
        Some(Ok((event, _))) => Ok(event),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the document ends too early".to_owned()),
    };
    let mut made = Made::default();
    loop {
        match next()? {
            Event::StreamStart | Event::DocumentStart(..) => {}
            Event::StreamEnd | Event::DocumentEnd => return Err("the document is empty".to_owned()),
            first => return made.node(first, 0, &mut next),
        }
    }
}

/// What was made so far.
#[derive(Default)]
struct Made {
    /// Values with an anchor, and their sizes.
    anchors: HashMap<usize, (Value, usize)>,
    values: usize,
}

impl Made {
    fn node<'t>(
        &mut self,
        first: Event<'t>,
        depth: usize,
        next: &mut impl FnMut() -> Result<Event<'t>, String>,
    ) -> Result<Value, String> {
        let before = self.values;
        self.count(1)?;
        if depth > MAX_DEPTH {
            return Err(format!("the document is nested deeper than {MAX_DEPTH}"));
        }
        let (value, anchor) = match first {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = style != ScalarStyle::Plain || tag.is_some_and(|tag| tag.suffix() == "str");
                (if is_text { Value::from(&*text) } else { plain(&text) }, anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                let mut items = Vec::new();
                loop {
                    match next()? {
                        Event::SequenceEnd => break,
                        first => items.push(self.node(first, depth + 1, next)?),
                    }
                }
                (Value::Array(items), anchor)
            }
            Event::MappingStart(_, anchor, _) => (Value::Object(self.mapping(depth, next)?), anchor),
            Event::Alias(anchor) => {
                let (_, size) = self.anchors.get(&anchor).ok_or("an alias is used within its own value")?;
                self.count(*size)?;
                return Ok(self.anchors.get(&anchor).map(|(value, _)| value.clone()).unwrap_or_default());
            }
            _ => return Err("the document has an unknown part".to_owned()),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, (value.clone(), self.values - before));
            // The copy takes room too.
            self.count(self.values - before)?;
        }
        Ok(value)
    }

    fn mapping<'t>(
        &mut self,
        depth: usize,
        next: &mut impl FnMut() -> Result<Event<'t>, String>,
    ) -> Result<Map<String, Value>, String> {
        let (mut object, mut inherited) = (Map::new(), Vec::new());
        loop {
            let name = match next()? {
                Event::MappingEnd => break,
                Event::Scalar(name, ..) => name.into_owned(),
                _ => return Err("a member's name must be a text".to_owned()),
            };
            let first = next()?;
            let value = self.node(first, depth + 1, next)?;
            if name == "<<" {
                inherited.push(value);
            } else if object.contains_key(&name) {
                return Err(format!("{} is said twice", name.chars().take(64).collect::<String>()));
            } else {
                object.insert(name, value);
            }
        }
        // Merge keys: members of other mappings, unless it has them itself.
        for value in inherited {
            let values = if let Value::Array(values) = value { values } else { vec![value] };
            for (name, value) in values.into_iter().filter_map(|value| value.as_object().cloned()).flatten() {
                object.entry(name).or_insert(value);
            }
        }
        Ok(object)
    }

    fn count(&mut self, more: usize) -> Result<(), String> {
        self.values = self.values.saturating_add(more);
        match self.values > MAX_VALUES {
            true => Err(format!("the document has more than {MAX_VALUES} values with its aliases written out")),
            false => Ok(()),
        }
    }
}

/// A scalar without quotes.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Value::from(text);
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit())
        && let Ok(number) = text.parse::<i64>()
    {
        return Value::from(number);
    }
    if let Some(number) = text.strip_prefix("0x").and_then(|digits| i64::from_str_radix(digits, 16).ok()) {
        return Value::from(number);
    }
    let is_float = digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let float = is_float.then(|| text.parse::<f64>().ok()).flatten().and_then(Number::from_f64);
    float.map_or_else(|| Value::from(text), Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_read_as_json() {
        let text = "openapi: 3.0.0\ninfo: {title: 'On', v: \"1\"}\npaths:\n  /a: &a\n    200: [1, 1.5, ~, true, 0x1f, 1e3, 2020-01-01]\n  /b:\n    <<: *a\n    x: |\n      two\n      lines\n";
        let read = from_yaml(text).unwrap();
        let list = json!([1, 1.5, null, true, 31, 1000.0, "2020-01-01"]);
        assert_eq!(
            read,
            json!({"openapi": "3.0.0", "info": {"title": "On", "v": "1"}, "paths": {
                "/a": {"200": list}, "/b": {"200": list, "x": "two\nlines\n"}}})
        );
    }

    #[test]
    fn hostile_documents_are_refused() {
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for index in 1..12 {
            let alias = format!("*a{}", index - 1);
            laughs.push_str(&format!("a{index}: &a{index} [{}]\n", [alias.as_str(); 9].join(", ")));
        }
        for text in [&laughs, &"[".repeat(5_000), "a: 1\na: 2", "a: *b", "a: &a [*a]", "", "{a: 1", "? [a]\n: 1"] {
            assert!(from_yaml(text).is_err(), "{}", &text[..text.len().min(40)]);
        }
    }
}
