//! What an operation answers with.

use serde_json::Value;

use super::super::convert::{Converter, DETAILS, Purpose};
use super::operation::Operation;
use super::{Version, items, members};
use crate::outcome::Media;

/// Statuses of an answer, the best first.
const WITH_BODY: [&str; 6] = ["200", "201", "202", "203", "2XX", "2xx"];
const EMPTY: [&str; 2] = ["204", "205"];

/// Statuses from 400 to 499 that are no caller's fault, whatever a document says: wrong keys, used-up rates, lost time.
const OWN_FAULTS: [u16; 5] = [401, 403, 407, 408, 429];

/// The statuses of errors in a document that its callers make.
pub fn caller_errors(responses: &Value) -> Vec<u16> {
    let statuses = members(responses).filter_map(|(status, _)| status.parse().ok());
    statuses.filter(|status| (400..500).contains(status) && !OWN_FAULTS.contains(status)).collect()
}

/// The answer of an operation.
#[derive(Default)]
pub struct Answer<'a> {
    schema: Option<&'a Value>,
    /// Content types that are not JSON.
    pub answers: Option<Vec<&'static str>>,
    /// The content type to ask for, if it is a special kind of JSON.
    pub accept: Option<String>,
    /// An answer without a body is one too (204).
    may_be_empty: bool,
}

impl<'a> Answer<'a> {
    pub fn of(operation: &Operation<'a>) -> Result<Answer<'a>, String> {
        let responses = &operation.value["responses"];
        let found = WITH_BODY.iter().find_map(|status| responses.get(status));
        let is_empty = EMPTY.iter().any(|status| responses.get(status).is_some());
        let Some(response) = found.or_else(|| responses.get("default").filter(|_| !is_empty)) else {
            return match is_elsewhere(responses) {
                true => Err("answers with redirects alone, which are not followed".to_owned()),
                false => Ok(Answer::default()),
            };
        };
        let response = operation.document.resolved(response)?;
        let answer = match operation.version {
            Version::Swagger2 => swagger(operation, response),
            Version::OpenApi3 => openapi(response),
        };
        answer.map(|answer| Answer { may_be_empty: is_empty, ..answer })
    }

    /// The output schema in our form; `None` if it says nothing.
    pub fn schema(&self, operation: &Operation<'a>, notes: &mut Vec<String>) -> Option<Value> {
        let described = self.schema?;
        for detail in DETAILS {
            let mut converter = Converter::new(operation.document, Purpose::Output, detail);
            let mut converted = converter.convert(described, 0);
            if converter.is_exhausted() {
                continue;
            }
            // The whole is not null, unless it may be left out.
            if !self.may_be_empty
                && let Some(Value::Array(types)) = converted.get_mut("type")
            {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    converted["type"] = only;
                }
            }
            if converted.as_object().is_none_or(|schema| schema.keys().all(|word| word == "description")) {
                return None;
            }
            if schema::admit(&converted).is_ok() {
                notes.extend(converter.notes.iter().map(|note| format!("output: {note}")));
                return Some(converted);
            }
        }
        notes.push("output: there is no output schema, because the document's cannot be checked".to_owned());
        None
    }
}

/// Whether a document promises redirects, and no answer.
fn is_elsewhere(responses: &Value) -> bool {
    let has = |digit: char| members(responses).any(|(status, _)| status.starts_with(digit));
    has('3') && !has('2') && responses.get("default").is_none()
}

fn openapi(response: &Value) -> Result<Answer<'_>, String> {
    let content: Vec<(&String, &Value)> = members(&response["content"]).collect();
    if content.is_empty() {
        return Ok(Answer::default());
    }
    let named = |wanted: &dyn Fn(&str) -> bool| content.iter().find(|(name, _)| wanted(name));
    let json = named(&|name| name == "application/json").or_else(|| named(&is_json));
    if let Some((name, described)) = json {
        let is_special = *name != "application/json" && !name.contains('*');
        return Ok(Answer {
            schema: described.get("schema"),
            answers: None,
            accept: is_special.then(|| name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()),
            may_be_empty: false,
        });
    }
    bytes(content.iter().map(|(name, _)| name.as_str()))
}

fn is_json(name: &str) -> bool {
    Media::of_header(name) == Some(Media::Json) || name.starts_with("*/*")
}

fn swagger<'a>(operation: &Operation<'a>, response: &'a Value) -> Result<Answer<'a>, String> {
    let produces = [&operation.value["produces"], &operation.document.root["produces"]];
    let produces = produces.into_iter().map(items).find(|list| !list.is_empty()).unwrap_or_default();
    let schema = response.get("schema");
    let is_file = schema.is_some_and(|schema| schema["type"] == "file");
    let mut names = produces.iter().filter_map(Value::as_str);
    if schema.is_none() && produces.is_empty() {
        return Ok(Answer::default());
    }
    if !is_file && (produces.is_empty() || names.clone().any(is_json)) {
        let special = names.clone().all(|name| name != "application/json").then(|| names.find(|name| is_json(name)));
        let special = special.flatten().filter(|name| !name.contains('*'));
        return Ok(Answer { schema, answers: None, accept: special.map(str::to_ascii_lowercase), may_be_empty: false });
    }
    bytes(names.filter(|name| !is_json(name)))
}

/// An answer of other types than JSON, those of them that are sold.
fn bytes<'n>(names: impl Iterator<Item = &'n str>) -> Result<Answer<'static>, String> {
    let names: Vec<&str> = names.collect();
    let mut answers: Vec<&'static str> = Vec::new();
    for media in names.iter().filter_map(|name| Media::of_header(name)) {
        if !answers.contains(&media.as_str()) {
            answers.push(media.as_str());
        }
    }
    match answers.is_empty() {
        true => {
            let shown = names.iter().take(3).copied().collect::<Vec<_>>().join(", ");
            Err(format!("answers with {shown}, which is not sold"))
        }
        false => Ok(Answer { answers: Some(answers), ..Answer::default() }),
    }
}
