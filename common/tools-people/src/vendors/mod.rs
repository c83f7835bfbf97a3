//! Vendors of data about people and companies: one trait ([`PeopleSource`]), one file per vendor.
//!
//! Vendors are asked in the order of `PEOPLE_PROVIDERS`. The next one is asked if one knows nothing, does not support the
//! query, or fails. Their strings are untrusted: they are cleaned and bounded when they are read (`read.rs`).

mod about;
mod apollo;
mod hunter;
mod pdl;
mod phones;
mod read;

use base::tool_result::{Source, ToolError, Unavailable};
use platform::providers::Charge;
use platform::providers::outbound::{Outbound, OutboundError};
use platform::store::BoxFuture;
use serde::Serialize;
use tokio::time::Instant;

pub use about::{is_about, is_at, is_of, keep_companies, keep_people};
pub use read::{clean, domain_of, email_of, plain_email, profile_name, profile_url};

/// Names of all vendors with an adapter. They are a constant, so that code that only checks names links no adapter.
pub const VENDORS: [&str; 3] = ["peopledatalabs", "apollo", "hunter"];

/// What they charge.
pub const CHARGES: [Charge; 4] = [pdl::CHARGES[0], pdl::CHARGES[1], apollo::CHARGE, hunter::CHARGE];

fn adapter(name: &str) -> Option<&'static dyn PeopleSource> {
    let adapters: [&dyn PeopleSource; VENDORS.len()] = [&pdl::PeopleDataLabs, &apollo::Apollo, &hunter::Hunter];
    adapters.into_iter().find(|vendor| vendor.name() == name)
}

/// A person, as the API returns one. Unknown values are null or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Person {
    pub full_name: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub title: Option<String>,
    pub company: Option<String>,
    pub company_domain: Option<String>,
    /// Passed through as given, never fetched.
    pub linkedin_url: Option<String>,
    pub location: Option<String>,
    pub email: Option<String>,
    pub phone: Option<String>,
    pub summary: Option<String>,
    pub skills: Vec<String>,
    pub experience: Vec<Experience>,
    pub education: Vec<Education>,
    pub fullphone: Vec<Phone>,
    pub altemails: Vec<String>,
    pub best_work_email: Option<String>,
    pub best_personal_email: Option<String>,
    /// Always false: phones are never filled in later.
    pub phones_pending: bool,
    /// Profiles on other sites as (network, URL), for the dossier.
    #[serde(skip)]
    pub profiles: Vec<(String, String)>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Experience {
    pub company: Employer,
    pub title: Named,
    pub start_date: Option<String>,
    pub end_date: Option<String>,
    pub is_primary: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Employer {
    pub name: Option<String>,
    pub website: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Named {
    pub name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Education {
    pub school: Named,
    pub degrees: Vec<String>,
    pub majors: Vec<String>,
    pub start_date: Option<String>,
    pub end_date: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Phone {
    pub fullphone: String,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// ISO 3166-1 alpha-2, if the number shows it.
    pub country: Option<&'static str>,
}

/// A company, as the API returns one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Company {
    pub name: Option<String>,
    pub domain: Option<String>,
    pub industry: Option<String>,
    pub location: Option<String>,
    /// A range such as `51-200`.
    pub size: Option<String>,
    pub employee_count: Option<u64>,
    pub funding_stage: Option<String>,
    pub description: Option<String>,
    pub linkedin_url: Option<String>,
    pub website: Option<String>,
    pub founded: Option<u64>,
    pub ticker: Option<String>,
    pub phone: Option<String>,
    pub tags: Vec<String>,
}

/// What the caller knows about one person.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PersonQuery {
    pub email: Option<String>,
    pub profile_url: Option<String>,
    pub name: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub company: Option<String>,
    pub company_domain: Option<String>,
    /// Whether to request phone numbers, which cost more at some vendors.
    pub phones: bool,
}

/// What the caller knows about one company.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompanyQuery {
    pub domain: Option<String>,
    pub name: Option<String>,
    pub linkedin_url: Option<String>,
    pub ticker: Option<String>,
}

/// Filter of a people search. A row must match every list that is not empty, with any of its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PeopleFilter {
    pub job_titles: Vec<String>,
    pub keywords: Vec<String>,
    pub companies: Vec<String>,
    pub company_domains: Vec<String>,
    pub location: Vec<String>,
    pub skills: Vec<String>,
    pub seniority: Vec<String>,
    pub industry: Vec<String>,
    pub company_size: Option<String>,
    pub limit: usize,
    pub offset: usize,
    pub phones: bool,
}

/// Filter of a company search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompanyFilter {
    pub name: Option<String>,
    pub domain: Option<String>,
    pub industry: Vec<String>,
    pub location: Vec<String>,
    pub size: Option<String>,
    pub min_employees: Option<u64>,
    pub max_employees: Option<u64>,
    pub funding_stage: Option<String>,
    pub tags: Vec<String>,
    pub limit: usize,
}

/// One page of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// Total number of matches, as far as the vendor says.
    pub total: u64,
}

/// A vendor's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply<T> {
    Found(T),
    /// The vendor was asked and has no record.
    Nothing,
    /// The person or company opted out at the vendor.
    Objected,
}

/// The client and deadline with which an adapter sends a request.
pub struct Asking<'a> {
    pub outbound: &'a Outbound,
    pub deadline: Instant,
}

/// The pending answer; `None` if the vendor does not support the query.
pub type Answer<'a, T> = Option<BoxFuture<'a, Result<Reply<T>, OutboundError>>>;

/// A vendor of data about people and companies. Each method defaults to "not supported".
pub trait PeopleSource: Send + Sync {
    /// The name used in `PEOPLE_PROVIDERS`, `PROVIDER_KEYS` and `PROVIDER_URLS`.
    fn name(&self) -> &'static str;

    fn person<'a>(&'a self, _ask: &'a Asking<'a>, _who: &'a PersonQuery) -> Answer<'a, Person> {
        None
    }

    fn people<'a>(&'a self, _ask: &'a Asking<'a>, _filter: &'a PeopleFilter) -> Answer<'a, Page<Person>> {
        None
    }

    fn company<'a>(&'a self, _ask: &'a Asking<'a>, _which: &'a CompanyQuery) -> Answer<'a, Company> {
        None
    }

    fn companies<'a>(&'a self, _ask: &'a Asking<'a>, _filter: &'a CompanyFilter) -> Answer<'a, Page<Company>> {
        None
    }

    /// The e-mail address of a person at a company, by name and domain.
    fn email<'a>(&'a self, _ask: &'a Asking<'a>, _who: &'a PersonQuery) -> Answer<'a, String> {
        None
    }
}

/// The combined outcome of all vendors.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked<T> {
    Found(T, Source),
    /// At least one vendor answered, and none has a record.
    Nothing(Source),
    /// No vendor could be asked.
    Nobody,
}

/// Asks the vendors in order until one has a record that passes `is_answer`, which may also remove parts of it. Fails if
/// every vendor that was asked failed, and at once if the subject opted out at a vendor.
pub async fn ask<'a, T>(
    ask: &'a Asking<'a>,
    order: &[String],
    question: impl Fn(&'static dyn PeopleSource, &'a Asking<'a>) -> Answer<'a, T>,
    is_answer: impl Fn(&mut T) -> bool,
) -> Result<Asked<T>, ToolError> {
    let (mut asked, mut failed) = (None, None);
    // Unknown names are refused at startup.
    for vendor in order.iter().filter_map(|name| adapter(name)) {
        let Some(reply) = question(vendor, ask) else { continue };
        match reply.await {
            Ok(Reply::Found(mut found)) => {
                if is_answer(&mut found) {
                    return Ok(Asked::Found(found, Source::upstream(vendor.name(), None)));
                }
                asked.get_or_insert(vendor.name());
            }
            Ok(Reply::Nothing) => drop(asked.get_or_insert(vendor.name())),
            Ok(Reply::Objected) => return Err(objected()),
            Err(error) => drop(failed.get_or_insert(error.of(vendor.name()))),
        }
    }
    match (asked, failed) {
        (Some(vendor), _) => Ok(Asked::Nothing(Source::upstream(vendor, None))),
        (None, Some(error)) => Err(error),
        (None, None) => Ok(Asked::Nobody),
    }
}

/// The error for a subject who opted out, here or at a vendor.
pub fn objected() -> ToolError {
    ToolError::unavailable(Unavailable::OptedOut, "the person or company in question has opted out of being found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vendor_name_has_an_adapter() {
        assert_eq!(VENDORS.map(|name| adapter(name).map(|vendor| vendor.name())), VENDORS.map(Some));
    }
}
