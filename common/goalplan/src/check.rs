//! Values against the schema of one argument.

use base::contact::{is_domain, is_email};
use base::input::FieldError;
use serde_json::{Map, Value, json};

use crate::meaning::{Meaning, Slot, is_of};
use crate::values;

/// Checks a value of an argument: type, enum, bounds, pattern and format.
pub(crate) fn value(tool: &Value, slot: &Slot, value: &Value) -> Result<(), String> {
    let mut root = json!({"type": "object", "properties": {&slot.name: tool["properties"][&slot.name]}});
    for key in ["$defs", "definitions"] {
        if let Some(definitions) = tool.get(key) {
            root[key] = definitions.clone();
        }
    }
    let mut input = Map::new();
    input.insert(slot.name.clone(), value.clone());
    schema::validate(&root, &Value::Object(input)).map_err(|errors| words(&errors))?;
    let list = value.as_array().map(Vec::as_slice);
    for one in list.unwrap_or(std::slice::from_ref(value)) {
        form(slot.meaning, one).map_err(|why| format!("{} {why}", slot.name))?;
    }
    Ok(())
}

/// Formats, which the schema's check leaves out.
fn form(meaning: Meaning, value: &Value) -> Result<(), &'static str> {
    let Some(text) = value.as_str() else { return Ok(()) };
    let (is_good, why) = match meaning {
        Meaning::Email => (is_email(text), "has to be an e-mail address"),
        Meaning::Url => (
            url::Url::parse(text).is_ok() || is_domain(text.split('/').next().unwrap_or_default()),
            "has to be a web address",
        ),
        Meaning::Phone => (
            base::contact::is_phone(&text.replace([' ', '-', '(', ')', '.'], "")),
            "has to be a phone number with its country code",
        ),
        _ => (true, ""),
    };
    if is_good { Ok(()) } else { Err(why) }
}

pub(crate) fn words(errors: &[FieldError]) -> String {
    let all: Vec<String> =
        errors.iter().take(5).map(|error| format!("{} {}", error.path, error.message).trim().to_owned()).collect();
    all.join("; ")
}

/// A value in the type that the schema wants, where both say the same: "5" and 5, one value and a list of it.
pub(crate) fn coerced(schema: &Value, value: Value) -> Value {
    let (one, takes_list, only_list) = crate::meaning::shape(schema);
    match value {
        Value::Array(items) if takes_list => items.into_iter().map(|item| coerced(one, item)).collect(),
        Value::Number(number) if is_of(one, "string") && !is_of(one, "number") => {
            listed(only_list, Value::from(number.to_string()))
        }
        Value::String(text) if (is_of(one, "integer") || is_of(one, "number")) && !is_of(one, "string") => {
            listed(only_list, values::number(text.trim()).unwrap_or(Value::String(text)))
        }
        other => listed(only_list, other),
    }
}

fn listed(only_list: bool, value: Value) -> Value {
    if only_list && !value.is_array() { Value::Array(vec![value]) } else { value }
}
