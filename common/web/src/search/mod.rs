//! Search: pages about something, from the providers that are configured, or from this service's own index.
//!
//! | module | what it does |
//! |---|---|
//! | [`vendors`] | outside search engines, one file each |
//! | [`address`] | which addresses are one page, and which are nobody else's business |
//! | [`plain`] | strangers' titles, snippets and dates as plain, short text |
//! | [`index`] | the index of what this service has read, in the blob store |
//! | [`seeds`] | pages, sitemaps and feeds that the operator wants in it |

pub mod address;
pub mod index;
pub mod plain;
pub mod seeds;
pub mod vendors;

use std::collections::HashSet;
use std::time::Duration;

use base::clock::Timestamp;
use base::tool_result::{Source, ToolError, Unavailable};
use platform::config::{Capability, ProvidersConfig};
use platform::http::log;
use platform::providers::{Outbound, OutboundError, outbound};
use platform::store::{Blobs, Db};
use tokio::time::Instant;

use index::Reader;
use vendors::Vendor;

/// Most characters of a title and of a snippet.
const MAX_TITLE: usize = 300;
const MAX_SNIPPET: usize = 500;
const MAX_SITE: usize = 100;
/// What is left for the own index, when every provider has failed.
const FOR_INDEX: Duration = Duration::from_secs(2);

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
    /// The own index, where that was asked.
    pub index: Option<Extent>,
}

/// How much the own index holds, and how fresh it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub pages: u64,
    /// When a page last came in or went.
    pub updated_at: Timestamp,
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

/// What a search works with.
pub struct Search<'a> {
    pub config: &'a ProvidersConfig,
    pub outbound: &'a Outbound,
    pub index: &'a Reader,
    /// Where the index lies.
    pub db: &'a Db,
    pub blobs: &'a dyn Blobs,
    pub now: Timestamp,
}

impl Search<'_> {
    /// Looks for pages, until the deadline: the configured providers in their order, and when none of them answered (or
    /// there is none) the own index.
    pub async fn find(&self, query: &Query, deadline: Instant) -> Result<Found, ToolError> {
        // A name without a vendor stopped the start.
        let named = self.config.order(Capability::Search).iter();
        let order: Vec<&Vendor> = named.filter_map(|name| vendors::find(name)).collect();
        let mut failed = None;
        for (index, vendor) in order.iter().enumerate() {
            // One that hangs leaves time for the others.
            let (now, left) = (Instant::now(), (order.len() - index) as u32);
            let until = now + deadline.saturating_duration_since(now).saturating_sub(FOR_INDEX) / left;
            match self.ask(vendor, query, until).await {
                Ok(found) => return Ok(found),
                Err(error) => {
                    log::failure("a search provider was of no use", &format_args!("{} {error}", vendor.name));
                    failed = Some(error.of(vendor.name));
                }
            }
        }
        let own = async {
            let timeout = ToolError::unavailable(Unavailable::SourceUnavailable, "the index did not answer in time");
            let search = self.index.search(self.db, self.blobs, query, self.now);
            tokio::time::timeout_at(deadline, search).await.map_err(|_| timeout)?
        };
        match (own.await, failed) {
            (Ok(found), _) => Ok(found),
            // Why the providers failed says more than that there is nothing here.
            (Err(_), Some(failed)) => Err(failed),
            (Err(error), None) => Err(error),
        }
    }

    async fn ask(&self, vendor: &Vendor, query: &Query, until: Instant) -> Result<Found, OutboundError> {
        if vendor.origin.is_empty() && !self.config.urls.contains_key(vendor.name) {
            return Err(OutboundError::NotConfigured(format!("PROVIDER_URLS has no {}", vendor.name)));
        }
        let key = match vendor.needs_key {
            true => self.outbound.needed_key(vendor.name).await?.expose().to_owned(),
            false => String::new(),
        };
        let ask = (vendor.ask)(query, &key);
        let answer = self.outbound.send(vendor.name, vendor.origin, &ask, &[], until).await?;
        let unreadable = || OutboundError::Unreadable("not what its documentation says".to_owned());
        let read = (vendor.read)(&outbound::read_json(&answer)?).ok_or_else(unreadable)?;
        let request_id = read.request_id.or(answer.request_id).map(|id| plain::short(&id, 100));
        Ok(Found {
            hits: tidied(read.hits, query.max_results, self.now),
            total: read.total,
            source: Source::upstream(vendor.name, request_id.filter(|id| !id.is_empty())),
            index: None,
        })
    }
}

/// Hits as they may be passed on: addresses of the web only, each page once, texts plain and short.
pub fn tidied(hits: Vec<Hit>, most: usize, now: Timestamp) -> Vec<Hit> {
    let mut seen = HashSet::new();
    let tidy = hits.into_iter().filter_map(|hit| {
        let url = address::tidy(&hit.url)?;
        let host = url.host_str()?.to_owned();
        if !seen.insert(address::same_page(&url)) {
            return None;
        }
        let title = plain::short(&hit.title, MAX_TITLE);
        let snippet = hit.snippet.map(|text| plain::short(&text, MAX_SNIPPET)).filter(|text| !text.is_empty());
        let site = hit.site.map(|text| plain::short(&text, MAX_SITE)).filter(|text| !text.is_empty());
        Some(Hit {
            title: if title.is_empty() { host.clone() } else { title },
            url: url.into(),
            snippet,
            published_at: hit.published_at.and_then(|text| plain::date(&text, now)),
            site: Some(site.unwrap_or(host)),
        })
    });
    tidy.take(most).collect()
}
