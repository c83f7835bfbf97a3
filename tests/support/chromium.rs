//! Debian's browser.

use std::path::PathBuf;

use local::browser::Chromium;

use super::debian;

/// Its program; `None` if there is none and none can be installed.
pub async fn binary() -> Option<PathBuf> {
    let places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    debian::program("chromium", &places).await
}

/// A running browser; `None` if there is none and none can be installed.
pub async fn chromium() -> Option<Chromium> {
    let binary = binary().await?;
    Some(Chromium::start(&binary).await.expect("Chromium starts"))
}
