//! Values that every request has: texts, and references to secrets.

use serde_json::Value;

use super::entry::is_word;
use crate::problem::{Problem, Reader, below, text};
use crate::request::CALL_HEADER;
use crate::tool::{Constant, SecretUse};

/// Most constants of one kind.
const MAX_CONSTANTS: usize = 30;
const MAX_VALUE: usize = 1_000;
const MAX_PREFIX: usize = 64;

/// Headers that belong to the connection, or say who opens it.
const CONNECTION: [&str; 13] = [
    CALL_HEADER,
    "host",
    "connection",
    "keep-alive",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "accept-encoding",
    "http2-settings",
];

/// Names whose values are secrets: the whole name, or its end.
const SECRET_NAMES: [&str; 7] = ["authorization", "cookie", "key", "token", "auth", "sig", "signature"];
const SECRET_ENDS: [&str; 8] =
    ["apikey", "authtoken", "accesstoken", "secret", "password", "accesskey", "secretkey", "privatetoken"];
/// How texts begin that are most likely secrets.
const SECRET_BEGINNINGS: [&str; 9] = ["bearer ", "basic ", "sk-", "sk_", "ghp_", "github_pat_", "xox", "akia", "eyj"];

/// Shorter texts with such a beginning are something else: `sk-SK` is a language.
const LEAST_SECRET: usize = 14;

/// A header that settings and callers may not set.
pub fn is_connection_header(name: &str) -> bool {
    CONNECTION.contains(&name) || name.starts_with("proxy-")
}

/// A header's name in lower case: a token of RFC 9110.
pub fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.len() <= 100 && name.bytes().all(is_token)
}

/// What can be sent as a header's value: visible ASCII and spaces, none of them at an end.
pub fn is_header_value(value: &str) -> bool {
    value.trim() == value && value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Constants of the query and of the headers.
#[derive(Default)]
pub struct Constants {
    pub query: Vec<(String, Constant)>,
    pub headers: Vec<(String, Constant)>,
}

pub fn read(value: &Value, at: &str) -> Result<Constants, Vec<Problem>> {
    let mut reader = Reader::new(value, at)?;
    let query = reader.inner("query", |value, at| list(value, at, false));
    let headers = reader.inner("headers", |value, at| list(value, at, true));
    let problems = reader.finish();
    let constants = Constants { query: query.unwrap_or_default(), headers: headers.unwrap_or_default() };
    if problems.is_empty() { Ok(constants) } else { Err(problems) }
}

fn list(value: &Value, at: &str, headers: bool) -> Result<Vec<(String, Constant)>, Vec<Problem>> {
    let Some(members) = value.as_object() else {
        return Err(vec![Problem::new(at, "must be an object of names and values")]);
    };
    if members.len() > MAX_CONSTANTS {
        return Err(vec![Problem::new(at, format!("may have at most {MAX_CONSTANTS} members"))]);
    }
    let mut problems = Vec::new();
    let mut constants: Vec<(String, Constant)> = Vec::new();
    for (name, value) in members {
        let at = below(at, name);
        let name = if headers { name.to_ascii_lowercase() } else { name.clone() };
        if let Some(message) = wrong_name(&name, headers) {
            problems.push(Problem::new(&at, message));
        } else if constants.iter().any(|(known, _)| *known == name) {
            problems.push(Problem::new(&at, "is there twice"));
        }
        match constant(&name, value, &at) {
            Ok(constant) => constants.push((name, constant)),
            Err(wrong) => problems.extend(wrong),
        }
    }
    if problems.is_empty() { Ok(constants) } else { Err(problems) }
}

fn wrong_name(name: &str, header: bool) -> Option<&'static str> {
    match header {
        true if !is_header_name(name) => Some("is not a header's name"),
        true if is_connection_header(name) => Some("belongs to the connection and cannot be set; leave it out"),
        false if name.is_empty() || name.len() > 100 => Some("must have a name of 1 to 100 bytes"),
        _ => None,
    }
}

fn constant(name: &str, value: &Value, at: &str) -> Result<Constant, Vec<Problem>> {
    let wrong = |message: String| vec![Problem::new(at, message)];
    if value.is_object() {
        return secret(value, at).map(Constant::Secret);
    }
    if !value.is_string() {
        return Err(wrong("must be a string, or a reference such as {\"secret\": \"billing_key\"}".to_owned()));
    }
    let value = text(0, MAX_VALUE)(value).map_err(wrong)?;
    if !is_header_value(&value) {
        return Err(wrong("must be ASCII without spaces at its ends".to_owned()));
    }
    if is_secret(name, &value) {
        let message =
            "must not be in this file: put the value into the secret store and write {\"secret\": \"its_name\"}";
        return Err(wrong(message.to_owned()));
    }
    Ok(Constant::Text(value))
}

fn is_secret(name: &str, value: &str) -> bool {
    let name: String = name.to_ascii_lowercase().replace(['-', '_', '.'], "");
    let value = value.to_ascii_lowercase();
    SECRET_NAMES.contains(&name.as_str())
        || SECRET_ENDS.iter().any(|end| name.ends_with(end))
        || value.len() >= LEAST_SECRET && SECRET_BEGINNINGS.iter().any(|beginning| value.starts_with(beginning))
}

fn secret(value: &Value, at: &str) -> Result<SecretUse, Vec<Problem>> {
    let mut reader = Reader::new(value, at)?;
    let name = reader.required("secret", |value| {
        let name = value.as_str().filter(|name| is_word(name));
        name.map(str::to_owned)
            .ok_or_else(|| "must be the name of an entry of the secret store, in snake_case".to_owned())
    });
    let prefix = reader.optional("prefix", |value| {
        let prefix = text(0, MAX_PREFIX)(value)?;
        match prefix.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            true => Ok(prefix),
            false => Err("must be ASCII".to_owned()),
        }
    });
    let base64 = reader.optional("encoding", |value| match value.as_str() {
        Some("base64") => Ok(true),
        _ => Err("must be \"base64\", or left out".to_owned()),
    });
    let problems = reader.finish();
    match name {
        Some(secret) if problems.is_empty() => {
            Ok(SecretUse { secret, prefix: prefix.unwrap_or_default(), base64: base64.unwrap_or_default() })
        }
        _ => Err(problems),
    }
}
