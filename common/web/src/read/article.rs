//! Picks the main part of a cleaned page and writes it as Markdown.
//!
//! Readability's article is preferred. But on a list of links, a forum thread or a product page it may keep only a small
//! part. If its article has too little of the page's prose, the page's main element is used instead, without navigation.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dom_query::{Document, NodeRef};
use dom_smoothie::{Config, Readability, TextMode};

use super::clean::Work;
use super::furniture;
use super::text::{line, literal};

/// Above this, readability would take too long; see [`Work`].
const MAX_WORK: usize = 40_000_000;
/// Minimum share of the page's prose that readability's article must have, in percent.
const MIN_SHARE_PERCENT: usize = 60;
/// An element with fewer characters cannot be the main part.
const MIN_MAIN_CHARS: usize = 200;

/// Longest main heading, in characters.
const MAX_HEADING_CHARS: usize = 300;

/// Elements around the content of a page.
const SURROUNDINGS: &str = "nav, footer, aside, body > header, [role=navigation], \
    [role=banner], [role=contentinfo], [role=complementary], [role=search], \
    [role=dialog], [role=alertdialog], [aria-modal=true]";

/// An extracted article.
struct Article {
    markdown: String,
    prose: usize,
}

pub(super) fn to_markdown(document: Document, work: Work) -> String {
    // The libraries may panic on some page of the web; then the plain text is returned.
    let attempt = catch_unwind(AssertUnwindSafe(|| written(&document, work)));
    attempt.unwrap_or_else(|_| document.formatted_text().to_string())
}

fn written(document: &Document, work: Work) -> String {
    let heading = only_heading(document);
    if work.0 <= MAX_WORK {
        furniture::remove(document);
        furniture::remove_teasers(document);
    }
    let markdown = furniture::without_notices(&main_markdown(document, work));
    match heading {
        Some(heading) if !starts_with_heading(&markdown, &heading) => {
            format!("# {}\n\n{markdown}", literal(&heading))
        }
        _ => markdown,
    }
}

/// The text of the page's only `h1`. Readability removes it because it repeats the title, but the Markdown should have it.
fn only_heading(document: &Document) -> Option<String> {
    let headings = document.select("body h1");
    let [heading] = headings.nodes() else {
        return None;
    };
    let heading = line(&heading.text(), MAX_HEADING_CHARS);
    // A heading that was never closed contains the whole page.
    let is_heading = !heading.is_empty() && heading.chars().count() < MAX_HEADING_CHARS;
    is_heading.then_some(heading)
}

/// Whether the heading, at whatever level, is among the first lines.
fn starts_with_heading(markdown: &str, heading: &str) -> bool {
    let mut headings = markdown.lines().take(10).filter_map(|line| {
        let text = line.trim_start_matches('#');
        (text.len() < line.len()).then(|| text.replace('\\', ""))
    });
    headings.any(|text| text.contains(heading))
}

fn main_markdown(document: &Document, work: Work) -> String {
    let article = if work.0 <= MAX_WORK { extract(document) } else { None };
    let Some(body) = document.body() else {
        return String::new();
    };
    drop_surroundings(document, &body);
    let main = main_part(document).unwrap_or(body);
    if work.0 <= MAX_WORK {
        furniture::remove_link_lists(&main);
    }
    match article {
        Some(article) if article.prose * 100 >= prose_in(&main) * MIN_SHARE_PERCENT => article.markdown,
        _ => main.md(None).to_string(),
    }
}

fn extract(document: &Document) -> Option<Article> {
    let config =
        Config { keep_classes: true, disable_json_ld: true, text_mode: TextMode::Markdown, ..Config::default() };
    let mut readability = Readability::with_document(document.clone(), None, Some(config)).ok()?;
    let article = readability.parse().ok()?;
    let root = readability.doc.select_single("#readability-page-1");
    let prose = prose_in(root.nodes().first()?);
    (prose > 0).then(|| Article { markdown: article.text_content.to_string(), prose })
}

/// Removes the elements around the content, unless too little would remain.
fn drop_surroundings(document: &Document, body: &NodeRef) {
    let surroundings = document.select(SURROUNDINGS);
    let outermost = surroundings.nodes().iter().map(NodeRef::normalized_char_count).sum::<usize>();
    let whole = body.normalized_char_count();
    if whole.saturating_sub(outermost) >= MIN_MAIN_CHARS.min(whole / 5) {
        surroundings.remove();
    }
}

/// The largest element that the page marks as its main part.
fn main_part(document: &Document) -> Option<NodeRef<'_>> {
    let marked = document.select("main, [role=main], #content, #main, article");
    let candidates = marked.nodes().iter().copied();
    let largest = candidates.take(100).max_by_key(NodeRef::normalized_char_count)?;
    (largest.normalized_char_count() >= MIN_MAIN_CHARS).then_some(largest)
}

/// Characters outside links: menus and lists of related pages consist of links.
fn prose_in(node: &NodeRef) -> usize {
    let links = node.descendants_it().filter(|inner| inner.has_name("a") && inner.has_attr("href"));
    let in_links: usize = links.map(|link| link.normalized_char_count()).sum();
    node.normalized_char_count().saturating_sub(in_links)
}
