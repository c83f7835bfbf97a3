//! Takes out of a page what describes products, while the page is still text: JSON-LD blocks, and tags with the attributes
//! of Microdata, RDFa and `meta`.
//!
//! This makes the real parser safe on hostile markup: it compares each attribute of a tag with all the others, and keeps
//! every name it meets. After this stage tags have few, known and short attributes, and there are at most [`MAX_TAGS`] tags.
//! Where this scanner and the parser disagree about a region, text may be lost or may appear, but the limits still hold.

use std::fmt::Write;

/// Most markup kept, in bytes.
const MAX_MARKUP_BYTES: usize = 2_000_000;
/// Most start and end tags kept.
const MAX_TAGS: usize = 80_000;
/// Most JSON-LD blocks kept, and most bytes of all of them.
const MAX_BLOCKS: usize = 32;
const MAX_BLOCK_BYTES: usize = 2_000_000;
/// Longest attribute value kept; descriptions may be in `content`.
const MAX_VALUE_BYTES: usize = 8_192;
const MAX_NAME_BYTES: usize = 32;

/// Attributes that a later stage reads.
const KEPT: [&str; 18] = [
    "about",
    "content",
    "data",
    "data-src",
    "datetime",
    "href",
    "id",
    "itemid",
    "itemprop",
    "itemref",
    "itemscope",
    "itemtype",
    "name",
    "property",
    "rel",
    "resource",
    "src",
    "typeof",
];
/// Kept too, under another condition or name.
const VALUE: &str = "value";
/// Elements dropped together with their content, which is not markup.
const DROPPED: [&str; 8] = ["script", "style", "noscript", "iframe", "noembed", "noframes", "textarea", "xmp"];

#[derive(Default)]
pub(super) struct Scanned {
    pub(super) markup: String,
    /// The JSON-LD blocks.
    pub(super) blocks: Vec<String>,
}

pub(super) fn scan(source: &str) -> Scanned {
    let mut scanned = Scanned { markup: "<!DOCTYPE html>".to_owned(), blocks: Vec::new() };
    let mut block_bytes = 0;
    let mut tags = 0;
    let mut rest = source;
    while !rest.is_empty() && tags < MAX_TAGS && scanned.markup.len() < MAX_MARKUP_BYTES {
        let (text, after_text) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
        let room = MAX_MARKUP_BYTES.saturating_sub(scanned.markup.len());
        scanned.markup.extend(text[..text.floor_char_boundary(room)].chars().filter(|c| !is_control(*c)));
        rest = after_text;
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = after_comment(comment);
        } else if starts_tag(rest) {
            tags += 1;
            // As in browsers, a tag that never ends swallows the rest of the page.
            let Some((tag, after_tag)) = Tag::scan(rest) else { break };
            rest = after_tag;
            if tag.is_end || !DROPPED.contains(&tag.name.as_str()) {
                tag.write(&mut scanned.markup);
            } else {
                let (content, after_content) = content(after_tag, &tag.name);
                rest = after_content;
                let fits = scanned.blocks.len() < MAX_BLOCKS && block_bytes + content.len() <= MAX_BLOCK_BYTES;
                if tag.is_linked_data() && fits {
                    block_bytes += content.len();
                    scanned.blocks.push(content.to_owned());
                }
            }
        } else if rest.starts_with("<!") || rest.starts_with("<?") || rest.starts_with("</") {
            rest = after(rest, ">");
        } else if !rest.is_empty() {
            scanned.markup.push_str("&lt;");
            rest = &rest[1..];
        }
    }
    scanned
}

fn is_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t' | '\r')
}

fn after<'a>(text: &'a str, mark: &str) -> &'a str {
    text.find(mark).map_or("", |at| &text[at + mark.len()..])
}

/// The text behind a comment, whose mark is read. As in browsers, a comment that never ends swallows the rest.
fn after_comment(inside: &str) -> &str {
    for empty in [">", "->"] {
        if let Some(rest) = inside.strip_prefix(empty) {
            return rest;
        }
    }
    let mut from = 0;
    while let Some(at) = inside[from..].find("--") {
        let rest = &inside[from + at + 2..];
        if let Some(rest) = rest.strip_prefix('>').or(rest.strip_prefix("!>")) {
            return rest;
        }
        from += at + 1;
    }
    ""
}

/// Splits at the end tag of an element whose content is not markup.
fn content<'a>(text: &'a str, name: &str) -> (&'a str, &'a str) {
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let at = from + at;
        let rest = &text.as_bytes()[at + 2..];
        let is_name = rest.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()));
        let next = rest.get(name.len());
        if is_name && next.is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>')) {
            return (&text[..at], after(&text[at..], ">"));
        }
        from = at + 2;
    }
    (text, "")
}

fn starts_tag(text: &str) -> bool {
    let inside = text.strip_prefix("</").or(text.strip_prefix('<'));
    inside.is_some_and(|inside| inside.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// A tag with the attributes that are kept.
struct Tag<'a> {
    name: String,
    is_end: bool,
    is_self_closing: bool,
    is_linked: bool,
    attributes: Vec<(&'static str, &'a str)>,
}

impl<'a> Tag<'a> {
    /// Reads the tag at the start of `text`; returns it and the text that follows. `None` if the tag never ends.
    fn scan(text: &'a str) -> Option<(Self, &'a str)> {
        let start = text.strip_prefix('<')?;
        let inside = start.strip_prefix('/').unwrap_or(start);
        let name_end = inside.find(ends_name).unwrap_or(inside.len());
        let mut tag = Self {
            name: element_name(&inside[..name_end]),
            is_end: inside.len() < start.len(),
            is_self_closing: false,
            is_linked: false,
            attributes: Vec::new(),
        };
        let rest = tag.scan_attributes(&inside[name_end..])?;
        Some((tag, rest))
    }

    fn scan_attributes(&mut self, mut text: &'a str) -> Option<&'a str> {
        loop {
            let start = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            if let Some(rest) = start.strip_prefix('>') {
                self.is_self_closing = text[..text.len() - start.len()].ends_with('/');
                return Some(rest);
            }
            let first = start.chars().next()?.len_utf8();
            // As in browsers, a leading `=` belongs to the name.
            let name_end = start[first..].find(|c| ends_name(c) || c == '=').map_or(start.len(), |at| first + at);
            let (value, rest) = value(&start[name_end..]);
            self.keep(&start[..name_end], value);
            text = rest;
        }
    }

    /// Keeps a known attribute; the first of equal names counts.
    fn keep(&mut self, name: &str, value: &'a str) {
        if name.eq_ignore_ascii_case("type") {
            let kind = value.trim().as_bytes();
            let wanted = b"application/ld+json";
            self.is_linked |= kind.get(..wanted.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(wanted));
        }
        let known = KEPT.iter().chain([&VALUE]).find(|known| known.eq_ignore_ascii_case(name));
        if let Some(known) = known
            && !self.is_end
            && !self.attributes.iter().any(|(name, _)| name == known)
        {
            self.attributes.push((known, &value[..value.floor_char_boundary(MAX_VALUE_BYTES)]));
        }
    }

    fn is_linked_data(&self) -> bool {
        self.name == "script" && self.is_linked
    }

    fn write(&self, markup: &mut String) {
        markup.push_str(if self.is_end { "</" } else { "<" });
        markup.push_str(&self.name);
        for (name, value) in &self.attributes {
            // Writing to a string does not fail.
            let _ = write!(markup, " {name}=\"");
            for c in value.chars().filter(|c| !is_control(*c)) {
                match c {
                    '"' => markup.push_str("&quot;"),
                    c => markup.push(c),
                }
            }
            markup.push('"');
        }
        markup.push_str(if self.is_self_closing { "/>" } else { ">" });
    }
}

fn ends_name(c: char) -> bool {
    c.is_ascii_whitespace() || matches!(c, '/' | '>')
}

/// The element's name in lower case. An impossible name becomes `span`, which the parser treats alike.
fn element_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    match name.len() <= MAX_NAME_BYTES && name.chars().all(plain) && !name.eq_ignore_ascii_case("plaintext") {
        true => name.to_ascii_lowercase(),
        false => "span".to_owned(),
    }
}

/// The attribute's value (empty if it has none), and the text that follows.
fn value(text: &str) -> (&str, &str) {
    let is_space = |c: char| c.is_ascii_whitespace();
    let Some(value) = text.trim_start_matches(is_space).strip_prefix('=') else { return ("", text) };
    let value = value.trim_start_matches(is_space);
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            return quoted.split_once(quote).unwrap_or((quoted, ""));
        }
    }
    value.split_at(value.find(|c: char| is_space(c) || c == '>').unwrap_or(value.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_attributes_and_linked_data_are_kept() {
        let scanned = scan(
            "<div CLASS=x itemscope ITEMPROP='a \"b\"' onclick=x()>1 < 2<!-- <p> --><script type=application/ld+json>\
             {\"a\":\"</p>\"}</script><script>if (1<2) '</p>'</script><style>p{}</style></div>",
        );
        assert_eq!(scanned.markup, "<!DOCTYPE html><div itemscope=\"\" itemprop=\"a &quot;b&quot;\">1 &lt; 2</div>");
        assert_eq!(scanned.blocks, ["{\"a\":\"</p>\"}"]);
    }

    #[test]
    fn many_attributes_and_tags_are_cut() {
        let many: String = (0..50_000).map(|n| format!(" a{n}=1 id=x")).collect();
        assert_eq!(scan(&format!("<p{many}>")).markup, "<!DOCTYPE html><p id=\"x\">");
        assert!(scan(&"<p>".repeat(200_000)).markup.len() < 4 * MAX_TAGS);
        assert!(scan(&"<!--".repeat(200_000)).markup.len() < 100);
    }
}
