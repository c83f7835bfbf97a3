//! The output in the form that the caller asked for.

use base::input::FieldError;
use serde_json::Value;

/// Why a schema cannot be used.
///
/// # Errors
/// What is wrong with it, with the place.
pub fn check_schema(asked: &Value) -> Result<(), String> {
    schema::admit(asked).map_err(|errors| said(&errors))
}

/// The output, if it is in the form that was asked for.
///
/// # Errors
/// Where it differs.
pub fn checked(asked: Option<&Value>, output: &Value) -> Result<(), String> {
    let Some(asked) = asked else {
        return schema::fits(output).map_err(|errors| said(&errors));
    };
    schema::validate(asked, output).map_err(|errors| said(&errors))
}

fn said(errors: &[FieldError]) -> String {
    let each = errors.iter().take(5).map(|error| match error.path.as_str() {
        "" => error.message.clone(),
        path => format!("{path} {}", error.message),
    });
    each.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn output_has_the_form_that_was_asked_for() {
        let asked = json!({"type": "object", "required": ["price"], "properties": {"price": {"type": "number"}}});
        assert_eq!(check_schema(&asked), Ok(()));
        assert_eq!(checked(Some(&asked), &json!({"price": 4})), Ok(()));
        assert!(checked(Some(&asked), &json!({"price": "4"})).unwrap_err().starts_with("price "));
        assert_eq!(checked(Some(&asked), &json!({})).unwrap_err(), "price is required");
        assert_eq!(checked(None, &json!("any")), Ok(()));
    }
}
