//! Judges a URL by its text alone, before any lookup or price.
//!
//! A URL that passes may still lead to a private address once its name is resolved; that is checked when the connection is
//! opened. Refusing here lets the caller know before a price is quoted.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use super::address::is_public;
use super::policy::FetchPolicy;

/// Longest URL, in characters.
const MAX_URL_CHARS: usize = 2048;

/// Private names (RFC 6761, RFC 6762, RFC 8375, and `internal`, reserved by ICANN) and all names below them.
const PRIVATE_SUFFIXES: [&str; 4] = ["localhost", "local", "internal", "home.arpa"];

/// Why a URL may not be fetched. The text is for the caller, and follows the URL's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlRefused {
    TooLong,
    Malformed,
    Scheme,
    Credentials,
    Port,
    PrivateName,
    PrivateAddress,
}

impl fmt::Display for UrlRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "must have at most 2048 characters",
            Self::Malformed => "must be a complete URL, such as https://example.com/page",
            Self::Scheme => "must be an http or https URL, such as https://example.com/page",
            Self::Credentials => "must not contain a user name or password",
            Self::Port => "must be on port 80 or 443",
            Self::PrivateName => "must have a public host name, such as example.com",
            Self::PrivateAddress => "must be on the public internet",
        })
    }
}

impl std::error::Error for UrlRefused {}

/// Parses a caller's URL and checks everything that needs no DNS.
pub fn check_url(text: &str, policy: &FetchPolicy) -> Result<Url, UrlRefused> {
    if text.chars().count() > MAX_URL_CHARS {
        return Err(UrlRefused::TooLong);
    }
    let url = Url::parse(text).map_err(|_| UrlRefused::Malformed)?;
    check_parsed(&url, policy)?;
    Ok(url)
}

/// The checks of [`check_url`] for a parsed URL: the target of a redirect, resolved against its page. Its length is not
/// checked; the cap on header bytes limits it.
pub(super) fn check_parsed(url: &Url, policy: &FetchPolicy) -> Result<(), UrlRefused> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(UrlRefused::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(UrlRefused::Credentials);
    }
    let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return Err(UrlRefused::Malformed);
    };
    if policy.allows_local(&host.to_string(), port) {
        return Ok(());
    }
    if !matches!(port, 80 | 443) {
        return Err(UrlRefused::Port);
    }
    match host {
        Host::Domain(name) if is_private_name(name) => Err(UrlRefused::PrivateName),
        Host::Ipv4(ip) if !is_public(IpAddr::V4(ip)) => Err(UrlRefused::PrivateAddress),
        Host::Ipv6(ip) if !is_public(IpAddr::V6(ip)) => Err(UrlRefused::PrivateAddress),
        _ => Ok(()),
    }
}

/// Names without a dot are resolved in the local search domain, and a trailing dot is a second spelling that name
/// comparisons elsewhere tend to miss. Both count as private. `name` is in lower case, as the URL parser returns it.
fn is_private_name(name: &str) -> bool {
    !name.contains('.')
        || name.ends_with('.')
        || PRIVATE_SUFFIXES
            .iter()
            .any(|suffix| name.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<String, UrlRefused> {
        check_url(text, &FetchPolicy::default()).map(String::from)
    }

    #[test]
    fn public_urls_pass() {
        for (text, parsed) in [
            ("http://example.org", "http://example.org/"),
            ("https://Example.ORG/a?b#c", "https://example.org/a?b#c"),
            ("https://example.org:80/", "https://example.org:80/"),
            ("http://example.org:443/", "http://example.org:443/"),
            ("https://1.1.1.1/", "https://1.1.1.1/"),
            ("https://[2606:4700:4700::1111]/", "https://[2606:4700:4700::1111]/"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
            ("http://no-such-host.invalid/", "http://no-such-host.invalid/"),
            ("http://mylocal.org/", "http://mylocal.org/"),
            ("http://internal.example.org/", "http://internal.example.org/"),
        ] {
            assert_eq!(check(text).as_deref(), Ok(parsed), "{text}");
        }
    }

    #[test]
    fn other_urls_are_refused_with_their_reason() {
        use UrlRefused::*;
        for (text, reason) in [
            ("", Malformed),
            ("example.org", Malformed),
            ("/path", Malformed),
            ("http://", Malformed),
            ("http://[::1", Malformed),
            ("ftp://example.org/", Scheme),
            ("file:///etc/passwd", Scheme),
            ("gopher://example.org/", Scheme),
            ("javascript:alert(1)", Scheme),
            ("data:text/plain,hello", Scheme),
            ("http://user@example.org/", Credentials),
            ("http://user:secret@example.org/", Credentials),
            ("http://:secret@example.org/", Credentials),
            ("http://example.org@127.0.0.1/", Credentials),
            ("http://example.org:8080/", Port),
            ("https://example.org:22/", Port),
            ("http://localhost:9001/", Port),
            ("http://localhost/", PrivateName),
            ("http://LOCALHOST/", PrivateName),
            ("http://localhost./", PrivateName),
            ("http://a.localhost/", PrivateName),
            ("http://printer.local/", PrivateName),
            ("http://printer.local./", PrivateName),
            ("http://instance-data.ec2.internal/", PrivateName),
            ("http://metadata.google.internal/", PrivateName),
            ("http://nas.home.arpa/", PrivateName),
            ("http://intranet/", PrivateName),
            ("http://example.org./", PrivateName),
            ("http://127.0.0.1/", PrivateAddress),
            ("http://127.0.0.1./", PrivateAddress),
            ("http://127.1/", PrivateAddress),
            ("http://2130706433/", PrivateAddress),
            ("http://0x7f000001/", PrivateAddress),
            ("http://0x7f.0.0.1/", PrivateAddress),
            ("http://0177.0.0.1/", PrivateAddress),
            ("http://%31%32%37.0.0.1/", PrivateAddress),
            ("http://１２７.０.０.１/", PrivateAddress),
            ("http:\\\\127.0.0.1\\", PrivateAddress),
            ("ht\ntp://127.0.0.1/", PrivateAddress),
            ("http://0/", PrivateAddress),
            ("http://10.0.0.1/", PrivateAddress),
            ("http://192.168.1.1/", PrivateAddress),
            ("http://169.254.169.254/latest/meta-data/", PrivateAddress),
            ("http://[::]/", PrivateAddress),
            ("http://[::1]/", PrivateAddress),
            ("http://[::ffff:127.0.0.1]/", PrivateAddress),
            ("http://[::ffff:8.8.8.8]/", PrivateAddress),
            ("http://[64:ff9b::7f00:1]/", PrivateAddress),
            ("http://[fd00:ec2::254]/", PrivateAddress),
            ("http://[fe80::1]/", PrivateAddress),
        ] {
            assert_eq!(check(text), Err(reason), "{text}");
        }
    }

    #[test]
    fn length_is_counted_in_characters_as_sent() {
        let longest = format!("http://example.org/{}", "é".repeat(2048 - 19));
        assert!(check(&longest).is_ok());
        assert_eq!(check(&format!("{longest}é")), Err(UrlRefused::TooLong));
    }

    #[test]
    fn only_the_exact_allowed_pair_passes() {
        let policy = FetchPolicy::default().allowing_local([
            ("127.0.0.1".to_owned(), 8080),
            ("[::1]".to_owned(), 8081),
            ("demo.test".to_owned(), 8082),
        ]);
        let ok = |text: &str| check_url(text, &policy).is_ok();
        assert!(ok("http://127.0.0.1:8080/x"));
        assert!(ok("http://2130706433:8080/x"));
        assert!(ok("http://[::1]:8081/"));
        assert!(ok("http://demo.test:8082/"));
        for text in [
            "http://127.0.0.1:8081/",
            "http://127.0.0.1/",
            "http://127.0.0.2:8080/",
            "http://localhost:8080/",
            "http://[::1]:8080/",
            "http://demo.test:8080/",
            "ftp://127.0.0.1:8080/",
            "http://user@127.0.0.1:8080/",
        ] {
            assert!(!ok(text), "{text}");
        }
    }
}
