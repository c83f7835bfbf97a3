//! The `bazaar` extension of x402: how something paid is called, for the catalogs that directories make of 402 answers
//! and of settled payments (standards.md §3).
//!
//! `info` is one call that works, `schema` says what calls look like; directories check the one against the other. Clients
//! echo all of it in their payment, in a header, so what is long is left out and its address given instead.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::spec::ToolSpec;

/// The extension's name among `extensions`.
pub const BAZAAR: &str = "bazaar";

/// Longest JSON of a schema that is shown whole.
const MAX_SCHEMA_BYTES: usize = 900;

/// Of each tool made once, when it is first asked for: a 402 is answered more often than anything else, and a function's
/// first one should not pay for a hundred others.
static HTTP: LazyLock<Mutex<HashMap<&'static str, Value>>> = LazyLock::new(Mutex::default);

/// How a tool is called over HTTP.
pub fn http(tool: &ToolSpec) -> Value {
    let mut made = HTTP.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(tool.name).or_insert_with(|| http_extension(tool, schema_of(tool))).clone()
}

/// The same without its schema, where that would make an answer too long.
pub fn http_brief(tool: &ToolSpec) -> Value {
    http_extension(tool, elsewhere(tool))
}

/// How a tool is called over MCP, under this name.
pub fn mcp(tool: &ToolSpec, name: &str) -> Value {
    let info = json!({
        "input": {
            "type": "mcp",
            "toolName": name,
            "description": tool.summary,
            "transport": "streamable-http",
            "inputSchema": schema_of(tool),
            "example": (tool.example)(),
        },
        "output": {"type": "json"},
    });
    let input = json!({
        "type": {"type": "string", "const": "mcp"},
        "toolName": {"type": "string"},
        "description": {"type": "string"},
        "transport": {"type": "string", "enum": ["streamable-http"]},
        "inputSchema": {"type": "object"},
        "example": {"type": "object"},
    });
    extension(info, input, &["type", "toolName", "inputSchema"])
}

fn http_extension(tool: &ToolSpec, body: Value) -> Value {
    let info = json!({
        "input": {"type": "http", "method": "POST", "bodyType": "json", "body": (tool.example)()},
        "output": {"type": "json"},
    });
    let input = json!({
        "type": {"type": "string", "const": "http"},
        "method": {"type": "string", "enum": ["POST"]},
        "bodyType": {"type": "string", "enum": ["json"]},
        "body": body,
    });
    extension(info, input, &["type", "method", "bodyType", "body"])
}

fn extension(info: Value, input: Value, required: &[&str]) -> Value {
    json!({
        "info": info,
        "schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "input": {"type": "object", "properties": input, "required": required, "additionalProperties": false},
                "output": {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]},
            },
            "required": ["input"],
        },
    })
}

fn schema_of(tool: &ToolSpec) -> Value {
    let schema = tool.input_schema();
    if schema.to_string().len() <= MAX_SCHEMA_BYTES { schema } else { elsewhere(tool) }
}

/// In place of a schema. Directories refuse references to other documents, so it is said in words.
fn elsewhere(tool: &ToolSpec) -> Value {
    json!({"type": "object", "description": format!("GET /v1/tools/discover?query={} has the schema", tool.name)})
}
