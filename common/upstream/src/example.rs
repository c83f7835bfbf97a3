//! A valid input, made of an input schema: for lists that show agents how a call looks.

use serde_json::{Map, Value, json};

/// Deepest nesting, and most items of an array.
const MAX_DEPTH: usize = 12;
const MAX_ITEMS: u64 = 20;
/// Longest text that is made.
const MAX_TEXT: u64 = 200;
/// Most values of one example.
const MAX_VALUES: usize = 300;

/// An input with the required members. It may still not match: a pattern, for example, is not understood.
pub fn of(schema: &Value) -> Value {
    Maker { root: schema, made: 0 }.value(schema, 0)
}

struct Maker<'a> {
    root: &'a Value,
    made: usize,
}

impl<'a> Maker<'a> {
    fn value(&mut self, schema: &'a Value, depth: usize) -> Value {
        self.made += 1;
        if depth > MAX_DEPTH || self.made > MAX_VALUES {
            return Value::Null;
        }
        let target = schema["$ref"].as_str().and_then(|text| self.root.pointer(text.strip_prefix('#')?));
        if let Some(target) = target {
            return self.value(target, depth + 1);
        }
        let given = [&schema["default"], &schema["examples"][0], &schema["const"], &schema["enum"][0]];
        if let Some(given) = given.into_iter().find(|given| !given.is_null()) {
            return given.clone();
        }
        let mut made = match kind(schema) {
            Some("object") => self.object(schema, depth),
            Some("array") => {
                let count = schema["minItems"].as_u64().unwrap_or(1).min(MAX_ITEMS);
                (0..count).map(|_| self.value(&schema["items"], depth + 1)).collect()
            }
            Some("integer") => number(schema, true),
            Some("number") => number(schema, false),
            Some("boolean") => json!(true),
            Some("null") => Value::Null,
            Some(_) => text(schema),
            None => ["anyOf", "oneOf"]
                .iter()
                .find_map(|word| schema[*word].get(0))
                .map_or_else(|| json!("text"), |first| self.value(first, depth + 1)),
        };
        for part in schema["allOf"].as_array().into_iter().flatten() {
            if let (Value::Object(made), Value::Object(more)) = (&mut made, self.value(part, depth + 1)) {
                made.extend(more);
            }
        }
        made
    }

    fn object(&mut self, schema: &'a Value, depth: usize) -> Value {
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        let mut members = Map::new();
        for name in required.iter().filter_map(Value::as_str) {
            let value = self.value(&schema["properties"][name], depth + 1);
            members.insert(name.to_owned(), value);
        }
        if let Some(first) = schema["anyOf"].get(0)
            && let Value::Object(more) = self.value(first, depth + 1)
        {
            members.extend(more);
        }
        Value::Object(members)
    }
}

/// The first type that is not null.
fn kind(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ if schema["properties"].is_object() => Some("object"),
        _ => None,
    }
}

fn number(schema: &Value, whole: bool) -> Value {
    let above = |word: &str| schema[word].as_f64();
    let least = above("minimum").or(above("exclusiveMinimum").map(|bound| bound + 1.0));
    let most = above("maximum").or(above("exclusiveMaximum").map(|bound| bound - 1.0));
    let wanted = least.unwrap_or(1.0).max(least.unwrap_or(f64::MIN)).min(most.unwrap_or(f64::MAX));
    let wanted = if whole { wanted.ceil() } else { wanted };
    // A float that is whole is written as an integer.
    match wanted.fract() == 0.0 && wanted.abs() < 1e15 {
        true => serde_json::from_str(&format!("{wanted:.0}")).unwrap_or(json!(1)),
        false => json!(wanted),
    }
}

fn text(schema: &Value) -> Value {
    let text = match schema["format"].as_str() {
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("time") => "12:00:00Z",
        Some("email") => "someone@example.com",
        Some("uri" | "url") => "https://example.com",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        Some("ipv4") => "192.0.2.1",
        Some("hostname") => "example.com",
        _ => "text",
    };
    let least = usize::try_from(schema["minLength"].as_u64().unwrap_or_default().min(MAX_TEXT)).unwrap_or_default();
    let most = schema["maxLength"].as_u64().and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    Value::String(format!("{text:x<least$}").chars().take(most).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_matches_its_schema() {
        for properties in [
            json!({"a": {"type": "string", "minLength": 9}, "b": {"type": "integer", "exclusiveMinimum": 3}}),
            json!({"a": {"enum": ["x", "y"]}, "b": {"type": ["null", "number"], "maximum": -0.5}}),
            json!({"a": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/c"}}, "b": {"const": 7}}),
            json!({"a": {"anyOf": [{"type": "boolean"}, {}]}, "b": {"type": "object", "allOf": [
                {"type": "object", "required": ["d"], "properties": {"d": {"type": "string", "maxLength": 2}}}]}}),
        ] {
            let schema = json!({"type": "object", "required": ["a", "b"], "properties": properties, "$defs": {
                "c": {"type": "object", "required": ["e"], "properties": {"e": {"default": 5}}}}});
            assert_eq!(schema::validate(&schema, &of(&schema)), Ok(()), "{}", of(&schema));
        }
        let own = json!({"$ref": "#"});
        assert_eq!(of(&own), Value::Null);
    }
}
