//! What an argument is for, read from its name and its schema.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::words::name_parts;

/// The meaning of an argument or of a member of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    Email,
    Phone,
    Url,
    Domain,
    Vin,
    Iban,
    Uuid,
    Date,
    Year,
    Money,
    Number,
    /// How many results are wanted.
    Count,
    Bool,
    /// One of an enum.
    Choice,
    Person,
    FirstName,
    LastName,
    Company,
    /// A name of which only the tool's text tells whose it is.
    Name,
    Place,
    /// A trade, a title, a kind: "plumbers", "CTO".
    Kind,
    /// Free words to search for, or a task in words.
    Query,
    Body,
    Subject,
    /// A currency's code.
    Currency,
    /// A form of its own, by a pattern.
    Code,
    Object,
    Other,
}

/// An argument of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub name: String,
    pub meaning: Meaning,
    pub schema: Value,
    pub required: bool,
    pub takes_list: bool,
    pub parts: Vec<String>,
    pub about: String,
}

/// Most arguments of one tool.
const MAX_SLOTS: usize = 60;
/// Filled by the one who calls the tool: they belong to the protocol, not to the objective.
pub(crate) const OF_PROTOCOL: &[&str] = &["idempotency_key", "quote_id"];

/// The arguments of a tool, in the order in which they are filled.
pub(crate) fn slots(schema: &Value) -> Vec<Slot> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object();
    let read =
        properties.into_iter().flatten().take(MAX_SLOTS).filter(|(name, _)| !OF_PROTOCOL.contains(&name.as_str()));
    let mut slots: Vec<Slot> =
        read.map(|(name, of)| slot(name, of, required.contains(&name.as_str()), schema)).collect();
    slots.sort_by_key(|slot| (order(slot.meaning) == 4, !slot.required, order(slot.meaning)));
    slots
}

/// The exact forms are read before the free words.
fn order(meaning: Meaning) -> u8 {
    match meaning {
        Meaning::Query | Meaning::Body | Meaning::Subject => 4,
        Meaning::Kind | Meaning::Other | Meaning::Object => 3,
        Meaning::Name | Meaning::Place | Meaning::Company => 2,
        Meaning::FirstName | Meaning::LastName => 2,
        Meaning::Person | Meaning::Choice | Meaning::Bool => 1,
        _ => 0,
    }
}

fn slot(name: &str, schema: &Value, required: bool, root: &Value) -> Slot {
    let schema = resolved(schema, root);
    let about = schema["description"].as_str().unwrap_or_default().to_owned();
    let (one, takes_list, _) = shape(schema);
    let parts = name_parts(name);
    let meaning = meaning_of(&parts, one, &about);
    // "Needed unless …" is how descriptions say what a schema cannot.
    let required = required || about.contains("Needed unless");
    Slot { name: name.to_owned(), meaning, schema: schema.clone(), required, takes_list, parts, about }
}

fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let reference = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#'));
    reference.and_then(|path| root.pointer(path)).unwrap_or(schema)
}

/// The schema of one value, and whether a list of them is taken, or only a list.
pub(crate) fn shape(schema: &Value) -> (&Value, bool, bool) {
    let is_list = |one: &&Value| is_of(one, "array");
    let parts = ["anyOf", "oneOf"].iter().find_map(|key| schema[*key].as_array());
    if let Some(parts) = parts {
        let list = parts.iter().find(is_list);
        let single = parts.iter().find(|one| !is_list(one) && !is_of(one, "null"));
        return match (single, list) {
            (Some(single), list) => (single, list.is_some(), false),
            (None, Some(list)) => (&list["items"], true, true),
            (None, None) => (schema, false, false),
        };
    }
    match is_list(&schema) {
        true if schema["items"].is_object() => (&schema["items"], true, true),
        true => (schema, true, true),
        false => (schema, false, false),
    }
}

/// Whether a schema names a type.
pub(crate) fn is_of(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::String(only) => only == kind,
        Value::Array(several) => several.iter().any(|one| one == kind),
        _ => false,
    }
}

/// The meaning of a member with this name and schema.
pub(crate) fn meaning_of(parts: &[String], schema: &Value, about: &str) -> Meaning {
    let has = |words: &[&str]| parts.iter().any(|part| words.contains(&part.as_str()));
    let last = parts.last().map(String::as_str).unwrap_or_default();
    if schema["enum"].is_array() {
        return Meaning::Choice;
    }
    if is_of(schema, "boolean") {
        return Meaning::Bool;
    }
    if is_of(schema, "object") {
        return Meaning::Object;
    }
    if is_of(schema, "integer") || is_of(schema, "number") {
        return number(parts, last);
    }
    match schema["format"].as_str() {
        Some("email") => return Meaning::Email,
        Some("uri" | "url") => return Meaning::Url,
        Some("uuid") => return Meaning::Uuid,
        Some("date" | "date-time") => return Meaning::Date,
        _ => {}
    }
    if last == "id" || has(&["ids", "identifier", "token", "key", "password"]) {
        return Meaning::Code;
    }
    if has(&["email", "emails", "mail"]) && !has(&["subject", "body", "text", "content", "type"]) {
        return Meaning::Email;
    }
    if has(&["phone", "mobile", "telephone"])
        || last == "number" && (has(&["to", "target", "from"]) || is_phone_pattern(schema))
    {
        return Meaning::Phone;
    }
    text(parts, last, schema, about)
}

fn is_phone_pattern(schema: &Value) -> bool {
    schema["pattern"].as_str().is_some_and(|pattern| pattern.starts_with("^\\+"))
}

fn number(parts: &[String], last: &str) -> Meaning {
    let has = |words: &[&str]| parts.iter().any(|part| words.contains(&part.as_str()));
    let counts = ["limit", "count", "num", "top", "quantity", "n", "k"];
    match last {
        "year" => Meaning::Year,
        "results" if has(&["max", "num", "number"]) => Meaning::Count,
        _ if counts.contains(&last) || parts.first().is_some_and(|first| first == "num") => Meaning::Count,
        _ if has(&["price", "amount", "cost", "budget", "usd", "eur", "fee", "salary", "total"]) => Meaning::Money,
        _ => Meaning::Number,
    }
}

fn text(parts: &[String], last: &str, schema: &Value, about: &str) -> Meaning {
    let has = |words: &[&str]| parts.iter().any(|part| words.contains(&part.as_str()));
    let about = about.to_lowercase();
    match last {
        "url" | "uri" | "link" | "website" | "webpage" => Meaning::Url,
        "domain" | "domains" | "hostname" => Meaning::Domain,
        "vin" => Meaning::Vin,
        "iban" => Meaning::Iban,
        "date" | "day" | "since" | "after" | "before" if schema["pattern"].is_null() => Meaning::Date,
        "year" => Meaning::Year,
        "amount" | "price" | "budget" => Meaning::Money,
        "currency" | "base" | "quote" if schema["pattern"] == "^[A-Z]{3}$" || last == "currency" => Meaning::Currency,
        _ if is_code(schema) => Meaning::Code,
        "query" | "topic" | "q" | "question" | "search" | "task" | "objective" | "prompt" | "keyword" | "keywords" => {
            Meaning::Query
        }
        "body" | "message" | "content" => Meaning::Body,
        "subject" => Meaning::Subject,
        "company" | "employer" | "organization" | "organisation" | "companies" | "manufacturer" | "recipient" => {
            Meaning::Company
        }
        "location" | "city" | "place" | "address" | "destination" | "locations" | "loc" | "town" => Meaning::Place,
        "name" => name(parts, &about),
        "person" | "author" => Meaning::Person,
        "category" | "categories" | "role" | "roles" | "titles" | "profession" | "position" => Meaning::Kind,
        "title" if has(&["job"]) => Meaning::Kind,
        _ => Meaning::Other,
    }
}

fn name(parts: &[String], about: &str) -> Meaning {
    let first = parts.first().map(String::as_str).unwrap_or_default();
    match first {
        "first" | "given" => Meaning::FirstName,
        "last" | "family" => Meaning::LastName,
        "full" | "person" | "author" => Meaning::Person,
        "company" | "organization" | "client" | "firm" | "business" => Meaning::Company,
        "city" | "place" => Meaning::Place,
        "name" if about.contains("person") || about.contains("first and last") => Meaning::Person,
        "name" if about.contains("company") => Meaning::Company,
        "name" => Meaning::Name,
        _ => Meaning::Other,
    }
}

/// Whether a pattern describes a form that ordinary words do not have.
fn is_code(schema: &Value) -> bool {
    let Some(pattern) = schema["pattern"].as_str() else { return false };
    let is_loose =
        ["\\S", "\\.", "[0-9A-Za-z][0-9A-Za-z._-]{0,79}", "A-Za-z .'-"].iter().any(|loose| pattern.contains(loose));
    !is_loose && pattern.starts_with('^')
}
