//! Tools about people and companies: enrichment (profiles, searches, e-mail finding), verification (e-mail addresses,
//! identity), and the vendors behind them. Nobody on the opt-out list is looked up or shown ([`opt_out`]). Start with
//! [`enrichment`] and [`verification`]; [`vendors`] has the trait that every people vendor implements. docs/PEOPLE.md and
//! docs/VERIFYING.md describe the tools.

pub mod enrichment;
pub mod opt_out;
pub mod rdap;
pub mod stripe;
pub mod vendors;
pub mod verification;
