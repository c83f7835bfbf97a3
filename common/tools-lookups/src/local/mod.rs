//! Local businesses and public tenders (contract §27): found by a provider that the operator chose (`PLACES_PROVIDERS`), and
//! by SAM.gov. Without one there is nothing honest to answer with, and the job fails and is paid back.

mod business;
mod google;
mod overpass;
mod resolve;
mod search;
mod solicitations;

tools::family!(search, resolve, solicitations);
