//! How a reader behaves towards the sites it reads from: it keeps to their robots.txt (RFC 9309), which it asks for once
//! a day, and leaves a pause between two pages.
//!
//! All of it counts against the same guard and the same deadline as the page itself. A site of which the rules are known
//! costs nothing more.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::timeout;
use url::{Position, Url};

use super::fetch::{FetchError, Fetcher};
use super::robots::{self, Rules};

/// How long rules are kept (RFC 9309 §2.4: no longer than a day), and how long it is believed that there are none.
const KEPT: Duration = Duration::from_secs(24 * 3600);
const KEPT_WITHOUT: Duration = Duration::from_secs(6 * 3600);
/// How long a site whose rules cannot be had is left alone.
const KEPT_BROKEN: Duration = Duration::from_secs(300);
/// The most time that robots.txt may take, of a page's time.
const ROBOTS_TIME: Duration = Duration::from_secs(5);
/// Between two pages of a site that does not ask for more.
const PAUSE: Duration = Duration::from_millis(250);
/// Sites remembered.
const MAX_SITES: usize = 2_000;

/// What a process knows of the sites it read from.
pub(super) struct Manners {
    /// Our product token, in lower case.
    product: String,
    sites: Mutex<HashMap<String, Site>>,
}

/// A site: scheme, host and port.
struct Site {
    said: Said,
    until: Instant,
    /// The next page may be asked for then.
    next: Instant,
}

/// What a site's robots.txt comes to.
#[derive(Clone)]
enum Said {
    Rules(Arc<Rules>),
    /// It could not be had, which forbids everything (RFC 9309 §2.3.1.4). Why.
    Nothing(String),
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
            // A process that reads from that many sites a day starts again.
            if sites.len() >= MAX_SITES {
                sites.clear();
            }
        }
        let next = sites.get(site).map_or(now, |known| known.next);
        sites.insert(site.to_owned(), Site { said, until: now + time, next });
    }

    /// Takes the next turn at a site; how long it is until then, if that is before `until`.
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

/// Asking for robots.txt is fetching, and fetching asks for leave: its type would have no end.
type Leave<'a> = Pin<Box<dyn Future<Output = Result<(), FetchError>> + Send + 'a>>;

impl Fetcher {
    /// Waits for leave to read a page until `until`: the site's own rules, and its turn.
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
                return Err(FetchError::Forbidden(format!("robots.txt of {host} {why}, which forbids reading there")));
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
                "{host} asks in its robots.txt for more time between two pages than there is; try again later"
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
                // Too many requests is no answer about anything.
                429 | 500..=599 => (Said::Nothing(format!("answers {}", page.status)), KEPT_BROKEN),
                _ => (Said::Rules(Arc::default()), KEPT_WITHOUT),
            },
            Ok(Err(FetchError::TooManyRedirects)) => (Said::Rules(Arc::default()), KEPT_WITHOUT),
            Ok(Err(FetchError::DecompressionLimit)) => (Said::Nothing("cannot be unpacked".to_owned()), KEPT_BROKEN),
            // The site itself is not there, or not for us: that is what is to be told of the page.
            Ok(Err(error)) => return Err(error),
            Err(_) => (Said::Nothing("does not come in time".to_owned()), KEPT_BROKEN),
        };
        self.manners.keep(site, said.clone(), kept);
        Ok(said)
    }
}
