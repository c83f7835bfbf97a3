//! The VIN decoder against the source data, known vehicles, and arbitrary input.

mod cases;
mod properties;
mod vehicles;
