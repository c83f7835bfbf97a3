use std::time::Duration;

use cpu_time::ThreadTime;

use serde_json::{Value, json};

use super::*;

/// Exponential work takes minutes to hours. Bounded work takes half a second of processor time without optimisation. So
/// this limit tells them apart on any machine, however busy.
const BOUND: Duration = Duration::from_secs(20);

fn places(schema: Value) -> Vec<String> {
    admit(&schema).err().unwrap_or_default().into_iter().map(|error| error.path).collect()
}

fn within<T>(bound: Duration, work: impl FnOnce() -> T) -> T {
    let begun = ThreadTime::now();
    let done = work();
    assert!(begun.elapsed() < bound, "took {:?}", begun.elapsed());
    done
}

#[test]
fn ordinary_schemas_are_taken() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.com/order",
        "type": "object",
        "properties": {
            "email": {"type": "string", "format": "email", "pattern": "^[^@\\s]+@[^@\\s]+$"},
            "lines": {"type": "array", "maxItems": 5, "items": {"$ref": "#/$defs/line"}},
            "$ref": {"type": "string", "description": "a property of this name is no reference"},
            "pattern": {"type": "string"},
        },
        "required": ["email"],
        "additionalProperties": false,
        "$defs": {"line": {"type": "object", "properties": {"sku": {"type": "string"}, "n": {"$ref": "#/$defs/n"}}},
                  "n": {"type": "integer", "minimum": 1}},
    });
    admit(&schema).unwrap();
    validate(&schema, &json!({"email": "a@b.c", "lines": [{"sku": "x", "n": 2}], "$ref": "x"})).unwrap();
    let errors = validate(&schema, &json!({"email": 5, "lines": [{"n": 0}], "b": 1, "c": 2})).unwrap_err();
    let mut places: Vec<&str> = errors.iter().map(|error| error.path.as_str()).collect();
    places.sort_unstable();
    assert_eq!(places, ["b", "c", "email", "lines.0.n"]);
    assert_eq!(validate(&schema, &json!({})).unwrap_err(), [FieldError::new("email", "is required")]);
    let secret = validate(&json!({"type": "object"}), &json!("a secret")).unwrap_err();
    assert!(!secret[0].message.contains("secret"), "{secret:?}");
}

/// The library's messages name keywords, which says nothing to a buyer, and little to a seller who misspelt a type.
#[test]
fn alternatives_are_told_in_our_words() {
    for (schema, place) in [
        (json!({"type": "objct"}), "type"),
        (json!({"type": 5}), "type"),
        (json!({"properties": {"a": {"type": ["string", "text"]}}}), "properties.a.type"),
    ] {
        assert_eq!(admit(&schema).unwrap_err(), [FieldError::new(place, TYPES)], "{schema}");
    }
    let forms = json!([{"type": "integer"}, {"minimum": 0}]);
    for (schema, value, expected) in [
        (json!({"anyOf": forms}), json!(-0.5), "matches none of the schemas of which it has to match one"),
        (json!({"oneOf": forms}), json!(-0.5), "matches none of the schemas of which it has to match one"),
        (json!({"oneOf": forms}), json!(1), "matches several of the schemas of which it has to match exactly one"),
        (json!({"not": {"type": "string"}}), json!("a secret"), "matches a schema that it must not match"),
    ] {
        assert_eq!(validate(&schema, &value).unwrap_err(), [FieldError::new("", expected)], "{schema}");
        let inside = json!({"properties": {"a": schema}});
        let errors = validate(&inside, &json!({"a": value})).unwrap_err();
        assert_eq!(errors, [FieldError::new("a", expected)], "{inside}");
    }
}

#[test]
fn unbounded_schemas_are_refused_with_their_place() {
    let doubling = |levels: usize| {
        let mut defs: serde_json::Map<String, Value> = (0..levels)
            .map(|n| {
                let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
                (format!("d{n}"), json!({"allOf": [next, next]}))
            })
            .collect();
        defs.insert(format!("d{levels}"), json!({"type": "string"}));
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    };
    let nested = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"items": inner}));
    let patterns = |count: usize| -> Value {
        let properties: serde_json::Map<String, Value> =
            (0..count).map(|n| (format!("p{n}"), json!({"pattern": "^a$"}))).collect();
        json!({"properties": properties})
    };
    let large = json!({"pattern": "^\\p{L}+$"});
    admit(&large).unwrap();
    for (name, schema, expected) in [
        ("not an object", json!([]), ""),
        ("remote", json!({"$ref": "http://169.254.169.254/latest"}), "$ref"),
        ("file", json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}), "properties.a.$ref"),
        ("relative", json!({"$ref": "other.json#/a"}), "$ref"),
        ("remote dialect", json!({"$schema": "http://127.0.0.1/schema"}), "$schema"),
        ("inner id", json!({"items": {"$id": "http://127.0.0.1/"}}), "items.$id"),
        ("itself", json!({"$ref": "#"}), ""),
        ("a tree", json!({"properties": {"child": {"$ref": "#"}}}), ""),
        (
            "each other",
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            "$defs.a",
        ),
        (
            "recursive anyOf",
            json!({"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": [{"items": {"$ref": "#/$defs/n"}}, {"type": "null"}]}}}),
            "$defs.n",
        ),
        ("nowhere", json!({"$ref": "#/$defs/none"}), "$ref"),
        ("no subschema", json!({"$ref": "#/examples/0", "examples": [{"$ref": "#"}]}), "$ref"),
        ("encoded", json!({"$ref": "#/%24defs/a", "$defs": {"a": {}}}), "$ref"),
        ("doubling", doubling(26), ""),
        ("doubling a little", doubling(12), ""),
        ("nesting", nested(9), "items.items.items.items.items.items.items.items.items"),
        ("size", json!({"description": "x".repeat(17_000)}), ""),
        ("patterns", patterns(33), ""),
        ("long pattern", json!({"pattern": "a".repeat(257)}), "pattern"),
        ("look-around", json!({"properties": {"a": {"pattern": "(?=a)b"}}}), "properties.a.pattern"),
        ("back-reference", json!({"pattern": "(x+x+)+\\1y"}), "pattern"),
        ("large when compiled", json!({"pattern": "(\\w{1,100}){1,100}"}), "pattern"),
        ("several that are large", json!({"anyOf": [large, large, large, large, large]}), ""),
        ("dynamic", json!({"$dynamicRef": "#a"}), "$dynamicRef"),
        ("unevaluated", json!({"unevaluatedProperties": false}), "unevaluatedProperties"),
        ("no schema", json!({"properties": {"a": 5}}), "properties.a"),
        ("no list", json!({"allOf": {}}), "allOf"),
        ("wrong keyword", json!({"type": "strange"}), "type"),
        ("what does not show", json!({"properties": {"a": {"description": "a\u{202e}b"}}}), ""),
        ("a name that does not show", json!({"properties": {"\u{200b}": {}}}), ""),
    ] {
        assert_eq!(within(BOUND, || places(schema)), [expected], "{name}");
    }
    let chain: serde_json::Map<String, Value> =
        (0..200).map(|n| (format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}))).collect();
    assert!(!places(json!({"$defs": chain})).is_empty(), "a long chain");
}

#[test]
fn admitted_schemas_validate_within_their_bound() {
    // Widest case: the most parts over the most values.
    let parts: Vec<Value> = (0..600).map(|_| json!({"type": "number"})).collect();
    let wide = json!({"items": {"allOf": parts}});
    let many = json!(vec![0; 32_000]);
    admit(&wide).unwrap();
    within(BOUND, || validate(&wide, &many)).unwrap();
    // The same with every value wrong: one error, not a hundred million.
    let wrong = json!({"items": {"anyOf": (0..600).map(|_| json!({"type": "string"})).collect::<Vec<_>>()}});
    admit(&wrong).unwrap();
    assert_eq!(within(BOUND, || validate(&wrong, &many)).unwrap_err().len(), 1);
    let chosen = json!({"items": {"enum": (0..3_000).collect::<Vec<_>>()}});
    admit(&chosen).unwrap();
    within(BOUND, || validate(&chosen, &json!(vec![2_999; 12_000]))).unwrap();
    // Patterns that explode with backtracking, and patterns that keep many states alive without it.
    let catastrophic = json!({"pattern": "^(a+)+$"});
    admit(&catastrophic).unwrap();
    let long = json!(format!("{}!", "a".repeat(60_000)));
    assert!(within(BOUND, || validate(&catastrophic, &long)).is_err());
    let states = json!({"allOf": (0..32).map(|n| json!({"not": {"pattern": format!("1[01]{{{}}}[^01]", 50 + n % 8)}}))
        .collect::<Vec<_>>()});
    admit(&states).unwrap();
    let bits: String = (0..7_500u32)
        .flat_map(|n| {
            let byte = sha256(&n.to_be_bytes())[0];
            (0..8).map(move |bit| if byte >> bit & 1 == 0 { '0' } else { '1' })
        })
        .collect();
    within(BOUND, || validate(&states, &json!(bits))).unwrap();
    let large = json!({"allOf": (200..204).map(|n| json!({"not": {"pattern": format!("1[01]{{{n}}}[^01]")}}))
        .collect::<Vec<_>>()});
    admit(&large).unwrap();
    within(BOUND, || validate(&large, &json!(bits))).unwrap();
    let unique = json!({"uniqueItems": true});
    let distinct = json!((0..10_000).collect::<Vec<_>>());
    within(BOUND, || validate(&unique, &distinct)).unwrap();
}

#[test]
fn values_that_are_too_large_or_too_deep_are_refused() {
    let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    validate(&json!({}), &deep(MAX_VALUE_DEPTH - 1)).unwrap();
    assert!(validate(&json!({}), &deep(MAX_VALUE_DEPTH)).is_err());
    assert!(validate(&json!({}), &json!("x".repeat(MAX_VALUE_BYTES))).is_err());
}
