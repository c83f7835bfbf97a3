//! The path of a request.

use base::encoding::{percent_decoded, percent_encoded};
use base::input::FieldError;
use serde_json::{Map, Value};

use super::scalar;
use crate::tool::{PathPart, Segment};

/// Some servers decode a path more than once.
const DECODINGS: usize = 3;
const LEAVES: &str = "must not be empty, contain a slash, a backslash or a control character, or be a dot segment, encoded or not: it is a part of the path";

/// The path with the members of the input in their segments.
pub fn path(segments: &[Segment], input: &Map<String, Value>, errors: &mut Vec<FieldError>) -> String {
    let mut path = String::new();
    for segment in segments {
        let built = self::segment(segment, input, errors);
        path.push('/');
        path.push_str(&built);
    }
    path
}

fn segment(segment: &Segment, input: &Map<String, Value>, errors: &mut Vec<FieldError>) -> String {
    let (mut encoded, mut plain, mut last) = (String::new(), String::new(), None);
    for part in &segment.0 {
        let (member, slashes) = match part {
            PathPart::Text(text) => {
                encoded.push_str(text);
                plain.push_str(text);
                continue;
            }
            PathPart::Member { member, slashes } => (member, *slashes),
        };
        last = Some(member);
        let Some(text) = text_of(input.get(member).unwrap_or(&Value::Null)) else {
            errors.push(FieldError::new(member, "is required as a string or number: it is a part of the path"));
            return encoded;
        };
        let stays = match slashes {
            true => text.split('/').all(stays),
            false => stays(&text),
        };
        if !stays {
            errors.push(FieldError::new(member, LEAVES));
            return encoded;
        }
        match slashes {
            true => encoded.push_str(&text.split('/').map(percent_encoded).collect::<Vec<_>>().join("/")),
            false => encoded.push_str(&percent_encoded(&text)),
        }
        plain.push_str(&text);
    }
    // Two harmless members may make a dot segment together.
    if let Some(member) = last.filter(|_| !plain.contains('/') && !stays(&plain)) {
        errors.push(FieldError::new(member, LEAVES));
    }
    encoded
}

/// Items of an array stand side by side, with commas between them.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let texts: Option<Vec<String>> = items.iter().map(scalar).collect();
            texts.map(|texts| texts.join(","))
        }
        value => scalar(value),
    }
}

/// Whether a text stays one segment at each server on the way, however often they decode it.
fn stays(text: &str) -> bool {
    let mut text = text.to_owned();
    for _ in 0..=DECODINGS {
        // Some servers cut off what follows a semicolon.
        let name = text.split(';').next().unwrap_or_default().trim();
        if matches!(name, "" | "." | "..") || text.contains(['/', '\\']) || text.chars().any(char::is_control) {
            return false;
        }
        let decoded = percent_decoded(&text);
        if decoded == text {
            return true;
        }
        text = decoded;
    }
    // Still encoded: nobody means that.
    false
}
