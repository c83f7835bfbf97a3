//! A seller's test cases: an input, and what must hold for the output. Judging is a pure function; running the work and
//! showing the pass rate is done elsewhere.
//!
//! Bounds: at most [`MAX_CASES`] cases of [`MAX_CHECKS`] checks. Patterns take time linear in the text (no back references,
//! no look-around), have at most [`MAX_PATTERN_CHARS`] characters and [`PATTERN_BYTES`] compiled, and are matched against
//! at most [`MAX_MATCHED_BYTES`]. A longer text does not match.

use base::input::FieldError;
use regex_lite::RegexBuilder;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most test cases of one service.
pub const MAX_CASES: usize = 10;
/// Most checks of one case.
pub const MAX_CHECKS: usize = 20;
pub const MAX_POINTER_BYTES: usize = 255;
/// Largest input of a case, and largest value to compare with, in bytes of JSON.
pub const MAX_VALUE_BYTES: usize = 16 * 1024;
pub const MAX_PATTERN_CHARS: usize = 200;
pub const PATTERN_BYTES: usize = 32 * 1024;
pub const MAX_MATCHED_BYTES: usize = 64 * 1024;

/// One test case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// An `input` as a buyer would send it.
    pub input: Value,
    pub checks: Vec<Check>,
}

/// A condition on one place in the output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// JSON pointer (RFC 6901) into the output. Empty: the whole output, as text if it is not JSON.
    #[serde(default)]
    pub path: String,
    #[serde(flatten)]
    pub must: Assertion,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Assertion {
    /// Equals this value. Numbers are compared by value, so 1 equals 1.0.
    Equals(Value),
    /// A string (or a number or boolean, as JSON writes it) that contains a match of the pattern.
    Matches(String),
    /// `true`: is present, even as null. `false`: is absent.
    Exists(bool),
    /// At most this many characters of a string, items of an array or members of an object.
    MaxLength(u64),
}

/// A check that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Its index in the list.
    pub index: usize,
    pub path: String,
    pub message: String,
}

/// Everything wrong with a seller's cases, for a 400. `path` is the body's member that holds them.
pub fn problems(cases: &[Case], path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if cases.len() > MAX_CASES {
        errors.push(FieldError::new(path, format!("must have at most {MAX_CASES} items, has {}", cases.len())));
    }
    for (index, case) in cases.iter().take(MAX_CASES).enumerate() {
        let path = format!("{path}.{index}");
        if is_large(&case.input) {
            errors.push(FieldError::new(format!("{path}.input"), format!("must be at most {MAX_VALUE_BYTES} bytes")));
        }
        if case.checks.is_empty() || case.checks.len() > MAX_CHECKS {
            errors.push(FieldError::new(format!("{path}.checks"), format!("must have 1 to {MAX_CHECKS} items")));
        }
        for (index, check) in case.checks.iter().take(MAX_CHECKS).enumerate() {
            let path = format!("{path}.checks.{index}");
            let is_pointer = check.path.is_empty() || check.path.starts_with('/');
            if !is_pointer || check.path.len() > MAX_POINTER_BYTES {
                let message = format!("must be a JSON pointer of at most {MAX_POINTER_BYTES} bytes");
                errors.push(FieldError::new(format!("{path}.path"), message));
            }
            match &check.must {
                Assertion::Equals(value) if is_large(value) => {
                    let message = format!("must be at most {MAX_VALUE_BYTES} bytes");
                    errors.push(FieldError::new(format!("{path}.equals"), message));
                }
                Assertion::Matches(pattern) => {
                    if let Err(message) = compiled(pattern) {
                        errors.push(FieldError::new(format!("{path}.matches"), message));
                    }
                }
                _ => {}
            }
        }
    }
    errors
}

/// The checks that an output fails; empty if it passes all.
pub fn run_checks(checks: &[Check], output: &str) -> Vec<Failed> {
    let json: Option<Value> = serde_json::from_str(output).ok();
    let text = Value::from(output);
    let judged = checks.iter().take(MAX_CHECKS).enumerate().filter_map(|(index, check)| {
        let place = match &json {
            Some(json) => json.pointer(&check.path),
            None if check.path.is_empty() => Some(&text),
            None => None,
        };
        let message = judge(&check.must, place).err()?;
        Some(Failed { index, path: check.path.clone(), message })
    });
    judged.collect()
}

fn judge(must: &Assertion, place: Option<&Value>) -> Result<(), String> {
    if let Assertion::Exists(wanted) = must {
        let right = place.is_some() == *wanted;
        return if right { Ok(()) } else { Err(if *wanted { "is missing" } else { "must not be present" }.to_owned()) };
    }
    let place = place.ok_or("is missing")?;
    let holds = match must {
        Assertion::Equals(value) => is_same(place, value),
        Assertion::Matches(pattern) => matches(pattern, place)?,
        Assertion::MaxLength(max) => length(place)? <= *max,
        Assertion::Exists(_) => true,
    };
    match must {
        _ if holds => Ok(()),
        Assertion::Equals(_) => Err("is a different value".to_owned()),
        Assertion::Matches(_) => Err("does not match".to_owned()),
        _ => Err("is too long".to_owned()),
    }
}

fn matches(pattern: &str, place: &Value) -> Result<bool, String> {
    let written;
    let text = match place {
        Value::String(text) => text.as_str(),
        Value::Number(_) | Value::Bool(_) => {
            written = place.to_string();
            &written
        }
        _ => return Err("is not text".to_owned()),
    };
    if text.len() > MAX_MATCHED_BYTES {
        return Err(format!("is longer than {MAX_MATCHED_BYTES} bytes, the most that is matched"));
    }
    Ok(compiled(pattern)?.is_match(text))
}

fn length(place: &Value) -> Result<u64, String> {
    let length = match place {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => return Err("has no length".to_owned()),
    };
    Ok(u64::try_from(length).unwrap_or(u64::MAX))
}

fn compiled(pattern: &str) -> Result<regex_lite::Regex, String> {
    if pattern.is_empty() || pattern.chars().count() > MAX_PATTERN_CHARS {
        return Err(format!("must have 1 to {MAX_PATTERN_CHARS} characters"));
    }
    let regex = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).nest_limit(20).build();
    regex.map_err(|error| format!("is not a supported pattern: {error}"))
}

/// JSON equality with numbers compared by value. The parser limits the depth (128), so recursion is bounded.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| is_same(one, other)))
        }
        _ => one == other,
    }
}

fn is_large(value: &Value) -> bool {
    value.to_string().len() > MAX_VALUE_BYTES
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cpu_time::ThreadTime;

    use super::*;
    use serde_json::json;

    fn checks(list: Value) -> Vec<Check> {
        serde_json::from_value(list).unwrap()
    }

    #[test]
    fn each_kind_of_check_holds_and_fails() {
        let output = json!({"a": {"b/c": [1, "two"]}, "n": 2.0, "gone": null, "word": "Straße"}).to_string();
        let holds = checks(json!([
            {"path": "/a/b~1c/1", "equals": "two"},
            {"path": "/n", "equals": 2},
            {"path": "/word", "matches": "^Stra.e$"},
            {"path": "/n", "matches": "^2"},
            {"path": "/gone", "exists": true},
            {"path": "/never", "exists": false},
            {"path": "/word", "max_length": 6},
            {"path": "/a/b~1c", "max_length": 2},
        ]));
        assert_eq!(run_checks(&holds, &output), Vec::new());
        let fails = checks(json!([
            {"path": "/a/b~1c/1", "equals": 2},
            {"path": "/never", "equals": null},
            {"path": "/word", "matches": "x"},
            {"path": "/a", "matches": "x"},
            {"path": "/never", "exists": true},
            {"path": "/gone", "exists": false},
            {"path": "/word", "max_length": 5},
            {"path": "/n", "max_length": 5},
        ]));
        let failed: Vec<usize> = run_checks(&fails, &output).iter().map(|failed| failed.index).collect();
        assert_eq!(failed, (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn only_the_empty_path_reaches_output_that_is_not_json() {
        let list = checks(json!([{"matches": "moon"}, {"max_length": 20}, {"path": "/x", "exists": false}]));
        assert_eq!(run_checks(&list, "To the moon and back"), Vec::new());
        assert_eq!(run_checks(&checks(json!([{"path": "/x", "exists": true}])), "text").len(), 1);
    }

    #[test]
    fn hostile_patterns_are_refused_or_quick() {
        let refused = ["", "(?=x)", r"(a)\1", "((((a{100}){100}){100}){100})", &"a".repeat(201), "(", &"(".repeat(100)];
        for pattern in refused {
            let case = Case { input: Value::Null, checks: checks(json!([{"matches": pattern}])) };
            let errors = problems(&[case], "test_cases");
            assert_eq!(errors.len(), 1, "{pattern}");
            assert_eq!(errors[0].path, "test_cases.0.checks.0.matches");
        }
        let text = "a".repeat(MAX_MATCHED_BYTES);
        for pattern in ["^(a+)+$|b", "(a|a)*b", "(a*)*b", "(.*)(.*)(.*)(.*)[b-d]x", "[a-z]{1,40}[0-9]{1,40}!"] {
            let list = checks(json!([{"matches": pattern}]));
            let begun = ThreadTime::now();
            run_checks(&list, &text);
            assert!(begun.elapsed() < Duration::from_secs(20), "{pattern} took {:?}", begun.elapsed());
        }
        assert_eq!(run_checks(&checks(json!([{"matches": "a"}])), &format!("{text}a")).len(), 1, "too long to match");
    }

    #[test]
    fn cases_are_bounded() {
        let case = |checks: Value| serde_json::from_value::<Case>(json!({"input": {}, "checks": checks})).unwrap();
        assert_eq!(problems(&vec![case(json!([{"exists": true}])); MAX_CASES], "t"), Vec::new());
        assert_eq!(problems(&vec![case(json!([{"exists": true}])); MAX_CASES + 1], "t")[0].path, "t");
        assert_eq!(problems(&[case(json!([]))], "t")[0].path, "t.0.checks");
        assert_eq!(problems(&[case(json!([{"path": "x", "exists": true}]))], "t")[0].path, "t.0.checks.0.path");
        let large = "x".repeat(MAX_VALUE_BYTES);
        assert_eq!(problems(&[case(json!([{"equals": large}]))], "t")[0].path, "t.0.checks.0.equals");
        for bad in [json!([{"path": ""}]), json!([{"path": "", "like": 1}]), json!([{"max_length": -1}])] {
            assert!(serde_json::from_value::<Vec<Check>>(bad).is_err());
        }
    }
}
