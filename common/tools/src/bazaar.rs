//! The `bazaar` extension of x402: describes how to call a paid resource, for directories that build catalogs from 402
//! answers and settled payments.
//!
//! `info` is a valid example call, or one without its body, and `schema` describes calls; directories validate `info` against `schema`. Clients echo
//! the whole extension in a payment header, so a long input schema is replaced by its address.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::spec::ToolSpec;

/// The name of the extension in `extensions`.
pub const BAZAAR: &str = "bazaar";

/// Longest input schema that is included, in bytes of JSON.
const MAX_SCHEMA_BYTES: usize = 900;

/// Built per tool on first use and cached: 402 answers are frequent, and a function's first one should not build all tools.
static HTTP: LazyLock<Mutex<HashMap<&'static str, Value>>> = LazyLock::new(Mutex::default);

/// How a tool is called over HTTP.
pub fn http(tool: &ToolSpec) -> Value {
    let mut made = HTTP.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry(tool.name).or_insert_with(|| http_extension(tool, schema_of(tool))).clone()
}

/// The same without the input schema, for answers that would be too long.
pub fn http_brief(tool: &ToolSpec) -> Value {
    http_extension(tool, elsewhere(tool))
}

/// How a seller's service is called over HTTP. `asked` is its own schema for the member `input`, and `example` an input that
/// is valid for it; without one, there is no example of a body. A schema is left out if it is long, if it has references or
/// other `$` members, which mean something else inside another schema, or if it is not ASCII, because some clients escape
/// every other letter when they echo it.
pub fn http_of_service(asked: Option<&Value>, example: Option<&Value>) -> Value {
    let input = match asked.map(|schema| (schema, schema.to_string())) {
        None => json!({"type": "object"}),
        Some((schema, text)) if text.len() <= MAX_SCHEMA_BYTES && text.is_ascii() && !text.contains("\"$") => {
            schema.clone()
        }
        Some(_) => json!({"type": "object", "description": "the soul's page, GET /v1/soul/{slug}, has the schema"}),
    };
    let body = json!({"type": "object", "properties": {"input": input}, "required": ["input"]});
    http_body(example.map(|example| json!({"input": example})), body)
}

/// How a tool is called over MCP; `name` is its MCP name.
pub fn mcp(tool: &ToolSpec, name: &str) -> Value {
    let info = json!({
        "input": {
            "type": "mcp",
            "toolName": name,
            "description": tool.summary,
            "transport": "streamable-http",
            "inputSchema": schema_of(tool),
            "example": tool.example(),
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
    http_body(Some(tool.example()), body)
}

fn http_body(example: Option<Value>, body: Value) -> Value {
    let mut info = json!({
        "input": {"type": "http", "method": "POST", "bodyType": "json"},
        "output": {"type": "json"},
    });
    let mut required = vec!["type", "method", "bodyType"];
    if let Some(example) = example {
        info["input"]["body"] = example;
        required.push("body");
    }
    let input = json!({
        "type": {"type": "string", "const": "http"},
        "method": {"type": "string", "enum": ["POST"]},
        "bodyType": {"type": "string", "enum": ["json"]},
        "body": body,
    });
    extension(info, input, &required)
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

/// Replaces a long schema. Directories reject `$ref` to other documents, so the address is given as text.
fn elsewhere(tool: &ToolSpec) -> Value {
    json!({"type": "object", "description": format!("GET /v1/tools/discover?query={} has the schema", tool.name)})
}
