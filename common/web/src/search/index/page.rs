//! A page as stored in the blob store: the source of its terms and its snippets.

use base::clock::Timestamp;
use base::{digest, untrusted_text};
use platform::store::{Blobs, StoreError};
use serde::{Deserialize, Serialize};

use super::super::{address, plain};
use crate::read::ReadResult;

/// Pages with fewer words are not indexed.
const LEAST_WORDS: usize = 10;
/// Maximum text kept per page, in bytes. Equal to the default limit of web read.
const MAX_TEXT: usize = 50 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredPage {
    pub url: String,
    /// See [`address::same_page`]: a newer version of a page replaces the older one.
    pub same: String,
    pub title: String,
    #[serde(default)]
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    pub read_at: Timestamp,
    /// Plain text; headings begin with `#`.
    pub text: String,
}

impl StoredPage {
    /// The page to store; `None` if it must not or need not be indexed.
    pub fn of(read: &ReadResult, read_at: Timestamp) -> Option<StoredPage> {
        let url = address::tidy(&read.url)?;
        // If the page was reached by an address with a secret, its canonical address does not make it public.
        if !address::is_public_knowledge(&url) {
            return None;
        }
        let metadata = &read.metadata;
        // A canonical address counts only within the page's own origin.
        let canonical = metadata.canonical_url.as_deref().and_then(address::tidy);
        let url = canonical.filter(|canonical| canonical.origin() == url.origin()).unwrap_or(url);
        let text = text_of(&read.markdown);
        // JSON and XML arrive as a fenced block; they are data, not pages.
        let is_page = metadata.status_code == 200
            && !read.markdown.starts_with("```")
            && text.split_whitespace().nth(LEAST_WORDS - 1).is_some();
        if !is_page || !address::is_public_knowledge(&url) {
            return None;
        }
        let title = plain::short(&metadata.title, 300);
        let heading = || {
            text.lines()
                .find_map(|line| line.strip_prefix('#'))
                .map(|line| plain::short(line.trim_start_matches('#'), 300))
        };
        Some(StoredPage {
            same: address::same_page(&url),
            title: if title.is_empty() { heading().unwrap_or_default() } else { title },
            description: plain::short(&metadata.description, 500),
            site: metadata.site_name.as_deref().map(|name| plain::short(name, 100)).filter(|name| !name.is_empty()),
            published_at: metadata.published_at.as_deref().and_then(|text| plain::date(text, read_at)),
            language: metadata.language.as_deref().map(|language| plain::short(language, 20)),
            read_at,
            text,
            url: url.into(),
        })
    }

    /// Blob key. Equal content read again on the same day has the same key and is not indexed again.
    pub fn key(&self) -> String {
        let parts = [&self.url, &self.title, &self.description, &self.text].map(|text| text.as_bytes());
        let day = &self.read_at.to_string()[..10];
        format!("index/pages/{day}/{}", const_hex::encode(&digest::sha256_parts(&parts)[..20]))
    }

    pub async fn load(blobs: &dyn Blobs, key: &str) -> Result<Option<StoredPage>, StoreError> {
        let Some(bytes) = blobs.get(key).await? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(StoreError::new)
    }
}

/// Markdown as plain text without link addresses, images and marks; only headings keep a `#`.
fn text_of(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    for line in markdown.lines() {
        let heading = line.trim_start().starts_with('#');
        let rule = |letter: char| matches!(letter, '|' | '-' | ':' | ' ' | '=' | '*' | '_' | '`' | '~');
        if line.chars().all(rule) {
            continue;
        }
        if heading {
            text.push_str("# ");
        }
        let line = plain_line(line.trim_start_matches(['#', '>', ' ']));
        text.push_str(&line.split_whitespace().collect::<Vec<_>>().join(" "));
        text.push('\n');
    }
    let mut text = untrusted_text::visible(&text);
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

fn plain_line(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut letters = line.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            // `](address)`: the label was already written.
            ']' if line[at + 1..].starts_with('(') => {
                let mut depth = 0;
                for (_, letter) in letters.by_ref() {
                    depth += match letter {
                        '(' => 1,
                        ')' => -1,
                        _ => 0,
                    };
                    if depth == 0 {
                        break;
                    }
                }
            }
            '!' if line[at + 1..].starts_with('[') => {}
            '[' | ']' | '*' | '`' => {}
            '|' => out.push(' '),
            '\\' => {
                if let Some((_, next)) = letters.next() {
                    out.push(next);
                }
            }
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Metadata;

    fn read(url: &str, canonical: Option<&str>) -> ReadResult {
        ReadResult {
            url: url.to_owned(),
            markdown: "# Tides\n\nThe [moon](https://m.example/(x)) pulls **water** twice `a` day, as\n\n| a | b |\n|---|---|\n| one | two |\n\n![a picture](p.png) everybody at sea knows \\* well\n".to_owned(),
            metadata: Metadata {
                title: "<b>Tides</b>".to_owned(),
                status_code: 200,
                canonical_url: canonical.map(str::to_owned),
                ..Metadata::default()
            },
            truncated: false,
            indexable: true,
            needs_browser: false,
        }
    }

    #[test]
    fn stored_pages_are_plain_text_and_keep_their_origin() {
        let now = Timestamp::from_secs(1_795_249_530);
        let page = StoredPage::of(&read("http://example.org/tides?utm_source=x", None), now).unwrap();
        assert_eq!((page.url.as_str(), page.title.as_str()), ("http://example.org/tides", "Tides"));
        let text =
            "# Tides\nThe moon pulls water twice a day, as\na b\none two\na picture everybody at sea knows * well\n";
        assert_eq!(page.text, text);
        let named = |canonical| StoredPage::of(&read("http://example.org/t?x=1", Some(canonical)), now).unwrap().url;
        assert_eq!(named("http://example.org/tides"), "http://example.org/tides");
        assert_eq!(named("http://bank.example/login"), "http://example.org/t?x=1", "no page speaks for another site");
        assert_eq!(StoredPage::of(&read("http://example.org/t?token=1", None), now), None);
        for (url, canonical) in [
            ("http://example.org/t?token=1", "http://example.org/t"),
            ("http://example.org/t", "http://example.org/t?token=1"),
            ("http://jo:word@example.org/t", "http://example.org/t"),
        ] {
            assert_eq!(StoredPage::of(&read(url, Some(canonical)), now), None, "{url}");
        }
        let later = StoredPage { read_at: now.plus(std::time::Duration::from_secs(5)), ..page.clone() };
        assert_eq!(page.key(), later.key());
    }
}
