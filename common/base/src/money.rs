//! Money: USDC as an integer number of micro-USDC (millionths of a dollar).
//!
//! [`Usdc`] is the only type for money. Arithmetic is checked and never uses floats. The decimal form ("0.002000") exists
//! only in requests and responses: six decimals are printed, and more than six are refused.

use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An amount of USDC in micro-USDC (10⁻⁶ USDC, the token's atomic unit).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usdc(u64);

/// Why a text is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmountError {
    NotANumber,
    /// Not in the form of [`Usdc::parse_plain`].
    NotPlain,
    /// Below zero.
    Negative,
    /// More than six decimals, finer than the token's unit.
    TooFine,
    /// Does not fit in 64 bits of micro-USDC.
    TooLarge,
}

impl fmt::Display for AmountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AmountError::NotANumber => "must be a decimal number",
            AmountError::NotPlain => "must be digits with at most one point, such as \"12.50\"",
            AmountError::Negative => "must not be negative",
            AmountError::TooFine => "must not have more than six decimals",
            AmountError::TooLarge => "is too large",
        })
    }
}

impl std::error::Error for AmountError {}

impl Usdc {
    pub const ZERO: Usdc = Usdc(0);

    pub const fn from_micro(micro: u64) -> Usdc {
        Usdc(micro)
    }

    /// The amount in micro-USDC, which is the token's atomic unit.
    pub const fn micro(self) -> u64 {
        self.0
    }

    /// By reference, as serde's `skip_serializing_if` asks.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    pub const fn checked_add(self, other: Usdc) -> Option<Usdc> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Usdc(sum)),
            None => None,
        }
    }

    pub const fn checked_sub(self, other: Usdc) -> Option<Usdc> {
        match self.0.checked_sub(other.0) {
            Some(rest) => Some(Usdc(rest)),
            None => None,
        }
    }

    /// An exact JSON number without trailing zeros: `2`, `0.002`.
    pub fn to_number(self) -> serde_json::Value {
        let text = self.to_string();
        let text = text.trim_end_matches('0').trim_end_matches('.');
        serde_json::from_str(text).unwrap_or(serde_json::Value::Null)
    }

    /// Reads a decimal amount. Accepts exponent form (`1e-05`), which some clients send in headers.
    pub fn parse(text: &str) -> Result<Usdc, AmountError> {
        // The library would accept underscores and a plus sign.
        if !text.starts_with(|first: char| first.is_ascii_digit() || first == '-' || first == '.') || text.contains('_')
        {
            return Err(AmountError::NotANumber);
        }
        let decimal = Decimal::from_str_exact(text)
            .or_else(|_| Decimal::from_scientific(text))
            .map_err(|_| AmountError::NotANumber)?;
        Usdc::from_decimal(decimal)
    }

    /// Reads an amount that a body states as text: digits, and at most one point with one to six digits behind it. No sign,
    /// no exponent: the text says what the amount looks like.
    pub fn parse_plain(text: &str) -> Result<Usdc, AmountError> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (whole, decimals) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(decimals) {
            return Err(AmountError::NotPlain);
        }
        if unsigned.len() < text.len() {
            return Err(AmountError::Negative);
        }
        if decimals.len() > 6 {
            return Err(AmountError::TooFine);
        }
        let units = |digits: &str| digits.parse::<u64>().map_err(|_| AmountError::TooLarge);
        let micro = units(whole)?.checked_mul(1_000_000).ok_or(AmountError::TooLarge)?;
        micro.checked_add(units(&format!("{decimals:0<6}"))?).map(Usdc).ok_or(AmountError::TooLarge)
    }

    /// Reads a cap, which is only compared and never charged: more than six decimals are rounded down, and a too large
    /// value becomes the largest amount.
    pub fn parse_cap(text: &str) -> Result<Usdc, AmountError> {
        match Usdc::parse(text) {
            Err(AmountError::NotANumber | AmountError::TooFine) => {}
            Err(AmountError::TooLarge) => return Ok(Usdc(u64::MAX)),
            parsed => return parsed,
        }
        // Floats print up to 17 digits and any exponent. A float is safe here, because a cap is only compared.
        let number: f64 = text.trim().parse().map_err(|_| AmountError::NotANumber)?;
        if !number.is_finite() {
            return Err(AmountError::NotANumber);
        }
        if number < 0.0 {
            return Err(AmountError::Negative);
        }
        let rounded = Decimal::from_f64_retain(number).unwrap_or_default().trunc_with_scale(6);
        if number > 1.0 && rounded.is_zero() {
            return Ok(Usdc(u64::MAX));
        }
        Usdc::from_decimal(rounded).or(Ok(Usdc(u64::MAX)))
    }

    fn from_decimal(decimal: Decimal) -> Result<Usdc, AmountError> {
        if decimal.is_sign_negative() && !decimal.is_zero() {
            return Err(AmountError::Negative);
        }
        let micro = decimal.checked_mul(Decimal::from(1_000_000)).ok_or(AmountError::TooLarge)?;
        if !micro.fract().is_zero() {
            return Err(AmountError::TooFine);
        }
        u64::try_from(micro).map(Usdc).map_err(|_| AmountError::TooLarge)
    }
}

/// Six decimals, always: `0.002000`.
impl fmt::Display for Usdc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

impl FromStr for Usdc {
    type Err = AmountError;

    fn from_str(text: &str) -> Result<Usdc, AmountError> {
        Usdc::parse(text)
    }
}

/// Stored as an integer of micro-USDC; responses print it with [`fmt::Display`].
impl Serialize for Usdc {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Usdc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Usdc, D::Error> {
        u64::deserialize(deserializer).map(Usdc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_printed_with_six_decimals() {
        for (text, micro) in [("0.002", 2_000), ("1", 1_000_000), ("0.000001", 1), ("1e-05", 10), ("2.5E1", 25_000_000)]
        {
            assert_eq!(Usdc::parse(text).map(Usdc::micro), Ok(micro), "{text}");
        }
        assert_eq!(Usdc::from_micro(2_000).to_string(), "0.002000");
        assert_eq!(Usdc::from_micro(12_345_678).to_string(), "12.345678");
        assert_eq!(Usdc::parse(&Usdc::from_micro(u64::MAX).to_string()), Ok(Usdc::from_micro(u64::MAX)));
    }

    #[test]
    fn refuses_what_is_not_an_amount() {
        for (text, error) in [
            ("0.0000001", AmountError::TooFine),
            ("1e-7", AmountError::TooFine),
            ("-1", AmountError::Negative),
            ("", AmountError::NotANumber),
            ("NaN", AmountError::NotANumber),
            ("1 000", AmountError::NotANumber),
            (" 1", AmountError::NotANumber),
            ("1 ", AmountError::NotANumber),
            ("+1", AmountError::NotANumber),
            ("1_0", AmountError::NotANumber),
            ("0x10", AmountError::NotANumber),
            ("99999999999999999999999", AmountError::TooLarge),
        ] {
            assert_eq!(Usdc::parse(text), Err(error), "{text}");
        }
        assert_eq!(Usdc::parse("-0"), Ok(Usdc::ZERO));
    }

    #[test]
    fn amounts_as_text_are_digits_and_a_point() {
        for (text, micro) in [("0", 0), ("12.50", 12_500_000), ("0.000001", 1), ("007", 7_000_000)] {
            assert_eq!(Usdc::parse_plain(text).map(Usdc::micro), Ok(micro), "{text}");
        }
        let largest = Usdc::from_micro(u64::MAX);
        assert_eq!(Usdc::parse_plain(&largest.to_string()), Ok(largest));
        for (text, error) in [
            ("1e3", AmountError::NotPlain),
            ("1E-5", AmountError::NotPlain),
            ("", AmountError::NotPlain),
            (".5", AmountError::NotPlain),
            ("1.", AmountError::NotPlain),
            ("1.2.3", AmountError::NotPlain),
            ("+1", AmountError::NotPlain),
            (" 1", AmountError::NotPlain),
            ("1,000", AmountError::NotPlain),
            ("1_000", AmountError::NotPlain),
            ("--1", AmountError::NotPlain),
            ("１", AmountError::NotPlain),
            ("-1", AmountError::Negative),
            ("1.0000000", AmountError::TooFine),
            ("18446744073709.551616", AmountError::TooLarge),
            ("99999999999999999999999999999999999999999", AmountError::TooLarge),
        ] {
            assert_eq!(Usdc::parse_plain(text), Err(error), "{text}");
        }
    }

    #[test]
    fn caps_are_rounded_down_and_never_dropped() {
        for (text, micro) in [
            ("0.30000000000000004", 300_000),
            ("0.0050000001", 5_000),
            ("1e-07", 0),
            ("1e-400", 0),
            ("0.123456789012345678901234567890123456", 123_456),
            ("1e30", u64::MAX),
            ("2", 2_000_000),
        ] {
            assert_eq!(Usdc::parse_cap(text).map(Usdc::micro), Ok(micro), "{text}");
        }
        for text in ["", "NaN", "inf", "-0.0000001", "-1", "0x1"] {
            assert!(Usdc::parse_cap(text).is_err(), "{text}");
        }
    }

    #[test]
    fn arithmetic_is_checked() {
        assert_eq!(Usdc::ZERO.checked_sub(Usdc::from_micro(1)), None);
        assert_eq!(Usdc::from_micro(u64::MAX).checked_add(Usdc::from_micro(1)), None);
    }
}
