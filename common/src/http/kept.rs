//! Documents that caches may keep: each with a name for its bytes (`ETag`), so that whoever has them is told so and not
//! sent them again.

use axum::body::{Body, Bytes};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::Value;

use crate::digest::sha256;
use crate::encoding::base64_url;

/// A document, whole.
#[derive(Clone, Debug)]
pub struct Kept {
    content_type: &'static str,
    body: Bytes,
    etag: String,
    max_age_secs: u32,
    /// The request's header that chooses between forms of it, if one does.
    varies_by: Option<&'static str>,
    /// `Content-Security-Policy`, of pages.
    policy: Option<String>,
}

impl Kept {
    /// A document that everybody may keep for so long.
    pub fn new(content_type: &'static str, body: impl Into<Bytes>, max_age_secs: u32) -> Kept {
        let body = body.into();
        let etag = format!("\"{}\"", base64_url(&sha256(&body)[..12]));
        Kept { content_type, body, etag, max_age_secs, varies_by: None, policy: None }
    }

    pub fn json(body: &Value, max_age_secs: u32) -> Kept {
        Kept::new("application/json", body.to_string(), max_age_secs)
    }

    pub fn markdown(body: String, max_age_secs: u32) -> Kept {
        Kept::new("text/markdown; charset=utf-8", body, max_age_secs)
    }

    /// A page for people. `policy` lets in what it needs.
    pub fn page(body: String, policy: String, max_age_secs: u32) -> Kept {
        Kept { policy: Some(policy), ..Kept::new("text/html; charset=utf-8", body, max_age_secs) }
    }

    /// One of several forms, chosen by this header of the request.
    pub fn by(self, header: &'static str) -> Kept {
        Kept { varies_by: Some(header), ..self }
    }

    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// 200, or 304 for who has it already.
    pub fn answer(&self, request: &HeaderMap) -> Response {
        let known = request.get_all(header::IF_NONE_MATCH).iter().any(|given| self.is_named(given));
        let mut response = Response::new(if known { Body::empty() } else { Body::from(self.body.clone()) });
        let headers = response.headers_mut();
        let mut set = |name, text: &str| {
            if let Ok(value) = HeaderValue::from_str(text) {
                headers.insert(name, value);
            }
        };
        set(header::ETAG, &self.etag);
        set(header::CACHE_CONTROL, &format!("public, max-age={}", self.max_age_secs));
        if let Some(by) = self.varies_by {
            set(header::VARY, by);
        }
        if known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        set(header::CONTENT_TYPE, self.content_type);
        set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        if let Some(policy) = &self.policy {
            set(header::CONTENT_SECURITY_POLICY, policy);
            set(header::REFERRER_POLICY, "no-referrer");
            set(header::X_FRAME_OPTIONS, "DENY");
        }
        response
    }

    /// Whether an `If-None-Match` names these bytes (RFC 9110, 13.1.2: weakly compared).
    fn is_named(&self, given: &HeaderValue) -> bool {
        let given = given.to_str().unwrap_or_default();
        given.split(',').map(str::trim).any(|name| name == "*" || name.strip_prefix("W/").unwrap_or(name) == self.etag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_bytes_is_not_sent_them() {
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
}
