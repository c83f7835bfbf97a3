//! Input descriptions: the same [`Field`]s validate a body and generate its JSON Schema, so the two cannot differ.
//!
//! This is for our own tools. Schemas written by sellers go through the `jsonschema` crate, with its limits.

use serde::Serialize;
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

/// The error for a body that is not valid JSON, with the path of the member it is in. Numbers out of range (`1e400`) count.
/// The message has line and column, but nothing of the body.
pub fn not_json(body: &[u8]) -> FieldError {
    use serde_path_to_error::Segment;
    // Parses a second time to find the path, so that only invalid bodies pay for it.
    let mut reader = serde_json::Deserializer::from_slice(body);
    let (path, error) = match serde_path_to_error::deserialize::<_, Value>(&mut reader) {
        Err(error) => (error.path().clone(), error.into_inner()),
        Ok(_) => match reader.end() {
            Err(error) => return FieldError::new("", format!("the body is not JSON: {error}")),
            Ok(()) => return FieldError::new("", "the body is not JSON"),
        },
    };
    // The path ends where a name is cut off.
    let names = path.iter().map_while(|segment| match segment {
        Segment::Map { key } => Some(key.clone()),
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Enum { variant } => Some(variant.clone()),
        Segment::Unknown => None,
    });
    FieldError::new(names.collect::<Vec<_>>().join("."), format!("the body is not JSON: {error}"))
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
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match Usdc::parse(&text) {
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

/// The JSON Schema (2020-12) of an object with these fields.
pub fn schema(fields: &[Field]) -> Value {
    object_schema(fields, true)
}

fn object_schema(fields: &[Field], open: bool) -> Value {
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), described(kind_schema(&field.kind), field.about))).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if !open {
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

/// The JSON Schema of a value.
pub fn kind_schema(kind: &Kind) -> Value {
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
        Kind::List { of, max } => json!({"type": "array", "items": kind_schema(of), "maxItems": max}),
        Kind::OneOrMore { of, max } => {
            let items = kind_schema(of);
            json!({"anyOf": [items, {"type": "array", "items": items, "minItems": 1, "maxItems": max}]})
        }
        // Unknown members are dropped, not refused, so every object's schema allows more.
        Kind::Object { fields, .. } => object_schema(fields, true),
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
    fn a_flag_may_be_a_boolean() {
        let input = json!({"code": "ABC", "flag": true});
        let read = validate(FIELDS, input.as_object().unwrap()).unwrap();
        assert_eq!(read["flag"], "true");
        assert_eq!(problems(json!({"code": "ABC", "kind": true})), ["kind"]);
    }
}
