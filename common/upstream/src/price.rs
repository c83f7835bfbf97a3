//! The price of a call: fixed, or by a number or a length in the input. Integers only, so that nothing is lost.

use base::input::FieldError;
use base::money::Usdc;
use serde_json::{Number, Value};

use crate::problem::{Problem, Reader};

/// The lowest and the highest price that settings may set.
pub const LEAST_PRICE: Usdc = Usdc::from_micro(1);
pub const MOST_PRICE: Usdc = Usdc::from_micro(1_000_000_000);
/// Decimals of a rate. It is finer than a price: characters are cheap.
const RATE_PLACES: usize = 12;
const MICRO_PLACES: i32 = 6;
/// Longest pointer, in bytes.
const MAX_POINTER: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Price {
    Fixed(Usdc),
    /// By the input.
    Per(PerUnit),
}

/// `rate` for each unit, rounded up to six places, at least `minimum` and at most `maximum`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerUnit {
    /// JSON pointer of the member that is measured.
    pub pointer: String,
    pub measure: Measure,
    /// In units of 10⁻¹² USDC.
    pub rate: u64,
    pub minimum: Usdc,
    pub maximum: Usdc,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The number itself, which must not be negative.
    Number,
    /// Characters of a string, items of an array.
    Length,
}

impl Price {
    /// The price of a call with this input, which matches the input schema.
    ///
    /// # Errors
    /// The member that is measured is absent, of the wrong type, or a negative number.
    pub fn of(&self, input: &Value) -> Result<Usdc, Vec<FieldError>> {
        match self {
            Price::Fixed(price) => Ok(*price),
            Price::Per(per) => per.of(input).map_err(|message| vec![FieldError::new(dotted(&per.pointer), message)]),
        }
    }

    /// The price that is shown when no input is known: the lowest one.
    pub fn lowest(&self) -> Usdc {
        match self {
            Price::Fixed(price) => *price,
            Price::Per(per) => per.minimum,
        }
    }

    /// The highest price that a call can have.
    pub fn highest(&self) -> Usdc {
        match self {
            Price::Fixed(price) => *price,
            Price::Per(per) => per.maximum,
        }
    }

    /// Reads `"0.01"`, or an object with `per`.
    pub(crate) fn read(value: &Value, at: &str) -> Result<Price, Vec<Problem>> {
        if let Some(text) = value.as_str() {
            return amount(text).map(Price::Fixed).map_err(|message| vec![Problem::new(at, message)]);
        }
        if !value.is_object() {
            let message =
                "must be a price such as \"0.01\" (a string, in USDC), or an object with per, rate and maximum";
            return Err(vec![Problem::new(at, message)]);
        }
        PerUnit::read(value, at).map(Price::Per)
    }
}

impl PerUnit {
    fn of(&self, input: &Value) -> Result<Usdc, &'static str> {
        let measured = input.pointer(&self.pointer).filter(|value| !value.is_null());
        let measured = measured.ok_or("is required: the price depends on it")?;
        let units = match (self.measure, measured) {
            (Measure::Number, Value::Number(number)) => Units::of(number)?,
            (Measure::Number, _) => return Err("must be a number: the price depends on it"),
            (Measure::Length, Value::String(text)) => Units::whole(text.chars().count()),
            (Measure::Length, Value::Array(items)) => Units::whole(items.len()),
            (Measure::Length, _) => return Err("must be a string or an array: the price depends on its length"),
        };
        let micro = units.times(self.rate);
        Ok(Usdc::from_micro(micro.clamp(self.minimum.micro(), self.maximum.micro())))
    }

    fn read(value: &Value, at: &str) -> Result<PerUnit, Vec<Problem>> {
        let mut reader = Reader::new(value, at)?;
        let pointer = reader.required("per", pointer);
        let measure = reader.optional("of", |value| match value.as_str() {
            Some("number") => Ok(Measure::Number),
            Some("length") => Ok(Measure::Length),
            _ => Err("must be \"number\" or \"length\"".to_owned()),
        });
        let rate = reader.required("rate", rate);
        let text = |value: &Value| amount(value.as_str().ok_or("must be a string, such as \"0.01\"")?);
        let minimum = reader.optional("minimum", text).unwrap_or(LEAST_PRICE);
        let maximum = reader.required("maximum", text);
        if maximum.is_some_and(|maximum| maximum < minimum) {
            reader.problem("maximum", "must not be lower than minimum");
        }
        let measure = measure.unwrap_or(Measure::Number);
        let problems = reader.finish();
        match (pointer, rate, maximum) {
            (Some(pointer), Some(rate), Some(maximum)) if problems.is_empty() => {
                Ok(PerUnit { pointer, measure, rate, minimum, maximum })
            }
            _ => Err(problems),
        }
    }
}

/// A number as `mantissa × 10^exponent`, exactly.
struct Units {
    mantissa: u128,
    exponent: i32,
}

impl Units {
    fn whole(count: usize) -> Units {
        Units { mantissa: count as u128, exponent: 0 }
    }

    /// From the number's shortest decimal form: `12`, `1.5`, `1e-7`, `2.5e+300`.
    fn of(number: &Number) -> Result<Units, &'static str> {
        let text = number.to_string();
        let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
        let unreadable = "must be a number: the price depends on it";
        if whole.starts_with('-') {
            let is_zero = digits.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
            return if is_zero { Ok(Units::whole(0)) } else { Err("must not be negative: the price depends on it") };
        }
        let mantissa: u128 = format!("{whole}{decimals}").parse().map_err(|_| unreadable)?;
        let exponent: i32 = exponent.parse().map_err(|_| unreadable)?;
        let places = i32::try_from(decimals.len()).map_err(|_| unreadable)?;
        Ok(Units { mantissa, exponent: exponent.saturating_sub(places) })
    }

    /// Units × rate in micro-USDC, rounded up. A product that is too large is the largest amount.
    fn times(&self, rate: u64) -> u64 {
        let Some(product) = self.mantissa.checked_mul(u128::from(rate)) else { return u64::MAX };
        let exponent = self.exponent + MICRO_PLACES - RATE_PLACES as i32;
        let power = 10_u128.checked_pow(exponent.unsigned_abs());
        let micro = match (exponent < 0, power) {
            _ if product == 0 => 0,
            (true, Some(power)) => product.div_ceil(power),
            // Less than a micro-USDC.
            (true, None) => 1,
            (false, Some(power)) => product.saturating_mul(power),
            (false, None) => u128::MAX,
        };
        u64::try_from(micro).unwrap_or(u64::MAX)
    }
}

fn amount(text: &str) -> Result<Usdc, String> {
    let price = Usdc::parse_plain(text).map_err(|error| error.to_string())?;
    match (LEAST_PRICE..=MOST_PRICE).contains(&price) {
        true => Ok(price),
        false => Err("must be from 0.000001 to 1000".to_owned()),
    }
}

fn rate(value: &Value) -> Result<u64, String> {
    let message = format!("must be a string such as \"0.0005\": up to 1000, with at most {RATE_PLACES} decimals");
    let text = value.as_str().ok_or_else(|| message.clone())?;
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let number = (is_digits(whole) && is_digits(decimals) && decimals.len() <= RATE_PLACES && whole.len() <= 4)
        .then(|| format!("{whole}{decimals:0<RATE_PLACES$}").parse::<u64>().ok())
        .flatten();
    number.filter(|number| (1..=1_000 * 10_u64.pow(RATE_PLACES as u32)).contains(number)).ok_or(message)
}

fn pointer(value: &Value) -> Result<String, String> {
    let pointer = value.as_str().filter(|text| text.starts_with('/') && text.len() <= MAX_POINTER);
    let pointer = pointer.ok_or("must be a JSON pointer to a member of the input, such as /count")?;
    Ok(pointer.to_owned())
}

/// A JSON pointer as errors of inputs name places: `a.b`.
fn dotted(pointer: &str) -> String {
    let parts: Vec<String> =
        pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn per(of: &str, rate: &str) -> Price {
        let value = json!({"per": "/n", "of": of, "rate": rate, "minimum": "0.000001", "maximum": "1000"});
        Price::read(&value, "").unwrap()
    }

    #[test]
    fn prices_are_exact_and_rounded_up() {
        for (of, rate, n, micro) in [
            ("number", "0.01", json!(3), 30_000),
            ("number", "0.1", json!(0.1), 10_000),
            ("number", "0.1", json!(0.3), 30_000),
            ("number", "0.000001", json!(1.0000001), 2),
            ("number", "0.000000000001", json!(1), 1),
            ("number", "0.000000000001", json!(1e-300), 1),
            ("number", "1000", json!(1e300), 1_000_000_000),
            ("number", "0.000000000001", json!(u64::MAX), 1_000_000_000),
            ("number", "1", json!(0), 1),
            ("number", "1", json!(-0.0), 1),
            ("length", "0.0005", json!("äöü"), 1_500),
            ("length", "0.5", json!([1, 2, 3]), 1_500_000),
        ] {
            assert_eq!(per(of, rate).of(&json!({"n": n})).map(Usdc::micro), Ok(micro), "{rate} × {n}");
        }
    }

    #[test]
    fn a_call_without_a_measure_has_no_price() {
        for (of, input) in [
            ("number", json!({})),
            ("number", json!({"n": null})),
            ("number", json!({"n": "3"})),
            ("number", json!({"n": -1})),
            ("number", json!({"n": -1e-9})),
            ("length", json!({"n": 3})),
            ("length", json!([])),
        ] {
            let errors = per(of, "0.1").of(&input).unwrap_err();
            assert_eq!(errors[0].path, "n", "{input}");
        }
    }

    #[test]
    fn problems_of_a_price_name_the_member() {
        let problems = |value: Value| -> Vec<String> {
            Price::read(&value, "/price").unwrap_err().iter().map(ToString::to_string).collect()
        };
        assert_eq!(problems(json!("0")), ["/price must be from 0.000001 to 1000"]);
        assert_eq!(problems(json!("1000.000001")), ["/price must be from 0.000001 to 1000"]);
        assert_eq!(problems(json!("0.0000001")), ["/price must not have more than six decimals"]);
        assert!(problems(json!(0.1))[0].starts_with("/price must be a price such as"));
        let all = problems(json!({"per": "n", "of": "size", "rate": "1e3", "minimum": "2", "maximum": "1", "most": 1}));
        for (found, place) in all.iter().zip(["/per", "/of", "/rate", "/maximum", "/most"]) {
            assert!(found.starts_with(&format!("/price{place} ")), "{found}");
        }
        assert_eq!(all.len(), 5);
    }

    proptest! {
        #[test]
        fn a_price_is_never_below_the_product_and_less_than_one_unit_above(
            n in 0_u32..1_000_000, rate in 1_u64..1_000_000_000_000,
        ) {
            let text = format!("{}.{:012}", rate / 1_000_000_000_000, rate % 1_000_000_000_000);
            let micro = u128::from(per("number", &text).of(&json!({"n": n})).unwrap().micro());
            let exact = u128::from(n) * u128::from(rate);
            let bounded = exact.clamp(1_000_000, 1_000_000_000 * 1_000_000);
            prop_assert!(micro * 1_000_000 >= bounded && micro * 1_000_000 < bounded + 1_000_000);
        }
    }
}
