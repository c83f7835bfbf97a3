//! The body of a request, as the document describes it.

use serde_json::{Map, Value};

use super::operation::{Operation, left_out};
use super::parameters::shown;
use super::{Version, items, members};
use crate::outcome::Media;

const FORM: &str = "application/x-www-form-urlencoded";

/// A body that can be sent.
pub struct Payload<'a> {
    pub content: Described<'a>,
    pub format: Format,
    pub required: bool,
    /// A body that the document shows.
    pub example: Option<&'a Value>,
}

/// What describes it.
pub enum Described<'a> {
    Schema(&'a Value),
    /// Fields of a form: name, schema, and whether it is required.
    Fields(Vec<(&'a str, &'a Value, bool)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// With the content type of the document.
    Json(String),
    Form {
        brackets: bool,
    },
}

impl<'a> Payload<'a> {
    /// The body of an operation; `None` if it has none, or one that can be left out and cannot be sent.
    pub fn of(operation: &Operation<'a>, notes: &mut Vec<String>) -> Result<Option<Payload<'a>>, String> {
        let found = match operation.version {
            Version::Swagger2 => swagger(operation),
            Version::OpenApi3 => openapi(operation),
        };
        let (payload, required) = match found {
            Ok(None) => return Ok(None),
            Ok(Some(payload)) if operation.method != "GET" => return Ok(Some(payload)),
            Ok(Some(payload)) => (Err("a GET has none".to_owned()), payload.required),
            Err((why, required)) => (Err::<(), String>(why), required),
        };
        let why = payload.err().unwrap_or_default();
        if required {
            return Err(format!("needs a body that cannot be sent: {why}"));
        }
        notes.push(left_out("body", "", &why));
        Ok(None)
    }
}

/// Why a body cannot be sent, and whether it is needed.
type Unsent = (String, bool);

/// Whether a body, or a field of one, is needed. Many documents forget to say it of requests that are nothing without it.
fn is_needed(operation: &Operation<'_>, described: &Value) -> bool {
    match &described["required"] {
        Value::Bool(required) => *required,
        _ => matches!(operation.method.as_str(), "POST" | "PUT" | "PATCH"),
    }
}

fn openapi<'a>(operation: &Operation<'a>) -> Result<Option<Payload<'a>>, Unsent> {
    let Some(body) = operation.value.get("requestBody") else { return Ok(None) };
    let body = operation.document.resolved(body).map_err(|why| (why, true))?;
    let required = body["required"] == true;
    let content = &body["content"];
    let json = members(content).find(|(name, _)| *name == "application/json");
    let json = json.or_else(|| members(content).find(|(name, _)| is_json(name)));
    if let Some((name, described)) = json {
        let name = if name.contains('*') { "application/json" } else { name.as_str() };
        let content = Described::Schema(&described["schema"]);
        let example = shown(operation.document, described, &described["schema"]);
        return Ok(Some(Payload { content, format: Format::Json(name.to_owned()), required, example }));
    }
    if let Some((_, described)) = members(content).find(|(name, _)| name.starts_with(FORM)) {
        let schema = &described["schema"];
        let has_deep = members(&described["encoding"]).any(|(_, encoding)| encoding["style"] == "deepObject");
        let format = Format::Form { brackets: has_deep || has_objects(operation, schema) };
        let example = shown(operation.document, described, schema);
        return Ok(Some(Payload { content: Described::Schema(schema), format, required, example }));
    }
    let names: Vec<&str> = members(content).map(|(name, _)| name.as_str()).take(3).collect();
    match names.is_empty() {
        true => Ok(None),
        false => Err((
            format!("it is {}, and only JSON and plain forms are sent", names.join(", ")),
            is_needed(operation, body),
        )),
    }
}

fn is_json(name: &str) -> bool {
    Media::of_header(name) == Some(Media::Json) || name.starts_with("*/*")
}

/// Whether a member of a form is an object.
fn has_objects(operation: &Operation<'_>, schema: &Value) -> bool {
    let schema = operation.document.resolved(schema).unwrap_or(&Value::Null);
    members(&schema["properties"]).any(|(_, property)| {
        let property = operation.document.resolved(property).unwrap_or(&Value::Null);
        property["type"] == "object" || property.get("properties").is_some()
    })
}

fn swagger<'a>(operation: &Operation<'a>) -> Result<Option<Payload<'a>>, Unsent> {
    let mut fields: Vec<(&str, &Value, bool)> = Vec::new();
    let consumes = [&operation.value["consumes"], &operation.document.root["consumes"]];
    let consumes = consumes.into_iter().map(items).find(|list| !list.is_empty()).unwrap_or_default();
    let consumes: Vec<&str> = consumes.iter().filter_map(Value::as_str).collect();
    for parameter in items(&operation.value["parameters"]).iter().chain(items(&operation.item["parameters"])) {
        let Ok(parameter) = operation.document.resolved(parameter) else { continue };
        let required = parameter["required"] == true;
        let name = parameter["name"].as_str().unwrap_or_default();
        match parameter["in"].as_str() {
            Some("body") if consumes.is_empty() || consumes.iter().any(|name| is_json(name)) => {
                let json = consumes
                    .iter()
                    .find(|name| **name == "application/json")
                    .or(consumes.iter().find(|name| is_json(name)));
                let json = json.filter(|name| !name.contains('*')).map_or("application/json", |name| name);
                let content = Described::Schema(&parameter["schema"]);
                let example = shown(operation.document, parameter, &parameter["schema"]);
                return Ok(Some(Payload { content, format: Format::Json(json.to_owned()), required, example }));
            }
            Some("body") => {
                let why = format!("it is {}, and only JSON is sent", consumes.join(", "));
                return Err((why, is_needed(operation, parameter)));
            }
            Some("formData") if !fields.iter().any(|(known, ..)| *known == name) => {
                fields.push((name, parameter, required));
            }
            _ => {}
        }
    }
    let needed = fields.iter().any(|(_, field, _)| is_needed(operation, field));
    if fields.iter().any(|(_, field, _)| field["type"] == "file") {
        return Err(("it has a file".to_owned(), needed));
    }
    let is_form = consumes.is_empty() || consumes.contains(&FORM) || !consumes.contains(&"multipart/form-data");
    match fields.is_empty() {
        true => Ok(None),
        false if !is_form => Err(("it is multipart/form-data".to_owned(), needed)),
        false => {
            let required = fields.iter().any(|(.., required)| *required);
            Ok(Some(Payload {
                content: Described::Fields(fields),
                format: Format::Form { brackets: false },
                required,
                example: None,
            }))
        }
    }
}

/// Whether a converted schema is a plain object whose members can stand beside parameters.
pub fn is_plain(schema: &Value) -> bool {
    let composed = ["anyOf", "allOf", "oneOf", "not", "if", "$ref", "enum", "const", "minProperties", "maxProperties"];
    let has_members =
        schema["properties"].as_object().is_some_and(|properties: &Map<String, Value>| !properties.is_empty());
    has_members && !composed.iter().any(|word| schema.get(word).is_some())
}
