//! RDAP: when a domain was registered, through which registrar, and its status (RFC 9082, 9083).
//!
//! IANA's list says which server answers for a top-level domain (RFC 9224). The list comes from a fixed origin, which
//! `PROVIDER_URLS` can replace under `rdap`. The server addresses in it are untrusted, so they are fetched with the guarded
//! client.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use platform::net::Fetcher;
use platform::providers::outbound::{Ask, Outbound, OutboundError};
use serde_json::Value;
use tokio::time::Instant;

use crate::vendors::clean;

pub const NAME: &str = "rdap";
const ORIGIN: &str = "https://data.iana.org";
/// Cache TTL of IANA's list, which changes a few times a month.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);
/// Longest name tried, in labels. A registered name has two labels, or three below a registry's own second level (`co.uk`).
const MAX_TRIES: usize = 3;
const MAX_LIST: usize = 20;

/// A domain's registration record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// The registered name: the requested domain or a parent of it.
    pub domain: String,
    pub registrar: Option<String>,
    /// RFC 3339, as the registry writes it.
    pub registered_at: Option<String>,
    pub changed_at: Option<String>,
    pub expires_at: Option<String>,
    pub status: Vec<String>,
    pub name_servers: Vec<String>,
    /// URL of the RDAP record.
    pub url: String,
}

/// IANA's list, by the origin it was read from.
static LISTS: Mutex<Option<HashMap<String, (Instant, Value)>>> = Mutex::new(None);

/// The registration of a domain or of its registered parent. `None` if there is no registration, or no server for the
/// top-level domain.
pub async fn registration(
    outbound: &Outbound,
    fetcher: &Fetcher,
    origin: Option<&str>,
    domain: &str,
    deadline: Instant,
) -> Result<Option<Registration>, OutboundError> {
    let list = list(outbound, origin.unwrap_or(ORIGIN), deadline).await?;
    let labels: Vec<&str> = domain.split('.').collect();
    let Some(server) = labels.last().and_then(|top| server(&list, top)) else { return Ok(None) };
    let first = labels.len().saturating_sub(MAX_TRIES);
    for start in first..labels.len().saturating_sub(1).max(first + 1) {
        let name = labels[start..].join(".");
        let url = format!("{}/domain/{name}", server.trim_end_matches('/'));
        let asked = tokio::time::timeout_at(deadline, fetcher.get(&url)).await;
        let page = match asked {
            Ok(Ok(page)) => page,
            Ok(Err(error)) => return Err(OutboundError::NotAsked(error.to_string())),
            Err(_) => return Err(OutboundError::Unknown("no answer in time".to_owned())),
        };
        match page.status {
            200 => {
                let record = serde_json::from_slice(&page.body);
                let record: Value = record.map_err(|_| OutboundError::Unreadable("not JSON".to_owned()))?;
                return Ok(Some(read(&record, name, url)));
            }
            // Try the parent: the requested name may be a subdomain.
            400 | 404 => {}
            status => return Err(OutboundError::Refused(status)),
        }
    }
    Ok(None)
}

async fn list(outbound: &Outbound, origin: &str, deadline: Instant) -> Result<Value, OutboundError> {
    let known = || {
        let lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
        let (read, list) = lists.as_ref()?.get(origin)?;
        (read.elapsed() < REMEMBERED).then(|| list.clone())
    };
    if let Some(list) = known() {
        return Ok(list);
    }
    let (_, list) = outbound.json(NAME, ORIGIN, &Ask::get("/rdap/dns.json"), &[], deadline).await?;
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    lists.get_or_insert_default().insert(origin.to_owned(), (Instant::now(), list.clone()));
    Ok(list)
}

/// The RDAP server of a top-level domain, https if there is one.
fn server(list: &Value, top: &str) -> Option<String> {
    let services = list["services"].as_array()?;
    let is_named = |service: &&Value| {
        service[0]
            .as_array()
            .into_iter()
            .flatten()
            .any(|name| name.as_str().is_some_and(|name| name.eq_ignore_ascii_case(top)))
    };
    let urls: Vec<&str> = services.iter().find(is_named)?[1].as_array()?.iter().filter_map(Value::as_str).collect();
    let secure = urls.iter().find(|url| url.starts_with("https:"));
    secure.or(urls.first()).map(|url| (*url).to_owned())
}

fn read(record: &Value, domain: String, url: String) -> Registration {
    let event = |action: &str| {
        let events = record["events"].as_array().into_iter().flatten();
        let event = events.take(MAX_LIST).find(|event| event["eventAction"] == action)?;
        clean(event["eventDate"].as_str()?, 40)
    };
    let entities = record["entities"].as_array().into_iter().flatten().take(MAX_LIST);
    let mut registrars = entities
        .filter(|entity| entity["roles"].as_array().is_some_and(|roles| roles.iter().any(|role| role == "registrar")));
    let registrar = registrars.find_map(|entity| {
        let card = entity.pointer("/vcardArray/1")?.as_array()?;
        let name = card.iter().take(MAX_LIST).find(|line| line[0] == "fn")?;
        clean(name[3].as_str()?, 255)
    });
    let texts = |list: &Value, member: Option<&str>| -> Vec<String> {
        let items = list.as_array().into_iter().flatten().take(MAX_LIST);
        items.filter_map(|item| clean(member.map_or(item, |member| &item[member]).as_str()?, 255)).collect()
    };
    Registration {
        domain,
        registrar,
        registered_at: event("registration"),
        changed_at: event("last changed"),
        expires_at: event("expiration"),
        status: texts(&record["status"], None),
        name_servers: texts(&record["nameservers"], Some("ldhName"))
            .into_iter()
            .map(|name| name.to_lowercase())
            .collect(),
        url,
    }
}
