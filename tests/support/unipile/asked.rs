//! What is asked of a contract server, and whether it may be asked so.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, Method, Uri};
use base::encoding::percent_decoded;
use serde_json::{Map, Value, json};

/// A request, as it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub method: String,
    /// Decoded, behind `/api/v1/`.
    pub path: Vec<String>,
    pub query: BTreeMap<String, String>,
    /// Without its parameters.
    pub content_type: String,
    pub fields: Map<String, Value>,
}

impl Asked {
    pub fn read(method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Asked {
        let whole = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let content_type = whole.split(';').next().unwrap_or_default().trim().to_owned();
        let fields = match whole.split_once("boundary=") {
            Some((_, boundary)) => form(&String::from_utf8_lossy(body), boundary),
            None => serde_json::from_slice(body).unwrap_or_default(),
        };
        let path = uri.path().trim_start_matches("/api/v1/").split('/').map(percent_decoded).collect();
        let query = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
        Asked { method: method.to_string(), path, query, content_type, fields }
    }

    pub fn text(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn asks(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    /// That the query has these members, and no others but optional ones.
    pub fn query_is(&self, required: &[&str], optional: &[&str]) -> Result<(), String> {
        known(self.query.keys(), required, optional).map_err(|wrong| format!("in the query: {wrong}"))
    }

    pub fn body_is(&self, content_type: &str, required: &[&str], optional: &[&str]) -> Result<(), String> {
        if self.content_type != content_type {
            return Err(format!("content type {:?}, not {content_type}", self.content_type));
        }
        known(self.fields.keys(), required, optional).map_err(|wrong| format!("in the body: {wrong}"))
    }
}

fn known<'a>(
    names: impl Iterator<Item = &'a String> + Clone,
    required: &[&str],
    optional: &[&str],
) -> Result<(), String> {
    if let Some(missing) = required.iter().find(|name| !names.clone().any(|has| has == *name)) {
        return Err(format!("no {missing}"));
    }
    let is_known = |name: &&String| required.contains(&name.as_str()) || optional.contains(&name.as_str());
    match names.clone().find(|name| !is_known(name)) {
        Some(unknown) => Err(format!("unknown {unknown}")),
        None => Ok(()),
    }
}

/// The fields of a multipart form.
fn form(body: &str, boundary: &str) -> Map<String, Value> {
    let part = |part: &str| {
        let (head, value) = part.split_once("\r\n\r\n")?;
        let name = head.split_once("name=\"")?.1.split_once('"')?.0;
        Some((name.to_owned(), json!(value.strip_suffix("\r\n")?)))
    };
    body.split(&format!("--{boundary}")).filter_map(part).collect()
}
