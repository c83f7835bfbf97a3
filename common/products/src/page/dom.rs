//! Microdata and RDFa: items in the tags of a page.

use std::cell::Cell;
use std::collections::HashMap;

use dom_query::{Document, NodeId, NodeRef};
use html5ever::driver::Parser;
use html5ever::interface::Tracer;
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, parse_document};

use super::items::{Items, MAX_TEXT_BYTES, Syntax, Value};

/// Most open elements, and most nodes of the tree; the rest of the page is dropped. The parser searches all open elements.
const MAX_OPEN: usize = 512;
const MAX_NODES: usize = 150_000;
/// Bytes fed at once. Small, because three bytes of markup can add [`MAX_OPEN`] nodes.
const PIECE_BYTES: usize = 256;
/// Most nodes visited for the texts of properties and for `itemref`, over the whole page.
const MAX_VISITS: usize = 500_000;
/// Most parts of a property's list of names.
const MAX_NAMES: usize = 8;

pub(super) fn parse(markup: &str) -> Document {
    let options = ParseOpts {
        tree_builder: TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() },
        ..ParseOpts::default()
    };
    let mut parser = parse_document(Document::default(), options);
    let mut rest = markup;
    while !rest.is_empty() && !is_full(&parser) {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE_BYTES));
        parser.process(StrTendril::from_slice(piece));
        // Errors are not used; there may be one per tag.
        parser.tokenizer.sink.sink.errors.borrow_mut().clear();
        rest = after;
    }
    parser.finish()
}

fn is_full(parser: &Parser<Document>) -> bool {
    let builder = &parser.tokenizer.sink;
    let open = OpenElements(Cell::new(0));
    builder.trace_handles(&open);
    builder.sink.tree.len() > MAX_NODES || open.0.get() > MAX_OPEN
}

/// Counts the open elements and the formatting elements to be reopened.
struct OpenElements(Cell<usize>);

impl Tracer for OpenElements {
    type Handle = NodeId;

    fn trace_handle(&self, _: &NodeId) {
        self.0.set(self.0.get() + 1);
    }
}

/// Adds all items of the tree.
pub(super) fn read(document: &Document, items: &mut Items) {
    let mut reader = Reader { items, visits: 0, of_node: HashMap::new(), references: Vec::new() };
    reader.walk(document.root(), Scope::default());
    let by_id = match reader.references.is_empty() {
        true => HashMap::new(),
        false => elements_by_id(document),
    };
    // An element that is referred to may refer to others; those references are not followed.
    for (item, ids) in std::mem::take(&mut reader.references) {
        for node in ids.split_ascii_whitespace().take(MAX_NAMES).filter_map(|id| by_id.get(id)) {
            let scope = Scope { microdata: Some(item), ..Scope::default() };
            reader.referred(node, scope);
        }
    }
}

fn elements_by_id(document: &Document) -> HashMap<String, NodeRef<'_>> {
    let mut by_id = HashMap::new();
    for node in document.root().descendants_it() {
        if let Some(id) = node.id_attr() {
            by_id.entry(id.to_string()).or_insert(node);
        }
    }
    by_id
}

/// The items that a property belongs to.
#[derive(Clone, Copy, Default)]
struct Scope {
    microdata: Option<usize>,
    rdfa: Option<usize>,
    /// Only Microdata is read.
    is_reference: bool,
}

struct Reader<'a> {
    items: &'a mut Items,
    visits: usize,
    /// The Microdata item of an element.
    of_node: HashMap<NodeId, usize>,
    /// Items with their `itemref`.
    references: Vec<(usize, String)>,
}

impl Reader<'_> {
    fn referred(&mut self, node: &NodeRef, scope: Scope) {
        let scope = Scope { is_reference: true, ..scope };
        let inner = self.element(node, scope);
        // What an item inside holds was read before.
        if inner.microdata == scope.microdata {
            self.walk(*node, scope);
        }
    }

    /// Visits everything below a node, in order.
    fn walk(&mut self, root: NodeRef, scope: Scope) {
        let mut waiting = vec![(root.first_child(), scope)];
        while let Some((node, scope)) = waiting.pop() {
            let Some(node) = node else { continue };
            if scope.is_reference {
                self.visits += 1;
            }
            if self.visits > MAX_VISITS {
                return;
            }
            waiting.push((node.next_sibling(), scope));
            if node.is_element() {
                let inner = self.element(&node, scope);
                let is_known = scope.is_reference && inner.microdata != scope.microdata;
                if !is_known {
                    waiting.push((node.first_child(), inner));
                }
            }
        }
    }

    /// Reads one element; returns the scope of what is inside it.
    fn element(&mut self, node: &NodeRef, scope: Scope) -> Scope {
        let microdata = self.microdata(node, scope.microdata);
        // A common mistake: `meta` with RDFa's attribute inside a Microdata item.
        if let (Some(item), None, Some(name)) = (microdata, scope.rdfa, node.attr("property"))
            && node.has_name("meta")
            && !name.contains(':')
        {
            let value = self.value(node, "property");
            self.items.add(item, &name, value);
        }
        let rdfa = if scope.is_reference { None } else { self.rdfa(node, scope.rdfa) };
        Scope { microdata, rdfa, ..scope }
    }

    fn microdata(&mut self, node: &NodeRef, scope: Option<usize>) -> Option<usize> {
        let names = node.attr("itemprop");
        if node.has_attr("itemscope") {
            let item = match self.of_node.get(&node.id) {
                Some(known) => *known,
                None => self.microdata_item(node)?,
            };
            for name in split(names.as_deref()) {
                if let Some(scope) = scope.filter(|scope| *scope != item) {
                    self.items.add(scope, name, Value::Item(item));
                }
            }
            return Some(item);
        }
        if let (Some(scope), Some(names)) = (scope, names) {
            let value = self.value(node, "itemprop");
            for name in split(Some(&*names)) {
                self.items.add(scope, name, value.clone());
            }
        }
        scope
    }

    fn microdata_item(&mut self, node: &NodeRef) -> Option<usize> {
        let kinds = node.attr("itemtype");
        let kinds: Vec<&str> = split(kinds.as_deref()).collect();
        let item = self.items.item(Syntax::Microdata, &node.attr_or("itemid", ""), &kinds)?;
        self.of_node.insert(node.id, item);
        if let Some(ids) = node.attr("itemref") {
            self.references.push((item, ids.to_string()));
        }
        Some(item)
    }

    fn rdfa(&mut self, node: &NodeRef, scope: Option<usize>) -> Option<usize> {
        // Names of Open Graph and others are no properties of the item around them.
        let is_other =
            |name: &str| ["og:", "fb:", "twitter:", "product:", "article:"].iter().any(|own| name.starts_with(own));
        let names = node.attr("property");
        let names: Vec<&str> = split(names.as_deref()).filter(|name| !is_other(name)).collect();
        let subject = node.attr("about").or_else(|| node.attr("resource"));
        if let Some(kinds) = node.attr("typeof") {
            let kinds: Vec<&str> = split(Some(&*kinds)).collect();
            let item = self.items.item(Syntax::Rdfa, subject.as_deref().unwrap_or_default(), &kinds)?;
            for name in names {
                if let Some(scope) = scope.filter(|scope| *scope != item) {
                    self.items.add(scope, name, Value::Item(item));
                }
            }
            return Some(item);
        }
        if names.is_empty() {
            // A subject alone: what is inside belongs to it.
            let subject = subject.filter(|subject| !subject.trim().is_empty());
            return subject.and_then(|subject| self.items.item(Syntax::Rdfa, &subject, &[])).or(scope);
        }
        let scope = scope?;
        let value = match node.attr("resource").filter(|_| !node.has_attr("content")) {
            Some(id) => Value::Item(self.items.item(Syntax::Rdfa, &id, &[])?),
            None => self.value(node, "property"),
        };
        for name in names {
            self.items.add(scope, name, value.clone());
        }
        Some(scope)
    }

    /// The value of an element without an item: what is written for machines, or else its text.
    fn value(&mut self, node: &NodeRef, notation: &str) -> Value {
        let element = node.node_name().unwrap_or_default();
        let attributes: &[&str] = match &*element {
            "a" | "area" | "link" => &["content", "href"],
            "img" | "audio" | "embed" | "iframe" | "source" | "track" | "video" => {
                &["content", "src", "data-src", "href"]
            }
            "object" => &["content", "data"],
            "data" | "meter" => &["content", "value"],
            "time" => &["content", "datetime"],
            "input" => &["content", "value"],
            _ => &["content"],
        };
        let found = attributes.iter().filter_map(|name| node.attr(name)).find(|value| !value.trim().is_empty());
        match found {
            // The name of a brand is often the text of a link.
            Some(href) if &*element == "a" && self.is_name(node, notation) && !node.has_attr("content") => {
                let text = self.text(node);
                if text.trim().is_empty() { Value::Data(href.to_string()) } else { Value::Shown(text) }
            }
            Some(value) => Value::Data(value.to_string()),
            None => Value::Shown(self.text(node)),
        }
    }

    /// Whether the property is one whose value is a name rather than an address.
    fn is_name(&self, node: &NodeRef, notation: &str) -> bool {
        let names = node.attr(notation);
        split(names.as_deref()).any(|name| ["name", "brand", "manufacturer", "category", "seller"].contains(&name))
    }

    /// The text inside an element, up to a limit.
    fn text(&mut self, root: &NodeRef) -> String {
        let mut text = String::new();
        let mut waiting = vec![root.first_child()];
        while let Some(node) = waiting.pop() {
            let Some(node) = node else { continue };
            self.visits += 1;
            if self.visits > MAX_VISITS || text.len() >= MAX_TEXT_BYTES {
                break;
            }
            waiting.push(node.next_sibling());
            if node.is_text() {
                let own = node.text();
                text.push_str(&own[..own.floor_char_boundary(MAX_TEXT_BYTES)]);
            } else {
                let is_break = node.has_name("br") || node.has_name("p") || node.has_name("li") || node.has_name("div");
                text.push_str(if is_break { " " } else { "" });
                waiting.push(node.first_child());
            }
        }
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text
    }
}

fn split(names: Option<&str>) -> impl Iterator<Item = &str> {
    names.unwrap_or_default().split_ascii_whitespace().take(MAX_NAMES)
}
