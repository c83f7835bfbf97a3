//! Pages of the public web, read on somebody's behalf: what web read sells, and what research and company profiles work
//! with.

use super::{ToolError, Toolbox, Unavailable};
use crate::net::FetchError;
use crate::read::{self, ReadOptions, ReadResult};

impl Toolbox {
    /// Reads a page's main content. What it says is a stranger's text: see [`crate::material`].
    pub async fn read_page(&self, url: &str) -> Result<ReadResult, ToolError> {
        let page = self.fetcher.read(url).await.map_err(explain)?;
        // Parsing a large page takes long enough to be kept off the thread that answers.
        let read = tokio::task::spawn_blocking(move || read::read_page(&page, &ReadOptions::default())).await;
        let read = read.map_err(|_| ToolError::internal("the page could not be parsed"))?;
        let read = read
            .map_err(|unsupported| ToolError::unavailable(Unavailable::SourceUnavailable, unsupported.to_string()))?;
        // Where a browser provider exists, it would be asked here, and what it rendered be read instead.
        if read.needs_browser {
            let message =
                "the page shows nothing before its scripts have run, and this deployment has no browser to run them";
            return Err(ToolError::unavailable(Unavailable::NeedsBrowser, message));
        }
        if read.markdown.is_empty() && read.truncated {
            let message = "the page broke off, or is nested too deeply, before anything could be read";
            return Err(ToolError::unavailable(Unavailable::SourceUnavailable, message));
        }
        Ok(read)
    }
}

fn explain(error: FetchError) -> ToolError {
    let reason = match &error {
        FetchError::NotReachable(_) | FetchError::NotAllowed(_) => Unavailable::DestinationNotReachable,
        FetchError::Forbidden(_)
        | FetchError::TooManyRedirects
        | FetchError::DecompressionLimit
        | FetchError::UnsupportedContent(_)
        | FetchError::Protocol(_) => Unavailable::SourceUnavailable,
    };
    ToolError::unavailable(reason, error.to_string())
}
