//! Finds the number that was probably meant.
//!
//! If the check digit is wrong and something else is wrong too, such as a character the maker never uses at that position,
//! one mistyped character may explain both. If only the check digit is wrong, there is no suggestion: almost any digit of
//! the serial number could be the mistyped one.

use crate::number::{ALPHABET, LENGTH, Vin};
use crate::resolve::{Resolution, resolve};
use crate::vpic::Vpic;

/// A number that differs from the given one in one character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suggestion {
    pub vin: Vin,
    pub position: usize,
}

/// The only number that differs in one character, has a correct check digit and decodes completely; `None` if there are
/// several. `found` is the result for the number as given.
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

/// The positions to vary: all, unless the vehicle is known; then only those whose character is unknown.
fn suspects(found: &Resolution) -> Vec<usize> {
    if found.is_decoded() { found.facts.unknown_positions.clone() } else { (1..=LENGTH).collect() }
}

/// The numbers with another character at this position and a correct check digit.
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
        // The correct number is 1HGCM82633A004352.
        for (position, text) in [(4, "1HGZM82633A004352"), (5, "1HGCX82633A004352")] {
            let suggestion = suggestion(text).unwrap();
            assert_eq!(suggestion.vin.as_str(), "1HGCM82633A004352");
            assert_eq!(suggestion.position, position);
        }
    }

    #[test]
    fn nothing_is_suggested_without_a_unique_answer() {
        // Correct; only the check digit is wrong; a mistyped serial number; only zeros.
        for text in ["1HGCM82633A004352", "1HGCM82643A004352", "1HGCM82633A004353", "00000000000000000"] {
            assert_eq!(suggestion(text), None, "{text}");
        }
    }
}
