//! How [`Fetcher::read`] behaves towards sites: it obeys robots.txt (RFC 9309), which it fetches once a day, and pauses
//! between two pages of a site.
//!
//! The request for robots.txt passes the same guard and counts against the page's deadline. If the rules are cached, there
//! is no extra request.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::timeout;
use url::{Position, Url};

use super::fetch::{FetchError, Fetcher};
use super::robots::{self, Rules};

/// Cache TTL of rules (RFC 9309 §2.4: at most a day), and of the fact that there are none.
const KEPT: Duration = Duration::from_secs(24 * 3600);
const KEPT_WITHOUT: Duration = Duration::from_secs(6 * 3600);
/// A site whose robots.txt cannot be read is not read for this time.
const KEPT_BROKEN: Duration = Duration::from_secs(300);
/// Maximum time for robots.txt. It counts as part of the page's time.
const ROBOTS_TIME: Duration = Duration::from_secs(5);
/// Pause between two pages of a site that sets no `Crawl-delay`.
const PAUSE: Duration = Duration::from_millis(250);
/// Maximum number of sites in the cache.
const MAX_SITES: usize = 2_000;

/// This process's cache of sites.
pub(super) struct Manners {
    /// Our product token, in lower case.
    product: String,
    sites: Mutex<HashMap<String, Site>>,
}

/// A site: scheme, host and port.
struct Site {
    said: Said,
    until: Instant,
    /// Earliest time of the next page request.
    next: Instant,
}

/// The state of a site's robots.txt.
#[derive(Clone)]
enum Said {
    Rules(Arc<Rules>),
    /// It could not be read, which forbids everything (RFC 9309 §2.3.1.4). The text says why.
    Nothing(String),
    /// It did not arrive in time.
    Silence,
}

impl Manners {
    pub(super) fn of(user_agent: &str) -> Manners {
        Manners { product: robots::token(user_agent), sites: Mutex::default() }
    }

    pub(super) fn product(&self) -> &str {
        &self.product
    }

    fn sites(&self) -> MutexGuard<'_, HashMap<String, Site>> {
        self.sites.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, site: &str) -> Option<Said> {
        let sites = self.sites();
        sites.get(site).filter(|known| known.until > Instant::now()).map(|known| known.said.clone())
    }

    fn keep(&self, site: &str, said: Said, time: Duration) {
        let now = Instant::now();
        let mut sites = self.sites();
        if sites.len() >= MAX_SITES {
            sites.retain(|_, known| known.until > now);
            // No entry has expired, so the whole cache is dropped.
            if sites.len() >= MAX_SITES {
                sites.clear();
            }
        }
        let next = sites.get(site).map_or(now, |known| known.next);
        sites.insert(site.to_owned(), Site { said, until: now + time, next });
    }

    /// Reserves the next request to a site. Returns how long to wait, or `None` if that is not before `until`.
    fn turn(&self, site: &str, pause: Duration, until: Instant) -> Option<Duration> {
        let now = Instant::now();
        let mut sites = self.sites();
        let Some(known) = sites.get_mut(site) else { return Some(Duration::ZERO) };
        let turn = known.next.max(now);
        if turn >= until {
            return None;
        }
        known.next = turn + pause;
        Some(turn - now)
    }
}

/// Boxed, because the type is recursive: waiting for permission fetches robots.txt, and fetching a page waits for
/// permission.
type Leave<'a> = Pin<Box<dyn Future<Output = Result<(), FetchError>> + Send + 'a>>;

impl Fetcher {
    /// Waits until robots.txt and the site's pause permit this page, at most until `until`.
    pub(super) fn leave<'a>(&'a self, url: &'a Url, until: Instant) -> Leave<'a> {
        Box::pin(self.wait_for_leave(url, until))
    }

    async fn wait_for_leave(&self, url: &Url, until: Instant) -> Result<(), FetchError> {
        let site = &url[..Position::BeforePath];
        let host = &url[Position::BeforeHost..Position::AfterPort];
        let said = match self.manners.known(site) {
            Some(said) => said,
            None => self.ask(site, until).await?,
        };
        let rules = match said {
            Said::Rules(rules) => rules,
            Said::Nothing(why) => {
                return Err(FetchError::Forbidden(format!(
                    "robots.txt of {host} {why}; until it can be read, this site may not be read"
                )));
            }
            Said::Silence => {
                return Err(FetchError::NotReachable(format!("robots.txt of {host} did not arrive in time")));
            }
        };
        if !rules.allow(&url[Position::BeforePath..Position::AfterQuery]) {
            return Err(FetchError::Forbidden(format!("robots.txt of {host} forbids reading this page")));
        }
        let local =
            self.policy().allows_local(url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(0));
        let pause = rules.delay.unwrap_or(if local { Duration::ZERO } else { PAUSE });
        match self.manners.turn(site, pause, until) {
            Some(wait) => {
                tokio::time::sleep(wait).await;
                Ok(())
            }
            None => Err(FetchError::Forbidden(format!(
                "robots.txt of {host} asks for more time between two pages than this call has; try again later"
            ))),
        }
    }

    async fn ask(&self, site: &str, until: Instant) -> Result<Said, FetchError> {
        let url = Url::parse(&format!("{site}/robots.txt")).map_err(|_| FetchError::Protocol("its address"))?;
        let mut policy = self.policy().clone().accepting(|_| true);
        (policy.max_raw_bytes, policy.max_decoded_bytes) = (robots::MAX_BYTES, robots::MAX_BYTES);
        let time = ROBOTS_TIME.min(until.saturating_duration_since(Instant::now()) / 2);
        let answer = timeout(time, self.follow(url, &policy, None)).await;
        let (said, kept) = match answer {
            Ok(Ok(page)) => match page.status {
                200..=299 => (Said::Rules(Arc::new(Rules::parse(&page.body, &self.manners.product))), KEPT),
                // A 429 is treated like a server error: the rules are unknown.
                429 | 500..=599 => (Said::Nothing(format!("answered with status {}", page.status)), KEPT_BROKEN),
                _ => (Said::Rules(Arc::default()), KEPT_WITHOUT),
            },
            Ok(Err(FetchError::TooManyRedirects)) => (Said::Rules(Arc::default()), KEPT_WITHOUT),
            Ok(Err(FetchError::DecompressionLimit)) => (Said::Nothing("is too large".to_owned()), KEPT_BROKEN),
            // The site itself cannot be reached or is not allowed: report that for the page.
            Ok(Err(error)) => return Err(error),
            Err(_) => (Said::Silence, KEPT_BROKEN),
        };
        self.manners.keep(site, said.clone(), kept);
        Ok(said)
    }
}
