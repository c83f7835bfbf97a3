//! Strangers' schemas (OpenAPI 3.0, 3.1, Swagger 2.0, JSON Schema) in the form that this service admits.
//!
//! References are written out. A schema that is too large or refers back to itself is cut: below the cut any value of the
//! part's type matches, so that the service itself judges it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::document::Document;
use super::merge::merged;
use super::words::{cleaned, shortened};

/// What a schema is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Checks what a buyer sends.
    Input,
    /// Checks what a service sends, which is often less exact than its description.
    Output,
}

/// How much of a schema is kept. The imports try these one after another until the result is admitted.
#[derive(Clone, Copy, Debug)]
pub struct Detail {
    /// Deepest nesting.
    depth: usize,
    patterns: bool,
    /// Longest description, in characters.
    words: usize,
}

impl Detail {
    /// Longest description, in characters.
    pub fn words(self) -> usize {
        self.words
    }
}

/// From everything to the outline.
pub const DETAILS: [Detail; 12] = [
    Detail { depth: 7, patterns: true, words: 300 },
    Detail { depth: 7, patterns: false, words: 150 },
    Detail { depth: 6, patterns: false, words: 100 },
    Detail { depth: 5, patterns: false, words: 100 },
    Detail { depth: 4, patterns: false, words: 100 },
    Detail { depth: 4, patterns: false, words: 0 },
    Detail { depth: 3, patterns: false, words: 100 },
    Detail { depth: 3, patterns: false, words: 0 },
    Detail { depth: 2, patterns: false, words: 100 },
    Detail { depth: 2, patterns: false, words: 0 },
    Detail { depth: 1, patterns: false, words: 60 },
    Detail { depth: 1, patterns: false, words: 0 },
];

/// Most parts that one conversion makes. A larger schema would not be admitted.
const MAX_PARTS: usize = 2_000;
/// Most members of an `enum`.
const MAX_CHOICES: usize = 250;
/// Most references one within the other, and most schemas, `allOf` included.
const MAX_CHAIN: usize = 40;
const MAX_NESTING: usize = 100;
/// Most names in `required`.
const MAX_REQUIRED: usize = 500;

/// Keywords that bound a value; they are copied for an input and dropped for an output.
const BOUNDS: [&str; 9] = [
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];
/// Keywords that are not kept.
const DROPPED: [&str; 8] = [
    "not",
    "if",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "contains",
    "prefixItems",
];
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Converts the schemas of one operation and remembers what it changed.
pub struct Converter<'a> {
    pub document: Document<'a>,
    pub purpose: Purpose,
    pub detail: Detail,
    /// What was cut or relaxed, for the operator.
    pub notes: BTreeSet<&'static str>,
    parts: usize,
    /// Schemas that are being converted, one within the other.
    nesting: usize,
    /// The references that are being written out.
    chain: Vec<&'a str>,
}

pub const CUT_DEPTH: &str = "a schema was cut, because it is too large: below the cut any value passes";
pub const CUT_RECURSION: &str = "a recursive schema was cut: below the cut any value passes";
pub const CUT_FOREIGN: &str = "a $ref that cannot be resolved was cut: any value passes there";
pub const RELAXED: &str = "the output schema was relaxed: no member is required, each may be null, a number may be a string, and no enum, pattern, length or range is checked";
pub const ANY_OF: &str = "oneOf became anyOf: a value may match several of the alternatives";
pub const NOT_KEPT: &str =
    "rules such as not, if and patternProperties were dropped: only the service itself checks them";
pub const NO_PATTERNS: &str = "patterns were dropped";

impl<'a> Converter<'a> {
    pub fn new(document: Document<'a>, purpose: Purpose, detail: Detail) -> Converter<'a> {
        Converter { document, purpose, detail, notes: BTreeSet::new(), parts: 0, nesting: 0, chain: Vec::new() }
    }

    /// Whether the schema was too large for this detail.
    pub fn is_exhausted(&self) -> bool {
        self.parts > MAX_PARTS
    }

    /// The schema in our form. `depth`: how deep it will stand.
    pub fn convert(&mut self, schema: &'a Value, depth: usize) -> Value {
        let mut converted = self.part(schema, depth);
        without_unknown(&mut converted);
        converted
    }

    /// The same for a part of a whole: it may require what other parts describe.
    fn part(&mut self, schema: &'a Value, depth: usize) -> Value {
        self.parts += 1;
        if self.is_exhausted() || self.nesting >= MAX_NESTING {
            self.notes.insert(CUT_DEPTH);
            return json!({});
        }
        self.nesting += 1;
        let converted = self.converted(schema, depth);
        self.nesting -= 1;
        converted
    }

    fn converted(&mut self, schema: &'a Value, depth: usize) -> Value {
        let Value::Object(members) = schema else {
            return if *schema == json!(false) && self.purpose == Purpose::Input { json!(false) } else { json!({}) };
        };
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            return self.reference(reference, members, depth);
        }
        if depth >= self.detail.depth {
            return self.outline(schema, members);
        }
        let mut kept = Map::new();
        self.words(members, &mut kept);
        self.types(members, &mut kept);
        match self.purpose {
            Purpose::Input => self.bounds(members, &mut kept),
            Purpose::Output => {
                self.notes.insert(RELAXED);
            }
        }
        self.parts_of(members, depth, &mut kept);
        self.combined(members, depth, kept)
    }

    fn reference(&mut self, reference: &'a str, members: &'a Map<String, Value>, depth: usize) -> Value {
        if self.chain.contains(&reference) || self.chain.len() >= MAX_CHAIN {
            self.notes.insert(CUT_RECURSION);
            return json!({});
        }
        let Ok(target) = self.document.target(reference) else {
            self.notes.insert(CUT_FOREIGN);
            return json!({});
        };
        self.chain.push(reference);
        let mut converted = self.part(target, depth);
        self.chain.pop();
        // OpenAPI 3.1 allows a text beside the reference.
        if let Value::Object(converted) = &mut converted {
            self.words(members, converted);
        }
        converted
    }

    /// A part that is not written out: its type alone.
    fn outline(&mut self, schema: &Value, members: &Map<String, Value>) -> Value {
        let mut kept = Map::new();
        self.words(members, &mut kept);
        self.types(members, &mut kept);
        let has_more = ["properties", "items", "allOf", "anyOf", "oneOf", "additionalProperties", "enum"];
        if has_more.iter().any(|word| schema.get(word).is_some_and(|value| !value.is_boolean())) {
            self.notes.insert(CUT_DEPTH);
        } else if self.purpose == Purpose::Input {
            self.bounds(members, &mut kept);
        }
        Value::Object(kept)
    }

    /// The schema's description. Its title is one only where there is no other.
    fn words(&self, members: &Map<String, Value>, kept: &mut Map<String, Value>) {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let title = text("title").filter(|_| !kept.contains_key("description"));
        let text = text("description").or(title);
        let text = text.map(|text| shortened(&cleaned(text), self.detail.words)).filter(|text| !text.is_empty());
        if let Some(text) = text {
            kept.insert("description".to_owned(), Value::String(text));
        }
    }

    fn types(&mut self, members: &Map<String, Value>, kept: &mut Map<String, Value>) {
        let mut types: Vec<&str> = match members.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            // Without a type, the keyword bounds objects alone; what a service sends may be something else.
            _ if members.contains_key("properties") && self.purpose == Purpose::Input => vec!["object"],
            _ => Vec::new(),
        };
        types.retain(|kind| TYPES.contains(kind));
        if types.is_empty() {
            return;
        }
        let is_nullable = ["nullable", "x-nullable"].iter().any(|name| members.get(*name) == Some(&json!(true)));
        if (is_nullable || self.purpose == Purpose::Output) && !types.contains(&"null") {
            types.push("null");
        }
        if self.purpose == Purpose::Output {
            types.iter_mut().filter(|kind| **kind == "integer").for_each(|kind| *kind = "number");
            // Amounts and ids are often written as texts.
            if types.contains(&"number") && !types.contains(&"string") {
                types.push("string");
            }
            types.dedup();
        }
        let value = if types.len() == 1 { json!(types[0]) } else { json!(types) };
        kept.insert("type".to_owned(), value);
        for word in ["format", "contentEncoding"] {
            if let Some(Value::String(format)) =
                members.get(word).filter(|format| format.as_str().is_some_and(|format| format.len() <= 40))
            {
                kept.insert(word.to_owned(), json!(cleaned(format)));
            }
        }
    }

    /// What bounds a value of the input.
    fn bounds(&mut self, members: &Map<String, Value>, kept: &mut Map<String, Value>) {
        if DROPPED.iter().any(|word| members.contains_key(*word)) {
            self.notes.insert(NOT_KEPT);
        }
        for word in BOUNDS {
            if let Some(number) = members.get(word).filter(|number| number.is_number()) {
                kept.insert(word.to_owned(), number.clone());
            }
        }
        exclusive(members, kept);
        if members.get("uniqueItems") == Some(&json!(true)) {
            kept.insert("uniqueItems".to_owned(), json!(true));
        }
        if let Some(pattern) = members.get("pattern").filter(|pattern| pattern.is_string()) {
            if self.detail.patterns {
                kept.insert("pattern".to_owned(), pattern.clone());
            } else {
                self.notes.insert(NO_PATTERNS);
            }
        }
        self.choices(members, kept);
        if let Some(default) = members.get("default").filter(|value| !value.is_object() && !value.is_array()) {
            kept.insert("default".to_owned(), default.clone());
        }
    }

    fn choices(&mut self, members: &Map<String, Value>, kept: &mut Map<String, Value>) {
        let is_nullable =
            kept.get("type").and_then(Value::as_array).is_some_and(|types| types.contains(&json!("null")));
        if let Some(Value::Array(choices)) = members.get("enum").filter(|_| !kept.contains_key("enum")) {
            if choices.is_empty() || choices.len() > MAX_CHOICES {
                self.notes.insert(CUT_DEPTH);
            } else {
                let mut choices = choices.clone();
                if is_nullable && !choices.contains(&Value::Null) {
                    choices.push(Value::Null);
                }
                kept.insert("enum".to_owned(), Value::Array(choices));
            }
        }
        if let Some(only) = members.get("const") {
            kept.insert("const".to_owned(), only.clone());
        }
    }

    /// Properties, items, and what other members may be.
    fn parts_of(&mut self, members: &'a Map<String, Value>, depth: usize, kept: &mut Map<String, Value>) {
        if let Some(properties) = members.get("properties").and_then(Value::as_object) {
            let mut converted = Map::new();
            for (name, property) in properties {
                if self.is_exhausted() {
                    break;
                }
                if self.is_hidden(property) {
                    continue;
                }
                converted.insert(name.clone(), self.convert(property, depth + 1));
            }
            kept.insert("properties".to_owned(), Value::Object(converted));
        }
        let required = members.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let required: Vec<&Value> = required.iter().take(MAX_REQUIRED).filter(|name| name.is_string()).collect();
        if self.purpose == Purpose::Input && !required.is_empty() {
            kept.insert("required".to_owned(), json!(required));
        }
        if let Some(items) = members.get("items").filter(|items| items.is_object()) {
            let converted = self.convert(items, depth + 1);
            kept.insert("items".to_owned(), converted);
        }
        match members.get("additionalProperties") {
            // What the patterns allow may come.
            _ if members.contains_key("patternProperties") => {
                kept.insert("additionalProperties".to_owned(), json!(true));
            }
            Some(Value::Bool(allowed)) if self.purpose == Purpose::Input => {
                kept.insert("additionalProperties".to_owned(), json!(allowed));
            }
            Some(others @ Value::Object(inner)) if !inner.is_empty() => {
                let converted = self.convert(others, depth + 1);
                kept.insert("additionalProperties".to_owned(), converted);
            }
            Some(Value::Object(_)) if self.purpose == Purpose::Input => {
                kept.insert("additionalProperties".to_owned(), json!(true));
            }
            _ => {}
        }
    }

    /// Whether a property is not for this direction.
    fn is_hidden(&self, property: &Value) -> bool {
        let word = match self.purpose {
            Purpose::Input => "readOnly",
            Purpose::Output => "writeOnly",
        };
        let shown = self.document.resolved(property).unwrap_or(property);
        shown[word] == true || property[word] == true
    }

    /// With `allOf` merged, and `anyOf` and `oneOf` as alternatives.
    fn combined(&mut self, members: &'a Map<String, Value>, depth: usize, mut kept: Map<String, Value>) -> Value {
        let list = |word: &str| members.get(word).and_then(Value::as_array).filter(|list| !list.is_empty());
        if let Some(all) = list("allOf") {
            let all: Vec<Value> = all.iter().take(MAX_PARTS).map(|schema| self.part(schema, depth)).collect();
            kept = merged(kept, all);
        }
        for word in ["anyOf", "oneOf"] {
            let Some(alternatives) = list(word) else { continue };
            // Alternatives that are not read may match too.
            if alternatives.len() > MAX_CHOICES {
                self.notes.insert(CUT_DEPTH);
                continue;
            }
            if word == "oneOf" && alternatives.len() > 1 {
                self.notes.insert(ANY_OF);
            }
            let mut converted: Vec<Value> = Vec::new();
            for alternative in alternatives {
                let alternative = self.part(alternative, depth + 1);
                if !converted.contains(&alternative) {
                    converted.push(alternative);
                }
            }
            if self.purpose == Purpose::Output || members.get("nullable") == Some(&json!(true)) {
                converted.push(json!({"type": "null"}));
            }
            kept = alternatives_of(kept, converted);
        }
        Value::Object(kept)
    }
}

/// Where the parts of a whole stand.
const COMPOSED: [&str; 2] = ["allOf", "anyOf"];

/// Drops the names in `required` that no part of the whole describes: those of another direction, and those that were cut.
fn without_unknown(whole: &mut Value) {
    let has_required = whole.get("required").is_some() || COMPOSED.iter().any(|word| whole.get(word).is_some());
    if has_required {
        let mut known = BTreeSet::new();
        described(whole, &mut known);
        keep_required(whole, &known);
    }
}

fn described(schema: &Value, known: &mut BTreeSet<String>) {
    known.extend(schema["properties"].as_object().into_iter().flat_map(Map::keys).cloned());
    for word in COMPOSED {
        schema[word].as_array().into_iter().flatten().for_each(|part| described(part, known));
    }
}

fn keep_required(schema: &mut Value, known: &BTreeSet<String>) {
    let Value::Object(schema) = schema else { return };
    if let Some(Value::Array(names)) = schema.get_mut("required") {
        names.retain(|name| name.as_str().is_some_and(|name| known.contains(name)));
    }
    if schema.get("required") == Some(&json!([])) {
        schema.remove("required");
    }
    for word in COMPOSED {
        let Some(Value::Array(parts)) = schema.get_mut(word) else { continue };
        parts.iter_mut().for_each(|part| keep_required(part, known));
        // A part that demands nothing any more has nothing to decide.
        let is_empty = |part: &Value| part.as_object().is_some_and(Map::is_empty);
        match word {
            "allOf" => parts.retain(|part| !is_empty(part)),
            _ if parts.iter().any(is_empty) => parts.clear(),
            _ => {}
        }
        if parts.is_empty() {
            schema.remove(word);
        }
    }
}

/// Adds alternatives. A single one is merged; a second list goes into `allOf`.
fn alternatives_of(mut kept: Map<String, Value>, mut alternatives: Vec<Value>) -> Map<String, Value> {
    if alternatives.len() == 1 {
        return merged(kept, alternatives);
    }
    // An alternative that any value matches decides nothing.
    if alternatives.iter().any(|schema| schema.as_object().is_some_and(Map::is_empty)) {
        return kept;
    }
    alternatives.dedup();
    if kept.contains_key("anyOf") {
        return merged(kept, vec![json!({"anyOf": alternatives})]);
    }
    kept.insert("anyOf".to_owned(), Value::Array(alternatives));
    kept
}

/// `exclusiveMinimum` is a number, or in OpenAPI 3.0 a flag beside `minimum`.
fn exclusive(members: &Map<String, Value>, kept: &mut Map<String, Value>) {
    for (word, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match members.get(word) {
            Some(Value::Bool(true)) => {
                if let Some(number) = kept.remove(bound) {
                    kept.insert(word.to_owned(), number);
                }
            }
            Some(number @ Value::Number(_)) => {
                kept.insert(word.to_owned(), number.clone());
            }
            _ => {}
        }
    }
}
