//! People and companies, from the vendors that keep them: one trait, and a file for each vendor.
//!
//! Vendors are asked in the order of `PEOPLE_PROVIDERS`, the next one where one knows nobody, cannot be asked this, or fails.
//! What they say is a stranger's text: it is cleaned and bounded here, where it arrives.

mod about;
mod apollo;
mod hunter;
mod pdl;
mod phones;
mod read;

use base::tool_result::{Source, ToolError, Unavailable};
use platform::providers::outbound::{Outbound, OutboundError};
use platform::store::BoxFuture;
use serde::Serialize;
use tokio::time::Instant;

pub use about::{is_about, is_at, is_of, keep_companies, keep_people};
pub use read::{clean, domain_of, email_of, plain_email, profile_name, profile_url};

/// Every vendor there is an adapter for, by name: who only checks a name links no adapter.
pub const VENDORS: [&str; 3] = ["peopledatalabs", "apollo", "hunter"];

fn adapter(name: &str) -> Option<&'static dyn PeopleSource> {
    let adapters: [&dyn PeopleSource; VENDORS.len()] = [&pdl::PeopleDataLabs, &apollo::Apollo, &hunter::Hunter];
    adapters.into_iter().find(|vendor| vendor.name() == name)
}

/// A person, as the contract shows one (§5). What is not known is null or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Person {
    pub full_name: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub title: Option<String>,
    pub company: Option<String>,
    pub company_domain: Option<String>,
    /// Carried as it was given, and never fetched.
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
    /// Nobody fills in phones later: always false.
    pub phones_pending: bool,
    /// Profiles on other sites, for the dossier.
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
    /// ISO 3166-1 alpha-2, where the number tells it.
    pub country: Option<&'static str>,
}

/// A company, as the contract shows one (§5).
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

/// Who is looked for: whatever is known of one person.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PersonQuery {
    pub email: Option<String>,
    pub profile_url: Option<String>,
    pub name: Option<String>,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub company: Option<String>,
    pub company_domain: Option<String>,
    /// Phones are asked for only where the caller wants them.
    pub phones: bool,
}

/// Which company is looked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompanyQuery {
    pub domain: Option<String>,
    pub name: Option<String>,
    pub linkedin_url: Option<String>,
    pub ticker: Option<String>,
}

/// What people are looked for: any of the values of each list, and all of the lists.
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

/// What companies are looked for.
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

/// A page of what was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// How many there are in all, as far as the vendor says.
    pub total: u64,
}

/// What a vendor knows of one thing.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply<T> {
    Found(T),
    /// It was asked, and knows nobody.
    Nothing,
    /// Whom it is about asked the vendor not to be found.
    Objected,
}

/// What a vendor is asked with.
pub struct Asking<'a> {
    pub outbound: &'a Outbound,
    pub deadline: Instant,
}

/// A question that goes out, or `None` where the vendor cannot be asked it.
pub type Answer<'a, T> = Option<BoxFuture<'a, Result<Reply<T>, OutboundError>>>;

/// A vendor of what is known about people and companies. It is asked only what it can answer.
pub trait PeopleSource: Send + Sync {
    /// As `PEOPLE_PROVIDERS`, `PROVIDER_KEYS` and `PROVIDER_URLS` name it.
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

    /// The address of somebody at a company, by name and domain.
    fn email<'a>(&'a self, _ask: &'a Asking<'a>, _who: &'a PersonQuery) -> Answer<'a, String> {
        None
    }
}

/// What all vendors together know.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked<T> {
    Found(T, Source),
    /// Somebody was asked, and nobody knows.
    Nothing(Source),
    /// Nobody could be asked.
    Nobody,
}

/// Asks one vendor after the other until one knows. What one found that is no answer to the question (`is_answer`, which may
/// leave parts of it out) is nothing. Fails if all that were asked failed, and at once if somebody objected.
pub async fn ask<'a, T>(
    ask: &'a Asking<'a>,
    order: &[String],
    question: impl Fn(&'static dyn PeopleSource, &'a Asking<'a>) -> Answer<'a, T>,
    is_answer: impl Fn(&mut T) -> bool,
) -> Result<Asked<T>, ToolError> {
    let (mut asked, mut failed) = (None, None);
    // A name without a vendor stopped the start.
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

/// Whom the call is about asked not to be found, us or a vendor.
pub fn objected() -> ToolError {
    ToolError::unavailable(Unavailable::OptedOut, "whom this is about asked not to be found")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vendor_that_may_be_named_has_an_adapter() {
        assert_eq!(VENDORS.map(|name| adapter(name).map(|vendor| vendor.name())), VENDORS.map(Some));
    }
}
