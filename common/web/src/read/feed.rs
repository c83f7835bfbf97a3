//! Feeds: RSS (0.9 to 2.0), Atom and JSON Feed, as a list of entries.
//!
//! Feeds are untrusted: only http and https addresses are kept, and descriptions are cleaned like pages.

use chrono::DateTime;
use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use serde_json::Value;
use url::Url;

use super::text::{line, literal};

/// Maximum number of entries kept.
const MAX_ITEMS: usize = 200;
/// Longest text of an element, in bytes; also the longest description as HTML.
const MAX_FIELD_BYTES: usize = 4_096;
const MAX_TITLE_CHARS: usize = 300;
const MAX_SUMMARY_CHARS: usize = 400;
/// Deepest nesting of elements; real feeds need less.
const MAX_DEPTH: usize = 64;

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
    let mut reader = Reader::from_str(source);
    reader.config_mut().check_end_names = false;
    reader.config_mut().allow_dangling_amp = true;
    let (feed, bases) = (Feed::default(), vec![base.clone()]);
    let mut builder =
        Builder { feed, bases, item: None, kind: None, path: Vec::new(), text: String::new(), is_link: true };
    loop {
        let event = reader.read_event();
        match event {
            Ok(Event::Start(start)) => {
                builder.open(&start)?;
                if builder.path.len() > MAX_DEPTH {
                    break;
                }
            }
            Ok(Event::Empty(start)) => {
                builder.open(&start)?;
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
        if builder.feed.items.len() >= MAX_ITEMS {
            builder.feed.cut = true;
            break;
        }
    }
    builder.kind?;
    // A feed without title and entries counts only if it is complete.
    let is_whole = !builder.feed.cut && builder.path.is_empty();
    let said = is_whole || !builder.feed.title.is_empty() || !builder.feed.items.is_empty();
    said.then_some(builder.feed)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rss,
    Atom,
}

struct Builder {
    feed: Feed,
    /// What addresses are relative to: the document's own, and one for each open element (`xml:base`).
    bases: Vec<Url>,
    item: Option<Item>,
    /// Set by the first element.
    kind: Option<Kind>,
    /// Local names of the open elements.
    path: Vec<String>,
    /// Text of the current element.
    text: String,
    /// The current `guid` is an address (`isPermaLink`).
    is_link: bool,
}

impl Builder {
    /// Returns `None` if the document is not a feed.
    fn open(&mut self, start: &BytesStart) -> Option<()> {
        let name = known(start.name().0);
        if self.kind.is_none() {
            self.kind = Some(match name.as_str() {
                "rss" | "rdf" => Kind::Rss,
                "feed" => Kind::Atom,
                _ => return None,
            });
        }
        let of_xml = |name: &str| value(start, |one| one == name);
        let base = of_xml("xml:base").and_then(|text| self.base().join(text.trim()).ok());
        self.bases
            .push(base.filter(|url| matches!(url.scheme(), "http" | "https")).unwrap_or_else(|| self.base().clone()));
        if name == "guid" {
            self.is_link = of_xml("isPermaLink").is_none_or(|said| !said.trim().eq_ignore_ascii_case("false"));
        }
        match name.as_str() {
            "item" | "entry" => self.item = Some(Item::default()),
            "link" if self.kind == Some(Kind::Atom) => self.link(start),
            _ => {}
        }
        // XHTML inside a text element belongs to its text.
        if !self.in_text() {
            self.text.clear();
        }
        self.path.push(name);
        Some(())
    }

    fn base(&self) -> &Url {
        // The first one is never taken off.
        &self.bases[self.bases.len() - 1]
    }

    fn in_text(&self) -> bool {
        let texts = ["title", "summary", "content", "description", "encoded"];
        self.path.last().is_some_and(|name| texts.contains(&name.as_str()) || name == "div" || name == "p")
    }

    /// Atom's links are attributes; the entry's address is the one with `rel="alternate"` or without `rel`.
    fn link(&mut self, start: &BytesStart) {
        let value = |name: &str| value(start, |one| local(one) == name);
        if !matches!(value("rel").as_deref(), None | Some("alternate")) {
            return;
        }
        let url = value("href").and_then(|href| address(&href, self.base()));
        let place = match &mut self.item {
            Some(item) => &mut item.url,
            None => &mut self.feed.link,
        };
        if place.is_none() {
            *place = url;
        }
    }

    fn push(&mut self, text: &str) {
        let room = MAX_FIELD_BYTES.saturating_sub(self.text.len());
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
    }

    fn close(&mut self) {
        let Some(name) = self.path.pop() else { return };
        let base = if self.bases.len() > 1 { self.bases.pop() } else { None };
        let base = base.unwrap_or_else(|| self.base().clone());
        if matches!(name.as_str(), "item" | "entry") {
            let says = |item: &Item| !item.title.is_empty() || item.url.is_some() || !item.summary.is_empty();
            self.feed.items.extend(self.item.take().filter(says));
            return;
        }
        let parent = self.path.last().map_or("", String::as_str);
        let text = self.text.as_str();
        match &mut self.item {
            Some(item) if matches!(parent, "item" | "entry") => match name.as_str() {
                "title" => item.title = title(text),
                "link" if item.url.is_none() => item.url = address(text, &base),
                "guid" if item.url.is_none() && self.is_link && text.starts_with("http") => {
                    item.url = address(text, &base)
                }
                "pubdate" | "published" | "date" => item.published = date(text).or(item.published.take()),
                "updated" if item.published.is_none() => item.published = date(text),
                "creator" | "author" if !text.trim().is_empty() => item.author = Some(title(text)),
                "description" | "summary" => item.summary = summary(text),
                "encoded" | "content" if item.summary.is_empty() => item.summary = summary(text),
                _ => {}
            },
            Some(item) if parent == "author" && name == "name" => item.author = Some(title(text)),
            None if matches!(parent, "channel" | "feed") => match name.as_str() {
                "title" => self.feed.title = title(text),
                "link" if self.feed.link.is_none() => self.feed.link = address(text, &base),
                "description" | "subtitle" => self.feed.description = summary(text),
                _ => {}
            },
            _ => {}
        }
        if !self.in_text() {
            self.text.clear();
        }
    }
}

/// Reads a JSON Feed (jsonfeed.org, versions 1 and 1.1); `None` if it is something else.
pub(super) fn of_json(source: &str, base: &Url) -> Option<Feed> {
    if !source.contains("jsonfeed.org/version/") {
        return None;
    }
    let feed: Value = serde_json::from_str(source).ok()?;
    feed.get("version")?.as_str()?.contains("jsonfeed.org/version/").then_some(())?;
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(bounded).unwrap_or_default().to_owned();
    let items = feed.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let read = |item: &Value| Item {
        title: title(&text(item, "title")),
        url: address(&text(item, "url"), base).or_else(|| address(&text(item, "external_url"), base)),
        published: date(&text(item, "date_published")),
        author: item.pointer("/authors/0/name").or(item.pointer("/author/name")).and_then(Value::as_str).map(title),
        summary: ["summary", "content_text", "content_html"]
            .iter()
            .map(|name| summary(&text(item, name)))
            .find(|text| !text.is_empty())
            .unwrap_or_default(),
    };
    Some(Feed {
        title: title(&text(&feed, "title")),
        description: summary(&text(&feed, "description")),
        link: address(&text(&feed, "home_page_url"), base),
        items: items.iter().take(MAX_ITEMS).map(read).collect(),
        cut: items.len() > MAX_ITEMS,
    })
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

fn title(text: &str) -> String {
    line(&plain(text), MAX_TITLE_CHARS)
}

fn summary(text: &str) -> String {
    line(&plain(text), MAX_SUMMARY_CHARS)
}

/// The visible text of a value that may be HTML.
fn plain(text: &str) -> String {
    if !text.contains(['<', '&']) {
        return text.to_owned();
    }
    let prefiltered = super::prefilter::prefilter(text);
    let document = super::parse::parse(&prefiltered.markup).document;
    if let Ok(base) = Url::parse("http://feed.invalid/") {
        super::clean::clean(&document, &prefiltered.styles, &base);
    }
    document.body().map(|body| body.formatted_text().to_string()).unwrap_or_default()
}

/// The name of an element by which it is known here: the local one in the namespaces that feeds are made of, by their usual
/// prefixes. An element of another namespace, such as `media:title`, is none of ours.
fn known(name: &str) -> String {
    const PREFIXES: [&str; 7] = ["atom", "atom03", "rss", "rdf", "dc", "dcterms", "content"];
    let is_ours =
        name.split_once(':').is_none_or(|(prefix, _)| PREFIXES.iter().any(|known| prefix.eq_ignore_ascii_case(known)));
    if is_ours { local(name) } else { String::new() }
}

/// An attribute of an element, by its whole name.
fn value(start: &BytesStart, is: impl Fn(&str) -> bool) -> Option<String> {
    let attribute = start.attributes().take(20).flatten().find(|one| is(one.key.0))?;
    Some(unescape(&attribute.value).map_or_else(|_| attribute.value.to_string(), |text| text.into_owned()))
}

fn address(text: &str, base: &Url) -> Option<String> {
    let text = text.trim();
    let url = if text.is_empty() { None } else { base.join(text).ok() }?;
    matches!(url.scheme(), "http" | "https").then(|| url.into())
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
            "<?xml version=\"1.0\"?><!DOCTYPE rss [<!ENTITY x \"evil\">]><rss version=\"2.0\" xmlns:dc=\"d\" xmlns:content=\"c\"><channel><title>A &amp; B</title>\
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
