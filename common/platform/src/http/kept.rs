//! Cacheable documents with an `ETag`, so that a client that has the current version gets 304 instead of the body.

use std::io::Read;

use axum::body::{Body, Bytes};
use axum::response::Response;
use base::digest::sha256;
use base::encoding::base64_url;
use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;

#[derive(Clone, Debug)]
pub struct Kept {
    content_type: &'static str,
    body: Bytes,
    etag: String,
    max_age_secs: u32,
    /// The request header that selects this form of the document, if one does (`Vary`).
    varies_by: Option<&'static str>,
    /// `Content-Security-Policy`, for HTML pages.
    policy: Option<String>,
    /// The body is gzip; clients that do not accept gzip get it unpacked.
    is_packed: bool,
}

impl Kept {
    /// A document that any cache may store for `max_age_secs`.
    pub fn new(content_type: &'static str, body: impl Into<Bytes>, max_age_secs: u32) -> Kept {
        let body = body.into();
        let etag = format!("\"{}\"", base64_url(&sha256(&body)[..12]));
        Kept { content_type, body, etag, max_age_secs, varies_by: None, policy: None, is_packed: false }
    }

    pub fn json(body: &Value, max_age_secs: u32) -> Kept {
        Kept::new("application/json", body.to_string(), max_age_secs)
    }

    pub fn markdown(body: String, max_age_secs: u32) -> Kept {
        Kept::new("text/markdown; charset=utf-8", body, max_age_secs)
    }

    /// An HTML page. `policy` is its `Content-Security-Policy`.
    pub fn page(body: String, policy: String, max_age_secs: u32) -> Kept {
        Kept { policy: Some(policy), ..Kept::new("text/html; charset=utf-8", body, max_age_secs) }
    }

    /// A document stored as gzip: nearly every client accepts that.
    pub fn packed(content_type: &'static str, packed: impl Into<Bytes>, max_age_secs: u32) -> Kept {
        Kept { is_packed: true, ..Kept::new(content_type, packed, max_age_secs) }.by("accept-encoding")
    }

    /// Marks this as one of several forms, selected by this request header.
    pub fn by(self, header: &'static str) -> Kept {
        Kept { varies_by: Some(header), ..self }
    }

    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// 200, or 304 if the client has this version.
    pub fn answer(&self, request: &HeaderMap) -> Response {
        let known = request.get_all(header::IF_NONE_MATCH).iter().any(|given| self.is_named(given));
        let unpacks = self.is_packed && !takes_gzip(request);
        let body = || if unpacks { Body::from(unpacked(&self.body)) } else { Body::from(self.body.clone()) };
        let mut response = Response::new(if known { Body::empty() } else { body() });
        let headers = response.headers_mut();
        let mut set = |name, text: &str| {
            if let Ok(value) = HeaderValue::from_str(text) {
                headers.insert(name, value);
            }
        };
        // The unpacked form has other bytes, so it needs another ETag.
        set(header::ETAG, &if unpacks { self.unpacked_etag() } else { self.etag.clone() });
        set(header::CACHE_CONTROL, &format!("public, max-age={}", self.max_age_secs));
        if let Some(by) = self.varies_by {
            set(header::VARY, by);
        }
        if known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        set(header::CONTENT_TYPE, self.content_type);
        if self.is_packed && !unpacks {
            set(header::CONTENT_ENCODING, "gzip");
        }
        set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        if let Some(policy) = &self.policy {
            set(header::CONTENT_SECURITY_POLICY, policy);
            set(header::REFERRER_POLICY, "no-referrer");
            set(header::X_FRAME_OPTIONS, "DENY");
        }
        response
    }

    /// Whether an `If-None-Match` matches (RFC 9110, 13.1.2: weak comparison).
    fn is_named(&self, given: &HeaderValue) -> bool {
        let given = given.to_str().unwrap_or_default();
        let is_ours = |name: &str| name == self.etag || self.is_packed && name == self.unpacked_etag();
        given.split(',').map(str::trim).any(|name| name == "*" || is_ours(name.strip_prefix("W/").unwrap_or(name)))
    }

    fn unpacked_etag(&self) -> String {
        format!("{}-plain\"", self.etag.trim_end_matches('"'))
    }
}

/// Whether the client accepts gzip: `gzip` or `*` is listed, with a weight above zero.
fn takes_gzip(request: &HeaderMap) -> bool {
    let given = request.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let codings = given.flat_map(|value| value.split(',')).map(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.trim().parse().ok()).unwrap_or(1.0);
        (name.trim().to_ascii_lowercase(), weight > 0.0)
    });
    let named: Vec<_> = codings.filter(|(name, _)| matches!(name.as_str(), "gzip" | "x-gzip" | "*")).collect();
    let gzip = named.iter().find(|(name, _)| name != "*").or(named.first());
    gzip.is_some_and(|(_, wanted)| *wanted)
}

fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    // Our own data: unpacking cannot fail.
    let _ = GzDecoder::new(packed).read_to_end(&mut plain);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matching_etag_gets_304() {
        let kept = Kept::json(&serde_json::json!({"a": 1}), 60).by("accept");
        let status = |given: &str| {
            let headers = HeaderMap::from_iter([(header::IF_NONE_MATCH, given.parse().unwrap())]);
            kept.answer(&headers).status().as_u16()
        };
        let etag = kept.etag.clone();
        for given in [etag.as_str(), "*", &format!("W/{etag}"), &format!("\"x\", {etag}")] {
            assert_eq!(status(given), 304, "{given}");
        }
        for given in ["\"x\"", "", etag.trim_matches('"')] {
            assert_eq!(status(given), 200, "{given}");
        }
        assert_ne!(etag, Kept::json(&serde_json::json!({"a": 2}), 60).etag);
    }

    #[tokio::test]
    async fn clients_without_gzip_get_the_unpacked_body() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut packer, b"the same").unwrap();
        let kept = Kept::packed("text/plain", packer.finish().unwrap(), 60);
        let mut names = Vec::new();
        for (takes, is_packed) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("*", true),
            ("gzip;q=0, *", false),
            ("identity", false),
            ("", false),
        ] {
            let asked = HeaderMap::from_iter([(header::ACCEPT_ENCODING, takes.parse().unwrap())]);
            let (head, body) = kept.answer(&asked).into_parts();
            assert_eq!(head.headers.contains_key(header::CONTENT_ENCODING), is_packed, "{takes}");
            let body = axum::body::to_bytes(body, 100).await.unwrap();
            assert_eq!(if is_packed { unpacked(&body) } else { body.to_vec() }, b"the same", "{takes}");
            names.push((head.headers[header::ETAG].clone(), is_packed));
        }
        assert!(names.iter().all(|(name, packed)| (*name == names[0].0) == *packed), "{names:?}");
        for (name, _) in &names {
            let known = HeaderMap::from_iter([(header::IF_NONE_MATCH, name.clone())]);
            assert_eq!(kept.answer(&known).status(), 304);
        }
    }
}
