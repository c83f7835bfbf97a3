//! The member of a body that names phone numbers: one, or a list.

use std::collections::{HashSet, VecDeque};

use base::input::{FieldError, Format, Kind};
use platform::http::ApiError;
use serde_json::{Map, Value};

use crate::number::Number;
use crate::phone;

/// [`Named::wrong`] says what is wrong with a number, and [`Named::refuse`] finds emergency numbers, in whatever form they are.
pub static E164: Format = Format {
    name: None,
    pattern: Some(r"^\+?[1-9]\d{1,14}$"),
    matches: |_| true,
    message: "must be a phone number in E.164 form",
};

/// One number.
pub const NUMBER: Kind = Kind::Text { min: 1, max: 32, format: Some(&E164) };

/// Most values in which emergency numbers are looked for. A longer list is refused in any case.
const MAX_SCANNED: usize = 100;

/// The member's name.
#[derive(Clone, Copy, Debug)]
pub struct Named(pub &'static str);

impl Named {
    fn values(self, input: &Map<String, Value>) -> &[Value] {
        match input.get(self.0) {
            Some(Value::Array(values)) => values.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        }
    }

    /// The texts that are named.
    pub fn texts(self, input: &Map<String, Value>) -> impl Iterator<Item = &str> {
        self.values(input).iter().filter_map(Value::as_str)
    }

    /// The numbers that are named, each once, in their order.
    pub fn numbers(self, input: &Map<String, Value>) -> Vec<Number> {
        let mut seen = HashSet::new();
        let numbers = self.texts(input).filter_map(|text| Number::parse(text).ok());
        numbers.filter(|number| seen.insert(number.clone())).collect()
    }

    /// The path of the value at a place, of so many.
    pub fn path(self, count: usize, index: usize) -> String {
        if count == 1 { self.0.to_owned() } else { format!("{}.{index}", self.0) }
    }

    /// What is wrong with the texts.
    pub fn wrong(self, input: &Map<String, Value>) -> Vec<FieldError> {
        let count = self.texts(input).count();
        let wrong = |(index, text)| {
            Number::parse(text).err().map(|why| FieldError::new(self.path(count, index), why.message()))
        };
        self.texts(input).enumerate().filter_map(wrong).collect()
    }

    /// The refusal of an emergency number, also among what is no valid input, and in lists in the list.
    pub fn refuse(self, body: &Map<String, Value>) -> Option<ApiError> {
        let mut open: VecDeque<&Value> = self.values(body).iter().take(MAX_SCANNED).collect();
        for _ in 0..MAX_SCANNED {
            let refused = match open.pop_front()? {
                Value::String(text) => phone::emergency(text),
                Value::Number(number) => phone::emergency(&number.to_string()),
                Value::Array(values) => {
                    open.extend(values.iter().take(MAX_SCANNED));
                    None
                }
                _ => None,
            };
            if refused.is_some() {
                return refused;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn emergency_numbers_have_a_refusal_of_their_own() {
        let of = |to: Value| Named("to").refuse(json!({"to": to}).as_object().unwrap());
        assert!(of(json!(["+14155552671"])).is_none());
        // In any script, and beside other faults: those come later.
        for number in ["112", "+1911", "００ 44 999", "९११"] {
            let refused = of(json!([{}, "x", "+14155552671", number]));
            assert!(matches!(refused, Some(ApiError::EmergencyNumber { number: named }) if named == number));
        }
        let mut long = vec![json!("+14155552671"); MAX_SCANNED - 1];
        long.push(json!("911"));
        for hidden in [json!(911), json!(long), json!([["+14155552671", ["911"]]]), json!([[911]])] {
            assert!(matches!(of(hidden.clone()), Some(ApiError::EmergencyNumber { .. })), "{hidden}");
        }
    }

    #[test]
    fn each_number_counts_once() {
        let input = json!({"to": ["+12025550100", "12025550100", "+12025550101"]});
        let found = Named("to").numbers(input.as_object().unwrap());
        assert_eq!(found.iter().map(Number::as_str).collect::<Vec<_>>(), ["+12025550100", "+12025550101"]);
    }
}
