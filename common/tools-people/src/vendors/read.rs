//! Reads vendors' answers. Strings are untrusted: invisible characters are removed, lengths bounded, and invalid values
//! dropped.

use base::untrusted_text;
use platform::providers::OutboundError;
use serde_json::Value;
use url::Url;

use super::Reply;

/// Maximum number of entries in a list of a record.
pub const MAX_LIST: usize = 50;
const MAX_WORD: usize = 255;
const MAX_TEXT: usize = 4_000;

/// A record that was found. An empty one is an error: vendors have another answer for "unknown".
pub fn record<T: Default + PartialEq>(record: T) -> Result<Reply<T>, OutboundError> {
    if record == T::default() {
        return Err(OutboundError::Unreadable("it contains no record".to_owned()));
    }
    Ok(Reply::Found(record))
}

/// The list of records in an answer.
pub fn records(value: Option<&Value>) -> Result<&[Value], OutboundError> {
    let list = value.and_then(Value::as_array).map(Vec::as_slice);
    list.ok_or_else(|| OutboundError::Unreadable("it contains no list of records".to_owned()))
}

/// Untrusted text on one line, without invisible characters; `None` if nothing is left.
pub fn clean(text: &str, max_chars: usize) -> Option<String> {
    let text = untrusted_text::visible(text);
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 4 * max_chars {
            break;
        }
    }
    let line: String = line.chars().take(max_chars).collect();
    (!line.is_empty()).then_some(line)
}

/// A word or name at this JSON pointer.
pub fn word(value: &Value, pointer: &str) -> Option<String> {
    clean(value.pointer(pointer)?.as_str()?, MAX_WORD)
}

/// A longer text at this JSON pointer.
pub fn text(value: &Value, pointer: &str) -> Option<String> {
    clean(value.pointer(pointer)?.as_str()?, MAX_TEXT)
}

/// A whole number, also if it is a string.
pub fn number(value: &Value, pointer: &str) -> Option<u64> {
    let value = value.pointer(pointer)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// The items of a list, at most [`MAX_LIST`].
pub fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice).iter().take(MAX_LIST)
}

/// The strings of a list.
pub fn words(value: &Value, pointer: &str) -> Vec<String> {
    list(value, pointer).filter_map(|item| clean(item.as_str()?, MAX_WORD)).collect()
}

/// The e-mail address at this pointer, if it is valid.
pub fn email(value: &Value, pointer: &str) -> Option<String> {
    email_of(value.pointer(pointer)?.as_str()?)
}

/// The address in lower case, if it is valid: a local part, one `@`, and a domain with a dot.
pub fn email_of(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let (local, domain) = text.split_once('@')?;
    let fits = !local.is_empty()
        && text.len() <= 254
        && !text.contains(|letter: char| letter.is_whitespace() || letter.is_control() || "<>,;\"()".contains(letter))
        && domain_of(domain).as_deref() == Some(domain);
    fits.then_some(text)
}

/// The host of a URL, or the domain itself, in lower case and without `www.`; `None` if it is not a DNS name.
pub fn domain_of(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let host = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next()?.trim_end_matches('.');
    let host = host.strip_prefix("www.").unwrap_or(host);
    if host.contains([':', '@']) {
        return None;
    }
    let url = Url::parse(&format!("http://{host}/")).ok()?;
    let domain = url.domain()?;
    let fits = domain.len() <= 253
        && domain.contains('.')
        && domain.split('.').all(|label| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        });
    fits.then(|| domain.to_owned())
}

/// The domain at this pointer.
pub fn domain(value: &Value, pointer: &str) -> Option<String> {
    domain_of(value.pointer(pointer)?.as_str()?)
}

/// The profile URL at this pointer; vendors leave the scheme out.
pub fn profile(value: &Value, pointer: &str) -> Option<String> {
    profile_url(value.pointer(pointer)?.as_str()?)
}

/// A profile address as an http or https URL. It is never fetched.
pub fn profile_url(text: &str) -> Option<String> {
    let text = clean(text, 2_048)?;
    let text = if text.contains("://") { text } else { format!("https://{text}") };
    let url = Url::parse(&text).ok()?;
    let fits = matches!(url.scheme(), "http" | "https") && url.domain().is_some_and(|domain| domain.contains('.'));
    (fits && url.username().is_empty()).then(|| url.to_string())
}

/// A profile address without scheme, `www.`, country subdomain, query and trailing slash, to compare profiles.
pub fn profile_name(text: &str) -> Option<String> {
    let url = Url::parse(&profile_url(text)?).ok()?;
    let host = url.domain()?.to_lowercase();
    let host = host.strip_prefix("www.").unwrap_or(&host);
    let host = if host.ends_with(".linkedin.com") { "linkedin.com" } else { host };
    let path = url.path().trim_end_matches('/').to_lowercase();
    (!path.is_empty()).then(|| format!("{host}{path}"))
}

/// The address without a `+tag`: it reaches the same person.
pub fn plain_email(email: &str) -> String {
    match email.split_once('@') {
        Some((local, domain)) => format!("{}@{domain}", local.split('+').next().unwrap_or(local)),
        None => email.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_values_are_dropped() {
        assert_eq!(email_of(" Jane@Example.COM ").as_deref(), Some("jane@example.com"));
        for text in ["jane", "@x.org", "jane@", "jane@x", "a b@x.org", "jane@x..org", "<jane@x.org>", "j@x.org/y"] {
            assert_eq!(email_of(text), None, "{text}");
        }
        for (text, domain) in
            [("https://www.Example.com/a?b", "example.com"), ("b\u{fc}cher.example.", "xn--bcher-kva.example")]
        {
            assert_eq!(domain_of(text).as_deref(), Some(domain));
        }
        for text in ["localhost", "10.0.0.1", "example.com:80", "user@example.com", "", "a b.org"] {
            assert_eq!(domain_of(text), None, "{text}");
        }
        assert_eq!(profile_url("linkedin.com/in/x").as_deref(), Some("https://linkedin.com/in/x"));
        assert_eq!(profile_url("javascript:alert(1)"), None);
        assert_eq!(clean("a\u{202e}b \n  c\u{200b}", 4).as_deref(), Some("ab c"));
    }
}
