//! `allOf` of plain objects as one object: shorter, and less deep.

use serde_json::{Map, Value};

/// Keywords of a schema that can be merged.
const PLAIN: [&str; 6] = ["type", "description", "properties", "required", "additionalProperties", "format"];

/// A schema that demands what `own` and all of `others` demand. What cannot be merged stays in `allOf`.
pub fn merged(own: Map<String, Value>, others: Vec<Value>) -> Map<String, Value> {
    let mut whole = own;
    let mut rest = Vec::new();
    for other in others {
        match other {
            Value::Object(other) if whole.keys().all(|word| word == "description") => {
                let description = whole.remove("description");
                whole = other;
                if let Some(description) = description {
                    whole.insert("description".to_owned(), description);
                }
            }
            Value::Object(other) if can_merge(&whole, &other) => merge(&mut whole, other),
            other => rest.push(other),
        }
    }
    if !rest.is_empty() {
        let mut all = match whole.remove("allOf") {
            Some(Value::Array(all)) => all,
            _ => Vec::new(),
        };
        all.extend(rest);
        whole.insert("allOf".to_owned(), Value::Array(all));
        // Each part names only its own members, so none may close the whole.
        open(&mut whole);
    }
    whole
}

fn can_merge(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let is_plain = other.keys().all(|word| PLAIN.contains(&word.as_str()));
    let compatible = |word: &str| match (one.get(word), other.get(word)) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    is_plain && compatible("type") && compatible("format")
}

fn merge(whole: &mut Map<String, Value>, other: Map<String, Value>) {
    for (word, value) in other {
        match (whole.get_mut(&word), value) {
            (Some(Value::Object(known)), Value::Object(value)) if word == "properties" => known.extend(value),
            (Some(Value::Array(known)), Value::Array(value)) if word == "required" => {
                let new: Vec<Value> = value.into_iter().filter(|name| !known.contains(name)).collect();
                known.extend(new);
            }
            // One part may close itself only against its own members.
            (Some(known), value) if word == "additionalProperties" && *known != value => *known = Value::Bool(true),
            (Some(_), _) => {}
            (None, value) => {
                whole.insert(word, value);
            }
        }
    }
}

fn open(schema: &mut Map<String, Value>) {
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    if let Some(Value::Array(all)) = schema.get_mut("allOf") {
        all.iter_mut().filter_map(Value::as_object_mut).for_each(|part| {
            if part.get("additionalProperties") == Some(&Value::Bool(false)) {
                part.remove("additionalProperties");
            }
        });
    }
}
