//! Removes everything around the content of a page, recognised by class names and ids of widespread systems: notices,
//! newsletters, comments, lists of other pages, forum controls.
//!
//! Elements that hold the page's main part, or most of its text, are kept: on a page of comments, the comments are the
//! content.

use dom_query::{Document, NodeRef};
use regex_lite::Regex;
use std::sync::LazyLock;

use super::text::line;

/// Class names and ids of elements that are not content. A part between hyphens or underscores also matches.
const WORDS: [&str; 45] = [
    "ad",
    "ads",
    "advert",
    "advertisement",
    "announcementbar",
    "backlinks",
    "breadcrumb",
    "breadcrumbs",
    "catlinks",
    "comments",
    "consent",
    "cookie",
    "cookies",
    "crossselling",
    "disqus",
    "editsection",
    "feedback",
    "gdpr",
    "modal",
    "navbar",
    "navbox",
    "navigation",
    "newsletter",
    "noprint",
    "onetrust",
    "outbrain",
    "overlay",
    "pager",
    "pagination",
    "paywall",
    "popup",
    "promo",
    "recommend",
    "recommendations",
    "recommended",
    "related",
    "share",
    "sharedaddy",
    "sidebar",
    "signature",
    "skip",
    "skiplink",
    "sponsored",
    "taboola",
    "upsell",
];
/// The same, but only a whole name matches.
const NAMES: [&str; 43] = [
    "action-bar",
    "announcement-bar",
    "back2top",
    "colophon",
    "comment-list",
    "cta",
    "footer",
    "masthead",
    "menu",
    "menu-bar",
    "more-stories",
    "mw-jump-link",
    "mw-navigation",
    "nav",
    "nav-links",
    "navigation",
    "navfooter",
    "online-list",
    "page-footer",
    "poll",
    "post-buttons",
    "post-footer",
    "post-likes",
    "post-menu",
    "postprofile",
    "reader-comments",
    "rules",
    "similar-topics",
    "sims",
    "site-footer",
    "site-header",
    "sitenotice",
    "sitesub",
    "skip-link",
    "social",
    "stat-block",
    "subscribe",
    "ticker",
    "toolbar",
    "user-info",
    "votecell",
    "widget",
    "widget-area",
];
/// Characters that must remain on the page.
const MIN_LEFT_CHARS: usize = 200;
/// Maximum number of elements inspected.
const MAX_ELEMENTS: usize = 30_000;
/// Longest notice, in characters.
const MAX_NOTICE_CHARS: usize = 300;

pub(super) fn remove(document: &Document) {
    let Some(body) = document.body() else { return };
    let whole = body.normalized_char_count();
    let least = MIN_LEFT_CHARS.min(whole / 5).max(1);
    // If one `article` holds the content, elements outside it may be removed even if they have more text.
    let articles = document.select("article");
    let article = match articles.nodes() {
        [article] if article.normalized_char_count() >= MIN_LEFT_CHARS => Some(article.id),
        _ => None,
    };
    let mut left = whole;
    let mut waiting = vec![body];
    let mut looked = 0;
    while let Some(node) = waiting.pop() {
        for child in node.element_children() {
            looked += 1;
            if looked > MAX_ELEMENTS {
                return;
            }
            if !is_furniture(&child) || holds_main(&child) {
                waiting.push(child);
                continue;
            }
            let chars = child.normalized_char_count();
            let beside = || article.is_some_and(|article| child.ancestors_it(None).all(|around| around.id != article));
            if (chars * 2 <= left || beside()) && left.saturating_sub(chars) >= least {
                left -= chars;
                child.remove_from_parent();
            } else {
                waiting.push(child);
            }
        }
    }
}

fn is_furniture(node: &NodeRef) -> bool {
    let named = |text: &str| {
        text.split_ascii_whitespace().take(20).any(|name| {
            let name = name.to_ascii_lowercase();
            let mut words = name.split(['-', '_']);
            name.ends_with("-footer") || NAMES.contains(&name.as_str()) || words.any(|word| WORDS.contains(&word))
        })
    };
    ["class", "id"].iter().any(|attribute| node.attr(attribute).is_some_and(|text| named(&text)))
}

/// Whether the element is, or contains, the main part of the page.
fn holds_main(node: &NodeRef) -> bool {
    let is_main = |node: &NodeRef| {
        let tags = ["main", "article", "h1"];
        tags.iter().any(|tag| node.has_name(tag)) || node.attr("role").is_some_and(|role| &*role == "main")
    };
    is_main(node) || node.descendants_it().any(|inner| is_main(&inner))
}

/// Headings of lists of other pages.
static TEASER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\W*(related|similar|more (from|to|stories|articles)|most (read|popular)|you (may|might) (also )?(like|be interested)|recommended|read (also|next)|popular|trending|up next|hot questions|customers also|frequently bought)\b").ok()
});
/// Longest such heading, in characters.
const MAX_TEASER_CHARS: usize = 60;

/// Removes the part under a heading like "Related articles", if it is mostly links.
pub(super) fn remove_teasers(document: &Document) {
    let Some(body) = document.body() else { return };
    let mut left = body.normalized_char_count();
    let headings = document.select("h2, h3, h4, h5, h6, b, strong, .h5");
    for heading in headings.nodes().iter().take(500) {
        let text = line(&heading.text(), MAX_TEASER_CHARS + 1);
        let is_teaser =
            text.chars().count() <= MAX_TEASER_CHARS && TEASER.as_ref().is_some_and(|teaser| teaser.is_match(&text));
        let Some(around) = heading.parent().filter(|_| is_teaser) else { continue };
        let chars = around.normalized_char_count();
        let below = chars.saturating_sub(text.chars().count());
        if below > 0 && linked_chars(&around) * 10 >= below * 7 && chars * 2 <= left && !holds_main(&around) {
            left -= chars;
            around.remove_from_parent();
        }
    }
}

/// Characters inside links.
fn linked_chars(node: &NodeRef) -> usize {
    let links = node.descendants_it().filter(|inner| inner.has_name("a") && inner.has_attr("href"));
    links.map(|link| link.normalized_char_count()).sum()
}

/// Removes lists that are nearly only links (menus without a telling class name), if together they hold less than half of
/// the text.
pub(super) fn remove_link_lists(main: &NodeRef) {
    let whole = main.normalized_char_count();
    let lists = main.descendants_it().filter(|node| node.has_name("ul") || node.has_name("ol") || node.has_name("nav"));
    let lists: Vec<(NodeRef, usize)> = lists
        .take(500)
        .filter_map(|list| {
            let chars = list.normalized_char_count();
            let links = list.descendants_it().filter(|inner| inner.has_name("a") && inner.has_attr("href"));
            let (count, linked) =
                links.fold((0, 0), |(count, chars), link| (count + 1, chars + link.normalized_char_count()));
            (count >= 3 && linked * 10 >= chars * 9).then_some((list, chars))
        })
        .collect();
    let all: usize = lists.iter().map(|(_, chars)| chars).sum();
    if all * 2 < whole && whole - all >= MIN_LEFT_CHARS.min(whole / 5) {
        lists.iter().for_each(|(list, _)| list.remove_from_parent());
    }
}

/// Texts of cookie, copyright and newsletter notices, in several languages.
static NOTICE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let cookies = r"\b(we|our|this site|this website|you agree|wir|diese|nous|vos|notre|este sitio|utilizamos|questo sito|ta strona|χρησιμοποιούμε)\b.{0,120}\bcookies?\b";
    let rights = r"all rights reserved|^\W*(©|\(c\)|copyright \d)";
    let letters = r"\b(sign up (for|to)|subscribe (to|and)|join) (our|the|my)\b.{0,60}\b(newsletter|briefing|emails?|updates|mailing list)\b";
    Regex::new(&format!("(?i)({cookies})|({rights})|({letters})")).ok()
});

/// Links to legal pages, typical of the last line of a page.
static LEGAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(privacy (statement|policy|notice)|terms (of (use|service|business)|and conditions)|conditions of use)\b").ok()
});
const MAX_LEGAL_CHARS: usize = 120;

/// Removes notices at the beginning and at the end.
pub(super) fn without_notices(markdown: &str) -> String {
    let is_notice = |block: &str| {
        let text = line(block, MAX_NOTICE_CHARS + 1);
        text.chars().count() <= MAX_NOTICE_CHARS && NOTICE.as_ref().is_some_and(|notice| notice.is_match(&text))
    };
    let blocks: Vec<&str> = markdown.split("\n\n").collect();
    let last = blocks.len();
    // On a page this short the notice may be the content.
    if last < 4 {
        return markdown.to_owned();
    }
    let at_edge = |index: usize| index < 3 || index + 3 >= last;
    let is_legal = |block: &str| {
        let text = line(block, MAX_LEGAL_CHARS + 1);
        text.chars().count() <= MAX_LEGAL_CHARS && LEGAL.as_ref().is_some_and(|legal| legal.is_match(&text))
    };
    // A page about terms or privacy has such links at the top too. There, the last line is kept.
    let legal_end = is_legal(blocks[last - 1]) && !blocks[..2].iter().any(|block| is_legal(block));
    let goes = |index: usize, block: &str| (at_edge(index) && is_notice(block)) || (legal_end && index + 1 == last);
    let kept = blocks.iter().enumerate().filter(|(index, block)| !goes(*index, block));
    kept.map(|(_, block)| *block).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_of(html: &str) -> String {
        let document = Document::from(html);
        remove(&document);
        document.body().map(|body| body.text().to_string()).unwrap_or_default()
    }

    #[test]
    fn surroundings_are_removed_unless_they_are_the_content() {
        let text = "A long text about the tides. ".repeat(20);
        let left = left_of(&format!(
            "<body class='has-sidebar'><div class='page with-comments'><h1>T</h1><div class=elementor-widget-text>shown</div>{text}</div>\
             <div class='wp-block-comments'>grumble</div><div id=onetrust-banner-sdk>cookies</div><div class=post-footer>by me</div>"
        ));
        assert!(
            left.contains("A long text")
                && !left.contains("grumble")
                && !left.contains("cookies")
                && !left.contains("by me"),
            "{left}"
        );
        let only_comments = format!("<body><div id=comments>{text}</div><p>x");
        assert!(left_of(&only_comments).contains("A long text"));
    }

    #[test]
    fn notices_are_removed_only_at_the_edges() {
        let page = "# T\n\nFirst.\n\nWe and our partners store cookies here.\n\nIn the middle we bake cookies.\n\nMore.\n\nMore.\n\nMore.\n\n© 2026 All rights reserved.";
        let left = without_notices(page);
        assert!(
            !left.contains("store cookies") && !left.contains("2026") && left.contains("we bake cookies"),
            "{left}"
        );
        assert_eq!(without_notices("We use cookies.\n\nMuch."), "We use cookies.\n\nMuch.");
    }
}
