//! Input descriptions: the same [`Field`]s validate a body and generate its JSON Schema, so the two cannot differ.
//!
//! This is for our own tools. Schemas written by sellers go through the `jsonschema` crate, with its limits.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::map::Entry;
use serde_json::{Map, Value, json};

use crate::money::Usdc;

/// A member of an object.
pub struct Field {
    pub name: &'static str,
    pub required: bool,
    pub kind: Kind,
    pub about: &'static str,
}

/// The type of a value.
pub enum Kind {
    /// A string of `min..=max` Unicode characters, optionally with a format.
    Text { min: usize, max: usize, format: Option<&'static Format> },
    /// A whole number in `min..=max`.
    Integer { min: i64, max: i64 },
    /// A number in a range.
    Number(Range),
    /// An amount of money, as a decimal string or a number. The result is a string with six decimals.
    Amount { min: Usdc, max: Usdc },
    /// `true` or `false`.
    Bool,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// An array of at most `max` items.
    List { of: &'static Kind, max: usize },
    /// One item, or an array of 1 to `max` items. The result is an array.
    OneOrMore { of: &'static Kind, max: usize },
    /// An object with these members. Other members are dropped, or kept if `open`.
    Object { fields: &'static [Field], open: bool },
    /// Any value. Its tool checks it against the whole JSON Schema of the input, of which this is the part for the value.
    Json(&'static Value),
}

/// Bounds of a number. `above` is exclusive, `min` and `max` are inclusive.
#[derive(Default)]
pub struct Range {
    pub above: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

/// A rule for text beyond its length: as a function, and as JSON Schema.
pub struct Format {
    /// JSON Schema `format`, if there is one.
    pub name: Option<&'static str>,
    /// JSON Schema `pattern`, if one can express the rule.
    pub pattern: Option<&'static str>,
    pub matches: fn(&str) -> bool,
    /// The error: "must be …".
    pub message: &'static str,
}

/// For what is searched for: spaces and pictures find nothing, and would be charged.
pub static A_WORD: Format = Format {
    name: None,
    pattern: None,
    matches: |text| text.chars().any(char::is_alphanumeric),
    message: "must have a letter or a digit",
};

/// One problem of a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldError {
    /// Dotted path from the body's root, such as `valueTag.amount`.
    pub path: String,
    pub message: String,
}

impl FieldError {
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> FieldError {
        FieldError { path: path.into(), message: message.into() }
    }
}

impl Field {
    pub const fn required(name: &'static str, kind: Kind, about: &'static str) -> Field {
        Field { name, required: true, kind, about }
    }

    pub const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Field {
        Field { name, required: false, kind, about }
    }
}

/// Reads a body's JSON, as `serde_json` does, and refuses a member that is said twice, at every depth: of two caps, the owner
/// may have meant the other.
pub fn parse(body: &[u8]) -> Result<Value, FieldError> {
    serde_json::from_slice(body).map(|SaidOnce(value)| value).map_err(|_| not_json(body))
}

/// A JSON value whose objects have no member twice.
struct SaidOnce(Value);

impl<'de> Deserialize<'de> for SaidOnce {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<SaidOnce, D::Error> {
        reader.deserialize_any(Reader).map(SaidOnce)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(SaidOnce(item)) = items.next_element()? {
            read.push(item);
        }
        Ok(read.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            match read.entry(name) {
                Entry::Vacant(place) => {
                    let SaidOnce(value) = members.next_value()?;
                    place.insert(value);
                }
                // Fails as the member's value, so that the error's path ends with its name.
                Entry::Occupied(_) => return members.next_value_seed(Twice),
            }
        }
        Ok(read.into())
    }
}

/// The value of a member that was there before.
struct Twice;

impl<'de> DeserializeSeed<'de> for Twice {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, _: D) -> Result<Value, D::Error> {
        Err(D::Error::custom("is said twice"))
    }
}

/// The error for a body that is not valid JSON or says a member twice, with the path of the member. Numbers out of range
/// (`1e400`) count. The message has line and column, but nothing of the body.
fn not_json(body: &[u8]) -> FieldError {
    use serde_path_to_error::Segment;
    // Parses a second time to find the path, so that only invalid bodies pay for it.
    let mut reader = serde_json::Deserializer::from_slice(body);
    let (path, error) = match serde_path_to_error::deserialize::<_, SaidOnce>(&mut reader) {
        Err(error) => (error.path().clone(), error.into_inner()),
        Ok(_) => match reader.end() {
            Err(error) => return FieldError::new("", format!("the body is not JSON: {error}")),
            Ok(()) => return FieldError::new("", "the body is not JSON"),
        },
    };
    // The path ends where a name is cut off.
    let names = path.iter().map_while(|segment| match segment {
        Segment::Map { key } => Some(key.chars().take(MAX_SHOWN_NAME).collect()),
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Enum { variant } => Some(variant.clone()),
        Segment::Unknown => None,
    });
    let path = names.collect::<Vec<String>>().join(".");
    // It is JSON, and only `SaidOnce` refuses it.
    if error.is_data() {
        return FieldError::new(path, "is said twice");
    }
    // The member is only the place: its name stands before the message, as if it were what is wrong.
    let what = if path.is_empty() { "the body is not JSON" } else { "is where the body stops being JSON" };
    FieldError::new(path, format!("{what}: {error}"))
}

/// Deepest nesting of a body. JSON parsers stop at 128, and a body may be embedded in other responses.
pub const MAX_BODY_DEPTH: usize = 64;

/// Refuses a body that is nested too deep; the errors name the members.
pub fn check_depth(body: &Map<String, Value>) -> Result<(), Vec<FieldError>> {
    let deep = body.iter().filter(|(_, value)| depth(value) >= MAX_BODY_DEPTH);
    let wrong: Vec<_> =
        deep.map(|(name, _)| FieldError::new(name, format!("is nested deeper than {MAX_BODY_DEPTH}"))).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// Nesting depth of a value; a scalar has 1.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 1,
    }
}

/// Validates a body and keeps only the members that are fields. Reports every problem.
pub fn validate(fields: &[Field], body: &Map<String, Value>) -> Result<Map<String, Value>, Vec<FieldError>> {
    let mut errors = Vec::new();
    let kept = check_object(fields, false, body, "", &mut errors);
    if errors.is_empty() { Ok(kept) } else { Err(errors) }
}

/// What an unknown member is told.
pub const UNKNOWN: &str = "is not a known member";
/// Most unknown members that are named.
const MAX_UNKNOWN: usize = 50;
/// Longest part of an unknown name in an error, in characters: the name is the caller's text.
const MAX_SHOWN_NAME: usize = 64;
/// The error lists the known names up to this many.
const MAX_LISTED: usize = 12;

/// Validates like [`validate`], and refuses members that are not fields, at every depth, except in objects that are `open`.
/// For bodies that set something: a misspelt member must not pass as one that was left out.
/// `also`: members that answers have beside those of requests; they are accepted and left out.
pub fn validate_all(
    fields: &[Field],
    also: &[&str],
    body: &Map<String, Value>,
) -> Result<Map<String, Value>, Vec<FieldError>> {
    let mut errors = unknown(fields, also, body);
    match validate(fields, body) {
        Ok(kept) if errors.is_empty() => Ok(kept),
        Ok(_) => Err(errors),
        Err(wrong) => {
            errors.extend(wrong);
            Err(errors)
        }
    }
}

/// The members of a body that are not fields, by path, at every depth. Names the first 50.
/// `also`: as for [`validate_all`].
pub fn unknown(fields: &[Field], also: &[&str], body: &Map<String, Value>) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    find_unknown(fields, also, body, "", &mut wrong);
    wrong
}

/// [`unknown`] for readers of their own, at one depth. `known`: the names of requests, which the error lists; `path`: of
/// the object, empty for the body.
pub fn only(known: &[&str], also: &[&str], body: &Map<String, Value>, path: &str) -> Vec<FieldError> {
    let others = body.keys().filter(|name| !known.contains(&name.as_str()) && !also.contains(&name.as_str()));
    others.take(MAX_UNKNOWN).map(|name| FieldError::new(member(path, name), not_known(known.iter().copied()))).collect()
}

fn find_unknown(fields: &[Field], also: &[&str], object: &Map<String, Value>, path: &str, wrong: &mut Vec<FieldError>) {
    for (name, value) in object {
        if wrong.len() >= MAX_UNKNOWN {
            return;
        }
        match fields.iter().find(|field| field.name == name.as_str()) {
            Some(field) => find_unknown_within(&field.kind, value, &member(path, name), wrong),
            None if also.contains(&name.as_str()) => {}
            None => {
                let message = not_known(fields.iter().map(|field| field.name));
                wrong.push(FieldError::new(member(path, name), message));
            }
        }
    }
}

fn find_unknown_within(kind: &Kind, value: &Value, path: &str, wrong: &mut Vec<FieldError>) {
    match (kind, value) {
        (Kind::Object { fields, open: false }, Value::Object(object)) => find_unknown(fields, &[], object, path, wrong),
        // What is beyond `max` is refused anyway.
        (Kind::List { of, max } | Kind::OneOrMore { of, max }, Value::Array(items)) => {
            for (index, item) in items.iter().take(*max).enumerate() {
                find_unknown_within(of, item, &format!("{path}.{index}"), wrong);
            }
        }
        (Kind::OneOrMore { of, .. }, one) => find_unknown_within(of, one, path, wrong),
        _ => {}
    }
}

/// The path of a member, with the name cut to [`MAX_SHOWN_NAME`].
fn member(path: &str, name: &str) -> String {
    let shown: String = name.chars().take(MAX_SHOWN_NAME).collect();
    if path.is_empty() { shown } else { format!("{path}.{shown}") }
}

fn not_known<'a>(known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    match known.len() {
        0 => format!("{UNKNOWN}; nothing is expected here"),
        1..=MAX_LISTED => format!("{UNKNOWN}; known are {}", known.join(", ")),
        _ => UNKNOWN.to_owned(),
    }
}

fn check_object(
    fields: &[Field],
    open: bool,
    object: &Map<String, Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) -> Map<String, Value> {
    let mut kept = if open { object.clone() } else { Map::new() };
    for field in fields {
        let path = if path.is_empty() { field.name.to_owned() } else { format!("{path}.{}", field.name) };
        match object.get(field.name) {
            None if field.required => errors.push(FieldError::new(path, "is required")),
            None => {}
            Some(value) => {
                if let Some(value) = check(&field.kind, value, &path, errors) {
                    kept.insert(field.name.to_owned(), value);
                }
            }
        }
    }
    kept
}

fn check(kind: &Kind, value: &Value, path: &str, errors: &mut Vec<FieldError>) -> Option<Value> {
    let mut wrong = |message: String| {
        errors.push(FieldError::new(path, message));
        None
    };
    match (kind, value) {
        (Kind::Text { min, max, format }, Value::String(text)) => {
            let length = text.chars().count();
            if length < *min || length > *max {
                return wrong(if min == max {
                    format!("must have exactly {min} characters, has {length}")
                } else {
                    format!("must have {min} to {max} characters, has {length}")
                });
            }
            match format {
                Some(format) if !(format.matches)(text) => wrong(format.message.to_owned()),
                _ => Some(value.clone()),
            }
        }
        (Kind::Text { .. }, _) => wrong("must be a string".to_owned()),
        (Kind::Integer { min, max }, Value::Number(number)) => {
            // In JSON Schema, 2003.0 is an integer.
            let integer = number.as_i64().or_else(|| whole(number.as_f64()?));
            match integer {
                Some(integer) if (*min..=*max).contains(&integer) => Some(Value::from(integer)),
                _ => wrong(format!("must be a whole number from {min} to {max}")),
            }
        }
        (Kind::Amount { min, max }, Value::Number(_) | Value::String(_)) => {
            match value.as_str().map_or_else(|| Usdc::parse(&value.to_string()), Usdc::parse_plain) {
                Ok(amount) if amount < *min || amount > *max => wrong(format!("must be from {min} to {max}")),
                Ok(amount) => Some(Value::from(amount.to_string())),
                Err(error) => wrong(error.to_string()),
            }
        }
        (Kind::Amount { .. }, _) => wrong("must be a decimal number, as a number or a string".to_owned()),
        (Kind::Integer { .. }, _) => wrong("must be a whole number".to_owned()),
        (Kind::Number(range), Value::Number(number)) => {
            let fits = number.as_f64().is_some_and(|number| range.contains(number));
            if fits { Some(value.clone()) } else { wrong(range.message()) }
        }
        (Kind::Number(_), _) => wrong("must be a number".to_owned()),
        (Kind::Bool, Value::Bool(_)) => Some(value.clone()),
        (Kind::Bool, _) => wrong("must be true or false".to_owned()),
        (Kind::Choice(choices), Value::String(text)) if choices.contains(&text.as_str()) => Some(value.clone()),
        // Models write flags as booleans, whatever the schema says.
        (Kind::Choice(choices), Value::Bool(flag)) if choices.contains(&flag.to_string().as_str()) => {
            Some(Value::String(flag.to_string()))
        }
        (Kind::Choice(choices), _) => wrong(format!("must be one of {}", choices.join(", "))),
        (Kind::List { of, max }, Value::Array(items)) => {
            if items.len() > *max {
                return wrong(format!("must have at most {max} items, has {}", items.len()));
            }
            let kept = items
                .iter()
                .enumerate()
                .filter_map(|(index, item)| check(of, item, &format!("{path}.{index}"), errors));
            Some(Value::Array(kept.collect()))
        }
        (Kind::List { .. }, _) => wrong("must be an array".to_owned()),
        (Kind::OneOrMore { of, max }, Value::Array(items)) => {
            if items.is_empty() || items.len() > *max {
                return wrong(format!("must have 1 to {max} items, has {}", items.len()));
            }
            let kept = items
                .iter()
                .enumerate()
                .filter_map(|(index, item)| check(of, item, &format!("{path}.{index}"), errors));
            Some(Value::Array(kept.collect()))
        }
        (Kind::OneOrMore { of, .. }, one) => check(of, one, path, errors).map(|one| Value::Array(vec![one])),
        (Kind::Object { fields, open }, Value::Object(object)) => {
            Some(Value::Object(check_object(fields, *open, object, path, errors)))
        }
        (Kind::Object { .. }, _) => wrong("must be an object".to_owned()),
        (Kind::Json(_), _) => Some(value.clone()),
    }
}

fn whole(number: f64) -> Option<i64> {
    // Above 2^53, a float does not represent every whole number.
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then_some(number as i64)
}

impl Range {
    fn contains(&self, number: f64) -> bool {
        self.above.is_none_or(|above| number > above)
            && self.min.is_none_or(|min| number >= min)
            && self.max.is_none_or(|max| number <= max)
    }

    fn message(&self) -> String {
        let mut bounds = Vec::new();
        bounds.extend(self.above.map(|above| format!("above {above}")));
        bounds.extend(self.min.map(|min| format!("at least {min}")));
        bounds.extend(self.max.map(|max| format!("at most {max}")));
        format!("must be a number {}", bounds.join(" and "))
    }
}

/// The JSON Schema (2020-12) of an object with these fields, for [`validate`]: it allows other members everywhere.
pub fn schema(fields: &[Field]) -> Value {
    object_schema(fields, false)
}

/// The JSON Schema of an object with these fields, for [`validate_all`]: it allows other members only in objects that are
/// `open`.
pub fn closed_schema(fields: &[Field]) -> Value {
    object_schema(fields, true)
}

fn object_schema(fields: &[Field], closed: bool) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| (field.name.to_owned(), described(schema_of(&field.kind, closed), field.about)))
        .collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if closed {
        schema["additionalProperties"] = json!(false);
    }
    schema
}

fn described(mut schema: Value, about: &str) -> Value {
    if !about.is_empty() {
        schema["description"] = json!(about);
    }
    schema
}

/// The JSON Schema of a value, for [`validate`].
pub fn kind_schema(kind: &Kind) -> Value {
    schema_of(kind, false)
}

fn schema_of(kind: &Kind, closed: bool) -> Value {
    match kind {
        Kind::Text { min, max, format } => {
            let mut schema = json!({"type": "string", "minLength": min, "maxLength": max});
            if let Some(name) = format.and_then(|format| format.name) {
                schema["format"] = json!(name);
            }
            if let Some(pattern) = format.and_then(|format| format.pattern) {
                schema["pattern"] = json!(pattern);
            }
            schema
        }
        Kind::Integer { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Kind::Number(range) => {
            let mut schema = json!({"type": "number"});
            for (word, bound) in [("exclusiveMinimum", range.above), ("minimum", range.min), ("maximum", range.max)] {
                if let Some(bound) = bound {
                    schema[word] = json!(bound);
                }
            }
            schema
        }
        Kind::Amount { min, max } => json!({"anyOf": [
            {"type": "number", "minimum": min.to_number(), "maximum": max.to_number()},
            {"type": "string", "pattern": r"^[0-9]+(\.[0-9]{1,6})?$", "description": format!("USDC, from {min} to {max}")},
        ]}),
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Choice(choices) => json!({"type": "string", "enum": choices}),
        Kind::List { of, max } => json!({"type": "array", "items": schema_of(of, closed), "maxItems": max}),
        Kind::OneOrMore { of, max } => {
            let items = schema_of(of, closed);
            json!({"anyOf": [items, {"type": "array", "items": items, "minItems": 1, "maxItems": max}]})
        }
        Kind::Object { fields, open } => object_schema(fields, closed && !open),
        Kind::Json(schema) => (*schema).clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPPER: Format = Format {
        name: None,
        pattern: Some("^[A-Z]*$"),
        matches: |text| text.bytes().all(|byte| byte.is_ascii_uppercase()),
        message: "must be upper-case letters",
    };

    const FIELDS: &[Field] = &[
        Field::required("code", Kind::Text { min: 2, max: 3, format: Some(&UPPER) }, "a code"),
        Field::optional("year", Kind::Integer { min: 1981, max: 2100 }, "a year"),
        Field::optional("share", Kind::Number(Range { above: Some(0.0), min: None, max: Some(1.0) }), "a share"),
        Field::optional("kind", Kind::Choice(&["a", "b"]), "a kind"),
        Field::optional("flag", Kind::Choice(&["true", "false"]), "a flag"),
        Field::optional("names", Kind::List { of: &Kind::Text { min: 1, max: 5, format: None }, max: 2 }, "names"),
        Field::optional(
            "open",
            Kind::Object { fields: &[Field::optional("n", Kind::Integer { min: 0, max: 9 }, "n")], open: true },
            "open",
        ),
    ];

    fn problems(body: Value) -> Vec<String> {
        match validate(FIELDS, body.as_object().unwrap()) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.into_iter().map(|error| error.path).collect(),
        }
    }

    #[test]
    fn known_members_are_kept_and_others_dropped() {
        let body = json!({"code": "AB", "year": 2003.0, "extra": 1, "open": {"n": 1, "more": [1]}, "names": []});
        let kept = validate(FIELDS, body.as_object().unwrap()).unwrap();
        assert_eq!(
            Value::Object(kept),
            json!({"code": "AB", "year": 2003, "open": {"n": 1, "more": [1]}, "names": []})
        );
    }

    #[test]
    fn unknown_members_are_named_at_every_depth() {
        const PART: &Kind =
            &Kind::Object { fields: &[Field::optional("n", Kind::Integer { min: 0, max: 9 }, "n")], open: false };
        const OPEN: Kind =
            Kind::Object { fields: &[Field::optional("n", Kind::Integer { min: 0, max: 9 }, "n")], open: true };
        const FIELDS: &[Field] = &[
            Field::optional("part", Kind::Object { fields: &[Field::optional("n", Kind::Bool, "n")], open: false }, ""),
            Field::optional("parts", Kind::List { of: PART, max: 2 }, ""),
            Field::optional("some", Kind::OneOrMore { of: PART, max: 2 }, ""),
            Field::optional("free", OPEN, ""),
        ];
        let refused = |body: Value| -> Vec<String> {
            match validate_all(FIELDS, &["seen_at"], body.as_object().unwrap()) {
                Ok(_) => Vec::new(),
                Err(errors) => errors.into_iter().map(|error| error.path).collect(),
            }
        };
        for (body, paths) in [
            (json!({"part": {"n": true}, "parts": [{"n": 1}], "some": {"n": 1}, "free": {"more": {"x": 1}}}), vec![]),
            (json!({"seen_at": 1}), vec![]),
            (json!({"part": {"seen_at": 1}}), vec!["part.seen_at"]),
            (json!({"prat": null}), vec!["prat"]),
            (json!({"part": {"m": 1}}), vec!["part.m"]),
            (json!({"parts": [{"n": 1}, {"m": 1}]}), vec!["parts.1.m"]),
            (json!({"some": {"m": 1}}), vec!["some.m"]),
            (json!({"some": [{"n": 1}, {"m": 1}]}), vec!["some.1.m"]),
            // What is unknown and what is wrong are told at once.
            (json!({"prat": 1, "part": 1}), vec!["prat", "part"]),
        ] {
            assert_eq!(refused(body.clone()), paths, "{body}");
        }
        let kept = validate_all(FIELDS, &["seen_at"], json!({"seen_at": 1}).as_object().unwrap());
        assert_eq!(kept, Ok(Map::new()), "members of answers are left out");

        let many: Map<String, Value> = (0..10_000).map(|n| (format!("{n}{}", "ä".repeat(100)), json!(n))).collect();
        for errors in [unknown(FIELDS, &[], &many), only(&["part"], &[], &many, "at")] {
            assert_eq!(errors.len(), 50);
            assert!(errors.iter().all(|error| error.path.chars().count() <= 67), "{errors:?}");
        }
        let other = json!({"seen_at": 1, "x": 1});
        assert_eq!(
            only(&["part", "parts"], &["seen_at"], other.as_object().unwrap(), "a"),
            [FieldError::new("a.x", "is not a known member; known are part, parts")]
        );

        let schema = closed_schema(FIELDS);
        let properties = &schema["properties"];
        for closed in [
            &schema,
            &properties["part"],
            &properties["parts"]["items"],
            &properties["some"]["anyOf"][0],
            &properties["some"]["anyOf"][1]["items"],
        ] {
            assert_eq!(closed["additionalProperties"], false, "{closed}");
        }
        assert!(properties["free"].get("additionalProperties").is_none());
        assert!(!super::schema(FIELDS).to_string().contains("additionalProperties"));
    }

    #[test]
    fn one_item_counts_as_a_list_of_one() {
        const CODE: Kind = Kind::Text { min: 2, max: 2, format: Some(&UPPER) };
        const FIELDS: &[Field] = &[Field::required("codes", Kind::OneOrMore { of: &CODE, max: 2 }, "codes")];
        let read = |body: Value| validate(FIELDS, body.as_object().unwrap()).map(Value::Object);
        assert_eq!(read(json!({"codes": "AB"})), Ok(json!({"codes": ["AB"]})));
        assert_eq!(read(json!({"codes": ["AB", "CD"]})), Ok(json!({"codes": ["AB", "CD"]})));
        for (body, path) in [
            (json!({"codes": "ab"}), "codes"),
            (json!({"codes": ["AB", "c"]}), "codes.1"),
            (json!({"codes": []}), "codes"),
            (json!({"codes": ["AB", "AB", "AB"]}), "codes"),
            (json!({"codes": 1}), "codes"),
        ] {
            assert_eq!(read(body).unwrap_err()[0].path, path);
        }
        assert_eq!(schema(FIELDS)["properties"]["codes"]["anyOf"][1]["maxItems"], 2);
    }

    #[test]
    fn invalid_json_is_reported_at_its_member() {
        for (body, path, at) in [
            (r#"{"daily": 1e400}"#, "daily", "line 1 column 15"),
            ("{\"tools\":\n {\"web_read\": -1e999}}", "tools.web_read", "line 2 column 20"),
            (r#"{"names": ["a", b]}"#, "names.1", "line 1 column 17"),
            (r#"{"code": "AB"} x"#, "", "line 1 column 16"),
            ("{", "", "line 1 column 1"),
        ] {
            assert!(serde_json::from_str::<Value>(body).is_err(), "{body}");
            let error = not_json(body.as_bytes());
            assert_eq!(error.path, path, "{error:?}");
            assert!(error.message.ends_with(at), "{body}: {}", error.message);
        }
        assert_eq!(not_json(b"{\"a\": \"\xff\"}").path, "a");
    }

    #[test]
    fn a_member_that_is_said_twice_is_refused_at_every_depth() {
        let long = "ä".repeat(100);
        for (body, path) in [
            (r#"{"daily": 1, "daily": 5}"#, "daily"),
            (r#"{"daily": 1, "daily": 1}"#, "daily"),
            (r#"{"daily": 1, "d\u0061ily": null}"#, "daily"),
            (r#"{"tools": {"web_read": 1, "web_read": 5}}"#, "tools.web_read"),
            (r#"{"names": [{"a": 1}, {"a": 1, "b": [], "a": 2}]}"#, "names.1.a"),
            (r#"{"": 1, "": 2}"#, ""),
            (format!(r#"{{"{long}": 1, "{long}": 2}}"#).as_str(), &long[..128]),
        ] {
            let error = parse(body.as_bytes()).unwrap_err();
            assert_eq!(error, FieldError::new(path, "is said twice"), "{body}");
        }
        // What follows is not looked at.
        assert_eq!(parse(br#"{"a": 1, "a": x"#).unwrap_err().message, "is said twice");
        // Everything else is read as before.
        let numbers = "[0, -0, 1, -1, 1.0, 0.1, 1e3, -2.5E-3, 9007199254740993, 18446744073709551615, \
                       18446744073709551616, -9223372036854775808, -9223372036854775809, 1e308, 1e-400]";
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        for body in [
            numbers,
            r#"{"a": {"a": {"b": [null, true, "\u00e4\n", ""]}}, "b": {}}"#,
            r#"{"$serde_json::private::Number": "1", "other": 1}"#,
            "\"text\"",
            "null",
            "",
            "{\"a\": 1,}",
            "1e400",
            &nested(127),
            &nested(128),
        ] {
            let as_before = serde_json::from_str::<Value>(body);
            assert_eq!(parse(body.as_bytes()).ok(), as_before.ok(), "{body}");
        }
    }

    #[test]
    fn every_problem_is_reported_with_its_path() {
        assert_eq!(problems(json!({})), ["code"]);
        assert_eq!(
            problems(
                json!({"code": "ab", "year": 1980, "share": 0, "kind": "c", "flag": 1, "names": ["", "x"], "open": {"n": "1"}})
            ),
            ["code", "year", "share", "kind", "flag", "names.0", "open.n"]
        );
        assert_eq!(
            problems(json!({"code": 5, "year": 2000.5, "share": "x", "kind": 1, "names": ["a", "b", "c"], "open": []}))
                .len(),
            6
        );
        assert_eq!(problems(json!({"code": null})), ["code"]);
    }

    #[test]
    fn amounts_are_accepted_as_their_schema_says() {
        const FIELDS: &[Field] =
            &[Field::required("cap", Kind::Amount { min: Usdc::ZERO, max: Usdc::from_micro(9_000_000) }, "a cap")];
        let read =
            |cap: Value| validate(FIELDS, json!({"cap": cap}).as_object().unwrap()).map(|kept| kept["cap"].clone());
        for good in [json!("2.5"), json!(2.5), json!("2.500000")] {
            assert_eq!(read(good), Ok(json!("2.500000")));
        }
        for bad in ["1e0", "2.5000000", ".5", "10", "-1", ""] {
            assert_eq!(read(json!(bad)).unwrap_err()[0].path, "cap", "{bad}");
        }
    }

    #[test]
    fn a_flag_may_be_a_boolean() {
        let input = json!({"code": "ABC", "flag": true});
        let read = validate(FIELDS, input.as_object().unwrap()).unwrap();
        assert_eq!(read["flag"], "true");
        assert_eq!(problems(json!({"code": "ABC", "kind": true})), ["kind"]);
    }
}
