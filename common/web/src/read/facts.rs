//! Machine-readable facts of an HTML page: JSON-LD, `meta` tags, and links to mail, telephone and pages. Untrusted, and
//! mostly invisible to visitors.

use platform::net::Page;
use serde_json::Value;
use url::Url;

use super::content_type::Kind;
use super::text::line;
use super::{charset, clean, content_type, parse, prefilter};

/// Limits: JSON-LD objects and the depth searched for them, links, `meta` tags, and characters of one value.
const MAX_OBJECTS: usize = 400;
const MAX_DEPTH: usize = 8;
const MAX_LINKS: usize = 500;
const MAX_TAGS: usize = 100;
const MAX_CHARS: usize = 1_000;

/// The facts of one page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// All JSON-LD objects, outer ones before inner ones.
    pub objects: Vec<Value>,
    /// Name (lower case) and content of each `meta` tag.
    pub tags: Vec<(String, String)>,
    pub title: Option<String>,
    /// http, https, mailto and tel links, in page order.
    pub links: Vec<Link>,
    /// Text of the `address` elements.
    pub addresses: Vec<String>,
    /// Addresses of the same person (`rel="me"`).
    pub me: Vec<Url>,
    /// Feeds of the page (`rel="alternate"`).
    pub feeds: Vec<Url>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub url: Url,
    pub text: String,
}

impl Facts {
    /// Content of the first of these tags that exists.
    pub fn tag(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| {
            let tag = self.tags.iter().find(|(tag, _)| tag == name);
            tag.map(|(_, content)| content.as_str())
        })
    }

    /// JSON-LD objects with one of these types.
    pub fn of_type<'a>(&'a self, types: &'a [&'a str]) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |object| {
            let is_one = |kind: &Value| {
                kind.as_str().is_some_and(|kind| types.contains(&kind.rsplit('/').next().unwrap_or(kind)))
            };
            match &object["@type"] {
                Value::Array(kinds) => kinds.iter().any(is_one),
                kind => is_one(kind),
            }
        })
    }
}

/// Reads the facts of an HTML page; other kinds have none.
pub fn read_facts(page: &Page) -> Facts {
    let Ok(Kind::Html) = content_type::detect(page.content_type.as_deref(), &page.body) else {
        return Facts::default();
    };
    let source = charset::decode(&page.body, page.content_type.as_deref(), Kind::Html);
    let prefiltered = prefilter::prefilter(&source);
    let document = parse::parse(&prefiltered.markup).document;
    let base = clean::base_url(&document, &page.final_url);
    let text = |text: &str| Some(line(text, MAX_CHARS)).filter(|text| !text.is_empty());
    let mut objects = Vec::new();
    for block in &prefiltered.linked_data {
        if let Ok(value) = serde_json::from_str(block) {
            collect(value, MAX_DEPTH, &mut objects);
        }
    }
    let (tags, links) = (document.select("meta[content]"), document.select("a[href]"));
    let addresses = document.select("address");
    let tags = tags.nodes().iter().take(MAX_TAGS).filter_map(|tag| {
        let name = tag.attr("property").or_else(|| tag.attr("name"))?;
        Some((name.trim().to_ascii_lowercase(), text(&tag.attr("content")?)?))
    });
    let links = links.nodes().iter().take(MAX_LINKS).filter_map(|link| {
        let url = base.join(link.attr("href")?.trim()).ok()?;
        let leads = matches!(url.scheme(), "http" | "https" | "mailto" | "tel");
        leads.then(|| Link { url, text: line(&link.text(), 200) })
    });
    let related = document.select("a[rel][href], link[rel][href]");
    let (mut me, mut feeds) = (Vec::new(), Vec::new());
    for link in related.nodes().iter().take(MAX_LINKS) {
        let rel = link.attr("rel").map(|rel| rel.to_ascii_lowercase()).unwrap_or_default();
        let url = link.attr("href").and_then(|href| base.join(href.trim()).ok());
        let Some(url) = url.filter(|url| matches!(url.scheme(), "http" | "https")) else { continue };
        let kind = link.attr("type").map(|kind| kind.trim().to_ascii_lowercase()).unwrap_or_default();
        let is_feed = ["application/rss+xml", "application/atom+xml", "application/feed+json"].contains(&kind.as_str());
        if rel.split_whitespace().any(|word| word == "me") {
            me.push(url);
        } else if is_feed && rel.split_whitespace().any(|word| word == "alternate") {
            feeds.push(url);
        }
    }
    Facts {
        me,
        feeds,
        objects,
        tags: tags.collect(),
        title: text(&document.select_single("head title").text()),
        links: links.collect(),
        addresses: addresses.nodes().iter().take(10).filter_map(|node| text(&node.text())).collect(),
    }
}

fn collect(value: Value, depth: usize, objects: &mut Vec<Value>) {
    if depth == 0 || objects.len() >= MAX_OBJECTS {
        return;
    }
    match value {
        Value::Array(values) => values.into_iter().for_each(|value| collect(value, depth, objects)),
        Value::Object(object) => {
            let inner: Vec<Value> =
                object.values().filter(|value| value.is_object() || value.is_array()).cloned().collect();
            objects.push(Value::Object(object));
            inner.into_iter().for_each(|value| collect(value, depth - 1, objects));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_within_the_limits() {
        let html = r#"<title>Home</title><meta property="og:site_name" content="Ex&#x200b;ample">
            <a href="/contact">Contact</a><a href="mailto:a@b.example">mail</a><a href="javascript:x()">no</a>
            <a href="tel:+49 30 123">call</a><address>1 High&nbsp;Street</address>
            <script type="application/ld+json">{"@graph":[{"@type":["Organization","Thing"],"name":"Ex",
            "employee":[{"@type":"Person","name":"Jo"}]}]}</script><script type="application/ld+json">{broken</script>"#;
        let page = |body: &str| Page {
            final_url: Url::parse("https://site.example/dir/").unwrap(),
            status: 200,
            content_type: Some("text/html".to_owned()),
            robots: None,
            cache_control: None,
            body: body.as_bytes().to_vec(),
            truncated: false,
            redirects: 0,
        };
        let facts = read_facts(&page(html));
        assert_eq!((facts.tag(&["og:site_name"]), facts.title.as_deref()), (Some("Example"), Some("Home")));
        assert_eq!(facts.of_type(&["Organization"]).count(), 1);
        assert_eq!(facts.of_type(&["Person"]).map(|person| &person["name"]).collect::<Vec<_>>(), ["Jo"]);
        let links: Vec<&str> = facts.links.iter().map(|link| link.url.as_str()).collect();
        assert_eq!(links.len(), 3, "{links:?}");
        assert_eq!(links[0], "https://site.example/contact");
        assert_eq!(facts.addresses, ["1 High Street"]);
        let deep = format!("{}1{}", "{\"a\":".repeat(100), "}".repeat(100));
        let deep = read_facts(&page(&format!("<script type=application/ld+json>{deep}</script>")));
        assert_eq!(deep.objects.len(), MAX_DEPTH);
        assert_eq!(read_facts(&page("")), Facts::default());
    }
}
