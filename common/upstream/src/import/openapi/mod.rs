//! OpenAPI 3.0, 3.1 and Swagger 2.0.

mod answer;
mod body;
mod input;
mod operation;
mod parameters;
mod security;
mod servers;

use serde_json::{Map, Value};

use super::Imported;
use super::document::Document;
use crate::settings::{MAX_TOOLS, Reserved};
use operation::{Operation, operations};

/// Which operations of a document become tools, and how.
#[derive(Clone, Debug)]
pub struct Selection {
    /// An operation that any of these names is taken.
    pub operations: Vec<Select>,
    /// The price of each, as in the settings: `"0.01"`. Change it in the entries.
    pub price: Value,
    /// Stands before each name: `acme` makes `acme_list_pets`.
    pub prefix: Option<String>,
    /// The address of the service, if the document's is not to be used.
    pub server: Option<String>,
    /// Where the document was read from, if not from a file: its servers may be relative to that.
    pub document_url: Option<String>,
    /// The service is on the operator's own network.
    pub private: bool,
    pub category: Option<String>,
    /// Whether answers are promised and checked. Answers of more than 64 KB then fail.
    pub output_schemas: bool,
}

impl Selection {
    /// These operations at this price, as the document describes them.
    pub fn new(operations: Vec<Select>, price: &str) -> Selection {
        Selection {
            operations,
            price: Value::from(price),
            prefix: None,
            server: None,
            document_url: None,
            private: false,
            category: None,
            output_schemas: true,
        }
    }
}

/// Names operations of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Select {
    All,
    /// By `operationId`.
    Id(String),
    Tag(String),
    /// By method (upper case) and path, as in the document.
    Path(String, String),
}

impl Select {
    /// Reads `*`, `tag:pets`, `GET /pets/{id}`, or an operation id.
    pub fn parse(text: &str) -> Select {
        match text.split_once(' ') {
            _ if text == "*" => Select::All,
            _ if text.starts_with("tag:") => Select::Tag(text["tag:".len()..].trim().to_owned()),
            Some((method, path)) if path.starts_with('/') => Select::Path(method.to_ascii_uppercase(), path.to_owned()),
            _ => Select::Id(text.to_owned()),
        }
    }

    fn names(&self, operation: &Operation<'_>) -> bool {
        match self {
            Select::All => true,
            Select::Id(id) => operation.id == Some(id),
            Select::Tag(tag) => operation.tags().any(|known| known == tag),
            Select::Path(method, path) => operation.method == *method && operation.path == path,
        }
    }

    fn shown(&self) -> String {
        match self {
            Select::All => "*".to_owned(),
            Select::Id(id) => id.clone(),
            Select::Tag(tag) => format!("tag:{tag}"),
            Select::Path(method, path) => format!("{method} {path}"),
        }
    }
}

/// Which kind of document it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Swagger2,
    OpenApi3,
}

impl Version {
    fn of(document: &Value) -> Option<Version> {
        let is = |member: &str, start: &str| document[member].as_str().is_some_and(|text| text.starts_with(start));
        match (is("swagger", "2."), is("openapi", "3.")) {
            (true, _) => Some(Version::Swagger2),
            (_, true) => Some(Version::OpenApi3),
            _ => None,
        }
    }
}

/// Makes tools of a document's operations. `reserved` names are avoided by a number at the end.
pub fn from_openapi(document: &Value, selection: &Selection, reserved: Reserved<'_>) -> Imported {
    let mut imported = Imported::default();
    let Some(version) = Version::of(document) else {
        imported.refuse("*", "the document is neither OpenAPI 3 nor Swagger 2 (no member openapi or swagger)");
        return imported;
    };
    let document = Document { root: document };
    let (operations, broken) = operations(document, version);
    let is_meant = |name: &str| {
        selection.operations.iter().any(|select| match select {
            Select::All => true,
            Select::Path(method, path) => name == path || name.split_once(' ') == Some((method, path)),
            Select::Id(_) | Select::Tag(_) => false,
        })
    };
    for (name, why) in broken.into_iter().filter(|(name, _)| is_meant(name)) {
        imported.refuse(name, why);
    }
    for select in &selection.operations {
        let is_broken = imported.refused.iter().any(|refused| refused.operation == select.shown());
        if !is_broken && !operations.iter().any(|operation| select.names(operation)) {
            imported.refuse(select.shown(), "names no operation of the document");
        }
    }
    for operation in
        operations.iter().filter(|operation| selection.operations.iter().any(|select| select.names(operation)))
    {
        if imported.tools.len() >= MAX_TOOLS {
            imported.refuse(operation.name(), format!("a settings file has at most {MAX_TOOLS} tools"));
            continue;
        }
        let is_taken = |name: &str| imported.has(name) || reserved(name);
        match operation.entry(selection, &is_taken) {
            Ok(made) => imported.take(operation.name(), made, reserved),
            Err(why) => imported.refuse(operation.name(), why),
        }
    }
    imported
}

/// The members of an object; none for everything else.
fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// The items of an array; none for everything else.
fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
