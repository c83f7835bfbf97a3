//! Shows what becomes of an OpenAPI document (JSON or YAML) or of an MCP server's list of tools:
//! `cargo run -p upstream --example import -- openapi FILE [SERVER]` or `… mcp FILE`. With `ENTRIES=1` it prints the entries
//! for the settings file.

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use upstream::{Imported, McpServer, Select, Selection, from_mcp, from_openapi, from_yaml};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(kind), Some(file)) = (arguments.first(), arguments.get(1)) else {
        eprintln!("import openapi|mcp FILE [SERVER]");
        return ExitCode::FAILURE;
    };
    let document = match read(file) {
        Ok(document) => document,
        Err(error) => {
            eprintln!("{file}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let server = arguments.get(2).cloned();
    let imported = match kind.as_str() {
        "mcp" => mcp(&document, server),
        _ => openapi(&document, server),
    };
    show(file, &imported);
    ExitCode::SUCCESS
}

fn read(file: &str) -> Result<Value, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).or_else(|_| from_yaml(&text))
}

fn openapi(document: &Value, server: Option<String>) -> Imported {
    let selection = Selection { server, ..Selection::new(vec![Select::All], "0.01") };
    from_openapi(document, &selection, &|_| false)
}

fn mcp(list: &Value, server: Option<String>) -> Imported {
    let server = McpServer {
        address: server.unwrap_or_else(|| "https://mcp.example.com/mcp".to_owned()),
        private: false,
        only: Vec::new(),
        price: json!("0.01"),
        prefix: None,
        category: None,
        headers: Map::new(),
    };
    from_mcp(list, &server, &|_| false)
}

fn show(file: &str, imported: &Imported) {
    let with_output = imported.tools.iter().filter(|tool| tool.tool.output_schema.is_some()).count();
    let with_example = imported.tools.iter().filter(|tool| tool.tool.example_input().is_some()).count();
    println!(
        "{file}: {} taken ({with_output} with an output schema, {with_example} with an example), {} refused",
        imported.tools.len(),
        imported.refused.len()
    );
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for note in imported.tools.iter().flat_map(|tool| &tool.notes) {
        *counts.entry(note).or_default() += 1;
    }
    counts.iter().for_each(|(note, count)| println!("  note {count}x {note}"));
    for refused in &imported.refused {
        println!("  refused {}: {}", refused.operation, refused.why);
    }
    if std::env::var_os("ENTRIES").is_some() {
        let entries: Vec<&Value> = imported.tools.iter().map(|tool| &tool.entry).collect();
        println!("{:#}", json!({ "tools": entries }));
    }
}
