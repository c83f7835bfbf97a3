//! One operation of a document, as an entry of the settings.

use serde_json::{Map, Value, json};

use super::super::Made;
use super::super::document::Document;
use super::super::words::{shortened, snake, title_and_summary, unique};
use super::answer::{Answer, caller_errors};
use super::body::Payload;
use super::input::Input;
use super::parameters::{Parameter, Placing};
use super::security::Constants;
use super::{Selection, Version, items, members, security, servers};

/// Most operations of a document.
const MAX_OPERATIONS: usize = 5_000;
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "patch", "head", "options", "trace"];

/// An operation, and where it stands in its document.
pub struct Operation<'a> {
    pub document: Document<'a>,
    pub version: Version,
    pub path: &'a str,
    /// In upper case.
    pub method: String,
    /// The members of the path, for all of its operations.
    pub item: &'a Value,
    pub value: &'a Value,
    pub id: Option<&'a String>,
}

/// An operation or path that cannot be read, and why.
type Broken = (String, String);

/// All operations of a document, in its order, and the paths that cannot be read.
pub fn operations(document: Document<'_>, version: Version) -> (Vec<Operation<'_>>, Vec<Broken>) {
    let (mut found, mut broken) = (Vec::new(), Vec::new());
    for (path, item) in members(&document.root["paths"]).filter(|(path, _)| !path.starts_with("x-")) {
        let item = match document.resolved(item) {
            Ok(item) => item,
            Err(why) => {
                broken.push((path.clone(), why));
                continue;
            }
        };
        for method in METHODS {
            let Some(value) = item.get(method).filter(|value| value.is_object()) else { continue };
            let value = match document.resolved(value) {
                Ok(value) => value,
                Err(why) => {
                    broken.push((format!("{} {path}", method.to_ascii_uppercase()), why));
                    continue;
                }
            };
            let id = match &value["operationId"] {
                Value::String(id) => Some(id),
                _ => None,
            };
            found.push(Operation { document, version, path, method: method.to_ascii_uppercase(), item, value, id });
        }
        if found.len() > MAX_OPERATIONS {
            broken.push(("*".to_owned(), format!("only the first {MAX_OPERATIONS} operations are read")));
            break;
        }
    }
    (found, broken)
}

impl<'a> Operation<'a> {
    /// How it is named in reports: `GET /pets/{id}`.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub fn tags(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        items(&self.value["tags"]).iter().filter_map(Value::as_str)
    }

    /// The entry of the settings, and what the operator should know of it.
    pub fn entry(&self, selection: &Selection, is_taken: &dyn Fn(&str) -> bool) -> Result<Made, String> {
        if matches!(self.method.as_str(), "HEAD" | "OPTIONS" | "TRACE") {
            return Err(format!("is a {} request, which has nothing to sell", self.method));
        }
        let mut notes: Vec<String> = Vec::new();
        if self.value["deprecated"] == true {
            notes.push("the document calls it deprecated".to_owned());
        }
        let (address, server_note) = servers::address(self, selection)?;
        notes.extend(server_note);
        let answer = Answer::of(self)?;
        let mut secrets = security::constants(self, selection, &mut notes)?;
        let path = self.plain_path(&mut secrets)?;
        let parameters = Parameter::all(self, selection, &mut secrets, &mut notes)?;
        let payload = Payload::of(self, &mut notes)?;
        let input = Input::new(self, &parameters, payload, &mut notes)?;
        if let Some(content_type) = input.content_type.as_ref().filter(|name| *name != "application/json") {
            secrets.headers.insert("content-type".to_owned(), json!(content_type));
        }
        if let Some(accept) = &answer.accept {
            secrets.headers.insert("accept".to_owned(), json!(accept));
        }
        let name = self.tool_name(selection, is_taken);
        let text = |member: &str| self.value[member].as_str().or(self.item[member].as_str()).unwrap_or_default();
        let (title, summary) = title_and_summary(text("summary"), text("description"), &name);
        let mut entry = json!({
            "name": name, "title": title, "summary": summary, "price": selection.price, "method": self.method,
            "address": address, "path": path, "slots": input.slots, "input_schema": input.schema,
        });
        let set = |entry: &mut Value, member: &str, value: Option<Value>| {
            if let Some(value) = value {
                entry[member] = value;
            }
        };
        set(&mut entry, "private", selection.private.then_some(json!(true)));
        set(&mut entry, "category", selection.category.as_ref().map(|category| json!(category)));
        set(&mut entry, "constants", secrets.into_value());
        set(&mut entry, "answers", answer.answers.clone().map(|answers| json!(answers)));
        let promised = if selection.output_schemas { answer.schema(self, &mut notes) } else { None };
        set(&mut entry, "output_schema", promised);
        notes.sort();
        notes.dedup();
        Ok(Made { entry, notes, example: input.example, caller_errors: caller_errors(&self.value["responses"]) })
    }

    /// The path without a fragment, which only tells operations apart, and without a query, which becomes constants.
    fn plain_path(&self, constants: &mut Constants) -> Result<&'a str, String> {
        let path = self.path.split('#').next().unwrap_or_default();
        let Some((path, query)) = path.split_once('?') else { return Ok(path) };
        if query.contains(['{', '%', '+']) {
            return Err("has a query in its path that is not constant".to_owned());
        }
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            constants.query.insert(name.to_owned(), json!(value));
            constants.names.push(("query", name.to_owned()));
        }
        Ok(path)
    }

    fn tool_name(&self, selection: &Selection, is_taken: &dyn Fn(&str) -> bool) -> String {
        let own = self.id.map(|id| snake(id)).filter(|name| !name.is_empty());
        let own = own.unwrap_or_else(|| snake(&self.name()));
        let whole = match &selection.prefix {
            Some(prefix) if !own.starts_with(&format!("{prefix}_")) => snake(&format!("{prefix}_{own}")),
            _ => own,
        };
        unique(&whole, is_taken)
    }
}

/// A note about a part that was left out.
pub fn left_out(what: &str, name: &str, why: &str) -> String {
    format!("the optional {what} {} was left out: {why}", shortened(name, 60))
}

/// The slots of the parameters, for the settings.
pub fn slots(parameters: &[(&Parameter<'_>, String)], body: Option<Value>, format: Option<&str>) -> Value {
    let (mut path, mut query, mut headers) = (Map::new(), Map::new(), Map::new());
    for (parameter, member) in parameters {
        let name = parameter.name.to_owned();
        match &parameter.placing {
            Placing::Path => {
                if *member != name {
                    path.insert(name, json!(member));
                }
            }
            Placing::Query(None) => {
                query.insert(name, json!(member));
            }
            Placing::Query(Some(style)) => {
                query.insert(name, json!({"member": member, "style": style}));
            }
            Placing::Header => {
                headers.insert(name.to_ascii_lowercase(), json!(member));
            }
        }
    }
    let mut slots = Map::new();
    for (name, part) in [("path", path), ("headers", headers)] {
        if !part.is_empty() {
            slots.insert(name.to_owned(), Value::Object(part));
        }
    }
    slots.insert("query".to_owned(), Value::Object(query));
    slots.insert("body".to_owned(), body.unwrap_or_else(|| json!("none")));
    if let Some(format) = format {
        slots.insert("body_format".to_owned(), json!(format));
    }
    Value::Object(slots)
}
