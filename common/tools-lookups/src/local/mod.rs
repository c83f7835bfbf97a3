//! Local businesses, from a provider that the operator chose (`PLACES_PROVIDERS`), and public tenders, from SAM.gov.
//! Without a provider the job fails and is refunded.

mod business;
mod google;
mod overpass;
mod resolve;
mod search;
mod solicitations;

/// What the providers charge.
pub const CHARGES: [platform::providers::Charge; 2] = [google::CHARGE, overpass::CHARGE];

tools::family!(search, resolve, solicitations);
