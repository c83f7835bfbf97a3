//! The input schema of an operation: its parameters, and the members of its body beside them.

use serde_json::{Map, Value, json};

use super::super::convert::{Converter, DETAILS, Detail, Purpose};
use super::super::words::{cleaned, member, shortened};
use super::body::{Described, Format, Payload, is_plain};
use super::items;
use super::operation::{Operation, slots};
use super::parameters::{Parameter, Placing};

/// Longest description of a parameter, in characters.
const MAX_WORDS: usize = 300;

/// Schema and slots, as the settings have them.
pub struct Input {
    pub schema: Value,
    pub slots: Value,
    /// Of a JSON body.
    pub content_type: Option<String>,
    /// The values that the document shows, by member.
    pub example: Map<String, Value>,
}

/// What is put together at one level of detail.
#[derive(Default)]
struct Members {
    properties: Map<String, Value>,
    required: Vec<String>,
    /// What other members may be; `None`: there are none.
    others: Option<Value>,
}

impl Members {
    /// A name for a member that is free.
    fn free(&self, name: &str) -> String {
        let plain = member(name);
        let numbered = |number: usize| if number == 1 { plain.clone() } else { format!("{plain}_{number}") };
        let found = (1..1_000).map(numbered).find(|name| !self.properties.contains_key(name));
        found.unwrap_or(plain)
    }

    fn schema(&self) -> Value {
        let mut schema = json!({"type": "object", "properties": self.properties});
        if !self.required.is_empty() {
            schema["required"] = json!(self.required);
        }
        schema["additionalProperties"] = self.others.clone().unwrap_or(json!(false));
        schema
    }
}

impl Input {
    /// Puts the schema together, with less detail until it is admitted.
    pub fn new<'a>(
        operation: &Operation<'a>,
        parameters: &[Parameter<'a>],
        payload: Option<Payload<'a>>,
        notes: &mut Vec<String>,
    ) -> Result<Input, String> {
        let mut why = "has an input that is too large to describe".to_owned();
        for detail in DETAILS {
            let mut converter = Converter::new(operation.document, Purpose::Input, detail);
            let input = Input::at(&mut converter, operation, parameters, payload.as_ref(), detail)?;
            if converter.is_exhausted() {
                continue;
            }
            match schema::admit(&input.schema) {
                Ok(()) => {
                    notes.extend(converter.notes.iter().map(|note| format!("input: {note}")));
                    return Ok(input);
                }
                Err(errors) => {
                    let error = errors.first();
                    let (path, message) = error.map_or(("", ""), |error| (&error.path, &error.message));
                    why = format!("has an input that cannot be checked: {} {message}", shortened(path, 100));
                }
            }
        }
        Err(why)
    }

    fn at<'a>(
        converter: &mut Converter<'a>,
        operation: &Operation<'a>,
        parameters: &[Parameter<'a>],
        payload: Option<&Payload<'a>>,
        detail: Detail,
    ) -> Result<Input, String> {
        let mut members = Members::default();
        let mut example = Map::new();
        let mut placed: Vec<(&Parameter<'a>, String)> = Vec::new();
        for parameter in parameters {
            let name = members.free(parameter.name);
            let mut schema = converter.convert(parameter.schema, 1);
            describe(&mut schema, parameter.description, detail);
            if parameter.placing == Placing::Path {
                without_null(&mut schema);
            }
            if parameter.required {
                members.required.push(name.clone());
            }
            members.properties.insert(name.clone(), schema);
            example.extend(parameter.example.map(|value| (name.clone(), value.clone())));
            placed.push((parameter, name));
        }
        undeclared(operation.path, parameters, &mut members)?;
        let body = payload.map(|payload| body(converter, payload, &mut members)).transpose()?;
        if let Some(shown) = payload.and_then(|payload| payload.example) {
            match body.as_ref().and_then(|body| body["member"].as_str()) {
                Some(member) => example.extend([(member.to_owned(), shown.clone())]),
                None => example.extend(shown.as_object().cloned().unwrap_or_default()),
            }
        }
        let (format, content_type) = match payload.map(|payload| &payload.format) {
            None => (None, None),
            Some(Format::Json(content_type)) => (None, Some(content_type.clone())),
            Some(Format::Form { brackets: false }) => (Some("form"), None),
            Some(Format::Form { brackets: true }) => (Some("form_with_brackets"), None),
        };
        Ok(Input { schema: members.schema(), slots: slots(&placed, body, format), content_type, example })
    }
}

/// The slot of the body: the rest, if its members can stand beside the parameters, or one member.
fn body<'a>(converter: &mut Converter<'a>, payload: &Payload<'a>, members: &mut Members) -> Result<Value, String> {
    let schema = match &payload.content {
        Described::Schema(schema) => *schema,
        Described::Fields(fields) => {
            for (name, schema, required) in fields {
                if members.properties.contains_key(*name) {
                    return Err(format!("has a field and a parameter with the name {}", shortened(name, 60)));
                }
                let converted = converter.convert(schema, 1);
                members.properties.insert((*name).to_owned(), converted);
                if *required {
                    members.required.push((*name).to_owned());
                }
            }
            return Ok(json!("rest"));
        }
    };
    let mut converted = converter.convert(schema, 0);
    without_null(&mut converted);
    let names_clash = |members: &Members| {
        let names = converted["properties"].as_object();
        names.is_some_and(|names| names.keys().any(|name| members.properties.contains_key(name)))
    };
    // Many documents forget to say that a body is required. One with required members is.
    let is_required = payload.required || requires_members(&converted);
    if is_plain(&converted) && !names_clash(members) {
        if let Value::Object(mut object) = converted {
            if let Some(Value::Object(properties)) = object.remove("properties") {
                members.properties.extend(properties);
            }
            let required = object.remove("required");
            let names = required.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            members.required.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
            members.others = object.remove("additionalProperties").filter(|others| *others != json!(false));
        }
        return Ok(json!("rest"));
    }
    if matches!(payload.format, Format::Form { .. }) && converted.get("type").is_some_and(|kind| kind != "object") {
        return Err("has a form that is no object".to_owned());
    }
    let name = members.free("body");
    let deeper = converter.convert(schema, 1);
    members.properties.insert(name.clone(), deeper);
    if is_required {
        members.required.push(name.clone());
    }
    Ok(json!({"member": name}))
}

/// Whether nothing fits a converted schema but objects with members: of a union, each alternative has to say so.
fn requires_members(schema: &Value) -> bool {
    let all_require = |schemas: &[Value]| !schemas.is_empty() && schemas.iter().all(requires_members);
    schema.get("required").is_some()
        || items(&schema["allOf"]).iter().any(requires_members)
        || all_require(items(&schema["anyOf"]))
}

/// Parameters of the path that the document forgot: required texts.
fn undeclared(path: &str, parameters: &[Parameter<'_>], members: &mut Members) -> Result<(), String> {
    for part in path.split('{').skip(1) {
        let (name, _) = part.split_once('}').ok_or("has a { without a } in its path")?;
        let is_known = parameters.iter().any(|known| known.placing == Placing::Path && known.name == name);
        if !is_known && members.properties.contains_key(name) {
            return Err(format!("has no parameter in the path for {}", shortened(name, 60)));
        }
        if !is_known {
            members.properties.insert(name.to_owned(), json!({"type": "string"}));
            members.required.push(name.to_owned());
        }
    }
    Ok(())
}

/// The parameter's own text, in place of its schema's, which several parameters may share.
fn describe(schema: &mut Value, description: &str, detail: Detail) {
    let text = shortened(&cleaned(description), MAX_WORDS.min(detail.words()));
    if let Some(schema) = schema.as_object_mut().filter(|_| !text.is_empty()) {
        schema.insert("description".to_owned(), Value::String(text));
    }
}

/// Null has no place in a path, nor as a whole body.
fn without_null(schema: &mut Value) {
    let Some(Value::Array(types)) = schema.get_mut("type") else { return };
    types.retain(|kind| kind != "null");
    if let [only] = types.as_slice() {
        let only = only.clone();
        schema["type"] = only;
    }
}
