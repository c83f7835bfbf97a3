//! Tools that look things up: registers and databases by rows, places, vehicles.

pub mod local;
pub mod lookups;
pub mod vehicle_identification;
