//! JSON schemas written by strangers (sellers, callers), and validation of values against them. Both are untrusted: a schema or
//! an input may try to exhaust time and memory.
//!
//! A schema is admitted before it is stored ([`admit`]): at most 16 KB, references only into itself and without cycles,
//! no exponential growth, few and small patterns for an engine without backtracking. These limits bound the rest:
//!
//! | what | bound |
//! |---|---|
//! | parts that one value is checked against | 4,000, every `$ref` followed |
//! | an input | 64 KB, 32 deep: at most 32,768 values |
//! | validation, for the worst admitted schema and input the tests know | 2 s of processor time |
//! | listing errors | parts × values at most 50,000; above that, one error for the whole value |
//!
//! JSON Schema 2020-12. `format` is not checked. Nothing is ever fetched.

mod admit;

use std::sync::{Arc, Mutex, PoisonError};

use base::digest::{canonical_json, sha256};
use base::input::{FieldError, depth};
use base::untrusted_text::{HIDES, hides_something};
use evm::Word;
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use admit::{Cost, dotted};

/// Largest input or result, in bytes of JSON, and its deepest nesting.
pub const MAX_VALUE_BYTES: usize = 64 * 1024;
pub const MAX_VALUE_DEPTH: usize = 32;
/// Largest compiled pattern, and its DFA cache, in bytes.
const PATTERN_SIZE: usize = 64 * 1024;
const PATTERN_CACHE: usize = 64 * 1024;
/// Errors are listed up to this product of parts and values.
const LISTED_WORK: usize = 50_000;
/// Most errors listed, and the longest message, in characters.
const MAX_LISTED: usize = 50;
const MAX_MESSAGE: usize = 300;
/// What a schema's `type` may be.
const TYPES: &str = "must be one of array, boolean, integer, null, number, object, string";
/// Compiled schemas cached per process. Each takes at most 4 MB, with its patterns' caches.
const KEPT: usize = 16;

/// A compiled schema.
struct Compiled {
    validator: Validator,
    cost: Cost,
}

/// Most recently used last.
static CACHE: Mutex<Vec<(Word, Arc<Compiled>)>> = Mutex::new(Vec::new());

/// Checks a schema before it is stored. Error paths start at the schema's root.
pub fn admit(schema: &Value) -> Result<(), Vec<FieldError>> {
    compile(schema)?;
    // People and models read it.
    if hides_anywhere(schema) { Err(vec![FieldError::new("", HIDES)]) } else { Ok(()) }
}

/// Whether a name or a text contains invisible characters.
fn hides_anywhere(value: &Value) -> bool {
    match value {
        Value::String(text) => hides_something(text, true),
        Value::Array(items) => items.iter().any(hides_anywhere),
        Value::Object(members) => {
            members.iter().any(|(name, value)| hides_something(name, true) || hides_anywhere(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Checks a value against an admitted schema. Error paths are dotted, start at the value's root, and name the missing
/// or wrong member.
pub fn validate(schema: &Value, value: &Value) -> Result<(), Vec<FieldError>> {
    validate_up_to(MAX_VALUE_BYTES, schema, value)
}

/// [`validate`] for a value of at most so many bytes. More than [`MAX_VALUE_BYTES`] only where a stranger has not written the
/// schema: the work is the product of both.
pub fn validate_up_to(most: usize, schema: &Value, value: &Value) -> Result<(), Vec<FieldError>> {
    fits_in(most, value)?;
    // An admitted schema compiles again, unless the library was updated. Then every value is refused.
    let compiled = compiled(schema).map_err(|_| {
        vec![FieldError::new("", "cannot be checked: the schema of this service is no longer supported")]
    })?;
    if compiled.validator.is_valid(value) {
        return Ok(());
    }
    let mut errors = Vec::new();
    if compiled.cost.weight.saturating_mul(values(value)) <= LISTED_WORK {
        for error in compiled.validator.iter_errors(value).take(MAX_LISTED) {
            describe(&error, &mut errors);
        }
    }
    if errors.is_empty() {
        errors.push(FieldError::new("", "does not match the schema; it is too large to say where"));
    }
    errors.truncate(MAX_LISTED);
    Err(errors)
}

/// Puts `path` in front of the errors' paths. `path` is empty for a root value.
pub fn under(path: &str, errors: Vec<FieldError>) -> Vec<FieldError> {
    let place = |below: String| match (path.is_empty(), below.is_empty()) {
        (true, _) => below,
        (false, true) => path.to_owned(),
        (false, false) => format!("{path}.{below}"),
    };
    errors.into_iter().map(|error| FieldError { path: place(error.path), ..error }).collect()
}

fn compiled(schema: &Value) -> Result<Arc<Compiled>, Vec<FieldError>> {
    let digest = sha256(canonical_json(schema).as_bytes());
    let cached = || CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    {
        let mut cache = cached();
        if let Some(at) = cache.iter().position(|(known, _)| *known == digest) {
            let found = cache.remove(at);
            let compiled = found.1.clone();
            cache.push(found);
            return Ok(compiled);
        }
    }
    let compiled = Arc::new(compile(schema)?);
    let mut cache = cached();
    if cache.len() >= KEPT {
        cache.remove(0);
    }
    cache.push((digest, compiled.clone()));
    Ok(compiled)
}

fn compile(schema: &Value) -> Result<Compiled, Vec<FieldError>> {
    let cost = admit::read(schema)?;
    let mut schema = schema.clone();
    if let Some(root) = schema.as_object_mut() {
        // `$id` and `$schema` concern the whole schema. No admitted reference depends on them.
        root.remove("$id");
        root.remove("$schema");
    }
    let validator = build(&schema, PATTERN_SIZE).map_err(|error| {
        let place = dotted(error.instance_path().as_str());
        let is_type = place == "type" || place.ends_with(".type");
        let message = match in_our_words(&error) {
            Some(_) if is_type => TYPES.to_owned(),
            Some(message) => message.to_owned(),
            None => short(&error.to_string()),
        };
        vec![FieldError::new(place, message)]
    })?;
    Ok(Compiled { validator, cost })
}

/// What is wrong, where the library would speak of keywords instead of the value.
fn in_our_words(error: &ValidationError<'_>) -> Option<&'static str> {
    match error.kind() {
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            Some("matches none of the schemas of which it has to match one")
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            Some("matches several of the schemas of which it has to match exactly one")
        }
        ValidationErrorKind::Not { .. } => Some("matches a schema that it must not match"),
        _ => None,
    }
}

/// Compiles a schema. Patterns have a size limit, and run in linear time.
fn build(schema: &Value, pattern_size: usize) -> Result<Validator, ValidationError<'static>> {
    let patterns = PatternOptions::regex().size_limit(pattern_size).dfa_size_limit(PATTERN_CACHE);
    let options = jsonschema::options().with_draft(Draft::Draft202012).offline().with_pattern_options(patterns);
    options.should_validate_formats(false).build(schema)
}

/// Refuses values that are too large or too deep.
pub fn fits(value: &Value) -> Result<(), Vec<FieldError>> {
    fits_in(MAX_VALUE_BYTES, value)
}

fn fits_in(most: usize, value: &Value) -> Result<(), Vec<FieldError>> {
    let bytes = value.to_string().len();
    if bytes > most {
        return Err(vec![FieldError::new("", format!("may have at most {most} bytes, has {bytes}"))]);
    }
    if depth(value) > MAX_VALUE_DEPTH {
        return Err(vec![FieldError::new("", format!("may be at most {MAX_VALUE_DEPTH} deep"))]);
    }
    Ok(())
}

fn values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(values).sum::<usize>(),
        _ => 1,
    }
}

/// One error per place, without the value itself.
fn describe(error: &ValidationError<'_>, errors: &mut Vec<FieldError>) {
    let place = dotted(error.instance_path().as_str());
    let below = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            errors.push(FieldError::new(below(property.as_str().unwrap_or_default()), "is required"));
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let unexpected = unexpected.iter().take(MAX_LISTED);
            errors.extend(unexpected.map(|name| FieldError::new(short(&below(name)), "is not expected")));
        }
        _ => {
            let message = in_our_words(error).map_or_else(|| short(&error.masked().to_string()), str::to_owned);
            errors.push(FieldError::new(short(&place), message));
        }
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
