//! Finds the kind of a body from its declared type or, without one, from its first bytes.

use platform::net::essence;

use super::UnsupportedContent;
use super::charset;
use super::pdf::is_pdf;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Html,
    Text,
    Markdown,
    Json,
    Xml,
    Pdf,
}

/// Bytes inspected to guess a type.
const SNIFFED_BYTES: usize = 1024;

/// Whether a page of this content type (lower case, no parameters) can be read.
/// Fits [`FetchPolicy::accepts`](platform::net::FetchPolicy::accepts).
pub fn can_read(essence: &str) -> bool {
    kind_of(essence).is_some()
}

/// The kind of a body. Binary data is refused whatever its declared type.
pub(super) fn detect(declared: Option<&str>, body: &[u8]) -> Result<Kind, UnsupportedContent> {
    let two_byte = charset::two_byte(body, declared);
    let declared = declared.map(essence).unwrap_or_default();
    let pdf_or_unsaid =
        matches!(declared.as_str(), "application/pdf" | "application/x-pdf" | "application/octet-stream" | "");
    if pdf_or_unsaid && is_pdf(body) {
        return Ok(Kind::Pdf);
    }
    let head = &body[..body.len().min(SNIFFED_BYTES)];
    // A NUL byte means binary data, except in UTF-16.
    if two_byte.is_none() && head.contains(&0) {
        let named = if declared.is_empty() { "application/octet-stream".to_owned() } else { declared };
        return Err(UnsupportedContent(named));
    }
    if declared.is_empty() {
        let text = two_byte.map_or_else(|| String::from_utf8_lossy(head), |encoding| encoding.decode(head).0);
        return Ok(sniff(&text));
    }
    kind_of(&declared).filter(|kind| *kind != Kind::Pdf).ok_or(UnsupportedContent(declared))
}

fn kind_of(essence: &str) -> Option<Kind> {
    match essence {
        "text/html" | "application/xhtml+xml" => Some(Kind::Html),
        "text/markdown" | "text/x-markdown" => Some(Kind::Markdown),
        "application/json" | "text/json" | "application/x-ndjson" => Some(Kind::Json),
        "application/xml" | "text/xml" => Some(Kind::Xml),
        "application/pdf" | "application/x-pdf" => Some(Kind::Pdf),
        _ if essence.starts_with("text/") => Some(Kind::Text),
        _ if !essence.starts_with("application/") => None,
        _ if essence.ends_with("+json") => Some(Kind::Json),
        _ if essence.ends_with("+xml") => Some(Kind::Xml),
        _ => None,
    }
}

fn sniff(head: &str) -> Kind {
    let head = head.trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
    let html_starts = ["<!doctype html", "<html", "<head", "<body", "<title", "<p>", "<div"];
    if html_starts.iter().any(|start| head.starts_with(start)) || head.contains("<html") {
        Kind::Html
    } else if head.starts_with("<?xml") {
        Kind::Xml
    } else if head.starts_with(['{', '[']) {
        Kind::Json
    } else {
        Kind::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declared_types() {
        for (declared, kind) in [
            ("text/html", Kind::Html),
            ("TEXT/HTML; charset=utf-8", Kind::Html),
            ("application/xhtml+xml", Kind::Html),
            ("text/plain;charset=x", Kind::Text),
            ("text/csv", Kind::Text),
            ("text/markdown", Kind::Markdown),
            ("application/json", Kind::Json),
            ("application/ld+json", Kind::Json),
            ("application/rss+xml", Kind::Xml),
            ("text/xml", Kind::Xml),
        ] {
            assert_eq!(detect(Some(declared), b"x"), Ok(kind), "{declared}");
        }
        for declared in ["image/png", "image/svg+xml", "application/pdf", "video/mp4", "nonsense"] {
            let refused = UnsupportedContent(declared.to_owned());
            assert_eq!(detect(Some(declared), b"x"), Err(refused));
        }
    }

    #[test]
    fn undeclared_types_are_guessed() {
        for (body, kind) in [
            ("\u{feff}  <!DOCTYPE html><p>x", Kind::Html),
            ("<!-- made by hand --><html>", Kind::Html),
            ("<?xml version='1.0'?><rss/>", Kind::Xml),
            ("<?xml version='1.0'?><!DOCTYPE html PUBLIC \"x\"><html>", Kind::Html),
            (" {\"a\": 1}", Kind::Json),
            ("Dear reader", Kind::Text),
            ("", Kind::Text),
        ] {
            assert_eq!(detect(None, body.as_bytes()), Ok(kind), "{body}");
        }
    }

    #[test]
    fn binary_bodies_are_refused_whatever_their_declared_type() {
        let refused = UnsupportedContent("text/html".to_owned());
        assert_eq!(detect(Some("text/html"), b"\x89PNG\0\0"), Err(refused));
        assert!(detect(None, b"\0\0\0\x18ftypmp42").is_err());
        assert_eq!(detect(Some("text/html"), b"\xff\xfe<\0p\0>\0"), Ok(Kind::Html));
        assert_eq!(detect(Some("text/html"), b"<\0p\0>\0"), Ok(Kind::Html));
        assert_eq!(detect(None, b"\0<\0h\0t\0m\0l\0>"), Ok(Kind::Html));
        assert_eq!(detect(None, b"\xff\xfe<\0h\0t\0m\0l\0>\0"), Ok(Kind::Html));
        assert_eq!(detect(Some("application/pdf"), b"%PDF-1.7\n\0"), Ok(Kind::Pdf));
        assert_eq!(detect(None, b"%PDF-1.7"), Ok(Kind::Pdf));
        assert_eq!(detect(Some("text/plain"), b"%PDF-1.7 is how they begin"), Ok(Kind::Text));
    }
}
