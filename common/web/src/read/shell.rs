//! Recognises pages that are filled by their scripts.

use dom_query::{Document, NodeRef};

/// Words of the names by which applications call the element that they fill.
const ROOT_WORDS: [&str; 9] = ["app", "content", "gatsby", "main", "mount", "next", "nuxt", "root", "svelte"];
/// Elements with such names that others fill, on any page.
const OTHER_ROOTS: [&str; 1] = ["fb-root"];
/// Elements of which some have such names and are empty on any page, such as targets of links, are none.
const ROOT_ELEMENTS: [&str; 3] = ["div", "main", "section"];
/// Maximum number of such elements looked at; each may hold the whole page.
const MAX_ROOTS: usize = 8;
/// Content other than text. A picture without a description is mostly a logo.
const MEDIA: [&str; 7] = ["audio", "canvas", "embed", "form", "iframe", "object", "video"];
/// What a page consists of that says no more than to wait.
const WAITING_WORDS: [&str; 18] = [
    "a",
    "app",
    "application",
    "are",
    "being",
    "content",
    "initializing",
    "just",
    "loading",
    "moment",
    "page",
    "please",
    "redirected",
    "redirecting",
    "starting",
    "the",
    "wait",
    "you",
];

/// Whether the page has an element for scripts to fill, and nothing in it.
pub(super) fn has_empty_root(document: &Document) -> bool {
    let Some(body) = document.body() else { return false };
    body.descendants_it().filter(is_root).take(MAX_ROOTS).any(|root| is_empty(&root))
}

fn is_root(node: &NodeRef) -> bool {
    let Some(name) = node.node_name() else { return false };
    let id = node.attr("id").unwrap_or_default().to_ascii_lowercase();
    let named = |text: &str| text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| ROOT_WORDS.contains(&word));
    // A name with a dash is one of the page's own elements.
    let is_own = name.contains('-');
    !OTHER_ROOTS.contains(&id.as_str())
        && (is_own && named(&name) || (is_own || ROOT_ELEMENTS.contains(&&*name)) && named(&id))
}

fn is_empty(root: &NodeRef) -> bool {
    for node in root.descendants_it() {
        if node.node_name().is_some_and(|name| MEDIA.contains(&&*name)) {
            return false;
        }
        let text = if node.is_text() { node.text() } else { node.attr("alt").unwrap_or_default() };
        if !says_to_wait(&text) {
            return false;
        }
    }
    true
}

/// Whether a text has no letters, or says only that something is to come.
pub(super) fn says_to_wait(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.all(|word| WAITING_WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Markdown without the addresses of its links and pictures.
pub(super) fn without_addresses(markdown: &str) -> String {
    let mut parts = markdown.split("](");
    let mut words = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        words.push(' ');
        words.push_str(part.split_once(')').map_or("", |(_, after)| after));
    }
    words
}
