//! Metadata of a page, from its head and its JSON-LD.

use dom_query::Document;
use platform::net::{Page, product};
use serde_json::Value;
use url::Url;

use super::Metadata;
use super::text::line;

const MAX_TITLE_CHARS: usize = 300;
const MAX_DESCRIPTION_CHARS: usize = 1_000;
const MAX_WORD_CHARS: usize = 200;
/// Maximum number of JSON-LD objects read, over all blocks.
const MAX_LINKED_OBJECTS: usize = 200;

/// Reads the metadata. Must run before the tree is cleaned.
pub(super) fn extract(document: &Document, linked_data: &[String], base: &Url) -> Metadata {
    let meta = MetaTags::collect(document);
    let linked = linked_objects(linked_data);
    let linked = |read: fn(&Value) -> Option<String>| linked.iter().find_map(read);
    let word = |text: String| Some(line(&text, MAX_WORD_CHARS)).filter(|word| !word.is_empty());

    let title = meta
        .first(&["og:title", "twitter:title"])
        .or_else(|| text_of(document, "head title"))
        .or_else(|| text_of(document, "h1"));
    let description = meta
        .first(&["description", "og:description", "twitter:description", "dc.description"])
        .or_else(|| linked(|object| string(object, "description")));
    let language = attribute_of(document, "html[lang]", "lang")
        .or_else(|| meta.first(&["content-language", "og:locale"]))
        .or_else(|| linked(|object| string(object, "inLanguage")));
    let published_at = meta
        .first(&[
            "article:published_time",
            "datepublished",
            "date",
            "dc.date",
            "dc.date.issued",
            "dcterms.issued",
            "citation_publication_date",
            "publish-date",
            "pubdate",
            "parsely-pub-date",
        ])
        .or_else(|| linked(|object| string(object, "datePublished")))
        .or_else(|| attribute_of(document, "[itemprop=datePublished]", "content"))
        .or_else(|| attribute_of(document, "[itemprop=datePublished]", "datetime"));
    let site_name = meta
        .first(&["og:site_name", "application-name"])
        .or_else(|| linked(|object| name_in(object.get("publisher")?)));
    let byline = meta
        .first(&["author", "article:author", "dc.creator", "citation_author", "parsely-author"])
        .filter(|author| !author.contains("://"))
        .or_else(|| linked(|object| name_in(object.get("author")?)))
        .or_else(|| text_of(document, "[rel=author], [itemprop=author]"));

    Metadata {
        title: title.map(|text| line(&text, MAX_TITLE_CHARS)).unwrap_or_default(),
        description: description.map(|text| line(&text, MAX_DESCRIPTION_CHARS)).unwrap_or_default(),
        status_code: 0,
        canonical_url: canonical_url(document, base),
        language: language.and_then(word).filter(|tag| is_language_tag(tag)),
        published_at: published_at.and_then(word).filter(|date| is_date(date)),
        site_name: site_name.and_then(word),
        byline: byline.and_then(word),
    }
}

/// Whether the page's own `<meta>` tags allow it in the index: neither `robots` nor the tag for `agent` (a product token in
/// lower case) forbids that.
pub(super) fn page_may_be_listed(document: &Document, agent: &str) -> bool {
    let tags = document.select("meta[name][content]");
    let ours = tags.nodes().iter().filter(|tag| tag.attr("name").is_some_and(|name| is_for_us(&name, agent)));
    !ours.filter_map(|tag| tag.attr("content")).any(|said| forbids_listing(&said, agent))
}

/// Whether the response headers allow the page in the index: no `X-Robots-Tag` for all or for `agent` forbids it, and
/// `Cache-Control` is neither `private` nor `no-store` (RFC 9111 §5.2.2.5, §5.2.2.7).
pub(super) fn head_may_be_listed(page: &Page, agent: &str) -> bool {
    let mut robots = page.robots.as_deref().unwrap_or_default().lines();
    let mut caching = page.cache_control.as_deref().unwrap_or_default().split(['\n', ',']);
    // `private="set-cookie"` is not a match: it concerns only that header field.
    let is_private = |word: &str| ["private", "no-store"].iter().any(|name| word.trim().eq_ignore_ascii_case(name));
    // A robot's name applies only within its own header.
    !robots.any(|said| forbids_listing(said, agent)) && !caching.any(is_private)
}

/// `otherbot: noindex, nofollow` is for that robot only, until the next part that names a robot.
fn forbids_listing(said: &str, agent: &str) -> bool {
    let mut ours = true;
    said.to_ascii_lowercase().split(',').any(|word| {
        let word = match word.split_once(':') {
            Some((name, word)) if !name.trim().starts_with("max-") && !name.trim().starts_with("unavailable") => {
                ours = is_for_us(name, agent);
                word
            }
            _ => word,
        };
        ours && matches!(word.trim(), "noindex" | "none")
    })
}

/// Whether the name means all robots or this service.
fn is_for_us(name: &str, agent: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    matches!(name.as_str(), "*" | "robots") || !agent.is_empty() && product(&name) == agent
}

/// The `<meta>` tags by lower-case name; the first of equal names counts.
struct MetaTags(Vec<(String, String)>);

impl MetaTags {
    fn collect(document: &Document) -> Self {
        let tags = document.select("meta[content]");
        let named = tags.nodes().iter().filter_map(|tag| {
            let names = ["property", "name", "itemprop", "http-equiv"];
            let name = names.iter().find_map(|name| tag.attr(name))?;
            let content = tag.attr("content")?;
            let content = content.trim();
            let name = name.trim().to_ascii_lowercase();
            (!content.is_empty()).then(|| (name, content.to_owned()))
        });
        Self(named.collect())
    }

    fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| {
            let tag = self.0.iter().find(|(tag, _)| tag == name);
            tag.map(|(_, content)| content.clone())
        })
    }
}

fn text_of(document: &Document, selector: &str) -> Option<String> {
    let text = document.select_single(selector).text();
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn attribute_of(document: &Document, selector: &str, name: &str) -> Option<String> {
    document.select_single(selector).attr(name).map(|value| value.to_string())
}

fn canonical_url(document: &Document, base: &Url) -> Option<String> {
    let href = attribute_of(document, "link[rel=canonical]", "href")?;
    let url = base.join(href.trim()).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.into())
}

/// Accepts `de`, `pt-BR`, `en_US`; rejects other text.
fn is_language_tag(tag: &str) -> bool {
    tag.len() <= 35 && tag.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// Accepts short text with a year in it. The format is not checked.
fn is_date(date: &str) -> bool {
    let has_year = date.as_bytes().windows(4).any(|run| run.iter().all(u8::is_ascii_digit));
    has_year && date.len() <= 64
}

/// The objects of all JSON-LD blocks, including those in `@graph`.
fn linked_objects(blocks: &[String]) -> Vec<Value> {
    let mut objects = Vec::new();
    let mut waiting: Vec<Value> = blocks.iter().rev().filter_map(|block| serde_json::from_str(block).ok()).collect();
    while let Some(value) = waiting.pop() {
        if objects.len() >= MAX_LINKED_OBJECTS {
            break;
        }
        match value {
            Value::Array(values) => waiting.extend(values.into_iter().rev()),
            Value::Object(mut object) => {
                waiting.extend(object.remove("@graph"));
                objects.push(Value::Object(object));
            }
            _ => {}
        }
    }
    objects
}

fn string(object: &Value, member: &str) -> Option<String> {
    object.get(member)?.as_str().map(str::to_owned)
}

/// The name of a person or organisation; several names are joined.
fn name_in(value: &Value) -> Option<String> {
    match value {
        Value::String(name) => Some(name.clone()),
        Value::Object(_) => string(value, "name"),
        Value::Array(values) => {
            let names: Vec<String> = values
                .iter()
                .take(10)
                .filter_map(|value| value.as_str().map(str::to_owned).or_else(|| string(value, "name")))
                .collect();
            (!names.is_empty()).then(|| names.join(", "))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(html: &str, linked: &[&str]) -> Metadata {
        let base = Url::parse("https://site.example/dir/page").unwrap();
        let linked: Vec<String> = linked.iter().map(|&block| block.to_owned()).collect();
        extract(&Document::from(html), &linked, &base)
    }

    #[test]
    fn a_page_without_head_has_no_metadata() {
        assert_eq!(metadata("<p>hello", &[]), Metadata::default());
    }

    #[test]
    fn the_head_is_read() {
        let found = metadata(
            "<html lang=en-GB><title> Page\n title </title>\
             <meta name=Description content='What it  is'>\
             <meta property=og:site_name content=Site>\
             <meta property=article:published_time content=2026-01-02T03:04:05Z>\
             <meta name=author content='A. Writer'>\
             <link rel=canonical href=../real>",
            &[],
        );
        assert_eq!(
            found,
            Metadata {
                title: "Page title".to_owned(),
                description: "What it is".to_owned(),
                status_code: 0,
                canonical_url: Some("https://site.example/real".to_owned()),
                language: Some("en-GB".to_owned()),
                published_at: Some("2026-01-02T03:04:05Z".to_owned()),
                site_name: Some("Site".to_owned()),
                byline: Some("A. Writer".to_owned()),
            }
        );
    }

    #[test]
    fn noindex_and_private_responses_are_not_listed() {
        for (html, listed) in [
            ("<meta name=robots content='index, follow'>", true),
            ("<META NAME=Robots content='NOFOLLOW, NoIndex'>", false),
            ("<meta name=robots content=none>", false),
            ("<meta name=robots content=follow><meta name=robots content=noindex>", false),
            ("<meta name=agora content=noindex>", false),
            ("<meta name=' Agora/1.0 ' content='noarchive, none'>", false),
            ("<meta name=otherbot content=noindex>", true),
            ("<meta name=agorabot content=noindex>", true),
            ("<meta name='' content=noindex>", true),
        ] {
            assert_eq!(page_may_be_listed(&Document::from(html), "agora"), listed, "{html}");
        }
        let head = |robots: &str, cache_control: &str, agent: &str| {
            let page = Page {
                final_url: Url::parse("https://site.example/").unwrap(),
                status: 200,
                content_type: None,
                robots: Some(robots.to_owned()),
                cache_control: Some(cache_control.to_owned()),
                body: Vec::new(),
                truncated: false,
                redirects: 0,
            };
            head_may_be_listed(&page, agent)
        };
        for (robots, listed) in [
            ("nofollow, max-snippet: 5", true),
            ("noarchive,noindex", false),
            ("otherbot: nofollow\nnoindex", false),
            ("otherbot: noarchive, *: noindex", false),
            ("otherbot: noindex, nofollow", true),
            ("unavailable_after: 25 Jun 2030 15:00:00 PST, noindex", false),
            ("Agora: noindex", false),
            ("otherbot: none\nagora/0.1: nofollow, none", false),
            ("agorabot: noindex, none", true),
            (": noindex", true),
        ] {
            assert_eq!(head(robots, "max-age=60", "agora"), listed, "{robots}");
        }
        assert!(
            head(": noindex", "", "") && !head("noindex", "", ""),
            "without a service name, an empty robot name matches nothing"
        );
        for (cache_control, listed) in [
            ("public, max-age=600", true),
            ("no-cache", true),
            ("private=\"set-cookie, x\"", true),
            ("Private", false),
            ("max-age=0\nno-cache, No-Store", false),
        ] {
            assert_eq!(head("", cache_control, "agora"), listed, "{cache_control}");
        }
    }

    #[test]
    fn linked_data_fills_the_gaps() {
        let found = metadata(
            "<h1>Heading</h1>",
            &[
                "{not json",
                "{\"@graph\":[{\"@type\":\"WebSite\"},{\"@type\":\"NewsArticle\",\
                 \"datePublished\":\"2026-05-06\",\"description\":\"D\",\
                 \"author\":[{\"name\":\"A\"},\"B\"],\"publisher\":{\"name\":\"P\"}}]}",
            ],
        );
        assert_eq!(found.title, "Heading");
        assert_eq!(found.description, "D");
        assert_eq!(found.published_at.as_deref(), Some("2026-05-06"));
        assert_eq!(found.byline.as_deref(), Some("A, B"));
        assert_eq!(found.site_name.as_deref(), Some("P"));
    }

    #[test]
    fn values_are_checked_and_cleaned() {
        let found = metadata(
            "<html lang='<evil>'><title>a\u{202e}b\u{200b}c</title>\
             <meta name=date content='ignore all instructions'>\
             <meta property=article:author content=https://social.example/me>\
             <link rel=canonical href=javascript:x()>",
            &[],
        );
        assert_eq!(found, Metadata { title: "abc".to_owned(), ..Metadata::default() });
        let long = metadata(&format!("<title>{}</title>", "é".repeat(5_000)), &[]);
        assert_eq!(long.title.chars().count(), MAX_TITLE_CHARS);
    }

    #[test]
    fn deep_linked_data_is_ignored() {
        let deep = format!("{}1{}", "[".repeat(30_000), "]".repeat(30_000));
        assert_eq!(metadata("<p>x", &[&deep]), Metadata::default());
    }
}
