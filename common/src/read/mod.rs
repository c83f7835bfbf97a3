//! Turns a fetched page into Markdown and metadata. Pure: no network, no clock.
//!
//! What always holds:
//!
//! - Any bytes give a result or [`UnsupportedContent`], never a panic, and the
//!   work is bounded: the markup taken in, its tags, its depth and the tree made
//!   of it are all capped, and whatever lies beyond a cap is left out with
//!   `truncated` set.
//! - Text that a visitor would not see does not reach the result: hidden and
//!   off-screen elements, scripts, comments, zero-width and direction-changing
//!   characters. The result is read by language models, and hidden text is how
//!   pages talk to them behind the reader's back. It remains untrusted text all
//!   the same; style sheets in files of their own are not looked at.
//! - The Markdown is at most [`ReadOptions::max_markdown_bytes`] long and ends
//!   at the end of a line where it can.
//!
//! The stages, in order, each in a file of its own: `content_type` says what the
//! body is, `charset` makes text of it, `squeeze` throws away what no reader
//! needs while it is still text, `parse` builds the tree, `metadata` reads what
//! the page says about itself, `hidden` and `clean` strip the tree, `article`
//! picks the part worth reading and writes it as Markdown, `text` tidies and
//! cuts it.

mod article;
mod charset;
mod clean;
mod content_type;
mod facts;
mod hidden;
mod metadata;
mod parse;
mod squeeze;
mod text;

#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;
use url::Url;

use crate::net::Page;

pub use content_type::can_read;
pub use facts::{Facts, Link, read_facts};

use content_type::Kind;

/// What the caller may choose.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The most Markdown to return, in bytes.
    pub max_markdown_bytes: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { max_markdown_bytes: 50 * 1024 }
    }
}

/// A page that has been read, in the form it goes over the wire.
#[derive(Clone, Debug, Serialize)]
pub struct ReadResult {
    /// Where the page was found in the end.
    pub url: String,
    pub markdown: String,
    pub metadata: Metadata,
    /// Something was left out: the page or its Markdown passed a limit.
    pub truncated: bool,
}

/// What the page says about itself. Empty or absent where it says nothing.
/// Like the Markdown it is a stranger's text; unlike it, most of it is never
/// shown to a visitor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    pub title: String,
    pub description: String,
    pub status_code: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canonical_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byline: Option<String>,
}

/// The page is of a kind that has no text to read. Holds its content type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedContent(pub String);

impl fmt::Display for UnsupportedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "content of type {} cannot be read", self.0)
    }
}

impl std::error::Error for UnsupportedContent {}

/// Reads a page of any kind that has text.
pub fn read_page(page: &Page, options: &ReadOptions) -> Result<ReadResult, UnsupportedContent> {
    let kind = content_type::detect(page.content_type.as_deref(), &page.body)?;
    let source = charset::decode(&page.body, page.content_type.as_deref(), kind);
    let (markdown, mut metadata, mut truncated) = match kind {
        Kind::Html => read_html(&source, &page.final_url),
        Kind::Text | Kind::Markdown => (text::visible(&source), Metadata::default(), false),
        Kind::Json => (text::fenced(&source, "json"), Metadata::default(), false),
        Kind::Xml => (text::fenced(&source, "xml"), Metadata::default(), false),
    };
    metadata.status_code = page.status;
    let markdown = text::tidy(&markdown);
    let (markdown, cut) = text::cut(markdown, options.max_markdown_bytes);
    truncated |= cut || page.truncated;
    Ok(ReadResult { url: page.final_url.to_string(), markdown, metadata, truncated })
}

fn read_html(source: &str, url: &Url) -> (String, Metadata, bool) {
    let squeezed = squeeze::squeeze(source);
    let parsed = parse::parse(&squeezed.markup);
    let document = parsed.document;
    let base = clean::base_url(&document, url);
    let metadata = metadata::extract(&document, &squeezed.linked_data, &base);
    let size = clean::clean(&document, &squeezed.styles, &base);
    let markdown = article::to_markdown(document, size);
    let markdown = text::visible(&markdown);
    (markdown, metadata, squeezed.cut || parsed.cut)
}
