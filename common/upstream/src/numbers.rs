//! Numbers that would be rounded on their way: readers of JSON keep whole numbers of 64 bits, and larger ones as floating point.

use base::input::FieldError;
use serde_json::Value;

/// Whether all whole numbers of a JSON text have at most 64 bits.
pub fn are_exact(json: &[u8]) -> bool {
    let (mut at, mut in_string) = (0, false);
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => at += 1,
            b'-' | b'0'..=b'9' if !in_string => {
                let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let length = json[at..].iter().take_while(is_part).count();
                if !is_exact(&json[at..at + length]) {
                    return false;
                }
                at += length;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    true
}

fn is_exact(number: &[u8]) -> bool {
    let text = std::str::from_utf8(number).unwrap_or_default();
    text.contains(['.', 'e', 'E']) || text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()
}

/// Names the whole numbers of an input that were rounded when it was read.
pub fn rounded(path: &str, value: &Value, errors: &mut Vec<FieldError>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap_or_default();
            if number.fract() == 0.0 && number.abs() >= 18_446_744_073_709_551_615.0 {
                errors
                    .push(FieldError::new(path, "must be a number of at most 64 bits, or a text: it would be rounded"));
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| rounded(&below(&index.to_string()), item, errors));
        }
        Value::Object(members) => members.iter().for_each(|(name, value)| rounded(&below(name), value, errors)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_would_be_rounded_are_found() {
        for exact in [
            r#"{"a": [0, -1, 18446744073709551615, -9223372036854775808, 0.1, 1e300, -2.5E-7]}"#,
            r#"{"18446744073709551616": "18446744073709551616 \" 18446744073709551616"}"#,
            "7",
        ] {
            assert!(are_exact(exact.as_bytes()), "{exact}");
        }
        for rounded in [r#"{"a": 18446744073709551616}"#, "[1,-9223372036854775809]", "123456789012345678901234567890"]
        {
            assert!(!are_exact(rounded.as_bytes()), "{rounded}");
        }
        let mut errors = Vec::new();
        let input = r#"{"a": {"b": [1, 12345678901234567890123]}, "c": 18446744073709551615, "d": 1.5}"#;
        rounded("", &serde_json::from_str(input).unwrap(), &mut errors);
        assert_eq!(errors.iter().map(|error| error.path.as_str()).collect::<Vec<_>>(), ["a.b.1"]);
    }
}
