//! Enrichment and discovery: profiles of people and companies (docs/PEOPLE.md).
//!
//! Configured vendors are asked first. If there is none, or none has a record, a company is read from its own site, DNS and
//! RDAP; a person from the caller's input, the company's site and the pages of the index. Nothing is invented: every value
//! names its source, and a guess is marked as one. Professional networks are never read.
//!
//! All six tools end by one rule if nothing is found ([`Missed`]): if a vendor or a source of our own answered, the miss is
//! a result and is charged. If every source failed, or only our own index could be searched, the job fails and is refunded.

pub mod company;
pub mod company_search;
pub mod dossier;
pub mod email;
pub mod input;
pub mod people_search;
mod person;
pub mod profile;
mod schema;
mod site;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use platform::config::Capability;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::spec::Need;
use tools::{Output, Source, Task, ToolError, Toolbox, Unavailable};
use web::search::{Hit, Query};

use crate::opt_out::{self, Marks};
use crate::vendors::{self, Answer, Asked, Asking, Page, PeopleSource};

/// How long results are kept: they hold personal data.
pub const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// Time reserved for writing the answer.
const RESERVE: Duration = Duration::from_secs(3);

/// Requirements of a call: none if it names a site or address that can be looked up directly; otherwise a people vendor, or
/// pages to search.
fn needs(names_a_site: bool) -> Vec<Need> {
    match names_a_site {
        true => Vec::new(),
        false => vec![Need::Provider(Capability::People), Need::Provider(Capability::Search), Need::Pages],
    }
}

tools::family!(people_search, company_search, dossier, profile, email, company);

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The member of the result.
    pub field: &'static str,
    /// `input`, `site`, `index`, `dns`, `rdap`, `guess`, or a vendor's name.
    pub source: &'static str,
    /// The page or record, if there is one.
    pub url: Option<String>,
}

/// A value made by a rule, and checked as far as possible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Guess {
    pub field: &'static str,
    pub value: String,
    /// The rule that made it.
    pub basis: &'static str,
    /// `domain_takes_mail`, `domain_takes_no_mail` or `unverified`.
    pub status: &'static str,
}

/// One running call.
struct Enquiry {
    toolbox: Arc<Toolbox>,
    task: Task,
    deadline: Instant,
}

impl Enquiry {
    fn new(toolbox: Arc<Toolbox>, task: Task) -> Enquiry {
        let left = (task.deadline.millis() - toolbox.clock.now().millis()).max(0).unsigned_abs();
        let left = Duration::from_millis(left).min(task.tool.deadline).saturating_sub(RESERVE);
        Enquiry { toolbox, task, deadline: Instant::now() + left }
    }

    fn asking(&self) -> Asking<'_> {
        // Vendors get two thirds of the time; the rest is for our own lookup.
        let left = self.deadline.saturating_duration_since(Instant::now());
        Asking { outbound: &self.toolbox.outbound, deadline: Instant::now() + left * 2 / 3 }
    }

    /// Asks the vendors. Returns a matching record, or why there is none ([`Missed`]). Fails if the subject opted out at a
    /// vendor: then our own lookup is skipped too.
    async fn vendors<'a, T>(
        &'a self,
        asking: &'a Asking<'a>,
        question: impl Fn(&'static dyn PeopleSource, &'a Asking<'a>) -> Answer<'a, T>,
        is_answer: impl Fn(&mut T) -> bool,
    ) -> Result<Result<(T, Source), Missed>, ToolError> {
        let order = self.toolbox.config.providers.order(Capability::People);
        if !order.is_empty() {
            self.task.reporter.say(10, "asking people vendors");
        }
        match vendors::ask(asking, order, question, is_answer).await {
            Ok(Asked::Found(found, source)) => Ok(Ok((found, source))),
            Ok(Asked::Nothing(source)) => Ok(Err(Missed::Unknown(source))),
            Ok(Asked::Nobody) => Ok(Err(Missed::NotAsked)),
            Err(error) if error == vendors::objected() => Err(error),
            Err(error) => Ok(Err(Missed::Failed(error))),
        }
    }

    /// The answer of a search, without rows on the opt-out list.
    async fn listed<T: Serialize>(
        &self,
        page: Page<T>,
        filters: Value,
        sources: Vec<Origin>,
        source: Source,
    ) -> Result<Output, ToolError>
    where
        for<'a> Marks: From<&'a T>,
    {
        let before = page.rows.len();
        let kept = opt_out::without_listed(&self.toolbox.db, page.rows).await;
        let rows = kept.map_err(|error| ToolError::internal(error.to_string()))?;
        let left_out = (before - rows.len()) as u64;
        let result = json!({
            "status": "completed",
            "total_found": page.total.max(before as u64) - left_out,
            "results": rows,
            "filters": filters,
            "sources": sources,
            "completed_at": self.now(),
        });
        Ok(Output::new(result, source))
    }

    /// Fails if any of these marks is on the opt-out list.
    async fn refuse_listed(&self, marks: &Marks) -> Result<(), ToolError> {
        match opt_out::lists(&self.toolbox.db, marks).await {
            Ok(false) => Ok(()),
            Ok(true) => Err(vendors::objected()),
            Err(error) => Err(ToolError::internal(error.to_string())),
        }
    }

    /// Pages about the text, from the index or a search provider, without professional networks.
    async fn pages(&self, text: String, max_results: usize) -> Result<Vec<Hit>, ToolError> {
        self.task.reporter.say(40, "searching known pages");
        let found = self.toolbox.find_pages(&Query { text, max_results }, self.deadline).await?;
        Ok(found.hits.into_iter().filter(|hit| !site::is_network(&hit.url)).collect())
    }

    fn now(&self) -> String {
        self.toolbox.clock.now().to_string()
    }
}

/// Why no vendor had a record.
#[derive(Debug)]
enum Missed {
    /// A vendor answered: it has no record, or only one that does not match.
    Unknown(Source),
    /// Every vendor that was asked failed.
    Failed(ToolError),
    /// No vendor is configured that supports this query.
    NotAsked,
}

impl Missed {
    /// Decides the outcome if our own lookup found nothing either: the source of a charged miss, or the error of a refunded
    /// failure. `unasked` is called if no vendor could be asked.
    fn ends(self, unasked: impl FnOnce() -> Result<Source, ToolError>) -> Result<Source, ToolError> {
        match self {
            Missed::Unknown(source) => Ok(source),
            Missed::Failed(error) => Err(error),
            Missed::NotAsked => unasked(),
        }
    }
}

/// The error if nothing was found and no vendor was asked. `search` is the error of the page search, if any.
fn nobody_knows(search: Option<&ToolError>) -> ToolError {
    match search {
        Some(error) if error.reason.as_deref() != Some(Unavailable::NotInLocalIndex.as_str()) => {
            ToolError::unavailable(
                Unavailable::ProviderNotConfigured,
                "no people vendor configured here (PEOPLE_PROVIDERS) can answer this, and nothing was found without one",
            )
        }
        _ => ToolError::unavailable(
            Unavailable::NotInLocalIndex,
            "no people vendor configured here (PEOPLE_PROVIDERS) can answer this, and no known page does",
        ),
    }
}

/// One origin for a whole result from a vendor.
fn all_from(source: &Source, field: &'static str) -> Vec<Origin> {
    vec![Origin { field, source: source.provider, url: None }]
}
