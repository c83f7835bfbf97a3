//! Search: pages about something, from the providers that are configured, or from this service's own index.

use crate::outcome::{Source, ToolError, Unavailable};
use crate::tools::Toolbox;

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    pub text: String,
    /// Most hits that are wanted.
    pub max_results: usize,
}

/// What was found, best first. None is a result like any other.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub hits: Vec<Hit>,
    /// How many there are in all, where that is known.
    pub total: Option<u64>,
    pub source: Source,
}

/// A page that was found. Its address came from a stranger: only the guarded client may fetch it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub title: String,
    pub url: String,
    pub snippet: Option<String>,
    /// As RFC 3339, or a date alone.
    pub published_at: Option<String>,
    /// The site it is on.
    pub site: Option<String>,
}

impl Toolbox {
    /// Looks for pages, until the deadline.
    pub async fn find_pages(&self, query: &Query, deadline: tokio::time::Instant) -> Result<Found, ToolError> {
        let _ = (query, deadline);
        Err(ToolError::unavailable(Unavailable::ProviderNotConfigured, "this deployment has no search yet"))
    }
}
