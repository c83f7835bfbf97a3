//! Debian's browser.

use local::browser::Chromium;

use super::debian;

/// A running browser; `None` if there is none and none can be installed.
pub async fn chromium() -> Option<Chromium> {
    let places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let binary = debian::program("chromium", &places).await?;
    Some(Chromium::start(&binary).await.expect("Chromium starts"))
}
