//! Things that a page repeats: products, books, articles, each with its heading or link and what stands below it.

use serde_json::{Map, Value, json};

use super::answer::{beside, money};
use super::ask::Each;
use super::dates::Date;
use super::find::Page;
use super::words::{fold, number, parts};
use crate::view::Node;

/// Things of one answer.
const MOST: usize = 500;
/// What pages say about whether a thing can be had.
const STOCK: &[&str] = &[
    "in stock",
    "out of stock",
    "available",
    "unavailable",
    "sold out",
    "left in stock",
    "back-order",
    "on order",
    "ships",
];
/// Words that ask for the heading itself.
const NAMES: &[&str] = &["name", "title", "headline", "heading", "product", "item", "article"];

/// A thing: where its heading or link is, and where the next thing starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub start: usize,
    pub end: usize,
}

/// What is asked of each thing; the flag tells whether the page leaves no doubt.
#[must_use]
pub fn each(page: &Page<'_>, each: &Each) -> Option<(Value, bool)> {
    if let Some(rows) = rows(page, each) {
        return Some((rows, page.next_page().is_none() && !page.view.cut));
    }
    let wanted: Vec<&str> = each.attributes.iter().map(String::as_str).collect();
    let (list, clear) = series(page, &wanted);
    if list.len() < each.first.unwrap_or(1) {
        return None;
    }
    let most = each.first.unwrap_or(MOST).min(MOST);
    let mut sure = clear && list.iter().take(most).all(|r| wanted.iter().all(|name| of(page, *r, name).is_some()));
    // The pages behind this one hold things too.
    sure &= each.first.is_some() || (page.next_page().is_none() && !page.view.cut);
    let one = |record: &Record| match wanted.as_slice() {
        [only] => json!(of(page, *record, only)),
        several => {
            let pairs = several.iter().map(|name| ((*name).to_owned(), json!(of(page, *record, name))));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
    };
    let out: Vec<Value> = list.iter().take(most).map(one).collect();
    match out.as_slice() {
        [only] if each.single => Some((only.clone(), sure)),
        _ => Some((Value::Array(out), sure)),
    }
}

/// The rows of a table with these heads.
fn rows(page: &Page<'_>, each: &Each) -> Option<Value> {
    let members: Map<String, Value> =
        each.attributes.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect();
    let schema = json!({"type": "array", "items": {
        "type": "object", "properties": members, "required": each.attributes,
    }});
    let Value::Array(mut list) = super::output::fill_schema(page, &schema)? else { return None };
    if list.is_empty() || list.len() < each.first.unwrap_or(1) {
        return None;
    }
    list.truncate(each.first.unwrap_or(MOST));
    if let [only] = each.attributes.as_slice() {
        list = list.iter().map(|row| row[only].clone()).collect();
    }
    if each.single { list.into_iter().next() } else { Some(Value::Array(list)) }
}

/// The things of a page that have what is asked, and whether no other list could be meant.
#[must_use]
pub fn series(page: &Page<'_>, wanted: &[&str]) -> (Vec<Record>, bool) {
    let nodes = &page.view.nodes;
    let mut candidates: Vec<Vec<Record>> = (2..=6)
        .map(|level| {
            split(
                page,
                |n| n.role == "heading" && n.level == Some(level),
                |n| n.role == "heading" && n.level.is_some_and(|l| l < level),
            )
        })
        .collect();
    let heads = nodes
        .iter()
        .filter_map(|n| n.id.as_deref().filter(|_| n.role == "heading"))
        .collect::<std::collections::HashSet<_>>();
    let in_head = |n: &Node| n.inside.as_deref().is_some_and(|id| heads.contains(id));
    candidates.push(split(
        page,
        |n| n.role == "link" && !in_head(n) && n.name.chars().any(char::is_alphabetic),
        |n| n.role == "heading",
    ));
    // A thing has what is asked of it; a name alone is not enough for a link to be one.
    let others: Vec<&str> = wanted.iter().copied().filter(|name| !NAMES.contains(name)).collect();
    let full = |list: &Vec<Record>, at: usize| -> Vec<Record> {
        let needs = if at == 5 || !others.is_empty() { 1 } else { 0 };
        let has = |r: &Record| {
            let known = others.iter().filter(|name| of(page, *r, name).is_some()).count();
            if others.is_empty() { needs == 0 || of(page, *r, "price").is_some() } else { known >= needs }
        };
        list.iter().copied().filter(has).collect()
    };
    let lists: Vec<Vec<Record>> = candidates.iter().enumerate().map(|(at, list)| full(list, at)).collect();
    // Things with a price are meant before headings without one.
    let priced = |list: &Vec<Record>| list.iter().filter(|r| of(page, **r, "price").is_some()).count();
    let best = (0..lists.len())
        .rev()
        .filter(|at| lists[*at].len() > 1)
        .max_by_key(|at| (priced(&lists[*at]), lists[*at].len()));
    let Some(best) = best else {
        // A list of one thing looks like no list.
        let only = lists.iter().take(5).find(|list| list.len() == 1).cloned();
        return (only.unwrap_or_default(), false);
    };
    let rivals = (0..lists.len()).filter(|at| *at != best && lists[*at].len() > 1 && *at < 5).count();
    (lists[best].clone(), rivals == 0 || priced(&lists[best]) > 1)
}

fn split(page: &Page<'_>, starts: impl Fn(&Node) -> bool, ends: impl Fn(&Node) -> bool) -> Vec<Record> {
    let mut out: Vec<Record> = Vec::new();
    let mut open = false;
    for (at, node) in page.view.nodes.iter().enumerate() {
        let begins = starts(node);
        if open && (begins || ends(node)) {
            if let Some(last) = out.last_mut() {
                last.end = at;
            }
            open = false;
        }
        if begins {
            out.push(Record { start: at, end: page.view.nodes.len() });
            open = true;
        }
    }
    out
}

/// A value of a thing.
#[must_use]
pub fn of(page: &Page<'_>, record: Record, wanted: &str) -> Option<String> {
    let nodes = page.view.nodes.get(record.start..record.end)?;
    let head = nodes.first()?;
    if NAMES.contains(&wanted) {
        return Some(head.words().to_owned()).filter(|t| !t.is_empty());
    }
    attribute(page, record.start, nodes, wanted)
}

/// What these nodes say for a word such as "price" or "author".
#[must_use]
pub fn attribute(page: &Page<'_>, start: usize, nodes: &[Node], wanted: &str) -> Option<String> {
    let texts = || nodes.iter().map(Node::words).filter(|t| !t.is_empty() && t.len() < 200);
    match wanted {
        "price" | "cost" => texts().find_map(money),
        "link" | "url" => nodes.iter().find_map(|n| n.href.clone()),
        "availability" | "stock" | "status" => {
            texts().find(|t| STOCK.iter().any(|word| fold(t).contains(word)) && t.len() < 60).map(str::to_owned)
        }
        "author" => texts().find_map(author),
        "rating" => texts()
            .find(|t| {
                let low = t.to_lowercase();
                number(t).is_some()
                    && (low.contains("star") || low.contains("out of 5") || low.contains("/ 5") || low.contains("/5"))
                    || t.contains('★')
            })
            .map(str::to_owned),
        "date" => texts().find(|t| t.len() < 30 && Date::read(t).is_some()).map(str::to_owned),
        _ => None,
    }
    .or_else(|| (start..start + nodes.len()).find_map(|at| beside(page, at, wanted)).map(|(_, text)| text))
}

/// The name in "By Ada Lovelace".
fn author(text: &str) -> Option<String> {
    let low = text.to_lowercase();
    let start =
        ["by ", "written by ", "author: "].iter().filter_map(|by| low.starts_with(by).then_some(by.len())).max()?;
    let name = text.get(start..)?.split([',', '·', '|', '•']).next()?.split(" on ").next()?.trim();
    (!name.is_empty() && parts(name).len() < 6).then(|| name.to_owned())
}

/// The number of things that the page tells: "48 results", "Results: 48".
#[must_use]
pub fn told(page: &Page<'_>, noun: &str) -> Option<usize> {
    let single = |word: &str| word.strip_suffix('s').unwrap_or(word).to_owned();
    let mut nouns = vec![single(noun)];
    if ["result", "item", "product", "match"].contains(&nouns[0].as_str()) {
        nouns.extend(["result", "item", "product", "match", "matche"].map(str::to_owned));
    }
    let mut found: Vec<usize> = Vec::new();
    for node in page.view.nodes.iter().filter(|n| n.text.is_some() || n.role == "heading") {
        let text = node.words();
        if text.len() > 120 {
            continue;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let is_noun = |word: &str| nouns.contains(&single(&fold(word.trim_matches(|c: char| !c.is_alphanumeric()))));
        for (at, pair) in words.windows(2).enumerate() {
            let whole = |word: &str| {
                let digits = word.trim_matches(|c: char| matches!(c, '(' | ')' | ',' | '.' | ':'));
                digits.starts_with(|c: char| c.is_ascii_digit()).then(|| number(digits)).flatten()
            };
            let behind = at + 2 == words.len() && (pair[0].ends_with(':') || pair[1].starts_with('('));
            let value = if is_noun(pair[1]) {
                whole(pair[0])
            } else if is_noun(pair[0]) && behind {
                whole(pair[1])
            } else {
                None
            };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "bounded, and a cast saturates"
            )]
            found.extend(value.filter(|n| n.fract().abs() < 1e-9 && *n >= 0.0 && *n < 1e9).map(|n| n as usize));
        }
    }
    found.dedup();
    (found.len() == 1).then(|| found[0])
}
