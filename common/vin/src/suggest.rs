//! Looks for the number that was probably meant.
//!
//! When a check digit is wrong and something else about the number is off too,
//! such as a character its maker never uses there, one mistyped character may
//! explain both. A number of which all but the check digit is well has no such
//! explanation: almost any digit of the serial number could be the wrong one.

use crate::number::{ALPHABET, LENGTH, Vin};
use crate::resolve::{Resolution, resolve};
use crate::vpic::Vpic;

/// A number one character away from the given one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suggestion {
    pub vin: Vin,
    pub position: usize,
}

/// The only number one character away that has a right check digit and decodes
/// completely. `found` is what the number decodes to as it stands.
pub fn suggest(
    vpic: &mut Vpic,
    vin: &Vin,
    found: &Resolution,
    given_year: Option<u16>,
    current_year: u16,
) -> Option<Suggestion> {
    if vin.check_digit_valid() {
        return None;
    }
    let mut survivors = suspects(found)
        .into_iter()
        .flat_map(|position| changes(vin, position))
        .filter(|change| resolve(vpic, &change.vin, given_year, current_year).is_complete());
    let only = survivors.next()?;
    survivors.next().is_none().then_some(only)
}

/// The positions that may hold the mistyped character: any, unless the vehicle
/// is known and the characters out of place are too.
fn suspects(found: &Resolution) -> Vec<usize> {
    if found.is_decoded() { found.facts.unknown_positions.clone() } else { (1..=LENGTH).collect() }
}

/// The numbers with another character at one position and a right check digit.
fn changes(vin: &Vin, position: usize) -> impl Iterator<Item = Suggestion> {
    ALPHABET
        .iter()
        .filter(move |&&character| character != vin.at(position))
        .map(move |&character| Suggestion { vin: vin.with(position, character), position })
        .filter(|change| change.vin.check_digit_valid())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggestion(text: &str) -> Option<Suggestion> {
        let mut vpic = Vpic::open();
        let vin = Vin::parse(text).unwrap();
        let found = resolve(&mut vpic, &vin, None, 2026);
        suggest(&mut vpic, &vin, &found, None, 2026)
    }

    #[test]
    fn a_mistyped_maker_or_descriptor_is_found() {
        // The right number is 1HGCM82633A004352.
        for (position, text) in [(4, "1HGZM82633A004352"), (5, "1HGCX82633A004352")] {
            let suggestion = suggestion(text).unwrap();
            assert_eq!(suggestion.vin.as_str(), "1HGCM82633A004352");
            assert_eq!(suggestion.position, position);
        }
    }

    #[test]
    fn nothing_is_suggested_without_a_single_answer() {
        // Right as it is; all well but for the check digit; a mistyped serial
        // number; and nothing but zeros.
        for text in ["1HGCM82633A004352", "1HGCM82643A004352", "1HGCM82633A004353", "00000000000000000"] {
            assert_eq!(suggestion(text), None, "{text}");
        }
    }
}
