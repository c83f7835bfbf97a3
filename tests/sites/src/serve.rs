//! Serves the sites on a port.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::SitePage;

/// Serves all pages.
pub fn router() -> Router {
    router_of(crate::pages())
}

/// Serves some pages.
pub fn router_of(pages: &[SitePage]) -> Router {
    let sites = Arc::new(Sites::new(pages));
    Router::new().fallback(move |request: Request| {
        let sites = sites.clone();
        async move { sites.answer(request.uri(), request.headers()) }
    })
}

struct Sites {
    pages: HashMap<(String, String), SitePage>,
    hosts: Vec<String>,
}

impl Sites {
    fn new(pages: &[SitePage]) -> Sites {
        let mut hosts: Vec<String> = pages.iter().map(|page| page.host.clone()).collect();
        hosts.sort();
        hosts.dedup();
        let pages = pages.iter().map(|page| ((page.host.clone(), page.path.clone()), page.clone())).collect();
        Sites { pages, hosts }
    }

    fn answer(&self, uri: &axum::http::Uri, headers: &HeaderMap) -> Response {
        let named = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let bare = named.split(':').next().unwrap_or_default();
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        if self.hosts.iter().any(|host| host == bare) {
            return self.page(bare, target, None);
        }
        let origin = format!("http://{named}");
        if target == "/robots.txt" {
            return self.all_robots().into_response();
        }
        let after = target.trim_start_matches('/');
        let (host, path) =
            after.split_once('/').map_or((after, "/".to_owned()), |(host, path)| (host, format!("/{path}")));
        self.page(host, &path, Some(&origin))
    }

    fn page(&self, host: &str, path: &str, origin: Option<&str>) -> Response {
        if path == "/robots.txt" && self.hosts.iter().any(|known| known == host) {
            return robots(host, "").into_response();
        }
        let Some(page) = self.pages.get(&(host.to_owned(), path.to_owned())) else {
            let lost = "<title>Not found</title><h1>404</h1><p>There is no such page here.";
            return (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], lost).into_response();
        };
        let body = match origin {
            Some(origin) => self.rewritten(&page.body, origin),
            None => page.body.clone(),
        };
        let mut response = Response::builder().header(header::CONTENT_TYPE, &page.content_type);
        for (name, value) in &page.headers {
            response = response.header(*name, value);
        }
        response.body(Body::from(body)).unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
    }

    /// The body with every `https://<one of the hosts>` replaced by this port. Addresses are ASCII in every character
    /// set used here.
    fn rewritten(&self, body: &[u8], origin: &str) -> Vec<u8> {
        let mark = b"https://";
        let mut out = Vec::with_capacity(body.len() + 1024);
        let mut rest = body;
        while let Some(at) = rest.windows(mark.len()).position(|run| run == mark) {
            let (before, after) = (&rest[..at], &rest[at + mark.len()..]);
            out.extend_from_slice(before);
            let end = after.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b".-".contains(byte));
            let host = std::str::from_utf8(&after[..end.unwrap_or(after.len())]).unwrap_or_default();
            if self.hosts.iter().any(|known| known == host) {
                out.extend_from_slice(format!("{origin}/").as_bytes());
            } else {
                out.extend_from_slice(mark);
            }
            rest = after;
        }
        out.extend_from_slice(rest);
        out
    }

    /// The rules of all hosts, for a reader that treats the port as one site.
    fn all_robots(&self) -> String {
        let mut rules = "User-agent: *\nAllow: /\n".to_owned();
        for host in &self.hosts {
            let own = robots(host, &format!("/{host}"));
            rules.extend(own.lines().filter(|line| line.starts_with("Disallow: /")).map(|line| format!("{line}\n")));
        }
        rules
    }
}

/// A site's robots.txt, with `prefix` before its paths.
fn robots(host: &str, prefix: &str) -> String {
    let mut rules = format!("# {host}\nUser-agent: *\nDisallow: {prefix}/private/\nDisallow: {prefix}/*?sort=\n");
    if prefix.is_empty() {
        rules.push_str(&format!("\nSitemap: https://{host}/sitemap.xml\n"));
    }
    rules
}
