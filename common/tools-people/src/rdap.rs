//! RDAP: when a domain was registered, through whom, and in which state it is (RFC 9082, 9083).
//!
//! Who answers for a top-level domain is in IANA's list (RFC 9224). Its origin is the adapter's own, and `PROVIDER_URLS` can
//! name another for `rdap`; the servers in it are a stranger's addresses, so the guarded client asks them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use platform::net::Fetcher;
use platform::providers::outbound::{Ask, Outbound, OutboundError};
use serde_json::Value;
use tokio::time::Instant;

use crate::vendors::clean;

const NAME: &str = "rdap";
const ORIGIN: &str = "https://data.iana.org";
/// The list changes a few times in a month.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);
/// A registered name has at least two labels; one below a registry's own second level has three.
const MAX_TRIES: usize = 3;
const MAX_LIST: usize = 20;

/// What a registry says of a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// The registered name, which the name asked for is or lies below.
    pub domain: String,
    pub registrar: Option<String>,
    /// As the registry writes them, RFC 3339.
    pub registered_at: Option<String>,
    pub changed_at: Option<String>,
    pub expires_at: Option<String>,
    pub status: Vec<String>,
    pub name_servers: Vec<String>,
    /// Where it says so.
    pub url: String,
}

/// The registry's list, by the origin it was read from.
static LISTS: Mutex<Option<HashMap<String, (Instant, Value)>>> = Mutex::new(None);

/// The registration of a domain, or of the one it lies below; `None` if there is none or no server for it.
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
            // Perhaps the name lies below the registered one.
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

/// The server of a top-level domain: the one that speaks https, if one does.
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
