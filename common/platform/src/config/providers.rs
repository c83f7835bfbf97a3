//! Outside providers: which are asked for what, in which order, at which addresses, with which keys.
//!
//! Names are the adapters' own (`brave`, `hunter`, `nhtsa`, …), so a new adapter needs no new variable.

use std::collections::BTreeMap;

use super::{Reader, Redacted};

/// A capability that several outside providers offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// `SEARCH_PROVIDERS`: web search.
    Search,
    /// `PEOPLE_PROVIDERS`: people and companies.
    People,
    /// `EMAIL_CHECK_PROVIDERS`: whether an address accepts mail.
    EmailCheck,
    /// `IDENTITY_PROVIDERS`: whether people are who they say they are.
    Identity,
    /// `PLACES_PROVIDERS`: local businesses.
    Places,
    /// `EMAIL_PROVIDERS`: who takes mails to addresses outside this deployment: `ses`, or `smtp` (the relay of `SMTP_URL`).
    /// Only the first is used: a mail that one may have sent must not be given to another.
    Email,
    /// `SMS_PROVIDERS`: who takes texts to numbers outside this deployment: `aws_sms` (AWS End User Messaging) or `twilio`.
    /// Only the first is used, as with mails.
    Sms,
    /// `VOICE_PROVIDERS`: who connects calls with numbers outside this deployment: `vapi` or `telnyx`. Only the first is
    /// used.
    Voice,
    /// `NETWORK_PROVIDERS`: through whom accounts of the professional network are used: `unipile`, or `local`, a network whose
    /// members are the agents of this deployment. Only the first is used.
    Network,
    /// `PRODUCT_PROVIDERS`: catalogs of products in shops: `shopify`.
    Products,
    /// `PURCHASE_PROVIDERS`: who buys in shops: `rye`. Only the first is used, as with mails.
    Purchases,
}

impl Capability {
    pub const ALL: [(Capability, &'static str); 11] = [
        (Capability::Search, "SEARCH_PROVIDERS"),
        (Capability::People, "PEOPLE_PROVIDERS"),
        (Capability::EmailCheck, "EMAIL_CHECK_PROVIDERS"),
        (Capability::Identity, "IDENTITY_PROVIDERS"),
        (Capability::Places, "PLACES_PROVIDERS"),
        (Capability::Email, "EMAIL_PROVIDERS"),
        (Capability::Sms, "SMS_PROVIDERS"),
        (Capability::Voice, "VOICE_PROVIDERS"),
        (Capability::Network, "NETWORK_PROVIDERS"),
        (Capability::Products, "PRODUCT_PROVIDERS"),
        (Capability::Purchases, "PURCHASE_PROVIDERS"),
    ];

    /// The environment variable with this capability's providers.
    pub fn variable(self) -> &'static str {
        Capability::ALL.iter().find(|(one, _)| *one == self).map_or("", |(_, variable)| variable)
    }

    /// Whether only the first provider is used: what one may have done must not be given to another.
    fn is_first_only(self) -> bool {
        use Capability::{Email, Network, Purchases, Sms, Voice};
        matches!(self, Email | Sms | Voice | Network | Purchases)
    }
}

/// Default: no providers. Tools then use what is built in, or refuse.
#[derive(Clone, Debug, Default)]
pub struct ProvidersConfig {
    /// Provider names for each capability; the first is asked first.
    order: BTreeMap<Capability, Vec<String>>,
    /// `PROVIDER_URLS`: JSON object of provider name and origin, which replaces the provider's own. For proxies,
    /// self-hosted servers and tests.
    pub urls: BTreeMap<String, String>,
    /// `PROVIDER_KEYS`: JSON object of provider name and key, for local runs.
    pub keys: BTreeMap<String, Redacted>,
    /// `PROVIDER_KEYS_SECRET_ARN`: a secret that holds the same object.
    pub keys_secret_arn: Option<String>,
    /// `PROVIDER_CALLS_PER_DAY`: comma-separated `name=number`: maximum number of calls to a provider in a UTC day, over
    /// all functions. After that the provider counts as busy. Default: no limit.
    pub calls_a_day: BTreeMap<String, u32>,
    /// `BROWSER_URL`: the browser that runs pages' scripts, as its DevTools WebSocket (`ws`, `wss`) or the `http` address
    /// of its debugging port. `{key}` in it is replaced by the key `browser` of `PROVIDER_KEYS`. Default: none; pages that
    /// need scripts are not read.
    pub browser_url: Option<Redacted>,
    /// `SEARCH_SEEDS`: comma-separated addresses of pages, sitemaps and feeds to put into our own index. Default: none.
    pub seeds: Vec<String>,
}

impl ProvidersConfig {
    /// The providers to ask, in order.
    pub fn order(&self, capability: Capability) -> &[String] {
        let named = self.named(capability);
        if capability.is_first_only() { &named[..named.len().min(1)] } else { named }
    }

    /// All that its variable names.
    pub fn named(&self, capability: Capability) -> &[String] {
        self.order.get(&capability).map_or(&[], Vec::as_slice)
    }

    pub(super) fn read(env: &mut Reader<'_>) -> ProvidersConfig {
        let mut order = BTreeMap::new();
        for (capability, variable) in Capability::ALL {
            order.insert(capability, env.list(variable));
        }
        let mut urls = env.names("PROVIDER_URLS");
        for (name, url) in &mut urls {
            let is_origin = url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
            if !is_origin {
                env.problem("PROVIDER_URLS", format_args!("{name} must be an http or https URL"));
            }
            url.truncate(url.trim_end_matches('/').len());
        }
        let mut calls_a_day = BTreeMap::new();
        let most = env.text("PROVIDER_CALLS_PER_DAY").unwrap_or_default();
        for entry in most.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            match entry.split_once('=').map(|(name, most)| (name.trim(), most.trim().parse())) {
                Some((name, Ok(most))) => drop(calls_a_day.insert(name.to_owned(), most)),
                _ => env.problem(
                    "PROVIDER_CALLS_PER_DAY",
                    format_args!("{entry} must be name=number, with a provider's name"),
                ),
            }
        }
        let seeds = env.list("SEARCH_SEEDS");
        if seeds.iter().any(|seed| !url::Url::parse(seed).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))) {
            env.problem("SEARCH_SEEDS", "must be http or https URLs");
        }
        let browser_url = env.text("BROWSER_URL").map(Redacted::new);
        let is_browser = |url: &str| {
            url::Url::parse(url)
                .is_ok_and(|url| ["ws", "wss", "http", "https"].contains(&url.scheme()) && url.has_host())
        };
        if browser_url.as_ref().is_some_and(|url| !is_browser(url.expose())) {
            env.problem("BROWSER_URL", "must be a ws, wss, http or https URL");
        }
        let keys = env.names("PROVIDER_KEYS");
        // Keys become headers; this error must not repeat them.
        for name in keys.iter().filter(|(_, key)| !is_header(key)).map(|(name, _)| name) {
            env.problem("PROVIDER_KEYS", format_args!("{name} must be printable ASCII without spaces"));
        }
        ProvidersConfig {
            order,
            urls,
            keys: keys.into_iter().map(|(name, key)| (name, Redacted::new(key))).collect(),
            calls_a_day,
            browser_url,
            keys_secret_arn: env.text("PROVIDER_KEYS_SECRET_ARN"),
            seeds,
        }
    }
}

/// Whether a key is valid in a header.
pub fn is_header(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic())
}
