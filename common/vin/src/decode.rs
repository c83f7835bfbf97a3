//! Combines maker, year, facts and notes into the answer.

use std::str::FromStr;

use serde::Serialize;

use crate::notes;
use crate::number::Vin;
use crate::resolve::{Facts, resolve};
use crate::suggest::suggest;
use crate::vpic::{Element, Vpic};

const LITRES_PER_CUBIC_INCH: f64 = 0.016387064;

/// The decoded number. Unknown values are null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decoded {
    pub vin: String,
    /// Whether make and model year are known.
    pub decoded: bool,
    pub check_digit_valid: bool,
    pub make: Option<String>,
    pub model: Option<String>,
    pub trim: Option<String>,
    pub series: Option<String>,
    pub body_class: Option<String>,
    pub vehicle_type: Option<String>,
    pub drive_type: Option<String>,
    pub fuel_type: Option<String>,
    pub transmission: Option<String>,
    pub gross_vehicle_weight_rating: Option<String>,
    pub manufacturer: Option<String>,
    pub plant_city: Option<String>,
    pub plant_state: Option<String>,
    pub plant_country: Option<String>,
    /// The number that was probably meant, if this one has an error.
    pub suggested_vin: Option<String>,
    pub model_year: Option<u16>,
    pub doors: Option<u32>,
    pub engine_cylinders: Option<u32>,
    pub engine_displacement_l: Option<f64>,
    pub engine_horsepower: Option<f64>,
    /// Errors and uncertainties of the number; empty if there are none.
    pub notes: Vec<String>,
}

/// Decodes a number. `model_year` is the year the caller knows, if any; it is used if position 10 allows it. Years after
/// `current_year` + 1 are not considered.
pub fn decode(vin: &Vin, model_year: Option<u16>, current_year: u16) -> Decoded {
    let mut vpic = Vpic::open();
    let found = resolve(&mut vpic, vin, model_year, current_year);
    let suggestion = suggest(&mut vpic, vin, &found, model_year, current_year);
    let notes = notes::all(vin, &found, suggestion);
    let make = found.make().map(str::to_owned);
    let facts = found.facts;
    let text = |element| facts.text(element).map(str::to_owned);
    let (vehicle_type, manufacturer) = match found.maker {
        Some(maker) => (maker.vehicle_type, maker.manufacturer),
        None => (None, None),
    };
    Decoded {
        vin: vin.to_string(),
        decoded: make.is_some() && found.model_year.is_some(),
        check_digit_valid: vin.check_digit_valid(),
        make,
        model: text(Element::Model),
        trim: text(Element::Trim),
        series: text(Element::Series),
        body_class: text(Element::BodyClass),
        vehicle_type,
        drive_type: text(Element::DriveType),
        fuel_type: text(Element::FuelType),
        transmission: text(Element::Transmission),
        gross_vehicle_weight_rating: text(Element::WeightRating),
        manufacturer,
        plant_city: text(Element::PlantCity),
        plant_state: text(Element::PlantState),
        plant_country: text(Element::PlantCountry),
        suggested_vin: suggestion.map(|suggestion| suggestion.vin.to_string()),
        model_year: found.model_year,
        doors: number(&facts, Element::Doors),
        engine_cylinders: number(&facts, Element::Cylinders),
        engine_displacement_l: litres(&facts),
        engine_horsepower: number(&facts, Element::Horsepower),
        notes,
    }
}

fn number<T: FromStr>(facts: &Facts, element: Element) -> Option<T> {
    facts.text(element)?.parse().ok()
}

/// The displacement in litres, converted and rounded to a cubic centimetre if the maker stated another unit.
fn litres(facts: &Facts) -> Option<f64> {
    let rounded = |litres: f64| (litres * 1000.0).round() / 1000.0;
    let cubic_centimetres = || number(facts, Element::CubicCentimetres).map(|cc: f64| cc / 1000.0);
    let cubic_inches = || number(facts, Element::CubicInches).map(|ci: f64| ci * LITRES_PER_CUBIC_INCH);
    number(facts, Element::Litres).or_else(|| cubic_centimetres().or_else(cubic_inches).map(rounded))
}
