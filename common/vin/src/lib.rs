//! Decodes vehicle identification numbers (VINs): the maker, the vehicle's data, and what is wrong with the number.
//!
//! Everything happens in memory. The data is a snapshot of the US government's vPIC database, made by
//! `assets/vpic/import.py` and compiled in.
//!
//! - [`Vin`]: a well-formed number with its check digit and year code.
//! - `pattern`: matches a number with the keys of vPIC's facts.
//! - `vpic`: reads the compiled-in data, one small block at a time.
//! - `resolve`: finds the maker, the model year and the facts of a number.
//! - `suggest`: finds the number that was probably meant.
//! - [`decode`]: combines all of it into an answer, with notes in plain English.
//!
//! ```
//! let vin = vin::Vin::parse("1hgcm82633a004352").unwrap();
//! let car = vin::decode(&vin, None, 2026);
//! assert_eq!(car.model.as_deref(), Some("Accord"));
//! assert_eq!(car.model_year, Some(2003));
//! assert!(car.check_digit_valid && car.notes.is_empty());
//! ```

pub mod decode;
mod notes;
mod number;
mod pattern;
mod resolve;
#[cfg(test)]
mod round_trip;
mod suggest;
mod vpic;

pub use decode::{Decoded, decode};
pub use number::{Vin, VinError};
pub use vpic::data_date;
