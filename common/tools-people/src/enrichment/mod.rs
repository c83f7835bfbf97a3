//! Enrichment and discovery: profiles of people and companies (contract §5, §6; docs/PEOPLE.md).
//!
//! Vendors that the operator configured are asked first. Without one, or where none knows: a company is read off its own
//! site, DNS and RDAP; a person off what the caller gave, the firm's own site and the pages of our index. Nothing is made up:
//! every value says where it is from, and a guess is called one. Professional networks are never read.
//!
//! How it ends where nobody knows is one rule for all six tools ([`Missed`]): a miss is a result where somebody who keeps
//! such records answered. Where all who were asked failed, or nobody could be asked but our own index, the job fails and is
//! paid back.

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

/// Results hold personal data, and are deleted after so long.
pub const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// What is kept of a deadline for writing the answer.
const RESERVE: Duration = Duration::from_secs(3);

/// What a call needs: nothing, if it names a site or an address that we look at ourselves; else somebody who keeps such
/// records, or pages to look in.
fn needs(names_a_site: bool) -> Vec<Need> {
    match names_a_site {
        true => Vec::new(),
        false => vec![Need::Provider(Capability::People), Need::Provider(Capability::Search), Need::Pages],
    }
}

tools::family!(people_search, company_search, dossier, profile, email, company);

/// Where a value is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The result's member.
    pub field: &'static str,
    /// `input`, `site`, `index`, `dns`, `rdap`, `guess`, or a vendor's name.
    pub source: &'static str,
    /// The page or record, where there is one.
    pub url: Option<String>,
}

/// A value nobody said: made of a rule, and checked as far as it can be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Guess {
    pub field: &'static str,
    pub value: String,
    /// The rule it was made by.
    pub basis: &'static str,
    /// What is known of it: `domain_takes_mail`, `domain_takes_no_mail`, `unverified`.
    pub status: &'static str,
}

/// One enquiry, from its start to its end.
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
        // Vendors have two thirds of the time, so that something is left to look for ourselves.
        let left = self.deadline.saturating_duration_since(Instant::now());
        Asking { outbound: &self.toolbox.outbound, deadline: Instant::now() + left * 2 / 3 }
    }

    /// Asks the vendors: what one found that is an answer to the question, or what is left to say where none knows. Fails
    /// where somebody objected: whoever objected anywhere is left alone here, too.
    async fn vendors<'a, T>(
        &'a self,
        asking: &'a Asking<'a>,
        question: impl Fn(&'static dyn PeopleSource, &'a Asking<'a>) -> Answer<'a, T>,
        is_answer: impl Fn(&mut T) -> bool,
    ) -> Result<Result<(T, Source), Missed>, ToolError> {
        let order = self.toolbox.config.providers.order(Capability::People);
        if !order.is_empty() {
            self.task.reporter.say(10, "asking who keeps such records");
        }
        match vendors::ask(asking, order, question, is_answer).await {
            Ok(Asked::Found(found, source)) => Ok(Ok((found, source))),
            Ok(Asked::Nothing(source)) => Ok(Err(Missed::Unknown(source))),
            Ok(Asked::Nobody) => Ok(Err(Missed::NotAsked)),
            Err(error) if error == vendors::objected() => Err(error),
            Err(error) => Ok(Err(Missed::Failed(error))),
        }
    }

    /// A search's answer: the rows, without who does not want to be found.
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

    /// Refuses what is about somebody who asked not to be found.
    async fn refuse_listed(&self, marks: &Marks) -> Result<(), ToolError> {
        match opt_out::lists(&self.toolbox.db, marks).await {
            Ok(false) => Ok(()),
            Ok(true) => Err(vendors::objected()),
            Err(error) => Err(ToolError::internal(error.to_string())),
        }
    }

    /// Pages of the index (or of a search provider) about something, without those of professional networks.
    async fn pages(&self, text: String, max_results: usize) -> Result<Vec<Hit>, ToolError> {
        self.task.reporter.say(40, "looking through pages that are known here");
        let found = self.toolbox.find_pages(&Query { text, max_results }, self.deadline).await?;
        Ok(found.hits.into_iter().filter(|hit| !site::is_network(&hit.url)).collect())
    }

    fn now(&self) -> String {
        self.toolbox.clock.now().to_string()
    }
}

/// What is to be said of the vendors where none of them knows.
#[derive(Debug)]
enum Missed {
    /// One of them answered that it knows nothing, or told of something else.
    Unknown(Source),
    /// All that were asked failed.
    Failed(ToolError),
    /// There is none who could be asked this.
    NotAsked,
}

impl Missed {
    /// How it ends where our own look came to nothing, too: a miss that is charged, by who missed it, or a failure that is
    /// paid back. `unasked` is how it ends where no vendor could be asked.
    fn ends(self, unasked: impl FnOnce() -> Result<Source, ToolError>) -> Result<Source, ToolError> {
        match self {
            Missed::Unknown(source) => Ok(source),
            Missed::Failed(error) => Err(error),
            Missed::NotAsked => unasked(),
        }
    }
}

/// How it ends where nothing was found and no vendor was asked: `search` is what looking through the index came to.
fn nobody_knows(search: Option<&ToolError>) -> ToolError {
    match search {
        Some(error) if error.reason.as_deref() != Some(Unavailable::NotInLocalIndex.as_str()) => {
            ToolError::unavailable(
                Unavailable::ProviderNotConfigured,
                "nobody who keeps such records is configured, and nothing was found without one",
            )
        }
        _ => ToolError::unavailable(
            Unavailable::NotInLocalIndex,
            "nobody who keeps such records is configured, and no page that is known here says anything",
        ),
    }
}

/// Where a whole result is from: the vendor that had it.
fn all_from(source: &Source, field: &'static str) -> Vec<Origin> {
    vec![Origin { field, source: source.provider, url: None }]
}
