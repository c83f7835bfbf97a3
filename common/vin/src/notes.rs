//! Notes in plain English about errors and uncertainties of a number.
//!
//! vPIC reports the same as numbered error texts. Its number 0 (no error) is an empty list here, and number 6 (too short)
//! cannot happen to a [`Vin`]. The others are named at their function.

use crate::number::Vin;
use crate::resolve::{Resolution, YearRemark};
use crate::suggest::Suggestion;
use crate::vpic::Element;

/// All notes on a number, the most important first.
pub fn all(vin: &Vin, found: &Resolution, suggestion: Option<Suggestion>) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(check_digit(vin, found));
    notes.extend(suggestion.map(|suggestion| correction(vin, suggestion)));
    notes.extend(unknown_characters(vin, found));
    notes.extend(missing_details(vin, found));
    notes.extend(vehicle_kind(found));
    notes.extend(found.year_remarks.iter().map(|&remark| year(vin, remark)));
    notes
}

/// vPIC's error 1.
fn check_digit(vin: &Vin, found: &Resolution) -> Option<String> {
    if vin.check_digit_valid() {
        return None;
    }
    let mut note = format!(
        "The check digit, position 9, is '{}' but the other characters require '{}': \
         the number may be mistyped.",
        char::from(vin.at(9)),
        char::from(vin.check_digit()),
    );
    if !vin.is_north_american() {
        note += " Vehicles built for other markets than North America need not have one, \
                 so the number may be right all the same.";
    } else if is_off_road(found) {
        note += " Off-road vehicles need not have one, so the number may be right all the same.";
    }
    Some(note)
}

/// vPIC's errors 2 and 3.
fn correction(vin: &Vin, suggestion: Suggestion) -> String {
    let position = suggestion.position;
    format!(
        "With '{}' instead of '{}' in position {position} the check digit is right and the \
         number decodes; no other change of one character does that. See suggested_vin.",
        char::from(suggestion.vin.at(position)),
        char::from(vin.at(position)),
    )
}

/// vPIC's errors 4 and 5.
fn unknown_characters(vin: &Vin, found: &Resolution) -> Option<String> {
    let shown: Vec<String> = found
        .facts
        .unknown_positions
        .iter()
        .map(|&position| format!("'{}' in position {position}", char::from(vin.at(position))))
        .collect();
    if shown.is_empty() {
        return None;
    }
    let year = match found.model_year {
        Some(year) => format!("model year {year}"),
        None => "any model year".to_owned(),
    };
    Some(format!("This maker is not known to use {} for {year}.", shown.join(" or ")))
}

/// vPIC's errors 7 and 8, and part of its 14.
fn missing_details(vin: &Vin, found: &Resolution) -> Option<String> {
    if found.maker.is_none() {
        let code = vin.maker_code();
        let positions = match code.len() {
            3 => "positions 1 to 3",
            _ => "positions 1 to 3 and 12 to 14",
        };
        return Some(format!(
            "No manufacturer with the code {} ({positions}) is registered in the United States.",
            String::from_utf8_lossy(&code)
        ));
    }
    if found.facts.is_empty() {
        return Some("The manufacturer is known, but no details of this vehicle are.".to_owned());
    }
    if found.facts.text(Element::Model).is_none() {
        return Some("The model cannot be determined from this number.".to_owned());
    }
    None
}

/// vPIC's errors 9 and 10.
fn vehicle_kind(found: &Resolution) -> Option<String> {
    let glider = found.facts.text(Element::BodyClass) == Some("Incomplete - Glider");
    if glider {
        return Some("This is a glider: a vehicle made without an engine, to be fitted with a used one.".to_owned());
    }
    is_off_road(found).then(|| {
        "This is an off-road vehicle, which need not follow the rules for these numbers: \
         details may be missing or wrong."
            .to_owned()
    })
}

fn is_off_road(found: &Resolution) -> bool {
    let body = found.facts.text(Element::BodyClass);
    body.is_some_and(|body| body.starts_with("Off-road Vehicle"))
}

/// vPIC's errors 11 and 12.
fn year(vin: &Vin, remark: YearRemark) -> String {
    let code = char::from(vin.at(10));
    match remark {
        YearRemark::NoCode => format!("Position 10 is '{code}', which stands for no model year."),
        YearRemark::NotYet => {
            format!("Position 10 is '{code}', which stands for no model year that has come yet.")
        }
        YearRemark::GivenIgnored(given) => format!(
            "The model year given, {given}, does not fit position 10, which is '{code}': \
             it was not used."
        ),
        YearRemark::Uncertain { taken, other } => format!(
            "Position 10 is '{code}', which stands for {} and {}. {taken} was used; if you \
             know the model year, give it.",
            taken.min(other),
            taken.max(other),
        ),
        YearRemark::Unusual { taken, other } => format!(
            "Position 7 is '{}', which indicates model year {other}, but this maker is only \
             described for {taken}, which was used.",
            char::from(vin.at(7)),
        ),
    }
}
