//! Questions about what is on the page, and outputs to a JSON schema.

use serde_json::{Map, Number, Value, json};

use super::find::{Page, likeness};
use super::target::Target;
use super::words::{Token, akin, fold, joined, number, parts};
use crate::view::Node;

/// What is asked of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// The value beside a label, or the text under a heading: "What is the price of X?"
    Value {
        words: String,
        of: Option<String>,
    },
    Count(Target),
    /// "the title of the page", "the address".
    Title,
    Address,
    /// "the text of the page".
    Text,
    /// What the output schema asks for: "extract the products".
    Rows,
}

/// Reads a question; `None` if it is none about what is on the page.
#[must_use]
pub fn read(first: &Token, rest: &[Token]) -> Option<Question> {
    if first.is(&["how"]) {
        if !rest.first().is_some_and(|t| t.is(&["many"])) {
            // "how much is X": its price
            let much = rest.first().is_some_and(|t| t.is(&["much"]));
            let words: Vec<Token> =
                rest.iter().skip(1).filter(|t| !t.is(&["is", "does", "the", "cost", "a"])).cloned().collect();
            return (much && !words.is_empty())
                .then(|| Question::Value { words: "price".to_owned(), of: Some(fold(&joined(&words))) });
        }
        let end = rest.iter().position(|t| t.is(&["are", "is", "does", "do", "on", "in"])).unwrap_or(rest.len());
        return (end > 1).then(|| Question::Count(Target::read(&rest[1..end])));
    }
    if first.is(&["count"]) {
        return (!rest.is_empty()).then(|| Question::Count(Target::read(rest)));
    }
    if first.is(&["is", "are", "does", "when", "where", "who"]) {
        return None;
    }
    let dull = ["me", "what", "is", "the", "us", "out", "back", "down", "are", "a", "an", "and", "value", "current"];
    let start = rest.iter().take_while(|t| t.is(&dull)).count();
    let rest = &rest[start..];
    let all = fold(&joined(rest));
    let says = |text: &str| all == text || all.starts_with(&format!("{text} "));
    match all.as_str() {
        "" => return None,
        "title" | "page title" | "title of the page" => return Some(Question::Title),
        "url" | "address" | "url of the page" | "address of the page" => return Some(Question::Address),
        "page" | "text" | "text of the page" | "content" | "content of the page" | "page's text" => {
            return Some(Question::Text);
        }
        _ => {}
    }
    if says("all") || says("every") || first.is(&["extract", "list"]) {
        return Some(Question::Rows);
    }
    let at = rest.iter().position(|t| t.is(&["of", "for"])).filter(|at| *at > 0 && at + 1 < rest.len());
    let (words, of) = at.map_or((rest, None), |at| (&rest[..at], Some(&rest[at + 1..])));
    let of =
        of.map(|of| of.iter().filter(|t| !t.is(&["the", "a", "this", "page", "product"])).cloned().collect::<Vec<_>>());
    let of = of.map(|of| fold(&joined(&of))).filter(|of| !of.is_empty());
    Some(Question::Value { words: fold(&joined(words)), of })
}

/// What the page says; `None` if it does not say it. The flag tells whether the answer leaves no doubt.
#[must_use]
pub fn answer(page: &Page<'_>, question: &Question) -> Option<(Value, bool)> {
    match question {
        Question::Title => Some((json!(page.view.title), true)),
        Question::Address => Some((json!(page.view.url), true)),
        Question::Text => {
            let texts: Vec<&str> = page.view.nodes.iter().map(Node::words).filter(|t| !t.is_empty()).collect();
            Some((json!(texts.join("\n")), !page.view.cut))
        }
        Question::Count(target) => {
            let (found, sure) = page.all(target);
            let drawn = found.iter().any(|f| f.node.look.is_some());
            (!found.is_empty()).then(|| (json!(found.len()), sure && !drawn && !page.view.cut))
        }
        Question::Value { words, of } => value(page, words, of.as_deref()),
        Question::Rows => None,
    }
}

fn value(page: &Page<'_>, words: &str, of: Option<&str>) -> Option<(Value, bool)> {
    let nodes = &page.view.nodes;
    if let Some(of) = of {
        // A column of a table, in the row of what is asked for.
        for at in page.mentions(of) {
            let Some([table, row, _]) = nodes[at].cell else { continue };
            let head = nodes
                .iter()
                .find(|n| n.cell.is_some_and(|c| c[0] == table && c[1] < row) && likeness(n.words(), words) >= 60);
            let column = head.and_then(|n| n.cell).map(|c| c[2]);
            let cell = column.and_then(|column| nodes.iter().find(|n| n.cell == Some([table, row, column])));
            if let Some(cell) = cell {
                return Some((json!(shown(cell)), true));
            }
        }
        // "price of X": the first amount after X; else a label after X.
        for at in page.mentions(of) {
            let near = nodes[at..].iter().take(12);
            if words.contains("price") || words.contains("cost") {
                if let Some(text) = near.clone().find_map(|n| money(n.words())) {
                    return Some((json!(text), true));
                }
            }
            for (n, node) in near.enumerate() {
                if let Some(found) = beside(page, at + n, words).filter(|_| likeness(node.words(), words) >= 45) {
                    return Some((json!(found), true));
                }
            }
        }
    }
    let mut best: Option<(u32, String)> = None;
    for (at, node) in nodes.iter().enumerate() {
        let field = node
            .value
            .as_ref()
            .filter(|v| !v.is_empty())
            .map(|v| (likeness(&node.name, words).max(likeness(page.label(at), words)), v.clone()));
        let found = field.filter(|(score, _)| *score >= 60).or_else(|| beside(page, at, words));
        if let Some((score, text)) = found {
            if best.as_ref().is_none_or(|(old, _)| *old < score) {
                best = Some((score, text));
            }
        }
    }
    if best.is_none() && (words.contains("price") || words.contains("cost")) {
        let amounts: Vec<String> = nodes.iter().filter_map(|n| money(n.words())).collect();
        if let [one] = amounts.as_slice() {
            return Some((json!(one), true));
        }
    }
    if best.is_none() && (words.contains("heading") || words.contains("headline")) {
        let head = nodes.iter().find(|n| n.role == "heading")?;
        return Some((json!(head.name), true));
    }
    best.map(|(score, text)| (json!(text), score >= 60 && of.is_none()))
}

fn shown(node: &Node) -> String {
    node.value.clone().filter(|v| !v.is_empty()).unwrap_or_else(|| node.words().to_owned())
}

/// An amount of money in a text.
fn money(text: &str) -> Option<String> {
    let start = text.find(['$', '€', '£'])?;
    let end = text[start..]
        .char_indices()
        .skip(1)
        .find(|(_, c)| !(c.is_ascii_digit() || matches!(c, '.' | ',' | ' ')))
        .map_or(text.len(), |(at, _)| start + at);
    let amount = text[start..end].trim().trim_end_matches([',', '.']);
    number(amount).map(|_| amount.to_owned())
}

/// The text beside the label at this place, with how well the label fits: "Price: $3", or the next text on its line or below.
pub fn beside(page: &Page<'_>, at: usize, words: &str) -> Option<(u32, String)> {
    let nodes = &page.view.nodes;
    let text = nodes[at].words();
    if let Some((label, rest)) = text.split_once(':') {
        let score = likeness(label, words);
        if score >= 60 && !rest.trim().is_empty() {
            return Some((score, rest.trim().to_owned()));
        }
    }
    let score = likeness(text, words);
    if score < 60 {
        return None;
    }
    let next = nodes.get(at + 1)?;
    let (a, b) = (&nodes[at], next);
    if b.takes_text() || b.role == "button" || b.role == "heading" {
        return None;
    }
    let cells = matches!((a.cell, b.cell), (Some(x), Some(y)) if x[0] == y[0] && x[1] == y[1]);
    let line = a.bounds[1] < b.bottom() && b.bounds[1] < a.bottom();
    let below = b.bounds[1] >= a.bottom() - 2 && b.bounds[1] - a.bottom() < 24;
    let both_free = a.cell.is_none() && b.cell.is_none();
    (cells || (both_free && (line || below || text.ends_with(':'))))
        .then(|| (score, shown(b)))
        .filter(|(_, t)| !t.is_empty())
}

/// The output that a JSON schema asks for, from labelled values and tables of the page. `None` if a required value is missing.
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

#[cfg(test)]
mod tests {
    use super::super::words::tokens;
    use super::*;
    use crate::view::View;

    fn product() -> View {
        let cell = |text: &str, row: i64, column: i64| json!({"text": text, "cell": [1, row, column], "box": [column * 100, row * 20, 90, 18]});
        serde_json::from_value(json!({"title": "Lamp", "url": "https://shop.example/lamp", "nodes": [
            cell("Product", 0, 0), cell("Unit price", 0, 1), cell("In stock", 0, 2),
            cell("Desk lamp", 1, 0), cell("$1,299.50", 1, 1), cell("yes", 1, 2),
            cell("Floor lamp", 2, 0), cell("$80", 2, 1), cell("no", 2, 2),
            {"text": "Order number: 4711", "box": [0, 100, 200, 18]},
            {"text": "Delivery", "box": [0, 120, 80, 18]},
            {"text": "3 days", "box": [100, 120, 80, 18]},
        ]}))
        .expect("a view")
    }

    #[test]
    fn questions_are_answered_from_labels_and_tables() {
        let view = product();
        let page = Page::new(&view);
        for (text, said) in [
            ("What is the unit price of Floor lamp?", json!("$80")),
            ("Read the order number", json!("4711")),
            ("What is the delivery?", json!("3 days")),
        ] {
            let words = tokens(text);
            let question = read(&words[0], &words[1..]).expect("a question");
            assert_eq!(answer(&page, &question).map(|a| a.0), Some(said), "{text}");
        }
        let words = tokens("What is the weight?");
        assert_eq!(answer(&page, &read(&words[0], &words[1..]).expect("a question")), None);
    }

    #[test]
    fn outputs_follow_their_schema_or_are_missing() {
        let view = product();
        let page = Page::new(&view);
        let schema = json!({"type": "object", "required": ["orderNumber", "products"], "properties": {
            "orderNumber": {"type": "integer"},
            "products": {"type": "array", "items": {"type": "object", "required": ["product", "unit_price"], "properties": {
                "product": {"type": "string"}, "unit_price": {"type": "number"}, "in_stock": {"type": "boolean"},
            }}},
        }});
        let expected = json!({"orderNumber": 4711, "products": [
            {"product": "Desk lamp", "unit_price": 1299.5, "in_stock": true},
            {"product": "Floor lamp", "unit_price": 80.0, "in_stock": false},
        ]});
        assert_eq!(fill_schema(&page, &schema), Some(expected));
        let lacking = json!({"type": "object", "required": ["weight"], "properties": {"weight": {"type": "number"}}});
        assert_eq!(fill_schema(&page, &lacking), None);
    }
}
