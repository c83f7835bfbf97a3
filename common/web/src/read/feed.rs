//! Feeds: RSS (0.9 to 2.0), Atom and JSON Feed, as a list of entries.
//!
//! Feeds are untrusted: only http and https addresses are kept, and descriptions are cleaned like pages.

use std::collections::BTreeMap;
use std::fmt;

use chrono::DateTime;
use quick_xml::NsReader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, NamespaceResolver, ResolveResult};
use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use url::Url;

use super::text::{line, literal};

/// Maximum number of entries kept.
const MAX_ITEMS: usize = 200;
/// Longest text of an element, in bytes; also the longest description as HTML.
const MAX_FIELD_BYTES: usize = 4_096;
const MAX_TITLE_CHARS: usize = 300;
const MAX_SUMMARY_CHARS: usize = 400;
/// Longest address kept, in bytes, and longest `xml:base`: it is copied into each address relative to it.
const MAX_ADDRESS_BYTES: usize = 2_048;
/// Without `http://` and what may follow: Atom 1.0 and 0.3, RSS 1.0 and 0.9 and what they are made of.
const NAMESPACES: [&str; 9] = [
    "www.w3.org/2005/Atom",
    "purl.org/atom/ns",
    "purl.org/rss/1.0",
    "my.netscape.com/rdf/simple/0.9",
    "channel.netscape.com/rdf/simple/0.9",
    "www.w3.org/1999/02/22-rdf-syntax-ns",
    "purl.org/dc/elements/1.1",
    "purl.org/dc/terms",
    "purl.org/rss/1.0/modules/content",
];
/// Usual prefixes of these.
const PREFIXES: [&str; 7] = ["atom", "atom03", "rss", "rdf", "dc", "dcterms", "content"];
/// Longest namespace made up by a feed; it is compared with that of each element.
const MAX_NAMESPACE_BYTES: usize = 256;
/// Deepest nesting of elements; real feeds need less.
const MAX_DEPTH: usize = 64;
/// Maximum number of nodes of all titles and descriptions that are HTML. A few kilobytes can make as many as a long page.
const MAX_NODES: usize = 200_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feed {
    pub title: String,
    pub description: String,
    /// The site of the feed.
    pub link: Option<String>,
    pub items: Vec<Item>,
    /// The feed has more entries, or its markup is broken.
    pub cut: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    pub title: String,
    /// Untrusted: fetch it only with the guarded client.
    pub url: Option<String>,
    /// RFC 3339, or a date alone.
    pub published: Option<String>,
    pub author: Option<String>,
    pub summary: String,
}

/// Reads an XML feed; `None` if it is something else.
pub(super) fn of_xml(source: &str, base: &Url) -> Option<Feed> {
    let mut reader = NsReader::from_str(source);
    reader.config_mut().check_end_names = false;
    reader.config_mut().allow_dangling_amp = true;
    let mut builder = Builder::new(base);
    loop {
        let event = reader.read_event();
        match event {
            Ok(Event::Start(start)) => {
                builder.open(&start, reader.resolver())?;
                if builder.path.len() > MAX_DEPTH {
                    break;
                }
            }
            Ok(Event::Empty(start)) => {
                builder.open(&start, reader.resolver())?;
                builder.close();
            }
            Ok(Event::End(_)) => builder.close(),
            Ok(Event::Text(text)) => builder.push(&text),
            Ok(Event::CData(text)) => builder.push(&text),
            Ok(Event::GeneralRef(name)) => {
                let entity = format!("&{};", &*name);
                builder.push(&unescape(&entity).unwrap_or_default());
            }
            Ok(Event::Eof) => break,
            // Keep what was read before the markup broke.
            Err(_) => {
                builder.feed.cut = true;
                break;
            }
            Ok(_) => {}
        }
        if builder.feed.cut {
            break;
        }
    }
    builder.finish()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rss,
    Atom,
}

struct Builder<'a> {
    /// Its title and description are as in the source until the end.
    feed: Feed,
    document: &'a Url,
    /// Values of `xml:base`, where they change what addresses are relative to, each with the depth of its element.
    bases: Vec<(usize, Url)>,
    item: Option<Draft>,
    /// Entries read, with those that turned out to say nothing.
    drafts: usize,
    html: HtmlReader,
    /// Set by the first element.
    kind: Option<Kind>,
    /// The default namespace of the first element; some feeds make one up.
    own_namespace: Option<String>,
    /// The open elements.
    path: Vec<Open>,
    /// Text of the current element.
    text: String,
    /// The current `guid` is an address (`isPermaLink`).
    is_link: bool,
}

struct Open {
    /// As [`known`] gives it.
    name: String,
    /// What is inside belongs to the text of this element or of one around it.
    is_text: bool,
}

/// An entry with texts as in the source. They are read once, at its end: a hostile entry may have a million titles.
#[derive(Default)]
struct Draft {
    title: String,
    url: Option<String>,
    published: Option<String>,
    author: String,
    summary: String,
    content: String,
}

impl Draft {
    fn says(&self) -> bool {
        self.url.is_some() || [&self.title, &self.summary, &self.content].iter().any(|text| !text.is_empty())
    }

    fn read(self, html: &mut HtmlReader) -> Item {
        let summary = html.summary(&self.summary);
        Item {
            title: html.title(&self.title),
            url: self.url,
            published: self.published,
            author: (!self.author.is_empty()).then(|| html.title(&self.author)),
            summary: if summary.is_empty() { html.summary(&self.content) } else { summary },
        }
    }
}

impl<'a> Builder<'a> {
    fn new(document: &'a Url) -> Self {
        Self {
            feed: Feed::default(),
            document,
            bases: Vec::new(),
            item: None,
            drafts: 0,
            html: HtmlReader::default(),
            kind: None,
            own_namespace: None,
            path: Vec::new(),
            text: String::new(),
            is_link: true,
        }
    }

    /// Returns `None` if the document is not a feed.
    fn open(&mut self, start: &BytesStart, namespaces: &NamespaceResolver) -> Option<()> {
        if self.kind.is_none() {
            self.own_namespace = own_namespace(start, namespaces);
        }
        let name = self.known(start, namespaces);
        if self.kind.is_none() {
            self.kind = Some(match name.as_str() {
                "rss" | "rdf" => Kind::Rss,
                "feed" => Kind::Atom,
                _ => return None,
            });
        }
        let of_xml = |name: &str| value(start, |one| one == name);
        if let Some(base) = of_xml("xml:base").and_then(|text| joined(&text, self.base()))
            && base != *self.base()
        {
            self.bases.push((self.path.len(), base));
        }
        if name == "guid" {
            self.is_link = of_xml("isPermaLink").is_none_or(|said| !said.trim().eq_ignore_ascii_case("false"));
        }
        match name.as_str() {
            "item" | "entry" => self.item = Some(Draft::default()),
            "link" if self.kind == Some(Kind::Atom) => self.link(start),
            _ => {}
        }
        // XHTML inside a text element belongs to its text.
        let inside = self.in_text();
        if !inside {
            self.text.clear();
        }
        let is_text = match name.as_str() {
            "title" | "summary" | "content" | "description" | "encoded" => true,
            // Of a feed that does not close its elements.
            "item" | "entry" | "channel" | "feed" => false,
            _ => inside,
        };
        self.path.push(Open { name, is_text });
        Some(())
    }

    /// The name of an element by which it is known here: the local one in the namespaces that feeds are made of. An element of
    /// another namespace, such as `media:title`, is none of ours.
    fn known(&self, start: &BytesStart, namespaces: &NamespaceResolver) -> String {
        let (namespace, name) = namespaces.resolve_element(start.name());
        let is_ours = match namespace {
            ResolveResult::Unbound => true,
            ResolveResult::Bound(Namespace(name)) => {
                is_of_feeds(name) || self.own_namespace.as_deref().is_some_and(|own| own == name)
            }
            // Some feeds forget to declare the usual prefixes.
            ResolveResult::Unknown(prefix) => PREFIXES.iter().any(|known| prefix.eq_ignore_ascii_case(known)),
        };
        if is_ours { name.into_inner().to_ascii_lowercase() } else { String::new() }
    }

    /// What addresses are relative to.
    fn base(&self) -> &Url {
        self.bases.last().map_or(self.document, |(_, base)| base)
    }

    fn in_text(&self) -> bool {
        self.path.last().is_some_and(|open| open.is_text)
    }

    /// Atom's links are attributes; the entry's address is the one with `rel="alternate"` or without `rel`.
    fn link(&mut self, start: &BytesStart) {
        let value = |name: &str| value(start, |one| local(one) == name);
        let known = self.item.as_ref().map_or(&self.feed.link, |item| &item.url);
        if known.is_some() || !matches!(value("rel").as_deref(), None | Some("alternate")) {
            return;
        }
        let url = value("href").and_then(|href| address(&href, self.base()));
        match &mut self.item {
            Some(item) => item.url = url,
            None => self.feed.link = url,
        }
    }

    fn push(&mut self, text: &str) {
        let room = MAX_FIELD_BYTES.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
    }

    fn close(&mut self) {
        let Some(Open { name, .. }) = self.path.pop() else { return };
        if matches!(name.as_str(), "item" | "entry") {
            self.close_item();
        } else {
            self.close_field(&name);
            if !self.in_text() {
                self.text.clear();
            }
        }
        self.bases.pop_if(|(depth, _)| *depth == self.path.len());
    }

    fn close_item(&mut self) {
        let Some(draft) = self.item.take().filter(Draft::says) else { return };
        if self.drafts == MAX_ITEMS {
            self.feed.cut = true;
            return;
        }
        self.drafts += 1;
        let item = draft.read(&mut self.html);
        let says = !item.title.is_empty() || item.url.is_some() || !item.summary.is_empty();
        self.feed.items.extend(says.then_some(item));
    }

    fn close_field(&mut self, name: &str) {
        let parent = self.path.last().map_or("", |open| open.name.as_str());
        let base = self.bases.last().map_or(self.document, |(_, base)| base);
        let text = self.text.as_str();
        match &mut self.item {
            Some(item) if matches!(parent, "item" | "entry") => match name {
                "title" => text.clone_into(&mut item.title),
                "link" if item.url.is_none() => item.url = address(text, base),
                "guid" if item.url.is_none() && self.is_link && text.starts_with("http") => {
                    item.url = address(text, base)
                }
                "pubdate" | "published" | "date" => item.published = date(text).or(item.published.take()),
                "updated" if item.published.is_none() => item.published = date(text),
                "creator" | "author" if !text.trim().is_empty() => text.clone_into(&mut item.author),
                "description" | "summary" => text.clone_into(&mut item.summary),
                "encoded" | "content" if item.content.trim().is_empty() => text.clone_into(&mut item.content),
                _ => {}
            },
            Some(item) if parent == "author" && name == "name" => text.clone_into(&mut item.author),
            None if matches!(parent, "channel" | "feed") => match name {
                "title" => text.clone_into(&mut self.feed.title),
                "link" if self.feed.link.is_none() => self.feed.link = address(text, base),
                "description" | "subtitle" => text.clone_into(&mut self.feed.description),
                _ => {}
            },
            _ => {}
        }
    }

    /// Returns `None` if the document is not a feed.
    fn finish(mut self) -> Option<Feed> {
        self.kind?;
        self.feed.title = self.html.title(&self.feed.title);
        self.feed.description = self.html.summary(&self.feed.description);
        // A feed without title and entries counts only if it is complete.
        let is_whole = !self.feed.cut && self.path.is_empty();
        let said = is_whole || !self.feed.title.is_empty() || !self.feed.items.is_empty();
        self.feed.cut |= self.html.cut;
        said.then_some(self.feed)
    }
}

/// Reads a JSON Feed (jsonfeed.org, versions 1 and 1.1); `None` if it is something else.
pub(super) fn of_json(source: &str, base: &Url) -> Option<Feed> {
    if !source.contains("jsonfeed.org/version/") {
        return None;
    }
    let feed = Part::of(source)?;
    feed.text("version").contains("jsonfeed.org/version/").then_some(())?;
    let mut html = HtmlReader::default();
    let (title, description) = (html.title(feed.text("title")), html.summary(feed.text("description")));
    let nothing = Part::default();
    let list = feed.fields.get("items").unwrap_or(&nothing);
    let mut read = |item: &Part| Item {
        title: html.title(item.text("title")),
        url: address(item.text("url"), base).or_else(|| address(item.text("external_url"), base)),
        published: date(item.text("date_published")),
        author: item
            .fields
            .get("authors")
            .and_then(|authors| authors.elements.first())
            .or_else(|| item.fields.get("author"))
            .map(|author| author.text("name"))
            .filter(|name| !name.is_empty())
            .map(|name| html.title(name)),
        summary: ["summary", "content_text", "content_html"]
            .iter()
            .map(|name| html.summary(item.text(name)))
            .find(|text| !text.is_empty())
            .unwrap_or_default(),
    };
    let items = list.elements.iter().map(&mut read).collect();
    let link = address(feed.text("home_page_url"), base);
    Some(Feed { title, description, link, items, cut: list.more || html.cut })
}

/// What is read of a JSON Feed. A tree of everything in it can take a hundred times the memory of the source.
#[derive(Default)]
struct Part {
    text: String,
    fields: BTreeMap<&'static str, Part>,
    elements: Vec<Part>,
    /// There are more elements.
    more: bool,
}

impl Part {
    fn of(source: &str) -> Option<Self> {
        let mut json = serde_json::Deserializer::from_str(source);
        let part = PartAt(0).deserialize(&mut json).ok()?;
        json.end().ok().map(|()| part)
    }

    /// The text of a field, or nothing.
    fn text(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", |field| &field.text)
    }
}

/// Reads the part at this depth; the feed itself is at 0, its entries are at 2, the names of their authors at 5.
#[derive(Clone, Copy)]
struct PartAt(usize);

impl PartAt {
    const FIELDS: [&str; 14] = [
        "version",
        "title",
        "description",
        "home_page_url",
        "items",
        "url",
        "external_url",
        "date_published",
        "authors",
        "author",
        "name",
        "summary",
        "content_text",
        "content_html",
    ];
    const DEEPEST: usize = 5;

    fn inside(self) -> Option<Self> {
        (self.0 < Self::DEEPEST).then_some(Self(self.0 + 1))
    }
}

impl<'de> DeserializeSeed<'de> for PartAt {
    type Value = Part;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Part, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PartAt {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Part, E> {
        Ok(Part { text: bounded(text).to_owned(), ..Part::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Part, A::Error> {
        let mut part = Part::default();
        while let Some(name) = map.next_key::<String>()? {
            match (Self::FIELDS.iter().find(|field| **field == name), self.inside()) {
                (Some(field), Some(inside)) => {
                    part.fields.insert(field, map.next_value_seed(inside)?);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(part)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Part, A::Error> {
        let mut part = Part::default();
        // Of authors only the first is read.
        let most = if self.0 == 1 { MAX_ITEMS } else { 1 };
        while let Some(inside) = self.inside()
            && part.elements.len() < most
            && let Some(element) = list.next_element_seed(inside)?
        {
            part.elements.push(element);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {
            part.more = true;
        }
        Ok(part)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_unit<E>(self) -> Result<Part, E> {
        Ok(Part::default())
    }
}

/// The feed as Markdown. Titles and summaries are escaped.
pub(super) fn to_markdown(feed: &Feed) -> String {
    let mut markdown = format!("# {}\n\n{}\n\n", literal(&feed.title), literal(&feed.description));
    for item in &feed.items {
        let title = if item.title.is_empty() { "(untitled)" } else { &item.title };
        let title = literal(title);
        match &item.url {
            Some(url) => markdown.push_str(&format!("- [{title}]({})", url.replace('(', "%28").replace(')', "%29"))),
            None => markdown.push_str(&format!("- {title}")),
        }
        let about: Vec<&str> = item.published.iter().chain(&item.author).map(String::as_str).collect();
        if !about.is_empty() {
            markdown.push_str(&format!(" ({})", literal(&about.join(", "))));
        }
        if !item.summary.is_empty() && item.summary != item.title {
            markdown.push_str(&format!("\n  {}", literal(&item.summary)));
        }
        markdown.push('\n');
    }
    markdown
}

/// The local name, in lower case.
fn local(name: &str) -> String {
    name.rsplit(':').next().unwrap_or_default().to_ascii_lowercase()
}

fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_FIELD_BYTES)]
}

/// Reads values that may be HTML, as long as their trees are not too large together.
#[derive(Default)]
struct HtmlReader {
    /// Nodes of the trees built so far.
    nodes: usize,
    /// Something was left out.
    cut: bool,
}

impl HtmlReader {
    fn title(&mut self, text: &str) -> String {
        line(&self.plain(text), MAX_TITLE_CHARS)
    }

    fn summary(&mut self, text: &str) -> String {
        line(&self.plain(text), MAX_SUMMARY_CHARS)
    }

    /// The visible text.
    fn plain(&mut self, text: &str) -> String {
        if !text.contains(['<', '&']) {
            return text.to_owned();
        }
        if self.nodes >= MAX_NODES {
            self.cut = true;
            return String::new();
        }
        let prefiltered = super::prefilter::prefilter(text);
        let document = super::parse::parse(&prefiltered.markup).document;
        self.nodes += document.tree.len();
        if let Ok(base) = Url::parse("http://feed.invalid/") {
            super::clean::clean(&document, &prefiltered.styles, &base);
        }
        document.body().map(|body| body.formatted_text().to_string()).unwrap_or_default()
    }
}

/// Whether this is a namespace that feeds are made of. Some feeds write it with `https` or another end.
fn is_of_feeds(namespace: &str) -> bool {
    let name = namespace.trim();
    let name = name.strip_prefix("http://").or(name.strip_prefix("https://")).unwrap_or(name);
    let name = name.strip_suffix(['/', '#']).unwrap_or(name);
    NAMESPACES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn own_namespace(root: &BytesStart, namespaces: &NamespaceResolver) -> Option<String> {
    // The first element of RSS 1.0 has a prefix, and the default namespace is for the others.
    let has_default = root.name().prefix().is_none_or(|prefix| prefix.into_inner().eq_ignore_ascii_case("rdf"));
    match namespaces.resolve_prefix(None, true) {
        ResolveResult::Bound(Namespace(name)) if has_default && name.len() <= MAX_NAMESPACE_BYTES => {
            Some(name.to_owned())
        }
        _ => None,
    }
}

/// An attribute of an element, by its whole name.
fn value(start: &BytesStart, is: impl Fn(&str) -> bool) -> Option<String> {
    let attribute = start.attributes().take(20).flatten().find(|one| is(one.key.0))?;
    Some(unescape(&attribute.value).map_or_else(|_| attribute.value.to_string(), |text| text.into_owned()))
}

fn address(text: &str, base: &Url) -> Option<String> {
    joined(text, base).map(String::from)
}

/// An address of the web, unless it is empty or too long.
fn joined(text: &str, base: &Url) -> Option<Url> {
    let text = text.trim();
    let url = if text.is_empty() || text.len() > MAX_ADDRESS_BYTES { None } else { base.join(text).ok() }?;
    (matches!(url.scheme(), "http" | "https") && url.as_str().len() <= MAX_ADDRESS_BYTES).then_some(url)
}

/// Reads RFC 2822 (RSS) or RFC 3339 (the others).
fn date(text: &str) -> Option<String> {
    let text = text.trim();
    let read = DateTime::parse_from_rfc3339(text).or_else(|_| DateTime::parse_from_rfc2822(text));
    match read {
        Ok(date) => Some(date.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)),
        // Some feeds give a date without a time.
        Err(_) => {
            text.get(..10).filter(|day| chrono::NaiveDate::parse_from_str(day, "%Y-%m-%d").is_ok()).map(str::to_owned)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Url {
        Url::parse("https://site.example/feed").unwrap()
    }

    #[test]
    fn rss_with_all_supported_elements() {
        let feed = of_xml(
            "<?xml version=\"1.0\"?><!DOCTYPE rss [<!ENTITY x \"evil\">]><rss version=\"2.0\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xmlns:content=\"http://purl.org/rss/1.0/modules/content/\"><channel><title>A &amp; B</title>\
             <link>https://site.example/</link><atom:link rel=\"self\" href=\"/feed\"/><description>News</description>\
             <item><title><![CDATA[One <b>bold</b> &amp; more]]></title><link>/1?a=1&amp;b=2</link><pubDate>Wed, 04 Mar 2026 07:30:00 +0100</pubDate><dc:creator>A. Writer</dc:creator>\
             <description>&lt;p&gt;Shown&lt;span style=\"display:none\"&gt;hidden&lt;/span&gt;&lt;/p&gt;</description></item>\
             <item><title>Two &x;</title><guid>https://site.example/2</guid></item><item><title>Three</title><link>javascript:alert(1)</link></item>",
            &base(),
        );
        let feed = feed.unwrap();
        assert_eq!((feed.title.as_str(), feed.description.as_str(), feed.items.len()), ("A & B", "News", 3));
        let one = &feed.items[0];
        assert_eq!(
            (one.title.as_str(), one.url.as_deref()),
            ("One bold & more", Some("https://site.example/1?a=1&b=2"))
        );
        assert_eq!(one.published.as_deref(), Some("2026-03-04T07:30:00+01:00"));
        assert_eq!((one.author.as_deref(), one.summary.as_str()), (Some("A. Writer"), "Shown"));
        assert_eq!(
            (feed.items[1].title.as_str(), feed.items[1].url.as_deref()),
            ("Two", Some("https://site.example/2"))
        );
        assert_eq!(feed.items[2].url, None);
        let markdown = to_markdown(&feed);
        assert!(
            markdown.contains(
                "- [One bold & more](https://site.example/1?a=1&b=2) (2026-03-04T07:30:00+01:00, A. Writer)\n  Shown"
            ),
            "{markdown}"
        );
    }

    #[test]
    fn elements_of_other_namespaces_and_bare_ampersands_change_nothing() {
        let rss = "<rss xmlns:media=\"m\" xmlns:itunes=\"i\"><channel><title>Salt & Co</title><itunes:author>X</itunes:author>\
                   <item><title>One & two</title><media:title>A picture</media:title><media:description>Of it</media:description>\
                   <guid isPermaLink=\"false\">https://site.example/no-page</guid><link>/1?a=1&b=2</link></item>\
                   <item><title>Two</title><guid isPermaLink=\"false\">https://site.example/no-page</guid></item></channel></rss>";
        let feed = of_xml(rss, &base()).unwrap();
        assert_eq!((feed.title.as_str(), feed.items.len(), feed.cut), ("Salt & Co", 2, false));
        let [one, two] = &feed.items[..] else { panic!("{feed:?}") };
        assert_eq!((one.title.as_str(), one.summary.as_str()), ("One & two", ""));
        assert_eq!((one.url.as_deref(), two.url.as_deref()), (Some("https://site.example/1?a=1&b=2"), None));
    }

    #[test]
    fn elements_are_known_by_namespace_whatever_their_prefix() {
        const ATOM: &str = "http://www.w3.org/2005/Atom";
        const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
        const MEDIA: &str = "http://search.yahoo.com/mrss/";
        const DC: &str = "http://purl.org/dc/elements/1.1/";
        let item = "<item><title>One</title><link>/1</link><dc:creator>N</dc:creator></item>";
        for feed in [
            format!(
                "<a:feed xmlns:a='{ATOM}'><a:entry><a:title>One</a:title><a:link href='/1'/><a:author><a:name>N</a:name></a:author></a:entry></a:feed>"
            ),
            format!(
                "<feed xmlns='{ATOM}' xmlns:m='{MEDIA}'><entry><title>One</title><m:group><m:title>No</m:title></m:group><m:title>No</m:title><link href='/1'/><author><name>N</name></author></entry></feed>"
            ),
            // The default namespace is none of ours there.
            format!(
                "<a:feed xmlns:a='{ATOM}' xmlns='{MEDIA}'><a:entry><a:title>One</a:title><title>No</title><a:link href='/1'/><a:author><a:name>N</a:name></a:author></a:entry></a:feed>"
            ),
            format!(
                "<feed xmlns='http://purl.org/atom/ns#'><entry><title>One</title><title xmlns='{MEDIA}'>No</title><link href='/1'/><author><name>N</name></author></entry></feed>"
            ),
            format!(
                "<r:RDF xmlns:r='{RDF}' xmlns='http://purl.org/rss/1.0/' xmlns:d='{DC}'><item><title>One</title><link>/1</link><d:creator>N</d:creator></item></r:RDF>"
            ),
            format!("<rdf:RDF xmlns:rdf='{RDF}' xmlns='urn:made-up'>{item}</rdf:RDF>"),
            // Prefixes that were not declared, and namespaces written wrongly or made up.
            format!("<rss><channel>{item}</channel></rss>"),
            format!(
                "<rss xmlns='urn:made-up' xmlns:dc='https://purl.org/dc/elements/1.1'><channel>{item}</channel></rss>"
            ),
            // A usual prefix of something else.
            format!(
                "<rss xmlns:atom='{MEDIA}' xmlns:dc='{DC}'><channel><item><title>One</title><atom:title>No</atom:title><link>/1</link><dc:creator>N</dc:creator></item></channel></rss>"
            ),
        ] {
            let read = of_xml(&feed, &base()).unwrap_or_default();
            let items: Vec<_> = read
                .items
                .iter()
                .map(|item| (item.title.as_str(), item.url.as_deref(), item.author.as_deref()))
                .collect();
            assert_eq!(items, [("One", Some("https://site.example/1"), Some("N"))], "{feed}");
        }
        assert_eq!(of_xml(&format!("<m:feed xmlns:m='{MEDIA}'><title>T</title></m:feed>"), &base()), None);
    }

    #[test]
    fn markup_inside_a_text_belongs_to_it() {
        let atom = "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:x='http://www.w3.org/1999/xhtml'><entry>\
                    <title type='xhtml'><x:div>One <x:em>and <x:b>two</x:b></x:em> <x:title>three</x:title></x:div></title>\
                    <x:title>No</x:title><summary><div><p>A</p> <ul><li>B</li></ul></div></summary></entry></feed>";
        let feed = of_xml(atom, &base()).unwrap();
        assert_eq!((feed.items[0].title.as_str(), feed.items[0].summary.as_str()), ("One and two three", "A B"));
        // Elements that are never closed.
        let rss = "<rss><channel><title>T<item><title>One</title><link>/1</link></item></channel></rss>";
        assert_eq!(of_xml(rss, &base()).unwrap().items[0].title, "One");
    }

    #[test]
    fn addresses_are_relative_to_the_nearest_base() {
        let atom = "<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:base=\"https://other.example/a/\"><title>T</title><link href=\".\"/>\
                    <entry xml:base=\"b/\"><title>1</title><link href=\"1\"/></entry><entry><title>2</title><link href=\"2\"/></entry>\
                    <entry xml:base=\"javascript:x\"><title>3</title><link href=\"3\"/></entry></feed>";
        let feed = of_xml(atom, &base()).unwrap();
        let urls: Vec<_> = feed.items.iter().map(|item| item.url.as_deref().unwrap_or_default()).collect();
        assert_eq!(feed.link.as_deref(), Some("https://other.example/a/"));
        assert_eq!(urls, ["https://other.example/a/b/1", "https://other.example/a/2", "https://other.example/a/3"]);
    }

    #[test]
    fn atom_and_json() {
        let atom = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title type=\"text\">T</title><link rel=\"self\" href=\"/self\"/><link href=\"/\"/>\
                    <entry><title type=\"xhtml\"><div xmlns=\"http://www.w3.org/1999/xhtml\">An <em>entry</em></div></title><link rel=\"edit\" href=\"/e\"/><link rel=\"alternate\" href=\"/1\"/>\
                    <updated>2026-01-02T03:04:05Z</updated><author><name>N</name></author><content type=\"html\">&lt;p&gt;Text&lt;/p&gt;</content></entry></feed>";
        let feed = of_xml(atom, &base()).unwrap();
        assert_eq!(feed.link.as_deref(), Some("https://site.example/"));
        let item = Item {
            title: "An entry".to_owned(),
            url: Some("https://site.example/1".to_owned()),
            published: Some("2026-01-02T03:04:05Z".to_owned()),
            author: Some("N".to_owned()),
            summary: "Text".to_owned(),
        };
        assert_eq!(feed.items, [item]);
        let json = "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"J\",\"items\":[{\"url\":\"/1\",\"title\":\"One\",\"content_html\":\"<p>x</p>\",\"date_published\":\"2026-01-02\"}]}";
        let feed = of_json(json, &base()).unwrap();
        assert_eq!(
            (feed.title.as_str(), feed.items[0].summary.as_str(), feed.items[0].published.as_deref()),
            ("J", "x", Some("2026-01-02"))
        );
    }

    #[test]
    fn long_bases_and_addresses_are_left_out() {
        let long = "b/".repeat(1_500);
        let items = "<entry><title>1</title><link href=\"1\"/></entry>";
        let atom = format!("<feed xml:base=\"{long}\">{items}<entry xml:base=\"{}\">", &long[..2_000]);
        let feed = of_xml(&format!("{atom}<a xml:base=\"{}\">{items}</a></entry></feed>", &long[..200]), &base());
        let urls: Vec<_> = feed.unwrap().items.into_iter().filter_map(|item| item.url).collect();
        assert_eq!(urls, ["https://site.example/1".to_owned(), format!("https://site.example/{}1", &long[..2_000])]);
        let long = format!("<feed><title>T</title><link href=\"/{long}\"/></feed>");
        assert_eq!(of_xml(&long, &base()).unwrap().link, None);
    }

    #[test]
    fn a_base_is_kept_only_where_it_changes() {
        let base = base();
        let mut builder = Builder::new(&base);
        let mut open = |tag: &'static str| {
            let start = BytesStart::from_content(tag, tag.find(' ').unwrap_or(tag.len()));
            builder.open(&start, &NamespaceResolver::default()).unwrap();
            builder.bases.len()
        };
        let kept = ["feed", "a", "a xml:base='/b/'", "a", "a xml:base='/b/'", "a xml:base='c'", "a"].map(&mut open);
        assert_eq!(kept, [0, 0, 1, 1, 1, 2, 2]);
        let kept: Vec<_> = (0..7).map(|_| (builder.close(), builder.bases.len()).1).collect();
        assert_eq!(kept, [2, 1, 1, 1, 0, 0, 0]);
    }

    #[test]
    fn only_so_much_html_is_read() {
        // Each text is read once, whatever comes after it.
        let base = base();
        let mut builder = Builder::new(&base);
        let parse = |tags: &str, builder: &mut Builder| {
            for tag in tags.split_whitespace() {
                match tag.strip_prefix('/') {
                    Some(_) => builder.close(),
                    None => builder.open(&BytesStart::new(tag.to_owned()), &NamespaceResolver::default()).unwrap(),
                }
                builder.push("<p>x");
            }
        };
        parse("rss channel", &mut builder);
        parse(&"title /title description /description ".repeat(1_000), &mut builder);
        parse("item", &mut builder);
        parse(&"title /title description /description content /content ".repeat(1_000), &mut builder);
        assert_eq!(builder.html.nodes, 0);
        parse("/item", &mut builder);
        assert!((1..50).contains(&builder.html.nodes), "{}", builder.html.nodes);
        // Entries that say nothing count like others.
        let empty = format!("<rss><channel><title>T</title>{}", "<item><title>&lt;p></title></item>".repeat(5_000));
        let feed = of_xml(&empty, &base).unwrap();
        assert!(feed.cut && feed.items.is_empty());
        // Markup that makes very large trees.
        let open: String = (0..150).map(|n| format!("&lt;b id={n}>")).collect();
        let large = format!("<item><title>&lt;p>{open}{}</title></item>", "&lt;p>x".repeat(200));
        let feed = of_xml(&format!("<rss><channel>{}</channel></rss>", large.repeat(100)), &base).unwrap();
        assert!(feed.cut && (1..50).contains(&feed.items.len()), "{}", feed.items.len());
    }

    #[test]
    fn only_the_needed_parts_of_json_are_kept() {
        fn parts(part: &Part) -> usize {
            1 + part.fields.values().chain(&part.elements).map(parts).sum::<usize>()
        }
        let version = "\"version\": \"https://jsonfeed.org/version/1\"";
        let many = |element: &str| format!("[{}0]", format!("{element},").repeat(20_000));
        for (json, most) in [
            (many("{\"\":0}"), 2),
            (format!("{{{version}, \"x\": {}}}", many("{\"title\":0}")), 2),
            (format!("{{{version}, \"authors\": {}}}", many("{\"\":0}")), 3 + MAX_ITEMS),
            (format!("{{{version}, \"items\": [{{\"authors\": {}}}]}}", many("{\"name\":0}")), 7),
            (
                format!("{{{version}, \"items\": [{{\"items\": [{{\"items\": {0}, \"title\": {0}}}]}}]}}", many("[0]")),
                8,
            ),
        ] {
            let read = Part::of(&json).unwrap();
            assert!(parts(&read) <= most, "{} parts of {}", parts(&read), &json[..80]);
        }
        let odd = format!(
            "{{{version}, \"title\": null, \"title\": \"T\", \"items\": [null, 1, -1, 0.5, true, [], {{\"url\": 7, \"author\": {{\"name\": \"N\"}}}}], \"a\": {{}}}}"
        );
        let feed = of_json(&odd, &base()).unwrap();
        assert_eq!((feed.title.as_str(), feed.items.len(), feed.items[6].author.as_deref()), ("T", 7, Some("N")));
        assert_eq!(of_json(&format!("{odd} x"), &base()), None);
        let items = |count| format!("{{{version}, \"items\": [{}{{}}]}}", "{},".repeat(count - 1));
        let read = |count| of_json(&items(count), &base()).map(|feed| (feed.items.len(), feed.cut));
        assert_eq!((read(MAX_ITEMS), read(MAX_ITEMS + 1)), (Some((MAX_ITEMS, false)), Some((MAX_ITEMS, true))));
    }

    #[test]
    fn a_whole_feed_of_as_many_entries_as_are_kept_is_not_cut() {
        let feed = |count| {
            let items = "<item><title>x</title></item>".repeat(count);
            of_xml(&format!("<rss><channel>{items}</channel></rss>"), &base()).map(|feed| (feed.items.len(), feed.cut))
        };
        assert_eq!((feed(MAX_ITEMS), feed(MAX_ITEMS + 1)), (Some((MAX_ITEMS, false)), Some((MAX_ITEMS, true))));
    }

    #[test]
    fn other_documents_are_rejected_and_broken_feeds_kept() {
        assert_eq!(of_xml("<urlset><url><loc>https://x.example/</loc></url></urlset>", &base()), None);
        assert_eq!(of_xml("not xml at all", &base()), None);
        assert_eq!(of_json("{\"items\": []}", &base()), None);
        assert_eq!(of_xml("<rss><channel><title>", &base()), None);
        assert!(of_xml("<rss><channel><title/></channel></rss>", &base()).is_some_and(|feed| feed.items.is_empty()));
        let untitled =
            of_xml("<rss><channel><item><description>A note</description></item><item/></channel></rss>", &base());
        assert_eq!(untitled.unwrap().items.len(), 1);
        let broken =
            of_xml("<rss><channel><title>T</title><item><title>One</title></item><item><title a=<<", &base()).unwrap();
        assert_eq!(broken.items.len(), 1);
        let deep = format!("<rss><channel>{}", "<a>".repeat(100_000));
        assert_eq!(of_xml(&deep, &base()), None);
        let many = format!("<rss><channel>{}", "<item><title>x</title></item>".repeat(5_000));
        let many = of_xml(&many, &base()).unwrap();
        assert!(many.cut && many.items.len() == MAX_ITEMS);
    }
}
