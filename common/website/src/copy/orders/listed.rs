//! What orders list: topics, and what visitors do.

use super::Orders;
use super::subject::{SHOWING, owned};
use crate::copy::text;

/// Before a list of what visitors do.
#[rustfmt::skip]
const DEEDS: &[&str] = &[
    "users should also be able to ", "users should be able to ", "visitors should be able to ",
    "players should be able to ", "customers should be able to ", "users can ", "players can ", "visitors can ",
    "allow users to ", "allows users to ", "allowing users to ", "functionality to ", "functions to ",
];
/// Before a list of nouns.
#[rustfmt::skip]
const TOPICS: &[&str] = &[
    "functionalities for ", "functionalities such as ", "functionality for ", "functions for ", "functions such as ",
    "features such as ", "features like ", "features for ", "capabilities for ", "pages for ", "pages, including ",
    "including ", "such as ", "section for ", "section about ", "sections for ", "that shows its ", "that shows our ",
    "showing our ", "lists our ", "show our ", "showcase its ", "showcases its ", "introduction to ",
    "should include ", "should also include ", "sections on ", "information about ",
];

/// Sections that any site may have.
#[rustfmt::skip]
const SECTIONS: &[&str] = &[
    "about us", "about", "services", "products", "menu", "menus", "faq", "faqs", "testimonials", "gallery", "team",
    "our team", "pricing", "prices", "opening hours", "news", "events", "collections", "projects", "works", "courses",
    "reviews",
];

/// Adds what an order lists.
pub fn listed(order: &str, found: &mut Orders) {
    // Offsets of the lower case have to hold in the order.
    let lower = order.to_ascii_lowercase();
    let deed = DEEDS.iter().filter_map(|mark| lower.find(mark).map(|at| at + mark.len())).min();
    let topic = TOPICS.iter().filter_map(|mark| lower.find(mark).map(|at| at + mark.len())).min();
    let (start, deeds) = match (deed, topic) {
        (Some(deed), Some(topic)) if topic < deed => (topic, false),
        (Some(deed), _) => (deed, true),
        (None, Some(topic)) => (topic, false),
        (None, None) => return,
    };
    let list = &order[start..];
    let end = [
        ", allowing",
        ", each",
        " where ",
        " based on ",
        " so that ",
        " to help ",
        " through ",
        ": ",
        "; ",
        " when ",
        " as well as ",
    ];
    let end = end.iter().filter_map(|mark| list.find(mark)).min().unwrap_or(list.len());
    let list = list[..end].trim_end_matches(['.', '!', ' ']);
    for part in if deeds { deeds_of(list) } else { parts(list) } {
        let plain = part.trim().trim_start_matches("the ").trim_start_matches("our ").to_lowercase();
        if SECTIONS.contains(&plain.as_str()) {
            let name = text::capital(&plain);
            if !found.sections.contains(&name) {
                found.sections.push(name);
            }
        } else if let Some(item) = topic_of(part, deeds) {
            if deeds { &mut found.deeds } else { &mut found.topics }.push(item);
        }
    }
}

/// What visitors do, part by part. "move up, down, or left" is one deed.
fn deeds_of(list: &str) -> Vec<&str> {
    let mut deeds: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    let mut glued = false;
    if !list.contains(", ") {
        // "submit insights and evidence" is one deed, "discuss topics and share thoughts" are two.
        return match list.split_once(" and ") {
            Some((first, second)) if first.contains(' ') && second.contains(' ') => vec![first, second],
            _ => vec![list],
        };
    }
    for part in list.split(", ") {
        let end = at + part.len();
        at = end + 2;
        let bare = part.trim_start_matches("and ").trim_start_matches("or ");
        let joined = bare.len() < part.len();
        glued = !bare.contains(' ') && !deeds.is_empty() || glued && joined;
        match deeds.last_mut() {
            Some(last) if glued => last.1 = end,
            _ => deeds.push((end - bare.len(), end)),
        }
    }
    deeds.into_iter().map(|(start, end)| &list[start..end]).collect()
}

/// The parts of "a, b, and c" or "a and b".
fn parts(list: &str) -> Vec<&str> {
    let parts: Vec<&str> = list
        .split(", ")
        .map(|part| part.strip_prefix("and ").or_else(|| part.strip_prefix("or ")).unwrap_or(part))
        .collect();
    if parts.len() == 1 { list.split(" and ").collect() } else { parts }
}

/// A part as a title, unless it speaks of the site or says nothing.
fn topic_of(part: &str, deed: bool) -> Option<String> {
    let mut item = part.trim();
    let mut stripped = true;
    while stripped {
        stripped = false;
        // "the company's history": whose it is, the site says.
        if let Some((_, rest)) =
            item.split_once(' ').filter(|(owner, _)| !deed && (owner.ends_with("'s") || owner.ends_with("’s")))
        {
            item = rest;
            stripped = true;
        }
        for start in [
            "own ",
            "the ",
            "a ",
            "an ",
            "its ",
            "our ",
            "their ",
            "also ",
            "then ",
            "and ",
            "various ",
            "detailed ",
            "basic ",
            "easily ",
            "different ",
        ] {
            if let Some(rest) = item.strip_prefix(start) {
                item = rest;
                stripped = true;
            }
        }
        if let Some(gerund) = item.split(' ').next().filter(|first| {
            SHOWING.contains(first) || !deed && matches!(*first, "browsing" | "viewing" | "view" | "browse")
        }) {
            item = item[gerund.len()..].trim_start();
            stripped = true;
        }
    }
    // To the reader, the visitors' things are yours.
    let yours = item.replace(" their own ", " your ").replace(" their ", " your ");
    let item = if deed { yours.as_str() } else { item };
    let lower = item.to_lowercase();
    let deed_of_nobody = deed && !item.contains(' ');
    let no = EMPTY.contains(&lower.as_str())
        || VAGUE.iter().any(|start| lower.starts_with(start)) && !lower.contains(" data")
        || owned(&lower)
        || deed_of_nobody
        || OF_SITE.iter().any(|word| lower.contains(word));
    let words = item.split(' ').count();
    (!no && (1..=if deed { 10 } else { 7 }).contains(&words) && item.chars().count() >= 4).then(|| text::capital(item))
}

/// Items that say nothing.
#[rustfmt::skip]
const EMPTY: &[&str] = &[
    "more", "etc", "etc.", "homepage", "home", "home page", "information", "users", "content", "contact",
    "contact us", "about us", "about", "learn more", "other features", "other information",
];

/// Beginnings of items that say nothing.
#[rustfmt::skip]
const VAGUE: &[&str] = &[
    "learn about", "understand", "learn more", "contact", "browse", "get to know", "find out", "get help",
    "reach out", "find the information", "including ", "provide ", "offer ", "such as ",
];

/// Words of items about the site.
#[rustfmt::skip]
const OF_SITE: &[&str] = &[
    "website", "page", " site", "user", "button", "carousel", "background", "section", "layout", "the form",
    "and so on", "menu to",
];
