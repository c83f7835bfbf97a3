//! Web search, by the configured providers or by this service's own index.
//!
//! | module | what it does |
//! |---|---|
//! | [`vendors`] | outside search engines, one file each |
//! | [`address`] | normal forms of addresses, and whether an address may be shown to others |
//! | [`plain`] | untrusted titles, snippets and dates as short plain text |
//! | [`index`] | the index of pages this service has read, in the blob store |
//! | [`seeds`] | pages, sitemaps and feeds that the operator adds to the index |

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

/// Longest title, snippet and site name, in characters.
const MAX_TITLE: usize = 300;
const MAX_SNIPPET: usize = 500;
const MAX_SITE: usize = 100;
/// Time kept for the own index in case every provider fails.
const FOR_INDEX: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    pub text: String,
    /// Maximum number of hits to return.
    pub max_results: usize,
}

/// The hits, best first. No hits is a valid result.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub hits: Vec<Hit>,
    /// Total number of hits, if known.
    pub total: Option<u64>,
    pub source: Source,
    /// Size of the own index, if that answered.
    pub index: Option<Extent>,
}

/// Size and freshness of the own index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub pages: u64,
    /// When a page was last added or removed.
    pub updated_at: Timestamp,
}

/// A page that was found. Its address is untrusted: fetch it only with the guarded client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub title: String,
    pub url: String,
    pub snippet: Option<String>,
    /// RFC 3339, or a date alone.
    pub published_at: Option<String>,
    /// Name of the site, or its host.
    pub site: Option<String>,
}

/// Everything a search uses.
pub struct Search<'a> {
    pub config: &'a ProvidersConfig,
    pub outbound: &'a Outbound,
    pub index: &'a Reader,
    /// The database and blob store that hold the index.
    pub db: &'a Db,
    pub blobs: &'a dyn Blobs,
    pub now: Timestamp,
}

impl Search<'_> {
    /// Asks the configured providers in their order, then the own index, until one answers or the deadline passes.
    pub async fn find(&self, query: &Query, deadline: Instant) -> Result<Found, ToolError> {
        // Unknown names are rejected at startup.
        let named = self.config.order(Capability::Search).iter();
        let order: Vec<&Vendor> = named.filter_map(|name| vendors::find(name)).collect();
        let mut failed = None;
        for (index, vendor) in order.iter().enumerate() {
            // Split the remaining time, so that one hanging provider leaves time for the others.
            let (now, left) = (Instant::now(), (order.len() - index) as u32);
            let until = now + deadline.saturating_duration_since(now).saturating_sub(FOR_INDEX) / left;
            match self.ask(vendor, query, until).await {
                Ok(found) => return Ok(found),
                Err(error) => {
                    log::failure("a search provider failed", &format_args!("{} {error}", vendor.name));
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
            // If the index fails too (an empty index is an error), the providers' error is reported.
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
        let unreadable = || OutboundError::Unreadable("the answer does not have the documented shape".to_owned());
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

/// Hits that may be passed on: only http and https addresses, each page once, strings cleaned and shortened.
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
