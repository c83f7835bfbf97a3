//! What structured data says, in one form for JSON-LD, Microdata and RDFa: items with types and properties.

use std::collections::HashMap;

/// Most items, and most properties of all items together.
const MAX_ITEMS: usize = 4_000;
const MAX_PROPERTIES: usize = 40_000;
/// Most properties of one item, and most values of one property that are read for a text. With these, reading an item has
/// a bound.
const MAX_PROPERTIES_OF_ONE: usize = 500;
pub(super) const MAX_VALUES: usize = 8;
/// Longest text of a property, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 8_192;
const MAX_KINDS: usize = 8;

/// The notation that an item was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    JsonLd,
    Microdata,
    Rdfa,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Written for machines: numbers have a decimal point.
    Data(String),
    /// Written for people.
    Shown(String),
    /// An item, by its number.
    Item(usize),
}

#[derive(Debug)]
pub(super) struct Item {
    pub(super) syntax: Syntax,
    /// Types, in lower case, without the address of their vocabulary.
    pub(super) kinds: Vec<String>,
    /// Its identifier, or empty.
    pub(super) id: String,
    /// The property of another item that holds this one.
    pub(super) held_by: Option<String>,
    properties: Vec<(String, Value)>,
}

#[derive(Default)]
pub(super) struct Items {
    list: Vec<Item>,
    by_id: HashMap<String, usize>,
    properties: usize,
}

impl Items {
    /// A new item, or the one with this identifier, of these types. Some pages give one identifier to things of different
    /// types; these stay apart. `None` if there are too many items.
    pub(super) fn item(&mut self, syntax: Syntax, id: &str, kinds: &[&str]) -> Option<usize> {
        let id = id.trim();
        let mut names: Vec<String> = kinds.iter().take(MAX_KINDS).map(|kind| local_name(kind)).collect();
        if let Some(known) = self.by_id.get(id)
            && let Some(item) = self.list.get_mut(*known)
            && (item.kinds.is_empty() || names.is_empty() || item.kinds.iter().any(|kind| names.contains(kind)))
        {
            if item.kinds.is_empty() {
                item.kinds.append(&mut names);
            }
            return Some(*known);
        }
        let number = self.list.len();
        if number >= MAX_ITEMS || id.len() > MAX_TEXT_BYTES {
            return None;
        }
        if !id.is_empty() {
            self.by_id.entry(id.to_owned()).or_insert(number);
        }
        let item = Item { syntax, kinds: names, id: id.to_owned(), held_by: None, properties: Vec::new() };
        self.list.push(item);
        Some(number)
    }

    pub(super) fn add(&mut self, item: usize, name: &str, value: Value) {
        if self.properties >= MAX_PROPERTIES {
            return;
        }
        let name = local_name(name);
        if let Value::Item(held) = value
            && let Some(held) = self.list.get_mut(held)
        {
            held.held_by.get_or_insert_with(|| name.clone());
        }
        if let Some(item) = self.list.get_mut(item).filter(|item| item.properties.len() < MAX_PROPERTIES_OF_ONE) {
            self.properties += 1;
            item.properties.push((name, value));
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Item)> {
        self.list.iter().enumerate()
    }

    pub(super) fn get(&self, item: usize) -> Option<&Item> {
        self.list.get(item)
    }

    pub(super) fn is(&self, item: usize, kinds: &[&str]) -> bool {
        self.get(item).is_some_and(|item| item.kinds.iter().any(|kind| kinds.contains(&kind.as_str())))
    }

    /// The values of properties: those of the first name first.
    pub(super) fn values<'a>(&'a self, item: usize, names: &'a [&str]) -> impl Iterator<Item = &'a Value> {
        let properties = self.get(item).map_or(&[][..], |item| &item.properties);
        names
            .iter()
            .flat_map(move |name| properties.iter().filter(move |(known, _)| known == name).map(|(_, value)| value))
    }

    /// The items that properties hold.
    pub(super) fn held<'a>(&'a self, item: usize, names: &'a [&str]) -> impl Iterator<Item = usize> + 'a {
        self.values(item, names).filter_map(|value| match value {
            Value::Item(item) => Some(*item),
            _ => None,
        })
    }

    /// The first text of properties; of an item, its name or else its identifier.
    pub(super) fn text<'a>(&'a self, item: usize, names: &'a [&str]) -> Option<&'a str> {
        self.values(item, names).take(MAX_VALUES).find_map(|value| self.text_of(value))
    }

    pub(super) fn text_of<'a>(&'a self, value: &'a Value) -> Option<&'a str> {
        let text = match value {
            Value::Data(text) | Value::Shown(text) => text.as_str(),
            Value::Item(item) => {
                let named = self.values(*item, &["name", "value"]).find_map(|value| match value {
                    Value::Data(text) | Value::Shown(text) => Some(text.as_str()),
                    Value::Item(_) => None,
                });
                named.or(self.get(*item).map(|item| item.id.as_str()))?
            }
        };
        Some(text.trim()).filter(|text| !text.is_empty())
    }
}

/// The name without the address or prefix of its vocabulary, in lower case.
fn local_name(name: &str) -> String {
    let name = name.trim().trim_end_matches('/');
    let local = name.rsplit(['/', '#', ':']).next().unwrap_or_default();
    local[..local.floor_char_boundary(64)].to_ascii_lowercase()
}
