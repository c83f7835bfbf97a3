//! Documents that stay the same while the process lives: the API description, and the page that shows it to people.
//!
//! The page is [Swagger UI](https://github.com/swagger-api/swagger-ui) 5.35.0 (Apache-2.0, `assets/`), from here and from
//! nowhere else: its policy lets the browser ask nobody but this origin. The assets are kept packed, as nearly every browser
//! takes them.

use std::io::Write;

use api::operations::document::{self, Facts};
use flate2::Compression;
use flate2::write::GzEncoder;
use gate::app::App;
use platform::http::{ApiError, Kept};
use tools::availability::Lacking;

/// Seconds that anybody may keep a copy without asking.
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
    };
    let text = document::document(&facts).to_string();
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packer.write_all(text.as_bytes()).and_then(|()| packer.finish());
    let packed = packed.map_err(|error| ApiError::Unavailable(platform::store::StoreError::new(error)))?;
    Ok(Kept::packed("application/json", packed, DESCRIPTION_KEPT))
}

/// The page itself. Its script is a file of its own, because the policy runs nothing that stands in the page.
pub fn page(service_name: &str) -> Kept {
    let name: String = service_name.chars().filter(|letter| !matches!(letter, '<' | '>' | '&' | '"')).collect();
    let html = include_str!("../assets/docs.html").replace("{service}", &name);
    Kept::page(html, POLICY.to_owned(), DESCRIPTION_KEPT)
}

/// A part of the page: ours as it is, the viewer's packed.
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

/// Nothing from elsewhere, nothing in the page itself, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
