//! RSS 2.0 and Atom with Google's elements (`xmlns:g="http://base.google.com/ns/1.0"`).

use std::io::BufRead;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesDecl, BytesStart, Event};

use super::bounded::Bounded;
use super::item::{Record, field};
use super::{Broken, MAX_FIELD_BYTES, Problem};

const GOOGLE: &str = "http://base.google.com/ns/1.0";
/// Longest tag or text between two tags, in bytes.
const MAX_EVENT_BYTES: u64 = 1024 * 1024;
/// Deepest nesting of elements.
const MAX_DEPTH: usize = 32;
/// Most attributes looked at of a tag.
const MAX_ATTRIBUTES: usize = 32;
/// Ranks of a field's names: Google's element counts most.
const PLAIN: u8 = 1;
const OWN: u8 = 2;

pub(super) struct Elements<R> {
    reader: Reader<Bounded<R>>,
    buffer: Vec<u8>,
    /// Open elements.
    depth: usize,
    /// The prefix of Google's elements.
    prefix: String,
    items: u64,
    item: Option<Item>,
}

/// An item that is being read.
struct Item {
    record: Record,
    /// Open elements outside of it.
    depth: usize,
    /// The field that is open, and its rank.
    field: Option<(&'static str, u8)>,
    text: String,
    problem: Option<String>,
}

impl<R: BufRead> Elements<R> {
    pub(super) fn new(reader: Bounded<R>) -> Self {
        let mut reader = Reader::from_reader(reader);
        reader.config_mut().allow_dangling_amp = true;
        Self { reader, buffer: Vec::new(), depth: 0, prefix: "g".to_owned(), items: 0, item: None }
    }

    /// The next item; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Result<Record, Broken>> {
        self.item().transpose()
    }

    fn broken(&self, message: impl Into<String>) -> Broken {
        Broken::File(Problem { at: self.items.max(1), message: message.into() })
    }

    /// Reads up to the end of the next item.
    fn item(&mut self) -> Result<Option<Record>, Broken> {
        loop {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            self.reader.get_mut().allow(MAX_EVENT_BYTES);
            let event = self.reader.read_event_into(&mut buffer);
            let event = event.map_err(|error| self.broken(format!("the XML is broken: {error}")))?;
            let is_end = matches!(event, Event::Eof);
            let done = self.event(&event)?;
            self.buffer = buffer;
            if let Some(item) = done {
                return match item.problem {
                    Some(message) => Err(Broken::Item(Problem { at: item.record.at, message })),
                    None => Ok(Some(item.record)),
                };
            }
            if is_end {
                return match (self.item.is_some() || self.depth > 0, self.items) {
                    (true, _) => Err(self.broken("the file ends before its last element does")),
                    (false, 0) => Err(self.broken("the file has no items: expected RSS 2.0 or Atom")),
                    _ => Ok(None),
                };
            }
        }
    }

    /// Takes one event; returns an item that ended.
    fn event(&mut self, event: &Event) -> Result<Option<Item>, Broken> {
        match event {
            Event::DocType(_) => return Err(self.broken("the file has a DTD, which is not read")),
            Event::Decl(declaration) => self.check(declaration)?,
            Event::Start(start) => {
                self.open(start);
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(self.broken(format!("elements are nested more than {MAX_DEPTH} deep")));
                }
            }
            Event::Empty(start) => {
                self.open(start);
                return Ok(self.close());
            }
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                return Ok(self.close());
            }
            Event::Text(text) => self.push(text),
            Event::CData(text) => self.push(text),
            Event::GeneralRef(name) => self.reference(name),
            _ => {}
        }
        Ok(None)
    }

    fn check(&self, declaration: &BytesDecl) -> Result<(), Broken> {
        let text: &str = declaration;
        let encoding =
            text.split_once("encoding").map_or("", |(_, rest)| rest.trim_start_matches(['=', ' ', '"', '\'']));
        let encoding = encoding.split(['"', '\'']).next().unwrap_or_default().to_ascii_lowercase();
        match encoding.as_str() {
            "" | "utf-8" | "utf8" | "us-ascii" => Ok(()),
            _ => Err(self.broken("the XML is not in UTF-8: save it as UTF-8")),
        }
    }

    fn open(&mut self, start: &BytesStart) {
        if self.depth == 0 {
            self.find_prefix(start);
        }
        let name = start.name();
        let (prefix, local) = split(name.as_ref());
        let Some(item) = &mut self.item else {
            if matches!(local, "item" | "entry") && self.depth > 0 {
                self.items += 1;
                let record = Record::new(self.items);
                self.item = Some(Item { record, depth: self.depth, field: None, text: String::new(), problem: None });
            }
            return;
        };
        if self.depth != item.depth + 1 {
            return;
        }
        let is_own = prefix == Some(self.prefix.as_str());
        item.text.clear();
        item.field = field(local).filter(|_| is_own || prefix.is_none()).map(|(field, is_name)| {
            let rank = if is_own { OWN } else { PLAIN };
            (field, if is_name { rank } else { 0 })
        });
        // Atom's links are attributes; the item's is the one with `rel="alternate"` or without `rel`.
        if local == "link" && prefix.is_none() {
            let is_item = attribute(start, "rel").is_none_or(|rel| rel == "alternate");
            if let Some(address) = attribute(start, "href").filter(|_| is_item) {
                item.record.set("link", &address, PLAIN);
            }
        }
    }

    /// The prefix by which the first element names Google's namespace.
    fn find_prefix(&mut self, start: &BytesStart) {
        for attribute in start.attributes().with_checks(false).flatten().take(MAX_ATTRIBUTES) {
            let key: &str = attribute.key.as_ref();
            let value: &str = &attribute.value;
            if let Some(prefix) = key.strip_prefix("xmlns:")
                && value.trim_end_matches('/') == GOOGLE
                && prefix.len() <= 32
            {
                prefix.clone_into(&mut self.prefix);
            }
        }
    }

    /// Closes an element. [`Self::depth`] is the number of those around it.
    fn close(&mut self) -> Option<Item> {
        let item = self.item.as_mut()?;
        if self.depth == item.depth {
            return self.item.take();
        }
        if self.depth == item.depth + 1
            && let Some((field, rank)) = item.field.take()
        {
            item.record.set(field, &item.text, rank);
        }
        None
    }

    fn push(&mut self, text: &str) {
        if let Some(item) = self.item.as_mut().filter(|item| item.field.is_some()) {
            let room = MAX_FIELD_BYTES.saturating_sub(item.text.len());
            item.text.push_str(&text[..text.floor_char_boundary(room)]);
        }
    }

    fn reference(&mut self, name: &str) {
        // Longer than any character reference.
        if name.len() <= 10
            && let Ok(text) = unescape(&format!("&{name};"))
        {
            return self.push(&text);
        }
        if let Some(item) = self.item.as_mut().filter(|item| item.field.is_some()) {
            let name = crate::fields::line(name, 20);
            item.problem = Some(format!("&{name}; is not an entity of XML: write the character itself"));
        }
    }
}

fn split(name: &str) -> (Option<&str>, &str) {
    name.split_once(':').map_or((None, name), |(prefix, local)| (Some(prefix), local))
}

fn attribute(start: &BytesStart, name: &str) -> Option<String> {
    let mut attributes = start.attributes();
    let found = attributes.with_checks(false).flatten().take(MAX_ATTRIBUTES).find(|attribute| {
        let key: &str = attribute.key.as_ref();
        key == name
    })?;
    unescape(&found.value).ok().map(|value| value.into_owned())
}
