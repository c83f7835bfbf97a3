//! Addresses of the operator's services.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use crate::tool::Server;

/// Longest address, in bytes.
const MAX_ADDRESS: usize = 500;
/// Names that are resolved in a private network.
const PRIVATE_SUFFIXES: [&str; 4] = ["localhost", "local", "internal", "home.arpa"];

/// Reads an address: an origin, and a path that all requests begin with. Whether a public name leads to a private host
/// shows only when the connection is opened; the caller's network policy looks there.
pub fn server(text: &str, private: bool) -> Result<Server, String> {
    if text.len() > MAX_ADDRESS {
        return Err(format!("must have at most {MAX_ADDRESS} bytes"));
    }
    let url = Url::parse(text).map_err(|_| "must be an address such as https://api.example.com")?;
    if !matches!(url.scheme(), "https" | "http") {
        return Err("must begin with https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password; name a secret in constants".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must end before ? and #; the query belongs into constants".to_owned());
    }
    let host = url.host().ok_or("must have a host")?;
    if is_link_local(&host) {
        return Err("must not be a link-local address: those of cloud metadata are there".to_owned());
    }
    match (is_private(&host), private) {
        (false, true) => match host {
            // Within a network, a name may lead to another place than outside.
            Host::Domain(_) if url.scheme() == "https" => {}
            Host::Domain(_) => {
                return Err("must begin with https://, because the name may lead to a public host".to_owned());
            }
            _ => return Err("is a public host: leave out private".to_owned()),
        },
        (true, false) => return Err("is a private host: set private to true if it is meant".to_owned()),
        (false, false) if url.scheme() == "http" => {
            return Err("must begin with https://; http is only for private hosts (private: true)".to_owned());
        }
        _ => {}
    }
    // The parser resolves dot segments, so that the text has to be looked at.
    let path = text.to_ascii_lowercase().replace("%2e", ".");
    if text.contains('\\') || path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err("must not contain backslashes or dot segments".to_owned());
    }
    Ok(Server { address: url.as_str().trim_end_matches('/').to_owned(), private })
}

fn is_private(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let is_below = |rest: &str| rest.is_empty() || rest.ends_with('.');
            let is_special = PRIVATE_SUFFIXES.iter().any(|suffix| name.strip_suffix(suffix).is_some_and(is_below));
            !name.contains('.') || name.ends_with('.') || is_special
        }
        Host::Ipv4(ip) => is_private_v4(*ip),
        Host::Ipv6(ip) => embedded(*ip).map_or_else(|| is_private_v6(*ip), is_private_v4),
    }
}

fn is_private_v4(ip: Ipv4Addr) -> bool {
    let [first, second, ..] = ip.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    ip.is_private() || ip.is_loopback() || is_shared || first == 0 || first >= 224
}

fn is_private_v6(ip: Ipv6Addr) -> bool {
    let first = ip.segments()[0];
    // Only 2000::/3 is on the public internet.
    IpAddr::V6(ip).is_loopback() || first & 0xe000 != 0x2000
}

/// The IPv4 address in an IPv6 one.
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    ip.to_ipv4_mapped()
}

fn is_link_local(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "metadata.google.internal",
        Host::Ipv4(ip) => ip.is_link_local(),
        // fd00:ec2::254 is the metadata of one cloud.
        Host::Ipv6(ip) => {
            let segments = ip.segments();
            embedded(*ip).is_some_and(|ip| ip.is_link_local())
                || segments[0] & 0xffc0 == 0xfe80
                || segments[..2] == [0xfd00, 0x0ec2]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_hosts_are_asked_over_tls_and_private_ones_only_if_meant() {
        for (text, private, address) in [
            ("https://api.example.com", false, "https://api.example.com"),
            ("https://API.example.com:8443/base/v1/", false, "https://api.example.com:8443/base/v1"),
            ("http://127.0.0.1:9000", true, "http://127.0.0.1:9000"),
            ("http://billing.internal/x", true, "http://billing.internal/x"),
            ("http://billing:8080", true, "http://billing:8080"),
            ("https://10.1.2.3", true, "https://10.1.2.3"),
            ("https://billing.example.com", true, "https://billing.example.com"),
            ("http://[::1]:1", true, "http://[::1]:1"),
        ] {
            assert_eq!(server(text, private).map(|server| server.address).as_deref(), Ok(address));
        }
        for (text, private, message) in [
            ("http://api.example.com", false, "must begin with https://; http is only"),
            ("http://api.example.com", true, "must begin with https://, because"),
            ("http://metadata.google.internal/", true, "must not be a link-local"),
            ("http://8.8.8.8", true, "is a public host"),
            ("http://127.0.0.1", false, "is a private host"),
            ("https://0x7f000001", false, "is a private host"),
            ("https://[::ffff:127.0.0.1]", false, "is a private host"),
            ("https://localhost.", false, "is a private host"),
            ("http://169.254.169.254/latest", true, "must not be a link-local"),
            ("http://[fd00:ec2::254]/", true, "must not be a link-local"),
            ("http://[::ffff:a9fe:a9fe]/", true, "must not be a link-local"),
            ("ftp://example.com", false, "must begin with https://"),
            ("example.com", false, "must be an address"),
            ("https://user:word@example.com", false, "must not contain a user name"),
            ("https://example.com/?key=1", false, "must end before ?"),
            ("https://example.com/#a", false, "must end before ?"),
            ("https://example.com/a/%2e%2E/b", false, "must not contain backslashes or dot"),
            ("https://example.com/a/../b", false, "must not contain backslashes or dot"),
        ] {
            let found = server(text, private).unwrap_err();
            assert!(found.starts_with(message), "{text}: {found}");
        }
    }
}
