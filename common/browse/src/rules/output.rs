//! Outputs to a JSON schema, from labelled values, tables and lists of a page.

use serde_json::{Map, Number, Value, json};

use super::answer::{shown, value};
use super::find::Page;
use super::names::likeness;
use super::words::{akin, fold, number, parts};
use crate::view::Node;

/// The output that a JSON schema asks for, from labelled values and tables of the page. `None` if a required value is
/// missing.
#[must_use]
pub fn fill_schema(page: &Page<'_>, schema: &Value) -> Option<Value> {
    fill(page, schema, "", 0)
}

fn fill(page: &Page<'_>, schema: &Value, name: &str, depth: u32) -> Option<Value> {
    if depth > 4 {
        return None;
    }
    let words = words_of(name);
    match kind(schema) {
        "object" => {
            let members = schema.get("properties")?.as_object()?;
            let required: Vec<&str> = schema
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let mut out = Map::new();
            for (member, kind) in members.iter().take(100) {
                match fill(page, kind, member, depth + 1) {
                    Some(found) => drop(out.insert(member.clone(), found)),
                    None if required.contains(&member.as_str()) => return None,
                    None => {}
                }
            }
            Some(Value::Object(out))
        }
        "array" => rows(page, schema.get("items")?, &words),
        "null" => None,
        kind => {
            let found = match words.as_str() {
                "url" | "page url" | "link" => page.view.url.clone(),
                "page title" => page.view.title.clone(),
                _ => match value(page, &words, None) {
                    Some((Value::String(text), _)) => text,
                    _ if words == "title" || words == "heading" => page
                        .view
                        .nodes
                        .iter()
                        .find(|n| n.role == "heading")
                        .map_or_else(|| page.view.title.clone(), |n| n.name.clone()),
                    _ => return state(page, &words).filter(|_| kind == "boolean"),
                },
            };
            typed(&found, kind)
        }
    }
}

fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|k| *k != "null").unwrap_or("string"),
        _ if schema.get("properties").is_some() => "object",
        _ => "string",
    }
}

/// `unitPrice` and `unit_price` are "unit price".
fn words_of(name: &str) -> String {
    let mut out = String::new();
    let mut low_before = false;
    for c in name.chars() {
        if c.is_uppercase() && low_before {
            out.push(' ');
        }
        low_before = c.is_lowercase();
        out.push(if c.is_alphanumeric() { c } else { ' ' });
    }
    fold(&out)
}

fn typed(text: &str, kind: &str) -> Option<Value> {
    match kind {
        "number" => number(text).and_then(Number::from_f64).map(Value::Number),
        "integer" => {
            let found = number(text).filter(|n| n.fract().abs() < 1e-9 && n.abs() < 9e15)?;
            #[expect(clippy::cast_possible_truncation, reason = "whole and small enough")]
            Some(json!(found as i64))
        }
        "boolean" => match fold(text).as_str() {
            "yes" | "true" | "on" | "in stock" | "available" | "enabled" | "✓" | "checked" => Some(json!(true)),
            "no" | "false" | "off" | "out of stock" | "unavailable" | "disabled" | "✗" | "unchecked" => {
                Some(json!(false))
            }
            _ => None,
        },
        "string" => Some(json!(text)),
        _ => None,
    }
}

/// Whether the box with this name is ticked.
fn state(page: &Page<'_>, words: &str) -> Option<Value> {
    let (_, node, _) =
        page.elements().find(|(_, n, _)| (n.is("checked") || n.is("unchecked")) && likeness(&n.name, words) >= 70)?;
    Some(json!(node.is("checked")))
}

/// Rows of the table whose heads fit best, as objects; or the cells of a column, or the links and texts of a list.
fn rows(page: &Page<'_>, items: &Value, words: &str) -> Option<Value> {
    let nodes = &page.view.nodes;
    let members: Vec<(String, &Value)> = match items.get("properties").and_then(Value::as_object) {
        Some(members) => members.iter().take(50).map(|(name, kind)| (name.clone(), kind)).collect(),
        None => vec![(words.to_owned(), items)],
    };
    let object = items.get("properties").is_some();
    let required: Vec<&str> =
        items.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut tables: Vec<i64> = nodes.iter().filter_map(|n| n.cell).map(|c| c[0]).collect();
    tables.sort_unstable();
    tables.dedup();
    let mut best: (usize, Vec<Value>) = (0, Vec::new());
    for table in tables.into_iter().take(50) {
        let cells: Vec<([i64; 3], &Node)> =
            nodes.iter().filter_map(|n| n.cell.map(|c| (c, n))).filter(|(c, _)| c[0] == table).collect();
        let Some(first) = cells.iter().map(|(c, _)| c[1]).min() else { continue };
        let column = |name: &str| {
            let wanted = words_of(name);
            let single = wanted.strip_suffix('s').unwrap_or(&wanted);
            let fits = |text: &str| {
                likeness(text, &wanted).max(likeness(text, single)) >= 60 || parts(text).iter().any(|p| akin(p, single))
            };
            cells.iter().find(|(c, n)| c[1] == first && fits(n.words())).map(|(c, _)| c[2])
        };
        let columns: Vec<Option<i64>> = members.iter().map(|(name, _)| column(name)).collect();
        let known = columns.iter().flatten().count();
        let lacks = members.iter().zip(&columns).any(|((name, _), c)| c.is_none() && required.contains(&name.as_str()));
        if known == 0 || known <= best.0 || lacks {
            continue;
        }
        let mut lines: Vec<i64> = cells.iter().map(|(c, _)| c[1]).filter(|row| *row != first).collect();
        lines.sort_unstable();
        lines.dedup();
        let mut out = Vec::new();
        for row in lines.into_iter().take(1_000) {
            let mut line = Map::new();
            for ((name, kind_of), column) in members.iter().zip(&columns) {
                let cell = column.and_then(|column| cells.iter().find(|(c, _)| c[1] == row && c[2] == column));
                if let Some(found) = cell.and_then(|(_, n)| typed(&shown(n), kind(kind_of))) {
                    line.insert(name.clone(), found);
                } else if required.contains(&name.as_str()) {
                    return None;
                }
            }
            if object { out.push(Value::Object(line)) } else { out.extend(line.into_iter().map(|(_, v)| v)) }
        }
        best = (known, out);
    }
    if best.0 > 0 {
        return Some(Value::Array(best.1));
    }
    let links = words.contains("link");
    let of = |n: &&Node| if links { n.role == "link" } else { words.contains("heading") && n.role == "heading" };
    let found: Vec<Value> = nodes.iter().filter(of).take(1_000).map(|n| json!(n.name)).collect();
    (!object && !found.is_empty()).then_some(Value::Array(found))
}
