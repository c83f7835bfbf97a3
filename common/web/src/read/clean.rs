//! Removes from the tree what a visitor does not see and what is not text, and makes the rest regular for the later stages.
//!
//! Walks with its own stack, because the parsed tree may be deep. Afterwards it is at most [`MAX_DEPTH`] deep.

use dom_query::{Document, NodeData, NodeRef};
use url::Url;

use super::hidden::{Shown, StyleRules};

/// Deeper elements become plain text. Real pages are far less deep, and the recursive stages overflow their stack only at a
/// far greater depth.
const MAX_DEPTH: usize = 100;
/// Deeper lists and quotes become plain text: each level indents every line below it.
const MAX_INDENT_DEPTH: usize = 10;
/// When tables are filled with empty cells: maximum number of columns of a table, and of cells added per page.
const MAX_COLUMNS: usize = 50;
const MAX_FILLED_CELLS: usize = 5_000;
/// Longer texts are split. Readability writes texts out as HTML, in quadratic time if they are full of `&`.
const MAX_TEXT_BYTES: usize = 4_096;
/// Cost of visiting a node, in characters of text.
const NODE_WORK: usize = 20;
/// Longest `alt` text, in characters.
const MAX_ALT_CHARS: usize = 300;

/// Elements removed with their content.
const DROPPED: [&str; 25] = [
    "applet", "area", "audio", "canvas", "datalist", "embed", "frame", "frameset", "iframe", "input", "link", "map",
    "meta", "meter", "noscript", "object", "option", "progress", "script", "select", "style", "svg", "template",
    "textarea", "video",
];

/// Classes of line numbers next to code.
const LINE_NUMBERS: [&str; 5] = ["gutter", "lineno", "linenos", "linenodiv", "line-numbers-rows"];

/// Texts of links from a heading to itself.
const ANCHOR_MARKS: [&str; 6] = ["", "#", "¶", "§", "🔗", "Permalink"];

/// Work that a cleaned tree causes in stages that read every element's whole content: each text counts once for every
/// ancestor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work(pub(super) usize);

/// The base URL of the page's links.
pub(super) fn base_url(document: &Document, page_url: &Url) -> Url {
    let declared = document.base_uri();
    let joined = declared.and_then(|base| page_url.join(&base).ok());
    joined.filter(|base| matches!(base.scheme(), "http" | "https")).unwrap_or_else(|| page_url.clone())
}

pub(super) fn clean(document: &Document, styles: &str, base: &Url) -> Work {
    let Some(body) = document.body() else {
        return Work::default();
    };
    let linked_sheets = document.select("link[rel~=stylesheet]");
    let has_style_sheets = !styles.trim().is_empty() || linked_sheets.exists();
    let mut cleaner = Cleaner { rules: StyleRules::parse(styles), base, flat: Vec::new(), work: 0 };
    cleaner.walk(body, Shown::at_top(has_style_sheets));
    for node in &cleaner.flat {
        node.set_text(node.formatted_text());
        node.children().into_iter().for_each(split_if_long);
    }
    even_out_tables(document);
    Work(cleaner.work)
}

struct Cleaner<'a> {
    rules: StyleRules,
    base: &'a Url,
    /// Elements to replace by their text.
    flat: Vec<NodeRef<'a>>,
    work: usize,
}

/// A node to visit, and its position.
#[derive(Clone, Copy)]
struct Place<'a> {
    node: NodeRef<'a>,
    shown: Shown,
    depth: usize,
    indent_depth: usize,
    in_flat: bool,
    in_heading: bool,
    in_pre: bool,
}

/// A superscript number after a digit is a power: 10^6, not 106.
fn settle_raised(node: NodeRef<'_>) {
    let text = node.text();
    let exponent = text.trim().trim_start_matches(['-', '−', '+']);
    let is_number = !exponent.is_empty() && exponent.chars().all(|letter| letter.is_ascii_digit());
    let before = node.prev_sibling().filter(|before| before.is_text()).map(|before| before.text());
    if is_number && before.is_some_and(|before| before.ends_with(|letter: char| letter.is_ascii_digit())) {
        node.set_text(format!("^{}", text.trim()));
    }
}

impl<'a> Cleaner<'a> {
    fn walk(&mut self, body: NodeRef<'a>, top: Shown) {
        // A completely hidden body is shown later by a script, so it counts as visible.
        let inside = body.element_ref().and_then(|body| self.rules.inside(&*body, top));
        let shown = inside.filter(Shown::text_shows).unwrap_or(top);
        let children = body.children_it(false).map(|node| Place {
            node,
            shown,
            depth: 1,
            indent_depth: 0,
            in_flat: false,
            in_heading: false,
            in_pre: false,
        });
        let mut places: Vec<Place> = children.collect();
        while let Some(place) = places.pop() {
            if place.node.is_text() {
                self.look_at_text(place);
            } else if place.node.is_element() {
                self.look_at_element(place, &mut places);
            } else {
                place.node.remove_from_parent();
            }
        }
    }

    fn look_at_text(&mut self, place: Place<'a>) {
        if !place.shown.text_shows() {
            place.node.remove_from_parent();
            return;
        }
        self.work += (text_length(place.node) + NODE_WORK) * place.depth;
        split_if_long(place.node);
    }

    fn look_at_element(&mut self, place: Place<'a>, places: &mut Vec<Place<'a>>) {
        let node = place.node;
        let Some(name) = node.qual_name_ref().map(|name| name.local.to_string()) else {
            return;
        };
        let shown = node.element_ref().and_then(|element| self.rules.inside(&*element, place.shown));
        let Some(shown) = shown else {
            node.remove_from_parent();
            return;
        };
        // Struck-out text is dropped, because it is no longer valid.
        if is_dropped(node, &name, place.in_heading) || matches!(name.as_str(), "del" | "s" | "strike") {
            node.remove_from_parent();
            return;
        }
        if place.in_pre && name == "br" {
            // The Markdown writer takes only the text of a code block.
            node.insert_before(&node.tree.new_text("\n"));
            node.remove_from_parent();
            self.work += NODE_WORK * place.depth;
            return;
        }
        self.settle(node, &name);
        let indents = matches!(name.as_str(), "ul" | "ol" | "dl" | "blockquote");
        let indent_depth = place.indent_depth + usize::from(indents);
        let is_flat = place.depth >= MAX_DEPTH || indent_depth > MAX_INDENT_DEPTH;
        if is_flat && !place.in_flat {
            self.flat.push(node);
        }
        self.work += NODE_WORK * place.depth;
        let is_heading = matches!(name.as_str(), "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "summary");
        places.extend(node.children_it(false).map(|child| Place {
            node: child,
            shown,
            depth: place.depth + 1,
            indent_depth,
            in_flat: place.in_flat || is_flat,
            in_heading: place.in_heading || is_heading,
            in_pre: place.in_pre || name == "pre",
        }));
    }

    /// Treats elements that need special care.
    fn settle(&self, node: NodeRef<'a>, name: &str) {
        match name {
            "a" => self.settle_link(node),
            "img" => self.settle_image(node),
            "pre" => settle_code(node),
            // Other buttons were dropped; see `is_dropped`.
            "button" => node.rename("span"),
            "sup" => settle_raised(node),
            _ => {}
        }
    }

    fn settle_link(&self, node: NodeRef<'a>) {
        let Some(href) = node.attr("href") else {
            return;
        };
        if href.trim_start().starts_with('#') {
            let has_image = node.descendants_it().any(|inner| inner.has_name("img"));
            if !has_image && ANCHOR_MARKS.contains(&node.text().trim()) {
                node.set_text("");
            }
            node.remove_attr("href");
            return;
        }
        match self.base.join(href.trim()) {
            Ok(url) if matches!(url.scheme(), "http" | "https" | "mailto" | "tel") => {
                node.set_attr("href", url.as_str());
            }
            _ => node.remove_attr("href"),
        }
    }

    /// Sets the address that a script would set when it loads the image. Removes tracking pixels and images without an
    /// address.
    fn settle_image(&self, node: NodeRef<'a>) {
        let is_dot = |name: &str| node.attr(name).is_some_and(|value| matches!(&*value, "0" | "1"));
        let first_of_set = |name: &str| {
            let set = node.attr(name)?;
            set.split_ascii_whitespace().next().map(|url| url.trim_end_matches(',').to_owned())
        };
        let own = |name: &str| node.attr(name).map(|value| value.to_string());
        let sources = [own("data-src"), own("src"), first_of_set("data-srcset"), first_of_set("srcset")];
        let address = sources.into_iter().flatten().find_map(|source| {
            let source = source.trim();
            let url = self.base.join(source).ok()?;
            (!source.is_empty() && matches!(url.scheme(), "http" | "https")).then_some(url)
        });
        let Some(address) = address.filter(|_| !is_dot("width") && !is_dot("height")) else {
            node.remove_from_parent();
            return;
        };
        node.remove_attrs(&["data-src", "srcset", "data-srcset"]);
        node.set_attr("src", address.as_str());
        if let Some(alt) = node.attr("alt") {
            node.set_attr("alt", &super::text::line(&alt, MAX_ALT_CHARS));
        }
    }
}

fn text_length(node: NodeRef) -> usize {
    node.query_or(0, |node| match &node.data {
        NodeData::Text { contents } => contents.len(),
        _ => 0,
    })
}

/// Splits a long text node into several.
fn split_if_long(node: NodeRef) {
    if text_length(node) <= MAX_TEXT_BYTES {
        return;
    }
    let text = node.text();
    let mut rest: &str = &text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(MAX_TEXT_BYTES));
        node.insert_before(&node.tree.new_text(piece));
        rest = after;
    }
    node.remove_from_parent();
}

/// Buttons are dropped as controls, but those in headings hold the heading's text.
fn is_dropped(node: NodeRef, name: &str, in_heading: bool) -> bool {
    DROPPED.contains(&name)
        || (name == "button" && !in_heading)
        || LINE_NUMBERS.iter().any(|class| node.has_class(class))
}

/// Sets the attribute from which the Markdown writer takes the language of a code block.
fn settle_code(pre: NodeRef) {
    let code = pre.element_children().into_iter().find(|child| child.has_name("code"));
    let places = std::iter::once(pre).chain(code).chain(pre.ancestors_it(Some(2)));
    let language = places
        .filter_map(|place| place.class())
        .find_map(|class| class.split_ascii_whitespace().find_map(language_of_class));
    if let Some(language) = language {
        pre.set_attr("data-lang", &language);
    }
}

/// The language named by a class such as `language-rust`.
fn language_of_class(class: &str) -> Option<String> {
    let prefixes = ["language-", "lang-", "highlight-source-", "highlight-"];
    let language = prefixes.iter().find_map(|prefix| class.strip_prefix(prefix))?;
    let is_named = !matches!(language, "" | "none" | "text" | "default" | "plaintext");
    is_named.then(|| language.to_owned())
}

/// Makes data tables rectangular for Markdown, and turns layout tables into plain boxes.
fn even_out_tables(document: &Document) {
    let mut filled = 0;
    for table in document.select("table").nodes() {
        lift_captions(table);
        let rows = table.find(&["tr"]);
        if is_layout(table, &rows) {
            unmake_table(table);
        } else {
            filled += fill_rows(&rows, MAX_FILLED_CELLS - filled);
        }
    }
}

fn cells<'a>(row: &NodeRef<'a>) -> Vec<NodeRef<'a>> {
    let mut cells = row.element_children();
    cells.retain(|cell| cell.has_name("td") || cell.has_name("th"));
    cells
}

/// Moves captions before their tables, because a Markdown table cannot contain one.
fn lift_captions(table: &NodeRef) {
    for caption in table.element_children() {
        if caption.has_name("caption") {
            caption.rename("p");
            table.insert_before(&caption);
        }
    }
}

fn is_layout(table: &NodeRef, rows: &[NodeRef]) -> bool {
    let says_so = table.attr("role").is_some_and(|role| matches!(&*role, "presentation" | "none"));
    let has_table = || table.descendants_it().any(|inner| inner.has_name("table"));
    let is_line = || rows.len() < 2 || rows.iter().all(|row| cells(row).len() < 2);
    says_so || is_line() || has_table()
}

/// Renames the parts of this table, but not of nested tables.
fn unmake_table(table: &NodeRef) {
    let mut parts = vec![*table];
    while let Some(part) = parts.pop() {
        let inner = part.element_children();
        let parts_of_table = ["thead", "tbody", "tfoot", "tr", "td", "th"];
        parts.extend(inner.into_iter().filter(|child| parts_of_table.iter().any(|name| child.has_name(name))));
        part.rename("div");
    }
}

/// Adds empty cells for `rowspan` and `colspan`, and at the end of short rows. Adds at most `room` cells; returns how many.
fn fill_rows(rows: &[NodeRef], room: usize) -> usize {
    let mut added = 0;
    // For each column: how many more rows a cell from above covers.
    let mut reaching = [0; MAX_COLUMNS];
    let mut widths = Vec::with_capacity(rows.len());
    for row in rows {
        let mut column = 0;
        for cell in cells(row) {
            while column < MAX_COLUMNS && reaching[column] > 0 && added < room {
                reaching[column] -= 1;
                cell.insert_before(&row.tree.new_element("td"));
                (column, added) = (column + 1, added + 1);
            }
            let span = |name: &str| cell.attr(name).and_then(|n| n.trim().parse::<usize>().ok());
            let rows_below = span("rowspan").unwrap_or(1).clamp(1, 1_000) - 1;
            let columns = span("colspan").unwrap_or(1).clamp(1, MAX_COLUMNS);
            for part in 0..columns {
                if part > 0 && added < room {
                    cell.insert_after(&row.tree.new_element("td"));
                    added += 1;
                }
                if column < MAX_COLUMNS {
                    reaching[column] = rows_below;
                }
                column += 1;
            }
            cell.remove_attrs(&["rowspan", "colspan"]);
        }
        // Cells from above beyond the row's last cell count as padding.
        for below in reaching.iter_mut().skip(column) {
            *below = below.saturating_sub(1);
        }
        widths.push(column);
    }
    let widest = widths.iter().copied().max().unwrap_or(0).min(MAX_COLUMNS);
    for (row, width) in rows.iter().zip(widths) {
        // A row without its own cells stays empty; it is not written.
        for _ in width..widest {
            if width > 0 && added < room {
                row.append_child(&row.tree.new_element("td"));
                added += 1;
            }
        }
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(html: &str) -> Document {
        let document = Document::from(html);
        let page_url = Url::parse("https://site.example/dir/page").unwrap();
        let base = base_url(&document, &page_url);
        clean(&document, "", &base);
        document
    }

    fn body(html: &str) -> String {
        cleaned(html).body().unwrap().inner_html().to_string()
    }

    #[test]
    fn hidden_elements_and_non_text_are_removed() {
        for html in [
            "a<script>x</script>b",
            "a<!-- x -->b",
            "a<p hidden>x</p>b",
            "a<div style='display:none'><p>x</p></div>b",
            "a<svg><text>x</text></svg>b",
            "a<select><option>x</select>b",
            "a<button>x</button>b",
            "a<template><p>x</p></template>b",
            "a<object>x</object>b",
            "a<img src=data:image/png;base64,AAAA>b",
            "a<img src=/dot.gif width=1 height=1>b",
            "a<img alt=x>b",
        ] {
            assert_eq!(body(html), "ab", "{html}");
        }
        assert_eq!(body("<h2><button>Question?</button></h2>"), "<h2><span>Question?</span></h2>");
    }

    #[test]
    fn a_hidden_body_counts_as_visible() {
        for html in ["<body hidden>x", "<body style='visibility:hidden'>x", "<body style=opacity:0>x"] {
            assert_eq!(body(html), "x", "{html}");
        }
        assert_eq!(body("<body bgcolor=black>a<font color='#000'>b</font>"), "a<font color=\"#000\"></font>");
    }

    #[test]
    fn addresses_become_absolute_or_are_removed() {
        for (html, expected) in [
            ("<a href=other?x#y>t</a>", "<a href=\"https://site.example/dir/other?x#y\">t</a>"),
            ("<a href=//cdn.example/>t</a>", "<a href=\"https://cdn.example/\">t</a>"),
            ("<a href=mailto:a@b.example>t</a>", "<a href=\"mailto:a@b.example\">t</a>"),
            ("<a href=javascript:x()>t</a>", "<a>t</a>"),
            ("<a href=' JavaScript:x()'>t</a>", "<a>t</a>"),
            ("<a href='data:text/html,x'>t</a>", "<a>t</a>"),
            ("<a href=#part>t</a>", "<a>t</a>"),
            ("<h2>t<a href=#part>¶</a></h2>", "<h2>t<a></a></h2>"),
            ("<img src=/a.png alt=' two\nwords '>", "<img src=\"https://site.example/a.png\" alt=\"two words\">"),
            ("<img src=data:x data-src=b.png>", "<img src=\"https://site.example/dir/b.png\">"),
            ("<img srcset='c.png 1x, d.png 2x'>", "<img src=\"https://site.example/dir/c.png\">"),
        ] {
            assert_eq!(body(html), expected, "{html}");
        }
        let html = body("<base href=https://other.example/x/><a href=y>t</a>");
        assert!(html.contains("https://other.example/x/y"));
        let html = body("<base href=ftp://other.example/><a href=y>t</a>");
        assert!(html.contains("https://site.example/dir/y"));
    }

    #[test]
    fn code_keeps_its_language() {
        for html in [
            "<pre class=language-rust>x</pre>",
            "<pre><code class='hljs lang-rust'>x</code></pre>",
            "<div class='highlight highlight-source-rust'><pre>x</pre></div>",
            "<div class=highlight-rust><div class=highlight><pre>x</pre></div></div>",
        ] {
            assert!(body(html).contains("data-lang=\"rust\""), "{html}");
        }
        assert!(!body("<pre class=language-none>x</pre>").contains("data-lang"));
        assert_eq!(body("<pre><span class=lineno>1</span>x</pre>"), "<pre>x</pre>");
        assert_eq!(body("<pre>let a = 1;<br>let b;</pre>"), "<pre>let a = 1;\nlet b;</pre>");
        assert_eq!(body("<pre><code>a<br/><i>b</i></code></pre>"), "<pre><code>a\n<i>b</i></code></pre>");
    }

    #[test]
    fn tables_become_regular() {
        let markdown = |html: &str| super::super::text::tidy(&cleaned(html).md(None));
        assert_eq!(
            markdown("<table><caption>C</caption><tr><th>a<th>b<th>c<tr><td colspan=2>d<td>e<tr><td>f</table>"),
            "C\n\n| a | b | c |\n| - | - | - |\n| d |  | e |\n| f |  |  |"
        );
        assert_eq!(
            markdown("<table><tr><th>a<th>b<tr><td rowspan=2>c<td>d<tr><td>e<tr><td>f<td>g</table>"),
            "| a | b |\n| - | - |\n| c | d |\n|  | e |\n| f | g |"
        );
        assert_eq!(markdown("<table role=presentation><tr><td>a<td>b<tr><td>c<td>d</table>"), "a\n\nb\n\nc\n\nd");
        assert_eq!(markdown("<table><tr><td><p>a</p></table>"), "a");
        let outer = "<table><tr><td>x<table><tr><th>a<th>b<tr><td>c<td>d</table></table>";
        assert!(markdown(outer).contains("| a | b |\n| - | - |\n| c | d |"));
    }

    #[test]
    fn spans_cannot_make_tables_grow_without_bound() {
        let rows = "<tr><td colspan=1000 rowspan=65534>x<td>y".repeat(2_000);
        let document = cleaned(&format!("<table>{rows}</table>"));
        assert!(document.select("td").length() <= 4_000 + MAX_FILLED_CELLS);
    }

    #[test]
    fn the_tree_becomes_shallow() {
        let deep = format!("{}text{}", "<div>".repeat(400), "<i hidden>not</i>".repeat(3));
        let document = cleaned(&deep);
        let root = document.root();
        let depths = root.descendants_it().map(|node| node.ancestors_it(None).count());
        assert!(depths.max().unwrap() <= MAX_DEPTH + 5);
        assert_eq!(&*document.text(), "text");
        let lists = body(&"<ul><li>item".repeat(50));
        assert_eq!(lists.matches("<ul>").count(), MAX_INDENT_DEPTH + 1);
        assert_eq!(lists.matches("item").count(), 50);
    }
}
