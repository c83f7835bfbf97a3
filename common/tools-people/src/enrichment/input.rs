//! Inputs that several of these tools share.

use base::input::{Field, FieldError, Format, Kind};
use platform::net::FetchPolicy;
use serde_json::{Map, Value};
use tools::spec::URI;

use super::site::authority;
use crate::vendors::{domain_of, email_of, profile_url};

pub const NAME: Kind = Kind::Text { min: 1, max: 255, format: Some(&SAYS) };
pub const EMAIL_KIND: Kind = Kind::Text { min: 3, max: 254, format: Some(&EMAIL) };
pub const DOMAIN_KIND: Kind = Kind::Text { min: 1, max: 255, format: Some(&DOMAIN) };
pub const PROFILE_KIND: Kind = Kind::Text { min: 1, max: 2048, format: Some(&PROFILE) };
pub const URL_KIND: Kind = Kind::Text { min: 1, max: 2048, format: Some(&URI) };
pub const WORDS: Kind = Kind::List { of: &NAME, max: 50 };

/// Any text with a visible character.
pub static SAYS: Format =
    Format { name: None, pattern: Some(r"\S"), matches: |text| !text.trim().is_empty(), message: "must not be empty" };

static EMAIL: Format = Format {
    name: Some("email"),
    pattern: None,
    matches: |text| email_of(text).is_some(),
    message: "must be an e-mail address",
};

/// Checks the form only; [`public`] checks that it is not a private address.
static DOMAIN: Format = Format {
    name: None,
    pattern: Some(r"\S"),
    matches: |text| host_of(text).is_some(),
    message: "must be a domain, such as example.com",
};

static PROFILE: Format = Format {
    name: None,
    pattern: Some(r"\."),
    matches: |text| profile_url(text).is_some(),
    message: "must be the address of a profile",
};

pub const PHONES: Field = Field::optional("include_phone", Kind::Bool, "Whether to include phone numbers");

/// Errors unless at least one of these members is given.
pub fn one_of(input: &Map<String, Value>, names: &[&str]) -> Vec<FieldError> {
    if names.iter().any(|name| input.contains_key(*name)) {
        return Vec::new();
    }
    let message = format!("one of {} is required", names.join(", "));
    vec![FieldError::new(names[0], message)]
}

/// A domain; or a host and its port, if it is not a DNS name.
pub fn host_of(text: &str) -> Option<String> {
    let host = || {
        let text = text.trim().to_lowercase();
        let rest = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
        let url = url::Url::parse(&format!("http://{}/", rest.split(['/', '?', '#']).next()?)).ok()?;
        let plain = url.username().is_empty() && url.path() == "/";
        plain.then(|| url[url::Position::BeforeHost..url::Position::AfterPort].to_owned())
    };
    domain_of(text).or_else(host)
}

/// An error if the guard refuses the host in this member.
pub fn public(input: &Map<String, Value>, name: &str, policy: &FetchPolicy) -> Vec<FieldError> {
    match input.get(name).and_then(Value::as_str) {
        Some(text) if authority(text, policy).is_none() => {
            vec![FieldError::new(name, "must be a public domain, such as example.com")]
        }
        _ => Vec::new(),
    }
}

/// The strings of a list.
pub fn texts(input: &Map<String, Value>, name: &str) -> Vec<String> {
    let items = input.get(name).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(|text| text.trim().to_owned()).collect()
}

/// A trimmed text, if it was given.
pub fn given(input: &Map<String, Value>, name: &str) -> Option<String> {
    input.get(name).and_then(Value::as_str).map(|text| text.trim().to_owned())
}
