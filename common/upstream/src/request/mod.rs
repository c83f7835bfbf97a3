//! Builds the request of a call. A member of the input stays in its slot, whatever it contains.

mod pairs;
mod path;
mod ready;

use base::digest::sha256_parts;
use base::encoding::percent_encoded;
use base::input::FieldError;
use serde_json::{Map, Value};

use crate::outcome::Media;
use crate::tool::{Body, Constant, Content, HttpTarget, Method, PathPart, SecretUse, Target, Tool};

pub use ready::{Ready, SecretProblem};

/// The header that says who asks, and for which paid call: a JWT that the service's published key signs. Whoever sends the
/// request adds it; settings and callers may not.
pub const CALL_HEADER: &str = "x-paid-call";
/// Longest URL and longest value of a header, in bytes.
const MAX_URL: usize = 8 * 1024;
const MAX_HEADER: usize = 4 * 1024;

/// Names and what they have, in the order in which they are sent.
type Named<T> = Vec<(String, T)>;

/// A request without its secrets: it may be logged and stored. [`Request::filled`] puts them in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    /// Address, path and query, without the secrets of the query.
    pub url: String,
    /// Secrets that are added to the query.
    pub query_secrets: Vec<(String, SecretUse)>,
    /// Names in lower case, each once.
    pub headers: Vec<(String, Constant)>,
    pub body: Vec<u8>,
    /// The header for the id of the call, which [`Request::for_call`] fills.
    pub call_id_header: Option<String>,
    /// The body is a call of an MCP server, whose id [`Request::with_rpc_id`] sets.
    pub is_rpc_call: bool,
    /// The host is on the operator's own network ([`crate::Server::private`]).
    pub private: bool,
}

impl Request {
    /// The request with the id of its call, the same for each repeat, if the tool has a header for one. `id` has 1 to 200
    /// letters, digits, `-` and `_`; any other is left out.
    #[must_use]
    pub fn for_call(mut self, id: &str) -> Request {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if (1..=200).contains(&id.len()) && id.bytes().all(is_plain) {
            let header = self.call_id_header.take();
            self.headers.extend(header.map(|name| (name, Constant::Text(id.to_owned()))));
        }
        self
    }

    /// A digest of everything that decides the answer: the key of a cached answer, with the tool's name before it. Secrets
    /// count by their names.
    pub fn digest(&self) -> [u8; 32] {
        let headers = format!("{:?}{:?}", self.headers, self.query_secrets);
        sha256_parts(&[self.method.as_str().as_bytes(), self.url.as_bytes(), headers.as_bytes(), &self.body])
    }
}

/// Builds the request of a call. `input` has been validated against the tool's input schema.
///
/// # Errors
/// A member of the input cannot be sent in its slot. The paths name members of the input.
pub fn build(tool: &Tool, input: &Map<String, Value>) -> Result<Request, Vec<FieldError>> {
    match &tool.target {
        Target::Http(http) => build_http(tool, http, input),
        Target::Mcp(mcp) => Ok(crate::mcp::request(mcp, input)),
    }
}

fn build_http(tool: &Tool, http: &HttpTarget, input: &Map<String, Value>) -> Result<Request, Vec<FieldError>> {
    let mut errors = Vec::new();
    let path = path::path(&http.path, input, &mut errors);
    let (constants, query_secrets) = constant_query(http);
    let mut pairs = constants;
    for slot in &http.query {
        let value = input.get(&slot.member).unwrap_or(&Value::Null);
        pairs::push(&slot.name, &slot.member, value, slot.style, &mut pairs, &mut errors);
    }
    let mut url = format!("{}{path}", http.server.address);
    if !pairs.is_empty() {
        url.push('?');
        url.push_str(&pairs::encoded(&pairs));
    }
    if url.len() > MAX_URL {
        errors.push(FieldError::new("", format!("makes an address of more than {MAX_URL} bytes")));
    }
    let (body, content_type) = body(http, input, &mut errors);
    let headers = headers(tool, http, input, content_type, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let (call_id_header, private) = (http.call_id_header.clone(), http.server.private);
    Ok(Request { method: http.method, url, query_secrets, headers, body, call_id_header, is_rpc_call: false, private })
}

fn constant_query(http: &HttpTarget) -> (Named<String>, Named<SecretUse>) {
    let (mut texts, mut secrets) = (Vec::new(), Vec::new());
    for (name, constant) in &http.constant_query {
        match constant {
            Constant::Text(text) => texts.push((name.clone(), text.clone())),
            Constant::Secret(secret) => secrets.push((name.clone(), secret.clone())),
        }
    }
    (texts, secrets)
}

/// The body and its content type.
fn body(
    http: &HttpTarget,
    input: &Map<String, Value>,
    errors: &mut Vec<FieldError>,
) -> (Vec<u8>, Option<&'static str>) {
    let (content, form) = match &http.body {
        Body::None => return (Vec::new(), None),
        Body::Json(content) => (content, None),
        Body::Form(content, style) => (content, Some(*style)),
    };
    // In JSON, null says something: it clears a member. The schema has allowed it.
    let is_said = |value: &Value| form.is_none() || !value.is_null();
    let value = match content {
        Content::Input => Value::Object(members(input, |_, value| is_said(value))),
        Content::Rest => {
            let taken = taken(http);
            Value::Object(members(input, |name, value| is_said(value) && !taken.contains(&name)))
        }
        Content::Member(member) => match input.get(member).filter(|value| is_said(value)) {
            None => return (Vec::new(), None),
            Some(value) => value.clone(),
        },
    };
    let Some(style) = form else {
        return (value.to_string().into_bytes(), Some("application/json"));
    };
    let mut pairs = Vec::new();
    match (&value, content) {
        (Value::Object(members), _) => {
            for (name, value) in members {
                pairs::push(name, name, value, style, &mut pairs, errors);
            }
        }
        (_, Content::Member(member)) => errors.push(FieldError::new(member, "must be an object: it is sent as a form")),
        _ => {}
    }
    (pairs::encoded(&pairs).into_bytes(), Some("application/x-www-form-urlencoded"))
}

fn members(input: &Map<String, Value>, keep: impl Fn(&str, &Value) -> bool) -> Map<String, Value> {
    let kept = input.iter().filter(|(name, value)| keep(name, value));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The members that have a slot of their own.
fn taken(http: &HttpTarget) -> Vec<&str> {
    let parts = http.path.iter().flat_map(|segment| &segment.0);
    let in_path = parts.filter_map(|part| match part {
        PathPart::Member { member, .. } => Some(member.as_str()),
        PathPart::Text(_) => None,
    });
    let in_query = http.query.iter().map(|slot| slot.member.as_str());
    in_path.chain(in_query).chain(http.headers.iter().map(|slot| slot.member.as_str())).collect()
}

fn headers(
    tool: &Tool,
    http: &HttpTarget,
    input: &Map<String, Value>,
    content_type: Option<&'static str>,
    errors: &mut Vec<FieldError>,
) -> Vec<(String, Constant)> {
    let mut headers = http.constant_headers.clone();
    let has = |headers: &[(String, Constant)], name: &str| headers.iter().any(|(known, _)| known == name);
    if !has(&headers, "accept") {
        let accepted: Vec<&str> = tool.answers.iter().map(|media: &Media| media.as_str()).collect();
        headers.push(("accept".to_owned(), Constant::Text(accepted.join(", "))));
    }
    match content_type {
        Some(content_type) if !has(&headers, "content-type") => {
            headers.push(("content-type".to_owned(), Constant::Text(content_type.to_owned())));
        }
        // The optional member that would be the body is absent.
        None => headers.retain(|(name, _)| name != "content-type"),
        Some(_) => {}
    }
    for slot in &http.headers {
        let value = input.get(&slot.member).unwrap_or(&Value::Null);
        let Some((_, text)) = pairs::joined(&slot.name, &slot.member, value, ',', errors) else { continue };
        match header_value(&text) {
            Ok(()) => headers.push((slot.name.clone(), Constant::Text(text))),
            Err(message) => errors.push(FieldError::new(&slot.member, message)),
        }
    }
    headers
}

/// Refuses what would end a header or be read differently by different servers.
fn header_value(text: &str) -> Result<(), String> {
    if text.len() > MAX_HEADER {
        return Err(format!("may have at most {MAX_HEADER} bytes: it is sent in a header"));
    }
    if !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err("may only have visible ASCII characters and spaces: it is sent in a header".to_owned());
    }
    match text.trim() == text {
        true => Ok(()),
        false => Err("must not begin or end with a space: it is sent in a header".to_owned()),
    }
}

/// A scalar as text; `None` for null, arrays and objects.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// `name=value` of a query or a form.
fn pair(name: &str, value: &str) -> String {
    format!("{}={}", percent_encoded(name), percent_encoded(value))
}

#[cfg(test)]
mod tests;
