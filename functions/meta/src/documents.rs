//! The API description, and the page that shows it to people.
//!
//! The page is [Swagger UI](https://github.com/swagger-api/swagger-ui) 5.35.0 (Apache-2.0, `assets/`), served only from
//! here: its Content-Security-Policy allows no other origin. Its large assets are stored gzipped, because nearly every
//! browser accepts that.

use std::io::Write;

use api::operations::document::{self, Facts};
use flate2::Compression;
use flate2::write::GzEncoder;
use gate::app::App;
use platform::http::{ApiError, Kept};
use tools::availability::Lacking;

/// Cache lifetimes, in seconds.
const DESCRIPTION_KEPT: u32 = 300;
const ASSET_KEPT: u32 = 24 * 3600;

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// The API description of this deployment.
pub fn openapi(app: &App, lacking: &Lacking) -> Result<Kept, ApiError> {
    let network = app.config.chain.caip2();
    let facts = Facts {
        service_name: &app.config.service_name,
        base_url: app.config.base_url.as_deref(),
        network: &network,
        version: env!("CARGO_PKG_VERSION"),
        lacking,
        catalog: app.catalog,
    };
    let text = document::document(&facts).to_string();
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packer.write_all(text.as_bytes()).and_then(|()| packer.finish());
    let packed = packed.map_err(|error| ApiError::Unavailable(platform::store::StoreError::new(error)))?;
    Ok(Kept::packed("application/json", packed, DESCRIPTION_KEPT))
}

/// The page. Its script is a separate file, because the policy forbids inline scripts.
pub fn page(service_name: &str) -> Kept {
    let name: String = service_name.chars().filter(|letter| !matches!(letter, '<' | '>' | '&' | '"')).collect();
    let html = include_str!("../assets/docs.html").replace("{service}", &name);
    Kept::page(html, POLICY.to_owned(), DESCRIPTION_KEPT)
}

/// A part of the page: this service's own files as they are, Swagger UI's gzipped.
pub fn asset(name: &str) -> Option<Kept> {
    let viewer = |content_type, packed: &'static [u8]| Kept::packed(content_type, packed, ASSET_KEPT);
    match name {
        "docs.js" => Some(Kept::new(SCRIPT, include_str!("../assets/docs.js"), DESCRIPTION_KEPT)),
        "docs.css" => Some(Kept::new(STYLE, include_str!("../assets/docs.css"), DESCRIPTION_KEPT)),
        "swagger-ui-bundle.js" => Some(viewer(SCRIPT, include_bytes!("../assets/swagger-ui-bundle.js.gz"))),
        "swagger-ui.css" => Some(viewer(STYLE, include_bytes!("../assets/swagger-ui.css.gz"))),
        _ => None,
    }
}

/// The page's Content-Security-Policy: nothing from other origins, nothing inline, no frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
