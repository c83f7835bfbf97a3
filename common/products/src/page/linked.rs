//! JSON-LD: mends what real pages do to it, and reads its items.

use serde_json::{Map, Value as Json};

use super::items::{Items, MAX_TEXT_BYTES, Syntax, Value};

/// Deepest nesting of arrays and objects; a deeper block is ignored.
const MAX_DEPTH: usize = 40;

/// Reads a block's items. A block that is no JSON, or nested too deep, has none.
pub(super) fn read(block: &str, items: &mut Items) {
    let Some(json) = parse(block).or_else(|| parse(&decoded(block)?)) else { return };
    value(&json, items);
}

fn parse(block: &str) -> Option<Json> {
    serde_json::from_str(&mended(block)?).ok()
}

/// A block whose quotes were written as entities, decoded.
fn decoded(block: &str) -> Option<String> {
    let is_escaped = block.contains("&quot;") || block.contains("&#34;");
    is_escaped.then(|| block.replace("&quot;", "\"").replace("&#34;", "\"").replace("&amp;", "&"))
}

/// The block as JSON: without comments, marks of CDATA, and commas before a closing bracket; with control characters in
/// strings escaped. Numbers become strings, so that no decimal is rounded. `None` if the nesting is too deep.
fn mended(block: &str) -> Option<String> {
    let mut json = String::with_capacity(block.len() + block.len() / 8);
    let mut rest = block.trim_start_matches('\u{feff}');
    let mut depth = 0_usize;
    let mut comma = false;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = after_comment(rest) {
            rest = after;
            continue;
        }
        if first.is_whitespace() || first.is_control() || first == ';' {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        match first {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return None;
        }
        if std::mem::take(&mut comma) && !matches!(first, '}' | ']' | ',') {
            json.push(',');
        }
        rest = match first {
            ',' => {
                comma = true;
                &rest[1..]
            }
            '"' => string(rest, &mut json),
            '-' | '0'..='9' => number(rest, &mut json),
            _ => {
                json.push(first);
                &rest[first.len_utf8()..]
            }
        };
    }
    Some(json)
}

/// The text behind a comment at its start, if there is one.
fn after_comment(text: &str) -> Option<&str> {
    if let Some(inside) = text.strip_prefix("/*") {
        return Some(inside.find("*/").map_or("", |at| &inside[at + 2..]));
    }
    // `<!--` around a whole block hides nothing.
    for mark in ["//<![CDATA[", "//]]>", "<![CDATA[", "]]>", "<!--", "-->"] {
        if let Some(rest) = text.strip_prefix(mark) {
            return Some(rest);
        }
    }
    text.strip_prefix("//").map(|inside| inside.find('\n').map_or("", |at| &inside[at..]))
}

/// Copies the string at the start of `text`; returns the text that follows.
fn string<'a>(text: &'a str, json: &mut String) -> &'a str {
    json.push('"');
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => {
                json.push('"');
                return &text[at + 1..];
            }
            '\\' => match letters.next() {
                Some((_, escaped @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u'))) => {
                    json.extend(['\\', escaped])
                }
                // Not an escape of JSON: `\'`, or a line that goes on.
                Some((_, other)) if other.is_control() => json.push(' '),
                Some((_, other)) => json.push(other),
                None => {}
            },
            '\n' | '\r' | '\t' => json.push_str("\\n"),
            _ if letter.is_control() => json.push(' '),
            _ => json.push(letter),
        }
    }
    ""
}

/// Copies the number at the start of `text` as a string; returns the text that follows.
fn number<'a>(text: &'a str, json: &mut String) -> &'a str {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
    let (number, rest) = text.split_at(text.find(|c| !is_number(c)).unwrap_or(text.len()));
    json.push('"');
    json.push_str(number);
    json.push('"');
    rest
}

/// The values of some JSON; its objects become items. Recursion ends at [`MAX_DEPTH`].
fn value(json: &Json, items: &mut Items) -> Vec<Value> {
    match json {
        Json::String(text) => vec![Value::Data(text[..text.floor_char_boundary(MAX_TEXT_BYTES)].to_owned())],
        Json::Bool(truth) => vec![Value::Data(truth.to_string())],
        Json::Array(list) => list.iter().flat_map(|one| value(one, items)).collect(),
        Json::Object(object) => self::object(object, items),
        // Numbers are strings by now.
        Json::Null | Json::Number(_) => Vec::new(),
    }
}

fn object(object: &Map<String, Json>, items: &mut Items) -> Vec<Value> {
    for wrapper in ["@value", "@list", "@set"] {
        if let Some(inside) = object.get(wrapper) {
            return value(inside, items);
        }
    }
    if let Some(graph) = object.get("@graph") {
        value(graph, items);
    }
    let kinds: Vec<&str> = match object.get("@type") {
        Some(Json::String(kind)) => vec![kind],
        Some(Json::Array(kinds)) => kinds.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    };
    let id = object.get("@id").and_then(Json::as_str).unwrap_or_default();
    let Some(item) = items.item(Syntax::JsonLd, id, &kinds) else { return Vec::new() };
    for (name, inside) in object.iter().filter(|(name, _)| !name.starts_with('@')) {
        for value in value(inside, items) {
            items.add(item, name, value);
        }
    }
    vec![Value::Item(item)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_json_is_mended() {
        for (block, expected) in [
            ("{\"a\": 19.90, /* c */ \"b\": -1e3,}", "{\"a\":\"19.90\",\"b\":\"-1e3\"}"),
            ("//<![CDATA[\n{\"a\":\"x\ny\u{1}\"} // end\n//]]>", "{\"a\":\"x\\ny \"}"),
            ("<!-- [1,2,] -->;", "[\"1\",\"2\"]"),
            (
                "{\"u\":\"http://a/*b*/\", \"q\":\"it\\'s\", \"t\":true}",
                "{\"u\":\"http://a/*b*/\",\"q\":\"it's\",\"t\":true}",
            ),
        ] {
            assert_eq!(mended(block).as_deref(), Some(expected), "{block}");
        }
        assert_eq!(mended(&"[".repeat(10_000)), None);
        assert!(parse(&decoded("{&quot;a&quot;:&quot;b&quot;}").unwrap()).is_some());
    }
}
