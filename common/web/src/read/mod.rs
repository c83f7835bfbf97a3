//! Turns a fetched page into Markdown and metadata. Pure: no network, no clock.
//!
//! Invariants:
//!
//! - Any bytes give a result or [`UnsupportedContent`], never a panic. The work is bounded: markup, tags, depth and tree
//!   size are capped. What lies beyond a cap is left out, and `truncated` is set.
//! - Text that a visitor would not see is left out: hidden and off-screen elements, scripts, comments, zero-width and
//!   bidirectional control characters. The readers are language models, and hidden text is a way to inject prompts.
//!   External style sheets are not fetched, so some hidden text can remain: the result is still untrusted.
//! - The Markdown is at most [`ReadOptions::max_markdown_bytes`] long. A cut is made at the end of a line where possible.
//!
//! Start with [`read_page`]. `pdf` and `feed` read those formats. HTML passes through these files in order: `content_type`
//! finds the kind of the body, `charset` decodes it, `prefilter` drops scripts and other useless markup from the text,
//! `parse` builds the tree, `metadata` reads head and JSON-LD, `hidden` and `clean` strip the tree, `shell` recognises pages that scripts fill, `furniture` removes
//! what surrounds the content, `article` picks the main part and writes Markdown, `text` tidies and cuts it.

mod article;
mod charset;
mod clean;
mod content_type;
mod facts;
mod feed;
mod furniture;
pub mod hidden;
mod metadata;
mod parse;
mod pdf;
mod prefilter;
mod shell;
mod text;

#[cfg(test)]
mod site_tests;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use platform::net::Page;
use serde::Serialize;
use url::Url;

use content_type::Kind;
pub use content_type::can_read;
pub use facts::{Facts, Link, read_facts};
pub use feed::{Feed, Item};

#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// Longest Markdown returned, in bytes.
    pub max_markdown_bytes: usize,
    /// This service's robots product token, in lower case: robots directives for this name apply.
    pub agent: String,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { max_markdown_bytes: 50 * 1024, agent: String::new() }
    }
}

/// A page that was read, as serialized for the client.
#[derive(Clone, Debug, Serialize)]
pub struct ReadResult {
    /// The final address, after redirects.
    pub url: String,
    pub markdown: String,
    pub metadata: Metadata,
    /// Whether part of the page or of its Markdown was left out because of a limit.
    pub truncated: bool,
    /// Whether other callers may find the page through the search index. Not serialized.
    #[serde(skip)]
    pub indexable: bool,
    /// Whether the page is empty until its scripts run. Not serialized.
    #[serde(skip)]
    pub needs_browser: bool,
}

/// The page's own metadata; empty or absent if it has none. Untrusted like the Markdown, and mostly invisible
/// to visitors.
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

/// The content type has no text to read. Holds that type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedContent(pub String);

impl fmt::Display for UnsupportedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "content of type {} cannot be read", self.0)
    }
}

impl std::error::Error for UnsupportedContent {}

/// A page with scripts and fewer letters than this needs a browser, if it has an empty element for scripts to fill.
const MIN_LETTERS: usize = 60;
/// A page with scripts and fewer letters than this needs a browser, if its `<noscript>` mentions JavaScript.
const MIN_LETTERS_IF_SAID: usize = 300;

/// Reads a page of any supported kind.
pub fn read_page(page: &Page, options: &ReadOptions) -> Result<ReadResult, UnsupportedContent> {
    let kind = content_type::detect(page.content_type.as_deref(), &page.body)?;
    if kind == Kind::Pdf {
        return read_pdf(page, options);
    }
    let source = charset::decode(&page.body, page.content_type.as_deref(), kind);
    let data = |language| Html { markdown: text::fenced(&source, language), ..Html::default() };
    let feed = read_feed_of(kind, &source, &page.final_url);
    let read = match (kind, feed) {
        // A feed without title and entries is shown as plain JSON or XML.
        (_, Some(feed)) if !(feed.title.is_empty() && feed.items.is_empty()) => of_feed(&feed),
        (Kind::Html, _) => read_html(&source, &page.final_url, &options.agent),
        (Kind::Json, _) => data("json"),
        (Kind::Xml, _) => data("xml"),
        (Kind::Text | Kind::Markdown | Kind::Pdf, _) => Html { markdown: text::visible(&source), ..Html::default() },
    };
    let Html { markdown, mut metadata, cut, unlisted, needs_browser } = read;
    metadata.status_code = page.status;
    let markdown = text::tidy(&markdown);
    let (markdown, shortened) = text::cut(markdown, options.max_markdown_bytes);
    Ok(ReadResult {
        url: page.final_url.to_string(),
        markdown,
        metadata,
        truncated: cut || shortened || page.truncated,
        indexable: !unlisted && metadata::head_may_be_listed(page, &options.agent),
        needs_browser: needs_browser && !page.truncated && (200..300).contains(&page.status),
    })
}

pub fn is_html(page: &Page) -> bool {
    content_type::detect(page.content_type.as_deref(), &page.body).is_ok_and(|kind| kind == Kind::Html)
}

/// The text of a page of HTML; `None` if the page is something else.
pub fn html_of(page: &Page) -> Option<Cow<'_, str>> {
    is_html(page).then(|| charset::decode(&page.body, page.content_type.as_deref(), Kind::Html))
}

/// Reads RSS, Atom or JSON Feed; `None` if the page is something else.
pub fn read_feed(page: &Page) -> Option<Feed> {
    let kind = content_type::detect(page.content_type.as_deref(), &page.body).ok()?;
    let source = charset::decode(&page.body, page.content_type.as_deref(), kind);
    read_feed_of(kind, &source, &page.final_url)
}

fn read_feed_of(kind: Kind, source: &str, url: &Url) -> Option<Feed> {
    match kind {
        Kind::Xml => feed::of_xml(source, url),
        Kind::Json => feed::of_json(source, url),
        _ => None,
    }
}

/// The result of reading one kind of body.
#[derive(Default)]
struct Html {
    markdown: String,
    metadata: Metadata,
    cut: bool,
    unlisted: bool,
    needs_browser: bool,
}

fn of_feed(feed: &Feed) -> Html {
    let metadata = Metadata { title: feed.title.clone(), description: feed.description.clone(), ..Metadata::default() };
    Html { markdown: text::visible(&feed::to_markdown(feed)), metadata, cut: feed.cut, ..Html::default() }
}

fn read_pdf(page: &Page, options: &ReadOptions) -> Result<ReadResult, UnsupportedContent> {
    let read = pdf::read(&page.body, options.max_markdown_bytes);
    let read = read.map_err(|reason| UnsupportedContent(format!("application/pdf ({reason})")))?;
    let (markdown, shortened) = text::cut(text::tidy(&read.markdown), options.max_markdown_bytes);
    let metadata = Metadata {
        title: read.title,
        status_code: page.status,
        published_at: read.made,
        byline: read.author,
        ..Metadata::default()
    };
    Ok(ReadResult {
        url: page.final_url.to_string(),
        markdown,
        metadata,
        truncated: read.cut || shortened || page.truncated,
        indexable: metadata::head_may_be_listed(page, &options.agent),
        needs_browser: false,
    })
}

fn read_html(source: &str, url: &Url, agent: &str) -> Html {
    let prefiltered = prefilter::prefilter(source);
    let parsed = parse::parse(&prefiltered.markup);
    let document = parsed.document;
    let base = clean::base_url(&document, url);
    let metadata = metadata::extract(&document, &prefiltered.linked_data, &base);
    let unlisted = !metadata::page_may_be_listed(&document, agent);
    let has_empty_root = prefiltered.scripts && shell::has_empty_root(&document);
    let size = clean::clean(&document, &prefiltered.styles, &base);
    let markdown = article::to_markdown(document, size);
    let markdown = text::visible(&markdown);
    let has_fewer = |text: &str, count| text.chars().filter(|c| c.is_alphanumeric()).nth(count - 1).is_none();
    let said = prefiltered.without_scripts.to_ascii_lowercase().contains("javascript");
    // Most short pages are just short, and have a script that counts visits.
    let words = shell::without_addresses(&markdown);
    let is_shell = said && has_fewer(&markdown, MIN_LETTERS_IF_SAID)
        || has_empty_root && has_fewer(&words, MIN_LETTERS)
        || shell::says_to_wait(&words);
    let cut = prefiltered.cut || parsed.cut;
    Html { markdown, metadata, cut, unlisted, needs_browser: prefiltered.scripts && is_shell && !cut }
}
