//! The address of the service.

use serde_json::Value;

use super::operation::Operation;
use super::{Selection, Version, items, members};
use crate::settings::server;

/// Longest address with its variables filled in, in bytes.
const MAX_ADDRESS: usize = 500;

/// The selection's address, or the first of the document that may be asked. With a note if there were others.
pub fn address(operation: &Operation<'_>, selection: &Selection) -> Result<(String, Option<String>), String> {
    if let Some(given) = &selection.server {
        return Ok((given.clone(), None));
    }
    let candidates = match operation.version {
        Version::Swagger2 => swagger(operation.document.root),
        Version::OpenApi3 => {
            let own = [&operation.value["servers"], &operation.item["servers"], &operation.document.root["servers"]];
            let nearest = own.into_iter().map(items).find(|servers| !servers.is_empty()).unwrap_or_default();
            nearest.iter().filter_map(filled).collect()
        }
    };
    let Some(first) = candidates.first() else {
        return Err("has no server in the document; name one in the selection".to_owned());
    };
    match candidates.iter().find(|text| server(text, selection.private).is_ok()) {
        Some(found) => {
            let note =
                (found != first || candidates.len() > 1).then(|| format!("of several servers, {found} is asked"));
            Ok((found.clone(), note))
        }
        None => {
            let why = server(first, selection.private).err().unwrap_or_default();
            Err(format!("its server {first} {why}; name another one in the selection"))
        }
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

/// Scheme, host and base path of Swagger 2.0; https before http.
fn swagger(root: &Value) -> Vec<String> {
    let Some(host) = root["host"].as_str() else { return Vec::new() };
    let base = root["basePath"].as_str().unwrap_or_default();
    let schemes = items(&root["schemes"]);
    // Without schemes, those of the document's own address count, which is unknown here.
    let has = |scheme: &str| schemes.is_empty() || schemes.iter().any(|known| known == scheme);
    ["https", "http"].iter().filter(|scheme| has(scheme)).map(|scheme| format!("{scheme}://{host}{base}")).collect()
}
