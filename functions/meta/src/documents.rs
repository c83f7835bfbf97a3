//! Documents that stay the same while the process lives: the API description, and the page that shows it to people.
//!
//! The page is [Swagger UI](https://github.com/swagger-api/swagger-ui) 5.35.0 (Apache-2.0, `assets/`), from here and from
//! nowhere else: its policy lets the browser ask nobody but this origin. The assets are kept packed, as nearly every browser
//! takes them.

use std::io::{Read, Write};

use axum::body::{Body, Bytes};
use axum::response::Response;
use common::app::App;
use common::digest::sha256;
use common::http::ApiError;
use common::operations::document::{self, Facts};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// Text with its packed form and its name.
pub struct Document {
    content_type: &'static str,
    max_age_secs: u32,
    packed: Bytes,
    etag: String,
}

/// Seconds that anybody may keep a copy without asking.
const DESCRIPTION_KEPT: u32 = 300;
const ASSET_KEPT: u32 = 24 * 3600;

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

impl Document {
    fn of(content_type: &'static str, max_age_secs: u32, packed: Bytes) -> Document {
        let etag = format!("\"{}\"", const_hex(&sha256(&packed)));
        Document { content_type, max_age_secs, packed, etag }
    }

    /// The API description of this deployment.
    pub fn openapi(app: &App) -> Result<Document, ApiError> {
        let network = app.config.chain.caip2();
        let facts = Facts {
            service_name: &app.config.service_name,
            base_url: app.config.base_url.as_deref(),
            network: &network,
            version: env!("CARGO_PKG_VERSION"),
        };
        let text = document::document(&facts).to_string();
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        let packed = packer.write_all(text.as_bytes()).and_then(|()| packer.finish());
        let packed = packed.map_err(|error| ApiError::Unavailable(common::store::StoreError::new(error)))?;
        Ok(Document::of("application/json", DESCRIPTION_KEPT, Bytes::from(packed)))
    }

    /// A part of the page.
    pub fn asset(name: &str) -> Option<Document> {
        let (content_type, packed): (&str, &'static [u8]) = match name {
            "swagger-ui-bundle.js" => (SCRIPT, include_bytes!("../assets/swagger-ui-bundle.js.gz")),
            "swagger-ui.css" => (STYLE, include_bytes!("../assets/swagger-ui.css.gz")),
            _ => return None,
        };
        Some(Document::of(content_type, ASSET_KEPT, Bytes::from_static(packed)))
    }

    /// The answer to whoever asks, perhaps with a copy at hand.
    pub fn answer(&self, headers: &HeaderMap) -> Response {
        let text =
            |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut response = Response::new(Body::empty());
        let is_known =
            text(header::IF_NONE_MATCH).split(',').any(|tag| tag.trim().trim_start_matches("W/") == self.etag);
        let takes_packed = text(header::ACCEPT_ENCODING).split(',').any(|coding| coding.trim() == "gzip");
        let mut set = |name: header::HeaderName, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                response.headers_mut().insert(name, value);
            }
        };
        set(header::ETAG, &self.etag);
        set(header::CACHE_CONTROL, &format!("public, max-age={}", self.max_age_secs));
        set(header::VARY, "accept-encoding");
        set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        set(header::CONTENT_TYPE, self.content_type);
        if takes_packed {
            set(header::CONTENT_ENCODING, "gzip");
            *response.body_mut() = Body::from(self.packed.clone());
        } else {
            let mut text = Vec::new();
            // Our own bytes: they unpack.
            let _ = GzDecoder::new(&self.packed[..]).read_to_end(&mut text);
            *response.body_mut() = Body::from(text);
        }
        response
    }
}

fn const_hex(bytes: &[u8]) -> String {
    bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The page itself. Its script is a file of its own, because the policy runs nothing that stands in the page.
pub fn page(service_name: &str) -> Response {
    let name: String = service_name.chars().filter(|letter| !matches!(letter, '<' | '>' | '&' | '"')).collect();
    let html = include_str!("../assets/docs.html").replace("{service}", &name);
    let mut response = plain("text/html; charset=utf-8", Body::from(html));
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

/// `docs.js` and `docs.css`: what is ours of the page.
pub fn own_asset(name: &str) -> Option<Response> {
    match name {
        "docs.js" => Some(plain(SCRIPT, Body::from(include_str!("../assets/docs.js")))),
        "docs.css" => Some(plain(STYLE, Body::from(include_str!("../assets/docs.css")))),
        _ => None,
    }
}

/// Nothing from elsewhere, nothing in the page itself, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

fn plain(content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
