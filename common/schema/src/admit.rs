//! Admission of sellers' schemas. Anything whose cost cannot be bounded is refused here. The work of an admitted schema
//! is at most its weight times the number of values in the input (see [`super`]).

use std::collections::HashMap;

use base::input::FieldError;
use serde_json::{Map, Value, json};

/// Largest schema, in bytes of JSON.
pub const MAX_BYTES: usize = 16 * 1024;
/// Most `$ref` keywords in the text.
const MAX_REFS: usize = 64;
/// Most subschemas and keyword values that one value is checked against, with every `$ref` followed.
const MAX_WEIGHT: usize = 4_000;
/// Deepest nesting of subschemas in the text.
const MAX_NESTING: usize = 8;
/// Most patterns, both in the text and with every `$ref` followed. A pattern that is large when compiled counts as
/// eight. One pattern takes up to 50 ms on a text of 64 KB.
const MAX_PATTERNS: usize = 32;
const SMALL_PATTERN: usize = 8 * 1024;
const LARGE_COUNTS: usize = 8;
/// Longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 256;
/// Most problems listed.
const MAX_PROBLEMS: usize = 20;

/// Keywords that hold one subschema, a list of them, or an object of them.
const ONE: &[&str] =
    &["additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames", "contentSchema"];
const LIST: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
const NAMED: &[&str] = &["properties", "patternProperties", "dependentSchemas"];
/// Subschemas without effect until a `$ref` names them.
const SHELVES: &[&str] = &["$defs", "definitions"];
/// Keywords that change the meaning of `$ref`, or whose cost depends on the input.
const REFUSED: &[&str] = &[
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
    "$vocabulary",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
    "dependencies",
];

/// The cost of an admitted schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Subschemas and keyword values that one value is checked against.
    pub weight: usize,
    pub patterns: usize,
}

/// One subschema and the subschemas it leads to.
#[derive(Default)]
struct Node {
    own: Cost,
    /// Pointers of its subschemas and of its `$ref`.
    next: Vec<String>,
    /// The pointer of its `$ref`.
    reference: Option<String>,
}

/// Checks a schema without compiling it. Problems are named by dotted paths from the schema's root.
pub fn read(schema: &Value) -> Result<Cost, Vec<FieldError>> {
    let mut walk = Walk::default();
    let bytes = schema.to_string().len();
    if bytes > MAX_BYTES {
        walk.wrong("", format!("must have at most {MAX_BYTES} bytes, has {bytes}"));
        return Err(walk.problems);
    }
    if !schema.is_object() {
        walk.wrong("", "must be an object");
        return Err(walk.problems);
    }
    walk.subschema(schema, "", 0);
    walk.lists("$ref", walk.nodes.values().filter(|node| node.reference.is_some()).count(), MAX_REFS);
    walk.lists("patterns", walk.patterns, MAX_PATTERNS);
    let dangling: Vec<(String, String)> = walk
        .nodes
        .iter()
        .filter_map(|(place, node)| Some((place.clone(), node.reference.clone()?)))
        .filter(|(_, target)| !walk.nodes.contains_key(target))
        .collect();
    for (place, target) in dangling {
        walk.wrong(&format!("{place}/$ref"), format!("#{target} is not a subschema of this schema"));
    }
    if walk.problems.is_empty() {
        let mut known = HashMap::new();
        let cost = walk.expand("", &mut known);
        match cost {
            Err(place) => walk.wrong(&place, "refers back to itself; recursive schemas are not supported"),
            Ok(cost) if cost.weight > MAX_WEIGHT => {
                walk.wrong("", format!("has more than {MAX_WEIGHT} parts once every $ref is followed"));
            }
            Ok(cost) if cost.patterns > MAX_PATTERNS => {
                walk.wrong("", format!("has more than {MAX_PATTERNS} patterns once every $ref is followed (a large one counts as eight)"));
            }
            Ok(cost) => return Ok(cost),
        }
    }
    walk.problems.truncate(MAX_PROBLEMS);
    Err(walk.problems)
}

#[derive(Default)]
struct Walk {
    nodes: HashMap<String, Node>,
    problems: Vec<FieldError>,
    /// Patterns in the text.
    patterns: usize,
}

impl Walk {
    fn wrong(&mut self, pointer: &str, message: impl Into<String>) {
        self.problems.push(FieldError::new(dotted(pointer), message));
    }

    fn lists(&mut self, what: &str, count: usize, most: usize) {
        if count > most {
            self.wrong("", format!("has {count} {what}; {most} are allowed"));
        }
    }

    fn subschema(&mut self, schema: &Value, place: &str, nesting: usize) {
        let schema = match schema {
            Value::Object(schema) => schema,
            Value::Bool(_) => {
                self.nodes.insert(place.to_owned(), Node { own: Cost { weight: 1, patterns: 0 }, ..Node::default() });
                return;
            }
            _ => return self.wrong(place, "must be a schema: an object or a boolean"),
        };
        if nesting > MAX_NESTING {
            return self.wrong(place, format!("is nested deeper than {MAX_NESTING} subschemas"));
        }
        let mut node = Node::default();
        node.own.weight = 1;
        for (word, value) in schema {
            let at = format!("{place}/{}", escaped(word));
            match word.as_str() {
                "$ref" => node.reference = self.reference(value, &at),
                "$id" if place.is_empty() => {}
                "$id" => self.wrong(&at, "is only allowed at the root"),
                "$schema" => self.dialect(value, place, &at),
                "pattern" => {
                    node.own.patterns += self.pattern(value.as_str().unwrap_or_default(), &at);
                }
                word if REFUSED.contains(&word) => self.wrong(&at, "is not supported"),
                word if ONE.contains(&word) => self.child(value, at, nesting, &mut node),
                word if LIST.contains(&word) => match value.as_array() {
                    Some(items) => items
                        .iter()
                        .enumerate()
                        .for_each(|(index, item)| self.child(item, format!("{at}/{index}"), nesting, &mut node)),
                    None => self.wrong(&at, "must be an array of schemas"),
                },
                word if NAMED.contains(&word) || SHELVES.contains(&word) => match value.as_object() {
                    Some(named) => {
                        if word == "patternProperties" {
                            node.own.patterns += named.keys().map(|pattern| self.pattern(pattern, &at)).sum::<usize>();
                        }
                        self.named(named, &at, nesting, SHELVES.contains(&word), &mut node);
                    }
                    None => self.wrong(&at, "must be an object of schemas"),
                },
                _ => node.own.weight += values(value),
            }
        }
        node.next.extend(node.reference.clone());
        self.nodes.insert(place.to_owned(), node);
    }

    fn child(&mut self, schema: &Value, place: String, nesting: usize, parent: &mut Node) {
        self.subschema(schema, &place, nesting + 1);
        parent.next.push(place);
    }

    fn named(&mut self, named: &Map<String, Value>, at: &str, nesting: usize, shelf: bool, parent: &mut Node) {
        for (name, schema) in named {
            let place = format!("{at}/{}", escaped(name));
            if shelf {
                self.subschema(schema, &place, nesting + 1);
            } else {
                self.child(schema, place, nesting, parent);
            }
        }
    }

    /// The pointer of a `$ref`, which must stay within this schema.
    fn reference(&mut self, value: &Value, at: &str) -> Option<String> {
        let pointer = value.as_str().and_then(|text| text.strip_prefix('#'));
        let pointer = pointer.filter(|pointer| pointer.is_empty() || pointer.starts_with('/'));
        let pointer = pointer.filter(|pointer| !pointer.contains('%'));
        if pointer.is_none() {
            self.wrong(at, "must refer to this schema: # or #/…");
        }
        pointer.map(str::to_owned)
    }

    fn dialect(&mut self, value: &Value, place: &str, at: &str) {
        let known = ["//json-schema.org/draft/2020-12/schema", "//json-schema.org/draft-07/schema"];
        let text = value.as_str().unwrap_or_default().trim_end_matches('#');
        let named = text.strip_prefix("https:").or_else(|| text.strip_prefix("http:")).unwrap_or_default();
        if !place.is_empty() || !known.contains(&named) {
            self.wrong(at, "must be https://json-schema.org/draft/2020-12/schema, at the root, or left out");
        }
    }

    /// The count of a pattern: 1, or 8 if it is large.
    fn pattern(&mut self, pattern: &str, at: &str) -> usize {
        self.patterns += 1;
        if pattern.len() > MAX_PATTERN_BYTES {
            self.wrong(at, format!("a pattern may have at most {MAX_PATTERN_BYTES} bytes"));
            return 1;
        }
        // Too many patterns are refused anyway, so do not compile them.
        if self.patterns > MAX_PATTERNS {
            return 1;
        }
        let alone = json!({"pattern": pattern});
        let compiles = |size: usize| super::build(&alone, size).is_ok();
        if compiles(SMALL_PATTERN) {
            return 1;
        }
        if !compiles(super::PATTERN_SIZE) {
            self.wrong(at, "must be a regular expression without look-around and back-references, small when compiled");
        }
        LARGE_COUNTS
    }

    /// The total cost below a place, with every `$ref` followed. On a cycle, returns its place as the error.
    fn expand(&self, place: &str, known: &mut HashMap<String, Option<Cost>>) -> Result<Cost, String> {
        match known.get(place) {
            Some(Some(cost)) => return Ok(*cost),
            Some(None) => return Err(place.to_owned()),
            None => {}
        }
        known.insert(place.to_owned(), None);
        let Some(node) = self.nodes.get(place) else { return Ok(Cost::default()) };
        let mut cost = node.own;
        for next in &node.next {
            let below = self.expand(next, known)?;
            cost.weight = cost.weight.saturating_add(below.weight);
            cost.patterns = cost.patterns.saturating_add(below.patterns);
        }
        known.insert(place.to_owned(), Some(cost));
        Ok(cost)
    }
}

/// The number of values in a keyword's value.
fn values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(values).sum::<usize>(),
        _ => 1,
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A JSON pointer as a dotted path: `properties.a.items`.
pub fn dotted(pointer: &str) -> String {
    let parts: Vec<String> =
        pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    parts.join(".")
}
