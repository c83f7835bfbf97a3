//! Protects the endpoint from browsers: pages of other origins are refused, and so are pages that bound their own host name
//! to this address (DNS rebinding). MCP requires the checks of `Origin` and `Host` in both eras of the protocol.

use http::header::{HOST, ORIGIN};
use http::request::Parts;
use lambda_http::request::RequestContext;
use platform::config::Config;
use url::Url;

/// The hosts and origins of this service.
#[derive(Clone, Debug)]
pub struct Guard {
    /// `host:port`, in lower case.
    hosts: Vec<String>,
    /// `scheme://host:port`.
    origins: Vec<String>,
}

impl Guard {
    /// From the base URL and the configured origins.
    pub fn configured(config: &Config) -> Guard {
        let base = config.base_url.iter().map(String::as_str);
        let bases: Vec<Url> = base.filter_map(|text| Url::parse(text).ok()).flat_map(aliases).collect();
        let others = config.allowed_origins.iter().filter_map(|text| Url::parse(text).ok());
        let origins = bases.iter().cloned().chain(others).map(|url| url.origin().ascii_serialization()).collect();
        Guard { hosts: bases.iter().filter_map(authority).collect(), origins }
    }

    /// Refuses requests for another host, or from a page of another origin.
    pub fn check(&self, parts: &Parts) -> Result<(), &'static str> {
        // Behind API Gateway, the gateway's own host name is accepted too: it cannot be rebound.
        let gateway = match parts.extensions.get::<RequestContext>() {
            Some(RequestContext::ApiGatewayV2(context)) => context.domain_name.as_deref(),
            _ => None,
        };
        let gateway = gateway.and_then(|name| Url::parse(&format!("https://{name}")).ok());
        let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = host.or_else(|| parts.uri.authority().map(|authority| authority.as_str()));
        let scheme = if self.origins.iter().any(|origin| origin.starts_with("http://")) { "http" } else { "https" };
        let host = host.and_then(|host| Url::parse(&format!("{scheme}://{host}")).ok()).as_ref().and_then(authority);
        let known = |host: &String| {
            self.hosts.contains(host)
                || gateway.as_ref().and_then(authority).is_some_and(|name| without_port(host) == without_port(&name))
        };
        if !host.as_ref().is_some_and(known) {
            return Err("the Host header does not name this service");
        }
        let mut origins = parts.headers.get_all(ORIGIN).iter();
        let is_own = |origin: &http::HeaderValue| {
            let origin = origin.to_str().ok().and_then(|origin| Url::parse(origin).ok()).map(|url| url.origin());
            origin.is_some_and(|origin| {
                let text = origin.ascii_serialization();
                origin.is_tuple()
                    && (self.origins.contains(&text) || gateway.as_ref().is_some_and(|own| own.origin() == origin))
            })
        };
        if origins.all(is_own) { Ok(()) } else { Err("pages of this Origin may not call this service") }
    }
}

/// A URL and, if it is a loopback address, its other loopback names.
fn aliases(url: Url) -> Vec<Url> {
    const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];
    if !url.host_str().is_some_and(|host| LOOPBACK.contains(&host)) {
        return vec![url];
    }
    let named = |host: &&str| {
        let mut other = url.clone();
        other.set_host(Some(host)).is_ok().then_some(other)
    };
    LOOPBACK.iter().filter_map(named).collect()
}

fn authority(url: &Url) -> Option<String> {
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

fn without_port(authority: &str) -> &str {
    authority.rsplit_once(':').map_or(authority, |(host, _)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(base: &str, headers: &[(&str, &str)]) -> bool {
        let read = |name: &str| match name {
            "PAY_TO" => Some("0x00000000000000000000000000000000000000ff".to_owned()),
            "PUBLIC_BASE_URL" => Some(base.to_owned()),
            "ALLOWED_ORIGINS" => Some("https://app.example.org".to_owned()),
            _ => None,
        };
        let guard = Guard::configured(&Config::read(read).unwrap());
        let mut request = http::Request::post("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        guard.check(&request.body(()).unwrap().into_parts().0).is_ok()
    }

    #[test]
    fn only_own_hosts_and_origins_are_accepted() {
        let public = "https://tools.example.com";
        for (headers, good) in [
            (&[("host", "tools.example.com")][..], true),
            (&[("host", "TOOLS.example.com:443")], true),
            (&[("host", "tools.example.com:8443")], false),
            (&[("host", "evil.example.com")], false),
            (&[("host", "tools.example.com.evil.com")], false),
            (&[], false),
            (&[("host", "tools.example.com"), ("origin", "https://tools.example.com")], true),
            (&[("host", "tools.example.com"), ("origin", "https://app.example.org")], true),
            (&[("host", "tools.example.com"), ("origin", "http://tools.example.com")], false),
            (&[("host", "tools.example.com"), ("origin", "https://evil.example.com")], false),
            (&[("host", "tools.example.com"), ("origin", "null")], false),
            (
                &[
                    ("host", "tools.example.com"),
                    ("origin", "https://tools.example.com"),
                    ("origin", "https://evil.example.com"),
                ],
                false,
            ),
        ] {
            assert_eq!(answers(public, headers), good, "{headers:?}");
        }
        let local = "http://127.0.0.1:8402";
        assert!(answers(local, &[("host", "localhost:8402"), ("origin", "http://localhost:8402")]));
        assert!(!answers(local, &[("host", "localhost:9999")]));
        assert!(!answers(local, &[("host", "127.0.0.1:8402"), ("origin", "http://localhost:9999")]));
    }
}
