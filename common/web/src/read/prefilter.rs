//! Removes scripts, styles, comments and unknown attributes while the page is still text.
//!
//! This keeps the tree small and makes the real parser safe on hostile markup. The parser compares each attribute of a tag
//! with all the others and keeps every name it meets, so a tag with a million attributes would take hours. After this stage
//! tags have few, known and short attributes, and there are at most [`MAX_TAGS`] tags.
//!
//! The result means the same to the parser as the original: tags are rewritten in one form, regions that are not markup are
//! dropped, and no stray `<` remains in text. Where this scanner and the parser disagree about a region (for example
//! scripts within comments within scripts), text may be lost or may appear, but the limits still hold.

use std::collections::BTreeMap;

/// Maximum markup kept, in bytes. Longer pages are mostly tables of data, and the Markdown limit is far lower.
const MAX_MARKUP_BYTES: usize = 2_000_000;
/// Maximum number of start and end tags kept.
const MAX_TAGS: usize = 60_000;
/// Maximum style sheet text kept, in bytes; it is needed to find hidden elements.
const MAX_STYLE_BYTES: usize = 256 * 1024;
/// Maximum number of JSON-LD blocks kept, and maximum size of one.
const MAX_LINKED_DATA: usize = 8;
const MAX_LINKED_DATA_BYTES: usize = 64 * 1024;
/// Maximum text kept from `<noscript>` elements, in bytes.
const MAX_WITHOUT_SCRIPTS_BYTES: usize = 4 * 1024;
/// No element has a longer name.
const MAX_NAME_BYTES: usize = 32;
/// Titles are cut here, because they are processed several times.
const MAX_TITLE_BYTES: usize = 2_000;
/// Longer addresses (mostly data URLs) are dropped.
const MAX_ADDRESS_BYTES: usize = 4_096;
/// Other values are cut here.
const MAX_VALUE_BYTES: usize = 4_096;

/// Attributes that a later stage reads.
const KEPT_ATTRIBUTES: [&str; 40] = [
    "alt",
    "aria-hidden",
    "aria-modal",
    "bgcolor",
    "charset",
    "class",
    "color",
    "colspan",
    "content",
    "data-lang",
    "data-language",
    "data-src",
    "data-srcset",
    "datetime",
    "dir",
    "height",
    "hidden",
    "href",
    "http-equiv",
    "id",
    "itemprop",
    "itemscope",
    "itemtype",
    "lang",
    "name",
    "open",
    "popover",
    "property",
    "rel",
    "role",
    "rowspan",
    "size",
    "src",
    "srcset",
    "start",
    "style",
    "summary",
    "type",
    "value",
    "width",
];

/// Attributes that hold addresses.
const ADDRESSES: [&str; 5] = ["href", "src", "srcset", "data-src", "data-srcset"];

/// Elements that are dropped together with their content, which is not markup.
const DROPPED_WITH_CONTENT: [&str; 8] =
    ["script", "style", "noscript", "iframe", "noembed", "noframes", "textarea", "xmp"];

/// A page ready for the parser.
#[derive(Debug, Default)]
pub(super) struct Prefiltered {
    pub(super) markup: String,
    /// The page's inline style sheets.
    pub(super) styles: String,
    /// The page's JSON-LD blocks.
    pub(super) linked_data: Vec<String>,
    /// Content of `<noscript>` elements.
    pub(super) without_scripts: String,
    /// Whether the page has scripts.
    pub(super) scripts: bool,
    /// Whether a limit cut the page.
    pub(super) cut: bool,
}

pub(super) fn prefilter(source: &str) -> Prefiltered {
    let mut prefiltered = Prefiltered::default();
    let mut rest = source;
    let mut tags = 0;
    prefiltered.markup.push_str("<!DOCTYPE html>");
    while !rest.is_empty() {
        if tags >= MAX_TAGS || prefiltered.markup.len() >= MAX_MARKUP_BYTES {
            prefiltered.cut = true;
            break;
        }
        let text_end = rest.find('<').unwrap_or(rest.len());
        prefiltered.push_text(&rest[..text_end]);
        rest = &rest[text_end..];
        if rest.starts_with("<!--") {
            rest = after_comment(rest);
        } else if rest.starts_with("<!") || rest.starts_with("<?") {
            rest = after(rest, ">");
        } else if starts_tag(rest) {
            tags += 1;
            // As in browsers, a tag that never ends swallows the rest of the page.
            rest = match Tag::scan(rest) {
                Some((tag, after_tag)) => prefiltered.push_tag(&tag, after_tag),
                None => "",
            };
        } else if rest.starts_with("</") {
            rest = after(rest, ">");
        } else if !rest.is_empty() {
            prefiltered.markup.push_str("&lt;");
            rest = &rest[1..];
        }
    }
    prefiltered
}

impl Prefiltered {
    /// Appends text between tags, up to the limit.
    fn push_text(&mut self, text: &str) {
        let room = MAX_MARKUP_BYTES - self.markup.len().min(MAX_MARKUP_BYTES);
        let kept = &text[..text.floor_char_boundary(room)];
        self.cut |= kept.len() < text.len();
        self.markup.extend(kept.chars().filter(|&c| !is_control(c)));
    }

    /// Writes the tag, or drops it with its content. Returns the text that follows.
    fn push_tag<'a>(&mut self, tag: &Tag, after_tag: &'a str) -> &'a str {
        let name = tag.name.as_str();
        let special = DROPPED_WITH_CONTENT.contains(&name) || name == "title";
        if tag.is_end || !special {
            if name != "plaintext" && !DROPPED_WITH_CONTENT.contains(&name) {
                tag.write(&mut self.markup);
            }
            return after_tag;
        }
        let (content, rest) = split_at_end_tag(after_tag, name);
        self.scripts |= name == "script" && !tag.is_linked_data();
        match name {
            "noscript" if self.without_scripts.len() + content.len() <= MAX_WITHOUT_SCRIPTS_BYTES => {
                self.without_scripts.push_str(content);
            }
            "title" => {
                let content = &content[..content.floor_char_boundary(MAX_TITLE_BYTES)];
                self.markup.push_str("<title>");
                self.markup.push_str(&content.replace('<', "&lt;"));
                self.markup.push_str("</title>");
            }
            "style" if self.styles.len() + content.len() <= MAX_STYLE_BYTES => {
                self.styles.push_str(content);
                self.styles.push('\n');
            }
            "script" if tag.is_linked_data() && self.has_room_for_linked(content) => {
                self.linked_data.push(content.to_owned());
            }
            _ => {}
        }
        rest
    }

    fn has_room_for_linked(&self, content: &str) -> bool {
        self.linked_data.len() < MAX_LINKED_DATA && content.len() <= MAX_LINKED_DATA_BYTES
    }
}

fn is_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t' | '\r')
}

fn after<'a>(text: &'a str, mark: &str) -> &'a str {
    text.find(mark).map_or("", |at| &text[at + mark.len()..])
}

/// The text after the comment at the start of `text`. As in browsers, a comment that never ends swallows the rest.
fn after_comment(text: &str) -> &str {
    let inside = &text[4..];
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
fn split_at_end_tag<'a>(text: &'a str, name: &str) -> (&'a str, &'a str) {
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let at = from + at;
        let after_mark = &text.as_bytes()[at + 2..];
        let is_name = after_mark.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()));
        let ends =
            after_mark.get(name.len()).is_none_or(|&byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'));
        if is_name && ends {
            return (&text[..at], after(&text[at..], ">"));
        }
        from = at + 2;
    }
    (text, "")
}

/// A start or end tag, with the attributes that are kept.
struct Tag {
    name: String,
    is_end: bool,
    attributes: BTreeMap<&'static str, String>,
    /// Ends in `/>`, which closes elements of SVG and MathML.
    is_self_closing: bool,
    /// A `style`, `class` or `id` was too long to be kept, so the element is treated as hidden.
    is_suspicious: bool,
}

impl Tag {
    /// Reads the tag at the start of `text`; returns it and the text that follows. `None` if the tag never ends.
    fn scan(text: &str) -> Option<(Self, &str)> {
        let start = text.strip_prefix('<')?;
        let inside = start.strip_prefix('/').unwrap_or(start);
        let is_end = inside.len() < start.len();
        let name_end = inside.find(ends_name).unwrap_or(inside.len());
        let mut tag = Self {
            name: element_name(&inside[..name_end]),
            is_end,
            attributes: BTreeMap::new(),
            is_self_closing: false,
            is_suspicious: false,
        };
        let rest = tag.scan_attributes(&inside[name_end..])?;
        Some((tag, rest))
    }

    fn scan_attributes<'a>(&mut self, mut text: &'a str) -> Option<&'a str> {
        loop {
            let start = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
            if let Some(rest) = start.strip_prefix('>') {
                self.is_self_closing = text[..text.len() - start.len()].ends_with('/');
                return Some(rest);
            }
            let first = start.chars().next()?;
            // As in browsers, a leading `=` belongs to the name.
            let name_end = start[first.len_utf8()..]
                .find(|c: char| ends_name(c) || c == '=')
                .map_or(start.len(), |at| first.len_utf8() + at);
            let (value, rest) = scan_value(&start[name_end..]);
            self.keep_attribute(&start[..name_end], value);
            text = rest;
        }
    }

    /// Keeps a known attribute; the first of equal names counts.
    fn keep_attribute(&mut self, name: &str, value: &str) {
        let known = KEPT_ATTRIBUTES.iter().find(|known| known.eq_ignore_ascii_case(name));
        let Some(&name) = known else {
            return;
        };
        let is_address = ADDRESSES.contains(&name);
        if self.is_end || (is_address && value.len() > MAX_ADDRESS_BYTES) {
            return;
        }
        // An extremely long value may hide `display:none` beyond the limit.
        if value.len() > MAX_VALUE_BYTES && matches!(name, "style" | "class" | "id") {
            self.is_suspicious = true;
        }
        let value = &value[..value.floor_char_boundary(MAX_VALUE_BYTES)];
        self.attributes.entry(name).or_insert_with(|| value.to_owned());
    }

    fn is_linked_data(&self) -> bool {
        let declared = self.attributes.get("type");
        declared.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/ld+json"))
    }

    fn write(&self, markup: &mut String) {
        markup.push_str(if self.is_end { "</" } else { "<" });
        markup.push_str(&self.name);
        for (name, value) in &self.attributes {
            markup.push(' ');
            markup.push_str(name);
            markup.push_str("=\"");
            for c in value.chars() {
                match c {
                    '"' => markup.push_str("&quot;"),
                    _ if is_control(c) => {}
                    _ => markup.push(c),
                }
            }
            markup.push('"');
        }
        if self.is_suspicious && !self.attributes.contains_key("hidden") {
            markup.push_str(" hidden");
        }
        markup.push_str(if self.is_self_closing { "/>" } else { ">" });
    }
}

/// Whether `text` starts with a tag and not with a stray `<`.
fn starts_tag(text: &str) -> bool {
    let inside = text.strip_prefix("</").or(text.strip_prefix('<'));
    inside.is_some_and(|inside| inside.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn ends_name(c: char) -> bool {
    c.is_ascii_whitespace() || matches!(c, '/' | '>')
}

/// The element's name in lower case. An impossible name becomes `span`, which the parser treats alike.
fn element_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    if name.len() > MAX_NAME_BYTES || !name.chars().all(plain) {
        return "span".to_owned();
    }
    name.to_ascii_lowercase()
}

/// The attribute's value (empty if it has none), and the text that follows.
fn scan_value(text: &str) -> (&str, &str) {
    let is_space = |c: char| c.is_ascii_whitespace();
    let trimmed = text.trim_start_matches(is_space);
    let Some(value) = trimmed.strip_prefix('=') else {
        return ("", text);
    };
    let value = value.trim_start_matches(is_space);
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            return quoted.split_once(quote).unwrap_or((quoted, ""));
        }
    }
    let end = value.find(|c: char| is_space(c) || c == '>').unwrap_or(value.len());
    value.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markup(source: &str) -> String {
        let markup = prefilter(source).markup;
        markup.strip_prefix("<!DOCTYPE html>").unwrap().to_owned()
    }

    #[test]
    fn ordinary_markup_stays() {
        for (source, expected) in [
            ("<p>one<br>two</p>", "<p>one<br>two</p>"),
            ("<P CLASS=a ID='b' onclick=\"x()\">", "<p class=\"a\" id=\"b\">"),
            ("<a href = '/x?a=1&amp;b=\"2\"' >y</A >", "<a href=\"/x?a=1&amp;b=&quot;2&quot;\">y</a>"),
            ("<a href=/x/>y", "<a href=\"/x/\">y"),
            ("<img src=a.png alt/>", "<img alt=\"\" src=\"a.png\"/>"),
            ("<input hidden/ value=x>", "<input hidden=\"\" value=\"x\">"),
            ("<div =class=x id=y>", "<div id=\"y\">"),
            ("<p id=1 id=2>", "<p id=\"1\">"),
            ("1 < 2 <3 a<b", "1 &lt; 2 &lt;3 a"),
            ("x</>y</ p>z", "xyz"),
            ("<my-element>", "<my-element>"),
            ("<é><p é=1 lang=fr>", "&lt;é><p lang=\"fr\">"),
            ("<svg><path d='M0'/></svg>", "<svg><path/></svg>"),
            ("a\0b\u{1}c", "abc"),
        ] {
            assert_eq!(markup(source), expected, "{source}");
        }
    }

    #[test]
    fn comments_scripts_and_declarations_are_dropped() {
        for source in [
            "a<!-- <p>comment</p> -->b",
            "a<!-->b",
            "a<!--->b",
            "a<!-- x --!>b",
            "a<!-- -- > - -->b",
            "a<!DOCTYPE html>b",
            "a<?php echo 1 ?>b",
            "a<![CDATA[x]]>b",
            "a<script>if (1 < 2) { '</p>' }</script>b",
            "a<SCRIPT>x</scripty></sCript\n foo>b",
            "a<script src=x></script>b",
            "a<style>p { }</style>b",
            "a<noscript><p>turn it on</p></noscript>b",
            "a<iframe src=x>fallback</iframe>b",
            "a<textarea><p>draft</textarea>b",
            "a</script>b",
            "a<plaintext>b",
        ] {
            assert_eq!(markup(source), "ab", "{source}");
        }
        for source in ["a<!-- endless <p>", "a<script>endless", "a<p class='endless><b>", "a<"] {
            assert_eq!(markup(source).trim_end_matches("&lt;"), "a", "{source}");
        }
    }

    #[test]
    fn styles_and_linked_data_are_set_aside() {
        let prefiltered = prefilter(
            "<style>a{}</style><script type='application/LD+json'>{\"a\":1}</script>\
             <script type=module>x</script><style media=all>b{}</style>",
        );
        assert_eq!(prefiltered.styles, "a{}\nb{}\n");
        assert_eq!(prefiltered.linked_data, ["{\"a\":1}"]);
        assert!(!prefiltered.cut);
    }

    #[test]
    fn titles_hold_no_markup() {
        assert_eq!(markup("<title>a <b> c</title>d"), "<title>a &lt;b> c</title>d");
        assert!(markup(&format!("<title>{}", "x".repeat(1_000_000))).len() < 3_000);
    }

    #[test]
    fn output_never_exceeds_the_limits() {
        let many_attributes: String = (0..200_000).map(|n| format!(" a{n}=1 id={n}")).collect();
        assert_eq!(markup(&format!("<p{many_attributes}>x")), "<p id=\"0\">x");
        let long = "y".repeat(100_000);
        assert_eq!(markup(&format!("<img src='{long}' alt=x>")), "<img alt=\"x\">");
        assert_eq!(markup(&format!("<{long}>x</{long}>")), "<span>x</span>");
        let padded = markup(&format!("<p style='{long};display:none'>x"));
        assert!(padded.ends_with(" hidden>x") && padded.len() < 10_000);

        let tags = prefilter(&"<b>".repeat(100_000));
        assert!(tags.cut && tags.markup.len() < 200_000);
        let text = prefilter(&"é ".repeat(2_000_000));
        assert!(text.cut && text.markup.len() <= MAX_MARKUP_BYTES);
    }
}
