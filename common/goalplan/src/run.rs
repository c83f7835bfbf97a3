//! The input of a task once what it needs has ended, and what an owner's answer means.

use serde_json::{Map, Value};

use crate::meaning::{Meaning, Slot, shape, slots};
use crate::values::Found;
use crate::words::tokens;
use crate::{Asked, Part, Plan, Source, check, names, values};

/// The longest text made of results, in characters.
const MAX_TEXT: usize = 20_000;
/// The deepest value that is shown as text.
const MAX_SHOWN_DEPTH: usize = 6;

/// The input of a task. `result` and `answer` give what earlier tasks of the plan brought.
///
/// # Errors
/// What is missing or does not fit the schema, in words.
pub fn input_of(
    plan: &Plan,
    at: usize,
    params: &Map<String, Value>,
    schema: &Value,
    result: &dyn Fn(usize) -> Option<Value>,
    answer: &dyn Fn(usize) -> Option<Value>,
) -> Result<Map<String, Value>, String> {
    let task = plan.tasks.get(at).ok_or_else(|| format!("the plan has no task {at}"))?;
    let slots = slots(schema);
    let mut input = Map::new();
    for (name, source) in &task.input {
        let slot =
            slots.iter().find(|slot| slot.name == *name).ok_or_else(|| format!("the tool has no argument {name}"))?;
        let value = value_of(source, slot, params, result, answer).map_err(|why| format!("{name}: {why}"))?;
        let value = check::coerced(&slot.schema, value);
        check::value(schema, slot, &value)?;
        input.insert(name.clone(), value);
    }
    Ok(input)
}

fn value_of(
    source: &Source,
    slot: &Slot,
    params: &Map<String, Value>,
    result: &dyn Fn(usize) -> Option<Value>,
    answer: &dyn Fn(usize) -> Option<Value>,
) -> Result<Value, String> {
    let taken = |task: usize, pointer: &str| -> Result<Value, String> {
        let whole = result(task).ok_or_else(|| format!("task {task} has no result"))?;
        let value = whole.pointer(pointer).filter(|value| !value.is_null());
        value.cloned().ok_or_else(|| format!("the result of task {task} has nothing at {pointer}"))
    };
    match source {
        Source::Value(value) => Ok(value.clone()),
        Source::Param(name) => params.get(name).cloned().ok_or_else(|| format!("the params have no {name}")),
        Source::Result { task, pointer } => taken(*task, pointer),
        Source::Answer { task } => answer(*task).ok_or_else(|| format!("the question of task {task} has no answer")),
        Source::Text { parts } => {
            let mut text = String::new();
            for part in parts {
                let shown = match part {
                    Part::Words(words) => words.clone(),
                    Part::Result { task, pointer } => plain(&taken(*task, pointer)?),
                };
                if !text.is_empty() {
                    text.push_str("\n\n");
                }
                text.push_str(&shown);
            }
            Ok(Value::from(cut(&text, most(slot))))
        }
    }
}

/// The most characters of a text: by its schema, or by a description that says "at most 1,600 characters".
fn most(slot: &Slot) -> usize {
    let (one, ..) = shape(&slot.schema);
    let by_schema = one["maxLength"].as_u64().and_then(|most| usize::try_from(most).ok()).unwrap_or(MAX_TEXT);
    let said = slot.about.split("at most ").skip(1).find_map(|rest| {
        let (number, _) = rest.split_once(" characters")?;
        number.replace(',', "").parse::<usize>().ok()
    });
    by_schema.min(said.unwrap_or(MAX_TEXT)).min(MAX_TEXT)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// A value as plain text: members and items a line each.
pub(crate) fn plain(value: &Value) -> String {
    let mut text = String::new();
    show(value, "", 0, &mut text);
    text.trim_end().to_owned()
}

fn show(value: &Value, label: &str, depth: usize, text: &mut String) {
    if text.len() > MAX_TEXT * 4 || depth > MAX_SHOWN_DEPTH {
        return;
    }
    let indent = "  ".repeat(depth.saturating_sub(1));
    let label_of =
        |label: &str| if label.is_empty() { String::new() } else { format!("{}: ", label.replace('_', " ")) };
    match value {
        Value::Null => {}
        Value::Object(members) => {
            if !label.is_empty() {
                text.push_str(&format!("{indent}{}\n", label_of(label).trim_end()));
            }
            members.iter().for_each(|(name, member)| show(member, name, depth + 1, text));
        }
        Value::Array(items) => {
            if !label.is_empty() && !items.is_empty() {
                text.push_str(&format!("{indent}{}\n", label_of(label).trim_end()));
            }
            for (number, item) in items.iter().enumerate() {
                match item {
                    Value::Object(_) | Value::Array(_) => show(item, &(number + 1).to_string(), depth + 1, text),
                    _ => show(item, "-", depth + 1, text),
                }
            }
        }
        Value::String(words) if label == "-" => text.push_str(&format!("{indent}- {words}\n")),
        Value::String(words) => text.push_str(&format!("{indent}{}{words}\n", label_of(label))),
        other => text.push_str(&format!("{indent}{}{other}\n", label_of(label))),
    }
}

/// Reads an owner's answer in words as the value that a question wants.
///
/// # Errors
/// What the answer lacks.
pub fn answer(asked: &Asked, text: &str) -> Result<Value, String> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_TEXT {
        return Err("the answer is empty or too long".to_owned());
    }
    let tool = serde_json::json!({"properties": {&asked.argument: asked.schema}});
    let slot = slots(&tool).into_iter().next().ok_or("the question wants nothing")?;
    let words = tokens(text);
    let found: Vec<Found> = values::find(&words);
    let of = |meanings: &[Meaning]| -> Vec<Value> {
        found.iter().filter(|one| meanings.contains(&one.meaning)).map(|one| one.value.clone()).collect()
    };
    let meanings: &[Meaning] = match asked.meaning {
        Meaning::Email => &[Meaning::Email],
        Meaning::Phone => &[Meaning::Phone],
        Meaning::Url => &[Meaning::Url, Meaning::Domain],
        Meaning::Domain => &[Meaning::Domain],
        Meaning::Vin => &[Meaning::Vin],
        Meaning::Iban => &[Meaning::Iban],
        Meaning::Date => &[Meaning::Date],
        Meaning::Money | Meaning::Number | Meaning::Count | Meaning::Year => &[Meaning::Money, Meaning::Number],
        _ => &[],
    };
    let value = if meanings.is_empty() { in_words(&slot, &words, text) } else { typed(&slot, of(meanings), text)? };
    let value = check::coerced(&slot.schema, value);
    check::value(&tool, &slot, &value)?;
    Ok(value)
}

fn typed(slot: &Slot, mut found: Vec<Value>, text: &str) -> Result<Value, String> {
    if slot.meaning == Meaning::Url {
        for value in &mut found {
            if let Some(host) = value.as_str().filter(|text| !text.contains("://")) {
                *value = Value::from(format!("https://{host}"));
            }
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Ok(Value::from(text)),
        _ if slot.takes_list => Ok(Value::Array(found)),
        _ => Err(format!("{} takes one value, the answer has {}", slot.name, found.len())),
    }
}

fn in_words(slot: &Slot, words: &[crate::words::Token], text: &str) -> Value {
    let first = words.first().map(|word| word.lower.as_str()).unwrap_or_default();
    match slot.meaning {
        Meaning::Bool if matches!(first, "yes" | "y" | "true" | "sure" | "ok" | "yeah") => Value::Bool(true),
        Meaning::Bool if matches!(first, "no" | "n" | "false" | "nope") => Value::Bool(false),
        Meaning::Choice => crate::figures::choice(slot, words).unwrap_or_else(|| Value::from(text)),
        Meaning::Object => {
            serde_json::from_str(text).ok().or_else(|| thing(slot, words, text)).unwrap_or_else(|| Value::from(text))
        }
        _ => Value::from(text),
    }
}

/// A thing with a name and a description, in words: "A bakery in Lyon called Four Miche".
fn thing(slot: &Slot, words: &[crate::words::Token], text: &str) -> Option<Value> {
    let of = &slot.schema["properties"];
    let is_thing = of["name"].is_object() && of["description"].is_object();
    let runs = names::runs(words);
    let called = runs.iter().find(|run| matches!(run.before.as_str(), "called" | "named")).map(|run| run.text.clone());
    let quoted = || words.iter().find(|word| word.quoted).map(|word| word.text.clone());
    let name = called.or_else(quoted).filter(|_| is_thing)?;
    Some(serde_json::json!({"name": name, "description": text}))
}
