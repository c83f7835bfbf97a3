//! Builds the tree, and stops when it becomes too large.
//!
//! For many tags the parser searches all open elements, and for many paragraphs it reopens all pending formatting elements.
//! Deep nesting therefore makes it slow and its tree large. So the markup is fed in small pieces with a check after each;
//! when a limit is reached, the rest of the page is dropped.

use std::cell::Cell;

use dom_query::{Document, NodeId};
use html5ever::driver::Parser;
use html5ever::interface::Tracer;
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use html5ever::{ParseOpts, parse_document};

/// Maximum number of open elements; browsers stop nesting at this depth.
const MAX_OPEN: usize = 512;
/// Maximum number of nodes in the tree (elements, texts and others).
const MAX_NODES: usize = 100_000;
/// Bytes fed at once. Small, because three bytes of markup can add [`MAX_OPEN`] nodes.
const PIECE_BYTES: usize = 256;

pub(super) struct Parsed {
    pub(super) document: Document,
    /// Part of the page was dropped.
    pub(super) cut: bool,
}

pub(super) fn parse(markup: &str) -> Parsed {
    let options = ParseOpts {
        tree_builder: TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() },
        ..ParseOpts::default()
    };
    let mut parser = parse_document(Document::default(), options);
    let mut rest = markup;
    while !rest.is_empty() && !is_full(&parser) {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE_BYTES));
        parser.process(StrTendril::from_slice(piece));
        // Errors are not used. They are cleared because there may be one per tag.
        parser.tokenizer.sink.sink.errors.borrow_mut().clear();
        rest = after;
    }
    Parsed { document: parser.finish(), cut: !rest.is_empty() }
}

fn is_full(parser: &Parser<Document>) -> bool {
    let builder = &parser.tokenizer.sink;
    if builder.sink.tree.len() > MAX_NODES {
        return true;
    }
    let open = OpenElements(Cell::new(0));
    builder.trace_handles(&open);
    open.0.get() > MAX_OPEN
}

/// Counts the open elements and the formatting elements to be reopened.
struct OpenElements(Cell<usize>);

impl Tracer for OpenElements {
    type Handle = NodeId;

    fn trace_handle(&self, _: &NodeId) {
        self.0.set(self.0.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_pages_are_parsed_whole() {
        let parsed = parse(&"<div><p>text</p></div>".repeat(1_000));
        assert!(!parsed.cut);
        assert_eq!(parsed.document.select("p").length(), 1_000);
    }

    #[test]
    fn unclosed_items_do_not_count_as_depth() {
        let items = format!("<ul>{}</ul>{}", "<li>x".repeat(5_000), "<p>y".repeat(5_000));
        assert!(!parse(&items).cut);
    }

    #[test]
    fn depth_is_limited_and_the_beginning_is_kept() {
        let parsed = parse(&format!("<p>start</p>{}", "<div>".repeat(100_000)));
        assert!(parsed.cut);
        assert!(parsed.document.tree.len() < 1_000);
        assert_eq!(&*parsed.document.select("p").text(), "start");
    }

    #[test]
    fn reopened_formatting_is_limited() {
        let open: String = (0..400).map(|n| format!("<b id=\"{n}\">")).collect();
        let parsed = parse(&format!("{open}{}", "<p>".repeat(100_000)));
        assert!(parsed.cut);
        assert!(parsed.document.tree.len() < 2 * MAX_NODES);
    }
}
