//! Local businesses, from a provider that the operator chose (`PLACES_PROVIDERS`), and public tenders, from SAM.gov.
//! Without a provider the job fails and is refunded.

mod business;
mod google;
mod overpass;
mod resolve;
mod search;
mod solicitations;

tools::family!(search, resolve, solicitations);
