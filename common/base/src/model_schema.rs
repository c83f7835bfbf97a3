//! Function schemas for models. Model vendors take only a part of JSON Schema, and refuse a whole request if one tool of it has
//! more: one type per value, no value without a type, bounded texts. [`for_models`] makes such a schema; the full one stays where programs
//! read it (OpenAPI, discovery).
//!
//! The rules are those that OpenAI, Google (Gemini, Vertex AI) and Anthropic publish for function declarations.

use serde_json::{Map, Value, json};

/// Longest description of a function or a parameter, in characters (OpenAI).
pub const MAX_DESCRIPTION: usize = 1024;

/// A schema that [`input::schema`](crate::input::schema) made, as all model hosts take it. It allows more than the full one, because
/// the call is validated anyway; of a value that may have several types it names one.
pub fn for_models(schema: &Value) -> Value {
    // A list also holds one item, and text an exact amount.
    let alternatives = schema["anyOf"].as_array();
    let is = |kind: &'static str| move |one: &&Value| one["type"] == kind;
    let chosen = alternatives.and_then(|of| of.iter().find(is("array")).or_else(|| of.iter().find(is("string"))));
    let of = chosen.unwrap_or(schema);
    let kind = of["type"].as_str().unwrap_or("string");
    let mut shown = Map::new();
    shown.insert("type".to_owned(), json!(kind));
    if let Some(about) = schema["description"].as_str() {
        shown.insert("description".to_owned(), json!(about));
    }
    // Not `exclusiveMinimum` and other formats, which Google refuses.
    let kept = ["minLength", "maxLength", "pattern", "minimum", "maximum", "minItems", "maxItems", "enum", "required"];
    for (word, value) in of.as_object().into_iter().flatten() {
        let is_kept = kept.contains(&word.as_str()) || (word == "format" && value == "date-time");
        if is_kept || (word == "additionalProperties" && value == false) {
            shown.insert(word.clone(), value.clone());
        }
    }
    if kind == "array" {
        shown.insert("items".to_owned(), for_models(&of["items"]));
    }
    // Google refuses an empty list of members.
    if let Some(properties) = of["properties"].as_object().filter(|properties| !properties.is_empty()) {
        let properties: Map<String, Value> =
            properties.iter().map(|(name, member)| (name.clone(), for_models(member))).collect();
        shown.insert("properties".to_owned(), Value::Object(properties));
    }
    Value::Object(shown)
}

/// Where a schema breaks a rule of a model host; empty if none would refuse it. For tests.
pub fn refused(schema: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    look(schema, "", &mut wrong);
    wrong
}

fn look(schema: &Value, path: &str, wrong: &mut Vec<String>) {
    let mut say = |what: &str| wrong.push(format!("{path}: {what}"));
    let Some(kind) = schema["type"].as_str() else { return say("no single type (Gemini, Vertex AI)") };
    for word in ["anyOf", "oneOf", "allOf", "not", "$ref", "const", "if", "patternProperties", "prefixItems"] {
        if schema.get(word).is_some() {
            say(&format!("{word} (Gemini; Anthropic and OpenAI at the top)"));
        }
    }
    if schema["description"].as_str().is_some_and(|text| text.chars().count() > MAX_DESCRIPTION) {
        say("a long description (OpenAI)");
    }
    if schema.get("enum").is_some_and(|choices| {
        kind != "string" || choices.as_array().is_none_or(|of| of.iter().any(|one| !one.is_string()))
    }) {
        say("an enumeration of anything but text (Gemini)");
    }
    if schema.get("format").is_some_and(|format| format != "date-time") {
        say("a format (Gemini)");
    }
    if kind == "array" {
        match schema.get("items") {
            Some(items) => look(items, &format!("{path}[]"), wrong),
            None => say("no items (Gemini, OpenAI)"),
        }
    } else if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        if properties.is_empty() {
            say("no properties (Gemini)");
        }
        for (name, member) in properties {
            let fits = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
            if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
                wrong.push(format!("{path}: the name {name} (Anthropic)"));
            }
            look(member, &format!("{path}.{name}"), wrong);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{self, Field, Kind, Range};
    use crate::money::Usdc;

    #[test]
    fn every_kind_of_field_becomes_what_every_host_takes() {
        static TEXT: Kind = Kind::Text { min: 1, max: 9, format: None };
        static INNER: &[Field] =
            &[Field::required("amount", Kind::Amount { min: Usdc::ZERO, max: Usdc::ZERO }, "Money")];
        let above = Range { above: Some(0.0), min: None, max: Some(1.0) };
        let fields = [
            Field::required("one_or_more", Kind::OneOrMore { of: &TEXT, max: 2 }, "Names"),
            Field::optional("share", Kind::Number(above), "A share"),
            Field::optional("list", Kind::List { of: &TEXT, max: 3 }, ""),
            Field::optional("choice", Kind::Choice(&["a", "b"]), "A choice"),
            Field::optional("open", Kind::Object { fields: &[], open: true }, "Anything"),
            Field::optional("inner", Kind::Object { fields: INNER, open: false }, "Inside"),
        ];
        let full = input::schema(&fields);
        assert!(!refused(&full).is_empty(), "the full schema says more than hosts take");
        let shown = for_models(&full);
        assert_eq!(refused(&shown), Vec::<String>::new());
        let of = &shown["properties"];
        let text = json!({"type": "string", "minLength": 1, "maxLength": 9});
        assert_eq!(of["one_or_more"]["items"], text);
        assert_eq!((&of["one_or_more"]["type"], &of["one_or_more"]["description"]), (&json!("array"), &json!("Names")));
        assert_eq!(of["share"], json!({"type": "number", "maximum": 1.0, "description": "A share"}));
        assert_eq!(of["choice"]["enum"], json!(["a", "b"]));
        assert_eq!(of["open"], json!({"type": "object", "description": "Anything"}));
        assert_eq!(of["inner"]["properties"]["amount"]["type"], "string");
        assert_eq!((&shown["required"], &of["inner"]["required"]), (&json!(["one_or_more"]), &json!(["amount"])));
    }
}
