//! Questions about what is on the page, and outputs to a JSON schema.

use serde_json::{Value, json};

use super::find::Page;
use super::names::likeness;
use super::target::{Kind, Target};
use super::words::{Token, fold, joined, number};
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
    /// The same of each thing of a list.
    Each(super::ask::Each),
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
        let counted = rest.get(1..end).unwrap_or_default();
        let counted = counted.split_last().filter(|(last, _)| last.is(&["there"])).map_or(counted, |(_, front)| front);
        return (!counted.is_empty()).then(|| Question::Count(Target::read(counted)));
    }
    if first.is(&["count"]) {
        return (!rest.is_empty()).then(|| Question::Count(Target::read(rest)));
    }
    if first.is(&["is", "are", "does", "when", "where", "who"]) {
        return None;
    }
    let dull = [
        "me", "what", "is", "the", "us", "out", "back", "down", "are", "a", "an", "and", "value", "current", "my",
        "your", "new", "final", "who",
    ];
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

impl Question {
    /// Names its answer where there are several.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Value { words, of: None } => words.clone(),
            Self::Value { words, of: Some(of) } => format!("{words} of {of}"),
            Self::Count(target) => format!("number of {}", target.said),
            Self::Each(each) => each.attributes.join(", "),
            Self::Title => "title".to_owned(),
            Self::Address => "address".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Rows => "rows".to_owned(),
        }
    }
}

/// Reads one question, or several values in one: "read the order number and the total".
#[must_use]
pub fn read_each(first: &Token, rest: &[Token]) -> Option<Vec<Question>> {
    let one = read(first, rest)?;
    let Question::Value { of: None, .. } = &one else { return Some(vec![one]) };
    let mut lists: Vec<Vec<Token>> = vec![Vec::new()];
    for token in rest {
        let begins = token.is(&["and"]) && !token.quoted;
        if let Some(list) = lists.last_mut().filter(|_| !begins) {
            list.push(token.clone());
        }
        if begins || token.after == Some(',') {
            lists.push(Vec::new());
        }
    }
    lists.retain(|list| !list.is_empty());
    let each: Vec<Question> = lists.iter().filter_map(|list| read(first, list)).collect();
    let are_values = each.len() == lists.len() && each.iter().all(|q| matches!(q, Question::Value { of: None, .. }));
    Some(if are_values { each } else { vec![one] })
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
        Question::Each(each) => super::records::each(page, each),
        Question::Count(target) if names_things(target) => {
            let noun = target.said.rsplit(' ').next().unwrap_or_default();
            if let Some(count) = super::records::told(page, noun) {
                return Some((json!(count), true));
            }
            let (list, sure) = super::records::series(page, &["name"]);
            (!list.is_empty()).then(|| (json!(list.len()), sure && page.next_page().is_none() && !page.view.cut))
        }
        Question::Count(target) => {
            let (found, sure) = page.all(target);
            let drawn = found.iter().any(|f| f.node.look.is_some());
            (!found.is_empty()).then(|| (json!(found.len()), sure && !drawn && !page.view.cut))
        }
        Question::Value { words, of: Some(of) } => of_thing(page, words, of).or_else(|| value(page, words, Some(of))),
        // "By Ada" is no label: its own rule comes first.
        Question::Value { words, of: None } if words == "author" => {
            plain_value(page, words).or_else(|| value(page, words, None))
        }
        Question::Value { words, of: None } => value(page, words, None).or_else(|| plain_value(page, words)),
        Question::Rows => None,
    }
}

/// What stands in the block of a thing of the page.
fn of_thing(page: &Page<'_>, words: &str, of: &str) -> Option<(Value, bool)> {
    let anchors = super::cart::named(page, of);
    let found = anchors.iter().find_map(|at| {
        let end = super::cart::block(page, *at).last().map_or(at + 1, |(last, _)| last + 1);
        super::records::attribute(page, *at, &page.view.nodes[*at..end], words)
    })?;
    Some((json!(found), !super::cart::is_unclear(page, &anchors)))
}

/// Whether things of the page's own are counted, such as results or products: no buttons, links or drawings.
fn names_things(target: &Target) -> bool {
    let drawn = target.colour.is_some() || target.shape.is_some() || target.size.is_some() || target.quoted;
    !drawn && matches!(target.kind, None | Some(Kind::Result | Kind::Item)) && target.near.is_none()
}

/// Words for the same, where a label of the page may say another one than the task.
const SYNONYMS: &[&[&str]] = &[
    &["phone number", "phone", "telephone", "telephone number", "tel", "mobile"],
    &["email", "email address", "e-mail", "e-mail address", "mail"],
    &["price", "cost", "unit price"],
    &["total", "grand total", "order total", "total price", "total amount", "amount due"],
    &["author", "written by"],
    &["opening hours", "hours", "opening times"],
    &["availability", "stock", "status"],
];

/// A value by its label, by another word for it, or by what it looks like.
fn plain_value(page: &Page<'_>, words: &str) -> Option<(Value, bool)> {
    let nodes = &page.view.nodes;
    let same = SYNONYMS.iter().find(|set| set.contains(&words)).copied().unwrap_or_default();
    if let Some(found) = same.iter().filter(|word| **word != words).find_map(|word| value(page, word, None)) {
        return Some(found);
    }
    // A link that calls or writes shows its number or address.
    let scheme = match same.first() {
        Some(&"phone number") => "tel:",
        Some(&"email") => "mailto:",
        _ => {
            let found = super::records::attribute(page, 0, nodes, words)?;
            return Some((json!(found), true));
        }
    };
    let mut links = nodes.iter().filter(|n| n.href.as_deref().is_some_and(|h| h.starts_with(scheme)));
    let first = links.next()?;
    let own = first.href.as_deref().and_then(|h| h.strip_prefix(scheme)).unwrap_or_default();
    let shows = first.name.chars().any(|c| c.is_ascii_digit() || c == '@');
    let text = if shows { first.name.clone() } else { own.to_owned() };
    Some((json!(text), links.all(|n| n.href == first.href)))
}

pub fn value(page: &Page<'_>, words: &str, of: Option<&str>) -> Option<(Value, bool)> {
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
            if (words.contains("price") || words.contains("cost"))
                && let Some(text) = near.clone().find_map(|n| money(n.words()))
            {
                return Some((json!(text), true));
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
        if let Some((score, text)) = found
            && best.as_ref().is_none_or(|(old, _)| *old < score)
        {
            best = Some((score, text));
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

pub fn shown(node: &Node) -> String {
    node.value.clone().filter(|v| !v.is_empty()).unwrap_or_else(|| node.words().to_owned())
}

/// An amount of money in a text.
pub fn money(text: &str) -> Option<String> {
    let start = text.find(['$', '€', '£'])?;
    let end = text[start..]
        .char_indices()
        .skip(1)
        .find(|(_, c)| !(c.is_ascii_digit() || matches!(c, '.' | ',' | ' ')))
        .map_or(text.len(), |(at, _)| start + at);
    let amount = text[start..end].trim().trim_end_matches([',', '.']);
    number(amount).map(|_| amount.to_owned())
}

/// The text beside the label at this place, with how well the label fits: "Price: $3", or the next text on its line or
/// below.
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

#[cfg(test)]
mod tests {
    use super::super::output::fill_schema;
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
            "products": {"type": "array", "items": {"type": "object", "required": ["unit_price"], "properties": {
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
