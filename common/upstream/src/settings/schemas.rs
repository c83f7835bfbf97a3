//! What the settings need to know of an input schema: its members and their types.

use serde_json::{Map, Value, json};

/// Most references that are followed one after another.
const MAX_HOPS: usize = 8;

/// The members of an input schema that slots may name.
pub struct Members<'a> {
    root: &'a Value,
}

impl<'a> Members<'a> {
    pub fn of(root: &'a Value) -> Members<'a> {
        Members { root }
    }

    fn properties(&self) -> Option<&'a Map<String, Value>> {
        self.root["properties"].as_object()
    }

    pub fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.properties().into_iter().flat_map(|properties| properties.keys().map(String::as_str))
    }

    pub fn has(&self, name: &str) -> bool {
        self.properties().is_some_and(|properties| properties.contains_key(name))
    }

    /// Whether it allows members that it does not name.
    pub fn is_open(&self) -> bool {
        self.root.get("additionalProperties").is_some_and(|others| *others != json!(false))
            || self.root.get("patternProperties").is_some()
    }

    pub fn is_required(&self, name: &str) -> bool {
        requires(self.root, name)
    }

    /// The types that a member may have; `None` if the schema does not say it plainly.
    pub fn types(&self, name: &str) -> Option<Vec<&'a str>> {
        types(self.follow(self.properties()?.get(name)?))
    }

    /// Whether it may be an object or an array of something else than scalars.
    pub fn is_nested(&self, name: &str) -> bool {
        let Some(schema) = self.properties().and_then(|properties| properties.get(name)) else { return false };
        let schema = self.follow(schema);
        let has = |schema: &Value, kind: &str| types(schema).is_some_and(|types| types.contains(&kind));
        has(schema, "object") || {
            let items = self.follow(&schema["items"]);
            has(schema, "array") && (has(items, "object") || has(items, "array"))
        }
    }

    /// The schema that a `$ref` into the document leads to.
    fn follow(&self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..MAX_HOPS {
            let target = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
            match target.and_then(|pointer| self.root.pointer(pointer)) {
                Some(found) => schema = found,
                None => break,
            }
        }
        schema
    }

    /// The place of the price in the input: why a call could be without it, or of the wrong type.
    pub fn why_not_measured(&self, pointer: &str, types_allowed: &[&str]) -> Option<String> {
        let mut schema = self.root;
        for part in pointer.split('/').skip(1) {
            let name = part.replace("~1", "/").replace("~0", "~");
            // An item of an array, or a place that the schema does not describe.
            let properties = schema["properties"].as_object()?;
            if !requires(schema, &name) {
                return Some(format!("{name} must be required in input_schema: a call without it would have no price"));
            }
            schema = self.follow(properties.get(&name)?);
        }
        let found = types(schema)?;
        let wrong = found.iter().any(|kind| !types_allowed.contains(kind));
        wrong.then(|| format!("must lead to a member of type {}", types_allowed.join(" or ")))
    }
}

fn requires(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name))
}

fn types(schema: &Value) -> Option<Vec<&str>> {
    match &schema["type"] {
        Value::String(kind) => Some(vec![kind]),
        Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

/// Refuses members that the schema does not name, unless it says itself what becomes of them: a misspelt member would
/// otherwise be paid for and ignored, and one that the operator does not know of would be passed on.
pub fn close(schema: &mut Value) {
    let Some(root) = schema.as_object_mut() else { return };
    let composed = ["additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf", "if"];
    if !composed.iter().any(|word| root.contains_key(*word)) {
        root.insert("additionalProperties".to_owned(), json!(false));
    }
}
