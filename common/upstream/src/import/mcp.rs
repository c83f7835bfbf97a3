//! Tools of an MCP server, from the result of `tools/list`.

use serde_json::{Map, Value, json};

use super::convert::{Converter, DETAILS, Purpose};
use super::document::Document;
use super::words::{shortened, snake, title_and_summary, unique};
use super::{Imported, Made, wrong_privacy};
use crate::settings::{MAX_TOOLS, Reserved};

/// The server that the tools are on, and what the operator decides.
#[derive(Clone, Debug)]
pub struct McpServer {
    /// The endpoint.
    pub address: String,
    pub private: bool,
    /// Names of the tools that are taken; all if it is empty.
    pub only: Vec<String>,
    /// The price of each tool, as in the settings.
    pub price: Value,
    /// Stands before each name.
    pub prefix: Option<String>,
    pub category: Option<String>,
    /// Headers as in `constants.headers` of the settings: `{"authorization": {"secret": "key", "prefix": "Bearer "}}`.
    pub headers: Map<String, Value>,
}

/// Makes tools of a server's list: the result of `tools/list`, or all pages' `tools` in one.
pub fn from_mcp(list: &Value, server: &McpServer, reserved: Reserved<'_>) -> Imported {
    let mut imported = Imported::default();
    if let Some(why) = wrong_privacy(&server.address, server.private) {
        imported.refuse("*", format!("{} {why}", server.address));
        return imported;
    }
    let Some(tools) = list["tools"].as_array() else {
        imported.refuse("*", "the list has no array tools");
        return imported;
    };
    if list.get("nextCursor").is_some_and(Value::is_string) {
        imported.refuse("*", "the list has further pages, which have to be read too (nextCursor)");
    }
    let is_there = |name: &String| tools.iter().any(|tool| tool["name"] == **name);
    for name in server.only.iter().filter(|name| !is_there(name)) {
        imported.refuse(shortened(name, 100), "names no tool of the server");
    }
    let is_meant = |tool: &Value| server.only.is_empty() || server.only.iter().any(|name| tool["name"] == **name);
    for (index, tool) in tools.iter().enumerate().filter(|(_, tool)| is_meant(tool)) {
        let Some(name) = tool["name"].as_str().filter(|name| !name.is_empty()) else {
            imported.refuse(format!("tool {index}"), "has no name");
            continue;
        };
        let shown = shortened(name, 100);
        if imported.tools.len() >= MAX_TOOLS {
            imported.refuse(shown, format!("a settings file has at most {MAX_TOOLS} tools"));
            continue;
        }
        let is_taken = |name: &str| imported.has(name) || reserved(name);
        match entry(tool, name, server, &is_taken) {
            Ok(made) => imported.take(shown, made, reserved),
            Err(why) => imported.refuse(shown, why),
        }
    }
    imported
}

fn entry(tool: &Value, name: &str, server: &McpServer, is_taken: &dyn Fn(&str) -> bool) -> Result<Made, String> {
    if tool["execution"]["taskSupport"] == "required" {
        return Err("runs as a task only, which is not supported".to_owned());
    }
    let mut notes = Vec::new();
    let own = match &server.prefix {
        Some(prefix) => snake(&format!("{prefix}_{name}")),
        None => snake(name),
    };
    let wire = unique(&own, is_taken);
    let annotations = &tool["annotations"];
    let title = tool["title"].as_str().or(annotations["title"].as_str()).unwrap_or_default();
    let (title, summary) = title_and_summary(title, tool["description"].as_str().unwrap_or_default(), &wire);
    let input = match tool["inputSchema"].as_object() {
        Some(schema) if schema.get("type").is_some_and(|kind| kind == "object") => {
            let mut input = admitted(&tool["inputSchema"], Purpose::Input, &mut notes)
                .ok_or("has an input schema that cannot be checked")?;
            // Without a word about its members, it takes any.
            if !schema.contains_key("properties") {
                input["additionalProperties"] = json!(true);
            }
            input
        }
        _ => return Err("has no input schema of type object".to_owned()),
    };
    let mut entry = json!({
        "kind": "mcp", "name": wire, "title": title, "summary": summary, "price": server.price,
        "address": server.address, "tool": name, "input_schema": input,
    });
    if tool["outputSchema"].is_object() {
        match admitted(&tool["outputSchema"], Purpose::Output, &mut notes) {
            Some(schema) => entry["output_schema"] = schema,
            None => notes.push("output: there is no output schema, because the server's cannot be checked".to_owned()),
        }
    }
    if server.private {
        entry["private"] = json!(true);
    }
    if let Some(category) = &server.category {
        entry["category"] = json!(category);
    }
    if !server.headers.is_empty() {
        entry["constants"] = json!({"headers": server.headers});
    }
    if annotations["readOnlyHint"] == true || annotations["idempotentHint"] == true {
        entry["safe_to_retry"] = json!(true);
        notes.push("the server says that a call may be repeated".to_owned());
    }
    Ok(Made { entry, notes, example: Map::new(), caller_errors: Vec::new() })
}

/// A server's schema as it is, if it is admitted; else with less detail.
fn admitted(schema: &Value, purpose: Purpose, notes: &mut Vec<String>) -> Option<Value> {
    let mut own = schema.clone();
    if let Some(root) = own.as_object_mut() {
        root.remove("$schema");
        root.remove("$id");
    }
    if schema::admit(&own).is_ok() {
        return Some(own);
    }
    for detail in DETAILS {
        let mut converter = Converter::new(Document { root: schema }, purpose, detail);
        let mut converted = converter.convert(schema, 0);
        if purpose == Purpose::Output || converted.get("type").is_none() {
            converted["type"] = json!("object");
        }
        if !converter.is_exhausted() && schema::admit(&converted).is_ok() {
            let kind = if purpose == Purpose::Input { "input" } else { "output" };
            notes.extend(converter.notes.iter().map(|note| format!("{kind}: {note}")));
            return Some(converted);
        }
    }
    None
}
