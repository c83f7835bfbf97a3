//! Tools that look up public records and reference data. [`lookups`] answers most of them from one table of rows: start
//! there, and with docs/LOOKUPS.md. [`local`] finds local businesses and public tenders. [`vehicle_identification`] decodes
//! VINs offline.

pub mod local;
pub mod lookups;
pub mod vehicle_identification;
