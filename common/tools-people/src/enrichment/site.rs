//! Reads a company's own site: its first page, and those that say who the company is.

use std::collections::BTreeMap;

use platform::net::{FetchPolicy, check_url};
use serde_json::Value;
use tokio::time::Instant;
use tools::Toolbox;
use url::Url;
use web::read::{Facts, read_facts};

use crate::vendors::{Person, clean, domain_of, email_of, profile_url};

/// Pages read besides the first one.
const MAX_PAGES: usize = 4;
/// Maximum number of people taken from one site.
const MAX_PEOPLE: usize = 200;
/// Names of pages that say who the company is, the most useful first. A name must equal a whole segment of the path, or the
/// whole text of a link.
const TELLING: [&str; 22] = [
    "about",
    "about-us",
    "aboutus",
    "imprint",
    "impressum",
    "contact",
    "contact-us",
    "kontakt",
    "team",
    "people",
    "company",
    "who-we-are",
    "leadership",
    "management",
    "legal",
    "legal-notice",
    "mentions-legales",
    "ueber-uns",
    "staff",
    "our-team",
    "contacto",
    "equipe",
];
/// Networks whose pages are never read.
const NETWORKS: [(&str, &str); 12] = [
    ("linkedin.com", "linkedin"),
    ("xing.com", "xing"),
    ("facebook.com", "facebook"),
    ("instagram.com", "instagram"),
    ("twitter.com", "twitter"),
    ("x.com", "twitter"),
    ("github.com", "github"),
    ("youtube.com", "youtube"),
    ("tiktok.com", "tiktok"),
    ("threads.net", "threads"),
    ("crunchbase.com", "crunchbase"),
    ("lnkd.in", "linkedin"),
];

/// The pages that were read.
pub struct Site {
    pub pages: Vec<(Url, Facts)>,
}

/// The network of a URL.
pub fn network(url: &Url) -> Option<&'static str> {
    let host = url.domain()?;
    let is_of = |name: &str| host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    NETWORKS.iter().find(|(name, _)| is_of(name)).map(|(_, network)| *network)
}

/// Whether a URL belongs to a network.
pub fn is_network(url: &str) -> bool {
    Url::parse(url).ok().is_some_and(|url| network(&url).is_some())
}

/// Host, and port if given, of a domain or URL; `None` if the guard would refuse it.
pub fn authority(text: &str, policy: &FetchPolicy) -> Option<String> {
    if let Some(domain) = domain_of(text) {
        return check_url(&format!("https://{domain}/"), policy).is_ok().then_some(domain);
    }
    let text = text.trim().to_lowercase();
    let rest = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
    let url = check_url(&format!("http://{}/", rest.split(['/', '?', '#']).next()?), policy).ok()?;
    Some(url[url::Position::BeforeHost..url::Position::AfterPort].to_owned())
}

/// Reads a site. `None` if its first page cannot be read.
pub async fn read(toolbox: &Toolbox, authority: &str, deadline: Instant) -> Option<Site> {
    // A port means a plain HTTP server.
    let secure = match authority.contains(':') {
        true => None,
        false => fetch(toolbox, &format!("https://{authority}/"), deadline).await,
    };
    let first = match secure {
        Some(page) => page,
        None => fetch(toolbox, &format!("http://{authority}/"), deadline).await?,
    };
    let mut telling: Vec<(usize, Url)> = Vec::new();
    for link in &first.1.links {
        let mut url = link.url.clone();
        url.set_fragment(None);
        let is_here = url.host() == first.0.host() && url.port() == first.0.port() && url.scheme().starts_with("http");
        if !is_here || url == first.0 || telling.iter().any(|(_, known)| *known == url) {
            continue;
        }
        let path = url.path().to_lowercase();
        let text = link.text.to_lowercase().replace(' ', "-");
        let rank = TELLING
            .iter()
            .position(|word| text == *word || path.split('/').any(|part| part.split('.').next() == Some(word)));
        telling.extend(rank.map(|rank| (rank, url)));
    }
    telling.sort_by_key(|(rank, _)| *rank);
    let mut pages = vec![first];
    for (_, url) in telling.into_iter().take(MAX_PAGES) {
        pages.extend(fetch(toolbox, url.as_str(), deadline).await);
    }
    Some(Site { pages })
}

/// Facts of one page. `None` if it is missing, robots.txt forbids it, or it belongs to a network.
pub async fn fetch(toolbox: &Toolbox, url: &str, deadline: Instant) -> Option<(Url, Facts)> {
    if is_network(url) {
        return None;
    }
    let page = tokio::time::timeout_at(deadline, toolbox.fetcher.read(url)).await.ok()?.ok()?;
    if page.status != 200 || network(&page.final_url).is_some() {
        return None;
    }
    let url = page.final_url.clone();
    // Parsing a large page would block the async thread.
    let facts = tokio::task::spawn_blocking(move || read_facts(&page)).await.ok()?;
    Some((url, facts))
}

impl Site {
    /// The first value that a page has, and the page.
    pub fn first<T>(&self, read: impl Fn(&Facts) -> Option<T>) -> Option<(T, String)> {
        self.pages.iter().find_map(|(url, facts)| Some((read(facts)?, url.to_string())))
    }

    /// All distinct values, at most `most`, and the first page that had one.
    pub fn every(&self, most: usize, read: impl Fn(&Facts) -> Vec<String>) -> (Vec<String>, Option<String>) {
        let (mut values, mut page): (Vec<String>, Option<String>) = (Vec::new(), None);
        for (url, facts) in &self.pages {
            for value in read(facts) {
                if values.len() < most && !values.contains(&value) {
                    page.get_or_insert_with(|| url.to_string());
                    values.push(value);
                }
            }
        }
        (values, page)
    }

    /// The first profile on each network, by the network's name.
    pub fn social(&self) -> (BTreeMap<String, String>, Option<String>) {
        let (mut found, mut page): (BTreeMap<String, String>, Option<String>) = (BTreeMap::new(), None);
        for (at, facts) in &self.pages {
            let same_as = facts.of_type(&ORGANIZATION).flat_map(|object| strings(&object["sameAs"]));
            let urls = same_as
                .filter_map(|text| Url::parse(&text).ok())
                .chain(facts.links.iter().map(|link| link.url.clone()));
            for url in urls {
                // A bare host or a share button is not a profile.
                let is_profile = url.path().len() > 1
                    && !["share", "intent", "sharer", "hashtag"].iter().any(|word| url.path().contains(word));
                if let (Some(network), true) = (network(&url), is_profile)
                    && !found.contains_key(network)
                    && let Some(profile) = profile_url(url.as_str())
                {
                    page.get_or_insert_with(|| at.to_string());
                    found.insert(network.to_owned(), profile);
                }
            }
        }
        (found, page)
    }

    /// People named in JSON-LD, with the page.
    pub fn people(&self) -> Vec<(Person, String)> {
        let mut found: Vec<(Person, String)> = Vec::new();
        for (url, facts) in &self.pages {
            for person in people(facts) {
                if found.len() < MAX_PEOPLE && found.iter().all(|(known, _)| known.full_name != person.full_name) {
                    found.push((person, url.to_string()));
                }
            }
        }
        found
    }

    /// Addresses at the domain that the pages link to or name.
    pub fn emails(&self, domain: &str) -> (Vec<String>, Option<String>) {
        self.every(20, |facts| {
            let linked = facts.links.iter().filter(|link| link.url.scheme() == "mailto");
            let linked = linked.filter_map(|link| email_of(&percent_decoded(link.url.path())));
            let named = facts
                .objects
                .iter()
                .filter_map(|object| email_of(object["email"].as_str()?.trim_start_matches("mailto:")));
            let below = |email: &String| {
                let host = email.rsplit('@').next().unwrap_or_default();
                host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
            };
            linked.chain(named).filter(below).collect()
        })
    }
}

/// JSON-LD types of organizations.
pub const ORGANIZATION: [&str; 12] = [
    "Organization",
    "Corporation",
    "LocalBusiness",
    "OnlineBusiness",
    "NGO",
    "EducationalOrganization",
    "NewsMediaOrganization",
    "ProfessionalService",
    "Store",
    "Restaurant",
    "GovernmentOrganization",
    "MedicalOrganization",
];

/// People named in a page's JSON-LD.
pub fn people(facts: &Facts) -> Vec<Person> {
    let employer = facts.of_type(&ORGANIZATION).find_map(|object| word(&object["name"]));
    facts.of_type(&["Person"]).filter_map(|object| person(object, employer.as_deref())).collect()
}

fn person(object: &Value, employer: Option<&str>) -> Option<Person> {
    let full_name = word(&object["name"])
        .or_else(|| Some(format!("{} {}", word(&object["givenName"])?, word(&object["familyName"])?)))?;
    // A single word is a nickname or a byline.
    full_name.split_once(' ')?;
    let works_for = |member: &str| match &object["worksFor"] {
        Value::Array(firms) => word(&firms.first()?[member]),
        firm => word(&firm[member]),
    };
    let email = object["email"].as_str().and_then(|email| email_of(email.trim_start_matches("mailto:")));
    let profiles: Vec<(String, String)> = strings(&object["sameAs"])
        .filter_map(|text| {
            let url = Url::parse(&text).ok()?;
            Some((network(&url)?.to_owned(), profile_url(&text)?))
        })
        .take(20)
        .collect();
    let phone = word(&object["telephone"]);
    let parts = super::person::split_name(&full_name);
    Some(Person {
        first_name: word(&object["givenName"]).or(parts.0),
        last_name: word(&object["familyName"]).or(parts.1),
        full_name: Some(full_name),
        title: word(&object["jobTitle"]),
        company: works_for("name").or_else(|| employer.map(str::to_owned)),
        company_domain: works_for("url").and_then(|url| domain_of(&url)),
        linkedin_url: profiles.iter().find(|(network, _)| network == "linkedin").map(|(_, url)| url.clone()),
        location: place(&object["address"]),
        best_work_email: email.clone(),
        email,
        fullphone: phone.iter().map(|phone| crate::vendors::Phone::of(phone.clone(), None)).collect(),
        phone,
        summary: object["description"].as_str().and_then(|text| clean(text, 2_000)),
        profiles,
        ..Person::default()
    })
}

/// A JSON-LD value, which may be in a list or an object.
pub fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => clean(text, 255),
        Value::Array(values) => values.first().and_then(word),
        Value::Object(object) => object.get("name").or_else(|| object.get("@value")).and_then(word),
        _ => None,
    }
}

/// A postal address on one line.
pub fn place(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => clean(text, 255),
        Value::Array(values) => values.first().and_then(place),
        Value::Object(address) => {
            let parts = ["streetAddress", "postalCode", "addressLocality", "addressRegion", "addressCountry"];
            let parts: Vec<String> = parts.iter().filter_map(|part| word(address.get(*part)?)).collect();
            (!parts.is_empty()).then(|| parts.join(", "))
        }
        _ => None,
    }
}

fn strings(value: &Value) -> impl Iterator<Item = String> + use<> {
    let texts: Vec<String> = match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().filter_map(|value| value.as_str().map(str::to_owned)).take(50).collect(),
        _ => Vec::new(),
    };
    texts.into_iter()
}

fn percent_decoded(text: &str) -> String {
    url::form_urlencoded::parse(format!("x={}", text.replace('+', "%2B")).as_bytes())
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}
