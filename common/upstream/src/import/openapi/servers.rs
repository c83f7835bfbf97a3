//! The address of the service.

use serde_json::Value;
use url::Url;

use super::super::wrong_privacy;
use super::operation::Operation;
use super::{Selection, Version, items, members};
use crate::settings::server;

/// Longest address with its variables filled in, in bytes.
const MAX_ADDRESS: usize = 500;

/// The selection's address, or the first of the document that may be asked. With a note if there were others.
pub fn address(operation: &Operation<'_>, selection: &Selection) -> Result<(String, Option<String>), String> {
    if let Some(given) = &selection.server {
        return match server(given, selection.private) {
            Ok(_) => Ok((given.clone(), None)),
            Err(_) => Err(format!("the server {given} {}", why_not(given, selection.private))),
        };
    }
    let document_url = selection.document_url.as_deref().and_then(without_login);
    let candidates = match operation.version {
        Version::Swagger2 => swagger(operation.document.root, document_url.as_ref()),
        Version::OpenApi3 => openapi(operation, document_url.as_ref()),
    };
    let Some(first) = candidates.first() else {
        return Err("has no server in the document; give its address: SERVER=https://… (--server=)".to_owned());
    };
    match candidates.iter().find(|text| server(text, selection.private).is_ok()) {
        Some(found) => {
            let note =
                (found != first || candidates.len() > 1).then(|| format!("of several servers, {found} is asked"));
            Ok((found.clone(), note))
        }
        None => Err(format!("its server {first} {}", why_not(first, selection.private))),
    }
}

/// Why a server cannot be asked, and which option of the command helps.
fn why_not(text: &str, private: bool) -> String {
    match (wrong_privacy(text, private), Url::parse(text)) {
        (Some(why), _) => why.to_owned(),
        (None, Err(url::ParseError::RelativeUrlWithoutBase)) => {
            "has no host; give its address: SERVER=https://… (--server=)".to_owned()
        }
        _ => {
            let why = server(text, private).err().unwrap_or_default();
            format!("{why}; give another address: SERVER=https://… (--server=)")
        }
    }
}

/// The servers nearest to an operation. They are relative to the document's own address, as `/` is that stands for none.
fn openapi(operation: &Operation<'_>, document_url: Option<&Url>) -> Vec<String> {
    let own = [&operation.value["servers"], &operation.item["servers"], &operation.document.root["servers"]];
    let nearest = own.into_iter().map(items).find(|servers| !servers.is_empty()).unwrap_or_default();
    let servers: Vec<String> = nearest.iter().filter_map(filled).collect();
    match document_url {
        Some(base) if nearest.is_empty() => vec![absolute("/", base)],
        Some(base) => servers.iter().map(|server| absolute(server, base)).collect(),
        None => servers,
    }
}

/// The document's address without a user and password, which no entry may have.
fn without_login(url: &str) -> Option<Url> {
    let mut url = Url::parse(url).ok()?;
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    Some(url)
}

/// A server's address, seen from the document's. One that is absolute stays as it is written.
fn absolute(server: &str, base: &Url) -> String {
    match Url::parse(server) {
        Err(url::ParseError::RelativeUrlWithoutBase) => {
            let reference = if server.is_empty() { "/" } else { server };
            base.join(reference).map_or_else(|_| server.to_owned(), |url| url.as_str().trim_end_matches('/').to_owned())
        }
        _ => server.to_owned(),
    }
}

/// The URL of a server with the defaults of its variables.
fn filled(server: &Value) -> Option<String> {
    let mut url = server["url"].as_str().filter(|url| url.len() <= MAX_ADDRESS)?.to_owned();
    for (name, variable) in members(&server["variables"]).take(20) {
        let value = variable["default"].as_str().unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), value);
        if url.len() > MAX_ADDRESS {
            return None;
        }
    }
    Some(url)
}

/// Scheme, host and base path of Swagger 2.0; https before http. What is not said is that of the document's own address.
fn swagger(root: &Value, document_url: Option<&Url>) -> Vec<String> {
    let own = document_url.and_then(|url| url.as_str().split_once("://")?.1.split(['/', '?', '#']).next());
    let Some(host) = root["host"].as_str().filter(|host| !host.is_empty()).or(own) else { return Vec::new() };
    let base = root["basePath"].as_str().unwrap_or_default();
    let schemes = items(&root["schemes"]);
    let mut known = vec!["https", "http"];
    if schemes.is_empty() && document_url.is_some_and(|url| url.scheme() == "http") {
        known.reverse();
    }
    let has = |scheme: &str| schemes.is_empty() || schemes.iter().any(|known| known == scheme);
    let base = base.trim_end_matches('/');
    known.into_iter().filter(|scheme| has(scheme)).map(|scheme| format!("{scheme}://{host}{base}")).collect()
}
