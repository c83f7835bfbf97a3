//! Tools about people and companies: enrichment, verification, and the vendors behind them.

pub mod enrichment;
pub mod opt_out;
pub mod rdap;
pub mod stripe;
pub mod vendors;
pub mod verification;
