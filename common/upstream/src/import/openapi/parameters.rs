//! Parameters in path, query and headers.

use serde_json::{Value, json};

use super::super::document::Document;
use super::operation::{Operation, left_out};
use super::security::{self, Constants};
use super::{Selection, Version, items};
use crate::settings::{is_connection_header, is_header_name};

/// Most parameters of one operation.
const MAX_PARAMETERS: usize = 100;
/// Headers that are described elsewhere in a document, or that every request has.
const OWN_HEADERS: [&str; 5] = ["accept", "content-type", "authorization", "user-agent", "cookie"];

/// A parameter that becomes a member of the input.
pub struct Parameter<'a> {
    pub name: &'a str,
    pub placing: Placing,
    pub required: bool,
    pub schema: &'a Value,
    pub description: &'a str,
    /// A value that the document shows.
    pub example: Option<&'a Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placing {
    Path,
    /// With the style of the settings, if it is not the usual one.
    Query(Option<&'static str>),
    Header,
}

/// Where a parameter stands, or why it has no slot.
type Placed = Result<Placing, String>;

impl<'a> Parameter<'a> {
    /// The parameters of an operation, its own before those of its path, without those that constants fill.
    pub fn all(
        operation: &Operation<'a>,
        selection: &Selection,
        constants: &mut Constants,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Parameter<'a>>, String> {
        let mut found: Vec<Parameter<'a>> = Vec::new();
        let mut seen: Vec<(&str, &str)> = Vec::new();
        let own = items(&operation.value["parameters"]);
        let all: Vec<&Value> = own.iter().chain(items(&operation.item["parameters"])).collect();
        if all.len() > MAX_PARAMETERS {
            return Err(format!("has more than {MAX_PARAMETERS} parameters"));
        }
        for parameter in all {
            let parameter = operation.document.resolved(parameter)?;
            let (Some(name), Some(place)) = (parameter["name"].as_str(), parameter["in"].as_str()) else {
                return Err("has a parameter without name or place".to_owned());
            };
            if matches!(place, "body" | "formData") || seen.contains(&(name, place)) {
                continue;
            }
            seen.push((name, place));
            let is_filled =
                constants.names.iter().any(|(known, filled)| *known == place && filled.eq_ignore_ascii_case(name));
            let required = parameter["required"] == true || place == "path";
            // A second way to say who asks is left to the first.
            if is_filled || takes_secret(constants, selection, place, name, required, notes) {
                continue;
            }
            match placing(operation, parameter, name, place) {
                Ok(placing) => {
                    let schema = if operation.version == Version::Swagger2 { parameter } else { &parameter["schema"] };
                    let description = parameter["description"].as_str().unwrap_or_default();
                    let example = shown(operation.document, parameter, schema);
                    found.push(Parameter { name, placing, required, schema, description, example });
                }
                Err(why) if required => return Err(format!("needs the parameter {name} in {place}, which {why}")),
                Err(why) => notes.push(left_out("parameter", name, &why)),
            }
        }
        Ok(found)
    }
}

/// The value that a document shows for a parameter or a body: its own, or that of its schema.
pub fn shown<'a>(document: Document<'a>, holder: &'a Value, schema: &'a Value) -> Option<&'a Value> {
    let named = holder["examples"].as_object().and_then(|examples| examples.values().next());
    let named = named.and_then(|example| document.resolved(example).ok()?.get("value"));
    holder.get("example").or(named).or_else(|| document.resolved(schema).ok()?.get("example"))
}

/// Whether a parameter is a secret of the operator's: it becomes a constant if it is required, and is left out if it is not.
fn takes_secret(
    constants: &mut Constants,
    selection: &Selection,
    place: &str,
    name: &str,
    required: bool,
    notes: &mut Vec<String>,
) -> bool {
    if required {
        return security::takes(constants, selection, place, name, notes);
    }
    let is_secret = security::is_secret(name) && matches!(place, "header" | "query");
    if is_secret {
        notes.push(left_out(
            "parameter",
            name,
            "it is a secret of yours; name it in constants if the service shall get it",
        ));
    }
    is_secret
}

fn placing<'a>(operation: &Operation<'a>, parameter: &'a Value, name: &str, place: &str) -> Placed {
    let lower = name.to_ascii_lowercase();
    match place {
        "header" if !is_header_name(&lower) => Err("is not a header's name".to_owned()),
        "header" if is_connection_header(&lower) || OWN_HEADERS.contains(&lower.as_str()) => {
            Err("is a header that the connection or the security has".to_owned())
        }
        "header" if has_objects(operation, parameter) => Err("has objects in it".to_owned()),
        "header" => Ok(Placing::Header),
        "path" if !matches!(parameter["style"].as_str(), None | Some("simple")) => {
            Err("has a style that is not supported".to_owned())
        }
        "path" => Ok(Placing::Path),
        "query" if parameter.get("content").is_some() => Err("is JSON within a text".to_owned()),
        "query" if operation.version == Version::Swagger2 => collection(parameter).map(Placing::Query),
        "query" => style(operation, parameter).map(Placing::Query),
        _ => Err("has no slot".to_owned()),
    }
}

/// Swagger's `collectionFormat`.
fn collection(parameter: &Value) -> Result<Option<&'static str>, String> {
    if parameter["type"] != "array" {
        return Ok(None);
    }
    match parameter["collectionFormat"].as_str() {
        None | Some("csv") => Ok(Some(",")),
        Some("ssv") => Ok(Some(" ")),
        Some("pipes") => Ok(Some("|")),
        Some("multi") => Ok(None),
        Some(_) => Err("has a collectionFormat that is not supported".to_owned()),
    }
}

fn style<'a>(operation: &Operation<'a>, parameter: &'a Value) -> Result<Option<&'static str>, String> {
    let style = parameter["style"].as_str().unwrap_or("form");
    let explodes = parameter.get("explode").map_or(style == "form", |explode| *explode == json!(true));
    match (style, explodes) {
        ("deepObject", _) => Ok(Some("brackets")),
        _ if has_objects(operation, parameter) => Err("has objects in it".to_owned()),
        ("form", false) => Ok(Some(",")),
        ("spaceDelimited", false) => Ok(Some(" ")),
        ("pipeDelimited", false) => Ok(Some("|")),
        ("form" | "spaceDelimited" | "pipeDelimited", true) => Ok(None),
        _ => Err("has a style that is not supported".to_owned()),
    }
}

/// Whether a parameter is an object, or an array of objects or arrays.
fn has_objects<'a>(operation: &Operation<'a>, parameter: &'a Value) -> bool {
    let follow = |schema: &'a Value| operation.document.resolved(schema).unwrap_or(&Value::Null);
    let is_object = |schema: &Value| schema["type"] == "object" || schema.get("properties").is_some();
    let schema = follow(&parameter["schema"]);
    let items = follow(&schema["items"]);
    is_object(schema) || is_object(items) || items["type"] == "array"
}
